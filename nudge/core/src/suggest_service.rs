//! Asks every source for offers at the same time, and answers `nudge.suggest`, `nudge.digest`, `nudge.told`,
//! `nudge.recall`, `nudge.outcome`, `nudge.stats` and `nudge.client_sessions`.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::context::{EnvNames, ask_env_of};
use crate::embed::ModelProvider;
use crate::error::Result;
use crate::once::OnceByKey;
use crate::patience::{self, ThreadSlots};
use crate::service::{Caller, ContextUse, MethodSpec};
use crate::source::{Source, SourceSpec};
use crate::suggest::{
    self, CLIENT_SESSIONS, ClientSessionTold, ClientSessions, CommandOutcome, DIGEST, DigestText, NewCounts, OUTCOME,
    Offered, OutcomeParams, RECALL, RecallAnswer, RecallParams, STATS, SUGGEST, SourceOffers, SuggestAnswer,
    SuggestMoment, SuggestParams, SuggestRequest, Suggester, TOLD, ToldAnswer, ToldParams,
};
use crate::table::{MethodTable, NoParams, TableRow, TableService, answer_typed};

/// Receives the outcomes of commands, after the sources have counted them.
pub trait CommandListener: Send + Sync {
    /// Is called when a command failed and its agent asks for lines that may repair the failure.
    fn note_failure(&self, request: &SuggestRequest);

    /// Is called when a command ended. `matched` are the changed items of the sources, in the form of the answer.
    fn note_outcome(&self, caller: Caller<'_>, ran: &CommandOutcome<'_>, matched: &[Box<RawValue>]);
}

/// All sources of a server. Each request goes to all of them.
pub struct SuggestService {
    suggester: Suggester,
    clock: Arc<dyn Clock>,
    models: Arc<dyn ModelProvider>,
    /// The sources in the order of the list.
    sources: Vec<SuggestSource>,
    listener: Option<Arc<dyn CommandListener>>,
    more_stats: Option<Arc<MoreStats>>,
}

/// Returns members that a server adds to the answer of `nudge.stats`, given [`SuggestService::take_new_counts`].
pub type MoreStats = dyn Fn(NewCounts) -> Map<String, Value> + Send + Sync;

struct SuggestSource {
    name: &'static str,
    /// The method that lists the source's contents.
    list: &'static str,
    source: Arc<dyn Source>,
    /// The threads that ask the source. If all of them are busy, the source is not asked and counts as late.
    threads: ThreadSlots,
}

static TABLE: MethodTable<SuggestService> = MethodTable(&[
    &TableRow {
        method: SUGGEST,
        run: |service, _, params| answer_typed(params, |params| service.answer_suggest(params)),
    },
    &TableRow {
        method: DIGEST,
        run: |service, _, params| answer_typed(params, |params| service.answer_digest(params)),
    },
    &TableRow { method: TOLD, run: |service, _, params| answer_typed(params, |params| service.answer_told(&params)) },
    &TableRow {
        method: RECALL,
        run: |service, _, params| answer_typed(params, |params| service.answer_recall(params)),
    },
    &TableRow {
        method: OUTCOME,
        run: |service, caller, params| answer_typed(params, |params| service.answer_outcome(caller, params)),
    },
    &TableRow {
        method: STATS,
        run: |service, _, params| answer_typed(params, |_: NoParams| Ok(service.answer_stats())),
    },
    &TableRow {
        method: CLIENT_SESSIONS,
        run: |service, _, params| answer_typed(params, |params| service.client_sessions(&params)),
    },
]);

/// Result of `nudge.client_sessions`.
#[derive(serde::Serialize)]
struct ToldSessions {
    sessions: Vec<ClientSessionTold>,
}

/// Result of `nudge.outcome`.
#[derive(Debug, serde::Serialize)]
pub struct MatchedOffers {
    /// The changed items.
    pub matched: Vec<Box<RawValue>>,
}

