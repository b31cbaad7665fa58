//! Servers that tell each other their totals.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;
use tidegate_store_redis::test_util::{RedisServer, wait_until};

use super::{Desk, admitted, is_admitted, rules, start, sum};
use crate::program::run;
use crate::server::Server;

/// In a year, whose edge no test meets.
const LIMIT: usize = 400;

/// How many too many two servers may admit, as `tidegate explain` says.
pub(super) fn printed_bound(rules: &Path) -> usize {
    let rules = rules.to_str().unwrap();
    let args = ["explain", "--rules", rules, "--domain", "shop", "user_id=7"];
    let store = ["--store", "redis://127.0.0.1", "--consistency", "eventual"];
    let said = run(&[&args[..], &store].concat()).stdout;
    let (_, bound) = said.split_once("at most ").expect(&said);
    let (bound, _) = bound.split_once(" too many with 2 nodes").expect(&said);
    bound.parse().unwrap()
}

/// Waits until all servers know of each other: each is known in every Redis, and has heard from its own since.
pub(super) fn meet(servers: &[&Server], redis: &[&RedisServer]) {
    let all = u64::try_from(servers.len()).unwrap();
    for redis in redis {
        let mut desk = Desk::open(redis);
        wait_until("all are known", || {
            desk.numbers("ZCARD tg1:{tellers:tidegate}") == [all]
        });
    }
    for server in servers {
        hear(server);
    }
}

/// Waits until a server has heard from its Redis what is there now.
pub(super) fn hear(server: &Server) {
    let syncs = || {
        sum(
            server,
            "tidegate_eventual_syncs_total",
            "result=\"success\"",
        )
    };
    let before = syncs();
    // The one under way may have begun before.
    wait_until("it has heard", || syncs() >= before + 2);
}

/// Waits until all that a server admitted is told, and it has heard what it was not told yet of user 7.
pub(super) fn settle(server: &Server) {
    let pending = || sum(server, "tidegate_eventual_pending_hits", "");
    wait_until("all is told", || pending() == 0);
    // What nobody asks for is not heard of either.
    left(server);
    hear(server);
}

/// What is left of user 7's limit as a server sees it.
pub(super) fn left(server: &Server) -> u64 {
    let caller = r#"{"domain": "shop", "entries": [{"key": "user_id", "value": "7"}]}"#;
    let told = server.operate("POST /api/v1/keys/lookup", caller);
    let (_, body) = told.split_once("\r\n\r\n").unwrap();
    let told: Value = serde_json::from_str(body).unwrap();
    told["limits"][0]["remaining"].as_u64().unwrap()
}

/// Asks all servers at the same time until they have admitted `limit` together, and gives how many it was.
pub(super) fn use_up(servers: &[&Server], limit: usize) -> usize {
    let total = AtomicUsize::new(0);
    thread::scope(|scope| {
        for server in servers {
            scope.spawn(|| {
                wait_until("the limit is used", || {
                    total.fetch_add(usize::from(is_admitted(server)), Ordering::Relaxed);
                    total.load(Ordering::Relaxed) >= limit
                });
            });
        }
    });
    total.into_inner()
}

#[test]
fn what_passes_above_the_limit_is_within_the_printed_bound() {
    let redis = RedisServer::start();
    let rules = rules("shared_eventual", u32::try_from(LIMIT).unwrap(), "");
    let bound = printed_bound(&rules);
    assert_eq!(bound, LIMIT / 4);
    let servers = [(); 2].map(|()| start(&redis, &rules, "eventual"));
    let [one, other] = &servers;
    meet(&[one, other], &[&redis]);
    let total = use_up(&[one, other], LIMIT);
    assert!(total <= LIMIT + bound, "{total}");
    for server in &servers {
        settle(server);
    }
    for server in &servers {
        settle(server);
        assert_eq!(admitted(server, 20), 0);
        let seen = sum(server, "tidegate_eventual_worst_overshoot_hits", "");
        assert_eq!(usize::try_from(seen).unwrap(), total - LIMIT);
    }
}

/// The dead take with them what they had not told, at most their budget; and whoever comes in their place knows of
/// nobody at first, and may admit `slack` of the limit.
#[test]
fn a_killed_server_costs_no_more_than_its_budget() {
    let redis = RedisServer::start();
    let rules = rules("shared_eventual_killed", u32::try_from(LIMIT).unwrap(), "");
    let bound = printed_bound(&rules);
    let [one, other] = [(); 2].map(|()| start(&redis, &rules, "eventual"));
    meet(&[&one, &other], &[&redis]);
    let early = use_up(&[&one, &other], LIMIT / 2);
    assert!(!other.stop("-KILL").success());
    let other = start(&redis, &rules, "eventual");
    let late = use_up(&[&one, &other], LIMIT - early.min(LIMIT));
    assert!(
        early + late <= LIMIT + bound + bound / 2 + LIMIT / 4,
        "{early}, {late}"
    );
    for server in [&one, &other, &one, &other] {
        settle(server);
    }
    // They agree about what the store knows, and whatever it does not is less than a budget.
    let left = [&one, &other].map(left);
    assert_eq!(left[0], left[1]);
    assert!(usize::try_from(left[0]).unwrap() <= bound / 2, "{left:?}");
}
