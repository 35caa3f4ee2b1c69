// A module that a kernel compiles: its text travels with the symbols that refer into it.

module @kernels attributes {tfrt.compiled} {
  func.func @main(%x: i32) -> i32 {
    func.return %x : i32
  }
}

func.func @run(%x: i32) -> i32 {
  %y = "my.execute"(%x) {symbol = @kernels::@main} : (i32) -> i32
  %z = "my.execute"(%y) {symbol = @kernels::@main} : (i32) -> i32
  tfrt.return %z : i32
}
