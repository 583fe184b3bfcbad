//! Runs one operation many times: `nudge-instructions NAME COUNT`. `tests/instructions/run` counts the instructions of
//! two runs with different counts. Their difference is the cost of the additional operations alone. `--list` prints the
//! names of the operations.

#[path = "../../bench/src/data.rs"]
#[allow(dead_code, clippy::cast_precision_loss, reason = "shared with the speed table")]
mod data;

use std::hint::black_box;

use data::Random;
use nudge::{
    Context, ExportHints, HintMeta, ImportHints, ImportMode, Nudge, Os, QueryHints, ScopeSpec, SecretGuard, SetHint,
    View,
};
use serde_json::value::RawValue;

const HINTS: usize = 5_000;
/// The number of keys that the operations look up in turn.
const ASKED: usize = 64;

type Repeated = fn(usize);

const ALL: [(&str, Repeated); 10] = [
    ("get, warm View, 1 variant", |count| warm(1, count)),
    ("get, warm View, 4 variants", |count| warm(4, count)),
    ("get, Context built, 4 variants", cold),
    ("query, top 10 of 5,000", |count| query(&[], count)),
    ("query by tag, top 10 of 5,000", |count| query(&["tag-00"], count)),
    ("set, a new hint", set),
    ("import, 10 hints of 400", import),
    ("export, 10 hints of 400", export),
    ("guard, a value of 4 KB", guard),
    ("scope, 40 of a context", scopes),
];

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--list"] => ALL.iter().for_each(|(name, _)| println!("{name}")),
        [name, count] => {
            let (_, run) = ALL.iter().find(|entry| entry.0 == name).expect("a name of --list");
            run(count.parse().expect("a number"));
        }
        _ => panic!("nudge-instructions NAME COUNT, or --list"),
    }
}

fn place() -> Context {
    data::place().build().expect("the place is valid")
}

fn name(index: usize) -> (String, String) {
    (format!("service-{:02}", index % 100), format!("build-{index}"))
}

fn filled(scopes: &[ScopeSpec]) -> Nudge {
    let nudge = Nudge::new(data::config());
    for index in 0..HINTS / scopes.len() {
        let (component, key) = name(index);
        for scope in scopes {
            let meta = HintMeta { scope: scope.clone(), ..HintMeta::default() };
            nudge.set(SetHint { meta, ..SetHint::new(&*component, &*key, "docker compose build") }).expect("valid");
        }
    }
    nudge
}

fn asked(scopes: usize) -> Vec<(String, String)> {
    Random(7).shuffled(HINTS / scopes).into_iter().take(ASKED).map(name).collect()
}

fn warm(scopes: usize, count: usize) {
    let nudge = filled(&data::variants(scopes));
    let view = View::new(&nudge, place());
    let names = asked(scopes);
    for index in 0..count {
        let (component, key) = &names[index % ASKED];
        black_box(view.get(component, key).expect("stored"));
    }
}

fn cold(count: usize) {
    let nudge = filled(&data::variants(4));
    let names = asked(4);
    for index in 0..count {
        let context = Context::builder().cwd("/work/mono/svc-12/src").branch("feature/login").os(Os::Linux);
        let context = context.build().expect("the place is valid");
        let (component, key) = &names[index % ASKED];
        black_box(nudge.get(component, key, &context).expect("stored"));
    }
}

fn query(tags: &[&str], count: usize) {
    let nudge = data::store(&data::seeds(HINTS));
    for _ in 0..count {
        let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
        let query = QueryHints { context: data::place(), tags, ..QueryHints::default() };
        black_box(nudge.query(query).expect("the query is valid"));
    }
}

fn set(count: usize) {
    let nudge = data::store(&data::seeds(HINTS));
    for seed in data::seeds(HINTS).into_iter().cycle().take(count).enumerate().map(|(index, mut seed)| {
        seed.set.key = format!("new-{index}");
        seed.set
    }) {
        black_box(nudge.set(seed).expect("a seed is valid"));
    }
}

/// The number of hints in a payload. An import of this payload counts as `COUNTED` calls.
const PAYLOAD: usize = 400;
const COUNTED: usize = 10;

fn exported(nudge: &Nudge) -> String {
    let payload = nudge.export(&ExportHints::default()).expect("the whole store").payload;
    serde_json::to_string(&payload).expect("an export is JSON")
}

fn import(count: usize) {
    let payload = RawValue::from_string(exported(&data::store(&data::seeds(PAYLOAD)))).expect("the export is JSON");
    let params = ImportHints { payload, mode: ImportMode::Merge, allow_secret: false };
    for _ in 0..count * COUNTED / PAYLOAD {
        black_box(Nudge::new(data::config()).import(&params).expect("the export can be imported"));
    }
}

fn export(count: usize) {
    let nudge = data::store(&data::seeds(PAYLOAD));
    for _ in 0..count * COUNTED / PAYLOAD {
        black_box(exported(&nudge));
    }
}

fn guard(count: usize) {
    let text = "docker compose build --service service-12 --profile dev-00af\n".repeat(66);
    let guard = SecretGuard::new();
    for _ in 0..count {
        black_box(guard.check(None, black_box(&text)));
    }
}

fn scopes(count: usize) {
    let nudge = Nudge::new(data::config());
    for index in 0..data::SCOPES {
        let meta = HintMeta { scope: data::scope(index), ..HintMeta::default() };
        nudge.set(SetHint { meta, ..SetHint::new("api", "build", index.to_string()) }).expect("valid");
    }
    for _ in 0..count {
        // Each call has a new context, so no cache has it.
        black_box(nudge.get("api", "build", &place()));
    }
}
