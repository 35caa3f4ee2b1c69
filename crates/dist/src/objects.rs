//! [`RemoteObjects`]: the objects of a context that other tasks know by name.
//!
//! Names are chosen by callers, and come with their requests: so a chain of remote calls needs no round trips, and a
//! request may ask for an object before the one that makes it has arrived.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_async::{AnyAsyncValue, AnyPromise, Error};

use crate::ids::{ObjectId, ObjectKey};

/// The most objects of a context, awaited ones included.
pub const MAX_OBJECTS: usize = 1 << 20;

/// A table of objects by name.
pub struct RemoteObjects {
    prefix: u64,
    next: AtomicU64,
    table: Mutex<HashMap<ObjectKey, Object>>,
}

enum Object {
    /// Somebody waits for it.
    Awaited(AnyPromise, AnyAsyncValue),
    Set(AnyAsyncValue),
}

impl RemoteObjects {
    /// Makes an empty table; names that it chooses begin with `prefix`.
    pub fn new(prefix: u64) -> RemoteObjects {
        RemoteObjects {
            prefix,
            next: AtomicU64::new(1),
            table: Mutex::default(),
        }
    }

    /// Chooses a name for an object on a device. The table has no entry for it yet.
    pub fn allocate(&self, device: &Arc<str>) -> ObjectId {
        let key = ObjectKey {
            prefix: self.prefix,
            // Ordering: numbers only have to differ.
            local: self.next.fetch_add(1, Ordering::Relaxed),
        };
        ObjectId {
            key,
            device: device.clone(),
        }
    }

    /// Returns an object, or a value that will be it once it is set.
    pub fn get(&self, key: ObjectKey) -> AnyAsyncValue {
        let mut table = self.lock();
        let is_full = table.len() >= MAX_OBJECTS;
        match table.entry(key) {
            Entry::Occupied(entry) => match entry.get() {
                Object::Awaited(_, value) | Object::Set(value) => value.clone(),
            },
            Entry::Vacant(_) if is_full => AnyAsyncValue::from_error(full()),
            Entry::Vacant(entry) => {
                let (promise, value) = AnyAsyncValue::pending();
                entry.insert(Object::Awaited(promise, value.clone()));
                value
            }
        }
    }

    /// Sets an object, once; who waits for it gets it when it is there.
    ///
    /// # Errors
    ///
    /// `FailedPrecondition` if it is set already, `ResourceExhausted` if there are [`MAX_OBJECTS`].
    pub fn set(&self, id: &ObjectId, value: AnyAsyncValue) -> Result<(), Error> {
        let awaited = {
            let mut table = self.lock();
            match table.get(&id.key) {
                Some(Object::Set(_)) => {
                    return Err(Error::failed_precondition(format!("{id} is set already")));
                }
                None if table.len() >= MAX_OBJECTS => return Err(full()),
                _ => table.insert(id.key, Object::Set(value.clone())),
            }
        };
        if let Some(Object::Awaited(promise, _)) = awaited {
            promise.forward(value);
        }
        Ok(())
    }

    /// Deletes objects. Those that there are not are told, and the others are deleted all the same.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` with the names that were not found.
    pub fn delete(&self, ids: &[ObjectId]) -> Result<(), Error> {
        let mut table = self.lock();
        let (mut deleted, mut missing) = (Vec::new(), Vec::new());
        for id in ids {
            match table.remove(&id.key) {
                Some(object) => deleted.push(object),
                None => missing.push(id.to_string()),
            }
        }
        drop(table);
        // Dropped without the lock: a promise among them runs what waits for it.
        drop(deleted);
        if missing.is_empty() {
            return Ok(());
        }
        let missing = missing.join(", ");
        Err(Error::invalid_argument(format!(
            "Could not find object: {missing}"
        )))
    }

    /// Deletes the objects whose names a task has chosen; who waits for one of them is told why.
    pub fn free(&self, prefix: u64, reason: &Error) {
        let freed: Vec<Object> = {
            let mut table = self.lock();
            let is_its = |key: &ObjectKey, _: &mut Object| key.prefix == prefix;
            table.extract_if(is_its).map(|(_, object)| object).collect()
        };
        for object in freed {
            if let Object::Awaited(promise, _) = object {
                promise.fail(reason.clone());
            }
        }
    }

    /// Fails what is awaited and not set, and forgets all.
    pub fn end(&self, reason: &Error) {
        let objects = std::mem::take(&mut *self.lock());
        for object in objects.into_values() {
            if let Object::Awaited(promise, _) = object {
                promise.fail(reason.clone());
            }
        }
    }

    /// Returns the number of objects, awaited ones included.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Object>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn full() -> Error {
    Error::resource_exhausted(format!("a context has {MAX_OBJECTS} objects at most"))
}

impl fmt::Debug for RemoteObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteObjects")
            .field("prefix", &self.prefix)
            .field("len", &self.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_may_be_asked_for_before_it_is_set() {
        let objects = RemoteObjects::new(7);
        let id = objects.allocate(&"d".into());
        assert_eq!((id.key.local, objects.len()), (1, 0));
        let early = objects.get(id.key);
        assert!(!early.is_settled());
        objects.set(&id, AnyAsyncValue::new(5_i32)).unwrap();
        assert_eq!(early.get::<i32>(), Some(&5));
        assert_eq!(objects.get(id.key).get::<i32>(), Some(&5));
        let error = objects.set(&id, AnyAsyncValue::new(6_i32)).unwrap_err();
        assert!(error.message().ends_with("is set already"), "{error}");
    }

    #[test]
    fn what_is_not_there_is_told_and_the_rest_deleted() {
        let objects = RemoteObjects::new(7);
        let (one, two) = (objects.allocate(&"d".into()), objects.allocate(&"d".into()));
        objects.set(&two, AnyAsyncValue::new(5_i32)).unwrap();
        let error = objects.delete(&[one, two]).unwrap_err();
        assert_eq!(
            error.message(),
            "Could not find object: RemoteObjectId{prefix_id: 7 local_id: 1 device: d}"
        );
        assert!(objects.is_empty());
    }
}
