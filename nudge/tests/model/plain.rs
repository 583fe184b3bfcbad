//! Implements the rules of the semantics for hints (sections 1 to 5 and 10) with a list that is searched from start to
//! end.
// Times and counts here are far below 2^53, so the conversions are exact.
#![allow(clippy::cast_precision_loss)]

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

pub const START_MS: i64 = 1_767_225_600_000;
pub const COMPONENTS: [&str; 3] = ["api", "http-proxy", "web"];
pub const KEYS: [&str; 2] = ["build", "run"];
pub const VALUES: [&str; 3] = ["make one", "make two", "make three"];
pub const TTLS: [(&str, i64); 3] = [("session", i64::MAX), ("PT1H", 3_600_000), ("PT30M", 1_800_000)];
pub const STANDS: [(&str, &str); 3] = [("/work/api", "dev"), ("/work", "hotfix/a"), ("/home", "main")];
pub const MAX_HINTS: usize = 9;

/// The scopes: branch, folder, and the name of the variant. The name is the digest of the canonical scope, computed
/// with `sha256sum`.
pub const SCOPES: [(Option<&str>, Option<&str>, &str); 5] = [
    (None, None, ""),
    (Some("dev"), None, "41cf35ab0287"),
    (Some("hotfix/*"), Some("/work/**"), "0eb4175879cc"),
    (None, Some("/work/api"), "4ce219c57682"),
    (Some("main"), None, "7fb0c4e8f1cd"),
];

/// Selects a variant of a key.
#[derive(Debug, Clone, Copy)]
pub enum Which {
    Unsaid,
    Scope(usize),
    /// All variants for a deletion. For a use, the variant that fits in the context with this index.
    All(usize),
}

pub type Name = (usize, usize);

#[derive(Debug, Clone)]
pub enum Step {
    Set {
        name: Name,
        scope: usize,
        value: usize,
        ttl: usize,
        priority: u8,
        expect: Option<u64>,
    },
    Get {
        name: Name,
        scope: Option<usize>,
        stand: usize,
    },
    Query {
        component: Option<usize>,
        stand: usize,
        limit: usize,
        ineligible: bool,
    },
    Bump {
        name: Name,
        which: Which,
        delta: u64,
    },
    Delete {
        name: Name,
        which: Which,
    },
    Undo,
    Outcome {
        value: usize,
        ok: bool,
        stand: usize,
    },
    /// An import that empties the store.
    Clear,
    Advance(i64),
    Sweep,
    /// Repeats the last call that changed something, with the same key.
    Again,
    /// Restarts the process, and restores the store from the records.
    Promote,
    /// Imports the export of the store into an empty store.
    Reload,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub name: Name,
    pub scope: usize,
    pub value: usize,
    pub ttl: usize,
    pub priority: u8,
    pub version: u64,
    pub created: i64,
    pub updated: i64,
    pub uses: u64,
    pub used: i64,
    pub failures: u64,
}

impl Entry {
    fn lives(&self, now: i64) -> bool {
        now < self.updated.saturating_add(TTLS[self.ttl].1)
    }

    pub fn fits(&self, stand: usize) -> bool {
        let (cwd, branch) = STANDS[stand];
        let branch_fits = match SCOPES[self.scope].0 {
            None => true,
            Some("hotfix/*") => branch == "hotfix/a",
            Some(name) => branch == name,
        };
        branch_fits
            && match SCOPES[self.scope].1 {
                None => true,
                Some("/work/**") => cwd.starts_with("/work"),
                Some(name) => cwd == name,
            }
    }

    pub fn fields(&self) -> u8 {
        u8::from(SCOPES[self.scope].0.is_some()) + u8::from(SCOPES[self.scope].1.is_some())
    }

    pub fn is_doubtful(&self) -> bool {
        self.failures >= 3
    }

