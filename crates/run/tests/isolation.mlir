// A kernel that panics fails its own results; the rest of the program goes on.
func.func @panics() -> (i32, i32) {
  %one = tfrt.constant.i32 1
  %lost = "tfrt_test.panic"() : () -> i32
  %sum = tfrt.add.i32 %lost, %one
  tfrt.return %sum, %one : i32, i32
}

func.func @goes_on() -> i32 {
  %two = tfrt.constant.i32 2
  tfrt.return %two : i32
}
