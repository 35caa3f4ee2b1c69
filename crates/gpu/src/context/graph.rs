//! [`Graph`]: commands that a stream has recorded, which are launched together.

#![expect(unsafe_code, reason = "passes on what its caller answers for")]

use std::sync::Arc;

use super::{Context, Stream};
use crate::driver::{GpuError, GpuResult, RawExecutable};

/// Commands that a stream has recorded. One call launches all of them, which costs the host less than their own calls.
///
/// A graph holds neither the memory nor the modules that its commands use: whoever launches it sees that they are there.
pub struct Graph {
    context: Arc<Context>,
    raw: RawExecutable,
}

/// A capture of a stream, which ends at the latest when this is dropped.
pub(crate) struct Capture {
    stream: Arc<Stream>,
    is_over: bool,
}

impl Stream {
    /// Records what `work` gives to the stream, which does not run: launches, fills, copies within the device. Nobody else
    /// gives something to the stream meanwhile.
    ///
    /// # Errors
    ///
    /// Those of `work`; `Unavailable` if the driver has no graphs; `CUDA_ERROR_STREAM_CAPTURE_INVALIDATED` if there was a
    /// call for the stream that can't be recorded.
    pub fn capture<E: From<GpuError>>(
        self: &Arc<Stream>,
        work: impl FnOnce(&Stream) -> Result<(), E>,
    ) -> Result<Graph, E> {
        let capture = Capture::begin(self)?;
        work(self)?;
        Ok(capture.end()?)
    }
}

impl Capture {
    pub(crate) fn begin(stream: &Arc<Stream>) -> GpuResult<Capture> {
        stream
            .context
            .driver()
            .begin_capture(stream.context.raw, stream.raw)?;
        Ok(Capture {
            stream: stream.clone(),
            is_over: false,
        })
    }

    /// Returns what was recorded.
    pub(crate) fn end(mut self) -> GpuResult<Graph> {
        let (driver, context) = (self.stream.context.driver(), self.stream.context.raw);
        // Where this fails it is tried once more, when the capture is dropped.
        let graph = driver.end_capture(context, self.stream.raw)?;
        self.is_over = true;
        let made = driver.instantiate(context, graph);
        let destroyed = driver.destroy_graph(context, graph);
        let graph = Graph {
            context: self.stream.context.clone(),
            raw: made?,
        };
        destroyed?;
        Ok(graph)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let (driver, context) = (self.stream.context.driver(), self.stream.context.raw);
        // What was recorded is of no use. If this fails the context is lost, and the stream with it.
        if let Ok(graph) = driver.end_capture(context, self.stream.raw) {
            let _destroyed = driver.destroy_graph(context, graph);
        }
    }
}

impl Graph {
    /// Queues all commands on a stream of the same context. Launches of one graph run one after the other.
    ///
    /// # Safety
    ///
    /// The memory and the modules that the commands use are there, and nobody else uses that memory before the stream has
    /// passed.
    ///
    /// # Errors
    ///
    /// The driver's; that of a lost context.
    pub unsafe fn launch(&self, stream: &Stream) -> GpuResult<()> {
        // SAFETY: the caller's.
        unsafe {
            self.context
                .driver()
                .launch_graph(self.context.raw, stream.raw, self.raw)
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let _destroyed = self
            .context
            .driver()
            .destroy_executable(self.context.raw, self.raw);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::sim::{Sim, SimOptions};
    use crate::driver::{Driver, Fill, GpuErrorKind};

    #[test]
    fn a_capture_ends_also_when_its_work_fails() {
        let sim = Sim::new(SimOptions::default());
        let context = Context::primary(Arc::new(sim.clone()), 0).unwrap();
        let stream = Arc::new(Stream::new(context.clone()).unwrap());
        let block = sim.allocate(context.raw(), 64).unwrap();
        let fill = |value| {
            let fill = Fill::Byte(value);
            sim.fill(context.raw(), stream.raw(), block, fill, 64)
        };
        let failed: GpuResult<Graph> = stream.capture(|_| {
            fill(1)?;
            Err(GpuError::new("", "", GpuErrorKind::Refused))
        });
        assert!(failed.is_err());
        stream.synchronize().unwrap();
        let graph: Graph = stream.capture(|_| fill(2)).unwrap();
        // SAFETY: the block is there, and nobody else uses it.
        unsafe { graph.launch(&stream) }.unwrap();
        drop(graph);
        stream.synchronize().unwrap();
        sim.free(context.raw(), block).unwrap();
        drop((stream, context));
        assert_eq!(sim.findings(), []);
        assert_eq!(sim.leaks(), [""; 0]);
    }
}
