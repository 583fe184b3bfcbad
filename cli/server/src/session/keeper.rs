//! Keeps hints for later sessions (semantics section 12). A PRIMARY reads the kept hints when a session begins. It
//! writes them again shortly after each change, and at the end.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nudge::{Caller, Error, ErrorKind, JoinedServices, Result, Service};
use nudge_app::followed::{FollowedHints, FollowedState};
use nudge_app::kept::{self, KeptDocument, KeptFolder, KeptLock};
use nudge_core::source::{ChangeEvent, ChangeSink};
use nudge_core::text::to_hex;
use nudge_core::wire::raw_json;
use parking_lot::{Condvar, Mutex};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::open::OpenSources;
use super::refill::{MAX_PIECE_BYTES, RefillResult};

/// The time from a change to the write; the write includes all changes of this time. The documents promise two seconds.
const DELAY: Duration = Duration::from_secs(1);
/// The name of the keeper as a caller, in the log and in `nudge watch`.
const NAME: &str = "nudge-keep";
/// The reason why a session keeps nothing when the setting is off.
pub(super) const OFF: &str = "keep is off; `nudge init` switches it on";
/// The reason in the notice when another program replaced the kept file.
const REPLACED: &str = "somebody has put it there while this session kept its hints";

/// Keeps the hints of a session, or has the reason why it does not.
pub struct HintKeeper(std::result::Result<ActiveKeeper, KeepRefusal>);

/// The reason why a session keeps no hints.
enum KeepRefusal {
    /// The setting is off.
    Off,
    /// Another session keeps the hints; the text names it.
    Elsewhere(String),
    /// The folder cannot be used; the text gives advice.
    Failed(String),
}

impl KeepRefusal {
    fn why(&self) -> &str {
        match self {
            Self::Off => OFF,
            Self::Elsewhere(why) | Self::Failed(why) => why,
        }
    }
}

struct ActiveKeeper {
    folder: KeptFolder,
    /// The runtime directory, which the keeper writes into the lock file.
    runtime: PathBuf,
    /// The session's id.
    session: String,
    /// Answers `nudge.export` and `nudge.import`.
    service: OnceLock<Arc<dyn Service>>,
    /// Locked while the keeper writes the file; `None` after the lock of the kept hints was released.
    lock: Mutex<Option<KeptLock>>,
    state: Mutex<KeeperState>,
    wake: Condvar,
}

#[derive(Default)]
struct KeeperState {
    /// True when a hint has changed since the last write of the file.
    changed: bool,
    ended: bool,
    /// The number of kept hints that do not follow a file.
    hints: usize,
    /// The number of hints in the session that follow files; the next session reads those files again.
    of_files: usize,
    /// The content hashes (marks) of hints that the session still has, but that the user has removed from the kept
    /// file.
    forgotten: HashSet<String>,
    /// The reason why the file could not be written.
    failed: Option<String>,
    /// A notice about the earlier kept file: its defect and its new path.
    aside: Option<String>,
    /// True when the earlier file could not be set aside. The keeper never overwrites such a file.
    given_up: bool,
}

/// The numbers of hints that the end of a session loses and keeps.
pub struct EndSummary {
    /// The number of hints in the session at its end.
    pub hints: usize,
    /// The number of kept hints among them.
    pub kept: usize,
    /// The path of the file with the kept hints, or the reason why there is none.
    pub place: std::result::Result<String, String>,
}

impl EndSummary {
    /// Returns the summary for users. Returns an empty text when there were no hints.
    pub fn to_text(&self) -> String {
        let count = |count: usize| if count == 1 { "1 hint".to_owned() } else { format!("{count} hints") };
        let is = |count: usize| if count == 1 { "is" } else { "are" };
        let Self { hints, kept, place } = self;
        match place {
            _ if *hints == 0 => String::new(),
            Ok(file) => {
                let gone = match hints.saturating_sub(*kept) {
                    0 => String::new(),
                    gone => format!("; {} ended with the session", count(gone)),
                };
                format!("{} {} kept for next time in {file}{gone}", count(*kept), is(*kept))
            }
            Err(why) => format!("{} {} gone: {why}", count(*hints), is(*hints)),
        }
    }
}

