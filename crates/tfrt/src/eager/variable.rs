//! [`Variable`]: a tensor that is replaced by others.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tfrt_corert::{Caller, Inputs, OpAttrs, TensorHandle};
use tfrt_host::Error;

use super::methods::described;
use super::names::Name;
use super::{Eager, Tensor};

/// A tensor that changes: weights that are trained.
///
/// Steps happen in the memory of the tensor if nobody has read it since; who has, keeps what he read.
///
/// # Examples
///
/// ```
/// use tfrt::Runtime;
/// use tfrt::eager::Eager;
///
/// let eager = Eager::new(&Runtime::new());
/// let w = eager.variable(eager.tensor(&[2], &[1.0_f32, 2.0])?);
/// w.descend(&eager.tensor(&[2], &[10.0_f32, -10.0])?, 0.1)?;
/// assert_eq!(w.read().to_vec::<f32>()?, [0.0, 3.0]);
/// # Ok::<(), tfrt::Error>(())
/// ```
pub struct Variable {
    eager: Eager,
    /// What stands in place of the tensor while a step is made.
    changing: Error,
    value: Mutex<TensorHandle>,
}

impl Variable {
    pub(super) fn new(tensor: Tensor) -> Variable {
        Variable {
            eager: tensor.eager().clone(),
            changing: Error::internal("the variable is being changed"),
            value: Mutex::new(tensor.into_handle()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, TensorHandle> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the handle out; nobody sees what is left, since the lock is held.
    fn take(&self, value: &mut TensorHandle) -> TensorHandle {
        let nothing = self.eager.core().failed(self.changing.clone());
        std::mem::replace(value, nothing)
    }

    /// The tensor as it is now, or will be when the calls so far are done.
    pub fn read(&self) -> Tensor {
        self.eager.wrap(self.lock().clone())
    }

    /// Replaces the tensor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the new one is known to be of another type or shape.
    #[track_caller]
    pub fn assign(&self, tensor: &Tensor) -> Result<(), Error> {
        let mut value = self.lock();
        if let (Some(old), Some(new)) = (value.metadata(), tensor.metadata())
            && old != new
        {
            let message = format!("a variable of {old} can't hold {new}");
            return Err(Error::invalid_argument(message));
        }
        *value = tensor.handle().clone();
        Ok(())
    }

    /// Subtracts a gradient, times the rate.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the gradient is of another type or shape.
    #[track_caller]
    pub fn descend(&self, gradient: &Tensor, rate: f32) -> Result<(), Error> {
        let caller = Caller::here();
        let mut attrs = OpAttrs::new();
        attrs.set("learning_rate", rate)?;
        let op = self.eager.prepared(Name::GradientDescent)?;
        let mut value = self.lock();
        // The variable's own handle is given away, so that its memory can be written over.
        let mut inputs = [self.take(&mut value), gradient.handle().clone()];
        let context = self.eager.context();
        let inputs_of_step = Inputs::owned(&mut inputs);
        let result = context.call_one(op, inputs_of_step, (&attrs).into(), caller);
        match result {
            Ok(handle) => {
                *value = handle;
                Ok(())
            }
            Err(error) => {
                // A call that is refused has taken nothing.
                let [old, _] = inputs;
                *value = old;
                drop(value);
                Err(described("descend", &[&self.read(), gradient], error))
            }
        }
    }

    /// Adds a gradient to the velocity, `velocity * momentum + gradient`, and subtracts that, times the rate.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if gradient or velocity is of another type or shape.
    #[track_caller]
    pub fn descend_with(
        &self,
        velocity: &Variable,
        gradient: &Tensor,
        [rate, momentum]: [f32; 2],
    ) -> Result<(), Error> {
        let caller = Caller::here();
        if std::ptr::eq(self, velocity) {
            return Err(Error::invalid_argument(
                "a variable can't be its own velocity",
            ));
        }
        let mut attrs = OpAttrs::new();
        attrs
            .set("learning_rate", rate)?
            .set("momentum", momentum)?;
        let op = self.eager.prepared(Name::Momentum)?;
        // In the order of their addresses, so that two threads can't wait for each other.
        let is_first = std::ptr::from_ref(self) < std::ptr::from_ref(velocity);
        let (mut value, mut speed) = match is_first {
            true => {
                let value = self.lock();
                (value, velocity.lock())
            }
            false => {
                let speed = velocity.lock();
                (self.lock(), speed)
            }
        };
        let mut inputs = [
            self.take(&mut value),
            self.take(&mut speed),
            gradient.handle().clone(),
        ];
        let context = self.eager.context();
        let result = context.call(op, Inputs::owned(&mut inputs), (&attrs).into(), caller);
        let [old_value, old_speed, _] = inputs;
        match result.map(|mut results| (results.pop(), results.pop())) {
            Ok((Some(new_speed), Some(new_value))) => {
                (*value, *speed) = (new_value, new_speed);
                Ok(())
            }
            Ok(_) => Err(Error::internal("a step without weights")),
            Err(error) => {
                (*value, *speed) = (old_value, old_speed);
                drop((value, speed));
                Err(described(
                    "descend_with",
                    &[&self.read(), &velocity.read(), gradient],
                    error,
                ))
            }
        }
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Variable").field(&*self.lock()).finish()
    }
}
