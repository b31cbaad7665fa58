//! What a verdict looks like to a client: header dialects, problem+json, Retry-After.
//!
//! No IO, no HTTP types: a header is a name and a value, and the front doors put them on their wires.

mod dialect;
mod header;

pub use dialect::{Dialect, UnknownDialect};
pub use header::headers;
