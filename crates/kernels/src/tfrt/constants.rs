//! Constants, whose values are attributes.
//!
//! Those called `constant_s` are for functions marked synchronous. Here that makes no difference:
//! a synchronous function takes any kernel whose results are there when it returns.

use tfrt_host::Value;
use tfrt_host::kernel::{Attr, BF16, Complex, F16, KernelRegistry, ScalarAttr};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt.constant.i1", constant::<bool>)
        .add("tfrt.constant.i32", constant::<i32>)
        .add("tfrt.constant.i64", constant::<i64>)
        .add("tfrt.constant.ui32", constant::<u32>)
        .add("tfrt.constant.ui64", constant::<u64>)
        .add("tfrt.constant.bf16", constant::<BF16>)
        .add("tfrt.constant.f16", constant::<F16>)
        .add("tfrt.constant.f32", constant::<f32>)
        .add("tfrt.constant.f64", constant::<f64>)
        .add("tfrt.constant.complex64", complex::<f32>)
        .add("tfrt.constant.complex128", complex::<f64>)
        .add("tfrt.constant_s.i32", constant::<i32>)
        .add("tfrt.constant_s.i64", constant::<i64>)
        .add("tfrt.constant_s.bf16", constant::<BF16>)
        .add("tfrt.constant_s.f16", constant::<F16>)
        .add("tfrt.constant_s.f32", constant::<f32>)
        .add("tfrt.constant_s.f64", constant::<f64>);
}

/// `%x = tfrt.constant.<t> 1`
fn constant<T: Value + ScalarAttr>(value: Attr<T>) -> T {
    *value
}

/// `%x = tfrt.constant.complex<n> 1.0, 2.0`: attributes come in the order of their names.
fn complex<T: Value + ScalarAttr>(imaginary: Attr<T>, real: Attr<T>) -> Complex<T>
where
    Complex<T>: Value,
{
    Complex {
        real: *real,
        imaginary: *imaginary,
    }
}
