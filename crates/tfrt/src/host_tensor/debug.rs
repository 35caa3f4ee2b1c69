//! `{:?}` of a [`Tensor`]: type, shape and the first elements, in a row.

use std::fmt;

use tfrt_host::{DType, Error};
use tfrt_tensor::math::number::Number;
use tfrt_tensor::{BF16, Element, F16, with_element};

use super::Tensor;

/// The number of elements that are written.
const MAX_ELEMENTS: usize = 6;

/// Writes type, shape and the first elements: `Tensor(f32 [2, 2], [1.0, 2.5, -3.0, 0.0])`.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({}, ", self.metadata())?;
        match first_elements(self) {
            Ok(elements) => {
                let more = match self.n_elements() > elements.len() {
                    true => ", ...",
                    false => "",
                };
                write!(f, "[{}{more}])", elements.join(", "))
            }
            Err(_) => f.write_str("which is being written)"),
        }
    }
}

/// Returns the first elements, each as text.
///
/// # Errors
///
/// `FailedPrecondition` if a kernel is writing them.
fn first_elements(tensor: &Tensor) -> Result<Vec<String>, Error> {
    fn shown<T: Element>(
        tensor: &Tensor,
        show: impl Fn(T) -> String,
    ) -> Result<Vec<String>, Error> {
        let view = tensor.view::<T>()?;
        Ok(view.iter().take(MAX_ELEMENTS).copied().map(show).collect())
    }
    match tensor.dtype() {
        DType::F32 => return shown(tensor, |number: f32| format!("{number:?}")),
        DType::F64 => return shown(tensor, |number: f64| format!("{number:?}")),
        DType::F16 => return shown(tensor, |number: F16| format!("{:?}", number.widened())),
        DType::Bf16 => return shown(tensor, |number: BF16| format!("{:?}", number.widened())),
        _ => {}
    }
    with_element!(tensor.dtype(), T => shown(tensor, |element: T| {
        let mut text = String::new();
        element.print(&mut text).expect("a String takes all text");
        text
    }), else {
        let strings = tensor.strings()?.iter().take(MAX_ELEMENTS);
        Ok(strings.map(|bytes| format!("{:?}", String::from_utf8_lossy(bytes))).collect())
    })
}
