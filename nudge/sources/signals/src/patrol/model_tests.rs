//! Runs random sequences of hooks, answers, orders, looks, restarts and jumps of the clock. The deacon must follow
//! section 16 of the semantics, whose rules are about time that has really passed. So the model counts the passed time
//! separately from the clock. `PROPTEST_CASES=10000` runs more cases.

use std::collections::BTreeMap;
use std::fs;

use proptest::prelude::*;
use proptest::test_runner::Config as Cases;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use super::*;

const START: Millis = 1_772_706_900_000;
const SECOND: Millis = 1_000;
/// The watched agents with their intervals, then two agents that the deacon does not watch.
const AGENTS: [(&str, Millis); 5] = [
    ("polecat", 60 * SECOND),
    ("polecat-2", 60 * SECOND),
    ("slow", 150 * SECOND),
    ("mayor", 60 * SECOND),
    ("witness", 60 * SECOND),
];
const WATCHED: usize = 3;
const WITNESS: usize = 4;
const ORDERS: [SignalType; 3] = [SignalType::Abort, SignalType::PriorityChange, SignalType::SyncRequest];

#[derive(Debug, Clone)]
enum Step {
    /// An agent writes a hook with this text. The agent's last activity was `ago` seconds earlier.
    Works {
        agent: usize,
        text: usize,
        ago: Option<Millis>,
    },
    Rests {
        agent: usize,
    },
    /// The hook file holds only half a text.
    Spoil {
        agent: usize,
    },
    Remove {
        agent: usize,
    },
    Answer {
        agent: usize,
    },
    Order {
        agent: usize,
        order: usize,
    },
    Warn {
        agent: usize,
    },
    Pass {
        seconds: Millis,
    },
    /// The machine sleeps, or its clock is set forward or back.
    Jump {
        hours: Millis,
    },
    Restart,
}

#[derive(Debug, Clone, PartialEq)]
enum File {
    /// `last` is the time of the last activity: first in passed time, then by the clock.
    Active {
        text: String,
        last: Option<(Millis, Millis)>,
    },
    Idle,
    Spoilt,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Said {
    from: usize,
    kind: SignalType,
    /// The time by the clock.
    at: Millis,
}

/// The state of a watched agent. All times except `active` are in passed time.
#[derive(Debug, Clone)]
struct Watch {
    hook: String,
    answer: Option<Millis>,
    quiet: Millis,
    /// The time of the last activity by the clock, because signals have the clock's time. When the clock is set back,
    /// this time goes back too.
    active: Millis,
    asked: Option<Millis>,
    is_reported: bool,
}

impl Watch {
    fn new(hook: &str, answer: Option<Millis>, quiet: Millis, active: Millis) -> Self {
        Self { hook: hook.to_owned(), answer, quiet, active, asked: None, is_reported: false }
    }
}

#[derive(Debug, Clone)]
struct Plain {
    /// The clock is ahead of the passed time by this much.
    ahead: Millis,
    passed: Millis,
    hooks: BTreeMap<usize, File>,
    inboxes: BTreeMap<usize, Said>,
    watched: BTreeMap<usize, Watch>,
    reports: Vec<usize>,
}

impl Plain {
    fn now(&self) -> Millis {
        START + self.passed + self.ahead
    }

    fn send(&mut self, to: usize, from: usize, kind: SignalType) {
        let now = self.now();
        // A stored time more than a minute in the future is ignored.
        let old = self.inboxes.get(&to).filter(|old| old.at <= now + 60_000);
        let sent = old.map_or(now, |old| now.max(old.at + 1));
        self.inboxes.insert(to, Said { from, kind, at: sent });
    }

    fn works(&mut self, agent: usize, text: usize, ago: Option<Millis>) {
        let last = ago.map(|ago| self.now() - ago * SECOND);
        let last_activity = last.map(rfc3339::format_time);
        let text =
            json!({"status": "active", "last_activity": last_activity, "work_item": {"title": format!("Page {text}")}});
        let last = ago.map(|ago| self.passed - ago * SECOND).zip(last);
        self.hooks.insert(agent, File::Active { text: text.to_string(), last });
    }

