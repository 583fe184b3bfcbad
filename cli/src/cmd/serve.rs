//! `nudge serve`

mod detach;

use std::env;
use std::io::{IsTerminal, Write as _, stderr, stdin};
use std::sync::Arc;

use nudge::{Config, Error, ErrorKind, Method, Result, Service, Services};
use nudge_client::RuntimeDir;
use serde_json::{Map, Value};

use tracing::level_filters::LevelFilter;

use super::Done;
use crate::args::{Global, Serve};
use crate::context::{Inference, client_cwd};

use crate::server::door::{Door, Token};
use crate::server::local::Local;
use crate::server::log::{self, Logged};
use crate::server::mcp::FillIn;
use crate::server::role::Primary;
use crate::server::{Server, Stdio};

/// The port tried first.
pub const DEFAULT_PORT: u16 = 8765;

/// What `nudge serve` is told.
pub struct ServeArgs {
    /// The port to listen on, or the next free one; 0 for any.
    pub port: u16,
    /// Further names that `Host` may have.
    pub allow_host: Vec<String>,
    /// Ask for no token.
    pub no_auth: bool,
    /// The token to ask for; else `NUDGE_TOKEN`, else a new one.
    pub token: Option<String>,
    /// The store's limits.
    pub config: Config,
    /// Where the lock and `server.pid` are.
    pub runtime_dir: RuntimeDir,
    /// How much is logged.
    pub log_level: LevelFilter,
    /// In the background: nobody is on stdin.
    pub detached: bool,
    /// Completes the context of what the stdio client asks.
    pub fill_in: Option<Arc<FillIn>>,
}

impl ServeArgs {
    /// What `nudge serve` without arguments means.
    pub fn new(config: Config, runtime_dir: RuntimeDir) -> Self {
        Self {
            port: DEFAULT_PORT,
            allow_host: Vec::new(),
            no_auth: false,
            token: None,
            config,
            runtime_dir,
            log_level: LevelFilter::INFO,
            detached: false,
            fill_in: None,
        }
    }
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
    let inference = Inference::default();
    let fill_in = move |method: &Method,
                        params: &mut Map<String, Value>,
                        service: &dyn Service,
                        meta: Option<&Map<String, Value>>,
                        may_wait: bool| {
        inference.fill_in(method, params, client_cwd(meta).as_deref(), service, may_wait)
    };
    let token = args.token_file.map(|path| std::fs::read_to_string(&path).map_err(|error| (path, error))).transpose();
    let token = token.map_err(|(path, error)| {
        Error::new(ErrorKind::Invalid, format!("The token file {} cannot be read: {error}.", path.display()))
    })?;
    Ok(ServeArgs {
        port: global.port.unwrap_or(DEFAULT_PORT),
        allow_host: args.allow_host,
        no_auth: args.no_auth,
        token: token.map(|token| token.trim().to_owned()),
        log_level: match args.log_level {
            Some(level) => log::level("--log-level", &level)?,
            None => log::level("NUDGE_LOG_LEVEL", &env::var("NUDGE_LOG_LEVEL").unwrap_or_default())?,
        },
        detached: args.detached,
        fill_in: Some(Arc::new(fill_in)),
        ..ServeArgs::new(config, RuntimeDir::create(global.runtime_dir.as_deref())?)
    })
}

/// Serves until it is stopped.
///
/// # Errors
/// When another server has the runtime directory (it is named), or an argument or port cannot be used.
pub fn serve(args: ServeArgs) -> Result<()> {
    let token = token(&args)?;
    if args.detached {
        detach::leave_the_terminal();
    }
    let primary = Primary::acquire(args.runtime_dir, args.port)?;
    let for_people = !args.detached && stdin().is_terminal();
    if let Err(error) = log::start(args.log_level, primary.dir(), !for_people) {
        // A server without a log is better than none.
        let _ = writeln!(stderr(), "nudge: {error}");
    }
    let door = Door::new(primary.port(), token, &args.allow_host, primary.dir().server_file_path())?;
    let local = Arc::new(Local::new(args.config, primary.port()));
    let stdio = if args.detached || for_people { Stdio::Off } else { Stdio::Mcp(args.fill_in) };
    let swept = Arc::clone(&local);
    Server {
        primary,
        door,
        started: local.started(),
        history: Arc::clone(local.history()),
        service: Arc::new(Logged(Arc::new(Services::new(vec![
            Arc::clone(local.history()) as Arc<dyn Service>,
            local,
        ])))),
        stdio,
        sweep: Box::new(move || swept.sweep()),
    }
    .run()
}

/// The token to ask for, if any.
fn token(args: &ServeArgs) -> Result<Option<Token>> {
    let auth = env::var("NUDGE_AUTH").unwrap_or_default();
    match auth.as_str() {
        "" | "1" | "true" | "on" => {}
        "0" | "false" | "off" => return Ok(None),
        _ => return Err(Error::new(ErrorKind::Invalid, "NUDGE_AUTH must be 1 or 0.")),
    }
    if args.no_auth {
        return Ok(None);
    }
    let fixed = args.token.clone().or_else(|| env::var("NUDGE_TOKEN").ok().filter(|token| !token.is_empty()));
    fixed.map_or_else(Token::random, Token::fixed).map(Some)
}
