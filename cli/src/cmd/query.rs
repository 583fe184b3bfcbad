//! `nudge query`

use nudge::Result;
use serde_json::{Map, Value};

use super::{add, call, render};
use crate::args::{Global, Query};
use crate::output;

pub fn run(args: Query, global: &Global) -> Result<String> {
    let mut params = Map::new();
    add(&mut params, "component", args.component);
    add(&mut params, "keys", args.keys);
    add(&mut params, "tags", args.tags);
    add(&mut params, "regex", args.regex);
    add(&mut params, "limit", args.limit);
    add(&mut params, "include_ineligible", args.all.then_some(Value::Bool(true)));
    render(global, &call(global, "nudge.query", params, Some(&args.here))?, output::rows)
}
