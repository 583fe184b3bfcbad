//! Finds the nearest vectors with `sqlite-vec`, an extension of `SQLite`.

use nudge_storage::rusqlite::{Connection, ffi, params};
use nudge_storage::vectors::encode;

/// A table of `SQLite` with the vectors.
pub struct Nearest(Connection);

impl Nearest {
    /// Stores the vectors. The first has the number 1.
    pub fn new(vectors: &[Vec<f32>]) -> Self {
        register();
        let c = Connection::open_in_memory().expect("there is memory");
        let dims = vectors.first().map_or(1, Vec::len);
        let make = format!("CREATE VIRTUAL TABLE near USING vec0(id INTEGER PRIMARY KEY, vector FLOAT[{dims}]);");
        c.execute_batch(&make).expect("the extension is there");
        for (vector, id) in vectors.iter().zip(1_i64..) {
            let sql = "INSERT INTO near(id, vector) VALUES (?1, ?2)";
            let mut insert = c.prepare_cached(sql).expect("the table is there");
            insert.execute(params![id, encode(vector)]).expect("it is a vector");
        }
        Self(c)
    }

    /// Returns the numbers of the `k` nearest vectors by Euclidean distance. For vectors of length 1, the order by
    /// cosine is the same.
    pub fn top(&self, vector: &[f32], k: usize) -> Vec<i64> {
        let sql = "SELECT id FROM near WHERE vector MATCH ?1 AND k = ?2 ORDER BY distance";
        let mut nearest = self.0.prepare_cached(sql).expect("the table is there");
        let rows = nearest.query_map(params![encode(vector), i64::try_from(k).unwrap_or(i64::MAX)], |row| row.get(0));
        rows.expect("it is a vector").collect::<Result<_, _>>().expect("numbers are numbers")
    }
}

/// Registers the extension for every connection of this process.
#[allow(unsafe_code)]
fn register() {
    type Init = unsafe extern "C" fn(
        *mut ffi::sqlite3,
        *mut *mut std::ffi::c_char,
        *const ffi::sqlite3_api_routines,
    ) -> std::ffi::c_int;
    // SAFETY: the function is the entry point of an extension and has the type above. Only the crate's declaration
    // lacks the parameters.
    unsafe {
        let init = std::mem::transmute::<*const (), Init>(sqlite_vec::sqlite3_vec_init as *const ());
        ffi::sqlite3_auto_extension(Some(init));
    }
}
