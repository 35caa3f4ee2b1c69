//! Lowers constants of graphs to attributes of kernels.

use std::sync::Arc;

use tfrt_ir::{
    Attribute, Module, Name, OpId, Type,
    attributes::{DenseAttribute, DenseElements},
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
            DenseElements::Bytes(_) => {
                let element = dense.element_type();
                Err(format!("constants of type {element} are not supported"))
            }
        },
        Attribute::Array(strings) => {
            let shape = data.attribute("shape").cloned();
            let n_strings = i64::try_from(strings.len()).unwrap_or(i64::MAX);
            let shape = shape.unwrap_or_else(|| numbers(&[n_strings]));
            Ok(vec![
                ("shape".into(), shape),
                ("value".into(), value.clone()),
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
    let list = listed(strings, dense);
    vec![("shape".into(), numbers(shape)), ("value".into(), list)]
}

/// Returns the strings of a dense attribute as a list, if it has strings.
pub(super) fn strings(dense: &DenseAttribute) -> Option<Attribute> {
    match &dense.elements {
        DenseElements::Strings(strings) => Some(listed(strings, dense)),
        _ => None,
    }
}

fn listed(strings: &[Arc<[u8]>], dense: &DenseAttribute) -> Attribute {
    let n_strings = match dense.splat {
        true => usize::try_from(dense.n_elements().unwrap_or(0)).unwrap_or(0),
        false => strings.len(),
    };
    let all = strings
        .iter()
        .cycle()
        .take(n_strings)
        .map(Attribute::string);
    Attribute::array(all.collect())
}
