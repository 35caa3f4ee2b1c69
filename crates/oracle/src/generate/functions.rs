//! Generation of functions of all kinds, and of the module around them.

use super::{Generator, Scope, Signature, op};
use crate::program::{Body, Form, Function, Ty, Var};

impl Generator {
    pub(super) fn module(&mut self) {
        self.module_attributes();
        self.natives();
        let functions = self.options.functions;
        for _ in 0..self.random.below(1 + functions / 2) {
            self.synchronous();
        }
        for _ in 0..self.random.below(1 + functions) {
            match self.random.below(10) {
                0 | 1 => self.loop_body(),
                2 => self.block_body(),
                3 | 4 => self.recursion(),
                _ => self.callee(),
            }
        }
        for _ in 0..1 + self.random.below(1 + functions / 2) {
            self.main();
        }
        if !self.synchronous.is_empty() && self.random.chance(30) {
            self.synchronous_main();
        }
    }

    fn module_attributes(&mut self) {
        self.program.attributes = self.stream_attributes(40);
    }

    /// Returns options of the assignment of streams, or nothing.
    fn stream_attributes(&mut self, percent: u32) -> String {
        let mut attributes = Vec::new();
        if self.random.chance(percent) {
            let threshold = self.random.pick(&[1, 2, 4, 10, 100]);
            attributes.push(format!("tfrt.cost_threshold = {threshold} : i64"));
        }
        if self.random.chance(percent / 4) {
            let threshold = self.random.pick(&[2, 8, 50]);
            attributes.push(format!("tfrt.upper_cost_threshold = {threshold} : i64"));
        }
        if self.random.chance(percent / 4) {
            attributes.push("tfrt.merge_inter_dependent_streams = true".to_owned());
        }
        attributes.join(", ")
    }

    fn function(&mut self, name: &str, attributes: String, body: Body) {
        let native = attributes == "tfrt.native";
        self.program.functions.push(Function {
            name: name.to_owned(),
            attributes,
            body,
            native,
        });
    }

    fn natives(&mut self) {
        let all: [(&str, &[Ty], &[Ty]); 5] = [
            ("native_add", &[Ty::I32, Ty::I32], &[Ty::I32]),
            ("native_async_add", &[Ty::I32, Ty::I32], &[Ty::I32]),
            ("native_sink", &[Ty::I32, Ty::I64], &[]),
            ("native_async_sink", &[Ty::I32, Ty::I1], &[Ty::Chain]),
            ("native_error", &[], &[Ty::I32]),
        ];
        for (name, parameters, results) in all {
            if self.random.chance(12) && (name != "native_error" || self.failures > 0) {
                let body = Body {
                    parameters: self.program.vars(parameters),
                    ops: Vec::new(),
                    results: self.program.vars(results),
                };
                self.function(name, "tfrt.native".to_owned(), body);
                let (parameters, results) = (parameters.to_vec(), results.to_vec());
                let name = name.to_owned();
                let signature = Signature {
                    name,
                    parameters,
                    results,
                    fuel: None,
                    cost: 1,
                };
                self.natives.push(signature);
            }
        }
    }

    /// Makes a function that may be called with anything.
    fn callee(&mut self) {
        let previous = self
            .callees
            .iter()
            .rev()
            .find(|callee| callee.fuel.is_none())
            .cloned();
        // Some have the same type, so that they are branches of one operation.
        let (parameters, results) = match previous {
            Some(callee) if self.random.chance(40) => (callee.parameters, callee.results),
            _ => {
                let mut parameters = self.scalars(0, 3);
                let mut results = self.scalars(0, 3);
                if self.random.chance(70) {
                    parameters.insert(0, Ty::Chain);
                    results.insert(0, Ty::Chain);
                    if self.random.chance(15) {
                        parameters.push(Ty::Atomic);
                    }
                } else if results.is_empty() {
                    results.push(Ty::I32);
                }
                (parameters, results)
            }
        };
        let mut scope = self.scope(&parameters, 0);
        let n_ops = self.n_ops(0);
        self.fill(&mut scope, n_ops);
        let (body, cost) = self.close(scope, &results);
        let name = self.name("callee");
        let attributes = self.stream_attributes(15);
        self.function(&name, attributes, body);
        self.callees.push(Signature {
            name,
            parameters,
            results,
            fuel: None,
            cost,
        });
    }

