//! Replaces the APIs in builds without the feature `llm`.

use std::time::Duration;

use nudge_core::error::{Error, Result};

use super::LanguageModel;

/// Returns an error for every API.
pub fn open_api(name: &str, _: &str, _: Option<String>, _: Duration) -> Result<Box<dyn LanguageModel>> {
    Err(Error::unavailable(format!(
        "This nudge was built without the feature `llm` and cannot ask {name}; set NUDGE_BRAIN_LLM to claude, codex or command."
    )))
}
