//! Random programs that end, and whose output is determined.
//!
//! A program has a few functions that call each other downwards, or themselves
//! with less fuel, and a few without arguments that are run. Each effect takes
//! the chain of the one before, in calls and regions too; so the evaluator's
//! order is the only one. Everything else is left to run in any order:
//! asynchronous operations, failures that nobody reads, values returned twice.
//!
//! A seed and the [`Options`] determine the program.

mod control;
mod functions;
mod operations;

use crate::{
    program::{Body, Form, Op, Program, Ty, Var},
    random::Random,
};

/// The options of generated programs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of operations of a function, about.
    pub size: usize,
    /// The most functions that others call; of those that are run, and of synchronous ones, there are about half as
    /// many.
    pub functions: usize,
    /// Whether each effect is ordered; else some lines may come in any order.
    pub ordered: bool,
    /// Whether operations occur that take milliseconds.
    pub delays: bool,
    /// Whether operations occur that fail, and requests are cancelled.
    pub failures: bool,
    /// Whether some of these failures are faults of kernels, which a host must survive: they panic, drop
    /// their promise or give a wrong number of results. With `delays`, values come from threads that
    /// belong to nobody, too.
    pub faults: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            size: 16,
            functions: 4,
            ordered: true,
            delays: false,
            failures: true,
            faults: false,
        }
    }
}

/// Makes the program of a seed.
///
/// # Examples
///
/// ```
/// use tfrt_oracle::generate::{Options, generate};
///
/// let text = generate(1, Options::default()).to_string();
/// assert_eq!(text, generate(1, Options::default()).to_string());
/// assert!(text.contains("func.func @main0"));
/// ```
pub fn generate(seed: u64, options: Options) -> Program {
    generate_from(Random::new(seed), options)
}

/// Makes a program from a source of random numbers, or choices.
pub fn generate_from(mut random: Random, options: Options) -> Program {
    // Two thirds of the programs have nothing that fails on purpose.
    let failures = match options.failures {
        // As many in a small program as in a large one: what becomes of several shows more.
        true if options.size < 5 => *random.pick(&[0, 0, 0, 0, 10, 30]),
        true => *random.pick(&[0, 0, 0, 0, 2, 8]),
        false => 0,
    };
    let mut generator = Generator {
        random,
        program: Program::default(),
        options,
        failures,
        callees: Vec::new(),
        loops: Vec::new(),
        blocks: Vec::new(),
        synchronous: Vec::new(),
        natives: Vec::new(),
        n_names: 0,
    };
    generator.module();
    generator.program
}

/// The signature of a function that can be called.
#[derive(Clone, Debug)]
struct Signature {
    name: String,
    parameters: Vec<Ty>,
    results: Vec<Ty>,
    /// The parameter that bounds its recursion.
    fuel: Option<usize>,
    /// The number of operations that a call runs, about.
    cost: u64,
}

impl Signature {
    fn takes_chain(&self) -> bool {
        self.parameters.first() == Some(&Ty::Chain)
    }
}

/// The state of a program's generation.
struct Generator {
    random: Random,
    program: Program,
    options: Options,
    /// The per cent of operations that may fail.
    failures: u32,
    callees: Vec<Signature>,
    /// The bodies of `tfrt.while`: their last results are a count and a condition.
    loops: Vec<Signature>,
    /// The bodies of `tfrt.parallel_call.i32`.
    blocks: Vec<Signature>,
    synchronous: Vec<Signature>,
    natives: Vec<Signature>,
    n_names: usize,
}

/// A body that is being made.
struct Scope {
    parameters: Vec<Var>,
    ops: Vec<Op>,
    /// The values that may be read.
    values: Vec<Var>,
    /// The chain that the next effect comes after.
    chain: Option<Var>,
    /// The resources that are to be given back.
    resources: Vec<Var>,
    /// The number of regions around the body.
    depth: usize,
    /// Whether the request was cancelled: operations made from here on may or may not run.
    cancelled: bool,
    /// The number of operations that the body runs, about.
    cost: u64,
}

/// The most operations of one run of a function.
const MAX_COST: u64 = 2_000;

