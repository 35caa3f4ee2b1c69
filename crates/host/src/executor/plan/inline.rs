//! The kernels of a function in the order in which one thread runs them, one after the other, and
//! where their values lie meanwhile.
//!
//! An [`InlinePlan`] is the proof on which the unsafe code of [`stack`](crate::executor::inline::stack) stands. It is made only
//! by [`InlinePlan::new`], which computes or checks, without trusting the gate of the file, that
//!
//! * slots exist wherever they are named; the first are those of the arguments, in their order;
//! * what a kernel reads was filled before, by an argument or an output of a kernel before it, and lies
//!   there still;
//! * a value is read and returned as often as its output says.
//!
//! # Memory
//!
//! A value needs its slot until its last reader has run; then others may have it. So a call has as many
//! slots as there are values at one time, and what is near in time is near in memory. The outputs
//! of a kernel are kept apart from its operands.
//!
//! A kernel of two operands and one result takes 36 bytes: its record, and where that starts.

use super::dataflow::Output;
use super::dependencies::{
    Dependencies, KernelDependencies, Malformed, count, missing_register, too_large,
};
use super::order::{self, Simulated};
use super::records::{FirstRecords, Record, RecordWriter, Records};

/// The kernels of a function in an order in which they can run.
#[derive(Debug)]
pub(crate) struct InlinePlan {
    /// One for each kernel; and one without operands whose results are the arguments.
    records: Records,
    n_kernels: u32,
    n_slots: usize,
    n_arguments: usize,
    /// Where each kernel stands in the file; empty if the order is that of the file.
    numbers: Box<[u32]>,
    /// Where the values lie that the function returns, in order.
    results: Box<[u32]>,
    has_one_stream: bool,
    n_prompt: u32,
}

impl InlinePlan {
    /// How many slots a call needs.
    #[inline]
    pub(crate) fn n_slots(&self) -> usize {
        self.n_slots
    }

    #[inline]
    pub(crate) fn n_kernels(&self) -> usize {
        self.n_kernels as usize
    }

    #[inline]
    pub(crate) fn n_arguments(&self) -> usize {
        self.n_arguments
    }

    /// Whether all kernels stand in the stream in which the call begins.
    pub(crate) fn has_one_stream(&self) -> bool {
        self.has_one_stream
    }

    /// How many kernels, the first, run before whoever has made the call can have its results, if their
    /// streams are told apart.
    pub(crate) fn n_prompt(&self) -> u32 {
        self.n_prompt
    }

    /// The number of a kernel in the file.
    pub(crate) fn number_in_file(&self, kernel: u32) -> u32 {
        match self.numbers.get(kernel as usize) {
            Some(number) => *number,
            None => kernel,
        }
    }

    /// Returns the record of a kernel: the slots that it reads and fills.
    #[inline(always)]
    pub(crate) fn record(&self, kernel: u32) -> Record<'_> {
        self.records.get(kernel)
    }

    /// Returns the records of all kernels: the slots that they read and fill.
    #[inline(always)]
    pub(crate) fn records(&self) -> FirstRecords<'_> {
        self.records.first(self.n_kernels())
    }

    /// The arguments, as results of a kernel that nobody runs.
    pub(crate) fn arguments(&self) -> Record<'_> {
        self.records.get(self.n_kernels)
    }

    /// Where the values lie that the function returns, in order.
    #[inline]
    pub(crate) fn results(&self) -> &[u32] {
        &self.results
    }

    /// The slots from which kernels from `first` on, or whoever takes the results, are going to take
    /// what lies there before `first` is run: each once for every time.
    pub(crate) fn left_at(&self, first: u32) -> Vec<u32> {
        let mut is_new = vec![false; self.n_slots];
        let mut left = Vec::new();
        for kernel in first..self.n_kernels {
            let record = self.record(kernel);
            let operands = record.operands().iter();
            left.extend(operands.filter(|slot| !is_new[**slot as usize]));
            for output in record.outputs() {
                is_new[output.register as usize] = true;
            }
        }
        left.extend(self.results.iter().filter(|slot| !is_new[**slot as usize]));
        left
    }

    /// Finds an order, and lays the kernels out in it; `None` if there is none in which each can wait
    /// for all of its operands.
    ///
    /// # Errors
    ///
    /// The first condition of the module's header that does not hold.
    pub(crate) fn new(wiring: &dyn Dependencies) -> Result<Option<InlinePlan>, Malformed> {
        let n_kernels = u32::try_from(wiring.n_kernels()).map_err(|_| too_large())?;
        let Counts {
            left,
            waits,
            n_words,
            first_marked,
            has_one_stream,
        } = Counts::of(wiring)?;
        let mut layout = Layout::new(wiring, left, n_words)?;
        if wiring.is_textual() {
            if let Some(kernel) = first_marked {
                return Err(Malformed(format!("kernel {kernel} can't wait for less")));
            }
            for kernel in 0..n_kernels {
                layout.add(&wiring.kernel(kernel))?;
            }
            let order = (0..n_kernels).collect();
            return layout.finish(order, true, n_kernels).map(Some);
        }
        // A marked kernel may start before all of its operands are there.
        if first_marked.is_some() {
            return Ok(None);
        }
        let mut added = Ok(());
        let simulated = order::simulate(wiring, waits, has_one_stream, &mut |_, wired| {
            if added.is_ok() {
                added = layout.add(wired);
            }
        });
        if !simulated.is_complete {
            return Ok(None);
        }
        added?;
        let n_prompt = n_prompt(wiring, &simulated);
        let sequence = layout.finish(simulated.order, has_one_stream, n_prompt)?;
        Ok(Some(sequence))
    }
}

