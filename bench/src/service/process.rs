//! The servers, each a process of its own.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The word that makes this program the server of [`null`](super::null).
pub const NULL_SERVER: &str = "null-server";

/// Names the executable to measure, for `scripts/bench` builds it.
const EXECUTABLE: &str = "TIDEGATE";

/// Names the executable of an earlier commit, which `scripts/bench --before COMMIT` builds.
const BEFORE: &str = "TIDEGATE_BEFORE";

/// An executable of tidegate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable(PathBuf);

/// A running server. Killed when dropped.
pub struct Process {
    child: Child,
    /// Where it answers.
    pub address: SocketAddr,
    /// Held, for a server that writes to a closed pipe ends.
    _stdout: BufReader<ChildStdout>,
}

// === impl Executable ===

impl Executable {
    /// The one of this commit.
    pub fn current() -> Result<Self, Box<dyn Error>> {
        let path = std::env::var_os(EXECUTABLE)
            .ok_or("TIDEGATE names no executable; run scripts/bench, which builds one")?;
        Ok(Self(path.into()))
    }

    /// The one of an earlier commit, if there is one to compare with.
    pub fn before() -> Option<Self> {
        let path = std::env::var_os(BEFORE).filter(|path| !path.is_empty())?;
        Some(Self(path.into()))
    }

    /// `serve` on one thread, with a config file.
    pub fn serve(&self, config: &Path) -> Command {
        let mut command = Command::new(&self.0);
        command
            .env_remove(BEFORE)
            .args(["serve", "--threads", "1", "--log-level", "warn", "--config"])
            .arg(config);
        command
    }

    /// The name of its file.
    pub fn name(&self) -> String {
        let name = self.0.file_name().unwrap_or(self.0.as_os_str());
        name.to_string_lossy().into_owned()
    }
}

// === impl Process ===

impl Process {
    /// The floor.
    pub fn null() -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(NULL_SERVER);
        Self::start(command, |line| line.parse().ok())
    }

    /// `tidegate serve` with those rules, on so many threads.
    pub fn tidegate(rules: &Path, threads: u32) -> Result<Self, Box<dyn Error>> {
        Self::tidegate_with(rules, threads, &[], &[])
    }

    /// The same with further flags, and settings by their names in the environment.
    pub fn tidegate_with(
        rules: &Path,
        threads: u32,
        flags: &[&str],
        settings: &[(&str, &str)],
    ) -> Result<Self, Box<dyn Error>> {
        Self::tidegate_of(&Executable::current()?, rules, threads, flags, settings)
    }

    /// The same of a chosen executable.
    pub fn tidegate_of(
        executable: &Executable,
        rules: &Path,
        threads: u32,
        flags: &[&str],
        settings: &[(&str, &str)],
    ) -> Result<Self, Box<dyn Error>> {
        let mut command = Command::new(&executable.0);
        let threads = threads.to_string();
        command
            // The server rejects variables that begin like its settings and are none.
            .env_remove(BEFORE)
            .args(["serve", "--http", "off", "--admin", "127.0.0.1:0"])
            .args(["--grpc", "127.0.0.1:0", "--log-level", "warn"])
            .args(["--threads", &threads, "--rules"])
            .arg(rules)
            .args(flags)
            .envs(settings.iter().copied());
        Self::start(command, |line| {
            line.split_whitespace()
                .find_map(|word| word.strip_prefix("grpc://")?.parse().ok())
        })
    }

    /// Starts a server and reads what it says up to its address.
    fn start(
        mut command: Command,
        address: impl Fn(&str) -> Option<SocketAddr>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("no pipe")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        loop {
            line.clear();
            if stdout.read_line(&mut line)? == 0 {
                let status = child.wait()?;
                return Err(format!("{command:?} said no address: {status}").into());
            }
            if let Some(address) = address(line.trim()) {
                return Ok(Self {
                    child,
                    address,
                    _stdout: stdout,
                });
            }
        }
    }

    /// The seconds of processor that all its threads had so far, to the nanosecond.
    pub fn cpu_seconds(&self) -> Result<f64, Box<dyn Error>> {
        cpu_seconds(self.child.id())
    }

    /// Its resident megabytes.
    pub fn resident_mb(&self) -> Result<f64, Box<dyn Error>> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .ok_or("no VmRSS")?;
        Ok(kib.parse::<f64>()? * 1_024.0 / 1e6)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The seconds of processor that all threads of a process had so far, to the nanosecond.
pub fn cpu_seconds(process: u32) -> Result<f64, Box<dyn Error>> {
    let mut nanos = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let schedstat = fs::read_to_string(thread?.path().join("schedstat"))?;
        let first = schedstat.split_whitespace().next().unwrap_or_default();
        nanos += first.parse::<u64>()?;
    }
    Ok(nanos as f64 / 1e9)
}
