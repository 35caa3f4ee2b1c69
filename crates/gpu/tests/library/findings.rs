//! Wrong uses of a driver, each of which the simulated one finds under every policy, in one run.

use std::collections::BTreeSet;
use std::sync::Arc;

use tfrt_gpu::driver::sim::{FindingKind, Policy, Sim, SimOptions};
use tfrt_gpu::driver::{
    Argument, DevicePointer, Driver, Fill, GpuResult, Grid, Note, RawContext, RawEvent, RawPinned,
    RawStream, Transfer,
};
use tfrt_host::HostContext;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::memory::HostBuffer;

mod graphs;

const PTX: &str = include_str!("../../kernels/conformance.ptx");

/// A simulated driver of two devices, and two streams of the first.
struct Bed {
    sim: Sim,
    context: RawContext,
    streams: [RawStream; 2],
    host: HostContext,
}

impl Bed {
    fn new(policy: Policy, seed: u64) -> Bed {
        let sim = Sim::new(SimOptions {
            policy,
            seed,
            n_devices: 2,
            ..SimOptions::default()
        });
        let context = sim.retain_primary(sim.device(0).unwrap()).unwrap();
        let streams = [0; 2].map(|_| sim.create_stream(context).unwrap());
        let host = HostContext::builder(KernelRegistry::new()).build();
        Bed {
            sim,
            context,
            streams,
            host,
        }
    }

    fn block(&self, len: usize) -> DevicePointer {
        self.sim.allocate(self.context, len).unwrap()
    }

    fn event(&self) -> RawEvent {
        self.sim.create_event(self.context, false).unwrap()
    }

    fn fill(&self, stream: usize, at: DevicePointer) {
        // What is wrong may lose the context, which some cases go on with.
        let _queued = self
            .sim
            .fill(self.context, self.streams[stream], at, Fill::Byte(1), 64);
    }

    fn record(&self, stream: usize, event: RawEvent) {
        self.sim
            .record_event(self.context, event, self.streams[stream])
            .unwrap();
    }

    fn wait(&self, stream: usize, event: RawEvent) {
        self.sim
            .wait_event(self.context, self.streams[stream], event)
            .unwrap();
    }

    fn copy(&self, stream: usize, from: DevicePointer, to: DevicePointer) {
        let transfer = Transfer::Within {
            from,
            to,
            len_bytes: 64,
        };
        let _queued = self.sim.copy(self.context, self.streams[stream], transfer);
    }

    fn buffer(&self) -> HostBuffer {
        HostBuffer::zeroed(self.host.allocator(), 64, 64).unwrap()
    }

    /// Pins a buffer of the host, and lends it to the device.
    fn lent(&self) -> (RawPinned, DevicePointer) {
        let buffer = self.buffer();
        let pinned = self.sim.register(self.context, buffer.clone()).unwrap();
        let right = buffer.write_owned().unwrap();
        let at = self.sim.lend(self.context, pinned, right).unwrap();
        (pinned, at)
    }

    fn up(&self, stream: usize, from: &HostBuffer, to: DevicePointer) {
        let from = from.clone().read_owned().unwrap();
        self.sim
            .copy(
                self.context,
                self.streams[stream],
                Transfer::Up { from, to },
            )
            .unwrap();
    }

    fn note(&self, stream: usize, note: Note) {
        self.sim.note(self.context, self.streams[stream], note);
    }

    /// Launches the kernel of a name of a text.
    fn launch(
        &self,
        text: &str,
        name: &str,
        grid: Grid,
        arguments: &[Argument<'_>],
    ) -> GpuResult<()> {
        let module = self.sim.load_module(self.context, text.as_bytes())?;
        let function = self.sim.function(self.context, module, name)?;
        #[expect(
            unsafe_code,
            reason = "a simulated launch touches simulated memory alone"
        )]
        // SAFETY: the simulated driver checks each access.
        unsafe {
            self.sim
                .launch(self.context, self.streams[0], function, &grid, arguments)
        }
    }

    fn finish(&self) -> BTreeSet<FindingKind> {
        let _lost = self.sim.synchronize_context(self.context);
        self.sim.findings().iter().map(|found| found.kind).collect()
    }
}

