//! Compares documentation with code: finds listed parameters, defaults and results that the code contradicts.

mod listed;

use crate::facts::{DocDrift, DriftRule, NodeView};

/// A parameter of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeclaredParam<'a> {
    /// The name. A parameter that takes all remaining arguments keeps its `*` or `**`.
    pub name: &'a str,
    /// The default value, as written in the source.
    pub default: Option<&'a str>,
}

/// The facts about a function to which its documentation is compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeclaredFunction<'a> {
    pub params: &'a [DeclaredParam<'a>],
    /// True when the function also takes names that the signature does not list, as with `**kwargs` or a pattern.
    pub open: bool,
    /// True when the signature says that the function returns nothing.
    pub gives_nothing: bool,
    /// The source text of the whole function.
    pub body: &'a str,
}

/// Parameters that a framework passes, so documentation need not list them. The second list has suffixes of such names.
const INJECTED: &[&str] = &["self", "cls", "request", "mcs", "args", "kwargs", "this", "environment"];
const INJECTED_ENDS: [&str; 2] = ["ctx", "context"];

/// Finds the contradictions between a documentation and its function. Each rule reports at most one contradiction.
pub(crate) fn find_drift(doc: &str, declared: &DeclaredFunction<'_>) -> Vec<DocDrift> {
    let said = listed::read(doc);
    let mut out = Vec::new();
    let mut add = |rule, detail: String| out.push(DocDrift { rule, detail });
    let bare = |name: &'_ str| name.trim_start_matches(['*', '_']).to_owned();
    let has = |name: &str| declared.params.iter().any(|param| bare(param.name) == bare(name));
    let gone: Vec<&str> = said.params.iter().map(|(name, _)| *name).filter(|name| !has(name)).collect();
    if let Some(name) = gone.first()
        && !declared.open
    {
        add(DriftRule::R1, format!("documents the parameter `{name}`, which the signature lacks"));
    }
    if !said.params.is_empty() {
        let listed = |param: &&DeclaredParam<'_>| said.params.iter().any(|(name, _)| *name == param.name);
        // Accepts a parameter that the documentation mentions outside its list, for example as deprecated.
        let named = |name: &str| doc.contains(&format!("`{name}`")) || doc.contains(&format!(":{name}:"));
        let injected = |name: &str| INJECTED.contains(&name) || INJECTED_ENDS.iter().any(|end| name.ends_with(end));
        let missing = declared.params.iter().find(|param| {
            !listed(param) && !param.name.starts_with(['_', '*']) && !injected(param.name) && !named(param.name)
        });
        if let Some(missing) = missing {
            add(DriftRule::R2, format!("does not document the parameter `{}`", missing.name));
        }
    }
    let other = said.params.iter().find_map(|(name, text)| {
        let param = declared.params.iter().find(|param| param.name == *name)?;
        let (is, says) = (parse_literal(param.default?)?, stated_default(text)?);
        (is != says && is != "None" && is != "null").then_some((*name, is, says))
    });
    if let Some((name, is, says)) = other {
        add(DriftRule::R3, format!("says that `{name}` defaults to {says}; it is {is}"));
    }
    if said.returns && declared.gives_nothing {
        add(DriftRule::R4, "documents a result, but gives none".into());
    } else if let Some(error) = said.raises.iter().find(|error| {
        let last = error.rsplit('.').next().unwrap_or(error);
        let first_line = doc.lines().next().unwrap_or_default();
        // The body contains the documentation, so one of the occurrences is in the documentation itself.
        declared.body.matches(last).count() <= usize::from(declared.body.contains(first_line))
    }) {
        add(DriftRule::R4, format!("documents the error `{error}`, which does not occur in it"));
    }
    out
}

/// Finds a parameter that the function no longer takes and that the documentation still names in code quotes.
pub fn drift_since(before: &NodeView<'_>, now: &NodeView<'_>) -> Option<DocDrift> {
    let doc = now.doc()?;
    // A parameter such as `**kwargs` can take any name.
    let takes = |name: &str| now.params().any(|param| param == name || param.starts_with("**"));
    let mut gone = before.params().filter(|name| !takes(name) && doc.contains(&format!("`{name}`")));
    let detail = format!("names `{}`, which the signature had and lacks now", gone.next()?);
    Some(DocDrift { rule: DriftRule::R1Since, detail })
}

/// Returns the text of a literal without quotes, for a comparison; `None` if the text is no literal.
fn parse_literal(text: &str) -> Option<String> {
    let text = text.trim();
    let quoted = text.len() >= 2 && text.starts_with(['"', '\'']) && text.ends_with(['"', '\'']);
    let word = matches!(text, "True" | "False" | "None" | "true" | "false" | "null" | "undefined");
    let number =
        text.parse::<f64>().is_ok_and(f64::is_finite) && text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    (quoted || word || number).then(|| text.trim_matches(['"', '\'']).to_owned())
}

