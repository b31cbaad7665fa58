//! Requests that are decided from memory, and one that is noted there, for the tests of instructions and allocations.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate_algorithms::{Algorithm, Allowance, Headroom, Quota, QuotaSpec, Refill, Time};
use tidegate_share::{EventualConfig, SharedConfig, SharedStore, SplitConfig};
use tidegate_store::{
    Admission, Charge, Charging, Consistency, CounterKey, Decisions, EmbeddedStore, LimitId,
    ManualClock, Mode, OnFull, Store, StoreConfig,
};

/// A node, and what is asked of it.
pub(crate) struct Workload {
    shared: SharedStore<EmbeddedStore<StillClock>, StillClock, ManualClock>,
    quotas: Vec<Quota>,
    consistency: Consistency,
}

/// A clock of which each store has a handle.
type StillClock = Arc<ManualClock>;

const NOW: Time = Time::from_nanos(1_800_000_000_000_000_000);

const CALLER: [&str; 1] = ["8c1f0b6e-3f59-4c1e-9d59-1c0b7f5a2e44"];

/// Requests after which enough permits are held for a thousand more: each draw is for as much as was spent by then,
/// and the last one is made after about 4,096. Time stands still, so that no loan ends.
const WARM_UP: usize = 4_300;

// === impl Workload ===

impl Workload {
    /// The workload of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        // One in 3,600 ns: whole nanoseconds, as nearly every limit in use.
        let plenty = 1_000_000_000;
        let (limits, consistency): (&[u64], _) = match name {
            "node" => (&[plenty], Consistency::Node),
            "strict" => (&[plenty], Consistency::Strict),
            "leased" => (&[plenty], Consistency::Leased),
            "refused" => (&[1], Consistency::Leased),
            "several" => (&[plenty, plenty], Consistency::Leased),
            _ => return None,
        };
        let small = StoreConfig {
            max_memory: 1 << 20,
        };
        let store = || EmbeddedStore::with_clock(small, Arc::new(ManualClock::at(NOW)));
        let config = SharedConfig {
            standby_memory: small,
            eventual: EventualConfig {
                memory: small,
                ..EventualConfig::default()
            },
            split: SplitConfig {
                store: small,
                ..SplitConfig::default()
            },
            ..SharedConfig::default()
        };
        Some(Self {
            shared: SharedStore::with_clock(store(), store(), config, ManualClock::at(NOW)),
            quotas: limits.iter().map(|limit| bucket(*limit)).collect(),
            consistency,
        })
    }

    /// Makes the key hot.
    pub(crate) fn warm_up(&self) {
        // Together they ask the store for what neither has in hand; each draws only by itself.
        for place in 0..self.quotas.len() {
            for _ in 0..WARM_UP {
                decide_on(self, place..place + 1);
            }
        }
    }

    fn charge(&self, place: usize) -> Charge<'_> {
        Charge {
            key: CounterKey {
                limit: LimitId(place as u128),
                values: &CALLER,
            },
            quota: &self.quotas[place],
            cost: 1,
            mode: Mode::Enforce,
            headroom: Headroom::Absent,
            on_full: OnFull::Allow,
            consistency: self.consistency,
        }
    }
}

/// Whether one request is admitted.
pub(crate) fn decide(workload: &Workload) -> bool {
    decide_on(workload, 0..workload.quotas.len())
}

fn decide_on(workload: &Workload, places: std::ops::Range<usize>) -> bool {
    let mut charges = [workload.charge(0); 2];
    for (charge, place) in charges.iter_mut().zip(places.clone()) {
        *charge = workload.charge(place);
    }
    let mut decisions = Decisions::new();
    let charges = &charges[..places.len()];
    let answer = workload
        .shared
        .charge(charges, Charging::AllOrNone, &mut decisions);
    let mut context = Context::from_waker(Waker::noop());
    match pin!(answer).poll(&mut context) {
        Poll::Ready(Ok(receipt)) => receipt.admission == Admission::Admitted,
        Poll::Ready(Err(_)) | Poll::Pending => false,
    }
}

fn bucket(limit: u64) -> Quota {
    let spec = QuotaSpec {
        limit,
        window: Duration::from_hours(1),
        algorithm: Algorithm::TokenBucket {
            burst: None,
            refill: Refill::Continuous,
        },
        allowance: Allowance::Hard,
    };
    Quota::new(&spec).expect("valid")
}
