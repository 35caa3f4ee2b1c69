//! Names of TensorFlow that came with the rows: `tf.StridedSlice`, `tf.ReverseV2`, `tf.Conv2DBackpropInput` and others.

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_tensor::{Bool, DType};

use super::{Caller, attrs, elements, none, shape, text};

#[test]
fn slices_go_by_steps_and_masks() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3, 4]);
    let slice = |lists: [&[i32]; 3], attrs: OpAttrs| {
        let lists = lists.map(|list| caller.dense(&[list.len()], list));
        caller.try_all(
            "tf.StridedSlice",
            &[&x, &lists[0], &lists[1], &lists[2]],
            &attrs,
        )
    };
    let of = |lists: [&[i32]; 3], attrs: OpAttrs| {
        let found = slice(lists, attrs).unwrap().remove(0);
        (shape(&found), elements::<f32>(&found))
    };
    // x[1, ::-2, 1:-1]
    assert_eq!(
        of(
            [&[1, 0, 1], &[2, 0, -1], &[1, -2, 1]],
            attrs!["shrink_axis_mask" => 1_i64, "begin_mask" => 2_i64, "end_mask" => 2_i64]
        ),
        (vec![2, 2], vec![21.0, 22.0, 13.0, 14.0])
    );
    // x[..., newaxis, 3]
    assert_eq!(
        of(
            [&[0, 0, 3], &[0, 0, 4], &[1, 1, 1]],
            attrs!["ellipsis_mask" => 1_i64, "new_axis_mask" => 2_i64, "shrink_axis_mask" => 4_i64]
        ),
        (vec![2, 3, 1], vec![3.0, 7.0, 11.0, 15.0, 19.0, 23.0])
    );
    // x[-1], and what lies outside is cut off.
    let (extents, last) = of([&[-1], &[0], &[1]], attrs!["shrink_axis_mask" => 1_i64]);
    assert_eq!((extents, last[0]), (vec![3, 4], 12.0));
    assert_eq!(of([&[0, 1], &[9, 9], &[1, 1]], none()).0, [2, 2, 4]);
    assert_eq!(of([&[1], &[0], &[1]], none()).0, [0, 3, 4]);
    let words = caller.strings(&[3], &["a", "b", "c"]);
    let lists = [0, 9, 2].map(|number| caller.dense(&[1], &[number]));
    let found = caller.call(
        "tf.StridedSlice",
        &[&words, &lists[0], &lists[1], &lists[2]],
        &none(),
    );
    assert_eq!(
        text(&found),
        "StringHostTensor shape = [2], values = [\"a\", \"c\"]"
    );
    for (lists, attrs, message) in [
        (
            [&[0][..], &[1], &[0]],
            none(),
            "expected steps other than 0, found 0 at 0",
        ),
        (
            [&[2], &[3], &[1]],
            attrs!["shrink_axis_mask" => 1_i64],
            "there is no element 2 in a dimension of extent 2",
        ),
        (
            [&[0; 4], &[1; 4], &[1; 4]],
            none(),
            "expected slices of 3 dimensions at most, found 4",
        ),
        (
            [&[0; 2], &[1], &[1; 2]],
            none(),
            "expected as many places to begin and to end and steps, 32 at most, found 2, 1 and 2",
        ),
    ] {
        let error = slice(lists, attrs).unwrap_err();
        assert_eq!(error.message(), format!("tf.StridedSlice: {message}"));
    }
}

