//! Detects the context of this process: folder, repository, branch and environment.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

use nudge::context::detect::{GitDetector, GitEnv};
use nudge::context::infer_context;
use nudge::{Context, Error, Result};

/// Returns the folder of this process; `None` if it has none. Prefers `$PWD` when that names the same folder, because
/// `$PWD` keeps the symbolic links that the user followed.
pub fn process_cwd() -> Option<PathBuf> {
    choose_cwd(std::env::var_os("PWD"))
}

fn choose_cwd(pwd: Option<OsString>) -> Option<PathBuf> {
    let real = std::env::current_dir().ok()?;
    let logical = pwd.map(PathBuf::from).filter(|pwd| pwd.is_absolute());
    let same =
        |pwd: &PathBuf| *pwd == real || matches!((pwd.canonicalize(), real.canonicalize()), (Ok(a), Ok(b)) if a == b);
    Some(logical.filter(same).unwrap_or(real))
}

/// Detects the context of this process. The folder is `cwd`, or else the folder of the process. The context also has
/// the repository and branch there from git's own files, the operating system, and the environment. A call to a
/// [session](crate::Store::connect) sends only the variables that the server asks for.
///
/// The function reads the environment of the process. Code in other languages must not change the environment
/// meanwhile; [`detect_from`] avoids this problem.
///
/// # Errors
/// `E_INVALID` for a relative `cwd`, or when the process has no folder.
pub fn detect(cwd: Option<&Path>) -> Result<Context> {
    detect_from(cwd, &std::env::vars_os().collect::<HashMap<_, _>>())
}

/// Detects the context as [`detect`] does, but uses `vars` as the environment. Programs in other languages need this,
/// because they change the environment of the process without Rust's knowledge.
///
/// # Errors
/// The errors of [`detect`].
pub fn detect_from<S: BuildHasher>(given: Option<&Path>, vars: &HashMap<OsString, OsString, S>) -> Result<Context> {
    let var = |name: &str| vars.get(OsStr::new(name)).cloned();
    let folder = match given {
        Some(given) if !given.is_absolute() => None,
        Some(given) => Some(given.to_owned()),
        None => choose_cwd(var("PWD")),
    };
    let folder = folder.ok_or_else(|| Error::invalid("Pass cwd as an absolute folder."))?;
    let mut detector = GitDetector::with_env(GitEnv::from_vars(var));
    let text = |name: &OsStr| name.to_string_lossy().into_owned();
    let vars = vars.iter().map(|(name, value)| (text(name), text(value)));
    Ok(infer_context(&folder, &mut detector, |_| None).build()?.with_env(vars))
}
