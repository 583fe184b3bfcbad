//! `nudge SOURCE VERB`

mod edit;

use std::sync::Arc;

use nudge::{Error, ErrorKind, Result, Service as _};
use nudge_client::process_cwd;
use nudge_core::clock::SystemClock;
use nudge_core::settings::Values;
use nudge_core::source::{CommandHost, Host, LongCommand, Source, SourceSpec, StopFlag};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::watch::{Wait, nobody_reads};
use super::{CommandOutput, Form, RunningSession, json, parsed, print, text_or_stdin};
use crate::args::{Global, SourceVerb};
use crate::context::Inference;
use crate::running::{given, raw};
use crate::server::stop_signal;
use crate::{output, settings, sources};

pub fn run(call: SourceVerb, global: &Global) -> Result<CommandOutput> {
    if let Some(long) = call.long {
        return stay(call, long, global);
    }
    if let Some(edited) = call.edited
        && call.params.keys().all(|name| name == edited.id)
    {
        return edit::run(&call, edited, global);
    }
    let (is_document, report) = (call.method.is_document, call.method.report);
    let call = SourceVerb { params: with_stdin(call.params)?, ..call };
    let answer = answer(call, global)?;
    if is_document {
        return Ok(json(&answer));
    }
    let Some(report) = report else { return shown(&answer, global) };
    let report = report(&parsed(&answer)?);
    let code = u8::from(report.is_refused);
    let shown = if global.json { json(&answer) } else { output::report(&report).into() };
    Ok(CommandOutput { code, notes: if global.json { Vec::new() } else { report.notes }, ..shown })
}

/// Puts stdin in the place of a text that is `-`.
fn with_stdin(mut params: Map<String, Value>) -> Result<Map<String, Value>> {
    let mut from_stdin = params.iter_mut().filter(|(_, value)| value.as_str() == Some("-"));
    let Some((_, first)) = from_stdin.next() else { return Ok(params) };
    if from_stdin.next().is_some() {
        return Err(Error::invalid("Only one text can come from stdin; write the others as arguments."));
    }
    let text = text_or_stdin("-".to_owned())?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    if text.is_empty() {
        return Err(Error::invalid("Nothing came in on stdin; write the text there, or as an argument."));
    }
    *first = text.into();
    Ok(params)
}

/// Asks the running session, and where there is none the source itself.
fn answer(call: SourceVerb, global: &Global) -> Result<Box<RawValue>> {
    match in_session(&call, global) {
        // No server runs, or one of a version that has no such source. Who names a port means that server.
        Err(error)
            if call.source.alone
                && global.port.is_none()
                && matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::UnknownMethod) =>
        {
            alone(call)
        }
        result => result,
    }
}

fn shown(result: &RawValue, global: &Global) -> Result<CommandOutput> {
    Ok(if global.json { json(result) } else { output::plain(&parsed(result)?).into() })
}

fn in_session(call: &SourceVerb, global: &Global) -> Result<Box<RawValue>> {
    let session = RunningSession::open(global)?;
    match &call.here {
        Some(here) => session.call_here(call.method.name, call.params.clone(), here),
        None => session.call(call.method.name, &call.params),
    }
}

/// Asks the source in this process.
fn alone(call: SourceVerb) -> Result<Box<RawValue>> {
    let (source, method) = (call.source, call.method);
    let params = with_context(call);
    let opened = open_alone(source, &settings::read()?)?;
    let result = opened.call(method.name, &raw(&params)?);
    opened.close();
    result
}

/// Opens a source in this process.
pub fn open_alone(source: &SourceSpec, values: &Values) -> Result<Arc<dyn Source>> {
    let data = settings::data_dir(values);
    (source.open)(Host {
        cache: settings::cache_dir(values),
        models: sources::models(values, &data, Arc::new(SystemClock)),
        settings: Arc::new(values.of(source.settings)),
        data: data.clone(),
        ..Host::alone(data.path(), source, &[])?
    })
}

/// The params of a call with what this process knows of where it is.
fn with_context(call: SourceVerb) -> Map<String, Value> {
    let mut params = call.params;
    if let Some(here) = &call.here {
        params.insert("context".into(), Value::Object(given(here)));
        Inference::default().fill_in(call.method.context, &mut params, process_cwd().as_deref());
    }
    params
}

/// Runs a command that stays, until it is stopped or nobody reads what it says.
fn stay(call: SourceVerb, long: &LongCommand, global: &Global) -> Result<CommandOutput> {
    let stop = StopFlag::default();
    end_by_signal(&stop)?;
    let gone = stop.clone();
    std::thread::spawn(move || {
        if nobody_reads(Wait::ForIt) {
            gone.set();
        }
    });
    let say = |line: &str, event: &Value| {
        let (text, form) = if global.json {
            (format!("{event}\n"), Form::Json)
        } else {
            (format!("{}\n", output::visible(line)), Form::Pretty)
        };
        if !print(&text, form).is_ok_and(|open| open) {
            stop.set();
        }
    };
    let params = raw(&with_context(call))?;
    (long.run)(&params, &CommandHost { clock: Arc::new(SystemClock), stop: stop.clone(), say: &say })?;
    Ok(String::new().into())
}

/// Sets the flag when the process is asked to end.
fn end_by_signal(stop: &StopFlag) -> Result<()> {
    let failed = |error| Error::unavailable(format!("Signals cannot be waited for ({error}); try again."));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().map_err(failed)?;
    let signal = {
        let _inside = runtime.enter();
        stop_signal().map_err(failed)?
    };
    let stop = stop.clone();
    std::thread::spawn(move || {
        runtime.block_on(signal);
        stop.set();
    });
    Ok(())
}
