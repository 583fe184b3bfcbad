//! Measures the write of one hint.

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::RwLock;

use crate::data::{self, SCOPES};
use crate::measure::{interleave, work};
use crate::peers::scan::Scope;
use crate::table::{Line, Scale, versus};

/// Measures a typed `set` that replaces a hint. Its scope is known, and the secret guard is off. The peer stores the
/// same strings and compiles the globs of the scope.
pub fn typed(scale: &Scale) -> Vec<Line> {
    let seeds = data::seeds(scale.small);
    let nudge = data::store(&seeds);
    let globbed = |index: usize| !data::scope(index).cwd_glob.is_empty() || !data::scope(index).branch.is_empty();
    let with_globs: Vec<bool> = (0..SCOPES).map(globbed).collect();
    let seeds: Vec<_> = seeds.into_iter().filter(|seed| with_globs[seed.scope]).collect();
    let peer = RwLock::new(HashMap::<(String, String), Arc<(nudge::SetHint, Scope)>>::new());
    let times = interleave(
        scale.turns,
        &mut [
            work(|step| nudge.set(seeds[step * 31 % seeds.len()].set.clone()).expect("a seed is valid")),
            work(|step| {
                let set = seeds[step * 31 % seeds.len()].set.clone();
                let scope = Scope::new(&set.meta.scope);
                let name = (set.component.clone(), set.key.clone());
                peer.write().insert(name, Arc::new((set, scope)))
            }),
            work(|step| seeds[step * 31 % seeds.len()].set.clone()),
        ],
    );
    vec![Line {
        what: "set, typed, stored scope, no guard".into(),
        limit: 0.05,
        unit: "x",
        measured: Some(times.ratio(0, 1)),
        peer: "set that compiles a GlobSet each time".into(),
        absolute: format!("{}, {:.0} to make params", versus(times.median(0), times.median(1)), times.median(2)),
    }]
}
