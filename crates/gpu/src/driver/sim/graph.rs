//! [`Capture`] and [`Graph`]: commands that a stream records instead of running them, and what is made of them.
//!
//! A graph that is launched puts its commands into the stream one by one, so that each is checked as any other command
//! is: whether its memory is there, and what else uses it meanwhile.

use std::sync::{Arc, Weak};

use super::call::Entered;
use super::clock::{Clock, Epoch};
use super::ptx::Module;
use super::queue::Work;
use super::{FindingKind, State};
use crate::driver::{
    DevicePointer, Fill, GpuResult, Grid, Note, RawContext, RawExecutable, RawGraph, RawStream,
    Transfer,
};

/// A command of a graph.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Copy {
        from: DevicePointer,
        to: DevicePointer,
        len_bytes: usize,
    },
    Fill {
        at: u64,
        value: Fill,
        n: usize,
    },
    /// The module is the user's to keep.
    Launch {
        module: Weak<Module>,
        kernel: usize,
        grid: Grid,
        parameters: Vec<u8>,
    },
    Note(Note),
}

/// A capture that is under way.
#[derive(Debug, Default)]
pub(super) struct Capture {
    nodes: Vec<(String, Node)>,
    // Whether a call has spoiled it.
    is_spoiled: bool,
}

/// Commands that were captured.
#[derive(Debug)]
pub(super) struct Graph {
    context: u64,
    nodes: Arc<Vec<(String, Node)>>,
}

/// A graph that can be launched.
#[derive(Debug)]
pub(super) struct Executable {
    context: u64,
    nodes: Arc<Vec<(String, Node)>>,
    // The last launch, behind which the next one runs.
    last: Option<(Epoch, Clock)>,
}

