//! REMEMBER: the [`Store`] contract, and the embedded store that keeps counters in memory.
//!
//! A store owns the time and the state; the arithmetic is `tidegate-algorithms`'. It knows nothing
//! of rules, wires or clients: a counter is named by a [`CounterKey`].

mod clock;
#[cfg(feature = "test-util")]
pub mod conformance;
mod contract;
mod embedded;
mod error;
mod lend;
pub mod members;
pub mod report;
mod totals;

pub use clock::{Clock, ManualClock, Monotonic, SystemClock};
pub use contract::{
    Admission, Charge, Charging, Consistency, Counter, CounterKey, Cursor, DecisionSource,
    Decisions, LimitId, MAX_CHARGES, Mode, OldCounters, OnFull, Page, Receipt, Store,
};
pub use embedded::{
    Digester, EmbeddedStore, LimitReservation, Restored, SnapshotError, StoreConfig, StoreStats,
    Written,
};
pub use error::{ErrorKind, MemoryRefused, StoreError, Unfit};
pub use lend::{Draw, GivenBack, Lender, Loan, lendable};
pub use members::{
    Beat, LEAST_PARTS, MAX_DEMAND, MAX_MEMBERS, MAX_PARTS, MAX_WANTS, Members, NodeId, Plan, Plans,
    Pulse, Want,
};
pub use totals::{
    CounterId, CounterSums, CounterUpdate, EpochInfo, ExchangeReply, SlotTotal, Totals,
    TotalsSender,
};
