//! Calls, branches and loops; tuples, tokens and what calls from outside say.

use tfrt_ir::{BlockId, OpId, OpState, Type, ValueId};

use super::{Bound, LowerFn, Lowered, Lowering};
use crate::passes::graph::YIELD;

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    // A value with extents that its new type does not state, or the other way round.
    ("builtin.unrealized_conversion_cast", |l, op| l.operands(op)),
    ("func.call", |l, op| l.called(op, "callee")),
    ("stablehlo.after_all", token),
    ("stablehlo.case", case),
    ("stablehlo.composite", |l, op| l.called(op, "decomposition")),
    ("stablehlo.create_token", token),
    ("stablehlo.get_tuple_element", tuple_element),
    ("stablehlo.if", branch),
    ("stablehlo.optimization_barrier", |l, op| l.operands(op)),
    ("stablehlo.partition_id", first),
    ("stablehlo.replica_id", first),
    ("stablehlo.tuple", |l, op| {
        Ok(vec![Bound::Tuple(l.operands(op)?)])
    }),
    ("stablehlo.while", repeat),
];

fn token(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    l.operands(op)?;
    Ok(vec![Bound::Token])
}

/// The number of the only device.
fn first(l: &mut Lowering<'_>, _: OpId) -> Lowered {
    Ok(vec![Bound::Tensor(l.number(&Type::UI32, 0.0))])
}

fn tuple_element(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let index = l.int(op, "index")?;
    let Bound::Tuple(parts) = l.bound(op, 0)? else {
        return Err("expected a tuple".to_owned());
    };
    let part = usize::try_from(index)
        .ok()
        .and_then(|index| parts.get(index).cloned());
    let n = parts.len();
    Ok(vec![part.ok_or_else(|| {
        format!("takes the part {index} of a tuple of {n}")
    })?])
}

/// Appends the tensors of a value to a list.
fn flatten(value: &Bound, all: &mut Vec<ValueId>) {
    match value {
        Bound::Tensor(value) | Bound::Quantized(value, _) => all.push(*value),
        Bound::Complex(real, imaginary) => all.extend([*real, *imaginary]),
        Bound::Tuple(parts) => parts.iter().for_each(|part| flatten(part, all)),
        Bound::Token => {}
    }
}

/// Makes a value like another one of the next tensors of a list.
fn unflatten(like: &Bound, from: &mut impl Iterator<Item = ValueId>) -> Option<Bound> {
    Some(match like {
        Bound::Tensor(_) => Bound::Tensor(from.next()?),
        Bound::Quantized(_, own) => Bound::Quantized(from.next()?, own.clone()),
        Bound::Complex(..) => Bound::Complex(from.next()?, from.next()?),
        Bound::Tuple(parts) => {
            let parts = parts.iter().map(|part| unflatten(part, from));
            Bound::Tuple(parts.collect::<Option<_>>()?)
        }
        Bound::Token => Bound::Token,
    })
}

pub(super) fn flattened(values: &[Bound]) -> Vec<ValueId> {
    let mut all = Vec::new();
    values.iter().for_each(|value| flatten(value, &mut all));
    all
}

pub(super) fn unflattened(like: &[Bound], from: Vec<ValueId>) -> Lowered {
    let mut from = from.into_iter();
    let values = like.iter().map(|like| unflatten(like, &mut from));
    let values: Option<Vec<Bound>> = values.collect();
    values.ok_or_else(|| "has regions of different types".to_owned())
}

impl Lowering<'_> {
    /// Inlines the function that an attribute names.
    fn called(&mut self, op: OpId, attribute: &str) -> Lowered {
        let symbol = self
            .attribute(op, attribute)
            .and_then(tfrt_ir::Attribute::as_flat_symbol);
        let symbol =
            symbol.ok_or_else(|| format!("requires attribute '{attribute}', a function"))?;
        let name = symbol.as_str().to_owned();
        let found = self.functions.get(&name);
        let (_, block) = *found.ok_or_else(|| format!("calls '@{name}', which is no function"))?;
        if self.called.contains(&block) {
            return Err(format!("calls '@{name}', which calls itself"));
        }
        self.called.push(block);
        let arguments = self.operands(op)?;
        let around = self.location.clone();
        let results = self.block(block, &arguments)?;
        self.location = around;
        self.called.pop();
        Ok(results)
    }

    /// Makes a region of operations that are appended meanwhile; it yields the values that these return.
    pub(super) fn region<T>(
        &mut self,
        types: &[Type],
        make: impl FnOnce(&mut Self, Vec<ValueId>) -> Result<(Vec<ValueId>, T), String>,
    ) -> Result<(tfrt_ir::RegionId, T), String> {
        let region = self.module.create_region();
        let block = self.module.create_block(region);
        let arguments: Vec<ValueId> = types
            .iter()
            .map(|ty| {
                self.module
                    .add_argument(block, ty.clone(), tfrt_ir::Location::Unknown)
            })
            .collect();
        let around = std::mem::take(&mut self.made);
        let made = make(self, arguments);
        let inner = std::mem::replace(&mut self.made, around);
        let (results, more) = made?;
        let mut operations = inner;
        let last = OpState::new(YIELD)
            .operands(results)
            .location(self.location.clone());
        operations.push(self.module.create(last));
        self.module.set_operations(block, operations);
        Ok((region, more))
    }

    /// Makes a region of a block of the text, whose arguments are given.
    fn region_of(
        &mut self,
        block: BlockId,
        types: &[Type],
        like: &[Bound],
    ) -> Result<(tfrt_ir::RegionId, Vec<Bound>), String> {
        self.region(types, |l, arguments| {
            let arguments = unflattened(like, arguments)?;
            let results = l.block(block, &arguments)?;
            Ok((flattened(&results), results))
        })
    }

    pub(super) fn types_of(&self, values: &[ValueId]) -> Vec<Type> {
        let types = values
            .iter()
            .map(|value| self.module.value_type(*value).clone());
        types.collect()
    }

    /// Appends a loop: the values go from turn to turn as long as the condition holds.
    pub(super) fn looped(
        &mut self,
        values: &[ValueId],
        condition: tfrt_ir::RegionId,
        body: tfrt_ir::RegionId,
    ) -> Vec<ValueId> {
        let types = self.types_of(values);
        let state = OpState::new("graph.while")
            .operands(values.iter().copied())
            .results(types)
            .region(condition)
            .region(body)
            .location(self.location.clone());
        self.append(state)
    }
}

