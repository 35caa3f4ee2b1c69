//! Functions of `kernels.h` and `kernels_experimental.h` that a kernel calls while it runs: inputs, outputs, memory.

use std::ffi::c_int;

use tfrt_host::{Chain, Error, Promise};

use super::buffer::BufferRef;
use super::construction::unimplemented;
use super::status::{Status, known_code, set, succeed};
use super::tensor::shape;
use crate::dtype;
use crate::fault;
use crate::handle::Handle;
use crate::raw::{AllocatorAttributes, Array, InputRange, Memory, Out, StringView, Text};
use crate::run::{self, Context};
use crate::value::Tensor;

/// The end of an asynchronous kernel: `TF_AsyncOpKernelDoneCallback`.
pub struct Done {
    /// The call.
    pub context: Handle<Context>,
    /// Its results.
    pub promises: Vec<Promise<tfrt_tensor::Tensor>>,
    /// Its effects, if somebody waits for them.
    pub effects: Option<Promise<Chain>>,
}

type Ctx = Handle<Context>;
type Result<T> = std::result::Result<T, Error>;

/// Uses the context; the outcome is an error if there is none.
#[inline(always)]
pub(super) fn with<R>(ctx: Ctx, use_it: impl FnOnce(&mut Context) -> Result<R>) -> Result<R> {
    match ctx.with("ctx", use_it) {
        Some(outcome) => outcome,
        None => Err(Error::invalid_argument("the context is wrong")),
    }
}

/// Tells the outcome to the status; if there is none, an error fails the call.
#[inline(always)]
fn finish<T: Default>(ctx: Ctx, status: Handle<Status>, outcome: Result<T>) -> T {
    match outcome {
        Ok(value) => {
            succeed(status);
            value
        }
        Err(error) => {
            fail(ctx, status, error);
            T::default()
        }
    }
}

#[cold]
#[inline(never)]
fn fail(ctx: Ctx, status: Handle<Status>, error: Error) {
    if status.is_null() {
        let notes = error.notes().iter();
        let text = notes.fold(error.message().to_owned(), |text, note| {
            format!("{text}: {note}")
        });
        fault::record(format_args!("{text}"));
        let told = Status::of(&error);
        let _gone = ctx.with_quietly(|own| own.failure.get_or_insert(told).code);
    }
    set(status, &Err(error));
}

/// Returns an index, which is too large if it is negative.
pub(super) fn at(index: c_int) -> usize {
    index as usize
}

/// Reads the numbers of inputs and outputs of a context; see [`Context::facts`].
#[inline(always)]
fn counts(ctx: Ctx) -> Option<[u8; 4]> {
    let counts = ctx.look(|facts| facts.word::<0>() as u32)?;
    Some(counts.to_le_bytes())
}

#[inline(always)]
pub(crate) fn known_n_inputs(ctx: Ctx) -> Option<c_int> {
    let [n, ..] = counts(ctx)?;
    (n != run::UNTOLD).then_some(n.into())
}

#[inline(always)]
pub(crate) fn known_n_outputs(ctx: Ctx) -> Option<c_int> {
    let [_, n, ..] = counts(ctx)?;
    (n != run::UNTOLD).then_some(n.into())
}

#[inline(always)]
pub(crate) fn known_output_type(ctx: Ctx, index: c_int) -> Option<c_int> {
    let types = ctx.look(|facts| facts.word::<1>())?.to_le_bytes();
    let code = *types.get(at(index))?;
    (code != run::UNTOLD).then_some(code.into())
}

pub(crate) fn num_inputs(ctx: Ctx) -> c_int {
    ctx.with("ctx", |own| own.n_inputs() as c_int).unwrap_or(0)
}

pub(crate) fn num_outputs(ctx: Ctx) -> c_int {
    ctx.with("ctx", |own| own.n_outputs() as c_int).unwrap_or(0)
}

/// Does as [`get_input`] for a dense input of the call that runs on this thread.
#[inline(always)]
pub(crate) fn known_input(
    ctx: Ctx,
    index: c_int,
    tensor: Out<Handle<Tensor>>,
    status: Handle<Status>,
) -> Option<()> {
    if tensor.is_null() || known_code(status) != Some(0) {
        return None;
    }
    tensor.set_if(run::view_of_input(ctx, at(index))?);
    Some(())
}

