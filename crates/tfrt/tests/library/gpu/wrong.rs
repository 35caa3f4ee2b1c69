//! Errors in the middle of a model on a GPU: each is one, and the host goes on.

use std::sync::Arc;

use tfrt::gpu::driver::GpuErrorKind;
use tfrt::gpu::driver::sim::{Policy, Sim, SimOptions};
use tfrt::gpu::{self, KERNELS};
use tfrt::{ErrorCode, OpenOptions, Runtime};

use super::graphs::{begin, call, expect_clean, layers, opened};
use super::simulated;

#[test]
fn a_lost_context_is_one_error_of_each_call_and_the_host_goes_on() {
    let (runtime, sim) = simulated(Policy::Random);
    let here = runtime
        .load_model_with(&layers(), &OpenOptions::new())
        .unwrap();
    let there = opened(&runtime);
    let expected = call(&runtime, &here, 2, 1).unwrap();
    let before = sim.n_calls();
    call(&runtime, &there, 2, 1).unwrap();
    // In the middle of a call, which takes about as many calls of the driver as the one before.
    let n_calls = sim.n_calls() - before;
    sim.fail_call(sim.n_calls() + n_calls / 2, GpuErrorKind::Sticky);
    for _ in 0..3 {
        let error = call(&runtime, &there, 2, 1).unwrap_err();
        assert!(error.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{error}");
    }
    assert_eq!(call(&runtime, &here, 2, 1).unwrap(), expected);
    assert_eq!(sim.findings(), []);
}

#[test]
fn a_cancelled_request_with_work_queued_is_one_error_and_leaks_nothing() {
    for policy in Policy::ALL {
        let (runtime, sim) = simulated(policy);
        let model = opened(&runtime);
        let expected = call(&runtime, &model, 3, 1).unwrap();
        // A call may be over before it is cancelled.
        let (mut n_cancelled, mut n_calls) = (0, 0);
        while n_cancelled < 4 {
            n_calls += 1;
            assert!(
                n_calls < 10_000,
                "{policy:?}: all but {n_cancelled} end before"
            );
            let context = runtime.context();
            let called = begin(&context, &model, 3, 1);
            context.cancel();
            match called.wait() {
                Ok(_) => {}
                Err(error) => {
                    assert_eq!(error.code(), ErrorCode::Cancelled, "{error}");
                    n_cancelled += 1;
                }
            }
        }
        assert_eq!(
            call(&runtime, &model, 3, 1).unwrap(),
            expected,
            "{policy:?}"
        );
        drop((model, runtime));
        expect_clean(&sim, &format!("{policy:?}"));
    }
}

#[test]
fn more_memory_than_a_gpu_has_is_one_error_and_the_next_call_runs() {
    let runtime = Runtime::builder().op_kernels(KERNELS).build();
    let sim = Sim::new(SimOptions {
        len_bytes: 8 << 20,
        ..SimOptions::default()
    });
    gpu::add(runtime.host(), Arc::new(sim.clone()), 0).unwrap();
    let model = opened(&runtime);
    let expected = call(&runtime, &model, 3, 1).unwrap();
    let error = call(&runtime, &model, 1 << 20, 1).unwrap_err();
    assert!(
        error.contains("there are no 16777216 bytes on GPU:0"),
        "{error}"
    );
    assert_eq!(call(&runtime, &model, 3, 1).unwrap(), expected);
    drop((model, runtime));
    expect_clean(&sim, "too much memory");
}
