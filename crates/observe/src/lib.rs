//! OBSERVE: what came of it all.
//!
//! Every core has a [`Recorder`] of its own and writes to nobody else's memory; the [`Observatory`] adds
//! them up when somebody asks.

mod observatory;
mod recorder;

pub use observatory::Observatory;
pub use recorder::{Asked, Recorder};
