//! Dispatch of a call: checks, then a run at once or a deferred one. Every operation of a registry goes this way.
//!
//! 1. The call is looked at: number of inputs, runtime, device, attributes. What is wrong is the caller's to hear.
//! 2. An input that has failed fails the results, the last one first.
//! 3. With inputs that are there the metadata function says what the results will be, and the operation runs: on the
//!    caller's thread if it is short, else on a worker of the queue.
//! 4. With inputs that are to come the results are to come, too ([`Deferred`]); what is known of them is said at once.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use tfrt_host::trace::{TraceLevel, TraceSpan};
use tfrt_host::{
    AsyncValue, Chain, DType, DeviceId, Error, ExecutionContext, HostContext, guarded,
};
use tfrt_tensor::{Tensor, TensorFormat, TensorMetadata, convert};

use crate::TensorHandle;
use crate::attributes::OpAttrsRef;
use crate::call::Call;
use crate::call_site::CallSite;
use crate::deferred::Deferred;
use crate::definition::{
    MetadataCall, OpDefinition, Output, Outputs, ResultCount, ResultMetadata, ShortWay,
};
use crate::effects::{EffectOrder, PendingEffects};
use crate::error_reporter::{ErrorReporter, FailedCall};
use crate::handle::{Owner, PendingMetadata, PendingTensor};
use crate::inputs::Inputs;
use crate::op::{FastPath, Handles, Op, OpCall};
use crate::rows::Pointwise;

/// Approximate additions from which on operations are left to the queue's workers: some 20 microseconds.
const LONG: u64 = 1 << 16;

/// Types and shapes of inputs.
pub(crate) type InputMetadata<'a> = SmallVec<[&'a TensorMetadata; 4]>;

/// An operation of a registry on a device.
pub(crate) struct RegisteredOp {
    pub(crate) definition: Arc<OpDefinition>,
    pub(crate) device: DeviceId,
}

impl Op for RegisteredOp {
    fn name(&self) -> &str {
        self.definition.name()
    }

    fn is_pure(&self) -> bool {
        self.definition.is_pure()
    }

    fn needs_chain(&self) -> bool {
        !self.definition.is_pure()
    }

    fn effect_order(&self) -> EffectOrder {
        self.definition.effect_order()
    }

    fn shares_resources(&self, attrs: OpAttrsRef<'_>) -> bool {
        self.definition.shares_resources(attrs)
    }

    fn n_results(&self) -> Option<usize> {
        match self.definition.n_results() {
            ResultCount::Always(n) => Some(n),
            ResultCount::Attribute(_) | ResultCount::Inputs | ResultCount::Computed => None,
        }
    }

    fn for_node(&self) -> Option<Arc<dyn Op>> {
        let definition = self.definition.for_node()?;
        let device = self.device;
        Some(Arc::new(RegisteredOp { definition, device }))
    }

    fn pointwise(&self) -> Option<Pointwise> {
        match self.definition.short_way() {
            ShortWay::Pointwise(function) => Some(Pointwise::new(function, self.device)),
            ShortWay::None | ShortWay::Direct => None,
        }
    }

    #[inline]
    fn try_fast(&self, call: &mut OpCall<'_>) -> FastPath {
        let fast_path = match self.definition.short_way() {
            ShortWay::None => return Err(None),
            ShortWay::Pointwise(function) => function,
            // Whoever expects no number of results is told of mistakes in shapes first.
            ShortWay::Direct if call.n_results == Some(1) => return self.run_directly(call),
            ShortWay::Direct => return Err(None),
        };
        let request = call.execution.request();
        let owner = Owner {
            runtime: call.runtime,
            device: self.device,
        };
        if request.is_cancelled() || !call.attrs.is_empty() || !call.inputs.are_at(owner) {
            return Err(None);
        }
        fast_path.try_fast(&mut call.inputs, request.host().allocator(), owner)
    }

