//! What this node has in hand of one counter: permits of loans, and what the store said last.

use std::sync::Arc;
use std::time::Duration;

use arrayvec::ArrayVec;
use tidegate_algorithms::{Algorithm, Allowance, Decision, Headroom, Outcome, Quota, Retry, Time};
use tidegate_store::{Charge, Charging, CounterKey, Draw, LimitId, Loan};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::demand::Demand;
use super::terms::{LeaseConfig, lease_life};
use crate::reckoning::Heard;

/// The clocks of two machines run apart by less than one in so many: 500 parts in a million is as fast as
/// time servers let each of them be corrected.
const DRIFT: u32 = 512;

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
    /// What the store said last to somebody whom it admitted.
    told: Option<Told>,
    refusal: Option<Refusal>,
    /// When it was last asked for.
    used: Time,
}

/// The numbers of a quota, which a reload of the rules may change under the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    limit: u64,
    algorithm: Algorithm,
    allowance: Allowance,
}

#[derive(Clone, Copy, Debug)]
struct Terms {
    /// `None` if no permits are drawn.
    life: Option<Duration>,
    one_in: u32,
    refusal: Duration,
}

/// Who draws: all that the store must be told again to give permits back.
#[derive(Debug)]
pub(super) struct Borrower {
    pub(super) digest: u128,
    limit: LimitId,
    values: Box<[Box<str>]>,
    pub(super) quota: Quota,
    /// Tells those who wait that a draw has come to something.
    landed: Arc<Notify>,
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

/// What the store said of a counter.
#[derive(Clone, Copy, Debug)]
struct Told {
    decision: Decision,
    at: Time,
}

#[derive(Clone, Copy, Debug)]
struct Refusal {
    told: Told,
    cost: u64,
    /// With what headroom, for limits that mind.
    headroom: Headroom,
    /// Until when nothing can have changed, by this node's clock.
    until: Time,
}

/// What becomes of a request for one limit.
#[derive(Debug)]
pub(super) enum Step {
    /// It is admitted; perhaps permits are to be drawn ahead.
    Spent(Decision, Option<Plan>),
    /// It is refused, as the same was before.
    Refused(Decision),
    /// Somebody draws already: see what comes of it.
    Wait(OwnedNotified),
    /// Permits are to be drawn, for this request and the next ones.
    Draw(Plan),
    /// The store is to be asked, strictly.
    Ask,
}

/// A draw to be made. The purse counts on it until it is settled or has failed.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) borrower: Arc<Borrower>,
    pub(super) draw: Draw,
}

/// Permits to be given back.
#[derive(Clone, Debug)]
pub(super) struct Return {
    pub(super) borrower: Arc<Borrower>,
    pub(super) loan: Loan,
    pub(super) permits: u64,
}

// === impl Purse ===

impl Purse {
    pub(super) fn new(quota: &Quota, config: &LeaseConfig, demand: Demand, now: Time) -> Self {
        Self {
            numbers: Numbers::of(quota),
            terms: Terms {
                life: lease_life(quota, config.life),
                one_in: config.one_in.get(),
                refusal: config.refusal,
            },
            demand,
            held: ArrayVec::new(),
            borrower: None,
            drawing: Drawing::No,
            told: None,
            refusal: None,
            used: now,
        }
    }

    /// Whether it is for these numbers, or for those before a reload.
    #[inline]
    pub(super) fn is_for(&self, quota: &Quota) -> bool {
        self.numbers == Numbers::of(quota)
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
        if let Some(decision) = self.spend(charge.cost, now) {
            return Step::Spent(decision, self.refill(digest, charge, now));
        }
        if let Some(decision) = self.refuse(charge, now) {
            return Step::Refused(decision);
        }
        self.draw_or_ask(digest, charge, charging, now)
    }

    /// Puts back what a request took that is refused as a whole. Permits whose loan has ended meanwhile
    /// are lost.
    pub(super) fn put_back(&mut self, cost: u64) {
        let has_room = |held: &&mut Held| held.permits.saturating_add(cost) <= held.loan.permits;
        if let Some(held) = self.held.iter_mut().find(has_room) {
            held.permits += cost;
        }
    }

    /// What a look at the counter says, if something of it is in hand.
    pub(super) fn look(&self, now: Time) -> Option<Decision> {
        let is_live = self.held.iter().any(|held| now < held.until);
        is_live.then(|| self.decision(now)).flatten()
    }

    /// What the store said last, if that is not long ago.
    pub(super) fn tell(&self, now: Time) -> Option<Decision> {
        let told = self.told?;
        (now.since(told.at) < self.terms.refusal).then(|| self.decision(now))?
    }

