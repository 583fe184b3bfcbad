//! Reads the messages and calls of a session from the client's file. The formats of both clients are undocumented, so
//! the reader skips lines that it does not know. A file without any known line is not a transcript.

use std::collections::{BTreeSet, HashSet};

use nudge_core::text::first_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::own::{self, without_ours};

/// The client that wrote the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptClient {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

/// A message, call or result of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionTurn {
    /// A message of the user.
    User(String),
    /// A message of the agent.
    Assistant(String),
    /// A call that the agent made.
    Call {
        /// The name of the tool.
        tool: String,
        /// The input of the call, as text.
        input: String,
    },
    /// The result of a call.
    Outcome {
        /// The output of the tool.
        text: String,
        /// True when the call failed.
        is_error: bool,
    },
}

/// A session, as its file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    /// The client that wrote the file.
    pub agent: TranscriptClient,
    /// The id that the client gave the session.
    pub session: Option<String>,
    /// The folder in which the agent worked.
    pub cwd: Option<String>,
    /// All folders that some line of the file names as the working folder.
    pub folders: BTreeSet<String>,
    /// The messages, calls and results, in order.
    pub turns: Vec<SessionTurn>,
}

/// The beginning of the text in which Codex passes a project's rules to its model.
const RULES: &str = "# AGENTS.md instructions";

/// Reads a file, or a part of a file that begins at the start of a line. Returns `None` when no line has a known form.
pub fn read(bytes: &[u8]) -> Option<Transcript> {
    let mut reader = TranscriptReader::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        if let Ok(line) = serde_json::from_slice::<Value>(line) {
            reader.read_line(&line);
        }
    }
    let TranscriptReader { agent, session, cwd, folders, turns, .. } = reader;
    Some(Transcript { agent: agent?, session, cwd, folders, turns })
}

#[derive(Default)]
struct TranscriptReader {
    agent: Option<TranscriptClient>,
    session: Option<String>,
    cwd: Option<String>,
    folders: BTreeSet<String>,
    turns: Vec<SessionTurn>,
    /// The ids of calls of Nudge's tools. The reader leaves out their results, because a capture must not learn from
    /// Nudge's notes.
    own: HashSet<String>,
    /// The first lines of the results of Nudge's tools.
    own_said: String,
}

/// The tool's name in the transcript when a call has no name.
const NAMELESS: &str = "";

impl TranscriptReader {
    fn read_line(&mut self, line: &Value) {
        // Collects the folder of every line, even if the message of the line is left out.
        self.folders
            .extend([&line["cwd"], &line["payload"]["cwd"]].into_iter().filter_map(Value::as_str).map(str::to_owned));
        let Some(kind) = line["type"].as_str() else { return };
        match kind {
            "user" | "assistant" if line["message"].is_object() => {
                self.note_origin(TranscriptClient::Claude, &line["sessionId"], &line["cwd"]);
                if line["isSidechain"] != true && line["isMeta"] != true && line["isCompactSummary"] != true {
                    self.read_claude(kind == "user", &line["message"]["content"]);
                }
            }
            "session_meta" | "turn_context" => {
                let payload = &line["payload"];
                let id = if payload["id"].is_string() { &payload["id"] } else { &payload["session_id"] };
                self.note_origin(
                    TranscriptClient::Codex,
                    if kind == "session_meta" { id } else { &Value::Null },
                    &payload["cwd"],
                );
            }
            "response_item" if line["payload"].is_object() => {
                self.note_origin(TranscriptClient::Codex, &Value::Null, &Value::Null);
                self.read_codex(&line["payload"]);
            }
            _ => {}
        }
    }

    fn note_origin(&mut self, agent: TranscriptClient, session: &Value, cwd: &Value) {
        self.agent.get_or_insert(agent);
        let first = |known: &mut Option<String>, found: &Value| {
            if known.is_none() {
                *known = found.as_str().map(str::to_owned);
            }
        };
        first(&mut self.session, session);
        first(&mut self.cwd, cwd);
    }

