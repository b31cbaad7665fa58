//! What the protocol has no field for: `dynamic_metadata`, a free place in it.

use std::borrow::Cow;
use std::time::Duration;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use tidegate_limiter::{Answer, LimitStatus, Mode, Origin, Outcome, Retry, Ruling, Verdict};
use tidegate_rules::MetadataValue;

use super::unit::Unit;

/// What there is to say besides. Absent if that is nothing.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DynamicMetadata<'a> {
    /// Which rule refused the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) decided_by: Option<DecidedBy<'a>>,
    /// How long an admitted request must wait for its turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delay: Option<String>,
    /// That an admitted request is over a limit, on its soft or elastic allowance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) over: Option<bool>,
    /// That the store failed, so that the rules' `on_failure` answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) degraded: Option<bool>,
    /// The limits in words, where a window is none of Envoy's units.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) limits: Vec<&'a str>,
    /// The `metadata` of the rules that admit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Free<'a>>,
}

/// Which rule refused the request, and for how long.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DecidedBy<'a> {
    pub(super) rule: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<&'a str>,
    pub(super) retry: String,
}

/// Free data of one rule, or of several.
#[derive(Debug)]
pub(super) struct Free<'a>(pub(super) Cow<'a, MetadataValue>);

// === impl DynamicMetadata ===

impl<'a> DynamicMetadata<'a> {
    /// `None` if there is nothing to say, which costs one look at each limit.
    pub(super) fn of(verdict: &'a Verdict) -> Option<Self> {
        let mut this = Self {
            degraded: verdict.failure().map(|_| true),
            ..Self::default()
        };
        let mut delay = Duration::ZERO;
        let mut has_metadata = false;
        for limit in verdict.limits() {
            if limit.mode() != Mode::Shadow && verdict.is_allowed() {
                delay = delay.max(delay_of(&limit));
                if limit.is_over() {
                    this.over = Some(true);
                }
            }
            if let Origin::Rule { rule, .. } = limit.origin() {
                has_metadata |= rule.metadata().is_some();
            }
            this.limits.extend(description_of_odd(&limit));
        }
        if has_metadata {
            this.metadata = metadata(verdict);
        }
        if delay > Duration::ZERO {
            this.delay = Some(duration(delay));
        }
        if verdict.answer() == Answer::Refused {
            this.decided_by = verdict.deciding().map(|limit| DecidedBy::from(&limit));
        }
        (!this.is_empty()).then_some(this)
    }

    fn is_empty(&self) -> bool {
        self.decided_by.is_none()
            && self.delay.is_none()
            && self.over.is_none()
            && self.degraded.is_none()
            && self.limits.is_empty()
            && self.metadata.is_none()
    }
}

// === impl DecidedBy ===

impl<'a> From<&LimitStatus<'a>> for DecidedBy<'a> {
    fn from(status: &LimitStatus<'a>) -> Self {
        let (rule, limit) = match status.origin() {
            Origin::Rule { rule, limit } => (rule.path(), Some(limit.description())),
            Origin::Override(_) => ("the limit that came with the request", None),
        };
        let retry = match (status.retry(), status.ruling()) {
            (Some(Retry::After(wait)), _) => format!("in {}", duration(wait)),
            (Some(Retry::Never), Ruling::Banned(_)) => "never: the caller is banned".to_owned(),
            (Some(Retry::Never), _) => "never: the cost does not fit the limit".to_owned(),
            (None, _) => "unknown: the store failed".to_owned(),
        };
        Self { rule, limit, retry }
    }
}

// === impl Free ===

impl Serialize for Free<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.as_ref() {
            MetadataValue::Null => serializer.serialize_unit(),
            MetadataValue::Bool(truth) => serializer.serialize_bool(*truth),
            MetadataValue::Number(number) => serializer.serialize_f64(*number),
            MetadataValue::Text(text) => serializer.serialize_str(text),
            MetadataValue::List(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&Free(Cow::Borrowed(value)))?;
                }
                list.end()
            }
            MetadataValue::Map(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, &Free(Cow::Borrowed(value)))?;
                }
                map.end()
            }
        }
    }
}

