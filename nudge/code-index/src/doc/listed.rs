//! Reads the lists of parameters, results and errors in a documentation, in the usual formats.

/// The lists of a documentation.

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct DocumentedItems<'a> {
    /// The listed parameters, with their descriptions.
    pub params: Vec<(&'a str, String)>,
    pub returns: bool,
    pub raises: Vec<&'a str>,
}

/// The section of a documentation in which a line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DocSection {
    None,
    Params,
    Returns,
    Raises,
}

/// Reads the formats `:param x:` and `@param x`, the section `Args:` of Google, the underlined `Parameters` of numpy,
/// and `# Arguments` of Rust.
pub(super) fn read(doc: &str) -> DocumentedItems<'_> {
    let mut out = DocumentedItems::default();
    let lines: Vec<&str> = doc.lines().collect();
    let (mut section, mut indent, mut entry) = (DocSection::None, 0, None);
    for (number, line) in lines.iter().enumerate() {
        let text = line.trim();
        let depth = line.len() - line.trim_start().len();
        if let Some(field) = text.strip_prefix([':', '@', '\\'])
            && read_tag(field, text, &mut out)
        {
            section = DocSection::None;
            continue;
        }
        if let Some(next) = parse_heading(text, lines.get(number + 1).copied().unwrap_or_default()) {
            (section, indent, entry) = (next, depth, None);
            out.returns |= next == DocSection::Returns;
            continue;
        }
        if section == DocSection::None {
            extend_last_param(&mut out, text);
            continue;
        }
        if text.is_empty() || text.chars().all(|c| c == '-') {
            continue;
        }
        // A heading or a smaller indent ends the section.
        let bullet = text.strip_prefix(['*', '-']).map(str::trim_start);
        if depth < indent || depth == indent && bullet.is_none() && !is_numpy_entry(text) {
            section = DocSection::None;
            continue;
        }
        if entry.is_some_and(|entry| depth > entry) {
            extend_last_param(&mut out, text);
            continue;
        }
        entry = Some(depth);
        match (section, name(bullet.unwrap_or(text))) {
            (DocSection::Params, Some(name)) => out.params.push((name, text.to_owned())),
            (DocSection::Raises, Some(name)) => out.raises.push(name),
            _ => {}
        }
    }
    out
}

/// Appends the line to the description of the last parameter.
fn extend_last_param(out: &mut DocumentedItems<'_>, text: &str) {
    if let Some((_, said)) = out.params.last_mut()
        && !text.is_empty()
        && said.len() < 400
    {
        said.push(' ');
        said.push_str(text);
    }
}

/// Reads a tag: `param int x: text`, `param {T} [x=1] - text`, `returns: text`, `raises X: text`. Returns true if it is
/// such a tag.
fn read_tag<'a>(field: &'a str, text: &str, out: &mut DocumentedItems<'a>) -> bool {
    let (word, rest) = field.split_at(field.find(|c: char| !c.is_alphanumeric()).unwrap_or(field.len()));
    let rest = rest.trim_start();
    match word {
        "param" | "parameter" | "arg" | "argument" | "keyword" => {
            let name = if text.starts_with(':') {
                // Accepts a frequent mistake: `:param: x: text`.
                let rest = rest.strip_prefix(':').unwrap_or(rest);
                rest.split(':').next().and_then(|head| head.split_whitespace().next_back())
            } else {
                skip_type(rest).split_whitespace().next()
            };
            let name = name.map(|name| name.trim_start_matches(['*', '[', '\\']));
            let name = name.and_then(|name| name.split(['.', '=', ']', ',', ':', '[']).next());
            if let Some(name) = name.filter(|name| is_name(name)) {
                out.params.push((name, text.to_owned()));
            }
            true
        }
        "return" | "returns" => {
            out.returns = true;
            true
        }
        "raises" | "raise" | "throws" | "exception" => {
            let named = skip_type(rest);
            let name = named.split_once([':', ' ']).map_or(named, |(name, _)| name);
            let braced = rest.strip_prefix('{').and_then(|rest| rest.split('}').next());
            out.raises.extend(Some(braced.unwrap_or(name)).filter(|name| is_path(name)));
            true
        }
        "type" | "rtype" | "see" | "since" | "deprecated" | "example" | "template" => true,
        _ => false,
    }
}

/// Returns the text that follows a type in braces.
fn skip_type(text: &str) -> &str {
    if !text.starts_with('{') {
        return text;
    }
    let mut depth = 0;
    for (index, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            // This brace closes the first one, because the text begins with a brace.
            return text[index + 1..].trim_start();
        }
    }
    ""
}

fn parse_heading(text: &str, next: &str) -> Option<DocSection> {
    let underlined = next.trim().len() > 2 && next.trim().bytes().all(|b| b == b'-');
    let plain = text.trim_start_matches('#').trim();
    let marked = text.starts_with('#') || underlined || text.ends_with(':');
    match plain.trim_end_matches(':') {
        "Args" | "Arguments" | "Parameters" | "Params" | "Keyword Args" if marked => Some(DocSection::Params),
        "Returns" | "Return" if marked => Some(DocSection::Returns),
        "Raises" | "Throws" if marked => Some(DocSection::Raises),
        _ if underlined || text.starts_with('#') => Some(DocSection::None),
        _ => None,
    }
}

/// Returns true for an entry of numpy: `x : int` or `x`.
fn is_numpy_entry(text: &str) -> bool {
    text.split_once(" : ").map_or_else(|| is_name(text), |(name, _)| name.split(',').all(|name| is_name(name.trim())))
}

/// Returns the name at the beginning of an entry: `x: text`, `x (int): text`, `` `x` - text ``.
fn name(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(['`', '*', '\\']);
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.')).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let rest = rest.trim_start_matches('`').trim_start();
    let follows = rest.is_empty() || rest.starts_with([':', '(', '-', '–', '—', ',']);
    (follows && is_path(name)).then_some(name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c == '_' || c == '$' || c.is_alphanumeric())
        && !text.starts_with(|c: char| c.is_numeric())
}

fn is_path(text: &str) -> bool {
    text.split('.').all(is_name)
}
