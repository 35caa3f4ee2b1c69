//! What an operation is, as data: one entry per operation, in one place.
//!
//! Parser, printer, verifier and documentation all read these entries. The
//! tables themselves are in `dialects/`, one file per dialect.

mod effects;
pub(crate) mod format;
pub(crate) mod function;

use std::{collections::HashMap, sync::LazyLock};

use crate::{
    diagnostic::Diagnostics,
    dialects,
    module::OpId,
    name::TextHash,
    types::{FloatKind, Type},
    verifier::VerifyContext,
};

pub use effects::Effects;
pub use format::Format;

/// Everything that is known about one operation.
#[derive(Clone, Debug)]
pub struct OpDef {
    name: &'static str,
    summary: &'static str,
    operands: Vec<ValueDef>,
    rest: Option<ValueDef>,
    results: Results,
    attributes: Vec<AttributeDef>,
    regions: usize,
    traits: Traits,
    effects: Effects,
    format_text: Option<&'static str>,
    format: Option<Format>,
    verify: Option<VerifyOp>,
}

/// A check of one operation beyond what its entry says as data.
pub type VerifyOp = fn(&VerifyContext<'_>, OpId, &mut Diagnostics);

/// An operand: its name, for messages and documentation, and what it must be.
#[derive(Clone, Copy, Debug)]
pub struct ValueDef {
    /// What it is for.
    pub name: &'static str,
    /// What its type must be.
    pub kind: ValueKind,
}

/// What the type of a value must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is named after the type that it stands for"
)]
pub enum ValueKind {
    /// Any type at all.
    Any,
    I1,
    I32,
    I64,
    UI32,
    UI64,
    BF16,
    F16,
    F32,
    F64,
    Complex64,
    Complex128,
    Chain,
    String,
    Device,
    /// A type of a dialect, with its `!`.
    Dialect(&'static str),
}

/// What the results of an operation are.
#[derive(Clone, Debug)]
pub enum Results {
    /// These, in this order.
    Exactly(Vec<ValueKind>),
    /// Any number of any type.
    Any,
    /// One for each operand behind the declared ones, of the same type.
    LikeRest,
}

/// An attribute that an operation has.
#[derive(Clone, Copy, Debug)]
pub struct AttributeDef {
    /// Its name.
    pub name: &'static str,
    /// What it must be.
    pub kind: AttributeKind,
    /// Whether the generic verifier asks for it. Some operations have a text
    /// of their own for a missing attribute.
    pub required: bool,
}

/// What an attribute must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// Anything.
    Any,
    /// An integer or float of the type; written without it where the
    /// operation's own form has a place for it.
    Typed(ValueKind),
    /// A string.
    String,
    /// `@name`.
    FlatSymbol,
    /// `[@a, @b]`.
    FlatSymbols,
    /// A type attribute that holds a function type.
    FunctionType,
}

/// Properties of operations, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits(u16);

impl Traits {
    /// Has no effect: may be removed if unused, or merged with its like.
    pub const PURE: Traits = Traits(1);
    /// Ends a block.
    pub const TERMINATOR: Traits = Traits(1 << 1);
    /// Its regions see no values from outside.
    pub const ISOLATED: Traits = Traits(1 << 2);
    /// Defines a symbol, `sym_name`.
    pub const SYMBOL: Traits = Traits(1 << 3);
    /// Holds symbols.
    pub const SYMBOL_TABLE: Traits = Traits(1 << 4);
    /// Blocks of its regions need no terminator, and order means nothing there.
    pub const GRAPH: Traits = Traits(1 << 5);
    /// Each of its regions has exactly one block.
    pub const SINGLE_BLOCK: Traits = Traits(1 << 6);
    /// Arguments of its regions take the place, and in text the names, of its
    /// operands.
    pub const SHADOWS_OPERANDS: Traits = Traits(1 << 7);
    /// As [`Traits::SHADOWS_OPERANDS`] for the first two operands and the rest.
    pub const SHADOWS_RANGE: Traits = Traits(1 << 8);
    /// Swapping its operands changes nothing.
    pub const COMMUTATIVE: Traits = Traits(1 << 9);
    /// Its kernel is synchronous: functions marked `tfrt.sync` may use it.
    pub const SYNC: Traits = Traits(1 << 10);

