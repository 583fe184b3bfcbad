//! The files of an open database, and a check whether their names still lead to them.
//!
//! In WAL mode SQLite does not check this. When a copy is moved over the database, or the folder is removed, the
//! connections have files without a name, and their commits are lost when they end. The log beside the database keeps
//! its name: a process that opens the new file would replay the log onto a file to which it does not belong.

use std::io;

use nudge_os::dir::{OpenedFile, PrivateDir};

use crate::fault::DatabasePlace;

/// The identities of the files when the database was opened.
pub(crate) struct DatabaseFiles {
    database: OpenedFile,
    /// The write-ahead log and its index; `None` with another journal mode.
    log: Option<OpenedFile>,
    index: Option<OpenedFile>,
}

/// The state of the names of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileStanding {
    /// All names lead to the same files as before.
    InPlace,
    /// The log has no name, and no other file has it; the database is unchanged.
    WithoutLog,
    /// Another file has the name of the database or of its log.
    Replaced,
    /// No file has the name of the database.
    Removed,
}

impl DatabaseFiles {
    /// Looks up the files; `None` when there is no database.
    pub(crate) fn remember_files(place: &DatabasePlace) -> io::Result<Option<Self>> {
        let beside = |end: &str| OpenedFile::look_up(place.folder.join(format!("{}{end}", place.file_name())));
        let Some(database) = beside("")? else { return Ok(None) };
        Ok(Some(Self { database, log: beside("-wal")?, index: beside("-shm")? }))
    }

    /// Returns true if both values are of the same database file.
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

    /// Returns true if the database has its name, in whatever state its log is.
    pub(crate) fn has_database(&self) -> bool {
        self.database.is_in_place()
    }

    /// Removes the log and its index, if these files still have their names, after the database has lost its own.
    pub(crate) fn remove_log(&self, place: &DatabasePlace) {
        let Ok(folder) = PrivateDir::open(&place.folder, false) else { return };
        for file in self.log.iter().chain(&self.index).filter(|file| file.is_in_place()) {
            if let Some(name) = file.path().file_name().and_then(|name| name.to_str()) {
                // If the log cannot be removed, SQLite finds it and refuses it as the log of another file.
                let _ = folder.remove(name);
            }
        }
    }
}
