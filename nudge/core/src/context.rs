//! The context of a call: the caller's folder, repository, branch, system and environment (semantics section 2).

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::near;
use crate::place::Os;
use crate::place::glob::GlobSubject;
use crate::place::repo::RepoName;
use crate::wire;

mod env_names;
mod infer;

pub use env_names::{EnvNames, ask_env, ask_env_of};
pub use infer::{find_repository, infer_context, infer_outside};
pub use nudge_git_files as detect;

const MAX_CWD_BYTES: usize = 4096;
const MAX_ENV_NAMES: usize = 256;
const MAX_ENV_VALUE_BYTES: usize = 32 << 10;
const MAX_FILES_OPEN: usize = 256;

/// A context as the caller gives it, and the builder of [`Context`]. Every field is optional, and unknown fields are
/// ignored. Limits: 4 KiB for `cwd`, 256 environment names with values of 32 KiB, 256 open files.
#[derive(Clone, Default, Deserialize)]
#[serde(default)]
pub struct ContextSpec {
    /// Absolute folder.
    #[serde(deserialize_with = "wire::given")]
    pub cwd: Option<String>,
    /// Repository.
    #[serde(deserialize_with = "wire::given")]
    pub repo: Option<String>,
    /// Branch name.
    #[serde(deserialize_with = "wire::given")]
    pub branch: Option<String>,
    /// Operating system.
    #[serde(deserialize_with = "wire::given")]
    pub os: Option<Os>,
    /// Variables that scopes mention.
    #[serde(deserialize_with = "wire::given")]
    pub env: Option<HashMap<String, Option<String>>>,
    /// Open files, which raise the hints of their component.
    #[serde(deserialize_with = "wire::given_or_default")]
    pub files_open: Vec<String>,
}

/// The schema says only that the context is an object. Each tool with a context repeats the schema, and hosts load it
/// into a prompt: a schema of each field would take a third of the bytes of all tools. `nudge_get_hint` names the
/// fields.
impl JsonSchema for ContextSpec {
    fn schema_name() -> Cow<'static, str> {
        "Context".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "cwd (absolute), repo, branch, os, env {NAME: value}, files_open [path]",
        })
    }
}

impl ContextSpec {
    /// The names of the fields in JSON.
    pub const FIELDS: [&str; 6] = ["cwd", "repo", "branch", "os", "env", "files_open"];

    /// Refuses a name that is not in [`FIELDS`](Self::FIELDS). Calls themselves ignore an unknown field, because a
    /// newer caller may send more fields (semantics section 2). Code that reads a context from a program of the same
    /// version calls this function first, because a misspelt field would lead to an answer for another context.
    ///
    /// # Errors
    /// `E_INVALID`, with the field that the caller probably meant.
    pub fn check_field(name: &str) -> Result<()> {
        if Self::FIELDS.contains(&name) {
            Ok(())
        } else {
            Err(near::refuse_unknown("context field", name, &Self::FIELDS))
        }
    }

    /// Returns true when no field is given.
    pub fn is_empty(&self) -> bool {
        let Self { cwd, repo, branch, os, env, files_open } = self;
        cwd.is_none() && repo.is_none() && branch.is_none() && os.is_none() && env.is_none() && files_open.is_empty()
    }

    /// Sets the folder, which must be absolute.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<String>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets the repository.
    #[must_use]
    pub fn repo(mut self, repo: impl Into<String>) -> Self {
        self.repo = Some(repo.into());
        self
    }

    /// Sets the branch.
    #[must_use]
    pub fn branch(mut self, branch: impl Into<String>) -> Self {
        self.branch = Some(branch.into());
        self
    }

    /// Sets the operating system.
    #[must_use]
    pub fn os(mut self, os: Os) -> Self {
        self.os = Some(os);
        self
    }

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.get_or_insert_default().insert(name.into(), Some(value.into()));
        self
    }

    /// Adds an open file.
    #[must_use]
    pub fn file_open(mut self, path: impl Into<String>) -> Self {
        self.files_open.push(path.into());
        self
    }

    /// Checks the fields and makes the context.
    ///
    /// # Errors
    /// `E_INVALID` for a relative folder, a folder with `..`, a repository that cannot be read, or a size over the
    /// limits of semantics section 5.
    pub fn build(self) -> Result<Context> {
        Context::new(self)
    }
}

