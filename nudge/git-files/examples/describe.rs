//! Prints the repository, branch and remote of a folder: `cargo run --package nudge-git-files --example describe DIR`.

use std::path::Path;

use nudge_git_files::{GitAnswer, detect_git};

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    match detect_git(&std::path::absolute(Path::new(&folder)).expect("a folder")) {
        GitAnswer::Inside(info) => {
            println!("{}", info.root.display());
            println!("branch {}", info.branch.as_deref().unwrap_or("unknown"));
            println!("remote {}", if info.remote.is_some() { "origin" } else { "none" });
        }
        GitAnswer::Outside => println!("not in a repository"),
        GitAnswer::Unsure(reason) => println!("ask git: {reason}"),
    }
}
