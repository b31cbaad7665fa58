//! One rule: what a descriptor that ends at its node is held to.

use std::sync::Arc;

use crate::dialect::Dialect;
use crate::limit::Limit;
use crate::metadata::MetadataValue;

/// A node of a domain's tree at which a descriptor may end.
///
/// A rule without limits is an allow-list entry: it matches, and admits.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub(crate) id: RuleId,
    pub(crate) identity: u128,
    pub(crate) path: Box<str>,
    pub(crate) limits: Box<[Limit]>,
    pub(crate) mode: RuleMode,
    pub(crate) counted_values: Box<[usize]>,
    pub(crate) counted_addresses: Box<[usize]>,
    pub(crate) metric: MetricDetail,
    pub(crate) metadata: Option<MetadataValue>,
    pub(crate) headers: Option<Dialect>,
    pub(crate) location: Location,
}

/// The number of a rule in its [`RuleSet`](crate::RuleSet); another set numbers anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(pub(crate) u32);

/// How the decisions of a rule count for the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RuleMode {
    /// A refusal refuses the request.
    #[default]
    Enforce,
    /// A refusal counts only if every quota rule of the request refuses (`quota_mode`).
    Quota,
    /// A refusal is noted and never refuses the request (`shadow_mode`).
    Shadow,
}

/// Which runtime values the operator wants to see in the name of the rule's metric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MetricDetail {
    /// None: the path as configured.
    #[default]
    Path,
    /// Those of these entries (`value_to_metric`).
    Values(Box<[usize]>),
    /// All of them (`detailed_metric`).
    All,
}

/// Where a rule is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The name of the source.
    pub file: Arc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

// === impl Rule ===

impl Rule {
    /// The number of the rule in its set.
    pub const fn id(&self) -> RuleId {
        self.id
    }

    /// The identity of the rule: a digest of its domain and path. The same in every process and
    /// version, whatever its limits are.
    pub const fn identity(&self) -> u128 {
        self.identity
    }

    /// The path for people, such as `user_id > plan=free`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The limits, charged together; none for an allow-list entry.
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// How the decisions count for the request.
    pub const fn mode(&self) -> RuleMode {
        self.mode
    }

    /// The indexes of the descriptor's entries whose values tell counters apart, ascending: those
    /// matched by a bare key, a pattern or a list, unless they share one threshold.
    pub fn counted_values(&self) -> &[usize] {
        &self.counted_values
    }

    /// Those of [`counted_values`](Self::counted_values) that are addresses, for they were matched by
    /// network. However an address is spelt, it names one counter.
    pub fn counted_addresses(&self) -> &[usize] {
        &self.counted_addresses
    }

    /// Which runtime values belong in the name of the metric.
    pub const fn metric_detail(&self) -> &MetricDetail {
        &self.metric
    }

    /// What the rule hands to the proxy when its limits admit.
    pub const fn metadata(&self) -> Option<&MetadataValue> {
        self.metadata.as_ref()
    }

    /// In which headers a client is told about the rule's limits, if the rule says.
    pub const fn headers(&self) -> Option<Dialect> {
        self.headers
    }

    /// Where the rule is written.
    pub const fn location(&self) -> &Location {
        &self.location
    }
}

// === impl RuleId ===

impl RuleId {
    /// The place of the rule in [`RuleSet::rules`](crate::RuleSet::rules).
    pub fn index(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}
