//! Tests rules for code and documents that the compiler does not check.

#[path = "tidy/promises.rs"]
mod promises;
#[path = "tidy/tuning.rs"]
mod tuning;
#[path = "tidy/words.rs"]
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nudge::ErrorKind;

/// The most lines of a source file that people write.
const MAX_LINES: usize = 1_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Lists the files that git tracks, and new files that it does not ignore.
fn files() -> Vec<String> {
    let list = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(list.status.success(), "git ls-files");
    let names = String::from_utf8(list.stdout).unwrap();
    names.lines().filter(|name| root().join(name).is_file()).map(str::to_owned).collect()
}

fn is_source(name: &str) -> bool {
    [".rs", ".py", ".js", ".mjs", ".ts", ".mts", ".cts", ".sh"].iter().any(|ending| name.ends_with(ending))
}

#[test]
fn source_files_are_short_and_finished() {
    let unfinished = ["TO", "FIX"].map(|head| format!("{head}{}", if head == "TO" { "DO" } else { "ME" }));
    let mut seen = 0;
    for name in files().iter().filter(|name| is_source(name)) {
        let text = read(name);
        let lines = text.lines().count();
        // A generated file may be longer, because people do not read it as a whole.
        let is_written = !text.starts_with("// Generated from ");
        assert!(!is_written || lines <= MAX_LINES, "{name} has {lines} lines; split it");
        for word in &unfinished {
            assert!(!text.contains(word.as_str()), "{name} holds a {word}");
        }
        seen += 1;
    }
    assert!(seen > 50, "the walk found the sources");
}

/// A file of another program may be a pipe or a device. `nudge_os::foreign` reads such files safely. Other code that
/// opens a foreign file must state a reason.
#[test]
fn files_of_others_are_read_by_one_reader() {
    const ALLOWED: [(&str, &str); 3] = [
        ("cli/src/cmd/editor.rs", "a file of our own, in a folder of our own"),
        ("cli/src/cmd/import.rs", "the caller names the file, which may be a pipe"),
        ("nudge/os/src/foreign.rs", "the reader"),
    ];
    let opens = ["File::open(", "fs::read(", "read_to_string(&path", "fs::read_to_string("];
    let opens_one = |code: &str| opens.iter().any(|open| has_word(code, open));
    let mut found: Vec<_> = shipped().into_iter().filter(|(_, code)| opens_one(code)).map(|(name, _)| name).collect();
    found.sort();
    let mut allowed = ALLOWED.map(|(name, _)| name.to_owned());
    allowed.sort();
    assert_eq!(found, allowed);
}

/// A library that opens files itself may wait for a pipe, or read a device forever. `nudge_core::walk` walks foreign
/// folders, and `nudge_storage::foreign` opens foreign databases.
#[test]
fn no_library_opens_files_of_others() {
    const ALLOWED: [(&str, &str); 4] = [
        ("nudge/storage/src/foreign.rs", "the opener of databases of others, which gives SQLite their bytes"),
        ("nudge/storage/src/open.rs", "our own databases"),
        ("nudge/storage/src/recover.rs", "a database of our own, into which a backup is copied"),
        ("nudge/storage/src/session.rs", "the database of a session, in its private directory"),
    ];
    let opens = [
        "WalkBuilder",
        "walkdir",
        "WalkDir",
        "glob::glob(",
        "Connection::open_with_flags",
        "Connection::open(",
        "Gitignore::new(",
        "Gitignore::global(",
        "build_global(",
        "Reader::from_path(",
        "Builder::from_path(",
        "Tokenizer::from_file(",
        "Mmap",
    ];
    let opens_one = |code: &str| opens.iter().any(|open| has_word(code, open));
    let found: Vec<_> = shipped().into_iter().filter(|(_, code)| opens_one(code)).map(|(name, _)| name).collect();
    assert_eq!(found, ALLOWED.map(|(name, _)| name));
}

