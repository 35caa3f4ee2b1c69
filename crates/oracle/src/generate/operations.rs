//! Generation of operations that call nothing.

use super::{Generator, Scope, op};
use crate::program::{Form, Ty, Var};

impl Generator {
    /// Adds an operation, or a few that belong together.
    pub(super) fn step(&mut self, scope: &mut Scope) {
        if self.random.chance(self.failures) {
            return self.failing(scope);
        }
        let has_chain = scope.chain.is_some();
        match self.random.below(100) {
            0..22 => self.arithmetic(scope),
            22..31 => self.comparison(scope),
            31..43 => self.asynchronous(scope),
            43..58 if has_chain => self.print(scope),
            58..62 => self.several(scope),
            62..66 => self.passing(scope),
            66..69 => self.string(scope),
            69..72 if has_chain => self.counter(scope),
            72..73 if has_chain => self.resource(scope),
            73..81 => self.calling(scope),
            81..86 => self.branching(scope),
            86..90 => self.repeating(scope),
            90..92 => self.task(scope),
            92..94 => self.turning(scope),
            94..96 if has_chain => self.blocks(scope),
            96..99 => self.outside(scope),
            99 if !self.options.ordered => self.stray_print(scope),
            _ => self.arithmetic(scope),
        }
    }

    /// Adds a constant of a type.
    pub(super) fn constant(&mut self, scope: &mut Scope, ty: Ty) -> Var {
        let text = match ty {
            Ty::I1 => self.random.pick(&["0", "1", "true", "false"]).to_string(),
            Ty::I32 if self.random.chance(2) => self
                .random
                .pick(&["-2147483648", "2147483647", "0x10"])
                .to_string(),
            Ty::I64 if self.random.chance(2) => "-9223372036854775808".to_owned(),
            Ty::I32 | Ty::I64 => self.random.between(-50, 50).to_string(),
            Ty::F32 | Ty::F64 => self
                .random
                .pick(&["0.5", "-2.25", "3.0", "10.0", "0.125", "0.0", "1.0e+1"])
                .to_string(),
            _ => String::new(),
        };
        self.literal(scope, ty, &text)
    }

    /// Adds a constant that is written in some way.
    pub(super) fn literal(&mut self, scope: &mut Scope, ty: Ty, text: &str) -> Var {
        let name = match ty {
            Ty::Chain => "tfrt.new.chain",
            Ty::I1 => "tfrt.constant.i1",
            Ty::I32 => "tfrt.constant.i32",
            Ty::I64 => "tfrt.constant.i64",
            Ty::F32 => "tfrt.constant.f32",
            Ty::F64 => "tfrt.constant.f64",
            Ty::String | Ty::Atomic | Ty::Resource => return self.object(scope, ty),
        };
        self.one(scope, name, Form::Constant(text.to_owned()), &[], ty)
    }

    fn object(&mut self, scope: &mut Scope, ty: Ty) -> Var {
        let name = if ty == Ty::String {
            "tfrt_test.get_string"
        } else {
            "tfrt_test.atomic.create.i32"
        };
        let mut object = op(name, Form::Generic, &[]);
        if ty == Ty::String {
            let text = *self
                .random
                .pick(&["", "bark", "rarf", "a b", "\\22quoted\\22"]);
            object.attributes = format!("value = \"{text}\"");
        }
        self.add(scope, object, &[ty])[0]
    }

    /// Writes an operation either way.
    fn either(&mut self, form: Form) -> Form {
        if self.random.chance(50) {
            form
        } else {
            Form::Generic
        }
    }

    fn arithmetic(&mut self, scope: &mut Scope) {
        let (name, ty, pretty) = *self.random.pick(&[
            ("tfrt.add.i32", Ty::I32, true),
            ("tfrt.add.i64", Ty::I64, true),
            ("tfrt.add.f32", Ty::F32, true),
            ("tfrt.add.f64", Ty::F64, true),
            ("tfrt.mul.i32", Ty::I32, true),
            ("tfrt.mul.i64", Ty::I64, true),
            ("tfrt.minus.i32", Ty::I32, false),
            ("tfrt.minus.i64", Ty::I64, false),
            ("tfrt.multiply.f32", Ty::F32, false),
            ("tfrt.multiply.f64", Ty::F64, false),
            ("tfrt.minimum.f32", Ty::F32, false),
            ("tfrt.minimum.f64", Ty::F64, false),
            ("tfrt.div.i32", Ty::I32, true),
            ("tfrt.div.i64", Ty::I64, true),
        ]);
        let form = if pretty {
            self.either(Form::Operands)
        } else {
            Form::Generic
        };
        let mut operands = self.operands(scope, &[ty, ty]);
        if name.starts_with("tfrt.div") {
            // A divisor that may be zero is a kernel that may fail.
            if self.failures == 0 || self.random.chance(70) {
                let divisor = self.random.pick(&["2", "3", "-5", "7", "1"]).to_string();
                operands[1] = self.literal(scope, ty, &divisor);
            }
            self.add(scope, op(name, form, &operands), &[ty, ty]);
            return;
        }
        self.one(scope, name, form, &operands, ty);
    }

