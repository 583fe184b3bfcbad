//! Offers code as a source: keeps the live roots, and the one thread that works for them.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak, mpsc};
use std::time::{Duration, Instant};

use nudge_core::clock::{Clock, Millis};
use nudge_core::context::Context;
use nudge_core::context::detect::GitDetector;
use nudge_core::error::{Error, Result};
use nudge_core::once::OnceByKey;
use nudge_core::service::MethodSpec;
use nudge_core::settings::{ServeFlag, Setting, SettingKind};
use nudge_core::source::{DataDir, Source, SourceHost, SourceSpec, StopFlag, give_way};
use nudge_core::suggest::{SourceOffers, SuggestRequest};
use nudge_core::table::{MethodTable, TableService};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::cache::IndexCache;
use crate::live::{LiveRoot, RootWorker};
use crate::method::{SEARCH, TABLE};
use crate::offer;
use crate::root::ProjectRoot;
use nudge_os::cpu::thread_cpu_time;

/// Registers code in the list of sources.
pub static SOURCE: SourceSpec = SourceSpec {
    name: "code",
    methods: || TABLE.methods(),
    guide: "What the code says now: nudge_code_search finds a definition, nudge_code_node its callers and tests, nudge_code_tests what to run after an edit.",
    settings: &[Setting {
        name: "code.on",
        kind: SettingKind::Switch,
        default: "1",
        flag: ServeFlag::Off,
        about: "Index the code of the projects that agents work in",
    }],
    resources: None,
    list: SEARCH,
    env: &[],
    alone: true,
    commands: &[],
    // The first root starts the thread, so a session in which nobody calls for code has no thread.
    works: false,
    open: |host| {
        let code: Arc<CodeSource> = Arc::new_cyclic(|own| CodeSource::open(host, own.clone()));
        Ok(code)
    },
};

/// The most live roots.
const MAX_ROOTS: usize = 4;
/// The time without use after which a live root is dropped, in milliseconds.
const UNUSED_MS: Millis = 30 * 60_000;
/// The most items that the source remembers as given to client sessions.
const MAX_GIVEN: usize = 5_000;
/// The longest time that a call waits for a new root. Reading the cache takes less.
const BEGINNING: Duration = Duration::from_millis(100);
/// The longest time that a hook waits for a root that is started again from its cache.
const KEPT: Duration = Duration::from_millis(15);
/// The time for which the source remembers the root of a folder.
const SAME_ROOT: Duration = Duration::from_secs(1);
/// The longest time that `close` waits for the worker thread.
const ENDING: Duration = Duration::from_millis(500);
/// The wait of the worker thread when no root has work.
const IDLE: Duration = Duration::from_hours(1);

/// The opened source.
pub struct CodeSource {
    own: Weak<Self>,
    clock: Arc<dyn Clock>,
    caches: DataDir,
    is_on: bool,
    /// Is true in a process that answers one call and belongs to no session.
    is_alone: bool,
    detector: Mutex<GitDetector>,
    /// The folder of the last call, the time when its root was found, and the root.
    last: Mutex<Option<(PathBuf, Instant, ProjectRoot)>>,
    roots: Mutex<Vec<Arc<LiveRoot>>>,
    /// The stop flag of the worker thread; set once the thread is started. The flag also wakes the thread for new work.
    worker: Arc<OnceLock<StopFlag>>,
    /// A channel without messages that closes when the worker thread ends.
    ended: Mutex<Option<mpsc::Receiver<()>>>,
    /// The workers of a process that answers one call. Their work is finished.
    finished: Mutex<Vec<RootWorker>>,
    given: Mutex<GivenItems>,
}

/// The hashes of the items that client sessions got, the oldest first.
#[derive(Default)]
struct GivenItems(VecDeque<u64>);

impl CodeSource {
    fn open(host: SourceHost<'_>, own: Weak<Self>) -> Self {
        let SourceHost { clock, session, cache, settings, .. } = host;
        Self {
            own,
            clock,
            caches: cache,
            is_on: settings.is_on("code.on"),
            is_alone: session.id.is_empty(),
            detector: Mutex::default(),
            last: Mutex::default(),
            roots: Mutex::default(),
            worker: Arc::default(),
            ended: Mutex::default(),
            finished: Mutex::default(),
            given: Mutex::default(),
        }
    }

