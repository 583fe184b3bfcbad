//! Tests when a model is loaded and when it is dropped.

mod kit;

use std::fs;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kit::Tiny;
use nudge_core::clock::ManualClock;
use nudge_core::embed::ModelState;
use nudge_core::embed::TextEmbedder;
use nudge_embed::{IDLE, ModelChoice, ModelFolder, ModelLender};
use tempfile::TempDir;

/// A wait that is longer than any load takes. No test waits that long.
const LONG: Duration = Duration::from_mins(2);

struct Scene {
    place: TempDir,
    added: ModelFolder,
    clock: Arc<ManualClock>,
    models: ModelLender,
}

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let added = ModelFolder::new(place.path().canonicalize().unwrap().join("models"));
        let clock = Arc::new(ManualClock::new(0));
        let models = ModelLender::new(ModelChoice::Added(added.clone(), None), clock.clone());
        Self { place, added, clock, models }
    }

    fn add(&self, seed: u64, name: &str) {
        let folder = self.place.path().join(format!("{name}-{seed}"));
        fs::create_dir(&folder).unwrap();
        self.added.add(&Tiny::new(seed).write(&folder), Some(name)).unwrap();
    }

    fn ready(&self) -> Arc<dyn TextEmbedder> {
        match self.models.get(LONG) {
            ModelState::Ready(model) => model,
            other => panic!("{}", other.state()),
        }
    }
}

#[test]
fn which_model_it_would_be_is_told_without_loading_it() {
    let scene = Scene::new();
    let choice = ModelChoice::Added(scene.added.clone(), None);
    assert_eq!(choice.find_id().unwrap(), None);
    scene.add(1, "a");
    let id = choice.find_id().unwrap();
    assert!(matches!(scene.models.peek(), ModelState::Loading), "nothing was loaded");
    assert_eq!(id.as_deref(), Some(scene.ready().id()));
    fs::write(scene.added.path().join("a/config.json"), "{}").unwrap();
    let error = choice.find_id().unwrap_err();
    assert!(error.message().contains("take another one"), "{error}");
}

/// A process that is killed after an added model got its name, but before the cleanup, leaves such a folder.
#[test]
fn what_is_left_of_a_download_is_no_second_model() {
    let scene = Scene::new();
    scene.add(1, "a");
    fs::create_dir(scene.added.path().join("a.part")).unwrap();
    let listed: Vec<_> = scene.added.list().unwrap().into_iter().map(|model| (model.name, model.complete)).collect();
    assert_eq!(listed, [("a".to_owned(), true)]);
    scene.added.remove("a").unwrap();
    assert_eq!(scene.added.list().unwrap(), []);
}

#[test]
fn a_model_is_absent_until_it_is_added_and_loaded_when_it_is_asked_for() {
    let scene = Scene::new();
    assert!(matches!(scene.models.get(LONG), ModelState::Absent) && matches!(scene.models.peek(), ModelState::Absent));
    scene.add(1, "a");
    assert!(matches!(scene.models.peek(), ModelState::Loading), "a look loads nothing");
    assert!(matches!(scene.models.get(Duration::ZERO), ModelState::Loading), "who does not wait does not get it");
    let model = scene.ready();
    assert_eq!(model.embed(&["eggs"]).unwrap()[0].len(), model.dims());
    assert!(Arc::ptr_eq(&model, &scene.ready()), "it is loaded once");
    assert!(matches!(scene.models.peek(), ModelState::Ready(_)));
}

#[test]
fn all_who_ask_at_once_get_the_same() {
    let scene = Scene::new();
    scene.add(1, "a");
    let asks: Vec<_> = (0..8)
        .map(|_| {
            let models = scene.models.clone();
            std::thread::spawn(move || models.get(LONG).into_embedder().unwrap())
        })
        .collect();
    let got: Vec<_> = asks.into_iter().map(|ask| ask.join().unwrap()).collect();
    assert!(got.iter().all(|model| Arc::ptr_eq(model, &got[0])));
}

