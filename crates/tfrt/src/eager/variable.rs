//! [`Variable`]: a tensor that is replaced by others, or changed where it is.

use std::fmt;
use std::sync::Arc;

use tfrt_corert::{CallSite, Inputs, OpAttrs, TensorHandle};
use tfrt_host::Error;
use tfrt_tensor::TensorMetadata;
use tfrt_tensor::resource::{self, Slot};

use super::methods::described;
use super::names::Name;
use super::{Eager, Handle, make_room};

/// A tensor that changes: weights that are trained. It is a resource variable, so that operations on these
/// (`tf.ResourceApplyAdam`) take its [handle](Self::handle).
///
/// Calls on a variable take effect in their order. A step is made in the memory of the tensor, unless a tensor that was
/// read before is still held: then the step makes a new one, and the one that was read stays as it was. A step that is
/// refused leaves the tensor as it is; so does one whose gradient fails or is cancelled later, which is reported to the
/// diagnostic handler of the host.
///
/// # Examples
///
/// ```
/// use tfrt::Runtime;
/// use tfrt::corert::OpAttrs;
/// use tfrt::eager::Eager;
///
/// let eager = Eager::new(&Runtime::new());
/// let w = eager.variable(eager.tensor(&[2], &[1.0_f32, 2.0])?);
/// w.descend(&eager.tensor(&[2], &[10.0_f32, -10.0])?, 0.1)?;
/// assert_eq!(w.read().to_vec::<f32>()?, [0.0, 3.0]);
///
/// let (sum, rate) = (eager.variable(eager.fill(&[2], 0.0_f32)?), eager.scalar(0.5_f32)?);
/// let gradient = eager.tensor(&[2], &[4.0_f32, -4.0])?;
/// let inputs = [&w.handle(), &sum.handle(), &rate, &gradient];
/// eager.op("tf.ResourceApplyAdagrad", &inputs, &OpAttrs::new())?;
/// assert_eq!(w.read().to_vec::<f32>()?, [-0.5, 3.5]);
/// # Ok::<(), tfrt::Error>(())
/// ```
pub struct Variable {
    eager: Eager,
    slot: Arc<Slot>,
    /// A handle of the slot.
    handle: TensorHandle,
    /// Type and shape of the first value, if they were known.
    metadata: Option<TensorMetadata>,
    /// The first value, if there is none.
    failed: Option<Error>,
}

impl Variable {
    #[track_caller]
    pub(super) fn new(eager: Eager, slot: Arc<Slot>, tensor: Handle) -> Variable {
        let caller = CallSite::here();
        let mut variable = Variable {
            handle: eager.core().handle(slot.handle()),
            metadata: tensor.metadata().cloned(),
            eager,
            slot,
            failed: None,
        };
        let mut inputs = [variable.handle.clone(), tensor.into_handle()];
        variable.failed = variable.change(Name::Assign, &mut inputs, caller).err();
        variable
    }

    /// Returns a handle that operations on resource variables take.
    pub fn handle(&self) -> Handle {
        self.eager.latest().wrap(self.handle.clone())
    }

    /// Returns the name; empty for a variable without one.
    pub fn name(&self) -> &str {
        self.slot.name()
    }

    /// Type and shape, if they are known.
    fn metadata(&self) -> Option<TensorMetadata> {
        let own = self.slot.get::<resource::Variable>().ok()?.metadata();
        own.or_else(|| self.metadata.clone())
    }

    /// Returns the tensor as it is now, or will be when the calls so far are done.
    #[track_caller]
    pub fn read(&self) -> Handle {
        let (caller, steps) = (CallSite::here(), &self.eager.shared.steps);
        let inputs = [&self.handle];
        let read = self.eager.op_of(Name::ReadVariable).and_then(|op| {
            let inputs = Inputs::borrowed_each(&inputs);
            steps.call_one(op, inputs, (&OpAttrs::new()).into(), caller)
        });
        let handle = match read {
            Ok(read) if read.is_settled() => read,
            Ok(read) => {
                // What it will be is known.
                let (promise, handle) = steps.promise(self.metadata());
                promise.forward(read.to_async());
                handle
            }
            Err(error) => {
                let error = self.failed.clone().unwrap_or(error);
                self.eager.core().failed(error)
            }
        };
        self.eager.latest().wrap(handle)
    }

