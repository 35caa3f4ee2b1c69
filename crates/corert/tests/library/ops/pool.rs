//! `tf.MaxPool`, `tf.AvgPool`.

use super::windows::{OVERS, places, whole};
use super::{Caller, attrs, elements, shape, text};

#[test]
fn pools_are_those_of_the_definition() {
    let caller = Caller::new();
    let numbers: Vec<f32> = (0..9).map(|index| index as f32).collect();
    let x = caller.dense(&[1, 3, 3, 1], &numbers);
    let attrs = attrs![
        "ksize" => [1_i64, 3, 3, 1], "padding" => "VALID", "strides" => [1_i64, 2, 2, 1], "data_format" => "NHWC"
    ];
    assert_eq!(
        text(&caller.call("tf.MaxPool", &[&x], &attrs)),
        "DenseHostTensor dtype = f32, shape = [1, 1, 1, 1], values = [8.000000e+00]"
    );
    let ones = caller.all(&[1, 3, 3, 1], 1.0_f32);
    let attrs =
        attrs!["ksize" => [1_i64, 3, 3, 1], "padding" => "SAME", "strides" => [1_i64, 2, 2, 1]];
    for op in ["tf.MaxPool", "tf.AvgPool"] {
        assert_eq!(
            text(&caller.call(op, &[&ones], &attrs)),
            "DenseHostTensor dtype = f32, shape = [1, 2, 2, 1], values = [1.000000e+00, 1.000000e+00, 1.000000e+00, \
             1.000000e+00]"
        );
    }
    for over in [OVERS[0], OVERS[1], OVERS[2]] {
        let [n, h, w, c] = [2, 7, 5, 3];
        // All below 0: what is around is no element.
        let list: Vec<f32> = whole(n * h * w * c, 1)
            .iter()
            .map(|value| value - 9.0)
            .collect();
        let (rows, columns) = (places(over, h, 3), places(over, w, 2));
        let (mut largest, mut means) = (Vec::new(), Vec::new());
        for image in 0..n {
            for (row, column) in rows
                .iter()
                .flat_map(|row| columns.iter().map(move |column| (row, column)))
            {
                for channel in 0..c {
                    let seen = row
                        .iter()
                        .flat_map(|(_, y)| column.iter().map(move |(_, z)| (y, z)));
                    let seen: Vec<f32> = seen
                        .map(|(y, z)| list[((image * h + y) * w + z) * c + channel])
                        .collect();
                    largest.push(seen.iter().copied().fold(f32::NEG_INFINITY, f32::max));
                    means.push(seen.iter().sum::<f32>() / seen.len() as f32);
                }
            }
        }
        let stride = over.stride as i64;
        let attrs = attrs!["ksize" => [3_i64, 2], "padding" => over.padding, "strides" => [stride]];
        let x = caller.dense(&[n, h, w, c], &list);
        let y = caller.call("tf.MaxPool", &[&x], &attrs);
        assert_eq!(shape(&y), [n, rows.len(), columns.len(), c]);
        assert_eq!(elements::<f32>(&y), largest);
        for (found, wanted) in elements::<f32>(&caller.call("tf.AvgPool", &[&x], &attrs))
            .iter()
            .zip(&means)
        {
            assert!((found - wanted).abs() < 1e-5, "{found} {wanted}");
        }
        let wide: Vec<i32> = list.iter().map(|value| *value as i32).collect();
        let y = caller.call("tf.MaxPool", &[&caller.dense(&[n, h, w, c], &wide)], &attrs);
        let largest: Vec<i32> = largest.iter().map(|value| *value as i32).collect();
        assert_eq!(elements::<i32>(&y), largest);
    }
    assert_eq!(
        caller.error("tf.MaxPool", &[&x], &attrs!["padding" => "SAME"]),
        "tf.MaxPool must have 'ksize' attribute"
    );
    assert_eq!(
        caller.error(
            "tf.MaxPool",
            &[&x],
            &attrs!["padding" => "SAME", "ksize" => [2_i64, 1, 1, 1]]
        ),
        "tf.MaxPool: expected attribute 'ksize' to be 1 for images and channels, found [2, 1, 1, 1]"
    );
    assert_eq!(
        caller.error("tf.MaxPool", &[&caller.counting(&[3, 3])], &attrs),
        "tf.MaxPool: expected images [batch, height, width, channels], found f32 [3, 3]"
    );
}
