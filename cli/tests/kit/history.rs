//! Checks the answers that clients got about shared hints. The history is linearizable if a single store could have
//! given all answers in the order of the versions.
//!
//! A hint has two counters. Each set raises the version by one. Each bump raises the use count by one. Each set resets
//! the use count, because every set of these tests has a new value. So the version never falls, and the pair of version
//! and count never falls. Every answer contains both. The checks therefore need no search for an order, and each rule
//! compares two events.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A time since the beginning of the run, in nanoseconds.
pub type Nanos = u64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Set,
    Bump,
}

/// The state of a hint in an answer. All fields are zero when the hint does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    pub version: u32,
    /// The use count; `None` when the answer does not contain it.
    pub count: Option<u32>,
    /// The value, which identifies the set that stored it; `None` when the answer does not contain it.
    pub value: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done(Sight),
    /// The server refused the call and promises that it changed nothing. The answer may contain the hint's state.
    Refused(Option<Sight>),
    /// The client got no answer. The call has taken effect, will take effect, or never will.
    Unsure,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub key: u16,
    pub client: u16,
    pub kind: Kind,
    pub begin: Nanos,
    pub end: Nanos,
    /// The value that a set stores. Every set stores another value.
    pub value: u64,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// An answer shows an older state than an answer that came before its call began. So an acknowledged write is lost
    /// or hidden, or a version has fallen.
    Falls,
    /// Two acknowledged writes got the same version, or the same pair of version and count.
    Shared,
    /// Two answers show different versions for the value of one set.
    Twice,
    /// Two answers show different values for one version.
    TwoValues,
    /// An answer contains a value that no client has set, or the answer to a set contains the value of another set.
    Invented,
    /// An answer shows the value of a set that was refused.
    Refused,
    /// An answer shows the value of a set that began after this answer.
    Future,
    /// The counter is larger than the number of writes that had begun.
    TooMany,
}

/// A broken rule, and the event that breaks it.
#[derive(Debug)]
pub struct Violation {
    pub rule: Rule,
    pub key: u16,
    /// The time of the event that breaks the rule.
    pub at: Nanos,
    what: String,
}

impl Violation {
    fn new(rule: Rule, event: &Event, other: Option<&Event>) -> Self {
        let other = other.map(|other| format!("\n   beside {}", line(other))).unwrap_or_default();
        Self { rule, key: event.key, at: event.end, what: format!("{}{other}", line(event)) }
    }

    /// Describes the violation, with the events of the key around that time.
    pub fn tell(&self, events: &[Event]) -> String {
        const AROUND: usize = 25;
        let mut of_key: Vec<_> = events.iter().filter(|event| event.key == self.key).collect();
        of_key.sort_by_key(|event| event.begin);
        let index = of_key.partition_point(|event| event.begin < self.at);
        let around = &of_key[index.saturating_sub(AROUND)..(index + AROUND).min(of_key.len())];
        let mut out = format!("{:?} on key {}: {}\nThe key's history around it:\n", self.rule, self.key, self.what);
        for event in around {
            let _ = writeln!(out, "   {}", line(event));
        }
        out
    }
}

fn line(event: &Event) -> String {
    let Event { client, kind, begin, end, value, outcome, .. } = event;
    let name = |value: u64| format!("{}.{}", value >> 32, value & u64::from(u32::MAX));
    let wrote = if *kind == Kind::Set { format!(" {}", name(*value)) } else { String::new() };
    let ms = |nanos: Nanos| nanos / 1_000;
    let told = match outcome {
        Outcome::Unsure => "unsure".into(),
        Outcome::Refused(None) => "refused".into(),
        Outcome::Refused(Some(sight)) => format!("refused at v{}", sight.version),
        Outcome::Done(sight) => {
            let count = sight.count.map(|count| format!(" n{count}")).unwrap_or_default();
            format!("v{}{count} {}", sight.version, sight.value.map_or("-".into(), name))
        }
    };
    format!("{:>10}..{:<10}us client {client:>2} {kind:?}{wrote}: {told}", ms(*begin), ms(*end))
}

/// Checks all keys; returns the first violation.
pub fn check(events: &[Event]) -> Result<(), Violation> {
    let mut keys: BTreeMap<u16, Vec<&Event>> = BTreeMap::new();
    for event in events {
        keys.entry(event.key).or_default().push(event);
    }
    keys.values().try_for_each(|events| {
        values(events)?;
        for counter in [Kind::Set, Kind::Bump] {
            distinct(events, counter)?;
            bounded(events, counter)?;
            ordered(events, counter)?;
        }
        Ok(())
    })
}

impl Event {
    fn sight(&self) -> Option<Sight> {
        match self.outcome {
            Outcome::Done(sight) | Outcome::Refused(Some(sight)) => Some(sight),
            Outcome::Refused(None) | Outcome::Unsure => None,
        }
    }

