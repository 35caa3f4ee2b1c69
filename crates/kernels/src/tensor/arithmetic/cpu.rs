//! `cpu`: convolutions and products with weights that are packed once, before calls, and with epilogues. The dialect
//! is ours; the original has none like it. It also has ONNX's operations ([`crate::onnx`]).

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{Error, ExecutionContext, Heap, HostContext, Value};
use tfrt_tensor::math::conv::{Convolution, PackedFilter, convolve_packed_into};
use tfrt_tensor::math::matmul::{PackedRhs, matmul_packed_into};
use tfrt_tensor::math::packed_gemm::{Activation, InstructionSet, TensorAddend, TensorEpilogue};
use tfrt_tensor::math::window::{Padding, Window};
use tfrt_tensor::{DenseHostTensor, Tensor};

use super::eigen::channel_tensors;
use super::{WriteResult, two};

pub(in crate::tensor) fn register(registry: &mut KernelRegistry) {
    registry
        .add("cpu.conv2d.pack.f32", pack_filter)
        .add("cpu.conv2d.pack.batch_norm.f32", pack_normalised_filter)
        .add("cpu.conv2d.f32", convolution::<false>)
        .add("cpu.conv2d.add.f32", convolution::<true>)
        .add("cpu.matmul.pack.f32", pack_matrix)
        .add("cpu.matmul.f32", product);
    crate::onnx::register(registry);
    crate::rows::register(registry);
    crate::graph::register(registry);
}

/// A packed filter, with the factors and summands of its sums.
#[derive(Clone, Debug)]
struct Filter {
    packed: PackedFilter,
    /// The strides of the windows that the filter is packed for.
    strides: [usize; 2],
    scale: Option<DenseHostTensor>,
    shift: Option<DenseHostTensor>,
}

impl Value for Filter {
    const NAME: &'static str = "!cpu.filter";
    type Storage = Heap;
}

/// A packed right-hand side, with the summands of each row.
#[derive(Clone, Debug)]
struct Matrix {
    packed: PackedRhs,
    shift: DenseHostTensor,
}

impl Value for Matrix {
    const NAME: &'static str = "!cpu.matrix";
    type Storage = Heap;
}

/// `%packed = "cpu.conv2d.pack.f32"(%filter, %c0) {strides = [1 : i64, 1 : i64]}`
///
/// # Shapes
///
/// `filter: [kh, kw, c, f]`
fn pack_filter(
    filter: &Tensor,
    strides: Attr<&[i64]>,
    host: &HostContext,
) -> Result<Filter, Error> {
    let strides = two("Conv2D", "strides", &strides)?;
    Ok(Filter {
        packed: packed(filter, strides, host)?,
        strides,
        scale: None,
        shift: None,
    })
}

fn packed(filter: &Tensor, strides: [usize; 2], host: &HostContext) -> Result<PackedFilter, Error> {
    let filter = filter.as_dense()?;
    let &[height, width, _, _] = &filter.shape().to_dims()[..] else {
        let shape = filter.shape();
        return Err(Error::invalid_argument(format!(
            "Conv2D expects a filter of shape [height, width, channels, filters], found {shape}"
        )));
    };
    let windows = [
        Window::new(height, strides[0], Padding::Valid),
        Window::new(width, strides[1], Padding::Valid),
    ];
    let convolution = Convolution::new(&windows);
    PackedFilter::pack_best(
        host.allocator(),
        InstructionSet::best(),
        &convolution,
        &filter.read()?.view()?,
    )
}

/// `%packed = "cpu.conv2d.pack.batch_norm.f32"(%filter, %scale, %shift, %mean, %variance, %c0) {epsilon = .., strides = ..}`
///
/// # Shapes
///
/// `filter: [kh, kw, c, f]`, all others `[f]`.
#[expect(
    clippy::too_many_arguments,
    reason = "the operands and attributes of a kernel"
)]
fn pack_normalised_filter(
    filter: &Tensor,
    scale: &Tensor,
    shift: &Tensor,
    mean: &Tensor,
    variance: &Tensor,
    epsilon: Attr<f32>,
    strides: Attr<&[i64]>,
    host: &HostContext,
) -> Result<Filter, Error> {
    let strides = two("Conv2D", "strides", &strides)?;
    let (factors, summands) = channel_tensors(scale, shift, mean, variance)?.folded(*epsilon)?;
    let of = |list: &[f32]| DenseHostTensor::from_slice(host.allocator(), &[list.len()], list);
    Ok(Filter {
        packed: packed(filter, strides, host)?,
        strides,
        scale: Some(of(&factors)?),
        shift: Some(of(&summands)?),
    })
}

