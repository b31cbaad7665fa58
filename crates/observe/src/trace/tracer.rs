//! Which decisions of a core become spans.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tidegate_limiter::{Origin, Verdict};

use super::span::Span;
use super::{Sampling, SpanQueue, TraceContext, TraceHeaders};
use crate::core::{Answered, Failure};
use crate::dice::Dice;
use crate::{LimiterRequest, clock};

/// The longest `tracestate` that is passed on. The standard asks for as many at least.
const MAX_STATE: usize = 512;

/// Makes spans of the decisions of one core.
#[derive(Debug)]
pub(crate) struct Tracer {
    queue: SpanQueue,
    sampling: Sampling,
    ids: Ids,
}

/// Ids that nobody can foresee, and that no other process makes: a keyed hash of a count.
#[derive(Debug, Default)]
struct Ids {
    seed: RandomState,
    n_made: Cell<u64>,
}

// === impl Tracer ===

impl Tracer {
    pub(crate) fn new(queue: SpanQueue, sampling: Sampling) -> Self {
        Self {
            queue,
            sampling,
            ids: Ids::default(),
        }
    }

    /// Makes a span of a decision, if it is one to be traced.
    pub(crate) fn record(
        &self,
        request: &LimiterRequest<'_>,
        verdict: &Verdict,
        took: Duration,
        dice: &Dice,
    ) {
        let parent = request.trace.traceparent.and_then(TraceContext::parse);
        let is_traced = match &parent {
            Some(parent) => parent.sampled,
            None => dice.in_millionths(self.sampling.millionths()),
        };
        if is_traced {
            self.queue.add(self.span(parent, request, verdict, took));
        }
    }

    #[cold]
    fn span(
        &self,
        parent: Option<TraceContext>,
        request: &LimiterRequest<'_>,
        verdict: &Verdict,
        took: Duration,
    ) -> Span {
        let domain = verdict.rules().domain(request.domain);
        let rule = verdict.deciding().and_then(|limit| match limit.origin() {
            Origin::Rule { rule, .. } => Some(rule.path().into()),
            Origin::Override(_) => None,
        });
        let end = clock::since_epoch();
        Span {
            trace_id: parent.map_or_else(|| self.ids.of_trace(), |parent| parent.trace_id),
            id: self.ids.next().to_be_bytes(),
            parent_id: parent.map(|parent| parent.parent_id),
            state: parent
                .and_then(|_| state(&request.trace))
                .unwrap_or_default(),
            start: end.saturating_sub(took),
            end,
            domain: domain.map(|domain| domain.name().into()),
            rule,
            outcome: Answered::of(verdict).name(),
            failure: verdict.failure().map(|error| Failure::of(error).name()),
        }
    }
}

// === impl Ids ===

impl Ids {
    fn of_trace(&self) -> [u8; 16] {
        let halves = [self.next(), self.next()];
        (u128::from(halves[0]) << 64 | u128::from(halves[1])).to_be_bytes()
    }

    /// Zero is no id.
    fn next(&self) -> u64 {
        self.n_made.set(self.n_made.get().wrapping_add(1));
        self.seed.hash_one(self.n_made.get()).max(1)
    }
}

/// The state of the trace, if it is one that can be passed on.
fn state(trace: &TraceHeaders<'_>) -> Option<Box<str>> {
    let state = trace.tracestate?.trim();
    let is_printable = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    (state.len() <= MAX_STATE && state.bytes().all(is_printable)).then(|| state.into())
}
