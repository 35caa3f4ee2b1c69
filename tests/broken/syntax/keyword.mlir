func.func @main(%n: i32) {
  %device = tfrt_gpu.device.get Cuda, %n
  tfrt.return
}
