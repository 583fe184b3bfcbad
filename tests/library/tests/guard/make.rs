//! Makes texts from regular expressions. The same seed makes the same texts.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Makes random texts.
pub struct Make(StdRng);

impl Make {
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// Makes a text that matches the expression. All characters of a class are equally likely.
    pub fn text(&mut self, expression: &str) -> String {
        let texts = rand_regex::Regex::compile(expression, 0).unwrap_or_else(|error| panic!("{expression}: {error}"));
        self.0.sample(&texts)
    }

    /// Returns a random number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        self.0.random_range(0..count)
    }

    /// Returns one of the choices.
    pub fn one<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Replaces each expression between two backticks with a text that it matches. An empty pair of backticks becomes a
    /// password.
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

    /// Makes a password as a person or a password generator chooses it.
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
