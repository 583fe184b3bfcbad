//! Tests the parser with real command lines.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

/// Prints a command as `A=b words @folder <input +flags :told`; `@?` stands for an unknown folder.
fn told(command: &Command) -> String {
    let mut out: Vec<String> = command.assignments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    out.push(command.words.join(" "));
    match &command.folder {
        Folder::Here => {}
        Folder::At(folder) => out.push(format!("@{folder}")),
        Folder::Unknown => out.push("@?".into()),
    }
    match &command.input {
        Input::None => {}
        Input::From(file) => out.push(format!("<{file}")),
        Input::Document => out.push("<<".into()),
    }
    for (flag, set) in [("+sudo", command.elevated), ("+limited", command.limited), ("+piped", command.piped)] {
        out.extend(set.then(|| flag.to_owned()));
    }
    let Told { success, failure, code } = command.told;
    let says: String = [('s', success), ('f', failure), ('c', failure && code)]
        .into_iter()
        .filter_map(|(c, says)| says.then_some(c))
        .collect();
    out.push(format!(":{says}"));
    out.join(" ")
}

fn read(line: &str) -> String {
    parse(line).map_or("not understood".into(), |line| {
        let mut out: Vec<_> = line.commands.iter().map(told).collect();
        out.extend(line.background.then(|| "&".to_owned()));
        out.join(" / ")
    })
}

