//! Products of matrices, and what follows them; softmax.

use tfrt_corert::OpAttrs;
use tfrt_host::DType;
use tfrt_tensor::Complex;

use super::{Drawn, REALS, TestBed, address, attrs, elements, extents, none};

/// Rows of a matrix, or columns if it is transposed.
fn at(matrix: &[f64], columns: usize, is_transposed: bool, row: usize, column: usize) -> f64 {
    match is_transposed {
        false => matrix[row * columns + column],
        true => matrix[column * columns + row],
    }
}

#[test]
fn products_are_sums_of_products_in_all_types() {
    let (bed, mut drawn) = (TestBed::new(), Drawn(2));
    for [m, k, n] in [
        [2, 3, 2],
        [1, 1, 1],
        [1, 70, 3],
        [0, 3, 2],
        [3, 0, 2],
        [2, 3, 0],
        [130, 40, 90],
    ] {
        let (a, b) = (drawn.list(m * k, 0.0, 3), drawn.list(k * n, 0.0, 3));
        for dtype in REALS {
            // Sums that the smallest types have.
            if k > 30 && matches!(dtype, DType::I8 | DType::Ui8 | DType::Bf16) {
                continue;
            }
            for [ta, tb] in [[false, false], [true, false], [false, true], [true, true]] {
                let (a_extents, b_extents) = (
                    if ta { [k, m] } else { [m, k] },
                    if tb { [n, k] } else { [k, n] },
                );
                let x = bed.numbers(dtype, &a_extents, &a);
                let y = bed.numbers(dtype, &b_extents, &b);
                let attrs = attrs([("transpose_a", ta), ("transpose_b", tb)]);
                for name in ["tf.MatMul", "tfrt_test.matmul"] {
                    let result = bed.one(name, [&x, &y], &attrs).unwrap();
                    assert_eq!(
                        (result.dtype(), extents(&result)),
                        (Some(dtype), vec![m, n])
                    );
                    for (index, found) in bed.read(&result).into_iter().enumerate() {
                        let (row, column) = (index / n, index % n);
                        let wanted: f64 = (0..k)
                            .map(|i| {
                                at(&a, a_extents[1], ta, row, i)
                                    * at(&b, b_extents[1], tb, i, column)
                            })
                            .sum();
                        assert!(
                            (found - wanted).abs() < 1e-9,
                            "{name} {dtype} {m} {k} {n} {ta} {tb}"
                        );
                    }
                }
            }
        }
    }
    let i = Complex {
        real: 0.0_f32,
        imaginary: 1.0,
    };
    let x = bed.dense(&[1, 1], &[i]);
    let square = bed.one("tf.MatMul", [&x, &x], &none()).unwrap();
    assert_eq!(elements::<Complex<f32>>(&square)[0].real, -1.0);
}

#[test]
fn factors_that_do_not_fit_are_refused() {
    let bed = TestBed::new();
    let new = |extents: &[usize]| bed.dense(extents, &vec![1.0_f32; extents.iter().product()]);
    let whole = bed.dense(&[1, 1], &[1_i32]);
    for name in ["tf.MatMul", "tfrt_test.matmul"] {
        assert_eq!(
            bed.refusal(name, [&new(&[1, 1]), &new(&[2, 1])], &none()),
            format!("{name}: expected as many columns as rows, found 1 and 2")
        );
        assert_eq!(
            bed.refusal(
                name,
                [&new(&[1, 1]), &new(&[1, 2])],
                &attrs([("transpose_b", true)])
            ),
            format!("{name}: expected as many columns as rows, found 1 and 2")
        );
        assert_eq!(
            bed.refusal(name, [&new(&[2]), &new(&[2, 1])], &none()),
            format!("{name}: operand 0 (a): expected 2 dimensions, found 1")
        );
        assert!(
            bed.refusal(name, [&new(&[2, 2]), &new(&[2, 2, 1])], &none())
                .contains("operand 1 (b): expected 2 dimensions, found 3")
        );
        assert_eq!(
            bed.refusal(name, [&new(&[1, 1]), &whole], &none()),
            format!("{name}: incompatible dtypes: f32 [1, 1] and i32 [1, 1]")
        );
    }
}

