//! Assignments of slices of variables.

use tfrt_corert::{OpAttrs, TensorHandle};
use tfrt_host::ErrorCode;
use tfrt_tensor::{StringHostTensor, TensorShape};

use super::{Caller, attrs};

const OP: &str = "tf.ResourceStridedSliceAssign";

/// Where to assign: lists of where to begin and to end, and of steps, and masks.
struct At<'a>(&'a [i32], &'a [i32], &'a [i32], OpAttrs);

impl Caller {
    fn matrix(&self) -> TensorHandle {
        let all: Vec<f32> = (0..12_u8).map(f32::from).collect();
        self.with(&[3, 4], &all)
    }

    fn slice(&self, of: &TensorHandle, at: &At<'_>, value: &TensorHandle) -> Vec<f32> {
        let lists = [at.0, at.1, at.2].map(|list| self.tensor(&[list.len()], list));
        let [begin, end, steps] = &lists;
        self.call(OP, &[of, begin, end, steps, value], &at.3)
            .unwrap();
        self.read(of)
    }

    fn slice_refused(
        &self,
        of: &TensorHandle,
        at: &At<'_>,
        value: &TensorHandle,
    ) -> (ErrorCode, String) {
        let lists = [at.0, at.1, at.2].map(|list| self.tensor(&[list.len()], list));
        let [begin, end, steps] = &lists;
        self.fails(OP, &[of, begin, end, steps, value], &at.3)
    }
}

// Expected values are TensorFlow's.
#[test]
fn slices_are_replaced_by_values_that_are_broadcast() {
    let caller = Caller::new();
    let w = caller.matrix();
    let at = At(&[0, 1], &[2, 3], &[1, 1], OpAttrs::new());
    let nines = caller.tensor(&[2, 2], &[9.0_f32; 4]);
    let expected = [0., 9., 9., 3., 4., 9., 9., 7., 8., 9., 10., 11.];
    assert_eq!(caller.slice(&w, &at, &nines), expected);
    let five = caller.tensor(&[], &[5.0_f32]);
    let expected = [0., 5., 5., 3., 4., 5., 5., 7., 8., 9., 10., 11.];
    assert_eq!(caller.slice(&w, &at, &five), expected);
    // Of more dimensions, all of them of one.
    let row = caller.tensor(&[1, 1, 2], &[5.0_f32, 6.0]);
    let expected = [0., 5., 6., 3., 4., 5., 6., 7., 8., 9., 10., 11.];
    assert_eq!(caller.slice(&w, &at, &row), expected);
    let back = At(&[-1], &[-4], &[-2], OpAttrs::new());
    let rows = caller.tensor(&[2, 4], &[1.0_f32, 2., 3., 4., 5., 6., 7., 8.]);
    let expected = [5., 6., 7., 8., 4., 5., 6., 7., 1., 2., 3., 4.];
    assert_eq!(caller.slice(&w, &back, &rows), expected);
    let one = At(&[1], &[2], &[1], attrs(&[("shrink_axis_mask", 1)]));
    let ones = caller.tensor(&[4], &[1.0_f32; 4]);
    let expected = [5., 6., 7., 8., 1., 1., 1., 1., 1., 2., 3., 4.];
    assert_eq!(caller.slice(&w, &one, &ones), expected);
    // A slice without elements takes anything.
    let none = At(&[2], &[1], &[1], OpAttrs::new());
    let three = caller.tensor(&[3], &[1.0_f32; 3]);
    assert_eq!(caller.slice(&w, &none, &three), expected);
    let masked = At(&[0, 0], &[1, 1], &[1, 1], attrs(&[("new_axis_mask", 1)]));
    let expected = [3., 3., 3., 3., 1., 1., 1., 1., 1., 2., 3., 4.];
    assert_eq!(
        caller.slice(&w, &masked, &caller.tensor(&[], &[3.0_f32])),
        expected
    );
    let last = At(&[0, 0], &[0, 1], &[1, 1], attrs(&[("ellipsis_mask", 1)]));
    let column = caller.tensor(&[3, 1], &[7.0_f32, 8., 9.]);
    let expected = [7., 3., 3., 3., 8., 1., 1., 1., 9., 2., 3., 4.];
    assert_eq!(caller.slice(&w, &last, &column), expected);
}

#[test]
fn who_has_read_keeps_the_slice() {
    let caller = Caller::new();
    let w = caller.matrix();
    let before = caller.one("tf.ReadVariableOp", &[&w]);
    let row = At(&[0], &[1], &[1], OpAttrs::new());
    // Its own value: each row becomes the first.
    let all = At(&[0], &[3], &[1], OpAttrs::new());
    caller.slice(&w, &row, &caller.tensor(&[], &[1.0_f32]));
    let own = caller.one("tf.ReadVariableOp", &[&w]);
    assert_eq!(caller.slice(&w, &all, &own)[..4], [1.0; 4]);
    assert_eq!(caller.elements::<f32>(&before)[..4], [0., 1., 2., 3.]);
}

#[test]
fn strings_are_replaced_too() {
    let caller = Caller::new();
    let strings = |list: &[&str]| {
        let shape = TensorShape::new(&[list.len()]).unwrap();
        let list = list.iter().map(|text| text.as_bytes().to_vec()).collect();
        let tensor = StringHostTensor::new(shape, list).unwrap();
        caller.runtime.handle(tensor)
    };
    let w = caller.variable("");
    caller.run("tf.AssignVariableOp", &[&w, &strings(&["a", "b", "c"])]);
    let [begin, end, step] = [0, 3, 2].map(|one| caller.tensor(&[1], &[one]));
    caller.run(OP, &[&w, &begin, &end, &step, &strings(&["x", "y"])]);
    let read = caller.one("tf.ReadVariableOp", &[&w]);
    assert!(read.to_string().contains(r#"["x", "b", "y"]"#), "{read}");
}

#[test]
fn slices_that_do_not_fit_are_refused() {
    let caller = Caller::new();
    let w = caller.matrix();
    let at = At(&[0, 1], &[2, 3], &[1, 1], OpAttrs::new());
    let bad = ErrorCode::InvalidArgument;
    let three = caller.tensor(&[3], &[1.0_f32; 3]);
    let message = "Cannot broadcast input shape [3] into final shape [2,2]";
    assert_eq!(
        caller.slice_refused(&w, &at, &three),
        (bad, message.to_owned())
    );
    let integers = caller.tensor(&[1, 2], &[1, 2]);
    let message = "l-value dtype f32 does not match r-value dtype i32";
    assert_eq!(
        caller.slice_refused(&w, &at, &integers),
        (bad, message.to_owned())
    );
    let outside = At(&[7], &[8], &[1], attrs(&[("shrink_axis_mask", 1)]));
    assert_eq!(caller.slice_refused(&w, &outside, &three).0, bad);
    let still = At(&[0], &[1], &[0], OpAttrs::new());
    assert_eq!(caller.slice_refused(&w, &still, &three).0, bad);
    let unset = caller.variable("");
    assert_eq!(
        caller.slice_refused(&unset, &at, &three).0,
        ErrorCode::NotFound
    );
}
