//! `nudge SOURCE VERB ...`: the words of every source's methods, made from their rows. A verb that is a command by itself
//! needs no source: `nudge ask`.
//!
//! Required texts and numbers are positional, in the order of the schema, unless they are one of a few words. The
//! argument that a row names is positional, too. Everything else is a flag: lists take commas and repeated flags alike,
//! a switch is `--name` or `--name=false`, `context` is the flags that all commands have for it, and values of another
//! form are given as JSON.

use clap::builder::Str;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, FromArgMatches, Subcommand, value_parser};
use nudge::{ContextUse, Method};
use nudge_core::service::Edited;
use nudge_core::source::{LongCommand, SourceSpec};
use serde_json::{Map, Value};

use super::ContextFlags;
use crate::sources;

/// A call of a source's method.
#[derive(Debug, Clone)]
pub struct SourceVerb {
    /// The source.
    pub source: &'static SourceSpec,
    /// The method that is called; the row of the command that stays, where it is one.
    pub method: &'static Method,
    /// The command that stays.
    pub long: Option<&'static LongCommand>,
    /// How it is changed in an editor, where that is the verb.
    pub edited: Option<&'static Edited>,
    /// The params, without the context.
    pub params: Map<String, Value>,
    /// The place of the agent, for a method that takes a context.
    pub here: Option<ContextFlags>,
}

/// The sources that have verbs of this form: the hints, which were there first, have words of their own.
fn with_verbs() -> impl Iterator<Item = &'static SourceSpec> {
    sources::all().iter().skip(1).copied()
}

/// A verb of a source.
struct Word {
    name: String,
    /// Another word that is taken, too.
    other: Option<String>,
    method: &'static Method,
    long: Option<&'static LongCommand>,
    edited: Option<&'static Edited>,
}

impl Word {
    /// Returns the verbs of a source: of its methods, then of its commands that stay.
    fn all(source: &'static SourceSpec) -> impl Iterator<Item = Self> {
        let of_method = |method: &'static Method| {
            let call = Self::of(source, method);
            let edit = method.edited.map(|edited| Self {
                name: "edit".to_owned(),
                other: None,
                method,
                long: None,
                edited: Some(edited),
            });
            call.into_iter().chain(edit)
        };
        let stays =
            |command: &'static LongCommand| Some(Self { long: Some(command), ..Self::of(source, &command.row)? });
        (source.methods)().into_iter().flat_map(of_method).chain(source.commands.iter().filter_map(stays))
    }

    /// Returns the verb of a method: `nudge.records.search` is `search`, unless its row says another word; then both
    /// are taken.
    fn of(source: &SourceSpec, method: &'static Method) -> Option<Self> {
        let rest = method.name.strip_prefix("nudge.")?.strip_prefix(source.name)?.strip_prefix('.')?;
        let own = rest.replace(['.', '_'], "-");
        let (name, other) = match method.verb {
            Some(verb) => (verb.to_owned(), Some(own)),
            None => (own, None),
        };
        Some(Self { name, other, method, long: None, edited: None })
    }

    /// Returns the params that it takes, without the context. An edit requires the id.
    fn params(&self) -> Vec<Param> {
        let mut params = Param::all(self.method);
        if let Some(edited) = self.edited {
            for param in params.iter_mut().filter(|param| param.name == edited.id) {
                param.is_required = true;
                param.schema["description"] = "The one to change.".into();
            }
        }
        params
    }

    fn about(&self) -> &'static str {
        match self.edited {
            Some(_) => "Change one, in $VISUAL or $EDITOR or by flags; stored only if nobody changed it meanwhile.",
            None => self.method.description,
        }
    }
}

/// A member of a method's params.
struct Param {
    name: String,
    schema: Value,
    is_required: bool,
    /// It stands without a flag, though it is not required.
    is_argument: bool,
}

