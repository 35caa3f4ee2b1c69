//! Sparse tensors, which become dense ones.

use super::{
    element::ElementType,
    external::ExternalFiles,
    problem::Problem,
    proto::SparseTensor,
    tensor::{self, Tensor, TensorData},
};
use crate::codes;

/// The bytes that sparse tensors of a model may still take as dense ones.
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Budget {
        Budget(512 << 20)
    }
}

/// Makes a dense tensor of a sparse one, with the name of its values.
pub(super) fn expand(
    sparse: &SparseTensor,
    files: &mut ExternalFiles,
    budget: &mut Budget,
) -> Result<Tensor, Problem> {
    let error = |message: String| Problem::new(codes::SPARSE_TENSOR, message);
    let (Some(values), Some(indices)) = (&sparse.values, &sparse.indices) else {
        return Err(error(
            "is sparse, and lacks its values or indices".to_owned(),
        ));
    };
    let values = tensor::decode(values, files)?;
    let indices = tensor::decode(indices, files).map_err(|problem| problem.of("its indices"))?;
    let (dims, count) = tensor::extents(&sparse.dims, values.element)?;
    let TensorData::Bytes(bytes) = &values.data else {
        return Err(error(
            "is sparse and holds strings, expected numbers".to_owned(),
        ));
    };
    if indices.element != ElementType::I64 {
        let found = indices.element.name();
        return Err(error(format!(
            "has indices of type {found}, expected int64"
        )));
    }
    let n_values = values.n_elements();
    let is_linear = indices.dims == [n_values];
    if !is_linear && indices.dims != [n_values, dims.len()] {
        return Err(error(format!(
            "has indices of shape {:?} for {n_values} values, expected [{n_values}] or \
             [{n_values}, {}]",
            indices.dims,
            dims.len()
        )));
    }
    let size = values.element.size_bytes();
    let len_bytes = count * size;
    let Some(left) = budget.0.checked_sub(len_bytes) else {
        let message = format!("is sparse, and would take {len_bytes} bytes without gaps");
        return Err(Problem::new(codes::MODEL_TOO_LARGE, message));
    };
    budget.0 = left;
    let mut dense = vec![0; len_bytes];
    let numbers: Vec<i64> = indices.bytes().chunks_exact(8).map(number).collect();
    for index in 0..n_values {
        let place = match is_linear {
            true => usize::try_from(numbers[index])
                .ok()
                .filter(|&at| at < count),
            false => linear(&numbers[index * dims.len()..][..dims.len()], &dims),
        };
        let Some(at) = place else {
            return Err(error(format!(
                "has an index out of range for value {index}"
            )));
        };
        dense[at * size..][..size].copy_from_slice(&bytes[index * size..][..size]);
    }
    Ok(Tensor {
        name: values.name,
        element: values.element,
        dims,
        data: TensorData::Bytes(dense.into()),
    })
}

fn number(bytes: &[u8]) -> i64 {
    i64::from_le_bytes(bytes.try_into().expect("chunks have 8 bytes"))
}

/// Returns the linear index of an element, if it is inside.
fn linear(index: &[i64], dims: &[usize]) -> Option<usize> {
    index.iter().zip(dims).try_fold(0, |at, (&index, &size)| {
        let index = usize::try_from(index).ok().filter(|&index| index < size)?;
        Some(at * size + index)
    })
}
