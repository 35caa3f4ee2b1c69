//! Appends rows, constants and broadcasts to the graph.

use std::sync::Arc;

use tfrt_ir::attributes::{Bytes, DenseAttribute, DenseElements, FloatAttribute};
use tfrt_ir::types::{IntegerType, Signedness};
use tfrt_ir::{Attribute, OpState, Type, ValueId};

use super::{Bound, Lowering};

/// The most integers of a value that is followed.
const MOST_INTEGERS: usize = 64;

/// Returns whether the elements are integers without sign.
pub(super) fn is_unsigned(element: &Type) -> bool {
    let integer = element.as_integer();
    integer.is_some_and(|integer| integer.signedness == Signedness::Unsigned)
}

pub(super) fn is_bool(element: &Type) -> bool {
    *element == Type::I1
}

pub(super) fn is_float(element: &Type) -> bool {
    matches!(element, Type::Float(_))
}

/// Returns whether the elements are floats of 8 bits or less, with which nothing is calculated but by way of `f32`.
pub(super) fn is_small_float(element: &Type) -> bool {
    is_float(element) && width(element) < 16
}

/// Returns the number of bits of an element.
pub(super) fn width(element: &Type) -> u32 {
    match element {
        Type::Integer(integer) => integer.width,
        Type::Float(kind) => kind.width(),
        _ => 0,
    }
}

/// Returns the type of integers without sign of so many bits.
pub(super) fn unsigned(width: u32) -> Type {
    Type::Integer(IntegerType {
        width,
        signedness: Signedness::Unsigned,
    })
}

/// Returns the bytes of a number as an element.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is one that the type has, or the nearest"
)]
pub(super) fn encoded(element: &Type, number: f64) -> Vec<u8> {
    match element {
        Type::Float(kind) => {
            let size = kind.width().div_ceil(8) as usize;
            FloatAttribute::nearest(number, *kind).bits.to_le_bytes()[..size].to_vec()
        }
        other => {
            let size = width(other).div_ceil(8) as usize;
            let bits = match is_unsigned(other) {
                true => number as u64,
                false => (number as i64) as u64,
            };
            bits.to_le_bytes()[..size].to_vec()
        }
    }
}

/// Returns the extents of tensors that are broadcast, from the last dimension.
pub(super) fn broadcast(shapes: &[Vec<i64>]) -> Vec<i64> {
    let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
    let mut dims = vec![1; rank];
    for shape in shapes {
        for (dim, own) in dims.iter_mut().rev().zip(shape.iter().rev()) {
            match (*dim, *own) {
                (_, 1) => {}
                (1, own) => *dim = own,
                // One of them is known.
                (dim_is, own) => *dim = dim_is.max(own),
            }
        }
    }
    dims
}

/// Makes a list of integers as an attribute.
pub(super) fn list(values: &[i64]) -> Attribute {
    let one = |value: &i64| Attribute::integer(*value, Type::I64);
    Attribute::array(values.iter().map(one).collect())
}

pub(super) fn int(value: i64) -> Attribute {
    Attribute::integer(value, Type::I64)
}

