//! Devices as values.

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{Chain, DeviceRef, Error, HostContext};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry.add("tfrt.get_device", get_device);
}

/// `%d = tfrt.get_device %c {device_name = "CPU:0"}`
fn get_device(_: Chain, device_name: Attr<&str>, host: &HostContext) -> Result<DeviceRef, Error> {
    let name = *device_name;
    host.devices()
        .get(name)
        .ok_or_else(|| Error::unknown(format!("cannot find device {name}")))
}
