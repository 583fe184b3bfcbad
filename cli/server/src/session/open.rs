//! Opens the sources of a PRIMARY, runs their periodic work, and closes them.

use std::sync::Arc;
use std::time::Instant;

use nudge::{Caller, Error, MethodSpec, Millis, Result, Service};
use nudge_core::clock::{Clock, rfc3339};
use nudge_core::embed::ModelProvider;
use nudge_core::settings::SettingValues;
use nudge_core::source::{
    ChangeEvent, ChangeSink, DataDir, SessionIdentity, SessionRows, Source, SourceHost, SourceSpec, StopFlag,
};
use nudge_core::suggest_service::SuggestService;
use nudge_storage::RestoredRows;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::changes::IN_USE;
use super::counts::SessionCounts;
use super::event::EventService;
use super::keeper::{HintKeeper, KeptRows};
use super::learn::CommandLearner;
use super::rows::{PrimaryRows, RowsBySource, SourceRows};
use crate::memory;

/// The milliseconds within which a source should open, because callers wait. The log names a slower source.
const OPEN_MS: u128 = 20;

/// The resources that every source gets when it opens.
pub struct SourceSupplies<'a> {
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The identity of the session.
    pub session: SessionIdentity,
    /// The session's rows, which also contain the fence.
    pub rows: Arc<PrimaryRows>,
    /// Keeps hints and their deletions.
    pub keeper: Arc<HintKeeper>,
    /// Receives the changes that sources commit.
    pub changes: Arc<dyn ChangeSink>,
    /// The folder in which sources keep files.
    pub data: DataDir,
    /// The folder for files that sources can make again.
    pub cache: DataDir,
    /// The model, if there is one.
    pub models: Arc<dyn ModelProvider>,
    /// The values of the settings.
    pub settings: Arc<SettingValues>,
    /// Counts the lines that the session tells.
    pub counts: Arc<SessionCounts>,
    /// Returns true when the process no longer wants to become PRIMARY while the sources open.
    pub given_up: &'a dyn Fn() -> bool,
}

/// The open sources, in the order of the list.
pub struct OpenSources {
    all: Vec<(&'static SourceSpec, Arc<dyn Source>)>,
    clock: Arc<dyn Clock>,
    suggest: Arc<SuggestService>,
    events: Arc<EventService>,
    counts: Arc<SessionCounts>,
    /// The stop flags of the sources, in the same order. A flag interrupts only the waiting thread of its source.
    stops: Vec<StopFlag>,
    models: Arc<dyn ModelProvider>,
}

impl OpenSources {
    /// Opens every source of the list with its rows of the session. The first source must be that of the
    /// hints.
    ///
    /// # Errors
    /// The error of the first source, if it cannot be opened.
    ///
    /// # Panics
    /// Panics for an empty list.
    pub fn open(lent: &SourceSupplies<'_>, list: &[&'static SourceSpec], rows: RestoredRows) -> Result<Self> {
        let mut rows = RowsBySource::new(rows.rows);
        let mut all: Vec<(&SourceSpec, Arc<dyn Source>)> = Vec::with_capacity(list.len());
        for spec in list {
            let begun = Instant::now();
            let own = rows.take_source(spec.name);
            let own_rows = SourceRows::new(&lent.rows, spec.name);
            let session_rows: Arc<dyn SessionRows> = if spec.name == nudge::HINTS {
                Arc::new(KeptRows { rows: own_rows, keeper: Arc::clone(&lent.keeper) })
            } else {
                Arc::new(own_rows)
            };
            let host = SourceHost {
                clock: Arc::clone(&lent.clock),
                session: lent.session.clone(),
                data: lent.data.clone(),
                cache: lent.cache.clone(),
                fence: Arc::clone(&lent.rows) as _,
                session_rows,
                rows: Box::new(own.into_iter().take_while(|_| !(lent.given_up)())),
                changes: Arc::clone(&lent.changes),
                models: Arc::clone(&lent.models),
                settings: Arc::new(lent.settings.select(spec.settings)),
            };
            let opened = match (spec.open)(host) {
                // The session needs only the first source. If another source cannot be opened, its stand-in returns the
                // error.
                Err(error) if !all.is_empty() => {
                    tracing::error!(source = spec.name, error = error.message(), "cannot be opened");
                    Arc::new(UnopenedSource { spec, error })
                }
                opened => opened?,
            };
            all.push((*spec, opened));
            let ms = begun.elapsed().as_millis();
            if ms > OPEN_MS {
                tracing::info!(source = spec.name, ms, "opened slowly");
            }
        }
        let asked = all.clone();
        let (_, hints) = all.first().expect("the hints are the first in each list of sources");
        let hints = Arc::clone(hints) as Arc<dyn Service>;
        let max_lines = lent.settings.get_count("suggest_max");
        let mut suggest = SuggestService::new(max_lines, Arc::clone(&lent.clock), Arc::clone(&lent.models), asked);
        let counts = Arc::clone(&lent.counts);
        suggest = suggest.with_more_stats(Arc::new(move |new| counts.describe_stats(new)));
        if lent.settings.is_on("learn") {
            suggest = suggest.with_listener(Arc::new(CommandLearner::new(Arc::clone(&hints), Arc::clone(&lent.clock))));
        }
        let suggest = Arc::new(suggest);
        let events = Arc::new(EventService::new(Arc::clone(&suggest), hints, &lent.session.id));
        let stops = all.iter().map(|_| StopFlag::default()).collect();
        let (clock, counts, models) = (Arc::clone(&lent.clock), Arc::clone(&lent.counts), Arc::clone(&lent.models));
        Ok(Self { all, clock, suggest, events, counts, stops, models })
    }

