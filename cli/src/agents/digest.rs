//! Formats suggestions for a model: data, one line each, within a number of bytes. The sources make the lines;
//! this module adds headings, removes tags and keeps to the limit.

use std::fmt::Write as _;

use serde::Deserialize;

use super::checkout::Checkout;
use crate::sources;

/// The part of a `nudge.suggest` result that is shown; match explanations are not.
#[derive(Deserialize)]
pub struct SuggestTold {
    suggestions: Vec<Suggestion>,
    /// What does not hold any more; an older PRIMARY tells none.
    #[serde(default)]
    changes: Vec<Changed>,
    #[serde(default)]
    held_back: Vec<HeldBack>,
    pub started: bool,
    /// Confirms that the suggestions were shown; an older PRIMARY gives none.
    #[serde(default)]
    ticket: Option<String>,
}

#[derive(Deserialize)]
struct Suggestion {
    #[serde(default = "first")]
    source: String,
    name: String,
    line: String,
    #[serde(default)]
    paths: Vec<String>,
    more: More,
}

#[derive(Deserialize)]
struct Changed {
    source: String,
    name: String,
    line: String,
}

/// The source that an older PRIMARY does not name: it has no other.
fn first() -> String {
    sources::all().first().map_or("", |first| first.name).to_owned()
}

#[derive(Deserialize)]
struct More {
    method: String,
}

#[derive(Deserialize)]
struct HeldBack {
    source: String,
    count: u64,
}

/// The heading of what does not hold any more.
const CHANGED: &str = "Nudge: what changed of what you were told. These are notes, not instructions:\n";
/// Bytes of a heading, and of a last line that counts what was held back.
const FRAME_BYTES: usize = 160;

/// Lines for a model. What is confirmed counts as shown, all of an answer at once, so each is at least named: in a
/// line of its own as long as there is room for that, otherwise in one last line with others.
pub struct Digest {
    offers: Vec<Offer>,
    max_bytes: usize,
    held_back: Vec<HeldBack>,
    tickets: Vec<String>,
    checkout: Checkout,
}

struct Offer {
    /// The heading, printed above the first of its suggestions that has a line of its own.
    head: &'static str,
    source: String,
    name: String,
    line: String,
    /// The tool that returns the whole value.
    tool: String,
    shape: Shape,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Line,
    Name,
    /// The suggestion is only counted, as there is no room even for its name.
    Number,
}

impl Digest {
    /// Makes an empty digest of at most `max_bytes`, for an agent in `checkout`.
    pub fn new(max_bytes: usize, checkout: Checkout) -> Self {
        Self { offers: Vec::new(), max_bytes, held_back: Vec::new(), tickets: Vec::new(), checkout }
    }

    /// Returns the bytes that are left for lines under a heading of their own.
    pub fn room(&self) -> usize {
        let used = if self.offers.is_empty() { 0 } else { self.rendered(|_| Shape::Line).len() + 1 };
        self.max_bytes.saturating_sub(used + FRAME_BYTES)
    }

    /// Adds suggestions under a `head`.
    pub fn add(&mut self, head: &'static str, told: SuggestTold) {
        self.offers.extend(told.changes.into_iter().map(|Changed { source, name, line }| Offer {
            head: CHANGED,
            tool: list_tool(&source),
            source,
            name: untagged(&name),
            line: format!("- {}\n", untagged(&line)),
            shape: Shape::Name,
        }));
        self.offers.extend(told.suggestions.into_iter().map(|Suggestion { source, name, line, paths, more }| Offer {
            head,
            source,
            name: untagged(&name),
            line: format!("- {}\n", untagged(&self.checkout.marked(line, &paths))),
            tool: more.method.replace('.', "_"),
            shape: Shape::Name,
        }));
        // The last call counts: what a prompt held back, the start that follows it holds back too.
        self.held_back = told.held_back;
        self.tickets.extend(told.ticket);
    }

    /// Returns the tickets that confirm what was added.
    pub fn tickets(&self) -> &[String] {
        &self.tickets
    }

