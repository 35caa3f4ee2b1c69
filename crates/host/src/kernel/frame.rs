//! One call of a kernel: what it takes from and gives to the executor.

use std::fmt;

use tfrt_async::{AnyAsyncValue, AsyncValue, Error, Value};
use tfrt_bef::AttributeView;

use super::param::HeldAttribute;
use crate::context::HostContext;
use crate::executor::frame::Running;
use crate::function::Function;
use crate::program::ProgramRef;
use crate::request::ExecutionContext;

/// Why a parameter could not be taken off the frame.
#[derive(Debug)]
pub enum Mismatch {
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
        /// What the parameter reads.
        expected: &'static str,
    },
    /// The program gives fewer operands, attributes or functions than the kernel has parameters.
    Missing(&'static str),
}

impl From<Mismatch> for Error {
    fn from(mismatch: Mismatch) -> Error {
        Error::invalid_argument(match mismatch {
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

/// One call of a kernel.
///
/// Operands, attributes and functions are taken in order, each once; results are put in order.
/// What is not taken is dropped when the kernel has returned.
pub struct KernelFrame<'f, 'r> {
    running: Running<'f>,
    results: &'r mut Vec<AnyAsyncValue>,
    failure: Option<Error>,
    n_attributes_taken: usize,
    n_functions_taken: usize,
}

impl<'f, 'r> KernelFrame<'f, 'r> {
    pub(crate) fn new(running: Running<'f>, results: &'r mut Vec<AnyAsyncValue>) -> Self {
        KernelFrame {
            running,
            results,
            failure: None,
            n_attributes_taken: 0,
            n_functions_taken: 0,
        }
    }

    /// Ends the call: the right to the kernel's registers, and the error that it failed with.
    pub(crate) fn end(self) -> (Running<'f>, Option<Error>) {
        (self.running, self.failure)
    }

    /// The number of operands not yet taken.
    pub fn n_operands_left(&self) -> usize {
        self.running.n_operands_left()
    }

    /// The index of the operand that is taken next.
    pub fn next_operand(&self) -> usize {
        self.running.next_operand()
    }

    /// Takes the next operand as it is.
    #[inline]
    pub fn take_operand(&mut self) -> Result<AnyAsyncValue, Mismatch> {
        self.running
            .take_operand()
            .ok_or(Mismatch::Missing("operand"))
    }

    /// Takes the next operand, a small value of type `T`.
    #[inline]
    pub fn take_copy<T: Value + Copy>(&mut self) -> Result<T, Mismatch> {
        let value = self.take_operand()?;
        match value.get_in_place::<T>() {
            Some(copy) => Ok(copy),
            None => self.take_copy_slowly(&value),
        }
    }

    /// The cold path of [`Self::take_copy`]: a heap value, a settled handle, or another type.
    #[cold]
    fn take_copy_slowly<T: Value + Copy>(&self, value: &AnyAsyncValue) -> Result<T, Mismatch> {
        value
            .get::<T>()
            .copied()
            .ok_or_else(|| self.wrong_type::<T>(value))
    }

    /// Takes the next operand, a settled value of type `T`.
    pub fn take_typed<T: Value>(&mut self) -> Result<AsyncValue<T>, Mismatch> {
        let value = self.take_operand()?.settled();
        if !value.is::<T>() {
            return Err(self.wrong_type::<T>(&value));
        }
        value
            .downcast::<T>()
            .map_err(|value| self.wrong_type::<T>(&value))
    }

    fn wrong_type<T: Value>(&self, value: &AnyAsyncValue) -> Mismatch {
        Mismatch::Operand {
            index: self.next_operand() - 1,
            expected: T::NAME,
            found: value.type_name(),
        }
    }

    fn attributes(&self) -> &'f [u32] {
        self.running
            .frame()
            .topology()
            .attributes(self.running.node())
    }

    fn functions(&self) -> &'f [u32] {
        self.running
            .frame()
            .topology()
            .functions(self.running.node())
    }

    /// The number of attributes not yet taken.
    pub fn n_attributes_left(&self) -> usize {
        self.attributes().len() - self.n_attributes_taken
    }

    /// Takes the next attribute, read by `read`.
    #[inline]
    pub fn take_attribute<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(AttributeView<'_>) -> Option<T>,
    ) -> Result<T, Mismatch> {
        let index = self.n_attributes_taken;
        let offset = self.next_attribute()?;
        read(self.program().attribute(offset)).ok_or(Mismatch::Attribute { index, expected })
    }

    /// Takes the next attribute to be read later, if `readable` says that it can.
    pub(super) fn hold_attribute(
        &mut self,
        expected: &'static str,
        readable: impl FnOnce(AttributeView<'_>) -> bool,
    ) -> Result<HeldAttribute, Mismatch> {
        let index = self.n_attributes_taken;
        let offset = self.next_attribute()?;
        if !readable(self.program().attribute(offset)) {
            return Err(Mismatch::Attribute { index, expected });
        }
        Ok(HeldAttribute::new(self.program().clone(), offset))
    }

    fn next_attribute(&mut self) -> Result<u32, Mismatch> {
        let attributes = self.attributes();
        let offset = *attributes
            .get(self.n_attributes_taken)
            .ok_or(Mismatch::Missing("attribute"))?;
        self.n_attributes_taken += 1;
        Ok(offset)
    }

    /// The number of functions not yet taken.
    pub fn n_functions_left(&self) -> usize {
        self.functions().len() - self.n_functions_taken
    }

    /// Takes the next function.
    pub fn take_function(&mut self) -> Result<Function, Mismatch> {
        let functions = self.functions();
        let index = *functions
            .get(self.n_functions_taken)
            .ok_or(Mismatch::Missing("function"))?;
        self.n_functions_taken += 1;
        Ok(Function::new(self.program().clone(), index))
    }

    /// Puts the next result.
    #[inline]
    pub fn put_result(&mut self, value: AnyAsyncValue) {
        self.results.push(value);
    }

    /// The number of results that the program asks for.
    pub fn n_results(&self) -> usize {
        self.running.n_results()
    }

    /// Fails every result that has not been put. The executor reports the error.
    pub fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
    }

    /// The host.
    pub fn host(&self) -> &HostContext {
        self.running.frame().request().host()
    }

    /// The surroundings of this call, with its place in the program.
    pub fn execution_context(&self) -> ExecutionContext {
        self.running.execution_context()
    }

    pub(crate) fn program(&self) -> &ProgramRef {
        self.running.frame().program()
    }
}

impl fmt::Debug for KernelFrame<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelFrame")
            .field("kernel", &self.running.node().name())
            .field("n_operands_left", &self.n_operands_left())
            .finish()
    }
}
