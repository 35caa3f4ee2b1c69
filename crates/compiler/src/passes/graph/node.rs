//! Accessors of operations in graphs: attributes, operands, constants.

use tfrt_ir::{
    Attribute, Module, OpId, Type, ValueId,
    attributes::{DenseAttribute, DenseElements},
    types::{FloatKind, IntegerType, Signedness},
};

use tfrt_ops::{OpDef, Table, names};

use super::{CONSTANT, NO_VALUE, is_library, place};

/// The most elements of a constant that is read element by element.
const MOST_ELEMENTS: usize = 4096;

/// Returns an integer attribute, or the default if it is left out.
pub(in crate::passes) fn int(module: &Module, op: OpId, name: &str, default: i64) -> i64 {
    let value = module.op(op).attribute(name);
    value.and_then(Attribute::as_i64).unwrap_or(default)
}

/// Returns a float attribute, or the default if it is left out.
pub(in crate::passes) fn float(module: &Module, op: OpId, name: &str, default: f64) -> f64 {
    match module.op(op).attribute(name) {
        Some(Attribute::Float(value)) => value.value(),
        _ => default,
    }
}

/// Returns an attribute that is a list of integers.
pub(in crate::passes) fn ints(module: &Module, op: OpId, name: &str) -> Option<Vec<i64>> {
    let list = module.op(op).attribute(name)?.as_array()?.iter();
    list.map(Attribute::as_i64).collect()
}

/// Returns a text attribute, empty if it is left out.
pub(in crate::passes) fn text<'m>(module: &'m Module, op: OpId, name: &str) -> &'m str {
    let value = module.op(op).attribute(name);
    value.and_then(Attribute::as_str).unwrap_or("")
}

/// Returns an operand, unless it is left out.
pub(in crate::passes) fn operand(module: &Module, op: OpId, index: usize) -> Option<ValueId> {
    let value = *module.op(op).operands().get(index)?;
    let is_left_out = module
        .defining_op(value)
        .is_some_and(|op| *module.op(op).name() == NO_VALUE);
    (!is_left_out).then_some(value)
}

/// Returns the name of the row of an operation on the host that has results: `relu`, `onnx.Clip`; empty if it has
/// none.
pub(in crate::passes) fn name(module: &Module, op: OpId) -> &str {
    match place::is_placed(module, op) {
        true => "",
        false => name_anywhere(module, op),
    }
}

/// Returns the name of the row of an operation that has results, on whichever device it is; empty if it has none.
pub(in crate::passes) fn name_anywhere(module: &Module, op: OpId) -> &str {
    if module.op(op).results().is_empty() {
        return "";
    }
    let name = module.op(op).name().as_str();
    match name.strip_prefix("graph.") {
        Some(row) => row,
        None if name.starts_with("onnx.") || is_library(name) => name,
        None => "",
    }
}

/// Returns the elements of a value that is a constant tensor, or the copy of one on a device.
pub(in crate::passes) fn constant(module: &Module, value: ValueId) -> Option<&DenseAttribute> {
    let mut data = module.op(module.defining_op(value)?);
    if *data.name() == place::COPY {
        data = module.op(module.defining_op(*data.operands().first()?)?);
    }
    match data.attribute("value") {
        Some(Attribute::Dense(dense)) if *data.name() == CONSTANT => Some(dense),
        _ => None,
    }
}

/// Returns the bytes of each element of a constant, unless there are too many.
fn elements(dense: &DenseAttribute) -> Option<impl Iterator<Item = &[u8]>> {
    let n_elements = usize::try_from(dense.n_elements()?).ok()?;
    let size_bytes = dense.element_size_bytes();
    let DenseElements::Bytes(bytes) = &dense.elements else {
        return None;
    };
    if n_elements > MOST_ELEMENTS || size_bytes == 0 {
        return None;
    }
    Some(bytes.chunks_exact(size_bytes).cycle().take(n_elements))
}

/// Returns the elements of an integer constant, unless there are too many.
pub(in crate::passes) fn constant_ints(module: &Module, value: ValueId) -> Option<Vec<i64>> {
    dense_ints(constant(module, value)?)
}

