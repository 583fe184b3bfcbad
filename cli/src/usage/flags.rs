//! Rewrites the library's error messages for the command line.
//!
//! An error says which fields of its method its message names, and each argument has the id of the field that it sets.
//! Therefore `variant` becomes `--variant`, and `nudge.why` becomes `nudge why`. Any other word between backticks stays
//! as it is.

use clap::{Arg, Command, CommandFactory as _};
use nudge::Error;
use nudge_app::sources;

use crate::args::CliArgs;

/// Returns an error's message for a user who ran a verb. For a verb of a source, `verb` starts with the source's name:
/// `records search`.
pub fn describe_error(error: &Error, verb: &str) -> String {
    let args = CliArgs::command();
    let (first, own) = verb.split_once(' ').map_or((verb, None), |(first, own)| (first, Some(own)));
    // A user of `nudge call` typed the names of the method, so the message keeps them.
    let Some(verb) = args.find_subcommand(first).filter(|verb| verb.get_name() != "call") else {
        return drop_os_codes(error.message());
    };
    let mut verb = verb.clone();
    if let Some(own) = own {
        // The verbs of a source are built only here, when they are needed.
        verb.build();
        verb = verb.find_subcommand(own).cloned().unwrap_or(verb);
    }
    drop_os_codes(&name_commands(&error.message_in(|field| name_argument(find_argument(&verb, field)?))))
}

/// Removes the system's numbers of errors, which stand behind the same in words: `(os error 2)`.
fn drop_os_codes(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().expect("a split has a first part").to_owned();
    parts.fold(first, |out, part| out + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// Replaces each method's name between backticks with the command that calls the method.
pub fn name_commands(text: &str) -> String {
    let args = CliArgs::command();
    sources::list_methods().into_iter().fold(text.to_owned(), |text, method| {
        let name = format!("`{}`", method.name);
        match name_command(&args, method.name).filter(|_| text.contains(&name)) {
            Some(command) => text.replace(&name, &format!("`{command}`")),
            None => text,
        }
    })
}

/// Returns the command that calls a method: `nudge records search` for `nudge.records.search`.
fn name_command(args: &Command, method: &str) -> Option<String> {
    if let Some(command) = sources::name_command(method) {
        return Some(command);
    }
    let method = method.strip_prefix("nudge.")?;
    let name = method.strip_suffix("_hint").unwrap_or(method).replace('_', "-");
    Some(format!("nudge {}", args.find_subcommand(name)?.get_name()))
}

/// Finds the argument that sets a field of the verb's method. The id of the argument is the field without its object,
/// such as `scope_repo` for `meta.scope.repo`. If there is no such argument, returns that of the object: `value` for
/// `value.cmd`.
fn find_argument<'a>(verb: &'a Command, field: &str) -> Option<&'a Arg> {
    let inner = ["meta.", "context.", "value."].into_iter().find_map(|object| field.strip_prefix(object));
    let id = inner.unwrap_or(field).replace('.', "_");
    // The params of a source's method have their own ids, which differ from the ids of the flags of every command.
    let params = format!("param {id}");
    let own = verb.get_arguments().find(|arg| [&*id, &*params].contains(&arg.get_id().as_str()));
    own.or_else(|| find_argument(verb, field.rsplit_once('.')?.0))
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
        for (verb, said, fields, told) in [
            (
                "delete",
                "The key has 2 variants; name one with `variant` or pass `all`.",
                &["variant", "all"][..],
                "The key has 2 variants; name one with `--variant` or pass `--all`.",
            ),
            ("set", "`meta.priority` must be", &["meta.priority"], "`--priority` must be"),
            ("set", "`value.cmd` looks like a credential", &["value.cmd"], "`VALUE` looks like a credential"),
            ("set", "`value.data.a.b` looks like a credential", &["value.data.a.b"], "`VALUE` looks like a credential"),
            ("set", "`value` looks like a credential", &["value"], "`VALUE` looks like a credential"),
            (
                "set",
                "pass `allow_secret`, or `meta.sensitivity`",
                &["allow_secret", "meta.sensitivity"],
                "pass `--allow-secret`, or `--secret`",
            ),
            ("set", "A `meta.scope.cwd_glob` pattern is", &["meta.scope.cwd_glob"], "A `--scope-cwd-glob` pattern is"),
            ("set", "in `meta.scope.env_match`", &["meta.scope.env_match"], "in `--scope-env`"),
            ("set", "Give `reach` for a hint", &["reach"], "Give `--everywhere` for a hint"),
            ("set", "Correct `value.type`: it", &["value.type"], "Correct `--type`: it"),
            ("edit", "Correct `value.type`: it", &["value.type"], "Correct `value.type`: it"),
            ("get", "`context.cwd` must be absolute", &["context.cwd"], "`--cwd` must be absolute"),
            ("get", "`context.env.A` must be", &["context.env.A"], "`--env` must be"),
            ("get", "`component` must have 1 to 256 bytes", &["component"], "`COMPONENT` must have 1 to 256 bytes"),
            ("query", "`keys` and `tags` may", &["keys", "tags"], "`--keys` and `--tags` may"),
            ("query", "`text` may", &["text"], "`TEXT` may"),
            ("bump", "`delta` must", &["delta"], "`--delta` must"),
            ("recall", "`query` may have 64 KiB", &["query"], "`WORDS` may have 64 KiB"),
            ("records search", "`query` is empty", &["query"], "`WORDS` is empty"),
            ("get", "list with `nudge.list_components`", &[], "list with `nudge ls`"),
            ("get", "`nudge.why` explains, `nudge.get_hint` finds", &[], "`nudge why` explains, `nudge get` finds"),
            ("call", "name one with `variant`", &["variant"], "name one with `variant`"),
            ("call", "did you mean `nudge.get_hint`?", &[], "did you mean `nudge.get_hint`?"),
            ("get", "start one with `nudge serve`.", &[], "start one with `nudge serve`."),
        ] {
            let error = fields.iter().fold(Error::invalid(said), |error, field| error.about(field));
            assert_eq!(describe_error(&error, verb), told, "{verb}");
        }
    }

    /// Promise (command line): In a refusal, only the field that the error names becomes a flag.
    #[test]
    fn a_word_that_is_no_field_stays() {
        for (verb, error, told) in [
            (
                "delete",
                nudge_core::near::refuse_unknown("tag", "variants", &["variant", "all"]),
                "There is no tag `variants`; did you mean `variant`?",
            ),
            (
                "set",
                Error::invalid("Correct `meta.source`: unknown variant, expected one of `user`, `key`, `source`.")
                    .about("meta.source"),
                "Correct `--source`: unknown variant, expected one of `user`, `key`, `source`.",
            ),
            (
                "query",
                Error::invalid("`keys` may not be `tags`, nor `keys`.").about("keys"),
                "`--keys` may not be `tags`, nor `keys`.",
            ),
        ] {
            assert_eq!(describe_error(&error, verb), told);
        }
    }

    /// Every field that a command sends has an argument, so an error never names a field that the user did not type.
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
            let method = nudge_app::sources::find_method(method).unwrap();
            let mut fields = Vec::new();
            leaves(&(method.params)(), "", &mut fields);
            // `nudge set` infers its context itself, without flags.
            fields.retain(|field| verb.get_name() != "set" || !field.starts_with("context."));
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
                // The schema of the context does not contain the fields.
                None if name == "context" => {
                    let own = ["cwd", "repo", "branch", "os", "env", "files_open"];
                    fields.extend(own.map(|field| format!("context.{field}")));
                }
                None => fields.push(path),
            }
        }
    }
}