    /// Finds the root of a call, and starts it if it is not live. The root is the one around `named`; without a name,
    /// the one around the caller; without a folder, the only live root.
    ///
    /// # Errors
    /// `E_INVALID` when code is switched off or the root is not clear, and the errors of [`ProjectRoot::find_root`].
    pub(crate) fn find_live(&self, named: Option<&str>, context: &Context) -> Result<Arc<LiveRoot>> {
        if !self.is_on {
            return Err(Error::invalid(
                "Code is not indexed: `code.on` is off; set NUDGE_CODE=1 and start nudge again.",
            ));
        }
        let cwd = context.cwd().map(Path::new);
        let folder = match (named, cwd) {
            (Some(named), Some(cwd)) => cwd.join(named),
            (Some(named), None) => PathBuf::from(named),
            (None, Some(cwd)) => cwd.to_owned(),
            (None, None) => match self.roots.lock().as_slice() {
                [only] => only.root().path().to_owned(),
                _ => {
                    return Err(
                        Error::invalid("It is not known where you are; name a project as `root`.").about("root")
                    );
                }
            },
        };
        if !folder.is_absolute() {
            return Err(Error::invalid("`root` must be an absolute folder.").about("root"));
        }
        let live = self.begin_root(self.root_of(&folder)?);
        if !live.state().is_caught_up {
            live.wait_complete(BEGINNING);
        }
        Ok(live)
    }

    /// Finds the root of a folder. A second call for the same folder within [`SAME_ROOT`] does not read git's files
    /// again.
    fn root_of(&self, folder: &Path) -> Result<ProjectRoot> {
        if let Some((known, found_at, root)) = &*self.last.lock()
            && known.as_os_str() == folder.as_os_str()
            && found_at.elapsed() < SAME_ROOT
        {
            return Ok(root.clone());
        }
        let root = ProjectRoot::find_root(folder, &mut self.detector.lock())?;
        *self.last.lock() = Some((folder.to_owned(), Instant::now(), root.clone()));
        Ok(root)
    }

    /// Finds the live root around the caller; `None` if the root is not live. So a caller that did not ask for code
    /// never waits for a new root.
    pub(crate) fn find_alive(&self, context: &Context) -> Option<Arc<LiveRoot>> {
        if self.roots.lock().is_empty() {
            return None;
        }
        let root = self.root_of(Path::new(context.cwd()?)).ok()?;
        let live = self.roots.lock().iter().find(|live| *live.root() == root).cloned()?;
        live.touch();
        Some(live)
    }

    /// Finds the root around the caller if it is live, and starts it again if it has a cache. A client session may
    /// outlive the server or the live root, and sends no second start event.
    pub(crate) fn alive_or_kept(&self, context: &Context) -> Option<Arc<LiveRoot>> {
        if let Some(live) = self.find_alive(context) {
            return Some(live);
        }
        let cwd = context.cwd().filter(|_| self.is_on && !self.is_alone)?;
        let root = self.root_of(Path::new(cwd)).ok().filter(|root| IndexCache::is_kept(&self.caches, root))?;
        let live = self.begin_root(root);
        live.wait_until(KEPT, |live| live.state().is_walked);
        Some(live)
    }

    /// Finds the root around the caller for a question to all sources. A process without a session reads the stored index,
    /// if there is one.
    pub(crate) fn find_for_question(&self, context: &Context) -> Option<Arc<LiveRoot>> {
        if !self.is_alone {
            return self.alive_or_kept(context);
        }
        let cwd = context.cwd().filter(|_| self.is_on)?;
        self.root_of(Path::new(cwd)).ok().filter(|root| IndexCache::is_kept(&self.caches, root))?;
        self.find_live(None, context).ok()
    }

    /// Makes the root around the caller live, if there is a root.
    pub(crate) fn begin_around(&self, context: &Context) {
        let Some(cwd) = context.cwd().filter(|_| self.is_on && !self.is_alone) else { return };
        let root = ProjectRoot::find_root(Path::new(cwd), &mut self.detector.lock());
        if let Ok(root) = root {
            self.begin_root(root);
        }
    }

    fn begin_root(&self, root: ProjectRoot) -> Arc<LiveRoot> {
        let mut roots = self.roots.lock();
        if let Some(live) = roots.iter().find(|live| *live.root() == root) {
            live.touch();
            return Arc::clone(live);
        }
        if roots.len() >= MAX_ROOTS
            && let Some(oldest) = (0..roots.len()).min_by_key(|index| roots.get(*index).map(|live| live.used_at()))
        {
            roots.remove(oldest);
        }
        let worker = Arc::clone(&self.worker);
        let wake = move || {
            if let Some(worker) = worker.get() {
                worker.tell_news();
            }
        };
        let live = Arc::new(LiveRoot::new(root, Arc::clone(&self.clock), self.caches.clone(), Box::new(wake)));
        roots.push(Arc::clone(&live));
        drop(roots);
        if self.is_alone {
            let mut worker = RootWorker::new(Arc::clone(&live));
            worker.finish_all();
            self.finished.lock().push(worker);
        } else {
            self.work_on();
        }
        live
    }

