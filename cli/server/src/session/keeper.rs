//! Keeps hints for later sessions (semantics section 12). A PRIMARY reads the kept hints when a session begins. It
//! writes them again shortly after each change, and at the end.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nudge::{
    Caller, Clock, DELETION_ROW, Error, ErrorKind, HINTS, JoinedServices, Millis, Result, RowFeed, RowTaker, Service,
    SessionRow,
};
use nudge_app::followed::{FollowedHints, FollowedState};
use nudge_app::kept::database::{DeletionChanges, EarlierHints, KeptContents, KeptDatabase, SessionWrite, StoredHint};
use nudge_app::kept::folder::{KeptFolder, KeptLock};
use nudge_app::kept::log::{HintAuthors, HintChange, WriteAuthors};
use nudge_app::kept::state_folder::{EarlierLock, StateDirectory};
use nudge_app::kept::{self, KeptDocument, VariantName};
use nudge_core::source::{ChangeEvent, ChangeSink, DataDir, SessionRows};
use nudge_core::text::to_hex;
use nudge_core::wire::raw_json;
use nudge_storage::RestoredRows;
use parking_lot::{Condvar, Mutex};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::end_summary::EndSummary;
use super::kept_rows::{KnownRows, LastingHint};
use super::open::OpenSources;
use super::refill::{MAX_PIECE_BYTES, RefillResult};
use super::rows::SourceRows;

/// The time from a change to the write; the write includes all changes of this time. The documents promise two seconds.
const DELAY: Duration = Duration::from_secs(1);
/// The name of the keeper as a caller, in the log and in `nudge watch`.
const NAME: &str = "nudge-keep";
/// The reason why a session keeps nothing when the setting is off.
pub(super) const OFF: &str = "keep is off; `nudge init` switches it on";
/// The number of times that a write begins anew because another program has replaced the database meanwhile.
const MAX_TRIES: usize = 3;

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
    /// Locked while the keeper writes; `None` after the end.
    held: Mutex<Option<HeldDatabase>>,
    state: Mutex<KeeperState>,
    wake: Condvar,
}

/// The database of a session that keeps hints.
struct HeldDatabase {
    /// The open database; `None` until there is a hint to read or to write.
    database: Option<KeptDatabase>,
    /// The rows that the session has read or written last.
    rows: KnownRows,
    /// The lock. As the last field, it is released after the database is closed.
    lock: KeptLock,
}

impl HeldDatabase {
    fn get_database(&self) -> Result<&KeptDatabase> {
        self.database.as_ref().ok_or_else(|| Error::unavailable("The database of kept hints is not open; report this."))
    }
}

#[derive(Default)]
struct KeeperState {
    /// True when a hint has changed since the last write.
    changed: bool,
    ended: bool,
    /// The number of kept hints that do not follow a file.
    hints: usize,
    /// The number of hints in the session that follow files; the next session reads those files again.
    of_files: usize,
    /// The content hashes (marks) of hints that the session still has, but that the user has removed from the
    /// database.
    forgotten: BTreeSet<String>,
    /// The deletions that are not written yet.
    deletions: DeletionChanges,
    /// The authors of the changes that are not written yet.
    authors: HintAuthors,
    /// The reason why the hints could not be read or written.
    failed: Option<String>,
    /// Notices about earlier files and about hints that could not be read.
    aside: Vec<String>,
    /// The reason why there is no copy of this day.
    backup_failed: Option<String>,
}

/// The session and the folder of a keeper.
pub struct KeeperSetup<'a> {
    /// The runtime directory.
    pub runtime: &'a Path,
    /// The session's id.
    pub session: &'a str,
    /// The folder for data.
    pub data: DataDir,
    /// The session's clock.
    pub clock: Arc<dyn Clock>,
}

/// The hints of a session that must be in the database.
struct PickedHints<'a> {
    lasting: Vec<LastingHint<'a>>,
    /// The number of lasting hints that do not follow a file.
    count: usize,
    /// The number of hints that follow a file.
    of_files: usize,
}

/// The parts of the keeper's state that a write takes.
#[derive(Clone, Copy)]
struct UnwrittenParts<'a> {
    deletions: &'a DeletionChanges,
    authors: &'a HintAuthors,
}

