//! What holds for every answer, whatever the limits and the history.

use std::time::Duration;

use proptest::prelude::*;
use tidegate_answer::{Dialect, Headers, headers, problem};
use tidegate_limiter::{Hits, LimitStatus, Mode, Retry, Verdict};

use crate::fixture::{NOON, TestLimiter, advance, ask, header, limiter};
use crate::structured::{Told, as_integer, integer, list};

/// One limit of the rules.
#[derive(Clone, Debug)]
struct Draft {
    name: String,
    limit: u64,
    window_ms: u64,
    algorithm: &'static str,
    mode: &'static str,
    dialect: Option<Dialect>,
}

/// Something that happens: time passes, and somebody asks.
#[derive(Clone, Debug)]
struct Event {
    pause_ms: u64,
    cost: u64,
    /// Which of the limits.
    mask: usize,
}

fn draft() -> impl Strategy<Value = Draft> {
    let limit = prop_oneof![0..4_u64, 0..1_000_u64, Just(1 << 56)];
    let window_ms = prop_oneof![1..5_000_u64, Just(60_000), Just(86_400_000)];
    let algorithm = prop_oneof![
        Just("fixed_window"),
        Just("sliding_counter"),
        Just("sliding_log"),
        Just("token_bucket"),
        Just("token_bucket, burst: 7"),
        Just("token_bucket, refill: interval"),
        Just("leaky_bucket"),
    ];
    let mode = prop_oneof![
        Just(""),
        Just("quota_mode: true,"),
        Just("shadow_mode: true,")
    ];
    let dialect = proptest::option::weighted(0.2, dialect());
    ("[\\s\\S]{0,80}", limit, window_ms, algorithm, mode, dialect).prop_map(
        |(name, limit, window_ms, algorithm, mode, dialect)| Draft {
            name,
            // A log has an entry for each, and a bucket no more than one in a nanosecond.
            limit: if algorithm == "fixed_window" {
                limit
            } else {
                limit % 1_000
            },
            window_ms,
            algorithm,
            mode,
            dialect,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    (0..3_000_u64, 0..4_u64, 1..8_usize).prop_map(|(pause_ms, cost, mask)| Event {
        pause_ms,
        cost,
        mask,
    })
}

fn dialect() -> impl Strategy<Value = Dialect> {
    proptest::sample::select(Dialect::ALL.to_vec())
}

const KEYS: [&str; 3] = ["a", "b", "c"];

fn build(drafts: &[Draft]) -> TestLimiter {
    let rule = |(draft, key): (&Draft, &&str)| {
        let Draft {
            limit,
            window_ms,
            algorithm,
            mode,
            ..
        } = draft;
        let name = quoted(&draft.name);
        let headers = draft
            .dialect
            .map_or_else(String::new, |it| format!("headers: {},", it.name()));
        format!(
            "- {{key: {key}, {mode} {headers} rate_limit: {{limit: {limit}, window: {window_ms}ms, name: {name}, algorithm: {algorithm}}}}}\n"
        )
    };
    limiter(&drafts.iter().zip(&KEYS).map(rule).collect::<String>())
}

/// `text` as YAML, every character by its number.
fn quoted(text: &str) -> String {
    let escaped = |character: char| format!("\\U{:08x}", u32::from(character));
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

fn asked(mask: usize) -> Vec<&'static str> {
    let is_asked = |place: usize| mask >> place & 1 == 1;
    let keys = KEYS.iter().enumerate();
    keys.filter(|(place, _)| is_asked(*place))
        .map(|(_, key)| *key)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_answer_is_well_formed_and_true(
        drafts in proptest::collection::vec(draft(), 1..=3),
        events in proptest::collection::vec(event(), 1..20),
        dialect in dialect(),
    ) {
        let limiter = build(&drafts);
        for Event { pause_ms, cost, mask } in events {
            advance(&limiter, Duration::from_millis(pause_ms));
            let verdict = ask(&limiter, &asked(mask), Hits::Take(cost));
            is_printable(&verdict, dialect);
            retry_after_is_never_early(&verdict, dialect);
            plain_numbers_are_true(&verdict, dialect);
            structured_fields_are_true(&verdict);
            the_problem_is_true(&verdict);
        }
    }
}

proptest! {
    /// Who waits as long as he is told finds more than he left, and is let in if he was refused.
    #[test]
    fn whoever_waits_as_long_as_told_gets_more(
        draft in draft().prop_filter("a limit that refuses", |draft| draft.mode.is_empty()),
        events in proptest::collection::vec(event(), 1..20),
    ) {
        let limiter = build(&[Draft { dialect: None, ..draft }]);
        for Event { pause_ms, cost, .. } in events {
            advance(&limiter, Duration::from_millis(pause_ms));
            let verdict = ask(&limiter, &["a"], Hits::Take(cost));
            let standing = list(&header(&verdict, Dialect::Ietf, "ratelimit").unwrap());
            let more_after = standing[0].integer("t").unwrap().unsigned_abs();
            let retry_after = header(&verdict, Dialect::Ietf, "retry-after");
            let seconds = retry_after.map_or(more_after, |text| text.parse().unwrap());
            advance(&limiter, Duration::from_secs(seconds));
            let later = ask(&limiter, &["a"], Hits::Take(0));
            let [before, after] = [&verdict, &later].map(remaining);
            let is_full = |(remaining, limit): (u64, u64)| remaining == limit;
            assert!(after.0 > before.0 || is_full(after), "{before:?}, then {after:?}");
            if matches!(verdict.retry(), Some(Retry::After(_))) {
                assert!(ask(&limiter, &["a"], Hits::Take(cost)).is_allowed());
            }
        }
    }
}

/// What remains of the deciding limit, and its most.
fn remaining(verdict: &Verdict) -> (u64, u64) {
    let deciding = verdict.deciding().unwrap();
    let decision = deciding.decision().unwrap();
    (decision.remaining, decision.limit)
}

/// A header is a lower-case token and a printable value, whatever the names in the rules.
fn is_printable(verdict: &Verdict, dialect: Dialect) {
    headers(verdict, &Headers::from(dialect), |name, value| {
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || b"-0123456789".contains(&byte))
        );
        assert!(!value.is_empty());
        assert!(
            value.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "{value:?}"
        );
    });
}

