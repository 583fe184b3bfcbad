//! `nudge set`

use std::collections::BTreeMap;

use nudge::Result;
use serde_json::{Map, Value};

use super::{add, call, render, text_or_stdin};
use crate::args::{Global, Set};
use crate::output;

pub fn run(args: Set, global: &Global) -> Result<String> {
    let mut scope = Map::new();
    add(&mut scope, "cwd_glob", args.scope_cwd_glob);
    add(&mut scope, "repo", args.scope_repo);
    add(&mut scope, "branch", args.scope_branch);
    add(&mut scope, "os", args.scope_os);
    add(&mut scope, "env_required", args.scope_env_required);
    let mut env: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in args.scope_env {
        env.entry(name).or_default().push(value);
    }
    add(&mut scope, "env_match", env.into_iter().map(|(name, values)| (name, values.into())).collect::<Map<_, _>>());
    let mut meta = Map::new();
    add(&mut meta, "reason", args.reason);
    add(&mut meta, "tags", args.tags.into_iter().filter(|tag| !tag.is_empty()).collect::<Vec<_>>());
    add(&mut meta, "priority", args.priority);
    add(&mut meta, "confidence", args.confidence);
    add(&mut meta, "ttl", args.ttl);
    add(&mut meta, "sensitivity", args.secret.then_some("secret"));
    add(&mut meta, "scope", scope);
    add(&mut meta, "source", "user");
    let mut params = Map::new();
    add(&mut params, "component", args.component);
    add(&mut params, "key", args.key);
    add(&mut params, "value", text_or_stdin(args.value)?);
    add(&mut params, "meta", meta);
    add(&mut params, "variant", args.variant);
    add(&mut params, "if_match_version", args.if_match_version);
    add(&mut params, "allow_secret", args.allow_secret.then_some(Value::Bool(true)));
    render(global, &call(global, "nudge.set_hint", params, None)?, output::stored)
}
