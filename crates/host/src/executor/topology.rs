//! The shape of a function, decoded once at load into what the executor walks.
//!
//! A [`Topology`] is the proof on which the unsafe code of [`frame`](super::frame) stands. It is
//! made only by [`Topology::new`], which computes or checks itself, without trusting the gate of
//! the file:
//!
//! * **Single definition.** Each register is an argument or a result of one kernel, once.
//! * **Use counts.** `uses` is the number of operands that read a register through its slot;
//!   operands of marked kernels read a forwarding value instead and are not counted.
//! * **Wait counts.** `waits` is the number of user edges that arrive at a kernel (at least one:
//!   kernels without operands wait for the entry), and each edge is an operand of that kernel that
//!   reads the register whose user list it stands in.
//! * **Order.** In a synchronous function a kernel reads only registers defined before it.

use std::sync::Arc;

use tfrt_async::Origin;
use tfrt_bef::{Body, FunctionKind, FunctionView, KernelIndex};

use crate::kernel::{Completion, Kernel, KernelEntry, Signature};

/// A stretch of one of the topology's arrays.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    len: u32,
}

impl Span {
    fn of<T>(self, array: &[T]) -> &[T] {
        &array[self.start as usize..self.start as usize + self.len as usize]
    }
}

/// One kernel of a function.
pub(crate) struct KernelNode {
    kernel: Arc<dyn Kernel>,
    name: Arc<str>,
    signature: Arc<Signature>,
    /// Names the kernel to a value whose promise is dropped; kernels that complete later have one.
    pub(crate) origin: Option<Origin>,
    /// Where the kernel stands in the source: an offset for the file's location table.
    pub(crate) location: u32,
    pub(crate) stream: u32,
    /// The operation is marked `bef.nonstrict`: any one settled operand starts it.
    pub(crate) marked: bool,
    /// The number of operands that the kernel takes; one more may follow that only orders.
    pub(crate) n_declared: u32,
    operands: Span,
    attributes: Span,
    functions: Span,
    results: Span,
}

impl KernelNode {
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

/// What becomes of a register's value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisterNode {
    /// Operands that take the value from its slot.
    pub(crate) uses: u32,
    /// How often the function returns it.
    pub(crate) returns: u32,
    /// Whether a marked kernel reads it.
    pub(crate) read_by_marked: bool,
    /// The kernel that defines it and the index of the result, or `None` for an argument.
    pub(crate) producer: Option<(u32, u32)>,
}

/// A register as a definition: who is counted down when it is filled.
pub(crate) struct Definition {
    register: u32,
    users: Span,
    /// How many users at the front of the list take a handle: they need not wait for the value.
    n_early: u32,
}

/// Why a body is not a graph that can be run: a fault of the file that the gate should have found.
#[derive(Debug)]
pub(crate) struct Malformed(pub(crate) String);

/// The shape of one function.
pub(crate) struct Topology {
    kind: FunctionKind,
    root_stream: u32,
    kernels: Box<[KernelNode]>,
    registers: Box<[RegisterNode]>,
    definitions: Box<[Definition]>,
    /// The definition of each register.
    definition_of: Box<[u32]>,
    n_arguments: u32,
    words: Box<[u32]>,
    entry_users: Span,
    results: Span,
    initial_waits: Box<[u32]>,
    /// Registers that have a forwarding value once the frame is shared: those returned.
    returned: Box<[u32]>,
    /// Registers that have one from the start: those that a marked kernel reads.
    read_by_marked: Box<[u32]>,
}

impl Topology {
    /// Decodes `body`, whose kernels by code are `entries`.
    pub(crate) fn new(
        function: &FunctionView<'_>,
        body: &Body<'_>,
        entries: &[KernelEntry],
    ) -> Result<Self, Malformed> {
        Builder::default().build(function.kind(), body, entries)
    }

