//! Finds the texts that Nudge or the client added to a session. A capture leaves them out; otherwise it would learn
//! from Nudge's own notes.

use nudge_core::shell;
use nudge_core::text::{after_mark, before_mark};
use serde_json::Value;

/// Names of the elements that clients add to the user's words.
const NOT_THE_USERS: [&str; 24] = [
    "system-reminder",
    "environment_context",
    "user_instructions",
    "permissions instructions",
    "turn_aborted",
    "user_shell_command",
    "subagent_notification",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "command-name",
    "command-message",
    "command-args",
    "command-contents",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "task-notification",
    "user-prompt-submit-hook",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "new-diagnostics",
    "mcp-resource",
];
/// A text in the first line of every digest that Nudge prints.
const OURS: &str = "These are notes, not instructions:";

/// Tools that return the answer of another agent. The other agent may have called Nudge.
const AGENTS: [&str; 4] = ["Task", "Agent", "TaskOutput", "AgentOutputTool"];
/// Tools that return further output of an earlier call.
const MORE: [&str; 3] = ["BashOutput", "TaskOutput", "write_stdin"];
/// Programs that run their arguments as a command.
const RUNNERS: [&str; 14] = [
    "eval", "xargs", "watch", "parallel", "find", "fd", "entr", "npx", "flock", "script", "strace", "unbuffer", "su",
    "ssh",
];
const SHELLS: [&str; 5] = ["sh", "bash", "zsh", "dash", "ksh"];
/// Programs that fetch the contents of a URL.
const FETCHERS: [&str; 6] = ["curl", "wget", "http", "https", "xh", "httpie"];
/// The default port of the server, and the ports that the server tries when that one is taken.
const PORTS: std::ops::RangeInclusive<u16> = 8_765..=8_784;

/// Returns true when the output of a call must be left out. This is so when the call goes to Nudge, or to another
/// agent, which may have called Nudge.
pub fn is_answer_ours(tool: &str, input: &str) -> bool {
    AGENTS.contains(&tool) || is_ours(tool, input)
}

/// Returns true when a call goes to Nudge: by a tool of its server, by its command, or by its address.
pub fn is_ours(tool: &str, input: &str) -> bool {
    if let Some((server, name)) = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
        let is_server = ["nudge", "nugget", "dude"].iter().any(|own| server.contains(own));
        return is_server || name.starts_with("nudge_") || name == "get_relevant_context";
    }
    parse_command_lines(input).iter().any(|line| runs_nudge(line))
}

/// Returns true when a call requests further output of an earlier call of Nudge. The input then contains an id from
/// `said`, the text that the earlier call printed.
pub fn is_more(tool: &str, input: &str, said: &str) -> bool {
    let is_end = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-');
    let Ok(Value::Object(input)) = serde_json::from_str(input) else { return false };
    let names = ["bash_id", "shell_id", "task_id", "session_id"].into_iter().filter_map(|name| input.get(name));
    let names = names.map(|name| name.as_str().map_or_else(|| name.to_string(), str::to_owned));
    MORE.contains(&tool) && names.into_iter().any(|name| said.split(is_end).any(|word| word == name))
}

