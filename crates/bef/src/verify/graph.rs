//! Kernel records: where they lie, what they refer to, and the graph they form.

use std::ops::Range;

use crate::{
    codes,
    cursor::{filled, reserve, reserved},
    error::BefError,
    file::{BodyRecord, FunctionRecord, Span},
    kernel::RecordLayout,
    layout::{FunctionKind, PSEUDO_KERNEL_CODE, SectionId},
    verify::{Gate, locations::LocationTable},
};

const CONTEXT: &str = "invalid Function section in BEF file";

/// A register's writer before any kernel is known to write it.
const UNWRITTEN: u32 = u32::MAX;

/// A function whose kernel records are being checked.
struct Graph<'g, 'a> {
    gate: &'g Gate<'a>,
    function: usize,
    record: FunctionRecord,
    body: BodyRecord,
    /// The Functions section, and where it starts.
    words: &'a [u32],
    section_start: usize,
    registers: &'g mut Vec<Register>,
}

/// The writer and the users of a register, as the kernels state them.
#[derive(Clone, Copy)]
pub(super) struct Register {
    /// The kernel that writes it.
    writer: u32,
    /// The list of users, as words.
    users: Span,
    /// The next user in the list, while kernels are visited from the last to the first.
    next_user: u32,
}

/// A function whose kernel records are checked, and the words of the Functions section.
#[derive(Clone, Copy)]
pub(super) struct FunctionWords<'a> {
    pub function: usize,
    pub words: &'a [u32],
}

/// Checks the records of a function; returns the word where the last one ends. `registers` is
/// scratch space.
pub(super) fn records(
    gate: &mut Gate<'_>,
    FunctionWords { function, words }: FunctionWords<'_>,
    wait_counts: &[u32],
    registers: &mut Vec<Register>,
    locations: &LocationTable,
) -> Result<usize, BefError> {
    let record = gate.index.functions[function];
    let body = record.body.expect("the frame was read before");
    let section_start = gate.section_range(SectionId::Functions).start;
    let n_registers = body.registers.len();
    registers.clear();
    reserve(registers, n_registers, section_start)?;
    registers.resize(n_registers, Register::UNKNOWN);
    let mut graph = Graph {
        gate,
        function,
        record,
        body,
        words,
        section_start,
        registers,
    };
    if !locations.admits(body.location) {
        let message = format!("no location record starts at {}", body.location);
        let offset = section_start + record.offset as usize;
        return Err(BefError::new(
            codes::LOCATION,
            offset,
            format!("{CONTEXT}: {message}"),
        ));
    }
    let end = graph.shapes()?;
    graph.pseudo_kernel(wait_counts[0])?;
    for (kernel, wait_count) in wait_counts.iter().enumerate().skip(1) {
        graph.kernel(kernel, *wait_count, locations)?;
    }
    graph.written()?;
    let order = graph.visit_backwards();
    graph.use_counts()?;
    if !order.lists_are_readers {
        graph.edges()?;
    }
    if !order.starts_are_listed {
        graph.entry_users()?;
    }
    match record.kind {
        FunctionKind::Sync => graph.textual_order()?,
        _ if order.is_textual => {}
        _ => graph.order()?,
    }
    let table = &mut gate.index.users;
    reserve(table, n_registers, section_start)?;
    table.extend(registers.iter().map(|register| register.users.start));
    Ok(end)
}

impl Register {
    const UNKNOWN: Register = Register {
        writer: UNWRITTEN,
        users: Span { start: 0, end: 0 },
        next_user: 0,
    };
}

/// The findings of a visit of all kernels from the last to the first. Each is enough to accept a
/// property without a slower check.
struct OrderFindings {
    /// Whether the list of users of each register is the list of its readers, the latest first, as
    /// compilers write it. If not, it may still be another order of these.
    lists_are_readers: bool,
    /// Whether the pseudo kernel starts the kernels without operands from the first to the last. If
    /// not, it may still start them in another order.
    starts_are_listed: bool,
    /// Whether each kernel reads only what earlier ones write. If not, there may still be an order.
    is_textual: bool,
}

impl Graph<'_, '_> {
    /// Returns the error that says `message` at a word of the section.
    fn error(&self, code: &'static str, word: usize, message: String) -> BefError {
        BefError::new(code, self.section_start + word * size_of::<u32>(), message)
    }

    fn name(&self) -> String {
        self.gate.name_of(self.function)
    }

    fn n_kernels(&self) -> usize {
        self.body.kernels.len()
    }

    fn n_registers(&self) -> usize {
        self.body.registers.len()
    }

