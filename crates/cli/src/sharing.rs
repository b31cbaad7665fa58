//! How nodes share a limit, seen from the rules: what the store cannot count, what a consistency comes to
//! for one limit, and what it promises, in words.

use std::time::Duration;

use tidegate_algorithms::{Allowance, Meter, Percent, Quota};
use tidegate_limiter::consistency;
use tidegate_rules::document::format_duration;
use tidegate_rules::{Consistency as Said, Limit, OnFailure, Terms};
use tidegate_share::{
    EventualConfig, SharedConfig, divisible, lease_life, overshoot_bound, strict_from,
};
use tidegate_store::{Consistency, lendable};

use crate::config::{Engine, Regions, Standby, Store, word_of};

/// How the nodes of an installation share limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    among: Among,
    /// How, where a rule does not say.
    otherwise: Consistency,
    standby: Standby,
    lease_life: Duration,
    sync_interval: Duration,
    slack: Percent,
}

/// With whom there is anything to share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    /// With nobody: counters are in the memory of one process.
    Nobody,
    /// With all who have the same Redis, and of what is `eventual` with so many other regions.
    Nodes { other_regions: usize },
}

/// Fewer nodes than this, and it is worth a word that a limit is strict from so many on.
const MANY_NODES: u32 = 64;

/// What becomes of an `eventual` limit without Redis, whatever its rule says.
const ALWAYS_SHARED: &str =
    "each node goes on with its part of what is left, divided by the nodes it last knew of";

// === impl Sharing ===

impl Default for Sharing {
    /// With nobody.
    fn default() -> Self {
        let SharedConfig {
            leases, eventual, ..
        } = SharedConfig::default();
        Self {
            among: Among::Nobody,
            otherwise: Consistency::default(),
            standby: Standby::default(),
            lease_life: leases.life,
            sync_interval: eventual.sync_interval,
            slack: eventual.slack,
        }
    }
}

impl Sharing {
    /// As the settings have it.
    pub(crate) fn of(store: &Store, regions: &Regions) -> Self {
        let among = match &store.engine {
            Engine::Memory => Among::Nobody,
            Engine::Redis(home) => Among::Nodes {
                other_regions: regions.others(home).count(),
            },
        };
        Self {
            among,
            otherwise: store.sharing.consistency,
            standby: store.sharing.standby,
            lease_life: store.sharing.lease_life,
            sync_interval: store.sharing.sync_interval,
            slack: store.sharing.slack.0,
        }
    }

    /// The same with counters in a Redis.
    pub(crate) fn among_nodes(self) -> Self {
        let other_regions = self.other_regions();
        Self {
            among: Among::Nodes { other_regions },
            ..self
        }
    }

