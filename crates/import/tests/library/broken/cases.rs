//! Models with one mistake each, by name.

use super::wire::*;

pub struct Case {
    pub name: &'static str,
    pub bytes: Vec<u8>,
}

/// Returns all cases; `broken.rs` makes the files that they name.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |name: &'static str, wire: Wire| {
        cases.push(Case {
            name,
            bytes: wire.0,
        })
    };
    bytes(&mut add);
    deep(&mut add);
    functions(&mut add);
    opsets(&mut add);
    values(&mut add);
    operators(&mut add);
    attributes(&mut add);
    tensors(&mut add);
    types(&mut add);
    sparse(&mut add);
    files(&mut add);
    cases
}

type Add<'a> = &'a mut dyn FnMut(&'static str, Wire);

fn good() -> Wire {
    model(graph([node("Relu", &["x"], &["y"])], "y"))
}

fn raw(bytes: &[u8]) -> Wire {
    Wire(bytes.to_vec())
}

fn bytes(add: Add) {
    add("empty file", raw(b""));
    add("a version and no graph", raw(b"\x08\x08"));
    add("text", raw(b"hello, this is a model\n"));
    add("archive", raw(b"PK\x03\x04\x14\x00\x00\x00\x08\x00"));
    add("json", raw(b"{\"graph\": []}"));
    add(
        "pointer to a large file",
        raw(b"version https://git-lfs.github.com/spec/v1\n"),
    );
    add("number of eleven bytes", raw(&[0xff; 11]));
    let whole = good().0;
    add("first half", raw(&whole[..whole.len() / 2]));
    add("all but the last byte", raw(&whole[..whole.len() - 1]));
    add("cut within a number", raw(&[0x08, 0x88]));
    add(
        "node longer than its graph",
        Wire::new().bytes(7, &[0x0a, 0x10, 0x00]),
    );
    add("group", raw(&[0x7b, 0x7c]));
    add("field zero", raw(&[0x00, 0x00]));
    add("graph that is a number", Wire::new().int(1, 8).int(7, 1));
    add(
        "name that is no text",
        model(Wire::new().bytes(2, &[b'a', 0xc3, b'b'])),
    );
    let tensor = tensor("w", FLOAT, &[2]).bytes(4, &[0; 7]);
    add("packed floats of seven bytes", with_initializer(tensor));
    let nodes = [0x0a, 0x00].repeat(2 << 20);
    add(
        "two million empty nodes",
        Wire::new().int(1, 8).bytes(7, &nodes),
    );
    add(
        "unknown field beyond the end",
        raw(&[0xfa, 0x07, 0x7f, 0x00]),
    );
}

fn deep(add: Add) {
    // Made from the inside, so that it takes time in the depth and the size.
    let nested = |depth: usize| {
        let mut inner = graph([node("Relu", &["x"], &["y"])], "y");
        for _ in 0..depth {
            let branch = attribute("then_branch", 5).message(6, inner);
            let other = attribute("else_branch", 5).message(6, graph([], "x"));
            let choice = node("If", &["x"], &["y"])
                .message(5, branch)
                .message(5, other);
            inner = Wire::new()
                .message(1, choice)
                .message(12, value("y", FLOAT, &[2]));
        }
        inner
    };
    add("subgraphs 40 deep", model(nested(40)));
    let mut inner = Wire::new();
    for _ in 0..10_000 {
        inner = Wire::new().message(1, Wire::new().message(5, Wire::new().message(6, inner)));
    }
    add("subgraphs 10,000 deep", model(inner));
    let mut ty = Wire::new().message(1, Wire::new().int(1, 1));
    for _ in 0..300 {
        ty = Wire::new().message(4, Wire::new().message(1, ty));
    }
    let deep = Wire::new().text(1, "x").message(2, ty);
    add("sequences 300 deep", model(Wire::new().message(11, deep)));
    let functions = (0..10_000).map(|index| {
        let (own, next) = (format!("f{index}"), format!("f{}", index + 1));
        match index {
            9_999 => function(&own, [node("Relu", &["a"], &["b"])]),
            _ => function(&own, [call(&next, "a", "b")]),
        }
    });
    add(
        "functions 10,000 deep",
        model(graph([call("f0", "x", "y")], "y"))
            .messages(25, functions)
            .message(8, opset("own", 1)),
    );
}

fn functions(add: Add) {
    let with = |functions: Vec<Wire>, calls: Wire| {
        model(graph([calls], "y"))
            .messages(25, functions)
            .message(8, opset("own", 1))
    };
    let f = || call("f", "x", "y");
    add(
        "function that calls itself",
        with(vec![function("f", [call("f", "a", "b")])], f()),
    );
    add(
        "functions that call each other",
        with(
            vec![
                function("f", [call("g", "a", "b")]),
                function("g", [call("f", "a", "b")]),
            ],
            f(),
        ),
    );
    let doubling = (0..50).map(|index| {
        let (own, next) = (format!("f{index}"), format!("f{}", index + 1));
        function(&own, [call(&next, "a", "c"), call(&next, "c", "b")])
    });
    add(
        "functions that call the next twice",
        with(doubling.collect(), call("f0", "x", "y")),
    );
    let simple = || function("f", [node("Relu", &["a"], &["b"])]);
    add("function twice", with(vec![simple(), simple()], f()));
    let many = node("f", &["x", "x"], &["y"]).text(7, "own");
    add("call with too many inputs", with(vec![simple()], many));
    let odd = f().message(5, attribute("alpha", 2).int(3, 1));
    add(
        "call with an attribute that the function lacks",
        with(vec![simple()], odd),
    );
    let lacking = function("f", [node("Relu", &["a"], &["c"])]);
    add("function without its output", with(vec![lacking], f()));
    let other = Wire::new()
        .texts(4, &["a"])
        .texts(5, &["b"])
        .text(1, "f")
        .text(10, "own")
        .message(7, node("Relu", &["a"], &["b"]))
        .message(9, opset("", 28));
    add("function for operator set 28", with(vec![other], f()));
    let unknown = function("f", [node("Relu", &["z"], &["b"])]);
    add(
        "function that takes what is outside",
        with(vec![unknown], f()),
    );
}

fn opsets(add: Add) {
    let plain = || graph([node("Relu", &["x"], &["y"])], "y");
    add("operator set 0", model_at(0, plain()));
    add("operator set 28", model_at(28, plain()));
    add("operator set -1", model_at(-1, plain()));
    add(
        "two operator sets of a name",
        model(plain()).message(8, opset("ai.onnx", 14)),
    );
    let learned = node("Scaler", &["x"], &["y"]).text(7, "ai.onnx.ml");
    add("domain without a version", model(graph([learned], "y")));
}

fn values(add: Add) {
    let relu = |input: &str, output: &str| node("Relu", &[input], &[output]);
    add(
        "node that takes its result",
        model(graph([relu("y", "y")], "y")),
    );
    let cycle = [relu("c", "a"), relu("a", "b"), relu("b", "c")];
    add("three nodes in a circle", model(graph(cycle, "c")));
    let names: Vec<String> = (0..1_000).map(|index| format!("v{index}")).collect();
    let long = (0..1_000).map(|index| relu(&names[index], &names[(index + 1) % 1_000]));
    add("a thousand nodes in a circle", model(graph(long, "v0")));
    add("unknown value", model(graph([relu("xx", "y")], "y")));
    add("unknown value that is almost one", {
        let nodes = [relu("x", "hidden"), relu("hiden", "y")];
        model(graph(nodes, "y"))
    });
    add("unknown output", model(graph([relu("x", "y")], "z")));
    add(
        "value made twice",
        model(graph([relu("x", "y"), relu("x", "y")], "y")),
    );
    let constant = tensor("y", FLOAT, &[1]).float(4, 1.0);
    add(
        "value of a node and an initializer",
        model(graph([relu("x", "y")], "y").message(5, constant)),
    );
    let again = graph([relu("x", "y")], "y").message(11, value("x", FLOAT, &[2]));
    add("input twice", model(again));
    let nameless = graph([relu("x", "y")], "y").message(11, value("", FLOAT, &[2]));
    add("input without a name", model(nameless));
    let branch = |name: &str, nodes: Vec<Wire>, output: &str| {
        let graph = Wire::new()
            .messages(1, nodes)
            .message(12, value(output, FLOAT, &[2]));
        attribute(name, 5).message(6, graph)
    };
    let choice = |then: Wire, other: Wire| {
        let choice = node("If", &["x"], &["y"])
            .message(5, then)
            .message(5, other);
        model(graph([choice], "y"))
    };
    let two = Wire::new()
        .messages(1, [relu("x", "a")])
        .messages(12, ["a", "x"].map(|name| value(name, FLOAT, &[2])));
    add(
        "branch of two values for one",
        choice(
            attribute("then_branch", 5).message(6, two),
            branch("else_branch", vec![relu("x", "b")], "b"),
        ),
    );
    add(
        "value of the other branch",
        choice(
            branch("then_branch", vec![relu("x", "a")], "a"),
            branch("else_branch", vec![relu("a", "b")], "b"),
        ),
    );
    add(
        "branch without its output",
        choice(
            branch("then_branch", vec![relu("x", "a")], "a"),
            branch("else_branch", vec![], "c"),
        ),
    );
    let inside = node("If", &["x"], &["y"])
        .message(5, branch("then_branch", vec![relu("y", "a")], "a"))
        .message(5, branch("else_branch", vec![relu("x", "b")], "b"));
    add(
        "branch that takes its own result",
        model(graph([inside], "y")),
    );
    add("three mistakes", {
        let nodes = [relu("p", "a"), relu("q", "b"), node("Covn", &["a"], &["y"])];
        model(graph(nodes, "y"))
    });
}

fn operators(add: Add) {
    let one = |node: Wire| model(graph([node], "y"));
    add(
        "node without operator",
        one(Wire::new().text(1, "x").text(2, "y")),
    );
    add(
        "operator with a line feed",
        one(node("Re\nlu", &["x"], &["y"])),
    );
    add("unknown operator", one(node("FancyOp", &["x"], &["y"])));
    add(
        "operator that is almost one",
        one(node("MatMull", &["x", "x"], &["y"])),
    );
    add(
        "operator of a later version",
        one(node("Gelu", &["x"], &["y"])),
    );
    add(
        "operator that is gone",
        one(node("Upsample", &["x", "x"], &["y"])),
    );
    add("too many inputs", one(node("Relu", &["x", "x"], &["y"])));
    add("too many outputs", one(node("Relu", &["x"], &["y", "z"])));
    add("missing input", one(node("Conv", &["x"], &["y"])));
    add("input left out", one(node("Conv", &["x", "", "x"], &["y"])));
    add(
        "no inputs of many",
        one(node("Concat", &[], &["y"]).message(5, attribute("axis", 2).int(3, 0))),
    );
}

fn attributes(add: Add) {
    add(
        "missing attribute",
        model(graph([node("Concat", &["x"], &["y"])], "y")),
    );
    add(
        "attribute that is an input",
        with_attribute("Squeeze", attribute("axes", 7).int(8, 0)),
    );
    add(
        "attribute of later",
        with_attribute("ReduceMax", attribute("noop_with_empty_axes", 2).int(3, 0)),
    );
    add(
        "unknown attribute",
        with_attribute("LeakyRelu", attribute("alhpa", 1).float(2, 0.1)),
    );
    add(
        "attribute of the wrong kind",
        with_attribute("LeakyRelu", attribute("alpha", 2).int(3, 1)),
    );
    let twice = attribute("alpha", 1).float(2, 0.1);
    let node_twice = node("LeakyRelu", &["x"], &["y"])
        .message(5, twice.clone())
        .message(5, twice);
    add("attribute twice", model(graph([node_twice], "y")));
    add(
        "attribute without a name",
        with_attribute("Relu", Wire::new().int(20, 2).int(3, 1)),
    );
    add(
        "attribute that holds something else",
        with_attribute("LeakyRelu", attribute("alpha", 1).int(3, 1)),
    );
    add(
        "attribute of kind 99",
        with_attribute("LeakyRelu", attribute("alpha", 99)),
    );
    add(
        "attribute with nothing",
        with_attribute("LeakyRelu", Wire::new().text(1, "alpha")),
    );
    add(
        "list of graphs",
        with_attribute("Relu", attribute("bodies", 10).message(11, Wire::new())),
    );
    add(
        "graph that is missing",
        with_attribute("If", attribute("then_branch", 5)),
    );
    let reference = Wire::new().text(1, "alpha").int(20, 1).text(21, "slope");
    add(
        "reference outside of a function",
        with_attribute("LeakyRelu", reference),
    );
    add(
        "constant without a value",
        model(graph([node("Constant", &[], &["y"])], "y")),
    );
}

fn tensors(add: Add) {
    let float = |sizes: &[i64]| tensor("w", FLOAT, sizes);
    add(
        "too few bytes",
        with_initializer(float(&[2]).bytes(9, &[0; 7])),
    );
    add(
        "too many bytes",
        with_initializer(float(&[2]).bytes(9, &[0; 12])),
    );
    add("no elements", with_initializer(float(&[2])));
    add(
        "floats among integers",
        with_initializer(float(&[2]).int(7, 1).int(7, 2)),
    );
    add(
        "number that does not fit",
        with_initializer(tensor("w", INT8, &[1]).int(5, 300)),
    );
    add(
        "negative size",
        with_initializer(float(&[-2]).bytes(9, &[0; 8])),
    );
    add(
        "more elements than there are",
        with_initializer(float(&[1 << 40, 1 << 40])),
    );
    add(
        "a million million elements",
        with_initializer(float(&[1 << 40]).bytes(9, &[0; 8])),
    );
    add(
        "element type 99",
        with_initializer(tensor("w", 99, &[1]).bytes(9, &[0; 4])),
    );
    add(
        "no element type",
        with_initializer(Wire::new().int(1, 1).text(8, "w")),
    );
    add(
        "elements in two places",
        with_initializer(float(&[1]).bytes(9, &[0; 4]).float(4, 1.0)),
    );
    add(
        "strings as bytes",
        with_initializer(tensor("w", STRING, &[1]).bytes(9, b"text")),
    );
    add(
        "too few strings",
        with_initializer(tensor("w", STRING, &[2]).text(6, "one")),
    );
    add(
        "segments",
        with_initializer(float(&[1]).message(3, Wire::new().int(1, 0)).float(4, 1.0)),
    );
    add(
        "initializer without a name",
        model({
            let tensor = tensor("", FLOAT, &[1]).float(4, 1.0);
            graph([node("Relu", &["x"], &["y"])], "y").message(5, tensor)
        }),
    );
    add("constant of too few bytes", {
        let value = attribute("value", 4).message(5, tensor("", INT64, &[2]).bytes(9, &[0; 8]));
        model(graph(
            [node("Constant", &[], &["y"]).message(5, value)],
            "y",
        ))
    });
}

fn types(add: Add) {
    let with = |input: Wire| {
        let graph = Wire::new()
            .message(1, node("Relu", &["x"], &["y"]))
            .message(11, input);
        model(graph.message(12, value("y", FLOAT, &[2])))
    };
    add("input without a type", with(Wire::new().text(1, "x")));
    add("input of element type 99", with(value("x", 99, &[2])));
    add(
        "input of an empty type",
        with(Wire::new().text(1, "x").message(2, Wire::new())),
    );
    let map = Wire::new().message(5, Wire::new().int(1, INT64));
    add(
        "map without values",
        with(Wire::new().text(1, "x").message(2, map)),
    );
    let nodes = [node("Relu", &["x"], &["h"]), node("Relu", &["h"], &["y"])];
    let stated = graph(nodes, "y").message(13, value("h", 99, &[2]));
    add("value of element type 99", model(stated));
}

fn sparse(add: Add) {
    let with = |sizes: &[i64], values: Wire, indices: Wire| {
        let sparse = Wire::new().message(1, values).message(2, indices);
        let sparse = sizes.iter().fold(sparse, |wire, &size| wire.int(3, size));
        model(graph([node("Add", &["x", "w"], &["y"])], "y").message(15, sparse))
    };
    let values = || tensor("w", FLOAT, &[1]).float(4, 1.0);
    let index = |at: i64| tensor("", INT64, &[1]).int(7, at);
    add("sparse index out of range", with(&[4], values(), index(4)));
    add("sparse index below zero", with(&[4], values(), index(-1)));
    add("sparse and huge", with(&[1 << 38], values(), index(0)));
    let two = tensor("", INT64, &[2]).int(7, 0).int(7, 1);
    add("more indices than values", with(&[4], values(), two));
    add(
        "indices of floats",
        with(&[4], values(), tensor("", FLOAT, &[1]).float(4, 0.0)),
    );
    add(
        "sparse strings",
        with(&[4], tensor("w", STRING, &[1]).text(6, "one"), index(0)),
    );
    let lone = Wire::new().message(1, values()).int(3, 4);
    add(
        "sparse without indices",
        model(graph([], "x").message(15, lone)),
    );
}

fn files(add: Add) {
    let file = |name: &str| with_initializer(external(&[("location", name)]));
    add("external: absolute path", file("/etc/passwd"));
    add("external: path that goes up", file("../secret.bin"));
    add(
        "external: path that goes down and up",
        file("a/../../secret.bin"),
    );
    add("external: path with backslashes", file("..\\secret.bin"));
    add("external: path with a zero", file("w\0.bin"));
    add(
        "external: no path",
        with_initializer(external(&[("offset", "0")])),
    );
    add("external: empty path", file(""));
    add("external: missing file", file("missing.bin"));
    add("external: link out", file("link.bin"));
    add("external: folder", file("folder"));
    add("external: short file", file("short.bin"));
    let at = |key: &str, number: &str| {
        with_initializer(external(&[("location", "w.bin"), (key, number)]))
    };
    add("external: wrong length", at("length", "4"));
    add("external: offset beyond the end", at("offset", "4"));
    add(
        "external: largest offset",
        at("offset", "18446744073709551615"),
    );
    add("external: offset in words", at("offset", "four"));
    add("external: offset below zero", at("offset", "-4"));
}

/// Returns a model with an attribute on its only node.
fn with_attribute(operator: &str, attribute: Wire) -> Wire {
    model(graph(
        [node(operator, &["x"], &["y"]).message(5, attribute)],
        "y",
    ))
}