    /// Starts a thread for each source that has work of its own; the thread runs [`Source::work`].
    pub fn begin_work(&self) {
        let working = self.all.iter().zip(&self.stops).filter(|((spec, _), _)| spec.works);
        for ((spec, source), stop) in working {
            let (source, stop) = (Arc::clone(source), stop.clone());
            let thread = std::thread::Builder::new().name(format!("nudge-{}", spec.name));
            if let Err(error) = thread.spawn(move || source.work(&stop)) {
                tracing::error!(source = spec.name, %error, "its work cannot be started");
            }
        }
    }

    /// Lists the services that answer calls: first the services that combine all sources, then each source.
    pub fn list_services(&self) -> Vec<Arc<dyn Service>> {
        let shared = [Arc::clone(&self.suggest) as Arc<dyn Service>, Arc::clone(&self.events) as _];
        let each = self.all.iter().map(|(_, source)| Arc::clone(source) as Arc<dyn Service>);
        shared.into_iter().chain(each).collect()
    }

    /// Lists the methods of the services that combine all sources.
    pub fn shared_methods(&self) -> Vec<&'static MethodSpec> {
        self.suggest.methods().into_iter().chain(self.events.methods()).collect()
    }

    /// Iterates over every source with its spec.
    pub fn iter(&self) -> impl Iterator<Item = (&'static SourceSpec, &dyn Source)> {
        self.all.iter().map(|(spec, source)| (*spec, &**source))
    }

    /// Returns the names of the sources in use.
    pub fn in_use(&self) -> Vec<&'static str> {
        self.iter().filter(|(_, source)| source.in_use()).map(|(spec, _)| spec.name).collect()
    }

    /// Returns the number of hints.
    pub fn count_hints(&self) -> usize {
        let count = |(_, source): (&SourceSpec, &dyn Source)| source.report_status().get(nudge::HINTS)?.as_u64();
        self.iter().find_map(count).and_then(|count| usize::try_from(count).ok()).unwrap_or_default()
    }

    /// Makes the change that says whether a source is now in use.
    pub fn in_use_event(&self, source: &'static str) -> ChangeEvent {
        ChangeEvent {
            source,
            what: IN_USE,
            at: rfc3339::format_time(self.clock.now()),
            by: String::new(),
            touched: Vec::new(),
            detail: Map::new(),
        }
    }

    /// Runs the periodic work of every source.
    pub fn tick(&self) {
        let now: Millis = self.clock.now();
        self.all.iter().for_each(|(_, source)| source.tick(now));
        if self.models.drop_idle() {
            memory::note_use(usize::MAX);
        }
        self.write_counts();
    }

    /// Adds the new counts to those of earlier sessions, if the session keeps its hints.
    pub fn write_counts(&self) {
        self.counts.write(self.suggest.take_new_counts());
    }

    /// Forgets all counts.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when their database cannot be removed.
    pub fn forget_counts(&self) -> Result<()> {
        self.counts.forget(self.suggest.take_new_counts())
    }

    /// Stops the work of the sources. From now on they refuse every change.
    pub fn close(&self) {
        self.stops.iter().for_each(StopFlag::set);
        self.all.iter().for_each(|(_, source)| source.close());
        self.write_counts();
    }
}

/// Closes the sources at every end of the server, even before it has begun to answer.
impl Drop for OpenSources {
    fn drop(&mut self) {
        self.close();
    }
}

/// Stands for a source that could not be opened: returns the error to its callers. The other sources work.
struct UnopenedSource {
    spec: &'static SourceSpec,
    error: Error,
}

impl Service for UnopenedSource {
    fn methods(&self) -> Vec<&'static MethodSpec> {
        (self.spec.methods)()
    }

    fn call_by(&self, _: Caller<'_>, _: &str, _: &RawValue) -> Result<Box<RawValue>> {
        Err(self.error.clone())
    }
}

impl Source for UnopenedSource {
    fn in_use(&self) -> bool {
        false
    }

    fn report_status(&self) -> Map<String, Value> {
        Map::from_iter([(self.spec.name.to_owned(), json!({"error": self.error.message()}))])
    }
}
