//! Resolution of a call: attributes checked, inferred from types and number of inputs, and filled in by defaults; inputs
//! and outputs counted.

use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::Error;

use crate::attrs::{Attr, Kind, NodeAttrs};
use crate::dtype;
use crate::functions::construction::Node;
use crate::spec::{ArgSpec, ArgTypes, AttrSpec, OpSpec};

/// The most inputs or outputs that an attribute may ask for.
const MAX_TENSORS: i64 = 1 << 16;

/// A call whose attributes are all known.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The node.
    pub node: Arc<Node>,
    /// Names of inputs, each with its first tensor and the one behind its last.
    pub groups: Arc<[(String, usize, usize)]>,
    /// The inputs that are references to variables, with the types that these have, if they are known.
    pub references: SmallVec<[(usize, Option<i32>); 1]>,
    /// Types of the outputs; of one that is a reference, that of references.
    pub outputs: Arc<[i32]>,
}

fn wrong(op: &str, message: std::fmt::Arguments<'_>) -> Error {
    Error::invalid_argument(format!("{op}: {message}"))
}

/// Resolves a call of an operation, with the types of its inputs as far as they are known.
///
/// # Errors
///
/// `InvalidArgument` for attributes and inputs that don't fit the definition.
pub fn resolve(
    spec: &OpSpec,
    stated: &NodeAttrs,
    inputs: &[Option<i32>],
) -> Result<Resolved, Error> {
    let op = spec.name.as_str();
    let mut attrs = NodeAttrs::new();
    for (name, value) in stated {
        let value = match spec.attr(name) {
            Some(attr) => coerced(value, attr).ok_or_else(|| {
                let (kind, found) = (attr.kind_name(), value.kind_name());
                wrong(
                    op,
                    format_args!("attribute '{name}': expected {kind}, found {found}"),
                )
            })?,
            None if name.starts_with('_') => value.clone(),
            None => {
                let known: Vec<&str> = spec.attrs.iter().map(|attr| attr.name.as_str()).collect();
                let (name, known) = (name.escape_debug(), known.join(", "));
                return Err(wrong(
                    op,
                    format_args!("it has no attribute '{name}': it takes {known}"),
                ));
            }
        };
        attrs.insert(name.clone(), value);
    }
    infer_counts(spec, &mut attrs, inputs.len())?;
    let groups = infer_types(spec, &mut attrs, inputs)?;
    for attr in &spec.attrs {
        if let (false, Some(default)) = (attrs.contains_key(&attr.name), &attr.default) {
            attrs.insert(attr.name.clone(), default.clone());
        }
    }
    // Types that follow from inputs of unknown type are to come.
    let is_open =
        spec.inputs.iter().any(|arg| arg.is_reference) || inputs.iter().any(Option::is_none);
    for attr in &spec.attrs {
        match attrs.get(&attr.name) {
            Some(value) => check(op, attr, value)?,
            None if is_open && attr.kind == Kind::Type => (),
            None => {
                let (name, kind) = (&attr.name, attr.kind_name());
                return Err(wrong(
                    op,
                    format_args!("attribute '{name}', of kind {kind}, must be stated"),
                ));
            }
        }
    }
    let outputs = output_types(spec, &attrs)?;
    let named = spec.inputs.iter().zip(&groups);
    let references = named
        .filter(|(arg, _)| arg.is_reference)
        .flat_map(|(arg, (_, start, end))| {
            let code = match &arg.types {
                ArgTypes::Fixed(code) => Some(*code),
                ArgTypes::Attr(name) => match attrs.get(name) {
                    Some(Attr::Type(code)) => Some(*code),
                    _ => None,
                },
                ArgTypes::List(_) => None,
            };
            (*start..*end).map(move |index| (index, code))
        })
        .collect();
    let node = Node {
        op: op.to_owned(),
        name: op.to_owned(),
        attrs,
    };
    Ok(Resolved {
        node: Arc::new(node),
        groups: groups.into(),
        references,
        outputs: outputs.into(),
    })
}

/// Returns the value as one of the attribute's kind, if it can be read so.
fn coerced(value: &Attr, attr: &AttrSpec) -> Option<Attr> {
    if attr.is_list {
        let list = match value {
            Attr::List(_, list) => list.clone(),
            Attr::Shape(Some(extents)) => extents.iter().map(|one| Attr::Int(*one)).collect(),
            _ => return None,
        };
        let list: Option<Vec<Attr>> = list.iter().map(|one| coerced_one(one, attr.kind)).collect();
        return Some(Attr::List(attr.kind, list?));
    }
    coerced_one(value, attr.kind)
}

