//! [`OpDef`]: the row of one operation, as plain static data.

use std::fmt;
use std::ops::BitOr;

use tfrt_bef::DType;

use crate::attrs::Attrs;
use crate::fact::Fact;
use crate::infer::Infer;

/// An operation: what may be known of it without running it.
///
/// Rows are constants of this crate, or are made at run time and then live as long as the process. What differs
/// between the versions and formats of models is no matter of rows but of [`crate::names`].
#[derive(Clone, Copy, Debug)]
pub struct OpDef {
    /// The name: `relu`. A library operation, which one format alone has, has its dialect in front:
    /// `onnx.NonMaxSuppression`.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Its operands.
    pub inputs: &'static [ValueDef],
    /// Its results.
    pub results: &'static [ValueDef],
    /// Its attributes.
    pub attrs: &'static [AttrDef],
    /// The names of its regions: bodies of loops, branches.
    pub regions: &'static [&'static str],
    /// What passes may do with it.
    pub traits: Traits,
    /// What its results are.
    pub infer: Infer,
    /// What it costs to run.
    pub cost: Cost,
    /// The types that elements of its operands may have, of a pointwise operation; of a choice those to choose from, of a power
    /// the base.
    pub elements: ElementFamily,
    /// What a pointwise operation is in a program of steps.
    pub function: PointwiseFn,
}

/// The functions of pointwise programs that an operation is. `tfrt_tensor::math::pointwise` has them, by these names; the
/// parameters of a function are the row's numbers, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointwiseFn {
    /// The function of the row's name.
    OfRow,
    /// This one.
    Is(&'static str),
    /// The one that stands beside the value of an attribute: of the first if it is left out and may be.
    ByText(&'static str, &'static [(&'static str, &'static str)]),
    /// As `ByText`, of an attribute that is an integer.
    ByInt(&'static str, &'static [(i64, &'static str)]),
    /// This one of the first two operands, of its result and the third, and so on.
    Fold(&'static str),
    /// The sum of all operands, divided by their number.
    Mean,
}

impl PointwiseFn {
    /// Returns the function that stands beside the value of an attribute: beside the first one if the attribute is left out
    /// and may be; nothing for another value.
    pub fn chosen<V: Copy + PartialEq>(
        attr: &AttrDef,
        choices: &[(V, &'static str)],
        stated: Option<V>,
    ) -> Option<&'static str> {
        let first = choices.first().map(|(value, _)| *value);
        let value = stated.or(first.filter(|_| attr.default != AttrDefault::Required))?;
        let found = choices.iter().find(|(choice, _)| *choice == value);
        found.map(|(_, function)| *function)
    }
}

/// Families of types of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementFamily {
    /// Numbers and truth values.
    Any,
    /// Floating-point numbers and integers.
    Real,
    /// Floating-point numbers.
    Float,
    /// Integers.
    Integer,
    /// Integers without signs.
    Unsigned,
    /// Truth values.
    Truth,
}

impl ElementFamily {
    /// Returns whether elements of a type are of the family: of numbers those of 8 to 64 bits that are calculated with, no
    /// complex ones and none of fewer bits.
    pub fn has(self, dtype: DType) -> bool {
        let is_float = matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64);
        let is_unsigned = matches!(dtype, DType::Ui8 | DType::Ui16 | DType::Ui32 | DType::Ui64);
        let is_integer =
            is_unsigned || matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
        match self {
            ElementFamily::Any => is_float || is_integer || dtype == DType::I1,
            ElementFamily::Real => is_float || is_integer,
            ElementFamily::Float => is_float,
            ElementFamily::Integer => is_integer,
            ElementFamily::Unsigned => is_unsigned,
            ElementFamily::Truth => dtype == DType::I1,
        }
    }
}

/// An operand or result.
#[derive(Clone, Copy, Debug)]
pub struct ValueDef {
    /// The name.
    pub name: &'static str,
    /// The types that its elements may have.
    pub types: Types,
    /// How many values it stands for.
    pub arity: Arity,
    /// How much of a result's extents follows from what is known of the operands. Operands are `Exact`.
    pub exactness: Exactness,
}

/// The types that elements may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Types {
    /// Any; of control flow what is no tensor, too.
    Any,
    /// No tensor: a sequence, a map, an optional value.
    Object,
    /// One type, shared by the operands and results that name it.
    Var(&'static str),
    /// Any of these.
    Set(&'static [DType]),
}

/// How many values an operand or result stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// One.
    One,
    /// One, or none.
    Optional,
    /// All that follow, at least so many.
    Rest(usize),
}

/// How much of a result's extents is known where all is known of the operands but their elements, constants aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// All extents.
    Exact,
    /// The rank, where operands that say extents are no constants.
    ByValues,
    /// They depend on elements that are calculated.
    DataDependent,
}

/// An attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttrDef {
    /// The name.
    pub name: &'static str,
    /// What it holds.
    pub kind: AttrKind,
    /// What it is if it is not stated.
    pub default: AttrDefault,
    /// What it may be beyond its kind.
    pub limit: Limit,
    /// In which forms of the operation it means something.
    pub when: When,
}

/// What an attribute may be beyond its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Anything of the kind.
    None,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// The number of the operation's results.
    ResultCount,
}

