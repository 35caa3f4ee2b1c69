// A call of the example plugin's operation, to be run by
// tfrt run --plugin target/debug/libtfrt_example_plugin.so examples/plugin/scale.mlir
func.func @main() {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %x = corert.const_dense_tensor dense<[1.0, 2.0]> : tensor<2xf32>
  %y = corert.executeop(%cpu) "tf.ExampleScale"(%x) { factor = 10.0 : f32 } : 1
  %c1 = "corert.print_tensorhandle"(%y, %c0) : (!corert.tensorhandle, !tfrt.chain) -> !tfrt.chain
  tfrt.return
}
