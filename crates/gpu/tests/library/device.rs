//! A GPU as a device of the runtime.

use std::sync::{Arc, Mutex};

use tfrt_gpu::GpuDevice;
use tfrt_gpu::driver::GpuErrorKind;
use tfrt_gpu::driver::sim::{Policy, Sim, SimOptions};
use tfrt_host::device::{Device, conformance};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{ErrorCode, HostContext};

#[test]
fn a_gpu_keeps_the_promises_of_devices_under_all_policies() {
    for policy in Policy::ALL {
        for seed in 0..2 {
            let sims = Mutex::new(Vec::new());
            conformance::suite(&|id| {
                let sim = Sim::new(SimOptions {
                    policy,
                    seed,
                    ..SimOptions::default()
                });
                sims.lock().unwrap().push(sim.clone());
                let host = HostContext::builder(KernelRegistry::new()).build();
                let device = GpuDevice::new(Arc::new(sim), 0, host.allocator().clone()).unwrap();
                device.number(id);
                let device: Arc<dyn Device> = Arc::new(device);
                device
            });
            for sim in sims.into_inner().unwrap() {
                assert_eq!(sim.findings(), [], "{policy:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_one_clear_error() {
    let host = HostContext::builder(KernelRegistry::new()).build();
    let sim = Sim::new(SimOptions::default());
    for ordinal in [-1, 1] {
        let error = tfrt_gpu::add(&host, Arc::new(sim.clone()), ordinal).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        assert_eq!(
            error.message(),
            "cuDeviceGet failed with CUDA_ERROR_INVALID_DEVICE"
        );
    }
    let device = tfrt_gpu::add(&host, Arc::new(sim.clone()), 0).unwrap();
    assert_eq!((device.name(), device.kind()), ("GPU:0", tfrt_gpu::KIND));
    let error = tfrt_gpu::add(&host, Arc::new(sim.clone()), 0).unwrap_err();
    assert_eq!(error.message(), "the device GPU:0 was added before");
    drop((host, device));
    assert_eq!(sim.leaks(), [""; 0]);
}

#[test]
fn each_call_that_fails_is_one_error_and_leaks_nothing() {
    // As many calls as making a device takes, and one more.
    for number in 1.. {
        let sim = Sim::new(SimOptions::default());
        sim.fail_call(number, GpuErrorKind::Refused);
        let host = HostContext::builder(KernelRegistry::new()).build();
        let added = tfrt_gpu::add(&host, Arc::new(sim.clone()), 0);
        let is_last = added.is_ok();
        if let Err(error) = added {
            assert!(error.message().ends_with("injected"), "{error}");
            drop(host);
            assert_eq!(sim.leaks(), [""; 0], "call {number} fails");
        }
        if is_last {
            assert!(number > 3);
            return;
        }
    }
}
