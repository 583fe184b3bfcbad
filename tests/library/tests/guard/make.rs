//! Texts from expressions, the same for the same seed.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Makes texts by chance.
pub struct Make(StdRng);

impl Make {
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A text that the expression matches, every character of a class as likely as the next.
    pub fn text(&mut self, expression: &str) -> String {
        let texts = rand_regex::Regex::compile(expression, 0).unwrap_or_else(|error| panic!("{expression}: {error}"));
        self.0.sample(&texts)
    }

    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        self.0.random_range(0..count)
    }

    /// One of these.
    pub fn one<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// `text`, in which what stands between two backticks is an expression, and becomes a text that it matches; between
    /// empty ones stands a password.
    pub fn fill(&mut self, text: &str) -> String {
        let mut out = String::new();
        for (index, part) in text.split('`').enumerate() {
            match (index % 2, part) {
                (0, _) => out += part,
                (_, "") => out += &self.password(),
                (_, expression) => out += &self.text(expression),
            }
        }
        out
    }

    /// A password as a person or a generator of passwords chooses it.
    pub fn password(&mut self) -> String {
        const WORDS: &[&str] =
            &["copper", "maple", "Granite", "tiger", "Sunset", "harbor", "Falcon", "velvet", "Orbit"];
        match self.below(4) {
            0 => self.text("[a-zA-Z0-9]{3}[0-9][a-zA-Z0-9]{6}[A-Z][a-z]{2}[0-9]"),
            1 => self.text("[a-zA-Z0-9]{4}[!%_.*+-][A-Z][0-9][a-z][a-zA-Z0-9]{6}"),
            2 => [self.one(WORDS), &self.text("[0-9]{4}[._!][a-z]{3}")].concat(),
            _ => [self.one(WORDS), "-", self.one(WORDS), &self.text("-[0-9]{2,4}")].concat(),
        }
    }
}
