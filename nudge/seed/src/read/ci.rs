//! Reads the commands that a CI server runs for every change, if a person may run them too.

use serde_json::Value;

use crate::command::CommandLine;
use crate::file::{FoundCommand, SeedFile, Why, iter_members};
use crate::walk::folder_at;

/// The most commands that are taken from one file.
const MOST: usize = 16;
/// The longest line that becomes a command, in bytes. A longer line is usually made for one machine.
const MAX_LINE: usize = 120;
/// Programs that check, test and build. The list of each program names the arguments that count; with an empty list,
/// any argument counts.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("make", &[]),
    ("just", &[]),
    ("task", &[]),
    ("mise", &["run"]),
    ("npm", &["test", "run", "t"]),
    ("pnpm", &["test", "run", "lint", "build", "-r", "--filter", "typecheck", "check", "format"]),
    ("yarn", &["test", "run", "lint", "build", "typecheck", "check", "format", "tsc"]),
    ("bun", &["test", "run"]),
    ("npx", &[]),
    ("deno", &["test", "task", "lint", "fmt", "check"]),
    (
        "cargo",
        &["test", "build", "check", "clippy", "fmt", "doc", "nextest", "bench", "hack", "deny", "miri", "xtask", "run"],
    ),
    ("go", &["test", "build", "vet", "generate", "run"]),
    ("golangci-lint", &["run"]),
    ("pytest", &[]),
    ("tox", &[]),
    ("nox", &[]),
    ("hatch", &["run", "test", "fmt"]),
    ("poe", &[]),
    ("pdm", &["run"]),
    ("uv", &["run"]),
    ("uvx", &[]),
    ("poetry", &["run"]),
    ("ruff", &[]),
    ("mypy", &[]),
    ("pyright", &[]),
    ("black", &[]),
    ("flake8", &[]),
    ("pre-commit", &["run"]),
    ("./gradlew", &[]),
    ("./mvnw", &[]),
    ("mvn", &[]),
    ("gradle", &[]),
    ("dotnet", &["test", "build", "format"]),
    ("bundle", &["exec"]),
    ("rake", &[]),
    ("mix", &["test", "format", "credo", "compile", "dialyzer"]),
    ("cmake", &["--build", "--preset"]),
    ("ctest", &[]),
    ("bazel", &["test", "build", "run"]),
    ("bazelisk", &["test", "build", "run"]),
    ("meson", &["test", "compile"]),
    ("ninja", &[]),
    ("composer", &["run", "test", "check"]),
    ("vendor/bin/phpunit", &[]),
    ("python", &["-m"]),
    ("python3", &["-m"]),
    ("swift", &["test", "build"]),
    ("zig", &["build", "test"]),
];
/// Words of lines that install, publish or change the machine. Such lines are skipped.
const OTHERS: &[&str] = &[
    "install",
    "publish",
    "upload",
    "login",
    "push",
    "deploy",
    "release",
    "codecov",
    "coveralls",
    "twine",
    "pip",
    "ensurepip",
    "venv",
    "changeset",
    "semantic-release",
    "wrangler",
    "lerna",
];
/// The modules that check, test or build when `python -m` runs them.
const MODULES: &[&str] =
    &["pytest", "unittest", "mypy", "tox", "nox", "ruff", "black", "flake8", "build", "doctest", "compileall"];

pub fn read_github(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let workflow = file.parse_yaml()?;
    let mut out = Vec::new();
    for (job, table) in iter_members(&workflow["jobs"]) {
        let default_folder = |value: &Value| value["defaults"]["run"]["working-directory"].as_str().map(str::to_owned);
        let default = default_folder(table).or_else(|| default_folder(&workflow));
        for step in table["steps"].as_array().into_iter().flatten() {
            let Some(run) = step["run"].as_str() else { continue };
            let place = step["working-directory"].as_str().or(default.as_deref()).unwrap_or(".");
            add_lines(&mut out, file, (job, step["name"].as_str()), place, run);
        }
    }
    Ok(out)
}

