//! Results of `fold` have the bits of those of kernels.

use tfrt::bef::BefFile;
use tfrt::{Program, Runtime, SingleThreadedWorkQueue};
use tfrt_compiler::pipeline::Pipeline;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_ir::{Source, parse};

const INTEGERS: [&str; 3] = ["-2147483648", "-1", "7"];
const WIDE: [&str; 4] = ["-9223372036854775808", "-1", "16777217", "3"];
const FLOATS: [&str; 6] = [
    "-0.0",
    "1.5",
    "-1.0e30",
    "0x7F800000",
    "0x00000001",
    "0x7FC00000",
];
const DOUBLES: [&str; 6] = [
    "-0.0",
    "1.5",
    "-1.0e300",
    "0x7FF0000000000000",
    "0x0000000000000001",
    "0x7FF8000000000000",
];

/// Operations on two values of a type, and what they give.
const BINARY: [(&str, &str, &str); 22] = [
    ("tfrt.add.i32", "i32", "i32"),
    ("tfrt.minus.i32", "i32", "i32"),
    ("tfrt.mul.i32", "i32", "i32"),
    ("tfrt.div.i32", "i32", "i32, i32"),
    ("tfrt.equal.i32", "i32", "i1"),
    ("tfrt.lessequal.i32", "i32", "i1"),
    ("tfrt.add.i64", "i64", "i64"),
    ("tfrt.minus.i64", "i64", "i64"),
    ("tfrt.mul.i64", "i64", "i64"),
    ("tfrt.div.i64", "i64", "i64, i64"),
    ("tfrt.equal.i64", "i64", "i1"),
    ("tfrt.lessequal.i64", "i64", "i1"),
    ("tfrt.add.f32", "f32", "f32"),
    ("tfrt.multiply.f32", "f32", "f32"),
    ("tfrt.div.f32", "f32", "f32"),
    ("tfrt.minimum.f32", "f32", "f32"),
    ("tfrt.add.f64", "f64", "f64"),
    ("tfrt.multiply.f64", "f64", "f64"),
    ("tfrt.div.f64", "f64", "f64"),
    ("tfrt.minimum.f64", "f64", "f64"),
    ("tfrt.cast.f32_to_i64", "f32", "i64"),
    ("tfrt.cast.f64_to_i64", "f64", "i64"),
];

#[test]
fn folded_constants_are_what_kernels_give() {
    let runtime = Runtime::builder()
        .queue(std::sync::Arc::new(SingleThreadedWorkQueue::new()))
        .diagnostics(|_| {})
        .build();
    let mut n_folded = 0;
    for (name, ty, results) in BINARY {
        let values: &[&str] = match ty {
            "i32" => &INTEGERS,
            "i64" => &WIDE,
            "f32" => &FLOATS,
            _ => &DOUBLES,
        };
        let is_cast = name.contains("cast");
        for a in values {
            for b in values {
                let (operands, types) = match is_cast {
                    true => ("%a".to_owned(), ty.to_owned()),
                    false => ("%a, %b".to_owned(), format!("{ty}, {ty}")),
                };
                let n_results = results.split(',').count();
                let given: Vec<String> = (0..n_results).map(|at| format!("%r#{at}")).collect();
                let text = format!(
                    "func.func @main() -> ({results}) {{
                       %a = tfrt.constant.{ty} {a}
                       %b = tfrt.constant.{ty} {b}
                       %r:{n_results} = \"{name}\"({operands}) : ({types}) -> ({results})
                       tfrt.return {} : {results}
                     }}",
                    given.join(", ")
                );
                let (folded, left) = run(&runtime, "fold,dce", &text);
                let (calculated, _) = run(&runtime, "", &text);
                assert_eq!(folded, calculated, "{text}");
                n_folded += usize::from(!left.contains(name));
            }
        }
    }
    assert!(n_folded > 300, "only {n_folded} operations were folded");
}

/// Returns the bits of the results, and the program after the passes.
fn run(runtime: &Runtime, passes: &str, text: &str) -> (Vec<String>, String) {
    let mut module = parse(&Source::new("fold.mlir", text)).unwrap();
    Pipeline::parse(passes).unwrap().run(&mut module).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::from_file(BefFile::open(bytes).unwrap(), runtime).unwrap();
    let main = program.function("main").unwrap();
    let results = main.call(&runtime.context(), ()).into_results();
    runtime.host().queue().await_all(&results).unwrap();
    let show = |value: tfrt::AnyAsyncValue| {
        let value = value.settled();
        if let Some(error) = value.error() {
            return error.message().to_owned();
        }
        let bool = value.get::<bool>().map(|value| value.to_string());
        bool.or_else(|| value.get::<i32>().map(|value| value.to_string()))
            .or_else(|| value.get::<i64>().map(|value| value.to_string()))
            .or_else(|| {
                value
                    .get::<f32>()
                    .map(|value| format!("{:x}", value.to_bits()))
            })
            .or_else(|| {
                value
                    .get::<f64>()
                    .map(|value| format!("{:x}", value.to_bits()))
            })
            .unwrap_or_default()
    };
    (results.into_iter().map(show).collect(), module.to_string())
}
