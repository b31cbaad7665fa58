//! Mixed faults for a long time: what the nodes promise holds through all of them, and after each they
//! are as before.

use std::collections::HashSet;
use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::arguments::Scale;
use crate::fleet::{
    Crowd, Fleet, LIMIT, LIMIT_WHEN_LOST, Pace, Terms, Told, Verdict, Windows, pass,
};
use crate::machine;
use crate::redis::Bare;
use crate::service::{Keys, LIMITED, Spread};

/// How its section begins, by which it is found in a page.
pub const HEADING: &str = "# Mixed faults\n";

/// How long each of 64 callers waits between two calls: enough to meet limits all the time.
const PAUSE: Duration = Duration::from_millis(5);

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    KillRedis,
    StallRedis,
    RestartRedisEmpty,
    CutConnections,
    ForgetScripts,
    FillMemory,
    ReadOnly,
    KillNode,
}

const FAULTS: [Fault; 8] = [
    Fault::KillRedis,
    Fault::StallRedis,
    Fault::RestartRedisEmpty,
    Fault::CutConnections,
    Fault::ForgetScripts,
    Fault::FillMemory,
    Fault::ReadOnly,
    Fault::KillNode,
];

/// The course of a soak.
struct Course {
    fleet: Fleet,
    crowd: Crowd,
    gone: Vec<Arc<AtomicBool>>,
    /// How long a fault lasts.
    fault: Duration,
    /// How long after it nothing is expected yet.
    recovery: Duration,
    /// Windows that a fault, or the recovery from it, lies in.
    touched: HashSet<u64>,
    failures: Vec<String>,
}

/// Runs it and says what came of it.
pub fn run(scale: Scale) -> Result<Verdict, Box<dyn Error>> {
    let seconds = Duration::from_secs;
    let (total, users, window, fault) = match scale {
        Scale::Full => (seconds(1_800), 100_000, seconds(5), seconds(6)),
        Scale::Quick => (seconds(0), 10_000, seconds(1), seconds(1)),
    };
    let mut course = Course::start(users, Windows { length: window }, fault)?;
    let begun = Instant::now();
    let mut times = [0_u32; FAULTS.len()];
    let mut number = 0_usize;
    // Each once at least.
    while number < FAULTS.len() || begun.elapsed() < total {
        let place = number % FAULTS.len();
        eprintln!("soak: {:?} ...", FAULTS[place]);
        course.suffer(FAULTS[place])?;
        course.recover(FAULTS[place])?;
        times[place] += 1;
        number += 1;
    }
    let elapsed = begun.elapsed();
    let (answers, errors) = (course.crowd.answers(), course.crowd.errors());
    if errors > 0 {
        let last = course.crowd.last_error().unwrap_or_default();
        let fault = format!("{errors} calls were not answered, the last with: {last}");
        course.failures.push(fault);
    }
    let Course {
        crowd,
        touched,
        mut failures,
        ..
    } = course;
    let told = crowd.finish();
    failures.extend(broken_limits(&told, &touched));
    let mut section = format!("{HEADING}\nMachine: {}.\n\n", machine::description());
    writeln!(
        section,
        "Written by `bench/soak --write`: two nodes, one Redis, 64 callers with 5 ms between calls for {} min, and a fault every {} s: Redis killed\n\
         and back, stalled, restarted empty, its connections cut, its scripts forgotten, its memory full, read-only, and a node killed\n\
         with another in its place. After each, decisions must go through Redis again and every window hold {LIMIT} for a user; in windows\n\
         with a fault at most {LIMIT_WHEN_LOST}. A decision waits 500 ms for Redis at most, for the machine is busy with the callers.\n",
        elapsed.as_secs() / 60,
        (3 * fault + window).as_secs(),
    )?;
    for (fault, times) in FAULTS.iter().zip(times) {
        writeln!(section, "- {fault:?}: {times} times")?;
    }
    let windows: HashSet<u64> = told.passed.keys().map(|key| key.1).collect();
    writeln!(
        section,
        "\n{answers} answers, {errors} errors to callers, {} windows watched, {} of them with a fault. Verdict: {}.",
        windows.len(),
        windows.intersection(&touched).count(),
        match failures.as_slice() {
            [] => "kept".to_owned(),
            failures => format!("**not kept**: {}", failures.join("; ")),
        }
    )?;
    Ok(Verdict { section, failures })
}

