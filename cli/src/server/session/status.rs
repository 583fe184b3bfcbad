//! The PRIMARY as it describes itself: `nudge.status` and `nudge.methods`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use nudge::{ContextUse, Method};
use nudge_core::clock::{Clock, rfc3339};
use nudge_core::once::Once;
use nudge_core::source::SessionIdentity;
use nudge_core::table::{NoParams, Row, Table, TableService, answer, schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::journal::SessionJournal;
use super::keeper::Keeper;
use super::open::OpenSources;
use super::proxies::Proxies;
use crate::sources;

/// The name of the row that lists the others.
pub const METHODS: &str = "nudge.methods";

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
    /// False leaves out the JSON Schemas of the params (true).
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

/// A method as `nudge.methods` tells it.
// As of a [`Method`].
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MethodInfo {
    /// The JSON-RPC name.
    pub name: String,
    /// A few words for people.
    pub title: String,
    /// What it does and when to call it, for agents.
    pub description: String,
    /// The source that answers it; absent where that is the server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Offered as a tool: it is one, and its source is in use.
    pub tool: bool,
    /// Wanted so often that hosts should load it at once.
    pub frequent: bool,
    /// Changes nothing.
    pub read_only: bool,
    /// May remove or overwrite what is stored.
    pub destructive: bool,
    /// The same call twice leaves what once leaves.
    pub idempotent: bool,
    /// How its context is filled in.
    pub context: ContextUse,
    /// JSON Schema of its params; absent when it was not asked for.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
}

impl MethodInfo {
    /// A row of `source`, which is in use or not, with its schema or without.
    pub fn new(row: &Method, source: Option<&str>, is_in_use: bool, has_schema: bool) -> Self {
        Self {
            name: row.name.into(),
            title: row.title.into(),
            description: row.description.into(),
            source: source.map(Into::into),
            tool: row.tool && is_in_use,
            frequent: row.frequent,
            read_only: row.read_only,
            destructive: row.destructive,
            idempotent: row.idempotent,
            context: row.context,
            params: match has_schema.then(|| (row.params)()) {
                Some(Value::Object(schema)) => schema,
                _ => Map::new(),
            },
        }
    }
}

/// Result of `nudge.methods`.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MethodInfos {
    /// Every method once.
    pub methods: Vec<MethodInfo>,
    /// The description of each source in use, for agents.
    #[serde(default)]
    pub guides: Vec<String>,
    /// Whether hints are kept for next time; absent from older servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps: Option<bool>,
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
        let own = own.map(|row| MethodInfo::new(row, None, true, schemas));
        let each = sources::all().iter().flat_map(|spec| {
            let is_in_use = in_use.contains(&spec.name);
            (spec.methods)().into_iter().map(move |row| MethodInfo::new(row, Some(spec.name), is_in_use, schemas))
        });
        let mut methods: Vec<MethodInfo> = Vec::new();
        for row in own.chain(each) {
            if !methods.iter().any(|known| known.name == row.name) {
                methods.push(row);
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
    fn once(&self) -> Option<&dyn Once> {
        None
    }
}
