//! The programs of a measurement, each a process of its own on a free port of 127.0.0.1.

use std::error::Error;
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::service::cpu_seconds;

/// Where Debian keeps nginx and HAProxy, which the `PATH` of users often lacks.
const SYSTEM_PROGRAMS: &str = "/usr/sbin";

/// Bytes of a page of memory on the platforms we build for.
const PAGE: f64 = 4_096.0;

/// The longest start. Under callgrind a server takes several seconds.
const START: Duration = Duration::from_mins(1);

/// The time between two looks whether a program listens.
const LOOK: Duration = Duration::from_millis(10);

/// A running server. Killed when dropped.
pub struct Program {
    child: Child,
    /// The address that it listens on.
    pub address: SocketAddr,
    /// Its files, which it may read again.
    folder: Folder,
}

/// A temporary folder, removed when dropped.
pub struct Folder(PathBuf);

/// A server that is described but not started.
pub struct Draft {
    folder: Folder,
    /// The address that it shall listen on.
    pub address: SocketAddr,
}

// === impl Draft ===

impl Draft {
    /// Takes a free port and makes a folder.
    pub fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            folder: Folder::create()?,
            address: free_address()?,
        })
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Box<dyn Error>> {
        self.folder.write(name, text)
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// Starts `command` and waits until it listens.
    pub fn start(self, mut command: Command) -> Result<Program, Box<dyn Error>> {
        let child = command.stdout(Stdio::null()).stdin(Stdio::null()).spawn();
        let child = child.map_err(|error| missing(&command, &error))?;
        let mut program = Program {
            child,
            address: self.address,
            folder: self.folder,
        };
        let begun = Instant::now();
        while TcpStream::connect(program.address).is_err() {
            if let Some(status) = program.child.try_wait()? {
                return Err(format!("{command:?} ended: {status}").into());
            }
            if begun.elapsed() > START {
                return Err(format!("{command:?} does not listen").into());
            }
            std::thread::sleep(LOOK);
        }
        Ok(program)
    }
}

// === impl Program ===

impl Program {
    /// The seconds of user and system time of all its threads so far.
    pub fn cpu_seconds(&self) -> Result<f64, Box<dyn Error>> {
        cpu_seconds(self.child.id())
    }

    /// Its resident memory in bytes.
    pub fn resident_bytes(&self) -> Result<f64, Box<dyn Error>> {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.child.id()))?;
        let pages = statm.split_whitespace().nth(1).ok_or("no pages")?;
        Ok(pages.parse::<f64>()? * PAGE)
    }

    /// Its process number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === impl Folder ===

impl Folder {
    /// Makes a folder that no other has.
    pub fn create() -> Result<Self, Box<dyn Error>> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-bench-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    /// Writes a file and returns its path.
    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, Box<dyn Error>> {
        let path = self.0.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder left behind among temporary files does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A command of another project, also where only root's `PATH` leads.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:{SYSTEM_PROGRAMS}"));
    command
}

/// The error of a command that does not start.
pub fn missing(command: &Command, error: &std::io::Error) -> Box<dyn Error> {
    let name = command.get_program().to_string_lossy();
    match error.kind() {
        ErrorKind::NotFound => format!("{name} is missing; `scripts/test setup` installs it"),
        _ => format!("{name} does not start: {error}"),
    }
    .into()
}

fn free_address() -> Result<SocketAddr, Box<dyn Error>> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
