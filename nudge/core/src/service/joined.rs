//! Combines several services into one.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde_json::value::RawValue;

use super::{Caller, MethodSpec, Service, unknown_method};
use crate::error::Result;

/// The expected number of methods of all sources; used to reserve memory.
const MANY: usize = 100;

/// Several services as one. Each call goes to the first service that has the method in its table.
pub struct JoinedServices {
    all: Vec<Arc<dyn Service>>,
    /// The index of the service that answers each method name, and the method's row.
    by_name: HashMap<&'static str, (usize, &'static MethodSpec), RandomState>,
}

impl JoinedServices {
    /// Combines `services`. If several of them have the same method, the first one answers it.
    pub fn new(all: Vec<Arc<dyn Service>>) -> Self {
        // Every start makes this map, so its memory is reserved in one step.
        let mut by_name = HashMap::with_capacity_and_hasher(MANY, RandomState::default());
        for (index, service) in all.iter().enumerate() {
            for row in service.methods() {
                by_name.entry(row.name).or_insert((index, row));
            }
        }
        Self { all, by_name }
    }

    /// Returns the service that answers a method, and the method's row.
    pub fn find_service(&self, name: &str) -> Option<(&dyn Service, &'static MethodSpec)> {
        self.by_name.get(name).map(|(index, row)| (&*self.all[*index], *row))
    }
}

impl Service for JoinedServices {
    fn methods(&self) -> Vec<&'static MethodSpec> {
        let own_rows = |(index, service): (usize, &Arc<dyn Service>)| {
            let rows = service.methods().into_iter();
            rows.filter(|row| self.by_name.get(row.name).is_some_and(|(first, _)| *first == index)).collect::<Vec<_>>()
        };
        self.all.iter().enumerate().flat_map(own_rows).collect()
    }

    fn find_method(&self, name: &str) -> Option<&'static MethodSpec> {
        self.find_service(name).map(|(_, row)| row)
    }

    fn call_by(&self, caller: Caller<'_>, method: &str, params: &RawValue) -> Result<Box<RawValue>> {
        let (service, row) = self.find_service(method).ok_or_else(|| unknown_method(method, &self.methods()))?;
        service.call_by(caller, row.name, params)
    }
}
