//! Tests the guard. Every credential is made at run time, so that no scanner finds one in the source.

mod commands;
mod judged;
mod near;
mod public;

use super::classify::CharMix;
use super::formats::{FORMATS, FormatBody};
use super::{Finding, SecretGuard};
use serde_json::{Value, json};
use std::cell::RefCell;

const GUARD: SecretGuard = SecretGuard::new();
pub(super) const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(super) const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHJKLMNPQRSTUVWXYZ234567";

/// A small random generator of texts. The same seed gives the same texts.
pub(super) struct Maker(pub u64);

impl Maker {
    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0)
    }

    pub(super) fn text(&mut self, length: usize, alphabet: &str) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..length).map(|_| letters[self.next() % letters.len()]).collect()
    }

    /// Returns the characters of all parts in random order.
    fn shuffled(&mut self, parts: &[&str]) -> String {
        let mut letters: Vec<char> = parts.concat().chars().collect();
        for i in (1..letters.len()).rev() {
            letters.swap(i, self.next() % (i + 1));
        }
        letters.into_iter().collect()
    }

    fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12].map(|length| self.text(length, HEX)).join("-")
    }

    /// Makes a password with letters of both cases, digits and punctuation, such as `Xk3…`.
    pub(super) fn password(&mut self) -> String {
        format!("{}7{}!{}", self.text(6, LETTERS), self.text(4, HEX), self.text(4, LETTERS))
    }
}

thread_local! {
    /// The texts that the tests of this thread have passed to the guard.
    static TOLD: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn rule(text: &str) -> Option<&'static str> {
    TOLD.with_borrow_mut(|told| told.push(text.to_owned()));
    GUARD.check(None, text)
}

/// Runs the tests, and returns the texts that they passed to the guard.
fn told(tests: &[fn()]) -> Vec<String> {
    TOLD.take();
    for test in tests {
        test();
    }
    TOLD.take()
}

/// The tests whose texts are also checked with small changes, in the module `near`.
const CASES: &[fn()] = &[
    marked_formats_are_caught,
    web_tokens_are_not_dotted_names,
    private_keys_need_a_body,
    credentials_in_commands_are_caught,
    an_independent_red_teams_misses_are_caught,
    an_independent_red_teams_false_alarms_pass,
    references_placeholders_and_plain_text_pass,
    public_material_passes,
];

#[track_caller]
pub(super) fn refused(text: &str) {
    assert!(rule(text).is_some(), "passed: {text}");
}

#[track_caller]
pub(super) fn clean(text: &str) {
    assert_eq!(rule(text), None, "refused: {text}");
}

#[test]
fn every_prefixed_format_is_caught_in_every_setting() {
    let mut make = Maker(1);
    for (rule, body, shortest, prefixes) in FORMATS {
        for prefix in prefixes.split_ascii_whitespace() {
            let tail = match body {
                FormatBody::Special => continue,
                FormatBody::Uuid => make.uuid(),
                FormatBody::Hex => make.text(*shortest, HEX),
                FormatBody::ExactUpper => make.text(*shortest, UPPER),
                _ => make.text(shortest + 4, LETTERS),
            };
            let token = format!("{prefix}{tail}");
            for text in [
                token.clone(),
                format!("export X={token}"),
                format!("curl -H \"X: {token}\" https://example.com"),
                format!("{{\"a\":\"{token}\"}}"),
            ] {
                assert!(super::formats::find_format(&text).is_some(), "{rule} passed: {text}");
            }
        }
    }
}

#[test]
fn marked_formats_are_caught() {
    let mut make = Maker(2);
    let digits = "0123456789";
    for token in [
        format!("s.{}", make.text(24, LETTERS)),
        format!("{}7Q~{}", make.text(3, LETTERS), make.text(34, LETTERS)),
        format!("{}.atlasv1.{}", make.text(14, LETTERS), make.text(67, LETTERS)),
        format!("{}:AA{}", make.text(10, digits), make.text(33, LETTERS)),
        format!("{}_{}_mmk", make.text(6, LETTERS), make.text(29, LETTERS)),
        format!("{}:fx", make.uuid()),
        format!("pk_{}_{}", make.text(8, digits), make.text(32, UPPER)),
        format!("{}|{}", make.text(15, digits), make.text(27, LETTERS)),
        format!("00D{}!{}", make.text(12, LETTERS), make.text(96, LETTERS)),
        format!("M{}.{}.{}", make.text(25, LETTERS), make.text(6, LETTERS), make.text(38, LETTERS)),
    ] {
        refused(&token);
        refused(&format!("tool login --token {token}"));
    }
}

