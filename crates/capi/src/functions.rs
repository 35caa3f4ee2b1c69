//! The functions of TensorFlow's C API that the host provides, each once: from this table come the symbols of the library
//! that plugins ask for, the list of `tfrt plugin functions` and the page of documentation.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::fault;
use crate::guard::Callback;
use crate::handle::Handle;
use crate::library::OpenLibrary;
use crate::raw::{
    AllocatorAttributes, Array, Buffer, FileStatistics, HostText, InputRange, Memory, Out,
    Rendezvous, StringView, Text, ThreadOptions,
};
use crate::run::Context;
use crate::value::{Tensor, known};
use crate::variadic::{self, Arguments};

pub mod buffer;
pub mod construction;
pub mod context;
mod declaration;
pub mod env;
pub mod kernel;
pub mod logging;
pub mod op;
mod reference;
pub mod resource;
pub mod shape;
pub mod status;
pub mod tensor;
pub mod variable;
mod variant;

pub use declaration::{declarations, header};

use buffer::BufferRef;
use construction::Construction;
use context::Done;
use env::{StringStream, Thread, WritableFile};
use kernel::KernelBuilder;
use op::OpBuilder;
use resource::{Device, VariableInfo};
use shape::{DimensionBox, ShapeBox, ShapeContext};
use status::Status;
use variable::LockHolder;

/// A function of the C API that the host provides.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// The header that declares it.
    pub header: &'static str,
    /// One sentence on what it does.
    pub summary: &'static str,
    /// Names and types of the parameters.
    pub parameters: &'static [(&'static str, &'static str)],
    /// The type of the result.
    pub result: &'static str,
    address: fn() -> usize,
}

impl Function {
    /// Returns the address of the function.
    pub fn address(&self) -> usize {
        (self.address)()
    }
}

/// Runs a function of the host for a plugin. A panic is the host's mistake: it becomes a fault of the call.
#[inline(always)]
fn entered<R: Default>(name: &'static str, run: impl FnOnce() -> R) -> R {
    fault::enter(name);
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| failed())
}

/// Runs what a function does seldom.
#[cold]
#[inline(never)]
fn aside<R>(run: impl FnOnce() -> R) -> R {
    run()
}

#[cold]
fn failed<R: Default>() -> R {
    fault::record(format_args!("the host has failed: please report it"));
    R::default()
}

/// `functions! { "tf_status.h": /// Makes a status. fn TF_NewStatus() -> Handle<Status> = status::new; }` makes the function
/// that a plugin calls, `extern "C" fn TF_NewStatus()`, which calls `status::new`, and its entry of [`FUNCTIONS`]. Of
/// `known::code | status::code` the first returns an option, and the second is called where that is `None`: the first
/// records no faults and does not panic. With `=> entry` behind it, plugins call that instead, which collects arguments and
/// calls the function.
macro_rules! functions {
    ($($header:literal: {$(
        #[doc = $summary:literal]
        fn $name:ident($($parameter:ident: $type:ty),*) $(-> $result:ty)? = $path:path $(| $next:path)? $(=> $entry:path)?;
    )*})*) => {
        $($(
            #[expect(non_snake_case, reason = "the name in C")]
            pub(crate) extern "C" fn $name($($parameter: $type),*) $(-> $result)? {
                functions!(@run $name ($path $(, $next)?) ($($parameter),*))
            }
        )*)*

        /// All functions, in the order of the headers.
        pub static FUNCTIONS: &[Function] = &[$($(
            Function {
                name: stringify!($name),
                header: $header,
                summary: $summary.trim_ascii(),
                parameters: &[$((stringify!($parameter), stringify!($type))),*],
                result: functions!(@result $($result)?),
                address: || functions!(@entry $name $($entry)?) as *const () as usize,
            },
        )*)*];
    };
    (@run $name:ident ($path:path) ($($argument:ident),*)) => {
        entered(stringify!($name), move || $path($($argument),*))
    };
    (@run $name:ident ($known:path, $path:path) ($($argument:ident),*)) => {
        match $known($($argument),*) {
            Some(known) => known,
            None => functions!(@aside $name ($path) ($($argument),*)),
        }
    };
    (@aside $name:ident ($path:path) ($($argument:ident),*)) => {
        // Not a part of the function that asks the known way: that saves no registers for it.
        aside(move || functions!(@run $name ($path) ($($argument),*)))
    };
    (@entry $name:ident) => { $name };
    (@entry $name:ident $entry:path) => { $entry };
    (@result) => { "()" };
    (@result $result:ty) => { stringify!($result) };
}

