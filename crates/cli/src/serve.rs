//! `tidegate serve`: the rules, the embedded store and the server, joined.

mod settings;

use std::process::ExitCode;
use std::sync::Arc;

use tidegate_limiter::Limiter;
use tidegate_rules::Compiled;
use tidegate_server::{Certificates, Parts, Server, Stop};
use tidegate_store::{EmbeddedStore, StoreConfig};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::spawn_blocking;

use crate::args::ServeArgs;
use crate::banner::banner;
use crate::config::{self, Config, Loaded};
use crate::failure::Failure;
use crate::reload::{self, Reloader};
use crate::watch::{self, Fingerprint};
use crate::{log, rules_files, terminal};

/// Serves until it is told to stop.
pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    if let Some(stray) = args.stray.first() {
        return Err(Failure::StrayArgument(stray.clone()));
    }
    let loaded = config::load(&args.settings)?;
    let log = &loaded.config.observing.log;
    let log = log::start(log.level.clone(), log.format);
    // Before the rules are read, so that a change while they are is seen as one.
    let seen = Fingerprint::of(&loaded.config.rules);
    let compiled = rules_files::load(&loaded.config.rules)?;
    reload::warn_of(&compiled.warnings);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|reason| Failure::System {
            what: "start the runtime",
            reason,
        })?;
    runtime.block_on(serve(&loaded, compiled, seen))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(loaded: &Loaded, compiled: Compiled, seen: Fingerprint) -> Result<(), Failure> {
    let config = &loaded.config;
    // Before the banner: who reads it may stop us at once.
    let mut stops = Stops::listen()?;
    let hangup = listen(SignalKind::hangup())?;
    let renewal = listen(SignalKind::hangup())?;
    let store = store(config)?;
    let server = Server::bind(settings::server(config)).map_err(Failure::CannotListen)?;
    terminal::print(&banner(loaded, &compiled, &server.bound()));
    let limiter = Limiter::new(store, compiled.rules, settings::limiter(config));
    let limiter = Arc::new(limiter);
    let parts = Parts {
        limiter: Arc::clone(&limiter),
        observatory: Arc::default(),
        admin: None,
    };
    let reloader = Reloader::new(
        config.rules.clone(),
        seen,
        limiter,
        Arc::clone(&parts.observatory),
    );
    let certificates = server.certificates();
    let served = server.run(&parts, async || stops.next().await);
    tokio::select! {
        served = served => served.map_err(Failure::CannotRun),
        () = reloader.on_hangup(hangup) => Ok(()),
        () = renew(certificates, renewal) => Ok(()),
        () = watch::watch(&reloader), if config.rules.is_watched() => Ok(()),
    }
}

/// The signals that ask the process to stop.
struct Stops {
    interrupt: Signal,
    terminate: Signal,
}

// === impl Stops ===

impl Stops {
    fn listen() -> Result<Self, Failure> {
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    /// The next time the process is asked to stop. Who presses Ctrl-C does not wait for a load balancer.
    async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.interrupt.recv() => Stop::Now,
            _ = self.terminate.recv() => Stop::AfterDelay,
        }
    }
}

/// Reads the certificates again each time `hangup` comes, for ever. The server tells what is wrong with
/// them.
async fn renew(certificates: Certificates, mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        let certificates = certificates.clone();
        let _ = spawn_blocking(move || certificates.reload()).await;
    }
}

fn store(config: &Config) -> Result<EmbeddedStore, Failure> {
    let config = StoreConfig {
        max_memory: config.store.max_memory.0,
    };
    EmbeddedStore::try_new(config).map_err(Failure::NoMemory)
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|reason| Failure::System {
        what: "listen for signals",
        reason,
    })
}