impl Lowering<'_> {
    /// Returns the extents of a value, -1 where they are unknown.
    pub(super) fn dims(&self, value: ValueId) -> Vec<i64> {
        let ty = self.module.value_type(value);
        ty.as_shaped().map(|(shape, _)| shape).unwrap_or_default()
    }

    pub(super) fn rank(&self, value: ValueId) -> usize {
        self.dims(value).len()
    }

    /// Returns the type of a value's elements.
    pub(super) fn element(&self, value: ValueId) -> Type {
        let ty = self.module.value_type(value);
        ty.as_shaped()
            .map_or(Type::None, |(_, element)| element.clone())
    }

    /// Appends an operation with results of these types.
    pub(super) fn add_all(
        &mut self,
        row: &str,
        operands: &[ValueId],
        attributes: &[(&str, Attribute)],
        results: Vec<Type>,
    ) -> Vec<ValueId> {
        // Library rows have the dialects of their formats.
        let name = match row.contains('.') {
            true => row.to_owned(),
            false => format!("graph.{row}"),
        };
        let mut state = OpState::new(name)
            .operands(operands.iter().copied())
            .results(results)
            .location(self.location.clone());
        for (name, value) in attributes {
            state = state.attribute(*name, value.clone());
        }
        self.append(state)
    }

    /// Appends an operation that is described.
    pub(super) fn append(&mut self, state: OpState) -> Vec<ValueId> {
        let op = self.module.create(state);
        self.made.push(op);
        self.n_made += 1;
        self.module.op(op).results().to_vec()
    }

    /// Appends an operation with one result.
    pub(super) fn add(
        &mut self,
        row: &str,
        operands: &[ValueId],
        attributes: &[(&str, Attribute)],
        dims: &[i64],
        element: &Type,
    ) -> ValueId {
        let ty = Type::tensor(dims.to_vec(), element.clone());
        self.add_all(row, operands, attributes, vec![ty])[0]
    }

    /// Appends a pointwise operation, whose operands are broadcast. Operands that are broadcasts are read before they
    /// are.
    pub(super) fn pointwise(
        &mut self,
        row: &str,
        operands: &[ValueId],
        attributes: &[(&str, Attribute)],
        element: &Type,
    ) -> ValueId {
        if let Some(value) = self.of_small(row, operands, attributes, element) {
            return value;
        }
        let shape = |this: &Self, all: &[ValueId]| {
            let all: Vec<Vec<i64>> = all.iter().map(|value| this.dims(*value)).collect();
            broadcast(&all)
        };
        let dims = shape(self, operands);
        let narrow: Vec<ValueId> = operands
            .iter()
            .map(|value| self.narrow.get(value).copied().unwrap_or(*value))
            .collect();
        let least = shape(self, &narrow);
        if dims.contains(&-1) && least != dims {
            return self.add(row, operands, attributes, &dims, element);
        }
        let value = self.add(row, &narrow, attributes, &least, element);
        self.broadcast_to(value, &dims)
    }

    /// Calculates with integers of 2 or 4 bits as with larger ones, and takes their lowest bits; with floats of 8 bits or
    /// less as with `f32`, whose digits are more than twice as many: rounding the result gives that of rounding once.
    fn of_small(
        &mut self,
        row: &str,
        operands: &[ValueId],
        attributes: &[(&str, Attribute)],
        element: &Type,
    ) -> Option<ValueId> {
        let is_small = |element: &Type| {
            let is_integer = element.as_integer().is_some();
            is_small_float(element) || (is_integer && matches!(width(element), 2 | 4))
        };
        let wide = |element: &Type| match element {
            Type::Float(_) => Type::F32,
            element if is_unsigned(element) => Type::UI8,
            _ => Type::I8,
        };
        let takes_all = matches!(row, "select" | "identity" | "cast");
        if takes_all || !operands.iter().any(|value| is_small(&self.element(*value))) {
            return None;
        }
        let operands: Vec<ValueId> = operands
            .iter()
            .map(|value| match self.element(*value) {
                own if is_small(&own) => self.cast(*value, &wide(&own)),
                _ => *value,
            })
            .collect();
        if !is_small(element) {
            return Some(self.pointwise(row, &operands, attributes, element));
        }
        let by = wide(element);
        let value = self.pointwise(row, &operands, attributes, &by);
        if is_float(element) {
            return Some(self.cast(value, element));
        }
        let n_bits = f64::from(width(element));
        let value = if is_unsigned(element) {
            self.with_number("bit_and", value, f64::powf(2.0, n_bits) - 1.0)
        } else {
            let amount = self.number(&by, 8.0 - n_bits);
            let moved = self.shifted("shift_left", false, value, amount);
            self.shifted("shift_right", true, moved, amount)
        };
        Some(self.cast(value, element))
    }

    /// Broadcasts a value to known extents, from the last dimension.
    pub(super) fn broadcast_to(&mut self, value: ValueId, dims: &[i64]) -> ValueId {
        if self.dims(value) == dims {
            return value;
        }
        let shape = self.shape(dims);
        let element = self.element(value);
        let wide = self.add("broadcast", &[value, shape], &[], dims, &element);
        let narrow = self.narrow.get(&value).copied().unwrap_or(value);
        self.narrow.insert(wide, narrow);
        wide
    }

    /// Appends an operation of one operand on its elements.
    pub(super) fn unary(&mut self, row: &str, x: ValueId) -> ValueId {
        let element = self.element(x);
        self.pointwise(row, &[x], &[], &element)
    }

    /// Appends an operation of two operands of one type.
    pub(super) fn binary(&mut self, row: &str, x: ValueId, y: ValueId) -> ValueId {
        let element = self.element(x);
        self.pointwise(row, &[x, y], &[], &element)
    }

    /// Appends an operation of a tensor and a number.
    pub(super) fn with_number(&mut self, row: &str, x: ValueId, number: f64) -> ValueId {
        let y = self.number(&self.element(x), number);
        self.binary(row, x, y)
    }

    /// Appends a comparison.
    pub(super) fn compare(&mut self, row: &str, x: ValueId, y: ValueId) -> ValueId {
        self.pointwise(row, &[x, y], &[], &Type::I1)
    }

    pub(super) fn select(&mut self, condition: ValueId, x: ValueId, y: ValueId) -> ValueId {
        let element = self.element(x);
        self.pointwise("select", &[condition, x, y], &[], &element)
    }

    pub(super) fn cast(&mut self, x: ValueId, element: &Type) -> ValueId {
        if self.element(x) == *element {
            return x;
        }
        let known = self.integers.get(&x).cloned();
        let mut attributes = vec![("to", Attribute::Type(element.clone()))];
        if is_small_float(element) {
            // What is too large is infinite, or no number; powers of two are rounded as other floats are.
            attributes.push(("saturate", int(0)));
            attributes.push(("round_mode", Attribute::string("nearest")));
        }
        let value = self.pointwise("cast", &[x], &attributes, element);
        if let Some(known) = known {
            self.integers.insert(value, known);
        }
        value
    }

    /// Casts bits of one type to another of the same width.
    pub(super) fn bits(&mut self, x: ValueId, element: &Type) -> ValueId {
        if self.element(x) == *element {
            return x;
        }
        let dims = self.dims(x);
        let to = [("type", Attribute::Type(element.clone()))];
        self.add("tf.Bitcast", &[x], &to, &dims, element)
    }

    /// Appends a constant. One whose elements are all the same is broadcast.
    pub(super) fn constant(&mut self, value: &DenseAttribute) -> ValueId {
        let dims = value.shape();
        if value.splat && !dims.is_empty() && value.n_elements() != Some(1) {
            let scalar = DenseAttribute {
                ty: Type::tensor(Vec::new(), value.element_type().clone()),
                ..value.clone()
            };
            let scalar = self.constant(&scalar);
            let wide = self.broadcast_to(scalar, &dims);
            let known = integers(value);
            if let Some(known) = known.filter(|known| known.len() <= MOST_INTEGERS) {
                self.integers.insert(wide, known);
            }
            return wide;
        }
        let known = integers(value);
        let attribute = Attribute::Dense(Arc::new(value.clone()));
        let element = value.element_type().clone();
        let value = self.add("constant", &[], &[("value", attribute)], &dims, &element);
        if let Some(known) = known {
            self.integers.insert(value, known);
        }
        value
    }

    /// Appends a constant of given elements.
    pub(super) fn elements(&mut self, dims: &[i64], element: &Type, bytes: Vec<u8>) -> ValueId {
        let size = width(element).div_ceil(8) as usize;
        let same = |bytes: &[u8]| bytes.chunks_exact(size).all(|one| *one == bytes[..size]);
        let splat = !bytes.is_empty() && same(&bytes);
        let elements = match splat {
            true => Bytes::copy_from_slice(&bytes[..size]),
            false => bytes.into(),
        };
        self.constant(&DenseAttribute {
            ty: Type::tensor(dims.to_vec(), element.clone()),
            elements: DenseElements::Bytes(elements),
            splat,
        })
    }

    /// Appends a number.
    pub(super) fn number(&mut self, element: &Type, number: f64) -> ValueId {
        self.elements(&[], element, encoded(element, number))
    }

    /// Appends integers of 64 bits as a tensor of these extents.
    pub(super) fn integers_of(&mut self, dims: &[i64], values: &[i64]) -> ValueId {
        let bytes = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.elements(dims, &Type::I64, bytes)
    }

    /// Appends a list of integers, as operands that say extents are. It is no broadcast.
    pub(super) fn shape(&mut self, values: &[i64]) -> ValueId {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let splat = !values.is_empty() && values.iter().all(|value| *value == values[0]);
        let dims = [i64::try_from(values.len()).unwrap_or(0)];
        let value = DenseAttribute {
            ty: Type::tensor(dims.to_vec(), Type::I64),
            elements: DenseElements::Bytes(match splat {
                true => Bytes::copy_from_slice(&bytes[..8]),
                false => bytes.into(),
            }),
            splat,
        };
        let attribute = Attribute::Dense(Arc::new(value));
        let value = self.add("constant", &[], &[("value", attribute)], &dims, &Type::I64);
        self.integers.insert(value, values.to_vec());
        value
    }

    /// Returns the number of a value that is one, the same for all elements, if that is known.
    pub(super) fn known_number(&self, value: ValueId) -> Option<f64> {
        let value = self.narrow.get(&value).copied().unwrap_or(value);
        let data = self.module.op(self.module.defining_op(value)?);
        match data.attribute("value") {
            Some(Attribute::Dense(dense)) if data.name().as_str() == "graph.constant" => {
                let bytes = dense.bytes();
                let is_one = dense.splat || dense.n_elements() == Some(1);
                let element = dense.element_type();
                is_one.then(|| decoded(element, bytes)).flatten()
            }
            _ => None,
        }
    }

    /// Returns integers that are known.
    pub(super) fn known(&self, value: ValueId) -> Option<Vec<i64>> {
        self.integers.get(&value).cloned()
    }

    /// Notes integers that are known.
    pub(super) fn note(&mut self, value: ValueId, integers: Option<Vec<i64>>) {
        if let Some(integers) = integers.filter(|integers| integers.len() <= MOST_INTEGERS) {
            self.integers.insert(value, integers);
        }
    }

    /// Returns the parts of a tensor of complex numbers.
    pub(super) fn parts(&mut self, value: ValueId) -> Bound {
        let dims = self.dims(value);
        let part = match self.element(value) {
            Type::Complex(part) => (*part).clone(),
            other => other,
        };
        let [real, imaginary] = ["stablehlo.real", "stablehlo.imag"]
            .map(|row| self.add(row, &[value], &[], &dims, &part));
        Bound::Complex(real, imaginary)
    }

    /// Returns a tensor of complex numbers of its parts.
    pub(super) fn joined(&mut self, real: ValueId, imaginary: ValueId) -> ValueId {
        let dims = self.dims(real);
        let element = Type::complex(self.element(real));
        self.add(
            "stablehlo.complex",
            &[real, imaginary],
            &[],
            &dims,
            &element,
        )
    }
}

