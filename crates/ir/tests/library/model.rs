//! Tests of modules as other crates see them: uses, symbols, changes, literals.

use proptest::prelude::*;
use tfrt_ir::{
    Attribute, BlockId, Integer, Location, Module, OpState, Source, Type, ValueId, dialect,
    expected, parse, split::split, verify,
};

fn module(text: &str) -> Module {
    parse(&Source::new("t.mlir", text)).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Returns the entry block of a function.
fn body(module: &Module, name: &str) -> BlockId {
    let function = module.lookup_symbol(name).expect("the function is there");
    module
        .entry_block(module.op(function).regions()[0])
        .expect("it has a body")
}

/// Lists the users of a value as `position.operand`.
fn users(module: &Module, block: BlockId, value: ValueId) -> Vec<String> {
    let operations = module.block(block).operations();
    let position = |op| operations.iter().position(|&other| other == op).unwrap();
    module
        .users(value)
        .map(|user| format!("{}.{}", position(user.op), user.operand))
        .collect()
}

#[test]
fn uses_are_listed_most_recent_first() {
    let module = module(
        "func.func @f(%a: i32) {
           \"x\"(%a, %a) : (i32, i32) -> ()
           \"y\"() : () -> ()
           \"z\"(%a) : (i32) -> ()
           tfrt.return
         }",
    );
    let block = body(&module, "f");
    let argument = module.block(block).arguments()[0];
    assert_eq!(users(&module, block, argument), ["2.0", "0.1", "0.0"]);
}

#[test]
fn uses_before_the_definition_are_listed_in_order() {
    let module = module("\"x\"(%a, %a) : (i32, i32) -> ()\n%a = \"y\"() : () -> i32");
    let block = module.body();
    let value = module.op(module.block(block).operations()[1]).results()[0];
    assert_eq!(users(&module, block, value), ["0.0", "0.1"]);
}

#[test]
fn changed_operands_move_between_use_lists() {
    let mut module = module(
        "func.func @f(%a: i32, %b: i32) {
           \"x\"(%a, %a, %a) : (i32, i32, i32) -> ()
           \"y\"(%b) : (i32) -> ()
           tfrt.return
         }",
    );
    let block = body(&module, "f");
    let (a, b) = (
        module.block(block).arguments()[0],
        module.block(block).arguments()[1],
    );
    let x = module.block(block).operations()[0];
    module.set_operand(x, 1, b);
    assert_eq!(users(&module, block, a), ["0.2", "0.0"]);
    assert_eq!(users(&module, block, b), ["0.1", "1.0"]);
    module.replace_all_uses(a, b);
    assert!(module.is_unused(a));
    assert_eq!(users(&module, block, b), ["0.0", "0.2", "0.1", "1.0"]);
    module.set_operands(x, &[a]);
    assert_eq!(users(&module, block, a), ["0.0"]);
    assert_eq!(users(&module, block, b), ["1.0"]);
    module.erase(x);
    module.remove_from_block(x);
    assert!(module.is_unused(a));
    assert_eq!(module.block(block).operations().len(), 2);
}

#[test]
fn modules_can_be_made_by_code() {
    let mut module = Module::new();
    let region = module.create_region();
    let block = module.create_block(region);
    let x = module.add_argument(block, Type::I32, Location::Unknown);
    let add = OpState::new("tfrt.add.i32")
        .operands([x, x])
        .result(Type::I32);
    let add = module.create(add);
    module.append(block, add);
    let sum = module.op(add).results()[0];
    let end = module.create(OpState::new("tfrt.return").operand(sum));
    module.append(block, end);
    let ty = Type::function(vec![Type::I32], vec![Type::I32]);
    let function = OpState::new("func.func")
        .attribute("sym_name", Attribute::string("twice"))
        .attribute("function_type", Attribute::Type(ty))
        .region(region);
    let function = module.create(function);
    module.append(module.body(), function);
    verify(&module).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(
        module.to_string(),
        "module {\n  func.func @twice(%arg0: i32) -> i32 {\n    \
         %0 = tfrt.add.i32 %arg0, %arg0\n    tfrt.return %0 : i32\n  }\n}\n"
    );
    assert_eq!(module.parent_op(add), Some(function));
    assert_eq!(module.lookup_symbol("twice"), Some(function));
}

#[test]
fn nested_symbols_are_found_in_their_table() {
    let module = module("module @m { func.func private @f() }\nfunc.func private @f()");
    let inner = module.lookup_symbol("m").expect("it is there");
    let found = module.lookup_symbol_in(inner, "f").expect("it is there");
    assert_ne!(Some(found), module.lookup_symbol("f"));
    assert_eq!(module.nearest_symbol_table(found), Some(inner));
    assert_eq!(module.symbol_table(module.top()).len(), 2);
}

#[test]
fn every_form_can_be_described() {
    for definition in dialect::definitions() {
        assert!(
            !definition.summary_text().is_empty(),
            "{} has no summary",
            definition.name()
        );
        assert!(
            !definition.summary_text().ends_with('.'),
            "{}",
            definition.name()
        );
    }
}

