//! Reads refs from files: `HEAD`, loose refs and `packed-refs`, as git's `refs.c` and `refs/files-backend.c` do.
//! Returns the short name that `git rev-parse --abbrev-ref HEAD` prints, or, before the first commit, `git symbolic-ref
//! --short HEAD`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::config::is_space;
use super::probe::{DetectStop, FILE_MAX_BYTES, FileProbe, FileText, PACKED_MAX_BYTES, PathKind, PathSight, Res};

/// The most symbolic refs that git follows in a row.
const HOPS_MAX: usize = 5;

/// The full names that a short name may mean, in git's order. Each rule is the text before and after the short name.
const RULES: [(&str, &str); 6] = [
    ("", ""),
    ("refs/", ""),
    ("refs/tags/", ""),
    ("refs/heads/", ""),
    ("refs/remotes/", ""),
    ("refs/remotes/", "/HEAD"),
];
/// The index of the rule by which a name means itself.
const NAME_RULE: usize = 0;
/// The index of the rule by which a name means a branch.
const BRANCH_RULE: usize = 3;

/// The content of one ref file.
enum RefContent {
    Missing,
    /// The file exists, but cannot be read as a ref.
    Broken,
    Object,
    Symbolic(String),
}

/// The end of a chain of symbolic refs.
struct ResolvedRef {
    name: String,
    /// Is true when the last ref exists.
    exists: bool,
    /// Is true when at least one ref of the chain is symbolic.
    symbolic: bool,
}

/// The refs of one repository, for one answer.
pub(super) struct RepoRefs<'a> {
    git_dir: &'a Path,
    common: &'a Path,
    /// The number of hexadecimal digits of an object name: 40 or 64.
    hex_len: usize,
    packed: Option<PackedRefs>,
    /// Refs under `refs/remotes` that have no file. A ref below such a name has no file either.
    fileless: Vec<String>,
}

impl<'a> RepoRefs<'a> {
    pub(super) fn new(git_dir: &'a Path, common: &'a Path, hex_len: usize) -> Self {
        Self { git_dir, common, hex_len, packed: None, fileless: Vec::new() }
    }

    /// Returns the branch, or `HEAD` when it is detached; `None` when git prints no name. Fails if only git can tell
    /// the answer: when `HEAD` points to a ref that is no branch, or when another ref makes the short name ambiguous.
    pub(super) fn name_head(&mut self, probe: &mut FileProbe) -> Res<Option<String>> {
        self.check_unrivalled(probe, "HEAD", NAME_RULE)?;
        let Some(head) = self.resolve_ref(probe, "HEAD")?.filter(|head| head.exists || head.symbolic) else {
            return Ok(None);
        };
        if !head.symbolic {
            return Ok(Some(head.name));
        }
        let Some(short) = head.name.strip_prefix(RULES[BRANCH_RULE].0) else {
            return Err(DetectStop::Unsure("HEAD is on no branch"));
        };
        self.check_unrivalled(probe, short, BRANCH_RULE)?;
        Ok(Some(short.to_owned()))
    }

    /// Fails when a short name also means another ref by a rule other than `own`.
    fn check_unrivalled(&mut self, probe: &mut FileProbe, short: &str, own: usize) -> Res<()> {
        for (_, (before, after)) in RULES.iter().enumerate().filter(|(rule, _)| *rule != own) {
            if self.ref_exists(probe, &format!("{before}{short}{after}"))? {
                return Err(DetectStop::Unsure("a second ref has the name"));
            }
        }
        Ok(())
    }

    fn ref_exists(&mut self, probe: &mut FileProbe, name: &str) -> Res<bool> {
        Ok(self.resolve_ref(probe, name)?.is_some_and(|found| found.exists))
    }

    /// Follows the symbolic refs from `name`. `None` when one of them is no valid ref for git.
    fn resolve_ref(&mut self, probe: &mut FileProbe, name: &str) -> Res<Option<ResolvedRef>> {
        let mut found = ResolvedRef { name: name.to_owned(), exists: false, symbolic: false };
        for _ in 0..HOPS_MAX {
            if !valid_name(&found.name) {
                return Ok(None);
            }
            match self.read_ref(probe, &found.name)? {
                RefContent::Missing => return Ok(Some(found)),
                RefContent::Broken => return Ok(None),
                RefContent::Object => {
                    found.exists = true;
                    return Ok(Some(found));
                }
                RefContent::Symbolic(next) => {
                    found.symbolic = true;
                    found.name = next;
                }
            }
        }
        Ok(None)
    }

