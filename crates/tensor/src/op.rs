//! [`OpKernel`]: a kernel of an operation on one kind of device; [`Prepared`]: a kernel's prepared constants.
//!
//! A row of `tfrt-ops` says what an operation is; crates of kernels say how it is run. Eager calls come here directly;
//! programs by kernels of the host that [`register`] makes of them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tfrt_host::codec::Encoder;
use tfrt_host::{
    AnyAsyncValue, DType, DeviceKind, DeviceRef, Error, ExecutionContext, Heap, Value,
};
use tfrt_ops::{Attrs, KernelQuery, OpDef};

mod device;
mod program;
mod tensor_program;
mod tensors;

pub use device::DeviceCall;
pub use program::register;
pub use tensor_program::register_tensors;
pub use tensors::{
    Formats, Operands, Output, Outputs, TensorCall, TensorKernel, TensorRunFn, binary_of, made,
    unary_of, unsupported,
};

/// A call of an operation on values of any kind.
#[derive(Clone, Copy)]
pub struct OpCall<'a> {
    /// The operation's row.
    pub op: &'a OpDef,
    /// Attributes, by the names of the row.
    pub attrs: Attrs<'a>,
    /// Operands, all there: tensors, and [`NoValue`](crate::NoValue) for those that are left out.
    pub inputs: &'a [AnyAsyncValue],
    /// Number of results that the caller takes: the first ones.
    pub n_results: usize,
    /// Prepared form of the operands that are left out, if the kernel was asked to prepare.
    pub prepared: Option<&'a Prepared>,
    /// Device of the call; `None` for the host's processor.
    pub device: Option<&'a DeviceRef>,
    /// The request that it runs for.
    pub execution: &'a ExecutionContext,
}

impl fmt::Debug for OpCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpCall")
            .field("op", &self.op.name)
            .field("attrs", &self.attrs)
            .field("n_results", &self.n_results)
            .finish_non_exhaustive()
    }
}

/// Results of a run: values that may be pending.
pub type OpResults = SmallVec<[AnyAsyncValue; 1]>;

