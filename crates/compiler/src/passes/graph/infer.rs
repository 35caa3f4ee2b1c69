//! `graph-infer`: finds the types and shapes of all values of a graph, with symbolic dimensions.
//!
//! The row of an operation ([`tfrt_ops`]) says what its results are; this pass goes through the blocks. Each value gets the
//! most precise type that follows from the inputs' types; what a model states itself is believed where nothing follows.
//! Dimensions that are not plain numbers stand in the attribute `model.shapes` of the operation that makes the value.
//!
//! Nothing is assumed that could be wrong for an input that a call may have. What can't be right for any is unknown, too,
//! and a warning: the kernel says what is wrong, if it is ever run.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tfrt_ir::{
    Attribute, BlockId, Diagnostic, Diagnostics, Module, OpId, Type, ValueId, types::TensorType,
};
use tfrt_ops::{AttrSource, Dim, Dims, Fact, Facts, InferError, OpDef, Table, names};

use super::attrs::{self, OpAttrs};
use super::calls::Calls;
use super::{GRAPH, graphs, inner_first, is_library, lower, node, scope, types};
use crate::codes;
use crate::legalize::Context;
use crate::pipeline::{Pass, PassFn};

pub(crate) const PASS: Pass = Pass {
    name: "graph-infer",
    summary: "Finds types and shapes of a graph's values, with symbolic dimensions",
    needs: &[],
    gives: &[],
    breaks: &[],
    run: PassFn::WithContext(run),
};

/// The attribute with the symbolic dimensions of an operation's results.
const SHAPES: &str = "model.shapes";

/// The most operations of functions that are inferred for calls, all together. Results of further calls have the
/// types that the model states.
const MOST_FOLLOWED: usize = 1 << 16;

/// The greatest depth of nested loops whose turns are followed: each level takes several times as long.
const MOST_NESTED: usize = 3;

pub(in crate::passes) fn run(
    module: &mut Module,
    context: &Context<'_>,
    diagnostics: &mut Diagnostics,
) {
    let calls = Calls::new(module);
    let mut n_followed = 0;
    // A pass that has run since an inference warned may have made other operations of those that fail.
    let mut told = diagnostics.iter();
    let has_warned = told.any(|told| told.code() == Some(codes::NEVER_SUCCEEDS));
    // What a function takes is known when those that call it are gone through.
    for (function, block) in calls.callers_first(&graphs(module)) {
        take(module, calls.of(function), block);
        let mut inference = Inference {
            module,
            rows: &context.dialects.rows,
            calls: &calls,
            n_followed,
            followed: HashMap::new(),
            facts: HashMap::new(),
            believes: true,
            depth: 0,
            refused: Vec::new(),
        };
        inference.inputs(function, block);
        inference.block(block);
        let Inference { facts, refused, .. } = inference;
        n_followed = inference.n_followed;
        if !refused.is_empty() && !has_warned {
            let used = used(module, block);
            for (op, reason) in refused.iter().filter(|(op, _)| used.contains(op)) {
                warn(module, *op, reason, diagnostics);
            }
        }
        outputs(module, function, block, &facts, diagnostics);
        write(module, &facts, block);
        signature(module, function, block);
    }
    types::check(module, &context.dialects.rows, diagnostics);
}

/// The types of integers that state extents and positions.
const INDICES: [tfrt_bef::DType; 2] = [tfrt_bef::DType::I32, tfrt_bef::DType::I64];

/// Integers that are known before a graph runs.
pub(super) struct KnownIntegers {
    pub dtype: tfrt_bef::DType,
    pub shape: Vec<i64>,
    pub numbers: Vec<i64>,
}

/// Returns the integers (`i32` or `i64`) that a graph calculates and that follow from the inputs' types alone, whatever the
/// model states of other values.
pub(super) fn known_integers(
    module: &Module,
    context: &Context<'_>,
    function: OpId,
    block: BlockId,
) -> HashMap<ValueId, KnownIntegers> {
    let facts = facts_of(module, context, function, block, false);
    let known = |value: &ValueId| {
        let fact = facts.get(value)?;
        let dtype = fact.dtype.filter(|dtype| INDICES.contains(dtype))?;
        let shape = fact.dims.as_ref()?.iter().map(Dim::value);
        let shape: Vec<i64> = shape.collect::<Option<_>>()?;
        let numbers = fact.numbers()?;
        let n_elements = shape.iter().try_fold(1_i64, |n, size| n.checked_mul(*size));
        let fits = n_elements.is_some_and(|n| usize::try_from(n) == Ok(numbers.len()));
        fits.then_some((
            *value,
            KnownIntegers {
                dtype,
                shape,
                numbers,
            },
        ))
    };
    let blocks = inner_first(module, block).into_iter();
    let operations = blocks.flat_map(|block| module.block(block).operations());
    let results = operations.flat_map(|op| module.op(*op).results());
    results.filter_map(known).collect()
}