    /// The shape of a native function: one kernel that takes all arguments and gives all results.
    pub(crate) fn native(entry: &KernelEntry, n_arguments: u32, n_results: u32) -> Self {
        let mut builder = Builder::default();
        let operands = builder.words(0..n_arguments);
        let results = n_arguments..n_arguments + n_results;
        let returned = builder.words(results.clone());
        let waiting = builder.words(std::iter::once(0).filter(|_| n_arguments == 0));
        let signature = entry.signature();
        let user = builder.words(std::iter::once(0));
        let definition = |register, users| Definition {
            register,
            users,
            n_early: 0,
        };
        builder
            .definitions
            .extend((0..n_arguments).map(|register| definition(register, user)));
        let first_result = builder.definitions.len() as u32;
        builder.definitions.extend(
            results
                .clone()
                .map(|register| definition(register, Span::default())),
        );
        let register = |uses, returns, producer| RegisterNode {
            uses,
            returns,
            read_by_marked: false,
            producer,
        };
        let registers = (0..n_arguments)
            .map(|_| register(1, 0, None))
            .chain((0..n_results).map(|index| register(0, 1, Some((0, index)))))
            .collect();
        let kernel = KernelNode {
            kernel: entry.kernel().clone(),
            name: entry.shared_name().clone(),
            signature: entry.shared_signature().clone(),
            origin: origin(entry),
            location: u32::MAX,
            stream: 0,
            marked: false,
            n_declared: if signature.has_trailing_chain(n_arguments as usize) {
                n_arguments - 1
            } else {
                n_arguments
            },
            operands,
            attributes: Span::default(),
            functions: Span::default(),
            results: Span {
                start: first_result,
                len: n_results,
            },
        };
        Topology {
            kind: FunctionKind::Native,
            root_stream: 0,
            kernels: Box::new([kernel]),
            registers,
            definition_of: (0..n_arguments + n_results).collect(),
            definitions: builder.definitions.into(),
            n_arguments,
            entry_users: waiting,
            results: returned,
            words: builder.words.into(),
            initial_waits: Box::new([n_arguments.max(1)]),
            returned: results.collect(),
            read_by_marked: Box::default(),
        }
    }

    pub(crate) fn kind(&self) -> FunctionKind {
        self.kind
    }

    pub(crate) fn root_stream(&self) -> u32 {
        self.root_stream
    }

    pub(crate) fn n_kernels(&self) -> usize {
        self.kernels.len()
    }

    pub(crate) fn kernel(&self, index: u32) -> &KernelNode {
        &self.kernels[index as usize]
    }

    pub(crate) fn operands(&self, node: &KernelNode) -> &[u32] {
        node.operands.of(&self.words)
    }

    pub(crate) fn attributes(&self, node: &KernelNode) -> &[u32] {
        node.attributes.of(&self.words)
    }

    pub(crate) fn functions(&self, node: &KernelNode) -> &[u32] {
        node.functions.of(&self.words)
    }

    /// The register that a kernel's result fills.
    pub(crate) fn result(&self, kernel: u32, index: u32) -> Option<u32> {
        let results = self.kernel(kernel).results.of(&self.definitions);
        results
            .get(index as usize)
            .map(|definition| definition.register)
    }

    pub(crate) fn n_results(&self, kernel: u32) -> usize {
        self.kernel(kernel).results.len as usize
    }

    pub(crate) fn n_arguments(&self) -> u32 {
        self.n_arguments
    }

    pub(crate) fn definition(&self, register: u32) -> &Definition {
        &self.definitions[self.definition_of[register as usize] as usize]
    }

    /// The users that need not wait for the value, and those that do, in the order of the file.
    pub(crate) fn users(&self, definition: &Definition) -> (&[u32], &[u32]) {
        definition
            .users
            .of(&self.words)
            .split_at(definition.n_early as usize)
    }

    pub(crate) fn n_registers(&self) -> usize {
        self.registers.len()
    }

    pub(crate) fn register(&self, index: u32) -> &RegisterNode {
        &self.registers[index as usize]
    }

    /// Kernels without operands: they start with the function.
    pub(crate) fn entry_users(&self) -> &[u32] {
        self.entry_users.of(&self.words)
    }

    /// The registers that the function returns, in order.
    pub(crate) fn result_registers(&self) -> &[u32] {
        self.results.of(&self.words)
    }

    pub(crate) fn initial_waits(&self) -> &[u32] {
        &self.initial_waits
    }

    pub(crate) fn returned(&self) -> &[u32] {
        &self.returned
    }

    pub(crate) fn read_by_marked(&self) -> &[u32] {
        &self.read_by_marked
    }
}

#[derive(Default)]
struct Builder {
    words: Vec<u32>,
    definitions: Vec<Definition>,
}

