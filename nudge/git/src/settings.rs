//! Reads the settings of a repository that are data. Nudge uses no other settings of a repository.

#[cfg(any(unix, test))]
use std::fmt::Write as _;

use crate::{CallLimits, Git, GitFailure, NOWHERE};

/// The keys that say how files are compared and who commits. Git reads them from all files, and the last value wins.
/// None of these keys names a program or leads to one.
const DATA: &str = r"^(core\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|safecrlf|trustctime|checkstat|protecthfs|protectntfs|longpaths|sharedrepository|logallrefupdates|excludesfile)|user\.(name|email|useconfigonly)|(author|committer)\.(name|email)|extensions\.(objectformat|refstorage)|remote\.origin\.(url|pushurl)|branch\..*\.(remote|merge))$";
/// The keys that may name a program. On systems where users cannot make links, each of them is switched off.
#[cfg(any(not(unix), test))]
const PROGRAMS: &str = r"^(filter\..*\.(clean|smudge|process|required)|(merge|diff)\..*\.(driver|command|textconv)|diff\.external|remote\..*\.(uploadpack|receivepack|vcs|proxy|promisor)|hook\..*|credential\..*|core\.(sshcommand|fsmonitor|hookspath|alternaterefscommand|gitproxy|askpass|editor|pager)|gpg\..*|sequence\.editor|url\..*)$";
/// The most entries. A repository with thousands of branches has two entries for each branch.
const MAX_ENTRIES: usize = 20_000;
/// The longest value, in bytes.
const MAX_VALUE_BYTES: usize = 4 << 10;

/// An entry: the full key and the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    pub key: String,
    pub value: String,
}

/// The settings of a repository that Nudge uses.
#[derive(Debug, Clone, Default)]
pub struct DataSettings {
    entries: Vec<GitSetting>,
}

impl DataSettings {
    /// Reads the settings by a command of git that only reads settings.
    pub fn read(git: &Git, limits: CallLimits) -> Result<Self, GitFailure> {
        let told = match git.ask(&["config", "--null", "--show-scope", "--get-regexp", DATA], limits) {
            // The repository has no such settings.
            Err(GitFailure::Refused { code: Some(1), .. }) => Vec::new(),
            told => told?,
        };
        let text = String::from_utf8(told).map_err(|_| GitFailure::Unfit("a setting of git is no text"))?;
        Self::parse(&text)
    }

    /// Parses the output of `git config`: a sequence of `SCOPE NUL KEY LF VALUE NUL`.
    fn parse(text: &str) -> Result<Self, GitFailure> {
        let mut settings = Self::default();
        let mut parts = text.split_terminator('\0');
        while let (Some(scope), Some(entry)) = (parts.next(), parts.next()) {
            // A key without `=` means true.
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            // A path from the repository's settings may lead to a pipe, so only the user's own path is used.
            let is_of_user = matches!(scope, "system" | "global" | "command");
            let is_taken = match key {
                "core.excludesfile" => is_of_user,
                // A remote other than `origin` may be a program, so its branches are left out.
                _ if key.starts_with("branch.") && key.ends_with(".remote") => value == "origin",
                _ => true,
            };
            if value.len() > MAX_VALUE_BYTES || value.contains('\r') {
                return Err(GitFailure::Unfit("a setting of git is too long or has a carriage return"));
            }
            if is_taken {
                settings.entries.push(GitSetting { key: key.to_owned(), value: value.to_owned() });
            }
            if settings.entries.len() > MAX_ENTRIES {
                return Err(GitFailure::Unfit("there are too many settings of git"));
            }
        }
        Ok(settings)
    }

    /// Returns the values of a key, in the order of their files.
    pub fn values(&self, key: &str) -> impl Iterator<Item = &str> {
        self.entries.iter().filter(move |entry| entry.key == key).map(|entry| entry.value.as_str())
    }

    /// Returns the addresses of `origin`. They may hold a password, so git gets them by variables and not from a file.
    #[cfg(any(unix, test))]
    pub fn origin_addresses(&self) -> impl Iterator<Item = &GitSetting> {
        self.entries.iter().filter(|entry| is_address(&entry.key))
    }

    /// Returns the text of the settings file in the git folder that Nudge makes. Calls that stay on this machine read
    /// no other settings.
    #[cfg(any(unix, test))]
    pub fn to_file_text(&self) -> String {
        let is_extended = self.entries.iter().any(|entry| entry.key.starts_with("extensions."));
        let mut out = format!("[core]\n\trepositoryformatversion = {}\n\tbare = false\n", u8::from(is_extended));
        for entry in self.entries.iter().filter(|entry| !is_address(&entry.key)) {
            add_section(&mut out, &entry.key, &entry.value);
        }
        for (key, value) in [
            ("core.hooksPath", NOWHERE),
            ("core.fsmonitor", "false"),
            ("core.pager", "cat"),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
            ("commit.gpgSign", "false"),
            ("push.gpgSign", "false"),
            ("push.recurseSubmodules", "no"),
            ("fetch.recurseSubmodules", "no"),
            ("submodule.recurse", "false"),
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
        ] {
            add_section(&mut out, key, value);
        }
        out
    }
}

