//! Kills the PRIMARY of thirty-two clients every two seconds. No acknowledged change may be lost, and all answers must
//! fit a single store.
//!
//! The long run also requires a minimal rate of calls and a maximal time to fail over: `NUDGE_SURVIVAL_SECONDS=1800
//! cargo test -p nudge-cli --test survival -- --nocapture`. `NUDGE_SEED` repeats the decisions of a run, but not its
//! timing.
#![cfg(unix)]

#[path = "kit/client.rs"]
mod client;
#[path = "kit/history.rs"]
mod history;
mod kit;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use client::{Client, How, KEYS, Notes, World};
use history::{Event, Kind, Nanos, Outcome};
use kit::agent::{Agent, locked};
use kit::rng::Rng;
use kit::session::{Session, assert_nothing_left, holders, listening};
use kit::{PATIENCE, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};

const AGENTS: usize = 5;
const STDIO_CLIENTS: u16 = 16;
const HTTP_CLIENTS: u16 = 10;
const COMMAND_LINES: u16 = 6;
const PERIOD: Duration = Duration::from_secs(2);
/// If a PRIMARY is suspended for longer than this, its clients' calls may fail.
const LONG_STOP: Duration = Duration::from_secs(5);
const MIN_CALLS_A_SECOND: f64 = 500.0;
const MAX_FAIL_OVER: Duration = Duration::from_millis(500);
/// Large limits: after a change with an unknown outcome a client takes a new key and leaves the old one in the store.
const ROOM: [(&str, &str); 2] = [("NUDGE_MAX_HINTS", "1000000"), ("NUDGE_MAX_HINTS_PER_COMPONENT", "100000")];

/// Promise (session): A session loses no acknowledged call, runs none twice and answers none out of order while its
/// PRIMARY is killed every two seconds.
#[test]
fn nothing_acknowledged_is_lost_while_one_serve_lives() {
    let seconds = std::env::var("NUDGE_SURVIVAL_SECONDS").ok().map(|seconds| seconds.parse().unwrap());
    let seed = Rng::seed("survival");
    let mut session = Session::with(&ROOM, AGENTS - 1);
    let first = session.status();
    let world = World {
        runtime: session.runtime.clone(),
        slots: session.agents.iter().map(|agent| Mutex::new(Arc::clone(agent))).collect(),
        begun: Instant::now(),
        over: AtomicBool::new(false),
        stops: Mutex::default(),
        past: Mutex::default(),
        seed,
    };
    let duration = Duration::from_secs(seconds.unwrap_or(20));
    let (mut notes, killed) = thread::scope(|scope| {
        // Ends the other threads when an assertion of this scope fails. Otherwise the scope would wait for them
        // forever.
        let _over = Over(&world.over);
        let (world, session) = (&world, &session);
        let mut clients = Vec::new();
        for number in 0..STDIO_CLIENTS + HTTP_CLIENTS + COMMAND_LINES {
            let how = match number {
                0..STDIO_CLIENTS => How::Stdio(usize::from(number) % AGENTS),
                number if number < STDIO_CLIENTS + HTTP_CLIENTS => How::Http(session.raw()),
                _ => How::CommandLine,
            };
            clients.push(scope.spawn(move || Client::new(world, number, how).run()));
        }
        let watcher = scope.spawn(|| watch(world, session, &first["session_id"]));
        let killed = Disturbance { world, session, rng: Rng::new(seed), long: seconds.is_some() }.run(duration);
        world.over.store(true, Ordering::Relaxed);
        let notes: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        watcher.join().unwrap();
        (notes, killed)
    });
    let elapsed = world.begun.elapsed();
    notes.push(read_at_the_end(&world, &session));
    judge(&world, notes, &killed, elapsed, seconds.is_some());

    session.agents = world.slots.iter().map(|slot| Arc::clone(&locked(slot))).collect();
    let file = session.primary(|_| true);
    let members = |status: Value| (status["members"] == AGENTS && status["pid"] == file.pid).then_some(());
    wait_for("all members to be known", PATIENCE, || members(session.status()));
    session.end();
    session.agents.clear();
    session.fill(0);
    let status = session.status();
    assert_eq!(status["hints"], 0, "a new session is empty: {status}");
    assert_ne!(status["session_id"], first["session_id"]);
    session.agents[0].close();
    assert!(session.agents[0].ended(PATIENCE).success());
    assert_nothing_left(&session.runtime);
}

struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Kills, ends or suspends the PRIMARY again and again.
struct Disturbance<'a> {
    world: &'a World,
    session: &'a Session,
    rng: Rng,
    long: bool,
}

/// The times at which the test killed a PRIMARY.
type Killed = Vec<Nanos>;

impl Disturbance<'_> {
    fn run(mut self, duration: Duration) -> Killed {
        let mut killed = Killed::new();
        let mut next = PERIOD / 2;
        // The last kill comes half a period before the end, so that the test sees its effects.
        while next + PERIOD / 2 < duration && !self.world.is_over() {
            thread::sleep(next.saturating_sub(self.world.begun.elapsed()));
            self.once(&mut killed);
            next = (next + PERIOD).max(self.world.begun.elapsed());
        }
        thread::sleep(duration.saturating_sub(self.world.begun.elapsed()).min(PERIOD));
        killed
    }

    fn once(&mut self, killed: &mut Killed) {
        let (slot, agent) = self.primary();
        let before = (self.rng.below(3) == 0).then(|| self.another());
        let stopped = self.rng.below(5) == 0;
        if stopped {
            self.stop_for_a_while(&agent);
        }
        // Resumes the PRIMARY in half of these cases: not every suspension ends with a kill.
        if stopped && before.is_none() && self.rng.below(2) == 0 {
            agent.resume();
            let file = self.session.primary(|_| true);
            assert_eq!(file.pid, agent.pid, "somebody took the place of a PRIMARY that was only stopped");
            return;
        }
        agent.doomed.store(true, Ordering::Relaxed);
        match self.rng.below(10) {
            0 | 1 if !stopped => {
                agent.close();
                assert!(agent.ended(PATIENCE).success(), "{}", agent.stderr());
            }
            2 if !stopped => {
                agent.signal(Signal::TERM);
                assert!(agent.ended(PATIENCE).success(), "{}", agent.stderr());
            }
            _ => {
                agent.signal(Signal::KILL);
                // Takes the time after the signal, because the dying PRIMARY may still answer before it.
                killed.push(self.world.now());
                agent.ended(PATIENCE);
            }
        }
        // Without a replacement so far, starts the new agent now: no PRIMARY may exist, and the new agent may become
        // PRIMARY.
        let after = before.unwrap_or_else(|| {
            if self.rng.below(2) == 0 {
                thread::sleep(self.rng.millis(1, 300));
            }
            self.another()
        });
        *locked(&self.world.slots[slot]) = after;
    }

    /// Returns the agent that `server.pid` names, and its slot. The agent must belong to the test.
    fn primary(&self) -> (usize, Arc<Agent>) {
        let slots = &self.world.slots;
        let mut named = 0;
        let found = || {
            named = self.session.dir().read_server_file()?.pid;
            let index = slots.iter().position(|slot| locked(slot).pid == named)?;
            Some((index, Arc::clone(&locked(&slots[index]))))
        };
        wait_for("server.pid to name an agent that lives", PATIENCE, found)
    }

    fn another(&self) -> Arc<Agent> {
        let agent = Arc::new(Agent::spawn(self.session.command()));
        // Forgets this process id as a former PRIMARY: the system may reuse the id of an ended agent.
        locked(&self.world.past).remove(&u64::from(agent.pid));
        agent
    }

    fn stop_for_a_while(&mut self, agent: &Agent) {
        let patience = if self.long && self.rng.below(10) == 0 {
            self.rng.millis(10_500, 12_000)
        } else {
            self.rng.millis(50, 3_000)
        };
        // Notes the suspension as endless, until its end is known.
        locked(&self.world.stops).push((self.world.now(), Nanos::MAX));
        agent.stop();
        thread::sleep(patience);
        locked(&self.world.stops).last_mut().unwrap().1 = self.world.now();
    }
}

