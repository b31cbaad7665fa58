//! Rules, limits and bans, as operators see them in JSON.

use serde::Serialize;
use tidegate_limiter::{ActiveBan, Algorithm, Allowance, BanTerm, Entry, Limit, Quota, Rule};
use tidegate_rules::{RuleMode, Terms};

/// One entry of a descriptor.
#[derive(Debug, Serialize)]
pub(super) struct EntryView<'a> {
    key: &'a str,
    value: &'a str,
}

/// One rule.
#[derive(Debug, Serialize)]
pub(super) struct RuleView<'a> {
    domain: &'a str,
    rule: &'a str,
    mode: &'static str,
    file: &'a str,
    line: usize,
    limits: Vec<LimitView<'a>>,
}

/// One limit.
#[derive(Debug, Serialize)]
pub(super) struct LimitView<'a> {
    description: &'a str,
    name: Option<&'a str>,
    /// Absent from an unlimited one.
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<QuotaView>,
    replaces: &'a [Box<str>],
}

/// The numbers of a limit. Those that its algorithm does not have are absent.
#[derive(Debug, Default, Serialize)]
struct QuotaView {
    algorithm: &'static str,
    requests: u64,
    window_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refill: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sub_windows: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rounding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_refused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    soft_percent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    soft_for_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elastic_percent: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_debt: Option<u64>,
}

/// One ban.
#[derive(Debug, Serialize)]
pub(super) struct BanView<'a> {
    domain: &'a str,
    rule: &'a str,
    entries: Vec<EntryView<'a>>,
    reason: Option<&'a str>,
    /// `null` for one that lasts until it is lifted.
    ends_after_seconds: Option<f64>,
}

// === impl EntryView ===

impl<'a> EntryView<'a> {
    pub(super) fn all(entries: impl IntoIterator<Item = Entry<'a>>) -> Vec<Self> {
        let view = |Entry { key, value }| Self { key, value };
        entries.into_iter().map(view).collect()
    }
}

// === impl RuleView ===

impl<'a> RuleView<'a> {
    pub(super) fn new(domain: &'a str, rule: &'a Rule) -> Self {
        Self {
            domain,
            rule: rule.path(),
            mode: match rule.mode() {
                RuleMode::Enforce => "enforce",
                RuleMode::Quota => "quota",
                RuleMode::Shadow => "shadow",
            },
            file: &rule.location().file,
            line: rule.location().line,
            limits: rule.limits().iter().map(LimitView::from).collect(),
        }
    }
}

// === impl LimitView ===

impl<'a> From<&'a Limit> for LimitView<'a> {
    fn from(limit: &'a Limit) -> Self {
        Self {
            description: limit.description(),
            name: limit.name(),
            quota: match limit.terms() {
                Terms::Unlimited => None,
                Terms::Quota(quota) => Some(QuotaView::from(quota)),
            },
            replaces: limit.replaces(),
        }
    }
}

// === impl QuotaView ===

impl From<&Quota> for QuotaView {
    fn from(quota: &Quota) -> Self {
        let limit = quota.limit();
        let mut view = Self {
            algorithm: quota.algorithm().name(),
            requests: limit,
            window_seconds: quota.window().as_secs_f64(),
            ..Self::default()
        };
        match quota.algorithm() {
            Algorithm::TokenBucket { burst, refill } => {
                view.burst = Some(burst.unwrap_or(limit));
                view.refill = Some(refill.name());
            }
            Algorithm::LeakyBucket { queue } => view.queue = Some(queue.unwrap_or(limit)),
            Algorithm::FixedWindow => {}
            Algorithm::SlidingLog { log_refused } => view.log_refused = Some(log_refused),
            Algorithm::SlidingCounter {
                sub_windows,
                rounding,
            } => {
                view.sub_windows = Some(sub_windows);
                view.rounding = Some(rounding.name());
            }
        }
        match quota.allowance() {
            Allowance::Hard => {}
            Allowance::Soft { over, only_for } => {
                view.soft_percent = Some(over.0);
                view.soft_for_seconds = only_for.map(|it| it.as_secs_f64());
            }
            Allowance::Elastic { over } => view.elastic_percent = Some(over.0),
            Allowance::Postpaid { .. } => view.max_debt = Some(quota.most_extra()),
        }
        view
    }
}

// === impl BanView ===

impl<'a> From<&'a ActiveBan> for BanView<'a> {
    fn from(active: &'a ActiveBan) -> Self {
        Self {
            domain: active.ban.domain(),
            rule: active.ban.rule(),
            entries: EntryView::all(active.ban.entries()),
            reason: active.ban.reason(),
            ends_after_seconds: match active.left {
                BanTerm::For(left) => Some(left.as_secs_f64()),
                BanTerm::UntilLifted => None,
            },
        }
    }
}
