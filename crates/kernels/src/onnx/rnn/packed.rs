//! Recurrent layers of `f32` with packed weights, which are prepared where they are constants.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_host::codec::{DecodeContext, Decoder, Encoder};
use tfrt_host::{AsyncValue, Chain, Error, HostContext};
use tfrt_tensor::math::packed_gemm::InstructionSet;
use tfrt_tensor::math::recurrent::{Gate, PackedLayer, Sequences, Weights};
use tfrt_tensor::{DType, DenseHostTensor, TensorShape};

use super::{Cell, Sizes, cell, clip, gates, lens, n_directions, quantized};
use crate::graph::stored;
use crate::onnx::outputs::IntoValue;
use crate::onnx::prepare::{PrepareRow, PreparedKernel, erase};
use crate::onnx::{NodeCall, Outputs};

pub(in crate::onnx) const PREPARE: &[PrepareRow] = &[PREPARE_FLOATS, quantized::PREPARE];

/// The nodes whose weights, biases and peepholes are prepared.
const PREPARE_FLOATS: PrepareRow = PrepareRow {
    op: "rnn",
    inputs: &[1, 2, 3, 7],
    types: &[],
    takes_attributes: false,
    make: |node| {
        let Some(layers) = pack(node)? else {
            return Ok(None);
        };
        let layers = layers.shared(node.execution.host());
        Ok(Some(erase(layers)))
    },
    restore: Some(|decoder, context| Ok(erase(Layers::decode(decoder, context)?))),
};

/// The kind of recurrent layers in a file.
const LAYERS: &str = "recurrent layers";

/// The most directions of a layer.
const MOST_DIRECTIONS: usize = 2;

/// The packed layers, one for each direction.
#[derive(Clone, Debug)]
pub(super) struct Layers(Vec<PackedLayer>);

/// Packs the weights of a node if they are of `f32` and of supported sizes; all others take the unpacked way, which
/// reports errors.
pub(super) fn pack(node: &NodeCall<'_>) -> Result<Option<Arc<Layers>>, Error> {
    let dense = [1, 2, 3, 7].map(|index| node.inputs.optional_dense(index));
    let [w, r, b, p] = dense;
    let (Some(w), Some(r), b, p) = (w?, r?, b?, p?) else {
        return Ok(None);
    };
    let x = node.inputs.optional_dense(0)?;
    let mut all = [Some(w), Some(r), b, p, x].into_iter().flatten();
    let cell = cell(node)?;
    let n_directions = n_directions(node)?;
    let (w_extents, r_extents) = (w.shape().to_dims(), r.shape().to_dims());
    let (&[_, _, n_inputs], &[n, _, n_hidden]) = (&w_extents[..], &r_extents[..]) else {
        return Ok(None);
    };
    if !all.all(|one| one.dtype() == DType::F32)
        || n != n_directions
        || n_inputs == 0
        || n_hidden == 0
    {
        return Ok(None);
    }
    let readings = [Some(w), Some(r), b, p].map(|list| list.map(DenseHostTensor::read));
    let [w, r, b, p] = readings.map(Option::transpose);
    let (w, r, b, p) = (w?, r?, b?, p?);
    let allocator = node.execution.host().allocator();
    let mut layers = Vec::with_capacity(n_directions);
    for direction in 0..n_directions {
        let part = |list: &Option<tfrt_tensor::DenseReading<'_>>| -> Result<Vec<f32>, Error> {
            let Some(list) = list else {
                return Ok(Vec::new());
            };
            let list = list.elements::<f32>()?;
            let len = list.len() / n_directions;
            Ok(list[direction * len..][..len].to_vec())
        };
        let (w, r, b, p) = (part(&w)?, part(&r)?, part(&b)?, part(&p)?);
        let weights = Weights {
            w: &w,
            r: &r,
            b: &b,
            peepholes: &p,
        };
        let layer = PackedLayer::pack(allocator, cell, [n_inputs, n_hidden], weights);
        layers.push(layer.map_err(|error| node.with_name(&error))?);
    }
    Ok(Some(Arc::new(Layers(layers))))
}

impl Layers {
    /// Takes the layers of one or two directions, which are alike.
    pub(super) fn new(layers: Vec<PackedLayer>) -> Layers {
        Layers(layers)
    }

    /// Shares weights with other models of the host.
    fn shared(&self, host: &HostContext) -> Layers {
        let share = |layer: &PackedLayer| {
            let layer = layer.clone();
            layer.map_elements(|elements| crate::graph::share(host, elements))
        };
        Layers(self.0.iter().map(share).collect())
    }

