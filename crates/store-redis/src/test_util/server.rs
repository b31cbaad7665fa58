//! One Redis server.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::asker::{self, Connection};
use super::process::Process;
use super::{Folder, port};
use crate::client::{Reply, Value};

/// A `redis-server` that is up, with nothing in it; killed when dropped.
#[derive(Debug)]
pub struct RedisServer {
    options: ServerOptions,
    port: u16,
    folder: Folder,
    process: Mutex<Option<Process>>,
}

/// How a server is to be.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// What it listens on.
    pub listening: Listening,
    /// Settings of `redis.conf`, each a name and its values.
    pub settings: Vec<Vec<String>>,
    /// The `user:password@` of its URL, if any; the settings must say the same.
    pub credentials: Option<String>,
}

/// What a server listens on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listening {
    /// A port of its own on 127.0.0.1.
    #[default]
    Tcp,
    /// A socket in its folder, and nothing else.
    Unix,
    /// A port of its own on 127.0.0.1, encrypted; the settings must name the certificates.
    Tls,
}

/// How often to try another port, when somebody was faster.
const TRIES: u32 = 20;

// === impl RedisServer ===

impl RedisServer {
    /// Starts one on a free port.
    pub fn start() -> Self {
        Self::start_with(ServerOptions::default())
    }

    /// Starts one that listens on a unix socket only.
    pub fn start_unix() -> Self {
        Self::start_with(ServerOptions {
            listening: Listening::Unix,
            ..ServerOptions::default()
        })
    }

    /// Starts one as told.
    pub fn start_with(options: ServerOptions) -> Self {
        let mut server = Self {
            options,
            port: port::free(),
            folder: Folder::new(),
            process: Mutex::new(None),
        };
        for _ in 0..TRIES {
            if server.launch() {
                return server;
            }
            server.port = port::free();
        }
        panic!("no port could be had in {TRIES} tries");
    }

    /// Its port; of no meaning for one on a unix socket.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where it listens, if not on a unix socket.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port))
    }

    /// Its unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// The URL by which it is reached.
    pub fn url(&self) -> String {
        let credentials = self.options.credentials.as_deref();
        let at = credentials.map_or_else(String::new, |credentials| format!("{credentials}@"));
        match self.options.listening {
            Listening::Tcp => format!("redis://{at}127.0.0.1:{}", self.port),
            Listening::Unix => format!("redis+unix://{at}{}", self.socket().display()),
            Listening::Tls => format!("rediss://{at}127.0.0.1:{}", self.port),
        }
    }

    /// Ends it as `kill -9` does. Nothing it held survives.
    pub fn kill(&self) {
        self.process().take();
    }

    /// Halts it: it accepts connections and says nothing, until resumed.
    pub fn pause(&self) {
        self.running(Process::pause);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.running(Process::resume);
    }

    /// Kills it if it runs, and starts it on the same port, empty.
    pub fn restart(&self) {
        self.kill();
        assert!(self.launch(), "port {} is taken", self.port);
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.running(Process::id)
    }

    /// Asks it one thing, over a connection of its own. The reply may be an error.
    pub fn command(&self, words: &[&str]) -> Reply {
        self.try_command(words).expect("the server is there")
    }

    /// As [`command`](Self::command), if the server is up.
    pub fn try_command(&self, words: &[&str]) -> Option<Reply> {
        let mut connection: Box<dyn Connection> = match self.options.listening {
            Listening::Unix => Box::new(UnixStream::connect(self.socket()).ok()?),
            Listening::Tcp => Box::new(TcpStream::connect(self.address()).ok()?),
            Listening::Tls => panic!("ask an encrypted server by a client"),
        };
        if let Some(credentials) = &self.options.credentials {
            let (user, password) = credentials.split_once(':').unwrap_or(("", credentials));
            let user = if user.is_empty() { "default" } else { user };
            asker::ask(&mut *connection, &["AUTH", user, password]);
        }
        Some(asker::ask(&mut *connection, words))
    }

    /// As [`command`](Self::command), and panics if the reply is an error.
    pub fn must(&self, words: &[&str]) -> Reply {
        let reply = self.command(words);
        assert!(
            !matches!(reply.value(), Value::Error(_)),
            "{words:?}: {reply:?}"
        );
        reply
    }

    /// Waits until its log has a line with this text.
    pub fn wait_for_log(&self, text: &str) {
        self.running(|process| {
            assert!(process.says(text), "it ended:\n{}", process.log());
        });
    }

    fn launch(&self) -> bool {
        let process = Process::start(&mut self.program());
        let is_up = process.says("eady to accept connections");
        assert!(
            is_up || process.log().contains("Failed listening"),
            "redis-server does not start:\n{}",
            process.log()
        );
        *self.process() = Some(process);
        is_up
    }

    fn program(&self) -> Command {
        let mut command = Command::new("redis-server");
        command.arg("--dir").arg(self.folder.path()).args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--bind",
            "127.0.0.1",
        ]);
        match self.options.listening {
            Listening::Tcp => command.args(["--port", &self.port.to_string()]),
            Listening::Tls => command.args(["--port", "0", "--tls-port", &self.port.to_string()]),
            Listening::Unix => command
                .args(["--port", "0", "--unixsocket"])
                .arg(self.socket()),
        };
        for setting in &self.options.settings {
            let mut words = setting.iter();
            if let Some(name) = words.next() {
                command.arg(format!("--{name}")).args(words);
            }
        }
        command
    }

    fn running<T>(&self, look: impl FnOnce(&Process) -> T) -> T {
        look(self.process().as_ref().expect("the server is running"))
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_ends_and_comes_back_on_its_port() {
        let server = RedisServer::start();
        let first = server.id();
        assert!(TcpStream::connect(server.address()).is_ok());
        server.kill();
        assert!(TcpStream::connect(server.address()).is_err());
        server.restart();
        assert!(TcpStream::connect(server.address()).is_ok());
        assert_ne!(server.id(), first);
    }

    #[test]
    fn a_server_ends_with_its_value() {
        let (address, socket);
        {
            let server = RedisServer::start();
            address = server.address();
            let on_socket = RedisServer::start_unix();
            socket = on_socket.socket();
            assert!(socket.exists());
            server.pause();
        }
        assert!(TcpStream::connect(address).is_err());
        assert!(!socket.exists());
    }
}
