//! The evaluator's form of a module: bodies with numbered slots.

use foldhash::{HashMap, HashMapExt};
use tfrt_ir::{BlockId, Module, Name, OpId, RegionId, Type, ValueId};

use crate::evaluate::Refusal;

/// The number of a body of a [`Plan`].
pub(crate) type BodyIndex = usize;

/// The number of a value's place in a frame of one body.
pub(crate) type Slot = usize;

/// A module as functions and bodies that can be run.
pub(crate) struct Plan<'m> {
    pub(crate) module: &'m Module,
    pub(crate) bodies: Vec<Body>,
    /// The functions in the order of the text.
    pub(crate) functions: Vec<Function>,
    by_name: HashMap<String, usize>,
}

/// A function with a name.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) n_arguments: usize,
    pub(crate) result_types: Vec<Type>,
}

/// The way in which a function runs.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Async(BodyIndex),
    Sync(BodyIndex),
    Native,
}

/// The body of a function or a region.
pub(crate) struct Body {
    pub(crate) arguments: Vec<Slot>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) results: Vec<Slot>,
    pub(crate) n_slots: usize,
}

/// An operation of a body.
pub(crate) struct Operation {
    pub(crate) op: OpId,
    pub(crate) name: Name,
    pub(crate) operands: Vec<Operand>,
    pub(crate) results: Vec<Slot>,
    pub(crate) regions: Vec<BodyIndex>,
    /// Whether the operation is marked as not waiting for values.
    pub(crate) nonstrict: bool,
}

/// An operand: a slot that is read.
pub(crate) struct Operand {
    pub(crate) slot: Slot,
    /// Whether nobody reads the slot afterwards.
    pub(crate) last: bool,
}

impl<'m> Plan<'m> {
    /// Makes the plan of a module.
    ///
    /// # Errors
    ///
    /// Structures that no program has: functions without a return, operands
    /// from outside of a region.
    pub(crate) fn new(module: &'m Module) -> Result<Plan<'m>, Refusal> {
        let mut plan = Plan {
            module,
            bodies: Vec::new(),
            functions: Vec::new(),
            by_name: HashMap::new(),
        };
        plan.add_functions(module.top())?;
        Ok(plan)
    }

    /// Returns the body of the function of this name.
    pub(crate) fn body_of(&self, name: &str) -> Option<BodyIndex> {
        match self.function(name)?.kind {
            Kind::Async(body) | Kind::Sync(body) => Some(body),
            Kind::Native => None,
        }
    }

    /// Returns the function of this name.
    pub(crate) fn function(&self, name: &str) -> Option<&Function> {
        self.by_name.get(name).map(|&index| &self.functions[index])
    }

    fn add_functions(&mut self, table: OpId) -> Result<(), Refusal> {
        for child in self.module.children(table).collect::<Vec<_>>() {
            let op = self.module.op(child);
            match op.name().as_str() {
                "builtin.module" if op.attribute("tfrt.compiled").is_none() => {
                    self.add_functions(child)?;
                }
                "func.func" => self.add_function(child)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn add_function(&mut self, id: OpId) -> Result<(), Refusal> {
        let op = self.module.op(id);
        let name = self.module.symbol_name(id).unwrap_or_default().to_owned();
        let ty = op
            .attribute("function_type")
            .and_then(|attribute| attribute.as_type());
        let ty = ty.and_then(|ty| ty.as_function());
        let ty = ty.ok_or_else(|| malformed(format!("'{name}' has no function type")))?;
        let (n_arguments, result_types) = (ty.inputs.len(), ty.results.clone());
        let kind = if op.attribute("tfrt.native").is_some() {
            Kind::Native
        } else {
            let region = op.regions().first().copied();
            let region = region.ok_or_else(|| malformed(format!("'{name}' has no body")))?;
            let body = self.add_body(region)?;
            match op.attribute("tfrt.sync") {
                Some(_) => Kind::Sync(body),
                None => Kind::Async(body),
            }
        };
        self.by_name
            .entry(name.clone())
            .or_insert(self.functions.len());
        self.functions.push(Function {
            name,
            kind,
            n_arguments,
            result_types,
        });
        Ok(())
    }

    fn add_body(&mut self, region: RegionId) -> Result<BodyIndex, Refusal> {
        let module = self.module;
        let block = match module.region(region).blocks() {
            [block] => *block,
            _ => return Err(malformed("a body has not exactly one block")),
        };
        let mut slots = slots_of(module, block);
        let n_slots = slots.len();
        let slot_of = |value: &ValueId| {
            let slot = slots.get(value).copied();
            slot.ok_or_else(|| malformed("an operand from outside of its region"))
        };
        let data = module.block(block);
        let arguments: Vec<Slot> = data
            .arguments()
            .iter()
            .map(slot_of)
            .collect::<Result<_, _>>()?;
        let Some((&end, steps)) = data.operations().split_last() else {
            return Err(malformed("an empty body"));
        };
        if module.op(end).name() != "tfrt.return" {
            return Err(malformed("a body without a return"));
        }
        let results: Vec<Slot> = module
            .op(end)
            .operands()
            .iter()
            .map(slot_of)
            .collect::<Result<_, _>>()?;
        let mut operations = Vec::with_capacity(steps.len());
        for &id in steps {
            let op = module.op(id);
            let operands = op
                .operands()
                .iter()
                .map(slot_of)
                .collect::<Result<Vec<_>, _>>()?;
            operations.push(Operation {
                op: id,
                name: op.name().clone(),
                operands: operands
                    .into_iter()
                    .map(|slot| Operand { slot, last: false })
                    .collect(),
                results: op.results().iter().map(slot_of).collect::<Result<_, _>>()?,
                regions: Vec::new(),
                nonstrict: op.attribute("bef.nonstrict").is_some(),
            });
        }
        slots.clear();
        mark_last_reads(&mut operations, &results, n_slots);
        for (operation, &id) in operations.iter_mut().zip(steps) {
            for &region in module.op(id).regions() {
                if !module.region(region).blocks().is_empty() {
                    operation.regions.push(self.add_body(region)?);
                }
            }
        }
        self.bodies.push(Body {
            arguments,
            operations,
            results,
            n_slots,
        });
        Ok(self.bodies.len() - 1)
    }
}

/// Assigns slots to the values of a block.
fn slots_of(module: &Module, block: BlockId) -> HashMap<ValueId, Slot> {
    let data = module.block(block);
    let made = data
        .operations()
        .iter()
        .flat_map(|&op| module.op(op).results());
    data.arguments()
        .iter()
        .chain(made)
        .copied()
        .zip(0..)
        .collect()
}

fn mark_last_reads(operations: &mut [Operation], results: &[Slot], n_slots: usize) {
    let mut read_later = vec![false; n_slots];
    for &slot in results {
        read_later[slot] = true;
    }
    for operation in operations.iter_mut().rev() {
        for operand in operation.operands.iter_mut().rev() {
            operand.last = !std::mem::replace(&mut read_later[operand.slot], true);
        }
    }
}

fn malformed(what: impl Into<String>) -> Refusal {
    Refusal::Malformed(what.into())
}
