//! ONE REQUEST: match, charge, judge.
//!
//! A [`Limiter`] joins a compiled rule set to a store. It finds the limits that apply to a request's
//! descriptors, charges them in one atomic step, and says in a [`Verdict`] what came of it. The
//! failure policy and the swap of rules live here and nowhere else. It knows no wire and no clock.

mod address;
mod bans;
mod bill;
mod config;
mod error;
mod failure;
mod keys;
mod limiter;
mod look;
mod matched;
mod receipt;
mod reload;
mod request;
mod verdict;

pub use tidegate_algorithms::{
    Algorithm, Allowance, ChargeStamp, Decision, Headroom, Outcome, Quota, QuotaError, RefundTo,
    Retry, Standing, Time,
};
pub use tidegate_rules::{Dialect, Entry, Limit, Rule, RuleSet, UnknownDialect};
pub use tidegate_store::{
    Charging, Consistency, ErrorKind as StoreErrorKind, Mode, Store, StoreError, report,
};

pub use bans::{ActiveBan, Ban, BanTerm, MAX_BAN_BYTES, MAX_BANS, NewBan};
pub use bill::consistency;
pub use config::{GlobalShadow, LimiterConfig, LooksAtLimit, NearRatio};
pub use error::LimiterError;
pub use keys::KeyError;
pub use limiter::{Limiter, MAX_DESCRIPTORS};
pub use receipt::ChargeReceipt;
pub use request::{Descriptor, Hits, LimitOverride};
pub use verdict::{
    Answer, DecisionPath, LimitStatus, LimitStatuses, Origin, Ruling, Status, Statuses, Verdict,
};
