//! Sessions whose states have room: caches that are appended to in place.

use std::sync::Arc;

use tfrt::host::memory::ProfiledAllocator;
use tfrt::model::{Datum, ModelCall, Session};
use tfrt::{
    AnyAsyncValue, AsyncValue, Context, DType, ErrorCode, F16, HostAllocator, Model, Runtime,
    Tensor,
};

use super::model;
use super::state::DECODER;

/// Attention over all keys and values, of two heads for each of two that have them.
const HEADS: &str = r#"module attributes {onnx.opset = 23 : i64, onnx.opset.com.microsoft = 1 : i64} {
  func.func @main(%q: tensor<?x4x?x8xf32>, %k: tensor<?x2x?x8xf32>, %v: tensor<?x2x?x8xf32>, ARGUMENTS
      %pk: tensor<?x2x?x8xf32>, %pv: tensor<?x2x?x8xf32>)
      -> (tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
      attributes {model.input_names = ["q", "k", "v", NAMES "past.k", "past.v"],
                  model.output_names = ["y", "present.k", "present.v"],
                  model.input_dims = [["B", 4 : i64, "S", 8 : i64], ["B", 2 : i64, "S", 8 : i64],
                                      ["B", 2 : i64, "S", 8 : i64], DIMS
                                      ["B", 2 : i64, "PAST", 8 : i64], ["B", 2 : i64, "PAST", 8 : i64]],
                  model.output_dims = [["B", 4 : i64, "S", 8 : i64],
                                       ["B", 2 : i64, "PRESENT", 8 : i64], ["B", 2 : i64, "PRESENT", 8 : i64]]} {
    BODY
    func.return %y, %nk, %nv : tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>
  }
}
"#;

