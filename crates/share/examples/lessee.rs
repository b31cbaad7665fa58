//! A node as a process of its own, for tests that kill it: `lessee URL LIMIT`. It asks for one leased limit
//! again and again, writes a `+` for each request that was admitted, and ends when the limit is used up.

use std::env;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec};
use tidegate_share::{SharedConfig, SharedStore};
use tidegate_store::{
    Admission, Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId, Mode,
    OnFull, Store, StoreConfig,
};
use tidegate_store_redis::RedisStore;
use tidegate_store_redis::client::{Client, ClientConfig};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [url, limit] = args.as_slice() else {
        return ExitCode::from(2);
    };
    let mut config = ClientConfig::from_url(url).expect("a URL");
    // The machine that runs tests may be busy; what a slow call comes to is tested elsewhere.
    let patience = Some(Duration::from_secs(10));
    (config.min_timeout, config.timeout) = (patience, patience);
    let remote = RedisStore::new(Client::new(&config).expect("a client"));
    let local = EmbeddedStore::new(StoreConfig {
        max_memory: 1 << 20,
    });
    let shared = SharedStore::new(remote, local, SharedConfig::default());
    let quota = Quota::new(&QuotaSpec {
        limit: limit.parse().expect("a limit"),
        window: Duration::from_hours(6),
        algorithm: Algorithm::FixedWindow,
        allowance: Allowance::Hard,
    })
    .expect("valid");
    ask_until_refused(&shared, &quota).await;
    shared.finish().await;
    ExitCode::SUCCESS
}

async fn ask_until_refused(shared: &SharedStore<RedisStore>, quota: &Quota) {
    let charge = Charge {
        key: CounterKey {
            limit: LimitId(1),
            values: &["ann"],
        },
        quota,
        cost: 1,
        mode: Mode::Enforce,
        headroom: Headroom::Absent,
        on_full: OnFull::Deny,
        consistency: Consistency::Leased,
    };
    let mut output = std::io::stdout();
    let mut decisions = Decisions::new();
    loop {
        let charges = [charge];
        let asked = shared.charge(&charges, Charging::AllOrNone, &mut decisions);
        let receipt = asked.await.expect("a decision");
        if receipt.admission == Admission::Refused {
            return;
        }
        output.write_all(b"+").expect("somebody reads");
        output.flush().expect("somebody reads");
        // Lets draws go on that are made ahead.
        tokio::task::yield_now().await;
    }
}
