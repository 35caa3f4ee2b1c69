//! Random chains over mixed types, compared with their steps one by one, each run as a single function.

use proptest::prelude::*;
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext, HostContext, RequestContext};

use super::super::*;
use crate::math::broadcast::broadcast_extents;
use crate::math::cast::{Casting, cast_into};
use crate::{DType, DenseHostTensor, TensorMetadata, TensorShape};

/// The types that programs run on.
const TYPES: [DType; 7] = [
    DType::F32,
    DType::F64,
    DType::F16,
    DType::Bf16,
    DType::I32,
    DType::I64,
    DType::I1,
];

const PARAMETERS: [f64; 2] = [0.75, 0.5];

struct TestBed {
    host: HostContext,
    execution: ExecutionContext,
}

impl TestBed {
    fn new() -> TestBed {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let request = RequestContext::new(&host);
        let execution = ExecutionContext::new(&request);
        TestBed { host, execution }
    }

    /// Waits until a kernel is done.
    fn wait(&self, done: Result<AsyncValue<Chain>, Error>) {
        let done = done.unwrap();
        self.host
            .queue()
            .await_all(&[done.clone().into_any()])
            .unwrap();
        assert!(done.error().is_none(), "{:?}", done.error());
    }

    fn empty(&self, dtype: DType, shape: &TensorShape) -> DenseHostTensor {
        let metadata = TensorMetadata::new(dtype, shape.clone());
        DenseHostTensor::unspecified(self.host.allocator(), metadata).unwrap()
    }

    /// Returns numbers of any type, NaN and the largest ones included.
    fn tensor(&self, dtype: DType, extents: &[usize], seed: u64) -> DenseHostTensor {
        let n: usize = extents.iter().product();
        let mut state = seed;
        let numbers: Vec<f64> = (0..n)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let special = [
                    0.0,
                    -0.0,
                    f64::NAN,
                    f64::INFINITY,
                    1e9,
                    -1e-9,
                    f64::NEG_INFINITY,
                ];
                match state >> 60 {
                    0 => special[(state >> 32) as usize % special.len()],
                    _ => f64::from((state >> 40) as u32) / f64::from(1 << 22) - 2.0,
                }
            })
            .collect();
        let wide = DenseHostTensor::from_slice(self.host.allocator(), extents, &numbers).unwrap();
        self.cast(&wide, dtype)
    }

    fn cast(&self, x: &DenseHostTensor, dtype: DType) -> DenseHostTensor {
        let out = self.empty(dtype, x.shape());
        self.wait(cast_into(&self.execution, Casting::default(), x, &out));
        out
    }

    /// Returns a step by itself.
    fn alone(&self, step: &Step, operands: &[DenseHostTensor]) -> DenseHostTensor {
        let e = &self.execution;
        let (x, dtype) = (&operands[0], operands[operands.len() - 1].dtype());
        let extents: Vec<_> = operands.iter().map(|one| one.shape().to_dims()).collect();
        let extents: Vec<&[usize]> = extents.iter().map(|one| &one[..]).collect();
        let shape = broadcast_extents(&extents).unwrap();
        let shape = TensorShape::new(&shape).unwrap();
        let of = |dtype| self.empty(dtype, &shape);
        match step {
            Step::Unary(function, _) => {
                let out = of(function.result(dtype).unwrap());
                self.wait(unary_into(e, *function, x, &out));
                out
            }
            Step::Parametric(function, parameters, _) => {
                let out = of(function.result(dtype).unwrap());
                self.wait(parametric_into(e, *function, *parameters, x, &out));
                out
            }
            Step::Binary(function, _) => {
                let out = of(function.result(dtype).unwrap());
                self.wait(binary_into(e, *function, x, &operands[1], &out));
                out
            }
            Step::Select(_) => {
                let out = of(dtype);
                self.wait(select_into(e, x, [&operands[1], &operands[2]], &out));
                out
            }
            Step::Cast(to, _) => self.cast(x, *to),
        }
    }

    /// Runs a program at once and step by step.
    fn check(
        &self,
        program: &PointwiseProgram,
        inputs: &[DenseHostTensor],
    ) -> Result<(), TestCaseError> {
        let mut results: Vec<DenseHostTensor> = Vec::new();
        for step in program.steps() {
            let mut types = step.operands().iter().filter_map(|operand| match operand {
                Operand::Input(index) => Some(inputs[*index].dtype()),
                Operand::Step(index) => Some(results[*index].dtype()),
                Operand::Number(_) => None,
            });
            let own = types.next_back().unwrap();
            let operands =
                step.operands()
                    .iter()
                    .enumerate()
                    .map(|(index, operand)| match operand {
                        Operand::Input(index) => inputs[*index].clone(),
                        Operand::Step(index) => results[*index].clone(),
                        Operand::Number(value) => {
                            let is_condition = matches!(step, Step::Select(_)) && index == 0;
                            let one =
                                DenseHostTensor::from_slice(self.host.allocator(), &[], &[*value]);
                            self.cast(&one.unwrap(), if is_condition { DType::I1 } else { own })
                        }
                    });
            let operands: Vec<DenseHostTensor> = operands.collect();
            results.push(self.alone(step, &operands));
        }
        let types: Vec<DType> = inputs.iter().map(DenseHostTensor::dtype).collect();
        let wanted = results.pop().unwrap();
        prop_assert_eq!(program.result(&types).unwrap(), wanted.dtype());
        let extents: Vec<_> = inputs.iter().map(|one| one.shape().to_dims()).collect();
        let extents: Vec<&[usize]> = extents.iter().map(|one| &one[..]).collect();
        let shape = TensorShape::new(&broadcast_extents(&extents).unwrap()).unwrap();
        let mut out = self.empty(wanted.dtype(), &shape);
        let inputs: Vec<&DenseHostTensor> = inputs.iter().collect();
        if !program.run_if_small(&inputs, &mut out).unwrap() {
            self.wait(program.run_into(&self.execution, &inputs, &out));
        }
        // The result of the steps alone may have fewer dimensions.
        let all = self.empty(wanted.dtype(), &shape);
        let copy = PointwiseProgram::new(
            2,
            &[Step::Select([
                Operand::Number(1.0),
                Operand::Input(0),
                Operand::Input(1),
            ])],
        );
        self.wait(
            copy.unwrap()
                .run_into(&self.execution, &[&wanted, &out], &all),
        );
        let (found, wanted) = (out.read().unwrap(), all.read().unwrap());
        let size = out.dtype().size_bytes().unwrap();
        let pairs = found.bytes().chunks(size).zip(wanted.bytes().chunks(size));
        for (index, (found, wanted)) in pairs.enumerate() {
            prop_assert!(
                found == wanted || are_none(out.dtype(), found, wanted),
                "{:?} at {}: {:?} {:?}",
                program.steps(),
                index,
                found,
                wanted
            );
        }
        Ok(())
    }
}

