//! Compares the reader of git's files with git itself.
//!
//! The reader may say that it is unsure, but it must never give an answer other than git's. The tests use handwritten
//! repositories, random mixtures with a fixed seed, hostile files, and the cache.
#![cfg(unix)]
// The fixtures are short texts. Other ways to build them would be harder to read.
#![allow(clippy::format_push_string, clippy::format_collect)]

#[path = "git_context/branches.rs"]
mod branches;
#[path = "git_context/configs.rs"]
mod configs;
#[path = "git_context/hostile.rs"]
mod hostile;
#[path = "git_context/lab.rs"]
mod lab;
#[path = "git_context/mixtures.rs"]
mod mixtures;
#[path = "git_context/remembered.rs"]
mod remembered;
#[path = "git_context/shapes.rs"]
mod shapes;
