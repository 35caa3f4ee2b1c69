//! Calls of libraries, and exchanges between devices.

use std::sync::{Arc, Mutex};

use super::call::Entered;
use super::{Work, exchange};
use crate::driver::library::{LibraryCall, Member};
use crate::driver::{GpuResult, RawContext, RawStream};

impl Entered<'_> {
    pub(super) fn call(
        &mut self,
        context: RawContext,
        stream: RawStream,
        library: LibraryCall,
    ) -> GpuResult<()> {
        let at = self.stream(context, stream)?;
        self.expect_no_capture(at)?;
        let name = match &library {
            LibraryCall::Scale { .. } => "a sum of vectors",
            LibraryCall::Product { .. } => "a product of matrices",
            LibraryCall::Triangular { .. } => "the solution of a triangular system",
            LibraryCall::Cholesky { .. } => "a Cholesky factorisation",
            LibraryCall::Fourier { .. } => "a Fourier transform",
            LibraryCall::Pool { .. } => "a pooling",
            LibraryCall::Convolution { .. } => "a convolution",
        };
        self.push(at, name, Work::Call(Box::new(library)));
        self.context(context)
    }

    pub(super) fn exchange(&mut self, members: &[Member]) -> GpuResult<()> {
        let mut streams = Vec::new();
        for member in members {
            let at = self.stream(member.context, member.stream)?;
            self.expect_no_capture(at)?;
            streams.push(at);
        }
        let all = members.iter().map(|member| member.exchanges.clone());
        let exchanges = Arc::new(all.collect());
        let given = Arc::new(Mutex::new(vec![Vec::new(); members.len()]));
        let part = |rank| exchange::Part {
            rank,
            exchanges: Arc::clone(&exchanges),
            given: given.clone(),
        };
        let mut epochs = Vec::new();
        for (rank, at) in streams.iter().enumerate() {
            epochs.push(self.push(*at, "the giving of an exchange", Work::Give(part(rank))));
        }
        for (rank, at) in streams.iter().enumerate() {
            for (epoch, other) in epochs.iter().zip(&streams) {
                if other != at {
                    let clock = self.state.queues.all[*other].clock.clone();
                    self.state.queues.all[*at].clock.join(&clock);
                    self.push(*at, "wait", Work::Wait(*epoch));
                }
            }
            self.push(*at, "the taking of an exchange", Work::Take(part(rank)));
        }
        members
            .iter()
            .try_for_each(|member| self.context(member.context))
    }
}