impl HintKeeper {
    /// Takes the lock of the kept hints, if `wanted` is true.
    pub fn open(wanted: bool, runtime: &Path, session: &str) -> Self {
        if !wanted {
            return Self(Err(KeepRefusal::Off));
        }
        let begun = KeptFolder::from_state_dir().and_then(|folder| Ok((folder.lock(Some(runtime))?, folder)));
        Self(match begun {
            Ok((Some(lock), folder)) => Ok(ActiveKeeper {
                folder,
                runtime: runtime.to_owned(),
                session: session.into(),
                service: OnceLock::new(),
                lock: Mutex::new(Some(lock)),
                state: Mutex::default(),
                wake: Condvar::new(),
            }),
            Ok((None, folder)) => {
                let owner = folder.read_owner().map_or_else(String::new, |owner| format!(" of {}", owner.display()));
                let why = format!("the session{owner} keeps hints already, and one does at a time");
                Err(KeepRefusal::Elsewhere(why))
            }
            Err(error) => Err(KeepRefusal::Failed(error.message().trim_end_matches('.').to_owned())),
        })
    }

    /// Returns a notice for users at the start of a session: the session cannot keep hints although it should, or the
    /// kept hints could not be read. Returns `None` when there is no problem.
    pub fn start_notice(&self) -> Option<String> {
        match &self.0 {
            Ok(keeping) => keeping.state.lock().aside.clone(),
            Err(KeepRefusal::Off) => None,
            Err(refusal) => Some(format!("hints are not kept for next time: {}", refusal.why())),
        }
    }

    /// Returns true when this session keeps hints.
    pub fn is_on(&self) -> bool {
        self.0.is_ok()
    }

    /// Imports the kept hints into the opened sources through `service`. Imports nothing if this session wrote the kept
    /// file and `whole` is true: its rows were complete, so the session has these hints already.
    pub fn read_back(&self, service: Arc<dyn Service>, whole: bool) {
        let Ok(keeping) = &self.0 else {
            if let Some(notice) = self.start_notice() {
                tracing::warn!("{notice}");
            }
            return;
        };
        let _ = keeping.service.set(service);
        let claims = keeping.read_back(whole);
        // Writes before the server answers any call. From this file, a later PRIMARY sees that the session has read the
        // kept hints.
        if claims {
            keeping.write();
        } else {
            keeping.note_change();
        }
    }

    /// Starts the thread that writes changes.
    pub fn start_writer(self: &Arc<Self>) {
        if self.0.is_err() {
            return;
        }
        let keeper = Arc::clone(self);
        let work = move || {
            if let Ok(keeping) = &keeper.0 {
                keeping.write_until_end();
            }
        };
        if let Err(error) = std::thread::Builder::new().name("nudge-keeper".into()).spawn(work) {
            tracing::error!(%error, "hints are kept at the end alone");
        }
    }

    /// Writes all pending changes now.
    pub fn flush(&self) {
        let Ok(keeping) = &self.0 else { return };
        // Waits for the end of a running write.
        drop(keeping.lock.lock());
        if keeping.state.lock().changed {
            keeping.write();
        }
    }

    /// Writes a last time and releases the lock. The caller has closed the sources.
    pub fn close(&self) {
        let Ok(keeping) = &self.0 else { return };
        keeping.state.lock().ended = true;
        keeping.wake.notify_all();
        self.flush();
        keeping.lock.lock().take();
    }

    /// Returns how many of `hints` are lost and how many are kept if the session ends now.
    pub fn summarize_end(&self, hints: usize) -> EndSummary {
        let keeping = match &self.0 {
            Ok(keeping) => keeping,
            Err(refusal) => return EndSummary { hints, kept: 0, place: Err(refusal.why().to_owned()) },
        };
        let state = keeping.state.lock();
        // The next session reads the hints of files again, so they count neither as kept nor as lost.
        let hints = hints.saturating_sub(state.of_files);
        match &state.failed {
            Some(why) => EndSummary { hints, kept: 0, place: Err(why.clone()) },
            None => {
                EndSummary { hints, kept: state.hints, place: Ok(keeping.folder.file_path().display().to_string()) }
            }
        }
    }

