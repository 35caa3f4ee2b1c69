//! [`PackedLayer`]: a recurrent layer of `f32` whose weights, of `f32` or of bytes, are packed.
//!
//! The contribution of inputs to the gates is one product for all places of all sequences; at each place there is one product
//! for the states of all sequences. Gates are calculated in vectors.

use std::sync::Arc;

use tfrt_host::codec::{DecodeContext, Decoder, Encoder};
use tfrt_host::{AsyncValue, Chain, Error, ExecutionContext, HostAllocator};

use super::quantized::{ByteMatrix, ByteScratch};
use super::{Cell, Gate};
use crate::math::functions::Float;
use crate::math::matmul::{PackedRhs, matmul_packed, matmul_packed_into};
use crate::math::packed_gemm::{Addend, Epilogue, InstructionSet, TensorEpilogue};
use crate::math::vectorized;
use crate::{DenseHostTensor, TensorView, TensorViewMut};

/// Weights of a layer in one direction, in ONNX's order: the gates of a cell behind each other.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a> {
    /// Weights of inputs: `[gates * hidden, inputs]`.
    pub w: &'a [f32],
    /// Weights of states: `[gates * hidden, hidden]`.
    pub r: &'a [f32],
    /// Biases of inputs and states: `[2 * gates * hidden]`, or none.
    pub b: &'a [f32],
    /// Peephole weights of the gates in, out, forget: `[3 * hidden]`, or none.
    pub peepholes: &'a [f32],
}

/// A recurrent layer of `f32` in one direction. Clones share the weights.
#[derive(Clone, Debug)]
pub struct PackedLayer {
    cell: Cell,
    /// Packed weights of inputs: `[inputs, gates * hidden]`.
    w: PackedMatrix,
    /// Packed weights of states: `[hidden, gates * hidden]`, without the candidate of a cell that is reset early.
    r: PackedMatrix,
    /// Packed weights of reset states: `[hidden, hidden]`.
    reset: Option<PackedRhs>,
    /// Bias of the sums of inputs: `[gates * hidden]`.
    bias: DenseHostTensor,
    /// Bias of the candidate's state product, added before the reset gate: `[hidden]`, or empty.
    late: Vec<f32>,
    peepholes: Vec<f32>,
}

/// A packed matrix of weights.
#[derive(Clone, Debug)]
enum PackedMatrix {
    Floats(PackedRhs),
    Bytes(ByteMatrix),
}

impl PackedMatrix {
    fn extents(&self) -> [usize; 2] {
        match self {
            PackedMatrix::Floats(matrix) => matrix.extents(),
            PackedMatrix::Bytes(matrix) => matrix.extents(),
        }
    }

    fn map_elements(self, of: impl Fn(DenseHostTensor) -> DenseHostTensor) -> PackedMatrix {
        match self {
            PackedMatrix::Floats(matrix) => PackedMatrix::Floats(matrix.map_elements(of)),
            bytes @ PackedMatrix::Bytes(_) => bytes,
        }
    }

    fn floats(&self) -> Option<&PackedRhs> {
        match self {
            PackedMatrix::Floats(matrix) => Some(matrix),
            PackedMatrix::Bytes(_) => None,
        }
    }
}

/// Weights of bytes of a layer in one direction.
#[derive(Clone, Debug)]
pub struct ByteWeights<'a> {
    /// Weights of inputs: `[inputs, gates * hidden]`.
    pub w: ByteMatrix,
    /// Weights of states: `[hidden, gates * hidden]`.
    pub r: ByteMatrix,
    /// Biases of inputs and states: `[2 * gates * hidden]`, or none.
    pub b: &'a [f32],
    /// Peephole weights of the gates in, out, forget: `[3 * hidden]`, or none.
    pub peepholes: &'a [f32],
}

