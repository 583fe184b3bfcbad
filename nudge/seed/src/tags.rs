//! Makes the tags of a command. Tags are words by which a user may search for the command.

/// Words in the names of commands, each list with the words by which users search for such a command.
const ASKED_AS: &[(&[&str], &[&str])] = &[
    (&["test", "tests", "unit", "spec", "pytest", "jest", "vitest", "nextest", "check"], &["test", "tests"]),
    (&["build", "compile", "package", "assemble", "dist", "bundle"], &["build", "compile"]),
    (&["lint", "clippy", "eslint", "ruff", "flake8", "pylint"], &["lint", "linter"]),
    (&["fmt", "format", "prettier", "black", "fix"], &["format", "formatter"]),
    (&["typecheck", "types", "mypy", "tsc", "pyright"], &["types", "typecheck"]),
    (&["dev", "serve", "start", "run", "up", "server"], &["start", "run", "server"]),
    (&["docs", "doc", "documentation", "html"], &["docs", "documentation"]),
    (&["bench", "benchmark", "benchmarks", "perf"], &["benchmark"]),
    (&["clean", "distclean"], &["clean"]),
    (&["install", "setup", "bootstrap", "deps"], &["install", "setup", "dependencies"]),
    (&["e2e", "integration", "playwright", "cypress"], &["e2e", "integration", "test"]),
    (&["coverage", "cov"], &["coverage", "test"]),
    (&["migrate", "migration", "migrations"], &["migrate", "database"]),
    (&["release", "publish", "deploy"], &["release", "deploy"]),
    (&["watch"], &["watch"]),
];
/// The most tags of a seed.
const MAX: usize = 10;
/// The longest tag, in bytes.
const MAX_BYTES: usize = 32;

/// Makes the tags of a command: the words of its name, the words with which users search for them, and the program.
pub fn make_tags(format: &str, name: &str, command: &str) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    let mut add = |tag: &str| {
        let tag = tag.to_lowercase();
        let fits =
            (2..=MAX_BYTES).contains(&tag.len()) && tag.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
        if fits && tags.len() < MAX && !tags.contains(&tag) {
            tags.push(tag);
        }
    };
    let words: Vec<_> = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    for word in &words {
        add(word);
    }
    for word in &words {
        let word = word.to_lowercase();
        for (_, asked) in ASKED_AS.iter().filter(|(words, _)| words.contains(&word.as_str())) {
            asked.iter().for_each(|tag| add(tag));
        }
    }
    if let Some(program) = command.split_whitespace().next() {
        add(program.trim_start_matches("./"));
    }
    add(format);
    tags
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_is_asked_for_by_more_than_its_name() {
        for (format, name, command, tags) in [
            ("npm", "test:unit", "npm run test:unit", "test unit tests npm"),
            ("make", "fmt", "make fmt", "fmt format formatter make"),
            ("gradle", "build", "./gradlew build", "build compile gradlew gradle"),
        ] {
            assert_eq!(super::make_tags(format, name, command).join(" "), tags);
        }
    }
}
