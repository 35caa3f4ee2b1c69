//! The parts that only one operation has, but for those with regions.

use std::sync::Arc;

use super::Rule;
use crate::{
    attributes::{
        Attribute, Bytes, DenseArrayAttribute, DenseAttribute, DenseElements, FloatAttribute,
    },
    codes,
    lexer::{Kind, Mark},
    parser::{ExpectedType, Parsed, ParsedOp, Parser},
    types::{FloatKind, Type},
};

/// Makes `array<i64: ..>`.
pub(super) fn list(values: &[i64]) -> Attribute {
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    Attribute::DenseArray(Arc::new(DenseArrayAttribute {
        element: Type::I64,
        bytes: bytes.into(),
    }))
}

impl<'a> Parser<'a> {
    pub(super) fn form_rule(&mut self, op: &mut ParsedOp<'a>, rule: Rule) -> Parsed<()> {
        match rule {
            Rule::Complex => self.complex_types(op),
            Rule::Constant => self.constant_form(op),
            Rule::Convolution => self.convolution_form(op),
            Rule::Composite => {
                let name = self.string_literal()?;
                self.set(op, "name", Attribute::string(name))?;
                self.form_operands(op)
            }
            Rule::CustomCall => {
                let name = self.symbol_name()?;
                self.set(op, "call_target_name", Attribute::string(name.as_str()))?;
                self.expect(Mark::LeftParen)?;
                self.list_until(Mark::RightParen, |parser| {
                    op.operands.push(parser.operand()?);
                    Ok(())
                })
            }
            Rule::Dot => self.dot_form(op),
            Rule::Expected => self.expected_form(op),
            Rule::Precision => self.precision_form(op),
            Rule::ReducePrecision => self.reduce_precision_form(op),
            Rule::Select => self.select_types(op),
            Rule::Slice => self.slice_form(op),
            Rule::TopK => self.top_k_form(op),
            Rule::Tuple => self.tuple_types(op),
            Rule::While => self.while_form(op),
            Rule::Reduce => self.reduce_form(op),
        }
    }

    /// Sets an attribute that has a place of its own.
    pub(super) fn set(
        &mut self,
        op: &mut ParsedOp<'a>,
        name: &'static str,
        value: Attribute,
    ) -> Parsed<()> {
        let (span, name) = (self.token.span(), self.name(name));
        self.add_attribute(&mut op.state, span, name, value)
    }

    pub(super) fn add_list(
        &mut self,
        op: &mut ParsedOp<'a>,
        name: &'static str,
        values: &[i64],
    ) -> Parsed<()> {
        self.set(op, name, list(values))
    }

    /// Parses `[1, 2]`.
    pub(super) fn integer_list(&mut self) -> Parsed<Vec<i64>> {
        self.expect(Mark::LeftSquare)?;
        let mut values = Vec::new();
        self.list_until(Mark::RightSquare, |parser| {
            values.push(parser.bare_integer()?);
            Ok(())
        })?;
        Ok(values)
    }

