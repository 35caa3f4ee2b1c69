use proptest::prelude::*;

use super::formulas::{self, Binary, Unary};
use super::input::InputAccess;
use super::plan::ProgramPlan;
use super::program::blocks;
use super::*;
use crate::math::broadcast::broadcast_extents;
use crate::math::number::Floating;
use crate::math::testing::{Layout, coordinates, floats, layout_of};
use crate::{BF16, DType, DenseHostTensor, F16, TensorView, TensorViewMut, to_bytes};

mod chains;
mod single;

/// Inputs that broadcast to a shape.
fn inputs() -> impl Strategy<Value = Vec<Layout>> {
    prop::collection::vec(0..6_usize, 0..4).prop_flat_map(|shape| {
        let input = (
            prop::collection::vec(any::<bool>(), shape.len()),
            0..=shape.len(),
        )
            .prop_flat_map(move |(ones, missing)| {
                let own = shape
                    .iter()
                    .zip(ones)
                    .map(|(extent, one)| if one { 1 } else { *extent });
                layout_of(own.skip(missing).collect())
            });
        prop::collection::vec(input, 1..4)
    })
}

/// Returns the functions of floats that give floats.
fn unary_functions() -> Vec<UnaryFunction> {
    let all = UnaryFunction::ALL.iter().copied();
    all.filter(|function| function.result(DType::F32) == Some(DType::F32))
        .collect()
}

fn binary_functions() -> Vec<BinaryFunction> {
    let all = BinaryFunction::ALL.iter().copied();
    all.filter(|function| function.result(DType::F32) == Some(DType::F32))
        .collect()
}

/// Returns steps of any functions, with any operands before them.
fn steps() -> impl Strategy<Value = Vec<(usize, [usize; 3])>> {
    prop::collection::vec((any::<usize>(), any::<[usize; 3]>()), 1..9)
}

fn step(number: usize, n_inputs: usize, (which, operands): (usize, [usize; 3])) -> Step {
    let operand = |choice: usize| match choice % (n_inputs + number + 1) {
        0 => Operand::Number([0.5, -2.0, 0.0, 3.0][choice / 7 % 4]),
        index if index <= n_inputs => Operand::Input(index - 1),
        index => Operand::Step(index - n_inputs - 1),
    };
    let mut operands = operands.map(operand);
    // What says of which type the numbers are.
    if let Operand::Number(_) = operands[0] {
        operands[0] = Operand::Input(0);
    }
    let (unary, binary) = (unary_functions(), binary_functions());
    let which = which % (unary.len() + binary.len() + 2);
    if let Some(function) = unary.get(which) {
        return Step::Unary(*function, operands[0]);
    }
    let [x, y, _] = operands;
    let condition = Operand::Number((which % 4 / 2) as f64);
    match binary.get(which - unary.len()) {
        Some(function) => Step::Binary(*function, [x, y]),
        None if which % 2 == 0 => Step::Parametric(ParametricFunction::LeakyRelu, [0.25, 0.0], x),
        None => Step::Select([condition, x, y]),
    }
}

