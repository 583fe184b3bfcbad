//! Finds secrets in sentences: `the db password for staging is X`, `use password X`, `ansible-vault-pass X`.

use super::classify::{CharMix, digit_changes, is_passwordish, is_random, is_uuid, is_wordlike};
use super::command::{ends_command, is_strong, strip_quotes};
use super::names::{NamePromise, WordSet, judge_name};
use super::verdict::{is_secret, is_token_like};
use std::sync::LazyLock;

/// Largest number of words between the name of a secret and the secret, which may describe its purpose.
const DESCRIPTION_LIMIT: u8 = 6;

/// Words with digits that name a technique, a product or a format, and so are not secrets.
static TERMS: LazyLock<WordSet> = LazyLock::new(|| {
    "1password sha1 sha2 sha3 sha224 sha256 sha384 sha512 md4 md5 argon2 argon2i argon2d argon2id base32 base58 base64 \
     base64url oauth1 oauth2 auth0 auth2 utf8 utf16 utf32 x509 s3 ec2 r2 k8s k3s pkcs1 pkcs7 pkcs8 pkcs11 pkcs12 p12 \
     pbkdf1 pbkdf2 pbes2 bcrypt2 scrypt2 crypt3 ed25519 ed448 x25519 curve25519 rs256 rs384 rs512 hs256 hs384 hs512 \
     es256 es384 es512 ps256 aes128 aes192 aes256 rsa2048 rsa4096 rot13 des3 rc4 h2 h2c http2 http3 db2 neo4j ipv4 \
     ipv6 krb5 u2f fido2 blake2 blake2b blake2s blake3 crc32 win32 win64 x86 arm64 amd64 log4j web3 i18n l10n a11y \
     latin1 cp1252 ascii85 python2 python3 http1 sqlite3 psycopg2 boto3 gpg2 bip39 es6 e2e"
        .split_ascii_whitespace()
        .map(str::as_bytes)
        .collect()
});

/// The state of reading a sentence, one word after another.
struct SentenceState<'a> {
    text: &'a str,
    /// The kind of secret that the sentence named last. `words_left` counts the further words that may describe its
    /// purpose.
    subject: NamePromise,
    words_left: u8,
    /// True when the next word may be the secret.
    expects: bool,
    /// True after a word such as `set` or `change`. The new value then follows the word `to`.
    setting: bool,
    /// True after a word such as `use` or `with`. The name of the used secret then follows.
    using: bool,
    /// The number of words of `log in as NAME with` that were read so far.
    login_stage: u8,
    previous: &'a str,
}

/// Finds a secret in a sentence, and returns the rule.
pub(super) fn find_in_prose(text: &str) -> Option<&'static str> {
    let mut sentence = SentenceState {
        text,
        subject: NamePromise::None,
        words_left: 0,
        expects: false,
        setting: false,
        using: false,
        login_stage: 0,
        previous: "",
    };
    for raw in text.split_ascii_whitespace() {
        if sentence.tells_secret(raw) {
            return Some("secret-assignment");
        }
    }
    None
}

impl<'a> SentenceState<'a> {
    /// Reads the next word. Returns true if the word is a secret.
    fn tells_secret(&mut self, raw: &'a str) -> bool {
        let word = strip_quotes(raw).trim_end_matches(':');
        if self.expects {
            if is_adverb(word) || word.is_empty() {
                return false;
            }
            if is_told(self.subject, word) && (!may_be_a_name(word) || ends_clause(self.text, raw)) {
                return true;
            }
            (self.expects, self.subject) = (false, NamePromise::None);
        } else if self.subject > NamePromise::None {
            self.describe_word(word, raw);
        }
        if !self.expects {
            self.name(word, raw);
            self.log_in(word);
        }
        if raw.ends_with(['.', '!', '?']) || ends_command(raw) {
            (self.subject, self.expects, self.setting, self.using) = (NamePromise::None, false, false, false);
        }
        self.setting |= matches!(word, "set" | "change" | "changed" | "reset" | "rotated" | "update" | "updated");
        self.using = matches!(word, "use" | "Use" | "using" | "with")
            || (self.using && matches!(word, "the" | "this" | "my" | "our" | "following"));
        self.previous = raw;
        false
    }