pub(crate) fn get_input(
    ctx: Ctx,
    index: c_int,
    tensor: Out<Handle<Tensor>>,
    status: Handle<Status>,
) {
    let outcome = with(ctx, |own| match tensor.is_null() {
        true => own.input(at(index)).map(|_| no_place("tensor")),
        false => {
            tensor.set_if(Handle::new(own.input(at(index))?));
            Ok(())
        }
    });
    finish(ctx, status, outcome);
}

/// Hands a tensor over, unless there is no place for it.
#[inline(always)]
pub(super) fn give(place: Out<Handle<Tensor>>, tensor: Tensor, argument: &str) -> Result<()> {
    match place.is_null() {
        true => no_place(argument),
        false => drop(place.set_if(Handle::new(tensor))),
    }
    Ok(())
}

#[cold]
fn no_place(argument: &str) {
    let reason = "expected a place for a tensor, found a null pointer";
    fault::argument(argument, reason);
}

/// Returns the tensors of a named input.
fn range(own: &Context, name: &str) -> Result<(usize, usize)> {
    let mut groups = own.bound().resolved.groups.iter();
    let found = groups.find(|(group, ..)| group == name);
    let found = found.map(|(_, start, stop)| (*start, *stop));
    found.ok_or_else(|| Error::invalid_argument(format!("Unknown input name: {name}")))
}

pub(crate) fn get_input_by_name(
    ctx: Ctx,
    name: Text,
    tensor: Out<Handle<Tensor>>,
    status: Handle<Status>,
) {
    let Some(name) = name.text("inputName") else {
        return;
    };
    let outcome = with(ctx, |own| match range(own, &name)? {
        (start, stop) if stop - start == 1 => give(tensor, own.input(start)?, "tensor"),
        _ => Err(Error::invalid_argument(format!(
            "OpKernel used list-valued input name '{name}' when single-valued input was expected"
        ))),
    });
    finish(ctx, status, outcome);
}

pub(crate) fn input_range(ctx: Ctx, name: Text, place: Out<InputRange>) {
    let (Some(name), Some(mut range_of)) = (name.text("name"), place.get("args")) else {
        return;
    };
    let found = with(ctx, |own| range(own, &name));
    (range_of.start, range_of.stop) = match &found {
        Ok((start, stop)) => (*start as i32, *stop as i32),
        Err(_) => (-1, -1),
    };
    place.set_if(range_of);
    finish(ctx, range_of.status, found.map(|_| ()));
}

pub(crate) fn input_datatype(ctx: Ctx, index: c_int) -> c_int {
    let found = ctx.with("ctx", |own| own.input_type(at(index)).ok_or(own.n_inputs()));
    match found {
        Some(Ok(code)) => code,
        Some(Err(n)) => {
            fault::record(format_args!("input {index} of a kernel that has {n}"));
            0
        }
        None => 0,
    }
}

pub(crate) fn expected_output_datatype(ctx: Ctx, index: c_int) -> c_int {
    let found = ctx.with("ctx", |own| {
        let types = own.bound().outputs();
        types.get(at(index)).copied().ok_or(types.len())
    });
    match found {
        Some(Ok(code)) => code,
        Some(Err(n)) => {
            fault::record(format_args!("output {index} of a kernel that has {n}"));
            0
        }
        None => 0,
    }
}

pub(crate) fn set_output(ctx: Ctx, index: c_int, tensor: Handle<Tensor>, status: Handle<Status>) {
    let Some(tensor) = tensor.with("tensor", |own| own.clone()) else {
        let error = Error::invalid_argument("TF_SetOutput: the tensor is wrong");
        return finish(ctx, status, Err(error));
    };
    let before = with(ctx, |own| own.set_output(at(index), tensor));
    finish(ctx, status, before.map(drop));
}

pub(crate) fn get_mutable_output(ctx: Ctx, index: c_int, status: Handle<Status>) -> Handle<Tensor> {
    let found = with(ctx, |own| match own.output(at(index)) {
        Some(Some(tensor)) => Ok(tensor.clone()),
        Some(None) => Err(Error::failed_precondition(format!(
            "output {index} is not set yet"
        ))),
        None => Err(run::no_such("output", at(index), own.n_outputs())),
    });
    finish(ctx, status, found.map(Handle::new))
}

