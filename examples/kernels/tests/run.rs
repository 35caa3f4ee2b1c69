//! Runs a program that uses the kernels of this crate.

use tfrt::{Output, Runtime};

#[test]
fn kernels_of_a_users_crate_run() {
    let (output, captured) = Output::captured();
    let runtime = Runtime::builder()
        .kernels(tfrt_example_kernels::register)
        .output(output)
        .build();
    let program = runtime
        .compile(
            "greet.mlir",
            r#"
            func.func @main() -> (i32, i32) {
              %w = "greet.word"() {text = "hello"} : () -> !greet.word
              %a = "greet.say"(%w) : (!greet.word) -> !greet.word
              %b = "greet.say"(%a) : (!greet.word) -> !greet.word
              %n = "greet.length"(%b) : (!greet.word) -> i32
              %m = "greet.later"(%n) : (i32) -> i32
              %q = "greet.twice"(%m) {function = @double} : (i32) -> i32
              tfrt.return %n, %q : i32, i32
            }
            func.func @double(%x: i32) -> i32 {
              %y = tfrt.add.i32 %x, %x
              tfrt.return %y : i32
            }"#,
        )
        .unwrap();
    let values = program
        .function("main")
        .unwrap()
        .call(&runtime.context(), ())
        .wait()
        .unwrap();
    assert_eq!(*values.get::<i32>(0).unwrap(), 5);
    assert_eq!(*values.get::<i32>(1).unwrap(), 20);
    assert_eq!(captured.printed(), "hello (1)\nhello (2)\n");
}

#[test]
fn misuse_is_told_with_the_place_and_the_signature() {
    let runtime = Runtime::builder()
        .kernels(tfrt_example_kernels::register)
        .build();
    let error = runtime
        .compile(
            "wrong.mlir",
            r#"func.func @main(%x: i32) -> i32 {
                 %n = "greet.length"(%x) : (i32) -> i32
                 %m = "greet.lenght"(%x) : (i32) -> i32
                 tfrt.return %n : i32
               }"#,
        )
        .unwrap_err()
        .to_string();
    assert!(error.contains("wrong.mlir:2:"), "{error}");
    assert!(
        error.contains("takes (!greet.word), but is given (i32)"),
        "{error}"
    );
    assert!(
        error.contains("there is a kernel 'greet.length'"),
        "{error}"
    );
}