fn coerced_one(value: &Attr, kind: Kind) -> Option<Attr> {
    Some(match (kind, value) {
        (kind, value) if value.kind() == kind && !matches!(value, Attr::List(..)) => value.clone(),
        (Kind::Float, Attr::Int(value)) => Attr::Float(*value as f32),
        (Kind::Bool, Attr::Int(value @ (0 | 1))) => Attr::Bool(*value == 1),
        (Kind::Int, Attr::Bool(value)) => Attr::Int(i64::from(*value)),
        (Kind::Type, Attr::Bytes(name)) => {
            Attr::Type(dtype::of_name(std::str::from_utf8(name).ok()?)?)
        }
        (Kind::Function, Attr::Bytes(name)) => {
            Attr::Function(String::from_utf8_lossy(name).into_owned())
        }
        (Kind::Shape, Attr::List(_, list)) => {
            let extent = |one: &Attr| match one {
                Attr::Int(extent) => Some(*extent),
                _ => None,
            };
            Attr::Shape(Some(list.iter().map(extent).collect::<Option<_>>()?))
        }
        _ => return None,
    })
}

fn count_of(attrs: &NodeAttrs, arg: &ArgSpec) -> Option<Option<i64>> {
    match (&arg.count, &arg.types) {
        (Some(name), _) => Some(match attrs.get(name) {
            Some(Attr::Int(n)) => Some(*n),
            _ => None,
        }),
        (None, ArgTypes::List(name)) => Some(match attrs.get(name) {
            Some(Attr::List(_, list)) => Some(list.len() as i64),
            _ => None,
        }),
        _ => None,
    }
}

/// Infers the attribute that says of how many tensors an input is, if one is not stated.
fn infer_counts(spec: &OpSpec, attrs: &mut NodeAttrs, n_inputs: usize) -> Result<(), Error> {
    let op = spec.name.as_str();
    let (mut known, mut open): (i64, Vec<&ArgSpec>) = (0, Vec::new());
    for arg in &spec.inputs {
        match count_of(attrs, arg) {
            None => known += 1,
            Some(Some(n)) => known = known.saturating_add(n.max(0)),
            Some(None) => open.push(arg),
        }
    }
    let name = |arg: &ArgSpec| match (&arg.count, &arg.types) {
        (Some(name), _) | (None, ArgTypes::List(name)) => name.clone(),
        _ => String::new(),
    };
    let found = n_inputs as i64;
    let Some(first) = open.first() else {
        return match known == found {
            true => Ok(()),
            false => Err(wrong(
                op,
                format_args!("expected {known} inputs, found {found}"),
            )),
        };
    };
    let attr = name(first);
    if let Some(other) = open.iter().find(|arg| name(arg) != attr) {
        let other = name(other);
        return Err(wrong(
            op,
            format_args!("attributes '{attr}' and '{other}' say which inputs are whose: state one"),
        ));
    }
    let (left, times) = (found - known, open.len() as i64);
    if left < 0 || left % times != 0 {
        return Err(wrong(
            op,
            format_args!(
                "expected {known} inputs and {times} lists of equal length, found {found}"
            ),
        ));
    }
    if first.count.is_some() {
        attrs.insert(attr, Attr::Int(left / times));
    }
    Ok(())
}

