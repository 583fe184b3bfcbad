//! Reads a unit, the knowledge in one file.

use std::collections::HashSet;

/// The known types of a unit. A unit may have any other type too; then `check` reports it.
pub use nudge_capture::gate::KINDS;
use nudge_core::text::{after_mark, before_mark};
use serde_json::Value;

use crate::chunk::{self, TextChunk};
use crate::front::{FileParts, FrontmatterFields, split_file, to_plain_text};
use crate::outline::{OutlineLink, TextOutline};

/// The weight of a relation that has a type or stands in the field `related`.
const TYPED: f64 = 1.0;
/// The weight of a link in the text, which has no type.
const POINTING: f64 = 0.5;
/// The kind of a relation that is a link in the text.
const LINKS: &str = "links_to";
/// The most characters of a title, an id, a tag or another name. The rest is cut off.
const MAX_CHARS: usize = 200;
/// The most relations that are read from a file.
const MAX_RELATIONS: usize = 2_000;

/// The content of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct KnowledgeUnit {
    /// The id that the frontmatter states; `None` if it states none.
    pub own_id: Option<String>,
    /// The path without `.md`. It is the id of a file whose frontmatter states no id.
    pub path_id: String,
    /// The title.
    pub title: String,
    /// Other titles by which links can refer to the unit.
    pub aliases: Vec<String>,
    /// The summary, in one sentence.
    pub summary: Option<String>,
    /// The type, such as `decision`.
    pub kind: Option<String>,
    /// The domain: the subject that the unit belongs to.
    pub domain: String,
    /// The tags, each once.
    pub tags: Vec<String>,
    /// The confidence that the author has in the unit, from 0 to 1.
    pub confidence: Option<f64>,
    /// The origin of the knowledge.
    pub source: Option<String>,
    /// The time of creation, as the file states it. `modified` is the time of the last change.
    pub created: Option<String>,
    pub modified: Option<String>,
    /// The relations to other units.
    pub relations: Vec<ParsedRelation>,
    /// The fields of the frontmatter.
    pub fields: FrontmatterFields,
    /// The chunks; their ranges are offsets in the whole file.
    pub chunks: Vec<TextChunk>,
    /// The problems that were found in the file.
    pub problems: Vec<String>,
}

/// A relation to another unit, as the file states it.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedRelation {
    /// The id, name or path by which the file refers to the other unit.
    pub target: RelationTarget,
    /// The type of the relation, such as `uses`.
    pub kind: String,
    /// The weight, from 0 to 1.
    pub weight: f64,
}

/// The way in which a file refers to another unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelationTarget {
    /// By the id of the unit.
    Id(String),
    /// By a title, an alias or a path, as in `[[target]]`.
    Name(String),
    /// By a path relative to the folder of the file.
    Path(String),
}

impl RelationTarget {
    /// Returns the word for the way.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Id(_) => "id",
            Self::Name(_) => "name",
            Self::Path(_) => "path",
        }
    }

    /// Returns the id, the name or the path.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Id(text) | Self::Name(text) | Self::Path(text) => text,
        }
    }
}

