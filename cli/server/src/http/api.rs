//! The routes below `/api` offer records over plain HTTP, for programs that were made for the upstream plugin. Each
//! route calls one method. The response has the plugin's format, and the status of a refusal comes from its error.
//!
//! | route | method | answer |
//! |---|---|---|
//! | `GET /api/projects` | `nudge.records.projects` | a list of projects |
//! | `GET /api/records?project=&kind=&status=` | `nudge.records.list` | a list of records without bodies, all of them |
//! | `POST /api/records` | `nudge.records.upsert` | the record; 201 for a new one |
//! | `GET /api/records/ID` | `nudge.records.get` | the record |
//! | `PUT /api/records/ID` | `nudge.records.upsert` | the record |
//! | `DELETE /api/records/ID` | `nudge.records.delete` | `{"deleted": true, "id"}` |
//! | `POST /api/search` | `nudge.records.search` | a list of records with `similarity` |

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use nudge::{Caller, Error, Result, Service};
use nudge_app::wire::{parsed_as, to_raw};
use nudge_core::patience;
use nudge_core::service::CallLane;
use nudge_core::wire::json_text;
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value, json};

use super::request::CallerHeaders;
use crate::work::WorkDesk;

const LIST: &str = "nudge.records.list";
const UPSERT: &str = "nudge.records.upsert";
/// The number of records that one call reads for a list.
const LISTED: u64 = 1_000;

/// A route below `/api`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiRoute {
    /// `/api/projects`
    Projects,
    /// `/api/records`
    Records,
    /// `/api/records/ID`
    Record(i64),
    /// `/api/search`
    Search,
}

impl ApiRoute {
    /// Finds the route of a path.
    pub fn from_path(path: &str) -> Option<Self> {
        match path.strip_prefix("/api/")? {
            "projects" => Some(Self::Projects),
            "records" => Some(Self::Records),
            "search" => Some(Self::Search),
            rest => {
                let id = rest.strip_prefix("records/")?;
                let is_plain = id.bytes().all(|byte| byte.is_ascii_digit());
                id.parse().ok().filter(|_| is_plain).map(Self::Record)
            }
        }
    }

    /// Returns the HTTP methods of the route, as a list and as the value of the `Allow` header.
    pub fn allowed_methods(self) -> (&'static [Method], &'static str) {
        match self {
            Self::Projects => (&[Method::GET], "GET"),
            Self::Records => (&[Method::GET, Method::POST], "GET, POST"),
            Self::Record(_) => (&[Method::GET, Method::PUT, Method::DELETE], "GET, PUT, DELETE"),
            Self::Search => (&[Method::POST], "POST"),
        }
    }
}

/// An accepted request.
pub struct ApiRequest {
    /// The route.
    pub api: ApiRoute,
    /// The HTTP method; the route allows it.
    pub method: Method,
    /// The text after the `?`.
    pub query: Option<String>,
    /// The body.
    pub body: Bytes,
}

/// Answers a request.
pub async fn answer_api(
    desk: &WorkDesk,
    service: Arc<dyn Service>,
    head: CallerHeaders,
    asked: ApiRequest,
) -> (StatusCode, Bytes) {
    let work = move || head.read_caller().and_then(|caller| asked.call_service(&*service, caller));
    let (status, body) = match desk.run(CallLane::Work, work).await.flatten() {
        Ok(answer) => answer,
        Err(error) => (to_status(&error), json!({"error": error.to_json()})),
    };
    // A JSON value can always be serialized.
    (status, json_text(&body).into_bytes().into())
}

/// Returns the HTTP status that the first digits of an error's code say.
fn to_status(error: &Error) -> StatusCode {
    let status = u16::try_from(error.code() / 100).ok().and_then(|status| StatusCode::from_u16(status).ok());
    // The code contains no HTTP status when the server does not know the method, because it has no records.
    status.filter(|status| status.is_client_error() || status.is_server_error()).unwrap_or(StatusCode::NOT_FOUND)
}

