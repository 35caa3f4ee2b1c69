//! A function, decoded once at load into what the executor walks: its [`Shape`], and what is to be
//! known of each kernel.

use std::sync::Arc;

use tfrt_async::Origin;
use tfrt_bef::{Body, FunctionKind, FunctionView, KernelIndex, KernelView};

use super::shape::{Malformed, Shape, ShapeBuilder, Span};
use crate::kernel::{Completion, Kernel, KernelEntry, Signature};

/// One kernel of a function.
pub(crate) struct KernelNode {
    kernel: Arc<dyn Kernel>,
    name: Arc<str>,
    signature: Arc<Signature>,
    /// Names the kernel to a value whose promise is dropped; kernels that complete later have one.
    pub(crate) origin: Option<Origin>,
    /// Where the kernel stands in the source: an offset for the file's location table.
    pub(crate) location: u32,
    /// The operation is marked `bef.nonstrict`: any one settled operand starts it.
    pub(crate) is_marked: bool,
    /// The number of operands that the kernel takes; one more may follow that only orders.
    pub(crate) n_declared: u32,
    attributes: Span,
    functions: Span,
}

impl KernelNode {
    fn new(entry: &KernelEntry, n_operands: usize) -> Self {
        let signature = entry.signature();
        let later = signature.completion != Completion::Synchronous;
        let trailing = usize::from(signature.has_trailing_chain(n_operands));
        KernelNode {
            kernel: entry.kernel().clone(),
            name: entry.shared_name().clone(),
            signature: entry.shared_signature().clone(),
            origin: later.then(|| Origin::new(entry.name().to_owned())),
            location: u32::MAX,
            is_marked: false,
            n_declared: (n_operands - trailing) as u32,
            attributes: Span::default(),
            functions: Span::default(),
        }
    }

    #[inline]
    pub(crate) fn kernel(&self) -> &dyn Kernel {
        &*self.kernel
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn signature(&self) -> &Signature {
        &self.signature
    }
}

/// A function as the executor walks it.
pub(crate) struct Topology {
    kind: FunctionKind,
    root_stream: u32,
    shape: Arc<Shape>,
    kernels: Box<[KernelNode]>,
    streams: Box<[u32]>,
    words: Box<[u32]>,
}

impl Topology {
    /// Decodes `body`, whose kernels by code are `entries`.
    ///
    /// # Errors
    ///
    /// If the body is not a graph that can be run: a fault that the gate of the file should have
    /// found.
    pub(crate) fn new(
        function: &FunctionView<'_>,
        body: &Body<'_>,
        entries: &[KernelEntry],
    ) -> Result<Self, Malformed> {
        let n_kernels = body.n_kernels();
        let mut kernels = Vec::with_capacity(n_kernels);
        let mut streams = Vec::with_capacity(n_kernels);
        let mut words = Vec::new();
        let mut shape = ShapeBuilder::default();
        let mut users = Users {
            body,
            entries,
            early: Vec::new(),
            late: Vec::new(),
        };
        for argument in 0..body.n_arguments() {
            users.split(argument as u32, body.argument_users(argument));
            shape.argument(argument as u32, &users.early, &users.late);
        }
        for view in body.kernels() {
            shape.kernel(view.operands(), view.nonstrict());
            for (index, register) in view.results().iter().enumerate() {
                users.split(*register, view.users(index));
                shape.result(*register, &users.early, &users.late);
            }
            let entry = &entries[view.code().index()];
            let mut node = KernelNode::new(entry, view.operands().len());
            node.location = view.location().0;
            node.is_marked = view.nonstrict();
            node.attributes = append(&mut words, view.attributes());
            node.functions = append(&mut words, view.functions());
            kernels.push(node);
            streams.push(view.stream());
        }
        users.split(u32::MAX, body.entry_users());
        let in_order = function.kind() == FunctionKind::Sync;
        let shape = shape.finish(&users.late, body.result_registers(), in_order)?;
        Ok(Topology {
            kind: function.kind(),
            root_stream: body.root_stream(),
            shape: Arc::new(shape),
            kernels: kernels.into(),
            streams: streams.into(),
            words: words.into(),
        })
    }

    /// A native function: one kernel that takes all arguments and gives all results.
    pub(crate) fn native(entry: &KernelEntry, n_arguments: u32, n_results: u32) -> Self {
        let mut shape = ShapeBuilder::default();
        let arguments: Vec<u32> = (0..n_arguments).collect();
        for argument in &arguments {
            shape.argument(*argument, &[], &[0]);
        }
        shape.kernel(&arguments, false);
        let results: Vec<u32> = (n_arguments..n_arguments + n_results).collect();
        for result in &results {
            shape.result(*result, &[], &[]);
        }
        let entry_users: &[u32] = if n_arguments == 0 { &[0] } else { &[] };
        let shape = shape
            .finish(entry_users, &results, false)
            .expect("one kernel, wired in full");
        Topology {
            kind: FunctionKind::Native,
            root_stream: 0,
            shape: Arc::new(shape),
            kernels: Box::new([KernelNode::new(entry, arguments.len())]),
            streams: Box::new([0]),
            words: Box::default(),
        }
    }

    pub(crate) fn kind(&self) -> FunctionKind {
        self.kind
    }

    pub(crate) fn root_stream(&self) -> u32 {
        self.root_stream
    }

    pub(crate) fn shape(&self) -> &Arc<Shape> {
        &self.shape
    }

    #[inline]
    pub(crate) fn kernel(&self, index: u32) -> &KernelNode {
        &self.kernels[index as usize]
    }

    #[inline]
    pub(crate) fn stream(&self, kernel: u32) -> u32 {
        self.streams[kernel as usize]
    }

    pub(crate) fn attributes(&self, node: &KernelNode) -> &[u32] {
        node.attributes.of(&self.words)
    }

    pub(crate) fn functions(&self, node: &KernelNode) -> &[u32] {
        node.functions.of(&self.words)
    }
}

fn append(words: &mut Vec<u32>, more: &[u32]) -> Span {
    let start = words.len();
    words.extend_from_slice(more);
    Span::new(start, more.len())
}

/// Parts the users of a register: those that can do with a handle, and the others. The numbers of
/// kernels in the file start at 1, ours at 0.
struct Users<'a> {
    body: &'a Body<'a>,
    entries: &'a [KernelEntry],
    early: Vec<u32>,
    late: Vec<u32>,
}

impl Users<'_> {
    fn split(&mut self, register: u32, users: &[u32]) {
        self.early.clear();
        self.late.clear();
        for user in users {
            let view = self.body.kernel(KernelIndex(*user));
            let part = if self.takes_handle(&view, register) {
                &mut self.early
            } else {
                &mut self.late
            };
            part.push(user - 1);
        }
    }

    fn takes_handle(&self, view: &KernelView<'_>, register: u32) -> bool {
        let signature = self.entries[view.code().index()].signature();
        // Few kernels take handles; the others may have very many operands.
        let some = signature.operands.iter().any(|operand| !operand.strict);
        let mut uses = view.operands().iter().enumerate();
        some && !view.nonstrict()
            && uses.all(|(index, used)| *used != register || !signature.is_strict(index))
            && view.operands().contains(&register)
    }
}
