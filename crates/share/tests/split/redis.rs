//! Nodes that come and go under load, through a real Redis.
//!
//! Everything is judged by Redis' time, which is that of this machine. Every admission notes the time
//! before and after; one that has an edge in between may count for either window.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tidegate_algorithms::{Quota, Time};
use tidegate_share::{SharedStore, SplitConfig};
use tidegate_store::{Admission, Charging, Clock, Decisions, EmbeddedStore, Store, SystemClock};
use tidegate_store_redis::client::{Client, ClientConfig};
use tidegate_store_redis::test_util::{PATIENCE, RedisServer};
use tidegate_store_redis::{RedisMembers, RedisStore};
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::common_store::{fixed_window, shared, small, split};

const HEARTBEAT: Duration = Duration::from_millis(100);
const EXPIRY: Duration = Duration::from_millis(300);
const WINDOW: Duration = Duration::from_millis(200);
const LIMIT: u64 = 400;

/// Requests that a node gets in a millisecond: each wants three times what there is, and eight of them do not
/// keep a machine busy.
const REQUESTS: u32 = 6;

/// All nodes, and what they did.
struct Crowd {
    client: Client,
    wall: Rc<SystemClock>,
    quota: Rc<Quota>,
    nodes: Vec<[AbortHandle; 2]>,
    log: Rc<Log>,
}

/// What happened.
#[derive(Default)]
struct Log {
    /// By windows: how many requests there were, and what became of them.
    windows: RefCell<BTreeMap<u128, Count>>,
    /// By how much a heartbeat was late at the most, since last looked at.
    late: Cell<Duration>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    requests: u64,
    /// Surely admitted in this window.
    sure: u64,
    /// Admitted in this window or in the one before.
    unsure: u64,
}

// === impl Crowd ===

impl Crowd {
    fn new(server: &RedisServer) -> Self {
        let config = ClientConfig::from_url(&server.url()).unwrap();
        Self {
            // Not how fast a busy machine is, but what it decides is looked at here.
            client: Client::new(&config).unwrap().with_timeout(PATIENCE),
            wall: SystemClock::new().into(),
            quota: Rc::new(fixed_window(LIMIT, WINDOW)),
            nodes: Vec::new(),
            log: Rc::default(),
        }
    }

    fn join(&mut self) {
        let config = shared(SplitConfig {
            heartbeat: HEARTBEAT,
            expiry: EXPIRY,
            ..SplitConfig::default()
        });
        let local = EmbeddedStore::new(small());
        let store = Rc::new(SharedStore::new(
            RedisStore::new(self.client.clone()),
            local,
            config,
        ));
        let members = RedisMembers::new(&self.client, "crowd");
        let beating = spawn_local({
            let store = Rc::clone(&store);
            async move { store.split().run(&members).await }
        });
        let (quota, wall, log) = (self.quota.clone(), self.wall.clone(), self.log.clone());
        let serving = spawn_local(async move {
            let mut tick = interval(Duration::from_millis(1));
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tick.tick().await;
                for _ in 0..REQUESTS {
                    serve(&store, &quota, &wall, &log).await;
                }
                let age = store.split().report().age.unwrap_or_default();
                log.late
                    .set(log.late.get().max(age.saturating_sub(HEARTBEAT)));
            }
        });
        self.nodes
            .push([beating.abort_handle(), serving.abort_handle()]);
    }

    /// Ends a node in the middle of whatever it does.
    fn kill(&mut self) {
        for task in self.nodes.pop().unwrap() {
            task.abort();
        }
    }

    /// Waits until the limit is in use again, and sees that this does not take too long.
    async fn settle(&self, what: &str) {
        let change = self.wall.now();
        let due = change.plus(EXPIRY + HEARTBEAT * 3);
        // The first window that begins then.
        let first = window(due) + 1;
        self.log.late.take();
        for window in first.. {
            self.wait_for(window + 2).await;
            let count = self.log.windows.borrow().get(&window).copied();
            let count = count.unwrap_or_default();
            let used = count.sure + count.unsure;
            if used * 100 >= LIMIT * 95 {
                println!(
                    "{what}: {used} of {LIMIT} in the window {} later",
                    window - first
                );
                return;
            }
            // On a machine that is too busy nobody can be on time; then the next window is looked at.
            let late = self.log.late.take();
            let is_idle = count.requests < LIMIT * 2;
            println!("{what}: {count:?}, heartbeats late by up to {late:?}");
            assert!(is_idle || late > HEARTBEAT / 2, "{what}: {count:?}");
        }
    }

    async fn wait_for(&self, until: u128) {
        let mut tick = interval(Duration::from_millis(5));
        while window(self.wall.now()) < until {
            tick.tick().await;
        }
    }
}

async fn serve(store: &SharedStore<RedisStore>, quota: &Quota, wall: &SystemClock, log: &Log) {
    let charges = [split(quota, 1)];
    let mut decisions = Decisions::new();
    let before = window(wall.now());
    let charging = Charging::AllOrNone;
    let charged = store.charge(&charges, charging, &mut decisions).await;
    // A machine that is too busy for Redis to answer in time.
    let charged = charged.or_else(|_| store.charge_alone(&charges, charging, &mut decisions));
    let after = window(wall.now());
    let mut windows = log.windows.borrow_mut();
    let count = windows.entry(after).or_default();
    count.requests += 1;
    if charged.unwrap().admission == Admission::Admitted {
        if before == after {
            count.sure += 1;
        } else {
            count.unsure += 1;
        }
    }
}

fn window(time: Time) -> u128 {
    u128::from(time.nanos()) / WINDOW.as_nanos()
}

#[tokio::test]
async fn one_limit_holds_from_one_node_to_eight_to_three() {
    let server = RedisServer::start();
    let mut crowd = Crowd::new(&server);
    let story = async {
        crowd.join();
        crowd.settle("one node").await;
        (0..7).for_each(|_| crowd.join());
        crowd.settle("eight nodes").await;
        (0..5).for_each(|_| crowd.kill());
        crowd.settle("three nodes").await;
        crowd
    };
    let told = LocalSet::new()
        .run_until(timeout(PATIENCE * 2, story))
        .await;
    let crowd = told.expect("it ends");
    for (window, count) in &*crowd.log.windows.borrow() {
        assert!(count.sure <= LIMIT, "{count:?} in window {window}");
    }
}
