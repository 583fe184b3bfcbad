//! Finds hints that may repair a failed command (semantics section 10).

use std::collections::{BinaryHeap, HashMap};
use std::fmt;

use foldhash::fast::RandomState;
use nudge_core::explain::ScoreParts;
use nudge_core::relevance::{CUT, QueryTerms, compute_rarity};
use nudge_core::shell::{self, Line};
use nudge_core::suggest::{SuggestMoment, SuggestRequest, unproven};
use nudge_core::text::after_mark;

use super::index::{ByRow, FIX};
use super::message::ErrorWords;
use super::place::{HintPlace, NearbyNames};
use super::rank::{RankReason, RankedHint, is_behind, weigh_relevance, weigh_score};
use crate::hint::Hint;
use crate::store::HintHit;

/// The strength of a hint with a command that is similar to the failed one.
const NEAR: f64 = 0.3;
/// The strength that shared words add to a hint with a similar command.
const NEAR_WORDS: f64 = 0.3;
/// The strength of a fix that repeats the error's text.
const FIX_OF_THE_MESSAGE: f64 = 0.6;
/// The strength of a fix that the error names.
const FIX_OF_THE_ERROR: f64 = 0.3;
/// The strength of a fix that the program names.
const FIX_OF_THE_PROGRAM: f64 = 0.2;
/// The strength of any other fix.
const A_FIX: f64 = 0.1;
/// The least likeness at which a command counts as similar to the failed one.
const LEAST_LIKENESS: f64 = 0.2;
/// The least relevance of a fix that the error or the program names. It is lower than the relevance of a component with
/// few hints.
const NAMED_FLOOR: f64 = 0.28;
/// The strength of a hint that runs the missing program; shared words add to it.
const PROGRAM: f64 = 0.35;
/// The least relevance of a fix that neither the error nor the program names.
const FIX_FLOOR: f64 = 0.6;
/// Texts of errors about a missing program or module.
const NOT_FOUND: [&str; 6] =
    ["command not found", "no module named", "is not recognized", "exit code 127", "exit code: 127", "exit code 126"];
/// Texts of errors about a name that the program does not have, such as a target.
const NAME_NOT_KNOWN: [&str; 8] = [
    "missing script",
    "no rule to make target",
    "does not contain recipe",
    "no such command",
    "no such subcommand",
    "unknown command",
    "unrecognized task",
    "does not exist",
];

/// A command that failed.
pub(super) struct CommandFailure<'a> {
    line: Option<Line>,
    /// The words of the line's commands, sorted, each once.
    words: Vec<String>,
    /// The programs of the line, by the names that hints use.
    programs: Vec<String>,
    /// The programs that may be missing: the programs that the error names, or else the programs of the command.
    missing: Vec<String>,
    /// Is true when a program was not found or could not be run.
    not_found: bool,
    /// Is true when the program does not have a name that the command gave it, such as a target.
    name_not_known: bool,
    request: &'a SuggestRequest,
    terms: QueryTerms,
    /// The terms of the error without the command.
    of_error: QueryTerms,
    message: ErrorWords,
}

/// The reason why a hint may repair a failure.
pub(super) enum MendReason {
    Near,
    Program(String),
    Message,
    Fix(Vec<Box<str>>),
}

impl fmt::Display for MendReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Near => f.write_str("it is close to the command that failed"),
            Self::Program(program) => write!(f, "it says how {program} is run, which was not found"),
            Self::Message => f.write_str("it is a fix that repeats what the error says"),
            Self::Fix(words) => write!(f, "it is a fix for {}, of which the failure tells", words.join(", ")),
        }
    }
}

