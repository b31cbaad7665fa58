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
use super::tag::{Form, Pass, Tag};
use crate::{Admission, Charge, Charging, Clock, Decisions, Mode, Receipt};

/// What one request asks of one limit.
#[derive(Clone, Copy)]
struct Asked<'a> {
    charge: &'a Charge<'a>,
    charging: Charging,
    layout: Layout,
}

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
        let primary = self.table.lock(SetId { shard, set: first })?;
        if self.table.size(shard) != size || !self.layouts.is_current(number, layout) {
            return None;
        }
        let asked = Asked {
            charge,
            charging,
            layout,
        };
        match primary.find(tag) {
            Some(slot) => asked.decide_found(self, &primary, slot, clock.now(), decisions),
            None => self.charge_elsewhere(asked, tag, &primary, second, clock, decisions),
        }
    }

    /// Charges a key that is not in its primary set, which is held so that it does not come there.
    #[inline(never)]
    fn charge_elsewhere(
        &self,
        asked: Asked<'_>,
        tag: Tag,
        primary: &LockedSet<'_>,
        second: SetId,
        clock: &impl Clock,
        decisions: &mut Decisions,
    ) -> Option<Receipt> {
        let secondary = self.table.try_lock(second)?;
        let now = clock.now();
        if let Some(slot) = secondary.find(tag) {
            return asked.decide_found(self, &secondary, slot, now, decisions);
        }
        let (decision, next) = asked.decide(UNSEEN, now);
        // A refusal may have to be counted.
        if !decision.is_allowed() {
            return None;
        }
        if asked.charge.cost > 0 {
            let (set, slot) = self.slot_in([primary, &secondary], now)?;
            self.vacate(set, slot);
            set.put_state(slot, next);
            set.put_tag(slot, tag.marked_once(self.marking_pass(now)));
        } else if self.was_full_at(now) {
            // The look may have to go to a shared counter.
            return None;
        }
        decisions.push(decision);
        Some(Receipt::new(now, Admission::Admitted))
    }
}

// === impl Asked ===

impl Asked<'_> {
    /// Decides on a counter that is there, and charges it.
    #[inline]
    fn decide_found(
        &self,
        core: &Core,
        set: &LockedSet<'_>,
        slot: usize,
        now: Time,
        decisions: &mut Decisions,
    ) -> Option<Receipt> {
        let (tag, word) = (set.tag(slot), set.state(slot));
        if tag.form() != Form::Narrow {
            return None;
        }
        let (decision, next) = self.decide(word, now);
        let is_refused = !decision.is_allowed();
        // Then a window may count its refusals, and says what is left accordingly; or the limit is postpaid.
        if is_refused && (self.charging == Charging::EveryMatch || self.charge.quota.is_postpaid())
        {
            return None;
        }
        let is_look = self.charge.cost == 0;
        let is_charged = !is_refused && !is_look;
        // A refused bucket that was found too far ahead is written clamped.
        let is_clamped = is_refused && self.layout.shape == Shape::Instant && next < word;
        if is_charged || is_clamped {
            set.put_state(slot, next);
        }
        let next_tag = tag.marked_again(Pass::at(now));
        if next_tag != tag && !is_look {
            core.marking_pass(now);
            set.put_tag(slot, next_tag);
        }
        decisions.push(decision);
        let is_admitted = !is_refused || self.charge.mode == Mode::Shadow;
        let admission = if is_admitted {
            Admission::Admitted
        } else {
            Admission::Refused
        };
        Some(Receipt::new(now, admission))
    }

    /// The decision on a narrow state, and the state to keep.
    #[inline]
    fn decide(&self, word: u64, now: Time) -> (Decision, u64) {
        let Self { charge, layout, .. } = *self;
        // A narrow state does not know since when it is over its limit, so there is nothing to judge.
        let extra = charge.quota.extra(None, now, charge.headroom);
        decide_word(charge.quota, word, layout, charge.cost, extra, now)
    }
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
    whole.unwrap_or_else(|| decide_state(quota, word, layout, cost, extra, now))
}

/// Decides on a narrow state by way of [`State`].
#[inline(never)]
fn decide_state(
    quota: &Quota,
    word: u64,
    layout: Layout,
    cost: u64,
    extra: u64,
    now: Time,
) -> (Decision, u64) {
    let state = State::from_narrow(word, layout);
    let state = state.unwrap_or(State::Instant(Ticks::default()));
    let (decision, next) = state.decide(quota.meter(), cost, extra, now);
    (decision, next.to_narrow(layout, expires_at(quota, next)))
}
