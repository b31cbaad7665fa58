//! What one core wrote down, where others read it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use tidegate_limiter::{
    Answer, LimiterError, RuleSet, Ruling, StoreError, StoreErrorKind, Verdict,
};

use crate::ObserveConfig;
use crate::counter::Counter;
use crate::histogram::Histogram;
use crate::ledger::Ledger;
use crate::rule_table::{RuleCells, RuleTable};
use crate::top::Lately;

/// What one core wrote down. Aligned, so that no line of it is another core's too.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Core {
    /// By [`Answered`].
    pub(crate) answered: [Counter; Answered::ALL.len()],
    pub(crate) unknown_domains: Counter,
    /// By [`Rejection`].
    pub(crate) rejected: [Counter; Rejection::ALL.len()],
    /// By [`Failure`].
    pub(crate) failures: [Counter; Failure::ALL.len()],
    /// By [`StandIn`].
    pub(crate) stand_ins: [Counter; StandIn::ALL.len()],
    /// What limits said that came with the request.
    pub(crate) overrides: RuleCells,
    pub(crate) times: Histogram,
    /// The core itself takes this lock only when the rules have changed.
    ledger: Mutex<Ledger>,
    /// The busiest keys, if they are asked for. The core never waits for this lock.
    lately: Option<Mutex<Lately>>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    Allowed,
    Refused,
    Shadowed,
    Unmatched,
}

/// Why a request made no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    EmptyDomain,
    NoDescriptors,
    TooManyDescriptors,
    TooManyLimits,
    BadOverride,
    Malformed,
    Other,
}

/// Why the store could not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Rejected,
    Timeout,
    Unavailable,
    Open,
    Other,
}

/// Who answered for a limit that the store could not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandIn {
    /// This node, by what it knows alone.
    Node,
    /// Nobody: it passed.
    Allow,
    /// Nobody: it was refused.
    Deny,
}

// === impl Core ===

impl Core {
    pub(crate) fn new(config: &ObserveConfig) -> Self {
        let nothing = Arc::new(RuleSet::default());
        let lately = config
            .top
            .map(|top| Mutex::new(Lately::new(&top, Arc::clone(&nothing))));
        let table = RuleTable::new(nothing, config.max_rules, config.names);
        Self {
            answered: Default::default(),
            unknown_domains: Counter::default(),
            rejected: Default::default(),
            failures: Default::default(),
            stand_ins: Default::default(),
            overrides: RuleCells::default(),
            times: Histogram::default(),
            ledger: Mutex::new(Ledger::new(Arc::new(table), config.max_rules)),
            lately,
        }
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Counts are whole whatever a thread that panicked was about to add.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The busiest keys, if they are asked for.
    pub(crate) fn lately(&self) -> Option<MutexGuard<'_, Lately>> {
        let lately = self.lately.as_ref()?.lock();
        Some(lately.unwrap_or_else(PoisonError::into_inner))
    }

    /// The same, unless somebody else is at it.
    pub(crate) fn try_lately(&self) -> Option<MutexGuard<'_, Lately>> {
        match self.lately.as_ref()?.try_lock() {
            Ok(lately) => Some(lately),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

// === impl Answered ===

impl Answered {
    pub(crate) const ALL: [Self; 4] = [
        Self::Allowed,
        Self::Refused,
        Self::Shadowed,
        Self::Unmatched,
    ];

    #[inline]
    pub(crate) fn of(verdict: &Verdict) -> Self {
        match verdict.answer() {
            Answer::Refused => Self::Refused,
            Answer::Allowed if verdict.limits().len() == 0 => Self::Unmatched,
            Answer::Allowed if verdict.is_shadowed() => Self::Shadowed,
            Answer::Allowed => Self::Allowed,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Shadowed => "shadowed",
            Self::Unmatched => "unmatched",
        }
    }
}

// === impl Rejection ===

impl Rejection {
    pub(crate) const ALL: [Self; 7] = [
        Self::EmptyDomain,
        Self::NoDescriptors,
        Self::TooManyDescriptors,
        Self::TooManyLimits,
        Self::BadOverride,
        Self::Malformed,
        Self::Other,
    ];

    pub(crate) const fn of(error: &LimiterError) -> Self {
        match error {
            LimiterError::EmptyDomain => Self::EmptyDomain,
            LimiterError::NoDescriptors => Self::NoDescriptors,
            LimiterError::TooManyDescriptors { .. } => Self::TooManyDescriptors,
            LimiterError::TooManyLimits { .. } => Self::TooManyLimits,
            LimiterError::BadOverride { .. } => Self::BadOverride,
            _ => Self::Other,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::EmptyDomain => "empty_domain",
            Self::NoDescriptors => "no_descriptors",
            Self::TooManyDescriptors => "too_many_descriptors",
            Self::TooManyLimits => "too_many_limits",
            Self::BadOverride => "bad_override",
            Self::Malformed => "malformed",
            Self::Other => "other",
        }
    }
}

// === impl Failure ===

impl Failure {
    pub(crate) const ALL: [Self; 5] = [
        Self::Rejected,
        Self::Timeout,
        Self::Unavailable,
        Self::Open,
        Self::Other,
    ];

    pub(crate) const fn of(error: &StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::Rejected => Self::Rejected,
            StoreErrorKind::Timeout => Self::Timeout,
            StoreErrorKind::Unavailable => Self::Unavailable,
            StoreErrorKind::Open => Self::Open,
            _ => Self::Other,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Open => "open",
            Self::Other => "other",
        }
    }
}

// === impl StandIn ===

impl StandIn {
    pub(crate) const ALL: [Self; 3] = [Self::Node, Self::Allow, Self::Deny];

    /// `None` for a limit that was not asked.
    pub(crate) const fn of(ruling: Ruling<'_>) -> Option<Self> {
        match ruling {
            Ruling::Decided(_) => Some(Self::Node),
            Ruling::Undecided(Answer::Allowed) => Some(Self::Allow),
            Ruling::Undecided(Answer::Refused) => Some(Self::Deny),
            Ruling::Unlimited | Ruling::Replaced | Ruling::Banned(_) => None,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}
