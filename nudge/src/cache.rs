//! Defines [`Nudge`]: the store with its clock, limits and writer. The verbs are in `method`.

mod judged;
mod quota;
mod writer;

use std::convert::Infallible;
use std::sync::Arc;

use hashbrown::HashMap;
use nudge_core::clock::{Clock, Millis, SystemClock};
use nudge_core::context::Context;
use nudge_core::embed::ModelProvider;
use nudge_core::error::{Error, Result};
use nudge_core::once::{CallMemory, CallRecord, MadeCall, RecordableResult};
use nudge_core::scope::{Scope, ScopeSpec};
use nudge_core::service::Caller;
use nudge_core::source::{RowTaker, SessionRow};
use nudge_core::suggest::Suggester;
use nudge_core::sync::Mutex;
use nudge_core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use serde_json::value::RawValue;

use crate::choice::{Match, pick_variant};
use crate::config::Config;
use crate::guard;
use crate::hint::{Hint, HintMeta, HintOrigin, HintValue, check_name};
use crate::log::{AppliedWrite, ChangeLog, LogEntry, NoLog};
use crate::method::suggest::{HintMeanings, WordIndex};
use crate::session_rows::{self, HintParts, ReadDeletion};
use crate::store::{HintStore, StoreChange, Variants};
use crate::trash::{HintTrash, TrashEntry, TrashPlan};
use writer::WriterState;

/// The most bytes of the cached compiled scopes, together with the texts from which they were compiled.
const MAX_CACHED_SCOPE_BYTES: usize = 1 << 20;

/// The hint cache: a thread-safe store in memory that explains its answers. Reads never write, and a refused call
/// changes nothing.
///
/// The type has one method for each verb; [`Service`](crate::Service) calls the same verbs by name with JSON.
pub struct Nudge {
    pub(crate) store: HintStore,
    pub(crate) config: Config,
    pub(crate) session_id: String,
    pub(crate) created_at: Millis,
    pub(crate) suggester: Suggester,
    /// The index of the hints' words. It is built at the first question in words.
    pub(crate) words: Mutex<WordIndex>,
    /// The vectors of the hints, if there is a model.
    pub(crate) meanings: HintMeanings,
    pub(crate) regexes: Mutex<Vec<regex::Regex>>,
    /// The number of scopes in use that have conditions on the environment.
    env_scopes: AtomicUsize,
    /// The number of calls that found a hint.
    hits: AtomicU64,
    pub(crate) calls: CallMemory,
    clock: Arc<dyn Clock>,
    log: Box<dyn ChangeLog>,
    writer: Mutex<WriterState>,
    compiled: Mutex<CompiledScopes>,
}

/// Compiled scopes. They are cached, so that a scope that is stored repeatedly is compiled only once.
#[derive(Default)]
struct CompiledScopes {
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

    /// Makes an empty store with the caller's clock.
    pub fn with_clock(config: Config, clock: Arc<dyn Clock>) -> Self {
        Self::with_log(config, clock, Box::new(NoLog))
    }

    /// Makes an empty store whose changes are recorded before they are visible.
    pub fn with_log(config: Config, clock: Arc<dyn Clock>, log: Box<dyn ChangeLog>) -> Self {
        Self {
            store: HintStore::default(),
            session_id: uuid::Uuid::new_v4().to_string(),
            created_at: clock.now(),
            suggester: Suggester::new(config.suggest_max),
            words: Mutex::default(),
            meanings: HintMeanings::default(),
            config,
            regexes: Mutex::default(),
            env_scopes: AtomicUsize::new(0),
            hits: AtomicU64::new(0),
            calls: CallMemory::default(),
            clock,
            log,
            writer: Mutex::default(),
            compiled: Mutex::default(),
        }
    }

    /// Sets the identity of a session that began earlier. The id and the time belong to the session, so each PRIMARY of
    /// the session uses the same ones (semantics section 8).
    #[must_use]
    pub fn with_identity(self, id: String, created_at: Millis) -> Self {
        Self { session_id: id, created_at, ..self }
    }

    /// Uses the models of `models` to find hints by meaning.
    #[must_use]
    pub(crate) fn with_models(self, models: Arc<dyn ModelProvider>) -> Self {
        Self { meanings: HintMeanings::new(models), ..self }
    }

    /// Returns the random id of the session.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Returns the time at which the session began.
    pub fn created_at(&self) -> Millis {
        self.created_at
    }

