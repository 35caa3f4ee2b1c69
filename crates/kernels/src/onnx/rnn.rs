//! Recurrent layers.

use tfrt_host::Error;
use tfrt_tensor::math::number::Real;
use tfrt_tensor::math::recurrent::{Cell, Gate, Layer};
use tfrt_tensor::{DType, DenseHostTensor};

use super::prepare::PreparedKernel as _;
use super::{NodeCall, Operations, Outputs, with_floating};

mod packed;
mod quantized;

pub(super) use packed::PREPARE;

pub(super) const OPERATIONS: &Operations = &[
    ("onnx.microsoft.DynamicQuantizeLSTM", quantized::lstm),
    ("rnn", recurrent),
];

/// `rnn`: a recurrent layer with cells of a `kind`.
fn recurrent(node: &NodeCall<'_>) -> Result<Outputs, Error> {
    match packed::pack(node)? {
        Some(layers) => layers.run(node),
        None => run(node, cell(node)?),
    }
}

fn cell(node: &NodeCall<'_>) -> Result<Cell, Error> {
    match node.kind()? {
        "rnn" => Ok(Cell::Plain),
        "gru" => Ok(Cell::Gru {
            resets_late: node.attributes.flag("linear_before_reset", false)?,
        }),
        "lstm" => Ok(Cell::Lstm {
            couples: node.attributes.flag("input_forget", false)?,
        }),
        other => Err(node.unknown_kind(other, "rnn, gru or lstm")),
    }
}

/// Returns the functions of all directions, one behind the other, with their parameters.
fn gates(node: &NodeCall<'_>, cell: Cell, n_directions: usize) -> Result<Vec<[Gate; 3]>, Error> {
    let (n_own, defaults): (usize, [&str; 3]) = match cell {
        Cell::Plain => (1, ["Tanh", "Tanh", "Tanh"]),
        Cell::Gru { .. } => (2, ["Sigmoid", "Tanh", "Tanh"]),
        Cell::Lstm { .. } => (3, ["Sigmoid", "Tanh", "Tanh"]),
    };
    let stated = node.attributes.strings("activations")?;
    let names: Vec<String> = match stated {
        Some(list) => list
            .iter()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect(),
        None => (0..n_own * n_directions)
            .map(|index| defaults[index % n_own].to_owned())
            .collect(),
    };
    if names.len() != n_own * n_directions {
        let (wanted, found) = (n_own * n_directions, names.len());
        let message = format_args!("is expected to have {wanted} names, found {found}");
        return Err(node.attributes.error("activations", message));
    }
    let mut alphas = node
        .attributes
        .floats("activation_alpha")?
        .unwrap_or(&[])
        .iter();
    let mut betas = node
        .attributes
        .floats("activation_beta")?
        .unwrap_or(&[])
        .iter();
    let mut list = Vec::new();
    for name in &names {
        let mut alpha = |default: f64| alphas.next().map_or(default, |alpha| f64::from(*alpha));
        let mut beta = |default: f64| betas.next().map_or(default, |beta| f64::from(*beta));
        list.push(match name.to_ascii_lowercase().as_str() {
            "relu" => Gate::Relu,
            "tanh" => Gate::Tanh,
            "sigmoid" => Gate::Sigmoid,
            "softsign" => Gate::Softsign,
            "softplus" => Gate::Softplus,
            "affine" => Gate::Affine(alpha(1.0), beta(0.0)),
            "leakyrelu" => Gate::LeakyRelu(alpha(0.01)),
            "thresholdedrelu" => Gate::ThresholdedRelu(alpha(1.0)),
            "scaledtanh" => Gate::ScaledTanh(alpha(1.0), beta(1.0)),
            "hardsigmoid" => Gate::HardSigmoid(alpha(0.2), beta(0.5)),
            "elu" => Gate::Elu(alpha(1.0)),
            _ => {
                let message = format_args!("has no function '{}'", name.escape_debug());
                return Err(node.attributes.error("activations", message));
            }
        });
    }
    Ok(list
        .chunks(n_own)
        .map(|own| {
            [
                own[0],
                *own.get(1).unwrap_or(&own[0]),
                *own.get(2).unwrap_or(&own[0]),
            ]
        })
        .collect())
}

