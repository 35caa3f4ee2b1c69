func.func private @nobody(i32) -> i32 attributes {tfrt.native}