    /// Finds the best hint of a key that fits the context. A [`View`](crate::View) is faster for repeated lookups from
    /// one context. This method compares scopes without a limit of steps; [`Nudge::find`] has the limit that every call
    /// has.
    pub fn get(&self, component: &str, key: &str, context: &Context) -> Option<Match> {
        let variants = self.store.find_variants(component, key).1;
        if variants.is_empty() {
            return None;
        }
        let Ok(found) =
            pick_variant(&variants, context, self.now(), |hint| Ok::<_, Infallible>(hint.scope.matches(context)));
        found
    }

    /// Counts a call that found a hint, for the statistics.
    pub(crate) fn count_hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn hit_count(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// Finds a hint as [`get`](Self::get) does, but considers only one variant. The name of the unscoped variant is
    /// `""`.
    pub fn get_variant(&self, component: &str, key: &str, variant: &str, context: &Context) -> Option<Match> {
        let variants = [self.store.find_variant(component, key, variant)?];
        let Ok(found) =
            pick_variant(&variants, context, self.now(), |hint| Ok::<_, Infallible>(hint.scope.matches(context)));
        found
    }

    /// Returns true when an answer can depend on the environment.
    pub(crate) fn looks_at_env(&self) -> bool {
        self.env_scopes.load(Ordering::Acquire) > 0
    }

    /// Drops expired hints, which no method shows, and returns their number. While the clock is not plausible, hints
    /// that have expired only by this clock are not dropped: they become visible again when the clock is right.
    pub fn sweep(&self) -> usize {
        let mut writer = self.writer.lock();
        self.sweep_locked(&mut writer)
    }

    /// Checks whether a hint with a duration will be kept for the next session.
    ///
    /// # Errors
    /// The reason why the hint will not be kept.
    pub(crate) fn check_keeping(&self) -> std::result::Result<(), String> {
        self.log.check_keeping()
    }

    /// Returns the limits and switches.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the time by the store's clock.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Returns true when the hint may be deleted because its ttl is over ([`Clock::has_lived_until`]).
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
        // A large scope is not cached, because it would replace all other scopes.
        if bytes <= MAX_CACHED_SCOPE_BYTES / 64 {
            let mut compiled = self.compiled.lock();
            if compiled.bytes + bytes > MAX_CACHED_SCOPE_BYTES {
                *compiled = CompiledScopes::default();
            }
            compiled.bytes += bytes;
            compiled.scopes.insert(spec.clone(), Arc::clone(&scope));
        }
        Ok(scope)
    }

    /// Checks all parts of a hint that can be checked without the store, in the order of semantics section 5.
    pub(crate) fn check_input(
        &self,
        component: &str,
        key: &str,
        value: &mut HintValue,
        meta: &mut HintMeta,
        allow_secret: bool,
    ) -> Result<Arc<Scope>> {
        check_name("component", component)?;
        check_name("key", key)?;
        value.check_sizes()?;
        meta.check_limits()?;
        let scope = self.compile_scope(&meta.scope)?;
        value.normalize()?;
        if self.config.secret_guard && !allow_secret {
            guard::check_hint(component, key, value, meta, &scope)?;
        }
        meta.ttl.get_or_insert_with(|| self.config.default_ttl.clone());
        Ok(scope)
    }

    /// Returns the unknown top-level keys of imports that the store keeps, as one JSON object.
    pub(crate) fn extra(&self) -> Option<Arc<RawValue>> {
        self.writer.lock().extra.clone()
    }

