//! Comparison of tensors, exact or up to rounding.

use tfrt_host::{DType, Error};

use crate::{Complex, CooHostTensor, DenseHostTensor, Element, with_element};

/// Returns whether two tensors are of the same type and shape and have the same elements.
///
/// Floats are compared by IEEE 754: 0 is -0, and what is no number equals nothing.
///
/// # Errors
///
/// `FailedPrecondition` if somebody is writing one of them.
pub fn equal(a: &DenseHostTensor, b: &DenseHostTensor) -> Result<bool, Error> {
    if a.metadata() != b.metadata() {
        return Ok(false);
    }
    let (a_reading, b_reading) = (a.read()?, b.read()?);
    with_element!(a.dtype(), T => {
        Ok(a_reading.elements::<T>()? == b_reading.elements::<T>()?)
    }, else Ok(true))
}

/// Returns whether two tensors have the same type and shape, and nearly the same elements: floats and parts of
/// complex numbers up to `n_ulps`, all others exactly.
///
/// Two floats are near if `|x - y| <= epsilon * |x + y| * n_ulps`, or if they differ by less than the
/// smallest normal number (the rule of the original).
///
/// # Errors
///
/// `FailedPrecondition` if somebody is writing one of them.
///
/// # Examples
///
/// ```
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
/// use tfrt_tensor::{DenseHostTensor, compare};
///
/// let host = HostContext::builder(KernelRegistry::new()).build();
/// let of = |value| DenseHostTensor::scalar(host.allocator(), value);
/// assert!(compare::all_close(&of(1.0_f32)?, &of(1.000_000_1_f32)?, 2)?);
/// assert!(!compare::all_close(&of(1.0_f32)?, &of(1.000_01_f32)?, 2)?);
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub fn all_close(a: &DenseHostTensor, b: &DenseHostTensor, n_ulps: u32) -> Result<bool, Error> {
    if a.metadata() != b.metadata() {
        return Ok(false);
    }
    let n_ulps = f64::from(n_ulps);
    match a.dtype() {
        DType::F32 => pairs(a, b, |x: f32, y| near_f32(x, y, n_ulps)),
        DType::F64 => pairs(a, b, |x: f64, y| near_f64(x, y, n_ulps)),
        DType::Complex64 => pairs(a, b, |x: Complex<f32>, y: Complex<f32>| {
            near_f32(x.real, y.real, n_ulps) && near_f32(x.imaginary, y.imaginary, n_ulps)
        }),
        DType::Complex128 => pairs(a, b, |x: Complex<f64>, y: Complex<f64>| {
            near_f64(x.real, y.real, n_ulps) && near_f64(x.imaginary, y.imaginary, n_ulps)
        }),
        _ => equal(a, b),
    }
}

/// Returns whether two sparse tensors have the same shape and indices, and nearly the same values.
///
/// # Errors
///
/// `FailedPrecondition` if somebody is writing one of them.
pub fn coo_close(a: &CooHostTensor, b: &CooHostTensor, n_ulps: u32) -> Result<bool, Error> {
    Ok(a.metadata() == b.metadata()
        && equal(a.indices(), b.indices())?
        && all_close(a.values(), b.values(), n_ulps)?)
}

fn pairs<T: Element>(
    a: &DenseHostTensor,
    b: &DenseHostTensor,
    near: impl Fn(T, T) -> bool,
) -> Result<bool, Error> {
    let (a, b) = (a.read()?, b.read()?);
    let (a, b) = (a.elements::<T>()?, b.elements::<T>()?);
    Ok(a.iter().zip(b).all(|(x, y)| near(*x, *y)))
}

fn near_f32(x: f32, y: f32, n_ulps: f64) -> bool {
    #[allow(clippy::cast_possible_truncation, reason = "a small whole number")]
    let n_ulps = n_ulps as f32;
    let difference = (x - y).abs();
    x == y || difference <= f32::EPSILON * (x + y).abs() * n_ulps || difference < f32::MIN_POSITIVE
}

fn near_f64(x: f64, y: f64, n_ulps: f64) -> bool {
    let difference = (x - y).abs();
    x == y || difference <= f64::EPSILON * (x + y).abs() * n_ulps || difference < f64::MIN_POSITIVE
}
