//! Quotas cut to a share, made once for each limit and not for each decision.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tidegate_algorithms::Quota;
use tidegate_store::{Charge, LimitId};

/// The most cuts that are kept. Beyond that all are forgotten and made anew as they are needed: of limits
/// that come with requests there can be any number.
const MOST_CUTS: usize = 16_384;

/// The cuts of all limits that were met.
#[derive(Debug, Default)]
pub(super) struct Cuts(RwLock<HashMap<LimitId, Made>>);

/// A cut that was made.
#[derive(Clone, Debug)]
struct Made {
    whole: Quota,
    parts: u32,
    cut: Cut,
}

/// What to enforce of a quota.
#[derive(Clone, Debug)]
pub(super) enum Cut {
    /// All of it.
    None,
    /// This instead.
    To(Arc<Quota>),
}

// === impl Cuts ===

impl Cuts {
    /// One of `parts` of the quota of `limit`.
    pub(super) fn find(&self, limit: LimitId, whole: &Quota, parts: u32) -> Cut {
        let made = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &&Made| it.parts == parts && it.whole == *whole;
        if let Some(made) = made.get(&limit).filter(is_it) {
            return made.cut.clone();
        }
        drop(made);
        self.make(limit, whole, parts)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    #[cold]
    fn make(&self, limit: LimitId, whole: &Quota, parts: u32) -> Cut {
        let cut = Cut::new(whole, parts);
        let made = Made {
            whole: whole.clone(),
            parts,
            cut: cut.clone(),
        };
        let mut cuts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if cuts.len() >= MOST_CUTS {
            cuts.clear();
        }
        cuts.insert(limit, made);
        cut
    }
}

// === impl Cut ===

impl Cut {
    /// One of `parts`, at least 1. What cannot be cut stays whole.
    fn new(whole: &Quota, parts: u32) -> Self {
        whole
            .part(1, u64::from(parts), 1)
            .map_or(Self::None, |part| Self::To(Arc::new(part)))
    }

    /// The same charge of what is enforced.
    pub(super) fn apply<'a>(&'a self, charge: &Charge<'a>) -> Charge<'a> {
        Charge {
            quota: self.quota(charge.quota),
            ..*charge
        }
    }

    /// The quota to go by instead of `whole`.
    pub(super) fn quota<'a>(&'a self, whole: &'a Quota) -> &'a Quota {
        match self {
            Self::None => whole,
            Self::To(part) => part,
        }
    }
}