impl ApiRequest {
    fn call_service(&self, service: &dyn Service, caller: Caller<'_>) -> Result<(StatusCode, Value)> {
        let call = |name: &str, params: &Map<String, Value>| -> Result<Value> {
            parsed_as(&service.call_by(caller, name, &to_raw(params)?)?)
        };
        let id_params = |id: i64| Map::from_iter([("id".to_owned(), id.into())]);
        let part = |mut whole: Value, name: &str| (StatusCode::OK, whole[name].take());
        match (self.api, &self.method) {
            (ApiRoute::Projects, _) => Ok(part(call("nudge.records.projects", &Map::new())?, "projects")),
            (ApiRoute::Search, _) => {
                let mut params = self.read_params()?;
                // A search without a context ranks all projects equally.
                if !params.contains_key("context") {
                    params.entry("project").or_insert("*".into());
                }
                params.entry("whole").or_insert(true.into());
                let (status, mut results) = part(call("nudge.records.search", &params)?, "results");
                // The specification of these routes excludes weak results.
                results.as_array_mut().into_iter().for_each(|rows| rows.retain(|row| row["weak"].is_null()));
                Ok((status, results))
            }
            (ApiRoute::Records, &Method::GET) => self.list_all(call).map(|records| (StatusCode::OK, records)),
            (ApiRoute::Records, _) => {
                let params = self.read_params()?;
                if params.contains_key("id") {
                    return Err(
                        Error::invalid("A new record has no `id` yet; `PUT /api/records/ID` changes one.").about("id")
                    );
                }
                answer_upsert(call(UPSERT, &params)?)
            }
            (ApiRoute::Record(id), &Method::PUT) => {
                let mut params = self.read_params()?;
                if params.get("id").is_some_and(|given| *given != id) {
                    return Err(
                        Error::invalid("`id` in the body is another than in the path; leave it out.").about("id")
                    );
                }
                params.insert("id".into(), id.into());
                answer_upsert(call(UPSERT, &params)?)
            }
            (ApiRoute::Record(id), &Method::DELETE) => {
                Ok((StatusCode::OK, call("nudge.records.delete", &id_params(id))?))
            }
            (ApiRoute::Record(id), _) => Ok((StatusCode::OK, call("nudge.records.get", &id_params(id))?)),
        }
    }

    /// Reads all pages of the list, because the plugin's API has no pages.
    fn list_all(&self, call: impl Fn(&str, &Map<String, Value>) -> Result<Value>) -> Result<Value> {
        let mut params = self.read_filters()?;
        params.insert("limit".into(), LISTED.into());
        let mut all = Vec::new();
        loop {
            patience::check_limit()?;
            let mut listed = call(LIST, &params)?;
            if let Value::Array(records) = listed["records"].take() {
                all.extend(records);
            }
            match listed["next"].take() {
                Value::Null => return Ok(all.into()),
                next => params.insert("before".into(), next),
            };
        }
    }

    /// Reads the filters of a list from the query string.
    fn read_filters(&self) -> Result<Map<String, Value>> {
        let mut params = Map::from_iter([("project".to_owned(), "*".into())]);
        let pairs = self.query.iter().flat_map(|query| query.split('&')).filter(|pair| !pair.is_empty());
        for pair in pairs {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !["project", "kind", "status"].contains(&name) {
                let message = "A list is narrowed by `project`, `kind` and `status`; leave the rest out.";
                return Err(Error::invalid(message).about("project").about("kind").about("status"));
            }
            let value = value.replace('+', " ");
            let value = percent_decode_str(&value).decode_utf8();
            let value = value.map_err(|_| Error::invalid("The query is not UTF-8; escape it as such."))?;
            if !value.is_empty() {
                params.insert(name.into(), value.into());
            }
        }
        Ok(params)
    }

    fn read_params(&self) -> Result<Map<String, Value>> {
        serde_json::from_slice(&self.body).map_err(|_| Error::invalid("The body must be a JSON object in UTF-8."))
    }
}

/// Converts the answer of an upsert.
fn answer_upsert(mut done: Value) -> Result<(StatusCode, Value)> {
    if done["written"] == false {
        let message = "Nothing was written, as `near` says nearly the same: change one of these by PUT, or send it again \
                       with `distinct: true`.";
        return Err(Error::conflict(message).with_data("near", done["near"].take()));
    }
    let status = if done["created"] == true { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, done["record"].take()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_of_four_routes() {
        for (path, api) in [
            ("/api/projects", Some(ApiRoute::Projects)),
            ("/api/records", Some(ApiRoute::Records)),
            ("/api/records/12", Some(ApiRoute::Record(12))),
            ("/api/search", Some(ApiRoute::Search)),
            ("/api", None),
            ("/api/", None),
            ("/api/records/", None),
            ("/api/records/-1", None),
            ("/api/records/+1", None),
            ("/api/records/1/x", None),
            ("/api/records/99999999999999999999", None),
            ("/API/records", None),
        ] {
            assert_eq!(ApiRoute::from_path(path), api, "{path}");
        }
    }

    #[test]
    fn a_query_narrows_by_three_words() {
        let read = |query: &str| {
            let (api, method, body) = (ApiRoute::Records, Method::GET, Bytes::new());
            ApiRequest { api, method, query: Some(query.into()), body }.read_filters().map(Value::from)
        };
        assert_eq!(read("").unwrap(), json!({"project": "*"}));
        assert_eq!(read("project=&kind=&status=").unwrap(), json!({"project": "*"}));
        let given = json!({"project": "a b/ü&c", "kind": "issue"});
        assert_eq!(read("project=a+b%2F%C3%BC%26c&kind=issue").unwrap(), given);
        for bad in ["limit=1", "project=%ff", "context=x"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refusal_has_the_status_that_its_code_begins_with() {
        for (error, expected) in
            [(Error::not_found("x"), 404), (Error::conflict("x"), 409), (Error::unavailable("x"), 503)]
        {
            assert_eq!(to_status(&error).as_u16(), expected);
        }
    }
}
