//! Credentials given to commands: flags, login arguments, piped input, URLs with a password in them.

use super::assign::{header_credential, is_basic_pair, is_public_token, is_secret};
use super::classify::{
    distinct, is_passwordish, is_placeholder, is_random, is_reference, is_uuid, is_wordlike, wordy_share,
};
use super::names::{Promise, promise};
use std::collections::HashMap;
use std::sync::LazyLock;

/// What a command's short option carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carries {
    /// The option's next word is a password: `sshpass -p X`.
    Password,
    /// The password is glued to the option: `mysql -pX`.
    Glued,
    /// The next word is `user:password`.
    Pair,
    /// As `Password`, once the word `login` was seen.
    LoginPassword,
    /// The next word is `user%password`.
    Percent,
}

/// `(commands, option, what it carries)`.
const OPTIONS: &[(&str, &str, Carries)] = &[
    ("curl wget http https httpie xh httpx curlie hurl ab wrk restish", "-u", Carries::Pair),
    ("http https httpie xh xhs", "-a", Carries::Pair),
    ("curl", "-U", Carries::Pair),
    ("curl etcdctl influx", "--user", Carries::Pair),
    ("curl", "--proxy-user", Carries::Pair),
    (
        "mysql mysqldump mysqladmin mariadb mariadb-dump mysqlimport mycli mysqlsh mysqlcheck 7z 7za 7zz unrar rar sshpass mongosh mongo",
        "-p",
        Carries::Glued,
    ),
    (
        "sshpass mongosh mongo mongodump mongorestore cqlsh influx unrar clickhouse-client mycli rdesktop ncftp ncftpput mosquitto_sub cypher-shell twine vsce ovsx nuget npx",
        "-p",
        Carries::Password,
    ),
    (
        "docker podman helm oras skopeo buildah crane nerdctl oc az cf ibmcloud snow argocd kubectl tsh regctl conan jf jfrog twine heroku bw",
        "-p",
        Carries::LoginPassword,
    ),
    ("redis-cli keydb-cli valkey-cli", "-a", Carries::Password),
    (
        "sqlcmd bcp osql ipmitool zip unzip zipcloak mosquitto_pub mosquitto_sub p4 impala-shell",
        "-P",
        Carries::Password,
    ),
    ("ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd", "-w", Carries::Password),
    ("ldappasswd", "-s", Carries::Password),
    ("openssl", "-k", Carries::Password),
    ("ssh-keygen", "-N", Carries::Password),
    ("ssh-keygen", "-P", Carries::Password),
    ("smbclient smbmap rpcclient", "-U", Carries::Percent),
    ("snmpwalk snmpget", "-A", Carries::Password),
    ("snmpwalk snmpget", "-X", Carries::Password),
];

/// Words after which a bare argument may be a credential.
const LOGIN_WORDS: &str = "\
    login auth authenticate signin sign-in set-token add-token configure activate register authtoken \
    add-authtoken token connect set-password --with-token --password-stdin secrets";

fn is_login_word(word: &str) -> bool {
    LOGIN_WORDS.split_ascii_whitespace().any(|login| login == word)
}

/// Words that end one command and begin another.
fn ends_command(word: &str) -> bool {
    matches!(word, "|" | "||" | "&&" | ";" | "&" | "then" | "do") || word.ends_with(';')
}

/// What is known while walking the words of a command.
#[derive(Debug, Default)]
struct State<'a> {
    command: &'a str,
    login: bool,
    /// `echo`'s argument, waiting for a command that reads credentials from its input.
    echoed: Option<&'a str>,
    /// The last words, newest first.
    previous: [&'a str; 3],
}

/// Finds credentials among the words of `text`.
pub(super) fn find(text: &str) -> Option<&'static str> {
    let mut state = State::default();
    for raw in text.split_ascii_whitespace() {
        if let Some(rule) = state.step(raw) {
            return Some(rule);
        }
    }
    None
}

/// A word without the quotes and brackets around it.
fn bare(word: &str) -> &str {
    word.trim_matches(['"', '\'', '`', ',', ';', '\\', '(', ')']).trim_end_matches(['.', '\'', '"', '`'])
}

