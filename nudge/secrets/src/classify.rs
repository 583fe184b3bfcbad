//! Judges a single value: it may be a reference, a placeholder, plain words, or a possible credential. Each function
//! reads each byte a fixed number of times, and allocates at most a short value.

use super::names::WordSet;
use aho_corasick::{AhoCorasick, Anchored, Input, StartKind};
use std::sync::LazyLock;

/// Letter pairs that are common inside English words and identifiers. Bit `b` of row `a` is set when letter `b` often
/// follows letter `a`. About 93 % of the pairs in technical words are common, but only 40 % of the pairs in random
/// letters.
#[rustfmt::skip]
const COMMON_PAIRS: [u32; 26] = [
    0x013e_bd6f, 0x0016_4917, 0x001e_5d9d, 0x0016_493f, 0x01ee_b97f, 0x001e_4939, 0x0016_6991, 0x001a_4111,
    0x02ae_f87f, 0x0000_0011, 0x0004_4111, 0x011c_c91d, 0x0014_d913, 0x03ce_d97d, 0x007e_fd6f, 0x011e_c991,
    0x0010_0000, 0x013e_fd5d, 0x011c_ddb5, 0x011e_d9bd, 0x000e_b97f, 0x0000_4111, 0x0002_6111, 0x0008_8114,
    0x0004_a000, 0x0000_0010,
];

/// Values that people write instead of a secret. A value is compared in lower case, and only by its letters and digits.
const PLACEHOLDERS: &str = "\
    password passwd passwort pass passw0rd p4ssw0rd password1 password123 pass123 pwd pw secret secret123 \
    secretkey secrettoken mysecret mysecretkey mypassword mysecretpassword mypass mytoken token token123 apikey \
    apitoken accesstoken key changeme changeit changethis changemenow changeme123 changemeplease replaceme \
    replacethis fixme todo tbd example sample dummy fake foo bar foobar baz test test123 testing test1234 \
    tests3cret demo dev local postgres postgresql mysql mariadb redis root toor admin admin123 administrator \
    user username guest minio minioadmin minio123 rabbitmq mongo mongodb elastic default none null nil undefined \
    true false yes no on off prompt ask stdin env file string str text value required optional redacted masked \
    hidden removed secretvalue empty unset 123 1234 12345 123456 1234567 12345678 123456789 1234567890 abc \
    abc123 abcdef qwerty letmein insertyourtokenhere pat bearer basic xoauth2";

/// Beginnings of placeholders that are not fixed words. The second list has words that show a placeholder at any
/// position.
#[rustfmt::skip]
const PLACEHOLDER_STARTS: &[&str] = &[
    "your", "<your", "my-", "insert", "replace", "enter", "put-", "put_", "add-your", "changeme", "change-me",
    "change_me", "example", "dummy", "fake", "sample", "placeholder", "todo", "not-a-", "not_a_", "notasecret",
    "some-", "some_", "redacted", "test-only", "xxx", "...", "***",
];
#[rustfmt::skip]
const PLACEHOLDER_PARTS: &[&str] = &[
    "your-", "your_", "yourtoken", "yourkey", "yourpass", "-here", "_here", "goes-here", "placeholder",
    "change-me", "change_me", "changeme", "replace-me", "replace_me", "xxxxx", "*****", "redacted", "dummy",
    "not-real", "notreal", "......", "00000000000000", "...", "…", "${", "{{", "$(",
    "abcdefghijklmnopqrstuvwxyz",
];

static PARTS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(PLACEHOLDER_PARTS).ok());

/// Beginnings of a value that refers to a secret but does not contain it. A value is compared in lower case.
#[rustfmt::skip]
const REFERENCE_STARTS: &[&str] = &[
    "${", "$(", "$[", "$<", "{{", "{%", "<%", "#{", "@{", "%{", "%(", "`", "op://", "vault:", "vault://",
    "ssm:", "ssm://", "arn:", "enc[", "enc(", "{cipher}", "secret:", "secretsmanager:", "secretmanager:",
    "asm:", "awssm:", "aws-sm:", "gcpsm:", "gcp-sm:", "sm://", "akv://", "akv:", "keyvault:", "ref+", "ref:",
    "!ref", "!sub", "!getatt", "!vault", "!secret", "!env", "@microsoft.keyvault", "doppler:", "doppler://",
    "bws:", "infisical:", "keyring:", "keychain:", "pass://", "env:", "env(", "file:", "file(", "process.env",
    "import.meta.env", "os.environ", "os.getenv", "getenv", "std::env", "env::var", "env.", "env[", "secrets.",
    "secrets[", "vars.", "var.", "local.", "data.", "module.", "self.", "this.", "config.", "settings.",
    "req.", "request.", "ctx.", "context.", "params.", "props.", "args.", "options.", "opts.", "github.",
    "steps.", "needs.", "inputs.", "process.", "projects/", "$ansible_vault", "lookup(", "cmd:", "exec:",
    "sops:", "kms:", "kms://", "berglas://", "chamber:", "1password:", "bitwarden:", "lastpass:", "k8s:",
    "kubernetes:", "system.getenv", "rails.application", "new ", "func", "fn(", "async ", "await ", "get-", "read-host", "convertto-",
    "(read", "(convert", "[system", "[environment", "[string", "readonly", "sha256:", "sha384-", "sha512-",
    "sha256-", "sha512:", "ssh-rsa ", "ssh-ed25519 ", "age1", "…",
];