/// Counts that are taken before the kernels are laid out, in the order of the file.
struct Counts {
    /// By register: how often it is read or returned.
    left: Box<[u32]>,
    /// By kernel: how many counts start it.
    waits: Vec<u32>,
    n_words: usize,
    first_marked: Option<u32>,
    has_one_stream: bool,
}

impl Counts {
    fn of(wiring: &dyn Dependencies) -> Result<Counts, Malformed> {
        let mut left = vec![0u32; wiring.n_registers()].into_boxed_slice();
        let mut read = |register: &u32| -> Result<(), Malformed> {
            let left = left.get_mut(*register as usize);
            count(left.ok_or_else(|| missing_register(*register))?, *register)
        };
        let mut waits = Vec::with_capacity(wiring.n_kernels());
        let mut n_words = RecordWriter::n_words(0, wiring.n_arguments(), 0);
        let mut first_marked = None;
        let mut has_one_stream = true;
        let root = wiring.root_stream();
        for kernel in 0..wiring.n_kernels() as u32 {
            let wired = wiring.kernel(kernel);
            wired.operands.iter().try_for_each(&mut read)?;
            waits.push(order::n_waits(&wired));
            let n_constants = wired.attributes.len() + wired.functions.len();
            let (n_operands, n_results) = (wired.operands.len(), wired.results.len());
            n_words += RecordWriter::n_words(n_operands, n_results, n_constants);
            if wired.is_marked {
                first_marked.get_or_insert(kernel);
            }
            has_one_stream &= wiring.stream(kernel) == root;
        }
        wiring.result_registers().iter().try_for_each(read)?;
        Ok(Counts {
            left,
            waits,
            n_words,
            first_marked,
            has_one_stream,
        })
    }
}

/// How many kernels run before a caller can have the results: those of the tasks up to the one that brings
/// the last.
fn n_prompt(wiring: &dyn Dependencies, simulated: &Simulated) -> u32 {
    let n_kernels = simulated.order.len();
    if simulated.ends.len() == 1 {
        return n_kernels as u32;
    }
    let mut is_result = vec![false; wiring.n_registers()];
    for register in wiring.result_registers() {
        if let Some(is_result) = is_result.get_mut(*register as usize) {
            *is_result = true;
        }
    }
    let brings_result = |kernel: &u32| {
        let mut results = wiring.kernel(*kernel).results.iter();
        results.any(|register| is_result.get(*register as usize) == Some(&true))
    };
    let last = simulated.order.iter().rposition(brings_result);
    let n_needed = last.map_or(0, |last| last + 1);
    let end = simulated.ends.iter().find(|end| **end >= n_needed);
    end.map_or(n_kernels, |end| *end) as u32
}

/// Stands for the slot of a value that is not there yet.
const NOWHERE: u32 = u32::MAX;

