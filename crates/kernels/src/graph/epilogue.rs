//! [`Epilogue`]: the program that a product or convolution applies to its sums before they leave the caches.

use std::sync::Arc;

use tfrt_host::Error;
use tfrt_host::codec::{Decoder, Encoder};
use tfrt_tensor::math::packed_gemm::Activation;
use tfrt_tensor::math::pointwise::{PointwiseProgram, Step};

use crate::onnx::NodeCall;

/// A program of pointwise steps, whose input `a0` is a sum with bias and residual. Parsed when a model is opened.
///
/// What is done while sums are in registers is an activation.
#[derive(Clone, Debug)]
pub(super) struct Epilogue {
    /// The steps as text, for files.
    steps: Vec<String>,
    pub(super) activation: Activation,
    pub(super) then: Option<Arc<PointwiseProgram>>,
}

/// Programs that are simple activations.
const ACTIVATIONS: &[(&[&str], Activation)] = &[
    (&[], Activation::None),
    (&["relu a0"], Activation::Relu),
    (&["max a0 0e0", "min s0 6e0"], Activation::Relu6),
];

impl Epilogue {
    /// Parses the attribute `epilogue`, a list of steps.
    pub(super) fn of(node: &NodeCall<'_>) -> Result<Epilogue, Error> {
        let texts = node.attributes.strings("epilogue")?.unwrap_or_default();
        let texts = texts.into_iter().map(|text| {
            let text = std::str::from_utf8(text);
            text.map(str::to_owned).map_err(|_| {
                node.attributes
                    .error("epilogue", "is expected to have texts alone")
            })
        });
        Epilogue::new(texts.collect::<Result<_, _>>()?)
    }

    fn new(steps: Vec<String>) -> Result<Epilogue, Error> {
        let found = ACTIVATIONS.iter().find(|(own, _)| *own == &steps[..]);
        let (activation, then) = match found {
            Some((_, activation)) => (*activation, None),
            None => {
                let parsed = steps.iter().map(|step| step.parse::<Step>());
                let parsed: Vec<Step> = parsed.collect::<Result<_, _>>()?;
                (
                    Activation::None,
                    Some(Arc::new(PointwiseProgram::new(1, &parsed)?)),
                )
            }
        };
        Ok(Epilogue {
            steps,
            activation,
            then,
        })
    }

    pub(super) fn write(&self, encoder: &mut Encoder) {
        encoder.usize(self.steps.len());
        self.steps.iter().for_each(|step| encoder.str(step));
    }

    pub(super) fn read(decoder: &mut Decoder<'_>) -> Result<Epilogue, Error> {
        let n = decoder.count(size_of::<u64>())?;
        let steps = (0..n).map(|_| decoder.str().map(str::to_owned));
        Epilogue::new(steps.collect::<Result<_, _>>()?)
    }
}
