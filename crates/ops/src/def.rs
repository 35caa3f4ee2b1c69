//! [`OpDef`]: the row of one operation, as plain static data.

use std::fmt;
use std::ops::BitOr;

use tfrt_bef::DType;

use crate::attrs::Attrs;
use crate::fact::Fact;
use crate::infer::Infer;

/// The row of an operation: everything that is known of the operation without running it.
///
/// Rows are constants of this crate, or are made at run time and then live as long as the process. What differs
/// between the versions and formats of models is no matter of rows but of [`crate::names`].
#[derive(Clone, Copy, Debug)]
pub struct OpDef {
    /// The name of the operation: `relu`. A library operation, which one format alone has, has its dialect in front:
    /// `onnx.NonMaxSuppression`.
    pub name: &'static str,
    /// One sentence on what the operation does.
    pub summary: &'static str,
    /// The operands.
    pub inputs: &'static [ValueDef],
    /// The results.
    pub results: &'static [ValueDef],
    /// The attributes.
    pub attrs: &'static [AttrDef],
    /// The names of its regions: bodies of loops, branches.
    pub regions: &'static [&'static str],
    /// The properties that passes rely on.
    pub traits: Traits,
    /// The rule by which the facts of results follow from those of operands.
    pub infer: Infer,
    /// The cost of a run.
    pub cost: Cost,
    /// The element types that the operation calculates with, which are those of its first operand. Of `select` they are
    /// those of the values that are chosen from.
    pub elements: ElementFamily,
    /// The function that computes a pointwise operation in a fused program.
    pub function: PointwiseFn,
}

/// The function of `tfrt_tensor::math::pointwise` that computes a pointwise operation, by its name there. The
/// parameters of a function are the row's numbers, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointwiseFn {
    /// The function of the row's name.
    OfRow,
    /// The function of this name.
    Is(&'static str),
    /// The function that stands beside the value of the named attribute: the first one if the attribute is left out
    /// and may be.
    ByText(&'static str, &'static [(&'static str, &'static str)]),
    /// As `ByText`, by an attribute that is an integer.
    ByInt(&'static str, &'static [(i64, &'static str)]),
    /// A function of two operands, applied from left to right: to the first two operands, to that result and the
    /// third, and so on.
    Fold(&'static str),
    /// The sum of all operands, divided by their number.
    Mean,
}

impl PointwiseFn {
    /// Returns the function that stands beside the value of an attribute: the first one if the attribute is left out
    /// and may be, `None` for another value.
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

/// A family of element types. It is written in words: `floating-point numbers`.
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
    /// Returns whether elements of a type are of the family. Of numbers the family has the types of 8 to 64 bits that
    /// kernels calculate with: neither complex numbers nor smaller ones.
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

impl fmt::Display for ElementFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ElementFamily::Any => "numbers or truth values",
            ElementFamily::Real => "numbers",
            ElementFamily::Float => "floating-point numbers",
            ElementFamily::Integer => "integers",
            ElementFamily::Unsigned => "integers without signs",
            ElementFamily::Truth => "truth values",
        })
    }
}

/// The definition of an operand or result.
#[derive(Clone, Copy, Debug)]
pub struct ValueDef {
    /// The name.
    pub name: &'static str,
    /// The types that its elements may have.
    pub types: Types,
    /// The number of values.
    pub arity: Arity,
    /// The part of a result's extents that follows from the facts of the operands. Operands are `Exact`.
    pub exactness: Exactness,
}

/// The types that the elements of an operand or result may have.
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

/// The number of values that an operand or result stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// One.
    One,
    /// One, or none.
    Optional,
    /// All that follow, at least so many.
    Rest(usize),
}

/// The part of a result's extents that is known where everything is known of the operands but the elements of those that
/// are no constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// All extents are known.
    Exact,
    /// The rank is known, and the extents too where the operands that state them are constants.
    ByValues,
    /// The extents depend on elements that are calculated.
    DataDependent,
}

/// The definition of an attribute.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttrDef {
    /// The name.
    pub name: &'static str,
    /// The kind of the attribute's value.
    pub kind: AttrKind,
    /// The value of the attribute if it is not stated.
    pub default: AttrDefault,
    /// A limit on the value, beyond its kind.
    pub limit: Limit,
    /// The forms of the operation in which the attribute applies.
    pub when: When,
}

/// A limit on the value of an attribute, beyond its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Anything of the kind.
    None,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// The number of the operation's results, which the attribute must be; or the type of each, in a list.
    ResultCount,
}

/// The forms of an operation in which an attribute applies. In others it must not be stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All forms.
    Always,
    /// Forms whose attribute `kind` is one of these.
    Kind(&'static [&'static str]),
    /// Forms whose attribute of this name, a truth value, is 1.
    Set(&'static str),
    /// Forms whose attribute of this name, a truth value, is 0 or not stated.
    Unset(&'static str),
}

/// Writes the condition: `where kind is layer or rms`; nothing for all forms.
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

/// The kind of an attribute's value.
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
    /// Types of elements.
    Types,
    /// Lists of extents; an unknown extent is -1.
    Shapes,
    /// A tensor.
    Tensor,
    /// The body of a function.
    Region,
    /// A function of the module, by its name.
    Function,
}

/// The value of an attribute that is not stated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AttrDefault {
    /// There is none: the attribute must be stated.
    Required,
    /// There is none: the operation has a meaning of its own without the attribute.
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

/// The cost of a run, in simple calculations of one element each.
#[derive(Clone, Copy, Debug)]
pub enum Cost {
    /// So much for each element of the largest operand or result.
    PerElement(u16),
    /// A function of the facts of operands and results.
    Fn(fn(&[Option<Fact>], &[Fact]) -> Option<u64>),
}

