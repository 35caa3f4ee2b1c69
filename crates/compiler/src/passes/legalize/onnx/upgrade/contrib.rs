//! Operators of ONNX Runtime's domain `com.microsoft` as operations that there are kernels for.
//!
//! Exporters, and the tools of ONNX Runtime that quantise and optimise, write them; ONNX Runtime's `ContribOperators.md`
//! defines them. [`OPERATORS`] has a line for each that becomes others, which files of `contrib/` make, a family each.
//! One that has a row of its own (`onnx.microsoft.MatMulNBits`) stays; nothing runs any other.

use tfrt_ir::types::FloatKind;
use tfrt_ir::{Attribute, Diagnostics, Module, OpId, Type, ValueId};

use super::expansion::{self, Expansion};
use crate::codes;
use crate::legalize::Context;
use crate::passes::graph::{infer, node};
use crate::passes::scope;

mod attention;
mod blocks;
mod cache;
mod embedding;
mod experts;
mod norms;
mod pointwise;
mod products;
mod quantized;
mod tensors;
mod windows;

const DOMAIN: &str = "onnx.microsoft.";
/// The number of the type `f32` in the format.
const F32: i64 = 1;
/// Operators that are bound to the machine whose ONNX Runtime wrote them.
const BLOCKED: &str = "onnx.ext.com.microsoft.nchwc.";

/// A value for each result, nothing for one that can't be asked for.
type Made = Result<Vec<Option<ValueId>>, Refusal>;

/// Why nothing stands for an operator.
enum Refusal {
    /// Its form depends on what is not known of an operand.
    Unknown(String),
    /// It is wrong.
    Wrong(String),
}

/// Returns the refusal of an operator that is wrong.
fn wrong(message: impl Into<String>) -> Refusal {
    Refusal::Wrong(message.into())
}

/// Puts operations in the place of an operator.
type Make = fn(&mut Expansion<'_>) -> Made;

/// Operators by name, sorted, with what makes others of them.
const OPERATORS: &[(&str, Make)] = &[
    ("Attention", attention::attention),
    ("BiasGelu", pointwise::bias_gelu),
    ("CausalConvWithState", tensors::causal_conv),
    ("DequantizeLinear", quantized::dequantize),
    ("DynamicQuantizeMatMul", quantized::dynamic),
    ("EmbedLayerNormalization", embedding::embed_layer_norm),
    ("ExpandDims", tensors::expand_dims),
    ("FastGelu", pointwise::fast_gelu),
    ("FusedConv", products::conv),
    ("FusedGemm", products::gemm),
    ("FusedMatMul", products::mat_mul),
    ("GatherBlockQuantized", blocks::gather),
    ("GatherND", tensors::gather_nd),
    ("Gelu", pointwise::gelu),
    ("GridSample", tensors::grid_sample),
    ("GroupQueryAttention", cache::group_query),
    ("Irfft", tensors::irfft),
    ("LinearAttention", tensors::linear_attention),
    ("MatMulIntegerToFloat", quantized::to_float),
    ("MoE", experts::mixture),
    ("MultiHeadAttention", attention::multi_head),
    ("NhwcMaxPool", windows::max_pool),
    ("Pad", tensors::pad),
    ("QAttention", attention::quantized),
    ("QEmbedLayerNormalization", embedding::quantized),
    ("QGemm", quantized::gemm),
    ("QLinearAdd", quantized::add),
    ("QLinearAveragePool", windows::average_pool),
    ("QLinearConcat", quantized::concat),
    ("QLinearConv", windows::conv),
    ("QLinearGlobalAveragePool", windows::global_average_pool),
    ("QLinearLeakyRelu", quantized::leaky_relu),
    ("QLinearMul", quantized::mul),
    ("QLinearReduceMean", quantized::reduce_mean),
    ("QLinearSigmoid", quantized::sigmoid),
    ("QLinearSoftmax", quantized::softmax),
    ("QLinearWhere", quantized::select),
    ("QuantizeLinear", quantized::quantize),
    ("QuickGelu", pointwise::quick_gelu),
    ("Range", tensors::range),
    ("Rfft", tensors::rfft),
    ("RotaryEmbedding", embedding::rotary),
    ("SimplifiedLayerNormalization", norms::simplified),
    ("SkipLayerNormalization", norms::skip),
    ("SkipSimplifiedLayerNormalization", norms::skip_simplified),
    ("TransposeMatMul", products::mat_mul),
    ("Trilu", tensors::trilu),
];

/// Operators among them that are written in the default domain, too.
const IN_BOTH: [&str; 2] = [
    "SimplifiedLayerNormalization",
    "SkipSimplifiedLayerNormalization",
];

/// Expands the operators of a module, but for those whose form depends on a rank that is not known; what is wrong with one is
/// an error.
pub(super) fn run(module: &mut Module, diagnostics: &mut Diagnostics) {
    expand(module, false, diagnostics);
}

/// Expands what [`run`] left, by the ranks that follow from what the others have become.
pub(super) fn finish(module: &mut Module, context: &Context<'_>, diagnostics: &mut Diagnostics) {
    let is_left = |module: &Module| {
        let mut blocks = scope::blocks(module).into_iter();
        blocks.any(|block| {
            let mut operations = module.block(block).operations().iter();
            operations.any(|op| find(module.op(*op).name()).is_some())
        })
    };
    while is_left(module) && !diagnostics.has_errors() {
        // What it has to say is said when all operations are those of graphs.
        infer::run(module, context, &mut Diagnostics::default());
        if expand(module, false, diagnostics) == 0 {
            expand(module, true, diagnostics);
            return;
        }
    }
}

/// Expands operators; returns how many. One whose form is not known is an error if there is nothing more to come.
fn expand(module: &mut Module, is_last: bool, diagnostics: &mut Diagnostics) -> usize {
    let make = |here: &mut Expansion<'_>| {
        let name = here.module.op(here.like).name().clone();
        if let Some(name) = name.strip_prefix(BLOCKED) {
            return Some(Err(format!(
                "'com.microsoft.nchwc.{name}' is laid out for one machine by ONNX Runtime's optimisation level 'all'; \
                 save the model at level 'extended' or 'basic'"
            )));
        }
        match made(here, find(&name)?) {
            Ok(values) => Some(Ok(values)),
            Err(Refusal::Unknown(_)) if !is_last => None,
            Err(Refusal::Unknown(message) | Refusal::Wrong(message)) => Some(Err(message)),
        }
    };
    let is_one = |module: &Module, op: OpId| {
        let name = module.op(op).name();
        find(name).is_some() || name.starts_with(BLOCKED)
    };
    expansion::try_expand(module, is_one, make, &mut |module, op, message| {
        diagnostics.push(module.op_error(codes::GRAPH, op, message));
    })
}

