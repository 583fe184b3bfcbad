//! Reads repository names and brings their many spellings into one canonical form (semantics section 2).

use std::fmt;

use crate::error::{Error, Result};
use crate::held::allocation_bytes;
use crate::place::glob::{collapse_path, has_parent_segment, is_drive};

/// The longest repository name, in bytes.
const MAX_BYTES: usize = 4096;

/// A repository. Comparisons ignore scheme, user, password, port and `.git`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepoName {
    /// A `file:///path`. Comparisons of the path respect case.
    File(Box<str>),
    /// A path in lower case, on a certain host or on any host.
    Path {
        /// The host; `None` for any host.
        host: Option<Box<str>>,
        /// `org/repo`, or a longer path.
        path: Box<str>,
    },
}

impl RepoName {
    /// Parses any spelling. Credentials in a URL are dropped.
    ///
    /// # Errors
    /// `E_SCOPE_INVALID` for a `..` segment or control characters; `E_INVALID` for a text that is no repository name.
    pub fn parse(text: &str) -> Result<Self> {
        let invalid =
            || Error::invalid("A repo is a name such as `org/repo`, `host/org/repo`, a git URL or `file:///path`.");
        if text.len() > MAX_BYTES {
            return Err(Error::invalid("A repo may have 4,096 bytes at most."));
        }
        if text.chars().any(char::is_control) {
            return Err(Error::scope("A repo may not hold control characters."));
        }
        let text = text.trim();
        if can_climb(text) {
            return Err(Error::scope("A repo may not hold a `..` segment; name the folder itself."));
        }
        if let Some((scheme, rest)) = split_scheme(text) {
            if scheme.eq_ignore_ascii_case("file") {
                return parse_file_path(
                    rest.strip_prefix("localhost/").map_or_else(|| rest.into(), |path| format!("/{path}")).as_str(),
                );
            }
            let (authority, path) = rest.split_once('/').ok_or_else(invalid)?;
            return path_on(Some(host_of(authority)), path).ok_or_else(invalid);
        }
        if let Some(path) =
            text.get(..4).filter(|head| head.eq_ignore_ascii_case("git:")).map(|head| &text[head.len()..])
        {
            return path_on(None, path).ok_or_else(invalid);
        }
        // A letter and a colon are a drive only before a slash. In `a:secret@host`, `a` is a user.
        let drive = is_drive(text) && text[2..].starts_with(['/', '\\']);
        if text.starts_with('/') || text.starts_with('\\') || drive {
            return parse_file_path(text);
        }
        let (user, rest) = text
            .split_once('@')
            .filter(|(user, _)| !user.contains('/'))
            .map_or((None, text), |(user, rest)| (Some(user), rest));
        let first_end = if rest.starts_with('[') { rest.find(']').map_or(rest.len(), |i| i + 1) } else { 0 };
        let segment_end = rest[first_end..].find('/').map_or(rest.len(), |i| first_end + i);
        let colon = rest[first_end..segment_end].find(':').map(|i| first_end + i);
        let repo = match colon {
            // Digits before the slash are a port only if there is no user. In `user@host:path` they are a part of the
            // path.
            Some(host_end) if user.is_none() && is_port(&rest[host_end + 1..segment_end]) => {
                path_on(Some(&rest[..host_end]), rest.get(segment_end + 1..).unwrap_or(""))
            }
            Some(host_end) => path_on(Some(&rest[..host_end]), &rest[host_end + 1..]),
            None => {
                let (first, path) = rest.split_once('/').unwrap_or((rest, ""));
                let is_host =
                    user.is_some() || first_end > 0 || first.eq_ignore_ascii_case("localhost") || first.contains('.');
                if is_host { path_on(Some(first), path) } else { path_on(None, rest) }
            }
        };
        repo.ok_or_else(invalid)
    }

    /// Returns the bytes that the name takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::File(path) | Self::Path { host: None, path } => allocation_bytes(path.len()),
            Self::Path { host: Some(host), path } => allocation_bytes(host.len()) + allocation_bytes(path.len()),
        }
    }

    /// Returns true when `self`, an entry of a scope, matches `context`, the caller's repository.
    pub fn admits(&self, context: &Self) -> bool {
        match (self, context) {
            (Self::Path { host: None, path }, Self::Path { path: other, .. }) => path == other,
            _ => self == context,
        }
    }
}