    /// Reads a word of `log in as admin with`. The word after this phrase is the password.
    fn log_in(&mut self, word: &str) {
        self.login_stage = match (self.login_stage, word) {
            (_, "log" | "Log" | "sign" | "Sign") => 1,
            (_, "login" | "Login" | "signin") | (1, "in") => 2,
            (2, "as") => 3,
            (3, _) => 4,
            (4, "with" | "using") => {
                (self.subject, self.words_left, self.expects) = (NamePromise::Password, 0, true);
                0
            }
            _ => 0,
        };
    }

    /// Reads a word after the name of a secret. The word describes the purpose, or shows that the secret follows.
    fn describe_word(&mut self, word: &str, raw: &str) {
        let copula = matches!(
            word,
            "is" | "was"
                | "="
                | "->"
                | "=>"
                | "\u{2192}"
                | "equals"
                | "remains"
                | "becomes"
                | "ist"
                | "lautet"
                | "war"
                | "est"
                | "es"
        ) || raw == ":";
        self.expects = copula || (self.setting && word == "to") || (self.words_left > 0 && raw.ends_with(':'));
        if is_preposition(word) || raw.starts_with('(') {
            self.words_left = DESCRIPTION_LIMIT;
            self.expects |= raw.ends_with(':');
        } else if self.words_left > 0 {
            self.words_left -= 1;
        } else if !self.expects {
            self.subject = NamePromise::None;
        }
    }

    /// If the word names a secret, remembers the kind of secret.
    fn name(&mut self, word: &'a str, raw: &str) {
        if is_foreign_noun(word, self.previous) {
            (self.subject, self.words_left) = (NamePromise::Password, 0);
            self.expects = raw.ends_with(':');
            return;
        }
        let noun = word.strip_suffix("'s").or_else(|| word.strip_suffix("\u{2019}s")).unwrap_or(word);
        let last = noun.bytes().last().unwrap_or(b' ').to_ascii_lowercase();
        if !(2..=32).contains(&noun.len())
            || !matches!(last, b'd' | b'e' | b's' | b'w' | b'n' | b't' | b'y')
            || noun.starts_with('-')
            || noun.contains(['/', '=', '.'])
        {
            return;
        }
        let mut promised = judge_name(noun.as_bytes());
        if noun.eq_ignore_ascii_case("key") {
            // In "api key", the first word says which kind of key is meant.
            let start = self.offset_of(self.previous);
            let pair = self.text.get(start..self.offset_of(raw) + raw.len()).filter(|pair| pair.len() <= 32);
            promised = pair.map_or(NamePromise::None, |pair| judge_name(pair.trim_end_matches([':', ',']).as_bytes()));
        }
        if !matches!(promised, NamePromise::Password | NamePromise::Token) {
            return;
        }
        (self.subject, self.words_left) = (promised, 0);
        let before = strip_quotes(self.previous);
        // After the words for a vault's password, the next word is always the secret.
        let vault = promised == NamePromise::Password && (noun.contains("vault") || before.ends_with("vault"));
        self.expects = noun.len() < word.len() || vault || (promised == NamePromise::Password && self.using);
    }

    /// Returns the byte offset of `part` in the text, which contains `part`.
    fn offset_of(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize).min(self.text.len())
    }
}

/// Returns true if the word can begin the description of a purpose, in English, German, French or Spanish.
fn is_preposition(word: &str) -> bool {
    const ENGLISH: [&str; 7] = ["for", "of", "on", "to", "in", "at", "from"];
    const OTHERS: [&str; 14] =
        ["f\u{fc}r", "von", "vom", "zu", "zum", "im", "auf", "de", "du", "del", "pour", "sur", "para", "en"];
    ENGLISH.contains(&word) || OTHERS.contains(&word)
}

/// Returns true for a Spanish word that means password, and for the French word after `mot de`.
fn is_foreign_noun(word: &str, previous: &str) -> bool {
    word.eq_ignore_ascii_case("contrase\u{f1}a") || (word == "passe" && previous == "de")
}

/// Largest length of a password in a text without blanks, in bytes.
const UNSPACED_LIMIT: usize = 64;

