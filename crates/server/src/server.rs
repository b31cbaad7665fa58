//! A server: its listeners, its cores, and its end.

mod bind;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tidegate_gateway::Gateway;
use tidegate_limiter::{Limiter, Store};
use tidegate_observe::{LogSampler, Observatory};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tracing::{info, warn};

use crate::cores::{Balance, Core, Kit, Lane};
use crate::drain::{Drain, DrainSwitch, Phase, drain};
use crate::grpc::CallMemory;
use crate::listen::Listener;
use crate::{Address, Admin, Certificates, Front, ServerConfig};

pub use bind::{BindError, BindFault};

/// A server that listens. Nobody is answered until it runs; dropped, it lets go of its addresses.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    listeners: Vec<Listener>,
    certificates: Certificates,
    rejected_questions: Arc<LogSampler>,
}

/// What a server joins.
#[derive(Debug)]
pub struct Parts<S> {
    /// Who decides.
    pub limiter: Arc<Limiter<S>>,
    /// Who adds up what the cores write down.
    pub observatory: Arc<Observatory>,
    /// The reverse proxy; without it, its listeners close every connection.
    pub gateway: Option<Arc<Gateway>>,
    /// Who answers operators; without it, their listeners close every connection.
    pub admin: Option<Arc<Admin<S>>>,
}

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What is answered there.
    pub front: Front,
    /// The address, with a real port.
    pub address: Address,
    /// Whether clients must speak TLS.
    pub is_secure: bool,
}

/// How a server is asked to stop. Asked again, it ends at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After the configured delay, for load balancers to notice.
    AfterDelay,
    /// Without a delay; calls under way are answered.
    Now,
}

/// Why a server cannot run, or ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A thread that could not be started.
    #[error("cannot start a thread to answer on")]
    CannotStart(#[source] io::Error),
    /// A thread that ended by itself.
    #[error("a thread that answers has failed")]
    CoreFailed,
}

/// What is under way in a server that runs. Dropped, it all ends at once.
struct Running {
    /// Ends the taking of connections, before those that are there are told to finish: who sees one close
    /// and comes back is not to meet us again.
    gate: DrainSwitch,
    accepting: JoinSet<()>,
    switch: DrainSwitch,
    /// Who looks after things, for ever.
    keepers: JoinSet<()>,
    /// Who answers, until nobody above is left who holds the way to them.
    cores: JoinSet<Result<(), oneshot::error::RecvError>>,
}

/// How often it is looked at how busy the cores are.
const TICK: Duration = Duration::from_secs(1);

/// The time after the grace in which idle connections are closed in good order. More than a connection lingers.
const CLOSING_TIME: Duration = Duration::from_secs(1);

/// How long cores may take to let go of everything once there is no time left. They need to wake up for
/// that, no more.
const LAST_WAIT: Duration = Duration::from_secs(1);

// === impl Server ===

impl Server {
    /// Listens wherever `config` says.
    ///
    /// # Errors
    ///
    /// Names every listener that cannot be had, and why.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with IO and time.
    pub fn bind(config: ServerConfig) -> Result<Self, BindError> {
        let (listeners, certificates) = bind::open(&config)?;
        Ok(Self {
            config,
            listeners,
            certificates,
            rejected_questions: Arc::default(),
        })
    }

    /// Where it listens.
    pub fn bound(&self) -> Vec<Bound> {
        let bound = |listener: &Listener| Bound {
            front: listener.front(),
            address: listener.address().clone(),
            is_secure: listener.is_secure(),
        };
        self.listeners.iter().map(bound).collect()
    }

    /// The certificates of its listeners, to have them read again at once.
    pub fn certificates(&self) -> Certificates {
        self.certificates.clone()
    }