/// Returns the extents of a graph's values whose rank is known, with symbols where they depend on inputs.
pub(super) fn dims(
    module: &Module,
    context: &Context<'_>,
    function: OpId,
    block: BlockId,
) -> HashMap<ValueId, Dims> {
    let facts = facts_of(module, context, function, block, true).into_iter();
    facts
        .filter_map(|(value, fact)| Some((value, fact.dims?)))
        .collect()
}

/// Infers a function apart from the others.
fn facts_of(
    module: &Module,
    context: &Context<'_>,
    function: OpId,
    block: BlockId,
    believes: bool,
) -> HashMap<ValueId, Fact> {
    let mut inference = Inference {
        module,
        rows: &context.dialects.rows,
        calls: &Calls::new(module),
        n_followed: 0,
        followed: HashMap::new(),
        facts: HashMap::new(),
        believes,
        depth: 0,
        refused: Vec::new(),
    };
    inference.inputs(function, block);
    inference.block(block);
    inference.facts
}

/// Returns the fact that a type states.
fn of_type(ty: &Type) -> Fact {
    let dim = |size: i64| {
        if size >= 0 {
            Dim::Known(size)
        } else {
            Dim::Unknown
        }
    };
    let shape = ty
        .as_shaped()
        .map(|(shape, _)| shape.into_iter().map(dim).collect());
    Fact::new(node::element(ty).as_ref().and_then(attrs::dtype), shape)
}

/// The most letters in the name of a symbol: names stand in each type that depends on them.
const MOST_LETTERS: usize = 128;

/// The most letters of an extent; a longer one is written as unknown.
const MOST_TEXT: usize = 512;

/// Returns the symbol of a name in a model. One that could be the text of an expression is set in quotes.
fn symbol(name: &str) -> Dim {
    let is_word = name.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && name
            .chars()
            .all(|letter| letter.is_alphanumeric() || "_.".contains(letter));
    match name.len() {
        MOST_LETTERS.. => Dim::Unknown,
        _ if is_word => Dim::symbol(name),
        _ => Dim::symbol(format!("'{name}'")),
    }
}

/// The state of inference: the facts of values, found block by block.
struct Inference<'m> {
    module: &'m Module,
    rows: &'m Table,
    calls: &'m Calls,
    /// The number of operations of functions that were inferred for calls so far.
    n_followed: usize,
    /// The calls that were inferred, by callee.
    followed: HashMap<BlockId, Vec<InferredCall>>,
    facts: HashMap<ValueId, Fact>,
    /// Whether types that the model states are taken where nothing follows.
    believes: bool,
    /// The number of surrounding operations with regions.
    depth: usize,
    /// Operations that fail with all inputs, and why. Operations in regions are not listed: a branch may never be
    /// taken.
    refused: Vec<(OpId, InferError)>,
}

/// An inferred call, kept for other calls of the same function: its depth in operations with regions, the facts of
/// its operands, and those of its results.
struct InferredCall {
    depth: usize,
    given: Vec<Fact>,
    found: Facts,
}

/// The most operations with a warning: what follows a failing operation is unknown, too.
const MOST_WARNINGS: usize = 20;

/// Returns the operations of a block that its results depend on. Others are removed before a graph runs.
fn used(module: &Module, block: BlockId) -> HashSet<OpId> {
    let mut operations = HashSet::new();
    let mut values: HashSet<ValueId> = HashSet::new();
    for &op in module.block(block).operations().iter().rev() {
        let results = module.op(op).results();
        if results.is_empty() || results.iter().any(|result| values.contains(result)) {
            operations.insert(op);
            // Operations in its regions use values from around it.
            module.walk_pre_order(op, &mut |inner| values.extend(module.op(inner).operands()));
        }
    }
    operations
}