    /// Returns the file of a ref, in the worktree's folder or in the shared folder.
    fn ref_path(&self, name: &str) -> Res<PathBuf> {
        if name.starts_with("worktrees/") || name.starts_with("main-worktree/") {
            return Err(DetectStop::Unsure("a ref of another worktree"));
        }
        let root = |b: u8| b.is_ascii_uppercase() || b == b'-' || b == b'_';
        let own = name.bytes().all(root)
            || ["refs/worktree/", "refs/bisect/", "refs/rewritten/"].iter().any(|prefix| name.starts_with(prefix));
        Ok(if own { self.git_dir } else { self.common }.join(name))
    }

    fn read_ref(&mut self, probe: &mut FileProbe, name: &str) -> Res<RefContent> {
        let path = self.ref_path(name)?;
        let below = |upper: &String| name.strip_prefix(upper.as_str()).is_some_and(|rest| rest.starts_with('/'));
        if self.fileless.iter().any(below) {
            return self.find_packed(probe, name);
        }
        let stamp = match probe.lstat(&path) {
            PathSight::Absent => {
                if name.starts_with("refs/remotes/") {
                    self.fileless.push(name.to_owned());
                }
                return self.find_packed(probe, name);
            }
            // Git does not search the packed refs in this case.
            PathSight::NotDir => return Ok(RefContent::Missing),
            PathSight::Denied | PathSight::Broken => {
                return Err(DetectStop::Unsure("a ref cannot be looked at"));
            }
            PathSight::There(stamp) => stamp,
        };
        let text = match stamp.kind {
            PathKind::Dir => return self.find_packed(probe, name),
            PathKind::Link => {
                let target = FileProbe::read_link(&path)?;
                if target.starts_with("refs/") && valid_name(&target) {
                    return Ok(RefContent::Symbolic(target));
                }
                probe.read(&path, FILE_MAX_BYTES)?
            }
            // For a branch with the name `index`, git reads `.git/index`, which may be large.
            PathKind::File if !name.starts_with("refs/") && name != "HEAD" => {
                probe.read_seen(&path, &stamp, PACKED_MAX_BYTES)?
            }
            PathKind::File | PathKind::Other => probe.read_seen(&path, &stamp, FILE_MAX_BYTES)?,
        };
        match text {
            FileText::Bytes(bytes) => self.parse_ref(&bytes),
            FileText::Absent | FileText::Denied => Err(DetectStop::Unsure("a ref cannot be read")),
        }
    }

    fn parse_ref(&self, bytes: &[u8]) -> Res<RefContent> {
        let text = trim_end(bytes);
        if let Some(target) = text.strip_prefix(b"ref:") {
            let start = target.iter().position(|&b| !is_space(b));
            let target = target.get(start.unwrap_or(target.len())..).unwrap_or(&[]);
            if target.contains(&0) {
                return Err(DetectStop::Unsure("a NUL byte in a ref"));
            }
            return match str::from_utf8(target) {
                Ok(target) => Ok(RefContent::Symbolic(target.to_owned())),
                Err(_) => Err(DetectStop::Unsure("a ref name is not UTF-8")),
            };
        }
        let digits = text.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let ends = |index: usize| text.get(index).is_none_or(|&b| b == 0 || is_space(b));
        Ok(if digits >= self.hex_len && ends(self.hex_len) { RefContent::Object } else { RefContent::Broken })
    }

    fn find_packed(&mut self, probe: &mut FileProbe, name: &str) -> Res<RefContent> {
        if self.packed.is_none() {
            self.packed = Some(PackedRefs::open(probe, self.common, self.hex_len)?);
        }
        let holds = match &self.packed {
            Some(packed) => packed.has_ref(name.as_bytes())?,
            None => false,
        };
        Ok(if holds { RefContent::Object } else { RefContent::Missing })
    }
}

/// The `packed-refs` file.
struct PackedRefs {
    bytes: Arc<[u8]>,
    /// The offset of the first record, after the header.
    start: usize,
    sorted: bool,
    hex_len: usize,
}

impl PackedRefs {
    fn open(probe: &mut FileProbe, common: &Path, hex_len: usize) -> Res<Self> {
        let bytes = match probe.read(&common.join("packed-refs"), PACKED_MAX_BYTES)? {
            FileText::Bytes(bytes) => bytes,
            FileText::Absent => Arc::from([]),
            FileText::Denied => return Err(DetectStop::Unsure("packed-refs cannot be read")),
        };
        let mut packed = Self { bytes, start: 0, sorted: false, hex_len };
        let malformed = Err(DetectStop::Unsure("packed-refs is malformed"));
        if packed.bytes.first() == Some(&b'#') {
            let Some(end) = packed.bytes.iter().position(|&b| b == b'\n') else {
                return malformed;
            };
            let Some(traits) = packed.bytes[..end].strip_prefix(b"# pack-refs with:") else {
                return malformed;
            };
            packed.sorted = traits.split(|&b| b == b' ').any(|word| word == b"sorted");
            packed.start = end + 1;
        }
        let whole = packed.bytes.len() == packed.start || packed.bytes.last() == Some(&b'\n');
        if whole { Ok(packed) } else { malformed }
    }

