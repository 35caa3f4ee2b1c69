//! StableHLO and CHLO as operations of graphs.
//!
//! The functions of a module become one graph: calls are inlined, and each operation is replaced by rows that mean it. Types
//! are static in StableHLO but for dimensions, so what an operation becomes may depend on shapes. Four kinds of values need
//! no kernels of their own: complex numbers are two tensors, quantised numbers the integers that stand for them, tuples are
//! what is in them, and tokens are nothing.
//!
//! | File | Has |
//! | --- | --- |
//! | `build` | what is appended to the graph: rows, constants, broadcasts |
//! | `attributes` | attributes as numbers |
//! | `elements`, `bits` | elementwise operations of real numbers; `complex`: of complex ones; `chlo`, `bessel`: functions of CHLO |
//! | `shapes`, `pads`, `dynamic` | what moves elements, by constant extents and by others |
//! | `products`, `convolution` | products and convolutions of any dimensions |
//! | `quantized` | tensors of quantised numbers |
//! | `reduce`, `windows` | reductions by any body, whole and in windows; `stated_windows`: the windows; `pools`: those of images; `dynamic_windows`: of unknown extents |
//! | `gather`, `places`, `scatter` | gather and scatter in their general form |
//! | `stated` | the types that operations and regions state, which are checked |
//! | `sizes` | extents that may be known only when a model runs |
//! | `sort`, `keys` | sorts by any comparator |
//! | `control` | loops, branches, calls |
//! | `random`, `linear` | random bits; transforms and decompositions, `hermitian`: of complex matrices |

mod attributes;
mod bessel;
mod bits;
mod build;
mod chlo;
mod complex;
mod control;
mod convolution;
mod dynamic;
mod dynamic_windows;
mod elements;
mod gather;
mod hermitian;
mod keys;
mod linear;
mod pads;
mod places;
mod pools;
mod products;
mod quantized;
mod random;
mod reduce;
mod scatter;
mod shapes;
mod sizes;
mod sort;
mod stated;
mod stated_windows;
mod windows;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tfrt_ir::{BlockId, Diagnostics, Location, Module, OpId, OpState, Type, ValueId};

use self::pools::Pool;
use self::quantized::{Quantization, States};
use crate::codes;
use crate::passes::scope;

/// The most operations that a graph may become: calls may double at each level.
const MOST_OPERATIONS: usize = 1 << 21;

/// The deepest nesting of calls and regions.
const MOST_DEPTH: usize = 100;

/// A value of StableHLO.
#[derive(Clone, Debug)]
enum Bound {
    /// A tensor of real numbers or truth values.
    Tensor(ValueId),
    /// A tensor of complex numbers: real and imaginary parts.
    Complex(ValueId, ValueId),
    /// A tensor of quantised numbers: the integers that are stored.
    Quantized(ValueId, Arc<Quantization>),
    /// A tuple.
    Tuple(Vec<Bound>),
    /// A token, which orders effects that no operation here has.
    Token,
}

/// The values that replace an operation's results, or an error message.
type Lowered = Result<Vec<Bound>, String>;