type Case = (&'static str, FindingKind, fn(&Bed));

const CASES: &[Case] = &[
    (
        "a stream does not wait for another",
        FindingKind::Race,
        |bed| {
            let (one, two) = (bed.block(64), bed.block(64));
            bed.fill(0, one);
            bed.copy(1, one, two);
        },
    ),
    (
        "an event is recorded before what it is for",
        FindingKind::Race,
        |bed| {
            let (one, two, event) = (bed.block(64), bed.block(64), bed.event());
            bed.record(0, event);
            bed.fill(0, one);
            bed.wait(1, event);
            bed.copy(1, one, two);
        },
    ),
    (
        "a stream waits for an event before it is recorded",
        FindingKind::UnrecordedEvent,
        |bed| {
            let event = bed.event();
            bed.wait(1, event);
            bed.record(0, event);
        },
    ),
    ("the wrong stream waits", FindingKind::Race, |bed| {
        let (one, two, event) = (bed.block(64), bed.block(64), bed.event());
        bed.fill(0, one);
        bed.record(0, event);
        bed.wait(0, event);
        bed.copy(1, one, two);
    }),
    (
        "a stream writes what another still reads",
        FindingKind::Race,
        |bed| {
            let (one, two, event) = (bed.block(64), bed.block(64), bed.event());
            bed.fill(0, one);
            bed.record(0, event);
            bed.wait(1, event);
            bed.copy(1, one, two);
            bed.fill(0, one);
        },
    ),
    (
        "a stream writes what another reads beside it",
        FindingKind::Race,
        |bed| {
            let (one, event) = (bed.block(64), bed.event());
            let (two, three) = (bed.block(64), bed.block(64));
            bed.fill(0, one);
            bed.record(0, event);
            bed.wait(1, event);
            bed.copy(0, one, two);
            bed.copy(1, one, three);
            bed.fill(0, one);
        },
    ),
    (
        "memory is given to another stream without an event",
        FindingKind::Race,
        |bed| {
            let block = bed.block(64);
            bed.note(0, Note::Take(block, 64));
            bed.fill(0, block);
            bed.note(0, Note::Give(block, 64));
            bed.note(1, Note::Take(block, 64));
        },
    ),
    (
        "memory is used after it was given back",
        FindingKind::UseAfterFree,
        |bed| {
            let block = bed.block(64);
            bed.note(0, Note::Take(block, 64));
            bed.note(0, Note::Give(block, 64));
            bed.fill(0, block);
        },
    ),
    (
        "memory is used after it was freed",
        FindingKind::UseAfterFree,
        |bed| {
            let block = bed.block(64);
            bed.sim.free(bed.context, block).unwrap();
            bed.fill(0, block);
        },
    ),
    ("memory is freed twice", FindingKind::BadHandle, |bed| {
        let block = bed.block(64);
        bed.sim.free(bed.context, block).unwrap();
        bed.sim.free(bed.context, block).unwrap_err();
    }),
    (
        "what nobody has written is read",
        FindingKind::Uninitialised,
        |bed| {
            let (one, two) = (bed.block(64), bed.block(64));
            bed.copy(0, one, two);
        },
    ),
    (
        "what was written before memory was taken again is read",
        FindingKind::Uninitialised,
        |bed| {
            let (one, two) = (bed.block(64), bed.block(64));
            bed.fill(0, one);
            bed.note(0, Note::Give(one, 64));
            bed.note(0, Note::Take(one, 64));
            bed.copy(0, one, two);
        },
    ),
    (
        "a copy ends beyond a block",
        FindingKind::OutOfBounds,
        |bed| {
            let (one, two) = (bed.block(64), bed.block(63));
            bed.fill(0, one);
            bed.copy(0, one, two);
        },
    ),
    (
        "a kernel writes beyond a block",
        FindingKind::OutOfBounds,
        |bed| {
            let y = bed.block(63 * 4);
            let grid = Grid {
                shared_bytes: 256,
                ..Grid::linear(1, 64)
            };
            let _queued = bed.launch(PTX, "dynamic_shared", grid, &[Argument::Pointer(Some(y))]);
        },
    ),
    (
        "a kernel uses more shared memory than it has",
        FindingKind::OutOfBounds,
        |bed| {
            let y = bed.block(64 * 4);
            let grid = Grid {
                shared_bytes: 252,
                ..Grid::linear(1, 64)
            };
            let _queued = bed.launch(PTX, "dynamic_shared", grid, &[Argument::Pointer(Some(y))]);
        },
    ),
    (
        "a kernel is given too few arguments",
        FindingKind::OutOfBounds,
        |bed| {
            bed.launch(PTX, "axpy", Grid::linear(1, 32), &[Argument::U32(1)])
                .unwrap_err();
        },
    ),
    (
        "a kernel is given an argument of another size",
        FindingKind::OutOfBounds,
        |bed| {
            bed.launch(
                PTX,
                "dynamic_shared",
                Grid::linear(1, 32),
                &[Argument::U32(1)],
            )
            .unwrap_err();
        },
    ),
    (
        "an address is no multiple of four",
        FindingKind::Misaligned,
        |bed| {
            let text = PTX.replace(
                "ld.param.u64 %rd1, [arguments_param_0];",
                "ld.param.u64 %rd1, [arguments_param_0];\nadd.s64 %rd1, %rd1, 4;",
            );
            let y = bed.block(64);
            let arguments = [
                Argument::Pointer(Some(y)),
                Argument::F64(0.0),
                Argument::F32(0.0),
                Argument::U32(0),
                Argument::U64(0),
            ];
            let _queued = bed.launch(&text, "arguments", Grid::linear(1, 1), &arguments);
        },
    ),
    (
        "threads exchange numbers without a barrier",
        FindingKind::SharedRace,
        |bed| {
            let text = PTX.replace("bar.sync 0;\n", "");
            let y = bed.block(64 * 4);
            let grid = Grid {
                shared_bytes: 256,
                ..Grid::linear(1, 64)
            };
            let _queued = bed.launch(&text, "dynamic_shared", grid, &[Argument::Pointer(Some(y))]);
        },
    ),
    (
        "a barrier is not reached by all threads",
        FindingKind::Divergence,
        |bed| {
            let text = PTX.replace(
                "setp.ge.u32 %p1, %r1, %r2;",
                "setp.ge.u32 %p1, %r1, %r2;\n@%p1 bra $L__BB1_2;\nbar.sync 0;",
            );
            let (x, y) = (bed.block(256), bed.block(256));
            bed.fill(0, x);
            let pointers = [x, y].map(|at| Argument::Pointer(Some(at)));
            let arguments = [
                Argument::U32(8),
                Argument::F32(0.0),
                pointers[0],
                pointers[1],
            ];
            // The threads beyond the eighth go on to the end, behind the barrier.
            let text = text.replace("$L__BB1_2:\nret;", "$L__BB1_2:\nmov.u32 %r5, 1;\nret;");
            let _queued = bed.launch(&text, "axpy", Grid::linear(1, 32), &arguments);
        },
    ),
    (
        "a stream is used after it was destroyed",
        FindingKind::BadHandle,
        |bed| {
            let stream = bed.sim.create_stream(bed.context).unwrap();
            bed.sim.destroy_stream(bed.context, stream).unwrap();
            bed.sim.synchronize_stream(bed.context, stream).unwrap_err();
        },
    ),
    (
        "a stream of another context",
        FindingKind::WrongContext,
        |bed| {
            let other = bed.sim.retain_primary(bed.sim.device(1).unwrap()).unwrap();
            bed.sim
                .synchronize_stream(other, bed.streams[0])
                .unwrap_err();
        },
    ),
    (
        "an event of another context",
        FindingKind::WrongContext,
        |bed| {
            let other = bed.sim.retain_primary(bed.sim.device(1).unwrap()).unwrap();
            bed.sim.query_event(other, bed.event()).unwrap_err();
        },
    ),
    (
        "memory of another context",
        FindingKind::WrongContext,
        |bed| {
            let other = bed.sim.retain_primary(bed.sim.device(1).unwrap()).unwrap();
            let block = bed.sim.allocate(other, 64).unwrap();
            bed.fill(0, block);
        },
    ),
    (
        "a context that nobody retains",
        FindingKind::BadHandle,
        |bed| {
            let device = bed.sim.device(1).unwrap();
            let other = bed.sim.retain_primary(device).unwrap();
            bed.sim.release_primary(device).unwrap();
            bed.sim.create_stream(other).unwrap_err();
        },
    ),
    (
        "a command uses pinned memory that the host has back",
        FindingKind::UseAfterFree,
        |bed| {
            let (pinned, at) = bed.lent();
            bed.sim.take_back(bed.context, pinned).unwrap();
            bed.fill(0, at);
        },
    ),
];

/// Found only while commands wait: where each runs at its call nothing is wrong.
const PENDING: &[Case] = &[
    (
        "memory is freed while a command may use it",
        FindingKind::FreedInUse,
        |bed| {
            let block = bed.block(64);
            bed.fill(0, block);
            let _asked = bed.sim.query_stream(bed.context, bed.streams[1]);
            bed.sim.free(bed.context, block).unwrap();
        },
    ),
    (
        "a module is unloaded while a launch is queued",
        FindingKind::DestroyedInUse,
        |bed| {
            let module = bed.sim.load_module(bed.context, PTX.as_bytes()).unwrap();
            let function = bed.sim.function(bed.context, module, "nothing").unwrap();
            #[expect(
                unsafe_code,
                reason = "a simulated launch touches simulated memory alone"
            )]
            // SAFETY: the kernel takes and touches nothing.
            unsafe {
                bed.sim.launch(
                    bed.context,
                    bed.streams[0],
                    function,
                    &Grid::linear(1, 1),
                    &[],
                )
            }
            .unwrap();
            bed.sim.unload_module(bed.context, module).unwrap();
        },
    ),
    (
        "pinned memory is taken away while a copy may use it",
        FindingKind::DestroyedInUse,
        |bed| {
            let (buffer, block) = (bed.buffer(), bed.block(64));
            let pinned = bed.sim.register(bed.context, buffer.clone()).unwrap();
            bed.up(0, &buffer, block);
            bed.sim.unregister(bed.context, pinned).unwrap();
        },
    ),
];