/// Infers types of elements, and returns which inputs are whose.
fn infer_types(
    spec: &OpSpec,
    attrs: &mut NodeAttrs,
    inputs: &[Option<i32>],
) -> Result<Vec<(String, usize, usize)>, Error> {
    let op = spec.name.as_str();
    let (mut at, mut groups) = (0, Vec::new());
    for arg in &spec.inputs {
        let n = match count_of(attrs, arg) {
            None => 1,
            Some(Some(n)) => usize::try_from(n).unwrap_or(0),
            // The only list whose length is not stated: all that the others leave.
            Some(None) => {
                let others = spec.inputs.iter().filter(|other| *other != arg);
                let others = others.map(|other| count_of(attrs, other).flatten().unwrap_or(1));
                inputs.len().saturating_sub(others.sum::<i64>() as usize)
            }
        };
        let end = at + n;
        let Some(own) = inputs.get(at..end) else {
            let (found, name) = (inputs.len(), &arg.name);
            return Err(wrong(
                op,
                format_args!(
                    "input '{name}': expected {n} tensors from {at} on, found {found} in all"
                ),
            ));
        };
        groups.push((arg.name.clone(), at, end));
        at = end;
        let mismatch = |wanted: i32, found: i32| {
            let (name, wanted, found) = (&arg.name, dtype::name(wanted), dtype::name(found));
            Err(wrong(
                op,
                format_args!("input '{name}': expected elements of {wanted}, found {found}"),
            ))
        };
        // A reference is a resource whose type is not known yet, or of the type that it refers to.
        let referred: SmallVec<[Option<i32>; 2]>;
        let own = match arg.is_reference {
            false => own,
            true => {
                let found = own.iter().flatten();
                let is_reference =
                    |code: &i32| *code == dtype::RESOURCE || *code > dtype::REFERENCE;
                if let Some(found) = found.clone().find(|code| !is_reference(code)) {
                    return mismatch(dtype::RESOURCE, *found);
                }
                let codes = own
                    .iter()
                    .map(|code| code.map(|code| code - dtype::REFERENCE));
                referred = codes.map(|code| code.filter(|code| *code > 0)).collect();
                &referred[..]
            }
        };
        match &arg.types {
            ArgTypes::Fixed(wanted) => {
                if let Some(found) = own.iter().flatten().find(|code| *code != wanted) {
                    return mismatch(*wanted, *found);
                }
            }
            ArgTypes::Attr(name) => {
                for found in own.iter().flatten() {
                    match attrs.get(name) {
                        Some(Attr::Type(wanted)) if wanted != found => {
                            return mismatch(*wanted, *found);
                        }
                        Some(_) => (),
                        None => drop(attrs.insert(name.clone(), Attr::Type(*found))),
                    }
                }
            }
            ArgTypes::List(name) => match attrs.get(name) {
                Some(Attr::List(_, wanted)) => {
                    for (wanted, found) in wanted.iter().zip(own) {
                        if let (Attr::Type(wanted), Some(found)) = (wanted, found)
                            && wanted != found
                        {
                            return mismatch(*wanted, *found);
                        }
                    }
                }
                _ => {
                    let types: Option<Vec<Attr>> =
                        own.iter().map(|code| code.map(Attr::Type)).collect();
                    if let Some(types) = types {
                        attrs.insert(name.clone(), Attr::List(Kind::Type, types));
                    }
                }
            },
        }
    }
    Ok(groups)
}

