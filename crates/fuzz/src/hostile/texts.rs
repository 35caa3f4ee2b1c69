//! Hostile texts.

use super::Hostile;

pub(super) const ALL: &[Hostile] = &[
    Hostile {
        name: "brackets of all kinds, never closed",
        make: brackets,
    },
    Hostile {
        name: "regions in regions",
        make: |n| "\"a\"() ({".repeat(n).into_bytes(),
    },
    Hostile {
        name: "attributes in attributes",
        make: |n| nested("\"a\"() {x = ", "[", n),
    },
    Hostile {
        name: "types in types",
        make: |n| nested("\"a\"() {x = ", "tuple<", n),
    },
    Hostile {
        name: "locations in locations",
        make: |n| nested("\"a\"() : () -> () loc(", "fused[", n),
    },
    Hostile {
        name: "aliases that double",
        make: doubling,
    },
    Hostile {
        name: "aliases in a long chain",
        make: chain,
    },
    Hostile {
        name: "one alias used everywhere",
        make: alias,
    },
    Hostile {
        name: "one line of errors",
        make: |n| "oops ".repeat(n).into_bytes(),
    },
    Hostile {
        name: "many lines of errors",
        make: |n| "oops\n".repeat(n).into_bytes(),
    },
    Hostile {
        name: "undefined values in one line",
        make: undefined,
    },
    Hostile {
        name: "undefined values of many names",
        make: misspelt,
    },
    Hostile {
        name: "functions of one name",
        make: |n| "func.func @f() { tfrt.return }\n".repeat(n).into_bytes(),
    },
    Hostile {
        name: "calls of what is not there",
        make: calls,
    },
    Hostile {
        name: "values of one name",
        make: redefined,
    },
    Hostile {
        name: "an operation with many operands of wrong types",
        make: wrong_types,
    },
    Hostile {
        name: "one number of many digits",
        make: |n| format!("\"a\"() {{x = {}}} : () -> ()", "9".repeat(n)).into_bytes(),
    },
    Hostile {
        name: "one fraction of many digits",
        make: |n| format!("\"a\"() {{x = 0.{}1}} : () -> ()", "0".repeat(n)).into_bytes(),
    },
    Hostile {
        name: "one string of escapes",
        make: |n| format!("\"a\"() {{x = \"{}\"}} : () -> ()", "\\41".repeat(n)).into_bytes(),
    },
    Hostile {
        name: "one long comment",
        make: |n| format!("//{}\n\"a\"() : () -> ()", "x".repeat(n)).into_bytes(),
    },
    Hostile {
        name: "one long name",
        make: |n| {
            format!(
                "func.func @{0}() {{\n %y = tfrt.call @{0}x() : () -> i32\n tfrt.return }}",
                "x".repeat(n)
            )
            .into_bytes()
        },
    },
    Hostile {
        name: "an empty line after the other",
        make: |n| "\n".repeat(n).into_bytes(),
    },
    Hostile {
        name: "attributes in no order, and repeated",
        make: attributes,
    },
    Hostile {
        name: "elements of a tensor",
        make: |n| {
            format!(
                "\"a\"() {{x = dense<[{}1]> : tensor<{}xi8>}} : () -> ()",
                "1,".repeat(n),
                n + 1
            )
            .into_bytes()
        },
    },
    Hostile {
        name: "results that nobody reads",
        make: results,
    },
    Hostile {
        name: "a value that all read",
        make: readers,
    },
    Hostile {
        name: "values read before they are defined",
        make: forward,
    },
    Hostile {
        name: "blocks that branch to each other",
        make: blocks,
    },
    Hostile {
        name: "bytes that are no text",
        make: |n| vec![0xff; n],
    },
    Hostile {
        name: "pieces of a file",
        make: |n| "// -----\nmodule {\n".repeat(n).into_bytes(),
    },
];

fn brackets(n: usize) -> Vec<u8> {
    "\"a\"() {x = !d.t<([{"
        .bytes()
        .cycle()
        .take(16 * n)
        .collect()
}

