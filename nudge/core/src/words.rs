//! Splits a text into words for comparison: divides identifiers, folds case and accents, and finds stems.

mod common;

use frostem::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

pub use common::WordWeight;

/// The longest word that is stemmed, in bytes. A longer word is a hash or no word at all, so only its exact letters are
/// compared.
const MAX_STEMMED_BYTES: usize = 40;
/// The endings of words for a person or tool that does something, such as `linter`. The word must have the ending
/// itself: `difference` has not, although its stem `differ` has.
const AGENTS: [&str; 4] = ["er", "ers", "or", "ors"];
/// The least number of letters that must remain of a stem when `-er` or `-or` is removed.
const MIN_AGENT_STEM: usize = 4;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TextWord {
    /// The word in lower case, without accents.
    pub folded: Box<str>,
    /// The part that all forms of the word share: `migrations` and `migrate` have `migrat`.
    pub stem: Box<str>,
}

impl TextWord {
    /// Makes a word of folded text.
    fn new(folded: String, stemmer: Stemmer) -> Self {
        let stem = stem_word(&folded, stemmer);
        Self { folded: folded.into(), stem: stem.into() }
    }

    /// Returns how much the word contributes to the meaning of a sentence.
    pub fn weight(&self) -> WordWeight {
        common::weigh_word(&self.folded)
    }
}

/// The language of sentences. Function words such as `the` and `with` decide it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SentenceLanguage {
    /// The number of function words that only English has.
    english: usize,
    /// The number of function words of any language.
    holding: usize,
}

impl SentenceLanguage {
    /// Counts a word of the sentences.
    pub fn hear_word(&mut self, word: &TextWord) {
        if word.weight() == WordWeight::Nothing {
            self.holding += 1;
            self.english += usize::from(common::is_english(&word.folded));
        }
    }

    /// Returns true if the text is English. `None` if the text has too few function words, as a command has.
    ///
    /// ```
    /// use nudge_core::words::{SentenceLanguage, split_words};
    ///
    /// let is_english = |text: &str| {
    ///     let mut language = SentenceLanguage::default();
    ///     split_words(text).iter().for_each(|word| language.hear_word(word));
    ///     language.is_english()
    /// };
    /// assert_eq!(is_english("the button has to be disabled"), Some(true));
    /// assert_eq!(is_english("der Knopf soll nicht mehr aktiv sein"), Some(false));
    /// assert_eq!(is_english("npm run build"), None);
    /// ```
    pub fn is_english(&self) -> Option<bool> {
        match self.english {
            0 => (self.holding >= 3).then_some(false),
            1 => None,
            _ => Some(true),
        }
    }
}

/// Returns the words of a text in order. A repeated word is returned each time.
///
/// An identifier is split at a change of case, at digits and at every sign. If an identifier changes case or has
/// digits, it is also a word as a whole. Chinese, Japanese and Korean have no spaces, so each pair of neighbouring
/// characters is a word.
///
/// ```
/// use nudge_core::words::split_words;
///
/// let split = |text: &str| split_words(text).iter().map(|word| word.folded.to_string()).collect::<Vec<_>>();
/// assert_eq!(split("HttpProxy, FEATURE_FLAGS"), ["httpproxy", "http", "proxy", "feature", "flags"]);
/// assert_eq!(split("clippyの警告"), ["clippy", "の", "警告"]);
/// assert_eq!(split_words("migrations")[0].stem, split_words("migrate")[0].stem);
/// ```
pub fn split_words(text: &str) -> Vec<TextWord> {
    let stemmer = Stemmer::new(Algorithm::English);
    let mut out = Vec::new();
    for_each(text, |word| out.push(TextWord::new(word, stemmer)));
    out
}

/// Returns only the letters and digits of an identifier, folded: `HttpProxy`, `http-proxy` and `http_proxy` give the
/// same text.
///
/// ```
/// assert_eq!(nudge_core::words::fold_identifier("Http-Proxy_2"), "httpproxy2");
/// ```
pub fn fold_identifier(text: &str) -> String {
    fold_accents(text.chars().filter(|c| c.is_alphanumeric()))
}

