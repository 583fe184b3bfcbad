//! Change notifications: collects the changes of all sources for the clients that subscribe.
//!
//! Every committed change sends one [`TouchedThing`]. A task gathers these for 20 ms, so many changes at once become
//! one [`ChangeBatch`]. Each subscribed client reads the batches from its [`ChangeFeed`].

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

use nudge::{Caller, ErrorKind, Result};
use nudge_app::sources;
use nudge_client::Client;
use nudge_core::source::{SourceSpec, TouchedResource};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::sleep;

use super::backend::CallBackend;

/// The thing that a committed change has altered.
#[derive(Debug, Clone)]
pub enum TouchedThing {
    /// A resource of a source.
    Resource {
        /// The source of the resource.
        source: &'static str,
        /// The name of the resource.
        name: Arc<str>,
        /// True when the resource has more or fewer parts than before.
        count_changed: bool,
    },
    /// The list of tools.
    Tools,
    /// All resources, because the receiver has missed changes.
    Everything,
}

/// The name of the method that returns changes.
pub const CHANGES: &str = "nudge.changes";
/// The `what` of a change that says: a source is now in use, or no longer in use. The list of tools changes with it.
pub const IN_USE: &str = "in_use";

/// The number of changes that the channel can hold. A receiver that misses changes treats everything as changed.
pub const TOUCHED_CAPACITY: usize = 1024;
/// The time for which the task gathers changes before clients get a notification.
const GATHER: Duration = Duration::from_millis(20);
/// The most batches that wait for a slow client.
const BATCH_CAPACITY: usize = 16;
/// The time for which a PROXY's call of `nudge.changes` waits for a change, in seconds.
const WAIT_S: f64 = 5.0;
/// The pause before a PROXY repeats a failed call.
const RELAY_PAUSE: Duration = Duration::from_millis(50);

/// The changes of one interval.
#[derive(Debug, Default)]
pub struct ChangeBatch {
    /// True when changes were missed; any resource may then have changed.
    everything: bool,
    /// The sources with a resource that has more or fewer parts than before.
    counts: BTreeSet<&'static str>,
    /// True when resources were added or removed.
    names: bool,
    /// True when the list of tools has changed.
    tools: bool,
    resources: HashSet<(&'static str, Arc<str>)>,
}

impl ChangeBatch {
    fn new_everything() -> Self {
        Self { everything: true, names: true, ..Self::default() }
    }

    fn add(&mut self, touched: TouchedThing) {
        match touched {
            TouchedThing::Resource { source, name, count_changed } => {
                if count_changed {
                    self.counts.insert(source);
                }
                self.resources.insert((source, name));
            }
            TouchedThing::Tools => self.tools = true,
            TouchedThing::Everything => *self = Self { tools: self.tools, ..Self::new_everything() },
        }
    }

    fn mark_missed(&mut self) {
        *self = Self { tools: true, ..Self::new_everything() };
    }

    /// Returns true when this resource of a source may have changed.
    pub fn touches_resource(&self, source: &'static str, name: &str) -> bool {
        self.everything || self.resources.contains(&(source, Arc::from(name)))
    }

    /// Returns true when the list of a source's resources, or the number of parts of one of them, may have changed.
    pub fn touches_list(&self, source: &'static str) -> bool {
        self.everything || self.counts.contains(source)
    }

    /// Returns true when resources may have been added or removed.
    pub fn touches_names(&self) -> bool {
        self.names
    }

