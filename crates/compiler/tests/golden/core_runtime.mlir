// Ops of the core runtime: their attributes are pairs within an array.

func.func @same(%c: !tfrt.chain, %x: !corert.tensorhandle) -> (!tfrt.chain, !corert.tensorhandle) {
  tfrt.return %c, %x : !tfrt.chain, !corert.tensorhandle
}

func.func @main() {
  %c0 = tfrt.new.chain
  %cpu = corert.get_op_handler %c0 "cpu"
  %a = corert.executeop(%cpu) "some.op"() {shape = [1, 2], values = [1.0 : f32], dtype = f32, name = "text"} : 1
  %b:2 = corert.executeop(%cpu) "some.op"(%a) {value = dense<[1, 2]> : tensor<2xi32>, like = #corert.shape<1x?>} {f = "function"} : 2
  %c1, %d = corert.executeop.seq(%cpu, %c0) "some.op"(%b#1) {list = [1 : i32, "two"], none = [], flag = true} : 1
  %c2, %e = corert.cond %d @same @same (%c1, %d) : (!corert.tensorhandle) -> (!corert.tensorhandle)
  corert.executeop(%cpu) "some.op"(%e)
  tfrt.return
}
