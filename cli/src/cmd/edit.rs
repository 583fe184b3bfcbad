//! `nudge edit`: a hint in the user's editor, stored if nobody changed it meanwhile.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::Command;

use nudge::{Error, ErrorKind, Result};
use serde_json::{Map, Value};

use super::{Done, Session, add, address, parsed, tell};
use crate::args::{Edit, Global, Here};
use crate::output;

pub fn run(args: &Edit, global: &Global) -> Result<Done> {
    let session = Session::open(global)?;
    let hint = pick(&session, args)?;
    if hint["meta"]["sensitivity"] == "secret" {
        return Err(invalid("A secret is not written to a file; store it anew with `nudge set ... --secret`."));
    }
    let mut folder = tempfile::Builder::new();
    folder.prefix("nudge-edit-");
    // Hints are nobody else's to read, whatever the umask.
    #[cfg(unix)]
    folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let folder = folder.tempdir().map_err(|error| no_file(&error))?;
    let file = folder.path().join("hint.jsonc");
    let before = document(&hint);
    std::fs::write(&file, &before).map_err(|error| no_file(&error))?;
    loop {
        open_editor(&file)?;
        let after = std::fs::read_to_string(&file).map_err(|error| no_file(&error))?;
        if after == before || after.trim().is_empty() {
            tell("nothing was changed");
            return Ok(String::new().into());
        }
        let stored = params(&after, &hint, args.allow_secret).and_then(|params| {
            still_there(&session, args, &hint)?;
            session.call("nudge.set_hint", &params)
        });
        match stored {
            Ok(result) => return session.render(&result, output::stored),
            // What somebody else has changed, no further editing mends.
            Err(error) if error.kind() == ErrorKind::Conflict || !std::io::stdin().is_terminal() => return Err(error),
            Err(error) => ask_again(&error)?,
        }
    }
}

/// The variant that is meant: the one named, the only one, or the one that `get` returns here.
fn pick(session: &Session, args: &Edit) -> Result<Value> {
    let mut why = why(session, args)?;
    let Some(variants) = why["variants"].as_array_mut().filter(|variants| !variants.is_empty()) else {
        return Err(Error::new(ErrorKind::NotFound, "No such hint is stored; list what there is with `nudge ls`."));
    };
    let name = |row: &Value| row["hint"]["variant"].as_str().unwrap_or_default().to_owned();
    let at = match &args.variant {
        Some(variant) => variants.iter().position(|row| name(row) == *variant).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "There is no such variant; `nudge why` lists the variants of a key.")
        })?,
        None if variants.len() == 1 || variants[0]["match_explain"]["matched"] == true => 0,
        None => return Err(invalid("The key has several variants and none fits here; name one with `variant`.")),
    };
    Ok(variants[at]["hint"].take())
}

fn why(session: &Session, args: &Edit) -> Result<Value> {
    let params = address(args.component.clone(), args.key.clone());
    parsed(&session.call_here("nudge.why", params, &Here::default())?)
}

/// One that was deleted and set anew begins with version 1 again, so the version alone does not tell.
fn still_there(session: &Session, args: &Edit, hint: &Value) -> Result<()> {
    let now = why(session, args)?;
    let same = |row: &Value| ["variant", "created_at"].iter().all(|field| row["hint"].get(field) == hint.get(field));
    if now["variants"].as_array().is_some_and(|rows| rows.iter().any(same)) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Conflict,
        "The hint was deleted meanwhile, so nothing was changed; look with `nudge why`.",
    ))
}

/// What can be changed, as JSON below a comment. The scope is the hint's identity and stays.
fn document(hint: &Value) -> String {
    let mut meta = hint["meta"].clone();
    let scope = meta.as_object_mut().and_then(|meta| meta.remove("scope"));
    let mut out = String::new();
    let _ = writeln!(out, "// {}/{}, version {}", plain(&hint["component"]), plain(&hint["key"]), hint["version"]);
    match scope {
        Some(scope) => {
            let _ = writeln!(out, "// applies where {scope} (to change that, set another variant)");
        }
        None => out.push_str("// applies everywhere\n"),
    }
    out.push_str("// Lines that begin with // are ignored; an empty file changes nothing.\n");
    let body = serde_json::json!({"value": hint["value"], "meta": meta});
    let _ = writeln!(out, "{}", serde_json::to_string_pretty(&body).unwrap_or_default());
    out
}

fn plain(name: &Value) -> String {
    output::visible(name.as_str().unwrap_or_default())
}

fn params(text: &str, hint: &Value, allow_secret: bool) -> Result<Map<String, Value>> {
    // A JSON string cannot hold a line break, so no string begins a line.
    let body: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let body: Value = serde_json::from_str(&body)
        .map_err(|error| invalid(format!("The text is not JSON: {error}; edit it again.")))?;
    let Value::Object(mut params) = body else {
        return Err(invalid("The text must be an object with `value` and `meta`; edit it again."));
    };
    for (name, value) in [
        ("component", &hint["component"]),
        ("key", &hint["key"]),
        ("if_match_version", &hint["version"]),
        ("variant", hint.get("variant").unwrap_or(&Value::String(String::new()))),
    ] {
        params.insert(name.into(), value.clone());
    }
    add(&mut params, "allow_secret", allow_secret.then_some(true));
    Ok(params)
}

/// As git does: the editor is a command of the shell, the file its argument.
fn open_editor(file: &Path) -> Result<()> {
    let named = |name: &str| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR"));
    let mut command = if cfg!(windows) {
        let mut command = Command::new("cmd");
        command.arg("/C").arg(editor.unwrap_or_else(|| "notepad".into()));
        command
    } else {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{} \"$@\"", editor.unwrap_or_else(|| "vi".into())), "editor"]);
        command
    };
    match command.arg(file).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(invalid("The editor failed, so nothing was changed; set EDITOR to one that works.")),
        Err(error) => Err(invalid(format!("The editor cannot be started: {error}; set EDITOR to one that works."))),
    }
}

fn ask_again(error: &Error) -> Result<()> {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "nudge: {}\nEnter edits again, Ctrl-C gives up: ", output::visible(error.message()));
    let _ = stderr.flush();
    match std::io::stdin().read_line(&mut String::new()) {
        Ok(read) if read > 0 => Ok(()),
        _ => Err(error.clone()),
    }
}

fn no_file(error: &std::io::Error) -> Error {
    invalid(format!("The file for the editor fails: {error}; set TMPDIR to a folder of yours."))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, message)
}
