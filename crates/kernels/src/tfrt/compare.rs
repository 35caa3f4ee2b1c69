//! Comparisons, minima and conjunctions of scalars.

use tfrt_host::kernel::KernelRegistry;

use super::arithmetic::Number;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt.equal.i32", equal::<i32>)
        .add("tfrt.equal.i64", equal::<i64>)
        .add("tfrt.lessequal.i32", less_equal::<i32>)
        .add("tfrt.lessequal.i64", less_equal::<i64>)
        .add("tfrt.minimum.f32", minimum::<f32>)
        .add("tfrt.minimum.f64", minimum::<f64>)
        .add("tfrt.and.i1", and);
}

/// `%e = tfrt.equal.<t> %a, %b`
fn equal<T: Number>(a: T, b: T) -> bool {
    a == b
}

/// `%l = "tfrt.lessequal.<t>"(%a, %b)`
fn less_equal<T: Number>(a: T, b: T) -> bool {
    a <= b
}

/// `%m = "tfrt.minimum.<t>"(%a, %b)`: the first, unless the second is less.
fn minimum<T: Number>(a: T, b: T) -> T {
    if b < a { b } else { a }
}

/// `%z = tfrt.and.i1 %p, %q`
fn and(a: bool, b: bool) -> bool {
    a && b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_of_unordered_values_is_the_first() {
        assert_eq!(minimum(2.0, 1.0), 1.0);
        assert_eq!(minimum(1.0, f64::NAN), 1.0);
        assert!(minimum(f32::NAN, 1.0).is_nan());
    }
}
