//! Reads the file of an import. The file is an export or a database. An export is read record by record. A database is
//! that of the Dude plugin for Claude (the upstream plugin), or a backup of Nudge's records.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use nudge_core::error::{Error, Result};
use nudge_core::{patience, wire};
use nudge_os::foreign::{self, LinkPolicy};
use nudge_storage::foreign::{ForeignDatabase, ForeignLimits, ForeignLog, MAGIC, UnfitDatabase};
use nudge_storage::rusqlite::Row;
use nudge_storage::rusqlite::types::ValueRef;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::transfer::{FORMAT, MovedRecord};

/// The most bytes of one record in an export, and of one value in a database.
const MAX_RECORD_BYTES: u32 = 16 << 20;
/// The most bytes of a database, because the whole file is read into memory.
const MAX_DATABASE_BYTES: u64 = 256 << 20;
/// The most steps of `SQLite` for reading a database; a record takes about 20 steps. `MAX_TIME` limits the time.
const MAX_STEPS: u64 = 1_000_000_000;
const MAX_TIME: Duration = Duration::from_secs(20);

/// A record of a file, or the reason why an entry of the file is not a record.
pub type ReadRecord = Result<MovedRecord, String>;

/// The file of an import.
pub enum IncomingRecords {
    /// An export that was read once to its end and is well-formed.
    Export(File),
    /// The rows of a database, sorted by the number of the record.
    Rows(Vec<ReadRecord>),
}

impl IncomingRecords {
    /// Opens a file. Reads an export to its end, so that an incomplete export is refused before any record is written.
    ///
    /// # Errors
    /// `E_INVALID` for a file of another kind.
    pub fn open(path: &Path) -> Result<Self> {
        let unreadable = |error: io::Error| {
            Error::invalid(format!(
                "{} cannot be read ({error}); name an export or the upstream's dude.db.",
                path.display()
            ))
        };
        let (file, _) = foreign::open_file(path, LinkPolicy::Followed).map_err(unreadable)?;
        let mut begin = [0; 16];
        if (&file).read_exact(&mut begin).is_ok() && begin == *MAGIC {
            drop(file);
            return read_database(path).map(Self::Rows);
        }
        let mut count = 0_usize;
        let read = read_export(&file, &mut |_| {
            count += 1;
            patience::check_limit()
        });
        let format = read.map_err(|failure| match failure {
            ReadFailure::Refused(error) => error,
            ReadFailure::Io(error) => unreadable(error),
            ReadFailure::TooLong => {
                Error::invalid(format!("Record {} of the export has more than 16 MiB; take it out.", count + 1))
            }
            ReadFailure::Json(Category::Eof) if count > 0 => Error::invalid(
                "The file ends in the middle of an export, so nothing of it was imported; `nudge records export` writes \
                 it anew.",
            ),
            ReadFailure::Json(_) => {
                Error::invalid("The file is no export of records; `nudge records export` writes one.")
            }
        })?;
        if format != FORMAT {
            return Err(Error::invalid("The export is of a later version of Nudge; update this one."));
        }
        Ok(Self::Export(file))
    }

    /// Calls `take` with each record, or with the reason why an entry is not a record. Such an entry does not stop
    /// the import.
    ///
    /// # Errors
    /// The first error of `take`; `E_UNAVAILABLE` when the file has changed since it was opened.
    pub fn read(self, take: &mut dyn FnMut(ReadRecord) -> Result<()>) -> Result<()> {
        match self {
            Self::Rows(rows) => rows.into_iter().try_for_each(take),
            Self::Export(file) => {
                let parse = |record: &RawValue| {
                    wire::parse_json(record.get(), "record").map_err(|error| error.message().to_owned())
                };
                let read = read_export(&file, &mut |record| take(parse(record)));
                read.map(drop).map_err(|failure| match failure {
                    ReadFailure::Refused(error) => error,
                    _ => Error::unavailable("The file was changed while it was read; import it again."),
                })
            }
        }
    }
}

/// The reason why an export was not read to its end.
enum ReadFailure {
    /// `take` refused a record.
    Refused(Error),
    /// The file cannot be read.
    Io(io::Error),
    /// A record is too long.
    TooLong,
    /// The file is not the JSON of an export.
    Json(Category),
}

/// Reads an export from its beginning, calls `take` with each record, and returns the format. Only one record at a time
/// is in memory.
fn read_export(mut file: &File, take: &mut dyn FnMut(&RawValue) -> Result<()>) -> Result<String, ReadFailure> {
    file.rewind().map_err(ReadFailure::Io)?;
    let (room, mut refused) = (Cell::new(MAX_RECORD_BYTES), None);
    let reader = BoundedReader { reader: BufReader::new(file), room: &room };
    let mut json = serde_json::Deserializer::from_reader(reader);
    let visitor = ExportVisitor { room: &room, take, refused: &mut refused };
    let read = json.deserialize_map(visitor).and_then(|format| {
        room.set(MAX_RECORD_BYTES);
        json.end().map(|()| format)
    });
    read.map_err(|error| match refused {
        Some(error) => ReadFailure::Refused(error),
        None if error.io_error_kind() == Some(io::ErrorKind::FileTooLarge) => ReadFailure::TooLong,
        None if error.is_io() => ReadFailure::Io(error.into()),
        None => ReadFailure::Json(error.classify()),
    })
}

/// Reads a file, at most `room` bytes. The visitor resets `room` for each record.
struct BoundedReader<'a> {
    reader: BufReader<&'a File>,
    room: &'a Cell<u32>,
}

impl Read for BoundedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = self.room.get();
        let most = buffer.len().min(usize::try_from(room).expect("usize has 32 bits or more"));
        if most == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let count = self.reader.read(&mut buffer[..most])?;
        self.room.set(room - u32::try_from(count).expect("no more than there is room"));
        Ok(count)
    }
}

