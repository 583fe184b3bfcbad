//! The store as MCP resources, for people and hosts that browse: the list of components, and each
//! component with its hints. Secret hints are left out.

use std::sync::Arc;

use nudge::ErrorKind;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{
    ArgumentInfo, CacheScope, CompleteResult, CompletionInfo, ErrorData, ListResourceTemplatesResult,
    ListResourcesResult, ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::backend::Backend;
use super::changes::{list as list_names, no_params};

const COMPONENTS_URI: &str = "nudge://components";
const COMPONENT_URI: &str = "nudge://component/";
const COMPONENT_TEMPLATE: &str = "nudge://component/{name}";
const MIME_TYPE: &str = "application/json";
/// Resources on one page of the list.
const PAGE: usize = 100;
/// The templates never change within one process.
const TEMPLATES_TTL_MS: u64 = 3_600_000;
/// What RFC 6570 leaves as it is when it fills in a template.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What a URI names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The list of components.
    Components,
    /// A component, whether there is one of this name or not.
    Component(String),
}

impl Target {
    /// Reads a URI; `None` when it can never name anything here.
    pub fn parse(uri: &str) -> Option<Self> {
        if uri == COMPONENTS_URI {
            return Some(Self::Components);
        }
        let name = percent_decode_str(uri.strip_prefix(COMPONENT_URI)?).decode_utf8().ok()?;
        (!name.is_empty()).then(|| Self::Component(name.into_owned()))
    }
}

fn component_uri(name: &str) -> String {
    format!("{COMPONENT_URI}{}", utf8_percent_encode(name, ESCAPED))
}

/// One page of the list: the components in byte order, after the list of them. A cursor is the URI
/// before the page, so pages stay right when components come and go.
pub(super) async fn list(backend: &Arc<Backend>, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
    let after = match cursor.map(Target::parse) {
        None => None,
        Some(Some(Target::Component(name))) => Some(name),
        Some(_) => return Err(ErrorData::invalid_params("There is no such cursor; begin without one.", None)),
    };
    let mut names = list_names(backend).await.map_err(|error| failed(&error))?;
    let mut resources = Vec::new();
    match after {
        None => resources.push(
            Resource::new(COMPONENTS_URI, "components")
                .with_title("Components")
                .with_description("Every component with how many hints it has.")
                .with_mime_type(MIME_TYPE),
        ),
        Some(after) => drop(names.drain(..names.partition_point(|name| *name <= after))),
    }
    let room = PAGE - resources.len();
    let more = names.len() > room;
    names.truncate(room);
    resources.extend(names.iter().map(|name| Resource::new(component_uri(name), name).with_mime_type(MIME_TYPE)));
    let next_cursor = resources.last().filter(|_| more).map(|last| last.uri.clone());
    let mut page = ListResourcesResult::with_all_items(resources).with_ttl_ms(0).with_cache_scope(CacheScope::Private);
    page.next_cursor = next_cursor;
    Ok(page)
}

/// The one template.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let component = ResourceTemplate::new(COMPONENT_TEMPLATE, "component")
        .with_title("Component")
        .with_description("A component's hints as JSON that nudge_import accepts. Secret hints are left out.")
        .with_mime_type(MIME_TYPE);
    ListResourceTemplatesResult::with_all_items(vec![component])
        .with_ttl_ms(TEMPLATES_TTL_MS)
        .with_cache_scope(CacheScope::Public)
}

/// What a URI names, as it is now.
pub(super) async fn read(backend: &Arc<Backend>, uri: String) -> Result<ReadResourceResult, ErrorData> {
    let json = match Target::parse(&uri) {
        None => return Err(unknown(&uri)),
        Some(Target::Components) => {
            backend.call("nudge.list_components", &no_params()).await.map_err(|error| failed(&error))?
        }
        Some(Target::Component(name)) => component(backend, &name, &uri).await?,
    };
    let contents = ResourceContents::text(String::from(Box::<str>::from(json)), uri).with_mime_type(MIME_TYPE);
    Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

async fn component(backend: &Arc<Backend>, name: &str, uri: &str) -> Result<Box<RawValue>, ErrorData> {
    #[derive(Serialize)]
    struct Export<'a> {
        component: &'a str,
    }
    #[derive(Deserialize)]
    struct Exported<'a> {
        #[serde(borrow)]
        payload: &'a RawValue,
    }
    let params = to_raw_value(&Export { component: name }).map_err(|_| unknown(uri))?;
    match backend.call("nudge.export", &params).await {
        Ok(exported) => match serde_json::from_str::<Exported<'_>>(exported.get()) {
            Ok(exported) => Ok(exported.payload.to_owned()),
            Err(_) => Err(ErrorData::internal_error("The export holds no payload.", None)),
        },
        // A name that none can have is as unknown as one that none has.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Invalid) => Err(unknown(uri)),
        Err(error) => Err(failed(&error)),
    }
}

/// Names for the template's `name`; nothing for what is not ours.
pub(super) async fn complete(
    backend: &Arc<Backend>,
    reference: &Reference,
    argument: &ArgumentInfo,
) -> Result<CompleteResult, ErrorData> {
    let ours = matches!(reference, Reference::Resource(resource) if resource.uri == COMPONENT_TEMPLATE);
    if !ours || argument.name != "name" {
        return Ok(CompleteResult::default());
    }
    let mut names = list_names(backend).await.map_err(|error| failed(&error))?;
    names.retain(|name| name.starts_with(&argument.value));
    let total = u32::try_from(names.len()).ok();
    let more = names.len() > CompletionInfo::MAX_VALUES;
    names.truncate(CompletionInfo::MAX_VALUES);
    let completion = CompletionInfo::with_pagination(names, total, more);
    Ok(CompleteResult::new(completion.unwrap_or_default()))
}

/// rmcp gives it the code of the client's era.
fn unknown(uri: &str) -> ErrorData {
    ErrorData::resource_not_found("There is no such resource; resources/list names them.", Some(json!({"uri": uri})))
}

fn failed(error: &nudge::Error) -> ErrorData {
    ErrorData::internal_error(error.message().to_owned(), serde_json::to_value(error.data()).ok())
}
