//! Runs the secret guard on the lines of stdin; prints recall and false alarms by kind. A line is
//! `KIND<tab>secret|harmless|pattern<tab>TEXT as JSON`. From each pattern the program makes credentials.
//! `tests/guard/run` writes the lines.

use std::collections::BTreeMap;
use std::io::{BufRead as _, stdin};
use std::time::{SystemTime, UNIX_EPOCH};

use nudge::SecretGuard;
use rand::SeedableRng as _;
use rand::distr::Distribution as _;
use rand::rngs::StdRng;

/// The number of credentials that are made from one pattern, and the most repetitions if the pattern sets no limit.
const OF_A_PATTERN: usize = 25;
const MAX_REPEAT: u32 = 24;

#[derive(Default)]
struct Count {
    refused: usize,
    all: usize,
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn print(title: &str, counts: &BTreeMap<String, Count>) {
    let total = counts.values().fold((0, 0), |(refused, all), count| (refused + count.refused, all + count.all));
    let share = |refused: usize, all: usize| 100.0 * refused as f64 / all.max(1) as f64;
    println!("{title}: {:.3} % ({} of {})", share(total.0, total.1), total.0, total.1);
    for (kind, Count { refused, all }) in counts {
        println!("  {kind:44} {:8.3} % ({refused} of {all})", share(*refused, *all));
    }
}

fn main() {
    let seed = std::env::var("NUDGE_GUARD_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let seed = seed.unwrap_or_else(now);
    println!("NUDGE_GUARD_SEED={seed}");
    let shows = std::env::var_os("NUDGE_GUARD_SHOW").is_some();
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut secrets, mut harmless) = (BTreeMap::<String, Count>::new(), BTreeMap::<String, Count>::new());
    let mut skipped = 0;
    for line in stdin().lock().lines() {
        let line = line.expect("standard input can be read");
        let [kind, is, text] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else { panic!("three parts: {line}") };
        let text: String = serde_json::from_str(text).expect("a text as JSON");
        let texts = if is == "pattern" {
            let Ok(pattern) = rand_regex::Regex::compile(&text, MAX_REPEAT) else {
                skipped += 1;
                continue;
            };
            pattern.sample_iter(&mut rng).take(OF_A_PATTERN).collect()
        } else {
            vec![text]
        };
        let counts = if is == "harmless" { &mut harmless } else { &mut secrets };
        let count = counts.entry(kind.to_owned()).or_default();
        for text in texts {
            let rule = SecretGuard::new().check(None, &text);
            count.all += 1;
            count.refused += usize::from(rule.is_some());
            if let Some(rule) = rule.filter(|_| shows && is == "harmless") {
                println!("    {kind}, {rule}: {text}");
            }
        }
    }
    print("credentials refused", &secrets);
    print("harmless lines refused", &harmless);
    println!("{skipped} patterns that cannot be made");
}
