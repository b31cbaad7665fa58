//! `tidegate serve`: the rules, the embedded store and the HTTP front door, joined.

use std::future::Future;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use tidegate_limiter::{Charging, Limiter, LimiterConfig};
use tidegate_rules::Compiled;
use tidegate_server::HttpConfig;
use tidegate_store::{EmbeddedStore, StoreConfig};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{ChargingArg, ServeArgs};
use crate::banner::banner;
use crate::failure::Failure;
use crate::{reload, rules_files, terminal};

/// Serves until it is told to stop.
pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let compiled = rules_files::load(&args.rules, args.compile)?;
    terminal::eprint(&compiled.warnings.render(terminal::color(&io::stderr())));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|reason| Failure::System {
            what: "start the runtime",
            reason,
        })?;
    runtime.block_on(serve(args, compiled))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: &ServeArgs, compiled: Compiled) -> Result<(), Failure> {
    // Before the banner: who reads it may stop us at once.
    let stop = stop_signal()?;
    let hangup = listen(SignalKind::hangup())?;
    let listener = TcpListener::bind(args.http)
        .await
        .map_err(|reason| cannot_listen(args, reason))?;
    let address = listener
        .local_addr()
        .map_err(|reason| cannot_listen(args, reason))?;
    let store = store(args)?;
    terminal::print(&banner(args, &compiled, address));
    let limiter = Arc::new(Limiter::new(store, compiled.rules, config(args)));
    let served = tidegate_server::serve(listener, limiter.clone(), HttpConfig::default(), stop);
    tokio::select! {
        () = served => {}
        () = reload::on_hangup(hangup, args, &limiter) => {}
    }
    Ok(())
}

fn store(args: &ServeArgs) -> Result<EmbeddedStore, Failure> {
    let config = StoreConfig {
        max_memory: args.max_memory.0,
    };
    EmbeddedStore::try_new(config).map_err(Failure::NoMemory)
}

fn config(args: &ServeArgs) -> LimiterConfig {
    let charging = match args.charging {
        ChargingArg::AllOrNone => Charging::AllOrNone,
        ChargingArg::EveryMatch => Charging::EveryMatch,
    };
    LimiterConfig {
        charging,
        ..LimiterConfig::default()
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

fn cannot_listen(args: &ServeArgs, reason: io::Error) -> Failure {
    Failure::CannotListen {
        address: args.http,
        reason,
    }
}