    /// Plans changes, records them, and then applies them. Every change of the store uses this method.
    pub(crate) fn write<T: RecordableResult>(
        &self,
        act: WriteAct<'_>,
        body: impl FnOnce(&mut WritePlan<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut writer = self.writer.lock();
        let now = self.now();
        let by_agent = act.caller.agent;
        let mut plan = WritePlan { store: &self.store, writer: &mut writer, now, by_agent, changes: Vec::new() };
        let planned = body(&mut plan);
        let changes = plan.changes;
        let recorded = planned.and_then(|out| {
            if let Some(made) = act.caller.made.filter(|_| !changes.is_empty()) {
                made.refuse_change()?;
            }
            if act.adds {
                self.check_quotas(&mut writer, by_agent, &changes, now)?;
            }
            let trash = if changes.is_empty() {
                TrashPlan::default()
            } else {
                let secret = || changes.iter().find_map(StoreChange::version_of_secret);
                let known = act.caller.key.map(|_| MadeCall::new(act.caller.call, &out, secret())).transpose()?;
                let applied = AppliedWrite { verb: act.verb, caller: act.caller, time: now, changes: &changes };
                self.record_write(&mut writer, applied, known)?
            };
            Ok((out, trash))
        });
        match recorded {
            Ok((out, trash)) => {
                self.apply_write(&mut writer, act, now, &changes, trash);
                Ok(out)
            }
            Err(refusal) => {
                for change in &changes {
                    if let StoreChange::Put(hint) = change {
                        writer.release_scope(&hint.scope);
                    }
                }
                Err(refusal)
            }
        }
    }

    /// Records a write and remembers its call. Returns the changes to the trash, which were recorded too.
    fn record_write(
        &self,
        writer: &mut WriterState,
        applied: AppliedWrite<'_>,
        known: Option<MadeCall>,
    ) -> Result<TrashPlan> {
        let trash = writer.trash.plan_deletions(&applied);
        let call = applied.caller.key.zip(known.as_ref());
        let call = call.map(|(key, known)| (self.calls.next_number(), known.to_record(key)));
        let (waiting, all) = (&writer.waiting[..], &|take: &mut RowTaker<'_>| self.feed_all(writer, take));
        self.log.append(&LogEntry { applied, call, trash: &trash, waiting, all })?;
        writer.waiting.clear();
        if let (Some(key), Some(known)) = (applied.caller.key, known) {
            let forgotten = self.calls.remember(key, known);
            writer.waiting.extend(forgotten.into_iter().map(session_rows::forget_call));
        }
        Ok(trash)
    }

    /// Calls `look` with the last deletions.
    pub(crate) fn with_trash<T>(&self, look: impl FnOnce(&HintTrash) -> T) -> T {
        look(&self.writer.lock().trash)
    }

    /// Applies changes whose scopes have been acquired, and releases the scopes of removed hints.
    fn apply_changes(&self, writer: &mut WriterState, changes: &[StoreChange]) {
        for change in changes {
            if let StoreChange::Extra(extra) = change {
                writer.extra = Some(Arc::clone(extra));
            }
        }
        // The count is stored before the new hints are visible, so that every visible condition on the environment is
        // counted.
        self.env_scopes.store(writer.env_scopes, Ordering::Release);
        for hint in self.store.apply_changes(changes) {
            writer.release_scope(&hint.scope);
        }
        self.env_scopes.store(writer.env_scopes, Ordering::Release);
        if std::mem::take(&mut writer.recycled) {
            self.store.renumber_scopes();
        }
    }

    /// Makes a write visible, and reports it to the log.
    fn apply_write(
        &self,
        writer: &mut WriterState,
        act: WriteAct<'_>,
        now: Millis,
        changes: &[StoreChange],
        trash: TrashPlan,
    ) {
        self.apply_changes(writer, changes);
        if !changes.is_empty() {
            let dropped = writer.trash.apply_plan(trash);
            writer.forget_deletions(&dropped);
            self.fit_trash(writer);
            self.log.on_applied(&AppliedWrite { verb: act.verb, caller: act.caller, time: now, changes });
        }
    }

    /// Drops remembered deletions until the rest fits into memory together with the stored hints.
    fn fit_trash(&self, writer: &mut WriterState) {
        let dropped = writer.trash.shrink_to(self.room_for_trash());
        writer.forget_deletions(&dropped);
    }

    /// Gives the rows of the whole store, without secrets.
    fn feed_all(&self, writer: &WriterState, take: &mut RowTaker<'_>) -> Result<()> {
        let mut hints = self.store.list_all();
        hints.retain(|hint| !self.has_ended(hint));
        session_rows::write_hints(&hints).try_for_each(|row| take(&row))?;
        session_rows::write_trash(&writer.trash).try_for_each(|row| take(&row))?;
        let extra = writer.extra.clone().and_then(|extra| session_rows::write_change(&StoreChange::Extra(extra)));
        extra.iter().try_for_each(&mut *take)?;
        self.calls.visit_records(|number, record| take(&session_rows::write_call(number, &record)))
    }

    /// Stores all rows again if another program has removed them.
    pub(crate) fn mend_rows(&self) {
        let writer = self.writer.lock();
        self.log.mend(&|take| self.feed_all(&writer, take));
    }

    /// Restores the store from its rows, in any order. The rows are not checked, and the changes are neither recorded
    /// nor reported. Returns the number of unreadable rows, which are skipped.
    pub fn restore(&self, rows: impl IntoIterator<Item = SessionRow>) -> usize {
        let mut writer = self.writer.lock();
        let mut read = RowContents::default();
        let unreadable = rows.into_iter().filter(|row| self.read_row(row, &mut read).is_err()).count();
        let mut plan = WritePlan {
            store: &self.store,
            writer: &mut writer,
            now: Millis::MIN,
            by_agent: false,
            changes: Vec::with_capacity(read.hints.len()),
        };
        for hint in read.hints {
            plan.put_hint(hint);
        }
        if let Some(extra) = read.extra {
            plan.set_extra(extra.into());
        }
        let changes = plan.changes;
        self.apply_changes(&mut writer, &changes);
        writer.trash.count_from(read.last_deletion);
        read.deletions.sort_by_key(|entry| entry.id);
        for entry in read.deletions {
            let dropped = writer.trash.restore_entry(entry);
            writer.forget_deletions(&dropped);
        }
        self.fit_trash(&mut writer);
        read.calls.sort_by_key(|(number, _)| *number);
        let mut unreadable_calls = 0;
        for (number, body) in read.calls {
            match session_rows::read_body::<CallRecord<'_>>(&body) {
                Ok(record) => {
                    let forgotten = self.calls.restore(number, &record);
                    writer.waiting.extend(forgotten.into_iter().map(session_rows::forget_call));
                }
                Err(_) => unreadable_calls += 1,
            }
        }
        unreadable + unreadable_calls
    }

    fn read_row(&self, row: &SessionRow, read: &mut RowContents) -> Result<()> {
        let number = || row.name.parse().map_err(|_| Error::invalid("The row has no number."));
        let to_hint = |(component, key, body): HintParts<'_>| self.recorded_hint(&Arc::from(&*component), &key, body);
        match &*row.kind {
            session_rows::HINT_ROW => read.hints.push(to_hint(session_rows::read_body(&row.body)?)?),
            session_rows::DELETION_ROW => {
                let ReadDeletion { at, by, what, hints } = session_rows::read_body(&row.body)?;
                let mut hints = hints.into_iter().map(to_hint).collect::<Result<Vec<_>>>()?;
                hints.iter_mut().for_each(Hint::measure);
                let hints = hints.into_iter().map(Arc::new).collect();
                read.deletions.push(TrashEntry { id: number()?, at, by: by.into(), what, hints });
            }
            session_rows::LAST_DELETION_ROW => read.last_deletion = session_rows::read_body(&row.body)?,
            session_rows::CALL_ROW => read.calls.push((number()?, row.body.clone())),
            session_rows::EXTRA_ROW => read.extra = Some(session_rows::read_body::<Box<RawValue>>(&row.body)?),
            _ => return Err(Error::invalid("The row is of no known kind.")),
        }
        Ok(())
    }

    fn sweep_locked(&self, writer: &mut WriterState) -> usize {
        let mut expired = self.store.list_expired(self.now());
        expired.retain(|hint| self.has_ended(hint));
        let expired: Vec<_> = expired.into_iter().map(StoreChange::Delete).collect();
        if !expired.is_empty() {
            writer.waiting.extend(expired.iter().filter_map(session_rows::write_change));
            let act = WriteAct::new("expire", Caller::default());
            self.apply_write(writer, act, self.clock.plausible_time(), &expired, TrashPlan::default());
        }
        expired.len()
    }
}

/// The contents of the rows from which a store is restored.
#[derive(Default)]
struct RowContents {
    hints: Vec<Hint>,
    deletions: Vec<TrashEntry>,
    last_deletion: u64,
    /// The number and the record of each call.
    calls: Vec<(u64, String)>,
    extra: Option<Box<RawValue>>,
}

/// The verb of a write, and its caller.
#[derive(Clone, Copy)]
pub(crate) struct WriteAct<'a> {
    verb: &'static str,
    caller: Caller<'a>,
    /// Is true for verbs that add hints. Such verbs must check the quotas.
    adds: bool,
}

