//! Generation of operations that call functions and regions.

use super::{Generator, MAX_COST, Scope, Signature, functions::call, op};
use crate::program::{Body, Form, Ty, Var};

/// The most regions inside of one another.
const MAX_DEPTH: usize = 3;

impl Generator {
    /// Returns a function that may be called here, if there is one.
    fn callable(&mut self, scope: &Scope) -> Option<Signature> {
        let fits = |callee: &&Signature| {
            scope.cost + callee.cost < MAX_COST && (!callee.takes_chain() || scope.chain.is_some())
        };
        let callees: Vec<&Signature> = self.callees.iter().filter(fits).collect();
        if callees.is_empty() {
            return None;
        }
        Some((*self.random.pick(&callees)).clone())
    }

    /// Returns operands for a call: little fuel, the chain where one is taken.
    fn call_operands(&mut self, scope: &mut Scope, callee: &Signature) -> Vec<Var> {
        let mut operands = self.operands(scope, &callee.parameters);
        if let Some(fuel) = callee.fuel {
            let count = self.random.below(6).to_string();
            operands[fuel] = self.literal(scope, Ty::I32, &count);
        }
        operands
    }

    pub(super) fn calling(&mut self, scope: &mut Scope) {
        let Some(callee) = self.callable(scope) else {
            return self.branching(scope);
        };
        let operands = self.call_operands(scope, &callee);
        scope.cost += callee.cost;
        let like_it = |other: &&Signature| {
            other.parameters == callee.parameters && other.results == callee.results
        };
        let alike: Vec<Signature> = self.callees.iter().filter(like_it).cloned().collect();
        let operation = match self.random.below(10) {
            0 | 1 if callee.fuel.is_none() => {
                let condition = self.operand(scope, Ty::I1);
                let other = self.random.pick(&alike).name.clone();
                let before = format!("@{} @{other} ", callee.name);
                self.choice("tfrt.cond", condition, before, &operands)
            }
            2 if callee.fuel.is_none() => {
                let index = self
                    .random
                    .below(alike.len() + usize::from(self.failures > 0));
                let index = self.literal(scope, Ty::I32, &index.to_string());
                let names: Vec<_> = alike
                    .iter()
                    .map(|callee| format!("@{}", callee.name))
                    .collect();
                self.choice(
                    "tfrt.case",
                    index,
                    format!("[{}] ", names.join(", ")),
                    &operands,
                )
            }
            3 if scope.chain.is_some() && callee.takes_chain() && scope.depth == 0 => {
                let (before, after) = (format!("@{}", callee.name), String::new());
                op(
                    "tfrt.once",
                    Form::Call {
                        first: false,
                        before,
                        after,
                    },
                    &operands,
                )
            }
            // Without effects it shows nowhere which operand it starts with.
            4 if !callee.takes_chain() && !operands.is_empty() => {
                let (before, after) = (format!("@{}", callee.name), " {bef.nonstrict}".to_owned());
                op(
                    "tfrt.call",
                    Form::Call {
                        first: false,
                        before,
                        after,
                    },
                    &operands,
                )
            }
            _ => call(&callee.name, &operands),
        };
        let ordered = callee.takes_chain();
        let made = self.add(scope, operation, &callee.results);
        if ordered {
            scope.chain = made.first().copied();
        }
    }

    fn choice(
        &self,
        name: &str,
        selector: Var,
        before: String,
        operands: &[Var],
    ) -> crate::program::Op {
        let form = Form::Call {
            first: true,
            before,
            after: String::new(),
        };
        op(name, form, &[&[selector], operands].concat())
    }

    /// Returns the types of values to pass into a region, the chain first.
    fn passed(&mut self, scope: &Scope) -> Vec<Ty> {
        let mut types = self.scalars(0, 3);
        if scope.chain.is_some() && self.random.chance(85) {
            types.insert(0, Ty::Chain);
        }
        types
    }

