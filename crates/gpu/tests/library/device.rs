//! A GPU as a device of the runtime.

use std::sync::{Arc, Mutex};

use tfrt_corert::{CoreRuntime, OpAttrs};
use tfrt_gpu::GpuDevice;
use tfrt_gpu::driver::GpuErrorKind;
use tfrt_gpu::driver::sim::{Policy, Sim, SimOptions};
use tfrt_host::device::{Device, conformance};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{ErrorCode, HostContext};
use tfrt_tensor::{Tensor, TensorFormat};

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

#[test]
fn a_tensor_of_a_gpu_is_refused_by_the_host_and_brought_to_another_gpu() {
    let sim = Sim::new(SimOptions {
        n_devices: 2,
        ..SimOptions::default()
    });
    let host = HostContext::builder(KernelRegistry::new()).build();
    let [first, second] =
        [0, 1].map(|ordinal| tfrt_gpu::add(&host, Arc::new(sim.clone()), ordinal).unwrap());
    let core = CoreRuntime::new(&host);
    core.set_kernels(tfrt_kernels::rows::find);
    core.set_device_kernels(tfrt_gpu::KERNELS.into());
    let (context, none) = (core.context(), OpAttrs::new());
    let here = core.dense(&[2], &[1.0_f32, 2.0]).unwrap();
    let there = context.transfer(&here, &second, TensorFormat::Device);
    let there = there.unwrap();

    let add = core.op("add", &core.cpu()).unwrap();
    let refused = add.call_one(&context, [&here, &there], &none).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidArgument);
    assert_eq!(
        refused.message(),
        "input 1 of add is on device GPU:1, the operation runs on device CPU:0: transfer it there"
    );

    let add = core.op("add", &core.on(&first).unwrap()).unwrap();
    let sum = add.call_one(&context, [&here, &there], &none).unwrap();
    let back = context.transfer(&sum, &core.device(), TensorFormat::DenseHost);
    let value = back.unwrap().to_async().into_any();
    let _waited = host.queue().await_all(std::slice::from_ref(&value));
    let value = value.settled();
    let tensor = value.get::<Tensor>().unwrap().as_dense().unwrap();
    assert_eq!(
        *tensor.read().unwrap().elements::<f32>().unwrap(),
        [2.0, 4.0]
    );
    assert_eq!(sim.findings(), []);
}
