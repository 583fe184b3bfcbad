//! A model of section 17 of the semantics: a list of records with all their versions.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use super::steps::{self, Meaning, Moved, Step, Texts};

pub const START_MS: i64 = 1_767_225_600_000;
pub const DAY_MS: i64 = 86_400_000;
/// The time in which a deleted record can be restored, in milliseconds.
const KEPT_MS: i64 = 30 * DAY_MS;
pub const PROJECTS: [&str; 3] = ["acme/shop", "acme/web", "acme/mall"];
pub const KINDS: [&str; 2] = ["issue", "arch"];
pub const STATUSES: [&str; 3] = ["open", "resolved", "archived"];
/// Two records within this distance may say the same, so Nudge asks before it saves the second. Within `ALIKE`, a
/// record is only listed as similar.
pub const NEARLY: f64 = 0.15;
pub const ALIKE: f64 = 0.3;

/// The position of a record in the order of creation.
pub type At = usize;

#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    pub project: usize,
    pub kind: usize,
    pub title: String,
    pub body: String,
    pub status: usize,
}

impl Text {
    /// Returns a value that is equal for two texts that count as the same.
    fn same(&self) -> (usize, usize, Texts) {
        (self.project, self.kind, steps::folded(&self.title, &self.body))
    }

    pub fn distance(&self, other: &Self) -> f64 {
        1.0 - Meaning::of(&self.title, &self.body).cosine(&Meaning::of(&other.title, &other.body))
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stands {
    Here,
    Deleted { at: i64 },
    Gone,
    Merged,
}

#[derive(Debug, Clone)]
pub struct Record {
    /// The texts of all versions, from version 1 on.
    pub said: Vec<Text>,
    pub stands: Stands,
    pub made: i64,
    pub changed: i64,
}

impl Record {
    pub fn now(&self) -> &Text {
        self.said.last().unwrap()
    }
}

/// The content of a database.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    pub records: BTreeMap<At, Record>,
    /// The projects that exist. `joined` maps a project to the project that it was joined to.
    projects: BTreeSet<usize>,
    joined: BTreeMap<usize, usize>,
}

impl Stored {
    pub fn here(&self, number: At) -> Option<&Record> {
        self.records.get(&number).filter(|record| record.stands == Stands::Here)
    }

    pub fn all(&self) -> impl Iterator<Item = (At, &Record)> {
        self.records
            .iter()
            .map(|(number, record)| (*number, record))
            .filter(|(_, record)| record.stands == Stands::Here)
    }

    /// Returns the project that this name or repository leads to now.
    pub fn project(&self, name: usize) -> usize {
        self.joined.get(&name).map_or(name, |into| self.project(*into))
    }

    pub fn is_known(&self, name: usize) -> bool {
        self.projects.contains(&self.project(name))
    }

    /// Returns the records of the same project and kind whose text counts as the same.
    pub fn same(&self, text: &Text) -> Vec<At> {
        self.all().filter(|(_, record)| record.now().same() == text.same()).map(|(number, _)| number).collect()
    }

    /// Returns the records of the same project and kind within the distance `most`, the nearest first.
    pub fn near(&self, text: &Text, most: f64) -> Vec<(f64, At)> {
        let of_it = |other: &Text| (other.project, other.kind) == (text.project, text.kind);
        let distance = |(number, record): (At, &Record)| (text.distance(record.now()), number);
        let mut near: Vec<_> = self.all().filter(|(_, record)| of_it(record.now())).map(distance).collect();
        near.retain(|(distance, _)| *distance <= most);
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        near
    }

