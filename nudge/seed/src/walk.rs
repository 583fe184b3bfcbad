//! Walks a repository: finds the files with commands, reads them in order, and selects the seeds to keep.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use nudge_core::text::one_line;
use nudge_core::walk::{RuleSources, WalkEntry as Walked, WalkPlan, common_dir, git_dir, walk_folder};
use nudge_os::foreign::{self, LinkPolicy};
use sha2::{Digest as _, Sha256};

use crate::file::{FoundCommand, SeedFile};
use crate::read::{FormatReader, readers_of};
use crate::tags::make_tags;
use crate::{PassedOver, Seed, SeedLimits, SeedManifest, SeedReport, is_manifest};

/// The depth of the deepest folder that is searched. Deeper folders usually have third-party code.
const MAX_DEPTH: usize = 5;
/// The longest name of a command, in characters.
const MAX_NAME: usize = 64;
/// The longest command line, in characters.
const MAX_COMMAND: usize = 300;
/// The longest description of a command, in characters.
const MAX_ABOUT: usize = 160;
/// Folders that are skipped: their content is third-party or generated, or its commands do not run inside the folder.
const NOT_OURS: &[&str] = &[
    ".git",
    ".hg",
    ".venv",
    "venv",
    "env",
    "node_modules",
    "bower_components",
    "vendor",
    "third_party",
    "third-party",
    "external",
    "target",
    "dist",
    "site-packages",
    "fixtures",
    "__fixtures__",
    "testdata",
    "test-data",
    "templates",
    "template",
    "examples",
    "example",
    "samples",
    "__snapshots__",
    "fuzz",
];

/// The names of folders with tests.
const OF_TESTS: &[&str] = &["tests", "test", "__tests__", "spec"];

/// Reads the manifests of the repository at `top`. A file that cannot be read is no error: the report lists the file,
/// and has the commands of all other files.
#[must_use]
pub fn read(top: &Path, limits: &SeedLimits) -> SeedReport {
    let mut report = SeedReport::default();
    let mut found = Vec::new();
    for relative in find_manifests(top, limits, &mut report) {
        match read_one(top, &relative, limits) {
            Ok(read) => {
                report.manifests.push(SeedManifest { file: relative.clone(), sha256: read.sha256 });
                report.passed_over.extend(read.why.map(|why| PassedOver { file: relative, why }));
                found.extend(read.seeds);
            }
            Err(why) => report.passed_over.push(PassedOver { file: relative, why }),
        }
    }
    // Commands that people type come before commands of a CI server. Among equal commands, the first is kept.
    found.sort_by(|(a, seed), (b, other)| {
        (&seed.folder, a, &seed.file, seed.line).cmp(&(&other.folder, b, &other.file, other.line))
    });
    let mut commands = HashSet::new();
    let mut keys = HashSet::new();
    for (_, mut seed) in found {
        // The commands `python -m tox -e lint` and `tox -e lint` count as equal.
        let command = seed.command.strip_prefix("python3 -m ").or_else(|| seed.command.strip_prefix("python -m "));
        if !commands.insert((seed.folder.clone(), command.unwrap_or(&seed.command).to_owned())) {
            continue;
        }
        let plain = seed.key.clone();
        for number in 2.. {
            if keys.insert((seed.folder.clone(), seed.key.clone())) {
                break;
            }
            seed.key = format!("{plain}-{number}");
        }
        report.seeds.push(seed);
    }
    if report.seeds.len() > limits.seeds {
        let why = format!("only the first {} of {} commands are taken", limits.seeds, report.seeds.len());
        report.passed_over.push(PassedOver { file: String::new(), why });
        report.seeds.truncate(limits.seeds);
    }
    report.passed_over.sort_by(|a, b| a.file.cmp(&b.file));
    report
}

/// Returns true when a manifest was changed or removed, or when there is a new one at the top. This check is quick.
/// Only [`read`] finds a new manifest in a deeper folder.
#[must_use]
pub fn has_changed(top: &Path, known: &[SeedManifest], limits: &SeedLimits) -> bool {
    let is_other = |manifest: &SeedManifest| {
        let bytes = foreign::read(&top.join(&manifest.file), LinkPolicy::Refused, limits.file_bytes);
        bytes.map_or(true, |bytes| hash_sha256(&bytes) != manifest.sha256)
    };
    let names: HashSet<&str> = known.iter().map(|manifest| manifest.file.as_str()).collect();
    let has_come = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && name.to_str().is_some_and(|name| !names.contains(name) && is_manifest(Path::new(name)))
    };
    known.iter().any(is_other) || std::fs::read_dir(top).is_ok_and(|entries| entries.flatten().any(has_come))
}