impl KnowledgeUnit {
    /// Reads a file. The function never fails, because any text is a unit.
    pub fn read(path: &str, text: &str) -> Self {
        let FileParts { open, yaml, close, body } = split_file(text);
        let fields = FrontmatterFields::read(yaml);
        let outline = TextOutline::parse(body);
        let offset = open.len() + yaml.len() + close.len();
        let mut chunks = chunk::chunk_text(body, &outline);
        for chunk in &mut chunks {
            chunk.range = chunk.range.start + offset..chunk.range.end + offset;
        }
        let path_id = without_ending(path).to_owned();
        let stem = after_mark(&path_id, &['/']);
        let text_of = |names: &[&str]| names.iter().find_map(|name| fields.get_text(name)).map(|text| one_line(&text));
        let mut problems: Vec<String> = fields.problem.clone().into_iter().collect();
        let kind = text_of(&["type"]);
        if let Some(kind) = kind.as_deref().filter(|kind| !KINDS.contains(kind)) {
            problems.push(format!("the type `{kind}` is none of {}", KINDS.join(", ")));
        }
        let confidence = fields.get_number("confidence").filter(|number| (0.0..=1.0).contains(number));
        if confidence.is_none() && fields.all.get("confidence").is_some_and(|value| !value.is_null()) {
            problems.push("the confidence is no number from 0 to 1".to_owned());
        }
        let mut tags: Vec<_> = fields.get_texts("tags").iter().map(|tag| one_line(tag)).collect();
        tags.sort_unstable();
        tags.dedup();
        let relations = find_relations(&fields, &outline.links);
        Self {
            own_id: text_of(&["id", "permalink"]),
            title: text_of(&["title", "name"])
                .or_else(|| outline.first_heading().filter(|heading| !heading.is_empty()).map(one_line))
                .unwrap_or_else(|| one_line(stem)),
            aliases: fields.get_texts("aliases").iter().map(|alias| one_line(alias)).collect(),
            summary: text_of(&["description", "summary"]),
            domain: text_of(&["domain"]).unwrap_or_else(|| one_line(domain_of(path))),
            source: text_of(&["source"]),
            created: text_of(&["created", "date"]),
            modified: text_of(&["last_modified", "modified", "updated"]),
            path_id,
            kind,
            tags,
            confidence,
            relations,
            fields,
            chunks,
            problems,
        }
    }

    /// Joins the title, the aliases and the tags. The index adds them to the first chunk, so that a search finds them.
    pub fn join_names(&self) -> String {
        let names = [std::slice::from_ref(&self.title), &self.aliases, &self.tags];
        names.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" · ")
    }
}

/// Returns a path without the ending `.md`.
pub fn without_ending(path: &str) -> &str {
    let ending = path.rfind('.').filter(|dot| path[*dot..].eq_ignore_ascii_case(".md"));
    ending.map_or(path, |dot| &path[..dot])
}

/// Returns the domain of a path: the folder below `domains`, or else the first folder.
fn domain_of(path: &str) -> &str {
    let mut folders = path.split('/');
    folders.next_back();
    match (folders.next(), folders.next()) {
        (Some("domains"), Some(domain)) | (Some(domain), _) if domain != "domains" => domain,
        _ => "general",
    }
}

/// Joins all lines of a text to one line, and cuts it at [`MAX_CHARS`] characters.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_CHARS).collect()
}

/// Returns the relations that a file states, each pair of target and kind once.
fn find_relations(fields: &FrontmatterFields, links: &[OutlineLink]) -> Vec<ParsedRelation> {
    let mut relations: Vec<ParsedRelation> = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |target: RelationTarget, kind: &str, weight: f64| {
        let kind = one_line(kind);
        if relations.len() == MAX_RELATIONS || target.as_str().is_empty() {
            return;
        }
        if seen.insert((target.clone(), kind.clone())) {
            relations.push(ParsedRelation { target, kind, weight });
        }
    };
    for (name, value) in &fields.all {
        let items = match value {
            Value::Array(items) => items.as_slice(),
            other => std::slice::from_ref(other),
        };
        for item in items {
            if name == "related" {
                let kind = item.get("type").and_then(to_plain_text).unwrap_or_else(|| "related".to_owned());
                let target = item.get("id").map_or_else(|| parse_wiki_link(item), parse_wiki_link);
                let id = || to_plain_text(item.get("id").unwrap_or(item)).map(|id| RelationTarget::Id(one_line(&id)));
                if let Some(target) = target.map(RelationTarget::Name).or_else(id) {
                    add(target, &kind, TYPED);
                }
            } else if let Some(target) = parse_wiki_link(item) {
                add(RelationTarget::Name(target), name, POINTING);
            }
        }
    }
    for OutlineLink { target, is_wiki, relation } in links {
        let weight = if relation.is_some() { TYPED } else { POINTING };
        let target =
            if *is_wiki { RelationTarget::Name(one_line(target)) } else { RelationTarget::Path(decode_path(target)) };
        add(target, relation.as_deref().unwrap_or(LINKS), weight);
    }
    relations
}

