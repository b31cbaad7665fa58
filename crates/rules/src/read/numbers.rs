//! The numbers of a limit: how many, how long, by which algorithm.

use std::time::Duration;

use tidegate_algorithms::{Algorithm, Quota, QuotaError, QuotaSpec, Refill, Rounding};

use super::fields::Fields;
use super::{allowance, sanity};
use crate::code::Code;
use crate::draft::DraftTerms;
use crate::duration::NAMED;
use crate::findings::{Finding, Findings, quote};
use crate::hint::{did_you_mean, one_of};
use crate::span::Spanned;

/// The fields that this module reads.
pub(super) const FIELDS: [&str; 16] = [
    "unit",
    "window",
    "requests_per_unit",
    "limit",
    "algorithm",
    "burst",
    "refill",
    "queue",
    "rounding",
    "sub_windows",
    "log_refused",
    "soft",
    "soft_for",
    "elastic",
    "postpaid",
    "max_debt",
];

/// The algorithm by name, before its parameters are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    FixedWindow,
    TokenBucket,
    LeakyBucket,
    SlidingLog,
    SlidingCounter,
}

/// Under which name a field with two names is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    Not,
    As(&'static str),
    /// Under both, which is reported.
    Both,
}

/// The fault has been reported.
struct Reported;

const METHODS: [(&str, Method); 5] = [
    ("fixed_window", Method::FixedWindow),
    ("token_bucket", Method::TokenBucket),
    ("leaky_bucket", Method::LeakyBucket),
    ("sliding_log", Method::SlidingLog),
    ("sliding_counter", Method::SlidingCounter),
];

/// What other limiters call them.
const SYNONYMS: [(&str, &str); 8] = [
    ("gcra", "token_bucket"),
    ("token", "token_bucket"),
    ("leaky", "leaky_bucket"),
    ("fixed", "fixed_window"),
    ("sliding_window", "sliding_counter"),
    ("sliding_window_counter", "sliding_counter"),
    ("sliding_window_log", "sliding_log"),
    ("log", "sliding_log"),
];

const REFILLS: [(&str, Refill); 2] = [
    ("continuous", Refill::Continuous),
    ("interval", Refill::Interval),
];

const ROUNDINGS: [(&str, Rounding); 2] = [("down", Rounding::Down), ("up", Rounding::Up)];

/// Which parameter goes with which algorithm.
const PARAMETERS: [(&str, Method); 6] = [
    ("burst", Method::TokenBucket),
    ("refill", Method::TokenBucket),
    ("queue", Method::LeakyBucket),
    ("rounding", Method::SlidingCounter),
    ("sub_windows", Method::SlidingCounter),
    ("log_refused", Method::SlidingLog),
];

/// Reads and validates the numbers; `None` with a report if they make no quota.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Option<DraftTerms> {
    let limit = limit(fields, findings);
    let window = window(fields, findings);
    let method = method(fields, findings);
    let algorithm = method.and_then(|method| algorithm(fields, method, findings));
    let allowance = allowance::read(fields, findings);
    let spec = QuotaSpec {
        limit: limit?.inner,
        window: window?.inner,
        algorithm: algorithm?,
        allowance: allowance?,
    };
    match Quota::new(&spec) {
        Ok(quota) => {
            sanity::check(fields, &quota, findings);
            Some(DraftTerms::Quota(quota))
        }
        Err(error) => {
            report(&error, fields, findings);
            None
        }
    }
}

/// `requests_per_unit` or `limit`.
fn limit(fields: &Fields<'_>, findings: &mut Findings) -> Option<Spanned<u64>> {
    match either(fields, "requests_per_unit", "limit", findings) {
        Written::As(name) => fields.count(name, findings),
        Written::Both => None,
        Written::Not if is_reported(fields, &["requests_per_unit", "limit"]) => None,
        Written::Not => {
            let message = "the limit does not say how many: `requests_per_unit` is missing";
            findings.push(
                Finding::error(Code::MissingField, fields.owner, message).hint(
                    "envoyproxy/ratelimit takes this for 0 and refuses everything; \
                 if that is meant, write `requests_per_unit: 0`",
                ),
            );
            None
        }
    }
}

