//! [`Recording`]: recorded calls of operations, from which a function is made.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_host::Error;

use crate::TensorHandle;
use crate::attributes::{FrozenOpAttrs, OpAttrsRef};
use crate::context::Context;
use crate::handle::{Identity, TraceValue};
use crate::inputs::Inputs;
use crate::op::{CoreRuntimeOp, Handles};

/// A recording of the calls made with its [`context`](Recording::context), in the order in which side effects happen.
///
/// An input of a recorded call is a parameter ([`input`](Self::input)), a result of a recorded call, or anything else: then
/// it is a constant of the recorded function, one for all uses of a tensor. Calls after the end are not kept.
///
/// # Examples
///
/// ```
/// use tfrt_corert::{CoreRuntime, OpAttrs, Recording};
/// use tfrt_host::{HostContext, kernel::KernelRegistry};
///
/// let runtime = CoreRuntime::new(&HostContext::builder(KernelRegistry::new()).build());
/// let (x, two) = (runtime.dense(&[1], &[3.0_f32])?, runtime.dense(&[1], &[2.0_f32])?);
/// let double = runtime.op("tf.Mul", &runtime.cpu())?;
///
/// let recording = Recording::begin(&runtime.context());
/// let x = recording.input(x);
/// let y = double.call_one(recording.context(), [&x, &two], &OpAttrs::new())?;
/// let trace = recording.finish(&[y])?;
/// assert_eq!((trace.inputs.len(), trace.constants.len(), trace.calls.len()), (1, 1, 1));
/// # Ok::<(), tfrt_host::Error>(())
/// ```
pub struct Recording {
    context: Context,
    recorder: Arc<Recorder>,
}

/// A finished recording. Values are numbered: each is an input, a constant, or a result of one call.
#[derive(Debug)]
pub struct Trace {
    /// The parameters of the function, with the tensors that they stood for.
    pub inputs: Vec<(u32, TensorHandle)>,
    /// Tensors from outside.
    pub constants: Vec<(u32, TensorHandle)>,
    /// The calls, in order.
    pub calls: Vec<TracedCall>,
    /// The results of the function.
    pub results: Vec<u32>,
}

/// One recorded call.
#[derive(Debug)]
pub struct TracedCall {
    /// The operation that was called.
    pub op: CoreRuntimeOp,
    /// Numbers of the input values.
    pub inputs: Vec<u32>,
    /// Attributes of the call.
    pub attrs: FrozenOpAttrs,
    /// Numbers of the result values.
    pub results: Vec<u32>,
}

/// The shared log of calls behind a [`Recording`].
pub(crate) struct Recorder {
    /// Number that tells recordings apart.
    id: u32,
    /// The recorded calls; `None` once the recording has ended.
    recorded: Mutex<Option<RecordedCalls>>,
}

#[derive(Default)]
struct RecordedCalls {
    n_values: u32,
    inputs: Vec<(u32, TensorHandle)>,
    constants: Vec<(u32, TensorHandle)>,
    /// Numbers of tensors from outside, by identity. The constants hold these tensors, so that an identity is not
    /// reused.
    values: HashMap<Identity, u32>,
    n_places: u64,
    /// Calls by their place in the order of all calls.
    calls: BTreeMap<u64, TracedCall>,
}

/// Number of the next recording: a statistic, which orders no memory.
static NEXT: AtomicU32 = AtomicU32::new(0);