    /// Permits in hand.
    pub(super) fn permits(&self, now: Time) -> u64 {
        let live = self.held.iter().filter(|held| now < held.until);
        live.fold(0, |sum, held| sum.saturating_add(held.permits))
    }

    /// Takes in a loan of at least `least` permits of which `spent` are spent already. Gives back what
    /// there is no room for.
    pub(super) fn settle(
        &mut self,
        loan: Loan,
        heard: Heard,
        least: u64,
        spent: u64,
    ) -> Option<Return> {
        self.drawing = Drawing::No;
        let told = Told {
            decision: loan.decision,
            at: heard.answered,
        };
        if !loan.decision.is_allowed() {
            self.remember(told, least, Headroom::Absent, heard);
            return None;
        }
        self.told = Some(told);
        self.refusal = None;
        let held = Held {
            loan,
            permits: loan.permits.saturating_sub(spent),
            until: heard.asked.plus(safely(loan.ends.since(loan.now))),
        };
        let borrower = self.borrower.clone()?;
        self.held.try_push(held).err().map(|_| Return {
            borrower,
            loan,
            permits: held.permits,
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
        let told = Told {
            decision,
            at: heard.answered,
        };
        if decision.is_allowed() {
            self.told = Some(told);
        } else {
            self.remember(told, charge.cost, self.numbers.headroom(charge), heard);
        }
    }

    /// Forgets a refusal: permits have come back.
    pub(super) fn forgive(&mut self) {
        self.refusal = None;
    }

    /// Takes out permits that are past their time, and those of a key that is not asked for any more.
    pub(super) fn lapse(&mut self, now: Time, returns: &mut Vec<Return>) {
        let is_idle = now.since(self.used) >= self.terms.life.unwrap_or_default() / 2;
        self.release(returns, |held| is_idle || now >= held.until, now);
    }

    /// Takes out all permits.
    pub(super) fn empty(&mut self, now: Time, returns: &mut Vec<Return>) {
        self.release(returns, |_| true, now);
    }

    /// Whether nothing is lost if it is forgotten.
    pub(super) fn is_spent(&self, now: Time) -> bool {
        let is_refusing = self.refusal.is_some_and(|refusal| now < refusal.until);
        let is_telling = self.told.is_some_and(|told| {
            now.since(told.at) < self.terms.refusal.max(self.terms.life.unwrap_or_default())
        });
        self.held.is_empty() && self.drawing != Drawing::Yes && !is_refusing && !is_telling
    }

    /// Whether a refusal is remembered now.
    pub(super) fn is_refusing(&self, now: Time) -> bool {
        self.refusal.is_some_and(|refusal| now < refusal.until)
    }

    /// Whether this is who draws for it.
    pub(super) fn is_of(&self, borrower: &Arc<Borrower>) -> bool {
        self.borrower
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, borrower))
    }

    #[inline]
    fn spend(&mut self, cost: u64, now: Time) -> Option<Decision> {
        let is_enough = |held: &&mut Held| now < held.until && held.permits >= cost;
        let held = self.held.iter_mut().find(is_enough)?;
        held.permits -= cost;
        self.decision(now)
    }

    /// What an admitted request is told: what the store last said is left to all, and what is in hand.
    #[inline]
    fn decision(&self, now: Time) -> Option<Decision> {
        let told = self.told?;
        let Decision {
            outcome,
            limit,
            remaining,
            reset_after,
        } = told.decision;
        Some(Decision {
            outcome,
            limit,
            remaining: remaining.saturating_add(self.permits(now)).min(limit),
            reset_after: reset_after.saturating_sub(now.since(told.at)),
        })
    }

    fn refuse(&self, charge: &Charge<'_>, now: Time) -> Option<Decision> {
        let refusal = self.refusal.as_ref()?;
        let applies = charge.cost >= refusal.cost
            && self.numbers.headroom(charge) == refusal.headroom
            && now < refusal.until;
        applies.then(|| refusal.told.later(now))
    }

    fn remember(&mut self, told: Told, cost: u64, headroom: Headroom, heard: Heard) {
        let span = match told.decision.outcome {
            Outcome::Denied {
                retry: Retry::After(wait),
            } => wait.min(self.terms.refusal),
            Outcome::Denied {
                retry: Retry::Never,
            } => self.terms.refusal,
            Outcome::Allowed { .. } => return,
        };
        // Of two costs that were refused the smaller one says more, while it says anything.
        let is_weaker = self
            .refusal
            .is_some_and(|old| heard.answered < old.until && old.cost < cost);
        if !is_weaker {
            self.refusal = Some(Refusal {
                told,
                cost,
                headroom,
                until: heard.asked.plus(safely(span)),
            });
        }
    }

