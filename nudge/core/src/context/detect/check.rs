//! Values that make git die when they are wrong, whatever was asked of it.
//!
//! `git rev-parse` runs every entry through `git_default_config`, `git remote` through `handle_config`. When a value is
//! not plainly one they accept, the reader returns `Unsure`: git may refuse the value.

use super::config::ConfigEntry;
use super::refs::valid_name;

/// Keys read as booleans.
const BOOLEANS: &[&str] = &[
    "commitgraph.readchangedpaths",
    "core.bare",
    "core.commitgraph",
    "core.filemode",
    "core.fsyncobjectfiles",
    "core.ignorecase",
    "core.ignorestat",
    "core.multipackindex",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.protecthfs",
    "core.protectntfs",
    "core.quotepath",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.trustctime",
    "core.usereplacerefs",
    "core.warnambiguousrefs",
    "feature.experimental",
    "feature.manyfiles",
    "fetch.writecommitgraph",
    "gc.writecommitgraph",
    "index.skiphash",
    "index.sparse",
    "pack.readreverseindex",
    "pack.usebitmapboundarytraversal",
    "pack.usesparse",
    "sparse.expectfilesoutsideofpatterns",
    "user.useconfigonly",
];

/// Keys read as a number, with the range git takes.
const NUMBERS: &[(&str, i64, i64)] = &[
    ("commitgraph.changedpathsversion", -1, 2),
    ("commitgraph.generationversion", 1, 2),
    ("core.bigfilethreshold", 0, 1 << 31),
    ("core.compression", -1, 9),
    ("core.deltabasecachelimit", 0, 1 << 31),
    ("core.loosecompression", -1, 9),
    ("core.maxtreedepth", 0, 1 << 20),
    ("core.packedgitlimit", 0, 1 << 31),
    ("core.packedgitwindowsize", 0, 1 << 31),
    ("core.repositoryformatversion", 0, 1),
    ("index.version", 0, 100),
    ("pack.compression", -1, 9),
    ("pack.packsizelimit", 0, 1 << 31),
];

/// Keys with a fixed set of words; a boolean is fine too where `true` leads
/// the list.
const WORDS: &[(&str, &[&str])] = &[
    ("branch.autosetupmerge", &["true", "always", "inherit", "simple"]),
    ("branch.autosetuprebase", &["never", "local", "remote", "always"]),
    ("core.abbrev", &["true", "auto", "7", "8", "10", "12", "16", "40"]),
    ("core.autocrlf", &["true", "input"]),
    ("core.checkstat", &["default", "minimal"]),
    ("core.createobject", &["link", "rename"]),
    ("core.fsyncmethod", &["fsync", "writeout-only", "batch"]),
    ("core.safecrlf", &["true", "warn"]),
    ("fetch.negotiationalgorithm", &["skipping", "noop", "consecutive", "default"]),
    ("push.default", &["nothing", "matching", "simple", "upstream", "tracking", "current"]),
    ("transfer.credentialsinurl", &["warn", "allow"]),
];

/// Keys that hold a path in which `~user` may have to be looked up.
const PATHS: &[&str] = &["core.attributesfile", "core.excludesfile", "core.hookspath", "mailmap.file"];

/// Keys git validates in a way not repeated here.
const STRANGE: &[&str] = &["core.disambiguate", "core.fsync", "core.whitespace"];

/// Sections in which a key without a value is refused unless it is a boolean.
const STRICT: &[&[u8]] = &[
    b"attr",
    b"author",
    b"branch",
    b"committer",
    b"core",
    b"fetch",
    b"i18n",
    b"include",
    b"includeif",
    b"mailmap",
    b"push",
    b"remote",
    b"safe",
    b"transfer",
    b"url",
    b"user",
];

/// Booleans of `[remote "x"]`.
const REMOTE_BOOLEANS: &[&[u8]] = &[b"mirror", b"prune", b"prunetags", b"skipdefaultupdate", b"skipfetchall"];

/// Returns true when git certainly accepts this entry.
pub(super) fn is_acceptable(entry: &ConfigEntry) -> bool {
    let Some((section, sub, key)) = entry.split_name() else {
        return false;
    };
    let value = entry.value.as_deref();
    if section == b"remote" && sub.is_some() {
        return remote_acceptable(key, value);
    }
    if section == b"branch" && sub == Some(b"") {
        return false;
    }
    if section == b"advice" || (section == b"color" && entry.name.starts_with(b"color.advice")) {
        return parse_boolean(value).is_some();
    }
    let Ok(name) = str::from_utf8(&entry.name) else {
        return value.is_some() || !STRICT.contains(&section);
    };
    if BOOLEANS.contains(&name) {
        return parse_boolean(value).is_some();
    }
    if name == "color.pager" || name == "pager.color" {
        return parse_boolean(value).is_some();
    }
    let Some(value) = value else {
        return !STRICT.contains(&section);
    };
    if let Some(&(_, least, most)) = NUMBERS.iter().find(|row| row.0 == name) {
        return parse_number(value).is_some_and(|n| (least..=most).contains(&n));
    }
    if let Some((_, words)) = WORDS.iter().find(|row| row.0 == name) {
        let word = |w: &&str| w.as_bytes() == value;
        return words.iter().any(word) || (words[0] == "true" && parse_boolean(Some(value)).is_some());
    }
    if PATHS.contains(&name) {
        return !value.starts_with(b"~") && !value.starts_with(b"%(") && !value.starts_with(b":")
            || value.starts_with(b"~/");
    }
    if name == "core.commentchar" || name == "core.commentstring" {
        return !value.is_empty() && !value.contains(&b'\n');
    }
    !STRANGE.contains(&name)
}

