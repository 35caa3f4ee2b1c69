//! Tests of loops and calls in which everything goes wrong, with kernels in an order found at load and counted.

use std::sync::{Arc, Mutex};

use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_async::{Heap, Value, counters};
use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::kernel::{
    Arguments, Call, Callee, Forward, KernelRegistry, Loop, Rest, Turn, Turns,
};
use tfrt_host::{AnyAsyncValue, Error, ExecutionContext, HostContext, Program, RequestContext};

/// The action of a loop before its fourth turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    None,
    Panics,
    Fails,
    GivesTooMany,
    EndsWithTooMany,
    Cancels,
}

/// A loop that calls two functions in turns.
struct Alternating {
    n_taken: usize,
    bodies: [Callee; 2],
    trouble: Trouble,
    context: ExecutionContext,
}

impl Turns for Alternating {
    fn next(&mut self, values: &mut Vec<AnyAsyncValue>) -> Turn {
        self.n_taken += 1;
        let trouble = match self.n_taken {
            4 => self.trouble,
            _ => Trouble::None,
        };
        match trouble {
            Trouble::None => {}
            Trouble::Panics => panic!("between two turns"),
            Trouble::Fails => return Turn::Fail(Error::not_found("no fourth turn")),
            Trouble::GivesTooMany => values.push(AnyAsyncValue::new(1)),
            Trouble::EndsWithTooMany => {
                values.push(AnyAsyncValue::new(1));
                return Turn::Done;
            }
            Trouble::Cancels => self.context.request().cancel(),
        }
        match self.n_taken {
            7.. => Turn::Done,
            n_taken => Turn::Call(self.bodies[n_taken % 2]),
        }
    }
}

const TROUBLES: [(&str, Trouble); 6] = [
    ("t.loop", Trouble::None),
    ("t.panics", Trouble::Panics),
    ("t.fails", Trouble::Fails),
    ("t.gives_too_many", Trouble::GivesTooMany),
    ("t.ends_with_too_many", Trouble::EndsWithTooMany),
    ("t.cancels", Trouble::Cancels),
];

fn unlucky(x: i32) -> Result<i32, Error> {
    match x {
        13 => Err(Error::invalid_argument("thirteen")),
        _ => Ok(x),
    }
}

fn unlucky_pair(x: i32) -> (i32, Result<i32, Error>) {
    (x, unlucky(x))
}

/// A value that reports when it is dropped.
struct Held(Arc<Mutex<Vec<&'static str>>>);

impl Value for Held {
    const NAME: &'static str = "!t.held";
    type Storage = Heap;
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.lock().unwrap().push("dropped");
    }
}

/// Runs `@main` with a number; returns its results, and the reports on errors (kernel and line) and on values.
fn run(text: &str, argument: i32, always_counts: bool) -> (Vec<String>, Vec<String>) {
    let alone = crate::alone();
    let before = counters().live_cells;
    let found = run_alone(text, argument, always_counts);
    assert_eq!(
        counters().live_cells,
        before,
        "{argument} {always_counts} {text}"
    );
    drop(alone);
    found
}

fn run_alone(text: &str, argument: i32, always_counts: bool) -> (Vec<String>, Vec<String>) {
    let mut registry = KernelRegistry::new();
    tfrt_kernels::register_all(&mut registry);
    for (name, trouble) in TROUBLES {
        let begin = move |values: Rest, a: Callee, b: Callee, context: &ExecutionContext| {
            let turns = Alternating {
                n_taken: 0,
                bodies: [a, b],
                trouble,
                context: context.clone(),
            };
            Loop::new(turns, values.0)
        };
        registry.add(name, begin);
    }
    let events = Arc::<Mutex<Vec<&'static str>>>::default();
    let (made, ended) = (events.clone(), events.clone());
    registry
        .add("t.held", move |_: i32| Held(made.clone()))
        .add("t.look", |_: &Held| 1)
        .add("t.end", move |x: i32| {
            ended.lock().unwrap().push("ended");
            x
        })
        .add("t.unlucky", unlucky)
        .add("t.unlucky_pair", unlucky_pair)
        .add("t.same", |text: &String| text.clone())
        .add("t.call", |arguments: Arguments, body: Callee| -> Forward {
            Call::forward(body, arguments)
        });
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let host = HostContext::builder(registry)
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .dynamic_order(always_counts)
        .diagnostics(move |error| {
            let place = error.location().map(ToString::to_string);
            let (kernel, place) = (error.kernel().unwrap_or("?"), place.unwrap_or_default());
            heard.lock().unwrap().push(format!("{kernel} {place}"));
        })
        .build();
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("m", text)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    let program = Program::load(BefFile::open(bytes).unwrap(), &host).unwrap();
    let main = program.function("main").unwrap();
    let context = ExecutionContext::new(&RequestContext::new(&host));
    let values = main.execute(&context, vec![AnyAsyncValue::new(argument)]);
    host.queue().await_all(&values).unwrap();
    host.queue().quiesce().unwrap();
    let shown = values.into_iter().map(AnyAsyncValue::settled).map(|value| {
        let number = value.get::<i32>().map(ToString::to_string);
        let text = value.get::<String>().cloned();
        let shown = number.or(text);
        shown.unwrap_or_else(|| value.error().unwrap().message().to_owned())
    });
    let shown = shown.collect();
    let told = std::mem::take(&mut *told.lock().unwrap());
    let events = std::mem::take(&mut *events.lock().unwrap());
    let events = events.into_iter().map(str::to_owned);
    (shown, told.into_iter().chain(events).collect())
}

