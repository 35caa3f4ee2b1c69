//! [`Entered`]: the state of a simulated driver during a call, and the checks that calls have in common.

use std::sync::{Arc, MutexGuard};

use super::clock::{Clock, Epoch};
use super::memory::{CommandId, CommandInfo};
use super::queue::{Command, Queues, Work};
use super::{ContextState, FindingKind, Policy, State, ptx};
use crate::driver::{
    GpuError, GpuErrorKind, GpuResult, RawContext, RawEvent, RawFunction, RawStream,
};

/// The state during a call.
pub(super) struct Entered<'s> {
    pub(super) state: MutexGuard<'s, State>,
    pub(super) call: &'static str,
}

impl Entered<'_> {
    pub(super) fn refused<T>(&self, code: &'static str) -> GpuResult<T> {
        Err(GpuError::new(self.call, code, GpuErrorKind::Refused))
    }

    /// Returns an error with a finding.
    pub(super) fn found<T>(
        &mut self,
        code: &'static str,
        kind: FindingKind,
        text: String,
    ) -> GpuResult<T> {
        let text = format!("{}: {text}", self.call);
        self.state.memory.find(kind, text.clone());
        Err(GpuError::new(self.call, code, GpuErrorKind::Refused).detail(text))
    }

    /// Checks that a context is held, and not lost.
    pub(super) fn context(&mut self, context: RawContext) -> GpuResult<()> {
        let at = usize::try_from(context.0).unwrap_or(0).wrapping_sub(1);
        match self.state.contexts.get(at) {
            Some(ContextState {
                lost: Some(reason), ..
            }) => {
                let error = GpuError::new(
                    self.call,
                    "CUDA_ERROR_ILLEGAL_ADDRESS",
                    GpuErrorKind::Sticky,
                );
                Err(error.detail(reason.clone()))
            }
            Some(found) if found.n_held > 0 => Ok(()),
            _ => self.found(
                "CUDA_ERROR_INVALID_CONTEXT",
                FindingKind::BadHandle,
                format!("no context {}", context.0),
            ),
        }
    }

    /// Checks a stream; returns its index.
    pub(super) fn stream(&mut self, context: RawContext, stream: RawStream) -> GpuResult<usize> {
        self.context(context)?;
        let at = usize::try_from(stream.0).unwrap_or(0).wrapping_sub(1);
        match self.state.queues.all.get(at) {
            Some(queue) if queue.is_destroyed => self.found(
                "CUDA_ERROR_INVALID_HANDLE",
                FindingKind::BadHandle,
                format!("stream {} was destroyed", stream.0),
            ),
            Some(queue) if queue.context != context.0 => self.of_another("stream", stream.0),
            Some(_) => Ok(at),
            None => self.found(
                "CUDA_ERROR_INVALID_HANDLE",
                FindingKind::BadHandle,
                format!("no stream {}", stream.0),
            ),
        }
    }

    pub(super) fn of_another<T>(&mut self, what: &str, number: u64) -> GpuResult<T> {
        let text = format!("{what} {number} is of another context");
        self.found("CUDA_ERROR_INVALID_HANDLE", FindingKind::WrongContext, text)
    }

    pub(super) fn event(&mut self, context: RawContext, event: RawEvent) -> GpuResult<()> {
        self.context(context)?;
        match self.state.events.get(&event.0) {
            Some(found) if found.context != context.0 => self.of_another("event", event.0),
            Some(_) => Ok(()),
            None => self.found(
                "CUDA_ERROR_INVALID_HANDLE",
                FindingKind::BadHandle,
                format!("no event {}", event.0),
            ),
        }
    }

    /// Returns the device of a context.
    pub(super) fn device_of(&self, context: u64) -> usize {
        let at = usize::try_from(context).unwrap_or(0).wrapping_sub(1);
        self.state.contexts.get(at).map_or(0, |found| found.device)
    }

    pub(super) fn handle(&mut self) -> u64 {
        self.state.next += 1;
        self.state.next
    }

    /// Puts a command into a stream.
    pub(super) fn push(&mut self, stream: usize, name: &str, work: Work) -> Epoch {
        let state = &mut *self.state;
        let queue = &mut state.queues.all[stream];
        queue.clock.join(&state.host);
        let epoch = Epoch {
            index: stream + 1,
            number: queue.clock.advance(stream + 1),
        };
        let info = CommandInfo {
            epoch,
            clock: queue.clock.clone(),
            context: queue.context,
            name: format!("{name} (number {} of stream {})", epoch.number, stream + 1),
        };
        state.memory.commands.push(info);
        let id = state.memory.commands.len() as CommandId;
        state.queues.push(stream, Command { id, epoch, work });
        if state.queues.policy == Policy::Eager
            && let Err((context, trap)) = state.queues.run(usize::MAX, &mut state.memory)
        {
            state.lose(context, trap.0);
        }
        epoch
    }

    /// Runs commands until something holds, which some of them will bring about.
    pub(super) fn run_until(
        &mut self,
        context: RawContext,
        holds: impl Fn(&Queues) -> bool,
    ) -> GpuResult<()> {
        while !holds(&self.state.queues) {
            let State { queues, memory, .. } = &mut *self.state;
            match queues.run(1, memory) {
                Ok(0) => return Ok(()),
                Ok(_) => (),
                Err((context, trap)) => self.state.lose(context, trap.0),
            }
        }
        // What ran may have lost the context.
        self.context(context)
    }

    /// Lets the host know what a clock knows.
    pub(super) fn learn(&mut self, clock: &Clock) {
        let state = &mut *self.state;
        state.host.join(clock);
        let host = &state.host;
        state.queues.kept.retain(|kept| !kept.epoch.is_before(host));
    }
}

impl Entered<'_> {
    pub(super) fn module(
        &mut self,
        context: RawContext,
        module: u64,
    ) -> GpuResult<Arc<ptx::Module>> {
        self.context(context)?;
        match self.state.modules.get(&module).cloned() {
            Some((owner, _)) if owner != context.0 => self.of_another("module", module),
            Some((_, found)) => Ok(found),
            None => self.found(
                "CUDA_ERROR_INVALID_HANDLE",
                FindingKind::BadHandle,
                format!("no module {module}"),
            ),
        }
    }

    pub(super) fn kernel(
        &mut self,
        context: RawContext,
        function: RawFunction,
    ) -> GpuResult<(Arc<ptx::Module>, usize)> {
        let module = self.module(context, function.0 >> 16)?;
        Ok((module, (function.0 & 0xffff) as usize))
    }
}
