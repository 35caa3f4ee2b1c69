//! Operations on resources: they run as often as a model says, once for each call, and in the order of their chains.

use std::sync::{Arc, Mutex};

use tfrt::compiler::CompileOptions;
use tfrt::input::Input;
use tfrt::kernel::{Attr, KernelRegistry};
use tfrt::ops::{AttrDef, OpDef, Traits, ValueDef};
use tfrt::tensor::math::packed_gemm::InstructionSet;
use tfrt::{
    Chain, ConcurrentWorkQueue, Format, Formats, Model, MultiThreadedWorkQueue, OpenOptions,
    Runtime, SingleThreadedWorkQueue, Tensor,
};
use tfrt_example_calc::counters;

/// A format whose files are text: its own rows with chains, among operations of graphs in any form.
const TEXT: Format = Format::new("log", |source, _| {
    Ok(tfrt::input::parse(&source.text()?)?.into())
})
.recognises(|head| head.bytes.starts_with(b"// text"))
.expand(&[("twice", |here| {
    let (x, chain) = (here.operand(0)?, here.operand(1)?);
    let types = [tfrt::ir::Type::dialect("!tfrt.chain")];
    let first = here.add_typed("log.note", &[x, chain], &[], &types);
    Ok(here.add_typed("log.note", &[x, first[0]], &[], &types))
})])
.rows(&[
    OpDef::new("log.note", "Notes its operand.")
        .inputs(&[ValueDef::any("x"), ValueDef::object("chain").optional()])
        .results(&[ValueDef::object("after")])
        .attrs(&[AttrDef::float("scale", 1.0)])
        .traits(Traits::WRITES),
    OpDef::new(
        "log.pure",
        "Its operand, which is noted to see how often it runs.",
    ),
]);

type Log = Arc<Mutex<Vec<f32>>>;

fn note(log: &Log, x: &tfrt::tensor::Tensor) -> Result<(), tfrt::Error> {
    let x = x.as_dense()?;
    log.lock()
        .unwrap()
        .extend_from_slice(x.read()?.elements::<f32>()?);
    Ok(())
}

/// Returns a runtime whose kernels of `log` write into a log.
fn runtime(queue: Arc<dyn ConcurrentWorkQueue>) -> (Runtime, Log) {
    let log = Log::default();
    let (noted, seen) = (log.clone(), log.clone());
    let add = |registry: &mut KernelRegistry| {
        let kernel = move |x: &tfrt::tensor::Tensor, rest: tfrt::kernel::Rest, scale: Attr<f32>| {
            assert!(rest.0.len() < 2 && *scale == 1.0);
            note(&noted, x).map(|()| Chain)
        };
        registry.add("cpu.log.note", kernel);
        let kernel = move |x: &tfrt::tensor::Tensor| note(&seen, x).map(|()| x.clone());
        registry.add("cpu.log.pure", kernel);
    };
    let formats = Formats::builtin().with(counters::FORMAT).with(TEXT);
    let builder = Runtime::builder().formats(formats).kernels(add);
    (builder.queue(queue).build(), log)
}

fn queues() -> Vec<Arc<dyn ConcurrentWorkQueue>> {
    let threads = |n| Arc::new(MultiThreadedWorkQueue::new(n, 1).unwrap());
    vec![
        Arc::new(SingleThreadedWorkQueue::new()),
        threads(1),
        threads(4),
    ]
}

