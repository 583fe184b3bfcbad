//! A file with commands, and the functions that its readers share.

use std::path::Path;

use serde_json::Value;

use crate::command::CommandLine;

/// The deepest nesting of a JSON file with comments. The parser itself has no limit.
const MAX_DEPTH: usize = 64;

/// A file that names commands.
pub struct SeedFile<'a> {
    /// The top of the repository.
    pub top: &'a Path,
    /// The folder of the file, relative to the top.
    pub folder: &'a str,
    pub name: &'a str,
    pub text: &'a str,
}

/// A command that a file names.
#[derive(Debug, Default)]
pub struct FoundCommand {
    pub name: String,
    pub command: CommandLine,
    /// The file's description of the command, or the command itself.
    pub about: String,
    pub line: u32,
    /// The folder in which the command runs, relative to the top; `None` for the folder of the file.
    pub folder: Option<String>,
}

/// The reason why a file gives no commands, in a few words.
pub type Why = String;

impl SeedFile<'_> {
    /// Returns true when the folder of this file has a file with this name.
    pub fn has_sibling(&self, name: &str) -> bool {
        self.top.join(self.folder).join(name).is_file()
    }

    /// Finds the first of these names in this file's folder or in a folder above it, up to the top. Returns the value
    /// that is paired with the name.
    pub fn find_nearest<T: Copy>(&self, names: &[(&str, T)]) -> Option<T> {
        let folder = self.top.join(self.folder);
        let above = folder.ancestors().take_while(|ancestor| ancestor.starts_with(self.top));
        above
            .into_iter()
            .find_map(|ancestor| names.iter().find(|(name, _)| ancestor.join(name).is_file()).map(|(_, value)| *value))
    }

    /// Returns the number of the first line for which `is_so` is true.
    pub fn line_where(&self, is_so: impl Fn(&str) -> bool) -> Option<u32> {
        self.text.lines().zip(1..).find_map(|(line, number)| is_so(line).then_some(number))
    }

    /// Returns the number of the line with the last key of a path of nested keys.
    pub fn line_of(&self, keys: &[&str]) -> u32 {
        let is_toml = Path::new(self.name).extension().is_some_and(|end| end == "toml");
        let (mut known, mut last) = (0, 1);
        for (line, number) in self.text.lines().zip(1..) {
            // The header of a TOML table ends the table before it, so the search for the keys starts again.
            if is_toml && line.trim_start().starts_with('[') {
                known = 0;
            }
            while known < keys.len() && has_key(line, keys[known]) {
                known += 1;
                last = number;
            }
            if known == keys.len() {
                break;
            }
        }
        last
    }

    /// # Errors
    /// The reason why the file cannot be read.
    pub fn parse_json(&self) -> Result<Value, Why> {
        serde_json::from_str(self.text).map_err(|error| format!("it is not JSON (line {})", error.line()))
    }

    /// Parses JSON like [`parse_json`](Self::parse_json), but allows comments.
    pub fn parse_jsonc(&self) -> Result<Value, Why> {
        if measure_depth(self.text) > MAX_DEPTH {
            return Err(format!("it is nested deeper than {MAX_DEPTH}"));
        }
        let value = jsonc_parser::parse_to_serde_value::<Value>(self.text, &jsonc_parser::ParseOptions::default());
        value.map_err(|_| "it is not JSON".to_owned())
    }

    /// # Errors
    /// The reason why the file cannot be read.
    pub fn parse_toml(&self) -> Result<Value, Why> {
        toml::from_str(self.text).map_err(|error| {
            let line = error.span().map_or(1, |span| self.text[..span.start].lines().count().max(1));
            format!("it is not TOML (line {line})")
        })
    }

    /// # Errors
    /// The reason why the file cannot be read.
    pub fn parse_yaml(&self) -> Result<Value, Why> {
        serde_norway::from_str(self.text).map_err(|error| {
            error
                .location()
                .map_or("it is not YAML".to_owned(), |location| format!("it is not YAML (line {})", location.line()))
        })
    }
}

/// Returns true when a line of JSON, YAML, TOML or INI assigns a value to this key, or is the header of a table whose
/// name ends with the key.
fn has_key(line: &str, key: &str) -> bool {
    line.match_indices(key).any(|(offset, _)| {
        let (before, after) = (&line[..offset], &line[offset + key.len()..]);
        // A quoted key must fill its quotes: `build` is not a key in `"test-build"` or inside a value.
        let (before, after) = match find_open_quote(before) {
            Some(quote) if before.ends_with(quote) && after.starts_with(quote) => {
                (&before[..before.len() - 1], &after[1..])
            }
            Some(_) => return false,
            None => (before, after),
        };
        let before = before.trim_end();
        let is_item = before.strip_suffix('-').is_some_and(|indent| indent.trim().is_empty());
        let begins = before.is_empty() || before.ends_with(['{', ',', '[', '.']) || is_item;
        begins && after.trim_start().starts_with([':', '=', ']', '.'])
    })
}

