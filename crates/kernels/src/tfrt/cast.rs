//! Conversions between integers and floats.

use tfrt_host::kernel::KernelRegistry;

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("tfrt.cast.i64_to_f32", |value: i64| value as f32)
        .add("tfrt.cast.i64_to_f64", |value: i64| value as f64)
        .add("tfrt.cast.f32_to_i64", |value: f32| truncate(value.into()))
        .add("tfrt.cast.f64_to_i64", truncate);
}

/// `%i = "tfrt.cast.f64_to_i64"(%f)`: rounds towards zero; a number out of range becomes the nearest `i64`, and NaN
/// becomes 0.
fn truncate(value: f64) -> i64 {
    value as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_truncated_towards_zero_and_saturate() {
        assert_eq!(truncate(-255.999), -255);
        assert_eq!(truncate(1e300), i64::MAX);
        assert_eq!(truncate(f64::NEG_INFINITY), i64::MIN);
        assert_eq!(truncate(f64::NAN), 0);
    }
}
