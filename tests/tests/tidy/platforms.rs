//! What of the sources is for other systems than Linux: it is compiled, and run by the hosted workflow alone.

use std::collections::BTreeSet;

use super::map::is_rust;
use super::{files, read};

/// What begins code that Linux does not compile, or does not take.
const ELSEWHERE: [&str; 6] = [
    "cfg(windows",
    "cfg(not(unix",
    "cfg!(windows",
    "target_os = \"macos\"",
    "target_vendor = \"apple\"",
    "cfg(any(windows",
];

#[test]
fn code_for_other_systems_is_listed() {
    let page = read("ARCHITECTURE.md");
    let list = page.split("## Other systems\n").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("a section");
    let listed: BTreeSet<_> =
        list.split('`').skip(1).step_by(2).filter(|name| is_rust(name)).map(str::to_owned).collect();
    let is_ours = |name: &String| is_rust(name) && name.contains("/src/");
    let there =
        files().into_iter().filter(is_ours).filter(|name| ELSEWHERE.iter().any(|mark| read(name).contains(mark)));
    assert_eq!(listed, there.collect(), "ARCHITECTURE.md, Other systems");
}
