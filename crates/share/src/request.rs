//! One request whose limits are shared in several ways: what memory can decide is taken first, the rest
//! goes to the common store in one call, and a denied request puts back what was taken.

use std::sync::LazyLock;
use std::time::Duration;

use smallvec::SmallVec;
use tidegate_algorithms::{Algorithm, Allowance, Decision, Headroom, Quota, QuotaSpec, Time};
use tidegate_store::{
    Admission, Charge, Charging, Clock, Consistency, CounterKey, Decisions, LimitId, Mode, OnFull,
    StoreError,
};

use crate::memory::{FromMemory, Took};
use crate::node::Node;

/// One request on its way.
pub(crate) struct Request<'a> {
    charges: &'a [Charge<'a>],
    charging: Charging,
    /// One for each charge.
    answers: SmallVec<[Answer; 8]>,
    /// The charges that went to shared counters of this node, a bit for each.
    shared: u64,
}

/// A request that the common store is asked about. Dropped before that is decided, for there was an error
/// or nobody waits any more, it puts back what it took: a caller who goes away is not to use up what
/// others share.
pub(crate) struct Undecided<'a, W: Ways> {
    ways: &'a W,
    request: Option<Request<'a>>,
}

/// The ways of sharing a limit that a node has.
pub(crate) trait Ways {
    /// The clock of the node's own store.
    type Wall: Clock;

    /// The limits of this node alone.
    fn node(&self) -> &Node<Self::Wall>;

    /// Who decides on limits with this consistency one by one from memory; `None` if nobody does.
    fn way(&self, consistency: Consistency) -> Option<&dyn FromMemory>;

    /// What a limit that memory cannot decide on would most likely say, without charging it, for a
    /// request that is refused anyway; `None` if nobody knows.
    fn tell(&self, charge: &Charge<'_>) -> Option<Decision>;
}

/// The answer of one limit, and its source.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// Nothing yet: the common store is to be asked.
    Open,
    /// Decided from memory, and charged there if it admits.
    Taken(Took),
    /// Decided by the common store, or only told.
    Told(Decision),
}

/// The meaning of the answers so far for the whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outlook {
    /// It is refused, whatever the rest says.
    is_refused: bool,
    /// A quota limit has admitted it: what the others of them say counts no more.
    is_quota_met: bool,
}

/// The charges that the common store decides on.
pub(crate) type Rest<'a> = SmallVec<[Charge<'a>; 8]>;

/// A limit that admits nobody. Sent along with the rest of a request that memory has refused: so each
/// other limit says what it thinks of the request, and none is charged.
static CLOSED: LazyLock<Quota> = LazyLock::new(|| {
    let spec = QuotaSpec {
        limit: 0,
        window: Duration::from_secs(1),
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    };
    Quota::new(&spec).expect("a window of a second is in range")
});

// === impl Request ===