/// `nudge_os::lock` locks files and `nudge_os::beneath` replaces them. A second mechanism would miss cases that these
/// two handle. Mutexes come from `parking_lot`: a panic does not poison them, so callers need no code for that.
#[test]
fn files_and_values_are_locked_and_replaced_in_one_way() {
    let locks = (vec!["TryLockError", "try_lock_shared(", "File::lock"], vec![("nudge/os/src/lock.rs", "the lock")]);
    let writers = (
        vec!["fs::rename(", "renameat", ".persist(", "hard_link(", "linkat("],
        vec![
            ("cli/agents/src/doctor.rs", "a file that is locked before it has its name"),
            ("cli/app/src/kept/state_folder.rs", "a file of an earlier version that was read, or is set aside"),
            ("nudge/embed/src/folder.rs", "a whole folder"),
            ("nudge/os/src/beneath.rs", "the writer"),
            ("nudge/storage/src/backup.rs", "a damaged database that is set aside"),
            ("nudge/storage/src/log_owner.rs", "a log that is set aside"),
        ],
    );
    let mutexes = (
        vec!["std::sync::Mutex", "std::sync::RwLock", "std::sync::Condvar", "PoisonError"],
        vec![
            ("cli/server/src/log.rs", "the type that `tracing_subscriber` writes to"),
            ("nudge/core/src/sync.rs", "the locks whose order a test chooses"),
        ],
    );
    let group = regex::Regex::new(r"use std::sync::\{([^}]*)\};").unwrap();
    let list_names = |found: &regex::Captures<'_>| format!("std::sync::{}", found[1].replace(", ", " std::sync::"));
    let shipped: Vec<_> =
        shipped().into_iter().map(|(name, code)| (name, group.replace_all(&code, list_names).into_owned())).collect();
    for (marks, allowed) in [locks, writers, mutexes] {
        let uses_mark = |code: &str| marks.iter().any(|mark| code.contains(mark));
        let mut found: Vec<_> = shipped.iter().filter(|(_, code)| uses_mark(code)).map(|(name, _)| name).collect();
        found.sort();
        assert_eq!(found, allowed.iter().map(|(name, _)| name).collect::<Vec<_>>(), "{marks:?}");
    }
}

/// Returns true if `code` contains `mark` and the character before `mark` is no part of a longer name.
fn has_word(code: &str, mark: &str) -> bool {
    let is_part = |before: char| before.is_alphanumeric() || before == '_';
    code.match_indices(mark).any(|(start, _)| !code[..start].ends_with(is_part))
}

/// Returns the product's sources: the name of each file, and its code without tests and comments.
fn shipped() -> Vec<(String, String)> {
    let is_ours = |name: &String| {
        let is_ours = ["nudge/", "cli/", "bindings/"].iter().any(|folder| name.starts_with(folder));
        is_ours && name.contains("/src/") && is_source(name) && !name.contains("test")
    };
    let code = |name: &String| {
        let text = read(name);
        let code =
            text.split("#[cfg(test)]").next().and_then(|code| code.split("#[cfg(all(test").next()).unwrap_or_default();
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    };
    files().into_iter().filter(is_ours).map(|name| (name.clone(), code(&name))).collect()
}

/// `nudge/docs/privacy.md` says which data leave the machine. It relies on this test. The test lists all code that
/// opens a connection or starts a program that may open one, each with the reason.
#[test]
fn connections_and_programs_are_known() {
    const KNOWN: [(&str, &str); 23] = [
        ("cli/agents/src/doctor.rs", "Nudge itself, to be tried out"),
        ("cli/agents/src/doctor/launch.rs", "what stands in the settings of a client, as that would"),
        ("cli/agents/src/init.rs", "a client's own command that registers a server"),
        ("cli/agents/src/login.rs", "systemctl or launchctl"),
        ("cli/app/src/background.rs", "Nudge itself"),
        ("cli/app/src/context.rs", "git, which looks at files"),
        ("cli/src/args/source.rs", "no program: a word of the command line"),
        ("cli/src/cmd/editor.rs", "the user's editor"),
        ("cli/src/cmd/serve/detach.rs", "Nudge itself"),
        ("cli/src/cmd/tour.rs", "Nudge itself"),
        ("cli/src/cmd/ui/open.rs", "the user's browser"),
        ("nudge/client/src/connection.rs", "this machine's loopback"),
        ("nudge/embed/src/fetch.rs", "curl: a model that its user has asked for"),
        ("nudge/git/src/lib.rs", "git; who uses it stands below"),
        ("nudge/os/src/process.rs", "what the others on this list start"),
        ("nudge/os/src/process/watcher.rs", "a shell that ends what a killed process has left"),
        ("nudge/sources/brain/src/bolt/link.rs", "the graph server of `brain.bolt`"),
        ("nudge/sources/brain/src/capture/pull_request.rs", "gh: a pull request of a captured session"),
        ("nudge/sources/brain/src/capture/repo.rs", "git: the branch of a captured session"),
        ("nudge/sources/brain/src/git.rs", "git, which makes a repository"),
        ("nudge/sources/brain/src/llm/agent.rs", "the user's own agent, or a command"),
        ("nudge/sources/brain/src/llm/web.rs", "the API of `brain.llm`"),
        ("nudge/sources/code/src/git.rs", "git, which looks at files"),
    ];
    let marks =
        ["TcpStream::connect", "UdpSocket", "Command::new(", "ChildProgram::new(", "Git::find(", "ureq::", "neo4j::"];
    let reaches_out = |code: &str| marks.iter().any(|mark| has_word(code, mark));
    let found: Vec<_> = shipped().into_iter().filter(|(_, code)| reaches_out(code)).map(|(name, _)| name).collect();
    assert_eq!(found, KNOWN.map(|(name, _)| name));
}