/// The result of a try to write.
#[derive(PartialEq, Eq)]
enum WriteOutcome {
    Written,
    /// The database had other contents, which are read now. The write must begin anew.
    Replaced,
}

impl HintKeeper {
    /// Takes the lock of the kept hints, if `wanted` is true.
    pub fn open(wanted: bool, setup: KeeperSetup<'_>) -> Self {
        if !wanted {
            return Self(Err(KeepRefusal::Off));
        }
        let KeeperSetup { runtime, session, data, clock } = setup;
        let folder = KeptFolder::new(data, clock);
        Self(match folder.lock(Some(runtime)) {
            Ok(Some(lock)) => Ok(ActiveKeeper {
                folder,
                runtime: runtime.to_owned(),
                session: session.into(),
                service: OnceLock::new(),
                held: Mutex::new(Some(HeldDatabase { database: None, rows: KnownRows::default(), lock })),
                state: Mutex::default(),
                wake: Condvar::new(),
            }),
            Ok(None) => {
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
            Ok(keeping) => {
                let state = keeping.state.lock();
                let notices: Vec<_> = state.failed.iter().chain(&state.aside).map(String::as_str).collect();
                Some(notices.join("; ")).filter(|notice| !notice.is_empty())
            }
            Err(KeepRefusal::Off) => None,
            Err(refusal) => Some(format!("hints are not kept for next time: {}", refusal.why())),
        }
    }

    /// Exchanges deletions with the database before the hints are restored from their rows: adds the deletions of
    /// earlier sessions to the rows, and keeps those that a killed server had no time to keep. The session `begins` if
    /// no earlier server has served it.
    pub fn exchange_deletions(&self, restored: &mut RestoredRows, begins: bool) {
        let Ok(keeping) = &self.0 else { return };
        let is_deletion = |(source, row): &&(String, SessionRow)| source == HINTS && row.kind == DELETION_ROW;
        let rows = restored.rows.iter().filter(is_deletion);
        self.note_deletions(rows.filter_map(|(_, row)| Some((row.name.parse().ok()?, Some(row.body.clone())))));
        match keeping.list_deletions(begins) {
            Ok(rows) => restored.add_rows(HINTS, rows),
            // `read_back` tells users of a database that cannot be read.
            Err(error) => tracing::warn!(error = error.message(), "earlier deletions cannot be undone"),
        }
    }

    /// Notes deletions that the session has stored, to keep those of lasting hints. `None` stands for a deletion that can
    /// no longer be undone.
    fn note_deletions(&self, rows: impl IntoIterator<Item = (i64, Option<String>)>) {
        if let Ok(keeping) = &self.0 {
            let pick_lasting = |body: String| nudge::filter_deletion(&body, kept::is_lasting);
            let rows = rows.into_iter().map(|(id, body)| (id, body.and_then(pick_lasting)));
            keeping.state.lock().deletions.extend(rows);
        }
    }

    /// Returns true when this session keeps hints.
    pub fn is_on(&self) -> bool {
        self.0.is_ok()
    }

    /// Imports the kept hints into the opened sources through `service`. Imports nothing if this session wrote the
    /// database and `whole` is true: its rows were complete, so the session has these hints already.
    pub fn read_back(&self, service: Arc<dyn Service>, whole: bool) {
        let Ok(keeping) = &self.0 else {
            if let Some(notice) = self.start_notice() {
                tracing::warn!("{notice}");
            }
            return;
        };
        let _ = keeping.service.set(service);
        let claims = keeping.read_back(whole);
        // Writes before the server answers any call. From the database, a later PRIMARY sees that the session has read
        // the kept hints.
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
        keeping.write_pending();
    }

    /// Writes a last time and releases the lock. The caller has closed the sources.
    pub fn close(&self) {
        let Ok(keeping) = &self.0 else { return };
        keeping.state.lock().ended = true;
        keeping.wake.notify_all();
        self.flush();
        keeping.held.lock().take();
    }

    /// Returns how many of `hints` are lost and how many are kept if the session ends now. If the database cannot be
    /// written, leaves the hints in a file of their own.
    pub fn summarize_end(&self, hints: usize) -> EndSummary {
        let keeping = match &self.0 {
            Ok(keeping) => keeping,
            Err(refusal) => {
                return EndSummary { hints, kept: 0, place: Err(refusal.why().to_owned()), left: None };
            }
        };
        let (kept, of_files, failed) = {
            let state = keeping.state.lock();
            (state.hints, state.of_files, state.failed.clone())
        };
        // The next session reads the hints of files again, so they count neither as kept nor as lost.
        let hints = hints.saturating_sub(of_files);
        let Some(why) = failed else {
            let place = Ok(keeping.folder.database_path().display().to_string());
            return EndSummary { hints, kept, place, left: None };
        };
        let left = keeping.leave_hints().inspect_err(|error| {
            tracing::error!(error = error.message(), "the hints of this session are lost");
        });
        EndSummary { hints, kept: 0, place: Err(why), left: left.ok() }
    }

    /// Removes the kept hints, and returns their number. Later writes of this session leave out its present hints.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when this session keeps no hints, or the database cannot be removed or written.
    pub fn forget_kept(&self) -> Result<usize> {
        self.require_keeper()?.forget_kept()
    }

    /// Puts a backup in the place of the database, and reads its hints into the session.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when this session keeps no hints, and the errors of [`KeptFolder::restore_copy`].
    pub fn recover_kept(&self, copy: &Path) -> Result<KeptRecovery> {
        self.require_keeper()?.recover_kept(copy)
    }

    /// Returns the last changes of kept hints since a time, oldest first; when there are more than `limit`, the latest
    /// ones. Returns nothing when this session keeps no hints.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the database cannot be read.
    pub fn read_changes(&self, since: Millis, limit: usize) -> Result<Vec<HintChange>> {
        let Ok(keeping) = &self.0 else { return Ok(Vec::new()) };
        keeping.write_pending();
        let held = keeping.held.lock();
        let database = held.as_ref().and_then(|held| held.database.as_ref());
        database.map_or_else(|| Ok(Vec::new()), |database| database.read_changes(since, limit))
    }

    fn require_keeper(&self) -> Result<&ActiveKeeper> {
        let refused =
            |refusal: &KeepRefusal| Error::unavailable(format!("This session keeps nothing: {}.", refusal.why()));
        self.0.as_ref().map_err(refused)
    }

    /// Returns the keeper's part of the answer of `nudge.status`.
    pub fn describe_status(&self) -> Value {
        let keeping = match &self.0 {
            Ok(keeping) => keeping,
            Err(KeepRefusal::Failed(why)) => return json!({"on": false, "why": why, "failed": why}),
            Err(refusal) => return json!({"on": false, "why": refusal.why()}),
        };
        let state = keeping.state.lock();
        let file = keeping.folder.database_path().display().to_string();
        let mut out = json!({"on": true, "hints": state.hints, "file": file});
        if state.of_files > 0 {
            out["of_files"] = state.of_files.into();
        }
        let aside = Some(state.aside.join("; ")).filter(|aside| !aside.is_empty());
        for (name, told) in [("failed", &state.failed), ("aside", &aside), ("backup_failed", &state.backup_failed)] {
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
            && changes.iter().any(|change| change.source == HINTS)
        {
            keeping.note_authors(changes);
            keeping.note_change();
        }
    }

    fn check_keeping(&self) -> std::result::Result<(), String> {
        let keeping = match &self.0 {
            Ok(keeping) => keeping,
            Err(refusal) => return Err(format!("it ends with this session at the latest: {}", refusal.why())),
        };
        let state = keeping.state.lock();
        match &state.failed {
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

    /// Notes who changed which hint. A change of many hints at once names none, and a use changes no field.
    fn note_authors(&self, changes: &[ChangeEvent]) {
        let text = |change: &ChangeEvent, field: &str| {
            change.detail.get(field).and_then(Value::as_str).map_or_else(String::new, str::to_owned)
        };
        let names_hint = |change: &&ChangeEvent| {
            change.source == HINTS && !matches!(change.what, "bump" | "outcome") && change.detail.contains_key("key")
        };
        let named = changes.iter().filter(names_hint);
        let authors = named.map(|change| {
            let (component, key) = (text(change, "component"), text(change, "key"));
            (VariantName { component, key, variant: text(change, "variant") }, change.by.clone())
        });
        self.state.lock().authors.extend(authors);
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

    fn tell_notice(&self, notice: String) {
        tracing::warn!(notice, "the kept hints");
        let mut state = self.state.lock();
        if !state.aside.contains(&notice) {
            state.aside.push(notice);
        }
    }

    fn list_deletions(&self, begins: bool) -> Result<Vec<SessionRow>> {
        let mut guard = self.held.lock();
        let Some(held) = guard.as_mut().filter(|_| self.folder.has_database()) else { return Ok(Vec::new()) };
        let deletions = self.open_database(held)?.read_deletions(begins, self.folder.plausible_time())?;
        let to_row =
            |(id, body): (i64, String)| SessionRow { kind: DELETION_ROW.to_owned(), name: id.to_string(), body };
        Ok(deletions.into_iter().map(to_row).collect())
    }

    /// Reads the kept hints. Returns true when this session must now write the database as its own.
    fn read_back(&self, whole: bool) -> bool {
        let mut guard = self.held.lock();
        let Some(held) = &mut *guard else { return false };
        self.begin_session(held, whole).unwrap_or_else(|error| {
            self.note_failure(&error);
            false
        })
    }

    fn begin_session(&self, held: &mut HeldDatabase, whole: bool) -> Result<bool> {
        if let Some(state_folder) = StateDirectory::from_user().ok().filter(StateDirectory::has_kept) {
            self.add_earlier(held, &state_folder)?;
        }
        if held.database.is_none() && !self.folder.has_database() {
            return Ok(false);
        }
        let contents = self.read_contents(held)?;
        held.rows = KnownRows::from_contents(&contents);
        if contents.session.as_ref() == Some(&self.session) {
            self.state.lock().forgotten.clone_from(&contents.forgotten);
            if whole {
                return Ok(false);
            }
        }
        self.import_hints(held, &contents);
        Ok(true)
    }

    /// Adds the hints of an earlier version's files to the database, and renames the files.
    fn add_earlier(&self, held: &mut HeldDatabase, state_folder: &StateDirectory) -> Result<()> {
        let file = state_folder.kept_path().display().to_string();
        let lock = match state_folder.lock_kept() {
            Ok(Some(lock)) => lock,
            Ok(None) => {
                let told = "is kept by a session of an earlier version; its hints come with the session after that one";
                self.tell_notice(format!("{file} {told}"));
                return Ok(());
            }
            Err(error) => {
                self.tell_notice(format!("{file} is not read: {error}"));
                return Ok(());
            }
        };
        let text = match state_folder.read_kept() {
            Ok(text) => text,
            Err(error) => {
                self.set_aside(state_folder, &lock, &error.to_string());
                return Ok(());
            }
        };
        let document = match text.as_deref().map(KeptDocument::read).transpose() {
            Ok(document) => document.unwrap_or_default(),
            Err(error) => {
                self.set_aside(state_folder, &lock, &format!("it is damaged ({error})"));
                return Ok(());
            }
        };
        // Checks the version of the format.
        if let Err(error) = self.import_document(&document.to_empty_payload()) {
            self.set_aside(state_folder, &lock, error.message().trim_end_matches('.'));
            return Ok(());
        }
        let over = state_folder.read_over().ok().flatten();
        let both: String = [&text, &over].into_iter().flatten().map(String::as_str).collect();
        let digest = to_hex(&Sha256::digest(both));
        // A file that cannot be parsed adds nothing.
        let over = over.as_deref().and_then(|text| KeptDocument::read(text).ok());
        if document.count_hints() > 0 || over.is_some() {
            let hints = EarlierHints { kept: &document, over: over.as_ref(), session: &self.session, digest: &digest };
            self.open_database(held)?.add_earlier(&hints)?;
        }
        if let Err(error) = state_folder.mark_imported(&lock) {
            self.tell_notice(format!("the hints of {file} are kept, but it cannot be renamed: {error}"));
        }
        Ok(())
    }

    /// Renames an earlier version's file that cannot be read.
    fn set_aside(&self, state_folder: &StateDirectory, lock: &EarlierLock, why: &str) {
        let file = state_folder.kept_path().display().to_string();
        self.tell_notice(match state_folder.set_aside(lock) {
            Ok(aside) => format!("{file} is {} now: {why}", aside.display()),
            Err(error) => format!("{file} stays as it is: {why}, {error}"),
        });
    }

    /// Opens the database if it is not open. Repairs a damaged one.
    fn open_database<'a>(&self, held: &'a mut HeldDatabase) -> Result<&'a KeptDatabase> {
        if held.database.is_none() {
            held.database = Some(match self.folder.open_database() {
                Ok(database) => database,
                Err(error) => {
                    self.repair_database(held, error)?;
                    self.folder.open_database()?
                }
            });
        }
        held.get_database()
    }

    /// Reads the database, and repairs a damaged one.
    fn read_contents(&self, held: &mut HeldDatabase) -> Result<KeptContents> {
        match self.open_database(held)?.read_all() {
            Ok(contents) => Ok(contents),
            Err(error) => {
                self.repair_database(held, error)?;
                self.open_database(held)?.read_all()
            }
        }
    }

    /// Puts the newest copy in the place of a damaged database, or begins anew without a copy. The damaged file stays
    /// beside the copies.
    ///
    /// # Errors
    /// `error` itself if it says nothing of damage. Also if the database was missing or empty before the session has
    /// read it: a user may have removed it, and must say whether the newest copy comes back.
    fn repair_database(&self, held: &mut HeldDatabase, error: Error) -> Result<()> {
        if error.data().get("damaged") != Some(&Value::Bool(true)) {
            return Err(error);
        }
        let is_read = held.rows.write.is_some();
        if !is_read && self.folder.is_without_data() {
            return Err(error);
        }
        held.database = None;
        let file = self.folder.database_path();
        let told = if let Some(copy) = self.folder.find_copy() {
            let damaged = self.folder.restore_copy(&copy)?;
            let damaged = damaged.map_or_else(String::new, |path| format!("; the damaged file is {}", path.display()));
            format!("{} was damaged or empty, and {} is in its place{damaged}", file.display(), copy.display())
        } else {
            let damaged = self.folder.move_damaged_aside()?;
            format!("{} was damaged, and is {} now", file.display(), damaged.display())
        };
        self.tell_notice(told);
        Ok(())
    }

    /// Imports the rows of the database. Rows for which there is no room, and rows that make no sense to this version,
    /// wait in the database.
    fn import_hints(&self, held: &mut HeldDatabase, contents: &KeptContents) {
        let file = self.folder.database_path().display().to_string();
        let wrong = RefCell::new(HashSet::<WrongHint>::new());
        let import = |payload: &str| {
            let errors = self.import_document(payload)?;
            let count = errors.len();
            wrong.borrow_mut().extend(errors);
            Ok(count)
        };
        let imported = import_stored(&contents.hints, &import);
        let wrong = wrong.into_inner();
        let unread = contents.hints.iter().filter(|hint| hint.to_hint().is_none()).count();
        let senseless = wrong.len() + unread + contents.broken;
        if senseless > 0 {
            self.tell_notice(format!("{senseless} of its hints make no sense to this version and stay in {file}"));
        }
        let (all, names) = (contents.hints.len(), contents.hints.iter().map(|hint| &hint.name));
        held.rows.waiting = match imported {
            Ok(RefillResult { left, .. }) => {
                if !left.is_empty() {
                    let taken = all - left.len();
                    self.tell_notice(format!(
                        "the limits leave room for {taken} of its {all} hints; the others wait in {file} until there is room"
                    ));
                }
                let left: HashSet<_> =
                    left.iter().map(|(component, key, body)| (*component, *key, body.get())).collect();
                let is_left = |hint: &StoredHint| match hint.to_hint() {
                    Some((component, key, body)) => {
                        let refused = WrongHint { component: component.to_owned(), key: key.to_owned() };
                        left.contains(&(component, key, body.get())) || wrong.contains(&refused)
                    }
                    None => true,
                };
                contents.hints.iter().filter(|hint| is_left(hint)).map(|hint| hint.name.clone()).collect()
            }
            Err(error) => {
                self.tell_notice(format!(
                    "the hints of {file} are not read: {}",
                    error.message().trim_end_matches('.')
                ));
                names.cloned().collect()
            }
        };
    }

    /// Imports a document. Returns the hints in it that the import refused. The import accepts values that the secret
    /// guard would refuse, because the user stored them in spite of the guard.
    fn import_document(&self, payload: &str) -> Result<Vec<WrongHint>> {
        #[derive(Deserialize)]
        struct KeptImportResult {
            errors: Vec<WrongHint>,
        }
        let params = format!("{{\"payload\":{payload},\"mode\":\"merge\",\"allow_secret\":true}}");
        let done = self.call("nudge.import", &params)?;
        let done: KeptImportResult =
            serde_json::from_str(done.get()).map_err(|error| Error::unavailable(error.to_string()))?;
        Ok(done.errors)
    }

    fn call(&self, method: &str, params: &str) -> Result<Box<RawValue>> {
        let service = self.service.get().ok_or_else(|| Error::unavailable("Nothing is open yet."))?;
        let params = RawValue::from_string(params.to_owned()).map_err(|error| Error::invalid(error.to_string()))?;
        service.call_by(Caller::with_name(NAME), method, &params)
    }

    /// Writes the changed hints, if there are any, after a write that is under way.
    fn write_pending(&self) {
        drop(self.held.lock());
        if self.state.lock().changed {
            self.write();
        }
    }

    /// Writes the changed hints. Notes a failure, and tries again after a second.
    fn write(&self) {
        let mut guard = self.held.lock();
        let Some(held) = &mut *guard else { return };
        let mut followed = None;
        let deletions = std::mem::take(&mut self.state.lock().deletions);
        let mut authors = HintAuthors::new();
        let mut done = Err(Error::unavailable("The database of kept hints is replaced again and again; try again."));
        for _ in 0..MAX_TRIES {
            // Clears the flag before the export, so a change during the export leads to another write.
            self.state.lock().changed = false;
            let mut seen = FollowedHints::read(&self.session);
            let tried = self.with_export(|document| {
                let picked = self.pick_hints(document, &mut seen);
                // Takes the authors after the export, so that a change in the export has its author.
                authors.extend(std::mem::take(&mut self.state.lock().authors));
                let unwritten = UnwrittenParts { deletions: &deletions, authors: &authors };
                let outcome = self.put_hints(held, &picked.lasting, unwritten);
                (outcome, picked.count, picked.of_files)
            });
            followed = tried.is_ok().then_some(seen);
            match tried {
                Ok((Ok(WriteOutcome::Replaced), ..)) => continue,
                Ok((outcome, count, of_files)) => done = outcome.map(|_| (count, of_files)),
                Err(error) => done = Err(error),
            }
            break;
        }
        let backup_failed = held.database.as_ref().and_then(KeptDatabase::backup_failed);
        // Releases the lock first, because `note_deleted` may wait for the file of seeds.
        drop(guard);
        if let Some(Err(error)) = followed.map(|followed| followed.note_deleted()) {
            tracing::warn!(error = error.message(), "deleted hints of files come back in the next session");
        }
        match done {
            Ok((hints, of_files)) => {
                let mut state = self.state.lock();
                (state.hints, state.of_files, state.failed) = (hints, of_files, None);
                state.backup_failed = backup_failed.map(|error| error.message().to_owned());
            }
            Err(error) => {
                let mut state = self.state.lock();
                // The parts that were noted meanwhile are newer.
                let newer = std::mem::replace(&mut state.deletions, deletions);
                state.deletions.extend(newer);
                let newer = std::mem::replace(&mut state.authors, authors);
                state.authors.extend(newer);
                drop(state);
                self.note_failure(&error);
            }
        }
    }

    fn note_failure(&self, error: &Error) {
        let mut state = self.state.lock();
        if state.failed.is_none() {
            tracing::error!(error = error.message(), "hints are not kept");
        }
        state.failed = Some(error.message().trim_end_matches('.').to_owned());
        state.changed = true;
    }

    /// Picks the hints that must be in the database.
    fn pick_hints<'a>(&self, document: &KeptDocument<'a>, followed: &mut FollowedHints<'_>) -> PickedHints<'a> {
        let forgotten = self.state.lock().forgotten.clone();
        let mut picked = PickedHints { lasting: Vec::new(), count: 0, of_files: 0 };
        for (component, key, hint) in document.iter_hints() {
            let (is_kept, is_of_file) = match followed.see_hint(component, key, hint) {
                FollowedState::Independent => (kept::is_lasting(hint), false),
                FollowedState::Followed { used } => (used, true),
                FollowedState::Changed => (true, false),
            };
            let is_kept = is_kept && !forgotten.contains(&self.compute_mark(component, key, hint));
            picked.of_files += usize::from(is_of_file);
            if is_kept {
                picked.count += usize::from(!is_of_file);
                picked.lasting.push(LastingHint::from_export(component, key, hint));
            }
        }
        picked
    }

    /// Makes the database have these hints and the hints that wait.
    fn put_hints(
        &self,
        held: &mut HeldDatabase,
        hints: &[LastingHint<'_>],
        UnwrittenParts { deletions, authors }: UnwrittenParts<'_>,
    ) -> Result<WriteOutcome> {
        self.folder.stay_locked(&mut held.lock, &self.runtime)?;
        let forgotten = self.state.lock().forgotten.clone();
        if held.database.is_none() {
            let keeps_none = hints.is_empty() && deletions.values().all(Option::is_none);
            if keeps_none && forgotten.is_empty() && !self.folder.has_database() {
                return Ok(WriteOutcome::Written);
            }
            self.open_database(held)?;
        }
        let (database, rows) = (held.get_database()?, &held.rows);
        let changes = rows.compare(hints);
        let is_claimed = rows.session.as_ref() == Some(&self.session) && rows.forgotten == forgotten;
        if changes.is_empty()
            && deletions.is_empty()
            && is_claimed
            && database.read_write_name().is_ok_and(|name| name == rows.write)
        {
            return Ok(WriteOutcome::Written);
        }
        let write = SessionWrite {
            last: rows.write.as_deref(),
            session: &self.session,
            forgotten: Some(&forgotten).filter(|forgotten| **forgotten != rows.forgotten),
            changes: &changes,
            deletions,
            by: WriteAuthors { authors, now: self.folder.plausible_time() },
        };
        match database.write(&write) {
            Ok(Some(name)) => {
                drop(changes);
                held.rows.note_write(hints, name, &self.session, forgotten);
                Ok(WriteOutcome::Written)
            }
            Ok(None) => {
                let contents = self.read_contents(held)?;
                held.rows = KnownRows::from_contents(&contents);
                self.import_hints(held, &contents);
                Ok(WriteOutcome::Replaced)
            }
            Err(error) => {
                let is_read = held.rows.write.is_some();
                drop(changes);
                self.repair_database(held, error)?;
                let contents = self.read_contents(held)?;
                held.rows = KnownRows::from_contents(&contents);
                if !is_read {
                    self.import_hints(held, &contents);
                }
                Ok(WriteOutcome::Replaced)
            }
        }
    }

    /// Calls `look` with an export of all hints except secrets.
    fn with_export<T>(&self, look: impl FnOnce(&KeptDocument<'_>) -> T) -> Result<T> {
        let unreadable = |error: serde_json::Error| Error::unavailable(error.to_string());
        let exported = self.call("nudge.export", r#"{"with_waiting":true}"#)?;
        let ExportAnswer { payload } = serde_json::from_str(exported.get()).map_err(unreadable)?;
        let document = KeptDocument::read(payload.get()).map_err(unreadable)?;
        Ok(look(&document))
    }

    /// Writes all hints except secrets to a file of their own, and returns its path.
    fn leave_hints(&self) -> Result<String> {
        let service = self.service.get().ok_or_else(|| Error::unavailable("Nothing is open yet."))?;
        write_left(&**service, &self.session)
    }

    fn forget_kept(&self) -> Result<usize> {
        self.write();
        let marks = self.with_export(|document| {
            let marks = document.iter_hints().map(|(component, key, hint)| self.compute_mark(component, key, hint));
            marks.collect::<Vec<_>>()
        })?;
        let mut hints = self.state.lock().hints;
        if let Some(held) = &mut *self.held.lock() {
            hints += held.rows.waiting.len();
            held.database = None;
            self.folder.remove_database()?;
            held.rows = KnownRows::default();
            self.state.lock().deletions.clear();
        }
        self.state.lock().forgotten.extend(marks);
        let removed = StateDirectory::from_user().ok().map_or(Ok(()), |folder| folder.remove_earlier());
        removed
            .map_err(|error| Error::unavailable(format!("An earlier copy stays: {error}; remove it and try again.")))?;
        self.write();
        match &self.state.lock().failed {
            Some(why) => Err(Error::unavailable(format!("{why}; make it writable and try again."))),
            None => Ok(hints),
        }
    }

    fn recover_kept(&self, copy: &Path) -> Result<KeptRecovery> {
        let replaced = match &*self.held.lock() {
            Some(_) => self.folder.restore_copy(copy)?,
            None => return Err(Error::unavailable("This session ends now; try again.")),
        };
        // The write notices the other contents, and reads them first.
        self.write();
        let state = self.state.lock();
        match &state.failed {
            Some(why) => Err(Error::unavailable(format!("{why}."))),
            None => Ok(KeptRecovery { hints: state.hints, replaced }),
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

/// The component and key of a hint that an import refused.
#[derive(Debug, PartialEq, Eq, Hash, Deserialize)]
struct WrongHint {
    component: String,
    key: String,
}

/// The result of a recovery.
pub struct KeptRecovery {
    /// The number of kept hints after it.
    pub hints: usize,
    /// The file with the earlier contents, if there were any.
    pub replaced: Option<PathBuf>,
}

/// Imports the hints that an earlier session had, and then the hints that waited.
fn import_stored<'a>(stored: &'a [StoredHint], import: &impl Fn(&str) -> Result<usize>) -> Result<RefillResult<'a>> {
    let (waiting, ready): (Vec<_>, Vec<_>) = stored.iter().partition(|hint| hint.waits);
    let list_hints = |hints: &[&'a StoredHint]| hints.iter().filter_map(|hint| hint.to_hint()).collect::<Vec<_>>();
    let hints = list_hints(&ready);
    let bytes: usize = ready.iter().map(|hint| hint.body.len()).sum();
    if waiting.is_empty() && bytes <= MAX_PIECE_BYTES {
        match import(&KeptDocument::from_hints(hints.iter().copied()).to_payload()) {
            Err(error) if error.kind() == ErrorKind::Quota => {}
            done => return done.map(RefillResult::with_all_taken),
        }
    }
    let mut refill = RefillResult::default();
    refill.import_hints(hints, import)?;
    refill.import_hints(list_hints(&waiting), import)?;
    Ok(refill)
}

/// Writes all hints except secrets to a separate file in the format of an export. The caller uses this when the session
/// ends and no other process can continue it. Returns the path of the file.
///
/// # Errors
/// `E_UNAVAILABLE` when the file cannot be written.
pub fn write_out(sources: &OpenSources, session: &str) -> Result<String> {
    write_left(&JoinedServices::new(sources.list_services()), session)
}

fn write_left(service: &dyn Service, session: &str) -> Result<String> {
    let unreadable = |error: serde_json::Error| Error::unavailable(error.to_string());
    let params = RawValue::from_string("{}".to_owned()).map_err(unreadable)?;
    let exported = service.call_by(Caller::with_name(NAME), "nudge.export", &params)?;
    let ExportAnswer { payload } = serde_json::from_str(exported.get()).map_err(unreadable)?;
    let written = StateDirectory::from_user()?.write_left(session, payload.get());
    written.map(|file| file.display().to_string()).map_err(|error| Error::unavailable(error.to_string()))
}

/// The rows of the hints. Tells the keeper of the deletions among them.
pub struct KeptRows {
    /// The rows of the session.
    pub rows: SourceRows,
    /// The keeper.
    pub keeper: Arc<HintKeeper>,
}

impl SessionRows for KeptRows {
    fn write(&self, changes: &RowFeed<'_>, all: &RowFeed<'_>) -> Result<()> {
        let deletions = RefCell::new(Vec::new());
        let feed = |take: &mut RowTaker<'_>| {
            // The rows are fed again after a try that failed.
            deletions.borrow_mut().clear();
            changes(&mut |row| {
                if let (DELETION_ROW, Ok(id)) = (row.kind, row.name.parse()) {
                    deletions.borrow_mut().push((id, row.body.clone()));
                }
                take(row)
            })
        };
        self.rows.write(&feed, all)?;
        // The change itself is told to the keeper after the sources have applied it.
        self.keeper.note_deletions(deletions.into_inner());
        Ok(())
    }

    fn log_unreadable(&self, count: usize) {
        self.rows.log_unreadable(count);
    }
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
