//! [`Variable`]: a tensor that is replaced by others.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tfrt_corert::{CallSite, OpAttrs, TensorHandle};
use tfrt_host::Error;

use super::methods::described;
use super::names::Name;
use super::{Eager, Handle, make_room};

mod state;

use state::{Change, ReadyPromise, VariableState};

/// A tensor that changes: weights that are trained.
///
/// Steps happen in the memory of the tensor if nobody has read it since; who has, keeps what he read. A step that can't be
/// taken leaves the tensor as it is: one that is refused, and one whose gradient fails later or is cancelled, which the
/// diagnostic handler of the host is told like any other failure. What somebody writes to a gradient during a step of it
/// fails the step, and the variable.
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
    held: Mutex<VariableState>,
}

impl Variable {
    pub(super) fn new(eager: Eager, tensor: Handle) -> Variable {
        Variable {
            eager,
            held: Mutex::new(VariableState::new(tensor.into_handle())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, VariableState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the tensor as it is now, or will be when the calls so far are done.
    pub fn read(&self) -> Handle {
        let handle = self.lock().read(&self.eager.shared.steps);
        self.eager.latest().wrap(handle)
    }

    /// Replaces the tensor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the new one is known to be of another type or shape, or belongs to a recording.
    #[track_caller]
    pub fn assign(&self, tensor: &Handle) -> Result<(), Error> {
        refuse_recorded(tensor)?;
        let mut held = self.lock();
        if let (Some(old), Some(new)) = (held.metadata(), tensor.metadata())
            && old != new
        {
            let message = format!("a variable of {old} can't hold {new}");
            return Err(Error::invalid_argument(message));
        }
        let before = held.replace(tensor.handle().clone());
        drop(held);
        drop(before);
        Ok(())
    }

    /// Subtracts a gradient, times the rate.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the gradient is of another type or shape, or belongs to a recording; the gradient's if it has
    /// failed; the reason of a cancellation.
    #[track_caller]
    pub fn descend(&self, gradient: &Handle, rate: f32) -> Result<(), Error> {
        let caller = CallSite::here();
        let mut attrs = OpAttrs::new();
        attrs.set("learning_rate", rate)?;
        let (name, step) = (Name::GradientDescent, ("descend", caller));
        self.step(name, gradient, &attrs, step, || {
            let (handle, change) = self.lock().begin(&self.eager.shared.steps);
            [(self, handle, change)]
        })
    }

    /// Adds a gradient to the velocity, `velocity * momentum + gradient`, and subtracts that, times the rate.
    ///
    /// # Errors
    ///
    /// Those of [`descend`](Self::descend), and `InvalidArgument` if the velocity is of another type or shape.
    #[track_caller]
    pub fn descend_with(
        &self,
        velocity: &Variable,
        gradient: &Handle,
        [rate, momentum]: [f32; 2],
    ) -> Result<(), Error> {
        let caller = CallSite::here();
        if std::ptr::eq(self, velocity) {
            return Err(Error::invalid_argument(
                "a variable can't be its own velocity",
            ));
        }
        let mut attrs = OpAttrs::new();
        attrs
            .set("learning_rate", rate)?
            .set("momentum", momentum)?;
        let (name, step) = (Name::Momentum, ("descend_with", caller));
        self.step(name, gradient, &attrs, step, || {
            // Both at once, so that two steps can't wait for each other; in the order of their addresses, so that two
            // threads can't.
            let is_first = std::ptr::from_ref(self) < std::ptr::from_ref(velocity);
            let (mut own, mut other) = match is_first {
                true => {
                    let own = self.lock();
                    (own, velocity.lock())
                }
                false => {
                    let other = velocity.lock();
                    (self.lock(), other)
                }
            };
            let steps = &self.eager.shared.steps;
            let ((value, of_value), (speed, of_speed)) = (own.begin(steps), other.begin(steps));
            [(self, value, of_value), (velocity, speed, of_speed)]
        })
    }

    /// Calls an operation that changes the variables that `begin` takes out. No lock is held during the call.
    fn step<'v, const N: usize>(
        &self,
        name: Name,
        gradient: &Handle,
        attrs: &OpAttrs,
        (method, caller): (&str, CallSite),
        begin: impl FnOnce() -> [(&'v Variable, TensorHandle, Change); N],
    ) -> Result<(), Error> {
        refuse_recorded(gradient)?;
        let (op, steps) = (self.eager.op_of(name)?, &self.eager.shared.steps);
        make_room(steps);
        if let Some(reason) = self.eager.context().cancellation() {
            return Err(caller.locate(op.name(), reason));
        }
        let begun = begin();
        let changes = begun
            .each_ref()
            .map(|(variable, _, change)| (*variable, *change));
        let mut inputs: Vec<TensorHandle> = begun.into_iter().map(|(_, old, _)| old).collect();
        inputs.push(gradient.handle().clone());
        let result = steps.step(op, &mut inputs, attrs.into(), caller);
        // A step that is refused has taken nothing.
        let (states, result) = match result {
            Ok(states) => (states, Ok(())),
            Err(error) => (inputs.drain(..N).collect(), Err(error)),
        };
        for ((variable, change), state) in changes.iter().zip(states) {
            let kept = variable.lock().end(*change, state);
            kept.into_iter().for_each(ReadyPromise::keep);
        }
        result.map_err(|error| {
            let mut of: Vec<Handle> = changes
                .iter()
                .map(|(variable, _)| variable.read())
                .collect();
            of.push(gradient.clone());
            described(method, &of.iter().collect::<Vec<_>>(), error)
        })
    }
}

/// Refuses a recorded tensor as the value of a variable: the program of a recording would not do it.
fn refuse_recorded(tensor: &Handle) -> Result<(), Error> {
    match tensor.eager().context().is_recording() {
        false => Ok(()),
        true => Err(Error::invalid_argument(
            "a variable can't be changed in a recording: the program would not change it",
        )),
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Variable").field(&self.read()).finish()
    }
}
