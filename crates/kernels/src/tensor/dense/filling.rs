//! Kernels that write all elements of a tensor in place.

use tfrt_host::kernel::{Attr, KernelRegistry, Rest, ScalarAttr};
use tfrt_host::{Chain, Error, Value};
use tfrt_tensor::attribute::{AttrElement, Values, wrong_count};
use tfrt_tensor::{BF16, Bool, Complex, Element, F16, Tensor};

use crate::operands;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt_dht.fill_tensor_with_constant.ui8", fill::<u8>)
        .add("tfrt_dht.fill_tensor_with_constant.ui16", fill::<u16>)
        .add("tfrt_dht.fill_tensor_with_constant.ui32", fill::<u32>)
        .add("tfrt_dht.fill_tensor_with_constant.ui64", fill::<u64>)
        .add("tfrt_dht.fill_tensor_with_constant.i8", fill::<i8>)
        .add("tfrt_dht.fill_tensor_with_constant.i32", fill::<i32>)
        .add("tfrt_dht.fill_tensor_with_constant.i64", fill::<i64>)
        .add("tfrt_dht.fill_tensor_with_constant.f16", fill::<F16>)
        .add("tfrt_dht.fill_tensor_with_constant.bf16", fill::<BF16>)
        .add("tfrt_dht.fill_tensor_with_constant.f32", fill::<f32>)
        .add("tfrt_dht.fill_tensor_with_constant.f64", fill::<f64>)
        .add("tfrt_dht.fill_tensor_with_constant.bool", fill_bool)
        .add(
            "tfrt_dht.fill_tensor_with_constant.complex64",
            fill_complex::<Complex<f32>>,
        )
        .add(
            "tfrt_dht.fill_tensor_with_constant.complex128",
            fill_complex::<Complex<f64>>,
        )
        .add("tfrt_dht.set_tensor_with_constant_values.ui8", set::<u8>)
        .add("tfrt_dht.set_tensor_with_constant_values.ui16", set::<u16>)
        .add("tfrt_dht.set_tensor_with_constant_values.ui32", set::<u32>)
        .add("tfrt_dht.set_tensor_with_constant_values.ui64", set::<u64>)
        .add("tfrt_dht.set_tensor_with_constant_values.i8", set::<i8>)
        .add("tfrt_dht.set_tensor_with_constant_values.i32", set::<i32>)
        .add("tfrt_dht.set_tensor_with_constant_values.i64", set::<i64>)
        .add("tfrt_dht.set_tensor_with_constant_values.f16", set::<F16>)
        .add("tfrt_dht.set_tensor_with_constant_values.bf16", set::<BF16>)
        .add("tfrt_dht.set_tensor_with_constant_values.f32", set::<f32>)
        .add("tfrt_dht.set_tensor_with_constant_values.f64", set::<f64>)
        .add("tfrt_dht.set_tensor_with_constant_values.bool", set::<Bool>)
        .add(
            "tfrt_dht.set_tensor_with_constant_values.complex64",
            set::<Complex<f32>>,
        )
        .add(
            "tfrt_dht.set_tensor_with_constant_values.complex128",
            set::<Complex<f64>>,
        );
    type Set = fn(&Tensor, Chain, Rest) -> Result<Chain, Error>;
    add_all! { registry, Set,
        "tfrt_dht.set_tensor_with_values.ui8" => set_from_operands::<u8, u8>;
        "tfrt_dht.set_tensor_with_values.ui16" => set_from_operands::<u16, u16>;
        "tfrt_dht.set_tensor_with_values.ui32" => set_from_operands::<u32, u32>;
        "tfrt_dht.set_tensor_with_values.ui64" => set_from_operands::<u64, u64>;
        "tfrt_dht.set_tensor_with_values.i8" => set_from_operands::<i8, i8>;
        "tfrt_dht.set_tensor_with_values.i32" => set_from_operands::<i32, i32>;
        "tfrt_dht.set_tensor_with_values.i64" => set_from_operands::<i64, i64>;
        "tfrt_dht.set_tensor_with_values.f16" => set_from_operands::<F16, F16>;
        "tfrt_dht.set_tensor_with_values.bf16" => set_from_operands::<BF16, BF16>;
        "tfrt_dht.set_tensor_with_values.f32" => set_from_operands::<f32, f32>;
        "tfrt_dht.set_tensor_with_values.f64" => set_from_operands::<f64, f64>;
        "tfrt_dht.set_tensor_with_values.bool" => set_from_operands::<bool, Bool>;
        "tfrt_dht.set_tensor_with_values.complex64" => set_from_operands::<Complex<f32>, Complex<f32>>;
        "tfrt_dht.set_tensor_with_values.complex128" => set_from_operands::<Complex<f64>, Complex<f64>>;
    }
}

