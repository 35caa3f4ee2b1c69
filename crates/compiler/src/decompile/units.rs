//! Decompiles compilation units: modules whose text is in attributes return to where symbols refer to them.

use std::collections::HashMap;

use tfrt_bef::{AttributeType, BefFile};
use tfrt_ir::{
    Attribute, BlockId, Diagnostic, Diagnostics, Location, Module, Name, OpId, OpState, RegionId,
    Source, ValueId, parse,
};

use crate::{COMPILED, codes};

/// A compilation unit, and its place in the module.
struct Unit<'a> {
    /// The names of the surrounding modules, then its own.
    path: Vec<&'a str>,
    text: &'a str,
}

/// Inserts the compilation units of a file at the start of `module`.
///
/// # Errors
///
/// A text that is no module.
pub(super) fn insert(
    file: &BefFile,
    module: &mut Module,
    warnings: &mut Diagnostics,
) -> Result<(), Diagnostics> {
    let mut units = units(file, warnings);
    // Outer modules hold inner ones.
    units.sort_by_key(|unit| unit.path.len());
    let n_before = module.block(module.body()).operations().len();
    let mut inserter = Inserter {
        module,
        warnings,
        tables: HashMap::new(),
    };
    for unit in &units {
        inserter.unit(unit)?;
    }
    let body = module.body();
    let mut operations = module.block(body).operations().to_vec();
    operations.rotate_left(n_before);
    module.set_operations(body, operations);
    Ok(())
}

/// Returns each unit once, in the order of the file.
fn units<'f>(file: &'f BefFile, warnings: &mut Diagnostics) -> Vec<Unit<'f>> {
    let mut units: Vec<Unit<'f>> = Vec::new();
    let mut known: HashMap<Vec<&str>, usize> = HashMap::new();
    for (offset, kind) in file.attribute_types() {
        let symbol = match kind {
            AttributeType::Symbol => file.attribute(offset).symbol(),
            _ => None,
        };
        let Some(symbol) = symbol else { continue };
        let mut path = vec![symbol.root];
        path.extend(&symbol.nested);
        path.pop();
        if path.is_empty() {
            let root = symbol.root;
            warnings.push(Diagnostic::warning(
                codes::LOST_MODULE,
                format!(
                    "@{root} is a symbol of the outermost module, which the file does not hold"
                ),
            ));
            continue;
        }
        let text = symbol.module;
        match known.get(&path) {
            None => {
                known.insert(path.clone(), units.len());
                units.push(Unit { path, text });
            }
            Some(first) if units[*first].text == text => {}
            Some(_) => warnings.push(Diagnostic::warning(
                codes::LOST_MODULE,
                format!(
                    "the file holds another text for the module @{}; only the first is shown",
                    path.join("::@")
                ),
            )),
        }
    }
    units
}

/// The state of inserting units.
struct Inserter<'i> {
    module: &'i mut Module,
    warnings: &'i mut Diagnostics,
    /// The symbols of the modules that units were inserted into.
    tables: HashMap<OpId, HashMap<String, OpId>>,
}