fn remote_acceptable(key: &[u8], value: Option<&[u8]>) -> bool {
    if REMOTE_BOOLEANS.contains(&key) {
        return parse_boolean(value).is_some();
    }
    match (key, value) {
        (_, None) => false,
        (b"fetch" | b"push", Some(spec)) => is_plain_refspec(spec),
        _ => true,
    }
}

/// Returns true when `spec` is a refspec of the everyday kind.
fn is_plain_refspec(spec: &[u8]) -> bool {
    let Ok(spec) = str::from_utf8(spec) else {
        return false;
    };
    if let Some(negative) = spec.strip_prefix('^') {
        let hex = negative.bytes().all(|b| b.is_ascii_hexdigit());
        return !hex && valid_name(&negative.replacen('*', "x", 1));
    }
    let spec = spec.strip_prefix('+').unwrap_or(spec);
    let (left, right) = match spec.rsplit_once(':') {
        Some((left, right)) => (left, Some(right)),
        None => (spec, None),
    };
    let stars = |side: &str| side.matches('*').count();
    let valid = |side: &str| valid_name(&side.replacen('*', "x", 1));
    match right {
        None => stars(left) == 0 && valid(left),
        Some(right) => stars(left) == stars(right) && valid(left) && valid(right),
    }
}

/// git's reading of a boolean; `None` where git would die.
pub(super) fn parse_boolean(value: Option<&[u8]>) -> Option<bool> {
    let Some(value) = value else {
        return Some(true);
    };
    let is = |word: &&[u8]| value.eq_ignore_ascii_case(word);
    if [&b"true"[..], b"yes", b"on"].iter().any(is) {
        return Some(true);
    }
    if [&b""[..], b"false", b"no", b"off"].iter().any(is) {
        return Some(false);
    }
    parse_number(value).map(|n| n != 0)
}

/// A plain decimal number with git's `k`, `m`, `g`. Octal, hexadecimal and
/// padded forms, which git takes too, are left to git.
pub(super) fn parse_number(value: &[u8]) -> Option<i64> {
    let text = str::from_utf8(value).ok()?;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        unit if unit.eq_ignore_ascii_case("k") => 1 << 10,
        unit if unit.eq_ignore_ascii_case("m") => 1 << 20,
        unit if unit.eq_ignore_ascii_case("g") => 1 << 30,
        _ => return None,
    };
    let bare = digits.strip_prefix('-').unwrap_or(digits);
    if bare.starts_with('+') || (bare.len() > 1 && bare.starts_with('0')) {
        return None;
    }
    let product = digits.parse::<i64>().ok()?.checked_mul(factor)?;
    i32::try_from(product).ok().map(i64::from)
}

#[cfg(test)]
mod tests {
    use super::super::config::parse_config;
    use super::{is_acceptable, parse_boolean, parse_number};

    #[test]
    fn scalars() {
        assert_eq!(parse_boolean(None), Some(true));
        assert_eq!(parse_boolean(Some(b"")), Some(false));
        assert_eq!(parse_boolean(Some(b"YES")), Some(true));
        assert_eq!(parse_boolean(Some(b"0")), Some(false));
        assert_eq!(parse_boolean(Some(b"2")), Some(true));
        assert_eq!(parse_boolean(Some(b"maybe")), None);
        assert_eq!(parse_number(b"1k"), Some(1024));
        assert_eq!(parse_number(b"-1"), Some(-1));
        for bad in [&b"010"[..], b"", b"k", b"1x", b"+1", b"-", b"99999999999999999999", b"3g"] {
            assert_eq!(parse_number(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn entries() {
        let table = [
            ("[core]bare=maybe", false),
            ("[core]filemode", true),
            ("[core]editor", false),
            ("[core]editor=vi", true),
            ("[core]hookspath=~bob/x", false),
            ("[core]hookspath=~/x", true),
            ("[core]unknown=1", true),
            ("[foo]bar", true),
            ("[remote \"x\"]url", false),
            ("[remote \"x\"]fetch=+refs/heads/*:refs/remotes/x/*", true),
            ("[remote \"x\"]fetch=+refs/pull/*/head:refs/remotes/pr/*", true),
            ("[remote \"x\"]fetch=refs/heads/*", false),
            ("[remote \"x\"]fetch=refs/heads/ *:x", false),
            ("[remote \"x\"]fetch=^refs/heads/wip/*", true),
            ("[remote \"x\"]mirror=perhaps", false),
            ("[push]default=simple", true),
            ("[push]default=odd", false),
            ("[branch \"\"]remote=x", false),
            ("[branch \"m\"]remote=x", true),
            ("[core]compression=11", false),
        ];
        for (text, expected) in table {
            let entries = parse_config(text.as_bytes()).unwrap_or_default();
            assert_eq!(entries.len(), 1, "{text}");
            assert_eq!(is_acceptable(&entries[0]), expected, "{text}");
        }
    }
}
