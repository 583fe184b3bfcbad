//! [`Nudge`]: the store with its clock, limits and writer. The verbs are in `method`.

mod judged;
mod quota;
mod writer;

use std::convert::Infallible;
use std::sync::Arc;

use hashbrown::HashMap;
use nudge_core::clock::{Clock, Millis, SystemClock};
use nudge_core::context::Context;
use nudge_core::embed::Models;
use nudge_core::error::Result;
use nudge_core::once::{Calls, Known, Recordable};
use nudge_core::scope::{Scope, ScopeSpec};
use nudge_core::service::Caller;
use nudge_core::suggest::Suggester;
use nudge_core::sync::Mutex;
use nudge_core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use serde_json::value::RawValue;

use crate::choice::{Match, pick};
use crate::config::Config;
use crate::guard;
use crate::hint::{Hint, HintMeta, HintValue, Source, check_name};
use crate::log::{Applied, Entry, Log, NoLog};
use crate::method::suggest::{Meanings, WordIndex};
use crate::record::{self, Read};
use crate::store::{Change, Store, Variants};
use crate::trash::{Deleted, Gone, Trash};
use writer::Writer;

/// Most bytes of cached compiled scopes, each counted with the text that it was compiled from.
const MAX_CACHED_SCOPE_BYTES: usize = 1 << 20;

/// The hint cache: a thread-safe store in memory that explains its answers. Reads never write, and a refused call
/// changes nothing.
///
/// It has one method per verb; [`Service`](crate::Service) calls the same verbs by name with JSON.
pub struct Nudge {
    pub(crate) store: Store,
    pub(crate) config: Config,
    pub(crate) session_id: String,
    pub(crate) created_at: Millis,
    pub(crate) suggester: Suggester,
    /// The words of the hints, as soon as somebody asks in words.
    pub(crate) words: Mutex<WordIndex>,
    /// Their meanings, where there is a model.
    pub(crate) meanings: Meanings,
    pub(crate) regexes: Mutex<Vec<regex::Regex>>,
    /// Number of scopes in use that have conditions on the environment.
    env_scopes: AtomicUsize,
    /// Number of calls that found something.
    hits: AtomicU64,
    pub(crate) calls: Calls,
    clock: Arc<dyn Clock>,
    log: Box<dyn Log>,
    writer: Mutex<Writer>,
    compiled: Mutex<Compiled>,
}

/// Compiled scopes, so that a scope that is stored repeatedly is compiled once.
#[derive(Default)]
struct Compiled {
    scopes: HashMap<ScopeSpec, Arc<Scope>, foldhash::fast::RandomState>,
    bytes: usize,
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Nudge>();
};

