//! Records the results of each judgement for many values and of the judgement of many names. The results show the
//! guard's own limits (see the module `near`).

use std::fmt::Write as _;

use super::near::{KINDS, TEXTS, compare, mixtures, row};
use super::{HEX, LETTERS, Maker};
use crate::classify::{
    case_changes, count_distinct, digit_changes, is_env_name, is_odd_word, is_passwordish, is_placeholder, is_random,
    is_reference, is_spaced_code, is_uuid, is_version_or_number, is_wordlike, wordy_share,
};
use crate::command::{ends_command, is_flag_value, is_oracle_login, is_random_argument, is_strong, strip_quotes};
use crate::header::{cookie_credential, header_credential, scheme_credential};
use crate::names::{NamePromise, describes_public, is_carrier, is_namer, judge_name};
use crate::prose::is_term;
use crate::random::{has_prefixed_token, is_bare_random, is_long_random};
use crate::structure::{TokenContent, base64_tokens, decode_base64, has_encoded_start};
use crate::verdict::{decoded_pair, has_brackets, is_basic_pair, is_noise, is_public_token, is_secret, is_token_like};

/// A function that judges a value, with its name in the file.
type Judgement = (&'static str, fn(&str) -> char);

const fn yes(is: bool) -> char {
    if is { 'y' } else { '.' }
}

/// Writes a small number as one letter.
fn small(number: usize) -> char {
    LETTERS.chars().nth(number).unwrap_or('+')
}

const fn promised(promise: NamePromise) -> char {
    match promise {
        NamePromise::None => '.',
        NamePromise::Weak => 'w',
        NamePromise::Token => 't',
        NamePromise::Password => 'p',
        NamePromise::Header => 'h',
        NamePromise::Cookie => 'c',
        NamePromise::Phrase => 'r',
    }
}

/// The judgements that depend on the mix of characters in a value.
const OF_MIXTURES: &[Judgement] = &[
    ("random, 10", |value| yes(is_random(value, 10))),
    ("passwordish", |value| yes(is_passwordish(value))),
    ("token-like", |value| yes(is_token_like(value))),
    ("noise", |value| yes(is_noise(value.as_bytes()))),
    ("bare", |value| yes(is_bare_random(value))),
    ("long", |value| yes(is_long_random(value))),
    ("prefixed", |value| yes(has_prefixed_token(&format!("acme_{value}")))),
    ("share", |value| small(wordy_share(value.as_bytes()) / 2)),
    ("strong", |value| yes(is_strong(value))),
];

const OF_VALUES: &[Judgement] = &[
    ("random, 16", |value| yes(is_random(value, 16))),
    ("odd word", |value| yes(is_odd_word(value))),
    ("spaced code", |value| yes(is_spaced_code(value))),
    ("version", |value| yes(is_version_or_number(value.as_bytes()))),
    ("environment", |value| yes(!value.is_empty() && is_env_name(value.as_bytes()))),
    ("uuid", |value| yes(is_uuid(value.as_bytes()))),
    ("word", |value| yes(is_wordlike(value.as_bytes()))),
    ("reference", |value| yes(is_reference(value))),
    ("placeholder", |value| yes(is_placeholder(value))),
    ("digits", |value| small(digit_changes(value.as_bytes()))),
    ("cases", |value| small(case_changes(value.as_bytes()))),
    ("distinct", |value| small(count_distinct(value.as_bytes(), 20))),
    ("flag's", |value| yes(is_flag_value(value))),
    ("argument", |value| yes(is_random_argument(value, 12))),
    ("oracle", |value| yes(is_oracle_login(value))),
    ("bare word", |value| small(strip_quotes(value).len())),
    ("ends", |value| yes(ends_command(value))),
    ("header", |value| yes(header_credential(value))),
    ("scheme", |value| yes(scheme_credential(value))),
    ("cookie", |value| yes(cookie_credential(value))),
    ("term", |value| yes(is_term(value))),
    ("encoded", |value| yes(matches!(decode_base64(value), TokenContent::Text(_)))),
    ("encoded start", |value| yes(has_encoded_start(value))),
    ("base64", |value| small(base64_tokens(value, 8).map(str::len).sum())),
    ("pair in base64", |value| yes(decoded_pair(value))),
    ("pair", |value| yes(is_basic_pair(value))),
    ("public", |value| yes(is_public_token(value))),
    ("brackets", |value| yes(has_brackets(value))),
    ("password", |value| yes(is_secret(NamePromise::Password, value, false))),
    ("password, shouted", |value| yes(is_secret(NamePromise::Password, value, true))),
    ("token", |value| yes(is_secret(NamePromise::Token, value, false))),
    ("weak", |value| yes(is_secret(NamePromise::Weak, value, false))),
    ("promise", |value| promised(judge_name(value.as_bytes()))),
];

/// Returns values near the limits. Texts that look like passwords are made from parts.
fn values() -> Vec<String> {
    let mut make = Maker(42);
    let plain = "\
        $DB|$1|$env:NAME|$obj.field|$obj->field|$$|$|$9lives|$a(b)|$a:b c|${X}|%NAME%|%a|%%|/etc/x|/etc/passwd2/qzxkwj|\
        ~/x/y|./a|../b|@/c|@scope/pkg.name|\\\\srv\\share|.env|.qzxkwjvbnm12345678|*anchor-name|&ref_name|*qzxk|<name>|\
        <qzxkw|(a|[x]|{a:1}|(qzxkwjvbqzxkwjvbqzxkwjvbqzxkwjvbq|getToken()|a::b(c)|x[0]|abcd(qz)|abcde(qzxk|foo.bar(|\
        https://a.b|ht tp://x|+://|C:\\x|c:/y|1:/z|user->name|q->z|changeme|xxxx|your-token-here|MYTOKEN1|API-KEY|\
        API-KEY123|KEYS|<name>abc|a<b c>d|a<>b|....|aaaab|12121212|abcabc1|1.2.3-beta|v2|10.0.0.1:80|300s|2026-03-15|\
        1:4.13+dfsg1-1+deb12u1|v2.0.0-rc.1|12345678901|123456789012ab|12345.6x|1.ax|1_000_000|DB_PASSWORD|A_1|A_11|_A|\
        Db_A|AB_12345|A_B_C_1|user.password|config.db.pass|a.b2c3.d|a..b|_x.y|a.qzxkwj|abc.def123|web-v2|api_2|abc!defg|\
        !!!!aaaa|12#45|1234#|qzxkwjvb|qzxkwjv|qzxkwjvbnmqz|QZXKWJVBNMQZ|abcd efgh ijkl mnop|qzxk wjvb qzxk wjvb|\
        qzxk wjvb qzx wjvb|qzxk wjvb nmqz|AES-256-GCM|sha256-hashed|16-bytes|p95|pq95|UUIDv4|RFC2617|RFD2617|ISO8859|\
        90days|90qzxkw|SHA1|qzxkw|abcde|a/b.c|foo/bar/baz.json|qz/xk/wj|-abc1|abc1:|ABC-DEF|\"abc12\"|`abc12`.|(abc12).|\
        \\abc12;|,|sample|| |||&&|x;|then|\u{2026}|größe12|user@host|scott/tiger@db|/tiger@db|a/b/c9x!@d|sha256:abc|\
        h1:abcdef|pk_abcdef|Qm|age1abc|Bearer abc|Basic x|token: y|Digest a=\"b\"|sid=1; a=b|sid|session_id|a=b=c|\
        eyJhbGciOi|LS0tLS1CRUdJTiB|\\neyJhbGciOi|xeyJhbGciOi|123456|1234567|111111|112233|abc123def456|ab12cd34ef56|\
        abcdef123456|abc-def-12345|a1b2c3d4e5|a1b2c3|HTTPServer|HTTPServerXMLParser|iPhone|aBcDeFgHiJkLmNoP|\
        MapleCopperWindow|maple_copper_7|maple-copper-77x|maple.copper.window";
    let mut all: Vec<String> = plain.split('|').map(str::to_owned).collect();
    for _ in 0..4 {
        let (word, drawn) = (make.text(5, "bcdfghjklmnp"), make.text(18, LETTERS));
        all.extend([
            make.password(),
            ["maple", "7"].concat(),
            ["Winter", "2024", "!"].concat(),
            ["s3cr3t", "-t0k3n"].concat(),
            format!("word_{drawn}"),
            format!("app:{}", make.password()),
            format!("a.b-c+d@e:{word}7!"),
            format!("a b:{word}7!"),
            format!("app://{word}7!"),
            format!(":{word}7!"),
            ["YXBwOnJpdmVyIz", "cyOQ=="].concat(),
            format!("Bearer {drawn}"),
            format!("Basic {}", ["YXBwOnJpdmVyIz", "cyOQ"].concat()),
            format!("geniekey: {drawn}"),
            format!("Custom {drawn}"),
            format!("{drawn} x"),
            format!("Key id=\"{drawn}{word}\""),
            format!("token={drawn}"),
            format!("sid={drawn}; a=b"),
            format!("sid={}", make.uuid()),
            format!("theme={}", make.uuid()),
            format!("theme=\"{drawn}\""),
            make.uuid(),
            ["12345678", "-1234-1234-1234-", "123412341234"].concat(),
            make.text(20, HEX),
            make.text(12, "0123456789"),
            format!("{drawn}/{word}"),
            format!("{word}={drawn}"),
            format!("abc={drawn}"),
            format!("{drawn}="),
            format!("{drawn}@x"),
            format!("{drawn}("),
            format!("{}{}", make.text(24, LETTERS), "!@#$%^&*"),
            format!("{}...", make.text(24, LETTERS)),
            format!("base64:{}", make.text(32, LETTERS)),
            format!("/{}", make.text(40, LETTERS)),
            format!("ssm:{drawn}"),
            make.text(40, LETTERS),
            make.text(40, "ABCDEFabcdef0123456789Gg"),
        ]);
    }
    all
}

/// The number of values whose results are in one line of the file.
const TOGETHER: usize = 10;

/// Returns the value, and its copies with one character changed.
fn changed(value: &str) -> Vec<String> {
    let places: Vec<(usize, usize)> = value.char_indices().map(|(start, c)| (start, start + c.len_utf8())).collect();
    let instead = ["", "7", "e", "X", "-", " ", "/", "=", ".", ":", "$", "<", "("];
    let with = |place: &(usize, usize), new: &str| [&value[..place.0], new, &value[place.1..]].concat();
    let mut all = vec![value.to_owned()];
    all.extend(instead.iter().flat_map(|new| places.iter().map(|place| with(place, new))));
    all.extend(["7", "e", "-", "=", ":", "("].map(|end| format!("{value}{end}")));
    all
}

#[test]
fn each_judgement_stands() {
    let mut lines = String::new();
    let mut make = Maker(43);
    for (kind, alphabet) in KINDS {
        let value = make.text(128, alphabet);
        for (name, judge) in OF_VALUES.iter().chain(OF_MIXTURES) {
            let said = row((1..=128).map(|end| judge(&value[..end])));
            writeln!(lines, "{name}, of {kind}: {said}").unwrap();
        }
    }
    for (kind, value) in TEXTS {
        let ends: Vec<usize> = value.char_indices().map(|(i, _)| i).skip(1).collect();
        for (name, judge) in OF_VALUES.iter().chain(OF_MIXTURES) {
            writeln!(lines, "{name}, of {kind}: {}", row(ends.iter().map(|end| judge(&value[..*end])))).unwrap();
        }
    }
    for (kind, values) in mixtures() {
        for (name, judge) in OF_MIXTURES {
            writeln!(lines, "{name}, of {kind}: {}", row(values.iter().map(|value| judge(value)))).unwrap();
        }
    }
    for (index, some) in values().chunks(TOGETHER).enumerate() {
        let all: Vec<String> = some.iter().flat_map(|value| changed(value)).collect();
        for (name, judge) in OF_VALUES.iter().chain(OF_MIXTURES) {
            let said = row(all.iter().map(|value| judge(value)));
            writeln!(lines, "{name}, of values from {}: {said}", index * TOGETHER).unwrap();
        }
    }
    compare("judged.txt", &lines);
}

/// Records the results for tokens of chat bots, which have three parts with points between them.
#[test]
fn dotted_tokens_are_judged_as_they_were() {
    let mut lines = String::new();
    for alphabet in [LETTERS, "ABCDEFabcdef0", "abcdefghijklmnopqrstuvwxyz0123456789", "ABcdefghijklmnopqrs01"] {
        for user in 21..=29 {
            for time in 5..=8 {
                let mut make = Maker(44);
                let (user, time) = (make.text(user, alphabet), make.text(time, alphabet));
                let said =
                    row((24..=44)
                        .map(|mac| yes(is_long_random(&format!("M{user}.{time}.{}", make.text(mac, alphabet))))));
                writeln!(lines, "{} and {}: {said}", user.len(), time.len()).unwrap();
            }
        }
    }
    compare("dotted.txt", &lines);
}

/// A function that combines a name with another word, and its name in the file.
type Shape<'a> = (&'static str, &'a dyn Fn(&str) -> String);

#[test]
fn names_promise_what_they_did() {
    let words = "\
        password passwd pass pwd word phrase passphrase secret secrets token tokens apikey credential key keys api access \
        private auth session sid hook pin seed prod dev old value b test public primary max sync bypass next digest sha \
        commit cert path id body content name variable header authorization cookie cookies mnemonic recovery backup ident \
        redis basic http proxy x npm certificate pub dbpassword apptoken stripekey publickey primarykey turkey monkey \
        mypasswd userpassphrase ownsecretkey abcdkey maple copper 2 10";
    let words: Vec<&str> = words.split_ascii_whitespace().collect();
    let mut lines = String::new();
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    for first in &words {
        let shapes: [Shape<'_>; 6] = [
            ("alone", &|_| (*first).to_owned()),
            ("with", &|other| format!("{first}_{other}")),
            ("in camels with", &|other| format!("{first}{}", capital(other))),
            ("in capitals with", &|other| format!("{}-{}2", first.to_uppercase(), other.to_uppercase())),
            ("after two with", &|other| format!("my_{other}_{first}_prod")),
            ("after capitals with", &|other| format!("HTTP{}{}", capital(first), capital(other))),
        ];
        for (shape, name) in shapes {
            let others = if shape == "alone" { &words[..1] } else { &words[..] };
            let said = row(others.iter().map(|other| promised(judge_name(name(other).as_bytes()))));
            writeln!(lines, "{first} {shape} each: {said}").unwrap();
            let is_public = row(others.iter().map(|other| yes(describes_public(name(other).as_bytes()))));
            writeln!(lines, "{first} {shape} each, public: {is_public}").unwrap();
        }
        writeln!(lines, "{first}: {}{}", yes(is_carrier(first)), yes(is_namer(&capital(first)))).unwrap();
    }
    for length in 20..=40 {
        let name = |end: &str| format!("{}{end}", "m".repeat(length - end.len()));
        let said = row(["password", "token", "key", "x"].iter().map(|end| promised(judge_name(name(end).as_bytes()))));
        writeln!(lines, "{length} in one piece: {said}").unwrap();
    }
    for length in 60..=70 {
        let name = format!("{}_password_{}", "m".repeat(length - 14), "test");
        writeln!(lines, "{length}: {}", promised(judge_name(name.as_bytes()))).unwrap();
    }
    compare("names.txt", &lines);
}
