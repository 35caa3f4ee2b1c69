//! `com.microsoft.DynamicQuantizeLSTM`: weights are small integers, and inputs and states become bytes as they come.

use tfrt_host::Error;
use tfrt_tensor::DType;
use tfrt_tensor::math::recurrent::{Cell, Layer, QuantizedLayer, QuantizedMatrix};

use super::{Sizes, clip, gates, lens, list, typed};
use crate::onnx::dispatch::to_f64;
use crate::onnx::{NodeCall, Outputs};

/// Weights of all directions.
struct Weights {
    /// Less their zero points, `[directions, rows, columns]`.
    codes: Vec<i32>,
    /// Of each direction one, or one for each column.
    scales: Vec<f32>,
    /// How many of them a direction has.
    n_codes: usize,
    n_scales: usize,
}

impl Weights {
    /// Reads the weights at an index, whose scales and zero points are elsewhere.
    fn read(
        node: &NodeCall<'_>,
        index: usize,
        of: usize,
        [n_directions, n_columns]: [usize; 2],
    ) -> Result<Weights, Error> {
        let integers = node.inputs.numbers(index)?;
        let (scales, zeros) = (node.inputs.numbers(of)?, node.inputs.numbers(of + 1)?);
        for (index, found) in [(of, scales.len()), (of + 1, zeros.len())] {
            if ![n_directions, n_directions * n_columns].contains(&found) {
                let message = format_args!(
                    "is expected to have one element for each of {n_directions} directions, or for each of their \
                     {n_columns} columns, found {found}"
                );
                return Err(node.inputs.error(index, message));
            }
        }
        let n_codes = integers.len() / n_directions;
        let per_direction = zeros.len() / n_directions;
        #[expect(clippy::cast_possible_truncation, reason = "they are of 8 bits")]
        let code = |(index, code): (usize, &f64)| {
            let column = if per_direction == 1 {
                0
            } else {
                index % n_columns
            };
            let zero = zeros[index / n_codes.max(1) * per_direction + column];
            (code - zero) as i32
        };
        #[expect(clippy::cast_possible_truncation, reason = "they are of 32 bits")]
        let scales: Vec<f32> = scales.iter().map(|scale| *scale as f32).collect();
        Ok(Weights {
            codes: integers.iter().enumerate().map(code).collect(),
            n_scales: scales.len() / n_directions,
            scales,
            n_codes,
        })
    }

    fn of(&self, direction: usize) -> QuantizedMatrix<'_> {
        QuantizedMatrix {
            codes: &self.codes[direction * self.n_codes..][..self.n_codes],
            scales: &self.scales[direction * self.n_scales..][..self.n_scales],
        }
    }
}

pub(super) fn lstm(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    let (w, r) = (node.inputs.extents(1, 3)?, node.inputs.extents(2, 3)?);
    let sizes = Sizes::of(node, [r[0], r[2], r[1]])?;
    let (n, n_directions) = (sizes.n_hidden, sizes.n_directions);
    let n_columns = n.saturating_mul(4);
    for (index, found, n_rows) in [(1, &w, sizes.n_inputs), (2, &r, n)] {
        if found[..] != [n_directions, n_rows, n_columns] {
            let message = format_args!(
                "is expected to have extents {:?}, found {found:?}",
                [n_directions, n_rows, n_columns]
            );
            return Err(node.inputs.error(index, message));
        }
    }
    let w = Weights::read(node, 1, 8, [n_directions, n_columns])?;
    let r = Weights::read(node, 2, 10, [n_directions, n_columns])?;
    let cell = Cell::Lstm {
        couples: node.attributes.flag("input_forget", false)?,
    };
    let gates = gates(node, cell, n_directions)?;
    let (b, b_len) = list(node, 3, n_directions)?;
    let (p, p_len) = list(node, 7, n_directions)?;
    let (mut h, mut c) = (initial(node, 5, &sizes)?, initial(node, 6, &sizes)?);
    let x = node.inputs.numbers(0)?;
    #[expect(clippy::cast_possible_truncation, reason = "they are of 32 bits")]
    let x: Vec<f32> = x.iter().map(|one| *one as f32).collect();
    let lens = lens(node, &sizes)?;
    let out = node.zeros(DType::F64, &sizes.all())?;
    node.workspace.reserve(out.n_elements(), size_of::<f64>())?;
    let mut all = to_f64(&out)?;
    let is_reverse = node.attributes.string_or("direction", "forward")? == "reverse";
    let request = node.execution.request();
    let stopped = || request.cancellation().cloned().map_or(Ok(()), Err);
    let per_direction = sizes.batch.saturating_mul(n);
    for direction in 0..n_directions {
        let layer = Layer {
            cell,
            gates: gates[direction],
            clip: clip(node)?.map(f64::from),
            n_inputs: sizes.n_inputs,
            n_hidden: n,
            w: &[],
            r: &[],
            b: &b[direction * b_len..][..b_len],
            peepholes: &p[direction * p_len..][..p_len],
        };
        let layer = QuantizedLayer {
            layer,
            w: w.of(direction),
            r: r.of(direction),
        };
        let at = direction * per_direction;
        let states = (&mut h[at..][..per_direction], &mut c[at..][..per_direction]);
        let output = |place: usize, batch: usize, h: &[f64]| {
            all[sizes.output(place, direction, batch) * n..][..n].copy_from_slice(h);
        };
        let backward = is_reverse || direction == 1;
        let done = layer.run(&x, &lens, backward, states, output, stopped);
        done.map_err(|error| match stopped() {
            Err(cancelled) => cancelled,
            Ok(()) => node.error(error.message()),
        })?;
    }
    let (like, states) = (node.inputs.dense(0)?, sizes.states());
    Ok(Outputs::from(typed(node, like, &sizes.all(), &all)?)
        .and_tensor(typed(node, like, &states, &h)?)
        .and_tensor(typed(node, like, &states, &c)?))
}

/// The states before the first place, zeros if the operand is left out.
fn initial(node: &NodeCall<'_>, index: usize, sizes: &Sizes) -> Result<Vec<f64>, Error> {
    let zeros = node.zeros(DType::F64, &sizes.states())?;
    if !node.inputs.has(index) {
        return to_f64(&zeros);
    }
    let (list, wanted) = (node.inputs.numbers(index)?, zeros.n_elements());
    if list.len() != wanted {
        let found = list.len();
        let message = format_args!("is expected to have {wanted} elements, found {found}");
        return Err(node.inputs.error(index, message));
    }
    Ok(list)
}
