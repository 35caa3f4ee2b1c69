//! Kernels of optimizers: steps of variables by a gradient, of all elements or of some rows.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::{AsyncValue, Chain, DType, Error};
use tfrt_ops::Types;
use tfrt_tensor::math::optimizer::{MAX_NUMBERS, Optimizer, OptimizerKind};
use tfrt_tensor::op::{Formats, Outputs, TensorCall, TensorKernel};
use tfrt_tensor::resource::{Slot, Variable};
use tfrt_tensor::{DenseHostTensor, TensorMetadata, TensorShape, with_floating};

use super::tensors::integers;
use super::variables::{change, extents, slot, whole};

/// `optimizers!(("tf.ResourceApplyAdam", Adam, "use_nesterov"), ..)` makes a kernel of each: the operation, its kind, and
/// the attribute that is its flag.
macro_rules! optimizers {
    ($(($name:literal, $kind:ident, $flag:literal)),* $(,)?) => {
        &[$(
            TensorKernel::new($name, |call| step(call, OptimizerKind::$kind, $flag)).formats(Formats::OBJECT),
        )*]
    };
}

pub(super) const KERNELS: &[TensorKernel] = optimizers![
    ("tf.ResourceApplyAdaMax", AdaMax, ""),
    ("tf.ResourceApplyAdadelta", Adadelta, ""),
    ("tf.ResourceApplyAdagrad", Adagrad, "update_slots"),
    ("tf.ResourceApplyAdagradDA", AdagradDa, ""),
    ("tf.ResourceApplyAdagradV2", AdagradV2, "update_slots"),
    ("tf.ResourceApplyAdam", Adam, "use_nesterov"),
    ("tf.ResourceApplyAdamWithAmsgrad", AdamWithAmsgrad, ""),
    ("tf.ResourceApplyAddSign", AddSign, ""),
    ("tf.ResourceApplyCenteredRMSProp", CenteredRmsProp, ""),
    ("tf.ResourceApplyFtrl", Ftrl, "multiply_linear_by_lr"),
    ("tf.ResourceApplyFtrlV2", FtrlV2, "multiply_linear_by_lr"),
    ("tf.ResourceApplyGradientDescent", GradientDescent, ""),
    (
        "tf.ResourceApplyKerasMomentum",
        KerasMomentum,
        "use_nesterov"
    ),
    ("tf.ResourceApplyMomentum", Momentum, "use_nesterov"),
    ("tf.ResourceApplyPowerSign", PowerSign, ""),
    ("tf.ResourceApplyProximalAdagrad", ProximalAdagrad, ""),
    (
        "tf.ResourceApplyProximalGradientDescent",
        ProximalGradientDescent,
        ""
    ),
    ("tf.ResourceApplyRMSProp", RmsProp, ""),
    ("tf.ResourceSparseApplyAdadelta", Adadelta, ""),
    ("tf.ResourceSparseApplyAdagrad", Adagrad, "update_slots"),
    ("tf.ResourceSparseApplyAdagradDA", AdagradDa, ""),
    ("tf.ResourceSparseApplyAdagradV2", AdagradV2, "update_slots"),
    ("tf.ResourceSparseApplyCenteredRMSProp", CenteredRmsProp, ""),
    ("tf.ResourceSparseApplyFtrl", Ftrl, "multiply_linear_by_lr"),
    (
        "tf.ResourceSparseApplyFtrlV2",
        FtrlV2,
        "multiply_linear_by_lr"
    ),
    (
        "tf.ResourceSparseApplyKerasMomentum",
        KerasMomentum,
        "use_nesterov"
    ),
    ("tf.ResourceSparseApplyMomentum", Momentum, "use_nesterov"),
    ("tf.ResourceSparseApplyProximalAdagrad", ProximalAdagrad, ""),
    (
        "tf.ResourceSparseApplyProximalGradientDescent",
        ProximalGradientDescent,
        ""
    ),
    ("tf.ResourceSparseApplyRMSProp", RmsProp, ""),
];

