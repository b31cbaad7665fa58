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
use crate::ruled;
use crate::{Asked, TopConfig};

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

/// For how many requests each look at this one stands; zero if it is not looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    busiest: u32,
    refused: u32,
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

    /// Whether to look at a request of which the gravest word was `gravest`.
    #[inline]
    pub(crate) fn choose(&self, gravest: Outcome, dice: &Dice) -> Option<Looks> {
        let busiest = self.weigh(TopKind::Busiest, dice);
        let refused = if gravest >= Outcome::Shadowed {
            self.weigh(TopKind::Refused, dice)
        } else {
            0
        };
        (busiest | refused != 0).then_some(Looks { busiest, refused })
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

    /// Looks at a request.
    #[cold]
    pub(crate) fn look(&self, looks: Looks, asked: &Asked<'_>, verdict: &Verdict) {
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
        ruled::each(asked, verdict, |ruled| {
            let (Some(rule), Some(descriptor)) =
                (ruled.rule, asked.descriptors.get(ruled.descriptor))
            else {
                return;
            };
            let key = Key::new(verdict.rules().rule(rule), descriptor.entries);
            let mut sighting = Sighting {
                rule,
                key,
                hash: key.hash(&self.seed),
                weight: u64::from(looks.busiest),
            };
            if looks.busiest > 0 {
                lately.add(TopKind::Busiest, &sighting);
            }
            if looks.refused > 0 && ruled.outcome >= Outcome::Shadowed {
                sighting.weight = u64::from(looks.refused);
                lately.add(TopKind::Refused, &sighting);
            }
        });
    }
}
