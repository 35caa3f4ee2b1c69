//! The devices of a host: memories, and the processors that work on them.
//!
//! Every host has [`DeviceId::HOST`], its own memory and processors. Others are added, each by a crate of its own
//! that implements the contract `Device`: memory, and copies from and to it. A program and a user name a device as
//! `GPU:0`; the name is looked up once, and from then on the device is its number.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tfrt_async::{Error, Heap, Value};

#[cfg(feature = "tensor")]
pub mod conformance;
#[cfg(feature = "tensor")]
mod contract;
#[cfg(feature = "tensor")]
mod host;
#[cfg(feature = "tensor")]
mod route;
#[cfg(feature = "tensor")]
mod thread;

#[cfg(feature = "tensor")]
pub use contract::{
    Device, DeviceBuffer, DeviceMemory, DeviceSlice, MemoryKind, Source, Target, TensorText,
};
#[cfg(feature = "tensor")]
pub use host::HostDevice;
#[cfg(feature = "tensor")]
pub use route::{Route, route};
#[cfg(feature = "tensor")]
pub use thread::{ByteBudget, ByteReservation, DeviceThread};

/// The name of the device that every host has.
const HOST_NAME: &str = "CPU:0";

/// The number of a device in its host's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(u16);

impl DeviceId {
    /// The host's memory and processors.
    pub const HOST: DeviceId = DeviceId(0);

    /// Returns the index in the host's list.
    pub fn index(self) -> usize {
        self.0.into()
    }
}

/// The kind of a device: devices of one kind have the same kernels. A word, compared as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceKind(&'static str);

impl DeviceKind {
    /// The processors of the host, with its memory.
    pub const CPU: DeviceKind = DeviceKind("cpu");

    /// Returns the kind of this name.
    pub const fn new(name: &'static str) -> DeviceKind {
        DeviceKind(name)
    }

    /// Returns a kind whose name becomes known at run time: a plugin's. Each name is kept once, for the life of the
    /// process.
    pub fn interned(name: &str) -> DeviceKind {
        static KINDS: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());
        let mut kinds = KINDS.write().unwrap_or_else(PoisonError::into_inner);
        let known = kinds.iter().find(|known| **known == name);
        DeviceKind(known.copied().unwrap_or_else(|| {
            let name: &'static str = Box::leak(name.into());
            kinds.push(name);
            name
        }))
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceKind({})", self.0)
    }
}

/// One device of a host, by number and name: `!tfrt.device` in programs. Clones share the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceRef {
    id: DeviceId,
    kind: DeviceKind,
    name: Arc<str>,
}

impl DeviceRef {
    /// Returns the number.
    pub fn id(&self) -> DeviceId {
        self.id
    }

    /// Returns the kind.
    pub fn kind(&self) -> DeviceKind {
        self.kind
    }

    /// Returns the name: `CPU:0`.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Value for DeviceRef {
    const NAME: &'static str = "!tfrt.device";
    type Storage = Heap;
}

/// The devices of a host. None is ever taken out.
///
/// # Examples
///
/// ```
/// use tfrt_host::{DeviceId, DeviceKind, HostContext, kernel::KernelRegistry};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let device = host.devices().get("CPU:0").unwrap();
/// assert_eq!((device.id(), device.kind()), (DeviceId::HOST, DeviceKind::CPU));
/// ```
#[derive(Debug)]
pub struct Devices(
    // Invariant: the host's is first, the number of each is its place, and names differ.
    RwLock<Vec<Entry>>,
);

struct Entry {
    device: DeviceRef,
    #[cfg(feature = "tensor")]
    contract: Arc<dyn Device>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.device, f)
    }
}

impl Devices {
    /// Returns a list of the host's own device.
    pub(crate) fn new() -> Devices {
        Devices(RwLock::new(vec![host_entry(DeviceId::HOST, HOST_NAME)]))
    }

    /// Adds a device that is the host's memory and processors under one more name; returns the device that has the name
    /// already, if there is one of that kind.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if a device of another kind has the name, `ResourceExhausted` if there are 65,536 devices.
    pub fn add_host(&self, name: &str) -> Result<DeviceRef, Error> {
        match self.get(name) {
            Some(present) if present.kind == DeviceKind::CPU => Ok(present),
            _ => self.add_entry(|id| host_entry(id, name)),
        }
    }

