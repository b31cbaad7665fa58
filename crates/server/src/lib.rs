//! ANSWER programs: a server with its front doors.
//!
//! [`Server`] listens, hands connections to its cores and ends in good order. `http` answers `POST /json`,
//! which takes a `RateLimitRequest` of Envoy's protocol as proto3 JSON, `grpc` the same protocol over
//! gRPC, `admin` what operators ask. Wire types stay in `wire`; what a verdict or an error looks like to
//! a client is settled in `answer`, and nowhere else.

mod activity;
mod address;
mod admin;
mod answer;
mod check;
mod config;
mod connection;
mod core_context;
mod cores;
mod cross_site;
mod drain;
mod front;
mod grpc;
mod http;
mod lingering;
mod listen;
mod peer;
mod server;
#[cfg(feature = "test-util")]
pub mod test_util;
mod tls;
mod wire;
mod within;
mod write_timeout;

pub use address::{Address, NotAnAddress};
pub use admin::{
    Admin, AdminConfig, AdminHooks, AdminReach, AdminReads, AdminToken, ReloadOutcome,
    ReloadReport, ReloadTrigger, Reloading, StateReport, rfc3339,
};
pub use config::{CoreCount, DrainConfig, ListenConfig, ServerConfig, TlsConfig};
pub use front::Front;
pub use grpc::GrpcConfig;
pub use http::{AuthorizeConfig, AuthorizeDomain, HeaderForm, HttpConfig, RequestHeaders};
pub use server::{BindError, BindFault, Bound, Parts, RunError, Server, Stop};
pub use tidegate_answer::Answers;
pub use tls::{Certificates, TlsError};
