//! Compiles a module: numbers its entities, then writes the sections of the file.
//!
//! Two steps. The walk visits every operation once, inner ones first, and puts types,
//! kernel names, attributes and functions into tables in the order in which it meets
//! them; it also finds what the format cannot express. Only if it found nothing are
//! attributes, locations and bodies written, in the order of the tables.

mod attributes;
mod functions;
mod locations;
mod streams;

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    ops::Range,
};

use foldhash::fast::RandomState;
use tfrt_bef::{
    AttributeType, BefBuffer, BefWriter, FunctionIndex, FunctionKind, layout::MAX_REGION_DEPTH,
};
use tfrt_ir::{
    Attribute, BlockId, Diagnostics, Module, Name, OpId, RegionId, Type, ValueId, op_spans,
};

pub(crate) use attributes::is_encodable;

use crate::{COMPILED, COST, CompileOptions, NONSTRICT, STREAMS, codes, model};

/// Compiles `module`.
pub(crate) fn emit(module: &Module, options: &CompileOptions) -> Result<BefBuffer, Diagnostics> {
    let mut walk = Walk::new(module, options.strip);
    walk.run();
    if walk.diagnostics.has_errors() {
        walk.diagnostics.sort();
        return Err(walk.diagnostics);
    }
    walk.write()
}

/// Returns whether an attribute is for the compiler, and not the kernel's.
fn is_for_compiler(name: &Name) -> bool {
    [COST, NONSTRICT, STREAMS].contains(&name.as_str())
}

/// Returns advice on a mistake.
fn help(code: &str) -> Option<&'static str> {
    Some(match code {
        codes::NESTED_MODULE => {
            "put its functions into the outer module, or mark it with 'tfrt.compiled' if a kernel \
             compiles it"
        }
        codes::NESTED_FUNCTION => "functions stand next to each other in the module",
        codes::OUTER_VALUE => {
            "pass the value to the operation, and take it as an argument of its region"
        }
        codes::NO_BODY => "give it a body, or mark it with 'tfrt.native' if kernels provide it",
        codes::NO_RETURN => "end it in tfrt.return",
        codes::SYNC_RESULTS => {
            "return what a kernel makes of it; tfrt.add_s.i32 with zero copies a number"
        }
        codes::SEVERAL_BLOCKS => {
            "put what depends on a condition into functions, and call them with tfrt.cond"
        }
        codes::STATED_STREAMS => "remove the attribute, or let the pass assign-streams write it",
        codes::NOT_ENCODABLE => {
            "files hold numbers, strings, types, shapes, dense elements, functions, and arrays of \
             one of these"
        }
        _ => return None,
    })
}

/// A table of entities, in the order in which they were first met.
#[derive(Debug)]
struct Table<T> {
    entries: Vec<T>,
    indexes: HashMap<T, u32, RandomState>,
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn new() -> Table<T> {
        Table {
            entries: Vec::new(),
            indexes: HashMap::default(),
        }
    }

    /// Returns the index of an entity, which is added if it is new.
    fn insert(&mut self, entity: &T) -> u32 {
        if let Some(index) = self.indexes.get(entity) {
            return *index;
        }
        // A module has fewer entities than its text has bytes, which are below 4 GiB.
        let index = self.entries.len() as u32;
        self.indexes.insert(entity.clone(), index);
        self.entries.push(entity.clone());
        index
    }
}

/// A function of the file: one of the module's, or a region of an operation.
struct Function {
    kind: FunctionKind,
    /// The index of its name.
    name: u32,
    op: OpId,
    /// The block; `None` for a native function.
    block: Option<BlockId>,
}

/// An attribute of a kernel.
struct Constant {
    /// The index of its name; `None` if names are stripped.
    name: Option<u32>,
    /// The index of its value.
    value: u32,
}

/// The operation of a kernel, with the indices of its entities.
#[derive(Clone, Copy, Default)]
struct Kernel {
    /// The index of the kernel's name.
    code: u32,
    /// The range of its attributes in the table of constants.
    constants: Span,
    /// The range of the functions that it names in the table of references.
    references: Span,
}

