//! Keeps `nudge init` inside a project. A checkout may contain links to any file, for example to the settings of the
//! user's shell.

use std::io;
use std::path::Path;

use nudge::{Error, Result};

/// Refuses a file of a project if a link leads out of the project. The file need not exist. Without a project, refuses
/// no file.
///
/// # Errors
/// `E_INVALID`; the message names the link and its target.
pub fn check_within(project: Option<&Path>, file: &Path) -> Result<()> {
    let Some(project) = project else { return Ok(()) };
    let unusable =
        |error: io::Error| Error::invalid(format!("{} cannot be looked at: {error}; correct it.", file.display()));
    let top = project.canonicalize().map_err(unusable)?;
    let mut path = project.to_owned();
    for part in file.strip_prefix(project).unwrap_or(file) {
        path.push(part);
        match path.symlink_metadata() {
            Ok(meta) if meta.is_symlink() => {
                // If the link's target does not exist, a write through the link would create it.
                if !path.canonicalize().is_ok_and(|target| target.starts_with(&top)) {
                    let target = path.read_link().map_err(unusable)?;
                    return Err(Error::invalid(format!(
                        "{} is a link to {}, which is not in the project; make it a file of the project.",
                        path.display(),
                        target.display()
                    )));
                }
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(unusable(error)),
        }
    }
    Ok(())
}