    /// Makes a region; one in regions is short.
    fn region(&mut self, scope: &Scope, parameters: &[Ty], results: &[Ty]) -> (Body, u64) {
        let mut inner = self.scope(parameters, scope.depth + 1);
        inner.cost = scope.cost;
        let n_ops = self.random.below(2 + self.options.size / (2 + scope.depth));
        self.fill(&mut inner, n_ops);
        let (body, cost) = self.close(inner, results);
        (body, cost - scope.cost)
    }

    fn is_deep(&self, scope: &Scope) -> bool {
        scope.depth >= MAX_DEPTH || scope.cost > MAX_COST / 2
    }

    pub(super) fn branching(&mut self, scope: &mut Scope) {
        if self.is_deep(scope) {
            return;
        }
        let parameters = self.passed(scope);
        let mut results = self.scalars(0, 3);
        let ordered = parameters.first() == Some(&Ty::Chain);
        if ordered {
            results.insert(0, Ty::Chain);
        }
        let condition = self.operand(scope, Ty::I1);
        let operands = self.operands(scope, &parameters);
        let (then, one) = self.region(scope, &parameters, &results);
        let (other, two) = self.region(scope, &parameters, &results);
        scope.cost += one.max(two);
        let mut branch = op(
            "tfrt.if",
            Form::Region,
            &[&[condition], operands.as_slice()].concat(),
        );
        branch.bodies = vec![then, other];
        let made = self.add(scope, branch, &results);
        if ordered {
            scope.chain = made.first().copied();
        }
    }

    pub(super) fn repeating(&mut self, scope: &mut Scope) {
        if self.is_deep(scope) {
            return;
        }
        let types = self.passed(scope);
        let (region, cost) = self.region(scope, &types, &types);
        let count = match self.random.below(20) {
            0 => 40,
            1 if cost < 5 => 100,
            _ => self.random.below(6),
        };
        let count = if cost * 40 > MAX_COST {
            count.min(2)
        } else {
            count
        };
        scope.cost += cost * u64::try_from(count).expect("it is small");
        let count = self.literal(scope, Ty::I32, &count.to_string());
        let operands = self.operands(scope, &types);
        let mut repeat = op(
            "tfrt.repeat.i32",
            Form::Repeat,
            &[&[count], operands.as_slice()].concat(),
        );
        repeat.bodies = vec![region];
        self.looped(scope, repeat, &types);
    }

    /// Adds a loop whose results are its values.
    fn looped(&mut self, scope: &mut Scope, operation: crate::program::Op, types: &[Ty]) {
        let made = self.add(scope, operation, types);
        if types.first() == Some(&Ty::Chain) {
            scope.chain = made.first().copied();
        }
    }

    pub(super) fn task(&mut self, scope: &mut Scope) {
        if self.is_deep(scope) {
            return;
        }
        let parameters = self.passed(scope);
        let results = match parameters.first() {
            Some(Ty::Chain) => [&[Ty::Chain], self.scalars(0, 2).as_slice()].concat(),
            _ => self.scalars(0, 2),
        };
        let operands = self.operands(scope, &parameters);
        let (region, cost) = self.region(scope, &parameters, &results);
        scope.cost += cost;
        let mut task = op("tfrt_test.do.async", Form::Region, &operands);
        task.bodies = vec![region];
        self.looped(scope, task, &results);
    }

    pub(super) fn turning(&mut self, scope: &mut Scope) {
        let fits = |body: &&Signature| {
            scope.cost + 6 * body.cost < MAX_COST && (!body.takes_chain() || scope.chain.is_some())
        };
        let bodies: Vec<Signature> = self.loops.iter().filter(fits).cloned().collect();
        if bodies.is_empty() {
            return self.repeating(scope);
        }
        let body = self.random.pick(&bodies).clone();
        let condition = match self.random.chance(70) {
            true => self.literal(scope, Ty::I1, "true"),
            false => self.operand(scope, Ty::I1),
        };
        let mut operands = self.operands(scope, &body.parameters);
        let count = self.random.between(-1, 5).to_string();
        *operands.last_mut().expect("there is a count") = self.literal(scope, Ty::I32, &count);
        let parallel = self.random.pick(&[1, 1, 4, 10]);
        let (before, after) = (
            format!("@{}", body.name),
            format!(" parallel_iterations({parallel})"),
        );
        let form = Form::Call {
            first: true,
            before,
            after,
        };
        let operands = [&[condition], operands.as_slice()].concat();
        scope.cost += 6 * body.cost;
        self.looped(scope, op("tfrt.while", form, &operands), &body.parameters);
    }

