//! [`Typed`]: programs of pointwise steps (row `pointwise`) as kernels, whose PTX is put together here.
//!
//! A kernel calculates one element a thread: it loads an element of each input, takes it through the steps in registers,
//! and stores the result. The code of each function is that which NVRTC has compiled ahead (`kernels/functions.cu`, by the
//! formulas of the kernels of single rows), copied into the kernel with registers and labels of its own ([`functions`]). So
//! results are those of the rows one after the other to the bit, no compiler is needed where a program runs, and a simulated
//! GPU interprets the text that a real one translates.
//!
//! Numbers of half precision are `f32` in registers, and rounded behind each step. Truth values are 0 or 1.

mod functions;

use std::collections::BTreeSet;
use std::fmt::Write;

use half::{bf16, f16};
use smallvec::SmallVec;
use tfrt_host::{DType, Error};
use tfrt_tensor::math::pointwise::{Operand, PointwiseProgram, Step, StepTypes};

use functions::{Function, function};

/// The text that the code of functions is copied from.
#[cfg(test)]
pub(crate) const FUNCTIONS: &str = functions::TEXT;

/// The name of the kernel in its module.
pub(crate) const NAME: &str = "program";

/// A program for inputs of certain types.
#[derive(Debug)]
pub(crate) struct Typed {
    steps: Vec<(Step, StepTypes)>,
    inputs: SmallVec<[DType; 4]>,
}

/// The way in which a kernel finds an input's element for one of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Access {
    /// The input lies as the result does.
    Plain,
    /// By steps along the dimensions whose bits are set, the outermost first; along the others it is repeated.
    Steps(u32),
}

/// The number of dimensions, and how each input is read: a program has a kernel for each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    pub(crate) rank: usize,
    pub(crate) inputs: SmallVec<[Access; 4]>,
}

impl Layout {
    /// Returns whether some input is read by steps, for which the extents are needed.
    pub(crate) fn has_steps(&self) -> bool {
        let by_steps = |access: &Access| !matches!(access, Access::Plain | Access::Steps(0));
        self.inputs.iter().any(by_steps)
    }
}

/// Returns whether programs take or give elements of a type.
pub(crate) fn has_type(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::Bf16 | DType::I1)
}

impl Typed {
    /// Reads a program, its steps parted by `; `, and finds the types of its steps.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for what is no program of inputs of these types; `Unimplemented` for types and functions that no
    /// kernel on GPUs calculates.
    pub(crate) fn new(text: &str, inputs: &[DType]) -> Result<Typed, Error> {
        let program = PointwiseProgram::parse(inputs.len(), text)?;
        let types = program.types(inputs)?;
        let all = inputs.iter().copied();
        let mut all = all.chain(types.iter().flat_map(|step| [step.takes, step.gives]));
        if let Some(other) = all.find(|dtype| !has_type(*dtype)) {
            return Err(Error::unimplemented(format!(
                "no program on GPUs calculates with {other}"
            )));
        }
        let typed = Typed {
            steps: program.steps().iter().copied().zip(types).collect(),
            inputs: inputs.into(),
        };
        for (step, types) in &typed.steps {
            if !is_plain(step, types.takes) && function_of(step).is_none() {
                return Err(Error::unimplemented(format!(
                    "no program on GPUs has '{}' of {}",
                    step.name(),
                    types.takes
                )));
            }
        }
        Ok(typed)
    }

    /// Returns the type of the result.
    pub(crate) fn gives(&self) -> DType {
        self.steps
            .last()
            .map_or(DType::F32, |(_, types)| types.gives)
    }

    /// Returns the types of the inputs.
    pub(crate) fn inputs(&self) -> &[DType] {
        &self.inputs
    }

    /// Returns the text of the module with the kernel for a layout. Its parameters are the addresses of the result and of
    /// each input, the number of elements, if inputs are read by steps all extents but the outermost, and the steps of
    /// each input, outermost first, where they are not 0.
    pub(crate) fn ptx(&self, layout: &Layout) -> String {
        let mut text = Text::default();
        text.line("mov.u32 %i1, %ctaid.x;");
        text.line("mov.u32 %i2, %ntid.x;");
        text.line("mov.u32 %i3, %tid.x;");
        text.line("mad.lo.s32 %i0, %i1, %i2, %i3;");
        text.parameter("u64", "out");
        for input in 0..self.inputs.len() {
            text.parameter("u64", &format!("in{input}"));
        }
        text.parameter("u32", "n");
        text.line("ld.param.u32 %i1, [n];");
        text.line("setp.ge.u32 %p0, %i0, %i1;");
        text.line("@%p0 bra $end;");
        if layout.has_steps() {
            text.places(layout.rank);
        }
        for (input, (dtype, access)) in self.inputs.iter().zip(&layout.inputs).enumerate() {
            text.load(input, *dtype, *access, layout.rank);
        }
        for (number, (step, types)) in self.steps.iter().enumerate() {
            text.step(number, step, *types, self);
        }
        text.store(self.steps.len() - 1, self.gives());
        text.line("$end:");
        text.line("ret;");
        text.module(self, layout)
    }