impl SuggestService {
    /// Makes the service for these sources, in this order. `max` is the most offers that one client session is told in
    /// 10 minutes.
    pub fn new(
        max: usize,
        clock: Arc<dyn Clock>,
        models: Arc<dyn ModelProvider>,
        sources: Vec<(&'static SourceSpec, Arc<dyn Source>)>,
    ) -> Self {
        let asked = |(spec, source): (&SourceSpec, _)| SuggestSource {
            name: spec.name,
            list: spec.list,
            source,
            threads: ThreadSlots::default(),
        };
        let sources = sources.into_iter().map(asked).collect();
        Self { suggester: Suggester::new(max), clock, models, sources, listener: None, more_stats: None }
    }

    /// Sets the listener for the outcomes of commands.
    #[must_use]
    pub fn with_listener(self, listener: Arc<dyn CommandListener>) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// Sets the function that adds members to the answer of `nudge.stats`.
    #[must_use]
    pub fn with_more_stats(self, more_stats: Arc<MoreStats>) -> Self {
        Self { more_stats: Some(more_stats), ..self }
    }

    /// Returns the method that lists a source's contents.
    pub fn find_list(&self, source: &str) -> Option<&'static str> {
        self.sources.iter().find(|asked| asked.name == source).map(|asked| asked.list)
    }

    /// Answers `nudge.suggest`.
    ///
    /// # Errors
    /// `E_INVALID` for params out of range.
    pub fn answer_suggest(&self, params: SuggestParams) -> Result<SuggestAnswer> {
        let ask = |request: &Arc<SuggestRequest>| {
            let offered = self.ask_sources(request);
            if let Some(listener) = self.listener.as_ref().filter(|_| request.moment == SuggestMoment::Failure) {
                listener.note_failure(request);
            }
            offered
        };
        self.suggester.answer_suggest(params, || self.clock.now(), ask)
    }

    fn answer_digest(&self, params: SuggestParams) -> Result<DigestText> {
        suggest::answer_digest(params, |name| self.find_list(name), |params| self.answer_suggest(params))
    }

    fn answer_told(&self, params: &ToldParams) -> Result<ToldAnswer> {
        self.suggester.answer_told(params, self.clock.now())
    }

    fn answer_recall(&self, params: RecallParams) -> Result<RecallAnswer> {
        let names: Vec<_> = self.sources.iter().map(|asked| asked.name).collect();
        suggest::answer_recall(params, &names, self.clock.now(), |request| self.ask_sources(request))
    }

    /// Asks all sources at the same time: the first one on this thread, the others on their own threads, until the
    /// deadline. If the caller has stopped waiting, no source is asked.
    fn ask_sources(&self, request: &Arc<SuggestRequest>) -> Offered {
        if patience::is_over() {
            let asked = self.sources.iter().filter(|asked| request.asks_source(asked.name));
            return (Vec::new(), asked.map(|asked| asked.name).collect());
        }
        // A good model takes a fifth of the time. The sources have the rest.
        request.embed_question(&*self.models, request.time_left() * 3 / 5);
        let mut asked = self.sources.iter().filter(|asked| request.asks_source(asked.name));
        // The first source is usually the hints. They answer from memory, so a thread would cost more than the answer.
        let here = asked.next();
        let others: Vec<_> = asked.map(|asked| (asked.name, asked.start_question(request))).collect();
        let mut offered: Vec<_> =
            here.map(|asked| (asked.name, asked.source.find_offers(request))).into_iter().collect();
        let mut late = Vec::new();
        for (name, offers) in others {
            match offers.and_then(|offers| offers.recv_timeout(request.time_left()).ok()) {
                Some(offers) => offered.push((name, offers)),
                None => late.push(name),
            }
        }
        (offered, late)
    }

