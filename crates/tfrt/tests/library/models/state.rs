//! Sessions: models whose outputs are inputs of the next call.

use std::fmt::Write;

use tfrt::model::Datum;
use tfrt::{AnyAsyncValue, AsyncValue, DType, Error, ErrorCode, Limits, Model, Runtime, Tensor};

use super::model;

/// Counts: `next` is `count + 1`, and `twice` two times that.
pub(super) const COUNTER: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?xf32>, %count: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
      attributes {model.input_names = ["x", "count"], model.output_names = ["next", "sum"],
                  model.input_dims = [["N"], ["N"]], model.output_dims = [["N"], ["N"]]} {
    %one = "onnx.Constant"() {value = dense<1.0> : tensor<1xf32>} : () -> tensor<1xf32>
    %next = "onnx.Add"(%count, %one) : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
    %sum = "onnx.Add"(%x, %next) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
    func.return %next, %sum : tensor<?xf32>, tensor<?xf32>
  }
}
"#;

/// Attention of two layers, each with all that it has seen.
pub(super) const DECODER: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?x?x2xf32>, %p0: tensor<?x?x2xf32>, %p1: tensor<?x?x2xf32>)
      -> (tensor<?x?x2xf32>, tensor<?x?x2xf32>, tensor<?x?x2xf32>)
      attributes {model.input_names = ["x", "past.0.kv", "past.1.kv"],
                  model.output_names = ["y", "present.0.kv", "present.1.kv"],
                  model.input_dims = [["B", "S", 2 : i64], ["B", "P", 2 : i64], ["B", "P", 2 : i64]],
                  model.output_dims = [["B", "S", 2 : i64], ["B", "P + S", 2 : i64], ["B", "P + S", 2 : i64]]} {
    %t0 = "onnx.Concat"(%p0, %x) {axis = 1 : i64} : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    %k0 = "onnx.Transpose"(%t0) {perm = [0, 2, 1]} : (tensor<?x?x2xf32>) -> tensor<?x2x?xf32>
    %s0 = "onnx.MatMul"(%x, %k0) : (tensor<?x?x2xf32>, tensor<?x2x?xf32>) -> tensor<?x?x?xf32>
    %w0 = "onnx.Softmax"(%s0) {axis = -1 : i64} : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %y0 = "onnx.MatMul"(%w0, %t0) : (tensor<?x?x?xf32>, tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    %z0 = "onnx.Add"(%x, %x) : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    %t1 = "onnx.Concat"(%p1, %z0) {axis = 1 : i64} : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    %k1 = "onnx.Transpose"(%t1) {perm = [0, 2, 1]} : (tensor<?x?x2xf32>) -> tensor<?x2x?xf32>
    %s1 = "onnx.MatMul"(%y0, %k1) : (tensor<?x?x2xf32>, tensor<?x2x?xf32>) -> tensor<?x?x?xf32>
    %w1 = "onnx.Softmax"(%s1) {axis = -1 : i64} : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %y1 = "onnx.MatMul"(%w1, %t1) : (tensor<?x?x?xf32>, tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    func.return %y1, %t0, %t1 : tensor<?x?x2xf32>, tensor<?x?x2xf32>, tensor<?x?x2xf32>
  }
}
"#;

fn runtime() -> Runtime {
    Runtime::builder().build()
}

/// Returns so many numbers that look like any.
fn numbers(n: usize) -> Vec<f32> {
    let wave = |index: usize| (index as f32 * 1.7 + 0.3).sin();
    (0..n).map(wave).collect()
}

fn tensor(extents: &[usize], elements: &[f32]) -> Tensor {
    Tensor::from_slice(extents, elements).unwrap()
}

fn floats(datum: &Datum) -> Vec<f32> {
    Tensor::try_from(datum.clone()).unwrap().to_vec().unwrap()
}

fn is_near(found: &[f32], expected: &[f32]) -> bool {
    let near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 1e-6;
    found.len() == expected.len() && found.iter().zip(expected).all(near)
}

/// Returns a recurrent network of the sizes 3 and 2 as text, with its state as inputs and outputs.
pub(super) fn recurrent() -> String {
    let dense = |extents: [usize; 3]| {
        let [_, rows, columns] = extents;
        let all = numbers(rows * columns);
        let mut text = String::from("dense<[[");
        for (index, row) in all.chunks(columns).enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(text, "{comma}{row:?}").unwrap();
        }
        write!(text, "]]> : tensor<1x{rows}x{columns}xf32>").unwrap();
        text
    };
    let (w, r) = (dense([1, 8, 3]), dense([1, 8, 2]));
    format!(
        r#"module attributes {{onnx.opset = 17 : i64}} {{
  func.func @main(%x: tensor<?x?x3xf32>, %h: tensor<1x?x2xf32>, %c: tensor<1x?x2xf32>)
      -> (tensor<?x1x?x2xf32>, tensor<1x?x2xf32>, tensor<1x?x2xf32>)
      attributes {{model.input_names = ["x", "h", "c"], model.output_names = ["y", "hn", "cn"],
                  model.input_dims = [["T", "B", 3 : i64], [1 : i64, "B", 2 : i64], [1 : i64, "B", 2 : i64]],
                  model.output_dims = [["T", 1 : i64, "B", 2 : i64], [1 : i64, "B", 2 : i64],
                                       [1 : i64, "B", 2 : i64]]}} {{
    %w = "onnx.Constant"() {{value = {w}}} : () -> tensor<1x8x3xf32>
    %r = "onnx.Constant"() {{value = {r}}} : () -> tensor<1x8x2xf32>
    %none = "graph.none"() : () -> none
    %y, %hn, %cn = "onnx.LSTM"(%x, %w, %r, %none, %none, %h, %c) {{hidden_size = 2 : i64}}
        : (tensor<?x?x3xf32>, tensor<1x8x3xf32>, tensor<1x8x2xf32>, none, none, tensor<1x?x2xf32>,
           tensor<1x?x2xf32>) -> (tensor<?x1x?x2xf32>, tensor<1x?x2xf32>, tensor<1x?x2xf32>)
    func.return %y, %hn, %cn : tensor<?x1x?x2xf32>, tensor<1x?x2xf32>, tensor<1x?x2xf32>
  }}
}}
"#
    )
}

