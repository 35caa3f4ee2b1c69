//! Where windows lie over images, as attributes say it: those of TensorFlow, of images whose channels come last.

use smallvec::SmallVec;
use tfrt_host::Error;
use tfrt_tensor::TensorMetadata;
use tfrt_tensor::math::window::{Padding, Window};

use crate::attributes::{OpAttrsRef, missing};
use crate::call::Call;
use crate::definition::{AttrKind, MetadataCall, OpDefinition};

/// An operation and its attributes.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'a> {
    pub op: &'a str,
    pub attrs: OpAttrsRef<'a>,
}

impl<'a> From<&MetadataCall<'a>> for Attributes<'a> {
    fn from(call: &MetadataCall<'a>) -> Self {
        let (op, attrs) = (call.op, call.attrs);
        Attributes { op, attrs }
    }
}

impl<'a> From<&Call<'a>> for Attributes<'a> {
    fn from(call: &Call<'a>) -> Self {
        let (op, attrs) = (call.op(), call.attrs());
        Attributes { op, attrs }
    }
}

/// Declares the attributes that say where windows lie.
pub(super) fn windowed(definition: OpDefinition) -> OpDefinition {
    definition
        .attribute(
            "strides",
            AttrKind::Integers,
            "how far windows are apart: for all dimensions, for height and width, or for both the same; 1",
        )
        .attribute(
            "padding",
            AttrKind::Text,
            "`SAME`, `VALID` or `EXPLICIT`",
        )
        .attribute(
            "explicit_paddings",
            AttrKind::Integers,
            "zeros before and behind height and width, or all dimensions",
        )
        .attribute("data_format", AttrKind::Text, "`NHWC`")
}

/// Declares how far elements of a window are apart.
pub(super) fn dilated(definition: OpDefinition) -> OpDefinition {
    definition.attribute(
        "dilations",
        AttrKind::Integers,
        "how far elements of a window are apart, as strides; 1",
    )
}

impl Attributes<'_> {
    /// Windows of these extents.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if an attribute is wrong, or the padding missing.
    pub(super) fn windows(self, extents: [usize; 2]) -> Result<[Window; 2], Error> {
        self.expect_channels_last()?;
        let strides = self.per_dimension("strides")?.unwrap_or([1, 1]);
        let dilations = self.per_dimension("dilations")?.unwrap_or([1, 1]);
        let paddings = self.paddings()?;
        let window = |index: usize| Window {
            extent: extents[index],
            stride: strides[index],
            dilation: dilations[index],
            padding: paddings[index],
        };
        Ok([window(0), window(1)])
    }

    /// Fails if channels are said to come first.
    ///
    /// # Errors
    ///
    /// `InvalidArgument`
    pub(super) fn expect_channels_last(self) -> Result<(), Error> {
        let format = self.attrs.text("data_format")?.unwrap_or("NHWC");
        if format.eq_ignore_ascii_case("nhwc") {
            return Ok(());
        }
        // The original's words, which its tests look for at the start.
        let (op, found) = (self.op, format.escape_debug());
        Err(Error::invalid_argument(format!(
            "invalid data format. Currently only support NHWC: expected attribute 'data_format' of {op} to be NHWC, \
             channels last, found '{found}'"
        )))
    }

    /// What a list says of height and width; nothing if it is empty.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it has another length, or numbers that are not above 0, or others than 1 for images and
    /// channels.
    pub(super) fn per_dimension(self, name: &str) -> Result<Option<[usize; 2]>, Error> {
        let list = self.attrs.integers(name)?.unwrap_or_default();
        let wrong = |expected: &str| {
            self.error(format_args!(
                "expected attribute '{name}' to be {expected}, found {:?}",
                &list[..]
            ))
        };
        let [height, width] = match list[..] {
            [] => return Ok(None),
            [both] => [both, both],
            [height, width] => [height, width],
            [1, height, width, 1] => [height, width],
            [_, _, _, _] => return Err(wrong("1 for images and channels")),
            _ => return Err(wrong("a list of 1, 2 or 4 numbers")),
        };
        match (usize::try_from(height), usize::try_from(width)) {
            (Ok(height @ 1..), Ok(width @ 1..)) => Ok(Some([height, width])),
            _ => Err(wrong("above 0")),
        }
    }

    /// What is added to variances before their roots are taken.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if the attribute is no float.
    pub(super) fn epsilon(self) -> Result<f32, Error> {
        Ok(self.attrs.get::<f32>("epsilon")?.unwrap_or(1.0e-4))
    }

    fn paddings(self) -> Result<[Padding; 2], Error> {
        let name = "explicit_paddings";
        let list = self.attrs.integers(name)?.unwrap_or_default();
        let Some(padding) = self.attrs.text("padding")? else {
            return Err(missing(self.op, "padding"));
        };
        let both = match padding {
            _ if padding.eq_ignore_ascii_case("same") => Some(Padding::Same),
            _ if padding.eq_ignore_ascii_case("valid") => Some(Padding::Valid),
            _ if padding.eq_ignore_ascii_case("explicit") => None,
            _ => {
                let padding = padding.escape_debug();
                return Err(self.error(format_args!(
                    "Unknown padding type '{padding}': expected SAME, VALID or EXPLICIT"
                )));
            }
        };
        if let Some(both) = both {
            return match list.is_empty() {
                true => Ok([both, both]),
                false => Err(self.error(format_args!(
                    "attribute '{name}' is for the padding EXPLICIT, found '{}'",
                    padding.escape_debug()
                ))),
            };
        }
        let sizes = list.iter().map(|size| usize::try_from(*size).ok());
        let sizes: Option<SmallVec<[usize; 8]>> = sizes.collect();
        match sizes.as_deref() {
            Some(&[top, bottom, left, right] | &[0, 0, top, bottom, left, right, 0, 0]) => Ok([
                Padding::Explicit(top, bottom),
                Padding::Explicit(left, right),
            ]),
            _ => Err(self.error(format_args!(
                "expected attribute '{name}' to have numbers before and behind height and width, 0 or more, and 0 \
                 for images and channels, found {:?}",
                &list[..]
            ))),
        }
    }

    /// The extents of a tensor of four dimensions; `what` says which they are.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are more dimensions, or less.
    pub(super) fn four(self, tensor: &TensorMetadata, what: &str) -> Result<[usize; 4], Error> {
        match tensor.shape.to_dims()[..] {
            [a, b, c, d] => Ok([a, b, c, d]),
            _ => Err(self.error(format_args!("expected {what}, found {tensor}"))),
        }
    }

    /// An error that begins with the operation's name.
    #[cold]
    pub(super) fn error(self, message: std::fmt::Arguments<'_>) -> Error {
        Error::invalid_argument(format!("{}: {message}", self.op))
    }

    /// The error of a function that does not know for whom it calculates.
    pub(super) fn named<T>(self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| self.error(format_args!("{}", error.message())))
    }
}