fn broken_limits(told: &Told, touched: &HashSet<u64>) -> Vec<String> {
    let mut broken = Vec::new();
    for (&(user, window), &passed) in &told.passed {
        let most = if touched.contains(&window) {
            LIMIT_WHEN_LOST
        } else {
            LIMIT
        };
        if passed > most {
            broken.push(format!(
                "user {user} had {passed} of {most} in window {window}"
            ));
        }
    }
    broken
}

// === impl Course ===

impl Course {
    fn start(users: u64, windows: Windows, fault: Duration) -> Result<Self, Box<dyn Error>> {
        let fleet = Fleet::start(
            2,
            Terms {
                limit: LIMIT,
                windows,
                timeout: "500ms",
            },
            &[],
        )?;
        let keys = Keys {
            entry: LIMITED,
            count: users,
            spread: Spread::Zipf,
        };
        let mut course = Self {
            crowd: Crowd::new(keys, windows, Pace::After(PAUSE)),
            gone: Vec::new(),
            fault,
            recovery: fault,
            touched: HashSet::new(),
            failures: Vec::new(),
            fleet,
        };
        for node in 0..course.fleet.nodes.len() {
            course.ask(node);
        }
        Ok(course)
    }

    /// Lets the crowd ask a node of the fleet.
    fn ask(&mut self, node: usize) {
        let is_gone = Arc::new(AtomicBool::new(false));
        self.crowd
            .ask(self.fleet.nodes[node].process.address, Arc::clone(&is_gone));
        self.gone.push(is_gone);
    }

    /// Brings the fault about, waits, and takes it away.
    fn suffer(&mut self, fault: Fault) -> Result<(), Box<dyn Error>> {
        let redis = &self.fleet.redis;
        let first = self.fleet.windows.now();
        let bare = || Bare::connect(redis.address());
        match fault {
            Fault::KillRedis => redis.kill(),
            Fault::StallRedis => redis.pause(),
            Fault::RestartRedisEmpty => redis.restart(),
            Fault::CutConnections => {
                bare()?.number(&["CLIENT", "KILL", "TYPE", "normal"])?;
            }
            Fault::ForgetScripts => {
                bare()?.text(&["SCRIPT", "FLUSH"])?;
            }
            Fault::FillMemory => {
                bare()?.text(&["CONFIG", "SET", "maxmemory", "1mb"])?;
            }
            Fault::ReadOnly => {
                bare()?.text(&["REPLICAOF", "127.0.0.1", "1"])?;
            }
            Fault::KillNode => self.replace_node()?,
        }
        pass(self.fault);
        let redis = &self.fleet.redis;
        let bare = || Bare::connect(redis.address());
        match fault {
            Fault::KillRedis => redis.restart(),
            Fault::StallRedis => redis.resume(),
            Fault::FillMemory => {
                bare()?.text(&["CONFIG", "SET", "maxmemory", "0"])?;
            }
            Fault::ReadOnly => {
                bare()?.text(&["REPLICAOF", "NO", "ONE"])?;
            }
            _ => {}
        }
        pass(self.recovery);
        self.touched.extend(first..=self.fleet.windows.now());
        Ok(())
    }

    /// Waits, and makes sure that decisions go through Redis again.
    fn recover(&mut self, fault: Fault) -> Result<(), Box<dyn Error>> {
        let mut bare = Bare::connect(self.fleet.redis.address())?;
        let before = bare.commands()?;
        pass(self.fault + self.fleet.windows.length);
        if bare.commands()? <= before {
            self.failures
                .push(format!("nothing went through Redis after {fault:?}"));
        }
        Ok(())
    }

    /// Kills the older node with -9 and starts another in its place.
    fn replace_node(&mut self) -> Result<(), Box<dyn Error>> {
        let oldest = self.gone.len() - self.fleet.nodes.len();
        // Its callers know; what they lose is not held against anybody.
        self.gone[oldest].store(true, Ordering::Relaxed);
        drop(self.fleet.nodes.remove(0));
        let node = self.fleet.node()?;
        self.fleet.nodes.push(node);
        self.ask(self.fleet.nodes.len() - 1);
        Ok(())
    }
}
