//! The place of a refund: the counter as it is now, or the window of one earlier charge.

use crate::{Decision, Time};

/// The place where a refund goes.
///
/// A late refund never makes room that would not be there had the charge never been made. Where that
/// cannot be known exactly, it gives back less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundTo {
    /// The newest charges of the caller's own counter, whoever made them: for a caller without a receipt, such as
    /// Envoy's negative hits or an operator's grant. After the edge of a window it enlarges the new one.
    Current,
    /// One charge, made at these times.
    ///
    /// - Windows and sliding counters: the window or sub-window of the charge; nothing once that is no
    ///   longer counted.
    /// - Sliding log: the entry of the charge.
    /// - Token buckets: the cost less all that was refilled since, because a bucket that was full
    ///   meanwhile has lost that refill.
    /// - Leaky bucket: the departure times of the charge, if they are the last of the queue; else
    ///   nothing, because those behind keep theirs.
    Charge(ChargeStamp),
}

/// The times of one charge, by the clock of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChargeStamp {
    /// The time of the charge. An earlier one is safe: it refunds less, or what is forgotten sooner.
    pub at: Time,
    /// The time at which the limit was to be whole again, as the decision said.
    pub resets_at: Time,
    /// True if the store had no room for the caller's own counter and charged one that several callers share. The
    /// refund goes to that one.
    pub is_shared: bool,
}

// === impl ChargeStamp ===

impl ChargeStamp {
    /// The stamp of a charge that was decided at `at`.
    pub fn new(at: Time, decision: &Decision) -> Self {
        Self {
            at,
            resets_at: at.plus(decision.reset_after),
            is_shared: false,
        }
    }
}
