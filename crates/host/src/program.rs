//! [`Program`]: a BEF file bound to kernels, checked, and shareable.
//!
//! Load removes the last doubts: every kernel name is registered, and every use of a kernel fits
//! its signature in number and, as far as types are known, in type. All misfits are reported at
//! once. A kernel that runs later relies on the counts; types are compared once more when operands
//! are taken, since a file may be silent about them.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tfrt_async::record::FunctionId;
use tfrt_async::{Error, SourceLocation};
use tfrt_bef::{
    AttributeOffset, AttributeSection, AttributeView, BefFile, Body, FunctionIndex, FunctionKind,
    FunctionView, KernelIndex, KernelView, Location, LocationOffset,
};

use crate::codes;
use crate::context::HostContext;
use crate::executor::plan::dataflow::DataflowPlan;
use crate::executor::plan::dependencies::Malformed;
use crate::executor::plan::function::{Entries, FunctionPlan, find_manners};
use crate::function::Function;
use crate::kernel::{CHAIN, Callee, Completion, KernelEntry, ScalarAttr, Signature};

/// A file bound to kernels. A counted handle; many programs may share a host.
#[derive(Clone)]
pub struct Program(ProgramRef);

/// A counted handle of a loaded program, held by functions, frames and kernels.
pub(crate) type ProgramRef = Arc<LoadedProgram>;

pub(crate) struct LoadedProgram {
    /// The number of the program, which tells programs apart.
    id: NonZeroU32,
    file: BefFile,
    attribute_section: AttributeSection,
    host: HostContext,
    functions: Box<[FunctionPlan]>,
    /// The functions as callees, by their numbers.
    callees: Box<[Callee]>,
}

/// One reason why a program can't be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadProblem {
    /// The code of the misfit, one of [`codes`](crate::codes).
    pub code: &'static str,
    /// The location in the user's source, if the file has it.
    pub location: Option<SourceLocation>,
    /// The message: what was expected and found.
    pub message: String,
    /// Advice: what might be meant instead.
    pub help: Option<String>,
    /// The native function that the problem is about: files do not say where one is declared.
    pub native: Option<String>,
}

/// The error of a program that can't be loaded, with all reasons; of very many, the first [`LoadError::MAX_KEPT`]
/// problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError(Vec<LoadProblem>);

impl LoadError {
    /// The number of problems that are kept: a file may have one for each of its bytes, all with long names.
    pub const MAX_KEPT: usize = 100;

    /// Keeps only the problems that `keep` accepts; nothing if there are none.
    pub fn retain(mut self, keep: impl FnMut(&LoadProblem) -> bool) -> Option<LoadError> {
        self.0.retain(keep);
        (!self.0.is_empty()).then_some(self)
    }

    /// Sets the locations of problems on native functions, which `find` knows by their names.
    pub fn place_natives(&mut self, mut find: impl FnMut(&str) -> Option<SourceLocation>) {
        for problem in &mut self.0 {
            if let Some(native) = &problem.native {
                problem.location = find(native);
            }
        }
    }