/// The sizes of a layer.
struct Sizes {
    length: usize,
    batch: usize,
    n_inputs: usize,
    n_hidden: usize,
    n_directions: usize,
    /// Whether the batch is the first dimension.
    is_batch_first: bool,
}

impl Sizes {
    /// Returns the sizes of a layer whose recurrent weights have these extents.
    fn of(node: &NodeCall<'_>, r: [usize; 3]) -> Result<Sizes, Error> {
        let x = node.inputs.extents(0, 3)?;
        let is_batch_first = node.attributes.flag("layout", false)?;
        let (length, batch) = if is_batch_first {
            (x[1], x[0])
        } else {
            (x[0], x[1])
        };
        let n_directions = n_directions(node)?;
        if r[0] != n_directions {
            return Err(node.inputs.error(
                2,
                format_args!("is expected to have {n_directions} directions, found {r:?}"),
            ));
        }
        Ok(Sizes {
            length,
            batch,
            n_inputs: x[2],
            n_hidden: r[2],
            n_directions,
            is_batch_first,
        })
    }

    /// Returns the offset of the inputs of a place.
    fn place(&self, place: usize, batch: usize) -> usize {
        match self.is_batch_first {
            true => batch * self.length + place,
            false => place * self.batch + batch,
        }
    }

    /// Returns the extents of states, and the offset of a direction's.
    fn states(&self) -> [usize; 3] {
        match self.is_batch_first {
            true => [self.batch, self.n_directions, self.n_hidden],
            false => [self.n_directions, self.batch, self.n_hidden],
        }
    }

    fn state(&self, direction: usize, batch: usize) -> usize {
        match self.is_batch_first {
            true => batch * self.n_directions + direction,
            false => direction * self.batch + batch,
        }
    }

    /// Returns the extents of the states of all places, and the offset of one place's.
    fn all(&self) -> [usize; 4] {
        match self.is_batch_first {
            true => [self.batch, self.length, self.n_directions, self.n_hidden],
            false => [self.length, self.n_directions, self.batch, self.n_hidden],
        }
    }

    fn output(&self, place: usize, direction: usize, batch: usize) -> usize {
        match self.is_batch_first {
            true => (batch * self.length + place) * self.n_directions + direction,
            false => (place * self.n_directions + direction) * self.batch + batch,
        }
    }
}

/// Returns the number of directions.
fn n_directions(node: &NodeCall<'_>) -> Result<usize, Error> {
    match node.attributes.string_or("direction", "forward")? {
        "forward" | "reverse" => Ok(1),
        "bidirectional" => Ok(2),
        other => {
            let message = format_args!("is not recognized: '{}'", other.escape_debug());
            Err(node.attributes.error("direction", message))
        }
    }
}

/// Returns the limit on the size of the gates' inputs.
fn clip(node: &NodeCall<'_>) -> Result<Option<f32>, Error> {
    Ok(node.attributes.float("clip")?.filter(|clip| *clip > 0.0))
}

/// Returns the numbers of an operand, of which there are so many in each direction; `None` if it is left out.
fn list(
    node: &NodeCall<'_>,
    index: usize,
    n_directions: usize,
) -> Result<(Vec<f64>, usize), Error> {
    if !node.inputs.has(index) {
        return Ok((Vec::new(), 0));
    }
    let numbers = node.inputs.numbers(index)?;
    let own = numbers.len() / n_directions;
    Ok((numbers, own))
}