functions! {
    "tf_status.h": {
        /// Makes a status of success.
        fn TF_NewStatus() -> Handle<Status> = status::new;
        /// Deletes a status.
        fn TF_DeleteStatus(status: Handle<Status>) = status::delete;
        /// Sets code and message.
        fn TF_SetStatus(status: Handle<Status>, code: c_int, msg: Text) = status::set_status;
        /// Adds a payload to an error.
        fn TF_SetPayload(status: Handle<Status>, key: Text, value: Text) = status::set_payload;
        /// Calls a function for each payload.
        fn TF_ForEachPayload(status: Handle<Status>, visitor: Callback, capture: Memory) = status::for_each_payload;
        /// Sets the code and message of an `errno`.
        fn TF_SetStatusFromIOError(status: Handle<Status>, error_code: c_int, context: Text) = status::set_from_io_error;
        /// Returns the code.
        fn TF_GetCode(status: Handle<Status>) -> c_int = status::known_code | status::code;
        /// Returns the message, until the status changes.
        fn TF_Message(status: Handle<Status>) -> HostText = status::message;
    }
    "tf_datatype.h": {
        /// Returns the bytes of an element; 0 for types that can't be copied byte by byte.
        fn TF_DataTypeSize(dt: c_int) -> usize = tensor::data_type_size;
    }
    "tf_buffer.h": {
        /// Makes a buffer of a copy of bytes.
        fn TF_NewBufferFromString(proto: Memory, proto_len: usize) -> BufferRef = buffer::of_string;
        /// Makes an empty buffer.
        fn TF_NewBuffer() -> BufferRef = buffer::new;
        /// Deletes a buffer, and frees its bytes.
        fn TF_DeleteBuffer(buffer: BufferRef) = buffer::delete;
        /// Returns the structure of a buffer.
        fn TF_GetBuffer(buffer: BufferRef) -> Buffer = buffer::get;
    }
    "tf_tensor.h": {
        /// Makes a tensor in memory of the plugin, which is copied unless it is aligned to 64 bytes.
        fn TF_NewTensor(dtype: c_int, dims: Array<i64>, num_dims: c_int, data: Memory, len: usize, deallocator: Callback, deallocator_arg: Memory) -> Handle<Tensor> = tensor::new;
        /// Returns the alignment of tensors: 64.
        fn TF_TensorDefaultAlignment() -> usize = tensor::default_alignment;
        /// Makes a tensor of zeros in the host's memory.
        fn TF_AllocateTensor(dtype: c_int, dims: Array<i64>, num_dims: c_int, len: usize) -> Handle<Tensor> = tensor::allocate;
        /// Returns the tensor if nobody else holds its memory.
        fn TF_TensorMaybeMove(tensor: Handle<Tensor>) -> Handle<Tensor> = tensor::maybe_move;
        /// Deletes a tensor.
        fn TF_DeleteTensor(tensor: Handle<Tensor>) = tensor::delete;
        /// Returns the type of the elements.
        fn TF_TensorType(tensor: Handle<Tensor>) -> c_int = known::code | tensor::dtype_of;
        /// Changes the extents.
        fn TF_SetShape(tensor: Handle<Tensor>, dims: Array<i64>, num_dims: c_int) = tensor::set_shape;
        /// Returns the number of dimensions.
        fn TF_NumDims(tensor: Handle<Tensor>) -> c_int = tensor::known_rank | tensor::num_dims;
        /// Returns the extent of a dimension.
        fn TF_Dim(tensor: Handle<Tensor>, dim_index: c_int) -> i64 = tensor::known_extent | tensor::dim;
        /// Returns the number of bytes.
        fn TF_TensorByteSize(tensor: Handle<Tensor>) -> usize = known::len_bytes | tensor::byte_size;
        /// Returns the address of the elements.
        fn TF_TensorData(tensor: Handle<Tensor>) -> Memory = known::memory | tensor::data;
        /// Returns the number of elements.
        fn TF_TensorElementCount(tensor: Handle<Tensor>) -> i64 = tensor::known_count | tensor::element_count;
        /// Makes one tensor another one with other type and extents, in the same memory.
        fn TF_TensorBitcastFrom(from: Handle<Tensor>, dtype: c_int, to: Handle<Tensor>, new_dims: Array<i64>, num_new_dims: c_int, status: Handle<Status>) = tensor::bitcast_from;
        /// Returns whether the elements are aligned to 64 bytes.
        fn TF_TensorIsAligned(tensor: Handle<Tensor>) -> u8 = tensor::is_aligned;
    }
    "kernels.h": {
        /// Begins the registration of a kernel.
        fn TF_NewKernelBuilder(op_name: Text, device_name: Text, create_func: Callback, compute_func: Callback, delete_func: Callback) -> Handle<KernelBuilder> = kernel::new;
        /// Begins the registration of a kernel that goes on after its function has returned.
        fn TF_NewAsyncKernelBuilder(op_name: Text, device_name: Text, create_func: Callback, compute_async_func: Callback, delete_func: Callback) -> Handle<KernelBuilder> = kernel::new_async;
        /// Adds a type that an attribute may be.
        fn TF_KernelBuilder_TypeConstraint(kernel_builder: Handle<KernelBuilder>, attr_name: Text, dtype: c_int, status: Handle<Status>) = kernel::type_constraint;
        /// Says that an input or output of a device's kernel lies in the host's memory.
        fn TF_KernelBuilder_HostMemory(kernel_builder: Handle<KernelBuilder>, arg_name: Text) = kernel::host_memory;
        /// Sets the priority.
        fn TF_KernelBuilder_Priority(kernel_builder: Handle<KernelBuilder>, priority_number: i32) = kernel::priority;
        /// Sets the label that nodes ask for.
        fn TF_KernelBuilder_Label(kernel_builder: Handle<KernelBuilder>, label: Text) = kernel::label;
        /// Registers a kernel.
        fn TF_RegisterKernelBuilder(kernel_name: Text, builder: Handle<KernelBuilder>, status: Handle<Status>) = kernel::register;
        /// Registers a kernel, given its serialized definition too.
        fn TF_RegisterKernelBuilderWithKernelDef(serialized_kernel_def: Text, kernel_name: Text, builder: Handle<KernelBuilder>, status: Handle<Status>) = kernel::register_with_definition;
        /// Deletes a builder that was not registered.
        fn TF_DeleteKernelBuilder(builder: Handle<KernelBuilder>) = kernel::delete;
        /// Fails: the processor has no streams.
        fn TF_GetStream(ctx: Handle<Context>, status: Handle<Status>) -> Memory = context::get_stream;
        /// Returns the number of inputs.
        fn TF_NumInputs(ctx: Handle<Context>) -> c_int = context::known_n_inputs | context::num_inputs;
        /// Returns the number of outputs.
        fn TF_NumOutputs(ctx: Handle<Context>) -> c_int = context::known_n_outputs | context::num_outputs;
        /// Gives an input.
        fn TF_GetInput(ctx: Handle<Context>, i: c_int, tensor: Out<Handle<Tensor>>, status: Handle<Status>) = context::known_input | context::get_input;
        /// Gives the numbers of the tensors of a named input.
        fn TF_InputRange(ctx: Handle<Context>, name: Text, args: Out<InputRange>) = context::input_range;
        /// Returns the type of an input.
        fn TF_InputDatatype(ctx: Handle<Context>, index: c_int) -> c_int = context::input_datatype;
        /// Makes a tensor an output.
        fn TF_SetOutput(ctx: Handle<Context>, i: c_int, tensor: Handle<Tensor>, status: Handle<Status>) = context::set_output;
        /// Returns an output as it is now.
        fn TF_GetMutableOutput(ctx: Handle<Context>, i: c_int, status: Handle<Status>) -> Handle<Tensor> = context::get_mutable_output;
        /// Answers `Unimplemented`.
        fn TF_GetSerializedFunctionDefLibrary(ctx: Handle<Context>, serialized_function_def_library: BufferRef, status: Handle<Status>) = context::serialized_function_library;
        /// Answers `Unimplemented`.
        fn TF_GetSerializedConfigProto(ctx: Handle<Context>, serialized_config_proto: BufferRef, status: Handle<Status>) = context::serialized_config;
        /// Answers `Unimplemented`.
        fn TF_GetSerializedResourceHandleProto(ctx: Handle<Context>, i: c_int, serialized_resource_handle_proto: BufferRef, status: Handle<Status>) = context::serialized_resource_handle;
        /// Fails the making of a node's state.
        fn TF_OpKernelConstruction_Failure(ctx: Handle<Construction>, status: Handle<Status>) = construction::failure;
        /// Fails the call.
        fn TF_OpKernelContext_Failure(ctx: Handle<Context>, status: Handle<Status>) = context::failure;
        /// Returns the type that an output is to have.
        fn TF_ExpectedOutputDataType(ctx: Handle<Context>, i: c_int) -> c_int = context::known_output_type | context::expected_output_datatype;
        /// Returns whether an input of a device's kernel lies in the host's memory.
        fn TF_IsHostMemoryInput(ctx: Handle<Context>, i: c_int, status: Handle<Status>) -> u8 = context::is_host_memory_input;
        /// Returns whether an output of a device's kernel lies in the host's memory.
        fn TF_IsHostMemoryOutput(ctx: Handle<Context>, i: c_int, status: Handle<Status>) -> u8 = context::is_host_memory_output;
        /// Returns the number of the request.
        fn TF_StepId(ctx: Handle<Context>) -> i64 = context::step_id;
        /// Returns the node as a serialized `NodeDef`.
        fn TF_OpKernelConstruction_GetNodeDef(ctx: Handle<Construction>, status: Handle<Status>) -> BufferRef = construction::get_node_def;
        /// Returns the number of the frame: 0.
        fn TF_GetFrameId(ctx: Handle<Context>) -> u64 = context::frame_id;
        /// Returns the turn of the loop: 0.
        fn TF_GetIterId(ctx: Handle<Context>) -> i64 = context::iter_id;
        /// Returns the number of the request.
        fn TF_GetStepId(ctx: Handle<Context>) -> i64 = context::step_id;
        /// Returns the number of the device: 0.
        fn TF_GetDeviceId(ctx: Handle<Context>) -> c_int = context::device_id;
        /// Returns the name of the device.
        fn TF_GetDeviceName(ctx: Handle<Context>) -> StringView = context::device_name;
        /// Answers nothing: there is no rendezvous.
        fn TF_GetRendezvous(ctx: Handle<Context>) -> Rendezvous = context::get_rendezvous;
        /// Returns the version of graphs.
        fn TF_GetGraphDefVersion(ctx: Handle<Context>) -> c_int = context::graph_def_version;
        /// Returns the node's name.
        fn TF_GetOpKernelName(ctx: Handle<Context>) -> StringView = context::op_kernel_name;
        /// Returns the name of the default container of resources.
        fn TF_GetResourceMgrDefaultContainerName(ctx: Handle<Context>) -> StringView = context::resource_container_name;
        /// Returns the name of an input.
        fn TF_GetOpKernelRequestedInput(ctx: Handle<Context>, index: usize) -> StringView = context::op_kernel_requested_input;
        /// Gives the length of a list, and of all texts or shapes in an attribute.
        fn TF_OpKernelConstruction_GetAttrSize(ctx: Handle<Construction>, attr_name: Text, list_size: Out<i32>, total_size: Out<i32>, status: Handle<Status>) = construction::get_attr_size;
        /// Gives an attribute that is a type.
        fn TF_OpKernelConstruction_GetAttrType(ctx: Handle<Construction>, attr_name: Text, val: Out<i32>, status: Handle<Status>) = construction::get_type;
        /// Gives an attribute that is an integer of 32 bits.
        fn TF_OpKernelConstruction_GetAttrInt32(ctx: Handle<Construction>, attr_name: Text, val: Out<i32>, status: Handle<Status>) = construction::get_int32;
        /// Gives an attribute that is an integer.
        fn TF_OpKernelConstruction_GetAttrInt64(ctx: Handle<Construction>, attr_name: Text, val: Out<i64>, status: Handle<Status>) = construction::get_int64;
        /// Gives an attribute that is a float.
        fn TF_OpKernelConstruction_GetAttrFloat(ctx: Handle<Construction>, attr_name: Text, val: Out<f32>, status: Handle<Status>) = construction::get_float;
        /// Gives an attribute that is a truth value.
        fn TF_OpKernelConstruction_GetAttrBool(ctx: Handle<Construction>, attr_name: Text, val: Out<u8>, status: Handle<Status>) = construction::get_bool;
        /// Copies an attribute that is a text, without a zero byte at its end.
        fn TF_OpKernelConstruction_GetAttrString(ctx: Handle<Construction>, attr_name: Text, val: Memory, max_length: usize, status: Handle<Status>) = construction::get_string;
        /// Gives an attribute that is a tensor.
        fn TF_OpKernelConstruction_GetAttrTensor(ctx: Handle<Construction>, attr_name: Text, val: Out<Handle<Tensor>>, status: Handle<Status>) = construction::get_tensor;
        /// Gives an attribute that is a list of types.
        fn TF_OpKernelConstruction_GetAttrTypeList(ctx: Handle<Construction>, attr_name: Text, vals: Out<i32>, max_vals: c_int, status: Handle<Status>) = construction::get_type_list;
        /// Gives an attribute that is a list of integers of 32 bits.
        fn TF_OpKernelConstruction_GetAttrInt32List(ctx: Handle<Construction>, attr_name: Text, vals: Out<i32>, max_vals: c_int, status: Handle<Status>) = construction::get_int32_list;
        /// Gives an attribute that is a list of integers.
        fn TF_OpKernelConstruction_GetAttrInt64List(ctx: Handle<Construction>, attr_name: Text, vals: Out<i64>, max_vals: c_int, status: Handle<Status>) = construction::get_int64_list;
        /// Gives an attribute that is a list of floats.
        fn TF_OpKernelConstruction_GetAttrFloatList(ctx: Handle<Construction>, attr_name: Text, vals: Out<f32>, max_vals: c_int, status: Handle<Status>) = construction::get_float_list;
        /// Gives an attribute that is a list of truth values.
        fn TF_OpKernelConstruction_GetAttrBoolList(ctx: Handle<Construction>, attr_name: Text, vals: Out<u8>, max_vals: c_int, status: Handle<Status>) = construction::get_bool_list;
        /// Copies an attribute that is a list of texts.
        fn TF_OpKernelConstruction_GetAttrStringList(ctx: Handle<Construction>, attr_name: Text, vals: Out<usize>, lengths: Out<usize>, max_values: c_int, storage: Memory, storage_size: usize, status: Handle<Status>) = construction::get_string_list;
        /// Gives an attribute that is a list of tensors.
        fn TF_OpKernelConstruction_GetAttrTensorList(ctx: Handle<Construction>, attr_name: Text, vals: Out<Handle<Tensor>>, max_values: c_int, status: Handle<Status>) = construction::get_tensor_list;
        /// Returns an attribute that is a function as a serialized `NameAttrList`.
        fn TF_OpKernelConstruction_GetAttrFunction(ctx: Handle<Construction>, attr_name: Text, status: Handle<Status>) -> BufferRef = construction::get_function;
        /// Returns whether there is an attribute.
        fn TF_OpKernelConstruction_HasAttr(ctx: Handle<Construction>, attr_name: Text, status: Handle<Status>) -> u8 = construction::has_attr;
        /// Returns the node's name.
        fn TF_OpKernelConstruction_GetName(ctx: Handle<Construction>) -> StringView = construction::get_name;
        /// Allocates an output; type and length are those of the definition.
        fn TF_AllocateOutput(ctx: Handle<Context>, index: c_int, dtype: c_int, dims: Array<i64>, num_dims: c_int, len: usize, status: Handle<Status>) -> Handle<Tensor> = context::allocate_output;
        /// Lets an output take the memory of an input that nobody else needs, or allocates it.
        fn TF_ForwardInputOrAllocateOutput(ctx: Handle<Context>, candidate_input_indices: Array<c_int>, num_candidate_input_indices: c_int, output_index: c_int, output_dims: Array<i64>, output_num_dims: c_int, forwarded_input: Out<c_int>, status: Handle<Status>) -> Handle<Tensor> = context::forward_input_or_allocate_output;
        /// Allocates a tensor that is no output.
        fn TF_AllocateTemp(ctx: Handle<Context>, dtype: c_int, dims: Array<i64>, num_dims: c_int, alloc_attrs: Out<AllocatorAttributes>, status: Handle<Status>) -> Handle<Tensor> = context::allocate_temp;
        /// Does nothing: the processor has no work that outlives a kernel.
        fn TF_IncNumDeferredOps(ctx: Handle<Context>) = context::inc_deferred_ops;
        /// Does nothing.
        fn TF_DecNumDeferredOps(ctx: Handle<Context>) = context::dec_deferred_ops;
        /// Ends an asynchronous kernel.
        fn TF_RunAsyncOpKernelDoneCallback(arg: Handle<Done>) = context::run_done;
    }
    "kernels_experimental.h": {
        /// Gives the only tensor of a named input.
        fn TF_GetInputByName(ctx: Handle<Context>, inputName: Text, tensor: Out<Handle<Tensor>>, status: Handle<Status>) = context::get_input_by_name;
        /// Does nothing for resources; there are no other references.
        fn TF_OpKernelContext_ForwardRefInputToRefOutput(ctx: Handle<Context>, input_index: i32, output_index: i32) = reference::forward;
        /// Gives an attribute that is a shape of this rank, all of which is known.
        fn TF_OpKernelConstruction_GetAttrTensorShape(ctx: Handle<Construction>, attr_name: Text, dims: Out<i64>, num_dims: usize, status: Handle<Status>) = construction::get_tensor_shape;
        /// Returns whether an input is a reference: it never is.
        fn TF_IsRefInput(ctx: Handle<Context>, i: c_int, status: Handle<Status>) -> u8 = context::is_ref_input;
        /// Makes an input the value of a variable.
        fn TF_AssignVariable(ctx: Handle<Context>, input_index: c_int, value_index: c_int, validate_shape: u8, copyFunc: Callback, status: Handle<Status>) = variable::assign;
        /// Has a function of the plugin change a variable by an input.
        fn TF_AssignUpdateVariable(ctx: Handle<Context>, input_index: c_int, value_index: c_int, Op: c_int, isVariantType: c_int, copyFunc: Callback, updateFunc: Callback, status: Handle<Status>) = variable::assign_update;
        /// Assigns an input to the variable of a reference, which becomes an output.
        fn TF_AssignRefVariable(ctx: Handle<Context>, input_ref_index: c_int, output_ref_index: c_int, value_index: c_int, use_locking: u8, validate_shape: u8, copyFunc: Callback, status: Handle<Status>) = reference::assign;
        /// Makes a variable of the step, which becomes the output.
        fn TF_TemporaryVariable(ctx: Handle<Context>, dtype: c_int, dims: Array<i64>, num_dims: c_int, var_name: Out<StringView>, plugin_allocator: Callback, status: Handle<Status>) = reference::temporary;
        /// Makes the value of a variable of the step the output, and lets go of the variable.
        fn TF_DestroyTemporaryVariable(ctx: Handle<Context>, index: c_int, var_name: Out<StringView>, status: Handle<Status>) = reference::destroy_temporary;
        /// Adds up the lists of tensors that are the inputs, by a function of the plugin.
        fn TF_AddNVariant(ctx: Handle<Context>, binary_add_func: Callback, status: Handle<Status>) = variant::add_n;
        /// Makes a list of zeros like the one that is the input, by a function of the plugin.
        fn TF_ZerosLikeVariant(ctx: Handle<Context>, zeros_like_func: Callback, status: Handle<Status>) = variant::zeros_like;
        /// Gives the locks of variables, which are held before the kernel starts and until it has run.
        fn TF_MaybeLockVariableInputMutexesInOrder(ctx: Handle<Context>, do_lock: u8, sparse: u8, inputs: Array<c_int>, len: usize, copyFunc: Callback, lockHolder: Out<Handle<LockHolder>>, status: Handle<Status>) = variable::maybe_lock;
        /// Gives the tensor of a variable, to be changed in place.
        fn TF_GetInputTensorFromVariable(ctx: Handle<Context>, input: c_int, lock_held: u8, isVariantType: u8, sparse: u8, copyFunc: Callback, out: Out<Handle<Tensor>>, status: Handle<Status>) = variable::get;
        /// Deletes a holder of locks.
        fn TF_ReleaseVariableInputLockHolder(lockHolder: Handle<LockHolder>) = variable::release;
    }
    "experimental/next_pluggable_device/c_api.h": {
        /// Returns the processor.
        fn TF_GetDevice(ctx: Handle<Context>) -> Handle<Device> = resource::device;
        /// Puts an object of the plugin among the resources.
        fn TF_CreatePluginResource(ctx: Handle<Context>, container_name: Text, plugin_resource_name: Text, plugin_resource: Memory, delete_func: Callback, status: Handle<Status>) = resource::create;
        /// Finds an object of the plugin among the resources, or has it made.
        fn TF_LookupOrCreatePluginResource(ctx: Handle<Context>, container_name: Text, plugin_resource_name: Text, result_plugin_resource: Out<Memory>, make_func: Callback, create_func_args: Memory, delete_func: Callback, status: Handle<Status>) = resource::lookup_or_create;
        /// Returns the variable that an input refers to.
        fn TF_CreateVariableInfoFromContext(ctx: Handle<Context>, index: c_int, status: Handle<Status>) -> Handle<VariableInfo> = resource::variable_info;
        /// Locks variables, each for the kernel alone, until it has run.
        fn TF_LockVariableInfos(vars: Array<Handle<VariableInfo>>, num_vars: c_int, status: Handle<Status>) = resource::lock;
        /// Gives a variable new memory of its type and shape, of zeros.
        fn TF_AllocateTempForVariableInfo(ctx: Handle<Context>, var_info: Handle<VariableInfo>, status: Handle<Status>) = resource::allocate;
        /// Returns the tensor of a variable, to be changed in place.
        fn TF_GetTensorFromVariableInfo(var_info: Handle<VariableInfo>, status: Handle<Status>) -> Handle<Tensor> = resource::tensor;
        /// Deletes what a variable was found by.
        fn TF_DeleteVariableInfo(var_info: Handle<VariableInfo>) = resource::delete;
    }
    "ops.h": {
        /// Begins the definition of an operation.
        fn TF_NewOpDefinitionBuilder(op_name: Text) -> Handle<OpBuilder> = op::new;
        /// Registers the definition of an operation.
        fn TF_RegisterOpDefinition(builder: Handle<OpBuilder>, status: Handle<Status>) = op::register;
        /// Deletes a builder that was not registered.
        fn TF_DeleteOpDefinitionBuilder(builder: Handle<OpBuilder>) = op::delete;
        /// Adds an attribute: `T: {float, double} = DT_FLOAT`.
        fn TF_OpDefinitionBuilderAddAttr(builder: Handle<OpBuilder>, attr_spec: Text) = op::add_attr;
        /// Adds an input: `x: N * T`.
        fn TF_OpDefinitionBuilderAddInput(builder: Handle<OpBuilder>, input_spec: Text) = op::add_input;
        /// Adds an output.
        fn TF_OpDefinitionBuilderAddOutput(builder: Handle<OpBuilder>, output_spec: Text) = op::add_output;
        /// Says whether two inputs may be exchanged.
        fn TF_OpDefinitionBuilderSetIsCommutative(builder: Handle<OpBuilder>, is_commutative: u8) = op::set_commutative;
        /// Says whether the operation sums its inputs up.
        fn TF_OpDefinitionBuilderSetIsAggregate(builder: Handle<OpBuilder>, is_aggregate: u8) = op::set_aggregate;
        /// Says whether calls have effects.
        fn TF_OpDefinitionBuilderSetIsStateful(builder: Handle<OpBuilder>, is_stateful: u8) = op::set_stateful;
        /// Says whether inputs may be variables without a value.
        fn TF_OpDefinitionBuilderSetAllowsUninitializedInput(builder: Handle<OpBuilder>, allows_uninitialized_input: u8) = op::set_allows_uninitialized;
        /// Says that the operation is deprecated.
        fn TF_OpDefinitionBuilderDeprecated(builder: Handle<OpBuilder>, version: c_int, explanation: Text) = op::set_deprecated;
        /// Sets the function that infers shapes.
        fn TF_OpDefinitionBuilderSetShapeInferenceFunction(builder: Handle<OpBuilder>, shape_inference_func: Callback) = op::set_shape_function;
        /// Returns the number of inputs.
        fn TF_ShapeInferenceContextNumInputs(ctx: Handle<ShapeContext>) -> i64 = shape::num_inputs;
        /// Makes a box for a shape.
        fn TF_NewShapeHandle() -> Handle<ShapeBox> = shape::new_shape;
        /// Gives the shape of an input.
        fn TF_ShapeInferenceContextGetInput(ctx: Handle<ShapeContext>, i: c_int, handle: Handle<ShapeBox>, status: Handle<Status>) = shape::get_input;
        /// Sets the shape of an output.
        fn TF_ShapeInferenceContextSetOutput(ctx: Handle<ShapeContext>, i: c_int, handle: Handle<ShapeBox>, status: Handle<Status>) = shape::set_output;
        /// Makes a shape without dimensions.
        fn TF_ShapeInferenceContextScalar(ctx: Handle<ShapeContext>) -> Handle<ShapeBox> = shape::scalar;
        /// Makes a shape of one dimension.
        fn TF_ShapeInferenceContextVectorFromSize(ctx: Handle<ShapeContext>, size: usize) -> Handle<ShapeBox> = shape::vector;
        /// Makes a box for an extent.
        fn TF_NewDimensionHandle() -> Handle<DimensionBox> = shape::new_dimension;
        /// Gives an attribute that is a type.
        fn TF_ShapeInferenceContext_GetAttrType(ctx: Handle<ShapeContext>, attr_name: Text, val: Out<c_int>, status: Handle<Status>) = shape::get_type;
        /// Returns the number of dimensions; -1 if it is unknown.
        fn TF_ShapeInferenceContextRank(ctx: Handle<ShapeContext>, handle: Handle<ShapeBox>) -> i64 = shape::rank;
        /// Returns whether the number of dimensions is known.
        fn TF_ShapeInferenceContextRankKnown(ctx: Handle<ShapeContext>, handle: Handle<ShapeBox>) -> c_int = shape::rank_known;
        /// Checks that a shape may have this rank.
        fn TF_ShapeInferenceContextWithRank(ctx: Handle<ShapeContext>, handle: Handle<ShapeBox>, rank: i64, result: Handle<ShapeBox>, status: Handle<Status>) = shape::with_rank;
        /// Checks that a shape may have this rank at least.
        fn TF_ShapeInferenceContextWithRankAtLeast(ctx: Handle<ShapeContext>, handle: Handle<ShapeBox>, rank: i64, result: Handle<ShapeBox>, status: Handle<Status>) = shape::with_rank_at_least;
        /// Checks that a shape may have this rank at most.
        fn TF_ShapeInferenceContextWithRankAtMost(ctx: Handle<ShapeContext>, handle: Handle<ShapeBox>, rank: i64, result: Handle<ShapeBox>, status: Handle<Status>) = shape::with_rank_at_most;
        /// Gives an extent; negative numbers count from the end.
        fn TF_ShapeInferenceContextDim(ctx: Handle<ShapeContext>, shape_handle: Handle<ShapeBox>, i: i64, result: Handle<DimensionBox>) = shape::dim;
        /// Gives the extents from one dimension to another.
        fn TF_ShapeInferenceContextSubshape(ctx: Handle<ShapeContext>, shape_handle: Handle<ShapeBox>, start: i64, end: i64, result: Handle<ShapeBox>, status: Handle<Status>) = shape::subshape;
        /// Makes the shapes of all outputs unknown.
        fn TF_ShapeInferenceContextSetUnknownShape(ctx: Handle<ShapeContext>, status: Handle<Status>) = shape::set_unknown;
        /// Returns whether an extent is known.
        fn TF_DimensionHandleValueKnown(dim_handle: Handle<DimensionBox>) -> c_int = shape::dimension_known;
        /// Returns an extent; -1 if it is unknown.
        fn TF_DimensionHandleValue(dim_handle: Handle<DimensionBox>) -> i64 = shape::dimension_value;
        /// Gives the extents of two shapes together.
        fn TF_ShapeInferenceContextConcatenateShapes(ctx: Handle<ShapeContext>, first: Handle<ShapeBox>, second: Handle<ShapeBox>, result: Handle<ShapeBox>, status: Handle<Status>) = shape::concatenate;
        /// Deletes the box of a shape.
        fn TF_DeleteShapeHandle(handle: Handle<ShapeBox>) = shape::delete_shape;
        /// Deletes the box of an extent.
        fn TF_DeleteDimensionHandle(handle: Handle<DimensionBox>) = shape::delete_dimension;
    }
    "env.h": {
        /// Makes a folder.
        fn TF_CreateDir(dirname: Text, status: Handle<Status>) = env::create_dir;
        /// Deletes an empty folder.
        fn TF_DeleteDir(dirname: Text, status: Handle<Status>) = env::delete_dir;
        /// Deletes a folder and all that is in it, and counts what can't be deleted.
        fn TF_DeleteRecursively(dirname: Text, undeleted_file_count: Out<i64>, undeleted_dir_count: Out<i64>, status: Handle<Status>) = env::delete_recursively;
        /// Gives size and time of the last change of a file.
        fn TF_FileStat(filename: Text, stats: Out<FileStatistics>, status: Handle<Status>) = env::file_stat;
        /// Makes an empty file to be written, in place of one of this name.
        fn TF_NewWritableFile(filename: Text, handle: Out<Handle<WritableFile>>, status: Handle<Status>) = env::new_writable_file;
        /// Writes what is left, and closes a file.
        fn TF_CloseWritableFile(handle: Handle<WritableFile>, status: Handle<Status>) = env::close_writable_file;
        /// Writes all to the disk.
        fn TF_SyncWritableFile(handle: Handle<WritableFile>, status: Handle<Status>) = env::sync_writable_file;
        /// Writes all to the system.
        fn TF_FlushWritableFile(handle: Handle<WritableFile>, status: Handle<Status>) = env::flush_writable_file;
        /// Appends bytes to a file.
        fn TF_AppendWritableFile(handle: Handle<WritableFile>, data: Array<u8>, length: usize, status: Handle<Status>) = env::append_writable_file;
        /// Deletes a file.
        fn TF_DeleteFile(filename: Text, status: Handle<Status>) = env::delete_file;
        /// Gives the next text of a list, which lives as long as the list; returns whether there is one.
        fn TF_StringStreamNext(list: Handle<StringStream>, result: Out<HostText>) -> u8 = env::string_stream_next;
        /// Deletes a list of texts.
        fn TF_StringStreamDone(list: Handle<StringStream>) = env::string_stream_done;
        /// Returns the names in a folder.
        fn TF_GetChildren(filename: Text, status: Handle<Status>) -> Handle<StringStream> = env::get_children;
        /// Returns the folders for files that are not kept.
        fn TF_GetLocalTempDirectories() -> Handle<StringStream> = env::local_temp_directories;
        /// Makes an empty file that is not kept, and returns its name, which the plugin frees.
        fn TF_GetTempFileName(extension: Text) -> HostText = env::temp_file_name;
        /// Returns the nanoseconds since 1970.
        fn TF_NowNanos() -> u64 = env::now_nanos;
        /// Returns the microseconds since 1970.
        fn TF_NowMicros() -> u64 = env::now_micros;
        /// Returns the seconds since 1970.
        fn TF_NowSeconds() -> u64 = env::now_seconds;
        /// Fills in the options of a thread.
        fn TF_DefaultThreadOptions(options: Out<ThreadOptions>) = env::default_thread_options;
        /// Starts a thread.
        fn TF_StartThread(options: Out<ThreadOptions>, thread_name: Text, work_func: Callback, param: Memory) -> Handle<Thread> = env::start_thread;
        /// Waits for the end of a thread.
        fn TF_JoinThread(thread: Handle<Thread>) = env::join_thread;
        /// Opens a library, for good.
        fn TF_LoadSharedLibrary(library_filename: Text, status: Handle<Status>) -> Handle<OpenLibrary> = env::load_shared_library;
        /// Returns the address of a symbol of a library.
        fn TF_GetSymbolFromLibrary(handle: Handle<OpenLibrary>, symbol_name: Text, status: Handle<Status>) -> Memory = env::symbol_from_library;
    }
    "logging.h": {
        /// Logs a line of a level, formatted as by `printf`; a fatal one fails the call.
        fn TF_Log(level: c_int, fmt: Text, arguments: Arguments) = logging::log => variadic::log;
        /// Logs a line of details, if `TF_CPP_MAX_VLOG_LEVEL` asks for its level.
        fn TF_VLog(level: c_int, fmt: Text, arguments: Arguments) = logging::vlog => variadic::vlog;
        /// Does nothing: TensorFlow logs these lines in builds for its own authors.
        fn TF_DVLog(level: c_int, fmt: Text, arguments: Arguments) = logging::dvlog => variadic::dvlog;
    }
    "c_api.h": {
        /// Returns the version of TensorFlow whose API this is.
        fn TF_Version() -> HostText = version;
        /// Returns the definitions of all operations, as a serialized `OpList`.
        fn TF_GetAllOpList() -> BufferRef = op::all;
        /// Returns the kernels of an operation, as a serialized `KernelList`.
        fn TF_GetRegisteredKernelsForOp(name: Text, status: Handle<Status>) -> BufferRef = kernel::registered_for_op;
        /// Returns all kernels, as a serialized `KernelList`.
        fn TF_GetAllRegisteredKernels(status: Handle<Status>) -> BufferRef = kernel::all_registered;
        /// Makes a tensor that of a serialized `TensorProto`.
        fn TF_TensorFromProto(from: BufferRef, to: Handle<Tensor>, status: Handle<Status>) = tensor::from_proto;
        /// Returns whether an operation has effects.
        fn TF_OpIsStateful(op_type: Text, status: Handle<Status>) -> c_int = op::is_stateful;
        /// Returns whether programs are compiled by XLA: they are not.
        fn TF_GetXlaAutoJitEnabled() -> u8 = xla_is_enabled;
    }
}

