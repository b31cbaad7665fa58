//! The Redis of a fleet.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use tidegate_store_redis::test_util::{
    ClusterSetup, Fault, FaultyProxy, RedisServer, SentinelSetup,
};

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
}

// === impl Redis ===

impl Redis {
    /// Starts the servers, and a proxy in front of a single one if there is to be a round trip.
    pub fn start(kind: RedisKind, round_trip: Option<f64>) -> Self {
        let servers = match kind {
            RedisKind::Single => Servers::Single(RedisServer::start()),
            RedisKind::Sentinel => Servers::Sentinel(SentinelSetup::start(1, 3)),
            RedisKind::Cluster => Servers::Cluster(ClusterSetup::start(3)),
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

    /// The URL for nodes.
    pub fn url(&self) -> String {
        match (&self.proxy, &self.servers) {
            (Some(proxy), _) => proxy.url(),
            (None, Servers::Single(server)) => server.url(),
            (None, Servers::Sentinel(setup)) => setup.url(),
            (None, Servers::Cluster(setup)) => setup.url(),
        }
    }

    /// The server that faults happen to: the master, or the first one of a Cluster.
    pub fn main(&self) -> &RedisServer {
        match &self.servers {
            Servers::Single(server) => server,
            Servers::Sentinel(setup) => setup.master(),
            Servers::Cluster(setup) => &setup.servers()[0],
        }
    }

    /// All servers.
    pub fn all(&self) -> Vec<&RedisServer> {
        match &self.servers {
            Servers::Single(server) => vec![server],
            Servers::Sentinel(setup) => setup.servers().iter().collect(),
            Servers::Cluster(setup) => setup.servers().iter().collect(),
        }
    }

    /// Has the Sentinels make the replica the master, and waits until they say that it is.
    pub fn fail_over(&self) {
        let Servers::Sentinel(setup) = &self.servers else {
            return;
        };
        let old = setup.master().port();
        let sentinel = setup.url();
        let sentinel = sentinel.split("://").nth(1).unwrap_or_default();
        let address = sentinel.split([',', '/']).next().unwrap_or_default();
        let asked = TcpStream::connect(address)
            .and_then(|mut stream| stream.write_all(b"SENTINEL FAILOVER main\r\n"));
        if asked.is_ok() {
            setup.wait_for_failover(old);
        }
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
