//! Fills in the context of a call: the only module that knows the caller's place (semantics section 9).
//! The command line uses it for its own process, each `serve` for its own stdio client.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge::context::detect::{GitDetector, GitInfo, main_worktree};
use nudge::context::infer_context;
use nudge::{ContextUse, EnvNames};
use nudge_client::{asked_env, process_cwd};
use nudge_core::context::{find_repository, infer_outside};
use nudge_git::{CallLimits, Git};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::sources;

/// Time limit of all git commands; facts that they do not tell in time stay unknown.
const GIT_PATIENCE: Duration = Duration::from_secs(2);
/// Most bytes of one answer of git: a path, an address or a name.
const MAX_GIT_BYTES: usize = 64 << 10;

/// Infers contexts. Caches facts read from git's files, and remembers the environment variables that were asked for
/// last.
pub struct ContextInference {
    /// Asks git where its files do not say enough.
    asks_git: bool,
    detector: Mutex<GitDetector>,
    env: Mutex<EnvNames>,
}

/// The result of inferring a context.
#[derive(Debug, PartialEq)]
pub enum InferredContext {
    /// The context stays as it was given, or absent.
    AsGiven,
    /// The filled-in context replaces the given one.
    Filled(Map<String, Value>),
    /// Files must be looked at, and may not be looked at here.
    MustLook,
}

/// Says whether files may be looked at, and git be run. Either may take long, or hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileLook {
    /// They may.
    Here,
    /// Another thread may: [`InferredContext::MustLook`] asks for it.
    Elsewhere,
    /// They may not; facts from them stay unknown.
    Nowhere,
}

impl Default for ContextInference {
    fn default() -> Self {
        Self { asks_git: true, detector: Mutex::default(), env: Mutex::default() }
    }
}

impl ContextInference {
    /// Makes one that starts no program: facts that git's files do not tell stay unknown.
    pub fn of_files_alone() -> Self {
        Self { asks_git: false, ..Self::default() }
    }

    /// Fills in the fields that the `context` of a call leaves out. A given field stays, even an explicit null. `cwd`
    /// tells the folder when the caller names none; it may look at files.
    pub fn infer_context(
        &self,
        usage: ContextUse,
        given: Option<&Value>,
        cwd: impl FnOnce() -> Option<PathBuf>,
        look: FileLook,
    ) -> InferredContext {
        let says_something = |context: &Map<String, Value>| context.values().any(|field| !is_nothing(field));
        let is_given = match given {
            // A context with unknown fields alone names no place to bump.
            Some(Value::Object(context)) if usage == ContextUse::InferredIfGiven => says_something(context),
            Some(context) => !is_nothing(context),
            None => false,
        };
        if usage == ContextUse::None || (usage == ContextUse::InferredIfGiven && !is_given) {
            return InferredContext::AsGiven;
        }
        let mut context = match given {
            Some(Value::Object(context)) if is_given => context.clone(),
            // A context that is no object is passed on for the server to refuse.
            Some(_) if is_given => return InferredContext::AsGiven,
            _ => Map::new(),
        };
        let told = match given {
            Some(Value::Object(context)) => context.get("cwd"),
            _ => None,
        };
        let cwd = match told {
            None if look == FileLook::Elsewhere => return InferredContext::MustLook,
            None if look == FileLook::Nowhere => None,
            None => cwd(),
            Some(Value::String(cwd)) => Some(PathBuf::from(cwd)).filter(|cwd| cwd.is_absolute()),
            Some(_) => None,
        };
        let here = match cwd {
            // When the caller gives the repository and the branch, git's files are not read.
            Some(cwd) if context.contains_key("repo") && context.contains_key("branch") => infer_outside(&cwd),
            Some(_) if look == FileLook::Elsewhere => return InferredContext::MustLook,
            Some(cwd) if look == FileLook::Nowhere => infer_outside(&cwd),
            Some(cwd) => self.infer_folder(&cwd),
            None => nudge::ContextSpec { os: nudge::Os::current(), ..nudge::ContextSpec::default() },
        };
        let os = here.os.map(|os| os.as_str().to_owned());
        for (name, value) in [("cwd", here.cwd), ("repo", here.repo), ("branch", here.branch), ("os", os)] {
            if let (Some(value), false) = (value, context.contains_key(name)) {
                context.insert(name.into(), value.into());
            }
        }
        if !context.contains_key("env") {
            let env = self.collect_env();
            if !env.is_empty() {
                context.insert("env".into(), Value::Object(env));
            }
        }
        InferredContext::Filled(context)
    }