/// Returns elements as integers, unless they are others or too many.
pub(in crate::passes) fn dense_ints(dense: &DenseAttribute) -> Option<Vec<i64>> {
    let ty = dense.element_type().as_integer()?;
    let of = |bytes: &[u8]| {
        let negative = ty.signedness != Signedness::Unsigned
            && ty.width > 1
            && bytes.last().is_some_and(|last| *last >= 0x80);
        let mut wide = [if negative { 0xff } else { 0 }; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(i64::from_le_bytes(wide))
    };
    elements(dense)?.map(of).collect()
}

/// Returns elements of `f32` or `f64`, unless they are others or too many.
pub(in crate::passes) fn dense_floats(dense: &DenseAttribute) -> Option<Vec<f64>> {
    let of: fn(&[u8]) -> Option<f64> = match dense.element_type() {
        Type::Float(FloatKind::F32) => {
            |bytes| Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?)))
        }
        Type::Float(FloatKind::F64) => |bytes| Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        _ => return None,
    };
    elements(dense)?.map(of).collect()
}

/// Returns the row of an operation, if it has one.
pub(in crate::passes) fn row(module: &Module, op: OpId) -> Option<&'static OpDef> {
    let name = module.op(op).name();
    match name.strip_prefix("graph.") {
        Some(row) => tfrt_ops::find(row),
        None if is_library(name) => tfrt_ops::find(name),
        None => names::onnx::row(name.strip_prefix("onnx.")?),
    }
}

/// Returns the row of an operation, built-in or added, if it has one.
pub(in crate::passes) fn row_of(module: &Module, rows: &Table, op: OpId) -> Option<OpDef> {
    let added = || rows.find_added(module.op(op).name());
    row(module, op).copied().or_else(added)
}

/// Returns an element type that is an attribute.
pub(in crate::passes) fn ty<'m>(module: &'m Module, op: OpId, name: &str) -> Option<&'m Type> {
    module.op(op).attribute(name).and_then(Attribute::as_type)
}