impl<'a> CommandFailure<'a> {
    pub(super) fn new(request: &'a SuggestRequest) -> Self {
        let line = request.command.as_deref().and_then(shell::parse);
        let mut programs: Vec<_> =
            line.iter().flat_map(Line::heads).map(|command| unwrap_program(&command.program)).collect();
        let error = request.error.to_lowercase();
        let mut named = find_missing_programs(&request.error);
        named.extend(find_missing_module(&request.error, "Cannot find module "));
        let not_found = !named.is_empty() || NOT_FOUND.iter().any(|said| error.contains(said));
        let name_not_known = NAME_NOT_KNOWN.iter().any(|said| error.contains(said));
        programs.extend(find_missing_module(&request.error, "No module named "));
        programs.retain(|program| !program.is_empty());
        // A script that was found may run a program that was not found, as `npm test` does with `vitest: not found`.
        let missing = if named.is_empty() { programs.clone() } else { named.clone() };
        programs.extend(named);
        let folders = line.iter().flat_map(|line| &line.commands).filter_map(|command| match &command.folder {
            shell::Folder::At(folder) => Some(folder.as_str()),
            _ => None,
        });
        let spoken: Vec<_> =
            [request.error.as_str()].into_iter().chain(programs.iter().map(String::as_str)).chain(folders).collect();
        let terms = QueryTerms::of_error(&spoken.join("\n"));
        let of_error = QueryTerms::of_error(&request.error);
        let message = ErrorWords::of_error(&request.error);
        let words = line.iter().flat_map(collect_words).map(str::to_owned).collect();
        Self { line, words, programs, missing, not_found, name_not_known, request, terms, of_error, message }
    }

    /// Returns true when the hint can be useful after this failure. A hint from a file is useful only if the command
    /// used a wrong name. An unproven hint is useful only after the failure that it repaired before.
    pub(super) fn may_need(&self, hint: &Hint) -> bool {
        let is_after_this =
            || self.line.as_ref().is_some_and(|line| hint.tags().any(|tag| unproven::is_after(tag, line)));
        (self.not_found || self.name_not_known || !is_behind(hint)) && (!hint.is_unproven() || is_after_this())
    }

    /// Returns the terms of the programs and of the error's last lines.
    pub(super) fn terms(&self) -> &QueryTerms {
        &self.terms
    }

    /// Returns false for a hint that certainly cannot repair the failure. The check runs for every hint that fits, so
    /// it must not parse commands.
    pub(super) fn may_concern(&self, hint: &Hint) -> bool {
        self.speaks_of_a_program(hint) || is_fix(hint) || self.tells_of_what_is_missing(hint).is_some()
    }

    /// Returns the missing program that the hint is about: a tag names the program, or a text that is no command names
    /// it. Commands from a file do not count, because their tags name their tools even when these are missing.
    fn tells_of_what_is_missing(&self, hint: &Hint) -> Option<&str> {
        let is_word = |text: &str, program: &str| {
            let beside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            text.match_indices(program).any(|(start, _)| {
                !beside(text[..start].chars().next_back()) && !beside(text[start + program.len()..].chars().next())
            })
        };
        let is_command = hint.value().is_command();
        if !self.not_found || is_command && is_behind(hint) {
            return None;
        }
        let tells =
            |program: &&str| !is_command && is_word(hint.text(), program) || hint.tags().any(|tag| tag == *program);
        self.missing.iter().map(String::as_str).find(tells)
    }

    /// Returns true when the failed command has this word.
    fn has_word(&self, word: &str) -> bool {
        self.words.binary_search_by(|own| own.as_str().cmp(word)).is_ok()
    }

    fn speaks_of_a_program(&self, hint: &Hint) -> bool {
        let text = hint.value().command_line();
        text.is_some_and(|text| self.programs.iter().any(|program| text.contains(program.as_str())))
    }

