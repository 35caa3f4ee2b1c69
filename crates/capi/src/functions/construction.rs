//! Functions of `kernels.h` that a kernel calls while its state is made: attributes of its node.

use std::sync::Arc;

use tfrt_host::{Error, ErrorCode};

use super::buffer::{self, BufferRef};
use super::status::{Status, finish, set};
use crate::attrs::{Attr, Kind, NodeAttrs};
use crate::handle::Handle;
use crate::raw::{Memory, Out, StringView, Text};
use crate::value::Tensor;

/// A node whose state is made: `TF_OpKernelConstruction`.
pub struct Construction {
    /// The node.
    pub node: Arc<Node>,
    /// The first failure that the plugin has told.
    pub failure: Option<Status>,
}

/// A call of an operation with fixed attributes.
#[derive(Debug)]
pub struct Node {
    /// The operation.
    pub op: String,
    /// The node's name.
    pub name: String,
    /// The attributes.
    pub attrs: NodeAttrs,
}

type Result<T> = std::result::Result<T, Error>;

fn node(c: Handle<Construction>) -> Result<Arc<Node>> {
    let node = c.with("ctx", |own| own.node.clone());
    node.ok_or_else(|| Error::invalid_argument("the construction is wrong"))
}

fn name_of(name: &Text) -> Result<String> {
    let name = name.text("attr_name");
    name.ok_or_else(|| Error::invalid_argument("the attribute's name is a null pointer"))
}

/// Returns the value of an attribute that is no list, by a function of values of its kind.
fn scalar<R>(
    c: Handle<Construction>,
    name: &Text,
    kind: Kind,
    read: impl FnOnce(&Attr) -> Option<Result<R>>,
) -> Result<R> {
    let (node, name) = (node(c)?, name_of(name)?);
    let Some(found) = node.attrs.get(&name) else {
        return Err(not_found(&node, &name));
    };
    let is_one = !matches!(found, Attr::List(..));
    match read(found).filter(|_| is_one) {
        Some(value) => value,
        None => Err(mistyped(found, kind.name())),
    }
}

fn mistyped(found: &Attr, wanted: &str) -> Error {
    let found = found.kind_name();
    Error::invalid_argument(format!(
        "AttrValue had value with type '{found}' when '{wanted}' expected"
    ))
}

fn not_found(node: &Node, name: &str) -> Error {
    let node = &node.name;
    Error::not_found(format!("No attr named '{name}' in NodeDef: {node}"))
}

fn no_attr(node: &Node, name: &str) -> Error {
    let node = &node.name;
    Error::invalid_argument(format!("Operation '{node}' has no attr named '{name}'."))
}

/// Returns the values of a list.
fn list<R>(
    c: Handle<Construction>,
    name: &Text,
    kind: Kind,
    read: impl Fn(&Attr) -> Option<R>,
) -> Result<Vec<R>> {
    let (node, name) = (node(c)?, name_of(name)?);
    // TensorFlow reads lists of these two kinds by other means, and says so in other words.
    let is_read_whole = matches!(kind, Kind::String | Kind::Tensor);
    let wanted = |found| mistyped(found, &format!("list({})", kind.name()));
    match node.attrs.get(&name) {
        None if is_read_whole => Err(not_found(&node, &name)),
        None => Err(no_attr(&node, &name)),
        Some(found @ Attr::List(_, values)) => values
            .iter()
            .map(|one| read(one).ok_or_else(|| wanted(found)))
            .collect(),
        Some(found) if is_read_whole => Err(wanted(found)),
        Some(_) => Err(Error::invalid_argument(format!(
            "Attribute '{name}' is not a list."
        ))),
    }
}

/// `scalars!(get_int64, Int, i64)` makes the function that reads an attribute of a kind.
macro_rules! scalars {
    ($($name:ident, $kind:ident, $type:ty, $value:ident => $read:expr;)*) => {$(
        pub(crate) fn $name(
            c: Handle<Construction>,
            name: Text,
            value: Out<$type>,
            status: Handle<Status>,
        ) {
            let found = scalar(c, &name, Kind::$kind, |attr| match attr {
                Attr::$kind($value) => Some($read),
                _ => None,
            });
            let outcome = found.map(|found| {
                value.set(found, "val");
            });
            finish(status, outcome);
        }
    )*};
}

scalars! {
    get_type, Type, i32, code => Ok(*code);
    get_int64, Int, i64, value => Ok(*value);
    get_float, Float, f32, value => Ok(*value);
    get_bool, Bool, u8, value => Ok(u8::from(*value));
}

