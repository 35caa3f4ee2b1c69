//! Small models, by name.

use super::wire::*;

pub struct Case {
    pub name: &'static str,
    pub bytes: Vec<u8>,
}

pub fn all() -> Vec<Case> {
    let case = |name, wire: Wire| Case {
        name,
        bytes: wire.0,
    };
    vec![
        case("one node", model(graph([relu("x", "y")], "y"))),
        case("input as output", model(graph([], "x"))),
        // As PyTorch writes a module that returns one tensor twice.
        case("value that two outputs give", {
            let graph = graph([relu("x", "y")], "y");
            model(graph.message(12, value("y", FLOAT, &[2])))
        }),
        case(
            "nodes in no order",
            model(graph([relu("b", "y"), relu("x", "a"), relu("a", "b")], "y")),
        ),
        case("symbols", symbols()),
        // As PaddlePaddle writes a size that is not known, and PyTorch a type.
        case("size below 0", {
            let graph = Wire::new().message(1, relu("x", "y"));
            let graph = graph.message(11, value("x", FLOAT, &[-1, 3]));
            model(graph.message(12, value("y", FLOAT, &[-1, 3])))
        }),
        // As others do: two sizes of this name need not be the same.
        case("size named ?", {
            let graph = Wire::new().message(1, relu("x", "y"));
            let graph = graph.message(11, named_sizes("x", FLOAT, &["?", "?", "N"]));
            model(graph.message(12, named_sizes("y", FLOAT, &["?", "?", "N"])))
        }),
        case("empty types", {
            let nothing = |name| Wire::new().text(1, name).message(2, Wire::new());
            let graph = Wire::new().messages(1, [relu("x", "h"), relu("h", "y")]);
            let graph = graph
                .message(11, value("x", FLOAT, &[2]))
                .message(13, nothing("h"));
            model(graph.message(12, nothing("y")))
        }),
        case("initializers", initializers()),
        case("initializer twice", {
            let weights = tensor("w", FLOAT, &[2]).float(4, 1.0).float(4, 2.0);
            let graph = graph([node("Add", &["x", "w"], &["y"])], "y");
            model(graph.messages(5, [weights.clone(), weights]))
        }),
        case("metadata in another code", {
            let entry = Wire::new().bytes(1, b"author").bytes(2, b"Andr\xe9");
            let model = model(graph([relu("x", "y")], "y"));
            model.bytes(2, b"caf\xe9").message(14, entry)
        }),
        case("no operator set", {
            let plain = graph([relu("x", "y")], "y");
            Wire::new().int(1, 8).message(7, plain)
        }),
        case("no operator set in the first format", {
            let plain = graph([relu("x", "y")], "y");
            Wire::new().int(1, 2).message(7, plain)
        }),
        case("truth by any number", {
            let mask = tensor("w", BOOL, &[3]);
            let mask = [0, 255, -1]
                .into_iter()
                .fold(mask, |mask, one| mask.int(5, one));
            with_initializer(mask)
        }),
        case("initializer of an input", {
            let weights = tensor("w", FLOAT, &[2]).float(4, 1.0).float(4, 2.0);
            let graph = graph([node("Add", &["x", "w"], &["y"])], "y");
            model(
                graph
                    .message(11, value("w", FLOAT, &[2]))
                    .message(5, weights),
            )
        }),
        case("elements in another file", {
            let entries = [("location", "deep/w.bin"), ("offset", "4"), ("length", "8")];
            with_initializer(external(&entries))
        }),
        case("sparse", sparse()),
        case("constants", constants()),
        case("attributes", attributes()),
        case("left out", left_out()),
        case("branches", branches()),
        case("loop", looped()),
        case("functions", functions()),
        case("function of another version", {
            let squeezed = node("Squeeze", &["a"], &["b"]).message(5, ints("axes", &[0]));
            let own = Wire::new()
                .text(1, "f")
                .text(4, "a")
                .text(5, "b")
                .text(10, "own");
            let own = own.message(7, squeezed).message(9, opset("", 11));
            let model = model(graph([call("f", "x", "y")], "y"));
            model.message(25, own).message(8, opset("own", 1))
        }),
        case("sequences", sequences()),
        case("other domains", domains()),
        case("names", names()),
    ]
}

