//! Functions of elements.

use tfrt_corert::TensorHandle;
use tfrt_host::DType;
use tfrt_tensor::{BF16, Bool, Complex, F16, TensorFormat};

use super::{Drawn, REALS, TestBed, address, attrs, elements, extents, none, source};

/// A function of a number.
type Unary = fn(f64) -> f64;
/// A function of two numbers.
type Function = fn(f64, f64) -> f64;

/// Names and what they are of numbers that are exact in all types: of integers, then of floats.
const BINARY: [(&str, Function); 9] = [
    ("tf.AddV2", |x, y| x + y),
    ("tf.Sub", |x, y| x - y),
    ("tf.Mul", |x, y| x * y),
    ("tf.RealDiv", |x, y| x / y),
    ("tf.Maximum", f64::max),
    ("tf.Minimum", f64::min),
    ("tf.Less", |x, y| f64::from(u8::from(x < y))),
    ("tf.Greater", |x, y| f64::from(u8::from(x > y))),
    ("tf.Equal", |x, y| f64::from(u8::from(x == y))),
];

fn is_comparison(name: &str) -> bool {
    matches!(name, "tf.Less" | "tf.Greater" | "tf.Equal")
}

/// Shapes of two operands, and of the result.
const SHAPES: [[&[usize]; 3]; 12] = [
    [&[], &[], &[]],
    [&[3], &[3], &[3]],
    [&[2, 3], &[3], &[2, 3]],
    [&[1, 3], &[2, 1], &[2, 3]],
    [&[1], &[2, 3], &[2, 3]],
    [&[2, 3], &[], &[2, 3]],
    [&[3], &[1, 1, 1], &[1, 1, 3]],
    [&[0], &[1], &[0]],
    [&[2, 0, 3], &[1, 3], &[2, 0, 3]],
    [&[2, 1, 2, 1, 2, 1], &[3, 1, 2, 1, 2], &[2, 3, 2, 2, 2, 2]],
    [&[70, 1000], &[1000], &[70, 1000]],
    [&[300, 1], &[1, 400], &[300, 400]],
];

#[test]
fn functions_of_two_are_those_of_their_elements_in_all_types() {
    let (bed, mut drawn) = (TestBed::new(), Drawn(1));
    for [x_shape, y_shape, shape] in SHAPES {
        let n = |extents: &[usize]| extents.iter().product::<usize>();
        let x = drawn.list(n(x_shape), 9.0, 5);
        let y = drawn.list(n(y_shape), 1.0, 9);
        // Long ones are of few types: it takes long without optimization.
        let is_long = n(shape) > 1000;
        let types = REALS
            .iter()
            .filter(|dtype| !is_long || matches!(**dtype, DType::F32 | DType::Ui16));
        for dtype in types {
            let operands = [
                bed.numbers(*dtype, x_shape, &x),
                bed.numbers(*dtype, y_shape, &y),
            ];
            for (name, function) in BINARY {
                let result = bed.one(name, &operands, &none()).unwrap();
                let expected = if is_comparison(name) {
                    DType::I1
                } else {
                    *dtype
                };
                assert_eq!(
                    (result.dtype(), &extents(&result)[..]),
                    (Some(expected), shape)
                );
                for (index, found) in bed.read(&result).into_iter().enumerate() {
                    let (x, y) = (
                        x[source(index, shape, x_shape)],
                        y[source(index, shape, y_shape)],
                    );
                    let wanted = match (name, dtype.is_integer()) {
                        ("tf.RealDiv", true) => (x / y).trunc(),
                        _ => function(x, y),
                    };
                    let bound = if name == "tf.RealDiv" {
                        0.01 * wanted
                    } else {
                        0.0
                    };
                    assert!(
                        (found - wanted).abs() <= bound,
                        "{name} {dtype} {x} {y}: {found}"
                    );
                }
                // The long way, with an attribute.
                let typed = bed.one(name, &operands, &attrs([("T", *dtype)])).unwrap();
                assert_eq!(typed.to_string(), result.to_string());
            }
        }
    }
}