/// Lines with the commands that the parser finds. The letters after a colon show what the line's exit code says about
/// the command: success (s), failure (f), the code of the failure (c).
const LINES: &[(&str, &str)] = &[
    // Plain lines.
    ("npm test", "npm test :sfc"),
    ("  npm\t test ", "npm test :sfc"),
    ("./gradlew assembleDebug", "./gradlew assembleDebug :sfc"),
    ("", ""),
    ("   ", ""),
    // The folder and the variables of a command.
    ("cd web && npm test", "npm test @web :sfc"),
    ("cd web; npm test", "npm test @web :sfc"),
    ("cd web\nnpm test", "npm test @web :sfc"),
    ("cd web && cd app && npm test", "npm test @web/app :sfc"),
    ("cd web && cd /srv && npm test", "npm test @/srv :sfc"),
    ("cd -- '../my app' && npm test", "npm test @../my app :sfc"),
    ("cd ~/x && npm test", "npm test @? :sfc"),
    ("cd \"$(git rev-parse --show-toplevel)\" && npm test", "npm test @? :sfc"),
    ("cd - && make", "make @? :sfc"),
    ("cd && make", "make @? :sfc"),
    ("cd web", ""),
    ("cd web && npm test && cd ..", "npm test @web :sfc"),
    ("(cd web && npm test) && make", "npm test @web :s / make :s"),
    ("{ cd web; npm test; }; make", "npm test @web : / make @web :sfc"),
    ("cd web || exit 1; npm test", "exit 1 @? : / npm test @web :sfc"),
    ("if [ -d web ]; then cd web; fi; npm test", "[ -d web ] : / npm test @? :sfc"),
    ("CI=1 npm test", "CI=1 npm test :sfc"),
    ("B=2 A=1 A=3 npm test", "A=3 B=2 npm test :sfc"),
    ("env CI=1 npm test", "CI=1 npm test :sfc"),
    ("env -u X -i A=b make", "A=b make :sfc"),
    ("export CI=1; npm test", "CI=1 npm test :sfc"),
    ("export CI=1 && npm test", "CI=1 npm test :sfc"),
    ("CI=1", ""),
    ("A='x y' make", "A=x y make :sfc"),
    // Wrappers.
    ("sudo make install", "make install +sudo :sfc"),
    ("sudo -u www-data -E A=1 make install", "A=1 make install +sudo :sfc"),
    ("sudo -s make", "sudo -s make :sfc"),
    ("time npm test", "npm test :sfc"),
    ("time -p npm test 2>&1", "npm test :sfc"),
    ("/usr/bin/time -v npm test", "npm test :sfc"),
    ("timeout 60 npm test", "npm test +limited :sfc"),
    ("timeout -k 5 --signal=KILL 1m npm test", "npm test +limited :sfc"),
    ("nice -n 10 nohup make build", "make build :sfc"),
    ("nice -10 make build", "make build :sfc"),
    ("command npm test", "npm test :sfc"),
    ("command -v npm", "command -v npm :sfc"),
    ("exec npm test", "npm test :sfc"),
    ("stdbuf -oL make", "make :sfc"),
    ("timeout", "timeout :sfc"),
    ("env", "env :sfc"),
    ("bash -lc \"npm test\"", "npm test :sfc"),
    ("sh -c 'cd web && CI=1 npm test'", "CI=1 npm test @web :sfc"),
    ("sudo bash -c \"bash -c 'make install'\"", "make install +sudo :sfc"),
    ("bash -euo pipefail -c 'npm ci; npm test | tail'", "npm ci :s / npm test :s / tail +piped :s"),
    ("bash -c \"$X\"", "bash -c $X :sfc"),
    ("bash run.sh", "bash run.sh :sfc"),
    ("timeout 9 sh -c 'make'", "make +limited :sfc"),
    // Redirections.
    ("npm test 2>&1", "npm test :sfc"),
    ("npm test > out.log 2> err.log", "npm test :sfc"),
    ("2>/dev/null npm test", "npm test :sfc"),
    ("npm test &> log", "npm test :sfc"),
    ("npm test < /dev/null", "npm test :sfc"),
    ("psql shop < dump.sql", "psql shop <dump.sql :sfc"),
    ("wc <<< \"a b\"", "wc <a b :sfc"),
    // Pipelines.
    ("npm test | tail", "npm test : / tail +piped :sfc"),
    ("npm test 2>&1 | tee x |& tail -5", "npm test : / tee x +piped : / tail -5 +piped :sfc"),
    ("set -o pipefail; npm test | tail", "npm test :sfc / tail +piped :s"),
    ("set -euo pipefail && npm test 2>&1 | tee log | tail", "npm test :sfc / tee log +piped :s / tail +piped :s"),
    ("set -o pipefail; npm test | grep -c ok", "npm test :s / grep -c ok +piped :s"),
    ("set +o pipefail; npm test | tail", "npm test : / tail +piped :sfc"),
    ("npm test | tail && make", "npm test : / tail +piped :s / make :s"),
    // Lists.
    ("npm ci && npm test", "npm ci :s / npm test :s"),
    ("npm ci && npm run build && npm test", "npm ci :s / npm run build :s / npm test :s"),
    ("npm test; echo done", "npm test : / echo done :sfc"),
    ("npm test\necho done", "npm test : / echo done :sfc"),
    ("npm test || true", "npm test :f / true :fc"),
    ("npm test || exit 3", "npm test :f / exit 3 :fc"),
    ("npm test || exit 1; make", "npm test : / exit 1 : / make :"),
    ("(npm test || exit 1); make", "npm test : / exit 1 : / make :sfc"),
    ("exec npm test; make", "npm test : / make :"),
    ("npm ci && npm test || echo bad", "npm ci : / npm test : / echo bad :fc"),
    ("set -e; npm ci; npm test", "npm ci :s / npm test :s"),
    ("set -e\nnpm ci; make\nnpm test", "npm ci :s / make :s / npm test :s"),
    ("set -e; npm test", "npm test :sfc"),
    ("set -e; npm ci || true; npm test", "npm ci : / true : / npm test :s"),
    ("set -e\nnpm ci && npm test\nmake", "npm ci : / npm test : / make :s"),
    ("npm test &", "npm test : / &"),
    ("npm start & npm test", "npm start : / npm test :sfc"),
    ("cd web && npm start & npm test", "npm start @web : / npm test :sfc"),
    ("npm start & sleep 5; npm test; kill %1", "npm start : / sleep 5 : / npm test : / kill %1 :sfc"),
    ("! npm test", "npm test :"),
    // Groups and control structures.
    ("(npm test)", "npm test :sfc"),
    ("( npm ci; npm test ) 2>&1 | tail", "npm ci : / npm test : / tail +piped :sfc"),
    ("{ npm test; }", "npm test :sfc"),
    ("if npm test; then echo ok; fi", "npm test : / echo ok :"),
    ("for x in a b; do npm test $x; done", "npm test $x :"),
    ("while ! curl -s localhost; do sleep 1; done; npm test", "curl -s localhost : / sleep 1 : / npm test :sfc"),
    ("case $x in a) npm test;; esac", "npm test :"),
    ("f() { npm test; }", ""),
    ("[[ -f x ]] && npm test", "npm test :s"),
    // Here-documents and comments.
    ("cat > x <<'EOF'\nnpm test ( { $( ` ' \"\nEOF\nnpm test", "cat << : / npm test :sfc"),
    ("cat > x <<-E && npm test\n\tif (\n\tE\n", "cat << :s / npm test :s"),
    ("npm test <<EOF\ny\nEOF", "npm test << :sfc"),
    ("npm test # | tail, don't", "npm test :sfc"),
    ("# what comes is the test\nnpm test", "npm test :sfc"),
    // Words.
    ("npm test -- --grep 'a b' \"c d\" e\\ f", "npm test -- --grep a b c d e f :sfc"),
    ("npm test \\\n  --watch", "npm test --watch :sfc"),
    ("echo '$HOME' \"$HOME\" $'a\\'b'", "echo \\$HOME $HOME a'b :sfc"),
    ("find . -name '*.rs' -exec wc -l {} \\;", "find . -name *.rs -exec wc -l {} ; :sfc"),
    ("git commit -m \"it's (done); npm test\"", "git commit -m it's (done); npm test :sfc"),
    ("git commit -m \"$(cat <<'EOF'\nfix (it's)\nEOF\n)\"", "git commit -m $(cat <<'EOF'\nEOF\n) :sfc"),
    // Lines that the parser does not understand.
    ("npm test 'a", "not understood"),
    ("npm test )", "not understood"),
    ("npm test &&", "not understood"),
    ("$(", "not understood"),
];

