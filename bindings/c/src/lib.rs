//! Gives Nudge to C programs. `include/nudge.h` is made from this crate and documents it; `cbindgen.toml` holds the
//! conventions at the top of that file.
//!
//! Each entry point is a line or two over [`nudge_client::Store`]: it reads the caller's input ([`input`]), makes the
//! call, and writes the result last. All of that runs within [`answer`] or [`quietly`], which stop panics.

// Types have the names of the header.
#![allow(non_camel_case_types)]

mod context;
mod error;
mod found;
mod input;
mod outcome;
mod result;
mod store;
mod verbs;

pub use context::*;
pub use error::*;
pub use found::*;
pub use input::*;
pub use result::*;
pub use store::*;
pub use verbs::*;

pub(crate) use outcome::{answer, quietly, released};

/// The header promises that any number of threads may use a handle at once.
const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<nudge_store>();
    shared_between_threads::<nudge_context>();
    shared_between_threads::<nudge_view>();
    shared_between_threads::<nudge_match>();
    shared_between_threads::<nudge_result>();
    shared_between_threads::<nudge_error>();
};

/// The version of the interface that this header describes; grows when a program has to be built anew.
pub const NUDGE_ABI_VERSION: u32 = 1;

/// Returns the version of the interface of the loaded library: the value of `NUDGE_ABI_VERSION` when it was built.
#[unsafe(no_mangle)]
pub extern "C" fn nudge_abi_version() -> u32 {
    NUDGE_ABI_VERSION
}

/// The version of the library, such as `0.1.0`. Static.
#[unsafe(no_mangle)]
pub extern "C" fn nudge_version() -> nudge_str {
    nudge_str::of(env!("CARGO_PKG_VERSION"))
}

/// Makes every entry point panic from now on (1), or no longer (0).
#[cfg(feature = "test-clock")]
#[unsafe(no_mangle)]
pub extern "C" fn nudge_test_panic(on: u32) {
    outcome::PANIC.store(on != 0, std::sync::atomic::Ordering::SeqCst);
}
