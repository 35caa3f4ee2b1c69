module @m attributes {version = 3 : i32} {
  func.func private @f(i32 {donated}) -> (i32 {owned}) attributes {tfrt.native}
}
