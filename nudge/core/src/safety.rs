//! Keeps secrets out of stored texts, and paths inside their folders (semantics section 7).

pub mod paths;
pub mod refusal;