impl Default for Nudge {
    /// Makes an empty store with the default limits and the system's clock.
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl Nudge {
    /// Makes an empty store with the system's clock.
    pub fn new(config: Config) -> Self {
        Self::with_clock(config, Arc::new(SystemClock))
    }

    /// Makes an empty store with a clock of the caller's.
    pub fn with_clock(config: Config, clock: Arc<dyn Clock>) -> Self {
        Self::with_log(config, clock, Box::new(NoLog))
    }

    /// Makes an empty store whose changes are recorded before they are visible.
    pub fn with_log(config: Config, clock: Arc<dyn Clock>, log: Box<dyn Log>) -> Self {
        Self {
            store: Store::default(),
            session_id: uuid::Uuid::new_v4().to_string(),
            created_at: clock.now(),
            suggester: Suggester::new(config.suggest_max),
            words: Mutex::default(),
            meanings: Meanings::default(),
            config,
            regexes: Mutex::default(),
            env_scopes: AtomicUsize::new(0),
            hits: AtomicU64::new(0),
            calls: Calls::default(),
            clock,
            log,
            writer: Mutex::default(),
            compiled: Mutex::default(),
        }
    }

    /// Sets the identity of a session that has begun before: id and time belong to the session and survive
    /// promotion (semantics section 8).
    #[must_use]
    pub fn with_identity(self, id: String, created_at: Millis) -> Self {
        Self { session_id: id, created_at, ..self }
    }

    /// Lets hints be found by meaning, by the model that there is.
    #[must_use]
    pub(crate) fn with_models(self, models: Arc<dyn Models>) -> Self {
        Self { meanings: Meanings::of(models), ..self }
    }

    /// Returns the session's id, which is random.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Returns the time at which the session began.
    pub fn created_at(&self) -> Millis {
        self.created_at
    }

    /// Finds the best hint of a key that fits. For repeated lookups from one place use a [`View`](crate::View). It
    /// compares scopes as long as it takes; [`Nudge::find`] has the limit of a call.
    pub fn get(&self, component: &str, key: &str, context: &Context) -> Option<Match> {
        let variants = self.store.variants(component, key).1;
        if variants.is_empty() {
            return None;
        }
        let Ok(found) = pick(&variants, context, self.now(), |hint| Ok::<_, Infallible>(hint.scope.matches(context)));
        found
    }

    /// Counts a call that found something, for the statistics.
    pub(crate) fn count_hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// As [`get`](Self::get), for a single variant; `""` is the unscoped one.
    pub fn get_variant(&self, component: &str, key: &str, variant: &str, context: &Context) -> Option<Match> {
        let variants = [self.store.variant(component, key, variant)?];
        let Ok(found) = pick(&variants, context, self.now(), |hint| Ok::<_, Infallible>(hint.scope.matches(context)));
        found
    }

    /// Returns true when any answer can depend on the environment.
    pub(crate) fn looks_at_env(&self) -> bool {
        self.env_scopes.load(Ordering::Acquire) > 0
    }

    /// Drops expired hints, which no method shows any more, and returns their number. While the clock is not plausible,
    /// those that it alone calls expired stay, and are there again once it is right.
    pub fn sweep(&self) -> usize {
        let mut writer = self.writer.lock();
        self.sweep_locked(&mut writer)
    }

    /// Returns the limits and switches.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the time by the store's clock.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Returns true when nothing of the hint needs to be kept ([`Clock::has_lived_until`]).
    pub(crate) fn has_ended(&self, hint: &Hint) -> bool {
        self.clock.has_lived_until(hint.expires_at(), hint.updated_at)
    }

    /// Returns the compiled scope, from the cache if possible.
    pub(crate) fn compile_scope(&self, spec: &ScopeSpec) -> Result<Arc<Scope>> {
        if let Some(scope) = self.compiled.lock().scopes.get(spec) {
            return Ok(Arc::clone(scope));
        }
        let scope = Arc::new(Scope::new(spec)?);
        let bytes = 2 * scope.held_bytes();
        // A large one would push out all others.
        if bytes <= MAX_CACHED_SCOPE_BYTES / 64 {
            let mut compiled = self.compiled.lock();
            if compiled.bytes + bytes > MAX_CACHED_SCOPE_BYTES {
                *compiled = Compiled::default();
            }
            compiled.bytes += bytes;
            compiled.scopes.insert(spec.clone(), Arc::clone(&scope));
        }
        Ok(scope)
    }

    /// Checks everything about a hint that does not depend on the store, in the order of semantics section 5.
    pub(crate) fn check(
        &self,
        component: &str,
        key: &str,
        value: &mut HintValue,
        meta: &mut HintMeta,
        allow_secret: bool,
    ) -> Result<Arc<Scope>> {
        check_name("component", component)?;
        check_name("key", key)?;
        value.check()?;
        meta.check()?;
        let scope = self.compile_scope(&meta.scope)?;
        value.normalize()?;
        if self.config.secret_guard && !allow_secret {
            guard::check_hint(component, key, value, meta, &scope)?;
        }
        meta.ttl.get_or_insert_with(|| self.config.default_ttl.clone());
        Ok(scope)
    }

    /// Returns the retained top-level keys of imports, as one JSON object.
    pub(crate) fn extra(&self) -> Option<Arc<RawValue>> {
        self.writer.lock().extra.clone()
    }

    /// Plans changes, records them, then applies them. All changes are made through this method.
    pub(crate) fn write<T: Recordable>(
        &self,
        act: Act<'_>,
        body: impl FnOnce(&mut Plan<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut writer = self.writer.lock();
        let now = self.now();
        let by_agent = act.by.agent;
        let mut plan = Plan { store: &self.store, writer: &mut writer, now, by_agent, changes: Vec::new() };
        let planned = body(&mut plan);
        let changes = plan.changes;
        let recorded = planned.and_then(|out| {
            if let Some(made) = act.by.made.filter(|_| !changes.is_empty()) {
                made.check()?;
            }
            if act.adds {
                self.check_quotas(&mut writer, by_agent, &changes, now)?;
            }
            if !changes.is_empty() {
                let secret = || changes.iter().find_map(Change::version_of_secret);
                let known = act.by.key.map(|_| Known::new(act.by.call, &out, secret())).transpose()?;
                let applied = Applied { verb: act.verb, by: act.by, at: now, changes: &changes };
                let (result, version, call) = known.as_ref().map(Known::recorded).unwrap_or_default();
                self.record(&writer, &Entry { applied, result, version, call })?;
                if let (Some(key), Some(known)) = (act.by.key, known) {
                    self.calls.note(key, known);
                }
            }
            Ok(out)
        });
        if recorded.is_err() {
            for change in &changes {
                if let Change::Put(hint) = change {
                    writer.release(&hint.scope);
                }
            }
            return recorded;
        }
        self.apply(&mut writer, act, now, &changes);
        recorded
    }

    /// Records a write. A log that another process has shortened refuses it and returns true from `is_long`; then
    /// the log begins anew and the write is recorded in it.
    fn record(&self, writer: &Writer, entry: &Entry<'_>) -> Result<()> {
        self.log.append(entry).or_else(|refusal| {
            if !self.log.is_long() {
                return Err(refusal);
            }
            self.log.begin_anew(&self.records(writer));
            self.log.append(entry)
        })
    }

    /// Runs `look` on the last deletions.
    pub(crate) fn with_trash<T>(&self, look: impl FnOnce(&Trash) -> T) -> T {
        look(&self.writer.lock().trash)
    }

    /// Applies changes whose scopes are acquired, and releases the scopes of removed hints.
    fn change(&self, writer: &mut Writer, changes: &[Change]) {
        for change in changes {
            if let Change::Extra(extra) = change {
                writer.extra = Some(Arc::clone(extra));
            }
        }
        // Stored before new hints are visible, so that no reader finds an environment condition uncounted.
        self.env_scopes.store(writer.env_scopes, Ordering::Release);
        for hint in self.store.apply(changes) {
            writer.release(&hint.scope);
        }
        self.env_scopes.store(writer.env_scopes, Ordering::Release);
        if std::mem::take(&mut writer.recycled) {
            self.store.renumber();
        }
    }

    /// Makes a write visible, and reports it to the log.
    fn apply(&self, writer: &mut Writer, act: Act<'_>, now: Millis, changes: &[Change]) {
        self.change(writer, changes);
        if !changes.is_empty() {
            let applied = Applied { verb: act.verb, by: act.by, at: now, changes };
            writer.trash.note(&applied);
            self.fit_trash(writer);
            self.log.applied(&applied);
            if self.log.is_long() {
                self.log.begin_anew(&self.records(writer));
            }
        }
    }

    /// Forgets deletions until the rest fits beside the stored hints.
    fn fit_trash(&self, writer: &mut Writer) {
        if !writer.trash.is_empty() {
            writer.trash.fit(self.room_for_trash());
        }
    }

    /// Returns the whole store, except for secrets, as records.
    fn records(&self, writer: &Writer) -> Vec<Vec<u8>> {
        let mut hints = self.store.all();
        hints.retain(|hint| !self.has_ended(hint));
        let now = self.clock.plausible();
        self.calls.look(|calls| record::snapshot(&hints, writer.extra.as_deref(), &writer.trash, calls, now))
    }

    /// Restores the changes of records, in their order, as if they had been there all the time: nothing is
    /// checked, recorded or reported. Returns the number of records that could not be read; they are skipped.
    pub fn restore(&self, records: impl IntoIterator<Item: AsRef<[u8]>>) -> usize {
        let mut writer = self.writer.lock();
        records.into_iter().map(|record| usize::from(self.restore_one(&mut writer, record.as_ref()).is_err())).sum()
    }

    fn restore_one(&self, writer: &mut Writer, record: &[u8]) -> Result<()> {
        let read = Read::parse(record)?;
        let mut hints = Vec::with_capacity(read.put.len());
        for (component, key, body) in read.put {
            hints.push(self.recorded_hint(&component.into(), &key, body)?);
        }
        if let Some(id) = read.deleted {
            hints.iter_mut().for_each(Hint::measure);
            let what = if read.verb == Gone::Replaced.as_str() { Gone::Replaced } else { Gone::Deleted };
            let hints = hints.into_iter().map(Arc::new).collect();
            writer.trash.restore(Deleted { id, at: read.at, by: read.by.into(), what, hints });
            self.fit_trash(writer);
            return Ok(());
        }
        let mut plan = Plan { store: &self.store, writer, now: Millis::MIN, by_agent: false, changes: Vec::new() };
        for (names, change) in [(&read.gone, Change::Delete as fn(_) -> _), (&read.replaced, Change::Replaced)] {
            for (component, key, variant) in names {
                if let Some(hint) = plan.variants(component, key).iter().find(|hint| hint.variant() == variant) {
                    plan.changes.push(change(Arc::clone(hint)));
                }
            }
        }
        for hint in hints {
            plan.put(hint);
        }
        if let Some(extra) = read.extra {
            plan.set_extra(extra.to_owned().into());
        }
        let changes = plan.changes;
        for done in read.done {
            self.calls.restore(&done);
        }
        self.change(writer, &changes);
        writer.trash.count_from(read.deletions);
        let verb = if read.verb == "undo" { "undo" } else { "restore" };
        writer.trash.note(&Applied { verb, by: Caller::named(&read.by), at: read.at, changes: &changes });
        self.fit_trash(writer);
        Ok(())
    }

    fn sweep_locked(&self, writer: &mut Writer) -> usize {
        let mut expired = self.store.expired(self.now());
        expired.retain(|hint| self.has_ended(hint));
        let expired: Vec<_> = expired.into_iter().map(Change::Delete).collect();
        if !expired.is_empty() {
            self.apply(writer, Act::new("expire", Caller::default()), self.clock.plausible(), &expired);
        }
        expired.len()
    }
}

/// The verb of a write, and its caller.
#[derive(Clone, Copy)]
pub(crate) struct Act<'a> {
    verb: &'static str,
    by: Caller<'a>,
    /// True for verbs that add hints, which must check the quotas.
    adds: bool,
}

impl<'a> Act<'a> {
    pub fn new(verb: &'static str, by: Caller<'a>) -> Self {
        Self { verb, by, adds: false }
    }