    /// Answers until `stop` is ready, then ends in good order: health checks are told at once; after the
    /// delay no connection is taken any more, what is under way is answered, and idle connections may bring one more
    /// request, for as long as the grace period lasts. Then `stop` is called again, and if it is ready before, all ends at once.
    ///
    /// # Errors
    ///
    /// If its threads cannot be started, or fail.
    pub async fn run<S: Store + Send + Sync + 'static>(
        self,
        parts: &Parts<S>,
        mut stop: impl AsyncFnMut() -> Stop,
    ) -> Result<(), RunError> {
        let config = self.config.drain;
        let mut running = self.start(parts).map_err(RunError::CannotStart)?;
        let asked = tokio::select! {
            asked = stop() => asked,
            _ = running.cores.join_next() => return Err(RunError::CoreFailed),
        };
        let delay = match asked {
            Stop::AfterDelay => config.delay,
            Stop::Now => Duration::ZERO,
        };
        tokio::select! {
            () = running.drain(delay, config.grace) => {}
            _ = stop() => warn!("asked to stop a second time: what is under way is cut off"),
        }
        running.cut_off().await;
        Ok(())
    }

    fn start<S>(self, parts: &Parts<S>) -> io::Result<Running>
    where
        S: Store + Send + Sync + 'static,
    {
        let (switch, phases) = drain();
        let mut cores = JoinSet::new();
        let grpc_memory = self.config.grpc_bounds.max_memory_bytes;
        let n_connections = self.config.grpc.iter().map(|it| it.max_connections);
        let grpc_memory = Arc::new(CallMemory::new(grpc_memory, n_connections.sum()));
        let mut start = |name: String| {
            let core = Core::start(
                name,
                self.kit(parts, Arc::clone(&grpc_memory), phases.clone()),
            )?;
            cores.spawn(core.ended);
            io::Result::Ok(core.lane)
        };
        let lanes: io::Result<Vec<Lane>> = (0..self.config.cores.0.get())
            .map(|index| start(format!("tidegate-{index}")))
            .collect();
        let traffic = Arc::new(Balance::new(lanes?));
        // Operators have a thread of their own, so that what they ask holds up nobody.
        let mut admin = Vec::new();
        if !(self.config.admin.is_empty() && self.config.metrics.is_empty()) {
            admin.push(start("tidegate-admin".to_owned())?);
        }
        let admin = Arc::new(Balance::new(admin));
        let (gate, closing) = drain();
        let mut accepting = JoinSet::new();
        for mut listener in self.listeners {
            if let (Front::Gateway, Some(gateway)) = (listener.front(), &parts.gateway) {
                listener.exempt_proxies_of(Arc::clone(gateway));
            }
            let balance = match listener.front() {
                Front::Gateway | Front::Http | Front::Grpc => Arc::clone(&traffic),
                Front::Admin | Front::Metrics => Arc::clone(&admin),
            };
            let hand_over = move |connection| balance.hand_over(connection);
            accepting.spawn(listener.run(closing.clone(), hand_over));
        }
        let mut keepers = JoinSet::new();
        keepers.spawn(keep_time([traffic, admin]));
        keepers.spawn(self.certificates.watch());
        if let Some(gateway) = &parts.gateway {
            keepers.spawn(Arc::clone(gateway).run());
        }
        Ok(Running {
            gate,
            accepting,
            switch,
            keepers,
            cores,
        })
    }

    fn kit<S>(&self, parts: &Parts<S>, grpc_memory: Arc<CallMemory>, drain: Drain) -> Kit<S> {
        Kit {
            limiter: Arc::clone(&parts.limiter),
            observatory: Arc::clone(&parts.observatory),
            gateway: parts.gateway.clone(),
            admin: parts.admin.clone(),
            answers: self.config.answers.clone(),
            authorize: self.config.authorize.clone(),
            rejected_questions: Arc::clone(&self.rejected_questions),
            gateway_bounds: self.config.gateway_bounds.clone(),
            http: self.config.http_bounds,
            grpc: self.config.grpc_bounds,
            grpc_memory,
            drain,
        }
    }
}

// === impl Running ===

impl Running {
    /// Ends in good order, as far as the grace period lets it.
    async fn drain(&mut self, delay: Duration, grace: Duration) {
        info!(
            delay_s = delay.as_secs_f64(),
            grace_s = grace.as_secs_f64(),
            "stopping"
        );
        if !delay.is_zero() {
            self.switch.advance(Phase::Leaving);
            sleep(delay).await;
        }
        // Without a delay, no response says `connection: close` before this point: a client that reconnected at once would reach a
        // listener that is about to close, and the kernel resets the connections in its backlog then.
        self.gate.begin();
        while self.accepting.join_next().await.is_some() {}
        self.keepers.shutdown().await;
        self.switch.begin();
        info!("listeners closed; draining connections, idle ones after one more request");
        if timeout(grace, self.ended()).await.is_ok() {
            return info!("stopped: all pending requests were answered");
        }
        self.switch.advance(Phase::Closing);
        if timeout(CLOSING_TIME, self.ended()).await.is_ok() {
            info!("stopped: grace period ended; idle connections were closed");
        } else {
            warn!("stopped: grace period ended; pending requests were cut off");
        }
    }

    /// Ends at once, as far as cores wake up.
    async fn cut_off(mut self) {
        self.accepting.shutdown().await;
        self.keepers.shutdown().await;
        self.switch.advance(Phase::Over);
        let _ = timeout(LAST_WAIT, self.ended()).await;
    }

    async fn ended(&mut self) {
        while self.cores.join_next().await.is_some() {}
    }
}

/// Looks at how busy the cores are, for ever.
async fn keep_time(balances: [Arc<Balance>; 2]) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        for balance in &balances {
            balance.tick();
        }
    }
}
