//! Makes calls once: the key and the answer are in the transaction of the change, so the next process that opens the
//! file knows both or neither.

use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};
use nudge_core::once::OnceByKey;
use nudge_core::service::{CallIdentity, Caller, EarlierCall};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::db::Db;
use crate::fault::TransactionFailure;

/// The migration that makes the table of the calls that were made; among the first of every [`DatabaseKind`](crate::DatabaseKind) whose
/// calls change something.
pub const KEYS: &str = "\
CREATE TABLE made(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, call TEXT NOT NULL, at INTEGER NOT NULL,
  answer TEXT NOT NULL) STRICT;
CREATE INDEX made_at ON made(at);";
/// The migration that takes away the index by time of [`KEYS`], among the last of every [`DatabaseKind`](crate::DatabaseKind) that has it:
/// calls are in the order of their times anyway, and each write has a page less to write.
pub const KEYS_IN_ORDER: &str = "DROP INDEX made_at;";

/// Time for which a call is known. A key is sent again within seconds, at the latest after the death of a server.
const KEPT_MS: Millis = 60 * 60 * 1000;
/// Most calls that are kept when some were just forgotten; the oldest go first.
const MAX_CALLS: i64 = 1_024;
/// Every so many calls old ones are forgotten, all at once: to forget one with each call would change further pages each time.
const FORGET_AFTER: i64 = 64;

/// The answer of a call that changes something.
#[derive(Debug)]
pub struct KeyedAnswer {
    /// The result, as JSON.
    pub result: Box<RawValue>,
    /// It was made before, by this process or another; nothing was changed, and there is nothing to tell of.
    pub again: bool,
}

/// Answers a call that was made before without making it.
///
/// A [`TableService`](nudge_core::table::TableService) whose changes all go through [`Db::write_once`] returns its
/// database here:
///
/// ```
/// use nudge_core::once::OnceByKey;
/// use nudge_core::service::MethodSpec;
/// # struct Notes { db: nudge_storage::Db }
/// # impl Notes {
/// fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
///     Some(&self.db)
/// }
/// # }
/// ```
impl OnceByKey for Db {
    fn make_once(
        &self,
        key: &str,
        call: CallIdentity,
        make: &mut dyn FnMut(Option<EarlierCall>) -> Result<Box<RawValue>>,
    ) -> Result<Box<RawValue>> {
        match self.read(|c| find_known(c, key, Some(call), self.clock.now()))? {
            Some(result) => Ok(result),
            // Two at once with one key both come here: the second finds the first in its transaction.
            None => make(None),
        }
    }
}

impl Db {
    /// As [`write`](Db::write), on behalf of a caller: with a [key](Caller::key), the result is kept with the change
    /// for an hour, and the same call with that key is answered with it and changes nothing, whichever process gets it.
    ///
    /// # Errors
    /// As [`write`](Db::write); `E_INVALID` when the key was used for another call.
    ///
    /// ```
    /// use nudge_core::service::{CallIdentity, Caller};
    /// # use nudge_core::source::DataDir;
    /// # use nudge_storage::{DatabaseKind, Db, KEYS, DataRetention, DatabaseOpening};
    /// # static APP: DatabaseKind = DatabaseKind { name: "count", migrations: &[KEYS, "CREATE TABLE n(n INTEGER)"], full_text: &[], kept: DataRetention::Data };
    /// # let place = tempfile::tempdir().unwrap();
    /// # let folder = DataDir::new(place.path().join("nudge"));
    /// # let db = Db::open(&DatabaseOpening::new(&folder, &APP))?;
    /// let mut caller = Caller::with_name("claude-code").with_key(Some("4f0c"));
    /// caller.call = Some(CallIdentity::new("nudge.count.add", "{}"));
    /// let add = || db.write_once(caller, |tx| Ok(tx.execute("INSERT INTO n VALUES(1)", [])?));
    /// let (first, second) = (add()?, add()?);
    /// assert_eq!((first.again, second.again), (false, true));
    /// assert_eq!(first.result.get(), second.result.get());
    /// # Ok::<(), nudge_core::error::Error>(())
    /// ```
    pub fn write_once<T: Serialize>(
        &self,
        caller: Caller<'_>,
        mut write: impl FnMut(&Transaction<'_>) -> Result<T, TransactionFailure>,
    ) -> Result<KeyedAnswer> {
        let now = self.clock.now();
        self.write(|tx| {
            if let Some(key) = caller.key
                && let Some(result) = find_known(tx, key, caller.call, now)?
            {
                return Ok(KeyedAnswer { result, again: true });
            }
            let result = to_raw_value(&write(tx)?)
                .map_err(|_| Error::invalid("The result cannot be written as JSON; report this."))?;
            if let Some(key) = caller.key {
                note_answer(tx, key, caller.call, now, &result)?;
            }
            Ok(KeyedAnswer { result, again: false })
        })
    }
}

/// Empties the answers that name a row by `id`: they have its text. A call that is sent again by its key is refused
/// then, and not made a second time.
///
/// # Errors
/// The engine's error when it refuses the statement.
pub fn forget_answers(tx: &Transaction<'_>, id: i64) -> Result<(), TransactionFailure> {
    let sql = "UPDATE made SET answer = '' WHERE instr(answer, ?1 || ',') OR instr(answer, ?1 || '}')";
    tx.prepare_cached(sql)?.execute([format!("\"id\":{id}")])?;
    Ok(())
}

/// The answer of the call that was made with a key, if there was one.
fn find_known(
    c: &Connection,
    key: &str,
    call: Option<CallIdentity>,
    now: Millis,
) -> Result<Option<Box<RawValue>>, TransactionFailure> {
    let mut statement = c.prepare_cached("SELECT call, answer FROM made WHERE key = ?1 AND at >= ?2")?;
    let found = statement
        .query_row(params![key, now - KEPT_MS], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let Some((made, answer)) = found.optional()? else { return Ok(None) };
    if let Some(call) = call {
        call.check_recorded(&made)?;
    }
    let broken = |_| Error::unavailable("The answer of this call cannot be read any more; use a new key.");
    Ok(Some(RawValue::from_string(answer).map_err(broken)?))
}

fn note_answer(
    tx: &Transaction<'_>,
    key: &str,
    call: Option<CallIdentity>,
    now: Millis,
    result: &RawValue,
) -> rusqlite::Result<()> {
    let call = call.map(|call| call.to_record_text(false)).unwrap_or_default();
    // An entry that no longer counts may still be there.
    let mut insert = tx.prepare_cached("INSERT OR REPLACE INTO made(key, call, at, answer) VALUES(?1, ?2, ?3, ?4)")?;
    let seq = insert.insert(params![key, call, now, result.get()])?;
    if seq % FORGET_AFTER == 0 {
        let of_the_hour = "(SELECT seq FROM made WHERE at >= ?2 ORDER BY seq LIMIT 1)";
        tx.prepare_cached(&format!("DELETE FROM made WHERE seq <= ?1 OR seq < {of_the_hour}"))?
            .execute([seq - MAX_CALLS, now - KEPT_MS])?;
    }
    Ok(())
}