/// Opens a model in each way that there is: optimized and not, compiled to a file, with and without packed weights.
fn models(runtime: &Runtime, text: &str) -> Vec<Model> {
    let read =
        |bytes: &[u8]| Input::from_bytes_with("model", bytes.to_vec(), runtime.formats()).unwrap();
    let input = read(text.as_bytes());
    let mut inputs = Vec::new();
    let how = CompileOptions::default();
    let options = [true, false].map(|optimize| OpenOptions::new().optimize(optimize));
    for options in &options {
        let file = input.compile_for(&how, InstructionSet::best(), options);
        inputs.push(read(file.unwrap().as_bytes()));
    }
    inputs.push(read(input.compile(&how).unwrap().as_bytes()));
    let loaded =
        |input: &Input, options: &OpenOptions| runtime.load_model_with(input, options).unwrap();
    let mut models: Vec<Model> = options
        .iter()
        .map(|options| loaded(&input, options))
        .collect();
    models.extend(
        inputs
            .iter()
            .map(|input| loaded(input, &OpenOptions::new())),
    );
    models
}

fn called(runtime: &Runtime, model: &Model, inputs: &[(&str, f32)]) -> Vec<f32> {
    let inputs = inputs.iter().map(|(name, value)| {
        let x = match *name {
            "p" => Tensor::from_vec(&[], vec![tfrt::Bool::from(*value != 0.0)]).unwrap(),
            "n" => Tensor::from_vec(&[], vec![*value as i64]).unwrap(),
            _ => Tensor::from_vec(&[], vec![*value]).unwrap(),
        };
        ((*name).to_owned(), x)
    });
    let inputs: Vec<(String, Tensor)> = inputs.collect();
    let outputs = model.call(&runtime.context(), inputs).wait().unwrap();
    let names = model.outputs().iter();
    let all = names.map(|info| outputs.tensor(&info.name).unwrap().to_vec::<f32>().unwrap());
    let all = all.flatten().collect();
    runtime.quiesce().unwrap();
    all
}

/// Returns a text with a function of these inputs and outputs.
fn text(inputs: &str, outputs: &str, body: &str) -> String {
    let names = |list: &str| {
        let names: Vec<String> = list.split(' ').map(|name| format!("{name:?}")).collect();
        names.join(", ")
    };
    let ty = |name: &str| match name {
        "p" => "tensor<i1>",
        "n" => "tensor<i64>",
        "c1" => "!tfrt.chain",
        _ => "tensor<f32>",
    };
    let arguments: Vec<String> = inputs
        .split(' ')
        .map(|name| format!("%{name}: {}", ty(name)))
        .collect();
    let dims: Vec<&str> = arguments.iter().map(|_| "[]").collect();
    let returned: Vec<String> = outputs.split(' ').map(|name| format!("%{name}")).collect();
    let types: Vec<&str> = outputs.split(' ').map(ty).collect();
    let text = format!(
        "// text\nfunc.func @main({}) -> ({types}) attributes {{model.input_names = [{}], model.output_names = [{}], model.input_dims = [{}]}} {{\n\
         %zero = \"graph.constant\"() {{value = dense<0.0> : tensor<f32>}} : () -> tensor<f32>\n\
         %one = \"graph.constant\"() {{value = dense<1.0> : tensor<f32>}} : () -> tensor<f32>\n\
         %two = \"graph.constant\"() {{value = dense<2.0> : tensor<f32>}} : () -> tensor<f32>\n\
         %three = \"graph.constant\"() {{value = dense<3.0> : tensor<f32>}} : () -> tensor<f32>\n\
         {body}\ntfrt.return {} : {types}\n}}",
        arguments.join(", "),
        names(inputs),
        names(outputs),
        dims.join(", "),
        returned.join(", "),
        types = types.join(", "),
    );
    written_out(&text)
}

/// Writes out what is short for operations on counters and of the log.
fn written_out(text: &str) -> String {
    text.replace("COUNTER(", "\"tally.counter\"(")
        .replace("READ(", "\"tally.read\"(")
        .replace(" MADE", " : (tensor<f32>) -> (!tally.counter, !tfrt.chain)")
        .replace(
            " COUNTED",
            " {scale = 10.0 : f32} : (!tally.counter, tensor<f32>, !tfrt.chain) -> !tfrt.chain",
        )
        .replace("COUNT(", "\"tally.count\"(")
        .replace(
            " WAS",
            " : (!tally.counter, !tfrt.chain) -> (tensor<f32>, !tfrt.chain)",
        )
        .replace("NOTE(", "\"log.note\"(")
        .replace(" NOTED", " : (tensor<f32>) -> !tfrt.chain")
}

