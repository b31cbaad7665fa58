//! Traffic as data: who sends what to which nodes.

use serde::Deserialize;

use crate::scenario::{LimitSpec, one};

/// Requests of one kind at given times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Who sends them; an abuser's requests are denied by its own limit.
    #[serde(default)]
    pub who: Role,
    /// Requests a second; else `demand` says it.
    pub rate: Option<f64>,
    /// Requests a second, as a multiple of the limit.
    pub demand: Option<f64>,
    /// How many callers there are, taken in turn.
    #[serde(default = "one")]
    pub callers: u32,
    /// How requests are spread over the nodes.
    #[serde(default)]
    pub spread: Spread,
    /// What each request costs.
    #[serde(default = "one")]
    pub cost: u32,
    /// How many checks are sent in one request.
    #[serde(default = "one")]
    pub batch: u32,
    /// When it begins, in seconds.
    #[serde(default)]
    pub from: f64,
    /// When it ends, in seconds; else with the fleet.
    pub to: Option<f64>,
}

/// Who sends requests.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A caller within its own limit.
    #[default]
    Honest,
    /// A caller far above its own limit.
    Abuser,
}

/// How requests are spread over the nodes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// The same number to each.
    #[default]
    Even,
    /// 80, 10, 5 and 5 of a hundred.
    Uneven,
    /// All to the first node.
    One,
    /// Weights of the nodes.
    #[serde(untagged)]
    Weights(Vec<f64>),
}

/// Callers that send until they are denied, stop, and probe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// How many callers there are; each has a counter of its own.
    pub callers: u32,
    /// How many of them are busy at the same time.
    #[serde(default = "default_parallel")]
    pub parallel: u32,
    /// Requests a second of each caller until it is denied.
    pub rate: f64,
    /// How requests are spread over the nodes.
    #[serde(default)]
    pub spread: Spread,
    /// The longest wait that is tried out, in seconds.
    #[serde(default = "default_longest_wait")]
    pub longest_wait: f64,
    /// What each request costs.
    #[serde(default = "one")]
    pub cost: u32,
    /// Requests that each caller sends after its first denial, before it stops.
    #[serde(default)]
    pub after_denial: u32,
}

fn default_parallel() -> u32 {
    20
}

fn default_longest_wait() -> f64 {
    5.0
}

// === impl Spread ===

impl Spread {
    /// The weight of each of `nodes` nodes.
    pub fn weights(&self, nodes: usize) -> Vec<f64> {
        let known: Vec<f64> = match self {
            Self::Even => vec![1.0; nodes],
            Self::Uneven => vec![80.0, 10.0, 5.0, 5.0],
            Self::One => vec![1.0],
            Self::Weights(weights) => weights.clone(),
        };
        (0..nodes)
            .map(|node| known.get(node).copied().unwrap_or(0.0))
            .collect()
    }
}

// === impl Stream ===

impl Stream {
    /// Requests a second.
    pub fn rate(&self, limit: &LimitSpec) -> f64 {
        let by_demand = self.demand.unwrap_or(1.2) * limit.rate() / f64::from(self.cost);
        self.rate.unwrap_or(by_demand)
    }
}
