//! Edits the configuration files of other programs. Comments, order and all other content stay.

mod json;

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use nudge::{Error, Result};
use nudge_os::foreign::{self, LinkPolicy};
use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};

use json::{JsonDocument, JsonSyntaxError};

/// The format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigFormat {
    /// JSON; comments and trailing commas are allowed and kept.
    Json,
    /// TOML.
    Toml,
}

/// A configuration file: its text as read, and its content after changes.
pub struct ConfigFile {
    path: PathBuf,
    /// The text as read; `None` when there is no such file.
    before: Option<String>,
    content: ConfigContent,
    /// The top-level names that were changed, each with its value before the change.
    touched: Vec<(String, Option<Value>)>,
    /// True for a file that begins with a byte order mark.
    has_mark: bool,
    /// True for a TOML file with CRLF line ends. The TOML library writes LF, so `to_text` restores CRLF.
    has_returns: bool,
}

/// The most bytes that are read from a settings file or from one of Nudge's own files.
pub const MAX_BYTES: u64 = 32 << 20;
const MARK: char = '\u{feff}';

enum ConfigContent {
    Json(JsonDocument),
    /// The parsed document, shared by all readers of the same text.
    Toml(Rc<DocumentMut>),
}

impl ConfigFile {
    /// Reads a file. A missing file counts as empty.
    ///
    /// # Errors
    /// `E_UNAVAILABLE` when the file cannot be read; `E_INVALID`, with the position, when it cannot be parsed.
    pub fn read(path: &Path, form: ConfigFormat) -> Result<Self> {
        let before = text_of(path)?;
        let text = before.as_deref().unwrap_or("");
        let content = ConfigContent::parse(path, form, text)?;
        let (has_mark, has_returns) = (text.starts_with(MARK), form == ConfigFormat::Toml && text.contains("\r\n"));
        Ok(Self { path: path.to_owned(), content, touched: Vec::new(), has_mark, has_returns, before })
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the text as it was read; `None` when there was no file.
    pub fn before(&self) -> Option<&str> {
        self.before.as_deref()
    }

    /// Returns the text with all changes.
    pub fn to_text(&self) -> String {
        let mut text = match &self.content {
            ConfigContent::Json(json) => with_line_end(json.to_text()),
            ConfigContent::Toml(document) => document.to_string(),
        };
        if self.has_returns {
            text = text.replace("\r\n", "\n").replace('\n', "\r\n");
        }
        if self.has_mark {
            text.insert(0, MARK);
        }
        text
    }

    /// Returns true when the changes alter the file's values. A change of the formatting alone does not count.
    pub fn is_changed(&self) -> bool {
        self.touched.iter().any(|(name, was)| self.get(&[name]) != *was)
    }

    /// Returns the value at `path`, if there is one.
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        match &self.content {
            ConfigContent::Json(json) => json.get(path),
            ConfigContent::Toml(document) => {
                path.iter().try_fold(document.as_item(), |item, name| item.as_table_like()?.get(name)).map(of_item)
            }
        }
    }

    /// Puts `value` at `path`, and creates missing objects on the path. A value that is already equal keeps its
    /// formatting.
    ///
    /// # Errors
    /// `E_INVALID` when a value on the path is no object.
    pub fn set(&mut self, path: &[&str], value: &Value) -> Result<()> {
        if self.get(path).as_ref() == Some(value) {
            return Ok(());
        }
        self.note_touched(path);
        let set = path.split_last().and_then(|(last, way)| match &mut self.content {
            ConfigContent::Json(json) => json.set(way, last, value),
            ConfigContent::Toml(document) => {
                toml_table(Rc::make_mut(document), way).map(|table| put_toml_value(table, last, to_toml_item(value)))
            }
        });
        set.ok_or_else(|| no_object(&self.path, path))
    }

    /// Appends `value` to the list at `path`, and creates the list if it is missing.
    ///
    /// # Errors
    /// `E_INVALID` when the value at `path` is no list.
    pub fn append(&mut self, path: &[&str], value: &Value) -> Result<()> {
        self.note_touched(path);
        let appended = path.split_last().and_then(|(last, way)| match &mut self.content {
            ConfigContent::Json(json) => json.append(way, last, value),
            ConfigContent::Toml(_) => None,
        });
        appended.ok_or_else(|| no_object(&self.path, path))
    }

