//! The store over real servers.

mod conformance;
mod lend;
mod subject;
mod vectors;
