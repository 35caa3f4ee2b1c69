//! One run of a kernel: what it takes from and gives to the executor.

use std::fmt;
use std::sync::Arc;

use tfrt_async::queue::LocalTask;
use tfrt_async::{AnyAsyncValue, AsyncValue, Error, Value};
use tfrt_bef::AttributeView;

use super::control::{Callee, Flow};
use super::function::Counts;
use super::node::NodeState;
use super::param::{HeldAttribute, LentAttribute, ScalarAttr};
use crate::context::HostContext;
use crate::executor::frame::Frame;
use crate::executor::plan::function::FunctionPlan;
use crate::executor::slots::{Activation, Cursor};
use crate::executor::{later, locate};
use crate::function::Function;
use crate::program::ProgramRef;
use crate::request::{ExecutionContext, LentContext, RequestContext};

/// Why a parameter could not be taken off the frame.
#[derive(Debug)]
pub enum Mismatch {
    /// The operand is an error, which becomes the kernel's results.
    Failed,
    /// The operand holds a value of another type.
    Operand {
        /// Its position.
        index: usize,
        /// The MLIR name of the parameter's type.
        expected: &'static str,
        /// The MLIR name of the value's type, if it is known.
        found: Option<&'static str>,
    },
    /// The attribute can't be read as the parameter's type.
    Attribute {
        /// Its position in the order of names.
        index: usize,
        /// The kind of value that the parameter reads.
        expected: &'static str,
    },
    /// The program gives fewer operands, attributes or functions than the kernel has parameters.
    Missing(&'static str),
}

impl From<Mismatch> for Error {
    fn from(mismatch: Mismatch) -> Error {
        Error::invalid_argument(match mismatch {
            Mismatch::Failed => "an operand has failed".to_owned(),
            Mismatch::Operand {
                index,
                expected,
                found,
            } => {
                let found = found.unwrap_or("a value of unknown type");
                format!("operand {index}: expected {expected}, found {found}")
            }
            Mismatch::Attribute { index, expected } => {
                format!("attribute {index} can't be read as {expected}")
            }
            Mismatch::Missing(what) => format!("an expected {what} is missing"),
        })
    }
}

/// How a kernel has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u32);

impl Status {
    /// All results are put; none of them needs a second look.
    pub(crate) const PLAIN: Status = Status(0);
    /// All results are put, but some of them are counted, errors, or to come.
    const COUNTED: u32 = 1;
    /// All results are put, and that is all; but some of them are counted, errors, or to come.
    pub(crate) const PUT: Status = Status(Self::COUNTED);
    /// Results from [`Scratch::n_put`] on are to become [`Scratch::failure`], the kernel's own.
    const FAILED: u32 = 2;
    /// The kernel did not run: all results are to become [`Scratch::failure`], an operand's.
    const SKIPPED: u32 = 4;
    /// [`Scratch::flow`] says what to do for the results.
    const FLOW: u32 = 8;
    /// The function [`Scratch::callee`] is to be called for the results, with the operands from
    /// [`Scratch::n_taken`] on, which are left.
    const CALL: u32 = 16;
    /// Those operands are values in place.
    const IN_PLACE: u32 = 64;
    /// A function is to be called, and that is all.
    pub(crate) const CALL_IN_PLACE: Status = Status(Self::CALL | Self::IN_PLACE);
    /// The task [`Scratch::task`] is to bring the result.
    const LATER: u32 = 32;

    /// That of a kernel which has put this one result.
    #[inline(always)]
    pub(crate) fn of_result(value: &AnyAsyncValue) -> Status {
        match value.is_plain() && !value.is_counted() {
            true => Status::PLAIN,
            false => Status(Self::COUNTED),
        }
    }

    pub(crate) fn is_failed(self) -> bool {
        self.0 & Self::FAILED != 0
    }

    pub(crate) fn is_skipped(self) -> bool {
        self.0 & Self::SKIPPED != 0
    }