    /// Finds the parts of each record, in order and without overlap.
    fn shapes(&self) -> Result<usize, BefError> {
        let mut least = 0;
        for (kernel, record) in self.gate.index.kernels[self.body.kernels.range()]
            .iter()
            .enumerate()
        {
            let start = record.word as usize;
            let inside =
                RecordLayout::read(self.words, start).and_then(|shape| shape.end(self.words));
            let Some(end) = inside else {
                let name = self.name();
                let message = format!("{CONTEXT}: kernel {kernel} of {name} runs past the end");
                return Err(self.error(codes::LAYOUT, start.min(self.words.len()), message));
            };
            if start < least {
                let name = self.name();
                let message =
                    format!("{CONTEXT}: kernel {kernel} of {name} starts inside the one before it");
                return Err(self.error(codes::LAYOUT, start, message));
            }
            least = end;
        }
        Ok(least)
    }

    /// Returns the positions of a kernel's parts.
    #[inline]
    fn shape(&self, kernel: usize) -> RecordLayout {
        let start = self.gate.index.kernels[self.body.kernels.range()][kernel].word;
        RecordLayout::read(self.words, start as usize).expect("shapes() found it inside")
    }

    /// Iterates over all kernels.
    fn kernels(&self) -> impl DoubleEndedIterator<Item = RecordLayout> + ExactSizeIterator {
        let records = self.gate.index.kernels[self.body.kernels.range()].iter();
        let read = |start| RecordLayout::read(self.words, start);
        records.map(move |record| read(record.word as usize).expect("shapes() found it inside"))
    }

    /// Checks the kernel that stands for the entry of the function.
    fn pseudo_kernel(&mut self, wait_count: u32) -> Result<(), BefError> {
        let shape = self.shape(0);
        let start = shape.start();
        let n_arguments = self.record.arguments.len();
        let code = self.words[start];
        let reason = if code != PSEUDO_KERNEL_CODE {
            format!("has code {code:#x}, not {PSEUDO_KERNEL_CODE:#x}")
        } else if wait_count != 0 {
            format!("waits for {wait_count} operands")
        } else if shape.functions().end != shape.user_counts().end {
            "has operands, attributes or functions".to_owned()
        } else if shape.n_results() != n_arguments + 1 {
            format!(
                "has {} results for {n_arguments} arguments",
                shape.n_results()
            )
        } else {
            return self.arguments(shape);
        };
        let message = format!("{CONTEXT}: the pseudo kernel of {} {reason}", self.name());
        Err(self.error(codes::PSEUDO_KERNEL, start, message))
    }

    /// Checks that the arguments are the first registers.
    fn arguments(&mut self, shape: RecordLayout) -> Result<(), BefError> {
        let n_registers = self.n_registers();
        if self.record.arguments.len() > n_registers {
            let message = format!(
                "{} takes {} arguments, but has {n_registers} registers",
                self.name(),
                self.record.arguments.len()
            );
            return Err(self.error(codes::PSEUDO_KERNEL, shape.start(), message));
        }
        for (position, at) in shape.results().enumerate() {
            let expected = if position == 0 {
                n_registers
            } else {
                position - 1
            };
            let found = self.words[at];
            if found as usize != expected {
                let message = format!(
                    "{CONTEXT}: result {position} of the pseudo kernel of {} is register {found}, \
                     not {expected}",
                    self.name()
                );
                return Err(self.error(codes::PSEUDO_KERNEL, at, message));
            }
        }
        self.results(0, 1)
    }

    /// Enters the writers of a kernel's results from `first` on, and their lists of users.
    fn results(&mut self, kernel: usize, first: usize) -> Result<(), BefError> {
        let shape = self.shape(kernel);
        let mut users = shape.results().end;
        let counts = &self.words[shape.user_counts()];
        for (position, (at, count)) in shape.results().zip(counts).enumerate() {
            let list = users..users + *count as usize;
            users = list.end;
            if position < first {
                continue;
            }
            let register = self.words[at] as usize;
            if register >= self.n_registers() {
                let message = format!(
                    "kernel {kernel} of {} writes register {register}, but the function has {}",
                    self.name(),
                    self.n_registers()
                );
                return Err(self.error(codes::REGISTER_INDEX, at, message));
            }
            if self.registers[register].writer != UNWRITTEN {
                let message = format!(
                    "kernel {kernel} of {} writes register {register}, which {} writes",
                    self.name(),
                    self.writer(register)
                );
                return Err(self.error(codes::REGISTER_WRITES, at, message));
            }
            let users = span(list);
            self.registers[register] = Register {
                writer: kernel as u32,
                users,
                next_user: users.start,
            };
        }
        Ok(())
    }