    fn has_ref(&self, name: &[u8]) -> Res<bool> {
        let records = self.bytes.get(self.start..).unwrap_or(&[]);
        if self.sorted { self.search_sorted(records, name) } else { self.scan_records(records, name) }
    }

    /// Returns the name of the ref in a record. `line` is the record without its line feed.
    fn name_in<'l>(&self, line: &'l [u8]) -> Res<&'l [u8]> {
        let hex = line.get(..self.hex_len).is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit));
        match line.get(self.hex_len..) {
            Some([b' ', name @ ..]) if hex => Ok(name),
            _ => Err(DetectStop::Unsure("packed-refs is malformed")),
        }
    }

    /// Searches in the same way as git, so that the result is the same even if the file claims to be sorted but is not.
    fn search_sorted(&self, records: &[u8], name: &[u8]) -> Res<bool> {
        let starts =
            |offset: usize| offset == 0 || (records[offset - 1] == b'\n' && records.get(offset) != Some(&b'^'));
        let (mut low, mut high) = (0, records.len());
        while low != high {
            let middle = low + (high - low) / 2;
            let mut record = middle;
            while record > low && !starts(record) {
                record -= 1;
            }
            let rest = &records[record..];
            let end = rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
            match self.name_in(&rest[..end])?.cmp(name) {
                std::cmp::Ordering::Equal => return Ok(true),
                std::cmp::Ordering::Greater => high = record,
                std::cmp::Ordering::Less => {
                    low = middle + 1;
                    while low < high && !starts(low) {
                        low += 1;
                    }
                }
            }
        }
        Ok(false)
    }

    fn scan_records(&self, records: &[u8], name: &[u8]) -> Res<bool> {
        let mut found = false;
        for line in records.split(|&b| b == b'\n') {
            if line.is_empty() || line[0] == b'^' {
                continue;
            }
            found |= self.name_in(line)? == name;
        }
        Ok(found)
    }
}

/// Does the work of git's `check_refname_format` with the flag that allows one level.
fn valid_name(name: &str) -> bool {
    name != "@" && !name.ends_with('.') && name.split('/').all(valid_component)
}

fn valid_component(part: &str) -> bool {
    let forbidden = |b: u8| b <= b' ' || b == 0x7f || b"*:?[\\^~".contains(&b);
    !part.is_empty()
        && !part.starts_with('.')
        && part.strip_suffix(".lock").is_none()
        && !part.contains("..")
        && !part.contains("@{")
        && !part.bytes().any(forbidden)
}

/// Returns the text without white space at the end (git's `strbuf_rtrim`).
fn trim_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&b| !is_space(b)).map_or(0, |last| last + 1);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::{PackedRefs, valid_name};

    #[test]
    fn names() {
        for good in ["HEAD", "a/b", "refs/heads/feature/x", "ünï", "a-b", "@x", "x@", "a.b"] {
            assert!(valid_name(good), "{good}");
        }
        for bad in [
            "", "@", "/a", "a/", "a//b", ".a", "a/.b", "a..b", "a.lock", "a.lock/b", "a b", "a~b", "a^", "a:b", "a?",
            "a*", "[a", "a\\b", "a@{b", "a.", "a\u{7f}", "a\nb", "../x",
        ] {
            assert!(!valid_name(bad), "{bad}");
        }
    }

    #[test]
    fn packed_search() {
        let object = "0123456789abcdef0123456789abcdef01234567";
        let mut names: Vec<String> = (0..50).map(|n| format!("refs/heads/b{}", n * 7)).collect();
        names.sort();
        for sorted in [true, false] {
            let mut text = String::new();
            for (index, name) in names.iter().enumerate() {
                text.push_str(&[object, " ", name, "\n"].concat());
                if index % 3 == 0 {
                    text.push_str(&["^", object, "\n"].concat());
                }
            }
            let packed = PackedRefs { bytes: text.as_bytes().into(), start: 0, sorted, hex_len: 40 };
            for name in &names {
                assert_eq!(packed.has_ref(name.as_bytes()), Ok(true), "{name}");
                assert_eq!(packed.has_ref(format!("{name}x").as_bytes()), Ok(false));
            }
            assert_eq!(packed.has_ref(b""), Ok(false));
            assert_eq!(packed.has_ref(b"a"), Ok(false));
            assert_eq!(packed.has_ref(b"z"), Ok(false));
        }
    }
}
