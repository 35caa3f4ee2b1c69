//! Programs of operations on constants, to be run while a graph is compiled.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{Diagnostics, Module, OpId, OpState, ValueId};

use super::{Calls, Lowering, Values};

/// Returns a module whose `@main` takes nothing and returns some values of a graph.
///
/// `operations` are those that make the values, in order; none has a region, and none takes what is not
/// made by another one. `None` if one can't be lowered.
pub(in crate::passes) fn program(
    module: &mut Module,
    operations: &[OpId],
    returned: &[ValueId],
) -> Option<Module> {
    let mut diagnostics = Diagnostics::default();
    let lowering = Lowering {
        name: String::new(),
        module,
        diagnostics: &mut diagnostics,
        rows: tfrt_ops::Table::default(),
        calls: &Calls::default(),
        made: Vec::new(),
        n_control: 0,
        load_time: HashSet::new(),
        has_kernel: &|_| true,
    };
    let mut program = ConstantProgram::new(lowering);
    for &op in operations {
        program.add(op)?;
    }
    program.finish(returned)
}

/// A program under construction, in a module of its own.
struct ConstantProgram<'m, 'd> {
    lowering: Lowering<'m, 'd>,
    into: Module,
    body: tfrt_ir::BlockId,
    region: tfrt_ir::RegionId,
    /// The values of the program by those of the graph.
    values: Values,
}

impl<'m, 'd> ConstantProgram<'m, 'd> {
    fn new(lowering: Lowering<'m, 'd>) -> Self {
        let mut into = Module::new();
        let region = into.create_region();
        let body = into.create_block(region);
        ConstantProgram {
            lowering,
            into,
            body,
            region,
            values: HashMap::new(),
        }
    }

    fn add(&mut self, op: OpId) -> Option<()> {
        let state = self.lowering.known(op, &self.values)?;
        let made = self.into.create(state);
        self.into.append(self.body, made);
        let olds = self.lowering.module.op(op).results().iter().copied();
        let news = self.into.op(made).results().iter().copied();
        self.values.extend(olds.zip(news));
        Some(())
    }

    fn finish(mut self, returned: &[ValueId]) -> Option<Module> {
        let values = returned.iter().map(|value| self.values.get(value).copied());
        let values = values.collect::<Option<Vec<_>>>()?;
        let last = self
            .into
            .create(OpState::new("tfrt.return").operands(values));
        self.into.append(self.body, last);
        let function = super::function(&self.into, "main", self.region, self.body);
        let function = self.into.create(function);
        let top = self.into.body();
        self.into.append(top, function);
        Some(self.into)
    }
}