fn fusion(names: &[&'static str]) -> OpAttrs {
    match *names {
        [one] => attrs([("fused_ops", [one])]),
        [one, two] => attrs([("fused_ops", [one, two])]),
        _ => none(),
    }
}

#[test]
fn products_are_followed_by_a_bias_and_a_function() {
    let bed = TestBed::new();
    let a = bed.dense(&[2, 3], &[-1.0_f32, -0.5, 0.0, 0.5, 1.0, 1.5]);
    let b = bed.dense(&[3, 2], &[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let bias = bed.dense(&[2], &[1.0_f32, 2.0]);
    for (names, wanted) in [
        (
            &["BiasAdd"][..],
            "[0.000000e+00, -5.000000e-01, 9.000000e+00, 1.300000e+01]",
        ),
        (
            &["BiasAdd", "Relu"],
            "[0.000000e+00, 0.000000e+00, 9.000000e+00, 1.300000e+01]",
        ),
        (
            &["BiasAdd", "Relu6"],
            "[0.000000e+00, 0.000000e+00, 6.000000e+00, 6.000000e+00]",
        ),
        (
            &["BiasAdd", "Elu"],
            "[0.000000e+00, -3.934693e-01, 9.000000e+00, 1.300000e+01]",
        ),
    ] {
        let result = bed
            .one("tf._FusedMatMul", [&a, &b, &bias], &fusion(names))
            .unwrap();
        assert!(result.to_string().ends_with(wanted), "{names:?}: {result}");
    }
    let whole = bed.dense(&[1, 1], &[-3_i32]);
    let bias_of_one = bed.dense(&[1], &[1_i32]);
    let result = bed.one(
        "tf._FusedMatMul",
        [&whole, &whole, &bias_of_one],
        &fusion(&["BiasAdd", "Relu6"]),
    );
    assert_eq!(elements::<i32>(&result.unwrap()), [6]);
    // On workers.
    let (x, y) = (
        bed.dense(&[200, 300], &vec![0.5_f32; 60_000]),
        bed.dense(&[300, 200], &vec![-1.0_f32; 60_000]),
    );
    let bias: Vec<f32> = (0_u8..200).map(f32::from).collect();
    let bias = bed.dense(&[200], &bias);
    let result = bed
        .one(
            "tf._FusedMatMul",
            [&x, &y, &bias],
            &fusion(&["BiasAdd", "Relu"]),
        )
        .unwrap();
    for (index, found) in bed.read(&result).into_iter().enumerate() {
        assert_eq!(found, ((index % 200) as f64 - 150.0).max(0.0));
    }
    let refused = |bias, names: &[&'static str]| {
        bed.refusal("tf._FusedMatMul", [&a, &b, bias], &fusion(names))
    };
    let vector = bed.dense(&[2], &[0.0_f32; 2]);
    assert_eq!(
        refused(&vector, &[]),
        "FusedMatMul must specify fused operations"
    );
    assert_eq!(
        refused(&vector, &["Relu"]),
        "Unsupported fusion type: Relu: expected BiasAdd, and BiasAdd followed by Relu, Relu6 or Elu"
    );
    assert_eq!(
        refused(&a, &["BiasAdd"]),
        "tf._FusedMatMul: expected a bias of one dimension, found [2, 3]"
    );
    let long = bed.dense(&[3], &[0.0_f32; 3]);
    assert!(refused(&long, &["BiasAdd"]).contains("must match"));
    assert!(
        bed.refusal("tf._FusedMatMul", [&a, &b], &fusion(&["BiasAdd"]))
            .contains("found 2 inputs")
    );
    let refused = bed.refusal(
        "tf._FusedMatMul",
        [&whole, &whole, &bias_of_one],
        &fusion(&["BiasAdd", "Elu"]),
    );
    assert_eq!(refused, "unsupported dtype for tf._FusedMatMul: i32");
}

#[test]
fn biases_are_added_to_the_last_dimension() {
    let bed = TestBed::new();
    let bias = bed.dense(&[2], &[1.5_f32, 2.5]);
    let mut nhwc = attrs([("data_format", "NHWC")]);
    nhwc.set("T", DType::F32).unwrap();
    for extents in [
        &[3, 2][..],
        &[1, 3, 2],
        &[1, 1, 3, 2],
        &[1, 1, 1, 3, 2],
        &[3, 1, 1, 1, 1, 2],
    ] {
        let x = bed.dense(extents, &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let before = address(&x);
        let lent = bed.one("tf.BiasAdd", [&x, &bias], &nhwc).unwrap();
        assert_eq!(bed.read(&lent), [2.5, 4.5, 4.5, 6.5, 6.5, 8.5]);
        let result = bed.one("tf.BiasAdd", [x, bias.clone()], &none()).unwrap();
        assert_eq!(
            (address(&result), bed.read(&result)),
            (before, bed.read(&lent))
        );
    }
    let x = bed.dense(&[3, 2], &[0.0_f32; 6]);
    assert_eq!(
        bed.refusal("tf.BiasAdd", [&x, &bias], &attrs([("data_format", "CHWN")])),
        "tf.BiasAdd: expected attribute 'data_format' to be NHWC or NCHW, found 'CHWN'"
    );
    assert_eq!(
        bed.refusal("tf.BiasAdd", [&x, &x], &none()),
        "tf.BiasAdd: expected a bias of one dimension, found [3, 2]"
    );
    assert!(
        bed.refusal("tf.BiasAdd", [&bias, &bias], &none())
            .contains("two dimensions")
    );
    let long = bed.dense(&[3], &[0.0_f32; 3]);
    assert!(
        bed.refusal("tf.BiasAdd", [&x, &long], &none())
            .contains("must match")
    );
}

#[test]
fn rows_become_shares_of_one() {
    let bed = TestBed::new();
    let x = bed.dense(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]);
    let text = |name| bed.one(name, [&x], &none()).unwrap().to_string();
    assert!(
        text("tf.Softmax").ends_with("[2.689414e-01, 7.310586e-01, 2.689414e-01, 7.310586e-01]")
    );
    assert!(
        text("tf.LogSoftmax")
            .ends_with("[-1.313262e+00, -3.132617e-01, -1.313262e+00, -3.132617e-01]")
    );
    let mut drawn = Drawn(3);
    for extents in [&[4][..], &[0], &[3, 0], &[0, 3], &[2, 2, 2], &[100, 1000]] {
        let n: usize = extents.iter().product();
        let numbers = drawn.list(n, -20.0, 40);
        for dtype in [DType::F16, DType::Bf16, DType::F32, DType::F64] {
            let x = bed.numbers(dtype, extents, &numbers);
            let [shares, logarithms] = ["tf.Softmax", "tf.LogSoftmax"].map(|name| {
                let result = bed.one(name, [&x], &none()).unwrap();
                assert_eq!(
                    (result.dtype(), &super::extents(&result)[..]),
                    (Some(dtype), extents)
                );
                bed.read(&result)
            });
            let row = extents[extents.len() - 1].max(1);
            let rows = numbers
                .chunks(row)
                .zip(shares.chunks(row).zip(logarithms.chunks(row)));
            for (x, (shares, logarithms)) in rows {
                let sum: f64 = x.iter().map(|x| x.exp()).sum();
                for (x, (share, logarithm)) in x.iter().zip(shares.iter().zip(logarithms)) {
                    let wanted = x - sum.ln();
                    assert!((share - wanted.exp()).abs() < 0.01);
                    assert!(
                        (logarithm - wanted).abs() <= 0.01 * wanted.abs().max(1.0),
                        "{dtype}"
                    );
                }
            }
        }
    }
    // A number is a row of one.
    let one = bed.dense(&[], &[3.0_f32]);
    let share = bed.one("tf.Softmax", [&one], &none()).unwrap();
    assert_eq!((extents(&share), bed.read(&share)), (vec![], vec![1.0]));
    assert!(
        bed.refusal("tf.Softmax", [&bed.dense(&[1], &[1_i32])], &none())
            .contains("is of i32, for which the operation is not defined")
    );
}
