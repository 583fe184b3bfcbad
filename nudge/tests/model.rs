//! Random sequences of calls against a plain model of the semantics: a list, searched from end to end.
// Times and counts here are far below 2^53.
#![allow(clippy::cast_precision_loss)]

use std::sync::Arc;

use nudge::{
    Bump, Config, Context, ContextSpec, Delete, ErrorKind, Export, Import, ImportMode, ManualClock, Nudge, Query,
    ScopeSpec, SetHint, Ttl,
};
use proptest::prelude::*;

const COMPONENTS: [&str; 3] = ["api", "http-proxy", "web"];
const KEYS: [&str; 2] = ["build", "run"];
const BRANCHES: [Option<&str>; 4] = [None, Some("dev"), Some("hotfix/*"), Some("main")];
const FOLDERS: [Option<&str>; 3] = [None, Some("/work/**"), Some("/work/api")];
const STANDS: [(&str, &str); 3] = [("/work/api", "dev"), ("/work", "hotfix/a"), ("/home", "main")];
const TTLS: [&str; 3] = ["session", "PT1H", "PT30M"];
const MAX_HINTS: usize = 12;

#[derive(Debug, Clone)]
enum Op {
    Set { component: usize, key: usize, branch: usize, folder: usize, ttl: usize, priority: u8, expect: Option<u64> },
    Get { component: usize, key: usize, stand: usize },
    Query { component: Option<usize>, stand: usize, limit: u64 },
    Bump { component: usize, key: usize, stand: usize },
    Delete { component: usize, key: usize, all: bool },
    Advance(i64),
    Reload,
}

fn op() -> impl Strategy<Value = Op> {
    let names = || (0..3_usize, 0..2_usize);
    prop_oneof![
        6 => (names(), 0..4_usize, 0..3_usize, 0..3_usize, 1..=10_u8, prop::option::weighted(0.1, 0..3_u64)).prop_map(
            |((component, key), branch, folder, ttl, priority, expect)| Op::Set { component, key, branch, folder, ttl, priority, expect }
        ),
        4 => (names(), 0..3_usize).prop_map(|((component, key), stand)| Op::Get { component, key, stand }),
        3 => (prop::option::of(0..3_usize), 0..3_usize, 1..6_u64).prop_map(|(component, stand, limit)| Op::Query { component, stand, limit }),
        2 => (names(), 0..3_usize).prop_map(|((component, key), stand)| Op::Bump { component, key, stand }),
        1 => (names(), any::<bool>()).prop_map(|((component, key), all)| Op::Delete { component, key, all }),
        2 => (1..2_400_000_i64).prop_map(Op::Advance),
        1 => Just(Op::Reload),
    ]
}

#[derive(Debug, Clone)]
struct Entry {
    component: &'static str,
    key: &'static str,
    branch: Option<&'static str>,
    folder: Option<&'static str>,
    variant: String,
    priority: u8,
    ttl_ms: i64,
    version: u64,
    updated: i64,
    uses: u64,
    used: i64,
}

impl Entry {
    fn fits(&self, (cwd, branch): (&str, &str)) -> bool {
        let branch_fits = match self.branch {
            None => true,
            Some("hotfix/*") => branch == "hotfix/a",
            Some(name) => branch == name,
        };
        let folder_fits = match self.folder {
            None => true,
            Some("/work/**") => cwd.starts_with("/work"),
            Some(name) => cwd == name,
        };
        branch_fits && folder_fits
    }

    fn fields(&self) -> u8 {
        u8::from(self.branch.is_some()) + u8::from(self.folder.is_some())
    }

    fn score(&self, now: i64) -> f64 {
        let hours = |since: i64| (now - since) as f64 / 3_600_000.0;
        let decayed = if self.uses == 0 { 0.0 } else { self.uses as f64 * 2_f64.powf(-hours(self.used) / 12.0) };
        0.3 * (1.0 - 2_f64.powf(-decayed / 4.0))
            + 0.2 * f64::from(self.priority) / 10.0
            + 0.2 * 0.5
            + 0.2 * f64::from(self.fields()) / 6.0
            + 0.1 * 2_f64.powf(-hours(self.updated) / 24.0)
    }

