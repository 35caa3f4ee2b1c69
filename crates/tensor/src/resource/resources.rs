//! [`Resources`]: the resources of a host, by container, type and name.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_host::{Error, HostAllocator, HostContext};

use super::{Resource, Slot, Variable};
use crate::{DenseHostTensor, Tensor, npz, safetensors};

/// The container of resources that state none.
pub const DEFAULT_CONTAINER: &str = "localhost";

/// The resources of a host, by container, type and name: each is there once, until it is destroyed.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::DenseHostTensor;
/// use tfrt_tensor::resource::{Resources, Variable};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let resources = Resources::of(&host);
/// let slot = resources.slot("", "w", Variable::new);
/// let weights = DenseHostTensor::from_slice(host.allocator(), &[2], &[1.0_f32, 2.0])?;
/// slot.get::<Variable>()?.assign(weights.into(), host.allocator())?;
///
/// let stored = resources.save_safetensors()?;
/// slot.destroy();
/// resources.load_safetensors(&stored, host.allocator())?;
/// assert_eq!(slot.get::<Variable>()?.metadata().unwrap().to_string(), "f32 [2]");
/// # Ok::<(), tfrt_host::Error>(())
/// ```
#[derive(Default)]
pub struct Resources {
    slots: Mutex<BTreeMap<Key, Arc<Slot>>>,
}

/// Container, name and type of a resource.
type Key = (String, String, TypeId);

impl Resources {
    /// Returns resources of their own, without a host.
    pub fn new() -> Resources {
        Resources::default()
    }

    /// Returns the resources of a host.
    pub fn of(host: &HostContext) -> Arc<Resources> {
        host.shared(|_| Resources::new())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the slot of a name in a container, for a resource of type `T`; makes it if there is none. An empty
    /// container is [`DEFAULT_CONTAINER`].
    pub fn slot<T: Resource>(
        &self,
        container: &str,
        name: &str,
        make: impl FnOnce() -> T,
    ) -> Arc<Slot> {
        let key = key::<T>(container, name);
        let mut slots = self.lock();
        if let Some(slot) = slots.get(&key) {
            return slot.clone();
        }
        let slot = Slot::named(&key.0, name, Box::new(make()));
        slots.insert(key, slot.clone());
        slot
    }

    /// Returns the slot of a name in a container, if there is one for a resource of type `T`.
    pub fn find<T: Resource>(&self, container: &str, name: &str) -> Option<Arc<Slot>> {
        self.lock().get(&key::<T>(container, name)).cloned()
    }

    /// Destroys all resources of a container; returns how many there were.
    pub fn clear(&self, container: &str) -> usize {
        let container = container_of(container);
        let mut gone = Vec::new();
        self.lock().retain(|key, slot| {
            let stays = key.0 != container;
            if !stays {
                gone.push(slot.clone());
            }
            stays
        });
        gone.iter().filter(|slot| slot.destroy()).count()
    }

    /// Returns the names and tensors of all variables of the default container that have one, by name. A variable that
    /// is being changed is waited for: not to be called on a worker. Calls that have not begun are not in it.
    ///
    /// # Errors
    ///
    /// `ResourceExhausted` if there is no memory for a copy.
    pub fn variables(
        &self,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Vec<(String, Tensor)>, Error> {
        let slots: Vec<Arc<Slot>> = self.lock().values().cloned().collect();
        let mut all = Vec::new();
        for slot in slots {
            let Ok(variable) = slot.get::<Variable>() else {
                continue;
            };
            if slot.container() != DEFAULT_CONTAINER {
                continue;
            }
            let holding = variable.lock().acquire_blocking(tfrt_host::LockMode::Read);
            let tensor = variable.read(allocator)?;
            drop(holding);
            all.extend(tensor.map(|tensor| (slot.name().to_owned(), tensor)));
        }
        Ok(all)
    }

    /// Writes all variables of the default container as a file of safetensors.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a variable that such a file can't hold, `ResourceExhausted` if there is no memory.
    pub fn save_safetensors(&self) -> Result<Vec<u8>, Error> {
        let all = self.variables(&system())?;
        let mut dense: Vec<(&str, &DenseHostTensor)> = Vec::with_capacity(all.len());
        for (name, tensor) in &all {
            dense.push((name, tensor.as_dense().map_err(|error| of(name, &error))?));
        }
        safetensors::write(dense)
    }

    /// Writes all variables of the default container as an archive of NumPy.
    ///
    /// # Errors
    ///
    /// Those of [`save_safetensors`](Self::save_safetensors).
    pub fn save_npz(&self) -> Result<Vec<u8>, Error> {
        let all = self.variables(&system())?;
        npz::write(all.iter().map(|(name, tensor)| (name.as_str(), tensor)))
    }

    /// Assigns the tensors of a file of safetensors to the variables of their names, which are made if they are not
    /// there. All or none are assigned.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the bytes are no such file, `ResourceExhausted` if there is no memory.
    pub fn load_safetensors(
        &self,
        bytes: &[u8],
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<usize, Error> {
        let file = tfrt_host::memory::HostBuffer::copy_of(allocator, bytes);
        let file =
            file.ok_or_else(|| Error::resource_exhausted("there is no memory for the file"))?;
        let all = safetensors::read(&file, allocator)?;
        self.assign_all(
            all.into_iter().map(|(name, tensor)| (name, tensor.into())),
            allocator,
        )
    }

    /// Assigns the arrays of an archive of NumPy to the variables of their names, as
    /// [`load_safetensors`](Self::load_safetensors).
    ///
    /// # Errors
    ///
    /// Those of [`load_safetensors`](Self::load_safetensors).
    pub fn load_npz(
        &self,
        bytes: &[u8],
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<usize, Error> {
        self.assign_all(npz::read(bytes, allocator)?.into_iter(), allocator)
    }

    fn assign_all(
        &self,
        all: impl Iterator<Item = (String, Tensor)>,
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<usize, Error> {
        let mut n = 0;
        for (name, tensor) in all {
            let slot = self.slot(DEFAULT_CONTAINER, &name, Variable::new);
            let variable = slot.get::<Variable>()?;
            let holding = variable.lock().acquire_blocking(tfrt_host::LockMode::Write);
            variable.assign(tensor, allocator)?;
            drop(holding);
            n += 1;
        }
        Ok(n)
    }
}

fn key<T: Resource>(container: &str, name: &str) -> Key {
    let container = container_of(container).to_owned();
    (container, name.to_owned(), TypeId::of::<T>())
}

fn container_of(container: &str) -> &str {
    match container {
        "" => DEFAULT_CONTAINER,
        stated => stated,
    }
}

fn system() -> Arc<dyn HostAllocator> {
    Arc::new(tfrt_host::SystemAllocator::new())
}

#[cold]
fn of(name: &str, error: &Error) -> Error {
    let name = name.escape_debug();
    Error::new(
        error.code(),
        format!("variable '{name}': {}", error.message()),
    )
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lock().values()).finish()
    }
}
