//! Reads the facts about a source that both languages need: its methods, their params, and the type of each param.

use nudge::ContextUse;
use nudge_core::source::SourceSpec;
use serde_json::Value;

/// A source whose methods have its name as their prefix.
pub struct Namespace {
    pub name: &'static str,
    /// The description that the source gives of itself.
    pub guide: &'static str,
    pub verbs: Vec<Verb>,
}

/// A method of a source.
pub struct Verb {
    /// The last part of the method's name, such as `add_many` of `nudge.records.add_many`.
    pub name: String,
    pub description: &'static str,
    pub params: Vec<Param>,
}

/// A member of a method's params.
pub struct Param {
    pub name: String,
    pub description: String,
    pub is_required: bool,
    pub kind: Kind,
}

/// The types of a JSON Schema that type checkers can express.
pub enum Kind {
    Text,
    Words(Vec<String>),
    Integer,
    Number,
    Truth,
    List(Box<Self>),
    /// An object whose values have one kind.
    Map(Box<Self>),
    Any(Vec<Self>),
    /// The caller's context, in any form that the bindings accept.
    Context,
    Json,
}

impl Namespace {
    /// Reads the namespace of a source. Returns `None` for the hints, whose methods have no prefix.
    pub fn of(source: &SourceSpec) -> Option<Self> {
        let prefix = format!("nudge.{}.", source.name);
        let rows = (source.methods)().into_iter();
        let verbs: Vec<_> = rows
            .filter_map(|row| {
                let name = row.name.strip_prefix(&prefix)?.replace(['.', '-'], "_");
                let params = Param::all(&(row.params)(), row.context != ContextUse::None);
                Some(Verb { name, description: row.description, params })
            })
            .collect();
        (!verbs.is_empty()).then_some(Self { name: source.name, guide: source.guide, verbs })
    }

    /// Returns the name of the source's class, such as `DemoSource`.
    pub fn class(&self) -> String {
        format!("{}Source", capitalized(self.name))
    }
}

impl Param {
    fn all(schema: &Value, takes_context: bool) -> Vec<Self> {
        let required: Vec<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = schema["properties"].as_object().into_iter().flatten();
        let param = |(name, property): (&String, &Value)| Self {
            name: name.clone(),
            description: property["description"].as_str().unwrap_or_default().to_owned(),
            is_required: required.contains(&name.as_str()),
            kind: if takes_context && name == "context" { Kind::Context } else { Kind::of(property) },
        };
        properties.map(param).collect()
    }
}

impl Kind {
    fn of(schema: &Value) -> Self {
        if let Some(options) = schema["anyOf"].as_array() {
            return Self::Any(options.iter().map(Self::of).collect());
        }
        match schema["type"].as_str() {
            Some("string") => match schema["enum"].as_array() {
                Some(words) => Self::Words(words.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
                None => Self::Text,
            },
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Truth,
            Some("array") => Self::List(Box::new(Self::of(&schema["items"]))),
            Some("object") => Self::Map(Box::new(Self::of(&schema["additionalProperties"]))),
            _ => Self::Json,
        }
    }
}

/// Changes `add_many` to `AddMany`.
pub fn capitalized(name: &str) -> String {
    let word = |word: &str| word.get(..1).map(|first| first.to_ascii_uppercase() + &word[1..]).unwrap_or_default();
    name.split('_').map(word).collect()
}

/// Wraps a text into lines of at most `width` characters. A longer word has its own line.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().filter(|line| line.is_empty() || line.len() + 1 + word.len() <= width);
        match last {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => line.extend([" ", word]),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}
