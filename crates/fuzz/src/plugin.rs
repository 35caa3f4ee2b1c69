//! Properties of the C API for plugins: whatever a kernel calls, in any order and with any handle, is done or is a fault
//! that names the function, and nothing is left behind.
//!
//! Bytes are the script of a plugin that is part of this program: which functions its callbacks call, and with what. A
//! handle may be null, made up, deleted or of another type: the host must find that out. What the headers make a plugin
//! promise, that pointers to memory lead to memory, the script keeps.

use std::cell::RefCell;
use std::ffi::CStr;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tfrt::host::memory::LimitedAllocator;
use tfrt::host::{HostAllocator, HostContext};
use tfrt::{Plugin, PluginOps, Runtime};
use tfrt_async::SystemAllocator;
use tfrt_async::queue::SingleThreadedWorkQueue;
use tfrt_capi::functions::{FUNCTIONS, Function};
use tfrt_capi::{fault, handle};
use tfrt_corert::{CoreRuntime, OpAttrs};

use crate::values::MAX_BYTES;

/// The most calls of a callback, and faults of one that the host keeps.
const MAX_CALLS: usize = 12;
const MAX_FAULTS: usize = 16;
/// The bytes of a piece of memory that the script hands over, and the most elements that it says are there.
const PIECE: usize = 4096;
const MAX_ELEMENTS: i32 = 16;

/// Handles that are made up: too large, too small, not aligned.
const MADE_UP: [usize; 4] = [1, 16, 0x7fff_1234_5678, usize::MAX];

const TEXTS: [&CStr; 16] = [
    c"",
    c"x",
    c"y",
    c"z",
    c"code",
    c"list",
    c"name",
    c"type",
    c"rate",
    c"flag",
    c"extents",
    c"CPU",
    c"FuzzCalls",
    c"a: int = 3",
    c"a: T",
    c"\xff\xfe",
];

/// Takes one input at a time: handles are the process's.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Faults outside of any call.
static FAULTS: Mutex<Vec<String>> = Mutex::new(Vec::new());

thread_local! {
    static SCRIPT: RefCell<Script> = RefCell::new(Script::default());
    static RUNTIME: RefCell<Option<Runtime>> = const { RefCell::new(None) };
}

/// A reference that the script has seen.
#[derive(Clone, Copy)]
struct Seen {
    bits: usize,
    kind: &'static str,
}

/// The calls that are to be made, and their outcome.
#[derive(Default)]
struct Script {
    bytes: Vec<u8>,
    at: usize,
    seen: Vec<Seen>,
    /// Memory that was handed over, kept to the end. Of words, so that it is aligned.
    memory: Vec<Box<[u64; PIECE / 8]>>,
    /// Functions without a status of which the first argument was a handle that was made up.
    must_fail: Vec<&'static str>,
    n_deallocated: Vec<usize>,
}

impl Script {
    fn byte(&mut self) -> usize {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        usize::from(byte.unwrap_or(0))
    }

    fn piece(&mut self) -> usize {
        self.memory.push(Box::new([0; PIECE / 8]));
        let piece = self.memory.last().expect("it was pushed");
        piece.as_ptr().addr()
    }

    fn text(&mut self) -> usize {
        match self.byte() % 20 {
            index @ 0..16 => TEXTS[index].as_ptr().addr(),
            16..19 => TEXTS[4].as_ptr().addr(),
            _ => 0,
        }
    }

    /// Returns a handle: mostly the last one of this type.
    fn handle(&mut self, kind: &str, must_fail: bool, function: &'static str) -> usize {
        let choice = self.byte();
        match choice % 8 {
            0 => 0,
            1 => {
                if must_fail {
                    self.must_fail.push(function);
                }
                MADE_UP[choice / 8 % MADE_UP.len()]
            }
            2 if !self.seen.is_empty() => {
                let buffers = self.seen[choice / 8 % self.seen.len()];
                // Of these the address is memory.
                if buffers.kind == "BufferRef" {
                    0
                } else {
                    buffers.bits
                }
            }
            _ => {
                let mut own = self.seen.iter().rev();
                own.find(|seen| seen.kind == kind)
                    .map_or(0, |seen| seen.bits)
            }
        }
    }

    /// Returns an integer: mostly small, and never more than there are elements where it counts some.
    fn integer(&mut self, name: &str, is_wide: bool) -> usize {
        let choice = self.byte();
        let counts = ["num", "max", "len", "size", "total"];
        let is_count = counts.iter().any(|word| name.contains(word));
        let value = match choice % 16 {
            0 => -1,
            15 if !is_count && is_wide => [i64::MAX, i64::MIN, 1 << 40][choice / 16 % 3],
            15 if !is_count => i64::from([i32::MAX, i32::MIN, 99][choice / 16 % 3]),
            small => (small as i64 - 1).min(i64::from(MAX_ELEMENTS)),
        };
        match is_wide {
            true => value as usize,
            false => value as i32 as u32 as usize,
        }
    }

