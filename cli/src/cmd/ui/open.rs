//! Opens an address in the user's browser.

use std::process::{Command, Stdio};

/// Starts the system's program that opens addresses. Does not wait for it. Returns false when there is no such program
/// or no screen.
#[cfg(all(unix, not(target_os = "macos")))]
pub fn open_browser(url: &str) -> bool {
    use std::os::unix::process::CommandExt as _;

    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    // In Linux on Windows (WSL), `wslview` opens the browser of Windows.
    let opener = nudge_os::programs::find_program("wslview")
        .or_else(|| nudge_os::programs::find_program("xdg-open").filter(|_| has_screen));
    let Some(opener) = opener else { return false };
    // The own process group keeps Ctrl-C in this terminal away from the browser.
    without_streams(Command::new(opener).arg(url).process_group(0)).spawn().is_ok()
}

/// Opens the address. Passes it through a pipe, because every user of the machine can read arguments.
#[cfg(target_os = "macos")]
pub fn open_browser(url: &str) -> bool {
    use std::io::Write as _;

    // Over SSH, the page would open on a screen at which another user may sit.
    if std::env::var_os("SSH_CONNECTION").is_some() {
        return false;
    }
    let mut osascript = Command::new("/usr/bin/osascript");
    let Ok(mut opener) = without_streams(&mut osascript).stdin(Stdio::piped()).spawn() else { return false };
    // An address from Nudge cannot contain a quote.
    let script = format!("open location \"{url}\"\n");
    opener.stdin.take().is_some_and(|mut stdin| stdin.write_all(script.as_bytes()).is_ok())
}

/// Opens the address. Passes it as an argument, because Windows does not show arguments to other users.
#[cfg(windows)]
pub fn open_browser(url: &str) -> bool {
    let Some(opener) = nudge_os::programs::find_program("rundll32") else { return false };
    without_streams(Command::new(opener).arg("url.dll,FileProtocolHandler").arg(url)).spawn().is_ok()
}

/// Disconnects the standard streams, because a browser would keep them open and write to them.
fn without_streams(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
