//! `coo`: sparse tensors.
//!
//! The original gives coordinates of a dense tensor's elements in the order of the dimensions, but finds
//! them by the extents in the opposite one, so that they are right where both orders are the same. Ours are
//! right.

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Chain, DType, Error, HostContext};
use tfrt_tensor::{CooHostTensor, Element, Tensor, TensorFormat, TensorMetadata, compare, convert};

use super::dense::dense_of;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry.add("coo.print_tensor", print);
    type Convert = fn(&Tensor, &HostContext) -> Result<(Tensor, Chain), Error>;
    add_all! { registry, Convert,
        "coo.convert_dht_to_coo.f32.0" => to_sparse::<f32, 0>;
        "coo.convert_dht_to_coo.f32.1" => to_sparse::<f32, 1>;
        "coo.convert_dht_to_coo.f32.2" => to_sparse::<f32, 2>;
        "coo.convert_dht_to_coo.f32.3" => to_sparse::<f32, 3>;
        "coo.convert_dht_to_coo.i32.0" => to_sparse::<i32, 0>;
        "coo.convert_dht_to_coo.i32.1" => to_sparse::<i32, 1>;
        "coo.convert_dht_to_coo.i32.2" => to_sparse::<i32, 2>;
        "coo.convert_dht_to_coo.i32.3" => to_sparse::<i32, 3>;
        "coo.convert_coo_to_dht.f32.0" => to_dense::<f32, 0>;
        "coo.convert_coo_to_dht.f32.1" => to_dense::<f32, 1>;
        "coo.convert_coo_to_dht.f32.2" => to_dense::<f32, 2>;
        "coo.convert_coo_to_dht.f32.3" => to_dense::<f32, 3>;
        "coo.convert_coo_to_dht.i32.0" => to_dense::<i32, 0>;
        "coo.convert_coo_to_dht.i32.1" => to_dense::<i32, 1>;
        "coo.convert_coo_to_dht.i32.2" => to_dense::<i32, 2>;
        "coo.convert_coo_to_dht.i32.3" => to_dense::<i32, 3>;
    }
    type Compare = fn(&Tensor, &Tensor, Chain) -> Result<(bool, Chain), Error>;
    add_all! { registry, Compare,
        "coo.tensor_equal.f32.0" => equal::<f32, 0>;
        "coo.tensor_equal.f32.1" => equal::<f32, 1>;
        "coo.tensor_equal.f32.2" => equal::<f32, 2>;
        "coo.tensor_equal.f32.3" => equal::<f32, 3>;
        "coo.tensor_equal.i32.0" => equal::<i32, 0>;
        "coo.tensor_equal.i32.1" => equal::<i32, 1>;
        "coo.tensor_equal.i32.2" => equal::<i32, 2>;
        "coo.tensor_equal.i32.3" => equal::<i32, 3>;
    }
}

/// `%c1 = coo.print_tensor %t, %c0`
fn print(tensor: &Tensor, host: &HostContext) -> Result<Chain, Error> {
    host.output().print(tensor.as_coo()?.to_text()?);
    Ok(Chain)
}

/// `%s, %c1 = coo.convert_dht_to_coo.<t>.<r> %t, %c0`
fn to_sparse<T: Element, const RANK: usize>(
    tensor: &Tensor,
    host: &HostContext,
) -> Result<(Tensor, Chain), Error> {
    let dense = dense_of(tensor, T::DTYPE)?;
    expect_rank(dense.metadata(), RANK)?;
    let sparse = CooHostTensor::from_dense(host.allocator(), dense)?;
    Ok((sparse.into(), Chain))
}

/// `%t, %c1 = coo.convert_coo_to_dht.<t>.<r> %s, %c0`
fn to_dense<T: Element, const RANK: usize>(
    tensor: &Tensor,
    host: &HostContext,
) -> Result<(Tensor, Chain), Error> {
    expect(tensor, T::DTYPE, RANK)?;
    let dense = convert::to_format(tensor, TensorFormat::DenseHost, host.allocator())?;
    Ok((dense, Chain))
}

/// `%same, %c1 = coo.tensor_equal.<t>.<r> %a, %b, %c0`
fn equal<T: Element, const RANK: usize>(
    a: &Tensor,
    b: &Tensor,
    _: Chain,
) -> Result<(bool, Chain), Error> {
    const N_ULPS: u32 = 2;
    let (a, b) = (expect(a, T::DTYPE, RANK)?, expect(b, T::DTYPE, RANK)?);
    Ok((compare::coo_close(a, b, N_ULPS)?, Chain))
}

/// Returns the sparse tensor, which must have this type and rank.
fn expect(tensor: &Tensor, dtype: DType, rank: usize) -> Result<&CooHostTensor, Error> {
    let sparse = tensor.as_coo()?;
    sparse.metadata().expect_dtype(dtype)?;
    expect_rank(sparse.metadata(), rank)?;
    Ok(sparse)
}

fn expect_rank(metadata: &TensorMetadata, rank: usize) -> Result<(), Error> {
    if metadata.shape.rank() == rank {
        return Ok(());
    }
    Err(Error::invalid_argument(format!(
        "expected a tensor of {rank} dimensions, found one of {metadata}"
    )))
}