    /// Empties the kept file and returns the number of its hints. Later writes of this session leave out its present
    /// hints.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when this session keeps no hints, or the file cannot be written.
    pub fn forget_kept(&self) -> Result<usize> {
        let refused =
            |refusal: &KeepRefusal| Error::unavailable(format!("This session keeps nothing: {}.", refusal.why()));
        self.0.as_ref().map_err(refused)?.forget_kept()
    }

    /// Returns the keeper's part of the answer of `nudge.status`.
    pub fn describe_status(&self) -> Value {
        let keeping = match &self.0 {
            Ok(keeping) => keeping,
            Err(KeepRefusal::Failed(why)) => return json!({"on": false, "why": why, "failed": why}),
            Err(refusal) => return json!({"on": false, "why": refusal.why()}),
        };
        let state = keeping.state.lock();
        if let (true, Some(why)) = (state.given_up, &state.failed) {
            return json!({"on": false, "why": why, "failed": why});
        }
        let mut out =
            json!({"on": true, "hints": state.hints, "file": keeping.folder.file_path().display().to_string()});
        if state.of_files > 0 {
            out["of_files"] = state.of_files.into();
        }
        for (name, told) in [("failed", &state.failed), ("aside", &state.aside)] {
            if let Some(told) = told {
                out[name] = told.as_str().into();
            }
        }
        out
    }
}

impl ChangeSink for HintKeeper {
    fn tell_changes(&self, changes: &[ChangeEvent]) {
        if let Ok(keeping) = &self.0
            && changes.iter().any(|change| change.source == nudge::HINTS)
        {
            keeping.note_change();
        }
    }

    fn check_keeping(&self) -> std::result::Result<(), String> {
        let ends = |why: &str| Err(format!("it ends with this session at the latest: {why}"));
        let keeping = match &self.0 {
            Ok(keeping) => keeping,
            Err(refusal) => return ends(refusal.why()),
        };
        let state = keeping.state.lock();
        match &state.failed {
            Some(why) if state.given_up => ends(why),
            Some(why) => Err(format!("it is kept for next time once the file can be written: {why}")),
            None => Ok(()),
        }
    }
}

impl ActiveKeeper {
    fn note_change(&self) {
        let mut state = self.state.lock();
        if !state.changed {
            state.changed = true;
            self.wake.notify_all();
        }
    }

    fn write_until_end(&self) {
        loop {
            let mut state = self.state.lock();
            while !state.changed && !state.ended {
                self.wake.wait(&mut state);
            }
            let due = Instant::now() + DELAY;
            while !state.ended && Instant::now() < due {
                self.wake.wait_until(&mut state, due);
            }
            if state.ended {
                return;
            }
            drop(state);
            self.write();
        }
    }

    /// Reads the kept file. Returns true when this session must now write the file as its own.
    fn read_back(&self, whole: bool) -> bool {
        let text = self.lock.lock().as_mut().map_or(Ok(None), |lock| self.folder.read_first(lock));
        let text = match text {
            Ok(Some(text)) => text,
            Ok(None) => return false,
            Err(error) => {
                self.set_aside(&error.to_string());
                return true;
            }
        };
        let document = match KeptDocument::read(&text) {
            Ok(document) => document,
            Err(error) => {
                self.set_aside(&format!("it is damaged ({error})"));
                return true;
            }
        };
        let is_own = document.is_of(&self.session);
        if is_own {
            self.state.lock().forgotten = document.forgotten.iter().cloned().collect();
            if whole {
                return false;
            }
        }
        if !is_own && !document.is_empty() {
            self.keep_before(&text);
        }
        let over = self.read_over();
        // A file that cannot be parsed stays as it is.
        let over = over.as_deref().and_then(|text| KeptDocument::read(text).ok());
        match self.import_kept(&document, over.as_ref()) {
            Ok(RefillResult { left, wrong, .. }) => {
                if wrong > 0 {
                    self.set_aside(&format!("{wrong} of its hints make no sense"));
                }
                let all = document.len() + over.as_ref().map_or(0, KeptDocument::len);
                if !left.is_empty() {
                    let told = format!("the limits leave room for {} of its {all} hints", all - left.len());
                    self.put_over(&KeptDocument::from_hints(left.into_iter()), &told);
                } else if over.is_some() {
                    self.remove_over();
                }
            }
            Err(error) => self.set_aside(error.message().trim_end_matches('.')),
        }
        true
    }