/// Options of a run over sequences: their lengths, rows and direction.
#[derive(Clone, Copy)]
pub struct Sequences<'a> {
    /// The length of each.
    pub lens: &'a [usize],
    /// Whether sequences are walked from their ends.
    pub is_reverse: bool,
    /// The row of inputs of a place and a sequence.
    pub row: &'a dyn Fn(usize, usize) -> usize,
    /// Bound that inputs of gates are clipped to.
    pub clip: Option<f32>,
    /// The functions of gates, of candidates, and of the second state.
    pub gates: [Gate; 3],
}

impl std::fmt::Debug for Sequences<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequences")
            .field("lens", &self.lens)
            .field("gates", &self.gates)
            .finish_non_exhaustive()
    }
}

impl PackedLayer {
    /// Packs the weights of a layer with these inputs and states, each at least one.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there are not as many weights as that, `ResourceExhausted` if there is no memory.
    pub fn pack(
        allocator: &Arc<dyn HostAllocator>,
        cell: Cell,
        [n_inputs, n]: [usize; 2],
        weights: Weights<'_>,
    ) -> Result<PackedLayer, Error> {
        let Weights { w, r, b, peepholes } = weights;
        let rows = cell.n_gates().saturating_mul(n);
        let is_none_or = |list: &[f32], len: usize| list.is_empty() || list.len() == len;
        let fits = n_inputs > 0
            && n > 0
            && Some(w.len()) == rows.checked_mul(n_inputs)
            && Some(r.len()) == rows.checked_mul(n)
            && is_none_or(b, rows.saturating_mul(2))
            && is_none_or(peepholes, n.saturating_mul(3));
        if !fits {
            return Err(super::misfit());
        }
        let packed = |weights: &[f32], n_rows: usize, n_columns: usize| {
            let view = TensorView::new(weights, &[n_rows, n_columns])?;
            PackedRhs::pack(allocator, &view.permute(&[1, 0])?)
        };
        let is_early = matches!(cell, Cell::Gru { resets_late: false });
        let n_sums = if is_early { 2 * n } else { rows };
        let reset = match is_early {
            true => Some(packed(&r[n_sums * n..], n, n)?),
            false => None,
        };
        let mut bias = vec![0.0; rows];
        let mut late = Vec::new();
        if !b.is_empty() {
            let (of_inputs, of_states) = b.split_at(rows);
            bias.copy_from_slice(of_inputs);
            let n_added = match cell {
                Cell::Gru { resets_late: true } => {
                    late.extend_from_slice(&of_states[2 * n..]);
                    2 * n
                }
                _ => rows,
            };
            for (sum, added) in bias.iter_mut().zip(&of_states[..n_added]) {
                *sum += added;
            }
        }
        Ok(PackedLayer {
            cell,
            w: PackedMatrix::Floats(packed(w, rows, n_inputs)?),
            r: PackedMatrix::Floats(packed(&r[..n_sums * n], n_sums, n)?),
            reset,
            bias: DenseHostTensor::from_slice(allocator, &[rows], &bias)?,
            late,
            peepholes: peepholes.to_vec(),
        })
    }

    /// Makes a layer of long short-term memory with weights of bytes. What they multiply become bytes, too: inputs with one
    /// scale for all of them, the states of all sequences with one at each place.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if weights are not as many as the states say, `ResourceExhausted` if there is no memory.
    pub fn of_bytes(
        allocator: &Arc<dyn HostAllocator>,
        couples: bool,
        weights: ByteWeights<'_>,
    ) -> Result<PackedLayer, Error> {
        let ByteWeights { w, r, b, peepholes } = weights;
        let ([_, rows], [n, of_states]) = (w.extents(), r.extents());
        let is_none_or = |list: &[f32], len: usize| list.is_empty() || list.len() == len;
        let fits = n.checked_mul(4) == Some(rows)
            && of_states == rows
            && is_none_or(b, rows.saturating_mul(2))
            && is_none_or(peepholes, n.saturating_mul(3));
        if !fits {
            return Err(super::misfit());
        }
        let mut bias = vec![0.0; rows];
        let (of_inputs, of_states) = b.split_at(b.len() / 2);
        for (sum, (x, h)) in bias.iter_mut().zip(of_inputs.iter().zip(of_states)) {
            *sum = x + h;
        }
        Ok(PackedLayer {
            cell: Cell::Lstm { couples },
            w: PackedMatrix::Bytes(w),
            r: PackedMatrix::Bytes(r),
            reset: None,
            bias: DenseHostTensor::from_slice(allocator, &[rows], &bias)?,
            late: Vec::new(),
            peepholes: peepholes.to_vec(),
        })
    }

