//! The store over real servers.

mod conformance;
mod keep;
mod lend;
mod missed;
mod notes;
mod slots;
mod subject;
mod vectors;
