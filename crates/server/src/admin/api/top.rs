//! The busiest and the most refused callers.

use serde::Serialize;
use tidegate_observe::{Observatory, TopKey, TopKind, TopQuery};

use crate::admin::fault::Fault;
use crate::admin::query::Query;
use crate::admin::reply::{self, Reply};

#[derive(Debug, Serialize)]
struct TopView<'a> {
    kind: &'static str,
    /// The time that the counts cover.
    span_seconds: f64,
    /// One request in so many was looked at.
    sampled_one_in: u32,
    keys: Vec<KeyView<'a>>,
}

#[derive(Debug, Serialize)]
struct KeyView<'a> {
    domain: &'a str,
    rule: &'a str,
    key: &'a str,
    count: u64,
    error: u64,
}

/// How many callers are shown where nobody says.
const USUAL: usize = 10;

/// The callers with the greatest counts.
pub(in crate::admin) fn top(
    observatory: &Observatory,
    mut query: Query<'_>,
) -> Result<Reply, Fault> {
    let (kind, word) = match query.take("kind").as_deref() {
        None | Some("refused") => (TopKind::Refused, "refused"),
        Some("busiest") => (TopKind::Busiest, "busiest"),
        Some(_) => {
            let expected = "`refused` or `busiest`";
            return Err(Fault::BadQuery {
                name: "kind",
                expected,
            });
        }
    };
    let most = query.take_number("n", 1..=100, "a whole number from 1 to 100")?;
    let (domain, rule) = (query.take("domain"), query.take("rule"));
    query.finish()?;
    let report = observatory.top(&TopQuery {
        kind,
        domain: domain.as_deref(),
        rule: rule.as_deref(),
        most: most.unwrap_or(USUAL),
    });
    Ok(reply::json(&TopView {
        kind: word,
        span_seconds: report.span.as_secs_f64(),
        sampled_one_in: report.sampled_one_in,
        keys: report.keys.iter().map(KeyView::from).collect(),
    }))
}

// === impl KeyView ===

impl<'a> From<&'a TopKey> for KeyView<'a> {
    fn from(key: &'a TopKey) -> Self {
        Self {
            domain: &key.domain,
            rule: &key.rule,
            key: &key.key,
            count: key.count,
            error: key.error,
        }
    }
}
