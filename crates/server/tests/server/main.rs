//! The server as a running thing: its listeners, its certificates, its cores and its end.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod connections;
mod drain;
mod harness;
mod pki;
mod tls;
mod tls_files;
mod unix;
