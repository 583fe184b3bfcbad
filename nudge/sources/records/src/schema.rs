//! Defines the schema of the database.

use nudge_storage::search::FullText;
use nudge_storage::{CHANGE_LOG, COMPACTION, DataRetention, DatabaseKind, GENERATION, KEYS, KEYS_IN_ORDER};

/// The tables, and the triggers that update the full-text indexes.
///
/// Each change of any record gets a higher `seq`, and `gone` lists removed records. With both, a process finds the
/// changes of other processes. The `seq` of `embedding` shows new vectors in the same way. `AUTOINCREMENT` ensures that
/// the number of a deleted record is never used again.
const TABLES: &str = "\
CREATE TABLE project(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL, updated_at TEXT NOT NULL) STRICT;
CREATE TABLE project_alias(
  repo TEXT PRIMARY KEY, project_id INTEGER NOT NULL REFERENCES project(id)) STRICT, WITHOUT ROWID;
CREATE TABLE record(
  id INTEGER PRIMARY KEY AUTOINCREMENT, project_id INTEGER NOT NULL REFERENCES project(id),
  kind TEXT NOT NULL CHECK(kind IN ('issue', 'spec', 'arch', 'update')),
  title TEXT NOT NULL, body TEXT NOT NULL DEFAULT '', same TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'open' CHECK(status IN ('open', 'resolved', 'archived')),
  version INTEGER NOT NULL DEFAULT 1, by TEXT NOT NULL DEFAULT '',
  origin TEXT NOT NULL CHECK(origin IN ('tool', 'hook', 'web', 'cli', 'import')),
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, seq INTEGER NOT NULL UNIQUE) STRICT;
CREATE INDEX record_list ON record(project_id, kind, status, updated_at DESC);
CREATE INDEX record_same ON record(project_id, kind, same);
CREATE TABLE revision(
  record_id INTEGER NOT NULL, version INTEGER NOT NULL, at TEXT NOT NULL, by TEXT NOT NULL,
  why TEXT NOT NULL CHECK(why IN ('update', 'dedup', 'merge', 'delete')), project TEXT NOT NULL, kind TEXT NOT NULL,
  title TEXT NOT NULL, body TEXT NOT NULL, status TEXT NOT NULL, origin TEXT NOT NULL, created_at TEXT NOT NULL,
  PRIMARY KEY(record_id, version)) STRICT, WITHOUT ROWID;
CREATE TABLE gone(
  seq INTEGER PRIMARY KEY, record_id INTEGER NOT NULL UNIQUE, into_id INTEGER, at TEXT NOT NULL) STRICT;
CREATE TABLE embedding(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, record_id INTEGER NOT NULL REFERENCES record(id) ON DELETE CASCADE,
  part INTEGER NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL, UNIQUE(record_id, part, model)) STRICT;
CREATE VIRTUAL TABLE record_fts USING fts5(
  title, body, content='record', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE record_words USING fts5vocab(record_fts, 'row');
CREATE VIEW record_head(id, head) AS SELECT id, title || char(10) || substr(body, 1, 500) FROM record;
CREATE VIRTUAL TABLE record_tri USING fts5(
  head, content='record_head', content_rowid='id', tokenize='trigram');
CREATE TRIGGER record_insert AFTER INSERT ON record BEGIN
  INSERT INTO record_fts(rowid, title, body) VALUES (new.id, new.title, new.body);
  INSERT INTO record_tri(rowid, head) VALUES (new.id, new.title || char(10) || substr(new.body, 1, 500));
END;
CREATE TRIGGER record_delete AFTER DELETE ON record BEGIN
  INSERT INTO record_fts(record_fts, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
  INSERT INTO record_tri(record_tri, rowid, head)
    VALUES ('delete', old.id, old.title || char(10) || substr(old.body, 1, 500));
END;
CREATE TRIGGER record_update AFTER UPDATE OF title, body ON record BEGIN
  INSERT INTO record_fts(record_fts, rowid, title, body) VALUES ('delete', old.id, old.title, old.body);
  INSERT INTO record_fts(rowid, title, body) VALUES (new.id, new.title, new.body);
  INSERT INTO record_tri(record_tri, rowid, head)
    VALUES ('delete', old.id, old.title || char(10) || substr(old.body, 1, 500));
  INSERT INTO record_tri(rowid, head) VALUES (new.id, new.title || char(10) || substr(new.body, 1, 500));
END;";

/// Describes the database of records.
pub static APP: DatabaseKind = DatabaseKind {
    name: "records",
    migrations: &[KEYS, TABLES, GENERATION, KEYS_IN_ORDER, COMPACTION, CHANGE_LOG],
    full_text: &["record_fts", "record_tri"],
    kept: DataRetention::Data,
};

/// The full-text index of word stems. A word in a title counts twice.
pub static FULL_TEXT: FullText =
    FullText { table: "record_fts", weights: &[2.0, 1.0], vocabulary: Some("record_words") };
/// The full-text index of trigrams.
pub const TRIGRAMS: &str = "record_tri";