    /// Whether the store can count a limit that is shared as its rule says; if not, why.
    pub(crate) fn fit(&self, quota: &Quota, said: Option<Said>) -> Result<(), String> {
        let is_in_redis =
            self.among != Among::Nobody && self.consistency(said) != Consistency::Node;
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
        if self.among == Among::Nobody {
            return note_in_memory(limit);
        }
        let consistency = self.consistency(limit.consistency());
        // A limit that is too small to lend loses nothing: `explain` says so, and that is enough.
        let is_small = consistency == Consistency::Leased && lendable(quota);
        if !is_small && let Some(why) = self.why_strict(consistency, quota) {
            let word = word_of(consistency);
            return Some(format!(
                "`consistency: {word}` is strict for this limit: {why}"
            ));
        }
        match consistency {
            Consistency::Split => strict_from_few(quota)
                .map(|strict| format!("`consistency: split` is {strict} for this limit")),
            Consistency::Node if limit.on_failure() != OnFailure::Local => Some(format!(
                "`on_failure: {}` does nothing here: `consistency: node` never asks Redis",
                word(limit.on_failure())
            )),
            Consistency::Eventual if limit.on_failure() != OnFailure::Local => Some(format!(
                "`on_failure: {}` does nothing here: without Redis {ALWAYS_SHARED}",
                word(limit.on_failure())
            )),
            _ => None,
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
        let is_told = self.never_fails(consistency, quota);
        let alone = if is_told {
            ALWAYS_SHARED
        } else {
            self.alone(limit.on_failure())
        };
        let alone = format!("without Redis: {alone}");
        match self.other_regions() {
            0 => vec![shared, alone],
            _ if is_told => vec![shared, alone],
            others => vec![shared, of_one_region(others), alone],
        }
    }

    fn consistency(&self, said: Option<Said>) -> Consistency {
        said.map_or(self.otherwise, consistency)
    }

    const fn other_regions(&self) -> usize {
        match self.among {
            Among::Nobody => 0,
            Among::Nodes { other_regions } => other_regions,
        }
    }

    /// Whether requests never wait for Redis, so that `on_failure` is not asked.
    fn never_fails(&self, consistency: Consistency, quota: &Quota) -> bool {
        consistency == Consistency::Eventual && self.why_strict(consistency, quota).is_none()
    }

    /// Why a limit that is to be shared otherwise is decided in Redis every time, if it is.
    fn why_strict(&self, consistency: Consistency, quota: &Quota) -> Option<String> {
        match consistency {
            Consistency::Node | Consistency::Strict => None,
            Consistency::Leased => match lease_life(quota, self.lease_life) {
                Some(_) => None,
                None => Some(why_not_lent(quota).to_owned()),
            },
            Consistency::Eventual if self.eventual().suits(quota) => None,
            Consistency::Eventual => Some(match quota.meter() {
                Meter::LeakyBucket(_) => {
                    "a queue has one order, and no two nodes can keep it".to_owned()
                }
                _ => format!(
                    "its window is over before the nodes have told each other, every {}",
                    format_duration(self.sync_interval)
                ),
            }),
            Consistency::Split => divisible(quota).err().map(|why| why.to_string()),
        }
    }

    fn promise(&self, consistency: Consistency, quota: &Quota) -> String {
        if let Some(why) = self.why_strict(consistency, quota) {
            return format!("strict for this limit: {why}");
        }
        match consistency {
            Consistency::Node => {
                "each node enforces it by itself: N nodes admit it N times".to_owned()
            }
            Consistency::Strict => {
                "every decision is made in Redis; the promise holds over all nodes".to_owned()
            }
            Consistency::Leased => self.promise_leased(quota),
            Consistency::Eventual => self.promise_eventual(quota),
            Consistency::Split => {
                let shares = "each node enforces its share, and the shares are never more than the limit together";
                match strict_from_few(quota) {
                    None => shares.to_owned(),
                    Some(strict) => format!("{shares}; {strict}"),
                }
            }
        }
    }

    fn promise_eventual(&self, quota: &Quota) -> String {
        let over = |members| overshoot_bound(quota, members, self.slack, 1);
        let of_all = match self.other_regions() {
            0 => String::new(),
            others => format!(" of all {} regions", others + 1),
        };
        format!(
            "nodes{of_all} tell each other their totals every {}; with a slack of {}% and requests of cost 1 at \
             most {} too many with 2 nodes in all, {} with 8; what was too much is made up for",
            format_duration(self.sync_interval),
            self.slack.0,
            over(2),
            over(8)
        )
    }

    fn promise_leased(&self, quota: &Quota) -> String {
        let life = lease_life(quota, self.lease_life).unwrap_or(self.lease_life);
        let drawn = format!(
            "lent: permits of hot keys are drawn from Redis ahead of need and spent from memory within {}, all but the \
             last of the limit",
            format_duration(life)
        );
        match quota.meter() {
            Meter::TokenBucket(_) => format!(
                "{drawn}; over all nodes at most {} more in any window than that, what drips in meanwhile",
                dripped(quota, life)
            ),
            _ => format!("{drawn}; the promise holds over all nodes"),
        }
    }

    /// How the nodes share what is shared eventually.
    fn eventual(&self) -> EventualConfig {
        EventualConfig {
            sync_interval: self.sync_interval,
            slack: self.slack,
            ..EventualConfig::default()
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
    let does = match said.len() {
        0 => return None,
        1 => "does",
        _ => "do",
    };
    let said = said.join("` and `");
    Some(format!(
        "`{said}` {does} nothing while counters are in memory; share them with --store redis://…"
    ))
}

/// From how many nodes on a limit that is to be split is strict, if they need not be many.
fn strict_from_few(quota: &Quota) -> Option<String> {
    match strict_from(quota) {
        0 | 1 => Some("strict, for it cannot be divided".to_owned()),
        few @ 2..MANY_NODES => Some(format!("strict from {few} nodes on")),
        _ => None,
    }
}

/// That the other regions do not count for a limit.
fn of_one_region(others: usize) -> String {
    let regions = others + 1;
    format!(
        "regions: each of the {regions} admits this limit by itself; `consistency: eventual` is for all together"
    )
}

/// How much drips into a bucket during a time, rounded up.
fn dripped(quota: &Quota, time: Duration) -> u128 {
    let window = quota.window().as_nanos().max(1);
    (u128::from(quota.limit()) * time.as_nanos()).div_ceil(window)
}

/// Why permits of a limit are not lent, if they are not.
fn why_not_lent(quota: &Quota) -> &'static str {
    match (quota.allowance(), quota.meter()) {
        _ if lendable(quota) => {
            "it is not lent, because loans of so small a limit would save too few calls"
        }
        (Allowance::Elastic { .. }, _) => "whether there is headroom is known only at each request",
        (Allowance::Soft { .. }, _) => "since when it is exceeded is known only at each request",
        (Allowance::Postpaid { .. }, _) => "it is postpaid, and debt has one counter",
        (Allowance::Hard, Meter::LeakyBucket(_)) => {
            "each request of a queue has a moment of its own"
        }
        (Allowance::Hard, _) => "a log that keeps refused requests must be told of each",
    }
}

const fn word(on_failure: OnFailure) -> &'static str {
    match on_failure {
        OnFailure::Local => "local",
        OnFailure::Allow => "allow",
        OnFailure::Deny => "deny",
    }
}
