//! [`ModelInputs`]: the inputs of a call of a model; [`ModelInput`]: one of these.

use std::collections::{BTreeMap, HashMap};

use tfrt_host::{AnyAsyncValue, AsyncValue, Error};
use tfrt_tensor::{
    DenseHostTensor, Element, Map, Optional, Sequence, StringHostTensor, Tensor as Layered,
};

use super::datum::Datum;
use super::signature::{InputValue, Slots};
use crate::host_tensor::Tensor;

/// Something that an input can be given: a [`Tensor`], a vector (a tensor of one dimension), a [`Datum`], or a value to
/// come, such as a result of another model.
///
/// Of what is not there yet when the model is called, type and shape are checked by those who read it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be an input of a model",
    note = "an input is a `Tensor`, a vector of numbers, a `Datum`, or an `AsyncValue` of a tensor"
)]
pub trait ModelInput {
    /// Converts the value to an input.
    fn into_input(self) -> Input;
}

/// A [`ModelInput`] after its conversion.
pub struct Input(pub(super) InputValue);

impl ModelInput for Datum {
    fn into_input(self) -> Input {
        Input(match self {
            Datum::Tensor(tensor) => InputValue::Tensor(AnyAsyncValue::new(tensor)),
            other => InputValue::Other(Box::new(other)),
        })
    }
}

impl ModelInput for AnyAsyncValue {
    fn into_input(self) -> Input {
        Input(InputValue::Later(self))
    }
}

impl ModelInput for AsyncValue<Layered> {
    fn into_input(self) -> Input {
        self.into_any().into_input()
    }
}

/// Repeats `impl ModelInput for Sequence { .. Datum::from(self) .. }` over types.
macro_rules! input_of {
    ($($type:ty)*) => {$(
        impl ModelInput for $type {
            fn into_input(self) -> Input {
                Datum::from(self).into_input()
            }
        }
    )*};
}

input_of!(Sequence Optional Map);

impl ModelInput for Layered {
    fn into_input(self) -> Input {
        Input(InputValue::Tensor(AnyAsyncValue::new(self)))
    }
}

impl ModelInput for &Layered {
    fn into_input(self) -> Input {
        self.clone().into_input()
    }
}

impl ModelInput for Tensor {
    fn into_input(self) -> Input {
        Layered::from(self).into_input()
    }
}

impl ModelInput for &Tensor {
    fn into_input(self) -> Input {
        self.as_inner().into_input()
    }
}

/// Takes the vector over, as a tensor of one dimension.
impl<T: Element> ModelInput for Vec<T> {
    fn into_input(self) -> Input {
        Tensor::from(self).into_input()
    }
}

/// Repeats `impl ModelInput for DenseHostTensor { .. Layered::from(self) .. }` over types.
macro_rules! tensor_input_of {
    ($($type:ty)*) => {$(
        impl ModelInput for $type {
            fn into_input(self) -> Input {
                Layered::from(self).into_input()
            }
        }
    )*};
}

tensor_input_of!(DenseHostTensor StringHostTensor);

/// The inputs of a call, in the order of the model or by their names.
///
/// | In order | By name |
/// | --- | --- |
/// | a tuple, such as `(x, y)` | an array or vector of pairs, such as `[("x", x), ("y", y)]` |
/// | an array or vector of one type | a slice of pairs, of whose values clones are given |
/// | | a `HashMap` or `BTreeMap` |
///
/// # Examples
///
/// ```
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
/// use tfrt::{Model, Runtime, Tensor};
///
/// let (layer, context) = (Model::open("examples/layer.onnx")?, Runtime::shared().context());
/// let x = Tensor::from_vec(&[1, 2], vec![1.0_f32, 2.0])?;
/// let in_order = layer.call(&context, (&x,)).wait()?;
/// let by_name = layer.call(&context, [("x", &x)]).wait()?;
/// assert_eq!(in_order.tensor("y")?.to_vec::<f32>()?, by_name.tensor("y")?.to_vec::<f32>()?);
///
/// let error = layer.call(&context, [("z", &x)]).wait().unwrap_err();
/// assert_eq!(error.message(), "the model has no input 'z': it takes x");
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be the inputs of a model",
    note = "inputs are a tuple, `(x,)` or `(x, y)`, or pairs, `[(\"name\", x)]`"
)]
pub trait ModelInputs {
    /// Puts each input into its slot.
    ///
    /// # Errors
    ///
    /// Those of [`Slots::push`] and [`Slots::set`].
    fn place(self, slots: &mut Slots<'_>) -> Result<(), Error>;
}

impl<V: ModelInput, const N: usize> ModelInputs for [V; N] {
    fn place(self, slots: &mut Slots<'_>) -> Result<(), Error> {
        self.into_iter().try_for_each(|value| slots.push(value))
    }
}

impl<V: ModelInput> ModelInputs for Vec<V> {
    fn place(self, slots: &mut Slots<'_>) -> Result<(), Error> {
        self.into_iter().try_for_each(|value| slots.push(value))
    }
}

/// Repeats, over types of names, `impl ModelInputs for [(&str, V); N]` and the like.
macro_rules! named_inputs {
    ($($name:ty;)*) => {$(
        impl<V: ModelInput, const N: usize> ModelInputs for [($name, V); N] {
            fn place(self, slots: &mut Slots<'_>) -> Result<(), Error> {
                self.into_iter().try_for_each(|(name, value)| slots.set(&name, value))
            }
        }

        impl<V: ModelInput> ModelInputs for Vec<($name, V)> {
            fn place(self, slots: &mut Slots<'_>) -> Result<(), Error> {
                self.into_iter().try_for_each(|(name, value)| slots.set(&name, value))
            }
        }

        impl<V: ModelInput + Clone> ModelInputs for &[($name, V)] {
            fn place(self, slots: &mut Slots<'_>) -> Result<(), Error> {
                self.iter().try_for_each(|(name, value)| slots.set(name, value.clone()))
            }
        }

        impl<V: ModelInput, S> ModelInputs for HashMap<$name, V, S> {
            fn place(self, slots: &mut Slots<'_>) -> Result<(), Error> {
                self.into_iter().try_for_each(|(name, value)| slots.set(&name, value))
            }
        }

        impl<V: ModelInput> ModelInputs for BTreeMap<$name, V> {
            fn place(self, slots: &mut Slots<'_>) -> Result<(), Error> {
                self.into_iter().try_for_each(|(name, value)| slots.set(&name, value))
            }
        }
    )*};
}

named_inputs!(&str; String;);

/// Repeats `impl<A: ModelInput, B: ModelInput> ModelInputs for (A, B) { .. }` over lengths.
macro_rules! tuple_inputs {
    ($($name:ident)*) => {
        impl<$($name: ModelInput),*> ModelInputs for ($($name,)*) {
            fn place(self, slots: &mut Slots<'_>) -> Result<(), Error> {
                #[allow(non_snake_case, reason = "each variable is named after its type")]
                let ($($name,)*) = self;
                $(slots.push($name)?;)*
                let _ = slots;
                Ok(())
            }
        }
    };
}

tuple_inputs!();
tuple_inputs!(A);
tuple_inputs!(A B);
tuple_inputs!(A B C);
tuple_inputs!(A B C D);
tuple_inputs!(A B C D E);
tuple_inputs!(A B C D E F);
tuple_inputs!(A B C D E F G);
tuple_inputs!(A B C D E F G H);
