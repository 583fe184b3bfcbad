//! Connects to the graph server. A server may accept a question and never answer it. So a question is sent on a thread
//! of its own, and the caller's thread waits only for a limited time.

use std::collections::HashMap;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use neo4j::address::Address;
use neo4j::driver::auth::AuthToken;
use neo4j::driver::{ConnectionConfig, Driver, DriverConfig, KeepAliveConfig};
use neo4j::session::SessionConfig;
use neo4j::{Neo4jError, ValueReceive, ValueSend};
use nudge_core::text::one_line;
use parking_lot::Mutex;
use serde_json::Value;

use super::{BoltEndpoint, CypherQuery, Row};

/// The longest time to connect to the server and to log in.
const CONNECT: Duration = Duration::from_secs(10);
/// The time between two TCP keep-alive probes.
const ALIVE: Duration = Duration::from_secs(30);
/// The most threads that may wait for the server at the same time.
const MAX_WAITING: usize = 8;
/// The pauses, in milliseconds, before the retries of a statement. A statement is retried when it conflicts with
/// another transaction.
const PAUSES: [u64; 8] = [5, 11, 23, 47, 97, 199, 401, 809];
/// The most characters of a server's message that are shown.
const SAID_CHARS: usize = 160;

/// The connection to a server.
pub struct BoltLink {
    place: Arc<BoltEndpoint>,
    /// The driver. It is made on first use, and made again after a failure.
    driver: Mutex<Option<Arc<Driver>>>,
    /// Counts the waiting threads: each thread holds a clone of this `Arc`.
    waiting: Arc<()>,
}

impl BoltLink {
    #[allow(clippy::unnecessary_wraps, reason = "it cannot be made where the client is not built in")]
    pub fn new(place: BoltEndpoint) -> Result<Self, String> {
        Ok(Self { place: Arc::new(place), driver: Mutex::default(), waiting: Arc::default() })
    }

    pub fn run_queries(&self, queries: Vec<CypherQuery>, wait: Duration) -> Result<Vec<Vec<Row>>, String> {
        if Arc::strong_count(&self.waiting) > MAX_WAITING {
            return Err(format!("has left {MAX_WAITING} questions without an answer"));
        }
        let known = self.driver.lock().clone();
        let (place, waiting) = (Arc::clone(&self.place), Arc::clone(&self.waiting));
        let (tell, told) = mpsc::sync_channel(1);
        let ask = move || {
            let answer = known.map_or_else(|| new_driver(&place), Ok).and_then(|driver| {
                let answer = run_statements(&driver, &place, &queries)?;
                Ok((answer, driver))
            });
            // The send fails if the caller waits no longer.
            drop(tell.send(answer));
            drop(waiting);
        };
        let thread = thread::Builder::new().name("bolt".to_owned()).spawn(ask);
        thread.map_err(|error| format!("is not asked: there is no thread for it ({error})"))?;
        let answer = told.recv_timeout(wait).unwrap_or_else(|error| {
            Err(match error {
                mpsc::RecvTimeoutError::Timeout => format!("did not answer within {} ms", wait.as_millis()),
                mpsc::RecvTimeoutError::Disconnected => "sent what cannot be read".to_owned(),
            })
        });
        let (answer, driver) = answer.map_or_else(|why| (Err(why), None), |(rows, driver)| (Ok(rows), Some(driver)));
        *self.driver.lock() = driver;
        answer
    }
}

