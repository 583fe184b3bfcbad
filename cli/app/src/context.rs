//! Fills in the context of a call (semantics section 9). Only this module finds out the caller's folder. The command
//! line uses this module for its own process, and each `nudge serve` for its stdio client.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nudge::context::detect::{GitDetector, GitInfo, main_worktree};
use nudge::context::infer_context;
use nudge::{ContextSpec, ContextUse};
use nudge_client::{AskedEnv, process_cwd};
use nudge_core::context::{find_repository, infer_outside};
use nudge_git::{CallLimits, Git};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::sources;

/// The time limit for all git commands of one question together. A fact that git has not reported by then stays
/// unknown.
const GIT_PATIENCE: Duration = Duration::from_secs(2);
/// The most bytes of one answer of git, which is a path, an address or a name.
const MAX_GIT_BYTES: usize = 64 << 10;

/// Infers contexts. Caches facts from git's files, and holds the names of the environment variables that the server
/// last asked for.
pub struct ContextInference {
    /// True to run git when git's files do not say enough.
    asks_git: bool,
    /// True to limit hints without a scope to the caller's repository.
    limits_reach: bool,
    detector: Mutex<GitDetector>,
    env: AskedEnv,
}

/// A context that is not complete yet: the given fields, and the facts that are known so far.
#[derive(Debug, Clone)]
pub struct OpenContext {
    usage: ContextUse,
    given: Map<String, Value>,
    place: CallerPlace,
    /// The facts from files; `None` until the files are read.
    facts: Option<ContextSpec>,
}

/// The folder from which a call comes, as far as the call names it.
#[derive(Debug, Clone)]
enum CallerPlace {
    /// The call says that the folder is unknown.
    Unknown,
    /// The call names the folder, the repository and the branch, so no file must be read.
    Known(PathBuf),
    /// The call names the folder but not both repository and branch, so files are read.
    Named(PathBuf),
    /// The call names no folder; the client's folder counts.
    Clients,
}

impl OpenContext {
    /// Returns true when files must be read to complete the context. Reading may take long or hang.
    pub fn needs_files(&self) -> bool {
        self.facts.is_none() && matches!(self.place, CallerPlace::Named(_) | CallerPlace::Clients)
    }

    /// Returns the facts that are known without files.
    fn outside_facts(&self) -> ContextSpec {
        match &self.place {
            _ if self.usage == ContextUse::Repository => ContextSpec::default(),
            CallerPlace::Known(cwd) | CallerPlace::Named(cwd) => infer_outside(cwd),
            CallerPlace::Unknown | CallerPlace::Clients => {
                ContextSpec { os: nudge::Os::current(), ..ContextSpec::default() }
            }
        }
    }
}

impl Default for ContextInference {
    fn default() -> Self {
        Self { asks_git: true, limits_reach: true, detector: Mutex::default(), env: AskedEnv::default() }
    }
}

impl ContextInference {
    /// Makes an inference that never runs git: facts that git's files do not contain stay unknown.
    pub fn of_files_alone() -> Self {
        Self { asks_git: false, ..Self::default() }
    }

    /// Sets whether hints without a scope are limited to the caller's repository.
    #[must_use]
    pub fn with_reach_limit(self, limits_reach: bool) -> Self {
        Self { limits_reach, ..self }
    }

    /// Returns true when hints without a scope are limited to the caller's repository.
    pub fn limits_reach(&self) -> bool {
        self.limits_reach
    }

    /// Returns the names of the environment variables that the server last asked for.
    pub fn env(&self) -> &AskedEnv {
        &self.env
    }