    fn look(&mut self) {
        let now = self.now();
        // A signal with a time more than a minute in the future is ignored until the clock reaches that time.
        let inbox = self.inboxes.get(&WITNESS).copied().filter(|said| said.at <= now + 60_000);
        self.watched.retain(|agent, _| !matches!(self.hooks.get(agent), None | Some(File::Idle)));
        for (agent, file) in self.hooks.iter().filter(|(agent, _)| **agent < WATCHED) {
            let File::Active { text, last } = file else { continue };
            let answer = inbox.filter(|said| said.from == *agent).map(|said| said.at);
            let Some(watch) = self.watched.get_mut(agent) else {
                let (quiet, active) = last.unwrap_or((self.passed, now));
                self.watched.insert(*agent, Watch::new(text, answer, quiet, active));
                continue;
            };
            if watch.hook != *text || answer.is_some_and(|answer| watch.answer != Some(answer)) {
                let answer = answer.or(watch.answer);
                *watch = Watch::new(text, answer, self.passed, now);
            }
        }
        for agent in self.watched.keys().copied().collect::<Vec<_>>() {
            let Watch { quiet, active, asked, is_reported, .. } = self.watched[&agent].clone();
            let is_late = |since| self.passed - since >= AGENTS[agent].1;
            if asked.is_none() && is_late(quiet) {
                // A signal with a time more than a minute in the future does not count as an order.
                let waits = |said: &Said| ORDERS.contains(&said.kind) && said.at > active && said.at <= now + 60_000;
                if !self.inboxes.get(&agent).is_some_and(waits) {
                    self.send(agent, WITNESS, SignalType::HealthCheck);
                }
                self.watched.get_mut(&agent).unwrap().asked = Some(self.passed);
            } else if asked.is_some_and(is_late) && !is_reported {
                self.reports.push(agent);
                self.watched.get_mut(&agent).unwrap().is_reported = true;
            }
        }
    }
}

struct Semantics;

impl ReferenceStateMachine for Semantics {
    type State = Plain;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Plain> {
        let (hooks, inboxes, watched) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Just(Plain { ahead: 0, passed: 0, hooks, inboxes, watched, reports: Vec::new() }).boxed()
    }

    fn transitions(_: &Plain) -> BoxedStrategy<Step> {
        let agent = || 0..AGENTS.len();
        prop_oneof![
            4 => (agent(), 0..2_usize, prop::option::of(0..100_i64)).prop_map(|(agent, text, ago)| Step::Works { agent, text, ago }),
            1 => agent().prop_map(|agent| Step::Rests { agent }),
            1 => agent().prop_map(|agent| Step::Spoil { agent }),
            1 => agent().prop_map(|agent| Step::Remove { agent }),
            2 => agent().prop_map(|agent| Step::Answer { agent }),
            3 => (agent(), 0..ORDERS.len()).prop_map(|(agent, order)| Step::Order { agent, order }),
            1 => agent().prop_map(|agent| Step::Warn { agent }),
            12 => (1..40_i64).prop_map(|seconds| Step::Pass { seconds }),
            1 => (-9..10_i64).prop_map(|hours| Step::Jump { hours }),
            1 => Just(Step::Restart),
        ]
        .boxed()
    }

    fn apply(mut plain: Plain, step: &Step) -> Plain {
        match *step {
            Step::Works { agent, text, ago } => plain.works(agent, text, ago),
            Step::Rests { agent } => drop(plain.hooks.insert(agent, File::Idle)),
            Step::Spoil { agent } => drop(plain.hooks.insert(agent, File::Spoilt)),
            Step::Remove { agent } => drop(plain.hooks.remove(&agent)),
            Step::Answer { agent } => plain.send(WITNESS, agent, SignalType::NudgeResponse),
            Step::Order { agent, order } => plain.send(agent, WATCHED, ORDERS[order]),
            Step::Warn { agent } => plain.send(agent, WATCHED, SignalType::StallWarning),
            Step::Pass { seconds } => plain.passed += seconds * SECOND,
            Step::Jump { hours } => {
                plain.ahead += hours * 3_600 * SECOND;
                plain.watched.values_mut().for_each(|watch| watch.active += (hours * 3_600 * SECOND).min(0));
            }
            Step::Restart => {}
        }
        // Each look is a millisecond away from other steps, so that no two events have the same time.
        plain.passed += 1;
        plain.look();
        plain.passed += 1;
        plain
    }
}

struct Run {
    folder: tempfile::TempDir,
    patrol: Option<DeaconPatrol>,
}

fn id(agent: usize) -> AgentId {
    AgentId::parse(AGENTS[agent].0).unwrap()
}

impl Run {
    fn state(&self) -> StateDir {
        StateDir::find(self.folder.path().to_str(), None).unwrap()
    }

    fn open(&self) -> Result<DeaconPatrol> {
        DeaconPatrol::open(
            self.state(),
            id(WITNESS),
            id(WATCHED),
            PatrolIntervals::new(None, &["slow=150s".into()]).unwrap(),
        )
    }