impl<'a> WriteAct<'a> {
    pub fn new(verb: &'static str, caller: Caller<'a>) -> Self {
        Self { verb, caller, adds: false }
    }

    pub fn new_adding(verb: &'static str, caller: Caller<'a>) -> Self {
        Self { verb, caller, adds: true }
    }
}

/// A planned write: the state that it may read, and the changes that it makes.
pub(crate) struct WritePlan<'a> {
    store: &'a HintStore,
    writer: &'a mut WriterState,
    pub now: Millis,
    by_agent: bool,
    changes: Vec<StoreChange>,
}

impl WritePlan<'_> {
    /// Returns the live variants of a key.
    pub fn find_variants(&self, component: &str, key: &str) -> Variants {
        let mut variants = self.store.find_variants(component, key).1;
        variants.retain(|hint| !hint.is_expired(self.now));
        variants
    }

    /// Returns one variant of a key, whether it has expired or not.
    pub fn find_stored(&self, component: &str, key: &str, variant: &str) -> Option<Arc<Hint>> {
        self.store.find_variant(component, key, variant)
    }

    /// Returns every live hint.
    pub fn list_live(&self) -> Vec<Arc<Hint>> {
        self.store.list_all().into_iter().filter(|hint| !hint.is_expired(self.now)).collect()
    }

    pub fn extra(&self) -> Option<&RawValue> {
        self.writer.extra.as_deref()
    }

    pub fn trash(&self) -> &HintTrash {
        &self.writer.trash
    }

    /// Plans to store a hint. If the key has a hint with an equal scope, the new hint replaces it.
    pub fn put_hint(&mut self, mut hint: Hint) -> Arc<Hint> {
        hint.scope = self.writer.acquire_scope(&hint.scope);
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
        self.changes.push(StoreChange::Put(Arc::clone(&hint)));
        hint
    }

    /// Plans to keep `old` for `undo`, because another hint replaces it. Returns the id of this replacement. The id is
    /// right only if the call deletes nothing else.
    pub fn keep_replaced(&mut self, old: &Arc<Hint>) -> u64 {
        self.changes.push(StoreChange::Replaced(Arc::clone(old)));
        self.trash().last_id() + 1
    }

    /// Returns true for a hint that must stay restorable: a person's hint, when the caller is an agent.
    pub fn must_keep(&self, old: &Hint) -> bool {
        self.by_agent && old.source() == Some(HintOrigin::User)
    }

    pub fn delete_hint(&mut self, hint: &Arc<Hint>) {
        self.changes.push(StoreChange::Delete(Arc::clone(hint)));
    }

    pub fn set_extra(&mut self, extra: Arc<RawValue>) {
        self.changes.push(StoreChange::Extra(extra));
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::clock::{ManualClock, PlausibleClock};

    use super::*;
    use crate::{ExportHints, ImportHints, ImportMode, SetHint};

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
        let waiting = ExportHints { with_waiting: true, ..ExportHints::default() };
        let payload =
            |asked: &ExportHints| serde_json::value::to_raw_value(&store.export(asked).unwrap().payload).unwrap();
        for jump in [DAY_MS, 31 * DAY_MS, 3650 * DAY_MS] {
            manual.jump_by(jump);
            manual.advance_by(8000);
            let gone = jump > 30 * DAY_MS;
            assert_eq!(store.get("a", "one", &Context::default()).is_none(), gone, "reads follow the clock");
            assert_eq!((store.sweep(), payload(&waiting).get().contains("\"two\"")), (0, true));
            assert_eq!(payload(&ExportHints::default()).get().contains("\"two\""), !gone);
            if gone {
                // Hints that have expired only by a doubtful clock do not count against the quota, and an import still
                // stores them.
                let other = Nudge::with_clock(Config::default(), Arc::clone(&store.clock));
                let kept = payload(&waiting);
                let import = ImportHints { payload: kept.clone(), mode: ImportMode::Merge, allow_secret: false };
                assert_eq!(other.import(&import).unwrap().imported, 0);
                let again = serde_json::value::to_raw_value(&other.export(&waiting).unwrap().payload).unwrap();
                assert_eq!(again.get().len(), kept.get().len());
                set(&store, "three").unwrap();
                assert!(store.get("a", "three", &Context::default()).is_some());
                store.delete(&serde_json::from_str(r#"{"component": "a", "key": "three"}"#).unwrap()).unwrap();
            }
            manual.jump_by(-jump);
            assert!(["one", "two"].iter().all(|key| store.get("a", key, &Context::default()).is_some()), "right again");
        }
        // After a jump, the clock counts as right again when it has run for a while without another jump.
        manual.jump_by(31 * DAY_MS);
        store.sweep();
        manual.advance_by(3_600_000);
        assert_eq!(store.sweep(), 2);
    }

    #[test]
    fn a_scope_is_compiled_once() {
        let (store, spec) = (Nudge::default(), ScopeSpec { branch: vec!["dev".into()], ..ScopeSpec::default() });
        let first = store.compile_scope(&spec).unwrap();
        assert!(Arc::ptr_eq(&first, &store.compile_scope(&spec).unwrap()));
    }
}
