//! The fields of methods in the words of the command line.
//!
//! A message of the library names fields and methods between backticks, by their path on the wire. Here they become the
//! flags and commands by which people say them.

use clap::{Arg, Command, CommandFactory as _};

use crate::args::CliArgs;

/// The fields with an argument of another name than their last part, by command; an empty command is every command.
const RENAMED: [(&str, &str, &str); 14] = [
    ("", "meta.sensitivity: \"secret\"", "secret"),
    ("", "meta.sensitivity", "secret"),
    ("", "meta.scope.env_match", "scope_env"),
    ("", "meta.scope", "scope_cwd_glob"),
    ("", "value.type", "kind"),
    ("", "value.os", "path_os"),
    ("set", "value.cmd", "value"),
    ("set", "value.abs", "value"),
    ("set", "value.body", "value"),
    ("set", "value.data", "value"),
    ("set", "reach", "everywhere"),
    ("query", "include_ineligible", "all"),
    ("recall", "query", "words"),
    ("import", "payload", "file"),
];

/// Translates a message to the command line: `variant` becomes `--variant` for a verb that has such a flag, and
/// `nudge.why` becomes `nudge why`. A verb of a source is named after that: `records search`.
pub fn in_flags(message: &str, verb: &str) -> String {
    let args = CliArgs::command();
    let (first, own) = verb.split_once(' ').map_or((verb, None), |(first, own)| (first, Some(own)));
    // The caller of a method speaks of it in the method's own words.
    let Some(verb) = args.find_subcommand(first).filter(|verb| verb.get_name() != "call") else {
        return message.to_owned();
    };
    let mut verb = verb.clone();
    if let Some(own) = own {
        // The verbs of sources are made only where they are needed.
        verb.build();
        verb = verb.find_subcommand(own).cloned().unwrap_or(verb);
    }
    // The expected form of a value is told in JSON's words, not ours.
    let form = message.starts_with("Correct `params");
    let part = |(index, part): (usize, &str)| {
        // Every other part is between backticks.
        let ours = if index % 2 == 1 && (index == 1 || !form) { find_own_word(&args, &verb, part) } else { None };
        ours.unwrap_or_else(|| part.to_owned())
    };
    message.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

/// Returns the command line's words for the text between backticks, if it has some.
fn find_own_word(args: &Command, verb: &Command, word: &str) -> Option<String> {
    if let Some(method) = word.strip_prefix("nudge.") {
        // `nudge.records.search` is `nudge records search`.
        if let Some((source, own)) = method.split_once('.') {
            return Some(format!(
                "nudge {} {}",
                args.find_subcommand(source)?.get_name(),
                own.replace(['.', '_'], "-")
            ));
        }
        let name = method.strip_suffix("_hint").unwrap_or(method).replace('_', "-");
        return Some(format!("nudge {}", args.find_subcommand(name)?.get_name()));
    }
    name_argument(find_argument(verb, word)?)
}

/// The argument by which people say a field of the verb's method.
fn find_argument<'a>(verb: &'a Command, field: &str) -> Option<&'a Arg> {
    let field = field.strip_prefix("params.").unwrap_or(field);
    let renamed = RENAMED
        .iter()
        .find(|(verb_name, name, _)| *name == field && (verb_name.is_empty() || *verb_name == verb.get_name()));
    let id = match (renamed, field.strip_prefix("meta.scope.")) {
        (Some((_, _, id)), _) => (*id).to_owned(),
        (None, Some(condition)) => format!("scope_{condition}"),
        (None, None) => {
            let inner = ["meta.", "context.", "value."].into_iter().find_map(|prefix| field.strip_prefix(prefix));
            inner.unwrap_or(field).to_owned()
        }
    };
    // The params of a source's method are kept apart from the flags of every command.
    let params = format!("param {id}");
    verb.get_arguments().find(|arg| [&*id, &*params].contains(&arg.get_id().as_str()))
}