/// Replaces an operation.
type LowerFn = fn(&mut Lowering<'_>, OpId) -> Lowered;

/// The operations that are known, a list for each file.
const OPERATIONS: &[&[(&str, LowerFn)]] = &[
    bessel::OPERATIONS,
    bits::OPERATIONS,
    chlo::OPERATIONS,
    control::OPERATIONS,
    convolution::OPERATIONS,
    dynamic::OPERATIONS,
    elements::OPERATIONS,
    gather::OPERATIONS,
    linear::OPERATIONS,
    pads::OPERATIONS,
    products::OPERATIONS,
    quantized::OPERATIONS,
    random::OPERATIONS,
    reduce::OPERATIONS,
    scatter::OPERATIONS,
    shapes::OPERATIONS,
    sort::OPERATIONS,
    windows::OPERATIONS,
];

/// The calls of names from outside, `stablehlo.custom_call`, that are known, a list for each file.
const CALLS: &[&[(&str, LowerFn)]] = &[
    chlo::CALLS,
    dynamic::CALLS,
    linear::CALLS,
    random::CALLS,
    stated_windows::CALLS,
];

/// Replaces the operations of models that are StableHLO.
pub(super) fn run(module: &mut Module, diagnostics: &mut Diagnostics) {
    let mut models = Vec::new();
    let mut functions = HashMap::new();
    for function in scope::functions(module) {
        let [block] = scope::region_blocks(module, function)[..] else {
            continue;
        };
        if module.op(function).attribute("model.input_names").is_some() {
            models.push(block);
            quantized::as_stored(module, function);
        } else if let Some(name) = module.symbol_name(function) {
            functions.insert(name.to_owned(), (function, block));
        }
    }
    models.retain(|block| has_operations(module, *block));
    functions.retain(|_, (_, block)| {
        let last = module.block(*block).last();
        last.is_some_and(|last| *module.op(last).name() == "func.return")
    });
    if models.is_empty() && functions.is_empty() {
        return;
    }
    let known: HashMap<&str, LowerFn> = OPERATIONS.iter().copied().flatten().copied().collect();
    if unknown(module, &known, diagnostics) {
        return;
    }
    for block in models {
        let mut lowering = Lowering {
            known: &known,
            functions: &functions,
            called: Vec::new(),
            values: HashMap::new(),
            narrow: HashMap::new(),
            integers: HashMap::new(),
            sums: HashMap::new(),
            made: Vec::new(),
            location: Location::Unknown,
            n_made: 0,
            n_read: Cell::new(0),
            depth: 0,
            states: States::default(),
            at: None,
            module,
        };
        if let Err(message) = lowering.model(block) {
            let at = lowering.at;
            let error = match at {
                Some(op) => module.op_error(codes::GRAPH, op, message),
                None => tfrt_ir::Diagnostic::error(codes::GRAPH, message),
            };
            diagnostics.push(error);
            return;
        }
    }
    let mut gone: Vec<OpId> = functions.values().map(|(function, _)| *function).collect();
    gone.sort();
    let body = module.body();
    let kept = module.block(body).operations().iter().copied();
    let kept = kept.filter(|op| gone.binary_search(op).is_err()).collect();
    module.set_operations(body, kept);
    for function in gone {
        erase(module, function);
    }
}

/// Returns whether a model's operations are those of StableHLO, or its only ones are calls.
fn has_operations(module: &Module, block: BlockId) -> bool {
    let operations = module.block(block).operations().iter();
    let mut names = operations.map(|op| module.op(*op).name().as_str());
    names.any(|name| is_ours(name) || name == "func.call")
}

fn is_ours(name: &str) -> bool {
    name.starts_with("stablehlo.") || name.starts_with("chlo.")
}

/// Reports operations that no function here replaces, by their names, with how many there are of each.
fn unknown(module: &Module, known: &HashMap<&str, LowerFn>, diagnostics: &mut Diagnostics) -> bool {
    let mut found: BTreeMap<String, (OpId, usize)> = BTreeMap::new();
    for block in scope::blocks(module) {
        for &op in module.block(block).operations() {
            let name = module.op(op).name().as_str();
            let is_structure = matches!(name, "func.return" | "stablehlo.return" | "tfrt.return");
            if !is_structure && !known.contains_key(name) {
                let entry = found.entry(name.to_owned()).or_insert((op, 0));
                entry.1 += 1;
            }
        }
    }
    for (op, count) in found.values() {
        let times = match count {
            1 => String::new(),
            count => format!(" ({count} times)"),
        };
        let message = format!("is no operation that is run{times}");
        diagnostics.push(module.op_error(codes::GRAPH, *op, message));
    }
    !found.is_empty()
}

/// Erases an operation that is in no block any longer, with all that is in it.
fn erase(module: &mut Module, op: OpId) {
    let mut all = Vec::new();
    module.walk_pre_order(op, &mut |inner| all.push(inner));
    for inner in all.into_iter().rev() {
        module.set_operands(inner, &[]);
    }
    module.erase(op);
}

/// The state of lowering one model.
struct Lowering<'m> {
    module: &'m mut Module,
    known: &'m HashMap<&'static str, LowerFn>,
    functions: &'m HashMap<String, (OpId, BlockId)>,
    /// The functions that are being inlined.
    called: Vec<BlockId>,
    /// The values of the model so far, by those of the text.
    values: HashMap<ValueId, Bound>,
    /// The operands of broadcasts, by their results: what an elementwise operation reads instead.
    narrow: HashMap<ValueId, ValueId>,
    /// Integers that are known, by the values that have them: extents that are calculated.
    integers: HashMap<ValueId, Vec<i64>>,
    /// Sums of windows that are pools of images, but for a division.
    sums: HashMap<ValueId, Pool>,
    /// The operations of the block that is being made.
    made: Vec<OpId>,
    location: Location,
    n_made: usize,
    /// How many of the present operation's operands were looked at.
    n_read: Cell<usize>,
    depth: usize,
    /// The type that quantised results of the present operation are made in.
    states: States,
    /// The operation that is being replaced.
    at: Option<OpId>,
}

