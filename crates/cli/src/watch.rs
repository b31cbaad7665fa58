//! Files that changed are noticed.
//!
//! What the files look like decides, not what the kernel says of them: its events only end the wait
//! early. So a missed event, a file system without events and a link that now leads elsewhere, as
//! Kubernetes swaps a `ConfigMap`, cost a little time and nothing else.

mod events;
mod fingerprint;

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use events::Events;
pub(crate) use fingerprint::{Fingerprint, WatchedFiles};

/// How often the files are looked at although there was no event.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often the files are looked at where there are no events.
const IMPATIENCE: Duration = Duration::from_secs(1);

/// How long files must look the same before they are read: programs write them in several steps.
const SETTLED: Duration = Duration::from_millis(50);

/// How often it is waited for files to settle; one that always changes is read all the same.
const MOST_WAITS: usize = 40;

/// The time after which a failed read is tried again; it doubles up to [`LONGEST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The longest time between two tries.
const LONGEST_RETRY: Duration = Duration::from_mins(1);

/// Ready when `files` have [`changed`], or when it is time to try again after `n_failed` reads in a row that failed: files that
/// could not be read may be the same and readable soon.
pub(crate) async fn changed_or_due(
    files: &WatchedFiles,
    seen: impl Fn() -> Fingerprint,
    n_failed: u32,
) {
    match n_failed {
        0 => changed(files, seen).await,
        _ => {
            let _ = timeout(retry_after(n_failed), changed(files, seen)).await;
        }
    }
}

/// The time after which a read is tried again that has failed `n_failed` times in a row.
fn retry_after(n_failed: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(n_failed.saturating_sub(1));
    FIRST_RETRY.saturating_mul(doubled).min(LONGEST_RETRY)
}

/// Ready when `files` look otherwise than when they were last read, and have come to rest.
async fn changed(files: &WatchedFiles, seen: impl Fn() -> Fingerprint) {
    loop {
        // Before the look at the files, so that no change falls between the two.
        let events = listen(files).await;
        if settled(files, &seen).await != seen() {
            return;
        }
        wait(events).await;
    }
}

async fn listen(files: &WatchedFiles) -> Option<Events> {
    let files = files.clone();
    let folders = spawn_blocking(move || files.folders()).await;
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
async fn settled(files: &WatchedFiles, seen: impl Fn() -> Fingerprint) -> Fingerprint {
    let mut before = look(files).await;
    if before == seen() {
        return before;
    }
    for _ in 0..MOST_WAITS {
        sleep(SETTLED).await;
        let after = look(files).await;
        if after == before {
            break;
        }
        before = after;
    }
    before
}

async fn look(files: &WatchedFiles) -> Fingerprint {
    let files = files.clone();
    let looked = spawn_blocking(move || Fingerprint::of(&files)).await;
    looked.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_read_is_tried_again_ever_more_seldom() {
        let retries = [1, 2, 3, 7, 99, u32::MAX].map(|n| retry_after(n).as_secs());
        assert_eq!(retries, [1, 2, 4, 60, 60, 60]);
    }
}
