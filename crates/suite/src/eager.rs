//! Cases of one operation as eager calls of its row: `tfrt-suite FOLDER --eager`.
//!
//! A case that is more than one row, or whose row takes what is left out before its last operand, is no eager call.

use tfrt::corert::{AttrValue, CoreRuntime, IntoAttr, OpAttrs, TensorHandle};
use tfrt::ir::attributes::{DenseAttribute, DenseElements};
use tfrt::ir::{Attribute, BlockId, Module, OpId, Type};
use tfrt::model::Datum;
use tfrt::tensor::{DType, DenseHostTensor, Tensor, TensorMetadata, TensorShape};
use tfrt::{Error, Runtime};

/// The message for cases that can't be an eager call.
pub const NO_ROW: &str = "it is no eager call of one row";

/// An eager call.
pub struct Call {
    name: String,
    attrs: OpAttrs,
    inputs: Vec<Input>,
}

/// An input of a call.
enum Input {
    /// An input of the case.
    Argument(usize),
    Constant(Tensor),
}

impl Call {
    /// Returns the call that a module is, if it is one.
    pub fn of(runtime: &Runtime, module: &Module) -> Option<Call> {
        let (_, block) = crate::shapes::main(module)?;
        let op = only(module, block)?;
        let data = module.op(op);
        let name = data
            .name()
            .strip_prefix("graph.")
            .unwrap_or(data.name())
            .to_owned();
        let arguments = module.block(block).arguments();
        let mut inputs = Vec::new();
        for value in data.operands() {
            if let Some(index) = arguments.iter().position(|argument| argument == value) {
                inputs.push(Input::Argument(index));
                continue;
            }
            let maker = module.defining_op(*value)?;
            match module.op(maker).attribute("value") {
                Some(Attribute::Dense(dense)) => {
                    inputs.push(Input::Constant(constant(runtime, dense)?))
                }
                _ => return None,
            }
        }
        let last = module.block(block).last()?;
        let is_whole = module.op(last).operands() == data.results();
        let mut attrs = OpAttrs::new();
        for (name, value) in data.attributes() {
            if !name.starts_with("onnx.") {
                attrs.set_named(name, attribute(value)?).ok()?;
            }
        }
        let row = tfrt::ops::find(&name);
        let has_many = |row: &tfrt::ops::OpDef| {
            let mut results = row.results.iter();
            results.any(|result| matches!(result.arity, tfrt::ops::Arity::Rest(_)))
        };
        if row.is_some_and(has_many) {
            let n = i64::try_from(data.results().len()).ok()?;
            attrs.set_named("n", n.into_attr()).ok()?;
        }
        is_whole.then_some(Call {
            name,
            attrs,
            inputs,
        })
    }

    /// Makes the call, and waits for its results.
    pub fn run(&self, runtime: &Runtime, arguments: &[Datum]) -> Result<Vec<Datum>, Error> {
        let core = CoreRuntime::new(runtime.host());
        let mut handles = Vec::new();
        for input in &self.inputs {
            let tensor = match input {
                Input::Constant(tensor) => tensor,
                Input::Argument(index) => match arguments.get(*index) {
                    Some(Datum::Tensor(tensor)) => tensor,
                    _ => return Err(Error::invalid_argument(NO_ROW)),
                },
            };
            handles.push(core.handle(tensor.clone()));
        }
        let op = core.op(&self.name, &core.cpu())?;
        let context = core.context();
        let inputs: Vec<&TensorHandle> = handles.iter().collect();
        let results = op.call(&context, &inputs[..], &self.attrs)?;
        let mut found = Vec::new();
        for result in results {
            let value = result.to_async();
            let refused = runtime
                .host()
                .queue()
                .await_all(&[value.clone().into_any()]);
            refused.map_err(|refused| Error::failed_precondition(refused.to_string()))?;
            match value.get() {
                Some(Ok(tensor)) => found.push(Datum::Tensor(tensor.clone())),
                Some(Err(error)) => return Err(error.clone()),
                None => return Err(Error::internal("it is not there after the wait")),
            }
        }
        Ok(found)
    }
}

/// Returns the only operation of a block, but for constants and its end.
fn only(module: &Module, block: BlockId) -> Option<OpId> {
    let operations = module.block(block).operations();
    let (_, operations) = operations.split_last()?;
    let mut others = operations
        .iter()
        .filter(|op| *module.op(**op).name() != "onnx.Constant");
    let only = *others.next()?;
    let name = module.op(only).name();
    let is_row = (name.starts_with("graph.") && *name != "graph.none") || name.starts_with("onnx.");
    (is_row && others.next().is_none() && module.op(only).regions().is_empty()).then_some(only)
}

fn constant(runtime: &Runtime, dense: &DenseAttribute) -> Option<Tensor> {
    let DenseElements::Bytes(bytes) = &dense.elements else {
        return None;
    };
    let dtype = dtype(dense.element_type())?;
    let shape = TensorShape::from_i64(&dense.shape()).ok()?;
    let n = usize::try_from(dense.n_elements()?).ok()?;
    let bytes = if dense.splat {
        bytes.repeat(n)
    } else {
        bytes.to_vec()
    };
    let metadata = TensorMetadata::new(dtype, shape);
    let made = DenseHostTensor::from_bytes(runtime.host().allocator(), metadata, &bytes);
    made.ok().map(Tensor::from)
}

fn dtype(ty: &Type) -> Option<DType> {
    DType::ALL
        .into_iter()
        .find(|dtype| dtype.mlir_name() == ty.to_string())
}

fn attribute(value: &Attribute) -> Option<AttrValue> {
    Some(match value {
        Attribute::Integer(_) => value.as_i64()?.into_attr(),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "attributes of models are of this type"
        )]
        Attribute::Float(float) => (float.value() as f32).into_attr(),
        Attribute::String(text) => text.as_str()?.into_attr(),
        Attribute::Type(ty) => dtype(ty)?.into_attr(),
        Attribute::Array(list) => {
            let integers: Option<Vec<i64>> = list.iter().map(Attribute::as_i64).collect();
            let float = |one: &Attribute| match one {
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "attributes of models are of this type"
                )]
                Attribute::Float(float) => Some(float.value() as f32),
                _ => None,
            };
            let floats: Option<Vec<f32>> = list.iter().map(float).collect();
            let texts: Option<Vec<AttrValue>> = list
                .iter()
                .map(|one| Some(one.as_str()?.into_attr()))
                .collect();
            match (integers, floats, texts) {
                (Some(list), ..) => (&list[..]).into_attr(),
                (_, Some(list), _) => (&list[..]).into_attr(),
                (_, _, Some(list)) => AttrValue::Aggregate(list.into()),
                _ => return None,
            }
        }
        _ => return None,
    })
}
