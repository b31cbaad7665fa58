//! Leaves nothing running when the harness is interrupted.

use std::{env, fs, process, thread};

use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// The exit code of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// On SIGINT and SIGTERM kills every process that this one started, and ends.
pub fn end_children_on_signals() {
    thread::spawn(|| {
        let runtime = Builder::new_current_thread().enable_io().build();
        let Ok(runtime) = runtime else { return };
        runtime.block_on(async {
            let signals = (
                signal(SignalKind::interrupt()),
                signal(SignalKind::terminate()),
            );
            let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
                return;
            };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            children().for_each(kill);
            remove_folders();
            eprintln!("interrupted; all processes of the fleet were ended");
            process::exit(INTERRUPTED);
        });
    });
}

/// The processes whose parent is this one.
fn children() -> impl Iterator<Item = i32> {
    let own = process::id().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    ids.filter(move |id| {
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // The parent is the second field after the name, which is in brackets.
        let rest = stat.rsplit(") ").next().unwrap_or_default();
        rest.split(' ').nth(1) == Some(own.as_str())
    })
}

/// Removes the folders of this process, which `Folder` names by its id.
fn remove_folders() {
    let prefix = format!("tidegate-{}-", process::id());
    let entries = fs::read_dir(env::temp_dir()).into_iter().flatten();
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.starts_with(&prefix)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn kill(id: i32) {
    if let Some(id) = Pid::from_raw(id) {
        let _ = kill_process(id, Signal::KILL);
    }
}
