//! [`Transform`]: the final transform of a row of scores.

use tfrt_host::Error;
use tfrt_tensor::math::number::Floating;

use super::super::NodeCall;

/// The final transform of a row of scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transform {
    Nothing,
    Softmax,
    Logistic,
    /// Softmax of the scores that are not 0; zeros stay.
    SoftmaxOfOthers,
    Probit,
}

impl Transform {
    /// Reads the attribute `post_transform`, an integer.
    pub(super) fn of_number(node: &NodeCall<'_>) -> Result<Transform, Error> {
        match node.attributes.integer_or("post_transform", 0)? {
            0 => Ok(Transform::Nothing),
            1 => Ok(Transform::Softmax),
            2 => Ok(Transform::Logistic),
            3 => Ok(Transform::SoftmaxOfOthers),
            4 => Ok(Transform::Probit),
            other => Err(node
                .attributes
                .error("post_transform", format_args!("has no meaning for {other}"))),
        }
    }

    /// Reads the attribute `post_transform`, a name.
    pub(super) fn of_name(node: &NodeCall<'_>) -> Result<Transform, Error> {
        match node.attributes.string_or("post_transform", "NONE")? {
            "NONE" => Ok(Transform::Nothing),
            "SOFTMAX" => Ok(Transform::Softmax),
            "LOGISTIC" => Ok(Transform::Logistic),
            "SOFTMAX_ZERO" => Ok(Transform::SoftmaxOfOthers),
            "PROBIT" => Ok(Transform::Probit),
            other => Err(node.attributes.error(
                "post_transform",
                format_args!("has no meaning for '{}'", other.escape_debug()),
            )),
        }
    }

    pub(super) fn apply<T: Floating>(self, row: &mut [T]) {
        let all = |row: &mut [T], function: fn(f64) -> f64| {
            row.iter_mut()
                .for_each(|x| *x = T::from_f64(function(x.to_f64())));
        };
        match self {
            Transform::Nothing => {}
            Transform::Softmax => softmax(row, |_| true),
            Transform::SoftmaxOfOthers => softmax(row, |x| x.abs() > 1e-7),
            Transform::Logistic => all(row, logistic),
            Transform::Probit => all(row, probit),
        }
    }
}

fn softmax<T: Floating>(row: &mut [T], is_in: impl Fn(f64) -> bool) {
    let most = row
        .iter()
        .map(|x| x.to_f64())
        .fold(f64::NEG_INFINITY, f64::max);
    let power = |x: &T| match x.to_f64() {
        x if is_in(x) => (x - most).exp(),
        _ => 0.0,
    };
    let sum: f64 = row.iter().map(power).sum();
    for x in row {
        *x = T::from_f64(if sum > 0.0 { power(x) / sum } else { 0.0 });
    }
}

pub(super) fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Returns the quantile of a standard normal variable, by Winitzki's approximation of the inverse error function.
pub(super) fn probit(likely: f64) -> f64 {
    const A: f64 = 0.147;
    let x = 2.0 * likely - 1.0;
    let logarithm = (1.0 - x * x).ln();
    let half = 2.0 / (std::f64::consts::PI * A) + logarithm / 2.0;
    let root = ((half * half - logarithm / A).sqrt() - half).sqrt();
    std::f64::consts::SQRT_2 * x.signum() * root
}
