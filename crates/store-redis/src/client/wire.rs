//! What goes over the wire: RESP2, commands out and replies in.
//!
//! Nothing here recurses or trusts a length, so that no server, whatever it says, can do more than have
//! its connection closed.

mod command;
mod element;
mod joint_reply;
mod reply;
mod scanner;

pub use command::Command;
pub(crate) use command::{begin, bulk};
pub(crate) use joint_reply::JointReply;
pub use reply::{Array, Reply, Value};
pub(crate) use scanner::Scanner;

/// The longest reply that is taken, in bytes. The largest we ask for are pages of keys.
pub(crate) const MAX_FRAME: usize = 64 * 1024 * 1024;

/// A server that does not speak RESP2, or says more than is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireFault {
    /// A reply begins with a byte that means nothing.
    #[error("a reply begins with byte {0:#04x}, which RESP2 does not know")]
    UnknownType(u8),
    /// A number is none.
    #[error("a number in a reply is none")]
    BadNumber,
    /// A line or a string does not end as it must.
    #[error("a part of a reply does not end in a new line")]
    BadEnd,
    /// One reply to several calls is not one for each.
    #[error("a reply is not one for each of the calls that it answers")]
    OtherNumber,
    /// A reply is longer than is taken.
    #[error("a reply has more than {MAX_FRAME} bytes")]
    TooLong,
}

#[cfg(test)]
mod tests;