#[test]
fn complex_numbers_are_calculated_with() {
    let bed = TestBed::new();
    let complex = |real: f32, imaginary: f32| Complex { real, imaginary };
    let x = bed.dense(&[2], &[complex(1.0, 2.0), complex(0.0, -1.0)]);
    let y = bed.dense(&[], &[complex(0.0, 1.0)]);
    for (name, wanted) in [
        ("tf.AddV2", [complex(1.0, 3.0), complex(0.0, 0.0)]),
        ("tf.Sub", [complex(1.0, 1.0), complex(0.0, -2.0)]),
        ("tf.Mul", [complex(-2.0, 1.0), complex(1.0, 0.0)]),
        ("tf.RealDiv", [complex(2.0, -1.0), complex(-1.0, 0.0)]),
    ] {
        let result = bed.one(name, [&x, &y], &none()).unwrap();
        assert_eq!(elements::<Complex<f32>>(&result), wanted, "{name}");
    }
    let wide = bed.dense(
        &[1],
        &[Complex {
            real: 1.0_f64,
            imaginary: 2.0,
        }],
    );
    let square = bed.one("tf.Square", [&wide], &none()).unwrap();
    assert_eq!(
        square.to_string(),
        "DenseHostTensor dtype = complex128, shape = [1], values = [(-3.000000e+00,4.000000e+00)]"
    );
    let negated = bed.one("tf.Neg", [&wide], &none()).unwrap();
    assert_eq!(elements::<Complex<f64>>(&negated)[0].real, -1.0);
    assert!(
        bed.refusal("tf.Less", [&x, &y], &none())
            .contains("complex64")
    );
    assert!(bed.refusal("tf.Relu", [&x], &none()).contains("complex64"));
}

#[test]
fn functions_of_one_are_those_of_their_elements() {
    let bed = TestBed::new();
    let functions: [(&str, Unary); 10] = [
        ("tf.Relu", |x| x.max(0.0)),
        ("tf.Neg", |x| -x),
        ("tf.Square", |x| x * x),
        ("tf.Sqrt", f64::sqrt),
        ("tf.Rsqrt", |x| 1.0 / x.sqrt()),
        ("tf.Exp", f64::exp),
        ("tf.Log", f64::ln),
        ("tf.Log1p", f64::ln_1p),
        ("tf.Sigmoid", |x| 1.0 / (1.0 + (-x).exp())),
        ("tf.Tanh", f64::tanh),
    ];
    for n in [0, 1, 5, 5000, 70_000] {
        let numbers: Vec<f64> = (0..n)
            .map(|index| 0.25 + (index % 32) as f64 / 16.0)
            .collect();
        for dtype in [DType::F16, DType::Bf16, DType::F32, DType::F64] {
            let x = bed.numbers(dtype, &[n], &numbers);
            let precision = match dtype {
                DType::F16 => 2e-3,
                DType::Bf16 => 2e-2,
                DType::F32 => 1e-5,
                _ => 1e-12,
            };
            for (name, function) in functions {
                let result = bed.one(name, [&x], &none()).unwrap();
                assert_eq!((result.dtype(), extents(&result)), (Some(dtype), vec![n]));
                for (found, x) in bed.read(&result).into_iter().zip(&numbers) {
                    let wanted = function(*x);
                    let bound = precision * wanted.abs().max(1e-2);
                    assert!(
                        (found - wanted).abs() <= bound,
                        "{name} {dtype} {x}: {found} and not {wanted}"
                    );
                }
            }
        }
    }
    // Integers where they make sense, and wrap around.
    for dtype in REALS.into_iter().filter(|dtype| dtype.is_integer()) {
        let x = bed.numbers(dtype, &[3], &[0.0, 1.0, 7.0]);
        let squares = bed.one("tf.Square", [&x], &none()).unwrap();
        assert_eq!(bed.read(&squares), [0.0, 1.0, 49.0]);
        assert_eq!(
            bed.read(&bed.one("tf.Relu", [&x], &none()).unwrap()),
            [0.0, 1.0, 7.0]
        );
        assert!(
            bed.refusal("tf.Exp", [&x], &none())
                .starts_with("unsupported dtype for tf.Exp")
        );
    }
    let least = bed.dense(&[1], &[i32::MIN]);
    assert_eq!(
        elements::<i32>(&bed.one("tf.Neg", [&least], &none()).unwrap()),
        [i32::MIN]
    );
}

