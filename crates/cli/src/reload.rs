//! New rules for a server that runs, on SIGHUP. Bad ones never replace good ones.

use std::io;

use tidegate_limiter::Limiter;
use tokio::signal::unix::Signal;
use tokio::task::spawn_blocking;

use crate::banner::Inventory;
use crate::config::Rules;
use crate::{rules_files, terminal};

/// Reads the rules again each time `hangup` comes, for ever.
pub(crate) async fn on_hangup<S>(mut hangup: Signal, rules: &Rules, limiter: &Limiter<S>) {
    while hangup.recv().await.is_some() {
        reload(rules, limiter).await;
    }
}

async fn reload<S>(rules: &Rules, limiter: &Limiter<S>) {
    let rules = rules.clone();
    // Apart from the one thread that answers: reading and compiling may take a while.
    let loaded = spawn_blocking(move || rules_files::load(&rules)).await;
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
