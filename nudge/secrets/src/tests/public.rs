//! Tests kinds of credentials from public collections that an earlier version of the guard did not find.

use super::{Maker, clean, refused};

const SMALL: &str = "ybndrfg8ejkmcpqxot1uwisza345h769";

#[test]
fn logins_and_tokens_of_services_are_caught() {
    let mut make = Maker(60);
    for _ in 0..20 {
        let (role, secret) = (make.uuid(), make.uuid());
        for text in [
            format!("role_id={role} secret_id={secret}"),
            format!("vault write auth/approle/login role_id={role} secret_id={secret}"),
            format!("vault write auth/approle/login role_id=\"{role}\" secret_id=\"{secret}\""),
            format!("amzn.mws.{secret}"),
            format!("da2-{}7q4zx9", make.text(20, "abcdefghijklmnopqrstuvwxyz0123456789")),
            format!("{}3x7", make.text(23, SMALL)),
            format!("SK{}3x7", make.text(29, SMALL)),
            format!("{}3x7-us21", make.text(29, SMALL)),
        ] {
            refused(&text);
        }
    }
    clean(&format!("vault read auth/approle/role/app/role-id # {}", make.uuid()));
    clean(&["01j5k8m3", "n7p9q2r4s6t8v0w1x3"].concat());
    clean(&make.text(26, "abcdef0123456789"));
    clean("aws s3 ls s3://build-artifacts-of-the-web-team-us2");
    clean("SKIPPED_TESTS_OF_THE_LAST_RUN_ARE");
}

#[test]
fn passwords_that_people_choose_are_caught_where_they_stand() {
    let mut make = Maker(61);
    for _ in 0..10 {
        let (mixed, drawn) = (["Winter", "2026", "!"].concat(), make.password());
        let words = [
            ["Copper", "maple", "42"].join("-"),
            ["river", "Stone", "7"].join("_"),
            ["correct", "horse", "battery"].join("-"),
        ];
        for pass in words.iter().chain([&mixed, &drawn]) {
            for text in [
                format!("nmcli dev wifi connect home password {pass}"),
                format!("sudo nmcli dev wifi connect 'the home' password '{pass}' ifname wlan0"),
                format!("net use Z: \\\\srv\\share {pass} /user:acme"),
                format!("net user app {pass} /add"),
                format!("curl -u ':{pass}' https://example.com"),
                format!("password: {pass}"),
                format!("spring.datasource.password={pass}"),
                format!("db:\n  user: app\n  password: \"{pass}\"\n"),
                format!("<server><id>a</id><password>{pass}</password></server>"),
                format!("signing.password={pass}\nsigning.keyId=1"),
                format!("<add key=\"ClearTextPassword\" value=\"{pass}\" />"),
                format!("helm install a b --set auth.password={pass}"),
                format!("kubectl create secret generic a --from-literal=password={pass}"),
            ] {
                refused(&text);
            }
        }
        for pass in [&mixed, &drawn] {
            for text in [
                format!("curl -u '{pass}:' https://example.com"),
                format!("Das Passwort lautet {pass}"),
                format!("das Kennwort ist {pass}."),
                format!("le mot de passe est {pass}"),
                format!("mot de passe : {pass}"),
                format!("la contrase\u{f1}a es {pass}"),
                format!("Das Passwort f\u{fc}r den Server ist {pass}"),
                format!("le mot de passe pour la base est {pass}"),
                format!("la contrase\u{f1}a de la base de datos es {pass}"),
                format!("Contrase\u{f1}a: {pass}"),
                format!("\u{5bc6}\u{7801}\u{662f}{pass}"),
                format!("\u{6570}\u{636e}\u{5e93}\u{5bc6}\u{7801}\u{ff1a} {pass}\u{3002}"),
                format!("log in as admin with {pass}"),
                format!("then sign in as qa using {pass}."),
            ] {
                refused(&text);
            }
        }
    }
}

#[test]
fn what_only_names_a_password_passes() {
    for text in [
        "password: my-database-password",
        "password: postgres-credentials",
        "password = user_input_value",
        "password=get_password_2",
        "password: web-v2",
        "password: config.db.pass",
        "password: text-input-component",
        "secret_id=prod/db",
        "role_id=admin",
        "curl -u admin: https://example.com",
        "mysqldump -u username -ppassword the-database > db.sql",
        "ssh-keygen -p -P old_passphrase -N new_passphrase -f a",
        "mysqladmin --password database_name",
        "curl -u user2024: https://example.com",
        "curl -u : --negotiate https://example.com",
        "nmcli dev wifi connect home password $WIFI_PASSWORD",
        "net use Z: \\\\srv\\share /user:acme",
        "net user app /add",
        "log in as admin with the usual browser",
        "sign in as root with ssh2",
        "Das Passwort ist falsch",
        "Das Passwort f\u{fc}r den Server ist abgelaufen",
        "le mot de passe est obligatoire",
        "la contrase\u{f1}a es obligatoria",
        "\u{5bc6}\u{7801}\u{662f}\u{5fc5}\u{9700}\u{7684}",
    ] {
        clean(text);
    }
}
