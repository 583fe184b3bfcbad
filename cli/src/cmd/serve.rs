//! `nudge serve`

mod detach;

use std::env;
use std::io::{IsTerminal, Write as _, stderr, stdin};
use std::sync::Arc;

use nudge::{Config, EnvNames, Error, ErrorKind, Method, Result};
use nudge_client::RuntimeDir;
use serde_json::{Map, Value};
use tracing::level_filters::LevelFilter;

use super::Done;
use crate::args::{Global, Serve};
use crate::context::{Inference, client_cwd};
use crate::server::door::{Door, Token};
use crate::server::fill_in::FillIn;
use crate::server::history::History;
use crate::server::role::{self, Asks, Settings};
use crate::server::{self, Stdio, log};

/// The port tried first.
pub const DEFAULT_PORT: u16 = 8765;

/// What `nudge serve` is told.
struct ServeArgs {
    settings: Settings,
    /// How much is logged.
    log_level: LevelFilter,
    /// In the background: nobody is on stdin.
    detached: bool,
}

/// `nudge serve`
pub fn run(args: Serve, global: &Global) -> Result<Done> {
    if args.detach {
        return detach::run(read(args, global)?, global.json);
    }
    serve(read(args, global)?)?;
    Ok(String::new().into())
}

/// What cannot be read must not count as not set: `NUDGE_AUTH` and the limits are protections.
fn check_variables() -> Result<()> {
    let ours = |name: &str| name.starts_with("NUDGE_") && name != "NUDGE_RUNTIME_DIR";
    for (name, value) in env::vars_os() {
        if let (Some(name), None) = (name.to_str().filter(|name| ours(name)), value.to_str()) {
            let message = format!("{name} is not UTF-8 text; correct it or unset it.");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    }
    Ok(())
}

fn read(args: Serve, global: &Global) -> Result<ServeArgs> {
    check_variables()?;
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
    let config = Config::from_env(|name| flag(name).or_else(|| env::var(name).ok()))?;
    let token = args.token_file.map(|path| std::fs::read_to_string(&path).map_err(|error| (path, error))).transpose();
    let token = token.map_err(|(path, error)| {
        Error::new(ErrorKind::Invalid, format!("The token file {} cannot be read: {error}.", path.display()))
    })?;
    let settings = Settings {
        dir: RuntimeDir::create(global.runtime_dir.as_deref())?,
        port: global.port.unwrap_or(DEFAULT_PORT),
        allow_host: args.allow_host,
        asks: asks(args.no_auth, token.map(|token| token.trim().to_owned()))?,
        config,
        journal: switch("NUDGE_JOURNAL")?,
    };
    // A name that cannot be is told of now, also where it is needed only after a promotion.
    Door::new(settings.port, None, &settings.allow_host, settings.dir.server_file_path())?;
    let log_level = match args.log_level {
        Some(level) => log::level("--log-level", &level)?,
        None => log::level("NUDGE_LOG_LEVEL", &env::var("NUDGE_LOG_LEVEL").unwrap_or_default())?,
    };
    Ok(ServeArgs { settings, log_level, detached: args.detached })
}

/// Serves until it is stopped.
fn serve(args: ServeArgs) -> Result<()> {
    if args.detached {
        detach::leave_the_terminal();
    }
    let settings = Arc::new(args.settings);
    let for_people = !args.detached && stdin().is_terminal();
    let logging = log::start(args.log_level, &settings.dir, !for_people);
    let history = Arc::new(History::default());
    let role = role::enter(&settings, &history)?;
    if let Err(error) = logging {
        // A server without a log is better than none.
        let _ = writeln!(stderr(), "nudge: {error}");
    }
    let stdio = if args.detached || for_people { Stdio::Off } else { Stdio::Mcp(Some(Arc::new(Here::default()))) };
    server::run(role, &settings, &history, stdio)
}

/// Where the stdio client is.
#[derive(Default)]
struct Here(Inference);

impl FillIn for Here {
    fn fill_in(
        &self,
        method: &Method,
        params: &mut Map<String, Value>,
        meta: &Map<String, Value>,
        may_wait: bool,
    ) -> bool {
        self.0.fill_in(method, params, client_cwd(meta).as_deref(), may_wait)
    }

    fn learn(&self, names: EnvNames) {
        self.0.learn(names);
    }
}

/// What callers must show: nothing, the token that is fixed, or the session's own.
fn asks(no_auth: bool, given: Option<String>) -> Result<Asks> {
    if !switch("NUDGE_AUTH")? || no_auth {
        return Ok(Asks::Nothing);
    }
    let fixed = given.or_else(|| env::var("NUDGE_TOKEN").ok().filter(|token| !token.is_empty()));
    fixed.map_or(Ok(Asks::ForTheSessions), |token| Token::fixed(token).map(Asks::For))
}

/// A variable that is on unless it is switched off.
fn switch(name: &str) -> Result<bool> {
    match &*env::var(name).unwrap_or_default() {
        "" | "1" | "true" | "on" => Ok(true),
        "0" | "false" | "off" => Ok(false),
        _ => Err(Error::new(ErrorKind::Invalid, format!("{name} must be 1 or 0."))),
    }
}
