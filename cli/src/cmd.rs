//! The commands, each in its own file, and the code that several commands share.

mod bump;
mod call;
mod config;
mod delete;
mod doctor;
mod edit;
mod editor;
mod export;
mod forget;
mod get;
mod hints;
mod import;
mod init;
mod list;
#[cfg(feature = "model")]
mod model;
mod query;
mod recall;
mod save;
mod seed;
pub mod serve;
mod set;
mod shell;
mod source;
mod stats;
mod status;
mod stop;
mod tour;
mod trust;
mod ui;
mod undo;
mod watch;
mod why;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _, Write};
use std::process::ExitCode;

use nudge::{Error, ErrorKind, Result};
use nudge_agents::ask::ask_yes;
use nudge_agents::hook;
use nudge_agents::running::{RunningSession, connect_session};
use nudge_app::unserved::ReadSources;
use nudge_app::wire::{parsed_as, to_raw};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::args::{CliCommand, GlobalFlags, HintName};
use crate::output;
use crate::usage::{self, ParsedCommandLine};

/// The note on stderr for an answer from the kept data.
const UNSERVED: &str = "no server runs; this is what is kept for the next session";

/// The output of a command, and its exit code.
pub struct CommandOutput {
    text: String,
    form: TextForm,
    code: u8,
    /// The notes to print on stderr.
    notes: Vec<String>,
}

impl From<String> for CommandOutput {
    fn from(text: String) -> Self {
        Self { text, form: TextForm::Pretty, code: 0, notes: Vec::new() }
    }
}

/// The format of a text for stdout. Formats other than the pretty one are written byte for byte. On a terminal, control
/// characters are escaped in every format, because a stored value must not control the terminal.
#[derive(Clone, Copy)]
enum TextForm {
    /// Coloured text for users; its control characters are already escaped.
    Pretty,
    /// JSON for programs.
    Json,
    /// A value exactly as stored.
    Bare,
}

/// Runs a command line. Data goes to stdout. After an error stdout is empty, and stderr has one sentence, or the error
/// object with `--json`. There is one exception: an export prints page by page, so an error after the first page leaves
/// incomplete JSON on stdout.
pub fn run_command_line(words: &[OsString]) -> ExitCode {
    let hook = words.get(1).is_some_and(|word| word == "hook");
    let (args, verb) = match usage::read(words) {
        ParsedCommandLine::Run { args, verb } => (*args, verb),
        ParsedCommandLine::Tell(text) => {
            return finish_command(Ok(CommandOutput::from(text.ansi().to_string())), false, "");
        }
        ParsedCommandLine::Wrong { error, json } => {
            let code = finish_command(Err(error), json, "");
            // For a client, any other exit code of a hook means that the hook itself has failed.
            return if hook { ExitCode::SUCCESS } else { code };
        }
    };
    let global = args.global;
    let done = match args.command {
        CliCommand::Serve(args) => serve::run(&args, &global),
        CliCommand::Set(args) => set::run(&args, &global),
        CliCommand::Get(args) => get::run(args, &global),
        CliCommand::Query(args) => query::run(args, &global),
        CliCommand::Ls(args) => list::run(args, &global),
        CliCommand::Why(args) => why::run(&args, &global),
        CliCommand::Edit(args) => edit::run(&args, &global),
        CliCommand::Delete(args) => delete::run(args, &global),
        CliCommand::Undo(args) => undo::run(&args, &global),
        CliCommand::Bump(args) => bump::run(args, &global),
        CliCommand::Export(args) => export::run(args, &global),
        CliCommand::Import(args) => import::run(&args, &global),
        CliCommand::Watch(args) => watch::run(&args, &global),
        CliCommand::Recall(args) => recall::run(&args, &global),
        CliCommand::Config(args) => config::run(&args, &global),
        CliCommand::Status => status::run(&global),
        CliCommand::Stop => stop::run(&global),
        CliCommand::Seed(args) => seed::run(&args, &global),
        CliCommand::Save(args) => save::run(&args, &global),
        CliCommand::Trust(args) => trust::run(&args, &global),
        CliCommand::Forget(args) => forget::run(&args, &global),
        CliCommand::Hints { action } => hints::run(&action, &global),
        #[cfg(feature = "model")]
        CliCommand::Model(args) => model::run(&args, &global),
        CliCommand::Init(args) => init::run(&args),
        CliCommand::Doctor(args) => doctor::run(&args, &global),
        CliCommand::Stats => stats::run(&global),
        CliCommand::Hook => hook::run_hook(&global),
        CliCommand::Source(call) => source::run(call, &global),
        CliCommand::Call(args) => call::run(&args, &global),
        CliCommand::Ui(args) => ui::run(&args, &global),
        CliCommand::Try => tour::run(),
        CliCommand::Completions(args) => shell::print_completions(&args),
        CliCommand::Man(args) => shell::print_manual(&args),
    };
    finish_command(done, global.json, &verb)
}

