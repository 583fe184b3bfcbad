//! Runs the commands of the pages in `nudge/docs/`. The test types every block marked `console` into one bash, in a new
//! home with a clone of `acme/shop` and without a server. (trycmd, which runs `tests/cmd` and the README, has no shell:
//! it knows no `cd` and no pipe.)
//!
//! In a block, `$ ` starts a command, `> ` its next line, and `? ` an exit code other than 0. The other lines are the
//! output on stdout or stderr. `…` and `[..]` match any characters, a line `...` matches any lines. `UPDATE=1 cargo
//! test -p nudge-cli --test transcripts docs` writes the present output into the pages.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use snapbox::IntoData;
use snapbox::filter::NormalizeToExpected;

use crate::kit::home;

/// Separates the outputs of two commands in the output of bash. No page prints it.
const MARK: &str = "\u{1}typed";

/// Makes the clone of `acme/shop` in which a page begins.
const SHOP: &str = "
git config --global user.name Ada && git config --global user.email ada@example.org
git config --global init.defaultBranch main && git config --global advice.detachedHead false
git init --quiet shop && cd shop && git remote add origin https://github.com/acme/shop.git
printf '# Shop\\n' >README.md && git add . && git commit --quiet --message 'begin' && git switch --quiet --create dev
";

/// A command of a page.
struct Typed {
    command: String,
    /// The exit code and the output, as the page shows them.
    printed: String,
    /// The lines of the page with this exit code and output.
    at: std::ops::Range<usize>,
}

fn typed(page: &str) -> Vec<Typed> {
    let mut all: Vec<Typed> = Vec::new();
    let mut is_in = false;
    for (index, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            is_in = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_in) {
            all.push(Typed { command: command.to_owned(), printed: String::new(), at: index + 1..index + 1 });
        } else if let Some(entry) = all.last_mut().filter(|_| is_in) {
            match line.strip_prefix("> ").or(if line == ">" { Some("") } else { None }) {
                Some(more) if entry.at.is_empty() && entry.at.start == index => {
                    entry.command = format!("{}\n{more}", entry.command);
                    entry.at = index + 1..index + 1;
                }
                _ => {
                    entry.printed = format!("{}{line}\n", entry.printed);
                    entry.at.end = index + 1;
                }
            }
        }
    }
    for entry in &mut all {
        entry.printed.truncate(entry.printed.trim_end().len());
    }
    all
}

/// Stops the server that a page may have started, even if the test panics.
struct Ending(PathBuf);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = crate::kit::system::nudge(&self.0, &["stop"]).output();
    }
}

/// Runs the commands; returns the exit code and output of each, in the format of a page.
fn printed(commands: &[Typed]) -> Vec<String> {
    let home = home();
    // Resolves links in the path of the home, because the commands print the resolved path.
    let root = home.path().canonicalize().unwrap();
    let _ending = Ending(root.join("run"));
    let typed =
        commands.iter().map(|entry| format!("printf '{MARK}\\n'\n{}\nprintf '{MARK} %d\\n' $?\n", entry.command));
    let script = std::iter::once(format!("exec 2>&1\n{SHOP}\n")).chain(typed).collect::<String>();
    let nudge = Path::new(env!("CARGO_BIN_EXE_nudge")).parent().unwrap().to_owned();
    let path = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let mut bash = Command::new("bash");
    // Clears the environment: a reader of the page does not have the tester's variables. With `CI` set, for example,
    // other scopes would apply.
    bash.env_clear().arg("--noprofile").arg("--norc").current_dir(&root).env("PWD", &root).env("HOME", &root);
    bash.env("PATH", std::env::join_paths(std::iter::once(nudge).chain(path)).unwrap());
    bash.env("NUDGE_RUNTIME_DIR", root.join("run"))
        .env("NUDGE_PORT", "0")
        .env("NUDGE_HOOK_MS", "5000")
        .env("TMPDIR", &root)
        .env("LANG", "C.UTF-8")
        .env("TZ", "UTC");
    let mut bash = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    bash.stdin.take().unwrap().write_all(format!("{{\n{script}\n}} </dev/null\n").as_bytes()).unwrap();
    let output = bash.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap().replace(root.to_str().unwrap(), "/home/ada");
    let parts: Vec<_> = said.split(MARK).skip(1).collect();
    assert_eq!(parts.len(), 2 * commands.len(), "the shell ended early:\n{said}");
    let render = |pair: &[&str]| {
        let code = pair[1].trim();
        let code = if code == "0" { String::new() } else { format!("? {}\n", code.lines().next().unwrap()) };
        format!("{code}{}", pair[0].trim_start_matches('\n').trim_end())
    };
    parts.chunks(2).map(render).collect()
}

/// Returns true when a page may show `written` for the output `printed`.
fn fits(printed: &str, written: &str) -> bool {
    let written = written.replace('…', "[..]");
    let lines = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let written = lines(&written).into_data();
    // Compares without a filter for paths, which would turn each backslash into a slash.
    NormalizeToExpected::new().redact().normalize(lines(printed).into_data(), &written) == written
}

fn follow(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nudge/docs").join(name);
    let page = fs::read_to_string(&path).unwrap();
    let commands = typed(&page);
    assert!(!commands.is_empty(), "{name} has nothing to be typed");
    let mut lines: Vec<String> = page.lines().map(str::to_owned).collect();
    let mut wrong = String::new();
    for (entry, printed) in commands.iter().zip(printed(&commands)).rev() {
        if fits(&printed, &entry.printed) {
            continue;
        }
        let (line, command, written) = (entry.at.start, &entry.command, &entry.printed);
        wrong = format!("{name}:{line}: $ {command}\n--- the page\n{written}\n--- is printed\n{printed}\n\n{wrong}");
        let blank = if lines.get(entry.at.end).is_some_and(|line| line == "```") { "" } else { "\n" };
        lines.splice(
            entry.at.clone(),
            format!("{printed}{blank}")
                .split('\n')
                .map(str::to_owned)
                .filter(|_| !printed.is_empty() || !blank.is_empty()),
        );
    }
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        fs::write(&path, lines.join("\n") + "\n").unwrap();
    } else {
        assert!(wrong.is_empty(), "{wrong}");
    }
}

/// Makes one test for each page, and one test that every page with commands is in this list.
macro_rules! pages {
    ($($test:ident: $page:literal,)*) => {
        $(#[test]
        fn $test() {
            follow($page);
        })*

        /// Promise (code and documents): Each command in the documentation prints the text that the page shows.
        #[test]
        fn every_page_that_shows_commands_is_followed() {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nudge/docs");
            let pages = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let mut with: Vec<_> = pages
                .filter(|path| path.extension().is_some_and(|ext| ext == "md"))
                .filter(|path| fs::read_to_string(path).unwrap().contains("\n```console\n"))
                .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
                .collect();
            with.sort();
            assert_eq!(with, [$($page),*]);
        }
    };
}

pages! {
    brain: "brain.md",
    capture: "capture.md",
    choice: "choice.md",
    code: "code.md",
    hooks: "hooks.md",
    keeping: "keeping.md",
    privacy: "privacy.md",
    records: "records.md",
    rpc: "rpc.md",
    scopes: "scopes.md",
    seeds: "seeds.md",
    signals: "signals.md",
    troubleshooting: "troubleshooting.md",
}
