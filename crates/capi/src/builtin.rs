//! Definitions of TensorFlow's own operations for which plugins have kernels only.

use std::sync::{Arc, OnceLock};

use crate::spec::{OpSpec, Texts};

mod resources;

/// Operations of values in the order of their names: name, inputs, outputs, attributes; in each list separated by `;`.
const OPS: &[[&str; 4]] = &[
    [
        "Abs",
        "x: T",
        "y: T",
        "T: {bfloat16, half, float, double, int8, int16, int32, int64}",
    ],
    [
        "Add",
        "x: T; y: T",
        "z: T",
        "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128, string}",
    ],
    [
        "AddN",
        "inputs: N * T",
        "sum: T",
        "N: int >= 1; T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, variant}",
    ],
    [
        "AddV2",
        "x: T; y: T",
        "z: T",
        "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, int32, int64, complex64, complex128}",
    ],
    [
        "AvgPool",
        "value: T",
        "output: T",
        "ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID'}; data_format: {'NHWC', 'NCHW'} = 'NHWC'; T: {half, bfloat16, float, double}",
    ],
    [
        "BatchMatMul",
        "x: T; y: T",
        "output: T",
        "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}; adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false",
    ],
    [
        "BatchMatMulV2",
        "x: T; y: T",
        "output: T",
        "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; adj_x: bool = false; adj_y: bool = false; grad_x: bool = false; grad_y: bool = false",
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
    [
        "Bitcast",
        "input: T",
        "output: type",
        "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}; type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}",
    ],
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
        "T: {half, bfloat16, float, double, int32}; strides: list(int); use_cudnn_on_gpu: bool = true; padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW'} = 'NHWC'; dilations: list(int) = [1, 1, 1, 1]",
    ],
    [
        "Conv3DBackpropFilterV2",
        "input: T; filter_sizes: int32; out_backprop: T",
        "output: T",
        "T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]",
    ],
    [
        "Conv3DBackpropInputV2",
        "input_sizes: Tshape; filter: T; out_backprop: T",
        "output: T",
        "T: {half, bfloat16, float, double}; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; dilations: list(int) = [1, 1, 1, 1, 1]; Tshape: {int32, int64} = DT_INT32",
    ],
    [
        "Div",
        "x: T; y: T",
        "z: T",
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}",
    ],
    [
        "Exp",
        "x: T",
        "y: T",
        "T: {bfloat16, half, float, double, complex64, complex128}",
    ],
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
        "transpose_a: bool = false; transpose_b: bool = false; T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}; grad_a: bool = false; grad_b: bool = false",
    ],
    [
        "MaxPool",
        "input: T",
        "output: T",
        "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, uint16, qint8} = DT_FLOAT; ksize: list(int) >= 4; strides: list(int) >= 4; padding: {'SAME', 'VALID', 'EXPLICIT'}; explicit_paddings: list(int) = []; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
    ],
    [
        "Maximum",
        "x: T; y: T",
        "z: T",
        "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
    ],
    [
        "Minimum",
        "x: T; y: T",
        "z: T",
        "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64}",
    ],
    [
        "Mul",
        "x: T; y: T",
        "z: T",
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}",
    ],
    [
        "Neg",
        "x: T",
        "y: T",
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}",
    ],
    ["NoOp", "", "", ""],
    [
        "QuantizedReshape",
        "tensor: T; shape: Tshape; input_min: float; input_max: float",
        "output: T; output_min: float; output_max: float",
        "T: type; Tshape: {int32, int64} = DT_INT32",
    ],
    [
        "RealDiv",
        "x: T; y: T",
        "z: T",
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, int64, complex64, complex128}",
    ],
    [
        "Relu",
        "features: T",
        "activations: T",
        "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, qint8}",
    ],
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
    [
        "Rsqrt",
        "x: T",
        "y: T",
        "T: {bfloat16, half, float, double, complex64, complex128}",
    ],
    [
        "Sigmoid",
        "x: T",
        "y: T",
        "T: {bfloat16, half, float, double, complex64, complex128}",
    ],
    [
        "Softmax",
        "logits: T",
        "softmax: T",
        "T: {half, bfloat16, float, double}",
    ],
    [
        "Sqrt",
        "x: T",
        "y: T",
        "T: {bfloat16, half, float, double, complex64, complex128}",
    ],
    [
        "Square",
        "x: T",
        "y: T",
        "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64, complex64, complex128}",
    ],
    [
        "SquaredDifference",
        "x: T; y: T",
        "z: T",
        "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}",
    ],
    [
        "Sub",
        "x: T; y: T",
        "z: T",
        "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, complex64, complex128, uint32, uint64}",
    ],
    [
        "Tanh",
        "x: T",
        "y: T",
        "T: {bfloat16, half, float, double, complex64, complex128}",
    ],
    [
        "Transpose",
        "x: T; perm: Tperm",
        "y: T",
        "T: type; Tperm: {int32, int64} = DT_INT32",
    ],
    ["ZerosLike", "x: T", "y: T", "T: type"],
    [
        "_FusedBatchNormEx",
        "x: T; scale: U; offset: U; mean: U; variance: U; side_input: num_side_inputs * T",
        "y: T; batch_mean: U; batch_variance: U; reserve_space_1: U; reserve_space_2: U; reserve_space_3: U",
        "T: {half, float, bfloat16}; U: {float}; epsilon: float = 0.0001; exponential_avg_factor: float = 1.0; num_side_inputs: int >= 0 = 0; activation_mode: string = 'Identity'; data_format: {'NHWC', 'NCHW'} = 'NHWC'; is_training: bool = true",
    ],
    [
        "_QuantizedMaxPool3D",
        "input: T; min_input: float; max_input: float",
        "output: T; min_output: float; max_output: float",
        "ksize: list(int) >= 5; strides: list(int) >= 5; padding: {'SAME', 'VALID'}; data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'; T: quantizedtype",
    ],
];

