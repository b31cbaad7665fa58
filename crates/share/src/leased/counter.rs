//! One counter of the store as this node sees it: permits of loans, and the store's last replies.
//!
//! ```text
//!          3 allowed requests         permits spent, or the         the store lends nothing,
//!          within a life              loan is about to end          or the draw failed
//!   COLD ───────────────────► HOT ───────────────────────► DRAWING ─────────────────────► RESTING
//!    ▲ each request asks       ▲ ▲     the loan arrives       │                              │
//!    │ the store               │ └────────────────────────────┘                              │
//!    │                         └───────────────────────────────── a quarter of a life later ─┘
//!    └── fewer than 2 requests within a life
//! ```
//!
//! In any state a denial of the store is answered from memory while it stands, and a request for which no
//! permits are held may ask the store.

mod plan;

use std::sync::Arc;
use std::time::Duration;

use tidegate_algorithms::{Decision, Time};
use tidegate_store::{Charge, Charging, Consistency, Draw, Loan};

use super::contact::Contact;
use super::demand::Demand;
use super::handle::{CounterHandle, DrawPlan, DrawWait, LoanRefund, Released};
use super::last_reply::{Demanded, LastReplies, safely};
use super::loans::{HeldLoan, HeldLoans};
use super::terms::{LeaseConfig, LeaseTerms};
use crate::memory::Took;
use crate::numbers::Numbers;
use crate::reckoning::Heard;

/// One counter as this node sees it.
#[derive(Debug)]
pub(super) struct LeasedCounter {
    numbers: Numbers,
    consistency: Consistency,
    terms: LeaseTerms,
    demand: Demand,
    held: HeldLoans,
    /// Set by the first draw.
    handle: Option<Arc<CounterHandle>>,
    drawing: DrawState,
    replies: LastReplies,
    contact: Contact,
    /// The last request.
    used: Time,
    /// The time at which the table will look at its loans again.
    pub(super) scheduled: Option<Time>,
}

/// The next step of a request for one limit.
#[derive(Debug)]
pub(super) enum Step {
    /// Allowed from memory; perhaps permits are to be drawn ahead.
    Spent(Took, Option<DrawPlan>),
    /// Denied from memory, by a denial of the store.
    Denied(Decision),
    /// Another request draws: wait for it.
    Wait(DrawWait),
    /// Draw permits, for this request and the next ones.
    Draw(DrawPlan),
    /// Ask the store for this request.
    Ask,
}

/// The state of drawing.
#[derive(Debug)]
enum DrawState {
    Idle,
    Drawing(DrawWait),
    /// The last draw brought nothing to lend; the next one is not before this.
    Resting(Time),
}

// === impl LeasedCounter ===

impl LeasedCounter {
    pub(super) fn new(
        charge: &Charge<'_>,
        config: &LeaseConfig,
        demand: Option<Demand>,
        now: Time,
    ) -> Self {
        let terms = match charge.consistency {
            Consistency::Leased => LeaseTerms::new(charge.quota, config),
            _ => LeaseTerms::not_lent(charge.quota, config),
        };
        Self {
            numbers: Numbers::of(charge.quota),
            consistency: charge.consistency,
            contact: Contact::new(terms.life.unwrap_or_default()),
            terms,
            demand: demand.unwrap_or(Demand::new(now)),
            held: HeldLoans::default(),
            handle: None,
            drawing: DrawState::Idle,
            replies: LastReplies::default(),
            used: now,
            scheduled: None,
        }
    }

    /// Whether it is for these numbers and this consistency, and not for those before a reload.
    #[inline]
    pub(super) fn is_for(&self, charge: &Charge<'_>) -> bool {
        self.numbers == Numbers::of(charge.quota) && self.consistency == charge.consistency
    }

    /// Whether its permits are drawn by this handle.
    pub(super) fn is_of(&self, handle: &Arc<CounterHandle>) -> bool {
        let own = self.handle.as_ref();
        own.is_some_and(|own| Arc::ptr_eq(own, handle))
    }

