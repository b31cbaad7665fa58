//! A day in small: two nodes, a million users by Zipf's law, as many calls as the machine holds, and a
//! Redis that dies half-way and comes back empty.

use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::arguments::Scale;
use crate::fleet::{
    Crowd, Fleet, Histogram, LIMIT, LIMIT_WHEN_LOST, Pace, Terms, Told, Verdict, Windows, pass,
};
use crate::machine;
use crate::redis::Bare;
use crate::service::{Keys, LIMITED, Spread, cpu_seconds};
use crate::statistic::figures;

/// How its section begins, by which it is found in a page.
pub const HEADING: &str = "# A day in small\n";

/// The name of a node's own histogram.
const DECISIONS: &str = "tidegate_decision_duration_seconds";

/// The p99 of decisions that must hold, in seconds.
const P99: f64 = 0.01;

/// What a table for the whole world is made for.
const WORLD: f64 = 10e6;

/// How much of a core a Redis may use before a shard more is wanted.
const FULL: f64 = 0.7;

/// How long a node takes at the most to notice that Redis is gone, or back.
const RECOVERY: Duration = Duration::from_secs(2);

struct Plan {
    users: u64,
    windows: Windows,
    /// Before Redis dies, without it, and after.
    phases: [(&'static str, Duration); 3],
}

/// What was seen of one phase.
struct Phase {
    name: &'static str,
    seconds: f64,
    answers: f64,
    refusals: f64,
    p99: f64,
    node_cpu: f64,
    redis_cpu: f64,
    commands: f64,
    /// The windows that lie in it wholly.
    windows: std::ops::Range<u64>,
}

/// Runs it and says what came of it.
pub fn run(scale: Scale) -> Result<Verdict, Box<dyn Error>> {
    let plan = Plan::of(scale);
    let mut fleet = Fleet::start(
        2,
        Terms {
            limit: LIMIT,
            windows: plan.windows,
            timeout: "50ms",
        },
        &[],
    )?;
    let keys = Keys {
        entry: LIMITED,
        count: plan.users,
        spread: Spread::Zipf,
    };
    let mut crowd = Crowd::new(keys, plan.windows, Pace::AtOnce);
    for node in &fleet.nodes {
        crowd.ask(node.process.address, Arc::default());
    }
    let mut phases = Vec::new();
    for (number, (name, duration)) in plan.phases.into_iter().enumerate() {
        eprintln!("day: {name} ...");
        match number {
            1 => fleet.redis.kill(),
            2 => fleet.redis.restart(),
            _ => {}
        }
        phases.push(Phase::watch(name, duration, &mut fleet, &crowd)?);
    }
    let errors = crowd.errors();
    let last_error = crowd.last_error();
    let told = crowd.finish();
    let mut failures = Vec::new();
    if errors > 0 {
        failures.push(format!(
            "{errors} calls were not answered, the last with: {}",
            last_error.unwrap_or_default()
        ));
    }
    if scale == Scale::Full {
        let slow = phases.iter().filter(|phase| phase.p99 >= P99);
        failures.extend(slow.map(|phase| format!("p99 is over 10 ms {}", phase.name)));
    }
    failures.extend(broken_limits(&phases, &told));
    let section = section(scale, &plan, &phases, &told, errors, &failures)?;
    Ok(Verdict { section, failures })
}

/// Windows in which some user had more than the policy allows.
fn broken_limits(phases: &[Phase], told: &Told) -> Vec<String> {
    let mut broken = Vec::new();
    for (&(user, window), &passed) in &told.passed {
        // Whole windows: Redis before and after, the nodes' shares between. Else counts were lost.
        let is_whole = phases.iter().any(|phase| phase.windows.contains(&window));
        let most = if is_whole { LIMIT } else { LIMIT_WHEN_LOST };
        if passed > most {
            broken.push(format!(
                "user {user} had {passed} of {most} in window {window}"
            ));
        }
    }
    broken
}

// === impl Plan ===

impl Plan {
    fn of(scale: Scale) -> Self {
        let (users, window, [before, without, after]) = match scale {
            Scale::Full => (1_000_000, 20, [300, 90, 210]),
            Scale::Quick => (10_000, 1, [4, 5, 6]),
        };
        let seconds = Duration::from_secs;
        Self {
            users,
            windows: Windows {
                length: seconds(window),
            },
            phases: [
                ("with Redis", seconds(before)),
                ("without Redis", seconds(without)),
                ("with Redis again", seconds(after)),
            ],
        }
    }
}

// === impl Phase ===

impl Phase {
    fn watch(
        name: &'static str,
        duration: Duration,
        fleet: &mut Fleet,
        crowd: &Crowd,
    ) -> Result<Self, Box<dyn Error>> {
        let is_up = name != "without Redis";
        let first = fleet.windows.after(RECOVERY) + 1;
        let look = |fleet: &Fleet| -> Result<_, Box<dyn Error>> {
            let nodes = fleet.nodes.iter();
            let histograms = nodes.map(|node| Histogram::scrape(node.metrics, DECISIONS));
            let histograms = histograms.collect::<Result<Vec<_>, _>>()?;
            let mut node_cpu = 0.0;
            for node in &fleet.nodes {
                node_cpu += node.process.cpu_seconds()?;
            }
            let (redis_cpu, commands) = if is_up {
                let mut bare = Bare::connect(fleet.redis.address())?;
                (cpu_seconds(fleet.redis.id())?, bare.commands()?)
            } else {
                (0.0, 0.0)
            };
            Ok((histograms, [node_cpu, redis_cpu, commands]))
        };
        let (then, counts_then) = look(fleet)?;
        let (answers, refusals) = (crowd.answers(), crowd.refusals());
        let begun = Instant::now();
        pass(duration);
        let (now, counts_now) = look(fleet)?;
        let seconds = begun.elapsed().as_secs_f64();
        let p99s = now.iter().zip(&then);
        let p99s = p99s.map(|(now, then)| now.since(then).quantile(0.99));
        let [node_cpu, redis_cpu, commands] =
            std::array::from_fn(|place| counts_now[place] - counts_then[place]);
        Ok(Self {
            name,
            seconds,
            answers: (crowd.answers() - answers) as f64,
            refusals: (crowd.refusals() - refusals) as f64,
            p99: p99s.fold(0.0, f64::max),
            node_cpu,
            redis_cpu,
            commands,
            windows: first..fleet.windows.now(),
        })
    }

    fn line(&self) -> String {
        let per_decision = |seconds: f64| figures(seconds / self.answers * 1e6);
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            self.name,
            figures(self.seconds),
            figures(self.answers / self.seconds / 1e3),
            figures(self.refusals / self.answers * 100.0),
            figures(self.p99 * 1e3),
            per_decision(self.node_cpu),
            per_decision(self.redis_cpu),
            figures(self.commands / self.answers * 1e3),
        )
    }
}

fn section(
    scale: Scale,
    plan: &Plan,
    phases: &[Phase],
    told: &Told,
    errors: u64,
    failures: &[String],
) -> Result<String, Box<dyn Error>> {
    let mut section = format!("{HEADING}\nMachine: {}.\n\n", machine::description());
    writeln!(
        section,
        "Written by `bench/day --write`: two nodes of `tidegate serve` on one thread each, `leased`, one Redis, {} users by Zipf's law\n\
         with a limit of {LIMIT} in {} s each, as many calls as the machine holds beside its own client; a decision\n\
         waits 50 ms for Redis at most, for all of this shares two cores. Redis is killed with -9 after the\n\
         first phase and comes back empty after the second. *p99* is the upper bound of the bucket of the slower node's own histogram.\n",
        plan.users,
        plan.windows.length.as_secs(),
    )?;
    if scale == Scale::Quick {
        section.push_str("**A quick run: the figures mean nothing.**\n\n");
    }
    section.push_str(
        "| phase | s | decisions, k/s | refused, % | p99 of decisions, ms | processor of the nodes, µs | of Redis, µs | \
         Redis commands per 1,000 |\n|---|---|---|---|---|---|---|---|\n",
    );
    for phase in phases {
        writeln!(section, "{}", phase.line())?;
    }
    let most = told.passed.values().max().copied().unwrap_or_default();
    writeln!(
        section,
        "\nErrors to callers: {errors}. The most that one of the 64 busiest users had in a window: {most} of {LIMIT}, where Redis lost its\n\
         counts up to {LIMIT_WHEN_LOST}. Verdict: {}.\n",
        match failures {
            [] => "kept".to_owned(),
            failures => format!("**not kept**: {}", failures.join("; ")),
        }
    )?;
    if let [before, ..] = phases {
        section.push_str(&world(before)?);
    }
    Ok(section)
}

/// What ten million decisions a second would take, if every figure grew in proportion.
fn world(phase: &Phase) -> Result<String, std::fmt::Error> {
    let mut table = String::from(
        "What 10 M decisions a second would need, in proportion to the first phase (the client's own cores not counted; a shard is full\n\
         at 70 % of a core):\n\n| what | of one decision | for 10 M/s |\n|---|---|---|\n",
    );
    let node = phase.node_cpu / phase.answers;
    let redis = phase.redis_cpu / phase.answers;
    writeln!(
        table,
        "| cores of nodes | {} µs | {} |",
        figures(node * 1e6),
        figures((node * WORLD).ceil())
    )?;
    writeln!(
        table,
        "| Redis shards | {} µs | {} |",
        figures(redis * 1e6),
        figures((redis * WORLD / FULL).ceil())
    )?;
    Ok(table)
}