    /// Returns the writer of a register as messages name it.
    fn writer(&self, register: usize) -> String {
        match self.registers[register].writer {
            0 => "the caller".to_owned(),
            kernel => format!("kernel {kernel}"),
        }
    }

    /// Checks what a kernel refers to.
    fn kernel(
        &mut self,
        kernel: usize,
        wait_count: u32,
        locations: &LocationTable,
    ) -> Result<(), BefError> {
        let shape = self.shape(kernel);
        let start = shape.start();
        let fail = |graph: &Self, code: &'static str, at: usize, reason: String| {
            Err(graph.error(
                code,
                at,
                format!("kernel {kernel} of {} {reason}", graph.name()),
            ))
        };
        let (code, n_codes) = (self.words[start], self.gate.index.kernel_names.len());
        if code as usize >= n_codes {
            let reason = format!("has code {code}, but the file has {n_codes} kernel names");
            return fail(self, codes::KERNEL_REFERENCE, start, reason);
        }
        let location = self.words[start + 1];
        if !locations.admits(location) {
            let reason = format!("has location {location}, where no record starts");
            return fail(self, codes::KERNEL_REFERENCE, start + 1, reason);
        }
        if wait_count as usize != shape.n_operands() {
            let n_operands = shape.n_operands();
            let reason = format!("waits for {wait_count} operands, but has {n_operands}");
            return fail(self, codes::WAIT_COUNT, start + 2, reason);
        }
        for at in shape.operands() {
            let (register, n_registers) = (self.words[at], self.n_registers());
            if register as usize >= n_registers {
                let reason =
                    format!("reads register {register}, but the function has {n_registers}");
                return fail(self, codes::REGISTER_INDEX, at, reason);
            }
        }
        for at in shape.attributes() {
            if let Some(reason) = self.attribute(self.words[at]) {
                return fail(self, codes::KERNEL_REFERENCE, at, reason);
            }
        }
        for at in shape.functions() {
            let (callee, n_functions) = (self.words[at], self.gate.index.functions.len());
            if callee as usize >= n_functions {
                let reason = format!("refers to function {callee}, but the file has {n_functions}");
                return fail(self, codes::KERNEL_REFERENCE, at, reason);
            }
        }
        self.results(kernel, 0)
    }

    /// Returns the mistake of an attribute's offset, if there is one.
    fn attribute(&self, offset: u32) -> Option<String> {
        let len_bytes = self.gate.section_range(SectionId::Attributes).len();
        if offset as usize >= len_bytes {
            return Some(format!(
                "has an attribute at {offset}, but the Attributes section has {len_bytes} bytes"
            ));
        }
        let listed = self.gate.listed_attributes.as_ref();
        if listed.is_some_and(|listed| !listed.contains(offset as usize)) {
            return Some(format!(
                "has an attribute at {offset}, where the AttributeTypes section lists none"
            ));
        }
        None
    }

    /// Checks that each register is written.
    fn written(&self) -> Result<(), BefError> {
        let is_unwritten = |register: &Register| register.writer == UNWRITTEN;
        let Some(register) = self.registers.iter().position(is_unwritten) else {
            return Ok(());
        };
        let message = format!("register {register} of {} is never written", self.name());
        Err(self.error(codes::REGISTER_WRITES, self.shape(0).start(), message))
    }

    /// Compares the kernels, from the last to the first, with the lists of users.
    fn visit_backwards(&mut self) -> OrderFindings {
        let mut found = OrderFindings {
            lists_are_readers: true,
            starts_are_listed: true,
            is_textual: true,
        };
        let words = self.words;
        let mut starts = words[self.entry_list()].iter().rev();
        for kernel in (1..self.n_kernels()).rev() {
            // Records are below 4 GiB, so there are less kernels.
            let this = kernel as u32;
            let shape = self.shape(kernel);
            if shape.n_operands() == 0 {
                found.starts_are_listed &= starts.next() == Some(&this);
            }
            for register in words[shape.operands()].iter().rev() {
                let register = &mut self.registers[*register as usize];
                found.is_textual &= register.writer < this;
                let at = register.next_user;
                let is_next = at < register.users.end && words[at as usize] == this;
                found.lists_are_readers &= is_next;
                register.next_user = at.saturating_add(1);
            }
        }
        let is_done = |register: &Register| register.next_user == register.users.end;
        found.lists_are_readers &= self.registers.iter().all(is_done);
        found.starts_are_listed &= starts.next().is_none();
        found
    }

    /// Checks that each register is read as often as its use count says.
    fn use_counts(&mut self) -> Result<(), BefError> {
        let n_registers = self.n_registers();
        let body_word = self.shape(0).start();
        let results = &self.gate.index.result_registers[self.body.results.range()];
        for (position, register) in results.iter().enumerate() {
            let Some(register) = self.registers.get_mut(*register as usize) else {
                let message = format!(
                    "result {position} of {} is register {register}, \
                     but the function has {n_registers}",
                    self.name()
                );
                return Err(self.error(codes::REGISTER_INDEX, body_word, message));
            };
            register.next_user = register.next_user.saturating_add(1);
        }
        let use_counts = &self.gate.index.use_counts[self.body.registers.range()];
        for (number, (count, register)) in use_counts.iter().zip(self.registers.iter()).enumerate()
        {
            // The visit, and each result, went one place on.
            let reads = register.next_user - register.users.start;
            if *count != reads {
                let message = format!(
                    "register {number} of {} has a use count of {count}, but {reads} reads",
                    self.name()
                );
                return Err(self.error(codes::USE_COUNT, body_word, message));
            }
        }
        if self.record.kind == FunctionKind::Sync {
            return self.sync_results(results);
        }
        Ok(())
    }

    /// Checks that a sync function returns neither arguments nor one register twice.
    fn sync_results(&self, results: &[u32]) -> Result<(), BefError> {
        let mut returned = filled(false, self.n_registers(), self.section_start)?;
        for (position, register) in results.iter().enumerate() {
            let register = *register as usize;
            let is_argument = self.registers[register].writer == 0;
            if is_argument || std::mem::replace(&mut returned[register], true) {
                let message = format!(
                    "invalid FunctionIndex section in BEF file: Invalid SyncBEFFunction(Result \
                     cannot be an argument or another result): result {position} of {} is \
                     register {register}",
                    self.name()
                );
                return Err(self.error(codes::SYNC_RESULTS, self.shape(0).start(), message));
            }
        }
        Ok(())
    }

    /// Checks that users are the readers, with their multiplicity.
    fn edges(&self) -> Result<(), BefError> {
        let readers = self.readers()?;
        let mut balance = filled(0i64, self.n_kernels(), self.section_start)?;
        for (register, Register { users, .. }) in self.registers.iter().enumerate() {
            let readers = &readers.kernels[readers.spans[register].range()];
            for reader in readers {
                balance[*reader as usize] += 1;
            }
            let listed = &self.words[users.range()];
            for (at, user) in users.range().zip(listed) {
                self.user_in_range(at, *user)?;
                balance[*user as usize] -= 1;
            }
            for kernel in readers.iter().chain(listed) {
                let missing = std::mem::take(&mut balance[*kernel as usize]);
                if missing != 0 {
                    let message = format!(
                        "register {register} of {} does not list kernel {kernel} as a user as \
                         often as the kernel reads it",
                        self.name()
                    );
                    return Err(self.error(codes::USERS, users.start as usize, message));
                }
            }
        }
        Ok(())
    }

    fn user_in_range(&self, at: usize, user: u32) -> Result<(), BefError> {
        let last = self.n_kernels() - 1;
        if (1..=last).contains(&(user as usize)) {
            return Ok(());
        }
        let message = format!(
            "kernel {user} is listed as a user in {}, whose kernels are 1 to {last}",
            self.name()
        );
        Err(self.error(codes::USERS, at, message))
    }

    /// Checks that the pseudo kernel starts the kernels without operands, each once.
    fn entry_users(&self) -> Result<(), BefError> {
        let shape = self.shape(0);
        let list = self.entry_list();
        let mut listed = filled(false, self.n_kernels(), self.section_start)?;
        for at in list.clone() {
            let user = self.words[at];
            self.user_in_range(at, user)?;
            let has_operands = self.shape(user as usize).n_operands() > 0;
            if has_operands || std::mem::replace(&mut listed[user as usize], true) {
                let message = format!(
                    "the pseudo kernel of {} starts kernel {user}, which {}",
                    self.name(),
                    if has_operands {
                        "has operands"
                    } else {
                        "it has started"
                    }
                );
                return Err(self.error(codes::PSEUDO_KERNEL, at, message));
            }
        }
        for (kernel, shape) in self.kernels().enumerate().skip(1) {
            if shape.n_operands() == 0 && !listed[kernel] {
                let message = format!(
                    "kernel {kernel} of {} has no operands, but the pseudo kernel does not start it",
                    self.name()
                );
                return Err(self.error(codes::PSEUDO_KERNEL, shape.start(), message));
            }
        }
        debug_assert!(shape.n_operands() == 0);
        Ok(())
    }

    /// Returns where the list of kernels without operands lies.
    fn entry_list(&self) -> Range<usize> {
        let shape = self.shape(0);
        let start = shape.results().end;
        start..start + self.words[shape.user_counts().start] as usize
    }

    /// Groups the kernels by the registers that they read.
    fn readers(&self) -> Result<Readers, BefError> {
        let mut counts = filled(0u32, self.n_registers(), self.section_start)?;
        let operands = || {
            let kernels = (0u32..).zip(self.kernels());
            kernels.flat_map(|(kernel, shape)| {
                self.words[shape.operands()]
                    .iter()
                    .map(move |register| (kernel, *register))
            })
        };
        operands().for_each(|(_, register)| counts[register as usize] += 1);
        let mut spans = reserved(self.n_registers(), self.section_start)?;
        let mut total = 0;
        for count in counts {
            spans.push(Span {
                start: total,
                end: total,
            });
            total += count;
        }
        let mut kernels = filled(0u32, total as usize, self.section_start)?;
        for (kernel, register) in operands() {
            let span = &mut spans[register as usize];
            kernels[span.end as usize] = kernel;
            span.end += 1;
        }
        Ok(Readers { spans, kernels })
    }

    /// Checks that every kernel gets ready once its operands are there: Kahn's algorithm.
    fn order(&self) -> Result<(), BefError> {
        let mut waits = reserved(self.n_kernels(), self.section_start)?;
        waits.extend(self.kernels().map(|shape| shape.n_operands()));
        let mut ready = reserved(self.n_kernels(), self.section_start)?;
        ready.extend(
            self.words[self.entry_list()]
                .iter()
                .map(|kernel| *kernel as usize),
        );
        ready.push(0);
        let mut n_ran = 0;
        while let Some(kernel) = ready.pop() {
            n_ran += 1;
            let results = self.shape(kernel).results().skip(usize::from(kernel == 0));
            for at in results {
                for user in &self.words[self.registers[self.words[at] as usize].users.range()] {
                    let user = *user as usize;
                    waits[user] -= 1;
                    if waits[user] == 0 {
                        ready.push(user);
                    }
                }
            }
        }
        if n_ran == self.n_kernels() {
            return Ok(());
        }
        Err(self.cycle(&waits))
    }

    /// Returns the error that names a cycle among the kernels that still wait.
    fn cycle(&self, waits: &[usize]) -> BefError {
        let waiting = |kernel: &usize| waits[*kernel] > 0;
        let mut path = Vec::new();
        let mut seen = vec![false; self.n_kernels()];
        let mut at = (1..self.n_kernels()).find(waiting).unwrap_or_default();
        while !std::mem::replace(&mut seen[at], true) {
            path.push(at);
            let operands = &self.words[self.shape(at).operands()];
            let mut writers = operands
                .iter()
                .map(|register| self.registers[*register as usize].writer as usize);
            at = writers.find(waiting).unwrap_or_default();
        }
        let first = path
            .iter()
            .position(|kernel| *kernel == at)
            .unwrap_or_default();
        let cycle = &path[first..];
        let mut names: Vec<String> = cycle.iter().take(8).map(usize::to_string).collect();
        if cycle.len() > names.len() {
            names.push("...".to_owned());
        }
        names.push(at.to_string());
        let message = format!(
            "kernels of {} wait for each other in a cycle: {}",
            self.name(),
            names.join(" waits for ")
        );
        self.error(codes::CYCLE, self.shape(at).start(), message)
    }

    /// Checks that a sync function writes each register before it is read.
    fn textual_order(&self) -> Result<(), BefError> {
        for (kernel, shape) in self.kernels().enumerate() {
            for at in shape.operands() {
                let register = self.words[at];
                let writer = self.registers[register as usize].writer as usize;
                if writer >= kernel {
                    let message = format!(
                        "kernel {kernel} of {} reads register {register} before kernel {writer} \
                         writes it",
                        self.name()
                    );
                    return Err(self.error(codes::SYNC_ORDER, at, message));
                }
            }
        }
        Ok(())
    }
}

/// The kernels that read each register.
struct Readers {
    /// Spans of `kernels`, by register.
    spans: Vec<Span>,
    kernels: Vec<u32>,
}

/// Returns the span of words. The section is below 4 GiB, so 32 bits do.
fn span(range: Range<usize>) -> Span {
    Span {
        start: range.start as u32,
        end: range.end as u32,
    }
}
