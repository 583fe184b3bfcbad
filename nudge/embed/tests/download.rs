//! Tests the download of a known model: the system's curl fetches it from a server on the loopback.

mod kit;

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use kit::Tiny;
use nudge_core::error::Result;
use nudge_embed::{KnownModel, ModelDownload, ModelFolder, PinnedFile, StoredModel};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// The way in which the server answers a request for a file.
#[derive(Clone)]
enum Answer {
    Whole,
    /// Sends this many bytes, and then closes the connection.
    CutAfter(usize),
    /// Sends the whole file, even if the client requests only the rest of it.
    WithoutRanges,
    /// Sends these bytes instead of the file.
    Other(Vec<u8>),
    Status(&'static str),
    Redirect(String),
}

/// Serves the files of one model, and notes each request: the file's name, and the offset that the client requested.
struct Server {
    address: String,
    files: HashMap<String, Vec<u8>>,
    answers: Mutex<HashMap<String, Answer>>,
    asked: Mutex<Vec<(String, usize)>>,
}

impl Server {
    fn start(tiny: &Tiny) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Arc::new(Self {
            address: format!("http://{}/models/tiny", listener.local_addr().unwrap()),
            files: tiny.files().into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect(),
            answers: Mutex::default(),
            asked: Mutex::default(),
        });
        let shared = server.clone();
        std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(shared.answer(&stream))));
        server
    }

    fn set(&self, name: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(name.to_owned(), answer);
    }

    /// Returns the requests since the last call.
    fn asked(&self) -> Vec<(String, usize)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    fn answer(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let head: Vec<String> =
            BufReader::new(stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let path = head[0].split(' ').nth(1).unwrap_or_default();
        let name = path.trim_start_matches("/models/tiny/").to_owned();
        let range = head.iter().find_map(|line| line.to_lowercase().strip_prefix("range: bytes=").map(str::to_owned));
        let begin = range.and_then(|range| range.trim_end_matches('-').parse().ok()).unwrap_or(0);
        self.asked.lock().unwrap().push((name.clone(), begin));
        let answer = self.answers.lock().unwrap().get(&name).cloned().unwrap_or(Answer::Whole);
        let whole = self.files.get(&name).cloned().unwrap_or_default();
        let (status, bytes, sent) = match answer {
            Answer::Status(status) => (status.to_owned(), Vec::new(), 0),
            Answer::Redirect(to) => (format!("302 Found\r\nLocation: {to}"), Vec::new(), 0),
            Answer::Other(bytes) => ("200 OK".into(), bytes, usize::MAX),
            Answer::WithoutRanges => ("200 OK".into(), whole, usize::MAX),
            Answer::Whole | Answer::CutAfter(_) => {
                let sent = if let Answer::CutAfter(sent) = answer { sent } else { usize::MAX };
                let range =
                    format!("206 Partial Content\r\nContent-Range: bytes {begin}-{}/{}", whole.len() - 1, whole.len());
                (if begin == 0 { "200 OK".into() } else { range }, whole[begin..].to_vec(), sent)
            }
        };
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len())?;
        stream.write_all(&bytes[..bytes.len().min(sent)])
    }
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Makes an entry of the table of known models from a tiny model. The entry is never freed.
fn known(tiny: &Tiny) -> &'static KnownModel {
    let pinned = |wanted: &'static str| {
        let (name, bytes) = tiny.files().into_iter().find(|(name, _)| *name == wanted).unwrap();
        let sha256 = sha256(&bytes);
        PinnedFile { name, bytes: bytes.len() as u64, sha256: sha256.leak() }
    };
    Box::leak(Box::new(KnownModel {
        name: "tiny",
        revision: "0123456789abcdef",
        licence: "CC0-1.0",
        address: "https://models.example/tiny",
        files: ["config.json", "tokenizer.json", "model.safetensors"].map(pinned),
        tokens: 24,
    }))
}

