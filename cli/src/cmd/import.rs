//! `nudge import`

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{IsTerminal as _, Read as _, stderr, stdin};

use nudge::{Error, Result, Service as _};
use nudge_app::kept::KeptDocument;
use nudge_server::MAX_BODY_BYTES;
use nudge_server::session::refill::RefillResult;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::{CommandOutput, RunningSession, ask_yes, parse_value, parsed_as, render_answer, text_or_stdin, to_raw};
use crate::args::{GlobalFlags, ImportArgs, ImportModeFlag};
use crate::output;

/// The most bytes of a file that are read. The file may be a device, which has no end.
const MAX_FILE_BYTES: u64 = 4 << 30;
/// The most bytes of the params of one call. The server's limit for a body is a little higher.
const MAX_CALL_BYTES: usize = MAX_BODY_BYTES - (64 << 10);
/// The bytes of hints in one call, if a file needs several calls. The server must answer each call within seconds,
/// because other callers wait.
const PIECE_BYTES: usize = 1 << 20;
/// The most errors that the answer lists, the same as for one call.
const MAX_ERRORS: usize = 100;

/// Params of `nudge.import`. The payload is raw JSON text, to keep the order of keys, duplicate keys and numbers.
#[derive(Serialize)]
struct RawImportParams<'a> {
    payload: &'a RawValue,
    mode: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    allow_secret: bool,
}

pub fn run(args: &ImportArgs, global: &GlobalFlags) -> Result<CommandOutput> {
    let (text, name) = match &*args.file {
        "-" => (text_or_stdin("-".into())?, "Standard input"),
        file => {
            let mut text = String::new();
            // The user named this path, so any kind of file is allowed, even a pipe.
            let read = File::open(file).and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text));
            let wrong = |error| {
                invalid_error(format!("{file} cannot be read: {error}; name a file that `nudge export` wrote."))
            };
            read.map_err(wrong)?;
            (text, file)
        }
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| {
        invalid_error(format!("{name} is not JSON: {error}; correct it or write it anew with `nudge export`."))
    })?;
    let mode = if args.mode == ImportModeFlag::Merge { "merge" } else { "replace" };
    let payload = find_payload(whole).unwrap_or(whole);
    let params = |payload: &RawValue| to_raw(&RawImportParams { payload, mode, allow_secret: args.allow_secret });
    let params_of_one_call = if payload.get().len() <= MAX_CALL_BYTES {
        Some(params(payload)?)
    } else if args.mode == ImportModeFlag::Replace {
        let params = params(&without_spaces(payload)?)?;
        if params.get().len() > MAX_CALL_BYTES {
            return Err(invalid_error(format!(
                "{name} has more than 32 MiB, and --mode replace takes the whole at once; replace the store by an empty \
                 one, `{{\"components\": {{}}}}`, and import this file with --mode merge."
            )));
        }
        Some(params)
    } else {
        None
    };
    let session = RunningSession::open(global)?;
    if args.mode == ImportModeFlag::Replace && !args.yes {
        agree_to_replace(&session, args)?;
    }
    let call = |params: &RawValue| session.remote.call("nudge.import", params);
    let answer = match params_of_one_call {
        Some(params) => call(&params)?,
        None => import_in_pieces(payload, name, |payload| call(&params(payload)?))?,
    };
    render_answer(&session, &answer, output::render_imported)
}