fn repeat(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let values = l.operands(op)?;
    let (condition, body) = (l.body(op, 0)?, l.body(op, 1)?);
    let operands = flattened(&values);
    let types = l.types_of(&operands);
    let (condition, asked) = l.region_of(condition, &types, &values)?;
    if asked.len() != 1 {
        return Err(format!(
            "has a condition of {} values, expected one",
            asked.len()
        ));
    }
    let (body, given) = l.region_of(body, &types, &values)?;
    if given.len() != values.len() {
        return Err(format!(
            "has a body of {} results, expected {}",
            given.len(),
            values.len()
        ));
    }
    let given = l.types_of(&flattened(&given));
    if given != types {
        return Err("has a body whose results have other types than its operands".to_owned());
    }
    let results = l.looped(&operands, condition, body);
    unflattened(&values, results)
}

fn branch(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    let condition = l.operand(op, 0)?;
    let blocks = [l.body(op, 0)?, l.body(op, 1)?];
    l.chosen(condition, blocks.to_vec())
}

impl Lowering<'_> {
    /// Chooses the first block if the condition is true, else one of the others by its own conditions.
    fn chosen(&mut self, condition: ValueId, blocks: Vec<BlockId>) -> Lowered {
        let [then, otherwise] = blocks[..] else {
            return Err(format!("expected 2 regions, found {}", blocks.len()));
        };
        let (then, results) = self.region_of(then, &[], &[])?;
        let (otherwise, others) = self.region_of(otherwise, &[], &[])?;
        self.either(condition, [then, otherwise], &results, &others)
    }

    fn either(
        &mut self,
        condition: ValueId,
        regions: [tfrt_ir::RegionId; 2],
        results: &[Bound],
        others: &[Bound],
    ) -> Lowered {
        let [types, other] = [results, others].map(|values| self.types_of(&flattened(values)));
        if types != other {
            return Err("has regions whose results have different types".to_owned());
        }
        if self.rank(condition) != 0 {
            return Err("has a condition that is a tensor, expected one truth value".to_owned());
        }
        let state = OpState::new("graph.if")
            .operand(condition)
            .results(types)
            .region(regions[0])
            .region(regions[1])
            .location(self.location.clone());
        let made = self.append(state);
        unflattened(results, made)
    }

    /// Chooses a block by a number: the last one by any number that is none of the others'.
    fn case_of(&mut self, index: ValueId, blocks: &[BlockId], at: i32) -> Lowered {
        let (first, rest) = blocks.split_first().ok_or("has no regions")?;
        if rest.is_empty() {
            return self.block(*first, &[]);
        }
        let number = self.number(&Type::I32, f64::from(at));
        let is_it = self.compare("eq", index, number);
        let (then, results) = self.region_of(*first, &[], &[])?;
        let (otherwise, others) = self.region(&[], |l, _| {
            let results = l.case_of(index, rest, at + 1)?;
            Ok((flattened(&results), results))
        })?;
        self.either(is_it, [then, otherwise], &results, &others)
    }
}

fn case(l: &mut Lowering<'_>, op: OpId) -> Lowered {
    const MOST: usize = 64;
    let index = l.operand(op, 0)?;
    let n = l.module.op(op).regions().len();
    if n > MOST {
        return Err(format!("has {n} regions, expected at most {MOST}"));
    }
    let blocks: Vec<BlockId> = (0..n)
        .map(|index| l.body(op, index))
        .collect::<Result<_, _>>()?;
    l.case_of(index, &blocks, 0)
}