impl Inserter<'_> {
    fn unit(&mut self, unit: &Unit<'_>) -> Result<(), Diagnostics> {
        let (name, around) = unit.path.split_last().expect("paths have a name");
        let mut table = self.module.top();
        for outer in around {
            table = match self.symbol(table, outer) {
                Some(found) => found,
                None => self.empty_module(table, outer),
            };
        }
        if self.symbol(table, name).is_some() {
            return Ok(());
        }
        let source = Source::new(format!("@{}", unit.path.join("::@")), unit.text);
        let parsed = parse(&source).map_err(|mut reasons| {
            reasons.push(Diagnostic::error(
                codes::BROKEN_UNIT,
                "Failed to parse compilation unit.",
            ));
            reasons
        })?;
        if parsed.symbol_name(parsed.top()) != Some(name) {
            self.warnings.push(Diagnostic::warning(
                codes::LOST_MODULE,
                format!("the text of the module @{name} has another name"),
            ));
        }
        let copy = copy(&parsed, parsed.top(), self.module);
        self.append(table, name, copy);
        Ok(())
    }

    /// Finds a symbol directly inside an operation.
    fn symbol(&mut self, table: OpId, name: &str) -> Option<OpId> {
        let module = &*self.module;
        let symbols = self.tables.entry(table).or_insert_with(|| {
            let symbols = module.symbol_table(table).into_iter();
            symbols.map(|(name, op)| (name.to_owned(), op)).collect()
        });
        symbols.get(name).copied()
    }

    /// Makes a module whose own text no symbol of the file needs.
    fn empty_module(&mut self, table: OpId, name: &str) -> OpId {
        let region = self.module.create_region();
        self.module.create_block(region);
        let state = OpState::new("builtin.module")
            .attribute("sym_name", Attribute::string(name))
            .attribute(COMPILED, Attribute::Unit)
            .region(region);
        let made = self.module.create(state);
        self.append(table, name, made);
        made
    }

    /// Appends an operation to another's only block, if it has one.
    fn append(&mut self, table: OpId, name: &str, op: OpId) {
        let region = self.module.op(table).regions().first().copied();
        if let Some(block) = region.and_then(|region| self.module.entry_block(region)) {
            self.module.append(block, op);
        }
        let symbols = self.tables.entry(table).or_default();
        symbols.insert(name.to_owned(), op);
    }
}

/// Copies an operation with everything in it to another module, without locations, which refer to a text that does
/// not exist.
fn copy(from: &Module, op: OpId, to: &mut Module) -> OpId {
    let mut copier = Copier {
        from,
        to,
        values: HashMap::new(),
        blocks: HashMap::new(),
        operands: Vec::new(),
    };
    let copy = copier.operation(op);
    copier.connect();
    copy
}

/// The state of copying an operation to another module.
struct Copier<'c> {
    from: &'c Module,
    to: &'c mut Module,
    values: HashMap<ValueId, ValueId>,
    blocks: HashMap<BlockId, BlockId>,
    /// Operations with operands, and their copies.
    operands: Vec<(OpId, OpId)>,
}

impl Copier<'_> {
    /// Copies an operation without its operands, which may be defined behind it.
    ///
    /// Recursion is bounded by the parser's limit on nesting.
    fn operation(&mut self, op: OpId) -> OpId {
        let data = self.from.op(op);
        let mut state = OpState::new(data.name().clone());
        for (name, value) in data.attributes() {
            state = state.attribute(Name::clone(name), value.clone());
        }
        for region in data.regions() {
            state = state.region(self.region(*region));
        }
        for block in data.successors() {
            if let Some(copy) = self.blocks.get(block) {
                state = state.successor(*copy);
            }
        }
        let types = data.results().iter();
        state = state.results(types.map(|result| self.from.value_type(*result).clone()));
        let copy = self.to.create(state);
        for (result, made) in data.results().iter().zip(self.to.op(copy).results()) {
            self.values.insert(*result, *made);
        }
        if !data.operands().is_empty() {
            self.operands.push((op, copy));
        }
        copy
    }

    fn region(&mut self, region: RegionId) -> RegionId {
        let copy = self.to.create_region();
        let blocks = self.from.region(region).blocks();
        for block in blocks {
            let made = self.to.create_block(copy);
            self.blocks.insert(*block, made);
            for argument in self.from.block(*block).arguments() {
                let ty = self.from.value_type(*argument).clone();
                let value = self.to.add_argument(made, ty, Location::Unknown);
                self.values.insert(*argument, value);
            }
        }
        for block in blocks {
            for op in self.from.block(*block).operations() {
                let op = self.operation(*op);
                self.to.append(self.blocks[block], op);
            }
        }
        copy
    }

    /// Sets the operands of the copies.
    fn connect(self) {
        for (op, copy) in self.operands {
            let operands = self.from.op(op).operands().iter();
            let operands: Vec<ValueId> = operands
                .filter_map(|operand| self.values.get(operand).copied())
                .collect();
            self.to.set_operands(copy, &operands);
        }
    }
}
