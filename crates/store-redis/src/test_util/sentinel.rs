//! A master, its replicas, and Sentinels that watch them.

use std::fs;
use std::time::Duration;

use super::process::{Process, redis_server};
use super::{Folder, Listening, RedisServer, ServerOptions, asker, port, wait_until};
use crate::client::Reply;

/// A master under watch; everything is killed when dropped.
#[derive(Debug)]
pub struct SentinelSetup {
    servers: Vec<RedisServer>,
    sentinels: Vec<Sentinel>,
}

#[derive(Debug)]
struct Sentinel {
    listening: Listening,
    port: u16,
    process: Process,
    folder: Folder,
}

/// What the Sentinels call the master.
const MASTER: &str = "main";

/// After so long without a word a master is taken for dead.
const DOWN_AFTER_MS: u32 = 1000;

const TRIES: u32 = 20;

// === impl SentinelSetup ===

impl SentinelSetup {
    /// Starts a master, so many replicas of it and so many Sentinels, and waits until they know each
    /// other. Most of the Sentinels have to agree before another server becomes the master.
    pub fn start(replicas: usize, sentinels: usize) -> Self {
        Self::start_on(&Listening::Tcp, replicas, sentinels)
    }

    /// The same with servers and Sentinels that listen on something else.
    pub fn start_on(listening: &Listening, replicas: usize, sentinels: usize) -> Self {
        let master = RedisServer::start_with(ServerOptions {
            listening: listening.clone(),
            ..ServerOptions::default()
        });
        let master_port = master.port();
        let mut servers = vec![master];
        servers.extend((0..replicas).map(|_| start_replica(listening, master_port)));
        let quorum = sentinels / 2 + 1;
        let start = |_| Sentinel::start(listening, master_port, quorum);
        let setup = Self {
            servers,
            sentinels: (0..sentinels).map(start).collect(),
        };
        setup.wait_for_agreement();
        setup
    }

    /// The URL by which it is reached.
    pub fn url(&self) -> String {
        let ports = self.sentinels.iter().map(|sentinel| sentinel.port);
        let hosts: Vec<_> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
        let scheme = self.sentinels[0].listening.scheme();
        format!("{scheme}+sentinel://{}/{MASTER}", hosts.join(","))
    }

    /// All servers; the first was the master at the beginning.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The server that the first Sentinel takes for the master.
    pub fn master(&self) -> &RedisServer {
        let reply = self.sentinels[0].ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]);
        let port = reply.array().ok().and_then(|mut place| place.nth(1));
        let port = port.and_then(|port| port.str()?.parse().ok());
        let is_it = |server: &&RedisServer| Some(server.port()) == port;
        self.servers.iter().find(is_it).expect("it is one of us")
    }

    /// Makes the Sentinels take a master for dead only after so long without a word.
    pub fn set_patience(&self, patience: Duration) {
        let millis = patience.as_millis().to_string();
        for sentinel in &self.sentinels {
            let set = ["SENTINEL", "SET", MASTER, "down-after-milliseconds"];
            let reply = sentinel.ask(&[&set[..], &[&millis]].concat());
            assert_eq!(reply.value().str(), Some("OK"), "{reply:?}");
        }
    }

    /// Starts a planned failover.
    pub fn fail_over(&self) {
        let reply = self.sentinels[0].ask(&["SENTINEL", "FAILOVER", MASTER]);
        assert_eq!(reply.value().str(), Some("OK"), "{reply:?}");
    }

    /// Waits until a server other than the one at `port` is the master.
    pub fn wait_for_failover(&self, port: u16) -> &RedisServer {
        wait_until("another server is the master", || {
            let master = self.master();
            let role = (master.port() != port).then(|| master.try_command(&["ROLE"]));
            let role = role.flatten();
            let role = role.as_ref().and_then(|role| role.array().ok()?.next());
            role.and_then(|role| role.str()) == Some("master")
        });
        self.master()
    }

    fn wait_for_agreement(&self) {
        for sentinel in &self.sentinels {
            wait_until("the Sentinels know the replicas and each other", || {
                let reply = sentinel.ask(&["SENTINEL", "MASTER", MASTER]);
                let fields = reply.array().into_iter().flatten();
                let fields: Vec<_> = fields.filter_map(|field| field.str()).collect();
                let field = |name| {
                    let place = fields.iter().position(|field| *field == name)?;
                    fields.get(place + 1)?.parse::<usize>().ok()
                };
                field("num-slaves") == Some(self.servers.len() - 1)
                    && field("num-other-sentinels") == Some(self.sentinels.len() - 1)
            });
        }
    }
}

// === impl Sentinel ===

impl Sentinel {
    fn start(listening: &Listening, master_port: u16, quorum: usize) -> Self {
        for _ in 0..TRIES {
            let (folder, port) = (Folder::new(), port::free());
            let file = folder.path().join("sentinel.conf");
            // It writes into its own configuration, and needs one for that.
            let settings = listening.settings(port);
            let settings: Vec<_> = settings.iter().map(|words| words.join(" ")).collect();
            let settings = settings.join("\n");
            let text = format!(
                "{settings}\nbind 127.0.0.1\ndir {}\nsentinel monitor {MASTER} 127.0.0.1 {master_port} {quorum}\n\
                 sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}\n\
                 sentinel failover-timeout {MASTER} 5000\n",
                folder.path().display()
            );
            fs::write(&file, text).expect("a file can be written");
            let mut command = redis_server();
            let process = Process::start(command.arg(file).arg("--sentinel"));
            if process.says("+monitor master") {
                return Self {
                    listening: listening.clone(),
                    port,
                    process,
                    folder,
                };
            }
        }
        panic!("no Sentinel could be started in {TRIES} tries");
    }

    fn ask(&self, words: &[&str]) -> Reply {
        let stream = self.listening.connect(self.port);
        let mut stream = stream.unwrap_or_else(|| {
            panic!(
                "the Sentinel in {} is gone\n{}",
                self.folder.path().display(),
                self.process.log()
            )
        });
        asker::ask(&mut *stream, words)
    }
}

fn start_replica(listening: &Listening, master_port: u16) -> RedisServer {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    let replica = RedisServer::start_with(ServerOptions {
        listening: listening.clone(),
        settings: vec![words(&format!("replicaof 127.0.0.1 {master_port}"))],
        ..ServerOptions::default()
    });
    wait_until("the replica has caught up", || {
        let info = replica.must(&["INFO", "replication"]);
        let info = info.value().str().unwrap_or_default().to_owned();
        info.contains("master_link_status:up")
    });
    replica
}
