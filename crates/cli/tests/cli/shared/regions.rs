//! Two regions, each with a Redis of its own, and an ocean between them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tidegate_store_redis::test_util::{Fault, FaultyProxy, RedisServer, wait_until};

use super::eventual::{hear, left, meet, printed_bound, settle, use_up};
use super::{PATIENT, admitted, rules, sum};
use crate::program::scratch;
use crate::server::Server;

/// In a year, whose edge no test meets.
const LIMIT: usize = 100;

/// How long bytes take from one region to the other.
const FAR: Fault = Fault::Delay(Duration::from_millis(150));

/// Both regions. The proxies lead out of them: the first to the second region.
struct World {
    redis: [RedisServer; 2],
    ways: [FaultyProxy; 2],
    servers: [Server; 2],
    bound: usize,
}

// === impl World ===

impl World {
    /// Two servers that know of each other.
    fn start(name: &str) -> Self {
        let rules = rules(&format!("{name}_rules"), u32::try_from(LIMIT).unwrap(), "");
        let redis = [(); 2].map(|()| RedisServer::start());
        let ways = [&redis[1], &redis[0]].map(|redis| FaultyProxy::start(redis.address()));
        for way in &ways {
            way.set(FAR);
        }
        let folder = scratch(name);
        let regions = [(&redis[0], &ways[0]), (&redis[1], &ways[1])];
        let mut number = 0;
        let servers = regions.map(|(redis, way)| {
            number += 1;
            let config = folder.join(format!("{number}.yaml"));
            let text = format!(
                "store: {}\nregions:\n  here: {}\n  there: {}\n",
                redis.url(),
                redis.url(),
                way.url()
            );
            fs::write(&config, text).unwrap();
            serve(&config, &rules)
        });
        let world = Self {
            bound: printed_bound(&rules),
            redis,
            ways,
            servers,
        };
        meet(&world.servers(), &[&world.redis[0], &world.redis[1]]);
        world
    }

    fn servers(&self) -> [&Server; 2] {
        [&self.servers[0], &self.servers[1]]
    }
}

fn serve(config: &Path, rules: &Path) -> Server {
    let (config, rules) = (config.to_str().unwrap(), rules.to_str().unwrap());
    let args = ["--config", config, "--rules", rules];
    let way = ["--consistency", "eventual"];
    Server::start_with(&[&args[..], &way].concat(), &PATIENT)
}

/// Whether operators are told that the other region can be.
fn is_reached(server: &Server) -> bool {
    sum(server, "tidegate_region_reached", "region=\"there\"") == 1
}

#[test]
fn regions_far_apart_keep_the_bound() {
    let world = World::start("regions_far");
    let total = use_up(&world.servers(), LIMIT);
    assert!(total <= LIMIT + world.bound, "{total}");
    for server in &world.servers {
        settle(server);
    }
    for server in &world.servers {
        settle(server);
        assert_eq!(left(server), 0);
        let seen = sum(server, "tidegate_eventual_worst_overshoot_hits", "");
        assert!(usize::try_from(seen).unwrap() <= world.bound, "{seen}");
    }
}

/// While nothing gets from one region to the other, a decision that waited for the other region would not be made.
#[test]
fn no_decision_waits_for_another_region() {
    let world = World::start("regions_silent");
    for way in &world.ways {
        way.set(Fault::Pause);
    }
    for server in &world.servers {
        assert_eq!(admitted(server, 5), 5);
        // None of them was given up, and the other region knows of none.
        assert_eq!(sum(server, "tidegate_store_failures_total", ""), 0);
        assert_eq!(sum(server, "tidegate_eventual_pending_hits", ""), 5);
    }
}

#[test]
fn regions_that_are_cut_off_keep_to_their_shares_and_converge() {
    let world = World::start("regions_cut");
    for way in &world.ways {
        way.set(Fault::Refuse);
    }
    for server in &world.servers {
        let failures = || {
            sum(
                server,
                "tidegate_eventual_syncs_total",
                "result=\"failure\"",
            )
        };
        wait_until("it is cut off", || failures() > 0);
        wait_until("it is told", || !is_reached(server));
    }
    // Each goes by its half, however often it hears from its own Redis, where it is alone before long.
    let mut desk = super::Desk::open(&world.redis[0]);
    wait_until("the other is forgotten", || {
        desk.numbers("ZCARD tg1:{tellers:tidegate}") == [1]
    });
    hear(&world.servers[0]);
    for server in &world.servers {
        assert_eq!(admitted(server, LIMIT), LIMIT / 2);
    }
    for server in &world.servers {
        let pending = sum(server, "tidegate_eventual_pending_hits", "");
        assert_eq!(pending, 50, "it is not lost");
    }
    for way in &world.ways {
        way.set(FAR);
    }
    for server in &world.servers {
        settle(server);
    }
    for server in &world.servers {
        settle(server);
        assert!(is_reached(server));
        assert_eq!(left(server), 0);
        assert_eq!(admitted(server, 5), 0);
    }
}

/// A server that ends tells all regions what it admitted last.
#[test]
fn the_last_words_go_to_all_regions() {
    let world = World::start("regions_end");
    assert_eq!(admitted(&world.servers[0], 5), 5);
    let [one, other] = world.servers;
    assert!(one.stop("-TERM").success());
    wait_until("it was told", || left(&other) == 95);
}
