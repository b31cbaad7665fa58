//! The terms of a loan: whether a limit is lent at all, for how long, and how much of it.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_algorithms::{Meter, Quota, Time};
use tidegate_store::lendable;

use crate::capacity::capacity;

/// Settings of leases, and of remembered denials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// The longest life of a loan. Loans of all but long windows live shorter, see [`lease_life`].
    pub life: Duration,
    /// The part of what is left that one draw may take: one in so many.
    pub one_in: NonZeroU32,
    /// The longest time for which a denial is answered from memory; zero asks the store each time. A refund or
    /// reset on another node is noticed this late.
    pub remember_denials: Duration,
    /// The most keys in memory. A key that finds no room is decided in the store.
    pub max_keys: usize,
}

/// A loan lives for this part of its window, and a node holds at most this part of the limit: a node that is
/// killed takes less than 2 % along, and permits that are not spent are back before they are missed.
const LIVES: u32 = 64;

/// The same of a sliding log, whose permits count from the end of their life on: that time is lost to the limit,
/// so it is kept below half a per cent.
const LOG_LIVES: u32 = 256;

/// A shorter life is over before a reply of the store is of use.
const SHORTEST_LIFE: Duration = Duration::from_millis(2);

/// Permits that a limit must refill within the life of a loan. Below that a loan saves too little for what it
/// costs Redis: a draw and a refund are two to three decisions that come alone, and up to seven of those that wait
/// together and share a command (`bench/RESULTS.md`, "a draw and a refund").
const WORTH_LENDING: u128 = 10;

/// A smaller limit is never lent: two permits on the wrong node would be more than 2 % of it.
const SMALLEST_LENT: u64 = 100;

/// The last permits of a limit, which are not lent, so that they are found wherever they are asked for.
const RESERVE: u64 = 256;

/// The longest pause, so that nobody is denied for long while there are permits.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Permits that must gather within a pause for it to pay.
const WORTH_A_PAUSE: u128 = 8;

/// The terms on which permits of one limit are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseTerms {
    /// The life of a loan; `None` if the limit is not lent.
    pub(super) life: Option<Duration>,
    pub(super) one_in: u32,
    /// The most permits that this node holds.
    pub(super) most_held: u64,
    /// The permits that are never lent.
    pub(super) reserve: u64,
    pub(super) remember_denials: Duration,
    /// The pause after a denial, for limits that refill gradually and are exhausted; `None` if it does not pay.
    ///
    /// Requests that each ask for the next drop cost a call each. A node that lets some permits gather draws them
    /// at once, and the limit loses next to nothing.
    pub(super) pause: Option<Duration>,
    /// The spacing of the instants, by the store's time, at which every loan ends.
    edge: Option<Duration>,
    /// Whether the counter forgets a loan at its edge.
    pub(super) forgets_at_edge: bool,
}

// === impl LeaseConfig ===

impl Default for LeaseConfig {
    fn default() -> Self {
        Self {
            life: Duration::from_mins(1),
            one_in: NonZeroU32::MIN.saturating_add(63),
            remember_denials: Duration::from_millis(100),
            max_keys: 100_000,
        }
    }
}

/// The life of permits of `quota` if none live longer than `longest`; `None` if the limit is not lent, and each
/// request is decided in the store.
///
/// A 64th of the window, a 256th of a sliding log's; and no more than a sub-window. A limit is lent only if it is
/// at least 100 and refills at least 10 permits in that time.
pub fn lease_life(quota: &Quota, longest: Duration) -> Option<Duration> {
    if !lendable(quota) || lent_capacity(quota) < SMALLEST_LENT {
        return None;
    }
    let window = quota.window();
    let life = match quota.meter() {
        Meter::SlidingLog(_) => window / LOG_LIVES,
        Meter::SubWindows(meter) => (window / LIVES).min(meter.sub_window()),
        _ => window / LIVES,
    };
    let life = life.min(longest);
    let in_a_life = u128::from(lent_capacity(quota)) * life.as_nanos() / window.as_nanos().max(1);
    (life >= SHORTEST_LIFE && in_a_life >= WORTH_LENDING).then_some(life)
}

// === impl LeaseTerms ===

impl LeaseTerms {
    /// The terms of a limit that is lent if it can be.
    pub(super) fn new(quota: &Quota, config: &LeaseConfig) -> Self {
        let life = lease_life(quota, config.life);
        let capacity = lent_capacity(quota);
        Self {
            life,
            pause: life.and_then(|life| pause(quota, life)),
            most_held: (capacity / u64::from(LIVES)).max(1),
            reserve: RESERVE.min(capacity / 4),
            ..Self::not_lent(quota, config)
        }
    }

    /// The terms of a limit that is decided in the store.
    pub(super) fn not_lent(quota: &Quota, config: &LeaseConfig) -> Self {
        let (edge, forgets_at_edge) = match quota.meter() {
            Meter::FixedWindow(_) | Meter::IntervalBucket(_) => (Some(quota.window()), true),
            Meter::SlidingCounter(_) => (Some(quota.window()), false),
            Meter::SubWindows(meter) => (Some(meter.sub_window()), false),
            Meter::TokenBucket(_) | Meter::LeakyBucket(_) | Meter::SlidingLog(_) => (None, false),
        };
        Self {
            life: None,
            one_in: config.one_in.get(),
            most_held: 0,
            reserve: 0,
            // A denial from memory would not prolong the period in which the limit is hard, and not charge a postpaid one.
            remember_denials: if quota.tracks_soft_period() || quota.is_postpaid() {
                Duration::ZERO
            } else {
                config.remember_denials
            },
            pause: None,
            edge,
            forgets_at_edge,
        }
    }

    /// The time from `now`, by the store's clock, to the instant at which every loan ends.
    pub(super) fn until_edge(&self, now: Time) -> Duration {
        let Some(edge) = self.edge else {
            return Duration::MAX;
        };
        let edge = u64::try_from(edge.as_nanos()).unwrap_or(u64::MAX).max(1);
        Duration::from_nanos(edge - now.nanos() % edge)
    }
}

/// The permits that there can be to lend at one time.
fn lent_capacity(quota: &Quota) -> u64 {
    capacity(quota).min(quota.limit())
}

/// The pause in which permits of an exhausted limit gather: short against the life of a loan and, of a bucket,
/// against the time in which it fills.
fn pause(quota: &Quota, life: Duration) -> Option<Duration> {
    match quota.meter() {
        Meter::TokenBucket(_)
        | Meter::SlidingCounter(_)
        | Meter::SubWindows(_)
        | Meter::SlidingLog(_) => {}
        Meter::FixedWindow(_) | Meter::IntervalBucket(_) | Meter::LeakyBucket(_) => return None,
    }
    let pause = (life / 4).min(LONGEST_PAUSE);
    let gathered = u128::from(quota.limit()) * pause.as_nanos() / quota.window().as_nanos().max(1);
    (gathered >= WORTH_A_PAUSE).then_some(pause)
}
