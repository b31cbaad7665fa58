//! All that read what comes from a server, for whoever looks for something that one of them cannot bear.

use std::sync::OnceLock;
use std::time::Duration;

use tidegate_algorithms::{
    Algorithm, Allowance, Headroom, Percent, Quota, QuotaSpec, Refill, Rounding, Time,
};
use tidegate_store::{
    Charge, Charging, Consistency, CounterId, CounterKey, CounterUpdate, LimitId, Mode, OnFull,
};

use crate::RedisStore;
use crate::book::{self, Entry, Head, History};
use crate::client::{Address, Client, ClientConfig, Deployment, Reply, readers};
use crate::counter::{Account, Told, time};
use crate::{members, totals};

/// Has each of them read a reply.
pub fn read_reply(reply: &Reply) {
    readers::read(reply);
    let _ = totals::read_greeting(reply);
    read_totals(reply);
    let _ = members::read(reply);
    let _ = book::read_pushed(reply);
    if let Ok(fields) = reply.array() {
        History::read(fields);
    }
    for quota in quotas() {
        store().read(quota, reply);
    }
    if let Ok(Some(text)) = reply.text() {
        read_text(text);
    }
}

fn read_totals(reply: &Reply) {
    let update = CounterUpdate {
        counter: CounterId(1),
        slot_nanos: 1,
        epoch_slots: 16,
        current: 40,
        first: 24,
        totals: &[],
        base: 0,
    };
    for updates in [&[update][..], &[update; 2]] {
        let _ = totals::read_sums(reply, updates);
    }
}

/// Has each of them read a text that a script tells, or that lies in Redis.
pub fn read_text(text: &[u8]) {
    let _ = time(text);
    let _ = Head::new(text).read();
    if let Some(entry) = Entry::read(1, text) {
        assert_eq!(Entry::read(1, entry.line().as_bytes()), Some(entry));
    }
    for quota in quotas() {
        for now in [
            Time::ZERO,
            Time::from_micros(1 << 50),
            Time::from_nanos(u64::MAX),
        ] {
            if let Some(told) = Told::read(text, quota) {
                judge(told, quota, now);
            }
        }
    }
}

fn judge(told: Told, quota: &Quota, now: Time) {
    let mut account = Account::new(told);
    for cost in [0, 1, u64::MAX] {
        let charge = Charge {
            key: CounterKey {
                limit: LimitId(1),
                values: &[],
            },
            quota,
            cost,
            mode: Mode::Enforce,
            headroom: Headroom::Available,
            on_full: OnFull::Allow,
            consistency: Consistency::Strict,
        };
        for charging in [Charging::AllOrNone, Charging::EveryMatch] {
            let mut decision = account.judge(&charge, charging, now);
            account.look(&charge, &mut decision, now);
        }
    }
}

/// A store that nobody asks.
fn store() -> &'static RedisStore {
    static STORE: OnceLock<RedisStore> = OnceLock::new();
    STORE.get_or_init(|| {
        let deployment = Deployment::Single(Address::tcp("nowhere", 1));
        let client = Client::new(&ClientConfig::new(deployment));
        RedisStore::new(client.expect("there are no files"))
    })
}

/// A limit of each algorithm.
fn quotas() -> &'static [Quota] {
    static QUOTAS: OnceLock<Vec<Quota>> = OnceLock::new();
    let bucket = |refill| Algorithm::TokenBucket {
        burst: Some(7),
        refill,
    };
    let counter = |sub_windows| Algorithm::SlidingCounter {
        sub_windows,
        rounding: Rounding::Up,
    };
    QUOTAS.get_or_init(|| {
        let algorithms = [
            bucket(Refill::Continuous),
            bucket(Refill::Interval),
            Algorithm::LeakyBucket { queue: None },
            Algorithm::FixedWindow,
            Algorithm::SlidingLog { log_refused: true },
            counter(1),
            counter(12),
        ];
        algorithms.map(quota).into()
    })
}

fn quota(algorithm: Algorithm) -> Quota {
    Quota::new(&QuotaSpec {
        limit: 5,
        window: Duration::from_mins(1),
        algorithm,
        allowance: Allowance::Soft {
            over: Percent(50),
            only_for: Some(Duration::from_secs(1)),
        },
    })
    .expect("valid")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reply of lists and lines, as deep as any of ours.
    fn replies() -> impl Strategy<Value = String> {
        let text = "[-0-9:@ .]{0,30}";
        let line = prop_oneof![
            any::<i64>().prop_map(|number| format!(":{number}\r\n")),
            (0_i64..20_000).prop_map(|number| format!(":{number}\r\n")),
            text.prop_map(|text| format!("${}\r\n{text}\r\n", text.len())),
            "(MOVED|ASK|TRYAGAIN) [0-9]{1,5} [a-z:.?]{0,9}:?[0-9]{0,6}"
                .prop_map(|text| format!("-{text}\r\n")),
            Just("$-1\r\n".to_owned()),
        ];
        line.prop_recursive(3, 32, 8, |inner| {
            prop::collection::vec(inner, 0..8)
                .prop_map(|parts| format!("*{}\r\n{}", parts.len(), parts.concat()))
        })
    }

    proptest! {
        /// No reply is too strange for whoever reads it.
        #[test]
        fn any_reply_is_read_or_refused(reply in replies()) {
            read_reply(&Reply::parse(reply.as_bytes()).expect("it is one"));
        }

        /// No text that lies in Redis is too strange for whoever reads it.
        #[test]
        fn any_text_is_read_or_refused(text in "-?[0-9]{0,20}[ :@.]?[0-9]{0,20}[ :@]?[-0-9]{0,20}( [0-9]{1,20}){0,4}") {
            read_text(text.as_bytes());
        }
    }
}
