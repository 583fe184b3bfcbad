//! Prints a document of a source page by page, so only one page is in memory, however large the document is.

use std::collections::BTreeMap;

use nudge::{Error, Result};
use nudge_core::service::DocumentPages;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::{CommandOutput, TextForm, print_text, unwritten};
use super::ask_source;
use crate::args::{GlobalFlags, SourceVerb};

/// Prints all pages as one document. Stops when the reader has closed the pipe.
pub fn print_pages(mut call: SourceVerb, pages: &DocumentPages, global: &GlobalFlags) -> Result<CommandOutput> {
    let mut cursor = Value::from(0);
    let mut is_first = true;
    loop {
        call.params.insert(pages.cursor.into(), cursor);
        let page = ask_source(call.clone(), global)?;
        let page = DocumentPage::read(&page, pages)?;
        let mut text = if std::mem::take(&mut is_first) { page.beginning(pages) } else { String::new() };
        if !page.rows.is_empty() {
            text.extend((!text.ends_with('[')).then_some(','));
            text.push_str(page.rows);
        }
        if page.next.is_none() {
            text.push_str("]}\n");
        }
        let is_read = print_text(&text, TextForm::Json).map_err(|error| unwritten(&error))?;
        match page.next {
            Some(next) if is_read => cursor = next,
            _ => return Ok(String::new().into()),
        }
    }
}

/// A page of the document.
struct DocumentPage<'a> {
    /// The members other than the list.
    others: BTreeMap<&'a str, &'a RawValue>,
    /// The list without its brackets.
    rows: &'a str,
    next: Option<Value>,
}

impl<'a> DocumentPage<'a> {
    fn read(page: &'a RawValue, pages: &DocumentPages) -> Result<Self> {
        let broken = || Error::unavailable("The server answered something else than an export; update it.");
        let mut others: BTreeMap<&str, &RawValue> = serde_json::from_str(page.get()).map_err(|_| broken())?;
        let next = others.remove(pages.next).map(|next| serde_json::from_str(next.get()));
        let next = next.transpose().map_err(|_| broken())?;
        let list = others.remove(pages.list).ok_or_else(broken)?.get();
        let rows = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).ok_or_else(broken)?;
        Ok(Self { others, rows: rows.trim(), next })
    }

    /// Returns the document up to its first row.
    fn beginning(&self, pages: &DocumentPages) -> String {
        let member = |(name, value): (&&str, &&RawValue)| format!("{}:{},", Value::from(*name), value.get());
        let others: Vec<_> = self.others.iter().map(member).collect();
        format!("{{{}{}:[", others.concat(), Value::from(pages.list))
    }
}