/// A single module starts foreign programs: it finds them by an absolute path, limits them, and ends them with this
/// process. Other code that starts a program must state a reason.
///
/// Promise (programs): A single module starts programs of others, and every other place that starts one has a written
/// reason.
#[test]
fn programs_are_started_by_one_module() {
    const ALLOWED: [(&str, &str); 8] = [
        ("cli/app/src/background.rs", "Nudge itself, which is to outlive this process"),
        ("cli/src/args/source.rs", "no program: a word of the command line"),
        ("cli/src/cmd/editor.rs", "the user's editor has the terminal, and its signals"),
        ("cli/src/cmd/serve/detach.rs", "Nudge itself, which is to outlive this process"),
        ("cli/src/cmd/tour.rs", "Nudge itself, which ends with its stdin"),
        ("cli/src/cmd/ui/open.rs", "the user's browser, which is to outlive this process"),
        ("nudge/os/src/process.rs", "the module"),
        ("nudge/os/src/process/watcher.rs", "a part of it"),
    ];
    let starts = |code: &str| has_word(code, "Command::new(");
    let found: Vec<_> = shipped().into_iter().filter(|(_, code)| starts(code)).map(|(name, _)| name).collect();
    assert_eq!(found, ALLOWED.map(|(name, _)| name));
}

/// The page of troubles quotes messages. If no test shows a quoted message, the sources must contain it: each part
/// between two `…`, in one file.
///
/// Promise: see `every_page_that_shows_commands_is_followed`.
#[test]
fn messages_that_are_quoted_are_printed() {
    // Joins a string literal that continues on the next line.
    let whole = |code: String| code.split("\\\n").map(str::trim_start).collect::<String>();
    let sources: Vec<_> = shipped().into_iter().map(|(_, code)| whole(code)).collect();
    let page = read("nudge/docs/troubleshooting.md");
    let blocks = page.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut seen = 0;
    for message in blocks.flat_map(str::lines) {
        let is_in = |code: &String| message.split('…').all(|part| code.contains(part.trim().trim_end_matches('.')));
        assert!(sources.iter().any(is_in), "nobody prints: {message}");
        seen += 1;
    }
    assert!(seen > 5, "the page quotes messages");
}

/// Promise (code and documents): `unsafe` stands only in the bindings and in `cli/malloc`, and each use says why it
/// is sound.
#[test]
fn no_crate_allows_unsafe_code() {
    assert!(read("Cargo.toml").contains("unsafe_code = \"forbid\""));
    // The benchmarks count allocations with a global allocator, which needs `unsafe`. Users never build them.
    for name in files().iter().filter(|name| name.ends_with("/Cargo.toml") && *name != "tests/bench/Cargo.toml") {
        let text = read(name);
        // The bindings and the call of the C library need `unsafe` at their boundary. Each use says why it is sound.
        let binds = name.starts_with("bindings/") || name == "cli/malloc/Cargo.toml";
        let explained = binds && text.contains("undocumented_unsafe_blocks = \"deny\"");
        assert!(explained || text.contains("[lints]\nworkspace = true"), "{name} does not take the workspace's lints");
    }
}

