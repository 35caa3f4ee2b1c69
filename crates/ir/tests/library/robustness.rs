//! Tests that no text makes the parser panic, overflow its stack, or take long.

use std::time::{Duration, Instant};

use proptest::{prelude::*, sample::Index};
use tfrt_ir::{PrintOptions, Source, parse, print, verify};

/// Programs that use every rule of the grammar.
const PROGRAMS: [&str; 3] = [
    r##"
!pair = tuple<i32, f32>
#five = dense<[[1, -2], [3, 4]]> : tensor<2x2xi16>
#where = loc(callsite("a" at fused<"m">["b.py":1:2, #other]))
func.func @main(%c: i1 loc("x"), %x: i32 {a.b = !pair}) -> (i32, !tfrt.chain) attributes {tfrt.sync} {
  %0 = tfrt.constant.f32 0x7F800000 // infinite
  %ch = tfrt.new.chain loc(#where)
  %q:2 = tfrt.div.i32 %x, %x {k = [1 : i8, 2.5e-3 : bf16, "s\0A", @f::@g, unit, #corert.shape<2x?>]}
  %r = tfrt.if %c, %q#1 : (i32) -> i32 {
    tfrt.return %q#1 : i32
  } else {
    %s = "t.sum"(%q#1) <{p = array<i8: 1, 2>}> {q = #five} : (i32) -> i32
    tfrt.return %s : i32
  }
  tfrt.return %r, %ch : i32, !tfrt.chain
}
#other = loc("c")
"##,
    r##"
module @m attributes {tfrt.compiled, v = sparse<[[0, 1]], [1.5]> : tensor<2x2xf64>} {
  "t.region"() ({
  ^a(%x: vector<[4]x2xf32>, %y: memref<?x4xf32, affine_map<(d0) -> (d0)>>):
    "t.br"(%z)[^b, ^c] : (complex<f32>) -> ()
  ^b:
    %z = "t.z"() : () -> complex<f32>
    "t.br"()[^c] : () -> ()
  ^c:
    "t.end"() : () -> ()
  }, {}) {t = (i32) -> (tensor<*xi8>, !d.t<"x>", [1]>), d = dense<"0x0001"> : tensor<2xi8>} : () -> ()
}
"##,
    r##"
func.func private @f(i32, i32, f32) -> !tfrt.chain attributes {tfrt.native}
func @g(%a: i32, %b: f32, %p: i1, %to: i32) {
  %1 = tfrt.parallel_for.i32 %a to %to fixed %a, %b : f32 { tfrt.return }
  %0 = tfrt.parallel_call.i32 %a to %a fixed %a @f(%b) : f32
  %2:2 = tfrt.repeat.i32 %a, %a, %b : i32, f32 { tfrt.return %a, %b : i32, f32 }
  tfrt_test.benchmark "b"(%a : i32) duration_secs = 1, max_count = -1 { tfrt.return %a : i32 }
  tfrt.while %p @g(%a, %b) parallel_iterations(4) : (i32, f32) -> (i32, f32)
  tfrt.return
}
"##,
];

/// Parses and verifies; whatever is accepted must print and parse again.
fn survive(text: &str) {
    let Ok(module) = parse(&Source::new("t", text)) else {
        return;
    };
    let is_valid = verify(&module).is_ok();
    for generic in [false, true] {
        let options = PrintOptions {
            generic,
            locations: true,
        };
        let first = print(&module, options);
        match parse(&Source::new("t", first.clone())) {
            Ok(again) => assert_eq!(print(&again, options), first, "from {text}"),
            Err(errors) => assert!(!is_valid, "{errors}\nfrom {text}"),
        }
    }
}

#[test]
fn programs_are_accepted() {
    for text in PROGRAMS {
        parse(&Source::new("t", text)).unwrap_or_else(|errors| panic!("{errors}"));
        survive(text);
    }
}

#[test]
fn every_prefix_and_suffix_is_survived() {
    for text in PROGRAMS {
        for at in 0..text.len() {
            survive(&text[..at]);
            survive(&text[at..]);
        }
    }
}

#[test]
fn every_replaced_byte_is_survived() {
    for text in PROGRAMS {
        for at in 0..text.len() {
            for replacement in [
                "",
                "}",
                "{",
                "\"",
                "<",
                "0",
                "%x",
                "#",
                "\u{0}",
                "9999999999999",
            ] {
                survive(&format!("{}{replacement}{}", &text[..at], &text[at + 1..]));
            }
        }
    }
}

proptest! {
    #[test]
    fn pieces_put_together_at_random_are_survived(
        cuts in prop::collection::vec((0..PROGRAMS.len(), any::<Index>(), any::<Index>()), 1..8)
    ) {
        let mut text = String::new();
        for (program, a, b) in cuts {
            let program = PROGRAMS[program];
            let (a, b) = (a.index(program.len()), b.index(program.len()));
            text.push_str(&program[a.min(b)..a.max(b)]);
        }
        survive(&text);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(source) = Source::from_bytes("t", bytes) {
            survive(source.text());
        }
    }
}

#[test]
fn deep_nesting_is_an_error() {
    const DEPTH: usize = 100_000;
    let programs = [
        "\"a\"() ({".repeat(DEPTH),
        "module {".repeat(DEPTH),
        format!("\"a\"() {{x = {}", "[".repeat(DEPTH)),
        format!("\"a\"() {{x = {}", "{a = ".repeat(DEPTH)),
        format!("\"a\"() {{x = {}", "tuple<".repeat(DEPTH)),
        format!("\"a\"() {{x = {}", "(".repeat(DEPTH)),
        format!("\"a\"() {{x = {}", "() -> (".repeat(DEPTH)),
        format!("\"a\"() {{x = !a.b{}", "<".repeat(DEPTH)),
        format!("\"a\"() {{x = dense<{}", "[".repeat(DEPTH)),
        format!("\"a\"() : () -> () loc({}", "\"a\"(".repeat(DEPTH)),
        format!("\"a\"() : () -> () loc({}", "fused[".repeat(DEPTH)),
        format!(
            "func.func @f(%c: i1) {{ {}",
            "tfrt.if %c, %c : (i1) -> () {".repeat(DEPTH)
        ),
    ];
    for text in programs {
        let errors = parse(&Source::new("t", text)).unwrap_err();
        let first = errors.iter().next().expect("there is one").message();
        assert!(
            first.starts_with("nesting is deeper than 256 levels"),
            "{first}"
        );
    }
}

#[test]
fn nesting_up_to_the_limit_is_fine() {
    let mut text = String::from("func.func @f(%c: i1) {\n");
    text += &"tfrt.if %c, %c : (i1) -> () {\n".repeat(255);
    text += &"tfrt.return\n}\n".repeat(256);
    let module = parse(&Source::new("t", text)).unwrap_or_else(|errors| panic!("{errors}"));
    verify(&module).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(print(&module, PrintOptions::default()).len() > 255 * 2 * 255);
}

#[test]
fn aliases_cannot_grow_a_small_text_into_a_large_one() {
    let mut text = String::from("!a0 = tuple<i32, i32>\n#b0 = [1, 2]\n");
    for index in 1..60 {
        let before = index - 1;
        text += &format!("!a{index} = tuple<!a{before}, !a{before}>\n");
        text += &format!("#b{index} = [#b{before}, #b{before}]\n");
    }
    let errors = parse(&Source::new("t", text)).unwrap_err();
    assert!(
        errors.to_string().contains("aliases stand for more than"),
        "{errors}"
    );

    let mut text = String::from("#l0 = loc(\"x\")\n");
    for index in 1..100 {
        let before = index - 1;
        text += &format!("#l{index} = loc(callsite(#l{before} at #l{before}))\n");
    }
    text += "\"a\"() : () -> () loc(#l99)";
    let errors = parse(&Source::new("t", text)).unwrap_err();
    assert!(
        errors.to_string().contains("aliases stand for more than"),
        "{errors}"
    );
}

#[test]
fn alias_chains_count_as_nesting() {
    let mut text = String::from("!a0 = i32\n");
    for index in 1..1000 {
        text += &format!("!a{index} = tuple<!a{}>\n", index - 1);
    }
    let errors = parse(&Source::new("t", text)).unwrap_err();
    assert!(errors.to_string().contains("nesting is deeper"), "{errors}");
}

#[test]
fn small_texts_for_large_things_stay_small() {
    let text = "\"a\"() {v = dense<1> : tensor<1099511627776xi64>, w = -1 : i16777215} : () -> ()";
    let module = parse(&Source::new("t", text)).unwrap_or_else(|errors| panic!("{errors}"));
    assert!(print(&module, PrintOptions::default()).len() < 200);
}

#[test]
fn time_is_linear_in_the_text() {
    let long = 200_000;
    let texts = [
        format!(
            "\"a\"() {{v = 0x{} : i16777215}} : () -> ()",
            "F".repeat(long)
        ),
        format!("\"a\"() {{v = {}}} : () -> ()", "1".repeat(long)),
        format!("\"a\"() {{v = {}.0}} : () -> ()", "1".repeat(long)),
        format!("\"a\"() {{v = 0.{}1 : f16}} : () -> ()", "0".repeat(long)),
        format!("\"a\"() {{v = \"{}\"}} : () -> ()", "\\00".repeat(long)),
        format!("\"a\"() : () -> () //{}", "x".repeat(long)),
        format!("\"a\"({}) : () -> ()", " ".repeat(long)),
        format!("{}\"a\"() : () -> ()", "\n".repeat(long)),
        "oops ".repeat(long),
        "oops\n".repeat(long),
        "%a ".repeat(long),
        "\"a\"() : () -> ()\n".repeat(long),
        format!("\"a\"({}) : () -> ()", "%a, ".repeat(long)),
        format!("\"a\"() {{{}}} : () -> ()", names(0..long)),
        format!("\"a\"() {{{}}} : () -> ()", names((0..long).rev())),
        format!(
            "\"a\"() <{{{}}}> {{z, {}}} : () -> ()",
            names(0..long),
            names(long..2 * long)
        ),
        "{".repeat(long),
        "}".repeat(long),
        "\"".repeat(long),
        "<".repeat(long),
        "\"a\"() {x = !a.b<".repeat(long / 10),
    ];
    for text in texts {
        let start = Instant::now();
        if let Ok(module) = parse(&Source::new("t", text.as_str())) {
            drop(verify(&module));
            print(&module, PrintOptions::default());
        }
        let elapsed = start.elapsed();
        assert!(
            elapsed < Duration::from_secs(20),
            "{elapsed:?} for {}",
            &text[..20]
        );
    }
}

fn names(numbers: impl Iterator<Item = usize>) -> String {
    let names: Vec<String> = numbers.map(|index| format!("n{index:09}")).collect();
    names.join(", ")
}

#[test]
fn locations_used_as_constants_cannot_grow_a_small_text_either() {
    let mut doubled = "#a0 = loc(\"x\")\n".to_owned();
    for level in 1..100 {
        let below = level - 1;
        doubled += &format!("#a{level} = loc(callsite(#a{below} at #a{below}))\n");
    }
    doubled += "\"t\"() {a = #a99} : () -> ()";
    let members: Vec<String> = (0..20_000).map(|index| format!("\"{index}\"")).collect();
    let uses: Vec<String> = (0..20_000).map(|index| format!("a{index} = #a")).collect();
    let wide = format!(
        "#a = loc(fused[{}])\n\"t\"() {{{}}} : () -> ()",
        members.join(", "),
        uses.join(", ")
    );
    for text in [doubled, wide] {
        let errors = parse(&Source::new("t", text)).unwrap_err();
        let told = errors.to_string();
        assert!(told.contains("aliases stand for more than"), "{told}");
    }
}