    /// Returns the hints that may repair the failure. `relevant` has the words that each hint shares with the failure.
    pub(super) fn find_mends(
        &self,
        around: &NearbyNames,
        found: Vec<HintHit>,
        relevant: &mut ByRow<'_>,
    ) -> BinaryHeap<RankedHint> {
        let lines = ProgramLines::read(self, &found);
        let mends = found.into_iter().filter_map(|found| {
            let relevant = relevant.remove(&found.row);
            let place = around.find_place(&found.hint);
            let relevance = relevant.as_ref().map_or(0.0, |relevant| relevant.relevance);
            let of_place = around.weigh_words(place, SuggestMoment::Failure);
            let named = if is_fix(&found.hint) { self.find_named(&found, relevance) } else { None };
            let (shape, why) = match self.compare_shape(&found, &lines) {
                Some((shape, why)) => (shape * of_place, why),
                None if self.message.is_not_of(&found.hint) => return None,
                None if let Some(named) = &named => (0.0, named.to_reason()),
                None if is_fix(&found.hint) && relevance * of_place >= FIX_FLOOR => {
                    let words = relevant.iter().flat_map(|relevant| &relevant.words);
                    (0.0, MendReason::Fix(words.map(|word| Box::from(*word)).collect()))
                }
                None => return None,
            };
            let place_part = if place == HintPlace::Elsewhere { 0.0 } else { 0.1 };
            let fix = match named {
                Some(FixNaming::Message) => FIX_OF_THE_MESSAGE,
                Some(FixNaming::Error(_)) => FIX_OF_THE_ERROR,
                Some(FixNaming::Program(_)) => FIX_OF_THE_PROGRAM,
                None if is_fix(&found.hint) => A_FIX,
                None => 0.0,
            };
            let parts = ScoreParts::from([
                ("shape", shape),
                ("words", weigh_relevance(relevance, 0.3) * of_place),
                ("fix", fix),
                ("place", place_part),
                ("standing", weigh_score(&found, 0.1)),
            ]);
            Some(RankedHint::new(found, parts, RankReason::Mends(why)))
        });
        let mut mends: Vec<_> = mends.collect();
        // When a fix repeats the message, fixes that only share words with the message are dropped, because they are
        // for other errors.
        if mends.iter().any(|mends| matches!(mends.why, RankReason::Mends(MendReason::Message))) {
            mends.retain(|mends| !matches!(mends.why, RankReason::Mends(MendReason::Fix(_))));
        }
        let best = mends.iter().map(|mends| mends.strength).fold(0.0, f64::max);
        mends.retain(|mends| mends.strength >= CUT * best);
        mends.into()
    }

    /// Returns how the failure is connected to a fix: the fix repeats the message, or the error or a program names the
    /// fix's component or a tag.
    fn find_named<'f>(&self, found: &'f HintHit, relevance: f64) -> Option<FixNaming<'f>> {
        let hint = &found.hint;
        if self.message.is_repeated_by(hint) {
            return Some(FixNaming::Message);
        }
        // The hint shares only common words with the failure, so none of these words counts as a name.
        if relevance < NAMED_FLOOR {
            return None;
        }
        let names = || std::iter::once(hint.component()).chain(hint.tags().filter(|tag| *tag != FIX));
        // An error often repeats the name of the program that reports it.
        let is_program = |name: &str| self.programs.iter().any(|program| program.eq_ignore_ascii_case(name));
        let by_error = names().find(|name| !is_program(name) && self.of_error.name(name)).map(FixNaming::Error);
        by_error.or_else(|| names().find(|name| self.terms.name(name)).map(FixNaming::Program))
    }

    /// Compares the hint's command with the failed command.
    fn compare_shape(&self, found: &HintHit, lines: &ProgramLines) -> Option<(f64, MendReason)> {
        let begins_with_missing = |hint: &Line| {
            let is_alike = self.line.as_ref().is_some_and(|failed| begins_alike(failed, hint));
            is_alike || begins_with_one_of(hint, &self.missing)
        };
        if let Some(program) = self.tells_of_what_is_missing(&found.hint) {
            let value = found.hint.value();
            let line = if value.is_command() { value.command_line().and_then(shell::parse) } else { None };
            if line.is_none_or(|line| !begins_with_missing(&line)) {
                return Some((PROGRAM, MendReason::Program(program.to_owned())));
            }
        }
        let text = found.hint.value().command_line()?;
        let failed = self.line.as_ref()?;
        let hint = lines.by_row.get(&found.row)?;
        let is_behind = is_behind(&found.hint);
        let of_hint = collect_words(hint);
        if is_behind && of_hint.iter().all(|word| self.has_word(word)) {
            return None;
        }
        let like = lines.compute_likeness(&self.words, &of_hint);
        let names = |program: &String| hint.commands.iter().any(|command| unwrap_program(&command.program) == *program);
        if self.not_found
            && text.split_whitespace().ne(self.request.command.iter().flat_map(|line| line.split_whitespace()))
            && let Some(program) = self.missing.iter().find(|program| names(program))
            && !begins_with_missing(hint)
        {
            return Some((PROGRAM + NEAR_WORDS * like, MendReason::Program(program.clone())));
        }
        let is_nearest = like >= LEAST_LIKENESS.max(CUT * lines.nearest)
            || self.words.iter().all(|word| of_hint.binary_search(&&**word).is_ok());
        let may_be_near = !is_behind || self.name_not_known;
        (may_be_near && failed.is_near(hint) && is_nearest).then_some((NEAR + NEAR_WORDS * like, MendReason::Near))
    }
}

