//! Tables and keys beside the request by which callers are told apart.

/// Token keys, API keys and tables of networks; replaced as a whole by a reload.
#[derive(Clone, Debug, Default)]
pub struct Identities {}