impl Builder {
    fn words(&mut self, words: impl IntoIterator<Item = u32>) -> Span {
        let start = self.words.len();
        self.words.extend(words);
        Span {
            start: start as u32,
            len: (self.words.len() - start) as u32,
        }
    }

    fn build(
        mut self,
        kind: FunctionKind,
        body: &Body<'_>,
        entries: &[KernelEntry],
    ) -> Result<Topology, Malformed> {
        let n_registers = body.n_registers();
        let n_kernels = body.n_kernels();
        let n_arguments = body.n_arguments();
        let mut registers: Vec<Option<RegisterNode>> = vec![None; n_registers];
        let mut define = |register: u32, producer| {
            let slot = registers
                .get_mut(register as usize)
                .ok_or_else(|| Malformed(format!("register {register} does not exist")))?;
            if slot.is_some() {
                return Err(Malformed(format!("register {register} is defined twice")));
            }
            *slot = Some(RegisterNode {
                uses: 0,
                returns: 0,
                read_by_marked: false,
                producer,
            });
            Ok(())
        };
        for argument in 0..n_arguments {
            define(argument as u32, None)?;
        }
        for kernel in 0..n_kernels {
            for (result, register) in body.kernel(file_index(kernel)).results().iter().enumerate() {
                define(*register, Some((kernel as u32, result as u32)))?;
            }
        }
        let mut registers: Vec<RegisterNode> = registers
            .into_iter()
            .enumerate()
            .map(|(index, node)| {
                node.ok_or_else(|| Malformed(format!("register {index} is never defined")))
            })
            .collect::<Result<_, _>>()?;

        // Reads, and the kernels that read each register, to hold the user lists against.
        let mut readers: Vec<u32> = vec![0; n_registers + 1];
        let mut returned = Vec::new();
        for kernel in 0..n_kernels {
            let view = body.kernel(file_index(kernel));
            for register in view.operands() {
                let node = registers
                    .get_mut(*register as usize)
                    .ok_or_else(|| Malformed(format!("register {register} does not exist")))?;
                if view.nonstrict() {
                    node.read_by_marked = true;
                } else {
                    node.uses += 1;
                }
                if kind == FunctionKind::Sync
                    && node
                        .producer
                        .is_some_and(|(producer, _)| producer as usize >= kernel)
                {
                    return Err(Malformed(format!("register {register} is read too early")));
                }
                readers[*register as usize + 1] += 1;
            }
        }
        for register in body.result_registers().iter().copied() {
            let node = registers
                .get_mut(register as usize)
                .ok_or_else(|| Malformed(format!("register {register} does not exist")))?;
            if node.returns == 0 {
                returned.push(register);
            }
            node.returns += 1;
        }
        for index in 0..n_registers {
            readers[index + 1] += readers[index];
        }
        let mut reader_kernels = vec![0u32; readers[n_registers] as usize];
        let mut next = readers.clone();
        for kernel in 0..n_kernels {
            for register in body.kernel(file_index(kernel)).operands() {
                let place = &mut next[*register as usize];
                reader_kernels[*place as usize] = kernel as u32;
                *place += 1;
            }
        }
        let mut check = UserCheck {
            readers,
            reader_kernels,
            balance: vec![0; n_kernels],
        };

        for argument in 0..n_arguments {
            let users = body.argument_users(argument);
            self.define(argument as u32, users, body, entries, &mut check)?;
        }
        let mut kernels = Vec::with_capacity(n_kernels);
        let mut initial_waits = Vec::with_capacity(n_kernels);
        for kernel in 0..n_kernels {
            let view = body.kernel(file_index(kernel));
            let entry = &entries[view.code().index()];
            let signature = entry.signature();
            let n_operands = view.operands().len();
            let first = self.definitions.len() as u32;
            for (index, register) in view.results().iter().enumerate() {
                self.define(*register, view.users(index), body, entries, &mut check)?;
            }
            let trailing = signature.has_trailing_chain(n_operands);
            kernels.push(KernelNode {
                kernel: entry.kernel().clone(),
                name: entry.shared_name().clone(),
                signature: entry.shared_signature().clone(),
                origin: origin(entry),
                location: view.location().0,
                stream: view.stream(),
                marked: view.nonstrict(),
                n_declared: (n_operands - usize::from(trailing)) as u32,
                operands: self.words(view.operands().iter().copied()),
                attributes: self.words(view.attributes().iter().copied()),
                functions: self.words(view.functions().iter().copied()),
                results: Span {
                    start: first,
                    len: view.results().len() as u32,
                },
            });
            initial_waits.push(if view.nonstrict() {
                1
            } else {
                n_operands.max(1) as u32
            });
        }

        let without_operands =
            (0..n_kernels).filter(|kernel| body.kernel(file_index(*kernel)).operands().is_empty());
        if !body
            .entry_users()
            .iter()
            .map(|user| (*user - 1) as usize)
            .eq(without_operands)
        {
            return Err(Malformed(
                "the entry does not start the kernels without operands".into(),
            ));
        }
        let entry_users = self.words(body.entry_users().iter().map(|user| user - 1));
        let results = self.words(body.result_registers().iter().copied());
        let read_by_marked = (0..n_registers as u32)
            .filter(|register| registers[*register as usize].read_by_marked)
            .collect();
        Ok(Topology {
            kind,
            root_stream: body.root_stream(),
            kernels: kernels.into(),
            registers: registers.into(),
            definition_of: definition_of(&self.definitions, n_registers),
            definitions: self.definitions.into(),
            n_arguments: n_arguments as u32,
            words: self.words.into(),
            entry_users,
            results,
            initial_waits: initial_waits.into(),
            returned: returned.into(),
            read_by_marked,
        })
    }

