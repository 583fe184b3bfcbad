use std::fs;
use std::sync::Mutex;

use super::*;
use crate::inbox::SignalInbox;

const SECOND: Millis = 1000;
/// The time 2026-03-05T10:35:00Z.
const START: Millis = 1_772_706_900_000;

/// A state directory with a running deacon and its output.
struct Town {
    folder: tempfile::TempDir,
    patrol: Option<DeaconPatrol>,
    said: Mutex<Vec<String>>,
    now: Millis,
}

impl Town {
    fn new() -> Self {
        let mut town = Self { folder: tempfile::tempdir().unwrap(), patrol: None, said: Mutex::default(), now: START };
        town.restart();
        town
    }

    fn state(&self) -> StateDir {
        StateDir::find(self.folder.path().to_str(), None).unwrap()
    }

    fn open(&self) -> Result<DeaconPatrol> {
        let [own, mayor] = ["witness", "mayor"].map(|name| AgentId::parse(name).unwrap());
        DeaconPatrol::open(self.state(), own, mayor, PatrolIntervals::new(None, &["slow=5m".into()]).unwrap())
    }

    /// Ends the deacon and starts it again, as a new process would.
    fn restart(&mut self) {
        self.patrol = None;
        self.patrol = Some(self.open().unwrap());
    }

    /// Writes the hook of an agent with the current time, as a script would.
    fn works(&self, agent: &str, status: &str) {
        let hooks = self.folder.path().join("hooks");
        fs::create_dir_all(&hooks).unwrap();
        let last_activity = rfc3339::format_time(self.now);
        let hook = json!({"agent_id": agent, "status": status, "last_activity": last_activity,
            "work_item": {"bead_id": "gt-1", "title": "Add a page"}});
        fs::write(hooks.join(format!("{agent}.json")), hook.to_string()).unwrap();
    }

    /// Lets time pass, with one look every second. Returns the output; an error appears as `trouble`.
    fn pass(&mut self, seconds: Millis) -> Vec<String> {
        for _ in 0..seconds {
            self.now += SECOND;
            self.look();
        }
        std::mem::take(&mut self.said.lock().unwrap())
    }

    fn look(&mut self) {
        let said = &self.said;
        let say = |_: &str, event: &Value| {
            let word = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            said.lock().unwrap().push(format!("{} {}", word("event"), word("agent")).trim().to_owned());
        };
        self.patrol.as_mut().unwrap().look_once(self.now, &say);
    }

    fn signal(&self, agent: &str) -> Option<Signal> {
        self.state().inbox(&AgentId::parse(agent).unwrap()).read(self.now).unwrap().and_then(Result::ok)
    }

    fn send(&self, to: &str, from: &str, kind: SignalType) {
        let [to, from] = [to, from].map(|name| AgentId::parse(name).unwrap());
        let draft = SignalDraft { from, kind, message: kind.usual_message().into(), requires_response: false };
        let state = self.state();
        let inbox: SignalInbox<'_> = state.inbox(&to);
        inbox.send(draft, self.now).unwrap();
    }

    fn mails(&self) -> Vec<Value> {
        let Ok(entries) = fs::read_dir(self.folder.path().join("mail/mayor")) else { return Vec::new() };
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()).collect()
    }
}

#[test]
fn a_dead_agent_is_asked_then_reported_exactly_once() {
    let mut town = Town::new();
    town.works("polecat", "active");
    assert!(town.pass(59).is_empty());
    assert_eq!(town.pass(2), ["asked polecat"]);
    let asked = town.signal("polecat").unwrap();
    assert_eq!((asked.kind, asked.requires_response, asked.from.as_str()), (SignalType::HealthCheck, true, "witness"));
    assert_eq!(asked.message, "You have hooked work (gt-1 Add a page). Are you working on it?");
    assert_eq!(town.pass(600), ["escalated polecat"]);
    let mails = town.mails();
    assert_eq!(mails.len(), 1);
    assert_eq!(
        (&mails[0]["type"], &mails[0]["to"], &mails[0]["read"]),
        (&json!("health_escalation"), &json!("mayor"), &json!(false))
    );
}

