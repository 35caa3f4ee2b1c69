//! `ts`, `ts_sync`: kernels on shapes.

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{Chain, Error, HostContext, Value};
use tfrt_tensor::{FixedRankShape, PartialTensorShape, TensorShape};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("ts.build_shape", build)
        .add("ts.equal_shape", |a: &TensorShape, b: &TensorShape| a == b)
        .add("ts.get_dimension", dimension)
        .add("ts.get_num_elements", n_elements)
        .add("ts.print_shape", print)
        .add("ts.as_fixed_rank_shape.0", FixedRankShape::<0>::new)
        .add("ts.as_fixed_rank_shape.1", FixedRankShape::<1>::new)
        .add("ts.as_fixed_rank_shape.2", FixedRankShape::<2>::new)
        .add("ts.as_fixed_rank_shape.3", FixedRankShape::<3>::new)
        .add("ts.print_fixed_rank_shape.0", print_fixed::<0>)
        .add("ts.print_fixed_rank_shape.1", print_fixed::<1>)
        .add("ts.print_fixed_rank_shape.2", print_fixed::<2>)
        .add("ts.print_fixed_rank_shape.3", print_fixed::<3>)
        .add("ts.build_partial_shape", build_partial)
        .add("ts.build_unranked_partial_shape", || {
            PartialTensorShape::UNRANKED
        })
        .add("ts.print_partial_shape", print_partial)
        .add("ts.to_shape", PartialTensorShape::to_shape)
        .add("ts.to_partial_shape", to_partial);
}

pub(super) fn register_synchronous(registry: &mut KernelRegistry) {
    registry
        .add("ts_sync.build_shape", build)
        .add("ts_sync.build_partial_shape", build_partial)
        .add("ts_sync.get_num_elements", n_elements)
        .add("ts_sync.to_shape", PartialTensorShape::to_shape)
        .add("ts_sync.to_partial_shape", to_partial);
}

/// `%s = ts.build_shape [2 : i64, 7 : i64]`
fn build(value: Attr<&[i64]>) -> Result<TensorShape, Error> {
    TensorShape::from_i64(&value)
}

/// `%d = ts.get_dimension %s, %i`
fn dimension(shape: &TensorShape, index: i32) -> Result<i64, Error> {
    let extent = usize::try_from(index)
        .ok()
        .and_then(|index| shape.extent(index));
    extent
        .and_then(|extent| i64::try_from(extent).ok())
        .ok_or_else(|| {
            Error::invalid_argument(format!("there is no dimension {index} in shape {shape}"))
        })
}

/// `%n = ts.get_num_elements %s`
fn n_elements(shape: &TensorShape) -> Result<i64, Error> {
    let n_elements = shape.n_elements().and_then(|n| i64::try_from(n).ok());
    n_elements.ok_or_else(|| {
        Error::invalid_argument(format!(
            "a tensor of shape {shape} has more elements than fit 63 bits"
        ))
    })
}

/// `%c1 = ts.print_shape %s, %c0`
fn print(shape: &TensorShape, host: &HostContext) -> Chain {
    host.output().print(format_args!("shape = {shape}"));
    Chain
}

/// `%c1 = ts.print_fixed_rank_shape.<r> %s, %c0`
fn print_fixed<const RANK: usize>(shape: &FixedRankShape<RANK>, host: &HostContext) -> Chain
where
    FixedRankShape<RANK>: Value,
{
    host.output()
        .print(format_args!("fixed_rank_shape = {shape}"));
    Chain
}

/// `%p = ts.build_partial_shape [-1 : i64, 4 : i64]`
fn build_partial(value: Attr<&[i64]>) -> Result<PartialTensorShape, Error> {
    PartialTensorShape::from_i64(&value)
}

/// `%c1 = ts.print_partial_shape %p, %c0`
fn print_partial(shape: &PartialTensorShape, host: &HostContext) -> Chain {
    host.output()
        .print(format_args!("partial_tensor_shape = {shape}"));
    Chain
}

/// `%p = ts.to_partial_shape %s`
fn to_partial(shape: &TensorShape) -> PartialTensorShape {
    shape.into()
}