/// `Concat`, and what exporters write out for attention with fewer heads of keys.
const WRITTEN_OUT: &str = r#"
    %nk = "onnx.Concat"(%pk, %k) {axis = -2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
    %nv = "onnx.Concat"(%pv, %v) {axis = 2 : i64} : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>
    %two = "onnx.Constant"() {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
    %twice = "onnx.Constant"() {value = dense<[1, 1, 2, 1, 1]> : tensor<5xi64>} : () -> tensor<5xi64>
    %apart = "onnx.Constant"() {value = dense<[0, 4, -1, 8]> : tensor<4xi64>} : () -> tensor<4xi64>
    %scale = "onnx.Constant"() {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
    %k1 = "onnx.Unsqueeze"(%nk, %two) : (tensor<?x2x?x8xf32>, tensor<1xi64>) -> tensor<?x2x1x?x8xf32>
    %k2 = "onnx.Expand"(%k1, %twice) : (tensor<?x2x1x?x8xf32>, tensor<5xi64>) -> tensor<?x2x2x?x8xf32>
    %k3 = "onnx.Reshape"(%k2, %apart) : (tensor<?x2x2x?x8xf32>, tensor<4xi64>) -> tensor<?x4x?x8xf32>
    %v1 = "onnx.Unsqueeze"(%nv, %two) : (tensor<?x2x?x8xf32>, tensor<1xi64>) -> tensor<?x2x1x?x8xf32>
    %v2 = "onnx.Expand"(%v1, %twice) : (tensor<?x2x1x?x8xf32>, tensor<5xi64>) -> tensor<?x2x2x?x8xf32>
    %v3 = "onnx.Reshape"(%v2, %apart) : (tensor<?x2x2x?x8xf32>, tensor<4xi64>) -> tensor<?x4x?x8xf32>
    %k4 = "onnx.Transpose"(%k3) {perm = [0, 1, 3, 2]} : (tensor<?x4x?x8xf32>) -> tensor<?x4x8x?xf32>
    %s0 = "onnx.MatMul"(%q, %k4) : (tensor<?x4x?x8xf32>, tensor<?x4x8x?xf32>) -> tensor<?x4x?x?xf32>
    %s1 = "onnx.Mul"(%s0, %scale) : (tensor<?x4x?x?xf32>, tensor<f32>) -> tensor<?x4x?x?xf32>
    %s2 = "onnx.Softmax"(%s1) {axis = -1 : i64} : (tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
    %y = "onnx.MatMul"(%s2, %v3) : (tensor<?x4x?x?xf32>, tensor<?x4x?x8xf32>) -> tensor<?x4x?x8xf32>"#;

const ATTENTION: &str = r#"
    %none = "graph.none"() : () -> none
    %y, %nk, %nv = "onnx.Attention"(%q, %k, %v, %none, %pk, %pv) {scale = 0.25 : f32}
        : (tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, none, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
        -> (tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)"#;

/// `GroupQueryAttention`, of whose input heads are made one after the other.
const GROUPS: &str = r#"
    %flat = "onnx.Constant"() {value = dense<[0, 0, -1]> : tensor<3xi64>} : () -> tensor<3xi64>
    %apart = "onnx.Constant"() {value = dense<[0, 0, 4, 8]> : tensor<4xi64>} : () -> tensor<4xi64>
    %q0 = "onnx.Transpose"(%q) {perm = [0, 2, 1, 3]} : (tensor<?x4x?x8xf32>) -> tensor<?x?x4x8xf32>
    %k0 = "onnx.Transpose"(%k) {perm = [0, 2, 1, 3]} : (tensor<?x2x?x8xf32>) -> tensor<?x?x2x8xf32>
    %v0 = "onnx.Transpose"(%v) {perm = [0, 2, 1, 3]} : (tensor<?x2x?x8xf32>) -> tensor<?x?x2x8xf32>
    %q1 = "onnx.Reshape"(%q0, %flat) : (tensor<?x?x4x8xf32>, tensor<3xi64>) -> tensor<?x?x32xf32>
    %k1 = "onnx.Reshape"(%k0, %flat) : (tensor<?x?x2x8xf32>, tensor<3xi64>) -> tensor<?x?x16xf32>
    %v1 = "onnx.Reshape"(%v0, %flat) : (tensor<?x?x2x8xf32>, tensor<3xi64>) -> tensor<?x?x16xf32>
    %y0, %nk, %nv = "onnx.microsoft.GroupQueryAttention"(%q1, %k1, %v1, %pk, %pv, %last, %total)
        {kv_num_heads = 2 : i64, num_heads = 4 : i64, scale = 0.25 : f32}
        : (tensor<?x?x32xf32>, tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>,
           tensor<?xi32>, tensor<i32>) -> (tensor<?x?x32xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)
    %y1 = "onnx.Reshape"(%y0, %apart) : (tensor<?x?x32xf32>, tensor<4xi64>) -> tensor<?x?x4x8xf32>
    %y = "onnx.Transpose"(%y1) {perm = [0, 2, 1, 3]} : (tensor<?x?x4x8xf32>) -> tensor<?x4x?x8xf32>"#;

/// `TensorScatter`, and attention to as many keys as there are.
const SCATTERED: &str = r#"
    %nk = "onnx.TensorScatter"(%pk, %k, %place) : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?xi64>) -> tensor<?x2x?x8xf32>
    %nv = "onnx.TensorScatter"(%pv, %v, %place) : (tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?xi64>) -> tensor<?x2x?x8xf32>
    %none = "graph.none"() : () -> none
    %y = "onnx.Attention"(%q, %nk, %nv, %none, %none, %none, %count) {scale = 0.25 : f32}
        : (tensor<?x4x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, none, none, none, tensor<?xi64>) -> tensor<?x4x?x8xf32>"#;

/// Returns a model of a body, of a cache whose length has these names before and after a step.
fn heads(body: &str, [past, present]: [&str; 2]) -> String {
    let [arguments, names, dims] = match body {
        GROUPS => [
            "%last: tensor<?xi32>, %total: tensor<i32>,",
            "\"last\", \"total\",",
            "[\"B\"], [],",
        ],
        SCATTERED => [
            "%place: tensor<?xi64>, %count: tensor<?xi64>,",
            "\"place\", \"count\",",
            "[\"B\"], [\"B\"],",
        ],
        _ => [""; 3],
    };
    let text = HEADS
        .replace("ARGUMENTS", arguments)
        .replace("NAMES", names);
    let text = text.replace("DIMS", dims).replace("BODY", body);
    text.replace("PAST", past).replace("PRESENT", present)
}

const GROWING: [&str; 2] = ["P", "P + S"];
const FULL: [&str; 2] = ["M", "M"];

fn session(model: &Model) -> Session {
    let session = model.session();
    session
        .state("present.{i}", "past.{i}")
        .unwrap_or_else(|_| {
            let session = model.session().state("present.k", "past.k").unwrap();
            session.state("present.v", "past.v").unwrap()
        })
}

/// Returns tokens for steps: queries, keys and values of a batch of two.
fn token(step: usize, n: usize) -> [Tensor; 3] {
    [4, 2, 2].map(|heads| {
        let wave = |index: usize| ((step * 131 + index) as f32 * 1.7 + heads as f32).sin();
        let list: Vec<f32> = (0..2 * heads * n * 8).map(wave).collect();
        Tensor::from_slice(&[2, heads, n, 8], &list).unwrap()
    })
}

/// Makes a step that adds `n` tokens to `n_past`.
fn step(session: &mut Session, context: &Context, n_past: usize, n: usize) -> ModelCall {
    step_of(session, context, token(n_past, n), n_past, n)
}

/// Makes a step that adds these `n` tokens to `n_past`.
fn step_of(
    session: &mut Session,
    context: &Context,
    [q, k, v]: [Tensor; 3],
    n_past: usize,
    n: usize,
) -> ModelCall {
    let total = n_past + n;
    let mut inputs: Vec<(&str, Tensor)> = vec![("q", q), ("k", k), ("v", v)];
    let names: Vec<&str> = session
        .model()
        .inputs()
        .iter()
        .map(|input| &*input.name)
        .collect();
    if names.contains(&"total") {
        let total = i32::try_from(total).unwrap();
        inputs.push(("last", Tensor::from_slice(&[2], &[total - 1; 2]).unwrap()));
        inputs.push(("total", Tensor::from_slice(&[], &[total]).unwrap()));
    }
    if names.contains(&"place") {
        let [place, total] = [n_past, total].map(|n| i64::try_from(n).unwrap());
        inputs.push(("place", Tensor::from_slice(&[2], &[place; 2]).unwrap()));
        inputs.push(("count", Tensor::from_slice(&[2], &[total; 2]).unwrap()));
    }
    session.step(context, inputs)
}

fn floats(datum: &Datum) -> Vec<f32> {
    Tensor::try_from(datum.clone()).unwrap().to_vec().unwrap()
}

fn result(call: ModelCall) -> Vec<f32> {
    floats(call.wait().unwrap().get("y").unwrap())
}

fn is_near(found: &[f32], expected: &[f32]) -> bool {
    let near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 1e-5;
    found.len() == expected.len() && found.iter().zip(expected).all(near)
}

/// Returns what the steps of these lengths give without room.
fn expected(lengths: &[usize]) -> Vec<Vec<f32>> {
    let runtime = Runtime::new();
    let model = model(&runtime, &heads(ATTENTION, GROWING));
    let (mut session, mut n_past) = (session(&model), 0);
    let steps = lengths.iter().map(|n| {
        let found = result(step(&mut session, &runtime.context(), n_past, *n));
        n_past += n;
        found
    });
    steps.collect()
}

#[test]
fn caches_with_room_give_what_those_without_give() {
    let runtime = Runtime::new();
    let mut lengths = vec![1; 40];
    lengths.push(3);
    lengths.push(1);
    for (body, names) in [
        (ATTENTION, GROWING),
        (WRITTEN_OUT, GROWING),
        (WRITTEN_OUT, ["", ""]),
        (GROUPS, GROWING),
        (GROUPS, FULL),
        (SCATTERED, FULL),
    ] {
        // In a linear `TensorScatter` a query of several sees the keys behind it, too, as `Attention` here does.
        let is_causal = body == GROUPS;
        let lengths = if is_causal { &lengths[..40] } else { &lengths };
        let expected = expected(lengths);
        let model = model(&runtime, &heads(body, names));
        let mut session = session(&model).max_length(50).unwrap();
        let mut n_past = 0;
        for (n, expected) in lengths.iter().zip(&expected) {
            let found = result(step(&mut session, &runtime.context(), n_past, *n));
            n_past += n;
            assert!(is_near(&found, expected), "{names:?} {n_past}: {body}");
        }
        let states = session.read(&runtime.context()).wait().unwrap();
        let extent = if names == FULL { 50 } else { n_past };
        let found = states.tensor("past.v").unwrap().shape().to_string();
        assert_eq!(found, format!("[2, 2, {extent}, 8]"));
    }
}

#[test]
fn step_at_a_long_past_takes_no_more_memory_than_one_at_a_short_past() {
    for (body, names) in [
        (ATTENTION, GROWING),
        (WRITTEN_OUT, GROWING),
        (GROUPS, GROWING),
        (GROUPS, FULL),
        (SCATTERED, FULL),
    ] {
        let allocator: Arc<dyn HostAllocator> =
            Arc::new(tfrt::asynchronous::SystemAllocator::new());
        let profiled = Arc::new(ProfiledAllocator::new(allocator));
        let runtime = Runtime::builder()
            .allocator(profiled.clone())
            .threads(1)
            .build();
        let model = model(&runtime, &heads(body, names));
        let mut session = session(&model).max_length(600).unwrap();
        let room_bytes = 2 * 2 * 600 * 8 * 4;
        let mut n_past = 0;
        let mut grow = |session: &mut Session, n: usize| {
            result(step(session, &runtime.context(), n_past, n));
            n_past += n;
        };
        grow(&mut session, 20);
        grow(&mut session, 1);
        let before = profiled.profile().current_bytes;
        assert!(before > 2 * room_bytes, "the room is taken at once");
        grow(&mut session, 540);
        // The most that was alive is that of the long step: what one more takes is held against a limit.
        for _ in 0..3 {
            grow(&mut session, 1);
            let now = profiled.profile().current_bytes;
            assert!(now < before + 4096, "{before} {now} {names:?}: {body}");
        }
        let few = usize::try_from(room_bytes / 2).unwrap();
        let context = runtime.context_builder().max_memory(few).build();
        result(step(&mut session, &context, 564, 1));
    }
}

#[test]
fn halves_are_kept_as_they_are() {
    let runtime = Runtime::new();
    for body in [ATTENTION, WRITTEN_OUT] {
        let text = heads(body, GROWING).replace("xf32>", "xf16>");
        let text = text.replace("tensor<f32>", "tensor<f16>");
        let (model, context) = (model(&runtime, &text), runtime.context());
        let (mut plain, mut roomy) = (session(&model), session(&model).max_length(20).unwrap());
        for n_past in 0..20 {
            let y = |session: &mut Session| {
                let tokens = [4, 2, 2].map(|heads| {
                    // Numbers from 0.125 to 0.5.
                    let bits =
                        |index: usize| 0x3000 + (index * 7919 + n_past * 131 + heads) % 0x800;
                    let half = |index| F16(u16::try_from(bits(index)).unwrap());
                    let list: Vec<F16> = (0..2 * heads * 8).map(half).collect();
                    Tensor::from_slice(&[2, heads, 1, 8], &list).unwrap()
                });
                let outputs = step_of(session, &context, tokens, n_past, 1)
                    .wait()
                    .unwrap();
                let bits = outputs.tensor("y").unwrap().to_vec::<F16>().unwrap();
                bits.iter().map(|x| x.0).collect::<Vec<u16>>()
            };
            assert_eq!(y(&mut roomy), y(&mut plain), "{n_past} {body}");
        }
    }
}

#[test]
fn clones_go_on_from_one_state_each_on_its_own() {
    let runtime = Runtime::new();
    let expected = expected(&[1; 5]);
    for (body, names) in [
        (ATTENTION, GROWING),
        (WRITTEN_OUT, GROWING),
        (GROUPS, GROWING),
        (GROUPS, FULL),
        (SCATTERED, FULL),
    ] {
        let (model, context) = (model(&runtime, &heads(body, names)), runtime.context());
        let mut first = session(&model).max_length(5).unwrap();
        let begun = result(step(&mut first, &context, 0, 1));
        assert!(is_near(&begun, &expected[0]));
        let mut second = first.clone();
        for (n_past, expected) in expected.iter().enumerate().skip(1) {
            // Other tokens, which the first may not see.
            let other = token(1000 + n_past, 1);
            let found = result(step_of(&mut second, &context, other, n_past, 1));
            assert!(!is_near(&found, expected));
            let found = result(step(&mut first, &context, n_past, 1));
            assert!(is_near(&found, expected), "{n_past} {body}");
        }
    }
}

#[test]
fn states_that_somebody_keeps_stay_as_they_are() {
    let runtime = Runtime::new();
    let context = runtime.context();
    for (body, names) in [(WRITTEN_OUT, GROWING), (GROUPS, FULL), (SCATTERED, FULL)] {
        let model = model(&runtime, &heads(body, names));
        let mut session = session(&model).max_length(5).unwrap();
        step(&mut session, &context, 0, 1).wait().unwrap();
        let kept = session.read(&context).wait().unwrap();
        let before = floats(kept.get("past.k").unwrap());
        for n_past in 1..5 {
            step(&mut session, &context, n_past, 1).wait().unwrap();
        }
        assert_eq!(floats(kept.get("past.k").unwrap()), before);
        let now = session.read(&context).wait().unwrap();
        assert_ne!(floats(now.get("past.k").unwrap()), before);
    }
}

#[test]
fn state_begins_with_what_is_given_and_again_after_a_reset() {
    let runtime = Runtime::new();
    let (model, context) = (
        model(&runtime, &heads(ATTENTION, GROWING)),
        runtime.context(),
    );
    let expected = expected(&[2, 1, 1]);
    let [_, k, v] = token(0, 2);
    let begin = |session: Session| {
        let session = session.initial("past.k", &k).unwrap();
        session.initial("past.v", &v).unwrap()
    };
    let mut session = begin(session(&model)).max_length(4).unwrap();
    for _ in 0..2 {
        for n_past in 2..4 {
            let found = result(step(&mut session, &context, n_past, 1));
            assert!(is_near(&found, &expected[n_past - 1]));
        }
        session.reset();
    }
    // What comes later, and does so after a step was made.
    let (promise, late) = AsyncValue::<tfrt::tensor::Tensor>::pending();
    session.replace("past.k", late).unwrap();
    let calls = [2, 3].map(|n_past| step(&mut session, &context, n_past, 1));
    promise.resolve(k.clone().into());
    for (call, expected) in calls.into_iter().zip(&expected[1..]) {
        assert!(is_near(&result(call), expected));
    }
    assert_eq!(k.shape().to_string(), "[2, 2, 2, 8]");
}

#[test]
fn cache_longer_than_its_room_is_an_error_with_both() {
    let runtime = Runtime::new();
    let context = runtime.context();
    let refused = |body: &str, names| {
        let model = model(&runtime, &heads(body, names));
        let mut session = session(&model).max_length(3).unwrap();
        step(&mut session, &context, 0, 2).wait().unwrap();
        let found = step(&mut session, &context, 2, 2).wait();
        let error = found
            .and_then(|_| session.read(&context).wait())
            .unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidArgument);
        // Either of both may be told.
        error.message().replace("past.v", "past.k")
    };
    let needed = "state 'past.k' has room for 3 along dimension 2, and 4 are needed: for f32 [2, 2, 2, 8] and 2 more";
    assert_eq!(refused(ATTENTION, GROWING), format!("attention: {needed}"));
    assert_eq!(refused(WRITTEN_OUT, GROWING), format!("concat: {needed}"));
    assert_eq!(refused(GROUPS, GROWING), format!("update_cache: {needed}"));
    assert_eq!(
        refused(GROUPS, FULL),
        "state 'past.k' has room for 3 along dimension 2, and 4 are needed: output 'present.k' is f32 [2, 2, 4, 8]"
    );
    assert_eq!(
        refused(SCATTERED, FULL),
        "2 elements from 2 on do not fit a dimension of extent 3"
    );
    let model = model(&runtime, &heads(ATTENTION, GROWING));
    let long = Tensor::zeros(DType::F32, &[2, 2, 4, 8]).unwrap();
    let begun = session(&model).initial("past.k", &long).unwrap();
    let mut begun = begun
        .initial("past.v", &long)
        .unwrap()
        .max_length(3)
        .unwrap();
    let error = step(&mut begun, &context, 4, 1).wait().unwrap_err();
    assert_eq!(
        error.message().replace("past.v", "past.k"),
        "state 'past.k' has room for 3 along dimension 2, and 4 are needed: for f32 [2, 2, 4, 8]"
    );
}

#[test]
fn cache_of_other_forms_is_right_too() {
    // Of three dimensions, with what transposes it, and a state without any that grows.
    let runtime = Runtime::new();
    let (decoder, context) = (model(&runtime, DECODER), runtime.context());
    let session = || {
        decoder
            .session()
            .state("present.{i}.kv", "past.{i}.kv")
            .unwrap()
    };
    let (mut plain, mut roomy) = (session(), session().max_length(20).unwrap());
    for step in 0..20 {
        let x = || Tensor::from_slice(&[1, 1, 2], &[step as f32 * 0.3, 1.0]).unwrap();
        let y = |session: &mut Session| {
            let call = session.step(&context, [("x", x())]);
            floats(call.wait().unwrap().get("y").unwrap())
        };
        assert_eq!(y(&mut roomy), y(&mut plain));
    }
    let x = Tensor::zeros(DType::F32, &[1, 1, 2]).unwrap();
    let error = roomy.step(&context, [("x", x)]).wait().unwrap_err();
    assert!(error.message().contains(".kv' has room for 20"), "{error}");
    let fixed = r#"func.func @main(%x: tensor<2xf32>, %h: tensor<2xf32>) -> tensor<2xf32>
        attributes {model.input_names = ["x", "h"], model.output_names = ["hn"]} {
      %y = "onnx.Add"(%x, %h) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      tfrt.return %y : tensor<2xf32>
    }"#;
    let session = model(&runtime, fixed).session().state("hn", "h").unwrap();
    let error = session.max_length(4).unwrap_err();
    assert_eq!(
        error.message(),
        "no state has a dimension in which it could grow: h"
    );
}

#[test]
fn buffer_of_one_size_is_written_over_whatever_thread_the_last_step_ran_on() {
    for (body, names) in [(SCATTERED, FULL), (GROUPS, FULL)] {
        for n_threads in [1, 2, 4] {
            let runtime = Runtime::builder().threads(n_threads).build();
            let (model, context) = (model(&runtime, &heads(body, names)), runtime.context());
            let mut session = session(&model).max_length(60).unwrap();
            let mut addresses = Vec::new();
            for n_past in 0..60 {
                result(step(&mut session, &context, n_past, 1));
                let states = session.read(&context).into_call().wait_each().unwrap();
                let address = |state: &AnyAsyncValue| match state.get() {
                    Some(tfrt::tensor::Tensor::Dense(tensor)) => tensor.buffer().address(),
                    other => panic!("{other:?}"),
                };
                let now: Vec<usize> = states.iter().map(address).collect();
                assert!(
                    n_past == 0 || addresses == now,
                    "{n_past} {n_threads} {body}"
                );
                addresses = now;
            }
        }
    }
}
