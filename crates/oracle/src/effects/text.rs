//! The text of programs of effects.

use std::fmt::Write as _;

use super::{Body, Function, Kind, Step, makes};

/// The names that are in scope.
#[derive(Clone, Debug, Default)]
struct Names {
    buffers: Vec<String>,
    numbers: Vec<String>,
}

const COUNTER: &str = "!test.atomic.i32";

/// Writes functions and `main`.
pub(super) fn write(functions: &[Function], main: &Body) -> String {
    let mut text = String::new();
    for (number, function) in functions.iter().enumerate() {
        let name = format!("f{number}");
        match function.kind {
            Kind::Plain => write_function(&mut text, &format!("private @{name}"), &function.body),
            Kind::LoopBody => write_loop_body(&mut text, &name, &function.body),
            Kind::Recursive => write_recursive(&mut text, &name, &function.body),
        }
    }
    write_function(&mut text, "@main", main);
    text
}

/// Writes a body for loops: the iterations left are counted down, and the loop goes on while there
/// are some.
fn write_loop_body(text: &mut String, name: &str, body: &Body) {
    let types = format!("{COUNTER}, i32, i32");
    put(
        text,
        &format!(
            "func.func private @{name}(%b0: {COUNTER}, %n0: i32, %left: i32) -> ({types}, i1) {{"
        ),
    );
    let names = names_of(body);
    let (number, buffer) = write_steps(text, body, names, &mut 0);
    put(text, "%one = tfrt.constant.i32 1");
    put(
        text,
        "%less = \"tfrt.minus.i32\"(%left, %one) : (i32, i32) -> i32",
    );
    put(
        text,
        "%more = \"tfrt.lessequal.i32\"(%one, %less) : (i32, i32) -> i1",
    );
    put(
        text,
        &format!("tfrt.return {buffer}, {number}, %less, %more : {types}, i1"),
    );
    put(text, "}");
}

/// Writes a function that calls itself while there is something left.
fn write_recursive(text: &mut String, name: &str, body: &Body) {
    let arguments = format!("%b0: {COUNTER}, %b1: {COUNTER}, %n0: i32, %left: i32");
    let results = format!("(i32, {COUNTER})");
    put(
        text,
        &format!("func.func private @{name}({arguments}) -> {results} {{"),
    );
    let (number, _) = write_steps(text, body, names_of(body), &mut 0);
    let types = format!("{COUNTER}, {COUNTER}, i32, i32");
    // Operands of a region have different names; the sum is the number under a new one.
    put(text, "%zero = tfrt.constant.i32 0");
    put(text, &format!("%sum = tfrt.add.i32 {number}, %zero"));
    put(
        text,
        "%stop = \"tfrt.lessequal.i32\"(%left, %zero) : (i32, i32) -> i1",
    );
    put(
        text,
        &format!("%y, %x = tfrt.if %stop, %b0, %b1, %sum, %left : ({types}) -> {results} {{"),
    );
    put(text, &format!("tfrt.return %sum, %b0 : i32, {COUNTER}"));
    put(text, "} else {");
    put(text, "%one = tfrt.constant.i32 1");
    put(
        text,
        "%less = \"tfrt.minus.i32\"(%left, %one) : (i32, i32) -> i32",
    );
    put(
        text,
        &format!("%a, %b = tfrt.call @{name}(%b0, %b1, %sum, %less) : ({types}) -> {results}"),
    );
    put(text, "tfrt.print.i32 %a");
    put(text, &format!("tfrt.return %a, %b : i32, {COUNTER}"));
    put(text, "}");
    put(text, &format!("tfrt.return %y, %x : i32, {COUNTER}"));
    put(text, "}");
}

fn names_of(body: &Body) -> Names {
    Names {
        buffers: (0..body.n_buffers).map(|i| format!("%b{i}")).collect(),
        numbers: (0..body.n_numbers).map(|i| format!("%n{i}")).collect(),
    }
}

fn write_function(text: &mut String, name: &str, body: &Body) {
    let names = names_of(body);
    let buffers = names
        .buffers
        .iter()
        .map(|name| format!("{name}: {COUNTER}"));
    let numbers = names.numbers.iter().map(|name| format!("{name}: i32"));
    let arguments: Vec<String> = buffers.chain(numbers).collect();
    let arguments = arguments.join(", ");
    let mut next = 0;
    put(
        text,
        &format!("func.func {name}({arguments}) -> (i32, {COUNTER}) {{"),
    );
    write_body(text, body, names, &mut next);
    put(text, "}");
}

pub(super) fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes all text");
}

fn write_body(text: &mut String, body: &Body, names: Names, next: &mut usize) {
    let (number, buffer) = write_steps(text, body, names, next);
    put(
        text,
        &format!("tfrt.return {number}, {buffer} : i32, {COUNTER}"),
    );
}