/// Every invariant of ARCHITECTURE.md and every promise of SECURITY.md names a command or its tests, as `path::test` in
/// backticks. `tidy/promises.rs` generates all other promises.
#[test]
fn every_promise_names_tests_that_exist() {
    assert_named_tests_exist("ARCHITECTURE.md", "Invariants");
    assert_named_tests_exist("SECURITY.md", "Promises");
}

fn assert_named_tests_exist(page: &str, section: &str) {
    let text = read(page);
    let table = text.split(&format!("## {section}\n")).nth(1).and_then(|rest| rest.split("\n## ").next());
    let rows = table.unwrap_or_else(|| panic!("{page} has no section {section}")).lines();
    let mut seen = 0;
    // Skips the two lines of the table's head, and the headings in bold within the table.
    for row in rows.filter(|line| line.starts_with('|')).skip(2).filter(|line| !line.starts_with("| **")) {
        let tests: Vec<_> = row.rsplit('|').nth(1).unwrap_or_default().split('`').skip(1).step_by(2).collect();
        assert!(!tests.is_empty(), "no test: {row}");
        for test in tests {
            seen += 1;
            let Some((file, name)) = test.split_once("::") else {
                assert!(root().join(test).is_file(), "neither FILE::TEST nor a command: {test}");
                continue;
            };
            let named = match file.rsplit('.').next() {
                Some("json") => format!("\"name\": \"{name}\""),
                Some("py") => format!("def {name}("),
                Some("mjs") => format!("it('{name}'"),
                _ => format!("fn {name}("),
            };
            assert!(read(file).contains(&named), "{test} does not exist");
        }
    }
    assert!(seen >= 10, "{page} lists tests");
}

/// Promise (code and documents): The pages list the methods with their params, the errors and the settings of the
/// code.
#[test]
fn the_pages_list_every_item() {
    let methods = read("nudge/docs/methods.md");
    for method in nudge_server::methods::list_methods() {
        let row = methods.lines().find_map(|line| line.strip_prefix(&format!("| `{}` |", method.name)));
        let row = row.unwrap_or_else(|| panic!("{} is missing", method.name));
        // The row names the params. A question mark follows each optional one.
        let (params, _) = row.split_once(" | ").unwrap();
        let schema = (method.params)();
        let required =
            |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|item| item == name));
        for name in schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
            let named = if required(name) { format!("`{name}`") } else { format!("`{name}?`") };
            assert!(params.contains(&named), "{}: {named} is not among{params}", method.name);
        }
    }
    for tool in nudge::methods().iter().filter(|method| method.tool).map(|method| method.tool_name()) {
        assert!(methods.contains(&format!("`{tool}`")), "{tool} is missing");
    }
    for kind in ErrorKind::ALL.into_iter().filter(|kind| kind.code() > 0) {
        assert!(methods.contains(&format!("| `{}` | {} |", kind.reason(), kind.code())), "{kind:?} is missing");
    }
}

/// The page of the settings, and the comments before and after its table.
const SETTINGS: &str = "nudge/docs/settings.md";
const TABLE_BEGINS: &str = "<!-- settings: UPDATE=1 cargo test -p nudge-tests --test tidy -->";
const TABLE_ENDS: &str = "<!-- end of settings -->";

/// Promise: see `the_pages_list_every_item`.
#[test]
fn the_settings_page_has_the_table_of_the_code() {
    has_generated_part(SETTINGS, TABLE_BEGINS, TABLE_ENDS, &settings_table());
}

/// Checks that a page has `made` between two comments. With `UPDATE=1` writes it into the page instead.
fn has_generated_part(name: &str, begins: &str, ends: &str, made: &str) {
    let page = read(name);
    let (before, rest) = page.split_once(begins).expect("the comment before the part");
    let (_, after) = rest.split_once(ends).expect("the comment after the part");
    let made = format!("{before}{begins}\n\n{made}\n{ends}{after}");
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        fs::write(root().join(name), made).unwrap();
    } else {
        assert_eq!(page, made, "{begins}");
    }
}

fn settings_table() -> String {
    let code = |text: String| if text.is_empty() { text } else { format!("`{text}`") };
    let rows = nudge_app::settings::list_settings().map(|setting| {
        let flag = setting.long_flag().map_or_else(String::new, |long| format!("--{long}"));
        let cells = [setting.name.into(), setting.env_variable(), flag, setting.default.into()].map(code);
        format!("| {} | {} |\n", cells.join(" | "), setting.about.replace('|', "\\|"))
    });
    let head = "| key | variable | flag | default | effect |\n|---|---|---|---|---|\n";
    std::iter::once(head.to_owned()).chain(rows).collect()
}

