//! Tests of diagnostics on programs that are wrong: every error, and its place.

use expect_test::{Expect, expect};
use tfrt_ir::{Source, parse, verify};

/// Lists the diagnostics of a program, each with its notes, without the lines
/// of source.
fn diagnostics(text: &str) -> String {
    let source = Source::new("t", text);
    let errors = match parse(&source) {
        Err(errors) => errors,
        Ok(module) => verify(&module).expect_err("the program is accepted"),
    };
    let mut lines = String::new();
    for error in &errors {
        let place = |place: Option<(u32, u32)>| {
            place.map_or("-".to_owned(), |(line, column)| format!("{line}:{column}"))
        };
        lines += &format!("{} {}\n", place(error.line_column()), error.message());
        for note in error.notes() {
            lines += &format!("  {} note: {}\n", place(note.line_column()), note.message());
        }
        for help in error.help_texts() {
            lines += &format!("  help: {help}\n");
        }
    }
    lines
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&diagnostics(text));
}

fn check_all(texts: &[&str], expected: Expect) {
    let all: Vec<String> = texts.iter().map(|text| diagnostics(text)).collect();
    expected.assert_eq(&all.concat());
}

#[test]
fn errors_show_the_line() {
    let text =
        "func.func @f() -> i32 {\n  %x = tfrt.constant.i32 oops\n  tfrt.return %x : i32\n}\n";
    let errors = parse(&Source::new("dir/a.mlir", text)).unwrap_err();
    expect![[r#"
        dir/a.mlir:2:26: error: expected constant of type 'i32', found 'oops' [TF0111]
          |
        2 |   %x = tfrt.constant.i32 oops
          |                          ^^^^
        help: it is written: %constant = tfrt.constant.i32 $value
    "#]]
    .assert_eq(&errors.render(false));
    assert!(errors.render(true).contains("\u{1b}["));
}

#[test]
fn several_errors_are_found_at_once() {
    check(
        "
func.func @f() -> i32 {
  %a = tfrt.constant.i32 oops
  %b = tfrt.adds.i32 %a, %a
  %c = \"t.op\"(%a, %b) {x = [1, } : (i32, i32) -> i32
  tfrt.print.i32 %c %d
  tfrt.if %undefined, %a : (i32) -> () {
    %bad =
    tfrt.return
  }
  tfrt.return %c : i32
}
func.func @g( {
  tfrt.return
}
func.func @h() { tfrt.return %nowhere : i32 }
",
        expect![[r#"
            3:26 expected constant of type 'i32', found 'oops'
              help: it is written: %constant = tfrt.constant.i32 $value
            4:8 custom op 'tfrt.adds.i32' is unknown
              help: there is an operation 'tfrt.add.i32'
            5:32 expected attribute value, found '}'
            6:21 expected 2 operands, found 1
              help: operands have commas between them
              help: it is written: %done = tfrt.print.i32 %value, %chain
            7:11 use of undeclared SSA value name
              help: nothing in this region defines %undefined
            8:5 cannot name an operation with no results
              help: it begins with its name, without '='
            13:15 expected type, found '{'
            16:30 use of undeclared SSA value name
              help: nothing in this region defines %nowhere
        "#]],
    );
}

#[test]
fn values() {
    check_all(
        &[
            "%a = \"a\"() : () -> i32\n\"b\"(%a) : (f32) -> ()",
            "\"b\"(%a) : (f32) -> ()\n%a = \"a\"() : () -> i32",
            "%a = \"a\"() : () -> i32\n%a = \"a\"() : () -> i32",
            "%a:2 = \"a\"() : () -> (i32, i32)\n\"b\"(%a#2) : (i32) -> ()",
            "%a = \"a\"() : () -> ()",
            "%a:3 = \"a\"() : () -> (i32, i32)",
            "%a:0 = \"a\"() : () -> ()",
            "\"b\"(%a, %b) : (i32) -> ()",
            "\"b\"(%a#99999999999) : (i32) -> ()",
            "func.func @f(%a: i32, %a: i32) { tfrt.return }",
            "func.func @f(%a: i32) { %a = tfrt.constant.i32 1\n tfrt.return }",
            "func.func @f(%a: i32) { \"t\"() ({ \"u\"(%a) : (f32) -> () }) : () -> ()\n tfrt.return }",
            "%a = \"a\"() : () -> i32\nfunc.func @f() { tfrt.return %a : i32 }",
        ],
        expect![[r#"
            2:5 use of value '%a' expects different type than prior uses: 'f32' vs 'i32'
              1:1 note: prior use here, which defines it with the type 'i32'
            2:1 definition of SSA value '%a#0' has type 'i32', but a use expects 'f32'
              1:5 note: previously used here
            2:1 redefinition of SSA value '%a'
              1:1 note: previously defined here
            2:5 reference to invalid result number
              1:1 note: '%a' stands for 2 results
              help: results are numbered from 0
            1:1 cannot name an operation with no results
              help: it begins with its name, without '='
            1:1 operation defines 2 results but was provided 3 to bind
              help: a name for each, with commas between, or one for all: '%name:2 = ...'
            1:4 expected number of results, at least 1, found '0'
            1:15 expected 2 operand types but had 1
            1:7 invalid SSA value result number
            1:23 redefinition of SSA value '%a'
              1:14 note: previously defined here
            1:25 redefinition of SSA value '%a'
              1:14 note: previously defined here
            1:38 use of value '%a' expects different type than prior uses: 'f32' vs 'i32'
              1:14 note: prior use here, which defines it with the type 'i32'
            2:30 use of undeclared SSA value name
              1:1 note: it is defined outside
              help: nothing in this region defines %a
              help: regions see their arguments only; pass it in as an operand
        "#]],
    );
}

#[test]
fn literals() {
    check_all(
        &[
            "\"a\"() {v = 256 : i8} : () -> ()",
            "\"a\"() {v = -129 : i8} : () -> ()",
            "\"a\"() {v = 128 : si8} : () -> ()",
            "\"a\"() {v = -1 : ui8} : () -> ()",
            "\"a\"() {v = 1 : f32} : () -> ()",
            "\"a\"() {v = 1.0 : i32} : () -> ()",
            "\"a\"() {v = 0x1FFFFFFFF : f32} : () -> ()",
            "\"a\"() {v = -0x1 : f32} : () -> ()",
            "\"a\"() {v = 1.0e999} : () -> ()",
            "\"a\"() {v = 1.0 : f80} : () -> ()",
            "\"a\"() {v = 1 : none} : () -> ()",
            "\"a\"() {v = 1 : i16777216} : () -> ()",
            "\"a\"() {v = \"open} : () -> ()",
            "\"a\"() {v = \"\\q\"} : () -> ()",
            "\"a\"() {v = @} : () -> ()",
            "\"a\"() {v = 1, v = 2} : () -> ()",
            "\"a\"() {v = #nothing} : () -> ()",
            "\"a\"() {v = !nothing} : () -> ()",
            "\"a\"() {v = #corert.shape<2xtwo>} : () -> ()",
            "\"a\"() {v = #d.a<(>} : () -> ()",
            "\"a\"() {v = array<i7: 1>} : () -> ()",
            "\"a\"() {v = dense<[[1], [2, 3]]> : tensor<2x2xi32>} : () -> ()",
            "\"a\"() {v = dense<[1, 2]> : tensor<3xi32>} : () -> ()",
            "\"a\"() {v = dense<> : tensor<3xi32>} : () -> ()",
            "\"a\"() {v = dense<1> : tensor<?xi32>} : () -> ()",
            "\"a\"() {v = dense<1> : i32} : () -> ()",
            "\"a\"() {v = dense<1.5> : tensor<2xi32>} : () -> ()",
            "\"a\"() {v = dense<\"0x00\"> : tensor<3xi32>} : () -> ()",
            "\"a\"() {v = dense<\"zz\"> : tensor<3xi32>} : () -> ()",
            "\"a\"() {v = dense<true> : tensor<3xi32>} : () -> ()",
            "\"a\"() {v = dense<1> : tensor<9223372036854775807x3xi32>} : () -> ()",
            "\"a\"() {v = tensor<99999999999999999999xf32>} : () -> ()",
            "\"a\"() {v = vector<0xf32>} : () -> ()",
            "\"a\"() {v = complex<index>} : () -> ()",
            "tfrt.constant.i1 2",
            "tfrt.constant.ui32 -1",
            "tfrt.constant.f32 1",
            "tfrt.constant.i32 \"s\"",
        ],
        expect![[r#"
            1:12 integer constant out of range for type 'i8'
              help: 'i8' holds -128 to 255
            1:12 integer constant out of range for type 'i8'
              help: 'i8' holds -128 to 255
            1:12 integer constant out of range for type 'si8'
              help: 'si8' holds -128 to 127
            1:12 negative integer literal not valid for unsigned integer type
            1:12 unexpected decimal integer literal for a floating point value
              help: add a trailing dot to make the literal a float
            1:12 floating point value not valid for type 'i32'
            1:12 hexadecimal float constant out of range for type
            1:12 hexadecimal float literal should not have a leading minus
            1:12 floating point value too large
            1:12 constants of type 'f80' are not supported
            1:12 integer literal not valid for type 'none'
            1:16 integer bitwidth is limited to 16777215 bits
            1:12 expected '"' in string literal
            1:12 unknown escape in string literal
              help: a backslash is written '\\', any other byte as two hexadecimal digits: '\0A'
            1:12 expected a name behind the sigil
              help: any text may be a name in quotes: @"1st"
            1:15 duplicate key 'v' found in dictionary attribute
              1:8 note: it is there first
            1:12 undefined symbol alias id 'nothing'
              help: an alias is defined before its use: '#name = attribute'
            1:12 undefined symbol alias id 'nothing'
              help: types of dialects are written '!dialect.type'
            1:12 expected a shape: '*' or sizes with 'x' between, '?' if unknown
            1:18 unbalanced brackets: expected ')'
              1:17 note: to match this
            1:18 expected integer or float type of whole bytes
            1:18 tensor literal is invalid; ranks are not consistent between elements
            1:18 inferred shape of elements literal ([2]) does not match type ([3])
            1:22 parsed zero elements, but type ('tensor<3xi32>') expected at least 1
            1:23 elements literal type must have static shape
            1:23 elements literal must be a ranked tensor or vector type
            1:18 floating point value not valid for type 'i32'
            1:18 elements hex data size is invalid for provided type: 'tensor<3xi32>'
            1:18 expected string containing hex digits starting with `0x`
            1:18 expected element of type 'i32', found i1
            1:23 elements literal type must have static shape
              - note: its elements are more than can be counted
            1:19 invalid dimension: it must fit in 63 bits
            1:19 vector types must have positive constant sizes
            1:20 invalid element type for complex
            1:18 integer constant out of range for type 'i1'
              help: 'i1' holds -1 to 1
            1:20 negative integer literal not valid for unsigned integer type
            1:19 unexpected decimal integer literal for a floating point value
              help: add a trailing dot to make the literal a float
            1:19 expected constant of type 'i32', found '"s"'
              help: it is written: %constant = tfrt.constant.i32 $value
        "#]],
    );
}

#[test]
fn forms() {
    check_all(
        &[
            "foo.bar %a",
            "tfrt.minus.i32 %a, %b",
            "tfrt.cal @f() : () -> ()",
            "}",
            "\"\"() : () -> ()",
            "\"a\" : () -> ()",
            "\"a\"() : i32",
            "\"a\"() ({ : () -> ()",
            "func.func @f() {",
            "func.func @f() {}",
            "func.func @f(i32) { tfrt.return }",
            "func.func @f(%a: i32, i32) { tfrt.return }",
            "tfrt.add.i32 %a",
            "tfrt.add.i32 %a, %b, %c",
            "tfrt.if : () -> () { tfrt.return }",
            "tfrt.repeat.i32 { tfrt.return }",
            "func.func @f(%c: i1) { tfrt.if %c : () -> i32 { tfrt.return }\n tfrt.return }",
            "func.func @f(%c: i1) { tfrt.if %c, %c, %c : (i1, i1) -> () { tfrt.return }\n tfrt.return }",
            "func.func @f(%c: i32) { tfrt.repeat.i32 %c, %c { tfrt.return }\n tfrt.return }",
            "tfrt_test.benchmark \"b\"() { tfrt.return }",
            "#a.b = i32",
            "#a = 1\n#a = 2",
            "\"a\"()[^bb1] : () -> ()",
            "\"a\"() ({ \"b\"()[^bb1] : () -> () }) : () -> ()",
            "\"a\"() ({ ^a:\n \"b\"() : () -> ()\n^a:\n \"b\"() : () -> () }) : () -> ()",
            "\"a\"() : () -> () loc(#a)",
            "\"a\"() : () -> () loc(#a)\n#a = loc(callsite(#b at #b))\n#b = loc(\"x\"(#a))",
            "\"a\"() : () -> () loc(\"x\":1)",
            "\"a\"() : () -> () \u{0} \"b\"() : () -> ()",
            "\"a\"() / : () -> ()",
        ],
        expect![[r#"
            1:1 custom op 'foo.bar' is unknown
              help: a kernel of your own is written in generic form: "foo.bar"(...) : (...) -> ...
            1:1 custom op 'tfrt.minus.i32' has no custom form
              help: write it in generic form: %difference = "tfrt.minus.i32"(%lhs, %rhs) : (i32, i32) -> i32
            1:1 custom op 'tfrt.cal' is unknown
              help: there is an operation 'tfrt.call'
            1:1 expected operation name in quotes or an operation, found '}'
              help: nothing is open here that this could close
            1:1 expected operation name in quotes
            1:5 expected '(', found ':'
            1:9 expected function type, found 'i32'
              help: it is written (types of the operands) -> (types of the results)
            1:10 expected operation name in quotes or an operation, found ':'
            1:19 expected '}' to end a region, found the end of the text
              1:8 note: the region begins here
            1:16 expected '}' to end a region, found the end of the text
              1:16 note: the region begins here
            1:16 expected non-empty function body
              help: a body ends in tfrt.return
            1:19 expected no body, as the arguments have no names, found '{'
              help: give each argument a name: %name: type
            1:23 expected argument name, as before, found 'i32'
            1:16 expected 2 operands, found 1
              help: it is written: %sum = tfrt.add.i32 %lhs, %rhs
            1:22 expected 2 operands, found 3
              help: it is written: %sum = tfrt.add.i32 %lhs, %rhs
            1:9 expected condition, found ':'
              help: it is written: %results... = tfrt.if %condition, %operands... : (types) -> (types) {...} [else {...}]
            1:17 expected trip count, found '{'
              help: it is written: %results... = tfrt.repeat.i32 %trip_count, %loop_operands... [ : types] {...}
            2:2 expected 'else' in 'tfrt.if' with result values
              1:61 note: the text before ends here
              help: it is written: %results... = tfrt.if %condition, %operands... : (types) -> (types) {...} [else {...}]
            1:40 region entry argument '%c' is already in use
              help: operands give their names to the region's arguments; in generic form, arguments have names of their own
            1:48 expected ':' and the types of the operands, found '{'
              help: it is written: %results... = tfrt.repeat.i32 %trip_count, %loop_operands... [ : types] {...}
            1:27 expected name of a setting, found '{'
            1:1 attribute names with a '.' are reserved for dialect-defined names
            2:1 redefinition of alias id '#a'
              1:1 note: first defined here
            1:7 reference to a block outside of any region
            1:16 reference to an undefined block
              help: nothing in this region is labelled ^bb1
            3:1 redefinition of block '^a'
              1:10 note: previously defined here
            1:22 location alias '#a' was never defined
            1:22 location alias '#a' stands for itself
            1:27 expected ':', found ')'
            1:18 unexpected character "\0"
            1:7 expected '//' to start a comment
              help: comments begin with '//'
        "#]],
    );
}

#[test]
fn verifier_checks_structure() {
    check_all(
        &[
            "func.func @f() { %a = tfrt.constant.i32 1 }",
            "func.func @f() { tfrt.return\n tfrt.return }",
            "func.func @f() { ^a: }",
            "func.func @f()",
            "func.func private @f()\nfunc.func private @f()",
            "func.func @f() { %b = tfrt.add.i32 %a, %a\n %a = tfrt.constant.i32 1\n tfrt.return }",
            "\"t\"() ({ %a = \"u\"() : () -> i32\n \"u\"()[^x] : () -> ()\n ^x:\n \"v\"(%a, %b) : (i32, i32) -> ()\n ^y:\n %b = \"u\"() : () -> i32\n \"v\"(%b) : (i32) -> () }) : () -> ()",
            "\"t\"() ({ ^x: \"u\"()[^x] : () -> () }) : () -> ()",
            "\"t\"() ({ \"u\"()[^x] : () -> ()\n \"v\"() : () -> ()\n ^x:\n \"v\"() : () -> () }) : () -> ()",
            "\"func.func\"() ({ }) {sym_name = \"f\"} : () -> ()",
            "\"func.func\"() ({ ^b(%a: i32): tfrt.return }) {sym_name = \"f\", function_type = () -> ()} : () -> ()",
            "\"func.func\"() ({ ^b(%a: i32): tfrt.return }) {sym_name = \"f\", function_type = (f32) -> ()} : () -> ()",
            "\"tfrt.add.i32\"() : () -> i32",
            "%a = \"a\"() : () -> f32\n\"tfrt.add.i32\"(%a, %a) : (f32, f32) -> f32",
            "\"tfrt.new.chain\"() : () -> ()",
            "\"tfrt.constant.i32\"() : () -> i32",
            "\"tfrt.constant.i32\"() {value = \"s\"} : () -> i32",
            "\"tfrt.case\"() : () -> ()",
            "\"tfrt.if\"() : () -> ()",
        ],
        expect![[r#"
            1:23 block with no terminator, has %0 = tfrt.constant.i32 1
              help: a function ends in tfrt.return
            1:18 'tfrt.return' op must be the last operation in the parent block
            1:18 empty block: expect at least a terminator
            1:1 'func.func' op symbol declaration cannot have public visibility
              help: give the function a body; if it is native, write 'private' before the name, and 'attributes {tfrt.native}' at the end
            2:19 redefinition of symbol named 'f'
              1:19 note: see existing symbol definition here
            1:36 operand #0 does not dominate this use
              2:7 note: operand defined here (op in the same block)
            4:10 operand #1 does not dominate this use
              6:7 note: operand defined here
            1:14 'u' op entry block of region may not have predecessors
            1:10 operation with block successors must terminate its parent block
            1:1 'func.func' op requires attribute 'function_type'
              help: it is func.func() {sym_name: string, function_type: function type, sym_visibility?: string, arg_attrs?: array of dictionaries, res_attrs?: array of dictionaries} ({...}) -> ()
            1:1 'func.func' op entry block must have 0 arguments to match function signature
            1:1 'func.func' op type of entry block argument #0('i32') must match the type of the corresponding argument in function signature('f32')
            1:1 'tfrt.add.i32' op expected 2 operands, but found 0
              help: it is tfrt.add.i32(lhs: i32, rhs: i32) -> (sum: i32)
            2:1 'tfrt.add.i32' op result #0 must be 32-bit signless integer, but got 'f32'
            2:16 'tfrt.add.i32' op operand #0 must be 32-bit signless integer, but got 'f32'
              1:6 note: the operand is defined here
              help: it is tfrt.add.i32(lhs: i32, rhs: i32) -> (sum: i32)
            1:1 'tfrt.new.chain' op requires one result
              help: it is tfrt.new.chain() -> (chain: !tfrt.chain)
            1:1 'tfrt.constant.i32' op requires attribute 'value'
              help: it is tfrt.constant.i32() {value: i32} -> (constant: i32)
            1:24 'tfrt.constant.i32' op attribute 'value' failed to satisfy constraint: 32-bit signless integer attribute
              - note: the attribute is "s"
              help: it is tfrt.constant.i32() {value: i32} -> (constant: i32)
            1:1 'tfrt.case' op expected 1 or more operands, but found 0
              help: it is tfrt.case(branch_index: i32, operands: any...) {branches: array of functions} -> (results: any...)
            1:1 'tfrt.case' op requires attribute 'branches'
            1:1 'tfrt.if' op expected 1 or more operands, but found 0
              help: it is tfrt.if(condition: i1, operands: any...) ({...}, {...}) -> (results: any...)
            1:1 'tfrt.if' op expected 2 regions
        "#]],
    );
}

#[test]
fn verifier_checks_returns() {
    check_all(
        &[
            "func.func @f(%x: i32) { tfrt.return %x : i32 }",
            "func.func @f(%x: i32) -> !tfrt.chain { tfrt.return %x : i32 }",
            "func.func @f(%c: i1, %x: i32) { tfrt.if %c, %x : (i32) -> () { tfrt.return %x : i32 }\n tfrt.return }",
            "func.func @f(%x: i32) { tfrt.repeat.i32 %x { tfrt.return %x : i32 }\n tfrt.return }",
            "module @m { func.func @f() -> i32 { return } }",
            "\"t\"() ({ func.return }) : () -> ()",
            "func.func @f(%x: i32) { tfrt_test.benchmark \"b\"() max_count = 1, duration_secs = 1 { tfrt.return }\n tfrt.return }",
            "func.func @f(%x: i32) { tfrt.parallel_for.i32 %x to %x fixed %x { tfrt.return %from : i32 }\n tfrt.return }",
            "func.func @f(%x: i32) { tfrt.parallel_for.i32 %x to %x fixed %x { \"t\"() : () -> () }\n tfrt.return }",
            "func.func @f(%from: i32, %to: i32) { tfrt.parallel_for.i32 %from to %to fixed %to { tfrt.return %from : i32 }\n tfrt.return }",
            "func.func @f(%c: i1) { \"tfrt.if\"(%c) ({ \"t\"() : () -> () }, { ^b(%x: i32): tfrt.return }) : (i1) -> ()\n tfrt.return }",
        ],
        expect![[r#"
            1:25 'tfrt.return' op has 1 operands, but enclosing function returns 0
              1:1 note: the function returns ()
            1:52 type of return operand 0 ('i32') doesn't match function result type ('!tfrt.chain')
              1:1 note: the function returns (!tfrt.chain)
            1:64 'tfrt.return' op operand types don't match 'tfrt.if' result
              1:33 note: it returns (i32), the results are ()
            1:58 use of undeclared SSA value name
              1:14 note: it is defined outside
              help: nothing in this region defines %x
              help: regions see their arguments only; pass it in as an operand
            1:37 'func.return' op has 0 operands, but enclosing function (@f) returns 1
              1:13 note: the function returns (i32)
            1:10 'func.return' op expects parent op 'func.func'
            1:25 'tfrt_test.benchmark' op incorrect number of return values. One return value is expected
            1:53 region entry argument '%x' is already in use
              help: operands give their names to the region's arguments; in generic form, arguments have names of their own
            1:53 region entry argument '%x' is already in use
              help: operands give their names to the region's arguments; in generic form, arguments have names of their own
            1:85 'tfrt.return' op operand types don't match 'tfrt.parallel_for.i32' result
              1:38 note: it returns (i32), the results are (!tfrt.chain)
            1:24 'tfrt.if' op expected tfrt.return in body
              1:41 note: the region ends in 't'
              help: a region ends in tfrt.return, with what it gives to the operation
            1:24 'tfrt.if' op incorrect number of arguments to 'else' block
              - note: the operands are (), the region's arguments are (i32)
        "#]],
    );
}

#[test]
fn verifier_checks_calls() {
    let library = "func.func private @f(i32) -> i32\nfunc.func private @g() -> (i32, i32)\nfunc.func private @p(f32, f32)\nfunc.func private @q(i32, i32) -> i32\n";
    let texts = [
        "tfrt.call @missing() : () -> ()",
        "\"tfrt.call\"() : () -> ()",
        "\"tfrt.call\"() {callee = @a::@b} : () -> ()",
        "tfrt.call @f() : () -> i32",
        "tfrt.call @f(%b) : (f32) -> i32",
        "tfrt.call @f(%a) : (i32) -> ()",
        "tfrt.call @f(%a) : (i32) -> f32",
        "tfrt.cond %c @f @g (%b) : (f32) -> (f32)",
        "\"tfrt.cond\"(%c) : (i1) -> ()",
        "tfrt.cond %c @f @missing (%a) : (i32) -> (i32)",
        "tfrt.parallel_call.i32 %a to %a fixed %a @f()",
        "tfrt.parallel_call.i32 %a to %a fixed %a @p()",
        "tfrt.parallel_call.i32 %a to %a fixed %a @q()",
        "tfrt.parallel_call.i32 %a to %a fixed %a @missing()",
        "tfrt_test.sync_benchmark @q(%b : f32) duration_secs = 1, max_count = 1",
        "tfrt_test.sync_benchmark @f(%b : f32) duration_secs = 1, max_count = 1",
        "tfrt_test.test_cost %a {id = 0 : i64, _tfrt_cost = 0 : i64} : i32",
        "tfrt_test.test_cost %a {id = 0 : i64} : i32",
    ];
    let programs: Vec<String> = texts
        .iter()
        .map(|text| {
            format!("{library}func.func @t(%a: i32, %b: f32, %c: i1) {{\n{text}\ntfrt.return }}")
        })
        .collect();
    let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
    check_all(
        &programs,
        expect![[r#"
            6:11 'tfrt.call' op 'missing' does not reference a valid function
            6:1 'tfrt.call' op requires a 'callee' symbol reference attribute
              help: name the function: callee = @name
            6:16 'tfrt.call' op requires a 'callee' symbol reference attribute
              help: name the function: callee = @name
            6:1 'tfrt.call' op incorrect number of operands for callee
              1:1 note: 'f' is (i32) -> i32
            6:1 'tfrt.call' op operand type mismatch
              1:1 note: 'f' is (i32) -> i32
            6:1 'tfrt.call' op incorrect number of results for callee
              1:1 note: 'f' is (i32) -> i32
            6:1 'tfrt.call' op result type mismatch
              1:1 note: 'f' is (i32) -> i32
            6:1 'tfrt.cond' op operand type mismatch for true function
              1:1 note: 'f' is (i32) -> i32
            6:1 'tfrt.cond' op result type mismatch for true function
              1:1 note: 'f' is (i32) -> i32
            6:1 'tfrt.cond' op incorrect number of operands for false function
              2:1 note: 'g' is () -> (i32, i32)
            6:1 'tfrt.cond' op incorrect number of results for false function
              2:1 note: 'g' is () -> (i32, i32)
            6:1 'tfrt.cond' op requires a 'a_true_fn' symbol reference attribute
              help: name the function: a_true_fn = @name
            6:1 'tfrt.cond' op requires a 'a_false_fn' symbol reference attribute
              help: name the function: b_false_fn = @name
            6:17 'tfrt.cond' op 'missing' does not reference a valid function
            6:1 'tfrt.parallel_call.i32' op incorrect number of callee operands
              1:1 note: 'f' is (i32) -> i32
            6:1 'tfrt.parallel_call.i32' op async callee must return a chain
              1:1 note: 'f' is (i32) -> i32
            6:1 'tfrt.parallel_call.i32' op callee must take stard and end indices first
              3:1 note: 'p' is (f32, f32) -> ()
            6:1 'tfrt.parallel_call.i32' op async callee must return a chain
              4:1 note: 'q' is (i32, i32) -> i32
            6:42 'tfrt.parallel_call.i32' op 'missing' does not reference a valid function
            6:1 'tfrt_test.sync_benchmark' op incorrect number of operands for callee
              4:1 note: 'q' is (i32, i32) -> i32
            6:1 'tfrt_test.sync_benchmark' op Target benchmark function must return zero value.
              4:1 note: 'q' is (i32, i32) -> i32
            6:1 'tfrt_test.sync_benchmark' op operand type mismatch
              1:1 note: 'f' is (i32) -> i32
            6:1 'tfrt_test.sync_benchmark' op Target benchmark function must return zero value.
              1:1 note: 'f' is (i32) -> i32
            6:1 'tfrt_test.test_cost' op cost value must be larger than 0
            6:1 'tfrt_test.test_cost' op cost attribute not found
        "#]],
    );
}

#[test]
fn verifier_checks_symbols_and_their_attributes() {
    check_all(
        &[
            "module attributes {plain} {}",
            "func.func private @f(i32 {plain}) -> (f32 {a.b})",
            "func.func private @f(i32) -> (f32 {a.b, plain})",
            "\"func.func\"() ({ }) {sym_name = \"f\", sym_visibility = \"private\", function_type = () -> (), arg_attrs = [{a.b}]} : () -> ()",
            "\"func.func\"() ({ }) {sym_name = \"f\", sym_visibility = \"private\", function_type = () -> (), res_attrs = 1} : () -> ()",
            "\"func.func\"() ({ }) {sym_name = \"f\", sym_visibility = \"secret\", function_type = () -> ()} : () -> ()",
            "func.func @f() { func.func @g() { tfrt.return }\n tfrt.return }",
        ],
        expect![[r#"
            1:1 'builtin.module' op can only contain attributes with dialect-prefixed names, found: 'plain'
              help: put a dialect before the name, such as 'my.plain'
            1:1 'func.func' op arguments may only have dialect attributes
              help: put a dialect before the name, such as 'my.plain'
            1:1 'func.func' op results may only have dialect attributes
              help: put a dialect before the name, such as 'my.plain'
            1:1 'func.func' op expects argument attribute array to have the same number of elements as the number of function arguments, got 1, but expected 0
            1:92 'func.func' op attribute 'res_attrs' failed to satisfy constraint: Array of dictionary attributes
              - note: the attribute is 1 : i64
              help: it is func.func() {sym_name: string, function_type: function type, sym_visibility?: string, arg_attrs?: array of dictionaries, res_attrs?: array of dictionaries} ({...}) -> ()
            1:1 'func.func' op visibility expected to be one of ["public", "private", "nested"], but got "secret"
            1:18 'func.func' op symbol's parent must have the SymbolTable trait
              help: functions stand next to each other in the module, not within each other
        "#]],
    );
}

#[test]
fn shaped_types_and_resources_are_those_of_mlir() {
    check_all(
        &[
            "\"a\"() {t = memref<2x!my.type>} : () -> ()",
            "\"a\"() {t = tensor<2xmemref<f32>>} : () -> ()",
            "\"a\"() {t = vector<2xcomplex<f32>>} : () -> ()",
            "\"a\"() {t = dense_resource<\"a b\"> : tensor<2xi32>} : () -> ()",
        ],
        expect![[r#"
            1:21 invalid element type '!my.type'
            1:21 invalid element type 'memref<f32>'
            1:21 invalid element type 'complex<f32>'
            1:12 expected identifier key for 'resource' entry
        "#]],
    );
}

#[test]
fn verifier_checks_what_ops_are_executed_with() {
    let generic = |op_attrs: &str, operands: &str, results: &str| {
        format!(
            "func.func @f(%h: !corert.ophandler, %x: i32) {{\n\
             \"corert.executeop\"({operands}) {{op_attrs = {op_attrs}, op_func_attrs = [], op_name = \"op\"}} : {results}\n\
             tfrt.return\n}}"
        )
    };
    let handler = "(!corert.ophandler)";
    check_all(
        &[
            "func.func @f(%h: !corert.ophandler, %x: i32) {\n  corert.executeop(%h) \"op\"(%x)\n  tfrt.return\n}",
            "func.func @f(%h: !corert.ophandler) {\n  corert.executeop(%h) \"op\"() : 65537\n  tfrt.return\n}",
            "func.func @f(%h: !corert.ophandler) {\n  corert.executeop(%h) \"op\"() : one\n  tfrt.return\n}",
            "func.func @f(%h: !corert.ophandler) {\n  corert.executeop(%h) \"op\"() {a, a}\n  tfrt.return\n}",
            "func.func @f(%h: !corert.ophandler) {\n  corert.executeop.seq(%h) \"op\"()\n  tfrt.return\n}",
            &generic("[1 : i32]", "%h", &format!("{handler} -> ()")),
            &generic("[[1 : i32, 2 : i32]]", "%h", &format!("{handler} -> ()")),
            &generic("[[\"key\"]]", "%h", &format!("{handler} -> ()")),
            &generic("unit", "%h", &format!("{handler} -> ()")),
            &generic("[]", "%h, %x", "(!corert.ophandler, i32) -> ()"),
            &generic("[]", "%h", &format!("{handler} -> i32")),
        ],
        expect![[r#"
            2:29 use of value '%x' expects different type than prior uses: '!corert.tensorhandle' vs 'i32'
              1:37 note: prior use here, which defines it with the type 'i32'
            2:33 expected number of results, at most 65536, found '65537'
            2:33 expected number of results, at most 65536, found 'one'
              help: a result has its type from the operation: '%name = ...', without ':'
            2:35 duplicate key 'a' found in dictionary attribute
              2:32 note: it is there first
            2:26 expected ',', found ')'
              help: it is written: %done, %results... = corert.executeop.seq(%handler, %chain) $op_name(%operands...) [{$op_attrs...}] [{$op_func_attrs...}] [: count]
            2:25 'corert.executeop' op each op_attr should be a key-value pair, where the key is a string
              - note: an element is 1 : i32
            2:25 'corert.executeop' op each op_attr should be a key-value pair, where the key is a string
              - note: an element is [1 : i32, 2 : i32]
            2:25 'corert.executeop' op each op_attr should be a key-value pair, where the key is a string
              - note: an element is ["key"]
            2:25 'corert.executeop' op attribute 'op_attrs' failed to satisfy constraint: array attribute
              - note: the attribute is unit
              help: it is corert.executeop(handler: !corert.ophandler, operands: !corert.tensorhandle...) {op_func_attrs: array of pairs, op_attrs: array of pairs, op_name: string} -> (results: !corert.tensorhandle...)
            2:24 'corert.executeop' op operand #1 must be variadic of !corert.tensorhandle type, but got 'i32'
              help: it is corert.executeop(handler: !corert.ophandler, operands: !corert.tensorhandle...) {op_func_attrs: array of pairs, op_attrs: array of pairs, op_name: string} -> (results: !corert.tensorhandle...)
            2:1 'corert.executeop' op result #0 must be variadic of !corert.tensorhandle type, but got 'i32'
              help: it is corert.executeop(handler: !corert.ophandler, operands: !corert.tensorhandle...) {op_func_attrs: array of pairs, op_attrs: array of pairs, op_name: string} -> (results: !corert.tensorhandle...)
        "#]],
    );
}

#[test]
fn verifier_checks_functions_that_tensors_choose() {
    let functions = "func.func @one(%c: !tfrt.chain, %x: i32) -> (!tfrt.chain, i32) {\n\
                     tfrt.return %c, %x : !tfrt.chain, i32\n}\n\
                     func.func @two(%c: !tfrt.chain, %x: i64) -> (!tfrt.chain) {\n\
                     tfrt.return %c : !tfrt.chain\n}\n";
    let with = |op: &str| {
        format!(
            "{functions}func.func @f(%c: !tfrt.chain, %p: !corert.tensorhandle, %x: i32) {{\n{op}\ntfrt.return\n}}"
        )
    };
    check_all(
        &[
            &with("corert.cond %p @one @none (%c, %x) : (i32) -> (i32)"),
            &with("corert.cond %p @one @two (%c, %x) : (i32) -> (i32)"),
            &with("corert.while @two @one (%c, %x) : (i32) -> (i32)"),
            &with(
                "\"corert.while\"(%c, %x) {a_cond_fn = @one} : (!tfrt.chain, i32) -> (!tfrt.chain, i32)",
            ),
            &with(
                "\"corert.while\"(%x) {a_cond_fn = @one, b_body_fn = @one} : (i32) -> (!tfrt.chain, i32)",
            ),
            &with(
                "\"corert.while\"(%c, %x) {a_cond_fn = @one, b_body_fn = @one} : (!tfrt.chain, i32) -> ()",
            ),
        ],
        expect![[r#"
            8:21 'corert.cond' op 'none' does not reference a valid function
              help: there is a function 'one'
            8:1 'corert.cond' op 'two' has mismatching operand types
              4:1 note: 'two' is (!tfrt.chain, i64) -> !tfrt.chain
            8:1 'corert.cond' op 'two' has mismatching result types
              4:1 note: 'two' is (!tfrt.chain, i64) -> !tfrt.chain
            8:1 'corert.while' op 'two' has mismatching operand types
              4:1 note: 'two' is (!tfrt.chain, i64) -> !tfrt.chain
            8:1 'corert.while' op 'two' has mismatching result types
              4:1 note: 'two' is (!tfrt.chain, i64) -> !tfrt.chain
            8:1 'corert.while' op requires a 'b_body_fn' symbol reference attribute
              help: name the function: b_body_fn = @name
            8:16 'corert.while' op operand #0 must be !tfrt.chain type, but got 'i32'
              help: it is corert.while(chain: !tfrt.chain, operands: any...) {a_cond_fn: function, b_body_fn: function} -> (done: !tfrt.chain, results: any...)
            8:1 'corert.while' op expected 1 or more results
              help: it is corert.while(chain: !tfrt.chain, operands: any...) {a_cond_fn: function, b_body_fn: function} -> (done: !tfrt.chain, results: any...)
        "#]],
    );
}