    /// Returns true when the list of tools may have changed.
    pub fn touches_tools(&self) -> bool {
        self.tools
    }
}

/// Makes a [`ChangeFeed`] for each client.
#[derive(Clone)]
pub struct ChangeFeeds {
    /// The sender of batches. The reference is weak, so the feeds end when the gathering task ends.
    batches: broadcast::WeakSender<Arc<ChangeBatch>>,
    known: Arc<KnownNames>,
}

/// The names of the resources at the time of the last notification.
struct KnownNames {
    backend: Arc<CallBackend>,
    /// The names; `None` while no client listens, because no task then updates them.
    names: Mutex<Option<Names>>,
}

/// Pairs of a source and the name of a resource.
type Names = BTreeSet<(&'static str, String)>;

impl ChangeFeeds {
    /// Gathers all changes from `touched` until `stopped` becomes true. All feeds then end.
    pub fn start_gathering(
        touched: &broadcast::Sender<TouchedThing>,
        backend: Arc<CallBackend>,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        let (batches, _) = broadcast::channel(BATCH_CAPACITY);
        let changes = Self::new(&batches, backend);
        tokio::spawn(gather_batches(touched.subscribe(), batches, Arc::clone(&changes.known), stopped));
        changes
    }

    /// Makes feeds that never report a change.
    pub fn without_changes(backend: Arc<CallBackend>) -> Self {
        Self::new(&broadcast::channel(1).0, backend)
    }

    fn new(batches: &broadcast::Sender<Arc<ChangeBatch>>, backend: Arc<CallBackend>) -> Self {
        Self { batches: batches.downgrade(), known: Arc::new(KnownNames { backend, names: Mutex::default() }) }
    }

    /// Returns a feed of all changes that come from now on.
    pub fn open_feed(&self) -> ChangeFeed {
        ChangeFeed(self.batches.upgrade().map(|batches| batches.subscribe()))
    }

    /// Reads the names of the current resources, unless they are known. Without the names, the first batch would report
    /// a changed list of names.
    pub async fn note_names(&self) {
        if self.known.names.lock().is_none()
            && let Ok(names) = read_names(&self.known.backend).await
        {
            self.known.names.lock().get_or_insert(names);
        }
    }
}

impl KnownNames {
    /// Updates the names. Returns true when they differ from the earlier names.
    async fn renew_names(&self) -> bool {
        let now = read_names(&self.backend).await.ok();
        let mut known = self.names.lock();
        let changed = known.is_none() || now.is_none() || *known != now;
        *known = now;
        changed
    }
}

async fn read_names(backend: &Arc<CallBackend>) -> Result<Names> {
    let mut all = Names::new();
    for (source, _) in sources::with_resources() {
        all.extend(list_resource_names(backend, source).await?.into_iter().map(|name| (source.name, name)));
    }
    Ok(all)
}

/// Lists the names of all resources of a source, in byte order. Returns an empty list if the PRIMARY is older and does
/// not have the source.
pub async fn list_resource_names(backend: &CallBackend, source: &SourceSpec) -> Result<Vec<String>> {
    let Some(resources) = source.resources else { return Ok(Vec::new()) };
    let listed = match backend.call(resources.list, &no_params()).await {
        Err(error) if error.kind() == ErrorKind::UnknownMethod => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut names = (resources.names)(&listed);
    names.sort_unstable();
    Ok(names)
}

/// Returns the params for a method without params.
pub fn no_params() -> Box<RawValue> {
    serde_json::from_str("{}").unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The receiver of changes for a client. The value inside is `None` for a client that gets no changes.
pub struct ChangeFeed(Option<broadcast::Receiver<Arc<ChangeBatch>>>);

impl ChangeFeed {
    /// Returns the next batch. Returns `None` when no more batches will come.
    pub async fn next(&mut self) -> Option<Arc<ChangeBatch>> {
        match self.0.as_mut()?.recv().await {
            Ok(batch) => Some(batch),
            Err(RecvError::Lagged(_)) => {
                let mut batch = ChangeBatch::default();
                batch.mark_missed();
                Some(Arc::new(batch))
            }
            Err(RecvError::Closed) => None,
        }
    }
}

/// Relays changes from the PRIMARY while this process is a PROXY of a living session.
pub async fn relay_changes(client: Client, touched: broadcast::Sender<TouchedThing>, is_over: impl Fn() -> bool) {
    #[derive(Deserialize)]
    struct RelayedChanges {
        changes: Vec<ChangeTold>,
        next: u64,
        missed: Option<u64>,
    }
    let mut since = None;
    loop {
        let params = serde_json::json!({"since": since, "wait_s": WAIT_S});
        let Ok(params) = to_raw_value(&params) else { return };
        let told = client.call(Caller::default(), CHANGES, &params).await;
        // When a PRIMARY ends, it answers all waiting calls, so the PROXY notices the end of the session at once.
        if is_over() {
            return;
        }
        let Some(told) = told.ok().and_then(|told| serde_json::from_str::<RelayedChanges>(told.get()).ok()) else {
            sleep(RELAY_PAUSE).await;
            continue;
        };
        let heard = match (since, told.missed) {
            (Some(_), Some(0)) => told.changes.into_iter().flat_map(ChangeTold::into_touched).collect(),
            // The first answer reports only resources: the client has just listed the tools.
            (None, _) => vec![TouchedThing::Everything],
            (Some(_), _) => vec![TouchedThing::Everything, TouchedThing::Tools],
        };
        for touch in heard {
            // An error only means that no task listens.
            let _ = touched.send(touch);
        }
        since = Some(told.next);
    }
}

/// A change in the answer of the PRIMARY.
#[derive(Deserialize)]
struct ChangeTold {
    /// The source; `None` when the PRIMARY's version has only hints.
    source: Option<String>,
    what: String,
    /// The resources; `None` when the PRIMARY's version has only hints. In that case, `component` names the resource.
    touched: Option<Vec<TouchedResource>>,
    component: Option<String>,
    version: Option<u64>,
}

impl ChangeTold {
    fn into_touched(self) -> Vec<TouchedThing> {
        if self.what == IN_USE {
            return vec![TouchedThing::Tools];
        }
        let first = sources::list_sources().first().map_or("", |first| first.name);
        // If this version does not have the source, no client here can subscribe to it.
        let Some(source) = sources::find_source(self.source.as_deref().unwrap_or(first)) else { return Vec::new() };
        let touched = match (self.touched, self.component) {
            (Some(touched), _) => touched,
            (None, Some(component)) => {
                let is_same =
                    matches!(&*self.what, "bump" | "outcome") || (self.what == "set" && self.version > Some(1));
                vec![TouchedResource { resource: component.into(), count_changed: !is_same }]
            }
            (None, None) => return vec![TouchedThing::Everything],
        };
        let touch = |TouchedResource { resource, count_changed }| TouchedThing::Resource {
            source: source.name,
            name: resource,
            count_changed,
        };
        touched.into_iter().map(touch).collect()
    }
}

async fn gather_batches(
    mut touched: broadcast::Receiver<TouchedThing>,
    batches: broadcast::Sender<Arc<ChangeBatch>>,
    known: Arc<KnownNames>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let batch = tokio::select! {
            batch = next_batch(&mut touched) => batch,
            _ = stopped.wait_for(|stop| *stop) => return,
        };
        let Some(mut batch) = batch else { return };
        if batches.receiver_count() == 0 {
            if !batch.counts.is_empty() || batch.everything {
                known.names.lock().take();
            }
            continue;
        }
        batch.names |= !batch.counts.is_empty() && known.renew_names().await;
        // An error only means that no client listens any more.
        let _ = batches.send(Arc::new(batch));
    }
}

/// Waits for a change, then gathers more changes for [`GATHER`]. Returns `None` when no more changes will come.
async fn next_batch(touched: &mut broadcast::Receiver<TouchedThing>) -> Option<ChangeBatch> {
    let mut batch = ChangeBatch::default();
    match touched.recv().await {
        Ok(first) => batch.add(first),
        Err(RecvError::Lagged(_)) => batch.mark_missed(),
        Err(RecvError::Closed) => return None,
    }
    sleep(GATHER).await;
    loop {
        match touched.try_recv() {
            Ok(next) => batch.add(next),
            Err(TryRecvError::Lagged(_)) => batch.mark_missed(),
            Err(TryRecvError::Empty | TryRecvError::Closed) => return Some(batch),
        }
    }
}

#[cfg(test)]
mod tests {
    use nudge::Nudge;

    use super::*;
    use crate::work::{CallerId, WorkPool};

    fn touched(component: &str, count_changed: bool) -> TouchedThing {
        TouchedThing::Resource { source: "hints", name: component.into(), count_changed }
    }

    fn store() -> Arc<CallBackend> {
        let desk = Arc::new(WorkPool::default()).desk_for(CallerId::OwnClient);
        Arc::new(CallBackend::from_service(Arc::new(Nudge::default()), desk))
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(test);
    }

    #[test]
    fn a_burst_is_one_batch() {
        run(async {
            let (sender, _) = broadcast::channel(TOUCHED_CAPACITY);
            let (_stop, stopped) = watch::channel(false);
            let changes = ChangeFeeds::start_gathering(&sender, store(), stopped);
            let mut feed = changes.open_feed();
            changes.note_names().await;
            for component in ["a", "b", "a"] {
                sender.send(touched(component, false)).unwrap();
            }
            let batch = feed.next().await.unwrap();
            assert!(
                batch.touches_resource("hints", "a")
                    && batch.touches_resource("hints", "b")
                    && !batch.touches_resource("hints", "c")
            );
            assert!(!batch.touches_list("hints") && !batch.touches_names());
            sender.send(touched("c", true)).unwrap();
            let batch = feed.next().await.unwrap();
            assert!(
                batch.touches_resource("hints", "c")
                    && !batch.touches_resource("hints", "a")
                    && batch.touches_list("hints")
            );
            assert!(!batch.touches_names(), "the store is as empty as before");
        });
    }

    #[test]
    fn who_falls_behind_takes_everything_as_changed() {
        run(async {
            let (sender, _) = broadcast::channel(TOUCHED_CAPACITY);
            let (_stop, stopped) = watch::channel(false);
            let changes = ChangeFeeds::start_gathering(&sender, store(), stopped);
            let mut feed = changes.open_feed();
            for _ in 0..=TOUCHED_CAPACITY {
                sender.send(touched("a", false)).unwrap();
            }
            let batch = feed.next().await.unwrap();
            assert!(
                batch.touches_resource("hints", "never named") && batch.touches_list("hints") && batch.touches_names()
            );

            // For a while the test does not read `feed`, like a slow client.
            let mut quick = changes.open_feed();
            for _ in 0..=BATCH_CAPACITY {
                sender.send(touched("a", false)).unwrap();
                assert!(!quick.next().await.unwrap().touches_resource("hints", "never named"));
            }
            let batch = feed.next().await.unwrap();
            assert!(
                batch.touches_resource("hints", "never named") && batch.touches_list("hints") && batch.touches_names()
            );
            assert!(feed.next().await.unwrap().touches_resource("hints", "a"), "it goes on");
        });
    }

    #[test]
    fn feeds_end_with_the_server() {
        run(async {
            let (sender, _) = broadcast::channel(TOUCHED_CAPACITY);
            let (stop, stopped) = watch::channel(false);
            let changes = ChangeFeeds::start_gathering(&sender, store(), stopped);
            let mut feed = changes.open_feed();
            stop.send_replace(true);
            assert!(feed.next().await.is_none());
            assert!(changes.open_feed().next().await.is_none());
        });
    }
}
