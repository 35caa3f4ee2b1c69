//! Tests of errors on text in the dialect `graph`: each names the operation, the place and what its row expects.

use expect_test::{Expect, expect};
use tfrt_compiler::graph;
use tfrt_ir::{Source, parse_in, verifier::Chains, verify_in};
use tfrt_ops::{AttrDef, OpDef, Table, intern};

/// Parses one operation in a function of `%x` and `%y`; returns the errors.
fn told(rows: &Table, operation: &str) -> String {
    let text = format!(
        "func.func @f(%x: tensor<2x4xf32>, %y: tensor<4xf32>) {{\n{operation}\ntfrt.return\n}}"
    );
    let dialects = graph::dialects(rows);
    let source = Source::new("g.mlir", text);
    let checked = parse_in(&source, &dialects)
        .and_then(|module| verify_in(&module, &dialects, Chains::Required));
    checked
        .err()
        .map_or_else(String::new, |wrong| wrong.render(false))
}

fn check(operation: &str, expected: Expect) {
    expected.assert_eq(&told(&Table::default(), operation));
}

#[test]
fn what_rows_have_is_accepted() {
    for operation in [
        r#"%0 = "graph.softmax"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        r#"%0 = "graph.softmax"(%x) {axis = -1, log = 1 : i32, my.note = "n"} : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        r#"%0 = "graph.lrn"(%x) {alpha = 0.5 : f64, size = 3} : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        r#"%0 = "graph.norm"(%x, %y) {kind = "layer", epsilon = 1.0e-3 : f16} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>"#,
        // The scale says the type.
        "%n = \"graph.cast\"(%y) {to = f16} : (tensor<4xf32>) -> tensor<4xf16>\n%0 = \"graph.norm\"(%x, %n) {kind = \"rms\"} : (tensor<2x4xf32>, tensor<4xf16>) -> tensor<2x4xf16>",
        r#"%0:2 = "graph.split"(%x) {axis = 1, n = 2} : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>)"#,
        r#"%0 = "graph.concat"(%y, %y, %y) {axis = 0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<12xf32>"#,
        r#"%0 = "graph.none"() : () -> none"#,
        r#"%0 = "graph.cast"(%x) {to = f16} : (tensor<2x4xf32>) -> tensor<2x4xf16>"#,
        r#"%0 = "graph.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>"#,
        // What has no row is a kernel of somebody's, and ONNX's operations have many forms.
        r#"%0 = "my.softmax"(%x) {axes = 1} : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        r#"%0 = "onnx.Softmax"(%x) {old = 1} : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        r#"%0 = "onnx.NoSuch"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
    ] {
        assert_eq!(told(&Table::default(), operation), "", "{operation}");
    }
}

