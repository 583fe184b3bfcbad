//! Compares a command line that an agent ran with the commands of hints, and tells how the command of each hint ended
//! (semantics section 10).

use memchr::memmem::Finder;
use nudge_core::context::Context;
use nudge_core::error::Result;
use nudge_core::shell::{self, Command, Folder, Line};
use nudge_core::steps::StepBudget;
use nudge_core::suggest::CommandOutcome;

/// The steps for each byte of a parsed line. Parsing takes longer than comparing.
const STEPS_PER_BYTE: usize = 16;

/// A command line that an agent ran, prepared for the comparison with thousands of hints.
pub(crate) struct RanCommand<'a> {
    outcome: &'a CommandOutcome<'a>,
    line: Option<Line>,
    /// For each command of the line, the index in `places` of the context in which it ran; `None` if that is unknown.
    place_indexes: Vec<Option<usize>>,
    /// The contexts. The first is the context of the line; the others are the contexts of its commands.
    places: Vec<Context>,
    /// For each command that a hint may name, the words that the hint must contain. The longest word comes first.
    needles: Vec<Vec<Finder<'static>>>,
}

/// The end of a command that a hint names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandEnd {
    pub ok: bool,
    pub exit_code: Option<i64>,
    /// The index in [`RanCommand::places`] of the context that the hint must fit.
    pub place: usize,
}

impl<'a> RanCommand<'a> {
    /// Parses the line of an outcome.
    ///
    /// # Errors
    /// An error when the steps are used up.
    pub fn new(outcome: &'a CommandOutcome<'a>, steps: &mut StepBudget) -> Result<Self> {
        steps.take_steps(outcome.command.len() * STEPS_PER_BYTE)?;
        let line = shell::parse(outcome.command);
        let mut places = vec![outcome.context.clone()];
        let mut folders: Vec<(&str, Option<usize>)> = Vec::new();
        let mut folder_places = Vec::new();
        for command in line.iter().flat_map(|line| &line.commands) {
            folder_places.push(match &command.folder {
                Folder::Here => Some(0),
                Folder::Unknown => None,
                Folder::At(folder) => {
                    if let Some((_, place)) = folders.iter().find(|(known, _)| known == folder) {
                        *place
                    } else {
                        let place = outcome.context.after_cd(folder).map(|context| {
                            places.push(context);
                            places.len() - 1
                        });
                        folders.push((folder, place));
                        place
                    }
                }
            });
        }
        let needles = line.iter().flat_map(Line::heads).map(make_needles).collect();
        Ok(Self { outcome, line, place_indexes: folder_places, places, needles })
    }

    /// Returns the contexts: first the context of the line, then the contexts of its commands.
    pub fn places(&self) -> &[Context] {
        &self.places
    }

    /// Returns the end of a hint's command. `hint` is the command line of the hint. `None` if the end of the whole line
    /// says nothing about this command.
    ///
    /// # Errors
    /// An error when the steps are used up.
    pub fn says_of(&self, hint: &str, steps: &mut StepBudget) -> Result<Option<CommandEnd>> {
        let CommandOutcome { command, ok, exit_code, .. } = *self.outcome;
        let whole = CommandEnd { ok, exit_code, place: 0 };
        let background = self.line.as_ref().is_some_and(|line| line.background);
        let mut words = command.split_whitespace().peekable();
        if words.peek().is_some() && words.eq(hint.split_whitespace()) {
            return Ok((!background).then_some(whole));
        }
        let Some(line) = self.line.as_ref().filter(|_| self.may_be_in(hint)) else { return Ok(None) };
        steps.take_steps(hint.len() * STEPS_PER_BYTE)?;
        let Some(hint) = shell::parse(hint).filter(|hint| !hint.background) else { return Ok(None) };
        let Some(only) = hint.only() else {
            return Ok((!background && hint.commands.len() > 1 && line.is_same(&hint)).then_some(whole));
        };
        Ok(line.commands.iter().zip(&self.place_indexes).find_map(|(command, folder_place)| {
            let here =
                if only.folder == Folder::Here { *folder_place } else { (only.folder == command.folder).then_some(0) };
            let (ok, exit_code) = command.ended(ok, exit_code)?;
            let place = here.filter(|_| !command.piped && command.is_same(only))?;
            Some(CommandEnd { ok, exit_code, place })
        }))
    }

    /// Returns false for most hints that contain none of the commands. The check saves parsing the hint's line, which
    /// takes a hundred times as long.
    fn may_be_in(&self, hint: &str) -> bool {
        self.needles.iter().any(|needles| needles.iter().all(|needle| needle.find(hint.as_bytes()).is_some()))
    }
}