fn name_argument(arg: &Arg) -> Option<String> {
    match arg.get_long() {
        Some(long) => Some(format!("--{long}")),
        None => arg.get_value_names()?.first().map(ToString::to_string),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn fields_are_flags_for_people() {
        for (verb, said, told) in [
            (
                "delete",
                "The key has 2 variants; name one with `variant` or pass `all`.",
                "The key has 2 variants; name one with `--variant` or pass `--all`.",
            ),
            ("set", "`meta.priority` must be", "`--priority` must be"),
            ("set", "`value.cmd` looks like a credential", "`VALUE` looks like a credential"),
            ("set", "`value` looks like a credential", "`VALUE` looks like a credential"),
            ("set", "pass `allow_secret`, or `meta.sensitivity: \"secret\"`", "pass `--allow-secret`, or `--secret`"),
            ("set", "A `meta.scope.cwd_glob` pattern is", "A `--scope-cwd-glob` pattern is"),
            ("set", "in `meta.scope.env_match`", "in `--scope-env`"),
            (
                "set",
                "Correct `params.meta.source`: unknown variant, expected one of `user`, `key`.",
                "Correct `--source`: unknown variant, expected one of `user`, `key`.",
            ),
            (
                "edit",
                "Correct `params.value.type`: unknown variant, expected one of `command`, `variant`.",
                "Correct `params.value.type`: unknown variant, expected one of `command`, `variant`.",
            ),
            ("get", "`context.cwd` must be absolute", "`--cwd` must be absolute"),
            ("get", "`component` must have 1 to 256 bytes", "`COMPONENT` must have 1 to 256 bytes"),
            ("query", "`keys` and `tags` may", "`--keys` and `--tags` may"),
            ("query", "`text` may", "`TEXT` may"),
            ("bump", "`delta` must", "`--delta` must"),
            ("recall", "`query` may have 64 KiB", "`WORDS` may have 64 KiB"),
            ("get", "list with `nudge.list_components`", "list with `nudge ls`"),
            ("get", "`nudge.why` explains, `nudge.get_hint` finds", "`nudge why` explains, `nudge get` finds"),
            ("call", "name one with `variant`", "name one with `variant`"),
            ("call", "did you mean `nudge.get_hint`?", "did you mean `nudge.get_hint`?"),
            ("get", "start one with `nudge serve`.", "start one with `nudge serve`."),
        ] {
            assert_eq!(in_flags(said, verb), told, "{verb}");
        }
    }

    /// Every field that a command sends has words of ours, so that no refusal speaks of a field that nobody has typed.
    ///
    /// Promise (command line): A refusal names the flag, for every field of a method.
    #[test]
    fn every_field_of_a_method_has_its_flag() {
        let args = CliArgs::command();
        for (verb, method) in [
            ("set", "nudge.set_hint"),
            ("get", "nudge.get_hint"),
            ("query", "nudge.query"),
            ("bump", "nudge.bump"),
            ("delete", "nudge.delete_hint"),
            ("why", "nudge.why"),
            ("undo", "nudge.undo"),
            ("recall", "nudge.recall"),
            ("export", "nudge.export"),
            ("import", "nudge.import"),
        ] {
            let verb = args.find_subcommand(verb).unwrap();
            let method = crate::sources::find_method(method).unwrap();
            let mut fields = Vec::new();
            leaves(&(method.params)(), "", &mut fields);
            assert!(!fields.is_empty());
            for field in fields {
                assert!(
                    find_argument(verb, &field).and_then(name_argument).is_some(),
                    "{} has no word for {field}",
                    verb.get_name()
                );
            }
        }
    }

    fn leaves(schema: &Value, path: &str, fields: &mut Vec<String>) {
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match inner.get("properties") {
                Some(_) => leaves(inner, &path, fields),
                // Its schema does not say its fields.
                None if name == "context" => {
                    let own = ["cwd", "repo", "branch", "os", "env", "files_open"];
                    fields.extend(own.map(|field| format!("context.{field}")));
                }
                None => fields.push(path),
            }
        }
    }
}
