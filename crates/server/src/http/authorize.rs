//! `/v1/authorize`: what proxies ask about the requests of their clients.

mod config;

pub use config::{AuthorizeConfig, AuthorizeDomain, RequestHeaders};
