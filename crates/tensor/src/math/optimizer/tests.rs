//! Tests of loops: a step of many elements is that of each, whatever lies beside it.

use std::sync::Arc;

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{ErrorCode, HostContext, RequestContext};

use super::*;

const KINDS: [OptimizerKind; 18] = [
    OptimizerKind::GradientDescent,
    OptimizerKind::Momentum,
    OptimizerKind::KerasMomentum,
    OptimizerKind::Adam,
    OptimizerKind::AdamWithAmsgrad,
    OptimizerKind::AdaMax,
    OptimizerKind::Adagrad,
    OptimizerKind::AdagradV2,
    OptimizerKind::AdagradDa,
    OptimizerKind::Adadelta,
    OptimizerKind::RmsProp,
    OptimizerKind::CenteredRmsProp,
    OptimizerKind::Ftrl,
    OptimizerKind::FtrlV2,
    OptimizerKind::AddSign,
    OptimizerKind::PowerSign,
    OptimizerKind::ProximalGradientDescent,
    OptimizerKind::ProximalAdagrad,
];

const NUMBERS: [f64; MAX_NUMBERS] = [0.5, 0.25, 0.125, 0.75, 0.875, 1e-3];

fn list(n: usize, from: f32) -> Vec<f32> {
    (0..n)
        .map(|index| (index as f32 * 0.37 + from) % 3.0 + 0.25)
        .collect()
}

#[test]
fn steps_of_many_elements_are_those_of_each() {
    let host = HostContext::builder(KernelRegistry::new()).build();
    let execution: ExecutionContext = RequestContext::new(&host).into();
    let tensor =
        |list: &[f32]| DenseHostTensor::from_slice(host.allocator(), &[list.len()], list).unwrap();
    let bits = |tensor: &DenseHostTensor| {
        let reading = tensor.read().unwrap();
        let list = reading.elements::<f32>().unwrap().iter();
        list.map(|one| one.to_bits()).collect::<Vec<_>>()
    };
    let n = 3 * LANES + 5;
    for kind in KINDS {
        for flag in [false, true] {
            let step = Optimizer {
                kind,
                numbers: NUMBERS,
                flag,
            };
            let lists: Vec<_> = (0..kind.n_states())
                .map(|state| list(n, state as f32))
                .collect();
            let slope: Vec<f32> = list(n, 0.7).iter().map(|one| one - 1.5).collect();
            let states: Vec<_> = lists.iter().map(|list| tensor(list)).collect();
            let done = step.apply(&execution, &tensor(&slope), &states).unwrap();
            assert!(done.is_settled() && done.error().is_none());
            for index in 0..n {
                let alone: Vec<_> = lists.iter().map(|list| tensor(&[list[index]])).collect();
                drop(
                    step.apply(&execution, &tensor(&[slope[index]]), &alone)
                        .unwrap(),
                );
                for (state, alone) in states.iter().zip(&alone) {
                    assert_eq!(
                        bits(state)[index],
                        bits(alone)[0],
                        "{kind:?} {flag} {index}"
                    );
                }
            }
        }
    }
}

#[test]
fn states_that_do_not_fit_are_refused() {
    let host = HostContext::builder(KernelRegistry::new()).build();
    let execution: ExecutionContext = RequestContext::new(&host).into();
    let zeros = |n: usize| Arc::new(vec![0.0_f32; n]);
    let tensor = |n: usize| DenseHostTensor::from_slice(host.allocator(), &[n], &zeros(n)).unwrap();
    let step = Optimizer {
        kind: OptimizerKind::Momentum,
        numbers: NUMBERS,
        flag: false,
    };
    let refused = |states: &[DenseHostTensor], gradient: DenseHostTensor| {
        let error = step.apply(&execution, &gradient, states).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        error.message().to_owned()
    };
    assert_eq!(
        refused(&[tensor(2)], tensor(2)),
        "Momentum has 2 states, found 1"
    );
    assert_eq!(
        refused(&[tensor(2), tensor(3)], tensor(2)),
        "a state of f32 [3] does not fit weights of f32 [2]"
    );
    assert_eq!(
        refused(&[tensor(2), tensor(2)], tensor(3)),
        "a gradient of f32 [3] does not fit weights of f32 [2]"
    );
    let whole = DenseHostTensor::from_slice(host.allocator(), &[1], &[1]).unwrap();
    let error = step.apply(&execution, &whole, &[whole.clone(), whole.clone()]);
    assert_eq!(error.unwrap_err().code(), ErrorCode::InvalidArgument);
    for kind in KINDS {
        assert!(
            (1..=4).contains(&kind.n_states()) && (1..=MAX_NUMBERS).contains(&kind.n_numbers())
        );
    }
}
