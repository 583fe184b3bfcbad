//! Where this process is.

use std::path::{Path, PathBuf};

use nudge::context::{detect::Detector, infer};
use nudge::{Context, Error, ErrorKind, Result};

/// The folder of this process: `$PWD` when it is the same one, because it keeps the links the user
/// followed.
pub fn process_cwd() -> Option<PathBuf> {
    let real = std::env::current_dir().ok()?;
    let logical = std::env::var_os("PWD").map(PathBuf::from).filter(|pwd| pwd.is_absolute());
    let same =
        |pwd: &PathBuf| *pwd == real || matches!((pwd.canonicalize(), real.canonicalize()), (Ok(a), Ok(b)) if a == b);
    Some(logical.filter(same).unwrap_or(real))
}

/// The context of this process as far as it can be told: `cwd` (else the folder of the process), the
/// repository and branch there by git's own files, the system, and the environment, of which a call to a
/// [session](crate::Store::connect) tells what is asked for alone.
///
/// # Errors
/// `E_INVALID` for a relative `cwd`, or where the process has none.
pub fn detect(cwd: Option<&Path>) -> Result<Context> {
    let cwd = match cwd {
        Some(cwd) if !cwd.is_absolute() => None,
        Some(cwd) => Some(cwd.to_owned()),
        None => process_cwd(),
    };
    let cwd = cwd.ok_or_else(|| Error::new(ErrorKind::Invalid, "Pass cwd as an absolute folder."))?;
    let vars = std::env::vars_os().map(|(name, value)| (text(&name), text(&value)));
    Ok(infer(&cwd, &mut Detector::new(), |_| None).build()?.with_env(vars))
}

fn text(name: &std::ffi::OsStr) -> String {
    name.to_string_lossy().into_owned()
}
