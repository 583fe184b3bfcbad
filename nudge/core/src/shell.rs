//! Finds the simple commands of a command line, and tells how much the line's exit code says about each of them
//! (semantics section 10).
//!
//! Agents seldom run a plain `npm test`; they run `cd web && CI=1 timeout 60 npm test 2>&1 | tail -20`. [`parse`]
//! removes `cd`, wrappers such as `sudo`, `time`, `timeout 60`, `env` and `bash -lc "..."`, redirections and groups.
//! The result is the remaining simple commands, each with its variables, its folder and its position in the pipeline.
//!
//! The parser accepts any text as a line, within limits for the length ([`MAX_BYTES`]) and the depth of the nesting.
//! For a line beyond these limits [`parse`] returns [`None`]. A line without quotes and operators is split at its
//! spaces.

mod bounds;
mod simple;
#[cfg(test)]
mod tests;
mod unquote;
mod walk;

pub use bounds::MAX_BYTES;

/// A parsed command line.
///
/// ```
/// use nudge_core::shell::{Folder, parse};
///
/// let line = parse("cd web && CI=1 timeout 60 npm test 2>&1 | tail").unwrap();
/// let [test, tail] = &line.commands[..] else { panic!() };
/// assert_eq!((&*test.program, test.words.join(" ")), ("npm", "npm test".into()));
/// assert_eq!(test.folder, Folder::At("web".into()));
/// assert!(tail.piped && !test.told.success, "the exit code is that of tail");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// The simple commands of the line, in order, without `cd`, `export` and `set`, which only change the commands
    /// after them. A line such as `cd web` has no command in this list.
    pub commands: Vec<Command>,
    /// Is true when the last command runs in the background, so that the line's exit code says nothing about this
    /// command.
    pub background: bool,
}

/// A simple command of a [`Line`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The program, by its last path component. `docker-compose` counts as `docker compose`, `python -m pytest` as
    /// `pytest`.
    pub program: String,
    /// The words from the program on, without quotes. Text that the shell would replace (`$HOME`, `$(date)`) stays as
    /// written; a `$` that is a plain character is `\$`.
    pub words: Vec<String>,
    /// The variables that assignments, `env` or `export` set for the command, in byte order.
    pub assignments: Vec<(String, String)>,
    /// The folder in which the command runs.
    pub folder: Folder,
    /// The redirected input of the command; the output of another command does not count.
    pub input: Input,
    /// Is true when the command runs as another user, by `sudo` or `doas`.
    pub elevated: bool,
    /// Is true when `timeout` limits the command, so that the limit may have ended it.
    pub limited: bool,
    /// Is true when the command is not the first of its pipeline, so that it reads the output of another command.
    pub piped: bool,
    /// How much the line's exit code says about the command.
    pub told: Told,
    /// The number of words that name the program.
    program_words: usize,
}

/// The folder in which a command of a line runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Folder {
    /// The folder in which the line was started.
    #[default]
    Here,
    /// The folder after `cd`: absolute, or relative to the folder in which the line was started.
    At(String),
    /// The folder after a `cd` whose target only the shell can compute.
    Unknown,
}

/// The redirected input of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Input {
    /// No input, or `/dev/null`.
    #[default]
    None,
    /// A file, or the text after `<<<`.
    From(String),
    /// A here-document. The parser drops its text, so no two here-documents count as equal.
    Document,
}

/// How much the exit code of a line says about one of its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// Is true when the success of the line means that the command succeeded.
    pub success: bool,
    /// Is true when the failure of the line means that the command failed.
    pub failure: bool,
    /// Is true when the exit code of a failed line is the command's own code.
    pub code: bool,
}

impl Told {
    const ALL: Self = Self { success: true, failure: true, code: true };
    const NOTHING: Self = Self { success: false, failure: false, code: false };
}

/// The exit codes with which `timeout` and `timeout -s KILL` report that the time limit ended the command.
const ENDED: [i64; 2] = [124, 137];

impl Command {
    /// Returns true when both commands have the same words, variables and input. Their folders and users may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        self.words == other.words
            && self.assignments == other.assignments
            && self.input == other.input
            && self.input != Input::Document
    }

    /// Returns true when a hint's command, `other`, may work where this one failed. Both must have the same program,
    /// and must share at least half of the arguments of the command that has fewer arguments. The same command counts
    /// only if it runs in another folder or as another user.
    pub fn is_near(&self, other: &Self) -> bool {
        if self.program.is_empty() || self.program != other.program {
            return false;
        }
        let elsewhere = other.folder != Folder::Here && other.folder != self.folder;
        if self.is_same(other) {
            return elsewhere || self.elevated != other.elevated;
        }
        let (mine, others) = (self.distinct_arguments(), other.distinct_arguments());
        let common = mine.iter().filter(|word| others.binary_search(word).is_ok()).count();
        2 * common >= mine.len().min(others.len())
    }

    /// Returns whether this command succeeded, and its exit code if that is known. `ok` and `exit_code` tell how the
    /// whole line ended. `None` when the end of the line says nothing about this command.
    pub fn ended(&self, ok: bool, exit_code: Option<i64>) -> Option<(bool, Option<i64>)> {
        let says = if ok { self.told.success } else { self.told.failure };
        let by_time = self.limited && exit_code.is_some_and(|code| ENDED.contains(&code));
        (says && !by_time && self.folder != Folder::Unknown).then(|| (ok, exit_code.filter(|_| self.told.code)))
    }

    /// Returns the words after those that name the program.
    pub fn arguments(&self) -> &[String] {
        self.words.get(self.program_words..).unwrap_or_default()
    }

    fn distinct_arguments(&self) -> Vec<&str> {
        let mut words: Vec<_> = self.arguments().iter().map(String::as_str).collect();
        words.sort_unstable();
        words.dedup();
        words
    }
}

impl Line {
    /// Returns the first command of each pipeline; the other commands read the output of another command.
    pub fn heads(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| !command.piped)
    }

    /// Returns true when a hint's line, `other`, may work where this one failed: a command of `other` [is
    /// near](Command::is_near) a command of this line, and no command is the same in both.
    pub fn is_near(&self, other: &Self) -> bool {
        let mut near = false;
        for mine in self.heads() {
            for others in other.heads() {
                let fits = mine.is_near(others);
                if !fits && mine.is_same(others) {
                    return false;
                }
                near |= fits;
            }
        }
        near
    }

    /// Returns the command of a line that has only one. Programs after it that only pass its output on (`| tee log`) do
    /// not count.
    pub fn only(&self) -> Option<&Command> {
        let (first, rest) = self.commands.split_first()?;
        rest.iter().all(|command| command.piped && simple::passes_on(&command.program)).then_some(first)
    }

    /// Returns true when both lines have the same commands, joined in the same way.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |(a, b): (&Command, &Command)| {
            a.is_same(b) && a.folder == b.folder && a.piped == b.piped && a.told == b.told
        };
        self.background == other.background
            && self.commands.len() == other.commands.len()
            && self.commands.iter().zip(&other.commands).all(same)
    }
}

/// Parses a command line by the rules of `bash`. `None` when the syntax is wrong, when the line without its
/// here-documents is longer than [`MAX_BYTES`], or when it nests deeper than real lines do.
pub fn parse(line: &str) -> Option<Line> {
    let mut walk = walk::ShellWalk::default();
    walk.walk_line(line, Told::ALL)?;
    Some(walk.into_line())
}