/// Writes the canonical form. [`RepoName::parse`] turns it back into the same value.
impl fmt::Display for RepoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file://{path}"),
            Self::Path { host: None, path } => {
                let prefix = if reads_as_any_host(path) { "" } else { "git:" };
                write!(f, "{prefix}{path}")
            }
            Self::Path { host: Some(host), path } => {
                let prefix = if reads_as_host(host) { "" } else { "https://" };
                write!(f, "{prefix}{host}/{path}")
            }
        }
    }
}

fn reads_as_host(host: &str) -> bool {
    !is_drive(host)
        && !host.contains('@')
        && (host == "localhost" || host.starts_with('[') || (host.contains('.') && !host.contains(':')))
}

fn reads_as_any_host(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or(path);
    first != "localhost" && !first.contains(['.', ':', '@', '[']) && !path.contains("://")
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let valid = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    valid.then_some((scheme, rest))
}

/// Returns the host of `user:password@host:port`.
fn host_of(authority: &str) -> &str {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = if host.starts_with('[') { host.find("]:").map(|i| i + 1) } else { host.find(':') };
    port.map_or(host, |end| &host[..end])
}

/// Returns true when a segment is `..`. A colon or an at sign ends a segment too, as in `host:../x`. Callers call this
/// again after they remove `.git`, because that turns `x:...git` into `x:..`.
fn can_climb(path: &str) -> bool {
    has_parent_segment(&path.replace([':', '@'], "/"))
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn path_on(host: Option<&str>, path: &str) -> Option<RepoName> {
    let mut path = path.to_ascii_lowercase();
    loop {
        // A single round is not enough: `./ x` begins with a space only after the dot is removed.
        let short = trim_git(path.trim_start_matches(['/', ' ']));
        if short == path {
            break;
        }
        path = short;
    }
    let host = host.map(str::to_ascii_lowercase);
    if path.is_empty()
        || path.starts_with(['\\', ':'])
        || can_climb(&path)
        || host.as_deref().is_some_and(|host| !is_host(host))
    {
        return None;
    }
    Some(RepoName::Path { host: host.map(Into::into), path: path.into() })
}

fn is_host(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => {
            !address.is_empty() && address.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, ':' | '.'))
        }
        None => !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.')),
    }
}

fn parse_file_path(path: &str) -> Result<RepoName> {
    let slashes = path.replace('\\', "/");
    let mut path = trim_git(&slashes);
    if is_drive(&path) {
        path.insert(0, '/');
    }
    if !path.starts_with('/') || can_climb(&path) {
        return Err(Error::invalid("A file repo is an absolute path, `file:///path`."));
    }
    Ok(RepoName::File(path.into()))
}