fn relu(input: &str, output: &str) -> Wire {
    node("Relu", &[input], &[output])
}

fn ints(name: &str, values: &[i64]) -> Wire {
    values
        .iter()
        .fold(attribute(name, 7), |wire, &value| wire.int(8, value))
}

/// Returns the name and the type of a tensor whose sizes have names.
fn named_sizes(name: &str, element: i64, sizes: &[&str]) -> Wire {
    let shape = Wire::new().messages(1, sizes.iter().map(|size| Wire::new().text(2, size)));
    let ty = Wire::new().message(1, Wire::new().int(1, element).message(2, shape));
    Wire::new().text(1, name).message(2, ty)
}

fn symbols() -> Wire {
    let named = Wire::new().text(2, "N");
    let sizes = [named, Wire::new().int(1, 3), Wire::new()];
    let shape = Wire::new().messages(1, sizes);
    let ty = Wire::new().message(1, Wire::new().int(1, FLOAT).message(2, shape));
    let free = Wire::new().message(1, Wire::new().int(1, FLOAT));
    let graph = Wire::new()
        .message(1, relu("x", "y"))
        .message(11, Wire::new().text(1, "x").message(2, ty))
        .message(12, Wire::new().text(1, "y").message(2, free));
    let property = Wire::new().text(1, "licence").text(2, "none");
    model(graph)
        .text(2, "hand")
        .text(3, "1.0")
        .message(14, property)
}

fn initializers() -> Wire {
    let graph = graph([relu("x", "y")], "y")
        .message(5, tensor("bytes", INT8, &[2]).bytes(9, &[1, 0xff]))
        .message(5, tensor("same", FLOAT, &[2, 2]).bytes(4, &[0; 16]))
        .message(5, tensor("scalar", INT64, &[]).int(7, -1))
        .message(5, tensor("none", INT64, &[0, 2]))
        .message(
            5,
            tensor("words", STRING, &[2]).text(6, "a").bytes(6, b"\xff"),
        )
        .message(5, tensor("no words", STRING, &[0]))
        .message(5, tensor("e8m0", 24, &[3]).bytes(9, &[0x7f, 0xff, 0x80]))
        .message(5, tensor("int4", 22, &[3]).bytes(9, &[0x7f, 0x08]));
    model(graph)
}

fn sparse() -> Wire {
    let values = tensor("w", FLOAT, &[2]).float(4, 1.0).float(4, 2.0);
    let indices = [0, 1, 1, 0]
        .iter()
        .fold(tensor("", INT64, &[2, 2]), |it, &at| it.int(7, at));
    let sparse = Wire::new()
        .message(1, values)
        .message(2, indices)
        .int(3, 2)
        .int(3, 2);
    model(graph([node("Add", &["x", "w"], &["y"])], "y").message(15, sparse))
}

fn constants() -> Wire {
    let constant =
        |name: &str, attribute: Wire| node("Constant", &[], &[name]).message(5, attribute);
    let nodes = [
        constant("a", attribute("value_float", 1).float(2, 0.5)),
        constant("b", attribute("value_int", 2).int(3, 7)),
        constant("c", ints("value_ints", &[1, 2])),
        constant("d", attribute("value_floats", 6).float(7, 1.0)),
        constant("e", attribute("value_string", 3).text(4, "word")),
        constant("f", attribute("value_strings", 8).text(9, "a").text(9, "b")),
        constant(
            "g",
            attribute("value", 4).message(5, tensor("", INT64, &[1]).int(7, 3)),
        ),
    ];
    model(graph(nodes, "a"))
}

fn attributes() -> Wire {
    let convolution = node("Conv", &["x", "x"], &["y"])
        .message(5, attribute("auto_pad", 3).text(4, "SAME_UPPER"))
        .message(5, attribute("group", 2))
        .message(5, ints("strides", &[2, 2]))
        .message(5, ints("dilations", &[]));
    let cast = node("Cast", &["y"], &["z"]).message(5, attribute("to", 2).int(3, INT64));
    let fill = attribute("value", 4).message(5, tensor("", FLOAT, &[1]).float(4, 0.5));
    let filled = node("ConstantOfShape", &["z"], &["f"]).message(5, fill);
    model(graph([convolution, cast, filled], "y"))
}

