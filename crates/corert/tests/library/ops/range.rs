//! `tf.Range`.

use tfrt_corert::TensorHandle;
use tfrt_tensor::{DType, Element};

use super::{Caller, attrs, elements, none, shape};

fn numbers<T: Element>(caller: &Caller, range: [T; 3]) -> [TensorHandle; 3] {
    range.map(|number| caller.dense(&[], &[number]))
}

#[test]
fn numbers_go_up_and_down_to_the_limit() {
    let caller = Caller::new();
    let range = |range: [i32; 3]| {
        let [start, limit, step] = numbers(&caller, range);
        let attrs = attrs!["Tidx" => DType::I32];
        elements::<i32>(&caller.call("tf.Range", &[&start, &limit, &step], &attrs))
    };
    assert_eq!(range([0, 5, 1]), [0, 1, 2, 3, 4]);
    assert_eq!(range([3, 18, 6]), [3, 9, 15]);
    assert_eq!(range([3, -4, -3]), [3, 0, -3]);
    assert_eq!(range([7, 7, -1]), [0; 0]);
    assert_eq!(
        range([i32::MIN, i32::MAX, i32::MAX]),
        [i32::MIN, -1, i32::MAX - 1]
    );
    let [start, limit, step] = numbers(&caller, [i64::MIN, i64::MAX, i64::MAX]);
    let wide = caller.call("tf.Range", &[&start, &limit, &step], &none());
    assert_eq!(elements::<i64>(&wide), [i64::MIN, -1, i64::MAX - 1]);
    let [start, limit, step] = numbers(&caller, [1.0_f32, 0.0, -0.25]);
    let floats = caller.call("tf.Range", &[&start, &limit, &step], &none());
    assert_eq!(elements::<f32>(&floats), [1.0, 0.75, 0.5, 0.25]);
    // So long that workers divide it.
    let [start, limit, step] = numbers(&caller, [0.0_f64, 1e6, 0.5]);
    let long = caller.call("tf.Range", &[&start, &limit, &step], &none());
    assert_eq!(shape(&long), [2_000_000]);
    let mut expected = (0..2_000_000).map(|index| f64::from(index) * 0.5);
    assert!(elements::<f64>(&long).into_iter().eq(expected.by_ref()));
}

#[test]
fn ranges_without_an_end_are_refused() {
    let caller = Caller::new();
    let error = |[start, limit, step]: [TensorHandle; 3]| {
        caller.error("tf.Range", &[&start, &limit, &step], &none())
    };
    assert_eq!(
        error(numbers(&caller, [0_i32, 5, 0])),
        "tf.Range: expected a step that is not 0, found 0"
    );
    // A limit that lies the other way.
    for range in [[5, 0, 1], [0, 5, -1]] {
        let [start, limit, step] = numbers(&caller, range);
        let nothing = caller.call("tf.Range", &[&start, &limit, &step], &none());
        assert_eq!(elements::<i32>(&nothing), [0; 0]);
    }
    for range in [
        [0.0_f32, 1.0, 0.0],
        [0.0, f32::INFINITY, 1.0],
        [0.0, f32::NAN, 1.0],
    ] {
        assert!(error(numbers(&caller, range)).starts_with("tf.Range: there is no range from"));
    }
    // More numbers than any memory has.
    let message = error(numbers(&caller, [0_i64, i64::MAX, 1]));
    assert!(message.ends_with("does not fit any memory"), "{message}");
    let (one, other) = (caller.dense(&[], &[1_i32]), caller.dense(&[], &[1_i64]));
    assert_eq!(
        caller.error("tf.Range", &[&one, &one, &other], &none()),
        "tf.Range: incompatible dtypes: i32 [] and i64 []"
    );
    let truth = caller.dense(&[], &[tfrt_tensor::Bool::from(true)]);
    assert!(
        caller
            .error("tf.Range", &[&truth, &truth, &truth], &none())
            .contains("tf.Range")
    );
}