/// Collapses a path, and removes the `.git` of `repo.git` and the spaces and slashes at the end. The loop ends when
/// nothing changes, so the canonical form parses to itself. A last segment that is only `.git` stays.
fn trim_git(path: &str) -> String {
    let mut path = path.to_owned();
    loop {
        let tidy = collapse_path(&path);
        let short = match tidy.len() {
            1 => &tidy,
            _ => tidy.trim_end_matches([' ', '/']),
        };
        let short = match short.strip_suffix(".git") {
            Some(bare) if !bare.is_empty() && !bare.ends_with('/') => bare,
            _ => short,
        };
        if short == path {
            return path;
        }
        path = String::from(short);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        RepoName::parse(text).unwrap().to_string()
    }

    #[test]
    fn canonical_forms() {
        for (text, expected) in [
            ("https://github.com/Org/Repo.git", "github.com/org/repo"),
            ("https://user:pw@github.com:8443/org/repo/", "github.com/org/repo"),
            ("ssh://git@github.com:22/org/repo.git/", "github.com/org/repo"),
            ("git@github.com:org/repo", "github.com/org/repo"),
            ("git@github.com:/org/repo.git", "github.com/org/repo"),
            ("me@gitserver:org/repo", "https://gitserver/org/repo"),
            ("gitserver:org/repo", "https://gitserver/org/repo"),
            ("gitserver:2222/org/repo", "https://gitserver/org/repo"),
            ("git@host.example:2222/org/repo", "host.example/2222/org/repo"),
            ("https://gitserver/org/repo", "https://gitserver/org/repo"),
            ("https://localhost:3000/org/repo", "localhost/org/repo"),
            ("localhost/org/repo", "localhost/org/repo"),
            ("github.com/org/repo", "github.com/org/repo"),
            ("org/repo", "org/repo"),
            ("ORG/Repo.GIT", "org/repo"),
            ("org/x.git.git/", "org/x"),
            ("git: org/x .git", "org/x"),
            ("git:./ org/x", "org/x"),
            ("GIT:Org/Repo", "org/repo"),
            ("h:org/repo", "https://h/org/repo"),
            ("git:org/repo", "org/repo"),
            ("git:my.org/repo", "git:my.org/repo"),
            ("org/group/sub/repo.git", "org/group/sub/repo"),
            ("repo", "repo"),
            ("ssh://git@[::1]:22/org/repo", "[::1]/org/repo"),
            ("file:///srv/Git//./x/", "file:///srv/Git/x"),
            ("file:///srv/x.git", "file:///srv/x"),
            ("/srv/x", "file:///srv/x"),
            ("file://localhost/srv/x", "file:///srv/x"),
            (r"C:\src\x", "file:///C:/src/x"),
            ("file:///C:/src/x", "file:///C:/src/x"),
            ("/home/u/x/.git", "file:///home/u/x/.git"),
        ] {
            assert_eq!(canonical(text), expected, "{text}");
            assert_eq!(canonical(expected), expected);
        }
    }

    #[test]
    fn a_password_never_stays() {
        let word = ["s3cr3t", "Passw0rd"].concat();
        for text in [
            format!("a:{word}@h.example/x/y"),
            format!("https://a:{word}@h.example/x/y"),
            format!("a:{word}@h.example:x/y"),
        ] {
            assert!(
                !RepoName::parse(&text).is_ok_and(
                    |repo| repo.to_string().contains(&word.to_lowercase()) || repo.to_string().contains(&word)
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn hosts() {
        let admits =
            |scope: &str, context: &str| RepoName::parse(scope).unwrap().admits(&RepoName::parse(context).unwrap());
        assert!(admits("org/repo", "git@github.com:ORG/repo.git"));
        assert!(admits("git:org/repo", "org/repo"));
        assert!(admits("github.com/org/repo", "https://x:y@github.com/org/repo"));
        assert!(!admits("github.com/org/repo", "gitlab.com/org/repo"));
        assert!(!admits("github.com/org/repo", "org/repo"));
        assert!(!admits("org/repo", "org/other"));
        assert!(!admits("file:///srv/X", "file:///srv/x"));
        assert!(!admits("srv/x", "file:///srv/x"));
    }

    #[test]
    fn refused() {
        for text in [
            "",
            "   ",
            "https://github.com",
            "https://github.com/",
            "git:",
            "git@host:",
            "file://rel",
            "://x/y",
            "https:///x",
            "git:a:...git",
            "/x@...git",
        ] {
            assert!(RepoName::parse(text).is_err(), "{text}");
        }
        for text in ["file:///a/../b", "org/../x", "git@h:../x", " ..:x", "a\u{1}b/c"] {
            assert_eq!(RepoName::parse(text).unwrap_err().reason(), "E_SCOPE_INVALID", "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        /// Promise (hints): A canonical repository name reads back as itself.
        #[test]
        fn canonical_reads_back(text in "(https://|ssh://|git:|GIT:|file://|)([a-zA-Z.:@/\\[\\]0-2 \\\\-]|\\.git){0,16}") {
            if let Ok(repo) = RepoName::parse(&text) {
                prop_assert_eq!(RepoName::parse(&repo.to_string()), Ok(repo.clone()), "{} -> {}", text, repo);
            }
        }
    }
}
