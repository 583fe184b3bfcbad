//! Contains the peers for lookups: a plain map with a lock, and a moka cache.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use parking_lot::RwLock;

/// A key of two parts. A lookup allocates nothing to build one.
#[derive(Hash, PartialEq, Eq)]
struct Key(Arc<str>, Arc<str>);

#[derive(Hash)]
struct Borrowed<'a>(&'a str, &'a str);

impl Equivalent<Key> for Borrowed<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self.0 == *key.0 && *self.1 == *key.1
    }
}

/// A map with a lock: the least work that a shared cache with two-part keys can do.
#[derive(Default)]
pub struct BareMap(RwLock<HashMap<Key, Arc<str>, RandomState>>);

impl BareMap {
    pub fn set(&self, component: &str, key: &str, value: &str) {
        self.0.write().insert(Key(component.into(), key.into()), value.into());
    }

    pub fn get(&self, component: &str, key: &str) -> Option<Arc<str>> {
        self.0.read().get(&Borrowed(component, key)).cloned()
    }
}

/// A value of a key, with the properties that decide which value is chosen.
pub struct Variant {
    pub fits: bool,
    pub specificity: u8,
    pub score: f64,
    pub value: Arc<str>,
}

/// A map with a lock that has several values for a key and chooses the one that fits best. The properties of the values
/// are computed before the measurement.
#[derive(Default)]
pub struct Choosing(RwLock<HashMap<Key, Box<[Variant]>, RandomState>>);

impl Choosing {
    pub fn set(&self, component: &str, key: &str, variants: Vec<Variant>) {
        self.0.write().insert(Key(component.into(), key.into()), variants.into());
    }

    pub fn get(&self, component: &str, key: &str) -> Option<Arc<str>> {
        let map = self.0.read();
        let fitting = map.get(&Borrowed(component, key))?.iter().filter(|variant| variant.fits);
        let best = fitting.max_by(|a, b| a.specificity.cmp(&b.specificity).then(a.score.total_cmp(&b.score)))?;
        Some(Arc::clone(&best.value))
    }
}

/// Makes a plain moka cache. The joined keys are made before the measurement, so a lookup allocates nothing.
pub fn moka(capacity: usize) -> moka::sync::Cache<String, Arc<str>> {
    moka::sync::Cache::new(capacity as u64)
}