impl Lowering<'_> {
    fn model(&mut self, block: BlockId) -> Result<(), String> {
        let old = self.module.block(block).operations().to_vec();
        let arguments = self.module.block(block).arguments().to_vec();
        let arguments: Vec<Bound> = arguments
            .into_iter()
            .map(|argument| self.taken(argument))
            .collect::<Result<_, _>>()?;
        let results = self.block(block, &arguments)?;
        let mut given = Vec::with_capacity(results.len());
        for result in results {
            given.push(self.given(result)?);
        }
        let last = OpState::new("tfrt.return").operands(given);
        let last = self.module.create(last);
        self.made.push(last);
        let made = std::mem::take(&mut self.made);
        self.module.set_operations(block, made);
        for op in old.into_iter().rev() {
            erase(self.module, op);
        }
        Ok(())
    }

    /// Returns an argument of the model as a value.
    fn taken(&mut self, argument: ValueId) -> Result<Bound, String> {
        sized(self.module.value_type(argument))?;
        match self.element(argument) {
            Type::Complex(_) => Ok(self.parts(argument)),
            element if let Some(own) = Quantization::of(&element)? => {
                let ty = Type::tensor(self.dims(argument), own.storage().clone());
                self.module.set_value_type(argument, ty);
                Ok(Bound::Quantized(argument, Arc::new(own)))
            }
            element if is_plain(&element) => Ok(Bound::Tensor(argument)),
            element => Err(format!(
                "has an argument of {element}, which no model takes"
            )),
        }
    }

    /// Returns a value as a result of the model.
    fn given(&mut self, value: Bound) -> Result<ValueId, String> {
        match value {
            Bound::Tensor(value) => Ok(value),
            Bound::Complex(real, imaginary) => Ok(self.joined(real, imaginary)),
            Bound::Quantized(stored, _) => Ok(stored),
            Bound::Tuple(_) => Err("returns a tuple: return its parts".to_owned()),
            Bound::Token => Err("returns a token, which nothing here makes".to_owned()),
        }
    }

    /// Replaces the operations of a block, given its arguments; returns what its last operation is given.
    fn block(&mut self, block: BlockId, arguments: &[Bound]) -> Lowered {
        if self.depth == MOST_DEPTH {
            return Err(format!(
                "is nested deeper than {MOST_DEPTH} levels of calls and regions"
            ));
        }
        self.depth += 1;
        let own = self.module.block(block).arguments().to_vec();
        if own.len() != arguments.len() {
            let (own, given) = (own.len(), arguments.len());
            return Err(format!("has a body of {own} arguments, expected {given}"));
        }
        self.values
            .extend(own.into_iter().zip(arguments.iter().cloned()));
        // A function that is the model stands in no operation that is being replaced.
        self.at = self.at.or(self.module.block_parent_op(block));
        let last = self.last(block)?;
        let operations = self.module.block(block).operations().to_vec();
        for op in operations.into_iter().filter(|op| *op != last) {
            self.operation(op)?;
        }
        let read_around = self.n_read.get();
        let results = self.operands(last)?;
        self.n_read.set(read_around);
        self.depth -= 1;
        Ok(results)
    }

    fn operation(&mut self, op: OpId) -> Result<(), String> {
        let around = self.at.replace(op);
        self.location = self.module.op(op).location().clone();
        if self.n_made > MOST_OPERATIONS {
            return Err(format!(
                "makes the graph one of more than {MOST_OPERATIONS} operations"
            ));
        }
        for result in self.module.op(op).results() {
            sized(self.module.value_type(*result))?;
        }
        let name = self.module.op(op).name().clone();
        let lower = self.known.get(name.as_str()).copied();
        let lower = lower.ok_or("is no operation that is run")?;
        self.check_stated(op)?;
        let read_around = self.n_read.replace(0);
        let made = match self.is_quantized(op) {
            true => self.on_quantized(op, lower)?,
            false => lower(self, op)?,
        };
        let (n_operands, n_read) = (self.module.op(op).operands().len(), self.n_read.get());
        if n_read < n_operands {
            return Err(format!("has {n_operands} operands, expected {n_read}"));
        }
        self.n_read.set(read_around);
        let results = self.module.op(op).results().to_vec();
        if made.len() != results.len() {
            let (own, found) = (results.len(), made.len());
            return Err(format!("has {own} results, expected {found}"));
        }
        for (result, value) in results.into_iter().zip(made) {
            self.check(result, &value)?;
            self.values.insert(result, value);
        }
        self.at = around;
        Ok(())
    }

    /// Checks that what was made of a result is what the text says it is.
    fn check(&self, result: ValueId, value: &Bound) -> Result<(), String> {
        let stated = self.module.value_type(result);
        let found = match value {
            Bound::Tensor(value) => *value,
            Bound::Complex(real, _) => *real,
            Bound::Quantized(stored, _) => *stored,
            _ => return Ok(()),
        };
        let Some((shape, element)) = stated.as_shaped() else {
            return Err(format!("has a result of {stated}, expected a tensor"));
        };
        let dims = self.dims(found);
        let is_scalar_body = !self.called.is_empty() || self.depth > 1;
        let fits = |(own, found): (&i64, &i64)| *own < 0 || *found < 0 || own == found;
        let has_shape = shape.len() == dims.len() && shape.iter().zip(&dims).all(fits);
        // A body of scalars may be calculated for many at once.
        if !has_shape && (!is_scalar_body || !shape.is_empty()) {
            return Err(format!(
                "has a result of extents {shape:?}, expected {dims:?}"
            ));
        }
        let part = match (element, value) {
            (Type::Complex(part), Bound::Complex(..)) => part,
            _ => element,
        };
        let own = self.element(found);
        if *part != own && is_plain(part) {
            return Err(format!("has a result of {element}, expected {own}"));
        }
        Ok(())
    }

    /// Returns the value of an operand.
    fn value(&self, value: ValueId) -> Result<Bound, String> {
        let found = self.values.get(&value).cloned();
        found.ok_or_else(|| "uses a value that is not there yet".to_owned())
    }

    fn operands(&self, op: OpId) -> Lowered {
        self.n_read.set(usize::MAX);
        let operands = self.module.op(op).operands().iter();
        operands.map(|value| self.value(*value)).collect()
    }

    /// Returns an operand.
    fn bound(&self, op: OpId, index: usize) -> Result<Bound, String> {
        let operands = self.module.op(op).operands();
        self.n_read
            .set(self.n_read.get().max(index.saturating_add(1)));
        let found = operands.len();
        let operand = operands.get(index);
        let missing = || format!("expected an operand {index}, found {found} operands");
        self.value(*operand.ok_or_else(missing)?)
    }

    /// Returns an operand that is a tensor of real numbers.
    fn operand(&self, op: OpId, index: usize) -> Result<ValueId, String> {
        match self.bound(op, index)? {
            Bound::Tensor(value) => Ok(value),
            Bound::Complex(..) => {
                Err("takes complex numbers, which are not supported here".to_owned())
            }
            _ => Err(format!("expected a tensor as operand {index}")),
        }
    }

    /// Returns the operands, all of which are tensors of real numbers.
    fn tensors(&self, op: OpId) -> Result<Vec<ValueId>, String> {
        let n = self.module.op(op).operands().len();
        (0..n).map(|index| self.operand(op, index)).collect()
    }

    /// Returns the stated extents and element type of a result.
    fn stated(&self, op: OpId, index: usize) -> Result<(Vec<i64>, Type), String> {
        let results = self.module.op(op).results();
        let result = *results.get(index).ok_or("has too few results")?;
        let ty = self.module.value_type(result);
        match ty.as_shaped() {
            Some((shape, element)) => Ok((shape, self.states.element(element)?)),
            None => Err(format!("has a result of {ty}, expected a tensor")),
        }
    }

    /// Returns the only block of a region.
    fn body(&self, op: OpId, index: usize) -> Result<BlockId, String> {
        let regions = self.module.op(op).regions();
        let region = *regions.get(index).ok_or_else(|| {
            let n = regions.len();
            format!("expected a region {index}, found {n} regions")
        })?;
        match self.module.region(region).blocks() {
            [block] => Ok(*block),
            blocks => Err(format!(
                "expected a region of one block, found {}",
                blocks.len()
            )),
        }
    }

    /// Applies a function to a tensor, or to both parts of one of complex numbers.
    fn each(
        &mut self,
        value: Bound,
        function: impl Fn(&mut Self, ValueId) -> Result<ValueId, String>,
    ) -> Lowered {
        Ok(vec![match value {
            Bound::Tensor(value) => Bound::Tensor(function(self, value)?),
            Bound::Complex(real, imaginary) => {
                Bound::Complex(function(self, real)?, function(self, imaginary)?)
            }
            _ => return Err("expected a tensor".to_owned()),
        }])
    }
}

/// Refuses tensors of so many elements that numbers of bytes could overflow.
fn sized(ty: &Type) -> Result<(), String> {
    const MOST_ELEMENTS: i64 = 1 << 40;
    let Some((shape, _)) = ty.as_shaped() else {
        return Ok(());
    };
    let known = shape.iter().filter(|size| **size > 0);
    let count = known
        .clone()
        .try_fold(1_i64, |count, size| count.checked_mul(*size));
    match count {
        Some(..=MOST_ELEMENTS) if known.count() <= 64 => Ok(()),
        _ => Err(format!("has a tensor of too many elements: {ty}")),
    }
}

/// Returns whether elements of a type are real numbers or truth values that tensors have.
fn is_plain(element: &Type) -> bool {
    match element {
        Type::Integer(integer) => matches!(integer.width, 1 | 2 | 4 | 8 | 16 | 32 | 64),
        Type::Float(kind) => kind.width() <= 64,
        _ => false,
    }
}
