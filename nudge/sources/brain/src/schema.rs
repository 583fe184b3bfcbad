//! Defines the schema of the index. The index is a database that can be rebuilt from the files at any time.

use nudge_storage::search::FullText;
use nudge_storage::{DataRetention, DatabaseKind, KEYS, KEYS_IN_ORDER};

/// The tables, and the triggers that update the full-text index.
///
/// `dst` of a relation is the target unit; it is null when no unit or several units have the name. `hash` of a chunk is
/// the hash of the text for its vector, so a chunk that only moved keeps its vector. `meaning` is the hash under which
/// the chunk's present vector is stored. Until the vector of a new text is made, `meaning` is the hash of the older
/// text. `AUTOINCREMENT` ensures that the number of a removed chunk is never used again.
const TABLES: &str = "\
CREATE TABLE brain(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE unit(
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, uid TEXT NOT NULL, own_id TEXT, title TEXT NOT NULL,
  aliases TEXT NOT NULL, summary TEXT, kind TEXT, domain TEXT NOT NULL, tags TEXT NOT NULL, confidence REAL, source TEXT,
  created TEXT, modified TEXT, problems TEXT NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  inode INTEGER NOT NULL, hash BLOB NOT NULL) STRICT;
CREATE INDEX unit_uid ON unit(uid);
CREATE INDEX unit_domain ON unit(domain);
CREATE TABLE chunk(
  id INTEGER PRIMARY KEY AUTOINCREMENT, unit INTEGER NOT NULL REFERENCES unit(id) ON DELETE CASCADE, ord INTEGER NOT NULL,
  begin INTEGER NOT NULL, line INTEGER NOT NULL, last_line INTEGER NOT NULL, level INTEGER NOT NULL,
  breadcrumb TEXT NOT NULL, head TEXT NOT NULL, text TEXT NOT NULL, hash BLOB NOT NULL, meaning BLOB NOT NULL,
  UNIQUE(unit, ord)) STRICT;
CREATE INDEX chunk_meaning ON chunk(meaning);
CREATE TABLE relation(
  src INTEGER NOT NULL REFERENCES unit(id) ON DELETE CASCADE, ord INTEGER NOT NULL, by TEXT NOT NULL, target TEXT NOT NULL,
  kind TEXT NOT NULL, weight REAL NOT NULL, dst INTEGER REFERENCES unit(id) ON DELETE SET NULL,
  PRIMARY KEY(src, ord)) STRICT, WITHOUT ROWID;
CREATE INDEX relation_dst ON relation(dst, src);
CREATE TABLE skipped(
  path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
  why TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE vector(
  hash BLOB NOT NULL, model TEXT NOT NULL, part INTEGER NOT NULL, vector BLOB NOT NULL,
  PRIMARY KEY(hash, model, part)) STRICT, WITHOUT ROWID;
CREATE VIRTUAL TABLE chunk_fts USING fts5(
  head, text, content='chunk', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2');
CREATE VIRTUAL TABLE chunk_words USING fts5vocab(chunk_fts, 'row');
CREATE TRIGGER chunk_insert AFTER INSERT ON chunk BEGIN
  INSERT INTO chunk_fts(rowid, head, text) VALUES (new.id, new.head, new.text);
END;
CREATE TRIGGER chunk_delete AFTER DELETE ON chunk BEGIN
  INSERT INTO chunk_fts(chunk_fts, rowid, head, text) VALUES ('delete', old.id, old.head, old.text);
END;";

/// In the table `brain`, the row `graph` holds the name of the present state, for the graph server. The name changes
/// with each change of the mirrored data.
const GRAPH: &str = "\
INSERT INTO brain VALUES('graph', lower(hex(randomblob(16))));
CREATE TRIGGER graph_unit_insert AFTER INSERT ON unit BEGIN
  UPDATE brain SET value = lower(hex(randomblob(16))) WHERE name = 'graph';
END;
CREATE TRIGGER graph_unit_delete AFTER DELETE ON unit BEGIN
  UPDATE brain SET value = lower(hex(randomblob(16))) WHERE name = 'graph';
END;
CREATE TRIGGER graph_unit_update AFTER UPDATE ON unit
WHEN (old.uid, old.path, old.title, old.kind, old.domain) IS NOT (new.uid, new.path, new.title, new.kind, new.domain)
BEGIN
  UPDATE brain SET value = lower(hex(randomblob(16))) WHERE name = 'graph';
END;
CREATE TRIGGER graph_relation_insert AFTER INSERT ON relation BEGIN
  UPDATE brain SET value = lower(hex(randomblob(16))) WHERE name = 'graph';
END;
CREATE TRIGGER graph_relation_delete AFTER DELETE ON relation BEGIN
  UPDATE brain SET value = lower(hex(randomblob(16))) WHERE name = 'graph';
END;
CREATE TRIGGER graph_relation_update AFTER UPDATE ON relation BEGIN
  UPDATE brain SET value = lower(hex(randomblob(16))) WHERE name = 'graph';
END;";

/// This index contains all columns that the memory reads. So the pages that contain the texts are not read when the
/// memory is filled.
const MEMORY: &str = "\
DROP INDEX chunk_meaning;
CREATE INDEX chunk_meaning ON chunk(meaning, unit, ord);";

/// Deletes the vectors of chunks that have several parts: earlier versions cut parts that did not fit into the model.
const PARTS: &str = "DELETE FROM vector WHERE hash IN (SELECT hash FROM vector WHERE part > 0);";

/// `touched` lists the units that each change has touched, in order, so that the memory can follow the changes. The
/// table keeps at least the last 4,096 entries. The row `index` in `brain` holds the name of this index. A number of a
/// change is valid only in the index with this name.
const TOUCHED: &str = "\
INSERT INTO brain VALUES('index', lower(hex(randomblob(16))));
CREATE TABLE touched(seq INTEGER PRIMARY KEY AUTOINCREMENT, unit INTEGER NOT NULL) STRICT;
CREATE TRIGGER touched_forget AFTER INSERT ON touched WHEN new.seq % 1024 = 0 BEGIN
  DELETE FROM touched WHERE seq <= new.seq - 4096;
END;
CREATE TRIGGER touched_unit_insert AFTER INSERT ON unit BEGIN INSERT INTO touched(unit) VALUES(new.id); END;
CREATE TRIGGER touched_unit_delete AFTER DELETE ON unit BEGIN INSERT INTO touched(unit) VALUES(old.id); END;
CREATE TRIGGER touched_unit_path AFTER UPDATE OF path ON unit BEGIN INSERT INTO touched(unit) VALUES(new.id); END;
CREATE TRIGGER touched_chunk_insert AFTER INSERT ON chunk BEGIN INSERT INTO touched(unit) VALUES(new.unit); END;
CREATE TRIGGER touched_chunk_delete AFTER DELETE ON chunk BEGIN INSERT INTO touched(unit) VALUES(old.unit); END;
CREATE TRIGGER touched_meaning AFTER UPDATE OF meaning ON chunk BEGIN INSERT INTO touched(unit) VALUES(new.unit); END;";

/// Describes the database of one brain.
pub static APP: DatabaseKind = DatabaseKind {
    name: "brain",
    migrations: &[KEYS, TABLES, GRAPH, MEMORY, PARTS, TOUCHED, KEYS_IN_ORDER],
    full_text: &["chunk_fts"],
    kept: DataRetention::Cache,
};

/// The full-text index of the chunks' texts.
pub static FULL_TEXT: FullText = FullText { table: "chunk_fts", weights: &[1.0, 1.0], vocabulary: Some("chunk_words") };