#[test]
fn hex_runs_follow_the_contract() {
    let mut make = Maker(3);
    for length in 30..=70 {
        let run = make.text(length, HEX);
        for run in [run.clone(), run.to_uppercase()] {
            let expected = (32..=64).contains(&length).then_some("hex-32-64");
            assert_eq!(rule(&run), expected, "{run}");
            for text in [format!("deploy --build {run}"), format!("x_{run}_y"), format!("id=0x{run}.")] {
                assert_eq!(rule(&text), expected, "{text}");
            }
            for label in ["md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake3"] {
                clean(&format!("image@{label}:{run}"));
                clean(&format!("{label}-{run}"));
            }
        }
    }
    clean(&format!("az account set --subscription {}", make.uuid()));
}

#[test]
fn web_tokens_are_not_dotted_names() {
    let mut make = Maker(4);
    let token = format!("eyJ{}.eyJ{}.{}", make.text(20, LETTERS), make.text(40, LETTERS), make.text(43, LETTERS));
    assert_eq!(rule(&token), Some("jwt"));
    assert_eq!(rule(&format!("a\\n{token}")), Some("jwt"));
    for name in ["org.spring.boot", "eyJ.eyJ.x", "a.eyJhbGciOiJI", "io.jsonwebtoken:jjwt-impl:0.12.6"] {
        clean(name);
    }
}

#[test]
fn private_keys_need_a_body() {
    let mut make = Maker(5);
    let armour = |kind: &str, body: &str| ["-----BEGIN ", kind, "-----", body, "-----END ", kind, "-----"].concat();
    for kind in ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        let body = format!("\n{}\n{}\n", make.text(64, LETTERS), make.text(40, LETTERS));
        assert_eq!(rule(&armour(kind, &body)), Some("private-key"));
        assert_eq!(rule(&armour(kind, &body.replace('\n', "\\n"))), Some("private-key"));
        clean(&armour(kind, "\n...\n"));
        clean(&armour(kind, ""));
    }
    clean(&armour("CERTIFICATE", &format!("\n{}\n", make.text(64, LETTERS))));
    clean("grep -rn 'BEGIN RSA PRIVATE KEY' .");
}

#[test]
fn credentials_in_commands_are_caught() {
    let mut make = Maker(6);
    for _ in 0..20 {
        let (pass, token) = (make.password(), make.text(36, LETTERS));
        for text in [
            format!("postgres://app:{}@db.internal:5432/app", make.text(14, LETTERS)),
            format!("git clone https://{token}@github.com/acme/x.git"),
            format!("curl -H 'Authorization: Bearer {token}' https://example.com"),
            format!("curl -H 'X-API-Key: {token}' https://example.com"),
            format!("curl -u 'app:{pass}' https://example.com"),
            format!("mysql -uapp -p'{pass}' -h localhost"),
            format!("docker login -u app -p {pass} ghcr.io"),
            format!("az storage blob list --account-key {token}"),
            format!("keytool -list -storepass {pass}"),
            format!("aws configure set aws_secret_access_key {token}"),
            format!("npm config set //registry.npmjs.org/:_authToken {token}"),
            format!("echo {token} | gh auth login --with-token"),
            format!("DB_PASSWORD={pass} make"),
            format!("$env:API_TOKEN = '{token}'"),
            format!("password: {pass}"),
            format!("the db password is {pass}"),
            format!("env:\n  - name: API_TOKEN\n    value: {token}"),
            format!("<password>{pass}</password>"),
            format!("<add key=\"ApiKey\" value=\"{token}\" />"),
            format!("RAILWAY_TOKEN={} railway up", make.uuid()),
            format!("machine example.com login app password {pass}"),
            format!("https://example.com/v1?access_token={token}"),
        ] {
            refused(&text);
        }
    }
}