    fn name(&self) -> (&str, &str, &str) {
        (self.component, self.key, &self.variant)
    }
}

struct Model {
    now: i64,
    entries: Vec<Entry>,
}

impl Model {
    fn live(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| self.now < entry.updated.saturating_add(entry.ttl_ms))
    }

    fn of(&self, component: usize, key: usize) -> Vec<&Entry> {
        self.live().filter(|entry| entry.component == COMPONENTS[component] && entry.key == KEYS[key]).collect()
    }

    /// The entries that fit, best first; `by_fields` is the order among the variants of a key. Scores
    /// closer than rounding are left to the store.
    fn best(&self, mut entries: Vec<&Entry>, stand: usize, by_fields: bool) -> Vec<Entry> {
        entries.retain(|entry| entry.fits(STANDS[stand]));
        entries.sort_by(|a, b| {
            let fields = b.fields().cmp(&a.fields());
            let score = b.score(self.now).total_cmp(&a.score(self.now));
            let first = if by_fields { fields.then(score) } else { score.then(fields) };
            first.then(b.updated.cmp(&a.updated)).then(a.name().cmp(&b.name()))
        });
        entries.into_iter().cloned().collect()
    }
}

fn context(stand: usize) -> ContextSpec {
    Context::builder().cwd(STANDS[stand].0).branch(STANDS[stand].1)
}

struct Run {
    store: Nudge,
    clock: Arc<ManualClock>,
    model: Model,
}

