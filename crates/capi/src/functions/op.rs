//! Functions of `ops.h` that define operations.

use std::ffi::c_int;

use tfrt_host::{Error, ErrorCode};

use super::status::{Status, finish, set};
use crate::guard::Callback;
use crate::handle::Handle;
use crate::raw::Text;
use crate::registry;
use crate::spec::{OpSpec, ShapeFunction, Texts};

/// An operation that is being defined: `TF_OpDefinitionBuilder`.
#[derive(Default)]
pub struct OpBuilder {
    name: String,
    texts: Texts,
    /// Properties that were set: stateful, commutative, aggregate, takes variables without a value.
    flags: [bool; 4],
    deprecated: Option<(i32, String)>,
    shape_function: Callback,
}

type Builder = Handle<OpBuilder>;

pub(crate) fn new(name: Text) -> Builder {
    let Some(name) = name.text("op_name") else {
        return Handle::NULL;
    };
    Handle::new(OpBuilder {
        name,
        ..OpBuilder::default()
    })
}

pub(crate) fn delete(builder: Builder) {
    if !builder.is_null() {
        builder.take("builder");
    }
}

fn add(builder: Builder, text: &Text, argument: &str, to: fn(&mut Texts) -> &mut Vec<String>) {
    if let Some(text) = text.text(argument) {
        builder.with("builder", |own| to(&mut own.texts).push(text));
    }
}

pub(crate) fn add_attr(builder: Builder, spec: Text) {
    add(builder, &spec, "attr_spec", |texts| &mut texts.attrs);
}

pub(crate) fn add_input(builder: Builder, spec: Text) {
    add(builder, &spec, "input_spec", |texts| &mut texts.inputs);
}

pub(crate) fn add_output(builder: Builder, spec: Text) {
    add(builder, &spec, "output_spec", |texts| &mut texts.outputs);
}

pub(crate) fn set_stateful(builder: Builder, is: u8) {
    builder.with("builder", |own| own.flags[0] = is != 0);
}

pub(crate) fn set_commutative(builder: Builder, is: u8) {
    builder.with("builder", |own| own.flags[1] = is != 0);
}

pub(crate) fn set_aggregate(builder: Builder, is: u8) {
    builder.with("builder", |own| own.flags[2] = is != 0);
}

pub(crate) fn set_allows_uninitialized(builder: Builder, is: u8) {
    builder.with("builder", |own| own.flags[3] = is != 0);
}

pub(crate) fn set_deprecated(builder: Builder, version: c_int, why: Text) {
    if let Some(why) = why.text("explanation") {
        builder.with("builder", |own| own.deprecated = Some((version, why)));
    }
}

pub(crate) fn set_shape_function(builder: Builder, function: Callback) {
    builder.with("builder", |own| own.shape_function = function);
}

pub(crate) fn register(builder: Builder, status: Handle<Status>) {
    let Some(own) = builder.take("builder") else {
        let error = Error::invalid_argument("TF_RegisterOpDefinition: the builder is wrong");
        return set(status, &Err(error));
    };
    let registered = OpSpec::parse(&own.name, &own.texts).and_then(|mut spec| {
        [
            spec.is_stateful,
            spec.is_commutative,
            spec.is_aggregate,
            spec.allows_uninitialized,
        ] = own.flags;
        spec.deprecated = own.deprecated;
        let function = own.shape_function;
        spec.shape_function = (!function.is_null()).then_some(ShapeFunction(function));
        registry::register_op(spec)
    });
    if let Err(error) = &registered {
        let name = own.name.escape_debug();
        let message = match error.code() {
            ErrorCode::AlreadyExists => match registry::spec(&own.name) {
                Some(spec) if spec.library.is_empty() => "tfrt has one of this name".to_owned(),
                Some(spec) => format!("{} has one of this name", spec.library),
                None => "the library has defined it before".to_owned(),
            },
            _ => error.message().to_owned(),
        };
        registry::refuse(format!("operation '{name}': {message}"));
    }
    finish(status, registered);
}

/// Returns whether an operation has effects: 1 or 0.
pub(crate) fn is_stateful(name: Text, status: Handle<Status>) -> c_int {
    let Some(name) = name.text("op_type") else {
        return 0;
    };
    let found = registry::spec(&name).map(|spec| c_int::from(spec.is_stateful));
    let missing = || Error::not_found(format!("Op type not registered '{name}'"));
    finish(status, found.ok_or_else(missing))
}

/// Definitions of all operations.
pub(crate) fn all() -> super::buffer::BufferRef {
    super::buffer::of_bytes(&crate::proto::op_list(&registry::specs()))
}