static PLACEHOLDER_WORDS: LazyLock<WordSet> =
    LazyLock::new(|| PLACEHOLDERS.split_ascii_whitespace().map(str::as_bytes).collect());

/// An automaton that finds one of several fixed beginnings ([`starts_with_any`]).
type Starts = LazyLock<Option<AhoCorasick>>;

static REFERENCES: Starts = LazyLock::new(|| compile_anchored(REFERENCE_STARTS));
static STAND_INS: Starts = LazyLock::new(|| compile_anchored(PLACEHOLDER_STARTS));

fn compile_anchored(starts: &[&str]) -> Option<AhoCorasick> {
    AhoCorasick::builder().ascii_case_insensitive(true).start_kind(StartKind::Anchored).build(starts).ok()
}

fn starts_with_any(starts: &Starts, bytes: &[u8]) -> bool {
    let input = Input::new(bytes).anchored(Anchored::Yes).earliest(true);
    starts.as_ref().is_some_and(|automaton| automaton.find(input).is_some())
}

/// Returns true when the value refers to a secret that is stored in another place.
pub(super) fn is_reference(value: &str) -> bool {
    let bytes = value.as_bytes();
    let Some(&first) = bytes.first() else {
        return true;
    };
    if starts_with_any(&REFERENCES, bytes) {
        return true;
    }
    match first {
        b'$' => is_variable(&bytes[1..]),
        b'%' => bytes.len() > 2 && bytes[bytes.len() - 1] == b'%' && bytes[1..bytes.len() - 1].iter().all(is_word_byte),
        b'/' | b'~' | b'.' | b'@' | b'\\' => is_path(value),
        b'*' | b'&' => bytes[1..].iter().all(|b| is_word_byte(b) || *b == b'-') && wordy_share(&bytes[1..]) > 60,
        b'<' => bytes.contains(&b'>') || wordy_share(bytes) > 50,
        b'(' | b'[' | b'{' => bytes.len() < 32 || wordy_share(bytes) >= 30,
        _ => is_call_or_url(value),
    }
}

/// Returns true for `$NAME`, `$1`, `$env:NAME`, `$obj.field` and `$obj->field`. `rest` is the text after the `$`.
fn is_variable(rest: &[u8]) -> bool {
    let name = rest.iter().take_while(|b| is_word_byte(b)).count();
    match (name, rest.get(name)) {
        (0, _) => rest.first().is_some_and(|b| matches!(b, b'$' | b'@' | b'?' | b'!')) && rest.len() == 1,
        (_, None) => rest[0].is_ascii_alphabetic() || rest[0] == b'_' || name == 1,
        (_, Some(next)) => {
            (rest[0].is_ascii_alphabetic() || rest[0] == b'_')
                && matches!(
                    next,
                    b':' | b'.' | b'-' | b'[' | b'/' | b'"' | b'\'' | b'}' | b')' | b',' | b';' | b'\\' | b'@' | b'$'
                )
                && rest.iter().all(|b| {
                    is_word_byte(b)
                        || matches!(
                            b,
                            b':' | b'.'
                                | b'-'
                                | b'>'
                                | b'['
                                | b']'
                                | b'/'
                                | b'"'
                                | b'\''
                                | b'{'
                                | b'}'
                                | b'('
                                | b')'
                                | b','
                                | b';'
                                | b'\\'
                                | b'@'
                                | b'$'
                        )
                })
        }
    }
}

