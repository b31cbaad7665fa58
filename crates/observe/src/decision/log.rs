//! The ring of decisions with its names: written to by one writer for each thread, read by operators.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tidegate_limiter::{
    DecisionPath, Hits, LimitStatus, Outcome, RuleSet, Ruling, Standing, Verdict,
};
use tidegate_rules::RuleId;

use super::name_table::{NO_NAME, NameTable};
use super::packed::{NumberedDecision, PackedDecision};
use super::ring::{ChunkCursor, DecisionRing};
use super::{
    DecisionClock, DecisionId, DecisionQuery, DecisionReport, DecisionRetention, MAX_PATH,
    RecordedAnswer, RecordedCounter, RecordedDecision, RecordedRule,
};
use crate::core::Answered;
use crate::dice::Dice;
use crate::rule_table::{NameNumber, RuleTable};
use crate::{DecisionConfig, LimiterRequest, clock};

/// The decisions of all threads.
#[derive(Debug)]
pub(crate) struct DecisionLog {
    ring: DecisionRing,
    rules: NameTable<RecordedRule>,
    routes: NameTable<str>,
    sample_one_in: Option<NonZeroU32>,
    /// Makes ids of numbers: a keyed hash, so that nobody can tell one id from another.
    seed: RandomState,
}

/// Keeps the decisions of one thread.
#[derive(Debug)]
pub(crate) struct DecisionWriter {
    log: Arc<DecisionLog>,
    cursor: ChunkCursor,
    /// The number of allowed requests up to the next one that is kept. A countdown, because it costs less than chance on every
    /// request.
    until_sample: Cell<u32>,
    /// The numbers of the routes that this thread has met.
    routes: RefCell<HashMap<Box<str>, u32>>,
}

/// The largest number of routes with a name. A configuration has a few hundred, and reloads add to them.
const MAX_ROUTES: usize = 4_096;

/// The smallest number of rules whose names are kept, some of them after they were replaced.
const MIN_RULES: usize = 10_000;

// === impl DecisionLog ===

impl DecisionLog {
    /// An empty log for a server that counts `max_rules` rules apart.
    pub(crate) fn new(config: &DecisionConfig, max_rules: usize) -> Self {
        Self {
            ring: DecisionRing::new(config.capacity),
            rules: NameTable::new(max_rules.max(MIN_RULES)),
            routes: NameTable::new(MAX_ROUTES),
            sample_one_in: config.sample_one_in,
            seed: RandomState::new(),
        }
    }

    /// Returns the decision of this id, if it is kept.
    pub(crate) fn find(&self, id: DecisionId) -> Option<RecordedDecision> {
        let mut found = None;
        self.ring.read(|packed| {
            if packed.id() == id {
                found = Some(packed);
            }
        });
        found.as_ref().map(|packed| self.named(packed))
    }

    /// Returns the newest decisions, and how long they are kept.
    pub(crate) fn report(&self, query: DecisionQuery) -> DecisionReport {
        let mut newest = BinaryHeap::new();
        let (mut kept, mut first, mut last) = (0_usize, None, None);
        self.ring.read(|packed| {
            kept += 1;
            let time = packed.time();
            first = Some(first.map_or(time, |first| time.min(first)));
            last = last.max(Some(time));
            if query.only_denied && !packed.is_denied() {
                return;
            }
            newest.push(Reverse(packed));
            if newest.len() > query.most {
                newest.pop();
            }
        });
        // Sorted from the greatest down, because the heap holds them reversed.
        let newest = newest.into_sorted_vec();
        let capacity = self.ring.capacity();
        let span = first
            .zip(last)
            .map(|(first, last)| last.saturating_sub(first));
        DecisionReport {
            decisions: newest.iter().map(|Reverse(it)| self.named(it)).collect(),
            retention: DecisionRetention {
                capacity,
                kept,
                kept_for: span
                    .filter(|span| !span.is_zero())
                    .map(|span| time_to_fill(span, kept, capacity)),
                sampled_one_in: self.sample_one_in.map_or(0, NonZeroU32::get),
            },
        }
    }

    fn named(&self, packed: &PackedDecision) -> RecordedDecision {
        let decision = NumberedDecision::from(packed);
        RecordedDecision {
            id: decision.id,
            time: decision.time,
            clock: decision.clock,
            answer: decision.answer,
            path: decision.path,
            rule: self.rules.name(decision.rule),
            limit_index: decision.limit_index.into(),
            n_limits: decision.n_limits.into(),
            route: self.routes.name(decision.route),
            cost: decision.cost,
            counter: decision.counter,
            retry: decision.retry,
        }
    }
}

// === impl DecisionWriter ===

impl DecisionWriter {
    pub(crate) fn new(log: Arc<DecisionLog>, dice: &Dice) -> Self {
        let writer = Self {
            log,
            cursor: ChunkCursor::default(),
            until_sample: Cell::new(0),
            routes: RefCell::default(),
        };
        writer.draw_sample(dice);
        writer
    }

    /// Tells whether a decision is to be kept: a denial always, another one by chance.
    #[inline]
    pub(crate) fn wants(&self, answered: Answered, dice: &Dice) -> bool {
        match answered {
            Answered::Refused => true,
            Answered::Allowed | Answered::Shadowed => {
                let left = self.until_sample.get().wrapping_sub(1);
                self.until_sample.set(left);
                left == 0 && self.draw_sample(dice)
            }
            Answered::Unmatched => false,
        }
    }

