use proptest::prelude::*;

use super::*;
use crate::math::elementwise::{self, Binary, Unary};
use crate::math::testing::{Layout, coordinates, floats, layout_of};
use crate::{BF16, F16};

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

/// Steps of any functions that don't hang on the system's library, of any operands before them.
fn steps() -> impl Strategy<Value = Vec<(usize, [usize; 3])>> {
    prop::collection::vec((any::<usize>(), any::<[usize; 3]>()), 1..9)
}

fn step(number: usize, n_inputs: usize, (which, operands): (usize, [usize; 3])) -> Step {
    let operand = |choice: usize| match choice % (n_inputs + number + 1) {
        0 => Operand::Number([0.5, -2.0, 0.0, 3.0][choice / 7 % 4]),
        index if index <= n_inputs => Operand::Input(index - 1),
        index => Operand::Step(index - n_inputs - 1),
    };
    let operands = operands.map(operand);
    let (n_unary, n_binary) = (UnaryFunction::ALL.len(), BinaryFunction::ALL.len());
    match which % (n_unary + n_binary + 1) {
        index if index < n_unary => Step::Unary(UnaryFunction::ALL[index], operands[0]),
        index if index < n_unary + n_binary => Step::Binary(
            BinaryFunction::ALL[index - n_unary],
            [operands[0], operands[1]],
        ),
        _ => Step::Select(operands),
    }
}

/// The steps of a program one after the other, each for all elements.
fn one_by_one<T: Floating>(
    program: &Fused,
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
        let mut out = vec![T::ZERO; n];
        let mut view = TensorViewMut::new(&mut out, shape).unwrap();
        match step {
            Step::Unary(function, x) => {
                let x = values(x);
                let x = TensorView::new(&x, shape).unwrap();
                unary(*function, &x, &mut view);
            }
            Step::Binary(function, [x, y]) => {
                let (x, y) = (values(x), values(y));
                for (index, out) in out.iter_mut().enumerate() {
                    *out = binary(*function, x[index], y[index]);
                }
            }
            Step::Select([condition, x, y]) => {
                let (condition, x, y) = (values(condition), values(x), values(y));
                for (index, out) in out.iter_mut().enumerate() {
                    *out = if condition[index].same(T::ZERO) {
                        y[index]
                    } else {
                        x[index]
                    };
                }
            }
        }
        results.push(out);
    }
    results.pop().unwrap()
}

/// By the functions' own names, which a test must not leave to a table.
fn unary<T: Floating>(
    function: UnaryFunction,
    x: &TensorView<'_, T>,
    out: &mut TensorViewMut<'_, T>,
) {
    macro_rules! call {
        ($($name:ident)*) => {
            match function {
                $(UnaryFunction::$name => elementwise::unary::<elementwise::$name, T>(x, out).unwrap()),*
            }
        };
    }
    call!(Identity Negate Square Reciprocal Abs Sign Relu Relu6 Floor Ceil Round Truncate Sqrt Rsqrt Exp Expm1
        Log Log1p Sin Cos Tan Tanh Sigmoid Silu Softplus Erf Gelu GeluTanh);
}

fn binary<T: Floating>(function: BinaryFunction, x: T, y: T) -> T {
    let number = |is_true: bool| if is_true { T::ONE } else { T::ZERO };
    match function {
        BinaryFunction::Add => x.plus(y),
        BinaryFunction::Subtract => x.minus(y),
        BinaryFunction::Multiply => x.times(y),
        BinaryFunction::Divide => x.over(y),
        BinaryFunction::SquaredDifference => x.minus(y).times(x.minus(y)),
        BinaryFunction::Minimum => x.least(y),
        BinaryFunction::Maximum => x.greatest(y),
        BinaryFunction::Remainder => x.remainder(y),
        BinaryFunction::Power => <elementwise::Power as Binary<T>>::apply(x, y),
        BinaryFunction::Atan2 => <elementwise::Atan2 as Binary<T>>::apply(x, y),
        BinaryFunction::ReluGradient => {
            if T::ZERO.less(x) {
                y
            } else {
                T::ZERO
            }
        }
        BinaryFunction::Equal => number(x.same(y)),
        BinaryFunction::NotEqual => number(!x.same(y)),
        BinaryFunction::Less => number(x.less(y)),
        BinaryFunction::LessEqual => number(x.less(y) || x.same(y)),
        BinaryFunction::Greater => number(y.less(x)),
        BinaryFunction::GreaterEqual => number(y.less(x) || x.same(y)),
    }
}

