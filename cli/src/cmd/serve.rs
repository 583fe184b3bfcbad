//! `nudge serve`

pub mod detach;

use std::io::{IsTerminal, Write as _, stderr, stdin};
use std::path::Path;
use std::sync::Arc;

use nudge::{Error, Result};
use nudge_app::background::leave_the_terminal;
use nudge_app::context::ContextInference;
use nudge_app::{reach, settings};
use nudge_client::RuntimeDir;
use nudge_core::settings::SettingValues;
use nudge_server::http::door::HttpDoor;
use nudge_server::http::ports::ServerPorts;
use nudge_server::mcp::profile::{self, ServerProfile};
use nudge_server::session::history::ChangeHistory;
use nudge_server::session::role::{self, RequiredToken, ServeSettings};
use nudge_server::token::AccessToken;
use nudge_server::{StdioUse, log, run_server};
use tracing::level_filters::LevelFilter;

use super::CommandOutput;
use crate::args::{GlobalFlags, ServeFlags};
use crate::limits;

/// The arguments and settings of `nudge serve`.
struct ServeArgs {
    settings: ServeSettings,
    /// The log level.
    log_level: LevelFilter,
    /// True for a server in the background, which does not use stdin.
    detached: bool,
    /// The profile whose tools replace all other tools for the client on stdin, if any.
    profile: Option<&'static ServerProfile>,
}

/// Runs `nudge serve`, or starts a server in the background with `--detach`.
pub fn run(args: &ServeFlags, global: &GlobalFlags) -> Result<CommandOutput> {
    if args.detach {
        return detach::run(read(args, global)?, global);
    }
    serve_until_stopped(read(args, global)?)?;
    Ok(String::new().into())
}

fn read(args: &ServeFlags, global: &GlobalFlags) -> Result<ServeArgs> {
    let values = settings::read_with_flags(&args.settings)?;
    let port = u16::try_from(values.get_count("port")).map_err(|_| {
        let setting = settings::list_settings().find(|setting| setting.name == "port");
        let from = setting.map_or_else(String::new, |port| settings::describe_origin(port, values.get_origin("port")));
        Error::invalid(format!("port must be 0 to 65535; correct {from}."))
    })?;
    let settings = ServeSettings {
        dir: RuntimeDir::create(global.runtime_dir.as_deref())?,
        port: global.port.unwrap_or(port),
        allow_host: values.get_list("allow_host"),
        asks: read_required_token(&values)?,
        journal: values.is_on("journal"),
        keep: values.is_on("keep"),
        data: settings::data_dir(&values),
        cache: settings::cache_dir(&values),
        values: Arc::new(values.clone()),
    };
    // Checks the allowed hosts now, even if the server needs them only after a promotion.
    HttpDoor::new(
        Arc::new(ServerPorts::new(settings.port).0),
        None,
        &settings.allow_host,
        settings.dir.server_file_path(),
    )?;
    Ok(ServeArgs {
        settings,
        log_level: log::parse_level(values.get_text("log_level")),
        detached: args.detached,
        profile: args.profile.as_deref().and_then(profile::find_profile),
    })
}

/// Serves until the server is stopped.
fn serve_until_stopped(args: ServeArgs) -> Result<()> {
    if args.detached {
        leave_the_terminal();
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
    let logging = log::start_log(args.log_level, &settings.dir, !for_people);
    let history = Arc::new(ChangeHistory::default());
    let role = role::take_role(&settings, &history)?;
    if let Err(error) = logging {
        // A server that cannot write its log can still answer calls, so the error is only printed.
        let _ = writeln!(stderr(), "nudge: {error}");
    }
    let stdio = if args.detached || for_people {
        StdioUse::Off
    } else {
        let inference = ContextInference::default().with_reach_limit(reach::is_of_repository(&settings.values));
        StdioUse::Mcp { inference: Arc::new(inference), profile: args.profile }
    };
    run_server(role, &settings, &history, stdio)
}

/// Leaves the process group of the client on stdin. Otherwise Ctrl-Z on the client's terminal would also stop this
/// server, and with it all agents that it serves. The server still ends with its client, because stdin then ends.
fn leave_the_job() {
    // A process that leads a group already has a group of its own, so an error does not matter.
    #[cfg(unix)]
    let _ = rustix::process::setpgid(None, None);
}

/// Returns the token that callers must send: none, a given token, or the session's own.
fn read_required_token(values: &SettingValues) -> Result<RequiredToken> {
    if !values.is_on("auth") {
        return Ok(RequiredToken::Nothing);
    }
    let path = values.get_text("token_file");
    // The stronger origin wins: a token in a variable overrides a file that the settings file names.
    if !path.is_empty() && values.get_origin("token_file") >= values.get_origin("token") {
        return AccessToken::from_file(Path::new(path)).map(RequiredToken::For);
    }
    match values.get_text("token") {
        "" => Ok(RequiredToken::ForTheSessions),
        fixed => AccessToken::from_text(fixed.to_owned()).map(RequiredToken::For),
    }
}