    /// Records the users of `register`, those first that take a handle.
    fn define(
        &mut self,
        register: u32,
        users: &[u32],
        body: &Body<'_>,
        entries: &[KernelEntry],
        check: &mut UserCheck,
    ) -> Result<(), Malformed> {
        check.users(register, users)?;
        let takes_handle = |user: &u32| {
            let view = body.kernel(KernelIndex(*user));
            let signature = entries[view.code().index()].signature();
            // Few kernels take handles; the others may have very many operands.
            let some = signature.operands.iter().any(|operand| !operand.strict);
            let mut uses = view.operands().iter().enumerate();
            some && !view.nonstrict()
                && uses.all(|(index, used)| *used != register || !signature.is_strict(index))
        };
        let (early, late): (Vec<u32>, Vec<u32>) = users.iter().partition(|user| takes_handle(user));
        let n_early = early.len() as u32;
        let users = self.words(early.into_iter().chain(late).map(|user| user - 1));
        self.definitions.push(Definition {
            register,
            users,
            n_early,
        });
        Ok(())
    }
}

fn definition_of(definitions: &[Definition], n_registers: usize) -> Box<[u32]> {
    let mut of = vec![0; n_registers].into_boxed_slice();
    for (index, definition) in definitions.iter().enumerate() {
        of[definition.register as usize] = index as u32;
    }
    of
}

fn origin(entry: &KernelEntry) -> Option<Origin> {
    let later = entry.signature().completion != Completion::Synchronous;
    later.then(|| Origin::new(entry.name().to_owned()))
}

/// The number of a kernel in the file, where the pseudo kernel is number 0.
fn file_index(kernel: usize) -> KernelIndex {
    KernelIndex(kernel as u32 + 1)
}

/// Holds user lists against operand lists: equal as multisets.
struct UserCheck {
    readers: Vec<u32>,
    reader_kernels: Vec<u32>,
    balance: Vec<i64>,
}

impl UserCheck {
    fn users(&mut self, register: u32, users: &[u32]) -> Result<(), Malformed> {
        let start = self.readers[register as usize] as usize;
        let end = self.readers[register as usize + 1] as usize;
        let readers = &self.reader_kernels[start..end];
        for reader in readers {
            self.balance[*reader as usize] += 1;
        }
        let mut fits = users.len() == readers.len();
        for user in users {
            match (*user as usize)
                .checked_sub(1)
                .and_then(|user| self.balance.get_mut(user))
            {
                Some(balance) => *balance -= 1,
                None => fits = false,
            }
        }
        for kernel in readers.iter().map(|reader| *reader as usize) {
            fits &= self.balance[kernel] == 0;
            self.balance[kernel] = 0;
        }
        if fits {
            Ok(())
        } else {
            Err(Malformed(format!("users of register {register}")))
        }
    }
}
