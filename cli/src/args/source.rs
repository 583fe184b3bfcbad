//! `nudge SOURCE VERB ...`: the commands for the methods of every source, made from the rows of the method table. Some
//! verbs are commands of their own and need no source, for example `nudge ask`.
//!
//! A required text or number is positional, in the order of the schema, unless it allows only certain words. An
//! argument that a row names is positional too. All other params are flags. A list accepts commas and repeated flags. A
//! switch is `--name` or `--name=false`. The context has the same flags as in other commands. Values of other types are
//! JSON.

use clap::builder::Str;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, FromArgMatches, Subcommand, value_parser};
use nudge::{ContextUse, MethodSpec};
use nudge_app::sources;
use nudge_core::service::EditSpec;
use nudge_core::source::{LongCommand, SourceSpec};
use serde_json::{Map, Value};

use super::ContextFlags;

/// A call of a source's method by its command.
#[derive(Debug, Clone)]
pub struct SourceVerb {
    /// The source.
    pub source: &'static SourceSpec,
    /// The method to call, or the row of a long-running command.
    pub method: &'static MethodSpec,
    /// The long-running command, if the verb is one.
    pub long: Option<&'static LongCommand>,
    /// The rules for an edit in the editor, if the verb is `edit`.
    pub edited: Option<&'static EditSpec>,
    /// The params, without the context.
    pub params: Map<String, Value>,
    /// The context, for a method that takes one.
    pub here: Option<ContextFlags>,
}

/// Lists the sources with commands of this form. The first source, the hints, has its own commands.
fn with_verbs() -> impl Iterator<Item = &'static SourceSpec> {
    sources::list_sources().iter().skip(1).copied()
}

/// A verb of a source.
struct SourceWord {
    name: String,
    /// Another word that also names the verb.
    other: Option<String>,
    method: &'static MethodSpec,
    long: Option<&'static LongCommand>,
    edited: Option<&'static EditSpec>,
}

impl SourceWord {
    /// Lists the verbs of a source: first those of its methods, then its long-running commands.
    fn list_all(source: &'static SourceSpec) -> impl Iterator<Item = Self> {
        let of_method = |method: &'static MethodSpec| {
            let call = Self::from_method(source, method);
            let edit = method.edited.map(|edited| Self {
                name: "edit".to_owned(),
                other: None,
                method,
                long: None,
                edited: Some(edited),
            });
            call.into_iter().chain(edit)
        };
        let stays = |command: &'static LongCommand| {
            Some(Self { long: Some(command), ..Self::from_method(source, &command.row)? })
        };
        (source.methods)().into_iter().flat_map(of_method).chain(source.commands.iter().filter_map(stays))
    }

    /// Returns the verb of a method: `search` for `nudge.records.search`. If the row names another word, both words
    /// work.
    fn from_method(source: &SourceSpec, method: &'static MethodSpec) -> Option<Self> {
        let rest = method.name.strip_prefix("nudge.")?.strip_prefix(source.name)?.strip_prefix('.')?;
        let own = rest.replace(['.', '_'], "-");
        let (name, other) = match method.verb {
            Some(verb) => (verb.to_owned(), Some(own)),
            None => (own, None),
        };
        Some(Self { name, other, method, long: None, edited: None })
    }

    /// Returns the params of the verb, without the context. `edit` requires the id.
    fn list_params(&self) -> Vec<VerbParam> {
        let mut params = VerbParam::list_all(self.method);
        if let Some(edited) = self.edited {
            for param in params.iter_mut().filter(|param| param.name == edited.id) {
                param.is_required = true;
                param.schema["description"] = "The one to change.".into();
            }
        }
        params
    }

    fn about_text(&self) -> &'static str {
        match self.edited {
            Some(_) => "Change one, in $VISUAL or $EDITOR or by flags; stored only if nobody changed it meanwhile.",
            None => self.method.description,
        }
    }
}

/// A field of a method's params.
struct VerbParam {
    name: String,
    schema: Value,
    is_required: bool,
    /// True when the param is positional even though it is not required.
    is_argument: bool,
}

