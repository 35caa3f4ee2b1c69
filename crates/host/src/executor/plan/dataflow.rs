//! The wiring of a function: which kernel reads and fills which register, and who waits for whom.
//!
//! A [`DataflowPlan`] is the proof on which the unsafe code of [`registers`](crate::executor::registers) stands. It is made only by [`DataflowPlan::new`], which computes or
//! checks, without trusting the gate of the file, that
//!
//! * registers and kernels exist wherever they are named;
//! * each register is an argument or a result of one kernel, once;
//! * the users of a register are the kernels that read it, once for each operand that is it;
//! * the arguments are the first registers, in their order;
//! * a kernel waits for as many counts as it has operands (for one if it has none, or is marked),
//!   and the entry starts exactly those without operands.
//!
//! It is made for functions whose kernels are counted, if one is called.
//!
//! # Memory
//!
//! A kernel of two operands and one result with two users takes 76 bytes:
//!
//! | Array | Words of a kernel |
//! | --- | --- |
//! | records | an end; the users of all results; entrance, numbers of operands, results, attributes and functions; the operands; per result its register and references; attributes; functions |
//! | starts, waits, words to begin with, and streams if there are several | one each, and a bit |
//! | abouts | five for each result |
//!
//! Kernels are numbered in the order in which one thread would run them (`order.rs`), so that a run
//! reads the records from front to back; registers are numbered in the order in which it fills them.

use tfrt_bef::order::sort_unstable_by;

use super::dependencies::{Dependencies, MAX_COUNT, Malformed, count, missing_register, too_large};
use super::order;
use super::records::{CountedRecord, CountedRecords, CountedWriter, Record, RecordWalk, Users};
use crate::executor::registers::ReadyStack;

/// One register, seen from where it is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Output {
    pub(crate) register: u32,
    references: u32,
}

impl Output {
    /// The function returns it.
    const RETURNED: u32 = 1 << 31;
    /// A marked kernel reads it.
    const READ_BY_MARKED: u32 = 1 << 30;

    /// How many references its slot holds once it is filled: one for each operand of a kernel that
    /// is not marked, and one for each return.
    #[inline(always)]
    pub(crate) fn n_references(self) -> u32 {
        self.references & (Self::READ_BY_MARKED - 1)
    }

    /// Whether a forwarding value may stand for it.
    #[inline(always)]
    pub(crate) fn may_be_forwarded(self) -> bool {
        self.references >= Self::READ_BY_MARKED
    }

    /// A register that one reader takes.
    pub(crate) fn alone(register: u32) -> Output {
        Output {
            register,
            references: 1,
        }
    }

    pub(crate) fn from_words([register, references]: [u32; 2]) -> Output {
        Output {
            register,
            references,
        }
    }

    pub(crate) fn words(self) -> [u32; 2] {
        [self.register, self.references]
    }

    pub(crate) fn is_returned(self) -> bool {
        self.references & Self::RETURNED != 0
    }
}

/// The producer of an argument.
const ARGUMENT: u32 = u32::MAX;

/// The wiring of a function, checked.
#[derive(Debug)]
pub(crate) struct DataflowPlan {
    /// One for each kernel; and one without operands whose results are the arguments.
    records: CountedRecords,
    waits: Box<[u32]>,
    /// Empty if all kernels stand in the root stream.
    streams: Box<[u32]>,
    /// One bit for each kernel, set if it only begins something; empty if none does, or if there is one stream.
    beginners: Box<[u64]>,
    n_registers: usize,
    root_stream: u32,
    entry_users: Box<[u32]>,
    /// Where each kernel stands in the file.
    numbers: Box<[u32]>,
    results: Box<[u32]>,
    /// The returned registers, each once, with the number of their returns.
    returned: Box<[(u32, u32)]>,
    /// The registers that marked kernels read, each once.
    read_by_marked: Box<[u32]>,
    /// The initial state of a call that has all its arguments; none if there are marked kernels.
    begun: Option<Begun>,
    has_one_stream: bool,
    has_marks: bool,
}

/// The words of all kernels when the entry, and all arguments in order, were counted down: see
/// [`ReadyStack`].
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) words: Box<[u32]>,
    /// The kernel on top of the stack.
    pub(crate) top: u32,
}

