//! Asks a server one thing, without a runtime.

use std::fmt::Write as _;
use std::io::{Read, Write};

use crate::client::Reply;

/// A connection of any kind.
pub(super) trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

/// Sends a command and waits for its reply, which may be an error.
pub(super) fn ask(connection: &mut dyn Connection, words: &[&str]) -> Reply {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        let _ = write!(bytes, "${}\r\n{word}\r\n", word.len());
    }
    let sent = connection.write_all(bytes.as_bytes());
    sent.expect("the server takes commands");
    let mut read = Vec::new();
    loop {
        let mut part = [0; 4096];
        let length = connection.read(&mut part).expect("the server answers");
        assert!(length > 0, "the server closed the connection");
        read.extend_from_slice(&part[..length]);
        if let Some(reply) = Reply::parse(&read) {
            return reply;
        }
    }
}