fn make_needles(command: &Command) -> Vec<Finder<'static>> {
    let plain = |word: &&String| word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:=,@+%".contains(&b));
    let mut words: Vec<_> = command.words.iter().filter(plain).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.into_iter().map(|word| Finder::new(word).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the end of a hint's command as text: `+` or `-`, the exit code, and the folder in which the hint must
    /// fit.
    fn says(line: &str, ok: bool, exit_code: Option<i64>, hint: &str) -> String {
        let context = Context::builder().cwd("/r").build().unwrap();
        let outcome = CommandOutcome { command: line, ok, exit_code, context: &context, client_session: None };
        let mut steps = StepBudget::of_a_call();
        let ran = RanCommand::new(&outcome, &mut steps).unwrap();
        ran.says_of(hint, &mut steps).unwrap().map_or("nothing".into(), |ended| {
            let code = ended.exit_code.map(|code| code.to_string()).unwrap_or_default();
            format!("{}{code} {}", if ended.ok { "+" } else { "-" }, ran.places()[ended.place].cwd().unwrap())
        })
    }

    #[test]
    fn forms_of_one_command() {
        for (line, success, failure) in [
            ("npm test", "+0 /r", "-1 /r"),
            (" npm  test\n", "+0 /r", "-1 /r"),
            ("cd web && npm test", "+0 /r/web", "-1 /r/web"),
            ("cd web; npm test", "+0 /r/web", "-1 /r/web"),
            ("cd /r/web && npm test", "+0 /r/web", "-1 /r/web"),
            ("cd ~/web && npm test", "nothing", "nothing"),
            ("npm test 2>&1", "+0 /r", "-1 /r"),
            ("npm test > log 2>&1", "+0 /r", "-1 /r"),
            ("npm test | tail", "nothing", "nothing"),
            ("set -o pipefail; npm test | tail", "+0 /r", "-1 /r"),
            ("set -o pipefail; npm test | grep x", "+0 /r", "nothing"),
            ("CI=1 npm test", "nothing", "nothing"),
            ("timeout 60 npm test", "+0 /r", "-1 /r"),
            ("time npm test", "+0 /r", "-1 /r"),
            ("(npm test)", "+0 /r", "-1 /r"),
            ("(cd web && npm test)", "+0 /r/web", "-1 /r/web"),
            ("bash -lc \"npm test\"", "+0 /r", "-1 /r"),
            ("npm test; echo done", "nothing", "nothing"),
            ("echo start; npm test", "+0 /r", "-1 /r"),
            ("npm ci && npm test", "+0 /r", "nothing"),
            ("npm test && npm run build", "+0 /r", "nothing"),
            ("npm test || true", "nothing", "- /r"),
            ("npm test &", "nothing", "nothing"),
            ("npm test & wait", "nothing", "nothing"),
            ("! npm test", "nothing", "nothing"),
            ("if npm test; then echo ok; fi", "nothing", "nothing"),
            ("cat > x <<'E'\nnpm test\nE", "nothing", "nothing"),
            ("cat > x <<'E'\nx\nE\nnpm test", "+0 /r", "-1 /r"),
            ("npm test <<E\ny\nE", "nothing", "nothing"),
            ("npm test # all of it", "+0 /r", "-1 /r"),
            ("echo 'npm test'", "nothing", "nothing"),
            ("echo npm test", "nothing", "nothing"),
            ("npm test 'x", "nothing", "nothing"),
        ] {
            assert_eq!(says(line, true, Some(0), "npm test"), success, "{line}");
            assert_eq!(says(line, false, Some(1), "npm test"), failure, "{line}");
        }
    }

    #[test]
    fn hints_are_read_as_lines() {
        for (line, hint, success) in [
            ("npm test", "sudo npm test 2>&1", "+0 /r"),
            ("CI=1 npm test", "env CI=1 npm test", "+0 /r"),
            ("cd web && npm test", "cd web && npm test", "+0 /r"),
            ("cd web && npm test 2>&1", "cd web && npm test", "+0 /r"),
            ("cd api && npm test", "cd web && npm test", "nothing"),
            ("npm test", "cd web && npm test", "nothing"),
            ("npm ci && npm test", "npm ci && npm test", "+0 /r"),
            ("npm ci  && npm test 2>&1", "npm ci && npm test", "+0 /r"),
            ("npm ci; npm test", "npm ci && npm test", "nothing"),
            ("npm test", "npm ci && npm test", "nothing"),
            ("ps aux", "ps aux | grep node", "nothing"),
            ("ps aux | grep node", "ps aux | grep node", "+0 /r"),
            ("npm start &", "npm start &", "nothing"),
            ("make | tee log", "make 2>&1 | tee log", "nothing"),
            ("make", "make 2>&1 | tee log", "+0 /r"),
            ("never say npm test", "never say npm test", "+0 /r"),
            ("echo 'it", "echo  'it", "+0 /r"),
            ("", "", "nothing"),
            ("cd web", "cd web", "+0 /r"),
        ] {
            assert_eq!(says(line, true, Some(0), hint), success, "{line} | {hint}");
        }
    }

    #[test]
    fn a_hint_that_takes_more_steps_than_are_left_is_not_read() {
        let context = Context::default();
        let line = "npm test";
        let outcome =
            CommandOutcome { command: line, ok: true, exit_code: None, context: &context, client_session: None };
        let mut steps = StepBudget::of_a_call().split_off(1 << 16);
        let ran = RanCommand::new(&outcome, &mut steps).unwrap();
        let long = format!("npm test '{}'", "x".repeat(60_000));
        assert!(ran.says_of(&long, &mut steps).unwrap_err().lacks_steps());
        assert!(ran.says_of("make", &mut steps).unwrap().is_none(), "most need not be read");
    }
}