/// Warns that an operation fails whenever it runs, unless it has a warning already. It is no error: the kernel
/// decides, and may be more lenient.
fn warn(module: &Module, op: OpId, reason: &InferError, diagnostics: &mut Diagnostics) {
    let name = module.op(op).name();
    let reason = reason.to_string();
    // The row's name stands in front, which is the operation's.
    let reason = match reason.split_once(": ") {
        Some((row, reason)) if name.ends_with(row) => reason,
        _ => &reason,
    };
    let node = module.node_prefix(op);
    let message = format!("{node}'{name}' op fails with any input: {reason}");
    let warning = module.place(Diagnostic::warning(codes::NEVER_SUCCEEDS, message), op);
    let mut told = diagnostics
        .iter()
        .filter(|told| told.code() == warning.code());
    let is_said = |told: &Diagnostic| {
        let is_there =
            told.location() == warning.location() && told.line_column() == warning.line_column();
        is_there && told.message() == warning.message()
    };
    if told.clone().count() < MOST_WARNINGS && !told.any(is_said) {
        diagnostics.push(warning);
    }
}

/// Warns of outputs of a model whose types are not those that it states. They are of the types that follow.
fn outputs(
    module: &Module,
    function: OpId,
    block: BlockId,
    facts: &HashMap<ValueId, Fact>,
    diagnostics: &mut Diagnostics,
) {
    let names = module.op(function).attribute("model.output_names");
    let names = names.and_then(Attribute::as_array).unwrap_or(&[]);
    let end = module.block(block).operations().last();
    let returned = end.map_or(&[][..], |end| module.op(*end).operands());
    for (name, value) in names.iter().zip(returned) {
        let (Some(op), Some(found)) = (module.defining_op(*value), facts.get(value)) else {
            continue;
        };
        let Type::Tensor(old) = module.value_type(*value) else {
            continue;
        };
        let stated = of_type(module.value_type(*value));
        let differs = |found: &Dim, stated: &Dim| {
            let sizes = found.value().zip(stated.value());
            sizes.is_some_and(|(found, stated)| found != stated)
        };
        let has_others = match (&found.dims, &stated.dims) {
            (Some(found), Some(stated)) => {
                let mut pairs = found.iter().zip(stated);
                found.len() != stated.len() || pairs.any(|(a, b)| differs(a, b))
            }
            _ => false,
        };
        let of_others = found.dtype.zip(stated.dtype);
        if has_others || of_others.is_some_and(|(found, stated)| found != stated) {
            let node = module.node_prefix(op);
            let name = name.as_str().unwrap_or_default().escape_debug();
            let (stated, found) = (module.value_type(*value), ty(found, old));
            let message = format!("{node}output '{name}' is stated to be {stated}, and is {found}");
            let warning = Diagnostic::warning(codes::MISSTATED_OUTPUT, message);
            diagnostics.push(module.place(warning, op));
        }
    }
}