#[test]
fn an_independent_red_teams_misses_are_caught() {
    let mut make = Maker(10);
    for _ in 0..20 {
        let (pass, token, short) = (make.password(), make.text(36, LETTERS), make.text(16, LETTERS) + "7x");
        let pair = ["YXBwOnJpdmVyIz", "cyOQ=="].concat();
        for text in [
            format!("jdbc:oracle:thin:app/{pass}@//db:1521/XE"),
            format!("sqlplus app/{pass}@//db:1521/XE"),
            format!("poetry config http-basic.acme app {pass}"),
            format!("bundle config gems.example.com app:{pass}"),
            format!("mc alias set local http://localhost:9000 app {token}"),
            format!("lftp -u app,{pass} sftp://db"),
            format!("racadm -r db -u root -p {pass} getsysinfo"),
            format!("wpa_passphrase acme {pass}"),
            format!("redis-cli AUTH {pass}"),
            format!("codecov -t {}", make.uuid()),
            format!("echo {token} | wrangler secret put API_KEY"),
            format!("credentials: app / {pass}"),
            format!("staging login: app/{pass}"),
            format!("pw: {pass}"),
            format!("The API key is {token}"),
            format!("api_key: str = \"{token}\""),
            format!("auth=(\"app\", \"{pass}\")"),
            format!("set -x API_TOKEN {short}=a{short}"),
            format!("SMTP_PASSWORD={} {} qzvx kwjp", make.text(4, "bcdfgh"), make.text(4, "jklmnp")),
            format!("https://maps.example.com/js?key={}9a1", make.text(11, LETTERS)),
            format!("https://mm.example.com/hooks/{}", make.text(26, HEX)),
            format!("jdbc:mysql://db/app?user=app&password=Granite-tiger-{}", make.text(2, "23456789")),
            format!("_auth={pair}"),
            format!("npmAuthIdent: \"{pair}\""),
            format!("APP_TOKEN={}|{}", make.text(2, "123456789"), make.text(40, LETTERS)),
            format!("aws s3 ls s3://bucket/{}/logs", ["AKIA", &make.text(16, UPPER)].concat()),
        ] {
            refused(&text);
        }
        let auths = json!({"auths": {"ghcr.io": {"auth": pair}}});
        assert!(GUARD.check_json("value", &auths).is_some());
        let parameters = json!([{"ParameterKey": "DBPassword", "ParameterValue": pass}]);
        assert!(GUARD.check_json("value", &parameters).is_some());
    }
}

#[test]
fn an_independent_red_teams_false_alarms_pass() {
    let mut make = Maker(11);
    let digest = make.text(64, HEX);
    for text in [
        "export DB_PASSWORD=\"${REDIS_PASSWORD:?missing}\"",
        "$env:REDIS_PASSWORD = (Get-Secret redis)",
        "$env:DB_PASSWORD = Get-Content .\\db.txt; npm test",
        "Authorization: Bearer xxxxx.yyyyy.zzzzz",
        "gpg --recv-keys 959A4191C57E6928",
        "S3_KEY=backups/proxy/2026-05-01.tar.gz",
        "openssl pkcs12 -export -passout pass:$PASSPHRASE",
        "openssl pkcs12 -export -passout pass:sample",
        "one of \"trust\", \"md5\", \"password\", \"scram-sha-256\", \"cert\"",
        "github.com/acme/token v1.2.2/go.mod",
        "docker run -u 1000:1000 -p 8080:80 acme/web:dev",
        "mysql -u root -p app",
        "ssh -p 2222 deploy@example.com",
        "token: ListObjectsV2Output",
    ] {
        clean(text);
    }
    clean(&format!("docker pull ghcr.io/acme/password:1.20@sha256:{digest}"));
    // In this digest, `u+` is part of the base64. A token begins with `u+` only before exactly 18 characters.
    clean(&format!("sha512-u+{}==", make.text(84, LETTERS)));
}

#[test]
fn references_placeholders_and_plain_text_pass() {
    for text in [
        "DB_PASSWORD=$DB_PASSWORD make",
        "DB_PASSWORD=${DB_PASSWORD:-}",
        "PGPASSWORD=\"$(pass show db)\" psql",
        "token: <your token>",
        "password: vault:secret/data/db#password",
        "SSL_KEY_FILE=/etc/ssl/private/localhost-key.pem",
        "api_key = os.environ[\"API_KEY\"]",
        "password = var.db_password",
        "DB_PASSWORD=changeme",
        "DB_PASSWORD=********",
        "docker login --username app --password-stdin",
        "curl -H \"Authorization: Bearer $TOKEN\" https://example.com",
        "postgres://app:${PGPASSWORD}@localhost/app",
        "postgres://user:password@localhost/app",
        "postgresql://app@db.internal:5432/app",
        "token_ttl_s: 1096, max_tokens: 4096",
        "cargo test -p search router_secret::tests::key_is_rejected",
        "pip install token-x==1.2",
        "AKIA[0-9A-Z]{16}",
        "secrets are mounted at /run/secrets, not in the environment",
        "getOrganizationMembershipAccessTokenExpirationDate",
        "echo U0VMRUNUIGNvdW50KCopIEZST00gdXNlcnM7 | base64 -d",
        "kubectl create token ci-deployer --duration=1h",
        "ninja -C out/Release chrome/browser/password_manager:unit_tests",
    ] {
        clean(text);
    }
}

