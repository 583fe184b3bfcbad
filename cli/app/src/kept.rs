//! The file of the hints that outlive a session (semantics section 12): `nudge/kept.json` in the system's folder for
//! state. The file has the format of an export, and also has each hint's counts. A lock file in the same folder lets
//! only one session at a time use it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_core::clock::{Clock as _, SystemClock};
use nudge_core::wire::json_text;
use nudge_os::beneath::{DiskSync, FileRights, write_atomic};
use nudge_os::dir::FileId;
use nudge_os::foreign::{self, LinkPolicy};
use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest as _, Sha256};

use crate::settings;

/// The name of the file with the hints that did not fit into the limits.
const OVER: &str = "kept-over.json";
/// The name of the file with a copy of the kept file from before the present session.
const BEFORE: &str = "kept-before.json";
/// The name of the kept file.
const FILE: &str = "kept.json";
/// The name of the lock file, which contains the runtime directory of the lock's holder.
const LOCK: &str = "kept.lock";
/// The version of the file's format, the same as that of exports.
const SCHEMA_VERSION: &str = "1.0";
/// The most bytes of the kept file that are read. The store itself accepts less ([`nudge::Config::max_bytes`]).
const MAX_BYTES: u64 = 1 << 30;
/// The most bytes of the path in the lock file; a longer path is ignored.
const MAX_OWNER_BYTES: u64 = 4096;
/// The longest wait for the lock. `LOOKING` is enough if the holder only reads, because it then holds the lock for a
/// moment. `DYING` is for a holder that is about to end: a dying process releases its locks one after the other.
const LOOKING: Duration = Duration::from_millis(60);
const DYING: Duration = Duration::from_secs(2);

/// The advice for a state folder on a file system without locks.
pub const NO_LOCKS: &str = "its file system has no locks, so set XDG_STATE_HOME to a folder on a disk of this machine";

/// The ttl of hints that are stored without one in a session that keeps.
pub const KEPT_TTL: &str = "P365D";

/// The folder of the kept file.
#[derive(Debug, Clone)]
pub struct KeptFolder(PathBuf);

/// The lock of the kept file, released on drop.
#[derive(Debug)]
pub struct KeptLock {
    file: FileLock,
    /// The digest of the kept file as the lock's holder last read or wrote it; `None` before the first read or write,
    /// or if there was no file. A modification time proves nothing, because two writes may fall into one tick of the
    /// clock.
    left: Option<TextDigest>,
}

/// The SHA-256 of a text.
type TextDigest = [u8; 32];

/// The kept hints, with the other fields of their file.
#[derive(Debug, Default, Deserialize)]
pub struct KeptDocument<'a> {
    #[serde(borrow, default)]
    schema_version: Option<&'a RawValue>,
    /// The session that wrote the document.
    #[serde(borrow, default)]
    session_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    created_at: Option<&'a RawValue>,
    /// The hints.
    #[serde(borrow)]
    pub components: BTreeMap<String, KeptComponent<'a>>,
    /// The content hashes (marks) of hints that the session still has but must not write again.
    #[serde(default)]
    pub forgotten: Vec<String>,
}

/// The hints of a component, as in an export.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct KeptComponent<'a> {
    #[serde(borrow)]
    hints: BTreeMap<String, &'a RawValue>,
    #[serde(borrow, skip_serializing_if = "BTreeMap::is_empty")]
    variants: BTreeMap<String, Vec<&'a RawValue>>,
}

impl<'a> KeptDocument<'a> {
    /// Reads an export or an earlier kept file.
    ///
    /// # Errors
    /// Fails for any other text.
    pub fn read(text: &'a str) -> serde_json::Result<Self> {
        // Refuses a list, because serde would read the items of a list as the fields in order.
        if !text.trim_start().starts_with('{') {
            return Err(serde::de::Error::custom("it is no object"));
        }
        serde_json::from_str(text)
    }

