//! Judges by the name of a key or variable whether its value may be a secret.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

/// A map from short words of this module's fixed tables. No caller chooses the keys, so a simple hash is safe, and it
/// is much faster than the default hash.
pub(super) type WordMap<V> = HashMap<&'static [u8], V, BuildHasherDefault<FnvHash>>;

/// A set of short words of this module's fixed tables.
pub(super) type WordSet = HashSet<&'static [u8], BuildHasherDefault<FnvHash>>;

/// The hash of Fowler, Noll and Vo (FNV-1a).
pub(super) struct FnvHash(u64);

impl Default for FnvHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for FnvHash {
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The kind of secret that a name suggests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NamePromise {
    /// An ordinary name, which suggests no secret.
    None,
    /// A name whose value may be secret (`key`, `session`). Only a random-looking value counts as a secret.
    Weak,
    /// The name of a token or key. Every value that is not a word counts as a secret.
    Token,
    /// The name of a password. People choose passwords, so words with digits or punctuation count as secrets too.
    Password,
    /// The name of a header (`Authorization`, `X-…-Auth`). The value has a scheme and a credential.
    Header,
    /// The name of a cookie header (`Cookie`, `Set-Cookie`). The value has `name=value` pairs.
    Cookie,
    /// The name of a recovery phrase, which consists of plain words.
    Phrase,
}

/// Words that, at the end of a name, make it the name of a password.
const PASSWORD_WORDS: &str = "\
    password passwd passwort pass pwd passphrase passcode pw pswd psw storepass keypass userpassword dbpassword \
    bindpw rootpw requirepass masterauth keypassword storepassword pgpassword psk authpass privpass bindpassword \
    rootpassword adminpassword dbpass userpass dbpwd sshpass contrasena senha motdepasse kennwort passin passout \
    clave pgpass mypass smtppass loginpassword masterpassword unlock";

/// Words that, at the end of a name, make it the name of a token.
const TOKEN_WORDS: &str = "\
    secret secrets token tokens apikey apikeys credential credentials cred creds authtoken accesstoken \
    refreshtoken bearer jwt secretkey privatekey accesskey authkey masterkey encryptionkey signingkey sharedkey \
    accountkey sharedaccesskey clientsecret apisecret apitoken presharedkey pepper otpseed secretaccesskey \
    sharedsecret sdkkey licensekey deploykey appsecret appkey servicekey idtoken sessiontoken csrftoken bottoken \
    xoxb hmackey webhooksecret subscriptionkey consumersecret tokensecret hmacsecret storagekey authsecret \
    usertoken registrationtoken";

/// Words that, before a final `key`, make a name the name of a secret key.
const KEY_QUALIFIERS: &str = "\
    api access secret private auth account encryption encrypt signing sign master shared service storage \
    subscription license app application deploy sdk write ingest ingestion insert admin client crypto cipher aes \
    des hmac jwt symmetric webhook provisioning registration integration consumer connection function functions \
    server live user team project org bot root session cookie security decryption management query azure aws gcp \
    openai anthropic stripe datadog sendgrid twilio mailgun algolia pinecone groq mistral cohere fernet vault \
    unseal wireguard preshared agent join bootstrap install host password credential token sa ssh rsa ec pgp gpg \
    tls ssl mcp llm apikey fcm push bearer hash salt tsig rndc telemetry instrumentation rest feed nuget npm";

/// Words that are only a weak sign of a secret when they are alone.
const WEAK_WORDS: &str = "\
    key keys auth session sessionid sid sig signature salt hmac license licence hook pat otp login pin seed \
    connsid jsessionid phpsessid authn oauth webhook sas dsn accountkeys";

/// Words at the end of a name that say which copy of a secret is meant. They are skipped.
const TRAILERS: &str = "\
    prod production dev development staging stage stg test testing live sandbox old new current previous prev \
    default value val b64 base64 plain plaintext raw string str literal data ci local qa uat eu us backup base \
    override env a b rw ro primary secondary main master app here is was be to";

/// Words that, before the last word, make a name harmless (`public_key`, `max_tokens`).
const HARMLESS_BEFORE: &str = "\
    public pub primary foreign partition sort cache max min num n total count used prompt completion input \
    output next page continuation cursor sync by no without use has is needs require requires missing invalid \
    expired bad wrong publishable bypass two first last multi single byte low high band over pad eos bos unk sep \
    cls mask special stop start end recv";

/// Words that, at the end of a name, make it the name of a public or derived value.
const PUBLIC_WORDS: &str = "\
    digest checksum integrity hash etag fingerprint sha sum commit rev revision oid cert certificate ca crt pem \
    thumbprint pubkey publickey x y modulus image icon logo font src href url uri path file filename id cid version \
    ref recipient body content signature pin";

/// Names of a field whose value belongs to the name in another field, as in `{"name": …, "value": …}`.
const CARRIERS: &str = "value parametervalue val data default content string text v raw stringvalue plaintext plain";

/// Names of a field that contains the name of another field's value.
const NAMERS: &str = "name key parameterkey variable var parameter param header field label parametername env";

const HEADER_WORDS: &str = "\
    authorization authorisation";
const PHRASE_WORDS: &str = "\
    mnemonic phrase";

/// The roles of a word: one bit for each list that contains the word.
#[derive(Debug, Clone, Copy, Default)]
struct WordRoles(u16);

impl WordRoles {
    const PASSWORD: u16 = 1;
    const TOKEN: u16 = 2;
    const QUALIFIER: u16 = 4;
    const WEAK: u16 = 8;
    const TRAILER: u16 = 16;
    const HARMLESS: u16 = 32;
    const HEADER: u16 = 64;
    const PHRASE: u16 = 128;
    const CARRIER: u16 = 256;
    const NAMER: u16 = 512;
    const PUBLIC: u16 = 1024;