fn finish_command(done: Result<CommandOutput>, json: bool, verb: &str) -> ExitCode {
    let printed = done.and_then(|done| {
        print_text(&done.text, done.form).map_err(|error| unwritten(&error))?;
        done.notes.iter().for_each(|note| print_note(&output::make_visible(note)));
        Ok(done.code)
    });
    match printed {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let text = if json {
                output::visible_json(&error.to_json().to_string())
            } else {
                format!("nudge: {}", output::make_visible(&usage::describe_error(&error, verb)))
            };
            // Ignores a closed stderr, because the exit code still reports the error.
            let _ = writeln!(std::io::stderr(), "{text}");
            // `serve` exits with 1 here, because 3 means that no server runs.
            let code =
                if verb == "serve" && error.kind() == ErrorKind::Unavailable { 1 } else { output::exit_code(&error) };
            ExitCode::from(code)
        }
    }
}

/// Writes to stdout, with colours if stdout is a terminal. Returns false when the reader has closed the pipe, as in
/// `nudge query | head`; this is no error.
fn print_text(text: &str, form: TextForm) -> std::io::Result<bool> {
    let mut stdout = std::io::stdout().lock();
    let write = |out: &mut dyn Write, text: &str| out.write_all(text.as_bytes()).and_then(|()| out.flush());
    let written = match (form, stdout.is_terminal()) {
        (TextForm::Pretty, _) => write(&mut anstream::AutoStream::auto(stdout), text),
        (_, false) => write(&mut stdout, text),
        (TextForm::Json, true) => write(&mut stdout, &output::visible_json(text)),
        (TextForm::Bare, true) => write(&mut stdout, &output::visible_lines(text)),
    };
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the error for a result that cannot be written, for example because the disk is full.
fn unwritten(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Quota, format!("The result cannot be written ({error}); make room and try again."))
}

/// Prints a note on stderr, in addition to the result.
fn print_note(text: &str) {
    let _ = writeln!(std::io::stderr(), "nudge: {text}");
}

/// Opens the session for a command that only reads. If no server runs, notes that the kept data answers.
fn open_to_read(global: &GlobalFlags, wanted: ReadSources) -> Result<RunningSession> {
    let session = RunningSession::open_to_read(global, wanted)?;
    if session.is_unserved {
        print_note(UNSERVED);
    }
    Ok(session)
}

/// Renders a result for users, or as raw JSON with `--json`.
fn render_answer<T: DeserializeOwned>(
    session: &RunningSession,
    result: &RawValue,
    pretty: impl FnOnce(&T) -> String,
) -> Result<CommandOutput> {
    Ok(if session.json { to_raw_output(result) } else { pretty(&parsed_as(result)?).into() })
}

/// Adds the values of secrets to the rows of a result. Only an export contains such values.
fn reveal_secrets(session: &RunningSession, result: &RawValue, rows: &str) -> Result<Box<RawValue>> {
    let mut value = parse_value(result)?;
    let mut exports = BTreeMap::new();
    let secret = |row: &&mut Value| row["hint"]["meta"]["sensitivity"] == "secret";
    for row in value[rows].as_array_mut().into_iter().flatten().filter(secret) {
        let hint = &mut row["hint"];
        let (Some(name), Some(key)) = (hint["component"].as_str(), hint["key"].as_str()) else { continue };
        let component = match exports.entry(name.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let exported = export_with_secrets(session, new.key())?;
                new.insert(exported)
            }
        };
        let others = component["variants"][key].as_array().into_iter().flatten();
        let same = |other: &&Value| other["meta"]["scope"] == hint["meta"]["scope"];
        if let Some(found) = std::iter::once(&component["hints"][key]).chain(others).find(same) {
            hint["value"] = found["value"].clone();
        }
    }
    to_raw(&value)
}

/// Exports a whole component, with its secrets.
fn export_with_secrets(session: &RunningSession, component: &str) -> Result<Value> {
    let mut params = Map::new();
    add_field(&mut params, "component", component);
    add_field(&mut params, "include_secrets", true);
    let mut export = parse_value(&session.call("nudge.export", &params)?)?;
    Ok(export["payload"]["components"][component].take())
}

/// Returns a result as raw JSON.
fn to_raw_output(result: &RawValue) -> CommandOutput {
    CommandOutput { form: TextForm::Json, ..format!("{}\n", result.get()).into() }
}

fn parse_value(result: &RawValue) -> Result<Value> {
    parsed_as(result)
}

/// Asks the user to agree. Does not ask if `yes` is true.
///
/// # Errors
/// `E_INVALID` when there is no user to ask, or when the user does not agree.
fn ask_consent(yes: bool, question: &str) -> Result<()> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Error::invalid(format!("{question} Nobody can be asked here; add --yes.")));
    }
    if ask_yes(question) { Ok(()) } else { Err(Error::invalid("Nothing was changed.")) }
}

/// Returns the text, or the whole stdin if the text is `-`.
fn text_or_stdin(text: String) -> Result<String> {
    if text != "-" {
        return Ok(text);
    }
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|_| Error::invalid("Standard input must be UTF-8 text."))?;
    Ok(text)
}

/// Adds a field if its value is not empty.
pub fn add_field(params: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let value = value.into();
    let empty = match &value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    if !empty {
        params.insert(name.into(), value);
    }
}

/// Returns params with the component and key with which most commands begin.
fn to_name_params(name: &HintName) -> Map<String, Value> {
    let mut params = Map::new();
    add_field(&mut params, "component", name.component.clone());
    add_field(&mut params, "key", name.key.clone());
    params
}
