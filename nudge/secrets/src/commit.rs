//! Recognises hex runs that are commits by the syntax around them: `git checkout SHA`, `github:owner/repository/SHA`,
//! `owner/action@SHA`, `https://forge/owner/repository/commit/SHA`.

use super::classify::is_word_byte;

/// Largest number of bytes between the beginning of a command and a commit in it.
const COMMAND_LIMIT: usize = 256;

/// The subcommands of git that take commits and no secrets.
const VERBS: &[&str] = &[
    "archive",
    "bisect",
    "blame",
    "branch",
    "cat-file",
    "checkout",
    "cherry",
    "cherry-pick",
    "describe",
    "diff",
    "diff-tree",
    "fetch",
    "format-patch",
    "log",
    "ls-tree",
    "merge",
    "merge-base",
    "name-rev",
    "range-diff",
    "rebase",
    "reset",
    "rev-list",
    "rev-parse",
    "revert",
    "show",
    "switch",
    "tag",
    "worktree",
];

/// The options of git whose next word is a text and not a commit.
const TEXTS: &[&str] = &["-S", "-G", "-m", "-F", "--grep", "--author", "--committer", "--message"];

/// The beginnings of a flake reference that has an owner and a repository.
const FORGES: &[&str] = &["github", "gitlab", "sourcehut"];

/// The folders that come directly before a commit in a URL of a forge.
const VIEWS: &[&[u8]] = &[b"commit", b"commits", b"blob", b"tree", b"raw", b"blame"];
/// The forge whose URLs of files have no such folder before the commit.
const RAW_FORGE: &[u8] = b"://raw.githubusercontent.com";

/// Returns true when the syntax around the `length` hex digits at `start` shows that they are a complete commit. The
/// function reads a bounded number of bytes.
pub(super) fn is_commit(text: &str, start: usize, length: usize) -> bool {
    if !matches!(length, 40 | 64) {
        return false;
    }
    let (before, after) = (&text.as_bytes()[..start], &text.as_bytes()[start + length..]);
    is_flake(before, after) || is_action(before, after) || is_revision(before, after) || is_in_forge(before, after)
}

/// Returns true for letters, digits, and the punctuation in names of owners, repositories and folders.
fn is_name_byte(b: u8) -> bool {
    is_word_byte(&b) || matches!(b, b'-' | b'.' | b'~')
}

/// Removes `mark` and the name before it from the end of the bytes; `None` if there are none.
fn strip_name(bytes: &[u8], mark: u8) -> Option<&[u8]> {
    let rest = bytes.strip_suffix(&[mark])?;
    let name = rest.iter().rev().take(COMMAND_LIMIT).take_while(|b| is_name_byte(**b)).count();
    (name > 0).then(|| &rest[..rest.len() - name])
}

/// Returns true at the edge of a word. An edge is the end of the text, a blank, a quote, a bracket, a comma or a
/// semicolon.
fn is_edge(b: Option<&u8>) -> bool {
    b.is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b',' | b';' | b'(' | b')'))
}

/// Returns true for `github:owner/repository/SHA`.
fn is_flake(before: &[u8], after: &[u8]) -> bool {
    let forge =
        strip_name(before, b'/').and_then(|rest| strip_name(rest, b'/')).and_then(|rest| rest.strip_suffix(b":"));
    forge.is_some_and(|head| {
        FORGES
            .iter()
            .any(|forge| head.strip_suffix(forge.as_bytes()).is_some_and(|rest| !rest.last().is_some_and(is_word_byte)))
    }) && (is_edge(after.first()) || matches!(after.first(), Some(b'#' | b'?')))
}

/// Returns true for the word `owner/action@SHA`, and also for `owner/action/folder@SHA`.
fn is_action(before: &[u8], after: &[u8]) -> bool {
    let Some(word) = before.strip_suffix(b"@") else {
        return false;
    };
    let path = word.iter().rev().take(COMMAND_LIMIT).take_while(|b| is_name_byte(**b) || **b == b'/').count();
    let (head, path) = word.split_at(word.len() - path);
    let mut names = path.split(|b| *b == b'/');
    path.contains(&b'/') && names.all(|name| !name.is_empty()) && is_edge(head.last()) && is_edge(after.first())
}

/// Returns true for `https://github.com/owner/repository/blob/SHA/README.md`.
fn is_in_forge(before: &[u8], after: &[u8]) -> bool {
    let Some(path) =
        before.strip_suffix(b"/").filter(|_| !after.first().is_some_and(|b| is_word_byte(b) || *b == b'-'))
    else {
        return false;
    };
    let length = path.iter().rev().take(COMMAND_LIMIT).take_while(|b| is_name_byte(**b) || b"/:+".contains(b)).count();
    let address = &path[path.len() - length..];
    let Some(scheme) = address.windows(3).position(|part| part == b"://") else {
        return false;
    };
    let mut folders = address[scheme + 3..].split(|b| *b == b'/');
    // In these URLs, exactly the host, the owner and the repository come before the commit.
    let is_raw = address[scheme..].starts_with(RAW_FORGE) && folders.clone().count() == 3;
    is_raw || folders.nth(2).is_some() && folders.next_back().is_some_and(|folder| VIEWS.contains(&folder))
}

/// Returns true when a git command on this line takes a revision here: `git checkout SHA`, `git diff SHA..SHA`, `git
/// show SHA:FILE`.
fn is_revision(before: &[u8], after: &[u8]) -> bool {
    let ends = is_edge(after.first())
        || matches!(after.first(), Some(b'^' | b'~' | b':'))
        || after.starts_with(b"..")
        || after.starts_with(b"@{");
    let head = &before[before.len().saturating_sub(COMMAND_LIMIT)..];
    let start = head
        .iter()
        .rposition(|b| matches!(b, b'\n' | b'\r' | b';' | b'|' | b'&' | b'`' | b'(' | b'"' | b'\''))
        .map_or(0, |i| i + 1);
    let Some(line) = std::str::from_utf8(&head[start..]).ok().filter(|_| ends) else {
        return false;
    };
    // Splits off the beginning of the commit's own word, such as `HEAD..` or `^`.
    let (line, word) = line.rsplit_once([' ', '\t']).unwrap_or(("", line));
    if !(word.is_empty() || word == "^" || word.ends_with("..")) {
        return false;
    }
    let mut words = line.split_ascii_whitespace().skip_while(|word| !matches!(word.rsplit('/').next(), Some("git")));
    if words.next().is_none() {
        return false;
    }
    // Skips the options of git itself: `-C FOLDER`, `-c NAME=VALUE`, `--no-pager`.
    let mut verb = words.next();
    while let Some(option) = verb.filter(|word| word.starts_with('-')) {
        verb = if matches!(option, "-C" | "-c") { words.nth(1) } else { words.next() };
    }
    verb.is_some_and(|verb| VERBS.contains(&verb)) && !words.last().is_some_and(|word| TEXTS.contains(&word))
}
