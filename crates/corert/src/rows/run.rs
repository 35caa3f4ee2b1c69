//! Run of a row: translates operands and attributes of a call, and hands them to the row's kernel.

use smallvec::SmallVec;
use tfrt_host::{AnyAsyncValue, AsyncValue, DType, Error};
use tfrt_ops::names;
use tfrt_ops::{AttrSource, Attrs};
use tfrt_tensor::math::cast::{Casting, cast_into};
use tfrt_tensor::op::{OpCall, Operands, RowKernel, TensorCall, made};
use tfrt_tensor::{DenseHostTensor, NoValue, Tensor, TensorMetadata};

use super::Row;
use super::attributes::{CallAttrs, RowAttrs};
use super::operands::{self, RowOperands};
use crate::call::Call;
use crate::definition::{Output, Outputs};

impl Row {
    /// Returns a kernel's error with the called operation's name in place of the row's or ONNX's.
    #[cold]
    pub(super) fn renamed(self, op: &str, error: Error) -> Error {
        let is_own = |name: &str| {
            let own = names::onnx::name(name).map(|own| own.row == self.op.name);
            own.unwrap_or_else(|| {
                self.op.name.strip_prefix("onnx.").unwrap_or(self.op.name) == name
            })
        };
        match error.message().split_once(": ") {
            Some((name, rest)) if is_own(name) => {
                let renamed = Error::new(error.code(), format!("{op}: {rest}"));
                error
                    .notes()
                    .iter()
                    .fold(renamed, |renamed, note| renamed.with_note(note))
            }
            _ => error,
        }
    }

    pub(super) fn run(self, call: &mut Call<'_>, kernel: RowKernel) -> Result<Outputs, Error> {
        let (op, attrs, execution, results) = (call.op, call.attrs, call.execution, call.metadata);
        let (mut effects, mut waiting) = (None, None);
        let outputs = self.with_operands(call, |attrs, given, n_results| match kernel {
            RowKernel::Tensors(kernel) => {
                let mut call = TensorCall {
                    op: self.op,
                    name: op,
                    attrs,
                    operands: given,
                    results,
                    n_results,
                    execution,
                    effects: None,
                    waiting: None,
                };
                let outputs = (kernel.run)(&mut call);
                (effects, waiting) = (call.effects, call.waiting);
                outputs
            }
            RowKernel::Values(kernel) => {
                let inputs = (0..given.len()).map(|index| match given.get(index) {
                    Some(tensor) => AnyAsyncValue::new::<Tensor>(tensor.clone()),
                    None => AnyAsyncValue::new(NoValue),
                });
                let inputs: SmallVec<[AnyAsyncValue; 4]> = inputs.collect();
                let results = (kernel.run)(&OpCall {
                    op: self.op,
                    attrs,
                    inputs: &inputs,
                    n_results,
                    prepared: None,
                    device: None,
                    execution,
                });
                let results = results.map_err(|error| self.renamed(op, error))?;
                results.into_iter().map(output).collect()
            }
        })?;
        (call.effects, call.waiting) = (effects, waiting);
        match self.result_type(op, attrs)? {
            Some(dtype) => outputs
                .into_iter()
                .map(|output| cast(call, output, dtype))
                .collect(),
            None => Ok(outputs),
        }
    }

    /// Translates the operands and attributes of a call to those of the row, and hands them with the number of
    /// results to `run`.
    pub(super) fn with_operands<R>(
        self,
        call: &mut Call<'_>,
        run: impl FnOnce(Attrs<'_>, &mut RowOperands<'_, '_>, usize) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (op, attrs, n_inputs) = (call.op, call.attrs, call.inputs.len());
        let lists = self.lists(op, &call.inputs)?.ok_or_else(|| {
            Error::invalid_argument(format!(
                "{op}: expected few integers where attributes are operands"
            ))
        })?;
        let mut all_made = SmallVec::new();
        if self.name.is_some_and(|name| name.operands.is_some()) {
            let allocator = call.execution.host().allocator();
            for index in 0..self.n_operands(n_inputs) {
                all_made.push(self.made(op, &call.inputs, attrs, allocator, index)?);
            }
        }
        let n_results = self.counted(attrs, n_inputs)?;
        let source = RowAttrs {
            stated: CallAttrs(attrs),
            row: self,
            n_inputs,
            lists: &lists,
        };
        let is_plain = attrs.is_empty() && self.names().is_empty();
        let source: &dyn AttrSource = if is_plain { &() } else { &source };
        let mut given = RowOperands {
            row: self,
            inputs: &mut call.inputs,
            made: all_made,
        };
        run(Attrs::new(source, self.op.attrs), &mut given, n_results)
    }
}

/// Returns a result as one of another type.
fn cast(call: &Call<'_>, output: Output, dtype: DType) -> Result<Output, Error> {
    let execution = call.execution.clone();
    let op = call.op.to_owned();
    let cast = move |tensor: &Tensor| {
        let x = tensor.as_dense()?;
        // Of few, extents mostly, none may be lost.
        let lost = operands::integers(tensor).filter(|_| dtype == DType::I32);
        let lost = lost.and_then(|list| list.into_iter().find(|one| i32::try_from(*one).is_err()));
        if let Some(lost) = lost {
            let message = format!("{op}: {lost} exceeds the largest integer of i32");
            return Err(Error::invalid_argument(message));
        }
        let metadata = TensorMetadata::new(dtype, x.shape().clone());
        let out = DenseHostTensor::unspecified(execution.host().allocator(), metadata)?;
        let chain = cast_into(&execution, Casting::default(), x, &out)?;
        Ok::<_, Error>((out, chain))
    };
    match output {
        Output::Ready(tensor) if tensor.metadata().dtype == dtype => Ok(Output::Ready(tensor)),
        Output::Ready(tensor) => {
            let (out, chain) = cast(&tensor)?;
            made(out, chain)
        }
        Output::Later(later) => {
            let result = later.clone();
            Ok(Output::Later(later.and_then_value(move |tensor| {
                if tensor.metadata().dtype == dtype {
                    return result;
                }
                match cast(tensor) {
                    Ok((out, chain)) => chain.map(move |_| out.into()),
                    Err(error) => AsyncValue::from_error(error),
                }
            })))
        }
    }
}

/// Returns a value that a kernel has made, which is a tensor.
pub(super) fn output(value: AnyAsyncValue) -> Result<Output, Error> {
    if let Some(tensor) = value.get::<Tensor>() {
        return Ok(Output::Ready(tensor.clone()));
    }
    let later = value.downcast::<Tensor>();
    later.map(Output::Later).map_err(|other| {
        let found = other.type_name().unwrap_or("nothing");
        Error::invalid_argument(format!("expected a tensor for a result, found {found}"))
    })
}
