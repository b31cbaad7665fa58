//! DECIDE, purely: `(state, quota, cost, now) -> (decision, new state)`.
//!
//! One file per algorithm. Nothing here reads a clock, does IO, allocates (the caller owns the
//! memory, that of the log included) or panics, whatever the input. Integers decide, never floats.

mod decision;
mod gcra;
mod quota;
mod refund;
mod time;
mod window;

#[cfg(feature = "test-util")]
pub mod counter;
#[cfg(feature = "test-util")]
pub mod oracle;

pub mod fixed_window;
pub mod interval_bucket;
pub mod leaky_bucket;
pub mod sliding_counter;
pub mod sliding_log;
pub mod sub_windows;
pub mod token_bucket;

pub use decision::{Decision, Outcome, Retry, Standing};
pub use gcra::Spans;
pub use quota::{
    Algorithm, Allowance, Headroom, Inquiry, Meter, Percent, Promise, Quota, QuotaError, QuotaSpec,
    Refill, Rounding, SoftPeriod,
};
pub use refund::{ChargeStamp, RefundTo};
pub use time::{Ticks, Time};