fn left_out() -> Wire {
    let nodes = [
        node("Clip", &["x", "", "x"], &["a"]),
        node("Clip", &["a", "", ""], &["b"]),
        node("LSTM", &["x", "x", "x"], &["", "y"])
            .message(5, attribute("hidden_size", 2).int(3, 2)),
    ];
    model(graph(nodes, "y"))
}

fn branch(nodes: Vec<Wire>, output: &str) -> Wire {
    Wire::new()
        .messages(1, nodes)
        .message(12, value(output, FLOAT, &[2]))
}

fn branches() -> Wire {
    let inner = node("If", &["c"], &["i"])
        .message(
            5,
            attribute("then_branch", 5).message(6, branch(vec![relu("a", "t")], "t")),
        )
        .message(
            5,
            attribute("else_branch", 5).message(6, branch(vec![], "x")),
        );
    let outer = node("If", &["c"], &["y"])
        .message(
            5,
            attribute("then_branch", 5).message(6, branch(vec![inner], "i")),
        )
        .message(
            5,
            attribute("else_branch", 5).message(6, branch(vec![relu("x", "e")], "e")),
        );
    let graph = graph([relu("x", "a"), outer], "y").message(11, value("c", 9, &[]));
    model(graph)
}

fn looped() -> Wire {
    let body = Wire::new()
        .messages(1, [relu("v", "w"), node("Identity", &["c"], &["d"])])
        .message(11, value("i", INT64, &[]))
        .message(11, value("c", 9, &[]))
        .message(11, Wire::new().text(1, "v"))
        .messages(
            12,
            [
                Wire::new().text(1, "d"),
                Wire::new().text(1, "w"),
                Wire::new().text(1, "w"),
            ],
        );
    let repeated = node("Loop", &["", "", "x"], &["y", "all"])
        .message(5, attribute("body", 5).message(6, body));
    model(graph([repeated], "y"))
}

fn functions() -> Wire {
    let reference = |name: &str| Wire::new().text(1, name).int(20, 1).text(21, "slope");
    let leaky = node("LeakyRelu", &["a"], &["b"]).message(5, reference("alpha"));
    let inner = function("inner", [leaky]).text(6, "slope");
    let hand_on = call("inner", "a", "t").message(5, reference("slope"));
    let default = attribute("slope", 1).float(2, 0.25);
    let outer = function("outer", [hand_on, relu("t", "b")]).message(11, default);
    let stated = call("outer", "x", "h").message(5, attribute("slope", 1).float(2, 0.5));
    model(graph([stated, call("outer", "h", "y")], "y"))
        .messages(25, [outer, inner])
        .message(8, opset("own", 1))
}

fn sequences() -> Wire {
    let nodes = [
        node("SequenceConstruct", &["x", "x"], &["s"]),
        node("ConstantOfShape", &["x"], &["k"]),
        node("SequenceInsert", &["s", "x"], &["t"]),
        node("SequenceAt", &["t", "k"], &["e"]),
        node("SequenceLength", &["t"], &["n"]),
        node("SequenceEmpty", &[], &["none"]).message(5, attribute("dtype", 2).int(3, INT64)),
        node("Shape", &["e"], &["dims"]),
        node("Greater", &["e", "e"], &["more"]),
    ];
    model(graph(nodes, "x"))
}

fn domains() -> Wire {
    let nodes = [
        node("Scaler", &["x"], &["a"]).text(7, "ai.onnx.ml"),
        node("FusedMatMul", &["a", "x"], &["b"]).text(7, "com.microsoft"),
        node("Relu", &["b"], &["y"]).text(7, "ai.onnx"),
    ];
    let model = model(graph(nodes, "y"));
    model
        .message(8, opset("ai.onnx.ml", 3))
        .message(8, opset("com.microsoft", 1))
}

fn names() -> Wire {
    let odd = "a \"b\"/\\\n\u{e9}";
    let nodes = [relu("x", odd), relu(odd, "y")];
    model(graph(nodes, "y"))
}
