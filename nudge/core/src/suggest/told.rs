//! Logs the lines that client sessions were told lately, with the outcome of each line, for people who read the log
//! later.
//!
//! The counts of [`SessionStats`] exist as long as the session is remembered. The lines of all sessions are in one log,
//! so that one limit bounds their memory.

use std::cmp::Reverse;
use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SessionStats, SuggestEvent};
use crate::clock::{Millis, rfc3339};
use crate::context::Context;
use crate::limit::Limit;
use crate::text::clip_text;
use crate::wire;

/// The most lines in the log, of all client sessions together. The oldest line is dropped first.
const MAX_LINES: usize = 500;
/// The number of characters to which a logged line is cut.
const MAX_LINE_CHARS: usize = 400;
/// The longest folder, repository or branch that is remembered for a session, in bytes.
const MAX_PLACE_BYTES: usize = 512;

/// Params of `nudge.client_sessions`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientSessions {
    /// This one only.
    #[serde(deserialize_with = "wire::given")]
    pub client_session: Option<String>,
    /// Most client sessions.
    pub limit: Limit<20, { usize::MAX }, 0>,
}

impl ClientSessionTold {
    /// Makes the answer. It hides a line if `secret` says that its offer is now a secret.
    pub(super) fn new(
        (stats, place, lines): (SessionStats, SessionPlace, Vec<(Box<str>, LoggedLine)>),
        secret: impl Fn(&str, &str) -> bool,
    ) -> Self {
        let open = |(id, line): (Box<str>, LoggedLine)| {
            if secret(line.source, &id) { LoggedLine { line: "[secret]".into(), ..line } } else { line }
        };
        Self { stats, place, told: lines.into_iter().map(open).collect() }
    }
}

/// A client session with the lines that it was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientSessionTold {
    /// The name of the session, and the outcome of all its lines.
    #[serde(flatten)]
    pub stats: SessionStats,
    /// The folder and repository of the session's last call.
    #[serde(flatten)]
    pub place: SessionPlace,
    /// The remembered lines, newest first.
    pub told: Vec<LoggedLine>,
}

/// The folder, repository and branch of a client session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SessionPlace {
    /// The folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Box<str>>,
    /// The repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<Box<str>>,
    /// The branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<Box<str>>,
}

impl SessionPlace {
    /// Reads the folder, the repository and the branch from a context, and leaves out very long texts.
    pub(super) fn from_context(context: &Context) -> Self {
        let short = |text: &str| (text.len() <= MAX_PLACE_BYTES).then(|| text.into());
        Self {
            cwd: context.cwd().and_then(short),
            repo: context.repo().as_deref().and_then(short),
            branch: context.branch().and_then(short),
        }
    }
}

/// A line that a client session was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoggedLine {
    /// The time at which the line was told, RFC 3339.
    pub at: String,
    /// The event at which the line was told.
    pub event: SuggestEvent,
    /// The source of the line.
    pub source: &'static str,
    /// The name of the offer in a list of names.
    pub name: Box<str>,
    /// The line that the model read, cut to 400 characters; `[secret]` if the value has become a secret.
    pub line: Box<str>,
    /// Is true for a line about a changed offer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub change: bool,
    /// The outcome of the line's command, if the session ran the command afterwards; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<LineOutcome>,
}

/// The outcome of a line: the end of the last run of its command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineOutcome {
    /// Is true when the command worked.
    pub ok: bool,
    /// The time at which the command ended, RFC 3339.
    pub at: String,
}

/// The facts about an answer that the log stores.
pub(super) struct LoggedAnswer<'a> {
    pub session: &'a str,
    pub event: SuggestEvent,
    /// The ticket, while the caller has not confirmed that it showed the answer.
    pub ticket: Option<&'a str>,
    pub now: Millis,
}

/// The log of lines, from the oldest to the newest.
#[derive(Default)]
pub(super) struct ToldLog(VecDeque<ToldEntry>);

struct ToldEntry {
    session: Box<str>,
    ticket: Option<Box<str>>,
    time: Millis,
    event: SuggestEvent,
    source: &'static str,
    id: Box<str>,
    name: Box<str>,
    line: Box<str>,
    change: bool,
    outcome: Option<(bool, Millis)>,
}

impl ToldLog {
    /// Adds a line of an answer.
    pub fn add_line(
        &mut self,
        answer: &LoggedAnswer<'_>,
        source: &'static str,
        id: &str,
        (name, line): (&str, &str),
        change: bool,
    ) {
        if self.0.len() == MAX_LINES {
            self.0.pop_front();
        }
        self.0.push_back(ToldEntry {
            session: answer.session.into(),
            ticket: answer.ticket.map(Into::into),
            time: answer.now,
            event: answer.event,
            source,
            id: id.into(),
            name: name.into(),
            line: clip_text(line, MAX_LINE_CHARS).into(),
            change,
            outcome: None,
        });
    }

