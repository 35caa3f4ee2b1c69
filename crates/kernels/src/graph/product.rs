//! Products by matrices that are packed when a model is opened.

use std::sync::Arc;

use tfrt_host::kernel::{Attr, Operands};
use tfrt_host::{Error, ExecutionContext, Heap, HostAllocator, HostContext, Value};
use tfrt_tensor::DenseHostTensor;
use tfrt_tensor::math::matmul::{PackedRight, matmul_packed_into};
use tfrt_tensor::math::panel::{AddedTensor, InstructionSet, TensorAfter};

use super::stored::{self, Parts, Storable};
use super::{Made, activation, dense, made, memory};

/// A packed right side, and what is added to each row.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    packed: PackedRight,
    shift: Option<DenseHostTensor>,
}

impl Value for Matrix {
    const NAME: &'static str = "!cpu.graph.matrix";
    type Storage = Heap;
}

impl Storable for Matrix {
    const KERNEL: &'static str = "cpu.stored.matrix";

    fn take_apart(
        &self,
        allocator: &Arc<dyn HostAllocator>,
        set: InstructionSet,
    ) -> Result<Parts, Error> {
        // What lies in memory has extents that fit.
        let numbers = self.packed.extents().map(i64::try_from);
        let mut tensors = vec![self.packed.elements_for(allocator, set)?];
        tensors.extend(self.shift.clone());
        Ok(Parts {
            kind: MATRIX.to_owned(),
            numbers: numbers.into_iter().filter_map(Result::ok).collect(),
            tensors,
        })
    }

    fn put_together(
        parts: Parts,
        sets: [InstructionSet; 2],
        allocator: &Arc<dyn HostAllocator>,
    ) -> Result<Matrix, Error> {
        let [k, n] = parts.extents()?;
        if parts.kind != MATRIX {
            let kind = parts.kind.escape_debug();
            return Err(stored::wrong(format_args!("a matrix, found '{kind}'")));
        }
        let (elements, shift) = parts.one_or_two()?;
        stored::expect_list(shift.as_ref(), n)?;
        let packed = PackedRight::restore(allocator, sets, [k, n], elements)?;
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

/// `%y = "cpu.graph.matmul"(%a, %m, ..) {activation = "relu"}`
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