#[test]
fn tensors_print_what_the_original_prints() {
    let bed = TestBed::new();
    let x = [-1.0_f32, -0.5, 0.0, 0.5, 1.0, 1.5];
    let whole = [0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0];
    let (a, b) = (bed.dense(&[2, 3], &x), bed.dense(&[2, 3], &whole));
    let printed = |name: &str, x: &TensorHandle, y: &TensorHandle| {
        bed.one(name, [x, y], &none()).unwrap().to_string()
    };
    assert_eq!(
        printed("tf.Mul", &a, &b),
        "DenseHostTensor dtype = f32, shape = [2, 3], values = [-0.000000e+00, -5.000000e-01, 0.000000e+00, \
         1.500000e+00, 4.000000e+00, 7.500000e+00]"
    );
    assert_eq!(
        printed("tf.AddV2", &a, &bed.scalar(&[2, 3], 1.0_f32)),
        "DenseHostTensor dtype = f32, shape = [2, 3], values = [0.000000e+00, 5.000000e-01, 1.000000e+00, \
         1.500000e+00, 2.000000e+00, 2.500000e+00]"
    );
    assert_eq!(
        printed(
            "tf.AddV2",
            &bed.scalar(&[2, 3], 1.0_f32),
            &bed.scalar(&[2, 3], 2.0_f32)
        ),
        "ScalarHostTensor dtype = f32, shape = [2, 3], value = 3.000000e+00"
    );
    let (c, d) = (
        bed.dense(&[2, 3], &[-1.0_f32, -0.5, 0.0, 0.5, 5.0, 7.5]),
        bed.dense(&[2, 3], &[4.0_f32, 1.0, 2.0, 3.0, 3.0, 5.0]),
    );
    assert_eq!(
        printed("tf.Less", &c, &d),
        "DenseHostTensor dtype = i1, shape = [2, 3], values = [1, 1, 1, 1, 0, 0]"
    );
    let one = |name, elements: &[f32]| {
        let x = bed.dense(&[elements.len()], elements);
        let text = bed.one(name, [x], &none()).unwrap().to_string();
        text.split_once("values = ").unwrap().1.to_owned()
    };
    let list = [1.0, 2.5, 3.0, 4.5, 5.0];
    assert_eq!(
        one("tf.Log", &list),
        "[0.000000e+00, 9.162908e-01, 1.098612e+00, 1.504077e+00, 1.609438e+00]"
    );
    assert_eq!(
        one("tf.Log1p", &list),
        "[6.931472e-01, 1.252763e+00, 1.386294e+00, 1.704748e+00, 1.791759e+00]"
    );
    assert_eq!(
        one("tf.Sigmoid", &[1.0, 2.5, 3.0, 4.5, 6.0]),
        "[7.310586e-01, 9.241418e-01, 9.525741e-01, 9.890131e-01, 9.975274e-01]"
    );
}

#[test]
fn tensors_of_one_value_are_broadcast_like_others() {
    let bed = TestBed::new();
    let long: Vec<i64> = (0..5000).collect();
    for (extents, n) in [(&[][..], 1), (&[3], 3), (&[5000], 5000), (&[2, 1], 2)] {
        let dense = bed.dense(extents, &long[..n]);
        for scalar in [&[][..], &[1], &[1, 1], &[2, 1], &[4, 1, 1], &[0, 1, 1]] {
            let value = bed.scalar(scalar, 7_i64);
            let same = bed
                .one("tfrt_test.identity_dense_only", [&value], &none())
                .unwrap();
            for (name, _) in BINARY {
                let wanted = bed
                    .one(name, [&dense, &same], &none())
                    .map(|one| one.to_string());
                let found = bed
                    .one(name, [&dense, &value], &none())
                    .map(|one| one.to_string());
                assert_eq!(found.ok(), wanted.ok(), "{name} {extents:?} {scalar:?}");
                let wanted = bed
                    .one(name, [&same, &dense], &none())
                    .map(|one| one.to_string());
                let found = bed.one(name, [value.clone(), dense.clone()], &none());
                assert_eq!(found.map(|one| one.to_string()).ok(), wanted.ok(), "{name}");
            }
        }
    }
    // However large, two values make a value.
    let huge = [1 << 20, 1 << 20, 1 << 20];
    let (x, y) = (bed.scalar(&huge, 2_u8), bed.scalar(&[1 << 20, 1], 3_u8));
    for (name, function) in BINARY {
        let result = bed.one(name, [&x, &y], &none()).unwrap();
        let tensor = result.tensor().unwrap().unwrap();
        assert_eq!(
            (tensor.format(), &extents(&result)[..]),
            (TensorFormat::ScalarHost, &huge[..])
        );
        let wrapped = function(2.0, 3.0).rem_euclid(256.0).trunc();
        assert!(
            result.to_string().ends_with(&format!("value = {wrapped}")),
            "{name}: {result}"
        );
    }
}