/// Returns whether both are no number, of which the bits are left open.
fn are_none(dtype: DType, x: &[u8], y: &[u8]) -> bool {
    let is_none = |bytes: &[u8]| {
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        let bits = u64::from_le_bytes(all);
        match dtype {
            DType::F32 => bits & 0x7fff_ffff > 0x7f80_0000,
            DType::F64 => bits & (u64::MAX >> 1) > 0x7ff << 52,
            DType::F16 => bits & 0x7fff > 0x7c00,
            DType::Bf16 => bits & 0x7fff > 0x7f80,
            _ => false,
        }
    };
    is_none(x) && is_none(y)
}

/// Returns every step with a first operand of this type and others of the same type.
fn steps_of(dtype: DType, x: Operand, y: Operand, condition: Operand) -> Vec<Step> {
    let unary = UnaryFunction::ALL
        .iter()
        .filter(|one| one.result(dtype).is_some());
    let unary = unary.map(|one| Step::Unary(*one, x));
    let parametric = ParametricFunction::ALL
        .iter()
        .filter(|one| one.result(dtype).is_some());
    let parametric = parametric.map(|one| {
        let parameters = match one {
            ParametricFunction::WholePowerOf => whole(3),
            _ => PARAMETERS,
        };
        Step::Parametric(*one, parameters, x)
    });
    let binary = BinaryFunction::ALL
        .iter()
        .filter(|one| one.result(dtype).is_some());
    let binary = binary.map(|one| Step::Binary(*one, [x, y]));
    let casts = TYPES.map(|to| Step::Cast(to, x));
    let all = unary.chain(parametric).chain(binary).chain(casts);
    all.chain([Step::Select([condition, x, y])]).collect()
}

