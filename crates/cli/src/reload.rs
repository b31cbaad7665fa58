//! New rules for a server that runs, on SIGHUP. Bad ones never replace good ones.

use std::io;
use std::path::PathBuf;

use tidegate_limiter::Limiter;
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;

use crate::args::{CompileArgs, ServeArgs};
use crate::banner::Inventory;
use crate::{rules_files, terminal};

/// Reads the rules again each time `hangup` comes, for ever.
pub(crate) async fn on_hangup<S>(mut hangup: Signal, args: &ServeArgs, limiter: &Limiter<S>) {
    while hangup.recv().await.is_some() {
        reload(&args.rules, args.compile, limiter).await;
    }
}

async fn reload<S>(paths: &[PathBuf], args: CompileArgs, limiter: &Limiter<S>) {
    let paths = paths.to_vec();
    // Apart from the one thread that answers: reading and compiling may take a while.
    let loaded = spawn_blocking(move || rules_files::load(&paths, args)).await;
    match loaded {
        Ok(Ok(compiled)) => {
            terminal::eprint(&compiled.warnings.render(terminal::color(&io::stderr())));
            let loaded = Inventory::of(&compiled.rules);
            limiter.replace_rules(compiled.rules);
            terminal::eprint(&format!("reloaded the rules: {loaded}\n"));
        }
        Ok(Err(failure)) => {
            failure.report();
            terminal::eprint("the rules were not reloaded; those before stay in force\n");
        }
        Err(reason) => terminal::eprint(&format!(
            "error: cannot reload the rules: {reason}; those before stay in force\n"
        )),
    }
}