    /// Builds a document from hints, each with its component and key. Further hints of the same key become variants.
    pub fn from_hints(hints: impl Iterator<Item = (&'a str, &'a str, &'a RawValue)>) -> Self {
        let mut document = Self::default();
        for (component, key, hint) in hints {
            let component = document.components.entry(component.to_owned()).or_default();
            if component.hints.contains_key(key) {
                component.variants.entry(key.to_owned()).or_default().push(hint);
            } else {
                component.hints.insert(key.to_owned(), hint);
            }
        }
        document
    }

    /// Returns true when the session with this id wrote the document.
    pub fn is_of(&self, session: &str) -> bool {
        self.session_id.is_some_and(|id| serde_json::from_str::<String>(id.get()).is_ok_and(|id| id == session))
    }

    /// Drops the hints for which `keeps` returns false. Returns the number of the remaining hints.
    pub fn retain(&mut self, mut keeps: impl FnMut(&str, &str, &RawValue) -> bool) -> usize {
        for (name, component) in &mut self.components {
            component.hints.retain(|key, hint| keeps(name, key, hint));
            for (key, hints) in &mut component.variants {
                hints.retain(|hint| keeps(name, key, hint));
            }
            component.variants.retain(|_, hints| !hints.is_empty());
        }
        self.components.retain(|_, component| !component.hints.is_empty() || !component.variants.is_empty());
        self.len()
    }

    /// Iterates over every hint with its component and key.
    pub fn iter_hints(&self) -> impl Iterator<Item = (&str, &str, &'a RawValue)> {
        self.components.iter().flat_map(|(name, component)| {
            let first = component.hints.iter().map(|(key, hint)| (key.as_str(), *hint));
            let further =
                component.variants.iter().flat_map(|(key, hints)| hints.iter().map(|hint| (key.as_str(), *hint)));
            first.chain(further).map(|(key, hint)| (name.as_str(), key, hint))
        })
    }

    /// Returns the number of hints, variants included.
    pub fn len(&self) -> usize {
        self.iter_hints().count()
    }

    /// Returns true when there is no hint.
    pub fn is_empty(&self) -> bool {
        self.iter_hints().next().is_none()
    }

    /// Returns the document as params for `nudge.import`.
    pub fn to_payload(&self) -> String {
        // Passes the version on, because `nudge.import` refuses an unknown version.
        write_json(self.schema_version, self, &[])
    }

    /// Returns the document as text for the kept file.
    pub fn to_text(&self, forgotten: &[String]) -> String {
        let version = to_raw_value(SCHEMA_VERSION).ok();
        write_json(version.as_deref(), self, forgotten)
    }
}

fn digest(text: &str) -> TextDigest {
    Sha256::digest(text.as_bytes()).into()
}

fn write_json(schema_version: Option<&RawValue>, document: &KeptDocument<'_>, forgotten: &[String]) -> String {
    #[derive(Serialize)]
    struct WrittenDocument<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        schema_version: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        created_at: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        session_id: Option<&'a RawValue>,
        components: &'a BTreeMap<String, KeptComponent<'a>>,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        forgotten: &'a [String],
    }
    let KeptDocument { session_id, created_at, components, .. } = document;
    let written =
        WrittenDocument { schema_version, created_at: *created_at, session_id: *session_id, components, forgotten };
    // The serialization of texts cannot fail.
    json_text(&written)
}

impl KeptFolder {
    /// Returns the user's folder for kept hints, which may not exist yet.
    ///
    /// # Errors
    /// `E_INVALID` when the system names no state folder.
    pub fn from_state_dir() -> Result<Self> {
        let folder = settings::state_dir().ok_or_else(|| Error::invalid("Set HOME to your folder."))?;
        Ok(Self(folder))
    }

    /// Returns true when the folder exists; it is missing until a session has kept hints.
    pub fn is_there(&self) -> bool {
        self.0.exists()
    }

    /// Returns the path of the kept file.
    pub fn file_path(&self) -> PathBuf {
        self.0.join(FILE)
    }

