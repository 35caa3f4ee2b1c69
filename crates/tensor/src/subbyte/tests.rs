use proptest::prelude::*;
use tfrt_host::{HostContext, kernel::KernelRegistry};

use super::*;

/// Returns the codes of a type.
fn codes(dtype: SubbyteType) -> impl Iterator<Item = u8> {
    0..=u8::try_from((1_u16 << dtype.n_bits()) - 1).unwrap()
}

/// Returns a table of all numbers, by the formulas of the formats' definitions.
fn table(dtype: SubbyteType) -> Vec<f64> {
    let of = |code: u8| {
        let code_wide = f64::from(code);
        let (mantissa_bits, bias) = match dtype {
            SubbyteType::I4 => {
                return if code < 8 {
                    code_wide
                } else {
                    code_wide - 16.0
                };
            }
            SubbyteType::Ui4 | SubbyteType::Ui2 => return code_wide,
            SubbyteType::I2 => return if code < 2 { code_wide } else { code_wide - 4.0 },
            SubbyteType::F8E8M0 => {
                return if code == 255 {
                    f64::NAN
                } else {
                    2_f64.powf(code_wide - 127.0)
                };
            }
            SubbyteType::F8E4M3FN => (3, 7.0),
            SubbyteType::F8E4M3FNUZ => (3, 8.0),
            SubbyteType::F8E5M2 => (2, 15.0),
            SubbyteType::F8E5M2FNUZ => (2, 16.0),
            SubbyteType::F4E2M1 => (1, 1.0),
            SubbyteType::F8E3M4 => (4, 3.0),
            SubbyteType::F8E4M3 => (3, 7.0),
            SubbyteType::F8E4M3B11FNUZ => (3, 11.0),
            SubbyteType::F6E2M3 => (3, 1.0),
            SubbyteType::F6E3M2 => (2, 3.0),
        };
        let n_exponents = 1_u8 << (dtype.n_bits() - 1 - mantissa_bits);
        let sign = if code >> (dtype.n_bits() - 1) == 1 {
            -1.0
        } else {
            1.0
        };
        let exponent = (code >> mantissa_bits) % n_exponents;
        let mantissa = code % (1 << mantissa_bits);
        let fraction = f64::from(mantissa) / f64::from(1 << mantissa_bits);
        match dtype {
            SubbyteType::F8E4M3FN if code % 128 == 127 => return f64::NAN,
            SubbyteType::F8E4M3FNUZ | SubbyteType::F8E4M3B11FNUZ | SubbyteType::F8E5M2FNUZ
                if code == 128 =>
            {
                return f64::NAN;
            }
            SubbyteType::F8E5M2 | SubbyteType::F8E3M4 | SubbyteType::F8E4M3
                if exponent == n_exponents - 1 =>
            {
                return match mantissa {
                    0 => sign * f64::INFINITY,
                    _ => f64::NAN,
                };
            }
            _ => {}
        }
        match exponent {
            0 => sign * 2_f64.powf(1.0 - bias) * fraction,
            _ => sign * 2_f64.powf(f64::from(exponent) - bias) * (1.0 + fraction),
        }
    };
    codes(dtype).map(of).collect()
}

/// Finds the code in the table: the nearest, ties to even; `None` for numbers above the largest by half of the last
/// step or more.
fn search(dtype: SubbyteType, table: &[f64], value: f32) -> Option<u8> {
    let value = f64::from(value);
    let largest = table
        .iter()
        .copied()
        .filter(|x| x.is_finite())
        .fold(0.0, f64::max);
    if value.abs() > 2.0 * largest {
        // Far outside distances are all the same.
        return None;
    }
    let mut finite: Vec<(f64, u8)> = table
        .iter()
        .zip(codes(dtype))
        .filter(|(x, _)| {
            x.is_finite() && (x.is_sign_negative() == value.is_sign_negative() || **x == 0.0)
        })
        .map(|(x, code)| (*x, code))
        .collect();
    // The number that would be next, if there were one.
    let below = table
        .iter()
        .copied()
        .filter(|x| x.is_finite() && *x < largest)
        .fold(0.0, f64::max);
    let next = largest + (largest - below);
    let next_code = finite
        .iter()
        .find(|(x, _)| x.abs() == largest)?
        .1
        .wrapping_add(1);
    finite.push((next.copysign(value), next_code));
    let best = finite.into_iter().min_by(|(x, x_code), (y, y_code)| {
        let distance = |x: &f64| (x - value).abs();
        distance(x)
            .total_cmp(&distance(y))
            .then((x_code % 2).cmp(&(y_code % 2)))
            // -0 for what is negative.
            .then(
                (x.is_sign_negative() != value.is_sign_negative())
                    .cmp(&(y.is_sign_negative() != value.is_sign_negative())),
            )
    });
    best.filter(|(x, _)| x.abs() <= largest)
        .map(|(_, code)| code)
}