/// Runs a program at once and in parts, and compares the bits, but of what is no number.
fn check<T: Floating>(
    program: &Fused,
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
    program
        .run(&views, &mut TensorViewMut::new(&mut out, &shape).unwrap())
        .unwrap();
    let bound: Vec<Input> = views
        .iter()
        .map(|view| Input::new(view.extents(), view.strides(), &shape))
        .collect();
    let elements: Vec<&[T]> = views.iter().map(TensorView::elements).collect();
    let mut parts = vec![T::ONE; wanted.len()];
    for (number, part) in parts.chunks_mut(7).enumerate() {
        program.part(&bound, &elements, number * 7, part);
    }
    for (wanted, found) in wanted.iter().chain(&wanted).zip(out.iter().chain(&parts)) {
        let is_same = crate::to_bytes(&[*wanted]) == crate::to_bytes(&[*found]);
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
        let program = Fused::new(n_inputs, &steps).unwrap();
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
    let program = Fused::new(
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
    let mut out = vec![0.0; x.len()];
    program
        .run(
            &[view, column],
            &mut TensorViewMut::new(&mut out, &[1025, 3]).unwrap(),
        )
        .unwrap();
    for (index, out) in out.iter().enumerate() {
        let wanted = <elementwise::Exp as Unary<f32>>::apply(x[index] * x[index / 3]);
        assert_eq!(out.to_bits(), wanted.to_bits());
    }
}

#[test]
fn what_does_not_fit_is_told() {
    let add = |x, y| Step::Binary(BinaryFunction::Add, [x, y]);
    assert!(Fused::new(1, &[]).is_err());
    let error = Fused::new(1, &[add(Operand::Input(0), Operand::Step(0))]).unwrap_err();
    assert_eq!(
        error.message(),
        "step 0 takes Step(0): expected one of 1 inputs, or a step before it"
    );
    assert!(Fused::new(1, &[add(Operand::Input(1), Operand::Number(0.0))]).is_err());
    let program = Fused::new(2, &[add(Operand::Input(0), Operand::Input(1))]).unwrap();
    let list = [1.0_f32; 6];
    let view =
        |extents: &[usize]| TensorView::new(&list[..extents.iter().product()], extents).unwrap();
    let run = |inputs: &[TensorView<'_, f32>], extents: &[usize]| {
        let mut out = [0.0; 6];
        let mut out = TensorViewMut::new(&mut out[..extents.iter().product()], extents).unwrap();
        program.run(inputs, &mut out)
    };
    assert!(run(&[view(&[2])], &[2]).is_err());
    assert!(run(&[view(&[2]), view(&[3])], &[2]).is_err());
    assert!(run(&[view(&[2]), view(&[1])], &[3]).is_err());
    assert!(run(&[view(&[2]), view(&[1])], &[2]).is_ok());
    let constant = Fused::new(0, &[add(Operand::Number(1.0), Operand::Number(2.0))]).unwrap();
    let mut out = [0.0_f32; 2];
    constant
        .run(&[], &mut TensorViewMut::new(&mut out, &[2]).unwrap())
        .unwrap();
    assert_eq!(out, [3.0, 3.0]);
    let large = [1 << 40, 0, 1 << 40];
    let empty = TensorView::<f32>::new(&[], &large).unwrap();
    let mut none = TensorViewMut::new(&mut [], &large).unwrap();
    program.run(&[empty.clone(), empty], &mut none).unwrap();
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
    let program = Fused::new(2, &steps).unwrap();
    let (x, y) = (
        tensor(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        tensor(&[3], &[1.0, 0.5, 2.0]),
    );
    let mut out = tensor(&[2, 3], &[9.0; 6]);
    let other = out.clone();
    assert!(!program.run_if_small::<f32>(&[&x, &y], &mut out).unwrap());
    drop(other);
    assert!(program.run_if_small::<f32>(&[&x, &y], &mut out).unwrap());
    let made = out.read().unwrap().elements::<f32>().unwrap().to_vec();
    assert_eq!(made, [0.0, 1.5, 1.0, 3.0, 4.5, 4.0]);
    // What reads and writes the same elements is refused, as are other shapes and types.
    assert!(
        !program
            .run_if_small::<f32>(&[&out.clone(), &y], &mut out)
            .unwrap()
    );
    assert!(
        program
            .run_if_small::<f32>(&[&x, &y], &mut tensor(&[6], &[0.0; 6]))
            .is_err()
    );
    assert!(program.run_if_small::<f32>(&[&x], &mut out).is_err());
    assert!(program.run_if_small::<f64>(&[&x, &y], &mut out).is_err());
    let (large, mut out) = (
        tensor(&[1 << 16], &vec![1.0; 1 << 16]),
        tensor(&[1 << 16], &vec![0.0; 1 << 16]),
    );
    assert!(
        !program
            .run_if_small::<f32>(&[&large, &large], &mut out)
            .unwrap()
    );
    let mut nothing = tensor(&[0], &[]);
    let empty = tensor(&[0], &[]);
    assert!(
        program
            .run_if_small::<f32>(&[&empty, &empty], &mut nothing)
            .unwrap()
    );
}
