//! Programs that run often: a node keeps what its first run has found, and later runs give what calls from outside give.

use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_corert::{Context, kernels};
use tfrt_host::{Error, Program};

use super::*;

/// Each call of the program: its operation, and the values before it that it is given, of which the first two are the inputs.
const CALLS: [(&str, &[usize]); 12] = [
    ("tf.AddV2", &[0, 0]),
    // A register is read twice by one call.
    ("tf.Mul", &[2, 2]),
    // Nobody else reads it: the result takes its memory.
    ("tf.Square", &[3]),
    ("tf.Sub", &[0, 4]),
    ("tf.Maximum", &[5, 1]),
    ("tf.Sub", &[1, 6]),
    // Of another type than its operands.
    ("tf.Less", &[7, 0]),
    // Three operands, and no function of elements.
    ("tf.SelectV2", &[8, 7, 1]),
    ("tf.Neg", &[9]),
    ("tf.AddN", &[10, 7, 0, 10]),
    // Its operand is read again below.
    ("tf.Square", &[11]),
    ("tf.Sub", &[12, 11]),
];

fn program(host: &HostContext) -> Program {
    let list = |before: &[usize]| {
        let names: Vec<String> = before.iter().map(|index| format!("%{index}")).collect();
        names.join(", ")
    };
    let calls = CALLS.iter().enumerate().map(|(index, (op, inputs))| {
        let (result, inputs) = (index + 2, list(inputs));
        format!("  %{result} = corert.executeop(%cpu) \"{op}\"({inputs}) : 1\n")
    });
    let calls: String = calls.collect();
    let last = CALLS.len() + 1;
    let text = format!(
        "func.func @main(%c: !tfrt.chain, %0: !corert.tensorhandle, %1: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {{
  %cpu = corert.get_op_handler %c \"cpu\"
{calls}  tfrt.return %c, %{last} : !tfrt.chain, !corert.tensorhandle
}}"
    );
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("calls.mlir", &text)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    Program::load(BefFile::open(bytes).unwrap(), host).unwrap()
}

/// Returns what calls from outside give, one after the other.
fn eager(
    runtime: &CoreRuntime,
    context: &Context,
    inputs: [&TensorHandle; 2],
) -> Result<TensorHandle, Error> {
    let mut all = inputs.map(TensorHandle::clone).to_vec();
    for (op, before) in CALLS {
        let own: Vec<&TensorHandle> = before.iter().map(|index| &all[*index]).collect();
        let op = runtime.op(op, &runtime.cpu()).unwrap();
        all.push(op.call_one(context, &own[..], &none())?);
    }
    Ok(all.pop().unwrap())
}

#[test]
fn later_runs_of_a_node_give_what_calls_from_outside_give() {
    let mut registry = KernelRegistry::new();
    kernels::register(&mut registry);
    let host = HostContext::builder(registry).build();
    let runtime = super::runtime_of(&host);
    let context = runtime.context();
    let main = runtime
        .composite(program(&host).function("main").unwrap())
        .unwrap();
    let floats = |extents: &[usize], from: f32| {
        let n: usize = extents.iter().product();
        let list: Vec<f32> = (0..n).map(|index| from + index as f32 / 2.0).collect();
        runtime.dense(extents, &list).unwrap()
    };
    let whole = |extents: &[usize], list: &[i64]| runtime.dense(extents, list).unwrap();
    let failed = || runtime.failed(Error::data_loss("the disk is gone"));
    let cases = [
        [floats(&[4], 1.0), floats(&[4], -3.0)],
        [floats(&[4], 0.5), floats(&[4], 8.0)],
        [floats(&[2, 3], 1.0), floats(&[2, 3], 2.0)],
        // One element with many.
        [floats(&[5], 1.0), floats(&[], 2.0)],
        [floats(&[300], 1.0), floats(&[300], 2.0)],
        [floats(&[0], 1.0), floats(&[0], 2.0)],
        [whole(&[2], &[1, -2]), whole(&[2], &[3, i64::MAX])],
        // Shapes that don't fit, types that differ, an input that has failed: then what fits again.
        [floats(&[4], 1.0), floats(&[3], 1.0)],
        [floats(&[2], 1.0), whole(&[2], &[1, 2])],
        [floats(&[4], 1.0), failed()],
        [failed(), floats(&[4], 1.0)],
        [floats(&[4], 1.0), floats(&[4], -3.0)],
        [floats(&[100, 200], 1.0), floats(&[100, 200], -3.0)],
    ];
    for [x, y] in cases.iter().chain(&cases) {
        let (before, inputs) = ([x.to_string(), y.to_string()], [x, y]);
        let wanted = match eager(&runtime, &context, inputs) {
            Ok(handle) => result(&runtime, &handle),
            Err(error) => Err(error.message().to_owned()),
        };
        let found = main.call_one(&context, inputs, &none()).unwrap();
        assert_eq!(result(&runtime, &found), wanted, "{before:?}");
        // What the caller holds is as it was.
        assert_eq!([x.to_string(), y.to_string()], before);
    }
    let [x, y] = &cases[0];
    let (gate, promises) = gate(&runtime, true);
    let later = gate.call_one(&context, [x], &none()).unwrap();
    let found = main.call_one(&context, [&later, y], &none()).unwrap();
    promises.recv().unwrap().resolve(dense_of(x).clone().into());
    let wanted = eager(&runtime, &context, [x, y]).unwrap();
    assert_eq!(result(&runtime, &found), result(&runtime, &wanted));
    context.cancel();
    let error = main.call_one(&context, [x, y], &none()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Cancelled);
}

/// Returns a result as text, or the message of the error.
fn result(runtime: &CoreRuntime, handle: &TensorHandle) -> Result<String, String> {
    runtime
        .host()
        .queue()
        .await_all(&[handle.to_async().into_any()])
        .unwrap();
    match handle.tensor().unwrap() {
        Ok(_) => Ok(handle.to_string()),
        Err(error) => Err(error.message().to_owned()),
    }
}
