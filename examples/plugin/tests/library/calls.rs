//! The plugin, loaded by tfrt: eager calls, and a program.

use tfrt::corert::OpAttrs;
use tfrt::eager::Eager;

use crate::runtime;

#[test]
fn operation_is_called() -> Result<(), tfrt::AnyError> {
    let (plugin, runtime) = runtime();
    let kernels: Vec<&str> = plugin.kernels().map(|kernel| kernel.op()).collect();
    assert_eq!(kernels, ["ExampleScale", "ResourceApplyAdam"]);
    let eager = Eager::new(&runtime);
    let x = eager.tensor(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0])?;
    let y = eager.op("tf.ExampleScale", &[&x], &OpAttrs::new())?;
    assert_eq!(y[0].to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
    let mut attrs = OpAttrs::new();
    attrs.set("factor", f32::INFINITY)?;
    let error = eager.op("tf.ExampleScale", &[&x], &attrs).unwrap_err();
    assert_eq!(error.message(), "expected a finite factor");
    Ok(())
}

#[test]
fn program_calls_the_operation() -> Result<(), tfrt::AnyError> {
    let (_plugin, runtime) = runtime();
    let eager = Eager::new(&runtime);
    let program = runtime.compile(
        "scale.mlir",
        r#"func.func @scaled(%x: !corert.tensorhandle) -> !corert.tensorhandle {
             %chain = tfrt.new.chain
             %cpu = corert.get_op_handler %chain "cpu"
             %y = corert.executeop(%cpu) "tf.ExampleScale"(%x) { factor = 3.0 : f32 } : 1
             %z = corert.executeop(%cpu) "tf.AddV2"(%y, %x) : 1
             tfrt.return %z : !corert.tensorhandle
           }"#,
    )?;
    let scaled = program.function("scaled").expect("it is in the text");
    let x = eager.tensor(&[2], &[1.0_f32, 10.0])?.into_handle();
    let arguments = (tfrt::AsyncValue::available(x),);
    let values = scaled.call(&runtime.context(), arguments).wait()?;
    let z = values.get::<tfrt::corert::TensorHandle>(0)?;
    assert!(
        z.to_string()
            .ends_with("values = [4.000000e+00, 4.000000e+01]"),
        "{z}"
    );
    Ok(())
}

#[test]
fn program_of_the_example_runs() -> Result<(), tfrt::AnyError> {
    let (_plugin, runtime) = runtime();
    let program = runtime.compile("scale.mlir", include_str!("../../scale.mlir"))?;
    let main = program.function("main").expect("it is in the text");
    main.call(&runtime.context(), ()).wait()?;
    Ok(())
}
