//! The forms of a hint's value, and the words that its meta is made of (semantics section 13).

pub use crate::hint::{Command, Format, PathValue, Sensitivity, Shell, Source, Template};
