//! Operators of ONNX Runtime's domain `com.microsoft` that no others stand for.

use std::sync::Arc;

use tfrt_host::Error;
use tfrt_tensor::DType;
use tfrt_tensor::math::Family;
use tfrt_tensor::math::layout_copy::LayoutCopy;
use tfrt_tensor::math::linear::inverses_into;
use tfrt_tensor::math::n_bits::{PackedColumns, packed_product_into};

use super::outputs::IntoValue;
use super::prepare::{PrepareRow, PreparedKernel, erase};
use super::{NodeCall, Operations, Outputs, with_floating};

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.microsoft.Inverse", inverse),
    ("onnx.microsoft.MatMulNBits", mat_mul_n_bits),
];

/// The nodes whose scales and zero points are read once.
pub(super) const PREPARE: &[PrepareRow] = &[PrepareRow {
    op: "onnx.microsoft.MatMulNBits",
    inputs: &[1, 2, 3, 4],
    types: &[],
    takes_attributes: false,
    make: |node| Ok(Some(erase(Columns(Arc::new(packed_columns(node)?))))),
    restore: None,
}];

/// `MatMulNBits` of which the matrix is known.
#[derive(Debug)]
struct Columns(Arc<PackedColumns>);

impl PreparedKernel for Columns {
    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        product(node, self.0.clone())
    }
}

/// `Inverse`
fn inverse(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, extents) = (x.dtype(), x.shape().to_dims());
    match extents.last_chunk::<2>() {
        Some([m, n]) if m == n => {}
        _ => {
            let message = format_args!("is no tensor of squares: {extents:?}");
            return Err(node.inputs.error(0, message));
        }
    }
    let out = node.output(dtype, &extents)?;
    node.inputs.expect(0, Family::Floats)?;
    let chain = inverses_into(node.execution, x, &out)?;
    Ok(Outputs::later(out, chain))
}

/// `MatMulNBits`: rows times packed columns
fn mat_mul_n_bits(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    product(node, Arc::new(packed_columns(node)?))
}

fn product(node: &NodeCall<'_>, columns: Arc<PackedColumns>) -> Result<Outputs, Error> {
    let x = node.inputs.dense(0)?;
    let (dtype, mut extents) = (x.dtype(), x.shape().to_dims());
    let n = columns.n_rows;
    if extents.last() != Some(&n) {
        let message = format_args!(
            "is expected to have rows of {n} elements, as 'K' says, found {extents:?}"
        );
        return Err(node.inputs.error(0, message));
    }
    let rows = floats(node, 0)?;
    let bias = match node.inputs.has(5) {
        true => Some(expected(node, 5, &[columns.n_columns])?),
        false => None,
    };
    let (n_rows, n_columns) = (rows.len().checked_div(n).unwrap_or(0), columns.n_columns);
    if let Some(last) = extents.last_mut() {
        *last = n_columns;
    }
    let turned = node.output(dtype, &[n_columns, n_rows])?;
    let chain = with_floating!(dtype, T => {
        packed_product_into::<T>(node.execution, rows, columns, bias, &turned)
            .map_err(|error| node.with_name(&error))?
    }, else return Err(node.inputs.unsupported(0, dtype)));
    let shape = tfrt_tensor::TensorShape::new(&extents)?;
    if n_rows == 1 {
        return Ok(Outputs::later(turned.reshape(shape)?, chain));
    }
    let movement = LayoutCopy::transpose(&[n_columns, n_rows], &[1, 0])?;
    let out = node.output(dtype, movement.extents())?;
    let (execution, written) = (node.execution.clone(), out.clone());
    let chain = chain.and_then_value(move |_| {
        movement
            .run_into(&execution, &turned, &written)
            .into_value()
    });
    Ok(Outputs::later(out.reshape(shape)?, chain))
}