impl DataflowPlan {
    pub(crate) fn n_registers(&self) -> usize {
        self.n_registers
    }

    pub(crate) fn n_kernels(&self) -> usize {
        self.waits.len()
    }

    pub(crate) fn root_stream(&self) -> u32 {
        self.root_stream
    }

    #[inline]
    pub(crate) fn stream(&self, kernel: u32) -> u32 {
        match self.streams.get(kernel as usize) {
            Some(stream) => *stream,
            None => self.root_stream,
        }
    }

    /// Returns whether a kernel only begins something, whose result a task of the work queue brings.
    #[inline]
    pub(crate) fn only_begins(&self, kernel: u32) -> bool {
        let word = self.beginners.get(kernel as usize / 64);
        !cfg!(tfrt_for_size) && word.is_some_and(|word| word >> (kernel % 64) & 1 != 0)
    }

    /// Whether all kernels stand in the stream in which the call begins.
    pub(crate) fn has_one_stream(&self) -> bool {
        self.has_one_stream
    }

    /// Whether any kernel is marked.
    pub(crate) fn has_marks(&self) -> bool {
        self.has_marks
    }

    /// The number of a kernel in the file.
    pub(crate) fn number_in_file(&self, kernel: u32) -> u32 {
        match self.numbers.get(kernel as usize) {
            Some(number) => *number,
            None => kernel,
        }
    }

    /// Returns the record of a kernel: the registers that it reads and fills.
    #[inline(always)]
    pub(crate) fn record(&self, kernel: u32) -> Record<'_> {
        self.counted_record(kernel).record()
    }

    /// Returns the record of a kernel with the users of its outputs.
    #[inline(always)]
    pub(crate) fn counted_record(&self, kernel: u32) -> CountedRecord<'_> {
        self.records.get(kernel)
    }

    /// A way from the record of one kernel to that of another.
    pub(crate) fn walk(&self) -> RecordWalk<'_> {
        self.records.walk()
    }

    /// The arguments, as results of a kernel that nobody runs.
    pub(crate) fn arguments(&self) -> Record<'_> {
        self.records.get(self.waits.len() as u32).record()
    }

    /// A register, seen from where it is filled, and its users.
    pub(crate) fn definition(&self, register: u32) -> (Output, Users<'_>) {
        self.records.definition(register)
    }

    /// The kernel that fills a register, unless it is an argument.
    pub(crate) fn producer(&self, register: u32) -> Option<u32> {
        let producer = self.records.producer(register);
        (producer < self.waits.len() as u32).then_some(producer)
    }

    /// How many counts start each kernel; those of marked ones carry [`MARKED`](crate::executor::registers).
    pub(crate) fn waits(&self) -> &[u32] {
        &self.waits
    }

    pub(crate) fn begun(&self) -> Option<&Begun> {
        self.begun.as_ref()
    }

    /// The kernels without operands.
    pub(crate) fn entry_users(&self) -> &[u32] {
        &self.entry_users
    }

    /// The registers that the function returns, in order.
    pub(crate) fn result_registers(&self) -> &[u32] {
        &self.results
    }

    /// The returned registers, each once, and how often they are returned.
    pub(crate) fn returned(&self) -> &[(u32, u32)] {
        &self.returned
    }

    pub(crate) fn read_by_marked(&self) -> &[u32] {
        &self.read_by_marked
    }

    /// Checks wiring and lays it out.
    ///
    /// # Errors
    ///
    /// The first condition of the module's header that does not hold.
    pub(crate) fn new(wiring: &dyn Dependencies) -> Result<DataflowPlan, Malformed> {
        let checked = Checked::new(wiring)?;
        if wiring.is_textual() {
            let order = (0..wiring.n_kernels() as u32).collect();
            return checked.lay_out(order, true);
        }
        let kernels = 0..wiring.n_kernels() as u32;
        let root = wiring.root_stream();
        let has_one_stream = kernels.clone().all(|kernel| wiring.stream(kernel) == root);
        let waits = kernels.map(|kernel| order::n_waits(&wiring.kernel(kernel)));
        let simulated = order::simulate(wiring, waits.collect(), has_one_stream, &mut |_, _| {});
        checked.lay_out(simulated.order, has_one_stream)
    }
}