    /// Returns the problems, in the order of the file; at least one.
    pub fn problems(&self) -> &[LoadProblem] {
        &self.0
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            if let Some(location) = &problem.location {
                write!(f, "{location}: ")?;
            }
            write!(f, "{} [{}]", problem.message, problem.code)?;
            if let Some(help) = &problem.help {
                write!(f, "\n  help: {help}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

impl Program {
    /// Binds `file` to the kernels of `host`.
    ///
    /// # Errors
    ///
    /// Every kernel that is not registered, and every use that does not fit its kernel.
    pub fn load(file: BefFile, host: &HostContext) -> Result<Program, LoadError> {
        // Ordering: numbers order nothing. Four thousand million loads may repeat one, which at worst
        // lets a kernel call a function that exists.
        static NEXT_ID: AtomicU32 = AtomicU32::new(1);
        let mut functions = Loader::new(&file, host).load()?;
        if let Some(recorder) = host.recorder() {
            let first = recorder.functions(u32::try_from(functions.len()).unwrap_or(u32::MAX));
            for (index, topology) in (0..).zip(&mut functions) {
                topology.recorded_as = Some(first.offset(index));
            }
        }
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let id = NonZeroU32::new(id).unwrap_or(NonZeroU32::MAX);
        let callees = (0..).zip(&functions);
        let callees = callees.map(|(index, topology)| Callee::new(id, index, topology));
        Ok(Program(Arc::new(LoadedProgram {
            id,
            callees: callees.collect(),
            attribute_section: file.attribute_section(),
            file,
            host: host.clone(),
            functions,
        })))
    }

    /// Returns the functions that have a name, in the order of the file.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        self.all_functions()
            .filter(|function| !function.name().is_empty())
    }

    /// Returns all functions, those of regions included, which have no name.
    pub fn all_functions(&self) -> impl Iterator<Item = Function> {
        (0..self.0.functions.len()).map(|index| Function::new(self.0.clone(), index as u32))
    }

    /// Returns the function of this name.
    pub fn function(&self, name: &str) -> Option<Function> {
        self.functions().find(|function| function.name() == name)
    }

    /// Returns the file.
    pub fn file(&self) -> &BefFile {
        &self.0.file
    }

    /// Returns the host that the program was loaded for.
    pub fn host(&self) -> &HostContext {
        &self.0.host
    }

    pub(crate) fn loaded(&self) -> &LoadedProgram {
        &self.0
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("n_functions", &self.0.functions.len())
            .finish()
    }
}

impl LoadedProgram {
    #[inline]
    pub(crate) fn id(&self) -> NonZeroU32 {
        self.id
    }

    /// Returns a function, as kernels of this program name it.
    #[inline]
    pub(crate) fn callee(&self, function: u32) -> Option<Callee> {
        self.callees.get(function as usize).copied()
    }

    /// Returns the error of a call with a wrong number of arguments.
    #[cold]
    pub(crate) fn wrong_argument_count(&self, function: u32, found: usize) -> Error {
        let expected = self.topology(function).n_arguments();
        let name = self.function_name(function);
        Error::invalid_argument(format!(
            "function '{name}' takes {expected} arguments, but is given {found}"
        ))
    }

    /// Returns the error of a call that the allocator has no memory for.
    #[cold]
    pub(crate) fn no_memory(&self, function: u32, size_bytes: usize) -> Error {
        let name = self.function_name(function);
        Error::resource_exhausted(format!(
            "no memory for a call of '{name}': about {size_bytes} bytes were refused"
        ))
    }

    pub(crate) fn file(&self) -> &BefFile {
        &self.file
    }

    #[inline]
    pub(crate) fn topology(&self, function: u32) -> &FunctionPlan {
        &self.functions[function as usize]
    }

    /// Returns the location of a kernel, as an offset in the file's Locations section, and its name.
    pub(crate) fn place(&self, function: u32, kernel: u32) -> (u32, &Arc<str>) {
        let topology = self.topology(function);
        let number = topology.number_in_file(kernel) + 1;
        let body = self.view(function).body();
        let place = body.map(|body| body.kernel(KernelIndex(number)).location().0);
        (place.unwrap_or(u32::MAX), &topology.entry(kernel).name)
    }

    /// Returns the last attribute of a kernel, if it is a text.
    pub(crate) fn last_text(&self, function: u32, kernel: u32) -> Option<Arc<str>> {
        let number = self.topology(function).number_in_file(kernel) + 1;
        let kernel = self.view(function).body()?.kernel(KernelIndex(number));
        let last = AttributeOffset(*kernel.attributes().last()?);
        self.file.attribute(last).as_str().map(Arc::from)
    }

    /// Returns the [`DataflowPlan`] by which the kernels of a function are counted.
    ///
    /// # Errors
    ///
    /// If the function is not a graph that can be run: a fault that load should have found.
    pub(crate) fn shape(&self, function: u32) -> Result<&Arc<DataflowPlan>, Error> {
        let shape = self.topology(function).shape_of(&self.view(function));
        shape.map_err(|malformed| {
            let name = self.function_name(function);
            Error::internal(format!("'{name}' can't be run: {malformed}"))
        })
    }

    /// Returns the number of a function in recordings, if the host makes any.
    pub(crate) fn function_id(&self, function: u32) -> Option<FunctionId> {
        self.functions.get(function as usize)?.recorded_as
    }

    pub(crate) fn view(&self, function: u32) -> FunctionView<'_> {
        self.file.function(FunctionIndex(function))
    }

    pub(crate) fn function_name(&self, function: u32) -> &str {
        self.view(function).name()
    }

    #[inline]
    pub(crate) fn attribute(&self, offset: u32) -> AttributeView<'_> {
        self.file.attribute(AttributeOffset(offset))
    }

    /// Returns an attribute that load has found to be such a scalar.
    #[inline]
    pub(crate) fn scalar<T: ScalarAttr>(&self, offset: u32) -> Option<T> {
        T::read_again(&self.file, &self.attribute_section, offset)
    }

    pub(crate) fn location(&self, offset: LocationOffset) -> Option<SourceLocation> {
        source_location(&self.file, offset)
    }
}

fn source_location(file: &BefFile, offset: LocationOffset) -> Option<SourceLocation> {
    Some(match file.location(offset)? {
        Location::FileLineCol { file, line, column } => SourceLocation::FileLineCol {
            file: file.to_string(),
            line,
            column,
        },
        Location::Opaque(text) => SourceLocation::Opaque(text),
    })
}

/// The number of problems found after which the search ends, even if they are alike: each may be long.
const MAX_FOUND: usize = 4 * LoadError::MAX_KEPT;

struct Loader<'a> {
    file: &'a BefFile,
    host: &'a HostContext,
    problems: Vec<LoadProblem>,
    /// The number of problems found, those included that are like one that is kept.
    n_found: usize,
}

