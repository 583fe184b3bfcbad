//! Remembers the files of an open database, and checks whether their names still lead to them.
//!
//! In WAL mode SQLite does not check the names. When a user moves a copy over the database or removes the folder, the
//! connections keep files without a name, and the last close loses their commits. The log beside the database keeps its
//! name, so a process that opens the new file would replay a log that does not belong to it.

use std::io;

use nudge_os::dir::{OpenedFile, PrivateDir};

use crate::fault::DatabasePlace;

/// The identities that the files had when the database was opened.
pub(crate) struct DatabaseFiles {
    database: OpenedFile,
    /// The write-ahead log; `None` in another journal mode. `index` is the index of that log.
    log: Option<OpenedFile>,
    index: Option<OpenedFile>,
}

/// The result of comparing the names with the open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStanding {
    /// All names lead to the same files as before.
    InPlace,
    /// The name of the log is missing, and the database still has its name.
    WithoutLog,
    /// Another file has the name of the database or of its log.
    Replaced,
    /// No file has the name of the database.
    Removed,
}

impl DatabaseFiles {
    /// Looks up the files by their names; `None` when there is no database.
    pub(crate) fn remember_files(place: &DatabasePlace) -> io::Result<Option<Self>> {
        let beside = |end: &str| OpenedFile::look_up(place.folder.join(format!("{}{end}", place.file_name())));
        let Some(database) = beside("")? else { return Ok(None) };
        Ok(Some(Self { database, log: beside("-wal")?, index: beside("-shm")? }))
    }

    /// Returns true if both values describe the same database file.
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

    /// Returns true if the database file still has its name, whatever happened to its log.
    pub(crate) fn has_database(&self) -> bool {
        self.database.is_in_place()
    }

    /// Removes the log and its index if these files still have their names. The caller has found that the database file
    /// lost its name.
    pub(crate) fn remove_log(&self, place: &DatabasePlace) {
        let Ok(folder) = PrivateDir::open(&place.folder, false) else { return };
        for file in self.log.iter().chain(&self.index).filter(|file| file.is_in_place()) {
            if let Some(name) = file.path().file_name().and_then(|name| name.to_str()) {
                // If the removal fails, the log stays, and SQLite later recognises it as the log of another file.
                let _ = folder.remove(name);
            }
        }
    }
}
