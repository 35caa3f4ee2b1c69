//! Operators of ONNX Runtime's domain `com.microsoft` that have kernels of their own; others become operations of
//! graphs when a model is compiled.

use tfrt_bef::DType;

use crate::def::{AttrDef, AttrKind, OpDef, ValueDef};
use crate::dim::{Dim, Dims};
use crate::infer::{Infer, InferCall, InferError};

const SMALL: &[DType] = &[DType::I8, DType::Ui8];

pub(crate) const OPS: &[OpDef] = &[
    OpDef::new("onnx.microsoft.DynamicQuantizeLSTM", "A long short-term memory whose weights are small integers, and whose inputs and states become such.")
        .inputs(&[
            ValueDef::set("X", &[DType::F32]),
            ValueDef::set("W", SMALL),
            ValueDef::set("R", SMALL),
            ValueDef::set("B", &[DType::F32]).optional(),
            ValueDef::set("sequence_lens", &[DType::I32]).optional(),
            ValueDef::set("initial_h", &[DType::F32]).optional(),
            ValueDef::set("initial_c", &[DType::F32]).optional(),
            ValueDef::set("P", &[DType::F32]).optional(),
            ValueDef::set("W_scale", &[DType::F32]),
            ValueDef::set("W_zero_point", SMALL),
            ValueDef::set("R_scale", &[DType::F32]),
            ValueDef::set("R_zero_point", SMALL),
        ])
        .results(&[
            ValueDef::set("Y", &[DType::F32]).optional(),
            ValueDef::set("Y_h", &[DType::F32]).optional(),
            ValueDef::set("Y_c", &[DType::F32]).optional(),
        ])
        .attrs(&[
            AttrDef::new("activation_alpha", AttrKind::Floats),
            AttrDef::new("activation_beta", AttrKind::Floats),
            AttrDef::new("activations", AttrKind::Texts),
            AttrDef::new("clip", AttrKind::Float),
            AttrDef::text("direction", "forward"),
            AttrDef::new("hidden_size", AttrKind::Int),
            AttrDef::int("input_forget", 0),
        ])
        .infer(Infer::By(lstm)),
    OpDef::new("onnx.microsoft.Inverse", "The inverse of each square matrix.")
        .inputs(&[ValueDef::var("X", "T")])
        .results(&[ValueDef::var("Y", "T")]),
    OpDef::new("onnx.microsoft.MatMulNBits", "The product of rows and a matrix whose columns are packed integers of a few bits, with a scale for each block.")
        .inputs(&[
            ValueDef::var("A", "T1"),
            ValueDef::set("B", &[DType::Ui8]),
            ValueDef::var("scales", "T1"),
            ValueDef::any("zero_points").optional(),
            ValueDef::set("g_idx", &[DType::I32]).optional(),
            ValueDef::var("bias", "T1").optional(),
        ])
        .results(&[ValueDef::var("Y", "T1")])
        .attrs(&[
            AttrDef::new("K", AttrKind::Int).required(),
            AttrDef::new("N", AttrKind::Int).required(),
            AttrDef::int("accuracy_level", 0),
            AttrDef::int("bits", 4),
            AttrDef::new("block_size", AttrKind::Int).required(),
            AttrDef::int("weight_prepacked", 0),
        ])
        .infer(Infer::By(mat_mul_n_bits)),
    OpDef::new("onnx.microsoft.Tokenizer", "The words or the characters of each text, padded to the most that any has.")
        .inputs(&[ValueDef::set("X", &[DType::String])])
        .results(&[ValueDef::set("Y", &[DType::String]).data_dependent()])
        .attrs(&[
            AttrDef::new("mark", AttrKind::Int).required(),
            AttrDef::new("mincharnum", AttrKind::Int).required(),
            AttrDef::new("pad_value", AttrKind::Text).required(),
            AttrDef::new("separators", AttrKind::Texts),
            AttrDef::new("tokenexp", AttrKind::Text),
        ])
        .infer(Infer::By(tokenizer)),
];

/// Infers `Tokenizer`: one dimension more than its operand, `[C]` or `[N, C]`.
fn tokenizer(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let dims = match call.input(0).dims.clone() {
        Some(dims) if !matches!(dims.len(), 1 | 2) => {
            let found = dims.len();
            let message = format_args!("expected texts of one dimension or two, found {found}");
            return Err(call.error(message));
        }
        dims => dims.map(|mut dims| {
            dims.push(Dim::Unknown);
            dims
        }),
    };
    call.give(0, Some(DType::String), dims);
    Ok(())
}

