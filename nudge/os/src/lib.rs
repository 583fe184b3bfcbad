//! The operating system as Nudge uses it. Each mechanism is here once:
//!
//! | module | what |
//! |---|---|
//! | [`programs`] | finds a program by its name, in no folder that somebody else chose |
//! | [`process`] | starts a program, bounds it in time and output, and ends it with everything it started |
//! | [`dir`] | the files of a directory that is this user's alone |
//! | [`beneath`] | reads and writes below a folder that others may exchange for a link; replaces files in one step |
//! | [`lock`] | locks a file |
//! | [`cpu`] | the processor time of a thread |
//!
//! Processes and programs are the feature `process`, which the library of hints does without.
//!
//! **Architecture invariant:** this crate knows no method, no source and no setting. It uses no other crate of
//! Nudge.

pub mod beneath;
pub mod cpu;
pub mod dir;
pub mod lock;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "process")]
pub mod programs;
