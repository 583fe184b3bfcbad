//! Queries the user's graph server over the Bolt protocol. Each request has a deadline. After a failure, Nudge sends
//! nothing to the server for a while, so a broken server delays only one question.
//!
//! Only the user's settings give the address and the login. A brain cannot name a server, because its text may come
//! from another person.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use nudge_core::clock::{Clock, Millis};
use nudge_core::settings::SettingValues;
use parking_lot::Mutex;
use serde_json::{Map, Value};

#[cfg(feature = "bolt")]
mod link;
#[cfg(not(feature = "bolt"))]
#[path = "bolt/no_link.rs"]
mod link;

use link::BoltLink;

/// The pause after a failure of the server, in milliseconds.
const BREAK: Millis = 60_000;
/// The default port of Bolt.
const PORT: u16 = 7687;

/// A statement in the query language Cypher. Texts from files are params of the statement, and never part of its text.
#[cfg_attr(not(feature = "bolt"), expect(dead_code, reason = "nobody is asked"))]
pub struct CypherQuery {
    pub text: &'static str,
    pub params: Map<String, Value>,
}

/// A row of the server's answer: numbers and texts. A value of any other type becomes null.
pub type Row = Vec<Value>;

/// The address of a server and the login for it. The type does not implement `Debug`, so that no message shows the
/// password.
#[cfg_attr(not(feature = "bolt"), expect(dead_code, reason = "nobody is asked"))]
pub struct BoltEndpoint {
    pub host: String,
    pub port: u16,
    pub is_encrypted: bool,
    /// The name of the user on the server; empty without a login.
    pub user: String,
    pub password: String,
    pub database: String,
}

/// The graph server that the settings name.
pub struct BoltServer {
    /// The address as messages show it.
    name: String,
    link: Result<BoltLink, String>,
    clock: Arc<dyn Clock>,
    /// The end of the pause after a failure, and the reason for the failure.
    broken: Mutex<Option<(Millis, String)>>,
    /// The lock of the thread that writes to the server. Only one thread writes at a time.
    pub writing: Mutex<()>,
}

impl BoltServer {
    /// Makes the server that the settings name; `None` when they name none.
    pub fn from_settings(settings: &SettingValues, clock: Arc<dyn Clock>) -> Option<Self> {
        let address = Some(settings.get_text("brain.bolt")).filter(|address| !address.is_empty())?;
        let setting = |name: &str| settings.get_text(name).to_owned();
        let place = parse_address(address).map(|(host, port, is_encrypted)| {
            let (user, database) = (setting("brain.bolt_user"), setting("brain.bolt_database"));
            BoltEndpoint { host, port, is_encrypted, user, password: setting("brain.bolt_password"), database }
        });
        // An invalid address may contain a password, so messages show the name of the setting instead.
        let name = if place.is_ok() { address.to_owned() } else { "brain.bolt".to_owned() };
        Some(Self {
            name,
            link: place.and_then(BoltLink::new),
            clock,
            broken: Mutex::default(),
            writing: Mutex::default(),
        })
    }

    /// Returns the address as messages show it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs statements in order, each in its own transaction.
    ///
    /// # Errors
    /// A clause that says why there is no answer.
    pub fn run_queries(&self, queries: Vec<CypherQuery>, wait: Duration) -> Result<Vec<Vec<Row>>, String> {
        let answer = self.link.as_ref().map_err(Clone::clone).and_then(|link| link.run_queries(queries, wait));
        answer.map_err(|why| format!("bolt: {} {why}", self.name))
    }

    /// Runs `work`, which uses the server, unless there is a pause after a failure. If `work` fails, a pause begins.
    ///
    /// # Errors
    /// The reason for this failure, or for the failure that began the pause.
    pub fn unless_broken<T>(&self, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let now = self.clock.now();
        if let Some(why) = self.break_reason() {
            return Err(why);
        }
        let done = work();
        *self.broken.lock() = done.as_ref().err().map(|why| (now.saturating_add(BREAK), why.clone()));
        done
    }

    /// Returns the reason for the current pause; `None` without a pause.
    pub fn break_reason(&self) -> Option<String> {
        let broken = self.broken.lock();
        broken.as_ref().filter(|(until, _)| self.clock.now() < *until).map(|(_, why)| why.clone())
    }

    /// Ends the pause.
    pub fn mark_working(&self) {
        *self.broken.lock() = None;
    }
}

/// Parses an address into host, port, and true for encryption. An address without encryption must be on this machine.
fn parse_address(address: &str) -> Result<(String, u16, bool), String> {
    let none = || "must be bolt://HOST:PORT of this machine, or bolt+s://HOST:PORT".to_owned();
    let (scheme, rest) = address.split_once("://").ok_or_else(none)?;
    let is_encrypted = match scheme {
        "bolt" => false,
        "bolt+s" => true,
        _ => return Err(none()),
    };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let (host, port) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']').ok_or_else(none)?,
        None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
    };
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(is_fine) {
        return Err(none());
    }
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().map_err(|_| none())?,
        None if port.is_empty() => PORT,
        None => return Err(none()),
    };
    let is_here = host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
    if is_encrypted || is_here { Ok((host.to_owned(), port, is_encrypted)) } else { Err(none()) }
}

#[cfg(test)]
#[path = "bolt_tests.rs"]
pub mod tests;
