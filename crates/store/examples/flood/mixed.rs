//! Floods of one limit while callers of another one send requests, of requests with several limits, and from several
//! threads.

use crate::attack::Attack;
use crate::target::Target;

/// A flood by one limit, and the limit of the other callers.
#[derive(Clone, Debug)]
pub(crate) struct MixedAttack {
    pub(crate) mix: Mix,
    pub(crate) attack: Attack,
    pub(crate) flood: Target,
    pub(crate) target: Target,
}

/// The ways in which a flood differs from one of requests for one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// Its keys are charged to another limit than the callers, once each.
    OtherLimit,
    /// They are driven over that other limit.
    OtherLimitDenied,
    /// Each request has two limits.
    SeveralLimits,
    /// Each request has two limits, and every one that matches is charged.
    SeveralLimitsEveryMatch,
    /// Keys are driven over their limit where every limit that matches is charged.
    EveryMatch,
    /// Several threads send the flood, and another one the requests of the callers.
    Threads,
}

// === impl Mix ===

impl Mix {
    /// The floods of this kind against a store of `mebibytes`, on each limit. As fast as memory allows by
    /// `docs/failure.md`: a key has to survive from its first request to its second one.
    pub(crate) fn attacks(self, mebibytes: u64) -> Vec<MixedAttack> {
        let all = Target::all().into_iter();
        match self {
            Self::OtherLimit => all
                .flat_map(|target| {
                    ["fixed_window", "sliding_log of 100"].map(|flood| (target.clone(), flood))
                })
                .map(|(target, flood)| self.attack(mebibytes, Target::named(flood), target))
                .collect(),
            Self::OtherLimitDenied => all
                .flat_map(|target| {
                    ["token_bucket", "sub_windows"].map(|flood| (target.clone(), flood))
                })
                .map(|(target, flood)| self.attack(mebibytes, Target::named(flood), target))
                .collect(),
            Self::SeveralLimits => self.attacks_on(mebibytes, all.map(Target::with_second_limit)),
            Self::SeveralLimitsEveryMatch => {
                let all = all.map(Target::with_second_limit);
                self.attacks_on(mebibytes, all.map(Target::with_every_match))
            }
            Self::EveryMatch => self.attacks_on(mebibytes, all.map(Target::with_every_match)),
            Self::Threads => self.attacks_on(mebibytes, all),
        }
    }

    fn attacks_on(self, mebibytes: u64, targets: impl Iterator<Item = Target>) -> Vec<MixedAttack> {
        targets
            .map(|target| self.attack(mebibytes, target.clone(), target))
            .collect()
    }

    fn attack(self, mebibytes: u64, flood: Target, target: Target) -> MixedAttack {
        let requests_per_key = match self {
            Self::OtherLimitDenied | Self::EveryMatch => flood.to_be_denied(),
            _ => 1,
        };
        let keys_in_a_second = match self {
            // The keys of a large log take more memory, and denied ones are in use for two seconds.
            Self::OtherLimitDenied | Self::EveryMatch if flood.quota.limit() > 4 => 300,
            _ if flood.quota.limit() > 4 => 1_000,
            Self::OtherLimitDenied | Self::EveryMatch => 2_000,
            Self::SeveralLimits | Self::SeveralLimitsEveryMatch => 2_500,
            Self::OtherLimit | Self::Threads => 5_000,
        };
        let seconds = 80;
        let attack = Attack {
            keys: keys_in_a_second * seconds * mebibytes,
            requests_per_key,
            rounds: 1,
            rate: keys_in_a_second * requests_per_key * mebibytes,
            max_memory: usize::try_from(mebibytes << 20).expect("some memory"),
            threads: if self == Self::Threads { 4 } else { 1 },
        };
        MixedAttack {
            mix: self,
            attack,
            flood,
            target,
        }
    }
}