/// `lists!(get_int64_list, Int, i64)` makes the function that reads a list of a kind.
macro_rules! lists {
    ($($name:ident, $kind:ident, $type:ty, $value:ident => $read:expr;)*) => {$(
        pub(crate) fn $name(
            c: Handle<Construction>,
            name: Text,
            values: Out<$type>,
            most: i32,
            status: Handle<Status>,
        ) {
            let found = list(c, &name, Kind::$kind, |attr| match attr {
                Attr::$kind($value) => $read,
                _ => None,
            });
            let outcome = found.map(|found| {
                values.set_all(found, i64::from(most), "vals");
            });
            finish(status, outcome);
        }
    )*};
}

lists! {
    get_type_list, Type, i32, code => Some(*code);
    get_int64_list, Int, i64, value => Some(*value);
    get_float_list, Float, f32, value => Some(*value);
    get_bool_list, Bool, u8, value => Some(u8::from(*value));
    get_tensor_list, Tensor, Handle<Tensor>, tensor => Some(Handle::new(tensor.clone()));
}

/// Returns an integer of 32 bits, if the value is one.
fn narrow(name: &Text, value: i64) -> Result<i32> {
    i32::try_from(value).map_err(|_| {
        let name = name_of(name).unwrap_or_default();
        Error::invalid_argument(format!(
            "Attr {name} has value {value} out of range for an int32"
        ))
    })
}

pub(crate) fn get_int32(
    c: Handle<Construction>,
    name: Text,
    value: Out<i32>,
    status: Handle<Status>,
) {
    let found = scalar(c, &name, Kind::Int, |attr| match attr {
        Attr::Int(value) => Some(narrow(&name, *value)),
        _ => None,
    });
    let outcome = found.map(|found| {
        value.set(found, "val");
    });
    finish(status, outcome);
}

pub(crate) fn get_int32_list(
    c: Handle<Construction>,
    name: Text,
    values: Out<i32>,
    most: i32,
    status: Handle<Status>,
) {
    let found = list(c, &name, Kind::Int, |attr| match attr {
        Attr::Int(value) => Some(*value),
        _ => None,
    });
    let outcome = found.and_then(|found| {
        let narrow = found.into_iter().map(|value| narrow(&name, value));
        let narrow: Vec<i32> = narrow.collect::<Result<_>>()?;
        values.set_all(narrow, i64::from(most), "vals");
        Ok(())
    });
    finish(status, outcome);
}

pub(crate) fn get_string(
    c: Handle<Construction>,
    name: Text,
    value: Memory,
    most: usize,
    status: Handle<Status>,
) {
    let found = scalar(c, &name, Kind::String, |attr| match attr {
        Attr::Bytes(bytes) => Some(Ok(bytes.clone())),
        _ => None,
    });
    let outcome = found.map(|found| {
        let len = found.len().min(most);
        if len > 0 {
            value.write(0, &found[..len], "val");
        }
    });
    finish(status, outcome);
}

#[expect(clippy::too_many_arguments, reason = "the arguments of the C function")]
pub(crate) fn get_string_list(
    c: Handle<Construction>,
    name: Text,
    values: Out<usize>,
    lengths: Out<usize>,
    most: i32,
    storage: Memory,
    room: usize,
    status: Handle<Status>,
) {
    let found = list(c, &name, Kind::String, |attr| match attr {
        Attr::Bytes(bytes) => Some(bytes.clone()),
        _ => None,
    });
    let outcome = found.and_then(|found| {
        let n = found.len().min(usize::try_from(most).unwrap_or(0));
        let total: usize = found[..n].iter().map(Vec::len).sum();
        if total > room {
            return Err(Error::invalid_argument(
                "Not enough storage to hold the requested list of strings",
            ));
        }
        let (mut at, mut addresses, mut lens) = (0, Vec::new(), Vec::new());
        for text in &found[..n] {
            if !text.is_empty() && !storage.write(at, text, "storage") {
                break;
            }
            addresses.push(storage.address() + at);
            lens.push(text.len());
            at += text.len();
        }
        values.set_all(addresses, i64::from(most), "vals");
        lengths.set_all(lens, i64::from(most), "lengths");
        Ok(())
    });
    finish(status, outcome);
}

pub(crate) fn get_tensor(
    c: Handle<Construction>,
    name: Text,
    value: Out<Handle<Tensor>>,
    status: Handle<Status>,
) {
    value.set(Handle::NULL, "val");
    let found = scalar(c, &name, Kind::Tensor, |attr| match attr {
        Attr::Tensor(tensor) => Some(Ok(tensor.clone())),
        _ => None,
    });
    let outcome = found.map(|tensor| {
        value.set_if(Handle::new(tensor));
    });
    finish(status, outcome);
}

