//! Numbers the entities of a module, then writes the sections.
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
};

use tfrt_bef::{AttributeType, BefBuffer, BefWriter, FunctionKind, layout::MAX_REGION_DEPTH};
use tfrt_ir::{
    Attribute, BlockId, Diagnostic, Diagnostics, Module, Name, OpId, RegionId, Type, ValueId,
};

use crate::{COMPILED, COST, CompileOptions, NONSTRICT, STREAMS};

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

/// Returns whether an attribute is not one of the kernel's.
fn is_for_compiler(name: &Name) -> bool {
    [COST, NONSTRICT, STREAMS].contains(&name.as_str())
}

/// Returns an error that has no place.
fn single(message: impl Into<String>) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.push(Diagnostic::error(message));
    diagnostics
}

/// Entities by the order in which they were first met.
#[derive(Debug)]
struct Table<T> {
    entries: Vec<T>,
    indexes: HashMap<T, u32>,
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn new() -> Table<T> {
        Table {
            entries: Vec::new(),
            indexes: HashMap::new(),
        }
    }

    /// Returns whether the entity is new.
    fn insert(&mut self, entity: &T) -> bool {
        if self.indexes.contains_key(entity) {
            return false;
        }
        // A module has fewer entities than its text has bytes, which are below 4 GiB.
        self.indexes
            .insert(entity.clone(), self.entries.len() as u32);
        self.entries.push(entity.clone());
        true
    }

    fn get(&self, entity: &T) -> Option<u32> {
        self.indexes.get(entity).copied()
    }

    fn index(&self, entity: &T) -> u32 {
        self.indexes[entity]
    }
}

/// A function of the file: one of the module's, or a region of an operation.
struct Function {
    kind: FunctionKind,
    name: Name,
    op: OpId,
    /// None for a native function.
    block: Option<BlockId>,
}

/// The state of the walk, and all its tables.
struct Walk<'m> {
    module: &'m Module,
    strip: bool,
    diagnostics: Diagnostics,
    strings: BTreeSet<Name>,
    types: Table<Type>,
    kernels: Table<Name>,
    attributes: Table<Attribute>,
    attribute_types: Vec<AttributeType>,
    functions: Vec<Function>,
    /// Functions of the module, by name.
    named: HashMap<Name, u32>,
    /// Function of each region.
    regions: HashMap<RegionId, u32>,
    /// Functions that operations name, to be found at the end.
    references: Vec<(OpId, Name)>,
    symbols: attributes::Symbols<'m>,
}

