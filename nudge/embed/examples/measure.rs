//! Measures the costs of a model: the time to load it, the time to make vectors, the memory, and the precision that
//! rounding loses.
//!
//! ```sh
//! cargo run --release -p nudge-embed --example measure FOLDER [rounded|full]
//! ```
//!
//! The program uses one thread, and prints the median and the fastest of the runs. It reports the memory of the whole
//! process, on Linux only.

use std::path::Path;
use std::time::Instant;

use nudge_core::embed::TextEmbedder as _;
use nudge_embed::{Precision, SentenceModel};

/// Prose with some names and numbers, like the texts of records.
const WORDS: &str = "the mutable borrow from entry lived through the callback so clone the handle first and drop the \
                     guard before it is called again because SQLite answers busy after 5000 milliseconds when two \
                     servers open the same file and one of them migrates the schema under the lock ";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().ok_or("name the folder of a model")?;
    let precision = match arguments.next().as_deref().and_then(|word| word.to_str()) {
        None | Some("rounded") => Precision::Rounded,
        Some("full") => Precision::Full,
        Some(_) => return Err("the precision is `rounded` or `full`".into()),
    };
    let before = kib("VmRSS:");
    let begun = Instant::now();
    let model = SentenceModel::load(Path::new(&folder), precision)?;
    println!("{}: {} numbers, loaded in {:.0} ms", model.id(), model.dims(), begun.elapsed().as_secs_f64() * 1e3);
    let long = WORDS.repeat(12);
    for tokens in [5, 75, model.max_tokens()] {
        let text = text_of(&model, &long, tokens);
        let mut times: Vec<f64> = (0..40)
            .map(|_| {
                let begun = Instant::now();
                model.embed(&[text]).map(|_| begun.elapsed().as_secs_f64() * 1e3)
            })
            .collect::<Result<_, _>>()?;
        times.sort_by(f64::total_cmp);
        println!("{:>4} tokens: {:.1} ms, at best {:.1} ms", tokens + 2, times[times.len() / 2], times[0]);
    }
    if let (Some(before), Some(loaded)) = (before, kib("VmRSS:")) {
        print!("memory: {:.1} MiB before, {:.1} with the model", mebibytes(before), mebibytes(loaded));
        drop(model);
        let [after, most] = ["VmRSS:", "VmHWM:"].map(|name| mebibytes(kib(name).unwrap_or_default()));
        println!(", {after:.1} after it, {most:.1} at most");
    }
    Ok(())
}

/// Returns the longest beginning of `text` that has at most `tokens` tokens.
fn text_of<'a>(model: &SentenceModel, text: &'a str, tokens: usize) -> &'a str {
    let ends = text.match_indices(' ').map(|(i, _)| &text[..i]);
    let mut fits = text;
    for part in ends {
        if model.count_tokens(part) > tokens {
            break;
        }
        fits = part;
    }
    fits
}

/// Returns a memory figure of this process in KiB: `VmRSS` is the resident memory now, `VmHWM` the highest so far.
/// Returns `None` on systems other than Linux.
fn kib(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[allow(clippy::cast_precision_loss, reason = "it is printed with one decimal")]
fn mebibytes(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