impl<'a> Loader<'a> {
    fn new(file: &'a BefFile, host: &'a HostContext) -> Self {
        Loader {
            file,
            host,
            problems: Vec::new(),
            n_found: 0,
        }
    }

    fn load(mut self) -> Result<Box<[FunctionPlan]>, LoadError> {
        let registry = self.host.registry();
        let entries: Vec<Option<&KernelEntry>> = self
            .file
            .kernel_names()
            .map(|name| registry.get(name))
            .collect();
        for function in self.file.functions() {
            if self.is_full() {
                break;
            }
            match function.body() {
                Some(body) => self.check_body(&function, &body, &entries),
                None => self.check_native(&function),
            }
        }
        // A kernel that no function uses must be registered all the same.
        if self.problems.is_empty() {
            for (name, _) in self
                .file
                .kernel_names()
                .zip(&entries)
                .filter(|(_, entry)| entry.is_none())
            {
                self.unknown_kernel(name, None);
            }
        }
        if !self.problems.is_empty() {
            return Err(LoadError(self.problems));
        }
        let entries = Arc::new(Entries::new(entries.iter().copied().flatten()));
        let functions = self.file.functions();
        let mut topologies = functions
            .map(|function| self.topology(&function, &entries))
            .collect::<Result<Box<[FunctionPlan]>, LoadError>>()?;
        for (number, topology) in (0..).zip(&mut topologies) {
            topology.number = number;
        }
        find_manners(&mut topologies);
        for (function, topology) in self.file.functions().zip(&mut topologies) {
            let settled = topology.settle(&function);
            settled.map_err(|malformed| self.malformed(&function, &malformed))?;
        }
        Ok(topologies)
    }

    fn topology(
        &self,
        function: &FunctionView<'_>,
        entries: &Arc<Entries>,
    ) -> Result<FunctionPlan, LoadError> {
        let Some(body) = function.body() else {
            let entry = self.host.registry().get_native(function.name());
            let entry = entry.expect("check_native() found it");
            let (n_arguments, n_results) = (function.n_arguments(), function.n_results());
            return Ok(FunctionPlan::native(
                entry,
                n_arguments as u32,
                n_results as u32,
            ));
        };
        FunctionPlan::new(function, &body, entries)
            .map_err(|malformed| self.malformed(function, &malformed))
    }

    fn malformed(&self, function: &FunctionView<'_>, malformed: &Malformed) -> LoadError {
        let location = function.body().map(|body| body.location());
        let name = function.name();
        LoadError(vec![LoadProblem {
            code: codes::MALFORMED,
            location: location.and_then(|location| source_location(self.file, location)),
            message: format!("invalid Function section in BEF file: '{name}': {malformed}"),
            help: None,
            native: None,
        }])
    }

