//! Operations along dimensions.

use tfrt_corert::OpAttrs;
use tfrt_host::DType;

use super::{Drawn, REALS, TestBed, attrs, extents, none};

fn axes(list: &[i64], keeps: bool) -> OpAttrs {
    let mut set = attrs([("keep_dims", keeps)]);
    set.set("axes", list).unwrap();
    set
}

#[test]
fn sums_are_taken_along_dimensions() {
    let (bed, mut drawn) = (TestBed::new(), Drawn(4));
    let shape = [2, 3, 4];
    let x = drawn.list(24, 0.0, 4);
    for dtype in REALS {
        let tensor = bed.numbers(dtype, &shape, &x);
        for list in [&[][..], &[0], &[1], &[-1], &[2, 0], &[0, 1, 2], &[-3, -2]] {
            for keeps in [false, true] {
                let is_summed = |dimension: usize| {
                    list.iter()
                        .any(|axis: &i64| axis.rem_euclid(3) == dimension as i64)
                };
                let kept: Vec<usize> = (0..3)
                    .map(|d| if is_summed(d) { 1 } else { shape[d] })
                    .collect();
                let mut wanted = vec![0.0; kept.iter().product()];
                for (index, x) in x.iter().enumerate() {
                    wanted[super::source(index, &shape, &kept)] += x;
                }
                let result = bed.one("tf.Sum", [&tensor], &axes(list, keeps)).unwrap();
                assert_eq!(bed.read(&result), wanted, "{dtype} {list:?}");
                let extents = extents(&result);
                match keeps {
                    true => assert_eq!(extents, kept),
                    false => assert_eq!(extents.len(), (0..3).filter(|d| !is_summed(*d)).count()),
                }
            }
        }
        let all = bed.one("tf.Sum", [&tensor], &none()).unwrap();
        assert_eq!(
            (extents(&all), bed.read(&all)),
            (vec![], vec![x.iter().sum()])
        );
    }
    let empty = bed.dense::<f32>(&[0, 2], &[]);
    assert_eq!(
        bed.read(&bed.one("tf.Sum", [&empty], &axes(&[0], false)).unwrap()),
        [0.0, 0.0]
    );
    assert_eq!(
        bed.refusal("tf.Sum", [&empty], &axes(&[2], false)),
        "tf.Sum: expected an axis of 2 dimensions, found 2"
    );
    assert_eq!(
        bed.refusal("tf.Sum", [&empty], &axes(&[-3], false)),
        "tf.Sum: expected an axis of 2 dimensions, found -3"
    );
    assert_eq!(
        bed.refusal("tf.Sum", [&empty], &axes(&[1, -1], false)),
        "tf.Sum: expected each axis once, found -1 again"
    );
}

#[test]
fn positions_of_the_largest_elements_are_found() {
    let bed = TestBed::new();
    for dtype in REALS {
        let x = bed.numbers(dtype, &[2, 3], &[1.0, 5.0, 2.0, 7.0, 0.0, 7.0]);
        let rows = bed
            .one("tf.ArgMax", [&x], &attrs([("axis", 1_i64)]))
            .unwrap();
        assert_eq!(
            (rows.dtype(), bed.read(&rows)),
            (Some(DType::I64), vec![1.0, 0.0])
        );
        let last = bed
            .one("tf.ArgMax", [&x], &attrs([("dimension", -1_i32)]))
            .unwrap();
        assert_eq!(bed.read(&last), [1.0, 0.0]);
        let mut narrow = attrs([("axis", 0_i32)]);
        narrow.set("output_type", DType::I32).unwrap();
        let columns = bed.one("tf.ArgMax", [&x], &narrow).unwrap();
        assert_eq!(
            (columns.dtype(), bed.read(&columns)),
            (Some(DType::I32), vec![1.0, 0.0, 1.0])
        );
    }
    let x = bed.dense(&[2, 0], &[0.0_f32; 0]);
    assert!(
        bed.refusal("tf.ArgMax", [&x], &attrs([("axis", 1_i32)]))
            .contains("no element")
    );
    let none_at_all = bed
        .one("tf.ArgMax", [&x], &attrs([("axis", 0_i32)]))
        .unwrap();
    assert_eq!(extents(&none_at_all), [0]);
    assert_eq!(
        bed.refusal("tf.ArgMax", [&x], &none()),
        "tf.ArgMax must have 'axis' attribute"
    );
    assert!(
        bed.refusal("tf.ArgMax", [&x], &attrs([("axis", 2_i32)]))
            .contains("expected an axis of 2 dimensions, found 2")
    );
    let mut wrong = attrs([("axis", 0_i32)]);
    wrong.set("output_type", DType::F32).unwrap();
    assert!(
        bed.refusal("tf.ArgMax", [&x], &wrong)
            .contains("expected i32 or i64")
    );
}