    /// Answers `nudge.outcome`: reports the outcome to every source.
    ///
    /// # Errors
    /// `E_INVALID` for params out of range, and for a key that was used for another call. If no source could count the
    /// outcome, the first error of a source.
    pub fn answer_outcome(&self, caller: Caller<'_>, params: OutcomeParams) -> Result<MatchedOffers> {
        let (context, params) = params.into_checked()?;
        let ran = params.to_outcome(&context);
        let (mut matched, mut failed) = (Vec::new(), None);
        for SuggestSource { name, source, .. } in &self.sources {
            let counted = match source.note_outcome(caller, &ran) {
                Ok(counted) => counted,
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            if let Some(session) = &params.client_session {
                self.suggester.count_ended(session, name, &counted.ids, params.ok, self.clock.now());
            }
            matched.extend(counted.matched);
        }
        match failed {
            Some(error) if matched.is_empty() => Err(error),
            // At least one source has counted the outcome. The counts stay even if another source fails.
            _ => {
                if let Some(listener) = &self.listener {
                    listener.note_outcome(caller, &ran, &matched);
                }
                Ok(MatchedOffers { matched })
            }
        }
    }

    /// Returns the statistics of the sources, followed by the outcome of the suggestions.
    fn answer_stats(&self) -> Map<String, Value> {
        let mut out: Map<_, _> = self.sources.iter().flat_map(|asked| asked.source.report_stats()).collect();
        let (all, sessions, hours) = self.suggester.collect_stats();
        if let Ok(Value::Object(all)) = serde_json::to_value(all) {
            out.extend(all);
        }
        out.insert("sessions".into(), serde_json::to_value(sessions).expect("plain data is JSON"));
        out.insert("hours".into(), serde_json::to_value(hours).expect("plain data is JSON"));
        out.extend(self.more_stats.iter().flat_map(|more| more(self.take_new_counts())));
        out
    }

    /// Returns the outcome of the suggestions since the last call, for a server that adds them up.
    pub fn take_new_counts(&self) -> NewCounts {
        self.suggester.take_new_counts()
    }

    fn client_sessions(&self, asked: &ClientSessions) -> Result<ToldSessions> {
        let is_secret = |source: &str, id: &str| {
            let found = self.sources.iter().find(|asked| asked.name == source);
            found.is_some_and(|asked| asked.source.is_secret(id))
        };
        Ok(ToldSessions { sessions: self.suggester.client_sessions(asked, is_secret)? })
    }
}

impl SuggestSource {
    /// Asks the source on another thread; `None` when all threads of the source are busy.
    fn start_question(&self, request: &Arc<SuggestRequest>) -> Option<Receiver<SourceOffers>> {
        let (source, request) = (Arc::clone(&self.source), Arc::clone(request));
        self.threads.start("nudge-offers", request.deadline, move || source.find_offers(&request))
    }
}

impl TableService for SuggestService {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    // `nudge.outcome` passes its key to each source. The other methods change only the told lines of a client session.
    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        None
    }

