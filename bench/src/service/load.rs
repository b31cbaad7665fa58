//! Load on a server, in two shapes.
//!
//! In a closed loop so many calls are always under way: that gives the most calls a second, and a
//! latency that is only the length of the queue. In an open loop calls begin when they are due, whether
//! or not others have come back, and latency counts from that instant: a server that stalls cannot
//! hide it.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, LocalSet, spawn_local};

use super::client::{Answer, Client, Fault};
use super::keys::Keys;
use super::process::Process;
use super::ticker::Ticker;

/// Connections to the server.
const CONNECTIONS: usize = 4;

/// How often the open loop looks for calls that are due.
const TICK: Duration = Duration::from_micros(100);

/// What to do to a server.
#[derive(Clone, Copy)]
pub struct Load {
    /// In which shape.
    pub shape: Shape,
    /// Whom to ask about.
    pub keys: Keys,
    /// The meaning of a denial.
    pub denials: Denials,
    /// How long before it counts.
    pub warmup: Duration,
    /// How long it counts.
    pub duration: Duration,
}

/// The shape of a load.
#[derive(Clone, Copy)]
pub enum Shape {
    /// So many calls under way on each connection.
    Closed {
        /// How many.
        in_flight: usize,
    },
    /// So many calls a second, evenly.
    Open {
        /// How many.
        per_second: u32,
    },
}

/// The meaning of a denied call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denials {
    /// The limits are so large that none is due: the run is worth nothing.
    Fault,
    /// Some callers ask for more than their limit.
    Expected,
}

/// What a load came to.
pub struct Sample {
    /// Answers in the time that counts.
    pub calls: f64,
    /// Those of them that were denials.
    pub denied: f64,
    /// How long that was.
    pub seconds: f64,
    /// Seconds of processor that the server took for them.
    pub cpu_seconds: f64,
    /// Their latencies in nanoseconds, sorted.
    latencies: Vec<u64>,
}

/// The time that counts.
#[derive(Clone, Copy)]
struct Window {
    begin: Instant,
    start: Instant,
    end: Instant,
}

/// What all calls of a load share.
struct Course {
    window: Window,
    denials: Denials,
    denied: Cell<u64>,
    latencies: RefCell<Vec<u64>>,
    under_way: Cell<usize>,
    fault: RefCell<Option<Fault>>,
}

/// Asks about each of the keys once.
pub fn fill(server: &Process, keys: Keys) -> Result<(), Box<dyn Error>> {
    on_local_set(async {
        let next = Rc::new(Cell::new(0));
        let mut workers = JoinSet::new();
        for mut client in connect(server, CONNECTIONS * 16).await? {
            let next = Rc::clone(&next);
            workers.spawn_local(async move {
                while next.get() < keys.count {
                    let key = next.replace(next.get() + 1);
                    client.call(keys.question(key)).await.map_err(text)?;
                }
                Ok(())
            });
        }
        finished(workers).await
    })
}

// === impl Load ===

impl Load {
    /// Puts the load on `server`.
    pub fn run(self, server: &Process, seed: u64) -> Result<Sample, Box<dyn Error>> {
        on_local_set(async {
            match self.shape {
                Shape::Closed { in_flight } => self.closed(server, in_flight, seed).await,
                Shape::Open { per_second } => self.open(server, per_second, seed).await,
            }
        })
    }

    async fn closed(self, server: &Process, in_flight: usize, seed: u64) -> Result<Sample, Fault> {
        let clients = connect(server, CONNECTIONS * in_flight).await?;
        let course = Rc::new(Course::new(self));
        let mut workers = JoinSet::new();
        for (worker, client) in (0_u64..).zip(clients) {
            let draws = self.keys.draws(seed.wrapping_add(worker));
            let course = Rc::clone(&course);
            workers.spawn_local(async move { course.repeat(client, draws).await });
        }
        let sample = course.measure(server).await?;
        finished(workers).await?;
        course.complete(sample)
    }

    async fn open(self, server: &Process, per_second: u32, seed: u64) -> Result<Sample, Fault> {
        let clients = connect(server, CONNECTIONS).await?;
        let course = Rc::new(Course::new(self));
        let draws = self.keys.draws(seed);
        let arrivals = spawn_local({
            let course = Rc::clone(&course);
            let gap = Duration::from_secs(1) / per_second;
            async move { course.arrive(clients, draws, gap).await }
        });
        let sample = course.measure(server).await?;
        arrivals.await??;
        course.complete(sample)
    }
}

// === impl Course ===

