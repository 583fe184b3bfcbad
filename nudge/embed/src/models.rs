//! Shares one model among all callers: loads it at the first request, and drops it when it is idle.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use nudge_core::clock::{Clock, Millis};
use nudge_core::embed::ModelState;
use nudge_core::error::{Error, Result};
use nudge_core::source::{give_way, gives_way};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::files::{FILES, ModelFiles};
use crate::{ModelFolder, Precision, SentenceModel};

/// Time without a request after which a model is dropped.
pub const IDLE: Duration = Duration::from_mins(10);
/// Pause in milliseconds before a model that failed to load is loaded again from unchanged files. The load may have
/// failed only for lack of memory.
const RETRY: Millis = 60_000;

/// Says which model to use.
#[derive(Debug, Clone)]
pub enum ModelChoice {
    /// The model in this folder.
    Folder(PathBuf),
    /// A stored model: the one with this name, or without a name the choice of [`ModelFolder::chosen`].
    Added(ModelFolder, Option<String>),
}

impl ModelChoice {
    fn find_folder(&self) -> Result<Option<PathBuf>> {
        match self {
            Self::Folder(folder) => Ok(folder.is_dir().then(|| folder.clone())),
            Self::Added(models, name) => models.chosen(name.as_deref()),
        }
    }

    /// Returns the [id](nudge_core::embed::TextEmbedder::id) of the model that the lender would load, or `None` without
    /// a model. The function reads and hashes the files, but builds no network, so it takes little memory.
    ///
    /// # Errors
    /// `E_INVALID` when a file is missing, or when the files describe a network that cannot run.
    pub fn find_id(&self) -> Result<Option<String>> {
        let Some(folder) = self.find_folder()? else { return Ok(None) };
        let id =
            ModelFiles::read(&folder).and_then(|files| Ok(files.make_id(&files.read_config()?, Precision::default())));
        id.map(Some).map_err(|fault| fault.into_error(&folder))
    }
}

/// Shares the model among all callers in this process. Clones of the value share one model.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use nudge_core::clock::SystemClock;
/// use nudge_core::embed::ModelState;
/// use nudge_embed::{ModelChoice, ModelFolder, ModelLender};
///
/// let place = tempfile::tempdir()?;
/// let added = ModelFolder::new(place.path().join("models"));
/// let models = ModelLender::new(ModelChoice::Added(added, None), Arc::new(SystemClock));
/// assert!(matches!(models.get(Duration::from_secs(1)), ModelState::Absent), "nobody has added one, and nobody waits");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct ModelLender(Arc<LenderState>);

struct LenderState {
    choice: ModelChoice,
    clock: Arc<dyn Clock>,
    idle: Duration,
    slot: Mutex<ModelSlot>,
    /// Wakes waiting callers when a load has ended.
    loaded: Condvar,
}

/// The loaded model, the stamp of its files, and the times of the last load and the last request.
struct ModelSlot {
    held: HeldModel,
    files: Option<ModelStamp>,
    begun_at: Millis,
    asked_at: Millis,
}

enum HeldModel {
    Nothing,
    Loading,
    Ready(Arc<SentenceModel>),
    Failed(Error),
}

/// The sizes and times of a model's files. Comparing two stamps shows whether the files have changed.
#[derive(Debug, Clone, PartialEq)]
struct ModelStamp {
    folder: PathBuf,
    files: Vec<Option<(u64, Option<SystemTime>)>>,
}

impl ModelStamp {
    fn from_folder(folder: &Path) -> Self {
        let stamp_of = |meta: Metadata| (meta.len(), meta.modified().ok());
        let files = FILES.iter().map(|(name, _)| folder.join(name).metadata().ok().map(stamp_of)).collect();
        Self { folder: folder.to_owned(), files }
    }
}

impl ModelLender {
    /// Makes the lender, and loads nothing yet.
    pub fn new(choice: ModelChoice, clock: Arc<dyn Clock>) -> Self {
        Self::with_idle(choice, clock, IDLE)
    }

    /// Makes the lender as [`new`](Self::new) does. `idle` is the time without a request after which the model is
    /// dropped.
    pub fn with_idle(choice: ModelChoice, clock: Arc<dyn Clock>, idle: Duration) -> Self {
        let slot = Mutex::new(ModelSlot { held: HeldModel::Nothing, files: None, begun_at: 0, asked_at: clock.now() });
        Self(Arc::new(LenderState { choice, clock, idle, slot, loaded: Condvar::new() }))
    }

