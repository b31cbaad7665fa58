//! The API below `/api/v1`. It knows JSON and the limiter; how anything is decided it does not.

mod callers;
mod decisions;
mod explain;
mod program;
mod rules;
mod store;
mod top;

pub(super) use callers::{ban, bans, grant, lookup, reset, unban};
pub(super) use decisions::{decision, decisions};
pub(super) use explain::explain;
pub(super) use program::{config, last_reload, log_level, reload, set_log_level};
pub(super) use rules::rules;
pub(super) use store::store;
pub(super) use top::top;

use super::reply::{self, Reply};
use hyper::StatusCode;

/// The description of the API.
pub(super) const OPENAPI: &str = include_str!("openapi.json");

/// The description of the API.
pub(super) fn openapi() -> Reply {
    reply::with(StatusCode::OK, reply::JSON, OPENAPI)
}