/// Returns the quote that is still open at the end of a text. A quote inside a plain word (`it's`) does not count.
fn find_open_quote(text: &str) -> Option<char> {
    let (mut open, mut is_escaped, mut before) = (None, false, ' ');
    for c in text.chars() {
        match (open, c) {
            _ if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(quote), c) if c == quote => open = None,
            (None, '"' | '\'') if !before.is_alphanumeric() => open = Some(c),
            _ => {}
        }
        before = c;
    }
    open
}

/// Returns the depth of the deepest nesting of brackets in a JSON text.
fn measure_depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut is_text, mut is_escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_text => is_escaped = true,
            b'"' => is_text = !is_text,
            b'{' | b'[' if !is_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Iterates over the members of an object. Any other value has no members.
pub fn iter_members(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// Returns the description of a command: the file's own text, or else the command that it runs. Returns an empty text
/// if there is neither.
pub fn about_text(words: &Value, command: &Value) -> String {
    words.as_str().map(str::to_owned).or_else(|| command_text(command)).unwrap_or_default()
}

/// Returns the text of a command: a string, a list of words or lines, or a table that has one of these.
pub fn command_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(list) => {
            let parts: Vec<_> = list.iter().filter_map(command_text).collect();
            (!parts.is_empty()).then(|| parts.join(" && "))
        }
        Value::Object(object) => {
            ["cmd", "shell", "command", "script", "run", "call", "composite", "chain", "sequence", "task"]
                .iter()
                .find_map(|name| object.get(*name).and_then(command_text))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn file(text: &str) -> SeedFile<'_> {
        SeedFile { top: Path::new("/"), folder: "", name: "f", text }
    }

    #[test]
    fn a_key_is_found_below_another() {
        for (text, keys, line) in [
            ("{\n \"test\": 1,\n \"scripts\": {\n  \"test\": 2}}", vec!["scripts", "test"], 4),
            ("{\"scripts\": {\"test\": 2}}", vec!["scripts", "test"], 1),
            ("[tool.poe.tasks]\nx = 1\ntest = 2", vec!["tasks", "test"], 3),
            ("tasks:\n  retest: 1\n  test:\n", vec!["tasks", "test"], 3),
            ("tasks:\n", vec!["tasks", "test"], 1),
            ("{\"scripts\": {\n\"build:test\": 1,\n\"test\": 2}}", vec!["scripts", "test"], 3),
            ("{\"scripts\": {\n\"test-build\": 1,\n\"x.build\": 1,\n\"build\": 2}}", vec!["scripts", "build"], 4),
            ("{\"scripts\": {\n\"a\": \"x 'b': {b: 1, b: 2}\",\n\"b\": 2}}", vec!["scripts", "b"], 3),
            ("{\"scripts\": {\n\"a\": \"it's \\\" b: 1\", \"c\": 1,\n\"b\": 2}}", vec!["scripts", "b"], 3),
            ("jobs:\n  - pre-test: 1\n  - test: 2\n", vec!["jobs", "test"], 3),
            ("[envs]\npre-test = 1\n'test' = 2\n", vec!["envs", "test"], 3),
        ] {
            assert_eq!(file(text).line_of(&keys), line, "{text}");
        }
        let toml = SeedFile { name: "hatch.toml", ..file("[envs.a.scripts]\nx = 1\n[envs.docs.scripts]\nx = 1\n") };
        assert_eq!(toml.line_of(&["docs", "scripts", "x"]), 4);
        assert_eq!(toml.line_of(&["a", "scripts", "x"]), 2);
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let deep = "[".repeat(100_000);
        for refused in [
            file(&deep).parse_json(),
            file(&deep).parse_jsonc(),
            file(&format!("a = {deep}")).parse_toml(),
            file(&deep).parse_yaml(),
        ] {
            refused.unwrap_err();
        }
        let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (last, this) in ('a'..='h').zip('b'..='i') {
            let nine = [format!("*{last}").as_str(); 9].join(",");
            writeln!(bomb, "{this}: &{this} [{nine}]").unwrap();
        }
        file(&bomb).parse_yaml().unwrap_err();
    }
}
