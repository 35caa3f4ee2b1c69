//! Runs the examples in Rust, so that they stay true.

#[path = "../custom_allocator.rs"]
mod custom_allocator;
#[path = "../custom_handler.rs"]
mod custom_handler;
#[path = "../custom_queue.rs"]
mod custom_queue;
#[expect(dead_code, reason = "the tests call what `main` calls")]
#[path = "../greedy.rs"]
mod greedy;

/// Attention of one layer to words of two numbers each, with all that it has seen.
const DECODER: &str = r#"module attributes {onnx.opset = 17 : i64} {
  func.func @main(%ids: tensor<?x?xi64>, %mask: tensor<?x?xi64>, %pk: tensor<?x?x2xf32>, %pv: tensor<?x?x2xf32>)
      -> (tensor<?x?x4xf32>, tensor<?x?x2xf32>, tensor<?x?x2xf32>)
      attributes {model.input_names = ["input_ids", "attention_mask", "past_key_values.0.key", "past_key_values.0.value"],
                  model.output_names = ["logits", "present.0.key", "present.0.value"],
                  model.input_dims = [["B", "S"], ["B", "T"], ["B", "P", 2 : i64], ["B", "P", 2 : i64]],
                  model.output_dims = [["B", "S", 4 : i64], ["B", "T", 2 : i64], ["B", "T", 2 : i64]]} {
    %words = "onnx.Constant"() {value = dense<[[1.0, 0.5], [-1.5, 1.0], [0.5, -2.0], [2.0, 1.5]]> : tensor<4x2xf32>} : () -> tensor<4x2xf32>
    %head = "onnx.Constant"() {value = dense<[[0.5, 1.0, -1.0, -0.5], [1.0, -1.0, 0.5, -0.5]]> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
    %x = "onnx.Gather"(%words, %ids) : (tensor<4x2xf32>, tensor<?x?xi64>) -> tensor<?x?x2xf32>
    %k = "onnx.Concat"(%pk, %x) {axis = 1 : i64} : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    %v = "onnx.Concat"(%pv, %x) {axis = 1 : i64} : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    %t = "onnx.Transpose"(%k) {perm = [0, 2, 1]} : (tensor<?x?x2xf32>) -> tensor<?x2x?xf32>
    %s = "onnx.MatMul"(%x, %t) : (tensor<?x?x2xf32>, tensor<?x2x?xf32>) -> tensor<?x?x?xf32>
    %w = "onnx.Softmax"(%s) {axis = -1 : i64} : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %y = "onnx.MatMul"(%w, %v) : (tensor<?x?x?xf32>, tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    %z = "onnx.Sub"(%y, %x) : (tensor<?x?x2xf32>, tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
    %logits = "onnx.MatMul"(%z, %head) : (tensor<?x?x2xf32>, tensor<2x4xf32>) -> tensor<?x?x4xf32>
    func.return %logits, %k, %v : tensor<?x?x4xf32>, tensor<?x?x2xf32>, tensor<?x?x2xf32>
  }
}
"#;

#[test]
fn custom_queue_keeps_the_contract_and_runs_programs() {
    custom_queue::main();
}

#[test]
fn custom_allocator_is_used_and_gets_everything_back() {
    custom_allocator::main();
}

#[test]
fn custom_handler_keeps_the_contract_and_sees_every_call() {
    custom_handler::main();
}

#[test]
fn greedy_gives_with_a_cache_what_it_gives_without() {
    let name = format!("tfrt-greedy-{}.mlir", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, DECODER).unwrap();
    let tokens = |ids: &str, options: &[&str]| {
        let mut said = Vec::new();
        let words = [path.to_str().unwrap(), ids, "16"].into_iter();
        let words = words.chain(options.iter().copied()).map(str::to_owned);
        greedy::run(words, &mut said).map_err(|error| error.to_string())?;
        Ok::<_, String>(String::from_utf8(said).unwrap())
    };
    let cached = tokens("3,1", &[]).unwrap();
    assert_eq!(cached.lines().count(), 16);
    assert_ne!(cached, tokens("2", &[]).unwrap());
    assert_eq!(cached, tokens("3,1", &["--no-cache"]).unwrap());
    assert_eq!(cached, tokens("3,1", &["--max-length", "17"]).unwrap());
    let error = tokens("3,1", &["--max-length", "10"]).unwrap_err();
    assert!(error.contains("has room for 10"), "{error}");
    let named = "present.0.key=past_key_values.0.key";
    let error = tokens("3", &["--state", named]).unwrap_err();
    let message = "the model has an input 'past_key_values.0.value', which is none of a decoder";
    assert_eq!(error, message);
    let error = tokens("three", &[]).unwrap_err();
    assert!(error.contains("invalid digit"), "{error}");
    std::fs::remove_file(&path).unwrap();
}
