//! `nudge SOURCE VERB`

mod document;
mod edit;

use std::io::IsTerminal as _;
use std::sync::Arc;

use nudge::{Error, ErrorKind, Result, Service as _};
use nudge_app::context::ContextInference;
use nudge_app::unserved::{host_alone, open_alone};
use nudge_app::wire::to_raw;
use nudge_app::{background, settings};
use nudge_client::process_cwd;
use nudge_core::clock::SystemClock;
use nudge_core::source::{CommandHost, LongCommand, SourceSpec, StopFlag};
use nudge_os::programs;
use nudge_server::stop_signal;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::config::write_setting;
use super::watch::{ReaderWait, nobody_reads};
use super::{CommandOutput, RunningSession, TextForm, ask_yes, parse_value, print_text, text_or_stdin, to_raw_output};
use crate::args::{GlobalFlags, SourceVerb};
use crate::output;

pub fn run(call: SourceVerb, global: &GlobalFlags) -> Result<CommandOutput> {
    if let Some(long) = call.long {
        return run_long_command(call, long, global);
    }
    if let Some(edited) = call.edited
        && call.params.keys().all(|name| name == edited.id)
    {
        return edit::run(&call, edited, global);
    }
    if let Some(question) = call.method.question
        && std::io::stdin().is_terminal()
        && !ask_yes(question)
    {
        return Err(Error::invalid("Nothing was changed."));
    }
    let (document, report) = (call.method.document, call.method.report);
    let call = SourceVerb { params: with_stdin(call.params)?, ..call };
    if let Some(pages) = document.filter(|pages| !call.params.contains_key(pages.cursor)) {
        return document::print_pages(call, pages, global);
    }
    let answer = finish_answer(&call, ask_source(call.clone(), global)?, global)?;
    if document.is_some() {
        return Ok(to_raw_output(&answer));
    }
    let Some(report) = report else { return show_result(&answer, global) };
    let report = report(&parse_value(&answer)?);
    let code = u8::from(report.is_refused);
    let shown = if global.json { to_raw_output(&answer) } else { output::render_report(&report).into() };
    Ok(CommandOutput { code, notes: if global.json { Vec::new() } else { report.notes }, ..shown })
}

/// Completes an answer as the method's row says, if the user's settings allow it.
fn finish_answer(call: &SourceVerb, answer: Box<RawValue>, global: &GlobalFlags) -> Result<Box<RawValue>> {
    let Some(finish) = call.method.finish else { return Ok(answer) };
    if !settings::read()?.is_on(finish.setting) {
        return Ok(answer);
    }
    let mut answer = parse_value(&answer)?;
    with_host(call.source, global, |host| {
        (finish.run)(&call.params, &mut answer, host);
        to_raw(&answer)
    })
}

/// Replaces a param that is `-` with the content of stdin.
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

/// Calls the running session. If no session runs, calls the source in this process.
fn ask_source(call: SourceVerb, global: &GlobalFlags) -> Result<Box<RawValue>> {
    match in_session(&call, global) {
        // No server runs, or the server's version does not have the source. If the user names a port, only that server
        // may answer.
        Err(error)
            if call.source.alone
                && global.port.is_none()
                && matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::UnknownMethod) =>
        {
            ask_alone(call)
        }
        result => result,
    }
}

fn show_result(result: &RawValue, global: &GlobalFlags) -> Result<CommandOutput> {
    Ok(if global.json { to_raw_output(result) } else { output::render_plain(&parse_value(result)?).into() })
}

fn in_session(call: &SourceVerb, global: &GlobalFlags) -> Result<Box<RawValue>> {
    let session = RunningSession::open(global)?;
    match &call.here {
        Some(here) => session.call_here(call.method.name, call.params.clone(), here.to_context()),
        None => session.call(call.method.name, &call.params),
    }
}

/// Calls the source in this process.
fn ask_alone(call: SourceVerb) -> Result<Box<RawValue>> {
    let (source, method) = (call.source, call.method);
    let params = with_context(call);
    let opened = open_alone(source, &settings::read()?)?;
    let result = opened.call(method.name, &to_raw(&params)?);
    opened.close();
    result
}

/// Returns the params of a call, with the context of this process.
fn with_context(call: SourceVerb) -> Map<String, Value> {
    let mut params = call.params;
    if let Some(here) = &call.here {
        params.insert("context".into(), Value::Object(here.to_context()));
        ContextInference::default().fill_in(call.method.context, &mut params, process_cwd().as_deref());
    }
    params
}

/// Runs a long command until it is stopped, or until the reader of its output has closed the pipe.
fn run_long_command(call: SourceVerb, long: &LongCommand, global: &GlobalFlags) -> Result<CommandOutput> {
    let source = call.source;
    let params = to_raw(&with_context(call))?;
    with_host(source, global, |host| (long.run)(&params, host))?;
    Ok(String::new().into())
}

/// Runs a part of a source in this process. `run` gets the resources of the command line.
fn with_host<T>(
    source: &SourceSpec,
    global: &GlobalFlags,
    run: impl FnOnce(&CommandHost<'_>) -> Result<T>,
) -> Result<T> {
    let stop = StopFlag::default();
    end_by_signal(&stop)?;
    let gone = stop.clone();
    std::thread::spawn(move || {
        if nobody_reads(ReaderWait::ForIt) {
            gone.set();
        }
    });
    let say = |line: &str, event: &Value| {
        let (text, form) = if global.json {
            (format!("{event}\n"), TextForm::Json)
        } else {
            (format!("{}\n", output::make_visible(line)), TextForm::Pretty)
        };
        if !print_text(&text, form).is_ok_and(|open| open) {
            stop.set();
        }
    };
    let keep = |name: &str, value: &str| keep_setting(source, name, value, global);
    let show = |text: &str, event: &Value| {
        let (text, form) = if global.json {
            (format!("{event}\n"), TextForm::Json)
        } else {
            (output::visible_lines(text), TextForm::Pretty)
        };
        let _ = print_text(&text, form);
    };
    let host = CommandHost {
        clock: Arc::new(SystemClock),
        stop: stop.clone(),
        say: &say,
        keep: &keep,
        show: &show,
        open: &|| host_alone(source, &settings::read()?),
        list: &|name| Ok(settings::read()?.get_list(name)),
        program: &programs::find_program,
        behind: &|words| background::start_in_background(source, words),
    };
    run(&host)
}

/// Writes a setting of a source into the settings file.
fn keep_setting(source: &SourceSpec, name: &str, value: &str, global: &GlobalFlags) -> Result<()> {
    let setting = source.settings.iter().find(|setting| setting.name == name);
    let setting = setting.ok_or_else(|| Error::invalid(format!("There is no setting `{name}`.")))?;
    write_setting(setting, Some(value), global)
}

/// Sets the stop flag when the system asks the process to end.
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