#[cfg(any(unix, test))]
fn is_address(key: &str) -> bool {
    key.starts_with("remote.origin.")
}

/// Adds a section with one entry.
#[cfg(any(unix, test))]
fn add_section(out: &mut String, key: &str, value: &str) {
    let (section, name) = key.rsplit_once('.').expect("git and we write keys with a section");
    let section = match section.split_once('.') {
        Some((section, part)) => format!("{section} {}", quote_value(part)),
        None => section.to_owned(),
    };
    writeln!(out, "[{section}]\n\t{name} = {}", quote_value(value)).expect("writing to a string cannot fail");
}

/// Returns a value in quotes, in the form that git reads.
#[cfg(any(unix, test))]
fn quote_value(value: &str) -> String {
    let escaped = value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n").replace('\t', r"\t");
    format!("\"{escaped}\"")
}

/// Returns the keys of a repository that may name a program, each with a value that switches it off.
#[cfg(any(not(unix), test))]
pub fn switched_off(git: &Git, limits: CallLimits) -> Result<Vec<GitSetting>, GitFailure> {
    let told = match git.ask(&["config", "--null", "--show-scope", "--name-only", "--get-regexp", PROGRAMS], limits) {
        Err(GitFailure::Refused { code: Some(1), .. }) => Vec::new(),
        told => told?,
    };
    let text = String::from_utf8(told).map_err(|_| GitFailure::Unfit("a setting of git is no text"))?;
    let mut entries = vec![
        GitSetting { key: "core.hooksPath".into(), value: NOWHERE.into() },
        GitSetting { key: "core.fsmonitor".into(), value: "false".into() },
    ];
    let mut parts = text.split_terminator('\0');
    while let (Some(scope), Some(key)) = (parts.next(), parts.next()) {
        let is_of_repository = matches!(scope, "local" | "worktree");
        if is_of_repository && !entries.iter().any(|entry| entry.key.eq_ignore_ascii_case(key)) {
            let is_switch = [".required", ".promisor", ".enabled"].iter().any(|end| key.ends_with(end));
            entries.push(GitSetting {
                key: key.to_owned(),
                value: if is_switch { "false".into() } else { String::new() },
            });
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LIMITS: CallLimits = CallLimits { time: Duration::from_mins(1), output_bytes: 1 << 20 };

    #[test]
    fn what_is_written_is_read_back_by_git() {
        let place = tempfile::tempdir().unwrap();
        let text = "local\0user.name\na \"b\"\\c\t#;\nd\0local\0branch.x \"y\\z\".merge\nrefs/heads/x\0";
        let settings = DataSettings::parse(text).unwrap();
        std::fs::write(place.path().join("config"), settings.to_file_text()).unwrap();
        let git = Git::find(place.path()).unwrap();
        for (key, value) in [
            ("user.name", "a \"b\"\\c\t#;\nd"),
            ("branch.x \"y\\z\".merge", "refs/heads/x"),
            ("core.hooksPath", NOWHERE),
        ] {
            assert_eq!(git.ask_line(&["config", "--file", "config", "--get", key], LIMITS).unwrap(), value, "{key}");
        }
    }

    #[test]
    fn what_may_name_a_program_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let git = Git::find(place.path()).unwrap();
        git.ask(&["init", "--quiet"], LIMITS).unwrap();
        for (key, value) in [
            ("core.sshCommand", "x"),
            ("core.excludesFile", "/dev/zero"),
            ("filter.a.clean", "x"),
            ("branch.evil.remote", "ext::x"),
            ("branch.main.remote", "origin"),
            ("remote.origin.uploadpack", "x"),
            ("remote.origin.url", "u"),
            ("url.ext::x.insteadOf", "u"),
            ("user.name", "n"),
        ] {
            git.ask(&["config", key, value], LIMITS).unwrap();
        }
        let settings = DataSettings::read(&git, LIMITS).unwrap();
        let file = settings.to_file_text();
        assert!(!file.contains("\"x\"") && !file.contains("ext::") && !file.contains("/dev/zero"), "{file}");
        assert_eq!(settings.values("remote.origin.url").collect::<Vec<_>>(), ["u"]);
        assert_eq!(settings.values("branch.main.remote").collect::<Vec<_>>(), ["origin"]);
        let off = switched_off(&git, LIMITS).unwrap();
        for key in ["core.sshcommand", "filter.a.clean", "remote.origin.uploadpack", "url.ext::x.insteadof"] {
            assert!(off.contains(&GitSetting { key: key.into(), value: String::new() }), "{key}: {off:?}");
        }
    }
}
