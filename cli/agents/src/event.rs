//! Parses the events that clients write to the stdin of a hook. The formats of Claude Code and Codex come from
//! observation. The formats of Gemini CLI and Cursor come from their documentation, and from Gemini CLI's source.

mod gemini;

use std::path::{Path, PathBuf};

use nudge_core::suggest::SuggestEvent;
use nudge_server::session::event::EventParams;
use serde_json::{Map, Value};

/// The most bytes of an error or a prompt; a longer text is cut. The end stays, because it says most in an error, and
/// has the question in a long prompt.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// The most bytes of an idempotency key that the server accepts.
const MAX_KEY_BYTES: usize = 255;

/// An event of a client.
#[derive(Debug)]
pub struct HookEvent {
    /// The format of the hook's output.
    pub answer: ReplyForm,
    /// The part of the event to which the hook reacts.
    pub moment: HookMoment,
    /// True for the first start of a session, false for a continued session.
    pub begins: bool,
    /// The client's id of its session. A subagent has its own context, so it counts as its own session.
    pub session: Option<String>,
    /// The agent's folder.
    pub cwd: Option<PathBuf>,
    /// The idempotency key, made from the tool call. Every hook that reports the same call makes the same key.
    pub key: Option<String>,
}

/// The part of an event to which a hook reacts.
#[derive(Debug)]
pub enum HookMoment {
    /// The hook asks the server for lines to tell.
    Ask(Box<EventParams>),
    /// The session has ended; this file has its transcript.
    End(PathBuf),
}

/// The format of a hook's output.
#[derive(Debug, PartialEq)]
pub enum ReplyForm {
    /// `hookSpecificOutput` with the name of the event, for Claude Code, Codex and Gemini CLI.
    Specific(String),
    /// `additional_context`, for Cursor.
    Plain,
}

impl ReplyForm {
    /// Builds the output that shows `text` to the model.
    pub fn build_output(&self, text: &str) -> Value {
        match self {
            Self::Specific(event) => {
                serde_json::json!({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})
            }
            Self::Plain => serde_json::json!({"additional_context": text}),
        }
    }

    /// Finds the text for the model in a hook's output, as the client would.
    pub fn find_text<'a>(&self, said: &'a Value) -> Option<&'a str> {
        match self {
            Self::Specific(event) => {
                let specific = said.get("hookSpecificOutput")?;
                specific.get("additionalContext").filter(|_| specific["hookEventName"] == **event)?
            }
            Self::Plain => said.get("additional_context")?,
        }
        .as_str()
    }
}

/// Builds the start event of a session, in the format of the clients that call this event `name`.
pub fn make_start_event(name: &str, session: &str, cwd: &Path) -> Value {
    if camel_case(name) {
        return serde_json::json!({"hook_event_name": name, "conversation_id": session, "workspace_roots": [cwd]});
    }
    serde_json::json!({"hook_event_name": name, "session_id": session, "cwd": cwd, "source": "startup"})
}

/// Returns the output format of the clients that have an event `name`.
pub fn find_reply_form(name: &str) -> ReplyForm {
    if camel_case(name) { ReplyForm::Plain } else { ReplyForm::Specific(name.to_owned()) }
}

