//! What an observatory says of requests that were judged by real limiters.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod collector;
mod decisions;
mod fixture;
mod late;
mod page;
mod reference;
mod refusals;
mod rules;
mod top;
mod trace;
