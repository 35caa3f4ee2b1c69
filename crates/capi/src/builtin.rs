//! Definitions of TensorFlow's own operations for which plugins have kernels only.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use crate::spec::{OpSpec, Texts};

/// Operations: name, inputs, outputs, attributes; in each list separated by `;`.
const OPS: &[[&str; 4]] = &[
    ["Abs", "x: T", "y: T", "T: realnumbertype"],
    ["Add", "x: T; y: T", "z: T", "T: type"],
    ["AddN", "inputs: N * T", "sum: T", "N: int >= 1; T: type"],
    ["AddV2", "x: T; y: T", "z: T", "T: type"],
    [
        "AvgPool",
        "value: T",
        "output: T",
        "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: realnumbertype",
    ],
    [
        "BatchMatMul",
        "x: T; y: T",
        "output: T",
        "T: numbertype; adj_x: bool = false; adj_y: bool = false",
    ],
    [
        "BatchMatMulV2",
        "x: T; y: T",
        "output: T",
        "T: numbertype; adj_x: bool = false; adj_y: bool = false",
    ],
    [
        "BiasAdd",
        "value: T; bias: T",
        "output: T",
        "T: numbertype; data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    ],
    [
        "BiasAddGrad",
        "out_backprop: T",
        "output: T",
        "T: numbertype; data_format: {'NHWC', 'NCHW'} = 'NHWC'",
    ],
    ["Bitcast", "input: T", "output: type", "T: type; type: type"],
    [
        "Cast",
        "x: SrcT",
        "y: DstT",
        "SrcT: type; DstT: type; Truncate: bool = false",
    ],
    [
        "ConcatV2",
        "values: N * T; axis: Tidx",
        "output: T",
        "N: int >= 2; T: type; Tidx: {int32, int64} = DT_INT32",
    ],
    [
        "Conv2D",
        "input: T; filter: T",
        "output: T",
        "T: realnumbertype; strides: list(int); use_cudnn_on_gpu: bool = true; padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]",
    ],
    ["Div", "x: T; y: T", "z: T", "T: type"],
    ["Exp", "x: T", "y: T", "T: numbertype"],
    ["Identity", "input: T", "output: T", "T: type"],
    [
        "LeakyRelu",
        "features: T",
        "activations: T",
        "alpha: float = 0.2; T: {half, bfloat16, float, double} = DT_FLOAT",
    ],
    [
        "LogSoftmax",
        "logits: T",
        "logsoftmax: T",
        "T: {half, bfloat16, float, double}",
    ],
    [
        "MatMul",
        "a: T; b: T",
        "product: T",
        "transpose_a: bool = false; transpose_b: bool = false; T: numbertype; grad_a: bool = false; grad_b: bool = false",
    ],
    [
        "MaxPool",
        "input: T",
        "output: T",
        "T: realnumbertype = DT_FLOAT; ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    ],
    ["Maximum", "x: T; y: T", "z: T", "T: realnumbertype"],
    ["Minimum", "x: T; y: T", "z: T", "T: realnumbertype"],
    ["Mul", "x: T; y: T", "z: T", "T: type"],
    ["Neg", "x: T", "y: T", "T: numbertype"],
    ["RealDiv", "x: T; y: T", "z: T", "T: type"],
    ["Relu", "features: T", "activations: T", "T: type"],
    [
        "Relu6",
        "features: T",
        "activations: T",
        "T: realnumbertype",
    ],
    [
        "ReluGrad",
        "gradients: T; features: T",
        "backprops: T",
        "T: realnumbertype",
    ],
    [
        "Reshape",
        "tensor: T; shape: Tshape",
        "output: T",
        "T: type; Tshape: {int32, int64} = DT_INT32",
    ],
    ["Rsqrt", "x: T", "y: T", "T: numbertype"],
    ["Sigmoid", "x: T", "y: T", "T: numbertype"],
    [
        "Softmax",
        "logits: T",
        "softmax: T",
        "T: {half, bfloat16, float, double}",
    ],
    ["Sqrt", "x: T", "y: T", "T: numbertype"],
    ["Square", "x: T", "y: T", "T: numbertype"],
    ["SquaredDifference", "x: T; y: T", "z: T", "T: type"],
    ["Sub", "x: T; y: T", "z: T", "T: type"],
    ["Tanh", "x: T", "y: T", "T: numbertype"],
    [
        "Transpose",
        "x: T; perm: Tperm",
        "y: T",
        "T: type; Tperm: {int32, int64} = DT_INT32",
    ],
    ["ZerosLike", "x: T", "y: T", "T: type"],
];

static SPECS: LazyLock<BTreeMap<&'static str, Arc<OpSpec>>> = LazyLock::new(|| {
    let spec = |[name, inputs, outputs, attrs]: &[&'static str; 4]| {
        let list = |text: &str| {
            let parts = text.split(';').map(|part| part.trim().to_owned());
            parts.filter(|part| !part.is_empty()).collect()
        };
        let texts = Texts {
            attrs: list(attrs),
            inputs: list(inputs),
            outputs: list(outputs),
        };
        let spec = OpSpec::parse(name, &texts).expect("the table is tested");
        (*name, Arc::new(spec))
    };
    OPS.iter().map(spec).collect()
});

/// Returns the built-in definition of an operation.
pub fn spec(op: &str) -> Option<Arc<OpSpec>> {
    SPECS.get(op).cloned()
}

/// Returns all built-in definitions.
pub fn specs() -> impl Iterator<Item = Arc<OpSpec>> {
    SPECS.values().cloned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn definitions_are_well_formed() {
        assert_eq!(super::specs().count(), super::OPS.len());
    }
}
