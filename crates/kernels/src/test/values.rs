//! `vt.*`: integers that print when they are made and destroyed, so that programs show lifetimes.
//!
//! A value lives in one place from its creation on. The original moved it there; the line that it
//! printed for that belongs to what tests compare, so it is printed at creation.

use tfrt_host::kernel::{Attr, KernelRegistry};
use tfrt_host::{AnyAsyncValue, Chain, Heap, HostContext, Output, Value};

pub(super) fn register(registry: &mut KernelRegistry) {
    registry
        .add("vt.constant", constant)
        .add("vt.add", add)
        .add("vt.print", print)
        .add("tfrt_test.share_to_two", share_to_two);
}

/// A number that prints when it is destroyed.
struct TrackedValue {
    number: i32,
    output: Output,
}

impl TrackedValue {
    fn new(number: i32, host: &HostContext) -> Self {
        let output = host.output().clone();
        output.print(format_args!(
            "constructed vt.value({number})\nmove constructed vt.value({number})"
        ));
        TrackedValue { number, output }
    }
}

/// A value of -1 is destroyed silently: the original marks values so that it has moved from.
impl Drop for TrackedValue {
    fn drop(&mut self) {
        if self.number != -1 {
            self.output
                .print(format_args!("destroyed vt.value({})", self.number));
        }
    }
}

impl Value for TrackedValue {
    const NAME: &'static str = "!vt.value";
    type Storage = Heap;
}

/// `%v = "vt.constant"() {value = 1 : i32}`
fn constant(value: Attr<i32>, host: &HostContext) -> TrackedValue {
    TrackedValue::new(*value, host)
}

/// `%w = "vt.add"(%u, %v)`
fn add(a: &TrackedValue, b: &TrackedValue, host: &HostContext) -> TrackedValue {
    TrackedValue::new(a.number.wrapping_add(b.number), host)
}

/// `%c1 = "vt.print"(%v, %c0)`
fn print(value: &TrackedValue, host: &HostContext) -> Chain {
    host.output()
        .print(format_args!("print vt_value({})", value.number));
    Chain
}

/// `%v, %w = "tfrt_test.share_to_two"(%u)`: both results are the operand.
fn share_to_two(value: AnyAsyncValue) -> (AnyAsyncValue, AnyAsyncValue) {
    (value.clone(), value)
}
