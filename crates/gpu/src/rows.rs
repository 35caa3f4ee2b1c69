//! The rows of `tfrt-ops` that GPUs have kernels for: [`KERNELS`].
//!
//! Most calculate with `f32`, and by that with half precision ([`halves`]); rows that move elements take those of any type.
//!
//! A kernel queues its work at once if its operands are ready, and tells that its result is: readers run behind it.

use tfrt_host::device::{DeviceMemory, DeviceSlice};
use tfrt_host::{Chain, DType, Error, Promise, when_all};
use tfrt_ops::AttrValue;
use tfrt_tensor::DeviceTensor;
use tfrt_tensor::op::{DeviceCall, OpCall, OpKernel, OpResults, RunFn};

use crate::KIND;
use crate::device::memory_of;
use crate::kernels::Number;

mod along;
mod halves;
mod matrix;
mod moves;
mod pointwise;
mod program;
mod tf;
mod windows;

/// The kernels of GPUs.
pub const KERNELS: &[OpKernel] = &{
    let mut all = [OTHERS[0]; N_KERNELS];
    let mut at = 0;
    while at < pointwise::UNARY.len() {
        all[at] = kernel(pointwise::UNARY[at].0, pointwise::unary);
        at += 1;
    }
    let mut index = 0;
    while index < pointwise::BINARY.len() {
        all[at] = kernel(pointwise::BINARY[index].0, pointwise::binary);
        at += 1;
        index += 1;
    }
    index = 0;
    while index < OTHERS.len() {
        all[at] = OTHERS[index];
        at += 1;
        index += 1;
    }
    // What calculates with `f32` does so for half precision, too.
    index = 0;
    while index < N_OF_F32 {
        all[at] = OpKernel {
            run: halves::run,
            priority: -1,
            ..all[index]
        }
        .types(HALVES);
        at += 1;
        index += 1;
    }
    index = 0;
    while index < pointwise::OF_NUMBERS.len() {
        all[at] = pointwise::of_types(pointwise::OF_NUMBERS[index], NUMBERS);
        at += 1;
        index += 1;
    }
    index = 0;
    while index < pointwise::OF_F64.len() {
        all[at] = pointwise::of_types(pointwise::OF_F64[index], F64);
        at += 1;
        index += 1;
    }
    index = 0;
    while index < pointwise::OF_TRUTH.len() {
        all[at] = pointwise::of_types(pointwise::OF_TRUTH[index], TRUTH);
        at += 1;
        index += 1;
    }
    all[at] = kernel("dot", matrix::dot).types(F64);
    all
};

/// The number of kernels that calculate with `f32`: those of pointwise rows, and the first of the others.
const N_OF_F32: usize = pointwise::UNARY.len() + pointwise::BINARY.len() + N_CALCULATING;

const N_KERNELS: usize = 2 * N_OF_F32 + OTHERS.len() - N_CALCULATING
    + pointwise::OF_NUMBERS.len()
    + pointwise::OF_F64.len()
    + pointwise::OF_TRUTH.len()
    + 1;

/// The number of [`OTHERS`] that calculate with `f32`: the first ones.
const N_CALCULATING: usize = 17;

/// Types of half precision, which may meet `f32` as scales of norms do.
const HALVES: &[DType] = &[DType::F16, DType::Bf16, DType::F32];

/// Types of wide numbers.
const NUMBERS: &[DType] = &[DType::F64, DType::I32, DType::I64];

const F64: &[DType] = &[DType::F64];

const TRUTH: &[DType] = &[DType::I1];

/// Types whose elements are moved.
const MOVED: &[DType] = &[
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::F64,
    DType::I1,
    DType::Ui8,
    DType::I8,
    DType::Ui16,
    DType::I16,
    DType::Ui32,
    DType::I32,
    DType::Ui64,
    DType::I64,
];

/// Types that programs of pointwise steps take.
const PROGRAMMED: &[DType] = &[DType::F32, DType::F16, DType::Bf16, DType::I1];

