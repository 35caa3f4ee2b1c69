//! Cost of a call of a plugin's kernel of two inputs on four floats, beside that of a built-in operation.
//!
//! `cargo bench -p tfrt-capi --bench cost` prints the median of some rounds. Goals: 90 ns when a program calls it, 60 above
//! the built-in one; 200 ns when called eagerly; half a millisecond to make and load the library that plugins ask for.
//! With `--count NAME` one row runs alone, for `valgrind --tool=callgrind`; with `--only NAME` it is measured alone.

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_bef::BefFile;
use tfrt_capi::Plugin;
use tfrt_capi::rows::PluginOps;
use tfrt_corert::{CoreRuntime, FrozenOpAttrs, Inputs, OpAttrs, OpCall, TensorHandle};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{AnyAsyncValue, Chain, ExecutionContext, HostContext, Program, RequestContext};
use tfrt_tensor::resource::{Resources, Variable};

/// Returns the median time of some rounds.
fn median(n_rounds: usize, mut round: impl FnMut()) -> Duration {
    let times = (0..n_rounds).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed()
    });
    let mut times: Vec<Duration> = times.collect();
    times.sort_unstable();
    times.get(n_rounds / 2).copied().unwrap_or_default()
}

/// Measures calls, `n` of which one `round` makes.
fn each(name: &str, n: u32, mut round: impl FnMut()) {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, count, wanted, ..] = &arguments[..]
        && count == "--count"
    {
        if wanted == name {
            (0..20_000 / n).for_each(|_| round());
        }
        return;
    }
    if let [_, only, wanted, ..] = &arguments[..]
        && only == "--only"
        && wanted != name
    {
        return;
    }
    // A round is shorter than what the system lets a thread run at once.
    const N_CALLS: u32 = 1000;
    let time = median(1001, || (0..N_CALLS / n).for_each(|_| round()));
    println!(
        "{name}: {:.1} ns",
        time.as_nanos() as f64 / f64::from(N_CALLS)
    );
}

/// Calls in the program that is measured.
const N_NODES: u32 = 1000;

/// Returns a program that calls an operation of two inputs often.
fn program(op: &str, host: &HostContext) -> Program {
    let mut text =
        "func.func @main(%c0: !tfrt.chain, %x: !corert.tensorhandle) -> !corert.tensorhandle {\n  \
                    %cpu = corert.get_op_handler %c0 \"cpu\"\n"
            .to_owned();
    let mut last = "%x".to_owned();
    for index in 0..N_NODES {
        let _ = writeln!(
            text,
            "  %y{index} = corert.executeop(%cpu) \"{op}\"({last}, %x) : 1"
        );
        last = format!("%y{index}");
    }
    let _ = writeln!(text, "  tfrt.return {last} : !corert.tensorhandle\n}}");
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("cost.mlir", &text)).unwrap();
    let bytes = tfrt_compiler::compile(&module, &tfrt_compiler::CompileOptions::default()).unwrap();
    Program::load(BefFile::open(bytes).unwrap(), host).unwrap()
}

/// Builds and loads the plugin; `None` if there is no compiler.
fn plugin() -> Option<Plugin> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("tfrt_capi.h"), tfrt_capi::functions::header()).unwrap();
    let (source, library) = (folder.join("cost.c"), folder.join("libcost.so"));
    std::fs::write(&source, include_str!("cost.c")).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .args([&library, &source])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: there is no C compiler");
        return None;
    }
    let start = Instant::now();
    #[expect(unsafe_code, reason = "the benchmark has written the library")]
    // SAFETY: the benchmark has written the library.
    let plugin = unsafe { Plugin::load(&library) }.unwrap();
    let time = start.elapsed().as_micros();
    println!("the library that plugins ask for, and the plugin, made and loaded: {time} us");
    Some(plugin)
}

fn main() {
    let Some(plugin) = plugin() else { return };
    let mut registry = KernelRegistry::new();
    tfrt_corert::kernels::register(&mut registry);
    let host = HostContext::builder(registry).build();
    let runtime = CoreRuntime::new(&host);
    runtime.add_ops(Arc::new(PluginOps::new([&plugin])));
    let context = runtime.context();
    let execution: ExecutionContext = RequestContext::new(&host).into();
    let floats = || runtime.dense(&[4], &[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
    let inputs = [floats(), floats()];
    let none = FrozenOpAttrs::default();
    let mut attrs = OpAttrs::new();
    attrs.set("scale", 2.0_f32).unwrap();
    let attrs = attrs.freeze();
    for name in ["tf.AddV2", "tf.CostAdd"] {
        let program = program(name, &host);
        let main = program.function("main").unwrap();
        each(&format!("{name}, in a program"), N_NODES, || {
            let arguments = [
                AnyAsyncValue::new(Chain),
                AnyAsyncValue::new(inputs[0].clone()),
            ];
            let results = main.execute(&execution, arguments.to_vec());
            host.queue().await_all(&results).unwrap();
            assert!(results[0].error().is_none());
        });
        let op = runtime.op(name, &runtime.cpu()).unwrap();
        each(&format!("{name}, eager"), 1, || {
            let sum = op.call_one(&context, [&inputs[0], &inputs[1]], &none);
            black_box(sum.unwrap());
        });
        let called = |attrs: &FrozenOpAttrs, with: &str| {
            each(&format!("{name}, by a kernel{with}"), 1, || {
                let mut own: [TensorHandle; 2] = inputs.clone();
                let inputs = Inputs::owned(&mut own);
                let call = OpCall::by_kernel(&runtime, &execution, inputs, attrs.into());
                black_box(op.run(call).unwrap());
            });
        };
        called(&none, "");
        if name == "tf.CostAdd" {
            called(&attrs, ", with an attribute");
        }
    }
    let slot = Resources::of(&host).slot("", "v", Variable::default);
    let value = inputs[0].tensor().unwrap().unwrap().clone();
    let variable = slot.get::<Variable>().unwrap();
    variable.assign(value, host.allocator()).unwrap();
    let handle = runtime.handle(slot.handle());
    // The second is the first, and lock, get and release of a variable.
    for name in ["tf.CostIdle", "tf.CostLock"] {
        let op = runtime.op(name, &runtime.cpu()).unwrap();
        each(&format!("{name}, eager"), 1, || {
            black_box(op.call(&context, [&handle], &none).unwrap());
        });
    }
}
