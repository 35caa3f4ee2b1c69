//! `ExampleScale`: `y = factor * x`, an operation of the plugin's own.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use crate::api::{
    FLOAT, Status, TF_AllocateOutput, TF_NewKernelBuilder, TF_NewOpDefinitionBuilder,
    TF_OpDefinitionBuilderAddAttr, TF_OpDefinitionBuilderAddInput, TF_OpDefinitionBuilderAddOutput,
    TF_OpKernelConstruction_Failure, TF_OpKernelConstruction_GetAttrFloat,
    TF_OpKernelContext_Failure, TF_RegisterKernelBuilder, TF_RegisterOpDefinition, Tensor,
};

/// State of a node: the factor.
struct Scale {
    factor: f32,
}

/// Defines the operation and registers its kernel.
pub fn register(status: &Status) {
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

/// Runs the kernel.
extern "C" fn compute(state: *mut c_void, context: *mut c_void) {
    let status = Status::new();
    if run(state, context, &status).is_none() {
        // SAFETY: the host has given the context.
        unsafe { TF_OpKernelContext_Failure(context, status.0) };
    }
}

fn run(state: *mut c_void, context: *mut c_void, status: &Status) -> Option<()> {
    // SAFETY: `create` has made it, and calls only read it.
    let factor = unsafe { (*state.cast::<Scale>()).factor };
    let x = Tensor::input(context, 0, status)?;
    let (extents, len_bytes) = (x.extents(), x.len_bytes());
    let dims = if extents.is_empty() {
        null()
    } else {
        extents.as_ptr()
    };
    let n_dims = extents.len() as c_int;
    // SAFETY: the host has given the context; the extents are there for the time of the call.
    let y = unsafe { TF_AllocateOutput(context, 0, FLOAT, dims, n_dims, len_bytes, status.0) };
    if !status.is_ok() {
        return None;
    }
    let y = Tensor::of(y);
    let n = len_bytes / size_of::<f32>();
    if n == 0 {
        return Some(());
    }
    // SAFETY: the input has so many elements, which nobody writes during the call.
    let from = unsafe { std::slice::from_raw_parts(x.start(), n) };
    // SAFETY: the output has as many, which nobody else uses.
    let to = unsafe { std::slice::from_raw_parts_mut(y.start(), n) };
    for (to, from) in to.iter_mut().zip(from) {
        *to = factor * from;
    }
    Some(())
}