    /// Returns an array of small integers.
    fn array(&mut self) -> usize {
        if self.byte().is_multiple_of(16) {
            return 0;
        }
        let small: Vec<u8> = (0..4).map(|_| self.byte() as u8 % 6).collect();
        let at = self.piece();
        let piece = self.memory.last_mut().expect("it was pushed");
        for (word, small) in piece.iter_mut().zip(small) {
            // One in six is below 0 or large.
            *word = match small {
                5 => u64::MAX,
                small => u64::from(small),
            };
        }
        at
    }

    fn argument(&mut self, function: &'static Function, index: usize) -> usize {
        let (name, declared) = function.parameters[index];
        let declared: String = declared.split_whitespace().collect();
        if let Some(kind) = inside(&declared, "Handle<") {
            // Others may tell a status of another argument first.
            let statuses = function.parameters.iter();
            let has_status = statuses.skip(1).any(|(_, of)| *of == "Handle<Status>");
            return self.handle(kind, index == 0 && !has_status, function.name);
        }
        match &*declared {
            "Text" => self.text(),
            "BufferRef" => {
                let mut own = self.seen.iter().rev();
                let found = own.find(|seen| seen.kind == "BufferRef");
                let found = found.map_or(0, |seen| seen.bits);
                if self.byte().is_multiple_of(8) {
                    0
                } else {
                    found
                }
            }
            "Callback" => match name {
                _ if self.byte().is_multiple_of(4) => 0,
                "visitor" => visit as *const () as usize,
                "deallocator" => deallocate as *const () as usize,
                "shape_inference_func" => infer as *const () as usize,
                _ => 0,
            },
            "u8" => self.byte() & 1,
            "i64" => self.integer(name, true),
            // No length is below 0, and none goes past its memory.
            "usize" => match self.byte() % 64 {
                63 if function.name.contains("VectorFromSize") => usize::MAX,
                small => small,
            },
            _ if declared.starts_with("Array<") => self.array(),
            _ if declared.starts_with("Out<") || declared == "Memory" => {
                match self.byte().is_multiple_of(12) {
                    true => 0,
                    false => self.piece(),
                }
            }
            _ => self.integer(name, false),
        }
    }
}

fn inside<'t>(text: &'t str, prefix: &str) -> Option<&'t str> {
    text.strip_prefix(prefix)?.strip_suffix('>')
}

fn script<R>(use_it: impl FnOnce(&mut Script) -> R) -> R {
    SCRIPT.with_borrow_mut(use_it)
}

/// A function of the C API, with as many arguments as the longest has: others don't look at more than they have.
type Called = extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> usize;

