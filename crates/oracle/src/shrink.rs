//! Shrinking: cuts a program down as long as it keeps a property.
//!
//! Steps are of one kind each and cheap to think of: drop a function, drop a
//! run of operations, put a region in place of its operation, drop an operand
//! or a result that may be missing, write a smaller constant. What reads a value
//! that is dropped reads an earlier one of its type, or a constant. Whether a
//! step leaves a program at all is for the property to say.

use std::collections::{HashMap, HashSet};

use crate::program::{Body, Form, Op, Program, Ty, Var};

/// Returns a small program that still has a property that `program` has.
///
/// Asks for the property `n_tries` times at most.
///
/// # Examples
///
/// ```
/// use tfrt_oracle::{generate::{Options, generate}, shrink::shrink};
///
/// let program = generate(7, Options::default());
/// let small = shrink(&program, 2_000, &mut |program| program.to_string().contains("i64"));
/// assert!(small.to_string().len() < program.to_string().len());
/// ```
pub fn shrink(
    program: &Program,
    n_tries: usize,
    has_property: &mut dyn FnMut(&Program) -> bool,
) -> Program {
    let mut search = Search {
        best: program.clone(),
        n_tries,
        has_property,
    };
    while search.round() {}
    search.best
}

/// The smallest program found so far.
struct Search<'p> {
    best: Program,
    n_tries: usize,
    has_property: &'p mut dyn FnMut(&Program) -> bool,
}

impl Search<'_> {
    /// Tries each kind of step everywhere; returns whether one was taken.
    fn round(&mut self) -> bool {
        let mut taken = self.drop_functions();
        taken |= self.plain_attributes();
        let mut index = 0;
        // Bodies appear and vanish as steps are taken.
        while index < n_bodies(&self.best) {
            taken |= self.drop_ops(index);
            taken |= self.unwrap_regions(index);
            taken |= self.drop_operands(index);
            taken |= self.drop_results(index);
            taken |= self.smaller_constants(index);
            index += 1;
        }
        taken && self.n_tries > 0
    }

    /// Takes a step if the property survives it.
    fn attempt(&mut self, step: impl FnOnce(&mut Program)) -> bool {
        if self.n_tries == 0 {
            return false;
        }
        self.n_tries -= 1;
        let mut candidate = self.best.clone();
        step(&mut candidate);
        let better = (self.has_property)(&candidate);
        if better {
            self.best = candidate;
        }
        better
    }

    fn drop_functions(&mut self) -> bool {
        let mut taken = false;
        for index in (0..self.best.functions.len()).rev() {
            taken |= self.attempt(|program| {
                program.functions.remove(index);
            });
        }
        taken
    }

    fn plain_attributes(&mut self) -> bool {
        let mut taken =
            !self.best.attributes.is_empty() && self.attempt(|program| program.attributes.clear());
        for index in 0..self.best.functions.len() {
            let function = &self.best.functions[index];
            if function.attributes.contains("cost") || function.attributes.contains("merge") {
                taken |= self.attempt(|program| program.functions[index].attributes.clear());
            }
        }
        taken
    }

    fn drop_ops(&mut self, body: usize) -> bool {
        let mut taken = false;
        let mut length = n_ops(&self.best, body);
        while length > 0 {
            let mut end = n_ops(&self.best, body);
            while end > 0 {
                let start = end.saturating_sub(length);
                taken |= self.attempt(|program| cut(program, body, start, end));
                end = start;
            }
            length /= 2;
        }
        taken
    }

    fn unwrap_regions(&mut self, body: usize) -> bool {
        let mut taken = false;
        for index in (0..n_ops(&self.best, body)).rev() {
            let n_regions = with_body(&mut self.best, body, |body| body.ops[index].bodies.len());
            for region in 0..n_regions {
                if self.attempt(|program| unwrap(program, body, index, region)) {
                    taken = true;
                    break;
                }
            }
        }
        taken
    }

    fn drop_operands(&mut self, body: usize) -> bool {
        let mut taken = false;
        for index in 0..n_ops(&self.best, body) {
            let n_operands = with_body(&mut self.best, body, |body| {
                let op = &body.ops[index];
                let variadic = ["tfrt.merge.chains", "tfrt_test.as_chain", "tfrt_test.sum"];
                if variadic.contains(&op.name.as_str()) {
                    op.operands.len()
                } else {
                    0
                }
            });
            for operand in (0..n_operands).rev() {
                taken |= self.attempt(|program| {
                    with_body(program, body, |body| {
                        body.ops[index].operands.remove(operand)
                    });
                });
            }
        }
        taken
    }

    fn drop_results(&mut self, body: usize) -> bool {
        let mut taken = false;
        let n_results = with_body(&mut self.best, body, |body| body.results.len());
        for result in (0..n_results).rev() {
            taken |= self.attempt(|program| {
                with_body(program, body, |body| body.results.remove(result));
            });
        }
        taken
    }

    fn smaller_constants(&mut self, body: usize) -> bool {
        let mut taken = false;
        for index in 0..n_ops(&self.best, body) {
            let form = with_body(&mut self.best, body, |body| body.ops[index].form.clone());
            let small: &[&str] = match &form {
                Form::Constant(text) if text.contains('.') => &["0.5"],
                Form::Constant(text) if text.parse().is_ok_and(|number: i128| number > 1) => {
                    &["1", "2"]
                }
                Form::Constant(text) if text.parse().is_ok_and(|number: i128| number < -1) => {
                    &["-1"]
                }
                _ => &[],
            };
            for text in small.iter().map(|&text| Form::Constant(text.to_owned())) {
                if text == form {
                    break;
                }
                let step = |program: &mut Program| {
                    with_body(program, body, |body| body.ops[index].form = text);
                };
                if self.attempt(step) {
                    taken = true;
                    break;
                }
            }
        }
        taken
    }
}