fn said(error: &Error) -> (ErrorCode, &str, Option<&str>) {
    let note = error.notes().first().map(String::as_str);
    (error.code(), error.message(), note)
}

#[test]
fn counter_counts_steps() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, COUNTER), runtime.context());
    let mut session = model.session().state("next", "count").unwrap();
    for step in 1..=5_u8 {
        // In order and by name, of a batch of two: that of the state follows.
        let x = tensor(&[2], &[0.5, 10.0]);
        let call = match step % 2 {
            0 => session.step(&context, (x,)),
            _ => session.spawn(&context, [("x", x)]),
        };
        let outputs = call.wait().unwrap();
        let step = f32::from(step);
        assert_eq!(
            floats(outputs.get("sum").unwrap()),
            [step + 0.5, step + 10.0]
        );
        assert_eq!(outputs.iter().count(), 1);
    }
    let states = session.read(&context).wait().unwrap();
    assert_eq!(floats(states.get("count").unwrap()), [5.0, 5.0]);
    let names = session
        .states()
        .map(|(output, input)| (&output.name[..], &input.name[..]));
    assert_eq!(names.collect::<Vec<_>>(), [("next", "count")]);
}

#[test]
fn state_is_given_replaced_reset_and_forked() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, COUNTER), runtime.context());
    let session = model.session().state("next", "count").unwrap();
    let begin = tensor(&[1], &[100.0]);
    let mut session = session.initial("count", &begin).unwrap();
    let x = tensor(&[1], &[0.0]);
    let sum = |session: &mut tfrt::model::Session| {
        let outputs = session.step(&context, [("x", &x)]).wait().unwrap();
        floats(outputs.get("sum").unwrap())[0]
    };
    assert_eq!((sum(&mut session), sum(&mut session)), (101.0, 102.0));
    let mut fork = session.clone();
    session.reset();
    assert_eq!(sum(&mut session), 101.0);
    session.replace("count", tensor(&[1], &[7.0])).unwrap();
    assert_eq!(sum(&mut session), 8.0);
    assert_eq!((sum(&mut fork), sum(&mut fork)), (103.0, 104.0));
    // What it began with is the caller's, too.
    assert_eq!(begin.to_vec::<f32>().unwrap(), [100.0]);
}

