// CLUSTER: 2

// The lead has another task make numbers, and add and print them there.

// CHECK-LABEL: --- Running 'main':
func.func @main() -> !tfrt.chain {
  %ch = tfrt.new.chain
  %ctx = tfrt_dist.get_distributed_context
  %task = tfrt_dist.get_task_handle %ctx {task_name = "/job:worker/task:1"}
  %r0 = tfrt_dist.register_tfrt_function(%ch, %ctx, %task) "make" "func.func @make() -> i32 { %a = tfrt.constant.i32 21 tfrt.return %a : i32 }"
  %r1 = tfrt_dist.register_tfrt_function(%r0, %ctx, %task) "twice" "func.func @twice(%x: i32) -> i32 { %y = tfrt.add.i32 %x, %x tfrt.return %y : i32 }"
  %r2 = tfrt_dist.register_tfrt_function(%r1, %ctx, %task) "show" "func.func @show(%x: i32) -> !tfrt.chain { %c = tfrt.new.chain %d = tfrt.print.i32 %x, %c tfrt.return %d : !tfrt.chain }"
  %spec = tfrt_dist.create_remote_execute_spec %ctx {output_devices = ["/job:worker/task:1/device:CPU:0"]}
  %c0, %a = tfrt_dist.remote_execute[%r2, %ctx, %task, %spec] "make" () : () -> (!tfrt_dist.remote_object_id)
  %c1, %b = tfrt_dist.remote_execute[%r2, %ctx, %task, %spec] "twice" (%a) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  %c2, %c = tfrt_dist.remote_execute[%r2, %ctx, %task, %spec] "show" (%b) : (!tfrt_dist.remote_object_id) -> (!tfrt_dist.remote_object_id)
  tfrt.return %c2 : !tfrt.chain
}
// CHECK-NEXT: int32 = 42
