//! A published plugin, which brings threads of its own, in a process of its own: Intel's kernels for TensorFlow, where
//! `cargo xtask capi` has got them.

#[expect(dead_code, reason = "other tests use all of it")]
#[path = "../library/plugins.rs"]
mod plugins;

use plugins::{Bed, load, unpacked};
use tfrt_capi::check::check;
use tfrt_capi::rows::PluginOps;
use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_host::DType;
use tfrt_tensor::DenseHostTensor;

fn floats(handle: &TensorHandle) -> Vec<f32> {
    let tensor = handle.tensor().unwrap().unwrap();
    let read = tensor.as_dense().unwrap().read().unwrap();
    read.elements::<f32>().unwrap().to_vec()
}

/// Numbers that are all different, and not round.
fn series(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| ((i * 37 % 101) as f32 - 50.0) / 17.0)
        .collect()
}

fn close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let error = (found - expected).abs();
        assert!(
            error <= 1e-5 * expected.abs().max(1.0),
            "{found} {expected}"
        );
    }
}

#[test]
fn intels_kernels_run() {
    let Some(path) = unpacked("intel/tensorflow-plugins/libitex_cpu.so") else {
        return;
    };
    let report = check(&path);
    assert!(report.loads(), "{:?}", report.reasons);
    let plugin = load(&path).unwrap();
    let (n_ops, n_kernels) = (plugin.ops().count(), plugin.kernels().count());
    println!("{n_ops} operations, {n_kernels} kernels");
    let bed = Bed::new(PluginOps::new([&plugin]));
    // An attribute that the kernels ask for and don't read.
    let meta = DenseHostTensor::scalar(bed.runtime.host().allocator(), 0_u8).unwrap();
    let (a, b) = (series(4 * 6), series(6 * 8));
    let pair = || vec![bed.floats(&[4, 6], &a), bed.floats(&[6, 8], &b)];
    let own = bed.call("tf.MatMul", pair(), &OpAttrs::new()).unwrap();
    let mut attrs = OpAttrs::new();
    attrs.set("meta", meta.clone()).unwrap();
    let found = bed.call("tf._ITEXMatMul", pair(), &attrs).unwrap();
    close(&floats(&found[0]), &floats(&own[0]));
    let mut attrs = OpAttrs::new();
    attrs.set("meta", meta).unwrap();
    attrs.set("fused_ops", ["BiasAdd", "Relu"]).unwrap();
    attrs.set("num_args", 1).unwrap();
    let bias = series(8);
    let mut inputs = pair();
    inputs.push(bed.floats(&[8], &bias));
    let found = bed.call("tf._ITEXFusedMatMul", inputs, &attrs).unwrap();
    let sums = floats(&own[0]);
    let expected = sums
        .iter()
        .enumerate()
        .map(|(i, sum)| (sum + bias[i % 8]).max(0.0));
    close(&floats(&found[0]), &expected.collect::<Vec<_>>());
    let logits = || vec![bed.floats(&[4, 6], &a)];
    let own = bed.call("tf.Softmax", logits(), &OpAttrs::new()).unwrap();
    let found = bed
        .call("tf._ITEXSoftmax", logits(), &OpAttrs::new())
        .unwrap();
    close(&floats(&found[0]), &floats(&own[0]));
    let mut attrs = OpAttrs::new();
    attrs.set("approximate", false).unwrap();
    let found = bed.call("tf.ITEXGelu", logits(), &attrs).unwrap();
    assert_eq!(found[0].dtype(), Some(DType::F32));
    assert_eq!(floats(&found[0]).len(), 24);
}