pub(crate) fn get_tensor_shape(
    c: Handle<Construction>,
    name: Text,
    dims: Out<i64>,
    n: usize,
    status: Handle<Status>,
) {
    let found = scalar(c, &name, Kind::Shape, |attr| match attr {
        Attr::Shape(extents) => Some(Ok(extents.clone())),
        _ => None,
    });
    let outcome = found.and_then(|extents| {
        let open = || {
            let shape = open_shape(extents.as_deref());
            Error::invalid_argument(format!("Shape {shape} is not fully defined"))
        };
        let known = extents.as_ref();
        let known = known.filter(|extents| extents.iter().all(|extent| *extent >= 0));
        let extents = known.ok_or_else(open)?.clone();
        if extents.len() != n {
            let rank = extents.len();
            return Err(Error::invalid_argument(format!(
                "Expected rank is {n} but actual rank is {rank}"
            )));
        }
        dims.set_all(extents, n as i64, "dims");
        Ok(())
    });
    finish(status, outcome);
}

/// Writes a shape as TensorFlow does: `[?,3]`, `<unknown>`.
fn open_shape(extents: Option<&[i64]>) -> String {
    let Some(extents) = extents else {
        return "<unknown>".to_owned();
    };
    let extents = extents.iter().map(|extent| match extent {
        -1 => "?".to_owned(),
        extent => extent.to_string(),
    });
    format!("[{}]", extents.collect::<Vec<_>>().join(","))
}

pub(crate) fn get_function(
    c: Handle<Construction>,
    name: Text,
    status: Handle<Status>,
) -> BufferRef {
    let found = scalar(c, &name, Kind::Function, |attr| match attr {
        Attr::Function(name) => Some(Ok(name.clone())),
        _ => None,
    });
    let outcome = found.map(|name| buffer::of_bytes(&crate::proto::function(&name)));
    finish(status, outcome)
}

pub(crate) fn get_node_def(c: Handle<Construction>, status: Handle<Status>) -> BufferRef {
    let outcome = node(c).map(|node| buffer::of_bytes(&crate::proto::node(&node)));
    finish(status, outcome)
}

pub(crate) fn has_attr(c: Handle<Construction>, name: Text, status: Handle<Status>) -> u8 {
    let found = node(c).and_then(|node| Ok(node.attrs.contains_key(&name_of(&name)?)));
    u8::from(finish(status, found))
}

pub(crate) fn get_attr_size(
    c: Handle<Construction>,
    name: Text,
    list_size: Out<i32>,
    total_size: Out<i32>,
    status: Handle<Status>,
) {
    let found = node(c).and_then(|node| {
        let name = name_of(&name)?;
        let found = node.attrs.get(&name);
        found.map(sizes).ok_or_else(|| no_attr(&node, &name))
    });
    let (list, total) = match &found {
        Ok(sizes) => *sizes,
        Err(_) => (-1, -1),
    };
    list_size.set(list, "list_size");
    total_size.set(total, "total_size");
    finish(status, found.map(|_| ()));
}

/// Returns the length of a list, and the bytes or extents of all texts or shapes; -1 where there is none.
fn sizes(attr: &Attr) -> (i32, i32) {
    let len = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
    match attr {
        Attr::Bytes(bytes) => (-1, len(bytes.len())),
        Attr::Shape(Some(extents)) => (-1, len(extents.len())),
        Attr::List(kind, list) => {
            let sum = list.iter().map(|one| sizes(one).1.max(0)).sum();
            let has_total = matches!(kind, Kind::String | Kind::Shape) && !list.is_empty();
            (len(list.len()), if has_total { sum } else { -1 })
        }
        _ => (-1, -1),
    }
}

/// Views lead to the name of a node that lives as long as the construction.
pub(crate) fn get_name(c: Handle<Construction>) -> StringView {
    let view = c.with("ctx", |own| StringView::of(own.node.name.as_bytes()));
    view.unwrap_or_default()
}

pub(crate) fn failure(c: Handle<Construction>, status: Handle<Status>) {
    let Some(told) = status.with("status", |own| own.clone()) else {
        return;
    };
    c.with("ctx", |own| {
        if told.code != 0 {
            own.failure.get_or_insert(told);
        }
    });
}

/// Sets the status of a function that the host does not have.
pub(crate) fn unimplemented(what: &str, status: Handle<Status>) {
    let error = Error::new(ErrorCode::Unimplemented, format!("{what} is not provided"));
    set(status, &Err(error));
}
