//! Reads the context of a caller.

use std::path::Path;

use nudge::{Context, ContextSpec, Os, Result};

use crate::input::{GrowingParams, hand_over, place, read, unknown, unused};
use crate::{answer, nudge_error, nudge_pairs, nudge_status, nudge_str, nudge_strs, released};

/// Operating systems, as bits.
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

/// Lists every system with its bit.
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

/// The context of a caller, checked. It is immutable and threads may share it; free it with `nudge_context_free`. Make
/// one per place and keep it.
pub struct nudge_context(pub(crate) Context);

/// The context of a caller, to be checked by `nudge_context_new`. A field not given is unknown: a hint that asks for it
/// does not fit.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct nudge_context_params {
    /// `sizeof(nudge_context_params)`.
    pub struct_size: usize,
    /// Absolute folder without `..`, at most 4,096 bytes.
    pub cwd: nudge_str,
    /// Repository in any spelling: `org/repo`, `host/org/repo`, a git URL, `file:///path`.
    pub repo: nudge_str,
    /// Branch.
    pub branch: nudge_str,
    /// A bit of `nudge_os`; 0 is unknown.
    pub os: u32,
    /// 0.
    pub reserved: u32,
    /// Environment variables, at most 256 with values of at most 32 KiB. A value that is not given says that
    /// the variable is not set.
    pub env: nudge_pairs,
    /// Open files, at most 256. A hint ranks higher if its component is a segment of their paths.
    pub files_open: nudge_strs,
}

// SAFETY: holds only integers and pointers behind `struct_size`.
unsafe impl GrowingParams for nudge_context_params {
    const NAME: &str = "nudge_context_params";
}

impl nudge_context_params {
    /// # Safety
    ///
    /// The texts and lists must be as the header says.
    unsafe fn spec(&self) -> Result<ContextSpec> {
        unused(self.reserved)?;
        let owned = |text: Option<&str>| text.map(str::to_owned);
        // SAFETY: the caller's promise.
        let cwd = unsafe { self.cwd.given("cwd") }?;
        // SAFETY: the caller's promise.
        let repo = unsafe { self.repo.given("repo") }?;
        // SAFETY: the caller's promise.
        let branch = unsafe { self.branch.given("branch") }?;
        // SAFETY: the caller's promise.
        let env = unsafe { self.env.pairs("env") }?;
        let env = env.into_iter().map(|(name, value)| (name.to_owned(), owned(value))).collect();
        let os = match systems(self.os, "os")?[..] {
            [] => None,
            [os] => Some(os),
            _ => return Err(unknown("os")),
        };
        // SAFETY: the caller's promise.
        let files_open = unsafe { files(self.files_open) }?;
        Ok(ContextSpec { cwd: owned(cwd), repo: owned(repo), branch: owned(branch), os, env: Some(env), files_open })
    }
}

/// # Safety
///
/// The list must be as the header says.
unsafe fn files(list: nudge_strs) -> Result<Vec<String>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { list.texts("files_open") }?.into_iter().map(str::to_owned).collect())
}

/// Makes a context of facts that the caller knows.
///
/// `NUDGE_E_INVALID` for a relative `cwd`, one with `..`, a repository that cannot be read, or a size over a
/// limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_context_new(
    params: *const nudge_context_params,
    out: *mut *mut nudge_context,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: as the header says.
        let params = unsafe { read(params) }?;
        let out = place(out, "out")?;
        // SAFETY: as the header says.
        let context = unsafe { params.spec() }?.build()?;
        // SAFETY: `place` has checked `out`.
        unsafe { hand_over(out, nudge_context(context)) };
        Ok(())
    })
}

/// Makes a context from facts that this process finds about `cwd`, an absolute folder, else about its own folder:
/// repository and branch by git's files, the system, and the process's environment. A session gets only the variables
/// that its hints ask for. `files_open` are as in `nudge_context_params`.
///
/// This call reads the environment: the program must not change it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_context_detect(
    cwd: nudge_str,
    files_open: nudge_strs,
    out: *mut *mut nudge_context,
    error: *mut *mut nudge_error,
) -> nudge_status {
    answer(error, || {
        // SAFETY: as the header says.
        let cwd = unsafe { cwd.given("cwd") }?;
        // SAFETY: as the header says.
        let files_open = unsafe { files(files_open) }?;
        let out = place(out, "out")?;
        let context = nudge_client::detect(cwd.map(Path::new))?.with_files_open(files_open)?;
        // SAFETY: `place` has checked `out`.
        unsafe { hand_over(out, nudge_context(context)) };
        Ok(())
    })
}

/// Frees a context; NULL is fine. Views that were made with it stay as they are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nudge_context_free(context: *mut nudge_context) {
    // SAFETY: NULL or ours and used no more, as the header says.
    unsafe { released(context) }
}