/// Dependencies that are a graph.
struct Checked<'w> {
    wiring: &'w dyn Dependencies,
    n_marked: usize,
    /// How many operands, attributes and functions there are.
    n_words: usize,
    /// By register: the kernel that fills it, in the file's numbering, or [`ARGUMENT`].
    producers: Box<[u32]>,
    /// By register: references as in [`Output`].
    references: Box<[u32]>,
    returned: Box<[(u32, u32)]>,
    read_by_marked: Box<[u32]>,
}

impl<'w> Checked<'w> {
    fn new(wiring: &'w dyn Dependencies) -> Result<Self, Malformed> {
        let producers = check_definitions(wiring)?;
        let n_registers = producers.len();
        let mut references = vec![0u32; n_registers].into_boxed_slice();
        let mut read_by_marked = Vec::new();
        let (mut n_marked, mut n_words) = (0, 0);
        for kernel in 0..wiring.n_kernels() as u32 {
            let wired = wiring.kernel(kernel);
            let (operands, is_marked) = (wired.operands, wired.is_marked);
            n_marked += usize::from(is_marked);
            n_words += 2 * operands.len() + wired.attributes.len() + wired.functions.len();
            if operands.len() > MAX_COUNT {
                return Err(Malformed(format!("kernel {kernel} has too many operands")));
            }
            for register in operands {
                let references = references
                    .get_mut(*register as usize)
                    .ok_or_else(|| missing_register(*register))?;
                if !is_marked {
                    count(references, *register)?;
                } else if *references & Output::READ_BY_MARKED == 0 {
                    *references |= Output::READ_BY_MARKED;
                    read_by_marked.push(*register);
                }
            }
        }
        check_users(wiring)?;
        check_entry(wiring)?;
        let mut returned: Vec<u32> = wiring.result_registers().to_vec();
        sort_unstable_by(&mut returned, Ord::cmp);
        let mut counted: Vec<(u32, u32)> = Vec::new();
        for register in returned {
            let references = references
                .get_mut(register as usize)
                .ok_or_else(|| missing_register(register))?;
            count(references, register)?;
            *references |= Output::RETURNED;
            match counted.last_mut() {
                Some((last, n)) if *last == register => *n += 1,
                _ => counted.push((register, 1)),
            }
        }
        sort_unstable_by(&mut read_by_marked, Ord::cmp);
        Ok(Checked {
            wiring,
            n_marked,
            n_words,
            producers,
            references,
            returned: counted.into(),
            read_by_marked: read_by_marked.into(),
        })
    }