    /// Makes a function that calls itself with less and less fuel.
    fn recursion(&mut self) {
        let name = self.name("recursive");
        let mut parameters = vec![Ty::Chain, Ty::I32];
        parameters.extend(self.scalars(0, 2));
        let results = [&[Ty::Chain], &parameters[2..]].concat();
        let mut scope = self.scope(&parameters, 0);
        let fuel = scope.parameters[1];
        let n_ops = self.n_ops(1);
        self.fill(&mut scope, n_ops);
        let zero = self.literal(&mut scope, Ty::I32, "0");
        let stop = self.one(
            &mut scope,
            "tfrt.lessequal.i32",
            Form::Generic,
            &[fuel, zero],
            Ty::I1,
        );
        let rest: Vec<Var> = parameters[2..]
            .iter()
            .map(|&ty| self.operand(&mut scope, ty))
            .collect();
        let mut operands = vec![scope.chain.expect("it was given one"), fuel];
        operands.extend(rest);

        let mut end = self.scope(&parameters, 1);
        let n_ops = self.random.below(3);
        self.fill(&mut end, n_ops);
        let (end, _) = self.close(end, &results);

        let mut deeper = self.scope(&parameters, 1);
        let n_calls = if self.random.chance(20) { 2 } else { 1 };
        let one = self.literal(&mut deeper, Ty::I32, "1");
        let less = [deeper.parameters[1], one];
        let less = self.one(&mut deeper, "tfrt.minus.i32", Form::Generic, &less, Ty::I32);
        for _ in 0..n_calls {
            let mut operands = self.operands(&mut deeper, &parameters);
            operands[1] = less;
            self.effect(&mut deeper, call(&name, &operands), &results);
        }
        let (deeper, cost) = self.close(deeper, &results);

        let mut branch = op(
            "tfrt.if",
            Form::Region,
            &[&[stop], operands.as_slice()].concat(),
        );
        branch.bodies = vec![end, deeper];
        self.effect(&mut scope, branch, &results);
        let cost = (scope.cost + cost) * if n_calls == 2 { 32 } else { 6 };
        let (body, _) = self.close(scope, &results);
        let attributes = self.stream_attributes(15);
        self.function(&name, attributes, body);
        self.callees.push(Signature {
            name,
            parameters,
            results,
            fuel: Some(1),
            cost,
        });
    }

    /// Makes a body for `tfrt.while`: values and a count, and whether to go on.
    fn loop_body(&mut self) {
        let name = self.name("turn");
        let mut parameters = self.scalars(0, 2);
        if self.random.chance(80) {
            parameters.insert(0, Ty::Chain);
        }
        parameters.push(Ty::I32);
        let mut scope = self.scope(&parameters, 0);
        let count = *scope.parameters.last().expect("there is a count");
        let n_ops = self.n_ops(1);
        self.fill(&mut scope, n_ops);
        let one = self.literal(&mut scope, Ty::I32, "1");
        let left = self.one(
            &mut scope,
            "tfrt.minus.i32",
            Form::Generic,
            &[count, one],
            Ty::I32,
        );
        let mut more = self.one(
            &mut scope,
            "tfrt.lessequal.i32",
            Form::Generic,
            &[one, left],
            Ty::I1,
        );
        if self.random.chance(25) {
            let other = self.operand(&mut scope, Ty::I1);
            more = self.one(
                &mut scope,
                "tfrt.and.i1",
                Form::Operands,
                &[more, other],
                Ty::I1,
            );
        }
        let values = parameters[..parameters.len() - 1].to_vec();
        let (mut body, cost) = self.close(scope, &values);
        body.results.extend([left, more]);
        let attributes = self.stream_attributes(15);
        self.function(&name, attributes, body);
        let results = [parameters.as_slice(), &[Ty::I1]].concat();
        self.loops.push(Signature {
            name,
            parameters,
            results,
            fuel: None,
            cost,
        });
    }

