//! Reads from an event of Gemini CLI how a command ended. The event `AfterTool` contains the text for the model: first
//! the output, then a few lines about the end. Older versions always have a line with the exit code. Newer versions
//! have this line only for a code other than 0, and their last line names the process group.

use std::path::{Component, Path, PathBuf};

use nudge_server::session::event::EventParams;
use serde_json::{Map, Value};

use super::{find_command, make_failure, make_success};

/// The tool that runs commands.
const SHELL: &str = "run_shell_command";
/// The first words of the lines about the command's end.
const ABOUT_THE_END: [&str; 4] = ["Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: "];
/// The values in these lines that mean: there is nothing to report.
const NOTHING: [&str; 2] = ["(none)", "0"];

/// Reads how a command ended. Returns `None` when the text does not say this: the command was cancelled or runs in the
/// background, or the client has summarized the text.
pub(super) fn read_end(given: &Map<String, Value>) -> Option<EventParams> {
    let said = given.get("tool_response")?.get("llmContent")?.as_str()?;
    let command = find_command(given, SHELL)?;
    if !["Output: ", "Command: "].iter().any(|first| said.starts_with(first)) {
        return None;
    }
    let mut rest = said.trim_end_matches('\n');
    let mut about = Vec::new();
    loop {
        let (before, last) = rest.rsplit_once('\n')?;
        let Some(name) = ABOUT_THE_END.iter().find(|name| last.starts_with(**name)) else { break };
        about.push((*name, last[name.len()..].trim()));
        rest = before;
        if !rest.contains('\n') {
            break;
        }
    }
    let value_of = |name: &str| about.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    let signalled = value_of("Signal: ").is_some_and(|signal| !NOTHING.contains(&signal));
    let exit_code = match value_of("Exit Code: ") {
        Some(code) => code.parse::<i64>().ok()?,
        None if value_of("Process Group PGID: ").is_some() && !signalled && !failed_to_run(given) => 0,
        None => return None,
    };
    if signalled {
        return None;
    }
    if exit_code == 0 {
        return Some(make_success(command));
    }
    Some(make_failure(command, read_output(rest), Some(exit_code)))
}

/// Returns true when the client reports that it could not run the command at all.
fn failed_to_run(given: &Map<String, Value>) -> bool {
    given.get("tool_response").and_then(|response| response.get("error")).is_some_and(|error| !error.is_null())
}

/// Returns the command's own output, without the labels that the client adds.
fn read_output(said: &str) -> &str {
    let from = said.strip_prefix("Output: ").or_else(|| said.split_once("\nOutput: ").map(|(_, output)| output));
    let text = from.unwrap_or(said);
    text.strip_suffix("\nError: (none)").unwrap_or(text)
}

