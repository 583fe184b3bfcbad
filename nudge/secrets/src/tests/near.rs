//! Records the guard's verdicts near its limits. The texts are values of growing length, and the texts of these tests
//! with one character or word removed or replaced. No person has decided most of these verdicts, so a person must check
//! changed ones in the diff of the files. `UPDATE=1` writes the files again.
//!
//! The files contain verdicts and no texts. A `.` means that a text passes, and a letter stands for a rule, as the
//! first line lists them. A row in which every text passes is left out. A row that is too long to read is written as a
//! digest.

use super::*;
use std::fmt::Write as _;
use std::path::Path;

/// Largest length of a row that a person can read. A longer row is written as a digest.
const READ: usize = 160;
/// Length of the longest value in the table, and larger lengths at which a verdict may change.
const LONGEST: usize = 72;
const BEYOND: [usize; 9] = [96, 100, 101, 128, 200, 256, 300, 512, 513];

/// The texts in which a value is placed; `{}` stands for the value.
const PLACES: &[&str] = &[
    "{}",
    "run {} now",
    "password={}",
    "DB_PASSWORD={} make",
    "db_password: \"{}\"",
    "API_TOKEN={}",
    "token: {}",
    "\"apiKey\": \"{}\"",
    "SESSION_KEY={}",
    "key: {}",
    "https://example.com/?access_token={}",
    "https://example.com/?key={}&a=b",
    "https://app:{}@example.com/",
    "https://{}@example.com/",
    "tool --password {}",
    "tool --token {} x",
    "tool --key={}",
    "curl -u app:{} https://example.com",
    "docker login -u app -p {}",
    "mysql -uapp -p{} app",
    "tool -u app -p {}",
    "curl -H 'Authorization: Bearer {}' https://example.com",
    "Authorization: Basic {}",
    "Authorization: {}",
    "Authorization: Digest username=\"app\", response=\"{}\"",
    "x-api-key: Token {}",
    "Cookie: sid={}; theme=dark",
    "the db password is {}",
    "log in with password {}",
    "our api key is {}.",
    "echo {} | gh auth login --with-token",
    "machine example.com login app password {}",
    "db.internal:5432:app:app:{}",
    "<password>{}</password>",
    "(\"API_TOKEN\", \"{}\")",
    "checksum: {}",
    "acme_live_{}",
    "sha256-{}",
    "sqlplus app/{}@//db:1521/XE",
    "key={}=",
];