#[test]
fn each_function_in_each_type_gives_the_same_bits_in_a_chain() {
    let bed = TestBed::new();
    for (seed, dtype) in TYPES.into_iter().enumerate() {
        for n in [3, 1500] {
            let inputs = [
                bed.tensor(dtype, &[n], seed as u64),
                bed.tensor(dtype, &[n], 77 + seed as u64),
                bed.tensor(DType::I1, &[n], 5),
            ];
            let first = match dtype {
                DType::I1 => {
                    Step::Binary(BinaryFunction::Or, [Operand::Input(0), Operand::Input(1)])
                }
                _ => Step::Binary(BinaryFunction::Add, [Operand::Input(0), Operand::Input(1)]),
            };
            for step in steps_of(
                dtype,
                Operand::Step(0),
                Operand::Input(1),
                Operand::Input(2),
            ) {
                let types = [dtype, dtype, DType::I1];
                let two = [first, step];
                let made = PointwiseProgram::new(3, &two)
                    .unwrap()
                    .result(&types)
                    .unwrap();
                let of_made = steps_of(
                    made,
                    Operand::Step(1),
                    Operand::Number(0.5),
                    Operand::Input(2),
                );
                for last in of_made.into_iter().step_by(if n > 3 { 7 } else { 1 }) {
                    let program = PointwiseProgram::new(3, &[first, step, last]).unwrap();
                    bed.check(&program, &inputs).unwrap();
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn mixed_types_give_the_bits_of_their_steps(
        extents in prop::sample::select(vec![vec![], vec![5], vec![3, 7], vec![2, 1, 900]]),
        ones in prop::collection::vec(any::<bool>(), 3 * TYPES.len()),
        choices in prop::collection::vec(any::<(usize, usize, usize)>(), 1..12),
        seed in any::<u64>(),
    ) {
        let bed = TestBed::new();
        let inputs: Vec<DenseHostTensor> = TYPES.iter().enumerate().map(|(index, dtype)| {
            let own = extents.iter().zip(&ones[3 * index..]).map(|(extent, one)| if *one { 1 } else { *extent });
            bed.tensor(*dtype, &own.collect::<Vec<usize>>(), seed ^ index as u64)
        }).collect();
        let mut values: Vec<(DType, Operand)> =
            TYPES.iter().enumerate().map(|(index, dtype)| (*dtype, Operand::Input(index))).collect();
        let mut steps = Vec::new();
        for (which, x, y) in choices {
            // Later ones rather than inputs.
            let (dtype, x) = values[values.len() - 1 - x % values.len().min(6)];
            let alike = |wanted: DType| {
                let alike = values.iter().filter(move |(dtype, _)| *dtype == wanted).map(|(_, value)| *value);
                let alike: Vec<Operand> = alike.chain([Operand::Number(2.0)]).collect();
                alike[y % alike.len()]
            };
            let all = steps_of(dtype, x, alike(dtype), alike(DType::I1));
            let step = all[which % all.len()];
            steps.push(step);
            let types: Vec<DType> = inputs.iter().map(DenseHostTensor::dtype).collect();
            let made = PointwiseProgram::new(inputs.len(), &steps).unwrap().result(&types).unwrap();
            values.push((made, Operand::Step(steps.len() - 1)));
        }
        bed.check(&PointwiseProgram::new(inputs.len(), &steps).unwrap(), &inputs)?;
    }
}

#[test]
fn types_that_do_not_fit_are_told() {
    let told = |step: Step, types: &[DType]| {
        let program = PointwiseProgram::new(types.len(), &[step]).unwrap();
        program.result(types).unwrap_err().message().to_owned()
    };
    let [a, b, c] = [0, 1, 2].map(Operand::Input);
    let add = Step::Binary(BinaryFunction::Add, [a, b]);
    assert_eq!(
        told(add, &[DType::F32, DType::I64]),
        "expected operands of one type, found f32 and i64"
    );
    assert_eq!(
        told(add, &[DType::I1, DType::I1]),
        "add is not defined for i1"
    );
    assert_eq!(
        told(Step::Unary(UnaryFunction::Exp, a), &[DType::I32]),
        "exp is not defined for i32"
    );
    let select = Step::Select([a, b, c]);
    assert_eq!(
        told(select, &[DType::F32, DType::F32, DType::F32]),
        "expected truth values to select by, found f32"
    );
    let half = Step::Binary(BinaryFunction::Add, [a, Operand::Number(0.5)]);
    assert_eq!(
        told(half, &[DType::Complex64]),
        "a number can't be one of complex64"
    );
    let cast = Step::Cast(DType::Complex64, a);
    assert_eq!(told(cast, &[DType::F32]), "cast is not defined for f32");
    let bed = TestBed::new();
    let (x, y) = (
        bed.tensor(DType::F32, &[2], 1),
        bed.tensor(DType::F32, &[2], 2),
    );
    let out = bed.empty(DType::I1, x.shape());
    let error = PointwiseProgram::new(2, &[add])
        .unwrap()
        .run_into(&bed.execution, &[&x, &y], &out);
    assert_eq!(
        error.unwrap_err().message(),
        "expected a result of f32, found one of i1"
    );
}

#[test]
fn a_program_runs_for_other_types_than_those_of_its_first_run() {
    let bed = TestBed::new();
    let program =
        PointwiseProgram::new(1, &[Step::Unary(UnaryFunction::Negate, Operand::Input(0))]).unwrap();
    for dtype in [DType::F32, DType::I64, DType::F32, DType::F16] {
        bed.check(&program, &[bed.tensor(dtype, &[9], 3)]).unwrap();
    }
}