    /// Returns the register with an operand of a step; `None` for a number.
    fn register(&self, operand: &Operand) -> Option<String> {
        match operand {
            Operand::Input(input) => {
                Some(format!("{}{input}", input_register(self.inputs[*input])))
            }
            Operand::Step(step) => {
                let (_, types) = &self.steps[*step];
                Some(format!("{}{step}", step_register(types.gives)))
            }
            Operand::Number(_) => None,
        }
    }
}

/// The family of registers of inputs of a type: numbers, or truth values.
fn input_register(dtype: DType) -> &'static str {
    match dtype {
        DType::I1 => "%ib",
        _ => "%if",
    }
}

fn step_register(dtype: DType) -> &'static str {
    match dtype {
        DType::I1 => "%sb",
        _ => "%sf",
    }
}

/// Returns whether a step is an instruction or a few, for elements of a type, and no function.
fn is_plain(step: &Step, takes: DType) -> bool {
    let on_truth = ["not", "and", "or", "xor", "eq", "ne"];
    match step {
        Step::Cast(..) | Step::Select(_) => true,
        _ => step.name() == "identity" || takes == DType::I1 && on_truth.contains(&step.name()),
    }
}

/// Returns the function of a step, if there is one.
fn function_of(step: &Step) -> Option<&'static Function> {
    let found = function(step.name())?;
    let fits = match (step, found.n_parameters()) {
        // One without parameters, or with two, of which a step states one, two or none.
        (Step::Parametric(..), n) => n == 1 || n == 3,
        (Step::Unary(..), n) => n == 1 || has_defaults(step),
        (Step::Binary(..), n) => n == 2,
        (Step::Select(_) | Step::Cast(..), _) => false,
    };
    fits.then_some(found)
}

/// Returns whether a step is that of a function with parameters, which are 1.
fn has_defaults(step: &Step) -> bool {
    matches!(step, Step::Unary(..)) && step.name() == "elu"
}

/// The text of a kernel that is being put together.
#[derive(Default)]
struct Text {
    parameters: Vec<String>,
    body: String,
    /// The registers of functions, by the lines that declare them.
    registers: BTreeSet<String>,
}

impl Text {
    fn line(&mut self, line: &str) {
        self.body.push_str(line);
        self.body.push('\n');
    }

    fn parameter(&mut self, ty: &str, name: &str) {
        self.parameters.push(format!(".param .{ty} {name}"));
    }

    /// Finds the place of the element along each dimension: `%c0` is that along the outermost.
    fn places(&mut self, rank: usize) {
        self.line("mov.u32 %i2, %i0;");
        for dim in 1..rank {
            self.parameter("u32", &format!("d{dim}"));
        }
        for dim in (1..rank).rev() {
            self.line(&format!("ld.param.u32 %i3, [d{dim}];"));
            self.line(&format!("rem.u32 %c{dim}, %i2, %i3;"));
            self.line("div.u32 %i2, %i2, %i3;");
        }
        self.line("mov.u32 %c0, %i2;");
    }

    /// Loads an element of an input.
    fn load(&mut self, input: usize, dtype: DType, access: Access, rank: usize) {
        match access {
            Access::Plain => self.line("mov.u32 %i1, %i0;"),
            Access::Steps(dims) => {
                self.line("mov.u32 %i1, 0;");
                for dim in (0..rank).filter(|dim| dims >> dim & 1 == 1) {
                    let name = format!("s{input}_{dim}");
                    self.parameter("u32", &name);
                    self.line(&format!("ld.param.u32 %i3, [{name}];"));
                    self.line(&format!("mad.lo.u32 %i1, %c{dim}, %i3, %i1;"));
                }
            }
        }
        self.address(&format!("in{input}"), "%i1", dtype);
        let to = format!("{}{input}", input_register(dtype));
        match dtype {
            DType::I1 => self.line(&format!("ld.global.nc.u8 {to}, [%a1];")),
            DType::F32 => self.line(&format!("ld.global.nc.f32 {to}, [%a1];")),
            DType::F16 => {
                self.line("ld.global.nc.u16 %h0, [%a1];");
                self.line(&format!("cvt.f32.f16 {to}, %h0;"));
            }
            _ => {
                self.line("ld.global.nc.u16 %h0, [%a1];");
                self.line("cvt.u32.u16 %i1, %h0;");
                self.line("shl.b32 %i1, %i1, 16;");
                self.line(&format!("mov.b32 {to}, %i1;"));
            }
        }
    }