#[test]
fn pieces_of_a_file_keep_its_lines() {
    let text =
        "module {}\n// -----\n\nfunc.func @f() {}\n// ----- no\n//-----\n// -----   \noops\n";
    let pieces = split(&Source::new("t.mlir", text));
    assert_eq!(pieces.len(), 3);
    let lines = |index: usize| -> Vec<Option<(u32, u32)>> {
        let errors = parse(&pieces[index]).unwrap_err();
        errors.iter().map(|error| error.line_column()).collect()
    };
    assert_eq!(lines(1), [Some((4, 16))]);
    assert_eq!(lines(2), [Some((8, 1))]);
}

#[test]
fn announced_diagnostics_are_matched_by_line_kind_and_text() {
    let text = "
func.func @f(%x: i32) {
  // expected-error @+1 {{has 1 operands, but enclosing function}}
  tfrt.return %x : i32
}
func.func private @g() // expected-note {{see existing symbol}}
func.func private @g() // expected-error-re {{redefinition of {{.*}} named 'g'}}
// expected-error @above {{not said}}
// expected-error @3 {{bad}}
";
    let source = Source::new("t.mlir", text);
    let errors = verify(&parse(&source).unwrap()).unwrap_err();
    let problems = expected::check(&source, &errors).unwrap_err();
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message()).collect();
    let expected = [
        "expected error \"not said\" was not produced",
        "expected '+N', '-N', 'above', 'below' or 'unknown' behind '@'",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn unannounced_diagnostics_are_problems() {
    let source = Source::new("t.mlir", "oops\n// expected-warning @-1 {{oops}}\n");
    let problems = expected::check(&source, &parse(&source).unwrap_err()).unwrap_err();
    let messages: Vec<&str> = problems.iter().map(|problem| problem.message()).collect();
    let expected = [
        "unexpected error: custom op 'oops' is unknown",
        "expected warning \"oops\" was not produced",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn text_that_is_not_utf8_is_refused_where_it_is() {
    let errors = Source::from_bytes("t", b"ab\n\xffc".to_vec()).unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!(error.message(), "expected UTF-8 text, found the byte 0xff");
    assert_eq!(error.line_column(), Some((2, 1)));
    assert!(Source::read("/there/is/no/such/file").is_err());
}

/// Parses a constant and returns it as an attribute.
fn constant(text: &str) -> Attribute {
    let module = module(&format!("\"a\"() {{v = {text}}} : () -> ()"));
    let op = module.block(module.body()).operations()[0];
    module.op(op).attribute("v").expect("it is there").clone()
}

fn bits(attribute: &Attribute) -> u64 {
    match attribute {
        Attribute::Float(float) => float.bits,
        other => panic!("{other} is no float"),
    }
}

/// Rounds to the nearest narrow float by trying both neighbours.
fn nearest(value: f64, all: &[(f64, u64)]) -> u64 {
    let index = all.partition_point(|&(candidate, _)| candidate < value);
    if index == 0 {
        return all[0].1;
    }
    let (below, above) = (all[index - 1], all[index.min(all.len() - 1)]);
    let (down, up) = (value - below.0, above.0 - value);
    match down.partial_cmp(&up).unwrap() {
        std::cmp::Ordering::Less => below.1,
        std::cmp::Ordering::Greater => above.1,
        std::cmp::Ordering::Equal => {
            if below.1 % 2 == 0 {
                below.1
            } else {
                above.1
            }
        }
    }
}

#[test]
fn narrow_floats_round_once_to_even() {
    // Halfway between 1 and the next f16; a little above; and the same decimal
    // so close above that f64 cannot tell.
    assert_eq!(bits(&constant("1.00048828125 : f16")), 0x3c00);
    assert_eq!(bits(&constant("1.00048828126 : f16")), 0x3c01);
    assert_eq!(
        bits(&constant("1.000488281250000000000000000000000001 : f16")),
        0x3c01
    );
    assert_eq!(bits(&constant("1.00146484375 : f16")), 0x3c02);
    assert_eq!(
        bits(&constant("1.001464843749999999999999999999999999 : f16")),
        0x3c01
    );
    assert_eq!(bits(&constant("2.98023223876953125e-8 : f16")), 0);
    assert_eq!(bits(&constant("2.98023223876953126e-8 : f16")), 1);
    assert_eq!(bits(&constant("65519.999 : f16")), 0x7bff);
    assert_eq!(bits(&constant("65520.0 : f16")), 0x7c00);
    assert_eq!(bits(&constant("3.4e38 : bf16")), 0x7f80);
    assert_eq!(bits(&constant("-1.00390625 : bf16")), 0xbf80);
}

proptest! {
    #[test]
    fn integers_print_as_they_were_written(value in any::<i128>()) {
        let text = format!("{value} : i128");
        prop_assert_eq!(constant(&text).to_string(), text);
        prop_assert_eq!(Integer::from(value).as_i128(), Some(value));
        prop_assert_eq!(Integer::from(value).to_le_bytes(16), value.to_le_bytes());
        prop_assert_eq!(Integer::from(value).negate().negate(), Integer::from(value));
    }

    #[test]
    fn integers_are_cut_as_rust_cuts_them(value in any::<i128>()) {
        let low = value.to_le_bytes();
        let expected = i32::from_le_bytes([low[0], low[1], low[2], low[3]]);
        prop_assert_eq!(Integer::from(value).wrap_signed(32), Integer::from(expected));
        let unsigned = i128::from(expected.cast_unsigned());
        prop_assert_eq!(Integer::from(value).wrap_unsigned(32), Integer::from(unsigned));
    }

    #[test]
    fn wide_integers_survive_hexadecimal_and_decimal(digits in "[1-9a-f][0-9a-f]{0,90}") {
        let from_hex = constant(&format!("0x{digits} : ui400"));
        let decimal = from_hex.to_string();
        prop_assert_eq!(constant(&decimal), from_hex.clone());
        let Attribute::Integer(integer) = &from_hex else { panic!() };
        let bytes = integer.value.to_le_bytes(50);
        let hex: String = bytes.iter().rev().map(|byte| format!("{byte:02x}")).collect();
        prop_assert_eq!(hex.trim_start_matches('0'), digits);
    }

    #[test]
    fn floats_keep_every_bit(value in any::<u64>()) {
        let double = format!("0x{value:016X} : f64");
        prop_assert_eq!(bits(&constant(&double)), value);
        prop_assert_eq!(bits(&constant(&constant(&double).to_string())), value);
        let low = value & 0xffff_ffff;
        let single = constant(&format!("0x{low:08X} : f32"));
        prop_assert_eq!(bits(&constant(&single.to_string())), low);
    }

    #[test]
    fn floats_round_as_rust_rounds(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
        let text = format!("{:.16e}", value.abs());
        prop_assert_eq!(bits(&constant(&text)), value.abs().to_bits());
        let single = u64::from(text.parse::<f32>().unwrap().to_bits());
        prop_assert_eq!(bits(&constant(&format!("{text} : f32"))), single);
    }

    #[test]
    fn strings_keep_their_bytes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let written = Attribute::string(&bytes).to_string();
        prop_assert_eq!(constant(&written), Attribute::string(&bytes));
    }

    #[test]
    fn dense_elements_keep_their_values(values in prop::collection::vec(any::<i16>(), 1..150)) {
        let list: Vec<String> = values.iter().map(i16::to_string).collect();
        let text = format!("dense<[{}]> : tensor<{}xi16>", list.join(", "), values.len());
        let dense = constant(&text);
        prop_assert_eq!(constant(&dense.to_string()), dense.clone());
        let Attribute::Dense(dense) = dense else { panic!() };
        if !dense.splat {
            let expected: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            prop_assert_eq!(dense.bytes(), expected);
        }
    }
}

#[test]
fn every_narrow_float_prints_and_rounds_as_itself() {
    let small = [
        "f4E2M1FN",
        "f6E2M3FN",
        "f6E3M2FN",
        "f8E3M4",
        "f8E4M3",
        "f8E4M3B11FNUZ",
        "f8E5M2",
        "f8E5M2FNUZ",
        "f8E4M3FN",
        "f8E4M3FNUZ",
        "f8E8M0FNU",
    ];
    for ty in ["f16", "bf16"].into_iter().chain(small) {
        let width = match &ty[..2] {
            "f4" => 4,
            "f6" => 6,
            "f8" => 8,
            _ => 16,
        };
        let hex_digits = usize::div_ceil(width, 4);
        let all: Vec<String> = (0_u64..1 << width)
            .map(|bits| format!("0x{bits:0hex_digits$X} : {ty}"))
            .collect();
        let list = constant(&format!("[{}]", all.join(", ")));
        assert_eq!(constant(&list.to_string()), list, "{ty}");
    }
}

#[test]
fn halves_between_neighbours_go_to_the_nearest() {
    let all: Vec<(f64, u64)> = (0_u64..0x7c00)
        .map(|bits| match constant(&format!("0x{bits:04X} : f16")) {
            Attribute::Float(float) => (float.value(), bits),
            other => panic!("{other} is no float"),
        })
        .collect();
    let mut texts = Vec::new();
    let mut expected = Vec::new();
    for pair in all.windows(2).step_by(97) {
        for part in [0.25, 0.5, 0.75] {
            let value = pair[0].0 + (pair[1].0 - pair[0].0) * part;
            texts.push(format!("{value:.60} : f16"));
            expected.push(nearest(value, &all));
        }
    }
    let list = constant(&format!("[{}]", texts.join(", ")));
    let found: Vec<u64> = list.as_array().unwrap().iter().map(bits).collect();
    assert_eq!(found, expected);
}
