//! Layers whose weights are small integers, and whose inputs and states become bytes before they are multiplied.

use tfrt_host::Error;

use super::{Cell, Layer, misfit};

/// A matrix of integers that stand for numbers: `[rows, columns]`.
#[derive(Clone, Copy, Debug)]
pub struct QuantizedMatrix<'a> {
    /// The integers, less their zero points.
    pub codes: &'a [i32],
    /// The number that one is, for all columns or for each.
    pub scales: &'a [f32],
}

/// A layer of long short-term memory with quantised weights, in one direction. Those of `layer` are empty.
#[derive(Clone, Debug)]
pub struct QuantizedLayer<'a> {
    /// Functions, sizes, summands and peepholes.
    pub layer: Layer<'a>,
    /// Weights of inputs: `[inputs, gates * hidden]`.
    pub w: QuantizedMatrix<'a>,
    /// Weights of states: `[hidden, gates * hidden]`.
    pub r: QuantizedMatrix<'a>,
}

impl QuantizedMatrix<'_> {
    /// Returns the product of rows of numbers, which become bytes with one scale and zero point for all of them.
    fn product(&self, x: &[f32], n_columns: usize) -> Vec<f32> {
        let n_rows = self.codes.len() / n_columns.max(1);
        let (codes, scale) = quantized(x);
        let mut out = Vec::with_capacity(x.len() / n_rows.max(1) * n_columns);
        let mut sums = vec![0_i32; n_columns];
        for codes in codes.chunks_exact(n_rows.max(1)) {
            sums.fill(0);
            for (code, row) in codes.iter().zip(self.codes.chunks_exact(n_columns.max(1))) {
                for (sum, weight) in sums.iter_mut().zip(row) {
                    *sum = sum.wrapping_add(code.wrapping_mul(*weight));
                }
            }
            out.extend(sums.iter().enumerate().map(|(column, sum)| {
                let own = if self.scales.len() == 1 { 0 } else { column };
                #[expect(clippy::cast_precision_loss, reason = "the sum is rounded")]
                let sum = *sum as f32;
                sum * (scale * self.scales[own])
            }));
        }
        out
    }

    fn fits(&self, n_rows: usize, n_columns: usize) -> bool {
        n_rows.checked_mul(n_columns) == Some(self.codes.len())
            && [1, n_columns].contains(&self.scales.len())
    }
}

/// Returns numbers as integers from 0 to 255 less the one that 0 is, and the number that one is.
fn quantized(x: &[f32]) -> (Vec<i32>, f32) {
    const MOST: f32 = 255.0;
    let least = x.iter().copied().fold(0.0, f32::min);
    let most = x.iter().copied().fold(0.0, f32::max);
    let scale = match (most - least) / MOST {
        0.0 => 1.0,
        scale => scale,
    };
    let zero = (-least / scale).round_ties_even().clamp(0.0, MOST);
    #[expect(clippy::cast_possible_truncation, reason = "it is from -255 to 255")]
    let code = |x: &f32| {
        let code = (x / scale).round_ties_even() + zero;
        (code.clamp(0.0, MOST) - zero) as i32
    };
    (x.iter().map(code).collect(), scale)
}

impl QuantizedLayer<'_> {
    /// Goes through sequences of `lens` places side by side: `x` has a row of inputs for each place, and in it for each
    /// sequence; `h` and `c` have a row of states for each sequence, before and afterwards. `output(place, sequence,
    /// states)` gets the states behind a place.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if lists are not as long as they should be, and what `stopped` says, which is asked at every place.
    pub fn run(
        &self,
        x: &[f32],
        lens: &[usize],
        is_reverse: bool,
        (h, c): (&mut [f64], &mut [f64]),
        mut output: impl FnMut(usize, usize, &[f64]),
        stopped: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Layer {
            n_inputs, n_hidden, ..
        } = self.layer;
        let Cell::Lstm { couples } = self.layer.cell else {
            return Err(misfit());
        };
        let (n_columns, n_sequences) = (n_hidden.saturating_mul(4), lens.len());
        let per_place = n_sequences.saturating_mul(n_inputs);
        let length = x.len().checked_div(per_place).unwrap_or(0);
        let of =
            |n: usize, list: &[f64]| list.is_empty() || list.len() == n.saturating_mul(n_hidden);
        let fits = self.w.fits(n_inputs, n_columns)
            && self.r.fits(n_hidden, n_columns)
            && of(8, self.layer.b)
            && of(3, self.layer.peepholes)
            && n_sequences.checked_mul(n_hidden) == Some(h.len())
            && h.len() == c.len()
            && lens.iter().all(|len| *len <= length);
        if !fits {
            return Err(misfit());
        }
        let of_inputs = self.w.product(x, n_columns);
        let (own, of_state) = self.layer.b.split_at(self.layer.b.len() / 2);
        let most = lens.iter().copied().max().unwrap_or(0);
        for step in 0..most {
            stopped()?;
            // The scale of states that a place begins with: those behind a sequence's last place are 0.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "states of f32 are quantised"
            )]
            let state = |(index, one): (usize, &f64)| match step <= lens[index / n_hidden] {
                true => *one as f32,
                false => 0.0,
            };
            let states: Vec<f32> = h.iter().enumerate().map(state).collect();
            let of_states = self.r.product(&states, n_columns);
            for (sequence, len) in lens
                .iter()
                .copied()
                .enumerate()
                .filter(|(_, len)| step < *len)
            {
                let place = if is_reverse { len - 1 - step } else { step };
                let row = place * n_sequences + sequence;
                let a = summed(&of_inputs[row * n_columns..][..n_columns], own);
                let s = summed(&of_states[sequence * n_columns..][..n_columns], of_state);
                let at = sequence * n_hidden;
                let (h, c) = (&mut h[at..][..n_hidden], &mut c[at..][..n_hidden]);
                self.layer.lstm(couples, &a, &s, h, c);
                output(place, sequence, h);
            }
        }
        Ok(())
    }
}

fn summed(sums: &[f32], bias: &[f64]) -> Vec<f64> {
    let bias = bias.iter().copied().chain(std::iter::repeat(0.0));
    sums.iter()
        .zip(bias)
        .map(|(sum, bias)| f64::from(*sum) + bias)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_a_byte_and_the_ends_are_reached() {
        assert_eq!(quantized(&[0.0, 0.0]), (vec![0, 0], 1.0));
        assert_eq!(quantized(&[-1.0, 0.0, 254.0]), (vec![-1, 0, 254], 1.0));
    }

    #[test]
    fn columns_have_scales() {
        let codes = [1, 2, 3, 4];
        let matrix = |scales: &'static [f32]| QuantizedMatrix {
            codes: &codes,
            scales,
        };
        assert_eq!(matrix(&[1.0]).product(&[255.0, 1.0], 2), [258.0, 514.0]);
        assert_eq!(
            matrix(&[1.0, 2.0]).product(&[255.0, 1.0], 2),
            [258.0, 1028.0]
        );
    }
}
