//! On what terms permits are drawn: for how long, and how many.

use std::num::NonZeroU32;
use std::time::Duration;

use tidegate_algorithms::token_bucket::TokenBucket;
use tidegate_algorithms::{Decision, Meter, Quota, Time};
use tidegate_store::lendable;

/// How permits are drawn ahead of need, and refusals remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseConfig {
    /// How long permits live at the longest. Those of all but long windows live shorter, see
    /// [`lease_life`].
    pub life: Duration,
    /// Of what a limit has left no more than one in so many is drawn at once, so that the last permits
    /// are found wherever they are asked for.
    pub one_in: NonZeroU32,
    /// How long a refusal is remembered at the longest: so late a node notices that another one gave
    /// permits back or that the counter was reset there.
    pub refusal: Duration,
    /// How many keys are kept in memory at the most. One for which there is no room is asked for
    /// strictly.
    pub max_keys: usize,
}

/// A life shorter than this is over before a reply of the store is of use to anybody.
const SHORTEST_LIFE: Duration = Duration::from_millis(2);

/// Permits live for one in so many of their window, so that what a node holds is always little of it, and
/// keys that are asked for now and then in a long window are worth lending to as well.
const LIVES: u32 = 64;

/// And for this long in windows for which that would be shorter.
const BRIEF: Duration = Duration::from_secs(1);

/// Permits of a log are counted from the end of their life on, so their life is lost to the limit: with
/// one in so many of the window, less than two in a hundred permits are.
const LOG_LIVES: u32 = 64;

/// A bucket may admit so much more as drips in during a life: one in so many of the limit.
const BUCKET_LIVES: u32 = 16;

/// The longest pause, for nobody should be refused for long while there is something for him.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// On what terms permits of one limit are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// How long they live; `None` if none are drawn.
    pub(super) life: Option<Duration>,
    /// Of what is left no more than one in so many is drawn.
    pub(super) one_in: u32,
    /// How long a refusal is remembered at the longest.
    pub(super) refusal: Duration,
    /// How long to wait for more after a draw that took all there was, at the longest; `None` for limits
    /// that get nothing new before their window ends.
    ///
    /// What such a limit gets back comes in drops. Who asks for each drop asks for each request; who lets
    /// some gather draws them at once, and the limit loses next to nothing.
    pub(super) pause: Option<Duration>,
    bucket: Option<Bucket>,
}

/// A token bucket's times.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// From one token to the next.
    interval: Duration,
    /// From empty to full.
    filling: Duration,
}

// === impl LeaseConfig ===

impl Default for LeaseConfig {
    fn default() -> Self {
        Self {
            life: Duration::from_mins(1),
            one_in: NonZeroU32::MIN.saturating_add(3),
            refusal: Duration::from_secs(1),
            max_keys: 100_000,
        }
    }
}

/// How long permits of `quota` live if none live longer than `longest`; `None` if none are drawn: the
/// limit is asked for strictly.
///
/// They live for a 64th of their window, or for a second where that is longer; but a sliding log's never
/// for more than the 64th and a token bucket's for a 16th, which bounds what each costs. Those of windows
/// end with their window at the latest, by the store's own time.
pub fn lease_life(quota: &Quota, longest: Duration) -> Option<Duration> {
    if !lendable(quota) {
        return None;
    }
    let window = quota.window();
    let most = match quota.meter() {
        Meter::SlidingLog(_) => window / LOG_LIVES,
        Meter::TokenBucket(_) => window / BUCKET_LIVES,
        _ => window,
    };
    let life = (window / LIVES).max(BRIEF);
    Some(life.min(most).min(longest)).filter(|life| *life >= SHORTEST_LIFE)
}

// === impl Terms ===

impl Terms {
    pub(super) fn new(quota: &Quota, config: &LeaseConfig) -> Self {
        let life = lease_life(quota, config.life);
        let bucket = match quota.meter() {
            Meter::TokenBucket(meter) => Some(Bucket::of(meter)),
            _ => None,
        };
        Self {
            life,
            one_in: config.one_in.get(),
            refusal: config.refusal,
            pause: life.and_then(|life| pause(quota, life, bucket)),
            bucket,
        }
    }

    /// How long until there is something again after a draw that took all there was, as far as can be
    /// told: of a bucket it can.
    pub(super) fn next_drop(&self, taken: &Decision) -> Duration {
        self.bucket.map_or(Duration::ZERO, |bucket| {
            (taken.reset_after + bucket.interval).saturating_sub(bucket.filling)
        })
    }
}

// === impl Bucket ===

impl Bucket {
    fn of(meter: &TokenBucket) -> Self {
        let spans = meter.spans();
        Self {
            interval: spans.interval.ceil().since(Time::ZERO),
            filling: spans.capacity.ceil().since(Time::ZERO),
        }
    }
}

/// A counter loses what gathers at the end of a window, a log whatever its entries are late by. A bucket
/// loses nothing until it is full.
fn pause(quota: &Quota, life: Duration, bucket: Option<Bucket>) -> Option<Duration> {
    let window = quota.window();
    let most = match (quota.meter(), bucket) {
        (Meter::TokenBucket(_), Some(bucket)) => (life / 2).min(bucket.filling / 4),
        (Meter::SlidingCounter(_) | Meter::SubWindows(_), _) => window / 128,
        (Meter::SlidingLog(_), _) => window / 256,
        _ => return None,
    };
    Some(most.min(LONGEST_PAUSE))
}
