//! What may mend a command that failed (semantics section 10).

use std::collections::BinaryHeap;
use std::fmt;

use nudge_core::explain::Parts;
use nudge_core::relevance::{CUT, Terms};
use nudge_core::shell::{self, Line};
use nudge_core::suggest::{Moment, SuggestRequest};

use super::index::{ByRow, FIX};
use super::place::{Around, Place};
use super::rank::{Ranked, Why, counted, standing};
use crate::hint::Hint;
use crate::store::Found;

/// What a hint counts whose command is near the one that failed, without and with all of its words.
const NEAR: f64 = 0.3;
const NEAR_WORDS: f64 = 0.3;
/// What a hint counts that runs the program that was not found, without and with all of the words behind it.
const PROGRAM: f64 = 0.35;
/// The relevance from which a fix is told that nothing in the failure names.
const FIX_FLOOR: f64 = 0.6;
/// What errors say where a program or a module is not there.
const NOT_FOUND: [&str; 6] =
    ["command not found", "no module named", "is not recognized", "exit code 127", "exit code: 127", "exit code 126"];

/// A command that failed.
pub(super) struct Failure<'a> {
    line: Option<Line>,
    /// Its programs, as hints name them.
    programs: Vec<String>,
    /// A program was not there, or could not be run.
    not_found: bool,
    request: &'a SuggestRequest,
    terms: Terms,
}

/// The reason why a hint may mend a failure.
pub(super) enum Mends {
    Near,
    Program(String),
    Fix(Vec<Box<str>>),
}

impl fmt::Display for Mends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Near => f.write_str("it is close to the command that failed"),
            Self::Program(program) => write!(f, "it says how {program} is run, which was not found"),
            Self::Fix(words) => write!(f, "it is a fix for {}, of which the failure tells", words.join(", ")),
        }
    }
}

impl<'a> Failure<'a> {
    pub(super) fn new(request: &'a SuggestRequest) -> Self {
        let command = request.command.as_deref().unwrap_or_default();
        let line = shell::parse(command);
        let mut programs: Vec<_> =
            line.iter().flat_map(Line::heads).map(|command| unwrapped(&command.program)).collect();
        let error = request.error.to_lowercase();
        let not_found = NOT_FOUND.iter().any(|said| error.contains(said));
        programs.extend(missing_module(&request.error));
        programs.retain(|program| !program.is_empty());
        let folders = line.iter().flat_map(|line| &line.commands).filter_map(|command| match &command.folder {
            shell::Folder::At(folder) => Some(folder.as_str()),
            _ => None,
        });
        let spoken: Vec<_> =
            [request.error.as_str()].into_iter().chain(programs.iter().map(String::as_str)).chain(folders).collect();
        let terms = Terms::of_error(&spoken.join("\n"));
        Self { line, programs, not_found, request, terms }
    }

    /// The words of the error's last lines, and the programs.
    pub(super) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns false for a hint that surely cannot mend it. This runs for every hint that fits, so it reads none.
    pub(super) fn concerns(&self, hint: &Hint) -> bool {
        self.speaks_of_a_program(hint) || is_fix(hint)
    }

    fn speaks_of_a_program(&self, hint: &Hint) -> bool {
        let text = hint.value().command_line();
        text.is_some_and(|text| self.programs.iter().any(|program| text.contains(program.as_str())))
    }

    /// Returns those of the hints that may mend it; `relevant` says what their words have in common with it.
    pub(super) fn mend(&self, around: &Around, found: Vec<Found>, relevant: &mut ByRow) -> BinaryHeap<Ranked> {
        let mends = found.into_iter().filter_map(|found| {
            let relevant = relevant.remove(&found.row);
            let place = around.place(&found.hint);
            let relevance = relevant.as_ref().map_or(0.0, |relevant| relevant.relevance);
            let of_place = around.share(place, Moment::Failure);
            let named = if is_fix(&found.hint) { self.named(&found) } else { None };
            let (shape, why) = match self.shape(&found) {
                Some((shape, why)) => (shape * of_place, why),
                None if let Some(name) = named => (0.0, Mends::Fix(vec![name.into()])),
                None if is_fix(&found.hint) && relevance * of_place >= FIX_FLOOR => {
                    (0.0, Mends::Fix(relevant.map(|relevant| relevant.words).unwrap_or_default()))
                }
                None => return None,
            };
            let place_part = if place == Place::Elsewhere { 0.0 } else { 0.1 };
            let fix = if named.is_some() {
                0.2
            } else if is_fix(&found.hint) {
                0.1
            } else {
                0.0
            };
            let parts = Parts::from([
                ("shape", shape),
                ("words", counted(relevance, 0.3) * of_place),
                ("fix", fix),
                ("place", place_part),
                ("standing", standing(&found, 0.1)),
            ]);
            Some(Ranked::new(found, parts, Why::Mends(why)))
        });
        let mut mends: Vec<_> = mends.collect();
        let best = mends.iter().map(|mends| mends.parts.sum()).fold(0.0, f64::max);
        mends.retain(|mends| mends.parts.sum() >= CUT * best);
        mends.into()
    }

    /// The component or the tag of a fix that the program or the error names.
    fn named<'f>(&self, found: &'f Found) -> Option<&'f str> {
        let names = std::iter::once(found.hint.component()).chain(found.hint.tags().filter(|tag| *tag != FIX));
        names.into_iter().find(|name| self.terms.name(name))
    }

    /// What the hint's command has of the one that failed.
    fn shape(&self, found: &Found) -> Option<(f64, Mends)> {
        let text = found.hint.value().command_line()?;
        let failed = self.line.as_ref()?;
        if !self.speaks_of_a_program(&found.hint) {
            return None;
        }
        let hint = shell::parse(text)?;
        let names = |program: &String| hint.commands.iter().any(|command| unwrapped(&command.program) == *program);
        if self.not_found
            && text.split_whitespace().ne(self.request.command.iter().flat_map(|line| line.split_whitespace()))
            && let Some(program) = self.programs.iter().find(|program| names(program))
        {
            return Some((PROGRAM + NEAR_WORDS * likeness(failed, &hint), Mends::Program(program.clone())));
        }
        let near = failed.is_near(&hint);
        near.then(|| (NEAR + NEAR_WORDS * likeness(failed, &hint), Mends::Near))
    }
}

fn is_fix(hint: &Hint) -> bool {
    hint.tags().any(|tag| tag == FIX)
}

/// The share of the words of both lines that they have in common.
// The counts are exact as `f64`: texts have at most 64 KiB.
#[allow(clippy::cast_precision_loss)]
fn likeness(a: &Line, b: &Line) -> f64 {
    let words = |line: &Line| {
        let mut words: Vec<_> = line.heads().flat_map(|command| command.words.clone()).collect();
        words.sort_unstable();
        words.dedup();
        words
    };
    let (a, b) = (words(a), words(b));
    let common = a.iter().filter(|word| b.binary_search(word).is_ok()).count();
    common as f64 / (a.len() + b.len() - common).max(1) as f64
}

/// The name by which people speak of a program: without its version (`python3`, `godot4`), and of a project's wrapper
/// script (`gradlew`) that of what it runs.
fn unwrapped(program: &str) -> String {
    match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "gradlew" => "gradle".into(),
        "mvnw" => "mvn".into(),
        "" => program.into(),
        name => name.into(),
    }
}

/// The name in Python's `No module named 'x'`.
fn missing_module(error: &str) -> Option<String> {
    let (_, rest) = error.split_once("No module named ")?;
    let name: String =
        rest.trim_start_matches(['\'', '"']).chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    Some(name).filter(|name| !name.is_empty())
}