    /// Is known as a kernel only: its entry is documentation, and programs are
    /// not checked against it. Kernels ignore a chain that they do not need.
    pub const KERNEL_ONLY: Traits = Traits(1 << 11);

    /// Returns whether all of `other` are among these.
    pub fn contains(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }
}

impl OpDef {
    /// Starts the entry of an operation without operands, results and form.
    pub(crate) fn new(name: &'static str) -> OpDef {
        OpDef {
            name,
            summary: "",
            operands: Vec::new(),
            rest: None,
            results: Results::Exactly(Vec::new()),
            attributes: Vec::new(),
            regions: 0,
            traits: Traits::default(),
            effects: Effects::default(),
            format_text: None,
            format: None,
            verify: None,
        }
    }

    pub(crate) fn summary(mut self, summary: &'static str) -> OpDef {
        self.summary = summary;
        self
    }

    pub(crate) fn operand(mut self, name: &'static str, kind: ValueKind) -> OpDef {
        self.operands.push(ValueDef { name, kind });
        self
    }

    /// Any number of further operands.
    pub(crate) fn rest(mut self, name: &'static str) -> OpDef {
        self.rest = Some(ValueDef {
            name,
            kind: ValueKind::Any,
        });
        self
    }

    pub(crate) fn results(mut self, kinds: &[ValueKind]) -> OpDef {
        self.results = Results::Exactly(kinds.to_vec());
        self
    }

    pub(crate) fn any_results(mut self) -> OpDef {
        self.results = Results::Any;
        self
    }

    pub(crate) fn results_like_rest(mut self) -> OpDef {
        self.results = Results::LikeRest;
        self
    }

    pub(crate) fn attribute(mut self, name: &'static str, kind: AttributeKind) -> OpDef {
        self.attributes.push(AttributeDef {
            name,
            kind,
            required: true,
        });
        self
    }

    /// An attribute whose absence the operation's own check reports, or that
    /// may be absent.
    pub(crate) fn unchecked(mut self, name: &'static str, kind: AttributeKind) -> OpDef {
        self.attributes.push(AttributeDef {
            name,
            kind,
            required: false,
        });
        self
    }

    pub(crate) fn regions(mut self, regions: usize) -> OpDef {
        self.regions = regions;
        self
    }

    pub(crate) fn traits(mut self, traits: &[Traits]) -> OpDef {
        self.traits = Traits(traits.iter().fold(self.traits.0, |all, one| all | one.0));
        self
    }

    pub(crate) fn pure(self) -> OpDef {
        self.traits(&[Traits::PURE])
    }

    pub(crate) fn format(mut self, format: &'static str) -> OpDef {
        self.format_text = Some(format);
        self.format = Some(Format::parse(format));
        self
    }

    pub(crate) fn verify(mut self, verify: VerifyOp) -> OpDef {
        self.verify = Some(verify);
        self
    }
}

impl OpDef {
    /// Returns the full name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns one sentence on what it does.
    pub fn summary_text(&self) -> &'static str {
        self.summary
    }

    /// Returns the operands that it always has.
    pub fn operand_defs(&self) -> &[ValueDef] {
        &self.operands
    }

    /// Returns what further operands are, if it takes any number of them.
    pub fn rest_def(&self) -> Option<&ValueDef> {
        self.rest.as_ref()
    }

    /// Returns what its results are.
    pub fn result_defs(&self) -> &Results {
        &self.results
    }

    /// Returns its attributes.
    pub fn attribute_defs(&self) -> &[AttributeDef] {
        &self.attributes
    }

    /// Returns the number of its regions.
    pub fn n_regions(&self) -> usize {
        self.regions
    }

    /// Returns its properties.
    pub fn trait_set(&self) -> Traits {
        self.traits
    }

    /// Returns whether it has all these properties.
    pub fn is(&self, traits: Traits) -> bool {
        self.traits.contains(traits)
    }

    /// Returns the description of its own textual form, if it has one.
    pub fn format_text(&self) -> Option<&'static str> {
        self.format_text
    }

    pub(crate) fn assembly(&self) -> Option<&Format> {
        self.format.as_ref()
    }

    pub(crate) fn verifier(&self) -> Option<VerifyOp> {
        self.verify
    }

    /// Returns the position of the chain that it declares to take, if it does.
    pub fn chain_operand(&self) -> Option<usize> {
        let is_chain = |operand: &ValueDef| operand.kind == ValueKind::Chain;
        self.operands.iter().position(is_chain)
    }

    /// Returns the position of the chain that it declares to give, if it does.
    pub fn chain_result(&self) -> Option<usize> {
        match &self.results {
            Results::Exactly(kinds) => kinds.iter().position(|kind| *kind == ValueKind::Chain),
            Results::Any | Results::LikeRest => None,
        }
    }

    /// Returns the position of the operand that each argument of its regions
    /// takes the place of, for a given number of operands.
    pub fn shadowed_operands(&self, n_operands: usize) -> Vec<usize> {
        let rest = self.operands.len()..n_operands;
        if self.is(Traits::SHADOWS_RANGE) {
            return (0..2).chain(rest).collect();
        }
        rest.collect()
    }
}

