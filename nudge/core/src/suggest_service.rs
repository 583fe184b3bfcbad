//! Asks every source at once, and answers `nudge.suggest`, `nudge.digest`, `nudge.told`, `nudge.recall`,
//! `nudge.outcome`, `nudge.stats` and `nudge.client_sessions`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::context::{EnvNames, ask_env_of};
use crate::embed::Models;
use crate::error::Result;
use crate::once::Once;
use crate::patience::{self, CallLimit};
use crate::service::{Caller, ContextUse, Method};
use crate::source::{Source, SourceSpec};
use crate::suggest::{
    self, CLIENT_SESSIONS, ClientSessionTold, ClientSessions, Confirmed, DIGEST, DigestText, OUTCOME, Offered, Offers,
    Outcome, RECALL, Recall, Recalled, STATS, SUGGEST, Suggest, SuggestRequest, Suggester, Suggestions, TOLD, Told,
};
use crate::table::{NoParams, Row, Table, TableService, answer};

/// Most requests that one source may be answering at a time. A source with so many counts as late and is not asked, so
/// that one that hangs does not take a thread for every prompt.
const MAX_ASKED: usize = 4;

/// The sources of a server, asked together.
pub struct SuggestService {
    suggester: Suggester,
    clock: Arc<dyn Clock>,
    models: Arc<dyn Models>,
    /// By name, in the order of the list.
    sources: Vec<Asked>,
}

struct Asked {
    name: &'static str,
    /// The method that lists its contents.
    list: &'static str,
    source: Arc<dyn Source>,
    open: Arc<AtomicUsize>,
}

static TABLE: Table<SuggestService> = Table(&[
    &Row { method: SUGGEST, run: |service, _, params| answer(params, |params| service.suggest(params)) },
    &Row { method: DIGEST, run: |service, _, params| answer(params, |params| service.digest(params)) },
    &Row { method: TOLD, run: |service, _, params| answer(params, |params| service.told(&params)) },
    &Row { method: RECALL, run: |service, _, params| answer(params, |params| service.recall(params)) },
    &Row { method: OUTCOME, run: |service, by, params| answer(params, |params| service.outcome(by, params)) },
    &Row { method: STATS, run: |service, _, params| answer(params, |_: NoParams| Ok(service.stats())) },
    &Row {
        method: CLIENT_SESSIONS,
        run: |service, _, params| answer(params, |params| service.client_sessions(&params)),
    },
]);

/// Result of `nudge.client_sessions`.
#[derive(serde::Serialize)]
struct ToldSessions {
    sessions: Vec<ClientSessionTold>,
}

#[derive(serde::Serialize)]
struct Matched {
    matched: Vec<Box<RawValue>>,
}

