//! Makes contexts from the facts that C programs pass.

use std::path::Path;

use nudge::{Context, ContextSpec, Os, Result};

use crate::input::{GrowingParams, hand_over, place, read, unknown, unused};
use crate::{answer, nudge_error, nudge_pairs, nudge_status, nudge_str, nudge_strs, released};

/// Operating systems, each as a bit.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum nudge_os {
    /// Linux.
    NUDGE_OS_LINUX = 1,
    /// macOS.
    NUDGE_OS_DARWIN = 2,
    /// Windows.
    NUDGE_OS_WINDOWS = 4,
}

/// Every system with its bit.
const SYSTEMS: [(u32, Os); 3] = [
    (nudge_os::NUDGE_OS_LINUX as u32, Os::Linux),
    (nudge_os::NUDGE_OS_DARWIN as u32, Os::Darwin),
    (nudge_os::NUDGE_OS_WINDOWS as u32, Os::Windows),
];

/// Returns the systems whose bits are set.
pub(crate) fn systems(bits: u32, field: &str) -> Result<Vec<Os>> {
    if SYSTEMS.iter().fold(bits, |rest, (bit, _)| rest & !bit) != 0 {
        return Err(unknown(field));
    }
    Ok(SYSTEMS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, os)| *os).collect())
}

/// A checked context of a caller. It never changes, and threads may share it. Make one for each folder and keep it;
/// free it with `nudge_context_free`.
pub struct nudge_context(pub(crate) Context);

/// The facts for `nudge_context_new`. A field that is not given is unknown: a hint whose scope needs the field does not
/// fit.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_context_params {
    /// `sizeof(nudge_context_params)`.
    pub struct_size: usize,
    /// The absolute folder, without `..`, at most 4,096 bytes.
    pub cwd: nudge_str,
    /// The repository in any spelling: `org/repo`, `host/org/repo`, a git URL, `file:///path`.
    pub repo: nudge_str,
    /// The branch.
    pub branch: nudge_str,
    /// A bit of `nudge_os`; 0 means unknown.
    pub os: u32,
    /// Must be 0.
    pub reserved: u32,
    /// Environment variables: at most 256, with values of at most 32 KiB. If a value is not given, the variable is
    /// known not to be set.
    pub env: nudge_pairs,
    /// Open files, at most 256. A hint ranks higher if its component is a part of one of these paths.
    pub files_open: nudge_strs,
}

// SAFETY: the struct has only integers and pointers after `struct_size`.
unsafe impl GrowingParams for nudge_context_params {
    const NAME: &str = "nudge_context_params";
}

impl nudge_context_params {
    /// # Safety
    ///
    /// The texts and lists must be valid as the header requires.
    unsafe fn spec(&self) -> Result<ContextSpec> {
        unused(self.reserved)?;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        // SAFETY: the caller obeys the rules of this function.
        let cwd = unsafe { self.cwd.given("cwd") }?;
        // SAFETY: the caller obeys the rules of this function.
        let repo = unsafe { self.repo.given("repo") }?;
        // SAFETY: the caller obeys the rules of this function.
        let branch = unsafe { self.branch.given("branch") }?;
        // SAFETY: the caller obeys the rules of this function.
        let env = unsafe { self.env.pairs("env") }?;
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), owned(value))).collect();
        let os = match systems(self.os, "os")?[..] {
            [] => None,
            [os] => Some(os),
            _ => return Err(unknown("os")),
        };
        // SAFETY: the caller obeys the rules of this function.
        let files_open = unsafe { files(self.files_open) }?;
        Ok(ContextSpec { cwd: owned(cwd), repo: owned(repo), branch: owned(branch), os, env: Some(env), files_open })
    }
}

/// # Safety
///
/// The list must be valid as the header requires.
unsafe fn files(list: nudge_strs) -> Result<Vec<String>> {
    // SAFETY: the caller obeys the rules of this function.
    Ok(unsafe { list.texts("files_open") }?.into_iter().map(str::to_owned).collect())
}

/// Makes a context from facts that the caller passes.
///
/// Fails with `NUDGE_E_INVALID` for a `cwd` that is relative or contains `..`, for a repository that cannot be parsed,
/// and for a size above a limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_context_new(
    params: *const nudge_context_params,
    out: *mut *mut nudge_context,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let params = unsafe { read(params) }?;
        let out = place(out, "out")?;
        // SAFETY: the header requires valid arguments.
        let context = unsafe { params.spec() }?.build()?;
        // SAFETY: `place` has checked `out`.
        unsafe { hand_over(out, nudge_context(context)) };
        Ok(())
    })
}

/// Makes a context from facts that this process detects about `cwd`, an absolute folder. If `cwd` is not given, uses
/// the folder of the process. Reads repository and branch from git's files, and adds the system and the environment of
/// the process. A session gets only the variables that its hints mention. `files_open` are the same as in
/// `nudge_context_params`.
///
/// This call reads the environment, so the program must not change the environment during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_context_detect(
    cwd: nudge_str,
    files_open: nudge_strs,
    out: *mut *mut nudge_context,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: the header requires valid arguments.
        let cwd = unsafe { cwd.given("cwd") }?;
        // SAFETY: the header requires valid arguments.
        let files_open = unsafe { files(files_open) }?;
        let out = place(out, "out")?;
        let context = nudge_client::detect(cwd.map(Path::new))?.with_files_open(files_open)?;
        // SAFETY: `place` has checked `out`.
        unsafe { hand_over(out, nudge_context(context)) };
        Ok(())
    })
}

/// Frees a context. Ignores NULL. Views that were made with the context stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_context_free(context: *mut nudge_context) {
    // SAFETY: the header requires NULL, or a handle of this library that the caller uses no more.
    unsafe { released(context) }
}