fn check(op: &str, attr: &AttrSpec, value: &Attr) -> Result<(), Error> {
    let name = &attr.name;
    let values = match value {
        Attr::List(_, list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    if let Some(least) = attr.minimum {
        let found = match value {
            Attr::Int(found) => *found,
            Attr::List(_, list) => list.len() as i64,
            _ => least,
        };
        if found < least {
            return Err(wrong(
                op,
                format_args!("attribute '{name}': expected {least} at least, found {found}"),
            ));
        }
    }
    for value in values {
        let is_allowed = match value {
            Attr::Type(code) => attr.allowed_types.is_empty() || attr.allowed_types.contains(code),
            Attr::Bytes(text) => {
                let mut allowed = attr.allowed_texts.iter();
                attr.allowed_texts.is_empty() || allowed.any(|own| own.as_bytes() == text)
            }
            _ => true,
        };
        if !is_allowed {
            let types = attr.allowed_types.iter().map(|code| dtype::name(*code));
            let all: Vec<String> = types.chain(attr.allowed_texts.iter().cloned()).collect();
            let all = all.join(", ");
            return Err(wrong(
                op,
                format_args!("attribute '{name}': expected one of {all}, found {value}"),
            ));
        }
    }
    Ok(())
}

/// Returns the types of the outputs; 0 for one that follows from inputs of unknown type.
fn output_types(spec: &OpSpec, attrs: &NodeAttrs) -> Result<Vec<i32>, Error> {
    let mut types = Vec::new();
    for arg in &spec.outputs {
        let reference = if arg.is_reference {
            dtype::REFERENCE
        } else {
            0
        };
        let n = match &arg.count {
            None => 1,
            Some(name) => match attrs.get(name) {
                Some(Attr::Int(n)) if (0..=MAX_TENSORS).contains(n) => *n,
                _ => {
                    let name = name.as_str();
                    return Err(wrong(
                        &spec.name,
                        format_args!(
                            "attribute '{name}': expected a number of outputs, 0 to {MAX_TENSORS}"
                        ),
                    ));
                }
            },
        };
        match &arg.types {
            ArgTypes::Fixed(code) => types.extend((0..n).map(|_| code + reference)),
            ArgTypes::Attr(name) => {
                let code = match attrs.get(name) {
                    Some(Attr::Type(code)) => code + reference,
                    _ => 0,
                };
                types.extend((0..n).map(|_| code));
            }
            ArgTypes::List(name) => {
                if let Some(Attr::List(_, list)) = attrs.get(name) {
                    types.extend(list.iter().map(|one| match one {
                        Attr::Type(code) => *code,
                        _ => 0,
                    }));
                }
            }
        }
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Texts;

    fn spec(inputs: &[&str], outputs: &[&str], attrs: &[&str]) -> OpSpec {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let texts = Texts {
            attrs: list(attrs),
            inputs: list(inputs),
            outputs: list(outputs),
        };
        OpSpec::parse("Op", &texts).unwrap()
    }

    fn resolved(spec: &OpSpec, inputs: &[i32]) -> Result<Resolved, String> {
        let inputs: Vec<Option<i32>> = inputs.iter().copied().map(Some).collect();
        let resolved = resolve(spec, &NodeAttrs::new(), &inputs);
        resolved.map_err(|error| error.message().to_owned())
    }

    #[test]
    fn numbers_and_types_follow_from_inputs() {
        let fused = spec(
            &["a: T", "b: T", "args: n * T"],
            &["product: T", "all: n * float"],
            &["n: int >= 0", "T: {float, double}", "eps: float = 0.5"],
        );
        let call = resolved(&fused, &[2, 2, 2, 2]).unwrap();
        assert_eq!(&*call.outputs, [2, 1, 1]);
        assert_eq!(call.groups[2], ("args".to_owned(), 2, 4));
        assert_eq!(call.node.attrs["eps"].to_string(), "0.5");
        assert_eq!(
            resolved(&fused, &[2, 1]).unwrap_err(),
            "Op: input 'b': expected elements of double, found float"
        );
        assert_eq!(
            resolved(&fused, &[3, 3]).unwrap_err(),
            "Op: attribute 'T': expected one of float, double, found int32"
        );
        assert!(resolved(&fused, &[1]).is_err());
        let lists = spec(&["x: L", "y: int32"], &["z: L"], &["L: list(type)"]);
        let call = resolved(&lists, &[1, 9, 3]).unwrap();
        assert_eq!(&*call.outputs, [1, 9]);
        assert_eq!(call.groups[1], ("y".to_owned(), 2, 3));
    }

    #[test]
    fn stated_attributes_are_read_by_their_kind() {
        let op = spec(
            &[],
            &["y: float"],
            &["f: float", "t: type", "l: list(float)", "s: shape"],
        );
        let mut stated = NodeAttrs::new();
        stated.insert("f".to_owned(), Attr::Int(2));
        stated.insert("t".to_owned(), Attr::Bytes(b"DT_HALF".to_vec()));
        let ints = Attr::List(Kind::Int, vec![Attr::Int(1), Attr::Int(2)]);
        stated.insert("l".to_owned(), ints.clone());
        stated.insert("s".to_owned(), ints);
        let call = resolve(&op, &stated, &[]).unwrap();
        let text = |name: &str| call.node.attrs[name].to_string();
        assert_eq!(
            [text("f"), text("t"), text("l"), text("s")],
            ["2", "half", "[1, 2]", "[1, 2]"]
        );
        stated.insert("f".to_owned(), Attr::Bytes(b"x".to_vec()));
        let error = resolve(&op, &stated, &[]).unwrap_err();
        assert_eq!(
            error.message(),
            "Op: attribute 'f': expected float, found string"
        );
        stated.remove("f");
        let error = resolve(&op, &stated, &[]).unwrap_err();
        assert_eq!(
            error.message(),
            "Op: attribute 'f', of kind float, must be stated"
        );
    }
}
