func.func private @native_add(i32) -> i32 attributes {tfrt.native}
