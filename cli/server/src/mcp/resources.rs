//! MCP resources, for users and for hosts that list them: the list and the items of each source.

use nudge::{Error, ErrorKind};
use nudge_app::sources;
use nudge_core::source::{SourcePage, SourceResources, SourceSpec};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{
    ArgumentInfo, CacheScope, CompleteResult, CompletionInfo, ErrorData, ListResourceTemplatesResult,
    ListResourcesResult, ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use crate::session::backend::CallBackend;
use crate::session::changes::{list_resource_names as list_names, no_params};

const MIME_TYPE: &str = "application/json";
const PAGE_MIME_TYPE: &str = "text/markdown";
/// The number of resources on one page of `resources/list`.
const PAGE: usize = 100;
/// The time for which clients may cache the templates, in milliseconds. Templates never change within a process.
const TEMPLATES_TTL_MS: u64 = 3_600_000;
/// The characters to escape: all characters except those that RFC 6570 allows unescaped in a variable.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The name of the variable in every template.
const NAME: &str = "name";

/// The thing that a URI names.
#[derive(Debug, Clone)]
pub enum ResourceTarget {
    /// The list of a source.
    List(&'static SourceSpec),
    /// The page of a source.
    Page(&'static SourceSpec, &'static SourcePage),
    /// An item of a source; the item may not exist.
    Item(&'static SourceSpec, String),
}

/// The order of a source's entries in the list of resources.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ResourceSlot {
    List,
    Page,
    Item(String),
}

impl ResourceTarget {
    /// Parses a URI. Returns `None` for a URI that can never name a resource of this server.
    pub fn parse(uri: &str) -> Option<Self> {
        sources::with_resources().find_map(|(source, resources)| {
            if uri == resources.list_uri {
                return Some(Self::List(source));
            }
            if let Some(page) = resources.page.filter(|page| page.uri == uri) {
                return Some(Self::Page(source, page));
            }
            let name = percent_decode_str(uri.strip_prefix(resources.item_uri)?).decode_utf8().ok()?;
            (!name.is_empty()).then(|| Self::Item(source, name.into_owned()))
        })
    }
}

fn item_uri(resources: &SourceResources, name: &str) -> String {
    format!("{}{}", resources.item_uri, utf8_percent_encode(name, ESCAPED))
}

fn template_uri(resources: &SourceResources) -> String {
    format!("{}{{{NAME}}}", resources.item_uri)
}

/// Returns one page of the list: for each source its list, its page, then its items in byte order. The cursor is the
/// last URI of the previous page, so no page breaks when resources are added or removed.
pub(super) async fn list_resources(
    backend: &CallBackend,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    // Returns the sort key of an entry.
    let place = |source: &'static SourceSpec, slot: ResourceSlot| {
        (sources::list_sources().iter().position(|own| own.name == source.name), slot)
    };
    let after = match cursor.map(ResourceTarget::parse) {
        None => None,
        Some(Some(ResourceTarget::List(source))) => Some(place(source, ResourceSlot::List)),
        Some(Some(ResourceTarget::Page(source, _))) => Some(place(source, ResourceSlot::Page)),
        Some(Some(ResourceTarget::Item(source, name))) => Some(place(source, ResourceSlot::Item(name))),
        Some(None) => return Err(ErrorData::invalid_params("There is no such cursor; begin without one.", None)),
    };
    let mut page = Vec::new();
    let mut more = false;
    for (source, resources) in sources::with_resources() {
        let names = list_names(backend, source).await.map_err(|error| to_error_data(&error))?;
        let pages = resources.page.map(|_| ResourceSlot::Page);
        for slot in std::iter::once(ResourceSlot::List).chain(pages).chain(names.into_iter().map(ResourceSlot::Item)) {
            let (source_index, slot) = place(source, slot);
            if after.as_ref().is_some_and(|(after_at, after_slot)| (&source_index, &slot) <= (after_at, after_slot)) {
                continue;
            }
            more = page.len() >= PAGE;
            if more {
                break;
            }
            page.push(match (&slot, resources.page) {
                (ResourceSlot::Page, Some(page)) => Resource::new(page.uri, page.name)
                    .with_title(page.title)
                    .with_description(page.about)
                    .with_mime_type(PAGE_MIME_TYPE),
                (ResourceSlot::List | ResourceSlot::Page, _) => {
                    Resource::new(resources.list_uri, format!("{}s", resources.item_name))
                        .with_title(resources.list_title)
                        .with_description(resources.list_about)
                        .with_mime_type(MIME_TYPE)
                }
                (ResourceSlot::Item(name), _) => {
                    Resource::new(item_uri(resources, name), name).with_mime_type(MIME_TYPE)
                }
            });
        }
        if more {
            break;
        }
    }
    let next_cursor = page.last().filter(|_| more).map(|last| last.uri.clone());
    let mut page = ListResourcesResult::with_all_items(page).with_ttl_ms(0).with_cache_scope(CacheScope::Private);
    page.next_cursor = next_cursor;
    Ok(page)
}

/// Returns one template for each source.
pub(super) fn list_templates() -> ListResourceTemplatesResult {
    let templates = sources::with_resources().map(|(_, resources)| {
        ResourceTemplate::new(template_uri(resources), resources.item_name)
            .with_title(resources.item_title)
            .with_description(resources.item_about)
            .with_mime_type(MIME_TYPE)
    });
    ListResourceTemplatesResult::with_all_items(templates.collect())
        .with_ttl_ms(TEMPLATES_TTL_MS)
        .with_cache_scope(CacheScope::Public)
}

/// Reads the present content of the thing that a URI names.
pub(super) async fn read(backend: &CallBackend, uri: String) -> Result<ReadResourceResult, ErrorData> {
    let json = match ResourceTarget::parse(&uri) {
        Some(ResourceTarget::Page(_, page)) => {
            let contents = ResourceContents::text(page.text, uri).with_mime_type(PAGE_MIME_TYPE);
            let result = ReadResourceResult::new(vec![contents]);
            return Ok(result.with_ttl_ms(TEMPLATES_TTL_MS).with_cache_scope(CacheScope::Public));
        }
        Some(ResourceTarget::List(SourceSpec { resources: Some(resources), .. })) => {
            backend.call(resources.list, &no_params()).await.map_err(|error| to_error_data(&error))?
        }
        Some(ResourceTarget::Item(SourceSpec { resources: Some(resources), .. }, name)) => {
            read_item(backend, resources, &name, &uri).await?
        }
        _ => return Err(unknown_resource(&uri)),
    };
    let contents = ResourceContents::text(String::from(Box::<str>::from(json)), uri).with_mime_type(MIME_TYPE);
    Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

async fn read_item(
    backend: &CallBackend,
    resources: &SourceResources,
    name: &str,
    uri: &str,
) -> Result<Box<RawValue>, ErrorData> {
    let (method, params) = (resources.item)(name);
    let params = to_raw_value(&params).map_err(|_| unknown_resource(uri))?;
    match backend.call(method, &params).await {
        Ok(told) => {
            (resources.shown)(&told).ok_or_else(|| ErrorData::internal_error("The answer holds nothing to show.", None))
        }
        // A client gets the same error for an invalid name and for a name that does not exist.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => Err(unknown_resource(uri)),
        Err(error) => Err(to_error_data(&error)),
    }
}

/// Completes the variable of a template. Returns nothing for the template of another server.
pub(super) async fn complete_name(
    backend: &CallBackend,
    reference: &Reference,
    argument: &ArgumentInfo,
) -> Result<CompleteResult, ErrorData> {
    let is_named = |resources: &SourceResources| matches!(reference, Reference::Resource(resource) if resource.uri == template_uri(resources));
    let ours = sources::with_resources().find(|(_, resources)| is_named(resources));
    let Some((source, _)) = ours.filter(|_| argument.name == NAME) else { return Ok(CompleteResult::default()) };
    let mut names = list_names(backend, source).await.map_err(|error| to_error_data(&error))?;
    names.retain(|name| name.starts_with(&argument.value));
    let total = u32::try_from(names.len()).ok();
    let more = names.len() > CompletionInfo::MAX_VALUES;
    names.truncate(CompletionInfo::MAX_VALUES);
    let completion = CompletionInfo::with_pagination(names, total, more);
    Ok(CompleteResult::new(completion.expect("there are at most MAX_VALUES")))
}

/// Returns the error for an unknown resource. rmcp sets the error code of the client's protocol version.
fn unknown_resource(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("There is no such resource; resources/list names them.", Some(json!({"uri": uri})))
}

fn to_error_data(error: &Error) -> ErrorData {
    ErrorData::internal_error(error.message().to_owned(), serde_json::to_value(error.data()).ok())
}