#[test]
fn steps_are_made_before_the_first_is_over_and_errors_flow_through_them() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, COUNTER), runtime.context());
    let mut session = model.session().state("next", "count").unwrap();
    let (promise, late) = AsyncValue::<tfrt::tensor::Tensor>::pending();
    session.replace("count", late).unwrap();
    let x = tensor(&[1], &[0.0]);
    let calls: Vec<_> = (0..1000)
        .map(|_| session.step(&context, [("x", &x)]))
        .collect();
    assert!(!calls[0].results()[0].is_settled());
    promise.resolve(tensor(&[1], &[1000.0]).into());
    for (index, call) in calls.into_iter().enumerate() {
        let outputs = call.wait().unwrap();
        assert_eq!(floats(outputs.get("sum").unwrap()), [1001.0 + index as f32]);
    }
    let broken = AnyAsyncValue::from_error(Error::unknown("the line is dead"));
    session.replace("count", broken).unwrap();
    for _ in 0..2 {
        let error = session.step(&context, [("x", &x)]).wait().unwrap_err();
        assert_eq!(error.message(), "the line is dead");
    }
    let error = session.read(&context).wait().unwrap_err();
    assert_eq!(error.message(), "the line is dead");
    session.reset();
    let outputs = session.step(&context, [("x", &x)]).wait().unwrap();
    assert_eq!(floats(outputs.get("sum").unwrap()), [1.0]);
}

#[test]
fn input_that_does_not_fit_leaves_the_state_as_it_was() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, COUNTER), runtime.context());
    let mut session = model.session().state("next", "count").unwrap();
    let x = tensor(&[1], &[0.0]);
    session.step(&context, [("x", &x)]).wait().unwrap();
    let wrong = tensor(&[3], &[0.0; 3]);
    let error = session.step(&context, [("x", &wrong)]).wait().unwrap_err();
    assert_eq!(
        error.message(),
        "input 'count' was expected to be f32 [N], found f32 [1]: N is 1 here, but 3 in input 'x'"
    );
    let error = session.step(&context, ()).wait().unwrap_err();
    assert_eq!(
        error.message(),
        "input 'x' is missing: the model takes f32 [N]"
    );
    let error = session.step(&context, [("count", &x)]).wait().unwrap_err();
    assert_eq!(
        error.message(),
        "input 'count' is state, which the session gives itself"
    );
    let error = session.step(&context, (&x, &x)).wait().unwrap_err();
    assert_eq!(
        error.message(),
        "more inputs are given than the 1 that the model takes"
    );
    let outputs = session.step(&context, [("x", &x)]).wait().unwrap();
    assert_eq!(floats(outputs.get("sum").unwrap()), [2.0]);
}

#[test]
fn state_is_moved_and_not_copied() {
    let runtime = runtime();
    let text = r#"func.func @main(%x: tensor<?xf32>, %state: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
        attributes {model.input_names = ["x", "state"], model.output_names = ["y", "same"]} {
      %y = "onnx.Add"(%x, %state) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
      func.return %y, %state : tensor<?xf32>, tensor<?xf32>
    }"#;
    let (model, context) = (model(&runtime, text), runtime.context());
    let begin = tensor(&[1000], &[1.0; 1000]);
    let session = model.session().state("same", "state").unwrap();
    let mut session = session.initial("state", &begin).unwrap();
    for _ in 0..5 {
        session.step(&context, [("x", &begin)]).wait().unwrap();
    }
    let states = session.read(&context).wait().unwrap();
    let address = |tensor: &Tensor| tensor.view::<f32>().unwrap().as_ptr();
    assert_eq!(address(&states.tensor("state").unwrap()), address(&begin));
}

#[test]
fn memory_does_not_grow_with_steps() {
    let n = 1 << 18;
    let state_bytes = n * 4;
    let limits = Limits {
        max_memory: Some(6 * state_bytes),
        ..Limits::default()
    };
    let runtime = Runtime::builder().limits(limits).build();
    let (model, context) = (model(&runtime, COUNTER), runtime.context());
    let mut session = model.session().state("next", "count").unwrap();
    let x = Tensor::zeros(DType::F32, &[n]).unwrap();
    for step in 1..=100_u8 {
        let outputs = session.step(&context, [("x", &x)]).wait().unwrap();
        assert_eq!(floats(outputs.get("sum").unwrap())[n - 1], f32::from(step));
    }
}

