//! `nudge export`: prints the hints of the session as one JSON document.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;

use nudge::{Error, Result};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap as _};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use serde_transcode::Transcoder;

use super::{
    CommandOutput, RunningSession, TextForm, add_field, parsed_as, print_note, print_text, to_raw_output, unwritten,
};
use crate::args::{ExportArgs, GlobalFlags};

/// A page of an export.
#[derive(Deserialize)]
struct HintExportPage {
    payload: OrderedMembers,
    omitted_secrets: u64,
    next: Option<String>,
}

/// Prints only the payload, page by page, indented so that users can read and edit it.
pub fn run(args: ExportArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let session = RunningSession::open(global)?;
    let mut params = Map::new();
    add_field(&mut params, "format", args.format);
    add_field(&mut params, "component", args.component);
    add_field(&mut params, "include_secrets", args.include_secrets.then_some(Value::Bool(true)));
    if global.json {
        return Ok(to_raw_output(&session.call("nudge.export", &params)?));
    }
    let first = read_page(&session, &params, "")?;
    let document = StoreDocument {
        session,
        params,
        next: RefCell::new(first.next),
        omitted_secrets: Cell::new(first.omitted_secrets),
        text: RefCell::default(),
        ended: RefCell::default(),
    };
    let written = document.write(&first.payload);
    match document.ended.take() {
        Some(EarlyEnd::NotRead) => return Ok(String::new().into()),
        Some(EarlyEnd::Failed(error)) => return Err(error),
        None => written.map_err(|_| broken())?,
    }
    match document.omitted_secrets.get() {
        0 => {}
        1 => print_note("1 secret is left out; add --include-secrets to export them too"),
        count => print_note(&format!("{count} secrets are left out; add --include-secrets to export them too")),
    }
    let mut text = document.text.take();
    text.push(b'\n');
    let text = String::from_utf8(text).expect("JSON is written as UTF-8");
    Ok(CommandOutput { form: TextForm::Json, ..text.into() })
}

fn read_page(session: &RunningSession, params: &Map<String, Value>, after: &str) -> Result<HintExportPage> {
    let mut params = params.clone();
    add_field(&mut params, "after", after);
    parsed_as(&session.call("nudge.export", &params)?)
}

fn broken() -> Error {
    Error::unavailable("The server answered something else than an export; update it.")
}

/// A document that is printed while the store is read, so only one page is in memory.
struct StoreDocument {
    session: RunningSession,
    params: Map<String, Value>,
    /// The value of `after` for the next page; `None` after the last page.
    next: RefCell<Option<String>>,
    omitted_secrets: Cell<u64>,
    /// The text that was written but is not printed yet.
    text: RefCell<Vec<u8>>,
    ended: RefCell<Option<EarlyEnd>>,
}

/// The reason why the document ends early.
enum EarlyEnd {
    /// The reader has closed the pipe.
    NotRead,
    Failed(Error),
}

impl StoreDocument {
    /// Writes the payload of the first page, and into it the components of all pages.
    fn write(&self, payload: &OrderedMembers) -> serde_json::Result<()> {
        let mut serializer = serde_json::Serializer::pretty(self);
        let mut document = serializer.serialize_map(None)?;
        for (name, value) in &payload.0 {
            if name == "components" {
                document.serialize_entry(name, &ComponentPages { document: self, first: value })?;
            } else {
                write_member(&mut document, name, value)?;
            }
        }
        document.end()
    }

    /// If another page follows, prints the text of this page, reads the next page, and returns its components.
    fn turn_page(&self) -> Result<Option<Box<RawValue>>, EarlyEnd> {
        let Some(after) = self.next.take() else { return Ok(None) };
        let text = String::from_utf8(self.text.take()).expect("JSON is written as UTF-8");
        match print_text(&text, TextForm::Json) {
            Ok(true) => {}
            Ok(false) => return Err(EarlyEnd::NotRead),
            Err(error) => return Err(EarlyEnd::Failed(unwritten(&error))),
        }
        let page = read_page(&self.session, &self.params, &after).map_err(EarlyEnd::Failed)?;
        self.omitted_secrets.set(self.omitted_secrets.get() + page.omitted_secrets);
        *self.next.borrow_mut() = page.next;
        let components = page.payload.0.into_iter().find(|(name, _)| name == "components");
        components.map(|(_, components)| Some(components)).ok_or_else(|| EarlyEnd::Failed(broken()))
    }
}

impl io::Write for &StoreDocument {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The components of all pages.
struct ComponentPages<'a> {
    document: &'a StoreDocument,
    /// The components of the first page.
    first: &'a RawValue,
}

impl Serialize for ComponentPages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let mut page = Some(self.first.to_owned());
        while let Some(components) = page {
            let components: OrderedMembers = serde_json::from_str(components.get()).map_err(S::Error::custom)?;
            for (name, component) in &components.0 {
                write_member(&mut map, name, component)?;
            }
            page = self.document.turn_page().map_err(|end| {
                *self.document.ended.borrow_mut() = Some(end);
                S::Error::custom("ended early")
            })?;
        }
        map.end()
    }
}

/// Writes a member token by token. A parsed value would lose duplicate keys and the spelling of numbers.
fn write_member<M: serde::ser::SerializeMap>(map: &mut M, name: &str, value: &RawValue) -> Result<(), M::Error> {
    map.serialize_entry(name, &Transcoder::new(&mut serde_json::Deserializer::from_str(value.get())))
}

/// The members of an object, in their order.
struct OrderedMembers(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for OrderedMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OrderedMembersVisitor;
        impl<'de> Visitor<'de> for OrderedMembersVisitor {
            type Value = OrderedMembers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OrderedMembers, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(OrderedMembers(members))
            }
        }
        deserializer.deserialize_map(OrderedMembersVisitor)
    }
}
