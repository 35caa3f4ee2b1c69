//! [`route`]: the choice of how bytes get from one device to another.
//!
//! | From | To | Route |
//! | --- | --- | --- |
//! | host | host | nothing is copied: the memory is one |
//! | host | any other | the other copies |
//! | any other | host | that one copies |
//! | a device | itself | the device copies, if at all |
//! | a device | another that it [reaches directly](Device::direct), or that reaches it | that one copies |
//! | a device | any other | through the host: two copies |

use std::sync::Arc;

use super::Device;

/// A route of bytes from one device to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Both have the host's memory.
    Shared,
    /// The source's device copies.
    BySource,
    /// The target's device copies.
    ByTarget,
    /// The source's device copies to the host, then the target's from there.
    ThroughHost,
}

/// Returns the route from one device to another.
pub fn route(from: &Arc<dyn Device>, to: &Arc<dyn Device>) -> Route {
    match (from.memory().is_host(), to.memory().is_host()) {
        (true, true) => Route::Shared,
        (true, false) => Route::ByTarget,
        (false, true) => Route::BySource,
        (false, false) if Arc::ptr_eq(from, to) || from.direct(&**to) => Route::BySource,
        (false, false) if to.direct(&**from) => Route::ByTarget,
        (false, false) => Route::ThroughHost,
    }
}

#[cfg(test)]
mod tests {
    use tfrt_async::{AnyAsyncValue, AsyncValue, Chain, Error};

    use super::*;
    use crate::RequestContext;
    use crate::device::{DeviceKind, DeviceMemory, MemoryKind, Source, Target};

    /// A device that reaches those whose names begin as its own does.
    struct Named(&'static str, MemoryKind);

    impl Device for Named {
        fn kind(&self) -> DeviceKind {
            DeviceKind::new("named")
        }

        fn name(&self) -> &str {
            self.0
        }

        fn memory(&self) -> MemoryKind {
            self.1
        }

        fn allocate(&self, _: &RequestContext, _: usize, _: usize) -> Result<DeviceMemory, Error> {
            Err(Error::unimplemented("no memory"))
        }

        fn copy(&self, _: Source, _: Target, _: &[AnyAsyncValue]) -> AsyncValue<Chain> {
            AsyncValue::from_error(Error::unimplemented("no copies"))
        }

        fn direct(&self, other: &dyn Device) -> bool {
            self.0 == "reaching" && other.memory() == MemoryKind::Device
        }
    }

    #[test]
    fn every_pair_of_devices_has_a_way() {
        let device = |name, memory| -> Arc<dyn Device> { Arc::new(Named(name, memory)) };
        let host = device("host", MemoryKind::Host);
        let pinned = device("pinned", MemoryKind::HostPinned);
        let reaching = device("reaching", MemoryKind::Device);
        let other = device("other", MemoryKind::Device);
        let remote = device("remote", MemoryKind::Remote);
        let table = [
            (&host, &pinned, Route::Shared),
            (&host, &other, Route::ByTarget),
            (&remote, &pinned, Route::BySource),
            (&other, &other, Route::BySource),
            (&reaching, &other, Route::BySource),
            (&other, &reaching, Route::ByTarget),
            (&reaching, &remote, Route::ThroughHost),
            (&remote, &other, Route::ThroughHost),
        ];
        for (from, to, expected) in table {
            assert_eq!(route(from, to), expected, "{from:?} to {to:?}");
        }
    }
}
