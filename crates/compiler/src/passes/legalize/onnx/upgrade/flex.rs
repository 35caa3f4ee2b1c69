//! Expands `FlexAttention` with graphs for its scores and probabilities to the operations that define it.
//!
//! What the graphs do becomes a part of the graph around, so that it is optimised like the rest, and no kernel has
//! to call a function. One without graphs stays as it is: there is a kernel for it.

use tfrt_ir::{BlockId, Module, OpId, Type, ValueId};

use tfrt_ops::names;

use super::expansion::{Expansion, integer};
use crate::passes::graph::{attrs, node};
use crate::passes::scope;

const FLEX: &str = "onnx.preview.FlexAttention";
/// The number of the type `f32` in the format.
const F32: i64 = 1;

/// Returns whether an operation is a `FlexAttention` with graphs.
pub(super) fn is_one(module: &Module, op: OpId) -> bool {
    let data = module.op(op);
    *data.name() == FLEX && !data.regions().is_empty()
}

/// Makes the operations; `None` if the graphs do not have the required form, which lowering reports.
pub(super) fn make(here: &mut Expansion<'_>) -> Option<Vec<ValueId>> {
    let flex = Flex::of(here.module, here.like)?;
    Some(vec![flex.make(here)])
}

/// A `FlexAttention` that can be expanded.
struct Flex {
    /// Queries, keys, values: `[batch, heads, length, width]`.
    inputs: [ValueId; 3],
    /// The graphs, by the names of their attributes.
    graphs: Vec<(String, BlockId)>,
    /// The type of the elements.
    element: Type,
    /// The type of scores and probabilities, as the format numbers it.
    precision: i64,
    /// The factor of the scores; `None` is one over the root of the width.
    scale: Option<f64>,
}

impl Flex {
    fn of(module: &Module, op: OpId) -> Option<Flex> {
        let data = module.op(op);
        if data.results().len() != 1 {
            return None;
        }
        let inputs: [ValueId; 3] = data.operands().try_into().ok()?;
        let names = data.attribute("onnx.regions")?.as_array()?.iter();
        let names = names.map(|name| name.as_str().map(str::to_owned));
        let names: Vec<String> = names.collect::<Option<_>>()?;
        let blocks = scope::region_blocks(module, op);
        let fits = |block: &BlockId| {
            let last = module.block(*block).last();
            let n_given = last.map_or(0, |last| module.op(last).operands().len());
            module.block(*block).arguments().len() == 1 && n_given == 1
        };
        let is_whole = names.len() == blocks.len() && data.regions().len() == blocks.len();
        if !is_whole || !blocks.iter().all(fits) {
            return None;
        }
        let element = node::element(module.value_type(inputs[0]))?;
        let default = if element == Type::F64 { 11 } else { F32 };
        let scale = data.attribute("scale");
        Some(Flex {
            inputs,
            graphs: names.into_iter().zip(blocks).collect(),
            element,
            precision: node::int(module, op, "softmax_precision", default),
            scale: scale.map(|_| node::float(module, op, "scale", 1.0)),
        })
    }

    /// Makes the softmax of the scaled product of queries and keys, times values; each group of heads of the queries
    /// shares keys and values.
    fn make(&self, here: &mut Expansion<'_>) -> ValueId {
        let [q, k, v] = self.inputs;
        let is_wide = names::onnx::dtype(self.precision)
            .and_then(attrs::element)
            .as_ref()
            != Some(&self.element);
        let is_equal = here.extent(q, 1).is_some() && here.extent(q, 1) == here.extent(k, 1);
        let scale = self.scale(here);
        let scaled = here.add("Mul", &[q, scale], &[]);
        let mut scores = match is_equal {
            true => {
                let turned = here.transposed(k, &[0, 1, 3, 2]);
                here.add("MatMul", &[scaled, turned], &[])
            }
            false => self.grouped_scores(here, scaled),
        };
        let to = [("to", integer(self.precision))];
        if is_wide {
            scores = here.add("Cast", &[scores], &to);
        }
        scores = self.changed(here, "score_mod", scores);
        let axis = [("axis", integer(-1))];
        let probabilities = here.add("Softmax", &[scores], &axis);
        let probabilities = self.changed(here, "prob_mod", probabilities);
        let mut values = v;
        if is_wide {
            values = here.add("Cast", &[values], &to);
        }
        let mut result = match is_equal {
            true => here.add("MatMul", &[probabilities, values], &[]),
            false => self.grouped_result(here, probabilities, values),
        };
        if is_wide {
            result = here.add("CastLike", &[result, q], &[]);
        }
        result
    }

