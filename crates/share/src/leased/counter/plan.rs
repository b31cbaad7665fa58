//! The next draw of a counter: whether to draw, and how much.

use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::Time;
use tidegate_store::{Charge, Charging, Draw};

use super::super::handle::{CounterHandle, DrawPlan};
use super::{DrawState, LeasedCounter, Step};

/// Permits that are worth a draw of their own where a limit refills gradually: a node with less demand waits
/// shorter for them.
const WORTH_A_DRAW: u64 = 32;

/// From this demand on a loan is drawn before the last one is spent. With less, a key that is not asked for again
/// would cost a draw and a refund for nothing.
const DRAWS_AHEAD: u64 = 16;

// === impl LeasedCounter ===

impl LeasedCounter {
    /// A draw ahead of need: few permits are left, or for little time, or the store's last reply is old.
    pub(super) fn draw_ahead(
        &mut self,
        digest: u128,
        charge: &Charge<'_>,
        now: Time,
    ) -> Option<DrawPlan> {
        let newest = self.held.newest()?;
        let life = self.terms.life?;
        let demand = self.demand.per_life();
        let is_low = self.permits(now) <= newest.loan.permits.min(demand) / 4;
        let is_ending = newest.is_whole(life) && now.plus(life / 8) >= newest.until;
        let is_needed = demand >= DRAWS_AHEAD && (is_low || is_ending);
        let is_old = self.contact.is_old(now);
        if !(is_needed || is_old) || self.replies.is_denying(now) || !self.may_draw(now) {
            return None;
        }
        let plan = self.plan(digest, charge, 1, now)?;
        if is_old || plan.draw.most > 1 {
            return Some(plan);
        }
        self.cancel();
        None
    }

    pub(super) fn draw_or_ask(
        &mut self,
        digest: u128,
        charge: &Charge<'_>,
        charging: Charging,
        now: Time,
    ) -> Step {
        // Where every match is charged, a denial counts in its window, and a draw would not count it.
        // It makes no difference to costs of 1: nothing smaller is left to be denied.
        let is_counted = charging == Charging::EveryMatch && charge.cost > 1;
        if charge.cost == 0 || is_counted {
            return Step::Ask;
        }
        if let Some(landed) = self.drawing() {
            return Step::Wait(landed);
        }
        if !self.may_draw(now) {
            return Step::Ask;
        }
        match self.plan(digest, charge, charge.cost, now) {
            Some(plan) => Step::Draw(plan),
            None => Step::Ask,
        }
    }

    fn may_draw(&self, now: Time) -> bool {
        let is_free = match self.drawing {
            DrawState::Idle => true,
            DrawState::Drawing(_) => false,
            DrawState::Resting(until) => now >= until,
        };
        is_free && self.held.has_room(now)
    }

    /// The next draw: what this node spends until it asks again, within what it may hold. `None` if the key is
    /// not hot, or that is nothing.
    fn plan(
        &mut self,
        digest: u128,
        charge: &Charge<'_>,
        least: u64,
        now: Time,
    ) -> Option<DrawPlan> {
        let life = self.terms.life?;
        if !self.demand.measure(now, life) {
            return None;
        }
        let held = self.permits(now);
        // What has gathered since a denial goes to the node that asks, as far as it is spent by the next time.
        let (span, one_in, reserve) = match self.pause_if_scarce(now) {
            Some(pause) => (pause * 2, 1, 0),
            None => (
                self.contact.interval(),
                self.terms.one_in,
                self.terms.reserve,
            ),
        };
        let span = span.min(self.terms.until_edge(self.contact.store_now(now)));
        // A loan that is about to end will not be spent.
        let kept = self.held.permits(now.plus(life / 8));
        let wanted = self.demand.within(span, life).saturating_sub(kept);
        // Permits whose time is over are held until they are given back.
        let room = self
            .terms
            .most_held
            .saturating_sub(self.held.permits(Time::ZERO));
        let extra = wanted.min(room);
        if extra == 0 && held == 0 {
            return None;
        }
        let handle = self
            .handle
            .get_or_insert_with(|| Arc::new(CounterHandle::new(digest, charge.key, charge.quota)));
        let draw = Draw {
            least,
            most: least.saturating_add(extra),
            one_in,
            reserve,
            life,
        };
        let (plan, wait) = DrawPlan::new(handle, draw);
        self.drawing = DrawState::Drawing(wait);
        Some(plan)
    }

    /// The pause between draws, if the limit was exhausted a moment ago and refills gradually.
    pub(super) fn pause_if_scarce(&self, now: Time) -> Option<Duration> {
        let life = self.terms.life?;
        self.pause()
            .filter(|_| self.replies.denied_within(life, now))
    }

    pub(super) fn pause(&self) -> Option<Duration> {
        let (most, life) = (self.terms.pause?, self.terms.life?);
        Some(most.min(self.demand.time_of(WORTH_A_DRAW, life)))
    }
}