fn nested(start: &str, open: &str, n: usize) -> Vec<u8> {
    format!("{start}{}", open.repeat(n)).into_bytes()
}

fn doubling(n: usize) -> Vec<u8> {
    let mut text = String::from("!a0 = tuple<i32, i32>\n#b0 = [1, 2]\n#l0 = loc(\"x\")\n");
    for index in 1..n {
        let before = index - 1;
        text += &format!("!a{index} = tuple<!a{before}, !a{before}>\n");
        text += &format!("#b{index} = [#b{before}, #b{before}]\n");
        text += &format!("#l{index} = loc(callsite(#l{before} at #l{before}))\n");
    }
    text.into_bytes()
}

fn chain(n: usize) -> Vec<u8> {
    let mut text = String::from("!a0 = i32\n");
    for index in 1..n {
        text += &format!("!a{index} = tuple<!a{}>\n", index - 1);
    }
    text.into_bytes()
}

fn alias(n: usize) -> Vec<u8> {
    let long = "i32, ".repeat(n);
    let uses = "\"a\"() {x = !a} : () -> ()\n".repeat(n / 4);
    format!("!a = tuple<{long}i32>\n{uses}").into_bytes()
}

fn body(lines: &str) -> Vec<u8> {
    format!("func.func @f(%a: i32) {{\n{lines}tfrt.return\n}}\n").into_bytes()
}

fn undefined(n: usize) -> Vec<u8> {
    body(&format!("\"a\"({}%a) : () -> ()\n", "%b, ".repeat(n)))
}

fn misspelt(n: usize) -> Vec<u8> {
    let defined: String = (0..n)
        .map(|at| format!("%value{at} = tfrt.constant.i32 1\n"))
        .collect();
    let used: String = (0..n)
        .map(|at| format!("\"a\"(%valeu{at}) : (i32) -> ()\n"))
        .collect();
    body(&(defined + &used))
}

fn calls(n: usize) -> Vec<u8> {
    let mut text = String::new();
    for at in 0..n {
        text += &format!(
            "func.func @function{at}() {{\ntfrt.call @functoin{at}() : () -> ()\ntfrt.return\n}}\n"
        );
    }
    text.into_bytes()
}

fn redefined(n: usize) -> Vec<u8> {
    body(&"%x = tfrt.constant.i32 1\n".repeat(n))
}

fn wrong_types(n: usize) -> Vec<u8> {
    let types = vec!["i64"; n].join(", ");
    let values = vec!["%a"; n].join(", ");
    body(&format!("\"a\"({values}) : ({types}) -> ()\n"))
}

fn attributes(n: usize) -> Vec<u8> {
    let names: Vec<String> = (0..n)
        .rev()
        .map(|at| format!("n{}", at / 2 * 7919 % n))
        .collect();
    format!("\"a\"() {{{}}} : () -> ()", names.join(", ")).into_bytes()
}

fn results(n: usize) -> Vec<u8> {
    let types = vec!["i32"; n].join(", ");
    body(&format!("%r:{n} = \"a\"() : () -> ({types})\n"))
}

fn readers(n: usize) -> Vec<u8> {
    body(&"\"a\"(%a, %a, %a) : (i32, i32, i32) -> ()\n".repeat(n))
}

fn forward(n: usize) -> Vec<u8> {
    let used: String = (0..n)
        .map(|at| format!("\"a\"(%v{at}) : (i32) -> ()\n"))
        .collect();
    let defined: String = (0..n)
        .rev()
        .map(|at| format!("%v{at} = \"a\"() : () -> i32\n"))
        .collect();
    format!("module {{\n{used}{defined}}}\n").into_bytes()
}

fn blocks(n: usize) -> Vec<u8> {
    let mut text = String::from("\"a\"() ({\n");
    for at in 0..n {
        text += &format!(
            "^b{at}:\n\"br\"()[^b{}, ^b{}] : () -> ()\n",
            (at + 1) % n,
            at * 7919 % n
        );
    }
    text += "}) : () -> ()";
    text.into_bytes()
}
