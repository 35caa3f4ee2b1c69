//! [`Deferred`]: an operation that waits for inputs or for a worker.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::{
    AnyAsyncValue, AsyncValue, Chain, Error, ExecutionContext, Promise, run_when_settled,
};
use tfrt_tensor::Tensor;

use crate::TensorHandle;
use crate::attributes::FrozenOpAttrs;
use crate::call_site::CallSite;
use crate::context::InFlightGuard;
use crate::definition::{OpDefinition, Output, ResultMetadata};
use crate::dispatch::{
    self, SideEffects, converted, in_place, known_metadata, pending_handles, result_metadata,
};
use crate::effects::PendingEffects;
use crate::error_reporter::{ErrorReporter, FailedCall};
use crate::handle::{MetadataValue, Owner, PendingMetadata};
use crate::inputs::Inputs;
use crate::op::{Handles, OpCall};

/// An operation that waits for inputs or a worker, with the promises of its results.
pub(crate) struct Deferred {
    definition: Arc<OpDefinition>,
    inputs: SmallVec<[TensorHandle; 2]>,
    attrs: FrozenOpAttrs,
    execution: ExecutionContext,
    caller: CallSite,
    /// Types and shapes of the results, once they are known.
    metadata: Option<ResultMetadata>,
    /// Promises of the results' metadata, for readers that need it before the tensors.
    described: SmallVec<[Promise<MetadataValue>; 1]>,
    results: SmallVec<[Promise<Tensor>; 1]>,
    /// The chain to wait for, and the promise of the chain that follows this operation.
    chain: Option<(AsyncValue<Chain>, Promise<Chain>)>,
    /// Count among the waiting operations, until the operation is done. `None` for a call by a kernel, which runs
    /// ready operations itself.
    guard: Option<InFlightGuard>,
    /// The effects of calls of the context that wait in places of their own.
    waiting: Option<PendingEffects>,
    /// Whether the first inputs become the results if the operation can't be done.
    gives_back: bool,
}

impl Deferred {
    /// Defers an operation, and returns its pending results. `chain` is the chain before its side effects, and is
    /// replaced by the chain after them.
    pub(crate) fn start(
        definition: &Arc<OpDefinition>,
        owner: Owner,
        call: OpCall<'_>,
        metadata: Option<ResultMetadata>,
        chain: Option<&mut AsyncValue<Chain>>,
        guard: Option<InFlightGuard>,
    ) -> Result<Handles, Error> {
        let n_results = definition.n_results_with(call.attrs, call.inputs.len())?;
        let (results, tensors): (SmallVec<[_; 1]>, SmallVec<[_; 1]>) =
            (0..n_results).map(|_| AsyncValue::pending()).unzip();
        let mut described = SmallVec::new();
        let known: SmallVec<[PendingMetadata; 1]> = match (&metadata, definition.metadata_fn()) {
            (Some(metadata), Some(_)) if !metadata.is_empty() => metadata
                .iter()
                .cloned()
                .map(PendingMetadata::Known)
                .collect(),
            (None, Some(_)) => {
                let pending = |_| {
                    let (promise, value) = AsyncValue::pending();
                    described.push(promise);
                    PendingMetadata::Before(value)
                };
                (0..n_results).map(pending).collect()
            }
            _ => (0..n_results)
                .map(|_| PendingMetadata::WithTensor)
                .collect(),
        };
        let handles = pending_handles(owner, tensors.into_iter().zip(known), call.execution);
        let chain = chain.map(|chain| {
            let (promise, after) = AsyncValue::pending();
            (std::mem::replace(chain, after), promise)
        });
        let deferred = Box::new(Deferred {
            definition: definition.clone(),
            attrs: call.attrs.freeze(),
            inputs: call.inputs.into_vec(),
            execution: call.execution.clone(),
            caller: call.caller,
            metadata,
            described,
            results,
            chain,
            guard,
            waiting: call.waiting.cloned(),
            gives_back: call.gives_back,
        });
        deferred.describe();
        Ok(handles)
    }

    /// Finds types and shapes of the results when those of the inputs are known.
    fn describe(mut self: Box<Self>) {
        if self.described.is_empty() {
            return self.wait();
        }
        let request = self.execution.request();
        let unknown = self
            .inputs
            .iter()
            .filter(|input| input.metadata().is_none());
        let awaited: Vec<AnyAsyncValue> = unknown
            .map(|input| input.described_in(request).into_any())
            .collect();
        run_when_settled(&awaited, move || {
            if let Some(error) = self.failed_input() {
                return self.fail(error);
            }
            let (inputs, definition) = (Inputs::owned(&mut self.inputs), &*self.definition);
            let known = known_metadata(&inputs);
            if known.len() < inputs.len() {
                // Whoever knows the type of an input late knows it with the tensor; the request may have ended.
                drop(known);
                return self.wait();
            }
            let attrs = self.attrs.as_ref();
            let found = result_metadata(definition, (&known, &inputs), attrs, &self.execution);
            drop(known);
            match found {
                Ok(metadata) => {
                    for (promise, metadata) in self.described.drain(..).zip(&metadata) {
                        promise.resolve(MetadataValue(metadata.clone()));
                    }
                    self.metadata = Some(metadata);
                    self.wait();
                }
                Err(error) => self.report(error),
            }
        });
    }

    /// Waits for the inputs and the chain before, then begins.
    fn wait(self: Box<Self>) {
        let request = self.execution.request();
        let mut awaited: Vec<AnyAsyncValue> = self
            .inputs
            .iter()
            .filter_map(|input| input.awaited_in(request))
            .collect();
        if let Some((before, _)) = &self.chain
            && !before.is_settled()
        {
            awaited.push(before.as_any().clone());
        }
        run_when_settled(&awaited, move || self.begin());
    }