#[test]
fn recurrent_network_gives_by_steps_what_it_gives_for_the_sequence() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, &recurrent()), runtime.context());
    let (n_steps, n_batch) = (7, 2);
    let all = numbers(n_steps * n_batch * 3);
    let zeros = || Tensor::zeros(DType::F32, &[1, n_batch, 2]).unwrap();
    let x = tensor(&[n_steps, n_batch, 3], &all);
    let whole = model.call(&context, (x, zeros(), zeros())).wait().unwrap();
    let session = model.session().state("hn", "h").unwrap();
    let mut session = session.state("cn", "c").unwrap();
    let mut found = Vec::new();
    for slice in all.chunks(n_batch * 3) {
        let x = tensor(&[1, n_batch, 3], slice);
        let outputs = session.step(&context, [("x", x)]).wait().unwrap();
        found.extend(floats(outputs.get("y").unwrap()));
    }
    assert!(is_near(&found, &floats(whole.get("y").unwrap())));
    let states = session.read(&context).wait().unwrap();
    for (state, output) in [("h", "hn"), ("c", "cn")] {
        let found = floats(states.get(state).unwrap());
        assert!(
            is_near(&found, &floats(whole.get(output).unwrap())),
            "{state}"
        );
    }
}

#[test]
fn decoder_with_a_growing_cache_gives_what_it_gives_for_all_it_has_seen() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, DECODER), runtime.context());
    let mut session = decoder(&model);
    let all = numbers(64 * 2);
    for step in 1..=64 {
        let x = tensor(&[1, 1, 2], &all[step * 2 - 2..step * 2]);
        let outputs = session.step(&context, [("x", x)]).wait().unwrap();
        let found = floats(outputs.get("y").unwrap());
        let none = || Tensor::zeros(DType::F32, &[1, 0, 2]).unwrap();
        let seen = tensor(&[1, step, 2], &all[..step * 2]);
        let whole = model.call(&context, (seen, none(), none())).wait().unwrap();
        let whole = floats(whole.get("y").unwrap());
        assert!(
            is_near(&found, &whole[step * 2 - 2..]),
            "step {step}: {found:?}"
        );
    }
    let states = session.read(&context).wait().unwrap();
    let shape = states.tensor("past.1.kv").unwrap().shape().to_string();
    assert_eq!(shape, "[1, 64, 2]");
    // All at once after a few, and several at a time.
    session.reset();
    let mut found = Vec::new();
    for range in [0..3, 3..4, 4..64] {
        let x = tensor(&[1, range.len(), 2], &all[range.start * 2..range.end * 2]);
        let outputs = session.step(&context, [("x", x)]).wait().unwrap();
        found.extend(floats(outputs.get("y").unwrap()));
    }
    assert_eq!(found.len(), all.len());
}

fn decoder(model: &Model) -> tfrt::model::Session {
    let session = model.session();
    session.state("present.{i}.kv", "past.{i}.kv").unwrap()
}

#[test]
fn sizes_in_the_beginning_are_those_that_somebody_says() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, DECODER), runtime.context());
    let shape = |mut session: tfrt::model::Session, n_batch: usize| {
        let x = tensor(&[n_batch, 1, 2], &numbers(n_batch * 2));
        session.step(&context, [("x", x)]).wait().unwrap();
        let states = session.read(&context).wait().unwrap();
        states.tensor("past.0.kv").unwrap().shape().to_string()
    };
    assert_eq!(shape(decoder(&model), 3), "[3, 1, 2]");
    assert_eq!(shape(decoder(&model).dim("P", 4).unwrap(), 1), "[1, 5, 2]");
    let error = decoder(&model).dim("Past", 4).unwrap_err();
    assert_eq!(
        said(&error),
        (ErrorCode::NotFound, "no state has a dimension 'Past'", None)
    );
    // One state that is given says how much of the others there is.
    let given = decoder(&model)
        .initial("past.1.kv", tensor(&[1, 2, 2], &[0.0; 4]))
        .unwrap();
    assert_eq!(shape(given, 1), "[1, 3, 2]");
}

