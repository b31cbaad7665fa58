//! The nodes: `tidegate serve` as a process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use crate::http::Connection;

/// A node of the fleet, running or not. It keeps its addresses over restarts; killed when dropped.
#[derive(Debug)]
pub struct Node {
    setup: NodeSetup,
    addresses: Mutex<Option<Addresses>>,
    process: Mutex<Option<Child>>,
}

/// How a node is started.
#[derive(Clone, Debug)]
pub struct NodeSetup {
    /// The executable.
    pub executable: PathBuf,
    /// The rules file.
    pub rules: PathBuf,
    /// The text of its config file.
    pub config: String,
    /// A folder for its state and its log.
    pub folder: PathBuf,
    /// Further variables of its environment.
    pub settings: Vec<(String, String)>,
}

/// Where a node listens.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// For HTTP.
    pub http: SocketAddr,
    /// For gRPC.
    pub grpc: SocketAddr,
    /// For operators.
    pub admin: SocketAddr,
}

/// How a node is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As by `kill -9`.
    Kill,
    /// As by SIGTERM.
    Terminate,
}

// === impl Node ===

impl Node {
    /// A node that does not run yet.
    pub fn new(setup: NodeSetup) -> Self {
        Self {
            setup,
            addresses: Mutex::new(None),
            process: Mutex::new(None),
        }
    }

    /// Starts it and waits until it listens.
    pub fn start(&self) -> Result<(), String> {
        fs::create_dir_all(&self.setup.folder).map_err(|error| error.to_string())?;
        let mut child = self.command()?.spawn().map_err(|error| {
            let program = self.setup.executable.display();
            format!("cannot start {program}: {error}")
        })?;
        let stdout = child.stdout.take().ok_or("a node has no output")?;
        let addresses = read_banner(stdout);
        *lock(&self.process) = Some(child);
        let addresses =
            addresses.ok_or_else(|| format!("a node did not start:\n{}", self.log().trim_end()))?;
        *lock(&self.addresses) = Some(addresses);
        Ok(())
    }

    /// Ends it and waits until it is gone.
    pub fn end(&self, end: End) {
        let Some(mut child) = lock(&self.process).take() else {
            return;
        };
        if end == End::Kill {
            let _ = child.kill();
        } else if let Some(id) = Pid::from_raw(child.id().cast_signed()) {
            let _ = kill_process(id, Signal::TERM);
        }
        let _ = child.wait();
    }

    /// Where it listens, or did when it last ran. A node that never ran listens nowhere.
    pub fn addresses(&self) -> Option<Addresses> {
        *lock(&self.addresses)
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        lock(&self.process).is_some()
    }

    /// The sum of a metric over all its labels; those that `label` is not a part of are left out.
    pub fn metric(&self, name: &str, label: &str) -> Option<f64> {
        let address = self.addresses()?.admin;
        let page = Connection::default().get(address, "/metrics").ok()?;
        let page = String::from_utf8_lossy(&page.body).into_owned();
        let values = page.lines().filter_map(|line| {
            let rest = line.strip_prefix(name)?;
            let is_it = rest.starts_with([' ', '{']) && rest.contains(label);
            is_it.then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())?
        });
        Some(values.sum())
    }

    /// All that it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.setup.folder.join("log")).unwrap_or_default()
    }

    fn command(&self) -> Result<Command, String> {
        let setup = &self.setup;
        let log = File::options()
            .create(true)
            .append(true)
            .open(setup.folder.join("log"))
            .map_err(|error| error.to_string())?;
        let config = setup.folder.join("tidegate.yaml");
        fs::write(&config, &setup.config).map_err(|error| error.to_string())?;
        let known = self.addresses();
        let address = |of: fn(Addresses) -> SocketAddr| {
            known.map_or("127.0.0.1:0".to_owned(), |known| of(known).to_string())
        };
        let mut command = Command::new(&setup.executable);
        command
            .args(["serve", "--config"])
            .arg(&config)
            .args(["--http", &address(|known| known.http)])
            .args(["--grpc", &address(|known| known.grpc)])
            .args(["--admin", &address(|known| known.admin)])
            .arg("--rules")
            .arg(&setup.rules)
            .env_clear()
            .env("XDG_STATE_HOME", &setup.folder)
            .envs(setup.settings.iter().cloned())
            .current_dir(&setup.folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        Ok(command)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.end(End::Kill);
    }
}

/// Reads the addresses from what a node prints first, and the rest on a thread of its own.
fn read_banner(stdout: impl Read + Send + 'static) -> Option<Addresses> {
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let mut banner = Vec::new();
    for line in lines.by_ref() {
        let is_last = line.contains("curl ");
        banner.push(line);
        if is_last {
            break;
        }
    }
    thread::spawn(move || lines.for_each(drop));
    let find = |scheme: &str, ending: &str| {
        let listening = |line: &String| {
            let address = line.trim().strip_prefix("listening")?.trim();
            address
                .strip_prefix(scheme)?
                .strip_suffix(ending)?
                .parse()
                .ok()
        };
        banner.iter().find_map(listening)
    };
    Some(Addresses {
        http: find("http://", "")?,
        grpc: find("grpc://", "")?,
        admin: find("http://", " (admin)")?,
    })
}

/// The executable to start: what `TIDEGATE` names, else the release build, else the debug build.
pub fn find_executable(target: &Path) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("TIDEGATE") {
        return Ok(path.into());
    }
    let builds = ["release", "debug"].map(|build| target.join(build).join("tidegate"));
    let found = builds.into_iter().find(|path| path.exists());
    found.ok_or_else(|| "no executable; build one or name it in TIDEGATE".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