impl ValueKind {
    /// Returns the type, unless any will do.
    pub fn ty(self) -> Option<Type> {
        let ty = match self {
            ValueKind::Any => return None,
            ValueKind::I1 => Type::I1,
            ValueKind::I32 => Type::I32,
            ValueKind::I64 => Type::I64,
            ValueKind::UI32 => Type::UI32,
            ValueKind::UI64 => Type::UI64,
            ValueKind::BF16 => Type::BF16,
            ValueKind::F16 => Type::F16,
            ValueKind::F32 => Type::F32,
            ValueKind::F64 => Type::F64,
            ValueKind::Complex64 => Type::complex(Type::F32),
            ValueKind::Complex128 => Type::complex(Type::F64),
            ValueKind::Chain => Type::chain(),
            ValueKind::String => STRING.clone(),
            ValueKind::Device => DEVICE.clone(),
            ValueKind::Dialect(text) => Type::dialect(text),
        };
        Some(ty)
    }

    /// Returns whether a type is allowed.
    pub fn accepts(self, ty: &Type) -> bool {
        match self {
            ValueKind::Any => true,
            ValueKind::Chain => ty.is_chain(),
            ValueKind::Dialect(text) => ty.as_dialect() == Some(text),
            _ => self.ty().as_ref() == Some(ty),
        }
    }

    /// Returns MLIR's words for it.
    pub fn description(self) -> String {
        match self.ty() {
            None => "any type".to_owned(),
            Some(Type::Integer(integer)) => {
                let sign = match self {
                    ValueKind::UI32 | ValueKind::UI64 => "unsigned",
                    _ => "signless",
                };
                format!("{}-bit {sign} integer", integer.width)
            }
            Some(Type::Float(FloatKind::BF16)) => "bfloat16 type".to_owned(),
            Some(Type::Float(kind)) => format!("{}-bit float", kind.width()),
            Some(Type::Complex(element)) => format!("complex type with {element} elements"),
            Some(ty) => format!("{ty} type"),
        }
    }
}

static STRING: LazyLock<Type> = LazyLock::new(|| Type::dialect("!tfrt.string"));
static DEVICE: LazyLock<Type> = LazyLock::new(|| Type::dialect("!tfrt.device"));

static TABLE: LazyLock<HashMap<&'static str, OpDef, TextHash>> = LazyLock::new(|| {
    let definitions = dialects::all();
    definitions
        .into_iter()
        .map(|definition| (definition.name, definition))
        .collect()
});

/// Returns the entry of an operation that programs are checked against.
pub fn lookup(name: &str) -> Option<&'static OpDef> {
    describe(name).filter(|definition| !definition.is(Traits::KERNEL_ONLY))
}

/// Returns the entry of an operation, be it only documentation.
pub fn describe(name: &str) -> Option<&'static OpDef> {
    TABLE.get(name)
}

/// Returns all entries, sorted by name.
///
/// # Examples
///
/// ```
/// let all = tfrt_ir::dialect::definitions();
/// assert!(all.iter().any(|definition| definition.name() == "tfrt.add.i32"));
/// ```
pub fn definitions() -> Vec<&'static OpDef> {
    let mut all: Vec<_> = TABLE.values().collect();
    all.sort_by_key(|definition| definition.name);
    all
}
