//! Tests with operations of a small format.

use expect_test::{Expect, expect};
use tfrt_ir::{Source, parse};
use tfrt_ops::names::{Name, NameAttr};
use tfrt_ops::{AttrDef, Infer, OpDef, Table, Traits};

use crate::legalize::{Context, Dialects, Legalize};
use crate::passes::testing;
use crate::pipeline::Pipeline;

const TOY: Legalize = Legalize {
    dialect: "toy",
    unread: &[],
    names: &[
        Name::new("Plus", "add"),
        Name::new("Total", "reduce").attrs(&[
            NameAttr::Text("kind", "sum"),
            NameAttr::Renamed("axes", "over"),
        ]),
        Name::new("Convert", "cast").attrs(&[NameAttr::Type("to", "type")]),
        Name::new("Root", "rsqrt"),
        Name::new("Sort", "sort"),
    ],
    expand: &[("Twice", |expansion| {
        let x = expansion.operand(0)?;
        Ok(vec![expansion.add("graph.add", &[x, x], &[])])
    })],
};

const ROWS: &[OpDef] = &[
    OpDef::new("toy.Wave", "A wave.")
        .attrs(&[AttrDef::int("height", 1)])
        .infer(Infer::SameAsFirst),
    OpDef::new("toy.Note", "Notes its operand.")
        .infer(Infer::SameAsFirst)
        .traits(Traits::WRITES),
];

fn run(passes: &str, body: &str) -> String {
    let dialects = Dialects {
        formats: vec![TOY],
        rows: Table::default(),
    };
    let _added = dialects.rows.add(ROWS).unwrap();
    let text = format!(
        r#"func.func @main(%x: tensor<?x4xf32>) -> tensor<*xf32> attributes {{
             model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N", 4]]}} {{
             {body}
             tfrt.return %y : tensor<*xf32>
           }}"#
    );
    let mut module = parse(&Source::new("toy.mlir", text)).unwrap();
    let mut passes = Pipeline::parse(passes).unwrap();
    passes.verify_each = true;
    let context = Context::new(&testing::Kernels).dialects(&dialects);
    match passes.run_with(&mut module, &context, &mut |_, _| {}) {
        Ok(_) => {
            let text = module.to_string();
            let lines = text.lines().filter(|line| line.contains(" = "));
            let lines = lines.filter(|line| !line.contains("func.func"));
            lines.map(|line| format!("{}\n", line.trim())).collect()
        }
        Err(wrong) => wrong
            .iter()
            .map(|wrong| format!("{}\n", wrong.message()))
            .collect(),
    }
}

fn check(passes: &str, body: &str, expected: Expect) {
    expected.assert_eq(&run(passes, body));
}

