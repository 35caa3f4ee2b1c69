//! Tests of products of bytes that become numbers: they are those of the definition.

use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{HostContext, RequestContext};

use super::*;
use crate::{TensorMetadata, TensorShape};

struct Here {
    host: HostContext,
    execution: ExecutionContext,
}

impl Here {
    fn new() -> Here {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let execution = ExecutionContext::new(&RequestContext::new(&host));
        Here { host, execution }
    }

    fn tensor(&self, dtype: DType, extents: &[usize], bytes: &[u8]) -> DenseHostTensor {
        let metadata = TensorMetadata::new(dtype, TensorShape::new(extents).unwrap());
        DenseHostTensor::from_bytes(self.host.allocator(), metadata, bytes).unwrap()
    }

    fn floats(&self, extents: &[usize]) -> DenseHostTensor {
        let n = extents.iter().product();
        DenseHostTensor::from_slice(self.host.allocator(), extents, &vec![-7.0_f32; n]).unwrap()
    }

    fn done(&self, chain: AsyncValue<Chain>) {
        self.host.queue().await_all(&[chain.into_any()]).unwrap();
    }
}

fn bytes(seed: usize, n: usize) -> Vec<u8> {
    (0..n)
        .map(|index| ((index * 37 + seed * 101) % 251) as u8)
        .collect()
}

fn number(dtype: DType, byte: u8) -> i32 {
    match dtype {
        DType::I8 => i32::from(byte.cast_signed()),
        _ => i32::from(byte),
    }
}

/// Returns the exact sums of a product.
fn sums(
    [rows, depth, columns]: [usize; 3],
    dtypes: [DType; 2],
    [a, b]: [&[u8]; 2],
    zeros: [i32; 2],
) -> Vec<i32> {
    let mut sums = Vec::new();
    for row in 0..rows {
        for column in 0..columns {
            let of = |at: usize| {
                let a = number(dtypes[0], a[row * depth + at]) - zeros[0];
                a * (number(dtypes[1], b[at * columns + column]) - zeros[1])
            };
            sums.push((0..depth).map(of).sum());
        }
    }
    sums
}

const SIGNS: [[DType; 2]; 3] = [
    [DType::Ui8, DType::I8],
    [DType::I8, DType::I8],
    [DType::Ui8, DType::Ui8],
];

#[test]
fn products_are_scaled_by_columns() {
    let here = Here::new();
    for [rows, depth, columns] in [
        [1, 5, 3],
        [1, 64, 100],
        [7, 33, 17],
        [64, 0, 4],
        [300, 96, 64],
        [2, 3, 20_000],
    ] {
        for dtypes in SIGNS {
            let (a, b) = (bytes(1, rows * depth), bytes(2, depth * columns));
            let zeros = [13, -5];
            let zeros = [
                zeros[0],
                if dtypes[1] == DType::I8 {
                    zeros[1]
                } else {
                    130
                },
            ];
            let packed = here.tensor(dtypes[1], &[depth, columns], &b);
            let packed = Arc::new(PackedBytes::new(&packed, &zeros[1..]).unwrap());
            for has_bias in [false, true] {
                let factors: Vec<f32> = (0..columns).map(|at| 0.01 + at as f32 * 0.003).collect();
                let bias: Vec<f32> = (0..columns).map(|at| at as f32 - 3.3).collect();
                let bias = if has_bias { bias } else { Vec::new() };
                let by = Arc::new(ColumnScales {
                    factors: factors.clone(),
                    bias: bias.clone(),
                });
                let left = here.tensor(dtypes[0], &[rows, depth], &a);
                let out = here.floats(&[rows, columns]);
                let made = byte_product_scaled_into(
                    &here.execution,
                    (&left, zeros[0]),
                    packed.clone(),
                    (by, 0.3),
                    &out,
                );
                here.done(made.unwrap());
                let wanted: Vec<f32> = sums([rows, depth, columns], dtypes, [&a, &b], zeros)
                    .iter()
                    .enumerate()
                    .map(|(at, sum)| {
                        let column = at % columns;
                        *sum as f32 * (0.3 * factors[column]) + bias.get(column).unwrap_or(&0.0)
                    })
                    .collect();
                assert_eq!(out.read().unwrap().elements::<f32>().unwrap(), wanted);
            }
        }
    }
}

