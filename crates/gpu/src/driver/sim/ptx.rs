//! PTX, as far as the simulated driver runs it: kernels as lists of instructions with resolved operands.
//!
//! [`parse`] refuses what it does not know by name and line: nothing is ever skipped.

mod parse;
mod statements;

pub(super) use parse::{SHARED_BASE, parse};

/// A module: kernels and variables.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) kernels: Vec<Kernel>,
    pub(super) globals: Vec<Global>,
}

/// A variable of a module.
#[derive(Debug)]
pub(super) struct Global {
    pub(super) name: String,
    pub(super) address: u64,
    pub(super) len: usize,
}

/// A kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) name: String,
    // Offset and size of each parameter.
    pub(super) parameters: Vec<(usize, usize)>,
    pub(super) shared_bytes: usize,
    pub(super) max_threads: Option<u32>,
    pub(super) n_registers: usize,
    pub(super) code: Vec<Instruction>,
}

impl Kernel {
    /// Returns the number of bytes of all parameters.
    pub(super) fn parameter_bytes(&self) -> usize {
        self.parameters
            .last()
            .map_or(0, |(offset, len)| offset + len)
    }
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) struct Instruction {
    /// The predicate that must hold, and whether it must not.
    pub(super) guard: Option<(Register, bool)>,
    pub(super) op: Op,
    pub(super) kind: Kind,
    /// The type of the operand of `cvt`.
    pub(super) from: Kind,
    pub(super) to: Vec<Register>,
    pub(super) operands: Vec<Operand>,
    pub(super) line: u32,
}

/// The number of a register.
pub(super) type Register = u16;

/// An operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Operand {
    Register(Register),
    Immediate(u64),
    Special(Special),
}

/// Registers that say where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Thread(u8),
    Threads(u8),
    Block(u8),
    Blocks(u8),
    Lane,
}

/// Types of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bits(u8),
    Unsigned(u8),
    Signed(u8),
    F16,
    F32,
    F64,
    Predicate,
}

impl Kind {
    /// Returns the number of bytes.
    pub(super) fn len(self) -> usize {
        match self {
            Kind::Bits(bits) | Kind::Unsigned(bits) | Kind::Signed(bits) => usize::from(bits / 8),
            Kind::F16 => 2,
            Kind::F32 => 4,
            Kind::F64 => 8,
            Kind::Predicate => 1,
        }
    }
}

/// The operation of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Move,
    /// Makes one register of the halves in two, and two of one.
    Join,
    Split,
    LoadParameter,
    Load(Space),
    Store(Space),
    Add(Round),
    Subtract(Round),
    Multiply(Part, Round),
    MultiplyAdd(Part),
    Fused(Round),
    Divide,
    Remainder,
    Minimum,
    Maximum,
    Negate,
    Absolute,
    And,
    Or,
    Xor,
    Not,
    ShiftLeft,
    ShiftRight,
    InsertField,
    Compare(Comparison),
    Select,
    Convert {
        round: ToInteger,
        saturates: bool,
    },
    LogarithmOfTwo {
        flushes: bool,
    },
    PowerOfTwo {
        flushes: bool,
    },
    Reciprocal {
        flushes: bool,
    },
    SquareRoot,
    Branch(usize),
    Return,
    Barrier,
    Shuffle(Shuffle),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Global,
    Shared,
}

/// Which part of a product is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Low,
    High,
    Wide,
}

/// How a sum is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Nearest,
    Down,
    Up,
    Zero,
}

/// How a conversion rounds to an integer, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToInteger {
    No,
    Nearest,
    Zero,
    Down,
    Up,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    /// As those, and true where one is no number.
    EqualOrNan,
    NotEqualOrNan,
    LessOrNan,
    LessEqualOrNan,
    GreaterOrNan,
    GreaterEqualOrNan,
    /// Both are numbers; one is none.
    Numbers,
    Nan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    Butterfly,
    Down,
    Up,
    Index,
}
