//! Limits the places and the time of calls. Every call goes through a [`WorkDesk`], except the few calls that run on
//! the event loop.
//!
//! - A caller has [`PLACES_OF_A_CALLER`] places in each lane. All callers of one kind together have the places that
//!   `CallerKind::places` returns. A call waits at most `WAIT` for a place. When [`MAX_WAITING`] calls of a caller
//!   wait, a further call is refused.
//! - A call ends after `DEADLINE`, or after `LONG_DEADLINE` in [`CallLane::Long`]. The caller then gets an error, and
//!   [`CallLimit`] tells the work to stop.
//! - If the caller disconnects, a waiting call does not start. Running work is told to stop, and holds its place until
//!   it ends.
//! - Each lane has its own places, so prompts and status calls never wait for other work.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use nudge::{Error, Result};
use nudge_core::patience::CallLimit;
use nudge_core::service::CallLane;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{timeout, timeout_at};

/// The time within which a call must end; callers do not wait longer for an answer.
const DEADLINE: Duration = Duration::from_mins(5);
/// The time within which a call in [`CallLane::Long`] must end. An import of 400 MB takes minutes.
const LONG_DEADLINE: Duration = Duration::from_hours(12);
/// The places of one kind of callers in [`CallLane::Long`]. Such calls wait for one another in any case.
const LONG_PLACES: usize = 2;
/// The longest time for which a call waits for a place.
const WAIT: Duration = Duration::from_secs(30);
/// The places of one caller in each lane.
pub const PLACES_OF_A_CALLER: usize = 8;
/// The most calls of one caller that wait for a place in a lane.
pub const MAX_WAITING: usize = 64;
/// The most waiting calls in [`CallLane::Vital`], where a call takes microseconds. A client on stdin may send this many
/// at once.
const MAX_VITAL_WAITING: usize = 256;
/// The least and the most prompts that run at the same time. Between these limits the number is two for each processor.
const PROMPTS: (usize, usize) = (4, 16);
/// From this number of known callers on, the pool removes callers that have disconnected.
const MANY_CALLERS: usize = 64;

/// The caller that holds the places of a call, as far as the system identifies the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerId {
    /// The client on stdin.
    OwnClient,
    /// The client on the stdin of a PROXY, by the PROXY's process id.
    Proxy(u32),
    /// Another process of this user over the local channel.
    Process(u32),
    /// A connection from a process that the system does not identify.
    Connection(u64),
    /// A client of `/mcp`.
    McpClient(u64),
    /// The page.
    Page,
    /// The work that reads files to infer the context of the client on stdin.
    Looks,
}

/// A kind of callers; the callers of one kind share places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CallerKind {
    OwnClient,
    Proxy,
    Process,
    Tcp,
    Page,
    Looks,
}

impl CallerId {
    fn caller_kind(self) -> CallerKind {
        match self {
            Self::OwnClient => CallerKind::OwnClient,
            Self::Proxy(_) => CallerKind::Proxy,
            Self::Process(_) => CallerKind::Process,
            Self::Connection(_) | Self::McpClient(_) => CallerKind::Tcp,
            Self::Page => CallerKind::Page,
            Self::Looks => CallerKind::Looks,
        }
    }
}

impl CallerKind {
    const ALL: [Self; 6] = [Self::OwnClient, Self::Proxy, Self::Process, Self::Tcp, Self::Page, Self::Looks];

    /// Returns the number of places that all callers of this kind share in a lane. The sum over all kinds stays below
    /// the number of threads that the runtime may start.
    fn places(self, lane: CallLane) -> usize {
        match self {
            _ if lane == CallLane::Long => LONG_PLACES,
            Self::OwnClient | Self::Page | Self::Looks => PLACES_OF_A_CALLER,
            Self::Process | Self::Tcp => 4 * PLACES_OF_A_CALLER,
            Self::Proxy => 8 * PLACES_OF_A_CALLER,
        }
    }

    /// Returns true when several callers share the places of this kind, so a caller that holds all places delays
    /// others.
    fn is_shared(self) -> bool {
        matches!(self, Self::Process | Self::Tcp | Self::Proxy)
    }
}

/// The places for calls of this process.
pub struct WorkPool {
    by_kind: HashMap<(CallLane, CallerKind), Arc<Semaphore>>,
    /// Created with the first prompt, because the count of processors comes from files.
    prompts: OnceLock<Arc<Semaphore>>,
    callers: Mutex<HashMap<CallerId, Weak<CallerPlaces>>>,
    running: Mutex<RunningCalls>,
    deadline: Duration,
    wait: Duration,
}

#[derive(Default)]
struct RunningCalls {
    last: u64,
    all: HashMap<u64, RunningCall>,
}

struct RunningCall {
    end: Instant,
    lane: CallLane,
    kind: CallerKind,
}

