//! Remembers which seeded clones had nothing to do, so that the next look only calls `stat` on their files. With 400
//! seeds, a full read of `seeds.json` and every manifest takes milliseconds, and a hook waits for each look. Even
//! `stat` on every manifest costs a hook a third of its processor time, so files are grouped by the folder for which
//! they name commands: an agent can only be told commands of its folder and the folders above.

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
    files: MarkedFiles<FileMarks>,
}

/// The files of a clone with their marks, by the folder for which they name commands.
type MarkedFiles<M> = HashMap<PathBuf, Vec<(PathBuf, M)>>;

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
    files: MarkedFiles<Option<FileMarks>>,
}

impl ClonesLook {
    /// Reads the marks.
    pub fn begin(top: &Path, known: &SeededClone) -> Self {
        let read_ns = now_ns();
        let mut files = MarkedFiles::new();
        let mut add = |folder: PathBuf, path: PathBuf| {
            let marks = FileMarks::read_path(&path);
            files.entry(folder).or_default().push((path, marks));
        };
        add(top.to_owned(), top.to_owned());
        known.manifests.keys().for_each(|file| add(top.join(find_served_folder(file)), top.join(file)));
        Self { read_ns, files }
    }

    /// Notes that the clone has nothing to do. Notes nothing if a file changed so recently that its marks could stay
    /// equal at the next change.
    pub fn note_quiet(self, top: &Path, clones: Arc<SeededClones>) {
        let settled = |(path, marks): (PathBuf, Option<FileMarks>)| {
            marks.filter(|marks| !marks.is_racy(self.read_ns)).map(|marks| (path, marks))
        };
        let all_settled = |(folder, files): (PathBuf, Vec<_>)| {
            Some((folder, files.into_iter().map(settled).collect::<Option<Vec<_>>>()?))
        };
        let Some(files) = self.files.into_iter().map(all_settled).collect() else { return };
        let mut quiet = QUIET.lock();
        let quiet = quiet.get_or_insert_default();
        if quiet.len() >= MAX_QUIET {
            quiet.clear();
        }
        quiet.insert(top.to_owned(), QuietClone { clones, files });
    }
}

/// Returns true when the last look at a clone found nothing to do, and no file has changed since then. With `cwd`, only
/// the files that may name a command for this folder count.
pub(super) fn is_quiet(top: &Path, clones: &Arc<SeededClones>, cwd: Option<&Path>) -> bool {
    let quiet = QUIET.lock();
    let known = quiet.as_ref().and_then(|quiet| quiet.get(top)).filter(|known| Arc::ptr_eq(&known.clones, clones));
    let Some(QuietClone { files, .. }) = known else { return false };
    let is_same = |(path, marks): &(PathBuf, FileMarks)| FileMarks::read_path(path) == Some(*marks);
    match cwd {
        Some(cwd) => cwd.ancestors().filter_map(|folder| files.get(folder)).flatten().all(is_same),
        None => files.values().flatten().all(is_same),
    }
}

/// Returns the folder for which a manifest names commands: its own folder. Files with a hidden name or in a hidden
/// folder, such as those of CI, can name commands for any folder, so they count for the top. The file and the folder
/// are relative to the top.
fn find_served_folder(file: &str) -> &str {
    let is_hidden = file.split('/').any(|part| part.starts_with('.'));
    file.rsplit_once('/').filter(|_| !is_hidden).map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_for_its_folder_and_a_hidden_one_for_all() {
        for (file, folder) in [
            ("package.json", ""),
            ("packages/web/package.json", "packages/web"),
            (".github/workflows/ci.yml", ""),
            ("packages/web/.gitlab-ci.yml", ""),
            ("packages/web/.devcontainer/devcontainer.json", ""),
        ] {
            assert_eq!(find_served_folder(file), folder, "{file}");
        }
    }
}