/// Makes the operations, and a value for each result that is used.
fn made(here: &mut Expansion<'_>, make: Make) -> Made {
    let mut values = make(here)?;
    let results = here.module.op(here.like).results();
    values.resize(results.len(), None);
    let mut both = results.iter().zip(&values);
    match both.position(|(old, new)| new.is_none() && !here.module.is_unused(*old)) {
        Some(index) => Err(wrong(format!("result {index} can't be asked for"))),
        None => Ok(values),
    }
}

fn find(name: &str) -> Option<Make> {
    let own = match name.strip_prefix(DOMAIN) {
        Some(own) => own,
        None => name
            .strip_prefix("onnx.")
            .filter(|own| IN_BOTH.contains(own))?,
    };
    let index = OPERATORS
        .binary_search_by_key(&own, |(name, _)| name)
        .ok()?;
    Some(OPERATORS[index].1)
}

/// Reading the operator, and small operations that several families use.
impl Expansion<'_> {
    /// Returns an operand, if the model does not leave it out.
    fn input(&self, index: usize) -> Option<ValueId> {
        node::operand(self.module, self.like, index)
    }

    /// Returns an operand that is to be there.
    fn needed(&self, index: usize, name: &str) -> Result<ValueId, Refusal> {
        self.input(index)
            .ok_or_else(|| wrong(format!("lacks input {index}, '{name}'")))
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        node::int(self.module, self.like, name, default)
    }

    fn float(&self, name: &str, default: f64) -> f64 {
        node::float(self.module, self.like, name, default)
    }

    fn has(&self, name: &str) -> bool {
        self.module.op(self.like).attribute(name).is_some()
    }

    fn text(&self, name: &str) -> String {
        node::text(self.module, self.like, name).to_owned()
    }

    /// Returns a list of floats, empty if the model leaves it out.
    fn numbers(&self, name: &str) -> Vec<f64> {
        let list = self.module.op(self.like).attribute(name);
        let list = list.and_then(Attribute::as_array).unwrap_or_default();
        let number = |value: &Attribute| match value {
            Attribute::Float(float) => Some(float.value()),
            _ => None,
        };
        list.iter().filter_map(number).collect()
    }

    /// Returns those of some attributes that the model states.
    fn stated(&self, names: &[&'static str]) -> Vec<(&'static str, Attribute)> {
        let data = self.module.op(self.like);
        let stated = names.iter().map(|name| (*name, data.attribute(name)));
        stated
            .filter_map(|(name, value)| Some((name, value?.clone())))
            .collect()
    }

    /// Refuses an operand that nothing is done with, and an attribute that is set.
    fn refuse(&self, inputs: &[(usize, &str)], flags: &[&str]) -> Result<(), Refusal> {
        for (index, name) in inputs {
            if self.input(*index).is_some() {
                return Err(wrong(format!("input {index}, '{name}', is not supported")));
            }
        }
        for name in flags {
            if self.int(name, 0) != 0 {
                return Err(wrong(format!("attribute '{name}' is expected to be 0")));
            }
        }
        Ok(())
    }

    /// Returns whether a result is used.
    fn wants(&self, result: usize) -> bool {
        let results = self.module.op(self.like).results();
        results
            .get(result)
            .is_some_and(|it| !self.module.is_unused(*it))
    }

    /// Returns how many dimensions a value has, on which the form of the operator depends.
    fn known_rank(&self, value: ValueId, name: &str) -> Result<usize, Refusal> {
        self.rank(value).ok_or_else(|| {
            let found = self.shown(value);
            Refusal::Unknown(format!(
                "expected '{name}' to be of known rank, found {found}"
            ))
        })
    }

    /// Returns how many dimensions a value has, if that is known.
    fn rank(&self, value: ValueId) -> Option<usize> {
        node::shape(self.module, value).map(|shape| shape.len())
    }

    /// Returns the last extent of a value, if it is known.
    fn last_extent(&self, value: ValueId) -> Option<i64> {
        let shape = node::shape(self.module, value)?;
        shape.last().copied().filter(|extent| *extent >= 0)
    }

    /// Describes what is known of a value, for messages.
    fn shown(&self, value: ValueId) -> String {
        self.module.value_type(value).to_string()
    }

    /// Appends a number of the type of another value's elements.
    fn number(&mut self, number: f64, like: ValueId) -> ValueId {
        #[expect(clippy::cast_possible_truncation, reason = "attributes are of 32 bits")]
        let value = self.floats(Vec::new(), &[number as f32]);
        self.like_f32(value, like)
    }

    /// Appends a value of `f32` in the type of another's elements.
    fn like_f32(&mut self, value: ValueId, like: ValueId) -> ValueId {
        match node::is_f32(self.module, like) {
            true => value,
            false => self.add("CastLike", &[value, like], &[]),
        }
    }

    /// Appends a value in `f32` if its elements are known to be halves: what several steps make of it is rounded once then.
    fn wide(&mut self, value: ValueId) -> ValueId {
        match self.is_half(value) {
            true => self.add("Cast", &[value], &[("to", expansion::integer(F32))]),
            false => value,
        }
    }

    /// Appends a value in the type of another's elements if those are halves, and it was made of them by [`Self::wide`].
    fn narrow(&mut self, value: ValueId, like: ValueId) -> ValueId {
        match self.is_half(like) {
            true => self.add("CastLike", &[value, like], &[]),
            false => value,
        }
    }

    fn is_half(&self, value: ValueId) -> bool {
        let element = node::element(self.module.value_type(value));
        matches!(element, Some(Type::Float(FloatKind::F16 | FloatKind::BF16)))
    }

    /// Appends the sum of values, those that are left out aside.
    fn sum(&mut self, first: ValueId, others: &[Option<ValueId>]) -> ValueId {
        others
            .iter()
            .flatten()
            .fold(first, |sum, other| self.add("Add", &[sum, *other], &[]))
    }

    /// Appends an operation of the dialect `graph`.
    fn row(
        &mut self,
        row: &str,
        operands: &[ValueId],
        attributes: &[(&'static str, Attribute)],
    ) -> ValueId {
        self.rows(row, operands, attributes, 1)[0]
    }

    /// Appends a value with other extents: 0 stands for what it has there, -1 for what is left.
    fn reshaped(&mut self, value: ValueId, extents: &[i64]) -> ValueId {
        let extents = self.integers(extents);
        self.add("Reshape", &[value, extents], &[])
    }

    /// Appends a value with dimensions of 1 put in.
    fn unsqueezed(&mut self, value: ValueId, axes: &[i64]) -> ValueId {
        let axes = self.integers(axes);
        self.add("Unsqueeze", &[value, axes], &[])
    }

    /// Appends one element of a value along an axis, without that dimension.
    fn picked(&mut self, value: ValueId, axis: i64, index: i64) -> ValueId {
        let state = super::integers(Vec::new(), &[index]);
        let index = self.constant(state);
        self.add(
            "Gather",
            &[value, index],
            &[("axis", expansion::integer(axis))],
        )
    }

    /// Appends part of a value along an axis.
    fn sliced(&mut self, value: ValueId, axis: i64, start: ValueId, end: ValueId) -> ValueId {
        let axis = self.integers(&[axis]);
        self.add("Slice", &[value, start, end, axis], &[])
    }
}

#[cfg(test)]
mod tests;
