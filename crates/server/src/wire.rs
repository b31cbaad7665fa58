//! The messages of Envoy's rate limit protocol (`envoy.service.ratelimit.v3`), as proto3 JSON and as
//! protobuf. Both lead to one [`Question`] and come from one verdict.

mod metadata;
mod number;
mod object;
pub(crate) mod protobuf;
mod question;
mod request;
mod response;
mod unit;

pub(crate) use object::Object;
pub(crate) use question::{BadRequest, EscapedTexts, Question};
pub(crate) use request::RateLimitRequest;
pub(crate) use response::RateLimitResponse;
