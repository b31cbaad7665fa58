//! A Redis Cluster.

use crate::client::{SLOTS, Value};

use super::{Listening, RedisServer, ServerOptions, wait_until};

/// Masters that share all slots evenly, without replicas; killed when dropped. When one is lost, the others
/// go on with their slots.
#[derive(Debug)]
pub struct ClusterSetup {
    listening: Listening,
    servers: Vec<RedisServer>,
}

// === impl ClusterSetup ===

impl ClusterSetup {
    /// Starts so many masters and waits until they know each other.
    pub fn start(masters: u16) -> Self {
        Self::start_on(&Listening::Tcp, masters)
    }

    /// The same with masters that listen on something else.
    pub fn start_on(listening: &Listening, masters: u16) -> Self {
        let setup = Self {
            listening: listening.clone(),
            servers: (0..masters).map(|_| start_node(listening)).collect(),
        };
        let share = SLOTS.div_ceil(masters);
        let mut first = 0;
        for (server, epoch) in setup.servers.iter().zip(1..) {
            let last = (first + share - 1).min(SLOTS - 1);
            server.must(&["CLUSTER", "SET-CONFIG-EPOCH", &u16::to_string(&epoch)]);
            let (from, to) = (first.to_string(), last.to_string());
            server.must(&["CLUSTER", "ADDSLOTSRANGE", &from, &to]);
            let port = server.port().to_string();
            setup.servers[0].must(&["CLUSTER", "MEET", "127.0.0.1", &port]);
            first = last + 1;
        }
        setup.wait_for_agreement();
        setup
    }

    /// The URL by which it is reached: two of its nodes, if it has as many.
    pub fn url(&self) -> String {
        let seeds: Vec<_> = self.servers.iter().take(2).map(seed).collect();
        let scheme = self.listening.scheme();
        format!("{scheme}+cluster://{}", seeds.join(","))
    }

    /// Its masters.
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// Starts a replica of a master, which takes its place only when told that it may.
    pub fn start_replica(&self, of: usize) -> RedisServer {
        let (replica, id) = (start_node(&self.listening), self.id(of));
        replica.must(&["CONFIG", "SET", "cluster-replica-no-failover", "yes"]);
        let port = replica.port().to_string();
        self.servers[0].must(&["CLUSTER", "MEET", "127.0.0.1", &port]);
        wait_until("the replica knows its master", || {
            let reply = replica.command(&["CLUSTER", "REPLICATE", &id]);
            reply.value().str() == Some("OK")
        });
        for server in &self.servers {
            wait_until("all masters know the replica", || {
                let reply = server.command(&["CLUSTER", "REPLICAS", &id]);
                reply.array().is_ok_and(|replicas| replicas.len() == 1)
            });
        }
        wait_until("the replica has caught up", || {
            let info = replica.must(&["INFO", "replication"]);
            let info = info.value().str().unwrap_or_default().to_owned();
            info.contains("master_link_status:up")
        });
        replica
    }

    /// Lets a replica take the place of its master, and waits until it has.
    pub fn promote(&self, replica: &RedisServer) {
        replica.must(&["CONFIG", "SET", "cluster-replica-no-failover", "no"]);
        wait_until("the replica is a master", || {
            let role = replica.must(&["ROLE"]);
            let role = role.array().ok().and_then(|mut role| role.next());
            role.and_then(|role| role.str().map(str::to_owned)) == Some("master".to_owned())
        });
    }

    /// The place of the master that has a slot, as the first master says.
    pub fn owner(&self, slot: u16) -> usize {
        let owner = |server: &RedisServer| port_of(server, slot);
        let answers = self.servers.iter().find_map(owner);
        let port = answers.expect("somebody has it");
        let place = |server: &RedisServer| server.port() == port;
        self.servers
            .iter()
            .position(place)
            .expect("it is one of us")
    }

    /// Begins to move a slot: keys that are not there any more are asked for at `to`.
    pub fn begin_move(&self, slot: u16, to: usize) {
        let from = self.owner(slot);
        let (slot, from_id, to_id) = (slot.to_string(), self.id(from), self.id(to));
        self.servers[to].must(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
        self.servers[from].must(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
    }

    /// Moves the keys of a slot, and tells everybody who has it now.
    pub fn finish_move(&self, slot: u16, to: usize) {
        let from = &self.servers[self.owner(slot)];
        let (slot, to_id) = (slot.to_string(), self.id(to));
        let port = self.servers[to].port().to_string();
        loop {
            let keys = from.must(&["CLUSTER", "GETKEYSINSLOT", &slot, "100"]);
            let keys = keys.array().expect("it is a list");
            if keys.len() == 0 {
                break;
            }
            for key in keys {
                let key = key.str().expect("it is a name");
                from.must(&["MIGRATE", "127.0.0.1", &port, key, "0", "30000"]);
            }
        }
        // The one that gets it first, so that it is never nobody's.
        self.servers[to].must(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
        for server in &self.servers {
            server.must(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
        }
    }

    /// Makes the master that has a slot say that the master at `other` has it, which goes on saying the opposite.
    pub fn send_around(&self, slot: u16, other: usize) {
        self.assign(self.owner(slot), slot, other);
    }

    /// Makes the master at `place` say that the one at `owner` has a slot.
    pub fn assign(&self, place: usize, slot: u16, owner: usize) {
        let (slot, id) = (slot.to_string(), self.id(owner));
        self.servers[place].must(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
    }

    fn id(&self, place: usize) -> String {
        let reply = self.servers[place].must(&["CLUSTER", "MYID"]);
        let id = reply.value().str().expect("it is a name");
        id.to_owned()
    }

    fn wait_for_agreement(&self) {
        for server in &self.servers {
            wait_until("all masters know each other", || {
                let info = server.must(&["CLUSTER", "INFO"]);
                let info = info.value().str().unwrap_or_default().to_owned();
                let slots = server.must(&["CLUSTER", "SLOTS"]);
                let ranges = slots.array().map_or(0, |ranges| ranges.len());
                info.contains("cluster_state:ok") && ranges == self.servers.len()
            });
        }
    }
}

fn start_node(listening: &Listening) -> RedisServer {
    let setting = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
    RedisServer::start_with(ServerOptions {
        listening: listening.clone(),
        settings: vec![
            setting("cluster-enabled", "yes"),
            setting("cluster-node-timeout", "2000"),
            setting("cluster-require-full-coverage", "no"),
        ],
        ..ServerOptions::default()
    })
}

fn seed(server: &RedisServer) -> String {
    server.address().to_string()
}

/// The port of the master that has a slot, as one that is up says.
fn port_of(server: &RedisServer, slot: u16) -> Option<u16> {
    let reply = server.try_command(&["CLUSTER", "SLOTS"])?;
    let slot = i64::from(slot);
    let mut ranges = reply.array().ok()?;
    ranges.find_map(|range| {
        let mut parts = range.array()?;
        let first = parts.next()?.integer()?;
        let last = parts.next()?.integer()?;
        let port = parts
            .next()?
            .array()?
            .nth(1)
            .and_then(|port: Value<'_>| port.integer())?;
        let has_it = (first..=last).contains(&slot);
        has_it.then(|| u16::try_from(port).ok()).flatten()
    })
}
