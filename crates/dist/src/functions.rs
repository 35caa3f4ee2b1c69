//! [`FunctionCache`]: programs that other tasks have registered; [`CompilerPass`]: whatever turns their text into bytes.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_async::{Error, ErrorCode};
use tfrt_host::{Function, HostContext, Program};

/// The name of the type of contexts.
pub const CONTEXT_TYPE: &str = "!tfrt_dist.dist_context";

/// The name of the type of remote ids.
pub const ID_TYPE: &str = "!tfrt_dist.remote_object_id";

/// The name of the compiler pass that programs go through.
pub const DEFAULT_PASS: &str = "tfrt";

/// The most functions that are registered with a context.
pub const MAX_FUNCTIONS: usize = 1024;

/// The most bytes of a program's text.
pub const MAX_PROGRAM_BYTES: usize = 64 << 20;

/// A compiler of programs that arrive as text. This crate reads no text: the front crate implements it.
pub trait CompilerPass: Send + Sync + 'static {
    /// Parses a program, whose function of this name is to be registered, and loads it for a host.
    ///
    /// # Errors
    ///
    /// The reason why the program does not parse, compile or load.
    fn load(&self, name: &str, program: &str, host: &HostContext) -> Result<Program, Error>;

    /// Compiles a program: to another one, whose results are on certain devices.
    ///
    /// # Errors
    ///
    /// Why it can't.
    fn compile(&self, name: &str, program: &str) -> Result<Compiled, Error> {
        let _ = name;
        Ok(Compiled {
            program: program.to_owned(),
            output_devices: Vec::new(),
        })
    }
}

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The text.
    pub program: String,
    /// The devices that the results are on, by their full names.
    pub output_devices: Vec<String>,
}

/// The compiler passes of a host, by name.
#[derive(Default)]
pub struct CompilerPasses(Mutex<HashMap<String, Arc<dyn CompilerPass>>>);

impl CompilerPasses {
    /// Returns the passes of a host.
    pub fn of(host: &HostContext) -> Arc<CompilerPasses> {
        host.shared(|_| CompilerPasses::default())
    }

    /// Registers a pass, in place of another of the name, which is returned.
    pub fn register(
        &self,
        name: &str,
        pass: Arc<dyn CompilerPass>,
    ) -> Option<Arc<dyn CompilerPass>> {
        self.lock().insert(name.to_owned(), pass)
    }

    /// Returns the pass of a name.
    pub fn get(&self, name: &str) -> Option<Arc<dyn CompilerPass>> {
        self.lock().get(name).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<dyn CompilerPass>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CompilerPasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

/// A function that was registered.
#[derive(Debug)]
pub struct Registered {
    /// The function, which keeps its program.
    pub function: Function,
    /// Whether its first argument is the context.
    pub takes_context: bool,
    /// Whether the next ones are the names of the results, which the function then stores itself.
    pub takes_outputs: bool,
    /// The number of names of results that it takes.
    pub n_outputs: usize,
}

/// The functions that were registered with a context, by name.
#[derive(Debug, Default)]
pub struct FunctionCache(Mutex<HashMap<String, Arc<Registered>>>);

impl FunctionCache {
    /// Registers the function of a name in a program; returns the devices that a compiler pass says its results are on.
    ///
    /// # Errors
    ///
    /// `RemoteFunctionAlreadyExists` if the name is taken, `NotFound` without a compiler pass or without the function,
    /// `MalformattedMlirFile` if the program is none, `CompilationFailed`, `InvalidArgument` if a result can't travel,
    /// `ResourceExhausted` if there are too many or the text is too long.
    pub fn register(
        &self,
        name: &str,
        program: &str,
        need_compilation: bool,
        host: &HostContext,
    ) -> Result<Vec<String>, Error> {
        self.check_room(name, program)?;
        let passes = CompilerPasses::of(host);
        let pass = passes.get(DEFAULT_PASS).ok_or_else(|| {
            Error::not_found(format!("Compiler pass not found for program: {name}"))
        })?;
        let mut compiled = Compiled {
            program: program.to_owned(),
            output_devices: Vec::new(),
        };
        if need_compilation {
            compiled = pass.compile(name, program).map_err(|error| {
                let message = format!("Failed compiling program:{name}: {}", error.message());
                with_notes(Error::new(ErrorCode::CompilationFailed, message), &error)
            })?;
        }
        let program = pass.load(name, &compiled.program, host).map_err(|error| {
            let message = format!("Failed parsing program:{name}: {}", error.message());
            with_notes(Error::new(ErrorCode::MalformattedMlirFile, message), &error)
        })?;
        self.add(name, &program)?;
        Ok(compiled.output_devices)
    }

    /// Registers the function of a name in a program that is loaded.
    ///
    /// # Errors
    ///
    /// See [`register`](Self::register).
    pub fn add(&self, name: &str, program: &Program) -> Result<(), Error> {
        let registered = Registered::new(name, program)?;
        self.check_room(name, "")?;
        let mut functions = self.lock();
        if functions.contains_key(name) {
            return Err(registered_twice(name));
        }
        functions.insert(name.to_owned(), Arc::new(registered));
        Ok(())
    }

    /// Returns the function of a name.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none.
    pub fn get(&self, name: &str) -> Result<Arc<Registered>, Error> {
        let function = self.lock().get(name).cloned();
        function.ok_or_else(|| Error::not_found(format!("Can't find program: [{name}]")))
    }

    /// Forgets all functions.
    pub fn clear(&self) {
        let functions = std::mem::take(&mut *self.lock());
        drop(functions);
    }

    fn check_room(&self, name: &str, program: &str) -> Result<(), Error> {
        let functions = self.lock();
        if functions.contains_key(name) {
            return Err(registered_twice(name));
        }
        if functions.len() >= MAX_FUNCTIONS {
            return Err(Error::resource_exhausted(format!(
                "a context has {MAX_FUNCTIONS} registered functions at most"
            )));
        }
        if program.len() > MAX_PROGRAM_BYTES {
            return Err(Error::resource_exhausted(format!(
                "expected a program of {MAX_PROGRAM_BYTES} bytes at most, found {}",
                program.len()
            )));
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Registered>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registered {
    fn new(name: &str, program: &Program) -> Result<Registered, Error> {
        let function = program.function(name).ok_or_else(|| {
            Error::not_found(format!("the program has no function '{name}' to register"))
        })?;
        let codecs = program.host().codecs();
        for (index, result) in function.result_types().enumerate() {
            let stays = ["!corert.tensorhandle", ID_TYPE].contains(&result);
            if !stays && codecs.newest(result).is_none() {
                return Err(Error::invalid_argument(format!(
                    "result {index} of `{name}` is a `{result}`, which cannot travel"
                )));
            }
        }
        let mut arguments = function.argument_types().peekable();
        let takes_context = arguments.next_if_eq(&CONTEXT_TYPE).is_some();
        let mut n_outputs = 0;
        while arguments.next_if_eq(&ID_TYPE).is_some() {
            n_outputs += 1;
        }
        drop(arguments);
        Ok(Registered {
            takes_context,
            takes_outputs: n_outputs > 0,
            n_outputs,
            function,
        })
    }
}

fn registered_twice(name: &str) -> Error {
    Error::new(
        ErrorCode::RemoteFunctionAlreadyExists,
        format!("Program {name} already registered."),
    )
}

fn with_notes(error: Error, cause: &Error) -> Error {
    let notes = cause.notes().iter();
    notes.fold(error, |error, note| error.with_note(note.clone()))
}
