//! Questions on a text: `$0` is the cursor, `«»` are the places that are expected.

use serde_json::{Value, json};

use super::client::{Client, Encoding, Marked, URI};

/// Asks at the cursor of each text; the answer must be the places in marks.
fn check_places(method: &str, further: &Value, texts: &[&str]) {
    for encoding in [Encoding::Utf16, Encoding::Utf8] {
        let mut client = Client::new(encoding);
        for marked in texts {
            let marked = Marked::new(marked);
            client.set_text(&marked.text);
            let mut params = client.place(&marked.text, marked.cursor);
            for (key, value) in further.as_object().expect("it is an object") {
                params[key] = value.clone();
            }
            let found = client.ask(method, params);
            let ranges: Vec<Value> = found
                .as_array()
                .unwrap_or_else(|| panic!("expected a list, found {found}"))
                .iter()
                .map(|place| place["range"].clone())
                .collect();
            let pieces = marked.pieces.iter();
            let expected: Vec<Value> = pieces
                .map(|piece| client.range(&marked.text, piece))
                .collect();
            assert_eq!(ranges, expected, "{encoding:?}\n{}", marked.text);
        }
        assert_eq!(client.shut_down(), 0);
    }
}

#[test]
fn definitions_of_values_are_found() {
    check_places(
        "textDocument/definition",
        &json!({}),
        &[
            // Results, on either edge of the name and on the definition itself.
            "«%x» = tfrt.constant.i32 1\n%y = tfrt.add.i32 %x$0, %x",
            "«%x» = tfrt.constant.i32 1\n%y = tfrt.add.i32 $0%x, %x",
            "«%x$0» = tfrt.constant.i32 1",
            "«%0» = tfrt.constant.i32 1\n%1 = tfrt.add.i32 %0, %$00",
            // One of several results.
            "%a, «%b» = \"t.two\"() : () -> (i32, i32)\n\"t.use\"(%b$0) : (i32) -> ()",
            "«%p»:2 = \"t.two\"() : () -> (i32, i32)\n\"t.use\"(%p#1$0) : (i32) -> ()",
            "«%p»:2 = \"t.two\"() : () -> (i32, i32)\n\"t.use\"($0%p#0, %p#1) : (i32, i32) -> ()",
            // Arguments of functions, blocks and regions.
            "func.func @f(«%x»: i32) -> i32 {\n  tfrt.return %x$0 : i32\n}",
            "\"t.r\"() ({\n^bb0(«%v»: i32):\n  \"t.use\"(%v$0) : (i32) -> ()\n}) : () -> ()",
            // The same name in another function is another value.
            "func.func @f(%x: i32) {\n  tfrt.return\n}\n\
             func.func @g(«%x»: i32) -> i32 {\n  tfrt.return %x$0 : i32\n}",
            // Operands of a loop that name the arguments of its body.
            "func.func @f(%n: i32, %x: i32) -> i32 {\n  \
             %y = tfrt.repeat.i32 %n, «%x» : i32 {\n    tfrt.return %x$0 : i32\n  }\n  \
             tfrt.return %y : i32\n}",
            "func.func @f(%n: i32, «%x»: i32) -> i32 {\n  \
             %y = tfrt.repeat.i32 %n, %x$0 : i32 {\n    tfrt.return %x : i32\n  }\n  \
             tfrt.return %y : i32\n}",
            "func.func @f(%n: i32, «%x»: i32) -> i32 {\n  \
             %y = tfrt.repeat.i32 %n, %x : i32 {\n    tfrt.return %x : i32\n  }\n  \
             tfrt.return %x$0 : i32\n}",
            "func.func @f(%c: i1, %x: i32) -> i32 {\n  \
             %y = tfrt.if %c, «%x» : (i32) -> (i32) {\n    tfrt.return %x : i32\n  } else {\n    \
             tfrt.return %x$0 : i32\n  }\n  tfrt.return %y : i32\n}",
            // Used before it is defined.
            "\"t.use\"(%x$0) : (i32) -> ()\n«%x» = \"t.one\"() : () -> i32",
            // Defined nowhere; no name at all.
            "\"t.use\"(%x$0) : (i32) -> ()",
            "%x = $0tfrt.constant.i32 1",
            "$0",
            "%x = tfrt.constant.i32 1 // %x$0",
        ],
    );
}