    /// Notes that the caller showed the answer with this ticket.
    pub fn note_confirmed(&mut self, session: &str, ticket: &str, now: Millis) {
        let lent = |entry: &&mut ToldEntry| *entry.session == *session && entry.ticket.as_deref() == Some(ticket);
        for entry in self.0.iter_mut().filter(lent) {
            (entry.ticket, entry.time) = (None, now);
        }
    }

    /// Notes the outcome of a command, given the ids of the offers that name it. For each offer, the last told line
    /// gets the outcome.
    pub fn note_ended(&mut self, session: &str, source: &str, ids: &[Box<str>], ok: bool, now: Millis) {
        for id in ids {
            let told = |entry: &&mut ToldEntry| {
                entry.ticket.is_none() && *entry.session == *session && entry.source == source && entry.id == *id
            };
            if let Some(entry) = self.0.iter_mut().rev().find(told) {
                entry.outcome = Some((ok, now));
            }
        }
    }

    /// Returns the lines that a session was shown, newest first, with the ids of their offers.
    pub fn session_lines(&self, session: &str) -> Vec<(Box<str>, LoggedLine)> {
        let shown = |entry: &&ToldEntry| entry.ticket.is_none() && *entry.session == *session;
        let mut lines: Vec<_> = self.0.iter().filter(shown).collect();
        // The sort is stable: the lines of one answer keep their order.
        lines.sort_by_key(|entry| Reverse(entry.time));
        let line = |entry: &ToldEntry| LoggedLine {
            at: rfc3339::format_time(entry.time),
            event: entry.event,
            source: entry.source,
            name: entry.name.clone(),
            line: entry.line.clone(),
            change: entry.change,
            outcome: entry.outcome.map(|(ok, time)| LineOutcome { ok, at: rfc3339::format_time(time) }),
        };
        lines.into_iter().map(|entry| (entry.id.clone(), line(entry))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer<'a>(session: &'a str, ticket: Option<&'a str>, now: Millis) -> LoggedAnswer<'a> {
        LoggedAnswer { session, event: SuggestEvent::Prompt, ticket, now }
    }

    fn outcomes(log: &ToldLog, session: &str) -> Vec<Option<bool>> {
        log.session_lines(session).into_iter().map(|(_, line)| line.outcome.map(|outcome| outcome.ok)).collect()
    }

    fn names(log: &ToldLog, session: &str) -> Vec<String> {
        log.session_lines(session).into_iter().map(|(_, line)| line.name.into()).collect()
    }

    #[test]
    fn what_was_shown_is_told_with_what_came_of_it() {
        let mut log = ToldLog::default();
        log.add_line(&answer("s", None, 1), "hints", "a\nb", ("a/b", "a/b: make"), false);
        log.add_line(&answer("s", Some("t"), 2), "hints", "a\nc", ("a/c", "a/c: lent"), false);
        log.add_line(&answer("other", None, 3), "hints", "a\nb", ("a/b", "a/b: make"), false);
        assert_eq!(names(&log, "s"), ["a/b"], "what is lent was not shown");
        log.note_ended("s", "hints", &["a\nb".into(), "a\nc".into(), "a\nd".into()], true, 4);
        log.note_confirmed("s", "t", 5);
        log.note_confirmed("s", "none", 6);
        assert_eq!(names(&log, "s"), ["a/c", "a/b"], "the newest first");
        assert_eq!(outcomes(&log, "s"), [None, Some(true)], "the first was not shown yet when the command ended");
        assert_eq!(outcomes(&log, "other"), [None], "another session ran nothing");
        // The last outcome counts.
        log.note_ended("s", "hints", &["a\nb".into()], false, 7);
        assert_eq!(outcomes(&log, "s"), [None, Some(false)]);
    }

    #[test]
    fn it_takes_so_much_memory_and_no_more() {
        let mut log = ToldLog::default();
        let endless = "é".repeat(10_000);
        for n in 0..MAX_LINES + 10 {
            log.add_line(
                &answer("s", None, i64::try_from(n).unwrap()),
                "hints",
                &n.to_string(),
                (&n.to_string(), &endless),
                false,
            );
        }
        let told = log.session_lines("s");
        assert_eq!((told.len(), &*told[0].0, &*told[MAX_LINES - 1].0), (MAX_LINES, "509", "10"));
        assert_eq!(told[0].1.line.chars().count(), MAX_LINE_CHARS + 1, "it says that it was cut");
    }
}