/// Finds the files for which there is a reader. Returns their paths relative to the top, sorted. Links are not
/// followed.
fn find_manifests(top: &Path, limits: &SeedLimits, report: &mut SeedReport) -> Vec<String> {
    let is_ours = |path: &Path, is_folder: bool| {
        let name = path.file_name().and_then(|name| name.to_str());
        !is_folder || !(name.is_some_and(|name| NOT_OURS.contains(&name)) || is_test_data(path))
    };
    let plan = WalkPlan { is_sorted: true, max_depth: MAX_DEPTH, counts: &is_ours, ..WalkPlan::default() };
    let common = git_dir(top).map(|git_dir| common_dir(&git_dir));
    let sources = RuleSources { git: common.as_deref(), ..RuleSources::default() };
    let mut folders = 0;
    let mut files = Vec::new();
    let mut pass_over = |file, why: &str| report.passed_over.push(PassedOver { file, why: why.to_owned() });
    let relative = |path: &Path| path.strip_prefix(top).ok().and_then(with_slashes);
    walk_folder(top, &sources, &plan, &mut |found| {
        match found {
            Walked::Folder(_) => {
                folders += 1;
                if folders > limits.folders {
                    let why = format!("more than {} folders; the others are not looked into", limits.folders);
                    pass_over(String::new(), &why);
                    return ControlFlow::Break(());
                }
            }
            Walked::File(file) => {
                let manifest = relative(file.path).filter(|relative| is_manifest(Path::new(relative)));
                match manifest {
                    None => {}
                    Some(manifest) if file.kind.is_file() => files.push(manifest),
                    Some(manifest) if file.kind.is_symlink() => pass_over(manifest, "it is a link"),
                    Some(manifest) => pass_over(manifest, "it is not a regular file"),
                }
            }
            Walked::PassedOver(path, why) => pass_over(relative(path).unwrap_or_default(), why),
        }
        ControlFlow::Continue(())
    });
    files.sort();
    files
}

/// Returns true when a folder is two levels below a folder of tests. Such a folder has test data.
fn is_test_data(folder: &Path) -> bool {
    let name = folder.ancestors().nth(2).and_then(Path::file_name).and_then(|name| name.to_str());
    name.is_some_and(|name| OF_TESTS.contains(&name))
}

/// Returns a path with `/` between its parts. `None` if a part is not UTF-8 or has hidden characters.
fn with_slashes(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.iter().map(std::ffi::OsStr::to_str).collect();
    let path = parts?.join("/");
    (!path.chars().any(|c| c.is_control() || nudge_core::text::is_hidden(c))).then_some(path)
}

/// The result of reading one file.
struct FileReading {
    sha256: String,
    seeds: Vec<(usize, Seed)>,
    /// The reason why a part of the file was skipped.
    why: Option<String>,
}

fn read_one(top: &Path, relative: &str, limits: &SeedLimits) -> Result<FileReading, String> {
    let bytes =
        foreign::read(&top.join(relative), LinkPolicy::Refused, limits.file_bytes).map_err(|error| {
            match error.kind() {
                std::io::ErrorKind::FileTooLarge => error.to_string(),
                std::io::ErrorKind::InvalidInput => "it is not a regular file".to_owned(),
                _ => "it cannot be read".to_owned(),
            }
        })?;
    let sha256 = hash_sha256(&bytes);
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    let (folder, name) = relative.rsplit_once('/').unwrap_or(("", relative));
    let mut read = FileReading { sha256, seeds: Vec::new(), why: None };
    for (rank, reader) in readers_of(folder, name) {
        let file = SeedFile { top, folder: reader.find_base(folder), name, text: &text };
        match (reader.read)(&file) {
            Ok(found) => read.take_found(rank, reader, &file, relative, found, limits),
            Err(why) => read.why = Some(why),
        }
    }
    Ok(read)
}

impl FileReading {
    fn take_found(
        &mut self,
        rank: usize,
        reader: &FormatReader,
        file: &SeedFile<'_>,
        from: &str,
        found: Vec<FoundCommand>,
        limits: &SeedLimits,
    ) {
        let fit: Vec<_> = found.into_iter().filter(is_fit).collect();
        if fit.len() > limits.seeds_of_a_file {
            self.why = Some(format!("only the first {} of {} commands are taken", limits.seeds_of_a_file, fit.len()));
        }
        for found in asked_for_most(fit, limits.seeds_of_a_file) {
            let about = if found.about.trim().is_empty() { found.command.as_str().to_owned() } else { found.about };
            self.seeds.push((
                rank,
                Seed {
                    folder: found.folder.unwrap_or_else(|| file.folder.to_owned()),
                    key: format!("{}.{}", reader.format, found.name),
                    tags: make_tags(reader.format, &found.name, found.command.as_str()),
                    command: found.command.into_string(),
                    about: one_line(&about, MAX_ABOUT),
                    file: from.to_owned(),
                    line: found.line.max(1),
                },
            ));
        }
    }
}

/// Returns at most `max` commands of a file, in their order. If there are more, names with fewer parts are preferred
/// (`test` before `test:base:update`), because users need such commands more often.
fn asked_for_most(mut found: Vec<FoundCommand>, max: usize) -> Vec<FoundCommand> {
    if found.len() > max {
        let parts = |found: &FoundCommand| found.name.split([':', '-', '.', '_']).count();
        found.sort_by_key(parts);
        found.truncate(max);
        found.sort_by_key(|found| found.line);
    }
    found
}

/// Returns true when a user can read and type the command.
fn is_fit(found: &FoundCommand) -> bool {
    let is_plain = |text: &str| !text.chars().any(|c| c.is_control() || nudge_core::text::is_hidden(c));
    let fits = |text: &str, max: usize| !text.trim().is_empty() && text.chars().count() <= max && is_plain(text);
    fits(&found.name, MAX_NAME) && fits(found.command.as_str(), MAX_COMMAND)
}

fn hash_sha256(bytes: &[u8]) -> String {
    nudge_core::text::to_hex(&Sha256::digest(bytes))
}

/// Returns the folder below the top that a file names by a path such as `./web/` or `web`. `None` if the folder does
/// not exist or is outside the top.
pub fn folder_at(file: &SeedFile<'_>, given: &str) -> Option<String> {
    let given = given.trim().trim_start_matches("./").trim_end_matches('/');
    if given.is_empty() || given == "." {
        return Some(String::new());
    }
    let path = PathBuf::from(given);
    let inside = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    (inside && file.top.join(&path).is_dir()).then(|| with_slashes(&path)).flatten()
}
