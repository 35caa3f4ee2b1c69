//! The execution of programs of effects, from top to bottom.

use super::{Body, Function, Step, text::put};

/// Returns the output of a program.
pub(super) fn run(functions: &[Function], main: &Body) -> String {
    let mut run = Run {
        functions,
        counters: Vec::new(),
        printed: String::new(),
    };
    run.body(main, Vec::new(), Vec::new());
    run.printed
}

/// A run from top to bottom.
struct Run<'a> {
    functions: &'a [Function],
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
                    let body = &functions[*function].body;
                    let (y, x) = self.body(body, passed, vec![numbers[*n]]);
                    (number, buffer) = (Some(y), Some(x));
                }
                Step::Cond {
                    condition,
                    functions: [one, other],
                    buffers: b,
                    number: n,
                } => {
                    let functions = self.functions;
                    let passed = b.iter().map(|b| buffers[*b]).collect();
                    let body = &functions[if *condition { *one } else { *other }].body;
                    let (y, x) = self.body(body, passed, vec![numbers[*n]]);
                    (number, buffer) = (Some(y), Some(x));
                }
                Step::While {
                    condition,
                    function,
                    buffer: b,
                    number: n,
                    n_turns,
                    ..
                } => {
                    let functions = self.functions;
                    let (mut y, mut x) = (numbers[*n], buffers[*b]);
                    // The condition is looked at behind each turn: there is one at least.
                    let n_turns = if *condition { (*n_turns).max(1) } else { 0 };
                    for _ in 0..n_turns {
                        (y, x) = self.body(&functions[*function].body, vec![x], vec![y]);
                    }
                    (number, buffer) = (Some(y), Some(x));
                }
                Step::Recurse {
                    function,
                    buffers: b,
                    number: n,
                    n_calls,
                } => {
                    let functions = self.functions;
                    let passed: Vec<usize> = b.iter().map(|b| buffers[*b]).collect();
                    let mut y = numbers[*n];
                    for _ in 0..=*n_calls {
                        let body = &functions[*function].body;
                        (y, _) = self.body(body, passed.clone(), vec![y]);
                    }
                    // Each call but the last prints what the last one gave.
                    for _ in 0..*n_calls {
                        put(&mut self.printed, &format!("int32 = {y}"));
                    }
                    (number, buffer) = (Some(y), Some(passed[0]));
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