struct Scene {
    _place: TempDir,
    models: ModelFolder,
    server: Arc<Server>,
    known: &'static KnownModel,
    download: ModelDownload,
}

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let models = ModelFolder::new(place.path().canonicalize().unwrap().join("models"));
        let tiny = Tiny::new(1);
        let (server, known) = (Server::start(&tiny), known(&tiny));
        let download = ModelDownload { address: server.address.clone(), progress: false, ..ModelDownload::from(known) };
        Self { _place: place, models, server, known, download }
    }

    fn fetch(&self) -> Result<StoredModel> {
        self.models.fetch(self.known, &self.download)
    }

    fn part(&self, name: &str) -> PathBuf {
        self.models.path().join("tiny.part").join(name)
    }

    fn bytes(&self, name: &str) -> usize {
        self.server.files[name].len()
    }
}

#[test]
fn a_known_model_is_fetched_checked_and_tried_out() {
    let scene = Scene::new();
    let stored = scene.fetch().unwrap();
    assert_eq!((stored.name.as_str(), stored.complete, stored.bytes), ("tiny", true, scene.known.bytes()));
    assert_eq!(scene.models.list().unwrap(), std::slice::from_ref(&stored));
    assert_eq!(scene.models.chosen(None).unwrap(), Some(stored.folder.clone()));
    #[cfg(unix)]
    {
        assert_eq!(kit::mode(&stored.folder), 0o700);
        assert_eq!(kit::mode(&stored.folder.join("model.safetensors")), 0o600);
    }
    assert_eq!(scene.fetch().unwrap_err().reason(), "E_CONFLICT");
    assert_eq!(scene.server.asked().len(), 3, "nothing is fetched twice, nor anything else");
}

#[test]
fn an_interrupted_download_goes_on_where_it_stopped() {
    let scene = Scene::new();
    scene.server.set("model.safetensors", Answer::CutAfter(5_000));
    let error = scene.fetch().unwrap_err();
    assert_eq!(error.reason(), "E_UNAVAILABLE");
    assert!(error.message().ends_with("the same again goes on where it stopped."), "{error}");
    let stored = &scene.models.list().unwrap()[0];
    assert_eq!((stored.name.as_str(), stored.complete), ("tiny", false));
    assert_eq!(scene.models.chosen(None).unwrap(), None, "what is not whole is not used");
    assert_eq!(fs::metadata(scene.part("model.safetensors")).unwrap().len(), 5_000);
    scene.server.asked();
    scene.server.set("model.safetensors", Answer::Whole);
    scene.fetch().unwrap();
    assert_eq!(scene.server.asked(), [("model.safetensors".to_owned(), 5_000)], "what had come is not fetched again");
    assert!(!scene.part("").exists());
}

#[test]
fn a_server_that_cannot_go_on_sends_it_anew() {
    let scene = Scene::new();
    scene.server.set("model.safetensors", Answer::CutAfter(5_000));
    scene.fetch().unwrap_err();
    scene.server.set("model.safetensors", Answer::WithoutRanges);
    scene.server.asked();
    scene.fetch().unwrap();
    let begun: Vec<usize> = scene.server.asked().into_iter().map(|(_, begin)| begin).collect();
    assert_eq!(begun, [5_000, 0]);
}

/// Promise (models): Nudge uses a downloaded model only when all its bytes are there and equal the known ones.
#[test]
fn other_bytes_are_refused_named_and_not_kept() {
    let scene = Scene::new();
    let mut spoilt = scene.server.files["tokenizer.json"].clone();
    spoilt[100] ^= 1;
    let sha256 = sha256(&spoilt);
    let short = b"<html>Sign in to the network</html>".to_vec();
    for (bytes, wanted) in [
        (spoilt, format!("has a tokenizer.json with SHA-256 {sha256}, and the known one has ")),
        (short, "has a tokenizer.json of 35 bytes, and the known one has ".to_owned()),
    ] {
        scene.server.set("tokenizer.json", Answer::Other(bytes));
        let error = scene.fetch().unwrap_err();
        assert_eq!(error.reason(), "E_INVALID");
        assert!(error.message().contains(&wanted), "{error}");
        assert!(error.message().ends_with("; nothing was added."), "{error}");
        assert!(!scene.part("tokenizer.json").exists(), "the next try begins anew");
    }
    // The file is longer than the table says. Either curl stops early, or Nudge removes the file.
    let mut long = scene.server.files["tokenizer.json"].clone();
    long.resize(long.len() * 50, b' ');
    scene.server.set("tokenizer.json", Answer::Other(long));
    scene.fetch().unwrap_err();
    let left = fs::metadata(scene.part("tokenizer.json")).map_or(0, |file| file.len());
    assert!(left <= scene.bytes("tokenizer.json") as u64, "{left}");
    scene.server.set("tokenizer.json", Answer::Whole);
    scene.fetch().unwrap();
}