    pub(crate) fn is_flow(self) -> bool {
        self.0 & Self::FLOW != 0
    }

    /// Whether a task is to bring the result.
    #[inline(always)]
    pub(crate) fn is_later(self) -> bool {
        self.0 & Self::LATER != 0
    }

    /// Whether a function is to be called with the operands that are left.
    #[inline(always)]
    pub(crate) fn is_call(self) -> bool {
        self.0 & Self::CALL != 0
    }
}

/// Requests that kernels leave for the executor besides results, and lists that are used again.
#[derive(Default)]
pub struct Scratch {
    pub(crate) failure: Option<Error>,
    pub(crate) n_put: u32,
    pub(crate) n_taken: u32,
    pub(crate) callee: Option<Callee>,
    pub(crate) flow: Option<Flow>,
    pub(crate) task: Option<LocalTask<'static>>,
    spare: Vec<Vec<AnyAsyncValue>>,
}

/// As many lists are kept to be used again.
const MAX_SPARE: usize = 8;

impl Scratch {
    #[cold]
    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// An empty list, with room if one was used before.
    #[inline]
    pub(crate) fn list(&mut self) -> Vec<AnyAsyncValue> {
        self.spare.pop().unwrap_or_default()
    }

    /// Ends its use, mostly with nothing in it: then there is nothing to drop.
    #[inline(always)]
    pub(crate) fn end(self) {
        let is_empty = !cfg!(tfrt_for_size)
            && self.failure.is_none()
            && self.flow.is_none()
            && self.task.is_none()
            && self.spare.capacity() == 0;
        if is_empty {
            std::mem::forget(self);
        }
    }

    /// Keeps a list to be used again.
    #[inline]
    pub(crate) fn keep(&mut self, mut list: Vec<AnyAsyncValue>) {
        list.clear();
        if list.capacity() > 0 && self.spare.len() < MAX_SPARE {
            self.spare.push(list);
        }
    }
}

/// Where a kernel runs.
pub struct KernelEnv<'f> {
    pub(crate) program: &'f ProgramRef,
    pub(crate) request: &'f Arc<RequestContext>,
    pub(crate) topology: &'f FunctionPlan,
    /// The call, if it is one that counts.
    pub(crate) frame: Option<&'f Arc<Frame>>,
    /// The number of the kernel in its function.
    pub(crate) kernel: u32,
    /// It is marked `bef.nonstrict`: errors are handed to it.
    pub(crate) is_marked: bool,
    pub(crate) scratch: &'f mut Scratch,
}

impl KernelEnv<'_> {
    pub(crate) fn execution_context(&self) -> ExecutionContext {
        ExecutionContext::for_kernel(self.program, self.request, self.topology, self.kernel)
    }

    /// Gives an error the kernel's place and name, and tells the diagnostic handler, once.
    pub(crate) fn report(&self, error: Error) -> Error {
        self.execution_context().report_once(error)
    }

    /// Gives an error its place, and reports it, if it is the kernel's own.
    pub(crate) fn located(&self, value: AnyAsyncValue) -> AnyAsyncValue {
        locate(self.topology, self.kernel, value, || {
            self.execution_context()
        })
    }
}

/// One run of a kernel.
///
/// Operands, attributes and functions are taken in order, each once; results are put in order.
/// What is not taken is dropped when the kernel has returned.
pub struct KernelFrame<'f, 'c> {
    cursor: Cursor<'c>,
    around: &'c mut KernelEnv<'f>,
    n_attributes_taken: u32,
    n_functions_taken: u32,
    /// How many results were put that the program does not ask for.
    n_surplus: u32,
    /// Those operands that are left were looked at, and found to be values in place.
    is_rest_in_place: bool,
    status: u32,
}

