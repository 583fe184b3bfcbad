//! `nudge serve`

pub mod detach;

use std::io::{IsTerminal, Write as _, stderr, stdin};
use std::path::Path;
use std::sync::Arc;

use nudge::{ContextUse, EnvNames, Error, Result};
use nudge_client::RuntimeDir;
use nudge_core::settings::Values;
use serde_json::{Map, Value};
use tracing::level_filters::LevelFilter;

use super::CommandOutput;
use crate::args::{Global, Serve};
use crate::context::{Inference, Inferred, Look, client_cwd};
use crate::server::http::door::Door;
use crate::server::http::ports::Ports;
use crate::server::mcp::fill_in::FillIn;
use crate::server::mcp::profile::{self, Profile};
use crate::server::session::history::History;
use crate::server::session::role::{self, Asks, ServeSettings};
use crate::server::token::Token;
use crate::server::{self, Stdio, log};
use crate::{limits, reach, settings};

/// The arguments and settings of `nudge serve`.
struct ServeArgs {
    settings: ServeSettings,
    /// The log level.
    log_level: LevelFilter,
    /// True for a server in the background, without stdin.
    detached: bool,
    /// The profile offered to the client on stdin in place of everything else.
    profile: Option<&'static Profile>,
}

/// Runs `nudge serve`, or starts it in the background.
pub fn run(args: &Serve, global: &Global) -> Result<CommandOutput> {
    if args.detach {
        return detach::run(read(args, global)?, global.json);
    }
    serve(read(args, global)?)?;
    Ok(String::new().into())
}

fn read(args: &Serve, global: &Global) -> Result<ServeArgs> {
    let values = settings::with(&args.settings)?;
    let port = u16::try_from(values.count("port")).map_err(|_| {
        let setting = settings::table().find(|setting| setting.name == "port");
        let from = setting.map_or_else(String::new, |port| settings::origin(port, values.origin("port")));
        Error::invalid(format!("port must be 0 to 65535; correct {from}."))
    })?;
    let settings = ServeSettings {
        dir: RuntimeDir::create(global.runtime_dir.as_deref())?,
        port: global.port.unwrap_or(port),
        allow_host: values.list("allow_host"),
        asks: asks(&values)?,
        journal: values.is_on("journal"),
        keep: values.is_on("keep"),
        data: settings::data_dir(&values),
        cache: settings::cache_dir(&values),
        values: Arc::new(values.clone()),
    };
    // Allowed hosts are checked at the start, even when they are needed only after a promotion.
    Door::new(Arc::new(Ports::new(settings.port).0), None, &settings.allow_host, settings.dir.server_file_path())?;
    Ok(ServeArgs {
        settings,
        log_level: log::level(values.text("log_level")),
        detached: args.detached,
        profile: args.profile.as_deref().and_then(profile::named),
    })
}

/// Serves until the server is stopped.
fn serve(args: ServeArgs) -> Result<()> {
    if args.detached {
        detach::leave_the_terminal();
    }
    limits::require_descriptors()?;
    limits::require_threads()?;
    let settings = Arc::new(args.settings);
    let for_people = !args.detached && stdin().is_terminal();
    if !args.detached && !for_people {
        leave_the_job();
    }
    if let Some(profile) = args.profile.filter(|_| for_people) {
        let name = profile.name;
        let message = format!(
            "A profile is for the client that starts the server, and this is a terminal; register it, as with \
             `claude mcp add {name} -- nudge serve --profile {name}`."
        );
        return Err(Error::invalid(message));
    }
    let logging = log::start(args.log_level, &settings.dir, !for_people);
    let history = Arc::new(History::default());
    let role = role::enter(&settings, &history)?;
    if let Err(error) = logging {
        // A server that cannot log still serves.
        let _ = writeln!(stderr(), "nudge: {error}");
    }
    let stdio = if args.detached || for_people {
        Stdio::Off
    } else {
        let limits = reach::is_of_repository(&settings.values);
        let fill_in = Arc::new(StdioClient { inference: Inference::default(), limits });
        Stdio::Mcp { fill_in, profile: args.profile }
    };
    server::run(role, &settings, &history, stdio)
}

/// Leaves the process group of the client on stdin. Ctrl-Z on its terminal would stop this process with it, and so
/// every agent that this process answers. The end of stdin ends this process, however the client ended.
fn leave_the_job() {
    // A process that leads a group already has one of its own.
    #[cfg(unix)]
    let _ = rustix::process::setpgid(None, None);
}

/// Infers the context of the stdio client.
struct StdioClient {
    inference: Inference,
    /// True when hints without a scope are limited to the client's repository.
    limits: bool,
}

impl FillIn for StdioClient {
    fn infer(&self, usage: ContextUse, given: Option<&Value>, meta: &Map<String, Value>, look: Look) -> Inferred {
        self.inference.infer(usage, given, || client_cwd(meta), look)
    }

    fn learn(&self, names: EnvNames) {
        self.inference.learn(names);
    }

    fn limits(&self) -> bool {
        self.limits
    }

    fn reach(&self, meta: &Map<String, Value>) -> Option<String> {
        self.inference.repository(&client_cwd(meta).filter(|_| self.limits)?)
    }
}

/// Returns the token that callers must show: none, a fixed one, or the session's own.
fn asks(values: &Values) -> Result<Asks> {
    if !values.is_on("auth") {
        return Ok(Asks::Nothing);
    }
    let path = values.text("token_file");
    // The stronger origin wins: a token in a variable comes before a file that the settings file names.
    if !path.is_empty() && values.origin("token_file") >= values.origin("token") {
        return Token::from_file(Path::new(path)).map(Asks::For);
    }
    match values.text("token") {
        "" => Ok(Asks::ForTheSessions),
        fixed => Token::fixed(fixed.to_owned()).map(Asks::For),
    }
}
