//! The files of an open database, and whether their names still stand for them.
//!
//! In WAL mode SQLite does not look. A copy that is moved over the database, or a folder that is removed, leaves the
//! connections with files without a name: their commits are lost when they end. The log beside the database keeps its
//! name, and a process that opens the new file would replay it onto a file that it does not belong to.

use std::io;

use nudge_os::dir::{OpenedFile, PrivateDir};

use crate::fault::DatabasePlace;

/// The files, as they were when the database was opened.
pub(crate) struct DatabaseFiles {
    database: OpenedFile,
    /// The log and its index; without them where the journal is another.
    log: Option<OpenedFile>,
    index: Option<OpenedFile>,
}

/// The state of the names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStanding {
    /// All are as they were.
    InPlace,
    /// The log has lost its name, and no other has it; the database is as it was.
    WithoutLog,
    /// Another file is the database, or its log.
    Replaced,
    /// There is no database any more.
    Removed,
}

impl DatabaseFiles {
    /// Remembers them; `None` where there is no database.
    pub(crate) fn remember_files(place: &DatabasePlace) -> io::Result<Option<Self>> {
        let beside = |end: &str| OpenedFile::look_up(place.folder.join(format!("{}{end}", place.file_name())));
        let Some(database) = beside("")? else { return Ok(None) };
        Ok(Some(Self { database, log: beside("-wal")?, index: beside("-shm")? }))
    }

    /// Returns true if these are of the same database as others.
    pub(crate) fn is_same_database(&self, other: &Self) -> bool {
        self.database == other.database
    }

    pub(crate) fn check_standing(&self) -> FileStanding {
        if !self.database.is_in_place() {
            return if self.database.is_named() { FileStanding::Replaced } else { FileStanding::Removed };
        }
        let mut beside = self.log.iter().chain(&self.index);
        match beside.find(|file| !file.is_in_place()) {
            None => FileStanding::InPlace,
            Some(file) if file.is_named() => FileStanding::Replaced,
            Some(_) => FileStanding::WithoutLog,
        }
    }

    /// Returns true if the database has its name, whatever became of its log.
    pub(crate) fn has_database(&self) -> bool {
        self.database.is_in_place()
    }

    /// Removes the log and its index, if they still have their names. Their database has lost its own.
    pub(crate) fn remove_log(&self, place: &DatabasePlace) {
        let Ok(folder) = PrivateDir::open(&place.folder, false) else { return };
        for file in self.log.iter().chain(&self.index).filter(|file| file.is_in_place()) {
            if let Some(name) = file.path().file_name().and_then(|name| name.to_str()) {
                // If the log stays, SQLite finds it, and refuses a log of another file.
                let _ = folder.remove(name);
            }
        }
    }
}
