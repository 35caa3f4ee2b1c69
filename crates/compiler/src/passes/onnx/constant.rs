//! Constants of graphs as attributes of kernels.

use std::sync::Arc;

use tfrt_ir::{
    Attribute, Module, Name, OpId, Type,
    attributes::{DenseAttribute, DenseElements},
    types::{FloatKind, IntegerType},
};

/// Returns the attributes of the kernel that makes a constant.
///
/// # Errors
///
/// What the operation lacks.
pub(super) fn kernel_attributes(
    module: &Module,
    op: OpId,
) -> Result<Vec<(Name, Attribute)>, String> {
    let data = module.op(op);
    let Some(value) = data.attribute("value") else {
        return Err("expected an attribute 'value'".to_owned());
    };
    match value {
        Attribute::Dense(dense) => match &dense.elements {
            DenseElements::Strings(strings) => Ok(of_strings(strings, &dense.shape(), dense)),
            DenseElements::Bytes(_) if crate::emit::is_encodable(value) => {
                Ok(vec![("value".into(), value.clone())])
            }
            DenseElements::Bytes(bytes) => as_bytes(dense, bytes),
        },
        Attribute::Array(strings) => {
            let shape = data.attribute("shape").cloned();
            let n_strings = i64::try_from(strings.len()).unwrap_or(i64::MAX);
            let shape = shape.unwrap_or_else(|| numbers(&[n_strings]));
            Ok(vec![
                ("shape".into(), shape),
                ("strings".into(), value.clone()),
            ])
        }
        other => Err(format!("expected dense elements or strings, found {other}")),
    }
}

fn numbers(list: &[i64]) -> Attribute {
    let numbers = list.iter().map(|n| Attribute::integer(*n, Type::I64));
    Attribute::array(numbers.collect())
}

fn of_strings(
    strings: &[Arc<[u8]>],
    shape: &[i64],
    dense: &DenseAttribute,
) -> Vec<(Name, Attribute)> {
    let n_strings = match dense.splat {
        true => usize::try_from(dense.n_elements().unwrap_or(0)).unwrap_or(0),
        false => strings.len(),
    };
    let all = strings
        .iter()
        .cycle()
        .take(n_strings)
        .map(Attribute::string);
    let list = Attribute::array(all.collect());
    vec![("shape".into(), numbers(shape)), ("strings".into(), list)]
}

/// Returns elements whose type files do not know, as bytes with the name of the type.
fn as_bytes(dense: &DenseAttribute, bytes: &[u8]) -> Result<Vec<(Name, Attribute)>, String> {
    let element = dense.element_type();
    let n_elements = dense.n_elements().and_then(|n| usize::try_from(n).ok());
    let size_bytes = dense.element_size_bytes();
    let is_number = matches!(element, Type::Float(_) | Type::Integer(_)) && size_bytes > 0;
    let Some(n_elements) = n_elements.filter(|_| is_number) else {
        return Err(format!("constants of type {element} are not supported"));
    };
    let len_bytes = n_elements.saturating_mul(size_bytes);
    let mut whole = Vec::new();
    if whole.try_reserve_exact(len_bytes).is_err() {
        return Err(format!("no memory for {len_bytes} bytes of elements"));
    }
    whole.extend(bytes.iter().cycle().take(len_bytes));
    if is_half_byte(element) {
        whole = whole
            .chunks(2)
            .map(|pair| (pair[0] & 0xf) | pair.get(1).map_or(0, |high| high << 4))
            .collect();
    }
    let n_bytes = i64::try_from(whole.len()).unwrap_or(i64::MAX);
    let bytes = Attribute::Dense(Arc::new(DenseAttribute {
        ty: Type::tensor(vec![n_bytes], Type::UI8),
        elements: DenseElements::Bytes(whole.into()),
        splat: false,
    }));
    Ok(vec![
        ("bytes".into(), bytes),
        ("shape".into(), numbers(&dense.shape())),
        ("type".into(), Attribute::string(element.to_string())),
    ])
}

/// Returns whether elements take four bits.
fn is_half_byte(element: &Type) -> bool {
    match element {
        Type::Integer(IntegerType { width, .. }) => *width == 4,
        Type::Float(kind) => FloatKind::width(*kind) == 4,
        _ => false,
    }
}