impl Inference<'_> {
    /// Sets the facts of a graph's inputs: types, and names of dimensions.
    fn inputs(&mut self, function: OpId, block: BlockId) {
        let dimensions = self.module.op(function).attribute("model.input_dims");
        let dimensions = dimensions.and_then(Attribute::as_array).unwrap_or(&[]);
        for (index, &argument) in self.module.block(block).arguments().iter().enumerate() {
            let mut fact = of_type(self.module.value_type(argument));
            let stated = dimensions.get(index).and_then(Attribute::as_array);
            if let (Some(dims), Some(stated)) = (&mut fact.dims, stated) {
                for (dim, name) in dims.iter_mut().zip(stated) {
                    match name.as_str() {
                        Some(name) if dim.is_unknown() && !name.is_empty() => *dim = symbol(name),
                        _ => {}
                    }
                }
            }
            self.facts.insert(argument, fact);
        }
    }

    fn of(&self, value: ValueId) -> Fact {
        match self.facts.get(&value) {
            Some(fact) => fact.clone(),
            None => self.stated(value),
        }
    }

    /// Returns the fact that the model states of a value, if such statements are taken.
    fn stated(&self, value: ValueId) -> Fact {
        match self.believes {
            true => of_type(self.module.value_type(value)),
            false => Fact::UNKNOWN,
        }
    }

    /// Infers the operations of a block. Recursion is bounded by the limit of the text, or the importer, on nesting.
    fn block(&mut self, block: BlockId) {
        let module = self.module;
        for &op in module.block(block).operations() {
            let found = self.results(op);
            for (index, &result) in module.op(op).results().iter().enumerate() {
                let stated = self.stated(result);
                // Of resources and chains there are no extents, whatever a row says.
                let is_tensor = matches!(module.value_type(result), Type::Tensor(_));
                let fact = match found.get(index).filter(|_| is_tensor) {
                    Some(found) => found.clone().or(&stated),
                    None => stated,
                };
                self.facts.insert(result, fact);
            }
        }
    }

    /// Returns the facts of an operation's results.
    fn results(&mut self, op: OpId) -> Facts {
        let module = self.module;
        let name = module.op(op).name();
        let attributes = OpAttrs { module, op };
        let (mut visited, mut found) = (HashSet::new(), Facts::new());
        if let Some(name) = name.strip_prefix("onnx.") {
            // Where no version is stated, it is the newest.
            let version = lower::stated_opset(module, op).unwrap_or(i64::MAX);
            if let Some(row) = names::onnx::find(name, version, &attributes) {
                found = self.by_row(op, row.op, &row.attrs, &mut visited);
            }
        } else {
            let row = match name.strip_prefix(GRAPH) {
                Some(name) => self.rows.find(name),
                None if is_library(name) => self.rows.find(name),
                None => self.rows.find_added(name),
            };
            if let Some(row) = row {
                found = self.by_row(op, &row, &attributes, &mut visited);
            }
        }
        for block in scope::region_blocks(module, op) {
            if !visited.contains(&block) {
                self.region(block, &[]);
            }
        }
        found
    }

    /// Infers the results of an operation by its row; tells which regions were inferred.
    fn by_row(
        &mut self,
        op: OpId,
        row: &OpDef,
        attributes: &dyn AttrSource,
        visited: &mut HashSet<BlockId>,
    ) -> Facts {
        let module = self.module;
        let data = module.op(op);
        let inner = scope::region_blocks(module, op);
        let callee = self.calls.callee(module, op);
        let inputs = (0..data.operands().len()).map(|index| {
            let value = node::operand(module, op, index)?;
            Some(self.of(value))
        });
        let inputs: Vec<Option<Fact>> = inputs.collect();
        let attrs = tfrt_ops::Attrs::new(attributes, row.attrs);
        let mut regions = |index: usize, arguments: &[Fact]| {
            if let Some((_, block)) = callee {
                return self.called(block, arguments);
            }
            let Some(&block) = inner.get(index) else {
                return Facts::new();
            };
            if self.depth >= MOST_NESTED {
                return Facts::new();
            }
            visited.insert(block);
            self.region(block, arguments)
        };
        let n_results = data.results().len();
        match tfrt_ops::infer(row, &inputs, attrs, n_results, &mut regions) {
            Ok(facts) => facts,
            Err(reason) => {
                if self.depth == 0 {
                    self.refused.push((op, reason));
                }
                Facts::new()
            }
        }
    }

    /// Returns the facts of a function's results for these facts of its arguments.
    fn called(&mut self, block: BlockId, arguments: &[Fact]) -> Facts {
        let known = self.followed.get(&block).into_iter().flatten();
        let mut known = known.filter(|known| known.depth <= self.depth);
        if let Some(known) = known.find(|known| known.given == arguments) {
            return known.found.clone();
        }
        self.n_followed += self.module.block(block).operations().len();
        if self.n_followed > MOST_FOLLOWED || self.depth >= MOST_NESTED {
            return Facts::new();
        }
        let found = self.region(block, arguments);
        self.followed.entry(block).or_default().push(InferredCall {
            depth: self.depth,
            given: arguments.to_vec(),
            found: found.clone(),
        });
        found
    }

    /// Returns the facts of a region's results for these facts of its arguments.
    fn region(&mut self, block: BlockId, arguments: &[Fact]) -> Facts {
        let module = self.module;
        for (index, &argument) in module.block(block).arguments().iter().enumerate() {
            let stated = self.stated(argument);
            let fact = match arguments.get(index) {
                Some(fact) => fact.clone().or(&stated),
                None => stated,
            };
            self.facts.insert(argument, fact);
        }
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
        let last = module
            .block(block)
            .last()
            .map(|op| module.op(op).operands());
        last.unwrap_or_default()
            .iter()
            .map(|value| self.of(*value))
            .collect()
    }
}