/// Infers `MatMulNBits`: rows of `N` elements.
fn mat_mul_n_bits(call: &mut InferCall<'_>) -> Result<(), InferError> {
    packed_columns(call)?;
    let x = call.input(0).clone();
    let size = |name: &str| call.attrs.int(name).map_or(Dim::Unknown, Dim::Known);
    let (inner, columns) = (size("K"), size("N"));
    let dims = match x.dims {
        Some(mut dims) => {
            let Some(last) = dims.last_mut() else {
                return Err(call.error("expected rows, found a scalar"));
            };
            if let (Some(found), Some(inner)) = (last.value(), inner.value())
                && found != inner
            {
                return Err(call.error(format_args!(
                    "expected rows of as many elements as 'K' says, {inner}, found {found}"
                )));
            }
            *last = columns;
            Some(dims)
        }
        None => None,
    };
    call.give(0, x.dtype, dims);
    Ok(())
}

/// Checks that the packed matrix, scales, zero points and bias have as many elements as the attributes say, whatever their
/// extents are.
fn packed_columns(call: &InferCall<'_>) -> Result<(), InferError> {
    let size = |name: &str, default: Option<i64>| call.attrs.int(name).or(default);
    let all = ["K", "N", "block_size"].map(|name| size(name, None));
    let ([Some(k), Some(n), Some(block)], Some(bits)) = (all, size("bits", Some(4))) else {
        return Ok(());
    };
    for (name, found) in [("K", k), ("N", n)] {
        if found < 1 {
            let message = format_args!("expected '{name}' to be at least 1, found {found}");
            return Err(call.error(message));
        }
    }
    if !matches!(bits, 2 | 4 | 8) {
        let message = format_args!("expected 'bits' to be 2, 4 or 8, found {bits}");
        return Err(call.error(message));
    }
    if block < 16 || block.count_ones() != 1 {
        let message = "expected 'block_size' to be a power of 2, at least 16";
        return Err(call.error(format_args!("{message}, found {block}")));
    }
    let n_blocks = k.div_euclid(block) + i64::from(k % block != 0);
    let per_byte = 8 / bits;
    let zeros = match call.input(3).dtype {
        Some(DType::Ui8) => Some(vec![n, (n_blocks + per_byte - 1) / per_byte]),
        Some(_) => Some(vec![n, n_blocks]),
        None => None,
    };
    let wanted = [
        (1, Some(vec![n, n_blocks, block / 8 * bits])),
        (2, Some(vec![n, n_blocks])),
        (3, zeros),
        (5, Some(vec![n])),
    ];
    for (operand, wanted) in wanted {
        let (true, Some(wanted)) = (call.has(operand), wanted) else {
            continue;
        };
        let expected = wanted
            .iter()
            .try_fold(1_i64, |all, one| all.checked_mul(*one));
        let found = call.input(operand);
        let (Some(n_found), Some(dims)) = (found.n_elements().value(), &found.dims) else {
            continue;
        };
        if expected != Some(n_found) {
            let dims: Vec<i64> = dims.iter().filter_map(Dim::value).collect();
            return Err(call.error(format_args!(
                "operand {operand}: expected extents {wanted:?}, found {dims:?}"
            )));
        }
    }
    Ok(())
}

/// As the row `rnn`, but that weights are `[directions, inputs, 4 * states]`.
fn lstm(call: &mut InferCall<'_>) -> Result<(), InferError> {
    let (x, r) = (call.input(0).clone(), call.input(2).clone());
    call.expect_rank(0, 3)?;
    call.expect_rank(2, 3)?;
    let (directions, states) = (r.dim(0), r.dim(1));
    let (length, batch) = (x.dim(0), x.dim(1));
    let all = [length, directions.clone(), batch.clone(), states.clone()];
    call.give(0, Some(DType::F32), Some(Dims::from_iter(all)));
    let last = Dims::from_iter([directions, batch, states]);
    call.give(1, Some(DType::F32), Some(last.clone()));
    call.give(2, Some(DType::F32), Some(last));
    Ok(())
}