impl Run {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new(1_767_225_600_000));
        let store = Self::store(&clock);
        Self { store, clock, model: Model { now: 1_767_225_600_000, entries: Vec::new() } }
    }

    fn store(clock: &Arc<ManualClock>) -> Nudge {
        Nudge::with_clock(
            Config { max_hints: MAX_HINTS, ..Config::default() },
            Arc::clone(clock) as Arc<dyn nudge::Clock>,
        )
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Set { component, key, branch, folder, ttl, priority, expect } => {
                self.set(component, key, branch, folder, ttl, priority, expect);
            }
            Op::Get { component, key, stand } => {
                let expected = self.model.best(self.model.of(component, key), stand, true).into_iter().next();
                let actual = self.store.get(COMPONENTS[component], KEYS[key], &context(stand).build().unwrap());
                assert_eq!(
                    actual.as_ref().map(|found| found.hint().variant()),
                    expected.as_ref().map(|entry| &*entry.variant)
                );
                if let (Some(found), Some(entry)) = (actual, expected) {
                    assert!((found.score() - entry.score(self.model.now)).abs() < 1e-9);
                    assert_eq!((found.hint().version(), found.hint().use_count()), (entry.version, entry.uses));
                }
            }
            Op::Query { component, stand, limit } => self.query(component, stand, limit),
            Op::Bump { component, key, stand } => self.bump(component, key, stand),
            Op::Delete { component, key, all } => self.delete(component, key, all),
            Op::Advance(ms) => {
                self.clock.advance(ms);
                self.model.now += ms;
                if ms % 3 == 0 {
                    self.store.sweep();
                }
            }
            Op::Reload => {
                let export = |store: &Nudge| {
                    serde_json::to_value(store.export(&Export::default()).unwrap()).unwrap()["payload"].clone()
                };
                let payload = export(&self.store);
                self.store = Self::store(&self.clock);
                let raw = serde_json::value::to_raw_value(&payload).unwrap();
                self.store.import(&Import { payload: raw, mode: ImportMode::Replace, allow_secret: false }).unwrap();
                assert_eq!(export(&self.store)["components"], payload["components"]);
            }
        }
        assert_eq!(self.store.status().hints, self.model.live().count());
    }

    // One argument per field of the call.
    #[allow(clippy::too_many_arguments)]
    fn set(
        &mut self,
        component: usize,
        key: usize,
        branch: usize,
        folder: usize,
        ttl: usize,
        priority: u8,
        expect: Option<u64>,
    ) {
        let now = self.model.now;
        let mut params = SetHint::new(COMPONENTS[component], KEYS[key], "value");
        let list = |text: Option<&str>| text.into_iter().map(str::to_owned).collect();
        params.meta.scope =
            ScopeSpec { branch: list(BRANCHES[branch]), cwd_glob: list(FOLDERS[folder]), ..ScopeSpec::default() };
        params.meta.ttl = Some(TTLS[ttl].parse().unwrap());
        params.meta.priority = Some(priority);
        params.if_match_version = expect;
        let existing = self
            .model
            .of(component, key)
            .into_iter()
            .find(|entry| (entry.branch, entry.folder) == (BRANCHES[branch], FOLDERS[folder]))
            .cloned();
        let current = existing.as_ref().map_or(0, |entry| entry.version);
        match self.store.set(params) {
            Err(error) if error.kind() == ErrorKind::Conflict => {
                assert!(expect.is_some_and(|version| version != current));
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Quota);
                assert!(existing.is_none() && self.model.live().count() == MAX_HINTS);
            }
            Ok(result) => {
                assert!(expect.is_none_or(|version| version == current));
                self.model.entries.retain(|entry| now < entry.updated.saturating_add(entry.ttl_ms));
                let variant = result.hint.variant().to_owned();
                self.model.entries.retain(|entry| entry.name() != (COMPONENTS[component], KEYS[key], &*variant));
                let ttl: Ttl = TTLS[ttl].parse().unwrap();
                self.model.entries.push(Entry {
                    component: COMPONENTS[component],
                    key: KEYS[key],
                    branch: BRANCHES[branch],
                    folder: FOLDERS[folder],
                    variant,
                    priority,
                    ttl_ms: ttl.millis().unwrap_or(i64::MAX),
                    version: current + 1,
                    updated: now,
                    uses: existing.as_ref().map_or(0, |entry| entry.uses),
                    used: existing.map_or(0, |entry| entry.used),
                });
                assert_eq!(result.hint.version(), current + 1);
                assert_eq!(result.variants, self.model.of(component, key).len());
            }
        }
    }

    fn query(&self, component: Option<usize>, stand: usize, limit: u64) {
        let entries =
            self.model.live().filter(|entry| component.is_none_or(|at| COMPONENTS[at] == entry.component)).collect();
        let expected = self.model.best(entries, stand, false);
        let params = Query {
            component: component.map(|at| COMPONENTS[at].into()),
            context: context(stand),
            limit: Some(limit),
            ..Query::default()
        };
        let rows = self.store.query(params).unwrap().hints;
        assert_eq!(rows.len(), expected.len().min(usize::try_from(limit).unwrap()));
        for (row, entry) in rows.iter().zip(&expected) {
            // Two scores that differ by rounding alone may change places.
            assert!((row.score - entry.score(self.model.now)).abs() < 1e-9);
        }
    }

    fn bump(&mut self, component: usize, key: usize, stand: usize) {
        let chosen = self.model.best(self.model.of(component, key), stand, true).into_iter().next();
        let params = Bump {
            component: COMPONENTS[component].into(),
            key: KEYS[key].into(),
            context: context(stand),
            ..Bump::default()
        };
        match (self.store.bump(params), chosen) {
            (Err(error), None) => assert_eq!(error.kind(), ErrorKind::NotFound),
            (Ok(bumped), Some(chosen)) => {
                assert_eq!(bumped.hint.variant(), chosen.variant);
                let now = self.model.now;
                let entry = self.model.entries.iter_mut().find(|entry| entry.name() == chosen.name()).unwrap();
                (entry.uses, entry.used) = (entry.uses + 1, now);
            }
            (actual, expected) => panic!("{actual:?} {expected:?}"),
        }
    }

    fn delete(&mut self, component: usize, key: usize, all: bool) {
        let count = self.model.of(component, key).len();
        match self.store.delete(&Delete {
            component: COMPONENTS[component].into(),
            key: KEYS[key].into(),
            all,
            variant: None,
        }) {
            Ok(deleted) => {
                assert_eq!(deleted.deleted_count, count);
                self.model.entries.retain(|entry| (entry.component, entry.key) != (COMPONENTS[component], KEYS[key]));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => assert_eq!(count, 0),
            Err(_) => assert!(count > 1 && !all),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn agrees_with_the_model(ops in prop::collection::vec(op(), 50..120)) {
        let mut run = Run::new();
        for op in &ops {
            run.step(op);
        }
    }
}