    /// Wakes the worker thread. Starts the thread if it does not run.
    fn work_on(&self) {
        let begin = || {
            let stop = StopFlag::default();
            if let Some(own) = self.own.upgrade() {
                let (flag, (until_ended, ended)) = (stop.clone(), mpsc::channel());
                *self.ended.lock() = Some(ended);
                let work = move || {
                    let _until_ended: mpsc::Sender<()> = until_ended;
                    own.run_workers(&flag);
                };
                // If the thread cannot start, no file is read, and every answer says so.
                let _ = std::thread::Builder::new().name("nudge-code".into()).spawn(work);
            }
            stop
        };
        self.worker.get_or_init(begin).tell_news();
    }

    /// Works for all live roots until the stop flag is set.
    fn run_workers(&self, stop: &StopFlag) {
        give_way();
        let mut workers = Vec::new();
        loop {
            self.assign_workers(&mut workers);
            let begun = thread_cpu_time();
            let rest = workers.iter_mut().map(|worker| worker.step(stop)).min().unwrap_or(IDLE);
            // The pause is as long as the work, so the thread takes at most half of a processor.
            let pause = || thread_cpu_time().saturating_sub(begun);
            let is_over = if rest.is_zero() { stop.wait(pause()) } else { stop.wait_for_news(rest) };
            if is_over {
                break;
            }
        }
        workers.iter_mut().for_each(RootWorker::close);
    }

    /// Records that a client session gets an item. Returns true if the session got it before.
    pub(crate) fn was_given(&self, what: u64) -> bool {
        let GivenItems(given) = &mut *self.given.lock();
        if given.contains(&what) {
            return true;
        }
        given.push_back(what);
        if given.len() > MAX_GIVEN {
            given.pop_front();
        }
        false
    }

    /// Returns true in a process that answers one call, without a worker thread.
    pub(crate) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Returns true if code is switched on.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Makes the list of workers match the list of live roots.
    fn assign_workers(&self, workers: &mut Vec<RootWorker>) {
        let roots = self.roots.lock().clone();
        workers.retain_mut(|worker| {
            let is_alive = roots.iter().any(|live| Arc::ptr_eq(live, worker.live()));
            if !is_alive {
                worker.close();
            }
            is_alive
        });
        for live in roots {
            if !workers.iter().any(|worker| Arc::ptr_eq(&live, worker.live())) {
                workers.push(RootWorker::new(live));
            }
        }
    }
}

impl TableService for CodeSource {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    // A refresh changes only the index, so a repeated refresh does no harm.
    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        None
    }
}

impl Source for CodeSource {
    fn find_offers(&self, request: &SuggestRequest) -> SourceOffers {
        offer::make_offers(self, request)
    }

    fn in_use(&self) -> bool {
        self.is_on
    }

    fn report_status(&self) -> Map<String, Value> {
        let roots = self.roots.lock().clone();
        if roots.is_empty() {
            return Map::new();
        }
        let (mut files, mut nodes, mut pending) = (0, 0, 0);
        for live in &roots {
            let state = live.state();
            files += state.files.len();
            nodes += state.node_count();
            pending += live.as_of(&state).pending;
        }
        let counts = json!({"roots": roots.len(), "files": files, "nodes": nodes, "pending": pending});
        Map::from_iter([(SOURCE.name.to_owned(), counts)])
    }

    fn tick(&self, now: Millis) {
        let mut roots = self.roots.lock();
        let before = roots.len();
        roots.retain(|live| now.saturating_sub(live.used_at()) < UNUSED_MS);
        if roots.len() < before {
            self.work_on();
        }
    }

    /// Stops the worker thread, and waits at most `ENDING` until it has written the caches.
    fn close(&self) {
        self.worker.get().inspect(|worker| worker.set());
        if let Some(ended) = self.ended.lock().take() {
            let _ = ended.recv_timeout(ENDING);
        }
        self.finished.lock().iter_mut().for_each(RootWorker::close);
        self.roots.lock().clear();
    }
}
