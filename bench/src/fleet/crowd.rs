//! Callers, by Zipf's law, on all nodes at once.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::task::{LocalSet, spawn_local};

use super::Windows;
use crate::service::{Answer, Client, Keys};

/// Callers whose answers are counted one by one: those who come most, so that they meet their limit.
const WATCHED: u64 = 64;

/// Connections to a node, and calls under way on each.
const CONNECTIONS: usize = 2;
const IN_FLIGHT: u64 = 16;

/// How long after a connection was refused another is tried.
const RETRY: Duration = Duration::from_millis(50);

/// A crowd that asks until it is told to stop.
pub struct Crowd {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    keys: Keys,
    windows: Windows,
    pace: Pace,
}

/// How fast each of a crowd asks.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// As soon as it was answered.
    AtOnce,
    /// So long after it was answered.
    After(Duration),
}

/// What the crowd was told so far.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Answers that let pass, by caller and window.
    pub passed: HashMap<(u64, u64), u64>,
    /// Those that began in one window and ended in another, so that nobody knows which they were of.
    astride: HashMap<(u64, u64), u64>,
}

#[derive(Default)]
struct Shared {
    ended: AtomicBool,
    answers: AtomicU64,
    refusals: AtomicU64,
    errors: AtomicU64,
    last_error: Mutex<Option<String>>,
    told: Mutex<Told>,
}

// === impl Crowd ===

impl Crowd {
    /// A crowd that has nobody to ask yet.
    pub fn new(keys: Keys, windows: Windows, pace: Pace) -> Self {
        Self {
            shared: Arc::default(),
            threads: Vec::new(),
            keys,
            windows,
            pace,
        }
    }

    /// Asks a node, too, until `is_gone` says that it was killed on purpose.
    pub fn ask(&mut self, node: SocketAddr, is_gone: Arc<AtomicBool>) {
        let shared = Arc::clone(&self.shared);
        let (keys, windows, pace) = (self.keys, self.windows, self.pace);
        let seed = self.threads.len() as u64 + 1;
        self.threads.push(std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            LocalSet::new().block_on(&runtime, async move {
                let mut callers = Vec::new();
                for number in 0..CONNECTIONS as u64 {
                    let caller = Caller {
                        node,
                        keys,
                        windows,
                        pace,
                        seed: seed * 1_000 + number,
                        shared: Arc::clone(&shared),
                        is_gone: Arc::clone(&is_gone),
                    };
                    callers.push(spawn_local(caller.run()));
                }
                for caller in callers {
                    caller.await.expect("a caller does not panic");
                }
            });
        }));
    }

    /// Answers so far.
    pub fn answers(&self) -> u64 {
        self.shared.answers.load(Ordering::Relaxed)
    }

    /// Of those, the ones that did not let pass.
    pub fn refusals(&self) -> u64 {
        self.shared.refusals.load(Ordering::Relaxed)
    }

    /// Calls that were not answered, though their node lived.
    pub fn errors(&self) -> u64 {
        self.shared.errors.load(Ordering::Relaxed)
    }

    /// What the last of those said.
    pub fn last_error(&self) -> Option<String> {
        let last = self.shared.last_error.lock();
        last.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sends everybody home, and says what they were told.
    pub fn finish(self) -> Told {
        self.shared.ended.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a crowd does not panic");
        }
        let told = self.shared.told.lock();
        std::mem::take(&mut *told.unwrap_or_else(PoisonError::into_inner))
    }
}

// === impl Told ===

impl Told {
    /// The most that can have passed, by caller and window.
    pub fn passed_at_most(&self) -> HashMap<(u64, u64), u64> {
        let mut most = self.passed.clone();
        for (&key, &count) in &self.astride {
            *most.entry(key).or_default() += count;
        }
        most
    }
}

/// One connection to one node.
struct Caller {
    node: SocketAddr,
    keys: Keys,
    windows: Windows,
    pace: Pace,
    seed: u64,
    shared: Arc<Shared>,
    is_gone: Arc<AtomicBool>,
}

// === impl Caller ===

impl Caller {
    async fn run(self) {
        let caller = std::rc::Rc::new(self);
        while !caller.is_over() {
            let client = match Client::connect(caller.node).await {
                Ok(client) => client,
                Err(fault) => {
                    caller.fail(&fault.to_string());
                    super::pause(RETRY).await;
                    continue;
                }
            };
            let calls: Vec<_> = (0..IN_FLIGHT)
                .map(|place| {
                    let (caller, client) = (std::rc::Rc::clone(&caller), client.clone());
                    spawn_local(async move { caller.repeat(client, place).await })
                })
                .collect();
            for call in calls {
                if let Err(fault) = call.await {
                    caller.fail(&fault.to_string());
                }
            }
        }
    }

    /// Calls one after the other until the end, or until a call fails.
    async fn repeat(&self, mut client: Client, place: u64) {
        for user in self.keys.callers(self.seed * 31 + place) {
            if self.is_over() {
                return;
            }
            let begun = self.windows.now();
            match client.ask(self.keys.question(user)).await {
                Ok(answer) => self.note(user, begun, answer),
                Err(fault) => return self.fail(&fault.to_string()),
            }
            if let Pace::After(time) = self.pace {
                super::pause(time).await;
            }
        }
    }

    fn note(&self, user: u64, begun: u64, answer: Answer) {
        self.shared.answers.fetch_add(1, Ordering::Relaxed);
        match answer {
            Answer::Refusal => {
                self.shared.refusals.fetch_add(1, Ordering::Relaxed);
            }
            Answer::Pass if user < WATCHED => {
                let ended = self.windows.now();
                let told = self.shared.told.lock();
                let mut told = told.unwrap_or_else(PoisonError::into_inner);
                if begun == ended {
                    *told.passed.entry((user, begun)).or_default() += 1;
                } else {
                    for window in [begun, ended] {
                        *told.astride.entry((user, window)).or_default() += 1;
                    }
                }
            }
            Answer::Pass => {}
        }
    }

    fn fail(&self, fault: &str) {
        if self.is_over() {
            return;
        }
        self.shared.errors.fetch_add(1, Ordering::Relaxed);
        let last = self.shared.last_error.lock();
        *last.unwrap_or_else(PoisonError::into_inner) = Some(fault.to_owned());
    }

    fn is_over(&self) -> bool {
        self.shared.ended.load(Ordering::Relaxed) || self.is_gone.load(Ordering::Relaxed)
    }
}