/// Reads the packed matrix: operands 1 to 4.
fn packed_columns(node: &NodeCall<'_>) -> Result<PackedColumns, Error> {
    let size = |name: &str| {
        let size = node.attributes.size_or(name, 0)?;
        match size {
            0 => Err(node.attributes.error(name, "is expected to be at least 1")),
            size => Ok(size),
        }
    };
    let (n_rows, n_columns, block) = (size("K")?, size("N")?, size("block_size")?);
    let bits = match node.attributes.integer_or("bits", 4)? {
        2 => 2,
        4 => 4,
        8 => 8,
        other => {
            let message = format_args!("is expected to be 2, 4 or 8, found {other}");
            return Err(node.attributes.error("bits", message));
        }
    };
    if !block.is_power_of_two() || block < 16 {
        let message = format_args!("is expected to be a power of 2, at least 16, found {block}");
        return Err(node.attributes.error("block_size", message));
    }
    if node.attributes.flag("weight_prepacked", false)? {
        let message = "is expected to be 0: other weights are laid out for one machine";
        return Err(node.attributes.error("weight_prepacked", message));
    }
    let codes = node.inputs.dense(1)?;
    codes.metadata().expect_dtype(DType::Ui8)?;
    let n_blocks = n_rows.div_ceil(block);
    let n_bytes = block / 8 * usize::from(bits);
    let wanted = n_columns.saturating_mul(n_blocks).saturating_mul(n_bytes);
    if codes.n_elements() != wanted {
        let message = format_args!(
            "is expected to have extents {:?}, found {}",
            [n_columns, n_blocks, n_bytes],
            codes.shape()
        );
        return Err(node.inputs.error(1, message));
    }
    Ok(PackedColumns {
        codes: codes.clone(),
        n_rows,
        n_columns,
        bits,
        block,
        scales: expected(node, 2, &[n_columns, n_blocks])?,
        zeros: zeros(node, [n_columns, n_blocks], bits)?,
        groups: groups(node, n_rows, n_blocks)?,
    })
}

/// Zero points: numbers, or packed as the elements are, each column in bytes of its own.
fn zeros(
    node: &NodeCall<'_>,
    [n_columns, n_blocks]: [usize; 2],
    bits: u8,
) -> Result<Option<Vec<f32>>, Error> {
    let Some(zeros) = node.inputs.optional_dense(3)? else {
        return Ok(None);
    };
    if zeros.dtype() != DType::Ui8 {
        return expected(node, 3, &[n_columns, n_blocks]).map(Some);
    }
    let per_byte = 8 / usize::from(bits);
    let n_bytes = n_blocks.div_ceil(per_byte);
    let reading = zeros.read()?;
    let bytes = reading.elements::<u8>()?;
    if bytes.len() != n_columns.saturating_mul(n_bytes) {
        let message = format_args!(
            "is expected to have extents {:?}, found {}",
            [n_columns, n_bytes],
            zeros.shape()
        );
        return Err(node.inputs.error(3, message));
    }
    let mask = u8::MAX >> (8 - bits);
    let zero = |(column, block): (usize, usize)| {
        let byte = bytes[column * n_bytes + block / per_byte];
        f32::from(byte >> (block % per_byte * usize::from(bits)) & mask)
    };
    let all = (0..n_columns).flat_map(|column| (0..n_blocks).map(move |block| (column, block)));
    Ok(Some(all.map(zero).collect()))
}

/// The block that each row has its scale of.
fn groups(
    node: &NodeCall<'_>,
    n_rows: usize,
    n_blocks: usize,
) -> Result<Option<Vec<usize>>, Error> {
    let Some(list) = node.inputs.optional_integers(4)? else {
        return Ok(None);
    };
    if list.len() < n_rows {
        let message = format_args!(
            "is expected to have extents [{n_rows}], found [{}]",
            list.len()
        );
        return Err(node.inputs.error(4, message));
    }
    let block = |(index, one): (usize, &i64)| {
        let block = usize::try_from(*one).ok().filter(|one| *one < n_blocks);
        block.ok_or_else(|| {
            let message =
                format_args!("has the block {one} at [{index}], expected one of {n_blocks}");
            node.inputs.error(4, message)
        })
    };
    let groups = list.iter().enumerate().map(block);
    Ok(Some(groups.collect::<Result<_, Error>>()?))
}

/// Reads floats of so many elements as extents have; their own extents may be others.
fn expected(node: &NodeCall<'_>, index: usize, wanted: &[usize]) -> Result<Vec<f32>, Error> {
    let found = node.inputs.dense(index)?;
    let n_elements = wanted
        .iter()
        .try_fold(1_usize, |n, one| n.checked_mul(*one));
    if Some(found.n_elements()) != n_elements {
        let message = format_args!(
            "is expected to have extents {wanted:?}, found {}",
            found.shape()
        );
        return Err(node.inputs.error(index, message));
    }
    floats(node, index)
}

/// Reads floats as `f32`.
fn floats(node: &NodeCall<'_>, index: usize) -> Result<Vec<f32>, Error> {
    #[expect(clippy::cast_possible_truncation, reason = "the sums are of 32 bits")]
    let narrow = |one: &f64| *one as f32;
    let found = node.inputs.dense(index)?;
    if found.dtype() == DType::F32 {
        return Ok(found.read()?.elements::<f32>()?.to_vec());
    }
    Ok(node.inputs.numbers(index)?.iter().map(narrow).collect())
}
