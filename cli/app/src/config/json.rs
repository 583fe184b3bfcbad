//! JSON with comments, the format of the clients' settings.
//!
//! A tree with every comment needs much more memory and time than the text, and a client may store megabytes next to
//! the few lines that Nudge needs. A large value of the outermost object therefore stays text until a caller needs it.

use std::collections::BTreeSet;

use jsonc_parser::common::Ranged as _;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value;

/// The most bytes of a value of the outermost object that is parsed into a tree at once.
const TREE_LIMIT: usize = 4096;

/// A parsed document.
pub(super) struct JsonDocument {
    root: CstRootNode,
    /// The large values of the outermost object that are still text, by name. In the tree, a string literal stands for
    /// each one.
    texts: Vec<(String, String)>,
}

/// The position and the reason of a syntax error: line and column, counted from 1, and the message.
pub(super) struct JsonSyntaxError(pub usize, pub usize, pub String);

impl JsonDocument {
    pub(super) fn parse(text: &str) -> Result<Self, JsonSyntaxError> {
        // An editor may leave white space in an otherwise empty file.
        let text = if text.trim().is_empty() { "{}\n" } else { text };
        let parsed = parse_to_ast(text, &CollectOptions::default(), &parse_options())
            .map_err(|error| JsonSyntaxError(error.line_display(), error.column_display(), error.kind().to_string()))?;
        let no_object = || JsonSyntaxError(1, 1, "it holds no object".into());
        let outer = parsed.value.as_ref().and_then(|value| value.as_object()).ok_or_else(no_object)?;
        // Refuses a repeated name, because some programs read its first value and others its last.
        let inner = outer.properties.iter().filter_map(|property| property.value.as_object());
        for object in std::iter::once(outer).chain(inner) {
            let mut seen = BTreeSet::new();
            if let Some(property) = object.properties.iter().find(|property| !seen.insert(property.name.as_str())) {
                let (line, column) = super::to_line_column(text, property.name.range().start);
                return Err(JsonSyntaxError(line, column, format!("`{}` stands there twice", property.name.as_str())));
            }
        }
        let (mut short, mut end, mut texts) = (String::new(), 0, Vec::new());
        for property in &outer.properties {
            let range = property.value.range();
            if range.end - range.start > TREE_LIMIT {
                short += &text[end..range.start];
                short += "\"\"";
                end = range.end;
                texts.push((property.name.as_str().to_owned(), text[range.start..range.end].to_owned()));
            }
        }
        short += &text[end..];
        Ok(Self { root: parse_tree(&short, &texts).ok_or_else(no_object)?, texts })
    }

    /// Returns the value at `path`; a number is an index into a list.
    pub(super) fn get(&self, path: &[&str]) -> Option<Value> {
        if let Some((text, rest)) = path.split_first().and_then(|(name, rest)| Some((self.find_text(name)?, rest))) {
            let mut value: Value = parse_to_ast(text, &CollectOptions::default(), &parse_options()).ok()?.value?.into();
            for name in rest {
                value = match &mut value {
                    Value::Array(list) => list.get_mut(name.parse::<usize>().ok()?)?.take(),
                    value => value.get_mut(*name)?.take(),
                };
            }
            return Some(value);
        }
        let mut node = self.root.value()?;
        for name in path {
            node = match node.as_array() {
                Some(array) => array.elements().get(name.parse::<usize>().ok()?)?.clone(),
                None => node.as_object()?.get(name)?.value()?,
            };
        }
        node.to_serde_value()
    }

    /// Puts `value` under the name `last` into the object at the path `way`. Returns `None` when a value on the path is
    /// no object.
    pub(super) fn set(&mut self, way: &[&str], last: &str, value: &Value) -> Option<()> {
        let object = self.open_object(way, last)?;
        match object.get(last) {
            Some(property) => property.set_value(to_cst_input(value)),
            None => drop(object.append(last, to_cst_input(value))),
        }
        Some(())
    }

    /// Appends `value` to the list `last` in the object at the path `way`. Creates a missing list. Returns `None` when
    /// another value has the name.
    pub(super) fn append(&mut self, way: &[&str], last: &str, value: &Value) -> Option<()> {
        let array = self.open_object(way, last)?.array_value_or_create(last)?;
        array.ensure_multiline();
        array.append(to_cst_input(value));
        Some(())
    }

    /// Removes `last` from the object or list at the path `way`.
    pub(super) fn remove(&mut self, way: &[&str], last: &str) -> Option<()> {
        match (last.parse::<usize>(), way.split_last()) {
            (Ok(index), Some((name, way))) => {
                self.open_object(way, name)?.array_value(name)?.elements().get(index)?.clone().remove();
            }
            _ => self.open_object(way, last)?.get(last)?.remove(),
        }
        Some(())
    }

    /// Returns true when the outermost object has this name and no other name.
    pub(super) fn is_alone(&self, name: &str) -> bool {
        self.root.object_value().is_some_and(
            |object| matches!(&object.properties()[..], [property] if property.decoded_name().as_deref() == Some(name)),
        )
    }

    pub(super) fn to_text(&self) -> String {
        self.root.to_string()
    }

    fn find_text(&self, name: &str) -> Option<&str> {
        self.texts.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str())
    }

    /// Returns the object at the path `way`, in which the caller will change `last`. Creates missing objects. A number
    /// in the path is an index into an existing list.
    fn open_object(&mut self, way: &[&str], last: &str) -> Option<CstObject> {
        let outermost = way.first().unwrap_or(&last);
        if self.find_text(outermost).is_some() {
            // Parses the whole text into a tree: a caller rarely changes a large value.
            self.root = parse_tree(&self.to_text(), &[])?;
            self.texts.clear();
        }
        let mut object = self.root.object_value_or_create()?;
        let mut way = way.iter().peekable();
        while let Some(name) = way.next() {
            object = match way.next_if(|next| next.parse::<usize>().is_ok()) {
                None => object.object_value_or_create(name)?,
                Some(index) => object.array_value(name)?.elements().get(index.parse::<usize>().ok()?)?.as_object()?,
            };
        }
        Some(object)
    }
}

/// Parses text into a tree. Each of the `texts` stays one string literal.
fn parse_tree(text: &str, texts: &[(String, String)]) -> Option<CstRootNode> {
    #[cfg(test)]
    TREES.with(|bytes| bytes.set(bytes.get() + text.len()));
    let root = CstRootNode::parse(text, &parse_options()).ok()?;
    let object = root.object_value()?;
    for (name, text) in texts {
        if let Some(CstNode::Leaf(leaf)) = object.get(name).and_then(|property| property.value()) {
            CstNode::Leaf(leaf).as_string_lit()?.set_raw_value(text.clone());
        }
    }
    Some(root)
}

#[cfg(test)]
thread_local! {
    /// The number of bytes that this thread has parsed into trees.
    pub(super) static TREES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the JSON syntax that clients accept: comments and trailing commas, nothing looser.
fn parse_options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn to_cst_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(yes) => CstInputValue::Bool(*yes),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(to_cst_input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(name, value)| (name.clone(), to_cst_input(value))).collect())
        }
    }
}
