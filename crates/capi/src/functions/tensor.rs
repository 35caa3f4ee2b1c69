//! Functions of `tf_tensor.h` and `tf_datatype.h`: tensors as values of type, shape and shared memory.

use std::ffi::c_int;
use std::sync::{Arc, OnceLock};

use tfrt_async::SystemAllocator;
use tfrt_host::memory::BUFFER_ALIGNMENT;
use tfrt_host::{Error, HostAllocator};
use tfrt_tensor::TensorShape;

use super::buffer::BufferRef;
use super::status::{Status, set};
use crate::dtype;
use crate::fault;
use crate::foreign::Foreign;
use crate::guard::Callback;
use crate::handle::Handle;
use crate::raw::{Array, Memory};
use crate::value::{Storage, Tensor, known};

/// Returns the allocator of tensors that no kernel's call asks for.
pub(crate) fn allocator() -> Arc<dyn HostAllocator> {
    static ALLOCATOR: OnceLock<Arc<dyn HostAllocator>> = OnceLock::new();
    let make = || Arc::new(SystemAllocator::new()) as Arc<dyn HostAllocator>;
    ALLOCATOR.get_or_init(make).clone()
}

/// Returns the shape of extents that a plugin has handed over, if they are those of a tensor.
pub(crate) fn shape(dims: &Array<i64>, n: c_int, argument: &str) -> Option<TensorShape> {
    let extents = dims.first(i64::from(n), argument)?;
    let shape = TensorShape::from_i64(extents).ok();
    let has_elements = |shape: &TensorShape| match shape.as_small() {
        // The product of three of 16 bits fits.
        Some((0..=3, _)) => true,
        _ => shape.n_elements().is_some(),
    };
    let shape = shape.filter(has_elements);
    if shape.is_none() {
        let reason = format!("expected extents of a tensor, found {extents:?}");
        fault::argument(argument, &reason);
    }
    shape
}

pub(crate) fn new(
    code: c_int,
    dims: Array<i64>,
    n: c_int,
    data: Memory,
    len: usize,
    deallocator: Callback,
    argument: Memory,
) -> Handle<Tensor> {
    // The plugin's memory is freed once, whatever comes of it.
    let memory = Foreign::new(data, len, deallocator, argument.address());
    let Some(shape) = shape(&dims, n, "dims") else {
        return Handle::NULL;
    };
    let size = dtype::size_bytes(code);
    let wanted = shape.n_elements().and_then(|n| n.checked_mul(size));
    let Some(wanted) = wanted.filter(|wanted| *wanted <= len) else {
        return Handle::NULL;
    };
    if size == 0 || dtype::of_code(code).is_none() {
        let name = dtype::name(code);
        fault::record(format_args!("a tensor of {name} can't be made of bytes"));
        return Handle::NULL;
    }
    if data.address().is_multiple_of(BUFFER_ALIGNMENT) {
        return Handle::new(Tensor::of_plugin(code, shape, memory));
    }
    let copied = Tensor::zeroed(&allocator(), code, shape);
    let Ok(copy) = copied else {
        return Handle::NULL;
    };
    if let Some(bytes) = data.bytes(wanted, "data").filter(|_| wanted > 0) {
        copy.memory().write(0, bytes, "data");
    }
    Handle::new(copy)
}

pub(crate) fn default_alignment() -> usize {
    BUFFER_ALIGNMENT
}

pub(crate) fn allocate(code: c_int, dims: Array<i64>, n: c_int, len: usize) -> Handle<Tensor> {
    let Some(shape) = shape(&dims, n, "dims") else {
        return Handle::NULL;
    };
    let size = dtype::size_bytes(code);
    let wanted = shape.n_elements().and_then(|n| n.checked_mul(size));
    if wanted.is_none_or(|wanted| wanted > len) {
        return Handle::NULL;
    }
    match Tensor::zeroed(&allocator(), code, shape) {
        Ok(tensor) => Handle::new(tensor),
        Err(error) => {
            fault::record(format_args!("{}", error.message()));
            Handle::NULL
        }
    }
}

pub(crate) fn maybe_move(tensor: Handle<Tensor>) -> Handle<Tensor> {
    match tensor.with("tensor", |own| own.is_sole()) {
        Some(true) => tensor,
        _ => Handle::NULL,
    }
}

pub(crate) fn delete(tensor: Handle<Tensor>) {
    tensor.delete("tensor");
}

pub(crate) fn dtype_of(tensor: Handle<Tensor>) -> c_int {
    tensor.with("tensor", |own| own.code).unwrap_or_default()
}

