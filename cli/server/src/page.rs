//! The page of the running session, which `nudge ui` opens for the user.
//!
//! 1. `nudge ui` calls `nudge.open_page` over the local channel.
//! 2. `nudge ui` opens `http://RANDOM.localhost:PORT/web#code=...` in the browser. The origin is new each time, so the
//!    page shares no data with another program that used the port before. The code is in the fragment, which browsers
//!    never send. It works once, within a minute.
//! 3. The page sends the code to `/web/session`. The server accepts the code only from the page, and on Linux only from
//!    a process of this user (`page/peer.rs`). It answers with a token.
//! 4. The page calls methods at `/web/rpc` with this token. The server accepts such calls only from the page, and only
//!    for the methods in [`METHODS`].
//!
//! The token also works for `/api`, because the methods behind `/api` are in [`METHODS`]. `nudge ui --port` makes the
//! server listen on a further port, and opens the page there.
//!
//! There is no cookie, because a browser would send a cookie of 127.0.0.1 to every port of the machine. The page's
//! token is derived from the session's own token, so every PRIMARY of the session accepts it, and it ends with the
//! session. A browser stores a page's data by host and port, so the page survives a change of PRIMARY only if the new
//! one has the same port.

mod files;
mod peer;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::StatusCode;
use nudge::context::ContextSpec;
use nudge::{Caller, Clock, Error, ErrorKind, MethodSpec, Millis, Result, Service};
use nudge_app::wire::parsed_as;
use nudge_core::once::OnceByKey;
use nudge_core::table::{MethodTable, TableRow, TableService, answer_typed, build_schema};
use nudge_core::wire;
use nudge_core::wire::json_text;
use nudge_core::wire::raw_json;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::http::ports::ServerPorts;
use super::session::changes::CHANGES;
use super::session::control::CHANGE_LOG;
use super::token::AccessToken;

pub use files::{PageFile, find_file, respond_with_file};

/// The method that gives `nudge ui` an address to open. It exists only over HTTP.
pub const OPEN_PAGE: &str = "nudge.open_page";
/// The methods that the page may call; other methods need the session's own token. No listed method returns a secret's
/// value, ends the session or changes a file.
pub const METHODS: &[&str] = &[
    CHANGES,
    "nudge.brain.check",
    "nudge.brain.context",
    "nudge.brain.get",
    "nudge.brain.list",
    "nudge.brain.status",
    CHANGE_LOG,
    "nudge.client_sessions",
    "nudge.code.file",
    "nudge.code.node",
    "nudge.code.refresh",
    "nudge.code.search",
    "nudge.code.status",
    "nudge.delete_hint",
    "nudge.deletions",
    "nudge.query",
    "nudge.recall",
    "nudge.records.delete",
    "nudge.records.duplicates",
    "nudge.records.export",
    "nudge.records.get",
    "nudge.records.list",
    "nudge.records.merge",
    "nudge.records.projects",
    "nudge.records.restore",
    "nudge.records.search",
    "nudge.records.upsert",
    "nudge.set_hint",
    "nudge.signals.list",
    "nudge.stats",
    "nudge.status",
    "nudge.undo",
    "nudge.why",
];
/// The name of the page as a caller, as `nudge undo --list` and `nudge watch` show it.
pub const NAME: &str = concat!("nudge-page/", env!("CARGO_PKG_VERSION"));
/// The most bytes of a body that contains a code.
pub const MAX_CODE_BYTES: usize = 4 << 10;

/// The bytes of the random part of an origin's name; the name's proof has as many.
const NAME_BYTES: usize = 10;
/// The time within which a code works, in seconds.
const CODE_S: Millis = 60;
/// The most unused codes; another code then replaces the oldest.
const MAX_CODES: usize = 16;
/// The most bytes of the context that the server stores for a page.
const MAX_HERE_BYTES: usize = 64 << 10;
/// The time without calls after which a page's token stops working, in milliseconds.
const IDLE_MS: Millis = 12 * 60 * 60_000;
/// The most pages for which the server notes the last call. Without a noted call, the idle time starts with the token.
const MAX_PAGES: usize = 256;

const ABOUT: &str = "An address to open the page at: it works once, within a minute.";