/// Checks what a model gives, whatever runs it, and what its calls note, in any order.
fn check(text: &str, inputs: &[(&str, f32)], expected: &[f32], noted: &[f32]) {
    for queue in queues() {
        let (runtime, log) = runtime(queue);
        for (at, model) in models(&runtime, text).iter().enumerate() {
            log.lock().unwrap().clear();
            for _ in 0..2 {
                assert_eq!(called(&runtime, model, inputs), expected, "model {at}");
                let mut found = std::mem::take(&mut *log.lock().unwrap());
                found.sort_by(f32::total_cmp);
                assert_eq!(found, noted, "model {at}");
            }
        }
    }
}

#[test]
fn counters_of_a_file_are_counted_in_the_order_of_its_lines() {
    let lines = "\
# tally
input x f32[1]
input y f32[1]
counter c x
counter d x     # another one
count c y 10.0
count c y 10.0
read unused c
count c x 10.0
read n c
count c y 10.0
read m c
read o d
output n
output m
output o
";
    for queue in queues() {
        let (runtime, _) = runtime(queue);
        for model in models(&runtime, lines) {
            let one = |value: f32| Tensor::from_vec(&[1], vec![value]).unwrap();
            let inputs = [("x", one(1.0)), ("y", one(2.0))];
            let outputs = model.call(&runtime.context(), inputs).wait().unwrap();
            let read = |name| outputs.tensor(name).unwrap().to_vec::<f32>().unwrap();
            assert_eq!(
                [read("n"), read("m"), read("o")],
                [[1221.0], [12212.0], [1.0]]
            );
        }
    }
}

#[test]
fn what_takes_constants_alone_runs_in_each_call_and_is_never_made_one() {
    let body = "\
%c, %c0 = COUNTER(%zero) MADE
%d, %d0 = COUNTER(%zero) MADE
%c1 = COUNT(%c, %one, %c0) COUNTED
%c2 = COUNT(%c, %one, %c1) COUNTED
%c3 = COUNT(%c, %two, %c2) COUNTED
%y, %c4 = READ(%c, %c3) WAS
%z, %d1 = READ(%d, %d0) WAS
%again, %c5 = READ(%c, %c4) WAS";
    check(&text("x", "y z", body), &[("x", 0.0)], &[112.0, 0.0], &[]);
}

#[test]
fn what_nothing_uses_runs_once_for_each_call() {
    let body = "\
%0 = NOTE(%two) NOTED
%1 = NOTE(%two) NOTED
%2 = NOTE(%x) NOTED
%3 = \"log.twice\"(%three, %2) : (tensor<f32>, !tfrt.chain) -> !tfrt.chain
%y = \"graph.add\"(%x, %one) : (tensor<f32>, tensor<f32>) -> tensor<f32>";
    check(
        &text("x", "y", body),
        &[("x", 5.0)],
        &[6.0],
        &[2.0, 2.0, 3.0, 3.0, 5.0],
    );
}

#[test]
fn pure_rows_of_a_format_are_made_one_hoisted_and_dropped() {
    let body = "\
%0 = \"log.pure\"(%two) : (tensor<f32>) -> tensor<f32>
%1 = \"log.pure\"(%x) : (tensor<f32>) -> tensor<f32>
%2 = \"log.pure\"(%x) : (tensor<f32>) -> tensor<f32>
%unused = \"log.pure\"(%three) : (tensor<f32>) -> tensor<f32>
%3 = \"graph.add\"(%0, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
%y = \"graph.add\"(%3, %2) : (tensor<f32>, tensor<f32>) -> tensor<f32>";
    let text = text("x", "y", body);
    let (runtime, log) = runtime(Arc::new(SingleThreadedWorkQueue::new()));
    let read = Input::from_bytes_with("model", text.into(), runtime.formats()).unwrap();
    let model = runtime.load_model(&read).unwrap();
    assert_eq!(called(&runtime, &model, &[("x", 5.0)]), [12.0]);
    assert_eq!(called(&runtime, &model, &[("x", 5.0)]), [12.0]);
    assert_eq!(*log.lock().unwrap(), [2.0, 5.0, 5.0]);
}

