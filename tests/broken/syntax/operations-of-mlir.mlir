func.func @main() -> i32 {
  %c1 = arith.constant 1 : i32
  %x = arith.addi %c1, %c1 : i32
  func.return %x : i32
}