/// A checked, immutable context; cheap to clone. `Debug` never shows its values.
///
/// ```
/// use nudge_core::{context::Context, place::Os};
/// let context = Context::builder().cwd("/work/http-proxy").branch("dev").os(Os::Linux).build()?;
/// assert!(Context::builder().cwd("work").build().is_err());
/// # Ok::<(), nudge_core::error::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Context(Arc<ContextData>);

#[derive(Clone, Default)]
struct ContextData {
    cwd: Option<GlobSubject>,
    repo: Option<RepoName>,
    branch: Option<GlobSubject>,
    os: Option<Os>,
    /// The variables. On Windows the names are in upper case, because Windows ignores the case of names.
    env: Option<HashMap<String, String, foldhash::fast::RandomState>>,
    files_open: Box<[String]>,
}

/// Returns true for a folder or a branch that a context may have: it is short enough and has no control characters.
fn can_be_told(text: &str) -> bool {
    text.len() <= MAX_CWD_BYTES && !has_control(text)
}

fn has_control(text: &str) -> bool {
    // The loop always runs to its end, so that the compiler can check many bytes in one step. Nearly all texts pass
    // this first check.
    let may_have = text.bytes().fold(false, |so_far, byte| so_far | !matches!(byte, b' '..=b'~'));
    may_have && text.chars().any(char::is_control)
}

impl Context {
    /// Makes an empty context for the caller to fill in.
    pub fn builder() -> ContextSpec {
        ContextSpec::default()
    }

    /// Checks `spec`; see [`ContextSpec::build`].
    ///
    /// # Errors
    /// `E_INVALID`, with the field to correct.
    pub fn new(spec: ContextSpec) -> Result<Self> {
        let windows = spec.os == Some(Os::Windows);
        let cwd = match spec.cwd {
            None => None,
            Some(cwd) if cwd.len() > MAX_CWD_BYTES => {
                return Err(Error::invalid("`context.cwd` may have 4,096 bytes at most.").about("context.cwd"));
            }
            Some(cwd) => Some(GlobSubject::from_cwd(cwd, windows).ok_or_else(|| {
                Error::invalid("`context.cwd` must be an absolute folder without `..`.").about("context.cwd")
            })?),
        };
        let repo = match spec.repo.filter(|repo| !repo.is_empty()) {
            None => None,
            Some(repo) => Some(RepoName::parse(&repo).map_err(|error| {
                Error::invalid(format!("Correct `context.repo`: {}", error.message())).about("context.repo")
            })?),
        };
        let branch = spec.branch.filter(|branch| !branch.is_empty());
        if cwd.iter().map(GlobSubject::as_str).chain(branch.as_deref()).any(has_control) {
            return Err(Error::invalid("`context.cwd` and `context.branch` may not hold control characters.")
                .about("context.cwd")
                .about("context.branch"));
        }
        if branch.as_ref().is_some_and(|branch| branch.len() > MAX_CWD_BYTES) {
            return Err(Error::invalid("`context.branch` may have 4,096 bytes at most.").about("context.branch"));
        }
        let env = spec.env.filter(|env| !env.is_empty());
        if env.as_ref().is_some_and(|env| env.len() > MAX_ENV_NAMES) {
            return Err(Error::invalid("`context.env` may have 256 names at most; send those that scopes mention.")
                .about("context.env"));
        }
        if env.iter().flat_map(HashMap::values).flatten().any(|value| value.len() > MAX_ENV_VALUE_BYTES) {
            return Err(Error::invalid("A value in `context.env` may have 32 KiB at most.").about("context.env"));
        }
        check_files_open(&spec.files_open)?;
        let name = |name: String| if windows { name.to_ascii_uppercase() } else { name };
        let env = env.map(|env| env.into_iter().filter_map(|(key, value)| Some((name(key), value?))).collect());
        Ok(Self(Arc::new(ContextData {
            cwd,
            repo,
            branch: branch.map(GlobSubject::from_branch),
            os: spec.os,
            env,
            files_open: spec.files_open.into(),
        })))
    }