#[test]
fn matrices_are_multiplied_pair_by_pair() {
    let here = Here::new();
    let cases: [([&[usize]; 2], [usize; 3]); 4] = [
        ([&[2, 3], &[2, 3]], [4, 5, 6]),
        ([&[2, 1], &[3]], [3, 32, 17]),
        ([&[], &[4]], [1, 7, 2]),
        ([&[2], &[]], [5, 2, 1]),
    ];
    for (batches, [rows, depth, columns]) in cases {
        for dtypes in SIGNS {
            let zeros = [3, if dtypes[1] == DType::I8 { -1 } else { 128 }];
            let of = |batch: &[usize], own: [usize; 2]| [batch, &own].concat();
            let extents = [
                of(batches[0], [rows, depth]),
                of(batches[1], [depth, columns]),
            ];
            let n: Vec<usize> = extents.iter().map(|one| one.iter().product()).collect();
            let (a, b) = (bytes(3, n[0]), bytes(4, n[1]));
            let tensors = [
                here.tensor(dtypes[0], &extents[0], &a),
                here.tensor(dtypes[1], &extents[1], &b),
            ];
            let batch = broadcast_extents(&batches).unwrap();
            let result = of(&batch, [rows, columns]);
            let all = pairs(&batch, batches);
            let mut exact = Vec::new();
            for [left, right] in all {
                let (a, b) = (&a[left * rows * depth..], &b[right * depth * columns..]);
                exact.extend(sums([rows, depth, columns], dtypes, [a, b], zeros));
            }
            let by = ProductScale {
                zeros,
                factor: 0.01,
                zero: 5,
            };
            let factors = [&tensors[0], &tensors[1]];
            let out = here.floats(&result);
            here.done(byte_matrices_into(&here.execution, factors, by, &out).unwrap());
            let wanted: Vec<f32> = exact.iter().map(|sum| *sum as f32 * 0.01).collect();
            assert_eq!(out.read().unwrap().elements::<f32>().unwrap(), wanted);
            for (dtype, least) in [(DType::Ui8, 0.0), (DType::I8, -128.0)] {
                let out = here.tensor(dtype, &result, &vec![9; exact.len()]);
                here.done(byte_matrices_into(&here.execution, factors, by, &out).unwrap());
                let wanted: Vec<i32> = wanted
                    .iter()
                    .map(|one| (one.round_ties_even() + 5.0).clamp(least, least + 255.0) as i32)
                    .collect();
                let reading = out.read().unwrap();
                let found: Vec<i32> = reading
                    .bytes()
                    .iter()
                    .map(|byte| number(dtype, *byte))
                    .collect();
                assert_eq!(found, wanted);
            }
        }
    }
    assert_eq!(
        pairs(&[2, 3], [&[2, 1], &[3]]),
        [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    );
}

#[test]
fn products_that_do_not_fit_are_told() {
    let here = Here::new();
    let tensor =
        |extents: &[usize]| here.tensor(DType::Ui8, extents, &vec![1; extents.iter().product()]);
    let (a, b) = (tensor(&[2, 3]), tensor(&[3, 4]));
    let refused = |b: &DenseHostTensor, zeros, zero, out: &DenseHostTensor| {
        let by = ProductScale {
            zeros,
            factor: 1.0,
            zero,
        };
        let error = byte_matrices_into(&here.execution, [&a, b], by, out).unwrap_err();
        error.message().to_owned()
    };
    let out = here.floats(&[2, 4]);
    assert!(
        refused(&tensor(&[4, 4]), [0, 0], 0, &out).contains("don't fit a result of extents [2, 4]")
    );
    assert!(refused(&b, [0, 300], 0, &out).contains("zero points [0, 300]"));
    assert_eq!(
        refused(&b, [0, 0], 256, &tensor(&[2, 4])),
        "the zero point 256 is no u8"
    );
    let whole = DenseHostTensor::from_slice(here.host.allocator(), &[2, 4], &[0_i32; 8]).unwrap();
    assert!(refused(&b, [0, 0], 0, &whole).contains("expected f32, ui8 or i8"));
    let packed = Arc::new(PackedBytes::new(&b, &[]).unwrap());
    let by = Arc::new(ColumnScales {
        factors: vec![1.0; 3],
        bias: Vec::new(),
    });
    let error = byte_product_scaled_into(&here.execution, (&a, 0), packed, (by, 1.0), &out);
    assert!(
        error
            .unwrap_err()
            .message()
            .contains("3 factors and 0 summands")
    );
}
