//! Finds the simple commands of a command line, and the meaning of the line's exit code for each (semantics section
//! 10).
//!
//! Agents seldom run `npm test`; they run `cd web && CI=1 timeout 60 npm test 2>&1 | tail -20`. [`parse`] looks through
//! `cd`, wrappers such as `sudo`, `time`, `timeout 60`, `env`, `bash -lc "..."`, redirections and groups, and tells which
//! simple commands are left, with which variables, in which folder, as which part of a pipeline.
//!
//! A line may be anything, so the parser's input is bounded ([`MAX_BYTES`], and by how deep a line may nest): a line
//! beyond the bounds is not understood, which is [`None`]. Lines without any quotes or operators do not need the
//! parser.

mod bounds;
mod simple;
#[cfg(test)]
mod tests;
mod unquote;
mod walk;

pub use bounds::MAX_BYTES;

/// A command line, understood.
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
    /// Its simple commands, in the order in which they stand; without `cd`, `export` and `set`, which change what comes
    /// after them. None of them for a line such as `cd web`.
    pub commands: Vec<Command>,
    /// True when its end runs in the background, so that its exit code says nothing.
    pub background: bool,
}

/// One simple command of a [`Line`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Its program: the last path component. `docker-compose` is `docker compose`, `python -m pytest` is `pytest`.
    pub program: String,
    /// Its words as they are, from the program on, without quotes. What the shell would put in (`$HOME`, `$(date)`)
    /// stands as it is; a `$` that is only a character is `\$`.
    pub words: Vec<String>,
    /// The variables set for it, by assignments, `env` or `export` before it, in byte order.
    pub assignments: Vec<(String, String)>,
    /// Where it runs.
    pub folder: Folder,
    /// What it reads, but for what another command writes.
    pub input: Input,
    /// It runs as another user, by `sudo` or `doas`.
    pub elevated: bool,
    /// A time limit may have ended it, by `timeout`.
    pub limited: bool,
    /// It is not the first of its pipeline, so that it reads what another writes.
    pub piped: bool,
    /// What the line's exit code says of it.
    pub told: Told,
    /// The number of words that say the program.
    program_words: usize,
}

/// The folder in which a command of a line runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Folder {
    /// Where the line was started.
    #[default]
    Here,
    /// Where `cd` went, relative to where the line was started or absolute.
    At(String),
    /// Where `cd` went, which only the shell knows.
    Unknown,
}

/// What a command is redirected to read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Input {
    /// Nothing, or `/dev/null`.
    #[default]
    None,
    /// A file, or the text behind `<<<`.
    From(String),
    /// A here-document. Its text is not kept, so that no two are taken for the same.
    Document,
}

/// What the exit code of a line says of one of its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Told {
    /// When the line succeeded, the command did.
    pub success: bool,
    /// When the line failed, the command did.
    pub failure: bool,
    /// When both failed, the exit code is the command's.
    pub code: bool,
}

impl Told {
    const ALL: Self = Self { success: true, failure: true, code: true };
    const NOTHING: Self = Self { success: false, failure: false, code: false };
}

/// Exit codes of a command that a time limit has ended: of `timeout`, and of `timeout -s KILL`.
const ENDED: [i64; 2] = [124, 137];

impl Command {
    /// True for the same words, variables and input. Where it runs does not count, nor who runs it.
    pub fn is_same(&self, other: &Self) -> bool {
        self.words == other.words
            && self.assignments == other.assignments
            && self.input == other.input
            && self.input != Input::Document
    }

    /// True when this failed and a hint's command, `other`, may be what works: the same program, and at least half of the
    /// words of the one that has fewer, or the same words with other variables, in a folder of its own, as another user.
    /// Not true for the same command.
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

    /// What the end of the line says of this command: whether it succeeded, and its exit code where that is known. `None`
    /// when it says nothing.
    pub fn ended(&self, ok: bool, exit_code: Option<i64>) -> Option<(bool, Option<i64>)> {
        let says = if ok { self.told.success } else { self.told.failure };
        let by_time = self.limited && exit_code.is_some_and(|code| ENDED.contains(&code));
        (says && !by_time && self.folder != Folder::Unknown).then(|| (ok, exit_code.filter(|_| self.told.code)))
    }

    /// Its words behind those that say the program.
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
    /// The commands that do not read what another writes: of each pipeline the first.
    pub fn heads(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|command| !command.piped)
    }

    /// True when this failed and a hint's line, `other`, may be what works: some command of it [is near](Command::is_near)
    /// one of this, and none is the same.
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

    /// The only command of a line that is one command, whatever it writes goes through (`| tee log`).
    pub fn only(&self) -> Option<&Command> {
        let (first, rest) = self.commands.split_first()?;
        rest.iter().all(|command| command.piped && simple::passes_on(&command.program)).then_some(first)
    }

    /// True for the same commands, joined in the same way.
    pub fn is_same(&self, other: &Self) -> bool {
        let same = |(a, b): (&Command, &Command)| {
            a.is_same(b) && a.folder == b.folder && a.piped == b.piped && a.told == b.told
        };
        self.background == other.background
            && self.commands.len() == other.commands.len()
            && self.commands.iter().zip(&other.commands).all(same)
    }
}

/// Reads a command line as `bash` would. `None` when it is not understood: its syntax is wrong, it is longer than
/// [`MAX_BYTES`] without its here-documents, or nests deeper than lines do that somebody means.
pub fn parse(line: &str) -> Option<Line> {
    let mut walk = walk::ShellWalk::default();
    walk.walk_line(line, Told::ALL)?;
    Some(walk.into_line())
}