/// `unit` or `window`.
fn window(fields: &Fields<'_>, findings: &mut Findings) -> Option<Spanned<Duration>> {
    match either(fields, "unit", "window", findings) {
        Written::As("unit") => unit(fields, findings),
        Written::As(name) => fields.duration(name, findings),
        Written::Both => None,
        Written::Not if is_reported(fields, &["unit", "window"]) => None,
        Written::Not => {
            let message = "the limit does not say per what: `unit` is missing";
            findings.push(
                Finding::error(Code::MissingField, fields.owner, message)
                    .hint("write `unit: minute`, or any `window: 90s`"),
            );
            None
        }
    }
}

fn unit(fields: &Fields<'_>, findings: &mut Findings) -> Option<Spanned<Duration>> {
    let text = fields.text("unit", findings)?;
    let found = NAMED
        .iter()
        .find(|(name, _)| text.inner.eq_ignore_ascii_case(name));
    if let Some((_, seconds)) = found {
        return Some(Spanned::new(text.span, Duration::from_secs(*seconds)));
    }
    let names = || NAMED.iter().map(|(name, _)| *name);
    let hint = if crate::duration::parse(&text.inner).is_ok() {
        format!("write `window: {}` instead of `unit`", text.inner)
    } else {
        did_you_mean(&text.inner, names()).unwrap_or_else(|| one_of(names()))
    };
    let message = format!("{} is no `unit`", quote(&text.inner));
    findings.push(Finding::error(Code::BadValue, text.span, message).hint(hint));
    None
}

/// Which of the two names of one thing is written.
fn either(
    fields: &Fields<'_>,
    theirs: &'static str,
    ours: &'static str,
    findings: &mut Findings,
) -> Written {
    match (fields.get(theirs), fields.get(ours)) {
        (Some(_), Some(pair)) => {
            let message = format!("`{ours}` and `{theirs}` exclude each other");
            findings.push(
                Finding::error(Code::Conflict, pair.key.span, message)
                    .hint("they say the same thing: leave out one of the two"),
            );
            Written::Both
        }
        (Some(_), None) => Written::As(theirs),
        (None, Some(_)) => Written::As(ours),
        (None, None) => Written::Not,
    }
}

fn method(fields: &Fields<'_>, findings: &mut Findings) -> Option<Method> {
    let Some(text) = fields.text("algorithm", findings) else {
        return (!fields.is_reported("algorithm")).then_some(Method::FixedWindow);
    };
    let found = METHODS
        .iter()
        .find(|(name, _)| text.inner.eq_ignore_ascii_case(name));
    if let Some((_, method)) = found {
        return Some(*method);
    }
    let names = || METHODS.iter().map(|(name, _)| *name);
    let hint = SYNONYMS
        .iter()
        .find(|(synonym, _)| text.inner.eq_ignore_ascii_case(synonym))
        .map(|(_, name)| format!("it is called `{name}` here"))
        .or_else(|| did_you_mean(&text.inner, names()))
        .unwrap_or_else(|| one_of(names()));
    let message = format!("{} is no `algorithm`", quote(&text.inner));
    findings.push(Finding::error(Code::BadValue, text.span, message).hint(hint));
    None
}

fn algorithm(fields: &Fields<'_>, method: Method, findings: &mut Findings) -> Option<Algorithm> {
    refuse_foreign_parameters(fields, method, findings);
    Some(match method {
        Method::FixedWindow => Algorithm::FixedWindow,
        Method::TokenBucket => Algorithm::TokenBucket {
            burst: burst(fields, findings).ok()?,
            refill: word(fields, "refill", &REFILLS, findings),
        },
        Method::LeakyBucket => Algorithm::LeakyBucket {
            queue: capacity(fields, "queue", findings).ok()?,
        },
        Method::SlidingLog => Algorithm::SlidingLog {
            log_refused: fields.is_set("log_refused", findings),
        },
        Method::SlidingCounter => Algorithm::SlidingCounter {
            sub_windows: sub_windows(fields, findings)?,
            rounding: word(fields, "rounding", &ROUNDINGS, findings),
        },
    })
}

