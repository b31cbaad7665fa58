//! Ports that nobody listens on.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below where the system takes the ports of outgoing connections from, so that none of those takes
/// the port of a server that is down for a moment.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// A port that was free just now. Two processes may still be given the same one: whoever fails to
/// listen asks for another.
pub(crate) fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Processes that run at the same time begin at different places.
    let start = process::id().wrapping_mul(7919) % u32::from(COUNT);
    for _ in 0..COUNT {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let offset = u16::try_from((start + step) % u32::from(COUNT)).unwrap_or_default();
        let port = FIRST + offset;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port is free");
}
