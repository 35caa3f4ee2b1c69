//! [`LastResults`]: a cache of one entry for each operation, the types and shapes of the last call's results: most calls
//! have the same inputs' types and shapes again.

use std::sync::{Mutex, TryLockError};

use smallvec::SmallVec;
use tfrt_host::{DType, Error};
use tfrt_ops::MOST_VALUES;
use tfrt_tensor::{Tensor, TensorMetadata};

use super::operands;
use crate::attributes::FrozenOpAttrs;
use crate::definition::{MetadataCall, ResultMetadata};

/// Cache of the results' metadata of the last call.
#[derive(Default)]
pub(super) struct LastResults(Mutex<Option<LastCall>>);

/// All that decides what the results of a call are, and these.
struct LastCall {
    inputs: SmallVec<[InputKey; 2]>,
    attrs: FrozenOpAttrs,
    results: ResultMetadata,
}

/// An input: type and shape, and the elements if it is a small list of integers, which may say what the results are.
struct InputKey {
    metadata: TensorMetadata,
    values: Option<SmallVec<[i64; 8]>>,
}

impl LastResults {
    /// Returns what they are, or finds it.
    pub(super) fn of(
        &self,
        call: &MetadataCall<'_>,
        find: impl FnOnce() -> Result<ResultMetadata, Error>,
    ) -> Result<ResultMetadata, Error> {
        // Who finds it taken does not wait.
        let mut last = match self.0.try_lock() {
            Ok(last) => last,
            Err(TryLockError::Poisoned(last)) => last.into_inner(),
            Err(TryLockError::WouldBlock) => return find(),
        };
        if let Some(last) = &*last
            && last.is_of(call)
        {
            return Ok(last.results.clone());
        }
        let results = find()?;
        if call.inputs.len() == call.handles.len() && call.attrs.is_plain() {
            let inputs = call.inputs.iter().enumerate();
            let inputs = inputs.map(|(index, metadata)| InputKey {
                metadata: (*metadata).clone(),
                values: values(call, index, metadata),
            });
            *last = Some(LastCall {
                inputs: inputs.collect(),
                attrs: call.attrs.freeze(),
                results: results.clone(),
            });
        }
        Ok(results)
    }
}

impl LastCall {
    fn is_of(&self, call: &MetadataCall<'_>) -> bool {
        let inputs = || self.inputs.iter().zip(call.inputs).enumerate();
        self.inputs.len() == call.inputs.len()
            && call.inputs.len() == call.handles.len()
            && inputs().all(|(_, (own, metadata))| own.metadata == **metadata)
            && call.attrs.is(self.attrs.as_ref())
            && inputs().all(|(index, (own, metadata))| own.values == values(call, index, metadata))
    }
}

/// Returns the elements of an input that is a small list of integers, and is there.
fn values(
    call: &MetadataCall<'_>,
    index: usize,
    metadata: &TensorMetadata,
) -> Option<SmallVec<[i64; 8]>> {
    let is_integers = matches!(metadata.dtype, DType::I32 | DType::I64);
    let is_small = || {
        metadata
            .shape
            .n_elements()
            .is_some_and(|n| n <= MOST_VALUES)
    };
    if !is_integers || !is_small() {
        return None;
    }
    let tensor: Option<&Tensor> = call.handles.get(index).tensor()?.ok();
    tensor.and_then(operands::integers)
}