    /// Leaves the address of an element in `%a1`.
    fn address(&mut self, parameter: &str, index: &str, dtype: DType) {
        let size = dtype.size_bytes().unwrap_or(4);
        self.line(&format!("ld.param.u64 %a0, [{parameter}];"));
        self.line("cvta.to.global.u64 %a0, %a0;");
        self.line(&format!("mul.wide.u32 %a1, {index}, {size};"));
        self.line("add.s64 %a1, %a0, %a1;");
    }

    /// Stores the result of a step.
    fn store(&mut self, step: usize, dtype: DType) {
        self.address("out", "%i0", dtype);
        let from = format!("{}{step}", step_register(dtype));
        match dtype {
            DType::I1 => self.line(&format!("st.global.u8 [%a1], {from};")),
            DType::F32 => self.line(&format!("st.global.f32 [%a1], {from};")),
            DType::F16 => {
                self.line(&format!("cvt.rn.f16.f32 %h0, {from};"));
                self.line("st.global.u16 [%a1], %h0;");
            }
            _ => {
                self.line(&format!("mov.b32 %i1, {from};"));
                self.line("shr.u32 %i1, %i1, 16;");
                self.line("cvt.u16.u32 %h0, %i1;");
                self.line("st.global.u16 [%a1], %h0;");
            }
        }
    }

    fn step(&mut self, number: usize, step: &Step, types: StepTypes, typed: &Typed) {
        let to = format!("{}{number}", step_register(types.gives));
        let operand = |operand: &Operand, dtype: DType| match (typed.register(operand), operand) {
            (None, Operand::Number(value)) => literal(*value, dtype),
            (register, _) => register.unwrap_or_default(),
        };
        let of = |index: usize| operand(&step.operands()[index], types.takes);
        let is_truth = types.takes == DType::I1;
        let width = if is_truth { "b32" } else { "f32" };
        match (step, step.name()) {
            (Step::Cast(..), _) => self.cast(&to, &of(0), types),
            (Step::Select(all), _) => {
                let condition = operand(&all[0], DType::I1);
                self.line(&format!("setp.ne.u32 %p1, {condition}, 0;"));
                self.line(&format!("selp.{width} {to}, {}, {}, %p1;", of(1), of(2)));
            }
            (_, "identity") => self.line(&format!("mov.{width} {to}, {};", of(0))),
            (_, "not") if is_truth => self.line(&format!("xor.b32 {to}, {}, 1;", of(0))),
            (_, "and") if is_truth => self.line(&format!("and.b32 {to}, {}, {};", of(0), of(1))),
            (_, "or") if is_truth => self.line(&format!("or.b32 {to}, {}, {};", of(0), of(1))),
            (_, "xor" | "ne") if is_truth => {
                self.line(&format!("xor.b32 {to}, {}, {};", of(0), of(1)));
            }
            (_, "eq") if is_truth => {
                self.line(&format!("xor.b32 {to}, {}, {};", of(0), of(1)));
                self.line(&format!("xor.b32 {to}, {to}, 1;"));
            }
            _ => {
                // Invariant: `new` has found the function.
                let Some(function) = function_of(step) else {
                    return;
                };
                let operands = (0..step.operands().len()).map(of);
                let mut arguments: Vec<String> = operands.collect();
                match step {
                    Step::Parametric(_, parameters, _) => {
                        arguments.extend(parameters.map(|one| literal(one, DType::F32)));
                    }
                    _ if has_defaults(step) => {
                        arguments.extend([1.0, 1.0].map(|one| literal(one, DType::F32)));
                    }
                    _ => (),
                }
                self.call(function, &to, &arguments, number);
                self.round(&to, types.gives);
            }
        }
    }

    /// Copies the code of a function, with registers of its own and labels of the step.
    fn call(&mut self, function: &Function, to: &str, arguments: &[String], number: usize) {
        self.registers.extend(function.registers.iter().cloned());
        for line in function.code(to, arguments, number) {
            self.line(&line);
        }
    }

    /// Rounds a number to half precision, if it is of that.
    fn round(&mut self, number: &str, dtype: DType) {
        match dtype {
            DType::F16 => {
                self.line(&format!("cvt.rn.f16.f32 %h0, {number};"));
                self.line(&format!("cvt.f32.f16 {number}, %h0;"));
            }
            DType::Bf16 => {
                // Invariant: `functions` has it, as its test sees.
                if let Some(function) = function("to_bf16") {
                    self.call(function, "%i1", &[number.to_owned()], usize::MAX);
                }
                self.line("shl.b32 %i1, %i1, 16;");
                self.line(&format!("mov.b32 {number}, %i1;"));
            }
            _ => (),
        }
    }