    /// Decides on one request as far as memory can.
    #[inline]
    pub(super) fn take(
        &mut self,
        digest: u128,
        charge: &Charge<'_>,
        charging: Charging,
        now: Time,
    ) -> Step {
        self.used = now;
        if let Some(took) = self.spend(charge.cost, now) {
            return Step::Spent(took, self.draw_ahead(digest, charge, now));
        }
        let (demanded, quota) = (Demanded::of(charge), charge.quota);
        if let Some(decision) = self.replies.denied(demanded, quota, now) {
            return Step::Denied(decision);
        }
        if self.terms.life.is_none() {
            // Of a limit that is lent, one request draws and the others wait for it.
            let remember = self.terms.remember_denials;
            self.replies.renew(demanded, quota, remember, now);
        }
        self.draw_or_ask(digest, charge, charging, now)
    }

    /// Takes back the permits of a request that another limit denied, into the loan that was made at `lent`, and
    /// its demand. Returns false if that loan is gone.
    pub(super) fn put_back(&mut self, cost: u64, lent: Time) -> bool {
        self.demand.remove(cost);
        self.held.put_back(cost, lent)
    }

    /// Refunds permits of an allowed request to the loan that was made at `lent`, or less than a microsecond
    /// later; it was demand all the same. Returns false if that loan is gone.
    pub(super) fn refund(&mut self, cost: u64, lent: Time) -> bool {
        self.held.refund(cost, lent)
    }

    /// The likely decision on a request of no cost, if the store replied a moment ago.
    pub(super) fn look(&self, now: Time) -> Option<Decision> {
        let is_recent = self
            .replies
            .allowed_within(self.terms.remember_denials, now);
        is_recent.then(|| self.replies.allowed(self.permits(now), now))?
    }

    /// The permits held.
    #[inline]
    pub(super) fn permits(&self, now: Time) -> u64 {
        self.held.permits(now)
    }

    /// Takes in the result of a draw, of which `spent` permits are spent already. Returns a loan for which there
    /// is no room.
    pub(super) fn settle(
        &mut self,
        draw: Draw,
        loan: Loan,
        heard: Heard,
        spent: u64,
    ) -> Option<LoanRefund> {
        self.drawing = DrawState::Idle;
        if !loan.decision.is_allowed() {
            let pause = self.pause().unwrap_or_default();
            self.deny(Demanded::cost(draw.least), loan.decision, pause, heard);
            return None;
        }
        self.demand.add(spent);
        self.allow(loan.decision, loan.permits, heard);
        if self.pause_if_scarce(heard.answered).is_none() {
            self.replies.forgive();
            if loan.permits <= draw.least && draw.most > draw.least {
                // Only the reserve is left: the store decides on each request for a while.
                self.rest(heard.answered);
            }
        }
        self.hold(HeldLoan {
            loan,
            permits: loan.permits.saturating_sub(spent),
            until: heard.asked.plus(safely(loan.ends.since(loan.now))),
        })
    }

    /// Waits a while before the next draw: the last one failed.
    pub(super) fn rest(&mut self, now: Time) {
        let rest = self.terms.life.unwrap_or_default() / 4;
        self.drawing = DrawState::Resting(now.plus(rest));
    }

    /// Cancels a draw before it is made.
    pub(super) fn cancel(&mut self) {
        self.drawing = DrawState::Idle;
    }

    /// Remembers the store's reply to one request.
    pub(super) fn hear(&mut self, charge: &Charge<'_>, decision: Decision, heard: Heard) {
        if decision.is_allowed() {
            if self.terms.life.is_none() {
                self.replies.forgive();
            }
            self.allow(decision, charge.cost, heard);
        } else {
            self.deny(Demanded::of(charge), decision, Duration::ZERO, heard);
        }
    }