    /// Returns the type of the cell.
    pub fn cell(&self) -> Cell {
        self.cell
    }

    /// Returns the number of inputs, and of states.
    pub fn extents(&self) -> [usize; 2] {
        [self.w.extents()[0], self.r.extents()[0]]
    }

    /// Returns the number of sums of a place: one for each gate and state.
    pub fn n_sums(&self) -> usize {
        self.w.extents()[1]
    }

    /// Replaces packed elements by equal ones that are shared.
    pub fn map_elements(self, of: impl Fn(DenseHostTensor) -> DenseHostTensor) -> PackedLayer {
        PackedLayer {
            w: self.w.map_elements(&of),
            r: self.r.map_elements(&of),
            reset: self.reset.map(|reset| reset.map_elements(&of)),
            ..self
        }
    }

    /// Calculates what inputs contribute to the gates.
    ///
    /// # Shapes
    ///
    /// `x: [rows, inputs]`, `out: [rows, gates * hidden]`
    ///
    /// # Errors
    ///
    /// Those of [`matmul_packed_into`], or `InvalidArgument` if shapes are not that.
    pub fn project_into(
        &self,
        execution: &ExecutionContext,
        x: &DenseHostTensor,
        out: &DenseHostTensor,
    ) -> Result<AsyncValue<Chain>, Error> {
        match &self.w {
            PackedMatrix::Floats(w) => {
                let epilogue = TensorEpilogue {
                    shift: Some(self.bias.clone()),
                    ..TensorEpilogue::default()
                };
                matmul_packed_into(execution, x, w, epilogue, out)
            }
            PackedMatrix::Bytes(w) => w.project_into(execution, x, &self.bias, out),
        }
    }