impl SuggestService {
    /// Asks these sources, in this order; `max` is the most offers that one client session is told in 10 minutes.
    pub fn new(
        max: usize,
        clock: Arc<dyn Clock>,
        models: Arc<dyn Models>,
        sources: Vec<(&'static SourceSpec, Arc<dyn Source>)>,
    ) -> Self {
        let asked =
            |(spec, source): (&SourceSpec, _)| Asked { name: spec.name, list: spec.list, source, open: Arc::default() };
        let sources = sources.into_iter().map(asked).collect();
        Self { suggester: Suggester::new(max), clock, models, sources }
    }

    fn suggest(&self, params: Suggest) -> Result<Suggestions> {
        self.suggester.suggest(params, || self.clock.now(), |request| self.ask(request))
    }

    fn digest(&self, params: Suggest) -> Result<DigestText> {
        let lists = |name: &str| self.sources.iter().find(|asked| asked.name == name).map(|asked| asked.list);
        suggest::digest(params, lists, |params| self.suggest(params))
    }

    fn told(&self, params: &Told) -> Result<Confirmed> {
        self.suggester.told(params, self.clock.now())
    }

    fn recall(&self, params: Recall) -> Result<Recalled> {
        let names: Vec<_> = self.sources.iter().map(|asked| asked.name).collect();
        suggest::recall(params, &names, self.clock.now(), |request| self.ask(request))
    }

    /// Asks all sources at once, the first on this thread, and waits for the others until the deadline.
    /// No source is asked for a caller that has gone.
    fn ask(&self, request: &Arc<SuggestRequest>) -> Offered {
        if patience::is_over() {
            let asked = self.sources.iter().filter(|asked| request.asks(asked.name));
            return (Vec::new(), asked.map(|asked| asked.name).collect());
        }
        // A good model takes a fifth of the time that there is, and the sources have the rest.
        request.understand(&*self.models, request.time_left() * 3 / 5);
        let mut asked = self.sources.iter().filter(|asked| request.asks(asked.name));
        // As a rule the hints, which answer from memory: a thread for it would cost more than it does.
        let here = asked.next();
        let others: Vec<_> = asked.map(|asked| (asked.name, asked.ask(request))).collect();
        let mut offered: Vec<_> = here.map(|asked| (asked.name, asked.source.offers(request))).into_iter().collect();
        let mut late = Vec::new();
        for (name, offers) in others {
            match offers.and_then(|offers| offers.recv_timeout(request.time_left()).ok()) {
                Some(offers) => offered.push((name, offers)),
                None => late.push(name),
            }
        }
        (offered, late)
    }

    fn outcome(&self, by: Caller<'_>, params: Outcome) -> Result<Matched> {
        let (context, params) = params.checked()?;
        let ran = params.ran(&context);
        let (mut matched, mut failed) = (Vec::new(), None);
        for Asked { name, source, .. } in &self.sources {
            let counted = match source.outcome(by, &ran) {
                Ok(counted) => counted,
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            if let Some(session) = &params.client_session {
                self.suggester.ended(session, name, &counted.ids, params.ok, self.clock.now());
            }
            matched.extend(counted.matched);
        }
        match failed {
            Some(error) if matched.is_empty() => Err(error),
            // The call was made: counts of one source stay, even if another fails.
            _ => Ok(Matched { matched }),
        }
    }

    /// The statistics of the sources, then the outcome of suggestions.
    fn stats(&self) -> Map<String, Value> {
        let mut out: Map<_, _> = self.sources.iter().flat_map(|asked| asked.source.stats()).collect();
        let (all, sessions, hours) = self.suggester.stats();
        if let Ok(Value::Object(all)) = serde_json::to_value(all) {
            out.extend(all);
        }
        out.insert("sessions".into(), serde_json::to_value(sessions).unwrap_or_default());
        out.insert("hours".into(), serde_json::to_value(hours).unwrap_or_default());
        out
    }

    fn client_sessions(&self, asked: &ClientSessions) -> Result<ToldSessions> {
        let is_secret = |source: &str, id: &str| {
            let of = self.sources.iter().find(|asked| asked.name == source);
            of.is_some_and(|asked| asked.source.is_secret(id))
        };
        Ok(ToldSessions { sessions: self.suggester.client_sessions(asked, is_secret)? })
    }
}

impl Asked {
    /// Asks on a thread of its own; `None` when it has enough questions open.
    fn ask(&self, request: &Arc<SuggestRequest>) -> Option<Receiver<Offers>> {
        if self.open.fetch_add(1, Ordering::SeqCst) >= MAX_ASKED {
            self.open.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        let (sender, offers) = channel();
        let question = Question(Arc::clone(&self.open));
        let (source, request) = (Arc::clone(&self.source), Arc::clone(request));
        // Offers found after the deadline are dropped.
        let limit = CallLimit::current().unwrap_or_else(|| CallLimit::within(request.time_left()));
        let limit = limit.until(request.deadline);
        let answer = move || {
            let _question = question;
            // The caller may have gone.
            let _ = sender.send(limit.run(|| source.offers(&request)));
        };
        std::thread::Builder::new().name("nudge-offers".into()).spawn(answer).ok().map(|_| offers)
    }
}

/// A question that is open until this is dropped, in a panic too.
struct Question(Arc<AtomicUsize>);

impl Drop for Question {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl TableService for SuggestService {
    const TABLE: &'static Table<Self> = &TABLE;

    // `nudge.outcome` hands its key on to each source; the others keep only the lines that a client session was told.
    fn once(&self, _: &Method) -> Option<&dyn Once> {
        None
    }

    fn ask_env(&self, method: &Method, params: &RawValue) -> Result<()> {
        if method.context == ContextUse::None {
            return Ok(());
        }
        ask_env_of(params, method.context == ContextUse::InferredIfGiven, || {
            let mut names = EnvNames::default();
            self.sources.iter().for_each(|asked| names.extend(asked.source.env_names()));
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
    use crate::explain::{MatchExplain, Parts};
    use crate::service::Service;
    use crate::suggest::{Item, More, Offer};

    /// A source with one offer, which it makes when the barrier falls, if there is one.
    struct One(&'static str, Option<Arc<Barrier>>);

    impl Service for One {
        fn methods(&self) -> Vec<&'static Method> {
            Vec::new()
        }

        fn call_by(&self, _: Caller<'_>, name: &str, _: &RawValue) -> Result<Box<RawValue>> {
            Err(crate::service::unknown_method(name, &[]))
        }
    }

    impl Source for One {
        fn offers(&self, _: &SuggestRequest) -> Offers {
            if let Some(barrier) = &self.1 {
                barrier.wait();
            }
            assert_ne!(self.0, "broken", "a source that panics");
            let offer = Offer {
                id: self.0.into(),
                name: self.0.into(),
                line: self.0.into(),
                parts: Parts::from([("x", 0.5)]),
                stamp: 0,
                paths: Vec::new(),
                must: false,
                why: String::new(),
                explain: MatchExplain { matched: true, score: 0.5, parts: Parts::default(), reasons: Vec::new() },
                more: More { method: "nudge.x", params: to_raw_value(&json!({})).unwrap() },
                item: Item(to_raw_value(&json!({})).unwrap()),
            };
            Offers { offers: vec![offer], ..Offers::default() }
        }

        fn status(&self) -> Map<String, Value> {
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
        let of = |one: One| (&*Box::leak(Box::new(spec(one.0))), Arc::new(one) as Arc<dyn Source>);
        let sources = sources.into_iter().map(of).collect();
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
        // It answers nobody now, and is told of when it is there again.
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

    /// 45 ms are those of a hook that was given no other time.
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
        let barrier = Arc::new(Barrier::new(MAX_ASKED + 1));
        let service = service(vec![One("first", None), One("slow", Some(Arc::clone(&barrier)))]);
        for _ in 0..MAX_ASKED + 3 {
            let told = ask(&service, "nudge.recall", &json!({"query": "x"}));
            assert_eq!(told["late"], json!(["slow"]));
        }
        assert_eq!(service.sources[1].open.load(Ordering::SeqCst), MAX_ASKED);
        barrier.wait();
        while service.sources[1].open.load(Ordering::SeqCst) > 0 {
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
