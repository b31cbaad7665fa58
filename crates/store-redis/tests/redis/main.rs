//! The store over real servers.

mod conformance;
mod joined;
mod keep;
mod lend;
mod missed;
mod notes;
mod slots;
mod subject;
mod vectors;
