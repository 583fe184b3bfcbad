//! Opens an address in the user's browser.

use std::process::{Command, Stdio};

/// Starts the system's program for opening addresses, and does not wait for it. Returns false when there is no such
/// program or no screen.
#[cfg(all(unix, not(target_os = "macos")))]
pub fn open_browser(url: &str) -> bool {
    use std::os::unix::process::CommandExt as _;

    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    // In Linux under Windows, `wslview` opens the browser of Windows.
    let opener = nudge_os::programs::find_program("wslview")
        .or_else(|| nudge_os::programs::find_program("xdg-open").filter(|_| has_screen));
    let Some(opener) = opener else { return false };
    // A process group of its own keeps Ctrl-C in this terminal from ending a browser that it has started.
    without_streams(Command::new(opener).arg(url).process_group(0)).spawn().is_ok()
}

/// Opens the address, and passes it through a pipe: every user of the machine can read arguments.
#[cfg(target_os = "macos")]
pub fn open_browser(url: &str) -> bool {
    use std::io::Write as _;

    // Over SSH the page would open on a screen in front of which another person may sit.
    if std::env::var_os("SSH_CONNECTION").is_some() {
        return false;
    }
    let mut osascript = Command::new("/usr/bin/osascript");
    let Ok(mut opener) = without_streams(&mut osascript).stdin(Stdio::piped()).spawn() else { return false };
    // An address from Nudge contains no quote.
    let script = format!("open location \"{url}\"\n");
    opener.stdin.take().is_some_and(|mut stdin| stdin.write_all(script.as_bytes()).is_ok())
}

/// Opens the address as an argument: Windows does not show arguments to other users.
#[cfg(windows)]
pub fn open_browser(url: &str) -> bool {
    let Some(opener) = nudge_os::programs::find_program("rundll32") else { return false };
    without_streams(Command::new(opener).arg("url.dll,FileProtocolHandler").arg(url)).spawn().is_ok()
}

/// Removes this process's streams, which a browser would keep open and write to.
fn without_streams(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