impl<'f, 'c> KernelFrame<'f, 'c> {
    #[inline(always)]
    pub(super) fn new(activation: Activation<'c>, around: &'c mut KernelEnv<'f>) -> Self {
        KernelFrame {
            cursor: Cursor::new(activation),
            around,
            n_attributes_taken: 0,
            n_functions_taken: 0,
            n_surplus: 0,
            is_rest_in_place: false,
            status: 0,
        }
    }

    /// Copies an operand of a kernel that has not taken any, if it is a small value of type `T` and
    /// there in place.
    #[inline(always)]
    pub(super) fn copy_at<T: Value + Copy>(&self, index: u32) -> Option<T> {
        self.cursor.peek_at(index)?.get_in_place::<T>()
    }

    /// Tells whether the program gives as many operands, and asks for as many results, as these.
    #[inline(always)]
    pub(super) fn fits(&self, counts: Counts) -> bool {
        let (n_operands, n_results) = (self.cursor.n_operands(), self.cursor.n_results());
        counts.fit(n_operands as usize, n_results as usize)
    }

    /// Tells whether the operands from this one on are values in place.
    #[inline(always)]
    pub(super) fn is_rest_in_place(&mut self, first: u32) -> bool {
        self.is_rest_in_place = self.cursor.are_in_place(first);
        self.is_rest_in_place
    }

    /// Operands below this one were copied, and are values in place.
    #[inline(always)]
    pub(super) fn has_copied(&mut self, next: u32) {
        self.cursor.forget_operands_below(next);
    }

    /// All operands were copied, or are values in place that nobody wants.
    #[inline(always)]
    pub(super) fn has_copied_all(&mut self) {
        self.cursor.forget_operands();
    }

    /// Begins anew: nothing was taken but attributes.
    #[inline(always)]
    pub(super) fn into_activation(self) -> (Activation<'c>, &'c mut KernelEnv<'f>) {
        (self.cursor.into_activation(), self.around)
    }

    /// Ends the run.
    #[inline(always)]
    pub(super) fn end(&mut self) -> Status {
        let found = self.cursor.n_put() + self.n_surplus;
        let expected = self.cursor.n_results();
        if self.status & (Status::FLOW | Status::CALL | Status::LATER) != 0 {
            // The results are to come from a call, or from a task.
            if found > 0 {
                self.cursor.withdraw();
            }
        } else if found != expected && self.status & (Status::FAILED | Status::SKIPPED) == 0 {
            self.fail(wrong_result_count(found as usize, expected as usize));
            // Nobody can tell which result is which.
            self.cursor.withdraw();
        }
        if self.status != 0 {
            self.around.scratch.n_put = self.cursor.n_put();
        }
        Status(self.status)
    }

    /// Ends a run whose parameters could not be taken: with the error of the failed strict operand
    /// that has the highest number, or else with what did not fit.
    #[inline(always)]
    pub(super) fn end_unfit(&mut self, mismatch: Mismatch) -> Status {
        end_unfit(self.cursor.hand_over(), self.around, mismatch)
    }

    /// Looks at the operands that no parameter takes, before the kernel runs.
    #[cfg_attr(not(tfrt_for_size), inline(always))]
    #[cfg_attr(tfrt_for_size, inline(never))]
    pub(super) fn check_rest(&mut self) -> Result<(), Mismatch> {
        self.is_rest_in_place = self.cursor.are_in_place(self.cursor.n_taken());
        if self.is_rest_in_place {
            return Ok(());
        }
        self.check_left()
    }

    #[cold]
    fn check_left(&self) -> Result<(), Mismatch> {
        if self.around.is_marked {
            return Ok(());
        }
        let failed = |_, operand: &AnyAsyncValue| operand.error().map(|_| ());
        match self.cursor.find_last(failed) {
            Some(()) => Err(Mismatch::Failed),
            None => Ok(()),
        }
    }

    /// Returns an operand, before any is taken: a value, an error, or a value to come.
    ///
    /// # Panics
    ///
    /// If an operand was taken.
    #[inline(always)]
    pub fn peek_operand(&self, index: usize) -> Option<&AnyAsyncValue> {
        self.cursor.peek_at(index.try_into().ok()?)
    }

