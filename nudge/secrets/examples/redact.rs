//! Copies stdin to stdout, and replaces each line that looks like a credential by the name of the rule that matched:
//! `cargo run -p nudge-secrets --example redact <build.log`.

use std::io::{self, Read as _, Write as _};

use nudge_secrets::SecretGuard;

fn main() -> io::Result<()> {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let mut out = io::stdout().lock();
    let mut copied = 0;
    for span in SecretGuard::new().find_spans(&text) {
        write!(out, "{}[{}]", &text[copied..span.range.start], span.rule)?;
        copied = span.range.end;
    }
    out.write_all(&text.as_bytes()[copied..])
}
