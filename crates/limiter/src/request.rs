//! What a caller asks: descriptors, and how much each of them costs.

use std::time::Duration;

use tidegate_rules::Entry;
use tidegate_store::Consistency;

/// One thing to limit by: who or what the request is, as an ordered path of entries.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'a> {
    /// The path, outermost entry first. An empty path matches no rule.
    pub entries: &'a [Entry<'a>],
    /// How much it costs.
    pub hits: Hits,
    /// A limit that the caller brings along; it is used instead of the rules.
    pub limit: Option<LimitOverride>,
}

/// How much a descriptor costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hits {
    /// As much as the request says.
    #[default]
    OfRequest,
    /// This much, whatever the request says; 0 looks without consuming.
    Take(u64),
    /// Gives this much back. Never refuses.
    Refund(u64),
}

/// A limit that came with the request: a fixed window, known by the domain, all entries of its
/// descriptor and its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitOverride {
    /// Requests per window; 0 refuses everything.
    pub requests: u64,
    /// The window, from 1 ms to ten years.
    pub window: Duration,
    /// How nodes share it; without it, as the limiter's configuration says.
    pub consistency: Option<Consistency>,
}

// === impl Descriptor ===

impl<'a> Descriptor<'a> {
    /// A descriptor that costs what the request says and is limited by the rules.
    pub const fn new(entries: &'a [Entry<'a>]) -> Self {
        Self {
            entries,
            hits: Hits::OfRequest,
            limit: None,
        }
    }
}
