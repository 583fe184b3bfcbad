//! Tests the rules for commands, assignments, URLs and shapes. Each rule gets texts that it must refuse, and similar
//! texts that must pass.

use super::*;
use crate::tests::{clean, refused};

/// The tests whose texts are also checked with small changes, in the module `near`.
pub(super) const CASES: &[fn()] = &[
    options_of_commands_are_caught,
    arguments_without_an_option_are_caught,
    what_is_piped_or_kept_is_caught,
    assignments_in_every_notation_are_caught,
    urls_of_every_form_are_caught,
    what_only_resembles_them_passes,
];

#[test]
fn options_of_commands_are_caught() {
    let mut make = Maker(30);
    let (pass, token) = (make.password(), make.text(24, LETTERS));
    for text in [
        format!("curl -u app:{pass} https://example.com"),
        format!("wget --user app --password {pass} https://example.com"),
        format!("http -a app:{pass} example.com/x"),
        format!("curl -U app:{pass} -x proxy https://example.com"),
        format!("curl --proxy-user app:{pass} https://example.com"),
        format!("curl -u {token}: https://example.com"),
        format!("etcdctl --user root:{pass} get x"),
        format!("7z x -p{pass} a.7z"),
        format!("sshpass -p {pass} ssh app@example.com"),
        format!("sudo -u app sshpass -p '{pass}' ssh app@example.com"),
        format!("FOO=1 /usr/bin/mysql -p{pass} app"),
        format!("mongosh -u app -p {pass}"),
        format!("helm registry login ghcr.io -u app -p {pass}"),
        format!("oc login https://example.com -u app -p {pass}"),
        format!("redis-cli -a {pass} ping"),
        format!("sqlcmd -S db -U app -P {pass}"),
        format!("ldapsearch -D cn=app -w {pass} -b dc=x"),
        format!("ldappasswd -s {pass} cn=app"),
        format!("openssl enc -aes-256-cbc -k {pass} -in a"),
        format!("ssh-keygen -t ed25519 -N {pass} -f key"),
        format!("ssh-keygen -p -P {pass} -f key"),
        format!("smbclient -U app%{pass} //srv/share"),
        format!("lftp -u app,{pass} srv"),
        format!("codecov -t {}", make.uuid()),
        format!("oathtool --totp -b {}", make.text(32, UPPER)),
        format!("snmpget -v3 -A {pass} -X {token} srv"),
        format!("openssl pkcs12 -in a -passin pass:{pass}"),
        format!("openssl pkcs12 -export -passout pass:{pass}"),
        format!("openssl enc -pass pass:{pass} -in a"),
        format!("schtasks /create /rp:{pass} /tn x"),
        format!("xfreerdp /u:app /p:{pass} /v:srv"),
        format!("runas /password:{pass} cmd"),
        format!("net use z: /pass:{pass}"),
        format!("ConvertTo-SecureString '{pass}' -AsPlainText"),
        format!("ConvertTo-SecureString -String {pass} -AsPlainText"),
        format!("CREATE USER app IDENTIFIED BY '{pass}'"),
        format!("ALTER USER app IDENTIFIED WITH caching_sha2_password BY '{pass}'"),
        format!("keytool -storepass {pass} -list"),
        format!("tool --token {token} x"),
        format!("tool --api-key={token}"),
        format!("tool --session {token}7"),
        format!("send Bearer {token} with it"),
        format!("send basic {token} with it"),
        format!("racadm --user root -p {pass} getsysinfo"),
    ] {
        refused(&text);
    }
}