const OTHERS: &[OpKernel] = &[
    kernel("dot", matrix::dot),
    kernel("reduce", along::reduce)
        .on_host(&[1])
        .accepts(along::takes_reduce),
    kernel("softmax", along::softmax),
    kernel("norm", along::norm).accepts(along::takes_norm),
    kernel("conv", windows::conv),
    kernel("pool", windows::pool).accepts(windows::takes_pool),
    kernel("onnx.Gemm", matrix::gemm),
    kernel("onnx.Clip", pointwise::clip),
    kernel("onnx.Max", pointwise::fold),
    kernel("onnx.Min", pointwise::fold),
    kernel("onnx.Sum", pointwise::fold),
    kernel("onnx.Mean", pointwise::fold),
    kernel("tf.BiasAdd", tf::bias_add),
    kernel("tf.Conv2D", tf::conv2d),
    kernel("tf.MaxPool", tf::pool),
    kernel("tf.AvgPool", tf::pool),
    kernel("tf.FusedBatchNormV3", tf::batch_norm),
    moving("transpose", matrix::transpose),
    moving("reshape", moves::view).on_host(&[1]),
    moving("identity", moves::view),
    moving("onnx.Flatten", moves::view),
    moving("onnx.Squeeze", moves::view).on_host(&[1]),
    moving("onnx.Unsqueeze", moves::view).on_host(&[1]),
    moving("onnx.Trilu", moves::triangle).on_host(&[1]),
    moving("onnx.DepthToSpace", moves::blocks),
    moving("onnx.SpaceToDepth", moves::blocks),
    moving("broadcast", moves::broadcast).on_host(&[1]),
    moving("tile", moves::tile).on_host(&[1]),
    moving("concat", moves::concat),
    moving("split", moves::split).on_host(&[1]),
    moving("slice", moves::slice).on_host(&[1, 2, 3, 4]),
    moving("reverse", moves::reverse),
    moving("pad", moves::pad)
        .on_host(&[1, 3])
        .accepts(moves::takes_pad),
    moving("gather", moves::gather).accepts(moves::takes_gather),
    moving("select", moves::select).accepts(moves::takes_select),
    moving("cast", moves::cast).accepts(moves::takes_cast),
    kernel("pointwise", program::run)
        .types(PROGRAMMED)
        .accepts(program::takes),
];

const fn kernel(op: &'static str, run: RunFn) -> OpKernel {
    OpKernel::new(op, KIND, run).types(&[DType::F32])
}

const fn moving(op: &'static str, run: RunFn) -> OpKernel {
    OpKernel::new(op, KIND, run).types(MOVED)
}

/// Queues work when the operands of a call are ready; it makes the only result.
fn queue(
    call: &DeviceCall<'_>,
    out: DeviceTensor,
    done: Promise<Chain>,
    work: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> OpResults {
    when_all(&call.after()).when_settled(move |all| match all.error() {
        Some(error) => done.complete(Err(error.clone())),
        None => done.complete(work().map(|()| Chain)),
    });
    call.gives([out])
}

/// Returns the type of elements that kernels calculate with.
fn number_of(tensor: &DeviceTensor) -> Result<Number, Error> {
    match tensor.metadata().dtype {
        DType::F32 => Ok(Number::F32),
        DType::F64 => Ok(Number::F64),
        DType::I32 => Ok(Number::I32),
        DType::I64 => Ok(Number::I64),
        DType::I1 => Ok(Number::I1),
        dtype => Err(Error::unimplemented(format!(
            "no kernel on GPUs calculates with {dtype}"
        ))),
    }
}

/// Returns the number of bytes of a tensor's elements.
fn size_of(tensor: &DeviceTensor) -> Result<usize, Error> {
    let dtype = tensor.metadata().dtype;
    let size = dtype.size_bytes();
    size.ok_or_else(|| Error::unimplemented(format!("no kernel on GPUs takes {dtype}")))
}

/// Returns the extents of a tensor.
fn dims(tensor: &DeviceTensor) -> Vec<usize> {
    tensor.metadata().shape.to_dims().to_vec()
}

/// Returns memory for `n` elements of `size` bytes that a kernel makes on its way, where its result is: an operand may be
/// of another stream.
fn scratch(result: &DeviceSlice, n: usize, size: usize) -> Result<DeviceSlice, Error> {
    let len_bytes = n.saturating_mul(size);
    let memory: DeviceMemory = memory_of(result)?.shared().allocate(len_bytes)?;
    Ok(DeviceSlice::new(memory, 0..len_bytes).expect("it is the whole"))
}

/// Returns a number of the attributes.
fn float(call: &DeviceCall<'_>, name: &str) -> f32 {
    match call.attrs.get(name) {
        Some(AttrValue::Float(value)) => value as f32,
        Some(AttrValue::Int(value)) => value as f32,
        _ => 0.0,
    }
}

/// Returns an axis, counted from the end if it is negative.
fn axis_of(call: &DeviceCall<'_>, axis: i64, rank: usize) -> Result<usize, Error> {
    let signed = i64::try_from(rank).unwrap_or(i64::MAX);
    let found = usize::try_from(if axis < 0 { axis + signed } else { axis });
    let found = found.ok().filter(|axis| *axis < rank);
    found.ok_or_else(|| {
        call.error(format_args!(
            "expected an axis of {rank} dimensions, found {axis}"
        ))
    })
}

/// Begins a call: its operands, its only result, and the promise of that.
fn begin<'a>(call: &OpCall<'a>) -> Result<(DeviceCall<'a>, DeviceTensor, Promise<Chain>), Error> {
    let call = DeviceCall::new(call)?;
    let (out, done) = call.output(0)?;
    Ok((call, out, done))
}

/// A handle that shares an operand's elements.
fn elements(tensor: &DeviceTensor) -> DeviceSlice {
    tensor.elements().clone()
}

