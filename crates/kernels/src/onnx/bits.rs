//! Operations on bits: casts between types of one size.

use tfrt_host::Error;
use tfrt_tensor::DType;
use tfrt_tensor::subbyte::SubbyteType;

use super::opaque::retyped;
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[("onnx.BitCast", bit_cast)];

/// `BitCast(x)`, attribute `to`: reinterprets bits as another type of the same size. Nothing is copied.
fn bit_cast(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let to = node
        .attributes
        .dtype("to")?
        .ok_or_else(|| node.attributes.missing("to"))?;
    let n_bits = |dtype: DType| match SubbyteType::of_dtype(dtype) {
        Some(small) => Some(small.n_bits()),
        None => dtype.size_bytes().map(|n_bytes| n_bytes * 8),
    };
    if n_bits(to).is_none() || n_bits(to) != n_bits(x.dtype()) {
        let from = x.dtype();
        return Err(node.error(format_args!(
            "elements of {from} and of {to} have not as many bits"
        )));
    }
    Ok(retyped(x, to)?.into())
}