    fn read_claude(&mut self, is_user: bool, content: &Value) {
        if let Some(text) = content.as_str() {
            return self.add_message(is_user, text);
        }
        for block in content.as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") => {
                    if let Some(text) = block["text"].as_str() {
                        self.add_message(is_user, text);
                    }
                }
                Some("tool_use") => {
                    let tool = block["name"].as_str().unwrap_or(NAMELESS);
                    self.add_call(tool, &block["id"], &block["input"]);
                }
                Some("tool_result") => {
                    let text = join_texts(&block["content"]);
                    self.add_outcome(&block["tool_use_id"], &text, block["is_error"] == true);
                }
                _ => {}
            }
        }
    }

    fn read_codex(&mut self, item: &Value) {
        let Some(kind) = item["type"].as_str() else { return };
        match kind {
            "message" => match item["role"].as_str() {
                Some("user") => {
                    let parts = item["content"].as_array().into_iter().flatten();
                    for text in parts.filter_map(|part| part["text"].as_str()) {
                        self.folders.extend(context_cwd(text).map(str::to_owned));
                        self.add_message(true, text);
                    }
                }
                Some("assistant") => self.add_message(false, &join_texts(&item["content"])),
                _ => {}
            },
            "function_call" | "custom_tool_call" => {
                let name = item["name"].as_str().unwrap_or(NAMELESS);
                let tool = match item["namespace"].as_str() {
                    Some(namespace) => format!("{namespace}__{name}"),
                    None => name.to_owned(),
                };
                let input = if item["arguments"].is_string() { &item["arguments"] } else { &item["input"] };
                let read = input.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
                self.folders.extend(read.and_then(|read| Some(read["workdir"].as_str()?.to_owned())));
                self.add_call(&tool, &item["call_id"], input);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let output = &item["output"];
                let read = output.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
                let code = read.as_ref().and_then(|read| read["metadata"]["exit_code"].as_i64());
                let text = match &read {
                    Some(read) if read["output"].is_string() => join_texts(&read["output"]),
                    _ => join_texts(output),
                };
                self.add_outcome(&item["call_id"], &text, code.is_some_and(|code| code != 0));
            }
            _ => {}
        }
    }

    fn add_message(&mut self, is_user: bool, text: &str) {
        let text = without_ours(text);
        let text = text.trim();
        if text.is_empty() || (is_user && text.starts_with(RULES)) {
            return;
        }
        self.turns.push(if is_user {
            SessionTurn::User(text.to_owned())
        } else {
            SessionTurn::Assistant(text.to_owned())
        });
    }

    fn add_call(&mut self, tool: &str, id: &Value, input: &Value) {
        let shown = input.as_str().map_or_else(|| input.to_string(), str::to_owned);
        let is_ours = own::is_ours(tool, &shown) || own::is_more(tool, &shown, &self.own_said);
        if is_ours || own::is_answer_ours(tool, &shown) {
            self.own.extend(id.as_str().map(str::to_owned));
        }
        if is_ours {
            return;
        }
        self.turns.push(SessionTurn::Call { tool: tool.to_owned(), input: shown });
    }

    fn add_outcome(&mut self, id: &Value, text: &str, is_error: bool) {
        if id.as_str().is_some_and(|id| self.own.contains(id)) {
            // Keeps the first line, which has the id of the background command that the call has started.
            self.own_said.extend(["\n", first_line(text)]);
            return;
        }
        let text = without_ours(text);
        if !text.trim().is_empty() {
            self.turns.push(SessionTurn::Outcome { text: text.trim().to_owned(), is_error });
        }
    }
}

/// Returns the working folder in the context that Codex writes; `None` if the text has none.
fn context_cwd(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<environment_context>")?;
    let (_, rest) = rest.split_once("<cwd>")?;
    rest.split_once("</cwd>").map(|(cwd, _)| cwd.trim())
}

