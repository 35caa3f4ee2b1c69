//! [`Program`] and its [`Function`]s.

use std::fmt;
use std::path::Path;

use tfrt_bef::BefFile;
use tfrt_kernels::onnx::WeightFiles;

use crate::arguments::Arguments;
use crate::call::Call;
use crate::context::Context;
use crate::error::OpenError;
use crate::runtime::Runtime;

/// A program that may be called, any number of times, from any thread. A counted handle.
///
/// # Examples
///
/// ```
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
/// use tfrt::{Program, Runtime};
///
/// let program = Program::open("examples/fib.mlir")?;
/// let fib = program.function("fib").expect("the program has it");
/// let results = fib.call(&Runtime::shared().context(), (10,)).wait()?;
/// assert_eq!(*results.get::<i32>(0)?, 55);
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone)]
pub struct Program {
    program: tfrt_host::Program,
    weights: Option<WeightFiles>,
}

impl Program {
    /// Returns a program that was loaded by another task's word.
    #[cfg(all(feature = "dist", feature = "cli"))]
    pub(crate) fn of_host(program: tfrt_host::Program) -> Program {
        Program {
            program,
            weights: None,
        }
    }

    /// Opens the program in a file, MLIR text or BEF bytes, on the runtime that the process
    /// shares; [`Runtime::open`] is the same for a runtime of one's own.
    ///
    /// # Errors
    ///
    /// Every reason why the file is no program, as far as the first stage that refuses it can
    /// tell.
    pub fn open(path: impl AsRef<Path>) -> Result<Program, OpenError> {
        Runtime::shared().open(path)
    }

    /// Binds a file that passed the gate to the kernels of a runtime.
    ///
    /// # Errors
    ///
    /// `Load`, with every kernel that is missing or does not fit its use.
    pub fn from_file(file: BefFile, runtime: &Runtime) -> Result<Program, OpenError> {
        let program = tfrt_host::Program::load(file, runtime.host()).map_err(OpenError::Load)?;
        Ok(Program {
            program,
            weights: None,
        })
    }

    /// Sets the opener of weights of a model that have files of their own: see
    /// [`Input::weights`](crate::input::Input::weights).
    pub fn with_weights(mut self, weights: WeightFiles) -> Program {
        self.weights = Some(weights);
        self
    }

    /// Frees the bytes that constants were made of, if nothing else holds them.
    pub(crate) fn without_weights(mut self) -> Program {
        self.weights = None;
        self
    }

    pub(crate) fn weights(&self) -> Option<&WeightFiles> {
        self.weights.as_ref()
    }

    /// Finds a function by name.
    pub fn function(&self, name: &str) -> Option<Function> {
        self.program
            .function(name)
            .map(|function| Function::new(&function))
    }

    /// Returns the functions that have a name, in the order of the file.
    pub fn functions(&self) -> impl Iterator<Item = Function> {
        self.program
            .functions()
            .map(|function| Function::new(&function))
    }

    /// Returns the program as the host runtime sees it.
    pub fn as_host_program(&self) -> &tfrt_host::Program {
        &self.program
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.program.fmt(f)
    }
}

/// A function of a program. A counted handle.
///
/// # Examples
///
/// ```
/// use tfrt::Runtime;
///
/// let runtime = Runtime::new();
/// let program = runtime.compile("less.mlir", r#"func.func @less(%x: i32, %y: i32) -> i1 {
///   %less = "tfrt.lessequal.i32"(%x, %y) : (i32, i32) -> i1
///   tfrt.return %less : i1
/// }"#)?;
/// let less = program.function("less").expect("the program has it");
/// assert_eq!(less.argument_types().collect::<Vec<_>>(), ["i32", "i32"]);
/// assert_eq!(less.result_types().collect::<Vec<_>>(), ["i1"]);
///
/// // What does not fit is an error of the results.
/// let context = runtime.context();
/// assert!(*less.call(&context, (1, 2)).wait()?.get::<bool>(0)?);
/// assert!(less.call(&context, (1,)).wait().is_err());
/// assert!(less.call(&context, (1, 2.5_f32)).wait().is_err());
/// # Ok::<(), tfrt::AnyError>(())
/// ```
#[derive(Clone)]
pub struct Function {
    bound: tfrt_host::BoundCall,
}

impl Function {
    fn new(function: &tfrt_host::Function) -> Self {
        Function {
            bound: function.bind(),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        self.as_host_function().name()
    }

    /// Returns the MLIR names of the arguments' types.
    pub fn argument_types(&self) -> impl ExactSizeIterator<Item = &str> {
        self.as_host_function().argument_types()
    }

    /// Returns the MLIR names of the results' types.
    pub fn result_types(&self) -> impl ExactSizeIterator<Item = &str> {
        self.as_host_function().result_types()
    }

    /// Calls the function: runs it on this thread as far as it goes without waiting.
    ///
    /// Arguments may be values to come. Arguments that do not fit fail the results; they never
    /// panic.
    pub fn call(&self, context: &Context, arguments: impl Arguments) -> Call {
        let execution = context.execution();
        let mut values = arguments.into_arguments();
        self.bound.call(execution, &mut values);
        Call::new(values, execution)
    }

    /// Hands the call to the work queue and returns at once.
    pub fn spawn(&self, context: &Context, arguments: impl Arguments) -> Call {
        let execution = context.execution();
        let results = self
            .as_host_function()
            .spawn(execution, arguments.into_arguments());
        Call::new(results, execution)
    }

    /// Returns the function as the host runtime sees it.
    pub fn as_host_function(&self) -> &tfrt_host::Function {
        self.bound.function()
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_host_function().fmt(f)
    }
}
