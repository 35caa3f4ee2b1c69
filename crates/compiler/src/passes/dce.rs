//! `dce`: removes pure operations without users.
//!
//! A pure operation whose results nobody uses is erased, and then what only it
//! used. That it might have failed does not count: a division by zero whose
//! quotient nobody wants is not missed. Private functions that nobody names stay:
//! a host may call them; `inline` removes those that it has copied.

use std::collections::HashSet;

use tfrt_ir::{Diagnostics, Module};

use super::scope;
use crate::pipeline::{Pass, PassFn, Property};

pub(crate) const PASS: Pass = Pass {
    name: "dce",
    summary: "Removes pure operations whose results nobody uses",
    needs: &[],
    gives: &[],
    breaks: &[Property::Streams],
    run: PassFn::Plain(run),
};

pub(super) fn run(module: &mut Module, _: &mut Diagnostics) {
    for block in scope::blocks(module) {
        let mut dead = HashSet::new();
        // Users stand behind what they use, so one way back finds all.
        for &op in module.block(block).operations().to_vec().iter().rev() {
            if scope::is_pure(module, op) && scope::is_unused(module, op) {
                module.set_operands(op, &[]);
                dead.insert(op);
            }
        }
        scope::retain(module, block, |op| !dead.contains(&op));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::passes::testing::check;

    #[test]
    fn what_only_the_dead_use_is_dead_too() {
        check(
            "dce",
            r#"func.func @f(%x: i32, %c: !tfrt.chain) -> !tfrt.chain {
                 %a = tfrt.constant.i32 1
                 %b = tfrt.add.i32 %a, %x
                 %q, %r = tfrt.div.i32 %b, %a
                 %kept = "tfrt_test.async_copy.i32"(%x) : (i32) -> i32
                 %d = tfrt.print.i32 %x, %c
                 tfrt.return %c : !tfrt.chain
               }"#,
            expect![[r#"
                func.func @f(%arg0: i32, %arg1: !tfrt.chain) -> !tfrt.chain {
                  %0 = "tfrt_test.async_copy.i32"(%arg0) : (i32) -> i32
                  %1 = tfrt.print.i32 %arg0, %arg1
                  tfrt.return %arg1 : !tfrt.chain
                }
            "#]],
        );
    }

    #[test]
    fn regions_are_searched() {
        check(
            "dce",
            r#"func.func @f(%p: i1, %x: i32) -> i32 {
                 %r = tfrt.if %p, %x : (i32) -> (i32) {
                   %dead = tfrt.add.i32 %x, %x
                   tfrt.return %x : i32
                 } else {
                   %y = tfrt.add.i32 %x, %x
                   tfrt.return %y : i32
                 }
                 tfrt.return %r : i32
               }"#,
            expect![[r#"
                func.func @f(%arg0: i1, %arg1: i32) -> i32 {
                  %0 = tfrt.if %arg0, %arg1 : (i32) -> (i32)  {
                    tfrt.return %arg1 : i32
                  } else  {
                    %1 = tfrt.add.i32 %arg1, %arg1
                    tfrt.return %1 : i32
                  }
                  tfrt.return %0 : i32
                }
            "#]],
        );
    }
}
