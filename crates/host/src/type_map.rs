//! A map from types to values.

use std::any::TypeId;

/// A map with few keys, which are types: it is looked through.
#[derive(Clone)]
pub(crate) struct TypeMap<V>(Vec<(TypeId, V)>);

impl<V> Default for TypeMap<V> {
    fn default() -> Self {
        TypeMap(Vec::new())
    }
}

impl<V> TypeMap<V> {
    pub(crate) fn get<T: 'static>(&self) -> Option<&V> {
        let wanted = TypeId::of::<T>();
        let mut found = self.0.iter().filter(|(key, _)| *key == wanted);
        found.next().map(|(_, value)| value)
    }

    /// Sets the value, in place of the one that is there.
    pub(crate) fn insert<T: 'static>(&mut self, value: V) {
        let key = TypeId::of::<T>();
        self.0.retain(|(other, _)| *other != key);
        self.0.push((key, value));
    }

    pub(crate) fn get_or_insert_with<T: 'static>(&mut self, make: impl FnOnce() -> V) -> &V {
        let key = TypeId::of::<T>();
        let position = self.0.iter().position(|(other, _)| *other == key);
        let index = position.unwrap_or_else(|| {
            self.0.push((key, make()));
            self.0.len() - 1
        });
        &self.0[index].1
    }
}