#[test]
fn each_wrong_use_is_found_under_every_policy() {
    for (what, kind, run) in CASES.iter().chain(graphs::CASES) {
        for policy in Policy::ALL {
            for seed in 0..4 {
                let bed = Bed::new(policy, seed);
                run(&bed);
                let found = bed.finish();
                assert!(
                    found.contains(kind),
                    "{what}: {policy:?}, seed {seed}: {:?}",
                    bed.sim.findings()
                );
            }
        }
    }
}

#[test]
fn what_is_wrong_only_while_commands_wait_is_found_where_they_do() {
    for (what, kind, run) in PENDING {
        let bed = Bed::new(Policy::Lazy, 0);
        run(&bed);
        let found = bed.finish();
        assert!(found.contains(kind), "{what}: {:?}", bed.sim.findings());
    }
}

#[test]
fn what_is_right_is_no_finding() {
    for policy in Policy::ALL {
        for seed in 0..4 {
            let bed = Bed::new(policy, seed);
            let (one, two, event) = (bed.block(64), bed.block(64), bed.event());
            for _ in 0..3 {
                bed.fill(0, one);
                bed.record(0, event);
                bed.wait(1, event);
                bed.copy(1, one, two);
                bed.record(1, event);
                bed.wait(0, event);
            }
            bed.note(0, Note::Give(one, 64));
            bed.record(0, event);
            bed.wait(1, event);
            bed.note(1, Note::Take(one, 64));
            bed.fill(1, one);
            // Launches of one graph wait for each other, and take and give its memory each.
            let graph = bed.captured(|| {
                bed.note(0, Note::Take(two, 64));
                bed.fill(0, two);
                bed.note(0, Note::Give(two, 64));
            });
            bed.record(1, event);
            bed.wait(0, event);
            for stream in [0, 0, 1, 0, 1] {
                bed.replay(stream, graph);
            }
            bed.finish();
            assert_eq!(bed.sim.findings(), []);
        }
    }
}

