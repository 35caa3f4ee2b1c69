//! Activations: functions of one element, with parameters that are the same for all.

use tfrt_host::Error;
use tfrt_tensor::Element;
use tfrt_tensor::math::elementwise as math;
use tfrt_tensor::math::functions::Float;
use tfrt_tensor::math::number::{Floating, Real};

use super::{Node, Operations, Outputs, with_floating, with_real};

/// `map!(2, [a = "alpha" 1.0, b = "beta" 0.5], |x| ..)` is an operation of one operand and two parameters, by a
/// function that is written once and made for `f32` and `f64`.
macro_rules! map {
    ($cost:literal, [$($parameter:ident = $name:literal $default:literal),*], |$x:ident| $body:expr) => {
        |node| {
            $(let $parameter = node.attributes.float_or($name, $default)?;)*
            let dtype = node.inputs.dense(0)?.dtype();
            with_floating!(dtype, T => {
                apply::<T>(node, $cost, move |x: T| {
                    x.map(
                        #[inline(always)]
                        |$x: f32| {
                            $(let $parameter: f32 = $parameter;)*
                            $body
                        },
                        #[inline(always)]
                        |$x: f64| {
                            $(let $parameter = f64::from($parameter);)*
                            $body
                        },
                    )
                })
            }, else Err(node.inputs.unsupported(0, dtype)))
        }
    };
}

pub(super) const OPERATIONS: &Operations = &[
    (
        "Celu",
        map!(24, [alpha = "alpha" 1.0], |x| {
            x.max(0.0) + (alpha * Float::expm1(x / alpha)).min(0.0)
        }),
    ),
    (
        "Elu",
        map!(24, [alpha = "alpha" 1.0], |x| {
            if x < 0.0 { alpha * Float::expm1(x) } else { x }
        }),
    ),
    ("Gelu", gelu),
    (
        "HardSigmoid",
        map!(2, [alpha = "alpha" 0.2, beta = "beta" 0.5], |x| {
            (alpha * x + beta).clamp(0.0, 1.0)
        }),
    ),
    (
        "HardSwish",
        map!(2, [], |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
    ),
    (
        "LeakyRelu",
        map!(1, [alpha = "alpha" 0.01], |x| if x < 0.0 { alpha * x } else { x }),
    ),
    (
        "Mish",
        map!(64, [], |x| x * Float::tanh(
            x.max(0.0) + Float::ln_1p(Float::exp(-x.abs()))
        )),
    ),
    ("PRelu", prelu),
    (
        "Selu",
        map!(24, [alpha = "alpha" 1.673_263_2, gamma = "gamma" 1.050_701], |x| {
            gamma * if x > 0.0 { x } else { alpha * Float::expm1(x) }
        }),
    ),
    ("Shrink", shrink),
    (
        "Softplus",
        map!(48, [], |x| x.max(0.0) + Float::ln_1p(Float::exp(-x.abs()))),
    ),
    ("Softsign", map!(4, [], |x| x / (1.0 + x.abs()))),
    (
        "Swish",
        map!(24, [alpha = "alpha" 1.0], |x| x * Float::sigmoid(alpha * x)),
    ),
    (
        "ThresholdedRelu",
        map!(1, [alpha = "alpha" 1.0], |x| if x > alpha { x } else { 0.0 }),
    ),
];

fn apply<T: Real>(
    node: &Node<'_>,
    cost: usize,
    function: impl Fn(T) -> T + Send + Sync + 'static,
) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let out = node.output(T::DTYPE, &x.shape().to_dims())?;
    let chain = math::map_into::<T, T>(node.execution, cost, x, &out, function)?;
    Ok(Outputs::later(out, chain))
}

/// `Gelu`: by the error function, or by the formula with the hyperbolic tangent.
fn gelu(node: &Node<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let dtype = x.dtype();
    let formula = node.attributes.string_or("approximate", "none")?;
    let out = node.output(dtype, &x.shape().to_dims())?;
    with_floating!(dtype, T => {
        let chain = match formula {
            "none" => math::unary_into::<math::Gelu, T>(node.execution, x, &out)?,
            "tanh" => math::unary_into::<math::GeluTanh, T>(node.execution, x, &out)?,
            other => {
                let message = format_args!("is expected to be 'none' or 'tanh', found '{}'", other.escape_debug());
                return Err(node.attributes.error("approximate", message));
            }
        };
        Ok(Outputs::later(out, chain))
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// `PRelu`: elements below 0 times those of a second operand, which broadcasts to the first.
fn prelu(node: &Node<'_>) -> Result<Outputs, Error> {
    let (x, slope) = (node.inputs.dense(0)?, node.inputs.dense(1)?);
    let dtype = x.dtype();
    with_real!(dtype, T => {
        let metadata = math::binary_metadata::<math::SlopedRelu, T>(x.metadata(), slope.metadata())
            .map_err(|error| node.told(&error))?;
        if metadata.shape != *x.shape() {
            let message = format_args!("of shape {} does not broadcast to {}", slope.shape(), x.shape());
            return Err(node.inputs.error(1, message));
        }
        let out = node.output(dtype, &x.shape().to_dims())?;
        let chain = math::binary_into::<math::SlopedRelu, T>(node.execution, x, slope, &out)?;
        Ok(Outputs::later(out, chain))
    }, else Err(node.inputs.unsupported(0, dtype)))
}

/// `Shrink`: elements nearer to 0 than `lambd` are 0, others come nearer by `bias`.
fn shrink(node: &Node<'_>) -> Result<Outputs, Error> {
    let lambda = f64::from(node.attributes.float_or("lambd", 0.5)?);
    let bias = f64::from(node.attributes.float_or("bias", 0.0)?);
    let dtype = node.inputs.dense(0)?.dtype();
    with_real!(dtype, T => apply::<T>(node, 4, move |x| {
        let wide = x.to_f64();
        if wide < -lambda {
            T::from_f64(wide + bias)
        } else if wide > lambda {
            T::from_f64(wide - bias)
        } else {
            T::ZERO
        }
    }), else Err(node.inputs.unsupported(0, dtype)))
}
