//! The part of TensorFlow's C API that the kernels use, and values that delete their handles.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

/// Element type `float`, by its number in the C API.
pub const FLOAT: c_int = 1;
/// Code of a wrong argument.
const INVALID_ARGUMENT: c_int = 3;

/// Makes the state of a node.
pub type Create = extern "C" fn(construction: *mut c_void) -> *mut c_void;
/// Runs a kernel.
pub type Compute = extern "C" fn(state: *mut c_void, context: *mut c_void);
/// Frees the state of a node.
pub type Delete = extern "C" fn(state: *mut c_void);
/// Copies a tensor into another one, and deletes both handles.
pub type Copy = extern "C" fn(context: *mut c_void, from: *mut c_void, to: *mut c_void);

unsafe extern "C" {
    fn TF_NewStatus() -> *mut c_void;
    fn TF_DeleteStatus(status: *mut c_void);
    fn TF_GetCode(status: *const c_void) -> c_int;
    fn TF_SetStatus(status: *mut c_void, code: c_int, message: *const c_char);

    pub fn TF_NewOpDefinitionBuilder(name: *const c_char) -> *mut c_void;
    pub fn TF_OpDefinitionBuilderAddAttr(builder: *mut c_void, spec: *const c_char);
    pub fn TF_OpDefinitionBuilderAddInput(builder: *mut c_void, spec: *const c_char);
    pub fn TF_OpDefinitionBuilderAddOutput(builder: *mut c_void, spec: *const c_char);
    pub fn TF_RegisterOpDefinition(builder: *mut c_void, status: *mut c_void);

    pub fn TF_NewKernelBuilder(
        op: *const c_char,
        device: *const c_char,
        create: Option<Create>,
        compute: Option<Compute>,
        delete: Option<Delete>,
    ) -> *mut c_void;
    pub fn TF_KernelBuilder_TypeConstraint(
        builder: *mut c_void,
        attribute: *const c_char,
        dtype: c_int,
        status: *mut c_void,
    );
    pub fn TF_KernelBuilder_Priority(builder: *mut c_void, priority: i32);
    pub fn TF_RegisterKernelBuilder(name: *const c_char, builder: *mut c_void, status: *mut c_void);

    pub fn TF_OpKernelConstruction_GetAttrFloat(
        construction: *mut c_void,
        name: *const c_char,
        value: *mut f32,
        status: *mut c_void,
    );
    pub fn TF_OpKernelConstruction_GetAttrBool(
        construction: *mut c_void,
        name: *const c_char,
        value: *mut u8,
        status: *mut c_void,
    );
    pub fn TF_OpKernelConstruction_Failure(construction: *mut c_void, status: *mut c_void);

    pub fn TF_GetInput(
        context: *mut c_void,
        index: c_int,
        tensor: *mut *mut c_void,
        status: *mut c_void,
    );
    pub fn TF_AllocateOutput(
        context: *mut c_void,
        index: c_int,
        dtype: c_int,
        dims: *const i64,
        n_dims: c_int,
        len_bytes: usize,
        status: *mut c_void,
    ) -> *mut c_void;
    pub fn TF_OpKernelContext_Failure(context: *mut c_void, status: *mut c_void);

    fn TF_MaybeLockVariableInputMutexesInOrder(
        context: *mut c_void,
        do_lock: bool,
        sparse: bool,
        inputs: *const c_int,
        n_inputs: usize,
        copy: Option<Copy>,
        holder: *mut *mut c_void,
        status: *mut c_void,
    );
    fn TF_GetInputTensorFromVariable(
        context: *mut c_void,
        index: c_int,
        is_locked: bool,
        is_variant: bool,
        sparse: bool,
        copy: Option<Copy>,
        tensor: *mut *mut c_void,
        status: *mut c_void,
    );
    fn TF_ReleaseVariableInputLockHolder(holder: *mut c_void);

    fn TF_TensorType(tensor: *const c_void) -> c_int;
    fn TF_NumDims(tensor: *const c_void) -> c_int;
    fn TF_Dim(tensor: *const c_void, index: c_int) -> i64;
    fn TF_TensorByteSize(tensor: *const c_void) -> usize;
    fn TF_TensorData(tensor: *const c_void) -> *mut c_void;
    fn TF_DeleteTensor(tensor: *mut c_void);
}

/// A status, deleted when it is dropped.
pub struct Status(pub *mut c_void);