/// In which forms of an operation an attribute means something. In others it must not be stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In all.
    Always,
    /// Where the attribute `kind` is one of these.
    Kind(&'static [&'static str]),
    /// Where a truth value is 1.
    Set(&'static str),
    /// Where a truth value is 0, or not stated.
    Unset(&'static str),
}

/// Says where an attribute means something: `where kind is layer or rms`; nothing if that is everywhere.
impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::Always => Ok(()),
            When::Kind(kinds) => write!(f, "where kind is {}", kinds.join(" or ")),
            When::Set(flag) => write!(f, "where {flag} is 1"),
            When::Unset(flag) => write!(f, "where {flag} is 0"),
        }
    }
}

/// What an attribute holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrKind {
    /// An integer; a truth value is 0 or 1.
    Int,
    /// A floating-point number.
    Float,
    /// A text.
    Text,
    /// Integers.
    Ints,
    /// Floating-point numbers.
    Floats,
    /// Texts.
    Texts,
    /// The type of elements, or of a value that is no tensor.
    Type,
    /// A tensor.
    Tensor,
    /// The body of a function.
    Region,
    /// A function of the module, by its name.
    Function,
}

/// What an attribute is if it is not stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttrDefault {
    /// It must be stated.
    Required,
    /// What the operation does without it is part of its meaning.
    Absent,
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A text.
    Text(&'static str),
    /// Integers.
    Ints(&'static [i64]),
    /// A type.
    Type(DType),
}

/// What it costs to run an operation, in simple calculations of one element each.
#[derive(Clone, Copy, Debug)]
pub enum Cost {
    /// So many for each element of the largest operand or result.
    PerElement(u16),
    /// By what is known of operands and results.
    Fn(fn(&[Option<Fact>], &[Fact]) -> Option<u64>),
}

/// What passes may do with an operation: a set of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits(u32);

impl Traits {
    /// None of them.
    pub const NONE: Traits = Traits(0);
    /// Equal operands give equal results, and nothing else happens.
    pub const PURE: Traits = Traits(1);
    /// Each element of the result follows from one element of each operand, which are broadcast.
    pub const POINTWISE: Traits = Traits(1 << 1);
    /// Two operands may be exchanged.
    pub const COMMUTATIVE: Traits = Traits(1 << 2);
    /// The result has the operand's elements in the same order: it can be in the operand's memory.
    pub const VIEW: Traits = Traits(1 << 3);
    /// The result may take the memory of operand 0.
    pub const IN_PLACE: Traits = Traits(1 << 4);
    /// Draws random numbers: two runs differ.
    pub const RANDOM: Traits = Traits(1 << 5);
    /// Runs its regions.
    pub const CONTROL: Traits = Traits(1 << 6);
    /// Reads a resource operand.
    pub const READS: Traits = Traits(1 << 7);
    /// Writes a resource operand.
    pub const WRITES: Traits = Traits(1 << 8);

    /// Each trait with its name.
    pub const ALL: &[(&str, Traits)] = &[
        ("pure", Traits::PURE),
        ("pointwise", Traits::POINTWISE),
        ("commutative", Traits::COMMUTATIVE),
        ("view", Traits::VIEW),
        ("in place", Traits::IN_PLACE),
        ("random", Traits::RANDOM),
        ("control", Traits::CONTROL),
        ("reads", Traits::READS),
        ("writes", Traits::WRITES),
    ];

    /// Returns both sets together.
    pub const fn with(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    /// Returns whether all of the other set is in this one.
    pub const fn contains(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Traits {
    type Output = Traits;

    fn bitor(self, other: Traits) -> Traits {
        self.with(other)
    }
}

/// What most rows have.
const ONE_INPUT: &[ValueDef] = &[ValueDef::var("x", "T")];
const ONE_RESULT: &[ValueDef] = &[ValueDef::var("y", "T")];

impl OpDef {
    /// Starts a row: a pure operation of one operand, `x`, and one result, `y`, of which nothing is inferred but
    /// that they are there.
    pub const fn new(name: &'static str, summary: &'static str) -> OpDef {
        OpDef {
            name,
            summary,
            inputs: ONE_INPUT,
            results: ONE_RESULT,
            attrs: &[],
            regions: &[],
            traits: Traits::PURE,
            infer: Infer::SameAsFirst,
            cost: Cost::PerElement(1),
            elements: ElementFamily::Any,
            function: PointwiseFn::OfRow,
        }
    }

    /// Makes it a pointwise operation, whose result may take the memory of the first operand.
    pub const fn pointwise(self, function: PointwiseFn) -> OpDef {
        let op = self.traits(Traits::POINTWISE.with(Traits::IN_PLACE));
        OpDef { function, ..op }
    }

    /// Sets the types of elements of a pointwise operation.
    pub const fn elements(mut self, elements: ElementFamily) -> OpDef {
        self.elements = elements;
        self
    }

    /// Sets the operands.
    pub const fn inputs(mut self, inputs: &'static [ValueDef]) -> OpDef {
        self.inputs = inputs;
        self
    }

    /// Sets the results.
    pub const fn results(mut self, results: &'static [ValueDef]) -> OpDef {
        self.results = results;
        self
    }

    /// Sets the attributes.
    pub const fn attrs(mut self, attrs: &'static [AttrDef]) -> OpDef {
        self.attrs = attrs;
        self
    }

    /// Sets the names of the regions.
    pub const fn regions(mut self, regions: &'static [&'static str]) -> OpDef {
        self.regions = regions;
        self
    }

    /// Adds traits. A row that draws random numbers, or reads or writes a resource, is no longer pure.
    pub const fn traits(mut self, traits: Traits) -> OpDef {
        self.traits = self.traits.with(traits);
        match self.is(Traits::RANDOM) || self.touches_resources() {
            true => self.impure(),
            false => self,
        }
    }

    /// Takes the trait away that every row begins with: what it does is more than its results.
    pub const fn impure(mut self) -> OpDef {
        self.traits = Traits(self.traits.0 & !Traits::PURE.0);
        self
    }

    /// Sets what the results are.
    pub const fn infer(mut self, infer: Infer) -> OpDef {
        self.infer = infer;
        self
    }

    /// Sets the cost.
    pub const fn cost(mut self, cost: Cost) -> OpDef {
        self.cost = cost;
        self
    }

    /// Returns the dialect of a library operation, `graph` of all others.
    pub fn dialect(&self) -> &'static str {
        self.name
            .split_once('.')
            .map_or("graph", |(dialect, _)| dialect)
    }

    /// Returns whether it has all of these traits.
    pub const fn is(&self, traits: Traits) -> bool {
        self.traits.contains(traits)
    }

    const fn touches_resources(&self) -> bool {
        self.is(Traits::READS) || self.is(Traits::WRITES)
    }

    /// Returns whether equal operands give equal results each time, and nothing else happens: of two such operations that
    /// are alike one is enough, and one of constants may run before any call.
    pub const fn is_deterministic(&self) -> bool {
        self.is(Traits::PURE) && !self.is(Traits::RANDOM) && !self.touches_resources()
    }

    /// Returns whether running it may do more than give results: it runs as often as a model says, used or not. So it is of
    /// every row that reads or writes a resource, and of one that is neither pure nor random.
    pub const fn has_effects(&self) -> bool {
        self.touches_resources() || !(self.is(Traits::PURE) || self.is(Traits::RANDOM))
    }

    /// Returns the definition of an attribute.
    pub fn attr(&self, name: &str) -> Option<&'static AttrDef> {
        self.attrs.iter().find(|attr| attr.name == name)
    }
}

impl ValueDef {
    /// Makes one value of any type.
    pub const fn any(name: &'static str) -> ValueDef {
        ValueDef {
            name,
            types: Types::Any,
            arity: Arity::One,
            exactness: Exactness::Exact,
        }
    }

    /// Makes one value that is no tensor.
    pub const fn object(name: &'static str) -> ValueDef {
        ValueDef {
            types: Types::Object,
            ..ValueDef::any(name)
        }
    }

    /// Makes one value whose type is shared by all that name it.
    pub const fn var(name: &'static str, of: &'static str) -> ValueDef {
        ValueDef {
            types: Types::Var(of),
            ..ValueDef::any(name)
        }
    }

    /// Makes one value of one of some types.
    pub const fn set(name: &'static str, types: &'static [DType]) -> ValueDef {
        ValueDef {
            types: Types::Set(types),
            ..ValueDef::any(name)
        }
    }

    /// Lets it be left out.
    pub const fn optional(mut self) -> ValueDef {
        self.arity = Arity::Optional;
        self
    }

    /// Lets it stand for all values that follow, at least so many.
    pub const fn rest(mut self, at_least: usize) -> ValueDef {
        self.arity = Arity::Rest(at_least);
        self
    }

    /// Says that its extents are known only where operands are constants.
    pub const fn by_values(mut self) -> ValueDef {
        self.exactness = Exactness::ByValues;
        self
    }

    /// Says that its extents are known only when it is calculated.
    pub const fn data_dependent(mut self) -> ValueDef {
        self.exactness = Exactness::DataDependent;
        self
    }
}

impl AttrDef {
    const fn of(name: &'static str, kind: AttrKind, default: AttrDefault) -> AttrDef {
        AttrDef {
            name,
            kind,
            default,
            limit: Limit::None,
            when: When::Always,
        }
    }

    /// Makes an attribute that may be absent, or that must be stated.
    pub const fn new(name: &'static str, kind: AttrKind) -> AttrDef {
        AttrDef::of(name, kind, AttrDefault::Absent)
    }

    /// Makes an integer with a default.
    pub const fn int(name: &'static str, default: i64) -> AttrDef {
        AttrDef::of(name, AttrKind::Int, AttrDefault::Int(default))
    }

    /// Makes a floating-point number with a default.
    pub const fn float(name: &'static str, default: f64) -> AttrDef {
        AttrDef::of(name, AttrKind::Float, AttrDefault::Float(default))
    }

    /// Makes a text with a default.
    pub const fn text(name: &'static str, default: &'static str) -> AttrDef {
        AttrDef::of(name, AttrKind::Text, AttrDefault::Text(default))
    }

    /// Makes a list of integers that may be absent.
    pub const fn ints(name: &'static str) -> AttrDef {
        AttrDef::new(name, AttrKind::Ints)
    }

    /// Makes a type with a default.
    pub const fn dtype(name: &'static str, default: DType) -> AttrDef {
        AttrDef::of(name, AttrKind::Type, AttrDefault::Type(default))
    }

    /// Sets the list that it is if it is not stated.
    pub const fn or_ints(mut self, list: &'static [i64]) -> AttrDef {
        self.default = AttrDefault::Ints(list);
        self
    }

    /// Returns whether it means something beside these other attributes.
    pub fn applies(&self, attrs: Attrs<'_>) -> bool {
        match self.when {
            When::Always => true,
            When::Kind(kinds) => kinds.contains(&attrs.text("kind")),
            When::Set(flag) => attrs.flag(flag),
            When::Unset(flag) => !attrs.flag(flag),
        }
    }

    /// Says that it must be stated.
    pub const fn required(mut self) -> AttrDef {
        self.default = AttrDefault::Required;
        self
    }

    /// Makes the text that must be stated and says which of several operations a row is.
    pub const fn kind(kinds: &'static [&'static str]) -> AttrDef {
        AttrDef::new("kind", AttrKind::Text)
            .required()
            .one_of(kinds)
    }

    /// Sets the texts that it may be.
    pub const fn one_of(mut self, texts: &'static [&'static str]) -> AttrDef {
        self.limit = Limit::OneOf(texts);
        self
    }

    /// Says that it is the number of the operation's results.
    pub const fn result_count(mut self) -> AttrDef {
        self.limit = Limit::ResultCount;
        self
    }

    /// Says in which forms of the operation it means something.
    pub const fn only(mut self, when: When) -> AttrDef {
        self.when = when;
        self
    }
}