    /// Returns the counter that writes of this kind raise: for a set the version, for a bump the version and the count
    /// in one number. `None` if the event has no such answer.
    fn number(&self, counter: Kind) -> Option<u64> {
        let sight = self.sight()?;
        let version = u64::from(sight.version);
        if counter == Kind::Set { Some(version) } else { sight.count.map(|count| version << 32 | u64::from(count)) }
    }

    /// Returns how many writes of this kind the answer counts.
    fn counted(&self, counter: Kind) -> Option<u32> {
        let sight = self.sight()?;
        if counter == Kind::Set { Some(sight.version) } else { sight.count }
    }

    fn acknowledged(&self, counter: Kind) -> bool {
        self.kind == counter && matches!(self.outcome, Outcome::Done(_))
    }
}

/// Checks that each value has one version, and each version one value.
fn values(events: &[&Event]) -> Result<(), Violation> {
    let sets: BTreeMap<u64, &Event> =
        events.iter().filter(|event| event.kind == Kind::Set).map(|event| (event.value, *event)).collect();
    let mut by_version: BTreeMap<u32, (u64, &Event)> = BTreeMap::new();
    let mut by_value: BTreeMap<u64, (u32, &Event)> = BTreeMap::new();
    for event in events {
        let Some(Sight { version, value: Some(value), .. }) = event.sight() else { continue };
        if version == 0 && value == 0 && event.kind == Kind::Read {
            continue;
        }
        let Some(set) = sets.get(&value) else { return Err(Violation::new(Rule::Invented, event, None)) };
        if event.acknowledged(Kind::Set) && event.value != value {
            return Err(Violation::new(Rule::Invented, event, Some(set)));
        }
        if matches!(set.outcome, Outcome::Refused(_)) {
            return Err(Violation::new(Rule::Refused, event, Some(set)));
        }
        if set.begin > event.end {
            return Err(Violation::new(Rule::Future, event, Some(set)));
        }
        let (known, first) = *by_value.entry(value).or_insert((version, event));
        if known != version {
            return Err(Violation::new(Rule::Twice, event, Some(first)));
        }
        let (known, first) = *by_version.entry(version).or_insert((value, event));
        if known != value {
            let rule = if event.acknowledged(Kind::Set) && first.acknowledged(Kind::Set) {
                Rule::Shared
            } else {
                Rule::TwoValues
            };
            return Err(Violation::new(rule, event, Some(first)));
        }
    }
    Ok(())
}

/// Checks that no two acknowledged writes got the same number.
fn distinct(events: &[&Event], counter: Kind) -> Result<(), Violation> {
    let mut numbers = BTreeMap::new();
    for event in events.iter().filter(|event| event.acknowledged(counter)) {
        if let Some(first) = event.number(counter).and_then(|number| numbers.insert(number, *event)) {
            return Err(Violation::new(Rule::Shared, event, Some(first)));
        }
    }
    Ok(())
}

/// Checks that no answer counts more writes than had begun before this answer.
fn bounded(events: &[&Event], counter: Kind) -> Result<(), Violation> {
    let counts = |event: &&&Event| event.kind == counter && !matches!(event.outcome, Outcome::Refused(_));
    let mut begun: Vec<_> = events.iter().filter(counts).map(|event| event.begin).collect();
    begun.sort_unstable();
    for event in events {
        let most = begun.partition_point(|begin| *begin <= event.end);
        if event.counted(counter).is_some_and(|count| count as usize > most) {
            return Err(Violation::new(Rule::TooMany, event, None));
        }
    }
    Ok(())
}

/// Checks that no answer shows an older state than an answer from before its call began. A write must show a newer
/// state than such an answer.
fn ordered(events: &[&Event], counter: Kind) -> Result<(), Violation> {
    struct Told<'a> {
        number: u64,
        write: bool,
        event: &'a Event,
    }
    let told = |event: &&'_ Event| event.number(counter).map(|number| (number, event.acknowledged(counter)));
    let mut ended: Vec<_> =
        events.iter().filter_map(|event| told(event).map(|(number, write)| Told { number, write, event })).collect();
    let mut begun: Vec<_> = ended.iter().map(|told| Told { ..*told }).collect();
    if counter == Kind::Set {
        // Adds the sets without an answer whose value appears in another answer.
        let seen: BTreeMap<_, _> =
            ended.iter().filter_map(|told| Some((told.event.sight()?.value?, told.number))).collect();
        let unsure = events.iter().filter(|event| event.kind == Kind::Set && event.outcome == Outcome::Unsure);
        begun.extend(unsure.filter_map(|event| Some(Told { number: *seen.get(&event.value)?, write: true, event })));
    }
    ended.sort_by_key(|told| told.event.end);
    begun.sort_by_key(|told| told.event.begin);
    let mut before = ended.into_iter().peekable();
    let mut newest: Option<Told> = None;
    for told in begun {
        while let Some(earlier) = before.next_if(|earlier| earlier.event.end < told.event.begin) {
            if newest.as_ref().is_none_or(|newest| earlier.number > newest.number) {
                newest = Some(earlier);
            }
        }
        if let Some(newest) = &newest
            && (told.number < newest.number || told.write && told.number == newest.number)
        {
            return Err(Violation::new(Rule::Falls, told.event, Some(newest.event)));
        }
    }
    Ok(())
}

