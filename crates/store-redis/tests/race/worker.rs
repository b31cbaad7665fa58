//! One process that takes part.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use tidegate_algorithms::Time;
use tidegate_store::{Charging, Decisions, Store};
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::client::{Client, ClientConfig};
use tidegate_store_redis::test_util::PATIENCE;

use super::scenario::{Scenario, WINDOW_NANOS};

/// Over how many windows the hammering goes on.
pub(crate) const WINDOWS: u32 = 20;

/// How often each caller asks for each scenario at the least.
const ROUNDS: u32 = 2;

/// Connections with one caller each.
const CONNECTIONS: u64 = 64;

/// Callers on one connection more, whose decisions are joined.
const TOGETHER: u64 = 64;

/// The names of one caller's decisions are so far from those of the next.
const NAMES: u64 = 1 << 32;

/// Hammers, and prints what each decision was.
pub(crate) fn run(url: &str, number: u64) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    let shared = client(url);
    let tasks = (0..CONNECTIONS + TOGETHER).map(|caller| {
        let first = (number * (CONNECTIONS + TOGETHER) + caller) * NAMES;
        let client = if caller < CONNECTIONS {
            client(url)
        } else {
            shared.clone()
        };
        runtime.spawn(hammer(client, first))
    });
    let tasks: Vec<_> = tasks.collect();
    let mut out = std::io::stdout().lock();
    for task in tasks {
        let lines = runtime.block_on(task).expect("no panic");
        out.write_all(lines.as_bytes()).expect("somebody listens");
    }
}

fn client(url: &str) -> Client {
    let config = ClientConfig::from_url(url).expect("a URL");
    let client = Client::new(&config).expect("no files");
    client.with_timeout(PATIENCE)
}

/// Asks for one scenario after the other, until enough windows have passed.
async fn hammer(client: Client, first: u64) -> String {
    let store = RedisStore::in_race(client, first);
    let scenarios = Scenario::all();
    let (mut lines, mut name) = (String::new(), first);
    let (mut rounds, mut end, mut now) = (0, Time::MAX, Time::ZERO);
    while rounds < ROUNDS || now < end {
        for (number, scenario) in scenarios.iter().enumerate() {
            let cost = 1 + name % 2;
            let charges = scenario.charges(cost);
            let mut decisions = Decisions::new();
            let answer = store.charge(&charges, Charging::AllOrNone, &mut decisions);
            let receipt = answer.await.expect("a decision");
            now = receipt.now;
            let (nanos, admission) = (now.nanos(), receipt.admission);
            let line = writeln!(
                lines,
                "{name} {number} {cost} {nanos} {admission:?} {decisions:?}"
            );
            line.expect("a string takes all");
            name += 1;
        }
        // The first round goes by in sending scripts.
        if rounds == 0 {
            end = now.plus(Duration::from_nanos(WINDOW_NANOS) * WINDOWS);
        }
        rounds += 1;
    }
    lines
}
