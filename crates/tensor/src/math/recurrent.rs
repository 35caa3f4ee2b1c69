//! Sequence layers with a state: recurrent networks, linear attention.
//!
//! [`Layer`] and linear attention are calculated in `f64`, place by place: every step waits for the one before. Layers of
//! `f32` are faster with packed weights, of `f32` or of bytes: [`PackedLayer`].

use tfrt_host::Error;

mod packed;
mod quantized;

pub use packed::{ByteWeights, PackedLayer, Sequences, Weights};
pub use quantized::ByteMatrix;

#[cold]
fn misfit() -> Error {
    let message = "the weights of a recurrent layer are not as many as its inputs and states say";
    Error::invalid_argument(message)
}

/// The cell of a recurrent layer: how its state follows from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// `h = f(x W + h R + b)`
    Plain,
    /// Long short-term memory: gates in, out, forget, and the candidate; a second state.
    Lstm {
        /// Whether the forget gate is 1 minus the input gate.
        couples: bool,
    },
    /// Gated recurrent unit: gates update, reset, and the candidate.
    Gru {
        /// Whether the state is multiplied by its matrix before the reset gate is applied.
        resets_late: bool,
    },
}

impl Cell {
    /// Returns the number of gates, each with as many rows of weights as there are hidden states.
    pub fn n_gates(self) -> usize {
        match self {
            Cell::Plain => 1,
            Cell::Lstm { .. } => 4,
            Cell::Gru { .. } => 3,
        }
    }
}

/// The activation of a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gate {
    /// max(x, 0)
    Relu,
    /// The hyperbolic tangent
    Tanh,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// alpha x + beta
    Affine(f64, f64),
    /// x, or alpha x below 0
    LeakyRelu(f64),
    /// x, or 0 below alpha
    ThresholdedRelu(f64),
    /// alpha tanh(beta x)
    ScaledTanh(f64, f64),
    /// alpha x + beta, between 0 and 1
    HardSigmoid(f64, f64),
    /// x, or alpha (e^x - 1) below 0
    Elu(f64),
    /// x / (1 + |x|)
    Softsign,
    /// ln(1 + e^x)
    Softplus,
}

impl Gate {
    /// Calculates the function.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Gate::Relu => x.max(0.0),
            Gate::Tanh => x.tanh(),
            Gate::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Gate::Affine(alpha, beta) => alpha * x + beta,
            Gate::LeakyRelu(alpha) => {
                if x < 0.0 {
                    alpha * x
                } else {
                    x
                }
            }
            Gate::ThresholdedRelu(alpha) => {
                if x < alpha {
                    0.0
                } else {
                    x
                }
            }
            Gate::ScaledTanh(alpha, beta) => alpha * (beta * x).tanh(),
            Gate::HardSigmoid(alpha, beta) => (alpha * x + beta).clamp(0.0, 1.0),
            Gate::Elu(alpha) => {
                if x < 0.0 {
                    alpha * x.exp_m1()
                } else {
                    x
                }
            }
            Gate::Softsign => x / (1.0 + x.abs()),
            Gate::Softplus => x.max(0.0) + (-x.abs()).exp().ln_1p(),
        }
    }
}

/// A recurrent layer in one direction.
#[derive(Clone, Debug)]
pub struct Layer<'a> {
    /// Type of cell.
    pub cell: Cell,
    /// The functions of gates, of candidates, and of the second state.
    pub gates: [Gate; 3],
    /// Bound that inputs of gates are clipped to.
    pub clip: Option<f64>,
    /// The number of inputs.
    pub n_inputs: usize,
    /// The number of states.
    pub n_hidden: usize,
    /// Weights of inputs: `[gates * hidden, inputs]`.
    pub w: &'a [f64],
    /// Weights of states: `[gates * hidden, hidden]`.
    pub r: &'a [f64],
    /// Biases of inputs and states, `[2 * gates * hidden]`, or none.
    pub b: &'a [f64],
    /// Peephole weights of the gates in, out, forget: `[3 * hidden]`, or none.
    pub peepholes: &'a [f64],
}

