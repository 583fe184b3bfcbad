//! Carries out a call with a key only once. A single transaction stores the change, the key and the answer. So the next
//! process that opens the file finds all of them or none.

use nudge_core::clock::Millis;
use nudge_core::error::{Error, Result};
use nudge_core::once::OnceByKey;
use nudge_core::service::{CallIdentity, Caller, EarlierCall};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::db::Db;
use crate::fault::TransactionFailure;

/// The migration that makes the table of carried-out calls. Every [`DatabaseKind`](crate::DatabaseKind) whose calls
/// change data has it among its first migrations.
pub const KEYS: &str = "\
CREATE TABLE made(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, call TEXT NOT NULL, at INTEGER NOT NULL,
  answer TEXT NOT NULL) STRICT;
CREATE INDEX made_at ON made(at);";
/// The migration that removes the time index of [`KEYS`]. Every [`DatabaseKind`](crate::DatabaseKind) with [`KEYS`] has
/// it among its last migrations. The rows are in time order without the index, and each write changes one page less.
pub const KEYS_IN_ORDER: &str = "DROP INDEX made_at;";

/// Time for which a key is stored, in ms. A caller repeats a key within seconds, for instance after the server has
/// died.
const KEPT_MS: Millis = 60 * 60 * 1000;
/// Number of stored calls that a removal leaves. A removal begins with the oldest calls.
const MAX_CALLS: i64 = 1_024;
/// Number of new calls between two removals. Removing an old call with every new one would change more pages each time.
const FORGET_AFTER: i64 = 64;

/// The answer of a call that changes something.
#[derive(Debug)]
pub struct KeyedAnswer {
    /// The result, as JSON.
    pub result: Box<RawValue>,
    /// True when this process or another one carried out the call before. Then this call changed nothing, and the
    /// caller must report no change.
    pub again: bool,
}

/// Answers a repeated call from its stored answer.
///
/// If all changes of a [`TableService`](nudge_core::table::TableService) go through [`Db::write_once`], the service
/// returns its database like this:
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
            // Two calls with one key may both reach this line at the same time. The second one then finds the first in
            // its transaction.
            None => make(None),
        }
    }
}

impl Db {
    /// Writes as [`write`](Db::write) does. If `caller` has a [key](Caller::key), the function stores the result with
    /// the change for an hour. The same call with that key then gets this result and changes nothing, in every process.
    ///
    /// # Errors
    /// The errors of [`write`](Db::write); `E_INVALID` when the key was used for another call.
    ///
    /// ```
    /// use nudge_core::service::{CallIdentity, Caller};
    /// # use nudge_core::source::DataDir;
    /// # use nudge_storage::{DatabaseKind, Db, KEYS, DataRetention, DatabaseOpening};
    /// # static APP: DatabaseKind = DatabaseKind {
    /// #     name: "count", migrations: &[KEYS, "CREATE TABLE n(n INTEGER)"],
    /// #     full_text: &[], kept: DataRetention::Data,
    /// # };
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

/// Empties the stored answers that contain the row `id`, because they repeat the row's text. A repeated call whose
/// answer was emptied is refused, and not carried out again.
///
/// # Errors
/// SQLite's error when the statement fails.
pub fn forget_answers(tx: &Transaction<'_>, id: i64) -> Result<(), TransactionFailure> {
    let sql = "UPDATE made SET answer = '' WHERE instr(answer, ?1 || ',') OR instr(answer, ?1 || '}')";
    tx.prepare_cached(sql)?.execute([format!("\"id\":{id}")])?;
    Ok(())
}

/// Returns the stored answer of the call with this key; `None` if no call had the key.
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
    // Replaces an expired entry with the same key, if there is one.
    let mut insert = tx.prepare_cached("INSERT OR REPLACE INTO made(key, call, at, answer) VALUES(?1, ?2, ?3, ?4)")?;
    let seq = insert.insert(params![key, call, now, result.get()])?;
    if seq % FORGET_AFTER == 0 {
        let of_the_hour = "(SELECT seq FROM made WHERE at >= ?2 ORDER BY seq LIMIT 1)";
        tx.prepare_cached(&format!("DELETE FROM made WHERE seq <= ?1 OR seq < {of_the_hour}"))?
            .execute([seq - MAX_CALLS, now - KEPT_MS])?;
    }
    Ok(())
}