/// Returns true for a line that begins with the same bare program name as the failed line. If the program is missing,
/// such a line cannot work either.
fn begins_alike(failed: &Line, hint: &Line) -> bool {
    let Some(first) = hint.commands.first().filter(|first| first.assignments.is_empty()) else { return false };
    let spelled = first.words.first();
    spelled.is_some_and(|word| !word.contains('/')) && failed.heads().any(|mine| mine.words.first() == spelled)
}

/// Returns true for a line that begins with the bare name of a program in `missing`.
fn begins_with_one_of(hint: &Line, missing: &[String]) -> bool {
    let first = hint.commands.first().and_then(|first| first.words.first());
    first.is_some_and(|word| missing.iter().any(|program| program == word))
}

fn is_fix(hint: &Hint) -> bool {
    hint.tags().any(|tag| tag == FIX)
}

/// The connection between a failure and a fix: the message, or a name in the error or among the programs.
enum FixNaming<'a> {
    Message,
    Error(&'a str),
    Program(&'a str),
}

impl FixNaming<'_> {
    fn to_reason(&self) -> MendReason {
        match self {
            Self::Message => MendReason::Message,
            Self::Error(name) | Self::Program(name) => MendReason::Fix(vec![(*name).into()]),
        }
    }
}

/// The lines of the hints that run a program of the failed line. A word that many of these lines have (`build` of
/// `zig`, `run manage.py` of `uv`) says little about the caller's aim.
#[derive(Default)]
struct ProgramLines {
    by_row: HashMap<u32, Line, RandomState>,
    /// The rarity of each word: 1 if one line has it, near 0 if all lines have it. This field and the next two ignore
    /// hints for which [`is_behind`] is true.
    rarities: HashMap<String, f64, RandomState>,
    /// The rarity of a word that no line has.
    rarest: f64,
    /// The highest likeness between the failed line and a line that is near it or has one of its commands. If some hint
    /// has the same command, a line that is only near has another purpose.
    nearest: f64,
}

