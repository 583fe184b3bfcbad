//! What the running server can complete: components, and the keys of the component before them.

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use nudge::Service as _;
use nudge_client::{Remote, RuntimeDir};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

/// Set by the shell's script when it asks what could come next.
pub const VARIABLE: &str = "NUDGE_COMPLETE";

pub(super) fn components() -> ArgValueCandidates {
    ArgValueCandidates::new(|| names(&["name"], "nudge.list_components", &json!({}), "components"))
}

pub(super) fn keys() -> ArgValueCandidates {
    ArgValueCandidates::new(|| match component(std::env::args()) {
        Some(component) => {
            let params = json!({"component": component, "include_ineligible": true, "limit": 1000});
            names(&["hint", "key"], "nudge.query", &params, "hints")
        }
        None => Vec::new(),
    })
}

/// The names at `path` of the rows of a result; none when there is no server.
fn names(path: &[&str], method: &str, params: &Value, rows: &str) -> Vec<CompletionCandidate> {
    let ask = || -> Option<Value> {
        let remote = Remote::connect(&RuntimeDir::open(None).ok()?).ok()?;
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

/// The shell puts a completed word into the command line as it is, so it must mean nothing to a shell.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "._/@:+-".contains(c)) && !name.starts_with('-')
}

/// The component in a command line that is being completed: the first word after the verb.
fn component(args: impl Iterator<Item = String>) -> Option<String> {
    let mut words = args.skip_while(|word| word != "--").skip(2).filter(|word| !word.starts_with('-'));
    words.next()?;
    words.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_component_is_the_word_after_the_verb() {
        let component = |line: &str| component(line.split(' ').map(str::to_owned));
        assert_eq!(component("nudge -- nudge get http-proxy b"), Some("http-proxy".into()));
        assert_eq!(component("nudge -- nudge --json get http-proxy "), Some("http-proxy".into()));
        assert_eq!(component("nudge -- nudge get"), None);
    }

    #[test]
    fn what_a_shell_would_read_is_not_offered() {
        assert!(is_plain("env.FEATURE_X") && is_plain("@scope/pkg"));
        assert!(!is_plain("$(rm)") && !is_plain("a b") && !is_plain("-x") && !is_plain("a\n"));
    }
}
