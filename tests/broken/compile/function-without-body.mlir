func.func private @f(i32) -> i32
