//! The matrix: scenarios chosen so that each pair of values of two factors is in at least one of them.

use std::collections::HashSet;

use serde::Deserialize;

use crate::fault::{Action, FaultStep};
use crate::judge::Judge;
use crate::scenario::{
    Algorithm, Consistency, FleetSpec, Interface, LimitSpec, RedisKind, Scenario, Spread, Stream,
};

/// The factors of the matrix: the file `matrix.yaml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    seconds: f64,
    conditions: Vec<Condition>,
    limits: Vec<NamedLimit>,
    algorithms: Vec<NamedAlgorithm>,
    consistencies: Vec<Consistency>,
    spreads: Vec<MatrixSpread>,
}

/// What a fleet is exposed to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Condition {
    name: String,
    #[serde(default)]
    redis: RedisKind,
    round_trip: Option<f64>,
    /// Whether its fleet may run beside others.
    #[serde(default)]
    beside: bool,
    #[serde(default)]
    faults: Vec<FaultStep>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedLimit {
    name: String,
    limit: u64,
    window: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedAlgorithm {
    name: String,
    algorithm: Algorithm,
    sub_windows: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum MatrixSpread {
    Even,
    Uneven,
    One,
    Moving,
}

/// The place of one value of each factor: condition, limit, algorithm, consistency, spread.
type Row = [usize; 5];

/// How far the search for a row begins from where the one before began.
const STRIDE: usize = 6_151;

/// Two factors, and a value of each.
type Pair = (usize, usize, usize, usize);

/// What a condition does to a promise.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Disturbance {
    /// Redis answers all the time, and no node is killed.
    Nothing,
    /// A node is killed.
    Kill,
    /// Redis is away for a while.
    Outage,
    /// Redis forgets.
    Loss,
}

// === impl Matrix ===

impl Matrix {
    /// One fleet for each condition, with all its scenarios.
    pub fn fleets(&self) -> Vec<FleetSpec> {
        let rows = self.rows();
        let fleets = self
            .conditions
            .iter()
            .enumerate()
            .map(|(place, condition)| {
                let rows = rows.iter().filter(|row| row[0] == place);
                FleetSpec {
                    fleet: format!("matrix_{}", condition.name),
                    ci: false,
                    beside: condition.beside,
                    runs: 1,
                    nodes: 4,
                    redis: condition.redis,
                    round_trip: condition.round_trip,
                    memory_node: false,
                    charging: None,
                    seconds: self.seconds,
                    align: None,
                    settings: Vec::new(),
                    faults: condition.faults.clone(),
                    scenarios: rows.map(|row| self.scenario(row)).collect(),
                }
            });
        fleets.collect()
    }

    fn sizes(&self) -> Row {
        [
            self.conditions.len(),
            self.limits.len(),
            self.algorithms.len(),
            self.consistencies.len(),
            self.spreads.len(),
        ]
    }

    /// Rows that cover all pairs: again and again the one that covers the most that are left.
    fn rows(&self) -> Vec<Row> {
        let sizes = self.sizes();
        let mut left: HashSet<Pair> = all_rows(sizes).iter().flat_map(pairs).collect();
        let mut rows = Vec::new();
        let candidates = all_rows(sizes);
        while !left.is_empty() {
            let gain = |row: &Row| {
                pairs(row)
                    .iter()
                    .filter(|pair| left.contains(*pair))
                    .count()
            };
            // Of equal ones the first from a place that moves on, so that what is left to choose differs,
            // and that every run has the same rows.
            let mut best = (candidates[0], 0);
            let (before, from) = candidates.split_at(rows.len() * STRIDE % candidates.len());
            for row in from.iter().chain(before) {
                let gain = gain(row);
                if gain > best.1 {
                    best = (*row, gain);
                }
            }
            for pair in pairs(&best.0) {
                left.remove(&pair);
            }
            rows.push(best.0);
        }
        rows
    }

    fn scenario(&self, row: &Row) -> Scenario {
        let [condition, limit, algorithm, consistency, spread] = *row;
        let condition = &self.conditions[condition];
        let (named, algorithm) = (&self.limits[limit], &self.algorithms[algorithm]);
        let (consistency, spread) = (self.consistencies[consistency], self.spreads[spread]);
        let is_bucket = algorithm.algorithm == Algorithm::TokenBucket;
        let limit = LimitSpec {
            limit: named.limit,
            window: named.window,
            algorithm: algorithm.algorithm,
            // Else the burst of a minute lasts longer than the run.
            burst: (is_bucket && named.window > 10.0).then_some((named.limit / 10).max(1)),
            sub_windows: algorithm.parts(named.window),
            on_failure: None,
            mode: None,
        };
        Scenario {
            name: format!(
                "{}.{}.{}.{}.{}",
                condition.name,
                consistency.name(),
                algorithm.name,
                named.name,
                spread.name()
            ),
            judges: self.judges(condition, &limit, consistency, spread),
            traffic: self.traffic(&limit, spread),
            limit,
            consistency,
            twin: consistency != Consistency::Strict,
            own_limit: None,
            also: Vec::new(),
            per_caller: false,
            probe: None,
            by: Interface::Http,
            waits: None,
            warm_up: if is_bucket {
                5.0 + named.window.min(10.0)
            } else {
                3.0
            },
        }
    }

    fn traffic(&self, limit: &LimitSpec, spread: MatrixSpread) -> Vec<Stream> {
        let half = self.seconds / 2.0;
        let mut streams = match spread {
            MatrixSpread::Even => vec![Stream::steady(1.2, Spread::Even)],
            MatrixSpread::Uneven => vec![Stream::steady(1.2, Spread::Uneven)],
            MatrixSpread::One => vec![Stream::steady(1.2, Spread::One)],
            MatrixSpread::Moving => vec![
                Stream {
                    to: Some(half),
                    ..Stream::steady(1.2, Spread::One)
                },
                Stream {
                    from: half,
                    ..Stream::steady(1.2, Spread::Weights(vec![0.0, 1.0]))
                },
            ],
        };
        if limit.algorithm == Algorithm::TokenBucket {
            // The burst is used up first, so that the rate is what is judged.
            streams.push(Stream {
                to: Some(limit.window.min(10.0)),
                ..Stream::steady(2.0, Spread::Even)
            });
        }
        streams
    }

    fn judges(
        &self,
        condition: &Condition,
        limit: &LimitSpec,
        consistency: Consistency,
        spread: MatrixSpread,
    ) -> Vec<Judge> {
        let disturbance = condition.disturbance();
        if matches!(disturbance, Disturbance::Outage | Disturbance::Loss) {
            // A bucket has its burst before, shares of it without Redis, and one more when Redis is back.
            let is_bucket = limit.algorithm == Algorithm::TokenBucket;
            let times = if is_bucket && disturbance == Disturbance::Outage {
                3.0
            } else {
                2.0
            };
            let mut judges = vec![Judge::OutageBound(times)];
            let is_short = limit.window <= 10.0;
            if disturbance == Disturbance::Outage
                && consistency == Consistency::Eventual
                && is_short
            {
                judges.push(Judge::FirstWindow(90.0));
            }
            return judges;
        }
        let mut judges = vec![Judge::NeverOver];
        // Of a few hundred requests one is more than a thousandth.
        if limit.rate() >= 10.0 {
            judges.push(Judge::Degraded(0.1));
        }
        let is_steady = disturbance == Disturbance::Nothing;
        let has_ten = self.seconds > 11.0 * limit.window + 15.0;
        if consistency == Consistency::Leased && is_steady && has_ten {
            judges.push(Judge::Use(98.0));
            if limit.algorithm != Algorithm::TokenBucket && limit.algorithm != Algorithm::SlidingLog
            {
                judges.push(Judge::EveryWindow(95.0));
            }
        }
        if consistency == Consistency::Split
            && is_steady
            && limit.window <= 10.0
            && limit.limit >= 16
        {
            judges.push(follows(limit, spread, self.seconds / 2.0));
        }
        judges
    }
}

/// Two windows and two heartbeats; one epoch of two windows more where counters remember.
fn follows(limit: &LimitSpec, spread: MatrixSpread, half: f64) -> Judge {
    let epoch = if limit.resets_at_edges() {
        0.0
    } else {
        2.0 * limit.window.max(1.0)
    };
    let moved = if spread == MatrixSpread::Moving {
        half
    } else {
        0.0
    };
    Judge::Follows {
        moved,
        within: 2.0 * limit.window + 2.0 + epoch,
        percent: 95.0,
    }
}

fn all_rows(sizes: Row) -> Vec<Row> {
    let mut rows = vec![[0; 5]];
    for (factor, size) in sizes.into_iter().enumerate() {
        let with = |row: &Row| {
            let row = *row;
            (0..size).map(move |value| {
                let mut row = row;
                row[factor] = value;
                row
            })
        };
        rows = rows.iter().flat_map(with).collect();
    }
    rows
}

fn pairs(row: &Row) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for first in 0..row.len() {
        for second in first + 1..row.len() {
            pairs.push((first, row[first], second, row[second]));
        }
    }
    pairs
}