    /// Begins to complete the `context` of a call. Returns `None` when the context needs no completion.
    pub fn begin_context(&self, usage: ContextUse, given: Option<&Value>) -> Option<OpenContext> {
        let says_something = |context: &Map<String, Value>| context.values().any(|field| !is_nothing(field));
        let is_given = match given {
            // A context whose fields are all empty counts as not given.
            Some(Value::Object(context)) if usage == ContextUse::InferredIfGiven => says_something(context),
            Some(context) => !is_nothing(context),
            None => false,
        };
        let given = match given {
            Some(Value::Object(context)) => Some(context.clone()),
            // Passes on a context that is no object; the server refuses it.
            Some(_) if is_given => return None,
            _ => None,
        };
        let has = |name: &str| given.as_ref().is_some_and(|context| context.contains_key(name));
        let stays = match usage {
            ContextUse::None => true,
            ContextUse::Inferred => false,
            ContextUse::InferredIfGiven => !is_given,
            ContextUse::Repository => !self.limits_reach || has("repo"),
        };
        if stays {
            return None;
        }
        let place = match given.as_ref().and_then(|context| context.get("cwd")) {
            None => CallerPlace::Clients,
            Some(Value::String(cwd)) if Path::new(cwd).is_absolute() => {
                // If the caller gives repository and branch, git's files are not needed.
                let is_known = has("repo") && has("branch");
                if is_known { CallerPlace::Known(cwd.into()) } else { CallerPlace::Named(cwd.into()) }
            }
            Some(_) => CallerPlace::Unknown,
        };
        Some(OpenContext { usage, given: given.filter(|_| is_given).unwrap_or_default(), place, facts: None })
    }

    /// Reads files to find the facts that a context does not have yet. `find_cwd` returns the folder of the client.
    pub fn look_at_files(&self, context: &mut OpenContext, find_cwd: impl FnOnce() -> Option<PathBuf>) {
        let cwd = match &context.place {
            CallerPlace::Unknown | CallerPlace::Known(_) => return,
            CallerPlace::Named(cwd) => Some(cwd.clone()),
            CallerPlace::Clients => find_cwd(),
        };
        context.facts = cwd.map(|cwd| match context.usage {
            ContextUse::Repository => ContextSpec { repo: self.find_repository(&cwd), ..ContextSpec::default() },
            _ => self.look_at_folder(&cwd, |detector, asked| infer_context(&cwd, detector, |_| asked())),
        });
    }

    /// Completes a context with the known facts and the requested environment variables. A field that the caller gave
    /// stays, even if it is null.
    pub fn complete_context(&self, open: &OpenContext) -> Map<String, Value> {
        let mut context = open.given.clone();
        let facts = open.facts.clone().unwrap_or_else(|| open.outside_facts());
        let os = facts.os.map(|os| os.as_str().to_owned());
        for (name, value) in [("cwd", facts.cwd), ("repo", facts.repo), ("branch", facts.branch), ("os", os)] {
            if let (Some(value), false) = (value, context.contains_key(name)) {
                context.insert(name.into(), value.into());
            }
        }
        if open.usage != ContextUse::Repository && !context.contains_key("env") {
            let env = self.collect_env();
            if !env.is_empty() {
                context.insert("env".into(), Value::Object(env));
            }
        }
        context
    }

    /// Fills in the `context` in the params of a call; may read files. `cwd` is the folder to use if the call names
    /// none.
    pub fn fill_in(&self, usage: ContextUse, params: &mut Map<String, Value>, cwd: Option<&Path>) {
        if let Some(mut open) = self.begin_context(usage, params.get("context")) {
            self.look_at_files(&mut open, || cwd.map(Path::to_owned));
            params.insert("context".into(), Value::Object(self.complete_context(&open)));
        }
    }

    /// Returns the name of a folder's repository. Returns `None` outside a repository, or when git does not answer.
    pub fn find_repository(&self, cwd: &Path) -> Option<String> {
        self.look_at_folder(cwd, |detector, asked| find_repository(cwd, detector, |_| asked()))
    }

    /// Looks at a folder with the detector. If git's files do not say enough, runs git and looks again with the answer
    /// of git. Git runs outside the lock, so a git that hangs delays no other call.
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

    /// Returns the environment variables that the server last asked for, each with its value only if a scope compares
    /// it. Adds the set variables on which sources depend, with their values.
    fn collect_env(&self) -> Map<String, Value> {
        let look_up = |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        let mut env = self.env.build_env(look_up);
        env.extend(sources::list_env_names().filter_map(|name| Some((name.to_owned(), look_up(name)?.into()))));
        env
    }
}

