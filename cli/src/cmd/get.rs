//! `nudge get`

use nudge::Result;
use serde_json::Map;

use super::{add, call, render};
use crate::args::{Get, Global};
use crate::output;

pub fn run(args: Get, global: &Global) -> Result<String> {
    let mut params = Map::new();
    add(&mut params, "component", args.component);
    add(&mut params, "key", args.key);
    add(&mut params, "variant", args.variant);
    render(global, &call(global, "nudge.get_hint", params, Some(&args.here))?, output::found)
}