#[test]
fn public_material_passes() {
    let mut make = Maker(7);
    let digest = format!("{}=", make.text(43, LETTERS));
    for text in [
        format!("github.com/acme/lib v1.2.3 h1:{digest}"),
        format!("integrity=\"sha384-{}\"", make.text(64, LETTERS)),
        format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} dev@laptop", make.text(43, LETTERS)),
        format!("PublicKey = {digest}"),
        format!("SHA256:{}", make.text(43, LETTERS)),
    ] {
        clean(&text);
    }
    assert_eq!(GUARD.check(Some("checksum"), &make.text(44, LETTERS)), None);
    assert_eq!(GUARD.check(None, &make.text(44, LETTERS)), Some("random-string"));
}

#[test]
fn json_findings_carry_a_path_and_never_the_match() {
    let mut make = Maker(8);
    let token = ["ghp", "_", make.text(36, LETTERS).as_str()].concat();
    let finding = |value: &Value| GUARD.check_json("value.data", value);
    let finding_at = |path: &str| Some(Finding { rule: "github-token", path: path.to_owned() });
    assert_eq!(finding(&json!({"auth": {"x": token}})), finding_at("value.data.auth.x"));
    assert_eq!(finding(&json!([1, null, true, token])), finding_at("value.data[3]"));
    assert_eq!(finding(&json!({"a": {&token: 1}})), finding_at("value.data.a.(key)"));
    assert_eq!(finding(&json!({"a": json!({"b": token}).to_string()})).map(|f| f.rule), Some("github-token"));
    let odd = format!("\u{1b}]{}", "k".repeat(200));
    let path = finding(&json!({odd: token})).map(|f| f.path).unwrap_or_default();
    assert!(path.len() < 100 && path.chars().all(|c| !c.is_control()), "{path}");
}

#[test]
fn json_names_reach_their_values() {
    let mut make = Maker(9);
    let (pass, id) = (make.password(), make.uuid());
    for value in [
        json!({"password": pass}),
        json!({"name": "API_TOKEN", "value": id}),
        json!({"auth": {"token": {"value": id}}}),
        json!({"args": ["--password", pass]}),
        json!({"kty": "EC", "d": make.text(43, LETTERS)}),
    ] {
        assert!(GUARD.check_json("value", &value).is_some(), "{value}");
    }
    for value in [
        json!({"passwordEnv": "DB_PASSWORD", "id": id}),
        json!({"auth": {"mode": "mtls"}, "token_ttl_s": 1096}),
        json!({"credsStore": "osxkeychain", "auths": {"ghcr.io": {}}}),
    ] {
        assert_eq!(GUARD.check_json("value", &value), None, "{value}");
    }
}

/// Scans the text of each rule, repeated to 64 KiB, both whole and cut. The guard must still give the right answer.
#[test]
fn repeated_rule_texts_are_scanned_in_full() {
    let mut texts: Vec<String> =
        FORMATS.iter().filter_map(|(_, _, _, list)| list.split_ascii_whitespace().next()).map(str::to_owned).collect();
    texts.extend(
        [
            "docker -u a:b ",
            "docker login -p ",
            "token=",
            "password: ",
            "://",
            "://a:",
            "eyJ.",
            ".eyJ",
            "-----BEGIN PRIVATE KEY-----",
            "Authorization: ",
            "Cookie: a=b; ",
            "<password>",
            "{\"a\":",
            "[",
            "echo x | ",
            "name: X\nvalue: y\n",
            "\u{20ac}",
            "\\n",
            "a:1234: ",
            "machine a.b login x password ",
            "the password for it is ",
            "with password a1 ",
            "ansible-vault encrypt_string ",
            "git checkout ",
            "github:a/b/",
            "a/b@",
            &"0123456789abcdef@".repeat(4),
            &format!("git show {} ", "0123456789abcdef01234567".repeat(2).split_at(40).0),
        ]
        .map(str::to_owned),
    );
    for unit in texts {
        let text = unit.repeat(65_536 / unit.len());
        let found =
            GUARD.check_json("value", &Value::String(format!("{text} {}", ["AKIA", "QX7ZK2VW9LT4NR8B"].concat())));
        assert!(found.is_some(), "{unit}");
    }
}
