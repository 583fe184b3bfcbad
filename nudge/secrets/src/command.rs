//! Finds credentials in commands: in options, in arguments of a login, in piped input, and in URLs with a password.

use super::classify::{
    CharMix, is_odd_word, is_passwordish, is_placeholder, is_random, is_reference, is_uuid, wordy_share,
};
use super::header::header_credential;
use super::names::{NamePromise, WordMap, judge_name};
use super::prose::is_term;
use super::verdict::{is_basic_pair, is_public_token, is_secret};
use std::sync::LazyLock;

/// The form of the secret that an option of a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionPayload {
    /// The next word is a password: `sshpass -p X`.
    Password,
    /// The password follows the option directly: `mysql -pX`.
    Glued,
    /// The next word is `user:password`.
    Pair,
    /// The next word is a password if `login` comes before the option.
    LoginPassword,
    /// The next word is a user and a password, joined by this character.
    Joined(char),
}

/// The options that take secrets, as `(commands, option, form of the secret)`.
const OPTIONS: &[(&str, &str, OptionPayload)] = &[
    ("curl wget http https httpie xh httpx curlie hurl ab wrk restish", "-u", OptionPayload::Pair),
    ("http https httpie xh xhs", "-a", OptionPayload::Pair),
    ("curl", "-U", OptionPayload::Pair),
    ("curl etcdctl influx", "--user", OptionPayload::Pair),
    ("curl", "--proxy-user", OptionPayload::Pair),
    (
        "mysql mysqldump mysqladmin mariadb mariadb-dump mysqlimport mycli mysqlsh mysqlcheck 7z 7za 7zz unrar rar sshpass mongosh mongo",
        "-p",
        OptionPayload::Glued,
    ),
    (
        "sshpass mongosh mongo mongodump mongorestore cqlsh influx unrar clickhouse-client mycli rdesktop ncftp ncftpput mosquitto_sub cypher-shell twine vsce ovsx nuget",
        "-p",
        OptionPayload::Password,
    ),
    (
        "docker podman helm oras skopeo buildah crane nerdctl oc az cf ibmcloud snow argocd kubectl tsh regctl conan jf jfrog twine heroku bw",
        "-p",
        OptionPayload::LoginPassword,
    ),
    ("redis-cli keydb-cli valkey-cli", "-a", OptionPayload::Password),
    (
        "sqlcmd bcp osql ipmitool zip unzip zipcloak mosquitto_pub mosquitto_sub p4 impala-shell",
        "-P",
        OptionPayload::Password,
    ),
    ("ldapsearch ldapadd ldapmodify ldapdelete ldapwhoami ldappasswd", "-w", OptionPayload::Password),
    ("ldappasswd", "-s", OptionPayload::Password),
    ("openssl", "-k", OptionPayload::Password),
    ("ssh-keygen", "-N", OptionPayload::Password),
    ("ssh-keygen", "-P", OptionPayload::Password),
    ("smbclient smbmap rpcclient winexe wmic net", "-U", OptionPayload::Joined('%')),
    ("lftp", "-u", OptionPayload::Joined(',')),
    ("codecov codecovcli", "-t", OptionPayload::Password),
    ("oathtool", "-b", OptionPayload::Password),
    ("snmpwalk snmpget", "-A", OptionPayload::Password),
    ("snmpwalk snmpget", "-X", OptionPayload::Password),
];

/// Returns true when an argument after this word may be a credential, even without an option.
fn is_login_word(word: &str) -> bool {
    matches!(
        word,
        "login"
            | "auth"
            | "authenticate"
            | "signin"
            | "sign-in"
            | "set-token"
            | "add-token"
            | "configure"
            | "activate"
            | "register"
            | "authtoken"
            | "add-authtoken"
            | "token"
            | "connect"
            | "set-password"
            | "--with-token"
            | "--password-stdin"
            | "secrets"
    )
}

/// Returns true when `word` makes a command read a credential from its standard input.
fn reads_secret(word: &str, before: &str) -> bool {
    (is_login_word(word) && !matches!(word, "configure" | "secrets"))
        || (matches!(before, "secret" | "secrets") && matches!(word, "put" | "set"))
        || word == "chpasswd"
        || (word == "-S" && before == "sudo")
}