#[test]
fn memory_of_operands_is_used_again_if_nobody_else_holds_it() {
    let bed = TestBed::new();
    for dtype in [DType::F32, DType::I8, DType::Bf16] {
        for n in [3, 5000, 100_000] {
            let ones = vec![1.0; n];
            let new = |extents: &[usize]| {
                let n = extents.iter().product();
                bed.numbers(dtype, extents, &ones[..n])
            };
            for name in [
                "tf.AddV2",
                "tf.Sub",
                "tf.Mul",
                "tf.RealDiv",
                "tf.Maximum",
                "tf.Minimum",
            ] {
                let (x, y) = (new(&[n]), new(&[n]));
                let [first, second] = [&x, &y].map(address);
                let result = bed.one(name, [x, y.clone()], &none()).unwrap();
                assert_eq!(address(&result), first, "{name} {dtype} {n}");
                let result = bed.one(name, [result.clone(), y], &none()).unwrap();
                assert_eq!(address(&result), second, "{name} {dtype} {n}");
                // Of another shape than the result, another type, or lent.
                let row = new(&[n]);
                let before = address(&row);
                let wide = bed.one(name, [row, new(&[2, 1])], &none()).unwrap();
                assert_ne!(address(&wide), before);
                let lent = bed.one(name, [&wide, &wide], &none()).unwrap();
                assert_ne!(address(&lent), address(&wide));
                // With what is broadcast to it, on either side.
                let before = address(&lent);
                let result = bed.one(name, [new(&[1]), lent], &none()).unwrap();
                assert_eq!(address(&result), before, "{name} {dtype} {n}");
                let result = bed.one(name, [result, new(&[2, 1])], &none()).unwrap();
                assert_eq!(address(&result), before, "{name} {dtype} {n}");
            }
            for name in ["tf.Relu", "tf.Neg", "tf.Square"] {
                let x = new(&[n]);
                let before = address(&x);
                let result = bed.one(name, [x], &none()).unwrap();
                assert_eq!(address(&result), before, "{name} {dtype} {n}");
                let kept = result.clone();
                assert_ne!(
                    address(&bed.one(name, [result], &none()).unwrap()),
                    address(&kept)
                );
            }
        }
    }
    // With a value the dense operand's.
    let x = bed.dense(&[2, 3], &[1.0_f64; 6]);
    let before = address(&x);
    let result = bed
        .one("tf.Sub", [bed.scalar(&[3], 3.0_f64), x], &none())
        .unwrap();
    assert_eq!(
        (address(&result), bed.read(&result)),
        (before, vec![2.0; 6])
    );
}

#[test]
fn elements_are_converted_to_all_types() {
    let bed = TestBed::new();
    let to = |dtype| attrs([("DstT", dtype)]);
    let x = bed.dense(&[4], &[-1.5_f32, 0.0, 2.75, 300.0]);
    let wanted = [
        (DType::I8, [-1.0, 0.0, 2.0, 127.0]),
        (DType::Ui8, [0.0, 0.0, 2.0, 255.0]),
        (DType::I64, [-1.0, 0.0, 2.0, 300.0]),
        (DType::F16, [-1.5, 0.0, 2.75, 300.0]),
        (DType::Bf16, [-1.5, 0.0, 2.75, 300.0]),
        (DType::I1, [1.0, 0.0, 1.0, 1.0]),
    ];
    for (dtype, wanted) in wanted {
        let result = bed.one("tf.Cast", [&x], &to(dtype)).unwrap();
        assert_eq!(
            (result.dtype(), bed.read(&result)),
            (Some(dtype), wanted.to_vec())
        );
    }
    let same = bed.one("tf.Cast", [&x], &to(DType::F32)).unwrap();
    assert_eq!(address(&same), address(&x));
    assert_eq!(
        bed.refusal("tf.Cast", [&x], &none()),
        "tf.Cast must have 'DstT' attribute"
    );
    assert_eq!(
        bed.refusal("tf.Cast", [&x], &to(DType::Complex64)),
        "tf.Cast: expected real numbers or truth values to convert, found complex64"
    );
    assert!(
        bed.refusal("tf.Cast", [&x], &attrs([("DstT", "f32")]))
            .contains("expected a type")
    );
    let (half, brain) = (
        bed.dense(&[1], &[F16(0x3c00)]),
        bed.dense(&[1], &[BF16(0x3f80)]),
    );
    assert_eq!((bed.read(&half), bed.read(&brain)), (vec![1.0], vec![1.0]));
}

#[test]
fn what_does_not_fit_is_refused_by_the_call() {
    let bed = TestBed::new();
    let (x, y) = (
        bed.dense(&[2], &[1.0_f32; 2]),
        bed.dense(&[3], &[1.0_f32; 3]),
    );
    let whole = bed.dense(&[2], &[1_i32; 2]);
    let truth = bed.dense(&[2], &[Bool::from(true); 2]);
    for (name, _) in BINARY {
        assert_eq!(
            bed.refusal(name, [&x, &y], &none()),
            "tensor shape mismatch: [2] vs. [3]"
        );
        assert_eq!(
            bed.refusal(name, [&x, &whole], &none()),
            format!("{name}: incompatible dtypes: f32 [2] and i32 [2]")
        );
        if name != "tf.Equal" {
            assert_eq!(
                bed.refusal(name, [&truth, &truth], &none()),
                format!("unsupported dtype for {name}: i1")
            );
        }
        assert_eq!(
            bed.refusal(name, [&x], &none()),
            format!("{name} expects 2 inputs, found 1")
        );
        let refusal = bed.refusal(name, [&x, &x], &attrs([("axis", 1_i32)]));
        let start = format!("{name} has no attribute 'axis': ");
        assert!(refusal.starts_with(&start), "{refusal}");
    }
    let same = bed.one("tf.Equal", [&truth, &truth], &none()).unwrap();
    assert_eq!(bed.read(&same), [1.0, 1.0]);
}