fn n_bodies(program: &Program) -> usize {
    let mut n_bodies = 0;
    for function in &program.functions {
        function.body.for_each(&mut |_| n_bodies += 1);
    }
    n_bodies
}

fn n_ops(program: &Program, body: usize) -> usize {
    let (mut at, mut n_ops) = (0, 0);
    for function in &program.functions {
        function.body.for_each(&mut |each| {
            if at == body {
                n_ops = each.ops.len();
            }
            at += 1;
        });
    }
    n_ops
}

/// Does something with the body of a number, counted from the outside in.
fn with_body<R>(program: &mut Program, body: usize, work: impl FnOnce(&mut Body) -> R) -> R {
    let mut left = body;
    let mut bodies = program
        .functions
        .iter_mut()
        .map(|function| &mut function.body);
    let found = bodies.find_map(|each| nth(each, &mut left));
    work(found.expect("there are that many bodies"))
}

fn nth<'b>(body: &'b mut Body, left: &mut usize) -> Option<&'b mut Body> {
    if *left == 0 {
        return Some(body);
    }
    *left -= 1;
    let mut regions = body.ops.iter_mut().flat_map(|op| &mut op.bodies);
    regions.find_map(|region| nth(region, left))
}

/// Drops a run of operations; who reads their results reads something else.
fn cut(program: &mut Program, body: usize, start: usize, end: usize) {
    let mut taken = with_body(program, body, std::mem::take);
    let dropped: Vec<Op> = taken.ops.drain(start..end).collect();
    let made: HashSet<Var> = dropped
        .iter()
        .flat_map(|op| op.results.iter().copied())
        .collect();
    let mut names = HashMap::new();
    for var in reads(&taken).into_iter().filter(|var| made.contains(var)) {
        if names.contains_key(&var) {
            continue;
        }
        let ty = program.ty(var);
        let earlier = taken
            .parameters
            .iter()
            .chain(taken.ops[..start].iter().flat_map(|op| &op.results));
        let substitute = earlier.copied().rfind(|&var| program.ty(var) == ty);
        let substitute = substitute.unwrap_or_else(|| {
            let (op, var) = constant(program, ty);
            taken.ops.insert(start, op);
            var
        });
        names.insert(var, substitute);
    }
    rename(&mut taken, &names);
    with_body(program, body, |body| *body = taken);
}