#[test]
fn definitions_of_symbols_blocks_and_aliases_are_found() {
    check_places(
        "textDocument/definition",
        &json!({}),
        &[
            "func.func «@f»() {\n  tfrt.return\n}\n\
             func.func @g() {\n  tfrt.call @f$0() : () -> ()\n  tfrt.return\n}",
            "func.func @g() {\n  tfrt.call @f$0() : () -> ()\n  tfrt.return\n}\n\
             func.func private «@f»()",
            "func.func «@f»() {\n  tfrt.return\n}\n\"t.a\"() {f = [@f$0]} : () -> ()",
            "func.func «@\"odd name\"»()\n\"t.a\"() {f = @\"odd\\20name\"$0} : () -> ()",
            // In generic form the name of the operation has to do.
            "«\"func.func\"»() ({}) {function_type = () -> (), sym_name = \"f\"} : () -> ()\n\
             \"t.a\"() {f = @f$0} : () -> ()",
            // The nearest module that has it.
            "module {\n  func.func @f()\n  module @m {\n    func.func «@f»()\n    \
             \"t.a\"() {f = @f$0} : () -> ()\n  }\n}",
            "module {\n  func.func «@f»()\n  module @m {\n    \
             \"t.a\"() {f = @f$0} : () -> ()\n  }\n}",
            "module {\n  module «@m» {\n    func.func @f()\n  }\n  \
             \"t.a\"() {f = @m$0::@f} : () -> ()\n}",
            "module {\n  module @m {\n    func.func «@f»()\n  }\n  \
             \"t.a\"() {f = @m::@f$0} : () -> ()\n}",
            "\"t.a\"() {f = @nobody$0} : () -> ()",
            // Blocks, in the region where they are.
            "\"t.r\"() ({\n  \"t.br\"()[^b$0] : () -> ()\n«^b»:\n  \"t.end\"() : () -> ()\n}, {\n^b:\n  \
             \"t.end\"() : () -> ()\n}) : () -> ()",
            // Aliases; those of locations may come later.
            "«!t» = i32\nfunc.func private @f(!t$0)",
            "«!t» = i32\n!u = tuple<!t$0>",
            "«#a» = 1 : i32\n\"t.a\"() {a = #a$0} : () -> ()",
            "\"t.a\"() : () -> () loc(#l$0)\n«#l» = loc(\"x\":1:2)",
            "\"t.a\"() : () -> () loc(fused[#k, #l$0])\n#k = loc(unknown)\n«#l» = loc(\"x\":1:2)",
        ],
    );
}

#[test]
fn definitions_are_found_where_the_text_is_wrong() {
    check_places(
        "textDocument/definition",
        &json!({}),
        &[
            // In an operation that is wrong, and of one.
            "«%x» = tfrt.constant.i32 1\n%y = tfrt.add.i32 %x$0",
            "«%x» = tfrt.constant.i32 1\n%y = tfrt.nothing %x$0",
            "«%x» = tfrt.constant.i32 oops\n%y = tfrt.add.i32 %x$0, %x",
            "«%x» = tfrt.constant.i32 oops\n%y = tfrt.nothing %x$0",
            // In a function whose first line is wrong.
            "func.func @f(«%x»: i32 -> i32 {\n  tfrt.return %x$0 : i32\n}",
            "func.func @f(%x: i32 -> i32 {\n  «%y» = tfrt.add.i32 %x, %x\n  tfrt.return %y$0 : i32\n}",
            // In a function without an end.
            "func.func @f(«%x»: i32) -> i32 {\n  tfrt.return %x$0",
            "func.func «@f»(%x: i32) -> i32 {\n  tfrt.call @f$0(%x",
            "\"t.r\"() ({\n  \"t.br\"()[^b$0\n«^b»:\n  \"t.end\"() : () -> ()\n",
        ],
    );
}

#[test]
fn columns_count_units_of_the_encoding() {
    check_places(
        "textDocument/definition",
        &json!({}),
        &[
            "\"é🦀\"() : () -> () «%x» = tfrt.constant.i32 1 \"世🦀\"(%x$0) : (i32) -> ()",
            "\"🦀\"() : () -> () loc(\"🦀🦀\") «%x» = \"🦀\"() : () -> i32\r\n\"🦀\"(%x$0) : (i32) -> ()",
        ],
    );
}

