//! What a key or variable name says about the value beside it.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How much a name promises a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Promise {
    /// Nothing: an ordinary name.
    None,
    /// Something that may be secret (`key`, `session`): only a random-looking value counts.
    Weak,
    /// A token or key: values that are no words count.
    Token,
    /// A password: chosen by people, so word-like values with digits or marks count too.
    Password,
    /// `Authorization`, `X-…-Auth`: a scheme and a credential.
    Header,
    /// `Cookie`, `Set-Cookie`: `name=value` pairs.
    Cookie,
    /// A recovery phrase of plain words.
    Phrase,
}

/// Words that make the name a password's when they come last.
const PASSWORD_WORDS: &str = "\
    password passwd passwort pass pwd passphrase passcode pw pswd psw storepass keypass userpassword dbpassword \
    bindpw rootpw requirepass masterauth keypassword storepassword pgpassword psk authpass privpass bindpassword \
    rootpassword adminpassword dbpass userpass dbpwd sshpass contrasena senha motdepasse kennwort passin passout \
    clave pgpass mypass smtppass loginpassword masterpassword unlock";

/// Words that make the name a token's when they come last.
const TOKEN_WORDS: &str = "\
    secret secrets token tokens apikey apikeys credential credentials cred creds authtoken accesstoken \
    refreshtoken bearer jwt secretkey privatekey accesskey authkey masterkey encryptionkey signingkey sharedkey \
    accountkey sharedaccesskey clientsecret apisecret apitoken presharedkey pepper otpseed secretaccesskey \
    sharedsecret sdkkey licensekey deploykey appsecret appkey servicekey idtoken sessiontoken csrftoken bottoken \
    xoxb hmackey webhooksecret subscriptionkey consumersecret tokensecret hmacsecret storagekey authsecret \
    usertoken registrationtoken";

/// Words before a last `key` that make it a secret one.
const KEY_QUALIFIERS: &str = "\
    api access secret private auth account encryption encrypt signing sign master shared service storage \
    subscription license app application deploy sdk write ingest ingestion insert admin client crypto cipher aes \
    des hmac jwt symmetric webhook provisioning registration integration consumer connection function functions \
    server live user team project org bot root session cookie security decryption management query azure aws gcp \
    openai anthropic stripe datadog sendgrid twilio mailgun algolia pinecone groq mistral cohere fernet vault \
    unseal wireguard preshared agent join bootstrap install host password credential token sa ssh rsa ec pgp gpg \
    tls ssl mcp llm apikey fcm push bearer hash salt tsig rndc telemetry instrumentation rest feed nuget npm";

/// Words that alone promise little.
const WEAK_WORDS: &str = "\
    key keys auth session sessionid sid sig signature salt hmac license licence hook pat otp login pin seed \
    connsid jsessionid phpsessid authn oauth webhook sas dsn accountkeys";

/// Words that say which copy of a secret this is, and so are skipped at the end of a name.
const TRAILERS: &str = "\
    prod production dev development staging stage stg test testing live sandbox old new current previous prev \
    default value val b64 base64 plain plaintext raw string str literal data ci local qa uat eu us backup base \
    override env a b rw ro primary secondary main master app here is was be to";

/// Words before the last one that make it public or structural (`public_key`, `max_tokens`).
const HARMLESS_BEFORE: &str = "\
    public pub primary foreign partition sort cache max min num n total count used prompt completion input \
    output next page continuation cursor sync by no without use has is needs require requires missing invalid \
    expired bad wrong publishable bypass two first last multi single byte low high band over pad eos bos unk sep \
    cls mask special stop start end";

const HEADER_WORDS: &str = "\
    authorization authorisation";
const PHRASE_WORDS: &str = "\
    mnemonic phrase";

/// The lists a word is on, as bits.
#[derive(Debug, Clone, Copy, Default)]
struct Roles(u8);

impl Roles {
    const PASSWORD: u8 = 1;
    const TOKEN: u8 = 2;
    const QUALIFIER: u8 = 4;
    const WEAK: u8 = 8;
    const TRAILER: u8 = 16;
    const HARMLESS: u8 = 32;
    const HEADER: u8 = 64;
    const PHRASE: u8 = 128;

    const fn has(self, role: u8) -> bool {
        self.0 & role != 0
    }
}

/// One lookup per word instead of one search per list.
static ROLES: LazyLock<HashMap<&'static str, u8>> = LazyLock::new(|| {
    let lists = [
        (PASSWORD_WORDS, Roles::PASSWORD),
        (TOKEN_WORDS, Roles::TOKEN),
        (KEY_QUALIFIERS, Roles::QUALIFIER),
        (WEAK_WORDS, Roles::WEAK),
        (TRAILERS, Roles::TRAILER),
        (HARMLESS_BEFORE, Roles::HARMLESS),
        (HEADER_WORDS, Roles::HEADER),
        (PHRASE_WORDS, Roles::PHRASE),
    ];
    let mut roles = HashMap::with_capacity(512);
    for (words, role) in lists {
        for word in words.split_ascii_whitespace() {
            *roles.entry(word).or_insert(0) |= role;
        }
    }
    roles
});

fn roles(word: &str) -> Roles {
    if (2..=24).contains(&word.len()) { Roles(ROLES.get(word).copied().unwrap_or(0)) } else { Roles::default() }
}

/// Splits a name into lower-case words; remembers the last four.
struct Words {
    buffer: [u8; 96],
    /// `(start, end)` of the last words, newest first.
    spans: [(usize, usize); 4],
    count: usize,
}