#[test]
fn chains_go_through_both_branches() {
    let body = "\
%c, %c0 = COUNTER(%zero) MADE
%c1 = COUNT(%c, %one, %c0) COUNTED
%v, %c2 = \"graph.if\"(%p) ({
  %a = COUNT(%c, %two, %c1) COUNTED
  %b = COUNT(%c, %two, %a) COUNTED
  %0 = NOTE(%two) NOTED
  \"graph.yield\"(%one, %b) : (tensor<f32>, !tfrt.chain) -> ()
}, {
  %a = COUNT(%c, %three, %c1) COUNTED
  %r, %b = READ(%c, %a) WAS
  \"graph.yield\"(%r, %b) : (tensor<f32>, !tfrt.chain) -> ()
}) : (tensor<i1>) -> (tensor<f32>, !tfrt.chain)
%c3 = COUNT(%c, %two, %c2) COUNTED
%y, %c4 = READ(%c, %c3) WAS";
    let text = text("p", "y v", body);
    check(&text, &[("p", 1.0)], &[1222.0, 1.0], &[2.0]);
    check(&text, &[("p", 0.0)], &[132.0, 13.0], &[]);
}

#[test]
fn branches_whose_results_nothing_uses_run() {
    let body = "\
%c, %c0 = COUNTER(%zero) MADE
%v = \"graph.if\"(%p) ({
  %w = \"graph.if\"(%p) ({
    %0 = NOTE(%two) NOTED
    \"graph.yield\"(%one) : (tensor<f32>) -> ()
  }, {
    \"graph.yield\"(%two) : (tensor<f32>) -> ()
  }) : (tensor<i1>) -> tensor<f32>
  \"graph.yield\"(%one) : (tensor<f32>) -> ()
}, {
  %1 = NOTE(%three) NOTED
  \"graph.yield\"(%one) : (tensor<f32>) -> ()
}) : (tensor<i1>) -> tensor<f32>
%y = \"graph.neg\"(%x) : (tensor<f32>) -> tensor<f32>";
    let text = text("p x", "y", body);
    check(&text, &[("p", 1.0), ("x", 1.0)], &[-1.0], &[2.0]);
    check(&text, &[("p", 0.0), ("x", 1.0)], &[-1.0], &[3.0]);
}

#[test]
fn chains_go_from_turn_to_turn() {
    let body = "\
%c, %c0 = COUNTER(%zero) MADE
%yes = \"graph.constant\"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
%sum, %c1 = \"onnx.Loop\"(%n, %yes, %zero, %c0) ({
^bb0(%turn: tensor<i64>, %go: tensor<i1>, %old: tensor<f32>, %before: !tfrt.chain):
  %turned = \"graph.cast\"(%turn) {to = f32} : (tensor<i64>) -> tensor<f32>
  %a = COUNT(%c, %turned, %before) COUNTED
  %r, %b = READ(%c, %a) WAS
  %new = \"graph.add\"(%old, %r) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  \"graph.yield\"(%go, %new, %b) : (tensor<i1>, tensor<f32>, !tfrt.chain) -> ()
}) {onnx.opset = 21 : i64} : (tensor<i64>, tensor<i1>, tensor<f32>, !tfrt.chain) -> (tensor<f32>, !tfrt.chain)
%each = \"graph.constant\"() {value = dense<[4.0, 5.0]> : tensor<2xf32>} : () -> tensor<2xf32>
%c2 = \"graph.scan\"(%c1, %each) ({
^bb0(%before: !tfrt.chain, %part: tensor<f32>):
  %a = COUNT(%c, %part, %before) COUNTED
  \"graph.yield\"(%a) : (!tfrt.chain) -> ()
}) {scanned = 1 : i64} : (!tfrt.chain, tensor<2xf32>) -> !tfrt.chain
%y, %c3 = READ(%c, %c2) WAS";
    let text = text("n", "y sum", body);
    check(&text, &[("n", 4.0)], &[12345.0, 136.0], &[]);
    check(&text, &[("n", 0.0)], &[45.0, 0.0], &[]);
}