/// Returns true when the output goes to a file whose name suggests a secret, as in `> .vault_pass`.
fn keeps_secret(word: &str, before: &str) -> bool {
    let glued = word.trim_start_matches('>');
    if !matches!(before, ">" | ">>" | "tee" | "-a") && glued.len() == word.len() {
        return false;
    }
    let name = glued.rsplit(['/', '\\']).next().unwrap_or(glued);
    let stem = name.strip_suffix(".txt").unwrap_or(name);
    matches!(judge_name(stem.as_bytes()), NamePromise::Password | NamePromise::Token)
}

/// Returns true for a word that ends one command and begins another.
pub(super) fn ends_command(word: &str) -> bool {
    matches!(word, "|" | "||" | "&&" | ";" | "&" | "then" | "do") || word.ends_with(';')
}

/// Returns true when the command prints its arguments, or takes a secret as a plain argument.
fn takes_words(command: &str) -> bool {
    matches!(
        command,
        "echo"
            | "printf"
            | "Write-Output"
            | "<<<"
            | "htpasswd"
            | "rabbitmqctl"
            | "net"
            | "mc"
            | "wpa_passphrase"
            | "encrypt_string"
            | "nmcli"
    )
}

/// The state of reading the words of a command, one after another.
#[derive(Debug, Default)]
struct CommandState<'a> {
    command: &'a str,
    login: bool,
    /// True after an option has given a user's name.
    user: bool,
    /// True after `echo` has printed a possible credential, which a later command may read from its input.
    echoed: bool,
    /// The last three words, newest first.
    previous: [&'a str; 3],
}

/// Finds a credential among the words of a command, and returns the rule.
pub(super) fn find_in_command(text: &str) -> Option<&'static str> {
    let mut state = CommandState::default();
    for raw in text.split_ascii_whitespace() {
        if let Some(rule) = state.take_word(raw) {
            return Some(rule);
        }
    }
    None
}

/// Checks if `text` is the secret value of the option `flag`, as in `["--password", "X"]`, and returns the rule.
pub(super) fn flag_argument(flag: &str, text: &str) -> Option<&'static str> {
    let state = CommandState { previous: [flag, "", ""], ..CommandState::default() };
    state.named_flag(strip_quotes(text), flag, text)
}

/// Returns a word without the quotes and brackets around it.
pub(super) fn strip_quotes(word: &str) -> &str {
    let wrapper = |b: &u8| matches!(b, b'"' | b'\'' | b'`' | b',' | b';' | b'\\' | b'(' | b')');
    let bytes = word.as_bytes();
    let start = bytes.iter().take_while(|b| wrapper(b)).count();
    let end = bytes.len() - bytes[start..].iter().rev().take_while(|b| wrapper(b) || **b == b'.').count();
    // The cut is between characters, because only ASCII characters were removed.
    word.get(start..end).unwrap_or("")
}

impl<'a> CommandState<'a> {
    fn take_word(&mut self, raw: &'a str) -> Option<&'static str> {
        let word = strip_quotes(raw);
        // A word that is repeated many times adds no information.
        if !word.is_empty() && self.previous == [word; 3] {
            return None;
        }
        // Most words have only small letters. Such a word can be a secret only after a command or an option that takes
        // one.
        let idle = !self.echoed && !takes_words(self.command) && !self.previous[0].starts_with('-');
        let harmless = word.is_empty() || (idle && word.len() < 16 && raw.bytes().all(|b| b.is_ascii_lowercase()));
        let found = if harmless { None } else { self.judge_word(word, raw) };
        if ends_command(raw) {
            *self = CommandState { echoed: self.echoed && raw == "|", ..CommandState::default() };
        } else if !word.is_empty() {
            // An option in backquotes, such as `--flag`, is only mentioned and not used.
            let quoted_flag = word.starts_with('-') && raw.contains('`');
            // After a name with a comma, the next word is an item of a list and not the value of the name.
            let listed = !word.starts_with('-') && raw.ends_with(',');
            self.remember_word(if quoted_flag || listed { "," } else { word });
        }
        found
    }

    fn remember_word(&mut self, word: &'a str) {
        let slash = word.bytes().rposition(|b| matches!(b, b'/' | b'\\'));
        let name = slash.map_or(word, |i| &word[i + 1..]);
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
        if (self.command.is_empty() && !prefix) || is_known(name) || name == "encrypt_string" {
            self.command = name;
        }
        self.login |= matches!(word.trim_end_matches(':'), "login" | "signin" | "credentials" | "creds");
        self.user |= matches!(word, "-u" | "-U" | "--user" | "--username" | "--login");
        self.previous.rotate_right(1);
        self.previous[0] = word;
    }

    fn judge_word(&mut self, word: &'a str, raw: &'a str) -> Option<&'static str> {
        let before = self.previous[0];
        if let Some(rule) = self.short_option(word, before) {
            return Some(rule);
        }
        if let Some(rule) = self.named_flag(word, before, raw) {
            return Some(rule);
        }
        if !self.echoed {
            self.echoed = self.prints_credential(word);
        } else if (!matches!(self.command, "echo" | "printf") && reads_secret(word, before))
            || keeps_secret(word, before)
        {
            return Some("piped-credential");
        }
        if self.is_positional_password(word) {
            return Some("password-argument");
        }
        if before == "<<<" && is_random_argument(word, 16) {
            return Some("piped-credential");
        }
        let long = word.len() >= 16 && !word.starts_with('-') && !word.contains(['/', ':']);
        (long && self.previous.iter().any(|p| is_login_word(p)) && is_random_argument(word, 16))
            .then_some("login-argument")
    }