/// Returns the steps of a program one after the other, each for all elements.
fn one_by_one<T: Floating>(
    program: &PointwiseProgram,
    inputs: &[TensorView<'_, T>],
    shape: &[usize],
) -> Vec<T> {
    let n: usize = shape.iter().product();
    let all: Vec<Vec<T>> = inputs
        .iter()
        .map(|input| {
            (0..n)
                .map(|index| {
                    let place = coordinates(index, shape);
                    let own: Vec<usize> = place[shape.len() - input.rank()..]
                        .iter()
                        .zip(input.extents())
                        .map(|(index, extent)| if *extent == 1 { 0 } else { *index })
                        .collect();
                    input.get(&own).unwrap()
                })
                .collect()
        })
        .collect();
    let mut results: Vec<Vec<T>> = Vec::new();
    for step in program.steps() {
        let values = |operand: &Operand| match operand {
            Operand::Input(index) => all[*index].clone(),
            Operand::Step(index) => results[*index].clone(),
            Operand::Number(value) => vec![T::from_f64(*value); n],
        };
        let operands: Vec<Vec<T>> = step.operands().iter().map(values).collect();
        let out: Vec<T> = (0..n)
            .map(|index| {
                let at = |operand: usize| operands[operand][index];
                match step {
                    Step::Unary(function, _) => unary(*function, at(0)),
                    Step::Parametric(..) => at(0).map(
                        |x| if x < 0.0 { 0.25 * x } else { x },
                        |x| if x < 0.0 { 0.25 * x } else { x },
                    ),
                    Step::Binary(function, _) => binary(*function, at(0), at(1)),
                    Step::Select(_) if at(0).same(T::ZERO) => at(2),
                    Step::Select(_) => at(1),
                    Step::Cast(..) => panic!("steps are of one type"),
                }
            })
            .collect();
        results.push(out);
    }
    results.pop().unwrap()
}

/// Calculates the function by its formula, which a test must not leave to a table; halves in `f32`, rounded once.
fn unary<T: Floating>(function: UnaryFunction, x: T) -> T {
    macro_rules! call {
        ($($name:ident)*) => {
            match function {
                $(UnaryFunction::$name => x.map(
                    <formulas::$name as Unary<f32>>::apply,
                    <formulas::$name as Unary<f64>>::apply,
                ),)*
                _ => panic!("{function:?} gives no floats"),
            }
        };
    }
    call!(Identity Negate Square Reciprocal Abs Sign Relu Relu6 Elu Floor Ceil Round Truncate Sqrt Rsqrt Exp Expm1
        Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Tanh Sigmoid Silu Softplus Erf Erfc Cbrt LogGamma Gelu
        GeluTanh)
}

fn binary<T: Floating>(function: BinaryFunction, x: T, y: T) -> T {
    macro_rules! call {
        ($($name:ident)*) => {
            match function {
                $(BinaryFunction::$name => x.map2(
                    y,
                    <formulas::$name as Binary<f32>>::apply,
                    <formulas::$name as Binary<f64>>::apply,
                ),)*
                _ => panic!("{function:?} gives no floats"),
            }
        };
    }
    call!(Add Subtract Multiply Divide SquaredDifference Minimum Maximum Remainder Modulo SlopedRelu Power Atan2
        ReluGradient EqualAsNumber FloorDivide DivideNoNan MultiplyNoNan XLogY XLog1pY XDivideY)
}

/// Runs a program at once and in parts, and compares the bits, except of NaN.
fn check<T: Floating>(
    program: &PointwiseProgram,
    layouts: &[Layout],
    values: &[f32],
) -> Result<(), TestCaseError> {
    let values: Vec<T> = values.iter().map(|x| T::from_f64((*x).into())).collect();
    let views: Vec<TensorView<'_, T>> = layouts
        .iter()
        .enumerate()
        .map(|(index, layout)| layout.view(&values[index * 100..]))
        .collect();
    let extents: Vec<&[usize]> = views.iter().map(TensorView::extents).collect();
    let shape = broadcast_extents(&extents).unwrap();
    let wanted = one_by_one(program, &views, &shape);
    let mut out = vec![T::ONE; wanted.len()];
    let inputs: Vec<Elements<'_>> = views.iter().map(Elements::from).collect();
    let to = TensorViewMut::new(&mut out, &shape).unwrap();
    program.run(&inputs, to.into()).unwrap();
    let bound: Vec<InputAccess> = views
        .iter()
        .map(|view| InputAccess::new(view.extents(), view.strides(), &shape))
        .collect();
    let plan = ProgramPlan::new(program, &vec![T::DTYPE; views.len()]).unwrap();
    let bytes: Vec<&[u8]> = views.iter().map(|view| to_bytes(view.elements())).collect();
    let mut parts = vec![T::ONE; wanted.len()];
    for (number, part) in parts.chunks_mut(7).enumerate() {
        program.part(&plan, &bound, &bytes, number * 7, crate::to_bytes_mut(part));
    }
    for (wanted, found) in wanted.iter().chain(&wanted).zip(out.iter().chain(&parts)) {
        let is_same = to_bytes(&[*wanted]) == to_bytes(&[*found]);
        let are_none = !wanted.same(*wanted) && !found.same(*found);
        prop_assert!(is_same || are_none, "{:?} {:?}", wanted, found);
    }
    Ok(())
}

proptest! {
    #[test]
    fn fusing_changes_no_bit(
        layouts in inputs(),
        choices in steps(),
        values in prop::collection::vec(floats(), 3000),
    ) {
        prop_assume!(layouts.iter().all(|layout| layout.len + 200 <= values.len()));
        let n_inputs = layouts.len();
        let steps: Vec<Step> = choices.iter().enumerate().map(|(number, choice)| step(number, n_inputs, *choice)).collect();
        let program = PointwiseProgram::new(n_inputs, &steps).unwrap();
        check::<f32>(&program, &layouts, &values)?;
        check::<f64>(&program, &layouts, &values)?;
        check::<F16>(&program, &layouts, &values)?;
        check::<BF16>(&program, &layouts, &values)?;
    }

    #[test]
    fn no_step_writes_to_what_is_still_read(choices in steps(), n_inputs in 0..3_usize) {
        let steps: Vec<Step> = choices.iter().enumerate().map(|(number, choice)| step(number, n_inputs, *choice)).collect();
        let (blocks, n_blocks) = blocks(&steps);
        let mut owner = vec![usize::MAX; n_blocks];
        for (number, step) in steps.iter().enumerate() {
            for operand in step.operands() {
                if let Operand::Step(before) = operand {
                    prop_assert_eq!(owner[blocks[*before]], *before);
                    prop_assert!(blocks[*before] != blocks[number]);
                }
            }
            owner[blocks[number]] = number;
        }
    }
}

#[test]
fn long_results_go_by_blocks() {
    let program = PointwiseProgram::new(
        2,
        &[
            Step::Binary(
                BinaryFunction::Multiply,
                [Operand::Input(0), Operand::Input(1)],
            ),
            Step::Unary(UnaryFunction::Exp, Operand::Step(0)),
        ],
    )
    .unwrap();
    let x: Vec<f32> = (0..3 * 1025).map(|i| (i % 97) as f32 / 97.0).collect();
    let (view, column) = (
        TensorView::new(&x, &[1025, 3]).unwrap(),
        TensorView::new(&x[..1025], &[1025, 1]).unwrap(),
    );
    let mut out = vec![0.0_f32; x.len()];
    let to = TensorViewMut::new(&mut out, &[1025, 3]).unwrap();
    program
        .run(&[(&view).into(), (&column).into()], to.into())
        .unwrap();
    for (index, out) in out.iter().enumerate() {
        let wanted = <formulas::Exp as Unary<f32>>::apply(x[index] * x[index / 3]);
        assert_eq!(out.to_bits(), wanted.to_bits());
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let add = |x, y| Step::Binary(BinaryFunction::Add, [x, y]);
    assert!(PointwiseProgram::new(1, &[]).is_err());
    let error = PointwiseProgram::new(1, &[add(Operand::Input(0), Operand::Step(0))]).unwrap_err();
    assert_eq!(
        error.message(),
        "step 0 takes Step(0): expected one of 1 inputs, or a step before it"
    );
    assert!(PointwiseProgram::new(1, &[add(Operand::Input(1), Operand::Number(0.0))]).is_err());
    let program = PointwiseProgram::new(2, &[add(Operand::Input(0), Operand::Input(1))]).unwrap();
    let list = [1.0_f32; 6];
    let view =
        |extents: &[usize]| TensorView::new(&list[..extents.iter().product()], extents).unwrap();
    let run = |inputs: &[TensorView<'_, f32>], extents: &[usize]| {
        let mut out = [0.0_f32; 6];
        let out = TensorViewMut::new(&mut out[..extents.iter().product()], extents).unwrap();
        let inputs: Vec<Elements<'_>> = inputs.iter().map(Elements::from).collect();
        program.run(&inputs, out.into())
    };
    assert!(run(&[view(&[2])], &[2]).is_err());
    assert!(run(&[view(&[2]), view(&[3])], &[2]).is_err());
    assert!(run(&[view(&[2]), view(&[1])], &[3]).is_err());
    assert!(run(&[view(&[2]), view(&[1])], &[2]).is_ok());
    let constant =
        PointwiseProgram::new(0, &[add(Operand::Number(1.0), Operand::Number(2.0))]).unwrap();
    let mut out = [0.0_f32; 2];
    constant
        .run(&[], TensorViewMut::new(&mut out, &[2]).unwrap().into())
        .unwrap();
    assert_eq!(out, [3.0, 3.0]);
    let large = [1 << 40, 0, 1 << 40];
    let empty = TensorView::<f32>::new(&[], &large).unwrap();
    let none = TensorViewMut::<f32>::new(&mut [], &large).unwrap();
    let empty = Elements::from(&empty);
    program.run(&[empty.clone(), empty], none.into()).unwrap();
}

#[test]
fn small_results_need_no_lock_where_nobody_else_holds_them() {
    let host = tfrt_host::HostContext::builder(tfrt_host::kernel::KernelRegistry::new()).build();
    let tensor = |extents: &[usize], elements: &[f32]| {
        DenseHostTensor::from_slice(host.allocator(), extents, elements).unwrap()
    };
    let steps = [Step::Binary(
        BinaryFunction::Subtract,
        [Operand::Input(0), Operand::Input(1)],
    )];
    let program = PointwiseProgram::new(2, &steps).unwrap();
    let (x, y) = (
        tensor(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        tensor(&[3], &[1.0, 0.5, 2.0]),
    );
    let mut out = tensor(&[2, 3], &[9.0; 6]);
    let other = out.clone();
    assert!(!program.run_if_small(&[&x, &y], &mut out).unwrap());
    drop(other);
    assert!(program.run_if_small(&[&x, &y], &mut out).unwrap());
    let made = out.read().unwrap().elements::<f32>().unwrap().to_vec();
    assert_eq!(made, [0.0, 1.5, 1.0, 3.0, 4.5, 4.0]);
    // What reads and writes the same elements is refused, as are other shapes and types.
    assert!(!program.run_if_small(&[&out.clone(), &y], &mut out).unwrap());
    assert!(
        program
            .run_if_small(&[&x, &y], &mut tensor(&[6], &[0.0; 6]))
            .is_err()
    );
    assert!(program.run_if_small(&[&x], &mut out).is_err());
    let of_f64 = DenseHostTensor::from_slice(host.allocator(), &[3], &[1.0; 3]).unwrap();
    assert!(program.run_if_small(&[&x, &of_f64], &mut out).is_err());
    let (large, mut out) = (
        tensor(&[1 << 16], &vec![1.0; 1 << 16]),
        tensor(&[1 << 16], &vec![0.0; 1 << 16]),
    );
    assert!(!program.run_if_small(&[&large, &large], &mut out).unwrap());
    let mut nothing = tensor(&[0], &[]);
    let empty = tensor(&[0], &[]);
    assert!(
        program
            .run_if_small(&[&empty, &empty], &mut nothing)
            .unwrap()
    );
}
