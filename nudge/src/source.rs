//! Makes the hints a [`Source`]. The server opens, queries and closes it like every other source.

use std::collections::BTreeMap;
use std::sync::Arc;

use nudge_core::clock::{Millis, rfc3339};
use nudge_core::context::EnvNames;
use nudge_core::error::Result;
use nudge_core::once::OnceByKey as _;
use nudge_core::service::Caller;
use nudge_core::settings::{ServeFlag, Setting, SettingKind};
use nudge_core::source::{
    ChangeEvent, ChangeSink, RowFeed, SessionRows, Source, SourceHost, SourcePage, SourceResources, SourceSpec,
    TouchedResource,
};
use nudge_core::suggest::{CommandOutcome, OutcomeEffect, SourceItem, SourceOffers, SuggestRequest};
use nudge_core::table::serialize_result;
use nudge_core::wire::raw_json;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::cache::Nudge;
use crate::config::Config;
use crate::hint::{Hint, NAME};
use crate::log::{AppliedWrite, ChangeLog, LogEntry};

/// The most changes of one call that are reported separately. If there are more, one event reports all of them.
const MAX_EVENTS_OF_ONE_CALL: usize = 50;
/// The number of characters to which an event cuts a value.
const MAX_VALUE_CHARS: usize = 200;

/// The description of this source in the list of sources.
pub static SOURCE: SourceSpec = SourceSpec {
    name: NAME,
    methods: crate::methods,
    guide: "After an error: nudge_query with a word of the message; another session may have stored the fix.",
    settings: SETTINGS,
    resources: Some(&RESOURCES),
    list: "nudge.query",
    env: &[],
    alone: false,
    commands: &[],
    works: false,
    open: open_source,
};

const fn count_setting(name: &'static str, default: &'static str, about: &'static str) -> Setting {
    Setting { name, kind: SettingKind::Count, default, flag: ServeFlag::Value("N"), about }
}

/// The settings of the hints: the variables of [`Config::ENV`] in the same order, without the last variable. The server
/// has that setting for all sources.
static SETTINGS: &[Setting] = &[
    count_setting("max_components", "500", "Most components"),
    count_setting("max_hints_per_component", "200", "Most hints of one component"),
    count_setting("max_hints", "5000", "Most hints in all, variants counted"),
    count_setting("max_bytes", "25165824", "Most bytes of all hints as exported; in memory twice that"),
    Setting {
        name: "secret_guard",
        kind: SettingKind::Switch,
        default: "1",
        flag: ServeFlag::Off,
        about: "Refuse texts that look like credentials",
    },
    Setting {
        name: "default_ttl",
        kind: SettingKind::Text,
        default: "session",
        flag: ServeFlag::Value("TTL"),
        about: "Ttl of hints stored without one",
    },
];

static RESOURCES: SourceResources = SourceResources {
    list_uri: "nudge://components",
    list_title: "Components",
    list_about: "Every component with how many hints it has.",
    list: "nudge.list_components",
    names: read_names,
    item_uri: "nudge://component/",
    item_name: "component",
    item_title: "Component",
    item_about: "A component's hints as JSON that nudge_import accepts. Secret hints are left out.",
    item: |name| ("nudge.export", json!({"component": name})),
    shown: read_payload,
    page: Some(&EXAMPLES),
};

static EXAMPLES: SourcePage = SourcePage {
    uri: "nudge://examples",
    name: "examples",
    title: "Good hints",
    about: "Ten hints worth storing, as nudge_set_hint takes them, and why they are found.",
    text: include_str!("../docs/examples.md"),
};

/// Returns the names in an answer of `nudge.list_components`.
fn read_names(listed: &RawValue) -> Vec<String> {
    #[derive(Deserialize, Default)]
    struct ListedComponents {
        components: Vec<ListedComponent>,
    }
    #[derive(Deserialize)]
    struct ListedComponent {
        name: String,
    }
    let listed: ListedComponents = serde_json::from_str(listed.get()).expect("the list is of this version");
    listed.components.into_iter().map(|component| component.name).collect()
}

/// Returns the payload in an answer of `nudge.export`.
fn read_payload(exported: &RawValue) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    struct ExportedPayload<'a> {
        #[serde(borrow)]
        payload: &'a RawValue,
    }
    serde_json::from_str::<ExportedPayload<'_>>(exported.get()).ok().map(|exported| exported.payload.to_owned())
}

