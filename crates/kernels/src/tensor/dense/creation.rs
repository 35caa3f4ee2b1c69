//! Kernels that create dense tensors, and tensors of one value.

use tfrt_host::kernel::{Attr, KernelRegistry, ScalarAttr};
use tfrt_host::{Error, HostContext};
use tfrt_tensor::attribute::{AttrElement, Values};
use tfrt_tensor::{BF16, Bool, Complex, Element, F16, ScalarHostTensor, Tensor, TensorShape};

use super::zeroed;
use crate::tensor::dense::filling::complex;

/// A function that makes a tensor of a shape.
type Create = fn(Attr<&[i64]>, &HostContext) -> Result<Tensor, Error>;

pub(super) fn register(registry: &mut KernelRegistry) {
    add_all! { registry, Create,
        "tfrt_dht.create_uninitialized_tensor.ui8.0" => uninitialized::<u8>;
        "tfrt_dht.create_uninitialized_tensor.ui8.1" => uninitialized::<u8>;
        "tfrt_dht.create_uninitialized_tensor.ui8.2" => uninitialized::<u8>;
        "tfrt_dht.create_uninitialized_tensor.ui8.3" => uninitialized::<u8>;
        "tfrt_dht.create_uninitialized_tensor.ui8.4" => uninitialized::<u8>;
        "tfrt_dht.create_uninitialized_tensor.ui8.5" => uninitialized::<u8>;
        "tfrt_dht.create_uninitialized_tensor.ui16.0" => uninitialized::<u16>;
        "tfrt_dht.create_uninitialized_tensor.ui16.1" => uninitialized::<u16>;
        "tfrt_dht.create_uninitialized_tensor.ui16.2" => uninitialized::<u16>;
        "tfrt_dht.create_uninitialized_tensor.ui16.3" => uninitialized::<u16>;
        "tfrt_dht.create_uninitialized_tensor.ui16.4" => uninitialized::<u16>;
        "tfrt_dht.create_uninitialized_tensor.ui16.5" => uninitialized::<u16>;
        "tfrt_dht.create_uninitialized_tensor.ui32.0" => uninitialized::<u32>;
        "tfrt_dht.create_uninitialized_tensor.ui32.1" => uninitialized::<u32>;
        "tfrt_dht.create_uninitialized_tensor.ui32.2" => uninitialized::<u32>;
        "tfrt_dht.create_uninitialized_tensor.ui32.3" => uninitialized::<u32>;
        "tfrt_dht.create_uninitialized_tensor.ui32.4" => uninitialized::<u32>;
        "tfrt_dht.create_uninitialized_tensor.ui32.5" => uninitialized::<u32>;
        "tfrt_dht.create_uninitialized_tensor.ui64.0" => uninitialized::<u64>;
        "tfrt_dht.create_uninitialized_tensor.ui64.1" => uninitialized::<u64>;
        "tfrt_dht.create_uninitialized_tensor.ui64.2" => uninitialized::<u64>;
        "tfrt_dht.create_uninitialized_tensor.ui64.3" => uninitialized::<u64>;
        "tfrt_dht.create_uninitialized_tensor.ui64.4" => uninitialized::<u64>;
        "tfrt_dht.create_uninitialized_tensor.ui64.5" => uninitialized::<u64>;
        "tfrt_dht.create_uninitialized_tensor.i8.0" => uninitialized::<i8>;
        "tfrt_dht.create_uninitialized_tensor.i8.1" => uninitialized::<i8>;
        "tfrt_dht.create_uninitialized_tensor.i8.2" => uninitialized::<i8>;
        "tfrt_dht.create_uninitialized_tensor.i8.3" => uninitialized::<i8>;
        "tfrt_dht.create_uninitialized_tensor.i8.4" => uninitialized::<i8>;
        "tfrt_dht.create_uninitialized_tensor.i8.5" => uninitialized::<i8>;
        "tfrt_dht.create_uninitialized_tensor.i32.0" => uninitialized::<i32>;
        "tfrt_dht.create_uninitialized_tensor.i32.1" => uninitialized::<i32>;
        "tfrt_dht.create_uninitialized_tensor.i32.2" => uninitialized::<i32>;
        "tfrt_dht.create_uninitialized_tensor.i32.3" => uninitialized::<i32>;
        "tfrt_dht.create_uninitialized_tensor.i32.4" => uninitialized::<i32>;
        "tfrt_dht.create_uninitialized_tensor.i32.5" => uninitialized::<i32>;
        "tfrt_dht.create_uninitialized_tensor.i64.0" => uninitialized::<i64>;
        "tfrt_dht.create_uninitialized_tensor.i64.1" => uninitialized::<i64>;
        "tfrt_dht.create_uninitialized_tensor.i64.2" => uninitialized::<i64>;
        "tfrt_dht.create_uninitialized_tensor.i64.3" => uninitialized::<i64>;
        "tfrt_dht.create_uninitialized_tensor.i64.4" => uninitialized::<i64>;
        "tfrt_dht.create_uninitialized_tensor.i64.5" => uninitialized::<i64>;
        "tfrt_dht.create_uninitialized_tensor.f16.0" => uninitialized::<F16>;
        "tfrt_dht.create_uninitialized_tensor.f16.1" => uninitialized::<F16>;
        "tfrt_dht.create_uninitialized_tensor.f16.2" => uninitialized::<F16>;
        "tfrt_dht.create_uninitialized_tensor.f16.3" => uninitialized::<F16>;
        "tfrt_dht.create_uninitialized_tensor.f16.4" => uninitialized::<F16>;
        "tfrt_dht.create_uninitialized_tensor.f16.5" => uninitialized::<F16>;
        "tfrt_dht.create_uninitialized_tensor.bf16.0" => uninitialized::<BF16>;
        "tfrt_dht.create_uninitialized_tensor.bf16.1" => uninitialized::<BF16>;
        "tfrt_dht.create_uninitialized_tensor.bf16.2" => uninitialized::<BF16>;
        "tfrt_dht.create_uninitialized_tensor.bf16.3" => uninitialized::<BF16>;
        "tfrt_dht.create_uninitialized_tensor.bf16.4" => uninitialized::<BF16>;
        "tfrt_dht.create_uninitialized_tensor.bf16.5" => uninitialized::<BF16>;
        "tfrt_dht.create_uninitialized_tensor.f32.0" => uninitialized::<f32>;
        "tfrt_dht.create_uninitialized_tensor.f32.1" => uninitialized::<f32>;
        "tfrt_dht.create_uninitialized_tensor.f32.2" => uninitialized::<f32>;
        "tfrt_dht.create_uninitialized_tensor.f32.3" => uninitialized::<f32>;
        "tfrt_dht.create_uninitialized_tensor.f32.4" => uninitialized::<f32>;
        "tfrt_dht.create_uninitialized_tensor.f32.5" => uninitialized::<f32>;
        "tfrt_dht.create_uninitialized_tensor.f64.0" => uninitialized::<f64>;
        "tfrt_dht.create_uninitialized_tensor.f64.1" => uninitialized::<f64>;
        "tfrt_dht.create_uninitialized_tensor.f64.2" => uninitialized::<f64>;
        "tfrt_dht.create_uninitialized_tensor.f64.3" => uninitialized::<f64>;
        "tfrt_dht.create_uninitialized_tensor.f64.4" => uninitialized::<f64>;
        "tfrt_dht.create_uninitialized_tensor.f64.5" => uninitialized::<f64>;
        "tfrt_dht.create_uninitialized_tensor.bool.0" => uninitialized::<Bool>;
        "tfrt_dht.create_uninitialized_tensor.bool.1" => uninitialized::<Bool>;
        "tfrt_dht.create_uninitialized_tensor.bool.2" => uninitialized::<Bool>;
        "tfrt_dht.create_uninitialized_tensor.bool.3" => uninitialized::<Bool>;
        "tfrt_dht.create_uninitialized_tensor.bool.4" => uninitialized::<Bool>;
        "tfrt_dht.create_uninitialized_tensor.bool.5" => uninitialized::<Bool>;
        "tfrt_dht.create_uninitialized_tensor.complex64.0" => uninitialized::<Complex<f32>>;
        "tfrt_dht.create_uninitialized_tensor.complex64.1" => uninitialized::<Complex<f32>>;
        "tfrt_dht.create_uninitialized_tensor.complex64.2" => uninitialized::<Complex<f32>>;
        "tfrt_dht.create_uninitialized_tensor.complex64.3" => uninitialized::<Complex<f32>>;
        "tfrt_dht.create_uninitialized_tensor.complex64.4" => uninitialized::<Complex<f32>>;
        "tfrt_dht.create_uninitialized_tensor.complex64.5" => uninitialized::<Complex<f32>>;
        "tfrt_dht.create_uninitialized_tensor.complex128.0" => uninitialized::<Complex<f64>>;
        "tfrt_dht.create_uninitialized_tensor.complex128.1" => uninitialized::<Complex<f64>>;
        "tfrt_dht.create_uninitialized_tensor.complex128.2" => uninitialized::<Complex<f64>>;
        "tfrt_dht.create_uninitialized_tensor.complex128.3" => uninitialized::<Complex<f64>>;
        "tfrt_dht.create_uninitialized_tensor.complex128.4" => uninitialized::<Complex<f64>>;
        "tfrt_dht.create_uninitialized_tensor.complex128.5" => uninitialized::<Complex<f64>>;
    }
}