/// Returns the number of a constant of one element.
pub(in crate::passes) fn constant_number(module: &Module, value: ValueId) -> Option<f64> {
    let dense = constant(module, value)?;
    if !dense.splat && dense.n_elements() != Some(1) {
        return None;
    }
    let first = dense.bytes().get(..dense.element_size_bytes())?;
    match (dense.element_type(), first) {
        (Type::Float(FloatKind::F32), bytes) => {
            Some(f64::from(f32::from_le_bytes(bytes.try_into().ok()?)))
        }
        (Type::Float(FloatKind::F64), bytes) => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

/// Returns the element of a constant of one element, of any type of real numbers or truth values, if an `f64` is
/// exactly that number.
pub(in crate::passes) fn element_number(module: &Module, value: ValueId) -> Option<f64> {
    /// The first integer above which not every one is an `f64`.
    const MOST: i64 = 1 << 53;
    let dense = constant(module, value)?;
    if dense.n_elements() != Some(1) {
        return None;
    }
    let half = || {
        let bytes = dense.bytes().get(..2)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    };
    let number = match dense.element_type() {
        Type::Float(FloatKind::F16) => of_f16(half()?),
        Type::Float(FloatKind::BF16) => f64::from(f32::from_bits(u32::from(half()?) << 16)),
        Type::Integer(ty) => {
            let one = *constant_ints(module, value)?.first()?;
            let is_exact = (-MOST..=MOST).contains(&one);
            let is_itself = one >= 0 || ty.signedness != Signedness::Unsigned;
            #[allow(clippy::cast_precision_loss, reason = "it was seen that it is exact")]
            (is_exact && is_itself).then_some(one as f64)?
        }
        _ => constant_number(module, value)?,
    };
    (!number.is_nan()).then_some(number)
}

/// Returns the number of the bits of an `f16`.
fn of_f16(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => fraction * 2_f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * 2_f64.powi(exponent - 15),
    };
    if bits >> 15 == 0 { size } else { -size }
}

/// Returns the type of a tensor's elements, if it is known.
pub(crate) fn element(ty: &Type) -> Option<Type> {
    match ty {
        Type::Tensor(tensor) => known_element(&tensor.element).cloned(),
        _ => None,
    }
}

/// Returns the type, unless it stands for an unknown one.
fn known_element(ty: &Type) -> Option<&Type> {
    let is_known = match ty {
        Type::None => false,
        Type::Integer(IntegerType { width, .. }) => *width > 0,
        Type::Dialect(name) => name.as_str() == "!onnx.string",
        _ => true,
    };
    is_known.then_some(ty)
}

/// Returns whether a value is a tensor of `f32`.
pub(in crate::passes) fn is_f32(module: &Module, value: ValueId) -> bool {
    element(module.value_type(value)) == Some(Type::F32)
}

/// Returns the dimensions of a value, -1 where unknown, if its rank is known.
pub(in crate::passes) fn shape(module: &Module, value: ValueId) -> Option<Vec<i64>> {
    module.value_type(value).as_shaped().map(|(shape, _)| shape)
}

/// Returns the extents of a value, each a number or a symbol, if all are known.
pub(in crate::passes) fn extents(module: &Module, value: ValueId) -> Option<Vec<Attribute>> {
    let shape = shape(module, value)?;
    let known = |size: i64| Attribute::integer(size, Type::I64);
    if shape.iter().all(|size| *size >= 0) {
        return Some(shape.into_iter().map(known).collect());
    }
    let op = module.defining_op(value)?;
    let mut results = module.op(op).results().iter();
    let at = results.position(|result| *result == value)?;
    let shapes = module.op(op).attribute("model.shapes")?.as_array()?;
    let extents = shapes.get(at)?.as_array()?;
    let is_known = |extent: &Attribute| extent.as_str() != Some("");
    extents.iter().all(is_known).then(|| extents.to_vec())
}

/// Returns the number of a constant of one element, if it broadcasts no value of this rank.
pub(in crate::passes) fn number(module: &Module, value: ValueId, rank: usize) -> Option<f64> {
    let own = shape(module, value)?;
    let is_small = own.len() <= rank && own.iter().all(|size| *size == 1);
    constant_number(module, value).filter(|_| is_small)
}

/// Returns the operation of this name that makes a value with one user.
pub(in crate::passes) fn single_use_op(
    module: &Module,
    value: ValueId,
    name: &str,
) -> Option<OpId> {
    let op = module.defining_op(value)?;
    let is_it = self::name(module, op) == name && module.op(op).results().len() == 1;
    (is_it && only_user(module, value).is_some()).then_some(op)
}

/// Returns the only user of a value, if it stands in the block of the operation that makes the value: what a turn of a loop
/// uses is used in each turn.
pub(in crate::passes) fn only_user(module: &Module, value: ValueId) -> Option<OpId> {
    let mut users = module.users(value);
    let user = users.next()?.op;
    let [own, other] = [module.defining_op(value)?, user].map(|op| module.op(op).parent());
    // While a block is rewritten, new operations are in none.
    let is_beside = own == other || own.is_none() || other.is_none();
    (users.next().is_none() && is_beside).then_some(user)
}

/// Returns the two operands of an operation in both orders.
pub(in crate::passes) fn pairs(module: &Module, op: OpId) -> [Option<(ValueId, ValueId)>; 2] {
    match *module.op(op).operands() {
        [a, b] => [Some((a, b)), Some((b, a))],
        _ => [None, None],
    }
}

/// A product of a number and some values.
#[derive(Debug)]
pub(in crate::passes) struct Product {
    pub(in crate::passes) factor: f64,
    pub(in crate::passes) values: Vec<ValueId>,
}

/// The most values of a product that is matched.
const MOST_FACTORS: usize = 8;

/// Takes products and quotients by numbers apart, as far as intermediate values have one user.
pub(in crate::passes) fn product(module: &Module, op: OpId, rank: usize) -> Option<Product> {
    let mut product = Product {
        factor: 1.0,
        values: Vec::new(),
    };
    let mut open = vec![op];
    while let Some(op) = open.pop() {
        let &[left, right] = module.op(op).operands() else {
            return None;
        };
        let mut factors = vec![left];
        match name(module, op) {
            "mul" => factors.push(right),
            "div" => product.factor /= number(module, right, rank)?,
            _ => return None,
        }
        for value in factors {
            if let Some(number) = number(module, value, rank) {
                product.factor *= number;
                continue;
            }
            let inner = single_use_op(module, value, "mul").or_else(|| {
                let op = single_use_op(module, value, "div")?;
                number(module, module.op(op).operands()[1], rank).map(|_| op)
            });
            match inner {
                Some(op) => open.push(op),
                None => product.values.push(value),
            }
            if product.values.len() + open.len() > MOST_FACTORS {
                return None;
            }
        }
    }
    product.factor.is_finite().then_some(product)
}
