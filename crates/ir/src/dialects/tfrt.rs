//! `tfrt`: constants, arithmetic, chains, calls and control flow.
//!
//! Names end in the type they work on; each is written out so that a search
//! for it finds its entry.

use super::checks;
use crate::dialect::{
    AttributeKind::{self, FlatSymbol, FlatSymbols},
    OpDef, Traits,
    ValueKind::{self, *},
};

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = Vec::new();
    all.extend(constants());
    all.extend(arithmetic());
    all.extend(chains());
    all.extend(calls());
    all.extend(regions());
    all.extend(
        kernels()
            .into_iter()
            .map(|kernel| kernel.traits(&[Traits::KERNEL_ONLY])),
    );
    all
}

fn constant(name: &'static str, kind: ValueKind) -> OpDef {
    OpDef::new(name)
        .summary("A constant")
        .attribute("value", AttributeKind::Typed(kind))
        .results(&[kind])
        .pure()
        .format("$value attr-dict")
}

fn complex(name: &'static str, part: ValueKind, kind: ValueKind) -> OpDef {
    OpDef::new(name)
        .summary("A complex constant: real part, imaginary part")
        .attribute("imaginary", AttributeKind::Typed(part))
        .attribute("real", AttributeKind::Typed(part))
        .results(&[kind])
        .pure()
        .format("$real, $imaginary attr-dict")
}

fn constants() -> Vec<OpDef> {
    vec![
        constant("tfrt.constant.i1", I1),
        constant("tfrt.constant.i32", I32),
        constant("tfrt.constant.i64", I64),
        constant("tfrt.constant.ui32", UI32),
        constant("tfrt.constant.ui64", UI64),
        constant("tfrt.constant.bf16", BF16),
        constant("tfrt.constant.f16", F16),
        constant("tfrt.constant.f32", F32),
        constant("tfrt.constant.f64", F64),
        complex("tfrt.constant.complex64", F32, Complex64),
        complex("tfrt.constant.complex128", F64, Complex128),
        constant("tfrt.constant_s.i64", I64).traits(&[Traits::SYNC]),
        constant("tfrt.constant_s.f16", F16).traits(&[Traits::SYNC]),
        constant("tfrt.constant_s.f32", F32).traits(&[Traits::SYNC]),
        constant("tfrt.constant_s.f64", F64).traits(&[Traits::SYNC]),
    ]
}

/// An operation on two values of one type that has no effect.
fn binary(name: &'static str, kind: ValueKind, result: ValueKind) -> OpDef {
    OpDef::new(name)
        .operand("lhs", kind)
        .operand("rhs", kind)
        .results(&[result])
        .pure()
}

const OPERANDS: &str = "operands attr-dict";

fn arithmetic() -> Vec<OpDef> {
    let add = |name, kind| {
        let sum = binary(name, kind, kind).summary("The sum; integers wrap");
        sum.traits(&[Traits::COMMUTATIVE]).format(OPERANDS)
    };
    let mul = |name, kind| {
        let product = binary(name, kind, kind).summary("The product; integers wrap");
        product.traits(&[Traits::COMMUTATIVE]).format(OPERANDS)
    };
    let div = |name, kind| {
        let division = binary(name, kind, kind).results(&[kind, kind]);
        division
            .summary("Quotient, rounded to zero, and remainder")
            .format(OPERANDS)
    };
    let equal = |name, kind| {
        let comparison = binary(name, kind, I1).summary("Whether both are equal");
        comparison.traits(&[Traits::COMMUTATIVE]).format(OPERANDS)
    };
    vec![
        add("tfrt.add.i32", I32),
        add("tfrt.add.i64", I64),
        add("tfrt.add.f32", F32),
        add("tfrt.add.f64", F64),
        mul("tfrt.mul.i32", I32),
        mul("tfrt.mul.i64", I64),
        mul("tfrt.mul_s.i32", I32).traits(&[Traits::SYNC]),
        mul("tfrt.mul_s.i64", I64).traits(&[Traits::SYNC]),
        div("tfrt.div.i32", I32),
        div("tfrt.div.i64", I64),
        equal("tfrt.equal.i32", I32),
        equal("tfrt.equal.i64", I64),
        binary("tfrt.and.i1", I1, I1)
            .summary("Whether both are true")
            .traits(&[Traits::COMMUTATIVE])
            .format(OPERANDS),
    ]
}

