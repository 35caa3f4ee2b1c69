//! Random programs of reads, writes and prints over shared buffers, written without
//! chains, and what they print when they run from top to bottom.
//!
//! Buffers are the counters of `tfrt_test.atomic`. Every body, be it a function or a
//! region, takes buffers and numbers and returns a number and a buffer, so that
//! buffers come under many names. Copies made by tasks disturb the order in which
//! kernels become ready.

use std::fmt::Write as _;

use crate::random::Random;

/// A program and its output.
#[derive(Clone, Debug)]
pub struct Program {
    /// MLIR without chains; the function `main` has no arguments.
    pub text: String,
    /// What it prints, a line for each number.
    pub printed: String,
}

/// Makes the program of a seed, of about `size` operations in each body.
pub fn program(seed: u64, size: usize) -> Program {
    program_from(Random::new(seed), size)
}

/// Makes the program of some choices, or of what else numbers come from.
pub fn program_from(mut random: Random, size: usize) -> Program {
    let mut functions: Vec<Body> = Vec::new();
    for _ in 0..random.below(3) {
        let maker = Maker {
            random: &mut random,
            functions: &functions,
        };
        let function = maker.body(2, 1, size, 1);
        functions.push(function);
    }
    let maker = Maker {
        random: &mut random,
        functions: &functions,
    };
    let main = maker.body(0, 0, size, 2);
    let mut text = String::new();
    for (number, function) in functions.iter().enumerate() {
        write_function(&mut text, &format!("private @f{number}"), function);
    }
    write_function(&mut text, "@main", &main);
    let mut run = Run {
        functions: &functions,
        counters: Vec::new(),
        printed: String::new(),
    };
    run.body(&main, Vec::new(), Vec::new());
    Program {
        text,
        printed: run.printed,
    }
}

/// A function or region. Buffers and numbers are counted from 0, arguments first.
#[derive(Clone, Debug)]
struct Body {
    n_buffers: usize,
    n_numbers: usize,
    steps: Vec<Step>,
    number: usize,
    buffer: usize,
}

/// An operation; what it makes is the next number, the next buffer, or both.
#[derive(Clone, Debug)]
enum Step {
    Create,
    Constant(i32),
    Add {
        buffer: usize,
        number: usize,
    },
    Increase {
        buffer: usize,
    },
    Get {
        buffer: usize,
    },
    Print {
        number: usize,
    },
    Copy {
        number: usize,
    },
    Sum {
        a: usize,
        b: usize,
    },
    Call {
        function: usize,
        buffers: Vec<usize>,
        number: usize,
    },
    If {
        condition: bool,
        buffers: Vec<usize>,
        number: usize,
        branches: Box<[Body; 2]>,
    },
    Async {
        buffers: Vec<usize>,
        number: usize,
        body: Box<Body>,
    },
    Repeat {
        count: usize,
        buffer: usize,
        number: usize,
        body: Box<Body>,
    },
}

struct Maker<'a> {
    random: &'a mut Random,
    functions: &'a [Body],
}

impl Maker<'_> {
    fn body(mut self, n_buffers: usize, n_numbers: usize, size: usize, depth: usize) -> Body {
        self.make(n_buffers, n_numbers, size, depth)
    }

    fn make(&mut self, n_buffers: usize, n_numbers: usize, size: usize, depth: usize) -> Body {
        let (mut buffers, mut numbers) = (n_buffers, n_numbers);
        let mut steps = Vec::new();
        for at in 0..2 + self.random.below(size) {
            let step = match at {
                0 if buffers == 0 => Step::Create,
                1 if numbers == 0 => Step::Constant(self.random.between(0, 9)),
                _ if buffers == 0 || numbers == 0 => Step::Constant(1),
                _ => self.step(buffers, numbers, size, depth),
            };
            let (new_buffer, new_number) = makes(&step);
            buffers += usize::from(new_buffer);
            numbers += usize::from(new_number);
            steps.push(step);
        }
        if buffers == 0 {
            steps.push(Step::Create);
            buffers = 1;
        }
        Body {
            n_buffers,
            n_numbers,
            steps,
            number: self.random.below(numbers),
            buffer: self.random.below(buffers),
        }
    }

    fn step(&mut self, buffers: usize, numbers: usize, size: usize, depth: usize) -> Step {
        let buffer = self.random.below(buffers);
        let number = self.random.below(numbers);
        let inner = size.div_ceil(2);
        match self.random.below(if depth > 0 { 20 } else { 15 }) {
            0 => Step::Create,
            1..4 => Step::Add { buffer, number },
            4 | 5 => Step::Increase { buffer },
            6..9 => Step::Get { buffer },
            9..12 => Step::Print { number },
            12 | 13 => Step::Copy { number },
            14 => Step::Sum {
                a: number,
                b: self.random.below(numbers),
            },
            15 | 16 if !self.functions.is_empty() => Step::Call {
                function: self.random.below(self.functions.len()),
                buffers: vec![buffer, self.random.below(buffers)],
                number,
            },
            17 => {
                let buffers = self.distinct(buffers);
                let n_buffers = buffers.len();
                let mut branch = || self.make(n_buffers, 1, inner, depth - 1);
                let branches = Box::new([branch(), branch()]);
                Step::If {
                    condition: self.random.chance(50),
                    buffers,
                    number,
                    branches,
                }
            }
            18 => {
                let buffers = self.distinct(buffers);
                let body = Box::new(self.make(buffers.len(), 1, inner, depth - 1));
                Step::Async {
                    buffers,
                    number,
                    body,
                }
            }
            _ => Step::Repeat {
                count: self.random.below(4),
                buffer,
                number,
                body: Box::new(self.make_loop(inner, depth.saturating_sub(1))),
            },
        }
    }

    fn make_loop(&mut self, size: usize, depth: usize) -> Body {
        self.make(1, 1, size, depth)
    }

    /// One or two different buffers: operands of a region have different names.
    fn distinct(&mut self, buffers: usize) -> Vec<usize> {
        let first = self.random.below(buffers);
        let second = self.random.below(buffers);
        if first == second {
            return vec![first];
        }
        vec![first, second]
    }
}

