//! docs/http.md shows what is really answered.

use tidegate_answer::{Dialect, problem};
use tidegate_limiter::Hits;

use crate::fixture::{ask, limiter, lines};

const PAGE: &str = include_str!("../../../../docs/http.md");

const RULES: &str =
    "- {key: login, rate_limit: {unit: minute, requests_per_unit: 2, name: login}}\n";

/// What the row of `dialect` in the table shows.
fn shown(dialect: Dialect) -> Vec<String> {
    let begin = format!("| `{}`", dialect.name());
    let row = PAGE.lines().find(|line| line.starts_with(&begin));
    let row = row.unwrap_or_else(|| panic!("no row for {dialect:?}"));
    let cell = row.split(" | ").nth(1).unwrap().trim_end_matches(" |");
    if cell == "none" {
        return Vec::new();
    }
    let header = |shown: &str| shown.trim_matches('`').to_owned();
    cell.split(" · ").map(header).collect()
}

#[test]
fn the_table_of_dialects_is_true() {
    let limiter = limiter(RULES);
    ask(&limiter, &["login"], Hits::OfRequest);
    let verdict = ask(&limiter, &["login"], Hits::OfRequest);
    for dialect in Dialect::ALL {
        assert_eq!(
            shown(dialect),
            lines(&verdict, &dialect.into()),
            "{dialect:?}"
        );
    }
}

#[test]
fn the_problem_is_true() {
    let limiter = limiter(RULES);
    ask(&limiter, &["login"], Hits::Take(2));
    let refused = ask(&limiter, &["login"], Hits::OfRequest);
    let (_, section) = PAGE.split_once("## Problems").unwrap();
    let (_, sample) = section.split_once("```json\n").unwrap();
    let (sample, _) = sample.split_once("```").unwrap();
    let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
    let body = problem(&refused, 429, None).unwrap();
    assert_eq!(json(sample.as_bytes()), json(&body));
}
