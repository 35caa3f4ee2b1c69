//! Products by matrices that are packed when a model is opened.

use tfrt_host::codec::{DecodeContext, Decoder, Encoder, ValueCodec, expect};
use tfrt_host::kernel::{Attr, Operands};
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext, Heap, HostContext, Value};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::matmul::{PackedRight, matmul_packed_into};
use tfrt_tensor::math::panel::{AddedTensor, TensorAfter};

use super::{Made, activation, dense, made, memory, shared, stored};

/// A packed right side, and what is added to each row.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    packed: PackedRight,
    shift: Option<DenseHostTensor>,
}

impl Value for Matrix {
    const NAME: &'static str = "!cpu.fused.matrix";
    type Storage = Heap;
}

/// Matrices as files keep them: how they are packed, the extents, then the elements and what is added.
pub(super) const CODEC: ValueCodec = ValueCodec {
    type_name: Matrix::NAME,
    version: 1,
    encode: |value, encoder| expect::<Matrix>(value)?.write(encoder),
    decode: |decoder, context| Ok(AnyAsyncValue::new(Matrix::read(decoder, context)?)),
};

impl Matrix {
    fn write(&self, encoder: &mut Encoder) -> Result<(), Error> {
        let set = stored::target(encoder)?;
        let elements = self.packed.elements_for(encoder.allocator(), set)?;
        stored::write_layout(MATRIX, set, encoder);
        for extent in self.packed.extents() {
            encoder.usize(extent);
        }
        stored::write_packed(elements, self.shift.clone(), encoder)
    }

    fn read(decoder: &mut Decoder<'_>, context: &DecodeContext<'_>) -> Result<Matrix, Error> {
        let (kind, sets) = stored::read_layout(decoder, context)?;
        if kind != MATRIX {
            let kind = kind.escape_debug();
            return Err(decoder.wrong(format_args!("a matrix, found '{kind}'")));
        }
        let [k, n] = [decoder.usize()?, decoder.usize()?];
        let (elements, shift) = stored::read_packed(n, decoder, context)?;
        let packed = PackedRight::restore(context.allocator(), sets, [k, n], elements)?;
        Ok(Matrix { packed, shift })
    }
}

/// The kind of a matrix.
const MATRIX: &str = "matrix";

/// `%m = "cpu.pack.matmul"(%b, %bias) {transposed = 0 : i64}`, or without the bias.
///
/// # Shapes
///
/// `b: [k, n]`, transposed `[n, k]`; `bias`: `n` elements, or one for all.
pub(super) fn pack(
    operands: Operands<'_>,
    transposed: Attr<i64>,
    host: &HostContext,
) -> Result<Matrix, Error> {
    let right = dense(&operands, 0)?;
    if right.shape().rank() != 2 {
        let shape = right.shape();
        return Err(Error::invalid_argument(format!(
            "expected a matrix to pack, found shape {shape}"
        )));
    }
    let reading = right.read()?;
    let view = reading.view()?;
    let packed = match *transposed {
        0 => PackedRight::pack(host.allocator(), &view)?,
        _ => PackedRight::pack(host.allocator(), &view.permute(&[1, 0])?)?,
    };
    let packed = packed.map_elements(|elements| shared::share(host, elements));
    let [_, n] = packed.extents();
    let shift = match operands.len() {
        1 => None,
        _ => {
            let bias = dense(&operands, 1)?.read()?;
            let bias: Vec<f32> = match bias.elements::<f32>()? {
                &[one] => vec![one; n],
                list if list.len() == n => list.to_vec(),
                list => {
                    return Err(Error::invalid_argument(format!(
                        "expected an element for each of {n} columns, found {}",
                        list.len()
                    )));
                }
            };
            Some(DenseHostTensor::from_slice(host.allocator(), &[n], &bias)?)
        }
    };
    Ok(Matrix { packed, shift })
}

/// `%y = "cpu.fused.matmul"(%a, %m, ..) {activation = "relu"}`
///
/// A third operand is added to the sums before the activation.
///
/// # Shapes
///
/// `a: [.., k]`, `y: [.., n]`, what is added as `y`.
pub(super) fn multiply(
    operands: Operands<'_>,
    name: Attr<&str>,
    execution: &ExecutionContext,
) -> Made {
    let left = dense(&operands, 0)?;
    let right = operands.get(1).and_then(|value| value.get::<Matrix>());
    let right = right.ok_or_else(|| Error::invalid_argument("operand 1: expected a matrix"))?;
    let mut extents = left.shape().to_dims();
    match extents.last_mut() {
        Some(last) => *last = right.packed.extents()[1],
        None => return Err(Error::invalid_argument("expected a matrix, found a number")),
    }
    let out = memory::output(execution, &extents)?;
    let after = TensorAfter {
        scale: None,
        shift: right.shift.clone(),
        added: match operands.len() {
            2 => AddedTensor::Nothing,
            _ => AddedTensor::Tensor(dense(&operands, 2)?.clone()),
        },
        activation: activation(&name)?,
    };
    let chain = matmul_packed_into(execution, left, &right.packed, after, &out)?;
    Ok(made(out, chain))
}