/// Returns true for an event of Cursor, the only client with names in camel case.
fn camel_case(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Parses an event. Returns `None` for an event that Nudge ignores.
pub fn read(given: &str) -> Option<HookEvent> {
    let given: Map<String, Value> = serde_json::from_str(given).ok()?;
    let text = |name: &str| given.get(name).and_then(Value::as_str).map(str::to_owned);
    let name = text("hook_event_name")?;
    let asked = match name.as_str() {
        "SessionStart" | "SubagentStart" | "sessionStart" => {
            let fresh = text("source").as_deref() == Some("compact");
            Some(EventParams { fresh, ..EventParams::at_event(SuggestEvent::Start) })
        }
        "SessionEnd" => None,
        "UserPromptSubmit" | "BeforeAgent" => {
            let prompt = Some(cut_text(&text("prompt")?));
            Some(EventParams { prompt, ..EventParams::at_event(SuggestEvent::Prompt) })
        }
        "PostToolUseFailure" => Some(read_failure(&given).unwrap_or_else(|| EventParams::at_event(SuggestEvent::Tool))),
        "PostToolUse" => Some(read_success(&given).unwrap_or_else(|| EventParams::at_event(SuggestEvent::Tool))),
        "AfterTool" => Some(gemini::read_end(&given)?),
        "Stop" | "SubagentStop" => Some(read_stop(&given)?),
        _ => return None,
    };
    let session = text("session_id").or_else(|| text("conversation_id"));
    let session = match (session, text("agent_id")) {
        (Some(session), Some(agent)) => Some(format!("{session}/{agent}")),
        (session, _) => session,
    };
    let key = session.as_deref().zip(text("tool_use_id")).and_then(|(session, call)| make_key(session, &call));
    // Cursor sends a list of folders.
    let roots = || given.get("workspace_roots")?.get(0)?.as_str().map(str::to_owned);
    let cwd = text("cwd").or_else(roots).map(PathBuf::from).filter(|cwd| cwd.is_absolute());
    let cwd = match cwd {
        Some(cwd) if name == "AfterTool" => Some(gemini::find_folder(&given, &cwd)?),
        cwd => cwd,
    };
    let moment = match asked {
        Some(asked) => HookMoment::Ask(Box::new(EventParams {
            tool: text(if name == "SubagentStop" { "agent_type" } else { "tool_name" }),
            file: find_file(&given),
            client_session: session.clone(),
            ..asked
        })),
        None => HookMoment::End(text("transcript_path").map(PathBuf::from).filter(|path| path.is_absolute())?),
    };
    let begins = name == "SessionStart" && is_first_start(&given);
    Some(HookEvent { answer: find_reply_form(&name), moment, begins, session, cwd, key })
}

/// Returns true for a start that continues no earlier session. Returns false for a client whose transcripts Nudge
/// cannot read.
fn is_first_start(given: &Map<String, Value>) -> bool {
    let text = |name: &str| given.get(name).and_then(Value::as_str);
    // Gemini CLI also has such an event, but stores its sessions in another format.
    let is_read = text("transcript_path")
        .is_none_or(|path| Path::new(path).extension().is_some_and(|extension| extension == "jsonl"));
    is_read && text("source").is_none_or(|source| source == "startup")
}

/// Returns the end of a text, at most [`MAX_TEXT_BYTES`] bytes.
fn cut_text(text: &str) -> String {
    let mut from = text.len().saturating_sub(MAX_TEXT_BYTES);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

/// Makes the params for a command of the agent that failed.
fn make_failure(command: String, error: &str, exit_code: Option<i64>) -> EventParams {
    let (command, error) = (Some(command), Some(cut_text(error)));
    EventParams { command, error, exit_code, ..EventParams::at_event(SuggestEvent::Failure) }
}

/// Makes the params for a command of the agent that worked.
fn make_success(command: String) -> EventParams {
    EventParams { command: Some(command), exit_code: Some(0), ..EventParams::at_event(SuggestEvent::Tool) }
}

/// Returns the file that a tool has used, in the formats of the known clients.
fn find_file(given: &Map<String, Value>) -> Option<String> {
    let input = given.get("tool_input")?;
    ["file_path", "notebook_path"].iter().find_map(|name| input.get(name)?.as_str().map(str::to_owned))
}

/// Builds an idempotency key. Returns `None` when the key would not be visible ASCII; each hook that reports the
/// outcome then counts it again.
fn make_key(session: &str, call: &str) -> Option<String> {
    let key = format!("hook/{session}/{call}");
    (key.len() <= MAX_KEY_BYTES && key.bytes().all(|byte| byte.is_ascii_graphic())).then_some(key)
}

/// Returns the command of a tool call. Returns `None` when the tool is not `shell`.
fn find_command(given: &Map<String, Value>, shell: &str) -> Option<String> {
    let tool = given.get("tool_name")?.as_str()?;
    let input = given.get("tool_input").filter(|_| tool == shell)?;
    input.get("command")?.as_str().filter(|command| !command.trim().is_empty()).map(str::to_owned)
}

fn read_failure(given: &Map<String, Value>) -> Option<EventParams> {
    // The user interrupted the command, so it has neither worked nor failed.
    if given.get("is_interrupt") == Some(&Value::Bool(true)) {
        return None;
    }
    let error = given.get("error").and_then(Value::as_str).unwrap_or("");
    let code = error.strip_prefix("Exit code ").and_then(|rest| rest.split_whitespace().next());
    let exit_code = code.and_then(|code| code.parse().ok());
    Some(make_failure(find_command(given, "Bash")?, error, exit_code))
}

/// Reads a success, from clients that say how a command ended. Codex sends the same event for a failed command, with a
/// text as the response, so Nudge draws no conclusion from it.
fn read_success(given: &Map<String, Value>) -> Option<EventParams> {
    let response = given.get("tool_response")?.as_object()?;
    let is = |object: &Map<String, Value>, name: &str| object.get(name) == Some(&Value::Bool(true));
    let input = given.get("tool_input")?.as_object()?;
    let in_background = is(input, "run_in_background") || response.contains_key("backgroundTaskId");
    // An interpreted exit code was not 0, as for `grep` without a match. The client does not report this as a failure.
    let interpreted = response.get("returnCodeInterpretation").is_some_and(|meaning| !meaning.is_null());
    if is(response, "interrupted") || in_background || interpreted {
        return None;
    }
    find_command(given, "Bash").map(make_success)
}

/// Reads the end of a turn. Returns `None` when a hook has already made the agent continue, and for a subagent that
/// does not plan.
fn read_stop(given: &Map<String, Value>) -> Option<EventParams> {
    let plans = given.get("agent_type").is_none_or(|kind| kind == "Plan");
    let is_first = given.get("stop_hook_active") != Some(&Value::Bool(true));
    (plans && is_first).then(|| EventParams::at_event(SuggestEvent::Stop))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the params of the call to the server, without its tool, file and session.
    fn asked(given: &Value) -> Option<Value> {
        let HookMoment::Ask(params) = read(&given.to_string())?.moment else { panic!("{given}") };
        Some(json!(EventParams { tool: None, file: None, client_session: None, ..*params }))
    }

    #[test]
    fn events_of_claude_code() {
        let failed = json!({
            "session_id": "s", "transcript_path": "/t", "cwd": "/home/u/ws", "prompt_id": "p", "permission_mode": "default",
            "hook_event_name": "PostToolUseFailure", "tool_name": "Bash", "tool_input": {"command": "false_cmd_xyz"},
            "tool_use_id": "toolu_04", "error": "Exit code 127\n/bin/bash: line 1: false_cmd_xyz: command not found",
            "is_interrupt": false, "duration_ms": 11,
        });
        let event = read(&failed.to_string()).unwrap();
        assert_eq!(event.session.as_deref(), Some("s"));
        assert_eq!(event.key.as_deref(), Some("hook/s/toolu_04"));
        assert_eq!(event.cwd, Some(PathBuf::from("/home/u/ws")));
        assert_eq!(event.answer, ReplyForm::Specific("PostToolUseFailure".into()));
        let error = failed["error"].clone();
        let params = json!({"event": "failure", "command": "false_cmd_xyz", "error": error, "exit_code": 127});
        assert_eq!(asked(&failed), Some(params));
        let mut interrupted = failed.clone();
        interrupted["is_interrupt"] = json!(true);
        assert_eq!(asked(&interrupted), Some(json!({"event": "tool"})));
        let mut other = failed;
        other["tool_name"] = json!("Edit");
        other["tool_input"] = json!({"file_path": "/home/u/ws/a.py", "old_string": "x"});
        let event = read(&other.to_string()).unwrap();
        let HookMoment::Ask(params) = event.moment else { panic!("{event:?}") };
        let used = json!({"event": "tool", "tool": "Edit", "file": "/home/u/ws/a.py", "client_session": "s"});
        assert_eq!(json!(params), used);

        let start =
            |source: &str| json!({"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/w", "source": source});
        let begins = |source: &str| read(&start(source).to_string()).unwrap().begins;
        assert_eq!((asked(&start("startup")), begins("startup")), (Some(json!({"event": "start"})), true));
        let compacted = Some(json!({"event": "start", "fresh": true}));
        assert_eq!((asked(&start("compact")), begins("compact")), (compacted, false));
        let subagent =
            json!({"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "a", "agent_type": "Explore"});
        assert_eq!(read(&subagent.to_string()).unwrap().session.as_deref(), Some("s/a"));
        let prompt = json!({"hook_event_name": "UserPromptSubmit", "prompt": "build it"});
        assert_eq!(asked(&prompt), Some(json!({"event": "prompt", "prompt": "build it"})));
        let stop = json!({"hook_event_name": "Stop", "stop_hook_active": false, "last_assistant_message": "Done."});
        assert_eq!(asked(&stop), Some(json!({"event": "stop"})));
        let planned = json!({"hook_event_name": "SubagentStop", "agent_type": "Plan"});
        assert_eq!(asked(&planned), Some(json!({"event": "stop"})));
    }

    #[test]
    fn a_command_worked_only_when_the_client_says_so() {
        let ran = |input: Value, response: Value| {
            asked(
                &json!({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": input, "tool_response": response}),
            )
        };
        let done = json!({"stdout": "ok", "stderr": "", "interrupted": false});
        let used = Some(json!({"event": "tool"}));
        let worked = Some(json!({"event": "tool", "command": "make", "exit_code": 0}));
        assert_eq!(ran(json!({"command": "make"}), done.clone()), worked);
        assert_eq!(ran(json!({"command": "make"}), json!({"interrupted": true})), used);
        assert_eq!(ran(json!({"command": "make", "run_in_background": true}), done.clone()), used);
        assert_eq!(ran(json!({"command": "make"}), json!({"backgroundTaskId": "b"})), used);
        assert_eq!(ran(json!({"command": " "}), done), used);
        let grep = |meaning: Value| json!({"stdout": "", "interrupted": false, "returnCodeInterpretation": meaning});
        assert_eq!(ran(json!({"command": "make"}), grep(json!("No matches found"))), used);
        assert_eq!(ran(json!({"command": "make"}), grep(Value::Null)), worked);
        assert_eq!(ran(json!({"command": "make"}), json!("what Codex says of any end")), used);
    }

    #[test]
    fn a_key_is_visible_ascii_of_session_and_call() {
        let key = |session: &Value, call: &Value| {
            let event = json!({"hook_event_name": "PostToolUseFailure", "session_id": session, "tool_use_id": call,
                "tool_name": "Bash", "tool_input": {"command": "make"}, "error": ""});
            read(&event.to_string()).unwrap().key
        };
        assert_eq!(key(&json!("s"), &json!("t")).as_deref(), Some("hook/s/t"));
        assert_eq!(key(&json!("s"), &json!("t".repeat(248))).unwrap().len(), 255);
        for call in [json!("t".repeat(249)), json!("a b"), json!("a\nb"), json!("é"), json!(1), Value::Null] {
            assert_eq!(key(&json!("s"), &call), None, "{call}");
        }
        assert_eq!(key(&Value::Null, &json!("t")), None);
    }

    #[test]
    fn debug_shows_no_text() {
        let shown = |event: &Value| format!("{:?}", read(&event.to_string()).unwrap());
        let prompt = json!({"hook_event_name": "UserPromptSubmit", "prompt": "hush"});
        let tool =
            json!({"tool_name": "Bash", "tool_input": {"command": "hush"}, "error": "hush", "tool_response": {}});
        let mut texts = shown(&prompt);
        for name in ["PostToolUse", "PostToolUseFailure"] {
            let mut event = tool.clone();
            event["hook_event_name"] = json!(name);
            texts += &shown(&event);
        }
        assert!(!texts.contains("hush") && texts.contains("EventParams(Failure, exit code None)"), "{texts}");
    }

    #[test]
    fn events_of_others() {
        let gemini = read(r#"{"hook_event_name":"BeforeAgent","session_id":"g","cwd":"/w","prompt":"x"}"#).unwrap();
        assert_eq!(gemini.answer.build_output("t")["hookSpecificOutput"]["hookEventName"], "BeforeAgent");
        let cursor =
            read(r#"{"hook_event_name":"sessionStart","conversation_id":"c","workspace_roots":["/w","/v"]}"#).unwrap();
        assert_eq!((cursor.session.as_deref(), cursor.cwd), (Some("c"), Some(PathBuf::from("/w"))));
        assert_eq!(cursor.answer.build_output("t"), json!({"additional_context": "t"}));
    }

    #[test]
    fn a_start_and_its_answer_read_back() {
        for name in ["SessionStart", "sessionStart"] {
            let event = read(&make_start_event(name, "s", Path::new("/w")).to_string()).unwrap();
            assert_eq!((event.session.as_deref(), event.cwd), (Some("s"), Some(PathBuf::from("/w"))));
            assert_eq!(event.begins, name == "SessionStart");
            assert_eq!(event.answer.find_text(&event.answer.build_output("t")), Some("t"));
            for other in [json!({}), json!("t"), ReplyForm::Specific("Stop".into()).build_output("t")] {
                assert_eq!(event.answer.find_text(&other), None, "{other}");
            }
        }
    }

    #[test]
    fn what_is_no_event_is_nothing() {
        for given in [
            "",
            "x",
            "[]",
            "null",
            "{}",
            r#"{"hook_event_name":1}"#,
            r#"{"hook_event_name":"Stop","stop_hook_active":true}"#,
            r#"{"hook_event_name":"SubagentStop","agent_type":"Explore"}"#,
            r#"{"hook_event_name":"UserPromptSubmit"}"#,
        ] {
            assert!(read(given).is_none(), "{given}");
        }
        let relative = read(r#"{"hook_event_name":"SessionStart","cwd":"work"}"#).unwrap();
        assert_eq!(relative.cwd, None);
    }
}
