//! Holds the peers for lookups: a plain map under a lock, and a moka cache.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use parking_lot::RwLock;

/// A composite key; a lookup needs no allocation to build one.
#[derive(Hash, PartialEq, Eq)]
struct Key(Arc<str>, Arc<str>);

#[derive(Hash)]
struct Borrowed<'a>(&'a str, &'a str);

impl Equivalent<Key> for Borrowed<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        *self.0 == *key.0 && *self.1 == *key.1
    }
}

/// The least work that a shared cache with two-part keys can do.
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

/// The properties that decide which value of a key fits.
pub struct Variant {
    pub fits: bool,
    pub specificity: u8,
    pub score: f64,
    pub value: Arc<str>,
}

/// A map as above with several values for a key, which picks the best fitting value. All their properties are computed
/// beforehand.
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

/// Makes a plain moka cache. Its keys are joined beforehand, so that lookups allocate nothing.
pub fn moka(capacity: usize) -> moka::sync::Cache<String, Arc<str>> {
    moka::sync::Cache::new(capacity as u64)
}
