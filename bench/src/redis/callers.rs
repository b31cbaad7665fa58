//! Calls of Redis on callers by Zipf's law: in a closed loop, and at a fixed rate beside an earlier commit.

use std::error::Error;
use std::time::Duration;

use tidegate_store_redis::test_util::RedisServer;

use super::commands::{Asked, CallCounter, Counts};
use super::{IN_FLIGHT, Sizes, keys, node_of, node_with};
use crate::fleet::free_address;
use crate::service::{
    Denials, Executable, Load, Process, RulesFile, Sample, Shape, Spread, cpu_seconds,
};
use crate::table::{Aim, Bound, Row};

/// Limits per caller: the limit and its window.
const LIMITS: [(u64, Duration); 3] = [
    (100, Duration::from_mins(1)),
    (600, Duration::from_secs(20)),
    (1_000, Duration::from_hours(1)),
];

/// A load on two nodes at the same time: the same calls at the same rate.
#[derive(Clone, Copy)]
pub(super) struct PairedLoad {
    pub(super) callers: u64,
    pub(super) per_second: u32,
    pub(super) warmup: Duration,
    pub(super) duration: Duration,
    pub(super) rounds: usize,
}

/// The node that another one is compared with.
#[derive(Clone)]
pub(super) enum Baseline {
    /// The executable of an earlier commit.
    Before(Executable),
    /// The same executable, each request decided in Redis.
    Strict(Executable),
}

/// A node on a Redis of its own.
struct CountedNode {
    redis: RedisServer,
    process: Process,
    counter: CallCounter,
}

/// The figures of one round of a load.
struct Figures {
    counts: Counts,
    /// Seconds of Redis' processor.
    redis: f64,
    sample: Sample,
}

/// The costs of one node, round by round.
#[derive(Default)]
struct Costs {
    /// Calls of Redis for 1,000 decisions.
    calls: Vec<f64>,
    /// Microseconds of the node's processor for a decision.
    node: Vec<f64>,
    /// Seconds of Redis' processor for a million decisions.
    redis: Vec<f64>,
    /// Denials in 1,000 decisions.
    denied: Vec<f64>,
}

// === impl Sizes ===

impl Sizes {
    /// Measures how often Redis is called in a closed loop, by the number of callers.
    pub(super) fn asked(&self) -> Result<Vec<Row>, Box<dyn Error>> {
        let mut rows = Vec::new();
        for count in [self.keys / 100, self.keys / 10, self.keys] {
            eprintln!("redis: {count} callers by Zipf's law ...");
            let redis = RedisServer::start();
            let rules = RulesFile::write(1)?;
            let metrics = free_address()?;
            let address = metrics.to_string();
            let settings = [("TIDEGATE_LISTENERS_METRICS_ADDRESS", address.as_str())];
            let node = node_with(&rules, &redis, "leased", &settings)?;
            let warmup = self.zipf * 2;
            let load = Load {
                shape: Shape::Closed {
                    in_flight: IN_FLIGHT,
                },
                keys: keys(count, Spread::Zipf),
                denials: Denials::Fault,
                warmup,
                duration: self.zipf,
            };
            let watch = Asked::watch(redis.address(), metrics, warmup, self.zipf)?;
            let sample = load.run(&node, 1)?;
            let seen = watch.seen()?;
            let whose = format!(
                "1,000 `leased` decisions, {count} callers by Zipf's law, after {} s",
                warmup.as_secs()
            );
            let row = |what: &str, asked: f64| {
                let what = format!("{what} for {whose}");
                Row::pair(&what, "", &[1e3], &[asked / sample.calls * 1e3])
            };
            let calls = row("calls of Redis", seen.calls);
            let aim = Aim::on_tidegate(Bound::AtMost, 100.0, 20.0);
            rows.push(if count == self.keys / 10 {
                calls.aiming(aim)
            } else {
                calls
            });
            rows.push(row("commands that carried those calls", seen.commands));
        }
        Ok(rows)
    }

    /// Measures the calls of Redis at a fixed rate, with limits that nobody reaches.
    pub(super) fn asked_at_rate(&self) -> Result<Row, Box<dyn Error>> {
        let load = self.large_limits;
        eprintln!(
            "redis: {} callers at {} a second ...",
            load.callers, load.per_second
        );
        let baseline = Baseline::chosen()?;
        let rules = RulesFile::write(1)?;
        let [beside, ours] = load.run(&baseline, &rules, Denials::Fault)?;
        let what = format!(
            "calls of Redis for 1,000 `leased` decisions, {} callers by Zipf's law at {} a second, {} beside",
            load.callers,
            load.per_second,
            baseline.name()
        );
        let row = Row::pair(&what, "", &beside.calls, &ours.calls);
        Ok(match baseline {
            Baseline::Before(_) => row.aiming(Aim::on_ratio(Bound::AtMost, 1.1, 1.0)),
            Baseline::Strict(_) => row,
        })
    }