/// Operations two of whose inputs may be exchanged.
const COMMUTATIVE: &[&str] = &["AddN", "AddV2", "Mul", "SquaredDifference"];
/// Operations that sum their inputs up.
const AGGREGATE: &[&str] = &["AddN", "AddV2"];

/// Definitions that were asked for, each at the place of its operation: those of values, then those of resources.
static SPECS: [OnceLock<Arc<OpSpec>>; N] = [const { OnceLock::new() }; N];
const N: usize = OPS.len() + resources::OPS.len();

fn parsed([name, inputs, outputs, attrs]: &[&str; 4]) -> Arc<OpSpec> {
    let list = |text: &str| {
        let parts = text.split(';').map(|part| part.trim().to_owned());
        parts.filter(|part| !part.is_empty()).collect()
    };
    let texts = Texts {
        attrs: list(attrs),
        inputs: list(inputs),
        outputs: list(outputs),
    };
    let mut spec = OpSpec::parse(name, &texts).expect("the table is tested");
    spec.is_commutative = COMMUTATIVE.contains(name);
    spec.is_aggregate = AGGREGATE.contains(name);
    spec.is_stateful = spec.takes_resources();
    Arc::new(spec)
}

fn at(index: usize) -> Arc<OpSpec> {
    let own = OPS.get(index);
    let texts = own.unwrap_or_else(|| &resources::OPS[index - OPS.len()]);
    SPECS[index].get_or_init(|| parsed(texts)).clone()
}

/// Returns the built-in definition of an operation.
pub fn spec(op: &str) -> Option<Arc<OpSpec>> {
    let place = |ops: &[[&str; 4]]| ops.binary_search_by(|[name, ..]| (*name).cmp(op)).ok();
    let of_resources = || place(resources::OPS).map(|place| OPS.len() + place);
    place(OPS).or_else(of_resources).map(at)
}

/// Returns all built-in definitions.
pub fn specs() -> impl Iterator<Item = Arc<OpSpec>> {
    (0..N).map(at)
}

#[cfg(test)]
mod tests {
    use tfrt_ops::{Arity, AttrDefault, AttrKind, OpDef, names};

    use crate::attrs::{Attr, Kind};
    use crate::spec::{ArgSpec, ArgTypes, OpSpec};

    /// Returns the attributes that say more than types and numbers of operands, which rows leave out.
    fn stated(spec: &OpSpec) -> Vec<(&str, Option<&Attr>)> {
        let is_count = |name: &str| {
            let mut args = spec.inputs.iter();
            args.any(|arg| arg.count.as_deref() == Some(name))
        };
        let attrs = spec.attrs.iter();
        attrs
            .filter(|attr| attr.kind != Kind::Type && !is_count(&attr.name))
            .map(|attr| (attr.name.as_str(), attr.default.as_ref()))
            .collect()
    }

    fn text(value: &Attr) -> String {
        match value {
            Attr::Bool(value) => i64::from(*value).to_string(),
            Attr::Int(value) => value.to_string(),
            Attr::Float(value) => value.to_string(),
            Attr::Bytes(text) => String::from_utf8_lossy(text).into_owned(),
            other => other.to_string(),
        }
    }

    fn default(value: &AttrDefault) -> Option<String> {
        Some(match value {
            AttrDefault::Int(value) => value.to_string(),
            AttrDefault::Float(value) => value.to_string(),
            AttrDefault::Text(text) => (*text).to_owned(),
            _ => return None,
        })
    }