impl<'a> State<'a> {
    fn step(&mut self, raw: &'a str) -> Option<&'static str> {
        let word = bare(raw);
        let found = if word.is_empty() { None } else { self.judge(word, raw) };
        if ends_command(raw) {
            *self = State { echoed: self.echoed.filter(|_| raw == "|"), ..State::default() };
        } else if !word.is_empty() {
            // `--flag` in backquotes is being talked about, not used.
            let quoted_flag = word.starts_with('-') && raw.contains('`');
            self.remember(if quoted_flag { "`" } else { word });
        }
        found
    }

    fn remember(&mut self, word: &'a str) {
        let name = word.rfind(['/', '\\']).map_or(word, |at| &word[at + 1..]);
        let prefix = self.command.is_empty()
            && (word.contains('=')
                || matches!(
                    name,
                    "sudo"
                        | "env"
                        | "export"
                        | "exec"
                        | "time"
                        | "nohup"
                        | "npx"
                        | "RUN"
                        | "run:"
                        | "-"
                        | "$"
                        | ">"
                        | "#"
                ));
        if (self.command.is_empty() && !prefix) || is_known(name) {
            self.command = name;
        }
        self.login |= word == "login" || word == "signin";
        self.previous.rotate_right(1);
        self.previous[0] = word;
    }

    fn judge(&mut self, word: &'a str, raw: &'a str) -> Option<&'static str> {
        let before = self.previous[0];
        if let Some(rule) = self.short_option(word, before) {
            return Some(rule);
        }
        if let Some(rule) = self.named_flag(word, before, raw) {
            return Some(rule);
        }
        if matches!(self.command, "echo" | "printf" | "Write-Output" | "<<<")
            && !word.starts_with('-')
            && is_random_argument(word, 16)
        {
            self.echoed = Some(word);
        } else if matches!(self.command, "echo" | "printf")
            && is_passwordish(word)
            && !is_reference(word)
            && !is_placeholder(word)
        {
            self.echoed = self.echoed.or(Some(word));
        } else if matches!(self.command, "echo" | "printf") && is_basic_pair(word) {
            self.echoed = Some(word);
        }
        if self.echoed.is_some()
            && is_login_word(word)
            && word != "configure"
            && word != "secrets"
            && !matches!(self.command, "echo" | "printf")
        {
            return Some("piped-credential");
        }
        if self.echoed.is_some() && (word == "chpasswd" || (word == "-S" && before == "sudo")) {
            return Some("piped-credential");
        }
        if self.positional(word) {
            return Some("password-argument");
        }
        if before == "<<<" && is_random_argument(word, 16) {
            return Some("piped-credential");
        }
        let long = word.len() >= 16 && !word.starts_with('-') && !word.contains(['/', ':']);
        (long && self.previous.iter().any(|p| is_login_word(p)) && is_random_argument(word, 16))
            .then_some("login-argument")
    }

    /// Commands whose password is an argument without an option.
    fn positional(&self, word: &str) -> bool {
        let [last, second, third] = self.previous;
        let expected = match self.command {
            "htpasswd" => third.starts_with('-') && third.contains('b'),
            "rabbitmqctl" => matches!(second, "add_user" | "change_password" | "authenticate_user"),
            "net" => last.to_ascii_lowercase().starts_with("/user:"),
            _ if matches!(last, "--body" | "-b" | "--value" | "-v" | "-Value" | "--secret-string") => {
                promise(second.as_bytes()).max(promise(third.as_bytes())) >= Promise::Token && !second.contains('=')
            }
            _ if last == "/" => return self.login && is_passwordish(word) && is_strong(word),
            _ => is_pgpass(word),
        };
        expected && !word.starts_with('-') && (is_pgpass(word) || is_flag_value(word))
    }

    /// `-p X`, `-pX`, `-u user:X`, by command.
    fn short_option(&self, word: &str, before: &str) -> Option<&'static str> {
        let rest_of = |option: &str| word.strip_prefix(option).filter(|rest| !rest.is_empty());
        let optional = before.starts_with('-') || word.starts_with('-');
        let options = if optional { COMMANDS.get(self.command).map(Vec::as_slice) } else { None };
        let found = options.unwrap_or_default().iter().any(|(option, carries)| match carries {
            Carries::Password => before == *option && is_flag_value(word),
            Carries::LoginPassword => self.login && before == *option && is_flag_value(word),
            Carries::Glued => rest_of(option).is_some_and(|rest| {
                !rest.starts_with('-') && is_flag_value(bare(rest)) && !rest.bytes().all(|b| b.is_ascii_digit())
            }),
            Carries::Pair => before == *option && is_pair(word),
            Carries::Percent => before == *option && word.split_once('%').is_some_and(|(_, pass)| is_flag_value(pass)),
        });
        if found {
            return Some("password-flag");
        }
        let pass_argument = word.strip_prefix("pass:").is_some_and(|rest| {
            matches!(before, "-passin" | "-passout" | "-pass" | "-password") && is_flag_value(rest)
        });
        let windows = ["/pass:", "/p:", "/password:", "/rp:"]
            .iter()
            .any(|start| word.strip_prefix(start).is_some_and(is_flag_value));
        (pass_argument || windows).then_some("password-flag")
    }

    /// `--password X`, `-storepass X`, `NAME X`, `password is X`.
    fn named_flag(&self, word: &str, before: &'a str, raw: &str) -> Option<&'static str> {
        let plain =
            !before.starts_with('-') && raw.len() == word.len() && word.bytes().skip(1).all(|b| b.is_ascii_lowercase());
        if plain || word.len() < 5 {
            return None;
        }
        let (flag, copula) = if matches!(before, "is" | "was" | "to" | "=" | ":" | "of" | "as" | "set") {
            (self.previous[1], true)
        } else {
            (before, false)
        };
        if flag.len() < 2 || word.starts_with('-') && !is_passwordish(word) {
            return None;
        }
        if (flag.eq_ignore_ascii_case("bearer") || flag.eq_ignore_ascii_case("basic")) && !copula {
            return (is_random_argument(word, 16) && header_credential(word)).then_some("authorization-header");
        }
        if flag.eq_ignore_ascii_case("by") && self.previous[1..].iter().any(|p| p.eq_ignore_ascii_case("identified")) {
            return (raw.starts_with(['\'', '"']) && is_flag_value(word)).then_some("password-flag");
        }
        if flag.eq_ignore_ascii_case("ConvertTo-SecureString") || flag.eq_ignore_ascii_case("-String") {
            return is_flag_value(word).then_some("password-flag");
        }
        if flag.contains('=') && !flag.ends_with(':') {
            return None;
        }
        // "pass to", "key is": prose about passing things and keys.
        if copula && matches!(flag, "pass" | "auth" | "key" | "keys" | "secrets" | "tokens") {
            return None;
        }
        // The same pair of words again gets the same answer.
        if word == before && before == self.previous[1] {
            return None;
        }
        let promised = promise(flag.trim_end_matches([':', '=']).as_bytes());
        let is_option = flag.starts_with('-') && !copula;
        let secret = match promised {
            Promise::None | Promise::Phrase | Promise::Cookie | Promise::Header => false,
            Promise::Password if is_option => is_flag_value(word),
            Promise::Token if is_option => {
                is_secret(promised, word, false) || is_random_argument(word, 8) || is_odd_word(word)
            }
            Promise::Weak => is_option && is_random_argument(word, 16),
            Promise::Password => {
                (raw.starts_with(['\'', '"']) || is_strong(word))
                    && (!word.contains('=') || is_random_argument(word, 8))
                    && is_secret(promised, word, false)
            }
            Promise::Token => {
                (is_uuid(word.as_bytes()) || is_random(word, 12))
                    && is_random_argument(word, 8)
                    && is_secret(promised, word, false)
            }
        };
        secret.then_some(if is_option { "password-flag" } else { "secret-assignment" })
    }
}