impl<'a> Request<'a> {
    /// Takes from memory whatever can be.
    pub(crate) fn take(
        charges: &'a [Charge<'a>],
        charging: Charging,
        ways: &impl Ways,
    ) -> Result<Self, StoreError> {
        let mut request = Self {
            charges,
            charging,
            answers: SmallVec::new(),
            shared: 0,
        };
        let taken = request
            .take_one_by_one(ways)
            .and_then(|()| request.take_of_node(ways));
        if let Err(error) = taken {
            request.put_back(ways);
            return Err(error);
        }
        request.tell_if_refused(ways);
        Ok(request)
    }

    /// The first time at which memory was charged, by the clock of each; `None` if it was not.
    pub(crate) fn earliest_charge(&self) -> Option<Time> {
        let taken = self.answers.iter().filter_map(Answer::charged);
        taken.filter_map(|took| took.charged).min()
    }

    /// The charges that went to shared counters of this node, a bit for each.
    pub(crate) const fn shared(&self) -> u64 {
        self.shared
    }

    /// Fills in what somebody knows of limits that are still open.
    pub(crate) fn recall(&mut self, know: impl Fn(&Charge<'_>) -> Option<Decision>) {
        for (charge, answer) in self.charges.iter().zip(&mut self.answers) {
            if let Answer::Open = answer
                && let Some(decision) = know(charge)
            {
                *answer = Answer::Told(decision);
            }
        }
    }

    /// The charges that the common store has to decide; none if that is not needed.
    pub(crate) fn rest(&self) -> Rest<'a> {
        self.with_outlook(|_| true)
    }

    fn take_one_by_one(&mut self, ways: &impl Ways) -> Result<(), StoreError> {
        for charge in self.charges {
            let taken = match ways.way(charge.consistency) {
                Some(way) => way.take(charge, self.charging)?,
                None => None,
            };
            self.answers.push(taken.map_or(Answer::Open, Answer::Taken));
        }
        Ok(())
    }

    /// Decides on the limits that are the node's own, all in one step.
    fn take_of_node(&mut self, ways: &impl Ways) -> Result<(), StoreError> {
        let is_own = |charge: &Charge<'_>| charge.consistency == Consistency::Node;
        if !self.charges.iter().any(is_own) {
            return Ok(());
        }
        let mut own = self.with_outlook(is_own);
        if self.charging == Charging::AllOrNone {
            // Whether one of all quota limits admits shows only when all have spoken.
            for charge in own.iter_mut().filter(|charge| charge.mode == Mode::Quota) {
                charge.mode = Mode::Shadow;
            }
        }
        let mut decisions = Decisions::new();
        let receipt = ways.node().take(&own, self.charging, &mut decisions)?;
        let is_charged = self.charging == Charging::EveryMatch
            || Admission::of(&own, &decisions) == Admission::Admitted;
        let answers = self.charges.iter().zip(&mut self.answers).enumerate();
        let own = answers.filter(|(_, (charge, _))| is_own(charge));
        for (of_node, ((index, (_, answer)), decision)) in own.zip(decisions).enumerate() {
            self.shared |= u64::from(receipt.is_shared(of_node)) << index;
            *answer = if is_charged {
                Answer::Taken(Took::new(decision, Some(receipt.now)))
            } else {
                Answer::Told(decision)
            };
        }
        Ok(())
    }

    /// The open charges of one sort, as somebody else is to decide on them: in the light of what is
    /// known already.
    fn with_outlook(&self, is_sort: impl Fn(&Charge<'_>) -> bool) -> Rest<'a> {
        if self.charging == Charging::EveryMatch {
            return self
                .open()
                .filter(|charge| is_sort(charge))
                .copied()
                .collect();
        }
        let outlook = self.outlook();
        let adapt = |charge: &Charge<'a>| match charge.mode {
            // Charged if it admits and the request passes, and no longer able to refuse it.
            Mode::Quota if outlook.is_quota_met => Charge {
                mode: Mode::Shadow,
                ..*charge
            },
            _ => *charge,
        };
        let open = self.open().filter(|charge| is_sort(charge));
        let mut rest: Rest<'a> = open.map(adapt).collect();
        if outlook.is_refused && !rest.is_empty() {
            rest.push(closed());
        }
        rest
    }

    /// Fills in what the common store said of the [`rest`](Self::rest).
    pub(crate) fn fill(&mut self, told: &[Decision]) {
        let open = self.answers.iter_mut();
        let open = open.filter(|answer| matches!(answer, Answer::Open));
        for (answer, decision) in open.zip(told) {
            *answer = Answer::Told(*decision);
        }
    }

    /// Weighs all answers. A refused request puts back what it took.
    pub(crate) fn close(self, ways: &impl Ways, decisions: &mut Decisions) -> Admission {
        decisions.clear();
        decisions.extend(self.answers.iter().filter_map(Answer::decision));
        let admission = Admission::of(self.charges, decisions);
        self.note_demand(ways, admission, decisions);
        if (self.charging, admission) == (Charging::AllOrNone, Admission::Refused) {
            self.put_back(ways);
            for ((charge, answer), decision) in self.answered().zip(decisions) {
                if let Some(took) = answer.charged()
                    && !charge.quota.is_postpaid()
                {
                    match ways.way(charge.consistency) {
                        Some(way) => way.correct(charge, took, decision),
                        None => ways.node().correct(charge, decision),
                    }
                }
            }
        }
        admission
    }

    /// Counts the request as demand for shares, which most requests have none of.
    fn note_demand(&self, ways: &impl Ways, admission: Admission, decisions: &[Decision]) {
        let is_split = |charge: &Charge<'_>| charge.consistency == Consistency::Split;
        if self.charges.iter().any(is_split)
            && let Some(way) = ways.way(Consistency::Split)
        {
            let is_charged =
                self.charging == Charging::EveryMatch || admission == Admission::Admitted;
            way.note_demand(self.charges, decisions, is_charged);
        }
    }

    /// Takes back all that was charged in memory.
    pub(crate) fn put_back(&self, ways: &impl Ways) {
        for (index, (charge, answer)) in self.answered().enumerate() {
            if let Some(took) = answer.charged()
                && charge.cost > 0
                && !charge.quota.is_postpaid()
            {
                match ways.way(charge.consistency) {
                    Some(way) => way.put_back(charge, took),
                    None => ways
                        .node()
                        .put_back(charge, took, self.shared >> index & 1 == 1),
                }
            }
        }
    }

    /// A caller who hammers is to cost the common store nothing: if memory refuses the request and knows
    /// about what the other limits would say, nobody is asked.
    fn tell_if_refused(&mut self, ways: &impl Ways) {
        if self.charging != Charging::AllOrNone || !self.outlook().is_refused {
            return;
        }
        // A postpaid limit is charged all the same.
        let tell = |charge: &Charge<'_>| {
            let is_due = charge.quota.is_postpaid() && charge.cost > 0;
            if is_due { None } else { ways.tell(charge) }
        };
        let told: Option<SmallVec<[Decision; 8]>> = self.open().map(tell).collect();
        if let Some(told) = told {
            self.fill(&told);
        }
    }

    fn outlook(&self) -> Outlook {
        let (mut quotas, mut denied, mut is_quota_met, mut is_refused) = (0, 0, false, false);
        for (charge, answer) in self.answered() {
            let allowed = answer.decision().map(|decision| decision.is_allowed());
            match charge.mode {
                Mode::Enforce => is_refused |= allowed == Some(false),
                Mode::Quota => {
                    quotas += 1;
                    denied += u32::from(allowed == Some(false));
                    is_quota_met |= allowed == Some(true);
                }
                Mode::Shadow => {}
            }
        }
        Outlook {
            is_refused: is_refused || (quotas > 0 && quotas == denied),
            is_quota_met,
        }
    }

    fn answered(&self) -> impl Iterator<Item = (&'a Charge<'a>, &Answer)> {
        self.charges.iter().zip(&self.answers)
    }

    /// The charges that have no answer yet.
    fn open(&self) -> impl Iterator<Item = &'a Charge<'a>> {
        let is_open = |(_, answer): &(_, &Answer)| matches!(answer, Answer::Open);
        self.answered().filter(is_open).map(|(charge, _)| charge)
    }
}

