//! The reader of git's files against git itself.
//!
//! The reader may say that it is unsure; it may never say anything else than
//! git. Shapes written by hand come first, then mixtures drawn with a fixed
//! seed, then files nobody should have to meet, then the cache.
#![cfg(unix)]
// Short fixtures: building them piece by piece would only hide what they say.
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