/// Returns the command lines that the input of a tool contains.
fn parse_command_lines(input: &str) -> Vec<String> {
    let Ok(Value::Object(input)) = serde_json::from_str(input) else { return Vec::new() };
    let line = |value: &Value| match value {
        Value::String(line) => Some(line.clone()),
        Value::Array(words) => {
            let words: Option<Vec<_>> = words.iter().map(Value::as_str).collect();
            Some(words?.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    };
    ["command", "cmd", "script", "chars"].iter().filter_map(|name| line(input.get(*name)?)).collect()
}

fn runs_nudge(line: &str) -> bool {
    // The parser does not list commands that are inside a word or a function.
    let is_deep = ["$(", "`", "<(", ">(", "()", "function ", "alias "].iter().any(|sign| line.contains(sign));
    let Some(read) = shell::parse(line) else { return begins_with_nudge(line) };
    (is_deep && begins_with_nudge(line)) || read.commands.iter().any(|command| is_nudge(command, line))
}

fn is_nudge(command: &shell::Command, line: &str) -> bool {
    let (program, arguments) = (command.program.as_str(), command.arguments());
    let names_nudge = |text: &String| text.split_whitespace().any(is_program);
    is_program(program)
        || command.words.first().is_some_and(|word| is_program(word))
        || (RUNNERS.contains(&program) && arguments.iter().any(names_nudge))
        || (SHELLS.contains(&program) && command.input != shell::Input::None && begins_with_nudge(line))
        || (FETCHERS.contains(&program) && arguments.iter().any(|word| is_address(word, line)))
}

fn is_program(word: &str) -> bool {
    let name = after_mark(word, &['/', '\\']);
    name.strip_suffix(".exe").unwrap_or(name) == "nudge"
}

/// Returns true when a word is an address of the server. This is a local address with one of the server's ports, with a
/// variable as the port, or in a line that names Nudge.
fn is_address(word: &str, line: &str) -> bool {
    let rest = word.split_once("://").map_or(word, |(_, rest)| rest);
    let place = before_mark(rest, &['/', '?', '#']);
    let Some((host, port)) = place.rsplit_once(':') else { return false };
    let is_here = matches!(host, "" | "localhost" | "127.0.0.1" | "[::1]" | "0.0.0.0");
    is_here
        && (port.parse::<u16>().is_ok_and(|port| PORTS.contains(&port)) || line.contains("nudge") || port.contains('$'))
}

/// Words that may come directly before a command.
const BEFORE: [&str; 14] =
    ["if", "then", "else", "elif", "do", "while", "until", "time", "sudo", "env", "exec", "command", "nohup", "!"];

/// Returns true when a command begins with the name of the program, in a line that cannot be parsed. In other positions
/// the name does not count, because a user's folder may have the same name.
fn begins_with_nudge(line: &str) -> bool {
    let is_end = |c: char| c.is_whitespace() || "\"'`;|&()[]{},".contains(c);
    let starts = |before: &str| {
        let before = before.trim_end_matches([' ', '\t', '"', '\'', '\\']);
        let word = before.rsplit_once(is_end).map_or(before, |(_, word)| word);
        before.is_empty()
            || before.ends_with([':', ';', '|', '&', '(', ',', '`', '[', '{', '\n', '='])
            || BEFORE.contains(&word)
            || word.contains('=')
    };
    let mut offset = 0;
    line.split(is_end).any(|word| {
        let start = offset;
        offset += word.len() + line[start + word.len()..].chars().next().map_or(0, char::len_utf8);
        is_program(word) && starts(&line[..start])
    })
}

/// Returns the text without the parts that Nudge or the client has added.
pub fn without_ours(text: &str) -> String {
    let out = NOT_THE_USERS.iter().fold(text.to_owned(), |text, tag| remove_elements(&text, tag));
    if !out.contains(OURS) {
        return out;
    }
    let mut is_ours = false;
    let keep = |line: &&str| {
        is_ours = line.contains(OURS) || (is_ours && !line.trim().is_empty());
        !is_ours
    };
    out.split_inclusive('\n').filter(keep).collect()
}

/// Returns the text without the elements that have this name. An element without an end tag ends with the text.
fn remove_elements(text: &str, tag: &str) -> String {
    let (open, close) = (format!("<{tag}"), format!("</{tag}>"));
    let (mut out, mut left) = (String::new(), text);
    while let Some(start) = left.find(&open) {
        let inside = &left[start + open.len()..];
        if !inside.starts_with(|c: char| c == '>' || c.is_whitespace()) {
            // A longer name only begins with `tag`, so this element is kept.
            out += &left[..start + open.len()];
            left = inside;
            continue;
        }
        out += &left[..start];
        left = inside.split_once(close.as_str()).map_or("", |(_, after)| after);
    }
    out + left
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn which_calls_are_ours() {
        for (tool, input, expected) in [
            ("mcp__nugget__get_relevant_context", "{}", true),
            ("mcp__plugin_nudge_nudge__nudge_set_hint", "{}", true),
            ("mcp__other__nudge_recall", "{}", true),
            ("mcp__github__get_issue", "{}", false),
            ("exec_command", r#"{"cmd":["bash","-lc","nudge ask x"]}"#, true),
            ("shell", r#"{"command":["bash","-lc","cd '/w x' && sudo nudge ask \"it's\""]}"#, true),
            ("exec_command", r#"{"cmd":["ls","nudge"]}"#, false),
            ("Edit", r#"{"file_path":"/w/nudge"}"#, false),
            ("apply_patch", "*** Begin Patch\nnudge ask\n", false),
        ] {
            assert_eq!(is_ours(tool, input), expected, "{tool} {input}");
        }
        assert!(is_answer_ours("Task", "{}") && !is_ours("Task", "{}"));
    }

    #[test]
    fn which_lines_run_nudge() {
        let ours = [
            "nudge ask x",
            "a; /usr/bin/nudge ask x",
            "cd x\nnudge ask retries",
            "cd x && nudge ask retries | head",
            "time nudge ask x",
            "timeout 5 nudge ask x",
            "sudo -u ann nudge ask x",
            "NUDGE_BRAIN=/b nudge ask x",
            "env A=1 nice -n 5 ~/.cargo/bin/nudge ask x",
            "if true; then nudge ask x; fi",
            "for word in a b; do nudge ask \"$word\"; done",
            "while read line; do echo; nudge ask x; done < file",
            "! nudge ask x",
            "bash -c 'cd x; nudge ask y'",
            "echo \"$(nudge ask x)\"",
            "out=`nudge ask x`; echo $out",
            "diff <(nudge ask x) <(nudge ask y)",
            "f() { nudge ask x; }; f",
            "echo x | xargs nudge ask",
            "eval \"nudge ask x\"",
            "bash <<END\nnudge ask x\nEND",
            "curl -s http://127.0.0.1:8765/rpc -d '{}'",
            "curl localhost:8766/mcp",
            "wget -qO- http://localhost:40123/ --post-data '{\"method\":\"nudge.recall\"}'",
            "curl \"http://127.0.0.1:$PORT/x\"",
            "if nudge ask x; then",
        ];
        let others = [
            "cd /w/nudge && make",
            "git clone nudge",
            "ls nudge/docs",
            "cargo test -p nudge-brain",
            "grep -rn nudge src",
            "cat nudge",
            "echo \"$(ls nudge)\"",
            "curl https://example.com:8765/x",
            "curl http://localhost:3000/health",
            "git commit -m 'nudge ask is better'",
            "find . -name '*.rs'",
            "",
        ];
        for (line, expected) in ours.iter().map(|line| (line, true)).chain(others.iter().map(|line| (line, false))) {
            assert_eq!(is_ours("Bash", &json!({"command": line}).to_string()), expected, "{line}");
        }
    }

    #[test]
    fn more_of_what_ours_began_is_ours() {
        let said = "Command running in background with ID: bash_7";
        assert!(is_more("BashOutput", r#"{"bash_id":"bash_7"}"#, said));
        assert!(!is_more("BashOutput", r#"{"bash_id":"bash_8"}"#, said));
        assert!(is_more("write_stdin", r#"{"session_id":42,"chars":""}"#, "Process running with session ID 42"));
        assert!(!is_more("Bash", r#"{"bash_id":"bash_7"}"#, said));
    }

    #[test]
    fn what_nobody_closes_ends_with_the_text() {
        assert_eq!(without_ours("a<system-reminder>b"), "a");
        assert_eq!(without_ours("a<system-reminder>b</system-reminder>c<system-reminder>d</system-reminder>"), "ac");
        assert_eq!(without_ours("nothing <b>of</b> it"), "nothing <b>of</b> it");
        assert_eq!(without_ours("<command-names>stay</command-names>"), "<command-names>stay</command-names>");
        for tag in ["command-name", "task-notification", "bash-stdout", "bash-input", "bash-stderr"] {
            assert_eq!(
                without_ours(&format!("a <{tag} id=\"1\">what nobody said</{tag}>b<{tag}>x</{tag}>")),
                "a b",
                "{tag}"
            );
        }
    }
}
