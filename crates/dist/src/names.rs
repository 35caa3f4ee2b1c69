//! Values of programs that name objects of other tasks: [`RemoteId`], and [`RemoteChains`], the latest chain of each task.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tfrt_async::{Error, Heap, Value};

use crate::context::{ContextRef, DistributedContext};
use crate::functions::ID_TYPE;
use crate::ids::{ObjectId, ObjectKey, TaskHandle};

/// The name of an object as a value of programs. An object that was made for a program is deleted when the last copy of
/// its name is dropped.
#[derive(Clone, Debug)]
pub struct RemoteId {
    /// The name.
    pub id: ObjectId,
    _lease: Option<Arc<Lease>>,
}

/// The right to an object of another task. Dropped, the object is deleted.
struct Lease {
    context: Weak<DistributedContext>,
    task: TaskHandle,
    key: ObjectKey,
    device: Arc<str>,
}

impl RemoteId {
    /// Returns the name of an object that somebody else deletes.
    pub fn lent(id: ObjectId) -> RemoteId {
        RemoteId { id, _lease: None }
    }

    /// Returns the name of an object that a task is going to make, to be deleted with the last copy of the name.
    pub fn leased(context: &DistributedContext, task: TaskHandle, id: ObjectId) -> RemoteId {
        let lease = Lease {
            context: context.downgrade(),
            task,
            key: id.key,
            device: id.device.clone(),
        };
        RemoteId {
            id,
            _lease: Some(Arc::new(lease)),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(context) = self.context.upgrade() {
            let id = ObjectId {
                key: self.key,
                device: self.device.clone(),
            };
            context.delete_later(self.task, id);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({}, {})", self.key.prefix, self.key.local)
    }
}

impl Value for RemoteId {
    const NAME: &'static str = ID_TYPE;
    type Storage = Heap;
}

/// The latest chain of each task, by which a program orders what it has done there.
#[derive(Clone)]
pub struct RemoteChains(Arc<Chains>);

struct Chains {
    context: ContextRef,
    latest: Mutex<HashMap<TaskHandle, RemoteId>>,
}

impl RemoteChains {
    /// Begins with the ready chains of a context.
    pub fn new(context: &ContextRef) -> RemoteChains {
        let chains = context.ready_chains().into_iter();
        let latest = chains.map(|(task, chain)| (task, RemoteId::lent(chain)));
        RemoteChains(Arc::new(Chains {
            context: context.clone(),
            latest: Mutex::new(latest.collect()),
        }))
    }

    /// Returns the context.
    pub fn context(&self) -> &ContextRef {
        &self.0.context
    }

    /// Returns the latest chain of a task.
    ///
    /// # Errors
    ///
    /// `TaskNotFound` if there is no such task, `NotFound` if it has no chain.
    pub fn get(&self, task: TaskHandle) -> Result<RemoteId, Error> {
        let name = self.0.context.task_name(task)?;
        let latest = self.lock().get(&task).cloned();
        latest.ok_or_else(|| Error::not_found(format!("there is no chain of the task {name}")))
    }

    /// Sets the latest chain of a task; returns the one before it.
    ///
    /// # Errors
    ///
    /// `TaskNotFound` if there is no such task.
    pub fn set(&self, task: TaskHandle, chain: RemoteId) -> Result<Option<RemoteId>, Error> {
        self.0.context.task_name(task)?;
        Ok(self.lock().insert(task, chain))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TaskHandle, RemoteId>> {
        self.0.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Value for RemoteChains {
    const NAME: &'static str = "!tfrt_dist.remote_chain_manager";
    type Storage = Heap;
}

impl fmt::Debug for RemoteChains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.lock().iter()).finish()
    }
}