static TABLE: MethodTable<SessionPage> = MethodTable(&[&TableRow {
    method: MethodSpec::new(OPEN_PAGE, "Open the page", ABOUT, build_schema::<OpenPage>).inferred().vital(),
    run: |page, _, params| answer_typed(params, |params| page.make_address(params)),
}]);

/// Params of [`OPEN_PAGE`].
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpenPage {
    /// The context that the page calls here.
    #[serde(default, deserialize_with = "wire::object_or_default")]
    #[schemars(with = "ContextSpec")]
    context: Map<String, Value>,
    /// The port of the page. The server listens there, too, until it ends; absent: the session's port.
    #[serde(default, deserialize_with = "wire::given")]
    port: Option<u16>,
}

/// Result of [`OPEN_PAGE`].
#[derive(Serialize)]
struct OpenedPage {
    url: String,
    expires_s: Millis,
}

/// The body that the page sends to `/web/session`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShownCode<'a> {
    code: &'a str,
}

/// The answer to a valid code.
#[derive(Serialize)]
struct EnteredPage {
    /// The token for `/web/rpc` and `/api`.
    token: String,
    /// The context from the params of [`OPEN_PAGE`].
    here: Map<String, Value>,
}

/// Makes and checks the codes and tokens of the page.
pub struct SessionPage {
    clock: Arc<dyn Clock>,
    /// The session's own token. No answer contains it.
    key: AccessToken,
    ports: Arc<ServerPorts>,
    state: Mutex<PageState>,
}

#[derive(Default)]
struct PageState {
    codes: VecDeque<PageCode>,
    /// The time of each page's last call.
    used: HashMap<Nonce, Millis>,
}

struct PageCode {
    text: AccessToken,
    made: Millis,
    here: Map<String, Value>,
}

type Nonce = [u8; 16];

/// The parts of a page's token: random bytes, the time of creation, and the proof that a PRIMARY of this session made
/// the token.
struct PageToken {
    nonce: Nonce,
    made: [u8; 8],
    proof: [u8; 32],
}

impl PageToken {
    fn read(text: &str) -> Option<Self> {
        let mut bytes = [0; 56];
        let digits = text.as_bytes().as_chunks::<2>();
        if text.len() != 2 * bytes.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.0) {
            *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
        }
        let (nonce, rest) = bytes.split_first_chunk()?;
        let (made, rest) = rest.split_first_chunk()?;
        Some(Self { nonce: *nonce, made: *made, proof: *rest.first_chunk()? })
    }

    fn made_at(&self) -> Millis {
        Millis::from_be_bytes(self.made)
    }
}

impl fmt::Display for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.nonce.iter().chain(&self.made).chain(&self.proof).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl SessionPage {
    /// Makes the page of the session whose own token is `key`. The server listens on `ports`.
    pub fn new(clock: Arc<dyn Clock>, key: AccessToken, ports: Arc<ServerPorts>) -> Self {
        Self { clock, key, ports, state: Mutex::default() }
    }

    fn make_address(&self, params: OpenPage) -> Result<OpenedPage> {
        let here = params.context;
        let text = raw_json(&here);
        if text.get().len() > MAX_HERE_BYTES {
            return Err(Error::invalid("context may have 64 KiB here; leave out what the page does not need."));
        }
        wire::parse_params::<ContextSpec>(&text)?.build()?;
        let (text, made) = (AccessToken::new_random()?, self.clock.now());
        let port = params.port.unwrap_or(self.ports.own());
        self.ports.listen_on(port)?;
        let url = format!("http://{}.localhost:{port}/web#code={}", self.new_name()?, text.as_text());
        let mut state = self.state.lock();
        if state.codes.len() == MAX_CODES {
            state.codes.pop_front();
        }
        state.codes.push_back(PageCode { text, made, here });
        Ok(OpenedPage { url, expires_s: CODE_S })
    }

