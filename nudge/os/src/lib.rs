//! Wraps the operating system for Nudge. Each mechanism exists once, in this crate:
//!
//! | module | content |
//! |---|---|
//! | [`programs`] | finds a program by its name, only in folders that the user chose |
//! | [`process`] | starts a program, limits its time and output, and ends it with all its children |
//! | [`dir`] | the files of a directory of this user alone |
//! | [`beneath`] | reads and writes below a folder in which others may put links; replaces files in one step |
//! | [`foreign`] | reads a file that others may have replaced by a pipe or a device |
//! | [`lock`] | locks a file |
//! | [`cpu`] | the processor time of a thread |
//!
//! The feature `process` contains the modules `process` and `programs`. The library of hints does not use this feature.
//!
//! **Architecture invariant:** this crate has no code about methods, sources or settings. It uses no other crate of
//! Nudge.

pub mod beneath;
pub mod cpu;
pub mod dir;
pub mod foreign;
pub mod lock;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "process")]
pub mod programs;