    fn decode(decoder: &mut Decoder<'_>, context: &DecodeContext<'_>) -> Result<Layers, Error> {
        let (kind, sets) = stored::read_layout(decoder, context)?;
        let n = decoder.usize()?;
        if kind != LAYERS || !(1..=MOST_DIRECTIONS).contains(&n) {
            let kind = kind.escape_debug();
            return Err(decoder.wrong(format_args!("one or two {LAYERS}, found {n} '{kind}'")));
        }
        let layers = (0..n).map(|_| PackedLayer::decode(sets, decoder, context));
        let layers: Vec<PackedLayer> = layers.collect::<Result<_, _>>()?;
        match layers
            .iter()
            .all(|layer| layer.extents() == layers[0].extents())
        {
            true => Ok(Layers(layers)),
            false => Err(decoder.wrong(format_args!("{LAYERS} that are alike"))),
        }
    }
}

impl PreparedKernel for Layers {
    fn encode(&self, encoder: &mut Encoder) -> Option<Result<(), Error>> {
        if !self.0.iter().all(PackedLayer::is_encodable) {
            return None;
        }
        let write = |encoder: &mut Encoder| {
            let set = stored::target(encoder, InstructionSet::best())?;
            stored::write_layout(LAYERS, set, encoder);
            encoder.usize(self.0.len());
            self.0
                .iter()
                .try_for_each(|layer| layer.encode(set, encoder))
        };
        Some(write(encoder))
    }

    fn run(self: Arc<Self>, node: &NodeCall<'_>) -> Result<Outputs, Error> {
        let [n_inputs, n] = self.0[0].extents();
        let n_directions = self.0.len();
        let sizes = Sizes::of(node, [n_directions, 0, n])?;
        let x = node.inputs.dense(0)?;
        if sizes.n_inputs != n_inputs {
            let found = sizes.n_inputs;
            let message = format_args!("is expected to have {n_inputs} inputs, found {found}");
            return Err(node.inputs.error(0, message));
        }
        if x.dtype() != DType::F32 {
            let found = x.dtype();
            let message =
                format_args!("is expected to be of f32, as the weights are, found {found}");
            return Err(node.inputs.error(0, message));
        }
        let cell = self.0[0].cell();
        let gates = gates(node, cell, n_directions)?;
        let (clip, lens) = (clip(node)?, lens(node, &sizes)?);
        let is_reverse = node.attributes.string_or("direction", "forward")? == "reverse";
        let out = node.zeros(DType::F32, &sizes.all())?;
        let states = [5, 6].map(|index| initial(node, index, &sizes));
        let [h, c] = states;
        let (h, c) = (h?, c?);
        let n_rows = sizes.length.saturating_mul(sizes.batch);
        let n_sums = self.0[0].n_sums();
        // Sums of the inputs' and of the states' own, with what gates are calculated in.
        node.workspace.reserve(
            sizes.batch,
            n_sums.saturating_mul(3).saturating_mul(size_of::<f32>()),
        )?;
        // The states of all places, which each direction has for itself until they are written.
        node.workspace.reserve(out.n_elements(), size_of::<f32>())?;
        let rows = x.reshape(TensorShape::new(&[n_rows, n_inputs])?)?;
        let mut ready = AsyncValue::available(Chain);
        let mut sums = Vec::with_capacity(n_directions);
        for layer in &self.0 {
            let own = node.output(DType::F32, &[n_rows, n_sums])?;
            let chain = layer.project_into(node.execution, &rows, &own);
            let chain = chain.map_err(|error| node.with_name(&error))?;
            ready = ready.and_then_value(move |_| chain);
            sums.push(own);
        }
        let walk = Arc::new(Walk {
            layers: self,
            sizes,
            lens,
            gates,
            clip,
            is_reverse,
            sums,
            states: [h.clone(), c.clone()],
            walked: (0..n_directions).map(|_| Mutex::default()).collect(),
        });
        // Directions are independent of each other: each has a thread, if there are as many.
        let (execution, walking) = (node.execution.clone(), walk.clone());
        let chain = ready.and_then_value(move |_| {
            let request = execution.request().clone();
            execution.parallel_for(0..n_directions, NonZeroUsize::MIN, move |start, end| {
                let stopped = || request.cancellation().cloned().map_or(Ok(()), Err);
                (start..end).try_for_each(|direction| walking.direction(direction, stopped))
            })
        });
        let written = out.clone();
        let chain = chain.and_then_value(move |_| {
            walk.write(&written)
                .map(|()| AsyncValue::available(Chain))
                .into_value()
        });
        let mut outputs = Outputs::later(out, chain.clone()).and_later(h, chain.clone());
        if let Cell::Lstm { .. } = cell {
            outputs = outputs.and_later(c, chain);
        }
        Ok(outputs)
    }
}