fn print(name: &'static str, kind: ValueKind) -> OpDef {
    OpDef::new(name)
        .summary("Prints the value after the chain")
        .operand("value", kind)
        .operand("chain", Chain)
        .results(&[Chain])
        .outside()
}

fn chains() -> Vec<OpDef> {
    vec![
        OpDef::new("tfrt.new.chain")
            .summary("A chain that is available at once")
            .results(&[Chain])
            .pure()
            .format("attr-dict"),
        OpDef::new("tfrt.merge.chains")
            .summary("A chain that is available when all operands are")
            .rest("operands")
            .results(&[Chain])
            .pure()
            .format("operands attr-dict : type(operands)"),
        print("tfrt.print.i1", I1).format(OPERANDS),
        print("tfrt.print.i32", I32).format(OPERANDS),
        print("tfrt.print.i64", I64).format(OPERANDS),
        print("tfrt.print.f32", F32).format(OPERANDS),
        print("tfrt.print.f64", F64).format(OPERANDS),
        OpDef::new("tfrt.get_device")
            .summary("The device of a name")
            .operand("chain", Chain)
            .attribute("device_name", AttributeKind::String)
            .results(&[Device])
            .no_effects()
            .format(OPERANDS),
    ]
}

fn calls() -> Vec<OpDef> {
    vec![
        OpDef::new("tfrt.call")
            .summary("Calls a function")
            .nested()
            .rest("operands")
            .any_results()
            .unchecked("callee", FlatSymbol)
            .format("$callee(operands) attr-dict : functional-type")
            .verify(checks::call),
        OpDef::new("tfrt.cond")
            .summary("Calls one of two functions")
            .nested()
            .operand("condition", I1)
            .rest("operands")
            .any_results()
            .unchecked("a_true_fn", FlatSymbol)
            .unchecked("b_false_fn", FlatSymbol)
            .format("operand $a_true_fn $b_false_fn (operands) attr-dict : types")
            .verify(checks::cond),
        OpDef::new("tfrt.case")
            .summary("Calls the function of a number")
            .nested()
            .operand("branch index", I32)
            .rest("operands")
            .any_results()
            .attribute("branches", FlatSymbols)
            .format("operand $branches (operands) attr-dict : types"),
        OpDef::new("tfrt.while")
            .summary("Calls a function with its own results while a condition holds")
            .nested()
            .operand("condition", I1)
            .rest("operands")
            .any_results()
            .attribute("body_fn", FlatSymbol)
            .attribute("parallel_iterations", AttributeKind::Typed(I64))
            .format(
                "operand $body_fn(operands) attr-dict \
                 parallel_iterations($parallel_iterations) : types",
            ),
        OpDef::new("tfrt.once")
            .summary("Calls a function the first time, and gives the same results ever after")
            .nested()
            .rest("operands")
            .any_results()
            .attribute("function", FlatSymbol)
            .format("$function(operands) attr-dict : types"),
        OpDef::new("tfrt.parallel_call.i32")
            .summary("Calls a function for each block of a range")
            .nested()
            .operand("start", I32)
            .operand("end", I32)
            .operand("block size", I32)
            .rest("operands")
            .results(&[Chain])
            .unchecked("callee", FlatSymbol)
            .format(
                "operand to operand fixed operand $callee(operands) attr-dict\
                 [ : type(operands)]",
            )
            .verify(checks::parallel_call),
        OpDef::new("tfrt.return")
            .summary("Ends a function or a region, and gives its results")
            .no_effects()
            .rest("operands")
            .traits(&[Traits::TERMINATOR])
            .format("attr-dict operands[ : type(operands)]")
            .verify(checks::tfrt_return),
    ]
}