    /// Runs the layer over sequences. `sums` are the contributions of inputs, `[rows, gates * hidden]`; `h` and `c`
    /// are the states before and afterwards, `[sequences, hidden]`. `output(place, sequence, states)` gets the states
    /// behind each place.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if lists are not as long as that, and what `stopped` says, which is asked at every place.
    pub fn run(
        &self,
        sequences: &Sequences<'_>,
        sums: &[f32],
        (h, c): (&mut [f32], &mut [f32]),
        mut output: impl FnMut(usize, usize, &[f32]),
        stopped: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let ([_, n], rows) = (self.extents(), self.n_sums());
        let n_sequences = sequences.lens.len();
        if h.len() != n_sequences * n || c.len() != h.len() || !sums.len().is_multiple_of(rows) {
            return Err(super::misfit());
        }
        let n_own = self.r.extents()[1];
        let mut own = vec![0.0; n_sequences * n_own];
        let mut seen = vec![0.0; n_sequences * n_own];
        let mut scratch = Scratch::new(n_sequences * n);
        let mut bytes = ByteScratch::default();
        let longest = sequences.lens.iter().copied().max().unwrap_or(0);
        for step in 0..longest {
            stopped()?;
            let place = |len: usize| match sequences.is_reverse {
                true => len - 1 - step,
                false => step,
            };
            let active = sequences.lens.iter().copied().enumerate();
            let active = active.filter(|(_, len)| step < *len);
            let active = active.map(|(sequence, len)| (sequence, place(len)));
            // Sums that are added by the product itself; the candidate of a late reset is not among them.
            let n_added = if self.is_late() { 2 * n } else { n_own };
            for (sequence, place) in active.clone() {
                let row = (sequences.row)(place, sequence);
                let from = sums.get(row * rows..).and_then(|from| from.get(..n_added));
                let from = from.ok_or_else(super::misfit)?;
                let to = &mut own[sequence * n_own..][..n_own];
                to[..n_added].copy_from_slice(from);
                to[n_added..].copy_from_slice(if self.late.is_empty() {
                    &scratch.zeros[..n_own - n_added]
                } else {
                    &self.late
                });
            }
            match &self.r {
                PackedMatrix::Floats(r) => {
                    let epilogue = Epilogue {
                        added: Addend::Elements(&own),
                        ..Epilogue::default()
                    };
                    let states = TensorView::new(h, &[n_sequences, n])?;
                    let mut out = TensorViewMut::new(&mut seen, &[n_sequences, n_own])?;
                    matmul_packed(&states, r, epilogue, &mut out)?;
                }
                PackedMatrix::Bytes(r) => {
                    seen.copy_from_slice(&own);
                    let states = &mut scratch.reset[..n_sequences * n];
                    states.copy_from_slice(h);
                    // The scale is that of states which a place begins with: those behind a sequence's end are 0.
                    for (sequence, len) in sequences.lens.iter().enumerate() {
                        if step > *len {
                            states[sequence * n..][..n].fill(0.0);
                        }
                    }
                    r.add_products(states, &mut bytes, &mut seen);
                }
            }
            if self.reset.is_some() {
                self.reset_states(sequences, active.clone(), (&mut seen, h), &mut scratch)?;
            }
            for (sequence, place) in active {
                let row = (sequences.row)(place, sequence) * rows;
                let at = sequence * n..(sequence + 1) * n;
                let gates = &mut seen[sequence * n_own..][..n_own];
                let states = (&mut h[at.clone()], &mut c[at.clone()]);
                match self.cell {
                    Cell::Plain => {
                        sequences.gate(0, gates);
                        states.0.copy_from_slice(gates);
                    }
                    Cell::Lstm { couples } => {
                        self.lstm(sequences, couples, gates, states, &mut scratch.list[..n]);
                    }
                    Cell::Gru { resets_late } => {
                        let of_inputs = &sums[row + 2 * n..][..n];
                        let candidate = &mut scratch.list[at];
                        if resets_late {
                            sequences.gate(0, &mut gates[..2 * n]);
                            let (reset, late) = gates[n..].split_at(n);
                            let lists = reset.iter().zip(late).zip(of_inputs);
                            for (out, ((reset, late), x)) in candidate.iter_mut().zip(lists) {
                                *out = x + reset * late;
                            }
                        } else {
                            for (out, x) in candidate.iter_mut().zip(of_inputs) {
                                *out += x;
                            }
                        }
                        sequences.gate(1, candidate);
                        let lists = candidate.iter().zip(&gates[..n]);
                        for (h, (candidate, update)) in states.0.iter_mut().zip(lists) {
                            *h = (1.0 - update) * candidate + update * *h;
                        }
                    }
                }
                output(place, sequence, &h[sequence * n..][..n]);
            }
        }
        Ok(())
    }

    fn is_late(&self) -> bool {
        matches!(self.cell, Cell::Gru { resets_late: true })
    }

    /// Multiplies the reset states; the products go to the scratch list. Gates were calculated before.
    fn reset_states(
        &self,
        sequences: &Sequences<'_>,
        active: impl Iterator<Item = (usize, usize)>,
        (gates, h): (&mut [f32], &[f32]),
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let ([_, n], n_own) = (self.extents(), self.r.extents()[1]);
        let Some(reset) = &self.reset else {
            return Ok(());
        };
        for (sequence, _) in active {
            let gates = &mut gates[sequence * n_own..][..n_own];
            sequences.gate(0, gates);
            let lists = gates[n..].iter().zip(&h[sequence * n..]);
            let out = scratch.reset[sequence * n..].iter_mut();
            for (out, (gate, h)) in out.zip(lists) {
                *out = gate * h;
            }
        }
        let extents = [h.len() / n, n];
        let states = TensorView::new(&scratch.reset, &extents)?;
        let mut out = TensorViewMut::new(&mut scratch.list, &extents)?;
        matmul_packed(&states, reset, Epilogue::default(), &mut out)
    }