/// `Retry-After` is there on every refusal that has an end, never before it, and less than a second
/// after it unless that is the first second.
fn retry_after_is_never_early(verdict: &Verdict, dialect: Dialect) {
    let told = header(verdict, dialect, "retry-after").map(|text| text.parse::<u64>().unwrap());
    let expected = match verdict.retry() {
        Some(Retry::After(wait)) => Some(wait),
        Some(Retry::Never) | None => None,
    };
    assert_eq!(told.is_some(), expected.is_some());
    if let (Some(told), Some(wait)) = (told, expected) {
        let told = Duration::from_secs(told);
        assert!(told >= wait && told >= Duration::from_secs(1));
        assert!(told < wait + Duration::from_secs(1) || told == Duration::from_secs(1));
    }
}

/// What remains is no more than the limit, what is used is the rest, and GitHub's reset lies ahead.
fn plain_numbers_are_true(verdict: &Verdict, dialect: Dialect) {
    let number = |name| Some(header(verdict, dialect, name)?.parse::<u64>().unwrap());
    let limit = number("ratelimit-limit").or_else(|| {
        // Envoy's is a list that begins with it.
        let list = header(verdict, dialect, "x-ratelimit-limit")?;
        Some(list.split(',').next()?.parse().unwrap())
    });
    let remaining = number("ratelimit-remaining").or_else(|| number("x-ratelimit-remaining"));
    assert_eq!(limit.is_some(), remaining.is_some());
    assert!(remaining <= limit);
    if let Some(used) = number("x-ratelimit-used") {
        assert_eq!(Some(used + remaining.unwrap()), limit);
        let reset = number("x-ratelimit-reset").unwrap();
        assert!(reset >= NOON.nanos() / 1_000_000_000);
    }
}

/// What is a structured field can be read as one: every limit that can refuse is told once, by a name
/// of its own, with no more left than there is.
fn structured_fields_are_true(verdict: &Verdict) {
    if spoken(verdict) != Dialect::Ietf {
        return;
    }
    let told = |status: &LimitStatus<'_>| status.mode() != Mode::Shadow;
    let n_told = verdict.limits().filter(told).count();
    let field = |name| header(verdict, Dialect::Ietf, name).map_or_else(Vec::new, |it| list(&it));
    let (policies, standings) = (field("ratelimit-policy"), field("ratelimit"));
    assert_eq!((policies.len(), standings.len()), (n_told, n_told));
    for (place, (policy, standing)) in policies.iter().zip(&standings).enumerate() {
        assert_eq!(policy.name(), standing.name());
        assert!(
            policies[..place]
                .iter()
                .all(|other| other.name() != policy.name())
        );
        assert!(standing.integer("r").unwrap() <= policy.integer("q").unwrap());
        assert!(policy.integer("w").unwrap() >= 1);
        assert!(standing.integer("t").unwrap() >= 0);
    }
}

/// The dialect of the answer if the server's is `ietf`.
fn spoken(verdict: &Verdict) -> Dialect {
    match verdict.deciding().map(|limit| limit.origin()) {
        Some(tidegate_limiter::Origin::Rule { rule, .. }) => rule.headers(),
        _ => None,
    }
    .unwrap_or(Dialect::Ietf)
}

/// A refusal has a body, which names at least one policy; nothing else has one.
fn the_problem_is_true(verdict: &Verdict) {
    let body = problem(verdict, 429, None);
    assert_eq!(body.is_some(), !verdict.is_allowed());
    let Some(body) = body else { return };
    assert!(body.len() <= 16 * 1024);
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let violated = body["violated-policies"].as_array().unwrap();
    assert!(!violated.is_empty());
    let told = header(verdict, Dialect::XRateLimit, "retry-after");
    let told = told.map(|text| text.parse::<u64>().unwrap());
    assert_eq!(body["retry-after"].as_u64(), told);
}

/// The other two dialects with structured fields, on names that are hard to carry.
#[test]
fn hard_names_are_carried() {
    for name in ["\"", "\\", "\\\"", "a,b;c=d", "\u{7f}\u{0}", "日本", " "] {
        let draft = Draft {
            name: name.to_owned(),
            limit: 1,
            window_ms: 1,
            algorithm: "fixed_window",
            mode: "",
            dialect: None,
        };
        let verdict = ask(&build(&[draft]), &["a"], Hits::OfRequest);
        let limits = list(&header(&verdict, Dialect::Envoy, "x-ratelimit-limit").unwrap());
        assert_eq!(limits.len(), 2);
        assert_eq!(as_integer(&limits[1].value), 1);
        let policies = list(&header(&verdict, Dialect::Ietf, "ratelimit-policy").unwrap());
        assert_eq!(policies.iter().map(Told::name).count(), 1);
        assert_eq!(
            integer(&header(&verdict, Dialect::Ietf06, "ratelimit-limit").unwrap()),
            1
        );
    }
}
