//! Tests of errors on programs that the format can't express.

use expect_test::{Expect, expect};
use tfrt_bef::{BefFile, FunctionIndex, KernelIndex};
use tfrt_compiler::{CompileOptions, compile};
use tfrt_ir::{Attribute, Module, OpState, Source, Type, parse};

/// Compiles text that parses, and shows the first lines of the errors.
fn check(text: &str, expect: Expect) {
    let source = Source::new("test.mlir", text);
    let module = parse(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let result = match compile(&module, &CompileOptions::default()) {
        Ok(buffer) => match BefFile::open(buffer) {
            Ok(_) => "fine\n".to_owned(),
            Err(error) => format!("{error}\n"),
        },
        Err(errors) => {
            let line = |diagnostic: &tfrt_ir::Diagnostic| {
                let (line, column) = diagnostic.line_column().unwrap_or_default();
                format!("{line}:{column}: {}\n", diagnostic.message())
            };
            errors.iter().map(line).collect()
        }
    };
    expect.assert_eq(&result);
}

/// Puts operations into a function.
fn check_body(body: &str, expect: Expect) {
    check(
        &format!("func.func @f(%x: i32) {{\n{body}\n  tfrt.return\n}}"),
        expect,
    );
}

/// Puts an attribute on an operation.
fn check_attribute(attribute: &str, expect: Expect) {
    check_body(
        &format!("\"my.op\"() {{a = {attribute}}} : () -> ()"),
        expect,
    );
}

#[test]
fn functions_have_a_body_of_one_block_that_returns() {
    check(
        "func.func private @f(i32)",
        expect![[r#"
        1:1: external functions are not allowed
    "#]],
    );
    check(
        "func.func @f() {\n  %c = tfrt.new.chain\n}",
        expect![[r#"
        2:8: all functions need to have a tfrt.return
    "#]],
    );
    check(
        "func.func @f() {\n  \"my.return\"() : () -> ()\n}",
        expect![[r#"
            2:3: all functions need to have a tfrt.return
        "#]],
    );
    check(
        "func.func @f() {\n  \"my.branch\"()[^next] : () -> ()\n^next:\n  tfrt.return\n}",
        expect![[r#"
            2:3: all functions need to have a tfrt.return
        "#]],
    );
    check(
        "func.func @f() {\n  tfrt.return\n^next:\n  tfrt.return\n}",
        expect![[r#"
            1:1: multi-block regions cannot be emitted to BEF files
        "#]],
    );
    check(
        "func.func @f() {\n  tfrt.return\n  tfrt.return\n}",
        expect![[r#"
            2:3: return op must be at the end of its block
        "#]],
    );
}

#[test]
fn regions_have_one_block() {
    check_body(
        "\"my.op\"() ({\n  tfrt.return\n}, {\n}) : () -> ()",
        expect![[r#"
            2:1: multi-block regions cannot be emitted to BEF files
        "#]],
    );
    check_body(
        "\"my.op\"() ({\n  tfrt.return\n^next:\n  tfrt.return\n}) : () -> ()",
        expect![[r#"
            2:1: multi-block regions cannot be emitted to BEF files
        "#]],
    );
    check_body(
        "\"my.op\"() ({\n  \"my.yield\"() : () -> ()\n}) : () -> ()",
        expect![[r#"
            fine
        "#]],
    );
}

#[test]
fn regions_see_no_registers_but_their_own() {
    check_body(
        "\"my.op\"() ({\n  \"my.use\"(%x, %x) : (i32, i32) -> ()\n  tfrt.return\n}) : () -> ()",
        expect![[r#"
            3:12: BEF executor only supports references to kernels within the current region
        "#]],
    );
}

#[test]
fn regions_return_no_registers_but_their_own() {
    check_body(
        "\"my.op\"() ({\n  tfrt.return %x : i32\n}) : () -> ()",
        expect![[r#"
            3:15: BEF executor only supports references to kernels within the current region
        "#]],
    );
}

#[test]
fn sync_functions_return_results_once() {
    check(
        "func.func @f(%x: i32) -> (i32, i32, i32) attributes {tfrt.sync} {\n  \
         %y = tfrt.constant.i32 1\n  tfrt.return %y, %x, %y : i32, i32, i32\n}",
        expect![[r#"
            3:19: return value 1 is an argument in a sync function
            3:23: return value 2 is duplicated in a sync function
        "#]],
    );
}

#[test]
fn functions_that_are_named_exist() {
    check_body(
        "\"my.op\"() {callee = @g} : () -> ()",
        expect![[r#"
            2:21: function @g not defined
        "#]],
    );
    check_body(
        "\"my.op\"() {callees = [@f, @g, @h]} : () -> ()",
        expect![[r#"
            2:27: function @g not defined
            2:31: function @h not defined
        "#]],
    );
    check_body(
        "\"my.op\"() {callees = [@f, @f]} : () -> ()",
        expect![[r#"
        fine
    "#]],
    );
}

#[test]
fn attributes_that_files_cannot_hold_are_refused() {
    check_attribute(
        "unit",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "1 : index",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "1 : i7",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "1 : i128",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "{b = 1 : i32}",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "tensor<2xi32>",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "() -> ()",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "!my.type",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "#my.attribute",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "affine_map<() -> ()>",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "[1 : i32, unit]",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "[1 : i32, 1 : i64, [2 : i32, unit]]",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "[1 : i32, @f]",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "[@f, 1 : i32]",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "[@f::@g]",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "@f::@g",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "dense<1> : tensor<2xindex>",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "dense<1> : tensor<1099511627776xi32>",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
    check_attribute(
        "dense<0> : tensor<0x1099511627776xi32>",
        expect![[r#"
        fine
    "#]],
    );
    check_attribute(
        &format!("{}1 : i32{}", "[[], ".repeat(64), "]".repeat(64)),
        expect![[r#"
            fine
        "#]],
    );
    check_attribute(
        &format!("{}1 : i32{}", "[[], ".repeat(65), "]".repeat(65)),
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
        "#]],
    );
}

#[test]
fn only_the_first_attribute_is_refused_but_other_errors_are_all_told() {
    check_body(
        "\"my.op\"() {a = unit, b = unit, c = @g} : () -> ()\n\"my.op\"() {a = unit} : () -> ()",
        expect![[r#"
            2:12: BEF files cannot encode the 'a' attribute
            2:36: function @g not defined
        "#]],
    );
}

#[test]
fn costs_and_marks_are_no_attributes() {
    check_body(
        "\"my.op\"() {_tfrt_cost = unit, bef.nonstrict} : () -> ()",
        expect![[r#"
            fine
        "#]],
    );
}

#[test]
fn modules_are_nested_only_if_they_are_compiled() {
    check(
        "func.func @f() {\n  tfrt.return\n}\nmodule @m {\n}",
        expect![[r#"
            4:1: nested modules cannot be emitted to BEF files without the 'tfrt.compiled' attribute, nor inside of functions
        "#]],
    );
    check(
        "module @m attributes {tfrt.compiled} {\n}",
        expect![[r#"
        fine
    "#]],
    );
}

#[test]
fn functions_and_modules_stand_in_the_outermost_module() {
    check_body(
        "\"my.op\"() ({\nfunc.func @g() {\n  tfrt.return\n}\n  tfrt.return\n}) : () -> ()",
        expect![[r#"
            3:1: functions inside of functions cannot be emitted to BEF files
        "#]],
    );
    check_body(
        "func.func @g() {\n  tfrt.return\n}",
        expect![[r#"
        2:1: functions inside of functions cannot be emitted to BEF files
    "#]],
    );
    check_body(
        "module @m attributes {tfrt.compiled} {\n}",
        expect![[r#"
        2:1: nested modules cannot be emitted to BEF files without the 'tfrt.compiled' attribute, nor inside of functions
    "#]],
    );
}

#[test]
fn regions_nest_up_to_a_limit() {
    let nest = |depth: usize| {
        let open = "\"my.op\"() ({\n".repeat(depth);
        let close = "  tfrt.return\n}) : () -> ()\n".repeat(depth);
        open + &close
    };
    check_body(
        &nest(64),
        expect![[r#"
        fine
    "#]],
    );
    check_body(
        &nest(65),
        expect![[r#"
        66:1: regions nest more than 64 deep
    "#]],
    );
}

#[test]
fn names_hold_no_nul() {
    check_body(
        "\"my.op\"() {\"a\\00b\" = 1 : i32} : () -> ()",
        expect![[r#"
        0:0: BEF files cannot encode the name "a\0b"
    "#]],
    );
}

#[test]
fn graphs_that_never_run_are_refused_by_the_reader() {
    check_body(
        "%a = \"my.op\"(%b) : (i32) -> i32\n%b = \"my.op\"(%a) : (i32) -> i32",
        expect![[r#"
            byte 0x60: kernels of 'f' wait for each other in a cycle: 1 waits for 2 waits for 1 [TF0617]
        "#]],
    );
}

#[test]
fn marks_reach_the_file() {
    let text = "func.func @f(%x: i32) {\n\
                \"my.a\"(%x) {bef.nonstrict} : (i32) -> ()\n\
                \"my.b\"(%x) {bef.nonstrict = false} : (i32) -> ()\n\
                \"my.c\"(%x) {bef.nonstrict = true} : (i32) -> ()\n\
                tfrt.return\n}";
    let module = parse(&Source::new("test.mlir", text)).unwrap();
    let file = BefFile::open(compile(&module, &CompileOptions::default()).unwrap()).unwrap();
    let marks = (1..=3).map(|kernel| file.nonstrict(FunctionIndex(0), KernelIndex(kernel)));
    assert_eq!(marks.collect::<Vec<_>>(), [true, false, true]);
}

#[test]
fn modules_made_by_code_need_no_text() {
    let mut module = Module::new();
    let region = module.create_region();
    let block = module.create_block(region);
    let function = OpState::new("func.func")
        .attribute("sym_name", Attribute::string("main"))
        .attribute(
            "function_type",
            Attribute::Type(Type::function(vec![], vec![])),
        )
        .region(region);
    let function = module.create(function);
    module.append(module.body(), function);
    let result = module.create(OpState::new("my.op").result(Type::I32));
    module.append(block, result);
    let errors = compile(&module, &CompileOptions::default()).unwrap_err();
    let messages: Vec<_> = errors.iter().map(|error| error.message()).collect();
    assert_eq!(messages, ["all functions need to have a tfrt.return"]);
    let end = module.create(OpState::new("tfrt.return"));
    module.append(block, end);
    BefFile::open(compile(&module, &CompileOptions::default()).unwrap()).unwrap();
}
