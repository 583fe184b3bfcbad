//! The operating system as Nudge uses it. Each mechanism is here once:
//!
//! | module | what |
//! |---|---|
//! | [`programs`] | finds a program by its name, in no folder that somebody else chose |
//! | [`process`] | starts a program, bounds it in time and output, and ends it with everything it started |
//! | [`beneath`] | reads and writes below a folder that others may exchange for a link |
//!
//! **Architecture invariant:** this crate knows no method, no source and no setting. It uses no other crate of
//! Nudge.

pub mod beneath;
pub mod process;
pub mod programs;