/// Imports a store that is too large for one call, the most used hints first. `import` makes one call.
fn import_in_pieces(
    payload: &RawValue,
    name: &str,
    import: impl Fn(&RawValue) -> Result<Box<RawValue>>,
) -> Result<Box<RawValue>> {
    let no_store = |_| invalid_error(format!("{name} is no store; write it anew with `nudge export`."));
    let document = KeptDocument::read(payload.get()).map_err(no_store)?;
    // First imports the payload without hints. This checks the version and the other members before any hint is stored.
    let mut others: BTreeMap<String, &RawValue> = serde_json::from_str(payload.get()).map_err(no_store)?;
    let none = to_raw_value(&Map::new()).expect("an empty object is JSON");
    others.insert("components".into(), &none);
    import(&to_raw(&others)?)?;
    let (sum, last_error) = (RefCell::new(ImportCounts::default()), RefCell::new(None));
    let mut refill = RefillResult::in_pieces_of(PIECE_BYTES);
    let filled = refill.import_hints(document.iter_hints().collect(), &|piece| {
        let piece = RawValue::from_string(piece.to_owned()).map_err(no_store)?;
        let counts = import(&piece).inspect_err(|error| *last_error.borrow_mut() = Some(error.clone()))?;
        let counts: ImportCounts = parsed_as(&counts)?;
        let wrong = counts.errors.len();
        sum.borrow_mut().add_counts(counts);
        Ok(wrong)
    });
    let sum = sum.into_inner();
    let (error, left) = match (filled, refill.left.len()) {
        (Ok(()), 0) => return to_raw(&sum),
        (Err(error), _) => (error, String::new()),
        (Ok(()), left) => {
            let error = last_error.take().expect("a hint without room was refused");
            (error, format!(" {left} hints of least use found no room;"))
        }
    };
    let why = error.message().trim_end_matches('.');
    let ImportCounts { imported, skipped, .. } = sum;
    let message =
        format!("{why};{left} {imported} hints of the file came in, and the same import goes on with the rest.");
    Err(Error::new(error.kind(), message).with_data("imported", imported).with_data("skipped", skipped))
}

/// The result of an import, or the sum of several results.
#[derive(Default, Deserialize, Serialize)]
struct ImportCounts {
    imported: usize,
    skipped: usize,
    errors: Vec<Value>,
}

impl ImportCounts {
    fn add_counts(&mut self, other: Self) {
        self.imported += other.imported;
        self.skipped += other.skipped;
        let room = MAX_ERRORS - self.errors.len();
        self.errors.extend(other.errors.into_iter().take(room));
    }
}

/// Removes the white space that makes an export readable.
fn without_spaces(payload: &RawValue) -> Result<Box<RawValue>> {
    let mut text = Vec::new();
    let mut from = serde_json::Deserializer::from_str(payload.get());
    serde_transcode::transcode(&mut from, &mut serde_json::Serializer::new(&mut text))
        .map_err(|error| invalid_error(format!("The payload cannot be written anew ({error}).")))?;
    let text = String::from_utf8(text).expect("JSON is written as UTF-8");
    Ok(RawValue::from_string(text).expect("it was written as JSON"))
}

/// Asks the user at a terminal before stored hints are removed. Does not ask in a script, because the script's author
/// has chosen `--mode replace`.
fn agree_to_replace(session: &RunningSession, args: &ImportArgs) -> Result<()> {
    if args.file == "-" || !stdin().is_terminal() || !stderr().is_terminal() {
        return Ok(());
    }
    let hints = parse_value(&session.call("nudge.status", &Map::new())?)?["hints"].as_u64();
    let is = match hints {
        Some(1) => "1 hint is",
        Some(hints) => &format!("{hints} hints are"),
        None => "Hints that cannot be counted are",
    };
    let is_fine = hints == Some(0) || ask_yes(&format!("{is} stored, and --mode replace removes all. Go on?"));
    if is_fine { Ok(()) } else { Err(invalid_error("Nothing was changed.".into())) }
}

/// Returns the payload of a file that `export --json` wrote. Returns `None` for another file.
fn find_payload(whole: &RawValue) -> Option<&RawValue> {
    let members: std::collections::BTreeMap<String, &RawValue> = serde_json::from_str(whole.get()).ok()?;
    if members.contains_key("components") { None } else { members.get("payload").copied() }
}

fn invalid_error(message: String) -> Error {
    Error::invalid(message)
}