#[test]
fn arguments_without_an_option_are_caught() {
    let mut make = Maker(31);
    let (pass, token) = (make.password(), make.text(24, LETTERS));
    for text in [
        format!("htpasswd -cb .htpasswd app {pass}"),
        format!("rabbitmqctl add_user app {pass}"),
        format!("rabbitmqctl change_password app {pass}"),
        format!("rabbitmqctl authenticate_user app {pass}"),
        format!("net use z: \\\\srv\\share /user:app {pass}"),
        format!("mc alias set local http://localhost:9000 app {pass}"),
        format!("wpa_passphrase home {pass}"),
        format!("ansible-vault encrypt_string {pass} --name x"),
        format!("sqlplus app/{pass}@db"),
        format!("expdp app/{pass}@db full=y"),
        format!("bundle config example.com app:{pass}"),
        format!("redis-cli auth {pass}"),
        format!("composer config http-basic.example.com app {pass}"),
        format!("gh secret set API_TOKEN --body {pass}"),
        format!("gh secret set API_TOKEN -b {pass}"),
        format!("aws secretsmanager create-secret --name db_password --secret-string {pass}"),
        format!("az keyvault secret set --name api-token --value {pass}"),
        format!("login: app/{pass}"),
        format!("creds app/{pass}"),
        format!("credentials: app / {pass}"),
        format!("localhost:5432:app:app:{pass}"),
        format!("*:*:*:app:{pass}"),
        format!("ngrok authtoken {token}"),
        format!("ngrok config add-authtoken {token}"),
        format!("sentry-cli login {token}"),
        format!("tool auth set-token now {token}"),
        format!("cat <<< {token}"),
    ] {
        refused(&text);
    }
}

#[test]
fn what_is_piped_or_kept_is_caught() {
    let mut make = Maker(32);
    let (pass, token) = (make.password(), make.text(24, LETTERS));
    for text in [
        format!("echo {pass} | sudo -S true"),
        format!("echo app:{pass} | chpasswd"),
        format!("echo {token} | docker login --password-stdin"),
        format!("printf %s {token} | gh auth login --with-token"),
        format!("echo {token} | wrangler secret put NAME"),
        format!("echo {token} | gh secrets set NAME"),
        format!("Write-Output {token} | tool connect"),
        format!("cat <<< {token} | tool register"),
        format!("echo {pass} > db_password.txt"),
        format!("echo {pass} >> /run/secrets/api-token"),
        format!("echo {pass} >.vault_pass"),
        format!("echo {pass} | tee C:\\x\\db-password"),
        format!("echo {pass} | tee -a api_token"),
    ] {
        refused(&text);
    }
}

#[test]
fn assignments_in_every_notation_are_caught() {
    let mut make = Maker(33);
    let (pass, token) = (make.password(), make.text(24, LETTERS));
    let words = "maple copper window garden river stone market yellow button silver person candle";
    for text in [
        format!("password for staging: {pass}"),
        format!("the token of the bot: {token}"),
        format!("api key in use to test: {token}"),
        format!("password:{pass}"),
        format!("token:{token}"),
        format!("token:{}", make.uuid()),
        format!("(\"API_TOKEN\", \"{token}\")"),
        format!("[\"--api-token\", \"{token}\"]"),
        format!("define('DB_PASSWORD', '{pass}')"),
        format!("auth=('app', '{pass}')"),
        format!("<ns:password>{pass}</ns:password>"),
        format!("<apiKey>{token}</apiKey>"),
        format!("mnemonic: {words}"),
        format!("seed phrase: {words}"),
        format!("recovery_phrase=\"{words}\""),
        format!("let api_key: &str = \"{token}\";"),
        format!("api_key: String = \"{token}\""),
        format!("password: |\n  {pass}"),
        format!("token: >-\n  {token}\nother: 1"),
        format!("API_TOKEN := {token}"),
        format!("API_TOKEN ?= {token}"),
        format!("api_token ||= '{token}'"),
        format!("'api_token' => '{token}',"),
        format!("\\\"password\\\": \\\"{pass}\\\""),
        format!("**Password**: {pass}"),
        format!("data[password]={pass}"),
        format!("name: API_TOKEN\nvalue: {token}"),
        format!("key=\"ApiKey\" value=\"{token}\""),
        format!("https://example.com/?a=b&password={pass}&c=d"),
        format!("https://example.com/?sig={token}9"),
        format!("X-Api-Key: {token}"),
        format!("X-Auth-Token: Bearer {token}"),
        format!("Proxy-Authorization: Basic {}", ["YXBwOnJpdmVyIz", "cyOQ=="].concat()),
        format!("Authorization: AWS4 Credential=x, Signature=\"{token}\""),
        format!("Set-Cookie: sessionid={token}; Path=/"),
        format!("Cookie: theme=dark; sid={}", make.uuid()),
        format!("SECRET_KEY_BASE={}", make.text(64, LETTERS)),
        format!("SECRET_KEY=!x{}#%&*^+={}", make.text(18, LETTERS), make.text(12, LETTERS)),
        format!("SMTP_PASSWORD=abcd {} qzvx kwjp", make.text(4, "bcdfgh")),
        format!("APP_KEY=base64:{}=", make.text(43, LETTERS)),
        format!("data: {}", ["cGFzc3dvcmQ9cml2", "ZXIjczkxN3EK"].concat()),
    ] {
        refused(&text);
    }
}

