//! The devices of a host, by name.

use std::sync::{Arc, Mutex, PoisonError};

use tfrt_async::{Heap, Value};

/// Something that holds tensors and runs kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    type_name: Arc<str>,
    name: Arc<str>,
}

impl Device {
    /// Names a device of a type: `cpu`, `CPU:0`.
    pub fn new(type_name: &str, name: &str) -> Self {
        Device {
            type_name: type_name.into(),
            name: name.into(),
        }
    }

    /// The name of its type.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Its own name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Value for Device {
    const NAME: &'static str = "!tfrt.device";
    type Storage = Heap;
}

/// The devices of a host.
#[derive(Debug, Default)]
pub struct DeviceManager {
    devices: Mutex<Vec<Device>>,
}

impl DeviceManager {
    /// Adds a device, or returns the one that has its name already.
    pub fn add(&self, device: Device) -> Device {
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(present) = devices.iter().find(|present| present.name == device.name) {
            return present.clone();
        }
        devices.push(device.clone());
        device
    }

    /// Finds a device by name.
    pub fn get(&self, name: &str) -> Option<Device> {
        let devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        devices.iter().find(|device| &*device.name == name).cloned()
    }

    /// All devices, in the order in which they were added.
    pub fn list(&self) -> Vec<Device> {
        self.devices
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
