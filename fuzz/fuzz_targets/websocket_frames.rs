//! Bytes of any kind as the frames of a WebSocket connection: no crash, every step takes bytes, and pieces make no difference.

#![no_main]

use libfuzzer_sys::fuzz_target;
use websocket::frame::{FrameFault, FrameKind, FramePart, FrameScanner, FrameSender};

// The gateway shows nobody where a frame ends, and should not for this: the file itself is taken in.
#[path = "../../crates/gateway/src/websocket"]
mod websocket {
    #[expect(dead_code, reason = "boundaries are only asked for here")]
    pub(crate) mod frame;
}

/// A stream as a scanner sees it.
#[derive(Debug, Default, PartialEq)]
struct Scanned {
    /// The kind of each frame, the bytes of its header, and those of its payload that were there.
    frames: Vec<(FrameKind, usize, usize)>,
    fault: Option<FrameFault>,
}

/// Scans `bytes` as they arrive in reads of `piece` bytes. Bytes that are not passed are given again.
fn scan(sender: FrameSender, bytes: &[u8], piece: usize) -> Scanned {
    let mut scanner = FrameScanner::new(sender);
    let mut scanned = Scanned::default();
    let (mut n_passed, mut n_read) = (0, 0);
    while n_read < bytes.len() {
        n_read = bytes.len().min(n_read + piece);
        loop {
            match scanner.scan(&bytes[n_passed..n_read]) {
                Ok(FramePart::Header { kind, n_bytes }) => {
                    assert!((2..=14).contains(&n_bytes));
                    scanned.frames.push((kind, n_bytes, 0));
                    n_passed += n_bytes;
                }
                Ok(FramePart::Payload { n_bytes }) => {
                    assert!(n_bytes > 0);
                    let (_, _, payload) = scanned.frames.last_mut().expect("it has a header");
                    *payload += n_bytes;
                    n_passed += n_bytes;
                }
                Ok(FramePart::Incomplete) => break,
                Err(fault) => {
                    scanned.fault = Some(fault);
                    return scanned;
                }
            }
        }
        assert!(n_read - n_passed < 14, "no more than a header is held back");
    }
    scanned
}

fuzz_target!(|bytes: &[u8]| {
    let [piece, bytes @ ..] = bytes else { return };
    for sender in [FrameSender::Client, FrameSender::Server] {
        let whole = scan(sender, bytes, bytes.len().max(1));
        let in_pieces = scan(sender, bytes, usize::from(*piece).max(1));
        assert_eq!(whole, in_pieces, "pieces make no difference");
    }
});