    /// Returns the records that an export of one project, or of all projects, contains.
    pub fn exported(&self, project: Option<usize>) -> Vec<(Text, i64, i64)> {
        let is_of_it = |record: &Record| project.is_none_or(|name| record.now().project == self.project(name));
        let moved = |record: &Record| (record.now().clone(), record.made, record.changed);
        self.all().map(|(_, record)| record).filter(|record| is_of_it(record)).map(moved).collect()
    }
}

/// The content of a file.
#[derive(Debug, Clone)]
pub enum Kept {
    Export(Vec<(Text, i64, i64)>),
    Backup(Stored),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Nothing,
    Refused(&'static str),
    /// The answer contains this record.
    Record(At),
    /// Nothing was written, because these records say nearly the same.
    Near(Vec<At>),
    /// The answer to an import: the new records, the counts of skipped and refused entries, and the pairs with similar
    /// titles.
    Imported {
        new: Vec<At>,
        skipped: usize,
        refused: usize,
        similar: Vec<(At, At)>,
    },
    Joined {
        into: usize,
        moved: usize,
    },
}

#[derive(Debug, Clone)]
pub struct Plain {
    /// Is true when there is an embedding model.
    pub is_meant: bool,
    pub now: i64,
    pub stored: Stored,
    /// Is true when the database exists.
    pub is_there: bool,
    /// The number of records that were made so far.
    pub made: usize,
    pub files: Vec<Kept>,
    pub answer: Answer,
}

impl Plain {
    fn say(&mut self, number: At, text: Text) -> Answer {
        let (now, record) = (self.now, self.stored.records.get_mut(&number).unwrap());
        if record.stands != Stands::Here || *record.now() != text {
            record.said.push(text);
            record.changed = now;
        }
        record.stands = Stands::Here;
        Answer::Record(number)
    }

    fn insert(&mut self, text: Text, made: i64, changed: i64) -> At {
        let number = self.made;
        self.made += 1;
        self.is_there = true;
        self.stored.projects.insert(text.project);
        self.stored.records.insert(number, Record { said: vec![text], stands: Stands::Here, made, changed });
        number
    }

    /// Returns the text of a record to be saved.
    pub fn to_save(&self, step: &Step) -> Option<Text> {
        let Step::Save { project, kind, title, body, status, .. } = *step else { return None };
        Some(steps::text(self.stored.project(project), kind, title, body, status.unwrap_or(0)))
    }

    fn save(&mut self, step: &Step) -> Answer {
        let Step::Save { status, distinct, merge, .. } = *step else { unreachable!() };
        let text = self.to_save(step).unwrap();
        if !distinct {
            let near = if self.is_meant { self.stored.near(&text, NEARLY) } else { Vec::new() };
            let there = self.stored.same(&text).first().copied();
            if let Some(number) = there.or_else(|| near.first().filter(|_| merge).map(|(_, number)| *number)) {
                let old = self.stored.records[&number].now().status;
                return self.say(number, Text { status: status.unwrap_or(old), ..text });
            }
            if !near.is_empty() {
                return Answer::Near(near.into_iter().map(|(_, number)| number).collect());
            }
        }
        Answer::Record(self.insert(text, self.now, self.now))
    }

    fn change(&mut self, step: &Step) -> Answer {
        let Step::Change { at: number, title, body, status, expect } = *step else { unreachable!() };
        let Some(record) = self.stored.here(number) else { return Answer::Refused("E_NOT_FOUND") };
        if expect.is_some_and(|expect| expect != record.said.len()) {
            return Answer::Refused("E_CONFLICT");
        }
        let mut text = record.now().clone();
        if let Some(title) = title {
            steps::TITLES[title].clone_into(&mut text.title);
        }
        if let Some(body) = body {
            steps::BODIES[body].clone_into(&mut text.body);
        }
        text.status = status.unwrap_or(text.status);
        self.say(number, text)
    }

    fn restore(&mut self, number: At, version: Option<usize>) -> Answer {
        let Some(record) = self.stored.records.get(&number) else { return Answer::Refused("E_NOT_FOUND") };
        // An existing record can go back to any version before the current one.
        let earlier = match record.stands {
            Stands::Here if version.is_none() => return Answer::Refused("E_INVALID"),
            Stands::Here => record.said.len() - 1,
            Stands::Deleted { .. } | Stands::Merged => record.said.len(),
            Stands::Gone => 0,
        };
        let version = version.unwrap_or(earlier);
        if version == 0 || version > earlier {
            return Answer::Refused("E_NOT_FOUND");
        }
        let text = record.said[version - 1].clone();
        let project = self.stored.project(text.project);
        self.say(number, Text { project, ..text })
    }

