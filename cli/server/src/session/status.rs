//! `nudge.status` and `nudge.methods`: the PRIMARY describes itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use nudge::MethodSpec;
use nudge_app::sources;
use nudge_client::{RecentHooks, RuntimeDir};
use nudge_core::clock::{Clock, Millis, rfc3339};
use nudge_core::once::OnceByKey;
use nudge_core::service::{METHODS, MethodInfo, MethodInfos};
use nudge_core::source::SessionIdentity;
use nudge_core::table::{MethodTable, NoParams, TableRow, TableService, answer_typed, build_schema};
use nudge_core::wire;
use nudge_core::wire::raw_json;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::keeper::HintKeeper;
use super::open::OpenSources;
use super::proxies::ConnectedProxies;
use super::rows::PrimaryRows;
use crate::work::WorkPool;

/// The time within which a source must report its status. Later, the answer contains the source's last status and names
/// the source as late.
const SOURCE_PATIENCE: Duration = Duration::from_secs(1);

const ABOUT_METHODS: &str =
    "Every method that this server answers, with its params, and whether it is offered as a tool.";

static TABLE: MethodTable<ServerStatus> = MethodTable(&[
    &TableRow {
        method: MethodSpec::new("nudge.status", "Status", "What is stored, and the limits.", build_schema::<NoParams>)
            .read_only()
            .vital(),
        run: |server, _, params| answer_typed(params, |_: NoParams| Ok(server.describe_server())),
    },
    &TableRow {
        method: MethodSpec::new(METHODS, "Methods", ABOUT_METHODS, build_schema::<MethodsAsked>).read_only().vital(),
        run: |server, _, params| answer_typed(params, |params| Ok(server.method_infos(&params))),
    },
]);

/// The service that describes the server.
pub struct ServerStatus {
    /// The identity of the session.
    pub session: SessionIdentity,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The sources of the session.
    pub sources: Arc<OpenSources>,
    /// The rows in which the sources record changes.
    pub rows: Arc<PrimaryRows>,
    /// Keeps the hints for later sessions.
    pub keeper: Arc<HintKeeper>,
    /// The PROXYs that wait for the lock.
    pub proxies: Arc<ConnectedProxies>,
    /// The places for calls.
    pub work: Arc<WorkPool>,
    /// The last status of each source, and the open questions.
    pub asked: Arc<AskedSources>,
    /// The methods of the server itself.
    pub own: Vec<&'static MethodSpec>,
    /// The runtime directory.
    pub runtime: RuntimeDir,
    /// The port of the server; 0 until the server answers calls.
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

/// Returns the member of the answer that counts the late hooks among the last ones. Returns `None` if no hook has run.
pub(super) fn describe_hooks(runtime: &RuntimeDir) -> Option<(String, Value)> {
    let report = RecentHooks::read(runtime).count_late()?;
    let mut told = serde_json::to_value(report).expect("plain data is JSON");
    if let Some(sentence) = report.to_sentence() {
        told["note"] = sentence.into();
    }
    Some(("hooks".to_owned(), told))
}

/// Returns params of `nudge.methods`, with or without schemas.
pub fn to_methods_params(schemas: bool) -> Box<RawValue> {
    raw_json(&json!({"schemas": schemas}))
}

/// Returns the params for a method without params.
pub fn asked_nothing() -> Box<RawValue> {
    raw_json(&Map::new())
}

impl ServerStatus {
    fn describe_server(&self) -> Map<String, Value> {
        let mut out = Map::new();
        let mut tell = |name: &str, value: Value| out.insert(name.to_owned(), value);
        tell("version", env!("CARGO_PKG_VERSION").into());
        tell("session_id", self.session.id.clone().into());
        tell("role", "PRIMARY".into());
        tell("started", rfc3339::format_time(self.session.created_at).into());
        let (standings, late) = self.ask_sources();
        standings.into_iter().flatten().for_each(|(name, value)| drop(tell(&name, value)));
        if !late.is_empty() {
            tell("late", late.into());
        }
        let overdue = self.work.count_overdue();
        if overdue > 0 {
            tell("stuck_calls", overdue.into());
        }
        tell("uptime_s", ((self.clock.now() - self.session.created_at).max(0) / 1000).into());
        tell("pid", std::process::id().into());
        tell("port", self.port.load(Ordering::Relaxed).into());
        // The members that are known: this process and its PROXYs.
        let proxies = self.proxies.pids();
        tell("members", (1 + proxies.len()).into());
        tell("proxies", proxies.into());
        // Null when the journal is off.
        tell("journal_bytes", json!(self.rows.bytes()));
        tell("keeping", self.keeper.describe_status());
        if let Some((name, hooks)) = describe_hooks(&self.runtime) {
            tell(&name, hooks);
        }
        if let Some(since) = self.rows.put_back_since() {
            let since = Millis::try_from(since.as_millis()).expect("a process lives for less than a million years");
            tell("files_put_back", rfc3339::format_time(self.clock.now() - since).into());
        }
        out
    }

