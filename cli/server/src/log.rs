//! The log of the server: events, callers and durations. At no level does the log contain params, results, tokens or
//! environments.

use std::sync::Mutex;
use std::time::Instant;

use nudge::{Caller, Error, JoinedServices, MethodSpec, Result, Service, unknown_method};
use nudge_client::RuntimeDir;
use serde_json::value::RawValue;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Returns the level with this name; `info` for any other name.
pub fn parse_level(name: &str) -> LevelFilter {
    match name {
        "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "debug" => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    }
}

/// Writes the log to `server.log` in the runtime directory if `to_file` is true, otherwise to stderr for a user.
///
/// # Errors
/// `E_UNAVAILABLE` when the file cannot be used.
pub fn start_log(level: LevelFilter, dir: &RuntimeDir, to_file: bool) -> Result<()> {
    if to_file {
        init_subscriber(level, Mutex::new(dir.open_log()?), false);
    } else {
        init_subscriber(level, std::io::stderr, true);
    }
    Ok(())
}

fn init_subscriber<W>(level: LevelFilter, writer: W, for_people: bool)
where
    W: for<'a> tracing_subscriber::fmt::MakeWriter<'a> + Send + Sync + 'static,
{
    let format = tracing_subscriber::fmt::layer().with_writer(writer).with_target(false).with_ansi(false);
    // Logs only Nudge's own lines, because libraries print whole messages at debug level.
    let ours = Targets::new().with_target("nudge_", level);
    let registry = tracing_subscriber::registry().with(ours);
    // If the process has a log already, as in tests, the first log stays.
    let _ = if for_people { registry.with(format.without_time()).try_init() } else { registry.with(format).try_init() };
}

/// Logs every call to the services at debug level.
pub struct LoggedServices(pub JoinedServices);

impl Service for LoggedServices {
    fn methods(&self) -> Vec<&'static MethodSpec> {
        self.0.methods()
    }

    fn find_method(&self, name: &str) -> Option<&'static MethodSpec> {
        self.0.find_method(name)
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let Some((service, row)) = self.0.find_service(method) else {
            // The log does not contain the name, because a caller may send any text as name.
            tracing::debug!(method = "an unknown method", by = ?caller.name, "call");
            return Err(unknown_method(method, &self.0.methods()));
        };
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return service.call_by(caller, row.name, params);
        }
        let begun = Instant::now();
        let result = service.call_by(caller, row.name, params);
        let micros = begun.elapsed().as_micros();
        let answer = result.as_ref().map_or_else(Error::reason, |_| "ok");
        tracing::debug!(method = row.name, by = ?caller.name, answer, micros, "call");
        result
    }
}