    /// Replaces the variables by `vars`, such as this process's environment. The limits of params do not apply to them,
    /// because Nudge never sends a context with all of its variables.
    #[must_use]
    pub fn with_env(self, vars: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        let windows = inner.os == Some(Os::Windows);
        let name = |name: String| if windows { name.to_ascii_uppercase() } else { name };
        let env: HashMap<_, _, _> = vars.into_iter().map(|(key, value)| (name(key), value)).collect();
        inner.env = Some(env).filter(|env| !env.is_empty());
        Self(Arc::new(inner))
    }

    /// Returns the context after `cd` to a folder, which is absolute or relative to this context's folder. A folder
    /// below this context's folder belongs to the same repository. If the repository's name is a folder, every folder
    /// below that folder belongs to the repository too. In any other folder, the repository and the branch are unknown.
    /// `None` when the folder cannot be known.
    ///
    /// ```
    /// # use nudge_core::context::Context;
    /// let here = Context::builder().cwd("/work/shop").repo("org/shop").branch("dev").build()?;
    /// let web = here.after_cd("web/../app").unwrap();
    /// assert_eq!((web.cwd(), web.branch()), (Some("/work/shop/app"), Some("dev")));
    /// assert_eq!(here.after_cd("../other").unwrap().branch(), None);
    /// # Ok::<(), nudge_core::error::Error>(())
    /// ```
    #[must_use]
    pub fn after_cd(&self, to: &str) -> Option<Self> {
        let windows = self.os() == Some(Os::Windows);
        let to = if windows { Cow::from(to.replace('\\', "/")) } else { to.into() };
        let drive = matches!(to.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic());
        let mut joined = match (to.starts_with('/'), drive) {
            (true, _) => "/".to_owned(),
            (false, true) => String::new(),
            (false, false) => self.cwd()?.to_owned(),
        };
        for segment in to.split('/').filter(|segment| !segment.is_empty() && *segment != ".") {
            if segment == ".." {
                joined.truncate(joined.rfind('/')?.max(1));
            } else {
                let between = if joined.is_empty() || joined.ends_with('/') { "" } else { "/" };
                joined.extend([between, segment]);
            }
        }
        if !can_be_told(&joined) {
            return None;
        }
        let cwd = GlobSubject::from_cwd(joined, windows)?;
        let below = |top: &str| {
            cwd.as_str()
                .strip_prefix(top)
                .is_some_and(|rest| rest.is_empty() || top.ends_with('/') || rest.starts_with('/'))
        };
        let repo = self.repo();
        let top = repo.as_deref().and_then(|repo| repo.strip_prefix("file://"));
        let stays = self.cwd().is_some_and(below) || top.is_some_and(below);
        let inner = ContextData::clone(&self.0);
        Some(Self(Arc::new(if stays {
            ContextData { cwd: Some(cwd), ..inner }
        } else {
            ContextData { cwd: Some(cwd), repo: None, branch: None, ..inner }
        })))
    }

    /// Replaces the open files by `paths`.
    ///
    /// # Errors
    /// `E_INVALID` for more than 256 paths, or one of more than 4,096 bytes.
    pub fn with_files_open(self, paths: Vec<String>) -> Result<Self> {
        check_files_open(&paths)?;
        let inner = Arc::unwrap_or_clone(self.0);
        Ok(Self(Arc::new(ContextData { files_open: paths.into(), ..inner })))
    }

    /// Returns the folder in normal form.
    pub fn cwd(&self) -> Option<&str> {
        self.0.cwd.as_ref().map(GlobSubject::as_str)
    }

    /// Returns the repository in canonical form.
    pub fn repo(&self) -> Option<String> {
        self.0.repo.as_ref().map(RepoName::to_string)
    }

    /// Returns the branch.
    pub fn branch(&self) -> Option<&str> {
        self.0.branch.as_ref().map(GlobSubject::as_str)
    }

    /// Returns the operating system.
    pub fn os(&self) -> Option<Os> {
        self.0.os
    }