/// Type and length are not looked at: the operation's definition and the extents say them.
pub(crate) fn allocate_output(
    ctx: Ctx,
    index: c_int,
    _code: c_int,
    dims: Array<i64>,
    n: c_int,
    _len: usize,
    status: Handle<Status>,
) -> Handle<Tensor> {
    let made = match shape(&dims, n, "dims") {
        Some(shape) => with(ctx, |own| own.allocate_output(at(index), shape)),
        None => Err(Error::invalid_argument("the extents are wrong")),
    };
    finish(ctx, status, made)
}

#[expect(clippy::too_many_arguments, reason = "the arguments of the C function")]
pub(crate) fn forward_input_or_allocate_output(
    ctx: Ctx,
    candidates: Array<c_int>,
    n_candidates: c_int,
    index: c_int,
    dims: Array<i64>,
    n: c_int,
    forwarded: Out<c_int>,
    status: Handle<Status>,
) -> Handle<Tensor> {
    let candidates = candidates.first(i64::from(n_candidates), "candidate_input_indices");
    let made = match (candidates, shape(&dims, n, "output_dims")) {
        (Some(candidates), Some(shape)) => with(ctx, |own| {
            own.forward_or_allocate(candidates, at(index), shape)
        }),
        _ => Err(Error::invalid_argument(
            "the candidates or extents are wrong",
        )),
    };
    let from = made.as_ref().map_or(-1, |(_, from)| *from);
    forwarded.set_if(from);
    finish(ctx, status, made.map(|(tensor, _)| tensor))
}

/// Size up to the last field of the structure, without what fills it up.
const ATTRIBUTES_SIZE: usize = 9;

pub(crate) fn allocate_temp(
    ctx: Ctx,
    code: c_int,
    dims: Array<i64>,
    n: c_int,
    attributes: Out<AllocatorAttributes>,
    status: Handle<Status>,
) -> Handle<Tensor> {
    let attributes = match attributes.is_null() {
        true => None,
        false => attributes.get("alloc_attrs"),
    };
    let made = match shape(&dims, n, "dims") {
        _ if attributes.is_some_and(|given| given.struct_size < ATTRIBUTES_SIZE) => {
            Err(Error::invalid_argument(
                "TF_AllocatorAttributes struct size member must be set to \
                 TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE",
            ))
        }
        Some(shape) => with(ctx, |own| Tensor::zeroed(own.allocator(), code, shape)),
        None => Err(Error::invalid_argument("the extents are wrong")),
    };
    finish(ctx, status, made.map(Handle::new))
}

pub(crate) fn failure(ctx: Ctx, status: Handle<Status>) {
    let Some(told) = status.with("status", |own| own.clone()) else {
        return;
    };
    ctx.with("ctx", |own| {
        if told.code != 0 {
            own.failure.get_or_insert(told);
        }
    });
}

/// Whether tensors of a type are the host's on all devices. Those of other types are the device's, even if that is the
/// processor.
fn is_on_host(code: c_int) -> u8 {
    u8::from(matches!(code, dtype::STRING | dtype::RESOURCE))
}

pub(crate) fn is_host_memory_input(ctx: Ctx, index: c_int, status: Handle<Status>) -> u8 {
    let found = with(ctx, |own| {
        let code = own.input_type(at(index));
        code.map(is_on_host)
            .ok_or_else(|| run::no_such("input", at(index), own.n_inputs()))
    });
    finish(ctx, status, found)
}

pub(crate) fn is_host_memory_output(ctx: Ctx, index: c_int, status: Handle<Status>) -> u8 {
    let found = with(ctx, |own| {
        let code = own.bound().outputs().get(at(index)).copied();
        code.map(is_on_host)
            .ok_or_else(|| run::no_such("output", at(index), own.n_outputs()))
    });
    finish(ctx, status, found)
}

pub(crate) fn is_ref_input(ctx: Ctx, index: c_int, status: Handle<Status>) -> u8 {
    let found = with(ctx, |own| match own.input_type(at(index)) {
        Some(_) => Ok(u8::from(own.is_reference(at(index)))),
        None => Err(run::no_such("input", at(index), own.n_inputs())),
    });
    finish(ctx, status, found)
}

