//! One node and its common store, in memory.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod late_refunds;
mod mixed;
mod no_room;
mod reload;
mod subject;