/// The cache of `GroupQueryAttention`, whose last dimension has only a name, as the builder of ONNX Runtime GenAI states it.
const GROUPED: &str = r#"module attributes {onnx.opset = 21 : i64, onnx.opset.com.microsoft = 1 : i64} {
  func.func @main(%x: tensor<?x?x32xf32>, %lengths: tensor<?xi32>, %total: tensor<1xi32>,
                  %k: tensor<?x1x?x?xf32>, %v: tensor<?x1x?x?xf32>)
      -> (tensor<?x?x16xf32>, tensor<?x1x?x?xf32>, tensor<?x1x?x?xf32>)
      attributes {model.input_names = ["x", "lengths", "total", "past.key", "past.value"],
                  model.output_names = ["y", "present.key", "present.value"],
                  model.input_dims = [["B", "S", 32 : i64], ["B"], [1 : i64], ["B", 1 : i64, "P", "D"], ["B", 1 : i64, "P", "D"]],
                  model.output_dims = [["B", "S", 16 : i64], ["B", 1 : i64, "T", "D"], ["B", 1 : i64, "T", "D"]]} {
    %none = "graph.none"() : () -> none
    %y, %nk, %nv = "onnx.microsoft.GroupQueryAttention"(%x, %none, %none, %k, %v, %lengths, %total)
        {kv_num_heads = 1 : i64, num_heads = 2 : i64}
        : (tensor<?x?x32xf32>, none, none, tensor<?x1x?x?xf32>, tensor<?x1x?x?xf32>, tensor<?xi32>, tensor<1xi32>)
        -> (tensor<?x?x16xf32>, tensor<?x1x?x?xf32>, tensor<?x1x?x?xf32>)
    func.return %y, %nk, %nv : tensor<?x?x16xf32>, tensor<?x1x?x?xf32>, tensor<?x1x?x?xf32>
  }
}
"#;

#[test]
fn sizes_in_the_beginning_follow_from_what_is_written_into_a_cache() {
    let runtime = runtime();
    let (model, context) = (model(&runtime, GROUPED), runtime.context());
    for (room, wanted) in [(None, "[1, 1, 2, 8]"), (Some(5), "[1, 1, 5, 8]")] {
        let session = model.session().state("present.key", "past.key").unwrap();
        let mut session = session.state("present.value", "past.value").unwrap();
        if let Some(room) = room {
            session = session.dim("P", room).unwrap();
        }
        for n_before in 0..2 {
            let number = |n: i32| Tensor::from_slice(&[1], &[n]).unwrap();
            let inputs = [
                ("x", tensor(&[1, 1, 32], &numbers(32))),
                ("lengths", number(n_before)),
                ("total", number(n_before + 1)),
            ];
            session.step(&context, inputs).wait().unwrap();
        }
        let states = session.read(&context).wait().unwrap();
        let shape = states.tensor("past.key").unwrap().shape().to_string();
        assert_eq!(shape, wanted);
    }
}

#[test]
fn sizes_that_were_guessed_wrong_are_told() {
    let runtime = runtime();
    let text = DECODER
        .replace("\"P + S\"", "\"\"")
        .replace("\"P\"", "\"\"");
    let (model, context) = (model(&runtime, &text), runtime.context());
    let mut session = decoder(&model);
    let x = || tensor(&[1, 1, 2], &[1.0, 2.0]);
    let first = session.step(&context, [("x", x())]).wait();
    drop(first);
    for _ in 0..2 {
        let error = session.step(&context, [("x", x())]).wait().unwrap_err();
        assert_eq!(
            said(&error),
            (
                ErrorCode::InvalidArgument,
                "the state of input 'past.1.kv' began with zeros of shape [1, 1, 2], but output 'present.1.kv' is \
                 [1, 2, 2]: nothing says how large dimension 1 is in the beginning",
                Some("give a value to begin with, or its size")
            )
        );
    }
    let none = || Tensor::zeros(DType::F32, &[1, 0, 2]).unwrap();
    let session = decoder(&model).initial("past.0.kv", none()).unwrap();
    let mut session = session.initial("past.1.kv", none()).unwrap();
    for _ in 0..3 {
        session.step(&context, [("x", x())]).wait().unwrap();
    }
}