    const fn has_role(self, role: u16) -> bool {
        self.0 & role != 0
    }
}

/// Maps each word to its roles, so that a word needs one lookup instead of a search of every list.
static ROLES: LazyLock<WordMap<u16>> = LazyLock::new(|| {
    let lists = [
        (PASSWORD_WORDS, WordRoles::PASSWORD),
        (TOKEN_WORDS, WordRoles::TOKEN),
        (KEY_QUALIFIERS, WordRoles::QUALIFIER),
        (WEAK_WORDS, WordRoles::WEAK),
        (TRAILERS, WordRoles::TRAILER),
        (HARMLESS_BEFORE, WordRoles::HARMLESS),
        (HEADER_WORDS, WordRoles::HEADER),
        (PHRASE_WORDS, WordRoles::PHRASE),
        (CARRIERS, WordRoles::CARRIER),
        (NAMERS, WordRoles::NAMER),
        (PUBLIC_WORDS, WordRoles::PUBLIC),
    ];
    let mut roles = WordMap::default();
    for (words, role) in lists {
        for word in words.split_ascii_whitespace() {
            *roles.entry(word.as_bytes()).or_insert(0) |= role;
        }
    }
    roles
});

fn find_roles(word: &[u8]) -> WordRoles {
    if (1..=24).contains(&word.len()) { WordRoles(ROLES.get(word).copied().unwrap_or(0)) } else { WordRoles::default() }
}

/// Number of bytes at the end of a name that are read. Longer names are read only from there.
const NAME_LIMIT: usize = 64;

/// Splits a name into lower-case words, and keeps the last four.
struct NameSplitter {
    buffer: [u8; NAME_LIMIT],
    /// The `(start, end)` of the last words, newest first.
    spans: [(usize, usize); 4],
    count: usize,
}

impl NameSplitter {
    fn from_name(name: &[u8]) -> Self {
        let name = &name[name.len().saturating_sub(NAME_LIMIT)..];
        let mut words = Self { buffer: [0; NAME_LIMIT], spans: [(0, 0); 4], count: 0 };
        let mut start = None;
        let mut previous = b' ';
        for (i, &b) in name.iter().enumerate() {
            words.buffer[i] = b.to_ascii_lowercase();
            let camel = b.is_ascii_uppercase()
                && (previous.is_ascii_lowercase()
                    || (previous.is_ascii_uppercase() && name.get(i + 1).is_some_and(u8::is_ascii_lowercase)));
            previous = b;
            if camel || !b.is_ascii_alphanumeric() {
                words.close_word(&mut start, i);
            }
            if b.is_ascii_alphanumeric() {
                start.get_or_insert(i);
            }
        }
        words.close_word(&mut start, name.len());
        words
    }

    fn close_word(&mut self, start: &mut Option<usize>, end: usize) {
        if let Some(begin) = start.take() {
            self.spans.rotate_right(1);
            self.spans[0] = (begin, end);
            self.count = 4.min(self.count + 1);
        }
    }

