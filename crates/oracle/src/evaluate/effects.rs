//! Evaluation of operations with effects: prints, counters that several hold, resources.

use std::{cell::Cell, rc::Rc};

use super::{FamilyResult, Machine, plan::Operation, text::fixed};
use crate::value::{
    Datum::{self, *},
    Resource, Value,
};

impl Machine<'_> {
    pub(super) fn effect_operation(
        &mut self,
        operation: &Operation,
        operands: &[Datum],
    ) -> FamilyResult {
        if let Some(line) = self.printed_line(operation, operands) {
            self.print(&line);
            return Some(match operation.name.as_str() {
                "tfrt_test.usleep" => Vec::new(),
                "tfrt_test.test_cost" => vec![Ok(I32(0))],
                _ => vec![Ok(Chain)],
            });
        }
        let results = match (operation.name.as_str(), operands) {
            ("tfrt_test.atomic.create.i32", []) => vec![Atomic(Rc::new(Cell::new(0)))],
            ("tfrt_test.atomic.inc.i32", [Atomic(counter)]) => {
                counter.set(counter.get().wrapping_add(1));
                vec![Chain]
            }
            ("tfrt_test.atomic.add.i32", [Atomic(counter), I32(more)]) => {
                counter.set(counter.get().wrapping_add(*more));
                vec![Chain]
            }
            ("tfrt_test.atomic.get.i32", [Atomic(counter)]) => vec![I32(counter.get()), Chain],
            ("tfrt_test.allocate_resource", [Chain]) => {
                vec![Datum::Resource(Resource::allocate(&self.printed)), Chain]
            }
            ("tfrt_test.use_sample_shared_context", [Chain]) => {
                vec![String("sample_shared_context0".into()), Chain]
            }
            ("tfrt_test.logging", [String(_)]) => vec![Chain],
            _ => return None,
        };
        Some(results.into_iter().map(Ok).collect())
    }

    /// Drops a resource of its last holder, which then prints that this was done.
    pub(super) fn deallocate(&mut self, operands: Vec<Datum>) -> Vec<Value> {
        drop(operands);
        self.print("tfrt_test.deallocate_resource done");
        vec![Ok(Chain)]
    }

    /// Returns the line that an operation prints, if it is one that prints.
    fn printed_line(
        &self,
        operation: &Operation,
        operands: &[Datum],
    ) -> Option<std::string::String> {
        Some(match (operation.name.as_str(), operands) {
            ("tfrt.print.i1", [I1(bit)]) => format!("int1 = {}", u8::from(*bit)),
            ("tfrt.print.i32", [I32(number)]) => format!("int32 = {number}"),
            ("tfrt.print.i64", [I64(number)]) => format!("int64 = {number}"),
            ("tfrt.print.f16", [F16(bits)]) => format!("f16 = {bits}"),
            ("tfrt.print.f32", [F32(number)]) => format!("f32 = {}", fixed(f64::from(*number))),
            ("tfrt.print.f64", [F64(number)]) => format!("f64 = {}", fixed(*number)),
            ("tfrt.print.complex64", [Complex64(re, im)]) => {
                format!(
                    "complex64 = {}+{}i",
                    fixed(f64::from(*re)),
                    fixed(f64::from(*im))
                )
            }
            ("tfrt.print.complex128", [Complex128(re, im)]) => {
                format!("complex128 = {}+{}i", fixed(*re), fixed(*im))
            }
            ("tfrt_test.print_string", [String(text)]) => format!("string = {text}"),
            ("tfrt_test.print_hello", []) => "hello host executor!".to_owned(),
            ("tfrt_test.print_bool", [Chain, I1(bit)]) => bit.to_string(),
            ("tfrt_tutorial.print_coordinate", [Coordinate(x, y)]) => format!("({x}, {y})"),
            ("tfrt_test.usleep" | "tfrt_test.blocking.usleep", [I32(time)]) => {
                format!("Slept for {time} microseconds")
            }
            ("tfrt_test.test_cost", _) => {
                let id = self
                    .plan
                    .module
                    .op(operation.op)
                    .attribute("id")?
                    .as_i64()?;
                format!("id: {id}")
            }
            _ => return None,
        })
    }
}
