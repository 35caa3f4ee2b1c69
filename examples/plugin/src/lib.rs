//! A plugin in Rust: one operation, `ExampleScale`, and its kernel, on TensorFlow's C API. It runs in tfrt and in
//! TensorFlow.
//!
//! A plugin declares the functions that it uses; whoever loads it has them. `TF_InitKernel` is called once.

#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a registration is one thing, in several calls"
)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// Element type `float`, by its number in the C API.
const FLOAT: c_int = 1;
/// Code of a wrong argument.
const INVALID_ARGUMENT: c_int = 3;

type Create = extern "C" fn(construction: *mut c_void) -> *mut c_void;
type Compute = extern "C" fn(state: *mut c_void, context: *mut c_void);
type Delete = extern "C" fn(state: *mut c_void);

unsafe extern "C" {
    fn TF_NewStatus() -> *mut c_void;
    fn TF_DeleteStatus(status: *mut c_void);
    fn TF_GetCode(status: *const c_void) -> c_int;
    fn TF_SetStatus(status: *mut c_void, code: c_int, message: *const c_char);

    fn TF_NewOpDefinitionBuilder(name: *const c_char) -> *mut c_void;
    fn TF_OpDefinitionBuilderAddAttr(builder: *mut c_void, spec: *const c_char);
    fn TF_OpDefinitionBuilderAddInput(builder: *mut c_void, spec: *const c_char);
    fn TF_OpDefinitionBuilderAddOutput(builder: *mut c_void, spec: *const c_char);
    fn TF_RegisterOpDefinition(builder: *mut c_void, status: *mut c_void);

    fn TF_NewKernelBuilder(
        op: *const c_char,
        device: *const c_char,
        create: Option<Create>,
        compute: Option<Compute>,
        delete: Option<Delete>,
    ) -> *mut c_void;
    fn TF_RegisterKernelBuilder(name: *const c_char, builder: *mut c_void, status: *mut c_void);
    fn TF_OpKernelConstruction_GetAttrFloat(
        construction: *mut c_void,
        name: *const c_char,
        value: *mut f32,
        status: *mut c_void,
    );
    fn TF_OpKernelConstruction_Failure(construction: *mut c_void, status: *mut c_void);

    fn TF_GetInput(
        context: *mut c_void,
        index: c_int,
        tensor: *mut *mut c_void,
        status: *mut c_void,
    );
    fn TF_AllocateOutput(
        context: *mut c_void,
        index: c_int,
        dtype: c_int,
        dims: *const i64,
        n_dims: c_int,
        len_bytes: usize,
        status: *mut c_void,
    ) -> *mut c_void;
    fn TF_OpKernelContext_Failure(context: *mut c_void, status: *mut c_void);
    fn TF_NumDims(tensor: *const c_void) -> c_int;
    fn TF_Dim(tensor: *const c_void, index: c_int) -> i64;
    fn TF_TensorByteSize(tensor: *const c_void) -> usize;
    fn TF_TensorData(tensor: *const c_void) -> *mut c_void;
    fn TF_DeleteTensor(tensor: *mut c_void);
}

/// A status, deleted when it is dropped.
struct Status(*mut c_void);

impl Status {
    fn new() -> Status {
        // SAFETY: it may be called at any time.
        Status(unsafe { TF_NewStatus() })
    }

    fn is_ok(&self) -> bool {
        // SAFETY: the status is there.
        unsafe { TF_GetCode(self.0) == 0 }
    }

    fn set(&self, message: &CStr) {
        // SAFETY: the status is there, and copies the message.
        unsafe { TF_SetStatus(self.0, INVALID_ARGUMENT, message.as_ptr()) };
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: the status is there, and nobody uses it any more.
        unsafe { TF_DeleteStatus(self.0) };
    }
}

/// A tensor, whose handle is deleted when it is dropped.
struct Tensor(*mut c_void);

impl Tensor {
    fn extents(&self) -> Vec<i64> {
        // SAFETY: the tensor is there.
        let rank = unsafe { TF_NumDims(self.0) };
        // SAFETY: as above, and there is such a dimension.
        (0..rank)
            .map(|index| unsafe { TF_Dim(self.0, index) })
            .collect()
    }

    fn start(&self) -> *mut f32 {
        // SAFETY: the tensor is there.
        unsafe { TF_TensorData(self.0) }.cast()
    }