    /// Removes the value at `path`. Also removes each object or list around the value that becomes empty.
    pub fn remove(&mut self, path: &[&str]) {
        let Some((last, way)) = path.split_last() else { return };
        if self.get(path).is_none() {
            return;
        }
        self.note_touched(path);
        match &mut self.content {
            ConfigContent::Json(json) => drop(json.remove(way, last)),
            ConfigContent::Toml(document) => {
                let document = Rc::make_mut(document);
                let comment = toml_table(document, way).and_then(|table| remove_toml_value(table, last));
                // A comment of the last value of the file stays at its end.
                if let Some(comment) = comment {
                    document.set_trailing(comment + document.trailing().as_str().unwrap_or(""));
                }
            }
        }
        let empty = |value: &Value| match value {
            Value::Object(map) => map.is_empty() || map.keys().eq(["matcher"]),
            Value::Array(elements) => elements.is_empty(),
            _ => false,
        };
        if !way.is_empty() && self.get(way).is_some_and(|value| empty(&value)) {
            self.remove(way);
        }
    }

    /// Removes a top-level name if the file has no other name.
    pub fn remove_if_alone(&mut self, name: &str) {
        let is_alone = match &self.content {
            ConfigContent::Json(json) => json.is_alone(name),
            ConfigContent::Toml(document) => document.iter().map(|(name, _)| name).eq([name]),
        };
        if is_alone {
            self.remove(&[name]);
        }
    }

    /// Notes the earlier value of the top-level name that a change at `path` may alter.
    fn note_touched(&mut self, path: &[&str]) {
        if let Some(name) = path.first().filter(|name| !self.touched.iter().any(|(known, _)| known == *name)) {
            self.touched.push(((*name).to_owned(), self.get(&[name])));
        }
    }
}

impl ConfigContent {
    fn parse(path: &Path, form: ConfigFormat, text: &str) -> Result<Self> {
        let text = text.trim_start_matches(MARK);
        match form {
            ConfigFormat::Json => {
                let json = JsonDocument::parse(text)
                    .map_err(|JsonSyntaxError(line, column, why)| broken_error(path, line, column, &why))?;
                Ok(Self::Json(json))
            }
            ConfigFormat::Toml => document_of(text).map(Self::Toml).map_err(|error| {
                let offset = error.span().map_or(0, |span| span.start);
                let (line, column) = to_line_column(text, offset);
                broken_error(path, line, column, error.message())
            }),
        }
    }
}

thread_local! {
    /// The last parsed TOML text. A command reads the same file several times, and most of its time goes into parsing.
    static LAST: RefCell<Option<(String, Rc<DocumentMut>)>> = const { RefCell::new(None) };
}

fn document_of(text: &str) -> Result<Rc<DocumentMut>, toml_edit::TomlError> {
    LAST.with_borrow_mut(|last| {
        if let Some((_, document)) = last.as_ref().filter(|(known, _)| known == text) {
            return Ok(Rc::clone(document));
        }
        let document = Rc::new(text.parse::<DocumentMut>()?);
        *last = Some((text.to_owned(), Rc::clone(&document)));
        Ok(document)
    })
}

/// Converts a byte offset to line and column, counted from 1.
fn to_line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.chars().rev().take_while(|c| *c != '\n').count() + 1)
}

fn with_line_end(text: String) -> String {
    if text.ends_with('\n') { text } else { text + "\n" }
}

fn toml_table<'a>(document: &'a mut DocumentMut, way: &[&str]) -> Option<&'a mut dyn toml_edit::TableLike> {
    let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
    for name in way {
        let entry = table.entry(name).or_insert_with(|| {
            let mut made = Table::new();
            // Makes the table implicit: `[a.b]` is then written without an `[a]` before it.
            made.set_implicit(true);
            Item::Table(made)
        });
        table = entry.as_table_like_mut()?;
    }
    Some(table)
}

/// Puts a value into a table. The comments around an earlier value stay.
fn put_toml_value(table: &mut dyn toml_edit::TableLike, name: &str, item: Item) {
    match (table.get_mut(name), item) {
        (Some(Item::Value(earlier)), Item::Value(mut value)) => {
            *value.decor_mut() = earlier.decor().clone();
            *earlier = value;
        }
        (_, item) => drop(table.insert(name, item)),
    }
}

