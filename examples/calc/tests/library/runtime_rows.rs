//! A row and its kernel whose names are made at run time.

use tfrt::compiler::legalize::Context;
use tfrt::compiler::onnx::NoEvaluator;
use tfrt::compiler::pipeline::Pipeline;
use tfrt::input::{Input, parse};
use tfrt::ir::{Module, Source};
use tfrt::ops::{AddedRows, AttrDef, Infer, OpDef, intern};
use tfrt::tensor::{DenseHostTensor, Tensor};
use tfrt::{Error, ExecutionContext, Runtime, kernel::Attr};

fn times(x: &Tensor, factor: Attr<f32>, execution: &ExecutionContext) -> Result<Tensor, Error> {
    let x = x.as_dense()?;
    let y: Vec<f32> = x
        .read()?
        .elements::<f32>()?
        .iter()
        .map(|x| x * *factor)
        .collect();
    let allocator = execution.host().allocator();
    Ok(DenseHostTensor::from_slice(allocator, &x.shape().to_dims(), &y)?.into())
}

/// Returns a row of a library that was loaded, say.
fn row(name: &str) -> OpDef {
    const ATTRS: &[AttrDef] = &[AttrDef::float("factor", 2.0)];
    OpDef::new(intern(name), "Each element times a factor.")
        .attrs(ATTRS)
        .infer(Infer::SameAsFirst)
}

fn added(runtime: &Runtime, name: &str) -> AddedRows {
    runtime.formats().rows().add(&[row(name)]).unwrap()
}

fn runtime(name: &str) -> Runtime {
    let kernel = format!("cpu.{name}");
    let add = |registry: &mut tfrt::kernel::KernelRegistry| {
        registry.add(&kernel, times);
    };
    Runtime::builder().kernels(add).build()
}

fn text(name: &str) -> String {
    format!(
        r#"func.func @main(%x: tensor<?xf32>) -> tensor<*xf32> attributes {{
  model.input_names = ["x"], model.output_names = ["y"], model.input_dims = [["N"]]}} {{
  %a = "{name}"(%x) : (tensor<?xf32>) -> tensor<*xf32>
  %y = "graph.neg"(%a) : (tensor<*xf32>) -> tensor<*xf32>
  tfrt.return %y : tensor<*xf32>
}}"#
    )
}

fn module(name: &str) -> Module {
    parse(&Source::new("rows.mlir", text(name))).unwrap()
}

#[test]
fn rows_of_run_time_are_parsed_inferred_printed_and_run() {
    let name = format!("plugin{}.times", 7);
    let runtime = runtime(&name);
    let _added = added(&runtime, &name);

    let mut module = module(&name);
    let printed = module.to_string();
    let again = parse(&Source::new("again.mlir", printed.clone())).unwrap();
    assert_eq!(again.to_string(), printed);
    let context = Context::new(&NoEvaluator).dialects(runtime.formats().dialects());
    let passes = Pipeline::parse("legalize,graph-infer").unwrap();
    passes
        .run_with(&mut module, &context, &mut |_, _| {})
        .unwrap();
    let line = r#"%0 = "plugin7.times"(%arg0) {model.shapes = [["N"]]} : (tensor<?xf32>) -> tensor<?xf32>"#;
    assert!(module.to_string().contains(line), "{module}");

    let input = Input::Text(Source::new("rows.mlir", text(&name)));
    let model = runtime.load_model(&input).unwrap();
    let x = tfrt::Tensor::from_vec(&[2], vec![1.0_f32, -3.0]).unwrap();
    let outputs = model.call(&runtime.context(), [("x", x)]).wait().unwrap();
    assert_eq!(
        outputs.tensor("y").unwrap().to_vec::<f32>().unwrap(),
        [-2.0, 6.0]
    );
}

#[test]
fn rows_go_with_their_handle_and_models_that_are_open_stay() {
    let name = "plugin8.times".to_owned();
    let runtime = runtime(&name);
    let added = added(&runtime, &name);
    let input = Input::Text(Source::new("rows.mlir", text(&name)));
    let model = runtime.load_model(&input).unwrap();
    drop(added);
    let error = runtime.load_model(&input).unwrap_err().to_string();
    assert_eq!(
        error,
        "rows.mlir:3:8: unknown kernel name 'plugin8.times' [TF0701]"
    );
    let x = tfrt::Tensor::from_vec(&[1], vec![1.0_f32]).unwrap();
    let outputs = model.call(&runtime.context(), [("x", x)]).wait().unwrap();
    assert_eq!(
        outputs.tensor("y").unwrap().to_vec::<f32>().unwrap(),
        [-2.0]
    );
}
