//! Prints the requests that Nudge would send to a model for one session. The program reads the session's file from
//! stdin: `cargo run -p nudge-capture --example request <session.jsonl`.

use std::io::{self, Read as _};

use nudge_capture::{prompt, transcript, view};

fn main() -> io::Result<()> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    let session = transcript::read(&bytes).ok_or_else(|| io::Error::other("no line of a session is known"))?;
    for part in view::render_session(&session).parts {
        print!("{}", prompt::build_request(&[], &[], &part).to_sent_text());
    }
    Ok(())
}
