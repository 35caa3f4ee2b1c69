//! [`Plan`]: a graph, and the memory that its commands use.

#![expect(
    unsafe_code,
    reason = "launches a graph whose memory and modules it holds"
)]

use std::sync::{Arc, Mutex, PoisonError};

use tfrt_host::{AnyAsyncValue, Error};
use tfrt_tensor::{DeviceTensor, Tensor};

use crate::context::Graph;
use crate::device::Shared;

/// A graph of a section, and the memory that it reads and writes.
pub(super) struct Plan {
    // Before the memory that it uses.
    graph: Graph,
    /// Operands that are the same in all calls, by their places.
    fixed: Vec<(usize, DeviceTensor)>,
    /// Where the graph reads what calls bring.
    inputs: Vec<DeviceTensor>,
    /// Its results.
    results: Vec<DeviceTensor>,
    /// The memory of what it makes on its way.
    _lane: Arc<Shared>,
    /// The device's stream, on which it is launched.
    main: Arc<Shared>,
    // Held while operands, launch and results are queued, one behind the other.
    turn: Mutex<()>,
}

impl Plan {
    pub(super) fn new(
        graph: Graph,
        (main, lane): (Arc<Shared>, Arc<Shared>),
        fixed: Vec<(usize, DeviceTensor)>,
        inputs: Vec<DeviceTensor>,
        results: Vec<DeviceTensor>,
    ) -> Plan {
        Plan {
            graph,
            fixed,
            inputs,
            results,
            _lane: lane,
            main,
            turn: Mutex::default(),
        }
    }

    pub(super) fn results(&self) -> &[DeviceTensor] {
        &self.results
    }

    /// Returns whether a call's fixed operands are those that the graph reads.
    pub(super) fn fits(&self, arguments: &[AnyAsyncValue]) -> bool {
        let is_same = |own: &DeviceTensor, other: &DeviceTensor| {
            let (own, other) = (own.elements(), other.elements());
            Arc::ptr_eq(own.memory(), other.memory()) && own.range() == other.range()
        };
        self.fixed.iter().all(|(at, own)| {
            let given = arguments.get(*at).and_then(AnyAsyncValue::get::<Tensor>);
            matches!(given, Some(Tensor::Device(given)) if is_same(own, given))
        })
    }

    /// Queues the copies of what a call brings, the graph, and the copies of its results.
    pub(super) fn launch<'t>(
        &self,
        varying: &[DeviceTensor],
        results: impl Iterator<Item = &'t DeviceTensor>,
    ) -> Result<(), Error> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        for (from, to) in varying.iter().zip(&self.inputs) {
            self.main.copy_within(from.elements(), to.elements())?;
        }
        // SAFETY: the plan holds all memory that the commands use, and the device the modules. Work that uses the memory
        // is queued here alone, on one stream.
        unsafe { self.graph.launch(&self.main.stream) }?;
        for (from, to) in self.results.iter().zip(results) {
            self.main.copy_within(from.elements(), to.elements())?;
        }
        Ok(())
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // The memory goes back to the driver. A lost context runs nothing any more.
        let _done = self.main.stream.synchronize();
    }
}