#[test]
fn references_are_found() {
    check_places(
        "textDocument/references",
        &json!({"context": {"includeDeclaration": true}}),
        &[
            "«%x»$0 = tfrt.constant.i32 1\n%y = tfrt.add.i32 «%x», «%x»\n%z = tfrt.add.i32 %y, «%x»",
            "func.func «@f»()\nfunc.func @g() {\n  tfrt.call «@f$0»() : () -> ()\n  tfrt.return\n}",
            "«!t» = i32\nfunc.func private @f(«!t») -> «!t$0»",
            "func.func @f(%n: i32, %x: i32) -> i32 {\n  \
             %y = tfrt.repeat.i32 %n, «%x» : i32 {\n    tfrt.return «%x$0» : i32\n  }\n  \
             tfrt.return %y : i32\n}",
            "module {\n  func.func @f()\n  module @m {\n    func.func «@f»()\n    \
             \"t.a\"() {f = «@f$0»} : () -> ()\n  }\n  \"t.a\"() {f = @f} : () -> ()\n}",
        ],
    );
    check_places(
        "textDocument/references",
        &json!({"context": {"includeDeclaration": false}}),
        &["%x$0 = tfrt.constant.i32 1\n%y = tfrt.add.i32 «%x», «%x»"],
    );
    check_places(
        "textDocument/documentHighlight",
        &json!({}),
        &["«%x»$0 = tfrt.constant.i32 1\n%y = tfrt.add.i32 «%x», «%x»"],
    );
}

