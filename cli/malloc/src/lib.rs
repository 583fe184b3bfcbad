//! Memory that was freed goes back to the system. It is a crate of its own because it takes `unsafe`, which the others
//! forbid. glibc alone keeps so much that this is worth it; elsewhere it does nothing.

/// The bytes that an arena keeps for later, and the size from which a block is the system's own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: std::ffi::c_int = 1 << 20;
/// Most arenas; by default there are eight for each processor, and each keeps its own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: std::ffi::c_int = 4;

/// Sets how little is kept. Without it glibc keeps as much as the largest block that was ever freed, in each arena. To
/// be called before there are threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn keep_little() {
    const M_TRIM_THRESHOLD: std::ffi::c_int = -1;
    const M_MMAP_THRESHOLD: std::ffi::c_int = -3;
    for (param, value) in [(M_TRIM_THRESHOLD, KEPT_BYTES), (M_MMAP_THRESHOLD, KEPT_BYTES), (M_ARENA_MAX, ARENAS)] {
        set_option(param, value);
    }
}

/// Has all threads share one arena, for a short process in which one thread allocates. Without it glibc maps another
/// arena for the few bytes with which a second thread begins. To be called before there are threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn share_one_arena() {
    set_option(M_ARENA_MAX, 1);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
const M_ARENA_MAX: std::ffi::c_int = -8;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn set_option(param: std::ffi::c_int, value: std::ffi::c_int) {
    unsafe extern "C" {
        fn mallopt(param: std::ffi::c_int, value: std::ffi::c_int) -> std::ffi::c_int;
    }
    // SAFETY: glibc's function of this name and type, with params and values that it knows; it takes its own locks.
    unsafe { mallopt(param, value) };
}

/// Gives back the pages between blocks that are in use, in every arena. It takes milliseconds where there are many.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn trim_arenas() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: glibc's function of this name and type; it may be called at any time, from any thread.
    unsafe { malloc_trim(0) };
}

/// Does nothing: only glibc keeps much freed memory.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_little() {}

/// Does nothing: only glibc has an arena for each thread.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_one_arena() {}

/// Does nothing: only glibc keeps much freed memory.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn trim_arenas() {}