/// The registers of the wiring while they get slots.
struct Layout<'w> {
    wiring: &'w dyn Dependencies,
    /// By register: where its value lies, or [`NOWHERE`].
    slots: Box<[u32]>,
    /// By register: how often it is still to be read or returned.
    left: Box<[u32]>,
    /// Slots that nobody needs any more.
    free: Vec<u32>,
    n_slots: u32,
    records: RecordWriter,
    arguments: Vec<Output>,
    /// Room for what one record names.
    operands: Vec<u32>,
    outputs: Vec<Output>,
}

impl<'w> Layout<'w> {
    /// Begins with the arguments.
    fn new(
        wiring: &'w dyn Dependencies,
        left: Box<[u32]>,
        n_words: usize,
    ) -> Result<Self, Malformed> {
        let n_arguments = wiring.n_arguments() as u32;
        let mut layout = Layout {
            wiring,
            slots: vec![NOWHERE; left.len()].into(),
            left,
            free: Vec::new(),
            n_slots: 0,
            records: RecordWriter::new(n_words, wiring.n_kernels() + 1),
            arguments: Vec::new(),
            operands: Vec::new(),
            outputs: Vec::new(),
        };
        for argument in 0..n_arguments {
            let output = layout.define(argument)?;
            layout.arguments.push(output);
        }
        (0..n_arguments).for_each(|argument| layout.release(argument));
        Ok(layout)
    }

    /// Gives a register a slot in which nothing lies.
    fn define(&mut self, register: u32) -> Result<Output, Malformed> {
        let slot = self.slots.get_mut(register as usize);
        let slot = slot.ok_or_else(|| missing_register(register))?;
        if *slot != NOWHERE {
            return Err(Malformed(format!("register {register} is defined twice")));
        }
        *slot = match self.free.pop() {
            Some(free) => free,
            None => {
                let new = self.n_slots;
                self.n_slots += 1;
                new
            }
        };
        Ok(Output::from_words([*slot, self.left[register as usize]]))
    }

    /// Where a register lies.
    fn find(&self, register: u32) -> Result<u32, Malformed> {
        match *self.slots.get(register as usize).unwrap_or(&NOWHERE) {
            NOWHERE => Err(Malformed(format!("register {register} is read too early"))),
            slot => Ok(slot),
        }
    }

    /// Gives the slot of a register back if nobody is going to read it.
    fn release(&mut self, register: u32) {
        if self.left[register as usize] == 0 {
            self.free.push(self.slots[register as usize]);
        }
    }

    /// Appends the record of the kernel that runs next.
    fn add(&mut self, wired: &KernelDependencies<'_>) -> Result<(), Malformed> {
        self.operands.clear();
        for register in wired.operands {
            let slot = self.find(*register)?;
            self.operands.push(slot);
        }
        self.outputs.clear();
        for register in wired.results {
            let output = self.define(*register)?;
            self.outputs.push(output);
        }
        for register in wired.operands {
            self.left[*register as usize] -= 1;
            self.release(*register);
        }
        for register in wired.results {
            self.release(*register);
        }
        let (operands, outputs) = (&self.operands, &self.outputs);
        let (attributes, functions) = (wired.attributes, wired.functions);
        let records = &mut self.records;
        let written = records.write(wired.entrance, operands, outputs, attributes, functions);
        written.ok_or_else(too_large)
    }

    /// All kernels were added in this order.
    fn finish(
        mut self,
        order: Vec<u32>,
        has_one_stream: bool,
        n_prompt: u32,
    ) -> Result<InlinePlan, Malformed> {
        let records = &mut self.records;
        let written = records.write(u32::MAX, &[], &self.arguments, &[], &[]);
        written.ok_or_else(too_large)?;
        debug_assert!(records.is_full(), "words are counted before");
        let results = self.wiring.result_registers().iter();
        let results: Result<Box<[u32]>, Malformed> =
            results.map(|register| self.find(*register)).collect();
        // Functions are mostly written in an order in which they can run.
        let mut numbered = (0..).zip(&order);
        let is_as_written = numbered.all(|(position, kernel)| position == *kernel);
        Ok(InlinePlan {
            n_kernels: order.len() as u32,
            n_slots: self.n_slots as usize,
            n_arguments: self.arguments.len(),
            numbers: if is_as_written {
                Box::default()
            } else {
                order.into()
            },
            results: results?,
            records: self.records.finish(),
            has_one_stream,
            n_prompt,
        })
    }
}