fn invoke(function: &Function, arguments: &[usize]) -> usize {
    let mut all = [0; 12];
    all[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: all functions take integers and pointers, and no more than these; by the calling conventions for C of the
    // processors that plugins run on, a function does not see arguments beyond its own, and who calls takes them away.
    let called = unsafe { std::mem::transmute::<usize, Called>(function.address()) };
    let [a, b, c, d, e, f, g, h, i, j, k, l] = all;
    called(a, b, c, d, e, f, g, h, i, j, k, l)
}

/// The functions that are called: but for those on files, threads and libraries of the machine, those that print by a
/// format, and the one whose handle stays for good.
static CALLED: LazyLock<Vec<&Function>> = LazyLock::new(|| {
    let is_left_out = |function: &&Function| {
        matches!(function.header, "env.h" | "logging.h") || function.name == "TF_GetDevice"
    };
    FUNCTIONS
        .iter()
        .filter(|function| !is_left_out(function))
        .collect()
});

/// Makes one call.
fn call_one() {
    let (function, arguments, results) = script(|script| {
        let wide = script.byte() << 8 | script.byte();
        let function = CALLED[wide % CALLED.len()];
        let mut arguments = Vec::new();
        // A structure of more than two words is written where the caller says.
        if matches!(function.result, "Buffer" | "Rendezvous") {
            arguments.push(script.piece());
        }
        let mut results = Vec::new();
        for (index, (_, declared)) in function.parameters.iter().enumerate() {
            let argument = script.argument(function, index);
            if let Some(kind) = inside(declared, "Out<Handle<")
                && argument != 0
            {
                results.push((argument, kind.trim_end_matches('>')));
            }
            arguments.push(argument);
        }
        if function.name == "TF_NewTensor" {
            // Which memory a deallocator gets, so that each is told once.
            arguments[6] = arguments[3];
        }
        if function.name == "TF_DeleteBuffer" {
            script.seen.retain(|seen| seen.bits != arguments[0]);
        }
        (function, arguments, results)
    });
    let result = invoke(function, &arguments);
    script(|script| {
        let kind = inside(function.result, "Handle<");
        let kind = kind.or((function.result == "BufferRef").then_some("BufferRef"));
        if let Some(kind) = kind.filter(|_| result != 0) {
            script.seen.push(Seen { bits: result, kind });
        }
        for (place, kind) in results {
            let piece = script
                .memory
                .iter()
                .find(|piece| piece.as_ptr().addr() == place);
            let bits = piece.map_or(0, |piece| piece[0]) as usize;
            if bits != 0 {
                script.seen.push(Seen { bits, kind });
            }
        }
    });
}

/// Makes some calls, with these handles in the script's hands.
fn call_some(given: &[(usize, &'static str)]) {
    call_up_to(MAX_CALLS, given);
}

fn call_up_to(most: usize, given: &[(usize, &'static str)]) {
    let n = script(|script| {
        let given = given.iter().map(|(bits, kind)| Seen { bits: *bits, kind });
        script.seen.extend(given);
        script.byte() % most
    });
    for _ in 0..n {
        call_one();
    }
}

extern "C" fn create(construction: usize) -> usize {
    call_some(&[(construction, "Construction")]);
    1
}

extern "C" fn compute(_state: usize, context: usize) {
    call_some(&[(context, "Context")]);
}

extern "C" fn compute_async(_state: usize, context: usize, done: usize) {
    call_some(&[(context, "Context"), (done, "Done")]);
}

extern "C" fn delete(_state: usize) {
    call_some(&[]);
}

extern "C" fn infer(context: usize, status: usize) {
    call_some(&[(context, "ShapeContext"), (status, "Status")]);
}

extern "C" fn visit(_key: usize, _value: usize, _capture: usize) {
    call_up_to(2, &[]);
}

extern "C" fn deallocate(_data: usize, _len: usize, argument: usize) {
    script(|script| script.n_deallocated.push(argument));
}

fn function(name: &str) -> &'static Function {
    let found = FUNCTIONS.iter().find(|function| function.name == name);
    found.unwrap_or_else(|| panic!("there is no {name}"))
}

/// Calls a function with arguments that are right.
fn call(name: &str, arguments: &[usize]) -> usize {
    invoke(function(name), arguments)
}

fn of(text: &'static CStr) -> usize {
    text.as_ptr().addr()
}

/// Registers two operations and their kernels.
extern "C" fn initialize() {
    let status = call("TF_NewStatus", &[]);
    for (op, compute, make) in [
        (c"FuzzCalls", compute as *const (), "TF_NewKernelBuilder"),
        (
            c"FuzzAsync",
            compute_async as *const (),
            "TF_NewAsyncKernelBuilder",
        ),
    ] {
        let builder = call("TF_NewOpDefinitionBuilder", &[of(op)]);
        for spec in [
            c"code: int = 0",
            c"list: list(int) = [1, 2, 3]",
            c"name: string = 'abc'",
            c"type: type = DT_FLOAT",
            c"rate: float = 0.5",
            c"flag: bool = true",
            c"extents: shape = { dim { size: 2 } }",
        ] {
            call("TF_OpDefinitionBuilderAddAttr", &[builder, of(spec)]);
        }
        for spec in [c"x: float", c"y: int32"] {
            call("TF_OpDefinitionBuilderAddInput", &[builder, of(spec)]);
        }
        for spec in [c"z: float", c"w: int32"] {
            call("TF_OpDefinitionBuilderAddOutput", &[builder, of(spec)]);
        }
        let infer = infer as *const () as usize;
        call(
            "TF_OpDefinitionBuilderSetShapeInferenceFunction",
            &[builder, infer],
        );
        call("TF_RegisterOpDefinition", &[builder, status]);
        let (create, delete) = (create as *const () as usize, delete as *const () as usize);
        let arguments = [of(op), of(c"CPU"), create, compute as usize, delete];
        let builder = call(make, &arguments);
        call("TF_RegisterKernelBuilder", &[of(op), builder, status]);
    }
    call("TF_DeleteStatus", &[status]);
}

static PLUGIN: LazyLock<Plugin> = LazyLock::new(|| {
    fault::set_handler(|text| faults().push(text.to_owned()));
    // SAFETY: what it registers are the functions above, which take what their kinds of callbacks are given.
    let plugin = unsafe { Plugin::linked("fuzz", initialize) };
    plugin.expect("it registers what fits")
});

fn faults() -> MutexGuard<'static, Vec<String>> {
    FAULTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a kernel whose callbacks call what bytes say.
///
/// # Panics
///
/// If a fault names no function, a made-up handle is no fault, memory is freed twice, or a handle is left that the host
/// should have let go of.
pub fn capi(bytes: &[u8]) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let plugin = &*PLUGIN;
    let before = handle::n_held();
    script(|script| {
        *script = Script {
            bytes: bytes.to_vec(),
            ..Script::default()
        };
    });
    RUNTIME.with_borrow_mut(|runtime| {
        let host = runtime.get_or_insert_with(runtime_of_limits).host();
        run(plugin, host);
    });
    let seen = script(|script| std::mem::take(&mut script.seen));
    clean_up(&seen);
    // What the script holds by now is nothing.
    assert_eq!(handle::n_held(), before, "handles are left");
    for fault in std::mem::take(&mut *faults()) {
        assert!(is_named(&fault), "{fault}");
    }
    let mut freed = script(|script| std::mem::take(script).n_deallocated);
    let n = freed.len();
    freed.sort_unstable();
    freed.dedup();
    assert_eq!(freed.len(), n, "memory was freed twice");
}

fn runtime_of_limits() -> Runtime {
    let system = Arc::new(SystemAllocator::new());
    let allocator: Arc<dyn HostAllocator> = Arc::new(LimitedAllocator::new(system, MAX_BYTES));
    Runtime::builder()
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .allocator(allocator)
        .build()
}

/// Calls the operation; the state of its kernel goes with the runtime.
fn run(plugin: &Plugin, host: &HostContext) {
    let runtime = CoreRuntime::new(host);
    runtime.add_ops(Arc::new(PluginOps::new([plugin])));
    let context = runtime.context();
    let name = match script(Script::byte).is_multiple_of(3) {
        true => "tf.FuzzAsync",
        false => "tf.FuzzCalls",
    };
    let op = runtime.op(name, &runtime.cpu());
    let op = op.expect("the plugin has defined it");
    let x = runtime.dense(&[2], &[1.0_f32, 2.0]);
    let y = runtime.dense(&[], &[3_i32]);
    let (Ok(x), Ok(y)) = (x, y) else { return };
    let attrs = OpAttrs::new();
    let results = op.call(&context, [&x, &y], &attrs);
    let must_fail = script(|script| std::mem::take(&mut script.must_fail));
    let errors = match &results {
        Ok(results) => results
            .iter()
            .filter_map(|result| result.error().cloned())
            .collect(),
        Err(error) => vec![error.clone()],
    };
    let mut told: Vec<String> = faults().clone();
    for error in errors {
        told.push(error.message().to_owned());
        told.extend(error.notes().iter().cloned());
    }
    let is_pending = results.iter().flatten().any(|result| !result.is_settled());
    let host_failed = told
        .iter()
        .find(|text| text.contains("the host has failed"));
    assert!(host_failed.is_none(), "{host_failed:?}");
    for name in must_fail {
        let is_told = told.iter().any(|text| text.starts_with(name));
        // The host keeps so many.
        let is_full = told.len() >= MAX_FAULTS;
        assert!(is_told || is_pending || is_full, "{name}: {told:?}");
    }
}

/// Returns whether a fault begins with the name of a function.
fn is_named(fault: &str) -> bool {
    let name = fault.split([':', ',', ' ']).next().unwrap_or("");
    FUNCTIONS.iter().any(|function| function.name == name)
}

/// Deletes all that the script has seen and not deleted; what it has, is a fault, which nobody hears of.
fn clean_up(seen: &[Seen]) {
    let (_, _faults) = fault::scope(|| {
        for Seen { bits, kind } in seen {
            let delete = match *kind {
                "Status" => "TF_DeleteStatus",
                "Tensor" => "TF_DeleteTensor",
                "KernelBuilder" => "TF_DeleteKernelBuilder",
                "OpBuilder" => "TF_DeleteOpDefinitionBuilder",
                "ShapeBox" => "TF_DeleteShapeHandle",
                "DimensionBox" => "TF_DeleteDimensionHandle",
                "BufferRef" => "TF_DeleteBuffer",
                "Done" => "TF_RunAsyncOpKernelDoneCallback",
                "LockHolder" => "TF_ReleaseVariableInputLockHolder",
                "VariableInfo" => "TF_DeleteVariableInfo",
                _ => continue,
            };
            call(delete, &[*bits]);
        }
    });
}
