//! `nudge SOURCE VERB ...`: the words of every source's methods, made from their rows.
//!
//! Required texts are positional, in the order of the schema, but for those that are one of a few words; everything
//! else is a flag: lists take commas and repeated flags alike, a switch is `--name` or `--name=false`, `context` is the
//! flags that all commands have for it, and what has another form is given as JSON.

use clap::builder::Str;
use clap::{Arg, ArgAction, ArgMatches, Args as _, Command, FromArgMatches, Subcommand, value_parser};
use nudge::{ContextUse, Method};
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
    /// Its params, but for the context.
    pub params: Map<String, Value>,
    /// The place of the agent, for a method that takes a context.
    pub here: Option<ContextFlags>,
}

/// The sources that have verbs of this form: the hints, which were there first, have words of their own.
fn with_verbs() -> impl Iterator<Item = &'static SourceSpec> {
    sources::all().iter().skip(1).copied()
}

/// What a source has verbs for: its methods, then its commands that stay.
fn rows(source: &'static SourceSpec) -> impl Iterator<Item = (&'static Method, Option<&'static LongCommand>)> {
    let long = source.commands.iter().map(|command| (&command.row, Some(command)));
    (source.methods)().into_iter().map(|method| (method, None)).chain(long)
}

/// The verb of a method: `nudge.records.search` is `search`.
fn verb(source: &SourceSpec, method: &Method) -> Option<String> {
    let rest = method.name.strip_prefix("nudge.")?.strip_prefix(source.name)?.strip_prefix('.')?;
    Some(rest.replace(['.', '_'], "-"))
}

/// One member of a method's params.
struct Param {
    name: String,
    schema: Value,
    is_required: bool,
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
            .map(|(name, one)| Self { is_required: is_required(name), name: name.clone(), schema: one.clone() })
            .collect()
    }

    fn kind(&self) -> &str {
        self.schema["type"].as_str().unwrap_or_default()
    }

    fn is_list_of_texts(&self) -> bool {
        self.kind() == "array" && self.schema["items"]["type"] == "string"
    }

    /// A word that says how stands behind its flag.
    fn is_positional(&self) -> bool {
        self.is_required && self.kind() == "string" && self.schema["enum"].is_null()
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
            return self.worded(arg.required(true).value_name(value));
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
            "string" => matches.get_one::<String>(&id).map(|text| text.clone().into()),
            _ if self.is_list_of_texts() => {
                matches.get_many::<String>(&id).map(|texts| texts.cloned().map(Value::from).collect())
            }
            _ => matches.get_one::<Value>(&id).cloned(),
        }
    }
}

fn command(source: &'static SourceSpec) -> Command {
    Command::new(source.name)
        // `nudge signal send` as well.
        .aliases(source.name.strip_suffix('s'))
        .about(source.guide)
        .after_help(format!("Example:\n  nudge {} --help", source.name))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .defer(with_own_verbs)
}

/// Adds the verbs of the source that the command is named after. Their schemas are made only where they are needed: not
/// at every start.
fn with_own_verbs(command: Command) -> Command {
    let Some(source) = with_verbs().find(|source| source.name == command.get_name()) else { return command };
    let verbs = rows(source).filter_map(|(method, _)| Some((verb(source, method)?, method)));
    let verbs = verbs.map(|(name, method)| {
        let params = Param::all(method);
        let example = params.iter().filter(|param| param.is_required);
        let example = example.fold(format!("  nudge {} {name}", source.name), |line, param| {
            let value = param.name.to_ascii_uppercase();
            if param.is_positional() { format!("{line} {value}") } else { format!("{line} --{} {value}", param.flag()) }
        });
        let command = Command::new(Str::from(name)).args(params.iter().map(Param::arg));
        let command = if method.context == ContextUse::None { command } else { ContextFlags::augment_args(command) };
        // The flags of the context would describe the command as themselves.
        command.about(method.description).long_about(None).after_help(format!("Example:\n{example}"))
    });
    command.subcommands(verbs)
}

impl Subcommand for SourceVerb {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(with_verbs().map(self::command))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        with_verbs().any(|source| source.name == name || source.name.strip_suffix('s') == Some(name))
    }
}

impl FromArgMatches for SourceVerb {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let unknown = || clap::Error::new(clap::error::ErrorKind::InvalidSubcommand);
        let (name, inner) = matches.subcommand().ok_or_else(unknown)?;
        let source = with_verbs().find(|source| source.name == name).ok_or_else(unknown)?;
        let (wanted, args) = inner.subcommand().ok_or_else(unknown)?;
        let is_named = |method: &Method| verb(source, method).is_some_and(|own| own == wanted);
        let (method, long) = rows(source).find(|(method, _)| is_named(method)).ok_or_else(unknown)?;
        let params = Param::all(method).into_iter().filter_map(|param| Some((param.name.clone(), param.value(args)?)));
        let here = (method.context != ContextUse::None).then(|| ContextFlags::from_arg_matches(args)).transpose()?;
        Ok(Self { source, method, long, params: params.collect(), here })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