    /// Makes a function for blocks of a range, which may only add up.
    fn block_body(&mut self) {
        let name = self.name("block");
        let parameters = vec![Ty::I32, Ty::I32, Ty::Chain, Ty::Atomic];
        let (body, cost) = self.block(&parameters);
        self.function(&name, String::new(), body);
        let results = vec![Ty::Chain];
        self.blocks.push(Signature {
            name,
            parameters,
            results,
            fuel: None,
            cost,
        });
    }

    /// Makes a synchronous function of two numbers.
    fn synchronous(&mut self) {
        let name = self.name("synchronous");
        let results = if self.random.chance(50) {
            vec![Ty::I32]
        } else {
            vec![Ty::I32; 2]
        };
        let parameters = vec![Ty::I32, Ty::I32];
        let body = self.synchronous_body(&parameters, results.len());
        self.function(&name, "tfrt.sync".to_owned(), body);
        self.synchronous.push(Signature {
            name,
            parameters,
            results,
            fuel: None,
            cost: 4,
        });
    }

    fn synchronous_main(&mut self) {
        let name = self.name("synchronous");
        let n_results = self.random.below(3);
        let body = self.synchronous_body(&[], n_results);
        self.function(&name, "tfrt.sync".to_owned(), body);
    }

    fn synchronous_body(&mut self, parameters: &[Ty], n_results: usize) -> Body {
        let mut scope = self.scope(parameters, 0);
        for _ in 0..1 + self.random.below(6) {
            let number = self.random.between(-20, 20);
            let mut constant = op("tfrt.constant_s.i32", Form::Generic, &[]);
            constant.attributes = format!("value = {number} : i32");
            self.add(&mut scope, constant, &[Ty::I32]);
            if self.random.chance(self.failures) {
                self.one(&mut scope, "tfrt_test.fail_s", Form::Generic, &[], Ty::I32);
            }
            let fitting = scope.values.clone();
            let operands = [*self.random.pick(&fitting), *self.random.pick(&fitting)];
            let name =
                *self
                    .random
                    .pick(&["tfrt.add_s.i32", "tfrt.mul_s.i32", "tfrt_test.sync_sum"]);
            self.one(&mut scope, name, Form::Generic, &operands, Ty::I32);
        }
        // What it returns is no argument, and nothing twice.
        let made = scope.values[parameters.len()..]
            .iter()
            .rev()
            .take(n_results)
            .copied();
        let results = made.collect();
        let Scope {
            parameters, ops, ..
        } = scope;
        Body {
            parameters,
            ops,
            results,
        }
    }

    /// Makes a function without arguments, which is run.
    fn main(&mut self) {
        let name = self.name("main");
        let mut scope = self.scope(&[], 0);
        let pure = self.random.chance(8);
        if !pure {
            let chain = self.operand(&mut scope, Ty::Chain);
            scope.chain = Some(chain);
        }
        let n_ops = self.n_ops(0);
        self.fill(&mut scope, n_ops);
        if !pure && self.options.ordered && self.options.failures && self.random.chance(8) {
            self.cancel(&mut scope);
        }
        let mut results = self.scalars(usize::from(pure), 3);
        if scope.cancelled {
            let there: Vec<Ty> = scope
                .values
                .iter()
                .map(|&var| self.program.ty(var))
                .collect();
            results.retain(|ty| there.contains(ty));
        }
        if !pure {
            results.insert(0, Ty::Chain);
        }
        if self.random.chance(4) {
            // Nobody waits for it, but the queue is emptied.
            results.clear();
        }
        let (mut body, _) = self.close(scope, &results);
        if self.random.chance(20) && !body.results.is_empty() {
            let again = *self.random.pick(&body.results);
            body.results.push(again);
        }
        let attributes = self.stream_attributes(15);
        self.function(&name, attributes, body);
    }
}

/// Makes a call of a function.
pub(super) fn call(name: &str, operands: &[Var]) -> crate::program::Op {
    let (before, after) = (format!("@{name}"), String::new());
    op(
        "tfrt.call",
        Form::Call {
            first: false,
            before,
            after,
        },
        operands,
    )
}
