//! What this node has in hand of one counter: permits of loans, and what the store said last.

use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use tidegate_algorithms::{Decision, Quota, Time};
use tidegate_store::{Charge, Charging, Draw, Loan};
use tokio::sync::futures::OwnedNotified;

use super::borrower::{Borrower, Out, Plan, Return};
use super::demand::Demand;
use super::terms::{LeaseConfig, Terms};
use super::word::{Asked, Bounds, Word, safely};
use crate::memory::Took;
use crate::numbers::Numbers;
use crate::reckoning::Heard;

/// So many permits are worth a draw where they come in drops.
const WORTH_A_DRAW: u64 = 32;

/// What is in hand of one counter.
#[derive(Debug)]
pub(super) struct Purse {
    numbers: Numbers,
    terms: Terms,
    demand: Demand,
    /// Oldest first: one that is spent, and the next.
    held: ArrayVec<Held, 2>,
    /// Who draws, once somebody has.
    borrower: Option<Arc<Borrower>>,
    drawing: Drawing,
    word: Word,
    /// When it was last asked for.
    used: Time,
}

/// What becomes of a request for one limit.
#[derive(Debug)]
pub(super) enum Step {
    /// It is admitted; perhaps permits are to be drawn ahead.
    Spent(Took, Option<Plan>),
    /// It is refused, as the same was before.
    Refused(Decision),
    /// Somebody draws already: see what comes of it.
    Wait(OwnedNotified),
    /// Permits are to be drawn, for this request and the next ones.
    Draw(Plan),
    /// The store is to be asked, strictly.
    Ask,
}

/// Permits of one loan.
#[derive(Clone, Copy, Debug)]
struct Held {
    loan: Loan,
    permits: u64,
    /// From when on they must not be spent, by this node's clock.
    until: Time,
}

/// Whether a draw is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Drawing {
    No,
    Yes,
    /// It failed; the next one is not before this.
    Resting(Time),
}

// === impl Purse ===

impl Purse {
    pub(super) fn new(quota: &Quota, config: &LeaseConfig, demand: Demand, now: Time) -> Self {
        Self {
            numbers: Numbers::of(quota),
            terms: Terms::new(quota, config),
            demand,
            held: ArrayVec::new(),
            borrower: None,
            drawing: Drawing::No,
            word: Word::default(),
            used: now,
        }
    }

    /// Whether it is for these numbers, or for those before a reload.
    #[inline]
    pub(super) fn is_for(&self, quota: &Quota) -> bool {
        self.numbers == Numbers::of(quota)
    }