fn run(node: &NodeCall<'_>, cell: Cell) -> Result<Outputs, Error> {
    let r = node.inputs.extents(2, 3)?;
    let sizes = Sizes::of(node, [r[0], r[1], r[2]])?;
    let gates = gates(node, cell, sizes.n_directions)?;
    let is_reverse = node.attributes.string_or("direction", "forward")? == "reverse";
    let x = node.inputs.numbers(0)?;
    let (w, w_len) = list(node, 1, sizes.n_directions)?;
    let (r, r_len) = list(node, 2, sizes.n_directions)?;
    let (b, b_len) = list(node, 3, sizes.n_directions)?;
    let (p, p_len) = list(node, 7, sizes.n_directions)?;
    let states: usize = sizes
        .states()
        .iter()
        .try_fold(1_usize, |n, extent| n.checked_mul(*extent))
        .unwrap_or(usize::MAX);
    let initial = |index: usize| -> Result<Vec<f64>, Error> {
        match node.inputs.has(index) {
            false => {
                node.workspace.reserve(states, size_of::<f64>())?;
                super::dispatch::to_f64(&node.zeros(DType::F64, &sizes.states())?)
            }
            true => {
                let list = node.inputs.numbers(index)?;
                let found = list.len();
                let message = format_args!("is expected to have {states} elements, found {found}");
                if found == states {
                    Ok(list)
                } else {
                    Err(node.inputs.error(index, message))
                }
            }
        }
    };
    let (mut h, mut c) = (initial(5)?, initial(6)?);
    let lens = lens(node, &sizes)?;
    let out = node.zeros(DType::F64, &sizes.all())?;
    node.workspace.reserve(out.n_elements(), size_of::<f64>())?;
    let mut all = super::dispatch::to_f64(&out)?;
    drop(out);
    let request = node.execution.request();
    let stopped = || request.cancellation().cloned().map_or(Ok(()), Err);
    let n = sizes.n_hidden;
    for direction in 0..sizes.n_directions {
        let layer = Layer {
            cell,
            gates: gates[direction],
            clip: clip(node)?.map(f64::from),
            n_inputs: sizes.n_inputs,
            n_hidden: n,
            w: &w[direction * w_len..][..w_len],
            r: &r[direction * r_len..][..r_len],
            b: &b[direction * b_len..][..b_len],
            peepholes: &p[direction * p_len..][..p_len],
        };
        for (batch, len) in lens.iter().copied().enumerate() {
            let at = sizes.state(direction, batch) * n;
            let state = (&mut h[at..at + n], &mut c[at..at + n]);
            let input =
                |place: usize| &x[sizes.place(place, batch) * sizes.n_inputs..][..sizes.n_inputs];
            let output = |place: usize, h: &[f64]| {
                all[sizes.output(place, direction, batch) * n..][..n].copy_from_slice(h);
            };
            let backward = is_reverse || direction == 1;
            let done = match backward {
                true => layer.run((0..len).rev(), input, state, output, stopped),
                false => layer.run(0..len, input, state, output, stopped),
            };
            done.map_err(|error| match stopped() {
                Err(cancelled) => cancelled,
                Ok(()) => node.error(error.message()),
            })?;
        }
    }
    let like = node.inputs.dense(0)?;
    let states = sizes.states();
    let mut outputs = Outputs::from(typed(node, like, &sizes.all(), &all)?)
        .and_tensor(typed(node, like, &states, &h)?);
    if let Cell::Lstm { .. } = cell {
        outputs = outputs.and_tensor(typed(node, like, &states, &c)?);
    }
    Ok(outputs)
}

/// Returns the length of each sequence.
fn lens(node: &NodeCall<'_>, sizes: &Sizes) -> Result<Vec<usize>, Error> {
    let Some(list) = node.inputs.optional_integers(4)? else {
        // Without hidden elements there is nothing to calculate, for however many sequences.
        let n_sequences = if sizes.n_hidden == 0 { 0 } else { sizes.batch };
        node.workspace.reserve(n_sequences, size_of::<usize>())?;
        return Ok(vec![sizes.length; n_sequences]);
    };
    let lens: Option<Vec<usize>> = list
        .iter()
        .map(|len| {
            usize::try_from(*len)
                .ok()
                .filter(|len| *len <= sizes.length)
        })
        .collect();
    match lens {
        Some(lens) if lens.len() == sizes.batch => Ok(lens),
        _ => {
            let (batch, length) = (sizes.batch, sizes.length);
            let message = format_args!(
                "is expected to have {batch} lengths of {length} at most, found {list:?}"
            );
            Err(node.inputs.error(4, message))
        }
    }
}

fn typed(
    node: &NodeCall<'_>,
    like: &DenseHostTensor,
    extents: &[usize],
    numbers: &[f64],
) -> Result<DenseHostTensor, Error> {
    let dtype = like.dtype();
    with_floating!(dtype, T => {
        let narrow: Vec<T> = numbers.iter().map(|one| T::from_f64(*one)).collect();
        node.tensor_of(extents, &narrow)
    }, else Err(node.inputs.unsupported(0, dtype)))
}
