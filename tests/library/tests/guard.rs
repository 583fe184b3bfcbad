//! Measures how many documented credentials the secret guard catches, and how many harmless texts it refuses (semantics
//! section 7). Each run makes both kinds of texts from a seed and prints the seed. So the repository contains nothing
//! that looks like a credential, and the guard cannot be fitted to fixed texts.
//!
//! `NUDGE_GUARD_SEED` repeats a run. `NUDGE_GUARD_TIMES` sets the number of texts of each form.

#[path = "guard/formats.rs"]
mod formats;
#[path = "guard/harmless.rs"]
mod harmless;
#[path = "guard/make.rs"]
mod make;
#[path = "guard/places.rs"]
mod places;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use make::Make;
use nudge::SecretGuard;
use serde_json::Value;

/// The goals in percent: the least share of all credentials that the guard catches, the least share of one kind, and
/// the largest share of harmless texts that it refuses.
const RECALL: f64 = 97.0;
const RECALL_OF_A_KIND: f64 = 50.0;
const FALSE_ALARMS: f64 = 1.0;

/// The largest allowed ratio between the times for a text and for a text a quarter as long. A linear scan has the ratio
/// 4. A scan that compares each byte with all others has 16.
const FOUR_TIMES: u32 = 9;

/// The number of measurements. The guard is slow only if all of them are.
const PATIENCE: usize = 50;

/// The default number of texts of each form.
const TIMES: u64 = 3;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}: no number")))
}

fn seed() -> u64 {
    number("NUDGE_GUARD_SEED")
        .unwrap_or_else(|| u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap())
}

/// Returns true if the guard refuses a text as a hint would hold it: as a string, and as an object if the text is a
/// JSON object.
fn is_refused(text: &str) -> bool {
    let value = Value::String(text.to_owned());
    let parsed: Option<Value> = serde_json::from_str(text).ok().filter(Value::is_object);
    let refused = |value: &Value| SecretGuard::new().check_json("value", value).is_some();
    refused(&value) && parsed.as_ref().is_none_or(refused)
}

/// The counts of one kind: refused texts and all texts; also examples of wrong verdicts.
#[derive(Default)]
struct Count {
    refused: usize,
    all: usize,
    wrong: Vec<String>,
}

#[derive(Default)]
struct Counts(BTreeMap<String, Count>);

impl Counts {
    fn note(&mut self, kind: &str, place: &str, text: &str, is_secret: bool) {
        let count = self.0.entry(kind.to_owned()).or_default();
        let refused = is_refused(text);
        count.all += 1;
        count.refused += usize::from(refused);
        if refused != is_secret {
            count.wrong.push(format!("{place}: {text:?}"));
        }
    }

    // Counts are far below 2^53, so the conversion is exact.
    #[allow(clippy::cast_precision_loss)]
    fn share(counts: (usize, usize)) -> f64 {
        100.0 * counts.0 as f64 / counts.1 as f64
    }

    fn total(&self) -> (usize, usize) {
        self.0.values().fold((0, 0), |(refused, all), count| (refused + count.refused, all + count.all))
    }

    /// Prints the table with up to three wrong verdicts of each kind; returns the total share in percent.
    fn print(&self, title: &str) -> f64 {
        let total = Self::share(self.total());
        println!("{title}: {:.2} % of {}", total, self.total().1);
        for (kind, count) in &self.0 {
            println!("  {kind:22} {:6.1} % of {}", Self::share((count.refused, count.all)), count.all);
            for wrong in count.wrong.iter().take(3) {
                println!("      {wrong}");
            }
        }
        total
    }
}