#[test]
fn operations_of_a_format_become_rows_and_then_kernels_of_rows() {
    let body = r#"%a = "toy.Plus"(%x, %x) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<*xf32>
        %b = "toy.Total"(%a) {over = [1], keep = 0} : (tensor<*xf32>) -> tensor<*xf32>
        %c = "toy.Twice"(%b) : (tensor<*xf32>) -> tensor<*xf32>
        %d = "toy.Wave"(%c) {height = 3} : (tensor<*xf32>) -> tensor<*xf32>
        %e = "toy.Root"(%d) : (tensor<*xf32>) -> tensor<*xf32>
        %y = "toy.Convert"(%e) {type = f16} : (tensor<*xf32>) -> tensor<*xf32>"#;
    check(
        "legalize",
        body,
        expect![[r#"
        %0 = "graph.add"(%arg0, %arg0) : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<*xf32>
        %1 = "graph.reduce"(%0) {axes = [1], keep = 0, kind = "sum"} : (tensor<*xf32>) -> tensor<*xf32>
        %2 = "graph.add"(%1, %1) : (tensor<*xf32>, tensor<*xf32>) -> tensor<*xf32>
        %3 = "toy.Wave"(%2) {height = 3} : (tensor<*xf32>) -> tensor<*xf32>
        %4 = "graph.rsqrt"(%3) : (tensor<*xf32>) -> tensor<*xf32>
        %5 = "graph.cast"(%4) {to = f16} : (tensor<*xf32>) -> tensor<*xf32>
    "#]],
    );
    check(
        "legalize,onnx-upgrade,onnx-to-graph,graph-infer",
        body,
        expect![[r#"
            %0 = "graph.add"(%arg0, %arg0) {model.shapes = [["N", 4]]} : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
            %1 = "graph.reduce"(%0) {axes = [1], keep = 0, kind = "sum", model.shapes = [["N"]]} : (tensor<?x4xf32>) -> tensor<?xf32>
            %2 = "graph.add"(%1, %1) {model.shapes = [["N"]]} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
            %3 = "toy.Wave"(%2) {height = 3, model.shapes = [["N"]]} : (tensor<?xf32>) -> tensor<?xf32>
            %4 = "graph.rsqrt"(%3) {model.shapes = [["N"]]} : (tensor<?xf32>) -> tensor<?xf32>
            %5 = "graph.cast"(%4) {model.shapes = [["N"]], to = f16} : (tensor<?xf32>) -> tensor<?xf16>
        "#]],
    );
    check(
        "legalize,onnx-upgrade,onnx-to-graph,graph-infer,graph-fuse,graph-lower",
        body,
        expect![[r#"
            %0 = "cpu.fused.elementwise"(%arg0) {inputs = 1, steps = ["add a0 a0"]} : (!t.tensor) -> !t.tensor
            %1 = "cpu.graph.reduce"(%0) {attributes = ["axes", [1], "keep", 0, "kind", "sum"]} : (!t.tensor) -> !t.tensor
            %2 = "cpu.fused.elementwise"(%1) {inputs = 1, steps = ["add a0 a0"]} : (!t.tensor) -> !t.tensor
            %3 = "cpu.toy.Wave"(%2) {height = 3} : (!t.tensor) -> !t.tensor
            %4 = "cpu.fused.elementwise"(%3) {inputs = 1, steps = ["rsqrt a0", "cast s0 f16"]} : (!t.tensor) -> !t.tensor
        "#]],
    );
}

#[test]
fn what_does_not_fit_is_told() {
    let body = |name: &str, rest: &str| {
        format!(r#"%y = "{name}"(%x) {rest} : (tensor<?x4xf32>) -> tensor<*xf32>"#)
    };
    for (name, rest, expected) in [
        (
            "toy.Pluss",
            "",
            "'toy.Pluss' op is no operation of this format; did you mean 'Plus'?\n",
        ),
        (
            "toy.Wavy",
            "",
            "'toy.Wavy' op is no operation of this format\n",
        ),
        (
            "toy.Plus",
            "",
            "'toy.Plus' op expected 2 operands, but found 1\n",
        ),
        (
            "toy.Wave",
            "{heigth = 1}",
            "'toy.Wave' op has no attribute 'heigth'\n",
        ),
        (
            "toy.Total",
            r#"{kind = "max"}"#,
            "'toy.Total' op has an attribute 'kind', which its name states\n",
        ),
        (
            "toy.Wave",
            "{height = 1.5 : f32}",
            "'toy.Wave' op attribute 'height' failed to satisfy constraint: integer attribute\n",
        ),
        (
            "toy.Convert",
            "",
            "'toy.Convert' op requires attribute 'to'\n",
        ),
        (
            "graph.rellu",
            "",
            "'graph.rellu' op is no operation of the dialect 'graph'\n",
        ),
        (
            "graph.cast",
            "{to = 3}",
            "'graph.cast' op attribute 'to' failed to satisfy constraint: type attribute\n",
        ),
    ] {
        assert_eq!(run("legalize", &body(name, rest)), expected);
    }
    let wrong = body("onnx.Elu", r#"{alpha = "x"}"#);
    assert_eq!(
        run("legalize,onnx-to-graph", &wrong),
        "'onnx.Elu' op attribute 'alpha': expected float, found \"x\"\n"
    );
    // What no format has is a kernel of somebody's.
    let other = run("legalize,graph-infer,graph-lower", &body("my.own", ""));
    assert!(other.contains(r#""my.own"(%arg0)"#), "{other}");
}

/// Tests the errors of each pass on operations that are not as their rows say.
#[test]
fn operations_of_any_form_are_told_and_not_believed() {
    for form in [
        r#""graph.rsqrt"(%x) : (tensor<4xf32>) -> ()"#,
        r#""graph.ne"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> ()"#,
        r#""graph.ne"() : () -> ()"#,
        r#""graph.shift_left"(%x) : (tensor<4xf32>) -> tensor<4xf32>"#,
        r#""graph.if"(%x) : (tensor<4xf32>) -> tensor<4xf32>"#,
        r#""graph.onnx.Loop"(%x) : (tensor<4xf32>) -> tensor<4xf32>"#,
        r#""graph."(%x) : (tensor<4xf32>) -> tensor<4xf32>"#,
    ] {
        let text = format!(
            "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ {form}\n tfrt.return %x : tensor<4xf32> }}"
        );
        for passes in [
            "legalize,graph-lower",
            "graph-lower",
            "graph-infer,graph-lower",
        ] {
            let told = testing::run(passes, &text);
            assert!(told.contains("error: "), "{passes}: {told}");
        }
    }
}

#[test]
fn markers_and_control_flow_take_the_form_that_is_lowered() {
    testing::check(
        "legalize,graph-infer",
        r#"func.func @main(%x: tensor<4xui8>) -> tensor<*x!onnx.unknown> attributes {model.input_names = ["x"]} {
             %a = "graph.shift_left"(%x, %x) : (tensor<4xui8>, tensor<4xui8>) -> tensor<*x!onnx.unknown>
             %y = "graph.ne"(%a, %x) : (tensor<*x!onnx.unknown>, tensor<4xui8>) -> tensor<*x!onnx.unknown>
             %z = "graph.if"(%y) ({
               "graph.yield"(%a) : (tensor<*x!onnx.unknown>) -> ()
             }, {
               "graph.yield"(%x) : (tensor<4xui8>) -> ()
             }) : (tensor<*x!onnx.unknown>) -> tensor<*x!onnx.unknown>
             tfrt.return %z : tensor<*x!onnx.unknown>
           }"#,
        expect![[r#"
            func.func @main(%arg0: tensor<4xui8>) -> tensor<4xui8> attributes {model.input_names = ["x"]} {
              %0 = "graph.shift_left"(%arg0, %arg0) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
              %1 = "graph.ne"(%0, %arg0) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
              %2 = "onnx.If"(%1) ({
                "graph.yield"(%arg0) : (tensor<4xui8>) -> ()
              }, {
                "graph.yield"(%0) : (tensor<4xui8>) -> ()
              }) {onnx.opset = 27} : (tensor<4xi1>) -> tensor<4xui8>
              tfrt.return %2 : tensor<4xui8>
            }
        "#]],
    );
}

#[test]
fn rows_of_the_format_run_where_a_device_has_kernels_for_them() {
    check(
        "legalize,graph-infer,graph-place,graph-lower",
        r#"%a = "toy.Wave"(%x) {height = 3} : (tensor<?x4xf32>) -> tensor<*xf32>
           %b = "graph.exp"(%a) : (tensor<*xf32>) -> tensor<*xf32>
           %y = "toy.Note"(%b) : (tensor<*xf32>) -> tensor<*xf32>"#,
        expect![[r#"
            %0 = "cpu.graph.copy"(%arg0) {attributes = ["device", "FAKE:0"]} : (!t.tensor) -> !t.tensor
            %1 = "fake.toy.Wave"(%0) {attributes = ["height", 3], device = "FAKE:0"} : (!t.tensor) -> !t.tensor
            %2 = "cpu.graph.copy"(%1) {attributes = ["device", "CPU:0"]} : (!t.tensor) -> !t.tensor
            %3 = "cpu.graph.exp"(%2) {attributes = []} : (!t.tensor) -> !t.tensor
            %4 = "cpu.toy.Note"(%3) : (!t.tensor) -> !t.tensor
        "#]],
    );
}

#[test]
fn passes_remove_rows_of_the_format_without_effects_that_nothing_uses() {
    let body = r#"%unused = "toy.Wave"(%x) : (tensor<?x4xf32>) -> tensor<*xf32>
        %noted = "toy.Note"(%x) : (tensor<?x4xf32>) -> tensor<*xf32>
        %y = "toy.Wave"(%x) : (tensor<?x4xf32>) -> tensor<*xf32>"#;
    for pass in ["graph-layout", "graph-fuse", "graph-fold", "graph-prepare"] {
        let found = run(&format!("legalize,graph-infer,{pass}"), body);
        let counts = ["toy.Wave", "toy.Note"].map(|name| found.matches(name).count());
        assert_eq!(counts, [1, 1], "{pass}: {found}");
    }
}