/// A set of properties that passes rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits(u32);

impl Traits {
    /// The empty set.
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
    /// May wait for other operations on its resource operand, in a place that it takes there when it runs.
    pub const WAITS: Traits = Traits(1 << 9);

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
        ("waits", Traits::WAITS),
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

/// The operands that most rows have.
const ONE_INPUT: &[ValueDef] = &[ValueDef::var("x", "T")];
const ONE_RESULT: &[ValueDef] = &[ValueDef::var("y", "T")];

impl OpDef {
    /// Makes a row: a pure operation of one operand, `x`, and one result, `y`, of which nothing is inferred.
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

    /// Makes the row pointwise; its result may take the memory of the first operand.
    pub const fn pointwise(self, function: PointwiseFn) -> OpDef {
        let op = self.traits(Traits::POINTWISE.with(Traits::IN_PLACE));
        OpDef { function, ..op }
    }

    /// Sets the element types that the operation calculates with.
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

    /// Adds traits, and removes `PURE` for a row that draws random numbers, or reads or writes a resource.
    pub const fn traits(mut self, traits: Traits) -> OpDef {
        self.traits = self.traits.with(traits);
        match self.is(Traits::RANDOM) || self.touches_resources() {
            true => self.impure(),
            false => self,
        }
    }

    /// Removes the trait `PURE`, which every row begins with: the operation has effects.
    pub const fn impure(mut self) -> OpDef {
        self.traits = Traits(self.traits.0 & !Traits::PURE.0);
        self
    }

    /// Sets the rule of inference.
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

    /// Returns whether the row has all of these traits.
    pub const fn is(&self, traits: Traits) -> bool {
        self.traits.contains(traits)
    }

    const fn touches_resources(&self) -> bool {
        self.is(Traits::READS) || self.is(Traits::WRITES)
    }

    /// Returns whether equal operands give equal results each time, without effects. Of two such operations that are
    /// alike one is enough, and one on constants may run before any call.
    pub const fn is_deterministic(&self) -> bool {
        self.is(Traits::PURE) && !self.is(Traits::RANDOM) && !self.touches_resources()
    }

    /// Returns whether the operation has effects, so that it runs as often as a model says, used or not. Every row
    /// does that reads or writes a resource, and every one that is neither pure nor random.
    pub const fn has_effects(&self) -> bool {
        self.touches_resources() || !(self.is(Traits::PURE) || self.is(Traits::RANDOM))
    }

    /// Returns the definition of an attribute.
    pub fn attr(&self, name: &str) -> Option<&'static AttrDef> {
        self.attrs.iter().find(|attr| attr.name == name)
    }
}

impl ValueDef {
    /// Makes an operand or result of one value of any type.
    pub const fn any(name: &'static str) -> ValueDef {
        ValueDef {
            name,
            types: Types::Any,
            arity: Arity::One,
            exactness: Exactness::Exact,
        }
    }

    /// Makes an operand or result of one value that is no tensor.
    pub const fn object(name: &'static str) -> ValueDef {
        ValueDef {
            types: Types::Object,
            ..ValueDef::any(name)
        }
    }

    /// Makes an operand or result of one value whose type is shared by all that name the variable.
    pub const fn var(name: &'static str, of: &'static str) -> ValueDef {
        ValueDef {
            types: Types::Var(of),
            ..ValueDef::any(name)
        }
    }

    /// Makes an operand or result of one value of one of some types.
    pub const fn set(name: &'static str, types: &'static [DType]) -> ValueDef {
        ValueDef {
            types: Types::Set(types),
            ..ValueDef::any(name)
        }
    }

    /// Allows the value to be left out.
    pub const fn optional(mut self) -> ValueDef {
        self.arity = Arity::Optional;
        self
    }

    /// Makes the definition stand for all values that follow, at least so many.
    pub const fn rest(mut self, at_least: usize) -> ValueDef {
        self.arity = Arity::Rest(at_least);
        self
    }

    /// Says that the extents are known only where operands are constants.
    pub const fn by_values(mut self) -> ValueDef {
        self.exactness = Exactness::ByValues;
        self
    }

    /// Says that the extents are known only when the operation has run.
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

    /// Makes an attribute without a default, which may be left out.
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

    /// Sets a list as the default.
    pub const fn or_ints(mut self, list: &'static [i64]) -> AttrDef {
        self.default = AttrDefault::Ints(list);
        self
    }

    /// Returns whether the attribute applies beside these other attributes.
    pub fn applies(&self, attrs: Attrs<'_>) -> bool {
        match self.when {
            When::Always => true,
            When::Kind(kinds) => kinds.contains(&attrs.text("kind")),
            When::Set(flag) => attrs.flag(flag),
            When::Unset(flag) => !attrs.flag(flag),
        }
    }

    /// Says that the attribute must be stated.
    pub const fn required(mut self) -> AttrDef {
        self.default = AttrDefault::Required;
        self
    }

    /// Makes the attribute `kind`, a text that must be stated and says which of several operations a row is.
    pub const fn kind(kinds: &'static [&'static str]) -> AttrDef {
        AttrDef::new("kind", AttrKind::Text)
            .required()
            .one_of(kinds)
    }

    /// Sets the texts that are allowed.
    pub const fn one_of(mut self, texts: &'static [&'static str]) -> AttrDef {
        self.limit = Limit::OneOf(texts);
        self
    }

    /// Says that the attribute is the number of the operation's results.
    pub const fn result_count(mut self) -> AttrDef {
        self.limit = Limit::ResultCount;
        self
    }

    /// Sets the forms of the operation in which the attribute applies.
    pub const fn only(mut self, when: When) -> AttrDef {
        self.when = when;
        self
    }
}