/// Returns a loop over a number, and over a text if it is to have one, whose bodies have these attributes.
fn text(kernel: &str, attributes: [&str; 2], has_text: bool) -> String {
    let [a, b] = attributes;
    let (more, types, parameter, value) = match has_text {
        true => (", %q", "i32, !tfrt.string", ", %s: !tfrt.string", ", %t"),
        false => ("", "i32", "", ""),
    };
    let same = match has_text {
        true => "%q = \"t.same\"(%s) : (!tfrt.string) -> !tfrt.string",
        false => "",
    };
    let results = if has_text { "%r, %u" } else { "%r" };
    format!(
        "func.func @twice(%x: i32{parameter}) -> ({types}) attributes {{{a}}} {{
%y = tfrt.add.i32 %x, %x
{same}
tfrt.return %y{more} : {types}
}}
func.func @next(%x: i32{parameter}) -> ({types}) attributes {{{b}}} {{
%one = tfrt.constant.i32 1
%y = tfrt.add.i32 %x, %one
%z = \"t.unlucky\"(%y) : (i32) -> i32
{same}
tfrt.return %z{more} : {types}
}}
func.func @main(%x: i32) -> ({types}, i32) {{
%t = \"tfrt_test.get_string\"() {{value = \"text\"}} : () -> !tfrt.string
{results} = \"{kernel}\"(%x{value}) {{a = @twice, b = @next}} : ({types}) -> ({types})
%l = \"t.unlucky\"(%r) : (i32) -> i32
tfrt.return {results}, %l : {types}, i32
}}
"
    )
}