    /// Whether this is who draws for it.
    pub(super) fn is_of(&self, borrower: &Arc<Borrower>) -> bool {
        let own = self.borrower.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(own, borrower))
    }

    /// Decides on one request as far as that can be done from memory.
    #[inline]
    pub(super) fn take(
        &mut self,
        digest: u128,
        charge: &Charge<'_>,
        charging: Charging,
        now: Time,
    ) -> Step {
        self.used = now;
        self.demand.note(charge.cost);
        if let Some(took) = self.spend(charge.cost, now) {
            return Step::Spent(took, self.draw_ahead(digest, charge, now));
        }
        if let Some(decision) = self.word.refused(Asked::of(charge), now) {
            return Step::Refused(decision);
        }
        self.draw_or_ask(digest, charge, charging, now)
    }

    /// Puts back what a request took that is refused as a whole, of the loan that was made at `lent`, and
    /// says whether that is still there.
    pub(super) fn put_back(&mut self, cost: u64, lent: Time) -> bool {
        let found = self.held.iter_mut().find(|held| held.loan.now == lent);
        found.map(|held| held.permits += cost).is_some()
    }

    /// What a look at the counter says, if the store said something lately.
    pub(super) fn tell(&self, now: Time) -> Option<Decision> {
        let is_recent = self.word.admitted_within(self.terms.refusal, now);
        is_recent.then(|| self.word.admitted(self.permits(now), now))?
    }

    /// Permits in hand.
    #[inline]
    pub(super) fn permits(&self, now: Time) -> u64 {
        let live = self.held.iter().filter(|held| now < held.until);
        live.fold(0, |sum, held| sum.saturating_add(held.permits))
    }

    /// Takes in what became of a draw, of which `spent` permits are spent already. Gives back what there
    /// is no room for.
    pub(super) fn settle(
        &mut self,
        draw: Draw,
        loan: Loan,
        heard: Heard,
        spent: u64,
    ) -> Option<Return> {
        self.drawing = Drawing::No;
        let bounds = Bounds {
            least: self.pause().unwrap_or_default(),
            most: self.terms.refusal,
        };
        if !loan.decision.is_allowed() {
            let asked = Asked::cost(draw.least);
            self.word.refuse(asked, loan.decision, bounds, heard);
            return None;
        }
        self.word.admit(loan.decision, heard);
        self.word.forgive();
        if loan.decision.remaining == 0 && self.terms.pause.is_some() {
            // The draw took all there was: more is to gather before the next one.
            let next = self.terms.next_drop(&loan.decision);
            let bounds = Bounds {
                least: bounds.least.max(next),
                ..bounds
            };
            self.word
                .refuse(Asked::cost(1), loan.decision, bounds, heard);
        }
        self.hold(Held {
            loan,
            permits: loan.permits.saturating_sub(spent),
            until: heard.asked.plus(safely(loan.ends.since(loan.now))),
        })
    }

    /// A draw came to nothing.
    pub(super) fn fail(&mut self, now: Time) {
        let pause = self.terms.life.unwrap_or_default() / 8;
        self.drawing = Drawing::Resting(now.plus(pause));
    }

    /// A draw is not made after all.
    pub(super) const fn abandon(&mut self) {
        self.drawing = Drawing::No;
    }

    /// Remembers what the store said to a request that was asked for strictly.
    pub(super) fn hear(&mut self, charge: &Charge<'_>, decision: Decision, heard: Heard) {
        if decision.is_allowed() {
            self.word.admit(decision, heard);
        } else {
            let bounds = Bounds {
                least: Duration::ZERO,
                most: self.terms.refusal,
            };
            self.word.refuse(Asked::of(charge), decision, bounds, heard);
        }
    }

    /// Forgets a refusal: something has come back to the counter.
    pub(super) const fn forgive(&mut self) {
        self.word.forgive();
    }

    /// Takes out permits that are past their time, and those of a key that is not asked for any more.
    pub(super) fn lapse(&mut self, now: Time, out: &mut Out) {
        let is_idle = now.since(self.used) >= self.terms.life.unwrap_or_default() / 2;
        self.release(now, out, |held| is_idle || now >= held.until);
    }

    /// Takes out all permits.
    pub(super) fn empty(&mut self, now: Time, out: &mut Out) {
        self.release(now, out, |_| true);
    }

    /// The counter was reset: of what was drawn from it nothing is to be given back.
    pub(super) fn reset(&self) {
        if let Some(borrower) = &self.borrower {
            borrower.reset();
        }
    }

    /// Waits for the draw that is under way, if one is.
    pub(super) fn drawing(&self) -> Option<OwnedNotified> {
        let borrower = self.borrower.as_ref();
        let borrower = borrower.filter(|_| self.drawing == Drawing::Yes);
        borrower.map(|borrower| borrower.wait())
    }

    /// Whether a refusal is remembered now.
    pub(super) fn is_refusing(&self, now: Time) -> bool {
        self.word.is_refusing(now)
    }

    /// Whether nothing is lost if it is forgotten.
    pub(super) fn is_spent(&self, now: Time) -> bool {
        let span = self.terms.refusal.max(self.terms.life.unwrap_or_default());
        self.held.is_empty()
            && self.drawing != Drawing::Yes
            && !self.word.is_refusing(now)
            && !self.word.admitted_within(span, now)
    }

    #[inline]
    fn spend(&mut self, cost: u64, now: Time) -> Option<Took> {
        let is_enough = |held: &&mut Held| now < held.until && held.permits >= cost;
        let held = self.held.iter_mut().find(is_enough)?;
        held.permits -= cost;
        let charged = Some(held.loan.now);
        let decision = self.word.admitted(self.permits(now), now)?;
        Some(Took { decision, charged })
    }

    fn hold(&mut self, held: Held) -> Option<Return> {
        let borrower = self.borrower.as_ref()?;
        if self.held.is_full() {
            // Whoever puts back permits of a loan that is spent finds it gone, and loses them.
            self.held.retain(|held| held.permits > 0);
        }
        let overflow = self.held.try_push(held).err()?.element();
        Some(Return {
            borrower: Arc::clone(borrower),
            loan: overflow.loan,
            permits: overflow.permits,
        })
    }

    /// Whether to draw already: little is left, or for little time.
    fn draw_ahead(&mut self, digest: u128, charge: &Charge<'_>, now: Time) -> Option<Plan> {
        let newest = self.held.last()?;
        let life = self.terms.life?;
        let few = newest.loan.permits.min(self.demand.wanted()) / 4;
        let is_low = self.permits(now) <= few;
        let is_ending = newest.is_whole(life) && now.plus(life / 8) >= newest.until;
        let is_time = is_low || is_ending;
        if !is_time || self.word.is_refusing(now) || !self.may_draw(now) {
            return None;
        }
        self.plan(digest, charge, 1, now)
    }

    fn draw_or_ask(
        &mut self,
        digest: u128,
        charge: &Charge<'_>,
        charging: Charging,
        now: Time,
    ) -> Step {
        // Where every match is charged, a refusal counts in its window, and a draw would not count it.
        // It makes no difference to costs of 1: nothing smaller is left to be refused.
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
            Drawing::No => true,
            Drawing::Yes => false,
            Drawing::Resting(until) => now >= until,
        };
        let is_of_use = |held: &Held| now < held.until && held.permits > 0;
        is_free && (!self.held.is_full() || !self.held.iter().all(is_of_use))
    }

    fn plan(&mut self, digest: u128, charge: &Charge<'_>, least: u64, now: Time) -> Option<Plan> {
        let life = self.terms.life?;
        let wanted = self.demand.plan(now, life)?;
        // What has gathered since a refusal goes to whoever comes, as far as it is spent by the next time.
        let is_scarce = self.word.refused_within(life, now);
        let (most, one_in) = match self.pause().filter(|_| is_scarce) {
            Some(pause) => (self.demand.in_time(pause * 2, life), 1),
            None => (wanted, self.terms.one_in),
        };
        self.drawing = Drawing::Yes;
        let borrower = self
            .borrower
            .get_or_insert_with(|| Arc::new(Borrower::new(digest, charge.key, charge.quota)));
        Some(Plan {
            borrower: Arc::clone(borrower),
            draw: Draw {
                least,
                most: least.saturating_add(most),
                one_in,
                life,
            },
        })
    }

    /// How long to let permits gather where there are none left, if any come before their time.
    fn pause(&self) -> Option<Duration> {
        let (most, life) = (self.terms.pause?, self.terms.life?);
        Some(most.min(self.demand.time_of(WORTH_A_DRAW, life)))
    }

    fn release(&mut self, now: Time, out: &mut Out, is_out: impl Fn(&Held) -> bool) {
        let (Some(borrower), Some(life)) = (&self.borrower, self.terms.life) else {
            return;
        };
        self.held.retain(|held| {
            if !is_out(held) {
                return true;
            }
            // What ended with its window the counter has forgotten by itself.
            let is_forgotten = !held.is_whole(life) && now >= held.until;
            if is_forgotten {
                out.lapsed += held.permits;
            } else if held.permits > 0 {
                out.returns.push(Return {
                    borrower: Arc::clone(borrower),
                    loan: held.loan,
                    permits: held.permits,
                });
            }
            false
        });
    }
}

// === impl Held ===

impl Held {
    /// Whether the loan lives as long as was asked for, and is not cut by the end of a window.
    fn is_whole(&self, life: Duration) -> bool {
        self.loan.ends.since(self.loan.now) >= life
    }
}