    /// Returns the value of an environment variable, if it is set.
    pub fn env(&self, name: &str) -> Option<&str> {
        let env = self.0.env.as_ref()?;
        let value =
            if self.0.os == Some(Os::Windows) { env.get(name.to_ascii_uppercase().as_str()) } else { env.get(name) };
        value.map(String::as_str)
    }

    /// Returns the open files.
    pub fn files_open(&self) -> &[String] {
        &self.0.files_open
    }

    /// Returns true when no field is set.
    pub fn is_empty(&self) -> bool {
        let inner = &self.0;
        inner.cwd.is_none()
            && inner.repo.is_none()
            && inner.branch.is_none()
            && inner.os.is_none()
            && inner.env.is_none()
            && inner.files_open.is_empty()
    }

    /// Returns the first open file that has `component` as a segment of its path.
    pub fn open_file_in(&self, component: &str) -> Option<&str> {
        let holds = |path: &&String| path.split(['/', '\\']).any(|segment| segment == component);
        self.0.files_open.iter().find(holds).map(String::as_str)
    }

    /// Returns true when the context has an open file.
    pub fn has_open_files(&self) -> bool {
        !self.0.files_open.is_empty()
    }

    /// Returns true when every scope judges both contexts alike. Contexts with variables are not compared, so the answer
    /// is then false.
    pub fn is_judged_like(&self, other: &Self) -> bool {
        let (own, others) = (&*self.0, &*other.0);
        let count = |data: &ContextData| data.env.as_ref().map(HashMap::len);
        matches!(count(own), None | Some(0))
            && count(own) == count(others)
            && own.cwd == others.cwd
            && own.repo == others.repo
            && own.branch == others.branch
            && own.os == others.os
    }

    /// Returns true when the environment of the caller is known.
    pub fn has_env(&self) -> bool {
        self.0.env.is_some()
    }

    /// Returns the folder in the form that globs match.
    pub fn cwd_subject(&self) -> Option<&GlobSubject> {
        self.0.cwd.as_ref()
    }

    /// Returns the branch in the form that globs match.
    pub fn branch_subject(&self) -> Option<&GlobSubject> {
        self.0.branch.as_ref()
    }

    /// Returns the repository in the form that scopes compare.
    pub fn repo_name(&self) -> Option<&RepoName> {
        self.0.repo.as_ref()
    }
}

fn check_files_open(paths: &[String]) -> Result<()> {
    if paths.len() > MAX_FILES_OPEN || paths.iter().any(|path| path.len() > MAX_CWD_BYTES) {
        return Err(Error::invalid("`context.files_open` may have 256 paths of 4,096 bytes at most.")
            .about("context.files_open"));
    }
    Ok(())
}

