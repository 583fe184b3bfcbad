//! Finds the files and folders of a repository that a hint names.

use nudge_core::shell::{self, Folder};

use crate::hint::HintValue;

/// The most paths of one hint.
const MAX_PATHS: usize = 4;
/// The number of bytes of a value that are read.
const MAX_VALUE_BYTES: usize = 2 << 10;
/// Programs whose first argument is a file that they run.
const INTERPRETERS: [&str; 9] = ["bash", "sh", "zsh", "python", "python3", "node", "ruby", "perl", "php"];

/// Returns the words of a value that are certainly relative paths: words with a file's ending or with `./` before them,
/// a program with its folder, and a script that an interpreter runs. A path after `cd X` is returned as `X/path`.
pub(crate) fn find_paths(value: &HintValue) -> Vec<String> {
    let Some(text) = value.command_line() else { return Vec::new() };
    let text = &text[..text.floor_char_boundary(MAX_VALUE_BYTES.min(text.len()))];
    let mut paths: Vec<String> = Vec::new();
    let mut add = |path: String| {
        if paths.len() < MAX_PATHS && !paths.contains(&path) {
            paths.push(path);
        }
    };
    match shell::parse(text).filter(|_| value.is_command()) {
        Some(line) => {
            for command in &line.commands {
                let (own, folder) = match &command.folder {
                    Folder::Here => (true, ""),
                    Folder::At(folder) if is_relative(folder) => (true, folder.as_str()),
                    Folder::At(_) | Folder::Unknown => (false, ""),
                };
                let inside = |path: &str| [folder.trim_end_matches('/'), path.trim_start_matches("./")].join("/");
                let script = command.words.get(1).filter(|_| INTERPRETERS.contains(&&*command.program));
                let script = script.filter(|script| has_ending(script) && is_relative(script));
                let words = command.words.iter().enumerate();
                let words = words.filter(|(index, word)| is_path(word) || *index == 0 && is_program(word));
                for word in words.map(|(_, word)| word).chain(script).filter(|_| own) {
                    add(inside(word).trim_start_matches('/').to_owned());
                }
            }
        }
        None => text
            .split(|c: char| c.is_whitespace() || "\"'`()[]<>,;=|".contains(c))
            .map(|word| word.trim_end_matches(['.', ':', '!', '?']))
            .filter(|word| is_path(word))
            .for_each(|word| add(word.trim_start_matches("./").to_owned())),
    }
    paths
}

fn is_path(word: &str) -> bool {
    is_relative(word) && word.contains('/') && (has_ending(word) || word.starts_with("./"))
}

fn is_program(word: &str) -> bool {
    is_relative(word) && word.contains('/')
}

/// Returns true for a relative path inside the repository: it does not contain `..`, names no other machine, and has no
/// part that a shell expands.
fn is_relative(word: &str) -> bool {
    !word.starts_with(['/', '-', '@', '~'])
        && !word.contains("..")
        && !word.contains(|c: char| "$*?{}[]<>:\\#&|".contains(c))
        && word.is_ascii()
}

/// Returns true for a name with an ending, such as `x.sh`. A version such as `v1.2` has no ending.
fn has_ending(word: &str) -> bool {
    let file = word.rsplit('/').next().unwrap_or(word);
    file.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty() && (1..=6).contains(&ending.len()) && ending.starts_with(|c: char| c.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_values() {
        for (command, paths) in [
            ("make build", ""),
            ("./scripts/deploy.sh --fast", "scripts/deploy.sh"),
            ("bash deploy.sh", "deploy.sh"),
            ("cd web && node build.js", "web/build.js"),
            ("cd /srv && node build.js", ""),
            ("python -m mlkit.train --config configs/small.yaml", "configs/small.yaml"),
            ("kubectl apply -f https://x.org/a/b.yaml -f k8s/*.yaml", ""),
            ("docker run org/image:1.2 && cat ../x/y.txt", ""),
            (".venv/bin/pytest -q", ".venv/bin/pytest"),
            ("pnpm add @scope/a.b and/or", ""),
        ] {
            assert_eq!(find_paths(&HintValue::command(command)).join(" "), paths, "{command}");
        }
        let text = HintValue::Text("edit config/flags.dev.json; see notes/x.md. 24/7, w/o http://a/b.c".into());
        assert_eq!(find_paths(&text).join(" "), "config/flags.dev.json notes/x.md");
    }
}