    /// Answers `/web/session`: exchanges a code for a token. `ends` are the two addresses of a TCP connection, the
    /// peer's first.
    ///
    /// # Errors
    /// The HTTP status and the sentence of the refusal.
    pub fn exchange_code(
        &self,
        body: &[u8],
        ends: Option<(SocketAddr, SocketAddr)>,
    ) -> Result<Bytes, (StatusCode, String)> {
        let refused = |status, text: &str| Err((status, text.to_owned()));
        let Ok(ShownCode { code }) = serde_json::from_slice(body) else {
            return refused(StatusCode::BAD_REQUEST, "Send the code as {\"code\": \"...\"}.");
        };
        // Checks the peer before the code counts as used: another user may see the code in the browser's arguments, and
        // must not be able to use it up.
        if ends.is_some_and(|(theirs, ours)| !peer::is_this_users(theirs, ours)) {
            return refused(StatusCode::FORBIDDEN, "This address belongs to another user; run `nudge ui` yourself.");
        }
        let now = self.clock.now();
        let mut state = self.state.lock();
        state.codes.retain(|code| now - code.made < CODE_S * 1000);
        let index = state.codes.iter().position(|known| known.text.is_equal_to(code.as_bytes()));
        let Some(PageCode { here, .. }) = index.and_then(|index| state.codes.remove(index)) else {
            let text = "This address was used before, or is older than a minute; run `nudge ui` again.";
            return refused(StatusCode::FORBIDDEN, text);
        };
        drop(state);
        let token =
            self.make_token(now).map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, error.message().to_owned()))?;
        // Strings, and JSON that was parsed before, can always be serialized.
        Ok(json_text(&EnteredPage { token, here }).into_bytes().into())
    }

    /// Makes the token of a page.
    fn make_token(&self, now: Millis) -> Result<String> {
        let mut nonce = Nonce::default();
        getrandom::fill(&mut nonce)
            .map_err(|error| Error::unavailable(format!("The system gives no random bytes ({error}); try again.")))?;
        let made = now.to_be_bytes();
        let proof = self.compute_mac(&nonce, made).finalize().into_bytes().into();
        Ok(PageToken { nonce, made, proof }.to_string())
    }

    /// Returns true for a token that this session made for a page, if the page called within the last twelve hours.
    pub fn lets_in(&self, shown: &str) -> bool {
        let Some(token) = PageToken::read(shown) else { return false };
        if self.compute_mac(&token.nonce, token.made).verify_slice(&token.proof).is_err() {
            return false;
        }
        let now = self.clock.now();
        let mut state = self.state.lock();
        let last = state.used.get(&token.nonce).map_or(token.made_at(), |used| token.made_at().max(*used));
        if now - last >= IDLE_MS {
            return false;
        }
        if state.used.len() >= MAX_PAGES && !state.used.contains_key(&token.nonce) {
            let idle = state.used.iter().min_by_key(|(_, last)| **last).map(|(nonce, _)| *nonce);
            idle.map(|nonce| state.used.remove(&nonce));
        }
        state.used.insert(token.nonce, now);
        true
    }

    /// Makes the name of an origin that no page has used before. Service workers, cached pages and storage of another
    /// program at this port therefore belong to another origin. Every PRIMARY of the session recognises the name by its
    /// proof.
    fn new_name(&self) -> Result<String> {
        let mut nonce = [0; NAME_BYTES];
        getrandom::fill(&mut nonce)
            .map_err(|error| Error::unavailable(format!("The system gives no random bytes ({error}); try again.")))?;
        let proof = self.name_proof(&nonce);
        Ok(nonce.iter().chain(&proof).fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
    }

    /// Returns true if `host`, an origin's host without the port, was made for the page of this session.
    pub fn is_its_name(&self, host: &str) -> bool {
        let Some(name) = host.strip_suffix(".localhost") else { return false };
        let bytes = name.as_bytes().as_chunks::<2>();
        if name.len() != 4 * NAME_BYTES || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return false;
        }
        let bytes = bytes.0.iter().filter_map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok());
        let bytes: Vec<u8> = bytes.collect();
        let Some((nonce, proof)) = bytes.split_first_chunk::<NAME_BYTES>() else { return false };
        self.name_proof(nonce)[..].ct_eq(proof).into()
    }

    fn name_proof(&self, nonce: &[u8; NAME_BYTES]) -> [u8; NAME_BYTES] {
        let mac = Hmac::<Sha256>::new_from_slice(self.key.as_text().as_bytes());
        let mut mac = mac.unwrap_or_else(|_| unreachable!("a key may have any length"));
        mac.update(b"nudge page name");
        mac.update(nonce);
        let mut proof = [0; NAME_BYTES];
        proof.copy_from_slice(&mac.finalize().into_bytes()[..NAME_BYTES]);
        proof
    }

    fn compute_mac(&self, nonce: &Nonce, made: [u8; 8]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(self.key.as_text().as_bytes());
        let mut mac = mac.unwrap_or_else(|_| unreachable!("a key may have any length"));
        mac.update(b"nudge page");
        mac.update(nonce);
        mac.update(&made);
        mac
    }
}

