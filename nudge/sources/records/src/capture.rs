//! Tracks what an agent does in a turn, and decides whether the turn is worth a record (semantics section 17).
//!
//! No model judges the turn. Hooks report the used tools and the outcomes of commands. The tracker counts them for each
//! client session from prompt to prompt. A turn with work but without a saved record leads to one reminder: with the
//! next prompt (`remind`), or before the turn ends (`ask`). The agent's own model decides whether to save a record,
//! because only this model has seen the work.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;

use foldhash::quality::FixedState;
use nudge_core::clock::Millis;
use nudge_core::explain::{MatchExplain, ScoreParts};
use nudge_core::shell::{self, Command};
use nudge_core::suggest::{CommandOutcome, MoreCall, Offer, SourceItem, SuggestMoment, SuggestRequest};
use nudge_core::wire::raw_json;
use serde_json::json;

use crate::method::{LIST, UPSERT};

/// The most tracked client sessions. When there are more, the session that is idle longest is dropped.
const MAX_SESSIONS: usize = 256;
/// The most failed commands of a turn that the tracker keeps.
const MAX_FAILED: usize = 64;
/// The number of edits that is enough for a reminder, without other work.
const MANY_EDITS: u32 = 3;
/// The most reminders for a client session. `PAUSE_MS` is the least pause between two of them, in milliseconds.
const MAX_ASKED: u32 = 5;
const PAUSE_MS: Millis = 10 * 60_000;

/// The names of tools that change files, in Claude Code, Codex, Gemini CLI and Cursor.
const EDITS: &[&str] =
    &["Edit", "MultiEdit", "Write", "NotebookEdit", "apply_patch", "replace", "write_file", "edit_file"];
/// The names of tools that end with an agreed plan.
const PLANS: &[&str] = &["ExitPlanMode", "exit_plan_mode"];
/// The kind of a subagent that makes a plan.
const PLANNER: &str = "Plan";
/// The ends of the names of tools that save a record. A client puts the name of the server before this end.
const SAVES: &[&str] = &["nudge_records_upsert", "upsert_record"];

/// Says when an agent that saved no record gets a reminder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReminderMode {
    /// The agent gets the reminder with the next prompt.
    Remind,
    /// The agent gets the reminder before the turn ends, and then continues to work.
    Ask,
    /// The agent never gets a reminder.
    Off,
}

impl ReminderMode {
    /// Returns the mode for a value of the setting `records.capture`.
    pub fn from_name(name: &str) -> Self {
        match name {
            "ask" => Self::Ask,
            "off" => Self::Off,
            _ => Self::Remind,
        }
    }
}

/// The work that makes a turn worth a record. If a turn has several kinds of work, the first in this order counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnWork {
    /// A command failed first and worked later.
    Mended,
    /// A plan was agreed.
    Planned,
    /// Changes were committed.
    Committed,
    /// Files were changed; the number counts the changes.
    Edited(u32),
}

/// A reminder for the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordReminder {
    /// The turn before this prompt saved no record.
    Before(TurnWork),
    /// The turn that is about to end has saved no record.
    Now(TurnWork),
    /// The agent got a reminder in its last turn, and saved no record.
    Skipped,
}

/// Counts of the reminders, for `nudge.status`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReminderCounts {
    /// The number of turns with a reminder.
    pub asked: u64,
    /// The number of these turns that ended without a saved record.
    pub skipped: u64,
}

/// The facts about a turn. Several of them may be true.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)]
struct AgentTurn {
    failed: HashSet<u64>,
    mended: bool,
    planned: bool,
    committed: bool,
    edits: u32,
    saved: bool,
}

impl AgentTurn {
    fn find_work(&self) -> Option<TurnWork> {
        if self.saved {
            return None;
        }
        let facts = [
            (self.mended, TurnWork::Mended),
            (self.planned, TurnWork::Planned),
            (self.committed, TurnWork::Committed),
            (self.edits >= MANY_EDITS, TurnWork::Edited(self.edits)),
        ];
        facts.into_iter().find(|(is_so, _)| *is_so).map(|(_, deed)| deed)
    }
}

#[derive(Default)]
struct TrackedSession {
    turn: AgentTurn,
    asked: u32,
    last_asked: Option<Millis>,
    /// Is true when the agent got a reminder and has saved no record since.
    waits: bool,
    /// The number of records that all client sessions had saved at the last event of this session.
    written: u64,
    last: Millis,
}

impl TrackedSession {
    fn may_be_asked(&mut self, now: Millis) -> bool {
        let may = self.asked < MAX_ASKED && self.last_asked.is_none_or(|last| now - last >= PAUSE_MS);
        if may {
            (self.asked, self.last_asked, self.waits) = (self.asked + 1, Some(now), true);
        }
        may
    }
}