    fn hook(&self, agent: usize) -> PathBuf {
        self.folder.path().join(format!("hooks/{}.json", AGENTS[agent].0))
    }

    /// Sends at the time of the step, which was two milliseconds earlier than the plain model's time now.
    fn send(&self, to: usize, from: usize, kind: SignalType, plain: &Plain) {
        let draft = SignalDraft { from: id(from), kind, message: "x".into(), requires_response: false };
        self.state().inbox(&id(to)).send(draft, plain.now() - 2).unwrap();
    }
}

impl StateMachineTest for Run {
    type SystemUnderTest = Self;
    type Reference = Semantics;

    fn init_test(_: &Plain) -> Self {
        // Uses a file system in memory if there is one, because a flush to a disk is slow.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        fs::create_dir(folder.path().join("hooks")).unwrap();
        let mut run = Self { folder, patrol: None };
        run.patrol = Some(run.open().unwrap());
        run.patrol.as_mut().unwrap().look_once(START, &|_, _| {});
        run
    }

    fn apply(mut run: Self, plain: &Plain, step: Step) -> Self {
        match step {
            Step::Works { agent, .. } | Step::Rests { agent } | Step::Spoil { agent } => {
                let text = match &plain.hooks[&agent] {
                    File::Active { text, .. } => text,
                    File::Idle => r#"{"status": "pending"}"#,
                    File::Spoilt => "{\"status\": \"act",
                };
                fs::write(run.hook(agent), text).unwrap();
            }
            Step::Remove { agent } => drop(fs::remove_file(run.hook(agent))),
            Step::Answer { agent } => run.send(WITNESS, agent, SignalType::NudgeResponse, plain),
            Step::Order { agent, order } => run.send(agent, WATCHED, ORDERS[order], plain),
            Step::Warn { agent } => run.send(agent, WATCHED, SignalType::StallWarning, plain),
            Step::Pass { .. } | Step::Jump { .. } => {}
            Step::Restart => {
                assert!(run.open().is_err_and(|error| error.reason() == "E_UNAVAILABLE"), "there is one already");
                run.patrol = None;
                run.patrol = Some(run.open().unwrap());
            }
        }
        let troubles = std::sync::Mutex::new(Vec::new());
        let say = |line: &str, event: &Value| {
            if event["event"] == "trouble" {
                troubles.lock().unwrap().push(line.to_owned());
            }
        };
        run.patrol.as_mut().unwrap().look_once(plain.now() - 1, &say);
        assert_eq!(troubles.into_inner().unwrap(), [""; 0]);
        run
    }

    fn check_invariants(run: &Self, plain: &Plain) {
        let state = run.state();
        for (agent, (name, _)) in AGENTS.iter().enumerate() {
            let said =
                state.inbox(&id(agent)).read(Millis::MAX).unwrap().map(|said| said.expect("no half of a signal"));
            let told =
                said.map(|said| (said.from.to_string(), said.kind, stamp::parse_stamp(&said.timestamp).unwrap()));
            let wanted = plain.inboxes.get(&agent).map(|said| (AGENTS[said.from].0.to_owned(), said.kind, said.at));
            assert_eq!(told, wanted, "{name}");
        }
        let asked = read_questions(&state).unwrap();
        let asked: Vec<_> = asked.iter().map(|(agent, _, is_reported)| (agent.as_str(), *is_reported)).collect();
        let wanted = plain.watched.iter().filter(|(_, watch)| watch.asked.is_some());
        assert_eq!(asked, wanted.map(|(agent, watch)| (AGENTS[*agent].0, watch.is_reported)).collect::<Vec<_>>());
        let mails = fs::read_dir(run.folder.path().join("mail/mayor"));
        let mails: Vec<_> = mails.into_iter().flatten().map(|mail| mail.unwrap().path()).collect();
        // The names of the mails contain the clock's time, which jumps. So the test compares the subjects.
        let read = |mail: &PathBuf| serde_json::from_str::<Value>(&fs::read_to_string(mail).unwrap()).unwrap();
        let mut subjects: Vec<_> =
            mails.iter().map(|mail| read(mail)["subject"].as_str().unwrap().to_owned()).collect();
        let mut wanted: Vec<_> =
            plain.reports.iter().map(|agent| format!("{} does not answer", AGENTS[*agent].0)).collect();
        subjects.sort();
        wanted.sort();
        assert_eq!(subjects, wanted);
    }
}

prop_state_machine! {
    #![proptest_config(Cases { cases: 500, failure_persistence: None, ..Cases::default() })]
    #[test]
    fn agrees_with_the_model(sequential 50 => Run);
}
