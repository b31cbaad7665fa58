//! One Redis server.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::asker::{self, Connection};
use super::process::{Process, redis_server};
use super::{Certificates, Folder, port};
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
#[derive(Clone, Debug, Default)]
pub enum Listening {
    /// A port of its own on 127.0.0.1.
    #[default]
    Tcp,
    /// A socket in its folder, and nothing else.
    Unix,
    /// A port of its own on 127.0.0.1, encrypted, for who has a certificate of the same authority.
    Tls(Arc<Certificates>),
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
            Listening::Tls(_) => format!("rediss://{at}127.0.0.1:{}", self.port),
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
        let mut connection = match &self.options.listening {
            Listening::Unix => Box::new(UnixStream::connect(self.socket()).ok()?),
            listening => listening.connect(self.port)?,
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
        let mut command = redis_server();
        command.arg("--dir").arg(self.folder.path()).args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--bind",
            "127.0.0.1",
        ]);
        if matches!(self.options.listening, Listening::Unix) {
            command.arg("--unixsocket").arg(self.socket());
        }
        let listening = self.options.listening.settings(self.port);
        for setting in listening.iter().chain(&self.options.settings) {
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

// === impl Listening ===

impl Listening {
    /// The settings of a server or a Sentinel that listens so. What it says to others is encrypted, too.
    pub(super) fn settings(&self, port: u16) -> Vec<Vec<String>> {
        let setting = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
        let port = port.to_string();
        match self {
            Self::Tcp => vec![setting("port", &port)],
            Self::Unix => vec![setting("port", "0")],
            Self::Tls(certificates) => {
                let mut settings = certificates.settings();
                settings.push(setting("port", "0"));
                settings.push(setting("tls-port", &port));
                settings.push(setting("tls-replication", "yes"));
                settings.push(setting("tls-cluster", "yes"));
                settings
            }
        }
    }

    /// Connects to a port of 127.0.0.1 where somebody listens so, if anybody does.
    pub(super) fn connect(&self, port: u16) -> Option<Box<dyn Connection>> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
        Some(match self {
            Self::Tls(certificates) => Box::new(certificates.encrypt(stream)),
            Self::Tcp | Self::Unix => Box::new(stream),
        })
    }

    /// The scheme of the URL of a server, before the kind of deployment.
    pub(super) fn scheme(&self) -> &'static str {
        match self {
            Self::Tls(_) => "rediss",
            Self::Tcp | Self::Unix => "redis",
        }
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