const FLOATS: [SubbyteType; 10] = [
    SubbyteType::F8E4M3FN,
    SubbyteType::F8E4M3FNUZ,
    SubbyteType::F8E5M2,
    SubbyteType::F8E5M2FNUZ,
    SubbyteType::F4E2M1,
    SubbyteType::F8E3M4,
    SubbyteType::F8E4M3,
    SubbyteType::F8E4M3B11FNUZ,
    SubbyteType::F6E2M3,
    SubbyteType::F6E3M2,
];

fn check(dtype: SubbyteType, table: &[f64], value: f32) {
    let found = dtype.encode(value, Overflow::Saturate);
    let wanted = search(dtype, table, value);
    match wanted {
        Some(wanted) => {
            assert_eq!(found, wanted, "{dtype:?} {value:e}");
            assert_eq!(dtype.encode(value, Overflow::Escape), wanted);
        }
        None => {
            let is_unsigned = matches!(
                dtype,
                SubbyteType::F8E4M3FNUZ | SubbyteType::F8E4M3B11FNUZ | SubbyteType::F8E5M2FNUZ
            );
            let number = dtype.decode(found);
            if value.is_infinite() && is_unsigned {
                assert!(number.is_nan());
            } else {
                let largest = table
                    .iter()
                    .copied()
                    .filter(|x| x.is_finite())
                    .fold(0.0, f64::max);
                assert_eq!(
                    f64::from(number),
                    largest.copysign(value.into()),
                    "{dtype:?} {value:e}"
                );
            }
            let escaped = dtype.decode(dtype.encode(value, Overflow::Escape));
            match dtype {
                SubbyteType::F8E5M2 | SubbyteType::F8E3M4 | SubbyteType::F8E4M3 => {
                    assert_eq!(escaped, f32::INFINITY.copysign(value));
                }
                SubbyteType::F4E2M1 => assert_eq!(escaped, 6_f32.copysign(value)),
                SubbyteType::F6E2M3 => assert_eq!(escaped, 7.5_f32.copysign(value)),
                SubbyteType::F6E3M2 => assert_eq!(escaped, 28_f32.copysign(value)),
                _ => assert!(escaped.is_nan()),
            }
        }
    }
}

#[test]
fn all_codes_are_those_of_the_tables() {
    for dtype in SubbyteType::ALL {
        for (code, wanted) in codes(dtype).zip(table(dtype)) {
            let found = f64::from(dtype.decode(code));
            let is_same =
                found.to_bits() == wanted.to_bits() || (found.is_nan() && wanted.is_nan());
            assert!(is_same, "{dtype:?} {code:#x}: {found} {wanted}");
            let back = dtype.encode(dtype.decode(code), Overflow::Escape);
            if wanted.is_nan() {
                assert!(dtype.decode(back).is_nan(), "{dtype:?} {code:#x}");
            } else {
                assert_eq!(back, code, "{dtype:?} {code:#x}");
            }
        }
    }
}

#[test]
fn what_lies_between_codes_goes_to_the_nearest() {
    for dtype in FLOATS {
        let table = table(dtype);
        let mut finite: Vec<f64> = table.iter().copied().filter(|x| x.is_finite()).collect();
        finite.sort_by(f64::total_cmp);
        finite.extend([1e30, -1e30, 3e38]);
        for pair in finite.windows(2) {
            let middle = ((pair[0] + pair[1]) / 2.0) as f32;
            for value in [
                middle,
                middle.next_up(),
                middle.next_down(),
                pair[0] as f32,
                (pair[0] as f32).next_up(),
                (pair[0] as f32).next_down(),
            ] {
                check(dtype, &table, value);
                check(dtype, &table, -value);
            }
        }
        // Half of the last step above the largest, and next to it.
        let largest = finite
            .iter()
            .copied()
            .filter(|x| *x < 1e6)
            .fold(0.0, f64::max);
        for factor in [
            1.01, 1.03, 1.035, 1.0357, 1.036, 1.0625, 1.07, 1.0714, 1.072, 1.1, 1.16, 1.17,
        ] {
            check(dtype, &table, (largest * factor) as f32);
        }
        for value in [
            0.0,
            -0.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1e-45,
            -1e-45,
            f32::MIN_POSITIVE,
            f32::MAX,
        ] {
            check(dtype, &table, value);
        }
    }
}

#[test]
fn what_is_no_number_is_as_onnx_has_it() {
    let of = |dtype: SubbyteType| dtype.encode(f32::NAN, Overflow::Saturate);
    assert_eq!(of(SubbyteType::F8E4M3FN), 0x7f);
    assert_eq!(of(SubbyteType::F8E4M3FNUZ), 0x80);
    assert!(SubbyteType::F8E5M2.decode(of(SubbyteType::F8E5M2)).is_nan());
    assert_eq!(of(SubbyteType::F8E5M2FNUZ), 0x80);
    assert_eq!(of(SubbyteType::F4E2M1), 0x7);
    assert_eq!(of(SubbyteType::F8E8M0), 0xff);
    assert_eq!([of(SubbyteType::I4), of(SubbyteType::Ui4)], [0, 0]);
    assert_eq!(
        SubbyteType::F8E4M3FN.encode(f32::INFINITY, Overflow::Saturate),
        0x7e
    );
    assert_eq!(
        SubbyteType::F8E4M3FNUZ.encode(f32::INFINITY, Overflow::Saturate),
        0x80
    );
    assert_eq!(SubbyteType::F8E4M3FNUZ.encode(-0.0, Overflow::Saturate), 0);
}