/// Asserts until the end of the run that at most one process listens, at most one holds the lock, and no former PRIMARY
/// answers again.
fn watch(world: &World, session: &Session, id: &Value) {
    // Ends the other threads when an assertion of this function fails.
    let _over = Over(&world.over);
    let mut raw = session.raw();
    raw.patience = Duration::from_millis(200);
    let mut current = 0;
    let lock = session.runtime.join("primary.lock");
    while !world.is_over() {
        let pids: Vec<_> = world.slots.iter().map(|slot| locked(slot).pid).collect();
        let many = |who: Option<Vec<u32>>| who.filter(|who| who.len() > 1);
        // Checks a second time before it fails: the first check looks at the processes one after the other, and the
        // PRIMARY may change meanwhile.
        if many(listening(&pids)).is_some() || many(holders(&pids, &lock)).is_some() {
            let again = (many(listening(&pids)), many(holders(&pids, &lock)));
            assert_eq!(again, (None, None), "two listen, or hold the lock");
        }
        if let Ok(answer) = raw.attempt("nudge.status", &json!({}), None) {
            let status = &answer["result"];
            assert_eq!((&status["role"], &status["session_id"]), (&json!("PRIMARY"), id), "{answer}");
            let pid = status["pid"].as_u64().unwrap();
            let mut past = locked(&world.past);
            if current != pid {
                past.insert(std::mem::replace(&mut current, pid));
            }
            assert!(!past.contains(&pid), "{pid} answers again");
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Reads all keys after the last write: through each agent, over plain HTTP and by the command line.
fn read_at_the_end(world: &World, session: &Session) -> Notes {
    let hows = (0..AGENTS).map(How::Stdio).chain([How::Http(session.raw()), How::CommandLine]);
    let mut all = Notes::default();
    for (index, how) in hows.enumerate() {
        let mut client = Client::new(world, 900 + u16::try_from(index).unwrap(), how);
        client.read_all();
        let missing = usize::from(KEYS) - client.notes.events.len();
        assert_eq!((missing, &client.notes.failures), (0, &Vec::new()), "each key is there");
        all.events.extend(client.notes.events);
    }
    all
}

fn judge(world: &World, notes: Vec<Notes>, killed: &[Nanos], elapsed: Duration, long: bool) {
    let mut events: Vec<Event> = Vec::new();
    let (mut wrong, mut failures, mut calls) = (Vec::new(), Vec::new(), Vec::new());
    for notes in notes {
        events.extend(notes.events);
        wrong.extend(notes.wrong);
        failures.extend(notes.failures);
        calls.extend(notes.calls);
    }
    let stops = locked(&world.stops);
    let excused = |begin: Nanos, end: Nanos| {
        let long = Nanos::try_from(LONG_STOP.as_nanos()).unwrap();
        let stops = stops.iter().filter(|(from, to)| to - from > long);
        // Also excuses a call up to `LONG_STOP` after the suspension: after an unanswered call, the next try has a
        // shorter time limit.
        stops.into_iter().any(|(from, to)| begin <= to + long && end >= *from)
    };
    failures.retain(|(begin, end, _)| !excused(*begin, *end));
    let count = |kind: Kind, outcome: fn(&Outcome) -> bool| {
        events.iter().filter(|event| event.kind == kind && outcome(&event.outcome)).count()
    };
    let done = |outcome: &Outcome| matches!(outcome, Outcome::Done(_));
    let unsure = |outcome: &Outcome| matches!(outcome, Outcome::Unsure);
    let rate = f64::from(u32::try_from(calls.len()).unwrap()) / elapsed.as_secs_f64();
    let mut times = fail_over(&calls, killed);
    let measured = times.len();
    times.retain(|(killed, time)| !is_stopped_first(&stops, *killed, *time));
    let stopped_first = measured - times.len();
    let slow: Vec<_> = times.iter().filter(|(_, time)| *time > MAX_FAIL_OVER).collect();
    if !slow.is_empty() {
        println!("slow to fail over: {slow:?}; stops: {stops:?}");
    }
    let mut times: Vec<_> = times.into_iter().map(|(_, time)| time).collect();
    times.sort_unstable();
    let mut waited = in_flight(&calls, killed);
    waited.sort_unstable();
    let ms = |time: Option<&Duration>| time.map_or(0.0, |time| time.as_secs_f64() * 1e3);
    println!(
        "survival: {:.0} s, {} kills, {} calls ({rate:.0}/s), {} sets and {} bumps acknowledged, {} unsure; \
         fail-over median {:.0} ms, p99 {:.0} ms, max {:.0} ms ({stopped_first} whose next PRIMARY was stopped first \
         left out); {} calls in flight at a kill, p99 {:.0} ms after it; \
         longest call {:.0} ms; seed {}",
        elapsed.as_secs_f64(),
        killed.len(),
        calls.len(),
        count(Kind::Set, done),
        count(Kind::Bump, done),
        count(Kind::Set, unsure) + count(Kind::Bump, unsure),
        ms(at(&times, 50)),
        ms(at(&times, 99)),
        ms(times.last()),
        waited.len(),
        ms(at(&waited, 99)),
        ms(calls.iter().map(|(begin, end)| Duration::from_nanos(end - begin)).max().as_ref()),
        world.seed,
    );
    if let Err(violation) = history::check(&events) {
        panic!("seed {}: {}", world.seed, violation.tell(&events));
    }
    assert!(wrong.is_empty(), "seed {}: {} contradictions: {:#?}", world.seed, wrong.len(), first(&wrong));
    assert!(failures.is_empty(), "seed {}: {} calls failed: {:#?}", world.seed, failures.len(), first(&failures));
    assert!(count(Kind::Set, done) > 0 && count(Kind::Bump, done) > 0 && killed.len() > 1);
    if long {
        assert!(rate >= MIN_CALLS_A_SECOND, "{rate:.0} calls a second");
        assert!(at(&times, 99).is_some_and(|time| *time <= MAX_FAIL_OVER), "fail-over: {times:?}");
    }
}

fn first<T>(all: &[T]) -> &[T] {
    &all[..all.len().min(10)]
}

/// Returns the `part`-th percentile of sorted times; `None` if there are none.
fn at(times: &[Duration], part: usize) -> Option<&Duration> {
    times.get((times.len() * part / 100).min(times.len().saturating_sub(1)))
}

/// Returns the time from the kill to the answer, for each call that was running at a kill.
fn in_flight(calls: &[(Nanos, Nanos)], killed: &[Nanos]) -> Vec<Duration> {
    let waited = |killed: &Nanos| {
        let killed = *killed;
        let spans = calls.iter().filter(move |(begin, end)| *begin <= killed && *end > killed);
        spans.map(move |(_, end)| Duration::from_nanos(end - killed))
    };
    killed.iter().flat_map(waited).collect()
}

/// Returns true if the test suspended the next PRIMARY before it could answer. The measured time then says nothing
/// about the fail-over. Only suspensions within `MAX_FAIL_OVER` after the kill count.
fn is_stopped_first(stops: &[(Nanos, Nanos)], killed: Nanos, time: Duration) -> bool {
    let within = killed..killed + Nanos::try_from(time.min(MAX_FAIL_OVER).as_nanos()).unwrap();
    stops.iter().any(|(from, _)| within.contains(from))
}

/// Returns, for each kill, the time until the first answer to a call that began after the kill.
fn fail_over(calls: &[(Nanos, Nanos)], killed: &[Nanos]) -> Vec<(Nanos, Duration)> {
    let mut calls = calls.to_vec();
    calls.sort_unstable();
    // Replaces each end by the earliest end of this call and all calls that began later.
    let mut earliest = Nanos::MAX;
    for (_, end) in calls.iter_mut().rev() {
        earliest = earliest.min(*end);
        *end = earliest;
    }
    let answered = |killed: &Nanos| {
        let (_, end) = calls.get(calls.partition_point(|(begin, _)| begin <= killed))?;
        Some((*killed, Duration::from_nanos(end - killed)))
    };
    killed.iter().filter_map(answered).collect()
}

#[test]
fn the_time_to_fail_over_is_that_of_the_first_call_after_it() {
    let calls = [(0, 50), (5, 12), (11, 40), (20, 30), (60, 70)];
    let times = fail_over(&calls, &[10, 40, 65]);
    assert_eq!(times, [(10, 20), (40, 30)].map(|(killed, time)| (killed, Duration::from_nanos(time))));
}

#[test]
fn a_stop_excuses_a_slow_fail_over_only_if_it_came_soon_after_the_death() {
    let (ms, second) = (1_000_000, 1_000_000_000);
    let late = Duration::from_secs(3);
    assert!(is_stopped_first(&[(5, 9 * ms), (20 * ms, 3 * second)], 10 * ms, late));
    assert!(!is_stopped_first(&[(5, 9 * ms)], 10 * ms, late), "that one was stopped before it died");
    assert!(!is_stopped_first(&[(second, 3 * second)], 10 * ms, late), "by then it was too slow already");
    assert!(!is_stopped_first(&[(40 * ms, second)], 10 * ms, Duration::from_millis(18)), "it had answered");
}

#[test]
fn calls_in_flight_at_a_death_wait_from_then_on() {
    let calls = [(0, 50), (5, 10), (11, 40), (20, 30), (60, 70)];
    let mut waited = in_flight(&calls, &[10, 25]);
    waited.sort_unstable();
    assert_eq!(waited, [5, 15, 25, 40].map(Duration::from_nanos));
}