    fn call(&self, call: OpCall<'_>) -> Result<Handles, Error> {
        let definition = &*self.definition;
        definition.check_inputs(call.inputs.len())?;
        if !call.attrs.is_empty() {
            definition.check_attributes(call.attrs)?;
        }
        let n_results = definition.n_results_with(call.attrs, call.inputs.len())?;
        if let Some(expected) = call.n_results
            && expected != n_results
        {
            return Err(wrong_results(definition, n_results, expected));
        }
        let owner = Owner {
            runtime: call.runtime,
            device: self.device,
        };
        let mut is_settled = true;
        for index in (0..call.inputs.len()).rev() {
            let input = call.inputs.get(index);
            if input.owner() != owner {
                check_owner(definition, index, input, (owner, call.execution.host()))?;
            }
            if input.is_there() {
                continue;
            }
            match input.tensor() {
                Some(Ok(_)) => (),
                Some(Err(error)) => {
                    let error = error.clone();
                    // What is wrong with the call itself is said first.
                    for before in 0..index {
                        let place = (owner, call.execution.host());
                        check_owner(definition, before, call.inputs.get(before), place)?;
                    }
                    return Ok(failed(definition, owner, n_results, error, call.chain));
                }
                None if input.is_taken() => return Err(taken(definition.name(), index)),
                None => is_settled = false,
            }
        }
        if let Some(reason) = call.execution.request().cancellation() {
            return Err(reason.clone());
        }
        if !definition.is_pure() {
            return self.call_in_order(owner, call, is_settled);
        }
        match is_settled {
            true => self.run(owner, call, None),
            false => self.defer(owner, call, None),
        }
    }
}

impl RegisteredOp {
    /// Runs the author's code, if the inputs are there as it takes them and the call is not to wait for another.
    fn run_directly(&self, call: &mut OpCall<'_>) -> FastPath {
        let definition = &*self.definition;
        let owner = Owner {
            runtime: call.runtime,
            device: self.device,
        };
        let n_inputs = call.inputs.len();
        let mut is_ready = definition.is_pure() && definition.input_range().contains(&n_inputs);
        for index in 0..n_inputs {
            let input = call.inputs.get(index);
            let fits = |tensor: &Tensor| definition.takes(tensor.format());
            is_ready &= input.owner() == owner && input.as_tensor().is_some_and(fits);
        }
        if !is_ready || call.execution.request().is_cancelled() {
            return Err(None);
        }
        if call.in_flight.is_some() && is_long(definition, &call.inputs, &[])? {
            return Err(None);
        }
        if !call.attrs.is_empty() {
            definition.check_attributes(call.attrs)?;
        }
        let mut own = Call {
            op: definition.name(),
            execution: call.execution,
            inputs: call.inputs.reborrow(),
            attrs: call.attrs,
            metadata: &[],
            effects: None,
            waiting: None,
        };
        let outputs = guarded(|| (definition.dispatch_fn())(&mut own)).and_then(|result| result);
        let mut outputs = outputs?;
        match (outputs.len(), outputs.pop()) {
            (1, Some(Output::Ready(tensor))) => Ok(TensorHandle::of_tensor(owner, tensor)),
            (1, Some(later)) => {
                let place = (call.execution, call.caller);
                let metadata = ResultMetadata::new();
                let mut handles =
                    handles(&self.definition, owner, smallvec![later], metadata, place);
                handles.pop().ok_or(None)
            }
            (n, _) => Err(Some(miscounted(definition, "made", [1, n]))),
        }
    }

    /// Calls an operation with side effects, after those of earlier calls.
    fn call_in_order(
        &self,
        owner: Owner,
        mut call: OpCall<'_>,
        is_settled: bool,
    ) -> Result<Handles, Error> {
        let Some(chain) = call.chain.take() else {
            let name = self.definition.name();
            return Err(Error::invalid_argument(format!(
                "{name} has side effects, so that the call needs a chain: corert.executeop.seq gives it one"
            )));
        };
        match chain.get() {
            Some(Err(error)) => {
                let error = error.clone();
                let n_results = self
                    .definition
                    .n_results_with(call.attrs, call.inputs.len())?;
                Ok(failed(
                    &self.definition,
                    owner,
                    n_results,
                    error,
                    Some(chain),
                ))
            }
            Some(Ok(_)) if is_settled => self.run(owner, call, Some(chain)),
            _ => self.defer(owner, call, Some(chain)),
        }
    }

    /// Runs the operation with inputs that are there. `chain` is the resolved chain before its side effects, if it
    /// has any, and is replaced by the chain after them.
    #[inline]
    fn run(
        &self,
        owner: Owner,
        call: OpCall<'_>,
        chain: Option<&mut AsyncValue<Chain>>,
    ) -> Result<Handles, Error> {
        match converted(&self.definition, &call.inputs, call.execution)? {
            None => self.run_converted(owner, call, chain),
            Some(mut converted) => {
                let inputs = Inputs::owned(&mut converted);
                self.run_converted(owner, OpCall { inputs, ..call }, chain)
            }
        }
    }

