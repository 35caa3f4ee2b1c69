//! Numbers that name things of many tasks: processes, tasks, contexts, objects.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tfrt_async::{InPlace, Value};

/// Random bits that tell one start of a process from all others.
///
/// They are unique, and no secret: whoever asks a task is told them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Incarnation(pub u128);

impl Incarnation {
    /// Draws one.
    pub fn draw() -> Incarnation {
        Incarnation(u128::from(random()) << 64 | u128::from(random()))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The name of a task within one context on one host: a random number, which is never sent by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskHandle(pub u64);

impl TaskHandle {
    /// Draws one. It is not 0, which names no task.
    pub fn draw() -> TaskHandle {
        TaskHandle(random().max(1))
    }
}

impl fmt::Display for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task_handle[{}]", self.0)
    }
}

impl Value for TaskHandle {
    const NAME: &'static str = "!tfrt_dist.task_handle";
    type Storage = InPlace;
}

/// The number of a context, which all of its tasks know it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextId(pub u64);

impl ContextId {
    /// Draws one.
    pub fn draw() -> ContextId {
        ContextId(random())
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of an object within a context: who chose it, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The random number of the task that chose the name.
    pub prefix: u64,
    /// The number among that task's names.
    pub local: u64,
}

/// The name of an object on a device of some task. Two with the same key are equal, whatever the device.
#[derive(Clone, Debug)]
pub struct ObjectId {
    /// The name.
    pub key: ObjectKey,
    /// The full name of the device.
    pub device: Arc<str>,
}

impl PartialEq for ObjectId {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for ObjectId {}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectKey { prefix, local } = self.key;
        let device = &self.device;
        write!(
            f,
            "RemoteObjectId{{prefix_id: {prefix} local_id: {local} device: {device}}}"
        )
    }
}

/// Returns a random number: a hash under keys that the system draws.
fn random() -> u64 {
    static DRAWN: AtomicU64 = AtomicU64::new(0);
    let mut hasher = RandomState::new().build_hasher();
    // Ordering: a statistic, which makes two numbers of one thread differ.
    hasher.write_u64(DRAWN.fetch_add(1, Ordering::Relaxed));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_numbers_differ() {
        assert_ne!(Incarnation::draw(), Incarnation::draw());
        assert_ne!(TaskHandle::draw(), TaskHandle::draw());
        assert_ne!(ContextId::draw(), ContextId::draw());
    }

    #[test]
    fn objects_are_equal_whatever_their_device() {
        let key = ObjectKey {
            prefix: 1,
            local: 2,
        };
        let on = |device: &str| ObjectId {
            key,
            device: device.into(),
        };
        assert_eq!(on("a"), on("b"));
        assert_eq!(
            on("a").to_string(),
            "RemoteObjectId{prefix_id: 1 local_id: 2 device: a}"
        );
        assert_eq!(TaskHandle(7).to_string(), "task_handle[7]");
    }
}
