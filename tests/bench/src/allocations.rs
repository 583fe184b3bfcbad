//! Counts the allocations of a call, and the memory that a structure keeps allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// True while allocations are counted. False while times are measured: counting would slow both sides, and one side
/// more than the other.
static ON: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE_BYTES: AtomicI64 = AtomicI64::new(0);

fn note(calls: u64, bytes: usize, sign: i64) {
    if ON.load(Relaxed) {
        CALLS.fetch_add(calls, Relaxed);
        LIVE_BYTES.fetch_add(sign * i64::try_from(bytes).unwrap_or_default(), Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
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

/// The allocations during some work.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// The number of allocations and reallocations.
    pub calls: u64,
    /// The number of allocated bytes that are not freed yet.
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