/// A run of layers over sequences, one direction beside the other.
struct Walk {
    layers: Arc<Layers>,
    sizes: Sizes,
    lens: Vec<usize>,
    gates: Vec<[Gate; 3]>,
    clip: Option<f32>,
    is_reverse: bool,
    /// The contributions of inputs of each direction.
    sums: Vec<DenseHostTensor>,
    /// The first states before the run, the last ones behind it.
    states: [DenseHostTensor; 2],
    /// The results of each direction.
    walked: Vec<Mutex<Option<Walked>>>,
}

/// The results of a direction.
struct Walked {
    /// States behind all places: `[places, sequences, hidden]`.
    all: Vec<f32>,
    /// The last states of each sequence: `[sequences, hidden]`.
    states: [Vec<f32>; 2],
}

impl Walk {
    fn n_hidden(&self) -> usize {
        self.sizes.n_hidden
    }

    /// Goes through the sequences in one direction.
    fn direction(
        &self,
        direction: usize,
        stopped: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (sizes, n) = (&self.sizes, self.n_hidden());
        let mut own = [Vec::new(), Vec::new()];
        for (own, states) in own.iter_mut().zip(&self.states) {
            let reading = states.read()?;
            let states = reading.elements::<f32>()?;
            for batch in 0..self.lens.len() {
                own.extend_from_slice(&states[sizes.state(direction, batch) * n..][..n]);
            }
        }
        let sequences = Sequences {
            lens: &self.lens,
            is_reverse: self.is_reverse || direction == 1,
            row: &|place, batch| sizes.place(place, batch),
            clip: self.clip,
            gates: self.gates[direction],
        };
        let mut all = vec![0.0; sizes.length * sizes.batch * n];
        let output = |place: usize, batch: usize, h: &[f32]| {
            all[(place * sizes.batch + batch) * n..][..n].copy_from_slice(h);
        };
        let [h, c] = &mut own;
        let reading = self.sums[direction].read()?;
        let sums = reading.elements::<f32>()?;
        self.layers.0[direction].run(&sequences, sums, (h, c), output, stopped)?;
        let mut walked = lock(&self.walked[direction]);
        *walked = Some(Walked { all, states: own });
        Ok(())
    }

    /// Writes the results of all directions.
    fn write(&self, out: &DenseHostTensor) -> Result<(), Error> {
        let (sizes, n) = (&self.sizes, self.n_hidden());
        let mut writing = out.write()?;
        let out = writing.elements_mut::<f32>()?;
        for (direction, walked) in self.walked.iter().enumerate() {
            let Some(Walked { all, states }) = lock(walked).take() else {
                return Err(Error::internal("a direction of a layer was not walked"));
            };
            for (row, h) in all.chunks_exact(n.max(1)).enumerate() {
                let (place, batch) = (row / sizes.batch, row % sizes.batch);
                out[sizes.output(place, direction, batch) * n..][..n].copy_from_slice(h);
            }
            for (own, states) in states.iter().zip(&self.states) {
                let mut writing = states.write()?;
                let states = writing.elements_mut::<f32>()?;
                for (batch, own) in own.chunks_exact(n.max(1)).enumerate() {
                    states[sizes.state(direction, batch) * n..][..n].copy_from_slice(own);
                }
            }
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the initial states, which are updated in place to the final ones.
fn initial(node: &NodeCall<'_>, index: usize, sizes: &Sizes) -> Result<DenseHostTensor, Error> {
    let Some(list) = node.inputs.optional_dense(index)? else {
        return node.zeros(DType::F32, &sizes.states());
    };
    let out = node.output(DType::F32, &sizes.states())?;
    if list.dtype() != DType::F32 {
        return Err(node.inputs.unsupported(index, list.dtype()));
    }
    {
        let (reading, mut writing) = (list.read()?, out.write()?);
        let (from, to) = (reading.elements::<f32>()?, writing.elements_mut::<f32>()?);
        if from.len() != to.len() {
            let (wanted, found) = (to.len(), from.len());
            let message = format_args!("is expected to have {wanted} elements, found {found}");
            return Err(node.inputs.error(index, message));
        }
        to.copy_from_slice(from);
    }
    Ok(out)
}
