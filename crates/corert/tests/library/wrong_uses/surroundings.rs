//! Wrong uses around operations: handlers, devices, functions, recordings, tensors.

use std::sync::Arc;

use tfrt_bef::BefFile;
use tfrt_compiler::{CompileOptions, compile};
use tfrt_corert::{Inputs, NullOpHandler, OpAttrs, OpCall, Recording, kernels};
use tfrt_host::kernel::KernelRegistry;
use tfrt_host::{
    DeviceId, DeviceRef, ExecutionContext, Function, HostContext, Program, RequestContext,
};
use tfrt_tensor::TensorFormat;

use super::{Row, User, none, row};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = handlers();
    rows.extend(transfers());
    rows.extend(programs());
    rows.extend(recordings());
    rows.extend(tensors());
    rows
}

fn handlers() -> Vec<Row> {
    let user = User::new();
    let unknown = user.runtime.handler("gpu").err().unwrap();
    let null = || Arc::new(NullOpHandler::new(DeviceId::HOST));
    user.runtime.register("mine", null()).unwrap();
    vec![
        row("A handler that nobody has registered", unknown),
        row(
            "The same, where there are others",
            user.runtime.handler("gpu").err().unwrap(),
        ),
        row(
            "A name that another handler has",
            user.runtime.register("mine", null()).unwrap_err(),
        ),
    ]
}

fn transfers() -> Vec<Row> {
    let (user, other) = (User::new(), User::new());
    let x = user.ones(&[2]);
    let theirs = other.runtime.host().devices().add_host("CPU:7").unwrap();
    let to = |x, device: &DeviceRef, format| user.context.transfer(x, device, format).unwrap_err();
    let own = user.runtime.device();
    vec![
        row(
            "A transfer to a device of another host",
            to(&x, &theirs, TensorFormat::DenseHost),
        ),
        row(
            "A transfer to the host in the format of other devices",
            to(&x, &own, TensorFormat::Device),
        ),
        row(
            "A transfer to a format that can't be",
            to(&user.strings(&["one"]), &own, TensorFormat::DenseHost),
        ),
        row(
            "A transfer of a handle of another runtime",
            to(&other.ones(&[1]), &own, TensorFormat::DenseHost),
        ),
    ]
}

/// Returns the functions of a program.
fn program(host: &HostContext, text: &str) -> Program {
    let module = tfrt_ir::parse(&tfrt_ir::Source::new("program.mlir", text)).unwrap();
    let bytes = compile(&module, &CompileOptions::default()).unwrap();
    Program::load(BefFile::open(bytes).unwrap(), host).unwrap()
}

const FUNCTIONS: &str = "
func.func @numbers(%x: i32) -> i32 {
  tfrt.return %x : i32
}
func.func @unchained(%x: !corert.tensorhandle) -> !corert.tensorhandle {
  tfrt.return %x : !corert.tensorhandle
}
func.func @nothing() {
  tfrt.return
}
func.func @mixed(%c: !tfrt.chain, %x: i32) -> (!tfrt.chain, i32) {
  tfrt.return %c, %x : !tfrt.chain, i32
}
func.func @same(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %c, %x : !tfrt.chain, !corert.tensorhandle
}
";

fn programs() -> Vec<Row> {
    let mut registry = KernelRegistry::new();
    kernels::register(&mut registry);
    let host = HostContext::builder(registry).build();
    let runtime = super::runtime_of(&host);
    let (context, program) = (runtime.context(), program(&host, FUNCTIONS));
    let function = |name: &str| -> Function { program.function(name).unwrap() };
    let composite = |name: &str| runtime.composite(function(name)).unwrap_err();
    let same = runtime.composite(function("same")).unwrap();
    let call = |attrs: &OpAttrs, inputs| same.call(&context, inputs, attrs).unwrap_err();
    let x = runtime.dense(&[1], &[1.0_f32]).unwrap();
    let foreign = User::new().ones(&[1]);

    let print = runtime.op("tfrt_test.print", &runtime.cpu()).unwrap();
    let relu = runtime.op("tf.Relu", &runtime.cpu()).unwrap();
    let request = RequestContext::new(&host);
    let execution = ExecutionContext::new(&request);
    let attrs = none();
    let by_kernel = || {
        let handles = std::slice::from_ref(&x);
        OpCall::by_kernel(
            &runtime,
            &execution,
            Inputs::borrowed(handles),
            attrs.as_ref(),
        )
    };
    let mut two = by_kernel();
    two.n_results = Some(2);
    vec![
        row(
            "An operation of a function of numbers",
            composite("numbers"),
        ),
        row("Of a function without a chain", composite("unchained")),
        row("Of a function that takes nothing", composite("nothing")),
        row(
            "Of a function of which some is no tensor",
            composite("mixed"),
        ),
        row("Too few inputs for a function", call(&none(), &[][..])),
        row(
            "An attribute for a function",
            call(&super::attrs!["fast" => true], &[&x][..]),
        ),
        row(
            "A handle of another runtime for a function",
            call(&none(), &[&foreign][..]),
        ),
        row(
            "Another number of results than there are",
            relu.run(two).unwrap_err(),
        ),
        row(
            "An operation with side effects called by a kernel without a chain",
            print.run(by_kernel()).unwrap_err(),
        ),
    ]
}

fn recordings() -> Vec<Row> {
    let user = User::new();
    let relu = user.runtime.op("tf.Relu", &user.runtime.cpu()).unwrap();
    let record = || {
        let recording = Recording::begin(&user.context);
        let x = recording.input(user.ones(&[2]));
        let y = relu.call_one(recording.context(), [&x], &none()).unwrap();
        (recording, y)
    };
    let (one, _) = record();
    let (other, result) = record();
    let (device, format) = (user.runtime.device(), TensorFormat::CooHost);
    let moved = other.context().transfer(&result, &device, format);
    vec![
        row(
            "A result of another recording",
            one.finish(&[result]).unwrap_err(),
        ),
        row("A transfer of a result, in a recording", moved.unwrap_err()),
        row(
            "A result that was not recorded",
            record().0.finish(&[user.ones(&[2])]).unwrap_err(),
        ),
    ]
}

fn tensors() -> Vec<Row> {
    let user = User::new();
    let mut attrs = none();
    attrs.set("axis", 1_i64).unwrap();
    let dense = |extents: &[usize]| user.runtime.dense(extents, &[1.0_f32, 2.0]).unwrap_err();
    vec![
        row("A tensor of too few elements", dense(&[3])),
        row(
            "A tensor whose extents exceed any integer",
            dense(&[usize::MAX, 2]),
        ),
        row(
            "An attribute that is there already",
            attrs.set("axis", 2_i64).err().unwrap(),
        ),
    ]
}
