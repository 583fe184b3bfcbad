//! The PRIMARY as it describes itself: `nudge.status` and `nudge.methods`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use nudge::Method;
use nudge_core::clock::{Clock, rfc3339};
use nudge_core::once::Once;
use nudge_core::service::{METHODS, MethodInfo, MethodInfos};
use nudge_core::source::SessionIdentity;
use nudge_core::table::{NoParams, Row, Table, TableService, answer, schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::journal::SessionJournal;
use super::keeper::Keeper;
use super::open::OpenSources;
use super::proxies::Proxies;
use crate::sources;

const ABOUT_METHODS: &str =
    "Every method that this server answers, with its params, and whether it is offered as a tool.";

static TABLE: Table<ServerStatus> = Table(&[
    &Row {
        method: Method::new("nudge.status", "Status", "What is stored, and the limits.", schema::<NoParams>).reads(),
        run: |server, _, params| answer(params, |_: NoParams| Ok(server.status())),
    },
    &Row {
        method: Method::new(METHODS, "Methods", ABOUT_METHODS, schema::<MethodsAsked>).reads().quick(),
        run: |server, _, params| answer(params, |params| Ok(server.method_infos(&params))),
    },
]);

/// The server as it describes itself.
pub struct ServerStatus {
    /// Which session it serves.
    pub session: SessionIdentity,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The sources that it serves.
    pub sources: Arc<OpenSources>,
    /// The journal in which they record.
    pub journal: Arc<SessionJournal>,
    /// What keeps the hints for next time.
    pub keeper: Arc<Keeper>,
    /// The PROXYs, which stand in line to take over.
    pub proxies: Arc<Proxies>,
    /// Further rows of the server's own.
    pub own: Vec<&'static Method>,
    /// The port on which it answers; 0 until it does.
    pub port: AtomicU16,
}

/// Params of `nudge.methods`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MethodsAsked {
    /// False leaves out the JSON Schemas of the params, titles and descriptions (true).
    #[serde(default, deserialize_with = "wire::given")]
    schemas: Option<bool>,
}

/// Returns params of `nudge.methods` that ask for schemas or not.
pub fn asked(schemas: bool) -> Box<RawValue> {
    to_raw_value(&json!({"schemas": schemas})).unwrap_or_default()
}

/// Returns the params of a method that takes none.
pub fn asked_nothing() -> Box<RawValue> {
    to_raw_value(&Map::new()).unwrap_or_default()
}

impl ServerStatus {
    fn status(&self) -> Map<String, Value> {
        let mut out = Map::new();
        let mut tell = |name: &str, value: Value| out.insert(name.to_owned(), value);
        tell("version", env!("CARGO_PKG_VERSION").into());
        tell("session_id", self.session.id.clone().into());
        tell("role", "PRIMARY".into());
        tell("started", rfc3339::text(self.session.created_at).into());
        let own = self.sources.iter().flat_map(|(_, source)| source.status());
        own.for_each(|(name, value)| drop(tell(&name, value)));
        tell("uptime_s", ((self.clock.now() - self.session.created_at).max(0) / 1000).into());
        tell("pid", std::process::id().into());
        tell("port", self.port.load(Ordering::Relaxed).into());
        // The processes of the session that are known: this one and its PROXYs.
        let proxies = self.proxies.pids();
        tell("members", (1 + proxies.len()).into());
        tell("proxies", proxies.into());
        // Null when no journal is kept.
        tell("journal_bytes", json!(self.journal.bytes()));
        tell("keeping", self.keeper.status());
        out
    }

    fn method_infos(&self, asked: &MethodsAsked) -> MethodInfos {
        let schemas = asked.schemas.unwrap_or(true);
        let in_use = self.sources.in_use();
        let own = TABLE.methods().into_iter().chain(self.own.iter().copied());
        let mut methods: Vec<_> = own.map(|row| MethodInfo::new(row, None, true, schemas)).collect();
        let own = methods.len();
        for spec in sources::all() {
            let is_in_use = in_use.contains(&spec.name);
            for row in (spec.methods)() {
                // What the server answers itself, such as `nudge.status` of the hints, is listed once.
                if !methods[..own].iter().any(|known| known.name == row.name) {
                    methods.push(MethodInfo::new(row, Some(spec.name), is_in_use, schemas));
                }
            }
        }
        let used = sources::all().iter().filter(|spec| in_use.contains(&spec.name));
        let guides = used.map(|spec| spec.guide.to_owned()).filter(|guide| !guide.is_empty()).collect();
        MethodInfos { methods, guides, keeps: Some(self.keeper.is_on()) }
    }
}

impl TableService for ServerStatus {
    const TABLE: &'static Table<Self> = &TABLE;

    // It changes nothing.
    fn once(&self, _: &Method) -> Option<&dyn Once> {
        None
    }
}