#[test]
fn findings_name_both_places() {
    let bed = Bed::new(Policy::Eager, 0);
    CASES[0].2(&bed);
    let found = bed.sim.findings();
    assert_eq!(
        found[0].to_string(),
        "Race: copy within the device (number 1 of stream 2) reads at 0 of the block at 0x7f0000000000, which fill \
         (number 1 of stream 1) used, and neither waits for the other"
    );
}

#[test]
fn an_instruction_that_is_not_known_is_refused_when_the_module_is_loaded() {
    let sim: Arc<dyn Driver> = Arc::new(Sim::new(SimOptions::default()));
    let context = sim.retain_primary(sim.device(0).unwrap()).unwrap();
    let text = PTX.replacen("mul.lo.s32", "mul24.lo.s32", 1);
    let error = sim.load_module(context, text.as_bytes()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("CUDA_ERROR_INVALID_PTX: line ")
            && message.contains("unknown 'mul24.lo.s32'"),
        "{message}"
    );
}

#[test]
fn pinned_memory_is_not_taken_back_while_a_command_may_use_it() {
    for policy in Policy::ALL {
        let bed = Bed::new(policy, 0);
        let (pinned, at) = bed.lent();
        bed.fill(0, at);
        bed.sim.take_back(bed.context, pinned).unwrap();
        let found = bed.finish();
        // A command that has not run by then finds it gone.
        let kinds = [FindingKind::Race, FindingKind::UseAfterFree];
        assert!(kinds.iter().any(|kind| found.contains(kind)), "{policy:?}");
    }
}