    /// Returns true when the command prints `word` and `word` may be a credential.
    fn prints_credential(&self, word: &str) -> bool {
        match self.command {
            "echo" | "printf" => {
                (!word.starts_with('-') && is_random_argument(word, 16))
                    || (is_passwordish(word) && !is_reference(word) && !is_placeholder(word))
                    || is_basic_pair(word)
            }
            "Write-Output" | "<<<" => !word.starts_with('-') && is_random_argument(word, 16),
            _ => false,
        }
    }

    /// Returns true when `word` is a password that the command takes without an option.
    fn is_positional_password(&self, word: &str) -> bool {
        let [last, second, third] = self.previous;
        let expected = match self.command {
            "htpasswd" => third.starts_with('-') && third.contains('b'),
            "rabbitmqctl" => matches!(second, "add_user" | "change_password" | "authenticate_user"),
            "net" => {
                // In `net use SHARE X /user:NAME`, the password comes before the name, if that word is neither a share
                // nor a drive.
                let is_before = word.len() > 6
                    && word.as_bytes()[..6].eq_ignore_ascii_case(b"/user:")
                    && !last.contains(['\\', ':', '/'])
                    && is_flag_value(last);
                if is_before {
                    return true;
                }
                last.to_ascii_lowercase().starts_with("/user:") || second.eq_ignore_ascii_case("user")
            }
            "nmcli" => matches!(last, "password" | "wifi-sec.psk" | "802-11-wireless-security.psk"),
            // Matches the form `mc alias set NAME URL ACCESS-KEY SECRET-KEY`.
            "mc" => second.starts_with("http"),
            "wpa_passphrase" => second == "wpa_passphrase",
            // Matches the form `ansible-vault encrypt_string X --name NAME`.
            "encrypt_string" => return !last.starts_with('-') && !word.starts_with('-') && is_passwordish(word),
            "sqlplus" | "sqlldr" | "expdp" | "impdp" => return is_oracle_login(word),
            "bundle" => return second == "config" && is_pair(word),
            "redis-cli" => last.eq_ignore_ascii_case("auth"),
            _ if second.starts_with("http-basic.") => true,
            _ if matches!(last, "--body" | "-b" | "--value" | "-v" | "-Value" | "--secret-string") => {
                judge_name(second.as_bytes()).max(judge_name(third.as_bytes())) >= NamePromise::Token
                    && !second.contains('=')
            }
            // Matches the form "login: user/password".
            _ if matches!(last, "login:" | "credentials:" | "creds:" | "credentials" | "creds") => {
                return word.split_once('/').is_some_and(|(_, pass)| is_passwordish(pass) && is_strong(pass));
            }
            _ if last == "/" => return self.login && is_passwordish(word) && is_strong(word),
            _ => is_pgpass(word),
        };
        expected && !word.starts_with('-') && (is_pgpass(word) || is_flag_value(word))
    }