    /// Imports the kept hints, then the hints that did not fit in the last session.
    fn import_kept<'a>(
        &self,
        kept: &'a KeptDocument<'a>,
        over: Option<&'a KeptDocument<'a>>,
    ) -> Result<RefillResult<'a>> {
        let import = |payload: &str| self.import_document(payload);
        let payload = kept.to_payload();
        if over.is_none() && payload.len() <= MAX_PIECE_BYTES {
            match import(&payload) {
                Err(error) if error.kind() == ErrorKind::Quota => {}
                done => return done.map(RefillResult::with_all_taken),
            }
        }
        drop(payload);
        let mut refill = RefillResult::default();
        for document in std::iter::once(kept).chain(over) {
            refill.import_hints(document.iter_hints().collect(), &import)?;
        }
        Ok(refill)
    }

    fn read_over(&self) -> Option<String> {
        self.folder.read_over().unwrap_or_else(|error| {
            tracing::error!(%error, "the hints for which there was no room cannot be read");
            None
        })
    }

    fn keep_before(&self, text: &str) {
        if let Some(Err(error)) = self.lock.lock().as_ref().map(|lock| self.folder.keep_before(lock, text)) {
            tracing::warn!(%error, "there is no copy of what was kept before");
        }
    }

    fn remove_over(&self) {
        if let Some(Err(error)) = self.lock.lock().as_ref().map(|lock| self.folder.remove_over(lock)) {
            tracing::warn!(%error, "the hints that found room now stay in their file as well");
        }
    }

    /// Writes the hints that do not fit to a separate file. The next session tries to import them again.
    fn put_over(&self, over: &KeptDocument<'_>, why: &str) {
        let written = self.lock.lock().as_ref().map(|lock| self.folder.write_over(lock, &over.to_text(&[])));
        match written {
            Some(Ok(file)) => {
                let told = format!("{why}; the others wait in {} until there is room", file.display());
                tracing::warn!(told, "what was kept");
                self.state.lock().aside = Some(told);
            }
            Some(Err(error)) => self.set_aside(&format!("{why}, and the others cannot be written ({error})")),
            None => {}
        }
    }

    /// Imports a document. Returns the number of hints in it that the import refused. The import accepts values that
    /// the secret guard would refuse, because the user stored them in spite of the guard.
    fn import_document(&self, payload: &str) -> Result<usize> {
        #[derive(Deserialize)]
        struct KeptImportResult {
            errors: Vec<Value>,
        }
        let params = format!("{{\"payload\":{payload},\"mode\":\"merge\",\"allow_secret\":true}}");
        let done = self.call("nudge.import", &params)?;
        let done: KeptImportResult =
            serde_json::from_str(done.get()).map_err(|error| Error::unavailable(error.to_string()))?;
        Ok(done.errors.len())
    }

    fn call(&self, method: &str, params: &str) -> Result<Box<RawValue>> {
        let service = self.service.get().ok_or_else(|| Error::unavailable("Nothing is open yet."))?;
        let params = RawValue::from_string(params.to_owned()).map_err(|error| Error::invalid(error.to_string()))?;
        service.call_by(Caller::with_name(NAME), method, &params)
    }

    /// Renames the earlier kept file, because this version does not understand all of it.
    fn set_aside(&self, why: &str) {
        self.set_aside_with(&mut self.lock.lock(), why);
    }

    fn set_aside_with(&self, lock: &mut Option<KeptLock>, why: &str) {
        let Some(held) = &*lock else { return };
        let file = self.folder.file_path();
        let told = match self.folder.set_aside(held) {
            Ok(aside) => format!("{} is {} now: {why}", file.display(), aside.display()),
            // Another program has removed the file in the meantime.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                // Stops keeping for this session, because the keeper never overwrites a file that it could not set
                // aside.
                *lock = None;
                let told = format!("{} stays as it is, and nothing is kept: {why}, {error}", file.display());
                let mut state = self.state.lock();
                (state.failed, state.given_up) = (Some(told.clone()), true);
                told
            }
        };
        tracing::error!(told, "what was kept");
        self.state.lock().aside = Some(told);
    }

    /// Writes the kept file. Notes a failure, and tries again after the next change.
    fn write(&self) {
        let mut lock = self.lock.lock();
        if lock.is_none() {
            return;
        }
        // Clears the flag before the export, so a change during the export leads to another write.
        self.state.lock().changed = false;
        let mut followed = FollowedHints::read(&self.session);
        let written = self.with_export(|document, state| {
            let (mut hints, mut of_files) = (0, 0);
            document.retain(|component, key, hint| {
                let (is_kept, is_of_file) = match followed.see_hint(component, key, hint) {
                    FollowedState::Independent => (kept::is_lasting(hint), false),
                    FollowedState::Followed { used } => (used, true),
                    FollowedState::Changed => (true, false),
                };
                let is_kept = is_kept && !state.forgotten.contains(&self.compute_mark(component, key, hint));
                of_files += usize::from(is_of_file);
                hints += usize::from(is_kept && !is_of_file);
                is_kept
            });
            let mut forgotten: Vec<_> = state.forgotten.iter().cloned().collect();
            forgotten.sort();
            (hints, of_files, document.to_text(&forgotten))
        });
        let is_seen = written.is_ok();
        let done =
            written.and_then(|(hints, of_files, text)| self.replace(&mut lock, &text).map(|()| (hints, of_files)));
        let is_locked = lock.is_some();
        // Releases the lock first, because `note_deleted` may wait for the file of seeds.
        drop(lock);
        if is_seen && let Err(error) = followed.note_deleted() {
            tracing::warn!(error = error.message(), "deleted hints of files come back in the next session");
        }
        // The lock is `None` if the file of another program could not be set aside.
        if !is_locked {
            return;
        }
        let mut state = self.state.lock();
        match done {
            Ok((hints, of_files)) => (state.hints, state.of_files, state.failed) = (hints, of_files, None),
            Err(error) => {
                if state.failed.is_none() {
                    tracing::error!(error = error.message(), "hints are not kept");
                }
                state.failed = Some(error.message().to_owned());
                state.changed = true;
            }
        }
    }

    /// Replaces the kept file. First renames a file that another program has written.
    fn replace(&self, lock: &mut Option<KeptLock>, text: &str) -> Result<()> {
        let file = self.folder.file_path();
        let unwritten = |error: io::Error| Error::unavailable(format!("{} cannot be written: {error}", file.display()));
        let Some(held) = lock else { return Ok(()) };
        self.folder.stay_locked(held, &self.runtime).map_err(unwritten)?;
        if self.folder.is_foreign(held) {
            self.set_aside_with(lock, REPLACED);
        }
        let Some(held) = lock else { return Ok(()) };
        self.folder.write(held, text).map_err(unwritten)
    }

    /// Calls `look` with an export of all hints except secrets.
    fn with_export<T>(&self, look: impl FnOnce(&mut KeptDocument<'_>, &KeeperState) -> T) -> Result<T> {
        let unreadable = |error: serde_json::Error| Error::unavailable(error.to_string());
        let exported = self.call("nudge.export", r#"{"with_waiting":true}"#)?;
        let ExportAnswer { payload } = serde_json::from_str(exported.get()).map_err(unreadable)?;
        let mut document = KeptDocument::read(payload.get()).map_err(unreadable)?;
        Ok(look(&mut document, &self.state.lock()))
    }

    fn forget_kept(&self) -> Result<usize> {
        self.write();
        let hints = self.state.lock().hints;
        let marks = self.with_export(|document, _| {
            document
                .iter_hints()
                .map(|(component, key, hint)| self.compute_mark(component, key, hint))
                .collect::<Vec<_>>()
        })?;
        self.state.lock().forgotten.extend(marks);
        self.write();
        if let Some(Err(error)) = self.lock.lock().as_ref().map(|lock| self.folder.remove_others(lock)) {
            return Err(Error::unavailable(format!("The copies beside it stay: {error}; remove them and try again.")));
        }
        match &self.state.lock().failed {
            Some(why) => Err(Error::unavailable(format!("{why}; make it writable and try again."))),
            None => Ok(hints),
        }
    }

    /// Returns a digest that identifies a version of a hint without its content. A hint that is set again has another
    /// digest.
    fn compute_mark(&self, component: &str, key: &str, hint: &RawValue) -> String {
        #[derive(Deserialize)]
        struct MarkedHint<'a> {
            #[serde(borrow, default)]
            version: Option<&'a RawValue>,
            #[serde(borrow, default)]
            updated_at: Option<&'a RawValue>,
            #[serde(borrow)]
            meta: MarkedMeta<'a>,
        }
        #[derive(Deserialize)]
        struct MarkedMeta<'a> {
            #[serde(borrow, default)]
            scope: Option<&'a RawValue>,
        }
        let text = |raw: Option<&RawValue>| raw.map_or_else(String::new, |raw| raw.get().to_owned());
        let told = serde_json::from_str::<MarkedHint<'_>>(hint.get())
            .map_or_else(|_| Vec::new(), |hint| vec![text(hint.version), text(hint.updated_at), text(hint.meta.scope)]);
        let whole = raw_json(&(&self.session, component, key, told));
        to_hex(&Sha256::digest(whole.get().as_bytes())[..12])
    }
}

