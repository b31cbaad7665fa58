//! Requests at a fixed rate. They begin when they are due, whether or not earlier ones are answered, and their latency counts from
//! that instant: a proxy that stalls cannot hide it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::task::{LocalSet, spawn_local};

use super::http1;
use crate::service::Ticker;

/// Connections to the proxy. A request that finds all of them in use waits, and its wait counts.
const CONNECTIONS: usize = 64;

/// The time between two looks for requests that are due.
const TICK: Duration = Duration::from_micros(100);

/// A load at a fixed rate.
#[derive(Clone, Copy)]
pub struct FixedRate {
    /// Requests a second.
    pub per_second: u32,
    /// The time before latencies count.
    pub warmup: Duration,
    /// The time in which they count.
    pub duration: Duration,
}

/// The latencies of one load in nanoseconds, sorted.
pub struct Latencies(Vec<u64>);

/// The state that all requests of a load share.
struct OpenLoop {
    /// Requests that are due from then on count.
    start: Instant,
    idle: RefCell<Vec<TcpStream>>,
    waiting: RefCell<VecDeque<Instant>>,
    latencies: RefCell<Vec<u64>>,
    fault: RefCell<Option<Box<dyn Error>>>,
}

// === impl FixedRate ===

impl FixedRate {
    /// Puts the load on the proxy at `address`.
    pub fn run(self, address: SocketAddr) -> Result<Latencies, Box<dyn Error>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        LocalSet::new().block_on(&runtime, self.arrive(address))
    }

    async fn arrive(self, address: SocketAddr) -> Result<Latencies, Box<dyn Error>> {
        let begin = Instant::now();
        let start = begin + self.warmup;
        let end = start + self.duration;
        let open_loop = Rc::new(OpenLoop::connect(address, start).await?);
        let gap = Duration::from_secs(1) / self.per_second;
        let mut ticker = Ticker::every(TICK)?;
        let mut due = Instant::now();
        while due < end {
            ticker.tick().await?;
            let now = Instant::now();
            while due <= now.min(end) {
                open_loop.begin(due);
                due += gap;
            }
        }
        while open_loop.idle.borrow().len() < CONNECTIONS && open_loop.fault.borrow().is_none() {
            ticker.tick().await?;
        }
        if let Some(fault) = open_loop.fault.take() {
            return Err(fault);
        }
        let mut latencies = open_loop.latencies.take();
        if latencies.is_empty() {
            return Err("no answers".into());
        }
        latencies.sort_unstable();
        Ok(Latencies(latencies))
    }
}

// === impl OpenLoop ===

impl OpenLoop {
    async fn connect(address: SocketAddr, start: Instant) -> Result<Self, Box<dyn Error>> {
        let mut idle = Vec::new();
        for _ in 0..CONNECTIONS {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            idle.push(stream);
        }
        Ok(Self {
            start,
            idle: RefCell::new(idle),
            waiting: RefCell::default(),
            latencies: RefCell::default(),
            fault: RefCell::default(),
        })
    }

    /// Begins a request, or has it wait for a connection.
    fn begin(self: &Rc<Self>, due: Instant) {
        let idle = self.idle.borrow_mut().pop();
        match idle {
            Some(stream) => {
                spawn_local(Rc::clone(self).send(stream, due));
            }
            None => self.waiting.borrow_mut().push_back(due),
        }
    }

    /// Sends a request, and on the same connection those that wait for one.
    async fn send(self: Rc<Self>, mut stream: TcpStream, mut due: Instant) {
        loop {
            if let Err(fault) = http1::get(&mut stream, 0).await {
                *self.fault.borrow_mut() = Some(fault);
                return;
            }
            if due >= self.start {
                let nanos = u64::try_from(due.elapsed().as_nanos()).unwrap_or(u64::MAX);
                self.latencies.borrow_mut().push(nanos);
            }
            let next = self.waiting.borrow_mut().pop_front();
            match next {
                Some(next) => due = next,
                None => break,
            }
        }
        self.idle.borrow_mut().push(stream);
    }
}

// === impl Latencies ===

impl Latencies {
    /// The latency in microseconds that this many hundredths of the requests stayed within.
    pub fn percentile(&self, hundredths: usize) -> f64 {
        let place = (self.0.len() - 1) * hundredths / 100;
        self.0[place] as f64 / 1e3
    }
}