pub(super) fn register_synchronous(registry: &mut KernelRegistry) {
    add_all! { registry, Create,
        "tfrt_dht_sync.create_uninitialized_tensor.ui8.0" => uninitialized::<u8>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui8.1" => uninitialized::<u8>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui8.2" => uninitialized::<u8>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui8.3" => uninitialized::<u8>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui8.4" => uninitialized::<u8>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui8.5" => uninitialized::<u8>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui16.0" => uninitialized::<u16>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui16.1" => uninitialized::<u16>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui16.2" => uninitialized::<u16>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui16.3" => uninitialized::<u16>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui16.4" => uninitialized::<u16>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui16.5" => uninitialized::<u16>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui32.0" => uninitialized::<u32>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui32.1" => uninitialized::<u32>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui32.2" => uninitialized::<u32>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui32.3" => uninitialized::<u32>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui32.4" => uninitialized::<u32>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui32.5" => uninitialized::<u32>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui64.0" => uninitialized::<u64>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui64.1" => uninitialized::<u64>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui64.2" => uninitialized::<u64>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui64.3" => uninitialized::<u64>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui64.4" => uninitialized::<u64>;
        "tfrt_dht_sync.create_uninitialized_tensor.ui64.5" => uninitialized::<u64>;
        "tfrt_dht_sync.create_uninitialized_tensor.i8.0" => uninitialized::<i8>;
        "tfrt_dht_sync.create_uninitialized_tensor.i8.1" => uninitialized::<i8>;
        "tfrt_dht_sync.create_uninitialized_tensor.i8.2" => uninitialized::<i8>;
        "tfrt_dht_sync.create_uninitialized_tensor.i8.3" => uninitialized::<i8>;
        "tfrt_dht_sync.create_uninitialized_tensor.i8.4" => uninitialized::<i8>;
        "tfrt_dht_sync.create_uninitialized_tensor.i8.5" => uninitialized::<i8>;
        "tfrt_dht_sync.create_uninitialized_tensor.i32.0" => uninitialized::<i32>;
        "tfrt_dht_sync.create_uninitialized_tensor.i32.1" => uninitialized::<i32>;
        "tfrt_dht_sync.create_uninitialized_tensor.i32.2" => uninitialized::<i32>;
        "tfrt_dht_sync.create_uninitialized_tensor.i32.3" => uninitialized::<i32>;
        "tfrt_dht_sync.create_uninitialized_tensor.i32.4" => uninitialized::<i32>;
        "tfrt_dht_sync.create_uninitialized_tensor.i32.5" => uninitialized::<i32>;
        "tfrt_dht_sync.create_uninitialized_tensor.i64.0" => uninitialized::<i64>;
        "tfrt_dht_sync.create_uninitialized_tensor.i64.1" => uninitialized::<i64>;
        "tfrt_dht_sync.create_uninitialized_tensor.i64.2" => uninitialized::<i64>;
        "tfrt_dht_sync.create_uninitialized_tensor.i64.3" => uninitialized::<i64>;
        "tfrt_dht_sync.create_uninitialized_tensor.i64.4" => uninitialized::<i64>;
        "tfrt_dht_sync.create_uninitialized_tensor.i64.5" => uninitialized::<i64>;
        "tfrt_dht_sync.create_uninitialized_tensor.f16.0" => uninitialized::<F16>;
        "tfrt_dht_sync.create_uninitialized_tensor.f16.1" => uninitialized::<F16>;
        "tfrt_dht_sync.create_uninitialized_tensor.f16.2" => uninitialized::<F16>;
        "tfrt_dht_sync.create_uninitialized_tensor.f16.3" => uninitialized::<F16>;
        "tfrt_dht_sync.create_uninitialized_tensor.f16.4" => uninitialized::<F16>;
        "tfrt_dht_sync.create_uninitialized_tensor.f16.5" => uninitialized::<F16>;
        "tfrt_dht_sync.create_uninitialized_tensor.bf16.0" => uninitialized::<BF16>;
        "tfrt_dht_sync.create_uninitialized_tensor.bf16.1" => uninitialized::<BF16>;
        "tfrt_dht_sync.create_uninitialized_tensor.bf16.2" => uninitialized::<BF16>;
        "tfrt_dht_sync.create_uninitialized_tensor.bf16.3" => uninitialized::<BF16>;
        "tfrt_dht_sync.create_uninitialized_tensor.bf16.4" => uninitialized::<BF16>;
        "tfrt_dht_sync.create_uninitialized_tensor.bf16.5" => uninitialized::<BF16>;
        "tfrt_dht_sync.create_uninitialized_tensor.f32.0" => uninitialized::<f32>;
        "tfrt_dht_sync.create_uninitialized_tensor.f32.1" => uninitialized::<f32>;
        "tfrt_dht_sync.create_uninitialized_tensor.f32.2" => uninitialized::<f32>;
        "tfrt_dht_sync.create_uninitialized_tensor.f32.3" => uninitialized::<f32>;
        "tfrt_dht_sync.create_uninitialized_tensor.f32.4" => uninitialized::<f32>;
        "tfrt_dht_sync.create_uninitialized_tensor.f32.5" => uninitialized::<f32>;
        "tfrt_dht_sync.create_uninitialized_tensor.f64.0" => uninitialized::<f64>;
        "tfrt_dht_sync.create_uninitialized_tensor.f64.1" => uninitialized::<f64>;
        "tfrt_dht_sync.create_uninitialized_tensor.f64.2" => uninitialized::<f64>;
        "tfrt_dht_sync.create_uninitialized_tensor.f64.3" => uninitialized::<f64>;
        "tfrt_dht_sync.create_uninitialized_tensor.f64.4" => uninitialized::<f64>;
        "tfrt_dht_sync.create_uninitialized_tensor.f64.5" => uninitialized::<f64>;
        "tfrt_dht_sync.create_uninitialized_tensor.bool.0" => uninitialized::<Bool>;
        "tfrt_dht_sync.create_uninitialized_tensor.bool.1" => uninitialized::<Bool>;
        "tfrt_dht_sync.create_uninitialized_tensor.bool.2" => uninitialized::<Bool>;
        "tfrt_dht_sync.create_uninitialized_tensor.bool.3" => uninitialized::<Bool>;
        "tfrt_dht_sync.create_uninitialized_tensor.bool.4" => uninitialized::<Bool>;
        "tfrt_dht_sync.create_uninitialized_tensor.bool.5" => uninitialized::<Bool>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex64.0" => uninitialized::<Complex<f32>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex64.1" => uninitialized::<Complex<f32>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex64.2" => uninitialized::<Complex<f32>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex64.3" => uninitialized::<Complex<f32>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex64.4" => uninitialized::<Complex<f32>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex64.5" => uninitialized::<Complex<f32>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex128.0" => uninitialized::<Complex<f64>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex128.1" => uninitialized::<Complex<f64>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex128.2" => uninitialized::<Complex<f64>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex128.3" => uninitialized::<Complex<f64>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex128.4" => uninitialized::<Complex<f64>>;
        "tfrt_dht_sync.create_uninitialized_tensor.complex128.5" => uninitialized::<Complex<f64>>;
    }
    registry
        .add("tfrt_dht_sync.create_dense_tensor.ui8", of_values::<u8>)
        .add("tfrt_dht_sync.create_dense_tensor.ui16", of_values::<u16>)
        .add("tfrt_dht_sync.create_dense_tensor.ui32", of_values::<u32>)
        .add("tfrt_dht_sync.create_dense_tensor.ui64", of_values::<u64>)
        .add("tfrt_dht_sync.create_dense_tensor.i8", of_values::<i8>)
        .add("tfrt_dht_sync.create_dense_tensor.i32", of_values::<i32>)
        .add("tfrt_dht_sync.create_dense_tensor.i64", of_values::<i64>)
        .add("tfrt_dht_sync.create_dense_tensor.f16", of_values::<F16>)
        .add("tfrt_dht_sync.create_dense_tensor.bf16", of_values::<BF16>)
        .add("tfrt_dht_sync.create_dense_tensor.f32", of_values::<f32>)
        .add("tfrt_dht_sync.create_dense_tensor.f64", of_values::<f64>)
        .add("tfrt_dht_sync.create_dense_tensor.bool", of_values::<Bool>)
        .add(
            "tfrt_dht_sync.create_dense_tensor.complex64",
            of_values::<Complex<f32>>,
        )
        .add(
            "tfrt_dht_sync.create_dense_tensor.complex128",
            of_values::<Complex<f64>>,
        )
        .add("tfrt_dht_sync.create_from_scalar.ui8", of_scalar::<u8>)
        .add("tfrt_dht_sync.create_from_scalar.ui16", of_scalar::<u16>)
        .add("tfrt_dht_sync.create_from_scalar.ui32", of_scalar::<u32>)
        .add("tfrt_dht_sync.create_from_scalar.ui64", of_scalar::<u64>)
        .add("tfrt_dht_sync.create_from_scalar.i8", of_scalar::<i8>)
        .add("tfrt_dht_sync.create_from_scalar.i32", of_scalar::<i32>)
        .add("tfrt_dht_sync.create_from_scalar.i64", of_scalar::<i64>)
        .add("tfrt_dht_sync.create_from_scalar.f16", of_scalar::<F16>)
        .add("tfrt_dht_sync.create_from_scalar.bf16", of_scalar::<BF16>)
        .add("tfrt_dht_sync.create_from_scalar.f32", of_scalar::<f32>)
        .add("tfrt_dht_sync.create_from_scalar.f64", of_scalar::<f64>)
        .add("tfrt_dht_sync.create_from_scalar.bool", of_bool)
        .add(
            "tfrt_dht_sync.create_from_scalar.complex64",
            of_complex::<Complex<f32>>,
        )
        .add(
            "tfrt_dht_sync.create_from_scalar.complex128",
            of_complex::<Complex<f64>>,
        );
}