// === impl Undecided ===

impl<'a, W: Ways> Undecided<'a, W> {
    pub(crate) const fn new(ways: &'a W, request: Request<'a>) -> Self {
        Self {
            ways,
            request: Some(request),
        }
    }

    /// Fills in what was said of the [`rest`](Request::rest).
    pub(crate) fn fill(&mut self, told: &[Decision]) {
        if let Some(request) = &mut self.request {
            request.fill(told);
        }
    }

    /// Weighs all answers.
    pub(crate) fn close(mut self, decisions: &mut Decisions) -> Admission {
        match self.request.take() {
            Some(request) => request.close(self.ways, decisions),
            None => Admission::Refused,
        }
    }
}

impl<W: Ways> Drop for Undecided<'_, W> {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            request.put_back(self.ways);
        }
    }
}

// === impl Answer ===

impl Answer {
    const fn decision(&self) -> Option<Decision> {
        match self {
            Self::Open => None,
            Self::Taken(took) => Some(took.decision),
            Self::Told(decision) => Some(*decision),
        }
    }

    /// The charge that was made in memory for it.
    const fn charged(&self) -> Option<&Took> {
        match self {
            Self::Taken(took) if took.decision.is_allowed() => Some(took),
            _ => None,
        }
    }
}

fn closed() -> Charge<'static> {
    Charge {
        key: CounterKey {
            limit: LimitId(0),
            values: &[],
        },
        quota: &CLOSED,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency: Consistency::Strict,
    }
}