// === impl Condition ===

impl Condition {
    fn disturbance(&self) -> Disturbance {
        let has = |actions: &[Action]| {
            let mut steps = self.faults.iter();
            steps.any(|step| actions.contains(&step.action))
        };
        if has(&[Action::StallRedis, Action::KillRedis]) {
            Disturbance::Outage
        } else if has(&[Action::FlushRedis, Action::FailOver]) {
            Disturbance::Loss
        } else if has(&[Action::KillNode]) {
            Disturbance::Kill
        } else {
            Disturbance::Nothing
        }
    }
}

// === impl NamedAlgorithm ===

impl NamedAlgorithm {
    /// Into how many parts a window is cut: fewer where these are not a whole number of milliseconds.
    fn parts(&self, window: f64) -> Option<u64> {
        let millis = (window * 1e3) as u64;
        let fits = |parts: &u64| millis.is_multiple_of(*parts);
        self.sub_windows
            .map(|most| (1..=most).rev().find(fits).unwrap_or(1))
    }
}

// === impl MatrixSpread ===

impl MatrixSpread {
    fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Uneven => "uneven",
            Self::One => "one",
            Self::Moving => "moving",
        }
    }
}

// === impl Stream ===

impl Stream {
    /// One caller that asks for so many times the limit, all the time.
    fn steady(demand: f64, spread: Spread) -> Self {
        Self {
            who: crate::scenario::Role::Honest,
            rate: None,
            demand: Some(demand),
            callers: 1,
            spread,
            cost: 1,
            batch: 1,
            from: 0.0,
            to: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_values_is_in_a_row() {
        let text = include_str!("../matrix.yaml");
        let matrix: Matrix = serde_json::from_value(crate::yaml::parse(text).unwrap()).unwrap();
        let rows = matrix.rows();
        let covered: HashSet<Pair> = rows.iter().flat_map(pairs).collect();
        let sizes = matrix.sizes();
        let wanted: HashSet<Pair> = all_rows(sizes).iter().flat_map(pairs).collect();
        assert_eq!(covered, wanted);
        // Few enough to run at the same time in one fleet for each condition.
        assert!(rows.len() < 140, "{} rows", rows.len());
    }
}