/// Dimensions along which no extent is 1, neighbours joined where all operands lie as if they were one.
struct Collapsed {
    /// Extent, and the step of each operand.
    dims: Vec<(usize, Vec<usize>)>,
}

impl Collapsed {
    /// Joins dimensions: extents, outermost first, and for each operand the steps.
    fn new(dims: &[usize], steps: &[Vec<usize>]) -> Collapsed {
        let mut all: Vec<(usize, Vec<usize>)> = Vec::new();
        for (at, &dim) in dims.iter().enumerate() {
            if dim == 1 {
                continue;
            }
            let own: Vec<usize> = steps.iter().map(|steps| steps[at]).collect();
            match all.last_mut() {
                Some((outer, outer_steps))
                    if outer_steps
                        .iter()
                        .zip(&own)
                        .all(|(outer, own)| *outer == own * dim) =>
                {
                    *outer *= dim;
                    *outer_steps = own;
                }
                _ => all.push((dim, own)),
            }
        }
        Collapsed { dims: all }
    }

    /// Returns `N` extents, and the steps of an operand; `None` if there are more.
    fn padded<const N: usize>(&self, operand: usize) -> Option<([usize; N], [u32; N])> {
        let missing = N.checked_sub(self.dims.len())?;
        let (mut dims, mut steps) = ([1; N], [0; N]);
        for (at, (dim, own)) in self.dims.iter().enumerate() {
            dims[missing + at] = *dim;
            steps[missing + at] = u32::try_from(own[operand]).ok()?;
        }
        Some((dims, steps))
    }
}

/// Returns the steps of elements that lie one after the other.
pub(crate) fn row_major(dims: &[usize]) -> Vec<usize> {
    let mut steps = vec![1; dims.len()];
    for at in (1..dims.len()).rev() {
        steps[at - 1] = steps[at] * dims[at];
    }
    steps
}

/// Returns the steps of an operand that is broadcast to extents: 0 where it is repeated.
fn broadcast_steps(from: &[usize], to: &[usize]) -> Vec<usize> {
    let own = row_major(from);
    let missing = to.len() - from.len();
    let step = |at: usize| match at.checked_sub(missing) {
        Some(at) if from[at] != 1 => own[at],
        _ => 0,
    };
    (0..to.len()).map(step).collect()
}

/// Moves elements of `size` bytes, those of the operand by steps; along more than five dimensions by several launches.
fn rearrange(
    size: usize,
    y: &DeviceSlice,
    x: &DeviceSlice,
    dims: &[usize],
    steps: Vec<usize>,
) -> Result<(), Error> {
    let collapsed = Collapsed::new(dims, &[steps]);
    if let Some((dims, steps)) = collapsed.padded::<5>(0) {
        return crate::kernels::move_elements(y, x, size, dims, steps);
    }
    let Some(((n, own), inner)) = collapsed.dims.split_first() else {
        return Err(Error::invalid_argument(
            "elements are too far apart for a kernel",
        ));
    };
    let inner_dims: Vec<usize> = inner.iter().map(|(dim, _)| *dim).collect();
    let inner_steps: Vec<usize> = inner.iter().map(|(_, own)| own[0]).collect();
    let len = inner_dims.iter().product::<usize>();
    for index in 0..*n {
        let y = behind(y, size * index * len)?;
        let x = behind(x, size * index * own[0])?;
        rearrange(size, &y, &x, &inner_dims, inner_steps.clone())?;
    }
    Ok(())
}

/// Returns what lies behind so many bytes.
fn behind(slice: &DeviceSlice, n_bytes: usize) -> Result<DeviceSlice, Error> {
    let range = slice.range();
    let part = DeviceSlice::new(slice.memory().clone(), range.start + n_bytes..range.end);
    part.ok_or_else(|| Error::internal("elements beyond the end of memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_joined_where_elements_lie_as_if_they_were_one() {
        let plain = |dims: &[usize]| Collapsed::new(dims, &[row_major(dims)]).padded::<4>(0);
        assert_eq!(plain(&[2, 3, 1, 4]), Some(([1, 1, 1, 24], [0, 0, 0, 1])));
        assert_eq!(plain(&[]), Some(([1; 4], [0; 4])));
        let bias = Collapsed::new(
            &[2, 3, 4],
            &[row_major(&[2, 3, 4]), broadcast_steps(&[4], &[2, 3, 4])],
        );
        assert_eq!(bias.padded::<4>(1), Some(([1, 1, 6, 4], [0, 0, 0, 1])));
        assert_eq!(broadcast_steps(&[3, 1], &[2, 3, 4]), [0, 1, 0]);
        let mixed = Collapsed::new(&[2, 2, 2, 2, 2], &[vec![0, 1, 0, 1, 0]]);
        assert_eq!(mixed.padded::<4>(0), None);
    }
}
