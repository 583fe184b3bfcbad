//! `nudge ui`

mod open;

use std::io::IsTerminal as _;

use nudge::{ContextUse, EnvNames, Error, Result};
use nudge_client::process_cwd;
use nudge_server::page::OPEN_PAGE;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{CommandOutput, RunningSession, parsed_as, print_note, to_raw_output};
use crate::args::{GlobalFlags, UiArgs};

const NO_SERVER: &str = "No Nudge server is running; start one with `nudge serve --detach`, then run `nudge ui` again.";

/// The needed fields of the result.
#[derive(Deserialize)]
struct OpenedAddress {
    url: String,
    expires_s: u64,
}

/// The variable with which users of the upstream plugin set the page's port.
const PORT: &str = "DUDE_PORT";

/// Returns the port for the page, from the flag or else from the variable.
fn read_port(global: &GlobalFlags) -> Result<Option<u16>> {
    let given = std::env::var_os(PORT).filter(|text| !text.is_empty());
    match (global.port, given) {
        (None, Some(text)) => {
            let port = text.to_str().and_then(|text| text.trim().parse().ok());
            let wrong = || Error::invalid(format!("{PORT} must be a port from 1 to 65535; set another, or unset it."));
            port.filter(|port| *port != 0).ok_or_else(wrong).map(Some)
        }
        (port, _) => Ok(port),
    }
}

/// Prints the page's address. Opens the page if a user sits at this machine.
pub fn run(args: &UiArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let port = read_port(global)?;
    // In this command the port is the page's, so it does not select a server.
    let session = RunningSession::open(&GlobalFlags { port: None, ..global.clone() }).map_err(|error| {
        // Replaces only this message; other errors keep theirs.
        if error.message().starts_with("No Nudge server is running") { error.with_message(NO_SERVER) } else { error }
    })?;
    let mut params = Map::new();
    params.insert("context".into(), Value::Object(args.here.to_context()));
    if let Some(port) = port {
        params.insert("port".into(), port.into());
    }
    // First reads the names of the variables that scopes mention: the page itself has no environment.
    let names: EnvNames = parsed_as(&session.call("nudge.env_names", &Map::new())?)?;
    session.set_env_names(names);
    let opened = session.call_in(OPEN_PAGE, ContextUse::Inferred, &params, process_cwd().as_deref(), None)?;
    let OpenedAddress { url, expires_s } = parsed_as(&opened)?;
    let sits_somebody = !global.json && std::io::stdout().is_terminal();
    let note = match (sits_somebody && !args.no_open).then(|| open::open_browser(&url)) {
        Some(true) => "it opens in your browser",
        Some(false) => "no browser can be opened here; open it yourself",
        None => "open it in a browser of yours",
    };
    if global.json {
        return Ok(to_raw_output(&opened));
    }
    print_note(&format!("{note}; it works once, within {expires_s} seconds"));
    if let Some(port) = port {
        print_note(&format!(
            "until this server ends, records are at http://127.0.0.1:{port}/api for programs, too, with its token"
        ));
    }
    Ok(format!("{url}\n").into())
}
