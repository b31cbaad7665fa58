//! The threads that answer: one runtime on each, and nothing shared between their connections.
//!
//! A connection stays on the core that got it. There is no stealing of work and no lock between the
//! calls of one core: see docs/adr/0007-one-runtime-per-core.md.

mod balance;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use tidegate_gateway::{Gateway, GatewayBounds, GatewayThread};
use tidegate_limiter::{Limiter, Store};
use tidegate_observe::{LogSampler, Observatory};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tracing::error;

use crate::connection::Connection;
use crate::core_context::{CoreContext, SharedCoreContext};
use crate::drain::{Drain, drain};
use crate::grpc::CallMemory;
use crate::{Admin, Answers, AuthorizeConfig, GrpcConfig, HttpConfig};

use balance::Turn;
pub(crate) use balance::{Balance, Lane, Load};

/// All that a core needs, on its way to the core's thread.
#[derive(Debug)]
pub(crate) struct Kit<S> {
    pub(crate) limiter: Arc<Limiter<S>>,
    pub(crate) observatory: Arc<Observatory>,
    pub(crate) gateway: Option<Arc<Gateway>>,
    pub(crate) admin: Option<Arc<Admin<S>>>,
    pub(crate) answers: Answers,
    pub(crate) authorize: AuthorizeConfig,
    pub(crate) rejected_questions: Arc<LogSampler>,
    pub(crate) gateway_bounds: GatewayBounds,
    pub(crate) http: HttpConfig,
    pub(crate) grpc: GrpcConfig,
    pub(crate) grpc_memory: Arc<CallMemory>,
    pub(crate) drain: Drain,
}

/// What the connections of a core are served with.
#[derive(Debug)]
pub(crate) struct Desk<S> {
    pub(crate) core: SharedCoreContext<S>,
    pub(crate) observatory: Arc<Observatory>,
    pub(crate) gateway: Option<Rc<GatewayThread<S>>>,
    pub(crate) admin: Option<Arc<Admin<S>>>,
    pub(crate) http: HttpConfig,
    pub(crate) grpc: GrpcConfig,
    pub(crate) grpc_memory: Arc<CallMemory>,
    pub(crate) drain: Drain,
}

/// A core, seen from outside. It ends when its lane is dropped and its connections have closed.
#[derive(Debug)]
pub(crate) struct Core {
    /// The way to it.
    pub(crate) lane: Lane,
    /// Ready when it has ended; an error if it failed.
    pub(crate) ended: oneshot::Receiver<()>,
}

/// A connection that was handed to a core.
#[derive(Debug)]
struct Handed {
    connection: Connection,
    turn: Turn,
}

// === impl Kit ===

impl<S> Kit<S> {
    /// Unpacks it on the core's thread: the context never leaves it.
    fn unpack(self, load: Arc<Load>, drain: Drain) -> Rc<Desk<S>> {
        let recorder = Rc::new(self.observatory.recorder());
        let gateway = self.gateway.map(|gateway| {
            Rc::new(GatewayThread::new(
                gateway,
                Arc::clone(&self.limiter),
                Rc::clone(&recorder),
                self.answers.headers.clone(),
                self.gateway_bounds,
            ))
        });
        let core = CoreContext {
            limiter: self.limiter,
            recorder,
            answers: self.answers,
            authorize: self.authorize,
            rejected_questions: self.rejected_questions,
            load,
        };
        Rc::new(Desk {
            core: Rc::new(core),
            observatory: self.observatory,
            gateway,
            admin: self.admin,
            http: self.http,
            grpc: self.grpc,
            grpc_memory: self.grpc_memory,
            drain,
        })
    }
}

// === impl Core ===

impl Core {
    /// Starts a thread of this name, and waits until it can serve.
    pub(crate) fn start<S>(name: String, kit: Kit<S>) -> io::Result<Self>
    where
        S: Store + Send + Sync + 'static,
    {
        let load = Arc::new(Load::default());
        let (sender, inbox) = mpsc::unbounded_channel();
        let (starting, started) = std::sync::mpsc::sync_channel(1);
        let (ending, ended) = oneshot::channel();
        let lane = Lane::new(sender, Arc::clone(&load));
        let run = move || match runtime() {
            // Nobody is left to hear it if the other ends are gone.
            Err(error) => drop(starting.send(Err(error))),
            Ok(runtime) => {
                let _ = starting.send(Ok(()));
                runtime.block_on(serve(inbox, kit, load));
                drop(runtime);
                let _ = ending.send(());
            }
        };
        thread::Builder::new().name(name).spawn(run)?;
        started.recv().map_err(io::Error::other)??;
        Ok(Self { lane, ended })
    }
}

// === impl Handed ===

impl Handed {
    async fn serve<S: Store + 'static>(self, desk: Rc<Desk<S>>) {
        self.connection.serve(desk).await;
        drop(self.turn);
    }
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
}

/// Serves what comes in until nothing can come any more and all connections have closed, or until
/// there is no time left.
async fn serve<S: Store + 'static>(
    mut inbox: mpsc::UnboundedReceiver<Handed>,
    kit: Kit<S>,
    load: Arc<Load>,
) {
    // A connection looks whether the end has begun each time it wakes up, and takes a lock for that. The
    // core has a channel of its own, so that no other core waits for it.
    let (switch, drain) = drain();
    let phases = kit.drain.clone();
    let desk = kit.unpack(load, drain);
    let mut open = JoinSet::new();
    if let Some(gateway) = desk.gateway.clone() {
        let mut drain = desk.drain.clone();
        open.spawn_local(async move {
            drain.left().await;
            gateway.leave();
        });
    }
    let all = async {
        loop {
            tokio::select! {
                handed = inbox.recv() => match handed {
                    Some(handed) => {
                        open.spawn_local(handed.serve(Rc::clone(&desk)));
                    }
                    None => break,
                },
                Some(closed) = open.join_next() => report(closed),
            }
        }
        while let Some(closed) = open.join_next().await {
            report(closed);
        }
    };
    tokio::select! {
        () = all => {}
        () = phases.pass_on(&switch) => {}
    }
}

/// A panic ends one connection, and is our fault.
fn report(closed: Result<(), JoinError>) {
    if let Err(error) = closed {
        error!(%error, "a connection was cut off by a fault of the server; please report it");
    }
}
