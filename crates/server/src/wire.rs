//! The messages of Envoy's rate limit protocol (`envoy.service.ratelimit.v3`) as proto3 JSON.

mod number;
mod object;
mod request;
mod response;
mod unit;

pub(crate) use object::Object;
pub(crate) use request::{BadRequest, Question, RateLimitRequest};
pub(crate) use response::RateLimitResponse;
