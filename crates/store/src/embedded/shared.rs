//! Shared counters: the last resort for callers that find no room for a counter of their own.
//!
//! They lie in a small [`Core`] inside the cap, beside the main one. The callers of a limit are spread over
//! a number of them by their keyed hash, so that nobody can aim at the counter of another caller, and each is
//! charged by the limit's own quota. Limits of one algorithm and window have their shared counters in common,
//! because a slot tells no more of its limit than that, and what is evicted from the main core is
//! [folded](Core::fold) into them.
//!
//! Shared counters are all narrow: a log or sub-windows are a sliding counter of the same limit and window here, and
//! numbers that need a block elsewhere are counted in a fixed window, but for a bucket, which is rounded up to whole
//! nanoseconds. So there is no block to run out of, and as marks do not protect a shared counter from eviction, there
//! is always a slot.
//!
//! A look goes to a shared counter where a charge would, so that a caller which looks first and is charged later is
//! denied when its shared counter is exhausted.
//!
//! Locks: a request holds all its sets of the main core before it waits for any set of the shared one, and waits for
//! none of the main core after that.

use smallvec::SmallVec;
use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, RefundTo, Rounding};

use super::account::{Account, Memory};
use super::claim::{Claim, Claims, Hold};
use super::core::Core;
use super::fingerprint::Fingerprinter;
use super::layout::{Layout, Shape};
use super::state::fits_narrow;
use super::tag::{Form, Tag};
use crate::{Charge, Clock, ManualClock, OnFull, StoreError};

/// The fewest shared counters for each pair of algorithm and window.
pub(super) const FEWEST_COUNTERS: u64 = 2_048;

/// The pairs of algorithm and window that have room for their shared counters at a time, where memory allows more than
/// [`FEWEST_COUNTERS`].
const PAIRS: u64 = 32;

/// The algorithm that stands in for a log and for sub-windows.
const PAIR: Algorithm = Algorithm::SlidingCounter {
    sub_windows: 1,
    rounding: Rounding::Down,
};

/// The largest limit that a fixed window of any length can count in a narrow state.
pub(super) const LARGEST_LIMIT: u64 = (1 << 19) - 1;

/// The charges of a request, of which some go to shared counters, with a quota for each of those.
pub(super) struct Overflow<'q> {
    /// The charges to decide on.
    pub(super) charges: SmallVec<[Charge<'q>; 8]>,
    /// The account of each charge. Those of shared counters come after all others.
    pub(super) account_of: SmallVec<[usize; 8]>,
    /// The shared counters.
    pub(super) claims: Claims<'q>,
}

// === impl Core ===

impl Core {
    /// The core of the shared counters, if a charge to `account` goes there, or a look at it.
    #[inline]
    pub(super) fn shared_for(&self, account: &Account<'_>, charge: &Charge<'_>) -> Option<&Core> {
        let is_full = matches!(account.memory, Memory::NoRoom { .. });
        let is_shared = is_full && charge.on_full == OnFull::Shared;
        self.shared.as_deref().filter(|_| is_shared)
    }

    /// The hash of the shared counter, in this core, of a counter elsewhere, by what its slot tells.
    pub(super) fn shared_hash(&self, layout: Layout, tag: Tag) -> u64 {
        shared_hash(layout, tag, self.shared_counters)
    }

    /// Refunds a charge that went to the shared counter of a claim.
    #[cold]
    pub(super) fn refund_shared(
        &self,
        claim: &Claim<'_>,
        cost: u64,
        to: RefundTo,
        clock: &impl Clock,
    ) -> Result<(), StoreError> {
        let Some(shared) = self.shared.as_deref() else {
            return Ok(());
        };
        let quota = substitute(claim.quota);
        let hash = shared.shared_hash(claim.layout, claim.tag);
        let mut claims = Claims::from_iter([Claim::at(shared, clock, hash, &quota)?]);
        let hold = shared.hold(&mut claims, clock)?;
        shared.refund_claim(&claims[0], &hold, cost, to);
        Ok(())
    }
}

// === impl Overflow ===