    fn lstm(
        &self,
        sequences: &Sequences<'_>,
        couples: bool,
        gates: &mut [f32],
        (h, c): (&mut [f32], &mut [f32]),
        shown: &mut [f32],
    ) {
        let n = h.len();
        let add = |gates: &mut [f32], gate: usize, c: &[f32]| {
            let own = self.peepholes.get(gate * n..).unwrap_or(&[]);
            let gates = gates[gate * n..][..n].iter_mut();
            gates
                .zip(own)
                .zip(c)
                .for_each(|((sum, own), c)| *sum += own * c);
        };
        add(gates, 0, c);
        add(gates, 2, c);
        // The gate out sees the state behind this place.
        let is_open = !self.peepholes.is_empty();
        match is_open {
            true => {
                sequences.gate(0, &mut gates[..n]);
                sequences.gate(0, &mut gates[2 * n..3 * n]);
            }
            false => sequences.gate(0, &mut gates[..3 * n]),
        }
        sequences.gate(1, &mut gates[3 * n..]);
        {
            let (taken, rest) = gates.split_at(n);
            let (kept, candidate) = rest[n..].split_at(n);
            vectorized(
                #[inline(always)]
                || {
                    let lists = taken.iter().zip(kept).zip(candidate);
                    for (c, ((taken, kept), candidate)) in c.iter_mut().zip(lists) {
                        let kept = if couples { 1.0 - taken } else { *kept };
                        *c = kept * *c + taken * candidate;
                    }
                },
            );
        }
        if is_open {
            add(gates, 1, c);
            sequences.gate(0, &mut gates[n..2 * n]);
        }
        shown.copy_from_slice(c);
        apply(sequences.gates[2], shown);
        let lists = gates[n..2 * n].iter().zip(&*shown);
        for (h, (gate, shown)) in h.iter_mut().zip(lists) {
            *h = gate * shown;
        }
    }

    /// Returns whether the layer can be written: one with weights of bytes can't.
    pub fn is_encodable(&self) -> bool {
        self.w.floats().is_some() && self.r.floats().is_some()
    }

    /// Writes the layer, laid out for an instruction set.
    ///
    /// # Errors
    ///
    /// Those of the codec of tensors; `InvalidArgument` for a layer that can't be written.
    pub fn encode(&self, set: InstructionSet, encoder: &mut Encoder) -> Result<(), Error> {
        let (cell, flag) = match self.cell {
            Cell::Plain => (0, false),
            Cell::Lstm { couples } => (1, couples),
            Cell::Gru { resets_late } => (2, resets_late),
        };
        encoder.u8(cell);
        encoder.u8(flag.into());
        for extent in self.extents() {
            encoder.usize(extent);
        }
        let (Some(w), Some(r)) = (self.w.floats(), self.r.floats()) else {
            return Err(super::misfit());
        };
        for packed in [w, r].into_iter().chain(&self.reset) {
            let elements = packed.elements_for(encoder.allocator(), set)?;
            crate::codec::write_tensor(&elements.into(), encoder)?;
        }
        crate::codec::write_tensor(&self.bias.clone().into(), encoder)?;
        for list in [&self.late, &self.peepholes] {
            let list = DenseHostTensor::from_slice(encoder.allocator(), &[list.len()], list)?;
            crate::codec::write_tensor(&list.into(), encoder)?;
        }
        Ok(())
    }

