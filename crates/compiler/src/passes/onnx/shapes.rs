//! `onnx-shapes`: types and shapes of all values of a graph, with symbolic dimensions.
//!
//! Each value gets the most precise type that follows from the inputs' types; what a model states itself
//! is believed where nothing follows. Dimensions are polynomials of the symbols that inputs have
//! ([`Extent`]); those that are not plain numbers stand in the attribute `onnx.shapes` of the operation
//! that makes the value. Integers that are shapes themselves (`Shape`, and what `Gather`, `Concat`, `Mul`
//! and the like make of it) are followed element by element, so that a `Reshape` that exporters write
//! comes out as what it does.
//!
//! Nothing is assumed that could be wrong for an input that a call may have: a rule that does not know
//! gives nothing. Operations in regions are looked at, too, with what is known outside.

mod extent;
mod rules;
mod spatial;
mod values;

use std::collections::HashMap;

use tfrt_ir::{Attribute, BlockId, Diagnostics, Module, OpId, Type, ValueId, types::TensorType};

pub(crate) use extent::Extent;

use super::{graphs, node, scope};
use crate::pipeline::{Pass, Run};

pub(crate) const PASS: Pass = Pass {
    name: "onnx-shapes",
    summary: "Finds types and shapes of a graph's values, with symbolic dimensions",
    needs: &[],
    gives: &[],
    breaks: &[],
    run: Run::Alone(run),
};

/// The attribute of operations whose results have symbolic dimensions.
const SHAPES: &str = "onnx.shapes";

pub(super) fn run(module: &mut Module, _: &mut Diagnostics) {
    for (function, block) in graphs(module) {
        let mut inference = Inference {
            known: HashMap::new(),
        };
        inference.inputs(module, function, block);
        inference.block(module, block);
        let mut signature = module.op(function).attribute("function_type").cloned();
        if let Some(Attribute::Type(Type::Function(ty))) = &mut signature {
            let last = module
                .block(block)
                .last()
                .map(|op| module.op(op).operands());
            let returned = last.unwrap_or_default().iter();
            let results: Vec<Type> = returned
                .map(|value| module.value_type(*value).clone())
                .collect();
            if results.len() == ty.results.len() {
                let changed = Type::function(ty.inputs.clone(), results);
                module.set_attribute(function, "function_type", Attribute::Type(changed));
            }
        }
    }
}

/// Extents of a tensor, each if it is known.
pub(super) type Shape = Vec<Option<Extent>>;

/// What is known of a value that is a tensor.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) element: Option<Type>,
    pub(super) shape: Option<Shape>,
    /// The elements, of small tensors of integers, in row-major order.
    pub(super) values: Option<Shape>,
}

impl Known {
    fn of_type(ty: &Type) -> Known {
        let of_size = |size: i64| (size >= 0).then(|| Extent::known(size));
        Known {
            element: node::element(ty),
            shape: ty
                .as_shaped()
                .map(|(shape, _)| shape.into_iter().map(of_size).collect()),
            values: None,
        }
    }

    /// Adds what another source knows.
    fn or(mut self, other: Known) -> Known {
        self.element = self.element.or(other.element);
        self.shape = match (self.shape, other.shape) {
            (Some(own), Some(stated)) if own.len() == stated.len() => {
                let pairs = own.into_iter().zip(stated);
                let better = |(own, stated): (Option<Extent>, Option<Extent>)| match &own {
                    Some(extent) if extent.value().is_some() => own,
                    _ => stated.or(own),
                };
                Some(pairs.map(better).collect())
            }
            (own, stated) => own.or(stated),
        };
        self
    }

    fn ty(&self, old: &Type) -> Option<Type> {
        let element = self.element.clone().or_else(|| match old {
            Type::Tensor(tensor) => Some(tensor.element.clone()),
            _ => None,
        })?;
        let size = |extent: &Option<Extent>| match extent.as_ref().and_then(Extent::value) {
            Some(size) if size >= 0 => size,
            _ => tfrt_ir::types::DYNAMIC,
        };
        let shape = self.shape.as_ref();
        Some(Type::Tensor(std::sync::Arc::new(TensorType {
            shape: shape.map(|shape| shape.iter().map(size).collect()),
            element,
            encoding: None,
        })))
    }
}

pub(super) struct Inference {
    known: HashMap<ValueId, Known>,
}

impl Inference {
    fn inputs(&mut self, module: &Module, function: OpId, block: BlockId) {
        let dimensions = module.op(function).attribute("onnx.input_dims");
        let dimensions = dimensions.and_then(Attribute::as_array).unwrap_or(&[]);
        for (position, &argument) in module.block(block).arguments().iter().enumerate() {
            let mut known = Known::of_type(module.value_type(argument));
            let stated = dimensions.get(position).and_then(Attribute::as_array);
            if let (Some(shape), Some(stated)) = (&mut known.shape, stated) {
                for (extent, name) in shape.iter_mut().zip(stated) {
                    if let (None, Some(name)) = (&extent, name.as_str())
                        && !name.is_empty()
                    {
                        *extent = Some(Extent::symbol(name));
                    }
                }
            }
            self.known.insert(argument, known);
        }
    }

    pub(super) fn of(&self, module: &Module, value: ValueId) -> Known {
        match self.known.get(&value) {
            Some(known) => known.clone(),
            None => Known::of_type(module.value_type(value)),
        }
    }

    /// Recursion is bounded by the limit of the text, or the importer, on nesting.
    fn block(&mut self, module: &mut Module, block: BlockId) {
        for op in module.block(block).operations().to_vec() {
            for inner in scope::region_blocks(module, op) {
                self.block(module, inner);
            }
            let found = rules::results(module, self, op);
            let results = module.op(op).results().to_vec();
            let mut symbolic = Vec::new();
            for (position, result) in results.into_iter().enumerate() {
                let old = module.value_type(result).clone();
                if !matches!(old, Type::Tensor(_)) {
                    symbolic.push(Attribute::Unit);
                    continue;
                }
                let found = found.get(position).cloned().unwrap_or_default();
                let values = found.values.clone();
                let mut known = found.or(Known::of_type(&old));
                known.values = values;
                if let Some(ty) = known.ty(&old) {
                    module.set_value_type(result, ty);
                }
                symbolic.push(written(known.shape.as_ref()));
                self.known.insert(result, known);
            }
            match symbolic.iter().all(|shape| *shape == Attribute::Unit) {
                true => drop(module.remove_attribute(op, SHAPES)),
                false => module.set_attribute(op, SHAPES, Attribute::array(symbolic)),
            }
        }
    }
}

/// Returns a shape as an attribute, nothing if its type says all of it.
fn written(shape: Option<&Shape>) -> Attribute {
    let is_symbolic = |extent: &Option<Extent>| {
        let extent = extent.as_ref();
        extent.is_some_and(|extent| extent.value().is_none())
    };
    let Some(shape) = shape.filter(|shape| shape.iter().any(is_symbolic)) else {
        return Attribute::Unit;
    };
    let one = |extent: &Option<Extent>| match extent {
        None => Attribute::string(""),
        Some(extent) => match extent.value() {
            Some(size) => Attribute::integer(size, Type::I64),
            None => Attribute::string(extent.to_string()),
        },
    };
    Attribute::array(shape.iter().map(one).collect())
}

#[cfg(test)]
mod tests;
