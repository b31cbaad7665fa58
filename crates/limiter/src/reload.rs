//! Rules that replace others, if the store can count all their limits.

use std::sync::Arc;

use tidegate_rules::{Rule, RuleSet, Terms};
use tidegate_store::{Store, StoreError};

use crate::Limiter;
use crate::bill::consistency;

// === impl Limiter ===

impl<S: Store> Limiter<S> {
    /// The same as [`replace_rules`](Self::replace_rules) if the store can count all limits of `rules`.
    ///
    /// # Errors
    ///
    /// If it cannot; then the rules before stay in force.
    pub fn try_replace_rules(&self, rules: RuleSet) -> Result<Arc<RuleSet>, StoreError> {
        let limits = rules.rules().flat_map(Rule::limits);
        self.store()
            .reserve(&mut limits.filter_map(|limit| match limit.terms() {
                Terms::Quota(quota) => {
                    let said = limit.consistency().map(consistency);
                    Some((quota, said.unwrap_or(self.config.consistency)))
                }
                Terms::Unlimited => None,
            }))?;
        Ok(self.replace_rules(rules))
    }
}