    /// Takes the lock for the session of a runtime directory; `None` stands for a process that only reads. Creates the
    /// folder and makes it private. Returns `None` when another session holds the lock.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the folder or the lock cannot be used.
    pub fn lock(&self, runtime: Option<&Path>) -> Result<Option<KeptLock>> {
        let unusable = |refusal: LockRefusal| {
            let advice = if matches!(refusal, LockRefusal::NoLocks(_)) { NO_LOCKS } else { "make it yours alone" };
            let error = io::Error::from(refusal);
            Error::unavailable(format!("Cannot keep hints in {}: {error}; {advice}.", self.0.display()))
        };
        self.make_private().map_err(|error| unusable(error.into()))?;
        let begun = Instant::now();
        let is_over = || {
            // A runtime directory has only one PRIMARY, so another holder from the same directory is about to end.
            let is_dying = runtime.is_some() && self.read_owner().as_deref() == runtime;
            begun.elapsed() > if is_dying { DYING } else { LOOKING }
        };
        match FileLock::take(&self.0.join(LOCK), LockKind::Exclusive, LockPatience::Until(&is_over)) {
            Ok(file) => {
                let lock = KeptLock { file, left: None };
                runtime.map_or(Ok(()), |runtime| lock.note_owner(runtime)).map_err(|error| unusable(error.into()))?;
                Ok(Some(lock))
            }
            Err(LockRefusal::Held) => Ok(None),
            Err(refusal) => Err(unusable(refusal)),
        }
    }

    /// Returns the runtime directory of the session that holds the lock or held it last, if the lock file names one.
    pub fn read_owner(&self) -> Option<PathBuf> {
        let text = foreign::read_text(&self.0.join(LOCK), LinkPolicy::Refused, MAX_OWNER_BYTES).ok()?;
        Some(PathBuf::from(text)).filter(|path| path.is_absolute())
    }

    /// Returns the text of the kept file; `None` when there is no file.
    ///
    /// # Errors
    /// Fails when the file cannot be read or is not text.
    pub fn read(&self) -> io::Result<Option<String>> {
        self.read_file(FILE)
    }