/// Returns the number that an element is.
pub(super) fn decoded(element: &Type, bytes: &[u8]) -> Option<f64> {
    match element {
        Type::Float(kind) => {
            let mut bits = [0; 8];
            let size = bytes.len().min(8);
            bits[..size].copy_from_slice(&bytes[..size]);
            let bits = u64::from_le_bytes(bits);
            Some(FloatAttribute { bits, kind: *kind }.value())
        }
        #[expect(clippy::cast_precision_loss, reason = "small numbers are looked for")]
        Type::Integer(_) => integer(element, bytes).map(|value| value as f64),
        _ => None,
    }
}

fn integer(element: &Type, bytes: &[u8]) -> Option<i64> {
    let size = width(element).div_ceil(8) as usize;
    let bytes = bytes.get(..size)?;
    let is_negative = !is_unsigned(element)
        && !is_bool(element)
        && bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut all = [if is_negative { 0xff } else { 0 }; 8];
    all[..size].copy_from_slice(bytes);
    Some(i64::from_le_bytes(all))
}

/// Returns the elements of a constant of few integers.
fn integers(value: &DenseAttribute) -> Option<Vec<i64>> {
    let element = value.element_type();
    element.as_integer()?;
    let n = usize::try_from(value.n_elements()?).ok()?;
    if n > MOST_INTEGERS {
        return None;
    }
    let size = value.element_size_bytes();
    let all = value.bytes().chunks_exact(size.max(1)).cycle().take(n);
    all.map(|bytes| integer(element, bytes)).collect()
}
