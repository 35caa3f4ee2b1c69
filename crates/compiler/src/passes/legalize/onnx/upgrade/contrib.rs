//! Operators of ONNX Runtime's domain `com.microsoft` as operations that there are kernels for.
//!
//! Exporters, and the tools of ONNX Runtime that quantise and optimise, write them; ONNX Runtime's `ContribOperators.md`
//! defines them. [`OPERATORS`] has a line for each that becomes others, which files of `contrib/` make, a family each.
//! One that has a row of its own (`onnx.microsoft.MatMulNBits`) stays; nothing runs any other.

use tfrt_ir::types::FloatKind;
use tfrt_ir::{Attribute, Diagnostics, Module, OpId, Type, ValueId};

use super::expansion::{self, Expansion};
use crate::codes;
use crate::passes::graph::node;

mod attention;
mod cache;
mod embedding;
mod norms;
mod pointwise;
mod products;
mod quantized;

const DOMAIN: &str = "onnx.microsoft.";
/// The number of the type `f32` in the format.
const F32: i64 = 1;
/// Operators that are bound to the machine whose ONNX Runtime wrote them.
const BLOCKED: &str = "onnx.ext.com.microsoft.nchwc.";

/// A value for each result, nothing for one that can't be asked for.
type Made = Result<Vec<Option<ValueId>>, String>;

/// Puts operations in the place of an operator.
type Make = fn(&mut Expansion<'_>) -> Made;

/// Operators by name, sorted, with what makes others of them.
const OPERATORS: &[(&str, Make)] = &[
    ("Attention", attention::attention),
    ("BiasGelu", pointwise::bias_gelu),
    ("DequantizeLinear", quantized::dequantize),
    ("DynamicQuantizeMatMul", quantized::dynamic),
    ("EmbedLayerNormalization", embedding::embed_layer_norm),
    ("FastGelu", pointwise::fast_gelu),
    ("FusedConv", products::conv),
    ("FusedGemm", products::gemm),
    ("FusedMatMul", products::mat_mul),
    ("Gelu", pointwise::gelu),
    ("GroupQueryAttention", cache::group_query),
    ("MatMulIntegerToFloat", quantized::to_float),
    ("MultiHeadAttention", attention::multi_head),
    ("QAttention", attention::quantized),
    ("QEmbedLayerNormalization", embedding::quantized),
    ("QGemm", quantized::gemm),
    ("QLinearAdd", quantized::add),
    ("QLinearAveragePool", quantized::average_pool),
    ("QLinearConcat", quantized::concat),
    ("QLinearGlobalAveragePool", quantized::global_average_pool),
    ("QLinearLeakyRelu", quantized::leaky_relu),
    ("QLinearMul", quantized::mul),
    ("QLinearReduceMean", quantized::reduce_mean),
    ("QLinearSigmoid", quantized::sigmoid),
    ("QLinearSoftmax", quantized::softmax),
    ("QLinearWhere", quantized::select),
    ("QuantizeLinear", quantized::quantize),
    ("QuickGelu", pointwise::quick_gelu),
    ("RotaryEmbedding", embedding::rotary),
    ("SimplifiedLayerNormalization", norms::simplified),
    ("SkipLayerNormalization", norms::skip),
    ("SkipSimplifiedLayerNormalization", norms::skip_simplified),
    ("TransposeMatMul", products::mat_mul),
];

/// Operators among them that are written in the default domain, too.
const IN_BOTH: [&str; 2] = [
    "SimplifiedLayerNormalization",
    "SkipSimplifiedLayerNormalization",
];

/// Expands all operators of a module; what is wrong with one is an error.
pub(super) fn run(module: &mut Module, diagnostics: &mut Diagnostics) {
    let make = |here: &mut Expansion<'_>| {
        let name = here.module.op(here.like).name().clone();
        if let Some(name) = name.strip_prefix(BLOCKED) {
            return Some(Err(format!(
                "'com.microsoft.nchwc.{name}' is laid out for one machine by ONNX Runtime's optimisation level 'all'; \
                 save the model at level 'extended' or 'basic'"
            )));
        }
        let mut made = find(&name)?(here);
        if let Ok(values) = &mut made {
            let results = here.module.op(here.like).results();
            values.resize(results.len(), None);
            let mut lacking = results.iter().zip(&*values);
            let lacking =
                lacking.position(|(old, new)| new.is_none() && !here.module.is_unused(*old));
            if let Some(index) = lacking {
                return Some(Err(format!("result {index} can't be asked for")));
            }
        }
        Some(made)
    };
    let is_one = |module: &Module, op: OpId| {
        let name = module.op(op).name();
        find(name).is_some() || name.starts_with(BLOCKED)
    };
    expansion::try_expand(module, is_one, make, &mut |module, op, message| {
        diagnostics.push(module.op_error(codes::GRAPH, op, message));
    });
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
    fn needed(&self, index: usize, name: &str) -> Result<ValueId, String> {
        self.input(index)
            .ok_or_else(|| format!("lacks input {index}, '{name}'"))
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        node::int(self.module, self.like, name, default)
    }

    fn float(&self, name: &str, default: f64) -> f64 {
        node::float(self.module, self.like, name, default)
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
    fn refuse(&self, inputs: &[(usize, &str)], flags: &[&str]) -> Result<(), String> {
        for (index, name) in inputs {
            if self.input(*index).is_some() {
                return Err(format!("input {index}, '{name}', is not supported"));
            }
        }
        for name in flags {
            if self.int(name, 0) != 0 {
                return Err(format!("attribute '{name}' is expected to be 0"));
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