    #[inline]
    fn run_converted(
        &self,
        owner: Owner,
        call: OpCall<'_>,
        chain: Option<&mut AsyncValue<Chain>>,
    ) -> Result<Handles, Error> {
        let definition = &*self.definition;
        let inputs = known_metadata(&call.inputs);
        let known = (&inputs[..], &call.inputs);
        let metadata = result_metadata(definition, known, call.attrs, call.execution)?;
        if call.in_flight.is_some() && definition.cost_of(&inputs, &metadata)? > LONG {
            drop(inputs);
            return self.defer_with(owner, call, Some(metadata), chain);
        }
        drop(inputs);
        let OpCall {
            inputs,
            attrs,
            execution,
            caller,
            waiting,
            ..
        } = call;
        let (outputs, effects) = run(definition, execution, inputs, attrs, &metadata)?;
        let results = handles(
            &self.definition,
            owner,
            outputs,
            metadata,
            (execution, caller),
        );
        if let Some(chain) = chain {
            let called = || FailedCall::Op(self.definition.clone());
            let tell = |later| ErrorReporter::new(called(), execution, caller).chain(later);
            *chain = match effects {
                SideEffects::InOrder(effects) => after(&results, effects.map(tell)),
                SideEffects::Waiting(effects) => in_place(tell(effects), waiting),
            };
        }
        Ok(results)
    }

    /// Defers the operation until its inputs are there.
    fn defer(
        &self,
        owner: Owner,
        call: OpCall<'_>,
        chain: Option<&mut AsyncValue<Chain>>,
    ) -> Result<Handles, Error> {
        let definition = &*self.definition;
        let inputs: Option<InputMetadata<'_>> =
            call.inputs.iter().map(TensorHandle::metadata).collect();
        for (index, input) in call.inputs.iter().enumerate() {
            let is_string = input.dtype() == Some(DType::String);
            if is_string && !definition.takes(TensorFormat::StringHost) {
                return Err(unfit(definition, index, TensorFormat::StringHost));
            }
        }
        let metadata = match (definition.metadata_fn(), inputs) {
            (Some(_), Some(inputs)) => Some(result_metadata(
                definition,
                (&inputs, &call.inputs),
                call.attrs,
                call.execution,
            )?),
            _ => None,
        };
        self.defer_with(owner, call, metadata, chain)
    }

    fn defer_with(
        &self,
        owner: Owner,
        call: OpCall<'_>,
        metadata: Option<ResultMetadata>,
        chain: Option<&mut AsyncValue<Chain>>,
    ) -> Result<Handles, Error> {
        let guard = match call.in_flight {
            Some(in_flight) => Some(in_flight.begin()?),
            None => None,
        };
        Deferred::start(&self.definition, owner, call, metadata, chain, guard)
    }
}

/// Returns types and shapes of inputs that are there.
#[inline]
pub(crate) fn known_metadata<'a>(inputs: &'a Inputs<'_>) -> InputMetadata<'a> {
    let mut all = InputMetadata::new();
    for index in 0..inputs.len() {
        if let Some(metadata) = inputs.get(index).metadata() {
            all.push(metadata);
        }
    }
    all
}

