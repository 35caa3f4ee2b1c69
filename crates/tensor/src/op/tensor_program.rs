//! Registration of kernels on tensors as kernels of programs.

use smallvec::SmallVec;
use tfrt_host::kernel::{Attr, AttributeView, KernelRegistry, Rest, ResultCount, Results};
use tfrt_host::{AnyAsyncValue, DType, Error, ExecutionContext};
use tfrt_ops::{Attrs, Dim, Fact, Facts, MOST_VALUES, OpDef, infer};

use super::program::ProgramAttrs;
use super::tensors::{Operands, Output, TensorCall, TensorKernel, unsupported};
use crate::{DenseHostTensor, NoValue, ObjectTensor, Tensor, TensorMetadata};

/// Registers a kernel of programs for each library row that has a kernel on tensors, and that touches no resource:
///
/// ```mlir
/// %y = "cpu.tf.Pack"(%a, %b) {attributes = ["axis", 0 : i64]} : (!t.tensor, !t.tensor) -> !t.tensor
/// ```
///
/// # Panics
///
/// If there is such a kernel already, or no such row.
pub fn register_tensors(
    registry: &mut KernelRegistry,
    kernels: impl Iterator<Item = &'static TensorKernel>,
) {
    for kernel in kernels.filter(|kernel| kernel.op.contains('.')) {
        let op = tfrt_ops::find(kernel.op);
        let op = op.unwrap_or_else(|| panic!("there is no row '{}'", kernel.op));
        if op.has_effects() {
            continue;
        }
        let run = move |operands: Rest,
                        attributes: Attr<AttributeView<'_>>,
                        n_results: ResultCount,
                        execution: &ExecutionContext|
              -> Result<Results, Error> {
            let call = Call {
                op,
                kernel,
                n_results: n_results.0,
                execution,
            };
            call.run(operands.0, *attributes)
        };
        registry.add(&format!("cpu.{}", op.name), run);
    }
}

/// A call of a program's kernel.
struct Call<'a> {
    op: &'static OpDef,
    kernel: &'static TensorKernel,
    n_results: usize,
    execution: &'a ExecutionContext,
}

impl Call<'_> {
    fn run(
        &self,
        mut operands: Vec<AnyAsyncValue>,
        attributes: AttributeView<'_>,
    ) -> Result<Results, Error> {
        let (op, name) = (self.op, self.op.name);
        let list = attributes.aggregate().filter(|list| list.len() % 2 == 0);
        let list = list.ok_or_else(|| {
            Error::invalid_argument(format!(
                "{name}: attributes are expected to be names and values alternately"
            ))
        })?;
        let source = ProgramAttrs { list, op };
        let attrs = Attrs::new(&source, op.attrs);
        self.convert(&mut operands)?;
        let first = operands.first().and_then(AnyAsyncValue::get::<Tensor>);
        if let (Some(family), Some(first)) = (self.kernel.family, first)
            && !family.has(first.metadata().dtype)
        {
            return Err(unsupported(name, first.metadata().dtype));
        }
        let facts: SmallVec<[Option<Fact>; 4]> = operands.iter().map(fact).collect();
        let found = infer(op, &facts, attrs, self.n_results, &mut |_, _| Facts::new());
        let found = found.map_err(|error| Error::invalid_argument(error.to_string()))?;
        let known: Option<SmallVec<[TensorMetadata; 2]>> =
            found.iter().map(TensorMetadata::of_fact).collect();
        let known = known.unwrap_or_default();
        let mut call = TensorCall {
            op,
            name,
            attrs,
            operands: &mut Given(&mut operands),
            results: &known,
            n_results: self.n_results,
            execution: self.execution,
            effects: None,
            waiting: None,
        };
        let outputs = (self.kernel.run)(&mut call)?;
        let allocator = self.execution.host().allocator();
        let made = outputs.into_iter().map(|output| match output {
            // Other kernels of programs take dense tensors.
            Output::Ready(Tensor::Scalar(scalar)) => Ok(AnyAsyncValue::new::<Tensor>(
                scalar.to_dense(allocator)?.into(),
            )),
            Output::Ready(tensor) => Ok(AnyAsyncValue::new(tensor)),
            Output::Later(tensor) => Ok(tensor.into()),
        });
        Ok(Results(made.collect::<Result<_, Error>>()?))
    }

    /// Converts tensors of formats that the kernel does not take to dense ones.
    fn convert(&self, operands: &mut [AnyAsyncValue]) -> Result<(), Error> {
        for operand in operands {
            let Some(tensor) = operand.get::<Tensor>() else {
                continue;
            };
            if self.kernel.formats.takes(tensor.format()) {
                continue;
            }
            let allocator = self.execution.host().allocator();
            let dense = match tensor {
                Tensor::Scalar(scalar) => scalar.to_dense(allocator)?,
                Tensor::Growable(growable) => growable.to_dense(allocator)?,
                Tensor::Coo(coo) => coo.to_dense(allocator)?,
                // The kernel says what it takes.
                _ => continue,
            };
            *operand = AnyAsyncValue::new::<Tensor>(dense.into());
        }
        Ok(())
    }
}

/// Returns what is known of an operand: of few integers the numbers, too.
fn fact(operand: &AnyAsyncValue) -> Option<Fact> {
    let tensor = operand.get::<Tensor>()?;
    let values = integers(tensor);
    let values = values.map(|values| values.into_iter().map(Dim::Known).collect());
    Some(Fact {
        values,
        ..tensor.metadata().to_fact()
    })
}

/// Returns the elements of a small tensor of integers.
fn integers(tensor: &Tensor) -> Option<SmallVec<[i64; 8]>> {
    let Tensor::Dense(dense) = tensor else {
        return None;
    };
    if !matches!(dense.dtype(), DType::I32 | DType::I64) || dense.n_elements() > MOST_VALUES {
        return None;
    }
    let reading = dense.read().ok()?;
    Some(match dense.dtype() {
        DType::I64 => SmallVec::from_slice(reading.elements::<i64>().ok()?),
        _ => {
            let all = reading.elements::<i32>().ok()?.iter();
            all.map(|one| i64::from(*one)).collect()
        }
    })
}

/// The operands of a call, given for good.
struct Given<'a>(&'a mut [AnyAsyncValue]);

impl Given<'_> {
    /// Returns the tensor at `index`, if nobody else holds the value.
    fn own(&mut self, index: usize) -> Option<&mut Tensor> {
        let operand = self.0.get_mut(index)?;
        // What was still to come when the call began is behind a handle.
        *operand = std::mem::replace(operand, AnyAsyncValue::new(NoValue)).settled();
        operand.get_mut::<Tensor>()
    }

    fn take(&mut self, index: usize) {
        self.0[index] = AnyAsyncValue::new(NoValue);
    }
}

impl Operands for Given<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Option<&Tensor> {
        self.0.get(index)?.get::<Tensor>()
    }

    fn take_sole(&mut self, index: usize) -> Option<DenseHostTensor> {
        let Tensor::Dense(tensor) = self.own(index)? else {
            return None;
        };
        let found = tensor.is_sole().then(|| tensor.clone())?;
        self.take(index);
        Some(found)
    }

    fn take_object(&mut self, index: usize) -> Option<ObjectTensor> {
        let Tensor::Object(tensor) = self.own(index)? else {
            return None;
        };
        let found = tensor.clone();
        self.take(index);
        Some(found)
    }

    fn put_back(&mut self, index: usize, tensor: DenseHostTensor) {
        if let Some(operand) = self.0.get_mut(index) {
            *operand = AnyAsyncValue::new::<Tensor>(tensor.into());
        }
    }
}
