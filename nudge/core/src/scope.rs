//! Scopes: the conditions under which a hint applies (semantics sections 1 and 2).

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::held::{allocation_bytes, map_bytes};
use crate::place::Os;
use crate::place::glob::{Glob, GlobKind, GlobSubject};
use crate::place::repo::RepoName;
use crate::steps::{StepBudget, TooMany};
use crate::text::to_hex;
use crate::wire;

/// The most entries in `cwd_glob` and in `branch`.
const MAX_PATTERNS: usize = 16;
/// The most entries in each other list.
const MAX_ENTRIES: usize = 256;
/// The longest environment name or value.
const MAX_ENV_BYTES: usize = 32 << 10;
/// The number of steps that a lookup of a variable costs.
const LOOKUP_STEPS: usize = 8;

/// A scope as a caller gives it. Every field is optional, and every list may be a single string. An empty scope applies
/// everywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScopeSpec {
    /// Folders, as globs: `*` within a name, `**` across; `dir/**` is `dir` and all below.
    #[serde(deserialize_with = "wire::one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub cwd_glob: Vec<String>,
    /// `org/repo`, `host/org/repo`, a git URL or `file:///path`.
    #[serde(deserialize_with = "wire::one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub repo: Vec<String>,
    /// Globs such as `hotfix/*`.
    #[serde(deserialize_with = "wire::one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub branch: Vec<String>,
    /// Operating systems.
    #[serde(deserialize_with = "wire::one_or_many", skip_serializing_if = "Vec::is_empty")]
    #[schemars(description = "")]
    pub os: Vec<Os>,
    /// Variables that must be set.
    #[serde(deserialize_with = "wire::one_or_many", skip_serializing_if = "Vec::is_empty")]
    pub env_required: Vec<String>,
    /// Variables and the values each may have.
    #[serde(deserialize_with = "env_match", skip_serializing_if = "BTreeMap::is_empty")]
    pub env_match: BTreeMap<String, Vec<String>>,
}

