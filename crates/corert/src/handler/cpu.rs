//! [`CpuOpHandler`]: operations of a registry, on the processor.

use std::sync::Arc;

use tfrt_host::{DeviceId, Error};

use super::{OpHandler, unsupported};
use crate::definition::OpRegistry;
use crate::dispatch::RegisteredOp;
use crate::op::Op;

/// A handler that finds operations in a registry, and asks the next handler for others.
pub struct CpuOpHandler {
    name: String,
    registry: Arc<OpRegistry>,
    device: DeviceId,
    next: Option<Arc<dyn OpHandler>>,
}

impl CpuOpHandler {
    /// Returns a handler of the operations in `registry`, whose results are on `device`, in the memory of the host.
    pub fn new(
        name: &str,
        registry: Arc<OpRegistry>,
        device: DeviceId,
        next: Option<Arc<dyn OpHandler>>,
    ) -> CpuOpHandler {
        CpuOpHandler {
            name: name.to_owned(),
            registry,
            device,
            next,
        }
    }
}

impl OpHandler for CpuOpHandler {
    fn name(&self) -> &str {
        &self.name
    }

    fn device(&self) -> DeviceId {
        self.device
    }

    fn find(&self, op: &str) -> Result<Arc<dyn Op>, Error> {
        if let Some(definition) = self.registry.get(op) {
            return Ok(Arc::new(RegisteredOp {
                definition: definition.clone(),
                device: self.device,
            }));
        }
        match &self.next {
            Some(next) => next.find(op),
            None => Err(unsupported(op)),
        }
    }
}

impl std::fmt::Debug for CpuOpHandler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuOpHandler")
            .field("name", &self.name)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}
