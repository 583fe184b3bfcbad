//! Asks language models, each over its own protocol: the user's own agent, an API, or a command.

mod agent;
#[cfg(feature = "llm")]
mod api;
#[cfg(not(feature = "llm"))]
#[path = "llm/no_api.rs"]
mod api;
pub mod program;
#[cfg(feature = "llm")]
pub mod web;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use nudge_capture::prompt::ModelRequest;
use nudge_core::error::{Error, Result};
use nudge_core::settings::SettingValues;
use nudge_core::source::StopFlag;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The values of the setting `brain.llm`.
pub const ENGINES: &[&str] = &["auto", "claude", "codex", "anthropic", "openai", "command"];

/// The cost of one call to a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelCost {
    pub engine: String,
    pub ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

/// A model's answer and the cost of the call.
#[derive(Debug, Default)]
pub struct ModelAnswer {
    pub value: Value,
    pub cost: ModelCost,
}

/// The reason why a model gave no answer. The reason contains no text of the question or of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFault {
    pub text: String,
    /// Is true when another try may succeed.
    pub may_pass: bool,
}

impl RequestFault {
    pub fn new_passing(text: impl Into<String>) -> Self {
        Self { text: text.into(), may_pass: true }
    }

    pub fn new_lasting(text: impl Into<String>) -> Self {
        Self { text: text.into(), may_pass: false }
    }
}

/// A language model.
pub trait LanguageModel {
    /// Returns the request in the form in which the model gets it. Two cases differ. The user's own agents get each
    /// text separately and add texts of their own. A server that refuses the demanded form of the answer gets a second
    /// request, which describes the form in words.
    fn render_request(&self, ask: &ModelRequest) -> String {
        ask.to_sent_text()
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The reason why there is no answer in the demanded form.
    fn complete(&self, ask: &ModelRequest) -> Result<ModelAnswer, RequestFault>;
}

/// The resources that a model's engine uses.
pub struct EngineResources<'a> {
    pub settings: &'a SettingValues,
    /// Finds a program by its name.
    pub program: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// The folder for temporary files.
    pub folder: &'a Path,
    /// Is set when this process must end.
    pub stop: &'a StopFlag,
    /// The longest time for an answer, even if the settings allow more.
    pub most: Duration,
}

/// Makes the engine that the settings name. The default is the user's own Claude Code.
///
/// # Errors
/// `E_UNAVAILABLE` or `E_INVALID`, with the remedy, when the engine cannot be used.
pub fn choose_engine(lent: &EngineResources<'_>) -> Result<Box<dyn LanguageModel>> {
    let text = |name: &str| lent.settings.get_text(name).to_owned();
    let limit = Duration::from_secs(lent.settings.get_count("brain.llm_seconds").clamp(1, 3_600) as u64).min(lent.most);
    let model = Some(text("brain.llm_model")).filter(|model| !model.is_empty());
    let (folder, stop) = (lent.folder.to_owned(), lent.stop.clone());
    let program = |name: &str| {
        let none = || {
            Error::unavailable(format!(
                "There is no {name} in PATH to ask; install it, or set NUDGE_BRAIN_LLM to another."
            ))
        };
        (lent.program)(name).ok_or_else(none)
    };
    match lent.settings.get_text("brain.llm") {
        "codex" => Ok(Box::new(agent::CodexEngine { program: program("codex")?, model, limit, folder, stop })),
        "command" => {
            let command = text("brain.llm_command");
            if command.is_empty() {
                return Err(Error::invalid("Set NUDGE_BRAIN_LLM_COMMAND to the command that is to be asked."));
            }
            Ok(Box::new(agent::ShellEngine { command, limit, folder, stop }))
        }
        name @ ("anthropic" | "openai") => api::open_api(name, lent.settings.get_text("brain.llm_url"), model, limit),
        _ => Ok(Box::new(agent::ClaudeEngine { program: program("claude")?, model, limit, folder, stop })),
    }
}

/// Finds the JSON in an answer: the whole text, or the part between two fences.
fn json_in(text: &str) -> Option<Value> {
    let whole = |text: &str| serde_json::from_str::<Value>(text.trim()).ok();
    whole(text).or_else(|| {
        let (_, rest) = text.split_once("```")?;
        let (_, rest) = rest.split_once('\n')?;
        whole(rest.split("```").next()?)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_is_found_in_fences() {
        for text in
            ["{\"units\":[]}", " {\"units\":[]}\n", "Here:\n```json\n{\"units\":[]}\n```\nDone.", "```\n{\"units\":[]}"]
        {
            assert_eq!(json_in(text), Some(json!({"units": []})), "{text}");
        }
        for text in ["", "no", "```", "```json", "``` {}"] {
            assert_eq!(json_in(text), None, "{text}");
        }
    }
}
