//! ANSWER programs: the HTTP decision endpoint.
//!
//! `POST /json` takes a `RateLimitRequest` of Envoy's protocol as proto3 JSON and answers with a
//! `RateLimitResponse`: 200 if the request may pass, 429 if not. Wire types stay in `wire`; what a
//! verdict or an error looks like to a client is settled in `answer`, and nowhere else.

mod admin;
mod answer;
mod door;
mod drain;
mod grpc;
mod http;
mod patience;
#[cfg(feature = "test-util")]
pub mod test_util;
mod wire;

pub use admin::{
    Admin, AdminConfig, AdminHooks, AdminReads, AdminToken, ReloadOutcome, ReloadReport,
    ReloadTrigger, Reloading, StoreReport,
};
pub use grpc::GrpcConfig;
pub use http::{AuthorizeConfig, AuthorizeDomain, HttpConfig, RequestHeaders, serve};
pub use tidegate_answer::Answers;
