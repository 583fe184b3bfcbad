//! Finds the program of a command, and removes the wrappers before it.

use crate::text::after_mark;

/// A program that runs its other words as a command, such as `sudo`.
struct WrapperProgram {
    name: &'static str,
    /// The options that take the next word as their value.
    valued: &'static [&'static str],
    /// The options with which the program does not run a command.
    other: &'static [&'static str],
    /// The number of words between the options and the command.
    words: usize,
}

const fn new_wrapper(
    name: &'static str,
    valued: &'static [&'static str],
    other: &'static [&'static str],
) -> WrapperProgram {
    WrapperProgram { name, valued, other, words: 0 }
}

const WRAPPERS: &[WrapperProgram] = &[
    new_wrapper(
        "sudo",
        &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "--user", "--group", "--prompt"],
        &["-D", "-R", "-e", "-i", "-l", "-s", "-v", "-k", "-K", "--edit", "--login", "--list", "--shell", "--chdir"],
    ),
    new_wrapper("doas", &["-u", "-C"], &["-s", "-L"]),
    WrapperProgram { words: 1, ..new_wrapper("timeout", &["-k", "-s", "--kill-after", "--signal"], &[]) },
    WrapperProgram { words: 1, ..new_wrapper("gtimeout", &["-k", "-s", "--kill-after", "--signal"], &[]) },
    new_wrapper("env", &["-u", "--unset"], &["-C", "-S", "--chdir", "--split-string"]),
    new_wrapper("nice", &["-n", "--adjustment"], &[]),
    new_wrapper("ionice", &["-c", "-n", "--class", "--classdata"], &["-p", "-P", "-u"]),
    new_wrapper("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], &[]),
    new_wrapper("time", &["-f", "-o", "--format", "--output"], &[]),
    new_wrapper("nohup", &[], &[]),
    new_wrapper("setsid", &[], &[]),
    new_wrapper("chronic", &[], &[]),
    new_wrapper("caffeinate", &["-t", "-w"], &[]),
    new_wrapper("builtin", &[], &[]),
    new_wrapper("command", &[], &["-v", "-V"]),
    new_wrapper("exec", &["-a"], &[]),
];

/// Programs that pass their input on and seldom fail.
const PASSES_ON: &[&str] = &["tail", "tee", "cat", "sort", "uniq", "wc", "nl", "tr", "cut"];

const SHELLS: &[&str] = &["bash", "sh", "zsh", "dash", "ksh"];

/// Returns true for a program that passes its input on. At the end of a pipe it adds no output of its own.
pub(super) fn passes_on(program: &str) -> bool {
    PASSES_ON.contains(&program)
}

/// Returns the last path component of a program.
pub(super) fn base_name(word: &str) -> &str {
    let name = after_mark(word, &['/', '\\']);
    name.strip_suffix(".exe").unwrap_or(name)
}

/// Reads the name and the value of an assignment.
pub(super) fn parse_assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')).then(|| (name.into(), value.into()))
}

/// Returns the wrapper at the beginning of a command, and the number of words that belong to the wrapper. `None` when
/// there is no wrapper, or when its options stop it from running a command.
pub(super) fn find_wrapper<W: AsRef<str>>(words: &[W]) -> Option<(&'static str, usize)> {
    let name = base_name(words.first()?.as_ref());
    let wrapper = WRAPPERS.iter().find(|wrapper| wrapper.name == name)?;
    let mut index = 1;
    while let Some(option) = words.get(index).map(AsRef::as_ref).filter(|word| word.len() > 1 && word.starts_with('-'))
    {
        if wrapper.other.contains(&option) {
            return None;
        }
        index += 1 + usize::from(wrapper.valued.contains(&option));
        if option == "--" {
            break;
        }
    }
    index += wrapper.words;
    (index < words.len()).then_some((wrapper.name, index))
}

/// A shell script that is one of the words of a command.
pub(super) struct ShellScript {
    /// The index of the word with the script.
    pub word_index: usize,
    pub options: ShellOptions,
}

/// The options of the shell, which `set` switches on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ShellOptions {
    /// Is true when a pipeline fails if any of its commands fails.
    pub pipefail: bool,
    /// Is true when the first failed command ends the line.
    pub errexit: bool,
}

impl ShellOptions {
    /// Reads the options of `set` or of a shell. Returns the number of words that are options, and whether `c` is among
    /// the options.
    pub fn read<W: AsRef<str>>(&mut self, words: &[W]) -> (usize, bool) {
        let (mut index, mut script) = (0, false);
        while let Some(option) = words.get(index).map(AsRef::as_ref) {
            let Some(on) = option.chars().next().filter(|c| "-+".contains(*c) && option.len() > 1) else { break };
            index += 1;
            if option == "--" {
                break;
            }
            if option.starts_with("--") {
                continue;
            }
            let on = on == '-';
            script |= on && option.contains('c');
            if option.contains('e') {
                self.errexit = on;
            }
            if option.ends_with('o') {
                match words.get(index).map(AsRef::as_ref) {
                    Some("pipefail") => self.pipefail = on,
                    Some("errexit") => self.errexit = on,
                    _ => {}
                }
                index += 1;
            }
        }
        (index, script)
    }
}

/// Finds the script in a command such as `bash -lc "..."`.
pub(super) fn find_script<W: AsRef<str>>(words: &[W]) -> Option<ShellScript> {
    let (program, rest) = words.split_first()?;
    if !SHELLS.contains(&base_name(program.as_ref())) {
        return None;
    }
    let mut options = ShellOptions::default();
    let (taken, script) = options.read(rest);
    (script && taken < rest.len()).then_some(ShellScript { word_index: 1 + taken, options })
}

/// Returns the program of a command, and the number of words that name the program.
pub(super) fn find_program(words: &[String]) -> (String, usize) {
    let word = |index: usize| words.get(index).map(String::as_str);
    let name = base_name(word(0).unwrap_or_default());
    if name == "docker-compose" {
        return ("docker compose".into(), 1);
    }
    if name == "docker" && word(1) == Some("compose") {
        return ("docker compose".into(), 2);
    }
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("py"));
    if version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.')) {
        // An option such as `-u` may come before `-m`.
        let flag = 1 + usize::from(word(1) != Some("-m") && word(1).is_some_and(|word| word.starts_with('-')));
        if let (Some("-m"), Some(module)) = (word(flag), word(flag + 1)) {
            return (module.into(), flag + 2);
        }
    }
    (name.into(), 1)
}
