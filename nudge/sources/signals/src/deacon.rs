//! Keeps the state of the deacon, the command that asks agents which have work but show no activity. The state holds
//! these agents, the time since which each has been quiet, the open questions and the reports. This module reads no
//! file and no clock; [`patrol`](crate::patrol) does that.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use nudge_core::clock::Millis;
use serde::{Deserialize, Serialize};

use crate::agent::AgentId;
use crate::hook::AgentHook;
use crate::signal::Signal;

/// Holds the agents with active work, as the deacon last saw them. The deacon saves this state in a file, and the next
/// deacon process continues with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Deacon {
    agents: BTreeMap<AgentId, WatchedAgent>,
    /// The time of the last mail. No two mails have the same time, because the file name of a mail contains its time.
    last_mail: Millis,
}

/// The state of one agent with active work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WatchedAgent {
    /// The timestamp text of the last signal that the agent sent to the deacon.
    answer: Option<String>,
    /// The hash of the text in the agent's hook file.
    hook: u64,
    question: Option<DeaconQuestion>,
    /// The time since which the agent has shown no activity. A jump of the clock shifts this time.
    quiet_since: Millis,
    /// The time of the agent's last activity, comparable with the times of signals. Absent in files of older versions.
    #[serde(default)]
    active_at: Option<Millis>,
    work: String,
}

/// A question that the agent has not answered yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeaconQuestion {
    /// The time of the question.
    pub asked_at: Millis,
    /// The time of the mail that reports the silence. The deacon saves this time before it sends the mail, so after a
    /// crash the next deacon sends the same mail.
    pub mail_at: Option<Millis>,
    /// Is true when the mail was sent.
    pub is_reported: bool,
}

/// The way in which a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionEnd {
    /// The agent sent a signal to the deacon.
    Answered,
    /// The agent's hook has changed.
    Touched,
    /// The agent has no active hook any more.
    Idle,
}

/// An action that is due now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DueAction {
    /// Asks the agent whether it works. `active_at` is the time of the agent's last activity.
    Ask { work: String, active_at: Millis },
    /// Reports to the mayor that the agent is silent. The deacon asked at `asked_at`; the mail gets the time `mail_at`.
    Report { work: String, asked_at: Millis, mail_at: Millis },
}

