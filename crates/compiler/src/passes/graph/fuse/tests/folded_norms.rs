//! Tests of normalisations that are written as a factor and a summand.

use crate::passes::testing::run;

/// Returns the names of the operations that are left of some on rows of four, `%x`, and the attributes of a normalisation.
fn left(lines: &[&str]) -> String {
    let ty = |name: &str| match name {
        "x" => "tensor<2x3x4xf32>",
        "epsilon" | "zero" => "tensor<f32>",
        "scale" => "tensor<1x1x4xf32>",
        "shift" => "tensor<4xf32>",
        "other" => "tensor<1x3x1xf32>",
        "last" => "tensor<1xi64>",
        _ => "tensor<*xf32>",
    };
    let constants = [
        ("epsilon", "1.0e-3"),
        ("scale", "[[[1.0, 2.0, 3.0, 4.0]]]"),
        ("shift", "[4.0, 3.0, 2.0, 1.0]"),
        ("other", "[[[1.0], [2.0], [3.0]]]"),
        ("zero", "0.0"),
        ("last", "-1"),
    ];
    let mut text = "func.func @main(%x: tensor<2x3x4xf32>) -> tensor<*xf32> attributes {model.input_names = [\"x\"], \
         model.output_names = [\"y\"], model.input_dims = [[2 : i64, 3 : i64, 4 : i64]]} {\n"
        .to_owned();
    for (name, value) in constants {
        let ty = ty(name);
        text += &format!(
            "%{name} = \"onnx.Constant\"() {{value = dense<{value}> : {ty}}} : () -> {ty}\n"
        );
    }
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let mean = if words[1] == "reduce" {
            " {kind = \"mean\", keep = 1 : i64}"
        } else {
            ""
        };
        let operands: Vec<String> = words[2..].iter().map(|word| format!("%{word}")).collect();
        let types: Vec<&str> = words[2..].iter().map(|word| ty(word)).collect();
        text += &format!(
            "%{} = \"graph.{}\"({}){mean} : ({}) -> tensor<*xf32>\n",
            words[0],
            words[1],
            operands.join(", "),
            types.join(", ")
        );
    }
    text += "tfrt.return %y : tensor<*xf32>\n}";
    let text = run("graph-infer,graph-fuse", &text);
    let name = |line: &str| {
        let name = line.split('"').nth(1)?.trim_start_matches("graph.");
        let kind = line.split_once("kind = \"");
        let kind = kind.and_then(|(_, rest)| rest.split('"').next());
        match (name, kind) {
            ("onnx.Constant" | "none", _) => None,
            ("norm", Some(kind)) => Some(format!("{kind} norm")),
            _ => Some(name.to_owned()),
        }
    };
    let names: Vec<String> = text
        .lines()
        .filter(|line| line.contains(" = \""))
        .filter_map(name)
        .collect();
    names.join(" ")
}

#[test]
fn layer_norms_as_a_factor_and_a_summand_are_one_operation() {
    let moments = [
        "mean reduce x last",
        "squares squared_difference x mean",
        "variance reduce squares last",
        "moved add variance epsilon",
        "root rsqrt moved",
    ];
    let with = |lines: &[&str]| left(&[&moments[..], lines].concat());
    let keras = [
        "factor mul root scale",
        "scaled mul x factor",
        "negative neg mean",
        "product mul negative factor",
        "summand add product shift",
        "y add scaled summand",
    ];
    assert_eq!(with(&keras), "layer norm");
    let difference = [
        "factor mul root scale",
        "scaled mul x factor",
        "product mul mean factor",
        "summand sub shift product",
        "y add scaled summand",
    ];
    assert_eq!(with(&difference), "layer norm");
    let plain = [
        "scaled mul x root",
        "product mul mean root",
        "y sub scaled product",
    ];
    assert_eq!(with(&plain), "layer norm");
    // A scale that is none of columns, and the mean of something else.
    let rows = [
        "factor mul root other",
        "scaled mul x factor",
        "product mul mean factor",
        "y sub scaled product",
    ];
    assert!(!with(&rows).contains("norm"), "{}", with(&rows));
    let other = [
        "twice add x x",
        "else reduce twice last",
        "scaled mul x root",
        "product mul else root",
        "y sub scaled product",
    ];
    assert!(!with(&other).contains("norm"), "{}", with(&other));
}

#[test]
fn layer_norms_of_what_is_centred_are_one_operation() {
    let jax = [
        "mean reduce x last",
        "centred sub x mean",
        "squares square centred",
        "variance reduce squares last",
        "moved add variance epsilon",
        "root rsqrt moved",
        "factor mul root scale",
        "scaled mul centred factor",
        "y add scaled shift",
    ];
    assert_eq!(left(&jax), "layer norm");
}

#[test]
fn norms_without_a_mean_are_one_operation() {
    let rms = [
        "squares mul x x",
        "mean reduce squares last",
        "moved add mean epsilon",
        "root rsqrt moved",
        "normal mul x root",
        "y mul normal scale",
    ];
    assert_eq!(left(&rms), "rms norm");
}

#[test]
fn variances_without_the_square_of_the_mean_are_those_of_layer_norms() {
    let moments = |less: &'static str, of: &'static str| {
        [
            "squares square x",
            "mean reduce x last",
            of,
            "meansquare square mean",
            less,
            "variance max zero difference",
            "moved add variance epsilon",
            "root rsqrt moved",
            "factor mul root scale",
            "centred sub x mean",
            "scaled mul centred factor",
            "y add scaled shift",
        ]
    };
    let (less, of) = (
        "difference sub meanofsquares meansquare",
        "meanofsquares reduce squares last",
    );
    assert_eq!(left(&moments(less, of)), "layer norm");
    // The other way round, and the mean of something else.
    let negative = "difference sub meansquare meanofsquares";
    let other = "meanofsquares reduce x last";
    for lines in [moments(negative, of), moments(less, other)] {
        assert!(!left(&lines).contains("norm"), "{}", left(&lines));
    }
}
