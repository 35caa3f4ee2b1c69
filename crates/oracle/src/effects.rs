//! Random programs of reads, writes and prints over shared buffers, written without
//! chains, and what they print when they run from top to bottom.
//!
//! Buffers are the counters of `tfrt_test.atomic`. Every body, be it a function or a
//! region, takes buffers and numbers and returns a number and a buffer, so that
//! buffers come under many names. Copies made by tasks disturb the order in which
//! kernels become ready. Functions are called as they are, as one of two, as turns of
//! a loop, and by themselves.

mod run;
mod text;

use crate::random::Random;

/// A program and its output.
#[derive(Clone, Debug)]
pub struct Program {
    /// The text, MLIR without chains; the function `main` has no arguments.
    pub text: String,
    /// The expected output, a line for each number.
    pub printed: String,
}

/// Makes the program of a seed, of about `size` operations in each body.
pub fn program(seed: u64, size: usize) -> Program {
    program_from(Random::new(seed), size)
}

/// Makes a program from a source of random numbers, or choices.
pub fn program_from(mut random: Random, size: usize) -> Program {
    let mut functions: Vec<Function> = Vec::new();
    for _ in 0..random.below(5) {
        let kind = *random.pick(&[Kind::Plain, Kind::Plain, Kind::LoopBody, Kind::Recursive]);
        let mut maker = Maker {
            random: &mut random,
            functions: &functions,
        };
        let body = match kind {
            Kind::Plain => maker.make(2, 1, size, 1),
            // What runs more than once is short, and calls nothing.
            Kind::LoopBody => maker.make(1, 1, size.div_ceil(2), 0),
            Kind::Recursive => maker.make(2, 1, size.div_ceil(2), 0),
        };
        functions.push(Function { kind, body });
    }
    let mut maker = Maker {
        random: &mut random,
        functions: &functions,
    };
    let main = maker.make(0, 0, size, 2);
    Program {
        text: text::write(&functions, &main),
        printed: run::run(&functions, &main),
    }
}

/// A function that is called by name.
#[derive(Clone, Debug)]
struct Function {
    kind: Kind,
    body: Body,
}

/// The way in which a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A plain function: takes two buffers and a number, returns a number and a buffer.
    Plain,
    /// The body of a loop: takes a buffer, a number and the iterations left, returns these and
    /// whether to go on.
    LoopBody,
    /// A recursive function: takes the operands of a plain one and the calls left. It calls itself
    /// when its body is done, prints the number that this returns, and returns that; the last call
    /// returns its own number and its first buffer.
    Recursive,
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

/// An operation; its result is the next number, the next buffer, or both.
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
        buffers: [usize; 2],
        number: usize,
    },
    /// Calls one of two functions.
    Cond {
        condition: bool,
        functions: [usize; 2],
        buffers: [usize; 2],
        number: usize,
    },
    While {
        condition: bool,
        function: usize,
        buffer: usize,
        number: usize,
        n_turns: usize,
        n_parallel: usize,
    },
    Recurse {
        function: usize,
        buffers: [usize; 2],
        number: usize,
        n_calls: usize,
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
    functions: &'a [Function],
}

impl Maker<'_> {
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
        match self.random.below(if depth > 0 { 24 } else { 15 }) {
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
            15..20 if !self.functions.is_empty() => self.call(buffers, numbers),
            15..=20 => {
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
            21 => {
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

    /// Calls a function as its kind wants it.
    fn call(&mut self, buffers: usize, numbers: usize) -> Step {
        let function = self.random.below(self.functions.len());
        let number = self.random.below(numbers);
        let mut buffer = || self.random.below(buffers);
        let buffers = [buffer(), buffer()];
        let kind = self.functions[function].kind;
        match kind {
            Kind::Plain => {
                let plain: Vec<usize> = (0..self.functions.len())
                    .filter(|&at| self.functions[at].kind == Kind::Plain)
                    .collect();
                if self.random.chance(60) {
                    return Step::Call {
                        function,
                        buffers,
                        number,
                    };
                }
                Step::Cond {
                    condition: self.random.chance(50),
                    functions: [function, *self.random.pick(&plain)],
                    buffers,
                    number,
                }
            }
            Kind::LoopBody => Step::While {
                condition: self.random.chance(80),
                function,
                buffer: buffers[0],
                number,
                n_turns: self.random.below(4),
                n_parallel: *self.random.pick(&[1, 4]),
            },
            Kind::Recursive => Step::Recurse {
                function,
                buffers,
                number,
                n_calls: self.random.below(4),
            },
        }
    }

    fn make_loop(&mut self, size: usize, depth: usize) -> Body {
        self.make(1, 1, size, depth)
    }

    /// Returns one or two different buffers: operands of a region have different names.
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
        Step::Call { .. }
        | Step::Cond { .. }
        | Step::While { .. }
        | Step::Recurse { .. }
        | Step::If { .. }
        | Step::Async { .. }
        | Step::Repeat { .. } => (true, true),
    }
}
