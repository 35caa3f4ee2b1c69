//! [`Legalize`]: the meaning of a format's operations, as data; and [`Dialects`], the formats that are known.
//!
//! An importer takes a model as it is written, in a dialect of the format's own. The pass `legalize` makes operations of
//! graphs of it: by name, where an operation is a row of [`tfrt_ops`], by a function that puts several in its place where
//! it is not. What the format has a row of its own for stays, and becomes the kernel `cpu.DIALECT.ROW`.

use std::fmt;
use std::sync::LazyLock;

use tfrt_ir::{Attribute, Module, Name, OpId, OpState, Type, ValueId};
use tfrt_ops::{Table, names};

use crate::onnx::Evaluator;

/// The meaning of the operations of a format.
#[derive(Clone, Copy, Debug)]
pub struct Legalize {
    /// The format's dialect: its operations are called `DIALECT.NAME`.
    pub dialect: &'static str,
    /// Operations that are rows, under their names without the dialect.
    pub names: &'static [names::Name],
    /// Operations that are replaced by several, with the functions that do it.
    pub expand: &'static [(&'static str, ExpandFn)],
    /// Attributes that are ignored: values say the same, or nothing here asks for what they say.
    pub unread: &'static [&'static str],
}

impl Legalize {
    /// Makes a format without operations.
    pub const fn new(dialect: &'static str) -> Legalize {
        Legalize {
            dialect,
            names: &[],
            expand: &[],
            unread: &[],
        }
    }
}

/// Replaces an operation by others. Returns a value for each of its results, or an error message; no values for an operation
/// with results that it does not stand for in this form.
pub type ExpandFn = fn(&mut Expansion<'_>) -> Result<Vec<ValueId>, String>;

/// ONNX. The passes behind `legalize` look through its names themselves, so its operations stay as they are written.
pub const ONNX: Legalize = Legalize {
    dialect: "onnx",
    names: names::onnx::NAMES,
    expand: &[],
    unread: &[],
};

/// TensorFlow: SavedModels and frozen graphs.
pub const TF: Legalize = Legalize {
    dialect: "tf",
    names: names::tf::NAMES,
    expand: crate::passes::tf::EXPAND,
    unread: names::tf::UNREAD,
};

/// StableHLO. The pass `legalize` replaces whole functions, since what an operation becomes depends on shapes and on what is
/// in its regions. So no operation of it is left when names are looked at.
pub const STABLEHLO: Legalize = Legalize::new("stablehlo");

/// The formats and the rows that a compilation knows.
#[derive(Clone, Debug)]
pub struct Dialects {
    /// The formats.
    pub formats: Vec<Legalize>,
    /// The built-in rows, and added ones.
    pub rows: Table,
}

impl Default for Dialects {
    /// Returns the built-in formats and rows.
    fn default() -> Dialects {
        Dialects {
            formats: vec![ONNX, TF, STABLEHLO],
            rows: Table::default(),
        }
    }
}

static BUILTIN: LazyLock<Dialects> = LazyLock::new(Dialects::default);

/// The context of a pass: everything that it knows beside the module.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The evaluator, which runs kernels.
    pub evaluator: &'a dyn Evaluator,
    /// The known formats and rows.
    pub dialects: &'a Dialects,
}

impl<'a> Context<'a> {
    /// Makes a context with the built-in dialects.
    pub fn new(evaluator: &'a dyn Evaluator) -> Context<'a> {
        Context {
            evaluator,
            dialects: &BUILTIN,
        }
    }

    /// Sets the known formats and rows.
    #[must_use]
    pub fn dialects(self, dialects: &'a Dialects) -> Context<'a> {
        Context { dialects, ..self }
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("dialects", &self.dialects)
            .finish_non_exhaustive()
    }
}

/// The replacement of one operation, which is built operation by operation.
pub struct Expansion<'m> {
    module: &'m mut Module,
    op: OpId,
    made: Vec<OpId>,
}

impl<'m> Expansion<'m> {
    pub(crate) fn new(module: &'m mut Module, op: OpId) -> Expansion<'m> {
        Expansion {
            module,
            op,
            made: Vec::new(),
        }
    }

    pub(crate) fn finish(self) -> Vec<OpId> {
        self.made
    }

    /// Returns the module, to evaluate constants.
    pub(crate) fn module_mut(&mut self) -> &mut Module {
        self.module
    }

    /// Returns the module, for types and constants.
    pub fn module(&self) -> &Module {
        self.module
    }

    /// Returns the operation that is replaced.
    pub fn op(&self) -> OpId {
        self.op
    }

    /// Returns an operand of the operation.
    ///
    /// # Errors
    ///
    /// If it has fewer.
    pub fn operand(&self, index: usize) -> Result<ValueId, String> {
        let operands = self.module.op(self.op).operands();
        let found = operands.len();
        let missing = || format!("expected an operand {index}, found {found} operands");
        operands.get(index).copied().ok_or_else(missing)
    }

    /// Returns an attribute of the operation.
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.module.op(self.op).attribute(name)
    }

    /// Appends an operation with one result, whose type is inferred later.
    pub fn add(
        &mut self,
        name: &str,
        operands: &[ValueId],
        attributes: &[(&str, Attribute)],
    ) -> ValueId {
        self.add_typed(name, operands, attributes, &[unknown()])[0]
    }

    /// Appends an operation with results of given types, such as a row of the format that returns a chain.
    pub fn add_typed(
        &mut self,
        name: &str,
        operands: &[ValueId],
        attributes: &[(&str, Attribute)],
        results: &[Type],
    ) -> Vec<ValueId> {
        let mut state = OpState::new(name)
            .operands(operands.iter().copied())
            .results(results.iter().cloned());
        for (name, value) in attributes {
            state = state.attribute(Name::from(*name), value.clone());
        }
        let location = self.module.op(self.op).location().clone();
        let op = self.module.create(state.location(location));
        self.made.push(op);
        self.module.op(op).results().to_vec()
    }

    /// Appends a constant tensor.
    pub fn constant(&mut self, value: Attribute) -> ValueId {
        self.add("graph.constant", &[], &[("value", value)])
    }
}

/// Returns the type of a tensor of which nothing is known.
pub(crate) fn unknown() -> Type {
    Type::unranked(Type::dialect("!onnx.unknown"))
}