/// Gives the arguments of a function types that hold for all of its calls, whatever types it states.
fn take(module: &mut Module, calls: &[OpId], block: BlockId) {
    for (index, argument) in module
        .block(block)
        .arguments()
        .to_vec()
        .into_iter()
        .enumerate()
    {
        let operands = calls
            .iter()
            .filter_map(|op| module.op(*op).operands().get(index));
        let facts = operands.map(|value| of_type(module.value_type(*value)));
        let joined = facts.reduce(|own, other| own.join(&other));
        if let (Some(fact), Type::Tensor(old)) = (joined, module.value_type(argument)) {
            let ty = ty(&fact, old);
            module.set_value_type(argument, ty);
        }
    }
}

/// Writes facts into a block, as types and attributes.
fn write(module: &mut Module, facts: &HashMap<ValueId, Fact>, block: BlockId) {
    for op in module.block(block).operations().to_vec() {
        for inner in scope::region_blocks(module, op) {
            write(module, facts, inner);
        }
        let mut symbolic = Vec::new();
        for result in module.op(op).results().to_vec() {
            let fact = facts.get(&result);
            symbolic.push(match (module.value_type(result), fact) {
                (Type::Tensor(old), Some(fact)) => {
                    let ty = ty(fact, old);
                    let dims = symbolic_dims(fact);
                    module.set_value_type(result, ty);
                    dims
                }
                _ => Attribute::Unit,
            });
        }
        match symbolic.iter().all(|shape| *shape == Attribute::Unit) {
            true => drop(module.remove_attribute(op, SHAPES)),
            false => module.set_attribute(op, SHAPES, Attribute::array(symbolic)),
        }
    }
}

/// Returns the type that states a fact.
fn ty(fact: &Fact, old: &TensorType) -> Type {
    let element = match fact.dtype {
        Some(dtype) if attrs::dtype(&old.element) != Some(dtype) => attrs::element(dtype),
        _ => None,
    };
    let size = |dim: &Dim| {
        dim.value()
            .filter(|size| *size >= 0)
            .unwrap_or(tfrt_ir::types::DYNAMIC)
    };
    Type::Tensor(Arc::new(TensorType {
        shape: fact
            .dims
            .as_ref()
            .map(|dims| dims.iter().map(size).collect()),
        element: element.unwrap_or_else(|| old.element.clone()),
        encoding: None,
    }))
}

/// Returns extents as an attribute; `unit` if the type states all of them.
fn symbolic_dims(fact: &Fact) -> Attribute {
    let is_symbolic = |dim: &Dim| matches!(dim, Dim::Symbolic(_));
    let Some(dims) = fact
        .dims
        .as_ref()
        .filter(|dims| dims.iter().any(is_symbolic))
    else {
        return Attribute::Unit;
    };
    let one = |dim: &Dim| match dim {
        Dim::Unknown => Attribute::string(""),
        Dim::Known(size) => Attribute::integer(*size, Type::I64),
        Dim::Symbolic(_) => {
            let text = dim.to_string();
            Attribute::string(if text.len() <= MOST_TEXT { &text } else { "" })
        }
    };
    Attribute::array(dims.iter().map(one).collect())
}

/// Gives a function's type the types of its arguments and results.
pub(in crate::passes) fn signature(module: &mut Module, function: OpId, block: BlockId) {
    let Some(Attribute::Type(Type::Function(ty))) =
        module.op(function).attribute("function_type").cloned()
    else {
        return;
    };
    let last = module
        .block(block)
        .last()
        .map(|op| module.op(op).operands());
    let returned = last.unwrap_or_default().iter();
    let results: Vec<Type> = returned
        .map(|value| module.value_type(*value).clone())
        .collect();
    let arguments = module.block(block).arguments().iter();
    let arguments: Vec<Type> = arguments
        .map(|value| module.value_type(*value).clone())
        .collect();
    if results.len() == ty.results.len() && arguments.len() == ty.inputs.len() {
        let changed = Type::function(arguments, results);
        module.set_attribute(function, "function_type", Attribute::Type(changed));
    }
}

#[cfg(test)]
mod tests;
