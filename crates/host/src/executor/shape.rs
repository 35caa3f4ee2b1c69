//! The wiring of a function: which kernel reads and fills which register, and who waits for whom.
//!
//! A [`Shape`] is the proof on which the unsafe code of [`registers`](super::registers) stands. It
//! is made only by [`ShapeBuilder::finish`], which computes or checks, without trusting the gate of
//! the file, that
//!
//! * registers and kernels exist wherever they are named;
//! * each register is an argument or a result of one kernel, once;
//! * the users of a register are the kernels that read it, once for each operand that is it;
//! * a kernel waits for as many counts as it has operands (for one if it has none, or is marked),
//!   and the entry starts exactly those without operands;
//! * in a function that may run in order, kernels read arguments and results of kernels before.

use std::fmt;

/// A stretch of an array.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// The `len` elements from `start` on.
    pub(super) fn new(start: usize, len: usize) -> Self {
        Span {
            start: start as u32,
            len: len as u32,
        }
    }

    #[inline]
    pub(super) fn of<T>(self, array: &[T]) -> &[T] {
        &array[self.start as usize..][..self.len as usize]
    }

    pub(super) fn len(self) -> u32 {
        self.len
    }

    /// The element's index in the array, if the span is that long.
    #[inline]
    pub(super) fn index(self, position: u32) -> Option<u32> {
        (position < self.len).then(|| self.start + position)
    }
}

/// What a kernel reads and fills.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelShape {
    operands: Span,
    /// Indexes of definitions.
    pub(super) results: Span,
    /// How many counts start it.
    pub(super) wait: u32,
    /// Any one settled operand starts it; its operands are read as handles.
    pub(super) is_marked: bool,
}

/// A register, seen from where it is filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition {
    pub(super) register: u32,
    /// Operands, of kernels that are not marked, that take the value from the register's slot.
    pub(super) uses: u32,
    /// How often the function returns it.
    pub(super) returns: u32,
    users: Span,
    /// How many users at the front of the list can do with a handle.
    n_early: u32,
}

/// Why wiring is not a graph that can be run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The wiring of a function, checked.
#[derive(Debug)]
pub(crate) struct Shape {
    kernels: Box<[KernelShape]>,
    definitions: Box<[Definition]>,
    words: Box<[u32]>,
    /// The definition of each register.
    definition_of: Box<[u32]>,
    /// The kernel that fills each register, or [`ARGUMENT`].
    producers: Box<[u32]>,
    n_arguments: u32,
    entry_users: Span,
    results: Span,
    returned: Span,
    read_by_marked: Span,
    in_order: bool,
}

/// Stands for no kernel.
const ARGUMENT: u32 = u32::MAX;

impl Shape {
    pub(crate) fn n_registers(&self) -> usize {
        self.producers.len()
    }

    pub(crate) fn n_kernels(&self) -> usize {
        self.kernels.len()
    }

    pub(crate) fn n_arguments(&self) -> usize {
        self.n_arguments as usize
    }

    pub(crate) fn n_results_of(&self, kernel: u32) -> usize {
        self.kernel(kernel).results.len() as usize
    }

    /// The kernel that fills a register, unless it is an argument.
    pub(crate) fn producer(&self, register: u32) -> Option<u32> {
        let producer = self.producers[register as usize];
        (producer != ARGUMENT).then_some(producer)
    }

    /// Whether some user of a register can do with a handle.
    pub(crate) fn has_early_users(&self, register: u32) -> bool {
        self.definition(self.definition_of(register)).n_early > 0
    }

    /// The registers that the function returns, in order.
    pub(crate) fn result_registers(&self) -> &[u32] {
        self.results.of(&self.words)
    }

    #[inline]
    pub(super) fn kernel(&self, index: u32) -> &KernelShape {
        &self.kernels[index as usize]
    }

    #[inline]
    pub(super) fn operands(&self, kernel: &KernelShape) -> &[u32] {
        kernel.operands.of(&self.words)
    }

    #[inline]
    pub(super) fn definition(&self, index: u32) -> &Definition {
        &self.definitions[index as usize]
    }