#[test]
fn wrong_uses_are_told_with_both_names() {
    let runtime = runtime();
    let decoder = model(&runtime, DECODER);
    let counter = model(&runtime, COUNTER);
    let refused = |model: &Model, output: &str, input: &str| {
        let error = model.session().state(output, input).unwrap_err();
        let (code, message, note) = said(&error);
        (code, message.to_owned(), note.map(str::to_owned))
    };
    let cases = [
        (
            &counter,
            "nxt",
            "count",
            "the model has no output 'nxt': it gives next, sum",
        ),
        (
            &counter,
            "next",
            "conut",
            "the model has no input 'conut': it takes x, count",
        ),
        (
            &decoder,
            "present.{i}.kw",
            "past.{i}.kv",
            "the model has no output 'present.{i}.kw': it gives y, present.0.kv, present.1.kv",
        ),
        (
            &decoder,
            "present.{i}.kv",
            "past.{i}.kw",
            "output 'present.0.kv' is without its state: the model has no input 'past.0.kw'",
        ),
    ];
    for (model, output, input, message) in cases {
        let (code, found, _) = refused(model, output, input);
        assert_eq!((code, found.as_str()), (ErrorCode::NotFound, message));
    }
    let (.., note) = refused(&decoder, "present.{i}.kw", "past.{i}.kv");
    assert_eq!(note.unwrap(), "there is an output 'present.{i}.kv'");
    let (.., note) = refused(&counter, "next", "conut");
    assert_eq!(note.unwrap(), "there is an input 'count'");
    let (code, message, _) = refused(&decoder, "present.{i}.kv", "past.0.kv");
    assert_eq!(code, ErrorCode::InvalidArgument);
    assert_eq!(
        message,
        "expected {i} once in both names of a state or in none, found it in 'present.{i}.kv' and not in 'past.0.kv'"
    );
    let session = decoder
        .session()
        .state("present.{i}.kv", "past.{i}.kv")
        .unwrap();
    let error = session.clone().state("present.1.kv", "x").unwrap_err();
    assert_eq!(
        error.message(),
        "output 'present.1.kv' can't be the state of input 'x': output 'present.1.kv' is the state of input \
         'past.1.kv' already"
    );
    let error = session.clone().state("y", "past.0.kv").unwrap_err();
    assert_eq!(
        error.message(),
        "output 'y' can't be the state of input 'past.0.kv': output 'present.0.kv' is the state of input \
         'past.0.kv' already"
    );
    let error = session
        .clone()
        .initial("present.0.kv", vec![0.0_f32])
        .unwrap_err();
    assert_eq!(
        said(&error),
        (
            ErrorCode::NotFound,
            "the session has no state 'present.0.kv': it keeps past.0.kv, past.1.kv",
            Some("output 'present.0.kv' is the state of input 'past.0.kv', whose name it goes by")
        )
    );
    let error = session
        .clone()
        .initial("past.0.kv", vec![0.0_f32])
        .unwrap_err();
    assert_eq!(
        error.message(),
        "input 'past.0.kv' was expected to be f32 [B, P, 2], found f32 [1]"
    );
    let context = runtime.context();
    let error = session.read(&context).wait().unwrap_err();
    assert_eq!(
        error.message(),
        "the zeros of state 'past.1.kv' are made by the first step"
    );
    let mut session = session;
    let outputs = session.step(&context, [("x", tensor(&[1, 1, 2], &[0.0; 2]))]);
    let outputs = outputs.wait().unwrap();
    let error = outputs.get("present.0.kv").unwrap_err();
    assert_eq!(
        error.message(),
        "output 'present.0.kv' is kept as the state of input 'past.0.kv': a step gives y"
    );
}

#[test]
fn types_that_differ_are_told() {
    let runtime = runtime();
    let text = |output: &str| {
        format!(
            r#"func.func @main(%x: tensor<2xf32>, %h: tensor<2xf32>) -> {output}
    attributes {{model.input_names = ["x", "h"], model.output_names = ["hn"]}} {{
  %y = "onnx.Cast"(%x) {{to = 1 : i64}} : (tensor<2xf32>) -> {output}
  tfrt.return %y : {output}
}}"#
        )
    };
    let three = r#"func.func @main(%x: tensor<3xf32>, %h: tensor<2xf32>) -> tensor<3xf32>
    attributes {model.input_names = ["x", "h"], model.output_names = ["hn"]} {
  %y = "onnx.Relu"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  tfrt.return %y : tensor<3xf32>
}"#;
    let doubles = text("tensor<2xf64>").replace("to = 1", "to = 11");
    for (text, gives) in [(doubles.as_str(), "f64 [2]"), (three, "f32 [3]")] {
        let error = model(&runtime, text)
            .session()
            .state("hn", "h")
            .unwrap_err();
        let expected = format!(
            "output 'hn' can't be the state of input 'h': the output is {gives}, the input takes f32 [2]"
        );
        assert_eq!(error.message(), expected);
    }
}
