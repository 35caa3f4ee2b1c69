//! The forms in which StableHLO, CHLO and the checks of its test suite print operations, as a table.
//!
//! These dialects have no entries: their operations become those of graphs when a model is imported. Here is only what
//! text needs, so that each form gives the operation that the generic form would: `stablehlo.slice %x [0:2]` has the
//! attributes `start_indices`, `limit_indices` and `strides`. The forms are those of `StablehloOps.td`, `ChloOps.td` and
//! `CheckOps.td` of the project StableHLO.

mod parts;
mod regions;

use smallvec::SmallVec;

use super::{ExpectedType, Parsed, ParsedOp, Parser};
use crate::{
    attributes::Attribute,
    codes,
    lexer::{Kind, Mark},
    types::Type,
};

/// A part of a form.
#[derive(Clone, Copy)]
enum Part {
    /// Operands with commas between, also the comma behind the last one where another part follows it.
    Operands,
    /// A word that is there.
    Word(&'static str),
    /// A mark that is there.
    Mark(Mark),
    /// An integer of 64 bits: the attribute of this name.
    Integer(&'static str),
    /// `[1, 2]`: the attribute of this name, `array<i64: 1, 2>`.
    Integers(&'static str),
    /// `LT`: the attribute of this name, `#stablehlo<comparison_direction LT>` for the second text.
    Keyword(&'static str, &'static str),
    /// A float of 64 bits, whose type is left out: the attribute of this name.
    Number(&'static str),
    /// A string without a type: the attribute of this name.
    Text(&'static str),
    /// The attribute of this name in any form.
    Attribute(&'static str),
    /// Parts that are there if the first one, a word, is.
    Optional(&'static [Part]),
    /// A part with a rule of its own.
    Rule(Rule),
    /// The other attributes in braces, nothing if there are none.
    Dictionary,
    /// `: type` of all operands and results, or a function type.
    SameType,
    /// `: (types) -> types`.
    Signature,
    /// `: type -> types`, or a function type.
    LooseSignature,
    /// `: types` of the operands.
    OperandTypes,
    /// `: types` of the results, of an operation without operands.
    ResultTypes,
    /// `: types` of the operands, which are those of the results, too; nothing if there are no operands.
    PairedTypes,
}

/// The rules of parts that only one operation has.
#[derive(Clone, Copy)]
enum Rule {
    Complex,
    Constant,
    Convolution,
    Composite,
    CustomCall,
    Dot,
    Expected,
    Precision,
    Reduce,
    ReducePrecision,
    Select,
    Slice,
    TopK,
    Tuple,
    While,
}

use Part::*;

const ELEMENTWISE: &[Part] = &[Operands, Dictionary, SameType];
const ON_OPERANDS: &[Part] = &[Operands, Dictionary, Signature];
const LOOSE: &[Part] = &[Operands, Dictionary, LooseSignature];
const OF_RESULTS: &[Part] = &[Dictionary, ResultTypes];
const TOLERANCE: Part = Optional(&[Word("tolerance"), Mark(Mark::Equal), Number("tolerance")]);

/// The operations by their forms, without those that are printed generically.
const FORMS: &[(&[&str], &[Part])] = &[
    (
        &[
            "abs",
            "add",
            "after_all",
            "and",
            "atan2",
            "cbrt",
            "ceil",
            "clamp",
            "convert",
            "cosine",
            "count_leading_zeros",
            "divide",
            "exponential",
            "exponential_minus_one",
            "floor",
            "imag",
            "is_finite",
            "log",
            "log_plus_one",
            "logistic",
            "maximum",
            "minimum",
            "multiply",
            "negate",
            "not",
            "or",
            "popcnt",
            "power",
            "real",
            "remainder",
            "round_nearest_afz",
            "round_nearest_even",
            "rsqrt",
            "shift_left",
            "shift_right_arithmetic",
            "shift_right_logical",
            "sign",
            "sine",
            "sqrt",
            "subtract",
            "tan",
            "tanh",
            "uniform_dequantize",
            "uniform_quantize",
            "xor",
        ],
        ELEMENTWISE,
    ),
    (
        &[
            "bitcast_convert",
            "dynamic_pad",
            "dynamic_reshape",
            "dynamic_update_slice",
            "real_dynamic_slice",
            "reshape",
        ],
        ON_OPERANDS,
    ),
    (&["create_token", "partition_id", "replica_id"], OF_RESULTS),
    (
        &["broadcast"],
        &[
            Operands,
            Word("sizes"),
            Mark(Mark::Equal),
            Integers("broadcast_sizes"),
            Dictionary,
            Signature,
        ],
    ),
    (
        &["broadcast_in_dim", "dynamic_broadcast_in_dim"],
        &[
            Operands,
            Word("dims"),
            Mark(Mark::Equal),
            Integers("broadcast_dimensions"),
            Dictionary,
            Signature,
        ],
    ),
    (
        &["cholesky"],
        &[
            Operands,
            Optional(&[Word("lower"), Mark(Mark::Equal), Attribute("lower")]),
            Dictionary,
            SameType,
        ],
    ),
    (
        &["compare"],
        &[
            Keyword("comparison_direction", "comparison_direction"),
            Mark(Mark::Comma),
            Operands,
            Optional(&[Keyword("compare_type", "comparison_type")]),
            Dictionary,
            Signature,
        ],
    ),
    (&["complex"], &[Operands, Dictionary, Rule(Rule::Complex)]),
    (
        &["composite"],
        &[Rule(Rule::Composite), Dictionary, Signature],
    ),
    (
        &["concatenate", "get_dimension_size", "set_dimension_size"],
        &[
            Operands,
            Word("dim"),
            Mark(Mark::Equal),
            Integer("dimension"),
            Dictionary,
            Signature,
        ],
    ),
    (&["constant"], &[Rule(Rule::Constant)]),
    (
        &["convolution"],
        &[Rule(Rule::Convolution), Dictionary, Signature],
    ),
    (
        &["custom_call"],
        &[Rule(Rule::CustomCall), Dictionary, Signature],
    ),
    (
        &["dot"],
        &[Operands, Rule(Rule::Precision), Dictionary, Signature],
    ),
    (
        &["dot_general"],
        &[
            Operands,
            Rule(Rule::Dot),
            Rule(Rule::Precision),
            Dictionary,
            Signature,
        ],
    ),
    (
        &["dynamic_iota"],
        &[
            Operands,
            Word("dim"),
            Mark(Mark::Equal),
            Integer("iota_dimension"),
            Dictionary,
            Signature,
        ],
    ),
    (
        &["dynamic_slice"],
        &[
            Operands,
            Word("sizes"),
            Mark(Mark::Equal),
            Integers("slice_sizes"),
            Dictionary,
            Signature,
        ],
    ),
    (
        &["einsum", "unary_einsum"],
        &[
            Operands,
            Word("config"),
            Mark(Mark::Equal),
            Text("einsum_config"),
            Dictionary,
            Signature,
        ],
    ),
    (
        &["fft"],
        &[
            Operands,
            Word("type"),
            Mark(Mark::Equal),
            Keyword("fft_type", "fft_type"),
            Mark(Mark::Comma),
            Word("length"),
            Mark(Mark::Equal),
            Integers("fft_length"),
            Dictionary,
            Signature,
        ],
    ),
    (
        &["get_tuple_element"],
        &[
            Operands,
            Mark(Mark::LeftSquare),
            Integer("index"),
            Mark(Mark::RightSquare),
            Dictionary,
            Signature,
        ],
    ),
    (
        &["iota"],
        &[
            Word("dim"),
            Mark(Mark::Equal),
            Integer("iota_dimension"),
            Dictionary,
            ResultTypes,
        ],
    ),
    (
        &["optimization_barrier"],
        &[Dictionary, Operands, PairedTypes],
    ),
    (
        &["pad"],
        &[
            Operands,
            Word("low"),
            Mark(Mark::Equal),
            Integers("edge_padding_low"),
            Mark(Mark::Comma),
            Word("high"),
            Mark(Mark::Equal),
            Integers("edge_padding_high"),
            Mark(Mark::Comma),
            Word("interior"),
            Mark(Mark::Equal),
            Integers("interior_padding"),
            Dictionary,
            Signature,
        ],
    ),
    (&["reduce"], &[Rule(Rule::Reduce)]),
    (
        &["reduce_precision"],
        &[Operands, Rule(Rule::ReducePrecision), Dictionary, SameType],
    ),
    (&["return"], &[Operands, Dictionary, OperandTypes]),
    (
        &["reverse"],
        &[
            Operands,
            Word("dims"),
            Mark(Mark::Equal),
            Integers("dimensions"),
            Dictionary,
            SameType,
        ],
    ),
    (
        &["rng"],
        &[
            Operands,
            Word("distribution"),
            Mark(Mark::Equal),
            Keyword("rng_distribution", "rng_distribution"),
            Dictionary,
            Signature,
        ],
    ),
    (
        &["rng_bit_generator"],
        &[
            Operands,
            Word("algorithm"),
            Mark(Mark::Equal),
            Keyword("rng_algorithm", "rng_algorithm"),
            Dictionary,
            Signature,
        ],
    ),
    (&["select"], &[Operands, Dictionary, Rule(Rule::Select)]),
    (
        &["slice"],
        &[Operands, Rule(Rule::Slice), Dictionary, Signature],
    ),
    (
        &["transpose"],
        &[
            Operands,
            Word("dims"),
            Mark(Mark::Equal),
            Integers("permutation"),
            Dictionary,
            Signature,
        ],
    ),
    (&["tuple"], &[Operands, Dictionary, Rule(Rule::Tuple)]),
    (&["while"], &[Rule(Rule::While)]),
];

/// The forms of CHLO that differ from [`LOOSE`].
const CHLO: &[(&str, &[Part])] = &[
    ("constant", &[Rule(Rule::Constant)]),
    ("next_after", &[Operands, Dictionary, LooseSignature]),
    ("top_k", &[Rule(Rule::TopK), Dictionary, LooseSignature]),
];

/// The forms of checks.
const CHECKS: &[(&str, &[Part])] = &[
    (
        "expect_almost_eq",
        &[Operands, TOLERANCE, Dictionary, OperandTypes],
    ),
    (
        "expect_almost_eq_const",
        &[Operands, Rule(Rule::Expected), Dictionary],
    ),
    (
        "expect_close",
        &[
            Operands,
            Word("max_ulp_difference"),
            Mark(Mark::Equal),
            Integer("max_ulp_difference"),
            Optional(&[
                Word("min_ulp_difference"),
                Mark(Mark::Equal),
                Integer("min_ulp_difference"),
            ]),
            OperandTypes,
        ],
    ),
    ("expect_eq", &[Operands, Dictionary, OperandTypes]),
    (
        "expect_eq_const",
        &[Operands, Rule(Rule::Expected), Dictionary],
    ),
    (
        "expect_serialized_eq",
        &[
            Operands,
            Word("probe_id"),
            Mark(Mark::Equal),
            Text("probe_id"),
            Optional(&[Word("iter"), Mark(Mark::Equal), Integer("iter")]),
            Dictionary,
            OperandTypes,
        ],
    ),
];

/// The forms of the interpreter's own operations.
const INTERPRETER: &[(&str, &[Part])] = &[(
    "probe",
    &[
        Operands,
        Word("probe_id"),
        Mark(Mark::Equal),
        Text("probe_id"),
        Dictionary,
        SameType,
    ],
)];

/// The form of one operation: what follows its name.
#[derive(Clone, Copy)]
pub(super) struct Form(&'static [Part]);

/// Returns the form of an operation of these dialects.
pub(super) fn form(name: &str) -> Option<Form> {
    let (dialect, name) = name.split_once('.')?;
    let of = |list: &[(&str, &'static [Part])]| {
        let found = list.iter().find(|(own, _)| *own == name);
        found.map(|(_, parts)| *parts)
    };
    let parts = match dialect {
        "stablehlo" => {
            let found = FORMS.iter().find(|(names, _)| names.contains(&name));
            found.map(|(_, parts)| *parts)
        }
        "chlo" => of(CHLO).or(Some(LOOSE)),
        "check" => of(CHECKS),
        "interpreter" => of(INTERPRETER),
        _ => None,
    };
    parts.map(Form)
}

impl<'a> Parser<'a> {
    /// Parses what follows the name of an operation of these dialects.
    pub(super) fn formed(&mut self, op: &mut ParsedOp<'a>, form: Form) -> Parsed<()> {
        self.form_parts(op, form.0)?;
        // Where nothing says the types, they are those of values above.
        if op.state.operands.is_empty() && !op.operands.is_empty() {
            let types: Vec<Type> = op
                .operands
                .iter()
                .map(|operand| self.type_above(*operand).unwrap_or(Type::None))
                .collect();
            return self.resolve_operands(op, types.iter().map(ExpectedType::Type));
        }
        Ok(())
    }

    fn form_parts(&mut self, op: &mut ParsedOp<'a>, parts: &'static [Part]) -> Parsed<()> {
        for part in parts {
            match part {
                // Regions nest, so the way to them takes little stack.
                Rule(Rule::While) => self.while_form(op)?,
                Rule(Rule::Reduce) => self.reduce_form(op)?,
                other => self.form_part(op, other)?,
            }
        }
        Ok(())
    }

    fn form_part(&mut self, op: &mut ParsedOp<'a>, part: &'static Part) -> Parsed<()> {
        let span = self.token.span();
        match part {
            Operands => self.form_operands(op),
            Word(word) => self.expect_word(word),
            Mark(mark) => self.expect(*mark),
            Integer(name) => {
                let value = Attribute::integer(self.bare_integer()?, Type::I64);
                let name = self.name(name);
                self.add_attribute(&mut op.state, span, name, value)
            }
            Integers(name) => {
                let list = self.integer_list()?;
                self.add_list(op, name, &list)
            }
            Keyword(name, kind) => {
                let value = self.keyword(kind)?;
                let name = self.name(name);
                self.add_attribute(&mut op.state, span, name, value)
            }
            Number(name) => {
                let value = self.bare_number()?;
                let name = self.name(name);
                self.add_attribute(&mut op.state, span, name, value)
            }
            Text(name) => {
                let value = crate::Attribute::string(self.string_literal()?);
                let name = self.name(name);
                self.add_attribute(&mut op.state, span, name, value)
            }
            Attribute(name) => {
                let value = self.attribute()?;
                let name = self.name(name);
                self.add_attribute(&mut op.state, span, name, value)
            }
            Optional(parts) => {
                let is_behind = |parser: &Self, word: &str| {
                    parser.at(Mark::Comma) && parser.text[parser.peek().start..].starts_with(word)
                };
                if let Some(Word(word)) = parts.first()
                    && is_behind(self, word)
                {
                    self.bump();
                }
                let is_there = match parts.first() {
                    Some(Word(word)) => self.at_word(word),
                    _ => self.token.kind == Kind::Word,
                };
                match is_there {
                    true => {
                        for part in *parts {
                            self.form_part(op, part)?;
                        }
                        Ok(())
                    }
                    false => Ok(()),
                }
            }
            Rule(rule) => self.form_rule(op, *rule),
            Dictionary => match self.at(Mark::LeftBrace) {
                true => self.merge_dictionary(&mut op.state),
                false => Ok(()),
            },
            SameType => self.same_type(op),
            Signature => {
                self.expect(Mark::Colon)?;
                self.form_signature(op)
            }
            LooseSignature => self.loose_signature(op),
            OperandTypes | PairedTypes => {
                if op.operands.is_empty() {
                    // An operation without operands may have empty parentheses in their place.
                    if self.eat(Mark::LeftParen) {
                        self.expect(Mark::RightParen)?;
                    }
                    return Ok(());
                }
                self.expect(Mark::Colon)?;
                let mut types = self.bare_type_list()?;
                if types.len() == 1 {
                    types.resize(op.operands.len(), types[0].clone());
                }
                if let PairedTypes = part {
                    op.state.result_types = types.iter().cloned().collect();
                }
                self.resolve_operands(op, types.iter().map(ExpectedType::Type))
            }
            ResultTypes => {
                self.expect(Mark::Colon)?;
                op.state.result_types = self.bare_type_list()?.into_iter().collect();
                Ok(())
            }
        }
    }

    fn form_operands(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        let is_enclosed = op.operands.is_empty() && self.at(Mark::LeftParen);
        if is_enclosed {
            self.bump();
        }
        while self.token.kind == Kind::Percent {
            op.operands.push(self.operand()?);
            if !self.eat(Mark::Comma) {
                break;
            }
        }
        if is_enclosed {
            self.expect(Mark::RightParen)?;
        }
        Ok(())
    }

    /// Parses `(types) -> types`.
    fn form_signature(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        let mut inputs: SmallVec<[Type; 4]> = SmallVec::new();
        self.signature(&mut inputs, &mut op.state.result_types)?;
        self.resolve_operands(op, inputs.iter().map(ExpectedType::Type))
    }

    /// Parses `: type`, the type of all operands and of the result, or a function type.
    fn same_type(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        self.expect(Mark::Colon)?;
        if self.at(Mark::LeftParen) {
            return self.form_signature(op);
        }
        let ty = self.ty()?;
        let types = vec![ty.clone(); op.operands.len()];
        op.state.result_types.push(ty);
        self.resolve_operands(op, types.iter().map(ExpectedType::Type))
    }

    /// Parses `: types -> types`, in which neither needs parentheses.
    fn loose_signature(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        self.expect(Mark::Colon)?;
        if self.at(Mark::LeftParen) {
            return self.form_signature(op);
        }
        let inputs = self.bare_type_list()?;
        let results = match self.eat(Mark::Arrow) {
            false => inputs[..1].to_vec(),
            true if self.eat(Mark::LeftParen) => {
                let mut results = Vec::new();
                self.list_until(Mark::RightParen, |parser| {
                    results.push(parser.ty()?);
                    Ok(())
                })?;
                results
            }
            true => self.bare_type_list()?,
        };
        op.state.result_types = results.into_iter().collect();
        self.resolve_operands(op, inputs.iter().map(ExpectedType::Type))
    }

    /// Parses a word that stands for an attribute of StableHLO.
    fn keyword(&mut self, kind: &str) -> Parsed<Attribute> {
        if self.token.kind != Kind::Word {
            return self.expected(codes::EXPECTED_ATTRIBUTE, kind);
        }
        let text = format!("#stablehlo<{kind} {}>", self.token_text());
        self.bump();
        Ok(Attribute::Opaque(text.as_str().into()))
    }
}
