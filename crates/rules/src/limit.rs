//! One limit of a rule: its numbers, its identity, and what happens around it.

use tidegate_algorithms::Quota;

use crate::status_set::StatusSet;

/// One limit of a [`Rule`](crate::Rule).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_field_names,
    reason = "`over_limit` is the name of the YAML field"
)]
pub struct Limit {
    pub(crate) id: u128,
    pub(crate) terms: Terms,
    pub(crate) name: Option<Box<str>>,
    pub(crate) replaces: Box<[Box<str>]>,
    pub(crate) over_limit: OverLimit,
    pub(crate) consistency: Option<Consistency>,
    pub(crate) on_failure: OnFailure,
    pub(crate) on_full: OnFull,
    pub(crate) count_status: Option<StatusSet>,
    pub(crate) announcement: Announcement,
    pub(crate) description: Box<str>,
}

/// What a limit counts against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terms {
    /// Nothing: always admitted, never counted, but its `replaces` holds.
    Unlimited,
    /// These numbers.
    Quota(Quota),
}

/// What happens to a request over the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OverLimit {
    /// It is refused.
    #[default]
    Reject,
    /// It waits for its turn.
    Delay,
    /// It is kept and replayed later.
    Defer,
}

/// How the nodes of a cluster share the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// Each node enforces it by itself.
    Node,
    /// Every decision is made in the shared store.
    Strict,
    /// Permits are drawn from the shared store ahead of need.
    Leased,
    /// Nodes tell each other their totals now and then.
    Eventual,
    /// Each node enforces its share.
    Split,
}

/// Who decides when the store cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// The embedded store of this node.
    #[default]
    Local,
    /// Nobody: the request passes.
    Allow,
    /// Nobody: the request is refused.
    Deny,
}

/// The decision on a new key for which the store has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFull {
    /// It is counted together with others, by the limit's own numbers.
    #[default]
    Shared,
    /// It is allowed, uncounted.
    Allow,
    /// It is denied.
    Deny,
}

/// Whether clients are told of the limit in headers and bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Announcement {
    /// They are.
    #[default]
    Announced,
    /// They are not: of its denials they learn that, and when to come back.
    Hidden,
}

// === impl Limit ===

impl Limit {
    /// The identity of the limit: a digest of domain, path, algorithm, window and place among its
    /// siblings, but not of its numbers. The same in every process and version.
    pub const fn id(&self) -> u128 {
        self.id
    }

    /// What the limit counts against.
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The name by which other limits replace this one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The names of the limits of the same request that this one puts out of force.
    pub fn replaces(&self) -> &[Box<str>] {
        &self.replaces
    }

    /// What happens to a request over the limit.
    pub const fn over_limit(&self) -> OverLimit {
        self.over_limit
    }

    /// How the nodes of a cluster share the limit, if the rule says.
    pub const fn consistency(&self) -> Option<Consistency> {
        self.consistency
    }

    /// Who decides when the store cannot.
    pub const fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    /// The decision on a new key for which the store has no room.
    pub const fn on_full(&self) -> OnFull {
        self.on_full
    }

    /// The statuses of responses that the limit counts, if it counts by status: a request is charged when it
    /// comes, and refunded if its response has another status. Only the gateway sees responses; elsewhere
    /// every request counts.
    pub const fn counts_status(&self) -> Option<&StatusSet> {
        self.count_status.as_ref()
    }

    /// Whether clients are told of the limit in headers and bodies.
    pub const fn announcement(&self) -> Announcement {
        self.announcement
    }

    /// Whether clients are not told of the limit.
    pub const fn is_hidden(&self) -> bool {
        matches!(self.announcement, Announcement::Hidden)
    }

    /// The limit in words, such as `100 per minute, token_bucket, burst 20`.
    pub fn description(&self) -> &str {
        &self.description
    }
}
