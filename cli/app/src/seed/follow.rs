//! Remembers which seeded clones had nothing to do, so that the next look only calls `stat` on their files. With 400
//! seeds, a full read of `seeds.json` and every manifest takes milliseconds, and a hook waits for each look.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nudge::Result;
use nudge_core::marks::{FileMarks, now_ns};
use parking_lot::Mutex;

use super::{FILE, SeededClone, SeededClones, find_folder};

/// The most clones that are remembered.
const MAX_QUIET: usize = 64;

/// The last read of `seeds.json`, with the file's marks (size, times, inode).
static SHARED: Mutex<Option<SharedClones>> = Mutex::new(None);
/// The clones in which the last look found nothing to do, by their top folders.
static QUIET: Mutex<Option<HashMap<PathBuf, QuietClone>>> = Mutex::new(None);

struct SharedClones {
    path: PathBuf,
    marks: FileMarks,
    clones: Arc<SeededClones>,
}

/// A clone that has nothing to do as long as its files keep their marks.
struct QuietClone {
    /// The list of clones at that look. If `seeds.json` is read again, the list is another one and this value is stale.
    clones: Arc<SeededClones>,
    files: Vec<(PathBuf, FileMarks)>,
}

impl SeededClones {
    /// Returns the list of seeded clones without a lock. Parses `seeds.json` only when the file has changed.
    ///
    /// # Errors
    /// The errors of [`read_unlocked`](Self::read_unlocked).
    pub fn read_shared() -> Result<Arc<Self>> {
        let path = find_folder()?.join(FILE);
        let read_ns = now_ns();
        let marks = FileMarks::read_path(&path);
        if let Some(shared) = &*SHARED.lock()
            && shared.path == path
            && marks == Some(shared.marks)
        {
            return Ok(Arc::clone(&shared.clones));
        }
        let clones = Arc::new(Self::read(path.clone())?);
        if let Some(marks) = marks.filter(|marks| !marks.is_racy(read_ns)) {
            *SHARED.lock() = Some(SharedClones { path, marks, clones: Arc::clone(&clones) });
        }
        Ok(clones)
    }
}

/// The marks of a clone's top folder and manifests, read before their content.
pub(super) struct ClonesLook {
    read_ns: i64,
    files: Vec<(PathBuf, Option<FileMarks>)>,
}

impl ClonesLook {
    /// Reads the marks.
    pub fn begin(top: &Path, known: &SeededClone) -> Self {
        let read_ns = now_ns();
        let paths = known.manifests.keys().map(|file| top.join(file)).chain([top.to_owned()]);
        let mark = |path: PathBuf| {
            let marks = FileMarks::read_path(&path);
            (path, marks)
        };
        Self { read_ns, files: paths.map(mark).collect() }
    }

    /// Notes that the clone has nothing to do. Notes nothing if a file changed so recently that its marks could stay
    /// equal at the next change.
    pub fn note_quiet(self, top: &Path, clones: Arc<SeededClones>) {
        let settled = |(path, marks): (PathBuf, Option<FileMarks>)| {
            marks.filter(|marks| !marks.is_racy(self.read_ns)).map(|marks| (path, marks))
        };
        let Some(files) = self.files.into_iter().map(settled).collect() else { return };
        let mut quiet = QUIET.lock();
        let quiet = quiet.get_or_insert_default();
        if quiet.len() >= MAX_QUIET {
            quiet.clear();
        }
        quiet.insert(top.to_owned(), QuietClone { clones, files });
    }
}

/// Returns true when the last look at a clone found nothing to do, and no file has changed since then.
pub(super) fn is_quiet(top: &Path, clones: &Arc<SeededClones>) -> bool {
    let quiet = QUIET.lock();
    let known = quiet.as_ref().and_then(|quiet| quiet.get(top)).filter(|known| Arc::ptr_eq(&known.clones, clones));
    known.is_some_and(|known| known.files.iter().all(|(path, marks)| FileMarks::read_path(path) == Some(*marks)))
}