    pub(super) fn definition_of(&self, register: u32) -> u32 {
        self.definition_of[register as usize]
    }

    /// The users that can do with a handle, and those that need the value.
    #[inline]
    pub(super) fn users(&self, definition: &Definition) -> (&[u32], &[u32]) {
        definition
            .users
            .of(&self.words)
            .split_at(definition.n_early as usize)
    }

    /// The kernels without operands.
    pub(super) fn entry_users(&self) -> &[u32] {
        self.entry_users.of(&self.words)
    }

    /// The returned registers, each once.
    pub(super) fn returned(&self) -> &[u32] {
        self.returned.of(&self.words)
    }

    /// The registers that marked kernels read, each once.
    pub(super) fn read_by_marked(&self) -> &[u32] {
        self.read_by_marked.of(&self.words)
    }

    /// Whether kernels may run in textual order, without counts.
    #[inline]
    pub(super) fn may_run_in_order(&self) -> bool {
        self.in_order
    }
}

/// Collects the wiring of a function, kernel by kernel.
#[derive(Debug, Default)]
pub(crate) struct ShapeBuilder {
    kernels: Vec<KernelShape>,
    definitions: Vec<Definition>,
    words: Vec<u32>,
    n_arguments: u32,
}

impl ShapeBuilder {
    fn words(&mut self, words: impl IntoIterator<Item = u32>) -> Span {
        let start = self.words.len();
        self.words.extend(words);
        Span::new(start, self.words.len() - start)
    }

    /// Adds an argument, before any kernel, with its users: those first that can do with a handle.
    pub(crate) fn argument(&mut self, register: u32, early: &[u32], late: &[u32]) {
        self.n_arguments += 1;
        self.definition(register, early, late);
    }

    /// Adds a kernel.
    pub(crate) fn kernel(&mut self, operands: &[u32], is_marked: bool) {
        let wait = if is_marked {
            1
        } else {
            operands.len().max(1) as u32
        };
        let operands = self.words(operands.iter().copied());
        let results = Span::new(self.definitions.len(), 0);
        self.kernels.push(KernelShape {
            operands,
            results,
            wait,
            is_marked,
        });
    }

    /// Adds a result of the last kernel, as [`Self::argument`] does.
    pub(crate) fn result(&mut self, register: u32, early: &[u32], late: &[u32]) {
        self.definition(register, early, late);
        if let Some(kernel) = self.kernels.last_mut() {
            kernel.results.len += 1;
        }
    }

    fn definition(&mut self, register: u32, early: &[u32], late: &[u32]) {
        let users = self.words(early.iter().chain(late).copied());
        let n_early = early.len() as u32;
        self.definitions.push(Definition {
            register,
            uses: 0,
            returns: 0,
            users,
            n_early,
        });
    }

    /// Checks everything.
    ///
    /// # Errors
    ///
    /// The first condition of the module's header that does not hold.
    pub(crate) fn finish(
        mut self,
        entry_users: &[u32],
        results: &[u32],
        in_order: bool,
    ) -> Result<Shape, Malformed> {
        let n_registers = self.definitions.len();
        let [definition_of, producers] = self.check_definitions(n_registers)?;
        let mut is_read_by_marked = vec![false; n_registers];
        for (index, kernel) in self.kernels.iter().enumerate() {
            for register in kernel.operands.of(&self.words) {
                let definition = *definition_of
                    .get(*register as usize)
                    .ok_or_else(|| Malformed(format!("register {register} does not exist")))?;
                let producer = producers[*register as usize];
                if in_order && producer != ARGUMENT && producer as usize >= index {
                    return Err(Malformed(format!("register {register} is read too early")));
                }
                if kernel.is_marked {
                    is_read_by_marked[*register as usize] = true;
                } else {
                    self.definitions[definition as usize].uses += 1;
                }
            }
        }
        self.check_users(n_registers)?;
        let without_operands = (0..)
            .zip(&self.kernels)
            .filter(|(_, kernel)| kernel.operands.len == 0);
        if !entry_users
            .iter()
            .copied()
            .eq(without_operands.map(|(index, _): (u32, _)| index))
        {
            let message = "the entry does not start the kernels without operands";
            return Err(Malformed(message.to_owned()));
        }
        let mut returned = Vec::new();
        for register in results {
            let definition = *definition_of
                .get(*register as usize)
                .ok_or_else(|| Malformed(format!("register {register} does not exist")))?;
            let definition = &mut self.definitions[definition as usize];
            if definition.returns == 0 {
                returned.push(*register);
            }
            definition.returns += 1;
        }
        let entry_users = self.words(entry_users.iter().copied());
        let results = self.words(results.iter().copied());
        let returned = self.words(returned);
        let marked = (0..n_registers as u32).filter(|r| is_read_by_marked[*r as usize]);
        let read_by_marked = self.words(marked);
        Ok(Shape {
            kernels: self.kernels.into(),
            definitions: self.definitions.into(),
            words: self.words.into(),
            definition_of,
            producers,
            n_arguments: self.n_arguments,
            entry_users,
            results,
            returned,
            read_by_marked,
            in_order,
        })
    }

