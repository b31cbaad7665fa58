//! `tidegate serve`: the rules, the embedded store and the server, joined.

mod open_files;
mod settings;

use std::future::pending;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tidegate_gateway::Gateway;
use tidegate_limiter::{Limiter, Store};
use tidegate_observe::{Exporter, Observatory};
use tidegate_rules::{Compiled, Report, RuleSet};
use tidegate_server::{Admin, Bound, Certificates, Parts, Server, Stop};
use tidegate_store::EmbeddedStore;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::args::{ServeArgs, SettingArgs, VERSION};
use crate::authorize::UnmetRules;
use crate::banner::{Inventory, banner};
use crate::config::{self, Config, Loaded, StandIn};
use crate::failure::Failure;
use crate::gateway::SettingsReloader;
use crate::hooks::Hooks;
use crate::log::{self, LogFormat, LogHandle};
use crate::reload::{self, Reloader};
use crate::rules_source::RulesSource;
use crate::stores::AnyStore;
use crate::{gateway, runtime, state, stores, terminal};

/// Serves until it is told to stop.
pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    if let Some(stray) = args.stray.first() {
        return Err(Failure::StrayArgument(stray.clone()));
    }
    let loaded = config::load(&args.settings)?;
    let log = &loaded.config.observing.log;
    let log = log::start(log.level.clone(), log.format);
    loaded.warn();
    let runtime = runtime::start()?;
    let served = start(args, &loaded, log, &runtime);
    // A read of a file that hangs must not keep the process from ending.
    runtime.shutdown_timeout(LAST_FILES);
    served?;
    Ok(ExitCode::SUCCESS)
}

/// Reads the rules and serves by them.
fn start(
    args: &ServeArgs,
    loaded: &Loaded,
    log: LogHandle,
    runtime: &Runtime,
) -> Result<(), Failure> {
    let source = RulesSource::of(&loaded.config.rules)?;
    let compiled = runtime.block_on(source.start());
    let compiled = compiled.map_err(|failure| match failure {
        Failure::Unreadable(paths) if loaded.stand_in == StandIn::Yes => Failure::NoRuntime(paths),
        other => other,
    })?;
    reload::warn_of(&compiled.warnings);
    if let Some(warning) = gateway::no_limits(&loaded.config, &compiled.rules) {
        warn!("{warning}");
    }
    runtime.block_on(serve(&args.settings, loaded, log, compiled, source))
}

async fn serve(
    args: &SettingArgs,
    loaded: &Loaded,
    log: LogHandle,
    compiled: Compiled,
    source: RulesSource,
) -> Result<(), Failure> {
    let config = &loaded.config;
    // Before the banner: who reads it may stop us at once.
    let mut stops = Stops::listen()?;
    let hangups = Hangups::listen()?;
    let token = config.admin.token()?;
    // Before anything is opened: faults of its files are told at once.
    let threads = settings::cores(config).0;
    let (observatory, exporter) = Observatory::new(settings::observing(loaded));
    let observatory = Arc::new(observatory);
    let (gateway, settings_reloader) = gateway::open(args, loaded, threads, &observatory).await?;
    let opened = state::open(config)?;
    let limiter = limit(config, opened.store, compiled.rules).await?;
    let server = bind(config, gateway.as_deref())?;
    let certificates = server.certificates();
    let (rules, bound) = (limiter.rules(), server.bound());
    greet(loaded, &source, &rules, &compiled.warnings, &bound);
    let state = opened.keeping.start(&limiter)?;
    observatory.reloaded(source.version());
    let unmet = UnmetRules::of(config);
    let reloader = Arc::new(Reloader::new(source, &limiter, &observatory, unmet));
    let admin = Admin {
        gateway: gateway.clone(),
        limiter: Arc::clone(&limiter),
        observatory: Arc::clone(&observatory),
        hooks: Arc::new(Hooks {
            config: config::effective_json(&loaded.known),
            sharing: config.rules.sharing,
            reloader: Arc::clone(&reloader),
            log,
            state: state.reporter(),
        }),
        config: settings::admin(config, token),
    };
    let parts = Parts {
        gateway,
        limiter: Arc::clone(&limiter),
        observatory,
        admin: Some(Arc::new(admin)),
    };
    let spans = Spans::send(exporter);
    let served = server.run(&parts, async || stops.next().await);
    let ended = tokio::select! {
        served = served => served.map_err(Failure::CannotRun),
        () = limiter.store().run() => Ok(()),
        () = reload_all(&reloader, certificates, settings_reloader.as_ref(), hangups) => Ok(()),
    };
    // Nothing is charged any more.
    limiter.store().finish().await;
    state.finish();
    spans.finish().await;
    ended
}

