//! Programs on our host, ready to be called over and over.

use std::fmt;
use std::sync::Arc;

use tfrt_async::queue::{ConcurrentWorkQueue, MultiThreadedWorkQueue, SingleThreadedWorkQueue};
use tfrt_bef::{BefBuffer, BefFile};
use tfrt_compiler::{CompileOptions, compile};
use tfrt_host::{
    AnyAsyncValue, BoundCall, Error, ExecutionContext, Function, HostContext, HostContextBuilder,
    Program, RequestContext,
};
use tfrt_ir::{Source, parse, verify};

use crate::cases::Case;
use crate::compare::Contender;
use crate::kernels;
use crate::measure::Clock;

/// The way in which a function's kernels are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ordered once, when the program is loaded, where the program allows it.
    Static,
    /// Ordered while it runs, by counting what each kernel waits for.
    Dynamic,
}

impl Order {
    /// Both, in the order of tables.
    pub const BOTH: [Order; 2] = [Order::Static, Order::Dynamic];

    /// Sets the order on a host.
    fn set(self, builder: HostContextBuilder) -> HostContextBuilder {
        builder.dynamic_order(self == Order::Dynamic)
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Order::Static => "ordered",
            Order::Dynamic => "dynamic",
        })
    }
}

/// The threads that run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// The calling one.
    Caller,
    /// The calling one and so many workers.
    CallerAnd(usize),
    /// So many workers; the caller waits.
    Workers(usize),
}

/// Turns text into a file.
///
/// # Panics
///
/// If the text is no program.
pub fn bytes_of(text: &str) -> BefBuffer {
    let module = parse(&Source::new("bench.mlir", text)).expect("the program is right");
    verify(&module).expect("the program is right");
    compile(&module, &CompileOptions::default()).expect("the program is right")
}

/// Makes a host with the kernels of benchmarks.
///
/// # Panics
///
/// If threads can't be started.
pub fn host(order: Order, threads: Threads) -> HostContext {
    let queue: Arc<dyn ConcurrentWorkQueue> = match threads {
        Threads::Caller => Arc::new(SingleThreadedWorkQueue::new()),
        Threads::CallerAnd(n_workers) | Threads::Workers(n_workers) => {
            Arc::new(MultiThreadedWorkQueue::new(n_workers, 1).expect("threads can be started"))
        }
    };
    let builder = HostContext::builder(kernels::registry()).queue(queue);
    order.set(builder).build()
}

/// Opens a file and loads it.
///
/// # Panics
///
/// If the bytes are no program.
pub fn load(bytes: BefBuffer, host: &HostContext) -> Program {
    let file = BefFile::open(bytes).expect("the program is right");
    Program::load(file, host).expect("its kernels are known")
}

/// A function of a loaded program, with a request to call it in.
#[derive(Clone)]
pub struct Ours {
    function: Function,
    context: ExecutionContext,
    threads: Threads,
}

impl Ours {
    /// Loads the function `main` of a program.
    ///
    /// # Panics
    ///
    /// If the text is no program, or threads can't be started.
    pub fn new(text: &str, order: Order, threads: Threads) -> Ours {
        Ours::open(bytes_of(text), order, threads)
    }

    /// Loads the function `main` of a file.
    ///
    /// # Panics
    ///
    /// If the bytes are no program, or threads can't be started.
    pub fn open(bytes: BefBuffer, order: Order, threads: Threads) -> Ours {
        Ours::of(&load(bytes, &host(order, threads)), threads)
    }

    /// Returns the function `main` of a program that was loaded on a host for `threads`.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn of(program: &Program, threads: Threads) -> Ours {
        Ours {
            function: program.function("main").expect("it has one"),
            context: ExecutionContext::new(&RequestContext::new(program.host())),
            threads,
        }
    }

    /// Loads a case, to be compared with others by `clock`.
    ///
    /// # Panics
    ///
    /// When it runs: if the case fails.
    pub fn contender(case: &Case, order: Order, threads: Threads, clock: Clock) -> Contender {
        let ours = Ours::new(&case.text, order, threads);
        let arguments = case.arguments.clone();
        let name = match threads {
            Threads::Caller => format!("tfrt, {order}"),
            Threads::CallerAnd(n_workers) => format!("tfrt, {order}, caller and {n_workers}"),
            Threads::Workers(n_workers) => format!("tfrt, {order}, {n_workers} workers"),
        };
        Contender::new(name, clock, move || {
            ours.call(&arguments).expect("the case has an answer")
        })
    }

    /// Returns the same function in another request of its host.
    pub fn in_request(&self, request: &Arc<RequestContext>) -> Ours {
        Ours {
            context: ExecutionContext::new(request),
            ..self.clone()
        }
    }

    /// Returns the function, bound.
    pub fn bind(&self) -> Bound {
        Bound {
            call: self.function.bind(),
            context: self.context.clone(),
            values: Vec::new(),
        }
    }

    /// Returns the host.
    pub fn host(&self) -> &HostContext {
        self.context.host()
    }

    /// Calls the function, waits for all its work, and returns its first result.
    ///
    /// # Errors
    ///
    /// The error that the result is.
    pub fn call(&self, arguments: &[i32]) -> Result<i32, Error> {
        let arguments = arguments.iter().map(|word| AnyAsyncValue::new(*word));
        let arguments = arguments.collect();
        let results = match self.threads {
            Threads::Caller | Threads::CallerAnd(_) => {
                self.function.execute(&self.context, arguments)
            }
            Threads::Workers(_) => self.function.spawn(&self.context, arguments),
        };
        let first = results.first();
        if let Some(number) = first.and_then(AnyAsyncValue::get_in_place::<i32>) {
            return Ok(number);
        }
        if !results.iter().all(AnyAsyncValue::is_settled) {
            let waited = self.context.queue().await_all(&results);
            waited.expect("the caller is no worker");
        }
        match results.into_iter().next().map(AnyAsyncValue::settled) {
            None => Ok(0),
            Some(result) => match (result.get_in_place::<i32>(), result.error()) {
                (Some(number), _) => Ok(number),
                (None, Some(error)) => Err(error.clone()),
                (None, None) => unreachable!("programs of benchmarks give numbers"),
            },
        }
    }
}

/// A function that is bound, with the list of values that its calls share.
pub struct Bound {
    call: BoundCall,
    context: ExecutionContext,
    values: Vec<AnyAsyncValue>,
}

impl Bound {
    /// The name of the contender in tables.
    pub const NAME: &'static str = "tfrt, bound";

    /// Calls the function on this thread, and returns its first result.
    ///
    /// # Errors
    ///
    /// The error that the result is, or that it is still to come.
    pub fn call(&mut self, arguments: &[i32]) -> Result<i32, Error> {
        self.values.clear();
        for word in arguments {
            self.values.push(AnyAsyncValue::new(*word));
        }
        self.call.call(&self.context, &mut self.values);
        let first = self.values.first();
        if let Some(number) = first.and_then(AnyAsyncValue::get_in_place::<i32>) {
            return Ok(number);
        }
        match first.map(AnyAsyncValue::error) {
            None => Ok(0),
            Some(Some(error)) => Err(error.clone()),
            Some(None) => Err(Error::internal(
                "the result is no number, or is still to come",
            )),
        }
    }
}
