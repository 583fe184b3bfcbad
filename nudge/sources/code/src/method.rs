//! Defines the methods of the source and their params.

mod context;
mod folder;
mod look;
mod status;
mod tests;

use std::path::Path;
use std::sync::Arc;

use nudge_code_index::NodeKind;
use nudge_core::context::{Context, ContextSpec};
use nudge_core::error::{Error, Result};
use nudge_core::limit::Limit;
use nudge_core::service::MethodSpec;
use nudge_core::table::{MethodTable, TableRow, answer_typed, build_schema};
use nudge_core::wire;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::live::LiveRoot;
use crate::lookup::NodeRef;
use crate::report;
use crate::source::CodeSource;

/// The method that finds nodes.
pub const SEARCH: &str = "nudge.code.search";
/// The method that describes one node.
pub const NODE: &str = "nudge.code.node";
/// The method that describes a file or a folder.
pub const FILE: &str = "nudge.code.file";

pub static TABLE: MethodTable<CodeSource> = MethodTable(&[
    &TableRow {
        method: MethodSpec::new(
            SEARCH,
            "Search code",
            "Definitions in this project, by a question or a name: signature, place, why it fits.",
            build_schema::<CodeSearchParams>,
        )
        .tool()
        .read_only()
        .inferred()
        .with_report(report::report_search),
        run: |code, _, params| answer_typed(params, |params: CodeSearchParams| code.answer_search(params)),
    },
    &TableRow {
        method: MethodSpec::new(
            NODE,
            "Look at code",
            "One definition as it stands now: signature, doc, callers, what it calls, its tests, whether its doc is outdated.",
            build_schema::<CodeNodeParams>,
        )
        .tool()
        .read_only()
        .argument("id")
        .inferred()
        .with_report(report::report_node),
        run: |code, _, params| answer_typed(params, |params: CodeNodeParams| code.answer_node(params)),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.code.tests",
            "Find tests",
            "The tests of a definition, of a file, or of what changed since HEAD, with the command that runs them.",
            build_schema::<CodeTestsParams>,
        )
        .tool()
        .read_only()
        .argument("id")
        .inferred()
        .with_report(report::report_tests),
        run: |code, _, params| answer_typed(params, |params: CodeTestsParams| code.tests(params)),
    },
    &TableRow {
        method: MethodSpec::new("nudge.code.file", "Look at a file", "What a file defines, imports, and is imported by.", build_schema::<CodeFileParams>)
            .read_only()
            .inferred()
            .with_report(report::report_file),
        run: |code, _, params| answer_typed(params, |params: CodeFileParams| code.answer_file(params)),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.code.callers",
            "Find callers",
            "Who calls a definition, directly or over others, and how certain that is.",
            build_schema::<CodeCallersParams>,
        )
        .read_only()
        .argument("id")
        .inferred()
        .with_report(report::report_callers),
        run: |code, _, params| answer_typed(params, |params: CodeCallersParams| code.answer_callers(params)),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.code.context",
            "Code for a prompt",
            "The definitions that a prompt brings to mind, a line each.",
            build_schema::<ForPrompt>,
        )
        .read_only()
        .argument("prompt")
        .inferred()
        .with_report(report::report_context),
        run: |code, _, params| answer_typed(params, |params: ForPrompt| code.answer_context(params)),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.code.status",
            "Status of the code index",
            "What is indexed of this project, what is not, and why.",
            build_schema::<CodeStatusParams>,
        )
        .read_only()
        .vital()
        .inferred()
        .with_report(report::report_status),
        run: |code, _, params| answer_typed(params, |params: CodeStatusParams| code.status_of(params)),
    },
    &TableRow {
        method: MethodSpec::new(
            "nudge.code.refresh",
            "Refresh the code index",
            "Look at every file of this project now, or at one.",
            build_schema::<CodeRefreshParams>,
        )
        .idempotent()
        .inferred()
        .with_report(report::report_refresh),
        run: |code, _, params| answer_typed(params, |params: CodeRefreshParams| code.answer_refresh(params)),
    },
]);

/// The words for a kind, for schemas: a variant with its own documentation would become a schema of its own.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code, reason = "a schema alone")]
enum NodeKindSchema {
    Function,
    Method,
    Class,
    Trait,
    Type,
    Module,
    Macro,
    Variant,
    Constant,
}

/// Reads a kind. An absent kind, null and "" mean no filter.
fn deserialize_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NodeKind>, D::Error> {
    let given: Option<String> = Option::deserialize(deserializer)?;
    let Some(word) = given.filter(|word| !word.is_empty()) else { return Ok(None) };
    let unknown = |_| serde::de::Error::custom("this word is not one of those that there are");
    serde_json::from_value(word.into()).map(Some).map_err(unknown)
}