/// `%c1 = "cpu.conv2d.f32"(%x, %packed, %y, %c0) {activation = "relu", padding = [1 : i64, 1 : i64, 1 : i64, 1 : i64], ..}`
///
/// With `ADDS`, `cpu.conv2d.add.f32`, the sums are added to what stands in `%y`, before the activation.
///
/// # Shapes
///
/// `x: [n, h, w, c]`, `y: [n, oh, ow, f]`.
fn convolution<const ADDS: bool>(
    x: &Tensor,
    filter: &Filter,
    y: &Tensor,
    name: Attr<&str>,
    padding: Attr<&[i64]>,
    strides: Attr<&[i64]>,
    execution: &ExecutionContext,
) -> WriteResult {
    let &[height, width, _, _] = filter.packed.extents() else {
        return Err(Error::internal("a packed filter has four dimensions"));
    };
    let around = around(&padding)?;
    let strides = two("Conv2D", "strides", &strides)?;
    if strides != filter.strides {
        let packed = filter.strides;
        return Err(Error::invalid_argument(format!(
            "Conv2D with strides of {strides:?} by a filter that is packed for {packed:?}"
        )));
    }
    let windows = [(height, 0), (width, 1)]
        .map(|(extent, index)| Window::new(extent, strides[index], around[index]));
    let after = TensorEpilogue {
        scale: filter.scale.clone(),
        shift: filter.shift.clone(),
        added: if ADDS {
            TensorAddend::Result
        } else {
            TensorAddend::Nothing
        },
        activation: activation(&name)?,
        then: None,
    };
    let convolution = Convolution::new(&windows);
    convolve_packed_into(
        execution,
        &convolution,
        x.as_dense()?,
        &filter.packed,
        after,
        y.as_dense()?,
    )
}

/// Reads the padding of an image: above, below, to the left, to the right.
fn around(list: &[i64]) -> Result<[Padding; 2], Error> {
    let wrong = || {
        Error::invalid_argument(format!(
            "Conv2D expects padding to have 4 elements of 0 or more, found {list:?}"
        ))
    };
    let numbers: Result<Vec<usize>, _> = list.iter().map(|n| usize::try_from(*n)).collect();
    match numbers.map_err(|_| wrong())?[..] {
        [above, below, left, right] => Ok([
            Padding::Explicit(above, below),
            Padding::Explicit(left, right),
        ]),
        _ => Err(wrong()),
    }
}

fn activation(name: &str) -> Result<Activation, Error> {
    match name {
        "none" => Ok(Activation::None),
        "relu" => Ok(Activation::Relu),
        "relu6" => Ok(Activation::Relu6),
        _ => {
            let name = name.escape_debug();
            let message = format!("activation '{name}' is not recognized");
            let note = "activations are 'none', 'relu' and 'relu6'";
            Err(Error::invalid_argument(message).with_note(note))
        }
    }
}

/// `%packed = "cpu.matmul.pack.f32"(%b, %bias, %c0)`
///
/// # Shapes
///
/// `b: [k, n]`, `bias: [n]`.
fn pack_matrix(b: &Tensor, bias: &Tensor, host: &HostContext) -> Result<Matrix, Error> {
    let (b, bias) = (b.as_dense()?.read()?, bias.as_dense()?.read()?);
    let packed = PackedRhs::pack(host.allocator(), &b.view()?)?;
    let (bias, [_, n]) = (bias.elements::<f32>()?, packed.extents());
    if bias.len() != n {
        let found = bias.len();
        let message = format!("expected an element for each of {n} columns, found {found}");
        return Err(Error::invalid_argument(message));
    }
    Ok(Matrix {
        packed,
        shift: DenseHostTensor::from_slice(host.allocator(), &[n], bias)?,
    })
}

/// `%c1 = "cpu.matmul.f32"(%a, %packed, %y, %c0) {activation = "none"}`: y = activation(a b + bias)
///
/// # Shapes
///
/// `a: [.., k]`, `y: [.., n]`.
fn product(
    a: &Tensor,
    right: &Matrix,
    y: &Tensor,
    name: Attr<&str>,
    execution: &ExecutionContext,
) -> WriteResult {
    let after = TensorEpilogue {
        shift: Some(right.shift.clone()),
        activation: activation(&name)?,
        ..TensorEpilogue::default()
    };
    matmul_packed_into(
        execution,
        a.as_dense()?,
        &right.packed,
        after,
        y.as_dense()?,
    )
}
