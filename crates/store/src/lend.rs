//! The contract of a store that lends: permits drawn ahead of need, to be spent from memory.

use std::future::Future;

use tidegate_algorithms::{Allowance, Decision, Meter, Quota, Time};

use crate::{CounterKey, Store, StoreError};

/// A store that nodes draw permits from.
///
/// A loan is a charge made in advance: whatever becomes of its permits, the counter has been charged
/// with all of them, so that nobody else can spend them. What is not given back is lost until the
/// counter's own time has passed.
pub trait Lender: Store {
    /// Draws up to `draw.most` permits of one counter, in one atomic step.
    fn draw(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        draw: Draw,
    ) -> impl Future<Output = Result<Loan, StoreError>> + Send;

    /// Gives back, once, `permits` of a loan that were not spent, and returns how many of them the counter took. It
    /// takes none that it has forgotten by itself.
    ///
    /// A bucket forgets as it refills: had the permits not been drawn, it would have been full earlier, and the
    /// refill from then on would have been lost. So it takes no more than is certainly still missing: what was missing
    /// when the loan was made, less the refill and the refunds of others since; and nothing after
    /// [`Loan::refundable_until`].
    fn give_back(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        loan: &Loan,
        permits: u64,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;
}

/// The size and the terms of a loan that a node asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The fewest permits that are of use: what the request at hand costs. With fewer left nothing is
    /// drawn, and the loan's decision is the refusal.
    pub least: u64,
    /// The most that are wanted.
    pub most: u64,
    /// Of what is left beyond the fewest, no more than one in so many is lent, so that loans get smaller as the
    /// limit runs out. Not 0.
    pub one_in: u32,
    /// With no more than this left beyond the fewest, nothing is lent, so that the last permits are found wherever
    /// they are asked for.
    pub reserve: u64,
    /// The longest time for which they may be spent.
    pub life: std::time::Duration,
}

/// Permits that a node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loan {
    /// The store's time at which it was made.
    pub now: Time,
    /// The number of permits; 0 if the store denied the draw.
    pub permits: u64,
    /// The store's time from which on they must not be spent: at most `now` plus the life asked for,
    /// and before the window ends where the algorithm needs that.
    pub ends: Time,
    /// The decision on `least`, with what is left to others after the loan.
    pub decision: Decision,
    /// What had been given back to the counter before, for the store to compare with when this is.
    pub given_back: GivenBack,
}

/// All that was ever given back to a bucket, in the measure of the store that tells it; nothing to others
/// than that store, nor of other counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenBack(pub u64);

// === impl Draw ===

impl Draw {
    /// The permits to lend if so many are left: at least the fewest, whether they are there or not.
    pub const fn permits(&self, left: u64) -> u64 {
        let beyond = left.saturating_sub(self.least);
        let one_in = if self.one_in == 0 { 1 } else { self.one_in };
        let lent = if beyond > self.reserve {
            beyond / one_in as u64
        } else {
            0
        };
        let permits = self.least.saturating_add(lent);
        if permits < self.most {
            permits
        } else {
            self.most
        }
    }
}

// === impl Loan ===

/// A bucket takes permits back for one in so many of its window: until then a store keeps note of what others gave
/// back to it.
const BUCKET_NOTES: u32 = 8;

impl Loan {
    /// The store's time until which a bucket takes permits back.
    pub fn refundable_until(&self, quota: &Quota) -> Time {
        self.now.plus(quota.window() / BUCKET_NOTES)
    }

    /// When the bucket would be full again if nobody else were charged, or up to a nanosecond before.
    pub fn whole_at(&self, quota: &Quota) -> Time {
        let whole = self.now.plus(self.decision.reset_after);
        match quota.meter() {
            // Told rounded up.
            Meter::TokenBucket(meter) if !meter.has_whole_nanos() => {
                Time::from_nanos(whole.nanos().saturating_sub(1))
            }
            _ => whole,
        }
    }
}

/// Whether permits of such a limit can be lent without ever admitting more than it promises.
///
/// Not those of a queue, whose requests each have a moment of their own; not those of a limit that minds
/// since when it is exceeded or whether there is headroom, which is known only at the moment of spending; not those
/// of a postpaid limit, which is charged whatever it has left;
/// and not those of a log that remembers refusals, which a node that refuses from memory would not tell.
pub const fn lendable(quota: &Quota) -> bool {
    let is_timeless = match quota.allowance() {
        Allowance::Hard | Allowance::Soft { only_for: None, .. } => true,
        Allowance::Soft { .. } | Allowance::Elastic { .. } | Allowance::Postpaid { .. } => false,
    };
    is_timeless
        && match quota.meter() {
            Meter::LeakyBucket(_) => false,
            Meter::SlidingLog(meter) => !meter.logs_refused(),
            Meter::TokenBucket(_)
            | Meter::IntervalBucket(_)
            | Meter::FixedWindow(_)
            | Meter::SlidingCounter(_)
            | Meter::SubWindows(_) => true,
        }
}
