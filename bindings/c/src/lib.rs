//! Offers Nudge to C programs. `include/nudge.h` is made from this crate and documents it. `cbindgen.toml` has the
//! conventions at the top of that header.
//!
//! Each entry point adds only a few lines to [`nudge_client::Store`]: it reads the caller's input ([`input`]), makes
//! the call, and writes the result last. All of this runs inside [`answer`] or [`quietly`], which catch panics.

// The types have the names that C programs see.
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

/// The header promises that several threads may use a handle at the same time.
const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<nudge_store>();
    shared_between_threads::<nudge_context>();
    shared_between_threads::<nudge_view>();
    shared_between_threads::<nudge_match>();
    shared_between_threads::<nudge_result>();
    shared_between_threads::<nudge_error>();
};

/// The version of the interface in this header. It grows when programs must be built again.
pub const NUDGE_ABI_VERSION: u32 = 1;

/// Returns the version of the interface of the loaded library: the `NUDGE_ABI_VERSION` with which it was built.
#[unsafe(no_mangle)]
pub extern "C" fn nudge_abi_version() -> u32 {
    NUDGE_ABI_VERSION
}

/// Returns the version of the library, such as `0.1.0`. The text is static.
#[unsafe(no_mangle)]
pub extern "C" fn nudge_version() -> nudge_str {
    nudge_str::of(env!("CARGO_PKG_VERSION"))
}

/// Makes every entry point panic from now on (1), or stops this (0).
#[cfg(feature = "test-clock")]
#[unsafe(no_mangle)]
pub extern "C" fn nudge_test_panic(on: u32) {
    outcome::PANIC.store(on != 0, std::sync::atomic::Ordering::SeqCst);
}
