//! Captures and graphs of NVIDIA's driver.
//!
//! Captures are relaxed, so that any thread may launch into the stream, and other calls of that thread go on. What the
//! driver would refuse for a stream that captures is refused before it is asked.

#![expect(unsafe_code, reason = "calls of the driver's functions")]

use std::ptr::null_mut;
use std::sync::{Arc, PoisonError};

use cudarc::driver::sys;

use super::owned::{Capture, Context, Executable, Graph, Stream, call, lock, pointer};
use super::{Cuda, SUCCESS, expect_same};
use crate::driver::load::GraphFunctions;
use crate::driver::{
    GpuError, GpuErrorKind, GpuResult, RawContext, RawExecutable, RawGraph, RawStream, no_graphs,
};

impl Stream {
    /// Refuses a call that can't be part of a graph, if the stream captures, and spoils the capture.
    pub(super) fn expect_no_capture(&self, call: &'static str) -> GpuResult<()> {
        match &mut *lock(&self.capture) {
            None => Ok(()),
            Some(capture) => {
                capture.is_spoiled = true;
                Err(refused(call, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"))
            }
        }
    }
}

fn refused(call: &'static str, code: &'static str) -> GpuError {
    GpuError::new(call, code, GpuErrorKind::Refused)
}

impl Cuda {
    fn graph_functions(&self) -> GpuResult<&GraphFunctions> {
        self.functions().graphs.as_ref().ok_or_else(no_graphs)
    }

    /// Refuses a call while a stream of the context captures.
    pub(super) fn expect_no_capture_in(
        &self,
        context: &Arc<Context>,
        call: &'static str,
    ) -> GpuResult<()> {
        let streams = self.0.streams.0.read();
        let streams = streams.unwrap_or_else(PoisonError::into_inner);
        let mut own = streams
            .values()
            .filter(|stream| Arc::ptr_eq(&stream.context, context));
        own.try_for_each(|stream| stream.expect_no_capture(call))
    }

    pub(super) fn begin(&self, context: RawContext, stream: RawStream) -> GpuResult<()> {
        let call = "cuStreamBeginCapture";
        let graphs = self.graph_functions()?;
        let stream = self.stream(context, stream, call)?;
        let mut capture = lock(&stream.capture);
        if let Some(capture) = &mut *capture {
            capture.is_spoiled = true;
            return Err(refused(call, "CUDA_ERROR_ILLEGAL_STATE"));
        }
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED;
        let code = call!(graphs, begin(pointer(stream.address), mode));
        self.check_in(&stream.context, call, code)?;
        *capture = Some(Capture::default());
        Ok(())
    }

    pub(super) fn end(&self, context: RawContext, stream: RawStream) -> GpuResult<RawGraph> {
        let call = "cuStreamEndCapture";
        let graphs = self.graph_functions()?;
        let stream = self.stream(context, stream, call)?;
        let Some(capture) = lock(&stream.capture).take() else {
            return Err(refused(call, "CUDA_ERROR_ILLEGAL_STATE"));
        };
        let mut graph: sys::CUgraph = null_mut();
        let code = call!(graphs, end(pointer(stream.address), &raw mut graph));
        let graph = (code == SUCCESS).then(|| Graph {
            functions: self.0.functions.clone(),
            context: stream.context.clone(),
            address: graph.expose_provenance(),
            last: lock(&stream.context.last).clone(),
        });
        if capture.is_spoiled {
            return Err(refused(call, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
        }
        self.check_in(&stream.context, call, code)?;
        let handle = self.handle();
        self.0
            .graphs
            .add(handle, Arc::new(graph.ok_or_else(no_graphs)?));
        Ok(RawGraph(handle))
    }

    pub(super) fn make(&self, context: RawContext, graph: RawGraph) -> GpuResult<RawExecutable> {
        let call = "cuGraphInstantiate";
        let graphs = self.graph_functions()?;
        let entered = self.enter(context, call)?;
        let graph = self.0.graphs.get(graph.0, call)?;
        expect_same(&entered, &graph.context, call)?;
        let mut executable: sys::CUgraphExec = null_mut();
        let code = call!(
            graphs,
            instantiate(&raw mut executable, pointer(graph.address), 0)
        );
        self.check_in(&entered, call, code)?;
        let handle = self.handle();
        let executable = Executable {
            functions: self.0.functions.clone(),
            context: entered,
            address: executable.expose_provenance(),
            last: graph.last.clone(),
        };
        self.0.executables.add(handle, Arc::new(executable));
        Ok(RawExecutable(handle))
    }

    pub(super) fn take_graph(&self, context: RawContext, graph: RawGraph) -> GpuResult<()> {
        let call = "cuGraphDestroy";
        let entered = self.enter(context, call)?;
        let found = self.0.graphs.get(graph.0, call)?;
        expect_same(&entered, &found.context, call)?;
        self.0.graphs.take(graph.0, call).map(drop)
    }

    pub(super) fn launch_made(
        &self,
        context: RawContext,
        stream: RawStream,
        executable: RawExecutable,
    ) -> GpuResult<()> {
        let call = "cuGraphLaunch";
        let graphs = self.graph_functions()?;
        let stream = self.stream(context, stream, call)?;
        stream.expect_no_capture(call)?;
        let executable = self.0.executables.get(executable.0, call)?;
        expect_same(&stream.context, &executable.context, call)?;
        if let Some(kernel) = &executable.last {
            *lock(&stream.context.last) = Some(kernel.clone());
        }
        let queue = pointer(stream.address);
        let code = call!(graphs, launch(pointer(executable.address), queue));
        self.check_in(&stream.context, call, code)
    }

    pub(super) fn take_made(
        &self,
        context: RawContext,
        executable: RawExecutable,
    ) -> GpuResult<()> {
        let call = "cuGraphExecDestroy";
        let entered = self.enter(context, call)?;
        let found = self.0.executables.get(executable.0, call)?;
        expect_same(&entered, &found.context, call)?;
        self.0.executables.take(executable.0, call).map(drop)
    }
}