/// Tracks the turns of the client sessions.
pub struct TurnTracker {
    mode: ReminderMode,
    sessions: HashMap<String, TrackedSession>,
    tally: ReminderCounts,
}

impl TurnTracker {
    /// Makes a tracker without sessions.
    pub fn new(mode: ReminderMode) -> Self {
        Self { mode, sessions: HashMap::new(), tally: ReminderCounts::default() }
    }

    /// Returns the counts of the reminders.
    pub fn tally(&self) -> ReminderCounts {
        self.tally
    }

    fn session_mut(&mut self, name: &str, now: Millis) -> &mut TrackedSession {
        if !self.sessions.contains_key(name) && self.sessions.len() >= MAX_SESSIONS {
            let idle = self.sessions.iter().min_by_key(|(_, session)| session.last).map(|(name, _)| name.clone());
            idle.map(|idle| self.sessions.remove(&idle));
        }
        let session = self.sessions.entry(name.to_owned()).or_default();
        session.last = now;
        session
    }

    /// Counts an event of a client session, and returns the reminder that is due now. `written` is the number of
    /// records that all client sessions have saved. A prompt ends the turn before it.
    pub fn note_moment(
        &mut self,
        name: &str,
        moment: SuggestMoment,
        tool: Option<&str>,
        written: u64,
        now: Millis,
    ) -> Option<RecordReminder> {
        if self.mode == ReminderMode::Off {
            return None;
        }
        let mode = self.mode;
        let session = self.session_mut(name, now);
        // A call that was refused, or was answered with a question, saved no record.
        let has_saved = written > session.written;
        session.written = written;
        match moment {
            SuggestMoment::Tool | SuggestMoment::Failure => {
                let tool = tool?;
                session.turn.edits += u32::from(moment == SuggestMoment::Tool && EDITS.contains(&tool));
                session.turn.planned |= moment == SuggestMoment::Tool && PLANS.contains(&tool);
                if moment == SuggestMoment::Tool && has_saved && SAVES.iter().any(|end| tool.ends_with(end)) {
                    session.turn.saved = true;
                    session.waits = false;
                }
                None
            }
            SuggestMoment::Stop => {
                session.turn.planned |= tool == Some(PLANNER);
                let deed = session.turn.find_work().filter(|_| mode == ReminderMode::Ask)?;
                let asked = session.may_be_asked(now);
                self.tally.asked += u64::from(asked);
                asked.then_some(RecordReminder::Now(deed))
            }
            SuggestMoment::Prompt => {
                let turn = std::mem::take(&mut session.turn);
                let was_asked = std::mem::take(&mut session.waits);
                let deed = turn.find_work().filter(|_| mode == ReminderMode::Remind);
                let word = match deed.filter(|_| session.may_be_asked(now)) {
                    Some(deed) => Some(RecordReminder::Before(deed)),
                    None => (was_asked && mode == ReminderMode::Ask).then_some(RecordReminder::Skipped),
                };
                self.tally.skipped += u64::from(was_asked);
                self.tally.asked += u64::from(matches!(word, Some(RecordReminder::Before(_))));
                word
            }
            SuggestMoment::Start | SuggestMoment::Recall => None,
        }
    }

    /// Counts the outcome of a command.
    pub fn note_command(&mut self, ran: &CommandOutcome<'_>, now: Millis) {
        let (Some(name), false) = (ran.client_session, self.mode == ReminderMode::Off) else { return };
        let Some(line) = shell::parse(ran.command) else { return };
        let turn = &mut self.session_mut(name, now).turn;
        for command in &line.commands {
            let is_told = if ran.ok { command.told.success } else { command.told.failure };
            if !is_told {
                continue;
            }
            let hash = FixedState::default().hash_one(&command.words);
            if ran.ok {
                turn.mended |= turn.failed.contains(&hash);
                turn.committed |= is_commit(command);
                turn.saved |= saves_record(command);
            } else if turn.failed.len() < MAX_FAILED && !says_no(command, ran.exit_code) {
                turn.failed.insert(hash);
            }
        }
    }
}

/// Returns true when a command is a `git commit` without `--dry-run`.
fn is_commit(command: &Command) -> bool {
    let mut words = command.words.iter().skip(1).map(String::as_str);
    // Each of these options of git takes the next word as its value.
    let verb = loop {
        match words.next() {
            Some("-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace") => drop(words.next()),
            Some(option) if option.starts_with('-') => {}
            verb => break verb,
        }
    };
    command.program == "git" && verb == Some("commit") && !words.any(|word| word == "--dry-run")
}