    fn comparison(&mut self, scope: &mut Scope) {
        const ALL: &[(&str, &[Ty], Ty, bool)] = &[
            ("tfrt.equal.i32", &[Ty::I32, Ty::I32], Ty::I1, true),
            ("tfrt.equal.i64", &[Ty::I64, Ty::I64], Ty::I1, true),
            ("tfrt.lessequal.i32", &[Ty::I32, Ty::I32], Ty::I1, false),
            ("tfrt.lessequal.i64", &[Ty::I64, Ty::I64], Ty::I1, false),
            ("tfrt.and.i1", &[Ty::I1, Ty::I1], Ty::I1, true),
            ("tfrt.cast.i64_to_f32", &[Ty::I64], Ty::F32, false),
            ("tfrt.cast.i64_to_f64", &[Ty::I64], Ty::F64, false),
            ("tfrt.cast.f32_to_i64", &[Ty::F32], Ty::I64, false),
            ("tfrt.cast.f64_to_i64", &[Ty::F64], Ty::I64, false),
        ];
        let (name, operands, result, pretty) = *self.random.pick(ALL);
        let form = if pretty {
            self.either(Form::Operands)
        } else {
            Form::Generic
        };
        let operands = self.operands(scope, operands);
        self.one(scope, name, form, &operands, result);
    }

    pub(super) fn asynchronous(&mut self, scope: &mut Scope) {
        if self.options.delays && self.options.faults && self.random.chance(15) {
            let operand = self.operand(scope, Ty::I32);
            let name = "tfrt_test.external";
            self.one(scope, name, Form::Generic, &[operand], Ty::I32);
            return;
        }
        if self.options.delays && self.random.chance(15) {
            let (name, ty) = *self.random.pick(&[
                ("tfrt_test.copy.with_delay.i32", Ty::I32),
                ("tfrt_test.copy.with_delay.i64", Ty::I64),
                ("tfrt_test.async_copy.with_delay.i32", Ty::I32),
                ("tfrt_test.async_copy.with_delay.i64", Ty::I64),
            ]);
            let operand = self.operand(scope, ty);
            self.one(scope, name, Form::Generic, &[operand], ty);
            return;
        }
        match self.random.below(5) {
            0 => {
                let mut constant = op("tfrt_test.async_constant.i32", Form::Generic, &[]);
                constant.attributes = format!("value = {} : i32", self.random.between(-9, 9));
                self.add(scope, constant, &[Ty::I32]);
            }
            1 => {
                let mut constant = op("tfrt_test.async_constant.i1", Form::Generic, &[]);
                constant.attributes = format!("value = {}", self.random.chance(50));
                self.add(scope, constant, &[Ty::I1]);
            }
            2 => {
                let name = ["tfrt_test.async_copy.i32", "tfrt_test.async_copy_2.i32"];
                let (name, operand) = (*self.random.pick(&name), self.operand(scope, Ty::I32));
                self.one(scope, name, Form::Generic, &[operand], Ty::I32);
            }
            _ => {
                let operands = self.operands(scope, &[Ty::I32, Ty::I32]);
                self.one(
                    scope,
                    "tfrt_test.async_add.i32",
                    Form::Generic,
                    &operands,
                    Ty::I32,
                );
            }
        }
    }