fn open_source(host: SourceHost<'_>) -> Result<Arc<dyn Source>> {
    let value = |variable: &str| {
        let setting = SETTINGS.iter().find(|setting| setting.env_variable() == variable)?;
        Some(host.settings.get_text(setting.name).to_owned())
    };
    let config = Config::from_env(value)?;
    let SourceHost { clock, session, session_rows, rows, changes, models, .. } = host;
    let log = SessionLog { rows: Arc::clone(&session_rows), changes };
    let nudge = Nudge::with_log(config, clock, Box::new(log)).with_identity(session.id, session.created_at);
    let nudge = nudge.with_models(models);
    match nudge.restore(rows) {
        0 => {}
        unreadable => session_rows.log_unreadable(unreadable),
    }
    // If the stored rows were damaged, they are stored again before the first call.
    nudge.mend_rows();
    Ok(Arc::new(nudge))
}

/// The log of a session. It stores changes as rows of the session before readers can see them, and reports them
/// afterwards.
struct SessionLog {
    rows: Arc<dyn SessionRows>,
    changes: Arc<dyn ChangeSink>,
}

impl ChangeLog for SessionLog {
    fn append(&self, entry: &LogEntry<'_>) -> Result<()> {
        self.rows.write(&|take| entry.feed_rows(take), &|take| entry.feed_all(take))
    }

    fn on_applied(&self, applied: &AppliedWrite<'_>) {
        self.changes.tell_changes(&to_events(applied));
    }

    fn check_keeping(&self) -> std::result::Result<(), String> {
        self.changes.check_keeping()
    }

    fn mend(&self, all: &RowFeed<'_>) {
        // The error is ignored, because the next change returns it to its caller.
        let _ = self.rows.write(&|_| Ok(()), all);
    }
}

/// Converts a write to events: an event for each change, or a single event for a call with very many changes.
fn to_events(applied: &AppliedWrite<'_>) -> Vec<ChangeEvent> {
    let new_count =
        |hint: &Hint| !matches!(applied.verb, "bump" | "outcome") && (applied.verb != "set" || hint.version() == 1);
    let gone = if applied.verb == "expire" { "expire" } else { "delete" };
    let put = applied.list_put().map(|hint| (applied.verb, hint, new_count(hint)));
    let told: Vec<_> = put.chain(applied.list_gone().map(|hint| (gone, hint, true))).collect();
    let time = rfc3339::format_time(applied.time);
    let event = |what, touched, detail| ChangeEvent {
        source: NAME,
        what,
        at: time.clone(),
        by: applied.caller.name.into(),
        touched,
        detail,
    };
    match told.len() {
        0..=MAX_EVENTS_OF_ONE_CALL => told
            .into_iter()
            .map(|(what, hint, count_changed)| {
                event(what, vec![touch_component(hint.component(), count_changed)], describe_hint(hint))
            })
            .collect(),
        count => {
            let mut touched = BTreeMap::<&str, bool>::new();
            for (_, hint, count_changed) in &told {
                *touched.entry(hint.component()).or_default() |= count_changed;
            }
            let touched =
                touched.into_iter().map(|(name, count_changed)| touch_component(name, count_changed)).collect();
            vec![event(applied.verb, touched, Map::from_iter([("count".to_owned(), count.into())]))]
        }
    }
}

fn touch_component(component: &str, count_changed: bool) -> TouchedResource {
    TouchedResource { resource: component.into(), count_changed }
}

fn describe_hint(hint: &Hint) -> Map<String, Value> {
    // The value of a hint that can expire is left out, because clients may keep the event for longer.
    let value = match (hint.is_secret(), hint.has_expiry()) {
        (true, _) => "[secret]".into(),
        (_, true) => String::new(),
        _ => hint.text().chars().take(MAX_VALUE_CHARS).collect(),
    };
    let mut out = Map::new();
    out.insert("component".into(), hint.component().into());
    out.insert("key".into(), hint.key().into());
    if !hint.variant().is_empty() {
        out.insert("variant".into(), hint.variant().into());
    }
    out.insert("version".into(), hint.version().into());
    if !value.is_empty() {
        out.insert("value".into(), value.into());
    }
    out
}

/// The answer of `nudge.outcome`. For a repeated call it is the recorded answer.
#[derive(Deserialize)]
struct OutcomeReply {
    matched: Vec<Box<RawValue>>,
}

impl Source for Nudge {
    fn find_offers(&self, request: &SuggestRequest) -> SourceOffers {
        let SourceOffers { offers, changes, omitted, floor, note } = self.make_offers(request);
        // Strings and numbers can always be serialized.
        let item = |hint| SourceItem(raw_json(&hint));
        SourceOffers {
            offers: offers.into_iter().map(|offer| offer.map(item)).collect(),
            changes,
            omitted,
            floor,
            note,
        }
    }