/// The kinds of characters; a change of kind can end a word.
#[derive(Clone, Copy, PartialEq)]
enum CharKind {
    Lower,
    Upper,
    Digit,
    /// A character of a script without spaces. Kana has its own kind.
    Ideograph,
    Kana,
    Other,
}

fn classify_char(c: char) -> CharKind {
    match c {
        '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{ff66}'..='\u{ff9f}' => CharKind::Kana,
        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}' | '\u{ac00}'..='\u{d7a3}' => {
            CharKind::Ideograph
        }
        _ if c.is_numeric() => CharKind::Digit,
        _ if c.is_uppercase() => CharKind::Upper,
        _ if c.is_alphabetic() => CharKind::Lower,
        // A combining mark is part of the letter before it.
        _ if is_combining_mark(c) => CharKind::Lower,
        _ => CharKind::Other,
    }
}

/// Returns true for a character of a script without spaces between words: Chinese, Japanese and Korean.
///
/// ```
/// use nudge_core::words::is_cjk;
///
/// assert!("数据ベース".chars().all(is_cjk) && !"base, Ω".chars().any(is_cjk));
/// ```
pub fn is_cjk(c: char) -> bool {
    matches!(classify_char(c), CharKind::Ideograph | CharKind::Kana)
}

/// Calls `take` with every word of the text, folded.
fn for_each(text: &str, mut take: impl FnMut(String)) {
    let inside = |c: char| classify_char(c) != CharKind::Other;
    for run in text.split(|c| !inside(c)) {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let cjk = is_cjk(first);
            let end = rest.find(|c| is_cjk(c) != cjk).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            if cjk {
                take_pairs(part, &mut take);
            } else {
                take_parts(part, &mut take);
            }
            rest = after;
        }
    }
}

/// Calls `take` with the words of a run of letters and digits: with the whole run and, if it has several parts, with
/// each part.
fn take_parts(run: &str, take: &mut impl FnMut(String)) {
    let chars: Vec<_> = run.char_indices().map(|(i, c)| (i, classify_char(c))).collect();
    let mut starts = vec![0];
    for (index, pair) in chars.windows(2).enumerate() {
        let next = chars.get(index + 2).map(|(_, kind)| *kind);
        let divides = match (pair[0].1, pair[1].1) {
            (CharKind::Lower, CharKind::Upper) => true,
            // The last of several capitals begins the next word: `HTTPServer` becomes `HTTP` and `Server`.
            (CharKind::Upper, CharKind::Upper) => next == Some(CharKind::Lower),
            (a, b) => (a == CharKind::Digit) != (b == CharKind::Digit),
        };
        if divides {
            starts.push(if pair[0].1 == CharKind::Upper && pair[1].1 == CharKind::Lower {
                pair[0].0
            } else {
                pair[1].0
            });
        }
    }
    if says_something(run) {
        take(fold_accents(run.chars()));
    }
    if starts.len() > 1 {
        let ends = starts[1..].iter().copied().chain([run.len()]);
        for part in starts.iter().zip(ends).map(|(&start, end)| &run[start..end]).filter(|part| says_something(part)) {
            take(fold_accents(part.chars()));
        }
    }
}

/// Returns false for a single letter or digit, even with marks, and for marks without a letter.
fn says_something(part: &str) -> bool {
    part.chars().filter(|c| !is_combining_mark(*c)).nth(1).is_some()
}

/// Calls `take` with each pair of neighbouring characters of the same kind. A single character is a word by itself.
fn take_pairs(run: &str, take: &mut impl FnMut(String)) {
    let chars: Vec<_> = run.chars().collect();
    for group in chars.chunk_by(|a, b| classify_char(*a) == classify_char(*b)) {
        if let [single] = group {
            take(single.to_string());
        }
        for pair in group.windows(2) {
            take(pair.iter().collect());
        }
    }
}