/// Calls the metadata function, if there is one, with the types and shapes of inputs. Returns `None` if the results
/// depend on values of inputs that are not there.
#[inline]
pub(crate) fn result_metadata(
    definition: &OpDefinition,
    (inputs, handles): (&[&TensorMetadata], &Inputs<'_>),
    attrs: OpAttrsRef<'_>,
    execution: &ExecutionContext,
) -> Result<ResultMetadata, Error> {
    let Some(function) = definition.metadata_fn() else {
        return Ok(ResultMetadata::new());
    };
    let sink = execution.host().trace();
    let _scope = sink.map(|sink| {
        TraceSpan::new(sink, TraceLevel::Verbose, || {
            "RunMetadataFunction".to_owned()
        })
    });
    let call = MetadataCall {
        op: definition.name(),
        inputs,
        attrs,
        handles,
    };
    let results = guarded(|| function(&call)).and_then(|result| result)?;
    let expected = definition.n_results_with(attrs, inputs.len())?;
    match results.is_empty() || results.len() == expected {
        true => Ok(results),
        false => Err(miscounted(
            definition,
            "described",
            [expected, results.len()],
        )),
    }
}

/// Returns whether an operation is long enough to be left to a worker.
pub(crate) fn is_long(
    definition: &OpDefinition,
    inputs: &Inputs<'_>,
    results: &[TensorMetadata],
) -> Result<bool, Error> {
    Ok(definition.cost_of(&known_metadata(inputs), results)? > LONG)
}

/// When the side effects of a call happen.
pub(crate) enum SideEffects {
    /// When its results are there, and this chain is resolved, if there is one: later calls wait for that.
    InOrder(Option<AsyncValue<Chain>>),
    /// When this chain is resolved; later calls on the same resource don't wait for that.
    Waiting(AsyncValue<Chain>),
}

/// Returns the chain that follows side effects for which later calls on the same resource don't wait, if the context
/// keeps account of such.
pub(crate) fn in_place(
    effects: AsyncValue<Chain>,
    waiting: Option<&PendingEffects>,
) -> AsyncValue<Chain> {
    match waiting {
        Some(waiting) => {
            // Whoever asks for the effects of the context hears of it.
            let _after = waiting.watch(effects);
            AsyncValue::available(Chain)
        }
        None => effects,
    }
}

/// Calls the operation's author's code. Returns when its side effects happen, too.
#[inline]
pub(crate) fn run(
    definition: &OpDefinition,
    execution: &ExecutionContext,
    inputs: Inputs<'_>,
    attrs: OpAttrsRef<'_>,
    metadata: &[TensorMetadata],
) -> Result<(Outputs, SideEffects), Error> {
    let sink = execution.host().trace();
    let _scope = sink.map(|sink| {
        TraceSpan::new(sink, TraceLevel::Debug, || {
            format!("RunDispatch: {}", definition.name())
        })
    });
    let expected = definition.n_results_with(attrs, inputs.len())?;
    let mut call = Call {
        op: definition.name(),
        execution,
        inputs,
        attrs,
        metadata,
        effects: None,
        waiting: None,
    };
    let outputs = guarded(|| (definition.dispatch_fn())(&mut call)).and_then(|result| result)?;
    match outputs.len() == expected {
        true => Ok((
            outputs,
            match call.waiting {
                Some(waiting) => SideEffects::Waiting(waiting),
                None => SideEffects::InOrder(call.effects),
            },
        )),
        false => Err(miscounted(definition, "made", [expected, outputs.len()])),
    }
}

/// Returns the error for an author's code that gives another number of results than the definition.
#[cold]
fn miscounted(definition: &OpDefinition, verb: &str, [expected, found]: [usize; 2]) -> Error {
    let name = definition.name();
    let s = if found == 1 { "" } else { "s" };
    Error::internal(format!(
        "{name} has {verb} {found} result{s}: expected {expected}"
    ))
}

/// Returns the outputs as handles.
#[inline]
fn handles(
    definition: &Arc<OpDefinition>,
    owner: Owner,
    outputs: Outputs,
    metadata: ResultMetadata,
    (execution, caller): (&ExecutionContext, CallSite),
) -> Handles {
    let mut results = Handles::new();
    let mut metadata = metadata.into_iter();
    let mut telling = None;
    for output in outputs {
        let metadata = metadata.next();
        results.push(match output {
            Output::Ready(tensor) => TensorHandle::of_tensor(owner, tensor),
            Output::Later(tensor) => {
                let known = metadata.map_or(PendingMetadata::WithTensor, PendingMetadata::Known);
                let tell =
                    || ErrorReporter::new(FailedCall::Op(definition.clone()), execution, caller);
                let tensor = telling.get_or_insert_with(tell).result(tensor);
                TensorHandle::of_pending(
                    owner,
                    PendingTensor::new(tensor, known),
                    execution.request(),
                )
            }
        });
    }
    results
}

/// Returns the inputs in formats that the operation takes, if they are not yet.
#[inline]
pub(crate) fn converted(
    definition: &OpDefinition,
    inputs: &Inputs<'_>,
    execution: &ExecutionContext,
) -> Result<Option<SmallVec<[TensorHandle; 4]>>, Error> {
    let fits = |handle: &TensorHandle| match handle.tensor() {
        Some(Ok(tensor)) => definition.takes(tensor.format()),
        _ => true,
    };
    for index in 0..inputs.len() {
        if !fits(inputs.get(index)) {
            return convert_inputs(definition, inputs, execution).map(Some);
        }
    }
    Ok(None)
}

#[cold]
fn convert_inputs(
    definition: &OpDefinition,
    inputs: &Inputs<'_>,
    execution: &ExecutionContext,
) -> Result<SmallVec<[TensorHandle; 4]>, Error> {
    let convert = |(index, handle): (usize, &TensorHandle)| match handle.tensor() {
        Some(Ok(tensor)) if !definition.takes(tensor.format()) => {
            let (from, to) = (tensor.format(), TensorFormat::DenseHost);
            if !matches!(from, TensorFormat::ScalarHost | TensorFormat::CooHost) {
                return Err(unfit(definition, index, from));
            }
            let tensor = convert::to_format(tensor, to, execution.host().allocator())?;
            Ok(TensorHandle::of_tensor(handle.owner(), tensor))
        }
        _ => Ok(handle.clone()),
    };
    inputs.iter().enumerate().map(convert).collect()
}

/// Returns the error for an input that can't be made dense.
#[cold]
fn unfit(definition: &OpDefinition, index: usize, from: TensorFormat) -> Error {
    let (op, to) = (definition.name(), TensorFormat::DenseHost);
    // The words before the colon are what programs for the original look for.
    Error::invalid_argument(format!(
        "Cannot implictly convert {from} to {to}: input {index} of {op}"
    ))
}

/// Returns results that have all failed, and fails the chain.
#[cold]
fn failed(
    definition: &OpDefinition,
    owner: Owner,
    n_results: usize,
    error: Error,
    chain: Option<&mut AsyncValue<Chain>>,
) -> Handles {
    if let Some(chain) = chain
        && !definition.is_pure()
    {
        *chain = AsyncValue::from_error(error.clone());
    }
    (0..n_results)
        .map(|_| TensorHandle::of_error(owner, error.clone()))
        .collect()
}

/// Returns the chain that follows side effects which are done when the results are there.
fn after(results: &[TensorHandle], effects: Option<AsyncValue<Chain>>) -> AsyncValue<Chain> {
    let mut pending: Vec<_> = results
        .iter()
        .filter_map(TensorHandle::awaited)
        .cloned()
        .collect();
    match effects {
        Some(effects) if pending.is_empty() => return effects,
        Some(effects) => pending.push(effects.into_any()),
        None => (),
    }
    match pending.is_empty() {
        true => AsyncValue::available(Chain),
        false => tfrt_host::when_all(&pending),
    }
}

#[cold]
fn wrong_results(definition: &OpDefinition, n: usize, expected: usize) -> Error {
    let name = definition.name();
    let s = if n == 1 { "" } else { "s" };
    Error::invalid_argument(format!(
        "{name} has {n} result{s}, the caller expects {expected}"
    ))
}

/// Checks that an input belongs to the runtime and the device of the call.
#[cold]
fn check_owner(
    definition: &OpDefinition,
    index: usize,
    input: &TensorHandle,
    (owner, host): (Owner, &HostContext),
) -> Result<(), Error> {
    let (op, found) = (definition.name(), input.owner());
    let message = if found.runtime != owner.runtime {
        of_another_runtime(op, index)
    } else if found.device != owner.device && !definition.takes_any_device() {
        format!(
            "input {index} of {op} is on device {}, the operation runs on device {}: transfer it there",
            host.devices().name_of(found.device),
            host.devices().name_of(owner.device)
        )
    } else {
        return Ok(());
    };
    Err(Error::invalid_argument(message))
}

/// Returns the error for an input that another operation has taken.
#[cold]
fn taken(op: &str, index: usize) -> Error {
    Error::invalid_argument(format!(
        "input {index} of {op} was given to another operation for good"
    ))
}

/// Returns the message for an input that another runtime made.
#[cold]
pub(crate) fn of_another_runtime(op: &str, index: usize) -> String {
    format!("input {index} of {op} belongs to another runtime")
}

/// Returns the results as pending handles.
pub(crate) fn pending_handles(
    owner: Owner,
    tensors: impl Iterator<Item = (AsyncValue<Tensor>, PendingMetadata)>,
    execution: &ExecutionContext,
) -> Handles {
    let handle = |(tensor, metadata)| {
        TensorHandle::of_pending(
            owner,
            PendingTensor::new(tensor, metadata),
            execution.request(),
        )
    };
    let mut all: Handles = smallvec![];
    all.extend(tensors.map(handle));
    all
}
