//! The forms of `reduce` and `while`, which have regions.

use smallvec::SmallVec;

use crate::{
    codes,
    lexer::{Kind, Mark},
    location::Location,
    module::OpState,
    parser::{Argument, ExpectedType, Parsed, ParsedOp, Parser},
    types::Type,
};

impl<'a> Parser<'a> {
    /// ```text
    /// reduce ::= (`(` value `init` `:` value `)`),* (`applies` name)? `across` `dimensions` `=` list dictionary?
    ///            `:` function-type (`reducer` arguments region)?
    /// ```
    pub(super) fn reduce_form(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        let mut inits = Vec::new();
        loop {
            self.expect(Mark::LeftParen)?;
            op.operands.push(self.operand()?);
            self.expect_word("init")?;
            self.expect(Mark::Colon)?;
            inits.push(self.operand()?);
            self.expect(Mark::RightParen)?;
            if !self.eat(Mark::Comma) {
                break;
            }
        }
        let n = op.operands.len();
        op.operands.extend(inits);
        let applied = self.eat_word("applies");
        let name = self.token_text();
        if applied {
            if self.token.kind != Kind::Word {
                return self.expected(codes::EXPECTED_OPERATION, "name of an operation");
            }
            self.bump();
        }
        self.expect_word("across")?;
        self.expect_word("dimensions")?;
        self.expect(Mark::Equal)?;
        let dimensions = self.integer_list()?;
        self.add_list(op, "dimensions", &dimensions)?;
        if self.at(Mark::LeftBrace) {
            self.merge_dictionary(&mut op.state)?;
        }
        self.expect(Mark::Colon)?;
        self.form_signature(op)?;
        if applied {
            return self.applied(op, name);
        }
        self.expect_word("reducer")?;
        // Each pair is in parentheses of its own: first all left operands are arguments, then all right ones.
        let (mut left, mut right) = (Vec::with_capacity(n), Vec::with_capacity(n));
        for _ in 0..n {
            self.expect(Mark::LeftParen)?;
            left.push(self.block_argument()?);
            self.expect(Mark::Comma)?;
            right.push(self.block_argument()?);
            self.expect(Mark::RightParen)?;
        }
        left.extend(right);
        let region = self.region_around(left)?;
        op.state.regions.push(region);
        Ok(())
    }

    /// Makes the body of a reduction that is one operation.
    fn applied(&mut self, op: &mut ParsedOp<'a>, name: &'a str) -> Parsed<()> {
        let element = match op.state.operands.get(1) {
            Some(init) => self.module.value_type(*init).clone(),
            None => Type::None,
        };
        let region = self.module.create_region();
        let block = self.module.create_block(region);
        let arguments = [(); 2].map(|()| {
            self.module
                .add_argument(block, element.clone(), Location::Unknown)
        });
        let location = op.state.location.clone();
        let state = OpState::new(self.name(name))
            .operands(arguments)
            .result(element)
            .location(location.clone());
        let inner = self.module.create(state);
        self.module.append(block, inner);
        let result = self.module.op(inner).results()[0];
        let last = OpState::new("stablehlo.return")
            .operand(result)
            .location(location);
        let last = self.module.create(last);
        self.module.append(block, last);
        op.state.regions.push(region);
        Ok(())
    }

    /// ```text
    /// while ::= `(` (`%name` `=` value),* `)` `:` types (`attributes` dictionary)? `cond` region `do` region
    /// ```
    pub(super) fn while_form(&mut self, op: &mut ParsedOp<'a>) -> Parsed<()> {
        let mut names = Vec::new();
        self.expect(Mark::LeftParen)?;
        self.list_until(Mark::RightParen, |parser| {
            names.push(parser.operand()?);
            parser.expect(Mark::Equal)?;
            op.operands.push(parser.operand()?);
            Ok(())
        })?;
        let mut types: Vec<Type> = Vec::new();
        if self.eat(Mark::Colon) {
            types = self.bare_type_list()?;
        }
        self.resolve_operands(op, types.iter().map(ExpectedType::Type))?;
        if self.eat_word("attributes") {
            self.merge_dictionary(&mut op.state)?;
        }
        for word in ["cond", "do"] {
            self.expect_word(word)?;
            let arguments = names.iter().zip(&types).map(|(name, ty)| Argument {
                name: *name,
                ty: ty.clone(),
                location: Location::Unknown,
            });
            let arguments = arguments.collect();
            let region = self.region_around(arguments)?;
            op.state.regions.push(region);
        }
        op.state.result_types = SmallVec::from_vec(types);
        Ok(())
    }
}
