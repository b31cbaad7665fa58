//! Servers that have a share of a limit each.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tidegate_store_redis::test_util::{RedisServer, wait_until};

use super::{Desk, is_admitted, rules, start, sum};
use crate::server::Server;

/// In each second.
const LIMIT: usize = 20;

/// As good as all of it: nobody asks all the time on a busy machine.
const NEARLY: usize = 18;

/// How many were admitted surely within each second of Redis' clock.
#[derive(Debug, Default)]
struct Seconds(Mutex<BTreeMap<u64, usize>>);

// === impl Seconds ===

impl Seconds {
    /// Asks a server again and again, until it is enough.
    fn ask(&self, server: &Server, redis: &RedisServer, is_over: &AtomicBool) {
        let mut desk = Desk::open(redis);
        let mut before = desk.second();
        while !is_over.load(Ordering::Relaxed) {
            let is_admitted = is_admitted(server);
            let after = desk.second();
            if is_admitted && before == after {
                *self.0.lock().unwrap().entry(after).or_default() += 1;
            }
            before = after;
        }
    }

    /// The most in any second after so many, which are over.
    fn most_after(&self, second: u64) -> usize {
        let seconds = self.0.lock().unwrap();
        let later = seconds.range(second + 1..).map(|(_, count)| *count);
        later.max().unwrap_or_default()
    }
}

/// Asks the servers at the same time, until nearly all of the limit is used in a second that begins later. Never
/// is it more.
fn use_up(seconds: &Seconds, servers: &[&Server], redis: &RedisServer) {
    let begin = Desk::open(redis).second();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for server in servers {
            scope.spawn(|| seconds.ask(server, redis, &is_over));
        }
        // However it ends, so do the threads.
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until("the limit is used", || seconds.most_after(begin) >= NEARLY);
        }));
        is_over.store(true, Ordering::Relaxed);
        waited.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    assert!(seconds.most_after(0) <= LIMIT, "{seconds:?}");
}

fn has_share(server: &Server) -> bool {
    sum(server, "tidegate_split_counters", "") == 1
}

#[test]
fn servers_share_the_limit_while_they_come_and_die() {
    let redis = RedisServer::start();
    let rules = rules("shared_split", 1, "");
    let limit = format!("{{unit: second, requests_per_unit: {LIMIT}, consistency: split}}");
    let text = format!("domain: shop\ndescriptors: [{{key: user_id, rate_limit: {limit}}}]\n");
    std::fs::write(&rules, text).unwrap();
    let seconds = Seconds::default();
    let one = start(&redis, &rules, "leased");
    use_up(&seconds, &[&one], &redis);
    let [two, three] = [(); 2].map(|()| start(&redis, &rules, "leased"));
    use_up(&seconds, &[&one, &two, &three], &redis);
    wait_until("all have a share", || {
        [&one, &two, &three].into_iter().all(|server| {
            is_admitted(server);
            has_share(server)
        })
    });
    assert_eq!(sum(&one, "tidegate_members", ""), 3);
    // What the dead had is free again when they are forgotten.
    for dead in [two, three] {
        assert!(!dead.stop("-KILL").success());
    }
    wait_until("it is alone", || sum(&one, "tidegate_members", "") == 1);
    use_up(&seconds, &[&one], &redis);
}

#[test]
fn a_limit_of_a_year_is_strict() {
    let redis = RedisServer::start();
    let rules = rules("shared_split_year", 50, "");
    let [one, other] = [(); 2].map(|()| start(&redis, &rules, "split"));
    assert_eq!(super::admitted_together([&one, &other], 40), 50);
}