impl ProgramLines {
    fn read(failure: &CommandFailure, found: &[HintHit]) -> Self {
        let Some(failed) = &failure.line else { return Self::default() };
        let parse_command = |found: &HintHit| {
            let text = found.hint.value().command_line().filter(|_| failure.speaks_of_a_program(&found.hint))?;
            Some((found.row, shell::parse(text)?))
        };
        let mut lines = Self { by_row: found.iter().filter_map(parse_command).collect(), ..Self::default() };
        // A hint for which [`is_behind`] is true has no effect on the weights of other hints.
        let of_others: Vec<_> = found.iter().filter(|found| !is_behind(&found.hint)).collect();
        let of_others = || of_others.iter().filter_map(|found| lines.by_row.get(&found.row));
        let (mut having, mut count) = (HashMap::<_, usize, RandomState>::default(), 0);
        for line in of_others() {
            for word in collect_words(line) {
                *having.entry(word).or_default() += 1;
            }
            count += 1;
        }
        let rarities =
            having.into_iter().map(|(word, having)| (word.to_owned(), compute_rarity(having, count))).collect();
        (lines.rarities, lines.rarest) = (rarities, compute_rarity(1, count));
        let is_known = |line: &Line| failed.heads().any(|mine| line.heads().any(|other| mine.is_same(other)));
        let near = of_others().filter(|line| failed.is_near(line) || is_known(line));
        let nearest = near.map(|line| lines.compute_likeness(&failure.words, &collect_words(line))).fold(0.0, f64::max);
        lines.nearest = nearest;
        lines
    }

    /// Returns the likeness of two lines, 0 to 1: the words that both lines have, as a share of all their words,
    /// weighted by rarity.
    fn compute_likeness(&self, a: &[String], b: &[&str]) -> f64 {
        let rarity = |word: &str| self.rarities.get(word).copied().unwrap_or(self.rarest);
        let mut common = 0.0;
        let mut all: f64 = b.iter().map(|word| rarity(word)).sum();
        for word in a {
            let rarity = rarity(word);
            if b.binary_search(&word.as_str()).is_ok() {
                common += rarity;
            } else {
                all += rarity;
            }
        }
        if all > 0.0 { common / all } else { 0.0 }
    }
}

/// Returns the words of a line's commands, sorted, each once.
fn collect_words(line: &Line) -> Vec<&str> {
    let mut words: Vec<_> = line.heads().flat_map(|command| &command.words).map(String::as_str).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Returns the usual name of a program. A version is removed (`python3`, `godot4`), and a wrapper script (`gradlew`) is
/// replaced by the program that it runs.
fn unwrap_program(program: &str) -> String {
    match program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
        "gradlew" => "gradle".into(),
        "mvnw" => "mvn".into(),
        "" => program.into(),
        name => name.into(),
    }
}

/// The number of lines at the end of an error that are searched for the name of a missing program.
const NAMED_LINES: usize = 40;
/// The shells. Their errors name the program that was not found.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ash", "ksh", "fish"];

/// Finds the programs that an error reports as missing, in the messages of shells and package managers.
fn find_missing_programs(error: &str) -> Vec<String> {
    let mut found = Vec::new();
    let is_exit_127 = error.contains("127");
    for line in error.lines().rev().take(NAMED_LINES) {
        let name =
            find_missing_program(line.trim(), is_exit_127).map(|name| unwrap_program(after_mark(name, &['/', '\\'])));
        if let Some(name) = name.filter(|name| name.len() > 1 && !found.contains(name)) {
            found.push(name);
        }
    }
    found
}

/// Finds the program that a line of an error reports as missing. `is_exit_127` is true when the error mentions exit
/// code 127, with which a shell reports a missing program.
fn find_missing_program(line: &str, is_exit_127: bool) -> Option<&str> {
    let after = |mark: &str| {
        let offset = line.to_ascii_lowercase().find(mark)?;
        line.get(offset + mark.len()..).and_then(first_name)
    };
    let before = |mark: &str| {
        let offset = line.to_ascii_lowercase().find(mark)?;
        last_name(line.get(..offset)?)
    };
    // zsh and fish write the name after the message; other shells write it before the message.
    after("command not found: ")
        .or_else(|| after("unknown command: ").filter(|_| line.starts_with("fish:")))
        .or_else(|| before(": command not found"))
        .or_else(|| before(" is not recognized as"))
        .or_else(|| before(": executable file not found in"))
        .or_else(|| after("unable to locate package "))
        .or_else(|| after("spawn ").filter(|_| line.contains("ENOENT")))
        .or_else(|| {
            let rest = line.strip_suffix(": not found").or_else(|| line.strip_suffix(": No such file or directory"))?;
            let teller = rest.split(':').next().map(|shell| after_mark(shell, &['/'])).filter(|_| rest.contains(": "));
            let is_of_shell = teller.is_some_and(|teller| SHELLS.contains(&teller));
            let is_of_env = teller == Some("env");
            let is_alone = !rest.contains(' ') && is_exit_127;
            let is_told = if line.ends_with("not found") { is_of_shell || is_alone } else { is_of_env };
            if is_told { last_name(rest) } else { None }
        })
}