    /// Returns the text of the kept file to the holder of the lock, as [`Self::read`] does. Notes the digest of the
    /// text; [`Self::is_foreign`] compares it to find out whether another program has changed the file.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub fn read_first(&self, lock: &mut KeptLock) -> io::Result<Option<String>> {
        let text = self.read()?;
        lock.left = text.as_deref().map(digest);
        Ok(text)
    }

    /// Returns the text of the file with the hints that did not fit; `None` when there is no file.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    pub fn read_over(&self) -> io::Result<Option<String>> {
        self.read_file(OVER)
    }

    fn read_file(&self, name: &str) -> io::Result<Option<String>> {
        match foreign::read_text(&self.0.join(name), LinkPolicy::Refused, MAX_BYTES) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true when another program has replaced or changed the kept file since the lock's holder last read or
    /// wrote it.
    pub fn is_foreign(&self, lock: &KeptLock) -> bool {
        match self.read() {
            Ok(None) => false,
            Ok(Some(text)) => Some(digest(&text)) != lock.left,
            // The path is a link, a folder, or something else that Nudge did not write.
            Err(_) => true,
        }
    }

    /// Creates the folder and the lock file again if another program has removed them.
    ///
    /// # Errors
    /// Fails when the files cannot be created, or when another session holds the new lock.
    pub fn stay_locked(&self, lock: &mut KeptLock, runtime: &Path) -> io::Result<()> {
        if FileId::at_path(&self.0.join(LOCK))?.as_ref() == Some(&FileId::from_file(lock.file.as_file())?) {
            return Ok(());
        }
        self.make_private()?;
        let taken = FileLock::take(&self.0.join(LOCK), LockKind::Exclusive, LockPatience::AtOnce);
        let file = taken.map_err(|refusal| match refusal {
            LockRefusal::Held => io::Error::other("another session keeps hints there now"),
            refusal => refusal.into(),
        })?;
        lock.file = file;
        lock.note_owner(runtime)
    }

    /// Replaces the kept file. A reader sees the whole old text or the whole new text.
    ///
    /// # Errors
    /// Fails when the file cannot be written; the old file then stays.
    pub fn write(&self, lock: &mut KeptLock, text: &str) -> io::Result<()> {
        if text.len() as u64 > MAX_BYTES {
            return Err(io::Error::other(format!(
                "the hints have more than the {MAX_BYTES} bytes that are read again"
            )));
        }
        self.write_file(FILE, text)?;
        lock.left = Some(digest(text));
        Ok(())
    }

    /// Replaces the file with the hints that did not fit, and returns its path.
    ///
    /// # Errors
    /// Fails when the file cannot be written; the old file then stays.
    pub fn write_over(&self, _lock: &KeptLock, text: &str) -> io::Result<PathBuf> {
        self.write_file(OVER, text)?;
        Ok(self.0.join(OVER))
    }

    /// Writes the hints of a session whose lock another session has taken. Returns the path of the new file.
    ///
    /// # Errors
    /// Fails when the folder cannot be written.
    pub fn write_left(&self, session: &str, text: &str) -> io::Result<PathBuf> {
        self.make_private()?;
        let name = format!("left-{session}.json");
        self.write_file(&name, text)?;
        Ok(self.0.join(name))
    }

    fn write_file(&self, name: &str, text: &str) -> io::Result<()> {
        write_atomic(&self.0.join(name), text.as_bytes(), FileRights::Private, DiskSync::Flushed)
    }

    /// Writes `text`, the kept file from before the session, over an older copy. With this copy, `nudge import` can
    /// undo the session's changes to the kept file.
    ///
    /// # Errors
    /// Fails when the copy cannot be written; the older copy then stays.
    pub fn keep_before(&self, _lock: &KeptLock, text: &str) -> io::Result<()> {
        write_atomic(&self.0.join(BEFORE), text.as_bytes(), FileRights::Private, DiskSync::Unflushed)
    }

    /// Removes the file with the hints that did not fit.
    ///
    /// # Errors
    /// Fails when the file exists and cannot be removed.
    pub fn remove_over(&self, _lock: &KeptLock) -> io::Result<()> {
        self.remove_file(OVER)
    }

    /// Returns the path of the copy from before the last session; `None` when there is no copy.
    pub fn find_before(&self) -> Option<PathBuf> {
        Some(self.0.join(BEFORE)).filter(|path| path.symlink_metadata().is_ok_and(|meta| meta.is_file()))
    }

    /// Returns true when the folder has the copy from before the last session, or the file of hints that did not fit.
    pub fn has_others(&self) -> bool {
        [BEFORE, OVER].iter().any(|name| self.0.join(name).exists())
    }

    /// Removes the copy from before the last session, and the file of hints that did not fit.
    ///
    /// # Errors
    /// Fails when one of the files exists and cannot be removed.
    pub fn remove_others(&self, lock: &KeptLock) -> io::Result<()> {
        self.remove_over(lock)?;
        self.remove_file(BEFORE)
    }

    fn remove_file(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.0.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Renames the kept file and returns its new path. Nudge never changes a file with the new name.
    ///
    /// # Errors
    /// Fails when the file cannot be renamed; it then keeps its name.
    pub fn set_aside(&self, _lock: &KeptLock) -> io::Result<PathBuf> {
        let now = SystemClock.now();
        let aside = self.0.join(format!("kept-aside-{now}.json"));
        fs::rename(self.file_path(), &aside)?;
        Ok(aside)
    }

    /// Lists the files that [`Self::set_aside`] has renamed.
    pub fn list_aside(&self) -> Vec<PathBuf> {
        let names = fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_aside = |path: &PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("kept-aside-"))
        };
        let mut aside: Vec<_> = names.filter(is_aside).collect();
        aside.sort();
        aside
    }

    /// Creates the folder and denies other users access to it.
    ///
    /// # Errors
    /// Fails when the folder cannot be created or belongs to another user.
    #[cfg(unix)]
    pub fn make_private(&self) -> io::Result<()> {
        use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
        if let Some(parent) = self.0.parent() {
            nudge_os::dir::create_private(parent)?;
        }
        match fs::DirBuilder::new().mode(0o700).create(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let meta = self.0.symlink_metadata()?;
        if !meta.is_dir() || meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it is not a folder of yours"));
        }
        if meta.mode() & 0o077 != 0 {
            fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700))?;
        }
        Ok(())
    }

    /// Creates the folder.
    ///
    /// # Errors
    /// Fails when the folder cannot be created.
    #[cfg(not(unix))]
    pub fn make_private(&self) -> io::Result<()> {
        fs::create_dir_all(&self.0)
    }
}

