//! [`FunctionCache`]: programs that other tasks have registered; [`CompilerPass`]: whatever turns their text into bytes.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfrt_async::{Error, ErrorCode};
use tfrt_host::{Function, HostContext, Program};

use crate::pace::Pace;
use crate::security::{PeerKey, Quotas, Trust};

/// The name of the type of contexts.
pub const CONTEXT_TYPE: &str = "!tfrt_dist.dist_context";

/// The name of the type of remote ids.
pub const ID_TYPE: &str = "!tfrt_dist.remote_object_id";

/// The name of the compiler pass that programs go through.
pub const DEFAULT_PASS: &str = "tfrt";

/// A compiler of programs that arrive as text. This crate reads no text: the front crate implements it.
pub trait CompilerPass: Send + Sync + 'static {
    /// Parses a program, whose function of this name is to be registered, and loads it for a host. One that is not trusted
    /// goes through all checks, and has no kernels that strangers' programs have not.
    ///
    /// # Errors
    ///
    /// The reason why the program does not parse, compile or load.
    fn load(
        &self,
        name: &str,
        program: &str,
        trust: Trust,
        host: &HostContext,
    ) -> Result<Program, Error>;

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
    /// How long it takes on the thread that begins it.
    pub(crate) pace: Pace,
}

/// The functions that were registered with a context, by name.
#[derive(Debug, Default)]
pub struct FunctionCache(Mutex<Functions>);

#[derive(Debug, Default)]
struct Functions {
    by_name: HashMap<String, Arc<Registered>>,
    /// How many each task has registered, and the bytes of their texts.
    by_peer: HashMap<PeerKey, (usize, usize)>,
}

/// A task that registers functions.
#[derive(Clone, Copy, Debug)]
pub struct Registrar<'p> {
    /// Which one.
    pub peer: &'p PeerKey,
    /// Whether its programs have limits.
    pub trust: Trust,
    /// How many it may register.
    pub quotas: &'p Quotas,
}

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
        by: Registrar<'_>,
        host: &HostContext,
    ) -> Result<Vec<String>, Error> {
        self.take_room(name, program.len(), by)?;
        let registered = self.load(name, program, need_compilation, by.trust, host);
        if registered.is_err() {
            self.lock().give_room(program.len(), by.peer);
        }
        registered
    }

    fn load(
        &self,
        name: &str,
        program: &str,
        need_compilation: bool,
        trust: Trust,
        host: &HostContext,
    ) -> Result<Vec<String>, Error> {
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
        let program = pass.load(name, &compiled.program, trust, host);
        let program = program.map_err(|error| {
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
        let mut functions = self.lock();
        if functions.by_name.contains_key(name) {
            return Err(registered_twice(name));
        }
        functions
            .by_name
            .insert(name.to_owned(), Arc::new(registered));
        Ok(())
    }

    /// Returns the function of a name.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none.
    pub fn get(&self, name: &str) -> Result<Arc<Registered>, Error> {
        let function = self.lock().by_name.get(name).cloned();
        function.ok_or_else(|| Error::not_found(format!("Can't find program: [{name}]")))
    }

    /// Forgets all functions.
    pub fn clear(&self) {
        let functions = std::mem::take(&mut *self.lock());
        drop(functions);
    }

    /// Counts a function of a task, before it is looked at.
    fn take_room(&self, name: &str, len_bytes: usize, by: Registrar<'_>) -> Result<(), Error> {
        let mut functions = self.lock();
        if functions.by_name.contains_key(name) {
            return Err(registered_twice(name));
        }
        let (n_functions, n_bytes) = functions.by_peer.get(by.peer).copied().unwrap_or((0, 0));
        let (max_functions, max_bytes) = (by.quotas.functions, by.quotas.program_bytes);
        if n_functions >= max_functions {
            return Err(Error::resource_exhausted(format!(
                "a task registers {max_functions} functions with a context at most"
            )));
        }
        let n_bytes = n_bytes.saturating_add(len_bytes);
        if n_bytes > max_bytes {
            return Err(Error::resource_exhausted(format!(
                "expected programs of {max_bytes} bytes at most, of all that a task registers with a context, found {n_bytes}"
            )));
        }
        let count = (n_functions + 1, n_bytes);
        functions.by_peer.insert(by.peer.clone(), count);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Functions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Functions {
    /// Counts a function less: it was none.
    fn give_room(&mut self, len_bytes: usize, peer: &PeerKey) {
        if let Some((n_functions, n_bytes)) = self.by_peer.get_mut(peer) {
            *n_functions = n_functions.saturating_sub(1);
            *n_bytes = n_bytes.saturating_sub(len_bytes);
        }
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
            pace: Pace::default(),
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
