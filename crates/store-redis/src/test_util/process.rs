//! A program with a log that can be waited on.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{env, thread};

use rustix::process::{Pid, Signal, kill_process};

use super::PATIENCE;

/// Names another program to start instead of `redis-server`: a Valkey, or a Redis that is on no path.
const PROGRAM: &str = "TIDEGATE_REDIS_SERVER";

/// A running program; killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: Arc<Log>,
}

/// What a program has said so far.
#[derive(Debug, Default)]
struct Log {
    said: Mutex<Said>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Said {
    lines: Vec<String>,
    is_over: bool,
}

// === impl Process ===

impl Process {
    /// Starts a program and listens to what it says.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}", why_not_started(command, &error)));
        let stdout = child.stdout.take().expect("it was asked for");
        let log = Arc::new(Log::default());
        let listener = Arc::clone(&log);
        thread::spawn(move || listener.take_down(stdout));
        Self { child, log }
    }

    /// Waits for a line with `text`; `false` if the program ended before it said any.
    pub(crate) fn says(&self, text: &str) -> bool {
        let has_said = |said: &Said| said.lines.iter().any(|line| line.contains(text));
        let waits = |said: &mut Said| !has_said(said) && !said.is_over;
        let (said, timeout) = self
            .log
            .changed
            .wait_timeout_while(self.log.said(), PATIENCE, waits)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(
            !timeout.timed_out(),
            "it never said {text:?}, but:\n{}",
            said.lines.join("\n")
        );
        has_said(&said)
    }

    /// All it has said.
    pub(crate) fn log(&self) -> String {
        self.log.said().lines.join("\n")
    }

    /// Its id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Halts it where it is.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        kill_process(id.expect("a process has an id"), signal).expect("it can be signalled");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Also ends one that is halted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program of every server and Sentinel, to be told what to do.
pub(super) fn redis_server() -> Command {
    Command::new(env::var_os(PROGRAM).unwrap_or_else(|| "redis-server".into()))
}

/// The reason why a program does not start, and what to do if it is missing.
fn why_not_started(command: &Command, error: &io::Error) -> String {
    let program = command.get_program().to_string_lossy();
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{program} is not installed, and this test needs it; `scripts/test setup` installs it, {PROGRAM} names \
             another one, and `cargo test --no-fail-fast` also runs the tests after this one"
        ),
        _ => format!("cannot start {command:?}: {error}"),
    }
}

// === impl Log ===

impl Log {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_down(&self, stdout: ChildStdout) {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            self.said().lines.push(line);
            self.changed.notify_all();
        }
        self.said().is_over = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::why_not_started;

    #[test]
    fn a_missing_redis_is_named_with_its_remedy() {
        let mut command = Command::new("/nowhere/redis-server");
        let error = command.spawn().expect_err("it is not there");
        let reason = why_not_started(&command, &error);
        assert!(reason.starts_with("/nowhere/redis-server is not installed"));
        assert!(reason.contains("`scripts/test setup` installs it"));
    }
}