/// Returns the target of a field value `[[target|shown]]`. Without quotes, YAML reads such a value as a list in a list.
fn parse_wiki_link(value: &Value) -> Option<String> {
    let inner = match value {
        Value::String(text) => text.trim().strip_prefix("[[")?.strip_suffix("]]")?.to_owned(),
        Value::Array(list) if matches!(&list[..], [Value::Array(_)]) => return parse_wiki_link(&list[0]),
        Value::Array(list) => list.iter().map(to_plain_text).collect::<Option<Vec<_>>>()?.join(", "),
        _ => return None,
    };
    let target = before_mark(&inner, &['|', '#']);
    Some(one_line(target)).filter(|target| !target.is_empty())
}

/// Decodes the percent signs in a path, such as `%20`.
fn decode_path(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_is_called() {
        for (path, text, id, title, domain) in [
            ("a/b.md", "", None, "b", "a"),
            ("b.MD", "# A `b`\n# C", None, "A b", "general"),
            ("domains/net/x.md", "---\nid: 7\ntitle: T\n---\n# H", Some("7"), "T", "net"),
            ("domains/x.md", "", None, "x", "general"),
            ("memory/x.md", "---\nname: retry\npermalink: m/x\ndomain: coding\n---\n", Some("m/x"), "retry", "coding"),
            ("v1.2.md", "---\ntitle: [a]\n---\n", None, "v1.2", "general"),
        ] {
            let unit = KnowledgeUnit::read(path, text);
            assert_eq!((unit.own_id.as_deref(), &*unit.title, &*unit.domain), (id, title, domain), "{path}");
        }
        let unit = KnowledgeUnit::read("a.md", "---\ntype: note\nconfidence: 2\ntags: '#b #a #b'\naliases: [x]\n---\n");
        assert_eq!((unit.problems.len(), unit.confidence), (2, None));
        assert_eq!(unit.join_names(), "a · x · a · b");
    }

    #[test]
    fn what_a_file_names() {
        let text = "---\nrelated:\n- {id: b, type: uses}\n- c\n- \"[[D|d]]\"\n- [[Other note]]\nup: \"[[Index]]\"\n\
                    seen: plain\n---\n[[D]] [[D]] [md](../x%20y.md)\n## Relations\n- part_of [[E]]\n";
        let relations = KnowledgeUnit::read("a/b.md", text).relations;
        let relations: Vec<_> =
            relations.iter().map(|relation| (relation.target.as_str(), &*relation.kind, relation.weight)).collect();
        assert_eq!(
            relations,
            [
                ("b", "uses", 1.0),
                ("c", "related", 1.0),
                ("D", "related", 1.0),
                ("Other note", "related", 1.0),
                ("Index", "up", 0.5),
                ("D", "links_to", 0.5),
                ("../x y.md", "links_to", 0.5),
                ("E", "part_of", 1.0),
            ]
        );
        let unquoted = KnowledgeUnit::read("a.md", "---\nrelated: [[Other note]]\nup: [[A]]\n---\n").relations;
        let targets: Vec<_> = unquoted.iter().map(|relation| relation.target.as_str()).collect();
        assert_eq!(targets, ["Other note", "A"]);
    }

    #[test]
    fn pieces_are_places_in_the_file() {
        let text = "\u{feff}---\nid: a\n---\n\n# Grüße\n\ntext\n";
        let unit = KnowledgeUnit::read("a.md", text);
        let pieces: Vec<_> = unit.chunks.iter().map(|chunk| &text[chunk.range.clone()]).collect();
        assert_eq!(pieces, ["# Grüße\n\ntext"]);
    }
}