#[test]
fn a_healthy_agent_answers_and_a_slow_one_has_more_time() {
    let mut town = Town::new();
    town.works("polecat", "active");
    town.works("slow", "active");
    town.works("idle", "pending");
    town.works("mayor", "active");
    town.works("witness", "active");
    let mut told = Vec::new();
    for second in 1..=590 {
        let now = town.pass(1);
        if now.contains(&"asked polecat".to_owned()) {
            town.send("witness", "polecat", SignalType::NudgeResponse);
        }
        // A long command keeps this agent busy. The agent updates its hook shortly before its interval of silence ends.
        if second == 580 {
            town.works("slow", "active");
        }
        told.extend(now);
    }
    let count = |what: &str| told.iter().filter(|said| *said == what).count();
    // The deacon asks this agent every 60 seconds, and the agent answers a second later.
    assert_eq!((count("asked polecat"), count("answered polecat")), (9, 9));
    assert_eq!((count("asked slow"), count("active slow")), (1, 1));
    assert_eq!((told.len(), town.mails().len()), (20, 0), "{told:?}");
}

#[test]
fn two_that_share_the_senders_inbox_are_both_alive() {
    let mut town = Town::new();
    town.works("alpha", "active");
    town.works("bravo", "active");
    assert_eq!(town.pass(60), ["asked alpha", "asked bravo"]);
    town.now += SECOND;
    // Both agents follow the upstream specification: they update their hooks, and answer into the sender's one file.
    for agent in ["alpha", "bravo"] {
        town.works(agent, "active");
        town.send("witness", agent, SignalType::NudgeResponse);
    }
    // By the upstream specification, only the agent whose answer is in the file has answered.
    assert_eq!(town.signal("witness").unwrap().from.as_str(), "bravo", "alpha's answer is lost");
    town.look();
    assert_eq!(town.pass(0), ["active alpha", "answered bravo"]);
    town.pass(58);
    assert!(town.mails().is_empty(), "nobody is reported");
}

#[test]
fn an_agent_that_comes_back_and_dies_again_is_reported_again() {
    let mut town = Town::new();
    town.works("polecat", "active");
    town.pass(121);
    town.works("polecat", "active");
    assert_eq!(town.pass(1), ["active polecat"]);
    assert_eq!(town.pass(121), ["asked polecat", "escalated polecat"]);
    assert_eq!(town.mails().len(), 2);
    town.works("polecat", "completed");
    assert_eq!(town.pass(1), ["idle polecat"]);
    assert!(town.pass(600).is_empty());
}

/// Promise (sources): The deacon reports a silent agent exactly once, over restarts and jumps of the clock, and never
/// a living one.
#[test]
fn a_restart_forgets_no_question_and_repeats_no_mail() {
    let mut town = Town::new();
    town.works("polecat", "active");
    assert_eq!(town.pass(60), ["asked polecat"]);
    town.restart();
    assert_eq!(town.pass(60), ["escalated polecat"], "within the time of the first deacon");
    town.restart();
    assert!(town.pass(600).is_empty());
    assert_eq!(town.mails().len(), 1);
    // The state file is damaged, so the new deacon starts with an empty state.
    fs::write(town.folder.path().join("deacon/known.json"), "{").unwrap();
    town.restart();
    assert_eq!(town.pass(1), ["asked polecat"]);
}

#[test]
fn one_deacon_for_a_state_directory() {
    let mut town = Town::new();
    let refused = town.open().err().unwrap();
    assert!(refused.message().contains("runs for"), "{refused}");
    town.patrol = None;
    town.open().unwrap();
}

#[test]
fn a_clock_that_jumps_makes_nobody_late() {
    let mut town = Town::new();
    town.works("polecat", "active");
    assert_eq!(town.pass(60), ["asked polecat"]);
    for jump in [86_400, -172_800, 600] {
        town.now += jump * SECOND;
        assert_eq!(town.pass(10), Vec::<String>::new(), "{jump}");
    }
    // Before this, 27 seconds of the minute have passed; the look after each jump does not count.
    let told = town.pass(33);
    assert_eq!(told, ["escalated polecat"]);
}

#[test]
fn an_order_that_was_not_seen_is_not_replaced_by_a_question() {
    let mut town = Town::new();
    town.works("polecat", "active");
    town.pass(30);
    town.send("polecat", "mayor", SignalType::Abort);
    assert_eq!(town.pass(30), ["waits polecat"]);
    assert_eq!(town.signal("polecat").unwrap().kind, SignalType::Abort);
    assert_eq!(town.pass(60), ["escalated polecat"]);
}