impl Layer<'_> {
    /// Returns whether all lists have the lengths that they should.
    fn fits(&self) -> bool {
        let rows = self.cell.n_gates().checked_mul(self.n_hidden);
        let of = |n: usize| rows.and_then(|rows| rows.checked_mul(n));
        of(self.n_inputs) == Some(self.w.len())
            && of(self.n_hidden) == Some(self.r.len())
            && (self.b.is_empty() || of(2) == Some(self.b.len()))
            && (self.peepholes.is_empty()
                || self.n_hidden.checked_mul(3) == Some(self.peepholes.len()))
    }

    /// Calculates a row of sums of a gate, of inputs or of states.
    fn sums(weights: &[f64], bias: &[f64], x: &[f64], out: &mut [f64]) {
        for (row, out) in out.iter_mut().enumerate() {
            let weights = &weights[row * x.len()..][..x.len()];
            let sum: f64 = weights.iter().zip(x).map(|(w, x)| w * x).sum();
            *out = sum + bias.get(row).copied().unwrap_or(0.0);
        }
    }

    fn gate(&self, index: usize, x: f64) -> f64 {
        let x = self.clip.map_or(x, |clip| x.clamp(-clip, clip));
        self.gates[index].apply(x)
    }

    /// Runs the layer over a sequence: `input(place)` returns the inputs of a place, `output(place, states)` gets the
    /// states behind it; `h` and `c` are the states before and afterwards.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if lists are not as long as they should be, and what `stopped` says, which is asked at
    /// every place.
    pub fn run<'x>(
        &self,
        places: impl Iterator<Item = usize>,
        input: impl Fn(usize) -> &'x [f64],
        (h, c): (&mut [f64], &mut [f64]),
        mut output: impl FnMut(usize, &[f64]),
        stopped: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let n = self.n_hidden;
        if !self.fits() || h.len() != n || c.len() != n {
            return Err(misfit());
        }
        let rows = self.cell.n_gates() * n;
        let (of_input, of_state) = self.b.split_at(self.b.len() / 2);
        let (mut a, mut s) = (vec![0.0; rows], vec![0.0; rows]);
        for place in places {
            stopped()?;
            let x = input(place);
            Self::sums(self.w, of_input, x, &mut a);
            Self::sums(self.r, of_state, h, &mut s);
            match self.cell {
                Cell::Plain => {
                    for index in 0..n {
                        h[index] = self.gate(0, a[index] + s[index]);
                    }
                }
                Cell::Lstm { couples } => self.lstm(couples, &a, &s, h, c),
                Cell::Gru { resets_late } => self.gru(resets_late, &a, &s, of_state, h),
            }
            output(place, h);
        }
        Ok(())
    }

    fn lstm(&self, couples: bool, a: &[f64], s: &[f64], h: &mut [f64], c: &mut [f64]) {
        let n = self.n_hidden;
        let peephole = |gate: usize, index: usize| {
            self.peepholes.get(gate * n + index).copied().unwrap_or(0.0)
        };
        for index in 0..n {
            let sum = |gate: usize| a[gate * n + index] + s[gate * n + index];
            let taken = self.gate(0, sum(0) + peephole(0, index) * c[index]);
            let kept = match couples {
                true => 1.0 - taken,
                false => self.gate(0, sum(2) + peephole(2, index) * c[index]),
            };
            c[index] = kept * c[index] + taken * self.gate(1, sum(3));
            let shown = self.gate(0, sum(1) + peephole(1, index) * c[index]);
            // What is shown is a function of the state, not of a sum.
            h[index] = shown * self.gates[2].apply(c[index]);
        }
    }

    fn gru(&self, resets_late: bool, a: &[f64], s: &[f64], of_state: &[f64], h: &mut [f64]) {
        let n = self.n_hidden;
        let gates = |gate: usize| -> Vec<f64> {
            (0..n)
                .map(|index| self.gate(0, a[gate * n + index] + s[gate * n + index]))
                .collect()
        };
        let (update, reset) = (gates(0), gates(1));
        let mut state = vec![0.0; n];
        match resets_late {
            true => {
                for (index, state) in state.iter_mut().enumerate() {
                    *state = reset[index] * s[2 * n + index];
                }
            }
            false => {
                let left: Vec<f64> = reset
                    .iter()
                    .zip(h.iter())
                    .map(|(reset, h)| reset * h)
                    .collect();
                let bias = of_state.get(2 * n..).unwrap_or(&[]);
                Self::sums(&self.r[2 * n * n..], bias, &left, &mut state);
            }
        }
        for index in 0..n {
            let candidate = self.gate(1, a[2 * n + index] + state[index]);
            h[index] = (1.0 - update[index]) * candidate + update[index] * h[index];
        }
    }
}

/// Attention by a matrix for each head that keys and values are written to, and queries read from.
#[derive(Clone, Copy, Debug)]
pub struct LinearAttention {
    /// Heads of queries: a multiple of the key heads.
    pub heads: usize,
    /// Number of heads of keys and values.
    pub key_heads: usize,
    /// The width of queries and keys.
    pub depth: usize,
    /// The width of values.
    pub width: usize,
    /// The factor of what is read.
    pub scale: f64,
}