/// Reads the members of an export, calls `take` with each record, and returns the format.
struct ExportVisitor<'a> {
    room: &'a Cell<u32>,
    take: &'a mut dyn FnMut(&RawValue) -> Result<()>,
    /// The error with which `take` ended the reading.
    refused: &'a mut Option<Error>,
}

impl<'de> Visitor<'de> for ExportVisitor<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an export")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<String, A::Error> {
        let (mut format, mut has_records) = (None, false);
        while let Some(name) = map.next_key::<String>()? {
            self.room.set(MAX_RECORD_BYTES);
            match &*name {
                "format" if format.is_some() => return Err(A::Error::duplicate_field("format")),
                "records" if has_records => return Err(A::Error::duplicate_field("records")),
                "format" => format = Some(map.next_value()?),
                "records" => {
                    has_records = true;
                    map.next_value_seed(ExportedRecords(&mut self))?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            self.room.set(MAX_RECORD_BYTES);
        }
        format.filter(|_| has_records).ok_or_else(|| A::Error::missing_field("format, records"))
    }
}

/// Reads the list of records of an export.
struct ExportedRecords<'a, 'b>(&'b mut ExportVisitor<'a>);

impl<'de> DeserializeSeed<'de> for ExportedRecords<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ExportedRecords<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        loop {
            self.0.room.set(MAX_RECORD_BYTES);
            let Some(record) = list.next_element::<Box<RawValue>>()? else { return Ok(()) };
            if let Err(error) = (self.0.take)(&record) {
                *self.0.refused = Some(error);
                return Err(A::Error::custom("refused"));
            }
        }
    }
}

/// Reads the upstream plugin's file or a backup. Only the tables `project` and `record` are used.
///
/// The columns of these tables may hold any value, so each row is checked.
fn read_database(path: &Path) -> Result<Vec<ReadRecord>> {
    let limits = ForeignLimits {
        file_bytes: MAX_DATABASE_BYTES,
        value_bytes: MAX_RECORD_BYTES.cast_signed(),
        all_bytes: MAX_DATABASE_BYTES,
        steps: MAX_STEPS,
        until: Instant::now() + MAX_TIME,
    };
    // The plugin may have the file open, so changes that are only in the log are read too.
    let file = ForeignDatabase::open(path, LinkPolicy::Followed, ForeignLog::Read, &limits).map_err(unfit)?;
    let mut projects = HashMap::new();
    file.for_each_row("project", &["id", "name"], None, &mut |row| {
        if let Ok(id) = row.get::<_, i64>(0) {
            projects.insert(id, text(row, 1, "project"));
        }
        ControlFlow::Continue(())
    })
    .map_err(unfit)?;
    let columns = ["id", "project_id", "kind", "title", "body", "status", "created_at", "updated_at"];
    let mut moved: Vec<(Option<i64>, ReadRecord)> = Vec::new();
    file.for_each_row("record", &columns, None, &mut |row| {
        // A row without a valid number is still a record. Such rows come first.
        moved.push((row.get(0).ok(), of_upstream(row, &projects)));
        ControlFlow::Continue(())
    })
    .map_err(unfit)?;
    moved.sort_by_key(|(id, _)| *id);
    Ok(moved.into_iter().map(|(_, record)| record).collect())
}

/// Makes the error for a database that cannot be read. The error leaves out the message of `SQLite`, because that
/// message may contain a value of the file.
fn unfit(unfit: UnfitDatabase) -> Error {
    Error::invalid(match unfit {
        UnfitDatabase::File(error) => {
            format!("The file cannot be read ({error}); name an export or the upstream's dude.db.")
        }
        UnfitDatabase::NotADatabase | UnfitDatabase::NoTable | UnfitDatabase::NotOwn => {
            "The file is a database, but not one of records; name the upstream's dude.db.".into()
        }
        UnfitDatabase::InUse | UnfitDatabase::Damaged => {
            "The file cannot be read to its end; it may be damaged, or in use. Give a copy of it.".into()
        }
        UnfitDatabase::TooMuch => {
            "The file has more than 256 MiB, or takes too long to read; give a smaller one.".into()
        }
    })
}

/// Converts a row of the upstream's table, or returns the reason why the row is not a record.
fn of_upstream(row: &Row<'_>, projects: &HashMap<i64, Result<String, String>>) -> ReadRecord {
    let no_project = || Err("its project is no text".to_owned());
    let project = row.get(1).ok().and_then(|id: i64| projects.get(&id).cloned()).unwrap_or_else(no_project);
    let given = |column: usize| row.get_ref(column).is_ok_and(|value| !matches!(value, ValueRef::Null));
    // If one of the two times is missing, the other is used for both.
    let time = |column: usize, other: usize| match (given(column), given(other)) {
        (true, _) => text(row, column, "time"),
        (false, true) => text(row, other, "time"),
        (false, false) => Ok(String::new()),
    };
    let unknown = |_| "its kind or status is unknown".to_owned();
    Ok(MovedRecord {
        project: project?,
        kind: serde_json::from_value(text(row, 2, "kind")?.into()).map_err(unknown)?,
        title: text(row, 3, "title")?,
        body: if given(4) { text(row, 4, "body")? } else { String::new() },
        status: serde_json::from_value(text(row, 5, "status")?.into()).map_err(unknown)?,
        created_at: time(6, 7)?,
        updated_at: time(7, 6)?,
    })
}

fn text(row: &Row<'_>, column: usize, name: &str) -> Result<String, String> {
    match row.get_ref(column) {
        Ok(value) => value.as_str().map(str::to_owned).map_err(|_| format!("its {name} is no text")),
        Err(_) => Err(format!("its {name} is missing")),
    }
}