fn regions() -> Vec<OpDef> {
    const SHADOWING: &[Traits] = &[
        Traits::ISOLATED,
        Traits::SINGLE_BLOCK,
        Traits::SHADOWS_OPERANDS,
    ];
    vec![
        OpDef::new("tfrt.if")
            .summary("Runs one of two regions")
            .nested()
            .operand("condition", I1)
            .rest("operands")
            .any_results()
            .regions(2)
            .traits(SHADOWING)
            .format("operands attributes : types  region else")
            .verify(checks::if_),
        OpDef::new("tfrt.repeat.i32")
            .summary("Runs a region a number of times, each with the results of the one before")
            .nested()
            .operand("trip count", I32)
            .rest("loop operands")
            .results_like_rest()
            .regions(1)
            .traits(SHADOWING)
            .format("operands attributes[ : type(operands)] region")
            .verify(checks::repeat),
        OpDef::new("tfrt.parallel_for.i32")
            .summary("Runs a region for each block of a range")
            .nested()
            .operand("start", I32)
            .operand("end", I32)
            .operand("block size", I32)
            .rest("operands")
            .results(&[Chain])
            .regions(1)
            .traits(&[
                Traits::ISOLATED,
                Traits::SINGLE_BLOCK,
                Traits::SHADOWS_RANGE,
            ])
            .format("operand to operand fixed operand[, operands : type(operands)] region")
            .verify(checks::parallel_for),
    ]
}

/// Kernels that the original has no operation for: only the generic form can
/// write them.
fn kernels() -> Vec<OpDef> {
    let unary = |name, kind, result| {
        OpDef::new(name)
            .operand("value", kind)
            .results(&[result])
            .pure()
    };
    let minus = |name, kind| binary(name, kind, kind).summary("The difference; integers wrap");
    let less = |name, kind| binary(name, kind, I1).summary("Whether lhs <= rhs, signed");
    let least = |name, kind| binary(name, kind, kind).summary("The smaller of both");
    let quotient = |name, kind| binary(name, kind, kind).summary("The quotient");
    let product = |name, kind| binary(name, kind, kind).summary("The product");
    let sum_s = |name, kind| {
        binary(name, kind, kind)
            .summary("The sum; integers wrap")
            .traits(&[Traits::SYNC])
    };
    let constant_s = |name, kind| {
        OpDef::new(name)
            .summary("A constant")
            .attribute("value", AttributeKind::Typed(kind))
            .results(&[kind])
            .traits(&[Traits::PURE, Traits::SYNC])
    };
    vec![
        constant_s("tfrt.constant_s.i32", I32),
        constant_s("tfrt.constant_s.bf16", BF16),
        OpDef::new("tfrt.alias.value")
            .summary("The value, after the chain")
            .operand("chain", Chain)
            .operand("value", Any)
            .any_results()
            .pure(),
        minus("tfrt.minus.i32", I32),
        minus("tfrt.minus.i64", I64),
        less("tfrt.lessequal.i32", I32),
        less("tfrt.lessequal.i64", I64),
        least("tfrt.minimum.f32", F32),
        least("tfrt.minimum.f64", F64),
        quotient("tfrt.div.f32", F32),
        quotient("tfrt.div.f64", F64),
        product("tfrt.multiply.f32", F32),
        product("tfrt.multiply.f64", F64),
        sum_s("tfrt.add_s.i32", I32),
        sum_s("tfrt.add_s.i64", I64),
        unary("tfrt.cast.i64_to_f32", I64, F32).summary("The nearest float"),
        unary("tfrt.cast.i64_to_f64", I64, F64).summary("The nearest float"),
        unary("tfrt.cast.f32_to_i64", F32, I64).summary("The integer part"),
        unary("tfrt.cast.f64_to_i64", F64, I64).summary("The integer part"),
        print("tfrt.print.f16", F16),
        print("tfrt.print.complex64", Complex64),
        print("tfrt.print.complex128", Complex128),
    ]
}