/// Makes the driver of a server. This opens no connection yet.
fn new_driver(place: &BoltEndpoint) -> Result<Arc<Driver>, String> {
    let connection = ConnectionConfig::new(Address::from((&*place.host, place.port))).with_routing(false);
    let connection = if place.is_encrypted {
        let roots = |_| "is not asked: this system has no root certificates".to_owned();
        connection.with_encryption_trust_default_cas().map_err(roots)?
    } else {
        connection.with_encryption_disabled()
    };
    let login = match &*place.user {
        "" => AuthToken::new_none_auth(),
        user => AuthToken::new_basic_auth(user, &*place.password),
    };
    let config = DriverConfig::new()
        .with_auth(Arc::new(login))
        .with_connection_timeout(CONNECT)
        .with_connection_acquisition_timeout(CONNECT)
        // Each idle connection is tested before it is used, because the server may have been restarted.
        .with_idle_time_before_connection_test(Duration::ZERO)
        .with_keep_alive(KeepAliveConfig::CustomTime(ALIVE))
        .with_telemetry(false);
    Ok(Arc::new(Driver::new(connection, config)))
}

fn run_statements(driver: &Driver, place: &BoltEndpoint, queries: &[CypherQuery]) -> Result<Vec<Vec<Row>>, String> {
    let mut session = driver.session(SessionConfig::new().with_database(Arc::new(place.database.clone())));
    let mut answers = Vec::with_capacity(queries.len());
    for CypherQuery { text, params } in queries {
        let params: HashMap<String, ValueSend> =
            params.iter().map(|(name, value)| (name.clone(), to_bolt_value(value))).collect();
        let mut pauses = PAUSES.iter();
        let answer = loop {
            match session.auto_commit(text).with_parameters(&params).run() {
                Ok(answer) => break answer,
                Err(error) => match pauses.next().filter(|_| is_in_the_way(&error)) {
                    Some(pause) => thread::sleep(Duration::from_millis(*pause)),
                    None => return Err(describe_error(&error)),
                },
            }
        };
        let row = |record: neo4j::driver::Record| record.into_values().map(from_bolt_value).collect();
        answers.push(answer.records.into_iter().map(row).collect());
    }
    Ok(answers)
}

/// Returns true when the statement had no effect because of another transaction, so that a retry may succeed.
fn is_in_the_way(error: &Neo4jError) -> bool {
    matches!(error, Neo4jError::ServerError { error, .. } if error.code().contains(".TransientError."))
}

/// Converts a JSON value to a value of the Bolt protocol.
fn to_bolt_value(value: &Value) -> ValueSend {
    match value {
        Value::Null => ValueSend::Null,
        Value::Bool(is) => ValueSend::Boolean(*is),
        Value::Number(number) => match number.as_i64() {
            Some(number) => ValueSend::Integer(number),
            None => ValueSend::Float(number.as_f64().expect("a number that is no i64 is a u64 or an f64")),
        },
        Value::String(text) => ValueSend::String(text.clone()),
        Value::Array(values) => ValueSend::List(values.iter().map(to_bolt_value).collect()),
        Value::Object(map) => {
            ValueSend::Map(map.iter().map(|(name, value)| (name.clone(), to_bolt_value(value))).collect())
        }
    }
}

fn from_bolt_value(value: ValueReceive) -> Value {
    match value {
        ValueReceive::Boolean(is) => is.into(),
        ValueReceive::Integer(number) => number.into(),
        ValueReceive::Float(number) => number.into(),
        ValueReceive::String(text) => text.into(),
        _ => Value::Null,
    }
}

/// Describes an error in a clause that follows the name of the server. The server's own message comes from a stranger,
/// so it is cut to one line.
fn describe_error(error: &Neo4jError) -> String {
    match error {
        Neo4jError::Disconnect { source: Some(error), .. } => match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => "did not answer in time".to_owned(),
            kind => format!("cannot be reached ({kind})"),
        },
        Neo4jError::Disconnect { .. } => "broke the connection off".to_owned(),
        Neo4jError::Timeout { .. } => "did not answer in time".to_owned(),
        Neo4jError::ServerError { error, .. } if error.code().contains(".Security.") => {
            "refuses the user or the password".to_owned()
        }
        Neo4jError::ServerError { error, .. } => {
            let said = format!("{}: {}", error.code(), error.message());
            format!("refuses a statement ({})", one_line(&said, SAID_CHARS))
        }
        other => format!("cannot be used ({})", one_line(&other.to_string(), SAID_CHARS)),
    }
}