    /// The number of operands not yet taken.
    #[inline]
    pub fn n_operands_left(&self) -> usize {
        let n_operands = self.cursor.n_operands();
        let entry = self.around.topology.entry(self.around.kernel);
        let n_declared = n_operands.min(entry.max_operands);
        n_declared.saturating_sub(self.cursor.n_taken()) as usize
    }

    /// The index of the operand that is taken next.
    pub fn next_operand(&self) -> usize {
        self.cursor.n_taken() as usize
    }

    /// Takes the next operand as it is: a value, an error, or a value to come.
    #[inline]
    pub fn take_operand(&mut self) -> Result<AnyAsyncValue, Mismatch> {
        self.cursor.take().ok_or(Mismatch::Missing("operand"))
    }

    /// Takes the next operand, which must be a value.
    ///
    /// # Errors
    ///
    /// [`Mismatch::Failed`] if it is an error; the kernel is skipped then.
    #[inline]
    pub fn take_value(&mut self) -> Result<AnyAsyncValue, Mismatch> {
        let operand = self.cursor.peek().ok_or(Mismatch::Missing("operand"))?;
        if !operand.is_plain() && !self.around.is_marked && operand.error().is_some() {
            return Err(Mismatch::Failed);
        }
        self.take_operand()
    }

    /// Takes the next operand, a small value of type `T`.
    #[inline(always)]
    pub fn take_copy<T: Value + Copy>(&mut self) -> Result<T, Mismatch> {
        let operand = self.cursor.peek().ok_or(Mismatch::Missing("operand"))?;
        if let Some(copy) = operand.get_in_place::<T>() {
            // A value in place owns nothing.
            std::mem::forget(self.cursor.take());
            return Ok(copy);
        }
        let copy = copy_slowly::<T>(operand, self.around.is_marked, self.cursor.n_taken())?;
        drop(self.cursor.take());
        Ok(copy)
    }

    /// Takes the next operand, a settled value of type `T`.
    #[inline]
    pub fn take_typed<T: Value>(&mut self) -> Result<AsyncValue<T>, Mismatch> {
        let value = self.take_value()?.settled();
        if !value.is::<T>() {
            return Err(self.wrong_type::<T>(&value));
        }
        value
            .downcast::<T>()
            .map_err(|value| self.wrong_type::<T>(&value))
    }

    #[inline(always)]
    fn wrong_type<T: Value>(&self, value: &AnyAsyncValue) -> Mismatch {
        wrong_type::<T>(value, self.cursor.n_taken() - 1)
    }

    /// Takes all operands that are left, which must be values.
    pub(super) fn take_rest(&mut self) -> Result<Vec<AnyAsyncValue>, Mismatch> {
        let mut rest = self.around.scratch.list();
        let n_left = self.n_operands_left();
        rest.reserve(n_left);
        for _ in 0..n_left {
            rest.push(self.take_value()?);
        }
        Ok(rest)
    }

    /// The number of attributes not yet taken.
    pub fn n_attributes_left(&self) -> usize {
        self.cursor.record().attributes().len() - self.n_attributes_taken as usize
    }

    /// Takes the next attribute, read by `read`.
    #[inline]
    pub fn take_attribute<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(AttributeView<'f>) -> Option<T>,
    ) -> Result<T, Mismatch> {
        let index = self.n_attributes_taken as usize;
        let offset = self.next_attribute()?;
        let program: &'f ProgramRef = self.program();
        read(program.attribute(offset)).ok_or(Mismatch::Attribute { index, expected })
    }

    /// Takes the next attribute, a scalar; load has compared its type.
    #[inline(always)]
    pub(super) fn take_scalar<T: ScalarAttr>(&mut self) -> Result<T, Mismatch> {
        let index = self.n_attributes_taken as usize;
        let offset = self.next_attribute()?;
        let expected = T::KIND;
        let value = self.around.program.scalar::<T>(offset);
        value.ok_or(Mismatch::Attribute { index, expected })
    }

