//! Steps of optimizers on values: `ApplyAdam` takes the variables that TensorFlow's `ResourceApplyAdam` changes, and gives their
//! new values.
//!
//! Formulas are those of TensorFlow's documentation of these operations; elements are `f32`.

use tfrt_ir::{Attribute, Type, ValueId};

use super::number;
use crate::legalize::Expansion;

/// The result of an expansion.
type Expanded = Result<Vec<ValueId>, String>;

/// The formulas of a step, appended operation by operation.
struct Step<'e, 'm>(&'e mut Expansion<'m>);

impl Step<'_, '_> {
    fn binary(&mut self, name: &str, a: ValueId, b: ValueId) -> ValueId {
        self.0.add(name, &[a, b], &[])
    }

    fn add(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary("graph.add", a, b)
    }

    fn sub(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary("graph.sub", a, b)
    }

    fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary("graph.mul", a, b)
    }

    fn div(&mut self, a: ValueId, b: ValueId) -> ValueId {
        self.binary("graph.div", a, b)
    }

    fn sqrt(&mut self, a: ValueId) -> ValueId {
        self.0.add("graph.sqrt", &[a], &[])
    }

    /// 1 less a value.
    fn complement(&mut self, a: ValueId) -> ValueId {
        let one = number(self.0, 1.0);
        self.sub(one, a)
    }

    /// A mean that moves towards a value: `old + (value - old) * rate`.
    fn moved(&mut self, old: ValueId, value: ValueId, rate: ValueId) -> ValueId {
        let difference = self.sub(value, old);
        let change = self.mul(difference, rate);
        self.add(old, change)
    }
}

/// Returns the operands, if there are so many, and elements are `f32`.
fn operands<const N: usize>(expansion: &Expansion<'_>) -> Result<Option<[ValueId; N]>, String> {
    let ty = expansion.attribute("T").and_then(Attribute::as_type);
    let all = expansion.module().op(expansion.op()).operands();
    let found = all.len();
    let all: [ValueId; N] = all
        .try_into()
        .map_err(|_| format!("has {found} operands, expected {N}"))?;
    Ok(ty.is_none_or(|ty| *ty == Type::F32).then_some(all))
}

fn is_set(expansion: &Expansion<'_>, name: &str, default: bool) -> bool {
    let stated = expansion.attribute(name).and_then(Attribute::as_i64);
    stated.map_or(default, |stated| stated != 0)
}

/// `var - alpha * delta`
pub(super) fn gradient_descent(expansion: &mut Expansion<'_>) -> Expanded {
    let Some([var, alpha, delta]) = operands(expansion)? else {
        return Ok(Vec::new());
    };
    let mut step = Step(expansion);
    let change = step.mul(delta, alpha);
    Ok(vec![step.sub(var, change)])
}

/// `accum = accum * momentum + grad; var -= lr * accum`, or with Nesterov's look ahead.
pub(super) fn momentum(expansion: &mut Expansion<'_>) -> Expanded {
    let Some([var, accum, lr, grad, momentum]) = operands(expansion)? else {
        return Ok(Vec::new());
    };
    let looks_ahead = is_set(expansion, "use_nesterov", false);
    let mut step = Step(expansion);
    let old = step.mul(accum, momentum);
    let accum = step.add(old, grad);
    let change = match looks_ahead {
        false => step.mul(accum, lr),
        true => {
            let ahead = step.mul(accum, momentum);
            let sum = step.add(grad, ahead);
            step.mul(sum, lr)
        }
    };
    Ok(vec![step.sub(var, change), accum])
}

/// `accum = accum * momentum - lr * grad; var += accum`, or with Nesterov's look ahead.
pub(super) fn keras_momentum(expansion: &mut Expansion<'_>) -> Expanded {
    let Some([var, accum, lr, grad, momentum]) = operands(expansion)? else {
        return Ok(Vec::new());
    };
    let looks_ahead = is_set(expansion, "use_nesterov", false);
    let mut step = Step(expansion);
    let old = step.mul(accum, momentum);
    let new = step.mul(grad, lr);
    let accum = step.sub(old, new);
    let change = match looks_ahead {
        false => accum,
        true => {
            let ahead = step.mul(accum, momentum);
            step.sub(ahead, new)
        }
    };
    Ok(vec![step.add(var, change), accum])
}