impl Recording {
    /// Begins to record calls, made with a copy of this context.
    pub fn begin(context: &Context) -> Recording {
        // Ordering: a statistic.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let recorder = Arc::new(Recorder {
            id,
            recorded: Mutex::new(Some(RecordedCalls::default())),
        });
        Recording {
            context: context.with_recorder(recorder.clone()),
            recorder,
        }
    }

    /// Returns the context whose calls are recorded.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Makes a tensor a parameter of the function; the returned handle stands for the parameter.
    pub fn input(&self, tensor: TensorHandle) -> TensorHandle {
        let mut recorded = self.recorder.lock();
        // Only `finish` ends a recording, and takes it.
        let recorded = recorded.get_or_insert_default();
        let value = recorded.next_value();
        recorded.inputs.push((value, tensor.clone()));
        self.recorder.mark(tensor, value)
    }

    /// Ends the recording, with these results of the function.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if one of them is not of this recording.
    pub fn finish(self, results: &[TensorHandle]) -> Result<Trace, Error> {
        let value = |(index, result): (usize, &TensorHandle)| {
            self.recorder.value_of(result).ok_or_else(|| {
                let message =
                    format!("result {index} is neither an input nor a result of a recorded call");
                Error::invalid_argument(message)
            })
        };
        let results = results
            .iter()
            .enumerate()
            .map(value)
            .collect::<Result<_, _>>()?;
        let RecordedCalls {
            inputs,
            constants,
            calls,
            ..
        } = self.recorder.lock().take().unwrap_or_default();
        Ok(Trace {
            inputs,
            constants,
            calls: calls.into_values().collect(),
            results,
        })
    }
}

impl RecordedCalls {
    fn next_value(&mut self) -> u32 {
        let value = self.n_values;
        self.n_values += 1;
        value
    }

    /// Returns the number of a tensor from outside.
    fn constant(&mut self, handle: TensorHandle) -> u32 {
        let identity = handle.identity();
        let known = identity.as_ref().and_then(|known| self.values.get(known));
        if let Some(value) = known {
            return *value;
        }
        let value = self.next_value();
        self.constants.push((value, handle));
        if let Some(identity) = identity {
            self.values.insert(identity, value);
        }
        value
    }
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Option<RecordedCalls>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the recording goes on.
    pub(crate) fn is_recording(&self) -> bool {
        self.lock().is_some()
    }

    /// Returns whether a handle stands for a value of this recording, if the recording goes on.
    pub(crate) fn records(&self, handle: &TensorHandle) -> bool {
        self.value_of(handle).is_some() && self.is_recording()
    }

    /// Returns the next place in the order of all calls.
    fn next_place(&self) -> u64 {
        self.lock().as_mut().map_or(0, |recorded| {
            recorded.n_places += 1;
            recorded.n_places
        })
    }

    /// Returns the number of a handle's value in this recording.
    fn value_of(&self, handle: &TensorHandle) -> Option<u32> {
        let traced = handle.traced()?;
        (traced.recording == self.id).then_some(traced.value)
    }

    fn mark(&self, mut handle: TensorHandle, value: u32) -> TensorHandle {
        handle.set_traced(TraceValue {
            recording: self.id,
            value,
        });
        handle
    }

    /// Makes a call, and records it unless it is refused. `call` calls back where the call takes its place in the
    /// order of all calls.
    pub(crate) fn call(
        &self,
        op: &CoreRuntimeOp,
        inputs: Inputs<'_>,
        attrs: OpAttrsRef<'_>,
        call: impl FnOnce(Inputs<'_>, &mut dyn FnMut()) -> Result<Handles, Error>,
    ) -> Result<Handles, Error> {
        if !self.is_recording() {
            return call(inputs, &mut || ());
        }
        // Handles that stand for values elsewhere are constants here, and are kept: so none is written over.
        let given: Vec<TensorHandle> = inputs.iter().cloned().collect();
        let mut place = 0;
        let results = call(inputs, &mut || place = self.next_place())?;
        let mut recorded = self.lock();
        let Some(recorded) = recorded.as_mut() else {
            return Ok(results);
        };
        let number = |handle| match self.value_of(&handle) {
            Some(value) => value,
            None => recorded.constant(handle),
        };
        let numbers = given.into_iter().map(number).collect();
        let mark = |handle| {
            let value = recorded.next_value();
            self.mark(handle, value)
        };
        let results: Handles = results.into_iter().map(mark).collect();
        let values = results.iter().filter_map(|result| self.value_of(result));
        let call = TracedCall {
            op: op.clone(),
            inputs: numbers,
            attrs: attrs.freeze(),
            results: values.collect(),
        };
        recorded.calls.insert(place, call);
        Ok(results)
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recorded = self.recorder.lock();
        let n_calls = recorded.as_ref().map_or(0, |recorded| recorded.calls.len());
        drop(recorded);
        f.debug_struct("Recording")
            .field("n_calls", &n_calls)
            .finish_non_exhaustive()
    }
}