impl Words {
    fn of(name: &[u8]) -> Self {
        let name = &name[name.len().saturating_sub(96)..];
        let mut words = Self { buffer: [0; 96], spans: [(0, 0); 4], count: 0 };
        let mut start = None;
        for (i, &b) in name.iter().enumerate() {
            words.buffer[i] = b.to_ascii_lowercase();
            if !b.is_ascii_alphanumeric() {
                words.close(&mut start, i);
                continue;
            }
            let previous = if i > 0 { name[i - 1] } else { b' ' };
            let next_is_lower = name.get(i + 1).is_some_and(u8::is_ascii_lowercase);
            let camel = b.is_ascii_uppercase()
                && (previous.is_ascii_lowercase() || (previous.is_ascii_uppercase() && next_is_lower));
            if camel {
                words.close(&mut start, i);
            }
            start.get_or_insert(i);
        }
        words.close(&mut start, name.len());
        words
    }

    fn close(&mut self, start: &mut Option<usize>, end: usize) {
        if let Some(begin) = start.take() {
            self.spans.rotate_right(1);
            self.spans[0] = (begin, end);
            self.count += 1;
        }
    }

    /// The word `back` places from the end, without trailing digits; empty if there is none.
    fn back(&self, back: usize) -> &str {
        if back >= self.count.min(4) {
            return "";
        }
        let (start, end) = self.spans[back];
        std::str::from_utf8(&self.buffer[start..end]).unwrap_or("").trim_end_matches(|c: char| c.is_ascii_digit())
    }
}

/// What `name` promises. Linear in the name; only its last 96 bytes count.
pub(super) fn promise(name: &[u8]) -> Promise {
    if name.len() < 3 {
        return Promise::None;
    }
    let words = Words::of(name);
    let mut at = 0;
    // `API_KEY_PROD`, `TOKEN_2`: the word that counts stands before its trailer.
    while at < 2
        && at + 1 < words.count.min(4)
        && (words.back(at).is_empty() || roles(words.back(at)).has(Roles::TRAILER))
    {
        at += 1;
    }
    let found = promise_at(&words, at);
    if found == Promise::None && at > 0 { promise_at(&words, 0) } else { found }
}

fn promise_at(words: &Words, at: usize) -> Promise {
    let (last, before) = (words.back(at), words.back(at + 1));
    let role = roles(last);
    let promised = if role.has(Roles::HEADER) {
        Promise::Header
    } else if last == "cookie" || last == "cookies" {
        Promise::Cookie
    } else if role.has(Roles::PHRASE)
        && (last == "mnemonic" || matches!(before, "seed" | "recovery" | "backup" | "mnemonic" | "secret"))
    {
        Promise::Phrase
    } else if role.has(Roles::PASSWORD) || (before == "pass" && matches!(last, "word" | "phrase")) {
        Promise::Password
    } else if role.has(Roles::TOKEN) || ((last == "key" || last == "keys") && roles(before).has(Roles::QUALIFIER)) {
        Promise::Token
    } else if last == "auth" && matches!(before, "redis" | "rediscli" | "valkey") {
        Promise::Password
    } else if last == "auth" && matches!(before, "basic" | "http" | "proxy" | "x" | "npm") {
        Promise::Token
    } else if role.has(Roles::WEAK) {
        Promise::Weak
    } else {
        glued(last)
    };
    if promised != Promise::None && roles(before).has(Roles::HARMLESS) {
        return if before == "primary" && last == "key" { Promise::Weak } else { Promise::None };
    }
    promised
}

/// Names written in one piece: `dbpassword`, `MYAPPTOKEN`, `stripekey`.
fn glued(last: &str) -> Promise {
    if last.len() < 7 || last.len() > 32 {
        return Promise::None;
    }
    if ["password", "passwd", "passphrase"].iter().any(|end| last.ends_with(end)) {
        return Promise::Password;
    }
    if ["token", "secret", "apikey", "secretkey", "authkey", "accesskey", "privatekey"]
        .iter()
        .any(|end| last.ends_with(end))
    {
        return Promise::Token;
    }
    if last.ends_with("key")
        && !matches!(last, "publickey" | "primarykey" | "foreignkey" | "turkey" | "monkey" | "whiskey" | "hockey")
    {
        return Promise::Weak;
    }
    Promise::None
}

/// Names of public or derived values, for which a random-looking value is no secret.
pub(super) fn describes_public(name: &[u8]) -> bool {
    #[rustfmt::skip]
    const PUBLIC: &[&str] = &[
        "digest", "checksum", "integrity", "hash", "etag", "fingerprint", "sha", "sum", "commit", "rev", "revision",
        "oid", "cert", "certificate", "ca", "crt", "pem", "thumbprint", "pubkey", "publickey", "x", "y", "modulus",
        "image", "icon", "logo", "font", "src", "href", "url", "uri", "path", "file", "filename", "id", "cid",
        "version", "ref", "recipient", "body", "content", "signature", "pin",
    ];
    let words = Words::of(name);
    PUBLIC.contains(&words.back(0))
        || (words.back(0) == "key" && matches!(words.back(1), "public" | "pub"))
        || words.back(1) == "certificate"
}

/// Whether the name only holds a value for a name given elsewhere (`{"name": …, "value": …}`).
pub(super) fn is_carrier(name: &str) -> bool {
    is_one_of(
        name,
        &[
            "value",
            "val",
            "data",
            "default",
            "content",
            "string",
            "text",
            "v",
            "raw",
            "stringvalue",
            "plaintext",
            "plain",
        ],
    )
}

/// Whether the name announces the name of the value that follows.
pub(super) fn is_namer(name: &str) -> bool {
    is_one_of(
        name,
        &["name", "key", "variable", "var", "parameter", "param", "header", "field", "label", "parametername", "env"],
    )
}

fn is_one_of(name: &str, list: &[&str]) -> bool {
    list.iter().any(|word| name.eq_ignore_ascii_case(word))
}
