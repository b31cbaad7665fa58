//! Protobuf on the wire: fields in, fields out. Strings are borrowed from the message, nothing is kept.

mod question;
mod read;
mod response;
mod write;

pub(crate) use question::BadMessage;
pub(crate) use read::{Malformed, Reader, Value};
pub(crate) use response::{write_denial, write_response};
pub(crate) use write::Writer;