    /// Takes the next attribute to be read later, if `readable` says that it can.
    pub fn hold_attribute(
        &mut self,
        expected: &'static str,
        readable: impl FnOnce(AttributeView<'_>) -> bool,
    ) -> Result<HeldAttribute, Mismatch> {
        let index = self.n_attributes_taken as usize;
        let offset = self.next_attribute()?;
        if !readable(self.program().attribute(offset)) {
            return Err(Mismatch::Attribute { index, expected });
        }
        Ok(HeldAttribute::new(self.program().clone(), offset))
    }

    /// Takes the next attribute, lent for the call. Load has found that it is readable.
    #[inline]
    pub fn lend_attribute(&mut self) -> Result<LentAttribute<'f>, Mismatch> {
        let offset = self.next_attribute()?;
        Ok(LentAttribute::new(self.program(), offset))
    }

    #[inline]
    fn next_attribute(&mut self) -> Result<u32, Mismatch> {
        let attributes = self.cursor.record().attributes();
        let offset = *attributes
            .get(self.n_attributes_taken as usize)
            .ok_or(Mismatch::Missing("attribute"))?;
        self.n_attributes_taken += 1;
        Ok(offset)
    }

    /// The number of functions not yet taken.
    pub fn n_functions_left(&self) -> usize {
        self.cursor.record().functions().len() - self.n_functions_taken as usize
    }

    /// Takes the next function.
    pub fn take_function(&mut self) -> Result<Function, Mismatch> {
        let index = self.next_function()?;
        Ok(Function::new(self.program().clone(), index))
    }

    /// Takes the next function, to be called by the executor.
    #[inline]
    pub fn take_callee(&mut self) -> Result<Callee, Mismatch> {
        let index = self.next_function()?;
        self.program()
            .callee(index)
            .ok_or(Mismatch::Missing("function"))
    }

    #[inline]
    fn next_function(&mut self) -> Result<u32, Mismatch> {
        let functions = self.cursor.record().functions();
        let index = *functions
            .get(self.n_functions_taken as usize)
            .ok_or(Mismatch::Missing("function"))?;
        self.n_functions_taken += 1;
        Ok(index)
    }

    /// Puts the next result.
    #[cfg_attr(not(tfrt_for_size), inline(always))]
    #[cfg_attr(tfrt_for_size, inline(never))]
    pub fn put_result(&mut self, value: AnyAsyncValue) {
        if value.is_counted() {
            self.status |= Status::COUNTED;
        }
        if let Err(value) = self.cursor.put(value) {
            drop(value);
            self.n_surplus = self.n_surplus.saturating_add(1);
        }
    }

    /// The number of results that the program asks for.
    #[inline]
    pub fn n_results(&self) -> usize {
        self.cursor.n_results() as usize
    }

    /// Fails every result that has not been put. The executor reports the error.
    #[inline]
    pub fn fail(&mut self, error: Error) {
        self.around.scratch.fail(error);
        self.status |= Status::FAILED;
    }

    /// Leaves the results to the executor, which does this for them.
    #[inline]
    pub(super) fn follow(&mut self, flow: Flow) {
        self.around.scratch.flow = Some(flow);
        self.status |= Status::FLOW;
    }

    /// Leaves the results to the executor, which calls a function with the operands that are left.
    #[cfg_attr(not(tfrt_for_size), inline(always))]
    #[cfg_attr(tfrt_for_size, inline(never))]
    pub(super) fn call(&mut self, callee: Callee) {
        self.around.scratch.callee = Some(callee);
        self.around.scratch.n_taken = self.cursor.leave();
        self.status |= Status::CALL;
        if self.is_rest_in_place {
            self.status |= Status::IN_PLACE;
        }
    }