/// Puts the operations of a region in place of the operation around it.
fn unwrap(program: &mut Program, body: usize, index: usize, region: usize) {
    let mut taken = with_body(program, body, std::mem::take);
    let mut op = taken.ops.remove(index);
    let inner = op.bodies.swap_remove(region);
    let n_alone = op.operands.len().saturating_sub(inner.parameters.len());
    let mut names: HashMap<Var, Var> = inner
        .parameters
        .iter()
        .copied()
        .zip(op.operands.iter().skip(n_alone).copied())
        .collect();
    let mut unwrapped = Body {
        parameters: Vec::new(),
        ops: inner.ops,
        results: inner.results,
    };
    rename(&mut unwrapped, &names);
    names = op
        .results
        .iter()
        .copied()
        .zip(unwrapped.results.iter().copied())
        .collect();
    taken.ops.splice(index..index, unwrapped.ops);
    rename(&mut taken, &names);
    with_body(program, body, |body| *body = taken);
}

/// Returns the values that a body reads, regions not seen into.
fn reads(body: &Body) -> Vec<Var> {
    let operands = body.ops.iter().flat_map(|op| op.operands.iter());
    operands.chain(&body.results).copied().collect()
}

/// Replaces the values that a body reads.
fn rename(body: &mut Body, names: &HashMap<Var, Var>) {
    let operands = body.ops.iter_mut().flat_map(|op| op.operands.iter_mut());
    for var in operands.chain(&mut body.results) {
        if let Some(&name) = names.get(var) {
            *var = name;
        }
    }
}

/// Makes an operation without operands that gives a value of a type.
fn constant(program: &mut Program, ty: Ty) -> (Op, Var) {
    let var = program.var(ty);
    let written = |text: &str| Form::Constant(text.to_owned());
    let (name, form, attributes) = match ty {
        Ty::Chain => ("tfrt.new.chain", written(""), ""),
        Ty::I1 => ("tfrt.constant.i1", written("1"), ""),
        Ty::I32 => ("tfrt.constant.i32", written("1"), ""),
        Ty::I64 => ("tfrt.constant.i64", written("1"), ""),
        Ty::F32 => ("tfrt.constant.f32", written("0.5"), ""),
        Ty::F64 => ("tfrt.constant.f64", written("0.5"), ""),
        Ty::String => ("tfrt_test.get_string", Form::Generic, "value = \"\""),
        Ty::Atomic => ("tfrt_test.atomic.create.i32", Form::Generic, ""),
        // There is no such constant; the property will not hold.
        Ty::Resource => ("tfrt_test.allocate_resource", Form::Generic, ""),
    };
    let op = Op {
        name: name.to_owned(),
        form,
        operands: Vec::new(),
        results: vec![var],
        attributes: attributes.to_owned(),
        bodies: Vec::new(),
    };
    (op, var)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{evaluate, generate};

    /// Shrinks a program that has to print one number to a minimal one.
    #[test]
    fn only_what_the_property_needs_is_left() {
        let prints = |program: &Program| {
            let source = tfrt_ir::Source::new("test.mlir", program.to_string());
            let module = tfrt_ir::parse(&source)
                .ok()
                .filter(|module| tfrt_ir::verify(module).is_ok());
            let report = module.and_then(|module| {
                let limits = evaluate::Limits {
                    steps: 100_000,
                    ..Default::default()
                };
                evaluate::run(&module, limits).ok()
            });
            report.is_some_and(|report| report.stdout.contains("int32 = "))
        };
        let seeds = 0..40;
        let programs = seeds.map(|seed| generate::generate(seed, generate::Options::default()));
        let program = programs
            .into_iter()
            .find(prints)
            .expect("one of forty prints a number");
        let small = shrink(&program, 10_000, &mut |program| prints(program));
        let n_lines = small.to_string().lines().count();
        assert!(n_lines <= 12, "{small}");
    }
}
