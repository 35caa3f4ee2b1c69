//! Inference of results' types and shapes by a plugin's shape function.

use tfrt_corert::ResultMetadata;
use tfrt_host::Error;
use tfrt_tensor::{TensorMetadata, TensorShape};

use crate::crash;
use crate::fault;
use crate::functions::shape::{Shape, ShapeContext};
use crate::functions::status::Status;
use crate::handle::Handle;
use crate::node::Resolved;
use crate::spec::OpSpec;
use crate::value::metadata;

/// Returns what the results will be, if the shape function knows all of it.
///
/// # Errors
///
/// The function's own; `Internal` if it throws, `InvalidArgument` for wrong uses of the C API.
pub(super) fn infer(
    spec: &OpSpec,
    resolved: &Resolved,
    inputs: &[&TensorMetadata],
) -> Result<ResultMetadata, Error> {
    let shape = |metadata: &&TensorMetadata| -> Shape {
        let extents = metadata.shape.extents();
        extents.map(|extent| i64::try_from(extent).ok()).collect()
    };
    let outputs = shapes(spec, resolved, inputs.iter().map(shape).collect())?;
    let known = outputs.iter().zip(&*resolved.outputs).map(|(shape, code)| {
        let extents = shape.as_ref()?;
        metadata(*code, TensorShape::from_i64(extents).ok()?).ok()
    });
    Ok(known
        .collect::<Option<ResultMetadata>>()
        .unwrap_or_default())
}

/// Returns the shapes of the results for those of the inputs.
fn shapes(spec: &OpSpec, resolved: &Resolved, inputs: Vec<Shape>) -> Result<Vec<Shape>, Error> {
    let unknown = vec![None; resolved.outputs.len()];
    let Some(function) = &spec.shape_function else {
        return Ok(unknown);
    };
    let context = Handle::new(ShapeContext {
        inputs,
        outputs: unknown,
        attrs: resolved.node.attrs.clone(),
    });
    let status = Handle::new(Status::default());
    let arguments = [context.bits(), status.bits()];
    let text = format!("shape function of '{}' of {}", spec.name, spec.library);
    let (called, faults) = crash::within(&text, || fault::scope(|| function.0.call(&arguments)));
    let (context, status) = (context.take_quietly(), status.take_quietly());
    if let Err(exception) = called {
        return Err(Error::internal(format!("{text} {exception}")));
    }
    let mut faults = faults.into_iter();
    if let Some(first) = faults.next() {
        let error = Error::invalid_argument(format!("{first}, in the {text}"));
        return Err(faults.fold(error, Error::with_note));
    }
    if let Some(error) = status.ok().and_then(|status| status.error()) {
        return Err(error.with_note(format!("in the {text}")));
    }
    match context {
        Ok(context) => Ok(context.outputs),
        Err(_) => Err(Error::internal(format!("{text} has deleted its context"))),
    }
}
