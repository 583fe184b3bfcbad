//! Returns freed memory to the system. This is a separate crate because it needs `unsafe`, which the other crates
//! forbid. Only glibc keeps much freed memory, so on other systems the functions do nothing.

/// The most free bytes that an arena keeps, and the size from which a block comes directly from the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: std::ffi::c_int = 1 << 20;
/// The most arenas. The default is eight arenas for each processor, and each arena keeps memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: std::ffi::c_int = 4;

/// Limits the memory that glibc keeps. By default, each arena keeps as much as the largest block that was ever freed.
/// The caller must call this before it starts threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn keep_little() {
    const M_TRIM_THRESHOLD: std::ffi::c_int = -1;
    const M_MMAP_THRESHOLD: std::ffi::c_int = -3;
    for (param, value) in [(M_TRIM_THRESHOLD, KEPT_BYTES), (M_MMAP_THRESHOLD, KEPT_BYTES), (M_ARENA_MAX, ARENAS)] {
        set_option(param, value);
    }
}

/// Makes all threads share one arena, for a short process in which one thread allocates. By default, glibc maps another
/// arena for the few bytes that a second thread needs at its start. The caller must call this before it starts threads.
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
    // SAFETY: the declaration has glibc's name and type, and the values are valid. The function takes its own locks.
    unsafe { mallopt(param, value) };
}

/// Returns the unused pages of every arena to the system. Takes milliseconds if there are many pages.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn trim_arenas() {
    unsafe extern "C" {
        fn malloc_trim(pad: usize) -> std::ffi::c_int;
    }
    // SAFETY: the declaration has glibc's name and type. Any thread may call the function at any time.
    unsafe { malloc_trim(0) };
}

/// Does nothing, because only glibc keeps much freed memory.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_little() {}

/// Does nothing, because only glibc has several arenas.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_one_arena() {}

/// Does nothing, because only glibc keeps much freed memory.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn trim_arenas() {}
