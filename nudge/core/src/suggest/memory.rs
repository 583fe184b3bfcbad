//! Remembers the lines that each client session was told, and their outcome.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::quality::FixedState;
use parking_lot::Mutex;

use super::answer::ChangedLine;
use super::counts::{HourStats, NewCounts, RecentHours, SessionStats, SuggestCounts};
use super::evidence::{FactCounts, FactEvidence, digest_fact};
use super::params::check_session;
use super::told::{ClientSessionTold, ClientSessions, LoggedAnswer, SessionPlace, ToldLog};
use super::{
    AnswerBudget, Ids, OfferChange, Offered, SessionKnowledge, SourceOffers, SuggestAnswer, SuggestEvent,
    SuggestParams, SuggestRequest, SuggestedLine, ToldAnswer, ToldParams, merge_offers,
};
use crate::clock::{Millis, rfc3339};
use crate::error::Result;

/// The time span in which the number of suggestions to a client session is limited.
const WINDOW_MS: Millis = 10 * 60_000;
/// The most client sessions that are remembered. The session that has been idle for the longest time is dropped first.
const MAX_SESSIONS: usize = 1024;
/// The most expired loans that a client session keeps, because a late call may confirm them. The oldest is dropped
/// first.
const MAX_EXPIRED: usize = 8;
/// The most failed command lines of a client session that are remembered, each with the lines that were told after it.
/// The oldest is dropped first.
const MAX_FAILURES: usize = 64;
/// The most changes in one answer. Further changes come with the next answer.
const MAX_CHANGES: usize = 10;

/// Remembers the lines that each client session was told. It never holds its lock while it asks a source.
pub struct Suggester {
    memory: Mutex<SuggestMemory>,
    /// The most suggestions to one client session in 10 minutes.
    max: usize,
}

#[derive(Default)]
struct SuggestMemory {
    sessions: SessionTable,
    hours: RecentHours,
    /// The counts by fact and client session that were not taken yet.
    evidence: FactEvidence,
    /// The told lines of all sessions.
    log: ToldLog,
}

/// The client sessions.
#[derive(Default)]
struct SessionTable {
    /// The remembered sessions, by name.
    known: HashMap<String, ClientSession>,
    /// The counts of suggestions without a client session, and of client sessions that are no longer remembered.
    gone: SuggestCounts,
}

/// A client session, by the name that the agent gives it.
#[derive(Default)]
struct ClientSession {
    told: Ids,
    /// The lines that were told after each failed command line. The key is the hash of the command line; oldest first.
    failures: VecDeque<(u64, Ids)>,
    /// The times of the suggestions in the last 10 minutes.
    times: VecDeque<Millis>,
    /// Is true after a first `start` that told no line, for example because it came before any line existed.
    asked: bool,
    /// Is true after a `start` that told a line, and after the second `start` in any case.
    started: bool,
    counts: SuggestCounts,
    last: Millis,
    /// The folder and repository of the session's last call.
    place: SessionPlace,
    /// The answers that their callers have not confirmed yet, and a few expired ones, oldest first.
    loans: VecDeque<AnswerLoan>,
}

/// The suggestions of one answer, lent to a call. They count as told only when the caller confirms that it showed them.
/// A loan changes nothing else in the session, so a call that could not show its lines has no effect.
struct AnswerLoan {
    /// A fingerprint of the lent lines, the session and the time. Only answers that are shown together share a ticket.
    /// Every PRIMARY makes other tickets, so a PRIMARY never takes the confirmation of another one's loan for one of
    /// its own.
    ticket: String,
    /// The time until which no other call of the session is told these lines, in milliseconds since 1970.
    until: Millis,
    /// The length of the loan from its beginning.
    span_ms: u64,
    told: AnswerTelling,
}

