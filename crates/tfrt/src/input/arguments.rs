//! Weights in files of their own, which a model takes as arguments.

use std::fs;
use std::sync::Arc;

use tfrt_async::SystemAllocator;
use tfrt_host::HostAllocator;
use tfrt_host::memory::HostBuffer;
use tfrt_import::codes;
use tfrt_import::stablehlo::{self, Weight};
use tfrt_ir::attributes::Bytes;
use tfrt_ir::{Diagnostic, Module, Type};
use tfrt_tensor::{DenseHostTensor, safetensors};

use crate::error::OpenError;
use crate::open_options::OpenOptions;

/// Binds the weights in the files that options name.
///
/// # Errors
///
/// `Unreadable` for a file; `Text` if it is none of safetensors, or does not fit the model.
pub(super) fn bind(module: &mut Module, options: &OpenOptions) -> Result<(), OpenError> {
    let mut weights = Vec::new();
    for path in options.weight_files() {
        let bytes = fs::read(path).map_err(|reason| OpenError::Unreadable {
            path: path.clone(),
            reason,
        })?;
        let refused = |message: &str| {
            let message = format!("{}: {message}", path.display());
            OpenError::Text(Diagnostic::error(codes::MODEL_TENSOR, message).into())
        };
        let allocator: Arc<dyn HostAllocator> = Arc::new(SystemAllocator::new());
        let tensors = safetensors::read(&HostBuffer::from_owner(bytes), &allocator);
        for (name, tensor) in tensors.map_err(|error| refused(error.message()))? {
            let weight = weight(name, &tensor);
            weights.push(weight.map_err(|error| refused(error.message()))?);
        }
    }
    if weights.is_empty() && options.weight_files().is_empty() {
        return Ok(());
    }
    stablehlo::bind(module, weights).map_err(OpenError::Text)
}

fn weight(name: String, tensor: &DenseHostTensor) -> Result<Weight, tfrt_host::Error> {
    let extents = tensor.shape().to_dims();
    let extents = extents.iter().filter_map(|size| i64::try_from(*size).ok());
    let element = tfrt_ir::parse_type(tensor.dtype().mlir_name()).unwrap_or(Type::None);
    Ok(Weight {
        name,
        ty: Type::tensor(extents.collect(), element),
        bytes: Bytes::copy_from_slice(tensor.read()?.bytes()),
    })
}
