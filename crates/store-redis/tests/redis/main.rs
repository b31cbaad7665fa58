//! The store over real servers.

mod conformance;
mod subject;
mod vectors;
