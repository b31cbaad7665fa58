//! Bytes of any kind as what a Redis server sends: no crash, every reply is found whole however it is cut
//! into pieces, can be read to its end, and is one for each of several calls or refused as such.

#![no_main]

use bytes::Bytes;
use client::wire::{JointReply, Reply, Scanner, Value};
use libfuzzer_sys::fuzz_target;

// The client shows nobody where a reply ends, and should not for this: the file itself is taken in.
#[path = "../../crates/store-redis/src/client"]
mod client {
    #[allow(dead_code, unused_imports, reason = "commands are not asked for here")]
    pub(crate) mod wire;
}

/// Reads a value and what is in it, down to a depth that no reply of ours has.
fn read(value: Value<'_>, depth: usize) {
    if let Value::Array(values) = value
        && depth > 0
    {
        values.for_each(|value| read(value, depth - 1));
    }
}

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, bytes) = input;
    let whole = Scanner::default().scan(bytes);
    let mut scanner = Scanner::default();
    let mut in_pieces = Ok(None);
    let mut seen = 0;
    while seen < bytes.len() && in_pieces == Ok(None) {
        seen = bytes.len().min(seen + usize::from(piece) + 1);
        in_pieces = scanner.scan(&bytes[..seen]);
    }
    if let Ok(Some(length)) = whole {
        assert_eq!(in_pieces, whole, "pieces make no difference");
        let reply = Reply::parse(&bytes[..length]).expect("it was found");
        read(reply.value(), 8);
        let calls = usize::from(piece);
        let frame = Bytes::copy_from_slice(&bytes[..length]);
        if let Ok(replies) = JointReply::new(frame, calls) {
            assert_eq!(replies.count(), calls, "one for each call");
        }
    }
});