/// Checks histories without a fault and histories with each kind of fault.
mod tests {
    use super::*;
    use crate::kit::rng::Rng;

    /// Simulates a correct store with clients whose calls overlap. A few calls get no answer.
    fn run(seed: u64, clients: u16, calls: u64) -> Vec<Event> {
        let mut rng = Rng::new(seed);
        let mut state: BTreeMap<u16, (u32, u32, u64)> = BTreeMap::new();
        let mut busy: Vec<Nanos> = vec![0; usize::from(clients)];
        let mut out = Vec::new();
        for number in 1..=calls {
            // The call with number N takes effect at the time N × 1,000, which is between its begin and its end.
            let (time, client) = (number * 1_000, rng.below(u64::from(clients)));
            let free = busy[usize::try_from(client).unwrap()];
            if free >= time {
                continue;
            }
            let begin = free.max(time.saturating_sub(rng.below(20_000))) + 1;
            let end = time + 1 + rng.below(20_000);
            busy[usize::try_from(client).unwrap()] = end;
            let client = u16::try_from(client).unwrap();
            let key = u16::try_from(rng.below(3)).unwrap();
            let (version, count, shown) = state.entry(key).or_default();
            let value = u64::from(client) << 32 | number;
            let kind = [Kind::Read, Kind::Set, Kind::Bump][usize::try_from(rng.below(3)).unwrap()];
            let unsure = rng.below(10) == 0;
            let happens = !unsure || rng.below(2) == 0;
            let refused = kind == Kind::Set && rng.below(10) == 0 || kind == Kind::Bump && *version == 0;
            if happens && !refused {
                match kind {
                    Kind::Read => {}
                    Kind::Set => (*version, *count, *shown) = (*version + 1, 0, value),
                    Kind::Bump => *count += 1,
                }
            }
            let sight = Sight { version: *version, count: Some(*count), value: Some(*shown) };
            let outcome = match () {
                () if refused => Outcome::Refused(Some(Sight { count: None, value: None, ..sight })),
                () if unsure && kind == Kind::Read => continue,
                () if unsure => Outcome::Unsure,
                () => Outcome::Done(sight),
            };
            out.push(Event { key, client, kind, begin, end, value, outcome });
        }
        out
    }

    fn broken(events: &[Event]) -> Rule {
        let violation = check(events).expect_err("a violation");
        assert!(violation.tell(events).contains("history around it:\n   "), "{}", violation.tell(events));
        violation.rule
    }

    /// Makes a call. It begins at `begin`, after the call of another client; `told` is version, count and value of its
    /// answer.
    fn call(begin: Nanos, kind: Kind, value: u64, told: Option<(u32, u32, u64)>) -> Event {
        let sight = |(version, count, value)| Sight { version, count: Some(count), value: Some(value) };
        let outcome = told.map_or(Outcome::Unsure, |told| Outcome::Done(sight(told)));
        Event { key: 0, client: 1, kind, begin, end: begin + 5, value, outcome }
    }

    fn refused(begin: Nanos, value: u64) -> Event {
        Event { outcome: Outcome::Refused(None), ..call(begin, Kind::Set, value, None) }
    }

    #[test]
    fn what_one_store_answers_is_accepted() {
        for seed in 0..200 {
            let events = run(seed, 8, 400);
            check(&events).unwrap_or_else(|violation| panic!("seed {seed}: {}", violation.tell(&events)));
        }
        // Overlapping calls may take effect in either order. A call without an answer may take effect late, once or
        // never.
        let (set, read) = (Kind::Set, Kind::Read);
        check(&[call(0, set, 1, Some((2, 0, 1))), call(3, set, 2, Some((1, 0, 2)))]).unwrap();
        check(&[call(0, read, 0, Some((1, 0, 1))), call(3, set, 1, Some((1, 0, 1)))]).unwrap();
        let late = [
            call(0, set, 1, None),
            call(10, set, 2, Some((1, 0, 2))),
            call(20, read, 0, Some((1, 0, 2))),
            call(30, read, 0, Some((2, 0, 1))),
        ];
        check(&late).unwrap();
        check(&late[..3]).unwrap();
        check(&[]).unwrap();
    }