#[test]
fn urls_of_every_form_are_caught() {
    let mut make = Maker(34);
    let (pass, token) = (make.password(), make.text(24, LETTERS));
    for text in [
        format!("postgres://app:{pass}@db/app"),
        format!("https://{token}@example.com/x"),
        format!("https://{token}:x-oauth-basic@example.com/x"),
        format!("https://app:ab/{pass}@example.com/x"),
        format!("https://app:ab?{pass}#x@example.com/x"),
        format!("app:{pass}@tcp(db:3306)/app"),
        format!("dsn \"app:{pass}@tcp(db)/app\""),
        format!("jdbc:oracle:thin:app/{pass}@db:1521"),
        format!("see http://a/ and http://b/ and redis://:{pass}@c/"),
    ] {
        refused(&text);
    }
}

#[test]
fn what_only_resembles_them_passes() {
    for text in [
        "mysql -u root -proot app",
        "docker run -p 8080:80 -u 1000:1000 acme/web",
        "ssh -p 2222 app@example.com",
        "curl -u app https://example.com",
        "openssl x509 -in a -passin env:PASS",
        "echo maple | tee notes.txt",
        "echo done > build.log",
        "<name>maple</name>",
        "(\"maple\", \"copper\")",
        "[\"password\", \"passwd\", \"secret2fa\"]",
        "password for the maple: see the vault",
        "token:maple:copper",
        "image: acme/token:1.2",
        "phrase: maple copper window",
        "api_key: str = \"\"",
        "PASSWORD ?= $(shell pass)",
        "https://example.com:8080/a@b",
        "https://example.com/?key=maple&a=b",
        "http://[::1]:8080/@x",
        "app:$PASS@tcp(db:3306)/app",
        "jdbc:oracle:thin:@db:1521",
        "localhost:5432:app",
        "gh secret set API_TOKEN --body $TOKEN",
        "login: app/maple",
        "Authorization: Bearer <token>",
        "Cookie: theme=dark; lang=en",
        "net user app /add",
        "-----BEGIN CERTIFICATE-----",
    ] {
        clean(text);
    }
}

#[test]
fn keys_without_armour_are_caught() {
    let mut make = Maker(35);
    let mut body = |lines: usize| (0..lines).map(|_| make.text(64, LETTERS)).collect::<Vec<_>>().join("\n");
    for text in [
        format!("PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{}", body(1)),
        format!("-----BEGIN OpenVPN Static key V1-----\n{}\n", body(2)),
        format!("-----BEGIN PGP PRIVATE KEY Block-----\nVersion: x\n\n{}\n", body(2)),
        format!("-----BEGIN PRIVATE KEY-----\\n{}\\n-----END", body(1)),
        format!("-----begin rsa PRIVATE KEY-----\nProc-Type: 4\nDEK-Info: x\n\n{}\n", body(1)),
        format!("see PRIVATE KEY below\n-----BEGIN EC PRIVATE KEY-----\n{}", body(1)),
    ] {
        assert_eq!(rule(&text), Some("private-key"), "{text}");
    }
    for (text, why) in [
        (format!("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n{}", body(0)), "no body"),
        (format!("-----BEGIN PRIVATE KEY-----\n{}", "maple copper window ".repeat(10)), "words"),
        (format!("{}PRIVATE KEY\n{}", "BEGIN ".to_owned() + &" ".repeat(70), "G".repeat(64)), "far, and one letter"),
        (format!("Private-Lines: 1\n{}", "maple/copper\n".repeat(2)), "short"),
    ] {
        assert_eq!(rule(&text), None, "{why}: {text}");
    }
}

