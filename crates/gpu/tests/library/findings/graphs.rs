//! Wrong uses of captures and graphs.

use tfrt_gpu::driver::sim::FindingKind;
use tfrt_gpu::driver::{Driver, Grid, Note, RawExecutable, Transfer};

use super::{Bed, Case, PTX};

impl Bed {
    /// Captures what `work` gives to the first stream.
    pub(super) fn captured(&self, work: impl FnOnce()) -> RawExecutable {
        self.sim
            .begin_capture(self.context, self.streams[0])
            .unwrap();
        work();
        let graph = self.sim.end_capture(self.context, self.streams[0]).unwrap();
        let made = self.sim.instantiate(self.context, graph).unwrap();
        self.sim.destroy_graph(self.context, graph).unwrap();
        made
    }

    pub(super) fn replay(&self, stream: usize, graph: RawExecutable) {
        #[expect(
            unsafe_code,
            reason = "a simulated launch touches simulated memory alone"
        )]
        // SAFETY: the simulated driver checks each access. What is wrong may lose the context.
        let _queued = unsafe {
            self.sim
                .launch_graph(self.context, self.streams[stream], graph)
        };
    }
}

pub(super) const CASES: &[Case] = &[
    (
        "a graph and a stream use the same memory, unordered",
        FindingKind::Race,
        |bed| {
            let (one, two) = (bed.block(64), bed.block(64));
            let graph = bed.captured(|| bed.fill(0, one));
            bed.replay(0, graph);
            bed.copy(1, one, two);
        },
    ),
    (
        "a graph that was launched before writes what another stream reads",
        FindingKind::Race,
        |bed| {
            let (one, two, event) = (bed.block(64), bed.block(64), bed.event());
            let graph = bed.captured(|| bed.fill(0, one));
            bed.replay(0, graph);
            bed.record(0, event);
            bed.wait(1, event);
            bed.copy(1, one, two);
            bed.replay(0, graph);
        },
    ),
    (
        "memory of a graph is freed before a launch",
        FindingKind::UseAfterFree,
        |bed| {
            let block = bed.block(64);
            let graph = bed.captured(|| bed.fill(0, block));
            bed.replay(0, graph);
            bed.sim
                .synchronize_stream(bed.context, bed.streams[0])
                .unwrap();
            bed.sim.free(bed.context, block).unwrap();
            bed.replay(0, graph);
        },
    ),
    (
        "memory of a graph is given back before a launch",
        FindingKind::UseAfterFree,
        |bed| {
            let block = bed.block(64);
            bed.note(0, Note::Take(block, 64));
            let graph = bed.captured(|| bed.fill(0, block));
            bed.replay(0, graph);
            bed.note(0, Note::Give(block, 64));
            bed.replay(0, graph);
        },
    ),
    (
        "memory of a graph has gone to another stream",
        FindingKind::Race,
        |bed| {
            let (block, event) = (bed.block(64), bed.event());
            bed.note(0, Note::Take(block, 64));
            let graph = bed.captured(|| bed.fill(0, block));
            bed.note(0, Note::Give(block, 64));
            bed.record(0, event);
            bed.wait(1, event);
            bed.note(1, Note::Take(block, 64));
            bed.replay(0, graph);
        },
    ),
    (
        "a graph reads what no launch has written",
        FindingKind::Uninitialised,
        |bed| {
            let (one, two) = (bed.block(64), bed.block(64));
            let graph = bed.captured(|| bed.copy(0, one, two));
            bed.replay(0, graph);
        },
    ),
    (
        "a module is unloaded before a launch of a graph",
        FindingKind::DestroyedInUse,
        |bed| {
            let text = PTX.as_bytes();
            let module = bed.sim.load_module(bed.context, text).unwrap();
            let function = bed.sim.function(bed.context, module, "nothing").unwrap();
            let graph = bed.captured(|| {
                #[expect(
                    unsafe_code,
                    reason = "a simulated launch touches simulated memory alone"
                )]
                // SAFETY: the kernel touches nothing.
                unsafe {
                    let grid = Grid::linear(1, 1);
                    bed.sim
                        .launch(bed.context, bed.streams[0], function, &grid, &[])
                        .unwrap();
                }
            });
            bed.sim.unload_module(bed.context, module).unwrap();
            bed.replay(0, graph);
        },
    ),
    (
        "a stream that captures is waited for",
        FindingKind::Capture,
        |bed| {
            let (context, stream) = (bed.context, bed.streams[0]);
            bed.sim.begin_capture(context, stream).unwrap();
            bed.sim.synchronize_stream(context, stream).unwrap_err();
            bed.sim.end_capture(context, stream).unwrap_err();
        },
    ),
    (
        "the host's bytes are copied in a capture",
        FindingKind::Capture,
        |bed| {
            let (context, stream) = (bed.context, bed.streams[0]);
            let (from, to) = (bed.buffer(), bed.block(64));
            bed.sim.begin_capture(context, stream).unwrap();
            let from = from.read_owned().unwrap();
            let transfer = Transfer::Up { from, to };
            bed.sim.copy(context, stream, transfer).unwrap_err();
            bed.sim.end_capture(context, stream).unwrap_err();
        },
    ),
    (
        "a graph is launched in another context",
        FindingKind::WrongContext,
        |bed| {
            let graph = bed.captured(|| ());
            let other = bed.sim.retain_primary(bed.sim.device(1).unwrap()).unwrap();
            bed.sim.destroy_executable(other, graph).unwrap_err();
        },
    ),
];