/// Returns whether a step makes a buffer, and a number.
fn makes(step: &Step) -> (bool, bool) {
    match step {
        Step::Create => (true, false),
        Step::Constant(_) | Step::Get { .. } | Step::Copy { .. } | Step::Sum { .. } => {
            (false, true)
        }
        Step::Add { .. } | Step::Increase { .. } | Step::Print { .. } => (false, false),
        Step::Call { .. } | Step::If { .. } | Step::Async { .. } | Step::Repeat { .. } => {
            (true, true)
        }
    }
}

/// Names of what is in sight.
#[derive(Clone, Debug, Default)]
struct Names {
    buffers: Vec<String>,
    numbers: Vec<String>,
}

const COUNTER: &str = "!test.atomic.i32";

fn write_function(text: &mut String, name: &str, body: &Body) {
    let names = Names {
        buffers: (0..body.n_buffers).map(|i| format!("%b{i}")).collect(),
        numbers: (0..body.n_numbers).map(|i| format!("%n{i}")).collect(),
    };
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

fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes all text");
}

fn write_body(text: &mut String, body: &Body, mut names: Names, next: &mut usize) {
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
    let (number, buffer) = (&names.numbers[body.number], &names.buffers[body.buffer]);
    put(
        text,
        &format!("tfrt.return {number}, {buffer} : i32, {COUNTER}"),
    );
}

/// Operands of a region, numbers last, and their types.
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

/// A run from top to bottom.
struct Run<'a> {
    functions: &'a [Body],
    counters: Vec<i32>,
    printed: String,
}

impl Run<'_> {
    fn body(
        &mut self,
        body: &Body,
        mut buffers: Vec<usize>,
        mut numbers: Vec<i32>,
    ) -> (i32, usize) {
        for step in &body.steps {
            let (mut buffer, mut number) = (None, None);
            match step {
                Step::Create => {
                    buffer = Some(self.counters.len());
                    self.counters.push(0);
                }
                Step::Constant(value) => number = Some(*value),
                Step::Add {
                    buffer: b,
                    number: n,
                } => {
                    let counter = &mut self.counters[buffers[*b]];
                    *counter = counter.wrapping_add(numbers[*n]);
                }
                Step::Increase { buffer: b } => {
                    let counter = &mut self.counters[buffers[*b]];
                    *counter = counter.wrapping_add(1);
                }
                Step::Get { buffer: b } => number = Some(self.counters[buffers[*b]]),
                Step::Print { number: n } => {
                    put(&mut self.printed, &format!("int32 = {}", numbers[*n]))
                }
                Step::Copy { number: n } => number = Some(numbers[*n]),
                Step::Sum { a, b } => number = Some(numbers[*a].wrapping_add(numbers[*b])),
                Step::Call {
                    function,
                    buffers: b,
                    number: n,
                } => {
                    let passed = b.iter().map(|b| buffers[*b]).collect();
                    let functions = self.functions;
                    let (y, x) = self.body(&functions[*function], passed, vec![numbers[*n]]);
                    (number, buffer) = (Some(y), Some(x));
                }
                Step::If {
                    condition,
                    buffers: b,
                    number: n,
                    branches,
                } => {
                    let passed = b.iter().map(|b| buffers[*b]).collect();
                    let branch = &branches[usize::from(!condition)];
                    let (y, x) = self.body(branch, passed, vec![numbers[*n]]);
                    (number, buffer) = (Some(y), Some(x));
                }
                Step::Async {
                    buffers: b,
                    number: n,
                    body,
                } => {
                    let passed = b.iter().map(|b| buffers[*b]).collect();
                    let (y, x) = self.body(body, passed, vec![numbers[*n]]);
                    (number, buffer) = (Some(y), Some(x));
                }
                Step::Repeat {
                    count,
                    buffer: b,
                    number: n,
                    body,
                } => {
                    let (mut y, mut x) = (numbers[*n], buffers[*b]);
                    for _ in 0..*count {
                        (y, x) = self.body(body, vec![x], vec![y]);
                    }
                    (number, buffer) = (Some(y), Some(x));
                }
            }
            buffers.extend(buffer);
            numbers.extend(number);
        }
        (numbers[body.number], buffers[body.buffer])
    }
}