    /// Draws the next allowed request that is kept: between 1 and twice the mean from now, so that traffic cannot keep step. Returns
    /// `false` if none is.
    #[cold]
    fn draw_sample(&self, dice: &Dice) -> bool {
        let Some(one_in) = self.log.sample_one_in else {
            return false;
        };
        let most = one_in.get().saturating_mul(2).saturating_sub(1);
        self.until_sample.set(dice.below(most) + 1);
        true
    }

    /// Keeps a decision, whose rules may be those of `table`, and returns its id.
    #[cold]
    pub(crate) fn keep(
        &self,
        answered: Answered,
        request: &LimiterRequest<'_>,
        verdict: &Verdict,
        table: &RuleTable,
    ) -> Option<DecisionId> {
        let deciding = verdict.deciding();
        let (rule, limit_index) = match &deciding {
            Some(status) => (
                self.rule(status, verdict.rules(), table),
                status.limit_index(),
            ),
            None => (NO_NAME, 0),
        };
        let (time, clock) = match verdict.time() {
            Some(time) => (Duration::from_nanos(time.nanos()), DecisionClock::Store),
            None => (clock::since_epoch(), DecisionClock::Node),
        };
        let cost = deciding.map_or(request.hits.max(1), |status| cost(request, &status));
        let mut id = DecisionId(0);
        let is_kept = self.log.ring.write(&self.cursor, |number| {
            id = DecisionId(self.log.seed.hash_one(number));
            PackedDecision::from(&NumberedDecision {
                id,
                number,
                time,
                clock,
                answer: match answered {
                    Answered::Refused => RecordedAnswer::Denied,
                    Answered::Shadowed => RecordedAnswer::Shadowed,
                    Answered::Allowed | Answered::Unmatched => RecordedAnswer::Allowed,
                },
                path: deciding.map_or(DecisionPath::Ban, |status| status.path()),
                rule,
                route: request.route.map_or(NO_NAME, |route| self.route(route)),
                limit_index,
                n_limits: u16::try_from(verdict.limits().len()).unwrap_or(u16::MAX),
                cost,
                counter: deciding.and_then(|status| counter(&status, cost)),
                retry: verdict.ban().or_else(|| deciding.and_then(|it| it.retry())),
            })
        });
        is_kept.then_some(id)
    }

    /// Returns the number of the rule of a limit.
    fn rule(&self, status: &LimitStatus<'_>, rules: &Arc<RuleSet>, table: &RuleTable) -> u32 {
        let Some(id) = status.rule_id() else {
            return NO_NAME;
        };
        // Rules that were replaced while the request was decided have other numbers.
        let known = table.is_of(rules).then(|| table.name_number(id)).flatten();
        let number = known.map_or(NO_NAME, NameNumber::get);
        if self.log.rules.has(number) {
            return number;
        }
        let number = self.log.rules.number(Arc::new(recorded_rule(rules, id)));
        if let Some(known) = known {
            known.set(number);
        }
        number
    }

    fn route(&self, route: &str) -> u32 {
        let mut routes = self.routes.borrow_mut();
        if let Some(number) = routes.get(route)
            && self.log.routes.has(*number)
        {
            return *number;
        }
        if routes.len() >= MAX_ROUTES {
            // Reloads have brought many names; those in use come back one by one.
            routes.clear();
        }
        let number = self.log.routes.number(route.into());
        routes.insert(route.into(), number);
        number
    }
}

/// The time in which `capacity` decisions are made, if `kept` of them took `span`.
fn time_to_fill(span: Duration, kept: usize, capacity: usize) -> Duration {
    let nanos = span.as_nanos().saturating_mul(capacity as u128) / kept.max(1) as u128;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The units that a request asked of a limit.
fn cost(request: &LimiterRequest<'_>, status: &LimitStatus<'_>) -> u64 {
    match request
        .descriptors
        .get(status.descriptor())
        .map(|it| it.hits)
    {
        Some(Hits::Refund(_)) => 0,
        Some(Hits::Take(hits)) => hits,
        Some(Hits::OfRequest) | None => request.hits.max(1),
    }
}

/// The counter of a limit before and after a decision of `cost` units.
fn counter(status: &LimitStatus<'_>, cost: u64) -> Option<RecordedCounter> {
    let Ruling::Decided(decision) = status.ruling() else {
        return None;
    };
    let remaining_before = match decision.outcome {
        Outcome::Allowed {
            standing: Standing::Within,
            ..
        } => decision.remaining.saturating_add(cost).min(decision.limit),
        // A denial charges nothing, and an extra allowance begins where nothing remains.
        Outcome::Allowed { .. } | Outcome::Denied { .. } => decision.remaining,
    };
    Some(RecordedCounter {
        limit: decision.limit,
        remaining_before,
        remaining_after: decision.remaining,
        reset_after: decision.reset_after,
    })
}

fn recorded_rule(rules: &RuleSet, id: RuleId) -> RecordedRule {
    let rule = rules.rule(id);
    let location = rule.location();
    let path: String = rule.path().chars().take(MAX_PATH).collect();
    RecordedRule {
        domain: rules.domain_of(id).name().into(),
        path: path.into(),
        file: location.file.to_string().into(),
        line: location.line,
        limits: rule
            .limits()
            .iter()
            .map(|it| it.description().into())
            .collect(),
    }
}
