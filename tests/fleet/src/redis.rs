//! The Redis of a fleet.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use tidegate_store_redis::test_util::{
    ClusterSetup, Fault, FaultyProxy, RedisServer, SentinelSetup,
};

use crate::clock::{self, micros, now};
use crate::scenario::RedisKind;

/// The servers of a fleet; killed when dropped.
#[derive(Debug)]
pub struct Redis {
    servers: Servers,
    proxy: Option<FaultyProxy>,
}

#[derive(Debug)]
enum Servers {
    Single(RedisServer),
    Sentinel(SentinelSetup),
    Cluster(ClusterSetup),
    Regions(Box<Regions>),
}

/// Two regions with a Redis each, and the way from each to the Redis of the other.
#[derive(Debug)]
struct Regions {
    servers: [RedisServer; 2],
    ways: [FaultyProxy; 2],
}

/// For how long the Sentinels are told to fail over, in seconds, while they decline. One that stood still does nothing
/// for 30 seconds.
const FAILOVER_PATIENCE: f64 = 60.0;

/// A failover that takes longer, in seconds, was given up.
const FAILOVER_SECONDS: f64 = 6.0;

/// Bytes take so long from one region to the other.
const FAR: Fault = Fault::Delay(Duration::from_millis(20));

// === impl Redis ===

impl Redis {
    /// Starts the servers, and a proxy in front of a single one if there is to be a round trip.
    pub fn start(kind: RedisKind, round_trip: Option<f64>) -> Self {
        let servers = match kind {
            RedisKind::Single => Servers::Single(RedisServer::start()),
            RedisKind::Sentinel => Servers::Sentinel(SentinelSetup::start(1, 3)),
            RedisKind::Cluster => Servers::Cluster(ClusterSetup::start(3)),
            RedisKind::Regions => Servers::Regions(Box::new(Regions::start())),
        };
        let proxy = match (&servers, round_trip) {
            (Servers::Single(server), Some(millis)) => {
                let proxy = FaultyProxy::start(server.address());
                proxy.set(Fault::Delay(Duration::from_secs_f64(millis / 2e3)));
                Some(proxy)
            }
            _ => None,
        };
        Self { servers, proxy }
    }

    /// The config file of a node: which Redis it has. Nodes are in the regions in turn.
    pub fn node_config(&self, node: usize) -> String {
        let url = match (&self.proxy, &self.servers) {
            (Some(proxy), _) => proxy.url(),
            (None, Servers::Single(server)) => server.url(),
            (None, Servers::Sentinel(setup)) => setup.url(),
            (None, Servers::Cluster(setup)) => setup.url(),
            (None, Servers::Regions(regions)) => {
                let here = regions.servers[node % 2].url();
                let there = regions.ways[(node + 1) % 2].url();
                return format!("store: {here}\nregions:\n  here: {here}\n  there: {there}\n");
            }
        };
        format!("store: {url}\n")
    }

    /// How many of so many nodes are members of one Redis.
    pub fn members(&self, nodes: usize) -> usize {
        match self.servers {
            Servers::Regions(_) => nodes / 2,
            _ => nodes,
        }
    }

    /// Cuts the regions off from each other, or joins them again.
    pub fn cut_regions(&self, is_cut: bool) {
        if let Servers::Regions(regions) = &self.servers {
            for way in &regions.ways {
                way.set(if is_cut { Fault::Refuse } else { FAR });
            }
        }
    }

    /// The server that faults happen to: the master, or the first one of a Cluster.
    pub fn main(&self) -> &RedisServer {
        match &self.servers {
            Servers::Single(server) => server,
            Servers::Sentinel(setup) => setup.master(),
            Servers::Cluster(setup) => &setup.servers()[0],
            Servers::Regions(regions) => &regions.servers[0],
        }
    }

    /// All servers.
    pub fn all(&self) -> Vec<&RedisServer> {
        match &self.servers {
            Servers::Single(server) => vec![server],
            Servers::Sentinel(setup) => setup.servers().iter().collect(),
            Servers::Cluster(setup) => setup.servers().iter().collect(),
            Servers::Regions(regions) => regions.servers.iter().collect(),
        }
    }

    /// Has the Sentinels make the replica the master, and waits until they say that it is. Returns when it began.
    ///
    /// They decline while the failover before is not quite over, and give up if the replica that they know is not
    /// in sync with the master; then it is begun again.
    pub fn fail_over(&self) -> Result<u64, String> {
        let Servers::Sentinel(setup) = &self.servers else {
            return Err("only Sentinels can fail over".to_owned());
        };
        let old = setup.master().port();
        let url = setup.url();
        let hosts = url.split("://").nth(1).unwrap_or_default();
        let sentinel = hosts.split([',', '/']).next().unwrap_or_default();
        let end = now() + micros(FAILOVER_PATIENCE);
        while now() < end {
            if !self.is_replica_in_sync(old) {
                clock::sleep(0.1);
                continue;
            }
            let began = now();
            let reply = begin_failover(sentinel).map_err(|error| error.to_string())?;
            if reply.starts_with("+OK") {
                let is_over = || setup.master().port() != old;
                while now() < began + micros(FAILOVER_SECONDS) {
                    if is_over() {
                        setup.wait_for_failover(old);
                        return Ok(began);
                    }
                    clock::sleep(0.01);
                }
            }
            clock::sleep(0.1);
        }
        Err("the Sentinels decline to fail over".to_owned())
    }

    /// Whether every server but the master at a port has all that the master wrote.
    fn is_replica_in_sync(&self, master: u16) -> bool {
        let replicas = self.all().into_iter();
        let mut replicas = replicas.filter(|server| server.port() != master);
        replicas.all(|server| {
            let info = server.try_command(&["INFO", "replication"]);
            let info = info.and_then(|info| Some(info.value().str()?.to_owned()));
            let info = info.unwrap_or_default();
            info.contains(&format!("master_port:{master}\r"))
                && info.contains("master_link_status:up")
        })
    }

    /// Scripts that the servers ran so far, as `INFO commandstats` counts them.
    pub fn script_calls(&self) -> u64 {
        let calls = self.all().into_iter().map(|server| {
            let info = server.must(&["INFO", "commandstats"]);
            let text = info.value().str().unwrap_or_default().to_owned();
            let count = |line: &str| {
                let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(':')?;
                let is_script = matches!(name, "evalsha" | "eval" | "fcall");
                let calls = rest.strip_prefix("calls=")?.split(',').next()?;
                is_script.then(|| calls.parse::<u64>().ok())?
            };
            text.lines().filter_map(count).sum::<u64>()
        });
        calls.sum()
    }
}

fn begin_failover(sentinel: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(sentinel)?;
    stream.write_all(b"SENTINEL FAILOVER main\r\n")?;
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply)?;
    Ok(reply)
}

// === impl Regions ===

impl Regions {
    fn start() -> Self {
        let servers = [RedisServer::start(), RedisServer::start()];
        let ways = [&servers[0], &servers[1]].map(|server| FaultyProxy::start(server.address()));
        for way in &ways {
            way.set(FAR);
        }
        Self { servers, ways }
    }
}