    fn print(&mut self, scope: &mut Scope) {
        let chain = scope.chain.expect("there is a chain");
        let (name, ty, pretty) = *self.random.pick(&[
            ("tfrt.print.i1", Ty::I1, true),
            ("tfrt.print.i32", Ty::I32, true),
            ("tfrt.print.i32", Ty::I32, true),
            ("tfrt.print.i64", Ty::I64, true),
            ("tfrt.print.f32", Ty::F32, true),
            ("tfrt.print.f64", Ty::F64, true),
            ("tfrt_test.print_string", Ty::String, false),
            ("tfrt_test.print_bool", Ty::I1, false),
            ("tfrt_test.print_hello", Ty::Chain, false),
        ]);
        let form = if pretty {
            self.either(Form::Operands)
        } else {
            Form::Generic
        };
        let operands = match name {
            "tfrt_test.print_hello" => vec![chain],
            "tfrt_test.print_bool" => vec![chain, self.operand(scope, ty)],
            _ => vec![self.operand(scope, ty), chain],
        };
        self.effect(scope, op(name, form, &operands), &[Ty::Chain]);
    }

    /// Adds a print that no chain orders.
    fn stray_print(&mut self, scope: &mut Scope) {
        let operand = self.operand(scope, Ty::I32);
        let chain = self.literal(scope, Ty::Chain, "");
        self.one(
            scope,
            "tfrt.print.i32",
            Form::Operands,
            &[operand, chain],
            Ty::Chain,
        );
    }

    /// Adds an operation with many operands or results.
    fn several(&mut self, scope: &mut Scope) {
        if self.random.chance(50) {
            let types = vec![Ty::I32; 1 + self.random.below(6)];
            let operands = self.operands(scope, &types);
            self.one(scope, "tfrt_test.sum", Form::Generic, &operands, Ty::I32);
            return;
        }
        let names = [
            ("tfrt_test.count3.i32", Ty::I32),
            ("tfrt_test.count3.i64", Ty::I64),
        ];
        let (name, ty) = *self.random.pick(&names);
        let (form, operand) = (self.either(Form::Operands), self.operand(scope, ty));
        self.add(scope, op(name, form, &[operand]), &[ty, ty, ty]);
    }

    /// Adds an operation that passes values on, or waits for them.
    fn passing(&mut self, scope: &mut Scope) {
        let types = self.scalars(1, 3);
        let mut operands = self.operands(scope, &types);
        let Some(chain) = scope.chain else {
            let name = *self
                .random
                .pick(&["tfrt_test.multi_arg_result", "tfrt_test.make_indirect"]);
            self.add(scope, op(name, Form::Generic, &operands), &types);
            return;
        };
        match self.random.below(4) {
            0 => {
                operands.insert(self.random.below(operands.len() + 1), chain);
                let form = self.either(Form::TypedOperands);
                self.effect(
                    scope,
                    op("tfrt.merge.chains", form, &operands),
                    &[Ty::Chain],
                );
            }
            1 => {
                operands.insert(0, chain);
                let as_chain = op("tfrt_test.as_chain", Form::Generic, &operands);
                self.effect(scope, as_chain, &[Ty::Chain]);
            }
            2 => {
                operands.insert(0, chain);
                self.add(
                    scope,
                    op("tfrt_test.identity", Form::Generic, &operands),
                    &types,
                );
            }
            _ => {
                let operands = [chain, operands[0]];
                self.one(
                    scope,
                    "tfrt.alias.value",
                    Form::Generic,
                    &operands,
                    types[0],
                );
            }
        }
    }

    fn string(&mut self, scope: &mut Scope) {
        // One of them is short: strings must not double in a loop.
        let operands = [
            self.operand(scope, Ty::String),
            self.constant(scope, Ty::String),
        ];
        match self.random.below(3) {
            0 => {
                self.constant(scope, Ty::String);
            }
            1 => {
                let result = Ty::I1;
                self.one(
                    scope,
                    "tfrt_test.string_equal",
                    Form::Generic,
                    &operands,
                    result,
                );
            }
            _ => {
                let result = Ty::String;
                self.one(
                    scope,
                    "tfrt_test.append_string",
                    Form::Generic,
                    &operands,
                    result,
                );
            }
        }
    }

    /// Adds an operation on a counter that others hold too.
    fn counter(&mut self, scope: &mut Scope) {
        let chain = scope.chain.expect("there is a chain");
        let counter = self.operand(scope, Ty::Atomic);
        match self.random.below(3) {
            0 => {
                let inc = op("tfrt_test.atomic.inc.i32", Form::Generic, &[counter, chain]);
                self.effect(scope, inc, &[Ty::Chain]);
            }
            1 => {
                let operands = [counter, self.operand(scope, Ty::I32), chain];
                let add = op("tfrt_test.atomic.add.i32", Form::Generic, &operands);
                self.effect(scope, add, &[Ty::Chain]);
            }
            _ => {
                let get = op("tfrt_test.atomic.get.i32", Form::Generic, &[counter, chain]);
                self.effect(scope, get, &[Ty::I32, Ty::Chain]);
            }
        }
    }

