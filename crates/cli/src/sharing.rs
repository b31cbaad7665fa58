//! How nodes share a limit, seen from the rules: what the store cannot count, what a consistency comes to
//! for one limit, and what it promises, in words.

use std::time::Duration;

use tidegate_algorithms::{Allowance, Meter, Quota};
use tidegate_rules::document::format_duration;
use tidegate_rules::{Consistency as Said, Limit, OnFailure, Terms};
use tidegate_store::{Consistency, lendable};

use crate::args::{NodeArgs, SettingArgs};
use crate::config::{self, Engine, Standby, Store, word_of};
use crate::failure::Failure;

/// How the nodes of an installation share limits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sharing {
    among: Among,
    /// How, where a rule does not say.
    otherwise: Consistency,
    standby: Standby,
    lease_life: Duration,
}

/// With whom there is anything to share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Among {
    /// With nobody: counters are in the memory of one process.
    #[default]
    Nobody,
    /// With all who have the same Redis.
    Nodes,
}

/// A limit of few permits is worth a word about how many nodes can have a share of it.
const FEW: u64 = 64;

// === impl Sharing ===

impl Sharing {
    /// As the settings of the server have it that rules are looked at for.
    pub(crate) fn load(node: &NodeArgs) -> Result<Self, Failure> {
        let loaded = config::load(&SettingArgs::from(node))?;
        Ok(Self::of(&loaded.config.store))
    }

    /// As the settings have it.
    pub(crate) const fn of(store: &Store) -> Self {
        let among = match store.engine {
            Engine::Memory => Among::Nobody,
            Engine::Redis(_) => Among::Nodes,
        };
        Self {
            among,
            otherwise: store.sharing.consistency,
            standby: store.sharing.standby,
            lease_life: store.sharing.lease_life,
        }
    }

    /// Whether the store can count a limit that is shared as its rule says; if not, why.
    pub(crate) fn fit(&self, quota: &Quota, said: Option<Said>) -> Result<(), String> {
        let is_in_redis = self.among == Among::Nodes && self.consistency(said) != Consistency::Node;
        if !is_in_redis {
            return Ok(());
        }
        tidegate_store_redis::fits(quota).map_err(|reason| reason.to_string())
    }

    /// What is worth knowing about a limit, if anything is: it is good, but not all that was written
    /// about it does something.
    pub(crate) fn note(&self, limit: &Limit) -> Option<String> {
        let Terms::Quota(quota) = limit.terms() else {
            return None;
        };
        match self.among {
            Among::Nobody => note_in_memory(limit),
            Among::Nodes => match self.consistency(limit.consistency()) {
                Consistency::Leased => why_not_lent(quota)
                    .map(|why| format!("`consistency: leased` is strict for this limit: {why}")),
                Consistency::Split if quota.limit() < FEW => Some(format!(
                    "`consistency: split` is strict while more than {} nodes share this limit",
                    quota.limit()
                )),
                Consistency::Node if limit.on_failure() != OnFailure::Local => Some(format!(
                    "`on_failure: {}` does nothing here: `consistency: node` never asks Redis",
                    word(limit.on_failure())
                )),
                _ => None,
            },
        }
    }

    /// How a limit is shared and what becomes of it without Redis, a line each; nothing where there
    /// is nobody to share with.
    pub(crate) fn explain(&self, limit: &Limit) -> Vec<String> {
        let Terms::Quota(quota) = limit.terms() else {
            return Vec::new();
        };
        if self.among == Among::Nobody {
            return Vec::new();
        }
        let consistency = self.consistency(limit.consistency());
        let shared = format!(
            "{}: {}",
            word_of(consistency),
            self.promise(consistency, quota)
        );
        if consistency == Consistency::Node {
            return vec![shared];
        }
        vec![
            shared,
            format!("without Redis: {}", self.alone(limit.on_failure())),
        ]
    }

    fn consistency(&self, said: Option<Said>) -> Consistency {
        match said {
            None => self.otherwise,
            Some(Said::Node) => Consistency::Node,
            Some(Said::Strict) => Consistency::Strict,
            Some(Said::Leased) => Consistency::Leased,
            Some(Said::Eventual) => Consistency::Eventual,
            Some(Said::Split) => Consistency::Split,
        }
    }

    fn promise(&self, consistency: Consistency, quota: &Quota) -> String {
        match consistency {
            Consistency::Node => "each node enforces it by itself, so that all together admit it once each".to_owned(),
            Consistency::Strict => "every decision is made in Redis, and holds over all nodes".to_owned(),
            Consistency::Leased => match why_not_lent(quota) {
                Some(why) => format!("decided in Redis every time, for {why}"),
                None => format!(
                    "permits are drawn from Redis ahead of need and spent from memory within {}; never more over \
                     all nodes",
                    format_duration(self.lease_life)
                ),
            },
            Consistency::Eventual => String::new(),
            Consistency::Split => "each node enforces its share, and the shares are never more than the limit together".to_owned(),
        }
    }

    const fn alone(&self, on_failure: OnFailure) -> &'static str {
        match (on_failure, self.standby) {
            (OnFailure::Local, Standby::Share) => {
                "each node goes on with the limit divided by the nodes it last knew of"
            }
            (OnFailure::Local, Standby::Whole) => "each node goes on with the whole limit",
            (OnFailure::Allow, _) => "every request passes",
            (OnFailure::Deny, _) => "every request is refused",
        }
    }
}

fn note_in_memory(limit: &Limit) -> Option<String> {
    let consistency = limit.consistency().map(|_| "consistency");
    let on_failure = (limit.on_failure() != OnFailure::Local).then_some("on_failure");
    let said: Vec<&str> = consistency.into_iter().chain(on_failure).collect();
    (!said.is_empty()).then(|| {
        let said = said.join("` and `");
        format!(
            "`{said}` do nothing while counters are in memory; share them with --store redis://…"
        )
    })
}

/// Why permits of a limit cannot be lent, if they cannot.
fn why_not_lent(quota: &Quota) -> Option<&'static str> {
    if lendable(quota) {
        return None;
    }
    Some(match (quota.allowance(), quota.meter()) {
        (Allowance::Elastic { .. }, _) => "whether there is headroom is known only at each request",
        (Allowance::Soft { .. }, _) => "since when it is exceeded is known only at each request",
        (Allowance::Hard, Meter::LeakyBucket(_)) => {
            "each request of a queue has a moment of its own"
        }
        (Allowance::Hard, _) => "a log that keeps refused requests must be told of each",
    })
}

const fn word(on_failure: OnFailure) -> &'static str {
    match on_failure {
        OnFailure::Local => "local",
        OnFailure::Allow => "allow",
        OnFailure::Deny => "deny",
    }
}