#[test]
fn a_call_whose_output_is_a_chain_is_over_when_the_effects_are() {
    let body = "\
%c1 = NOTE(%x) NOTED";
    let text = text("x", "c1", body);
    for queue in queues() {
        let (runtime, log) = runtime(queue);
        for model in models(&runtime, &text) {
            let x = Tensor::from_vec(&[], vec![1.0_f32]).unwrap();
            let outputs = model.call(&runtime.context(), [("x", x)]).wait().unwrap();
            assert_eq!(*log.lock().unwrap(), [1.0]);
            log.lock().unwrap().clear();
            let kind = outputs.get("c1").map(|datum| datum.kind().to_string());
            assert_eq!(kind.unwrap(), "optional tensor of any shape");
        }
    }
}

#[test]
fn chains_go_through_conditions_and_bodies() {
    let body = "\
%c, %c0 = COUNTER(%zero) MADE
%limit = \"graph.cast\"(%n) {to = f32} : (tensor<i64>) -> tensor<f32>
%sum, %c1 = \"graph.while\"(%zero, %c0) ({
^bb0(%x: tensor<f32>, %before: !tfrt.chain):
  %0 = NOTE(%x) NOTED
  %go = \"graph.lt\"(%x, %limit) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  \"graph.yield\"(%go) : (tensor<i1>) -> ()
}, {
^bb0(%x: tensor<f32>, %before: !tfrt.chain):
  %next = \"graph.add\"(%x, %one) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %after = COUNT(%c, %next, %before) COUNTED
  %inner = \"graph.while\"(%next) ({
  ^bb0(%y: tensor<f32>):
    %stop = \"graph.constant\"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    \"graph.yield\"(%stop) : (tensor<i1>) -> ()
  }, {
  ^bb0(%y: tensor<f32>):
    \"graph.yield\"(%zero) : (tensor<f32>) -> ()
  }) : (tensor<f32>) -> tensor<f32>
  \"graph.yield\"(%inner, %after) : (tensor<f32>, !tfrt.chain) -> ()
}) : (tensor<f32>, !tfrt.chain) -> (tensor<f32>, !tfrt.chain)
%y, %c2 = READ(%c, %c1) WAS";
    let text = text("n", "y sum", body);
    check(&text, &[("n", 3.0)], &[123.0, 3.0], &[0.0, 1.0, 2.0, 3.0]);
    check(&text, &[("n", 0.0)], &[0.0, 0.0], &[0.0]);
}