#[test]
fn powers_of_two_are_rounded_up() {
    let of = |value| SubbyteType::F8E8M0.encode(value, Overflow::Saturate);
    assert_eq!(
        [of(1.0), of(1.0001), of(1.9999), of(2.0)],
        [127, 128, 128, 128]
    );
    assert_eq!(
        [
            of(0.0),
            of(1e-45),
            of(f32::from_bits(1 << 22)),
            of(f32::from_bits((1 << 22) + 1))
        ],
        [0, 0, 0, 1]
    );
    assert_eq!([of(-1.0), of(f32::INFINITY), of(f32::MAX)], [255, 254, 254]);
    assert_eq!(SubbyteType::F8E8M0.encode(f32::MAX, Overflow::Escape), 255);
}

#[test]
fn integers_are_rounded_and_saturate() {
    let of = |value| SubbyteType::I4.encode(value, Overflow::Escape);
    assert_eq!(
        [
            of(-9.0),
            of(-0.5),
            of(0.5),
            of(1.5),
            of(7.6),
            of(f32::INFINITY)
        ],
        [8, 0, 0, 2, 7, 7]
    );
    let of = |value| SubbyteType::Ui4.encode(value, Overflow::Escape);
    assert_eq!([of(-9.0), of(2.5), of(15.5), of(1e9)], [0, 2, 15, 15]);
}

proptest! {
    #[test]
    fn any_number_goes_to_the_nearest(bits in any::<u32>(), small in -500.0..500.0_f32) {
        for dtype in FLOATS {
            let table = table(dtype);
            let value = f32::from_bits(bits);
            if !value.is_nan() {
                check(dtype, &table, value);
            }
            check(dtype, &table, small);
        }
    }

    #[test]
    fn tensors_go_there_and_back(
        extents in prop::collection::vec(0..5_usize, 0..4),
        picks in prop::collection::vec(any::<u8>(), 125),
        first in 0..130_usize,
    ) {
        let host = HostContext::builder(KernelRegistry::new()).build();
        let n: usize = extents.iter().product();
        for dtype in SubbyteType::ALL {
            let numbers: Vec<f32> = picks[..n.min(125)].iter().map(|pick| {
                let code = pick >> (8 - dtype.n_bits());
                let number = dtype.decode(code);
                if number.is_nan() { 1.0 } else { number }
            }).collect();
            let dense = DenseHostTensor::from_slice(host.allocator(), &extents, &numbers).unwrap();
            let compact = SubbyteTensor::of(&dense, dtype, Overflow::Escape, host.allocator()).unwrap();
            // Elements do not cross bytes: those of 6 bits have one each.
            prop_assert_eq!(compact.buffer().len_bytes(), n.div_ceil(8 / dtype.n_bits()));
            let back = compact.to_dense(host.allocator()).unwrap();
            let reading = back.read().unwrap();
            prop_assert_eq!(reading.elements::<f32>().unwrap(), &numbers[..]);
            let mut part = vec![f32::NAN; n.saturating_sub(first)];
            dtype.unpack(&compact.buffer().read().unwrap(), first, &mut part);
            prop_assert_eq!(&part[..], numbers.get(first..).unwrap_or(&[]));
        }
    }
}

#[test]
fn tensors_print_and_tell_what_does_not_fit() {
    let host = HostContext::builder(KernelRegistry::new()).build();
    let shape = |extents: &[usize]| TensorShape::new(extents).unwrap();
    let of = |dtype, extents: &[usize], bytes: &[u8]| {
        SubbyteTensor::from_bytes(dtype, shape(extents), bytes, host.allocator())
    };
    let tensor = of(SubbyteType::I4, &[3], &[0x78, 0x0f]).unwrap();
    assert_eq!(
        tensor.to_text().unwrap(),
        "CompactTensor dtype = i4, shape = [3], values = [-8, 7, -1]"
    );
    let tensor = of(SubbyteType::F8E5M2, &[2], &[0x3c, 0xfc]).unwrap();
    assert_eq!(
        tensor.to_text().unwrap(),
        "CompactTensor dtype = f8e5m2, shape = [2], values = [1.000000e+00, -INF]"
    );
    let many = of(SubbyteType::Ui4, &[17], &[0; 9])
        .unwrap()
        .to_text()
        .unwrap();
    assert!(many.ends_with("0, 0, ... ]"), "{many}");
    let error = of(SubbyteType::Ui4, &[3], &[0; 3]).unwrap_err();
    assert_eq!(
        error.message(),
        "a tensor of u4 [3] takes 2 bytes, the buffer has 3"
    );
    assert!(of(SubbyteType::F8E8M0, &[1 << 40, 1 << 40], &[]).is_err());
}