/// Writes all of a body but its return; gives the names of its number and its buffer.
fn write_steps(
    text: &mut String,
    body: &Body,
    mut names: Names,
    next: &mut usize,
) -> (String, String) {
    for step in &body.steps {
        *next += 1;
        let (new_buffer, new_number) = (format!("%x{next}"), format!("%y{next}"));
        let buffer = |index: &usize| names.buffers[*index].clone();
        let number = |index: &usize| names.numbers[*index].clone();
        let inner = |buffers: &[usize], at: &usize| Names {
            buffers: buffers.iter().map(buffer).collect(),
            numbers: vec![number(at)],
        };
        match step {
            Step::Create => put(
                text,
                &format!("{new_buffer} = \"tfrt_test.atomic.create.i32\"() : () -> {COUNTER}"),
            ),
            Step::Constant(value) => {
                put(text, &format!("{new_number} = tfrt.constant.i32 {value}"))
            }
            Step::Add {
                buffer: b,
                number: n,
            } => put(
                text,
                &format!(
                    "\"tfrt_test.atomic.add.i32\"({}, {}) : ({COUNTER}, i32) -> ()",
                    buffer(b),
                    number(n)
                ),
            ),
            Step::Increase { buffer: b } => put(
                text,
                &format!(
                    "\"tfrt_test.atomic.inc.i32\"({}) : ({COUNTER}) -> ()",
                    buffer(b)
                ),
            ),
            Step::Get { buffer: b } => put(
                text,
                &format!(
                    "{new_number} = \"tfrt_test.atomic.get.i32\"({}) : ({COUNTER}) -> i32",
                    buffer(b)
                ),
            ),
            Step::Print { number: n } => put(text, &format!("tfrt.print.i32 {}", number(n))),
            Step::Copy { number: n } => put(
                text,
                &format!(
                    "{new_number} = \"tfrt_test.async_copy.i32\"({}) : (i32) -> i32",
                    number(n)
                ),
            ),
            Step::Sum { a, b } => put(
                text,
                &format!("{new_number} = tfrt.add.i32 {}, {}", number(a), number(b)),
            ),
            Step::Call {
                function,
                buffers,
                number: n,
            } => {
                let [a, b] = [buffer(&buffers[0]), buffer(&buffers[1])];
                put(
                    text,
                    &format!(
                        "{new_number}, {new_buffer} = tfrt.call @f{function}({a}, {b}, {}) : ({COUNTER}, {COUNTER}, i32) -> (i32, {COUNTER})",
                        number(n)
                    ),
                );
            }
            Step::Cond {
                condition,
                functions: [one, other],
                buffers,
                number: n,
            } => {
                let [a, b] = [buffer(&buffers[0]), buffer(&buffers[1])];
                put(text, &format!("%p{next} = tfrt.constant.i1 {condition}"));
                put(
                    text,
                    &format!(
                        "{new_number}, {new_buffer} = tfrt.cond %p{next} @f{one} @f{other} ({a}, {b}, {}) : ({COUNTER}, {COUNTER}, i32) -> (i32, {COUNTER})",
                        number(n)
                    ),
                );
            }
            Step::While {
                condition,
                function,
                buffer: b,
                number: n,
                n_turns,
                n_parallel,
            } => {
                let types = format!("({COUNTER}, i32, i32)");
                put(text, &format!("%p{next} = tfrt.constant.i1 {condition}"));
                put(text, &format!("%l{next} = tfrt.constant.i32 {n_turns}"));
                put(
                    text,
                    &format!(
                        "{new_buffer}, {new_number}, %z{next} = tfrt.while %p{next} @f{function}({}, {}, %l{next}) parallel_iterations({n_parallel}) : {types} -> {types}",
                        buffer(b),
                        number(n)
                    ),
                );
            }
            Step::Recurse {
                function,
                buffers,
                number: n,
                n_calls,
            } => {
                let [a, b] = [buffer(&buffers[0]), buffer(&buffers[1])];
                put(text, &format!("%l{next} = tfrt.constant.i32 {n_calls}"));
                put(
                    text,
                    &format!(
                        "{new_number}, {new_buffer} = tfrt.call @f{function}({a}, {b}, {}, %l{next}) : ({COUNTER}, {COUNTER}, i32, i32) -> (i32, {COUNTER})",
                        number(n)
                    ),
                );
            }
            Step::If {
                condition,
                buffers,
                number: n,
                branches,
            } => {
                let names = inner(buffers, n);
                let (operands, types) = operands(&names);
                put(text, &format!("%p{next} = tfrt.constant.i1 {condition}"));
                put(
                    text,
                    &format!(
                        "{new_number}, {new_buffer} = tfrt.if %p{next}, {operands} : ({types}) -> (i32, {COUNTER}) {{"
                    ),
                );
                write_body(text, &branches[0], names.clone(), next);
                put(text, "} else {");
                write_body(text, &branches[1], names, next);
                put(text, "}");
            }
            Step::Async {
                buffers,
                number: n,
                body,
            } => {
                let names = inner(buffers, n);
                let (operands, types) = operands(&names);
                put(
                    text,
                    &format!(
                        "{new_number}, {new_buffer} = tfrt_test.do.async {operands} : ({types}) -> (i32, {COUNTER}) {{"
                    ),
                );
                write_body(text, body, names, next);
                put(text, "}");
            }
            Step::Repeat {
                count,
                buffer: b,
                number: n,
                body,
            } => {
                let names = inner(std::slice::from_ref(b), n);
                put(text, &format!("%c{next} = tfrt.constant.i32 {count}"));
                put(
                    text,
                    &format!(
                        "{new_number}, {new_buffer} = tfrt.repeat.i32 %c{next}, {}, {} : i32, {COUNTER} {{",
                        names.numbers[0], names.buffers[0]
                    ),
                );
                write_body(text, body, names, next);
                put(text, "}");
            }
        }
        let (makes_buffer, makes_number) = makes(step);
        names.buffers.extend(makes_buffer.then_some(new_buffer));
        names.numbers.extend(makes_number.then_some(new_number));
    }
    let number = names.numbers[body.number].clone();
    (number, names.buffers[body.buffer].clone())
}

/// Returns the operands of a region, numbers last, and their types.
fn operands(names: &Names) -> (String, String) {
    let all: Vec<&str> = names
        .buffers
        .iter()
        .chain(&names.numbers)
        .map(String::as_str)
        .collect();
    let types = names.buffers.iter().map(|_| COUNTER);
    let types: Vec<&str> = types.chain(names.numbers.iter().map(|_| "i32")).collect();
    (all.join(", "), types.join(", "))
}
