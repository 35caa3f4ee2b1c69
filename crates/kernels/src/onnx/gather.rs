//! Operations that gather elements by positions, or by truth values.

use tfrt_host::Error;
use tfrt_tensor::math::layout_copy::{
    LayoutCopy, gather_elements_into, gather_nd_extents, gather_nd_into, one_hot_extents,
    one_hot_into,
};
use tfrt_tensor::{Bool, DType, DenseHostTensor, Tensor, TensorView};

use super::opaque::{OpaqueTensors, count, extents, reshaped};
use super::{NodeCall, Operations, Outputs};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.Compress", compress),
    ("gather", gather),
    ("gather_elements", gather_elements),
    ("gather_nd", gather_nd),
    ("one_hot", one_hot),
    ("onnx.ml.ArrayFeatureExtractor", array_feature_extractor),
];

/// Bytes that gathering takes for each position: an entry of a list, and another one while the list is made.
pub(super) const BYTES_PER_POSITION: usize = 2 * size_of::<usize>();

/// `Gather(x, positions)`, attribute `axis`.
fn gather(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let found = extents(x);
    let axis = node.axis(node.attributes.integer_or("axis", 0)?, found.len())?;
    let positions = node.positions(1)?;
    node.workspace
        .reserve(positions.n_elements(), BYTES_PER_POSITION)?;
    let movement = {
        let reading = positions.read()?;
        LayoutCopy::gather(&found, axis, &reading.view::<i64>()?)
    };
    let movement = movement.map_err(|error| node.with_name(&error))?;
    let mut outputs = Outputs::new();
    outputs.push(node.moved(x, &movement)?);
    Ok(outputs)
}

/// `GatherElements(x, positions)`, attribute `axis`.
fn gather_elements(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let axis = node.axis(node.attributes.integer_or("axis", 0)?, extents(x).len())?;
    node.picked(x, axis, &node.positions(1)?)
}

/// `GatherND(x, positions)`, attribute `batch_dims`.
fn gather_nd(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let positions = node.positions(1)?;
    let n_batch = node.attributes.size_or("batch_dims", 0)?;
    let shape = gather_nd_extents(&extents(x), n_batch, &positions.shape().to_dims())
        .map_err(|error| node.with_name(&error))?;
    let opaque = OpaqueTensors::new(node, &[x])?;
    let out = opaque.output(node, &shape)?;
    let x = &opaque.tensors[0];
    let chain = gather_nd_into(node.execution, x, n_batch, &positions, &out)?;
    opaque.outputs(out, chain)
}

/// `Compress(x, condition)`, attribute `axis`: elements, or slices along an axis, whose condition is true.
fn compress(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let condition = node.inputs.dense(1)?;
    if condition.dtype() != DType::I1 || condition.shape().rank() != 1 {
        let found = condition.metadata();
        return Err(node.inputs.error(
            1,
            format_args!("is expected to be a list of truth values, found {found}"),
        ));
    }
    let reading = condition.read()?;
    let marks = || {
        let marks = reading.elements::<Bool>()?.iter().enumerate();
        Ok::<_, Error>(marks.filter(|(_, mark)| bool::from(**mark)))
    };
    let n_marked = marks()?.count();
    node.workspace
        .reserve(n_marked, size_of::<i64>() + BYTES_PER_POSITION)?;
    let mut marked = Vec::with_capacity(n_marked);
    marked.extend(marks()?.map(|(index, _)| super::shape::to_i64(index)));
    let flat;
    let (x, axis) = match node.attributes.integer("axis")? {
        Some(axis) => (x, node.axis(axis, extents(x).len())?),
        None => {
            flat = reshaped(x, &[count(&extents(x))])?;
            (&flat, 0)
        }
    };
    let positions = TensorView::new(&marked, &[marked.len()])?;
    let movement = LayoutCopy::gather(&extents(x), axis, &positions);
    let mut outputs = Outputs::new();
    outputs.push(node.moved(x, &movement.map_err(|error| node.with_name(&error))?)?);
    Ok(outputs)
}

/// `ml.ArrayFeatureExtractor(x, positions)`: columns of the last dimension.
fn array_feature_extractor(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.tensor(0)?;
    let mut found = extents(x);
    let list = node.inputs.integers(1)?;
    if found.len() == 1 {
        found.insert(0, 1);
    }
    let x = reshaped(x, &found)?;
    let axis = node.axis(-1, found.len())?;
    node.workspace.reserve(list.len(), BYTES_PER_POSITION)?;
    let movement = LayoutCopy::gather(&found, axis, &TensorView::new(&list, &[list.len()])?);
    let mut outputs = Outputs::new();
    outputs.push(node.moved(&x, &movement.map_err(|error| node.with_name(&error))?)?);
    Ok(outputs)
}

/// `OneHot(positions, depth, [off, on])`, attribute `axis`.
fn one_hot(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let positions = node.inputs.dense(0)?;
    let numbers: Vec<i64> = match positions.dtype() {
        DType::I64 | DType::I32 => node.inputs.integers(0)?,
        // Rounded towards 0, to the range of the type.
        #[allow(
            clippy::cast_possible_truncation,
            reason = "what is out of range is marked nowhere"
        )]
        _ => node
            .inputs
            .numbers(0)?
            .into_iter()
            .map(|number| number as i64)
            .collect(),
    };
    let found = positions.shape().to_dims();
    let positions = node.tensor_of(&found, &numbers)?;
    let depth = node.inputs.number(1)?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is in range"
    )]
    let depth = match (0.0..9e18).contains(&depth) {
        true => depth as usize,
        false => {
            return Err(node.inputs.error(
                1,
                format_args!("is expected to be 0 or more, found {depth}"),
            ));
        }
    };
    let axis = node.axis(node.attributes.integer_or("axis", -1)?, found.len() + 1)?;
    let shape = one_hot_extents(&found, depth, axis)?;
    let opaque = OpaqueTensors::new(node, &[node.inputs.tensor(2)?])?;
    let out = opaque.output(node, &shape)?;
    let values = opaque.tensors[0].flatten();
    if values.n_elements() != 2 {
        let found = values.n_elements();
        let message = format_args!("is expected to have two elements, found {found}");
        return Err(node.inputs.error(2, message));
    }
    let [off, on] = [&values.chip(&[0])?, &values.chip(&[1])?];
    let chain = one_hot_into(node.execution, &positions, axis, [off, on], &out)?;
    opaque.outputs(out, chain)
}

impl NodeCall<'_> {
    /// Returns an operand of positions, as 64 bits.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if it is left out, or something else.
    pub(super) fn positions(&self, index: usize) -> Result<DenseHostTensor, Error> {
        let tensor = self.inputs.dense(index)?;
        match tensor.dtype() {
            DType::I64 => Ok(tensor.clone()),
            _ => self.tensor_of(&tensor.shape().to_dims(), &self.inputs.integers(index)?),
        }
    }

    /// Gathers, at each place, the element that positions name along a dimension.
    ///
    /// # Errors
    ///
    /// Those of [`gather_elements_into`].
    pub(super) fn picked(
        &self,
        x: &Tensor,
        axis: usize,
        positions: &DenseHostTensor,
    ) -> Result<Outputs, Error> {
        let opaque = OpaqueTensors::new(self, &[x])?;
        let out = opaque.output(self, &positions.shape().to_dims())?;
        let x = &opaque.tensors[0];
        let chain = gather_elements_into(self.execution, x, axis, positions, &out)?;
        opaque.outputs(out, chain)
    }
}
