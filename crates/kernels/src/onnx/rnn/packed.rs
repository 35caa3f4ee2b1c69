//! Recurrent layers of `f32` with packed weights, which are prepared where they are constants.

use std::sync::Arc;

use tfrt_host::codec::{DecodeContext, Decoder, Encoder};
use tfrt_host::{AsyncValue, Chain, Error, HostContext};
use tfrt_tensor::math::recurrent::{PackedLayer, Sequences, Weights};
use tfrt_tensor::{DType, DenseHostTensor, TensorShape};

use super::{Sizes, cell, clip, gates, lens, n_directions};
use crate::graph::stored;
use crate::onnx::outputs::IntoValue;
use crate::onnx::prepare::{PrepareRow, PreparedKernel, erase};
use crate::onnx::{NodeCall, Outputs};

/// The nodes whose weights, biases and peepholes are prepared.
pub(in crate::onnx) const PREPARE: &[PrepareRow] = &[PrepareRow {
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
}];

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
        let write = |encoder: &mut Encoder| {
            let set = stored::target(encoder)?;
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
        let cell = cell(node)?;
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
        let execution = node.execution.clone();
        let (written, h_written, c_written) = (out.clone(), h.clone(), c.clone());
        let chain = ready.and_then_value(move |_| {
            let request = execution.request();
            let stopped = || request.cancellation().cloned().map_or(Ok(()), Err);
            let run = || -> Result<AsyncValue<Chain>, Error> {
                let (mut all, mut h, mut c) =
                    (written.write()?, h_written.write()?, c_written.write()?);
                let (all, h, c) = (
                    all.elements_mut::<f32>()?,
                    h.elements_mut::<f32>()?,
                    c.elements_mut::<f32>()?,
                );
                for (direction, layer) in self.0.iter().enumerate() {
                    let reading = sums[direction].read()?;
                    let (mut own_h, mut own_c) =
                        (vec![0.0; lens.len() * n], vec![0.0; lens.len() * n]);
                    for batch in 0..lens.len() {
                        let (from, to) = (sizes.state(direction, batch) * n, batch * n);
                        own_h[to..to + n].copy_from_slice(&h[from..from + n]);
                        own_c[to..to + n].copy_from_slice(&c[from..from + n]);
                    }
                    let sequences = Sequences {
                        lens: &lens,
                        is_reverse: is_reverse || direction == 1,
                        row: &|place, batch| sizes.place(place, batch),
                        clip,
                        gates: gates[direction],
                    };
                    let output = |place: usize, batch: usize, h: &[f32]| {
                        all[sizes.output(place, direction, batch) * n..][..n].copy_from_slice(h);
                    };
                    let sums = reading.elements::<f32>()?;
                    layer.run(&sequences, sums, (&mut own_h, &mut own_c), output, stopped)?;
                    for batch in 0..lens.len() {
                        let (to, from) = (sizes.state(direction, batch) * n, batch * n);
                        h[to..to + n].copy_from_slice(&own_h[from..from + n]);
                        c[to..to + n].copy_from_slice(&own_c[from..from + n]);
                    }
                }
                Ok(AsyncValue::available(Chain))
            };
            run().into_value()
        });
        let mut outputs = Outputs::later(out, chain.clone()).and_later(h, chain.clone());
        if node.kind()? == "lstm" {
            outputs = outputs.and_later(c, chain);
        }
        Ok(outputs)
    }
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