    /// Makes a body for blocks of a range: two numbers, a chain, a counter.
    pub(super) fn block(&mut self, parameters: &[Ty]) -> (Body, u64) {
        let mut scope = self.scope(parameters, MAX_DEPTH);
        let chain = scope.chain.take();
        for _ in 0..self.random.below(4) {
            self.step(&mut scope);
        }
        scope.chain = chain;
        for _ in 0..1 + self.random.below(2) {
            let chain = scope.chain.expect("it was given one");
            let counter = scope.parameters[3];
            let operands = [counter, self.operand(&mut scope, Ty::I32), chain];
            let add = op("tfrt_test.atomic.add.i32", Form::Generic, &operands);
            self.effect(&mut scope, add, &[Ty::Chain]);
        }
        self.close(scope, &[Ty::Chain])
    }

    pub(super) fn blocks(&mut self, scope: &mut Scope) {
        if self.is_deep(scope) {
            return;
        }
        let start = self.random.between(-3, 3);
        let end = start + self.random.between(0, 12);
        let bounds = [start, end, self.random.between(1, 4)];
        let mut operands: Vec<Var> = bounds
            .iter()
            .map(|bound| self.literal(scope, Ty::I32, &bound.to_string()))
            .collect();
        operands.extend(self.operands(scope, &[Ty::Chain, Ty::Atomic]));
        let (form, bodies, cost) = match self.blocks.first().cloned() {
            Some(body) if self.random.chance(50) => {
                (Form::Range(Some(body.name.clone())), Vec::new(), body.cost)
            }
            _ => {
                let parameters = [Ty::I32, Ty::I32, Ty::Chain, Ty::Atomic];
                let (body, cost) = self.block(&parameters);
                (Form::Range(None), vec![body], cost)
            }
        };
        scope.cost += 13 * cost;
        let name = match form {
            Form::Range(Some(_)) => "tfrt.parallel_call.i32",
            _ => "tfrt.parallel_for.i32",
        };
        let mut range = op(name, form, &operands);
        range.bodies = bodies;
        self.effect(scope, range, &[Ty::Chain]);
    }

    /// Adds a call of a function that is no graph: synchronous or native.
    pub(super) fn outside(&mut self, scope: &mut Scope) {
        let sync = !self.synchronous.is_empty() && self.random.chance(60);
        if sync {
            let callee = self.random.pick(&self.synchronous).clone();
            let name = match (callee.results.len(), self.random.chance(50)) {
                (1, true) => "tfrt_test.invoke_sync_function.i32_i32.i32",
                (1, false) => "tfrt_test.sync_function_runner.i32_i32.i32",
                (_, true) => "tfrt_test.invoke_sync_function.i32_i32.i32_i32",
                (_, false) => "tfrt_test.sync_function_runner.i32_i32.i32_i32",
            };
            let operands = self.operands(scope, &callee.parameters);
            let mut invoke = op(name, Form::Generic, &operands);
            invoke.attributes = format!("fn = @{}", callee.name);
            self.add(scope, invoke, &callee.results);
            return;
        }
        if self.natives.is_empty() {
            return self.asynchronous(scope);
        }
        let callee = self.random.pick(&self.natives).clone();
        let operands = self.operands(scope, &callee.parameters);
        self.add(scope, call(&callee.name, &operands), &callee.results);
    }
}
