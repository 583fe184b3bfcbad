//! Opening an address in the person's browser.

use std::process::{Command, Stdio};

/// Starts the program that opens addresses here, and does not wait for it. Returns false where there is none, or no
/// screen.
#[cfg(all(unix, not(target_os = "macos")))]
pub fn open_browser(url: &str) -> bool {
    use std::os::unix::process::CommandExt as _;

    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    // In Linux under Windows the first one opens the browser of Windows.
    let opener = nudge_os::programs::find_program("wslview")
        .or_else(|| nudge_os::programs::find_program("xdg-open").filter(|_| has_screen));
    let Some(opener) = opener else { return false };
    // In a group of its own, so that Ctrl-C in this terminal does not end a browser that it has started.
    without_streams(Command::new(opener).arg(url).process_group(0)).spawn().is_ok()
}

/// The same. The address goes by a pipe: arguments can be read by every user of the machine.
#[cfg(target_os = "macos")]
pub fn open_browser(url: &str) -> bool {
    use std::io::Write as _;

    // Over SSH it would open on a screen that somebody else may be looking at.
    if std::env::var_os("SSH_CONNECTION").is_some() {
        return false;
    }
    let mut osascript = Command::new("/usr/bin/osascript");
    let Ok(mut opener) = without_streams(&mut osascript).stdin(Stdio::piped()).spawn() else { return false };
    // An address that we made holds no quote.
    let script = format!("open location \"{url}\"\n");
    opener.stdin.take().is_some_and(|mut stdin| stdin.write_all(script.as_bytes()).is_ok())
}

/// The same. Arguments are not shown to other users here.
#[cfg(windows)]
pub fn open_browser(url: &str) -> bool {
    let Some(opener) = nudge_os::programs::find_program("rundll32") else { return false };
    without_streams(Command::new(opener).arg("url.dll,FileProtocolHandler").arg(url)).spawn().is_ok()
}

/// Without our streams, which a browser would keep open and write to.
fn without_streams(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
