//! The short way for what most requests are: one limit, a key that is there, a narrow state.
//!
//! It does what the long way does and gives up, before anything is written, where something else
//! turns out to be needed. The stress and conformance tests take both ways.

use tidegate_algorithms::{Decision, Meter, Quota, Ticks, Time, leaky_bucket, token_bucket};

use super::core::Core;
use super::fingerprint::Fingerprinter;
use super::layout::{Layout, Shape};
use super::state::{State, fits_narrow};
use super::table::{Home, LockedSet};
use super::tag::{Form, Tag};
use crate::{Charge, Charging, Clock};

/// What the short way came to.
pub(super) struct Quick {
    pub(super) decision: Decision,
    pub(super) now: Time,
}

// === impl Core ===

impl Core {
    /// Charges one limit; `None` if that takes the long way.
    #[inline]
    pub(super) fn charge_quickly(
        &self,
        fingerprinter: &Fingerprinter,
        clock: &impl Clock,
        charge: &Charge<'_>,
        charging: Charging,
    ) -> Option<Quick> {
        let layout = Layout::of(charge.quota);
        if charging == Charging::EveryMatch || !fits_narrow(charge.quota, layout) {
            return None;
        }
        let number = self.layouts.find(layout)?;
        let hash = fingerprinter.hash(charge.key);
        let tag = Tag::new(hash, number);
        let (set, slot) = self.find_quickly(tag, &self.table.home(hash))?;
        decide_at(&set, slot, layout, charge, clock)
    }

    /// The key's slot, with its set locked. The lock of the primary set is kept while the secondary
    /// one is looked at: it is what says that the key does not move.
    #[inline]
    fn find_quickly(&self, tag: Tag, home: &Home) -> Option<(LockedSet<'_>, usize)> {
        let primary = self.table.lock(home.primary);
        if self.table.size(home.primary.shard) != home.size {
            return None;
        }
        if let Some(slot) = primary.find(tag) {
            return Some((primary, slot));
        }
        let secondary = self.table.try_lock(home.secondary)?;
        let slot = secondary.find(tag)?;
        Some((secondary, slot))
    }
}

#[inline]
fn decide_at(
    set: &LockedSet<'_>,
    slot: usize,
    layout: Layout,
    charge: &Charge<'_>,
    clock: &impl Clock,
) -> Option<Quick> {
    let tag = set.tag(slot);
    if tag.form() != Form::Narrow {
        return None;
    }
    let word = set.state(slot);
    let now = clock.now();
    let quota = charge.quota;
    let (decision, next) = quota.judge(None, charge.headroom, now, |extra| {
        decide_word(quota, word, layout, charge.cost, extra, now)
    });
    let is_refused = !decision.is_allowed();
    // A refused bucket that was found too far ahead is written clamped.
    let is_clamped = is_refused && layout.shape == Shape::Instant && next < word;
    if charge.cost > 0 && !is_refused || is_clamped {
        set.put_state(slot, next);
    }
    if is_refused != tag.is_refused() && (is_refused || charge.cost > 0) {
        set.put_tag(slot, tag.with_refused(is_refused));
    }
    Some(Quick { decision, now })
}

/// Decides on a narrow state as it lies in its slot. The two algorithms that are most used have
/// their word worked on directly; the others' goes through [`State`].
#[inline]
fn decide_word(
    quota: &Quota,
    word: u64,
    layout: Layout,
    cost: u64,
    extra: u64,
    now: Time,
) -> (Decision, u64) {
    let instant = || Ticks::from_nanos(word);
    match quota.meter() {
        Meter::TokenBucket(meter) => {
            let state = token_bucket::State { tat: instant() };
            let (decision, next) = meter.decide(state, cost, extra, now);
            (decision, next.tat.ceil().nanos())
        }
        Meter::LeakyBucket(meter) => {
            let state = leaky_bucket::State {
                next_departure: instant(),
            };
            let (decision, next) = meter.decide(state, cost, extra, now);
            (decision, next.next_departure.ceil().nanos())
        }
        Meter::FixedWindow(meter) => {
            let state = State::window_from(word, layout);
            let (decision, next) = meter.decide(state, cost, extra, now);
            (decision, State::window_to(next, layout))
        }
        Meter::SlidingCounter(meter) => {
            let state = State::pair_from(word, layout);
            let (decision, next) = meter.decide(state, cost, extra, now);
            (decision, State::pair_to(next, layout))
        }
        meter => {
            let state = State::from_narrow(word, layout);
            let state = state.unwrap_or(State::Instant(Ticks::default()));
            let (decision, next) = state.decide(meter, cost, extra, now);
            (
                decision,
                next.to_narrow(layout, super::ledger::expires_at(quota, next)),
            )
        }
    }
}