    fn merge(&mut self, into: At, ids: [At; 2]) -> Answer {
        if ids.contains(&into) {
            return Answer::Refused("E_INVALID");
        }
        let ids: BTreeSet<_> = ids.into_iter().collect();
        if self.stored.here(into).is_none() || ids.iter().any(|number| self.stored.here(*number).is_none()) {
            return Answer::Refused("E_NOT_FOUND");
        }
        let now = |number: &At| self.stored.records[number].now();
        let mut text = now(&into).clone();
        let others = ids.iter().flat_map(|number| [&now(number).title, &now(number).body]);
        let parts: Vec<_> =
            std::iter::once(&text.body).chain(others).filter(|part| !part.is_empty()).cloned().collect();
        text.body = parts.join("\n\n");
        for number in ids {
            self.stored.records.get_mut(&number).unwrap().stands = Stands::Merged;
        }
        self.say(into, text)
    }

    fn delete(&mut self, number: At, forever: bool) -> Answer {
        let now = self.now;
        let Some(record) = self.stored.records.get_mut(&number) else { return Answer::Refused("E_NOT_FOUND") };
        match (record.stands, forever) {
            (Stands::Here, false) => record.stands = Stands::Deleted { at: now },
            (Stands::Here | Stands::Deleted { .. }, true) => record.stands = Stands::Gone,
            _ => return Answer::Refused("E_NOT_FOUND"),
        }
        Answer::Nothing
    }

    fn join(&mut self, from: usize, into: usize, here: bool) -> Answer {
        let stored = &mut self.stored;
        if !stored.is_known(from) {
            return Answer::Refused("E_NOT_FOUND");
        }
        let (old, new) = (stored.project(from), stored.project(into));
        if old == new || !(here || stored.is_known(into)) {
            return Answer::Refused("E_INVALID");
        }
        stored.projects.remove(&old);
        stored.projects.insert(new);
        stored.joined.insert(old, new);
        let mut moved = 0;
        for record in stored.records.values_mut() {
            if record.stands == Stands::Here && record.now().project == old {
                record.said.last_mut().unwrap().project = new;
                moved += 1;
            }
        }
        Answer::Joined { into: new, moved }
    }

    /// Imports records. `None` stands for an entry that is not a record.
    fn import(&mut self, moved: impl IntoIterator<Item = Option<(Text, i64, i64)>>) -> Answer {
        self.is_there = true;
        let (mut new, mut skipped, mut refused, mut similar) = (Vec::new(), 0, 0, Vec::new());
        for entry in moved {
            let Some((text, made, changed)) = entry else {
                refused += 1;
                continue;
            };
            let text = Text { project: self.stored.project(text.project), ..text };
            if !self.stored.same(&text).is_empty() {
                skipped += 1;
                continue;
            }
            let (project, kind, (title, _)) = text.same();
            let like = self.stored.all().filter(|(_, record)| {
                let (its_project, its_kind, (its_title, _)) = record.now().same();
                (its_project, its_kind, its_title) == (project, kind, title.clone())
            });
            let like = like.last().map(|(number, _)| number);
            let number = self.insert(text, made, changed);
            similar.extend(like.map(|like| (number, like)));
            new.push(number);
        }
        Answer::Imported { new, skipped, refused, similar }
    }

    fn take(&mut self, file: usize) -> Answer {
        let moved = match &self.files[file] {
            Kept::Export(moved) => moved.clone(),
            Kept::Backup(stored) => stored.exported(None),
        };
        self.import(moved.into_iter().map(Some))
    }

    fn recover(&mut self, file: usize) -> Answer {
        let Kept::Backup(stored) = self.files[file].clone() else { return Answer::Refused("E_INVALID") };
        self.files.push(Kept::Backup(std::mem::replace(&mut self.stored, stored)));
        Answer::Nothing
    }