pub(crate) fn get_stream(ctx: Ctx, status: Handle<Status>) -> Memory {
    let message = "Accessing device stream is not supported for a CPU device.";
    let outcome = with(ctx, |_| Err(Error::failed_precondition(message)));
    finish(ctx, status, outcome)
}

fn number(ctx: Ctx, read: impl FnOnce(&Context) -> i64) -> i64 {
    ctx.with("ctx", |own| read(own)).unwrap_or(0)
}

pub(crate) fn step_id(ctx: Ctx) -> i64 {
    number(ctx, |own| std::ptr::from_ref(own.request()).addr() as i64)
}

pub(crate) fn frame_id(ctx: Ctx) -> u64 {
    number(ctx, |_| 0) as u64
}

pub(crate) fn iter_id(ctx: Ctx) -> i64 {
    number(ctx, |_| 0)
}

/// Version of graphs, by which TensorFlow tells what they may contain: that of 2.18.
const GRAPH_DEF_VERSION: c_int = 1882;

pub(crate) fn graph_def_version(ctx: Ctx) -> c_int {
    number(ctx, |_| i64::from(GRAPH_DEF_VERSION)) as c_int
}

pub(crate) fn device_id(ctx: Ctx) -> c_int {
    number(ctx, |_| 0) as c_int
}

fn view(ctx: Ctx, of: impl FnOnce(&Context) -> StringView) -> StringView {
    ctx.with("ctx", |own| of(own)).unwrap_or_default()
}

pub(crate) fn device_name(ctx: Ctx) -> StringView {
    view(ctx, |_| {
        StringView::of(b"/job:localhost/replica:0/task:0/device:CPU:0")
    })
}

/// The node's name lives as long as its state.
pub(crate) fn op_kernel_name(ctx: Ctx) -> StringView {
    view(ctx, |own| {
        StringView::of(own.bound().instance.node.name.as_bytes())
    })
}

/// Names of inputs live as long as the call.
pub(crate) fn op_kernel_requested_input(ctx: Ctx, index: usize) -> StringView {
    let found = ctx.with("ctx", |own| {
        let mut groups = own.bound().resolved.groups.iter();
        let found = groups.find(|(_, start, stop)| (*start..*stop).contains(&index));
        let name = found.map(|(name, ..)| StringView::of(name.as_bytes()));
        name.ok_or(own.n_inputs())
    });
    match found {
        Some(Ok(view)) => view,
        Some(Err(n)) => {
            fault::record(format_args!("input {index} of a kernel that has {n}"));
            StringView::default()
        }
        None => StringView::default(),
    }
}

pub(crate) fn resource_container_name(ctx: Ctx) -> StringView {
    view(ctx, |_| StringView::of(b"localhost"))
}

pub(crate) fn serialized_function_library(ctx: Ctx, buffer: BufferRef, status: Handle<Status>) {
    let _ = (ctx, buffer);
    unimplemented("the library of functions", status);
}

pub(crate) fn serialized_config(ctx: Ctx, buffer: BufferRef, status: Handle<Status>) {
    let _ = (ctx, buffer);
    unimplemented("the session's configuration", status);
}

pub(crate) fn serialized_resource_handle(
    ctx: Ctx,
    index: c_int,
    buffer: BufferRef,
    status: Handle<Status>,
) {
    let _ = (ctx, index, buffer);
    unimplemented("the serialized form of a resource", status);
}

/// Work of a device that outlives a kernel is nothing that the processor has.
pub(crate) fn inc_deferred_ops(ctx: Ctx) {
    ctx.with("ctx", |_| ());
}

pub(crate) fn dec_deferred_ops(ctx: Ctx) {
    ctx.with("ctx", |_| ());
}

pub(crate) fn get_rendezvous(ctx: Ctx) -> crate::raw::Rendezvous {
    ctx.with("ctx", |_| ());
    fault::record(format_args!("the host has no rendezvous"));
    crate::raw::Rendezvous::default()
}

pub(crate) fn run_done(done: Handle<Done>) {
    if let Err(reason) = run::end(done) {
        fault::argument("done", &reason);
    }
}