    fn ask_env(&self, method: &MethodSpec, params: &RawValue) -> Result<()> {
        if method.context == ContextUse::None {
            return Ok(());
        }
        ask_env_of(params, method.context == ContextUse::InferredIfGiven, || {
            let mut names = EnvNames::default();
            self.sources.iter().for_each(|asked| names.add_all(asked.source.env_names()));
            names
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::clock::SystemClock;
    use crate::embed::NoModels;
    use crate::explain::{MatchExplain, ScoreParts};
    use crate::patience::MAX_THREADS;
    use crate::service::Service;
    use crate::suggest::{MoreCall, Offer, SourceItem};

    /// A source with one offer. If it has a barrier, it waits at the barrier before it answers.
    struct One(&'static str, Option<Arc<Barrier>>);

    impl Service for One {
        fn methods(&self) -> Vec<&'static MethodSpec> {
            Vec::new()
        }

        fn call_by(&self, _: Caller<'_>, name: &str, _: &RawValue) -> Result<Box<RawValue>> {
            Err(crate::service::unknown_method(name, &[]))
        }
    }

    impl Source for One {
        fn find_offers(&self, _: &SuggestRequest) -> SourceOffers {
            if let Some(barrier) = &self.1 {
                barrier.wait();
            }
            assert_ne!(self.0, "broken", "a source that panics");
            let offer = Offer {
                id: self.0.into(),
                name: self.0.into(),
                line: self.0.into(),
                parts: ScoreParts::from([("x", 0.5)]),
                stamp: 0,
                paths: Vec::new(),
                command: None,
                must: false,
                why: String::new(),
                explain: MatchExplain { matched: true, score: 0.5, parts: ScoreParts::default(), reasons: Vec::new() },
                more: MoreCall { method: "nudge.x", params: to_raw_value(&json!({})).unwrap() },
                item: SourceItem(to_raw_value(&json!({})).unwrap()),
            };
            SourceOffers { offers: vec![offer], ..SourceOffers::default() }
        }

        fn report_status(&self) -> Map<String, Value> {
            Map::new()
        }
    }

    fn service(sources: Vec<One>) -> SuggestService {
        let spec = |name| SourceSpec {
            name,
            methods: Vec::new,
            guide: "",
            settings: &[],
            resources: None,
            list: "nudge.x",
            env: &[],
            alone: false,
            commands: &[],
            works: false,
            open: |_| Err(crate::service::unknown_method("", &[])),
        };
        let build_source = |source: One| (&*Box::leak(Box::new(spec(source.0))), Arc::new(source) as Arc<dyn Source>);
        let sources = sources.into_iter().map(build_source).collect();
        SuggestService::new(20, Arc::new(SystemClock), Arc::new(NoModels), sources)
    }

    fn ask(service: &SuggestService, method: &str, params: &Value) -> Value {
        let told = service.call(method, &to_raw_value(params).unwrap()).unwrap();
        serde_json::from_str(told.get()).unwrap()
    }

    fn names(told: &Value, rows: &str) -> Vec<String> {
        told[rows].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn who_is_late_or_breaks_is_named_and_holds_up_nobody() {
        let barrier = Arc::new(Barrier::new(2));
        let slow = One("slow", Some(Arc::clone(&barrier)));
        let service = service(vec![One("first", None), slow, One("broken", None), One("last", None)]);
        let told = ask(&service, "nudge.suggest", &json!({"event": "start", "client_session": "s"}));
        assert_eq!(
            (names(&told, "suggestions"), &told["late"]),
            (vec!["first".into(), "last".into()], &json!(["slow", "broken"]))
        );
        // The source still waits at the barrier, so it is late, and a later answer has its offer.
        barrier.wait();
        let fell = std::thread::spawn(move || barrier.wait().is_leader());
        let again = loop {
            let told = ask(&service, "nudge.suggest", &json!({"event": "start", "client_session": "s"}));
            if !names(&told, "suggestions").is_empty() {
                break told;
            }
        };
        assert_eq!(names(&again, "suggestions"), ["slow"], "the others were told");
        fell.join().unwrap();
    }

    /// A hook that sends no time limit has 45 ms.
    #[test]
    fn who_waits_longer_is_told_of_slower_sources() {
        let barrier = Arc::new(Barrier::new(2));
        let service = service(vec![One("first", None), One("slow", Some(Arc::clone(&barrier)))]);
        std::thread::scope(|threads| {
            let asked =
                threads.spawn(|| ask(&service, "nudge.suggest", &json!({"event": "start", "confirm_ms": 60_000})));
            std::thread::sleep(std::time::Duration::from_millis(45));
            barrier.wait();
            let told = asked.join().unwrap();
            assert_eq!((names(&told, "suggestions").len(), told.get("late")), (2, None));
        });
    }

    #[test]
    fn a_source_that_hangs_takes_no_thread_for_every_question() {
        let barrier = Arc::new(Barrier::new(MAX_THREADS + 1));
        let service = service(vec![One("first", None), One("slow", Some(Arc::clone(&barrier)))]);
        for _ in 0..MAX_THREADS + 3 {
            let told = ask(&service, "nudge.recall", &json!({"query": "x"}));
            assert_eq!(told["late"], json!(["slow"]));
        }
        assert_eq!(service.sources[1].threads.count_running(), MAX_THREADS);
        barrier.wait();
        while service.sources[1].threads.count_running() > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn only_the_sources_that_are_named_are_asked() {
        let barrier = Arc::new(Barrier::new(2));
        let service = service(vec![One("first", Some(barrier)), One("other", None)]);
        let told = ask(&service, "nudge.recall", &json!({"query": "x", "sources": ["other"]}));
        assert_eq!((names(&told, "items"), told.get("late")), (vec!["other".into()], None));
        let refused = service.call("nudge.recall", &to_raw_value(&json!({"query": "x", "sources": ["no"]})).unwrap());
        assert!(refused.unwrap_err().message().contains("first, other"));
    }
}
