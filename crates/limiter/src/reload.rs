//! Rules that come into force if the store can count all their limits.

use std::sync::Arc;

use tidegate_rules::{Rule, RuleSet, Terms};
use tidegate_store::{OldCounters, Store, StoreError};

use crate::bill::consistency;
use crate::{Limiter, LimiterConfig};

// === impl Limiter ===

impl<S: Store> Limiter<S> {
    /// The same as [`new`](Self::new) if the store can count all limits of `rules`. Counters that the store was started
    /// with make way for them, if no rule names them.
    ///
    /// # Errors
    ///
    /// If it cannot.
    pub fn try_new(store: S, rules: RuleSet, config: LimiterConfig) -> Result<Self, StoreError> {
        reserve(&store, &rules, config, OldCounters::Drop)?;
        Ok(Self::new(store, rules, config))
    }

    /// The same as [`replace_rules`](Self::replace_rules) if the store can count all limits of `rules`.
    ///
    /// # Errors
    ///
    /// If it cannot; then the rules before stay in force.
    pub fn try_replace_rules(&self, rules: RuleSet) -> Result<Arc<RuleSet>, StoreError> {
        reserve(self.store(), &rules, self.config, OldCounters::Keep)?;
        Ok(self.replace_rules(rules))
    }
}

fn reserve(
    store: &impl Store,
    rules: &RuleSet,
    config: LimiterConfig,
    old: OldCounters,
) -> Result<(), StoreError> {
    let limits = rules.rules().flat_map(Rule::limits);
    let mut quotas = limits.filter_map(|limit| match limit.terms() {
        Terms::Quota(quota) => {
            let own = limit.consistency().map(consistency);
            Some((quota, own.unwrap_or(config.consistency)))
        }
        Terms::Unlimited => None,
    });
    store.reserve(&mut quotas, old)
}