    /// Returns the text from an offset up to the present token.
    fn text_since(&self, start: usize) -> &'a str {
        &self.text[start..self.last_end]
    }

    /// `complex<f32>` for two operands of `f32`.
    fn complex_types(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        self.expect(Mark::Colon)?;
        if self.at(Mark::LeftParen) {
            return self.form_signature(op);
        }
        let span = self.token.span();
        let ty = self.ty()?;
        let part = match ty.as_shaped() {
            Some((shape, Type::Complex(part))) => Type::tensor(shape, (**part).clone()),
            _ => {
                let message = format!("expected a tensor of complex numbers, found '{ty}'");
                return self.fail(codes::EXPECTED_TYPE, span, message);
            }
        };
        op.state.result_types.push(ty);
        let types = vec![part; op.operands.len()];
        self.resolve_operands(op, types.iter().map(ExpectedType::Type))
    }

    /// `type of the condition, type of the rest`, or a function type.
    fn select_types(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        self.expect(Mark::Colon)?;
        if self.at(Mark::LeftParen) {
            return self.form_signature(op);
        }
        let condition = self.ty()?;
        self.expect(Mark::Comma)?;
        let ty = self.ty()?;
        op.state.result_types.push(ty.clone());
        let types = [condition, ty.clone(), ty];
        self.resolve_operands(op, types.iter().map(ExpectedType::Type))
    }

    /// The type of the tuple, whose parts are the operands.
    fn tuple_types(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        self.expect(Mark::Colon)?;
        let span = self.token.span();
        let ty = self.ty()?;
        let Type::Tuple(parts) = &ty else {
            let message = format!("expected a tuple, found '{ty}'");
            return self.fail(codes::EXPECTED_TYPE, span, message);
        };
        let parts = parts.to_vec();
        op.state.result_types.push(ty);
        self.resolve_operands(op, parts.iter().map(ExpectedType::Type))
    }

    /// `dense<1.0> : tensor<2xf32>`; or `() <{value = dense<1> : tensor<i8>}> : () -> type`, where the type of the result is
    /// another one than that of the elements: a constant of quantised numbers states their storage.
    fn constant_form(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        if self.eat(Mark::LeftParen) {
            self.expect(Mark::RightParen)?;
            if self.eat(Mark::Less) {
                op.state.attributes = self.dictionary_entries()?;
                self.expect(Mark::Greater)?;
            }
            if self.at(Mark::LeftBrace) {
                self.merge_dictionary(&mut op.state)?;
            }
            self.expect(Mark::Colon)?;
            return self.form_signature(op);
        }
        if self.at(Mark::LeftBrace) {
            self.merge_dictionary(&mut op.state)?;
        }
        let value = self.attribute()?;
        let ty = match &value {
            Attribute::Dense(dense) => dense.ty.clone(),
            Attribute::Sparse(sparse) => sparse.ty.clone(),
            _ => return self.expected(codes::EXPECTED_ATTRIBUTE, "dense elements with their type"),
        };
        op.state.result_types.push(ty);
        self.set(op, "value", value)
    }

    /// `dense<..> : type` (`, tolerance = 0.1`): what an operand of the constant's type is to be.
    fn expected_form(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        let value = self.attribute()?;
        let ty = match &value {
            Attribute::Dense(dense) => dense.ty.clone(),
            _ => return self.expected(codes::EXPECTED_ATTRIBUTE, "dense elements with their type"),
        };
        self.set(op, "value", value)?;
        if self.eat(Mark::Comma) {
            self.expect_word("tolerance")?;
            self.expect(Mark::Equal)?;
            let tolerance = self.bare_number()?;
            self.set(op, "tolerance", tolerance)?;
        }
        let types: Vec<Type> = op
            .operands
            .iter()
            .map(|operand| self.type_above(*operand).unwrap_or_else(|| ty.clone()))
            .collect();
        self.resolve_operands(op, types.iter().map(ExpectedType::Type))
    }

    /// `[0:2, 1:9:3]`.
    fn slice_form(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        let (mut starts, mut limits, mut strides) = (Vec::new(), Vec::new(), Vec::new());
        self.expect(Mark::LeftSquare)?;
        self.list_until(Mark::RightSquare, |parser| {
            starts.push(parser.bare_integer()?);
            parser.expect(Mark::Colon)?;
            limits.push(parser.bare_integer()?);
            let has_stride = parser.eat(Mark::Colon);
            strides.push(match has_stride {
                true => parser.bare_integer()?,
                false => 1,
            });
            Ok(())
        })?;
        self.add_list(op, "start_indices", &starts)?;
        self.add_list(op, "limit_indices", &limits)?;
        self.add_list(op, "strides", &strides)
    }

    /// Parses an integer; a colon behind it states no type.
    pub(super) fn bare_integer(&mut self) -> Parsed<i64> {
        let sign = if self.eat(Mark::Minus) { "-" } else { "" };
        let value: Option<i64> = match self.token.kind {
            Kind::Integer => format!("{sign}{}", self.token_text()).parse().ok(),
            _ => None,
        };
        let Some(value) = value else {
            return self.expected(codes::EXPECTED_ATTRIBUTE, "integer");
        };
        self.bump();
        Ok(value)
    }

    /// A float without its type, which is `f64`.
    pub(super) fn bare_number(&mut self) -> Parsed<Attribute> {
        let sign = if self.eat(Mark::Minus) { -1.0 } else { 1.0 };
        let value: Option<f64> = match self.token.kind {
            Kind::Float => self.token_text().parse().ok(),
            _ => None,
        };
        let Some(value) = value else {
            return self.expected(codes::EXPECTED_ATTRIBUTE, "a float");
        };
        self.bump();
        let value = FloatAttribute::nearest(sign * value, FloatKind::F64);
        Ok(Attribute::Float(value))
    }

    /// `(%x, k = 3)`.
    fn top_k_form(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        self.expect(Mark::LeftParen)?;
        self.form_operands(op)?;
        while self.token.kind == Kind::Word {
            let name = self.token_text();
            self.bump();
            self.expect(Mark::Equal)?;
            let value = match name {
                "k" => Attribute::integer(self.bare_integer()?, Type::I64),
                _ => self.attribute()?,
            };
            let (span, name) = (self.token.span(), self.name(name));
            self.add_attribute(&mut op.state, span, name, value)?;
            if !self.eat(Mark::Comma) {
                break;
            }
        }
        self.expect(Mark::RightParen)
    }

    /// `format = e5m10`.
    fn reduce_precision_form(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        self.expect_word("format")?;
        self.expect(Mark::Equal)?;
        let parts = self.token_text().strip_prefix('e').and_then(|text| {
            let (exponent, mantissa) = text.split_once('m')?;
            Some((exponent.parse().ok()?, mantissa.parse().ok()?))
        });
        let Some((exponent, mantissa)) = parts else {
            return self.expected(codes::EXPECTED_ATTRIBUTE, "a format such as e5m10");
        };
        self.bump();
        let bits = |bits: i32| Attribute::integer(i64::from(bits), Type::I32);
        self.set(op, "exponent_bits", bits(exponent))?;
        self.set(op, "mantissa_bits", bits(mantissa))
    }

    /// `batching_dims = [0] x [0], contracting_dims = [2] x [1]`.
    fn dot_form(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        let mut lists: Vec<String> = Vec::new();
        for (word, name) in [
            ("batching_dims", "batching_dimensions"),
            ("contracting_dims", "contracting_dimensions"),
        ] {
            if !self.eat_word(word) {
                continue;
            }
            self.expect(Mark::Equal)?;
            let left = self.integer_list()?;
            self.expect_word("x")?;
            let right = self.integer_list()?;
            lists.push(format!("lhs_{name} = {left:?}, rhs_{name} = {right:?}"));
            // What follows the last list has a comma of its own.
            let is_list = matches!(self.token.kind, Kind::Mark(Mark::Comma))
                && self.text[self.peek().start..].starts_with("contracting_dims");
            if !is_list {
                break;
            }
            self.bump();
        }
        let text = format!("#stablehlo.dot<{}>", lists.join(", "));
        let value = Attribute::Opaque(text.as_str().into());
        self.set(op, "dot_dimension_numbers", value)
    }

    /// `, precision = [DEFAULT, DEFAULT], algorithm = <..>`.
    fn precision_form(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        loop {
            self.eat(Mark::Comma);
            if self.eat_word("precision") {
                self.expect(Mark::Equal)?;
                self.expect(Mark::LeftSquare)?;
                let mut values = Vec::new();
                self.list_until(Mark::RightSquare, |parser| {
                    values.push(parser.keyword("precision")?);
                    Ok(())
                })?;
                self.set(op, "precision_config", Attribute::array(values))?;
            } else if self.eat_word("algorithm") {
                self.expect(Mark::Equal)?;
                let start = self.token.start;
                if !self.at(Mark::Less) {
                    return self.expected(codes::UNEXPECTED_TOKEN, "'<'");
                }
                self.balanced()?;
                let text = format!("#stablehlo.dot_algorithm{}", self.text_since(start));
                self.set(op, "algorithm", Attribute::Opaque(text.as_str().into()))?;
            } else {
                return Ok(());
            }
        }
    }

    /// `(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, 0]]}`.
    fn convolution_form(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        self.form_operands(op)?;
        self.expect_word("dim_numbers")?;
        self.expect(Mark::Equal)?;
        let start = self.token.start;
        self.dimension_list()?;
        self.expect_word("x")?;
        self.dimension_list()?;
        self.expect(Mark::Arrow)?;
        self.dimension_list()?;
        let text = format!("#stablehlo.conv<{}>", self.text_since(start));
        self.set(
            op,
            "dimension_numbers",
            Attribute::Opaque(text.as_str().into()),
        )?;
        self.expect(Mark::Comma)?;
        self.expect_word("window")?;
        self.expect(Mark::Equal)?;
        self.expect(Mark::LeftBrace)?;
        self.list_until(Mark::RightBrace, |parser| parser.window_entry(op))
    }

    fn dimension_list(&mut self) -> Parsed<()> {
        self.expect(Mark::LeftSquare)?;
        self.list_until(Mark::RightSquare, |parser| match parser.token.kind {
            Kind::Word | Kind::Integer | Kind::Mark(Mark::Question) => {
                parser.bump();
                Ok(())
            }
            _ => parser.expected(
                codes::EXPECTED_ATTRIBUTE,
                "a dimension: b, f, i, o or a number",
            ),
        })
    }

    fn window_entry(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        let (word, span) = (self.token_text(), self.token.span());
        let name = match word {
            "stride" => "window_strides",
            "lhs_dilate" => "lhs_dilation",
            "rhs_dilate" => "rhs_dilation",
            "pad" => "padding",
            "reverse" => "window_reversal",
            _ => {
                let what = "stride, pad, lhs_dilate, rhs_dilate or reverse";
                return self.expected(codes::EXPECTED_ATTRIBUTE, what);
            }
        };
        self.bump();
        self.expect(Mark::Equal)?;
        let value = match word {
            "pad" => {
                let mut values = Vec::new();
                self.expect(Mark::LeftSquare)?;
                self.list_until(Mark::RightSquare, |parser| {
                    let pair = parser.integer_list()?;
                    match pair.len() {
                        2 => values.extend(pair),
                        _ => return parser.expected(codes::EXPECTED_ATTRIBUTE, "two integers"),
                    }
                    Ok(())
                })?;
                pairs(&values)
            }
            "reverse" => {
                let mut bytes = Vec::new();
                self.expect(Mark::LeftSquare)?;
                self.list_until(Mark::RightSquare, |parser| {
                    let value = match parser.token_text() {
                        "true" | "1" => 1,
                        "false" | "0" => 0,
                        _ => return parser.expected(codes::EXPECTED_ATTRIBUTE, "true or false"),
                    };
                    parser.bump();
                    bytes.push(value);
                    Ok(())
                })?;
                Attribute::DenseArray(Arc::new(DenseArrayAttribute {
                    element: Type::I1,
                    bytes: bytes.into(),
                }))
            }
            _ => list(&self.integer_list()?),
        };
        let name = self.name(name);
        self.add_attribute(&mut op.state, span, name, value)
    }
}

/// Makes `dense<[[0, 1]]> : tensor<1x2xi64>` of pairs one after the other.
fn pairs(values: &[i64]) -> Attribute {
    let n = i64::try_from(values.len() / 2).unwrap_or(0);
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let splat = values.windows(2).all(|pair| pair[0] == pair[1]) && !values.is_empty();
    Attribute::Dense(Arc::new(DenseAttribute {
        ty: Type::tensor(vec![n, 2], Type::I64),
        elements: DenseElements::Bytes(match splat {
            true => Bytes::copy_from_slice(&bytes[..8]),
            false => bytes.into(),
        }),
        splat,
    }))
}