/// Removes a value from a table. A comment above it, which may be about the whole file, moves to the next value or
/// table; it is returned where there is none.
fn remove_toml_value(table: &mut dyn toml_edit::TableLike, name: &str) -> Option<String> {
    let text_of = |decor: &toml_edit::Decor| decor.prefix().and_then(|prefix| prefix.as_str()).unwrap_or("").to_owned();
    let comment = table.key(name).map(|key| text_of(key.leaf_decor())).filter(|comment| comment.contains('#'));
    let next_value = table.iter().skip_while(|(key, _)| *key != name).skip(1).find(|(_, item)| item.is_value());
    // Tables with a head of their own stand behind all values.
    let has_head = |item: &Item| item.as_table().is_some_and(|table| !table.is_dotted() && !table.is_implicit());
    let next = next_value.or_else(|| table.iter().find(|(_, item)| has_head(item))).map(|(key, _)| key.to_owned());
    table.remove(name);
    let comment = comment?;
    let Some(next) = next else { return Some(comment) };
    if let Some(Item::Table(next)) = table.get_mut(&next) {
        let own = text_of(next.decor());
        next.decor_mut().set_prefix(comment + &own);
    } else if let Some(mut key) = table.key_mut(&next) {
        let own = text_of(key.leaf_decor());
        key.leaf_decor_mut().set_prefix(comment + &own);
    }
    None
}

/// Converts a value to TOML: the outermost object becomes a table, nested objects become inline tables.
fn to_toml_item(value: &Value) -> Item {
    match value {
        Value::Object(map) => {
            let mut table = Table::new();
            for (name, value) in map {
                table.insert(name, toml_value(value).map_or(Item::None, Item::Value));
            }
            Item::Table(table)
        }
        value => toml_value(value).map_or(Item::None, Item::Value),
    }
}

/// Converts a value to TOML. Returns `None` for null, which TOML does not have.
fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(yes) => (*yes).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(list) => list.iter().filter_map(toml_value).collect::<Array>().into(),
        Value::Object(map) => {
            let fields = map.iter().filter_map(|(name, value)| Some((name.as_str(), toml_value(value)?)));
            fields.collect::<InlineTable>().into()
        }
    })
}

fn of_table(table: &dyn toml_edit::TableLike) -> Value {
    table.iter().map(|(name, item)| (name.to_owned(), of_item(item))).collect::<serde_json::Map<_, _>>().into()
}

fn of_item(item: &Item) -> Value {
    if let Some(table) = item.as_table_like() {
        return of_table(table);
    }
    if let Some(tables) = item.as_array_of_tables() {
        return tables.iter().map(|table| of_table(table)).collect();
    }
    item.as_value().map_or(Value::Null, of_value)
}

fn of_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => text.value().as_str().into(),
        toml_edit::Value::Integer(number) => (*number.value()).into(),
        toml_edit::Value::Float(number) => (*number.value()).into(),
        toml_edit::Value::Boolean(yes) => (*yes.value()).into(),
        toml_edit::Value::Datetime(time) => time.value().to_string().into(),
        toml_edit::Value::Array(list) => list.iter().map(of_value).collect(),
        toml_edit::Value::InlineTable(table) => of_table(table),
    }
}

/// Reads a file. Returns `None` when the file does not exist.
///
/// # Errors
/// `E_UNAVAILABLE` when the file cannot be read.
pub fn text_of(path: &Path) -> Result<Option<String>> {
    match foreign::read_text(path, LinkPolicy::Followed, MAX_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!("Cannot read {}: {error}; correct it.", path.display());
            Err(Error::unavailable(message))
        }
    }
}

fn broken_error(path: &Path, line: usize, column: usize, why: &str) -> Error {
    let (path, why) = (path.display(), why.lines().collect::<Vec<_>>().join(" "));
    let message = format!("{path} is broken at line {line}, column {column}: {why}; correct it, nothing was changed.");
    Error::invalid(message)
}

