//! [`FunctionView`] and [`Body`]: registers, kernel table, result registers.

use std::fmt;

use crate::{
    file::{BefFile, BodyRecord, FunctionRecord},
    kernel::KernelView,
    layout::{FunctionIndex, FunctionKind, KernelIndex, LocationOffset, RegisterIndex, TypeIndex},
};

/// A function of a file.
#[derive(Clone, Copy)]
pub struct FunctionView<'a> {
    file: &'a BefFile,
    index: FunctionIndex,
    record: &'a FunctionRecord,
}

impl<'a> FunctionView<'a> {
    pub(crate) fn new(file: &'a BefFile, index: FunctionIndex) -> FunctionView<'a> {
        FunctionView {
            file,
            index,
            record: &file.index().functions[index.index()],
        }
    }

    /// Returns the file that the function is in.
    pub fn file(&self) -> &'a BefFile {
        self.file
    }

    /// Returns the position in the file.
    pub fn index(&self) -> FunctionIndex {
        self.index
    }

    /// Returns the name; empty for the region of a kernel.
    pub fn name(&self) -> &'a str {
        self.file.text(self.record.name)
    }

    /// Returns how the function is executed.
    pub fn kind(&self) -> FunctionKind {
        self.record.kind
    }

    /// Returns how many arguments the function takes.
    pub fn n_arguments(&self) -> usize {
        self.record.arguments.len()
    }

    /// Returns how many results the function has.
    pub fn n_results(&self) -> usize {
        self.record.results.len()
    }

    /// Returns the types of the arguments.
    pub fn argument_types(&self) -> impl ExactSizeIterator<Item = TypeIndex> + use<'a> {
        let types = &self.file.index().signature_types[self.record.arguments.range()];
        types.iter().map(|index| TypeIndex(*index))
    }

    /// Returns the types of the results.
    pub fn result_types(&self) -> impl ExactSizeIterator<Item = TypeIndex> + use<'a> {
        let types = &self.file.index().signature_types[self.record.results.range()];
        types.iter().map(|index| TypeIndex(*index))
    }

    /// Returns the body; a native function has none.
    pub fn body(&self) -> Option<Body<'a>> {
        let record = self.record.body.as_ref()?;
        Some(Body {
            file: self.file,
            function: self.index,
            n_arguments: self.n_arguments(),
            record,
            words: self.file.function_words(),
        })
    }
}

impl fmt::Debug for FunctionView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionView")
            .field("index", &self.index)
            .field("name", &self.name())
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}

/// The registers and kernels of a function.
#[derive(Clone, Copy)]
pub struct Body<'a> {
    file: &'a BefFile,
    function: FunctionIndex,
    n_arguments: usize,
    record: &'a BodyRecord,
    /// The Functions section.
    words: &'a [u32],
}

impl<'a> Body<'a> {
    /// Returns the location of the function, or of the operation that owns the region.
    pub fn location(&self) -> LocationOffset {
        LocationOffset(self.record.location)
    }

    /// Returns how many registers a call needs.
    pub fn n_registers(&self) -> usize {
        self.record.registers.len()
    }

    /// Returns how often a register is read, by operands and by the return.
    ///
    /// # Panics
    ///
    /// If `register` is not below [`Body::n_registers`].
    pub fn use_count(&self, register: RegisterIndex) -> u32 {
        self.use_counts()[register.index()]
    }

    /// Returns how often each register is read.
    pub fn use_counts(&self) -> &'a [u32] {
        &self.file.index().use_counts[self.record.registers.range()]
    }

    /// Returns how many arguments there are; they are the first registers.
    pub fn n_arguments(&self) -> usize {
        self.n_arguments
    }

    /// Returns how many kernels there are, without the pseudo kernel.
    pub fn n_kernels(&self) -> usize {
        self.record.kernels.len() - 1
    }

    /// Returns a kernel. The first one has index 1; 0 is the pseudo kernel.
    ///
    /// # Panics
    ///
    /// If `index` is above [`Body::n_kernels`].
    pub fn kernel(&self, index: KernelIndex) -> KernelView<'a> {
        let records = &self.file.index().kernels[self.record.kernels.range()];
        KernelView::new(*self, index, &records[index.index()])
    }

    /// Returns all kernels in order, without the pseudo kernel.
    pub fn kernels(&self) -> impl ExactSizeIterator<Item = KernelView<'a>> + use<'a> {
        let body = *self;
        (1..self.record.kernels.len() as u32).map(move |index| body.kernel(KernelIndex(index)))
    }

    /// Returns the kernels without operands, which start with the call.
    pub fn entry_users(&self) -> &'a [u32] {
        self.kernel(KernelIndex(0)).entry_users()
    }

    /// Returns the kernels that read an argument, once for each operand.
    ///
    /// # Panics
    ///
    /// If `argument` is not below [`Body::n_arguments`].
    pub fn argument_users(&self, argument: usize) -> &'a [u32] {
        assert!(
            argument < self.n_arguments,
            "argument {argument} of {}",
            self.n_arguments
        );
        self.kernel(KernelIndex(0)).users(argument + 1)
    }

    /// Returns the registers that the function returns.
    pub fn result_registers(&self) -> &'a [u32] {
        &self.file.index().result_registers[self.record.results.range()]
    }

    /// Returns the name of a register's type, if the file lists it.
    ///
    /// # Panics
    ///
    /// If `register` is not below [`Body::n_registers`].
    pub fn register_type(&self, register: RegisterIndex) -> Option<&'a str> {
        self.register_type_index(register)
            .map(|index| self.file.type_name(index))
    }

    /// Returns a register's type, if the file lists it.
    ///
    /// # Panics
    ///
    /// If `register` is not below [`Body::n_registers`].
    pub fn register_type_index(&self, register: RegisterIndex) -> Option<TypeIndex> {
        assert!(
            register.index() < self.n_registers(),
            "no register {}",
            register.0
        );
        let types = self
            .file
            .index()
            .register_types
            .get(self.record.registers.range())?;
        types.get(register.index()).map(|index| TypeIndex(*index))
    }

    /// Returns the stream in which the function starts.
    pub fn root_stream(&self) -> u32 {
        self.kernel(KernelIndex(0)).stream()
    }

    pub(crate) fn file(&self) -> &'a BefFile {
        self.file
    }

    pub(crate) fn function(&self) -> FunctionIndex {
        self.function
    }

    pub(crate) fn words(&self) -> &'a [u32] {
        self.words
    }

    /// Returns where the list of a register's users starts, in words of the Functions section.
    pub(crate) fn users_word(&self, register: u32) -> usize {
        self.file.index().users[self.record.registers.range()][register as usize] as usize
    }
}

impl fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("function", &self.function)
            .field("n_registers", &self.n_registers())
            .field("n_kernels", &self.n_kernels())
            .finish_non_exhaustive()
    }
}