/// The answer of `nudge.export`.
#[derive(Deserialize)]
struct ExportAnswer<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// Writes all hints except secrets to a separate file in the format of an export. The caller uses this when the session
/// ends and no other process can continue it. Returns the path of the file.
///
/// # Errors
/// `E_UNAVAILABLE` when the file cannot be written.
pub fn write_out(sources: &OpenSources, session: &str) -> Result<String> {
    let unreadable = |error: serde_json::Error| Error::unavailable(error.to_string());
    let params = RawValue::from_string("{}".to_owned()).map_err(unreadable)?;
    let exported =
        JoinedServices::new(sources.list_services()).call_by(Caller::with_name(NAME), "nudge.export", &params)?;
    let ExportAnswer { payload } = serde_json::from_str(exported.get()).map_err(unreadable)?;
    let written = KeptFolder::from_state_dir()?.write_left(session, payload.get());
    written.map(|file| file.display().to_string()).map_err(|error| Error::unavailable(error.to_string()))
}

/// Reports changes to two sinks, one after the other. The second sink decides whether the changes are kept.
pub struct ChangeSinkPair(pub Arc<dyn ChangeSink>, pub Arc<dyn ChangeSink>);

impl ChangeSink for ChangeSinkPair {
    fn tell_changes(&self, changes: &[ChangeEvent]) {
        self.0.tell_changes(changes);
        self.1.tell_changes(changes);
    }

    fn check_keeping(&self) -> std::result::Result<(), String> {
        self.1.check_keeping()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_in_honest_words() {
        let told = |hints, kept, place| EndSummary { hints, kept, place }.to_text();
        assert_eq!(told(0, 0, Err(OFF.into())), "");
        assert_eq!(told(1, 0, Err(OFF.into())), format!("1 hint is gone: {OFF}"));
        assert_eq!(told(2, 2, Ok("/f".into())), "2 hints are kept for next time in /f");
        assert_eq!(told(3, 1, Ok("/f".into())), "1 hint is kept for next time in /f; 2 hints ended with the session");
    }
}
