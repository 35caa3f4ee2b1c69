//! `ResourceApplyAdam`, an optimizer: a kernel for an operation that TensorFlow and tfrt have, on variables of `float`.
//!
//! Its priority puts it before the host's own. It calculates in the order of theirs, each step rounded for itself, so
//! that the bits are the same.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use crate::api::{
    FLOAT, Locks, Status, TF_KernelBuilder_Priority, TF_KernelBuilder_TypeConstraint,
    TF_NewKernelBuilder, TF_OpKernelConstruction_Failure, TF_OpKernelConstruction_GetAttrBool,
    TF_OpKernelContext_Failure, TF_RegisterKernelBuilder, Tensor,
};

/// Inputs that are variables: the weights, the mean of their gradients, the mean of the gradients' squares.
const VARIABLES: [c_int; 3] = [0, 1, 2];
/// Inputs that are numbers: powers of both betas, rate, betas, epsilon.
const NUMBERS: [c_int; 6] = [3, 4, 5, 6, 7, 8];
/// Input that is the gradient.
const GRADIENT: c_int = 9;

/// State of a node: its attributes.
struct Adam {
    use_locking: bool,
    use_nesterov: bool,
}

/// Registers the kernel.
pub fn register(status: &Status) {
    let op = c"ResourceApplyAdam";
    // SAFETY: all texts are there; the host takes the builder over; the functions are of the types that the headers
    // ask for.
    unsafe {
        let builder = TF_NewKernelBuilder(
            op.as_ptr(),
            c"CPU".as_ptr(),
            Some(create),
            Some(compute),
            Some(delete),
        );
        TF_KernelBuilder_TypeConstraint(builder, c"T".as_ptr(), FLOAT, status.0);
        TF_KernelBuilder_Priority(builder, 1);
        TF_RegisterKernelBuilder(c"ExampleAdam".as_ptr(), builder, status.0);
    }
}

/// Makes the state of a node from its attributes.
extern "C" fn create(construction: *mut c_void) -> *mut c_void {
    let status = Status::new();
    let flag = |name: &std::ffi::CStr| {
        let mut flag = 0;
        let (name, place) = (name.as_ptr(), &raw mut flag);
        // SAFETY: the host has given the construction; the other arguments are there.
        unsafe { TF_OpKernelConstruction_GetAttrBool(construction, name, place, status.0) };
        status.is_ok().then_some(flag != 0)
    };
    let both = flag(c"use_locking").zip(flag(c"use_nesterov"));
    let Some((use_locking, use_nesterov)) = both else {
        // SAFETY: as above.
        unsafe { TF_OpKernelConstruction_Failure(construction, status.0) };
        return null_mut();
    };
    Box::into_raw(Box::new(Adam {
        use_locking,
        use_nesterov,
    }))
    .cast()
}

/// Frees the state of a node: null if it could not be made.
extern "C" fn delete(state: *mut c_void) {
    if !state.is_null() {
        // SAFETY: `create` has made it, and no call uses it any more.
        drop(unsafe { Box::from_raw(state.cast::<Adam>()) });
    }
}

/// Takes a step.
extern "C" fn compute(state: *mut c_void, context: *mut c_void) {
    let status = Status::new();
    // SAFETY: `create` has made it, and calls only read it.
    let adam = unsafe { &*state.cast::<Adam>() };
    if adam.step(context, &status).is_none() {
        // SAFETY: the host has given the context.
        unsafe { TF_OpKernelContext_Failure(context, status.0) };
    }
}

impl Adam {
    fn step(&self, context: *mut c_void, status: &Status) -> Option<()> {
        let _locks = Locks::of(context, self.use_locking, &VARIABLES, status);
        status.is_ok().then_some(())?;
        let variable = |index| Tensor::variable(context, index, self.use_locking, status);
        let [weights, mean, squares] = VARIABLES.map(variable);
        let (weights, mean, squares) = (weights?, mean?, squares?);
        let gradient = Tensor::input(context, GRADIENT, status)?;
        let mut numbers = [0.0; NUMBERS.len()];
        for (number, index) in numbers.iter_mut().zip(NUMBERS) {
            let scalar = Tensor::input(context, index, status)?;
            status.expect(scalar.extents().is_empty(), c"a number is not a scalar")?;
            // SAFETY: the tensor has one element, of the type that the kernel is registered for.
            *number = unsafe { scalar.start().read() };
        }
        let all = [&weights, &mean, &squares, &gradient];
        let is_alike = |one: &&Tensor| one.extents() == weights.extents() && one.dtype() == FLOAT;
        let message = c"expected variables and a gradient of one shape and of float";
        status.expect(all.iter().all(is_alike), message)?;
        let n = weights.len_bytes() / size_of::<f32>();
        if n == 0 {
            return Some(());
        }
        let [w, m, v, g] = all.map(Tensor::start);
        status.expect(w != m && m != v && v != w, c"expected different variables")?;
        // SAFETY: the gradient has so many elements, which nobody writes during the call.
        let g = unsafe { std::slice::from_raw_parts(g, n) };
        let of = |start: *mut f32| {
            // SAFETY: each variable has as many, in memory of its own, which the locks keep from others; who calls
            // without locks lets only one kernel at a time change a variable.
            unsafe { std::slice::from_raw_parts_mut(start, n) }
        };
        self.change([of(w), of(m), of(v)], g, numbers);
        Some(())
    }

    fn change(&self, [w, m, v]: [&mut [f32]; 3], g: &[f32], numbers: [f32; NUMBERS.len()]) {
        let [beta1_power, beta2_power, rate, beta1, beta2, epsilon] = numbers;
        let rate = rate * (1.0 - beta2_power).sqrt() / (1.0 - beta1_power);
        for (((w, m), v), g) in w.iter_mut().zip(m).zip(v).zip(g) {
            *m += (g - *m) * (1.0 - beta1);
            *v += (g * g - *v) * (1.0 - beta2);
            let mean = match self.use_nesterov {
                true => g * (1.0 - beta1) + beta1 * *m,
                false => *m,
            };
            *w -= mean * rate / (v.sqrt() + epsilon);
        }
    }
}