impl TableService for SessionPage {
    const TABLE: &'static MethodTable<Self> = &TABLE;

    // A repeated call makes another code; the first code stays unused.
    fn once_by_key(&self, _: &MethodSpec) -> Option<&dyn OnceByKey> {
        None
    }
}

/// Answers only the methods in [`METHODS`].
pub struct ForPage(pub Arc<dyn Service>);

impl Service for ForPage {
    fn methods(&self) -> Vec<&'static MethodSpec> {
        METHODS.iter().filter_map(|name| self.0.find_method(name)).collect()
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        if !METHODS.contains(&method) {
            let message = "The page may not call this; use the command line.";
            return Err(Error::new(ErrorKind::UnknownMethod, message));
        }
        let answer = self.0.call_by(caller, method, params)?;
        if method == CHANGES { without_values(&answer) } else { Ok(answer) }
    }
}

/// Removes the values from the changes: a value may have become a secret, and the page reads the hints anyway.
fn without_values(answer: &RawValue) -> Result<Box<RawValue>> {
    let mut told: Value = parsed_as(answer)?;
    for change in told["changes"].as_array_mut().into_iter().flatten() {
        change.as_object_mut().map(|change| change.remove("value"));
    }
    Ok(raw_json(&told))
}

#[cfg(test)]
mod tests {
    use nudge::ManualClock;
    use serde_json::json;

    use super::*;

    fn page(clock: &Arc<ManualClock>, key: &str) -> SessionPage {
        SessionPage::new(
            Arc::clone(clock) as _,
            AccessToken::from_text(key.into()).unwrap(),
            Arc::new(ServerPorts::new(8765).0),
        )
    }

    fn open(page: &SessionPage, context: &Value) -> Result<String> {
        let params = serde_json::value::to_raw_value(&json!({"context": context})).unwrap();
        let opened: Value = serde_json::from_str(page.call(OPEN_PAGE, &params)?.get()).unwrap();
        Ok(opened["url"].as_str().unwrap().to_owned())
    }

    fn code(page: &SessionPage, context: &Value) -> String {
        let url = open(page, context).unwrap();
        let (origin, code) = url.split_once("/web#code=").unwrap();
        let host = origin.strip_prefix("http://").unwrap().strip_suffix(":8765").unwrap();
        assert!(page.is_its_name(host), "{url}");
        code.to_owned()
    }

    fn enter(page: &SessionPage, code: &str) -> Result<Value, u16> {
        let body = json!({"code": code}).to_string();
        let entered = page.exchange_code(body.as_bytes(), None).map_err(|(status, _)| status.as_u16())?;
        Ok(serde_json::from_slice(&entered).unwrap())
    }

    fn token(page: &SessionPage) -> String {
        enter(page, &code(page, &json!(null))).unwrap()["token"].as_str().unwrap().to_owned()
    }

    const KEY: &str = "a token that a test made up";