/// The places of one caller.
#[derive(Default)]
struct CallerPlaces {
    work: LanePlaces,
    prompt: LanePlaces,
    vital: LanePlaces,
    long: LanePlaces,
}

struct LanePlaces {
    free: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// Returns the most calls of one caller that may wait for a place in a lane.
fn max_waiting(lane: CallLane) -> usize {
    if lane == CallLane::Vital { MAX_VITAL_WAITING } else { MAX_WAITING }
}

impl Default for LanePlaces {
    fn default() -> Self {
        Self { free: Arc::new(Semaphore::new(PLACES_OF_A_CALLER)), waiting: AtomicUsize::new(0) }
    }
}

impl CallerPlaces {
    fn in_lane(&self, lane: CallLane) -> &LanePlaces {
        match lane {
            CallLane::Work => &self.work,
            CallLane::Prompt => &self.prompt,
            CallLane::Vital => &self.vital,
            CallLane::Long => &self.long,
        }
    }
}

impl Default for WorkPool {
    fn default() -> Self {
        Self::with_times(DEADLINE, WAIT)
    }
}

impl WorkPool {
    fn with_times(deadline: Duration, wait: Duration) -> Self {
        let semaphores_of = |lane: CallLane| {
            let place = move |kind: CallerKind| ((lane, kind), Arc::new(Semaphore::new(kind.places(lane))));
            CallerKind::ALL.into_iter().map(place)
        };
        Self {
            by_kind: [CallLane::Work, CallLane::Vital, CallLane::Long].into_iter().flat_map(semaphores_of).collect(),
            prompts: OnceLock::new(),
            callers: Mutex::default(),
            running: Mutex::default(),
            deadline,
            wait,
        }
    }

    /// Returns the desk of one caller.
    pub fn desk_for(self: &Arc<Self>, caller: CallerId) -> WorkDesk {
        WorkDesk { pool: Arc::clone(self), caller }
    }

    /// Returns the number of calls that still run after their deadline.
    pub fn count_overdue(&self) -> usize {
        let now = Instant::now();
        self.running.lock().all.values().filter(|call| call.end < now).count()
    }

    /// Returns true when calls past their deadline hold all places of a lane that several callers share.
    pub fn is_stuck(&self) -> bool {
        let now = Instant::now();
        let mut overdue: HashMap<(CallLane, CallerKind), usize> = HashMap::new();
        for call in self.running.lock().all.values().filter(|call| call.end < now && call.kind.is_shared()) {
            *overdue.entry((call.lane, call.kind)).or_default() += 1;
        }
        overdue.into_iter().any(|((lane, kind), count)| count >= kind.places(lane))
    }

    fn caller_places(&self, caller: CallerId) -> Arc<CallerPlaces> {
        let mut callers = self.callers.lock();
        if let Some(places) = callers.get(&caller).and_then(Weak::upgrade) {
            return places;
        }
        if callers.len() >= MANY_CALLERS {
            callers.retain(|_, places| places.strong_count() > 0);
        }
        let places = Arc::<CallerPlaces>::default();
        callers.insert(caller, Arc::downgrade(&places));
        places
    }

    /// Returns the places that all callers of a kind share in a lane.
    fn shared_places(&self, lane: CallLane, kind: CallerKind) -> Arc<Semaphore> {
        let shared = match lane {
            CallLane::Prompt => self.prompts.get_or_init(|| {
                let cores = std::thread::available_parallelism().map_or(1, usize::from);
                Arc::new(Semaphore::new((2 * cores).clamp(PROMPTS.0, PROMPTS.1)))
            }),
            CallLane::Work | CallLane::Vital | CallLane::Long => {
                self.by_kind.get(&(lane, kind)).expect("each kind has places in each lane")
            }
        };
        Arc::clone(shared)
    }
}

/// A caller's access to the pool.
#[derive(Clone)]
pub struct WorkDesk {
    pool: Arc<WorkPool>,
    caller: CallerId,
}

impl WorkDesk {
    /// Returns the desk of another caller of the same pool.
    #[must_use]
    pub fn for_caller(&self, caller: CallerId) -> Self {
        self.pool.desk_for(caller)
    }

    /// Returns the caller that holds the places of the calls.
    pub fn caller(&self) -> CallerId {
        self.caller
    }