/// Returns true for a value that counts as absent (semantics section 5).
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

/// Returns the folder of a stdio client: the folder in `_meta`, or else `CLAUDE_PROJECT_DIR`, or else this process's
/// folder.
pub fn client_cwd(meta: &Map<String, Value>) -> Option<PathBuf> {
    let told = meta_cwd(meta);
    let claude = || std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    told.or_else(claude).or_else(process_cwd)
}

/// Reads the folder from the `_meta` of Codex. If Codex names no `cwd`, a single workspace counts as the folder.
fn meta_cwd(meta: &Map<String, Value>) -> Option<PathBuf> {
    let turn = meta.get("x-codex-turn-metadata")?;
    let path = match (turn.get("cwd"), turn.get("workspaces").and_then(Value::as_object)) {
        (Some(Value::String(cwd)), _) => cwd,
        (_, Some(workspaces)) if workspaces.len() == 1 => workspaces.keys().next()?,
        _ => return None,
    };
    Some(PathBuf::from(path)).filter(|path| path.is_absolute())
}

/// Asks git about the repository of a folder, when git's files do not say enough.
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
    // Git's own directory and the common directory differ only in a linked worktree.
    let main = common.filter(|common| own.as_ref() != Some(common)).map(PathBuf::from);
    Some(GitInfo {
        main: main.map_or_else(|| root.clone(), |common| main_worktree(&common).to_owned()),
        root,
        remote: git(&["remote", "get-url", "origin"]),
        // Before the first commit, `--abbrev-ref HEAD` fails, or git takes `HEAD` for a file name.
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

    #[test]
    fn a_reach_is_the_repository_alone() {
        assert_eq!(filled(ContextUse::Repository, json!({"a": 1})), json!({"a": 1, "context": {}}), "/ is in none");
        let temp = tempfile::tempdir().unwrap();
        let cwd = temp.path().canonicalize().unwrap();
        assert!(std::process::Command::new("git").args(["init", "--quiet"]).arg(&cwd).status().unwrap().success());
        let filled = |inference: &ContextInference, given: Value| {
            let mut params = Map::from_iter([("context".to_owned(), given)]);
            inference.fill_in(ContextUse::Repository, &mut params, Some(&cwd));
            params.remove("context").unwrap()
        };
        let limits = ContextInference::default();
        let repo = format!("file://{}", cwd.display());
        assert_eq!(filled(&limits, Value::Null), json!({"repo": repo}));
        assert_eq!(filled(&limits, json!({"repo": null})), json!({"repo": null}));
        assert_eq!(filled(&limits.with_reach_limit(false), Value::Null), Value::Null);
    }

    fn asked(names: &[&str], values: &[&str]) -> nudge::EnvNames {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        nudge::EnvNames { names: set(names), values: set(values) }
    }

    #[test]
    fn only_asked_variables_travel() {
        let inference = ContextInference::default();
        let mut params = Map::new();
        inference.fill_in(ContextUse::Inferred, &mut params, None);
        assert_eq!(params["context"].get("env"), None);
        inference.env().set_names(asked(&["HOME", "NUDGE_IS_NOT_SET", "PATH"], &["HOME"]));
        let mut params = Map::new();
        inference.fill_in(ContextUse::Inferred, &mut params, None);
        let home = std::env::var("HOME").unwrap();
        assert_eq!(params["context"]["env"], json!({"HOME": home, "NUDGE_IS_NOT_SET": null, "PATH": ""}));
        inference.env().set_names(asked(&[], &[]));
        let mut params = Map::new();
        inference.fill_in(ContextUse::Inferred, &mut params, None);
        assert_eq!(params["context"].get("env"), None, "only the last that were asked for");
    }

    #[test]
    fn what_is_inferred_is_never_refused() {
        let inference = ContextInference::default();
        let many: Vec<_> = (0..400).map(|n| format!("NUDGE_{n}")).collect();
        inference.env().set_names(asked(&many.iter().map(String::as_str).chain(["PATH"]).collect::<Vec<_>>(), &[]));
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