fn delay_of(limit: &LimitStatus<'_>) -> Duration {
    match limit.decision().map(|decision| decision.outcome) {
        Some(Outcome::Allowed { delay, .. }) => delay,
        Some(Outcome::Denied { .. }) | None => Duration::ZERO,
    }
}

/// The limit in words, if its window is none of Envoy's units.
fn description_of_odd<'a>(limit: &LimitStatus<'a>) -> Option<&'a str> {
    limit.decision()?;
    match limit.origin() {
        Origin::Rule { limit: rule, .. } if Unit::of(limit.quota()?.window()) == Unit::Unknown => {
            Some(rule.description())
        }
        Origin::Rule { .. } | Origin::Override(_) => None,
    }
}

/// The `metadata` of the rules of all descriptors that pass, as one.
fn metadata(verdict: &Verdict) -> Option<Free<'_>> {
    let passing = verdict
        .statuses()
        .filter(|status| status.answer() == Answer::Allowed);
    // All limits of a descriptor are of one rule.
    let rules = passing.filter_map(|status| match status.limits().next()?.origin() {
        Origin::Rule { rule, .. } => rule.metadata(),
        Origin::Override(_) => None,
    });
    rules
        .map(Cow::Borrowed)
        .reduce(|first, next| Cow::Owned(merged(&first, &next)))
        .map(Free)
}

/// Both, field by field; where both have a value, the first one's.
fn merged(first: &MetadataValue, next: &MetadataValue) -> MetadataValue {
    let (MetadataValue::Map(first), MetadataValue::Map(next)) = (first, next) else {
        return first.clone();
    };
    let mut fields = first.to_vec();
    for (name, value) in next {
        match fields.iter_mut().find(|(its_name, _)| its_name == name) {
            Some((_, first)) => *first = merged(first, value),
            None => fields.push((name.clone(), value.clone())),
        }
    }
    MetadataValue::Map(fields.into())
}

/// A duration as proto3 JSON writes it: seconds, with 0, 3, 6 or 9 decimals.
pub(super) fn duration(span: Duration) -> String {
    let (seconds, nanos) = (span.as_secs(), span.subsec_nanos());
    if nanos == 0 {
        format!("{seconds}s")
    } else if nanos % 1_000_000 == 0 {
        format!("{seconds}.{:03}s", nanos / 1_000_000)
    } else if nanos % 1_000 == 0 {
        format!("{seconds}.{:06}s", nanos / 1_000)
    } else {
        format!("{seconds}.{nanos:09}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_as_many_decimals_as_they_need() {
        let check = |nanos, expected| assert_eq!(duration(Duration::from_nanos(nanos)), expected);
        check(0, "0s");
        check(60_000_000_000, "60s");
        check(1_500_000_000, "1.500s");
        check(1_000_001_000, "1.000001s");
        check(1, "0.000000001s");
    }

    fn map(fields: &[(&str, MetadataValue)]) -> MetadataValue {
        let fields = fields.iter().cloned();
        MetadataValue::Map(fields.map(|(name, value)| (name.into(), value)).collect())
    }

    #[test]
    fn of_two_rules_the_first_to_speak_is_heard() {
        let (one, two) = (MetadataValue::Number(1.0), MetadataValue::Number(2.0));
        let first = map(&[("a", one.clone()), ("b", map(&[("c", one.clone())]))]);
        let next = map(&[
            ("a", two.clone()),
            ("b", map(&[("c", two.clone()), ("d", two.clone())])),
            ("e", two.clone()),
        ]);
        let expected = map(&[
            ("a", one.clone()),
            ("b", map(&[("c", one), ("d", two.clone())])),
            ("e", two),
        ]);
        assert_eq!(merged(&first, &next), expected);
    }

    #[test]
    fn free_data_is_written_as_it_is() {
        let value = map(&[
            ("none", MetadataValue::Null),
            (
                "list",
                MetadataValue::List([MetadataValue::Bool(true)].into()),
            ),
            ("text", MetadataValue::Text("é".into())),
        ]);
        let json = serde_json::to_string(&Free(Cow::Owned(value))).unwrap();
        assert_eq!(json, r#"{"none":null,"list":[true],"text":"é"}"#);
    }
}