/// Folds characters to lower case without accents.
fn fold_accents(chars: impl Iterator<Item = char>) -> String {
    let mut out = String::new();
    for c in chars {
        if c.is_ascii() {
            out.push(c.to_ascii_lowercase());
        } else if c == 'ß' {
            out.push_str("ss");
        } else {
            let plain = std::iter::once(c).nfkd().filter(|c| !is_combining_mark(*c));
            out.extend(plain.flat_map(char::to_lowercase).filter(|c| !is_combining_mark(*c)));
        }
    }
    out
}

fn stem_word(folded: &str, stemmer: Stemmer) -> String {
    let folded = common::in_full(folded);
    if folded.len() > MAX_STEMMED_BYTES || !folded.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return folded.to_owned();
    }
    let mut stem = stemmer.stem(folded).into_owned();
    // Without the ending, `linter` and `lint` get the same stem, and so do `profiler` and `profile`.
    let is_agent = AGENTS.iter().any(|ending| folded.ends_with(ending));
    let short = stem.strip_suffix("er").or_else(|| stem.strip_suffix("or"));
    if let Some(short) = short.filter(|short| is_agent && short.len() >= MIN_AGENT_STEM) {
        stem.truncate(short.len());
    }
    // The stem of `formatter` ends in a double letter, but the stem of `format` does not. Therefore the second letter
    // is removed.
    if let Some([a, b]) = stem.as_bytes().last_chunk::<2>()
        && a == b
        && stem.len() >= MIN_AGENT_STEM
        && !b"sl".contains(a)
    {
        stem.pop();
    }
    stem
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        split_words(text).iter().map(|word| &*word.folded).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn splitting() {
        for (text, split) in [
            ("", ""),
            ("Please run the API-tests", "please run the api tests"),
            ("HTTPServer httpServer2Go", "httpserver http server httpserver2go http server go"),
            ("search_service/main.rs:42", "search service main rs 42"),
            ("e2e k8s py311", "e2e k8s py311 py 311"),
            ("Größe STRASSE straße", "grosse strasse strasse"),
            ("café cafe\u{301} ＡＢＣ", "cafe cafe abc"),
            ("İSTANBUL", "istanbul"),
            ("把数据库迁移一下", "把数 数据 据库 库迁 迁移 移一 一下"),
            ("テストを実行", "テス スト トを 実行"),
            ("deploy到staging", "deploy 到 staging"),
            ("데이터베이스", "데이 이터 터베 베이 이스"),
            ("a b 1 -", ""),
            ("\u{329} \u{301}\u{301} e\u{301} 4\u{329}", ""),
            ("тесты", "тесты"),
        ] {
            assert_eq!(folded(text), split, "{text}");
        }
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            "migrate migrates migrating migration migrations",
            "deploy deploys deployed deploying deployment deployer",
            "lint lints linter linters linting linted",
            "profile profiler profiling profiled",
            "format formatter formatting",
            "test tests tester testing tested",
            "benchmark benchmarks bench benches",
            "certificate certificates cert certs",
            "database databases db dbs",
            "configuration config configure",
            "run runs running runner",
            "build builds builder building",
        ] {
            let stems: Vec<_> = split_words(forms).into_iter().map(|word| word.stem).collect();
            assert!(stems.iter().all(|stem| *stem == stems[0]), "{forms}: {stems:?}");
        }
        for (a, b) in [
            ("test", "text"),
            ("port", "report"),
            ("serve", "several"),
            ("user", "use"),
            ("order", "ordinal"),
            ("difference", "diff"),
        ] {
            assert_ne!(split_words(a)[0].stem, split_words(b)[0].stem, "{a} {b}");
        }
    }

    #[test]
    fn what_is_no_word_is_bounded() {
        let hash = "a".repeat(5_000);
        assert_eq!(split_words(&hash)[0].stem.len(), 5_000);
        assert_eq!(split_words(&"1a".repeat(3)).len(), 1);
    }
}