/// The options of each command in [`OPTIONS`].
static COMMANDS: LazyLock<HashMap<&'static str, Vec<(&'static str, Carries)>>> = LazyLock::new(|| {
    let mut commands: HashMap<_, Vec<_>> = HashMap::with_capacity(128);
    for (names, option, carries) in OPTIONS {
        for name in names.split(' ') {
            commands.entry(name).or_default().push((*option, *carries));
        }
    }
    commands
});

fn is_known(name: &str) -> bool {
    (3..=24).contains(&name.len()) && COMMANDS.contains_key(name)
}

/// `host:5432:database:user:password`
fn is_pgpass(word: &str) -> bool {
    let mut fields = word.splitn(5, ':');
    let (_, port) = (fields.next(), fields.next());
    let password = fields.nth(2);
    port.is_some_and(|p| p == "*" || (p.len() >= 4 && p.bytes().all(|b| b.is_ascii_digit())))
        && password.is_some_and(|p| is_flag_value(p) && !p.contains(['/', ':']))
}

/// A password in prose must not be mistaken for a term: digits and letters and marks, not a path or a file name.
fn is_strong(word: &str) -> bool {
    let bytes = word.as_bytes();
    let mark =
        bytes.iter().any(|b| matches!(b, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'?' | b'~' | b'+'));
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let letters = bytes.iter().filter(|b| b.is_ascii_alphabetic()).count();
    bytes.len() >= 8
        && letters >= 2
        && !bytes.contains(&b'/')
        && !bytes.contains(&b'(')
        && ((mark
            && (digits > 0 || wordy_share(bytes) < if bytes.iter().any(u8::is_ascii_uppercase) { 75 } else { 50 }))
            || digits >= 3
            || is_random(word, 10)
            || is_uuid(bytes))
}

/// A long run of letters that is no word, given to a token option.
fn is_odd_word(word: &str) -> bool {
    word.len() >= 12
        && word.bytes().all(|b| b.is_ascii_alphabetic())
        && !is_wordlike(word.as_bytes())
        && distinct(word.as_bytes(), 6) > 5
}

/// Whether the argument of a password option is a literal.
pub(super) fn is_flag_value(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 5
        && !is_reference(word)
        && !is_placeholder(word)
        && !word.starts_with('-')
        && !word.ends_with(':')
        && !bytes.iter().all(|b| b.is_ascii_uppercase() || matches!(b, b'_' | b'-'))
        && (bytes.iter().any(|b| !b.is_ascii_lowercase()) || bytes.len() >= 6)
}

/// `user:password` with a literal password.
fn is_pair(word: &str) -> bool {
    is_basic_pair(word)
        || word.split_once(':').is_some_and(|(user, pass)| !is_reference(user) && user != pass && is_flag_value(pass))
        || (word.ends_with(':') && is_random_argument(word.trim_end_matches(':'), 16))
}

/// A random-looking word that is no reference, placeholder, path or public value.
pub(super) fn is_random_argument(word: &str, min: usize) -> bool {
    is_random(word, min)
        && word.bytes().any(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
        && !is_reference(word)
        && !is_placeholder(word)
        && !is_public_token(word)
        && (word.ends_with('=') || !word.contains(['=', '@', '(', '<', '{']))
}