impl VerbParam {
    /// Lists the params of a method, without its context.
    fn list_all(method: &MethodSpec) -> Vec<Self> {
        let schema = (method.params)();
        let is_required =
            |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|own| own == name));
        let members = schema["properties"].as_object().into_iter().flatten();
        let params = members.filter(|(name, _)| *name != "context" || method.context == ContextUse::None);
        params
            .map(|(name, schema)| Self {
                is_required: is_required(name),
                is_argument: method.argument == Some(&**name),
                name: name.clone(),
                schema: schema.clone(),
            })
            .collect()
    }

    fn json_type(&self) -> Option<&str> {
        self.schema["type"].as_str()
    }

    fn is_list_of_texts(&self) -> bool {
        self.json_type() == Some("array") && self.schema["items"]["type"] == "string"
    }

    /// Returns true for a list of numbers, for example ids of records.
    fn is_list_of_numbers(&self) -> bool {
        self.json_type() == Some("array") && self.schema["items"]["type"] == "integer"
    }

    /// Returns true for the text of a question, which the user may type without quotes.
    fn is_words(&self) -> bool {
        matches!(self.name.as_str(), "query" | "task_description") && self.json_type() == Some("string")
    }

    /// Returns true for a positional param. A param that allows only certain words is a flag.
    fn is_positional(&self) -> bool {
        let is_plain = matches!(self.json_type(), Some("string" | "integer")) || self.is_list_of_numbers();
        (self.is_required || self.is_argument) && is_plain && self.schema["enum"].is_null()
    }

    fn flag_name(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Returns the id of the argument. It differs from the ids of the flags that every command has.
    fn arg_id(&self) -> String {
        format!("param {}", self.name)
    }

    fn to_arg(&self) -> Arg {
        let arg = Arg::new(Str::from(self.arg_id()));
        let arg = match self.schema["description"].as_str() {
            Some(help) => arg.help(help.to_owned()),
            None => arg,
        };
        let value = self.name.to_ascii_uppercase();
        if self.is_positional() {
            let arg = arg.required(self.is_required).value_name(value);
            return match self.json_type() {
                Some("integer") => arg.value_parser(value_parser!(i64)),
                Some("array") => arg.value_parser(value_parser!(i64)).num_args(1..).value_delimiter(','),
                _ if self.is_words() => arg.num_args(1..).value_name("WORDS"),
                _ => self.with_words(arg),
            };
        }
        let arg = arg.long(self.flag_name()).required(self.is_required);
        match self.json_type() {
            Some("boolean") => {
                let arg = arg.value_name("BOOL").value_parser(value_parser!(bool));
                arg.num_args(0..=1).require_equals(true).default_missing_value("true")
            }
            Some("integer") => arg.value_name("N").value_parser(value_parser!(i64)).allow_negative_numbers(true),
            Some("number") => arg.value_name("X").value_parser(value_parser!(f64)).allow_negative_numbers(true),
            Some("string") => self.with_words(arg.value_name(value)),
            _ if self.is_list_of_texts() => arg.value_name(value).action(ArgAction::Append).value_delimiter(','),
            _ if self.is_list_of_numbers() => {
                arg.value_name(value).value_parser(value_parser!(i64)).action(ArgAction::Append).value_delimiter(',')
            }
            _ => arg.value_name("JSON").value_parser(|text: &str| {
                serde_json::from_str::<Value>(text).map_err(|error| format!("this is not JSON ({error})"))
            }),
        }
    }

    /// Limits the argument to the allowed words of the param, if the param has such a list.
    fn with_words(&self, arg: Arg) -> Arg {
        match self.schema["enum"].as_array() {
            Some(words) => {
                let words: Vec<_> = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                arg.value_parser(words)
            }
            None => arg,
        }
    }

    /// Reads the value of the param from the command line, if it is there.
    fn read_value(&self, matches: &ArgMatches) -> Option<Value> {
        let id = self.arg_id();
        match self.json_type() {
            Some("boolean") => matches.get_one::<bool>(&id).map(|on| Value::Bool(*on)),
            Some("integer") => matches.get_one::<i64>(&id).map(|number| (*number).into()),
            Some("number") => matches.get_one::<f64>(&id).map(|number| (*number).into()),
            Some("string") if self.is_words() => {
                let words = matches.get_many::<String>(&id)?.map(String::as_str);
                Some(words.collect::<Vec<_>>().join(" ").into())
            }
            Some("string") => matches.get_one::<String>(&id).map(|text| text.clone().into()),
            _ if self.is_list_of_texts() => {
                matches.get_many::<String>(&id).map(|texts| texts.cloned().map(Value::from).collect())
            }
            _ if self.is_list_of_numbers() => {
                matches.get_many::<i64>(&id).map(|numbers| numbers.copied().map(Value::from).collect())
            }
            _ => matches.get_one::<Value>(&id).cloned(),
        }
    }
}