    /// Replaces the tensor.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the new one is known to be of another type or shape, or belongs to a recording.
    #[track_caller]
    pub fn assign(&self, tensor: &Handle) -> Result<(), Error> {
        let caller = CallSite::here();
        refuse_recorded(tensor)?;
        if let (Some(old), Some(new)) = (&self.metadata(), tensor.metadata())
            && old != new
        {
            let message = format!("a variable of {old} can't hold {new}");
            return Err(Error::invalid_argument(message));
        }
        let mut inputs = [self.handle.clone(), tensor.handle().clone()];
        self.change(Name::Assign, &mut inputs, caller)
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
        refuse_recorded(gradient)?;
        let rate = self.eager.core().dense(&[], &[rate])?;
        let mut inputs = [self.handle.clone(), rate, gradient.handle().clone()];
        let done = self
            .fits(None, gradient)
            .and_then(|()| self.step(Name::GradientDescent, &mut inputs, gradient, caller));
        done.map_err(|error| self.told("descend", None, gradient, error))
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
        if self.slot.number() == velocity.slot.number() {
            return Err(Error::invalid_argument(
                "a variable can't be its own velocity",
            ));
        }
        refuse_recorded(gradient)?;
        let number = |value: f32| self.eager.core().dense(&[], &[value]);
        let mut inputs = [
            self.handle.clone(),
            velocity.handle.clone(),
            number(rate)?,
            gradient.handle().clone(),
            number(momentum)?,
        ];
        let done = self
            .fits(Some(velocity), gradient)
            .and_then(|()| self.step(Name::Momentum, &mut inputs, gradient, caller));
        done.map_err(|error| self.told("descend_with", Some(velocity), gradient, error))
    }

    /// Checks that all are of one type and shape, as far as these are known.
    fn fits(&self, velocity: Option<&Variable>, gradient: &Handle) -> Result<(), Error> {
        let own = self.metadata();
        let velocity = velocity.and_then(Variable::metadata);
        for other in [velocity.as_ref(), gradient.metadata()] {
            if let (Some(own), Some(other)) = (&own, other)
                && own != other
            {
                return Err(Error::invalid_argument(format!(
                    "expected weights and gradients of one type and shape, found {own} and {other}"
                )));
            }
        }
        Ok(())
    }

    fn step(
        &self,
        name: Name,
        inputs: &mut [TensorHandle],
        gradient: &Handle,
        caller: CallSite,
    ) -> Result<(), Error> {
        if let Some(reason) = self.eager.context().cancellation() {
            return Err(caller.locate(self.eager.op_of(name)?.name(), reason));
        }
        if let Some(error) = gradient.handle().error() {
            return Err(error.clone());
        }
        self.change(name, inputs, caller)
    }

    /// Calls an operation without results, in the context that is not cancelled.
    fn change(
        &self,
        name: Name,
        inputs: &mut [TensorHandle],
        caller: CallSite,
    ) -> Result<(), Error> {
        let (op, steps) = (self.eager.op_of(name)?, &self.eager.shared.steps);
        make_room(steps);
        if let Some(error) = inputs.iter().find_map(TensorHandle::error) {
            return Err(error.clone());
        }
        let inputs = Inputs::owned(inputs);
        let attrs = OpAttrs::new();
        steps.call(op, inputs, (&attrs).into(), caller).map(|_| ())
    }

    #[cold]
    fn told(
        &self,
        method: &str,
        velocity: Option<&Variable>,
        gradient: &Handle,
        error: Error,
    ) -> Error {
        let mut of = vec![self.read()];
        of.extend(velocity.map(Variable::read));
        of.push(gradient.clone());
        described(method, &of.iter().collect::<Vec<_>>(), error)
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