    /// Measures the cost of limits that each caller has for itself, some of which are not lent.
    pub(super) fn limits_per_caller(&self) -> Result<Vec<Row>, Box<dyn Error>> {
        let load = self.small_limits;
        let baseline = Baseline::chosen()?;
        let mut rows = Vec::new();
        for (limit, window) in LIMITS {
            let window_seconds = window.as_secs();
            eprintln!("redis: {limit} in {window_seconds} s per caller ...");
            let rules = RulesFile::limiting(limit, window)?;
            let [beside, ours] = load.run(&baseline, &rules, Denials::Expected)?;
            let beside_name = baseline.name();
            let row = |what: &str, unit, figure: fn(&Costs) -> &[f64]| {
                let what = format!(
                    "limits per caller, {limit} in {window_seconds} s, {beside_name} beside: {what}"
                );
                Row::pair(&what, unit, figure(&beside), figure(&ours))
            };
            rows.push(row("calls of Redis for 1,000 decisions", "", |it| {
                &it.calls
            }));
            rows.push(row("processor of the node for a decision", "µs", |it| {
                &it.node
            }));
            rows.push(row(
                "processor of Redis for a million decisions",
                "s",
                |it| &it.redis,
            ));
            rows.push(row("denials in 1,000 decisions", "", |it| &it.denied));
        }
        Ok(rows)
    }
}

// === impl Baseline ===

impl Baseline {
    /// The earlier commit if the environment names its executable, `strict` otherwise.
    fn chosen() -> Result<Self, Box<dyn Error>> {
        Ok(match Executable::before() {
            Some(executable) => Self::Before(executable),
            None => Self::Strict(Executable::current()?),
        })
    }

    fn name(&self) -> String {
        match self {
            Self::Before(executable) => format!("`{}`", executable.name()),
            Self::Strict(_) => "`strict`".to_owned(),
        }
    }
}

// === impl PairedLoad ===

impl PairedLoad {
    /// One short round, which shows that everything runs.
    pub(super) const fn quick() -> Self {
        Self {
            callers: 2_000,
            per_second: 1_000,
            warmup: Duration::from_millis(50),
            duration: Duration::from_millis(200),
            rounds: 1,
        }
    }

    /// Puts the load on the baseline and on a leased node of this commit.
    ///
    /// Both run at the same time and not in turns: loans would end while a node waits for its turn, and in windows by
    /// the clock each would see another part of the window.
    fn run(
        self,
        baseline: &Baseline,
        rules: &RulesFile,
        denials: Denials,
    ) -> Result<[Costs; 2], Box<dyn Error>> {
        let mut nodes = [
            match baseline {
                Baseline::Before(executable) => CountedNode::start(executable, rules, "leased")?,
                Baseline::Strict(executable) => CountedNode::start(executable, rules, "strict")?,
            },
            CountedNode::start(&Executable::current()?, rules, "leased")?,
        ];
        let mut costs = [Costs::default(), Costs::default()];
        for round in 0..self.rounds {
            let load = Load {
                shape: Shape::Open {
                    per_second: self.per_second,
                },
                keys: keys(self.callers, Spread::Zipf),
                denials,
                warmup: Duration::ZERO,
                duration: self.duration,
            };
            if round == 0 {
                let duration = self.warmup;
                at_the_same_time(&mut nodes, Load { duration, ..load }, self.rounds as u64)?;
            }
            let figures = at_the_same_time(&mut nodes, load, round as u64)?;
            for (costs, figures) in costs.iter_mut().zip(figures) {
                costs.push(&figures);
            }
        }
        Ok(costs)
    }
}

// === impl CountedNode ===

impl CountedNode {
    fn start(
        executable: &Executable,
        rules: &RulesFile,
        consistency: &str,
    ) -> Result<Self, Box<dyn Error>> {
        let redis = RedisServer::start();
        let metrics = free_address()?;
        let address = metrics.to_string();
        let settings = [("TIDEGATE_LISTENERS_METRICS_ADDRESS", address.as_str())];
        let process = node_of(executable, rules, &redis, consistency, &settings)?;
        let counter = CallCounter::connect(redis.address(), metrics)?;
        Ok(Self {
            redis,
            process,
            counter,
        })
    }

    fn measure(&mut self, load: Load, seed: u64) -> Result<Figures, Box<dyn Error>> {
        let counts = self.counter.read()?;
        let redis = cpu_seconds(self.redis.id())?;
        let sample = load.run(&self.process, seed)?;
        Ok(Figures {
            redis: cpu_seconds(self.redis.id())? - redis,
            counts: self.counter.read()?.since(counts),
            sample,
        })
    }
}

// === impl Costs ===

impl Costs {
    fn push(&mut self, figures: &Figures) {
        let Figures {
            counts,
            redis,
            sample,
        } = figures;
        self.calls.push(counts.calls / sample.calls * 1e3);
        self.node.push(sample.cpu_micros());
        self.redis.push(redis / sample.calls * 1e6);
        self.denied.push(sample.denied / sample.calls * 1e3);
    }
}

/// Puts one load on two nodes, each from a thread of its own.
fn at_the_same_time(
    nodes: &mut [CountedNode; 2],
    load: Load,
    seed: u64,
) -> Result<[Figures; 2], Box<dyn Error>> {
    std::thread::scope(|scope| {
        let [first, second] = nodes.each_mut().map(|node| {
            // A boxed error stays on its thread; its text does not.
            scope.spawn(move || node.measure(load, seed).map_err(|fault| fault.to_string()))
        });
        let first = first.join().map_err(|_| "a load panicked")??;
        let second = second.join().map_err(|_| "a load panicked")??;
        Ok([first, second])
    })
}