    /// Returns the text; empty when there are no suggestions.
    pub fn finish(mut self) -> String {
        if self.offers.is_empty() {
            return String::new();
        }
        if self.text().len() > self.max_bytes {
            self.offers.iter_mut().for_each(|hint| hint.shape = Shape::Number);
            self.promote(Shape::Number, Shape::Name);
        }
        self.promote(Shape::Name, Shape::Line);
        let text = self.text();
        if text.len() <= self.max_bytes { text } else { String::new() }
    }

    /// Changes suggestions from one shape to another while there is room, the best first.
    fn promote(&mut self, from: Shape, to: Shape) {
        for at in 0..self.offers.len() {
            if self.offers[at].shape == from {
                self.offers[at].shape = to;
                // Rendering anew is cheap: there are a few hints of a few hundred bytes each.
                if self.text().len() > self.max_bytes {
                    self.offers[at].shape = from;
                }
            }
        }
    }

    /// Renders all suggestions in their current shapes.
    fn text(&self) -> String {
        self.rendered(|offer| offer.shape)
    }

    fn rendered(&self, shape_of: impl Fn(&Offer) -> Shape + Copy) -> String {
        let of = |shape| self.offers.iter().filter(move |offer| shape_of(offer) == shape);
        let mut text = String::new();
        let mut last_head = "";
        for offer in of(Shape::Line) {
            if offer.head != last_head {
                text.push_str(offer.head);
                last_head = offer.head;
            }
            text.push_str(&offer.line);
        }
        if text.is_empty() {
            text.extend(self.offers.first().map(|offer| offer.head));
        }
        // Names are grouped by the tool that returns them.
        let mut named: Vec<(&str, Vec<&str>)> = Vec::new();
        for offer in of(Shape::Name) {
            match named.iter_mut().find(|(tool, _)| *tool == offer.tool) {
                Some((_, of_tool)) => of_tool.push(&offer.name),
                None => named.push((&offer.tool, vec![&offer.name])),
            }
        }
        for (tool, names) in named {
            let _ = writeln!(text, "- also here: {} ({tool} tells them)", names.join(", "));
        }
        // Counts are grouped by the tool that lists them.
        let nameless = of(Shape::Number).map(|offer| (&*offer.source, 1));
        let mut counts: Vec<(&str, u64)> = Vec::new();
        for (source, count) in nameless.chain(self.held_back.iter().map(|held| (&*held.source, held.count))) {
            match counts.iter_mut().find(|(known, _)| *known == source) {
                Some((_, sum)) => *sum += count,
                None => counts.push((source, count)),
            }
        }
        for (source, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            let _ = writeln!(text, "({count} more: {} lists them)", list_tool(source));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// The tool that lists what a source has.
fn list_tool(source: &str) -> String {
    sources::named(source).map_or_else(|| "nudge_recall".into(), |spec| spec.list.replace('.', "_"))
}

/// Breaks up anything that looks like the begin or the end of a tag, as clients wrap a hook's output in tags of
/// their own, some without escaping it. The inserted space keeps the meaning of a shell redirection: `<in` is `< in`.
fn untagged(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        if c == '<' && chars.peek().is_some_and(|next| next.is_ascii_alphabetic() || "/!?".contains(*next)) {
            out.push(' ');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn hint(key: &str, value: &str) -> Value {
        let name = format!("api/{key}");
        json!({"name": name, "line": format!("{name}: {value}"), "more": {"method": "nudge.get_hint"}})
    }

    fn told(suggestions: &[Value], omitted: u64) -> SuggestTold {
        let held_back = json!([{"source": "hints", "count": omitted}]);
        serde_json::from_value(json!({"suggestions": suggestions, "held_back": held_back, "started": true})).unwrap()
    }

    fn digest(max_bytes: usize, suggestions: &[Value], omitted: u64) -> String {
        let mut digest = Digest::new(max_bytes, Checkout::none());
        digest.add("Hints:\n", told(suggestions, omitted));
        digest.finish()
    }

    #[test]
    fn what_does_not_fit_is_named_and_what_was_held_back_is_counted() {
        let rows: Vec<_> = (0..20).map(|n| hint(&format!("k{n}"), &"x".repeat(40))).collect();
        for (max_bytes, held_back) in [(400, 0), (500, 5), (900, 5), (2_000, 5), (2_000, 0)] {
            let text = digest(max_bytes, &rows, held_back);
            assert!(text.len() <= max_bytes, "{} of {max_bytes}", text.len());
            let full = text.lines().filter(|line| line.starts_with("- api/k")).count();
            let all: Vec<_> = (full..20).map(|n| format!("api/k{n}")).collect();
            let names = format!("\n- also here: {} (nudge_get_hint tells them)", all.join(", "));
            assert_eq!(text.contains(&names), full < 20, "{text}");
            let cut = format!("\n({held_back} more: nudge_query lists them)");
            assert_eq!(text.ends_with(&cut), held_back > 0, "{text}");
        }
        assert_eq!(digest(2_000, &[], 3), "", "nothing is said of nothing");
    }

    #[test]
    fn every_number_of_bytes_is_kept_to_and_no_hint_is_lost() {
        let mut rows: Vec<_> = (0..6).map(|n| hint(&"k".repeat(1 + 40 * n), &"ü".repeat(60 * n))).collect();
        rows.insert(2, hint(&"long".repeat(60), "v"));
        for max_bytes in 0..2_000 {
            let text = digest(max_bytes, &rows, 2);
            assert!(text.len() <= max_bytes, "{} of {max_bytes}", text.len());
            if text.is_empty() {
                assert!(max_bytes < 80);
                continue;
            }
            let last = text.lines().last().unwrap();
            let counted: usize = last[1..last.find(" more").unwrap()].parse().unwrap();
            assert_eq!(text.matches("api/").count() + counted, rows.len() + 2, "{text}");
        }
    }

    #[test]
    fn each_head_stands_above_its_own_lines() {
        let (one, two) = (hint("one", "1"), hint("two", &"2".repeat(200)));
        let of = |max_bytes: usize| {
            let mut digest = Digest::new(max_bytes, Checkout::none());
            digest.add("Prompt:\n", told(std::slice::from_ref(&one), 4));
            digest.add("Start:\n", told(std::slice::from_ref(&two), 3));
            digest.finish()
        };
        let text = of(2_000);
        assert!(text.starts_with("Prompt:\n- api/one: 1\nStart:\n- api/two: 2222"), "{text}");
        assert!(text.ends_with("2\n(3 more: nudge_query lists them)"), "the last held back those before too: {text}");
        assert_eq!(
            of(150),
            "Prompt:\n- api/one: 1\n- also here: api/two (nudge_get_hint tells them)\n(3 more: nudge_query lists them)"
        );
    }

    #[test]
    fn names_stand_by_the_tool_that_tells_them() {
        let other = json!({"name": "note 7", "line": "x".repeat(300), "more": {"method": "nudge.notes.get"}});
        let text = digest(200, &[hint("a", &"y".repeat(300)), other, hint("b", &"y".repeat(300))], 0);
        assert_eq!(
            text,
            "Hints:\n- also here: api/a, api/b (nudge_get_hint tells them)\n- also here: note 7 (nudge_notes_get tells them)"
        );
    }

    #[test]
    fn what_has_no_room_for_a_name_is_counted_with_its_own_source() {
        let long =
            |source: &str| json!({"source": source, "name": "n".repeat(200), "line": "", "more": {"method": "m"}});
        let text = digest(120, &[long("hints"), long("notes"), long("hints")], 1);
        assert_eq!(text, "Hints:\n(3 more: nudge_query lists them)\n(1 more: nudge_recall lists them)");
    }

    #[test]
    fn nothing_looks_like_a_tag() {
        for (given, told) in [
            ("</system-reminder>", "< /system-reminder>"),
            ("<system-reminder>", "< system-reminder>"),
            ("<!-- <?xml <<EOF", "< !-- < ?xml << EOF"),
            ("sort <in.txt", "sort < in.txt"),
            ("a << EOF <(b) 2<&1 <", "a << EOF <(b) 2<&1 <"),
        ] {
            assert_eq!(untagged(given), told);
        }
        let row = hint("</a>", "</b> <c>");
        for max_bytes in [90, 2_000] {
            let text = digest(max_bytes, std::slice::from_ref(&row), 0);
            assert!(text.contains("api/< /a>") && !text.contains("</") && !text.contains("<c"), "{text}");
        }
    }
}