    pub fn score(&self, now: i64) -> f64 {
        let hours = |since: i64| (now - since) as f64 / 3_600_000.0;
        let decayed = if self.uses == 0 { 0.0 } else { self.uses as f64 * 2_f64.powf(-hours(self.used) / 12.0) };
        0.3 * (1.0 - 2_f64.powf(-decayed / 4.0))
            + 0.2 * f64::from(self.priority) / 10.0
            + 0.2 * 0.5
            + 0.2 * f64::from(self.fields()) / 6.0
            + 0.1 * 2_f64.powf(-hours(self.updated) / 24.0)
    }

    fn names(&self) -> (&str, &str, &str) {
        (COMPONENTS[self.name.0], KEYS[self.name.1], SCOPES[self.scope].2)
    }

    /// Returns true when this hint certainly ranks before `other`, in the order of semantics section 3 or in the choice
    /// between variants. Two scores that differ by less than the rounding error count as equal.
    pub fn is_before(&self, other: &Self, now: i64, by_fields: bool) -> bool {
        let (mine, others) = (self.score(now), other.score(now));
        let near = (mine - others).abs() < 1e-9;
        let score = if near { std::cmp::Ordering::Equal } else { others.total_cmp(&mine) };
        let fields = other.fields().cmp(&self.fields());
        let first = self.is_doubtful().cmp(&other.is_doubtful());
        let first = first.then(if by_fields { fields.then(score) } else { score });
        if near && mine.total_cmp(&others).is_ne() {
            return first.is_lt();
        }
        first.then(fields).then(other.updated.cmp(&self.updated)).then(self.names().cmp(&other.names())).is_lt()
    }
}

/// The hints that one call deleted or replaced.
#[derive(Debug, Clone)]
pub struct Gone {
    pub is_replaced: bool,
    pub entries: Vec<Entry>,
}

/// The expected answer of the last step.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Nothing,
    Refused(&'static str),
    /// The hint of the answer.
    Hint(Entry),
    /// The number of changed hints.
    Count(usize),
}

#[derive(Debug, Clone)]
pub struct Plain {
    pub now: i64,
    pub entries: Vec<Entry>,
    pub gone: Vec<Gone>,
    pub answer: Answer,
}

