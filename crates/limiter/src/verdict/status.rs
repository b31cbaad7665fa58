//! What the limits of one descriptor said together.

use tidegate_algorithms::{Decision, Retry};
use tidegate_store::Mode;

use super::{Answer, LimitStatus, LimitStatuses, Ruling, Verdict};
use crate::matched::{Applied, Force};

/// What became of one descriptor of a request.
#[derive(Clone, Copy, Debug)]
pub struct Status<'a> {
    verdict: &'a Verdict,
    index: usize,
    applied: &'a [Applied],
    decisions: &'a [Decision],
}

/// An iterator over the statuses of a request's descriptors.
#[derive(Clone, Debug)]
pub struct Statuses<'a> {
    verdict: &'a Verdict,
    applied: &'a [Applied],
    decisions: &'a [Decision],
    next: usize,
}

// === impl Status ===

impl<'a> Status<'a> {
    /// Whether the descriptor's limits admit it. Shadow limits do not count; a quota limit does, even
    /// where the request passes by another one.
    pub fn answer(&self) -> Answer {
        let mut refusing = self
            .limits()
            .filter(|it| it.mode() != Mode::Shadow && it.is_refused());
        if self.ban().is_some() || refusing.next().is_some() {
            Answer::Refused
        } else {
            Answer::Allowed
        }
    }

    /// When the ban on the descriptor ends, if it is banned.
    pub fn ban(&self) -> Option<Retry> {
        self.verdict.ban_on(self.index)
    }

    /// The limits that apply to the descriptor, in the order of the rule; none if no rule matches.
    pub fn limits(&self) -> LimitStatuses<'a> {
        LimitStatuses::new(self.verdict, self.applied, self.decisions)
    }

    /// The most restrictive limit: of those that refuse the one that lasts longest, else the one with
    /// least remaining; the first of equals. `None` if none was decided.
    pub fn deciding(&self) -> Option<LimitStatus<'a>> {
        let refuses = |it: &LimitStatus<'_>| it.mode() != Mode::Shadow && it.is_refused();
        // Most descriptors meet one limit.
        if let [_] = self.applied {
            let speaks = |it: &LimitStatus<'_>| refuses(it) || it.decision().is_some();
            return self.limits().next().filter(speaks);
        }
        let refusing = self.limits().filter(refuses);
        refusing.reduce(LimitStatus::later).or_else(|| {
            self.limits()
                .filter_map(|limit| Some((limit.decision()?.remaining, limit)))
                .min_by_key(|(remaining, _)| *remaining)
                .map(|(_, limit)| limit)
        })
    }

    /// Whether the descriptor has limits and all of them admit everything.
    pub fn is_unlimited(&self) -> bool {
        !self.applied.is_empty() && self.limits().all(|it| it.ruling() == Ruling::Unlimited)
    }

    /// Whether a limit of the descriptor would have refused, were it not in shadow mode.
    pub fn is_shadowed(&self) -> bool {
        self.limits()
            .any(|limit| limit.mode() == Mode::Shadow && limit.is_refused())
    }

    /// Whether a limit of the descriptor admits, but is nearly used up.
    pub fn is_near(&self) -> bool {
        self.limits().any(|limit| limit.is_near())
    }
}

// === impl Statuses ===

impl<'a> Statuses<'a> {
    pub(super) fn of(verdict: &'a Verdict) -> Self {
        let (applied, decisions) = (&verdict.applied[..], &verdict.decisions[..]);
        Self {
            verdict,
            applied,
            decisions,
            next: 0,
        }
    }
}

impl<'a> Iterator for Statuses<'a> {
    type Item = Status<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.verdict.n_descriptors {
            return None;
        }
        // Limits stand in the order of their descriptors.
        let is_own = |applied: &&Applied| usize::from(applied.descriptor) == self.next;
        let n_own = self.applied.iter().take_while(is_own).count();
        let (applied, rest) = self.applied.split_at(n_own);
        let n_decided = applied
            .iter()
            .filter(|it| it.force == Force::Charged)
            .count();
        // There are no decisions at all if the store failed.
        let (decisions, rest_decisions) =
            self.decisions.split_at(n_decided.min(self.decisions.len()));
        (self.applied, self.decisions) = (rest, rest_decisions);
        let index = self.next;
        self.next += 1;
        Some(Status {
            verdict: self.verdict,
            index,
            applied,
            decisions,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let n_left = self.verdict.n_descriptors - self.next;
        (n_left, Some(n_left))
    }
}

impl ExactSizeIterator for Statuses<'_> {}