    #[test]
    fn each_address_has_an_origin_of_its_own_that_its_session_knows() {
        let clock = Arc::new(ManualClock::new(0));
        let (ours, other) = (page(&clock, &KEY.replace(' ', "-")), page(&clock, &KEY.replace(' ', "+")));
        let name = |page: &SessionPage| format!("{}.localhost", page.new_name().unwrap());
        let (first, second) = (name(&ours), name(&ours));
        assert!(first != second && ours.is_its_name(&first) && ours.is_its_name(&second));
        assert!(!other.is_its_name(&first) && !ours.is_its_name(&name(&other)));
        for wrong in ["localhost", "x.localhost", &first[1..], &first.replace(".localhost", ".localhost.evil.example")]
        {
            assert!(!ours.is_its_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_code_works_once_and_for_a_minute() {
        let clock = Arc::new(ManualClock::new(0));
        let page = page(&clock, &KEY.replace(' ', "-"));
        let first = code(&page, &json!({"cwd": "/w", "branch": null}));
        let second = code(&page, &json!(null));
        assert_eq!(enter(&page, &first).unwrap()["here"], json!({"cwd": "/w", "branch": null}));
        assert_eq!(enter(&page, &first), Err(403), "it was used");
        clock.advance_by(60_000);
        assert_eq!(enter(&page, &second), Err(403), "it is old");
        let third = code(&page, &json!(null));
        clock.advance_by(59_999);
        assert_eq!(enter(&page, &third[1..]), Err(403));
        assert_eq!(enter(&page, &third).unwrap()["here"], json!({}));
        // If there are too many unused codes, only the newest ones work.
        let many: Vec<_> = (0..=MAX_CODES).map(|_| code(&page, &json!(null))).collect();
        assert_eq!(enter(&page, &many[0]), Err(403));
        enter(&page, &many[1]).unwrap();
        for body in ["", "{}", "[]", r#"{"code":7}"#, r#"{"code":"x","more":1}"#, "\u{0}"] {
            assert_eq!(page.exchange_code(body.as_bytes(), None).unwrap_err().0, StatusCode::BAD_REQUEST, "{body}");
        }
    }

    #[test]
    fn a_token_is_the_sessions_and_dies_when_it_is_idle() {
        let clock = Arc::new(ManualClock::new(0));
        let key = KEY.replace(' ', "-");
        let (page, next) = (page(&clock, &key), page(&clock, &key));
        let other = super::tests::page(&clock, &key.replace("test", "TEST"));
        let token = token(&page);
        assert!(page.lets_in(&token) && next.lets_in(&token), "the next PRIMARY of the session knows it");
        assert!(!other.lets_in(&token), "another session's");
        let mut forged = token.clone().into_bytes();
        for index in 0..forged.len() {
            let was = std::mem::replace(&mut forged[index], if token.as_bytes()[index] == b'0' { b'1' } else { b'0' });
            assert!(!page.lets_in(str::from_utf8(&forged).unwrap()), "digit {index}");
            forged[index] = was;
        }
        for bad in ["", &key, &token[1..], &format!("{token}0"), &token.replace('0', "é"), &token.replace('0', "+")] {
            assert!(!page.lets_in(bad), "{bad}");
        }
        for _ in 0..3 {
            clock.advance_by(IDLE_MS - 1);
            assert!(page.lets_in(&token), "it was used meanwhile");
        }
        assert!(!next.lets_in(&token), "it has not heard of it for long");
        clock.advance_by(IDLE_MS);
        assert!(!page.lets_in(&token), "it was idle");
    }

    #[test]
    fn of_many_pages_the_busy_ones_are_remembered() {
        let clock = Arc::new(ManualClock::new(0));
        let page = page(&clock, &KEY.replace(' ', "-"));
        let busy = token(&page);
        for _ in 0..MAX_PAGES + 5 {
            assert!(page.lets_in(&busy));
            clock.advance_by(1);
            assert!(page.lets_in(&token(&page)));
            clock.advance_by(1);
        }
        let state = page.state.lock();
        assert_eq!(state.used.len(), MAX_PAGES);
        assert!(state.used.contains_key(&PageToken::read(&busy).unwrap().nonce));
    }

    #[test]
    fn what_the_page_may_call_exists_and_tells_no_secret() {
        let store: Arc<dyn Service> = Arc::new(nudge::Nudge::default());
        let for_page = ForPage(store);
        let params = RawValue::from_string("{}".into()).unwrap();
        for method in ["nudge.get_hint", "nudge.export", "nudge.import", "nudge.shutdown", OPEN_PAGE, "nudge.none", ""]
        {
            assert_eq!(for_page.call(method, &params).unwrap_err().kind(), ErrorKind::UnknownMethod, "{method}");
            assert!(for_page.find_method(method).is_none());
        }
        assert!(for_page.call("nudge.query", &params).is_ok());
        let all = crate::methods::list_methods();
        for name in METHODS {
            assert!(all.iter().any(|method| method.name == *name), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_a_context_is_refused() {
        let clock = Arc::new(ManualClock::new(0));
        let page = page(&clock, &KEY.replace(' ', "-"));
        for bad in [json!({"cwd": "relative"}), json!(7), json!({"x": "x".repeat(MAX_HERE_BYTES)})] {
            assert_eq!(open(&page, &bad).unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
}
