//! The failure policy: who speaks for a limit when the store could not decide on it. This is the only
//! place where that is chosen.

use std::time::Duration;

use smallvec::SmallVec;
use tidegate_rules::{Limit, OnFailure};
use tidegate_store::{
    Admission, Charge, Charging, Consistency, Decisions, Mode, Receipt, Store, StoreError,
};

use crate::Answer;
use crate::bill::Charges;

/// When who was refused for want of a store may come again. By then a store that was only slow answers,
/// and of a dead one nobody knows better.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What became of a request that the store could not decide.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Why it could not.
    pub(crate) error: StoreError,
    /// Whether the request as a whole may pass.
    pub(crate) admission: Admission,
    /// The receipt of this node, if it decided alone.
    pub(crate) receipt: Option<Receipt>,
    /// For each limit that was to be charged the answer of its policy; `None` if this node decided on it.
    pub(crate) answers: SmallVec<[Option<Answer>; 8]>,
}

/// A request that the store could not decide, limit by limit.
struct Orphan<'a> {
    charges: &'a [Charge<'a>],
    deputies: SmallVec<[Deputy; 8]>,
    charging: Charging,
}

/// Who speaks for a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deputy {
    /// This node, by what it knows alone.
    Node,
    /// Nobody: the policy of the limit is the answer.
    Policy(Answer),
}

/// Answers for a store that failed with `error` on `charges`, whose limits are `limits` in the same order;
/// one that came with the request is none of the rules'.
///
/// What this node decides, it decides in one step. Together with the answers of the policies the request is
/// judged as the store would have: under `all_or_none` nothing is charged if it is refused.
#[cold]
pub(crate) fn stand_in<'a>(
    store: &impl Store,
    charges: &[Charge<'_>],
    limits: impl Iterator<Item = Option<&'a Limit>>,
    charging: Charging,
    decisions: &mut Decisions,
    error: StoreError,
) -> Failed {
    // Whatever the store had decided before it failed is not to be believed.
    decisions.clear();
    let deputies = limits
        .zip(charges)
        .map(|(limit, charge)| Deputy::of(limit, charge));
    let orphan = Orphan {
        charges,
        deputies: deputies.collect(),
        charging,
    };
    let decided = orphan.decide_alone(store, decisions);
    let by_policy = orphan.admission_by_policy();
    Failed {
        error,
        admission: match &decided {
            Some(receipt) if by_policy == Admission::Admitted => receipt.admission,
            _ => by_policy,
        },
        receipt: decided,
        answers: orphan.answers(decided),
    }
}

// === impl Orphan ===

impl Orphan<'_> {
    /// Lets this node decide on what it speaks for, beside the answers of the policies. `None` if there is
    /// nothing, or if nobody stands by.
    fn decide_alone(&self, store: &impl Store, decisions: &mut Decisions) -> Option<Receipt> {
        let quotas = if self.is_any(Mode::Quota, Deputy::Policy(Answer::Allowed)) {
            // One quota limit is enough, and there is one: the others only count.
            Mode::Shadow
        } else {
            Mode::Quota
        };
        let is_charged = match self.charging {
            Charging::AllOrNone => self.admission_by_policy() == Admission::Admitted,
            Charging::EveryMatch => true,
        };
        let alone = self.of_node().map(|charge| Charge {
            mode: match charge.mode {
                Mode::Quota => quotas,
                other => other,
            },
            cost: if is_charged { charge.cost } else { 0 },
            ..*charge
        });
        let alone: Charges<'_> = alone.collect();
        if alone.is_empty() {
            return None;
        }
        let decided = store.charge_alone(&alone, self.charging, decisions);
        if decided.is_err() {
            decisions.clear();
        }
        decided.ok()
    }

    /// Whether the policies alone refuse, whatever this node says.
    fn admission_by_policy(&self) -> Admission {
        let refused = Deputy::Policy(Answer::Refused);
        let quotas = || self.of_mode(Mode::Quota);
        let all_quotas_refuse = quotas().next().is_some() && quotas().all(|it| it == refused);
        if all_quotas_refuse || self.is_any(Mode::Enforce, refused) {
            Admission::Refused
        } else {
            Admission::Admitted
        }
    }

    /// What the policies say. Who this node was to speak for passes, if it could not.
    fn answers(&self, decided: Option<Receipt>) -> SmallVec<[Option<Answer>; 8]> {
        let answer = |deputy: &Deputy| match (deputy, decided) {
            (Deputy::Policy(answer), _) => Some(*answer),
            (Deputy::Node, None) => Some(Answer::Allowed),
            (Deputy::Node, Some(_)) => None,
        };
        self.deputies.iter().map(answer).collect()
    }

    fn of_node(&self) -> impl Iterator<Item = &Charge<'_>> {
        let charges = self.charges.iter().zip(&self.deputies);
        charges.filter_map(|(charge, deputy)| (*deputy == Deputy::Node).then_some(charge))
    }

    fn of_mode(&self, mode: Mode) -> impl Iterator<Item = Deputy> {
        let charges = self.charges.iter().zip(&self.deputies);
        charges.filter_map(move |(charge, deputy)| (charge.mode == mode).then_some(*deputy))
    }

    fn is_any(&self, mode: Mode, wanted: Deputy) -> bool {
        self.of_mode(mode).any(|deputy| deputy == wanted)
    }
}

// === impl Deputy ===

impl Deputy {
    /// A limit that is decided from memory anyway does not mind that the store is gone. A split one is not
    /// among those: what a node's share decides never fails, and who has none must not make one up unless
    /// the policy says so. One that came with the request has no policy of its own and goes by the default.
    fn of(limit: Option<&Limit>, charge: &Charge<'_>) -> Self {
        match charge.consistency {
            Consistency::Node | Consistency::Eventual => return Self::Node,
            Consistency::Strict | Consistency::Leased | Consistency::Split => {}
        }
        match limit.map_or(OnFailure::default(), Limit::on_failure) {
            OnFailure::Local => Self::Node,
            OnFailure::Allow => Self::Policy(Answer::Allowed),
            OnFailure::Deny => Self::Policy(Answer::Refused),
        }
    }
}
