//! Tensors of quantised numbers: integers that stand for floats by a scale and a zero point, `!quant.uniform<..>`.
//!
//! What moves numbers moves the integers, as long as all types are one. What loops and branches carry are the integers.
//! Any other operation is applied to the floats that the integers stand for, and its result is quantised: the
//! specification defines them so. A body of a reduction calculates floats; what it gives is quantised once, at the end.

use std::sync::Arc;

use tfrt_ir::{Attribute, Module, OpId, Type, ValueId};

use super::build::{encoded, unsigned, width};
use super::{Bound, LowerFn, Lowered, Lowering};

pub(super) const OPERATIONS: &[(&str, LowerFn)] = &[
    ("stablehlo.uniform_dequantize", |l, op| {
        let x = l.bound(op, 0)?;
        match x {
            Bound::Quantized(..) => Ok(vec![l.dequantized(x)]),
            _ => Err("expected a tensor of quantised numbers".to_owned()),
        }
    }),
    ("stablehlo.uniform_quantize", |l, op| {
        let quantization = l.quantization(op, 0)?;
        let to = quantization.ok_or("expected a result of quantised numbers")?;
        let x = l.bound(op, 0)?;
        match l.dequantized(x) {
            Bound::Tensor(x) => Ok(vec![l.quantized(x, to)?]),
            _ => Err("expected a tensor of floats or of quantised numbers".to_owned()),
        }
    }),
];

/// Operations that know quantised numbers, or hand them on.
const OWN: &[&str] = &[
    "func.call",
    "stablehlo.bitcast_convert",
    "stablehlo.case",
    "stablehlo.composite",
    "stablehlo.constant",
    "stablehlo.get_tuple_element",
    "stablehlo.if",
    "stablehlo.optimization_barrier",
    "stablehlo.tuple",
    "stablehlo.uniform_dequantize",
    "stablehlo.uniform_quantize",
    "stablehlo.while",
];

/// Operations that move numbers.
const MOVES: &[&str] = &[
    "stablehlo.broadcast",
    "stablehlo.broadcast_in_dim",
    "stablehlo.concatenate",
    "stablehlo.dynamic_broadcast_in_dim",
    "stablehlo.dynamic_gather",
    "stablehlo.dynamic_pad",
    "stablehlo.dynamic_reshape",
    "stablehlo.dynamic_slice",
    "stablehlo.dynamic_update_slice",
    "stablehlo.gather",
    "stablehlo.pad",
    "stablehlo.real_dynamic_slice",
    "stablehlo.reshape",
    "stablehlo.reverse",
    "stablehlo.select",
    "stablehlo.slice",
    "stablehlo.transpose",
];

/// The reading of a tensor of integers as floats: scales, zero points and range.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantization {
    /// The type of the integers.
    storage: Type,
    /// The type of the floats that they stand for.
    expressed: Type,
    /// The least and the largest integer.
    range: [f64; 2],
    /// The dimension along which scales differ.
    axis: Option<usize>,
    /// A scale and a zero point, for each place along the axis.
    steps: Vec<(f64, f64)>,
}

/// The type in which quantised results of an operation are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum States {
    #[default]
    Storage,
    Expressed,
}

impl States {
    /// Returns the type that stands for the elements of a result.
    pub(super) fn element(self, element: &Type) -> Result<Type, String> {
        Ok(match Quantization::of(element)? {
            None => element.clone(),
            Some(own) if self == States::Storage => own.storage,
            Some(own) => own.expressed,
        })
    }
}

pub(super) fn is_quantized(element: &Type) -> bool {
    element
        .as_dialect()
        .is_some_and(|text| text.starts_with("!quant."))
}

impl Quantization {
    /// Reads a type such as `!quant.uniform<i8<-127:127>:f32:1, {0.1:-30, 0.5}>`; `None` for types of another dialect.
    ///
    /// # Errors
    ///
    /// If it is one of another form.
    pub(super) fn of(element: &Type) -> Result<Option<Quantization>, String> {
        let Some(text) = element.as_dialect().filter(|_| is_quantized(element)) else {
            return Ok(None);
        };
        let plain: String = text.split_whitespace().collect();
        Self::read(&plain).map(Some).ok_or_else(|| {
            format!(
                "has numbers of {text}, expected '!quant.uniform<i8:f32, SCALE:ZERO_POINT>', or a list of these \
                 along an axis"
            )
        })
    }

    /// Returns the type of the integers.
    pub(super) fn storage(&self) -> &Type {
        &self.storage
    }

