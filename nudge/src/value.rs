//! The types of a hint's value and of the words in its meta (semantics section 13).

pub use crate::hint::{CommandShell, CommandValue, HintOrigin, PathValue, Sensitivity, TemplateFormat, TemplateValue};