    /// The definition and the producer of each register, which is defined once.
    fn check_definitions(&self, n_registers: usize) -> Result<[Box<[u32]>; 2], Malformed> {
        let mut definition_of = vec![u32::MAX; n_registers].into_boxed_slice();
        for (index, definition) in self.definitions.iter().enumerate() {
            let register = definition.register;
            let of = definition_of
                .get_mut(register as usize)
                .ok_or_else(|| Malformed(format!("register {register} does not exist")))?;
            if std::mem::replace(of, index as u32) != u32::MAX {
                return Err(Malformed(format!("register {register} is defined twice")));
            }
        }
        // As many definitions as registers, and none twice: so each register has one.
        let mut producers = vec![ARGUMENT; n_registers].into_boxed_slice();
        for (index, kernel) in self.kernels.iter().enumerate() {
            for definition in kernel.results.of(&self.definitions) {
                producers[definition.register as usize] = index as u32;
            }
        }
        let arguments = &self.definitions[..self.n_arguments as usize];
        if (0..)
            .zip(arguments)
            .any(|(index, definition)| definition.register != index)
        {
            return Err(Malformed(
                "arguments are not the first registers".to_owned(),
            ));
        }
        Ok([definition_of, producers])
    }

    /// Holds user lists against operand lists: equal as multisets.
    fn check_users(&self, n_registers: usize) -> Result<(), Malformed> {
        // The readers of register `r` end up in `readers[starts[r]..starts[r + 1]]`.
        let mut starts = vec![0u32; n_registers + 1];
        let operands = |kernel: &KernelShape| kernel.operands.of(&self.words);
        for register in self.kernels.iter().flat_map(operands) {
            starts[*register as usize + 1] += 1;
        }
        for index in 0..n_registers {
            starts[index + 1] += starts[index];
        }
        let mut readers = vec![0u32; starts[n_registers] as usize];
        let mut next = starts.clone();
        for (index, kernel) in self.kernels.iter().enumerate() {
            for register in operands(kernel) {
                let place = &mut next[*register as usize];
                readers[*place as usize] = index as u32;
                *place += 1;
            }
        }
        let mut balance = vec![0i64; self.kernels.len()];
        for definition in &self.definitions {
            let register = definition.register as usize;
            let readers = &readers[starts[register] as usize..starts[register + 1] as usize];
            let users = definition.users.of(&self.words);
            for reader in readers {
                balance[*reader as usize] += 1;
            }
            let mut fits = users.len() == readers.len();
            for user in users {
                match balance.get_mut(*user as usize) {
                    Some(balance) => *balance -= 1,
                    None => fits = false,
                }
            }
            for reader in readers {
                fits &= balance[*reader as usize] == 0;
                balance[*reader as usize] = 0;
            }
            if !fits {
                let message = format!("the users of register {register} are not its readers");
                return Err(Malformed(message));
            }
        }
        Ok(())
    }
}