    /// Whether to draw ahead: little is left, or for little time.
    fn refill(&mut self, digest: u128, charge: &Charge<'_>, now: Time) -> Option<Plan> {
        let newest = *self.held.last()?;
        let life = self.terms.life?;
        let few = newest.loan.permits.min(self.demand.wanted()) / 4;
        let is_low = self.permits(now) <= few;
        let is_whole = newest.loan.ends.since(newest.loan.now) >= life;
        let is_ending = is_whole && now.plus(life / 8) >= newest.until;
        let is_refused = self.is_refusing(now);
        if !(is_low || is_ending) || is_refused || !self.may_draw(now) {
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
        if let (Drawing::Yes, Some(borrower)) = (self.drawing, &self.borrower) {
            return Step::Wait(Arc::clone(&borrower.landed).notified_owned());
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
        is_free && (!self.held.is_full() || self.held.iter().any(|held| now >= held.until))
    }

    fn plan(&mut self, digest: u128, charge: &Charge<'_>, least: u64, now: Time) -> Option<Plan> {
        let life = self.terms.life?;
        let wanted = self.demand.plan(now, life)?;
        self.drawing = Drawing::Yes;
        let borrower = self
            .borrower
            .get_or_insert_with(|| Arc::new(Borrower::new(digest, charge.key, charge.quota)));
        Some(Plan {
            borrower: Arc::clone(borrower),
            draw: Draw {
                least,
                most: least.saturating_add(wanted),
                one_in: self.terms.one_in,
                life,
            },
        })
    }

    fn release(&mut self, returns: &mut Vec<Return>, is_out: impl Fn(&Held) -> bool, now: Time) {
        let (Some(borrower), Some(life)) = (&self.borrower, self.terms.life) else {
            return;
        };
        self.held.retain(|held| {
            if !is_out(held) {
                return true;
            }
            // What ended with its window the counter has forgotten by itself.
            let is_cut = held.loan.ends.since(held.loan.now) < life;
            let is_forgotten = is_cut && now >= held.until;
            if held.permits > 0 && !is_forgotten {
                returns.push(Return {
                    borrower: Arc::clone(borrower),
                    loan: held.loan,
                    permits: held.permits,
                });
            }
            false
        });
    }
}

// === impl Numbers ===

impl Numbers {
    #[inline]
    const fn of(quota: &Quota) -> Self {
        Self {
            limit: quota.limit(),
            algorithm: quota.algorithm(),
            allowance: quota.allowance(),
        }
    }

    /// The headroom of a charge, if such a limit minds it.
    const fn headroom(&self, charge: &Charge<'_>) -> Headroom {
        match self.allowance {
            Allowance::Elastic { .. } => charge.headroom,
            Allowance::Hard | Allowance::Soft { .. } => Headroom::Absent,
        }
    }
}

// === impl Borrower ===

impl Borrower {
    fn new(digest: u128, key: CounterKey<'_>, quota: &Quota) -> Self {
        Self {
            digest,
            limit: key.limit,
            values: key.values.iter().map(|&value| value.into()).collect(),
            quota: quota.clone(),
            landed: Arc::new(Notify::new()),
        }
    }

    /// The values of its key, to be borrowed by it.
    pub(super) fn values(&self) -> Vec<&str> {
        self.values.iter().map(AsRef::as_ref).collect()
    }

    /// Its key, over its [`values`](Self::values).
    pub(super) const fn key<'a>(&self, values: &'a [&'a str]) -> CounterKey<'a> {
        CounterKey {
            limit: self.limit,
            values,
        }
    }

    /// Wakes those who wait for a draw.
    pub(super) fn wake(&self) {
        self.landed.notify_waiters();
    }
}

// === impl Told ===

impl Told {
    /// The same a while later: what was to come is nearer.
    fn later(&self, now: Time) -> Decision {
        let since = now.since(self.at);
        let mut decision = self.decision;
        decision.reset_after = decision.reset_after.saturating_sub(since);
        if let Outcome::Denied {
            retry: Retry::After(wait),
        } = &mut decision.outcome
        {
            *wait = wait.saturating_sub(since);
        }
        decision
    }
}

/// So long by this node's clock `span` is not over by the store's, however the two run.
fn safely(span: Duration) -> Duration {
    span.saturating_sub(span / DRIFT)
}
