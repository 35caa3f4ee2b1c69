//! The verifier: structure, dominance, symbols, definitions of a module.
//!
//! Operations without an entry in the dialect tables are checked for structure
//! only, unless their dialect is one that says it has no others ([`Dialects`]);
//! whether a kernel of that name exists is nobody's business here. Every error is
//! reported, with MLIR's words where MLIR has some.

mod definition;
mod dominance;

use std::collections::{HashMap, HashSet};

use crate::{
    attributes::SymbolRef,
    codes,
    diagnostic::Diagnostics,
    dialect::{Dialects, Entry, Traits},
    module::{BlockId, Module, OpId, RegionId},
    op_spans, printer,
};

use dominance::Dominance;

pub use definition::{Mistake, mistakes};

/// A module under verification, with the symbols of each symbol table.
pub struct VerifyContext<'m> {
    /// The module.
    pub module: &'m Module,
    symbols: HashMap<OpId, HashMap<&'m str, OpId>>,
}

/// Checks a module.
///
/// # Errors
///
/// Every error that was found, sorted by place, at most
/// [`Diagnostics::MAX_KEPT`] of them.
///
/// # Examples
///
/// ```
/// use tfrt_ir::{parse, verify, Source};
///
/// let text = "func.func @f(%x: i32) {\n  tfrt.return %x : i32\n}";
/// let errors = verify(&parse(&Source::new("f.mlir", text))?).unwrap_err();
/// let message = "'tfrt.return' op has 1 operands, but enclosing function returns 0";
/// assert_eq!(errors.iter().next().map(|error| error.message()), Some(message));
/// # Ok::<(), tfrt_ir::Diagnostics>(())
/// ```
pub fn verify(module: &Module) -> Result<(), Diagnostics> {
    verify_in(module, &Dialects::default(), Chains::Required)
}

/// Checks a module whose chains are still to come: an operation may lack the
/// chain that it takes, and the one that it gives.
///
/// # Errors
///
/// As for [`verify`].
///
/// # Examples
///
/// ```
/// use tfrt_ir::{parse, verify, verifier::verify_unsequenced, Source};
///
/// let text = "func.func @f(%x: i32) {\n  tfrt.print.i32 %x\n  tfrt.return\n}";
/// let module = parse(&Source::new("f.mlir", text))?;
/// assert!(verify_unsequenced(&module).is_ok());
/// assert!(verify(&module).is_err());
/// # Ok::<(), tfrt_ir::Diagnostics>(())
/// ```
pub fn verify_unsequenced(module: &Module) -> Result<(), Diagnostics> {
    verify_in(module, &Dialects::default(), Chains::Optional)
}

/// Whether operations must have the chains that they declare to take and to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chains {
    /// Operations must have all chains.
    Required,
    /// An operation may lack one chain that it takes, and one that it gives: they are still to
    /// come.
    Optional,
}

/// Checks a module whose operations may be of these dialects.
///
/// # Errors
///
/// See [`verify`].
pub fn verify_in(module: &Module, dialects: &Dialects, chains: Chains) -> Result<(), Diagnostics> {
    let context = VerifyContext {
        module,
        symbols: HashMap::new(),
    };
    let mut verifier = Verifier {
        context,
        dialects,
        chains,
        dominance: Dominance::new(module),
        wrong: HashSet::new(),
        diagnostics: Diagnostics::default(),
    };
    verifier.collect_symbols(module.top());
    verifier.operation(module.top());
    verifier.diagnostics.into_result()
}

impl<'m> VerifyContext<'m> {
    /// Returns the operation that a symbol means where `op` stands: in the nearest module around
    /// that has it.
    pub fn lookup(&self, op: OpId, symbol: &SymbolRef) -> Option<OpId> {
        let mut table = self.module.nearest_symbol_table(op);
        while let Some(at) = table {
            if let Some(found) = self.lookup_in(at, symbol) {
                return Some(found);
            }
            table = self.module.nearest_symbol_table(at);
        }
        None
    }