impl<'m> Walk<'m> {
    fn new(module: &'m Module, strip: bool) -> Walk<'m> {
        Walk {
            module,
            strip,
            diagnostics: Diagnostics::default(),
            strings: BTreeSet::new(),
            types: Table::new(),
            kernels: Table::new(),
            attributes: Table::new(),
            attribute_types: Vec::new(),
            functions: Vec::new(),
            named: HashMap::new(),
            regions: HashMap::new(),
            references: Vec::new(),
            symbols: attributes::Symbols::new(module),
        }
    }

    fn run(&mut self) {
        for op in self.module.children(self.module.top()) {
            self.visit(op, 0);
        }
        for (op, name) in std::mem::take(&mut self.references) {
            if !self.named.contains_key(&name) {
                self.error(op, format!("function @{name} not defined"));
            }
        }
    }

    /// Visits an operation after those inside it; it lies in `depth` regions of kernels.
    ///
    /// Recursion is bounded by the parser's limit on nesting.
    fn visit(&mut self, op: OpId, depth: usize) {
        let operation = self.module.op(op);
        let is_inside = self.module.parent_op(op) != Some(self.module.top());
        if *operation.name() == "builtin.module" {
            if is_inside || operation.attribute(COMPILED).is_none() {
                let message = "nested modules cannot be emitted to BEF files without the \
                               'tfrt.compiled' attribute, nor inside of functions";
                self.error(op, message);
            }
            return;
        }
        let is_function = *operation.name() == "func.func";
        if is_function && is_inside {
            return self.error(
                op,
                "functions inside of functions cannot be emitted to BEF files",
            );
        }
        if !is_function && !operation.regions().is_empty() && depth == MAX_REGION_DEPTH {
            let message = format!("regions nest more than {MAX_REGION_DEPTH} deep");
            return self.error(op, message);
        }
        for child in self.module.children(op) {
            self.visit(child, depth + usize::from(!is_function));
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

    fn error(&mut self, op: OpId, message: impl Into<String>) {
        self.diagnostics.push(self.module.error_at(op, message));
    }

    fn return_op(&mut self, op: OpId) {
        let block = self.module.op(op).parent();
        if block.and_then(|block| self.module.block(block).last()) != Some(op) {
            self.error(op, "return op must be at the end of its block");
        }
    }

    /// Looks at the results and operands of any operation; returns whether they are fine.
    fn values(&mut self, op: OpId) -> bool {
        let module = self.module;
        for result in module.op(op).results() {
            self.types.insert(module.value_type(*result));
        }
        let region = module.parent_region(op);
        let is_near = |operand: &ValueId| {
            let block = module.value_block(*operand);
            block.map(|block| module.block(block).parent()) == region
        };
        if module.op(op).operands().iter().all(is_near) {
            return true;
        }
        let message = "BEF executor only supports references to kernels within the current region";
        self.error(op, message);
        false
    }

    fn function(&mut self, op: OpId) {
        let module = self.module;
        let operation = module.op(op);
        let Some(name) = module.symbol_name(op).filter(|name| !name.is_empty()) else {
            return self.error(op, "functions need to have a name");
        };
        let name = Name::from(name);
        if operation.attribute("tfrt.native").is_some() {
            return self.native_function(op, name);
        }
        let region = operation.regions().first().copied();
        let Some((region, block)) = region.and_then(|r| Some((r, module.entry_block(r)?))) else {
            return self.error(op, "external functions are not allowed");
        };
        let last = module.block(block).last();
        let Some(return_op) = last.filter(|op| *module.op(*op).name() == "tfrt.return") else {
            let message = "all functions need to have a tfrt.return";
            return self.error(last.unwrap_or(op), message);
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
        self.body(kind, name, op, region);
    }

    fn native_function(&mut self, op: OpId, name: Name) {
        let signature = self
            .module
            .op(op)
            .attribute("function_type")
            .and_then(Attribute::as_type);
        let Some(signature) = signature.and_then(Type::as_function) else {
            return self.error(op, "functions need to have a type");
        };
        for ty in signature.inputs.iter().chain(&signature.results) {
            self.types.insert(ty);
        }
        self.strings.insert(name.clone());
        self.named.insert(name.clone(), self.functions.len() as u32);
        self.functions.push(Function {
            kind: FunctionKind::Native,
            name,
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
                self.error(return_op, message);
            } else if !returned.insert(*value) {
                let message = format!("return value {position} is duplicated in a sync function");
                self.error(return_op, message);
            }
        }
    }

    /// Makes a function of a region.
    fn body(&mut self, kind: FunctionKind, name: Name, op: OpId, region: RegionId) {
        let &[block] = self.module.region(region).blocks() else {
            return self.error(op, "multi-block regions cannot be emitted to BEF files");
        };
        for argument in self.module.block(block).arguments() {
            self.types.insert(self.module.value_type(*argument));
        }
        self.strings.insert(name.clone());
        self.functions.push(Function {
            kind,
            name,
            op,
            block: Some(block),
        });
    }

    fn kernel(&mut self, op: OpId) {
        let module = self.module;
        let operation = module.op(op);
        self.kernels.insert(operation.name());
        self.strings.insert(operation.name().clone());
        for (name, value) in operation.attributes() {
            if !is_for_compiler(name) {
                self.attribute(op, name, value);
            }
        }
        for region in operation.regions() {
            self.regions.insert(*region, self.functions.len() as u32);
            self.body(FunctionKind::Async, Name::from(""), op, *region);
        }
    }

    /// Writes everything that the walk has found.
    fn write(mut self) -> Result<BefBuffer, Diagnostics> {
        let type_names: Vec<Name> = self
            .types
            .entries
            .iter()
            .map(|ty| Name::from(ty.to_string()))
            .collect();
        self.strings.extend(type_names.iter().cloned());
        if let Some(name) = self.strings.iter().find(|name| name.contains('\0')) {
            let message = format!("BEF files cannot encode the name {:?}", name.as_str());
            return Err(single(message));
        }

        let mut writer = BefWriter::new();
        writer.strip = self.strip;
        for string in &self.strings {
            writer.strings.insert(string);
        }
        let offset_of = |name: &Name| writer.strings.get(name).expect("it was just inserted");
        let kernels = self.kernels.entries.iter().map(offset_of).collect();
        let types = type_names.iter().map(offset_of).collect();
        writer.kernels = kernels;
        writer.types = types;
        let offsets = self.write_attributes(&mut writer)?;
        functions::write(&self, &mut writer, &offsets);
        Ok(writer.finish())
    }
}