impl Param {
    /// Returns the params of a method, without its context.
    fn all(method: &Method) -> Vec<Self> {
        let schema = (method.params)();
        let is_required =
            |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|own| own == name));
        let members = schema["properties"].as_object().into_iter().flatten();
        let params = members.filter(|(name, _)| *name != "context" || method.context == ContextUse::None);
        params
            .map(|(name, one)| Self {
                is_required: is_required(name),
                is_argument: method.argument == Some(&**name),
                name: name.clone(),
                schema: one.clone(),
            })
            .collect()
    }

    fn kind(&self) -> &str {
        self.schema["type"].as_str().unwrap_or_default()
    }

    fn is_list_of_texts(&self) -> bool {
        self.kind() == "array" && self.schema["items"]["type"] == "string"
    }

    /// A list of numbers, such as of records.
    fn is_list_of_numbers(&self) -> bool {
        self.kind() == "array" && self.schema["items"]["type"] == "integer"
    }

    /// Returns true for a question in words, which need no quotes.
    fn is_words(&self) -> bool {
        matches!(self.name.as_str(), "query" | "task_description") && self.kind() == "string"
    }

    /// A word that says how stands behind its flag.
    fn is_positional(&self) -> bool {
        let is_plain = matches!(self.kind(), "string" | "integer") || self.is_list_of_numbers();
        (self.is_required || self.is_argument) && is_plain && self.schema["enum"].is_null()
    }

    fn flag(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Kept apart from the flags of every command.
    fn id(&self) -> String {
        format!("param {}", self.name)
    }

    fn arg(&self) -> Arg {
        let arg = Arg::new(Str::from(self.id()));
        let arg = match self.schema["description"].as_str() {
            Some(help) => arg.help(help.to_owned()),
            None => arg,
        };
        let value = self.name.to_ascii_uppercase();
        if self.is_positional() {
            let arg = arg.required(self.is_required).value_name(value);
            return match self.kind() {
                "integer" => arg.value_parser(value_parser!(i64)),
                "array" => arg.value_parser(value_parser!(i64)).num_args(1..).value_delimiter(','),
                _ if self.is_words() => arg.num_args(1..).value_name("WORDS"),
                _ => self.worded(arg),
            };
        }
        let arg = arg.long(self.flag()).required(self.is_required);
        match self.kind() {
            "boolean" => {
                let arg = arg.value_name("BOOL").value_parser(value_parser!(bool));
                arg.num_args(0..=1).require_equals(true).default_missing_value("true")
            }
            "integer" => arg.value_name("N").value_parser(value_parser!(i64)).allow_negative_numbers(true),
            "number" => arg.value_name("X").value_parser(value_parser!(f64)).allow_negative_numbers(true),
            "string" => self.worded(arg.value_name(value)),
            _ if self.is_list_of_texts() => arg.value_name(value).action(ArgAction::Append).value_delimiter(','),
            _ if self.is_list_of_numbers() => {
                arg.value_name(value).value_parser(value_parser!(i64)).action(ArgAction::Append).value_delimiter(',')
            }
            _ => arg.value_name("JSON").value_parser(|text: &str| {
                serde_json::from_str::<Value>(text).map_err(|error| format!("this is not JSON ({error})"))
            }),
        }
    }

    /// The argument with the words of the enumeration, where the param is one.
    fn worded(&self, arg: Arg) -> Arg {
        match self.schema["enum"].as_array() {
            Some(words) => {
                let words: Vec<_> = words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                arg.value_parser(words)
            }
            None => arg,
        }
    }

    /// Returns the value that a command line gives it.
    fn value(&self, matches: &ArgMatches) -> Option<Value> {
        let id = self.id();
        match self.kind() {
            "boolean" => matches.get_one::<bool>(&id).map(|on| Value::Bool(*on)),
            "integer" => matches.get_one::<i64>(&id).map(|number| (*number).into()),
            "number" => matches.get_one::<f64>(&id).map(|number| (*number).into()),
            "string" if self.is_words() => {
                let words = matches.get_many::<String>(&id)?.map(String::as_str);
                Some(words.collect::<Vec<_>>().join(" ").into())
            }
            "string" => matches.get_one::<String>(&id).map(|text| text.clone().into()),
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

/// Returns a source's description. The rest of its guide names tools, which are for models.
fn about(source: &SourceSpec) -> &'static str {
    source.guide.split_once(": ").map_or(source.guide, |(about, _)| about)
}

fn command(source: &'static SourceSpec) -> Command {
    Command::new(source.name)
        // `nudge signal send` as well.
        .aliases(source.name.strip_suffix('s'))
        .about(about(source))
        .after_help(format!("Example:\n  nudge {} --help", source.name))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .defer(with_own_verbs)
}

/// Adds the verbs of the source that the command is named after. Their schemas are made only where they are needed: not
/// at every start.
fn with_own_verbs(command: Command) -> Command {
    let Some(source) = with_verbs().find(|source| source.name == command.get_name()) else { return command };
    command.subcommands(Word::all(source).map(|word| {
        let other = word.other.clone();
        with_params(Command::new(Str::from(word.name.clone())), &word, &format!("nudge {}", source.name))
            .aliases(other.map(Str::from))
    }))
}

/// Adds the params of the verb that the command is, without its source.
fn with_params_alone(command: Command) -> Command {
    match commands().find(|(_, word)| word.name == command.get_name()) {
        Some((_, word)) => with_params(command, &word, "nudge"),
        None => command,
    }
}

/// Adds the params of a verb, and an example with the words before it.
fn with_params(command: Command, word: &Word, before: &str) -> Command {
    let params = word.params();
    let needed = params.iter().filter(|param| param.is_required || param.is_argument);
    let needed = needed.map(|param| {
        let value = if param.is_words() { "WORDS".to_owned() } else { param.name.to_ascii_uppercase() };
        if param.is_positional() { value } else { format!("--{} {value}", param.flag()) }
    });
    let words = match word.method.example {
        Some(words) if word.edited.is_none() => words.to_owned(),
        _ => needed.collect::<Vec<_>>().join(" "),
    };
    let example = format!("  {before} {} {words}", word.name);
    let example = example.trim_end();
    let command = command.args(params.iter().map(Param::arg));
    let command = if word.method.context == ContextUse::None { command } else { ContextFlags::augment_args(command) };
    // The flags of the context would describe the command as themselves.
    command.about(word.about()).long_about(None).after_help(format!("Example:\n{example}"))
}

/// The verbs that are commands by themselves, each with its source.
fn commands() -> impl Iterator<Item = (&'static SourceSpec, Word)> {
    let of = |source| Word::all(source).map(move |word| (source, word));
    with_verbs().flat_map(of).filter(|(_, word)| word.method.is_command && word.edited.is_none())
}

/// The words of the verbs that are commands by themselves.
#[cfg(test)]
pub fn command_names() -> Vec<String> {
    commands().map(|(_, word)| word.name).collect()
}

impl Subcommand for SourceVerb {
    fn augment_subcommands(command: Command) -> Command {
        let by_itself = |(_, word): (_, Word)| {
            let about = word.about();
            Command::new(Str::from(word.name)).about(about).defer(with_params_alone)
        };
        command.subcommands(with_verbs().map(self::command)).subcommands(commands().map(by_itself))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        with_verbs().any(|source| source.name == name || source.name.strip_suffix('s') == Some(name))
            || commands().any(|(_, word)| word.name == name)
    }
}

impl FromArgMatches for SourceVerb {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let unknown = || clap::Error::new(clap::error::ErrorKind::InvalidSubcommand);
        let (name, inner) = matches.subcommand().ok_or_else(unknown)?;
        let (source, word, args) = if let Some(source) = with_verbs().find(|source| source.name == name) {
            let (wanted, args) = inner.subcommand().ok_or_else(unknown)?;
            let word = Word::all(source).find(|word| word.name == wanted);
            (source, word.ok_or_else(unknown)?, args)
        } else {
            let (source, word) = commands().find(|(_, word)| word.name == name).ok_or_else(unknown)?;
            (source, word, inner)
        };
        let params =
            word.params().into_iter().filter_map(|param| Some((param.name.clone(), param.value(args)?))).collect();
        let Word { method, long, edited, .. } = word;
        let here = (method.context != ContextUse::None).then(|| ContextFlags::from_arg_matches(args)).transpose()?;
        Ok(Self { source, method, long, edited, params, here })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
