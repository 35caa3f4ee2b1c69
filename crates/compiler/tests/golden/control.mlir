// Regions, calls, references to functions, native and sync functions.

func.func private @native(i32) -> i32 attributes {tfrt.native}

func.func @twice(%x: i32) -> i32 attributes {tfrt.sync} {
  %y = "tfrt.add.i32"(%x, %x) : (i32, i32) -> i32
  tfrt.return %y : i32
}

func.func @choose(%condition: i1, %x: i32) -> i32 {
  %r = tfrt.if %condition, %x : (i32) -> (i32) {
    %inner = tfrt.call @native(%x) : (i32) -> i32
    tfrt.return %inner : i32
  } else {
    %one = tfrt.constant.i32 1
    %sum = tfrt.add.i32 %x, %one
    tfrt.return %sum : i32
  }
  tfrt.return %r : i32
}

func.func @main() -> (i32, !tfrt.chain) attributes {tfrt.cost_threshold = 10 : i64} {
  %true = tfrt.constant.i1 true
  %x = tfrt.constant.i32 20
  %y = tfrt.call @choose(%true, %x) : (i1, i32) -> i32
  %z = "my.kernel"(%y) {callee = @twice, others = [@twice, @native], scale = 3 : i32} : (i32) -> i32
  %c0 = tfrt.new.chain
  %c1 = tfrt.print.i32 %z, %c0
  tfrt.return %z, %c1 : i32, !tfrt.chain
}