    /// Makes the factor of the scores, of the type of the queries.
    fn scale(&self, here: &mut Expansion<'_>) -> ValueId {
        let q = self.inputs[0];
        let width = here.extent(q, 3);
        let width = width.and_then(|width| u32::try_from(width).ok());
        let of_width = || width.map(|width| 1.0 / f64::from(width).sqrt());
        #[expect(clippy::cast_possible_truncation, reason = "it is one of 32 bits")]
        let scale = match self.scale.or_else(of_width) {
            Some(scale) => here.floats(Vec::new(), &[scale as f32]),
            None => {
                let width = here.extents(q, 3, 4);
                let width = here.add("Cast", &[width], &[("to", integer(F32))]);
                let root = here.add("Sqrt", &[width], &[]);
                here.add("Reciprocal", &[root], &[])
            }
        };
        match self.element == Type::F32 {
            true => scale,
            false => here.add("CastLike", &[scale, q], &[]),
        }
    }

    /// Returns the shape `[batch, heads of keys, heads of queries for each, rest..]`.
    fn groups(&self, here: &mut Expansion<'_>, rest: &[ValueId]) -> ValueId {
        let [q, k, _] = self.inputs;
        let (batch, all, heads) = (
            here.extents(q, 0, 1),
            here.extents(q, 1, 2),
            here.extents(k, 1, 2),
        );
        let each = here.add("Div", &[all, heads], &[]);
        here.list(&[&[batch, heads, each], rest].concat())
    }

    fn grouped_scores(&self, here: &mut Expansion<'_>, scaled: ValueId) -> ValueId {
        let [q, k, _] = self.inputs;
        let rest = here.extents(q, 2, 4);
        let shape = self.groups(here, &[rest]);
        let apart = here.add("Reshape", &[scaled, shape], &[]);
        let place = here.integers(&[2]);
        let keys = here.add("Unsqueeze", &[k, place], &[]);
        let turned = here.transposed(keys, &[0, 1, 2, 4, 3]);
        let product = here.add("MatMul", &[apart, turned], &[]);
        let (outer, n_keys) = (here.extents(q, 0, 3), here.extents(k, 2, 3));
        let shape = here.list(&[outer, n_keys]);
        here.add("Reshape", &[product, shape], &[])
    }

    fn grouped_result(
        &self,
        here: &mut Expansion<'_>,
        probabilities: ValueId,
        values: ValueId,
    ) -> ValueId {
        let [q, k, v] = self.inputs;
        let (length, n_keys) = (here.extents(q, 2, 3), here.extents(k, 2, 3));
        let shape = self.groups(here, &[length, n_keys]);
        let apart = here.add("Reshape", &[probabilities, shape], &[]);
        let place = here.integers(&[2]);
        let values = here.add("Unsqueeze", &[values, place], &[]);
        let product = here.add("MatMul", &[apart, values], &[]);
        let (outer, width) = (here.extents(q, 0, 3), here.extents(v, 3, 4));
        let shape = here.list(&[outer, width]);
        here.add("Reshape", &[product, shape], &[])
    }

    /// Applies a graph to a value, if the graph is there.
    fn changed(&self, here: &mut Expansion<'_>, name: &str, value: ValueId) -> ValueId {
        let mut found = self.graphs.iter().filter(|(known, _)| known == name);
        match found.next() {
            Some((_, graph)) => here.inline(*graph, value),
            None => value,
        }
    }
}