    /// Writes all arrays, with kernels numbered by their positions in `order`.
    fn lay_out(self, order: Vec<u32>, has_one_stream: bool) -> Result<DataflowPlan, Malformed> {
        let wiring = self.wiring;
        let n_kernels = wiring.n_kernels();
        if n_kernels >= ReadyStack::BOTTOM as usize {
            return Err(too_large());
        }
        let mut positions = vec![0u32; n_kernels].into_boxed_slice();
        for (position, kernel) in (0..).zip(&order) {
            positions[*kernel as usize] = position;
        }
        let n_registers = self.producers.len();
        let n_words = self.n_words();
        // Registers follow each other as they are filled, so that what is near in time is near in memory.
        let n_arguments = wiring.n_arguments();
        let mut renamed: Box<[u32]> = self.producers;
        let mut next = n_arguments as u32;
        for (argument, name) in (0..).zip(&mut renamed[..n_arguments]) {
            *name = argument;
        }
        for kernel in &order {
            for register in wiring.kernel(*kernel).results {
                renamed[*register as usize] = next;
                next += 1;
            }
        }
        let rename = |register: &u32| renamed[*register as usize];
        let (mut operands, mut outputs) = (Vec::new(), Vec::new());
        let mut records = CountedWriter::new(n_words, n_kernels + 1, n_registers);
        let mut waits = Vec::with_capacity(n_kernels);
        let (mut streams, mut beginners) = (Vec::new(), Vec::new());
        let output = |register: &u32| Output {
            register: rename(register),
            references: self.references[*register as usize],
        };
        let users = UserLists {
            wiring,
            positions: &positions,
        };
        for (position, kernel) in order.iter().enumerate() {
            let kernel = *kernel;
            let wired = wiring.kernel(kernel);
            operands.clear();
            operands.extend(wired.operands.iter().map(rename));
            outputs.clear();
            outputs.extend(wired.results.iter().map(output));
            let written = records.write(
                wired.entrance,
                &operands,
                &outputs,
                wired.attributes,
                wired.functions,
                |index, list| users.append(wired.results[index], wiring.users(kernel, index), list),
            );
            written.ok_or_else(too_large)?;
            waits.push(if wired.is_marked {
                crate::executor::registers::MARKED | 1
            } else {
                wired.operands.len().max(1) as u32
            });
            if !has_one_stream {
                streams.push(wiring.stream(kernel));
                if !cfg!(tfrt_for_size) && wiring.only_begins(kernel) {
                    beginners.resize(n_kernels.div_ceil(64), 0u64);
                    beginners[position / 64] |= 1 << (position % 64);
                }
            }
        }
        let arguments: Vec<Output> = (0..n_arguments as u32).map(|r| output(&r)).collect();
        let written = records.write(u32::MAX, &[], &arguments, &[], &[], |index, list| {
            users.append(index as u32, wiring.argument_users(index), list)
        });
        written.ok_or_else(too_large)?;
        let mut returned = self.returned;
        for (register, _) in &mut returned {
            *register = rename(register);
        }
        sort_unstable_by(&mut returned, Ord::cmp);
        let mut read_by_marked: Box<[u32]> = self.read_by_marked.iter().map(rename).collect();
        sort_unstable_by(&mut read_by_marked, Ord::cmp);
        let entry = wiring.entry_users().iter();
        // Functions are mostly written in an order in which they can run.
        let is_as_written = (0..)
            .zip(&order)
            .all(|(position, kernel)| position == *kernel);
        let entry_users: Box<[u32]> = entry.map(|user| positions[*user as usize - 1]).collect();
        let records = records.finish();
        let begun = (self.n_marked == 0).then(|| begin(&records, &waits, &entry_users));
        Ok(DataflowPlan {
            records,
            waits: waits.into(),
            begun,
            streams: streams.into(),
            beginners: beginners.into(),
            n_registers,
            root_stream: wiring.root_stream(),
            entry_users,
            numbers: if is_as_written {
                Box::default()
            } else {
                order.into()
            },
            results: wiring.result_registers().iter().map(rename).collect(),
            returned,
            read_by_marked,
            has_one_stream,
            has_marks: self.n_marked > 0,
        })
    }

    /// How many words the records take.
    fn n_words(&self) -> usize {
        let (n_records, n_outputs) = (self.wiring.n_kernels() + 1, self.producers.len());
        let in_front = CountedWriter::n_words(n_records);
        self.n_words + 4 * n_records + 2 * n_outputs + in_front
    }
}

/// Counts down the entry and all arguments, which are the outputs of the last record.
fn begin(records: &CountedRecords, waits: &[u32], entry_users: &[u32]) -> Begun {
    let mut words: Box<[u32]> = waits.into();
    let mut top = ReadyStack::BOTTOM;
    let mut count_down = |user: u32| {
        let word = &mut words[user as usize];
        *word -= 1;
        if *word == 0 {
            *word = std::mem::replace(&mut top, user);
        }
    };
    entry_users.iter().copied().for_each(&mut count_down);
    records.get(waits.len() as u32).for_users(count_down);
    Begun { words, top }
}

/// Finds the users of registers, by their positions.
struct UserLists<'w> {
    wiring: &'w dyn Dependencies,
    positions: &'w [u32],
}

impl UserLists<'_> {
    /// Appends the users backwards, and says how many of them can do with a handle: they come first.
    fn append(&self, register: u32, users: &[u32], list: &mut Vec<u32>) -> usize {
        let position = |user: &u32| self.positions[*user as usize - 1];
        let backwards = users.iter().rev();
        if !self.wiring.has_early_users() {
            list.extend(backwards.map(position));
            return 0;
        }
        let n_before = list.len();
        let is_early = |user: &&u32| self.wiring.takes_handle(**user - 1, register);
        list.extend(
            backwards
                .clone()
                .filter(|user| !is_early(user))
                .map(position),
        );
        let n_late = list.len() - n_before;
        list.extend(backwards.filter(is_early).map(position));
        list.len() - n_before - n_late
    }
}