impl Deacon {
    /// Updates the state from all hooks and from the signal in the deacon's inbox, and returns the questions that
    /// ended. Two agents that answer at the same moment write the same file, so the second answer replaces the first.
    /// Therefore a changed hook counts as an answer too.
    pub fn observe(
        &mut self,
        now: Millis,
        hooks: &BTreeMap<AgentId, AgentHook>,
        inbox: Option<&Signal>,
    ) -> Vec<(AgentId, QuestionEnd)> {
        let mut news = Vec::new();
        let idle = |agent: &AgentId| hooks.get(agent).is_none_or(|hook| *hook == AgentHook::Idle);
        for (agent, watched) in self.agents.extract_if(.., |agent, _| idle(agent)) {
            news.extend(watched.question.is_some().then_some((agent, QuestionEnd::Idle)));
        }
        for (agent, hook) in hooks {
            let AgentHook::Active(active) = hook else { continue };
            let answer = inbox.filter(|signal| signal.from == *agent).map(|signal| &signal.timestamp);
            let watched = match self.agents.entry(agent.clone()) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let quiet_since = active.last_activity.filter(|time| *time <= now).unwrap_or(now);
                    let (answer, work) = (answer.cloned(), active.work.clone());
                    let active_at = Some(quiet_since);
                    entry.insert(WatchedAgent {
                        answer,
                        hook: active.hash,
                        question: None,
                        quiet_since,
                        active_at,
                        work,
                    });
                    continue;
                }
            };
            let has_answered = answer.is_some() && answer != watched.answer.as_ref();
            if has_answered || watched.hook != active.hash {
                let ended = watched.question.take();
                let how = if has_answered { QuestionEnd::Answered } else { QuestionEnd::Touched };
                news.extend(ended.map(|_| (agent.clone(), how)));
                watched.answer = answer.cloned().or(watched.answer.take());
                (watched.hook, watched.quiet_since, watched.active_at) = (active.hash, now, Some(now));
                watched.work.clone_from(&active.work);
            }
        }
        news
    }

    /// Returns the due actions. `interval` returns the interval of an agent: the longest time that the agent may be
    /// quiet, and the longest time that it may take to answer.
    pub fn find_due(&self, now: Millis, interval: impl Fn(&AgentId) -> Millis) -> Vec<(AgentId, DueAction)> {
        let mut next_mail = now.max(self.last_mail + 1);
        let due = self.agents.iter().filter_map(|(agent, watched)| {
            let work = || watched.work.clone();
            let due = match &watched.question {
                None if now - watched.quiet_since >= interval(agent) => {
                    DueAction::Ask { work: work(), active_at: watched.active_at.unwrap_or(watched.quiet_since) }
                }
                Some(asked) if !asked.is_reported && now - asked.asked_at >= interval(agent) => {
                    let mail_at = asked.mail_at.unwrap_or_else(|| {
                        next_mail += 1;
                        next_mail - 1
                    });
                    DueAction::Report { work: work(), asked_at: asked.asked_at, mail_at }
                }
                _ => return None,
            };
            Some((agent.clone(), due))
        });
        due.collect()
    }

    /// Records that the deacon asked an agent at `now`.
    pub fn note_asked(&mut self, agent: &AgentId, now: Millis) {
        if let Some(watched) = self.agents.get_mut(agent) {
            watched.question = Some(DeaconQuestion { asked_at: now, mail_at: None, is_reported: false });
        }
    }

    /// Records that the deacon could not ask an agent. The deacon tries again after an interval.
    pub fn not_asked(&mut self, agent: &AgentId, now: Millis) {
        if let Some(watched) = self.agents.get_mut(agent) {
            watched.quiet_since = now;
        }
    }

    /// Records the time of the mail about an agent. The deacon calls this twice: before it sends the mail
    /// (`is_reported` is false), and after that (true).
    pub fn note_reported(&mut self, agent: &AgentId, mail_at: Millis, is_reported: bool) {
        if let Some(question) = self.agents.get_mut(agent).and_then(|watched| watched.question.as_mut()) {
            (question.mail_at, question.is_reported) = (Some(mail_at), is_reported);
            self.last_mail = self.last_mail.max(mail_at);
        }
    }

    /// Shifts all waiting times after the clock jumped or the machine slept, so that a jump makes no agent late.
    pub fn shift_times(&mut self, shift: Millis) {
        for watched in self.agents.values_mut() {
            watched.quiet_since += shift;
            // `active_at` is compared with the times of signals, which a jump does not shift. So `active_at` never
            // moves forward. When the clock was set back, `active_at` moves back too; then an older signal may count as
            // a new order.
            watched.active_at = watched.active_at.map(|time| time + shift.min(0));
            if let Some(question) = &mut watched.question {
                question.asked_at += shift;
            }
        }
    }

    /// Limits all times to the range from 1970 to `now`. The clock of an earlier deacon may have been ahead, or another
    /// program may have written the file. A time in the future would delay each action, and would give a mail a wrong
    /// date.
    pub fn drop_times_ahead(&mut self, now: Millis) {
        let bound = |time: &mut Millis| *time = (*time).min(now).max(0);
        for watched in self.agents.values_mut() {
            bound(&mut watched.quiet_since);
            watched.active_at.iter_mut().for_each(bound);
            watched.question.iter_mut().for_each(|question| bound(&mut question.asked_at));
        }
        bound(&mut self.last_mail);
    }

    /// Iterates over the agents with an open question.
    pub fn iter_questions(&self) -> impl Iterator<Item = (&AgentId, &DeaconQuestion)> {
        self.agents.iter().filter_map(|(agent, watched)| Some((agent, watched.question.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::ActiveHook;
    use crate::signal::SignalType;

    const MINUTE: Millis = 60_000;

    fn id(name: &str) -> AgentId {
        AgentId::parse(name).unwrap()
    }

    /// Makes active hooks from names and hashes.
    fn hooks(all: &[(&str, u64)]) -> BTreeMap<AgentId, AgentHook> {
        let active = |hash| AgentHook::Active(ActiveHook { hash, last_activity: Some(0), work: "gt-1".into() });
        all.iter().map(|(name, hash)| (id(name), active(*hash))).collect()
    }

    fn answer(from: &str, timestamp: &str) -> Signal {
        let (message, timestamp) = ("here".into(), timestamp.into());
        Signal { from: id(from), kind: SignalType::NudgeResponse, message, requires_response: false, timestamp }
    }

    /// Observes once and does the due actions. Returns the ended questions and the actions as texts.
    fn look(deacon: &mut Deacon, now: Millis, all: &[(&str, u64)], inbox: Option<&Signal>) -> Vec<String> {
        let news = deacon.observe(now, &hooks(all), inbox);
        let mut told: Vec<_> = news.iter().map(|(agent, news)| format!("{agent} {news:?}")).collect();
        for (agent, due) in deacon.find_due(now, |_| MINUTE) {
            match due {
                DueAction::Ask { .. } => {
                    deacon.note_asked(&agent, now);
                    told.push(format!("ask {agent}"));
                }
                DueAction::Report { mail_at, .. } => {
                    deacon.note_reported(&agent, mail_at, true);
                    told.push(format!("report {agent} {mail_at}"));
                }
            }
        }
        told
    }

    #[test]
    fn who_shows_nothing_is_asked_then_reported_once() {
        let mut deacon = Deacon::default();
        assert!(look(&mut deacon, MINUTE - 1, &[("a", 1)], None).is_empty());
        assert_eq!(look(&mut deacon, MINUTE, &[("a", 1)], None), ["ask a"]);
        assert!(look(&mut deacon, 2 * MINUTE - 1, &[("a", 1)], None).is_empty());
        assert_eq!(look(&mut deacon, 2 * MINUTE, &[("a", 1)], None), ["report a 120000"]);
        for later in 3..9 {
            assert!(look(&mut deacon, later * MINUTE, &[("a", 1)], None).is_empty(), "exactly one mail");
        }
        // The agent's hook has changed, so a later silence leads to a new question.
        assert_eq!(look(&mut deacon, 9 * MINUTE, &[("a", 2)], None), ["a Touched"]);
        assert_eq!(look(&mut deacon, 10 * MINUTE, &[("a", 2)], None), ["ask a"]);
        assert_eq!(look(&mut deacon, 11 * MINUTE, &[("a", 2)], None), ["report a 660000"]);
        assert_eq!(look(&mut deacon, 12 * MINUTE, &[], None), ["a Idle"]);
        assert_eq!(deacon.iter_questions().count(), 0);
    }

    #[test]
    fn who_answers_is_asked_again_after_an_interval() {
        let mut deacon = Deacon::default();
        // A signal that the deacon saw before its question does not count as an answer.
        let old = answer("a", "2020-01-01T00:00:00Z");
        assert_eq!(look(&mut deacon, MINUTE, &[("a", 1)], Some(&old)), ["ask a"]);
        assert!(look(&mut deacon, MINUTE + 1, &[("a", 1)], Some(&old)).is_empty());
        // A new signal counts as an answer whatever its time, because the agent's clock may be wrong.
        let new = answer("a", "2019-01-01T00:00:00Z");
        assert_eq!(look(&mut deacon, MINUTE + 2, &[("a", 1)], Some(&new)), ["a Answered"]);
        assert_eq!(look(&mut deacon, 2 * MINUTE + 2, &[("a", 1)], Some(&new)), ["ask a"]);
        assert_eq!(look(&mut deacon, 3 * MINUTE + 2, &[("a", 1)], Some(&new)), ["report a 180002"]);
    }

    #[test]
    fn two_who_answer_at_once_are_both_alive() {
        let mut deacon = Deacon::default();
        assert_eq!(look(&mut deacon, MINUTE, &[("a", 1), ("b", 1)], None), ["ask a", "ask b"]);
        // The upstream specification reads only this one file. The answer of `b` has replaced the answer of `a`, so the
        // specification would report `a`.
        let seen = answer("b", "2026-03-05T10:35:00Z");
        assert_ne!(seen.from, id("a"));
        // Both agents have updated their hooks, as an answering agent does.
        assert_eq!(look(&mut deacon, MINUTE + 1, &[("a", 2), ("b", 2)], Some(&seen)), ["a Touched", "b Answered"]);
        assert_eq!(look(&mut deacon, 2 * MINUTE, &[("a", 2), ("b", 2)], Some(&seen)), Vec::<String>::new());
    }

    #[test]
    fn mails_of_one_moment_have_different_times() {
        let mut deacon = Deacon::default();
        look(&mut deacon, MINUTE, &[("a", 1), ("b", 1), ("c", 1)], None);
        let due = look(&mut deacon, 2 * MINUTE, &[("a", 1), ("b", 1), ("c", 1)], None);
        assert_eq!(due, ["report a 120000", "report b 120001", "report c 120002"]);
    }

    #[test]
    fn whoever_goes_on_after_a_crash_sends_the_same_mail() {
        let mut deacon = Deacon::default();
        look(&mut deacon, MINUTE, &[("a", 1)], None);
        deacon.observe(2 * MINUTE, &hooks(&[("a", 1)]), None);
        deacon.note_reported(&id("a"), 2 * MINUTE, false);
        let text = serde_json::to_string(&deacon).unwrap();
        let mut next: Deacon = serde_json::from_str(&text).unwrap();
        assert_eq!(next, deacon);
        assert_eq!(look(&mut next, 5 * MINUTE, &[("a", 1)], None), ["report a 120000"]);
        assert!(look(&mut next, 6 * MINUTE, &[("a", 1)], None).is_empty());
    }

    #[test]
    fn a_hook_that_is_being_written_says_nothing() {
        let mut deacon = Deacon::default();
        look(&mut deacon, MINUTE, &[("a", 1)], None);
        let half = BTreeMap::from([(id("a"), AgentHook::Unreadable), (id("b"), AgentHook::Unreadable)]);
        assert!(deacon.observe(MINUTE + 1, &half, None).is_empty());
        assert_eq!(deacon.iter_questions().count(), 1, "it is still open");
        assert_eq!(look(&mut deacon, 2 * MINUTE, &[("a", 1)], None), ["report a 120000"]);
    }

    #[test]
    fn nobody_is_late_by_a_jump_of_the_clock() {
        let mut deacon = Deacon::default();
        look(&mut deacon, MINUTE, &[("a", 1)], None);
        let day = 24 * 60 * MINUTE;
        deacon.shift_times(day);
        assert!(look(&mut deacon, day + MINUTE + 1, &[("a", 1)], None).is_empty());
        assert_eq!(look(&mut deacon, day + 2 * MINUTE, &[("a", 1)], None).len(), 1);
    }
}
