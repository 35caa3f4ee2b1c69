//! `cse`: merges pure operations that are alike.
//!
//! Two operations of a block are alike if names, operands, attributes and result
//! types are. Operands of a commutative operation are compared in any order. The
//! later one goes. Regions see nothing from outside, so nothing is shared between
//! blocks.

use std::collections::{HashMap, HashSet};

use tfrt_ir::{Attribute, Diagnostics, Module, Name, OpId, Type, ValueId, dialect};

use super::scope;
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "cse",
    summary: "Keeps the first of pure operations that are alike",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::Plain(run),
};

/// The key by which two operations are alike.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: Name,
    operands: Vec<ValueId>,
    attributes: Vec<(Name, Attribute)>,
    results: Vec<Type>,
}

pub(super) fn run(module: &mut Module, _: &mut Diagnostics) {
    for block in scope::blocks(module) {
        let mut first: HashMap<Key, OpId> = HashMap::new();
        let mut gone = HashSet::new();
        for op in module.block(block).operations().to_vec() {
            if !scope::is_pure(module, op) {
                continue;
            }
            match first.entry(key(module, op)) {
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(op);
                }
                std::collections::hash_map::Entry::Occupied(entry) => {
                    let kept = module.op(*entry.get()).results().to_vec();
                    scope::replace(module, op, &kept);
                    gone.insert(op);
                }
            }
        }
        scope::retain(module, block, |op| !gone.contains(&op));
    }
}

fn key(module: &Module, op: OpId) -> Key {
    let data = module.op(op);
    let mut operands = data.operands().to_vec();
    let definition = dialect::describe(data.name());
    if definition.is_some_and(|definition| definition.is(dialect::Traits::COMMUTATIVE)) {
        operands.sort();
    }
    let results = data.results().iter();
    Key {
        name: data.name().clone(),
        operands,
        attributes: data.attributes().to_vec(),
        results: results
            .map(|&result| module.value_type(result).clone())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::passes::testing::check;

    #[test]
    fn first_of_those_that_are_alike_stays() {
        check(
            "cse",
            r#"func.func @f(%x: i32, %y: i32) -> (i32, i32, i32) {
                 %a = tfrt.add.i32 %x, %y
                 %b = tfrt.add.i32 %y, %x
                 %c = tfrt.add.i32 %a, %b
                 %d = "tfrt.minus.i32"(%x, %y) : (i32, i32) -> i32
                 %e = "tfrt.minus.i32"(%y, %x) : (i32, i32) -> i32
                 tfrt.return %c, %d, %e : i32, i32, i32
               }"#,
            expect![[r#"
                func.func @f(%arg0: i32, %arg1: i32) -> (i32, i32, i32) {
                  %0 = tfrt.add.i32 %arg0, %arg1
                  %1 = tfrt.add.i32 %0, %0
                  %2 = "tfrt.minus.i32"(%arg0, %arg1) : (i32, i32) -> i32
                  %3 = "tfrt.minus.i32"(%arg1, %arg0) : (i32, i32) -> i32
                  tfrt.return %1, %2, %3 : i32, i32, i32
                }
            "#]],
        );
    }

    #[test]
    fn what_is_new_each_time_stays() {
        check(
            "cse",
            r#"func.func @f() -> (!test.atomic.i32, !test.atomic.i32) {
                 %a = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
                 %b = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
                 tfrt.return %a, %b : !test.atomic.i32, !test.atomic.i32
               }"#,
            expect![[r#"
                func.func @f() -> (!test.atomic.i32, !test.atomic.i32) {
                  %0 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
                  %1 = "tfrt_test.atomic.create.i32"() : () -> !test.atomic.i32
                  tfrt.return %0, %1 : !test.atomic.i32, !test.atomic.i32
                }
            "#]],
        );
    }
}
