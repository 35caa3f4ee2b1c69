func.func private @f(memref<2x!corert.tensorhandle>) attributes {tfrt.native}