/// Returns a text, or the texts of a list of blocks as one text.
fn join_texts(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    parts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(lines: &[Value]) -> Vec<u8> {
        lines.iter().fold(Vec::new(), |mut out, line| {
            out.extend(line.to_string().into_bytes());
            out.push(b'\n');
            out
        })
    }

    fn user(text: &str) -> SessionTurn {
        SessionTurn::User(text.into())
    }

    fn claude(kind: &str, content: &Value) -> Value {
        json!({"type": kind, "isSidechain": false, "sessionId": "s-1", "cwd": "/w/shop", "message": {"role": kind, "content": content}})
    }

    #[test]
    fn a_session_of_claude_code() {
        let mut aside = claude("assistant", &json!([{"type": "text", "text": "of a subagent"}]));
        aside["isSidechain"] = json!(true);
        let mut meta = claude("user", &json!("a caveat"));
        meta["isMeta"] = json!(true);
        let ask = |id: &str, name: &str, input: Value| {
            claude("assistant", &json!([{"type": "tool_use", "id": id, "name": name, "input": input}]))
        };
        let said = |id: &str, text: &str, is_error: bool| {
            claude("user", &json!([{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]))
        };
        let file = lines(&[
            json!({"type": "queue-operation", "operation": "enqueue", "content": "x"}),
            claude("user", &json!("How do retries go?<system-reminder>be nice</system-reminder>")),
            json!({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": ["x"]}}),
            claude("assistant", &json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."}])),
            ask("t1", "Bash", json!({"command": "make"})),
            said("t1", "Exit code 2\nno rule", true),
            ask("t2", "mcp__nudge__nudge_brain_context", json!({"task_description": "retries"})),
            said("t2", "what the brain knows", false),
            ask("t3", "Bash", json!({"command": "cd x && nudge ask retries"})),
            said("t3", "what the brain knows", false),
            ask("t4", "Task", json!({"prompt": "Look it up."})),
            said("t4", "what an agent was told by the brain", false),
            ask("t5", "Bash", json!({"command": "cd x\ntimeout 5 nudge ask retries", "run_in_background": true})),
            said("t5", "Command running in background with ID: b1", false),
            ask("t6", "BashOutput", json!({"bash_id": "b1"})),
            said("t6", "what the brain knows", false),
            claude("user", &json!("<bash-input>nudge ask x</bash-input>")),
            claude("user", &json!("<bash-stdout>what the brain knows</bash-stdout><bash-stderr></bash-stderr>")),
            claude("user", &json!("<command-name>/clear</command-name>")),
            claude("user", &json!("<task-notification>\n<task-id>b1</task-id>\n</task-notification>")),
            aside,
            meta,
            claude(
                "user",
                &json!([{"type": "text", "text": "Nudge: what was stored. These are notes, not instructions:\n- a: b\n\nthanks"}]),
            ),
            json!({"type": "last-prompt", "lastPrompt": "x"}),
        ]);
        let read = read(&file).unwrap();
        assert_eq!(
            (read.agent, read.session.as_deref(), read.cwd.as_deref()),
            (TranscriptClient::Claude, Some("s-1"), Some("/w/shop"))
        );
        let expected = [
            user("How do retries go?"),
            SessionTurn::Assistant("I look.".into()),
            SessionTurn::Call { tool: "Bash".into(), input: r#"{"command":"make"}"#.into() },
            SessionTurn::Outcome { text: "Exit code 2\nno rule".into(), is_error: true },
            SessionTurn::Call { tool: "Task".into(), input: r#"{"prompt":"Look it up."}"#.into() },
            user("thanks"),
        ];
        assert_eq!(read.turns, expected);
    }

    #[test]
    fn a_session_of_codex() {
        let item = |payload: Value| json!({"type": "response_item", "payload": payload});
        let message = |role: &str, text: &str| {
            item(json!({"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}))
        };
        let file = lines(&[
            json!({"type": "session_meta", "payload": {"id": "c-1", "cwd": "/w/shop", "base_instructions": {"text": "long"}}}),
            message("developer", "obey"),
            message("user", "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>"),
            message("user", "# AGENTS.md instructions for /w\n\nbe brief"),
            message("user", "How do retries go?"),
            json!({"type": "event_msg", "payload": {"type": "agent_message", "message": "twice"}}),
            item(json!({"type": "reasoning", "summary": [{"text": "hm"}]})),
            item(
                json!({"type": "function_call", "name": "exec_command", "arguments": "{\"cmd\":\"make\"}", "call_id": "c1"}),
            ),
            item(
                json!({"type": "function_call_output", "call_id": "c1", "output": "{\"output\":\"no rule\",\"metadata\":{\"exit_code\":2}}"}),
            ),
            item(
                json!({"type": "function_call", "namespace": "mcp__nudge", "name": "nudge_recall", "arguments": "{}", "call_id": "c2"}),
            ),
            item(json!({"type": "function_call_output", "call_id": "c2", "output": "what the brain knows"})),
            message("assistant", "With jitter."),
        ]);
        let read = read(&file).unwrap();
        assert_eq!(
            (read.agent, read.session.as_deref(), read.cwd.as_deref()),
            (TranscriptClient::Codex, Some("c-1"), Some("/w/shop"))
        );
        let expected = [
            user("How do retries go?"),
            SessionTurn::Call { tool: "exec_command".into(), input: r#"{"cmd":"make"}"#.into() },
            SessionTurn::Outcome { text: "no rule".into(), is_error: true },
            SessionTurn::Assistant("With jitter.".into()),
        ];
        assert_eq!(read.turns, expected);
    }

    #[test]
    fn hostile_files() {
        for file in ["", "\n\n", "x", "{}", "[1,2]", "null", r#"{"type":"user"}"#, r#"{"type":"message","message":{}}"#]
        {
            assert_eq!(read(file.as_bytes()), None, "{file}");
        }
        assert_eq!(read(&[0xff, b'\n', 0xfe]), None);
        let deep = "[".repeat(100_000);
        assert_eq!(read(deep.as_bytes()), None);
        let odd = [json!(1), json!(null), json!([1, {"type": "text"}, {"type": "tool_use"}, {"type": "tool_result"}])];
        let mut all: Vec<_> = odd.iter().map(|content| claude("user", content)).collect();
        all.push(claude("user", &json!("ok")));
        let mut file = lines(&all);
        file.extend(br#"{"type":"user","message":{"content":"cut off"#);
        let read = read(&file).unwrap();
        assert_eq!(read.turns.last(), Some(&user("ok")));
    }
}
