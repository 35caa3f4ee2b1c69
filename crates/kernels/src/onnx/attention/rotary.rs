//! `RotaryEmbedding`: rotates pairs of elements by angles that depend on their position in a sequence.

use tfrt_host::Error;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::parallel;

use crate::onnx::{NodeCall, Outputs, with_floating};

pub(super) fn rotary(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (x, cosines, sines) = (
        node.inputs.dense(0)?,
        node.inputs.dense(1)?,
        node.inputs.dense(2)?,
    );
    let (dtype, extents) = (x.dtype(), x.shape().to_dims());
    // How far apart neighbours along batch, sequence and heads are.
    let (batch, length, width, strides) = match extents[..] {
        [batch, heads, length, width] => {
            let strides = [
                heads.saturating_mul(length).saturating_mul(width),
                width,
                length.saturating_mul(width),
            ];
            (batch, length, width, strides)
        }
        [batch, length, hidden] => {
            let heads = node.attributes.size_or("num_heads", 0)?;
            if heads == 0 || hidden % heads != 0 {
                let message = format_args!("is expected to divide {hidden}, found {heads}");
                return Err(node.attributes.error("num_heads", message));
            }
            (
                batch,
                length,
                hidden / heads,
                [length.saturating_mul(hidden), hidden, hidden / heads],
            )
        }
        _ => {
            let message = format_args!("is expected to have 3 or 4 dimensions, found {extents:?}");
            return Err(node.inputs.error(0, message));
        }
    };
    let is_flat = extents.len() == 3;
    let is_interleaved = node.attributes.flag("interleaved", false)?;
    let turned = match node.attributes.size_or("rotary_embedding_dim", 0)? {
        0 => width,
        turned => turned,
    };
    if turned > width || turned % 2 != 0 {
        let message = format_args!("is expected to be even and within {width}, found {turned}");
        return Err(node.attributes.error("rotary_embedding_dim", message));
    }
    let half = turned / 2;
    // Which row of angles a place has: its own, or that of its position.
    let places = batch.saturating_mul(length);
    let n_rows = cosines.n_elements().checked_div(half).unwrap_or(0);
    let positions = node.inputs.optional_integers(3)?;
    let beyond = |one: &&i64| !usize::try_from(**one).is_ok_and(|row| row < n_rows);
    if let Some(found) = positions.iter().flatten().find(beyond) {
        let message = format_args!(
            "has the position {found}, expected one of the {n_rows} of a table of shape {}",
            cosines.shape()
        );
        return Err(node.inputs.error(3, message));
    }
    let rows: Option<Vec<usize>> = match &positions {
        None => (n_rows == places).then(|| (0..places).collect()),
        Some(list) if list.len() == places => {
            let row = |one: &i64| usize::try_from(*one).ok().filter(|row| *row < n_rows);
            list.iter().map(row).collect()
        }
        Some(_) => None,
    };
    let fits =
        cosines.shape() == sines.shape() && n_rows.checked_mul(half) == Some(cosines.n_elements());
    let (Some(rows), true) = (rows, fits || half == 0) else {
        let (shapes, places) = ([cosines.shape(), sines.shape()], [batch, length]);
        let message = match &positions {
            Some(list) => format!(
                "is expected to have rows of {half} angles, as operand 2, and operand 3 one of them for each of \
                 {places:?} places, found {} and {}, and {} positions",
                shapes[0],
                shapes[1],
                list.len()
            ),
            None => format!(
                "is expected to have {half} angles for each of {places:?} places, as operand 2, found {} and {}",
                shapes[0], shapes[1]
            ),
        };
        return Err(node.inputs.error(1, message));
    };
    let (out, n_places) = (node.output(dtype, &extents)?, length);
    with_floating!(dtype, T => {
        cosines.metadata().expect_dtype(dtype)?;
        sines.metadata().expect_dtype(dtype)?;
        let (x, cosines, sines) = (x.clone(), cosines.clone(), sines.clone());
        let chunk = parallel::chunk_len(8, 1);
        let chain = parallel::fill(node.execution, &out, chunk, move |first, part: &mut [T]| {
            let (x, cosines, sines) = (x.read()?, cosines.read()?, sines.read()?);
            let (x, cosines, sines) = (x.elements::<T>()?, cosines.elements::<T>()?, sines.elements::<T>()?);
            for (index, out) in part.iter_mut().enumerate() {
                let at = first + index;
                let (batch, rest) = (at / strides[0], at % strides[0]);
                // Of flat inputs heads are within a place of the sequence, else around it.
                let (length, column) = match is_flat {
                    true => (rest / strides[1], rest % strides[1] % strides[2]),
                    false => (rest % strides[2] / strides[1], rest % strides[1]),
                };
                if column >= turned {
                    *out = x[at];
                    continue;
                }
                let (pair, is_second) = match is_interleaved {
                    true => (column / 2, column % 2 == 1),
                    false => (column % half, column >= half),
                };
                let other = match (is_interleaved, is_second) {
                    (true, false) => at + 1,
                    (true, true) => at - 1,
                    (false, false) => at + half,
                    (false, true) => at - half,
                };
                let angle = rows[batch * n_places + length] * half + pair;
                let (cosine, sine) = (cosines[angle].to_f64(), sines[angle].to_f64());
                let (own, other) = (x[at].to_f64(), x[other].to_f64());
                let sign = if is_second { 1.0 } else { -1.0 };
                *out = T::from_f64(cosine * own + sign * sine * other);
            }
            Ok(())
        })?;
        Ok(Outputs::later(out, chain))
    }, else Err(node.inputs.unsupported(0, dtype)))
}