    /// Leaves the result to a task, which the executor hands over when the kernel has returned.
    #[inline]
    pub(super) fn later(&mut self, compute: impl FnOnce() -> AnyAsyncValue + Send + 'static) {
        let kernel = self.around.kernel;
        let outputs = match self.around.frame {
            // It runs beside the slots of its call; the task fills one of these.
            Some(frame) if self.around.is_marked => frame.shape().record(kernel).outputs(),
            _ => self.cursor.record().outputs(),
        };
        match (self.around.frame, outputs) {
            (Some(frame), [output]) if !self.around.topology.has_early_users(output.register) => {
                let task = later::task(frame, kernel, output.register, compute);
                self.around.scratch.task = Some(task);
                self.status |= Status::LATER;
            }
            (Some(frame), [_]) => {
                // There are kernels that start as soon as this one has returned.
                let value = later::enqueue(frame.request(), compute);
                self.put_result(value);
            }
            // Nobody goes on meanwhile.
            _ => self.put_result(compute()),
        }
    }

    /// The host.
    pub fn host(&self) -> &'f HostContext {
        let request: &'f RequestContext = self.around.request;
        request.host()
    }

    /// The surroundings of this call, with its place in the program.
    pub fn execution_context(&self) -> ExecutionContext {
        self.around.execution_context()
    }

    /// Returns the execution context, borrowed while the kernel runs.
    #[inline]
    pub fn lent_context(&self) -> LentContext<'f> {
        let around = &self.around;
        LentContext::new(
            around.program,
            around.request,
            around.topology.number,
            around.kernel,
        )
    }

    /// Returns what the kernel keeps for the node from run to run.
    #[inline]
    pub fn node_state(&self) -> NodeState<'f> {
        NodeState::of(self.around.topology.node(self.around.kernel))
    }

    #[inline]
    pub(crate) fn program(&self) -> &'f ProgramRef {
        self.around.program
    }
}

/// See [`KernelFrame::end_unfit`].
#[cold]
#[inline(never)]
fn end_unfit(mut cursor: Cursor<'_>, around: &mut KernelEnv<'_>, mismatch: Mismatch) -> Status {
    let entry = around.topology.entry(around.kernel);
    let failed = cursor.find_last(|index, operand| {
        let error = operand.error()?;
        let is_strict = entry.signature.is_strict(index as usize);
        is_strict.then(|| error.clone())
    });
    cursor.withdraw();
    let scratch = &mut around.scratch;
    scratch.n_put = 0;
    match failed {
        Some(error) if !around.is_marked => {
            scratch.failure = Some(error);
            Status(Status::SKIPPED)
        }
        _ => {
            scratch.fail(mismatch.into());
            Status(Status::FAILED)
        }
    }
}

/// The cold path of [`KernelFrame::take_copy`]: a heap value, a settled handle, another type, or an
/// error.
#[cold]
fn copy_slowly<T: Value + Copy>(
    operand: &AnyAsyncValue,
    is_marked: bool,
    index: u32,
) -> Result<T, Mismatch> {
    if !is_marked && operand.error().is_some() {
        return Err(Mismatch::Failed);
    }
    let copy = operand.get::<T>().copied();
    copy.ok_or_else(|| wrong_type::<T>(operand, index))
}

#[cold]
fn wrong_type<T: Value>(operand: &AnyAsyncValue, index: u32) -> Mismatch {
    Mismatch::Operand {
        index: index as usize,
        expected: T::NAME,
        found: operand.type_name(),
    }
}

/// The error of a kernel that gives too few or too many results.
#[cold]
pub(crate) fn wrong_result_count(found: usize, expected: usize) -> Error {
    Error::internal(format!(
        "the kernel gave {found} results where {expected} are expected"
    ))
}

impl fmt::Debug for KernelFrame<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelFrame")
            .field(
                "kernel",
                &self.around.topology.entry(self.around.kernel).name,
            )
            .field("n_operands_left", &self.n_operands_left())
            .finish()
    }
}