    fn lookup_in(&self, table: OpId, symbol: &SymbolRef) -> Option<OpId> {
        let mut found = *self.symbols.get(&table)?.get(symbol.root.as_str())?;
        for name in &*symbol.nested {
            found = *self.symbols.get(&found)?.get(name.as_str())?;
        }
        Some(found)
    }
}

struct Verifier<'m> {
    context: VerifyContext<'m>,
    dialects: &'m Dialects,
    chains: Chains,
    dominance: Dominance,
    /// The operations that have a mistake.
    wrong: HashSet<OpId>,
    diagnostics: Diagnostics,
}

impl<'m> Verifier<'m> {
    fn module(&self) -> &'m Module {
        self.context.module
    }

    /// Fills the symbol tables, and reports names that occur twice in one.
    fn collect_symbols(&mut self, op: OpId) {
        let module = self.module();
        let is_table = |op: OpId| {
            module
                .op(op)
                .definition()
                .is_some_and(|definition| definition.is(Traits::SYMBOL_TABLE))
        };
        if !is_table(op) {
            return;
        }
        let mut table: HashMap<&'m str, OpId> = HashMap::new();
        for child in module.children(op) {
            if let Some(name) = module.symbol_name(child) {
                match table.get(name) {
                    None => {
                        table.insert(name, child);
                    }
                    Some(&first) => {
                        let message = format!("redefinition of symbol named '{name}'");
                        let error = module.error_at(codes::REDEFINED_SYMBOL, child, message);
                        let at = op_spans::symbol(module, child, name);
                        let error = error.narrowed(module.source(), at);
                        let note = "see existing symbol definition here";
                        let whole = module.op(first).span();
                        let span = op_spans::symbol(module, first, name).unwrap_or(whole);
                        self.diagnostics
                            .push(error.note_at(note, module.source(), span));
                    }
                }
            }
            self.collect_symbols(child);
        }
        self.context.symbols.insert(op, table);
    }

    /// Checks an operation and all within it.
    fn operation(&mut self, op: OpId) {
        if self.diagnostics.is_full() {
            return;
        }
        let module = self.module();
        let data = module.op(op);
        self.terminator_place(op);
        let before = self.diagnostics.len();
        if let Some(definition) = self.definition(op) {
            definition::check(module, op, &definition, self.chains, &mut self.diagnostics);
            if before == self.diagnostics.len()
                && let Some(verify) = definition.verifier()
                && !(definition.is(Traits::TERMINATOR) && self.takes_from_wrong(op))
            {
                verify(&self.context, op, &mut self.diagnostics);
            }
        }
        if data.definition().is_none() && self.dialects.is_unknown(data.name()) {
            self.unknown(op);
        }
        if before < self.diagnostics.len() {
            self.wrong.insert(op);
        }
        // How its regions end has been told then.
        let mut told = self.diagnostics.iter().skip(before);
        let lacks_return = told.any(|told| told.code() == Some(codes::NO_RETURN_IN_REGION));
        for &region in data.regions() {
            self.region(op, region, lacks_return);
        }
        self.dominance
            .check_operands(module, op, &mut self.diagnostics);
    }

    /// Returns the entry that an operation is checked against.
    fn definition(&self, op: OpId) -> Option<Entry> {
        let data = self.module().op(op);
        match data.definition() {
            Some(definition) => Some(Entry::Static(definition)),
            None => self.dialects.lookup_added(data.name()),
        }
    }

    /// Returns whether an operation has an entry that says this of it.
    fn has(&self, op: OpId, traits: Traits) -> bool {
        self.definition(op)
            .is_some_and(|definition| definition.is(traits))
    }

    /// Reports that a dialect has no operation of a name.
    #[cold]
    fn unknown(&mut self, op: OpId) {
        let module = self.module();
        let name = module.op(op).name();
        let (dialect, _) = name.split_once('.').unwrap_or_default();
        let message = format!("is no operation of the dialect '{dialect}'");
        let error = module.op_error(codes::UNKNOWN_OPERATION, op, message);
        self.diagnostics
            .push(match self.dialects.nearest_added(name) {
                Some(closest) => error.help(format!("there is an operation '{closest}'")),
                None => error,
            });
    }

    /// Returns whether an operand is a result of an operation that something is wrong with: whether it may be
    /// returned is not worth telling then.
    fn takes_from_wrong(&self, op: OpId) -> bool {
        let module = self.module();
        let mut makers = module.op(op).operands().iter();
        makers.any(|&operand| {
            let maker = module.defining_op(operand);
            maker.is_some_and(|maker| self.wrong.contains(&maker))
        })
    }

    fn terminator_place(&mut self, op: OpId) {
        let module = self.module();
        let data = module.op(op);
        let Some(block) = data.parent() else {
            return;
        };
        if module.block(block).last() == Some(op) {
            return;
        }
        if self.has(op, Traits::TERMINATOR) {
            let error = module.op_error(
                codes::MISPLACED_TERMINATOR,
                op,
                "must be the last operation in the parent block",
            );
            self.diagnostics.push(error);
        }
        if !data.successors().is_empty() {
            let message = "operation with block successors must terminate its parent block";
            self.diagnostics
                .push(module.error_at(codes::MISPLACED_TERMINATOR, op, message));
        }
    }

    fn region(&mut self, op: OpId, region: RegionId, lacks_return: bool) {
        let module = self.module();
        let blocks = module.region(region).blocks();
        let mut errors = Vec::new();
        self.dominance.enter_region(module, region, |user| {
            errors.push(module.op_error(
                codes::JUMP_TO_ENTRY,
                user,
                "entry block of region may not have predecessors",
            ));
        });
        errors
            .into_iter()
            .for_each(|error| self.diagnostics.push(error));
        for &block in blocks {
            if !lacks_return {
                self.block(op, block, blocks.len() == 1);
            }
            for &child in module.block(block).operations() {
                let is_told = lacks_return && module.op(child).name() == "func.return";
                if !is_told {
                    self.operation(child);
                }
            }
        }
    }

    fn block(&mut self, op: OpId, block: BlockId, single: bool) {
        let module = self.module();
        let definition = self.definition(op);
        let needs_terminator = match definition {
            Some(ref definition) => !definition.is(Traits::GRAPH),
            None => !single,
        };
        if !needs_terminator {
            return;
        }
        let Some(last) = module.block(block).last() else {
            let span = module.block(block).span();
            let message = "empty block: expect at least a terminator";
            let error = match module.source() {
                Some(source) if !span.is_none() => {
                    crate::Diagnostic::error(codes::EMPTY_BLOCK, message).at(source, span)
                }
                _ => module.error_at(codes::EMPTY_BLOCK, op, message),
            };
            self.diagnostics.push(error);
            return;
        };
        let ends_block = match self.definition(last) {
            Some(definition) => definition.is(Traits::TERMINATOR),
            // An operation that nobody knows may end a block.
            None => true,
        };
        // One that stands too early has been told.
        let has_terminator = || {
            let mut operations = module.block(block).operations().iter();
            operations.any(|&op| self.has(op, Traits::TERMINATOR))
        };
        if !ends_block && !has_terminator() {
            let text = printer::print_op_line(module, last);
            let message = format!("block with no terminator, has {text}");
            let error = module.error_at(codes::NO_TERMINATOR, last, message);
            let help = match module.op(op).name().as_str() {
                "func.func" => "a function ends in tfrt.return",
                name if name.starts_with("graph.") => "a region of a graph ends in graph.yield",
                _ => "a region ends in tfrt.return",
            };
            self.diagnostics.push(error.help(help));
        }
    }
}
