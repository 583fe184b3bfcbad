//! Chooses the commands from a repository's files that a start suggests: one each to test, build, run and lint
//! (semantics section 10). An agent can read the other commands in their files, so only a matching prompt suggests
//! them.

use std::cmp::Reverse;

use crate::hint::Hint;
use crate::store::HintHit;

/// The purposes. Each has the names of commands for it, with the most usual name first.
const PURPOSES: [&[&str]; 4] =
    [&["test", "tests", "check"], &["build", "compile"], &["dev", "start", "run", "serve"], &["lint", "clippy"]];

/// Returns at most one command for each purpose. The command comes from the innermost folder that has one for this
/// purpose, and has the name that fits the purpose best.
pub(super) fn choose_usual(mut found: Vec<HintHit>) -> Vec<HintHit> {
    let mut usual = Vec::new();
    for names in PURPOSES {
        let serving = found.iter().enumerate().filter_map(|(place, found)| {
            let fit = weigh_name(&found.hint, names)?;
            Some(((Reverse(folder_depth(&found.hint)), fit, found.hint.key()), place))
        });
        if let Some((_, place)) = serving.min() {
            usual.push(found.swap_remove(place));
        }
    }
    usual
}

/// Returns how well a hint's name fits a purpose; smaller is better. The whole name (`npm.test`) is best, then the
/// beginning of the name (`npm.test-unit`), then a tag. `None` if none of them fits.
fn weigh_name(hint: &Hint, names: &[&str]) -> Option<(u8, usize)> {
    let key = hint.key();
    let name = key.split_once('.').map_or(key, |(_, name)| name);
    let is_whole = |word: &&str| name.eq_ignore_ascii_case(word);
    let begins = |word: &&str| {
        let (head, rest) = (name.get(..word.len()), name.get(word.len()..));
        head.is_some_and(|head| head.eq_ignore_ascii_case(word))
            && rest.is_some_and(|rest| rest.starts_with(['-', ':', '_', '.']))
    };
    let is_tag = |word: &&str| hint.tags().any(|tag| tag == *word);
    let place = |is_so: &dyn Fn(&&str) -> bool| names.iter().position(is_so);
    place(&is_whole)
        .map(|place| (0, place))
        .or_else(|| place(&begins).map(|place| (1, place)))
        .or_else(|| place(&is_tag).map(|place| (2, place)))
}

/// Returns the number of folders in the deepest folder pattern of a hint's scope.
fn folder_depth(hint: &Hint) -> usize {
    let depth = |glob: &str| glob.split('/').filter(|part| *part != "**" && !part.is_empty()).count();
    hint.scope().to_spec().cwd_glob.iter().map(|glob| depth(glob)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Nudge, SetHint, SuggestEvent, SuggestParams};

    /// Returns a store with these commands of a repository's files.
    fn store_seeds(seeds: &[(&str, &str, &str)]) -> Nudge {
        let nudge = Nudge::default();
        for (folder, key, tag) in seeds {
            let globs = if folder.is_empty() { json!([]) } else { json!([format!("**/{folder}/**")]) };
            let params = json!({
                "component": if folder.is_empty() { "shop" } else { folder }, "key": key,
                "value": {"type": "command", "cmd": format!("do {folder} {key}")},
                "meta": {"priority": 2, "source": "file-import", "tags": [tag], "scope": {"repo": "acme/shop", "cwd_glob": globs}},
            });
            nudge.set(serde_json::from_value::<SetHint>(params).unwrap()).unwrap();
        }
        nudge
    }

    /// Returns the names that an event suggests in a folder of the repository.
    fn list_told(nudge: &Nudge, cwd: &str, mut event: SuggestParams) -> Vec<String> {
        event.context = event.context.cwd(cwd).repo("acme/shop");
        let told = nudge.suggest(event).unwrap();
        told.suggestions.into_iter().map(|line| line.name).collect()
    }

    #[test]
    fn a_start_tells_how_to_test_build_run_and_lint_and_no_more() {
        let seeds = [
            ("", "npm.ci-publish", "release"),
            ("", "npm.build", "build"),
            ("", "npm.test-build", "test"),
            ("", "npm.test", "test"),
            ("", "npm.lint", "lint"),
            ("", "npm.docs", "docs"),
            ("", "npm.start", "run"),
            ("", "npm.dev", "run"),
            ("packages/web", "npm.build", "build"),
            ("packages/web", "npm.e2e", "test"),
        ];
        let keys = |cwd| {
            let mut keys = list_told(&store_seeds(&seeds), cwd, SuggestParams::at_event(SuggestEvent::Start));
            keys.sort_unstable();
            keys
        };
        assert_eq!(keys("/w/shop"), ["shop/npm.build", "shop/npm.dev", "shop/npm.lint", "shop/npm.test"]);
        let web_keys = ["packages/web/npm.build", "packages/web/npm.e2e", "shop/npm.dev", "shop/npm.lint"];
        assert_eq!(keys("/w/shop/packages/web/src"), web_keys);
    }

    #[test]
    fn a_path_in_a_prompt_asks_for_no_command_of_its_folder() {
        let nudge = store_seeds(&[("", "npm.admin", "release"), ("", "npm.docs", "docs")]);
        let ask = |text: &str| {
            let prompt = SuggestParams { prompt: Some(text.into()), ..SuggestParams::at_event(SuggestEvent::Prompt) };
            list_told(&nudge, "/w/shop", prompt)
        };
        assert!(ask("translate the two comments in shop/retrieve.py").is_empty());
        assert_eq!(ask("how are the docs built?"), ["shop/npm.docs"]);
    }
}
