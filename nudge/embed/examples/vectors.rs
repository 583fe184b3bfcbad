//! Prints the vector of each line of standard input as a JSON array of numbers, one array on a line.
//!
//! ```sh
//! cargo run --release -p nudge-embed --example vectors FOLDER [rounded|full] < texts
//! ```

use std::io::Write as _;
use std::path::Path;

use nudge_core::embed::TextEmbedder as _;
use nudge_embed::{Precision, SentenceModel};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().ok_or("name the folder of a model")?;
    let precision = match arguments.next().as_deref().and_then(|word| word.to_str()) {
        None | Some("rounded") => Precision::Rounded,
        Some("full") => Precision::Full,
        Some(_) => return Err("the precision is `rounded` or `full`".into()),
    };
    let model = SentenceModel::load(Path::new(&folder), precision)?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lines() {
        let vectors = model.embed(&[&line?])?;
        serde_json::to_writer(&mut out, &vectors[0])?;
        writeln!(out)?;
    }
    Ok(())
}
