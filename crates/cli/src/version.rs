//! Versions of rules, as they are pushed to Redis: what is in one, and what is said about it.

mod about;
mod bundle;
mod changes;

pub(crate) use about::About;
pub(crate) use bundle::{Bundle, NotABundle};
pub(crate) use changes::changes;