/// Promise (code and documents): A cited section of the semantics exists.
#[test]
fn every_cited_section_exists() {
    let page = read("nudge/docs/semantics.md");
    let there: Vec<u32> = page.lines().filter_map(|line| leading_number(line.strip_prefix("## ")?)).collect();
    assert_eq!(there, (1..=20).collect::<Vec<_>>(), "the sections of the page, in order");
    let mut seen = 0;
    for name in files().iter().filter(|name| cites(name)) {
        for section in cited(&read(name), name.starts_with("nudge/docs/")) {
            assert!(there.contains(&section), "{name} cites section {section} of the semantics, which there is not");
            seen += 1;
        }
    }
    assert!(seen > 200, "the walk found the citations, not only {seen}");
}

#[test]
fn citations_are_read_in_every_form() {
    for (text, sections) in [
        ("a limit (semantics section 5).", vec![5]),
        ("/// In semantics section 3's words.", vec![3]),
        ("//! goes on (semantics\n//! section 8).", vec![8]),
        ("//! Scopes (semantics\n//! sections 1 and 2).", vec![1, 2]),
        ("# Typed by hand: semantics section\n# 14", vec![14]),
        (" * (semantics section 13, semantics section 6)", vec![13, 6]),
        ("\"why\": \"semantics 2, 5 and 7\"", vec![2, 5, 7]),
        ("\"why\": \"semantics 6 and 1: a hint\"", vec![6, 1]),
        ("\"why\": \"semantics 3 and 5; semantics 15: 7 and 8\"", vec![3, 5, 15]),
        ("the semantics of section 2; a section 4", vec![]),
    ] {
        assert_eq!(cited(text, false), sections, "{text}");
    }
    assert_eq!(cited("never (section 8); see sections 1 and 3.", true), [8, 1, 3]);
}

#[test]
fn every_page_that_is_named_exists() {
    // The literal is split, so that this file does not contain the text.
    let elsewhere = ["contract", " section"].concat();
    for name in files().iter().filter(|name| cites(name)) {
        let text = read(name);
        assert!(!unwrapped(&text).to_lowercase().contains(&elsewhere), "{name} cites a page that is not in the tree");
        let words = text.split(|c: char| c.is_whitespace() || "\"'`()<>[],;".contains(c));
        // Skips URLs, which may contain such words.
        for word in words.filter(|word| !word.contains("://")) {
            let page = word.split_once("docs/").and_then(|(_, rest)| rest.split_once(".md")).map(|(page, _)| page);
            let Some(page) =
                page.filter(|page| page.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'/')))
            else {
                continue;
            };
            assert!(root().join(format!("nudge/docs/{page}.md")).is_file(), "{name} names {word}");
        }
    }
}

/// Checks that a decision has the date of its file name, says what would change it, and is in the list of decisions.
#[test]
fn every_decision_is_dated_and_listed() {
    let list = read("nudge/docs/decisions/index.md");
    let mut seen = 0;
    for name in files() {
        let file = name.strip_prefix("nudge/docs/decisions/").filter(|file| *file != "index.md");
        let Some(file) = file else { continue };
        let text = read(&name);
        let day = file.get(..10).unwrap_or_default();
        assert!(text.contains(&format!("\nDecided {day}.\n")), "{name} has another day in its text");
        let change = text.split("\n## What would change it\n\n").nth(1).unwrap_or_default();
        assert!(!change.is_empty() && !change.contains("\n#"), "{name} does not end with what would change it");
        assert!(list.contains(&format!("]({file})")), "{name} is not on the list of decisions");
        seen += 1;
    }
    assert!(seen > 20, "the walk found the decisions");
}

/// Returns true if a file may cite the pages.
fn cites(name: &str) -> bool {
    [".rs", ".py", ".js", ".mjs", ".ts", ".md", ".json", ".c", ".h"].iter().any(|ending| name.ends_with(ending))
        || ["tests/run", "tests/clients/run", "tests/bench/run"].contains(&name)
}