fn is_path(value: &str) -> bool {
    let bytes = value.as_bytes();
    let rooted = ["/", "./", "../", "~/", "@/", "@./", "@~/", "\\\\", ".\\"].iter().any(|p| value.starts_with(p));
    let named = bytes[0] == b'.' || (bytes[0] == b'@' && bytes[1..].contains(&b'.') && wordy_share(bytes) > 50);
    let mix = CharMix::from_bytes(bytes);
    let base64 = bytes.len() >= 32
        && mix.digit > 3
        && mix.upper > 3
        && mix.lower > 3
        && !bytes.iter().any(|b| matches!(b, b'.' | b'-' | b'_' | b':'));
    (rooted || named)
        && !base64
        && (bytes.len() < 16 || wordy_share(bytes) >= 35 || value.matches('/').count() * 12 > bytes.len())
}

/// Returns true for `getToken()`, `a::b(c)`, `https://…`, `C:\…` and `a->b`.
fn is_call_or_url(value: &str) -> bool {
    let bytes = value.as_bytes();
    if let Some(scheme_end) = value.find("://") {
        return bytes[..scheme_end].iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    }
    if bytes.len() > 2 && bytes[1] == b':' && bytes[0].is_ascii_alphabetic() && matches!(bytes[2], b'\\' | b'/') {
        return true;
    }
    let head = bytes.iter().take_while(|b| is_word_byte(b) || matches!(b, b'.' | b':')).count();
    let call = head > 0 && matches!(bytes.get(head), Some(b'(' | b'['));
    (call
        && (bytes[head..].iter().any(|b| matches!(b, b')' | b']')) || head + 1 == bytes.len())
        && (wordy_share(&bytes[..head]) >= 50 || (head <= 4 && bytes.len() < 24)))
        || (value.contains("->") && wordy_share(bytes) > 60)
}

/// Returns true when the value is a placeholder such as `changeme`, `xxxx` or `your-token-here`.
pub(super) fn is_placeholder(value: &str) -> bool {
    let bytes = value.as_bytes();
    if count_distinct(bytes, 4) <= 3 || is_test_key(value) {
        return true;
    }
    if bytes.len() > 96 {
        return false;
    }
    let mut buffer = [0; 96];
    let mut length = 0;
    for b in bytes.iter().filter(|b| b.is_ascii_alphanumeric()) {
        buffer[length] = b.to_ascii_lowercase();
        length += 1;
    }
    let bare = &buffer[..length];
    bare.is_empty()
        || PLACEHOLDER_WORDS.contains(bare)
        || (starts_with_any(&STAND_INS, bytes) && wordy_share(bytes) >= 50)
        || PARTS.as_ref().is_some_and(|parts| parts.is_match(bytes))
        || has_angle_name(value)
        || is_shouted_name(bytes)
}

/// Returns true for a key of a payment provider's test mode. Such a key may be public, because it moves no money.
pub(super) fn is_test_key(value: &str) -> bool {
    ["sk_test_", "rk_test_"].iter().any(|start| value.starts_with(start))
}

/// Returns true when the value contains a name in angle brackets, such as `<name>`.
fn has_angle_name(value: &str) -> bool {
    value.split('<').skip(1).any(|rest| {
        rest.split_once('>').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| is_word_byte(&b) || matches!(b, b' ' | b'-' | b'.' | b':' | b'/'))
        })
    })
}

/// Returns true for a value in capitals that only names a secret, such as `MYTOKEN1` or `API-KEY`.
fn is_shouted_name(bytes: &[u8]) -> bool {
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let shouted =
        digits <= 2 && bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'));
    shouted
        && [&b"TOKEN"[..], b"PASS", b"SECRET", b"KEY"].iter().any(|word| bytes.windows(word.len()).any(|w| w == *word))
}

/// Counts the positions at which a letter and a digit are neighbours.
pub(super) fn digit_changes(bytes: &[u8]) -> usize {
    let change = |a: u8, b: u8| {
        (a.is_ascii_digit() && b.is_ascii_alphabetic()) || (a.is_ascii_alphabetic() && b.is_ascii_digit())
    };
    bytes.windows(2).filter(|w| change(w[0], w[1])).count()
}

/// Counts the positions at which two neighbouring letters differ in case.
pub(super) fn case_changes(bytes: &[u8]) -> usize {
    let change = |a: u8, b: u8| {
        a.is_ascii_alphabetic() && b.is_ascii_alphabetic() && a.is_ascii_uppercase() != b.is_ascii_uppercase()
    };
    bytes.windows(2).filter(|w| change(w[0], w[1])).count()
}

/// Counts the different bytes. The count ends at `stop`.
pub(super) fn count_distinct(bytes: &[u8], stop: usize) -> usize {
    let mut seen = [false; 256];
    let mut count = 0;
    for &b in bytes {
        if !seen[usize::from(b)] {
            seen[usize::from(b)] = true;
            count += 1;
            if count >= stop {
                break;
            }
        }
    }
    count
}

