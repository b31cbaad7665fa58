//! The way between a node and the common store: it takes time, and loses things.

use std::cell::Cell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_algorithms::{Decision, Quota, RefundTo, Time};
use tidegate_store::{
    Charge, Charging, Clock, Consistency, CounterKey, Cursor, Decisions, Draw, Lender, Loan, Page,
    Receipt, Store, StoreError,
};
use tokio::sync::oneshot;

use crate::lender::CommonStore;
use crate::time::TrueTime;

/// How long a node waits for a reply.
pub(crate) const PATIENCE: Duration = Duration::from_millis(5);

tokio::task_local! {
    /// When the store decided on the request of this task, if it did.
    pub(crate) static DECIDED: Cell<Option<Time>>;
}

/// A node's way to the common store.
#[derive(Clone)]
pub(crate) struct Wire {
    store: Arc<CommonStore>,
    clock: TrueTime,
    events: Arc<Mutex<Events>>,
}

/// What is to happen next in the world, and when.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) wakes: Vec<(Time, oneshot::Sender<()>)>,
    pub(crate) weather: Weather,
    /// Calls that reached the store.
    pub(crate) calls: u64,
    pub(crate) draws: u64,
}

/// What becomes of calls, in turn.
#[derive(Clone, Default)]
pub(crate) struct Weather {
    pub(crate) fates: Vec<Fate>,
    next: usize,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It takes so many microseconds there, and so many back.
    Arrives { there: u64, back: u64 },
    /// It is not made, for the store failed just now.
    Open,
    /// It never gets there.
    Lost,
    /// It gets there, but the reply is lost.
    ReplyLost { there: u64 },
}

// === impl Weather ===

impl Weather {
    pub(crate) fn new(fates: Vec<Fate>) -> Self {
        Self { fates, next: 0 }
    }

    fn fate(&mut self) -> Fate {
        let fate = self.fates.get(self.next).copied();
        self.next = (self.next + 1) % self.fates.len().max(1);
        fate.unwrap_or(Fate::Arrives { there: 0, back: 0 })
    }
}

// === impl Wire ===

impl Wire {
    pub(crate) fn new(store: Arc<CommonStore>, clock: &TrueTime, weather: Weather) -> Self {
        let events = Events {
            weather,
            ..Events::default()
        };
        Self {
            store,
            clock: clock.clone(),
            events: Arc::new(Mutex::new(events)),
        }
    }

    pub(crate) fn with_events<T>(&self, work: impl FnOnce(&mut Events) -> T) -> T {
        work(&mut self.events.lock().expect("no test goes on after a panic"))
    }

    /// Waits until it is so much later, by the true time.
    async fn pass(&self, micros: u64) {
        if micros == 0 {
            return;
        }
        let (wake, woken) = oneshot::channel();
        let at = self.clock.now().plus(Duration::from_micros(micros));
        self.with_events(|events| events.wakes.push((at, wake)));
        // A world that ends wakes nobody.
        let _ = woken.await;
    }

    /// One call, through whatever weather there is.
    async fn call<T>(&self, call: impl AsyncFnOnce(&CommonStore) -> T) -> Result<T, StoreError> {
        let patience = u64::try_from(PATIENCE.as_micros()).expect("short");
        let lost = StoreError::Timeout { after: PATIENCE };
        let fate = self.with_events(|events| {
            events.calls += 1;
            events.weather.fate()
        });
        match fate {
            Fate::Arrives { there, back } => {
                self.pass(there).await;
                let answer = call(&self.store).await;
                let decided = self.clock.now();
                self.pass(back).await;
                let _ = DECIDED.try_with(|cell| cell.set(Some(decided)));
                Ok(answer)
            }
            Fate::Open => Err(StoreError::Open),
            Fate::Lost => {
                self.pass(patience).await;
                Err(lost)
            }
            Fate::ReplyLost { there } => {
                self.pass(there).await;
                call(&self.store).await;
                self.pass(patience).await;
                Err(lost)
            }
        }
    }
}

impl Store for Wire {
    async fn charge(
        &self,
        charges: &[Charge<'_>],
        charging: Charging,
        decisions: &mut Decisions,
    ) -> Result<Receipt, StoreError> {
        self.call(async |store| store.charge(charges, charging, decisions).await)
            .await?
    }

    async fn peek(&self, charge: &Charge<'_>) -> Result<Decision, StoreError> {
        self.call(async |store| store.peek(charge)).await?
    }

    async fn refund(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        cost: u64,
        to: RefundTo,
        _: Consistency,
    ) -> Result<(), StoreError> {
        self.call(async |store| store.refund(key, quota, cost, to).await)
            .await?
    }

    async fn reset(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        _: Consistency,
    ) -> Result<bool, StoreError> {
        self.call(async |store| store.reset(key, quota).await)
            .await?
    }

    async fn now(&self) -> Result<Time, StoreError> {
        Ok(self.clock.now())
    }

    async fn list(&self, _: Cursor, _: usize) -> Result<Page, StoreError> {
        Ok(Page::default())
    }
}

impl Lender for Wire {
    async fn draw(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        draw: Draw,
    ) -> Result<Loan, StoreError> {
        self.with_events(|events| events.draws += 1);
        self.call(async |store| store.draw(key, quota, draw).await)
            .await?
    }

    async fn give_back(
        &self,
        key: CounterKey<'_>,
        quota: &Quota,
        loan: &Loan,
        permits: u64,
    ) -> Result<u64, StoreError> {
        self.call(async |store| store.give_back(key, quota, loan, permits).await)
            .await?
    }
}