#[test]
fn lines_are_understood() {
    let wrong: Vec<_> = LINES
        .iter()
        .filter(|(line, want)| read(line) != *want)
        .map(|(line, want)| format!("{line:?}\n  want {want}\n  got  {}", read(line)))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn programs() {
    for (line, program, arguments) in [
        ("/usr/local/bin/make build", "make", "build"),
        (".venv/bin/pytest -q", "pytest", "-q"),
        ("docker-compose up -d", "docker compose", "up -d"),
        ("docker compose up -d", "docker compose", "up -d"),
        ("docker build .", "docker", "build ."),
        ("python -m pytest -q", "pytest", "-q"),
        ("python3.12 -u -m pytest -q", "pytest", "-q"),
        ("python3 x.py", "python3", "x.py"),
        ("python3 -m", "python3", "-m"),
        ("'C:\\Tools\\make.exe' all", "make", "all"),
    ] {
        let line = parse(line).unwrap();
        assert_eq!((&*line.commands[0].program, &*line.commands[0].arguments().join(" ")), (program, arguments));
    }
}

#[test]
fn near_lines() {
    let near = |failed: &str, hint: &str| parse(failed).unwrap().is_near(&parse(hint).unwrap());
    for (failed, hint) in [
        ("make build", "make -j2 build"),
        ("cd api && make build", "make -C api build"),
        ("make -C x build V=1", "make -C api build"),
        ("bash -lc 'make build'", "make -j2 build"),
        ("set -o pipefail; make build 2>&1 | tail -20", "make -j2 build"),
        ("timeout 300 make build", "make -j2 build"),
        ("sudo make build", "make -j2 build"),
        ("npm test", "CI=1 npm test"),
        ("cd web && npm test", "env CI=1 npm test"),
        ("npm test", "DATABASE_URL=postgres://localhost/x npm test"),
        ("CI=0 npm test", "CI=1 npm test"),
        ("CI=1 npm test", "npm test"),
        ("npm test", "cd web && npm test"),
        ("make install", "sudo make install"),
        ("pytest -q", ".venv/bin/pytest -q -x"),
        ("pytest -q", "python -m pytest -q"),
        ("docker-compose up", "docker compose up -d"),
        ("docker compose build proxy", "docker compose build router"),
        ("make deploy", "make deploy ENV=staging"),
        ("terraform -chdir=envs/staging apply", "terraform -chdir=envs/staging force-unlock LOCK_ID"),
        ("npm ci && npm run build", "npm run build -- --mode ci"),
        ("make", "make all"),
        ("psql shop < a.sql", "psql shop < b.sql"),
    ] {
        assert!(near(failed, hint), "{failed} | {hint}");
    }
    for (failed, hint) in [
        ("npm test", "npm  test"),
        ("cd web && npm test", "npm test"),
        ("npm test 2>&1 | tail", "npm test"),
        ("npm ci && npm test", "npm test"),
        ("docker ps", "podman ps"),
        ("make a b c", "make d e f"),
        ("go vet ./...", "go test ./internal -run X"),
        ("npm test", "npm ci"),
        ("cat x | grep foo", "grep bar"),
        ("docker build .", "docker compose up"),
        ("", ""),
        ("cd web", "cd web"),
    ] {
        assert!(!near(failed, hint), "{failed} | {hint}");
    }
}

#[test]
fn the_same_commands() {
    let same = |a: &str, b: &str| parse(a).unwrap().commands[0].is_same(&parse(b).unwrap().commands[0]);
    for line in ["cd web && npm test", "(npm test)", "timeout 9 npm 'test' 2>&1", "npm \"test\" </dev/null; make"] {
        assert!(same("npm test", line), "{line}");
    }
    for line in ["CI=1 npm test", "npm test -w", "./npm test", "npm test <x", "npm test <<E\nE", "npm run test"] {
        assert!(!same("npm test", line), "{line}");
    }
    assert!(!same("cat <<E\na\nE", "cat <<E\nb\nE"));
    let whole = |a: &str, b: &str| parse(a).unwrap().is_same(&parse(b).unwrap());
    assert!(whole("npm ci && npm test", "npm ci  &&  npm test 2>&1"));
    assert!(!whole("npm ci && npm test", "npm ci; npm test"));
    assert!(!whole("npm test", "npm test &"));
    let only = |line: &str| parse(line).unwrap().only().map(|command| command.words.join(" "));
    assert_eq!(only("make 2>&1 | tee log").as_deref(), Some("make"));
    assert_eq!((only("ps aux | grep x"), only("a && b"), only("")), (None, None, None));
}

#[test]
fn ends() {
    let ended = |line: &str, ok, code| parse(line).unwrap().commands[0].ended(ok, code);
    assert_eq!(ended("npm test", false, Some(1)), Some((false, Some(1))));
    assert_eq!(ended("timeout 9 npm test", false, Some(1)), Some((false, Some(1))));
    assert_eq!(ended("timeout 9 npm test", false, Some(124)), None);
    assert_eq!(ended("npm test || exit 127", false, Some(127)), Some((false, None)));
    assert_eq!(ended("npm test || true", true, None), None);
    assert_eq!(ended("cd ~/x && npm test", true, None), None);
}

/// Parts of lines that open, join or end an element of the syntax.
const PARTS: &[&str] = &[
    "$(",
    "(",
    "{ ",
    "`",
    "${",
    "${a:-",
    "$((",
    "((",
    "<(",
    ">(",
    "\"$(",
    "\"",
    "'",
    "\\",
    "$'",
    "$\"",
    "if ",
    "while ",
    "for ",
    "for x in ",
    "case x in x) ",
    "[[ ",
    "[[ ( ",
    "[[ ! ",
    "a[",
    "f() ",
    "function f ",
    "coproc ",
    "! ",
    "time ",
    "<<E\n",
    "<<E ",
    "<<E$(",
    "<<E$[\t\t",
    "<<'E",
    "a=(",
    "@(",
    "a;",
    "a&",
    "a&&",
    "a||",
    "a|",
    "a|&",
    "a\n",
    "(a;",
    "((a);",
    "{ a;",
    "$(a)",
    "${a}",
    "`a`",
    "{a,",
    "a ",
    ">a ",
    "<<<a ",
    "#\n",
    "-",
    "!",
    "é",
    "\u{0}",
    "\r\n",
    "cd a;",
    "export A=a;",
    "sudo ",
    "env A=b ",
    "timeout 1 ",
    "bash -c '",
    "bash -c \"",
    "\\\n",
    "cat <<E\nE\n",
    "$((1+",
    "$((-",
    "$[",
    "]]",
    "))",
];

/// Makes lines that nest deeply, join many commands or are very long, and lines that end inside an element.
fn nasty() -> Vec<String> {
    let mut out = Vec::new();
    for part in PARTS {
        for count in [1, 2, 7, 30, 150, 10_000] {
            let text: String = part.repeat(count).chars().take(64 << 10).collect();
            out.push(text.clone());
            let closed: String = text.chars().rev().filter_map(|c| ")}]`\"'".chars().nth("({[`\"'".find(c)?)).collect();
            out.push(format!("{text}a{closed}"));
            out.push(format!("npm test {text}"));
        }
    }
    out
}

/// Promise (hints): The shell parser reads any command line in bounded time and never ends the process.
#[test]
fn nothing_nasty_takes_long_or_ends_the_process() {
    // The stack of the thread is as small as the default on some systems.
    let run = || {
        for line in nasty() {
            let began = Instant::now();
            let _ = parse(&line);
            let (took, start) = (began.elapsed(), &line.chars().take(20).collect::<String>());
            assert!(took < Duration::from_secs(1), "{took:?} for {} bytes of {start:?}", line.len());
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn long_lines() {
    let word = "x".repeat(MAX_BYTES);
    assert!(parse(&format!("echo '{word}'")).is_none());
    assert!(
        parse(&format!("cat > y <<E\n{word}\n(((\nE\nnpm test")).is_some(),
        "what a here-document says does not count"
    );
    assert!(parse(&format!("echo {word}")).is_some(), "a plain line has nothing to parse");
}

proptest! {
    #[test]
    fn any_text_is_read(line in any::<String>()) {
        let _ = parse(&line);
    }

    /// Promise: see `nothing_nasty_takes_long_or_ends_the_process`.
    #[test]
    fn any_parts_of_lines_are_read(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..80)) {
        let _ = parse(&parts.concat());
        let _ = parse(&parts.join(" "));
    }

    #[test]
    fn anything_like_a_line_is_read(line in "([a-c=]{1,3}| |\\$|\\(|\\)|\\{|\\}|\"|'|`|\\\\|;|&|\\||<|>|\n|#|!|\\[|\\]|E\n|cd |if |then |fi |sudo |bash -c ){0,40}") {
        if let Some(read) = parse(&line) {
            prop_assert!(read.is_same(&read) || read.commands.iter().any(|command| command.input == Input::Document));
            prop_assert!(!read.is_near(&read) || read.commands.iter().any(|command| command.input == Input::Document || command.folder != Folder::Here || command.elevated));
        }
    }
}