/// Returns the percentage of letters and digits that belong to word-like runs of at least three letters. A run ends at
/// a change of case, and at any character that is no letter.
pub(super) fn wordy_share(bytes: &[u8]) -> usize {
    let (mut wordy, mut total) = (0, 0);
    // The run so far: its length, its number of common pairs, and 1 if its last pair is common.
    let (mut length, mut common, mut last) = (0, 0, 0);
    let mut previous = b' ';
    for &b in bytes {
        if !b.is_ascii_alphabetic() {
            total += usize::from(b.is_ascii_digit());
            wordy += word_length(length, common);
            (length, common, last) = (0, 0, 0);
            continue;
        }
        total += 1;
        let (upper, after_upper) = (b.is_ascii_uppercase(), previous.is_ascii_uppercase());
        if length == 0 || (upper && !after_upper) {
            // A capital after a small letter begins a new word, as in "getServer".
            wordy += word_length(length, common);
            (length, common, last) = (1, 0, 0);
        } else {
            let pair = usize::from(common_pair(previous, b));
            if !upper && after_upper && length > 1 {
                // The last capital of "HTTP" in "HTTPServer" begins a new word too.
                wordy += word_length(length - 1, common - last);
                (length, common) = (1, 0);
            }
            length += 1;
            common += pair;
            last = pair;
        }
        previous = b;
    }
    wordy += word_length(length, common);
    (wordy * 100).checked_div(total).unwrap_or(0)
}

/// Returns `length` if a run of letters with this many common pairs reads like a word; otherwise 0.
const fn word_length(length: usize, common: usize) -> usize {
    if length >= 3 && common * 100 >= (length - 1) * 70 { length } else { 0 }
}

/// Returns true when a run of letters reads like a word.
pub(super) fn is_wordlike(run: &[u8]) -> bool {
    word_length(run.len(), run.windows(2).filter(|pair| common_pair(pair[0], pair[1])).count()) > 0
}

fn common_pair(a: u8, b: u8) -> bool {
    let (a, b) = (a.to_ascii_lowercase().wrapping_sub(b'a'), b.to_ascii_lowercase().wrapping_sub(b'a'));
    b < 26 && COMMON_PAIRS.get(usize::from(a)).is_some_and(|row| row >> b & 1 == 1)
}

/// The number of characters of each kind in a value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CharMix {
    pub lower: usize,
    pub upper: usize,
    pub digit: usize,
    pub symbol: usize,
    pub space: usize,
}

impl CharMix {
    pub(super) fn from_bytes(bytes: &[u8]) -> Self {
        let mut mix = Self::default();
        for b in bytes {
            match b {
                b'a'..=b'z' => mix.lower += 1,
                b'A'..=b'Z' => mix.upper += 1,
                b'0'..=b'9' => mix.digit += 1,
                b' ' | b'\t' | b'\n' | b'\r' => mix.space += 1,
                _ => mix.symbol += 1,
            }
        }
        mix
    }

    pub(super) const fn count_letters(self) -> usize {
        self.lower + self.upper
    }

    pub(super) fn count_classes(self) -> usize {
        usize::from(self.lower > 0) + usize::from(self.upper > 0) + usize::from(self.digit > 0)
    }
}

/// Returns true when the value looks machine-generated. It has at least `min` bytes, no blank, several kinds of
/// characters, and few word-like runs.
pub(super) fn is_random(value: &str, min: usize) -> bool {
    let bytes = value.as_bytes();
    if bytes.len() < min || !value.is_ascii() {
        return false;
    }
    let mix = CharMix::from_bytes(bytes);
    if mix.space > 0 || mix.count_letters() < 3 || mix.symbol * 3 > bytes.len() || count_distinct(bytes, 7) < 7 {
        return false;
    }
    if mix.count_classes() < 2 && (mix.digit > 0 || mix.count_letters() < 16) {
        return false;
    }
    if mix.digit == 0 && mix.symbol * 10 > bytes.len() && bytes.len() < 32 {
        return mix.lower > 3 && mix.upper > 3 && wordy_share(bytes) < 30;
    }
    // Scattered capitals show a random value. In a name, a run of small letters follows each capital.
    let share = wordy_share(bytes);
    if bytes.len() >= 16 && share < 70 && case_changes(bytes) * 3 >= bytes.len() {
        return true;
    }
    // A long random value may contain some words by chance, and a short one hardly any. Scattered digits are a surer
    // sign than missing words.
    if share < 78 && digit_changes(bytes) >= 5 {
        return true;
    }
    share < if bytes.len() >= 24 { 52 } else { 42 }
}