pub(crate) fn set_shape(tensor: Handle<Tensor>, dims: Array<i64>, n: c_int) {
    let Some(shape) = shape(&dims, n, "dims") else {
        return;
    };
    let refused = tensor.with("tensor", |own| {
        let (now, then) = (own.n_elements(), shape.n_elements());
        let fits = then == Some(now) || matches!(own.storage, Storage::Nothing);
        if fits {
            own.shape = shape.clone();
        }
        (!fits).then_some(now)
    });
    if let Some(Some(now)) = refused {
        fault::record(format_args!(
            "a tensor of {now} elements can't have extents {shape}"
        ));
    }
}

#[inline(always)]
pub(crate) fn known_rank(tensor: Handle<Tensor>) -> Option<c_int> {
    known::rank(tensor).map(|rank| rank as c_int)
}

pub(crate) fn num_dims(tensor: Handle<Tensor>) -> c_int {
    let rank = tensor.with("tensor", |own| own.shape.rank());
    rank.map_or(-1, |rank| rank as c_int)
}

#[inline(always)]
pub(crate) fn known_extent(tensor: Handle<Tensor>, index: c_int) -> Option<i64> {
    known::extent(tensor, index).map(|extent| extent as i64)
}

pub(crate) fn dim(tensor: Handle<Tensor>, index: c_int) -> i64 {
    let found = tensor.with("tensor", |own| {
        let at = usize::try_from(index).ok();
        at.and_then(|at| own.shape.extent(at))
            .ok_or(own.shape.rank())
    });
    match found {
        Some(Ok(extent)) => extent as i64,
        Some(Err(rank)) => {
            fault::record(format_args!("dimension {index} of a tensor of rank {rank}"));
            -1
        }
        None => -1,
    }
}

pub(crate) fn byte_size(tensor: Handle<Tensor>) -> usize {
    tensor.with("tensor", |own| own.len_bytes()).unwrap_or(0)
}

pub(crate) fn data(tensor: Handle<Tensor>) -> Memory {
    tensor
        .with("tensor", |own| own.memory())
        .unwrap_or_default()
}

#[inline(always)]
pub(crate) fn known_count(tensor: Handle<Tensor>) -> Option<i64> {
    known::n_elements(tensor).map(|n| n as i64)
}

pub(crate) fn element_count(tensor: Handle<Tensor>) -> i64 {
    let n = tensor.with("tensor", |own| own.n_elements());
    n.map_or(-1, |n| n as i64)
}

pub(crate) fn bitcast_from(
    from: Handle<Tensor>,
    code: c_int,
    to: Handle<Tensor>,
    dims: Array<i64>,
    n: c_int,
    status: Handle<Status>,
) {
    let (Some(source), Some(shape)) = (
        from.with("from", |own| own.clone()),
        shape(&dims, n, "new_dims"),
    ) else {
        let error = Error::invalid_argument("TF_TensorBitcastFrom: an argument is wrong");
        set(status, &Err(error));
        return;
    };
    let sizes = [dtype::size_bytes(source.code), dtype::size_bytes(code)];
    let lens = [source.n_elements(), shape.n_elements().unwrap_or(0)];
    let bytes = |index: usize| lens[index].checked_mul(sizes[index]);
    let refused = match sizes {
        [0, _] => Some("other tensor has zero-sized data type"),
        [_, 0] => Some("specified output type is zero-sized"),
        _ if bytes(0) != bytes(1) => {
            Some("input and output shapes/data type sizes are not compatible")
        }
        _ => None,
    };
    if let Some(message) = refused {
        return set(status, &Err(Error::invalid_argument(message)));
    }
    let made = Tensor {
        code,
        shape,
        storage: source.storage,
    };
    // The tensor of before may be the plugin's, whose deallocator runs when nothing is in use.
    drop(to.with("to", |own| std::mem::replace(own, made)));
    set(status, &Ok(()));
}

pub(crate) fn from_proto(from: BufferRef, to: Handle<Tensor>, status: Handle<Status>) {
    let read = from
        .bytes("from")
        .and_then(|bytes| crate::proto::read_tensor(&bytes));
    let outcome = match read {
        Some(tensor) => {
            let before = to.with("to", |own| std::mem::replace(own, tensor));
            before
                .map(drop)
                .ok_or_else(|| Error::invalid_argument("the tensor is wrong"))
        }
        None => {
            let bytes = from.bytes("from").unwrap_or_default();
            let what = match crate::proto::is_message(&bytes) {
                true => "tensor",
                false => "tensorflow.TensorProto",
            };
            Err(Error::invalid_argument(format!("Unparseable {what} proto")))
        }
    };
    set(status, &outcome);
}

pub(crate) fn is_aligned(tensor: Handle<Tensor>) -> u8 {
    let address = tensor.with("tensor", |own| own.memory().address());
    u8::from(address.is_some_and(|address| address.is_multiple_of(BUFFER_ALIGNMENT)))
}

pub(crate) fn data_type_size(code: c_int) -> usize {
    dtype::size_bytes(code)
}