/// The lines of one answer.
struct AnswerTelling {
    event: SuggestEvent,
    /// The hash of the command line that failed. For other events, the hash of an empty line.
    failure: u64,
    offers: Vec<(&'static str, Box<str>, u64)>,
    /// The changes that the answer tells, each with the stamp of the new content, if there is any.
    changes: Vec<(&'static str, Box<str>, Option<u64>)>,
    bytes: u64,
}

impl AnswerTelling {
    fn is_empty(&self) -> bool {
        self.offers.is_empty() && self.changes.is_empty()
    }

    fn len(&self) -> usize {
        self.offers.len() + self.changes.len()
    }

    fn count_all(&self) -> SuggestCounts {
        SuggestCounts { suggestions: self.offers.len() as u64, bytes: self.bytes, ..SuggestCounts::default() }
    }

    /// Returns the number of lines that count toward the limit in 10 minutes. Urgent lines do not count.
    fn count_limited(&self) -> usize {
        if self.event == SuggestEvent::Failure || self.event.is_brief() { 0 } else { self.offers.len() }
    }
}

impl ClientSession {
    /// Drops times that are older than 10 minutes. A time later than `now`, from before the clock was set back, becomes
    /// `now`.
    fn live_at(&mut self, now: Millis) {
        self.times.iter_mut().for_each(|time| *time = now.min(*time));
        while self.times.front().is_some_and(|&time| now - time >= WINDOW_MS) {
            self.times.pop_front();
        }
        for loan in &mut self.loans {
            loan.until = loan.until.min(now.saturating_add_unsigned(loan.span_ms));
        }
    }

    /// Returns the loans that have not expired at `now`.
    fn open_loans(&self, now: Millis) -> impl Iterator<Item = &AnswerLoan> {
        self.loans.iter().filter(move |loan| now < loan.until)
    }

    /// Returns the number of suggestions that the session may still be told within the 10 minutes. After a failed
    /// command, earlier lines do not reduce this number.
    fn count_allowed(&self, event: SuggestEvent, max: usize, now: Millis) -> usize {
        let lent: usize = self.open_loans(now).map(|loan| loan.told.count_limited()).sum();
        if event == SuggestEvent::Failure { max } else { max.saturating_sub(self.times.len() + lent) }
    }

    /// Returns the lines that count as known at an event: the told lines and the lent lines.
    fn find_known(&self, event: SuggestEvent, failure: u64, now: Millis) -> SessionKnowledge {
        let is_failure = event == SuggestEvent::Failure;
        let mut needless = if is_failure {
            self.failures.iter().find(|(key, _)| *key == failure).map(|(_, ids)| ids.clone()).unwrap_or_default()
        } else {
            Arc::clone(&self.told)
        };
        for loan in self.open_loans(now).filter(|loan| !is_failure || loan.told.failure == failure) {
            for (source, id, stamp) in &loan.told.offers {
                Arc::make_mut(&mut needless).entry(*source).or_default().insert(id.clone(), *stamp);
            }
        }
        SessionKnowledge { told: Arc::clone(&self.told), needless }
    }

    /// Returns true when a loan of another call has the same change, so that this call may still tell it.
    fn is_lent(&self, source: &str, change: &OfferChange, now: Millis) -> bool {
        self.open_loans(now)
            .flat_map(|loan| &loan.told.changes)
            .any(|(owner, id, stamp)| (*owner, &**id, *stamp) == (source, &*change.id, change.stamp))
    }

    fn add_loan(&mut self, loan: AnswerLoan, now: Millis) {
        let expired = self.loans.len() - self.open_loans(now).count();
        if expired > MAX_EXPIRED
            && let Some(oldest) = self.loans.iter().position(|loan| loan.until <= now)
        {
            self.loans.remove(oldest);
        }
        self.loans.push_back(loan);
    }

    /// Returns true when the session was told this offer.
    fn has_told(&self, source: &str, id: &str) -> bool {
        self.told.get(source).is_some_and(|told| told.contains_key(id))
    }

    /// Marks these lines as told to the session at `now`. Returns their counts.
    fn note_told(&mut self, told: AnswerTelling, now: Millis) -> SuggestCounts {
        if told.event == SuggestEvent::Start {
            self.started |= self.asked || !told.is_empty();
            self.asked = true;
        }
        let counts = told.count_all();
        self.counts.add_counts(counts);
        self.times.extend((0..told.count_limited()).map(|_| now));
        if told.event == SuggestEvent::Failure && !told.offers.is_empty() {
            let beside = Arc::make_mut(self.told_beside(told.failure));
            for (source, id, stamp) in &told.offers {
                beside.entry(*source).or_default().insert(id.clone(), *stamp);
            }
        }
        let known = Arc::make_mut(&mut self.told);
        for (source, id, stamp) in told.offers {
            known.entry(source).or_default().insert(id, stamp);
        }
        for (source, id, stamp) in told.changes {
            let ids = known.entry(source).or_default();
            match stamp {
                Some(stamp) => ids.insert(id, stamp),
                None => ids.remove(&id),
            };
        }
        counts
    }

    /// Returns the lines that were told after this failed command line.
    fn told_beside(&mut self, failure: u64) -> &mut Ids {
        let index = self.failures.iter().position(|(key, _)| *key == failure).unwrap_or_else(|| {
            if self.failures.len() == MAX_FAILURES {
                self.failures.pop_front();
            }
            self.failures.push_back((failure, Ids::default()));
            self.failures.len() - 1
        });
        &mut self.failures[index].1
    }
}

/// Returns the hash of a command line. Any white space counts as one space.
fn line_hash(command: Option<&str>) -> u64 {
    FixedState::default().hash_one(command.into_iter().flat_map(str::split_whitespace).collect::<Vec<_>>())
}

/// Counts the offers of an answer that a client session was told.
fn count_told(evidence: &mut FactEvidence, (name, place): (&str, &SessionPlace), told: &AnswerTelling, now: Millis) {
    if told.offers.is_empty() {
        return;
    }
    if let Some(session) = evidence.open_session(name, place, now) {
        for (source, id, _) in &told.offers {
            session.count_fact(digest_fact(source, id), FactCounts { told: 1, ..FactCounts::default() });
        }
    }
}

impl SessionTable {
    fn find_or_open(&mut self, name: &str, now: Millis) -> &mut ClientSession {
        if !self.known.contains_key(name) && self.known.len() >= MAX_SESSIONS {
            let idle = self.known.iter().min_by_key(|(_, session)| session.last).map(|(name, _)| name.clone());
            if let Some(idle) = idle.and_then(|name| self.known.remove(&name)) {
                self.gone.add_counts(idle.counts);
            }
        }
        let session = self.known.entry(name.to_owned()).or_default();
        session.last = now;
        session.live_at(now);
        session
    }
}

impl Suggester {
    /// Makes an empty memory; `max` is the most suggestions to one client session in 10 minutes.
    pub fn new(max: usize) -> Self {
        Self { memory: Mutex::default(), max }
    }

    /// Answers `nudge.suggest`: asks for offers, given the lines that the client session was told, and chooses among
    /// them. It then marks the lines as told, or lends them until the caller confirms them. `now` reads the clock.
    ///
    /// # Errors
    /// `E_INVALID` for params out of range.
    pub fn answer_suggest<I>(
        &self,
        params: SuggestParams,
        now: impl Fn() -> Millis,
        ask: impl FnOnce(&Arc<SuggestRequest>) -> Offered<I>,
    ) -> Result<SuggestAnswer<I>> {
        let event = params.event;
        let request = Arc::new(self.build_request(params, now())?);
        let offered = ask(&request);
        Ok(self.tell_offers(&request, event, offered, now()))
    }

    /// Answers `nudge.told`: marks the lines that were lent under the ticket as told. The call may come late or several
    /// times.
    ///
    /// # Errors
    /// `E_INVALID` for a name that is too long.
    pub fn answer_told(&self, params: &ToldParams, now: Millis) -> Result<ToldAnswer> {
        check_session(Some(&params.client_session))?;
        let mut memory = self.memory.lock();
        let memory = &mut *memory;
        // A session that is no longer remembered has no loans to confirm.
        let Some(session) = memory.sessions.known.get_mut(&params.client_session) else {
            return Ok(ToldAnswer { told: 0 });
        };
        let mut confirmed = ToldAnswer { told: 0 };
        while let Some(index) = session.loans.iter().position(|loan| loan.ticket == params.ticket)
            && let Some(AnswerLoan { told, .. }) = session.loans.remove(index)
        {
            confirmed.told += told.len();
            session.last = now;
            count_told(&mut memory.evidence, (&params.client_session, &session.place), &told, now);
            memory.hours.add_counts(session.note_told(told, now), now);
        }
        memory.log.note_confirmed(&params.client_session, &params.ticket, now);
        Ok(confirmed)
    }

    fn build_request(&self, mut params: SuggestParams, now: Millis) -> Result<SuggestRequest> {
        params.check_sizes()?;
        let context = std::mem::take(&mut params.context).build()?;
        let (mut known, mut allowed) = (SessionKnowledge::default(), self.max);
        if let Some(name) = &params.client_session {
            let mut memory = self.memory.lock();
            let session = memory.sessions.find_or_open(name, now);
            session.place = SessionPlace::from_context(&context);
            if params.fresh {
                session.told = Ids::default();
                session.failures.clear();
                session.times.clear();
                session.loans.clear();
            }
            known = session.find_known(params.event, line_hash(params.command.as_deref()), now);
            allowed = session.count_allowed(params.event, self.max, now);
        }
        let limit = params.limit.map_or(allowed, |limit| limit.get().min(allowed));
        Ok(SuggestRequest::from_suggest(params, context, now, limit, known))
    }

    fn tell_offers<I>(
        &self,
        request: &SuggestRequest,
        event: SuggestEvent,
        (mut offered, late): Offered<I>,
        now: Millis,
    ) -> SuggestAnswer<I> {
        let failure = line_hash(request.command.as_deref());
        let mut memory = self.memory.lock();
        let memory = &mut *memory;
        let mut session = request.client_session.as_deref().map(|name| (name, memory.sessions.find_or_open(name, now)));
        let mut limit = request.limit;
        if let Some((_, session)) = &mut session {
            limit = limit.min(session.count_allowed(event, self.max, now));
            // Another call of the same session may have told some of these offers while the sources were asked.
            let known = session.find_known(event, failure, now);
            for (source, offers) in &mut offered {
                offers.changes.retain(|change| !session.is_lent(source, change, now));
                if let Some(needless) = known.needless.get(source) {
                    offers.offers.retain(|offer| !needless.contains_key(&offer.id));
                }
            }
        }
        if event.is_brief() {
            for (_, offers) in &mut offered {
                let mut all = std::mem::take(offers);
                all.offers.retain(|offer| offer.must);
                *offers = SourceOffers { offers: all.offers, ..SourceOffers::default() };
            }
        }
        let (changes, bytes) = take_changes(&mut offered, request.max_bytes);
        let merged = merge_offers(offered, AnswerBudget { count: limit, bytes: request.max_bytes - bytes });
        let of_offers: usize = merged.chosen.iter().map(|(_, offer)| offer.line.len()).sum();
        let told = AnswerTelling {
            event,
            failure,
            offers: merged.chosen.iter().map(|(source, offer)| (*source, offer.id.clone(), offer.stamp)).collect(),
            changes: changes.iter().map(|(source, change)| (*source, change.id.clone(), change.stamp)).collect(),
            bytes: (bytes + of_offers) as u64,
        };
        let (mut started, mut ticket, mut counts) = (false, None, SuggestCounts::default());
        if let Some((name, session)) = session {
            started = session.started;
            match request.confirm_ms.filter(|_| !told.is_empty()) {
                Some(ms) => {
                    let fingerprint = || FixedState::default().hash_one((name, now, &told.offers, &told.changes));
                    let joined = request.ticket.clone();
                    let ticket_text = joined.unwrap_or_else(|| format!("{:016x}", fingerprint()));
                    ticket = Some(ticket_text.clone());
                    let until = now.saturating_add_unsigned(ms);
                    session.add_loan(AnswerLoan { ticket: ticket_text, until, span_ms: ms, told }, now);
                }
                // If every line is lent to another pending call, the session is not marked as started.
                None if told.is_empty() && session.open_loans(now).next().is_some() => {}
                None => {
                    count_told(&mut memory.evidence, (name, &session.place), &told, now);
                    counts = session.note_told(told, now);
                }
            }
        } else {
            counts = told.count_all();
            memory.sessions.gone.add_counts(counts);
        }
        memory.hours.add_counts(counts, now);
        if let Some(session) = &request.client_session {
            let answer = LoggedAnswer { session, event, ticket: ticket.as_deref(), now };
            for (source, offer) in &merged.chosen {
                memory.log.add_line(&answer, source, &offer.id, (&offer.name, &offer.line), false);
            }
            for (source, change) in &changes {
                memory.log.add_line(&answer, source, &change.id, (&change.name, &change.line), true);
            }
        }
        let told_change = |(source, change): (&'static str, OfferChange)| ChangedLine {
            source,
            name: change.name,
            line: change.line,
        };
        SuggestAnswer {
            suggestions: merged.chosen.into_iter().map(|(source, offer)| SuggestedLine::new(source, offer)).collect(),
            changes: changes.into_iter().map(told_change).collect(),
            omitted: merged.held_back.iter().map(|held| held.count).sum(),
            held_back: merged.held_back,
            notes: merged.notes,
            late,
            started,
            ticket,
        }
    }

    /// Counts the outcome of a command if the session was told an offer that names the command.
    pub fn count_ended(&self, client_session: &str, source: &str, ids: &[Box<str>], ok: bool, now: Millis) {
        let mut memory = self.memory.lock();
        let memory = &mut *memory;
        let Some(session) = memory.sessions.known.get_mut(client_session) else { return };
        session.last = now;
        if ids.iter().any(|id| session.has_told(source, id)) {
            let counts = SuggestCounts { followed: ok.into(), failed: (!ok).into(), ..SuggestCounts::default() };
            session.counts.add_counts(counts);
            memory.hours.add_counts(counts, now);
            if let Some(counted) = memory.evidence.open_session(client_session, &session.place, now) {
                let counts = FactCounts { followed: ok.into(), failed: (!ok).into(), ..FactCounts::default() };
                let told = ids.iter().filter(|id| session.has_told(source, id));
                told.for_each(|id| counted.count_fact(digest_fact(source, id), counts));
            }
            memory.log.note_ended(client_session, source, ids, ok, now);
        }
    }

    /// Returns the lines that each client session was told lately, with their outcome. The session that was active last
    /// comes first. The answer hides a line if `secret` says that its offer is now a secret.
    ///
    /// # Errors
    /// `E_INVALID` for a name that is too long.
    pub fn client_sessions(
        &self,
        asked: &ClientSessions,
        secret: impl Fn(&str, &str) -> bool,
    ) -> Result<Vec<ClientSessionTold>> {
        let only = asked.client_session.as_deref();
        check_session(only)?;
        let (_, stats, _) = self.collect_stats();
        let wanted = stats.into_iter().filter(|stats| only.is_none_or(|only| stats.client_session == only));
        let memory = self.memory.lock();
        let told = |stats: SessionStats| {
            let place = memory.sessions.known.get(&stats.client_session).map(|session| session.place.clone());
            let lines = memory.log.session_lines(&stats.client_session);
            (stats, place.unwrap_or_default(), lines)
        };
        let told: Vec<_> = wanted.take(asked.limit.get()).map(told).collect();
        drop(memory);
        Ok(told.into_iter().map(|told| ClientSessionTold::new(told, &secret)).collect())
    }

    /// Returns the outcome of the suggestions in total, of each session (the last active one first), and of each hour.
    pub fn collect_stats(&self) -> (SuggestCounts, Vec<SessionStats>, Vec<HourStats>) {
        let memory = self.memory.lock();
        let (mut all, mut sessions) = (memory.sessions.gone, Vec::new());
        for (name, session) in &memory.sessions.known {
            all.add_counts(session.counts);
            sessions.push((session.last, name, session.counts));
        }
        sessions.sort_by(|(a, a_name, _), (b, b_name, _)| b.cmp(a).then_with(|| a_name.cmp(b_name)));
        let sessions = sessions.into_iter().map(|(last, name, counts)| SessionStats {
            client_session: name.clone(),
            counts,
            last_active: rfc3339::format_time(last),
        });
        (all, sessions.collect(), memory.hours.to_stats())
    }

    /// Returns the outcome of the suggestions since the last call: in total, and by fact and client session.
    pub fn take_new_counts(&self) -> NewCounts {
        let mut memory = self.memory.lock();
        NewCounts { all: memory.hours.take_new(), evidence: std::mem::take(&mut memory.evidence) }
    }
}

/// Takes the changes that fit out of the offers, and returns them with their bytes. Each change also removes the offer
/// with the same id. A change that does not fit counts as held back, and comes with a later answer.
fn take_changes<I>(
    offered: &mut [(&'static str, SourceOffers<I>)],
    max_bytes: usize,
) -> (Vec<(&'static str, OfferChange)>, usize) {
    let (mut out, mut bytes) = (Vec::new(), 0);
    for (source, offers) in offered {
        for change in std::mem::take(&mut offers.changes) {
            offers.offers.retain(|offer| offer.id != change.id);
            if out.len() < MAX_CHANGES && bytes + change.line.len() <= max_bytes {
                bytes += change.line.len();
                out.push((*source, change));
            } else {
                offers.omitted += 1;
            }
        }
    }
    (out, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_ahead_keeps_nothing_back() {
        const YEAR_MS: Millis = 365 * 86_400_000;
        let mut memory = SessionTable::default();
        let session = memory.find_or_open("s", YEAR_MS);
        session.times.extend([YEAR_MS; 20]);
        let told = AnswerTelling {
            event: SuggestEvent::Prompt,
            failure: 0,
            offers: Vec::new(),
            changes: Vec::new(),
            bytes: 0,
        };
        session.add_loan(AnswerLoan { ticket: "t".into(), until: YEAR_MS + 500, span_ms: 500, told }, YEAR_MS);
        // After the clock is right again, earlier suggestions count as made now, and stop counting after ten minutes.
        assert_eq!(memory.find_or_open("s", 0).count_allowed(SuggestEvent::Prompt, 20, 0), 0);
        assert_eq!(memory.find_or_open("s", 0).open_loans(499).count(), 1);
        let session = memory.find_or_open("s", WINDOW_MS);
        assert_eq!(session.count_allowed(SuggestEvent::Prompt, 20, WINDOW_MS), 20);
        assert_eq!(session.open_loans(WINDOW_MS).count(), 0);
    }
}