/// The kinds of characters in values.
pub(super) const KINDS: &[(&str, &str)] = &[
    ("small", "abcdefghijklmnopqrstuvwxyz"),
    ("capitals", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    ("letters", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
    ("mixed", LETTERS),
    ("hex", HEX),
    ("digits", "0123456789"),
    ("base32", UPPER),
    ("small+digits", "abcdefghijklmnopqrstuvwxyz0123456789"),
    ("base64", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/+/"),
    ("dashed", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_-_"),
    ("dotted", "abcdefghijklmnopqrstuvwxyz0123456789...."),
    ("marks", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN0123456789!@#$%^&*?+=~!@#$%^&*"),
    ("few", "aB3"),
];

/// Texts whose beginnings are values too.
pub(super) const TEXTS: &[(&str, &str)] = &[
    ("words", "maplecopperwindowgardenriverstonemarketyellowbuttonsilverpersoncandlefinger"),
    ("Words", "MapleCopperWindowGardenRiverStoneMarketYellowButtonSilverPersonCandleFinger"),
    ("dashed words", "maple-copper-window-garden-river-stone-market-yellow-button-silver-person-c"),
    ("SHOUTED", "MAPLE_COPPER_WINDOW_GARDEN_RIVER_STONE_MARKET_YELLOW_BUTTON_SILVER_PERSON_C"),
    ("path", "/srv/maple/copper/window/garden/river/stone/market/yellow/button/silver/person"),
    ("words, digits", "maple5961copper27window340garden8river12stone55market901yellow3button77silver"),
    ("sentence", "maple copper window garden river stone market yellow button silver person cand"),
    ("groups", "qzvx kwjp brtn xxkq plmz wqrt zxcv bnmq hjkw rtyp sdfq zxkw vbqn mjhg trwq plkz"),
    ("version", "1.20.3-rc.1+build.5.linux-amd64.2026.11.26.0.0.1.20.3-rc.1+build.5.linux-amd64"),
    ("call", "getToken(session.user.name, 'maple-copper', options.window[3], stone->market())"),
    ("variable", "$DB_PASSWORD_OF_THE_MAPLE_COPPER_WINDOW_GARDEN_RIVER_STONE_MARKET_YELLOW_BUTTO"),
    ("placeholder", "<your-token-of-the-maple-copper-window-garden-river-stone-market-yellow-button"),
    ("member", "config.maple.copper.window2.garden.river.stone.market.yellow.button.silver.pers"),
    ("stars", "****************************************************************************"),
    ("foreign", "größeMaß9äöüßéèêçñøåæœŸžšćđłńóśźżőűřůěťďňŕĺľ12345abcdeGHIJK"),
];

/// The rules that are not in the table of formats.
const RULES: &[&str] = &[
    "private-key",
    "hex-32-64",
    "url-credentials",
    "authorization-header",
    "cookie",
    "recovery-phrase",
    "password-flag",
    "password-argument",
    "login-argument",
    "piped-credential",
    "netrc-password",
    "encoded-secret",
    "random-string",
];

/// Lists the rules. The position of a rule decides its letter.
fn rules() -> Vec<&'static str> {
    let mut all = RULES.to_vec();
    all.extend(FORMATS.iter().map(|(rule, ..)| *rule));
    all.sort_unstable();
    all.dedup();
    all
}

/// Writes letters as one line: for each run, its length and its letter. A long line becomes a digest.
pub(super) fn row(letters: impl Iterator<Item = char>) -> String {
    let mut runs: Vec<(usize, char)> = Vec::new();
    for letter in letters {
        match runs.last_mut() {
            Some((length, last)) if *last == letter => *length += 1,
            _ => runs.push((1, letter)),
        }
    }
    let line = runs.iter().map(|(length, letter)| format!("{length}{letter}")).collect::<Vec<_>>().join(" ");
    if line.len() <= READ { line } else { digest(&line) }
}

/// Hashes a line with FNV-1a, which gives the same result on every machine and in every version.
fn digest(line: &str) -> String {
    let hash = line
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("digest {hash:x}")
}

/// Writes verdicts as one line of letters.
fn line(verdicts: impl Iterator<Item = Option<&'static str>>) -> String {
    let rules = rules();
    let letter = |found| {
        let index = rules.binary_search(&found).unwrap_or_else(|_| panic!("{found} is not among the rules"));
        LETTERS.chars().nth(index).expect("a letter for each rule")
    };
    row(verdicts.map(|verdict| verdict.map_or('.', letter)))
}

/// Compares the lines with the file, or with `UPDATE=1` writes the file.
pub(super) fn compare(name: &str, lines: &str) {
    let rules: Vec<String> =
        rules().iter().zip(LETTERS.chars()).map(|(rule, letter)| format!("{letter} {rule}")).collect();
    // Leaves out a line such as `81.`, in which every value passed.
    let tells = |line: &&str| {
        line.rsplit(": ").next().is_some_and(|verdicts| verdicts.contains(|c: char| c.is_ascii_alphabetic()))
    };
    let told: Vec<&str> = lines.lines().filter(tells).collect();
    let now = format!("{}\n{}\n", rules.join(", "), told.join("\n"));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests").join(name);
    if std::env::var("UPDATE").is_ok_and(|update| update == "1") {
        std::fs::write(&file, &now).unwrap();
    }
    // Removes the carriage returns that git may have added to the file.
    let before = std::fs::read_to_string(&file).unwrap().replace("\r\n", "\n");
    let moved: Vec<&str> =
        now.lines().zip(before.lines()).filter(|(now, before)| now != before).map(|(now, _)| now).collect();
    assert!(
        now == before,
        "{name}: {} lines differ, see them by UPDATE=1 and git diff: {:?}",
        moved.len(),
        moved.first()
    );
}

#[test]
fn values_of_every_length_are_judged_as_they_were() {
    let mut make = Maker(40);
    let mut kinds: Vec<(&str, String)> =
        KINDS.iter().map(|(kind, alphabet)| (*kind, make.text(600, alphabet))).collect();
    kinds.extend(TEXTS.iter().map(|(kind, text)| (*kind, (*text).to_owned())));
    kinds.push(("uuids", [make.uuid(), make.uuid(), make.uuid()].join("-")));
    let mut lines = String::new();
    for (kind, value) in &kinds {
        let starts: Vec<&str> = (1..=LONGEST)
            .chain(BEYOND)
            .filter_map(|length| value.char_indices().map(|(i, _)| i).nth(length))
            .map(|end| &value[..end])
            .collect();
        let named = ["password", "api_key", "session", "Authorization", "Cookie", "seed_phrase", "digest"];
        for place in PLACES {
            let verdicts = line(starts.iter().map(|start| rule(&place.replace("{}", start))));
            writeln!(lines, "{kind} in {place}: {verdicts}").unwrap();
        }
        for name in named {
            let verdicts = line(starts.iter().map(|start| GUARD.check(Some(name), start)));
            writeln!(lines, "{kind} of {name}: {verdicts}").unwrap();
        }
    }
    compare("lengths.txt", &lines);
}

/// Texts around a value. The rules for them demand different things of the value.
const ASKING: &[&str] =
    &["{}", "run {} now", "token={}", "session: {}", "password: {}", "the password is {}", "tool -x {}"];

/// Makes values of each length: small letters with a number of capitals, digits and punctuation among them.
pub(super) fn mixtures() -> Vec<(String, Vec<String>)> {
    let counts = |taken: usize| {
        (0..9).flat_map(|upper| (0..9).map(move |digit| (upper, digit))).filter(move |(a, b)| a + b < taken)
    };
    let of_length = |length: usize| {
        let mut values = Vec::new();
        for other in ["abcdefghijklmnopqrstuvwxyz", "bcdfghjklmnpqrstvwxz", "aeinorst"] {
            for marks in ["", "-", "-_", "+/", "!-#", "./+:", "_-_-_-", "!@#$%^&*"] {
                let mut make = Maker(41);
                for (upper, digit) in counts(length - marks.len().min(length)) {
                    let small = make.text(length - upper - digit - marks.len(), other);
                    let (capitals, digits) = (make.text(upper, KINDS[1].1), make.text(digit, "0123456789"));
                    values.push(make.shuffled(&[&small, &capitals, &digits, marks]));
                }
            }
        }
        (format!("length {length}"), values)
    };
    [8, 10, 12, 14, 16, 20, 24, 30, 32, 36, 38, 40, 44].map(of_length).into()
}

#[test]
fn values_of_every_mixture_are_judged_as_they_were() {
    let mut lines = String::new();
    for (kind, values) in mixtures() {
        for place in ASKING {
            let verdicts = line(values.iter().map(|value| rule(&place.replace("{}", value))));
            writeln!(lines, "{kind} in {place}: {verdicts}").unwrap();
        }
    }
    compare("mixtures.txt", &lines);
}

/// Returns the form of a text, in which `#` replaces each word with characters of several kinds.
fn skeleton(text: &str) -> String {
    text.split_inclusive(|c: char| !c.is_ascii_alphanumeric())
        .map(|word| {
            let plain = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let is_drawn = plain.len() > 3 && CharMix::from_bytes(plain.as_bytes()).count_classes() > 1;
            if is_drawn { format!("#{}", &word[plain.len()..]) } else { word.to_owned() }
        })
        .collect()
}

#[test]
fn the_neighbours_of_every_case_are_judged_as_they_were() {
    let mut known = std::collections::HashSet::new();
    let mut lines = String::new();
    for text in told(&[super::CASES, super::commands::CASES, super::super::sibling_tests::CASES].concat()) {
        if text.len() > 400 || !known.insert(skeleton(&text)) {
            continue;
        }
        let places: Vec<(usize, usize)> = text.char_indices().map(|(start, c)| (start, start + c.len_utf8())).collect();
        let shown: String = skeleton(&text).chars().take(60).flat_map(char::escape_default).collect();
        write!(lines, "{shown}:").unwrap();
        for instead in ["", "7", "e", "X", "-", " ", "/", "=", "$"] {
            let verdicts =
                line(places.iter().map(|(from, to)| rule(&[&text[..*from], instead, &text[*to..]].concat())));
            write!(lines, " {verdicts} |").unwrap();
        }
        let words: Vec<&str> = text.split_inclusive(' ').collect();
        let but = |index: usize, times: usize| {
            [words[..index].concat(), words[index].repeat(times), words[index + 1..].concat()].concat()
        };
        for times in [0, 2] {
            let verdicts = line((0..words.len()).map(|index| rule(&but(index, times))));
            write!(lines, " {verdicts} |").unwrap();
        }
        let cut = line(places.iter().map(|(from, _)| rule(&text[..*from])));
        writeln!(lines, " {cut}").unwrap();
    }
    compare("neighbours.txt", &lines);
}