    /// Adds a device, which is made for its number: its memory says it.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if a device has its name, `ResourceExhausted` if there are 65,536 devices.
    #[cfg(feature = "tensor")]
    pub fn add(&self, make: impl FnOnce(DeviceId) -> Arc<dyn Device>) -> Result<DeviceRef, Error> {
        self.add_entry(|id| {
            let contract = make(id);
            let device = DeviceRef {
                id,
                kind: contract.kind(),
                name: contract.name().into(),
            };
            Entry { device, contract }
        })
    }

    fn add_entry(&self, make: impl FnOnce(DeviceId) -> Entry) -> Result<DeviceRef, Error> {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let Ok(id) = u16::try_from(list.len()) else {
            return Err(Error::resource_exhausted(
                "a host has 65,536 devices at most",
            ));
        };
        let entry = make(DeviceId(id));
        let device = entry.device.clone();
        if list
            .iter()
            .any(|present| present.device.name == device.name)
        {
            let name = device.name.escape_debug();
            return Err(Error::already_exists(format!(
                "two devices are called '{name}'"
            )));
        }
        list.push(entry);
        Ok(device)
    }

    /// Returns the device of this name.
    pub fn get(&self, name: &str) -> Option<DeviceRef> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut devices = list.iter().map(|entry| &entry.device);
        devices.find(|device| &*device.name == name).cloned()
    }

    /// Returns the device of this number.
    pub fn by_id(&self, id: DeviceId) -> Option<DeviceRef> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        list.get(id.index()).map(|entry| entry.device.clone())
    }

    /// Returns the name of a device, for messages.
    pub fn name_of(&self, id: DeviceId) -> Arc<str> {
        match self.by_id(id) {
            Some(device) => device.name,
            None => "(unknown)".into(),
        }
    }

    /// Returns all devices, in the order of their numbers.
    pub fn list(&self) -> Vec<DeviceRef> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        list.iter().map(|entry| entry.device.clone()).collect()
    }

    /// Returns the implementation of a device.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the device is not one of this host.
    #[cfg(feature = "tensor")]
    pub fn contract(&self, device: &DeviceRef) -> Result<Arc<dyn Device>, Error> {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match list.get(device.id.index()) {
            Some(entry) if entry.device == *device => Ok(entry.contract.clone()),
            _ => {
                let name = device.name.escape_debug();
                let message = format!("the device {name} belongs to another host");
                Err(Error::invalid_argument(message))
            }
        }
    }
}

fn host_entry(id: DeviceId, name: &str) -> Entry {
    let device = DeviceRef {
        id,
        kind: DeviceKind::CPU,
        name: name.into(),
    };
    Entry {
        #[cfg(feature = "tensor")]
        contract: Arc::new(HostDevice::new(id, name)),
        device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_found_by_name_and_by_number() {
        let devices = Devices::new();
        let one = devices.add_host("CPU:1").unwrap();
        assert_eq!(devices.add_host("CPU:1").unwrap(), one);
        assert_eq!((one.id().index(), one.kind().name()), (1, "cpu"));
        assert_eq!(devices.get("CPU:1"), Some(one.clone()));
        assert_eq!(devices.by_id(one.id()), Some(one));
        assert_eq!(&*devices.name_of(DeviceId::HOST), "CPU:0");
        assert!(devices.get("CPU:2").is_none() && devices.by_id(DeviceId(2)).is_none());
        assert_eq!(devices.list().len(), 2);
    }

    #[test]
    fn kinds_of_one_name_are_one() {
        let kind = DeviceKind::interned(&["fa", "ke"].concat());
        assert_eq!(kind, DeviceKind::new("fake"));
        assert_eq!(
            kind.name().as_ptr(),
            DeviceKind::interned("fake").name().as_ptr()
        );
    }

    #[cfg(feature = "tensor")]
    #[test]
    fn two_devices_of_one_name_are_refused() {
        let devices = Devices::new();
        let add = |name: &'static str| devices.add(|id| Arc::new(HostDevice::new(id, name)));
        assert!(add("CPU:7").is_ok());
        let error = add("CPU:7").unwrap_err();
        assert_eq!(error.code(), tfrt_async::ErrorCode::AlreadyExists);
        assert_eq!(error.message(), "two devices are called 'CPU:7'");
    }

    #[cfg(feature = "tensor")]
    #[test]
    fn devices_of_another_host_are_refused() {
        let (devices, others) = (Devices::new(), Devices::new());
        let one = others.add_host("CPU:1").unwrap();
        devices.add_host("CPU:2").unwrap();
        let error = devices.contract(&one).err().unwrap();
        assert_eq!(error.message(), "the device CPU:1 belongs to another host");
    }
}