/// Hovers at the cursor of each text; tells what is said, or nothing.
#[test]
fn hovering_tells_what_things_are() {
    let function = "func.func @f(%x: i32, %ch: !tfrt.chain) -> i32 {";
    let cases: &[(String, &[&str])] = &[
        // Values.
        (
            "%x$0 = tfrt.constant.i32 1\n%y = tfrt.add.i32 %x, %x".to_owned(),
            &["%x : i32", "Result of `tfrt.constant.i32` in line 1", "used 2 times"],
        ),
        (
            "%x = tfrt.constant.i32 1\n%y = tfrt.add.i32 %x, %x$0".to_owned(),
            &["%x : i32", "in line 1", "used 2 times"],
        ),
        (
            "%q, %r$0 = tfrt.div.i32 %q, %q".to_owned(),
            &["%r : i32", "Result 1 of `tfrt.div.i32`", "not used"],
        ),
        (
            "%p$0:2 = \"t.two\"() : () -> (i32, f32)".to_owned(),
            &["%p#0 : i32\n%p#1 : f32", "Results of `t.two`", "not used"],
        ),
        (
            format!("{function}\n  tfrt.return %x$0 : i32\n}}"),
            &["%x : i32", "Argument 0 of function `@f` in line 1", "used once"],
        ),
        (
            "\"t.r\"() ({\n^b(%v: f32):\n  \"t.u\"(%v$0) : (f32) -> ()\n}) : () -> ()".to_owned(),
            &["%v : f32", "Argument 0 of block `^b` in line 2"],
        ),
        (
            "func.func @f(%n: i32, %x: i64) -> i64 {\n  %y = tfrt.repeat.i32 %n, %x : i64 {\n    \
             tfrt.return %x$0 : i64\n  }\n  tfrt.return %y : i64\n}"
                .to_owned(),
            &["%x : i64", "of a region of `tfrt.repeat.i32` in line 2"],
        ),
        (
            "func.func @f(%n: i32, %x: i64) -> i64 {\n  %y = tfrt.repeat.i32 %n, %x$0 : i64 {\n    \
             tfrt.return %x : i64\n  }\n  tfrt.return %y : i64\n}"
                .to_owned(),
            &["of function `@f`", "Within the region"],
        ),
        (
            "%x = tfrt.constant.i32 oops\n%y = tfrt.add.i32 %x$0, %x".to_owned(),
            &["%x : ?", "can't be read"],
        ),
        (
            "%x = tfrt.constant.i32 1\n%y = tfrt.nothing %x$0".to_owned(),
            &["%x : i32", "Result of `tfrt.constant.i32` in line 1"],
        ),
        (
            "func.func @f(%x: i32 -> i32 {\n  tfrt.return %x$0 : i32\n}".to_owned(),
            &["Defined in line 1 by text that can't be read"],
        ),
        // Operations: from the table, here, and from the kernels.
        (
            "%x = \"t.i\"() : () -> i32\n%y = tfrt.add$0.i32 %x, %x".to_owned(),
            &["tfrt.add.i32 : (i32, i32) -> i32\n", "The sum.", "- Operands: `lhs`"],
        ),
        (
            "%x = \"t.i\"() : () -> i64\n%y = \"tfrt.minus.i64$0\"(%x, %x) : (i64, i64) -> i64"
                .to_owned(),
            &["tfrt.minus.i64", "The difference", "(i64, i64) -> i64"],
        ),
        (
            "tfrt.add$0.i32 nonsense".to_owned(),
            &["The sum."],
        ),
        // Rows of the table of operations.
        (
            "%x = \"t.i\"() : () -> tensor<2xf32>\n\
             %y = \"graph.soft$0max\"(%x) : (tensor<2xf32>) -> tensor<2xf32>"
                .to_owned(),
            &[
                "graph.softmax : (tensor<2xf32>) -> tensor<2xf32>\n",
                "exp(x), divided by its sum along `axis`",
                "- Operands: `x` (`tensor of T`)",
                "- `axis` (`integer`, `-1` if absent)",
                "- Results: `y` (`tensor of T`)",
            ],
        ),
        (
            "\"onnx.LogSoftmax$0\"() {axis = 0} : () -> ()".to_owned(),
            &["`graph.softmax`", "- `axis` (`integer`, `-1` if absent)"],
        ),
        ("func$0.func @f()".to_owned(), &["func.func", "function"]),
        ("call$0 @f() : () -> ()".to_owned(), &["func.call"]),
        (
            "\"t.unknown$0\"() : () -> ()".to_owned(),
            &["t.unknown", "no kernel"],
        ),
        // Symbols.
        (
            format!(
                "{function}\n  %y = tfrt.call @f$0(%x, %ch) : (i32, !tfrt.chain) -> i32\n  \
                 tfrt.return %y : i32\n}}"
            ),
            &["func.func @f(%x: i32, %ch: !tfrt.chain) -> i32", "1 time"],
        ),
        (
            "func.func private @n$0(i32) -> (i32, i64) attributes {tfrt.native}".to_owned(),
            &["func.func private @n(i32) -> (i32, i64) {tfrt.native}"],
        ),
        // Aliases, blocks, types.
        (
            "!t = i32\n!u = tuple<!t, f32>\nfunc.func private @f(!u$0)".to_owned(),
            &["!u = tuple<i32, f32>", "a type"],
        ),
        (
            "#a = [1, 2]\n\"t.a\"() {a = #a$0} : () -> ()".to_owned(),
            &["#a = [1, 2]", "an attribute"],
        ),
        (
            "\"t.a\"() : () -> () loc(#l$0)\n#l = loc(\"x\":1:2)".to_owned(),
            &["#l = loc(\"x\":1:2)", "a location"],
        ),
        (
            "\"t.r\"() ({\n  \"t.br\"()[^b$0] : () -> ()\n^b(%v: i32):\n  \"t.e\"() : () -> ()\n}) \
             : () -> ()"
                .to_owned(),
            &["^b(%v: i32):", "1 operation", "1 time"],
        ),
        ("func.func private @f(i32$0)".to_owned(), &["Integer of 32 bits"]),
        (
            "func.func private @f(!tfrt$0.chain)".to_owned(),
            &["!tfrt.chain", "orders"],
        ),
        (
            "func.func private @f(tensor$0<2x?xf32>)".to_owned(),
            &["tensor<2x?xf32>", "2 dimensions"],
        ),
        // Nothing.
        ("func.func private @f(i32)$0 // i32".to_owned(), &[]),
        ("// tfrt.add$0.i32".to_owned(), &[]),
        ("$0".to_owned(), &[]),
        ("%x = 1$07".to_owned(), &[]),
    ];
    let mut client = Client::new(Encoding::Utf16);
    for (marked, expected) in cases {
        let marked = Marked::new(marked);
        client.set_text(&marked.text);
        let params = client.place(&marked.text, marked.cursor);
        let found = client.ask("textDocument/hover", params);
        let told = found["contents"]["value"].as_str().unwrap_or_default();
        assert_eq!(
            told.is_empty(),
            expected.is_empty(),
            "{}\n{told}",
            marked.text
        );
        for part in *expected {
            assert!(
                told.contains(part),
                "{part:?} is not in:\n{told}\n\n{}",
                marked.text
            );
        }
    }
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn outline_has_functions_in_modules() {
    let mut client = Client::new(Encoding::Utf16);
    client.set_text(
        "module {\n  func.func private @a(i32)\n  module @m {\n    func.func @b() {\n      \
         tfrt.return\n    }\n  }\n}\nfunc.func @c() {\n  oops\n}",
    );
    let id = json!({"textDocument": {"uri": URI}});
    let found = client.ask("textDocument/documentSymbol", id);
    fn names(list: &Value) -> String {
        let list = list.as_array().map_or(&[][..], Vec::as_slice);
        let names = list.iter().map(|symbol| {
            let name = symbol["name"].as_str().expect("it has a name");
            match &symbol["children"] {
                Value::Null => name.to_owned(),
                children => format!("{name}({})", names(children)),
            }
        });
        names.collect::<Vec<_>>().join(" ")
    }
    assert_eq!(names(&found), "builtin.module(@a @m(@b)) @c");
    assert_eq!(found[1]["detail"], "func.func @c()");
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn completion_offers_what_fits() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        (
            "%x = tfrt.add$0",
            &["tfrt.add.i32", "tfrt.add.f64"],
            &["tfrt.mul.i32"],
        ),
        ("  tfrt.re$0", &["tfrt.return", "tfrt.repeat.i32"], &[]),
        (
            "%x = \"tfrt.min$0",
            &["\"tfrt.minus.i32\""],
            &["tfrt.minus.i32"],
        ),
        (
            "%x = \"graph.so$0",
            &["\"graph.softmax\"", "\"graph.softplus\""],
            &["\"onnx.Softmax\""],
        ),
        ("%x = graph.softm$0", &["graph.softmax"], &[]),
        (
            "func.func @f(%xa: i32, %xb: i32) {\n  %xc = tfrt.add.i32 %x$0",
            &["%xa", "%xb"],
            &["%xc"],
        ),
        (
            "func.func @f(%xa: i32) {\n  tfrt.return\n}\nfunc.func @g(%xb: i32) {\n  tfrt.print.i32 %$0",
            &["%xb"],
            &["%xa"],
        ),
        (
            "func.func @one()\nfunc.func @two()\ntfrt.call @$0",
            &["@one", "@two"],
            &[],
        ),
        (
            "!mine = i32\nfunc.func @f(%x: !$0",
            &["!mine", "!tfrt.chain"],
            &[],
        ),
        ("\"t.r\"() ({\n^one:\n  \"t.br\"()[^$0", &["^one"], &[]),
        ("// tfrt.add$0", &[], &["tfrt.add.i32"]),
    ];
    let mut client = Client::new(Encoding::Utf16);
    for (marked, expected, unexpected) in cases {
        let marked = Marked::new(marked);
        client.set_text(&marked.text);
        let params = client.place(&marked.text, marked.cursor);
        let found = client.ask("textDocument/completion", params);
        let items = found.as_array().expect("it is a list");
        let labels: Vec<&str> = items
            .iter()
            .filter_map(|item| item["label"].as_str())
            .collect();
        for label in *expected {
            assert!(
                labels.contains(label),
                "{label} is not in {labels:?}\n{}",
                marked.text
            );
        }
        for label in *unexpected {
            assert!(
                !labels.contains(label),
                "{label} is in {labels:?}\n{}",
                marked.text
            );
        }
    }
    assert_eq!(client.shut_down(), 0);
}

