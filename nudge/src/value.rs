//! The forms of a hint's value, and the words that its meta is made of (semantics section 13).

pub use crate::hint::{CommandShell, CommandValue, HintOrigin, PathValue, Sensitivity, TemplateFormat, TemplateValue};