    fn cast(&mut self, to: &str, from: &str, types: StepTypes) {
        match (types.takes == DType::I1, types.gives == DType::I1) {
            (true, true) => self.line(&format!("mov.b32 {to}, {from};")),
            (false, true) => {
                self.line(&format!("setp.neu.f32 %p1, {from}, 0f00000000;"));
                self.line(&format!("selp.u32 {to}, 1, 0, %p1;"));
            }
            (true, false) => {
                self.line(&format!("setp.ne.u32 %p1, {from}, 0;"));
                self.line(&format!("selp.f32 {to}, 0f3F800000, 0f00000000, %p1;"));
            }
            (false, false) => {
                self.line(&format!("mov.f32 {to}, {from};"));
                self.round(to, types.gives);
            }
        }
    }

    fn module(self, typed: &Typed, layout: &Layout) -> String {
        let (n_inputs, n_steps) = (typed.inputs.len(), typed.steps.len());
        let mut all = String::from(".version 8.0\n.target sm_75\n.address_size 64\n");
        // Writing to a text can't fail.
        let _written = write!(
            all,
            ".visible .entry {NAME}(\n{}\n)\n{{\n.reg .pred %p<2>;\n.reg .b16 %h<1>;\n.reg .b32 %i<4>;\n.reg .b32 %c<{}>;\n.reg .b64 %a<2>;\n.reg .f32 %if<{n_inputs}>;\n.reg .b32 %ib<{n_inputs}>;\n.reg .f32 %sf<{n_steps}>;\n.reg .b32 %sb<{n_steps}>;\n",
            self.parameters.join(",\n"),
            layout.rank.max(1),
        );
        for line in &self.registers {
            all.push_str(line);
            all.push('\n');
        }
        all.push_str(&self.body);
        all.push_str("}\n");
        all
    }
}

/// Returns a number as an instruction has it, rounded to a type first.
fn literal(value: f64, dtype: DType) -> String {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "it is rounded to the type of the elements"
    )]
    let number = match dtype {
        DType::I1 => return if value == 0.0 { "0" } else { "1" }.to_owned(),
        DType::F16 => f16::from_f64(value).to_f32(),
        DType::Bf16 => bf16::from_f64(value).to_f32(),
        _ => value as f32,
    };
    format!("0f{:08X}", number.to_bits())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str, inputs: &[DType]) -> String {
        Typed::new(text, inputs).unwrap_err().to_string()
    }

    #[test]
    fn wrong_programs_are_refused() {
        let f32 = DType::F32;
        for (text, inputs, expected) in [
            (
                "add a0 a1",
                &[f32][..],
                "step 0 takes Input(1): expected one of 1 inputs",
            ),
            (
                "wave a0",
                &[f32],
                "expected a function and its operands, found 'wave a0'",
            ),
            ("", &[f32], "expected a function and its operands, found ''"),
            (
                "add a0 a1",
                &[f32, DType::F16],
                "expected operands of one type, found f32 and f16",
            ),
            (
                "lgamma a0",
                &[f32],
                "no program on GPUs has 'lgamma' of f32",
            ),
            (
                "add a0 a0",
                &[DType::I64],
                "no program on GPUs calculates with i64",
            ),
            (
                "cast a0 f64",
                &[f32],
                "no program on GPUs calculates with f64",
            ),
        ] {
            let found = message(text, inputs);
            assert!(found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    fn a_kernel_has_what_its_layout_needs() {
        let typed = Typed::new("mul a0 2; add s0 a1; relu s1", &[DType::F32; 2]).unwrap();
        let plain = Layout {
            rank: 1,
            inputs: [Access::Plain, Access::Steps(0)].into_iter().collect(),
        };
        let text = typed.ptx(&plain);
        assert!(
            !text.contains("rem.u32") && !text.contains("[d1]"),
            "{text}"
        );
        let steps = Layout {
            rank: 3,
            inputs: [Access::Plain, Access::Steps(0b101)].into_iter().collect(),
        };
        let text = typed.ptx(&steps);
        let parameters: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix(".param "))
            .collect();
        let expected = [
            ".u64 out,",
            ".u64 in0,",
            ".u64 in1,",
            ".u32 n,",
            ".u32 d1,",
            ".u32 d2,",
            ".u32 s1_0,",
            ".u32 s1_2",
        ];
        assert_eq!(parameters, expected);
    }
}