    /// Returns the word at position `back`, counted from the end, without trailing digits. Returns an empty word if
    /// there is none.
    fn word_from_end(&self, back: usize) -> &[u8] {
        if back >= self.count {
            return b"";
        }
        let (start, end) = self.spans[back];
        let word = &self.buffer[start..end];
        let digits = word.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        &word[..word.len() - digits]
    }
}

/// Returns the kind of secret that `name` suggests. The function reads only the end of the name, in linear time.
pub(super) fn judge_name(name: &[u8]) -> NamePromise {
    if name.len() < 2 {
        return NamePromise::None;
    }
    let words = NameSplitter::from_name(name);
    let first = find_roles(words.word_from_end(0));
    let (mut from_end, mut role) = (0, first);
    // In `API_KEY_PROD` and `TOKEN_2`, the important word comes before the last one.
    while from_end < 2
        && from_end + 1 < words.count
        && (words.word_from_end(from_end).is_empty() || role.has_role(WordRoles::TRAILER))
    {
        from_end += 1;
        role = find_roles(words.word_from_end(from_end));
    }
    let found = promise_at(&words, from_end, role);
    if found == NamePromise::None && from_end > 0 { promise_at(&words, 0, first) } else { found }
}

/// Returns the kind of secret that a word suggests. `from_end` is its position, counted from the end, and `role` has
/// its roles.
fn promise_at(words: &NameSplitter, from_end: usize, role: WordRoles) -> NamePromise {
    let (last, before) = (words.word_from_end(from_end), words.word_from_end(from_end + 1));
    let is_before = |wanted| find_roles(before).has_role(wanted);
    let promised = if role.has_role(WordRoles::HEADER) {
        NamePromise::Header
    } else if last == b"cookie" || last == b"cookies" {
        NamePromise::Cookie
    } else if role.has_role(WordRoles::PHRASE)
        && (last == b"mnemonic" || matches!(before, b"seed" | b"recovery" | b"backup" | b"mnemonic" | b"secret"))
    {
        NamePromise::Phrase
    } else if role.has_role(WordRoles::PASSWORD) || (before == b"pass" && matches!(last, b"word" | b"phrase")) {
        NamePromise::Password
    } else if role.has_role(WordRoles::TOKEN) || (matches!(last, b"key" | b"keys") && is_before(WordRoles::QUALIFIER)) {
        NamePromise::Token
    } else if last == b"auth" && matches!(before, b"redis" | b"rediscli" | b"valkey") {
        NamePromise::Password
    } else if (last == b"ident" && before == b"auth")
        // A `secret_id` is one half of a login to Vault.
        || (last == b"id" && before == b"secret")
        || (last == b"auth" && matches!(before, b"basic" | b"http" | b"proxy" | b"x" | b"npm"))
    {
        NamePromise::Token
    } else if role.has_role(WordRoles::WEAK) {
        NamePromise::Weak
    } else {
        judge_glued(last)
    };
    if promised != NamePromise::None && is_before(WordRoles::HARMLESS) {
        return if before == b"primary" && last == b"key" { NamePromise::Weak } else { NamePromise::None };
    }
    promised
}

/// Judges a name in which the words are joined: `dbpassword`, `MYAPPTOKEN`, `stripekey`.
fn judge_glued(last: &[u8]) -> NamePromise {
    if last.len() < 7 || last.len() > 32 {
        return NamePromise::None;
    }
    if ["password", "passwd", "passphrase"].iter().any(|end| last.ends_with(end.as_bytes())) {
        return NamePromise::Password;
    }
    if ["token", "secret", "apikey", "secretkey", "authkey", "accesskey", "privatekey"]
        .iter()
        .any(|end| last.ends_with(end.as_bytes()))
    {
        return NamePromise::Token;
    }
    if last.ends_with(b"key")
        && !matches!(
            last,
            b"publickey" | b"primarykey" | b"foreignkey" | b"turkey" | b"monkey" | b"whiskey" | b"hockey"
        )
    {
        return NamePromise::Weak;
    }
    NamePromise::None
}

/// Returns true for the name of a public or derived value. Such a value may look random without being secret.
pub(super) fn describes_public(name: &[u8]) -> bool {
    let words = NameSplitter::from_name(name);
    find_roles(words.word_from_end(0)).has_role(WordRoles::PUBLIC)
        || (words.word_from_end(0) == b"key" && matches!(words.word_from_end(1), b"public" | b"pub"))
        || words.word_from_end(1) == b"certificate"
}

/// Returns true when a field with this name has the value for a name in another field, as in `{"name": …, "value": …}`.
pub(super) fn is_carrier(name: &str) -> bool {
    find_whole_roles(name).has_role(WordRoles::CARRIER)
}

/// Returns true when a field with this name contains the name of another field's value.
pub(super) fn is_namer(name: &str) -> bool {
    find_whole_roles(name).has_role(WordRoles::NAMER)
}

/// Returns the roles of a whole name; none for a name of several words.
fn find_whole_roles(name: &str) -> WordRoles {
    let mut buffer = [0; 14];
    let Some(lower) = buffer.get_mut(..name.len()) else {
        return WordRoles::default();
    };
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    find_roles(lower)
}