    /// Returns the model. If it is not in memory, starts a load on another thread and waits for it, at most for `wait`.
    /// If the model's files were changed or removed, the function first drops the old model. It checks the folder on
    /// disk at each call, so an event loop must not call it, even with a `wait` of zero.
    pub fn get(&self, wait: Duration) -> ModelState {
        let deadline = Instant::now() + wait;
        let folder = match self.find_folder() {
            Ok(Some(folder)) => folder,
            nothing => {
                drop_held(&mut self.0.slot.lock());
                return nothing.map_or_else(ModelState::Failed, |_| ModelState::Absent);
            }
        };
        let files = ModelStamp::from_folder(&folder);
        let mut slot = self.0.slot.lock();
        slot.asked_at = self.0.clock.now();
        let is_old = matches!(slot.held, HeldModel::Failed(_)) && slot.asked_at - slot.begun_at >= RETRY;
        if slot.files.as_ref() != Some(&files) || is_old {
            drop_held(&mut slot);
        }
        // Checks the state again, because dropping the old model released the lock for a while.
        if matches!(slot.held, HeldModel::Nothing) {
            self.begin_load(&mut slot, files);
        }
        while matches!(slot.held, HeldModel::Loading) {
            if self.0.loaded.wait_until(&mut slot, deadline).timed_out() {
                break;
            }
        }
        match &slot.held {
            HeldModel::Nothing | HeldModel::Loading => ModelState::Loading,
            HeldModel::Ready(model) => ModelState::Ready(model.clone()),
            HeldModel::Failed(error) => ModelState::Failed(error.clone()),
        }
    }

    /// Returns the model's state without loading the model. `Loading` also means that no caller has requested the model
    /// yet.
    pub fn peek(&self) -> ModelState {
        match self.find_folder() {
            Ok(None) => return ModelState::Absent,
            Err(error) => return ModelState::Failed(error),
            Ok(Some(_)) => {}
        }
        match &self.0.slot.lock().held {
            HeldModel::Nothing | HeldModel::Loading => ModelState::Loading,
            HeldModel::Ready(model) => ModelState::Ready(model.clone()),
            HeldModel::Failed(error) => ModelState::Failed(error.clone()),
        }
    }

    /// Returns the folder of the model, or `None` when there is no model.
    ///
    /// # Errors
    /// The errors of [`ModelFolder::chosen`].
    pub fn find_folder(&self) -> Result<Option<PathBuf>> {
        self.0.choice.find_folder()
    }

    /// Drops the model if it has been idle for long enough. Returns true if it dropped a model, so that the caller can
    /// return free memory to the system. The server calls this every few seconds.
    pub fn tick(&self) -> bool {
        let mut slot = self.0.slot.lock();
        let idle = Millis::try_from(self.0.idle.as_millis()).unwrap_or(Millis::MAX);
        if self.0.clock.now() - slot.asked_at < idle {
            return false;
        }
        drop_held(&mut slot)
    }

    fn begin_load(&self, slot: &mut ModelSlot, files: ModelStamp) {
        let shared = self.0.clone();
        let folder = files.folder.clone();
        // The loading thread takes the low priority of its caller, and the engine's threads inherit it.
        let is_behind = gives_way();
        let load = move || {
            if is_behind {
                give_way();
            }
            let held = match SentenceModel::load(&folder, Precision::default()) {
                Ok(model) => HeldModel::Ready(Arc::new(model)),
                Err(error) => HeldModel::Failed(error),
            };
            shared.slot.lock().held = held;
            shared.loaded.notify_all();
        };
        slot.files = Some(files);
        slot.begun_at = slot.asked_at;
        slot.held = match std::thread::Builder::new().name("nudge-embed".into()).spawn(load) {
            Ok(_) => HeldModel::Loading,
            Err(error) => HeldModel::Failed(Error::unavailable(format!(
                "The model cannot be loaded, because no thread could be started ({error}); try again."
            ))),
        };
    }
}

impl nudge_core::embed::ModelProvider for ModelLender {
    fn get(&self, wait: Duration) -> ModelState {
        Self::get(self, wait)
    }

    fn get_loaded(&self) -> ModelState {
        Self::peek(self)
    }

    fn drop_idle(&self) -> bool {
        Self::tick(self)
    }
}

/// Drops the model, except during a load. Returns true if there was a model.
fn drop_held(slot: &mut MutexGuard<'_, ModelSlot>) -> bool {
    match &slot.held {
        // The loading thread still runs, and will put its result into this slot.
        HeldModel::Loading => false,
        held => {
            let had = matches!(held, HeldModel::Ready(_));
            let held = std::mem::replace(&mut slot.held, HeldModel::Nothing);
            // Releases the lock during the drop, because freeing so much memory takes time.
            MutexGuard::unlocked(slot, || drop(held));
            had
        }
    }
}
