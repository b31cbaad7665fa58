//! Files of rules that changed are noticed.
//!
//! What the files look like decides, not what the kernel says of them: its events only end the wait
//! early. So a missed event, a file system without events and a link that now leads elsewhere, as
//! Kubernetes swaps a `ConfigMap`, cost a little time and nothing else.

mod events;
mod fingerprint;

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use crate::config::Rules;
use events::Events;
pub(crate) use fingerprint::Fingerprint;

/// How often the files are looked at although there was no event.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the files are looked at where there are no events.
const IMPATIENCE: Duration = Duration::from_secs(1);

/// How long files must look the same before they are read: programs write them in several steps.
const SETTLED: Duration = Duration::from_millis(50);

/// How often it is waited for files to settle; one that always changes is read all the same.
const MOST_WAITS: usize = 40;

/// Ready when the files of `rules` look otherwise than those that were last read, and have come to rest.
pub(crate) async fn changed(rules: &Rules, seen: impl Fn() -> Fingerprint) {
    loop {
        // Before the look at the files, so that no change falls between the two.
        let events = listen(rules).await;
        if settled(rules, &seen).await != seen() {
            return;
        }
        wait(events).await;
    }
}

async fn listen(rules: &Rules) -> Option<Events> {
    let rules = rules.clone();
    let folders = spawn_blocking(move || fingerprint::folders(&rules)).await;
    Events::of(&folders.unwrap_or_default())
}

async fn wait(events: Option<Events>) {
    match events {
        // Events or none, it goes on.
        Some(events) => {
            let _ = timeout(PATIENCE, events.any()).await;
            // In a busy folder there are many that do not concern us.
            sleep(SETTLED).await;
        }
        None => sleep(IMPATIENCE).await,
    }
}

/// What the files look like once they have come to rest.
async fn settled(rules: &Rules, seen: impl Fn() -> Fingerprint) -> Fingerprint {
    let mut before = look(rules).await;
    if before == seen() {
        return before;
    }
    for _ in 0..MOST_WAITS {
        sleep(SETTLED).await;
        let after = look(rules).await;
        if after == before {
            break;
        }
        before = after;
    }
    before
}

async fn look(rules: &Rules) -> Fingerprint {
    let rules = rules.clone();
    let looked = spawn_blocking(move || Fingerprint::of(&rules)).await;
    looked.unwrap_or_default()
}
