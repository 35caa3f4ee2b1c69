//! The kernels of a function in the order in which one thread runs them, one after the other, and
//! where their values lie meanwhile.
//!
//! A [`Sequence`] is the proof on which the unsafe code of [`stack`](super::stack) stands. It is made only
//! by [`Sequence::new`], which computes or checks, without trusting the gate of the file, that
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

use super::order;
use super::records::{FirstRecords, Record, RecordWriter, Records};
use super::shape::Output;
use super::wiring::{Malformed, Wiring, count, missing_register, too_large};

/// The kernels of a function in an order in which they can run.
#[derive(Debug)]
pub(crate) struct Sequence {
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
}

impl Sequence {
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

    /// The number of a kernel in the file.
    pub(crate) fn number_in_file(&self, kernel: u32) -> u32 {
        match self.numbers.get(kernel as usize) {
            Some(number) => *number,
            None => kernel,
        }
    }

    /// What a kernel reads and fills.
    #[inline(always)]
    pub(crate) fn record(&self, kernel: u32) -> Record<'_> {
        self.records.get(kernel)
    }

    /// What all kernels read and fill.
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
    pub(crate) fn new(wiring: &dyn Wiring) -> Result<Option<Sequence>, Malformed> {
        let n_kernels = u32::try_from(wiring.n_kernels()).map_err(|_| too_large())?;
        if wiring.is_textual() {
            let order: Vec<u32> = (0..n_kernels).collect();
            return Layout::new(wiring, &order)?.write(&order, true).map(Some);
        }
        let simulated = order::simulate(wiring);
        let mut kernels = 0..n_kernels;
        // A marked kernel may start before all of its operands are there.
        if !simulated.is_complete || kernels.any(|kernel| wiring.kernel(kernel).is_marked) {
            return Ok(None);
        }
        let order = &simulated.order;
        let layout = Layout::new(wiring, order)?;
        layout.write(order, simulated.has_one_stream).map(Some)
    }
}

/// Stands for the slot of a value that is not there yet.
const NOWHERE: u32 = u32::MAX;

/// What is known of the registers of the wiring while they get slots.
struct Layout<'w> {
    wiring: &'w dyn Wiring,
    /// By register: where its value lies, or [`NOWHERE`].
    slots: Box<[u32]>,
    /// By register: how often it is still to be read or returned.
    left: Box<[u32]>,
    /// Slots that nobody needs any more.
    free: Vec<u32>,
    n_slots: u32,
    n_words: usize,
}

impl<'w> Layout<'w> {
    /// Counts how often registers are read.
    fn new(wiring: &'w dyn Wiring, order: &[u32]) -> Result<Self, Malformed> {
        let n_registers = wiring.n_registers();
        let mut left = vec![0u32; n_registers].into_boxed_slice();
        let mut n_words = 0;
        let mut read = |register: &u32| -> Result<(), Malformed> {
            let left = left.get_mut(*register as usize);
            count(left.ok_or_else(|| missing_register(*register))?, *register)
        };
        for kernel in order {
            let wired = wiring.kernel(*kernel);
            if wired.is_marked {
                return Err(Malformed(format!("kernel {kernel} can't wait for less")));
            }
            wired.operands.iter().try_for_each(&mut read)?;
            let constants = wired.attributes.len() + wired.functions.len();
            n_words += RecordWriter::n_words(wired.operands.len(), wired.results.len(), constants);
        }
        wiring.result_registers().iter().try_for_each(read)?;
        Ok(Layout {
            wiring,
            slots: vec![NOWHERE; n_registers].into(),
            left,
            free: Vec::new(),
            n_slots: 0,
            n_words: n_words + RecordWriter::n_words(0, wiring.n_arguments(), 0),
        })
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
        match self.slots[register as usize] {
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

    /// Writes all records.
    fn write(mut self, order: &[u32], has_one_stream: bool) -> Result<Sequence, Malformed> {
        let wiring = self.wiring;
        let n_arguments = wiring.n_arguments();
        let mut records = RecordWriter::new(self.n_words, order.len() + 1);
        let (mut operands, mut outputs) = (Vec::new(), Vec::new());
        let mut arguments = Vec::new();
        for argument in 0..n_arguments as u32 {
            arguments.push(self.define(argument)?);
        }
        (0..n_arguments as u32).for_each(|argument| self.release(argument));
        for kernel in order {
            let wired = wiring.kernel(*kernel);
            operands.clear();
            for register in wired.operands {
                operands.push(self.find(*register)?);
            }
            outputs.clear();
            for register in wired.results {
                outputs.push(self.define(*register)?);
            }
            for register in wired.operands {
                self.left[*register as usize] -= 1;
                self.release(*register);
            }
            wired
                .results
                .iter()
                .for_each(|result| self.release(*result));
            let (attributes, functions) = (wired.attributes, wired.functions);
            let written = records.write(wired.entrance, &operands, &outputs, attributes, functions);
            written.ok_or_else(too_large)?;
        }
        let written = records.write(u32::MAX, &[], &arguments, &[], &[]);
        written.ok_or_else(too_large)?;
        let results = wiring.result_registers().iter();
        let results: Result<Box<[u32]>, Malformed> =
            results.map(|register| self.find(*register)).collect();
        // Functions are mostly written in an order in which they can run.
        let is_as_written = (0..)
            .zip(order)
            .all(|(position, kernel)| position == *kernel);
        Ok(Sequence {
            records: records.finish(),
            n_kernels: order.len() as u32,
            n_slots: self.n_slots as usize,
            n_arguments,
            numbers: if is_as_written {
                Box::default()
            } else {
                order.into()
            },
            results: results?,
            has_one_stream,
        })
    }
}