    /// Runs work on another thread. A drop of the future tells the work to stop.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when no place becomes free in time, or when too many calls of the caller wait; the work then
    /// does not start. Also when the deadline has passed or the work has panicked.
    pub async fn run<T: Send + 'static>(&self, lane: CallLane, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let deadline = if lane == CallLane::Long { LONG_DEADLINE } else { self.pool.deadline };
        let limit = CallLimit::from_now(deadline);
        let _gone = GivesUp(limit.clone());
        let held = self.take_place(lane, &limit).await?;
        let (mine, end) = (limit.clone(), limit.end());
        let begun = spawn_blocking(move || {
            let _held = held;
            (!mine.is_over()).then(|| mine.run(work))
        });
        match timeout_at(end.into(), begun).await {
            Ok(Ok(Some(done))) => Ok(done),
            Ok(Ok(None)) => Err(no_place(deadline)),
            Ok(Err(_)) => Err(broken_error()),
            Err(_) => Err(late_error(deadline)),
        }
    }

    /// Waits for a place of this caller and for a place of the caller's kind.
    async fn take_place(&self, lane: CallLane, limit: &CallLimit) -> Result<HeldPlace> {
        let (places, kind) = (self.pool.caller_places(self.caller), self.caller.caller_kind());
        let (own, shared) = (&places.in_lane(lane).free, self.pool.shared_places(lane, kind));
        let at_once = Arc::clone(own).try_acquire_owned().ok();
        let at_once = at_once.and_then(|own| Some((own, Arc::clone(&shared).try_acquire_owned().ok()?)));
        let (own, shared) = if let Some(both) = at_once {
            both
        } else {
            let _waiting = WaitingCall::begin_waiting(&places.in_lane(lane).waiting, max_waiting(lane))?;
            let both = async {
                let own = Arc::clone(own).acquire_owned().await.ok()?;
                Some((own, shared.acquire_owned().await.ok()?))
            };
            let both = timeout(self.pool.wait, both).await.ok().flatten();
            both.ok_or_else(|| no_place(self.pool.wait))?
        };
        let mut running = self.pool.running.lock();
        running.last += 1;
        let number = running.last;
        running.all.insert(number, RunningCall { end: limit.end(), lane, kind });
        drop(running);
        Ok(HeldPlace { number, pool: Arc::clone(&self.pool), _own: own, _shared: shared, _places: places })
    }
}

/// A place. The call holds it until the work ends.
struct HeldPlace {
    number: u64,
    pool: Arc<WorkPool>,
    _own: OwnedSemaphorePermit,
    _shared: OwnedSemaphorePermit,
    /// Keeps the places of a disconnected caller alive while its work runs.
    _places: Arc<CallerPlaces>,
}

impl Drop for HeldPlace {
    fn drop(&mut self) {
        self.pool.running.lock().all.remove(&self.number);
    }
}

/// Tells a call to stop when its caller drops the future.
struct GivesUp(CallLimit);

impl Drop for GivesUp {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

/// Counts a call that waits for a place until this value is dropped.
struct WaitingCall<'a>(&'a AtomicUsize);