    fn read(text: &str) -> Option<Quantization> {
        let inner = text.strip_prefix("!quant.uniform<")?.strip_suffix('>')?;
        let (types, steps) = inner.split_once(',')?;
        let (storage, rest) = match types.split_once('<') {
            Some((storage, rest)) => {
                let (range, rest) = rest.split_once('>')?;
                let (least, most) = range.split_once(':')?;
                let range = [least.parse::<i64>().ok()?, most.parse::<i64>().ok()?];
                ((storage, Some(range)), rest.strip_prefix(':')?)
            }
            None => {
                let (storage, rest) = types.split_once(':')?;
                ((storage, None), rest)
            }
        };
        let (storage, range) = storage;
        let n_bits: u32 = storage.get(1..)?.parse().ok()?;
        if !matches!(n_bits, 2 | 4 | 8 | 16 | 32) {
            return None;
        }
        let (storage, whole) = match storage.as_bytes()[0] {
            b'i' => (
                Type::signless(n_bits),
                [-(1_i64 << (n_bits - 1)), (1_i64 << (n_bits - 1)) - 1],
            ),
            b'u' => (unsigned(n_bits), [0, (1_i64 << n_bits) - 1]),
            _ => return None,
        };
        let range = range.unwrap_or(whole);
        if range[0] < whole[0] || range[1] > whole[1] || range[0] > range[1] {
            return None;
        }
        let (expressed, axis) = match rest.split_once(':') {
            Some((expressed, axis)) => (expressed, Some(axis.parse().ok()?)),
            None => (rest, None),
        };
        let expressed = match expressed {
            "f32" => Type::F32,
            "f64" => Type::F64,
            "f16" => Type::F16,
            "bf16" => Type::BF16,
            _ => return None,
        };
        let list = match axis {
            Some(_) => steps.strip_prefix('{')?.strip_suffix('}')?,
            None => steps,
        };
        let step = |text: &str| -> Option<(f64, f64)> {
            let (scale, zero) = text.split_once(':').unwrap_or((text, "0"));
            let (scale, zero): (f64, i64) = (scale.parse().ok()?, zero.parse().ok()?);
            let fits = zero >= whole[0] && zero <= whole[1];
            #[expect(
                clippy::cast_precision_loss,
                reason = "it is one of the storage's integers"
            )]
            let zero = zero as f64;
            (scale > 0.0 && scale.is_finite() && fits).then_some((scale, zero))
        };
        let steps: Vec<(f64, f64)> = list.split(',').map(step).collect::<Option<_>>()?;
        if axis.is_none() && steps.len() != 1 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "integers of 32 bits")]
        let range = range.map(|end| end as f64);
        Some(Quantization {
            storage,
            expressed,
            range,
            axis,
            steps,
        })
    }
}

/// Gives a model's function the types of the integers in place of those of quantised numbers.
pub(super) fn as_stored(module: &mut Module, function: OpId) {
    let ty = module.op(function).attribute("function_type");
    let Some(ty) = ty.and_then(Attribute::as_type).and_then(Type::as_function) else {
        return;
    };
    let stored = |all: &[Type]| -> Vec<Type> {
        let one = |ty: &Type| match ty.as_shaped() {
            Some((dims, element)) if let Ok(Some(own)) = Quantization::of(element) => {
                Type::tensor(dims, own.storage)
            }
            _ => ty.clone(),
        };
        all.iter().map(one).collect()
    };
    let stored = Type::function(stored(&ty.inputs), stored(&ty.results));
    if stored.as_function() != Some(ty) {
        module.set_attribute(function, "function_type", Attribute::Type(stored));
    }
}

