//! Products by matrices that are packed when a model is opened.

use std::sync::Arc;

use tfrt_host::codec::{DecodeContext, Decoder, Encoder};
use tfrt_host::kernel::{Attr, AttributeView, Operands};
use tfrt_host::{Error, ExecutionContext};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::matmul::{PackedRhs, matmul_packed_into};
use tfrt_tensor::math::packed_gemm::{TensorAddend, TensorEpilogue};
use tfrt_tensor::op::PreparedState;

use crate::onnx::{NodeCall, PrepareRow, state};

use super::epilogue::Epilogue;
use super::{TensorResult, dense, made, memory, shared, stored};

/// The nodes whose matrices are packed, with their biases.
pub(super) const PREPARE: [PrepareRow; 1] = [PrepareRow {
    op: "fused.matmul",
    inputs: &[1, 2],
    types: &[],
    takes_attributes: false,
    make: |node| Ok(Some(Arc::new(pack(node)?))),
    restore: Some(|decoder, context| Ok(Arc::new(Matrix::read(decoder, context)?))),
}];

/// A packed right-hand side, with the summands of each row.
#[derive(Clone, Debug)]
struct Matrix {
    packed: PackedRhs,
    shift: Option<DenseHostTensor>,
    epilogue: Epilogue,
}

/// In a file: the layout of the matrix, the extents, then the elements and the summands.
impl PreparedState for Matrix {
    fn encode(&self, encoder: &mut Encoder) -> Option<Result<(), Error>> {
        Some(self.write(encoder))
    }
}

impl Matrix {
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
        let set = stored::target(encoder, self.packed.instruction_set())?;
        let elements = self.packed.elements_for(encoder.allocator(), set)?;
        stored::write_layout(MATRIX, set, encoder);
        for extent in self.packed.extents() {
            encoder.usize(extent);
        }
        stored::write_packed(elements, self.shift.clone(), encoder)?;
        self.epilogue.write(encoder);
        Ok(())
    }

    fn read(decoder: &mut Decoder<'_>, context: &DecodeContext<'_>) -> Result<Matrix, Error> {
        let (kind, sets) = stored::read_layout(decoder, context)?;
        if kind != MATRIX {
            let kind = kind.escape_debug();
            return Err(decoder.wrong(format_args!("a matrix, found '{kind}'")));
        }
        let [k, n] = [decoder.usize()?, decoder.usize()?];
        let (elements, shift) = stored::read_packed(n, decoder, context)?;
        let packed = PackedRhs::restore(context.allocator(), sets, [k, n], elements)?;
        Ok(Matrix {
            packed,
            shift,
            epilogue: Epilogue::read(decoder)?,
        })
    }
}

/// The kind of a matrix in a file.
const MATRIX: &str = "matrix";

/// Packs the right-hand side of a product, `transposed` or not, with its bias.
///
/// # Shapes
///
/// `b: [k, n]`, transposed `[n, k]`; `bias`: `n` elements, or one for all.
fn pack(node: &NodeCall<'_>) -> Result<Matrix, Error> {
    let (right, host) = (node.inputs.dense(1)?, node.execution.host());
    if right.shape().rank() != 2 {
        let message = format_args!("is expected to be a matrix, found shape {}", right.shape());
        return Err(node.inputs.error(1, message));
    }
    let reading = right.read()?;
    let view = reading.view()?;
    let view = match node.attributes.flag("transposed", false)? {
        false => view,
        true => view.permute(&[1, 0])?,
    };
    let packed = PackedRhs::pack_for(host.allocator(), stored::precision(node)?, &view)?;
    let packed = packed.map_elements(|elements| shared::share(host, elements));
    let [_, n] = packed.extents();
    let shift = match node.inputs.optional_dense(2)? {
        None => None,
        Some(bias) => {
            let bias = bias.read()?;
            let bias: Vec<f32> = match bias.elements::<f32>()? {
                &[one] => vec![one; n],
                list if list.len() == n => list.to_vec(),
                list => {
                    let found = list.len();
                    let message = format_args!(
                        "is expected to have an element for each of {n} columns, found {found}"
                    );
                    return Err(node.inputs.error(2, message));
                }
            };
            Some(DenseHostTensor::from_slice(host.allocator(), &[n], &bias)?)
        }
    };
    Ok(Matrix {
        packed,
        shift,
        epilogue: Epilogue::of(node)?,
    })
}

/// `%y = "cpu.fused.matmul"(%a, %added, %p) {epilogue = ["relu a0"], transposed = 0 : i64}`, or without the residual,
/// which is added to the sums before the epilogue.
///
/// # Shapes
///
/// `a: [.., k]`, `y: [.., n]`, what is added as `y`.
pub(super) fn multiply(
    operands: Operands<'_>,
    _epilogue: Attr<AttributeView<'_>>,
    _transposed: Attr<i64>,
    execution: &ExecutionContext,
) -> TensorResult {
    let (right, operands) = state::<Matrix>(&operands)?;
    let left = dense(operands, 0)?;
    let mut extents = left.shape().to_dims();
    match extents.last_mut() {
        Some(last) => *last = right.packed.extents()[1],
        None => return Err(Error::invalid_argument("expected a matrix, found a number")),
    }
    let out = memory::output(execution, &extents)?;
    let after = TensorEpilogue {
        scale: None,
        shift: right.shift.clone(),
        added: match operands.len() {
            1 => TensorAddend::Nothing,
            _ => TensorAddend::Tensor(dense(operands, 1)?.clone()),
        },
        activation: right.epilogue.activation,
        then: right.epilogue.then.clone(),
    };
    let chain = matmul_packed_into(execution, left, &right.packed, after, &out)?;
    Ok(made(out, chain))
}