    fn len_bytes(&self) -> usize {
        // SAFETY: the tensor is there.
        unsafe { TF_TensorByteSize(self.0) }
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: the handle is this value's own.
        unsafe { TF_DeleteTensor(self.0) };
    }
}

/// State of a node: the factor.
struct Scale {
    factor: f32,
}

/// Makes the state of a node from its attributes.
extern "C" fn create(construction: *mut c_void) -> *mut c_void {
    let status = Status::new();
    let mut factor = 0.0;
    // SAFETY: the host has given the construction; the other arguments are there.
    unsafe {
        TF_OpKernelConstruction_GetAttrFloat(
            construction,
            c"factor".as_ptr(),
            &raw mut factor,
            status.0,
        );
    }
    if status.is_ok() && !factor.is_finite() {
        status.set(c"expected a finite factor");
    }
    if !status.is_ok() {
        // SAFETY: as above.
        unsafe { TF_OpKernelConstruction_Failure(construction, status.0) };
        return null_mut();
    }
    Box::into_raw(Box::new(Scale { factor })).cast()
}

/// Frees the state of a node: null if it could not be made.
extern "C" fn delete(state: *mut c_void) {
    if !state.is_null() {
        // SAFETY: `create` has made it, and no call uses it any more.
        drop(unsafe { Box::from_raw(state.cast::<Scale>()) });
    }
}

/// Runs the kernel: `y = factor * x`.
extern "C" fn compute(state: *mut c_void, context: *mut c_void) {
    let status = Status::new();
    if !run(state, context, &status) {
        // SAFETY: the host has given the context.
        unsafe { TF_OpKernelContext_Failure(context, status.0) };
    }
}

fn run(state: *mut c_void, context: *mut c_void, status: &Status) -> bool {
    // SAFETY: `create` has made it, and calls only read it.
    let factor = unsafe { (*state.cast::<Scale>()).factor };
    let mut x = null_mut();
    // SAFETY: the host has given the context.
    unsafe { TF_GetInput(context, 0, &raw mut x, status.0) };
    if !status.is_ok() {
        return false;
    }
    let x = Tensor(x);
    let (extents, len_bytes) = (x.extents(), x.len_bytes());
    let dims = if extents.is_empty() {
        null()
    } else {
        extents.as_ptr()
    };
    let n_dims = extents.len() as c_int;
    // SAFETY: the extents are there for the time of the call.
    let y = unsafe { TF_AllocateOutput(context, 0, FLOAT, dims, n_dims, len_bytes, status.0) };
    if !status.is_ok() {
        return false;
    }
    let y = Tensor(y);
    let n = len_bytes / size_of::<f32>();
    if n == 0 {
        return true;
    }
    // SAFETY: the input has so many elements, which nobody writes during the call.
    let from = unsafe { std::slice::from_raw_parts(x.start(), n) };
    // SAFETY: the output has as many, which nobody else uses.
    let to = unsafe { std::slice::from_raw_parts_mut(y.start(), n) };
    for (to, from) in to.iter_mut().zip(from) {
        *to = factor * from;
    }
    true
}

/// Defines the operation and registers its kernel. Whoever loads the library calls this once.
// SAFETY: no other library of the process is asked for this name.
#[unsafe(no_mangle)]
pub extern "C" fn TF_InitKernel() {
    let status = Status::new();
    let op = c"ExampleScale";
    // SAFETY: all texts are there; the host takes the builder over.
    unsafe {
        let builder = TF_NewOpDefinitionBuilder(op.as_ptr());
        TF_OpDefinitionBuilderAddAttr(builder, c"factor: float = 2".as_ptr());
        TF_OpDefinitionBuilderAddInput(builder, c"x: float".as_ptr());
        TF_OpDefinitionBuilderAddOutput(builder, c"y: float".as_ptr());
        TF_RegisterOpDefinition(builder, status.0);
    }
    // SAFETY: as above; the functions are of the types that the headers ask for.
    unsafe {
        let builder = TF_NewKernelBuilder(
            op.as_ptr(),
            c"CPU".as_ptr(),
            Some(create),
            Some(compute),
            Some(delete),
        );
        TF_RegisterKernelBuilder(op.as_ptr(), builder, status.0);
    }
}