    #[test]
    fn each_planted_fault_is_found() {
        use Kind::{Bump, Read, Set};
        let first = call(0, Set, 1, Some((1, 0, 1)));
        let two = call(10, Set, 2, Some((2, 0, 2)));
        let bump = call(20, Bump, 0, Some((2, 1, 2)));
        check(&[first, two, bump]).unwrap();
        let unsure = call(0, Set, 9, None);
        // The set without an answer begins after an answer with version 3. A long read shows it as version 2.
        let long = Event { end: 30, ..call(12, Read, 0, Some((2, 0, 9))) };
        let past = vec![first, call(0, Set, 4, None), call(10, Set, 3, Some((3, 0, 3))), call(20, Set, 9, None), long];
        for (what, rule, events) in [
            ("a lost write", Rule::Falls, vec![first, two, call(20, Read, 0, Some((1, 0, 1)))]),
            ("everything lost", Rule::Falls, vec![first, two, call(20, Read, 0, Some((0, 0, 0)))]),
            (
                "a stale read",
                Rule::Falls,
                vec![first, two, call(20, Read, 0, Some((2, 0, 2))), call(30, Read, 0, Some((1, 0, 1)))],
            ),
            (
                "a version that falls",
                Rule::Falls,
                vec![call(0, Set, 2, Some((2, 0, 2))), call(2, Set, 3, None), call(10, Set, 1, Some((1, 0, 1)))],
            ),
            ("two writes, one version", Rule::Shared, vec![first, call(2, Set, 2, Some((1, 0, 2)))]),
            ("applied twice", Rule::Twice, vec![first, two, call(20, Read, 0, Some((3, 0, 2))), call(0, Set, 3, None)]),
            (
                "applied twice, unsure",
                Rule::Twice,
                vec![
                    unsure,
                    first,
                    call(10, Read, 0, Some((2, 0, 9))),
                    call(11, Set, 3, None),
                    call(20, Read, 0, Some((3, 0, 9))),
                ],
            ),
            ("applied twice, unseen", Rule::TooMany, vec![first, call(10, Set, 2, Some((3, 0, 2)))]),
            (
                "two values of a version",
                Rule::TwoValues,
                vec![first, call(2, Set, 2, None), call(10, Read, 0, Some((1, 0, 2)))],
            ),
            ("an invented value", Rule::Invented, vec![first, call(10, Read, 0, Some((1, 0, 7)))]),
            ("another's answer", Rule::Invented, vec![first, call(2, Set, 2, Some((1, 0, 1)))]),
            ("a refused write", Rule::Refused, vec![first, refused(2, 2), call(10, Read, 0, Some((2, 0, 2)))]),
            ("the future", Rule::Future, vec![call(0, Read, 0, Some((1, 0, 1))), call(10, Set, 1, Some((1, 0, 1)))]),
            ("an unsure write in the past", Rule::Falls, past),
            ("a bump lost", Rule::Falls, vec![first, two, bump, call(30, Read, 0, Some((2, 0, 2)))]),
            ("two bumps, one count", Rule::Shared, vec![first, two, bump, call(21, Bump, 0, Some((2, 1, 2)))]),
            ("a bump applied twice", Rule::TooMany, vec![first, two, bump, call(30, Read, 0, Some((2, 2, 2)))]),
        ] {
            assert_eq!(broken(&events), rule, "{what}");
        }
    }

    #[test]
    fn a_fault_in_a_long_history_is_found() {
        for seed in 0..100 {
            let events = run(seed, 8, 400);
            let mut rng = Rng::new(!seed);
            let acked: Vec<_> = (0..events.len())
                .filter(|index| matches!(events[*index].outcome, Outcome::Done(sight) if sight.version > 0))
                .collect();
            let chosen = acked[usize::try_from(rng.below(acked.len() as u64)).unwrap()];
            let mut lost = events.clone();
            // Adds a read that begins much later and shows an older version.
            let Outcome::Done(sight) = lost[chosen].outcome else { unreachable!() };
            let late = Event { kind: Kind::Read, begin: 1 << 40, end: 1 << 41, ..lost[chosen] };
            let older = Sight { version: sight.version - 1, value: None, ..sight };
            lost.push(Event { outcome: Outcome::Done(older), ..late });
            assert_eq!(broken(&lost), Rule::Falls, "seed {seed}");

            let mut shared = events;
            let twin = shared[chosen];
            if twin.kind == Kind::Set {
                shared.push(Event { value: 1 << 60, ..twin });
                assert!(matches!(broken(&shared), Rule::Shared | Rule::Invented), "seed {seed}");
            }
        }
    }
}