/// Returns true when a command is a `nudge` command that saves a record.
fn saves_record(command: &Command) -> bool {
    let words: Vec<_> = command.words.iter().skip(1).map(String::as_str).take(2).collect();
    command.program == "nudge" && matches!(words[..], ["records" | "record", "add" | "upsert"])
}

/// Returns true when the exit code of a command means "not found" or "differs". Such an exit code is an answer, not a
/// failure.
fn says_no(command: &Command, exit_code: Option<i64>) -> bool {
    let answers = ["grep", "egrep", "rg", "ag", "diff", "cmp", "test", "[", "pgrep", "which", "command"];
    exit_code == Some(1) && answers.contains(&&*command.program)
}

impl TurnWork {
    /// Describes the work in words that end a sentence about the turn.
    fn describe(self) -> String {
        match self {
            Self::Mended => "made a failing command work".to_owned(),
            Self::Planned => "ended with an agreed plan".to_owned(),
            Self::Committed => "committed changes".to_owned(),
            Self::Edited(edits) => format!("changed files {edits} times"),
        }
    }
}

impl RecordReminder {
    /// Returns the line that the agent's model reads.
    fn to_line(self) -> String {
        let tool = UPSERT.replace('.', "_");
        let kinds = "issue (a bug fixed), spec (a plan), arch (a decision), update (a feature)";
        match self {
            Self::Before(deed) => {
                let done = deed.describe();
                format!(
                    "the turn before {done} and saved no record; where that is worth knowing later, {tool} keeps it: {kinds}"
                )
            }
            Self::Now(deed) => {
                let done = deed.describe();
                format!(
                    "this turn {done} and saved no record. If that is worth knowing later, call {tool} once, with kind {kinds}, \
                     a title, and the reason in the body. Otherwise end."
                )
            }
            Self::Skipped => format!(
                "auto-persist skipped: the model saved nothing when it was asked before the last turn ended; {tool} still can"
            ),
        }
    }

    /// Makes an offer from the reminder. The id of the offer is new each time, so the client session gets the offer
    /// only once.
    pub fn to_offer(self, request: &SuggestRequest) -> Offer {
        let why = "what the turn did, and that it saved no record".to_owned();
        let parts = ScoreParts::from([("deed", 1.0)]);
        // Plain numbers and strings always convert to JSON.
        let params = raw_json(&json!({}));
        let item = raw_json(&json!({"capture": why}));
        Offer {
            id: format!("capture {}", request.now).into(),
            name: "capture".to_owned(),
            line: self.to_line(),
            stamp: 0,
            must: true,
            paths: Vec::new(),
            command: None,
            explain: MatchExplain { matched: true, score: 1.0, parts: parts.clone(), reasons: vec![why.clone()] },
            why,
            parts,
            more: MoreCall { method: LIST, params },
            item: SourceItem(item),
        }
    }
}

#[cfg(test)]
mod tests {
    use nudge_core::context::Context;

    use super::*;

    const MINUTE: Millis = 60_000;

    /// Plays the steps of one client session and returns the reminders. A step is `-` before a command that fails, `+`
    /// before a command that works, `*` before a tool, a number of minutes, `stop`, or `prompt`.
    fn played(mode: ReminderMode, steps: &str) -> Vec<RecordReminder> {
        let (mut turns, mut now, mut said, mut written) = (TurnTracker::new(mode), 0, Vec::new(), 0);
        let context = Context::default();
        for step in steps.split(';').map(str::trim) {
            let (moment, tool) = match step.split_at(1) {
                (sign @ ("-" | "+"), command) => {
                    let ran = CommandOutcome {
                        command,
                        ok: sign == "+",
                        exit_code: Some(i64::from(sign == "-")),
                        context: &context,
                        client_session: Some("s"),
                    };
                    turns.note_command(&ran, now);
                    continue;
                }
                ("*", tool) => (SuggestMoment::Tool, Some(tool)),
                ("s", _) => (SuggestMoment::Stop, step.strip_prefix("stop ")),
                ("p", _) => (SuggestMoment::Prompt, None),
                _ => {
                    now += step.parse::<Millis>().unwrap() * MINUTE;
                    continue;
                }
            };
            // The word `refused` before a tool marks a save that was refused.
            let is_saved = tool.is_some_and(|tool| tool.contains("upsert") && !tool.starts_with("refused "));
            written += u64::from(is_saved);
            said.extend(turns.note_moment("s", moment, tool, written, now));
        }
        said
    }