#[test]
fn what_lies_there_already_is_checked_too() {
    let scene = Scene::new();
    scene.server.set("model.safetensors", Answer::Status("503 Service Unavailable"));
    let error = scene.fetch().unwrap_err();
    assert!(error.message().contains("/models/tiny/model.safetensors was refused by its server"), "{error}");
    // Nudge trusts neither a leftover file of the right length nor a longer one.
    let tokenizer = scene.bytes("tokenizer.json");
    fs::write(scene.part("tokenizer.json"), vec![b' '; tokenizer]).unwrap();
    fs::write(scene.part("config.json"), vec![b' '; 10_000]).unwrap();
    scene.server.set("model.safetensors", Answer::Whole);
    scene.fetch().unwrap();
}

#[cfg(unix)]
#[test]
fn no_link_is_written_through() {
    let scene = Scene::new();
    scene.server.set("config.json", Answer::Status("404 Not Found"));
    scene.fetch().unwrap_err();
    let elsewhere = scene.models.path().join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    let _ = fs::remove_file(scene.part("config.json"));
    std::os::unix::fs::symlink(&elsewhere, scene.part("config.json")).unwrap();
    scene.server.set("config.json", Answer::Whole);
    let error = scene.fetch().unwrap_err();
    assert!(error.message().ends_with("config.json is no file of ours; remove it."), "{error}");
    assert_eq!(fs::read_to_string(elsewhere).unwrap(), "mine");
}

#[test]
fn a_redirect_is_followed_but_not_to_another_protocol() {
    let scene = Scene::new();
    let other = Server::start(&Tiny::new(1));
    scene.server.set("config.json", Answer::Redirect(format!("{}/config.json", other.address)));
    let secret = scene.models.path().parent().unwrap().join("secret");
    fs::write(&secret, "x").unwrap();
    scene.server.set("tokenizer.json", Answer::Redirect(format!("file://{}", secret.display())));
    let error = scene.fetch().unwrap_err();
    assert!(error.message().contains("/tokenizer.json could not be fetched"), "{error}");
    assert_eq!(other.asked(), [("config.json".to_owned(), 0)]);
}

/// Promise: see `other_bytes_are_refused_named_and_not_kept`.
#[test]
fn only_https_leaves_the_machine() {
    let scene = Scene::new();
    for address in [
        "http://models.example/tiny",
        "http://127.0.0.1.models.example/tiny",
        "http://127.0.0.1:80@models.example/tiny",
        "http://localhost@models.example",
        "ftp://127.0.0.1/tiny",
        "file:///etc",
        "-o/etc/passwd",
        "",
    ] {
        let download = ModelDownload { address: address.into(), ..scene.download.clone() };
        let error = scene.models.fetch(scene.known, &download).unwrap_err();
        assert_eq!(error.message(), "A model is fetched by https only; begin the address with https://.", "{address}");
    }
    assert!(!scene.models.path().exists(), "a refused call makes no folder");
}

#[test]
fn without_curl_it_says_what_else_there_is() {
    let scene = Scene::new();
    let download = ModelDownload { curl: "/nowhere/curl".into(), ..scene.download.clone() };
    let error = scene.models.fetch(scene.known, &download).unwrap_err();
    assert!(error.message().starts_with("/nowhere/curl cannot be run ("), "{error}");
    assert!(error.message().ends_with("install it, or add the model from a folder, a wheel or a tar."), "{error}");
}