/// Params of `nudge.code.search`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeSearchParams {
    /// A question in your words, or a name or parts of it.
    pub query: String,
    /// Only these.
    #[serde(default, deserialize_with = "deserialize_kind")]
    #[schemars(with = "Option<NodeKindSchema>")]
    pub kind: Option<NodeKind>,
    /// Only files that match this glob, such as `src/**/*.py`.
    #[serde(default, deserialize_with = "wire::given")]
    pub path: Option<String>,
    /// Most results.
    #[serde(default)]
    pub limit: Limit<20, 100>,
    /// The project's folder; absent: the one around you.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(extend("x-not-for-models" = true))]
    pub root: Option<String>,
    /// Your location.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.code.node`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeNodeParams {
    /// `PATH:NAME`, `PATH:LINE`, or a name alone.
    #[serde(default, deserialize_with = "wire::given")]
    pub id: Option<String>,
    /// In place of `id`, with `name` or `line`.
    #[serde(default, deserialize_with = "wire::given")]
    pub path: Option<String>,
    #[serde(default, deserialize_with = "wire::given")]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "wire::given")]
    pub line: Option<u32>,
    /// The project's folder; absent: the one around you.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(extend("x-not-for-models" = true))]
    pub root: Option<String>,
    /// Your location.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.code.callers`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeCallersParams {
    /// `PATH:NAME`, `PATH:LINE`, or a name alone.
    #[serde(default, deserialize_with = "wire::given")]
    pub id: Option<String>,
    /// In place of `id`, with `name` or `line`.
    #[serde(default, deserialize_with = "wire::given")]
    pub path: Option<String>,
    #[serde(default, deserialize_with = "wire::given")]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "wire::given")]
    pub line: Option<u32>,
    /// Over how many calls.
    #[serde(default)]
    pub depth: Limit<1, 3>,
    /// Most callers.
    #[serde(default)]
    pub limit: Limit<50, 500>,
    /// Includes likely callers.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub likely: bool,
    /// The project's folder; absent: the one around you.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(extend("x-not-for-models" = true))]
    pub root: Option<String>,
    /// Your location.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.code.tests`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeTestsParams {
    /// `PATH:NAME`, `PATH:LINE`, or a name alone.
    #[serde(default, deserialize_with = "wire::given")]
    pub id: Option<String>,
    /// Tests of a whole file.
    #[serde(default, deserialize_with = "wire::given")]
    pub path: Option<String>,
    /// Tests of all changes since HEAD.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub changed: bool,
    /// Most results.
    #[serde(default)]
    pub limit: Limit<20, 100>,
    /// The project's folder; absent: the one around you.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(extend("x-not-for-models" = true))]
    pub root: Option<String>,
    /// Your location.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.code.file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeFileParams {
    /// The file, or a folder to list.
    pub path: String,
    /// The project's folder; absent: the one around you.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(extend("x-not-for-models" = true))]
    pub root: Option<String>,
    /// Your location.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.code.context`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForPrompt {
    /// The user's prompt.
    #[serde(default, deserialize_with = "wire::given")]
    pub prompt: Option<String>,
    /// Files that it is about.
    #[serde(default, deserialize_with = "wire::given_or_default")]
    pub files: Vec<String>,
    /// Most bytes of lines.
    #[serde(default)]
    pub max_bytes: Limit<2_000, { usize::MAX }, 0>,
    /// The agent's session, which is given each thing once.
    #[serde(default, deserialize_with = "wire::given")]
    pub client_session: Option<String>,
    /// The project's folder; absent: the one around you.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(extend("x-not-for-models" = true))]
    pub root: Option<String>,
    /// Your location.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.code.status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeStatusParams {
    /// The project's folder; absent: the one around you.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(extend("x-not-for-models" = true))]
    pub root: Option<String>,
    /// Your location.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// Params of `nudge.code.refresh`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeRefreshParams {
    /// This file alone.
    #[serde(default, deserialize_with = "wire::given")]
    pub path: Option<String>,
    /// The project's folder; absent: the one around you.
    #[serde(default, deserialize_with = "wire::given")]
    #[schemars(extend("x-not-for-models" = true))]
    pub root: Option<String>,
    /// Your location.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    pub context: ContextSpec,
}

/// The live root of a call, and the caller's context.
pub(crate) struct CallRoot {
    pub(crate) live: Arc<LiveRoot>,
    pub(crate) context: Context,
}

impl CallRoot {
    fn resolve_root(code: &CodeSource, root: Option<&str>, context: ContextSpec) -> Result<Self> {
        let context = context.build()?;
        Ok(Self { live: code.find_live(root, &context)?, context })
    }

    fn cwd(&self) -> Option<&Path> {
        self.context.cwd().map(Path::new)
    }

    fn read_node_ref(
        &self,
        id: Option<&str>,
        path: Option<&str>,
        name: Option<&str>,
        line: Option<u32>,
    ) -> Result<NodeRef> {
        NodeRef::from_params(&self.live, self.cwd(), id, path, name, line)
    }

    /// Resolves the path of a file that the caller gives.
    fn resolve_path(&self, given: &str) -> Result<String> {
        let outside = || Error::not_found("This path does not lead to a file of the project; give one relative to it.");
        self.live.root().resolve_path(given, self.cwd()).ok_or_else(outside)
    }
}
