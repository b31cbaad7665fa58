//! What one core writes down.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use tidegate_limiter::{Descriptor, LimiterError, StoreError, Verdict};

use crate::connections::{OpenConnection, Protocol};
use crate::core::{Answered, Core, Failure, Rejection, StandIn};
use crate::counts::Counts;
use crate::decision::DecisionWriter;
use crate::dice::Dice;
use crate::rule_table::RuleTable;
use crate::ruled::{self, Ruled};
use crate::top::Looker;
use crate::trace::Tracer;
use crate::{DecisionId, Observatory, RefusalLog, TraceHeaders};

/// Writes down what came of the requests of one core. It is that core's alone: it can be moved to
/// another thread, but not shared.
#[derive(Debug)]
pub struct Recorder {
    observatory: Arc<Observatory>,
    core: Arc<Core>,
    /// The same as in the core's ledger, without its lock.
    table: RefCell<Arc<RuleTable>>,
    dice: Dice,
    /// Looks for the busiest keys, if they are asked for.
    looker: Option<Looker>,
    /// Makes spans, if they are asked for.
    tracer: Option<Tracer>,
    refusals: RefusalLog,
    /// Keeps the latest decisions, if they are asked for.
    decisions: Option<DecisionWriter>,
}

/// A request to the limiter, with its route and trace.
#[derive(Clone, Copy, Debug)]
pub struct LimiterRequest<'a> {
    /// The domain.
    pub domain: &'a str,
    /// The descriptors.
    pub descriptors: &'a [Descriptor<'a>],
    /// The hits of the request.
    pub hits: u64,
    /// The route of a request that came through the gateway.
    pub route: Option<&'a str>,
    /// The trace it is part of. Not worth looking up unless the recorder [traces](Recorder::traces).
    pub trace: TraceHeaders<'a>,
}

/// What became of the rules of a verdict that were not those counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// They are counted by now.
    Over,
    /// They are the ones from before.
    Late,
}

// === impl Recorder ===

impl Recorder {
    pub(crate) fn new(observatory: Arc<Observatory>, core: Arc<Core>) -> Self {
        let table = Arc::clone(core.ledger().table());
        let looker = observatory
            .config()
            .top
            .map(|config| Looker::new(config, observatory.seed().clone(), Arc::clone(&core)));
        let tracer = observatory.tracer();
        let refusals = observatory.config().refusals;
        let dice = Dice::new();
        let decisions = observatory.decision_writer(&dice);
        Self {
            observatory,
            core,
            table: RefCell::new(table),
            dice,
            looker,
            tracer,
            refusals,
            decisions,
        }
    }

    /// Records a verdict that took this long. Returns the id under which the decision is kept; every denial has one, unless no
    /// decisions are kept.
    pub fn judged(
        &self,
        request: &LimiterRequest<'_>,
        verdict: &Verdict,
        took: Duration,
    ) -> Option<DecisionId> {
        self.core.times.add(took);
        let answered = Answered::of(verdict);
        self.core.answered[answered as usize].add(1);
        if let Some(tracer) = &self.tracer {
            tracer.record(request, verdict, took, &self.dice);
        }
        if verdict.limits().len() == 0 {
            self.unmatched(request, verdict);
            // A ban refuses where there is no limit, too.
            self.refusals.note(request, verdict, &self.dice);
            return self.keep(answered, request, verdict);
        }
        if let Some(error) = verdict.failure() {
            self.stood_in(error, verdict);
        }
        self.count_rules(request, verdict);
        self.refusals.note(request, verdict, &self.dice);
        self.keep(answered, request, verdict)
    }

    /// A request made no sense.
    pub fn rejected(&self, error: &LimiterError) {
        self.core.rejected[Rejection::of(error) as usize].add(1);
    }

    /// A message was no request at all: bytes that do not parse, or too many of them.
    pub fn malformed(&self) {
        self.core.rejected[Rejection::Malformed as usize].add(1);
    }

    /// Whether requests may be traced: if not, nobody needs to look for the headers.
    #[inline]
    pub fn traces(&self) -> bool {
        self.tracer.is_some()
    }

    /// A connection was opened.
    pub fn opened(&self, protocol: Protocol) -> OpenConnection {
        self.observatory.opened(protocol)
    }

    /// Keeps the decision, if it is a denial or chosen by chance.
    #[inline]
    fn keep(
        &self,
        answered: Answered,
        request: &LimiterRequest<'_>,
        verdict: &Verdict,
    ) -> Option<DecisionId> {
        let writer = self.decisions.as_ref()?;
        if !writer.wants(answered, &self.dice) {
            return None;
        }
        writer.keep(answered, request, verdict, &self.table.borrow())
    }

    fn unmatched(&self, request: &LimiterRequest<'_>, verdict: &Verdict) {
        if verdict.rules().domain(request.domain).is_none() {
            self.core.unknown_domains.add(1);
        }
    }

    /// The store could not decide, and others answered for it.
    #[cold]
    fn stood_in(&self, error: &StoreError, verdict: &Verdict) {
        self.core.failures[Failure::of(error) as usize].add(1);
        for limit in verdict.limits() {
            if let Some(stand_in) = StandIn::of(limit.ruling()) {
                self.core.stand_ins[stand_in as usize].add(1);
            }
        }
    }

    /// Counts the rules of a request, and looks at its keys if it is chosen for that.
    #[inline]
    fn count_rules(&self, request: &LimiterRequest<'_>, verdict: &Verdict) {
        if !self.table.borrow().is_of(verdict.rules()) && self.turn_over(verdict) == Turn::Late {
            self.count_late(request, verdict);
            // Its rules have other numbers, so there is no telling its keys.
            return;
        }
        let table = self.table.borrow();
        let looker = self.looker.as_ref();
        let mut looks = looker.map(|looker| (looker, looker.choose(&self.dice)));
        ruled::each(request, verdict, |ruled| {
            self.count(&table, ruled);
            if let Some((looker, looks)) = &mut looks {
                looker.pass(looks, (request, verdict, ruled), &self.dice);
            }
        });
    }

    #[inline]
    fn count(&self, table: &RuleTable, ruled: &Ruled<'_>) {
        let Some(rule) = ruled.rule else {
            self.core.overrides.add(ruled.outcome, ruled.hits);
            return;
        };
        table.cells(rule).add(ruled.outcome, ruled.hits);
        if let Some(reference) = table.reference(rule) {
            reference.add(&ruled.reference());
        }
    }

    /// Counts by the rules of `verdict` from now on, unless those are the ones from before.
    #[cold]
    fn turn_over(&self, verdict: &Verdict) -> Turn {
        let mut ledger = self.core.ledger();
        if ledger.is_before(verdict.rules()) {
            return Turn::Late;
        }
        let config = self.observatory.config();
        let rules = Arc::clone(verdict.rules());
        let table = Arc::new(RuleTable::new(rules, config.max_rules, config.names));
        ledger.turn_over(Arc::clone(&table));
        if let Some(mut lately) = self.core.lately() {
            lately.turn_over(table.rules());
        }
        *self.table.borrow_mut() = table;
        Turn::Over
    }

    /// Counts a verdict by rules that were replaced while it was made.
    #[cold]
    fn count_late(&self, request: &LimiterRequest<'_>, verdict: &Verdict) {
        let mut ledger = self.core.ledger();
        ruled::each(request, verdict, |ruled| match ruled.rule {
            Some(rule) => ledger.add_late(verdict.rules(), rule, Counts::of(ruled)),
            None => self.core.overrides.add(ruled.outcome, ruled.hits),
        });
    }
}