/// `%t = tfrt_dht.create_uninitialized_tensor.<t>.<r> [2 : i64, 3 : i64]`, where `<r>` says nothing
fn uninitialized<T: Element>(shape: Attr<&[i64]>, host: &HostContext) -> Result<Tensor, Error> {
    Ok(zeroed(T::DTYPE, &shape, host)?.into())
}

/// `%t = "tfrt_dht_sync.create_dense_tensor.<t>"() {shape = [2], values = [1 : <t>, 2 : <t>]}`: one value
/// is written everywhere.
fn of_values<T: AttrElement>(
    shape: Attr<&[i64]>,
    values: Values<'_, T>,
    host: &HostContext,
) -> Result<Tensor, Error> {
    let tensor = zeroed(T::DTYPE, &shape, host)?;
    {
        let mut writing = tensor.write()?;
        let elements = writing.elements_mut::<T>()?;
        match values.single()? {
            Some(value) => elements.fill(value),
            None => elements.copy_from_slice(values.expect(elements.len())?),
        }
    }
    Ok(tensor.into())
}

/// `%t = "tfrt_dht_sync.create_from_scalar.<t>"() {shape = [2], value = 1 : <t>}`
fn of_scalar<T: Element + ScalarAttr>(
    shape: Attr<&[i64]>,
    value: Attr<T>,
) -> Result<Tensor, Error> {
    everywhere(&shape, *value)
}

/// `%t = "tfrt_dht_sync.create_from_scalar.bool"() {shape = [2], value = true}`
fn of_bool(shape: Attr<&[i64]>, value: Attr<bool>) -> Result<Tensor, Error> {
    everywhere(&shape, Bool::from(*value))
}

/// `%t = "tfrt_dht_sync.create_from_scalar.complex64"() {shape = [2], value = [1.0 : f32, 0.0 : f32]}`
fn of_complex<T: AttrElement>(shape: Attr<&[i64]>, value: Values<'_, T>) -> Result<Tensor, Error> {
    everywhere(&shape, complex(value)?)
}

fn everywhere<T: Element>(shape: &[i64], value: T) -> Result<Tensor, Error> {
    let shape = TensorShape::from_i64(shape)?;
    Ok(ScalarHostTensor::new(shape, value).into())
}
