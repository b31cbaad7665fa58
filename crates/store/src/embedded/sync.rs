//! The atomics of the table: the standard library's, or loom's when a model is being checked.

#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(super) use std::sync::{Mutex, MutexGuard};

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::{Mutex, MutexGuard};

/// How often a waiter looks before it gives the processor away. A holder keeps a set for well under
/// a microsecond unless the scheduler took its processor, and then spinning longer does not help.
#[cfg(not(loom))]
const SPINS: u32 = 64;

/// `n` words of zero, in memory that costs nothing until it is touched; `None` if the system does
/// not give out so much.
#[cfg(not(loom))]
pub(super) fn zeroed_words(n: usize) -> Option<Box<[AtomicU64]>> {
    bytemuck::try_zeroed_slice_box(n).ok()
}

#[cfg(loom)]
pub(super) fn zeroed_words(n: usize) -> Option<Box<[AtomicU64]>> {
    Some((0..n).map(|_| AtomicU64::new(0)).collect())
}

/// Waits a little for another thread, for the `turn`th time in a row.
#[cfg(not(loom))]
pub(super) fn wait(turn: &mut u32) {
    *turn += 1;
    if *turn < SPINS {
        std::hint::spin_loop();
    } else {
        *turn = 0;
        std::thread::yield_now();
    }
}

#[cfg(loom)]
pub(super) fn wait(_turn: &mut u32) {
    loom::thread::yield_now();
}