fn env_match<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Vec<String>>, D::Error> {
    #[derive(Deserialize)]
    struct MatchValues(#[serde(deserialize_with = "wire::one_or_many")] Vec<String>);
    let map: BTreeMap<String, MatchValues> = wire::given_or_default(deserializer)?;
    Ok(map.into_iter().map(|(name, values)| (name, values.0)).collect())
}

impl ScopeSpec {
    /// Checks types and sizes, before any pattern is compiled.
    ///
    /// # Errors
    /// `E_INVALID`.
    pub fn check_sizes(&self) -> Result<()> {
        let names = self.env_required.iter().chain(self.env_match.keys());
        let values = self.env_match.values().flatten();
        if names.clone().chain(values.clone()).chain(&self.repo).any(String::is_empty) {
            return Err(Error::invalid("An entry of a scope list may not be empty; leave the field out instead."));
        }
        if self.env_match.values().any(Vec::is_empty) {
            return Err(Error::invalid(
                "Each name in `meta.scope.env_match` needs at least one value; use `meta.scope.env_required` for any value.",
            ).about("meta.scope.env_match").about("meta.scope.env_required"));
        }
        if names.clone().any(|name| name.contains('=') || name.chars().any(char::is_control)) {
            return Err(Error::invalid(
                "A name in `meta.scope.env_required` or `meta.scope.env_match` may not hold `=` or control characters.",
            )
            .about("meta.scope.env_required")
            .about("meta.scope.env_match"));
        }
        let lists = [self.repo.len(), self.os.len(), self.env_required.len(), self.env_match.len()];
        if lists.into_iter().chain(self.env_match.values().map(Vec::len)).any(|len| len > MAX_ENTRIES) {
            return Err(Error::invalid("A scope list may have 256 entries at most."));
        }
        if names.chain(values).any(|text| text.len() > MAX_ENV_BYTES) {
            return Err(Error::invalid(
                "A name or value in `meta.scope.env_required` or `meta.scope.env_match` may have 32 KiB at most.",
            )
            .about("meta.scope.env_required")
            .about("meta.scope.env_match"));
        }
        Ok(())
    }
}

/// A compiled, canonical scope, as stored hints have it. A store keeps each distinct scope once.
///
/// Serializes in canonical form: keys in byte order, lists sorted.
#[derive(Clone)]
pub struct Scope {
    cwd: Box<[Glob]>,
    branch: Box<[Glob]>,
    repo: Box<[RepoName]>,
    os: u8,
    env_required: Box<[String]>,
    env_match: BTreeMap<String, Box<[String]>>,
    /// The canonical form as compact JSON. It is rendered once.
    canonical: Box<RawValue>,
    /// The first 12 hex digits of the digest; empty for the empty scope.
    variant: Box<str>,
    specificity: u8,
    /// The scope's number in the store's table of scopes.
    number: u32,
    /// The bytes of memory that the scope takes, in total.
    held: usize,
}

/// A condition of a scope, evaluated in a context.
pub struct ScopeCondition {
    /// `cwd`, `repo`, `branch`, `os` or `env`.
    pub field: &'static str,
    /// Is true when the context meets the condition.
    pub met: bool,
    /// Is true when the context does not have the field at all.
    pub absent: bool,
    /// The reason why the condition is met or not met, in the words of semantics section 3.
    pub reason: String,
}

impl Scope {
    /// Compiles a scope.
    ///
    /// # Errors
    /// `E_INVALID` or `E_SCOPE_INVALID`, as semantics section 2 says.
    pub fn new(spec: &ScopeSpec) -> Result<Self> {
        spec.check_sizes()?;
        let globs = |patterns: &[String], kind| -> Result<Box<[Glob]>> {
            if patterns.len() > MAX_PATTERNS {
                return Err(Error::scope("A scope may have 16 patterns of a kind at most."));
            }
            let globs = patterns.iter().map(|pattern| Glob::new(pattern, kind)).collect::<Result<Vec<_>>>()?;
            Ok(sort_unique(globs, |glob| glob.as_str().to_owned()))
        };
        let repos: Vec<_> = spec.repo.iter().map(|repo| RepoName::parse(repo)).collect();
        // An entry that is no repository name is a type error. Such errors are reported before errors in paths and
        // globs.
        let invalid = |repo: &&Result<RepoName>| repo.as_ref().is_err_and(|error| error.kind() == ErrorKind::Invalid);
        if let Some(Err(error)) = repos.iter().find(invalid) {
            return Err(error.clone());
        }
        let repos = repos.into_iter().collect::<Result<Vec<_>>>()?;
        let texts = |list: &[String]| sort_unique(list.to_vec(), String::clone);
        let mut scope = Self {
            cwd: globs(&spec.cwd_glob, GlobKind::Cwd)?,
            branch: globs(&spec.branch, GlobKind::Branch)?,
            repo: sort_unique(repos, RepoName::to_string),
            os: spec.os.iter().fold(0, |bits, os| bits | os.to_bit()),
            env_required: texts(&spec.env_required),
            env_match: spec.env_match.iter().map(|(name, values)| (name.clone(), texts(values))).collect(),
            canonical: RawValue::NULL.to_owned(),
            variant: Box::default(),
            specificity: 0,
            number: u32::MAX,
            held: 0,
        };
        let given = [
            !scope.cwd.is_empty(),
            !scope.repo.is_empty(),
            !scope.branch.is_empty(),
            scope.os != 0,
            !scope.env_required.is_empty(),
            !scope.env_match.is_empty(),
        ];
        scope.specificity = given.into_iter().map(u8::from).sum();
        let json = serde_json::value::to_raw_value(&CanonicalScope(&scope));
        scope.canonical = json.map_err(|_| Error::invalid("A scope cannot be written as JSON."))?;
        if scope.specificity > 0 {
            scope.variant = to_hex(&Sha256::digest(scope.canonical_json())[..6]).into();
        }
        scope.held = scope.count_held_bytes();
        Ok(scope)
    }

    /// Returns the scope with its number in a store's table. Views cache their verdicts by this number.
    #[must_use]
    pub fn with_number(&self, number: u32) -> Self {
        Self { number, ..self.clone() }
    }

    /// Returns the number that [`Scope::with_number`] set, or `u32::MAX`.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the canonical scope as compact JSON; `{}` for the empty scope. The variant is a digest of this text.
    pub fn canonical_json(&self) -> &str {
        self.canonical.get()
    }

    /// Returns the first 12 hex digits of the SHA-256 of [`Scope::canonical_json`]; `""` for the empty scope.
    pub fn variant(&self) -> &str {
        &self.variant
    }

    /// Returns the number of fields that have a condition, 0 to 6.
    pub fn specificity(&self) -> u8 {
        self.specificity
    }

    /// Returns true when the scope has no condition.
    pub fn is_empty(&self) -> bool {
        self.specificity == 0
    }

    /// Returns true when the scope has a condition on the folder, the repository or the branch.
    pub fn names_a_place(&self) -> bool {
        !(self.cwd.is_empty() && self.repo.is_empty() && self.branch.is_empty())
    }

    /// Returns the listed systems, in byte order.
    fn listed_systems(&self) -> impl Iterator<Item = Os> + Clone {
        Os::ALL.into_iter().filter(|os| self.os & os.to_bit() != 0)
    }

    /// Returns true when the context meets every condition. If the context lacks a field, conditions on this field are
    /// not met. The number of steps has no limit; [`Scope::judge`] has one.
    pub fn matches(&self, context: &Context) -> bool {
        // With unlimited steps `judge` returns no error.
        self.judge(context, &mut StepBudget::unlimited()).unwrap_or(false)
    }

    /// Works like [`Scope::matches`], but within a limit of steps. The fastest comparisons come first.
    ///
    /// # Errors
    /// [`TooMany`] when the steps are used up; whether the scope matches is then unknown.
    pub fn judge(&self, context: &Context, steps: &mut StepBudget) -> Result<bool, TooMany> {
        if self.specificity == 0 {
            return Ok(true);
        }
        if self.os != 0 && context.os().is_none_or(|os| self.os & os.to_bit() == 0) {
            return Ok(false);
        }
        steps.take_steps(1 + self.repo.len() + LOOKUP_STEPS * (self.env_required.len() + self.env_match.len()))?;
        if !self.repo.is_empty()
            && !context.repo_name().is_some_and(|repo| self.repo.iter().any(|entry| entry.admits(repo)))
        {
            return Ok(false);
        }
        if !self.env_required.iter().all(|name| context.env(name).is_some()) {
            return Ok(false);
        }
        for (name, values) in &self.env_match {
            steps.take_steps(values.len())?;
            if !context.env(name).is_some_and(|value| values.iter().any(|allowed| allowed == value)) {
                return Ok(false);
            }
        }
        Ok((self.branch.is_empty() || first_match(&self.branch, context.branch_subject(), steps)?.is_some())
            && (self.cwd.is_empty() || first_match(&self.cwd, context.cwd_subject(), steps)?.is_some()))
    }

    /// Evaluates every condition, in the order of semantics section 3.
    ///
    /// # Errors
    /// The errors of [`Scope::judge`].
    pub fn evaluate_conditions(
        &self,
        context: &Context,
        steps: &mut StepBudget,
    ) -> Result<Vec<ScopeCondition>, TooMany> {
        let mut out = Vec::new();
        let values: usize = self.env_match.values().map(|values| values.len()).sum();
        steps.take_steps(
            1 + self.repo.len() + LOOKUP_STEPS * (self.env_required.len() + self.env_match.len()) + values,
        )?;
        if !self.cwd.is_empty() {
            out.push(self.cwd_condition(context, steps)?);
        }
        if !self.repo.is_empty() {
            let repo = context.repo_name();
            let met = repo.and_then(|repo| self.repo.iter().find(|entry| entry.admits(repo)));
            let listed = self.repo.iter().map(RepoName::to_string);
            out.push(build_condition(
                "repo",
                repo.is_none(),
                met.map(|entry| format!("repo={entry} matched")),
                listed,
                || repo.map(RepoName::to_string),
            ));
        }
        if !self.branch.is_empty() {
            let branch = context.branch_subject();
            let met = first_match(&self.branch, branch, steps)?.and(branch);
            let listed = self.branch.iter().map(|glob| glob.as_str().to_owned());
            out.push(build_condition(
                "branch",
                branch.is_none(),
                met.map(|branch| ["branch=", branch.as_str(), " allowed"].concat()),
                listed,
                || branch.map(|branch| branch.as_str().to_owned()),
            ));
        }
        if self.os != 0 {
            let met = context.os().filter(|os| self.os & os.to_bit() != 0);
            let listed = self.listed_systems().map(|os| os.as_str().to_owned());
            out.push(build_condition(
                "os",
                context.os().is_none(),
                met.map(|os| ["os=", os.as_str(), " allowed"].concat()),
                listed,
                || context.os().map(|os| os.as_str().to_owned()),
            ));
        }
        let absent = !context.has_env();
        for name in &self.env_required {
            let met = context.env(name).is_some();
            let reason = ["env ", name, if met { " present" } else { " is not set" }].concat();
            out.push(ScopeCondition { field: "env", met, absent, reason });
        }
        for (name, values) in &self.env_match {
            let met = context.env(name).and_then(|value| values.iter().find(|allowed| *allowed == value));
            // The reason never shows the caller's own value, which may be a secret.
            let reason = match met {
                Some(value) => ["env ", name, "=", value, " matched"].concat(),
                None => format!("env {name} is not {}", values.join(" or ")),
            };
            out.push(ScopeCondition { field: "env", met: met.is_some(), absent, reason });
        }
        Ok(out)
    }

    fn cwd_condition(&self, context: &Context, steps: &mut StepBudget) -> Result<ScopeCondition, TooMany> {
        let cwd = context.cwd_subject();
        let met = first_match(&self.cwd, cwd, steps)?;
        let listed = self.cwd.iter().map(|glob| glob.as_str().to_owned());
        let name = || cwd.map(|cwd| cwd.as_str().to_owned());
        let mut out = build_condition(
            "cwd",
            cwd.is_none(),
            met.map(|glob| ["cwd matched ", glob.as_str()].concat()),
            listed,
            name,
        );
        if let (None, Some(cwd)) = (met, cwd) {
            // Patterns such as `**/x*` are a frequent mistake: they match only the folder itself, not the folders below
            // it.
            let above = find_glob(&self.cwd, |glob| glob.matches_above(cwd, steps))?;
            if let Some(glob) = above {
                let _ = write!(
                    out.reason,
                    "; {0} is a folder above, use {0}/** to include what is below it",
                    glob.as_str()
                );
            }
        }
        Ok(out)
    }

    /// Returns the bytes of memory that the scope takes in a store's table of scopes.
    pub fn held_bytes(&self) -> usize {
        self.held
    }

    fn count_held_bytes(&self) -> usize {
        // The bytes of a slot in the table, and of the counts of an `Arc`.
        const OWN: usize = size_of::<Scope>() + 64;
        let globs =
            |globs: &[Glob]| allocation_bytes(size_of_val(globs)) + globs.iter().map(Glob::heap_bytes).sum::<usize>();
        let texts = |texts: &[String]| {
            allocation_bytes(size_of_val(texts))
                + texts.iter().map(|text| allocation_bytes(text.capacity())).sum::<usize>()
        };
        let repos =
            allocation_bytes(size_of_val(&*self.repo)) + self.repo.iter().map(RepoName::heap_bytes).sum::<usize>();
        let values: usize =
            self.env_match.iter().map(|(name, values)| allocation_bytes(name.capacity()) + texts(values)).sum();
        OWN + allocation_bytes(self.canonical_json().len())
            + allocation_bytes(self.variant.len())
            + globs(&self.cwd)
            + globs(&self.branch)
            + repos
            + texts(&self.env_required)
            + map_bytes(self.env_match.len(), size_of::<(String, Box<[String]>)>())
            + values
    }

    /// Returns true when the scope has a condition on the environment.
    pub fn has_env(&self) -> bool {
        !(self.env_required.is_empty() && self.env_match.is_empty())
    }

    /// Returns the names of environment variables in the scope. The flag is true if the variable's value matters.
    pub fn env_names(&self) -> impl Iterator<Item = (&str, bool)> {
        let required = self.env_required.iter().map(|name| (&**name, false));
        required.chain(self.env_match.keys().map(|name| (&**name, true)))
    }

    /// Converts the scope back to the form that callers use.
    pub fn to_spec(&self) -> ScopeSpec {
        let texts = |globs: &[Glob]| globs.iter().map(|glob| glob.as_str().to_owned()).collect();
        ScopeSpec {
            cwd_glob: texts(&self.cwd),
            repo: self.repo.iter().map(RepoName::to_string).collect(),
            branch: texts(&self.branch),
            os: self.listed_systems().collect(),
            env_required: self.env_required.to_vec(),
            env_match: self.env_match.iter().map(|(name, values)| (name.clone(), values.to_vec())).collect(),
        }
    }
}

fn build_condition(
    field: &'static str,
    absent: bool,
    met: Option<String>,
    listed: impl Iterator<Item = String>,
    have: impl FnOnce() -> Option<String>,
) -> ScopeCondition {
    let is_met = met.is_some();
    let reason = met.unwrap_or_else(|| {
        let listed = listed.collect::<Vec<_>>().join(" or ");
        match have() {
            Some(have) => format!("{field} {have} is not {listed}"),
            None => format!("{field} is unknown, {listed} is wanted"),
        }
    });
    ScopeCondition { field, met: is_met, absent, reason }
}

/// Returns the first glob that matches the subject; `None` without a subject.
fn first_match<'a>(
    globs: &'a [Glob],
    subject: Option<&GlobSubject>,
    steps: &mut StepBudget,
) -> Result<Option<&'a Glob>, TooMany> {
    match subject {
        Some(subject) => find_glob(globs, |glob| glob.matches(subject, steps)),
        None => Ok(None),
    }
}

