//! Completes names from the running server: components, and the keys of a typed component.

use std::path::PathBuf;

use clap::CommandFactory as _;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use nudge::Service as _;
use nudge_app::settings;
use nudge_client::{RemoteServer, RuntimeDir};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// The variable that a shell's script sets when it requests completions.
pub const VARIABLE: &str = "NUDGE_COMPLETE";

pub(super) fn complete_components() -> ArgValueCandidates {
    ArgValueCandidates::new(|| find_names(&["name"], "nudge.list_components", &json!({}), "components"))
}

pub(super) fn complete_keys() -> ArgValueCandidates {
    ArgValueCandidates::new(|| match PartialLine::read(std::env::args()).component {
        Some(component) => {
            let params = json!({"component": component, "include_ineligible": true, "limit": 1000});
            find_names(&["hint", "key"], "nudge.query", &params, "hints")
        }
        None => Vec::new(),
    })
}

pub(super) fn complete_settings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        settings::list_settings().map(|setting| CompletionCandidate::new(setting.name)).collect()
    })
}

/// Returns the names at `path` in the rows of a result. Returns no names when no server runs.
fn find_names(path: &[&str], method: &str, params: &Value, rows: &str) -> Vec<CompletionCandidate> {
    let ask = || -> Option<Value> {
        let dir = PartialLine::read(std::env::args()).runtime_dir;
        let remote = RemoteServer::connect(&RuntimeDir::open(dir.as_deref()).ok()?).ok()?;
        let answer = remote.call(method, &to_raw_value(params).ok()?).ok()?;
        serde_json::from_str(answer.get()).ok()
    };
    let Some(result) = ask() else { return Vec::new() };
    let name = |row: &Value| path.iter().fold(row, |value, part| &value[*part]).as_str().map(str::to_owned);
    let mut names: Vec<_> = result[rows].as_array().into_iter().flatten().filter_map(name).collect();
    names.retain(|name| is_plain(name));
    names.dedup();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// Returns true for a name without special characters: the shell inserts a completed word into the command line without
/// quotes.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "._/@:+-".contains(c)) && !name.starts_with('-')
}

/// The relevant parts of the command line that the shell completes.
#[derive(Debug, Default, PartialEq)]
struct PartialLine {
    /// The first word after the verb.
    component: Option<String>,
    /// The runtime directory of the session.
    runtime_dir: Option<PathBuf>,
}

impl PartialLine {
    /// Reads the words of the line, before which the shell puts `nudge --`. The definitions of the flags show which of
    /// them take a value.
    fn read(args: impl Iterator<Item = String>) -> Self {
        let mut words = args.skip_while(|word| word != "--").skip(2);
        let (mut line, mut plain, mut command) = (Self::default(), 0, super::CliArgs::command());
        command.build();
        while let Some(word) = words.next() {
            if let Some(flag) = word.strip_prefix('-').filter(|flag| !flag.is_empty()) {
                let (name, mut value) =
                    flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value.to_owned())));
                if value.is_none() && takes_a_word(&command, name) {
                    value = words.next();
                }
                if name == "-runtime-dir" {
                    line.runtime_dir = value.filter(|value| !value.is_empty()).map(PathBuf::from);
                }
                continue;
            }
            plain += 1;
            if plain == 1 {
                command = command.find_subcommand(&word).cloned().unwrap_or(command);
            } else if plain == 2 {
                line.component = Some(word);
            }
        }
        line
    }
}

/// Returns true for a flag that takes a value. `flag` is the flag without its first dash.
fn takes_a_word(command: &clap::Command, flag: &str) -> bool {
    let named = |arg: &&clap::Arg| match flag.strip_prefix('-') {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| short.to_string() == flag),
    };
    command.get_arguments().find(named).is_some_and(|arg| arg.get_action().takes_values())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_component_is_the_word_after_the_verb() {
        let read = |line: &str| PartialLine::read(line.split(' ').map(str::to_owned));
        let component = |line: &str| read(line).component;
        for line in [
            "nudge -- nudge get http-proxy b",
            "nudge -- nudge --json get http-proxy ",
            "nudge -- nudge -p 9000 get --cwd /x http-proxy ",
            "nudge -- nudge --port=9000 get --reveal --cwd=/x http-proxy ",
        ] {
            assert_eq!(component(line), Some("http-proxy".into()), "{line}");
        }
        assert_eq!(component("nudge -- nudge get"), None);
        assert_eq!(component("nudge -- nudge get --cwd /x"), None);
        assert_eq!(read("nudge -- nudge get --runtime-dir /x a").runtime_dir, Some("/x".into()));
        assert_eq!(read("nudge -- nudge --runtime-dir=/x get a").runtime_dir, Some("/x".into()));
    }

    #[test]
    fn what_a_shell_would_read_is_not_offered() {
        assert!(is_plain("env.FEATURE_X") && is_plain("@scope/pkg"));
        assert!(!is_plain("$(rm)") && !is_plain("a b") && !is_plain("-x") && !is_plain("a\n"));
    }
}