impl<'q> Overflow<'q> {
    /// Sends the charges to shared counters that find no room, with `quotas` by [`substitutes`].
    pub(super) fn new(
        core: &Core,
        charges: &[Charge<'q>],
        claim_of: &[usize],
        claims: &[Claim<'_>],
        accounts: &[Account<'_>],
        quotas: &'q [Quota],
        hold: &Hold<'_>,
    ) -> Result<Self, StoreError> {
        let mut overflow = Self {
            charges: SmallVec::from_slice(charges),
            account_of: SmallVec::from_slice(claim_of),
            claims: Claims::new(),
        };
        let clock = ManualClock::at(hold.now);
        let mut quotas = quotas.iter();
        for (charge, account_of) in overflow.charges.iter_mut().zip(&mut overflow.account_of) {
            let claim = &claims[*account_of];
            let Some(shared) = core.shared_for(&accounts[*account_of], charge) else {
                continue;
            };
            charge.quota = quotas.next().expect("one for each that finds no room");
            charge.headroom = Headroom::Absent;
            let hash = shared.shared_hash(claim.layout, claim.tag);
            let own = Claim::at(shared, &clock, hash, charge.quota)?;
            *account_of = accounts.len() + own.join(&mut overflow.claims, charge.cost);
        }
        Ok(overflow)
    }
}

/// The quotas by which shared counters are charged, for each charge that goes to one.
pub(super) fn substitutes(
    core: &Core,
    charges: &[Charge<'_>],
    claim_of: &[usize],
    accounts: &[Account<'_>],
) -> SmallVec<[Quota; 4]> {
    charges
        .iter()
        .zip(claim_of)
        .filter(|(charge, of)| core.shared_for(&accounts[**of], charge).is_some())
        .map(|(charge, _)| substitute(charge.quota))
        .collect()
}

/// The quota of a shared counter: the limit's own if its state fits a word, else one of the same limit and window with
/// the first of its [shared layouts](shared_layouts) that fits.
pub(super) fn substitute(quota: &Quota) -> Quota {
    let layout = Layout::of(quota);
    if fits_narrow(quota, layout) {
        return quota.clone();
    }
    let (limit, window) = (quota.limit(), quota.window());
    let allowance = match quota.allowance() {
        Allowance::Postpaid { max_debt } => Allowance::Postpaid {
            max_debt: max_debt.map(|debt| debt.min(LARGEST_LIMIT)),
        },
        // A soft limit with an end needs a block.
        _ => Allowance::Hard,
    };
    let fitting = |(limit, algorithm)| {
        let spec = QuotaSpec {
            limit,
            window,
            algorithm,
            allowance,
        };
        let quota = Quota::new(&spec).ok()?;
        let layout = Layout::of(&quota);
        // A bucket is rounded up to whole nanoseconds with each charge.
        (layout.shape == Shape::Instant || fits_narrow(&quota, layout)).then_some(quota)
    };
    let at_once = most_at_once(quota);
    shared_layouts(layout, Form::Boxed)
        .map(|shared| match shared.shape {
            shape if shape == layout.shape => (limit, quota.algorithm()),
            Shape::Window => (at_once, Algorithm::FixedWindow),
            _ => (at_once, PAIR),
        })
        .chain([(at_once.min(LARGEST_LIMIT), Algorithm::FixedWindow)])
        .find_map(fitting)
        .unwrap_or_else(|| quota.clone())
}

/// The most that a quota allows at once and in any one window: a bucket allows no more than its burst at once.
pub(super) fn most_at_once(quota: &Quota) -> u64 {
    let limit = quota.limit();
    let burst = match quota.algorithm() {
        Algorithm::TokenBucket { burst, .. } => burst.unwrap_or(limit),
        _ => limit,
    };
    burst.max(1).min(limit)
}

/// The layouts of the shared counters of a counter of `layout`. A charge goes to the first one that its quota
/// [fits](substitute). What is evicted does not know its quota, so it is folded into all of them. A state that fits a
/// word has one, of its own layout.
pub(super) fn shared_layouts(
    layout: Layout,
    form: Form,
) -> impl DoubleEndedIterator<Item = Layout> {
    let shapes: &[Shape] = match layout.shape {
        Shape::Instant => &[Shape::Instant],
        Shape::Window => &[Shape::Window],
        Shape::Portion => &[Shape::Portion, Shape::Window],
        Shape::Pair | Shape::Log | Shape::Counts => &[Shape::Pair, Shape::Window],
    };
    let most = match form {
        Form::Narrow => 1,
        Form::Boxed => shapes.len(),
    };
    shapes
        .iter()
        .take(most)
        .map(move |&shape| Layout { shape, ..layout })
}

/// Shared counters of each pair of algorithm and window in a core with that many slots.
pub(super) fn shared_counters(slots: u64) -> u64 {
    (slots / PAIRS).max(FEWEST_COUNTERS)
}

/// The hash of one of `counters` shared counters.
fn shared_hash(layout: Layout, tag: Tag, counters: u64) -> u64 {
    let kind = mix(layout.window ^ (layout.shape as u64).rotate_right(4));
    whole_shared_hash(mix(kind ^ (tag.fingerprint() % counters)))
}

/// The hash of a shared counter by the part of it that its slot keeps. No bit is left to the number of its shard, so
/// that a restored counter is found whatever the number of shards.
pub(super) const fn whole_shared_hash(kept: u64) -> u64 {
    let fingerprinter = Fingerprinter {
        secret: [0; 2],
        lost: Fingerprinter::lost_among(0),
    };
    fingerprinter.complete(kept)
}

/// The finaliser of `SplitMix64`: a bijection after which every bit depends on all bits of the number. The number
/// of a counter comes from a keyed hash, so this one needs no key.
fn mix(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

#[cfg(all(test, not(loom)))]
mod tests;
