//! Calls and loops of users' own kernels, in an order found at load and by counting.

use std::panic;

use tfrt::host::kernel::{
    Arguments, Call, Callee, Forward, KernelRegistry, Loop, Rest, Turn, Turns,
};
use tfrt::{AnyAsyncValue, Error, ErrorCode, Runtime};

/// Calls one function and then the other, in turn, so often; then panics or fails if it is to.
struct Alternate {
    n_left: i32,
    bodies: [Callee; 2],
    end: End,
}

#[derive(Clone, Copy)]
enum End {
    Done,
    Fail,
    Panic,
}

impl Turns for Alternate {
    fn next(&mut self, _: &mut Vec<AnyAsyncValue>) -> Turn {
        if self.n_left > 0 {
            self.n_left -= 1;
            self.bodies.swap(0, 1);
            return Turn::Call(self.bodies[0]);
        }
        match self.end {
            End::Done => Turn::Done,
            End::Fail => Turn::Fail(Error::invalid_argument("planned")),
            // Without the hook's message.
            End::Panic => panic::resume_unwind(Box::new("planned")),
        }
    }
}

fn alternate(n_left: i32, values: Rest, bodies: [Callee; 2], end: End) -> Loop<Alternate> {
    let turns = Alternate {
        n_left,
        bodies,
        end,
    };
    Loop::new(turns, values.0)
}

fn done(n: i32, values: Rest, first: Callee, second: Callee) -> Loop<Alternate> {
    alternate(n, values, [second, first], End::Done)
}

fn fail(n: i32, values: Rest, first: Callee, second: Callee) -> Loop<Alternate> {
    alternate(n, values, [second, first], End::Fail)
}

fn panic(n: i32, values: Rest, first: Callee, second: Callee) -> Loop<Alternate> {
    alternate(n, values, [second, first], End::Panic)
}

/// Calls with what is left, and nothing else.
fn call(arguments: Arguments, callee: Callee) -> Forward {
    Call::forward(callee, arguments)
}

fn register(registry: &mut KernelRegistry) {
    registry
        .add("t.done", done)
        .add("t.fail", fail)
        .add("t.panic", panic)
        .add("t.call", call);
}

/// Returns the result of `main`, which does not depend on how it is run.
fn run(text: &str) -> Result<i32, ErrorCode> {
    let [ordered, counted] = [false, true].map(|dynamic| {
        let builder = Runtime::builder().kernels(register);
        let runtime = builder.dynamic_order(dynamic).build();
        let program = runtime.compile("test", text).unwrap();
        let main = program.function("main").unwrap();
        let results = main.call(&runtime.context(), ()).wait_each().unwrap();
        match results[0].error() {
            Some(error) => Err(error.code()),
            None => Ok(*results[0].get::<i32>().unwrap()),
        }
    });
    assert_eq!(ordered, counted);
    ordered
}

/// Returns a loop of `n` turns, between two other kernels.
fn turns(kernel: &str, n: i32) -> String {
    format!(
        r#"func.func @main() -> i32 {{
          %n = tfrt.constant.i32 {n}
          %x = tfrt.constant.i32 1
          %y = "{kernel}"(%n, %x) {{bodies = [@more, @twice]}} : (i32, i32) -> i32
          %z = tfrt.add.i32 %y, %x
          tfrt.return %z : i32
        }}
        func.func @more(%x: i32) -> i32 {{
          %one = tfrt.constant.i32 1
          %y = tfrt.add.i32 %x, %one
          tfrt.return %y : i32
        }}
        func.func @twice(%x: i32) -> i32 {{
          %y = tfrt.add.i32 %x, %x
          tfrt.return %y : i32
        }}"#
    )
}

#[test]
fn turns_may_be_calls_of_different_functions() {
    let expected = [2, 3, 5, 6, 11, 12];
    for (n, expected) in (0..).zip(expected) {
        assert_eq!(run(&turns("t.done", n)), Ok(expected), "{n} turns");
    }
}

#[test]
fn loop_that_fails_or_panics_between_turns_fails_its_results() {
    for n in 0..4 {
        assert_eq!(
            run(&turns("t.fail", n)),
            Err(ErrorCode::InvalidArgument),
            "{n} turns"
        );
        assert_eq!(
            run(&turns("t.panic", n)),
            Err(ErrorCode::Internal),
            "{n} turns"
        );
    }
}

#[test]
fn calls_nest_beyond_the_memory_that_they_begin_in() {
    let text = r#"func.func @main() -> i32 {
          %n = tfrt.constant.i32 1000
          %sum = "t.call"(%n) {callee = @sum} : (i32) -> i32
          tfrt.return %sum : i32
        }
        func.func @sum(%n: i32) -> i32 {
          %one = tfrt.constant.i32 1
          %small = "tfrt.lessequal.i32"(%n, %one) : (i32, i32) -> i1
          %sum = tfrt.cond %small @last @next (%n) : (i32) -> (i32)
          tfrt.return %sum : i32
        }
        func.func @last(%n: i32) -> i32 {
          tfrt.return %n : i32
        }
        func.func @next(%n: i32) -> i32 {
          %one = tfrt.constant.i32 1
          %less = "tfrt.minus.i32"(%n, %one) : (i32, i32) -> i32
          %rest = "t.call"(%less) {callee = @sum} : (i32) -> i32
          %sum = tfrt.add.i32 %n, %rest
          tfrt.return %sum : i32
        }"#;
    assert_eq!(run(text), Ok(500_500));
}

#[test]
fn call_with_a_failed_argument_does_not_begin() {
    let text = r#"func.func @main() -> i32 {
          %one = tfrt.constant.i32 1
          %zero = tfrt.constant.i32 0
          %bad, %rest = "tfrt.div.i32"(%one, %zero) : (i32, i32) -> (i32, i32)
          %x = "t.call"(%one, %bad) {callee = @first} : (i32, i32) -> i32
          tfrt.return %x : i32
        }
        func.func @first(%x: i32, %y: i32) -> i32 {
          tfrt.return %x : i32
        }"#;
    assert_eq!(run(text), Err(ErrorCode::Unknown));
}

#[test]
fn call_of_a_function_that_gives_too_much_fails() {
    let text = r#"func.func @main() -> i32 {
          %one = tfrt.constant.i32 1
          %x = "t.call"(%one) {callee = @both} : (i32) -> i32
          tfrt.return %x : i32
        }
        func.func @both(%x: i32) -> (i32, i32) {
          tfrt.return %x, %x : i32, i32
        }"#;
    assert_eq!(run(text), Err(ErrorCode::Internal));
}