impl Course {
    fn new(load: Load) -> Self {
        let begin = Instant::now();
        let start = begin + load.warmup;
        Self {
            window: Window {
                begin,
                start,
                end: start + load.duration,
            },
            denials: load.denials,
            denied: Cell::new(0),
            latencies: RefCell::default(),
            under_way: Cell::new(0),
            fault: RefCell::default(),
        }
    }

    /// Calls one after the other until the end.
    async fn repeat(
        &self,
        mut client: Client,
        draws: impl Iterator<Item = bytes::Bytes>,
    ) -> Result<(), String> {
        for question in draws {
            let begun = Instant::now();
            if begun >= self.window.end {
                break;
            }
            let answer = self.ask(&mut client, question).await.map_err(text)?;
            let done = Instant::now();
            if self.window.start <= done && done < self.window.end {
                self.note(answer, done - begun);
            }
        }
        Ok(())
    }

    /// Begins each call when it is due until the end, and waits for the last answers.
    async fn arrive(
        self: Rc<Self>,
        clients: Vec<Client>,
        draws: impl Iterator<Item = bytes::Bytes>,
        gap: Duration,
    ) -> Result<(), Fault> {
        let mut ticker = Ticker::every(TICK)?;
        let mut calls = clients.iter().cycle().zip(draws);
        let mut due = self.window.begin;
        while due < self.window.end {
            ticker.tick().await?;
            let now = Instant::now();
            while due <= now.min(self.window.end) {
                if let Some((client, question)) = calls.next() {
                    self.under_way.set(self.under_way.get() + 1);
                    let call = Rc::clone(&self).call(client.clone(), question, due);
                    spawn_local(call);
                }
                due += gap;
            }
        }
        while self.under_way.get() > 0 {
            ticker.tick().await?;
        }
        Ok(())
    }

    async fn call(self: Rc<Self>, mut client: Client, question: bytes::Bytes, due: Instant) {
        let answer = self.ask(&mut client, question).await;
        self.under_way.set(self.under_way.get() - 1);
        match answer {
            Ok(answer) if due >= self.window.start => self.note(answer, due.elapsed()),
            Ok(_) => {}
            Err(fault) => *self.fault.borrow_mut() = Some(fault),
        }
    }

    async fn ask(&self, client: &mut Client, question: bytes::Bytes) -> Result<Answer, Fault> {
        match self.denials {
            Denials::Fault => client.call(question).await.map(|()| Answer::Pass),
            Denials::Expected => client.ask(question).await,
        }
    }

    fn note(&self, answer: Answer, latency: Duration) {
        if answer == Answer::Refusal {
            self.denied.set(self.denied.get() + 1);
        }
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.latencies.borrow_mut().push(nanos);
    }

    /// The processor's time of the server during the time that counts.
    async fn measure(&self, server: &Process) -> Result<f64, Fault> {
        tokio::time::sleep_until(self.window.start.into()).await;
        let before = server.cpu_seconds()?;
        tokio::time::sleep_until(self.window.end.into()).await;
        Ok(server.cpu_seconds()? - before)
    }

    fn complete(&self, cpu_seconds: f64) -> Result<Sample, Fault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let mut latencies = self.latencies.take();
        latencies.sort_unstable();
        if latencies.is_empty() {
            return Err("no answers".into());
        }
        Ok(Sample {
            calls: latencies.len() as f64,
            denied: self.denied.get() as f64,
            seconds: (self.window.end - self.window.start).as_secs_f64(),
            cpu_seconds,
            latencies,
        })
    }
}

// === impl Sample ===

impl Sample {
    /// Microseconds of processor that a call took.
    pub fn cpu_micros(&self) -> f64 {
        self.cpu_seconds / self.calls * 1e6
    }

    /// Thousands of calls a second.
    pub fn thousands_per_second(&self) -> f64 {
        self.calls / self.seconds / 1e3
    }

    /// The latency that so many hundredths of the calls were no slower than, in microseconds.
    pub fn percentile(&self, hundredths: usize) -> f64 {
        let place = (self.latencies.len() - 1) * hundredths / 100;
        self.latencies[place] as f64 / 1e3
    }
}

/// Handles for so many workers, spread over the connections.
async fn connect(server: &Process, workers: usize) -> Result<Vec<Client>, Fault> {
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        clients.push(Client::connect(server.address).await?);
    }
    Ok(clients.iter().cycle().take(workers).cloned().collect())
}

async fn finished(mut workers: JoinSet<Result<(), String>>) -> Result<(), Fault> {
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(())
}

fn on_local_set<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, work)
}

/// A fault in words: a task has to give back what could go to another thread.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn text(fault: Fault) -> String {
    fault.to_string()
}
