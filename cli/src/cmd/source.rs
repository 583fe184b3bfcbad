//! `nudge SOURCE VERB`

use std::sync::Arc;

use nudge::{ErrorKind, Result, Service as _};
use nudge_client::process_cwd;
use nudge_core::clock::SystemClock;
use nudge_core::source::{ChangeEvent, ChangeSink, Fence, Host, Journal, SessionIdentity};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{CommandOutput, RunningSession, json, parsed};
use crate::args::{Global, SourceVerb};
use crate::context::Inference;
use crate::running::{given, raw};
use crate::{output, settings};

pub fn run(call: SourceVerb, global: &Global) -> Result<CommandOutput> {
    let result = match in_session(&call, global) {
        // No server runs, or one of a version that has no such source. Who names a port means that server.
        Err(error)
            if call.source.alone
                && global.port.is_none()
                && matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::UnknownMethod) =>
        {
            alone(call)?
        }
        result => result?,
    };
    Ok(if global.json { json(&result) } else { output::plain(&parsed(&result)?).into() })
}

fn in_session(call: &SourceVerb, global: &Global) -> Result<Box<RawValue>> {
    let session = RunningSession::open(global)?;
    match &call.here {
        Some(here) => session.call_here(call.method.name, call.params.clone(), here),
        None => session.call(call.method.name, &call.params),
    }
}

/// Opens the source in this process.
fn alone(call: SourceVerb) -> Result<Box<RawValue>> {
    let SourceVerb { source, method, mut params, here } = call;
    let values = settings::read()?;
    let opened = (source.open)(Host {
        clock: Arc::new(SystemClock),
        session: SessionIdentity { id: String::new(), created_at: 0 },
        data: settings::data_dir(&values),
        fence: Arc::new(NoSession),
        journal: Arc::new(NoSession),
        records: Box::new(std::iter::empty()),
        changes: Arc::new(NoSession),
        settings: Arc::new(values.of(source.settings)),
    })?;
    if let Some(here) = &here {
        params.insert("context".into(), Value::Object(given(here)));
        Inference::default().fill_in(method.context, &mut params, process_cwd().as_deref());
    }
    let result = opened.call(method.name, &raw(&params)?);
    opened.close();
    result
}

/// What a session has and this process has not: nobody takes the lock from it, follows it, or hears of what it does.
struct NoSession;

impl Fence for NoSession {
    fn commit(&self, keep: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        keep()
    }
}

impl Journal for NoSession {
    fn passed_over(&self, _: usize) {}

    fn append(&self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn is_long(&self) -> bool {
        false
    }

    fn begin_anew(&self, _: &[Vec<u8>]) {}
}

impl ChangeSink for NoSession {
    fn tell(&self, _: &[ChangeEvent]) {}
}