/// Runs an operation.
///
/// # Errors
///
/// `InvalidArgument` for operands and attributes that don't fit, `ResourceExhausted` if there is no memory for the
/// results. What goes wrong later fails the results.
pub type RunFn = fn(&OpCall<'_>) -> Result<OpResults, Error>;

/// Function by which a kernel refuses what it does not run: returns whether the kernel takes a node, or a call, whose types
/// it takes.
pub type AcceptFn = fn(&KernelQuery<'_>) -> bool;

/// A kernel: the function that runs an operation on one kind of device.
///
/// Of several kernels of one row and kind the first one is chosen that takes the types of the operands and accepts the
/// attributes and the number of results, by priority.
#[derive(Clone, Copy)]
pub struct OpKernel {
    /// The name of the row.
    pub op: &'static str,
    /// The kind of device.
    pub device: DeviceKind,
    /// The types of elements that all operands may have; any if there are none.
    pub types: &'static [DType],
    /// Says by attributes, types and number of results whether the kernel takes a node; all if there is none.
    pub accepts: Option<AcceptFn>,
    /// The places of operands that stay on the host: extents, positions. Their types are not asked for.
    pub on_host: &'static [usize],
    /// Priority: kernels of higher ones come first.
    pub priority: i32,
    /// Preparation of constants, if the kernel has any.
    pub prepare: Option<Prepare>,
    /// Runs the operation. All operands may be there, and nothing prepared.
    pub run: RunFn,
}

/// Preparation of constants, once for each node of a model: packed weights, parsed attributes.
#[derive(Clone, Copy, Debug)]
pub struct Prepare {
    /// The places of the operands that are prepared. All of them that are not left out must be constants.
    pub inputs: &'static [usize],
    /// The types of elements that the first prepared operand may have; any if there are none.
    pub types: &'static [DType],
    /// Whether the attributes are prepared, too: then calls have none.
    pub takes_attributes: bool,
    /// Prepares the operands. Those that are not prepared are left out.
    pub make: PrepareFn,
}

/// Function that prepares an operation. It returns `None` where the kernel does as well with the constants
/// themselves, but never if attributes are prepared.
///
/// # Errors
///
/// `InvalidArgument` for constants and attributes that don't fit, `ResourceExhausted` if there is no memory.
pub type PrepareFn = fn(&OpCall<'_>) -> Result<Option<Prepared>, Error>;

/// Prepared constants of an operation: made when a model is opened, or when it is compiled and stored in its file;
/// shared by all calls, and dropped with the model.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The row of the operation that it is for.
    pub op: &'static str,
    /// Prepared state. Only the kernel that made it knows its type.
    pub state: Arc<dyn PreparedState>,
}

impl Value for Prepared {
    const NAME: &'static str = "!graph.prepared";
    type Storage = Heap;
}

/// State that a kernel has prepared.
pub trait PreparedState: Any + fmt::Debug + Send + Sync {
    /// Writes the state for a file, laid out for the encoder's target. Nothing is written if files keep the constants
    /// instead.
    fn encode(&self, _: &mut Encoder) -> Option<Result<(), Error>> {
        None
    }
}

impl fmt::Debug for OpKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpKernel")
            .field("op", &self.op)
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

impl OpKernel {
    /// Makes a kernel for operands of any types, which prepares nothing.
    pub const fn new(op: &'static str, device: DeviceKind, run: RunFn) -> OpKernel {
        OpKernel {
            op,
            device,
            types: &[],
            accepts: None,
            on_host: &[],
            priority: 0,
            prepare: None,
            run,
        }
    }

    /// Sets the types of elements that all operands may have.
    #[must_use]
    pub const fn types(self, types: &'static [DType]) -> OpKernel {
        OpKernel { types, ..self }
    }

    /// Sets the places of operands that stay on the host, since results' extents follow from their values.
    #[must_use]
    pub const fn on_host(self, on_host: &'static [usize]) -> OpKernel {
        OpKernel { on_host, ..self }
    }

    /// Sets the function that says which nodes the kernel takes, of those whose types it takes. A model's other nodes run on
    /// the host. A kernel that has its attributes prepared must not look at them: calls have none.
    ///
    /// # Examples
    ///
    /// ```
    /// use tfrt_host::{DType, DeviceKind};
    /// use tfrt_tensor::op::{OpKernel, OpResults};
    ///
    /// const SUM: OpKernel = OpKernel::new("reduce", DeviceKind::CPU, |_| Ok(OpResults::new()))
    ///     .types(&[DType::F32])
    ///     .accepts(|query| query.attrs.text("kind") == "sum");
    /// ```
    #[must_use]
    pub const fn accepts(self, accepts: AcceptFn) -> OpKernel {
        OpKernel {
            accepts: Some(accepts),
            ..self
        }
    }

    /// Sets the priority among kernels of the same row and kind.
    #[must_use]
    pub const fn priority(self, priority: i32) -> OpKernel {
        OpKernel { priority, ..self }
    }

    /// Returns whether the kernel takes operands of these types, as far as they are known.
    pub fn takes_types(&self, types: &[Option<DType>]) -> bool {
        let takes = |(place, dtype): (usize, &Option<DType>)| {
            self.on_host.contains(&place) || dtype.is_none_or(|dtype| self.types.contains(&dtype))
        };
        self.types.is_empty() || types.iter().enumerate().all(takes)
    }

    /// Returns whether the kernel takes a node or a call of its row.
    pub fn takes(&self, query: &KernelQuery<'_>) -> bool {
        self.takes_types(query.types) && self.accepts.is_none_or(|accepts| accepts(query))
    }
}

/// Returns the first kernel of the highest priority that runs a node or a call on a kind of device.
pub fn select<'k>(
    kernels: &'k [OpKernel],
    device: DeviceKind,
    query: &KernelQuery<'_>,
) -> Option<&'k OpKernel> {
    let own = kernels
        .iter()
        .filter(|kernel| kernel.op == query.op && kernel.device == device && kernel.takes(query));
    // The last of the greatest is returned.
    own.rev().max_by_key(|kernel| kernel.priority)
}

/// Returns whether a kind of device has any kernel of a row.
pub fn has_kernel(kernels: &[OpKernel], op: &str, device: DeviceKind) -> bool {
    let is_own = |kernel: &OpKernel| kernel.op == op && kernel.device == device;
    kernels.iter().any(is_own)
}