    /// Compares an operation with the row of its own name.
    fn expect_alike(spec: &OpSpec, row: &OpDef) {
        let op = &spec.name;
        let inputs: Vec<&str> = spec.inputs.iter().map(|arg| arg.name.as_str()).collect();
        let operands: Vec<&str> = row.inputs.iter().map(|operand| operand.name).collect();
        // Rows of values name their operands as all rows do.
        match spec.takes_resources() {
            true => assert_eq!(inputs, operands, "{op}"),
            false => assert_eq!(inputs.len(), operands.len(), "{op}"),
        }
        for (arg, operand) in spec.inputs.iter().zip(row.inputs) {
            let is_resource = |arg: &ArgSpec| arg.types == ArgTypes::Fixed(crate::dtype::RESOURCE);
            let takes_resource =
                operand.types == tfrt_ops::Types::Set(&[tfrt_host::DType::Resource]);
            assert_eq!(is_resource(arg), takes_resource, "{op}: {}", arg.name);
            let is_list = matches!(operand.arity, Arity::Rest(_));
            assert_eq!(arg.count.is_some(), is_list, "{op}: {}", arg.name);
        }
        assert_eq!(spec.outputs.len(), row.results.len(), "{op}");
        let named: Vec<(String, Option<String>)> = stated(spec)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.map(text)))
            .collect();
        let rows = row.attrs.iter();
        let rows = rows.filter(|attr| attr.kind != AttrKind::Type);
        for attr in rows {
            let Some((_, value)) = named.iter().find(|(name, _)| name == attr.name) else {
                // A row of values may stand for several operations.
                assert!(
                    !spec.takes_resources(),
                    "{op} has no attribute {}",
                    attr.name
                );
                continue;
            };
            if let Some(expected) = default(&attr.default) {
                assert_eq!(value.as_ref(), Some(&expected), "{op}: {}", attr.name);
            }
        }
        for (name, _) in named {
            let is_row = row.attrs.iter().any(|attr| attr.name == name);
            let is_unread = names::tf::UNREAD.contains(&name.as_str());
            assert!(
                is_row || is_unread,
                "the row of {op} has no attribute {name}"
            );
        }
    }

    /// Compares an operation with the row that its name stands for.
    fn expect_fits(spec: &OpSpec, name: &names::Name) {
        let op = &spec.name;
        let row = tfrt_ops::find(name.row).unwrap_or_else(|| panic!("{op}: no row {}", name.row));
        let sources: Vec<&str> = name.attrs.iter().filter_map(|attr| attr.source()).collect();
        for (attr, _) in stated(spec) {
            let is_known = sources.contains(&attr)
                || row.attrs.iter().any(|own| own.name == attr)
                || name.only.iter().any(|(own, _)| *own == attr)
                || names::tf::UNREAD.contains(&attr);
            assert!(is_known, "{op}: nothing reads its attribute {attr}");
        }
        for source in sources {
            let has = spec.attrs.iter().any(|attr| attr.name == source);
            assert!(has, "{op} has no attribute {source}, which its row reads");
        }
        let has_list = |row: &OpDef| {
            let mut operands = row.inputs.iter();
            operands.any(|operand| operand.arity != Arity::One)
        };
        let n_attrs = (0..spec.inputs.len())
            .filter(|index| name.is_attr(*index, spec.inputs.len()))
            .count();
        if name.operands.is_none() && !has_list(row) {
            assert_eq!(spec.inputs.len() - n_attrs, row.inputs.len(), "{op}");
        }
        assert_eq!(spec.outputs.len(), row.results.len(), "{op}");
    }

    #[test]
    fn definitions_agree_with_the_runtimes_rows() {
        let mut n = [0, 0];
        for spec in super::specs() {
            if let Some(row) = tfrt_ops::find(&format!("tf.{}", spec.name)) {
                expect_alike(&spec, row);
                n[0] += 1;
            } else if let Some(name) = names::tf::name(&spec.name) {
                expect_fits(&spec, name);
                n[1] += 1;
            } else {
                println!("{} has no row", spec.name);
            }
        }
        println!("{n:?} of {}", super::specs().count());
        assert!(n[0] >= 54 && n[1] >= 20, "{n:?}");
    }

    #[test]
    fn definitions_are_well_formed_and_found_by_name() {
        for ops in [super::OPS, super::resources::OPS] {
            assert!(ops.is_sorted_by(|[one, ..], [next, ..]| one < next));
            for [name, ..] in ops {
                assert_eq!(super::spec(name).unwrap().name, *name);
            }
        }
        assert_eq!(super::specs().count(), super::N);
        assert!(super::spec("NoSuchOp").is_none());
    }
}
