//! Measures the index of a project: `nudge-code-measure PROJECT`. Prints times in milliseconds, which hold for this
//! machine and this build.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use nudge_code::SOURCE;
use nudge_core::error::Result;
use nudge_core::source::{DataDir, Source, SourceHost};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    let Some(project) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err("nudge-code-measure PROJECT".into());
    };
    let caches = tempfile::tempdir()?;
    for what in ["cold", "warm"] {
        let source = open(caches.path())?;
        let begun = Instant::now();
        let status = ask(&*source, &project, "status", json!({}))?;
        println!("{what:<22} {:>9.1}", begun.elapsed().as_secs_f64() * 1e3);
        if what == "warm" {
            let begun = Instant::now();
            ask(&*source, &project, "search", json!({"query": "why does the test fail"}))?;
            println!("{:<22} {:>9.1}", "first search", begun.elapsed().as_secs_f64() * 1e3);
            let searched = ask(&*source, &project, "status", json!({}))?;
            let [files, nodes, memory] =
                ["files", "nodes", "memory"].map(|name| status[name].as_u64().unwrap_or_default());
            let nodes = nodes.max(1);
            let with_texts = searched["memory"].as_u64().unwrap_or_default() / nodes;
            println!("{files} files, {nodes} nodes, {} bytes a node, {with_texts} after a search", memory / nodes);
            calls(&*source, &project)?;
        }
        source.close();
    }
    Ok(())
}

/// Measures the time of calls to several methods.
fn calls(source: &dyn Source, project: &Path) -> Result<(), Failed> {
    let found = ask(source, project, "search", json!({"query": "get", "limit": 100}))?;
    let ids: Vec<_> = found["nodes"].as_array().into_iter().flatten().map(|node| node["id"].clone()).collect();
    let each = |name: &str, verb: &str, params: &[Value]| -> Result<(), Failed> {
        let mut took = Vec::new();
        for _ in 0..5 {
            for params in params {
                let begun = Instant::now();
                ask(source, project, verb, params.clone())?;
                took.push(begun.elapsed().as_secs_f64() * 1e3);
            }
        }
        took.sort_by(f64::total_cmp);
        let percentile = |part: usize| took.get(took.len() * part / 100).copied().unwrap_or_default();
        println!("{name:<22} {:>9.3} p50 {:>9.3} p99", percentile(50), percentile(99));
        Ok(())
    };
    let queries = [
        "get",
        "parse",
        "test",
        "read file",
        "http server handler",
        "x",
        "set_value",
        "GetItem",
        "zzzz",
        "why is the cookie dropped when the session is empty?",
    ];
    each("search", "search", &queries.map(|query| json!({"query": query})))?;
    each("node", "node", &ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>())?;
    let prompts = [
        "why does parse_args() fail?",
        "please fix the failing test and write a README",
        "read the file of the server",
    ];
    each("context", "context", &prompts.map(|prompt| json!({"prompt": prompt})))
}

fn ask(source: &dyn Source, project: &Path, verb: &str, mut params: Value) -> Result<Value, Failed> {
    params["context"] = json!({"cwd": project});
    let said = source.call(&format!("nudge.code.{verb}"), &to_raw_value(&params)?)?;
    Ok(serde_json::from_str(said.get())?)
}

fn open(caches: &Path) -> Result<Arc<dyn Source>> {
    (SOURCE.open)(SourceHost { cache: DataDir::new(caches), ..SourceHost::new_alone(caches, &SOURCE, &[])? })
}
