//! Rules, limits and bans, as operators see them in JSON.

use serde::Serialize;
use tidegate_limiter::{ActiveBan, BanTerm, Entry, Limit, Rule};
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

/// The numbers of a limit.
#[derive(Debug, Serialize)]
struct QuotaView {
    algorithm: &'static str,
    requests: u64,
    window_seconds: f64,
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
                Terms::Quota(quota) => Some(QuotaView {
                    algorithm: quota.algorithm().name(),
                    requests: quota.limit(),
                    window_seconds: quota.window().as_secs_f64(),
                }),
            },
            replaces: limit.replaces(),
        }
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