pub fn read_gitlab(file: &SeedFile<'_>) -> Result<Vec<FoundCommand>, Why> {
    let config = file.parse_yaml()?;
    let mut out = Vec::new();
    for (job, table) in iter_members(&config).filter(|(name, _)| !name.starts_with('.')) {
        let lines = table["script"].as_array().into_iter().flatten();
        let run: Vec<_> = lines.chain(Some(&table["script"])).filter_map(Value::as_str).collect();
        add_lines(&mut out, file, (job, None), "", &run.join("\n"));
    }
    Ok(out)
}

/// Adds the lines of a script that are useful to a person. Skips a script that changes its folder or has conditions or
/// loops.
fn add_lines(
    out: &mut Vec<FoundCommand>,
    file: &SeedFile<'_>,
    (job, step): (&str, Option<&str>),
    place: &str,
    run: &str,
) {
    let Some(folder) = folder_at(file, place) else { return };
    let run = run.replace("\\\n", " ");
    if run.lines().any(|line| {
        ["cd ", "pushd ", "if ", "for ", "case ", "while "].iter().any(|word| line.trim().starts_with(word))
    }) {
        return;
    }
    let lines: Vec<_> = run
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| is_worth(line))
        .collect();
    for line in &lines {
        if out.len() >= MOST
            || out.iter().any(|found| found.command.as_str() == line && found.folder.as_deref() == Some(&folder))
        {
            continue;
        }
        let number = file.line_where(|text| text.contains(line.as_str()));
        let number = number.unwrap_or_else(|| file.line_of(&["jobs", job]));
        let said = step.filter(|name| lines.len() == 1 && !name.contains("${{"));
        let name = said.map_or_else(|| format!("{}.{}", to_slug(job), to_slug(&shorten_line(line))), to_slug);
        let mut about = format!("run for every change, in the job {job}");
        about.extend(said.into_iter().flat_map(|name| [": ", name]));
        out.push(FoundCommand {
            name,
            command: CommandLine::of_shell(line),
            about,
            line: number,
            folder: Some(folder.clone()),
        });
    }
}

/// Returns a name for a line: its first three words that are not options.
fn shorten_line(line: &str) -> String {
    line.split_whitespace().filter(|word| !word.starts_with('-')).take(3).collect::<Vec<_>>().join("-")
}

fn to_slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().flat_map(char::to_lowercase) {
        if c.is_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    let end = out.floor_char_boundary(40);
    out.truncate(end);
    out.trim_end_matches('-').to_owned()
}

/// Returns true when a line is useful to a person who works on the code.
fn is_worth(line: &str) -> bool {
    if line.len() > MAX_LINE || line.contains(['$', '`', '|', '<', '>', ';', '&', '\\']) || line.starts_with('#') {
        return false;
    }
    let mut words = line.split_whitespace().skip_while(|word| word.contains('=') && !word.starts_with('-'));
    let Some(program) = words.next() else { return false };
    let rest: Vec<_> = words.collect();
    let is_other = rest.iter().any(|word| OTHERS.contains(word) || word.starts_with("release"));
    let first = rest.iter().find(|word| !word.starts_with('+'));
    let is_module = !program.starts_with("python") || rest.get(1).is_some_and(|module| MODULES.contains(module));
    let is_known = PROGRAMS.iter().any(|(known, begins)| {
        *known == program && (begins.is_empty() || first.is_some_and(|first| begins.contains(first)))
    });
    is_known && is_module && !is_other && !rest.contains(&"--version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_say_something_are_told_from_others() {
        for line in [
            "cargo test --all",
            "npm run build",
            "RUSTFLAGS=-Dwarnings cargo clippy",
            "python -m pytest -x",
            "make",
            "cargo +nightly fmt",
        ] {
            assert!(is_worth(line), "{line}");
        }
        for line in [
            "npm ci",
            "npm publish",
            "cargo install cross",
            "python -m pip install x",
            "echo cargo test",
            "make VERSION=$V",
            "cargo test | tee log",
            "make & curl https://example.com",
            "cargo --version",
            "sudo apt-get install make",
            "twine upload",
            "uv run twine upload dist/a",
        ] {
            assert!(!is_worth(line), "{line}");
        }
    }

    #[test]
    fn names_are_short() {
        assert_eq!((to_slug("Run Tests (Linux)"), to_slug("  ")), ("run-tests-linux".to_owned(), String::new()));
    }
}