/// Returns the folder in which the tool ran: the client's folder, or the folder that the call names. Returns `None`
/// when the folder is unclear.
pub(super) fn find_folder(given: &Map<String, Value>, cwd: &Path) -> Option<PathBuf> {
    let input = given.get("tool_input")?;
    let named = ["dir_path", "directory"].iter().find_map(|name| input.get(name)?.as_str()).unwrap_or("");
    let plain = !Path::new(named).components().any(|part| part == Component::ParentDir);
    plain.then(|| cwd.join(named).components().collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{HookEvent, HookMoment, read};
    use super::*;

    fn event(input: &Value, response: &Value) -> Option<HookEvent> {
        let event = json!({"session_id": "g", "transcript_path": "/t", "cwd": "/w", "timestamp": "2026-01-01T00:00:00Z",
            "hook_event_name": "AfterTool", "tool_name": "run_shell_command", "tool_input": input,
            "tool_response": response});
        read(&event.to_string())
    }

    fn said(text: &str) -> String {
        let response = json!({"llmContent": text, "returnDisplay": "x"});
        let Some(event) = event(&json!({"command": "npm test", "description": "Run it"}), &response) else {
            return "nothing".into();
        };
        let HookMoment::Ask(params) = event.moment else { panic!("{event:?}") };
        match (params.command.unwrap(), params.error) {
            (command, None) => format!("{command}: worked"),
            (command, Some(error)) => format!("{command}: {:?} {error}", params.exit_code),
        }
    }

    #[test]
    fn ends() {
        let old = "Command: npm test\nDirectory: (root)\n";
        for (text, want) in [
            (
                format!("{old}Output: sh: no npm\nError: (none)\nExit Code: 127\nSignal: 0"),
                "npm test: Some(127) sh: no npm",
            ),
            (
                format!(
                    "{old}Output: a\nb\nError: (none)\nExit Code: 1\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 7"
                ),
                "npm test: Some(1) a\nb",
            ),
            (format!("{old}Output: ok\nError: (none)\nExit Code: 0\nSignal: 0"), "npm test: worked"),
            (format!("{old}Output: ok\nError: (none)\nExit Code: (none)\nSignal: SIGINT"), "nothing"),
            (
                format!("{old}Output: Exit Code: 0\nError: (none)\nExit Code: 2\nSignal: 0"),
                "npm test: Some(2) Exit Code: 0",
            ),
            ("Output: a\nExit Code: 1\nProcess Group PGID: 7".into(), "npm test: Some(1) a"),
            (
                "Output: a\nError: spawn\nExit Code: 1\nProcess Group PGID: 7\n".into(),
                "npm test: Some(1) a\nError: spawn",
            ),
            ("Output: (empty)\nProcess Group PGID: 7".into(), "npm test: worked"),
            ("Output: Exit Code: 1\nProcess Group PGID: 7".into(), "npm test: worked"),
            ("Output: a\nSignal: SIGKILL\nProcess Group PGID: 7".into(), "nothing"),
            ("Output: a".into(), "nothing"),
            ("Output: a\nb".into(), "nothing"),
            (
                "Command was cancelled by user before it could complete. Below is the output:\nExit Code: 1".into(),
                "nothing",
            ),
            ("Command moved to background (PID: 7). Output hidden.".into(), "nothing"),
            ("The tests failed.\nExit Code: 1".into(), "nothing"),
            (String::new(), "nothing"),
        ] {
            assert_eq!(said(&text), want, "{text:?}");
        }
    }

    #[test]
    fn only_the_shell_says_how_it_ended() {
        let failed = json!({"llmContent": "Output: a\nExit Code: 1\nProcess Group PGID: 7"});
        let with = |input: Value| event(&input, &failed);
        let found = with(json!({"command": "make"})).unwrap();
        assert_eq!((found.session.as_deref(), found.cwd.as_deref()), (Some("g"), Some(Path::new("/w"))));
        assert_eq!(found.answer.build_output("t")["hookSpecificOutput"]["hookEventName"], "AfterTool");
        assert_eq!(with(json!({"command": "make", "dir_path": "web"})).unwrap().cwd.unwrap(), Path::new("/w/web"));
        assert_eq!(with(json!({"command": "make", "directory": "/x"})).unwrap().cwd.unwrap(), Path::new("/x"));
        assert!(with(json!({"command": "make", "dir_path": "../x"})).is_none());
        assert!(with(json!({"command": " "})).is_none());
        assert!(with(json!({"file_path": "x"})).is_none());
        for response in [json!(null), json!("Exit Code: 1"), json!({"llmContent": [{"text": "Exit Code: 1"}]})] {
            assert!(event(&json!({"command": "make"}), &response).is_none(), "{response}");
        }
        let could_not =
            json!({"llmContent": "Output: \nError: spawn\nProcess Group PGID: 7", "error": {"message": "x"}});
        assert!(event(&json!({"command": "make"}), &could_not).is_none());
        let other = json!({"hook_event_name": "AfterTool", "tool_name": "write_file", "tool_input": {"command": "make"}, "tool_response": failed});
        assert!(read(&other.to_string()).is_none());
    }
}
