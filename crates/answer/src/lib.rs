//! What a verdict looks like to a client: header dialects, problem+json, Retry-After.
//!
//! No IO, no HTTP types: a header is a name and a value, a body is bytes, and the front doors put them
//! on their wires. Whatever is told of a limit is the operator's word or a number; no string of a client
//! comes back in an answer.

mod answers;
mod header;
mod policy;
mod problem;
mod seconds;

pub use tidegate_limiter::{Dialect, UnknownDialect};

pub use answers::{Answers, BadHeaderName, DenialBody, HeaderNames, Headers};
pub use header::{DefaultNumbers, headers};
pub use policy::{Naming, Policies, Policy};
pub use problem::{PROBLEM_JSON, problem, refusal};
pub use seconds::retry_after;
