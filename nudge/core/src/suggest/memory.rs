//! What each client session was told, and what came of it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;

use super::{Budget, Offered, Seen, Suggest, SuggestEvent, SuggestRequest, Suggestion, Suggestions, merge};
use crate::clock::{Millis, rfc3339};
use crate::error::Result;

/// The span in which the number of suggestions to one client session is limited.
const WINDOW_MS: Millis = 10 * 60_000;
/// Client sessions remembered; the one idle longest goes first.
const MAX_SESSIONS: usize = 1024;

/// The outcome of suggestions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// The number of suggestions made.
    pub suggestions: u64,
    /// Bytes of the suggestions.
    pub bytes: u64,
    /// Commands that worked and had been suggested to the client session that ran them.
    pub followed: u64,
    /// Commands that failed and had been suggested to it.
    pub failed: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.suggestions += other.suggestions;
        self.bytes += other.bytes;
        self.followed += other.followed;
        self.failed += other.failed;
    }
}

/// One client session in a `nudge.stats`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionStats {
    /// The name that it gives itself.
    pub client_session: String,
    /// The outcome of the suggestions to it.
    #[serde(flatten)]
    pub counts: Counts,
    /// When it last asked for suggestions, or reported an outcome.
    pub last_active: String,
}

/// Remembers what each client session was told. Its lock is never held while a source is asked.
pub struct Suggester {
    memory: Mutex<Memory>,
    /// Most suggestions to one client session in 10 minutes.
    max: usize,
}

#[derive(Default)]
struct Memory {
    sessions: HashMap<String, ClientSession>,
    /// Counts of suggestions to nobody in particular, and of client sessions that are forgotten.
    gone: Counts,
}

/// One agent's session, by the name it gives itself.
#[derive(Default)]
struct ClientSession {
    seen: Seen,
    /// When suggestions were made, within the window.
    times: VecDeque<Millis>,
    /// A `start` was asked for: it may have come too early, with nothing to tell yet.
    asked: bool,
    /// A `start` told something, or was asked for twice.
    started: bool,
    counts: Counts,
    last: Millis,
}

impl Memory {
    fn session(&mut self, name: &str, now: Millis) -> &mut ClientSession {
        if !self.sessions.contains_key(name) && self.sessions.len() >= MAX_SESSIONS {
            let idle = self.sessions.iter().min_by_key(|(_, session)| session.last).map(|(name, _)| name.clone());
            if let Some(idle) = idle.and_then(|name| self.sessions.remove(&name)) {
                self.gone.add(idle.counts);
            }
        }
        let session = self.sessions.entry(name.to_owned()).or_default();
        session.last = now;
        while session.times.front().is_some_and(|&at| now - at >= WINDOW_MS) {
            session.times.pop_front();
        }
        session
    }
}

impl Suggester {
    /// Remembers nothing yet; `max` is the most that one client session is told in 10 minutes.
    pub fn new(max: usize) -> Self {
        Self { memory: Mutex::default(), max }
    }

    /// Answers `nudge.suggest`: asks for offers, with what the client session has seen; chooses among them; notes what
    /// is told.
    ///
    /// # Errors
    /// `E_INVALID` for params out of range.
    pub fn suggest<I>(
        &self,
        params: Suggest,
        now: Millis,
        ask: impl FnOnce(&Arc<SuggestRequest>) -> Offered<I>,
    ) -> Result<Suggestions<I>> {
        let event = params.event;
        let request = Arc::new(self.request(params, now)?);
        let offered = ask(&request);
        Ok(self.tell(&request, event, offered))
    }

    fn request(&self, mut params: Suggest, now: Millis) -> Result<SuggestRequest> {
        params.check()?;
        let context = std::mem::take(&mut params.context).build()?;
        let (mut seen, mut allowed) = (Seen::default(), self.max);
        if let Some(name) = &params.client_session {
            let mut memory = self.memory.lock();
            let session = memory.session(name, now);
            if params.fresh {
                session.seen = Seen::default();
                session.times.clear();
            }
            seen = Arc::clone(&session.seen);
            allowed = self.max.saturating_sub(session.times.len());
        }
        let limit = params.limit.map_or(allowed, |limit| limit.min(allowed));
        Ok(SuggestRequest::suggest(params, context, now, limit, seen))
    }

    fn tell<I>(
        &self,
        request: &SuggestRequest,
        event: SuggestEvent,
        (mut offered, late): Offered<I>,
    ) -> Suggestions<I> {
        let mut memory = self.memory.lock();
        let mut session = request.client_session.as_deref().map(|name| memory.session(name, request.now));
        let mut limit = request.limit;
        if let Some(session) = &session {
            limit = limit.min(self.max.saturating_sub(session.times.len()));
            // Another call of the same session may have told some of it meanwhile.
            for (source, offers) in &mut offered {
                if let Some(seen) = session.seen.get(source) {
                    offers.offers.retain(|offer| !seen.contains(&offer.id));
                }
            }
        }
        let merged = merge(offered, Budget { count: limit, bytes: request.max_bytes });
        let mut told = Counts::default();
        for (source, offer) in &merged.chosen {
            told.add(Counts { suggestions: 1, bytes: offer.bytes as u64, ..Counts::default() });
            if let Some(session) = &mut session {
                Arc::make_mut(&mut session.seen).entry(source).or_default().insert(offer.id.clone());
                session.times.push_back(request.now);
            }
        }
        let started = session.as_ref().is_some_and(|session| session.started);
        match session {
            Some(session) => {
                if event == SuggestEvent::Start {
                    session.started |= session.asked || told.suggestions > 0;
                    session.asked = true;
                }
                session.counts.add(told);
            }
            None => memory.gone.add(told),
        }
        Suggestions {
            suggestions: merged.chosen.into_iter().map(|(source, offer)| Suggestion::new(source, offer)).collect(),
            omitted: merged.held_back.iter().map(|held| held.count).sum(),
            held_back: merged.held_back,
            late,
            started,
        }
    }

    /// Counts how a command ended, if one of the offers that say it had been told to the session.
    pub fn ended(&self, client_session: &str, source: &str, ids: &[Box<str>], ok: bool, now: Millis) {
        let mut memory = self.memory.lock();
        let Some(session) = memory.sessions.get_mut(client_session) else { return };
        session.last = now;
        if session.seen.get(source).is_some_and(|seen| ids.iter().any(|id| seen.contains(id))) {
            *(if ok { &mut session.counts.followed } else { &mut session.counts.failed }) += 1;
        }
    }

    /// The outcome of all suggestions, and of those to each session, the last active one first.
    pub fn stats(&self) -> (Counts, Vec<SessionStats>) {
        let memory = self.memory.lock();
        let (mut all, mut sessions) = (memory.gone, Vec::new());
        for (name, session) in &memory.sessions {
            all.add(session.counts);
            sessions.push((session.last, name, session.counts));
        }
        sessions.sort_by(|(a, a_name, _), (b, b_name, _)| b.cmp(a).then_with(|| a_name.cmp(b_name)));
        let sessions = sessions.into_iter().map(|(last, name, counts)| SessionStats {
            client_session: name.clone(),
            counts,
            last_active: rfc3339::text(last),
        });
        (all, sessions.collect())
    }
}