/// `m` and `v` are moving means of the gradient and of its square; `var -= m * alpha / (sqrt(v) + epsilon)`, where `alpha` is the
/// rate without the bias of the first steps.
pub(super) fn adam(expansion: &mut Expansion<'_>) -> Expanded {
    let found = operands(expansion)?;
    let Some([var, m, v, power1, power2, lr, beta1, beta2, epsilon, grad]) = found else {
        return Ok(Vec::new());
    };
    let looks_ahead = is_set(expansion, "use_nesterov", false);
    let mut step = Step(expansion);
    let [rest1, rest2] = [beta1, beta2].map(|beta| step.complement(beta));
    let m = step.moved(m, grad, rest1);
    let square = step.mul(grad, grad);
    let v = step.moved(v, square, rest2);
    let [bias1, bias2] = [power1, power2].map(|power| step.complement(power));
    let root = step.sqrt(bias2);
    let rate = step.mul(lr, root);
    let alpha = step.div(rate, bias1);
    let direction = match looks_ahead {
        false => m,
        true => {
            let new = step.mul(grad, rest1);
            let old = step.mul(m, beta1);
            step.add(new, old)
        }
    };
    let scaled = step.mul(direction, alpha);
    let root = step.sqrt(v);
    let root = step.add(root, epsilon);
    let change = step.div(scaled, root);
    Ok(vec![step.sub(var, change), m, v])
}

/// `accum += grad²; var -= lr * grad / sqrt(accum)`
pub(super) fn adagrad(expansion: &mut Expansion<'_>) -> Expanded {
    match operands(expansion)? {
        Some([var, accum, lr, grad]) => Ok(by_squares(expansion, var, accum, lr, None, grad)),
        None => Ok(Vec::new()),
    }
}

/// `accum += grad²; var -= lr * grad / (sqrt(accum) + epsilon)`
pub(super) fn adagrad_v2(expansion: &mut Expansion<'_>) -> Expanded {
    match operands(expansion)? {
        Some([var, accum, lr, epsilon, grad]) => {
            Ok(by_squares(expansion, var, accum, lr, Some(epsilon), grad))
        }
        None => Ok(Vec::new()),
    }
}

fn by_squares(
    expansion: &mut Expansion<'_>,
    var: ValueId,
    accum: ValueId,
    lr: ValueId,
    epsilon: Option<ValueId>,
    grad: ValueId,
) -> Vec<ValueId> {
    let updates = is_set(expansion, "update_slots", true);
    let mut step = Step(expansion);
    let square = step.mul(grad, grad);
    let accum = if updates {
        step.add(accum, square)
    } else {
        accum
    };
    let mut root = step.sqrt(accum);
    if let Some(epsilon) = epsilon {
        root = step.add(root, epsilon);
    }
    let scaled = step.mul(grad, lr);
    let change = step.div(scaled, root);
    vec![step.sub(var, change), accum]
}

/// `ms` is a moving mean of the gradient's square; `mom = mom * momentum + lr * grad / sqrt(ms + epsilon); var -= mom`
pub(super) fn rms_prop(expansion: &mut Expansion<'_>) -> Expanded {
    let Some([var, ms, mom, lr, rho, momentum, epsilon, grad]) = operands(expansion)? else {
        return Ok(Vec::new());
    };
    let mut step = Step(expansion);
    let rest = step.complement(rho);
    let square = step.mul(grad, grad);
    let ms = step.moved(ms, square, rest);
    let sum = step.add(ms, epsilon);
    let root = step.sqrt(sum);
    let scaled = step.mul(grad, lr);
    let new = step.div(scaled, root);
    let old = step.mul(mom, momentum);
    let mom = step.add(old, new);
    Ok(vec![step.sub(var, mom), ms, mom])
}