impl Lowering<'_> {
    /// Returns how the numbers of a result are quantised, if they are.
    pub(super) fn quantization(
        &self,
        op: OpId,
        index: usize,
    ) -> Result<Option<Arc<Quantization>>, String> {
        let result = self.module.op(op).results().get(index);
        let ty = result.map(|result| self.module.value_type(*result));
        match ty.and_then(Type::as_shaped) {
            Some((_, element)) => Ok(Quantization::of(element)?.map(Arc::new)),
            None => Ok(None),
        }
    }

    /// Returns whether quantised numbers are among the operands and results of an operation.
    pub(super) fn is_quantized(&self, op: OpId) -> bool {
        let data = self.module.op(op);
        let is = |value: &ValueId| {
            let ty = self.module.value_type(*value).as_shaped();
            ty.is_some_and(|(_, element)| is_quantized(element))
        };
        data.operands().iter().chain(data.results()).any(is)
    }

    /// Replaces an operation with quantised numbers.
    pub(super) fn on_quantized(&mut self, op: OpId, lower: LowerFn) -> Lowered {
        let name = self.module.op(op).name().clone();
        let is_inside = self.states == States::Expressed;
        if is_inside || OWN.contains(&name.as_str()) {
            // Bodies of operations on floats are given floats.
            return lower(self, op);
        }
        let n_results = self.module.op(op).results().len();
        let mut results = Vec::with_capacity(n_results);
        for index in 0..n_results {
            results.push(self.quantization(op, index)?);
        }
        let operands = self.module.op(op).operands().to_vec();
        let around: Vec<(ValueId, Bound)> = operands
            .iter()
            .filter_map(|value| Some((*value, self.values.get(value)?.clone())))
            .collect();
        let of_operands = around.iter().filter_map(|(_, bound)| match bound {
            Bound::Quantized(_, own) => Some(own),
            _ => None,
        });
        let mut all = of_operands.chain(results.iter().flatten());
        let first = all.next().cloned();
        let is_one =
            first.is_some_and(|first| first.axis.is_none() && all.all(|own| *own == first));
        let moves = is_one && MOVES.contains(&name.as_str());
        for (value, bound) in &around {
            if let Bound::Quantized(stored, _) = bound {
                let plain = match moves {
                    true => Bound::Tensor(*stored),
                    false => self.dequantized(bound.clone()),
                };
                self.values.insert(*value, plain);
            }
        }
        if !moves {
            self.states = States::Expressed;
        }
        let made = lower(self, op);
        self.states = States::Storage;
        self.values.extend(around);
        let mut given = Vec::with_capacity(n_results);
        for (value, quantization) in made?.into_iter().zip(results) {
            given.push(match (value, quantization) {
                (Bound::Tensor(value), Some(own)) if moves => Bound::Quantized(value, own),
                (Bound::Tensor(value), Some(own)) => self.quantized(value, own)?,
                (value, _) => value,
            });
        }
        Ok(given)
    }

    /// Returns scales and zero points as tensors that are broadcast to one of a rank.
    fn steps(&mut self, own: &Quantization, dims: &[i64]) -> Result<[ValueId; 2], String> {
        let mut extents = Vec::new();
        if let Some(axis) = own.axis {
            let n = i64::try_from(own.steps.len()).unwrap_or(i64::MAX);
            let size = *dims.get(axis).ok_or_else(|| {
                format!(
                    "is quantised along the dimension {axis} of a tensor of rank {}",
                    dims.len()
                )
            })?;
            if size >= 0 && size != n {
                return Err(format!(
                    "has {n} scales along a dimension of {size} elements"
                ));
            }
            extents = vec![1; dims.len()];
            extents[axis] = n;
        }
        let bytes = |which: fn(&(f64, f64)) -> f64| -> Vec<u8> {
            let all = own.steps.iter().map(which);
            all.flat_map(|number| encoded(&own.expressed, number))
                .collect()
        };
        let (scales, zeros) = (bytes(|step| step.0), bytes(|step| step.1));
        Ok([scales, zeros].map(|bytes| self.elements(&extents, &own.expressed, bytes)))
    }

    /// Returns the floats that quantised numbers stand for; other values as they are.
    fn dequantized(&mut self, value: Bound) -> Bound {
        let Bound::Quantized(stored, own) = &value else {
            return value;
        };
        let dims = self.dims(*stored);
        // Their extents were looked at when the numbers were made.
        let Ok([scales, zeros]) = self.steps(own, &dims) else {
            return value;
        };
        let wide = match width(&own.storage) {
            // All integers of 32 bits and their differences are numbers of 64.
            32 => Type::F64,
            _ => own.expressed.clone(),
        };
        let [numbers, zeros] = [*stored, zeros].map(|value| self.cast(value, &wide));
        let difference = self.binary("sub", numbers, zeros);
        let difference = self.cast(difference, &own.expressed);
        Bound::Tensor(self.binary("mul", difference, scales))
    }

    /// Quantises floats.
    fn quantized(&mut self, x: ValueId, own: Arc<Quantization>) -> Result<Bound, String> {
        let dims = self.dims(x);
        let x = self.cast(x, &own.expressed);
        let [scales, zeros] = self.steps(&own, &dims)?;
        let scaled = self.binary("div", x, scales);
        let moved = self.binary("add", scaled, zeros);
        let [least, most] = own.range.map(|end| self.number(&own.expressed, end));
        let within = self.binary("max", moved, least);
        let within = self.binary("min", within, most);
        let whole = self.unary("round", within);
        Ok(Bound::Quantized(self.cast(whole, &own.storage), own))
    }
}