    fn is_full(&self) -> bool {
        self.problems.len() >= LoadError::MAX_KEPT || self.n_found >= MAX_FOUND
    }

    fn problem(
        &mut self,
        code: &'static str,
        location: Option<LocationOffset>,
        message: String,
        help: Option<String>,
    ) {
        if self.is_full() {
            return;
        }
        let location = location.and_then(|offset| source_location(self.file, offset));
        let problem = LoadProblem {
            code,
            location,
            message,
            help,
            native: None,
        };
        self.add(problem);
    }

    /// Reports a problem on a native function.
    fn native_problem(
        &mut self,
        code: &'static str,
        name: &str,
        message: String,
        help: Option<String>,
    ) {
        if !self.is_full() {
            self.add(LoadProblem {
                code,
                location: None,
                message,
                help,
                native: Some(name.to_owned()),
            });
        }
    }

    fn add(&mut self, problem: LoadProblem) {
        self.n_found += 1;
        // Operations of one place, and without one, may have the same to say.
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn unknown_kernel(&mut self, name: &str, location: Option<LocationOffset>) {
        if self.is_full() {
            return;
        }
        let nearest = self.host.registry().nearest(name);
        let help = nearest.map(|nearest| format!("there is a kernel '{nearest}'"));
        self.problem(
            codes::UNKNOWN_KERNEL,
            location,
            format!("unknown kernel name '{name}'"),
            help,
        );
    }

    fn check_native(&mut self, function: &FunctionView<'_>) {
        let name = function.name();
        let Some(entry) = self.host.registry().get_native(name) else {
            let message = format!(
                "invalid FunctionIndex section in BEF file: unable to find native function in global registry: '{name}'"
            );
            let close = self.host.registry().nearest_native(name);
            let help = close.map(|close| format!("there is a native function '{close}'"));
            return self.native_problem(codes::UNKNOWN_NATIVE, name, message, help);
        };
        let signature = entry.signature();
        let (n_arguments, n_results) = (function.n_arguments(), function.n_results());
        let results_fit = signature.any_results || signature.results.len() == n_results;
        if !signature.accepts_operands(n_arguments) || !results_fit {
            let message = format!(
                "native function '{name}' is {signature}, but is declared with {n_arguments} arguments and {n_results} results"
            );
            self.native_problem(codes::NATIVE_SIGNATURE, name, message, None);
        }
    }

    fn check_body(
        &mut self,
        function: &FunctionView<'_>,
        body: &Body<'_>,
        entries: &[Option<&KernelEntry>],
    ) {
        let types = register_types(self.file, function, body, entries);
        for view in body.kernels() {
            let Some(entry) = entries[view.code().index()] else {
                self.unknown_kernel(view.name(), Some(view.location()));
                continue;
            };
            let signature = entry.signature();
            if function.kind() == FunctionKind::Sync
                && signature.completion != Completion::Synchronous
            {
                let message = format!(
                    "kernel '{}' is not synchronous, but '{}' is a synchronous function",
                    view.name(),
                    function.name()
                );
                let help = "use a kernel that does not wait, or leave the function asynchronous";
                let (location, help) = (Some(view.location()), Some(help.to_owned()));
                self.problem(codes::NOT_SYNCHRONOUS, location, message, help);
                continue;
            }
            let misfit = self
                .counts(&view, signature)
                .map(|misfit| (codes::KERNEL_COUNTS, misfit))
                .or_else(|| Some((codes::KERNEL_ATTRIBUTE, self.attributes(&view, signature)?)))
                .or_else(|| Some((codes::KERNEL_TYPES, self.types(&view, signature, &types)?)));
            if let Some((code, misfit)) = misfit {
                let message = format!("kernel '{}' {misfit}", view.name());
                let help = Some(format!("its signature is {signature}"));
                self.problem(code, Some(view.location()), message, help);
            }
        }
    }

    /// Returns a mismatch in the numbers of operands, attributes, functions or results.
    fn counts(&self, view: &KernelView<'_>, signature: &Signature) -> Option<String> {
        let compare = |found: usize, expected: usize, more: bool, what: &str| {
            let fits = found == expected || (more && found > expected);
            let at_least = if more { "at least " } else { "" };
            (!fits).then(|| format!("takes {at_least}{expected} {what}, but is given {found}"))
        };
        if !signature.accepts_operands(view.operands().len()) {
            let (found, expected) = (view.operands().len(), signature.operands.len());
            return compare(found, expected, signature.more_operands, "operands");
        }
        compare(
            view.attributes().len(),
            signature.attributes.len(),
            signature.more_attributes,
            "attributes",
        )
        .or_else(|| {
            let (found, expected) = (view.functions().len(), signature.n_functions);
            compare(found, expected, signature.more_functions, "functions")
        })
        .or_else(|| {
            let (found, expected) = (view.results().len(), signature.results.len());
            (!signature.any_results && found != expected)
                .then(|| format!("gives {expected} results, but {found} are taken"))
        })
    }

    /// Returns the mismatch of the first attribute that the kernel cannot read.
    fn attributes(&self, view: &KernelView<'_>, signature: &Signature) -> Option<String> {
        let attributes = view.attributes().iter().zip(&signature.attributes);
        attributes.enumerate().find_map(|(index, (offset, spec))| {
            let attribute = self.file.attribute(AttributeOffset(*offset));
            (!(spec.readable)(attribute)).then(|| {
                let name = view.attribute_name(index).map(|name| format!(" '{name}'"));
                let name = name.unwrap_or_default();
                let found = self.file.attribute_type(AttributeOffset(*offset));
                let found = found.map_or("something else".to_owned(), |found| found.to_string());
                let wanted = spec.kind;
                format!("takes {wanted} as attribute {index}{name}, but is given {found}")
            })
        })
    }

    /// Returns a mismatch of types, as far as types are known.
    fn types(
        &self,
        view: &KernelView<'_>,
        signature: &Signature,
        types: &[Option<&str>],
    ) -> Option<String> {
        let name = |register: &u32| types[*register as usize];
        let clash = |expected: Option<&str>, found: Option<&str>| match (expected, found) {
            // A name that no kernel uses may be the program's own name for a type.
            (Some(expected), Some(found)) => expected != found && self.host.knows_type(found),
            _ => false,
        };
        let n_operands = view.operands().len();
        let trailing = signature
            .has_trailing_chain(n_operands)
            .then_some(Some(CHAIN));
        let expected = signature
            .operands
            .iter()
            .map(|operand| operand.type_name)
            .chain(trailing);
        let operands_clash = expected
            .clone()
            .zip(view.operands())
            .any(|(spec, found)| clash(spec, name(found)));
        let list = |names: Vec<Option<&str>>| {
            let names: Vec<&str> = names
                .into_iter()
                .map(|name| name.unwrap_or("any"))
                .collect();
            format!("({})", names.join(", "))
        };
        if operands_clash {
            let expected = list(expected.collect());
            let found = list(view.operands().iter().map(name).collect());
            return Some(format!("takes {expected}, but is given {found}"));
        }
        let expected = signature.results.iter().map(|result| result.type_name);
        let results_clash = expected
            .clone()
            .zip(view.results())
            .any(|(spec, found)| clash(spec, name(found)));
        results_clash.then(|| {
            let expected = list(expected.collect());
            let found = list(view.results().iter().map(name).collect());
            format!("gives {expected}, but {found} is declared")
        })
    }
}

/// Returns the type names of the registers: from the file, or else from the arguments of the function and the
/// signatures of the kernels that fill them.
fn register_types<'a>(
    file: &'a BefFile,
    function: &FunctionView<'a>,
    body: &Body<'a>,
    entries: &[Option<&KernelEntry>],
) -> Vec<Option<&'a str>> {
    let mut types: Vec<Option<&'a str>> = (0..body.n_registers())
        .map(|register| body.register_type(tfrt_bef::RegisterIndex(register as u32)))
        .collect();
    for (register, index) in function.argument_types().enumerate() {
        types[register].get_or_insert(file.type_name(index));
    }
    for view in body.kernels() {
        let Some(entry) = entries[view.code().index()] else {
            continue;
        };
        for (register, spec) in view.results().iter().zip(&entry.signature().results) {
            let declared = &mut types[*register as usize];
            *declared = declared.or(spec.type_name);
        }
    }
    types
}