    pub fn adds(verb: &'static str, by: Caller<'a>) -> Self {
        Self { verb, by, adds: true }
    }
}

/// A planned write: the state it may read, and the changes it wants.
pub(crate) struct Plan<'a> {
    store: &'a Store,
    writer: &'a mut Writer,
    pub now: Millis,
    by_agent: bool,
    changes: Vec<Change>,
}

impl Plan<'_> {
    /// Returns the live variants of a key.
    pub fn variants(&self, component: &str, key: &str) -> Variants {
        let mut variants = self.store.variants(component, key).1;
        variants.retain(|hint| !hint.is_expired(self.now));
        variants
    }

    /// Returns one variant of a key, even if it has expired.
    pub fn stored(&self, component: &str, key: &str, variant: &str) -> Option<Arc<Hint>> {
        self.store.variant(component, key, variant)
    }

    /// Returns every live hint.
    pub fn all(&self) -> Vec<Arc<Hint>> {
        self.store.all().into_iter().filter(|hint| !hint.is_expired(self.now)).collect()
    }

    pub fn extra(&self) -> Option<&RawValue> {
        self.writer.extra.as_deref()
    }

    pub fn trash(&self) -> &Trash {
        &self.writer.trash
    }

    /// Plans to store a hint, new or in place of the one with an equal scope.
    pub fn put(&mut self, mut hint: Hint) -> Arc<Hint> {
        hint.scope = self.writer.acquire(&hint.scope);
        for tag in &mut hint.tags {
            if let Some(stored) = self.store.intern(tag) {
                *tag = stored;
            }
        }
        if let Some(stored) = self.store.intern(&hint.component) {
            hint.component = stored;
        }
        hint.measure();
        let hint = Arc::new(hint);
        self.changes.push(Change::Put(Arc::clone(&hint)));
        hint
    }

    /// Keeps `old`, which another hint replaces, for `undo`. Returns the id under which it is kept, if the call deletes
    /// nothing besides.
    pub fn keep(&mut self, old: &Arc<Hint>) -> u64 {
        self.changes.push(Change::Replaced(Arc::clone(old)));
        self.trash().last_id() + 1
    }

    /// True for a hint that the call must not lose: a person's, when the caller is an agent.
    pub fn must_keep(&self, old: &Hint) -> bool {
        self.by_agent && old.source() == Some(Source::User)
    }

    pub fn delete(&mut self, hint: &Arc<Hint>) {
        self.changes.push(Change::Delete(Arc::clone(hint)));
    }

    pub fn set_extra(&mut self, extra: Arc<RawValue>) {
        self.changes.push(Change::Extra(extra));
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::clock::{ManualClock, PlausibleClock};

    use super::*;
    use crate::{Export, Import, ImportMode, SetHint};

    const DAY_MS: Millis = 86_400_000;

    fn set(store: &Nudge, key: &str) -> Result<()> {
        let mut hint = SetHint::new("a", key, "make");
        hint.meta.ttl = Some("P30D".parse().unwrap());
        store.set(hint).map(drop)
    }

    #[test]
    fn a_clock_that_is_ahead_for_seconds_drops_nothing() {
        let manual = Arc::new(ManualClock::new(1_767_225_600_000));
        let clock = Arc::new(PlausibleClock::new(Arc::clone(&manual) as _, None));
        let store = Nudge::with_clock(Config { max_hints: 2, ..Config::default() }, clock);
        set(&store, "one").unwrap();
        set(&store, "two").unwrap();
        let waiting = Export { with_waiting: true, ..Export::default() };
        let payload = |asked: &Export| serde_json::value::to_raw_value(&store.export(asked).unwrap().payload).unwrap();
        for jump in [DAY_MS, 31 * DAY_MS, 3650 * DAY_MS] {
            manual.jump(jump);
            manual.advance(8000);
            let gone = jump > 30 * DAY_MS;
            assert_eq!(store.get("a", "one", &Context::default()).is_none(), gone, "reads follow the clock");
            assert_eq!((store.sweep(), payload(&waiting).get().contains("\"two\"")), (0, true));
            assert_eq!(payload(&Export::default()).get().contains("\"two\""), !gone);
            if gone {
                // They take no place, and are stored when they are read from a file.
                let other = Nudge::with_clock(Config::default(), Arc::clone(&store.clock));
                let kept = payload(&waiting);
                let import = Import { payload: kept.clone(), mode: ImportMode::Merge, allow_secret: false };
                assert_eq!(other.import(&import).unwrap().imported, 0);
                let again = serde_json::value::to_raw_value(&other.export(&waiting).unwrap().payload).unwrap();
                assert_eq!(again.get().len(), kept.get().len());
                set(&store, "three").unwrap();
                assert!(store.get("a", "three", &Context::default()).is_some());
                store.delete(&serde_json::from_str(r#"{"component": "a", "key": "three"}"#).unwrap()).unwrap();
            }
            manual.jump(-jump);
            assert!(["one", "two"].iter().all(|key| store.get("a", key, &Context::default()).is_some()), "right again");
        }
        // A clock that stays is believed.
        manual.jump(31 * DAY_MS);
        store.sweep();
        manual.advance(3_600_000);
        assert_eq!(store.sweep(), 2);
    }

    #[test]
    fn a_scope_is_compiled_once() {
        let (store, spec) = (Nudge::default(), ScopeSpec { branch: vec!["dev".into()], ..ScopeSpec::default() });
        let first = store.compile_scope(&spec).unwrap();
        assert!(Arc::ptr_eq(&first, &store.compile_scope(&spec).unwrap()));
    }
}
