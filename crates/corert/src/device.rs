//! [`DeviceId`]: a device as a number, so that handles need not count it.

use std::sync::{PoisonError, RwLock};

use tfrt_host::Device;

/// A device. Devices of one name are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DeviceId(u32);

/// The devices that some handle may be on, by number. There are few, and none goes.
static DEVICES: RwLock<Vec<Device>> = RwLock::new(Vec::new());

impl DeviceId {
    /// The number of a device.
    pub(crate) fn of(device: &Device) -> DeviceId {
        let find = |devices: &[Device]| devices.iter().position(|known| known == device);
        let known = find(&DEVICES.read().unwrap_or_else(PoisonError::into_inner));
        let index = known.unwrap_or_else(|| {
            let mut devices = DEVICES.write().unwrap_or_else(PoisonError::into_inner);
            find(&devices).unwrap_or_else(|| {
                devices.push(device.clone());
                devices.len() - 1
            })
        });
        DeviceId(u32::try_from(index).expect("devices are few"))
    }

    /// The device.
    pub(crate) fn device(self) -> Device {
        let devices = DEVICES.read().unwrap_or_else(PoisonError::into_inner);
        devices[self.0 as usize].clone()
    }
}