impl KeptLock {
    fn note_owner(&self, runtime: &Path) -> io::Result<()> {
        let mut file = self.file.as_file();
        file.set_len(0)?;
        file.write_all(runtime.as_os_str().as_encoded_bytes())
    }
}

/// Returns true for an exported hint that outlives its session: its ttl is not `session`, and the hint is no secret.
/// Nudge never writes a secret to disk.
pub fn is_lasting(hint: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct HintDuration {
        meta: DurationMeta,
    }
    #[derive(Deserialize)]
    struct DurationMeta {
        #[serde(default)]
        ttl: Option<String>,
        #[serde(default)]
        sensitivity: Option<String>,
    }
    serde_json::from_str::<HintDuration>(hint.get()).is_ok_and(|HintDuration { meta }| {
        meta.sensitivity.as_deref() != Some("secret") && meta.ttl.as_deref().is_some_and(|ttl| ttl != "session")
    })
}

/// Returns the number of kept hints from a result of `nudge.status`. Returns `None` when the result does not say it.
pub fn count_kept(status: &RawValue) -> Option<usize> {
    #[derive(Deserialize)]
    struct KeepingAnswer {
        keeping: KeepingStatus,
    }
    #[derive(Deserialize)]
    struct KeepingStatus {
        hints: Option<usize>,
    }
    serde_json::from_str::<KeepingAnswer>(status.get()).ok()?.keeping.hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_keeps_what_lasts_byte_for_byte() {
        let open = r#"{"value":{"type":"json","data":{"z":1.0,"a":2}},"meta":{"ttl":"P1D"}}"#;
        let short = r#"{"value":"x","meta":{"ttl":"session"}}"#;
        let text = format!(
            r#"{{"schema_version":"1.0","session_id":"s","components":{{"a":{{"hints":{{"k":{short},"l":{open}}},"variants":{{"k":[{open},{short}]}}}},"b":{{"hints":{{"k":{short}}}}}}},"extra":1}}"#
        );
        let mut document = KeptDocument::read(&text).unwrap();
        assert!(document.is_of("s") && !document.is_of("t"));
        assert_eq!((document.len(), document.retain(|_, _, hint| is_lasting(hint))), (5, 2));
        assert_eq!(
            document.to_text(&["m".into()]),
            format!(
                r#"{{"schema_version":"1.0","session_id":"s","components":{{"a":{{"hints":{{"l":{open}}},"variants":{{"k":[{open}]}}}}}},"forgotten":["m"]}}"#
            )
        );
        assert!(KeptDocument::read("{\"components\":[]}").is_err() && KeptDocument::read("").is_err());
    }

    #[test]
    fn one_has_the_lock_and_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptFolder(folder.path().join("state/nudge"));
        let mut lock = kept.lock(Some(Path::new("/run/a"))).unwrap().unwrap();
        assert!(kept.lock(Some(Path::new("/run/b"))).unwrap().is_none());
        assert_eq!(kept.read_owner().as_deref(), Some(Path::new("/run/a")));
        kept.write(&mut lock, "one").unwrap();
        assert_eq!(kept.read().unwrap().as_deref(), Some("one"));
        let aside = kept.set_aside(&lock).unwrap();
        assert_eq!((kept.read().unwrap(), kept.list_aside()), (None, vec![aside]));
        drop(lock);
        assert!(kept.lock(Some(Path::new("/run/b"))).unwrap().is_some());
    }
}