/// Joins the rules to the store, in which their limits get the room that they need.
async fn limit(
    config: &Config,
    local: EmbeddedStore,
    rules: RuleSet,
) -> Result<Arc<Limiter<AnyStore>>, Failure> {
    let store = stores::open(config, local).await?;
    let limiter = Limiter::try_new(store, rules, settings::limiter(config));
    limiter.map(Arc::new).map_err(Failure::RulesDoNotFit)
}

/// Listens wherever the settings say, with room for as many connections as the system allows.
fn bind(config: &Config, gateway: Option<&Gateway>) -> Result<Server, Failure> {
    let mut server = settings::server(config);
    open_files::raise_limit(config, &mut server, gateway);
    Server::bind(server).map_err(Failure::CannotListen)
}

/// Says that it serves: to people on stdout, to programs in their log.
fn greet(
    loaded: &Loaded,
    source: &RulesSource,
    rules: &RuleSet,
    findings: &Report,
    bound: &[Bound],
) {
    let source = &source.describe();
    match loaded.config.observing.log.format {
        LogFormat::Text => terminal::print(&banner(loaded, source, rules, findings, bound)),
        LogFormat::Json => {
            for Bound { front, address, .. } in bound {
                info!(%front, %address, "listening");
            }
            let loaded = Inventory::of(rules);
            info!(version = VERSION, rules = source, "serving: {loaded}");
        }
    }
}

/// The longest time that reads and writes of files under way take at the end.
const LAST_FILES: Duration = Duration::from_secs(1);

/// How long the last spans may take to be sent.
const LAST_SPANS: Duration = Duration::from_secs(1);

/// The sending of spans, if there is any.
struct Spans(Option<(oneshot::Sender<()>, JoinHandle<()>)>);

// === impl Spans ===

impl Spans {
    fn send(exporter: Option<Exporter>) -> Self {
        Self(exporter.map(|exporter| {
            let (end, ended) = oneshot::channel();
            let run = exporter.run(async {
                // Dropped or sent, it is the end.
                let _ = ended.await;
            });
            (end, tokio::spawn(run))
        }))
    }

    /// Sends what is left, if that takes no time to speak of: the end of the process is not to wait
    /// for a collector that does not answer.
    async fn finish(self) {
        if let Some((end, sending)) = self.0 {
            drop(end);
            let _ = timeout(LAST_SPANS, sending).await;
        }
    }
}

/// The signal to read files again, for each that reads some.
struct Hangups {
    rules: Signal,
    certificates: Signal,
    settings: Signal,
}

// === impl Hangups ===

impl Hangups {
    fn listen() -> Result<Self, Failure> {
        Ok(Self {
            rules: listen(SignalKind::hangup())?,
            certificates: listen(SignalKind::hangup())?,
            settings: listen(SignalKind::hangup())?,
        })
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

/// Reads rules, certificates and settings again when they change, for ever.
async fn reload_all<S: Store>(
    rules: &Reloader<S>,
    certificates: Certificates,
    settings: Option<&SettingsReloader>,
    hangups: Hangups,
) {
    let settings = async {
        match settings {
            Some(reloader) => Box::pin(reloader.run(hangups.settings)).await,
            None => pending().await,
        }
    };
    tokio::join!(
        rules.watch(),
        rules.on_hangup(hangups.rules),
        renew(certificates, hangups.certificates),
        settings,
    );
}

/// Reads the certificates again each time `hangup` comes, for ever. The server tells what is wrong with
/// them.
async fn renew(certificates: Certificates, mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        let certificates = certificates.clone();
        let _ = spawn_blocking(move || certificates.reload()).await;
    }
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|reason| Failure::System {
        what: "listen for signals",
        reason,
    })
}
