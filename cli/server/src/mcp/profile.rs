//! Profiles: the tools of another specification, under its own names, in place of the sources' tools.
//!
//! A profile changes only the surface: its tools call the same methods of the same session. A server with a profile can
//! therefore be PRIMARY or PROXY like any other server, and all callers see what it stores.

mod dude;
mod nugget;

use std::pin::Pin;
use std::sync::Arc;

use nudge::{ContextUse, Error, Result};
use nudge_app::sources;
use nudge_core::service::MethodSpec;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::fill_in::{self, ContextFiller, ToolCall};
use super::tools;
use crate::session::backend::CallBackend;

/// A profile: the tools that replace all other tools of a server.
pub struct ServerProfile {
    /// The name for `nudge serve --profile`, which is also the name of the MCP server.
    pub name: &'static str,
    /// The name to show to users.
    pub title: &'static str,
    /// The instructions that a host shows to the model.
    pub instructions: &'static str,
    /// The tools, in the order of `tools/list`.
    pub tools: &'static [ProfileTool],
}

/// A tool of a profile.
pub struct ProfileTool {
    /// The name of the tool, without a prefix.
    pub name: &'static str,
    /// A title of a few words, to show to users.
    pub title: &'static str,
    /// A description for models: the tool's effect, and when to call it.
    pub description: &'static str,
    /// Returns the JSON Schema of the arguments.
    pub params: fn() -> Value,
    /// The method that the tool calls; both have the same effect.
    pub method: &'static str,
    /// Answers a call.
    pub run: Run,
}

/// Answers a call of a tool with these arguments. Calls methods of the session to do so.
pub type Run = for<'a> fn(&'a SessionMethods<'a>, &'a RawValue) -> Answer<'a>;

/// The answer to a call of a tool.
pub type Answer<'a> = Pin<Box<dyn Future<Output = Result<Box<RawValue>>> + Send + 'a>>;

/// Every profile.
static PROFILES: &[&ServerProfile] = &[&dude::PROFILE, &nugget::PROFILE];

/// Lists the names of all profiles.
pub fn list_profile_names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|profile| profile.name)
}

/// Finds the profile with this name.
pub fn find_profile(name: &str) -> Option<&'static ServerProfile> {
    PROFILES.iter().copied().find(|profile| profile.name == name)
}

impl ServerProfile {
    /// Finds the tool with this name.
    pub fn find_tool(&self, name: &str) -> Option<&'static ProfileTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Rewrites an error for the profile's client: replaces the name of a method by that of the profile's tool. If a
    /// method has no tool, its command replaces it.
    pub fn in_its_words(&self, refused: Error) -> Error {
        let name_tool =
            |text: String, tool: &ProfileTool| text.replace(&format!("`{}`", tool.method), &format!("`{}`", tool.name));
        let told = self.tools.iter().fold(refused.message().to_owned(), name_tool);
        let name_others = |text: String, method: &MethodSpec| match sources::name_command(method.name) {
            Some(command) => text.replace(&format!("`{}`", method.name), &format!("`{command}`")),
            None => text,
        };
        refused.with_message(sources::list_methods().into_iter().fold(told, name_others))
    }

    /// Returns the tools for `tools/list`.
    pub fn list_tools(&self) -> Vec<Tool> {
        self.tools.iter().map(ProfileTool::to_tool).collect()
    }
}

impl ProfileTool {
    fn find_method(&self) -> Option<&'static MethodSpec> {
        sources::find_method(self.method)
    }

    fn to_tool(&self) -> Tool {
        let schema = match (self.params)() {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        };
        let annotations = self.find_method().map_or_else(ToolAnnotations::new, |row| {
            ToolAnnotations::new().read_only(row.read_only).destructive(row.destructive).idempotent(row.idempotent)
        });
        let tool = Tool::new(self.name, self.description, Arc::new(schema))
            .with_title(self.title)
            .with_annotations(annotations.open_world(false));
        if self.find_method().is_some_and(|row| row.frequent) { tools::at_once(tool) } else { tool }
    }
}

/// Calls methods of the session on behalf of one tool call.
pub struct SessionMethods<'a> {
    /// The backend that answers the methods.
    pub backend: &'a CallBackend,
    /// Completes the contexts of the calls, if the client's context can be inferred.
    pub filler: Option<&'a ContextFiller>,
    /// The client's name.
    pub caller: &'a str,
    /// The client's `_meta`.
    pub meta: JsonObject,
}

impl SessionMethods<'_> {
    /// Calls a method in the client's context.
    ///
    /// # Errors
    /// The method's own error; `E_UNAVAILABLE` when the PRIMARY does not answer or does not have the method.
    pub async fn call<T: DeserializeOwned>(&self, method: &str, params: &impl Serialize) -> Result<T> {
        let unreadable = |_| {
            Error::unavailable(
                "The server answers in a form that is not known here; `nudge stop`, then start it again.",
            )
        };
        let call = ToolCall {
            method: method.to_owned(),
            context: sources::find_method(method).map_or(ContextUse::None, |row| row.context),
            params: to_raw_value(params).map_err(unreadable)?,
            meta: self.meta.clone(),
        };
        let answer = fill_in::call(self.backend, self.caller, call, self.filler).await?;
        serde_json::from_str(answer.get()).map_err(unreadable)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use nudge::ErrorKind;

    use super::*;

    #[test]
    fn a_refusal_speaks_of_tools_and_commands() {
        let refused = Error::not_found("Look by `nudge.records.search`, or `nudge.records.restore`; not `id`.");
        let told = dude::PROFILE.in_its_words(refused.with_data("merged_into", 5));
        assert_eq!(told.message(), "Look by `search`, or `nudge records restore`; not `id`.");
        assert_eq!((told.kind(), &told.data()["merged_into"]), (ErrorKind::NotFound, &5.into()));
    }

    #[test]
    fn every_profile_is_whole() {
        assert_eq!(list_profile_names().collect::<BTreeSet<_>>().len(), PROFILES.len(), "a name stands for one");
        for profile in PROFILES {
            assert!(profile.instructions.len() <= 2_000, "some hosts cut instructions at 2 KB");
            let names: BTreeSet<_> = profile.tools.iter().map(|tool| tool.name).collect();
            assert_eq!(names.len(), profile.tools.len());
            for tool in profile.tools {
                let row = tool.find_method().unwrap_or_else(|| panic!("{}: there is no {}", tool.name, tool.method));
                assert!(row.destructive || row.read_only || row.tool, "{}", tool.name);
                assert_eq!((tool.params)()["type"], "object", "{}", tool.name);
            }
            let listed = serde_json::to_string(&profile.list_tools()).unwrap();
            assert!(listed.len() <= 16_000, "{}: {} bytes", profile.name, listed.len());
        }
    }
}
