//! The store over real servers.

mod conformance;
mod keep;
mod lend;
mod subject;
mod vectors;