/// The producer of each register, which is defined once.
fn check_definitions(wiring: &dyn Dependencies) -> Result<Box<[u32]>, Malformed> {
    /// Stands for registers that nobody has been seen to fill.
    const NOBODY: u32 = u32::MAX - 1;
    let (n_registers, n_arguments) = (wiring.n_registers(), wiring.n_arguments());
    if n_arguments > n_registers {
        return Err(missing_register(n_registers as u32));
    }
    let mut producers = vec![NOBODY; n_registers].into_boxed_slice();
    producers[..n_arguments].fill(ARGUMENT);
    for kernel in 0..wiring.n_kernels() as u32 {
        for register in wiring.kernel(kernel).results {
            let producer = producers
                .get_mut(*register as usize)
                .ok_or_else(|| missing_register(*register))?;
            if *producer != NOBODY {
                return Err(Malformed(format!("register {register} is defined twice")));
            }
            *producer = kernel;
        }
    }
    match producers.iter().position(|producer| *producer == NOBODY) {
        Some(register) => Err(Malformed(format!("nothing defines register {register}"))),
        None => Ok(producers),
    }
}

/// Holds user lists against operand lists: equal as multisets. All operands exist.
fn check_users(wiring: &dyn Dependencies) -> Result<(), Malformed> {
    let n_registers = wiring.n_registers();
    let n_kernels = wiring.n_kernels();
    // The readers of register `r` end up in `readers[starts[r]..starts[r + 1]]`.
    let mut starts = vec![0u32; n_registers + 2];
    for kernel in 0..n_kernels as u32 {
        for register in wiring.kernel(kernel).operands {
            starts[*register as usize + 2] += 1;
        }
    }
    for index in 0..n_registers {
        starts[index + 2] += starts[index + 1];
    }
    let mut readers = vec![0u32; starts[n_registers + 1] as usize];
    for kernel in 0..n_kernels as u32 {
        for register in wiring.kernel(kernel).operands {
            let place = &mut starts[*register as usize + 1];
            readers[*place as usize] = kernel;
            *place += 1;
        }
    }
    let mut balance = vec![0i32; n_kernels];
    let mut check = |register: u32, users: &[u32]| {
        let register = register as usize;
        let readers = &readers[starts[register] as usize..starts[register + 1] as usize];
        let same = users.len() == readers.len()
            && users
                .iter()
                .zip(readers)
                .all(|(user, reader)| user.checked_sub(1) == Some(*reader));
        if same {
            return Ok(());
        }
        for reader in readers {
            balance[*reader as usize] += 1;
        }
        let mut fits = users.len() == readers.len();
        for user in users {
            let index = user.checked_sub(1);
            match index.and_then(|index| balance.get_mut(index as usize)) {
                Some(balance) => *balance -= 1,
                None => fits = false,
            }
        }
        for reader in readers {
            fits &= balance[*reader as usize] == 0;
            balance[*reader as usize] = 0;
        }
        if fits {
            return Ok(());
        }
        let message = format!("the users of register {register} are not its readers");
        Err(Malformed(message))
    };
    for argument in 0..wiring.n_arguments() {
        check(argument as u32, wiring.argument_users(argument))?;
    }
    for kernel in 0..n_kernels as u32 {
        for (index, register) in wiring.kernel(kernel).results.iter().enumerate() {
            check(*register, wiring.users(kernel, index))?;
        }
    }
    Ok(())
}

fn check_entry(wiring: &dyn Dependencies) -> Result<(), Malformed> {
    let has_none = |kernel: &u32| wiring.kernel(*kernel).operands.is_empty();
    let without_operands = (0..wiring.n_kernels() as u32).filter(has_none);
    let entry = wiring.entry_users().iter().copied();
    if entry.eq(without_operands.map(|kernel| kernel + 1)) {
        return Ok(());
    }
    let message = "the entry does not start the kernels without operands";
    Err(Malformed(message.to_owned()))
}
