//! Measures lookups with one context.

use nudge::{Context, HintMeta, Nudge, Os, ScopeSpec, SetHint, View};
use nudge_core::scope::Scope;

use crate::allocations;
use crate::data::{self, Random};
use crate::measure::{interleave, work};
use crate::peers::lookup::{self, BareMap, Choosing, Variant};
use crate::table::{Line, Scale, versus};

/// The number of keys that one agent looks up in turn. They are spread over the whole store.
const ASKED: usize = 64;

/// The names in the store, in random order. The first [`ASKED`] names are looked up.
pub(super) struct Names {
    names: Vec<(String, String)>,
    joined: Vec<String>,
}

impl Names {
    fn new(keys: usize) -> Self {
        let order = Random(7).shuffled(keys);
        let names: Vec<_> =
            order.iter().map(|index| (format!("service-{:02}", index % 100), format!("build-{index}"))).collect();
        let joined = names.iter().map(|(component, key)| format!("{component}/{key}")).collect();
        Self { names, joined }
    }

    /// Returns the index of the name that is looked up next.
    pub(super) fn asked(&self, step: usize) -> usize {
        step % ASKED.min(self.names.len())
    }

    pub(super) fn at(&self, step: usize) -> (&str, &str) {
        let (component, key) = &self.names[step];
        (component, key)
    }

    /// Returns all names that are looked up, in the order of the lookups.
    pub(super) fn all_asked(&self) -> &[(String, String)] {
        &self.names[..ASKED.min(self.names.len())]
    }

    fn joined(&self, step: usize) -> &str {
        &self.joined[step]
    }
}

const VALUE: &str = "docker compose build --service service-12 --profile dev-00af";

pub(super) struct Stores {
    pub(super) nudge: Nudge,
    bare: BareMap,
    moka: moka::sync::Cache<String, std::sync::Arc<str>>,
    pub(super) names: Names,
}

/// Makes a store of the default size with `variants` for each key. The peers have one value for each key.
pub(super) fn stores(hints: usize, variants: &[ScopeSpec]) -> Stores {
    let keys = hints / variants.len();
    let out = Stores {
        nudge: Nudge::new(data::config()),
        bare: BareMap::default(),
        moka: lookup::moka(hints),
        names: Names::new(keys),
    };
    for index in 0..keys {
        let (component, key) = out.names.at(index);
        for scope in variants {
            let meta = HintMeta { scope: scope.clone(), ..HintMeta::default() };
            out.nudge.set(SetHint { meta, ..SetHint::new(component, key, VALUE) }).expect("the data is valid");
        }
        out.bare.set(component, key, VALUE);
        out.moka.insert(out.names.joined(index).to_owned(), VALUE.into());
    }
    out.moka.run_pending_tasks();
    out
}

/// Measures `get` through a view that lasts for all lookups.
pub fn warm(scale: &Scale) -> Vec<Line> {
    let mut lines = Vec::new();
    for (count, limit) in [(1, 3.0), (4, 3.5)] {
        let stores = stores(scale.small, &data::variants(count));
        let view = View::new(&stores.nudge, data::place().build().expect("the place is valid"));
        let Stores { bare, moka, names, .. } = &stores;
        let choosing = choosing(&stores, &data::variants(count), &view);
        let get = |step| {
            let (component, key) = names.at(names.asked(step));
            view.get(component, key).expect("stored")
        };
        let times = interleave(
            scale.turns,
            &mut [
                work(get),
                work(|step| {
                    let (component, key) = names.at(names.asked(step));
                    bare.get(component, key).expect("stored")
                }),
                work(|step| moka.get(names.joined(names.asked(step))).expect("stored")),
                work(|step| {
                    let (component, key) = names.at(names.asked(step));
                    choosing.get(component, key).expect("stored")
                }),
            ],
        );
        let ((), allocated) = allocations::count(|| (0..1000).for_each(|step| drop(get(step))));
        let plural = if count == 1 { "1 variant".to_owned() } else { format!("{count} variants") };
        let line = |limit, measured, peer: &str, median| Line {
            what: format!("get, warm View, {plural}"),
            limit,
            unit: "x",
            measured: Some(measured),
            peer: peer.into(),
            absolute: versus(times.median(0), median),
        };
        lines.push(line(limit, times.ratio(0, 1), "RwLock<hashbrown> lookup + Arc clone", times.median(1)));
        lines.push(line(0.5, times.ratio(0, 2), "moka get", times.median(2)));
        if count > 1 {
            lines.push(line(3.0, times.ratio(0, 3), "the bare map, the best of four known", times.median(3)));
        }
        lines.push(Line {
            unit: "allocations",
            absolute: format!("{} in 1,000 gets", allocated.calls),
            ..line(0.0, allocated.calls as f64 / 1000.0, "-", 0.0)
        });
    }
    lines
}

/// Makes the peer that chooses among variants, with the properties of each variant of the looked-up keys.
fn choosing(stores: &Stores, scopes: &[ScopeSpec], view: &View<&Nudge>) -> Choosing {
    let choosing = Choosing::default();
    for (component, key) in stores.names.all_asked() {
        let variants = scopes.iter().map(|spec| {
            let scope = Scope::new(spec).expect("the data is valid");
            let (fits, specificity) = (scope.matches(view.context()), scope.specificity());
            Variant { fits, specificity, score: 0.5, value: VALUE.into() }
        });
        choosing.set(component, key, variants.collect());
    }
    choosing
}

/// Measures `get` with a new context for each call.
pub fn cold(scale: &Scale) -> Vec<Line> {
    let Stores { nudge, moka, names, .. } = &stores(scale.small, &data::variants(4));
    let place = || Context::builder().cwd("/work/mono/svc-12/src").branch("feature/login").os(Os::Linux);
    let known = place().build().expect("the place is valid");
    let times = interleave(
        scale.turns,
        &mut [
            work(|step| {
                let context = place().build().expect("the place is valid");
                let (component, key) = names.at(names.asked(step));
                nudge.get(component, key, &context).expect("stored")
            }),
            work(|step| moka.get(names.joined(names.asked(step))).expect("stored")),
            work(|step| {
                let (component, key) = names.at(names.asked(step));
                nudge.get(component, key, &known).expect("stored")
            }),
        ],
    );
    let line = |what: &str, ours| Line {
        what: what.into(),
        limit: 3.0,
        unit: "x",
        measured: Some(times.ratio(ours, 1)),
        peer: "moka get".into(),
        absolute: versus(times.median(ours), times.median(1)),
    };
    vec![line("get, cold, 4 variants, no View", 2), line("get, cold, 4 variants, Context built too", 0)]
}
