//! The embedded store passes the suite that every store passes.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tidegate_algorithms::Time;
use tidegate_store::conformance::Subject;
use tidegate_store::{EmbeddedStore, ManualClock, StoreConfig};

struct Embedded(EmbeddedStore<ManualClock>);

impl Subject for Embedded {
    type Store = EmbeddedStore<ManualClock>;

    fn new(now: Time) -> Self {
        let config = StoreConfig {
            max_memory: 8 << 20,
        };
        Self(EmbeddedStore::with_clock(config, ManualClock::at(now)))
    }

    fn store(&self) -> &Self::Store {
        &self.0
    }

    fn set_time(&self, now: Time) {
        self.0.clock().set(now);
    }

    /// The embedded store answers without awaiting.
    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut context = Context::from_waker(Waker::noop());
        match pin!(answer).poll(&mut context) {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("the embedded store waits for nothing"),
        }
    }
}

tidegate_store::conformance!(Embedded, that lends);
