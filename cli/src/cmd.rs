//! One file per command, and what they share.

mod call;
mod get;
mod query;
pub mod serve;
mod set;
mod status;
mod stop;
mod tour;

use std::io::{Read as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use nudge::{Error, ErrorKind, Method, Result, Service};
use nudge_client::{Remote, RuntimeDir};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::args::{self, Args, Command, Global, Here};
use crate::context::{Inference, client_cwd, process_cwd};
use crate::output;

/// Runs a command. Data goes to stdout; on failure stdout stays empty, and one sentence or, with
/// `--json`, the error object goes to stderr.
pub fn run(args: Args) -> ExitCode {
    let global = args.global;
    let done = match args.command {
        Command::Serve(args) => return serve_forever(args, &global),
        Command::Call(args) => call::run(&args, &global),
        Command::Set(args) => set::run(*args, &global),
        Command::Get(args) => get::run(args, &global),
        Command::Query(args) => query::run(args, &global),
        Command::Status => status::run(&global),
        Command::Stop => stop::run(&global),
        Command::Try => tour::run(),
    };
    match done {
        Ok(text) => {
            let written = std::io::stdout().write_all(text.as_bytes());
            // A reader that has gone away, as in `nudge query | head`, is no failure.
            match written {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    report(&Error::new(ErrorKind::Quota, format!("The result cannot be written: {error}.")), &global);
                    ExitCode::from(4)
                }
                _ => ExitCode::SUCCESS,
            }
        }
        Err(error) => {
            report(&error, &global);
            ExitCode::from(output::exit_code(&error))
        }
    }
}

fn report(error: &Error, global: &Global) {
    let text =
        if global.json { error.to_json().to_string() } else { format!("nudge: {}", output::visible(error.message())) };
    // Nobody may be reading; the exit code still says it.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A server that cannot serve exits with 1, whatever the reason (contract section 8).
fn serve_forever(args: args::Serve, global: &Global) -> ExitCode {
    match serve_args(args, global).and_then(serve::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error, global);
            ExitCode::FAILURE
        }
    }
}

fn serve_args(args: args::Serve, global: &Global) -> Result<serve::ServeArgs> {
    let count = |flag: Option<usize>| flag.map(|count| count.to_string());
    let flag = |name: &str| match name {
        "NUDGE_MAX_HINTS" => count(args.max_hints),
        "NUDGE_MAX_COMPONENTS" => count(args.max_components),
        "NUDGE_MAX_HINTS_PER_COMPONENT" => count(args.max_hints_per_component),
        "NUDGE_MAX_BYTES" => count(args.max_bytes),
        "NUDGE_DEFAULT_TTL" => args.default_ttl.clone(),
        "NUDGE_SUGGEST_MAX" => count(args.suggest_max),
        "NUDGE_SECRET_GUARD" => args.no_secret_guard.then(|| "0".into()),
        _ => None,
    };
    let config = nudge::Config::from_env(|name| flag(name).or_else(|| std::env::var(name).ok()))?;
    let inference = Inference::default();
    let fill_in = move |method: &Method,
                        params: &mut Map<String, Value>,
                        service: &dyn Service,
                        meta: Option<&Map<String, Value>>| {
        inference.fill_in(method, params, client_cwd(meta).as_deref(), service);
    };
    let token = args.token_file.map(|path| std::fs::read_to_string(&path).map_err(|error| (path, error))).transpose();
    let token = token.map_err(|(path, error)| {
        Error::new(ErrorKind::Invalid, format!("The token file {} cannot be read: {error}.", path.display()))
    })?;
    Ok(serve::ServeArgs {
        port: global.port.unwrap_or(serve::DEFAULT_PORT),
        allow_host: args.allow_host,
        no_auth: args.no_auth,
        token: token.map(|token| token.trim().to_owned()),
        fill_in: Some(Arc::new(fill_in)),
        ..serve::ServeArgs::new(config, RuntimeDir::open(global.runtime_dir.as_deref())?)
    })
}

/// The running session of the folder that the flags name.
fn connect(global: &Global) -> Result<Remote> {
    let dir = RuntimeDir::open(global.runtime_dir.as_deref())?;
    let remote = Remote::connect(&dir)?;
    // The token goes to the port that server.pid names and to no other.
    match (global.port, dir.read_server_file()) {
        (Some(asked), Some(file)) if asked != file.port => Err(Error::new(
            ErrorKind::Unavailable,
            format!("No Nudge server of yours listens on port {asked}; the running one listens on {}.", file.port),
        )),
        _ => Ok(remote),
    }
}

/// Calls a method of the running session; fills in the context that `here` leaves out.
fn call(global: &Global, name: &str, mut params: Map<String, Value>, here: Option<&Here>) -> Result<Box<RawValue>> {
    let remote = connect(global)?;
    if let Some(here) = here {
        params.insert("context".into(), Value::Object(given(here)));
        Inference::default().fill_in(method(name)?, &mut params, process_cwd().as_deref(), &remote);
    }
    let params =
        to_raw_value(&params).map_err(|_| Error::new(ErrorKind::Invalid, "The params cannot be written as JSON."))?;
    remote.call(name, &params)
}

fn method(name: &str) -> Result<&'static Method> {
    nudge::methods().into_iter().find(|row| row.name == name).ok_or_else(nudge::unknown_method)
}

/// The flags as a context; an empty flag means unknown.
fn given(here: &Here) -> Map<String, Value> {
    let fields = [("cwd", &here.cwd), ("repo", &here.repo), ("branch", &here.branch), ("os", &here.os)];
    let value = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), value(text.as_deref()?)))).collect()
}

/// The result for people, or as it came with `--json`.
fn render(global: &Global, result: &RawValue, pretty: fn(&Value) -> String) -> Result<String> {
    if global.json {
        return Ok(format!("{}\n", result.get()));
    }
    let value = serde_json::from_str(result.get());
    let value =
        value.map_err(|_| Error::new(ErrorKind::Unavailable, "The server answered something that is not JSON."))?;
    Ok(pretty(&value))
}

/// The argument, or stdin for `-`.
fn text_or_stdin(argument: String) -> Result<String> {
    if argument != "-" {
        return Ok(argument);
    }
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    read.map_err(|_| Error::new(ErrorKind::Invalid, "Standard input must be UTF-8 text."))?;
    Ok(text)
}

/// Adds a field unless it is empty.
fn add(params: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
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