    /// As [`infer_context`](Self::infer_context), in the params of a call.
    pub fn fill_in(&self, usage: ContextUse, params: &mut Map<String, Value>, cwd: Option<&Path>) {
        let cwd = || cwd.map(Path::to_owned);
        if let InferredContext::Filled(context) = self.infer_context(usage, params.get("context"), cwd, FileLook::Here)
        {
            params.insert("context".into(), Value::Object(context));
        }
    }

    /// Infers from a folder.
    fn infer_folder(&self, cwd: &Path) -> nudge::ContextSpec {
        self.look_at_folder(cwd, |detector, asked| infer_context(cwd, detector, |_| asked()))
    }

    /// The repository that a folder lies in; `None` outside one, and where git does not answer.
    pub fn find_repository(&self, cwd: &Path) -> Option<String> {
        self.look_at_folder(cwd, |detector, asked| find_repository(cwd, detector, |_| asked()))
    }

    /// Looks at a folder with the detector. If git's files do not say enough, looks once more with git's answer. Git
    /// runs outside the lock, so that a hanging git delays no other call.
    fn look_at_folder<T>(
        &self,
        cwd: &Path,
        look: impl Fn(&mut GitDetector, &mut dyn FnMut() -> Option<GitInfo>) -> T,
    ) -> T {
        let mut unsure = false;
        let here = look(&mut self.detector.lock(), &mut || {
            unsure = true;
            None
        });
        if !unsure || !self.asks_git {
            return here;
        }
        let mut asked = ask_git(cwd);
        look(&mut self.detector.lock(), &mut || asked.take())
    }

    /// Sets the environment variables to send from now on: those that the scopes of the last call's
    /// candidates mention.
    pub fn learn_env_names(&self, names: EnvNames) {
        *self.env.lock() = names;
    }

    /// Returns the variables that were asked for last, with their values only where these matter; those that sources
    /// always want to know, where they are set; and no others.
    fn collect_env(&self) -> Map<String, Value> {
        let asked = self.env.lock();
        let look_up = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let mut env = asked_env(&asked, look_up);
        env.extend(sources::list_env_names().filter_map(|name| Some((name.to_owned(), look_up(name)?.into()))));
        env
    }
}

/// Returns true for a value that counts as "not given" (semantics section 5).
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Returns the folder of a stdio client, from its `_meta`, else `CLAUDE_PROJECT_DIR`, else this process's folder.
pub fn client_cwd(meta: &Map<String, Value>) -> Option<PathBuf> {
    let told = meta_cwd(meta);
    let claude = || std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    told.or_else(claude).or_else(process_cwd)
}

/// Reads the folder from the `_meta` of Codex, which lists its workspaces by path, one per folder it was started with.
fn meta_cwd(meta: &Map<String, Value>) -> Option<PathBuf> {
    let turn = meta.get("x-codex-turn-metadata")?;
    let path = match (turn.get("cwd"), turn.get("workspaces").and_then(Value::as_object)) {
        (Some(Value::String(cwd)), _) => cwd,
        (_, Some(workspaces)) if workspaces.len() == 1 => workspaces.keys().next()?,
        _ => return None,
    };
    Some(PathBuf::from(path)).filter(|path| path.is_absolute())
}

/// Runs git itself, for repositories that cannot be understood from its files.
fn ask_git(cwd: &Path) -> Option<GitInfo> {
    let deadline = Instant::now() + GIT_PATIENCE;
    let found = Git::find(cwd).ok()?.by_place_of_caller();
    let git = |words: &[&str]| {
        let time = deadline.saturating_duration_since(Instant::now());
        found.ask_line(words, CallLimits { time, output_bytes: MAX_GIT_BYTES }).ok()
    };
    let root = git(&["rev-parse", "--show-toplevel"]).filter(|root| !root.is_empty()).map(PathBuf::from)?;
    let own = git(&["rev-parse", "--absolute-git-dir"]);
    let common = git(&["rev-parse", "--path-format=absolute", "--git-common-dir"]);
    // In a linked worktree the two differ.
    let main = common.filter(|common| own.as_ref() != Some(common)).map(PathBuf::from);
    Some(GitInfo {
        main: main.map_or_else(|| root.clone(), |common| main_worktree(&common).to_owned()),
        root,
        remote: git(&["remote", "get-url", "origin"]),
        // Before the first commit the first question fails, or takes `HEAD` for a file's name.
        branch: match git(&["rev-parse", "--verify", "--quiet", "HEAD"]) {
            Some(_) => git(&["rev-parse", "--abbrev-ref", "HEAD"]),
            None => git(&["symbolic-ref", "--short", "HEAD"]),
        },
    })
}