    fn is_secret(&self, id: &str) -> bool {
        let key = id.split_once('\n');
        key.is_some_and(|(component, key)| {
            self.store.find_variants(component, key).1.iter().any(|hint| hint.is_secret())
        })
    }

    fn note_outcome(&self, caller: Caller<'_>, ran: &CommandOutcome<'_>) -> Result<OutcomeEffect> {
        let mut counted = OutcomeEffect::default();
        let mut count = |caller: Caller<'_>| {
            let done = self.count_outcome(caller, ran)?;
            counted.ids = done.to_ids();
            serialize_result(&done)
        };
        let done = match (caller.key, caller.call) {
            (Some(key), Some(call)) => self.calls.make_once(key, call, &mut |made| count(caller.with_made(made)))?,
            _ => count(caller)?,
        };
        let done: Option<OutcomeReply> = serde_json::from_str(done.get()).ok();
        counted.matched = done.map(|done| done.matched).unwrap_or_default();
        Ok(counted)
    }

    fn env_names(&self) -> EnvNames {
        self.env_names(&crate::EnvNamesAsked::default()).expect("a question for all names is not refused")
    }

    fn report_status(&self) -> Map<String, Value> {
        let status = Nudge::status(self);
        let mut told = json!({"hints": status.hints, "components": status.components, "limits": status.limits});
        if let Some(understood) = self.count_understood() {
            told["hints_understood"] = understood.into();
        }
        if let Value::Object(told) = told { told } else { Map::new() }
    }

    fn report_stats(&self) -> Map<String, Value> {
        let stats = Nudge::stats(self);
        Map::from_iter([("hints".to_owned(), stats.hints.into()), ("hits".to_owned(), stats.hits.into())])
    }

    fn tick(&self, _: Millis) {
        self.sweep();
        self.mend_rows();
        self.read_words();
        self.read_meanings();
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::clock::SystemClock;
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;
    use crate::{ImportHints, ImportMode, Sensitivity, SetHint};

    #[derive(Default)]
    struct Heard(Mutex<Vec<ChangeEvent>>);

    impl ChangeSink for Heard {
        fn tell_changes(&self, changes: &[ChangeEvent]) {
            self.0.lock().extend_from_slice(changes);
        }
    }

    struct Telling(Arc<Heard>);

    impl ChangeLog for Telling {
        fn append(&self, _: &LogEntry<'_>) -> Result<()> {
            Ok(())
        }

        fn on_applied(&self, applied: &AppliedWrite<'_>) {
            self.0.tell_changes(&to_events(applied));
        }
    }

    #[test]
    fn secrets_and_large_imports_are_not_told_in_full() {
        let heard = Arc::new(Heard::default());
        let store = Nudge::with_log(Config::default(), Arc::new(SystemClock), Box::new(Telling(Arc::clone(&heard))));
        let mut hint = SetHint::new("a", "k", "open sesame");
        hint.meta.sensitivity = Some(Sensitivity::Secret);
        store.set(hint).unwrap();
        let hints: Map<_, _> = (0..60).map(|n| (format!("k{n}"), json!("x"))).collect();
        let payload = json!({"components": {"b": {"hints": hints}, "c": {"hints": {"k": "y"}}}});
        let payload = serde_json::value::to_raw_value(&payload).unwrap();
        store.import(&ImportHints { payload, mode: ImportMode::Merge, allow_secret: false }).unwrap();
        let heard = heard.0.lock();
        assert_eq!(heard.len(), 2);
        assert_eq!((&heard[0].detail["value"], &heard[0].detail["component"]), (&json!("[secret]"), &json!("a")));
        assert_eq!((&heard[1].detail, &heard[1].touched.len()), (&Map::from_iter([("count".into(), json!(61))]), &2));
    }

    #[test]
    fn the_settings_are_those_of_the_library() {
        let variables: Vec<_> = SETTINGS.iter().map(Setting::env_variable).collect();
        assert_eq!([&variables[..], &["NUDGE_SUGGEST_MAX".to_owned()]].concat(), Config::ENV);
        let default = |variable: &str| {
            SETTINGS.iter().find(|setting| setting.env_variable() == variable).map(|setting| setting.default.to_owned())
        };
        assert_eq!(Config::from_env(default).unwrap(), Config::default());
    }
}