/// Finds a password in a Chinese sentence, where no blank comes before it, and returns the rule.
pub(super) fn find_unspaced(text: &str) -> Option<&'static str> {
    const NOUNS: [&str; 3] = ["\u{5bc6}\u{7801}", "\u{5bc6}\u{78bc}", "\u{53e3}\u{4ee4}"];
    const COPULAS: [char; 8] = ['\u{662f}', '\u{4e3a}', '\u{70ba}', '\u{6210}', '\u{5230}', '\u{ff1a}', ':', '='];
    let tells = |rest: &str| {
        let head = rest.chars().take_while(|c| !c.is_ascii_graphic() || COPULAS.contains(c)).take(8);
        let (mut bytes, mut has_copula) = (0, false);
        for c in head {
            bytes += c.len_utf8();
            has_copula |= COPULAS.contains(&c);
        }
        let value = rest[bytes..].trim_start_matches(['"', '\'', '`']);
        let end = value.bytes().take(UNSPACED_LIMIT).take_while(|b| b.is_ascii_graphic() && !b"\"'`,;".contains(b));
        let value = &value[..end.count()];
        has_copula && is_told(NamePromise::Password, value)
    };
    let is_told_by = |noun: &str| text.match_indices(noun).any(|(start, noun)| tells(&text[start + noun.len()..]));
    NOUNS.iter().any(|noun| is_told_by(noun)).then_some("secret-assignment")
}

fn is_adverb(word: &str) -> bool {
    matches!(word, "now" | "still" | "currently" | "just" | "always" | "simply" | "be" | "is" | "=" | "->" | "**")
}

/// Returns true when the word is a secret, and not a term, a name or a path.
fn is_told(promised: NamePromise, word: &str) -> bool {
    let word = word.trim_matches('*');
    if word.contains(['/', '(']) || word.starts_with(['@', '#', '-']) || is_term(word) {
        return false;
    }
    let looks_secret = match promised {
        NamePromise::Password => is_passwordish(word) && !is_file_name(word),
        _ => {
            is_uuid(word.as_bytes())
                || is_random(word, 12)
                || (word.len() >= 12 && is_token_like(word) && digit_changes(word.as_bytes()) >= 4)
        }
    };
    looks_secret && is_secret(promised, word, false)
}

/// Returns true for a word with fewer than two digits and without other signs of a password. Such a word may name a
/// column, a step or a host.
fn may_be_a_name(word: &str) -> bool {
    CharMix::from_bytes(word.as_bytes()).digit < 2 && !is_strong(word)
}

/// Returns true when the sentence ends after `raw`, or continues with another subject.
fn ends_clause(text: &str, raw: &str) -> bool {
    let end = (raw.as_ptr() as usize).saturating_sub(text.as_ptr() as usize) + raw.len();
    let rest = text.get(end..).unwrap_or("").trim_start_matches([' ', '\t']);
    let next = rest.get(..12.min(rest.len())).unwrap_or(rest).split_ascii_whitespace().next().unwrap_or("");
    raw.ends_with(['.', ',', ';', '!', ')', '`', '"', '\'', '*'])
        || rest.starts_with(['\n', '\r', '(', '#'])
        || matches!(next, "" | "and" | "but" | "or" | "for" | "on" | "with" | "-" | "--")
}

/// Returns true for a file name such as `pw2.sh` or `login.py:33`.
fn is_file_name(word: &str) -> bool {
    let mix = CharMix::from_bytes(word.as_bytes());
    let tail = word.rsplit_once('.').map_or("", |(_, tail)| tail.split(':').next().unwrap_or(""));
    mix.digit <= 2 && (1..=4).contains(&tail.len()) && tail.bytes().all(|b| b.is_ascii_lowercase())
}

/// Returns true for words, numbers and names of techniques that are joined by punctuation: `AES-256-GCM`,
/// `sha256-hashed`, `16-bytes`.
pub(super) fn is_term(word: &str) -> bool {
    word.split(['-', '_', '.', '+', ':']).all(|piece| {
        let bytes = piece.as_bytes();
        let digits = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
        let letters = bytes.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let small = |run: &[u8]| run.len() <= 4 || is_wordlike(run);
        let mut lower = [0; 12];
        let known = lower.get_mut(..bytes.len()).is_some_and(|lower| {
            lower.copy_from_slice(bytes);
            lower.make_ascii_lowercase();
            TERMS.contains(&*lower)
        });
        known
            // Accepts a piece such as `hashed`, `256` or `90days`.
            || (bytes[digits..].iter().all(u8::is_ascii_lowercase) && small(&bytes[digits..]))
            || (letters == bytes.len() && small(bytes))
            // Accepts a piece such as `p95`, `UUIDv4`, `RFC2617` or `ISO8859`.
            || (letters > 0
                && bytes[letters..].iter().all(u8::is_ascii_digit)
                && (letters == 1 || bytes[letters - 1] == b'v' || matches!(&bytes[..letters], b"RFC" | b"ISO")))
    })
}