/// Joins a text to one line and removes comment marks.
fn unwrapped(text: &str) -> String {
    let marks: &[char] = &['/', '!', '#', '*', ' ', '\t'];
    text.lines().map(|line| line.trim_start_matches(marks).trim_end()).collect::<Vec<_>>().join(" ")
}

/// Returns the sections that a text cites: one number or several after the word semantics, with or without the word
/// section. With `own`, which is for the pages themselves, the word section is enough.
fn cited(text: &str, own: bool) -> Vec<u32> {
    let text = unwrapped(text);
    let words: Vec<_> = text.split_whitespace().collect();
    let ends =
        |word: &str, with: &str| word.strip_suffix(with).is_some_and(|head| !head.ends_with(char::is_alphanumeric));
    let is_section = |word: &str| ends(word, "section") || ends(word, "sections");
    let mut out = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let mut rest = &words[index + 1..];
        if ends(word, "semantics") {
            rest = if rest.first().is_some_and(|word| is_section(word)) { &rest[1..] } else { rest };
        } else if !(own && is_section(word)) {
            continue;
        }
        while let Some(number) = rest.first().and_then(|word| leading_number(word)) {
            out.push(number);
            // `2, 5 and 7` is a list of sections. `2: 5 hints` cites only section 2.
            let tail = rest[0].trim_start_matches(|c: char| c.is_ascii_digit());
            rest = match (tail, rest.get(1)) {
                (",", _) => &rest[1..],
                ("", Some(&"and")) => &rest[2..],
                _ => break,
            };
        }
    }
    out
}

