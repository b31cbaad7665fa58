//! The store contract over Redis.

mod ask;
mod batch;
mod lend;
mod list;
mod missed;
mod owned;
mod single;
mod together;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_algorithms::{Decision, Quota, RefundTo, Time};
use tidegate_store::report::{StoreHealth, StoreReport};
use tidegate_store::{
    Charge, Charging, Consistency, CounterKey, Cursor, Decisions, MAX_CHARGES, Page, Receipt,
    Store, StoreError,
};

use self::single::CounterRefund;
use crate::client::Client;
use crate::counter::PeriodAfter;
use crate::fit::fits;
use crate::key::{Installation, Key};
use crate::report;
use crate::script::{Header, Scripts};

/// Counters in Redis, in common with all nodes that ask the same Redis. Every decision is made there, as
/// one step, at Redis' own time. Cheap to clone; all clones are one store.
#[derive(Clone, Debug)]
pub struct RedisStore {
    client: Client,
    scripts: Arc<Scripts>,
    time: Arc<TimeArgument>,
    /// What tells the counters of this installation from those of others.
    installation: Installation,
    /// How often a script and the core did not agree.
    disagreements: Arc<AtomicU64>,
}

/// What the header of the scripts is told.
#[derive(Debug)]
enum TimeArgument {
    /// Nothing: Redis tells the time.
    Nothing,
    /// The time in microseconds, or a name.
    #[cfg(feature = "test-util")]
    Number(AtomicU64),
    /// A name for each decision, one after the other.
    #[cfg(feature = "test-util")]
    Next(AtomicU64),
}

// === impl RedisStore ===

impl RedisStore {
    /// A store that asks through `client`. Connects to nobody yet.
    pub fn new(client: Client) -> Self {
        Self::with_header(client, Header::Server, TimeArgument::Nothing)
    }

    fn with_header(client: Client, header: Header, time: TimeArgument) -> Self {
        Self {
            client,
            scripts: Arc::new(Scripts::new(header)),
            time: Arc::new(time),
            installation: Installation::default(),
            disagreements: Arc::default(),
        }
    }

    /// The counters of the installation that is called `name`, among those that share a Redis: another
    /// name has other counters, though its rules are the same.
    #[must_use]
    pub fn named(self, name: &str) -> Self {
        Self {
            installation: Installation::named(name),
            ..self
        }
    }

    /// The key of a counter of this installation.
    fn key(&self, key: CounterKey<'_>, quota: &Quota) -> Key {
        let limit = self.installation.own(key.limit);
        Key::new(CounterKey { limit, ..key }, quota)
    }

    /// The client that it asks through.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// How often a script decided otherwise than the core would have. Never, unless there is a fault in
    /// either; the script's word stands.
    pub fn disagreements(&self) -> u64 {
        self.disagreements.load(Ordering::Relaxed)
    }
}

#[cfg(feature = "test-util")]
impl RedisStore {
    /// Has all read a reply that read what scripts say of a counter of `quota`, for whoever looks for one that
    /// they cannot bear.
    pub(crate) fn read(&self, quota: &Quota, reply: &crate::client::Reply) {
        let (limit, values) = (tidegate_store::LimitId(1), &[][..]);
        let draw = tidegate_store::Draw {
            least: 1,
            most: u64::MAX,
            one_in: 1,
            reserve: 0,
            life: std::time::Duration::MAX,
        };
        let _ = self.read_loan(CounterKey { limit, values }, quota, draw, reply);
        let _ = list::read(reply);
    }

    /// A store whose time stands at `now` until it is moved. Its keys do not expire by themselves.
    pub fn in_virtual_time(client: Client, now: Time) -> Self {
        let micros = AtomicU64::new(now.nanos() / 1_000);
        Self::with_header(client, Header::Virtual, TimeArgument::Number(micros))
    }

    /// Moves the time of a store in virtual time.
    pub fn set_time(&self, now: Time) {
        if let TimeArgument::Number(micros) = &*self.time {
            micros.store(now.nanos() / 1_000, Ordering::Relaxed);
        }
    }

    /// A store whose scripts write down each decision, under a name: the first is `first`, each next one is
    /// one more. They are in the list `race`, in the order in which they were made.
    pub fn in_race(client: Client, first: u64) -> Self {
        let next = TimeArgument::Next(AtomicU64::new(first));
        Self::with_header(client, Header::Race, next)
    }
}

impl Store for RedisStore {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        decisions.clear();
        if charges.len() > MAX_CHARGES {
            return Err(StoreError::TooManyCharges {
                asked: charges.len(),
                most: MAX_CHARGES,
            });
        }
        for charge in charges {
            fits(charge.quota).map_err(|reason| StoreError::Unfit { reason })?;
        }
        match charges {
            [charge] => self.charge_one(charge, charging, decisions).await,
            _ => self.charge_many(charges, charging, decisions).await,
        }
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        let look = Charge { cost: 0, ..*charge };
        self.look_at_one(&look).await
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        consistency: Consistency,
    ) -> Result<(), StoreError> {
        let refund = CounterRefund {
            cost,
            to,
            period: PeriodAfter::Kept,
            consistency,
        };
        self.refund_to(key, quota, refund).await
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        _consistency: Consistency,
    ) -> Result<bool, StoreError> {
        self.forget(key, quota).await
    }

    async fn now(&self) -> Result<Time, StoreError> {
        self.ask_time().await
    }

    async fn list(&self, cursor: Cursor, most: usize) -> Result<Page, StoreError> {
        self.list_page(cursor, most).await
    }

    fn health(&self) -> StoreHealth {
        report::health(&self.client)
    }

    fn report(&self) -> StoreReport {
        StoreReport {
            disagreements: self.disagreements(),
            ..report::report(&self.client)
        }
    }
}
