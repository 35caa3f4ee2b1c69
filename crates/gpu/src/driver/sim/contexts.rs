//! Calls on devices and contexts.

use super::call::Entered;
use super::{ContextState, Queues};
use crate::driver::{DeviceOrdinal, DeviceProperties, GpuResult, RawContext};

impl Entered<'_> {
    pub(super) fn device(&self, ordinal: i32) -> GpuResult<DeviceOrdinal> {
        match u64::try_from(ordinal) {
            Ok(at) if ordinal < self.state.options.n_devices => Ok(DeviceOrdinal(at)),
            _ => self.refused("CUDA_ERROR_INVALID_DEVICE"),
        }
    }

    pub(super) fn properties(&self, device: DeviceOrdinal) -> GpuResult<DeviceProperties> {
        Ok(DeviceProperties {
            name: format!("simulated device {}", device.0),
            capability: (7, 5),
            len_bytes: self.state.options.len_bytes,
            // So few that some products of tests are large.
            n_multiprocessors: 4,
            max_threads: 1024,
            max_block: [1024, 1024, 64],
            max_grid: [i32::MAX as u32, 65535, 65535],
            max_shared_bytes: 48 << 10,
        })
    }

    pub(super) fn retain_primary(&mut self, device: DeviceOrdinal) -> GpuResult<RawContext> {
        match self.state.contexts.get_mut(device.0 as usize) {
            Some(context) => {
                context.n_held += 1;
                Ok(RawContext(device.0 + 1))
            }
            None => self.refused("CUDA_ERROR_INVALID_DEVICE"),
        }
    }

    pub(super) fn release_primary(&mut self, device: DeviceOrdinal) -> GpuResult<()> {
        match self.state.contexts.get_mut(device.0 as usize) {
            Some(context) if context.n_held > 0 => {
                context.n_held -= 1;
                Ok(())
            }
            _ => self.refused("CUDA_ERROR_INVALID_CONTEXT"),
        }
    }

    pub(super) fn create_context(&mut self, device: DeviceOrdinal) -> GpuResult<RawContext> {
        let device = device.0 as usize;
        if device >= self.state.used_bytes.len() {
            return self.refused("CUDA_ERROR_INVALID_DEVICE");
        }
        self.state.contexts.push(ContextState {
            device,
            n_held: 1,
            lost: None,
        });
        Ok(RawContext(self.state.contexts.len() as u64))
    }

    pub(super) fn destroy_context(&mut self, context: RawContext) -> GpuResult<()> {
        let at = usize::try_from(context.0).unwrap_or(0).wrapping_sub(1);
        let n_primary = self.state.used_bytes.len();
        match self.state.contexts.get_mut(at) {
            Some(found) if at >= n_primary && found.n_held > 0 => {
                found.n_held = 0;
                Ok(())
            }
            _ => self.refused("CUDA_ERROR_INVALID_CONTEXT"),
        }
    }

    pub(super) fn synchronize_context(&mut self, context: RawContext) -> GpuResult<()> {
        self.context(context)?;
        self.expect_no_capture_in(context)?;
        let of_context = |queues: &Queues| -> Vec<usize> {
            (0..queues.all.len())
                .filter(|at| queues.all[*at].context == context.0)
                .collect()
        };
        self.run_until(context, |queues| {
            of_context(queues).into_iter().all(|at| queues.is_idle(at))
        })?;
        for at in of_context(&self.state.queues) {
            let clock = self.state.queues.all[at].clock.clone();
            self.learn(&clock);
        }
        Ok(())
    }
}