#[cfg(test)]
mod tests {
    use nudge::Service as _;
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn filled(usage: ContextUse, mut params: Value) -> Value {
        ContextInference::default().fill_in(usage, params.as_object_mut().unwrap(), Some(Path::new("/")));
        params
    }

    #[test]
    fn what_is_given_stays() {
        let os = nudge::Os::current().unwrap().as_str();
        assert_eq!(
            filled(ContextUse::Inferred, json!({}))["context"],
            json!({"cwd": "/", "repo": "file:///", "os": os})
        );
        assert_eq!(
            filled(ContextUse::Inferred, json!({"context": {"cwd": null, "os": "windows"}}))["context"],
            json!({"cwd": null, "os": "windows"})
        );
        assert_eq!(
            filled(ContextUse::Inferred, json!({"context": {"branch": null, "repo": "a/b"}}))["context"],
            json!({"cwd": "/", "repo": "a/b", "branch": null, "os": os})
        );
        assert_eq!(filled(ContextUse::InferredIfGiven, json!({"context": {}})), json!({"context": {}}));
        assert_eq!(filled(ContextUse::InferredIfGiven, json!({})), json!({}));
        assert_eq!(filled(ContextUse::None, json!({})), json!({}));
        assert_eq!(filled(ContextUse::Inferred, json!({"context": 7})), json!({"context": 7}));
    }

    fn asked(names: &[&str], values: &[&str]) -> EnvNames {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        EnvNames { names: set(names), values: set(values) }
    }

    #[test]
    fn only_asked_variables_travel() {
        let inference = ContextInference::default();
        let mut params = Map::new();
        inference.fill_in(ContextUse::Inferred, &mut params, None);
        assert_eq!(params["context"].get("env"), None);
        inference.learn_env_names(asked(&["HOME", "NUDGE_IS_NOT_SET", "PATH"], &["HOME"]));
        let mut params = Map::new();
        inference.fill_in(ContextUse::Inferred, &mut params, None);
        let home = std::env::var("HOME").unwrap();
        assert_eq!(params["context"]["env"], json!({"HOME": home, "NUDGE_IS_NOT_SET": null, "PATH": ""}));
        inference.learn_env_names(asked(&[], &[]));
        let mut params = Map::new();
        inference.fill_in(ContextUse::Inferred, &mut params, None);
        assert_eq!(params["context"].get("env"), None, "only the last that were asked for");
    }

    #[test]
    fn what_is_inferred_is_never_refused() {
        let inference = ContextInference::default();
        let many: Vec<_> = (0..400).map(|n| format!("NUDGE_{n}")).collect();
        inference.learn_env_names(asked(&many.iter().map(String::as_str).chain(["PATH"]).collect::<Vec<_>>(), &[]));
        let mut params = Map::new();
        inference.fill_in(ContextUse::Inferred, &mut params, None);
        assert_eq!(params["context"]["env"].as_object().unwrap().len(), 256);
        assert_eq!(params["context"]["env"]["PATH"], "", "what is set comes first");
        nudge::Nudge::default().call("nudge.query", &to_raw_value(&params).unwrap()).unwrap();
    }

    #[test]
    fn folders_of_clients() {
        let meta = |value: Value| meta_cwd(value.as_object().unwrap());
        assert_eq!(meta(json!({"x-codex-turn-metadata": {"workspaces": {"/w/app": {}}}})), Some("/w/app".into()));
        assert_eq!(meta(json!({"x-codex-turn-metadata": {"workspaces": {"/w/app": {}, "/w/b": {}}}})), None);
        assert_eq!(meta(json!({"x-codex-turn-metadata": {"cwd": "rel"}})), None);
        assert_eq!(meta(json!({})), None);
    }
}
