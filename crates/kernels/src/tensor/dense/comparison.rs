//! Kernels that compare dense tensors: equal, or nearly equal.

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{Chain, Error};
use tfrt_tensor::{BF16, Bool, Complex, Element, F16, Tensor, compare};

use super::dense_of;

pub(super) fn register(registry: &mut KernelRegistry) {
    type Compare = fn(&Tensor, &Tensor, Chain) -> Result<(bool, Chain), Error>;
    add_all! { registry, Compare,
        "tfrt_dht.tensor_equal.ui8" => equal::<u8>;
        "tfrt_dht.tensor_equal.ui16" => equal::<u16>;
        "tfrt_dht.tensor_equal.ui32" => equal::<u32>;
        "tfrt_dht.tensor_equal.ui64" => equal::<u64>;
        "tfrt_dht.tensor_equal.i8" => equal::<i8>;
        "tfrt_dht.tensor_equal.i32" => equal::<i32>;
        "tfrt_dht.tensor_equal.i64" => equal::<i64>;
        "tfrt_dht.tensor_equal.f16" => equal::<F16>;
        "tfrt_dht.tensor_equal.bf16" => equal::<BF16>;
        "tfrt_dht.tensor_equal.f32" => equal::<f32>;
        "tfrt_dht.tensor_equal.f64" => equal::<f64>;
        "tfrt_dht.tensor_equal.bool" => equal::<Bool>;
        "tfrt_dht.tensor_equal.complex64" => equal::<Complex<f32>>;
        "tfrt_dht.tensor_equal.complex128" => equal::<Complex<f64>>;
        "tfrt_dht.tensor_allclose.ui8" => close::<u8, 2>;
        "tfrt_dht.tensor_allclose.ui16" => close::<u16, 2>;
        "tfrt_dht.tensor_allclose.ui32" => close::<u32, 2>;
        "tfrt_dht.tensor_allclose.ui64" => close::<u64, 2>;
        "tfrt_dht.tensor_allclose.i8" => close::<i8, 2>;
        "tfrt_dht.tensor_allclose.i32" => close::<i32, 2>;
        "tfrt_dht.tensor_allclose.i64" => close::<i64, 2>;
        "tfrt_dht.tensor_allclose.f16" => close::<F16, 2>;
        "tfrt_dht.tensor_allclose.bf16" => close::<BF16, 2>;
        "tfrt_dht.tensor_allclose.f32" => close::<f32, 2>;
        "tfrt_dht.tensor_allclose.f64" => close::<f64, 2>;
        "tfrt_dht.tensor_allclose.bool" => close::<Bool, 2>;
        "tfrt_dht.tensor_allclose.complex64" => close::<Complex<f32>, 2>;
        "tfrt_dht.tensor_allclose.complex128" => close::<Complex<f64>, 2>;
        "tfrt_dht.tensor_allclose.3ulp.ui8" => close::<u8, 3>;
        "tfrt_dht.tensor_allclose.3ulp.ui16" => close::<u16, 3>;
        "tfrt_dht.tensor_allclose.3ulp.ui32" => close::<u32, 3>;
        "tfrt_dht.tensor_allclose.3ulp.ui64" => close::<u64, 3>;
        "tfrt_dht.tensor_allclose.3ulp.i8" => close::<i8, 3>;
        "tfrt_dht.tensor_allclose.3ulp.i32" => close::<i32, 3>;
        "tfrt_dht.tensor_allclose.3ulp.i64" => close::<i64, 3>;
        "tfrt_dht.tensor_allclose.3ulp.f16" => close::<F16, 3>;
        "tfrt_dht.tensor_allclose.3ulp.bf16" => close::<BF16, 3>;
        "tfrt_dht.tensor_allclose.3ulp.f32" => close::<f32, 3>;
        "tfrt_dht.tensor_allclose.3ulp.f64" => close::<f64, 3>;
        "tfrt_dht.tensor_allclose.3ulp.bool" => close::<Bool, 3>;
        "tfrt_dht.tensor_allclose.3ulp.complex64" => close::<Complex<f32>, 3>;
        "tfrt_dht.tensor_allclose.3ulp.complex128" => close::<Complex<f64>, 3>;
        "tfrt_dht.tensor_allclose.1000ulp.ui8" => close::<u8, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.ui16" => close::<u16, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.ui32" => close::<u32, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.ui64" => close::<u64, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.i8" => close::<i8, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.i32" => close::<i32, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.i64" => close::<i64, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.f16" => close::<F16, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.bf16" => close::<BF16, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.f32" => close::<f32, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.f64" => close::<f64, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.bool" => close::<Bool, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.complex64" => close::<Complex<f32>, 1000>;
        "tfrt_dht.tensor_allclose.1000ulp.complex128" => close::<Complex<f64>, 1000>;
        "tfrt_dht.tensor_allclose.2000ulp.ui8" => close::<u8, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.ui16" => close::<u16, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.ui32" => close::<u32, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.ui64" => close::<u64, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.i8" => close::<i8, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.i32" => close::<i32, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.i64" => close::<i64, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.f16" => close::<F16, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.bf16" => close::<BF16, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.f32" => close::<f32, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.f64" => close::<f64, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.bool" => close::<Bool, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.complex64" => close::<Complex<f32>, 2000>;
        "tfrt_dht.tensor_allclose.2000ulp.complex128" => close::<Complex<f64>, 2000>;
        "tfrt_dht.tensor_allclose.100000ulp.ui8" => close::<u8, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.ui16" => close::<u16, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.ui32" => close::<u32, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.ui64" => close::<u64, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.i8" => close::<i8, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.i32" => close::<i32, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.i64" => close::<i64, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.f16" => close::<F16, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.bf16" => close::<BF16, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.f32" => close::<f32, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.f64" => close::<f64, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.bool" => close::<Bool, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.complex64" => close::<Complex<f32>, 100000>;
        "tfrt_dht.tensor_allclose.100000ulp.complex128" => close::<Complex<f64>, 100000>;
    }
}

/// `%same, %c1 = tfrt_dht.tensor_equal.<t> %a, %b, %c0`
fn equal<T: Element>(a: &Tensor, b: &Tensor, _: Chain) -> Result<(bool, Chain), Error> {
    let same = compare::equal(dense_of(a, T::DTYPE)?, dense_of(b, T::DTYPE)?)?;
    Ok((same, Chain))
}

/// `%same, %c1 = "tfrt_dht.tensor_allclose.<n>ulp.<t>"(%a, %b, %c0)`
fn close<T: Element, const N_ULPS: u32>(
    a: &Tensor,
    b: &Tensor,
    _: Chain,
) -> Result<(bool, Chain), Error> {
    let (a, b) = (dense_of(a, T::DTYPE)?, dense_of(b, T::DTYPE)?);
    Ok((compare::all_close(a, b, N_ULPS)?, Chain))
}