    /// Finds a secret after a short option of the command: `-p X`, `-pX`, `-u user:X`.
    fn short_option(&self, word: &str, before: &str) -> Option<&'static str> {
        let rest_of = |option: &str| word.strip_prefix(option).filter(|rest| !rest.is_empty());
        let optional = before.starts_with('-') || word.starts_with('-');
        let options = if optional { COMMANDS.get(self.command.as_bytes()).map(Vec::as_slice) } else { None };
        let found = options.into_iter().flatten().any(|(option, carries)| match carries {
            OptionPayload::Password => before == *option && is_flag_value(word),
            OptionPayload::LoginPassword => self.login && before == *option && is_flag_value(word),
            OptionPayload::Glued => rest_of(option).is_some_and(|rest| {
                !rest.starts_with('-') && is_flag_value(strip_quotes(rest)) && !rest.bytes().all(|b| b.is_ascii_digit())
            }),
            OptionPayload::Pair => before == *option && is_pair(word),
            OptionPayload::Joined(mark) => {
                before == *option && word.split_once(*mark).is_some_and(|(_, pass)| is_flag_value(pass))
            }
        });
        // For a command that is not in the table, an option has given a user's name, and the word after `-p` is no
        // port.
        let strong = before == "-p" && (self.user || self.login) && is_strong(word);
        if found || (strong && !is_reference(word) && !is_placeholder(word)) {
            return Some("password-flag");
        }
        let pass_argument = word.strip_prefix("pass:").is_some_and(|rest| {
            matches!(before, "-passin" | "-passout" | "-pass" | "-password") && is_flag_value(rest)
        });
        let windows = word.starts_with('/')
            && ["/pass:", "/p:", "/password:", "/rp:"]
                .iter()
                .any(|start| word.strip_prefix(start).is_some_and(is_flag_value));
        (pass_argument || windows).then_some("password-flag")
    }

    /// Finds a secret after a name: `--password X`, `-storepass X`, `NAME X`, `password is X`.
    fn named_flag(&self, word: &str, before: &str, raw: &str) -> Option<&'static str> {
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
        // Matches the forms `IDENTIFIED BY 'X'` and `IDENTIFIED WITH mysql_native_password BY 'X'`.
        let is_identified = self.previous[1..].iter().any(|p| p.eq_ignore_ascii_case("identified"))
            || (self.previous[2].eq_ignore_ascii_case("with") && self.previous[1].ends_with("_password"));
        if flag.eq_ignore_ascii_case("by") && is_identified {
            return (raw.starts_with(['\'', '"']) && is_flag_value(word)).then_some("password-flag");
        }
        if flag.eq_ignore_ascii_case("ConvertTo-SecureString") || flag.eq_ignore_ascii_case("-String") {
            return is_flag_value(word).then_some("password-flag");
        }
        // Options such as `--name=VALUE`, `-p"$NAME"` and `-ppassword` already have their value.
        let is_glued = flag.strip_prefix("-p").is_some_and(is_own_name);
        let has_value =
            is_glued || flag.contains('=') && !flag.ends_with(':') || flag.starts_with('-') && flag.contains('$');
        if has_value || ["pass:", "env:", "file:"].iter().any(|p| word.starts_with(p)) {
            return None;
        }
        // In prose, phrases such as "pass to" or "key is" rarely introduce a secret, so only a random word counts after
        // them.
        if copula && matches!(flag, "pass" | "auth" | "key" | "keys" | "secrets" | "tokens") {
            return is_random_argument(word, 20).then_some("secret-assignment");
        }
        let promised = judge_name(flag.trim_end_matches([':', '=']).as_bytes());
        // An option such as `--secret id=npmrc,src=FILE` of `docker build` names a secret and its file, and does not
        // contain it.
        if is_place(word) {
            return None;
        }
        let is_option = flag.starts_with('-') && !copula;
        let secret = match promised {
            NamePromise::None | NamePromise::Phrase | NamePromise::Cookie | NamePromise::Header => false,
            NamePromise::Password if is_option => is_flag_value(word),
            NamePromise::Token if is_option => {
                is_secret(promised, word, false) || is_random_argument(word, 8) || is_odd_word(word)
            }
            NamePromise::Weak => is_option && is_random_argument(word, 16),
            NamePromise::Password => {
                !is_term(word)
                    && (raw.starts_with(['\'', '"']) || is_strong(word))
                    && (!word.contains('=') || is_random_argument(word, 8))
                    && is_secret(promised, word, false)
            }
            NamePromise::Token => {
                (is_uuid(word.as_bytes()) || is_random(word, if word.contains('/') { 30 } else { 12 }))
                    && is_random_argument(word, 8)
                    && is_secret(promised, word, false)
            }
        };
        secret.then_some(if is_option { "password-flag" } else { "secret-assignment" })
    }
}

/// The options of [`OPTIONS`], by command.
static COMMANDS: LazyLock<WordMap<Vec<(&'static str, OptionPayload)>>> = LazyLock::new(|| {
    let mut commands: WordMap<Vec<_>> = WordMap::default();
    for (names, option, carries) in OPTIONS {
        for name in names.split(' ') {
            commands.entry(name.as_bytes()).or_default().push((*option, *carries));
        }
    }
    commands
});