    /// Adds a resource, which is given back later.
    fn resource(&mut self, scope: &mut Scope) {
        let chain = scope.chain.expect("there is a chain");
        let allocate = op("tfrt_test.allocate_resource", Form::Generic, &[chain]);
        self.effect(scope, allocate, &[Ty::Resource, Ty::Chain]);
        let n_values = scope.values.len();
        // Only the one that gives it back may read it.
        let resource = scope.values.remove(n_values - 2);
        scope.resources.push(resource);
        if self.random.chance(30) {
            self.give_back(scope);
        }
    }

    /// Gives back the resources that are still held.
    pub(super) fn give_back(&mut self, scope: &mut Scope) {
        for resource in std::mem::take(&mut scope.resources) {
            let chain = scope.chain.expect("it was made after one");
            let operands = [resource, chain];
            let deallocate = op("tfrt_test.deallocate_resource", Form::Generic, &operands);
            self.effect(scope, deallocate, &[Ty::Chain]);
        }
    }

    fn failing(&mut self, scope: &mut Scope) {
        if self.options.faults && self.random.chance(40) {
            let name = *self.random.pick(&[
                "tfrt_test.panic",
                "tfrt_test.drop_promise",
                "tfrt_test.wrong_result_count",
            ]);
            self.one(scope, name, Form::Generic, &[], Ty::I32);
            return;
        }
        match (self.random.below(7), scope.chain) {
            (0 | 1, _) => {
                self.one(scope, "tfrt_test.fail", Form::Generic, &[], Ty::I32);
            }
            (2, _) => {
                let fail = op("tfrt_test.partial_fail", Form::Generic, &[]);
                self.add(scope, fail, &[Ty::I32, Ty::I32]);
            }
            (3, _) => {
                self.one(
                    scope,
                    "tfrt_test.report_error_async",
                    Form::Generic,
                    &[],
                    Ty::I32,
                );
            }
            (4, _) => {
                let names = [
                    "tfrt_test.report_error_concrete_async",
                    "tfrt_test.report_error_indirect_async",
                ];
                let name = *self.random.pick(&names);
                let operand = self.operand(scope, Ty::I32);
                self.one(scope, name, Form::Generic, &[operand], Ty::I32);
            }
            (5, Some(chain)) if self.random.chance(30) => {
                let fail = op("tfrt_test.error_chain", Form::Generic, &[chain]);
                self.effect(scope, fail, &[Ty::Chain]);
            }
            _ => {
                let zero = self.literal(scope, Ty::I64, "0");
                let operands = [self.operand(scope, Ty::I64), zero];
                let form = self.either(Form::Operands);
                self.add(
                    scope,
                    op("tfrt.div.i64", form, &operands),
                    &[Ty::I64, Ty::I64],
                );
            }
        }
    }

    /// Cancels the request when all before is done, and adds what is skipped.
    pub(super) fn cancel(&mut self, scope: &mut Scope) {
        let before = scope.ops.iter().flat_map(|op| op.results.iter().copied());
        let before: Vec<Var> = before
            .filter(|var| self.program.ty(*var) != Ty::Resource)
            .collect();
        let merge = op("tfrt.merge.chains", Form::TypedOperands, &before);
        self.effect(scope, merge, &[Ty::Chain]);
        let chain = scope.chain.expect("it was just made");
        self.effect(
            scope,
            op("tfrt_test.cancel", Form::Generic, &[chain]),
            &[Ty::I32, Ty::Chain],
        );
        scope.cancelled = true;
        let zero = scope.values[scope.values.len() - 2];
        for _ in 0..self.random.below(4) {
            let chain = scope.chain.expect("it was just made");
            if self.random.chance(50) {
                let print = op("tfrt.print.i32", Form::Operands, &[zero, chain]);
                self.effect(scope, print, &[Ty::Chain]);
            } else {
                self.one(
                    scope,
                    "tfrt.add.i32",
                    Form::Operands,
                    &[zero, zero],
                    Ty::I32,
                );
            }
        }
    }
}