#[test]
fn loops_end_as_they_say_or_with_one_error_that_has_a_place() {
    let sync = "tfrt.sync";
    let too_many = |name: &str, n: usize| {
        format!(
            "function '{name}' takes {n} arguments, but is given {}",
            n + 1
        )
    };
    for has_text in [false, true] {
        let n = if has_text { 2 } else { 1 };
        let gives = format!("the kernel gave {} results where {n} are expected", n + 1);
        for attributes in [["", ""], [sync, ""], ["", sync], [sync, sync]] {
            for always_counts in [false, true] {
                // Turns are (x + 1) * 2, three times.
                for (kernel, argument, expected, line) in [
                    ("t.loop", 0, "14".to_owned(), ""),
                    ("t.loop", 3, "38".to_owned(), ""),
                    ("t.loop", 5, "thirteen".to_owned(), "t.unlucky m:9:6"),
                    ("t.loop", 12, "thirteen".to_owned(), "t.unlucky m:9:6"),
                    (
                        "t.panics",
                        0,
                        "the kernel panicked: between two turns".to_owned(),
                        "L",
                    ),
                    ("t.fails", 0, "no fourth turn".to_owned(), "L"),
                    ("t.gives_too_many", 0, too_many("twice", n), "L"),
                    ("t.ends_with_too_many", 0, gives.clone(), "L"),
                    ("t.cancels", 0, "Cancelled".to_owned(), ""),
                ] {
                    let text = text(kernel, attributes, has_text);
                    let what = format!("{always_counts} {argument} {text}");
                    let (shown, told) = run(&text, argument, always_counts);
                    let column = if has_text { 10 } else { 6 };
                    let line = match line {
                        "L" => format!("{kernel} m:15:{column}"),
                        line => line.to_owned(),
                    };
                    let lines: Vec<String> =
                        Some(line).filter(|l| !l.is_empty()).into_iter().collect();
                    assert_eq!(shown.first(), Some(&expected), "{what}");
                    assert_eq!(shown.last(), Some(&expected), "{what}");
                    assert_eq!(told, lines, "{what}");
                    if has_text {
                        // The first error ends all of a function marked synchronous.
                        let is_there = expected.parse::<i32>().is_ok()
                            || (expected == "thirteen" && attributes == ["", ""]);
                        assert_eq!(shown[1] == "text", is_there, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_loop_of_one_body_gives_it_as_many_values_as_it_takes() {
    for has_text in [false, true] {
        for always_counts in [false, true] {
            let n = if has_text { 2 } else { 1 };
            let text = text("t.gives_too_many", ["", ""], has_text);
            let text = text.replace("b = @next", "b = @twice");
            let (shown, told) = run(&text, 1, always_counts);
            let expected = format!(
                "function 'twice' takes {n} arguments, but is given {}",
                n + 1
            );
            assert_eq!(shown[0], expected, "{always_counts} {text}");
            assert_eq!(told.len(), 1, "{told:?}");
        }
    }
}

#[test]
fn errors_have_the_place_of_their_kernel_before_and_after_calls() {
    let text = "func.func @pair(%x: i32) -> (i32, i32) {
%a, %b = \"t.unlucky_pair\"(%x) : (i32) -> (i32, i32)
tfrt.return %a, %b : i32, i32
}
func.func @main(%x: i32) -> (i32, i32, i32, i32, i32) {
%a, %b = \"t.call\"(%x) {body = @pair} : (i32) -> (i32, i32)
%c = \"t.unlucky\"(%a) : (i32) -> i32
%d = \"t.call\"(%a) {body = @pair} : (i32) -> i32
%e, %f = \"t.call\"(%a, %a) {body = @pair} : (i32, i32) -> (i32, i32)
tfrt.return %a, %b, %c, %d, %e : i32, i32, i32, i32, i32
}
";
    let many = "function 'pair' takes 1 arguments, but is given 2";
    let wrong = "the kernel gave 2 results where 1 are expected";
    for always_counts in [false, true] {
        let (shown, mut told) = run(text, 4, always_counts);
        told.sort_unstable();
        assert_eq!(shown, ["4", "4", "4", wrong, many]);
        assert_eq!(told, ["t.call m:8:6", "t.call m:9:10"]);
        let (shown, mut told) = run(text, 13, always_counts);
        assert_eq!(shown, ["13", "thirteen", "thirteen", wrong, many]);
        told.sort_unstable();
        let expected = [
            "t.call m:8:6",
            "t.call m:9:10",
            "t.unlucky m:7:6",
            "t.unlucky_pair m:2:10",
            "t.unlucky_pair m:2:10",
        ];
        assert_eq!(told, expected);
    }
}

#[test]
fn operands_of_calls_live_until_these_have_returned() {
    let callee = |first: &str| {
        format!(
            "func.func @f(%h: !t.held) -> i32 {{
               {first}
               %a = \"t.look\"(%h) : (!t.held) -> i32
               %b = \"t.end\"(%a) : (i32) -> i32
               tfrt.return %b : i32
             }}
             func.func @same(%x: i32) -> i32 {{
               tfrt.return %x : i32
             }}\n"
        )
    };
    let once = "%r = \"t.call\"(%h) {body = @f} : (!t.held) -> i32";
    let looped = "%r, %k = tfrt.repeat.i32 %x, %x, %h : i32, !t.held {
      %a = \"t.call\"(%h) {body = @f} : (!t.held) -> i32
      tfrt.return %a, %h : i32, !t.held
    }";
    let before = "%o = \"t.call\"(%x) {body = @same} : (i32) -> i32
      %h = \"t.held\"(%o) : (i32) -> !t.held";
    let first = "%h = \"t.held\"(%x) : (i32) -> !t.held";
    for (made, call) in [
        (first, once),
        (first, looped),
        (before, once),
        (before, looped),
    ] {
        for always_counts in [false, true] {
            let text = format!(
                "{}func.func @main(%x: i32) -> i32 {{
                   {made}
                   {call}
                   tfrt.return %r : i32
                 }}",
                callee("")
            );
            let (shown, events) = run(&text, 1, always_counts);
            assert_eq!(shown, ["1"]);
            assert_eq!(events, ["ended", "dropped"], "{always_counts} {text}");
        }
    }
}