#[test]
fn names_that_are_no_rows_are_told_with_one_that_is() {
    check(
        r#"%0 = "graph.sofmax"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        expect![[r#"
            g.mlir:2:6: error: 'graph.sofmax' op is no operation of the dialect 'graph' [TF0118]
              |
            2 | %0 = "graph.sofmax"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
              |      ^^^^^^^^^^^^^^
            help: there is an operation 'graph.softmax'
        "#]],
    );
    check(
        r#"%0 = "graph.onnx.NonZero"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        expect![[r#"
            g.mlir:2:6: error: 'graph.onnx.NonZero' op is no operation of the dialect 'graph' [TF0118]
              |
            2 | %0 = "graph.onnx.NonZero"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
              |      ^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    check(
        "%0 = graph.softmax %x : tensor<2x4xf32>",
        expect![[r#"
            g.mlir:2:6: error: custom op 'graph.softmax' has no custom form [TF0119]
              |
            2 | %0 = graph.softmax %x : tensor<2x4xf32>
              |      ^^^^^^^^^^^^^
            help: write it in generic form: %y = "graph.softmax"(%x) : (tensor<*xf32>) -> tensor<*xf32>
        "#]],
    );
    check(
        "%0 = graph.sofmax %x : tensor<2x4xf32>",
        expect![[r#"
        g.mlir:2:6: error: custom op 'graph.sofmax' is unknown [TF0118]
          |
        2 | %0 = graph.sofmax %x : tensor<2x4xf32>
          |      ^^^^^^^^^^^^
        help: there is an operation 'graph.softmax', which is written in generic form: "graph.softmax"(...)
    "#]],
    );
}

#[test]
fn wrong_counts_are_told() {
    check(
        r#"%0 = "graph.add"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        expect![[r#"
            g.mlir:2:6: error: 'graph.add' op expected 2 operands, but found 1 [TF0401]
              |
            2 | %0 = "graph.add"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
              |      ^^^^^^^^^^^
            help: it is graph.add(x: tensor of T, y: tensor of T) -> (z: tensor of T)
        "#]],
    );
    check(
        r#"%0:2 = "graph.reduce"(%x, %y, %y) {kind = "sum"} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>)"#,
        expect![[r#"
            g.mlir:2:8: error: 'graph.reduce' op expected 1 to 2 operands, but found 3 [TF0401]
              |
            2 | %0:2 = "graph.reduce"(%x, %y, %y) {kind = "sum"} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>
              |        ^^^^^^^^^^^^^^
            help: it is graph.reduce(x: tensor of T, axes?: tensor of i64) {kind: string, axes?: array of integers, keep: integer = 1, none_if_empty: integer = 0} -> (y: tensor of T)
            g.mlir:2:8: error: 'graph.reduce' op requires one result [TF0403]
              |
            2 | %0:2 = "graph.reduce"(%x, %y, %y) {kind = "sum"} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>
              |        ^^^^^^^^^^^^^^
            g.mlir:2:27: error: 'graph.reduce' op operand #1 must be a tensor of i64, but got 'tensor<4xf32>' [TF0402]
              |
            2 | %0:2 = "graph.reduce"(%x, %y, %y) {kind = "sum"} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
              |                           ^^
        "#]],
    );
    check(
        r#"%0 = "graph.concat"() {axis = 0} : () -> tensor<4xf32>"#,
        expect![[r#"
            g.mlir:2:6: error: 'graph.concat' op expected 1 or more operands, but found 0 [TF0401]
              |
            2 | %0 = "graph.concat"() {axis = 0} : () -> tensor<4xf32>
              |      ^^^^^^^^^^^^^^
            help: it is graph.concat(x0: tensor of T, x: tensor of T...) {axis: integer} -> (y: tensor of T)
        "#]],
    );
    check(
        r#"%0 = "graph.if"(%x) ({ "graph.yield"(%x) : (tensor<2x4xf32>) -> () }) : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        expect![[r#"
            g.mlir:2:6: error: 'graph.if' op expected 2 regions [TF0407]
              |
            2 | %0 = "graph.if"(%x) ({ "graph.yield"(%x) : (tensor<2x4xf32>) -> () }) : (tensor<2x4xf32>) -> tensor<2x4xf32>
              |      ^^^^^^^^^^
            help: it is graph.if(condition: any, values: any...) (then: {...}, else: {...}) -> (values: any...)
        "#]],
    );
}

#[test]
fn attributes_are_told_at_their_place() {
    check(
        r#"%0 = "graph.softmax"(%x) {axes = 1} : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        expect![[r#"
            g.mlir:2:27: error: 'graph.softmax' op has no attribute 'axes' [TF0431]
              |
            2 | %0 = "graph.softmax"(%x) {axes = 1} : (tensor<2x4xf32>) -> tensor<2x4xf32>
              |                           ^^^^^^^^
            help: there is an attribute 'axis'
            help: it is graph.softmax(x: tensor of T) {axis: integer = -1, log: integer = 0} -> (y: tensor of T)
        "#]],
    );
    check(
        r#"%0 = "graph.softmax"(%x) {axis = 1.0 : f32} : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        expect![[r#"
            g.mlir:2:27: error: 'graph.softmax' op attribute 'axis' failed to satisfy constraint: integer attribute [TF0406]
              |
            2 | %0 = "graph.softmax"(%x) {axis = 1.0 : f32} : (tensor<2x4xf32>) -> tensor<2x4xf32>
              |                           ^^^^^^^^^^
            note: the attribute is 1.000000e+00 : f32
            help: it is graph.softmax(x: tensor of T) {axis: integer = -1, log: integer = 0} -> (y: tensor of T)
        "#]],
    );
    check(
        r#"%0 = "graph.cast"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf16>"#,
        expect![[r#"
            g.mlir:2:6: error: 'graph.cast' op requires attribute 'to' [TF0405]
              |
            2 | %0 = "graph.cast"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf16>
              |      ^^^^^^^^^^^^
            help: it is graph.cast(x: tensor of T) {to: type, saturate: integer = 1, round_mode: string = "up"} -> (y: any)
        "#]],
    );
    check(
        r#"%0 = "graph.reduce"(%x) {kind = "maxx"} : (tensor<2x4xf32>) -> tensor<f32>"#,
        expect![[r#"
            g.mlir:2:26: error: 'graph.reduce' op attribute 'kind': expected one of sum, prod, max, min, mean, l1, l2, sum_square, log_sum, log_sum_exp, any, all, found 'maxx' [TF0432]
              |
            2 | %0 = "graph.reduce"(%x) {kind = "maxx"} : (tensor<2x4xf32>) -> tensor<f32>
              |                          ^^^^^^^^^^^^^
            help: is 'max' meant?
            help: it is graph.reduce(x: tensor of T, axes?: tensor of i64) {kind: string, axes?: array of integers, keep: integer = 1, none_if_empty: integer = 0} -> (y: tensor of T)
        "#]],
    );
}

#[test]
fn attributes_that_do_nothing_in_a_form_are_told() {
    check(
        r#"%0 = "graph.norm"(%x, %y) {kind = "layer", groups = 2} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>"#,
        expect![[r#"
            g.mlir:2:44: error: 'graph.norm' op attribute 'groups' does nothing here: it is for operations where kind is group [TF0433]
              |
            2 | %0 = "graph.norm"(%x, %y) {kind = "layer", groups = 2} : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
              |                                            ^^^^^^^^^^
            help: it is graph.norm(x: tensor of T, scale?: any, bias?: any, mean?: any, variance?: any) {kind: string, axis: integer = -1, epsilon: float = 1e-5, groups: integer = 1, momentum: float = 0.9, training: integer = 0, stash_type: integer = 1} -> (y: tensor of V, mean?: any, variance?: any)
        "#]],
    );
    check(
        r#"%0 = "graph.conv"(%x, %x) {output_padding = [1, 1]} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<*xf32>"#,
        expect![[r#"
            g.mlir:2:28: error: 'graph.conv' op attribute 'output_padding' does nothing here: it is for operations where transposed is 1 [TF0433]
              |
            2 | %0 = "graph.conv"(%x, %x) {output_padding = [1, 1]} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<*xf32>
              |                            ^^^^^^^^^^^^^^
            help: it is graph.conv(x: tensor of T, filter: tensor of T, bias?: tensor of T) {kernel_shape?: array of integers, strides?: array of integers, dilations?: array of integers, pads?: array of integers, auto_pad: string = "NOTSET", groups: integer = 1, transposed: integer = 0, output_padding?: array of integers, output_shape?: array of integers} -> (y: tensor of T)
        "#]],
    );
    check(
        r#"%0 = "graph.pool"(%x) {kind = "max", whole = 1, strides = [2]} : (tensor<2x4xf32>) -> tensor<*xf32>"#,
        expect![[r#"
            g.mlir:2:49: error: 'graph.pool' op attribute 'strides' does nothing here: it is for operations where whole is 0 [TF0433]
              |
            2 | %0 = "graph.pool"(%x) {kind = "max", whole = 1, strides = [2]} : (tensor<2x4xf32>) -> tensor<*xf32>
              |                                                 ^^^^^^^
            help: it is graph.pool(x: tensor of T) {kind: string, whole: integer = 0, kernel_shape?: array of integers, strides?: array of integers, dilations?: array of integers, pads?: array of integers, auto_pad: string = "NOTSET", ceil_mode: integer = 0, count_include_pad: integer = 0, storage_order: integer = 0, p: integer = 2} -> (y: tensor of T, indices?: tensor of i64)
        "#]],
    );
    check(
        r#"%0 = "graph.split"(%x) {n = 3} : (tensor<2x4xf32>) -> tensor<2x4xf32>"#,
        expect![[r#"
            g.mlir:2:25: error: 'graph.split' op attribute 'n': expected the number of results, 1, found 3 [TF0432]
              |
            2 | %0 = "graph.split"(%x) {n = 3} : (tensor<2x4xf32>) -> tensor<2x4xf32>
              |                         ^^^^^
            help: it is graph.split(x: tensor of T, sizes?: tensor of i64) {axis: integer = 0, n?: integer, sizes?: array of integers} -> (y0: tensor of T, y: tensor of T...)
        "#]],
    );
}

#[test]
fn rows_that_are_added_are_checked_and_explained_as_long_as_they_are_there() {
    let rows = Table::default();
    let dialects = graph::dialects(&rows);
    let wrong = r#"%0 = "my.wave"(%x) {heigth = 1.0 : f32} : (tensor<2x4xf32>) -> tensor<2x4xf32>"#;
    assert_eq!(told(&rows, wrong), "");

    let name = intern(&format!("my.{}", "wave"));
    const ATTRS: &[AttrDef] = &[AttrDef::float("height", 2.0)];
    let row = OpDef::new(name, "A wave.").attrs(ATTRS);
    let added = rows.add(&[row]).unwrap();
    assert!(told(&rows, wrong).contains("there is an attribute 'height'"));
    let entry = dialects.describe("my.wave").unwrap();
    expect![[r#"
        A wave.

        - Operands: `x` (`tensor of T`)
        - Attributes:
          - `height` (`float`, `2.0` if absent)
        - Results: `y` (`tensor of T`)
        - Effects: pure.

        Generic form:

        ```mlir
        %y = "my.wave"(%x) : (tensor<*xf32>) -> tensor<*xf32>
        ```
    "#]]
    .assert_eq(&entry.documentation());
    assert!(
        dialects
            .definitions()
            .iter()
            .any(|entry| entry.name() == name)
    );
    let text = format!("func.func @f(%x: tensor<2x4xf32>) {{\n  {wrong}\n  tfrt.return\n}}\n");
    let module = parse_in(&Source::new("g.mlir", text), &dialects).unwrap();
    assert!(
        module
            .to_string()
            .contains(r#""my.wave"(%arg0) {heigth = 1.000000e+00 : f32}"#)
    );

    drop(added);
    assert_eq!(told(&rows, wrong), "");
    assert!(dialects.describe("my.wave").is_none());
}

#[test]
fn entries_say_what_rows_say() {
    let dialects = graph::dialects(&Table::default());
    let text = |name: &str| dialects.describe(name).unwrap().documentation();
    expect![[r#"
        Elements less their mean, divided by their standard deviation, times `scale`, plus `bias`; over axes from `axis` on (layer, rms), groups of channels (group), each channel (instance), or with given moments (batch).

        - Operands: `x` (`tensor of T`), `scale` (`any`, may be left out), `bias` (`any`, may be left out), `mean` (`any`, may be left out), `variance` (`any`, may be left out)
        - Attributes:
          - `kind` (`string`): `layer`, `rms`, `group`, `instance`, `batch`
          - `axis` (`integer`, `-1` if absent): where kind is layer or rms
          - `epsilon` (`float`, `1e-5` if absent)
          - `groups` (`integer`, `1` if absent): where kind is group
          - `momentum` (`float`, `0.9` if absent): where kind is batch
          - `training` (`integer`, `0` if absent): where kind is batch
          - `stash_type` (`integer`, `1` if absent): where kind is layer or rms or group
        - Results: `y` (`tensor of V`), `mean` (`any`, may be left out), `variance` (`any`, may be left out)
        - Effects: pure.

        Generic form:

        ```mlir
        %y = "graph.norm"(%x) {kind = "layer"} : (tensor<*xf32>) -> tensor<*xf32>
        ```
    "#]].assert_eq(&text("graph.norm"));
    expect![[r#"
        Runs its body as long as the condition gives true; the values go from turn to turn.

        - Operands: `values` (any number, `any`)
        - Regions: `condition`, `body`
        - Results: `values` (any number, `any`)
        - Effects: pure.

        Generic form:

        ```mlir
        %values = "graph.while"(%values) ({...}, {...}) : (tensor<*xf32>) -> tensor<*xf32>
        ```
    "#]]
    .assert_eq(&text("graph.while"));
    expect![[r#"
        exp(x), divided by its sum along `axis`; the logarithm of that if `log`.

        Here as its row `graph.softmax` has it; versions of ONNX have other forms, too.

        - Operands: `x` (`tensor of T`)
        - Attributes:
          - `axis` (`integer`, `-1` if absent)
        - Results: `y` (`tensor of T`)
        - Effects: pure.

        Generic form:

        ```mlir
        %y = "onnx.Softmax"(%x) : (tensor<*xf32>) -> tensor<*xf32>
        ```
    "#]]
    .assert_eq(&text("onnx.Softmax"));
    expect![[r#"
        The `kind` (max, mean, lp) of each window of each channel, or of the whole image if `whole`.

        Here as its row `graph.pool` has it; versions of ONNX have other forms, too.

        - Operands: `x` (`tensor of T`)
        - Attributes:
          - `kernel_shape` (`array of integers`, may be absent)
          - `strides` (`array of integers`, may be absent)
          - `dilations` (`array of integers`, may be absent)
          - `pads` (`array of integers`, may be absent)
          - `auto_pad` (`string`, `"NOTSET"` if absent)
          - `ceil_mode` (`integer`, `0` if absent)
          - `storage_order` (`integer`, `0` if absent)
        - Results: `y` (`tensor of T`), `indices` (`tensor of i64`, may be left out)
        - Effects: pure.

        Generic form:

        ```mlir
        %y = "onnx.MaxPool"(%x) : (tensor<*xf32>) -> tensor<*xf32>
        ```
    "#]]
    .assert_eq(&text("onnx.MaxPool"));
    expect![[r#"
        Each element as the nearest one of another type (`to`).

        Here as its row `graph.cast` has it; versions of ONNX have other forms, too.

        - Operands: `x` (`tensor of T`)
        - Attributes:
          - `to` (`integer`): the number that ONNX has for a type
          - `saturate` (`integer`, `1` if absent)
          - `round_mode` (`string`, `"up"` if absent)
        - Results: `y` (`any`)
        - Effects: pure.

        Generic form:

        ```mlir
        %y = "onnx.Cast"(%x) {to = 1} : (tensor<*xf32>) -> tensor<*xf32>
        ```
    "#]]
    .assert_eq(&text("onnx.Cast"));
}

#[test]
fn element_types_that_do_not_go_together_are_told() {
    check(
        r#"%a = "graph.and"(%x, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xi1>
%b = "graph.shape"(%x) : (tensor<2x4xf32>) -> tensor<2xi64>
%c = "graph.add"(%b, %x) : (tensor<2xi64>, tensor<2x4xf32>) -> tensor<*xi64>
%d = "graph.relu"(%x) : (tensor<2x4xf32>) -> tensor<2x4xi32>"#,
        expect![[r#"
            g.mlir:2:18: error: 'graph.and' op operand #0 must be a tensor of i1, but got 'tensor<2x4xf32>' [TF0402]
              |
            2 | %a = "graph.and"(%x, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xi1>
              |                  ^^
            help: it is graph.and(x: tensor of i1, y: tensor of i1) -> (z: tensor of i1)
            g.mlir:2:22: error: 'graph.and' op operand #1 must be a tensor of i1, but got 'tensor<2x4xf32>' [TF0402]
              |
            2 | %a = "graph.and"(%x, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xi1>
              |                      ^^
            g.mlir:4:22: error: 'graph.add' op operand #1 must be a tensor of i64, as operand #0 is, but got 'tensor<2x4xf32>' [TF0402]
              |
            4 | %c = "graph.add"(%b, %x) : (tensor<2xi64>, tensor<2x4xf32>) -> tensor<*xi64>
              |                      ^^
            help: it is graph.add(x: tensor of T, y: tensor of T) -> (z: tensor of T)
            g.mlir:5:6: error: 'graph.relu' op result #0 must be a tensor of f32, as operand #0 is, but got 'tensor<2x4xi32>' [TF0404]
              |
            5 | %d = "graph.relu"(%x) : (tensor<2x4xf32>) -> tensor<2x4xi32>
              |      ^^^^^^^^^^^^
            help: it is graph.relu(x: tensor of T) -> (y: tensor of T)
        "#]],
    );
}