/// The word that is written, or the default.
fn word<T: Copy + Default>(
    fields: &Fields<'_>,
    name: &str,
    words: &[(&'static str, T)],
    findings: &mut Findings,
) -> T {
    fields
        .word(name, words, findings)
        .map(inner)
        .unwrap_or_default()
}

fn refuse_foreign_parameters(fields: &Fields<'_>, method: Method, findings: &mut Findings) {
    for (name, owner) in PARAMETERS.into_iter().filter(|(_, owner)| *owner != method) {
        let Some(pair) = fields.get(name) else {
            continue;
        };
        let (owner, used) = (owner.name(), method.name());
        let message = format!("`{name}` means nothing to `{used}`: it belongs to `{owner}`");
        let hint = match (name, method) {
            ("burst", Method::LeakyBucket) => "write `queue`: how many may wait".to_owned(),
            ("queue", Method::TokenBucket) => "write `burst`: how many may come at once".to_owned(),
            _ => format!("write `algorithm: {owner}`, or leave out `{name}`"),
        };
        findings.push(Finding::error(Code::NotApplicable, pair.key.span, message).hint(hint));
    }
}

/// A capacity, if one is written, of at least one.
fn burst(fields: &Fields<'_>, findings: &mut Findings) -> Result<Option<u64>, Reported> {
    let burst = capacity(fields, "burst", findings)?;
    if let (Some(0), Some(pair)) = (burst, fields.get("burst")) {
        findings.push(
            Finding::error(
                Code::BadValue,
                pair.value.span,
                "a `burst` of 0 admits nothing",
            )
            .hint("write at least `burst: 1`, or leave it out for the limit itself"),
        );
        return Err(Reported);
    }
    Ok(burst)
}

/// A capacity, if one is written.
fn capacity(
    fields: &Fields<'_>,
    name: &str,
    findings: &mut Findings,
) -> Result<Option<u64>, Reported> {
    match fields.get(name) {
        None => Ok(None),
        Some(_) => fields
            .count(name, findings)
            .map(inner)
            .map(Some)
            .ok_or(Reported),
    }
}

fn sub_windows(fields: &Fields<'_>, findings: &mut Findings) -> Option<u16> {
    if fields.get("sub_windows").is_none() {
        return Some(1);
    }
    let count = fields.count("sub_windows", findings)?;
    let sub_windows = u16::try_from(count.inner).ok();
    if sub_windows.is_none() {
        report(&QuotaError::SubWindowsOutOfRange, fields, findings);
    }
    sub_windows
}

/// Says which field is to blame for numbers that make no quota.
fn report(error: &QuotaError, fields: &Fields<'_>, findings: &mut Findings) {
    let blamed: &[&str] = match error {
        QuotaError::WindowOutOfRange => &["window", "unit"],
        QuotaError::RateTooHigh | QuotaError::LimitTooLarge | QuotaError::LogTooLong => {
            &["limit", "requests_per_unit"]
        }
        QuotaError::CapacityTooLarge => {
            &["burst", "queue", "max_debt", "limit", "requests_per_unit"]
        }
        QuotaError::SubWindowsOutOfRange => &["sub_windows"],
        QuotaError::PercentTooLarge => &["soft", "elastic"],
        QuotaError::SoftForOutOfRange => &["soft_for"],
        QuotaError::DebtTooLarge => &["max_debt"],
        QuotaError::PostpaidQueue => &["postpaid"],
        _ => &[],
    };
    let pair = blamed.iter().find_map(|name| fields.get(name));
    let span = pair.map_or(fields.owner, |pair| pair.value.span);
    // What is wrong, a colon, and the way out.
    let text = error.to_string();
    let (message, hint) = text.split_once(": ").unwrap_or((&text, ""));
    let mut hint = hint.to_owned();
    if *error == QuotaError::RateTooHigh {
        hint.push_str("; `unlimited: true` lets everything pass");
    }
    let hint = (!hint.is_empty()).then_some(hint);
    findings.push(Finding::error(Code::BadQuota, span, message).maybe_hint(hint));
}

// === impl Method ===

impl Method {
    fn name(self) -> &'static str {
        METHODS
            .iter()
            .find(|(_, method)| *method == self)
            .map_or("", |(name, _)| name)
    }
}

fn is_reported(fields: &Fields<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| fields.is_reported(name))
}

fn inner<T>(spanned: Spanned<T>) -> T {
    spanned.inner
}
