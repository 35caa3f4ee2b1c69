//! Cost of a call of a plugin's kernel of two inputs on four floats, beside that of a built-in operation.
//!
//! `cargo bench -p tfrt-capi --bench cost`. Goals: 90 ns when a program calls it, 200 ns when called eagerly.

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tfrt_capi::Plugin;
use tfrt_capi::rows::PluginOps;
use tfrt_corert::{CoreRuntime, FrozenOpAttrs, Inputs, OpAttrs, OpCall, TensorHandle};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{ExecutionContext, HostContext, RequestContext};

/// Returns the least time of some rounds.
fn least(n_rounds: usize, mut round: impl FnMut()) -> Duration {
    let times = (0..n_rounds).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn each(name: &str, mut call: impl FnMut()) {
    const N: u32 = 10_000;
    let time = least(100, || (0..N).for_each(|_| call()));
    println!("{name}: {:.1} ns", time.as_nanos() as f64 / f64::from(N));
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
    #[expect(unsafe_code, reason = "the benchmark has written the library")]
    // SAFETY: the benchmark has written the library.
    Some(unsafe { Plugin::load(&library) }.unwrap())
}

fn main() {
    let Some(plugin) = plugin() else { return };
    let host = HostContext::builder(KernelRegistry::new()).build();
    let runtime = CoreRuntime::new(&host);
    runtime.set_kernels(tfrt_kernels::rows::find);
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
        let op = runtime.op(name, &runtime.cpu()).unwrap();
        each(&format!("{name}, eager"), || {
            let sum = op.call_one(&context, [&inputs[0], &inputs[1]], &none);
            black_box(sum.unwrap());
        });
        let called = |attrs: &FrozenOpAttrs, with: &str| {
            each(&format!("{name}, by a kernel{with}"), || {
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
}