#[test]
fn trouble_is_told_once_and_stops_nobody() {
    let mut town = Town::new();
    town.works("polecat", "active");
    // A file stands where the agent's folder is expected.
    let nudge = town.folder.path().join("nudge");
    fs::create_dir_all(&nudge).unwrap();
    fs::write(nudge.join("polecat"), "").unwrap();
    town.works("other", "active");
    assert_eq!(town.pass(60), ["asked other", "trouble"]);
    town.send("witness", "other", SignalType::NudgeResponse);
    assert_eq!(town.pass(59), ["answered other"]);
    fs::remove_file(nudge.join("polecat")).unwrap();
    assert_eq!(town.pass(2), ["asked polecat", "asked other"]);
}

#[test]
fn intervals() {
    let intervals = PatrolIntervals::new(Some("90s"), &["a=5m".into(), "b=1h 30m".into()]).unwrap();
    let interval_of = |name: &str| intervals.find_interval(&AgentId::parse(name).unwrap());
    assert_eq!(
        (interval_of("x"), interval_of("a"), interval_of("b"), intervals.find_shortest()),
        (90_000, 300_000, 5_400_000, 90_000)
    );
    for (usual, own) in [
        ("0s", None),
        ("soon", None),
        ("25h", None),
        ("60", None),
        ("-1s", None),
        ("1m", Some("a")),
        ("1m", Some("../x=1m")),
        ("1m", Some("a=x")),
    ] {
        let own: Vec<_> = own.into_iter().map(str::to_owned).collect();
        assert!(PatrolIntervals::new(Some(usual), &own).is_err(), "{usual} {own:?}");
    }
}

/// The jump does not change the signal's time, but the order still counts as later than the last activity.
#[test]
fn an_order_waits_on_when_the_machine_has_slept() {
    let mut town = Town::new();
    town.works("polecat", "active");
    town.pass(10);
    town.send("polecat", "mayor", SignalType::Abort);
    town.pass(10);
    town.now += 3_600 * SECOND;
    assert_eq!(town.pass(60), ["waits polecat"]);
    assert_eq!(town.signal("polecat").unwrap().kind, SignalType::Abort);
    // An order from before the agent's last activity does not count.
    town.works("polecat", "active");
    assert_eq!(town.pass(90), ["active polecat", "asked polecat"]);
}

/// A checkout, or a clock that was ahead, can leave a signal with a time in the future.
#[test]
fn an_order_that_is_dated_ahead_holds_no_question_up() {
    let mut town = Town::new();
    town.works("polecat", "active");
    town.send("polecat", "mayor", SignalType::Abort);
    let path = town.folder.path().join("nudge/polecat/latest.json");
    let ahead = fs::read_to_string(&path).unwrap().replace("2026-", "2126-");
    fs::write(&path, ahead).unwrap();
    assert_eq!(town.pass(60), ["asked polecat"]);
    assert_eq!(town.signal("polecat").unwrap().kind, SignalType::HealthCheck);
}

#[test]
fn a_time_ahead_that_an_earlier_deacon_kept_makes_no_agent_wait() {
    let mut town = Town::new();
    let day = 86_400 * SECOND;
    town.works("polecat", "active");
    town.look();
    for due in ["asked polecat", "escalated polecat"] {
        // The clock was a day ahead, and is corrected while the deacon is stopped.
        town.patrol = None;
        town.now -= day;
        town.restart();
        assert_eq!(town.pass(61), [due]);
    }
}

#[test]
fn what_is_kept_can_be_any_number() {
    for time in [Millis::MIN, Millis::MAX] {
        let mut town = Town::new();
        town.works("polecat", "active");
        town.pass(61);
        town.patrol = None;
        let path = town.folder.path().join("deacon/known.json");
        let mut known: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let watched = &mut known["agents"]["polecat"];
        watched["question"]["asked_at"] = json!(time);
        (watched["quiet_since"], watched["active_at"]) = (json!(time), json!(time));
        known["last_mail"] = json!(time);
        fs::write(&path, known.to_string()).unwrap();
        town.restart();
        assert_eq!(town.pass(61), ["escalated polecat"], "{time}");
        let sent_at = stamp::parse_stamp(town.mails()[0]["timestamp"].as_str().unwrap());
        assert!(sent_at.is_some_and(|time| time <= town.now), "{time}: {sent_at:?}");
    }
}
