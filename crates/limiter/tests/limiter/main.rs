//! The limiter over real rules and the embedded store, on a clock that moves only when told to.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod allowances;
mod banned;
mod charging;
mod envoy;
mod failing;
mod failure;
mod fixture;
mod keys;
mod looks;
mod modes;
mod overrides;
mod postpaid;
mod receipts;
mod reload;
mod request;
