//! Calls on streams and events: order, and waiting for it.

use std::time::Duration;

use super::call::Entered;
use super::{Event, FindingKind, State, Work};
use crate::driver::{GpuResult, RawContext, RawEvent, RawStream};

impl Entered<'_> {
    pub(super) fn create_stream(&mut self, context: RawContext) -> GpuResult<RawStream> {
        self.context(context)?;
        let at = self.state.queues.add(context.0);
        Ok(RawStream(at as u64 + 1))
    }

    pub(super) fn destroy_stream(
        &mut self,
        context: RawContext,
        stream: RawStream,
    ) -> GpuResult<()> {
        // Copies that the host has not heard of keep their rights no longer.
        self.synchronize_stream(context, stream)?;
        let at = self.stream(context, stream)?;
        self.state.queues.all[at].is_destroyed = true;
        Ok(())
    }

    pub(super) fn query_stream(
        &mut self,
        context: RawContext,
        stream: RawStream,
    ) -> GpuResult<bool> {
        let at = self.stream(context, stream)?;
        self.expect_no_capture(at)?;
        let State { queues, memory, .. } = &mut *self.state;
        if let Err((context, trap)) = queues.run(1, memory) {
            self.state.lose(context, trap.0);
        }
        self.context(context)?;
        let is_idle = self.state.queues.is_idle(at);
        if is_idle {
            let clock = self.state.queues.all[at].clock.clone();
            self.learn(&clock);
        }
        Ok(is_idle)
    }

    pub(super) fn synchronize_stream(
        &mut self,
        context: RawContext,
        stream: RawStream,
    ) -> GpuResult<()> {
        let at = self.stream(context, stream)?;
        self.expect_no_capture(at)?;
        self.run_until(context, |queues| queues.is_idle(at))?;
        let clock = self.state.queues.all[at].clock.clone();
        self.learn(&clock);
        Ok(())
    }

    pub(super) fn wait_event(
        &mut self,
        context: RawContext,
        stream: RawStream,
        event: RawEvent,
    ) -> GpuResult<()> {
        let at = self.stream(context, stream)?;
        self.expect_no_capture(at)?;
        self.event(context, event)?;
        let Some((epoch, clock)) = self.state.events[&event.0].record.clone() else {
            let text = format!(
                "stream {} waits for event {}, which was never recorded",
                stream.0, event.0
            );
            self.state.memory.find(FindingKind::UnrecordedEvent, text);
            return Ok(());
        };
        self.state.queues.all[at].clock.join(&clock);
        self.push(at, "wait", Work::Wait(epoch));
        Ok(())
    }

    pub(super) fn create_event(
        &mut self,
        context: RawContext,
        is_timing: bool,
    ) -> GpuResult<RawEvent> {
        self.context(context)?;
        let handle = self.handle();
        self.state.events.insert(
            handle,
            Event {
                context: context.0,
                is_timing,
                record: None,
            },
        );
        Ok(RawEvent(handle))
    }

    pub(super) fn destroy_event(&mut self, context: RawContext, event: RawEvent) -> GpuResult<()> {
        self.event(context, event)?;
        self.state.events.remove(&event.0);
        Ok(())
    }

    pub(super) fn record_event(
        &mut self,
        context: RawContext,
        event: RawEvent,
        stream: RawStream,
    ) -> GpuResult<()> {
        let at = self.stream(context, stream)?;
        self.expect_no_capture(at)?;
        self.event(context, event)?;
        let epoch = self.push(at, "record", Work::Record);
        let clock = self.state.queues.all[at].clock.clone();
        if let Some(event) = self.state.events.get_mut(&event.0) {
            event.record = Some((epoch, clock));
        }
        Ok(())
    }

    pub(super) fn query_event(&mut self, context: RawContext, event: RawEvent) -> GpuResult<bool> {
        self.event(context, event)?;
        let State { queues, memory, .. } = &mut *self.state;
        if let Err((context, trap)) = queues.run(1, memory) {
            self.state.lose(context, trap.0);
        }
        self.context(context)?;
        let Some((epoch, clock)) = self.state.events[&event.0].record.clone() else {
            return Ok(true);
        };
        let is_done = self.state.queues.is_done(epoch);
        if is_done {
            self.learn(&clock);
        }
        Ok(is_done)
    }

    pub(super) fn synchronize_event(
        &mut self,
        context: RawContext,
        event: RawEvent,
    ) -> GpuResult<()> {
        self.event(context, event)?;
        if let Some((epoch, clock)) = self.state.events[&event.0].record.clone() {
            self.run_until(context, |queues| queues.is_done(epoch))?;
            self.learn(&clock);
        }
        Ok(())
    }

    pub(super) fn elapsed(
        &mut self,
        context: RawContext,
        from: RawEvent,
        to: RawEvent,
    ) -> GpuResult<Duration> {
        self.event(context, from)?;
        self.event(context, to)?;
        let number = |event: RawEvent| {
            let event = &self.state.events[&event.0];
            let (epoch, _) = event.record.as_ref().filter(|_| event.is_timing)?;
            Some((epoch.number, self.state.queues.is_done(*epoch)))
        };
        match (number(from), number(to)) {
            // Each command takes a microsecond.
            (Some((from, true)), Some((to, true))) => {
                Ok(Duration::from_micros(u64::from(to.saturating_sub(from))))
            }
            (Some(_), Some(_)) => self.refused("CUDA_ERROR_NOT_READY"),
            _ => self.refused("CUDA_ERROR_INVALID_HANDLE"),
        }
    }
}