/// Returns the first part of a source's guide. The rest names tools for models.
fn describe_source(source: &SourceSpec) -> &'static str {
    source.guide.split_once(": ").map_or(source.guide, |(about, _)| about)
}

fn build_command(source: &'static SourceSpec) -> Command {
    Command::new(source.name)
        // Accepts the singular too: `nudge signal send`.
        .aliases(source.name.strip_suffix('s'))
        .about(describe_source(source))
        .after_help(format!("Example:\n  nudge {} --help", source.name))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .defer(with_own_verbs)
}

/// Adds the verbs of the source that has the command's name. Builds the schemas of the verbs only on use, not at every
/// start.
fn with_own_verbs(command: Command) -> Command {
    let Some(source) = with_verbs().find(|source| source.name == command.get_name()) else { return command };
    command.subcommands(SourceWord::list_all(source).map(|word| {
        let other = word.other.clone();
        with_params(Command::new(Str::from(word.name.clone())), &word, &format!("nudge {}", source.name))
            .aliases(other.map(Str::from))
    }))
}

/// Adds the params of the verb that has the command's name, for a verb that needs no source.
fn with_params_alone(command: Command) -> Command {
    match list_own_commands().find(|(_, word)| word.name == command.get_name()) {
        Some((_, word)) => with_params(command, &word, "nudge"),
        None => command,
    }
}

/// Adds the params of a verb and an example. `before` are the words before the verb in the example.
fn with_params(command: Command, word: &SourceWord, before: &str) -> Command {
    let params = word.list_params();
    let needed = params.iter().filter(|param| param.is_required || param.is_argument);
    let needed = needed.map(|param| {
        let value = if param.is_words() { "WORDS".to_owned() } else { param.name.to_ascii_uppercase() };
        if param.is_positional() { value } else { format!("--{} {value}", param.flag_name()) }
    });
    let words = match word.method.example {
        Some(words) if word.edited.is_none() => words.to_owned(),
        _ => needed.collect::<Vec<_>>().join(" "),
    };
    let example = format!("  {before} {} {words}", word.name);
    let example = example.trim_end();
    let command = command.args(params.iter().map(VerbParam::to_arg));
    let command = if word.method.context == ContextUse::None { command } else { ContextFlags::augment_args(command) };
    // Sets the description last, because the flags of the context would replace it with their own.
    command.about(word.about_text()).long_about(None).after_help(format!("Example:\n{example}"))
}

/// Lists the verbs that are commands without a source, each with its source.
fn list_own_commands() -> impl Iterator<Item = (&'static SourceSpec, SourceWord)> {
    let words_of = |source| SourceWord::list_all(source).map(move |word| (source, word));
    with_verbs().flat_map(words_of).filter(|(_, word)| word.method.is_command && word.edited.is_none())
}

/// Lists the names of the verbs that are commands without a source.
#[cfg(test)]
pub fn command_names() -> Vec<String> {
    list_own_commands().map(|(_, word)| word.name).collect()
}

impl Subcommand for SourceVerb {
    fn augment_subcommands(command: Command) -> Command {
        let by_itself = |(_, word): (_, SourceWord)| {
            let about = word.about_text();
            Command::new(Str::from(word.name)).about(about).defer(with_params_alone)
        };
        command.subcommands(with_verbs().map(self::build_command)).subcommands(list_own_commands().map(by_itself))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        with_verbs().any(|source| source.name == name || source.name.strip_suffix('s') == Some(name))
            || list_own_commands().any(|(_, word)| word.name == name)
    }
}

impl FromArgMatches for SourceVerb {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let unknown = || clap::Error::new(clap::error::ErrorKind::InvalidSubcommand);
        let (name, inner) = matches.subcommand().ok_or_else(unknown)?;
        let (source, word, args) = if let Some(source) = with_verbs().find(|source| source.name == name) {
            let (wanted, args) = inner.subcommand().ok_or_else(unknown)?;
            let word = SourceWord::list_all(source).find(|word| word.name == wanted);
            (source, word.ok_or_else(unknown)?, args)
        } else {
            let (source, word) = list_own_commands().find(|(_, word)| word.name == name).ok_or_else(unknown)?;
            (source, word, inner)
        };
        let params = word
            .list_params()
            .into_iter()
            .filter_map(|param| Some((param.name.clone(), param.read_value(args)?)))
            .collect();
        let SourceWord { method, long, edited, .. } = word;
        let here = (method.context != ContextUse::None).then(|| ContextFlags::from_arg_matches(args)).transpose()?;
        Ok(Self { source, method, long, edited, params, here })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