pub(super) fn register_synchronous(registry: &mut KernelRegistry) {
    registry
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.ui8",
            set_synchronously::<u8>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.ui16",
            set_synchronously::<u16>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.ui32",
            set_synchronously::<u32>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.ui64",
            set_synchronously::<u64>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.i8",
            set_synchronously::<i8>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.i32",
            set_synchronously::<i32>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.i64",
            set_synchronously::<i64>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.f16",
            set_synchronously::<F16>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.bf16",
            set_synchronously::<BF16>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.f32",
            set_synchronously::<f32>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.f64",
            set_synchronously::<f64>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.bool",
            set_synchronously::<Bool>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.complex64",
            set_synchronously::<Complex<f32>>,
        )
        .add(
            "tfrt_dht_sync.set_tensor_with_constant_values.complex128",
            set_synchronously::<Complex<f64>>,
        );
}

/// `%c1 = tfrt_dht.fill_tensor_with_constant.<t> %t, %c0 1 : <t>`
fn fill<T: Element + ScalarAttr>(tensor: &Tensor, value: Attr<T>) -> Result<Chain, Error> {
    write_everywhere(tensor, *value)
}

/// `%c1 = tfrt_dht.fill_tensor_with_constant.bool %t, %c0 true`
fn fill_bool(tensor: &Tensor, value: Attr<bool>) -> Result<Chain, Error> {
    write_everywhere(tensor, Bool::from(*value))
}

/// `%c1 = tfrt_dht.fill_tensor_with_constant.complex64 %t, %c0 [1.0 : f32, 0.0 : f32]`
fn fill_complex<T: AttrElement>(tensor: &Tensor, value: Values<'_, T>) -> Result<Chain, Error> {
    write_everywhere(tensor, complex(value)?)
}

/// Returns the complex number of a real and an imaginary part.
pub(super) fn complex<T: AttrElement>(value: Values<'_, T>) -> Result<T, Error> {
    value.single()?.ok_or_else(|| {
        let found = value.n_parts();
        Error::invalid_argument(format!("a complex value is two numbers, found {found}"))
    })
}

fn write_everywhere<T: Element>(tensor: &Tensor, value: T) -> Result<Chain, Error> {
    let mut writing = tensor.as_dense()?.write()?;
    writing.elements_mut::<T>()?.fill(value);
    Ok(Chain)
}

/// `%c1 = tfrt_dht.set_tensor_with_constant_values.<t> %t, %c0 [1 : <t>, 2 : <t>]`
fn set<T: AttrElement>(tensor: &Tensor, values: Values<'_, T>) -> Result<Chain, Error> {
    let mut writing = tensor.as_dense()?.write()?;
    let elements = writing.elements_mut::<T>()?;
    elements.copy_from_slice(values.expect(elements.len())?);
    Ok(Chain)
}

/// `tfrt_dht_sync.set_tensor_with_constant_values.<t> %t [1 : <t>, 2 : <t>]`
fn set_synchronously<T: AttrElement>(tensor: &Tensor, values: Values<'_, T>) -> Result<(), Error> {
    set(tensor, values).map(|_| ())
}

/// `%c1 = "tfrt_dht.set_tensor_with_values.<t>"(%t, %c0, %x, %y)`
fn set_from_operands<V: Value + Copy, T: Element + From<V>>(
    tensor: &Tensor,
    _: Chain,
    values: Rest,
) -> Result<Chain, Error> {
    let values = operands::copies::<V>(&values)?;
    let mut writing = tensor.as_dense()?.write()?;
    let elements = writing.elements_mut::<T>()?;
    if values.len() != elements.len() {
        return Err(wrong_count(values.len(), elements.len(), false));
    }
    for (element, value) in elements.iter_mut().zip(values) {
        *element = value.into();
    }
    Ok(Chain)
}