fn is_known(name: &str) -> bool {
    (3..=24).contains(&name.len()) && COMMANDS.contains_key(name.as_bytes())
}

/// Returns true for the login of an Oracle database: `user/password@host`.
pub(super) fn is_oracle_login(word: &str) -> bool {
    word.split_once('@')
        .and_then(|(login, _)| login.split_once('/'))
        .is_some_and(|(user, pass)| !user.is_empty() && is_flag_value(pass))
}

/// Returns true for a line of a `.pgpass` file: `host:5432:database:user:password`.
fn is_pgpass(word: &str) -> bool {
    if !word.as_bytes().contains(&b':') {
        return false;
    }
    let mut fields = word.splitn(5, ':');
    let (_, port) = (fields.next(), fields.next());
    let password = fields.nth(2);
    port.is_some_and(|p| p == "*" || (p.len() >= 4 && p.bytes().all(|b| b.is_ascii_digit())))
        && password.is_some_and(|p| is_flag_value(p) && !p.contains(['/', ':']))
}

/// Returns true for a word in prose that is certainly a password and not a technical term. It mixes letters with digits
/// or punctuation, and is not a path or a file name.
pub(super) fn is_strong(word: &str) -> bool {
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

/// Returns true when the argument of a password option is a literal and not a reference.
pub(super) fn is_flag_value(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() >= 5
        && !is_reference(word)
        && !is_placeholder(word)
        && !word.starts_with('-')
        && !word.ends_with(':')
        && !is_relative_path(word)
        && !is_own_name(word)
        && !bytes.iter().all(|b| b.is_ascii_uppercase() || matches!(b, b'_' | b'-'))
        && (bytes.iter().any(|b| !b.is_ascii_lowercase()) || bytes.len() >= 6)
}

/// Returns true for small letters that only name the value: `password`, `old_passphrase`, `database_name`.
fn is_own_name(word: &str) -> bool {
    const NAMES: [&str; 6] = ["password", "passwd", "passphrase", "pwd", "token", "name"];
    word.bytes().all(|b| b.is_ascii_lowercase() || matches!(b, b'_' | b'-'))
        && word.rsplit(['_', '-']).next().is_some_and(|last| NAMES.contains(&last))
}

/// Returns true for `user:password` whose password is a literal.
fn is_pair(word: &str) -> bool {
    is_basic_pair(word)
        || word
            .split_once(':')
            .is_some_and(|(user, pass)| (user.is_empty() || !is_reference(user)) && user != pass && is_flag_value(pass))
        || word.strip_suffix(':').is_some_and(|user| is_random_argument(user, 16) || is_chosen_password(user))
}

/// Returns true for a chosen password where a user's name or a token is expected. It has letters of both cases, digits,
/// and punctuation or more digits than names have.
pub(super) fn is_chosen_password(word: &str) -> bool {
    let mix = CharMix::from_bytes(word.as_bytes());
    mix.lower > 0
        && mix.upper > 0
        && mix.digit > 0
        && (mix.symbol > 0 || mix.digit >= 3)
        && is_strong(word)
        && !word.contains(['@', '/', '\\'])
        && !is_reference(word)
        && !is_placeholder(word)
}

/// Returns true for a list of locations in the form of `id=npmrc,src=$HOME/.npmrc`.
fn is_place(word: &str) -> bool {
    word.split(',').all(|part| {
        part.split_once('=').is_some_and(|(name, value)| {
            matches!(name, "id" | "src" | "source" | "env" | "type" | "target" | "dst" | "mode" | "uid" | "gid")
                && (is_reference(value) || !is_random(value, 16))
        })
    })
}

/// Returns true for a relative path, such as `packages/secret-manager/tsconfig.json`.
fn is_relative_path(word: &str) -> bool {
    word.contains('/')
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'.' | b'-' | b'_' | b'@'))
        && wordy_share(word.as_bytes()) >= 75
}

/// Returns true for a random-looking word that is not a reference, a placeholder, a path or a public value. `min` is
/// its least length.
pub(super) fn is_random_argument(word: &str, min: usize) -> bool {
    is_random(word, min)
        && word.bytes().any(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
        && !is_reference(word)
        && !is_placeholder(word)
        && !is_public_token(word)
        && (word.ends_with('=') || !word.contains(['@', '(', '<', '{']))
        && word.split_once('=').is_none_or(|(name, _)| name.len() > 4 && wordy_share(name.as_bytes()) < 50)
}