/// Makes the error that no kernel of a device takes a call: for which reason, types or others.
#[cold]
pub fn no_kernel(
    kernels: &[OpKernel],
    device: &DeviceRef,
    name: &str,
    query: &KernelQuery<'_>,
) -> Error {
    let takes_types = |kernel: &OpKernel| {
        kernel.op == query.op && kernel.device == device.kind() && kernel.takes_types(query.types)
    };
    let device_name = device.name();
    if kernels.iter().any(takes_types) {
        let kind = match query.attrs.text("kind") {
            "" => String::new(),
            kind => format!(" of kind '{}'", kind.escape_debug()),
        };
        let n_results = match query.n_results {
            None | Some(1) => String::new(),
            Some(n_results) => format!(" with {n_results} results"),
        };
        return Error::unimplemented(format!(
            "{name}: no kernel on {device_name} takes the attributes of this call{kind}{n_results}"
        ));
    }
    let found: Vec<String> = query.types.iter().flatten().map(DType::to_string).collect();
    Error::invalid_argument(format!(
        "{name}: no kernel on {device_name} takes operands of {}",
        found.join(", ")
    ))
}

/// A kernel of a row on the processor.
#[derive(Clone, Copy, Debug)]
pub enum RowKernel {
    /// A kernel on tensors, which may reuse memory of operands.
    Tensors(TensorKernel),
    /// A kernel on values of any kind.
    Values(OpKernel),
}

#[cfg(test)]
mod tests {
    use tfrt_ops::AttrValue;

    use super::*;

    fn query<'a>(op: &'a str, types: &'a [Option<DType>]) -> KernelQuery<'a> {
        KernelQuery {
            op,
            attrs: Attrs::new(&(), &[]),
            types,
            n_results: Some(1),
        }
    }

    #[test]
    fn kernels_are_chosen_by_types_then_by_priority() {
        let kernel = |op, priority| {
            OpKernel::new(op, DeviceKind::CPU, |_| Ok(OpResults::new())).priority(priority)
        };
        let all = [
            kernel("relu", 0),
            kernel("relu", 2).types(&[DType::F32]),
            kernel("relu", 2).types(&[DType::F32, DType::F64]),
            kernel("tanh", 9),
        ];
        let chosen = |dtype: Option<DType>| {
            let found = select(&all, DeviceKind::CPU, &query("relu", &[dtype])).unwrap();
            all.iter().position(|kernel| std::ptr::eq(kernel, found))
        };
        assert_eq!(chosen(Some(DType::F32)), Some(1));
        assert_eq!(chosen(Some(DType::F64)), Some(2));
        assert_eq!(chosen(Some(DType::I8)), Some(0));
        assert_eq!(chosen(None), Some(1));
        let other = DeviceKind::new("other");
        assert!(select(&all, other, &query("relu", &[None])).is_none());
        assert!(!all[1].takes_types(&[Some(DType::F32), Some(DType::I8)]));
        let reshape = all[1].on_host(&[1]);
        assert!(reshape.takes_types(&[Some(DType::F32), Some(DType::I64)]));
        assert!(!reshape.takes_types(&[Some(DType::I64), Some(DType::I64)]));
    }

    #[test]
    fn kernels_refuse_attributes_and_results() {
        let kernel = |priority| {
            OpKernel::new("reduce", DeviceKind::CPU, |_| Ok(OpResults::new())).priority(priority)
        };
        let all = [
            kernel(0),
            kernel(1).accepts(|query| query.attrs.text("kind") == "sum"),
            kernel(2).accepts(|query| query.n_results.is_some_and(|n| n > 1)),
        ];
        let attrs = tfrt_ops::find("reduce").unwrap().attrs;
        let chosen = |kind: &'static str, n_results| {
            let stated: &[(&str, AttrValue<'_>)] = &[("kind", AttrValue::Bytes(kind.as_bytes()))];
            let asked = KernelQuery {
                attrs: Attrs::new(&stated, attrs),
                n_results,
                ..query("reduce", &[Some(DType::F32)])
            };
            select(&all, DeviceKind::CPU, &asked).map(|kernel| kernel.priority)
        };
        assert_eq!(chosen("sum", Some(1)), Some(1));
        assert_eq!(chosen("max", Some(1)), Some(0));
        assert_eq!(chosen("max", Some(2)), Some(2));
        assert_eq!(chosen("sum", None), Some(1));
        assert!(has_kernel(&all[2..], "reduce", DeviceKind::CPU));
    }
}