fn no_object(path: &Path, keys: &[&str]) -> Error {
    let message = format!("{}: {} is not where an object is expected; correct it.", path.display(), keys.join("."));
    Error::invalid(message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(form: ConfigFormat, text: &str) -> Result<ConfigFile> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config");
        std::fs::write(&path, text).unwrap();
        ConfigFile::read(&path, form)
    }

    fn values(form: ConfigFormat, text: &str) -> Value {
        match form {
            ConfigFormat::Json if text.is_empty() => json!({}),
            ConfigFormat::Json => jsonc_parser::cst::CstRootNode::parse(text, &jsonc_parser::ParseOptions::default())
                .unwrap()
                .to_serde_value()
                .unwrap(),
            ConfigFormat::Toml => of_item(text.parse::<DocumentMut>().unwrap().as_item()),
        }
    }

    #[test]
    fn comments_stay_around_a_value_that_is_changed_or_removed() {
        let text = "# mine\n\n# why\nkeep = false # for now\n[hook]\n# slow\nms = 60\n";
        let mut file = config(ConfigFormat::Toml, text).unwrap();
        file.set(&["keep"], &true.into()).unwrap();
        file.set(&["hook", "ms"], &250.into()).unwrap();
        file.set(&["learn"], &true.into()).unwrap();
        let changed = "# mine\n\n# why\nkeep = true # for now\nlearn = true\n[hook]\n# slow\nms = 250\n";
        assert_eq!(file.to_text(), changed);
        file.remove(&["keep"]);
        assert_eq!(file.to_text(), "# mine\n\n# why\nlearn = true\n[hook]\n# slow\nms = 250\n");
        file.remove(&["learn"]);
        assert_eq!(file.to_text(), "# mine\n\n# why\n[hook]\n# slow\nms = 250\n");
        let mut file = config(ConfigFormat::Toml, "# mine\nkeep = true\n").unwrap();
        file.remove(&["keep"]);
        assert_eq!(file.to_text(), "# mine\n");
    }

    /// Makes a settings file with many entries that Nudge does not need.
    fn large(projects: usize) -> String {
        let mut text = "{\n  // mine\n  \"startups\": 12,\n  \"projects\": {".to_owned();
        let project =
            |number| format!("\n    \"/w/{number}\": {{ \"tools\": [\"Bash\"], /* \u{e9} */ \"cost\": 1.50 }}");
        text += &(0..projects).map(project).collect::<Vec<_>>().join(",");
        text + "\n  },\n  \"mcpServers\": {}\n}\n"
    }

    /// Promise (agents): Reading a client's settings of megabytes takes time in proportion to their size, and values
    /// that Nudge does not change stay text.
    #[test]
    fn text_that_a_client_keeps_for_itself_stays_text() {
        let (entry, path) = (json!({"command": "/n", "args": ["serve"]}), ["mcpServers", "nudge"]);
        let text = large(2_000);
        let trees = || json::TREES.get();
        let begun = trees();
        let mut file = config(ConfigFormat::Json, &text).unwrap();
        assert_eq!(file.get(&["projects", "/w/7", "tools", "0"]), Some("Bash".into()));
        assert_eq!(file.get(&["projects", "/w/2000"]), None);
        file.set(&path, &entry).unwrap();
        assert!(file.is_changed());
        let after = file.to_text();
        assert!(trees() - begun < 4096, "{} bytes became trees", trees() - begun);
        assert_eq!(
            after.replace(&after[after.find("\"mcpServers\"").unwrap()..], ""),
            text.replace("\"mcpServers\": {}\n}\n", "")
        );
        assert_eq!(values(ConfigFormat::Json, &after)["mcpServers"]["nudge"], entry);
        let mut again = config(ConfigFormat::Json, &after).unwrap();
        again.set(&path, &entry).unwrap();
        assert!(!again.is_changed());
        again.remove(&path);
        assert_eq!(
            values(ConfigFormat::Json, &again.to_text())["projects"],
            values(ConfigFormat::Json, &text)["projects"]
        );

        // The first change parses the part into a tree; the next changes use the same tree.
        let begun = trees();
        for cost in [2, 3, 4] {
            file.set(&["projects", "/w/7", "cost"], &cost.into()).unwrap();
        }
        assert_eq!(file.get(&["projects", "/w/7", "cost"]), Some(4.into()));
        assert_eq!(values(ConfigFormat::Json, &file.to_text())["projects"]["/w/1999"]["cost"], json!(1.5));
        assert!(trees() - begun < 2 * text.len());
    }

    #[test]
    fn a_toml_text_is_parsed_once_and_each_reader_changes_its_own() {
        let document = |file: &ConfigFile| match &file.content {
            ConfigContent::Toml(document) => Rc::clone(document),
            ConfigContent::Json(_) => unreachable!(),
        };
        let path = ["mcp_servers", "nudge"];
        let (mut first, second) =
            (config(ConfigFormat::Toml, TOML).unwrap(), config(ConfigFormat::Toml, TOML).unwrap());
        assert!(Rc::ptr_eq(&document(&first), &document(&second)));
        first.set(&path, &json!({"command": "/n"})).unwrap();
        assert!(first.is_changed() && !second.is_changed());
        let (third, other) =
            (config(ConfigFormat::Toml, TOML).unwrap(), config(ConfigFormat::Toml, &first.to_text()).unwrap());
        assert_eq!([second.get(&path), third.get(&path)], [None, None]);
        assert_eq!(other.get(&path), Some(json!({"command": "/n"})));
        assert_eq!(third.to_text(), TOML);
    }

    const JSONC: &str = "{\n    // mine\n    \"z\": 1, /* kept */\n    \"mcpServers\": {\n        \"other\": {\"command\": \"x\"},\n    },\n}\n";
    const TOML: &str = "# mine\nmodel = \"x\"   # kept\n\n[mcp_servers.other]\ncommand = \"y\"\n";

    #[test]
    fn everything_else_stays() {
        let entry = json!({"command": "/n", "args": ["serve"]});
        let mut file = config(ConfigFormat::Json, JSONC).unwrap();
        file.set(&["mcpServers", "nudge"], &entry).unwrap();
        let after = file.to_text();
        for kept in ["    // mine\n", "\"z\": 1, /* kept */", "\"other\": {\"command\": \"x\"},"] {
            assert!(after.contains(kept), "{after}");
        }
        assert_eq!(config(ConfigFormat::Json, &after).unwrap().get(&["mcpServers", "nudge"]), Some(entry.clone()));

        let mut file = config(ConfigFormat::Toml, TOML).unwrap();
        file.set(&["mcp_servers", "nudge"], &entry).unwrap();
        let after = file.to_text();
        assert!(after.starts_with(TOML.trim_end()), "{after}");
        assert!(after.contains("\n[mcp_servers.nudge]\ncommand = \"/n\"\nargs = [\"serve\"]\n"), "{after}");
        assert!(!after.contains("[mcp_servers]\n"), "{after}");
    }

    #[test]
    fn twice_is_once_and_removed_is_as_before() {
        let entry = json!({"command": "/n", "args": ["serve"]});
        for (form, text) in [
            (ConfigFormat::Json, JSONC),
            (ConfigFormat::Toml, TOML),
            (ConfigFormat::Json, ""),
            (ConfigFormat::Toml, ""),
        ] {
            let mut file = config(form, text).unwrap();
            assert!(!file.is_changed(), "{form:?}");
            file.set(&["mcp", "nudge"], &entry).unwrap();
            assert!(file.is_changed());
            let mut again = config(form, &file.to_text()).unwrap();
            again.set(&["mcp", "nudge"], &entry).unwrap();
            assert!(!again.is_changed());
            assert_eq!(again.to_text(), file.to_text());
            again.remove(&["mcp", "nudge"]);
            assert_eq!(again.get(&["mcp"]), None);
            assert_eq!(values(form, &again.to_text()), values(form, text), "{form:?}");
        }
    }

    #[test]
    fn the_broken_is_refused_with_its_position() {
        for (form, text, position) in [
            (ConfigFormat::Json, "{\n  \"a\": 1\n  \"b\": 2\n}", "line 2, column 9"),
            (ConfigFormat::Json, "{'a': 1}", "line 1, column 2"),
            (ConfigFormat::Json, "[1]", "line 1, column 1"),
            (ConfigFormat::Toml, "a = 1\nb = = 2\n", "line 2, column 5"),
        ] {
            let error = config(form, text).err().unwrap();
            assert!(error.message().contains(position), "{error}");
            assert_eq!(error.kind(), nudge::ErrorKind::Invalid);
        }
        let mut file = config(ConfigFormat::Json, "{\"mcp\": []}").unwrap();
        assert!(file.set(&["mcp", "nudge"], &json!({})).is_err());
        let mut file = config(ConfigFormat::Toml, "mcp = 1").unwrap();
        assert!(file.set(&["mcp", "nudge"], &json!({})).is_err());
    }
}