/// The operands of a step, by the names that the row gives them.
struct Step {
    optimizer: Optimizer,
    /// The states with the names of their operands.
    states: SmallVec<[(&'static str, Arc<Slot>); 4]>,
    gradient: DenseHostTensor,
    gradient_name: &'static str,
    /// The rows to change; `None` for all.
    indices: Option<(SmallVec<[i64; 8]>, TensorShape)>,
    /// The name and extents of a scalar that is none. Told when the states are there.
    no_scalar: Option<(&'static str, TensorShape)>,
}

impl Step {
    fn of(call: &TensorCall<'_>, kind: OptimizerKind, flag: &str) -> Result<Step, Error> {
        let mut numbers = [0.0; MAX_NUMBERS];
        let (mut n_numbers, mut no_scalar) = (0, None);
        let (mut states, mut gradient, mut indices) = (SmallVec::new(), None, None);
        for (index, input) in call.op.inputs.iter().enumerate() {
            match input.name {
                _ if input.types == Types::Set(&[DType::Resource]) => {
                    states.push((input.name, slot(call, index)?));
                }
                "grad" | "delta" => gradient = Some((input.name, call.dense(index)?.clone())),
                "indices" => {
                    let shape = call.dense(index)?.shape().clone();
                    indices = Some((integers(call, index)?, shape));
                }
                name => {
                    let scalar = call.dense(index)?;
                    if scalar.shape().rank() != 0 {
                        no_scalar = no_scalar.or_else(|| Some((name, scalar.shape().clone())));
                    } else if let Some(number) = numbers.get_mut(n_numbers) {
                        *number = self::number(call, scalar)?;
                    }
                    n_numbers += 1;
                }
            }
        }
        let missing = || call.error(format_args!("expected a gradient"));
        let (gradient_name, gradient) = gradient.ok_or_else(missing)?;
        Ok(Step {
            optimizer: Optimizer {
                kind,
                numbers,
                flag: call.attrs.flag(flag),
            },
            states,
            gradient,
            gradient_name,
            indices,
            no_scalar,
        })
    }

    /// Takes the step. All variables are locked.
    fn take(&self, execution: &tfrt_host::ExecutionContext) -> Result<AsyncValue<Chain>, Error> {
        let mut own: SmallVec<[TensorMetadata; 4]> = SmallVec::new();
        for (name, state) in &self.states {
            let metadata = state.get::<Variable>()?.metadata();
            own.push(metadata.ok_or_else(|| invalid_reference(name, state))?);
        }
        self.check(&own)?;
        let allocator = execution.host().allocator();
        let mut states: SmallVec<[DenseHostTensor; 4]> = SmallVec::new();
        for (name, state) in &self.states {
            let variable = state.get::<Variable>()?;
            let prepared = match self.indices {
                None => variable.prepare_to_update(allocator)?,
                Some(_) => variable.prepare_rows(allocator)?,
            };
            states.push(prepared.ok_or_else(|| invalid_reference(name, state))?);
        }
        match &self.indices {
            None => {
                let whole = whole(execution, &self.gradient);
                self.optimizer.apply(&whole, &self.gradient, &states)
            }
            Some((indices, _)) => {
                self.optimizer
                    .apply_rows(&self.gradient, indices, &states)?;
                Ok(AsyncValue::available(Chain))
            }
        }
    }

    /// Checks types and extents, as TensorFlow does and in its order.
    fn check(&self, own: &[TensorMetadata]) -> Result<(), Error> {
        if let Some((name, shape)) = &self.no_scalar {
            let shape = extents(shape);
            return Err(Error::invalid_argument(format!(
                "{name} is not a scalar: {shape}"
            )));
        }
        let var = &own[0];
        for (at, (name, _)) in self.states.iter().enumerate().skip(1) {
            let found = &own[at];
            if found.shape != var.shape {
                return Err(unlike(name, &var.shape, &found.shape));
            }
            expect_type(name, var, found.dtype)?;
        }
        let (name, found) = (self.gradient_name, self.gradient.shape());
        expect_type(name, var, self.gradient.dtype())?;
        let Some((_, at)) = &self.indices else {
            return match *found == var.shape {
                true => Ok(()),
                false => Err(unlike(name, &var.shape, found)),
            };
        };
        let invalid = |message: String| Err(Error::invalid_argument(message));
        let (own, given, at) = (var.shape.to_dims(), found.to_dims(), at.to_dims());
        if own.is_empty() {
            return invalid("var must be at least 1 dimensional".to_owned());
        }
        if at.len() != 1 {
            return invalid("indices must be one-dimensional".to_owned());
        }
        if given.len() != own.len() {
            let (own, given) = (extents(&var.shape), extents(found));
            return invalid(format!(
                "var and grad must have the same number of dimensions, found {own} and {given}"
            ));
        }
        let differs = (1..own.len()).find(|axis| own[*axis] != given[*axis]);
        if let Some(axis) = differs {
            return invalid(format!("var and grad must match in dimension {axis}"));
        }
        if given[0] != at[0] {
            return invalid(
                "grad must be the same size as indices in the first dimension.".to_owned(),
            );
        }
        Ok(())
    }
}

/// Returns a number of a tensor without dimensions.
fn number(call: &TensorCall<'_>, scalar: &DenseHostTensor) -> Result<f64, Error> {
    let reading = scalar.read()?;
    let dtype = scalar.dtype();
    if let DType::I64 = dtype {
        return Ok(reading.elements::<i64>()?[0] as f64);
    }
    with_floating!(dtype, T => {
        Ok(tfrt_tensor::math::number::Real::to_f64(reading.elements::<T>()?[0]))
    }, else Err(tfrt_tensor::op::unsupported(call.name, dtype)))
}

#[cold]
fn unlike(name: &str, var: &TensorShape, found: &TensorShape) -> Error {
    let (var, found) = (extents(var), extents(found));
    Error::invalid_argument(format!(
        "var and {name} do not have the same shape{var} {found}"
    ))
}

fn expect_type(name: &str, var: &TensorMetadata, found: DType) -> Result<(), Error> {
    match var.dtype == found {
        true => Ok(()),
        false => Err(Error::invalid_argument(format!(
            "var and {name} do not have the same type: {} {found}",
            var.dtype
        ))),
    }
}

/// Returns the error for a state that does not exist.
#[cold]
fn invalid_reference(name: &str, slot: &Slot) -> Error {
    let label = slot.label();
    Error::internal("Invalid variable reference.").with_note(format!(
        "operand '{name}' is the variable '{label}', which holds no value: none was assigned to it, or it was destroyed"
    ))
}

fn step(call: &mut TensorCall<'_>, kind: OptimizerKind, flag: &str) -> Result<Outputs, Error> {
    let step = Step::of(call, kind, flag)?;
    let slots: Vec<Arc<Slot>> = step.states.iter().map(|(_, slot)| slot.clone()).collect();
    for (at, (name, slot)) in step.states.iter().enumerate() {
        let before = step.states[..at].iter();
        if let Some((other, _)) = before
            .clone()
            .find(|(_, own)| own.number() == slot.number())
        {
            return Err(call.error(format_args!(
                "expected different variables, found the same one for '{other}' and '{name}'"
            )));
        }
    }
    change(call, slots, move |execution| step.take(execution))
}
