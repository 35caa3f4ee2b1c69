// RUN: opt --passes sequence-effects
func.func private @native_error() -> i32 attributes {tfrt.native}

func.func @main() -> i32 {
  %x = tfrt.call @native_error() : () -> i32
  %y = tfrt.call @native_error() : () -> i32
  tfrt.return %y : i32
}