/// A range of one of the walk's tables.
#[derive(Clone, Copy, Default)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Makes a range. A module has fewer entities than its text has bytes, which are below 4 GiB.
    fn new(start: usize, end: usize) -> Span {
        Span {
            start: start as u32,
            end: end as u32,
        }
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The walk over a module, with all tables.
struct Walk<'m> {
    module: &'m Module,
    strip: bool,
    diagnostics: Diagnostics,
    /// Names of everything.
    names: Table<Name>,
    types: Table<Type>,
    /// The index of the type of each value in the file.
    value_types: Vec<u32>,
    /// Names of kernels.
    codes: Table<Name>,
    /// The operations that are kernels.
    kernels: Vec<Kernel>,
    constants: Vec<Constant>,
    attributes: Table<Attribute>,
    attribute_types: Vec<AttributeType>,
    functions: Vec<Function>,
    /// The functions of the module, by name.
    named: HashMap<Name, u32, RandomState>,
    /// The function of each region that has one.
    regions: Vec<u32>,
    /// References to functions, which are resolved at the end.
    references: Vec<(OpId, Name)>,
    symbols: attributes::Symbols<'m>,
}

impl<'m> Walk<'m> {
    fn new(module: &'m Module, strip: bool) -> Walk<'m> {
        Walk {
            module,
            strip,
            diagnostics: Diagnostics::default(),
            names: Table::new(),
            types: Table::new(),
            value_types: vec![0; module.n_values()],
            codes: Table::new(),
            kernels: vec![Kernel::default(); module.n_ops()],
            constants: Vec::new(),
            attributes: Table::new(),
            attribute_types: Vec::new(),
            functions: Vec::new(),
            named: HashMap::default(),
            regions: vec![0; module.n_regions()],
            references: Vec::new(),
            symbols: attributes::Symbols::new(module),
        }
    }

    fn run(&mut self) {
        for op in self.module.children(self.module.top()) {
            self.visit(op, None);
        }
        let references = std::mem::take(&mut self.references);
        for (op, name) in &references {
            if !self.named.contains_key(name) {
                let message = format!("function @{name} not defined");
                let part = op_spans::symbol(self.module, *op, name);
                self.error_in(codes::UNDEFINED_FUNCTION, *op, part, message);
            }
        }
        self.references = references;
    }

    /// Visits an operation after those inside it; `depth` is the number of surrounding regions of kernels, in a
    /// function.
    ///
    /// Recursion is bounded by the parser's limit on nesting.
    fn visit(&mut self, op: OpId, depth: Option<usize>) {
        let operation = self.module.op(op);
        let is_inside = depth.is_some();
        if *operation.name() == "builtin.module" {
            if is_inside || operation.attribute(COMPILED).is_none() {
                let message = "nested modules cannot be emitted to BEF files without the \
                               'tfrt.compiled' attribute, nor inside of functions";
                self.error(codes::NESTED_MODULE, op, message);
            }
            return;
        }
        let is_function = *operation.name() == "func.func";
        if is_function && is_inside {
            return self.error(
                codes::NESTED_FUNCTION,
                op,
                "functions inside of functions cannot be emitted to BEF files",
            );
        }
        let depth = depth.unwrap_or(0);
        if !is_function && !operation.regions().is_empty() && depth == MAX_REGION_DEPTH {
            let message = format!("regions nest more than {MAX_REGION_DEPTH} deep");
            return self.error(codes::TOO_DEEP, op, message);
        }
        for child in self.module.children(op) {
            self.visit(child, Some(depth + usize::from(!is_function)));
        }
        if !self.values(op) {
            return;
        }
        if *operation.name() == "tfrt.return" {
            return self.return_op(op);
        }
        self.streams(op);
        match is_function {
            true => self.function(op),
            false => self.kernel(op),
        }
    }

    fn error(&mut self, code: &'static str, op: OpId, message: impl Into<String>) {
        self.error_in(code, op, None, message);
    }

    /// Reports an error on a part of an operation, at the part's location if it is known.
    fn error_in(
        &mut self,
        code: &'static str,
        op: OpId,
        part: Option<tfrt_ir::Span>,
        message: impl Into<String>,
    ) {
        let error = self.module.error_at(code, op, message);
        let error = error.narrowed(self.module.source(), part);
        let jumps = code == codes::NO_RETURN && !self.module.op(op).successors().is_empty();
        let about = if jumps { codes::SEVERAL_BLOCKS } else { code };
        self.diagnostics.push(match help(about) {
            Some(help) => error.help(help),
            None => error,
        });
    }

    fn return_op(&mut self, op: OpId) {
        let block = self.module.op(op).parent();
        if block.and_then(|block| self.module.block(block).last()) != Some(op) {
            self.error(
                tfrt_ir::codes::MISPLACED_TERMINATOR,
                op,
                "return op must be at the end of its block",
            );
        }
    }

    /// Checks the results and operands of an operation; returns whether they are sound.
    fn values(&mut self, op: OpId) -> bool {
        let module = self.module;
        for result in module.op(op).results() {
            self.value(*result);
        }
        let block = module.op(op).parent();
        let region_of = |block: BlockId| module.block(block).parent();
        let is_near = |operand: &ValueId| {
            let made_in = module.value_block(*operand);
            made_in == block || made_in.map(region_of) == block.map(region_of)
        };
        let mut operands = module.op(op).operands().iter();
        let Some(far) = operands.position(|operand| !is_near(operand)) else {
            return true;
        };
        let message = "BEF executor only supports references to kernels within the current region";
        let part = op_spans::operand(module, op, far);
        self.error_in(codes::OUTER_VALUE, op, part, message);
        false
    }

    /// Notes the type of a value.
    fn value(&mut self, value: ValueId) {
        let ty = self.module.value_type(value);
        // Most values have one of the first few types.
        const N_NEAR: usize = 4;
        let near = self.types.entries.iter().take(N_NEAR);
        let index = match near.zip(0..).find(|(other, _)| *other == ty) {
            Some((_, index)) => index,
            None => self.types.insert(ty),
        };
        self.value_types[value.index()] = index;
    }

    fn function(&mut self, op: OpId) {
        let module = self.module;
        let operation = module.op(op);
        let Some(name) = module.symbol_name(op).filter(|name| !name.is_empty()) else {
            return self.error(codes::UNNAMED_FUNCTION, op, "functions need to have a name");
        };
        let name = Name::from(name);
        if operation.attribute("tfrt.native").is_some() {
            return self.native_function(op, name);
        }
        let region = operation.regions().first().copied();
        let Some((region, block)) = region.and_then(|r| Some((r, module.entry_block(r)?))) else {
            return self.error(codes::NO_BODY, op, "external functions are not allowed");
        };
        let last = module.block(block).last();
        let Some(return_op) = last.filter(|op| *module.op(*op).name() == "tfrt.return") else {
            let message = "all functions need to have a tfrt.return";
            return self.error(codes::NO_RETURN, last.unwrap_or(op), message);
        };
        let is_sync = operation.attribute("tfrt.sync").is_some();
        if is_sync {
            self.sync_results(return_op);
        }
        let kind = if is_sync {
            FunctionKind::Sync
        } else {
            FunctionKind::Async
        };
        self.named.insert(name.clone(), self.functions.len() as u32);
        self.body(kind, &name, op, region);
    }

    fn native_function(&mut self, op: OpId, name: Name) {
        let signature = self
            .module
            .op(op)
            .attribute("function_type")
            .and_then(Attribute::as_type);
        let Some(signature) = signature.and_then(Type::as_function) else {
            return self.error(codes::UNNAMED_FUNCTION, op, "functions need to have a type");
        };
        for ty in signature.inputs.iter().chain(&signature.results) {
            self.types.insert(ty);
        }
        self.named.insert(name.clone(), self.functions.len() as u32);
        self.functions.push(Function {
            kind: FunctionKind::Native,
            name: self.names.insert(&name),
            op,
            block: None,
        });
    }

    /// Checks that a sync function returns neither arguments nor one value twice.
    fn sync_results(&mut self, return_op: OpId) {
        let module = self.module;
        let mut returned = BTreeSet::new();
        for (position, value) in module.op(return_op).operands().iter().enumerate() {
            if module.defining_op(*value).is_none() {
                let message = format!("return value {position} is an argument in a sync function");
                let part = op_spans::operand(module, return_op, position);
                self.error_in(codes::SYNC_RESULTS, return_op, part, message);
            } else if !returned.insert(*value) {
                let message = format!("return value {position} is duplicated in a sync function");
                let part = op_spans::operand(module, return_op, position);
                self.error_in(codes::SYNC_RESULTS, return_op, part, message);
            }
        }
    }

    /// Adds a function of a region.
    fn body(&mut self, kind: FunctionKind, name: &Name, op: OpId, region: RegionId) {
        let &[block] = self.module.region(region).blocks() else {
            return self.error(
                codes::SEVERAL_BLOCKS,
                op,
                "multi-block regions cannot be emitted to BEF files",
            );
        };
        for argument in self.module.block(block).arguments() {
            self.value(*argument);
        }
        self.functions.push(Function {
            kind,
            name: self.names.insert(name),
            op,
            block: Some(block),
        });
    }

    fn kernel(&mut self, op: OpId) {
        let module = self.module;
        let operation = module.op(op);
        let code = self.codes.insert(operation.name());
        let (first_constant, first_reference) = (self.constants.len(), self.references.len());
        for (name, value) in operation.attributes() {
            if !is_for_compiler(name) {
                self.attribute(op, name, value);
            }
        }
        self.kernels[op.index()] = Kernel {
            code,
            constants: Span::new(first_constant, self.constants.len()),
            references: Span::new(first_reference, self.references.len()),
        };
        for region in operation.regions() {
            self.regions[region.index()] = self.functions.len() as u32;
            self.body(FunctionKind::Async, &Name::from(""), op, *region);
        }
    }

    /// Returns the model of the module: the first function with inputs and outputs of a model. A file has one at
    /// most.
    fn model(&self) -> Result<Option<tfrt_bef::Model>, Diagnostics> {
        let attribute = |op: OpId, name: &str| self.module.op(op).attribute(name);
        let mut functions = (0..).zip(&self.functions);
        let Some((index, function)) = functions.find(|(_, function)| {
            *self.module.op(function.op).name() == "func.func"
                && [model::INPUTS, model::OUTPUTS]
                    .iter()
                    .any(|name| attribute(function.op, name).is_some())
        }) else {
            return Ok(None);
        };
        let (op, index) = (function.op, FunctionIndex(index));
        let wrong = |name: &str| {
            let message = format!("BEF files cannot encode the '{name}' attribute");
            Diagnostics::from(self.module.error_at(codes::NOT_ENCODABLE, op, message))
        };
        let found = model::read(index, |name| self.module.op(op).attribute(name));
        let found = found.map_err(wrong)?;
        let Some(block) = function.block else {
            return Err(wrong(model::INPUTS));
        };
        let n_arguments = self.module.block(block).arguments().len();
        let last = self.module.block(block).last().map(|op| self.module.op(op));
        let n_results = last.map_or(0, |op| op.operands().len());
        if found.inputs.len() > n_arguments {
            return Err(wrong(model::INPUTS));
        }
        if found.outputs.len() != n_results {
            return Err(wrong(model::OUTPUTS));
        }
        Ok(Some(found))
    }

    /// Writes the file.
    fn write(mut self) -> Result<BefBuffer, Diagnostics> {
        let kernels = &self.codes.entries;
        let kernels: Vec<u32> = kernels.iter().map(|name| self.names.insert(name)).collect();
        let types = self.types.entries.iter();
        let types: Vec<u32> = types
            .map(|ty| self.names.insert(&Name::from(ty.to_string())))
            .collect();
        let mut sorted: Vec<&Name> = self.names.entries.iter().collect();
        sorted.sort_unstable();
        if let Some(name) = sorted.iter().find(|name| name.contains('\0')) {
            let message = format!("BEF files cannot encode the name {:?}", name.as_str());
            let module = self.module;
            let is_named = |op: &OpId| module.symbol_name(*op) == Some(name.as_str());
            let named = module.children(module.top()).find(is_named);
            let op = named.unwrap_or_else(|| module.top());
            return Err(module.error_at(codes::NOT_ENCODABLE, op, message).into());
        }

        let mut writer = BefWriter::new();
        writer.strip = self.strip;
        let mut offsets = vec![0; sorted.len()];
        for name in sorted {
            offsets[self.names.indexes[name] as usize] = writer.strings.insert(name);
        }
        let offset_of = |name: &u32| offsets[*name as usize];
        writer.kernels = kernels.iter().map(offset_of).collect();
        writer.types = types.iter().map(offset_of).collect();
        writer.model = self.model()?;
        let attributes = self.write_attributes(&mut writer)?;
        functions::write(&self, &mut writer, &offsets, &attributes);
        Ok(writer.finish())
    }
}