impl Plain {
    pub fn live(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.lives(self.now))
    }

    /// Returns the number of hints of a deletion that have not expired.
    pub fn alive(&self, gone: &Gone) -> usize {
        gone.entries.iter().filter(|entry| entry.lives(self.now)).count()
    }

    fn of(&self, name: Name) -> Vec<Entry> {
        self.live().filter(|entry| entry.name == name).cloned().collect()
    }

    fn variant(&self, name: Name, scope: usize) -> Option<Entry> {
        self.of(name).into_iter().find(|entry| entry.scope == scope)
    }

    fn at(&mut self, entry: &Entry) -> &mut Entry {
        self.entries.iter_mut().find(|other| other.name == entry.name && other.scope == entry.scope).unwrap()
    }

    fn first(&self, entries: &[Entry], by_fields: bool) -> Option<Entry> {
        let before = |a: &Entry| !entries.iter().any(|b| b.is_before(a, self.now, by_fields));
        entries.iter().find(|a| before(a)).cloned()
    }

    /// Returns the variant of a key that `which` selects.
    fn meant(&self, name: Name, which: Which) -> Result<Entry, &'static str> {
        let all = self.of(name);
        match which {
            Which::Scope(scope) => self.variant(name, scope).ok_or("E_NOT_FOUND"),
            Which::All(stand) => {
                let fitting: Vec<_> = all.into_iter().filter(|entry| entry.fits(stand)).collect();
                self.first(&fitting, true).ok_or("E_NOT_FOUND")
            }
            Which::Unsaid => match &all[..] {
                [] => Err("E_NOT_FOUND"),
                [sole] => Ok(sole.clone()),
                _ => Err("E_INVALID"),
            },
        }
    }

    fn set(&mut self, step: &Step) -> Answer {
        let Step::Set { name, scope, value, ttl, priority, expect } = *step else { unreachable!() };
        let now = self.now;
        let before = self.variant(name, scope);
        let version = before.as_ref().map_or(0, |entry| entry.version);
        if expect.is_some_and(|expect| expect != version) {
            return Answer::Refused("E_CONFLICT");
        }
        self.entries.retain(|entry| entry.lives(now));
        if before.is_none() && self.entries.len() == MAX_HINTS {
            return Answer::Refused("E_QUOTA");
        }
        let same = before.clone().filter(|entry| entry.value == value);
        let counts = same.as_ref().map_or((0, 0, 0), |entry| (entry.uses, entry.used, entry.failures));
        self.entries.retain(|entry| (entry.name, entry.scope) != (name, scope));
        let entry = Entry {
            name,
            scope,
            value,
            ttl,
            priority,
            version: version + 1,
            created: before.as_ref().map_or(now, |entry| entry.created),
            updated: now,
            uses: counts.0,
            used: counts.1,
            failures: counts.2,
        };
        self.entries.push(entry.clone());
        if let (Some(before), None) = (before, same) {
            self.gone.push(Gone { is_replaced: true, entries: vec![before] });
        }
        Answer::Hint(entry)
    }

    fn delete(&mut self, name: Name, which: Which) -> Answer {
        let doomed = match which {
            Which::All(_) => match self.of(name) {
                none if none.is_empty() => return Answer::Refused("E_NOT_FOUND"),
                all => all,
            },
            which => match self.meant(name, which) {
                Ok(entry) => vec![entry],
                Err(reason) => return Answer::Refused(reason),
            },
        };
        self.entries.retain(|entry| !doomed.contains(entry));
        self.gone.push(Gone { is_replaced: false, entries: doomed.clone() });
        Answer::Count(doomed.len())
    }

    fn undo(&mut self) -> Answer {
        let now = self.now;
        let Some(gone) = self.gone.last().cloned() else { return Answer::Refused("E_NOT_FOUND") };
        let live: Vec<_> = gone.entries.iter().filter(|entry| entry.lives(now)).cloned().collect();
        if live.is_empty() {
            return Answer::Refused("E_NOT_FOUND");
        }
        let mut back = Vec::new();
        for mut entry in live {
            match self.variant(entry.name, entry.scope) {
                Some(stands) if gone.is_replaced => entry.version = entry.version.max(stands.version) + 1,
                Some(_) => continue,
                None => {}
            }
            back.push(entry);
        }
        if back.is_empty() {
            return Answer::Refused("E_CONFLICT");
        }
        self.entries.retain(|entry| entry.lives(now));
        let is_back =
            |entry: &Entry| back.iter().any(|restored| (restored.name, restored.scope) == (entry.name, entry.scope));
        let others = self.entries.iter().filter(|entry| !is_back(entry)).count();
        if others + back.len() > MAX_HINTS {
            return Answer::Refused("E_QUOTA");
        }
        self.entries.retain(|entry| !is_back(entry));
        self.entries.extend(back.iter().cloned());
        // The hints that were not restored can still be restored later.
        let rest: Vec<_> = gone.entries.into_iter().filter(|entry| !is_back(entry)).collect();
        self.gone.pop();
        if !rest.is_empty() {
            self.gone.push(Gone { is_replaced: gone.is_replaced, entries: rest });
        }
        Answer::Count(back.len())
    }

    fn outcome(&mut self, value: usize, ok: bool, stand: usize) -> Answer {
        let now = self.now;
        let concerned = |entry: &&mut Entry| entry.lives(now) && entry.value == value && entry.fits(stand);
        let mut count = 0;
        for entry in self.entries.iter_mut().filter(concerned) {
            count += 1;
            if ok {
                (entry.uses, entry.used, entry.failures) = (entry.uses + 1, now, 0);
            } else {
                entry.failures += 1;
            }
        }
        Answer::Count(count)
    }

    fn bump(&mut self, name: Name, which: Which, delta: u64) -> Answer {
        let entry = match self.meant(name, which) {
            Ok(entry) => entry,
            Err(reason) => return Answer::Refused(reason),
        };
        let now = self.now;
        let entry = self.at(&entry);
        (entry.uses, entry.used) = (entry.uses + delta, now);
        Answer::Hint(entry.clone())
    }

    fn get(&self, name: Name, scope: Option<usize>, stand: usize) -> Answer {
        let found = match scope {
            Some(scope) => self.variant(name, scope).filter(|entry| entry.fits(stand)),
            None => self.meant(name, Which::All(stand)).ok(),
        };
        found.map_or(Answer::Refused("E_NOT_FOUND"), Answer::Hint)
    }
}