impl fmt::Debug for ContextSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContextSpec { .. }")
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context { .. }")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_name_and_no_other_is_taken() {
        // This pattern does not compile when the struct gets a new field.
        let ContextSpec { cwd: _, repo: _, branch: _, os: _, env: _, files_open: _ } = ContextSpec::default();
        for field in ContextSpec::FIELDS {
            assert_eq!(ContextSpec::check_field(field), Ok(()));
        }
        let refused = ContextSpec::check_field("barnch").unwrap_err();
        assert_eq!(refused.message(), "There is no context field `barnch`; did you mean `branch`?");
    }

    #[test]
    fn forms() {
        let context: ContextSpec =
            serde_json::from_str(r#"{"cwd":"/a//b/","repo":"https://me:pw@h.example/o/r.git","os":"windows","env":{"Path":"x","Gone":null},"extra":1,"branch":null}"#)
                .unwrap();
        let context = context.build().unwrap();
        assert_eq!(context.cwd(), Some("/a/b"));
        assert_eq!(context.repo().as_deref(), Some("h.example/o/r"));
        assert_eq!((context.env("PATH"), context.env("gone")), (Some("x"), None));
        assert_eq!(context.branch(), None);
        assert!(!context.is_empty());
        assert!(Context::default().is_empty());
        assert!(serde_json::from_str::<ContextSpec>("{\"env\":{},\"cwd\":[]}").unwrap().build().unwrap().is_empty());
    }

    #[test]
    fn an_environment_of_any_size_can_be_looked_up() {
        let vars = |count: usize| (0..count).map(|n| (format!("N{n}"), n.to_string()));
        let here = Context::builder().cwd("/a").env("OLD", "x").build().unwrap().with_env(vars(500));
        assert_eq!((here.cwd(), here.env("N499"), here.env("OLD")), (Some("/a"), Some("499"), None));
        let windows = Context::builder().os(Os::Windows).build().unwrap().with_env([("Path".into(), "x".into())]);
        assert_eq!(windows.env("PATH"), Some("x"));
        assert!(Context::default().with_env(vars(0)).is_empty());
    }

    #[test]
    fn moves() {
        let here = Context::builder().cwd("/w/shop/api").repo("org/shop").branch("dev").env("A", "b").build().unwrap();
        let told = |context: &Context, to: &str| {
            let moved = context.after_cd(to)?;
            assert_eq!(moved.env("A"), Some("b"));
            Some(format!("{} {}", moved.cwd()?, moved.branch().unwrap_or("-")))
        };
        for (to, want) in [
            ("web", "/w/shop/api/web dev"),
            ("./web//x/", "/w/shop/api/web/x dev"),
            (".", "/w/shop/api dev"),
            ("/w/shop/api/web", "/w/shop/api/web dev"),
            ("/w/shop/api2", "/w/shop/api2 -"),
            ("..", "/w/shop -"),
            ("../api/x", "/w/shop/api/x dev"),
            ("../../../../..", "/ -"),
            ("/", "/ -"),
            ("/x/../y", "/y -"),
        ] {
            assert_eq!(told(&here, to).as_deref(), Some(want), "{to}");
        }
        let top =
            Context::builder().cwd("/w/shop/api").repo("file:///w/shop").branch("dev").env("A", "b").build().unwrap();
        assert_eq!(told(&top, "../web").as_deref(), Some("/w/shop/web dev"));
        assert_eq!(told(&top, "../../web").as_deref(), Some("/w/web -"));
        let nowhere = Context::builder().env("A", "b").build().unwrap();
        assert_eq!((told(&nowhere, "web"), told(&nowhere, "/web").as_deref()), (None, Some("/web -")));
        let windows =
            Context::builder().cwd("C:\\w\\shop").os(Os::Windows).branch("dev").env("A", "b").build().unwrap();
        assert_eq!(told(&windows, "web\\app").as_deref(), Some("C:/w/shop/web/app dev"));
        assert_eq!(told(&windows, "D:\\x").as_deref(), Some("D:/x -"));
        assert_eq!(told(&here, &"x/".repeat(4096)), None);
        assert_eq!(told(&here, "a\nb"), None);
    }

    #[test]
    fn open_files_are_added_later() {
        let files = |count: usize| (0..count).map(|n| format!("api/{n}.rs")).collect::<Vec<_>>();
        let here = Context::builder().cwd("/a").env("CI", "1").build().unwrap().with_files_open(files(256)).unwrap();
        assert_eq!((here.cwd(), here.env("CI"), here.open_file_in("api")), (Some("/a"), Some("1"), Some("api/0.rs")));
        assert_eq!(here.clone().with_files_open(files(257)).unwrap_err().reason(), "E_INVALID");
        assert!(here.with_files_open(Vec::new()).unwrap().files_open().is_empty());
    }

    #[test]
    fn sizes() {
        let spec = Context::builder;
        assert!(spec().cwd(format!("/{}", "x".repeat(4095))).build().is_ok());
        assert!(spec().cwd(format!("/{}", "x".repeat(4096))).build().is_err());
        let env = |count: usize| (0..count).fold(spec(), |spec, n| spec.env(n.to_string(), "x")).build();
        assert!(env(256).is_ok() && env(257).is_err());
        assert!(spec().env("A", "x".repeat(32 << 10)).build().is_ok());
        assert!(spec().env("A", "x".repeat((32 << 10) + 1)).build().is_err());
        assert!((0..257).fold(spec(), |spec, _| spec.file_open("x")).build().is_err());
        assert!(spec().repo("https://").build().is_err());
    }
}