/// Returns the literal in `defaults to V` or `default: V`; `None` if there is none.
fn stated_default(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let rest = ["defaults to ", "default is ", "default: ", "default = ", "default="]
        .iter()
        .find_map(|mark| lower.find(mark).and_then(|start| text.get(start + mark.len()..)))?;
    let rest = rest.trim_start_matches(['`', '*', ':']);
    let end = match rest.chars().next()? {
        quote @ ('"' | '\'') => rest.get(1..)?.find(quote)? + 2,
        _ => rest
            .find(|c: char| c.is_whitespace() || matches!(c, '`' | ',' | ')' | ']' | ';' | '*'))
            .unwrap_or(rest.len()),
    };
    parse_literal(rest.get(..end)?.trim_end_matches('.'))
}

/// Removes the indentation that all lines have, except for the first line.
pub(crate) fn remove_indent(text: &str) -> String {
    let indent = text.lines().skip(1).filter(|line| !line.trim().is_empty());
    let indent = indent.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            out.push('\n');
        }
        out.push_str(if number == 0 {
            line.trim()
        } else {
            line.get(indent..).unwrap_or(line.trim_start()).trim_end()
        });
    }
    out
}

/// Returns the text of comments without the characters that mark a comment.
pub(crate) fn strip_comment_marks(comments: &[&str]) -> String {
    let mut out = String::new();
    for comment in comments {
        for line in comment.lines() {
            let line = line.trim();
            let line = line.strip_suffix("*/").unwrap_or(line);
            let line = ["/**", "/*!", "/*", "///", "//!", "//", "*", "#"]
                .iter()
                .find_map(|mark| line.strip_prefix(mark))
                .unwrap_or(line);
            out.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rules that a documentation breaks for the function `def f(a, b=1)`.
    fn rules(doc: &str) -> Vec<DriftRule> {
        let params = [DeclaredParam { name: "a", default: None }, DeclaredParam { name: "b", default: Some("1") }];
        let declared = DeclaredFunction { params: &params, open: false, gives_nothing: true, body: "raise ValueError" };
        find_drift(doc, &declared).into_iter().map(|drift| drift.rule).collect()
    }

    #[test]
    fn each_form_of_a_list_is_read() {
        use DriftRule::{R1, R2, R3, R4};
        for (doc, wanted) in [
            ("Does it.", vec![]),
            (":param a: text\n:param int b: text", vec![]),
            (":param a: text", vec![R2]),
            (":param a: text\n:param c: text", vec![R1, R2]),
            ("Args:\n    a: text\n    b (int): text\n        goes on: here\n\nMore: text", vec![]),
            ("Args:\n    a: text\n    c: text", vec![R1, R2]),
            ("Parameters\n----------\na : int\n    text\nb : int\n    text", vec![]),
            ("Parameters\n----------\na : int\n    text\nc : int\n    text", vec![R1, R2]),
            ("@param {Object<string>} a text\n@param [b=1] text", vec![]),
            ("@param a text\n@param c.d text", vec![R1, R2]),
            ("# Arguments\n\n* `a` - text\n* `b` - text", vec![]),
            ("# Arguments\n\n* `a` - text\n* `c` - text", vec![R1, R2]),
            (":param a: text\n:param b: text, defaults to 2", vec![R3]),
            (":param a: text\n:param b: text\n    that goes on (default: 2).", vec![R3]),
            (":param a: text\n:param b: text, defaults to 1.", vec![]),
            (":param a: text\n:param b: text, defaults to the width", vec![]),
            (":returns: text", vec![R4]),
            ("Returns:\n    text", vec![R4]),
            (":raises ValueError: text", vec![]),
            (":raises KeyError: text", vec![R4]),
            ("Raises:\n    KeyError: text", vec![R4]),
        ] {
            assert_eq!(rules(doc), wanted, "{doc}");
        }
    }

    #[test]
    fn what_is_named_elsewhere_is_not_left_out() {
        use DriftRule::{R1, R2};
        let params = [DeclaredParam { name: "a", default: None }, DeclaredParam { name: "*rest", default: None }];
        let rules = |doc: &str| {
            let declared = DeclaredFunction { params: &params, open: false, gives_nothing: false, body: "" };
            find_drift(doc, &declared).into_iter().map(|drift| drift.rule).collect::<Vec<_>>()
        };
        for (doc, wanted) in [
            (":param rest: text", vec![R2]),
            (":param rest: text\n\nThe ``a`` parameter goes away.", vec![]),
            (":param rest: text\n:a: text", vec![]),
            (":param: a: text", vec![]),
            (":param a: text\n:param others: text", vec![R1]),
        ] {
            assert_eq!(rules(doc), wanted, "{doc}");
        }
    }

    #[test]
    fn what_takes_all_names_lacks_none() {
        let declared = DeclaredFunction { params: &[], open: true, gives_nothing: false, body: "" };
        assert_eq!(find_drift(":param c: text", &declared), []);
    }

    #[test]
    fn comments_lose_their_marks() {
        assert_eq!(strip_comment_marks(&["/// one", "///", "///  two"]), "one\n\n two\n");
        assert_eq!(strip_comment_marks(&["/**\n * one\n * two\n */"]), "\none\ntwo\n\n");
    }
}