/// Returns true for a long run of letters that does not read like words.
pub(super) fn is_odd_word(word: &str) -> bool {
    word.len() >= 12
        && word.bytes().all(|b| b.is_ascii_alphabetic())
        && !is_wordlike(word.as_bytes())
        && count_distinct(word.as_bytes(), 6) > 5
}

/// Returns true when the value looks like a chosen or generated password. Plain words, identifiers, versions and
/// sentences do not.
pub(super) fn is_passwordish(value: &str) -> bool {
    let bytes = value.as_bytes();
    if bytes.len() < 6 || is_version_or_number(bytes) || is_env_name(bytes) {
        return false;
    }
    let mix = CharMix::from_bytes(bytes);
    if mix.space > 0 {
        return is_spaced_code(value);
    }
    let odd = bytes
        .iter()
        .filter(|b| matches!(b, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?' | b'+' | b'=' | b'~'))
        .count();
    let shares = wordy_share(bytes);
    if mix.count_letters() == 0 {
        return odd > 0 && mix.digit > 3;
    }
    if mix.digit > 0 {
        // A word with digits, such as `hunter2`, `maple5961.qda` or `Summer2024!`, is a password. Names such as
        // `web-v2` or `api_2` are not.
        return mix.digit >= 3 || odd > 0 || shares < 60 || (mix.symbol == 0 && mix.digit * 10 >= bytes.len());
    }
    odd > 0 && (shares < 90 || odd * 4 < bytes.len())
        || (shares < 40 && bytes.len() >= 8 && mix.count_letters() * 10 >= bytes.len() * 8)
}

/// Returns true for a code in groups, such as `abcd efgh ijkl mnop`, whose letters form no words.
pub(super) fn is_spaced_code(value: &str) -> bool {
    let groups: Vec<&str> = value.split(' ').collect();
    groups.len() >= 4
        && groups.iter().all(|g| g.len() == 4 && g.bytes().all(|b| b.is_ascii_alphanumeric()))
        && groups.iter().filter(|g| is_wordlike(g.as_bytes())).count() * 2 <= groups.len()
}

/// Returns true for digits and punctuation with few letters: `1.2.3-beta`, `v2`, `10.0.0.1:80`, `300s`, `2026-03-15`.
pub(super) fn is_version_or_number(bytes: &[u8]) -> bool {
    let mix = CharMix::from_bytes(bytes);
    let marks = bytes.iter().filter(|b| matches!(b, b'.' | b'-' | b':' | b',' | b'/' | b'_')).count();
    let number = mix.upper + mix.lower <= 2
        && mix.symbol == marks
        && (mix.symbol > 0 || mix.count_letters() == 0 || bytes.len() < 12);
    number || is_package_version(bytes)
}

/// Returns true for the version of a package, such as `1:4.13+dfsg1-1+deb12u1` or `v2.0.0-rc.1`.
fn is_package_version(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(b"v").unwrap_or(bytes);
    let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    (1..=4).contains(&digits)
        && matches!(bytes.get(digits), Some(b'.' | b':'))
        && bytes.get(digits + 1).is_some_and(u8::is_ascii_digit)
        && bytes
            .iter()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'~' | b':'))
}

/// Returns true for the name of an environment variable, such as `DB_PASSWORD`.
pub(super) fn is_env_name(bytes: &[u8]) -> bool {
    bytes.contains(&b'_')
        && bytes[0].is_ascii_alphabetic()
        && bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
        && bytes.iter().filter(|b| b.is_ascii_digit()).count() * 5 <= bytes.len()
}

/// Returns true for a UUID: groups of 8, 4, 4, 4 and 12 hex digits with dashes between them.
pub(super) fn is_uuid(bytes: &[u8]) -> bool {
    bytes.len() == 36
        && bytes
            .iter()
            .enumerate()
            .all(|(i, b)| if matches!(i, 8 | 13 | 18 | 23) { *b == b'-' } else { b.is_ascii_hexdigit() })
}

// Takes a reference, because iterators pass one to a predicate.
#[allow(clippy::trivially_copy_pass_by_ref)]
pub(super) const fn is_word_byte(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || *b == b'_'
}

/// Returns true when the bytes begin with `start`, whatever the case of ASCII letters is. `start` must be lower case.
pub(super) fn starts_with_lower(bytes: &[u8], start: &str) -> bool {
    bytes.len() >= start.len() && bytes[..start.len()].eq_ignore_ascii_case(start.as_bytes())
}