/// The effects of a function on a resource happen in the order of the chains, as often as it is called.
#[test]
fn chains_go_through_functions_that_are_called() {
    let body = "\
%c, %c0 = COUNTER(%zero) MADE
%c1 = \"graph.call\"(%c, %one, %c0) {callee = @twice} : (!tally.counter, tensor<f32>, !tfrt.chain) -> !tfrt.chain
\"graph.call\"(%x) {callee = @noted} : (tensor<f32>) -> ()
%unused = \"graph.call\"(%x) {callee = @doubled} : (tensor<f32>) -> tensor<f32>
%y = \"graph.call\"(%x) {callee = @doubled} : (tensor<f32>) -> tensor<f32>
%c2 = \"graph.call\"(%c, %y, %c1) {callee = @twice} : (!tally.counter, tensor<f32>, !tfrt.chain) -> !tfrt.chain
%z, %c3 = READ(%c, %c2) WAS";
    let functions = "
func.func @twice(%c: !tally.counter, %by: tensor<f32>, %before: !tfrt.chain) -> !tfrt.chain {
  %once = COUNT(%c, %by, %before) COUNTED
  %twice = COUNT(%c, %by, %once) COUNTED
  tfrt.return %twice : !tfrt.chain
}
func.func @noted(%x: tensor<f32>) {
  %0 = NOTE(%x) NOTED
  tfrt.return
}
func.func @doubled(%x: tensor<f32>) -> tensor<f32> {
  %two = \"graph.constant\"() {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %y = \"graph.mul\"(%x, %two) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  tfrt.return %y : tensor<f32>
}";
    let text = text("x", "y z", body) + &written_out(functions);
    check(&text, &[("x", 3.0)], &[6.0, 1166.0], &[3.0]);
}

/// A function that goes on until a number is reached; without one it would go on for ever.
#[test]
fn functions_call_themselves_as_deep_as_the_host_allows() {
    let body =
        "%y = \"graph.call\"(%x, %n) {callee = @sum} : (tensor<f32>, tensor<i64>) -> tensor<f32>";
    let functions = "
func.func @sum(%x: tensor<f32>, %n: tensor<i64>) -> tensor<f32> {
  %none = \"graph.constant\"() {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %less = \"graph.constant\"() {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %go = \"graph.ne\"(%n, %none) : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %y = \"graph.if\"(%go) ({
    %rest = \"graph.add\"(%n, %less) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %sum = \"graph.call\"(%x, %rest) {callee = @sum} : (tensor<f32>, tensor<i64>) -> tensor<f32>
    %more = \"graph.add\"(%sum, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    \"graph.yield\"(%more) : (tensor<f32>) -> ()
  }, {
    \"graph.yield\"(%x) : (tensor<f32>) -> ()
  }) : (tensor<i1>) -> tensor<f32>
  tfrt.return %y : tensor<f32>
}";
    let text = text("x n", "y", body) + functions;
    check(&text, &[("x", 3.0), ("n", 20.0)], &[63.0], &[]);
    let limits = tfrt::Limits {
        max_depth: 200,
        ..tfrt::Limits::default()
    };
    let formats = Formats::builtin().with(TEXT);
    let runtime = Runtime::builder().formats(formats).limits(limits).build();
    for model in models(&runtime, &text) {
        let x = Tensor::from_vec(&[], vec![1.0_f32]).unwrap();
        let n = Tensor::from_vec(&[], vec![-1_i64]).unwrap();
        let outputs = model.call(&runtime.context(), [("x", x), ("n", n)]).wait();
        let error = match outputs {
            Ok(outputs) => outputs.tensor("y").unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(
            error.contains("call depth exceeds the limit of 200"),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_counter_is_told() {
    let (runtime, _) = runtime(Arc::new(SingleThreadedWorkQueue::new()));
    for (line, expected) in [
        (
            "count x x",
            "3:7: error: expected a counter, found 'x' [CALC1]",
        ),
        (
            "read n z",
            "3:8: error: expected a value that was made before, found 'z' [CALC1]",
        ),
        (
            "count c",
            "3:1: error: expected 'counter', 'count' or 'read', found 'count c' [CALC1]",
        ),
    ] {
        let text = format!("# tally\ninput x f32[1]\n{line}\n");
        let name = "wrong.tally";
        let input = Input::from_bytes_with(name, text.into(), runtime.formats()).unwrap();
        let error = runtime.load_model(&input).unwrap_err().to_string();
        assert_eq!(error.lines().next().unwrap(), format!("{name}:{expected}"));
    }
}