    #[test]
    fn a_turn_that_did_something_and_saved_nothing() {
        use TurnWork::{Committed, Edited, Mended, Planned};
        let fixed = "-cargo test; *Edit; +cargo test";
        for (steps, deed) in [
            (fixed, Some(Mended)),
            ("-cd web && npm test 2>&1; +npm test", Some(Mended)),
            ("-npm test; +CI=1 npm test", Some(Mended)),
            ("-cargo test; +cargo build", None),
            ("+cargo test", None),
            ("+git add . && git commit -m x", Some(Committed)),
            ("+git log --grep commit", None),
            ("+git -C web commit -m x", Some(Committed)),
            ("+git commit --dry-run", None),
            ("-grep foo bar; +grep foo bar", None),
            ("+git commit -m x; +nudge records add --kind update --title x", None),
            ("+git commit -m x; *refused mcp__nudge__nudge_records_upsert", Some(Committed)),
            ("*ExitPlanMode", Some(Planned)),
            ("*Edit; *Write", None),
            ("*Edit; *Write; *apply_patch", Some(Edited(3))),
            ("*Read; *Read; *Read; *Grep", None),
            ("-cargo test; +cargo test; *mcp__nudge__nudge_records_upsert", None),
            ("-cargo test; +cargo test; *mcp__dude__upsert_record", None),
            ("", None),
        ] {
            let with = |end: &str| if steps.is_empty() { end.to_owned() } else { format!("{steps}; {end}") };
            assert_eq!(
                played(ReminderMode::Remind, &with("stop; prompt")),
                Vec::from_iter(deed.map(RecordReminder::Before)),
                "{steps}"
            );
            assert_eq!(
                played(ReminderMode::Ask, &with("stop")),
                Vec::from_iter(deed.map(RecordReminder::Now)),
                "{steps}"
            );
            assert_eq!(played(ReminderMode::Off, &with("stop; prompt")), [], "{steps}");
        }
        assert_eq!(played(ReminderMode::Ask, "stop Plan"), [RecordReminder::Now(Planned)]);
        assert_eq!(played(ReminderMode::Ask, "stop Explore"), []);
    }

    #[test]
    fn it_is_said_seldom() {
        let turn = "-make; +make; prompt";
        let turns = |pause: &str, count: usize| vec![format!("{turn}; {pause}"); count].join("; ");
        assert_eq!(played(ReminderMode::Remind, &turns("9", 2)).len(), 1);
        assert_eq!(played(ReminderMode::Remind, &turns("10", 2)).len(), 2);
        assert_eq!(played(ReminderMode::Remind, &turns("10", 20)).len(), 5);
        assert_eq!(played(ReminderMode::Remind, "prompt; -make; +make; prompt; prompt").len(), 1, "once a turn");
    }

    #[test]
    fn who_was_asked_and_saved_nothing_is_told_so_once() {
        use TurnWork::Mended;
        let asked = "-make; +make; stop";
        assert_eq!(
            played(ReminderMode::Ask, &format!("{asked}; prompt; prompt")),
            [RecordReminder::Now(Mended), RecordReminder::Skipped]
        );
        let saved = format!("{asked}; *mcp__nudge__nudge_records_upsert; stop; prompt");
        assert_eq!(played(ReminderMode::Ask, &saved), [RecordReminder::Now(Mended)]);
        let mut turns = TurnTracker::new(ReminderMode::Ask);
        let context = Context::default();
        for ok in [false, true] {
            let ran =
                CommandOutcome { command: "make", ok, exit_code: None, context: &context, client_session: Some("s") };
            turns.note_command(&ran, 0);
        }
        turns.note_moment("s", SuggestMoment::Stop, None, 0, 0);
        turns.note_moment("s", SuggestMoment::Prompt, None, 0, 0);
        assert_eq!(turns.tally(), ReminderCounts { asked: 1, skipped: 1 });
    }

    #[test]
    fn sessions_are_apart_and_few_are_remembered() {
        let mut turns = TurnTracker::new(ReminderMode::Remind);
        for n in 0..2 * MAX_SESSIONS {
            for _ in 0..3 {
                turns.note_moment(&format!("s{n}"), SuggestMoment::Tool, Some("Edit"), 0, i64::try_from(n).unwrap());
            }
        }
        assert_eq!(turns.sessions.len(), MAX_SESSIONS);
        assert_eq!(turns.note_moment("s0", SuggestMoment::Prompt, None, 0, 0), None);
        let last = format!("s{}", 2 * MAX_SESSIONS - 1);
        assert_eq!(
            turns.note_moment(&last, SuggestMoment::Prompt, None, 0, 0),
            Some(RecordReminder::Before(TurnWork::Edited(3)))
        );
    }
}