/// Promise (models): Nudge drops an idle model with its memory, and does not use a model whose files have changed.
#[test]
fn an_idle_model_is_dropped_and_comes_back() {
    let scene = Scene::new();
    scene.add(1, "a");
    let kept: Weak<dyn TextEmbedder> = Arc::downgrade(&scene.ready());
    let minutes = |minutes: u64| i64::try_from(Duration::from_mins(minutes).as_millis()).unwrap();
    assert_eq!(IDLE, Duration::from_mins(10));
    scene.clock.advance_by(minutes(9));
    assert!(!scene.models.tick());
    scene.ready();
    scene.clock.advance_by(minutes(9));
    assert!(!scene.models.tick(), "it was asked for in between");
    scene.clock.advance_by(minutes(1));
    assert!(scene.models.tick());
    assert!(kept.upgrade().is_none(), "nothing of it is left");
    assert!(!scene.models.tick(), "once");
    assert!(matches!(scene.models.peek(), ModelState::Loading));
    let at_work = scene.ready();
    scene.clock.advance_by(minutes(10));
    assert!(scene.models.tick());
    at_work.embed(&["who has it finishes the work"]).unwrap();
}

/// Promise: see `an_idle_model_is_dropped_and_comes_back`.
#[test]
fn a_model_that_is_removed_or_replaced_is_not_used_any_more() {
    let scene = Scene::new();
    scene.add(1, "a");
    let first = scene.ready();
    scene.added.remove("a").unwrap();
    assert!(matches!(scene.models.get(LONG), ModelState::Absent));
    assert!(matches!(scene.models.peek(), ModelState::Absent));
    scene.add(2, "a");
    let second = scene.ready();
    assert_ne!(first.id(), second.id(), "their vectors are told apart");
    scene.add(3, "b");
    let several = scene.models.get(LONG);
    assert!(matches!(&several, ModelState::Failed(error) if error.message().contains("choose one of a, b")));
}

#[test]
fn what_cannot_be_loaded_says_why_until_its_files_change() {
    let scene = Scene::new();
    scene.add(1, "a");
    let weights = scene.added.path().join("a/model.safetensors");
    let good = fs::read(&weights).unwrap();
    fs::write(&weights, b"spoilt").unwrap();
    for _ in 0..2 {
        let ModelState::Failed(error) = scene.models.get(LONG) else { panic!("it failed") };
        assert!(error.message().contains("a model.safetensors that cannot be read"), "{error}");
    }
    assert!(matches!(scene.models.peek(), ModelState::Failed(_)));
    fs::write(&weights, good).unwrap();
    scene.ready();
}

/// The sizes and times of the files stay the same, as after a load that failed for lack of memory.
#[test]
fn what_cannot_be_loaded_is_tried_again_after_a_minute() {
    let scene = Scene::new();
    scene.add(1, "a");
    let weights = scene.added.path().join("a/model.safetensors");
    let (good, file) = (fs::read(&weights).unwrap(), fs::OpenOptions::new().write(true).open(&weights).unwrap());
    let modified = file.metadata().unwrap().modified().unwrap();
    fs::write(&weights, vec![0; good.len()]).unwrap();
    file.set_modified(modified).unwrap();
    assert!(matches!(scene.models.get(LONG), ModelState::Failed(_)));
    fs::write(&weights, good).unwrap();
    file.set_modified(modified).unwrap();
    scene.clock.advance_by(59_999);
    assert!(matches!(scene.models.get(LONG), ModelState::Failed(_)));
    scene.clock.advance_by(1);
    scene.ready();
}

#[test]
fn a_folder_of_the_users_own_needs_not_be_added() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("elsewhere");
    let models = ModelLender::new(ModelChoice::Folder(folder.clone()), Arc::new(ManualClock::new(0)));
    assert!(matches!(models.get(LONG), ModelState::Absent));
    fs::create_dir(&folder).unwrap();
    let ModelState::Failed(error) = models.get(LONG) else { panic!("it is empty") };
    assert!(error.message().contains("has no config.json"), "{error}");
    Tiny::new(1).write(&folder);
    assert!(models.get(LONG).into_embedder().is_some());
    let named = ModelLender::new(
        ModelChoice::Added(ModelFolder::new(place.path()), Some("elsewhere".into())),
        Arc::new(ManualClock::new(0)),
    );
    assert!(named.get(LONG).into_embedder().is_some());
}
