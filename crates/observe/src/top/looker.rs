//! Which requests of a core are looked at.

use std::cell::Cell;
use std::hash::RandomState;
use std::sync::Arc;

use tidegate_limiter::Verdict;

use super::TopKind;
use super::key::Key;
use super::lately::Turned;
use super::tally::Sighting;
use crate::core::Core;
use crate::dice::Dice;
use crate::rule_table::Outcome;
use crate::ruled::Ruled;
use crate::{LimiterRequest, TopConfig};

/// Looks at some of the requests of one core: at the first of every window, so that quiet times are
/// seen whole, and then at one in so many.
#[derive(Debug)]
pub(crate) struct Looker {
    config: TopConfig,
    seed: RandomState,
    core: Arc<Core>,
    /// How many are still looked at whatever the dice say, by [`TopKind`].
    first: [Cell<u32>; 2],
}

/// The looks at one request: for how many requests each stands; zero if it is not looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    busiest: u32,
    /// Chosen at the first limit that denies.
    refused: Option<u32>,
}

// === impl Looker ===

impl Looker {
    /// How many requests of a window are looked at whatever the dice say.
    const N_FIRST: u32 = 1_000;

    pub(crate) fn new(config: TopConfig, seed: RandomState, core: Arc<Core>) -> Self {
        Self {
            config,
            seed,
            core,
            first: [Cell::new(Self::N_FIRST), Cell::new(Self::N_FIRST)],
        }
    }

    /// The looks at a request of which no limit is known yet.
    #[inline]
    pub(crate) fn choose(&self, dice: &Dice) -> Looks {
        Looks {
            busiest: self.weigh(TopKind::Busiest, dice),
            refused: None,
        }
    }

    /// Looks at one rule of a request, if that was chosen.
    #[inline]
    pub(crate) fn pass(
        &self,
        looks: &mut Looks,
        (request, verdict, ruled): (&LimiterRequest<'_>, &Verdict, &Ruled<'_>),
        dice: &Dice,
    ) {
        let refused = if ruled.outcome >= Outcome::Shadowed {
            let weigh = || self.weigh(TopKind::Refused, dice);
            *looks.refused.get_or_insert_with(weigh)
        } else {
            0
        };
        if looks.busiest | refused != 0 {
            self.look([looks.busiest, refused], request, verdict, ruled);
        }
    }

    #[inline]
    fn weigh(&self, kind: TopKind, dice: &Dice) -> u32 {
        let first = &self.first[kind as usize];
        if first.get() > 0 {
            first.set(first.get() - 1);
            return 1;
        }
        let one_in = self.config.sample_one_in;
        if dice.one_in(one_in) { one_in.get() } else { 0 }
    }

    /// Looks at one rule of a request, with a weight for each [`TopKind`].
    #[cold]
    fn look(
        &self,
        weights: [u32; 2],
        request: &LimiterRequest<'_>,
        verdict: &Verdict,
        ruled: &Ruled<'_>,
    ) {
        let (Some(rule), Some(descriptor)) =
            (ruled.rule, request.descriptors.get(ruled.descriptor))
        else {
            return;
        };
        // Somebody reads: that is rare, and a look less does no harm, but waiting would.
        let Some(mut lately) = self.core.try_lately() else {
            return;
        };
        if let Some(now) = verdict.time()
            && lately.turn(now) == Turned::Yes
        {
            for first in &self.first {
                first.set(Self::N_FIRST);
            }
        }
        let key = Key::new(verdict.rules().rule(rule), descriptor.entries);
        let hash = key.hash(&self.seed);
        let mut add = |kind, weight: u32| {
            if weight > 0 {
                let weight = u64::from(weight);
                let sighting = Sighting {
                    rule,
                    key,
                    hash,
                    weight,
                };
                lately.add(kind, &sighting);
            }
        };
        add(TopKind::Busiest, weights[0]);
        add(TopKind::Refused, weights[1]);
    }
}
