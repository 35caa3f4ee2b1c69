//! The state of a node ([`Instance`]), and a kernel bound to calls of one kind ([`BoundKernel`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use smallvec::SmallVec;
use tfrt_host::{Error, LockMode};

use super::outcome::{Outcome, running};
use crate::attrs::Attr;
use crate::fault;
use crate::functions::construction::{Construction, Node};
use crate::handle::Handle;
use crate::node::Resolved;
use crate::registry::KernelDef;

/// The state of a node: what the kernel's `create` has returned. Calls share it; it is deleted with the last of them.
pub struct Instance {
    /// The kernel.
    pub kernel: Arc<KernelDef>,
    /// The node.
    pub node: Arc<Node>,
    state: usize,
    wants_alone: AtomicBool,
}

impl Instance {
    /// Has a kernel make its state for a node.
    ///
    /// # Errors
    ///
    /// Those of the plugin; `Internal` if it throws, `InvalidArgument` for wrong uses of the C API.
    pub fn new(kernel: &Arc<KernelDef>, node: &Arc<Node>) -> Result<Instance, Error> {
        let mut instance = Instance {
            kernel: kernel.clone(),
            node: node.clone(),
            state: 0,
            wants_alone: AtomicBool::new(false),
        };
        if kernel.create.is_null() {
            return Ok(instance);
        }
        let construction = Handle::new(Construction {
            node: node.clone(),
            failure: None,
        });
        let (created, faults) = running(kernel, || kernel.create.call(&[construction.bits()]));
        let ended = construction.take_quietly();
        let (state, thrown) = match created {
            Ok(state) => (state, None),
            Err(exception) => (0, Some(exception)),
        };
        instance.state = state;
        let outcome = Outcome {
            thrown,
            told: ended.ok().and_then(|ended| ended.failure),
            faults,
        };
        // The state of a failed node is deleted as well, by dropping the instance.
        match outcome.error(kernel) {
            Some(error) => Err(error.with_note("while the kernel's state was made")),
            None => Ok(instance),
        }
    }
}

impl Instance {
    /// Notes that a call had locks for readers, and wanted some for itself.
    pub fn wants_alone(&self) {
        // Ordering: a guess, by which nothing is read.
        self.wants_alone.store(true, Ordering::Relaxed);
    }

    /// Returns how the variables of a call are locked before its kernel starts.
    pub fn lock_mode(&self) -> LockMode {
        let stated = self.node.attrs.get("use_locking");
        // Ordering: as above.
        match stated {
            Some(Attr::Bool(false)) if !self.wants_alone.load(Ordering::Relaxed) => LockMode::Read,
            _ => LockMode::Write,
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.kernel.delete.is_null() {
            return;
        }
        let (deleted, faults) = running(&self.kernel, || self.kernel.delete.call(&[self.state]));
        let text = self.kernel.text();
        if let Err(exception) = deleted {
            fault::record(format_args!(
                "{text} {exception} while its state was deleted"
            ));
        }
        for one in faults {
            fault::record(format_args!("{one}, while the state of {text} was deleted"));
        }
    }
}

/// A number that facts of a context do not tell.
pub const UNTOLD: u8 = u8::MAX;

/// Returns a number as facts of a context tell it.
pub(super) fn told_byte<N: Copy + TryInto<u8>>(number: &N) -> u8 {
    (*number).try_into().unwrap_or(UNTOLD)
}

/// A kernel bound to calls of one kind: its state, and what is known of inputs and outputs before a call.
pub struct BoundKernel {
    /// The state of the node.
    pub instance: Arc<Instance>,
    /// The node with its inputs and outputs.
    pub resolved: Arc<Resolved>,
    /// Types of the outputs, those of `resolved`: a call looks at no other memory of its node than this.
    pub(super) outputs: SmallVec<[i32; 2]>,
    /// The first of those as a plugin reads them of a context, one byte each: [`UNTOLD`] where there is none, or more to say.
    pub(super) told_outputs: u64,
    /// The kernel's state, that of `instance`.
    pub(super) state: usize,
    /// Whether there may be variables among the inputs.
    pub(super) may_have_variables: bool,
}

impl BoundKernel {
    /// Puts together what calls have in common whose inputs may be variables, or not.
    pub fn new(
        instance: Arc<Instance>,
        resolved: Arc<Resolved>,
        may_have_variables: bool,
    ) -> BoundKernel {
        let mut told = [UNTOLD; 8];
        for (place, code) in told.iter_mut().zip(&*resolved.outputs) {
            *place = told_byte(code);
        }
        BoundKernel {
            outputs: SmallVec::from_slice(&resolved.outputs),
            told_outputs: u64::from_le_bytes(told),
            state: instance.state,
            may_have_variables,
            instance,
            resolved,
        }
    }

    /// Returns whether there may be variables among the inputs.
    #[inline]
    pub fn may_have_variables(&self) -> bool {
        self.may_have_variables
    }

    /// Returns the types of the outputs.
    pub fn outputs(&self) -> &[i32] {
        &self.outputs
    }
}
