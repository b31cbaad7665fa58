//! `tidegate serve`: the rules, the embedded store and the HTTP front door, joined.

use std::future::Future;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use tidegate_limiter::{GlobalShadow, Limiter, LimiterConfig, NearRatio};
use tidegate_rules::Compiled;
use tidegate_server::HttpConfig;
use tidegate_store::{EmbeddedStore, StoreConfig};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::ServeArgs;
use crate::banner::banner;
use crate::config::{self, Address, Config, Loaded};
use crate::failure::Failure;
use crate::{reload, rules_files, terminal};

/// Serves until it is told to stop.
pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    if let Some(stray) = args.stray.first() {
        return Err(Failure::StrayArgument(stray.clone()));
    }
    let loaded = config::load(&args.settings)?;
    let compiled = rules_files::load(&loaded.config.rules)?;
    terminal::eprint(&compiled.warnings.render(terminal::color(&io::stderr())));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|reason| Failure::System {
            what: "start the runtime",
            reason,
        })?;
    runtime.block_on(serve(&loaded, compiled))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(loaded: &Loaded, compiled: Compiled) -> Result<(), Failure> {
    let config = &loaded.config;
    // Before the banner: who reads it may stop us at once.
    let stop = stop_signal()?;
    let hangup = listen(SignalKind::hangup())?;
    let Address::Tcp(http) = config.listeners.http.address else {
        return Ok(());
    };
    let listener = TcpListener::bind(http)
        .await
        .map_err(|reason| cannot_listen(config, reason))?;
    let address = listener
        .local_addr()
        .map_err(|reason| cannot_listen(config, reason))?;
    let store = store(config)?;
    terminal::print(&banner(loaded, &compiled, address));
    let limiter = Arc::new(Limiter::new(store, compiled.rules, limiter_config(config)));
    let served = tidegate_server::serve(listener, limiter.clone(), HttpConfig::default(), stop);
    tokio::select! {
        () = served => {}
        () = reload::on_hangup(hangup, &config.rules, &limiter) => {}
    }
    Ok(())
}

fn store(config: &Config) -> Result<EmbeddedStore, Failure> {
    let config = StoreConfig {
        max_memory: config.store.max_memory.0,
    };
    EmbeddedStore::try_new(config).map_err(Failure::NoMemory)
}

fn limiter_config(config: &Config) -> LimiterConfig {
    LimiterConfig {
        charging: config.charging,
        near: NearRatio::from_millionths(config.near_ratio.millionths()),
        shadow: if config.shadow {
            GlobalShadow::On
        } else {
            GlobalShadow::Off
        },
    }
}

/// Ready when the process is asked to stop.
fn stop_signal() -> Result<impl Future<Output = ()>, Failure> {
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|reason| Failure::System {
        what: "listen for signals",
        reason,
    })
}

fn cannot_listen(config: &Config, reason: io::Error) -> Failure {
    Failure::CannotListen {
        address: config.listeners.http.address.clone(),
        flag: "--http",
        reason,
    }
}