impl<'a> WaitingCall<'a> {
    fn begin_waiting(waiting: &'a AtomicUsize, most: usize) -> Result<Self> {
        let entered = Self(waiting);
        if waiting.fetch_add(1, Ordering::Relaxed) < most { Ok(entered) } else { Err(crowded_error(most)) }
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the error for a caller that has too many waiting calls.
pub fn crowded_error(waiting: usize) -> Error {
    let message =
        format!("{waiting} calls of this caller are waiting already; wait for their answers, then send it again.");
    Error::unavailable(message)
}

fn no_place(wait: Duration) -> Error {
    let seconds = wait.as_secs();
    let message = format!("The call found no place within {seconds} seconds and changed nothing; send it again later.");
    Error::unavailable(message)
}

fn late_error(deadline: Duration) -> Error {
    let seconds = deadline.as_secs();
    let message = format!(
        "The call took longer than {seconds} seconds and was given up; look whether it changed anything, then ask for less."
    );
    Error::unavailable(message)
}

/// Returns the error of a call that panicked.
fn broken_error() -> Error {
    Error::unavailable("The call broke off inside the server; report this, then try again.")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Runs the test on its own runtime. Does not wait for the runtime's threads, because calls hang in them.
    fn with_runtime(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(test);
        runtime.shutdown_background();
    }

    fn pool() -> Arc<WorkPool> {
        Arc::new(WorkPool::with_times(Duration::from_mins(1), Duration::from_mins(1)))
    }

    /// Starts calls that hang until the sender is dropped. Each call reports its start.
    fn hang(desk: &WorkDesk, count: usize) -> (Sender<()>, Receiver<bool>) {
        let (go, gate) = channel::<()>();
        let (gate, (tell, told)) = (Arc::new(Mutex::new(gate)), channel());
        for _ in 0..count {
            let (desk, gate, tell) = (desk.clone(), Arc::clone(&gate), tell.clone());
            tokio::spawn(async move {
                let work = move || {
                    tell.send(true).unwrap();
                    let _ = gate.lock().recv();
                };
                desk.run(CallLane::Work, work).await
            });
        }
        (go, told)
    }

    async fn settle(is_so: impl Fn() -> bool) {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn a_caller_over_its_share_waits_or_is_refused_and_others_are_as_they_were() {
        with_runtime(async {
            let pool = pool();
            let (greedy, other) = (pool.desk_for(CallerId::Proxy(1)), pool.desk_for(CallerId::Proxy(2)));
            let (_go, told) = hang(&greedy, PLACES_OF_A_CALLER + MAX_WAITING);
            let waiting = || pool.caller_places(CallerId::Proxy(1)).work.waiting.load(Ordering::Relaxed);
            settle(|| waiting() == MAX_WAITING).await;
            let refused = greedy.run(CallLane::Work, || ()).await.unwrap_err();
            assert_eq!((refused.reason(), refused.message()), ("E_UNAVAILABLE", crowded_error(MAX_WAITING).message()));
            settle(|| pool.running.lock().all.len() == PLACES_OF_A_CALLER).await;
            assert_eq!(other.run(CallLane::Work, || 7).await.unwrap(), 7);
            for lane in [CallLane::Prompt, CallLane::Vital] {
                assert_eq!(greedy.run(lane, || 7).await.unwrap(), 7);
            }
            let count = || std::iter::from_fn(|| told.recv_timeout(Duration::from_millis(1)).ok()).count();
            assert!(count() <= PLACES_OF_A_CALLER);
        });
    }

    #[test]
    fn a_call_ends_by_its_deadline_and_its_place_when_the_work_ends() {
        with_runtime(async {
            let pool = Arc::new(WorkPool::with_times(Duration::from_millis(30), Duration::from_mins(1)));
            let desk = pool.desk_for(CallerId::OwnClient);
            let (go, gate) = channel::<()>();
            let late = desk.run(CallLane::Work, move || gate.recv().is_ok()).await.unwrap_err();
            assert!(late.message().contains("given up"), "{late}");
            assert_eq!((pool.count_overdue(), pool.is_stuck()), (1, false), "one place of many");
            // Work that checks its limit ends by itself.
            let _ = desk.run(CallLane::Work, || while !nudge_core::patience::is_over() {}).await;
            settle(|| pool.running.lock().all.len() == 1).await;
            go.send(()).unwrap();
            settle(|| pool.running.lock().all.is_empty()).await;
        });
    }

    #[test]
    fn a_call_of_a_caller_that_has_gone_is_not_begun_and_running_work_is_told() {
        with_runtime(async {
            let pool = pool();
            let desk = pool.desk_for(CallerId::OwnClient);
            let (tell, told) = channel();
            let running = tokio::spawn({
                let desk = desk.clone();
                async move {
                    let work = move || {
                        tell.send(false).unwrap();
                        while !nudge_core::patience::is_over() {
                            std::thread::yield_now();
                        }
                        tell.send(true).unwrap();
                    };
                    desk.run(CallLane::Work, work).await
                }
            });
            settle(|| told.try_recv().is_ok()).await;
            running.abort();
            settle(|| told.try_recv().is_ok()).await;
            settle(|| pool.running.lock().all.is_empty()).await;

            let (go, _began) = hang(&desk, PLACES_OF_A_CALLER);
            settle(|| pool.running.lock().all.len() == PLACES_OF_A_CALLER).await;
            let begun = Arc::new(AtomicUsize::new(0));
            let waits = tokio::spawn({
                let (desk, begun) = (desk.clone(), Arc::clone(&begun));
                async move { desk.run(CallLane::Work, move || begun.fetch_add(1, Ordering::Relaxed)).await }
            });
            settle(|| pool.caller_places(CallerId::OwnClient).work.waiting.load(Ordering::Relaxed) == 1).await;
            waits.abort();
            drop(go);
            settle(|| pool.running.lock().all.is_empty()).await;
            assert_eq!(begun.load(Ordering::Relaxed), 0);
        });
    }

    #[test]
    fn a_kind_of_callers_with_no_place_that_will_be_free_is_stuck() {
        with_runtime(async {
            let pool = Arc::new(WorkPool::with_times(Duration::from_millis(30), Duration::from_mins(1)));
            let all = CallerKind::Process.places(CallLane::Work);
            let gates: Vec<_> = (0..all / PLACES_OF_A_CALLER)
                .map(|pid| hang(&pool.desk_for(CallerId::Process(u32::try_from(pid).unwrap())), PLACES_OF_A_CALLER))
                .collect();
            settle(|| pool.is_stuck()).await;
            assert_eq!(pool.count_overdue(), all);
            assert!(pool.desk_for(CallerId::Proxy(1)).run(CallLane::Work, || ()).await.is_ok());
            drop(gates);
            settle(|| !pool.is_stuck()).await;
        });
    }
}
