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
use crate::security::PeerKey;

/// The most objects of a context, awaited ones included.
pub const MAX_OBJECTS: usize = 1 << 20;

/// A table of objects by name.
pub struct RemoteObjects {
    prefix: u64,
    next: AtomicU64,
    table: Mutex<HashMap<ObjectKey, Object>>,
    /// Names that other tasks have said, whether their objects are there or not.
    named: Mutex<Named>,
}

/// The names of objects that peers have used, each counted for the peer that used it first.
#[derive(Default)]
struct Named {
    by: HashMap<ObjectKey, PeerKey>,
    counts: HashMap<PeerKey, usize>,
}

impl Named {
    fn remove(&mut self, key: ObjectKey) {
        let Some(peer) = self.by.remove(&key) else {
            return;
        };
        if let Some(count) = self.counts.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&peer);
            }
        }
    }
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
            named: Mutex::default(),
        }
    }

    /// Counts the names that a task says with a request, for as long as they are not deleted: those that nobody has said
    /// before are its own.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if it then has more than so many; none of them is counted.
    pub(crate) fn name<'a>(
        &self,
        peer: &PeerKey,
        max_objects: usize,
        ids: impl Iterator<Item = &'a ObjectId>,
    ) -> Result<(), Error> {
        let mut named = self.named();
        let count = named.counts.get(peer).copied().unwrap_or(0);
        let mut fresh: Vec<ObjectKey> = ids.map(|id| id.key).collect();
        // Its own names are those of this context, which it does not hold.
        fresh.retain(|key| key.prefix != self.prefix && !named.by.contains_key(key));
        fresh.sort_unstable_by_key(|key| (key.prefix, key.local));
        fresh.dedup();
        if count + fresh.len() > max_objects {
            let n_new = fresh.len();
            return Err(Error::resource_exhausted(format!(
                "a task has {max_objects} objects of a context at most: it has {count}, and names {n_new} others"
            )));
        }
        if !fresh.is_empty() {
            named.counts.insert(peer.clone(), count + fresh.len());
            named
                .by
                .extend(fresh.into_iter().map(|key| (key, peer.clone())));
        }
        Ok(())
    }

    fn named(&self) -> MutexGuard<'_, Named> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut named = self.named();
        ids.iter().for_each(|id| named.remove(id.key));
        drop(named);
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
        let mut named = self.named();
        let said = named.by.keys().filter(|key| key.prefix == prefix);
        let said: Vec<ObjectKey> = said.copied().collect();
        said.into_iter().for_each(|key| named.remove(key));
        drop(named);
        for object in freed {
            if let Object::Awaited(promise, _) = object {
                promise.fail(reason.clone());
            }
        }
    }

    /// Fails what is awaited and not set, and forgets all.
    pub fn end(&self, reason: &Error) {
        *self.named() = Named::default();
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
    fn names_are_counted_for_who_says_them_first() {
        let (objects, theirs) = (RemoteObjects::new(7), RemoteObjects::new(8));
        let peer = |number| PeerKey::of_process(crate::ids::Incarnation(number));
        let ids: Vec<ObjectId> = (0..4).map(|_| theirs.allocate(&"d".into())).collect();
        objects.name(&peer(1), 3, ids[..3].iter()).unwrap();
        // Said again, they count no more; nor do those of this task.
        let own = objects.allocate(&"d".into());
        objects
            .name(&peer(1), 3, ids[..3].iter().chain([&own]))
            .unwrap();
        let error = objects.name(&peer(1), 3, ids.iter()).unwrap_err();
        let message = "a task has 3 objects of a context at most: it has 3, and names 1 others";
        assert_eq!(error.message(), message);
        objects.name(&peer(2), 3, ids.iter()).unwrap();
        let _missing = objects.delete(&ids[..1]);
        let more = theirs.allocate(&"d".into());
        objects.name(&peer(1), 3, [&more].into_iter()).unwrap();
        // A client that is lost has none left.
        objects.free(8, &Error::unavailable("lost"));
        objects.name(&peer(3), 3, ids[..3].iter()).unwrap();
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