    /// Reads a layer that [`encode`](Self::encode) wrote for the first instruction set, and repacks it for the
    /// second.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for bytes that are no layer.
    pub fn decode(
        sets: [InstructionSet; 2],
        decoder: &mut Decoder<'_>,
        context: &DecodeContext<'_>,
    ) -> Result<PackedLayer, Error> {
        let (cell, flag) = (decoder.u8()?, decoder.u8()?);
        let cell = match (cell, flag) {
            (0, 0) => Cell::Plain,
            (1, 0 | 1) => Cell::Lstm { couples: flag == 1 },
            (2, 0 | 1) => Cell::Gru {
                resets_late: flag == 1,
            },
            found => return Err(decoder.wrong(format_args!("a recurrent cell, found {found:?}"))),
        };
        let [n_inputs, n] = [decoder.usize()?, decoder.usize()?];
        let rows = cell.n_gates().checked_mul(n).filter(|rows| *rows > 0);
        let rows = rows.ok_or_else(|| decoder.wrong(format_args!("states, found {n}")))?;
        let is_early = matches!(cell, Cell::Gru { resets_late: false });
        let n_sums = if is_early { 2 * n } else { rows };
        let mut packed = |extents: [usize; 2]| {
            let elements = crate::codec::read_tensor(decoder, context)?;
            let elements = elements.as_dense()?.clone();
            PackedRhs::restore(context.allocator(), sets, extents, elements)
        };
        let (w, r) = (packed([n_inputs, rows])?, packed([n, n_sums])?);
        let reset = match is_early {
            true => Some(packed([n, n])?),
            false => None,
        };
        let bias = crate::codec::read_tensor(decoder, context)?
            .as_dense()?
            .clone();
        let mut list = |lens: [usize; 2]| -> Result<Vec<f32>, Error> {
            let list = crate::codec::read_tensor(decoder, context)?;
            let list = list.as_dense()?.read()?.elements::<f32>()?.to_vec();
            match lens.contains(&list.len()) {
                true => Ok(list),
                false => Err(super::misfit()),
            }
        };
        let is_late = matches!(cell, Cell::Gru { resets_late: true });
        let late = list([0, if is_late { n } else { 0 }])?;
        let peepholes = list([0, n.saturating_mul(3)])?;
        if bias.read()?.elements::<f32>()?.len() != rows {
            return Err(super::misfit());
        }
        Ok(PackedLayer {
            cell,
            w: PackedMatrix::Floats(w),
            r: PackedMatrix::Floats(r),
            reset,
            bias,
            late,
            peepholes,
        })
    }
}

/// Lists that are used again at each place.
struct Scratch {
    list: Vec<f32>,
    reset: Vec<f32>,
    zeros: Vec<f32>,
}

impl Scratch {
    fn new(len: usize) -> Scratch {
        Scratch {
            list: vec![0.0; len],
            reset: vec![0.0; len],
            zeros: vec![0.0; len],
        }
    }
}

impl Sequences<'_> {
    /// Calculates the gates of sums.
    fn gate(&self, index: usize, sums: &mut [f32]) {
        if let Some(clip) = self.clip {
            sums.iter_mut().for_each(|x| *x = x.clamp(-clip, clip));
        }
        apply(self.gates[index], sums);
    }
}

/// Calculates a function of each element.
fn apply(gate: Gate, list: &mut [f32]) {
    match gate {
        Gate::Sigmoid => vectorized(
            #[inline(always)]
            || list.iter_mut().for_each(|x| *x = Float::sigmoid(*x)),
        ),
        Gate::Tanh => vectorized(
            #[inline(always)]
            || list.iter_mut().for_each(|x| *x = Float::tanh(*x)),
        ),
        Gate::Relu => list.iter_mut().for_each(|x| *x = x.max(0.0)),
        other => {
            #[expect(clippy::cast_possible_truncation, reason = "states have 32 bits")]
            list.iter_mut()
                .for_each(|x| *x = other.apply(f64::from(*x)) as f32);
        }
    }
}