fn credentials(make: &mut Make) -> Counts {
    let mut counts = Counts::default();
    let write = |place: &str, name: &str, token: &str| {
        place.replace("{token}", token).replace("{NAME}", name).replace("{name}", &name.to_lowercase())
    };
    for (kind, name, expression) in formats::TOKENS {
        for (place, text) in places::ANYWHERE.iter().chain(places::WITH_NAME) {
            counts.note(kind, place, &write(text, name, &make.text(expression)), true);
        }
    }
    for (kind, name, expression) in formats::NAMED {
        for (place, text) in places::WITH_NAME {
            counts.note(kind, place, &write(text, name, &make.text(expression)), true);
        }
    }
    for (kind, texts) in places::CONTEXTS {
        for text in *texts {
            counts.note(&format!("in a {kind}"), "", &make.fill(text), true);
        }
    }
    for place in ["{key}", "cat > id <<E\n{key}\nE", "deploy_key: |\n{key}"] {
        counts.note("private key", place, &place.replace("{key}", &formats::private_key(make)), true);
    }
    counts
}

#[test]
fn credentials_are_caught_and_harmless_texts_pass() {
    let seed = seed();
    println!("NUDGE_GUARD_SEED={seed}");
    let mut make = Make::new(seed);
    let (mut secrets, mut harmless) = (Counts::default(), Counts::default());
    for _ in 0..number("NUDGE_GUARD_TIMES").unwrap_or(TIMES) {
        for (kind, count) in credentials(&mut make).0 {
            let all = secrets.0.entry(kind).or_default();
            all.refused += count.refused;
            all.all += count.all;
            all.wrong.extend(count.wrong);
        }
        for (kind, texts) in harmless::HARMLESS {
            for text in *texts {
                harmless.note(kind, "", &make.fill(text), false);
            }
        }
    }
    let recall = secrets.print("credentials caught");
    let alarms = harmless.print("harmless texts refused");
    assert!(recall >= RECALL, "recall {recall:.2} %, seed {seed}");
    assert!(alarms <= FALSE_ALARMS, "false alarms {alarms:.2} %, seed {seed}");
    for (kind, count) in &secrets.0 {
        let share = Counts::share((count.refused, count.all));
        assert!(share >= RECALL_OF_A_KIND, "{kind}: {share:.1} %, seed {seed}");
    }
}

/// Returns the processor time of this thread, so that other work on the machine counts little. Without such a clock the
/// wall time is used.
#[cfg(unix)]
fn clock() -> Duration {
    rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).try_into().unwrap()
}

#[cfg(not(unix))]
fn clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// Returns the time that the guard takes for `text`.
fn looks_at(text: &str) -> Duration {
    let start = clock();
    black_box(SecretGuard::new().check(None, black_box(text)));
    clock().saturating_sub(start)
}

/// Returns true if a text of four times as many repetitions of `unit` takes more than [`FOUR_TIMES`] as long. It
/// measures short and long texts in turn and compares the shortest times, because longer times include noise of the
/// machine.
fn is_slow(unit: &str) -> bool {
    let [short, long] = [16 << 10, 64 << 10].map(|bytes| unit.repeat(bytes / unit.len() + 1));
    let (mut of_short, mut of_long) = (Duration::MAX, Duration::MAX);
    (0..PATIENCE).all(|_| {
        of_short = of_short.min(looks_at(&short));
        of_long = of_long.min(looks_at(&long));
        of_long > FOUR_TIMES * of_short
    })
}

/// Repeats the beginning of each form of credential. The rule then starts again at each repetition and never completes.
#[test]
fn what_begins_as_a_credential_again_and_again_takes_time_by_its_length() {
    let seed = seed();
    let mut make = Make::new(seed);
    let mut texts: Vec<String> = Vec::new();
    for (_, _, expression) in formats::TOKENS {
        texts.push(make.text(expression));
    }
    for of_a_kind in places::CONTEXTS.iter().chain(harmless::HARMLESS) {
        texts.extend(of_a_kind.1.iter().map(|text| make.fill(text)));
    }
    texts.push(formats::private_key(&mut make));
    let begun =
        |text: &String, share: usize| text.chars().take((text.chars().count() / share).max(1)).collect::<String>();
    for unit in texts.iter().flat_map(|text| [begun(text, 2), begun(text, 4)]) {
        assert!(!is_slow(&unit), "{unit:?} again and again, seed {seed}");
    }
}
