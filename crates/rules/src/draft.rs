//! Rules as read from the files, each part valid by itself, before they are held against each other.

use tidegate_algorithms::Quota;

use crate::dialect::Dialect;
use crate::findings::{clean, clip};
use crate::limit::{Announcement, Consistency, OnFailure, OnFull, OverLimit};
use crate::metadata::MetadataValue;
use crate::network::Network;
use crate::pattern::Wildcard;
use crate::rule::RuleMode;
use crate::rule_set::Charging;
use crate::span::{Span, Spanned};
use crate::status_set::StatusSet;

/// One file, or several of one domain merged.
#[derive(Debug)]
pub(crate) struct DraftDomain {
    pub(crate) name: Spanned<String>,
    pub(crate) charging: Option<Spanned<Charging>>,
    pub(crate) rules: Vec<DraftRule>,
}

/// One descriptor.
#[derive(Debug)]
pub(crate) struct DraftRule {
    pub(crate) span: Span,
    pub(crate) key: String,
    pub(crate) matcher: Matcher,
    pub(crate) sharing: Sharing,
    pub(crate) mode: RuleMode,
    pub(crate) detailed_metric: bool,
    pub(crate) value_to_metric: bool,
    pub(crate) metadata: Option<MetadataValue>,
    pub(crate) headers: Option<Dialect>,
    pub(crate) limits: Vec<DraftLimit>,
    pub(crate) children: Vec<DraftRule>,
}

/// Which values of its key a rule takes.
#[derive(Debug)]
pub(crate) enum Matcher {
    /// Every one that no sibling takes.
    Any,
    /// These, each exact or with stars.
    Values(Vec<Spanned<String>>),
    /// Addresses in these networks.
    Networks(Vec<Spanned<Network>>),
}

/// Whether the values that a rule takes count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Each has a counter of its own.
    Apart,
    /// All share one (`share_threshold`).
    Shared,
}

/// One limit.
#[derive(Debug)]
pub(crate) struct DraftLimit {
    pub(crate) span: Span,
    /// `None` if the numbers are at fault.
    pub(crate) terms: Option<DraftTerms>,
    pub(crate) name: Option<Spanned<String>>,
    pub(crate) replaces: Vec<Spanned<String>>,
    pub(crate) over_limit: OverLimit,
    pub(crate) consistency: Option<Consistency>,
    pub(crate) on_failure: OnFailure,
    pub(crate) on_full: OnFull,
    pub(crate) count_status: Option<StatusSet>,
    pub(crate) announcement: Announcement,
}

/// The numbers of a limit.
#[derive(Debug)]
pub(crate) enum DraftTerms {
    Unlimited,
    Quota(Quota),
}

// === impl Matcher ===

impl Matcher {
    /// Whether requests that it takes can differ in the value.
    pub(crate) fn takes_several(&self) -> bool {
        match self {
            Self::Any | Self::Networks(_) => true,
            Self::Values(values) => match values.as_slice() {
                [value] => Wildcard::is_pattern(&value.inner),
                _ => true,
            },
        }
    }
}

// === impl DraftRule ===

impl DraftRule {
    /// Makes quota rules of it and those below it, where they do not say otherwise.
    pub(crate) fn make_quota(&mut self) {
        if self.mode == RuleMode::Enforce {
            self.mode = RuleMode::Quota;
        }
        self.children.iter_mut().for_each(Self::make_quota);
    }

    /// The rule among its siblings, for people: `plan=free`, `ip in 10.0.0.0/8`.
    pub(crate) fn label(&self) -> String {
        // A path repeats the labels above it, so a long one would multiply.
        const MAX_LABEL: usize = 64;
        let label = match &self.matcher {
            Matcher::Any => self.key.clone(),
            Matcher::Values(values) => {
                let values = values.iter().map(|value| value.inner.as_str());
                format!("{}={}", self.key, bracketed(values, MAX_LABEL))
            }
            Matcher::Networks(networks) => {
                let networks: Vec<_> = networks
                    .iter()
                    .take(MAX_LABEL)
                    .map(|it| it.inner.to_string())
                    .collect();
                let networks = networks.iter().map(String::as_str);
                format!("{} in {}", self.key, bracketed(networks, MAX_LABEL))
            }
        };
        clip(&clean(&label), MAX_LABEL)
    }

    /// This rule and all below it, parents first.
    pub(crate) fn count(&self) -> usize {
        1 + self.children.iter().map(Self::count).sum::<usize>()
    }
}

fn bracketed<'a>(items: impl ExactSizeIterator<Item = &'a str>, most: usize) -> String {
    let is_single = items.len() == 1;
    let listed = items.take(most).collect::<Vec<_>>().join(", ");
    if is_single {
        listed
    } else {
        format!("[{listed}]")
    }
}