/// The version of TensorFlow whose headers the host follows.
pub const VERSION: &std::ffi::CStr = c"2.18.1";

fn version() -> HostText {
    HostText::of(VERSION)
}

fn xla_is_enabled() -> u8 {
    0
}

/// Answers a call of a function that the host does not have: its name is the only argument.
pub extern "C" fn unprovided(name: Text) -> usize {
    fault::enter("");
    let name = name.text("name").unwrap_or_default();
    fault::record(format_args!("{name} is not provided by this host"));
    0
}

/// Returns the function of a name.
pub fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_one_entry_each_and_are_declared_in_c() {
        let mut names: Vec<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FUNCTIONS.len());
        let declaration = |name| find(name).unwrap().declaration();
        assert_eq!(declaration("TF_NewStatus"), "TF_Status* TF_NewStatus(void)");
        assert_eq!(
            declaration("TF_SetShape"),
            "void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims)"
        );
        assert_eq!(
            declaration("TF_GetInput"),
            "void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor, TF_Status* status)"
        );
        for function in FUNCTIONS {
            let declaration = function.declaration();
            assert!(!declaration.contains('<'), "{declaration}");
            assert!(function.summary.ends_with('.'), "{}", function.name);
            assert_ne!(function.address(), 0);
        }
    }
}
