//! Counts allocations: those of a call, and the memory that a structure keeps alive.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Off while times are measured: counting would slow both sides, but not by the same factor.
static ON: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

fn note(calls: u64, bytes: usize, sign: i64) {
    if ON.load(Relaxed) {
        CALLS.fetch_add(calls, Relaxed);
        LIVE_BYTES.fetch_add(sign * i64::try_from(bytes).unwrap_or_default(), Relaxed);
    }
}

// SAFETY: every call is passed to the system's allocator unchanged.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size(), 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size(), 1);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(1, size, 1);
        note(0, layout.size(), -1);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        note(0, layout.size(), -1);
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The allocations of a piece of work.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// Allocations and reallocations.
    pub calls: u64,
    /// Allocated bytes that are not freed yet.
    pub live_bytes: i64,
}

/// Runs `work` and counts its allocations; no other thread may allocate meanwhile.
pub fn count<T>(work: impl FnOnce() -> T) -> (T, Count) {
    let before = (CALLS.load(Relaxed), LIVE_BYTES.load(Relaxed));
    ON.store(true, Relaxed);
    let out = work();
    ON.store(false, Relaxed);
    let count = Count { calls: CALLS.load(Relaxed) - before.0, live_bytes: LIVE_BYTES.load(Relaxed) - before.1 };
    (out, count)
}