impl Entered<'_> {
    /// Returns an error of kind `Refused`, with a finding, if a stream captures: the call spoils the capture.
    pub(super) fn expect_no_capture(&mut self, stream: usize) -> GpuResult<()> {
        let Some(capture) = &mut self.state.queues.all[stream].capture else {
            return Ok(());
        };
        capture.is_spoiled = true;
        let text = format!("stream {} captures meanwhile", stream + 1);
        let code = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
        self.found(code, FindingKind::Capture, text)
    }

    /// As [`expect_no_capture`](Self::expect_no_capture), for all streams of a context.
    pub(super) fn expect_no_capture_in(&mut self, context: RawContext) -> GpuResult<()> {
        let all = 0..self.state.queues.all.len();
        let own = all.filter(|at| self.state.queues.all[*at].context == context.0);
        let own: Vec<usize> = own.collect();
        own.into_iter()
            .try_for_each(|stream| self.expect_no_capture(stream))
    }

    /// Puts a command into a stream, or into what the stream captures.
    pub(super) fn push_or_record(&mut self, stream: usize, name: &str, work: Work) {
        let Some(capture) = &mut self.state.queues.all[stream].capture else {
            self.push(stream, name, work);
            return;
        };
        let node = match work {
            Work::Copy(Transfer::Within {
                from,
                to,
                len_bytes,
            }) => Node::Copy {
                from,
                to,
                len_bytes,
            },
            Work::Fill { at, value, n } => Node::Fill { at, value, n },
            Work::Launch {
                module,
                kernel,
                grid,
                parameters,
            } => Node::Launch {
                module: Arc::downgrade(&module),
                kernel,
                grid,
                parameters,
            },
            Work::Note(note) => Node::Note(note),
            // Invariant: calls that make other work ask `expect_no_capture` first.
            _ => {
                capture.is_spoiled = true;
                return;
            }
        };
        capture.nodes.push((name.to_owned(), node));
    }

    pub(super) fn begin_capture(
        &mut self,
        context: RawContext,
        stream: RawStream,
    ) -> GpuResult<()> {
        let at = self.stream(context, stream)?;
        let queue = &mut self.state.queues.all[at];
        if let Some(capture) = &mut queue.capture {
            capture.is_spoiled = true;
            return self.refused("CUDA_ERROR_ILLEGAL_STATE");
        }
        queue.capture = Some(Capture::default());
        Ok(())
    }

    pub(super) fn end_capture(
        &mut self,
        context: RawContext,
        stream: RawStream,
    ) -> GpuResult<RawGraph> {
        let at = self.stream(context, stream)?;
        match self.state.queues.all[at].capture.take() {
            None => self.refused("CUDA_ERROR_ILLEGAL_STATE"),
            Some(Capture {
                is_spoiled: true, ..
            }) => self.refused("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
            Some(Capture { nodes, .. }) => {
                let handle = self.handle();
                let graph = Graph {
                    context: context.0,
                    nodes: Arc::new(nodes),
                };
                self.state.graphs.insert(handle, graph);
                Ok(RawGraph(handle))
            }
        }
    }

    fn graph(&mut self, context: RawContext, graph: RawGraph) -> GpuResult<&Graph> {
        self.context(context)?;
        let owner = self.state.graphs.get(&graph.0).map(|graph| graph.context);
        self.of_context(context, owner, ("graph", graph.0))?;
        Ok(&self.state.graphs[&graph.0])
    }

    fn executable(
        &mut self,
        context: RawContext,
        executable: RawExecutable,
    ) -> GpuResult<&mut Executable> {
        self.context(context)?;
        let found = self.state.executables.get(&executable.0);
        let owner = found.map(|executable| executable.context);
        self.of_context(context, owner, ("executable graph", executable.0))?;
        let found = self.state.executables.get_mut(&executable.0);
        Ok(found.expect("it was found"))
    }

    /// Checks that something is there, and is of a context.
    fn of_context(
        &mut self,
        context: RawContext,
        owner: Option<u64>,
        (what, number): (&str, u64),
    ) -> GpuResult<()> {
        match owner {
            Some(owner) if owner == context.0 => Ok(()),
            Some(_) => self.of_another(what, number),
            None => {
                let text = format!("no {what} {number}");
                self.found("CUDA_ERROR_INVALID_HANDLE", FindingKind::BadHandle, text)
            }
        }
    }

    pub(super) fn instantiate(
        &mut self,
        context: RawContext,
        graph: RawGraph,
    ) -> GpuResult<RawExecutable> {
        let nodes = self.graph(context, graph)?.nodes.clone();
        let handle = self.handle();
        let executable = Executable {
            context: context.0,
            nodes,
            last: None,
        };
        self.state.executables.insert(handle, executable);
        Ok(RawExecutable(handle))
    }

    pub(super) fn destroy_graph(&mut self, context: RawContext, graph: RawGraph) -> GpuResult<()> {
        self.graph(context, graph)?;
        self.state.graphs.remove(&graph.0);
        Ok(())
    }

    pub(super) fn destroy_executable(
        &mut self,
        context: RawContext,
        executable: RawExecutable,
    ) -> GpuResult<()> {
        self.executable(context, executable)?;
        self.state.executables.remove(&executable.0);
        Ok(())
    }

    pub(super) fn launch_graph(
        &mut self,
        context: RawContext,
        stream: RawStream,
        executable: RawExecutable,
    ) -> GpuResult<()> {
        let at = self.stream(context, stream)?;
        self.expect_no_capture(at)?;
        let found = self.executable(context, executable)?;
        let (nodes, last) = (found.nodes.clone(), found.last.clone());
        if let Some((epoch, clock)) = last
            && epoch.index != at + 1
        {
            self.state.queues.all[at].clock.join(&clock);
            self.push(at, "the wait of a graph", Work::Wait(epoch));
        }
        for (number, (name, node)) in nodes.iter().enumerate() {
            let name = format!("{name} (number {} of graph {})", number + 1, executable.0);
            let Some(work) = node.to_work() else {
                let text = format!("{name} needs a module that was unloaded");
                self.state.lose(context.0, text.clone());
                self.state.memory.find(FindingKind::DestroyedInUse, text);
                return self.context(context);
            };
            // What ran at once may have lost the context.
            self.context(context)?;
            self.push(at, &name, work);
        }
        let epoch = self.push(at, "the end of a graph", Work::Record);
        let clock = self.state.queues.all[at].clock.clone();
        self.executable(context, executable)?.last = Some((epoch, clock));
        self.context(context)
    }
}

impl Node {
    /// Returns the command; `None` if its module is there no more.
    fn to_work(&self) -> Option<Work> {
        Some(match self {
            Node::Copy {
                from,
                to,
                len_bytes,
            } => Work::Copy(Transfer::Within {
                from: *from,
                to: *to,
                len_bytes: *len_bytes,
            }),
            Node::Fill { at, value, n } => Work::Fill {
                at: *at,
                value: *value,
                n: *n,
            },
            Node::Launch {
                module,
                kernel,
                grid,
                parameters,
            } => Work::Launch {
                module: module.upgrade()?,
                kernel: *kernel,
                grid: *grid,
                parameters: parameters.clone(),
            },
            Node::Note(note) => Work::Note(*note),
        })
    }
}

impl State {
    /// Returns the number of streams that capture.
    pub(super) fn n_captures(&self) -> usize {
        let all = self.queues.all.iter();
        all.filter(|queue| queue.capture.is_some()).count()
    }
}