impl Status {
    /// Returns one that says that all is well.
    pub fn new() -> Status {
        // SAFETY: it may be called at any time.
        Status(unsafe { TF_NewStatus() })
    }

    /// Returns whether all is well.
    pub fn is_ok(&self) -> bool {
        // SAFETY: the status is there.
        unsafe { TF_GetCode(self.0) == 0 }
    }

    /// Says that an argument is wrong.
    pub fn set(&self, message: &CStr) {
        // SAFETY: the status is there, and copies the message.
        unsafe { TF_SetStatus(self.0, INVALID_ARGUMENT, message.as_ptr()) };
    }

    /// Returns `None`, having said that an argument is wrong, unless `is_right`.
    pub fn expect(&self, is_right: bool, message: &CStr) -> Option<()> {
        if !is_right {
            self.set(message);
        }
        is_right.then_some(())
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: the status is there, and nobody uses it any more.
        unsafe { TF_DeleteStatus(self.0) };
    }
}

/// A tensor, whose handle is deleted when it is dropped.
pub struct Tensor(*mut c_void);

impl Tensor {
    /// Takes over a handle; null if there is none.
    pub fn of(handle: *mut c_void) -> Tensor {
        Tensor(handle)
    }

    /// Returns an input of a call.
    pub fn input(context: *mut c_void, index: c_int, status: &Status) -> Option<Tensor> {
        let mut tensor = null_mut();
        // SAFETY: the host has given the context; the other arguments are there.
        unsafe { TF_GetInput(context, index, &raw mut tensor, status.0) };
        status.is_ok().then_some(Tensor(tensor))
    }

    /// Returns the tensor of a variable, which the kernel may change until it returns.
    pub fn variable(
        context: *mut c_void,
        index: c_int,
        is_locked: bool,
        status: &Status,
    ) -> Option<Tensor> {
        let mut tensor = null_mut();
        let place = &raw mut tensor;
        // SAFETY: as in `input`.
        unsafe {
            TF_GetInputTensorFromVariable(
                context,
                index,
                is_locked,
                false,
                false,
                Some(copy),
                place,
                status.0,
            );
        }
        status.is_ok().then_some(Tensor(tensor))
    }

    /// Returns the number of the type of the elements.
    pub fn dtype(&self) -> c_int {
        // SAFETY: the tensor is there.
        unsafe { TF_TensorType(self.0) }
    }

    /// Returns the extents.
    pub fn extents(&self) -> Vec<i64> {
        // SAFETY: the tensor is there.
        let rank = unsafe { TF_NumDims(self.0) };
        // SAFETY: as above, and there is such a dimension.
        (0..rank)
            .map(|index| unsafe { TF_Dim(self.0, index) })
            .collect()
    }

    /// Returns the address of the elements.
    pub fn start(&self) -> *mut f32 {
        // SAFETY: the tensor is there.
        unsafe { TF_TensorData(self.0) }.cast()
    }

    /// Returns the number of bytes.
    pub fn len_bytes(&self) -> usize {
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

/// The locks of the variables among a call's inputs, given back when they are dropped: after the tensors.
pub struct Locks(*mut c_void);

impl Locks {
    /// Locks variables: for this kernel alone, or beside others that change them without a lock, too.
    pub fn of(context: *mut c_void, alone: bool, inputs: &[c_int], status: &Status) -> Locks {
        let mut holder = null_mut();
        let place = &raw mut holder;
        let (start, n) = (inputs.as_ptr(), inputs.len());
        // SAFETY: the host has given the context; the other arguments are there for the time of the call.
        unsafe {
            TF_MaybeLockVariableInputMutexesInOrder(
                context,
                alone,
                false,
                start,
                n,
                Some(copy),
                place,
                status.0,
            );
        }
        Locks(holder)
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        // SAFETY: the holder is this value's own, or null.
        unsafe { TF_ReleaseVariableInputLockHolder(self.0) };
    }
}

/// Copies the memory of a variable that somebody else still reads.
extern "C" fn copy(_context: *mut c_void, from: *mut c_void, to: *mut c_void) {
    let (from, to) = (Tensor(from), Tensor(to));
    let n = from.len_bytes().min(to.len_bytes());
    if n != 0 {
        // SAFETY: the tensors are there with so many bytes, and the host has made the second one for this copy.
        unsafe {
            from.start()
                .cast::<u8>()
                .copy_to_nonoverlapping(to.start().cast(), n)
        };
    }
}