pub struct Semantics;

impl ReferenceStateMachine for Semantics {
    type State = Plain;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Plain> {
        Just(Plain { now: START_MS, entries: Vec::new(), gone: Vec::new(), answer: Answer::Nothing }).boxed()
    }

    fn transitions(_: &Plain) -> BoxedStrategy<Step> {
        let name = || (0..COMPONENTS.len(), 0..KEYS.len());
        let scope = || 0..SCOPES.len();
        let stand = || 0..STANDS.len();
        let which =
            move || prop_oneof![Just(Which::Unsaid), scope().prop_map(Which::Scope), stand().prop_map(Which::All)];
        let expect = prop::option::weighted(0.1, 0..3_u64);
        let set = (name(), scope(), 0..VALUES.len(), 0..TTLS.len(), 1..=10_u8, expect);
        let query = (prop::option::of(0..COMPONENTS.len()), stand(), 1..8_usize, any::<bool>());
        prop_oneof![
            12 => set.prop_map(|(name, scope, value, ttl, priority, expect)| Step::Set { name, scope, value, ttl, priority, expect }),
            8 => (name(), prop::option::weighted(0.2, scope()), stand()).prop_map(|(name, scope, stand)| Step::Get { name, scope, stand }),
            4 => query.prop_map(|(component, stand, limit, ineligible)| Step::Query { component, stand, limit, ineligible }),
            5 => (name(), which(), 1..4_u64).prop_map(|(name, which, delta)| Step::Bump { name, which, delta }),
            3 => (name(), which()).prop_map(|(name, which)| Step::Delete { name, which }),
            4 => Just(Step::Undo),
            6 => (0..VALUES.len(), prop::bool::weighted(0.3), stand()).prop_map(|(value, ok, stand)| Step::Outcome { value, ok, stand }),
            1 => Just(Step::Clear),
            4 => (1..2_400_000_i64).prop_map(Step::Advance),
            1 => Just(Step::Sweep),
            2 => Just(Step::Again),
            2 => Just(Step::Promote),
            1 => Just(Step::Reload),
        ]
        .boxed()
    }

    fn apply(mut state: Plain, step: &Step) -> Plain {
        state.answer = match *step {
            Step::Set { .. } => state.set(step),
            Step::Get { name, scope, stand } => state.get(name, scope, stand),
            Step::Bump { name, which, delta } => state.bump(name, which, delta),
            Step::Delete { name, which } => state.delete(name, which),
            Step::Undo => state.undo(),
            Step::Outcome { value, ok, stand } => state.outcome(value, ok, stand),
            Step::Clear => {
                let all: Vec<_> = state.live().cloned().collect();
                state.entries.clear();
                if !all.is_empty() {
                    state.gone.push(Gone { is_replaced: false, entries: all });
                }
                Answer::Nothing
            }
            Step::Advance(ms) => {
                state.now += ms;
                Answer::Nothing
            }
            Step::Reload => {
                state.gone.clear();
                Answer::Nothing
            }
            Step::Query { .. } | Step::Sweep | Step::Again | Step::Promote => Answer::Nothing,
        };
        state
    }
}