fn leading_number(text: &str) -> Option<u32> {
    text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[test]
fn documents_link_to_files_that_exist() {
    let mut seen = 0;
    for name in files().iter().filter(|name| Path::new(name).extension().is_some_and(|ext| ext == "md")) {
        let text = read(name);
        let inline = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let defined =
            text.lines().filter_map(|line| line.strip_prefix('[')?.split_once("]: ").map(|(_, target)| target));
        for target in inline.chain(defined).filter(|target| !target.contains("://")) {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let folder = Path::new(name).parent().unwrap();
            let file = if path.is_empty() { PathBuf::from(name) } else { folder.join(path) };
            assert!(root().join(&file).exists(), "{name} links to {target}");
            let linked = |text: String| text.lines().any(|line| line.starts_with('#') && anchor(line) == heading);
            assert!(heading.is_empty() || linked(read(file.to_str().unwrap())), "{name} links to {target}");
            seen += 1;
        }
    }
    assert!(seen > 20, "the walk found the links");
}

/// Returns the anchor that GitHub makes for a heading.
fn anchor(heading: &str) -> String {
    let title = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = title.chars().filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The crates that each crate may use. A crate that is not in this list may use none.
const MAY_USE: &[(&str, &[&str])] = &[
    ("nudge-core", &["nudge-git-files", "nudge-os", "nudge-secrets"]),
    ("nudge-hints", &["nudge-core", "nudge-secrets"]),
    ("nudge-os", &[]),
    ("nudge-git-files", &["nudge-os"]),
    ("nudge-secrets", &[]),
    ("nudge-git", &["nudge-core", "nudge-os", "nudge-secrets"]),
    ("nudge-code-index", &["nudge-os"]),
    ("nudge-capture", &["nudge-core", "nudge-secrets"]),
    ("nudge-brain", &["nudge-capture", "nudge-core", "nudge-git", "nudge-os", "nudge-secrets", "nudge-storage"]),
    ("nudge-code", &["nudge-code-index", "nudge-core", "nudge-git", "nudge-os", "nudge-secrets", "nudge-storage"]),
    ("nudge-storage", &["nudge-core", "nudge-os"]),
    ("nudge-embed", &["nudge-core", "nudge-os"]),
    ("nudge-seed", &["nudge-core", "nudge-os"]),
    ("nudge-client", &["nudge-core", "nudge-hints", "nudge-os"]),
    (
        "nudge-app",
        &[
            "nudge-core",
            "nudge-hints",
            "nudge-client",
            "nudge-embed",
            "nudge-git",
            "nudge-os",
            "nudge-seed",
            "nudge-storage",
        ],
    ),
    (
        "nudge-server",
        &["nudge-core", "nudge-hints", "nudge-client", "nudge-malloc", "nudge-os", "nudge-storage", "nudge-app"],
    ),
    (
        "nudge-agents",
        &["nudge-core", "nudge-hints", "nudge-client", "nudge-malloc", "nudge-os", "nudge-app", "nudge-server"],
    ),
    (
        "nudge-cli",
        &[
            "nudge-core",
            "nudge-hints",
            "nudge-client",
            "nudge-embed",
            "nudge-os",
            "nudge-seed",
            "nudge-app",
            "nudge-server",
            "nudge-agents",
        ],
    ),
    ("nudge-capi", &["nudge-hints", "nudge-client"]),
    ("nudge-python", &["nudge-hints", "nudge-client"]),
    ("nudge-node", &["nudge-hints", "nudge-client"]),
    (
        "nudge-tests",
        &["nudge-core", "nudge-hints", "nudge-client", "nudge-app", "nudge-server", "nudge-cli", "nudge-demo"],
    ),
    ("nudge-instructions", &["nudge-hints"]),
    (
        "nudge-bench",
        &[
            "nudge-core",
            "nudge-hints",
            "nudge-client",
            "nudge-cli",
            "nudge-storage",
            "nudge-records",
            "nudge-signals",
            "nudge-code",
            "nudge-code-index",
            "nudge-brain",
        ],
    ),
];

/// The crates that every source may use. So no source uses another source, the hints, the client or the binary.
const A_SOURCE_MAY_USE: &[&str] = &["nudge-core", "nudge-git", "nudge-os", "nudge-secrets", "nudge-storage"];

/// Checks the floors of ARCHITECTURE.md: core uses no source, sources use core, and the binary uses all.
///
/// Promise (code and documents): A crate depends on no crate above it or beside it.
#[test]
fn no_crate_depends_upward_or_sideways() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let names: Vec<_> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"nudge-core") && names.len() > 7, "{names:?}");
    let in_sources =
        |package: &&serde_json::Value| package["manifest_path"].as_str().unwrap().contains("/nudge/sources/");
    let sources: Vec<_> = packages.iter().filter(in_sources).map(|package| package["name"].as_str().unwrap()).collect();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let is_source = sources.contains(&name) || name == "nudge-demo";
        let allowed = MAY_USE
            .iter()
            .find(|(crate_name, _)| *crate_name == name)
            .map_or(if is_source { A_SOURCE_MAY_USE } else { &[] }, |(_, allowed)| *allowed);
        for dependency in package["dependencies"].as_array().unwrap() {
            // Skips development dependencies, which are no part of a product.
            let used = dependency["name"].as_str().unwrap();
            if dependency["kind"] == "dev" || !names.contains(&used) {
                continue;
            }
            // `nudge-app` may use every source, because it has the list of sources.
            let is_listed = name == "nudge-app" && sources.contains(&used);
            assert!(is_listed || allowed.contains(&used), "{name} may not use {used}; see ARCHITECTURE.md");
        }
    }
}

/// Returns Cargo's metadata of the workspace.
fn metadata() -> serde_json::Value {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    serde_json::from_slice(&metadata.stdout).unwrap()
}

/// A build compiles every dependency that a crate names, so a crate must not name a dependency that it does not use.
#[test]
fn every_dependency_is_used() {
    let metadata = metadata();
    let files = files();
    let sources: Vec<_> =
        files.iter().map(Path::new).filter(|path| path.extension().is_some_and(|end| end == "rs")).collect();
    let mut unused = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap();
        let own = folder.strip_prefix(root().canonicalize().unwrap()).unwrap();
        let targets = package["targets"].as_array().unwrap().iter().map(|target| target["src_path"].as_str().unwrap());
        let mut text: String = targets.map(|path| fs::read_to_string(path).unwrap()).collect();
        text.extend(sources.iter().filter(|path| path.starts_with(own)).map(|path| read(path.to_str().unwrap())));
        let words: std::collections::HashSet<_> =
            text.split(|sign: char| !(sign.is_alphanumeric() || sign == '_')).collect();
        for dependency in package["dependencies"].as_array().unwrap() {
            let name = dependency["rename"].as_str().or(dependency["name"].as_str()).unwrap().replace('-', "_");
            if !words.contains(name.as_str()) {
                unused.push(format!("{name} of {}", own.display()));
            }
        }
    }
    assert!(unused.is_empty(), "nothing names {unused:?}");
}