#[test]
fn values_are_walked_to_the_place_of_a_secret() {
    let mut make = Maker(36);
    let (pass, token) = (make.password(), ["ghp", "_", &make.text(36, LETTERS)].concat());
    let path = |value: &Value| GUARD.check_json("v", value).map(|found| found.path);
    let long = |length: usize| "m".repeat(length);
    for (value, expected) in [
        (json!({long(63): token}), Some(format!("v.{}", long(63)))),
        (json!({long(64): token}), Some(format!("v.{}…", long(63)))),
        (json!({"a b": [[token]]}), Some("v.a b[0][0]".into())),
        (json!({"a\u{7}": token}), Some("v.a\\u{7}".into())),
        (json!(["--password", pass]), Some("v[1]".into())),
        (json!(["--password=x", pass]), None),
        (json!(["--a password", pass]), None),
        (json!([format!("--{}-password", long(64)), pass]), None),
        (json!(["password", pass]), None),
        (json!({"kty": "oct", "k": make.text(43, LETTERS)}), Some("v.d".into())),
        (json!({"kty": "oct", "k": "maple"}), None),
        (json!({"k": "maple", "d": make.text(19, LETTERS)}), None),
        (json!({"name": "DB_PASSWORD", "value": pass}), Some("v.value".into())),
        (json!({"name": "MAPLE", "value": pass}), None),
        (json!({"password": {"value": pass}}), Some("v.password.value".into())),
        (json!({"password": {"maple": pass}}), None),
    ] {
        assert_eq!(path(&value), expected, "{value}");
    }
}

/// The guard reads JSON in a text one level deep. It reads a long JSON text only by its parts, and a still longer one
/// only as text.
#[test]
fn json_in_a_text_is_read_by_its_parts() {
    let mut make = Maker(37);
    let id = make.uuid();
    let filled = |length: usize| {
        let start = format!("{{\"auth\": {{\"token\": {{\"value\": \"{id}\"}}}}, \"maple\": \"");
        format!("{start}{}\"}}", "copper window ".repeat(length.div_ceil(14)).split_at(length - start.len() - 2).0)
    };
    for (length, is_read) in [(200, true), (5_000, true), (65_536, true), (65_537, false)] {
        let text = filled(length);
        assert_eq!(text.len(), length);
        assert_eq!(rule(&text).is_some(), is_read, "{length}");
    }
    let inner = json!({"auth": {"token": {"value": id}}}).to_string();
    assert!(rule(&inner).is_some());
    assert!(rule(&json!([inner]).to_string()).is_none(), "JSON in JSON in a text");
    assert!(rule(&format!("  {inner}\n")).is_some());
    assert!(rule(&format!("{inner} x")).is_none());
}

/// In a long text the guard decodes only base64 that begins like a document, and only up to a limit.
#[test]
fn encoded_text_is_read_as_far_as_is_said() {
    // The text is `password=Winter…` in base64.
    let encoded = ["cGFzc3dvcmQ9V2", "ludGVyMjAyNCE"].concat();
    let after =
        |length: usize| format!("{} {encoded}", "maple copper ".repeat(400).split_at(length - 1 - encoded.len()).0);
    assert_eq!(rule(&encoded), Some("encoded-secret"));
    assert_eq!(rule(&after(4_095)), Some("encoded-secret"));
    assert_eq!(rule(&after(4_096)), None);
    let json = ["eyJwYXNzd29yZCI6IC", "JXaW50ZXIyMDI0ISJ9"].concat();
    assert_eq!(rule(&format!("{} {json}", "maple copper ".repeat(400))), Some("encoded-secret"));
    assert_eq!(rule(&format!("{} x{json}", "maple copper ".repeat(400))), None);
    assert_eq!(GUARD.check(Some("digest"), &encoded), Some("encoded-secret"));
}