impl Generator {
    /// Opens a body with parameters.
    fn scope(&mut self, parameters: &[Ty], depth: usize) -> Scope {
        let parameters = self.program.vars(parameters);
        let chain = parameters
            .iter()
            .copied()
            .find(|&var| self.program.ty(var) == Ty::Chain);
        let values = parameters.clone();
        Scope {
            parameters,
            ops: Vec::new(),
            values,
            chain,
            resources: Vec::new(),
            cancelled: false,
            depth,
            cost: 0,
        }
    }

    /// Closes a body with results of some types, the chain first.
    fn close(&mut self, mut scope: Scope, results: &[Ty]) -> (Body, u64) {
        self.give_back(&mut scope);
        let results = results
            .iter()
            .map(|&ty| self.operand(&mut scope, ty))
            .collect();
        let Scope {
            parameters,
            ops,
            cost,
            ..
        } = scope;
        (
            Body {
                parameters,
                ops,
                results,
            },
            cost,
        )
    }

    /// Makes a body with about so many operations.
    fn fill(&mut self, scope: &mut Scope, n_ops: usize) {
        for _ in 0..n_ops {
            self.step(scope);
        }
    }

    /// Returns a number of operations for a body in so many regions.
    fn n_ops(&mut self, depth: usize) -> usize {
        let size = self.options.size;
        1 + self.random.below(size.max(1)) + if depth == 0 { size / 2 } else { 0 }
    }

    /// Returns a value of a type: one that is there, or a new one.
    fn operand(&mut self, scope: &mut Scope, ty: Ty) -> Var {
        if ty == Ty::Chain {
            return match scope.chain {
                Some(chain) => chain,
                None => self.one(
                    scope,
                    "tfrt.new.chain",
                    Form::Constant(String::new()),
                    &[],
                    ty,
                ),
            };
        }
        let fitting: Vec<Var> = scope
            .values
            .iter()
            .copied()
            .filter(|&var| self.program.ty(var) == ty)
            .collect();
        let new = ty != Ty::Atomic && !scope.cancelled && self.random.chance(12);
        if fitting.is_empty() || new {
            return self.constant(scope, ty);
        }
        // The latest are read most, so that programs are deep, not only wide.
        let recent = fitting.len().saturating_sub(4);
        match self.random.chance(60) {
            true => *self.random.pick(&fitting[recent..]),
            false => *self.random.pick(&fitting),
        }
    }

    fn operands(&mut self, scope: &mut Scope, types: &[Ty]) -> Vec<Var> {
        types.iter().map(|&ty| self.operand(scope, ty)).collect()
    }

    /// Adds an operation and returns its results.
    fn add(&mut self, scope: &mut Scope, mut op: Op, results: &[Ty]) -> Vec<Var> {
        let results = self.program.vars(results);
        op.results.clone_from(&results);
        scope.ops.push(op);
        scope.values.extend(&results);
        scope.cost += 1;
        results
    }

    /// Adds an operation with one result.
    fn one(
        &mut self,
        scope: &mut Scope,
        name: &str,
        form: Form,
        operands: &[Var],
        result: Ty,
    ) -> Var {
        self.add(scope, op(name, form, operands), &[result])[0]
    }

    /// Adds an operation that moves the chain on and maybe has other results
    /// before it.
    fn effect(&mut self, scope: &mut Scope, op: Op, results: &[Ty]) {
        let made = self.add(scope, op, results);
        let chain = made
            .into_iter()
            .rev()
            .find(|&var| self.program.ty(var) == Ty::Chain);
        scope.chain = chain.or(scope.chain);
    }

    fn scalar(&mut self) -> Ty {
        *self.random.pick(&[
            Ty::I32,
            Ty::I32,
            Ty::I32,
            Ty::I64,
            Ty::I64,
            Ty::I1,
            Ty::F32,
            Ty::F64,
            Ty::String,
        ])
    }

    fn scalars(&mut self, first: usize, last: usize) -> Vec<Ty> {
        let n = first + self.random.below(last - first + 1);
        (0..n).map(|_| self.scalar()).collect()
    }

    fn name(&mut self, stem: &str) -> String {
        self.n_names += 1;
        format!("{stem}{}", self.n_names - 1)
    }
}

/// Makes an operation without results, attributes and regions.
fn op(name: &str, form: Form, operands: &[Var]) -> Op {
    Op {
        name: name.to_owned(),
        form,
        operands: operands.to_vec(),
        results: Vec::new(),
        attributes: String::new(),
        bodies: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