    fn keep(&mut self, kept: Kept) -> Answer {
        if !self.is_there {
            return Answer::Refused("E_NOT_FOUND");
        }
        self.files.push(kept);
        Answer::Nothing
    }

    fn wait(&mut self, days: i64) -> Answer {
        self.now += days * DAY_MS;
        for record in self.stored.records.values_mut() {
            if matches!(record.stands, Stands::Deleted { at } if at < self.now - KEPT_MS) {
                record.stands = Stands::Gone;
            }
        }
        Answer::Nothing
    }

    fn duplicates(&self) -> Answer {
        if self.is_meant { Answer::Nothing } else { Answer::Refused("E_UNAVAILABLE") }
    }
}

pub struct Semantics;

impl ReferenceStateMachine for Semantics {
    type State = Plain;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Plain> {
        let plain = |is_meant| Plain {
            is_meant,
            now: START_MS,
            stored: Stored::default(),
            is_there: false,
            made: 0,
            files: Vec::new(),
            answer: Answer::Nothing,
        };
        any::<bool>().prop_map(plain).boxed()
    }

    fn transitions(plain: &Plain) -> BoxedStrategy<Step> {
        steps::of(plain.made, plain.files.len())
    }

    fn preconditions(plain: &Plain, step: &Step) -> bool {
        match *step {
            // Skips a save whose result is not specified: several records count as the same, or several are equally
            // near. Also skips a save with a distance close to a limit, because rounding may decide there.
            Step::Save { distinct, .. } => {
                let text = plain.to_save(step).unwrap();
                let near = plain.stored.near(&text, 2.0 * ALIKE);
                let is_edge = |distance: f64| [NEARLY, ALIKE].iter().any(|edge| (distance - edge).abs() < 0.005);
                let is_one = near.len() < 2 || near[1].0 - near[0].0 > 0.001 || near[0].0 > NEARLY;
                let is_clear = is_one && !near.iter().any(|(distance, _)| is_edge(*distance));
                match plain.stored.same(&text).len() {
                    0 => distinct || !plain.is_meant || is_clear,
                    same => same < 2,
                }
            }
            Step::Restore { at: number, version: Some(version) } => {
                let again = |text: &Text| Text { project: plain.stored.project(text.project), ..text.clone() };
                let is_other = |record: &Record| {
                    record.said.get(version.wrapping_sub(1)).is_none_or(|text| again(text) != *record.now())
                };
                plain.stored.here(number).is_none_or(is_other)
            }
            Step::Take { file } | Step::Recover { file } => file < plain.files.len(),
            _ => true,
        }
    }

    fn apply(mut plain: Plain, step: &Step) -> Plain {
        plain.now += 1_000;
        let made = |moved: &Moved| moved.record(plain.now);
        plain.answer = match *step {
            Step::Save { .. } => plain.save(step),
            Step::Change { .. } => plain.change(step),
            Step::Delete { at: number, forever } => plain.delete(number, forever),
            Step::Restore { at: number, version } => plain.restore(number, version),
            Step::Merge { into, ids } => plain.merge(into, ids),
            Step::Join { from, into, here } => plain.join(from, into, here),
            Step::Export { project: Some(name) } if !plain.stored.is_known(name) => Answer::Refused("E_NOT_FOUND"),
            Step::Export { project } => plain.keep(Kept::Export(plain.stored.exported(project))),
            Step::Backup => plain.keep(Kept::Backup(plain.stored.clone())),
            Step::Import(ref moved) => {
                let moved: Vec<_> = moved.iter().map(made).collect();
                plain.import(moved)
            }
            Step::Take { file } => plain.take(file),
            Step::Recover { file } => plain.recover(file),
            Step::Wait { days } => plain.wait(days),
            Step::Duplicates { .. } => plain.duplicates(),
            Step::List { .. } | Step::Search { .. } | Step::Again | Step::Reopen => Answer::Nothing,
        };
        plain
    }
}