    /// Counts a request that the store allowed.
    pub(super) const fn add_demand(&mut self, cost: u64) {
        self.demand.add(cost);
    }

    /// Forgets a denial: permits have come back to the counter.
    pub(super) fn forgive(&mut self) {
        self.replies.forgive();
    }

    /// Releases permits whose time is over, and those of a key without requests.
    pub(super) fn release_due(&mut self, now: Time, released: &mut Released) {
        let is_idle = now.since(self.used) >= self.idle_after();
        self.release(now, released, |held| is_idle || now >= held.until);
    }

    /// Releases all permits.
    pub(super) fn release_all(&mut self, now: Time, released: &mut Released) {
        self.release(now, released, |_| true);
    }

    /// The next time at which permits may be due; `None` if none are held.
    pub(super) fn next_due(&self, now: Time) -> Option<Time> {
        let ends = self.held.first_end()?;
        Some(ends.min(self.used.plus(self.idle_after())).max(now))
    }

    /// Marks the counter as reset: nothing that was drawn from it is given back.
    pub(super) fn reset(&self) {
        if let Some(handle) = &self.handle {
            handle.reset();
        }
    }

    /// Waits for the current draw, if there is one.
    pub(super) fn drawing(&self) -> Option<DrawWait> {
        match &self.drawing {
            DrawState::Drawing(draw) => Some(draw.clone()),
            DrawState::Idle | DrawState::Resting(_) => None,
        }
    }

    /// Whether a denial is remembered now.
    pub(super) fn is_denying(&self, now: Time) -> bool {
        self.replies.is_denying(now)
    }

    /// Whether nothing is lost if it is forgotten.
    pub(super) fn is_forgettable(&self, now: Time) -> bool {
        let life = self.terms.life.unwrap_or_default();
        self.held.is_empty()
            && !matches!(self.drawing, DrawState::Drawing(_))
            && !self.replies.is_denying(now)
            && !self
                .replies
                .allowed_within(self.terms.remember_denials.max(life), now)
    }

    #[inline]
    fn spend(&mut self, cost: u64, now: Time) -> Option<Took> {
        let charged = Some(self.held.spend(cost, now)?);
        self.demand.add(cost);
        let decision = self.replies.allowed(self.permits(now), now)?;
        Some(Took::new(decision, charged))
    }

    fn allow(&mut self, decision: Decision, taken: u64, heard: Heard) {
        let share = decision.limit / u64::from(self.terms.one_in.max(1));
        self.contact.hear(decision.remaining, taken, share, heard);
        self.replies.allow(decision, heard);
    }

    fn deny(&mut self, demanded: Demanded, decision: Decision, pause: Duration, heard: Heard) {
        self.contact.exhausted(decision.remaining, heard);
        let remember = self.terms.remember_denials;
        self.replies
            .deny(demanded, decision, pause, remember, heard);
    }

    fn hold(&mut self, held: HeldLoan) -> Option<LoanRefund> {
        let handle = self.handle.as_ref()?;
        let overflow = self.held.add(held)?;
        Some(LoanRefund {
            handle: Arc::clone(handle),
            loan: overflow.loan,
            permits: overflow.permits,
        })
    }

    /// The time without a request after which permits go back: soon if little is left to others.
    fn idle_after(&self) -> Duration {
        const SOON: Duration = Duration::from_millis(250);
        let half = self.terms.life.unwrap_or_default() / 2;
        if self.contact.is_scarce() {
            half.min(SOON)
        } else {
            half
        }
    }

    fn release(&mut self, now: Time, released: &mut Released, is_due: impl Fn(&HeldLoan) -> bool) {
        let (Some(handle), Some(life)) = (&self.handle, self.terms.life) else {
            return;
        };
        let forgets_at_edge = self.terms.forgets_at_edge;
        let is_forgotten =
            |held: &HeldLoan| forgets_at_edge && !held.is_whole(life) && now >= held.until;
        self.held.release(handle, released, is_due, is_forgotten);
    }
}
