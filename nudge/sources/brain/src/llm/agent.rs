//! Asks the user's own agents, or a shell command.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nudge_core::number::elapsed_ms;
use nudge_core::source::StopFlag;
use nudge_os::foreign::{self, LinkPolicy};
use nudge_os::process::ChildProgram;
use nudge_os::programs;
use serde_json::Value;

use super::{LanguageModel, ModelAnswer, ModelCost, ModelRequest, RequestFault, json_in, program};

/// The most US dollars that one call of Claude Code may cost.
const BUDGET_USD: &str = "0.50";
const MAX_OUTPUT: u64 = 4 << 20;

/// Claude Code with the user's account. It runs without tools, servers and hooks, and stores no session.
pub struct ClaudeEngine {
    pub program: PathBuf,
    pub model: Option<String>,
    pub limit: Duration,
    pub folder: PathBuf,
    pub stop: StopFlag,
}

impl LanguageModel for ClaudeEngine {
    fn complete(&self, ask: &ModelRequest) -> Result<ModelAnswer, RequestFault> {
        let since = Instant::now();
        let mut program = ChildProgram::new(&self.program);
        program.current_dir(&self.folder).args(["-p", "--safe-mode", "--no-session-persistence", "--tools", ""]);
        program.args(["--strict-mcp-config", "--output-format", "json", "--max-budget-usd", BUDGET_USD]);
        program.args(["--system-prompt", &ask.system, "--json-schema", &ask.schema.to_string()]);
        if let Some(model) = &self.model {
            program.args(["--model", model]);
        }
        let said = program::run_program(&mut program, "claude", &ask.text, self.limit, &self.stop)?;
        let said: Value =
            serde_json::from_str(said.trim()).map_err(|_| RequestFault::new_passing("claude answered no JSON"))?;
        if said["is_error"] == true {
            return Err(RequestFault::new_passing("claude answered with an error; try `claude -p hello`"));
        }
        let cost = ModelCost {
            engine: "claude".into(),
            ms: elapsed_ms(since),
            input_tokens: said["usage"]["input_tokens"].as_u64(),
            output_tokens: said["usage"]["output_tokens"].as_u64(),
            usd: said["total_cost_usd"].as_f64(),
        };
        let value = match &said["structured_output"] {
            Value::Null => said["result"].as_str().and_then(json_in),
            value => Some(value.clone()),
        };
        let value =
            value.ok_or_else(|| RequestFault::new_passing("claude answered in another form than it was asked for"))?;
        Ok(ModelAnswer { value, cost })
    }
}

/// Codex with the user's account. It keeps its tools, but runs in a sandbox that cannot write.
pub struct CodexEngine {
    pub program: PathBuf,
    pub model: Option<String>,
    pub limit: Duration,
    pub folder: PathBuf,
    pub stop: StopFlag,
}

impl LanguageModel for CodexEngine {
    fn complete(&self, ask: &ModelRequest) -> Result<ModelAnswer, RequestFault> {
        let since = Instant::now();
        let failed =
            |error: std::io::Error| RequestFault::new_passing(format!("codex has no room for its files ({error})"));
        let place = tempfile::tempdir_in(&self.folder).map_err(failed)?;
        let (schema, out) = (place.path().join("schema.json"), place.path().join("answer.json"));
        std::fs::write(&schema, ask.schema.to_string()).map_err(failed)?;
        let mut program = ChildProgram::new(&self.program);
        program.current_dir(place.path()).args(["exec", "--ephemeral", "--disable", "hooks", "--sandbox", "read-only"]);
        program.args(["--ignore-rules", "--skip-git-repo-check", "--output-schema"]).arg(&schema).arg("-o").arg(&out);
        if let Some(model) = &self.model {
            program.args(["--model", model]);
        }
        let text = format!("{}\n\n{}", ask.system, ask.text);
        program::run_program(program.arg("-"), "codex", &text, self.limit, &self.stop)?;
        let said = foreign::read_text(&out, LinkPolicy::Refused, MAX_OUTPUT).ok();
        let value = said.as_deref().and_then(json_in);
        let value =
            value.ok_or_else(|| RequestFault::new_passing("codex answered in another form than it was asked for"))?;
        Ok(ModelAnswer {
            value,
            cost: ModelCost { engine: "codex".into(), ms: elapsed_ms(since), ..ModelCost::default() },
        })
    }
}

/// A command of the user. It gets the request as JSON on stdin, and prints the units as JSON on stdout.
pub struct ShellEngine {
    pub command: String,
    pub limit: Duration,
    pub folder: PathBuf,
    pub stop: StopFlag,
}

impl LanguageModel for ShellEngine {
    fn render_request(&self, ask: &ModelRequest) -> String {
        serde_json::json!({"system": ask.system, "text": ask.text, "schema": ask.schema}).to_string()
    }

    fn complete(&self, ask: &ModelRequest) -> Result<ModelAnswer, RequestFault> {
        let since = Instant::now();
        let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
        let shell = programs::find_program(shell)
            .ok_or_else(|| RequestFault::new_lasting(format!("there is no {shell} in PATH")))?;
        let mut program = ChildProgram::new(&shell);
        program.current_dir(&self.folder).args([flag, &self.command]);
        let said =
            program::run_program(&mut program, "the command", &self.render_request(ask), self.limit, &self.stop)?;
        let value = json_in(&said).ok_or_else(|| RequestFault::new_passing("the command answered no JSON"))?;
        Ok(ModelAnswer {
            value,
            cost: ModelCost { engine: "command".into(), ms: elapsed_ms(since), ..ModelCost::default() },
        })
    }
}
