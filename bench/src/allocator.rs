//! Counts what the program asks the allocator for, in the processes that measure memory.
//!
//! Resident memory depends on the allocator and on what the kernel did with it; this figure does
//! not. It is off while time is measured: then it costs one load of a constant a call.

#![expect(unsafe_code, reason = "a global allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static ENABLED: AtomicBool = AtomicBool::new(false);
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Begins to count. What was allocated before and is freed after would count below zero, so this
/// comes first in a process.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

/// Bytes asked for since [`enable`] and not given back.
pub fn live_bytes() -> usize {
    LIVE_BYTES.load(Ordering::Relaxed)
}

// === impl Counting ===

impl Counting {
    fn add(bytes: usize) {
        if ENABLED.load(Ordering::Relaxed) {
            LIVE_BYTES.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn subtract(bytes: usize) {
        if ENABLED.load(Ordering::Relaxed) {
            LIVE_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        Self::add(new_size);
        Self::subtract(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::subtract(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
