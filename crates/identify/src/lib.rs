//! IDENTIFY: who asks, as far as a request's socket and headers can be trusted to tell.
//!
//! No IO, no HTTP types, no clock.