fn find_glob(globs: &[Glob], mut fits: impl FnMut(&Glob) -> Result<bool, TooMany>) -> Result<Option<&Glob>, TooMany> {
    for glob in globs {
        if fits(glob)? {
            return Ok(Some(glob));
        }
    }
    Ok(None)
}

/// Sorts a list by the bytes of `key` and removes duplicates.
fn sort_unique<T, K: Ord>(mut list: Vec<T>, key: impl Fn(&T) -> K) -> Box<[T]> {
    list.sort_by_cached_key(&key);
    list.dedup_by(|a, b| key(a) == key(b));
    list.into()
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.canonical.serialize(serializer)
    }
}

/// Writes the canonical form of a scope.
struct CanonicalScope<'a>(&'a Scope);

impl Serialize for CanonicalScope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let scope = self.0;
        let mut map = serializer.serialize_map(None)?;
        if !scope.branch.is_empty() {
            map.serialize_entry("branch", &ListSerializer(scope.branch.iter().map(Glob::as_str)))?;
        }
        if !scope.cwd.is_empty() {
            map.serialize_entry("cwd_glob", &ListSerializer(scope.cwd.iter().map(Glob::as_str)))?;
        }
        if !scope.env_match.is_empty() {
            map.serialize_entry("env_match", &scope.env_match)?;
        }
        if !scope.env_required.is_empty() {
            map.serialize_entry("env_required", &scope.env_required)?;
        }
        if scope.os != 0 {
            map.serialize_entry("os", &ListSerializer(scope.listed_systems()))?;
        }
        if !scope.repo.is_empty() {
            map.serialize_entry("repo", &ListSerializer(scope.repo.iter().map(RepoName::to_string)))?;
        }
        map.end()
    }
}

/// Serializes an iterator as a list.
struct ListSerializer<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for ListSerializer<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scope({})", self.canonical_json())
    }
}

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;