    /// Runs the operation, here or on a worker.
    fn begin(mut self: Box<Self>) {
        if let Some(error) = self.failed_input() {
            return self.fail(error);
        }
        if let Some(error) = self.chain.as_ref().and_then(|(before, _)| before.error()) {
            let error = error.clone();
            return self.fail(error);
        }
        let results = self.metadata.as_deref().unwrap_or_default();
        let inputs = Inputs::owned(&mut self.inputs);
        let is_long = match self.guard {
            Some(_) => dispatch::is_long(&self.definition, &inputs, results),
            None => Ok(false),
        };
        let is_long = match is_long {
            Ok(is_long) => is_long,
            Err(error) => return self.report(error),
        };
        if is_long {
            let execution = self.execution.clone();
            // What it gives nobody waits for: the operation's own promises are kept.
            let _done = execution.enqueue(move || {
                self.run();
                Ok(Chain)
            });
            return;
        }
        self.run();
    }

    fn run(mut self: Box<Self>) {
        if let Some(reason) = self.execution.request().cancellation() {
            let reason = reason.clone();
            return self.fail(reason);
        }
        let definition = self.definition.clone();
        match converted(
            &definition,
            &Inputs::owned(&mut self.inputs),
            &self.execution,
        ) {
            Ok(Some(converted)) => self.inputs = converted.into_iter().collect(),
            Ok(None) => (),
            Err(error) => return self.report(error),
        }
        let metadata = self.metadata.take();
        let attrs = self.attrs.clone();
        let inputs = Inputs::owned(&mut self.inputs);
        let metadata = match metadata {
            Some(metadata) => Ok(metadata),
            None => result_metadata(
                &definition,
                (&known_metadata(&inputs), &inputs),
                attrs.as_ref(),
                &self.execution,
            ),
        };
        let made = metadata.and_then(|metadata| {
            dispatch::run(
                &definition,
                &self.execution,
                inputs,
                attrs.as_ref(),
                &metadata,
            )
        });
        match made {
            Ok((outputs, effects)) => self.settle(outputs, effects),
            Err(error) => self.report(error),
        }
    }

    fn settle(mut self: Box<Self>, outputs: SmallVec<[Output; 1]>, effects: SideEffects) {
        let (mut pending, mut telling) = (Vec::new(), None);
        // Memory of inputs goes before those who wait for the results run.
        self.inputs.clear();
        drop(self.guard.take());
        let results = std::mem::take(&mut self.results);
        for (promise, output) in results.into_iter().zip(outputs) {
            match output {
                Output::Ready(tensor) => match self.execution.request().cancellation() {
                    None => promise.resolve(tensor),
                    Some(reason) => promise.fail(reason.clone()),
                },
                Output::Later(tensor) => {
                    pending.push(tensor.as_any().clone());
                    let called = || FailedCall::Op(self.definition.clone());
                    let tell = || ErrorReporter::new(called(), &self.execution, self.caller);
                    telling.get_or_insert_with(tell).keep(promise, tensor);
                }
            }
        }
        let (effects, is_in_order) = match effects {
            SideEffects::InOrder(effects) => (effects, true),
            SideEffects::Waiting(effects) => (Some(effects), false),
        };
        let effects = effects.map(|effects| {
            let called = || FailedCall::Op(self.definition.clone());
            let tell = || ErrorReporter::new(called(), &self.execution, self.caller);
            telling.get_or_insert_with(tell).chain(effects)
        });
        let Some((_, after)) = self.chain.take() else {
            return;
        };
        match effects {
            Some(effects) if !is_in_order => {
                after.forward(in_place(effects, self.waiting.as_ref()));
            }
            effects => {
                pending.extend(effects.map(AsyncValue::into_any));
                after.forward(tfrt_host::when_all(&pending));
            }
        }
    }

    /// Returns the error of the last input that has failed.
    fn failed_input(&self) -> Option<Error> {
        self.inputs
            .iter()
            .rev()
            .find_map(TensorHandle::error)
            .cloned()
    }

    /// Fails the results with a new error, which is reported to the diagnostic handler.
    #[cold]
    fn report(self: Box<Self>, error: Error) {
        let error = self
            .caller
            .report(self.definition.name(), error, &self.execution);
        self.fail(error);
    }

    /// Fails the results with an error that was reported before, or gives back the inputs in their place.
    #[cold]
    fn fail(self: Box<Self>, error: Error) {
        let Deferred {
            described,
            results,
            chain,
            guard,
            inputs,
            gives_back,
            ..
        } = *self;
        let back = |input: TensorHandle| {
            let is_given = gives_back && !input.is_taken();
            is_given.then(|| (input.described(), input.to_async()))
        };
        let mut back: SmallVec<[_; 1]> = inputs.into_iter().map(back).collect();
        drop(guard);
        back.resize_with(results.len(), || None);
        let (mut described, mut results) = (described.into_iter(), results.into_iter());
        for back in back {
            match (back, described.next(), results.next()) {
                (Some((metadata, tensor)), describing, Some(result)) => {
                    if let Some(describing) = describing {
                        describing.forward(metadata);
                    }
                    result.forward(tensor);
                }
                (_, describing, result) => {
                    if let Some(describing) = describing {
                        describing.fail(error.clone());
                    }
                    if let Some(result) = result {
                        result.fail(error.clone());
                    }
                }
            }
        }
        if let Some((_, after)) = chain {
            after.fail(error);
        }
    }
}