/// Returns the first word, without quotes.
fn first_name(text: &str) -> Option<&str> {
    name_of(text.split_whitespace().next()?)
}

/// Returns the last word, without quotes.
fn last_name(text: &str) -> Option<&str> {
    name_of(text.split_whitespace().next_back()?)
}

/// Returns the program's name in a word such as `'pnpm'`, `"pnpm":` or `‘pnpm’`.
fn name_of(word: &str) -> Option<&str> {
    let name = word.trim_matches(['\'', '"', '`', '‘', '’', '“', '”', ':', ',', '.', '(', ')']);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '+' | '/' | '\\' | '@');
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

/// Finds the package in Python's `No module named 'x.y'` and in Node's `Cannot find module 'x/y'`. A path is no
/// package.
fn find_missing_module(error: &str, mark: &str) -> Option<String> {
    let (_, rest) = error.split_once(mark)?;
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '@' | '/' | '.');
    let name: String = rest.trim_start_matches(['\'', '"']).chars().take_while(|c| is_name(*c)).collect();
    if name.is_empty() || name.starts_with(['.', '/']) {
        return None;
    }
    // The names of Node's scoped packages (`@scope/name`) have two parts.
    let end = if name.starts_with('@') { name.len() } else { name.find(['.', '/']).unwrap_or(name.len()) };
    Some(name[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_program_is_read_from_the_error() {
        for (error, name) in [
            ("sh: 1: pnpm: not found", "pnpm"),
            ("/bin/sh: vitest: not found", "vitest"),
            ("> vite@1 test\n> vitest run\n\nsh: 1: vitest: not found\n", "vitest"),
            ("bash: line 3: pnpm: command not found", "pnpm"),
            ("pnpm: command not found", "pnpm"),
            ("Exit code 127\npnpm: not found", "pnpm"),
            ("zsh: command not found: pnpm", "pnpm"),
            ("fish: Unknown command: pnpm", "pnpm"),
            ("'pnpm' is not recognized as an internal or external command,", "pnpm"),
            ("pnpm : The term 'pnpm' is not recognized as the name of a cmdlet", "pnpm"),
            ("exec: \"pnpm\": executable file not found in $PATH", "pnpm"),
            ("E: Unable to locate package libfoo-dev", "libfoo-dev"),
            ("Error: spawn pnpm ENOENT", "pnpm"),
            ("env: ‘node’: No such file or directory", "node"),
            ("/usr/bin/env: 'python3': No such file or directory", "python"),
        ] {
            assert_eq!(find_missing_programs(error), [name], "{error}");
        }
        for error in [
            "user: not found",
            "GET /users: not found",
            "cat: notes.md: No such file or directory",
            "error: page x: not found",
            "curl: (6) Could not resolve host: example.org",
            "",
        ] {
            assert!(find_missing_programs(error).is_empty(), "{error}: {:?}", find_missing_programs(error));
        }
        for (error, mark, name) in [
            ("ModuleNotFoundError: No module named 'requests.adapters'", "No module named ", Some("requests")),
            ("/usr/bin/python3: No module named pytest", "No module named ", Some("pytest")),
            ("Error: Cannot find module 'left-pad/x'", "Cannot find module ", Some("left-pad")),
            ("Error: Cannot find module '@scope/x'", "Cannot find module ", Some("@scope/x")),
            ("Error: Cannot find module './x.js'", "Cannot find module ", None),
        ] {
            assert_eq!(find_missing_module(error, mark).as_deref(), name, "{error}");
        }
    }
}
