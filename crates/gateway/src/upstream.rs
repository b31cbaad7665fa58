//! Upstreams: the servers behind the gateway, their connections and their health.
//!
//! [`SharedUpstream`] is one upstream as all threads see it: health, addresses, requests in progress, counters. [`UpstreamPool`] holds the
//! connections of one thread, and [`UpstreamPool::exchange`] is the way of one request:
//!
//! ```text
//! choose a target ──► lease a connection ──► send ──► head of the response ──► UpstreamBody
//!    (shared)         (pool, http1, http2)   (exchange)                        (gives the connection back)
//!        ▲                    │                 │              │
//!        └────────────────────┴─── retry ◄──────┴──────────────┘
//! ```
//!
//! Nothing here knows routes, limits or clients; a request arrives with its headers final.

mod addresses;
mod attempt;
mod body;
mod budget;
mod check;
mod connect;
mod counters;
mod error;
mod exchange;
mod fetch;
mod health;
mod http1;
mod http2;
mod lease;
mod line_opening;
mod local;
mod opening;
mod outgoing;
mod pool;
mod scarce;
mod shared;
mod stream;
mod target;
mod timer;
mod tls;
mod wire;

#[cfg(test)]
mod tests;

pub(crate) use body::{UpstreamBody, UpstreamBodyError};
pub(crate) use error::Reached;
pub(crate) use error::{ForwardError, UpstreamError};
pub use fetch::{FetchError, fetch};
pub(crate) use pool::UpstreamPool;
pub(crate) use shared::SharedUpstream;
