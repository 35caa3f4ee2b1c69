//! [`GraphBuilder`]: builds the module of a model value by value.

use std::collections::HashMap;

use tfrt_ir::{BlockId, Location, Module, OpState, RegionId, Type, ValueId};

use crate::{Dim, Imported, ReadLimits, Signature};

/// A builder of a module with one function, `@main`. Operations are added in their order; values may have names, by
/// which later operations find them.
///
/// # Examples
///
/// ```
/// use tfrt_import::{Dim, GraphBuilder, ReadLimits};
/// use tfrt_ir::{Location, OpState, Type};
///
/// let mut graph = GraphBuilder::new(&ReadLimits::default());
/// let extents = [Dim::Named("N"), Dim::Known(3)];
/// graph.input("x", Type::F32, Some(&extents), Location::Unknown);
/// let x = graph.value("x")?;
/// graph.tensor("y", OpState::new("calc.relu").operand(x))?;
/// graph.output("y")?;
/// let text = graph.finish().module.to_string();
/// assert!(text.contains(r#""calc.relu"(%arg0) : (tensor<?x3xf32>) -> tensor<*x!onnx.unknown>"#));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct GraphBuilder {
    module: Module,
    region: RegionId,
    block: BlockId,
    signature: Signature,
    outputs: Vec<ValueId>,
    values: HashMap<String, ValueId>,
    n_operations: usize,
    most_operations: usize,
}

impl GraphBuilder {
    /// Begins a module, which may have as many operations as the limits say.
    pub fn new(limits: &ReadLimits) -> GraphBuilder {
        let mut module = Module::new();
        let region = module.create_region();
        let block = module.create_block(region);
        GraphBuilder {
            module,
            region,
            block,
            signature: Signature::default(),
            outputs: Vec::new(),
            values: HashMap::new(),
            n_operations: 0,
            most_operations: limits.nodes,
        }
    }

    /// Adds an input, a tensor, with its extents if its rank is known.
    pub fn input(
        &mut self,
        name: &str,
        element: Type,
        extents: Option<&[Dim<'_>]>,
        location: Location,
    ) -> ValueId {
        let ty = match extents {
            Some(extents) => Type::tensor(extents.iter().map(Dim::size).collect(), element),
            None => Type::unranked(element),
        };
        self.signature.input(name, extents);
        let value = self.module.add_argument(self.block, ty, location);
        self.name(name, value);
        value
    }

    /// Gives a value a name, which from now on belongs to no other value.
    pub fn name(&mut self, name: &str, value: ValueId) {
        self.values.insert(name.to_owned(), value);
    }

    /// Returns the value of a name.
    ///
    /// # Errors
    ///
    /// If there is none so far.
    pub fn value(&self, name: &str) -> Result<ValueId, String> {
        let found = self.values.get(name).copied();
        found.ok_or_else(|| {
            let name = name.escape_debug();
            format!("expected a value that was made before, found '{name}'")
        })
    }

    /// Adds an operation; returns its results.
    ///
    /// # Errors
    ///
    /// If the reader is allowed no more of them.
    pub fn add(&mut self, state: OpState) -> Result<&[ValueId], String> {
        if self.n_operations == self.most_operations {
            let most = self.most_operations;
            return Err(format!("expected at most {most} operations"));
        }
        self.n_operations += 1;
        let op = self.module.create(state);
        self.module.append(self.block, op);
        Ok(self.module.op(op).results())
    }

    /// Adds an operation with one result, a tensor of this name whose type and extents are inferred later.
    ///
    /// # Errors
    ///
    /// If the reader is allowed no more operations.
    pub fn tensor(&mut self, name: &str, state: OpState) -> Result<ValueId, String> {
        let state = state.result(Type::unranked(Type::dialect("!onnx.unknown")));
        let value = self.add(state)?[0];
        self.name(name, value);
        Ok(value)
    }

    /// Makes the value of a name an output.
    ///
    /// # Errors
    ///
    /// If there is none.
    pub fn output(&mut self, name: &str) -> Result<(), String> {
        let value = self.value(name)?;
        self.signature.output(name, None);
        self.outputs.push(value);
        Ok(())
    }

    /// Finishes the function, and returns the module.
    pub fn finish(mut self) -> Imported {
        let last = OpState::new("tfrt.return").operands(self.outputs);
        let last = self.module.create(last);
        self.module.append(self.block, last);
        let (region, signature) = (self.region, self.signature);
        signature.function(&mut self.module, region, Location::Unknown);
        self.module.into()
    }
}