    /// Asks each source for its status. The first source answers from memory, so it runs on this thread; each other
    /// source runs on its own thread. Returns the answers in the order of the sources, and the names of late sources.
    fn ask_sources(&self) -> (Vec<Map<String, Value>>, Vec<&'static str>) {
        let (tell, told) = channel();
        let mut standings: Vec<Option<Map<String, Value>>> = Vec::new();
        let mut open = 0;
        for (index, (spec, source)) in self.sources.iter().enumerate() {
            if index == 0 {
                standings.push(Some(source.report_status()));
                continue;
            }
            standings.push(None);
            let Some(question) = AskedSources::begin_question(&self.asked, spec.name) else { continue };
            let (sources, tell) = (Arc::clone(&self.sources), tell.clone());
            let ask = move || {
                let (_, source) = sources.iter().nth(index).expect("the sources stay as they are");
                let standing = source.report_status();
                question.note_standing(&standing);
                drop(question);
                // An error only means that the caller no longer waits.
                let _ = tell.send((index, standing));
            };
            if std::thread::Builder::new().name("nudge-status".into()).spawn(ask).is_ok() {
                open += 1;
            }
        }
        drop(tell);
        let deadline = Instant::now() + SOURCE_PATIENCE;
        while open > 0 {
            let Ok((index, standing)) = told.recv_timeout(deadline.saturating_duration_since(Instant::now())) else {
                break;
            };
            if let Some(place) = standings.get_mut(index) {
                *place = Some(standing);
            }
            open -= 1;
        }
        let mut late = Vec::new();
        let names = self.sources.iter().map(|(spec, _)| spec.name);
        let all = standings.into_iter().zip(names).map(|(standing, name)| {
            standing.unwrap_or_else(|| {
                late.push(name);
                self.asked.last_status(name)
            })
        });
        (all.collect(), late)
    }

    fn method_infos(&self, asked: &MethodsAsked) -> MethodInfos {
        let schemas = asked.schemas.unwrap_or(true);
        let in_use = self.sources.in_use();
        let own = TABLE.methods().into_iter().chain(self.own.iter().copied());
        let mut methods: Vec<_> = own.map(|row| MethodInfo::new(row, None, true, schemas)).collect();
        let own = methods.len();
        for spec in sources::list_sources() {
            let is_in_use = in_use.contains(&spec.name);
            for row in (spec.methods)() {
                // Skips a method that the server answers itself, such as `nudge.status` of the hints.
                if !methods[..own].iter().any(|known| known.name == row.name) {
                    methods.push(MethodInfo::new(row, Some(spec.name), is_in_use, schemas));
                }
            }
        }
        let used = sources::list_sources().iter().filter(|spec| in_use.contains(&spec.name));
        let guides = used.map(|spec| spec.guide.to_owned()).filter(|guide| !guide.is_empty()).collect();
        MethodInfos { methods, guides, keeps: Some(self.keeper.is_on()) }
    }
}

/// The last status of each source, and which sources have an open question. An open question is one thread that waits
/// for the source, so a source that does not answer blocks at most one thread.
#[derive(Default)]
pub struct AskedSources(Mutex<BTreeMap<&'static str, AskedSource>>);

#[derive(Default)]
struct AskedSource {
    last: Map<String, Value>,
    is_asked: bool,
}

impl AskedSources {
    /// Opens a question to a source. Returns `None` when the source already has an open question.
    fn begin_question(all: &Arc<Self>, name: &'static str) -> Option<OpenQuestion> {
        let was_asked = std::mem::replace(&mut all.0.lock().entry(name).or_default().is_asked, true);
        (!was_asked).then(|| OpenQuestion { all: Arc::clone(all), name })
    }

    fn last_status(&self, name: &'static str) -> Map<String, Value> {
        self.0.lock().get(name).map(|asked| asked.last.clone()).unwrap_or_default()
    }
}

/// An open question to a source. A drop closes the question, even after a panic.
struct OpenQuestion {
    all: Arc<AskedSources>,
    name: &'static str,
}

impl OpenQuestion {
    fn note_standing(&self, standing: &Map<String, Value>) {
        self.all.0.lock().entry(self.name).or_default().last.clone_from(standing);
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.all.0.lock().entry(self.name).or_default().is_asked = false;
    }
}

impl TableService for ServerStatus {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    // The methods change nothing, so a repeated call is harmless.
    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        None
    }
}