#[test]
fn elements_are_turned_around() {
    let caller = Caller::new();
    let x = caller.counting(&[2, 3]);
    let axes = caller.dense(&[1], &[-1_i32]);
    let turned = caller.call("tf.ReverseV2", &[&x, &axes], &none());
    assert_eq!(elements::<f32>(&turned), [2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
    let both = caller.dense(&[2], &[0_i64, 1]);
    let turned = caller.call("tf.ReverseV2", &[&x, &both], &none());
    assert_eq!(elements::<f32>(&turned), [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
    let lens = caller.dense(&[2], &[2_i64, 3]);
    let attrs = attrs!["seq_dim" => 1_i64, "batch_dim" => 0_i64];
    let turned = caller.call("tf.ReverseSequence", &[&x, &lens], &attrs);
    assert_eq!(elements::<f32>(&turned), [1.0, 0.0, 2.0, 5.0, 4.0, 3.0]);
}

#[test]
fn functions_of_elements_have_names() {
    let caller = Caller::new();
    let x = caller.dense(&[3], &[-1.0_f32, 3.0, 9.0]);
    let of = |name: &str| elements::<f32>(&caller.call(name, &[&x], &none()));
    assert_eq!(of("tf.Relu6"), [0.0, 3.0, 6.0]);
    // One number stands for all.
    assert_eq!(
        text(&caller.call("tf.OnesLike", &[&x], &none())),
        "ScalarHostTensor dtype = f32, shape = [3], value = 1.000000e+00"
    );
    let erfc = of("tf.Erfc");
    // Where the error function is almost 1 nothing is lost.
    let wanted = [1.842_700_8, 2.209_049_7e-5, 4.137_031_7e-37];
    for (found, wanted) in erfc.iter().zip(wanted) {
        assert!((found - wanted).abs() <= 1e-6 * wanted, "{found} {wanted}");
    }
    let (low, high) = (caller.dense(&[], &[0.0_f32]), caller.dense(&[], &[4.0_f32]));
    let clipped = caller.call("tf.ClipByValue", &[&x, &low, &high], &none());
    assert_eq!(elements::<f32>(&clipped), [0.0, 3.0, 4.0]);
    let size = caller.call("tf.Size", &[&x], &none());
    assert_eq!(
        text(&size),
        "DenseHostTensor dtype = i32, shape = [], values = [3]"
    );
    let zero = caller.dense(&[1], &[0_i32]);
    let norm = caller.call("tf.EuclideanNorm", &[&x, &zero], &none());
    assert!((elements::<f32>(&norm)[0] - 91.0_f32.sqrt()).abs() < 1e-5);
    let truths = caller.dense(&[3], &[true, false, true].map(Bool::from));
    for (name, wanted) in [("tf.All", false), ("tf.Any", true)] {
        let found = caller.call(name, &[&truths, &zero], &none());
        assert_eq!(bool::from(elements::<Bool>(&found)[0]), wanted, "{name}");
    }
}

#[test]
fn convolutions_have_gradients() {
    let caller = Caller::new();
    let (x, filter) = (
        caller.counting(&[1, 3, 3, 1]),
        caller.counting(&[2, 2, 1, 1]),
    );
    let gradient = caller.dense(&[1, 2, 2, 1], &[1.0_f32, 0.0, 0.0, 2.0]);
    let attrs = attrs!["padding" => "VALID", "strides" => [1_i64, 1, 1, 1], "T" => DType::F32];
    let sizes = caller.dense(&[4], &[1_i32, 3, 3, 1]);
    let inputs = [&sizes, &filter, &gradient];
    let of_x = caller.call("tf.Conv2DBackpropInput", &inputs, &attrs);
    assert_eq!(
        (shape(&of_x), elements::<f32>(&of_x)),
        (
            vec![1, 3, 3, 1],
            vec![0.0, 1.0, 0.0, 2.0, 3.0, 2.0, 0.0, 4.0, 6.0]
        )
    );
    let sizes = caller.dense(&[4], &[2_i32, 2, 1, 1]);
    let of_filter = caller.call("tf.Conv2DBackpropFilter", &[&x, &sizes, &gradient], &attrs);
    assert_eq!(
        (shape(&of_filter), elements::<f32>(&of_filter)),
        (vec![2, 2, 1, 1], vec![8.0, 11.0, 17.0, 20.0])
    );
    let three = caller.dense(&[3], &[1_i32, 3, 3]);
    assert_eq!(
        caller.error(
            "tf.Conv2DBackpropInput",
            &[&three, &filter, &gradient],
            &attrs
        ),
        "tf.Conv2DBackpropInput: operand 0: expected 4 extents, found 3"
    );
}

#[test]
fn images_get_another_size() {
    let caller = Caller::new();
    let x = caller.dense(&[1, 1, 2, 1], &[0.0_f32, 4.0]);
    let size = caller.dense(&[2], &[1_i32, 4]);
    let of = |name: &str, attrs: OpAttrs| elements::<f32>(&caller.call(name, &[&x, &size], &attrs));
    assert_eq!(of("tf.ResizeBilinear", none()), [0.0, 2.0, 4.0, 4.0]);
    assert_eq!(
        of("tf.ResizeBilinear", attrs!["half_pixel_centers" => true]),
        [0.0, 1.0, 3.0, 4.0]
    );
    let corners = of("tf.ResizeBilinear", attrs!["align_corners" => true]);
    assert!(
        (corners[1] - 4.0 / 3.0).abs() < 1e-6 && corners[3] == 4.0,
        "{corners:?}"
    );
    assert_eq!(of("tf.ResizeNearestNeighbor", none()), [0.0, 0.0, 4.0, 4.0]);
    let nothing = caller.dense(&[2], &[0_i32, 4]);
    assert_eq!(
        caller.error("tf.ResizeBilinear", &[&x, &nothing], &none()),
        "tf.ResizeBilinear: expected a height and a width above 0, found [0, 4]"
    );
}

#[test]
fn strings_are_rewritten() {
    let caller = Caller::new();
    let words = caller.strings(&[2], &["Ä b-C", "x1y22"]);
    let of = |name: &str, attrs: OpAttrs| text(&caller.call(name, &[&words], &attrs));
    let wanted = |words: &str| format!("StringHostTensor shape = [2], values = [{words}]");
    assert_eq!(of("tf.StringLower", none()), wanted("\"Ä b-c\", \"x1y22\""));
    assert_eq!(
        of("tf.StringLower", attrs!["encoding" => "utf-8"]),
        wanted("\"ä b-c\", \"x1y22\"")
    );
    assert_eq!(of("tf.StringUpper", none()), wanted("\"Ä B-C\", \"X1Y22\""));
    let rewrite = |first: bool| {
        let mut attrs = attrs!["pattern" => "([0-9]+)", "rewrite" => "<\\1$>"];
        attrs.set("replace_global", !first).unwrap();
        of("tf.StaticRegexReplace", attrs)
    };
    assert_eq!(rewrite(false), wanted("\"Ä b-C\", \"x<1$>y<22$>\""));
    assert_eq!(rewrite(true), wanted("\"Ä b-C\", \"x<1$>y22\""));
    let wrong = attrs!["pattern" => "(", "rewrite" => ""];
    let error = caller.error("tf.StaticRegexReplace", &[&words], &wrong);
    assert!(
        error.starts_with("tf.StaticRegexReplace: attribute 'pattern': "),
        "{error}"
    );
    let wrong = attrs!["pattern" => "a", "rewrite" => "\\"];
    let error = caller.error("tf.StaticRegexReplace", &[&words], &wrong);
    assert!(error.contains("behind a backslash"), "{error}");
    let pattern = attrs!["pattern" => "x.*"];
    let found = caller.call("tf.StaticRegexFullMatch", &[&words], &pattern);
    let found: Vec<bool> = elements::<Bool>(&found)
        .into_iter()
        .map(bool::from)
        .collect();
    assert_eq!(found, [false, true]);
}

#[test]
fn numbers_are_counted() {
    let caller = Caller::new();
    let x = caller.dense(&[2, 3], &[0_i32, 1, 1, 2, 9, 2]);
    let size = caller.dense(&[], &[3_i32]);
    let unweighted = caller.dense::<f32>(&[0], &[]);
    let count = |weights: &TensorHandle, attrs: OpAttrs| {
        caller.call("tf.DenseBincount", &[&x, &size, weights], &attrs)
    };
    let counts = count(&unweighted, none());
    assert_eq!(shape(&counts), [2, 3]);
    assert_eq!(elements::<f32>(&counts), [1.0, 2.0, 0.0, 0.0, 0.0, 2.0]);
    let binary = count(&unweighted, attrs!["binary_output" => true]);
    assert_eq!(elements::<f32>(&binary), [1.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    let weights = caller.dense(&[2, 3], &[1_i64, 2, 3, 4, 5, 6]);
    assert_eq!(
        elements::<i64>(&count(&weights, none())),
        [1, 5, 0, 0, 0, 10]
    );
    let negative = caller.dense(&[1], &[-1_i32]);
    assert_eq!(
        caller.error(
            "tf.DenseBincount",
            &[&negative, &size, &unweighted],
            &none()
        ),
        "tf.DenseBincount: expected no negative integers, found -1"
    );
}
