//! The short way for what most requests are: one limit, a narrow state, and the key is there or
//! finds room at once.
//!
//! It does what the long way does and gives up, before anything is written, where something else
//! turns out to be needed. The stress and conformance tests take both ways.

use tidegate_algorithms::{Decision, Meter, Quota, Ticks, Time};

use super::core::Core;
use super::fingerprint::Fingerprinter;
use super::layout::{Layout, Shape};
use super::ledger::expires_at;
use super::state::{State, fits_narrow};
use super::table::{LockedSet, SetId, choices};
use super::tag::{Form, Tag};
use crate::{Admission, Charge, Charging, Clock, Decisions, Mode, Receipt};

/// The narrow state of a caller never seen, whatever the algorithm.
const UNSEEN: u64 = 0;

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
        decisions: &mut Decisions,
    ) -> Option<Receipt> {
        let layout = Layout::of(charge.quota);
        if !fits_narrow(charge.quota, layout) {
            return None;
        }
        let number = self.layouts.find(layout)?;
        let hash = fingerprinter.hash(charge.key);
        let tag = Tag::new(hash, number);
        let (shard, size) = self.table.shard(hash);
        let (first, second) = choices(hash, size);
        let second = SetId { shard, set: second };
        // One key in five lies there: better to wait for both lines at once than one by one.
        self.table.fetch(second);
        let primary = self.table.lock(SetId { shard, set: first });
        if self.table.size(shard) != size {
            return None;
        }
        if let Some(slot) = primary.find(tag) {
            return decide_found(
                &primary,
                slot,
                layout,
                charge,
                charging,
                clock.now(),
                decisions,
            );
        }
        let secondary = self.table.try_lock(second)?;
        let now = clock.now();
        if let Some(slot) = secondary.find(tag) {
            return decide_found(&secondary, slot, layout, charge, charging, now, decisions);
        }
        let (set, slot) = [&primary, &secondary]
            .into_iter()
            .find_map(|set| Some((set, self.free_slot(set, now)?)))?;
        let (decision, next) = decide_word(charge, UNSEEN, layout, now);
        if !decision.is_allowed() {
            return None;
        }
        if charge.cost > 0 {
            self.vacate(set, slot);
            set.put_state(slot, next);
            set.put_tag(slot, tag);
        }
        Some(receipt(decision, charge, now, decisions))
    }
}

/// Decides on a counter that is there.
#[inline]
fn decide_found(
    set: &LockedSet<'_>,
    slot: usize,
    layout: Layout,
    charge: &Charge<'_>,
    charging: Charging,
    now: Time,
    decisions: &mut Decisions,
) -> Option<Receipt> {
    let tag = set.tag(slot);
    if tag.form() != Form::Narrow {
        return None;
    }
    let word = set.state(slot);
    let (decision, next) = decide_word(charge, word, layout, now);
    let is_refused = !decision.is_allowed();
    // There a window may count its refusals, and says what is left accordingly.
    if is_refused && charging == Charging::EveryMatch {
        return None;
    }
    // A refused bucket that was found too far ahead is written clamped.
    let is_clamped = is_refused && layout.shape == Shape::Instant && next < word;
    if charge.cost > 0 && !is_refused || is_clamped {
        set.put_state(slot, next);
    }
    if is_refused != tag.is_refused() && (is_refused || charge.cost > 0) {
        set.put_tag(slot, tag.with_refused(is_refused));
    }
    Some(receipt(decision, charge, now, decisions))
}

#[inline]
fn receipt(
    decision: Decision,
    charge: &Charge<'_>,
    now: Time,
    decisions: &mut Decisions,
) -> Receipt {
    let is_admitted = decision.is_allowed() || charge.mode == Mode::Shadow;
    decisions.push(decision);
    Receipt {
        now,
        admission: if is_admitted {
            Admission::Admitted
        } else {
            Admission::Refused
        },
    }
}

#[inline]
fn decide_word(charge: &Charge<'_>, word: u64, layout: Layout, now: Time) -> (Decision, u64) {
    let quota = charge.quota;
    quota.judge(None, charge.headroom, now, |extra| {
        decide_word_with(quota, word, layout, charge.cost, extra, now)
    })
}

/// Decides on a narrow state as it lies in its slot. The two algorithms that are most used have
/// their word worked on directly; the others' goes through [`State`].
#[inline]
fn decide_word_with(
    quota: &Quota,
    word: u64,
    layout: Layout,
    cost: u64,
    extra: u64,
    now: Time,
) -> (Decision, u64) {
    let whole = match quota.meter() {
        Meter::TokenBucket(meter) => meter.decide_whole(word, cost, extra, now),
        Meter::LeakyBucket(meter) => meter.decide_whole(word, cost, extra, now),
        Meter::FixedWindow(meter) => {
            let state = State::window_from(word, layout);
            let (decision, next) = meter.decide(state, cost, extra, now);
            Some((decision, State::window_to(next, layout)))
        }
        Meter::SlidingCounter(meter) => {
            let state = State::pair_from(word, layout);
            let (decision, next) = meter.decide(state, cost, extra, now);
            Some((decision, State::pair_to(next, layout)))
        }
        _ => None,
    };
    whole.unwrap_or_else(|| {
        let state = State::from_narrow(word, layout);
        let state = state.unwrap_or(State::Instant(Ticks::default()));
        let (decision, next) = state.decide(quota.meter(), cost, extra, now);
        (decision, next.to_narrow(layout, expires_at(quota, next)))
    })
}
