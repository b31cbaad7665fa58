//! The machine's clock, which is also Redis' clock: all times are microseconds since 1970.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Microseconds in a second.
pub const SECOND: u64 = 1_000_000;

/// Microseconds since 1970. Never goes back, also when the machine's clock is set.
pub fn now() -> u64 {
    static START: OnceLock<(Instant, u64)> = OnceLock::new();
    let (instant, micros) = START.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        (Instant::now(), since.unwrap_or_default().as_micros() as u64)
    });
    micros + instant.elapsed().as_micros() as u64
}

/// Sleeps until a time. Returns at once if it is over.
pub fn sleep_until(time: u64) {
    let left = time.saturating_sub(now());
    if left > 0 {
        thread::sleep(Duration::from_micros(left));
    }
}

/// Sleeps for so many seconds.
pub fn sleep(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds.max(0.0)));
}

/// Seconds as microseconds.
pub fn micros(seconds: f64) -> u64 {
    (seconds * SECOND as f64) as u64
}