/// Runs linear attention over sequences. At each place the state decays by e^decay, then the key's value is written
/// (with `beta`, that part of its difference from the value that the key reads), and the result is what the query
/// reads.
///
/// # Shapes
///
/// Queries, keys and values: `[batch, length, heads * width]`, of their heads and widths. Decay: `[batch, length,
/// key heads]`, with `* depth` or without, or empty; beta: `[batch, length, key heads]` or `[batch, length, 1]`, or
/// empty. State: `[batch, key heads, depth, width]`. Gives `[batch, length, heads * width]`.
///
/// # Errors
///
/// `InvalidArgument` if lists are not as long as that, and what `stopped` says, which is asked at every place.
pub fn linear_attention(
    attention: &LinearAttention,
    [batch, length]: [usize; 2],
    [queries, keys, values]: [&[f64]; 3],
    [decay, beta]: [&[f64]; 2],
    state: &mut [f64],
    stopped: impl Fn() -> Result<(), Error>,
) -> Result<Vec<f64>, Error> {
    let LinearAttention {
        heads,
        key_heads,
        depth,
        width,
        scale,
    } = *attention;
    let (n_places, per_state) = (batch * length, depth * width);
    let per_decay = decay.len().checked_div(n_places).unwrap_or(0);
    let per_beta = beta.len().checked_div(n_places).unwrap_or(0);
    let fits = key_heads > 0
        && queries.len() == n_places * heads * depth
        && keys.len() == n_places * key_heads * depth
        && values.len() == n_places * key_heads * width
        && state.len() == batch * key_heads * per_state;
    if !fits {
        return Err(Error::invalid_argument(
            "the parts of linear attention don't fit together",
        ));
    }
    let mut out = vec![0.0; n_places * heads * width];
    for place in 0..n_places {
        stopped()?;
        for key_head in 0..key_heads {
            let number = place / length * key_heads + key_head;
            let state = &mut state[number * per_state..][..per_state];
            let key = &keys[(place * key_heads + key_head) * depth..][..depth];
            let value = &values[(place * key_heads + key_head) * width..][..width];
            if per_decay > 0 {
                for (row, part) in state.chunks_mut(width.max(1)).enumerate() {
                    let own = if per_decay == key_heads {
                        key_head
                    } else {
                        key_head * depth + row
                    };
                    let factor = decay[place * per_decay + own].exp();
                    part.iter_mut().for_each(|one| *one *= factor);
                }
            }
            let mut written = value.to_vec();
            if per_beta > 0 {
                let own = if per_beta == 1 { 0 } else { key_head };
                let factor = beta[place * per_beta + own];
                for (column, written) in written.iter_mut().enumerate() {
                    let read: f64 = (0..depth)
                        .map(|row| state[row * width + column] * key[row])
                        .sum();
                    *written = factor * (*written - read);
                }
            }
            for (row, key) in key.iter().enumerate() {
                for (column, written) in written.iter().enumerate() {
                    state[row * width + column] += key * written;
                }
            }
            let group = heads / key_heads;
            for head in key_head * group..(key_head + 1) * group {
                let query = &queries[(place * heads + head) * depth..][..depth];
                let out = &mut out[(place * heads + head) * width..][..width];
                for (column, out) in out.iter_mut().enumerate() {
                    let read: f64 = (0..depth)
                        .map(|row| state[row * width + column] * query[row])
                        .sum();
                    *out = scale * read;
                }
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer<'a>(cell: Cell, w: &'a [f64], r: &'a [f64]) -> Layer<'a> {
        Layer {
            cell,
            gates: [Gate::Sigmoid, Gate::Tanh, Gate::Tanh],
            clip: None,
            n_inputs: 1,
            n_hidden: 1,
            w,
            r,
            b: &[],
            peepholes: &[],
        }
    }

    #[test]
    fn states_are_those_of_the_formulas() {
        let x = [0.5, -1.0];
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let run = |layer: &Layer<'_>| {
            let (mut h, mut c, mut seen) = ([0.0], [0.0], Vec::new());
            layer
                .run(
                    0..2,
                    |place| &x[place..=place],
                    (&mut h, &mut c),
                    |_, h| seen.push(h[0]),
                    || Ok(()),
                )
                .unwrap();
            seen
        };
        let (w, r) = ([1.0, 2.0, 3.0, 4.0], [0.5, 0.25, 0.75, 1.5]);
        let (mut h, mut c) = (0.0, 0.0);
        let lstm = run(&layer(Cell::Lstm { couples: false }, &w, &r));
        for (place, x) in x.iter().enumerate() {
            let gate = |index: usize| w[index] * x + r[index] * h;
            let (i, o, f, z) = (
                sigmoid(gate(0)),
                sigmoid(gate(1)),
                sigmoid(gate(2)),
                gate(3).tanh(),
            );
            c = f * c + i * z;
            h = o * c.tanh();
            assert!((lstm[place] - h).abs() < 1e-12);
        }
        let gru = run(&layer(Cell::Gru { resets_late: false }, &w[..3], &r[..3]));
        let mut h = 0.0;
        for (place, x) in x.iter().enumerate() {
            let (z, reset) = (sigmoid(w[0] * x + r[0] * h), sigmoid(w[1] * x + r[1] * h));
            let candidate = (w[2] * x + r[2] * reset * h).tanh();
            h = (1.0 - z) * candidate + z * h;
            assert!((gru[place] - h).abs() < 1e-12);
        }
        assert!(
            layer(Cell::Plain, &w, &r)
                .run(
                    0..1,
                    |_| &x[..1],
                    (&mut [0.0], &mut [0.0]),
                    |_, _| (),
                    || Ok(())
                )
                .is_err()
        );
    }
}