#[test]
fn renaming_keeps_the_program() {
    let new_texts = [
        (
            "%x$0 = tfrt.constant.i32 1\n%y = tfrt.add.i32 %x, %x",
            "%new",
            "%new = tfrt.constant.i32 1\n%y = tfrt.add.i32 %new, %new",
        ),
        (
            "%x$0 = tfrt.constant.i32 1",
            "new",
            "%new = tfrt.constant.i32 1",
        ),
        (
            "%p:2 = \"t.two\"() : () -> (i32, i32)\n\"t.u\"(%p#0, %p$0#1) : (i32, i32) -> ()",
            "%q",
            "%q:2 = \"t.two\"() : () -> (i32, i32)\n\"t.u\"(%q#0, %q#1) : (i32, i32) -> ()",
        ),
        (
            "func.func @f(%n: i32, %x: i32) -> i32 {\n  \
             %y = tfrt.repeat.i32 %n, %x : i32 {\n    tfrt.return %x$0 : i32\n  }\n  \
             tfrt.return %y : i32\n}",
            "%z",
            "func.func @f(%n: i32, %z: i32) -> i32 {\n  \
             %y = tfrt.repeat.i32 %n, %z : i32 {\n    tfrt.return %z : i32\n  }\n  \
             tfrt.return %y : i32\n}",
        ),
        (
            "func.func @f$0()\n\"t.a\"() {f = @f} : () -> ()",
            "@g",
            "func.func @g()\n\"t.a\"() {f = @g} : () -> ()",
        ),
        (
            "!t$0 = i32\nfunc.func private @f(!t)",
            "!u",
            "!u = i32\nfunc.func private @f(!u)",
        ),
    ];
    let refusals = [
        (
            "%x$0 = tfrt.constant.i32 1\n%y = tfrt.add.i32 %x, %x",
            "%y",
            "is in use",
        ),
        ("func.func @f$0()\nfunc.func @g()", "@g", "is in use"),
        (
            "func.func private @f$0() attributes {tfrt.native}",
            "@g",
            "native",
        ),
        (
            "\"func.func\"() ({}) {function_type = () -> (), sym_name = \"f\"} : () -> ()\n\
             \"t.a\"() {f = @f$0} : () -> ()",
            "@g",
            "not defined in a form",
        ),
        ("%x$0 = tfrt.constant.i32 1", "%a b", "is not a name"),
        ("%x$0 = tfrt.constant.i32 1", "", "is not a name"),
        ("%x$0 = tfrt.constant.i32 1", "@f", "is not a name"),
        ("%x$0 = tfrt.constant.i32 1\noops", "%y", "no errors"),
        ("%x = $0tfrt.constant.i32 1", "%y", "no name here"),
    ];
    let mut client = Client::new(Encoding::Utf8);
    let renamed = new_texts.map(|(marked, name, new)| (marked, name, Ok(new)));
    let refused = refusals.map(|(marked, name, why)| (marked, name, Err(why)));
    for (marked, name, expected) in renamed.into_iter().chain(refused) {
        let marked = Marked::new(marked);
        client.set_text(&marked.text);
        let mut params = client.place(&marked.text, marked.cursor);
        params["newName"] = name.into();
        match expected {
            Ok(expected) => {
                let prepared = client.ask(
                    "textDocument/prepareRename",
                    client.place(&marked.text, marked.cursor),
                );
                assert!(prepared["start"].is_object(), "{prepared}");
                let edit = client.ask("textDocument/rename", params);
                let edits = edit["changes"][URI].as_array().expect("there are edits");
                assert_eq!(apply(&marked.text, edits), expected);
            }
            Err(expected) => {
                let (_, message) = client.ask_in_vain("textDocument/rename", params);
                assert!(message.contains(expected), "{message}");
            }
        }
    }
    assert_eq!(client.shut_down(), 0);
}

/// Applies edits of a text of single-byte characters.
fn apply(text: &str, edits: &[Value]) -> String {
    let offset = |position: &Value| {
        let line = position["line"].as_u64().expect("it is a number") as usize;
        let column = position["character"].as_u64().expect("it is a number") as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        start + column
    };
    let mut edits: Vec<_> = edits
        .iter()
        .map(|edit| {
            let range = &edit["range"];
            (
                offset(&range["start"])..offset(&range["end"]),
                &edit["newText"],
            )
        })
        .collect();
    edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut text = text.to_owned();
    for (range, new) in edits {
        text.replace_range(range, new.as_str().expect("it is a text"));
    }
    text
}
