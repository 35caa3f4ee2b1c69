// abs
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.abs %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F0000104000000000000040400000003F0000403F"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// ceil
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.ceil %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x00000040000000C000000000000040400000803F00000080"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// cos
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.cosine %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xAADE903DFDCF20BF0000803F26707DBF40A9603FF64F3B3F"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// exp
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.exponential %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xFF698F408CDBD73D0000803F2EAFA0414C09D33F07DAF13E"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// expm1
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.exponential_minus_one %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xFED35E408E0465BF000000002EAF98419912263FFC1207BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// floor
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.floor %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000803F000040C0000000000000404000000000000080BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// is_finite
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<2x3xi1>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.is_finite %cst : (tensor<2x3xf32>) -> tensor<2x3xi1>
    %expected_0 = stablehlo.constant dense<[[true, true, true], [true, true, true]]> : tensor<2x3xi1>
    return %0, %expected_0 : tensor<2x3xi1>, tensor<2x3xi1>
  }
}

// -----
// log1p
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.log_plus_one %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x08926A3F0000C0FF000000001872B13F1F99CF3E1872B1BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// logistic
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.negate %cst : tensor<2x3xf32>
    %1 = stablehlo.exponential %0 : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %3 = stablehlo.add %2, %1 : tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %5 = stablehlo.divide %4, %3 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x8F4C513F9546C33D0000003FE6DB733F7F591F3FB042A43E"> : tensor<2x3xf32>
    return %5, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// neg
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.negate %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C0BF0000104000000080000040C0000000BF0000403F"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// round
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.round_nearest_afz %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x00000040000000C000000000000040400000803F000080BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// sign
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.sign %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000803F000080BF000000000000803F0000803F000080BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// sin
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.sine %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xD55B7F3FCE2F47BF00000000C381103E4477F53EE17F2EBF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// tan
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.tan %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x6B9F61415A8B9E3F00000000B9F711BE7BDA0B3F1B7D6EBF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// tanh
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.tanh %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xCCB7673FEB5F7ABF00000000E9BB7E3F9F9AEC3E1F9922BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// square
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = chlo.square %cst : tensor<2x3xf32> -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x000010400000A24000000000000010410000803E0000103F"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// sqrt
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.750000e+00, 2.500000e+00, 2.500000e-01], [3.250000e+00, 7.500000e-01, 1.000000e+00]]> : tensor<2x3xf32>
    %0 = stablehlo.sqrt %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xFD53A93FC262CA3F0000003F5AC1E63FD7B35D3F0000803F"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// rsqrt
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.750000e+00, 2.500000e+00, 2.500000e-01], [3.250000e+00, 7.500000e-01, 1.000000e+00]]> : tensor<2x3xf32>
    %0 = stablehlo.rsqrt %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x8F84413F9BE8213F00000040D5000E3F3ACD933F0000803F"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// cbrt
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.750000e+00, 2.500000e+00, 2.500000e-01], [3.250000e+00, 7.500000e-01, 1.000000e+00]]> : tensor<2x3xf32>
    %0 = stablehlo.cbrt %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xC53F9A3F05B9AD3F1845213F8999BD3F6897683F0000803F"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// log
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.750000e+00, 2.500000e+00, 2.500000e-01], [3.250000e+00, 7.500000e-01, 1.000000e+00]]> : tensor<2x3xf32>
    %0 = stablehlo.log %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xFB420F3F08926A3F1872B1BF2BDE963F114B93BE00000000"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// add
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.add %cst, %cst_0 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x00000040000080BE000080BF00008040000060C0000000BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// sub
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.subtract %cst, %cst_0 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000803F000088C00000803F0000004000009040000080BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// mul
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.multiply %cst, %cst_0 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000403F000090C00000008000004040000000C0000040BE"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// div
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.divide %cst, %cst_0 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x00004040000090BF0000008000004040000000BE000040C0"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// max
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.maximum %cst, %cst_0 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F0000004000000000000040400000003F0000803E"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// min
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.minimum %cst, %cst_0 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000003F000010C0000080BF0000803F000080C0000040BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// rem
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.remainder %cst, %cst_0 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x00000000000080BE00000000000000000000003F00000080"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// atan2
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.atan2 %cst, %cst_0 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xBBE09F3F7A1A58BFDB0F4940BBE09F3F6C1A4140BBE09FBF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// nextafter
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = chlo.next_after %cst, %cst_0 : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xFFFFBF3FFFFF0FC001000080FFFF3F40FFFFFF3EFFFF3FBF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// add of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.add %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x0900000000000000FFFFFFFF0700000009000000FBFFFFFF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// sub of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.subtract %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x05000000FAFFFFFF010000001100000001000000F5FFFFFF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// mul of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.multiply %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x0E000000F7FFFFFF00000000C4FFFFFF14000000E8FFFFFF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// div of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.divide %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x03000000FFFFFFFF00000000FEFFFFFF01000000FEFFFFFF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// max of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.maximum %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x0700000003000000000000000C0000000500000003000000"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// min of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.minimum %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x02000000FDFFFFFFFFFFFFFFFBFFFFFF04000000F8FFFFFF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// rem of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.remainder %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x0100000000000000000000000200000001000000FEFFFFFF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// bitwise_and of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.and %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x020000000100000000000000080000000400000000000000"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// bitwise_or of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.or %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x07000000FFFFFFFFFFFFFFFFFFFFFFFF05000000FBFFFFFF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// bitwise_xor of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.xor %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x05000000FEFFFFFFFFFFFFFFF7FFFFFF01000000FBFFFFFF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// shift_left of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, 1], [5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.shift_left %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x1C000000E8FFFFFF000000008001000050000000C0FFFFFF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// shift_right_arithmetic of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, 1], [5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.shift_right_arithmetic %c, %c_0 : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x01000000FFFFFFFF000000000000000000000000FFFFFFFF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// eq
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<2x3xi1>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.compare EQ, %c, %c_0, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %expected_0 = stablehlo.constant dense<[[false, false, false], [false, false, false]]> : tensor<2x3xi1>
    return %0, %expected_0 : tensor<2x3xi1>, tensor<2x3xi1>
  }
}

// -----
// ne
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<2x3xi1>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.compare NE, %c, %c_0, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %expected_0 = stablehlo.constant dense<[[true, true, true], [true, true, true]]> : tensor<2x3xi1>
    return %0, %expected_0 : tensor<2x3xi1>, tensor<2x3xi1>
  }
}

// -----
// lt
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<2x3xi1>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.compare LT, %c, %c_0, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %expected_0 = stablehlo.constant dense<[[false, true, false], [false, false, true]]> : tensor<2x3xi1>
    return %0, %expected_0 : tensor<2x3xi1>, tensor<2x3xi1>
  }
}

// -----
// lt of floats
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<2x3xi1>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.compare LT, %cst, %cst_0, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %expected_0 = stablehlo.constant dense<[[false, true, false], [false, false, true]]> : tensor<2x3xi1>
    return %0, %expected_0 : tensor<2x3xi1>, tensor<2x3xi1>
  }
}

// -----
// le
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<2x3xi1>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.compare LE, %c, %c_0, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %expected_0 = stablehlo.constant dense<[[false, true, false], [false, false, true]]> : tensor<2x3xi1>
    return %0, %expected_0 : tensor<2x3xi1>, tensor<2x3xi1>
  }
}

// -----
// gt
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<2x3xi1>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.compare GT, %c, %c_0, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %expected_0 = stablehlo.constant dense<[[true, false, true], [true, true, false]]> : tensor<2x3xi1>
    return %0, %expected_0 : tensor<2x3xi1>, tensor<2x3xi1>
  }
}

// -----
// ge
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<2x3xi1>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.compare GE, %c, %c_0, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %expected_0 = stablehlo.constant dense<[[true, false, true], [true, true, false]]> : tensor<2x3xi1>
    return %0, %expected_0 : tensor<2x3xi1>, tensor<2x3xi1>
  }
}

// -----
// ge of floats
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<2x3xi1>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.compare GE, %cst, %cst_0, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %expected_0 = stablehlo.constant dense<[[true, false, true], [true, true, false]]> : tensor<2x3xi1>
    return %0, %expected_0 : tensor<2x3xi1>, tensor<2x3xi1>
  }
}

// -----
// pow
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, 2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, 7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.power %cst, %cst_0 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x71C49C3F0000A2400000807F00004040000080411F3C6E3F"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// integer_pow
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.multiply %cst, %cst : tensor<2x3xf32>
    %1 = stablehlo.multiply %0, %cst : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x00005840004036C1000000000000D8410000003E0000D8BE"> : tensor<2x3xf32>
    return %1, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// population_count
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<4xui32>, tensor<4xui32>) {
    %c = stablehlo.constant dense<[1, 255, 4096, 3000000000]> : tensor<4xui32>
    %0 = stablehlo.popcnt %c : tensor<4xui32>
    %expected_0 = stablehlo.constant dense<"0x0100000008000000010000000C000000"> : tensor<4xui32>
    return %0, %expected_0 : tensor<4xui32>, tensor<4xui32>
  }
}

// -----
// clz
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<4xui32>, tensor<4xui32>) {
    %c = stablehlo.constant dense<[1, 255, 4096, 3000000000]> : tensor<4xui32>
    %0 = stablehlo.count_leading_zeros %c : tensor<4xui32>
    %expected_0 = stablehlo.constant dense<"0x1F000000180000001300000000000000"> : tensor<4xui32>
    return %0, %expected_0 : tensor<4xui32>, tensor<4xui32>
  }
}

// -----
// shift_right_logical
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<4xui32>, tensor<4xui32>) {
    %c = stablehlo.constant dense<[1, 255, 4096, 3000000000]> : tensor<4xui32>
    %c_0 = stablehlo.constant dense<3> : tensor<ui32>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<4xui32>
    %1 = stablehlo.shift_right_logical %c, %0 : tensor<4xui32>
    %expected_0 = stablehlo.constant dense<"0x000000001F00000000020000C00B5A16"> : tensor<4xui32>
    return %1, %expected_0 : tensor<4xui32>, tensor<4xui32>
  }
}

// -----
// bitwise_not
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %0 = stablehlo.not %c : tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0xF8FFFFFF02000000FFFFFFFFF3FFFFFFFAFFFFFF07000000"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// logic
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<3xi1>, tensor<2xi1>, tensor<2x3xi1>, tensor<3xi1>, tensor<2xi1>) {
    %c = stablehlo.constant dense<[[true, false, true], [false, false, true]]> : tensor<2x3xi1>
    %c_0 = stablehlo.constant dense<[[true, true, false], [true, true, false]]> : tensor<2x3xi1>
    %c_1 = stablehlo.constant dense<false> : tensor<i1>
    %0 = stablehlo.reduce(%c init: %c_1) applies stablehlo.or across dimensions = [0] : (tensor<2x3xi1>, tensor<i1>) -> tensor<3xi1>
    %c_2 = stablehlo.constant dense<true> : tensor<i1>
    %1 = stablehlo.reduce(%c init: %c_2) applies stablehlo.and across dimensions = [1] : (tensor<2x3xi1>, tensor<i1>) -> tensor<2xi1>
    %expected_0 = stablehlo.constant dense<[[true, true, false], [true, true, false]]> : tensor<2x3xi1>
    %expected_1 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
    %expected_2 = stablehlo.constant dense<[false, false]> : tensor<2xi1>
    return %c_0, %0, %1, %expected_0, %expected_1, %expected_2 : tensor<2x3xi1>, tensor<3xi1>, tensor<2xi1>, tensor<2x3xi1>, tensor<3xi1>, tensor<2xi1>
  }
}

// -----
// convert to float16
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf16>, tensor<2x3xf16>) {
    %c = stablehlo.constant dense<[[7, 3, 0], [12, 5, 8]]> : tensor<2x3xi32>
    %0 = stablehlo.convert %c : (tensor<2x3xi32>) -> tensor<2x3xf16>
    %expected_0 = stablehlo.constant dense<"0x004700420000004A00450048"> : tensor<2x3xf16>
    return %0, %expected_0 : tensor<2x3xf16>, tensor<2x3xf16>
  }
}

// -----
// convert to bfloat16
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xbf16>, tensor<2x3xbf16>) {
    %c = stablehlo.constant dense<[[7, 3, 0], [12, 5, 8]]> : tensor<2x3xi32>
    %0 = stablehlo.convert %c : (tensor<2x3xi32>) -> tensor<2x3xbf16>
    %expected_0 = stablehlo.constant dense<"0xE040404000004041A0400041"> : tensor<2x3xbf16>
    return %0, %expected_0 : tensor<2x3xbf16>, tensor<2x3xbf16>
  }
}

// -----
// convert to float64
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf64>, tensor<2x3xf64>) {
    %c = stablehlo.constant dense<[[7, 3, 0], [12, 5, 8]]> : tensor<2x3xi32>
    %0 = stablehlo.convert %c : (tensor<2x3xi32>) -> tensor<2x3xf64>
    %expected_0 = stablehlo.constant dense<"0x0000000000001C4000000000000008400000000000000000000000000000284000000000000014400000000000002040"> : tensor<2x3xf64>
    return %0, %expected_0 : tensor<2x3xf64>, tensor<2x3xf64>
  }
}

// -----
// convert to int8
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi8>, tensor<2x3xi8>) {
    %c = stablehlo.constant dense<[[7, 3, 0], [12, 5, 8]]> : tensor<2x3xi32>
    %0 = stablehlo.convert %c : (tensor<2x3xi32>) -> tensor<2x3xi8>
    %expected_0 = stablehlo.constant dense<"0x0703000C0508"> : tensor<2x3xi8>
    return %0, %expected_0 : tensor<2x3xi8>, tensor<2x3xi8>
  }
}

// -----
// convert to uint8
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xui8>, tensor<2x3xui8>) {
    %c = stablehlo.constant dense<[[7, 3, 0], [12, 5, 8]]> : tensor<2x3xi32>
    %0 = stablehlo.convert %c : (tensor<2x3xi32>) -> tensor<2x3xui8>
    %expected_0 = stablehlo.constant dense<"0x0703000C0508"> : tensor<2x3xui8>
    return %0, %expected_0 : tensor<2x3xui8>, tensor<2x3xui8>
  }
}

// -----
// convert to int64
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi64>, tensor<2x3xi64>) {
    %c = stablehlo.constant dense<[[7, 3, 0], [12, 5, 8]]> : tensor<2x3xi32>
    %0 = stablehlo.convert %c : (tensor<2x3xi32>) -> tensor<2x3xi64>
    %expected_0 = stablehlo.constant dense<"0x0700000000000000030000000000000000000000000000000C0000000000000005000000000000000800000000000000"> : tensor<2x3xi64>
    return %0, %expected_0 : tensor<2x3xi64>, tensor<2x3xi64>
  }
}

// -----
// convert to bool
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi1>, tensor<2x3xi1>) {
    %c = stablehlo.constant dense<[[7, 3, 0], [12, 5, 8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x3xi32>
    %1 = stablehlo.compare NE, %c, %0, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %2 = stablehlo.convert %1 : tensor<2x3xi1>
    %expected_0 = stablehlo.constant dense<[[true, true, false], [true, true, true]]> : tensor<2x3xi1>
    return %2, %expected_0 : tensor<2x3xi1>, tensor<2x3xi1>
  }
}

// -----
// bitcast_convert
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.bitcast_convert %cst : (tensor<2x3xf32>) -> tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F000010C000000000000040400000003F000040BF"> : tensor<2x3xi32>
    return %0, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// bitcast_convert to bytes
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<4x4xui8>, tensor<4x4xui8>) {
    %c = stablehlo.constant dense<[1, 255, 4096, 3000000000]> : tensor<4xui32>
    %0 = stablehlo.bitcast_convert %c : (tensor<4xui32>) -> tensor<4x4xui8>
    %expected_0 = stablehlo.constant dense<"0x01000000FF00000000100000005ED0B2"> : tensor<4x4xui8>
    return %0, %expected_0 : tensor<4x4xui8>, tensor<4x4xui8>
  }
}

// -----
// reduce_precision
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.50150013, -2.25225019, 0.000000e+00], [3.00300026, 5.005000e-01, -0.750750064]]> : tensor<2x3xf32>
    %0 = stablehlo.reduce_precision %cst, format = e5m4 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F000010C000000000000040400000003F000040BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// clamp
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[2.500000e+00, 4.000000e+00, 1.000000e+00], [3.000000e+00, -2.000000e+00, 2.250000e+00]]> : tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<-1.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.clamp %0, %cst, %cst_0 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F000080BF0000000000004040000000C0000040BF"> : tensor<2x3xf32>
    return %1, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// select
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %c = stablehlo.constant dense<[[true, false, true], [false, false, true]]> : tensor<2x3xi1>
    %cst = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.select %c, %cst_0, %cst : tensor<2x3xi1>, tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F00000040000000000000803F000080C0000040BF"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// complex arithmetic
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(1.500000e+00,5.000000e-01), (-2.250000e+00,2.000000e+00), (0.000000e+00,-1.000000e+00)], [(3.000000e+00,1.000000e+00), (5.000000e-01,-4.000000e+00), (-7.500000e-01,2.500000e-01)]]> : tensor<2x3xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<[[(2.000000e+00,1.500000e+00), (1.062500e+00,-9.000000e+00), (-1.000000e+00,-0.000000e+00)], [(8.000000e+00,6.000000e+00), (-1.575000e+01,-4.000000e+00), (5.000000e-01,-3.750000e-01)]]> : tensor<2x3xcomplex<f32>>
    %cst_1 = stablehlo.constant dense<[[(4.400000e-01,8.000000e-02), (1.12307692,0.984615385), (2.000000e-01,-4.000000e-01)], [(0.615384638,0.0769230723), (0.775280892,-0.359550565), (-0.538461566,0.307692319)]]> : tensor<2x3xcomplex<f32>>
    %cst_2 = stablehlo.constant dense<[[(5.000000e-01,5.000000e-01), (-3.250000e+00,2.000000e+00), (-1.000000e+00,-1.000000e+00)], [(2.000000e+00,1.000000e+00), (-5.000000e-01,-4.000000e+00), (-1.750000e+00,2.500000e-01)]]> : tensor<2x3xcomplex<f32>>
    %0 = stablehlo.real %cst : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %1 = stablehlo.imag %cst : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %2 = stablehlo.negate %1 : tensor<2x3xf32>
    %3 = stablehlo.complex %0, %2 : tensor<2x3xcomplex<f32>>
    %expected_0 = stablehlo.constant dense<"0x000000400000C03F0000883F000010C1000080BF00000080000000410000C04000007CC1000080C00000003F0000C0BE"> : tensor<2x3xcomplex<f32>>
    %expected_1 = stablehlo.constant dense<"0xAE47E13E0AD7A33DFCC08F3FC10F7C3FCDCC4C3ECDCCCCBED9891D3FD8899D3DCF78463F0317B8BE9ED809BFD9899D3E"> : tensor<2x3xcomplex<f32>>
    %expected_2 = stablehlo.constant dense<"0x0000003F0000003F000050C000000040000080BF000080BF000000400000803F000000BF000080C00000E0BF0000803E"> : tensor<2x3xcomplex<f32>>
    %expected_3 = stablehlo.constant dense<"0x0000C03F000000BF000010C0000000C0000000000000803F00004040000080BF0000003F00008040000040BF000080BE"> : tensor<2x3xcomplex<f32>>
    return %cst_0, %cst_1, %cst_2, %3, %expected_0, %expected_1, %expected_2, %expected_3 : tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>
  }
}

// -----
// complex functions
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xcomplex<f32>>, tensor<2x3xf32>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xf32>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(1.500000e+00,5.000000e-01), (-2.250000e+00,2.000000e+00), (0.000000e+00,-1.000000e+00)], [(3.000000e+00,1.000000e+00), (5.000000e-01,-4.000000e+00), (-7.500000e-01,2.500000e-01)]]> : tensor<2x3xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<[[(4.500000e+00,5.000000e-01), (7.500000e-01,2.000000e+00), (3.000000e+00,-1.000000e+00)], [(6.000000e+00,1.000000e+00), (3.500000e+00,-4.000000e+00), (2.250000e+00,2.500000e-01)]]> : tensor<2x3xcomplex<f32>>
    %0 = stablehlo.exponential %cst : tensor<2x3xcomplex<f32>>
    %1 = stablehlo.abs %cst : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %2 = stablehlo.sqrt %cst : tensor<2x3xcomplex<f32>>
    %3 = stablehlo.real %cst : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %4 = stablehlo.imag %cst : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %6 = stablehlo.compare EQ, %3, %5, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %7 = stablehlo.sine %3 : tensor<2x3xf32>
    %8 = stablehlo.cosine %3 : tensor<2x3xf32>
    %9 = stablehlo.exponential_minus_one %4 : tensor<2x3xf32>
    %10 = stablehlo.negate %4 : tensor<2x3xf32>
    %11 = stablehlo.exponential_minus_one %10 : tensor<2x3xf32>
    %12 = stablehlo.subtract %9, %11 : tensor<2x3xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %14 = stablehlo.divide %12, %13 : tensor<2x3xf32>
    %15 = stablehlo.add %9, %11 : tensor<2x3xf32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %17 = stablehlo.add %15, %16 : tensor<2x3xf32>
    %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %18 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %19 = stablehlo.divide %17, %18 : tensor<2x3xf32>
    %20 = stablehlo.multiply %7, %19 : tensor<2x3xf32>
    %21 = stablehlo.multiply %8, %14 : tensor<2x3xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %23 = stablehlo.complex %22, %21 : tensor<2x3xcomplex<f32>>
    %24 = stablehlo.complex %20, %21 : tensor<2x3xcomplex<f32>>
    %25 = stablehlo.select %6, %23, %24 : tensor<2x3xi1>, tensor<2x3xcomplex<f32>>
    %26 = stablehlo.log %cst_0 : tensor<2x3xcomplex<f32>>
    %expected_0 = stablehlo.constant dense<"0x20B77B40418309402CA833BD5D47C43D40510A3FA46A57BFDDA22D410F3687414AF189BF7BB69F3F4555EA3E1A57EF3D"> : tensor<2x3xcomplex<f32>>
    %expected_1 = stablehlo.constant dense<"0xC262CA3F5FAA40400000803FC2624A4002FF8040C2624A3F"> : tensor<2x3xf32>
    %expected_2 = stablehlo.constant dense<"0x89DF9E3FA7404E3EB2D91D3FC896CF3FF304353FF30435BF3DAEE03FB3D7913EB6A9C03F5514AABFB3D7113E3DAE603F"> : tensor<2x3xcomplex<f32>>
    %expected_3 = stablehlo.constant dense<"0x7DF98F3F5FFB163D4A583BC0A3CF11C000000000FE6C96BF5BFC5E3E9DEB94BFEB795141DF97BFC129FB33BF06453D3E"> : tensor<2x3xcomplex<f32>>
    %expected_4 = stablehlo.constant dense<"0xA44EC13F41A0E23D9649423FA8239B3F8E5D933F7DBCA4BE4819E73FBC1C293E7AD4D53F781A5ABF302B513F41A0E23D"> : tensor<2x3xcomplex<f32>>
    return %0, %1, %2, %25, %26, %expected_0, %expected_1, %expected_2, %expected_3, %expected_4 : tensor<2x3xcomplex<f32>>, tensor<2x3xf32>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xf32>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>
  }
}

// -----
// real and imaginary parts
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xcomplex<f32>>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(1.500000e+00,5.000000e-01), (-2.250000e+00,2.000000e+00), (0.000000e+00,-1.000000e+00)], [(3.000000e+00,1.000000e+00), (5.000000e-01,-4.000000e+00), (-7.500000e-01,2.500000e-01)]]> : tensor<2x3xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.real %cst : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %1 = stablehlo.imag %cst : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>
    %2 = stablehlo.complex %cst_0, %cst_1 : tensor<2x3xcomplex<f32>>
    %expected_0 = stablehlo.constant dense<"0x0000C03F000010C000000000000040400000003F000040BF"> : tensor<2x3xf32>
    %expected_1 = stablehlo.constant dense<"0x0000003F00000040000080BF0000803F000080C00000803E"> : tensor<2x3xf32>
    %expected_2 = stablehlo.constant dense<"0x0000C03F0000003F000010C00000004000000000000080BF000040400000803F0000003F000080C0000040BF0000803E"> : tensor<2x3xcomplex<f32>>
    return %0, %1, %2, %expected_0, %expected_1, %expected_2 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xcomplex<f32>>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xcomplex<f32>>
  }
}

// -----
// broadcast_in_dim
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<3x4x2xf32>, tensor<3x4x2xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, 3.000000e+00], [-2.250000e+00, 5.000000e-01], [0.000000e+00, -7.500000e-01]]> : tensor<3x2xf32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [0, 2] : (tensor<3x2xf32>) -> tensor<3x4x2xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F000040400000C03F000040400000C03F000040400000C03F00004040000010C00000003F000010C00000003F000010C00000003F000010C00000003F00000000000040BF00000000000040BF00000000000040BF00000000000040BF"> : tensor<3x4x2xf32>
    return %0, %expected_0 : tensor<3x4x2xf32>, tensor<3x4x2xf32>
  }
}

// -----
// reshape and transpose
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<4x6xf32>, tensor<4x2x3xf32>, tensor<4x6xf32>, tensor<4x2x3xf32>) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01], [2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00], [6.000000e+00, 7.000000e+00, 8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01], [1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01, 1.600000e+01, 1.700000e+01], [1.800000e+01, 1.900000e+01, 2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]> : tensor<4x6xf32>
    %0 = stablehlo.transpose %cst, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x000000000000803F0000004000004040000080400000A0400000C0400000E0400000004100001041000020410000304100004041000050410000604100007041000080410000884100009041000098410000A0410000A8410000B0410000B841"> : tensor<4x6xf32>
    %expected_1 = stablehlo.constant dense<"0x00000000000080400000004100004041000080410000A0410000803F0000A0400000104100005041000088410000A841000000400000C0400000204100006041000090410000B041000040400000E0400000304100007041000098410000B841"> : tensor<4x2x3xf32>
    return %cst_0, %0, %expected_0, %expected_1 : tensor<4x6xf32>, tensor<4x2x3xf32>, tensor<4x6xf32>, tensor<4x2x3xf32>
  }
}

// -----
// slice
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
    %cst = stablehlo.constant dense<[[[4.000000e+00, 6.000000e+00], [8.000000e+00, 1.000000e+01]], [[1.600000e+01, 1.800000e+01], [2.000000e+01, 2.200000e+01]]]> : tensor<2x2x2xf32>
    %expected_0 = stablehlo.constant dense<"0x000080400000C040000000410000204100008041000090410000A0410000B041"> : tensor<2x2x2xf32>
    return %cst, %expected_0 : tensor<2x2x2xf32>, tensor<2x2x2xf32>
  }
}

// -----
// reverse
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01], [2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]]> : tensor<2x3x4xf32>
    %0 = stablehlo.reverse %cst, dims = [0, 2] : tensor<2x3x4xf32>
    %expected_0 = stablehlo.constant dense<"0x00007041000060410000504100004041000098410000904100008841000080410000B8410000B0410000A8410000A04100004040000000400000803F000000000000E0400000C0400000A0400000804000003041000020410000104100000041"> : tensor<2x3x4xf32>
    return %0, %expected_0 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  }
}

// -----
// pad
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<9.000000e+00> : tensor<f32>
    %0 = stablehlo.pad %cst, %cst_0, low = [1, -1], high = [0, 2], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x4xf32>
    %expected_0 = stablehlo.constant dense<"0x00001041000010410000104100001041000010C0000000000000104100001041000010410000104100001041000010410000003F000040BF0000104100001041"> : tensor<4x4xf32>
    return %0, %expected_0 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----
// concatenate
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x9xf32>, tensor<2x9xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.concatenate %cst, %cst_0, %cst, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x9xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F000010C0000000000000003F00000040000080BF0000C03F000010C000000000000040400000003F000040BF0000803F000080C00000803E000040400000003F000040BF"> : tensor<2x9xf32>
    return %0, %expected_0 : tensor<2x9xf32>, tensor<2x9xf32>
  }
}

// -----
// iota
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<5xi32>, tensor<2x3xf32>, tensor<5xi32>, tensor<2x3xf32>) {
    %0 = stablehlo.iota dim = 0 : tensor<5xi32>
    %1 = stablehlo.iota dim = 1 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000000001000000020000000300000004000000"> : tensor<5xi32>
    %expected_1 = stablehlo.constant dense<"0x000000000000803F00000040000000000000803F00000040"> : tensor<2x3xf32>
    return %0, %1, %expected_0, %expected_1 : tensor<5xi32>, tensor<2x3xf32>, tensor<5xi32>, tensor<2x3xf32>
  }
}

// -----
// dynamic_slice
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x2x3xf32>, tensor<1x2x3xf32>) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01], [2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]]> : tensor<2x3x4xf32>
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_0 = stablehlo.constant dense<2> : tensor<i64>
    %c_1 = stablehlo.constant dense<3> : tensor<i64>
    %0 = stablehlo.dynamic_slice %cst, %c, %c_0, %c_1, sizes = [1, 2, 3] : (tensor<2x3x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000884100009041000098410000A8410000B0410000B841"> : tensor<1x2x3xf32>
    return %0, %expected_0 : tensor<1x2x3xf32>, tensor<1x2x3xf32>
  }
}

// -----
// dynamic_update_slice
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01], [2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<[[[1.000000e+02, 1.010000e+02], [1.040000e+02, 1.050000e+02]]]> : tensor<1x2x2xf32>
    %c = stablehlo.constant dense<1> : tensor<i64>
    %c_1 = stablehlo.constant dense<2> : tensor<i64>
    %c_2 = stablehlo.constant dense<1> : tensor<i64>
    %0 = stablehlo.dynamic_update_slice %cst, %cst_0, %c, %c_1, %c_2 : (tensor<2x3x4xf32>, tensor<1x2x2xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3x4xf32>
    %expected_0 = stablehlo.constant dense<"0x000000000000803F0000004000004040000080400000A0400000C0400000E0400000004100001041000020410000304100004041000050410000604100007041000080410000C8420000CA42000098410000A0410000D0420000D2420000B841"> : tensor<2x3x4xf32>
    return %0, %expected_0 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  }
}

// -----
// gather of rows
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01], [2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]]> : tensor<2x3x4xf32>
    %c = stablehlo.constant dense<[2, 0, 2]> : tensor<3xi64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %c_1 = stablehlo.constant dense<3> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %3 = stablehlo.add %c, %2 : tensor<3xi64>
    %4 = stablehlo.select %1, %3, %c : tensor<3xi1>, tensor<3xi64>
    %5 = stablehlo.convert %4 : (tensor<3xi64>) -> tensor<3xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %7 = "stablehlo.gather"(%cst, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 1, 4>}> : (tensor<2x3x4xf32>, tensor<3x1xi32>) -> tensor<2x3x4xf32>
    %expected_0 = stablehlo.constant dense<"0x00000041000010410000204100003041000000000000803F0000004000004040000000410000104100002041000030410000A0410000A8410000B0410000B841000040410000504100006041000070410000A0410000A8410000B0410000B841"> : tensor<2x3x4xf32>
    return %7, %expected_0 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  }
}

// -----
// gather of elements
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<[[2, 0], [1, 1]]> : tensor<2x2xi64>
    %0 = call @take_along_axis(%cst, %c) : (tensor<2x3xf32>, tensor<2x2xi64>) -> tensor<2x2xf32>
    %expected_0 = stablehlo.constant dense<"0x000000000000C03F0000003F0000003F"> : tensor<2x2xf32>
    return %0, %expected_0 : tensor<2x2xf32>, tensor<2x2xf32>
  }
  func.func private @take_along_axis(%arg0: tensor<2x3xf32>, %arg1: tensor<2x2xi64>) -> tensor<2x2xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<2x2xi64>) -> tensor<2x2xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2x2xi32>
    %2 = stablehlo.compare LT, %0, %1, SIGNED : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
    %c_0 = stablehlo.constant dense<3> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2x2xi32>
    %4 = stablehlo.add %0, %3 : tensor<2x2xi32>
    %5 = stablehlo.select %2, %4, %0 : tensor<2x2xi1>, tensor<2x2xi32>
    %6 = stablehlo.reshape %5 : (tensor<2x2xi32>) -> tensor<2x2x1xi32>
    %c_1 = stablehlo.constant dense<2> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2x2x1xi32>
    %8 = stablehlo.compare GE, %6, %7, SIGNED : (tensor<2x2x1xi32>, tensor<2x2x1xi32>) -> tensor<2x2x1xi1>
    %9 = stablehlo.broadcast_in_dim %c_1, dims = [2] : (tensor<1xi32>) -> tensor<1x1x1xi32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2] : (tensor<1x1x1xi32>) -> tensor<2x2x1xi32>
    %11 = stablehlo.compare LE, %6, %10, SIGNED : (tensor<2x2x1xi32>, tensor<2x2x1xi32>) -> tensor<2x2x1xi1>
    %12 = stablehlo.and %8, %11 : tensor<2x2x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %13 = stablehlo.reduce(%12 init: %c_3) applies stablehlo.and across dimensions = [2] : (tensor<2x2x1xi1>, tensor<i1>) -> tensor<2x2xi1>
    %14 = "stablehlo.gather"(%arg0, %6) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<2x3xf32>, tensor<2x2x1xi32>) -> tensor<2x2xf32>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %16 = stablehlo.select %13, %14, %15 : tensor<2x2xi1>, tensor<2x2xf32>
    return %16 : tensor<2x2xf32>
  }
}

// -----
// gather outside
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<[0, 5]> : tensor<2xi64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
    %c_1 = stablehlo.constant dense<2> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %3 = stablehlo.add %c, %2 : tensor<2xi64>
    %4 = stablehlo.select %1, %3, %c : tensor<2xi1>, tensor<2xi64>
    %5 = stablehlo.convert %4 : (tensor<2xi64>) -> tensor<2xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %7 = "stablehlo.gather"(%cst, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F000010C000000000000040400000003F000040BF"> : tensor<2x3xf32>
    return %7, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// gather of windows
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2x2xf32>, tensor<2x2x2xf32>) {
    %c = stablehlo.constant dense<[0, 1]> : tensor<2xi64>
    %cst = stablehlo.constant dense<[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]]> : tensor<3x4xf32>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
    %c_1 = stablehlo.constant dense<3> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %3 = stablehlo.add %c, %2 : tensor<2xi64>
    %4 = stablehlo.select %1, %3, %c : tensor<2xi1>, tensor<2xi64>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %5 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %6 = stablehlo.compare LT, %c, %5, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
    %c_3 = stablehlo.constant dense<4> : tensor<i64>
    %7 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %8 = stablehlo.add %c, %7 : tensor<2xi64>
    %9 = stablehlo.select %6, %8, %c : tensor<2xi1>, tensor<2xi64>
    %10 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xi64>) -> tensor<2x1xi64>
    %11 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<2xi64>) -> tensor<2x1xi64>
    %12 = stablehlo.concatenate %10, %11, dim = 1 : (tensor<2x1xi64>, tensor<2x1xi64>) -> tensor<2x2xi64>
    %13 = "stablehlo.gather"(%cst, %12) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 2, 2>}> : (tensor<3x4xf32>, tensor<2x2xi64>) -> tensor<2x2x2xf32>
    %expected_0 = stablehlo.constant dense<"0x000000000000803F000080400000A0400000A0400000C0400000104100002041"> : tensor<2x2x2xf32>
    return %13, %expected_0 : tensor<2x2x2xf32>, tensor<2x2x2xf32>
  }
}

// -----
// scatter add
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<[1, 0, 1]> : tensor<3xi64>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00]]> : tensor<1x3xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %c_2 = stablehlo.constant dense<2> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %3 = stablehlo.add %c, %2 : tensor<3xi64>
    %4 = stablehlo.select %1, %3, %c : tensor<3xi1>, tensor<3xi64>
    %5 = stablehlo.convert %4 : (tensor<3xi64>) -> tensor<3xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<3x3xf32>
    %8 = "stablehlo.scatter"(%cst, %6, %7) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %9 = stablehlo.add %arg0, %arg1 : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<3x1xi32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x00000040000080BE000080BF0000804000009040000030C0"> : tensor<2x3xf32>
    return %8, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// scatter multiply
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<[1, 0, 1]> : tensor<3xi64>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00]]> : tensor<1x3xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %c_2 = stablehlo.constant dense<2> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %3 = stablehlo.add %c, %2 : tensor<3xi64>
    %4 = stablehlo.select %1, %3, %c : tensor<3xi1>, tensor<3xi64>
    %5 = stablehlo.convert %4 : (tensor<3xi64>) -> tensor<3xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<3x3xf32>
    %8 = "stablehlo.scatter"(%cst, %6, %7) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %9 = stablehlo.multiply %arg0, %arg1 : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<3x1xi32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000403F000090C0000000800000403F00000040000040BF"> : tensor<2x3xf32>
    return %8, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// scatter min
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<[1, 0, 1]> : tensor<3xi64>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00]]> : tensor<1x3xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %c_2 = stablehlo.constant dense<2> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %3 = stablehlo.add %c, %2 : tensor<3xi64>
    %4 = stablehlo.select %1, %3, %c : tensor<3xi1>, tensor<3xi64>
    %5 = stablehlo.convert %4 : (tensor<3xi64>) -> tensor<3xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<3x3xf32>
    %8 = "stablehlo.scatter"(%cst, %6, %7) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %9 = stablehlo.minimum %arg0, %arg1 : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<3x1xi32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000003F000010C0000080BF0000003F0000003F000080BF"> : tensor<2x3xf32>
    return %8, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// scatter max
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<[1, 0, 1]> : tensor<3xi64>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00]]> : tensor<1x3xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %c_2 = stablehlo.constant dense<2> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %3 = stablehlo.add %c, %2 : tensor<3xi64>
    %4 = stablehlo.select %1, %3, %c : tensor<3xi1>, tensor<3xi64>
    %5 = stablehlo.convert %4 : (tensor<3xi64>) -> tensor<3xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<3x3xf32>
    %8 = "stablehlo.scatter"(%cst, %6, %7) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %9 = stablehlo.maximum %arg0, %arg1 : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<3x1xi32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F00000040000000000000404000000040000040BF"> : tensor<2x3xf32>
    return %8, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// scatter set
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<[1, 0, 7]> : tensor<3xi64>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00]]> : tensor<1x3xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi1>
    %c_2 = stablehlo.constant dense<2> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<3xi64>
    %3 = stablehlo.add %c, %2 : tensor<3xi64>
    %4 = stablehlo.select %1, %3, %c : tensor<3xi1>, tensor<3xi64>
    %5 = stablehlo.convert %4 : (tensor<3xi64>) -> tensor<3xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %7 = stablehlo.broadcast_in_dim %cst_0, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<3x3xf32>
    %8 = "stablehlo.scatter"(%cst, %6, %7) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      stablehlo.return %arg1 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<3x1xi32>, tensor<3x3xf32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000003F00000040000080BF0000003F00000040000080BF"> : tensor<2x3xf32>
    return %8, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// scatter_add of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi32>, tensor<2x3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[0, 2]> : tensor<2xi64>
    %c_1 = stablehlo.constant dense<[[2, 3], [-5, 4]]> : tensor<2x2xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %1 = stablehlo.compare LT, %c_0, %0, SIGNED : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi1>
    %c_3 = stablehlo.constant dense<3> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i64>) -> tensor<2xi64>
    %3 = stablehlo.add %c_0, %2 : tensor<2xi64>
    %4 = stablehlo.select %1, %3, %c_0 : tensor<2xi1>, tensor<2xi64>
    %5 = stablehlo.convert %4 : (tensor<2xi64>) -> tensor<2xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %7 = "stablehlo.scatter"(%c, %6, %c_1) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %8 = stablehlo.add %arg0, %arg1 : tensor<i32>
      stablehlo.return %8 : tensor<i32>
    }) : (tensor<2x3xi32>, tensor<2x1xi32>, tensor<2x2xi32>) -> tensor<2x3xi32>
    %expected_0 = stablehlo.constant dense<"0x09000000FDFFFFFF030000000700000005000000FCFFFFFF"> : tensor<2x3xi32>
    return %7, %expected_0 : tensor<2x3xi32>, tensor<2x3xi32>
  }
}

// -----
// scatter apply
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<1> : tensor<1xi64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i64>) -> tensor<1xi64>
    %1 = stablehlo.compare LT, %c, %0, SIGNED : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
    %c_1 = stablehlo.constant dense<2> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<1xi64>
    %3 = stablehlo.add %c, %2 : tensor<1xi64>
    %4 = stablehlo.select %1, %3, %c : tensor<1xi1>, tensor<1xi64>
    %5 = stablehlo.convert %4 : (tensor<1xi64>) -> tensor<1xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<1xi32>) -> tensor<1x1xi32>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x3xf32>
    %8 = "stablehlo.scatter"(%cst, %6, %7) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %9 = stablehlo.sine %arg0 : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<1x1xi32>, tensor<1x3xf32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F000010C000000000C381103E4477F53EE17F2EBF"> : tensor<2x3xf32>
    return %8, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// reduce sum
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %cst = stablehlo.constant dense<[[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00], [-3.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [-7.000000e+00, -6.000000e+00, -5.000000e+00, -4.000000e+00]], [[1.300000e+01, 1.400000e+01, 1.500000e+01, 1.600000e+01], [9.000000e+00, 1.000000e+01, 1.100000e+01, 1.200000e+01], [5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%cst init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %expected_0 = stablehlo.constant dense<"0x000010C10000C0C0000040C0000000000000D8410000F0410000044200001042"> : tensor<2x4xf32>
    return %0, %expected_0 : tensor<2x4xf32>, tensor<2x4xf32>
  }
}

// -----
// reduce prod
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %cst = stablehlo.constant dense<[[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00], [-3.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [-7.000000e+00, -6.000000e+00, -5.000000e+00, -4.000000e+00]], [[1.300000e+01, 1.400000e+01, 1.500000e+01, 1.600000e+01], [9.000000e+00, 1.000000e+01, 1.100000e+01, 1.200000e+01], [5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%cst init: %cst_0) applies stablehlo.multiply across dimensions = [1] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %expected_0 = stablehlo.constant dense<"0x0000A8410000C04100007041000000800040124400005244006090440000C044"> : tensor<2x4xf32>
    return %0, %expected_0 : tensor<2x4xf32>, tensor<2x4xf32>
  }
}

// -----
// reduce max
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %cst = stablehlo.constant dense<[[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00], [-3.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [-7.000000e+00, -6.000000e+00, -5.000000e+00, -4.000000e+00]], [[1.300000e+01, 1.400000e+01, 1.500000e+01, 1.600000e+01], [9.000000e+00, 1.000000e+01, 1.100000e+01, 1.200000e+01], [5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%cst init: %cst_0) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %expected_0 = stablehlo.constant dense<"0x0000803F00000040000040400000804000005041000060410000704100008041"> : tensor<2x4xf32>
    return %0, %expected_0 : tensor<2x4xf32>, tensor<2x4xf32>
  }
}

// -----
// reduce min
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %cst = stablehlo.constant dense<[[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00], [-3.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [-7.000000e+00, -6.000000e+00, -5.000000e+00, -4.000000e+00]], [[1.300000e+01, 1.400000e+01, 1.500000e+01, 1.600000e+01], [9.000000e+00, 1.000000e+01, 1.100000e+01, 1.200000e+01], [5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %0 = stablehlo.reduce(%cst init: %cst_0) applies stablehlo.minimum across dimensions = [1] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %expected_0 = stablehlo.constant dense<"0x0000E0C00000C0C00000A0C0000080C00000A0400000C0400000E04000000041"> : tensor<2x4xf32>
    return %0, %expected_0 : tensor<2x4xf32>, tensor<2x4xf32>
  }
}

// -----
// reduce mean
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x4xf32>, tensor<2x4xf32>) {
    %cst = stablehlo.constant dense<[[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00], [-3.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [-7.000000e+00, -6.000000e+00, -5.000000e+00, -4.000000e+00]], [[1.300000e+01, 1.400000e+01, 1.500000e+01, 1.600000e+01], [9.000000e+00, 1.000000e+01, 1.100000e+01, 1.200000e+01], [5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%cst init: %cst_0) applies stablehlo.add across dimensions = [1] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x4xf32>
    %cst_1 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %2 = stablehlo.divide %0, %1 : tensor<2x4xf32>
    %expected_0 = stablehlo.constant dense<"0x000040C0000000C0000080BF0000000000001041000020410000304100004041"> : tensor<2x4xf32>
    return %2, %expected_0 : tensor<2x4xf32>, tensor<2x4xf32>
  }
}

// -----
// reduce argmax
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x4xi64>, tensor<2x4xi64>) {
    %cst = stablehlo.constant dense<[[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00], [-3.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [-7.000000e+00, -6.000000e+00, -5.000000e+00, -4.000000e+00]], [[1.300000e+01, 1.400000e+01, 1.500000e+01, 1.600000e+01], [9.000000e+00, 1.000000e+01, 1.100000e+01, 1.200000e+01], [5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]]]> : tensor<2x3x4xf32>
    %0 = call @argmax(%cst) : (tensor<2x3x4xf32>) -> tensor<2x4xi64>
    %expected_0 = stablehlo.constant dense<"0x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"> : tensor<2x4xi64>
    return %0, %expected_0 : tensor<2x4xi64>, tensor<2x4xi64>
  }
  func.func private @argmax(%arg0: tensor<2x3x4xf32>) -> tensor<2x4xi64> {
    %0 = stablehlo.iota dim = 1 : tensor<2x3x4xi64>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<2x3x4xf32>, tensor<2x3x4xi64>, tensor<f32>, tensor<i64>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i64>
    }
    return %1#1 : tensor<2x4xi64>
  }
}

// -----
// reduce argmin
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x4xi64>, tensor<2x4xi64>) {
    %cst = stablehlo.constant dense<[[[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00], [-3.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [-7.000000e+00, -6.000000e+00, -5.000000e+00, -4.000000e+00]], [[1.300000e+01, 1.400000e+01, 1.500000e+01, 1.600000e+01], [9.000000e+00, 1.000000e+01, 1.100000e+01, 1.200000e+01], [5.000000e+00, 6.000000e+00, 7.000000e+00, 8.000000e+00]]]> : tensor<2x3x4xf32>
    %0 = call @argmin(%cst) : (tensor<2x3x4xf32>) -> tensor<2x4xi64>
    %expected_0 = stablehlo.constant dense<"0x02000000000000000200000000000000020000000000000002000000000000000200000000000000020000000000000002000000000000000200000000000000"> : tensor<2x4xi64>
    return %0, %expected_0 : tensor<2x4xi64>, tensor<2x4xi64>
  }
  func.func private @argmin(%arg0: tensor<2x3x4xf32>) -> tensor<2x4xi64> {
    %0 = stablehlo.iota dim = 1 : tensor<2x3x4xi64>
    %cst = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<2x3x4xf32>, tensor<2x3x4xi64>, tensor<f32>, tensor<i64>) -> (tensor<2x4xf32>, tensor<2x4xi64>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i64>, %arg4: tensor<i64>)  {
      %2 = stablehlo.compare LT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i64>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i64>
    }
    return %1#1 : tensor<2x4xi64>
  }
}

// -----
// reduce of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2xi64>, tensor<i64>, tensor<i32>, tensor<3xi32>, tensor<2xi64>, tensor<i64>, tensor<i32>, tensor<3xi32>) {
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %c_0 = stablehlo.constant dense<[[2, 3, -1], [-5, 4, 3]]> : tensor<2x3xi32>
    %0 = stablehlo.convert %c : (tensor<2x3xi32>) -> tensor<2x3xi64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.reduce(%0 init: %c_1) applies stablehlo.add across dimensions = [1] : (tensor<2x3xi64>, tensor<i64>) -> tensor<2xi64>
    %2 = stablehlo.convert %c_0 : (tensor<2x3xi32>) -> tensor<2x3xi64>
    %c_2 = stablehlo.constant dense<1> : tensor<i64>
    %3 = stablehlo.reduce(%2 init: %c_2) applies stablehlo.multiply across dimensions = [0, 1] : (tensor<2x3xi64>, tensor<i64>) -> tensor<i64>
    %c_3 = stablehlo.constant dense<-2147483648> : tensor<i32>
    %4 = stablehlo.reduce(%c init: %c_3) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<2x3xi32>, tensor<i32>) -> tensor<i32>
    %c_4 = stablehlo.constant dense<2147483647> : tensor<i32>
    %5 = stablehlo.reduce(%c_0 init: %c_4) applies stablehlo.minimum across dimensions = [0] : (tensor<2x3xi32>, tensor<i32>) -> tensor<3xi32>
    %expected_0 = stablehlo.constant dense<"0x04000000000000000900000000000000"> : tensor<2xi64>
    %expected_1 = stablehlo.constant dense<"0x6801000000000000"> : tensor<i64>
    %expected_2 = stablehlo.constant dense<"0x0C000000"> : tensor<i32>
    %expected_3 = stablehlo.constant dense<"0xFBFFFFFF03000000FFFFFFFF"> : tensor<3xi32>
    return %1, %3, %4, %5, %expected_0, %expected_1, %expected_2, %expected_3 : tensor<2xi64>, tensor<i64>, tensor<i32>, tensor<3xi32>, tensor<2xi64>, tensor<i64>, tensor<i32>, tensor<3xi32>
  }
}

// -----
// reduce by any body
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 6.250000e-02, 1.250000e-01, 1.875000e-01], [2.500000e-01, 3.125000e-01, 3.750000e-01, 4.375000e-01], [5.000000e-01, 5.625000e-01, 6.250000e-01, 6.875000e-01]], [[7.500000e-01, 8.125000e-01, 8.750000e-01, 9.375000e-01], [1.000000e+00, 1.062500e+00, 1.125000e+00, 1.187500e+00], [1.250000e+00, 1.312500e+00, 1.375000e+00, 1.437500e+00]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%cst init: %cst_0) across dimensions = [2] : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3xf32>
     reducer(%arg0: tensor<f32>, %arg1: tensor<f32>)  {
      %1 = stablehlo.add %arg0, %arg1 : tensor<f32>
      %2 = stablehlo.multiply %arg0, %arg1 : tensor<f32>
      %3 = stablehlo.add %1, %2 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }
    %expected_0 = stablehlo.constant dense<"0x00C0D63E008A0F4000AAAD40805D28410066914140F8E841"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// reduce_window max
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x3x3x2xf32>, tensor<1x3x3x2xf32>) {
    %cst = stablehlo.constant dense<[[[[-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00]], [[3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00]], [[2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00]]]]> : tensor<1x5x5x2xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%cst, %0) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %2 = stablehlo.maximum %arg0, %arg1 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<1x5x5x2xf32>, tensor<f32>) -> tensor<1x3x3x2xf32>
    %expected_0 = stablehlo.constant dense<"0x000000400000404000004040000040400000404000000040000040400000404000004040000040400000004000004040000000400000404000004040000000400000404000000040"> : tensor<1x3x3x2xf32>
    return %1, %expected_0 : tensor<1x3x3x2xf32>, tensor<1x3x3x2xf32>
  }
}

// -----
// reduce_window add
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>) {
    %cst = stablehlo.constant dense<[[[[-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00]], [[3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00]], [[2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00]]]]> : tensor<1x5x5x2xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%cst, %0) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<0> : tensor<4x2xi64>, window_dilations = array<i64: 1, 1, 1, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 1, 1, 1>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %2 = stablehlo.add %arg0, %arg1 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<1x5x5x2xf32>, tensor<f32>) -> tensor<1x4x4x2xf32>
    %expected_0 = stablehlo.constant dense<"0x000000C000000040000080BF0000404000000000000040C00000803F000000C00000404000000000000040C00000803F000000C000000040000080BF000040400000803F000000C000000040000080BF0000404000000000000040C00000803F000080BF0000404000000000000040C00000803F000000C000000040000080BF"> : tensor<1x4x4x2xf32>
    return %1, %expected_0 : tensor<1x4x4x2xf32>, tensor<1x4x4x2xf32>
  }
}

// -----
// reduce_window of a long window
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<4xf64>, tensor<4xf64>) {
    %0 = stablehlo.iota dim = 0 : tensor<40xf64>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<f64>
    %2 = "stablehlo.reduce_window"(%0, %1) <{base_dilations = array<i64: 1>, padding = dense<0> : tensor<1x2xi64>, window_dilations = array<i64: 1>, window_dimensions = array<i64: 33>, window_strides = array<i64: 2>}> ({
    ^bb0(%arg0: tensor<f64>, %arg1: tensor<f64>):
      %3 = stablehlo.add %arg0, %arg1 : tensor<f64>
      stablehlo.return %3 : tensor<f64>
    }) : (tensor<40xf64>, tensor<f64>) -> tensor<4xf64>
    %expected_0 = stablehlo.constant dense<"0x000000000080804000000000009082400000000000A084400000000000B08640"> : tensor<4xf64>
    return %2, %expected_0 : tensor<4xf64>, tensor<4xf64>
  }
}

// -----
// cumulative sums
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01], [2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<[[5.000000e-01, 2.000000e+00, -1.000000e+00], [1.000000e+00, -4.000000e+00, 2.500000e-01]]> : tensor<2x3xf32>
    %0 = call @cumsum(%cst) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %1 = call @cummax(%cst_0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = call @cumprod(%cst_1) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x000000000000803F0000004000004040000080400000C04000000041000020410000404100007041000090410000A841000040410000504100006041000070410000E0410000F04100000042000008420000404200004C420000584200006442"> : tensor<2x3x4xf32>
    %expected_1 = stablehlo.constant dense<"0x0000C03F0000C03F0000C03F000040400000404000004040"> : tensor<2x3xf32>
    %expected_2 = stablehlo.constant dense<"0x0000003F000000C1000080BE0000803F000080C00000803E"> : tensor<2x3xf32>
    return %0, %1, %2, %expected_0, %expected_1, %expected_2 : tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
  func.func private @cumsum(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %0 = call @cumsum_0(%arg0) : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    return %0 : tensor<2x3x4xf32>
  }
  func.func private @cumsum_0(%arg0: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1, 1>, padding = dense<[[0, 0], [2, 0], [0, 0]]> : tensor<3x2xi64>, window_dilations = array<i64: 1, 1, 1>, window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
    return %1 : tensor<2x3x4xf32>
  }
  func.func private @cummax(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [2, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.maximum %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
  func.func private @cumprod(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%arg0, %cst) <{base_dilations = array<i64: 1, 1>, padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.multiply %arg1, %arg2 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}

// -----
// gradient of a pool
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x5x5x2xf64>, tensor<1x5x5x2xf64>) {
    %cst = stablehlo.constant dense<[[[[-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00]], [[3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00]], [[2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00]]]]> : tensor<1x5x5x2xf32>
    %0 = stablehlo.iota dim = 0 : tensor<50xf64>
    %1 = stablehlo.reshape %0 : (tensor<50xf64>) -> tensor<1x5x5x2xf64>
    %cst_0 = stablehlo.constant dense<1.000000e+02> : tensor<f64>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<1x5x5x2xf64>
    %3 = stablehlo.divide %1, %2 : tensor<1x5x5x2xf64>
    %4 = stablehlo.convert %cst : (tensor<1x5x5x2xf32>) -> tensor<1x5x5x2xf64>
    %5 = stablehlo.add %4, %3 : tensor<1x5x5x2xf64>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<1x2x2x2xf64>
    %cst_2 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
    %7 = stablehlo.pad %5, %cst_2, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x5x5x2xf64>, tensor<f64>) -> tensor<1x5x5x2xf64>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %8 = "stablehlo.select_and_scatter"(%7, %6, %cst_3) <{padding = dense<0> : tensor<4x2xi64>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
    ^bb0(%arg0: tensor<f64>, %arg1: tensor<f64>):
      %10 = stablehlo.compare GE, %arg0, %arg1, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }, {
    ^bb0(%arg0: tensor<f64>, %arg1: tensor<f64>):
      %10 = stablehlo.add %arg0, %arg1 : tensor<f64>
      stablehlo.return %10 : tensor<f64>
    }) : (tensor<1x5x5x2xf64>, tensor<1x2x2x2xf64>, tensor<f64>) -> tensor<1x5x5x2xf64>
    %9 = stablehlo.slice %8 [0:1, 0:5, 0:5, 0:2] : (tensor<1x5x5x2xf64>) -> tensor<1x5x5x2xf64>
    %expected_0 = stablehlo.constant dense<"0x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000F03F000000000000F03F00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000F03F000000000000F03F000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000F03F000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000F03F00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000F03F000000000000F03F000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"> : tensor<1x5x5x2xf64>
    return %9, %expected_0 : tensor<1x5x5x2xf64>, tensor<1x5x5x2xf64>
  }
}

// -----
// dot
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
    %cst = stablehlo.constant dense<[[-3.750000e+00, 1.050000e+01], [3.250000e+00, 8.125000e-01]]> : tensor<2x2xf32>
    %expected_0 = stablehlo.constant dense<"0x000070C000002841000050400000503F"> : tensor<2x2xf32>
    return %cst, %expected_0 : tensor<2x2xf32>, tensor<2x2xf32>
  }
}

// -----
// dot of batches
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01], [2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01]]]> : tensor<2x2x4xf32>
    %0 = stablehlo.dot_general %cst, %cst_0, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<2x2x4xf32>) -> tensor<2x3x2xf32>
    %expected_0 = stablehlo.constant dense<"0x0000604100001842000018420000FC4200007842000056430080374400806D4400806D4400C0994400C0914400C0BC44"> : tensor<2x3x2xf32>
    return %0, %expected_0 : tensor<2x3x2xf32>, tensor<2x3x2xf32>
  }
}

// -----
// dot of any dimensions
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01], [2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<[[[0.000000e+00, 4.000000e+00, 8.000000e+00], [1.200000e+01, 1.600000e+01, 2.000000e+01]], [[1.000000e+00, 5.000000e+00, 9.000000e+00], [1.300000e+01, 1.700000e+01, 2.100000e+01]], [[2.000000e+00, 6.000000e+00, 1.000000e+01], [1.400000e+01, 1.800000e+01, 2.200000e+01]], [[3.000000e+00, 7.000000e+00, 1.100000e+01], [1.500000e+01, 1.900000e+01, 2.300000e+01]]]> : tensor<4x2x3xf32>
    %0 = stablehlo.dot_general %cst, %cst_0, contracting_dims = [1, 2] x [2, 0], precision = [DEFAULT, DEFAULT] : (tensor<2x3x4xf32>, tensor<4x2x3xf32>) -> tensor<2x2xf32>
    %expected_0 = stablehlo.constant dense<"0x0000FD430040A2440040A24400A06E45"> : tensor<2x2xf32>
    return %0, %expected_0 : tensor<2x2xf32>, tensor<2x2xf32>
  }
}

// -----
// dot of integers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2xi32>, tensor<2x2xi32>) {
    %c = stablehlo.constant dense<[[5, -47], [47, -64]]> : tensor<2x2xi32>
    %expected_0 = stablehlo.constant dense<"0x05000000D1FFFFFF2F000000C0FFFFFF"> : tensor<2x2xi32>
    return %c, %expected_0 : tensor<2x2xi32>, tensor<2x2xi32>
  }
}

// -----
// dot of halves
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2xbf16>, tensor<2x2xbf16>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xbf16>
    %cst_0 = stablehlo.constant dense<[[5.000000e-01, 1.000000e+00], [2.000000e+00, -4.000000e+00], [-1.000000e+00, 2.500000e-01]]> : tensor<3x2xbf16>
    %0 = stablehlo.dot_general %cst, %cst_0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x3xbf16>, tensor<3x2xbf16>) -> tensor<2x2xbf16>
    %expected_0 = stablehlo.constant dense<"0x70C028415040503F"> : tensor<2x2xbf16>
    return %0, %expected_0 : tensor<2x2xbf16>, tensor<2x2xbf16>
  }
}

// -----
// dot of complex numbers
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(2.062500e+00,-7.500000e+00), (1.112500e+01,1.375000e+01)], [(1.112500e+01,1.375000e+01), (-7.250000e+00,1.625000e+00)]]> : tensor<2x2xcomplex<f32>>
    %expected_0 = stablehlo.constant dense<"0x000004400000F0C00000324100005C410000324100005C410000E8C00000D03F"> : tensor<2x2xcomplex<f32>>
    return %cst, %expected_0 : tensor<2x2xcomplex<f32>>, tensor<2x2xcomplex<f32>>
  }
}

// -----
// convolution
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x5x5x4xf32>, tensor<1x5x5x4xf32>) {
    %cst = stablehlo.constant dense<[[[[-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00]], [[3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00]], [[2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00]]]]> : tensor<1x5x5x2xf32>
    %cst_0 = stablehlo.constant dense<[[[[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]], [[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]]], [[[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00]], [[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]]], [[[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]], [[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]]]]> : tensor<3x3x2x4xf32>
    %0 = stablehlo.convolution(%cst, %cst_0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x5x5x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x5x5x4xf32>
    %expected_0 = stablehlo.constant dense<"0x00001041000080BF000080C1000080BF0000B0C1000080C00000604100004041000010C10000884100000041000030C100003041000040400000A0C0000050C1000000C0000090C10000803F00002041000040C0000030C10000C04000005041000080400000A041000080C0000040C00000A04100008040000088C1000040C0000050C10000A0C0000000C000003041000010C100002041000010410000E0C0000000400000E04000000040000050C1000060410000C8C10000803F000040C00000A0C0000050C10000104100003041000080400000A041000080C0000040C000000041000000C0000040C1000000C00000E0C0000040C0000010C1000020410000C8C10000604100005041000040C00000A0400000A04000000000000020C1000060410000C8C10000803F000040C0000040C00000E0C000001041000020410000E0C00000A04000004041000080400000884100000041000030C10000A0C0000040400000A0C0000050C100008040000000C200004040000050410000504100001041000020410000803F000090C1"> : tensor<1x5x5x4xf32>
    return %0, %expected_0 : tensor<1x5x5x4xf32>, tensor<1x5x5x4xf32>
  }
}

// -----
// convolution with strides
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x3x4x4xf32>, tensor<1x3x4x4xf32>) {
    %cst = stablehlo.constant dense<[[[[-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00]], [[3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00]], [[2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00]]]]> : tensor<1x5x5x2xf32>
    %cst_0 = stablehlo.constant dense<[[[[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]], [[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]]], [[[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00]], [[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]]], [[[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]], [[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]]]]> : tensor<3x3x2x4xf32>
    %0 = stablehlo.convolution(%cst, %cst_0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 2], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x5x5x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x3x4x4xf32>
    %expected_0 = stablehlo.constant dense<"0x0000B0C1000080C00000604100004041000010C10000884100000041000030C100003041000040400000A0C0000050C1000000C0000090C10000803F00002041000060410000C8C10000803F000040C00000A0C0000050C10000104100003041000080400000A041000080C0000040C000000041000000C0000040C1000000C00000884100000041000030C10000A0C0000040400000A0C0000050C100008040000000C200004040000050410000504100001041000020410000803F000090C1"> : tensor<1x3x4x4xf32>
    return %0, %expected_0 : tensor<1x3x4x4xf32>, tensor<1x3x4x4xf32>
  }
}

// -----
// convolution with dilations
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x4x8x4xf32>, tensor<1x4x8x4xf32>) {
    %cst = stablehlo.constant dense<[[[[-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00]], [[3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00]], [[2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00]]]]> : tensor<1x5x5x2xf32>
    %cst_0 = stablehlo.constant dense<[[[[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]], [[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]]], [[[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00]], [[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]]], [[[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]], [[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]]]]> : tensor<3x3x2x4xf32>
    %0 = stablehlo.convolution(%cst, %cst_0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 2], [0, 1]], lhs_dilate = [1, 2], rhs_dilate = [2, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x5x5x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x8x4xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C0400000C0C0000000C100000000000000C100000000000000410000C040000050410000803F000080BF000000C10000A040000000000000A0C00000A040000000C100000041000080BF0000A0400000804000000000000080C0000040C0000080BF0000C0C0000080BF00008040000080C0000000000000804000004040000000400000004100006041000020C10000E040000000C00000C0C00000A0C0000030C10000E0C00000E040000030410000803F00008040000000400000A0C000003041000000C10000E0C0000080400000A0C000004040000080C0000010410000A0400000A04000000000000020C1000040400000A0C0000040C0000010410000C0C0000000C1000000000000004100000000000000410000C0400000C0C00000803F000080BF000000C10000A0C0000000000000A0C00000A0400000A0C000000041000080BF0000A040000080C000000000000080C0000040C0000040400000C0C0000080BF0000804000008040000000000000804000004040000040C00000803F000050410000A0C0000000C100000000000000C10000C0C00000C0400000C0C00000C0400000004100000000000000000000000000000000000000000000C0C0000000C1000000000000004100000000000000410000C0400000C0C00000803F000080BF000000C10000A0C0000000000000A0C00000A0400000A0C0"> : tensor<1x4x8x4xf32>
    return %0, %expected_0 : tensor<1x4x8x4xf32>, tensor<1x4x8x4xf32>
  }
}

// -----
// convolution of groups
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x5x5x4xf32>, tensor<1x5x5x4xf32>) {
    %cst = stablehlo.constant dense<[[[[-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00]], [[3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00]], [[2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00]]]]> : tensor<1x5x5x2xf32>
    %cst_0 = stablehlo.constant dense<[[[[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]], [[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00]]], [[[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]], [[0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]]], [[[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00]], [[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]]]]> : tensor<3x3x1x4xf32>
    %0 = stablehlo.convolution(%cst, %cst_0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x5x5x2xf32>, tensor<3x3x1x4xf32>) -> tensor<1x5x5x4xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C0400000C0C00000C0C00000C040000080C1000020410000A0400000E0400000A0C00000C040000080C0000060C10000C0400000A0C00000C0C00000E04000008040000020C1000040400000C040000050C1000080C000008040000040C00000704100004041000030410000A0C000000041000030C1000060C1000080BF000050C10000704100002041000020410000A0C000000000000000C0000050C10000A040000040400000E0C00000204100007041000040C1000000C00000803F0000A0C1000000000000803F000000C00000704100004041000030410000A0C00000A040000000C1000000C10000A0400000A0C0000020410000204100001041000050C1000080BF000080BF000060C100000041000040C00000A0C00000304100007041000040C1000000C00000803F000050C1000000C0000000000000A0C0000080400000404000000041000080C00000C040000040C0000060C1000080C00000A0C0000010410000E0400000A040000080C10000E0C00000E0400000E0C00000C04000004040000020C100008040"> : tensor<1x5x5x4xf32>
    return %0, %expected_0 : tensor<1x5x5x4xf32>, tensor<1x5x5x4xf32>
  }
}

// -----
// convolution, channels first
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x5x5x4xf32>, tensor<1x5x5x4xf32>) {
    %cst = stablehlo.constant dense<[[[[-3.000000e+00, -1.000000e+00, 1.000000e+00, 3.000000e+00, -2.000000e+00], [0.000000e+00, 2.000000e+00, -3.000000e+00, -1.000000e+00, 1.000000e+00], [3.000000e+00, -2.000000e+00, 0.000000e+00, 2.000000e+00, -3.000000e+00], [-1.000000e+00, 1.000000e+00, 3.000000e+00, -2.000000e+00, 0.000000e+00], [2.000000e+00, -3.000000e+00, -1.000000e+00, 1.000000e+00, 3.000000e+00]], [[-2.000000e+00, 0.000000e+00, 2.000000e+00, -3.000000e+00, -1.000000e+00], [1.000000e+00, 3.000000e+00, -2.000000e+00, 0.000000e+00, 2.000000e+00], [-3.000000e+00, -1.000000e+00, 1.000000e+00, 3.000000e+00, -2.000000e+00], [0.000000e+00, 2.000000e+00, -3.000000e+00, -1.000000e+00, 1.000000e+00], [3.000000e+00, -2.000000e+00, 0.000000e+00, 2.000000e+00, -3.000000e+00]]]]> : tensor<1x2x5x5xf32>
    %cst_0 = stablehlo.constant dense<[[[[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]], [[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]]], [[[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00]], [[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]]], [[[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]], [[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]]]]> : tensor<3x3x2x4xf32>
    %0 = stablehlo.convolution(%cst, %cst_0) dim_numbers = [b, f, 0, 1]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x2x5x5xf32>, tensor<3x3x2x4xf32>) -> tensor<1x5x5x4xf32>
    %expected_0 = stablehlo.constant dense<"0x00001041000080BF000080C1000080BF0000B0C1000080C00000604100004041000010C10000884100000041000030C100003041000040400000A0C0000050C1000000C0000090C10000803F00002041000040C0000030C10000C04000005041000080400000A041000080C0000040C00000A04100008040000088C1000040C0000050C10000A0C0000000C000003041000010C100002041000010410000E0C0000000400000E04000000040000050C1000060410000C8C10000803F000040C00000A0C0000050C10000104100003041000080400000A041000080C0000040C000000041000000C0000040C1000000C00000E0C0000040C0000010C1000020410000C8C10000604100005041000040C00000A0400000A04000000000000020C1000060410000C8C10000803F000040C0000040C00000E0C000001041000020410000E0C00000A04000004041000080400000884100000041000030C10000A0C0000040400000A0C0000050C100008040000000C200004040000050410000504100001041000020410000803F000090C1"> : tensor<1x5x5x4xf32>
    return %0, %expected_0 : tensor<1x5x5x4xf32>, tensor<1x5x5x4xf32>
  }
}

// -----
// convolution of groups of the batch
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x5x5x4xf32>, tensor<1x5x5x4xf32>) {
    %cst = stablehlo.constant dense<[[[[-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00]], [[3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00]], [[2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00]]]]> : tensor<1x5x5x2xf32>
    %cst_0 = stablehlo.constant dense<[[[[3.000000e+00, 2.000000e+00], [1.000000e+00, -0.000000e+00], [-1.000000e+00, -2.000000e+00], [-3.000000e+00, 3.000000e+00], [2.000000e+00, 1.000000e+00]], [[-0.000000e+00, -1.000000e+00], [-2.000000e+00, -3.000000e+00], [3.000000e+00, 2.000000e+00], [1.000000e+00, -0.000000e+00], [-1.000000e+00, -2.000000e+00]], [[-3.000000e+00, 3.000000e+00], [2.000000e+00, 1.000000e+00], [-0.000000e+00, -1.000000e+00], [-2.000000e+00, -3.000000e+00], [3.000000e+00, 2.000000e+00]], [[1.000000e+00, -0.000000e+00], [-1.000000e+00, -2.000000e+00], [-3.000000e+00, 3.000000e+00], [2.000000e+00, 1.000000e+00], [-0.000000e+00, -1.000000e+00]], [[-2.000000e+00, -3.000000e+00], [3.000000e+00, 2.000000e+00], [1.000000e+00, -0.000000e+00], [-1.000000e+00, -2.000000e+00], [-3.000000e+00, 3.000000e+00]]]]> : tensor<1x5x5x2xf32>
    %cst_1 = stablehlo.constant dense<[[[[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]], [[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]]], [[[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00]], [[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]]], [[[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]], [[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]]]]> : tensor<3x3x2x4xf32>
    %0 = stablehlo.concatenate %cst, %cst_0, dim = 0 : (tensor<1x5x5x2xf32>, tensor<1x5x5x2xf32>) -> tensor<2x5x5x2xf32>
    %1 = stablehlo.convolution(%0, %cst_1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x5x5x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x5x5x4xf32>
    %expected_0 = stablehlo.constant dense<"0x00001041000080BF000080410000803F0000B0C1000080C0000060C1000040C1000010C100008841000000C10000304100003041000040400000A04000005041000000C0000090C1000080BF000020C1000040C0000030C10000C0C0000050C1000080400000A04100008040000040400000A041000080400000884100004040000050C10000A0C000000040000030C1000010C100002041000010C10000E040000000400000E040000000C000005041000060410000C8C1000080BF000040400000A0C0000050C1000010C1000030C1000080400000A041000080400000404000000041000000C000004041000000400000E0C0000040C000001041000020C10000C8C100006041000050C1000040400000A0400000A0400000000000002041000060410000C8C1000080BF00004040000040C00000E0C0000010C1000020C10000E0C00000A040000040C1000080C00000884100000041000030410000A040000040400000A0C000005041000080C0000000C200004040000050C1000050C10000104100002041000080BF00009041"> : tensor<1x5x5x4xf32>
    return %1, %expected_0 : tensor<1x5x5x4xf32>, tensor<1x5x5x4xf32>
  }
}

// -----
// convolution along one dimension
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<5x5x4xf32>, tensor<5x5x4xf32>) {
    %cst = stablehlo.constant dense<[[[-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00]], [[3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00]], [[2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00]]]> : tensor<5x5x2xf32>
    %cst_0 = stablehlo.constant dense<[[[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]], [[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]]]> : tensor<3x2x4xf32>
    %0 = stablehlo.convolution(%cst, %cst_0) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[1, 1]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<5x5x2xf32>, tensor<3x2x4xf32>) -> tensor<5x5x4xf32>
    %expected_0 = stablehlo.constant dense<"0x000000C0000000C10000803F0000A040000080C0000040400000A040000000400000C040000000410000A040000040C000001041000080BF000080C1000080BF000060C1000000C00000A0400000E040000000C1000000C0000080400000A040000030410000E040000000C0000080C100000000000080C1000000C00000E040000080C0000040400000A04000000040000040400000A040000000400000C0C00000E04000008040000060C1000000C0000080C1000040C00000A040000000410000C0C0000000400000A04000004040000030410000E040000000C0000080C1000080BF000080C1000080BF000010410000C0C0000080C0000040400000A0400000C040000000410000A040000040C000001041000080BF000080C1000080BF000080C1000040C00000A04000000041000000400000A04000004040000080C00000104100001041000080BF000080C100000000000080C1000000C00000E040000080C0000040400000A040000000400000C040000000410000A040000040C00000A040000000C0000060C100008040"> : tensor<5x5x4xf32>
    return %0, %expected_0 : tensor<5x5x4xf32>, tensor<5x5x4xf32>
  }
}

// -----
// transposed convolution
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<1x10x10x4xf32>, tensor<1x10x10x4xf32>) {
    %cst = stablehlo.constant dense<[[[[-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00]], [[3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00], [2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00], [-2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00]], [[2.000000e+00, 3.000000e+00], [-3.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00], [3.000000e+00, -3.000000e+00]]]]> : tensor<1x5x5x2xf32>
    %cst_0 = stablehlo.constant dense<[[[[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]], [[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]]], [[[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]], [[0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00], [-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00]], [[-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00], [2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00]]], [[[1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00, -2.000000e+00]], [[-1.000000e+00, 0.000000e+00, 1.000000e+00, 2.000000e+00], [-2.000000e+00, -1.000000e+00, 0.000000e+00, 1.000000e+00]], [[2.000000e+00, -2.000000e+00, -1.000000e+00, 0.000000e+00], [1.000000e+00, 2.000000e+00, -2.000000e+00, -1.000000e+00]]]]> : tensor<3x3x2x4xf32>
    %0 = stablehlo.convolution(%cst, %cst_0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x5x5x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x10x10x4xf32>
    %expected_0 = stablehlo.constant dense<"0x000000C1000000400000E040000000400000E04000000040000040C0000000C10000A0C00000C0C0000040400000E0400000803F00000000000080BF000000C00000404000000000000040C0000080BF0000A0C0000000C00000803F0000804000008040000000C10000A040000000C000004040000040400000404000004040000000C00000A040000000C100008040000080400000803F000000C00000A0C0000000400000E04000000040000040C000000040000040C0000000C1000000400000C0C0000040400000E0400000803F00000000000080BF000000C00000004000000000000040C0000080BF0000803F000000C00000803F0000804000000040000000C10000A040000000C00000803F000040400000404000004040000040C10000A040000000C1000080400000803F0000803F000000C00000A0C00000004000000041000080400000A0C0000010C10000A0C0000010C1000000400000004100002041000020410000A0C0000020C1000010C10000A0C00000804000000041000010C10000004100002041000040C0000000410000C040000080BF000050C100000000000000C100008040000030410000804000004040000050C10000803F0000A0C000008040000000C0000040C00000E0C00000E0C0000040400000004100000040000000C0000080BF00000000000080BF000000000000803F00000040000040400000C0C00000A0C00000803F000040C0000000400000E0400000004000001041000010410000C0C00000C0C000000040000040C0000000C1000000400000C0C0000040400000E0400000803F00000000000080BF000000C00000004000000000000040C0000080BF0000803F000000C00000803F00008040000000400000803F000050C1000040400000804000004040000080400000A0400000803F000000C1000000000000E0C0000030410000C0400000004100000000000050C100000041000010C10000C0C0000040C00000A0C0000010C1000000400000004100002041000020410000A0C0000020C1000010C10000A0C00000804000000041000010C10000004100002041000040C0000000410000C040000080BF000050C1000040C1000040400000404000004040000040400000404000004040000040C10000A040000000C1000080400000803F0000803F000000C00000A0C000000040000040C000000000000040400000803F000080BF000000000000803F00000040000040400000C0C00000A0C00000803F000040C0000000400000E0400000004000001041000010410000C0C00000C0C000000040000040C0000000C1000000400000803F0000A04000008040000040400000804000004040000050C10000803F0000A0C000008040000000C0000040C00000E0C00000E0C00000404000000041000080400000A0C00000C040000040C000004040000080400000A0400000803F000000C1000000000000E0C0000030410000C0400000004100000000000050C100000041000010C10000C0C0000040C00000A0C0000010C10000004000000041000000400000803F00000000000080BF00000000000080BF000000C00000004000000000000040C0000080BF0000803F000000C00000803F0000804000000040000000C10000A040000000C00000803F000040400000404000004040000040C10000A040000000C1000080400000803F0000803F000000C00000A0C000000040000040C000000000000040400000803F000080BF000000000000803F000000400000004100000040000010C10000A0C0000010C10000A0C00000804000000041000010C10000004100002041000040C0000000410000C040000080BF000050C100000000000000C100008040000030410000804000004040000050C10000803F0000A0C000008040000000C0000040C00000E0C00000E0C00000404000000041000080400000A0C00000C040000040C000004040000080400000A0400000803F00000040000000C1000040C000000040000040C0000000400000E0400000004000001041000010410000C0C00000C0C000000040000040C0000000C1000000400000C0C0000040400000E0400000803F00000000000080BF000000C00000004000000000000040C0000080BF0000803F000000C00000803F0000804000000040000000C10000A040000000C00000803F000040400000404000004040000040C1"> : tensor<1x10x10x4xf32>
    return %0, %expected_0 : tensor<1x10x10x4xf32>, tensor<1x10x10x4xf32>
  }
}

// -----
// sort
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<[[7, -3, 0], [12, 5, -8]]> : tensor<2x3xi32>
    %cst_0 = stablehlo.constant dense<[[-1.500000e+00, 2.250000e+00, -0.000000e+00], [-3.000000e+00, -5.000000e-01, 7.500000e-01]]> : tensor<2x3xf32>
    %0 = call @sort(%cst) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = call @sort_0(%c) : (tensor<2x3xi32>) -> tensor<2x3xi32>
    %2 = call @sort_1(%cst_0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = stablehlo.negate %2 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x000010C0000000000000C03F000040BF0000003F00004040"> : tensor<2x3xf32>
    %expected_1 = stablehlo.constant dense<"0x07000000FDFFFFFFF8FFFFFF0C0000000500000000000000"> : tensor<2x3xi32>
    %expected_2 = stablehlo.constant dense<"0x0000C03F00000000000010C0000040400000003F000040BF"> : tensor<2x3xf32>
    return %0, %1, %3, %expected_0, %expected_1, %expected_2 : tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x3xf32>
  }
  func.func private @sort(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.select %1, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %4 = stablehlo.select %3, %cst_1, %2 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %5 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.select %5, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %8 = stablehlo.select %7, %cst_4, %6 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
  func.func private @sort_0(%arg0: tensor<2x3xi32>) -> tensor<2x3xi32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>):
      %1 = stablehlo.compare LT, %arg1, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }) : (tensor<2x3xi32>) -> tensor<2x3xi32>
    return %0 : tensor<2x3xi32>
  }
  func.func private @sort_1(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.select %1, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %4 = stablehlo.select %3, %cst_1, %2 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %5 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.select %5, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %7 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %8 = stablehlo.select %7, %cst_4, %6 : tensor<i1>, tensor<f32>
      %9 = stablehlo.compare LT, %4, %8, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}

// -----
// argsort
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xi64>, tensor<6xi64>, tensor<2x3xi64>, tensor<6xi64>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<[7, -3, 0, 12, 5, -8]> : tensor<6xi32>
    %0 = call @argsort(%cst) : (tensor<2x3xf32>) -> tensor<2x3xi64>
    %1 = call @argsort_0(%c) : (tensor<6xi32>) -> tensor<6xi64>
    %expected_0 = stablehlo.constant dense<"0x010000000000000002000000000000000000000000000000020000000000000001000000000000000000000000000000"> : tensor<2x3xi64>
    %expected_1 = stablehlo.constant dense<"0x050000000000000001000000000000000200000000000000040000000000000000000000000000000300000000000000"> : tensor<6xi64>
    return %0, %1, %expected_0, %expected_1 : tensor<2x3xi64>, tensor<6xi64>, tensor<2x3xi64>, tensor<6xi64>
  }
  func.func private @argsort(%arg0: tensor<2x3xf32>) -> tensor<2x3xi64> {
    %0 = stablehlo.iota dim = 1 : tensor<2x3xi64>
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>, %arg3: tensor<i64>, %arg4: tensor<i64>):
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %2 = stablehlo.compare EQ, %arg1, %cst, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.select %2, %cst_0, %arg1 : tensor<i1>, tensor<f32>
      %4 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_1 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %5 = stablehlo.select %4, %cst_1, %3 : tensor<i1>, tensor<f32>
      %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %6 = stablehlo.compare EQ, %arg2, %cst_2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %7 = stablehlo.select %6, %cst_3, %arg2 : tensor<i1>, tensor<f32>
      %8 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %cst_4 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
      %9 = stablehlo.select %8, %cst_4, %7 : tensor<i1>, tensor<f32>
      %10 = stablehlo.compare LT, %5, %9, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }) : (tensor<2x3xf32>, tensor<2x3xi64>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
    return %1#1 : tensor<2x3xi64>
  }
  func.func private @argsort_0(%arg0: tensor<6xi32>) -> tensor<6xi64> {
    %0 = stablehlo.iota dim = 0 : tensor<6xi64>
    %1:2 = "stablehlo.sort"(%arg0, %0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg1: tensor<i32>, %arg2: tensor<i32>, %arg3: tensor<i64>, %arg4: tensor<i64>):
      %2 = stablehlo.compare LT, %arg1, %arg2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    }) : (tensor<6xi32>, tensor<6xi64>) -> (tensor<6xi32>, tensor<6xi64>)
    return %1#1 : tensor<6xi64>
  }
}

// -----
// sort by two keys
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>) {
    %c = stablehlo.constant dense<[2, 1, 2, 1, 0]> : tensor<5xi64>
    %c_0 = stablehlo.constant dense<[3, 9, 1, 4, 7]> : tensor<5xi64>
    %0 = stablehlo.iota dim = 0 : tensor<5xi64>
    %1:3 = "stablehlo.sort"(%c, %c_0, %0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>, %arg2: tensor<i64>, %arg3: tensor<i64>, %arg4: tensor<i64>, %arg5: tensor<i64>):
      %2 = stablehlo.compare LT, %arg2, %arg3, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %3 = stablehlo.compare LT, %arg0, %arg1, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %4 = stablehlo.compare EQ, %arg0, %arg1, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %5 = stablehlo.and %4, %2 : tensor<i1>
      %6 = stablehlo.or %3, %5 : tensor<i1>
      stablehlo.return %6 : tensor<i1>
    }) : (tensor<5xi64>, tensor<5xi64>, tensor<5xi64>) -> (tensor<5xi64>, tensor<5xi64>, tensor<5xi64>)
    %expected_0 = stablehlo.constant dense<"0x00000000000000000100000000000000010000000000000002000000000000000200000000000000"> : tensor<5xi64>
    %expected_1 = stablehlo.constant dense<"0x07000000000000000400000000000000090000000000000001000000000000000300000000000000"> : tensor<5xi64>
    %expected_2 = stablehlo.constant dense<"0x04000000000000000300000000000000010000000000000002000000000000000000000000000000"> : tensor<5xi64>
    return %1#0, %1#1, %1#2, %expected_0, %expected_1, %expected_2 : tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>, tensor<5xi64>
  }
}

// -----
// top_k
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x2xf32>, tensor<2x2xi32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %values, %indices = chlo.top_k(%cst, k = 2) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
    %expected_0 = stablehlo.constant dense<"0x0000C03F00000000000040400000003F"> : tensor<2x2xf32>
    %expected_1 = stablehlo.constant dense<"0x00000000020000000000000001000000"> : tensor<2x2xi32>
    return %values, %indices, %expected_0, %expected_1 : tensor<2x2xf32>, tensor<2x2xi32>, tensor<2x2xf32>, tensor<2x2xi32>
  }
}

// -----
// while
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<i64>, tensor<2x3xf32>, tensor<i64>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %cst) : tensor<i64>, tensor<2x3xf32>
    cond {
      %c_1 = stablehlo.constant dense<5> : tensor<i64>
      %1 = stablehlo.compare LT, %iterArg, %c_1, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %c_1 = stablehlo.constant dense<1> : tensor<i64>
      %1 = stablehlo.add %iterArg, %c_1 : tensor<i64>
      %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %2 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
      %3 = stablehlo.multiply %iterArg_0, %2 : tensor<2x3xf32>
      stablehlo.return %1, %3 : tensor<i64>, tensor<2x3xf32>
    }
    %expected_0 = stablehlo.constant dense<"0x0500000000000000"> : tensor<i64>
    %expected_1 = stablehlo.constant dense<"0x00004042000090C2000000000000C042000080410000C0C1"> : tensor<2x3xf32>
    return %0#0, %0#1, %expected_0, %expected_1 : tensor<i64>, tensor<2x3xf32>, tensor<i64>, tensor<2x3xf32>
  }
}

// -----
// fori
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0:3 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %c, %iterArg_2 = %cst) : tensor<i64>, tensor<i64>, tensor<2x3xf32>
    cond {
      %c_3 = stablehlo.constant dense<4> : tensor<i64>
      %1 = stablehlo.compare LT, %iterArg, %c_3, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1:2 = func.call @closed_call(%iterArg_1, %iterArg_2) : (tensor<i64>, tensor<2x3xf32>) -> (tensor<i64>, tensor<2x3xf32>)
      %c_3 = stablehlo.constant dense<1> : tensor<i64>
      %2 = stablehlo.add %iterArg, %c_3 : tensor<i64>
      stablehlo.return %2, %1#0, %1#1 : tensor<i64>, tensor<i64>, tensor<2x3xf32>
    }
    %expected_0 = stablehlo.constant dense<"0x0000F040000070400000C040000010410000D0400000A840"> : tensor<2x3xf32>
    return %0#2, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
  func.func private @closed_call(%arg0: tensor<i64>, %arg1: tensor<2x3xf32>) -> (tensor<i64>, tensor<2x3xf32>) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %0 = stablehlo.add %arg0, %c : tensor<i64>
    %1 = stablehlo.convert %arg0 : (tensor<i64>) -> tensor<f32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %3 = stablehlo.add %arg1, %2 : tensor<2x3xf32>
    return %0, %3 : tensor<i64>, tensor<2x3xf32>
  }
}

// -----
// scan
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<3x4xf64>, tensor<2x3x4xf64>, tensor<3x4xf64>, tensor<2x3x4xf64>) {
    %cst = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01], [2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]]> : tensor<2x3x4xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f64>) -> tensor<3x4xf64>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f64>
    %1 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<2x3x4xf64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %2:4 = stablehlo.while(%iterArg = %cst, %iterArg_2 = %c, %iterArg_3 = %0, %iterArg_4 = %1) : tensor<2x3x4xf32>, tensor<i64>, tensor<3x4xf64>, tensor<2x3x4xf64>
    cond {
      %c_5 = stablehlo.constant dense<2> : tensor<i64>
      %3 = stablehlo.compare LT, %iterArg_2, %c_5, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_2) : (tensor<2x3x4xf32>, tensor<i64>) -> tensor<3x4xf32>
      %4:2 = func.call @closed_call(%iterArg_3, %3) : (tensor<3x4xf64>, tensor<3x4xf32>) -> (tensor<3x4xf64>, tensor<3x4xf64>)
      %5 = func.call @dynamic_update_index_in_dim(%iterArg_4, %4#1, %iterArg_2) : (tensor<2x3x4xf64>, tensor<3x4xf64>, tensor<i64>) -> tensor<2x3x4xf64>
      %c_5 = stablehlo.constant dense<1> : tensor<i64>
      %6 = stablehlo.add %iterArg_2, %c_5 : tensor<i64>
      stablehlo.return %iterArg, %6, %4#0, %5 : tensor<2x3x4xf32>, tensor<i64>, tensor<3x4xf64>, tensor<2x3x4xf64>
    }
    %expected_0 = stablehlo.constant dense<"0x00000000000028400000000000002C40000000000000304000000000000032400000000000003440000000000000364000000000000038400000000000003A400000000000003C400000000000003E4000000000000040400000000000004140"> : tensor<3x4xf64>
    %expected_1 = stablehlo.constant dense<"0x00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000002A400000000000003C400000000000804640000000000000504000000000004055400000000000005B400000000000A0604000000000000064400000000000A067400000000000806B400000000000A06F40"> : tensor<2x3x4xf64>
    return %2#2, %2#3, %expected_0, %expected_1 : tensor<3x4xf64>, tensor<2x3x4xf64>, tensor<3x4xf64>, tensor<2x3x4xf64>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<2x3x4xf32>, %arg1: tensor<i64>) -> tensor<3x4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 3, 4] : (tensor<2x3x4xf32>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<1x3x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
  func.func private @closed_call(%arg0: tensor<3x4xf64>, %arg1: tensor<3x4xf32>) -> (tensor<3x4xf64>, tensor<3x4xf64>) {
    %0 = stablehlo.convert %arg1 : (tensor<3x4xf32>) -> tensor<3x4xf64>
    %1 = stablehlo.add %arg0, %0 : tensor<3x4xf64>
    %2 = stablehlo.convert %arg1 : (tensor<3x4xf32>) -> tensor<3x4xf64>
    %3 = stablehlo.multiply %arg0, %2 : tensor<3x4xf64>
    return %1, %3 : tensor<3x4xf64>, tensor<3x4xf64>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<2x3x4xf64>, %arg1: tensor<3x4xf64>, %arg2: tensor<i64>) -> tensor<2x3x4xf64> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<3x4xf64>) -> tensor<1x3x4xf64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x3x4xf64>, tensor<1x3x4xf64>, tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<2x3x4xf64>
    return %1 : tensor<2x3x4xf64>
  }
}

// -----
// cond
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.reduce(%cst init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %1 = stablehlo.compare GT, %0, %cst_1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.convert %1 : (tensor<i1>) -> tensor<i32>
    %3 = "stablehlo.case"(%2) ({
      %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
      %5 = stablehlo.subtract %cst, %4 : tensor<2x3xf32>
      stablehlo.return %5 : tensor<2x3xf32>
    }, {
      %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %4 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
      %5 = stablehlo.add %cst, %4 : tensor<2x3xf32>
      stablehlo.return %5 : tensor<2x3xf32>
    }) : (tensor<i32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x000020400000A0BF0000803F000080400000C03F0000803E"> : tensor<2x3xf32>
    return %3, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// switch
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<2> : tensor<i32>
    %0 = stablehlo.clamp %c, %c_0, %c_1 : tensor<i32>
    %1 = "stablehlo.case"(%0) ({
      stablehlo.return %cst : tensor<2x3xf32>
    }, {
      %6 = stablehlo.negate %cst : tensor<2x3xf32>
      stablehlo.return %6 : tensor<2x3xf32>
    }, {
      %cst_8 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
      %7 = stablehlo.multiply %cst, %6 : tensor<2x3xf32>
      stablehlo.return %7 : tensor<2x3xf32>
    }) : (tensor<i32>) -> tensor<2x3xf32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %c_3 = stablehlo.constant dense<1> : tensor<i32>
    %c_4 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.clamp %c_2, %c_3, %c_4 : tensor<i32>
    %3 = "stablehlo.case"(%2) ({
      stablehlo.return %cst : tensor<2x3xf32>
    }, {
      %6 = stablehlo.negate %cst : tensor<2x3xf32>
      stablehlo.return %6 : tensor<2x3xf32>
    }, {
      %cst_8 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
      %7 = stablehlo.multiply %cst, %6 : tensor<2x3xf32>
      stablehlo.return %7 : tensor<2x3xf32>
    }) : (tensor<i32>) -> tensor<2x3xf32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %c_6 = stablehlo.constant dense<9> : tensor<i32>
    %c_7 = stablehlo.constant dense<2> : tensor<i32>
    %4 = stablehlo.clamp %c_5, %c_6, %c_7 : tensor<i32>
    %5 = "stablehlo.case"(%4) ({
      stablehlo.return %cst : tensor<2x3xf32>
    }, {
      %6 = stablehlo.negate %cst : tensor<2x3xf32>
      stablehlo.return %6 : tensor<2x3xf32>
    }, {
      %cst_8 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
      %6 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
      %7 = stablehlo.multiply %cst, %6 : tensor<2x3xf32>
      stablehlo.return %7 : tensor<2x3xf32>
    }) : (tensor<i32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000C03F000010C000000000000040400000003F000040BF"> : tensor<2x3xf32>
    %expected_1 = stablehlo.constant dense<"0x0000C0BF0000104000000080000040C0000000BF0000403F"> : tensor<2x3xf32>
    %expected_2 = stablehlo.constant dense<"0x000090400000D8C000000000000010410000C03F000010C0"> : tensor<2x3xf32>
    return %1, %3, %5, %expected_0, %expected_1, %expected_2 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// calls
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = call @"<lambda>"(%cst) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x72561340538A9A3C9C47373E11E37940B101133F6A41AE3C"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
  func.func private @"<lambda>"(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = call @relu(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %3 = stablehlo.maximum %2, %1 : tensor<2xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %6 = stablehlo.subtract %arg0, %5 : tensor<2x3xf32>
    %7 = stablehlo.exponential %6 : tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<2xf32>) -> tensor<2x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
    %11 = stablehlo.divide %7, %10 : tensor<2x3xf32>
    %12 = stablehlo.add %0, %11 : tensor<2x3xf32>
    return %12 : tensor<2x3xf32>
  }
  func.func private @relu(%arg0: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<2x3xf32>
    return %1 : tensor<2x3xf32>
  }
}

// -----
// random bits
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<5xui64>, tensor<5xui64>) {
    %c = stablehlo.constant dense<3> : tensor<i64>
    %c_0 = stablehlo.constant dense<32> : tensor<i64>
    %0 = stablehlo.shift_right_logical %c, %c_0 : tensor<i64>
    %1 = stablehlo.convert %0 : (tensor<i64>) -> tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<1xui32>
    %c_1 = stablehlo.constant dense<4294967295> : tensor<i64>
    %3 = stablehlo.and %c, %c_1 : tensor<i64>
    %4 = stablehlo.convert %3 : (tensor<i64>) -> tensor<ui32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<ui32>) -> tensor<1xui32>
    %6 = stablehlo.concatenate %2, %5, dim = 0 : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
    %7 = stablehlo.slice %6 [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %8 = stablehlo.reshape %7 : (tensor<1xui32>) -> tensor<ui32>
    %9 = stablehlo.slice %6 [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %10 = stablehlo.reshape %9 : (tensor<1xui32>) -> tensor<ui32>
    %11 = stablehlo.iota dim = 0 : tensor<5xui64>
    %c_2 = stablehlo.constant dense<1> : tensor<ui64>
    %12 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui64>) -> tensor<5xui64>
    %13 = stablehlo.multiply %12, %11 : tensor<5xui64>
    %c_3 = stablehlo.constant dense<32> : tensor<ui64>
    %14 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<ui64>) -> tensor<5xui64>
    %15 = stablehlo.shift_right_logical %13, %14 : tensor<5xui64>
    %16 = stablehlo.convert %13 : (tensor<5xui64>) -> tensor<5xui32>
    %17 = stablehlo.convert %15 : (tensor<5xui64>) -> tensor<5xui32>
    %18:2 = call @threefry2x32(%8, %10, %17, %16) : (tensor<ui32>, tensor<ui32>, tensor<5xui32>, tensor<5xui32>) -> (tensor<5xui32>, tensor<5xui32>)
    %19 = stablehlo.convert %18#0 : (tensor<5xui32>) -> tensor<5xui64>
    %20 = stablehlo.convert %18#1 : (tensor<5xui32>) -> tensor<5xui64>
    %c_4 = stablehlo.constant dense<32> : tensor<ui64>
    %21 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<ui64>) -> tensor<5xui64>
    %22 = stablehlo.shift_left %19, %21 : tensor<5xui64>
    %23 = stablehlo.or %22, %20 : tensor<5xui64>
    %expected_0 = stablehlo.constant dense<"0xE57E7FCF9B638ADD8E0E2F844B340574ECC2329B32CE103D2BAB8ACD1BE748349DA07C1633653F51"> : tensor<5xui64>
    return %23, %expected_0 : tensor<5xui64>, tensor<5xui64>
  }
  func.func private @threefry2x32(%arg0: tensor<ui32>, %arg1: tensor<ui32>, %arg2: tensor<5xui32>, %arg3: tensor<5xui32>) -> (tensor<5xui32>, tensor<5xui32>) {
    %c = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>
    %c_0 = stablehlo.constant dense<[17, 29, 16, 24]> : tensor<4xui32>
    %0 = stablehlo.xor %arg0, %arg1 : tensor<ui32>
    %c_1 = stablehlo.constant dense<466688986> : tensor<ui32>
    %1 = stablehlo.xor %0, %c_1 : tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %3 = stablehlo.add %arg2, %2 : tensor<5xui32>
    %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %5 = stablehlo.add %arg3, %4 : tensor<5xui32>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %c_3 = stablehlo.constant dense<0> : tensor<i64>
    %6:9 = stablehlo.while(%iterArg = %c_3, %iterArg_4 = %c_2, %iterArg_5 = %3, %iterArg_6 = %5, %iterArg_7 = %arg1, %iterArg_8 = %1, %iterArg_9 = %arg0, %iterArg_10 = %c, %iterArg_11 = %c_0) : tensor<i64>, tensor<i64>, tensor<5xui32>, tensor<5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
    cond {
      %c_12 = stablehlo.constant dense<5> : tensor<i64>
      %7 = stablehlo.compare LT, %iterArg, %c_12, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    } do {
      %7:8 = func.call @closed_call(%iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11) : (tensor<i64>, tensor<5xui32>, tensor<5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<5xui32>, tensor<5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>)
      %c_12 = stablehlo.constant dense<1> : tensor<i64>
      %8 = stablehlo.add %iterArg, %c_12 : tensor<i64>
      stablehlo.return %8, %7#0, %7#1, %7#2, %7#3, %7#4, %7#5, %7#6, %7#7 : tensor<i64>, tensor<i64>, tensor<5xui32>, tensor<5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
    }
    return %6#2, %6#3 : tensor<5xui32>, tensor<5xui32>
  }
  func.func private @closed_call(%arg0: tensor<i64>, %arg1: tensor<5xui32>, %arg2: tensor<5xui32>, %arg3: tensor<ui32>, %arg4: tensor<ui32>, %arg5: tensor<ui32>, %arg6: tensor<4xui32>, %arg7: tensor<4xui32>) -> (tensor<i64>, tensor<5xui32>, tensor<5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %0 = stablehlo.add %arg0, %c : tensor<i64>
    %1 = stablehlo.slice %arg6 [0:1] : (tensor<4xui32>) -> tensor<1xui32>
    %2 = stablehlo.reshape %1 : (tensor<1xui32>) -> tensor<ui32>
    %3 = stablehlo.add %arg1, %arg2 : tensor<5xui32>
    %4 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %5 = stablehlo.shift_left %arg2, %4 : tensor<5xui32>
    %c_0 = stablehlo.constant dense<32> : tensor<ui32>
    %6 = stablehlo.subtract %c_0, %2 : tensor<ui32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %8 = stablehlo.shift_right_logical %arg2, %7 : tensor<5xui32>
    %9 = stablehlo.or %5, %8 : tensor<5xui32>
    %10 = stablehlo.xor %3, %9 : tensor<5xui32>
    %11 = stablehlo.slice %arg6 [1:2] : (tensor<4xui32>) -> tensor<1xui32>
    %12 = stablehlo.reshape %11 : (tensor<1xui32>) -> tensor<ui32>
    %13 = stablehlo.add %3, %10 : tensor<5xui32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %15 = stablehlo.shift_left %10, %14 : tensor<5xui32>
    %c_1 = stablehlo.constant dense<32> : tensor<ui32>
    %16 = stablehlo.subtract %c_1, %12 : tensor<ui32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %18 = stablehlo.shift_right_logical %10, %17 : tensor<5xui32>
    %19 = stablehlo.or %15, %18 : tensor<5xui32>
    %20 = stablehlo.xor %13, %19 : tensor<5xui32>
    %21 = stablehlo.slice %arg6 [2:3] : (tensor<4xui32>) -> tensor<1xui32>
    %22 = stablehlo.reshape %21 : (tensor<1xui32>) -> tensor<ui32>
    %23 = stablehlo.add %13, %20 : tensor<5xui32>
    %24 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %25 = stablehlo.shift_left %20, %24 : tensor<5xui32>
    %c_2 = stablehlo.constant dense<32> : tensor<ui32>
    %26 = stablehlo.subtract %c_2, %22 : tensor<ui32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %28 = stablehlo.shift_right_logical %20, %27 : tensor<5xui32>
    %29 = stablehlo.or %25, %28 : tensor<5xui32>
    %30 = stablehlo.xor %23, %29 : tensor<5xui32>
    %31 = stablehlo.slice %arg6 [3:4] : (tensor<4xui32>) -> tensor<1xui32>
    %32 = stablehlo.reshape %31 : (tensor<1xui32>) -> tensor<ui32>
    %33 = stablehlo.add %23, %30 : tensor<5xui32>
    %34 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %35 = stablehlo.shift_left %30, %34 : tensor<5xui32>
    %c_3 = stablehlo.constant dense<32> : tensor<ui32>
    %36 = stablehlo.subtract %c_3, %32 : tensor<ui32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %38 = stablehlo.shift_right_logical %30, %37 : tensor<5xui32>
    %39 = stablehlo.or %35, %38 : tensor<5xui32>
    %40 = stablehlo.xor %33, %39 : tensor<5xui32>
    %41 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %42 = stablehlo.add %33, %41 : tensor<5xui32>
    %43 = stablehlo.broadcast_in_dim %arg4, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %44 = stablehlo.add %40, %43 : tensor<5xui32>
    %c_4 = stablehlo.constant dense<1> : tensor<i64>
    %45 = stablehlo.add %arg0, %c_4 : tensor<i64>
    %46 = stablehlo.convert %45 : (tensor<i64>) -> tensor<ui32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<ui32>) -> tensor<5xui32>
    %48 = stablehlo.add %44, %47 : tensor<5xui32>
    return %0, %42, %48, %arg4, %arg5, %arg3, %arg7, %arg6 : tensor<i64>, tensor<5xui32>, tensor<5xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
  }
}

// -----
// random normal
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf64>, tensor<2x3xf64>) {
    %c = stablehlo.constant dense<4> : tensor<i64>
    %c_0 = stablehlo.constant dense<32> : tensor<i64>
    %0 = stablehlo.shift_right_logical %c, %c_0 : tensor<i64>
    %1 = stablehlo.convert %0 : (tensor<i64>) -> tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<ui32>) -> tensor<1xui32>
    %c_1 = stablehlo.constant dense<4294967295> : tensor<i64>
    %3 = stablehlo.and %c, %c_1 : tensor<i64>
    %4 = stablehlo.convert %3 : (tensor<i64>) -> tensor<ui32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<ui32>) -> tensor<1xui32>
    %6 = stablehlo.concatenate %2, %5, dim = 0 : (tensor<1xui32>, tensor<1xui32>) -> tensor<2xui32>
    %7 = call @_normal(%6) : (tensor<2xui32>) -> tensor<2x3xf64>
    %expected_0 = stablehlo.constant dense<"0xFCD0EDA0838AEFBFBC381382BD6FD9BFBA1E3FF5B67AD13FB40E3D8C2D3B00C081F518250237F83FB9B1AB6FF2E6E13F"> : tensor<2x3xf64>
    return %7, %expected_0 : tensor<2x3xf64>, tensor<2x3xf64>
  }
  func.func private @_normal(%arg0: tensor<2xui32>) -> tensor<2x3xf64> {
    %0 = call @_normal_real(%arg0) : (tensor<2xui32>) -> tensor<2x3xf64>
    return %0 : tensor<2x3xf64>
  }
  func.func private @_normal_real(%arg0: tensor<2xui32>) -> tensor<2x3xf64> {
    %cst = stablehlo.constant dense<-0.99999999999999988> : tensor<f64>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %0 = call @_uniform(%arg0, %cst, %cst_0) : (tensor<2xui32>, tensor<f64>, tensor<f64>) -> tensor<2x3xf64>
    %1 = chlo.erf_inv %0 : tensor<2x3xf64> -> tensor<2x3xf64>
    %cst_1 = stablehlo.constant dense<1.4142135623730951> : tensor<f64>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f64>) -> tensor<2x3xf64>
    %3 = stablehlo.multiply %2, %1 : tensor<2x3xf64>
    return %3 : tensor<2x3xf64>
  }
  func.func private @_uniform(%arg0: tensor<2xui32>, %arg1: tensor<f64>, %arg2: tensor<f64>) -> tensor<2x3xf64> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f64>) -> tensor<1x1xf64>
    %1 = stablehlo.broadcast_in_dim %arg2, dims = [] : (tensor<f64>) -> tensor<1x1xf64>
    %2 = stablehlo.slice %arg0 [0:1] : (tensor<2xui32>) -> tensor<1xui32>
    %3 = stablehlo.reshape %2 : (tensor<1xui32>) -> tensor<ui32>
    %4 = stablehlo.slice %arg0 [1:2] : (tensor<2xui32>) -> tensor<1xui32>
    %5 = stablehlo.reshape %4 : (tensor<1xui32>) -> tensor<ui32>
    %6 = stablehlo.iota dim = 0 : tensor<2x3xui64>
    %7 = stablehlo.iota dim = 1 : tensor<2x3xui64>
    %c = stablehlo.constant dense<3> : tensor<ui64>
    %8 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<ui64>) -> tensor<2x3xui64>
    %9 = stablehlo.multiply %8, %6 : tensor<2x3xui64>
    %c_0 = stablehlo.constant dense<1> : tensor<ui64>
    %10 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui64>) -> tensor<2x3xui64>
    %11 = stablehlo.multiply %10, %7 : tensor<2x3xui64>
    %12 = stablehlo.add %9, %11 : tensor<2x3xui64>
    %c_1 = stablehlo.constant dense<32> : tensor<ui64>
    %13 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui64>) -> tensor<2x3xui64>
    %14 = stablehlo.shift_right_logical %12, %13 : tensor<2x3xui64>
    %15 = stablehlo.convert %12 : (tensor<2x3xui64>) -> tensor<2x3xui32>
    %16 = stablehlo.convert %14 : (tensor<2x3xui64>) -> tensor<2x3xui32>
    %17:2 = call @threefry2x32(%3, %5, %16, %15) : (tensor<ui32>, tensor<ui32>, tensor<2x3xui32>, tensor<2x3xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>)
    %18 = stablehlo.convert %17#0 : (tensor<2x3xui32>) -> tensor<2x3xui64>
    %19 = stablehlo.convert %17#1 : (tensor<2x3xui32>) -> tensor<2x3xui64>
    %c_2 = stablehlo.constant dense<32> : tensor<ui64>
    %20 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui64>) -> tensor<2x3xui64>
    %21 = stablehlo.shift_left %18, %20 : tensor<2x3xui64>
    %22 = stablehlo.or %21, %19 : tensor<2x3xui64>
    %c_3 = stablehlo.constant dense<12> : tensor<ui64>
    %23 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<ui64>) -> tensor<2x3xui64>
    %24 = stablehlo.shift_right_logical %22, %23 : tensor<2x3xui64>
    %c_4 = stablehlo.constant dense<4607182418800017408> : tensor<ui64>
    %25 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<ui64>) -> tensor<2x3xui64>
    %26 = stablehlo.or %24, %25 : tensor<2x3xui64>
    %27 = stablehlo.bitcast_convert %26 : (tensor<2x3xui64>) -> tensor<2x3xf64>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f64>
    %28 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<2x3xf64>
    %29 = stablehlo.subtract %27, %28 : tensor<2x3xf64>
    %30 = stablehlo.subtract %1, %0 : tensor<1x1xf64>
    %31 = stablehlo.broadcast_in_dim %30, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<2x3xf64>
    %32 = stablehlo.multiply %29, %31 : tensor<2x3xf64>
    %33 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<2x3xf64>
    %34 = stablehlo.add %32, %33 : tensor<2x3xf64>
    %35 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x1xf64>) -> tensor<2x3xf64>
    %36 = stablehlo.maximum %35, %34 : tensor<2x3xf64>
    return %36 : tensor<2x3xf64>
  }
  func.func private @threefry2x32(%arg0: tensor<ui32>, %arg1: tensor<ui32>, %arg2: tensor<2x3xui32>, %arg3: tensor<2x3xui32>) -> (tensor<2x3xui32>, tensor<2x3xui32>) {
    %c = stablehlo.constant dense<[13, 15, 26, 6]> : tensor<4xui32>
    %c_0 = stablehlo.constant dense<[17, 29, 16, 24]> : tensor<4xui32>
    %0 = stablehlo.xor %arg0, %arg1 : tensor<ui32>
    %c_1 = stablehlo.constant dense<466688986> : tensor<ui32>
    %1 = stablehlo.xor %0, %c_1 : tensor<ui32>
    %2 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %3 = stablehlo.add %arg2, %2 : tensor<2x3xui32>
    %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %5 = stablehlo.add %arg3, %4 : tensor<2x3xui32>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %c_3 = stablehlo.constant dense<0> : tensor<i64>
    %6:9 = stablehlo.while(%iterArg = %c_3, %iterArg_4 = %c_2, %iterArg_5 = %3, %iterArg_6 = %5, %iterArg_7 = %arg1, %iterArg_8 = %1, %iterArg_9 = %arg0, %iterArg_10 = %c, %iterArg_11 = %c_0) : tensor<i64>, tensor<i64>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
    cond {
      %c_12 = stablehlo.constant dense<5> : tensor<i64>
      %7 = stablehlo.compare LT, %iterArg, %c_12, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %7 : tensor<i1>
    } do {
      %7:8 = func.call @closed_call(%iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11) : (tensor<i64>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>)
      %c_12 = stablehlo.constant dense<1> : tensor<i64>
      %8 = stablehlo.add %iterArg, %c_12 : tensor<i64>
      stablehlo.return %8, %7#0, %7#1, %7#2, %7#3, %7#4, %7#5, %7#6, %7#7 : tensor<i64>, tensor<i64>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
    }
    return %6#2, %6#3 : tensor<2x3xui32>, tensor<2x3xui32>
  }
  func.func private @closed_call(%arg0: tensor<i64>, %arg1: tensor<2x3xui32>, %arg2: tensor<2x3xui32>, %arg3: tensor<ui32>, %arg4: tensor<ui32>, %arg5: tensor<ui32>, %arg6: tensor<4xui32>, %arg7: tensor<4xui32>) -> (tensor<i64>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %0 = stablehlo.add %arg0, %c : tensor<i64>
    %1 = stablehlo.slice %arg6 [0:1] : (tensor<4xui32>) -> tensor<1xui32>
    %2 = stablehlo.reshape %1 : (tensor<1xui32>) -> tensor<ui32>
    %3 = stablehlo.add %arg1, %arg2 : tensor<2x3xui32>
    %4 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %5 = stablehlo.shift_left %arg2, %4 : tensor<2x3xui32>
    %c_0 = stablehlo.constant dense<32> : tensor<ui32>
    %6 = stablehlo.subtract %c_0, %2 : tensor<ui32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %8 = stablehlo.shift_right_logical %arg2, %7 : tensor<2x3xui32>
    %9 = stablehlo.or %5, %8 : tensor<2x3xui32>
    %10 = stablehlo.xor %3, %9 : tensor<2x3xui32>
    %11 = stablehlo.slice %arg6 [1:2] : (tensor<4xui32>) -> tensor<1xui32>
    %12 = stablehlo.reshape %11 : (tensor<1xui32>) -> tensor<ui32>
    %13 = stablehlo.add %3, %10 : tensor<2x3xui32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %15 = stablehlo.shift_left %10, %14 : tensor<2x3xui32>
    %c_1 = stablehlo.constant dense<32> : tensor<ui32>
    %16 = stablehlo.subtract %c_1, %12 : tensor<ui32>
    %17 = stablehlo.broadcast_in_dim %16, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %18 = stablehlo.shift_right_logical %10, %17 : tensor<2x3xui32>
    %19 = stablehlo.or %15, %18 : tensor<2x3xui32>
    %20 = stablehlo.xor %13, %19 : tensor<2x3xui32>
    %21 = stablehlo.slice %arg6 [2:3] : (tensor<4xui32>) -> tensor<1xui32>
    %22 = stablehlo.reshape %21 : (tensor<1xui32>) -> tensor<ui32>
    %23 = stablehlo.add %13, %20 : tensor<2x3xui32>
    %24 = stablehlo.broadcast_in_dim %22, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %25 = stablehlo.shift_left %20, %24 : tensor<2x3xui32>
    %c_2 = stablehlo.constant dense<32> : tensor<ui32>
    %26 = stablehlo.subtract %c_2, %22 : tensor<ui32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %28 = stablehlo.shift_right_logical %20, %27 : tensor<2x3xui32>
    %29 = stablehlo.or %25, %28 : tensor<2x3xui32>
    %30 = stablehlo.xor %23, %29 : tensor<2x3xui32>
    %31 = stablehlo.slice %arg6 [3:4] : (tensor<4xui32>) -> tensor<1xui32>
    %32 = stablehlo.reshape %31 : (tensor<1xui32>) -> tensor<ui32>
    %33 = stablehlo.add %23, %30 : tensor<2x3xui32>
    %34 = stablehlo.broadcast_in_dim %32, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %35 = stablehlo.shift_left %30, %34 : tensor<2x3xui32>
    %c_3 = stablehlo.constant dense<32> : tensor<ui32>
    %36 = stablehlo.subtract %c_3, %32 : tensor<ui32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %38 = stablehlo.shift_right_logical %30, %37 : tensor<2x3xui32>
    %39 = stablehlo.or %35, %38 : tensor<2x3xui32>
    %40 = stablehlo.xor %33, %39 : tensor<2x3xui32>
    %41 = stablehlo.broadcast_in_dim %arg3, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %42 = stablehlo.add %33, %41 : tensor<2x3xui32>
    %43 = stablehlo.broadcast_in_dim %arg4, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %44 = stablehlo.add %40, %43 : tensor<2x3xui32>
    %c_4 = stablehlo.constant dense<1> : tensor<i64>
    %45 = stablehlo.add %arg0, %c_4 : tensor<i64>
    %46 = stablehlo.convert %45 : (tensor<i64>) -> tensor<ui32>
    %47 = stablehlo.broadcast_in_dim %46, dims = [] : (tensor<ui32>) -> tensor<2x3xui32>
    %48 = stablehlo.add %44, %47 : tensor<2x3xui32>
    return %0, %42, %48, %arg4, %arg5, %arg3, %arg7, %arg6 : tensor<i64>, tensor<2x3xui32>, tensor<2x3xui32>, tensor<ui32>, tensor<ui32>, tensor<ui32>, tensor<4xui32>, tensor<4xui32>
  }
}

// -----
// rng_bit_generator
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<6xui32>, tensor<6xui32>) {
    %c = stablehlo.constant dense<[1, 2, 3, 4]> : tensor<4xui32>
    %0 = stablehlo.reshape %c : (tensor<4xui32>) -> tensor<2x2xui32>
    %1 = stablehlo.bitcast_convert %0 : (tensor<2x2xui32>) -> tensor<2xui64>
    %output_state, %output = stablehlo.rng_bit_generator %1, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<6xui32>)
    %2 = stablehlo.bitcast_convert %output_state : (tensor<2xui64>) -> tensor<2x2xui32>
    %3 = stablehlo.reshape %2 : (tensor<2x2xui32>) -> tensor<4xui32>
    %c_0 = stablehlo.constant dense<0> : tensor<ui32>
    %4 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<ui32>) -> tensor<6xui32>
    %5 = stablehlo.multiply %output, %4 : tensor<6xui32>
    %expected_0 = stablehlo.constant dense<"0x000000000000000000000000000000000000000000000000"> : tensor<6xui32>
    return %5, %expected_0 : tensor<6xui32>, tensor<6xui32>
  }
}

// -----
// fft
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<2x4xf32>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<2x4xf32>, tensor<2x3xcomplex<f32>>) {
    %cst = stablehlo.constant dense<[[(1.500000e+00,5.000000e-01), (-2.250000e+00,2.000000e+00), (0.000000e+00,-1.000000e+00)], [(3.000000e+00,1.000000e+00), (5.000000e-01,-4.000000e+00), (-7.500000e-01,2.500000e-01)]]> : tensor<2x3xcomplex<f32>>
    %cst_0 = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = call @fft(%cst) : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
    %1 = call @fft_0(%cst) : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
    %2 = call @fft_1(%cst_0) : (tensor<2x3xf32>) -> tensor<2x2xcomplex<f32>>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %3 = call @_pad(%cst, %c) : (tensor<2x3xcomplex<f32>>, tensor<i64>) -> tensor<2x3xcomplex<f32>>
    %4 = call @fft_2(%3) : (tensor<2x3xcomplex<f32>>) -> tensor<2x4xf32>
    %5 = call @fft_3(%cst) : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
    %expected_0 = stablehlo.constant dense<"0x000040BF0000C03F7023A740526AF93F808FDC3C526AF9BF00003040000030C0503C0EBF9A6FE53F8AC7D94033487D40"> : tensor<2x3xcomplex<f32>>
    %expected_1 = stablehlo.constant dense<"0x000080BE0000003F560A133CE24626BFEBD9DE3FE246263FABAA6A3FABAA6ABFB22F1140CDDAA83FC0A53DBE12F5183F"> : tensor<2x3xcomplex<f32>>
    %expected_2 = stablehlo.constant dense<"0x000040BF0000000000002840526AF93F00003040000000000000484066908ABF"> : tensor<2x2xcomplex<f32>>
    %expected_3 = stablehlo.constant dense<"0x000040BF000020BF0000C03F0000B03F0000503F00003C400000A03E000088BF"> : tensor<2x4xf32>
    %expected_4 = stablehlo.constant dense<"0x000000400000A0BFE65B9540F66C6F401AA4DA400A930040000060C000008840FAEAB840C0D51F3EFAEAD8C0AEFEBCC0"> : tensor<2x3xcomplex<f32>>
    return %0, %1, %2, %4, %5, %expected_0, %expected_1, %expected_2, %expected_3, %expected_4 : tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<2x4xf32>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x3xcomplex<f32>>, tensor<2x2xcomplex<f32>>, tensor<2x4xf32>, tensor<2x3xcomplex<f32>>
  }
  func.func private @fft(%arg0: tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = FFT, length = [3] : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
    return %0 : tensor<2x3xcomplex<f32>>
  }
  func.func private @fft_0(%arg0: tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = IFFT, length = [3] : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
    return %0 : tensor<2x3xcomplex<f32>>
  }
  func.func private @fft_1(%arg0: tensor<2x3xf32>) -> tensor<2x2xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [3] : (tensor<2x3xf32>) -> tensor<2x2xcomplex<f32>>
    return %0 : tensor<2x2xcomplex<f32>>
  }
  func.func private @_pad(%arg0: tensor<2x3xcomplex<f32>>, %arg1: tensor<i64>) -> tensor<2x3xcomplex<f32>> {
    %0 = stablehlo.convert %arg1 : (tensor<i64>) -> tensor<complex<f32>>
    %1 = stablehlo.pad %arg0, %0, low = [0, 0], high = [0, 0], interior = [0, 0] : (tensor<2x3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<2x3xcomplex<f32>>
    return %1 : tensor<2x3xcomplex<f32>>
  }
  func.func private @fft_2(%arg0: tensor<2x3xcomplex<f32>>) -> tensor<2x4xf32> {
    %0 = stablehlo.fft %arg0, type = IRFFT, length = [4] : (tensor<2x3xcomplex<f32>>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  func.func private @fft_3(%arg0: tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = FFT, length = [2, 3] : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>
    return %0 : tensor<2x3xcomplex<f32>>
  }
}

// -----
// cholesky
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x2xf32>, tensor<2x2xf32>) {
    %cst = stablehlo.constant dense<[[1.031250e+01, 3.375000e+00], [3.375000e+00, 1.281250e+01]]> : tensor<2x2xf32>
    %0 = call @cholesky(%cst) : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %expected_0 = stablehlo.constant dense<"0x13864D40000000004D86863FF3FC5A40"> : tensor<2x2xf32>
    return %0, %expected_0 : tensor<2x2xf32>, tensor<2x2xf32>
  }
  func.func private @cholesky(%arg0: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<2x2xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %3 = stablehlo.divide %1, %2 : tensor<2x2xf32>
    %4:2 = stablehlo.custom_call @lapack_spotrf_ffi(%3) {backend_config = "", mhlo.backend_config = {uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], []) {i=2, j=2, k=2, l=2}, custom>} : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
    %c = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<i32>
    %6 = stablehlo.compare EQ, %4#1, %5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %cst_0 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %9 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<2x2xi1>
    %10 = stablehlo.select %9, %4#0, %8 : tensor<2x2xi1>, tensor<2x2xf32>
    %11 = stablehlo.iota dim = 0 : tensor<2x2xi64>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %12 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i64>) -> tensor<2x2xi64>
    %13 = stablehlo.add %11, %12 : tensor<2x2xi64>
    %14 = stablehlo.iota dim = 1 : tensor<2x2xi64>
    %15 = stablehlo.compare GE, %13, %14, SIGNED : (tensor<2x2xi64>, tensor<2x2xi64>) -> tensor<2x2xi1>
    %cst_2 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %17 = stablehlo.select %15, %10, %16 : tensor<2x2xi1>, tensor<2x2xf32>
    return %17 : tensor<2x2xf32>
  }
}

// -----
// triangular_solve
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[2.000000e+00, 0.000000e+00], [1.000000e+00, 4.000000e+00]]> : tensor<2x2xf32>
    %cst_0 = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = call @_solve_triangular(%cst, %cst_0) : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x0000403F000090BF000000000000103F0000D03E000040BE"> : tensor<2x3xf32>
    return %0, %expected_0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
  func.func private @_solve_triangular(%arg0: tensor<2x2xf32>, %arg1: tensor<2x3xf32>) -> tensor<2x3xf32> {
    %0 = stablehlo.custom_call @lapack_strsm_ffi(%arg0, %arg1) {backend_config = "", mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=2, j=2, k=2, l=3, m=2, n=3}, custom>} : (tensor<2x2xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    return %0 : tensor<2x3xf32>
  }
}

// -----
// inverse
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<3x3xf64>, tensor<3x3xf64>) {
    %cst = stablehlo.constant dense<[[2.000000e+00, 1.000000e+00, 0.000000e+00], [1.000000e+00, 3.000000e+00, 1.000000e+00], [0.000000e+00, 1.000000e+00, 4.000000e+00]]> : tensor<3x3xf64>
    %0 = call @inv(%cst) : (tensor<3x3xf64>) -> tensor<3x3xf64>
    %expected_0 = stablehlo.constant dense<"0xE4388EE3388EE33F1DC7711CC771CCBF1DC7711CC771AC3F1DC7711CC771CCBF1DC7711CC771DC3F1DC7711CC771BCBF1DC7711CC771AC3F1DC7711CC771BCBF721CC7711CC7D13F"> : tensor<3x3xf64>
    return %0, %expected_0 : tensor<3x3xf64>, tensor<3x3xf64>
  }
  func.func private @inv(%arg0: tensor<3x3xf64>) -> tensor<3x3xf64> {
    %0 = stablehlo.iota dim = 0 : tensor<3x3xi64>
    %1 = stablehlo.iota dim = 1 : tensor<3x3xi64>
    %c = stablehlo.constant dense<0> : tensor<i64>
    %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i64>) -> tensor<3x3xi64>
    %3 = stablehlo.add %0, %2 : tensor<3x3xi64>
    %4 = stablehlo.compare EQ, %3, %1, SIGNED : (tensor<3x3xi64>, tensor<3x3xi64>) -> tensor<3x3xi1>
    %5 = stablehlo.convert %4 : (tensor<3x3xi1>) -> tensor<3x3xf64>
    %6 = call @solve(%arg0, %5) : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    return %6 : tensor<3x3xf64>
  }
  func.func private @solve(%arg0: tensor<3x3xf64>, %arg1: tensor<3x3xf64>) -> tensor<3x3xf64> {
    %0:3 = stablehlo.custom_call @lapack_dgetrf_ffi(%arg0) {backend_config = "", mhlo.backend_config = {}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], [m], []) {i=3, j=3, k=3, l=3, m=3}, custom>} : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xi32>, tensor<i32>)
    %c = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %2 = stablehlo.subtract %0#1, %1 : tensor<3xi32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<i32>
    %4 = stablehlo.compare GE, %0#2, %3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i1>) -> tensor<1x1xi1>
    %cst = stablehlo.constant dense<0x7FF8000000000000> : tensor<f64>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f64>) -> tensor<3x3xf64>
    %7 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<1x1xi1>) -> tensor<3x3xi1>
    %8 = stablehlo.select %7, %0#0, %6 : tensor<3x3xi1>, tensor<3x3xf64>
    %9 = stablehlo.iota dim = 0 : tensor<3xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i64>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %10:4 = stablehlo.while(%iterArg = %2, %iterArg_3 = %c_2, %iterArg_4 = %c_1, %iterArg_5 = %9) : tensor<3xi32>, tensor<i64>, tensor<i64>, tensor<3xi32>
    cond {
      %c_6 = stablehlo.constant dense<3> : tensor<i64>
      %14 = stablehlo.compare LT, %iterArg_3, %c_6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %14 : tensor<i1>
    } do {
      %14:2 = func.call @closed_call(%iterArg, %iterArg_4, %iterArg_5) : (tensor<3xi32>, tensor<i64>, tensor<3xi32>) -> (tensor<i64>, tensor<3xi32>)
      %c_6 = stablehlo.constant dense<1> : tensor<i64>
      %15 = stablehlo.add %iterArg_3, %c_6 : tensor<i64>
      stablehlo.return %iterArg, %15, %14#0, %14#1 : tensor<3xi32>, tensor<i64>, tensor<i64>, tensor<3xi32>
    }
    %11 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<3x3xf64>) -> tensor<3x3xf64>
    %12 = call @_lu_solve(%8, %10#3, %11) : (tensor<3x3xf64>, tensor<3xi32>, tensor<3x3xf64>) -> tensor<3x3xf64>
    %13 = stablehlo.transpose %12, dims = [1, 0] : (tensor<3x3xf64>) -> tensor<3x3xf64>
    return %13 : tensor<3x3xf64>
  }
  func.func private @closed_call(%arg0: tensor<3xi32>, %arg1: tensor<i64>, %arg2: tensor<3xi32>) -> (tensor<i64>, tensor<3xi32>) {
    %c = stablehlo.constant dense<1> : tensor<i64>
    %0 = stablehlo.add %arg1, %c : tensor<i64>
    %c_0 = stablehlo.constant dense<0> : tensor<i64>
    %1 = stablehlo.compare LT, %arg1, %c_0, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %2 = stablehlo.convert %arg1 : tensor<i64>
    %c_1 = stablehlo.constant dense<3> : tensor<i64>
    %3 = stablehlo.add %2, %c_1 : tensor<i64>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<i1>, tensor<i64>
    %5 = stablehlo.dynamic_slice %arg0, %4, sizes = [1] : (tensor<3xi32>, tensor<i64>) -> tensor<1xi32>
    %6 = stablehlo.reshape %5 : (tensor<1xi32>) -> tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i64>
    %7 = stablehlo.compare LT, %arg1, %c_2, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %8 = stablehlo.convert %arg1 : tensor<i64>
    %c_3 = stablehlo.constant dense<3> : tensor<i64>
    %9 = stablehlo.add %8, %c_3 : tensor<i64>
    %10 = stablehlo.select %7, %9, %arg1 : tensor<i1>, tensor<i64>
    %11 = stablehlo.dynamic_slice %arg2, %10, sizes = [1] : (tensor<3xi32>, tensor<i64>) -> tensor<1xi32>
    %12 = stablehlo.reshape %11 : (tensor<1xi32>) -> tensor<i32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %13 = stablehlo.compare LT, %6, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_5 = stablehlo.constant dense<3> : tensor<i32>
    %14 = stablehlo.add %6, %c_5 : tensor<i32>
    %15 = stablehlo.select %13, %14, %6 : tensor<i1>, tensor<i32>
    %16 = stablehlo.dynamic_slice %arg2, %15, sizes = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<1xi32>
    %17 = stablehlo.reshape %16 : (tensor<1xi32>) -> tensor<i32>
    %c_6 = stablehlo.constant dense<0> : tensor<i64>
    %18 = stablehlo.compare LT, %arg1, %c_6, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>
    %c_7 = stablehlo.constant dense<3> : tensor<i64>
    %19 = stablehlo.add %arg1, %c_7 : tensor<i64>
    %20 = stablehlo.select %18, %19, %arg1 : tensor<i1>, tensor<i64>
    %21 = stablehlo.convert %20 : (tensor<i64>) -> tensor<i32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %23 = "stablehlo.scatter"(%arg2, %22, %17) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
      stablehlo.return %arg4 : tensor<i32>
    }) : (tensor<3xi32>, tensor<1xi32>, tensor<i32>) -> tensor<3xi32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %24 = stablehlo.compare LT, %6, %c_8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_9 = stablehlo.constant dense<3> : tensor<i32>
    %25 = stablehlo.add %6, %c_9 : tensor<i32>
    %26 = stablehlo.select %24, %25, %6 : tensor<i1>, tensor<i32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %28 = "stablehlo.scatter"(%23, %27, %12) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg3: tensor<i32>, %arg4: tensor<i32>):
      stablehlo.return %arg4 : tensor<i32>
    }) : (tensor<3xi32>, tensor<1xi32>, tensor<i32>) -> tensor<3xi32>
    return %0, %28 : tensor<i64>, tensor<3xi32>
  }
  func.func private @_lu_solve(%arg0: tensor<3x3xf64>, %arg1: tensor<3xi32>, %arg2: tensor<3x3xf64>) -> tensor<3x3xf64> {
    %0 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1] : (tensor<3x3xf64>) -> tensor<3x3x1xf64>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %2 = stablehlo.compare LT, %arg1, %1, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
    %c_0 = stablehlo.constant dense<3> : tensor<i32>
    %3 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<3xi32>
    %4 = stablehlo.add %arg1, %3 : tensor<3xi32>
    %5 = stablehlo.select %2, %4, %arg1 : tensor<3xi1>, tensor<3xi32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<3xi32>) -> tensor<3x1xi32>
    %7 = "stablehlo.gather"(%0, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 3, 1, 1>}> : (tensor<3x3x1xf64>, tensor<3x1xi32>) -> tensor<3x3x1xf64>
    %8 = stablehlo.transpose %7, dims = [1, 2, 0] : (tensor<3x3x1xf64>) -> tensor<3x1x3xf64>
    %9 = stablehlo.reshape %8 : (tensor<3x1x3xf64>) -> tensor<3x3xf64>
    %10 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %9) {backend_config = "", mhlo.backend_config = {diag = 85 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=3, j=3, k=3, l=3, m=3, n=3}, custom>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    %11 = stablehlo.reshape %10 : (tensor<3x3xf64>) -> tensor<3x1x3xf64>
    %12 = stablehlo.reshape %11 : (tensor<3x1x3xf64>) -> tensor<3x3xf64>
    %13 = stablehlo.custom_call @lapack_dtrsm_ffi(%arg0, %12) {backend_config = "", mhlo.backend_config = {diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 85 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "0"}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [k, l])->([m, n]) {i=3, j=3, k=3, l=3, m=3, n=3}, custom>} : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
    %14 = stablehlo.reshape %13 : (tensor<3x3xf64>) -> tensor<3x1x3xf64>
    %15 = stablehlo.transpose %14, dims = [2, 0, 1] : (tensor<3x1x3xf64>) -> tensor<3x3x1xf64>
    %16 = stablehlo.reshape %15 : (tensor<3x3x1xf64>) -> tensor<3x3xf64>
    return %16 : tensor<3x3xf64>
  }
}

// -----
// special functions
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[2.500000e+00, 3.250000e+00, 1.000000e+00], [4.000000e+00, 1.500000e+00, 1.750000e+00]]> : tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<[[3.750000e-01, -5.625000e-01, 0.000000e+00], [7.500000e-01, 1.250000e-01, -1.875000e-01]]> : tensor<2x3xf32>
    %cst_2 = stablehlo.constant dense<[[2.500000e+00, 3.250000e+00, 1.000000e+00], [4.000000e+00, 1.500000e+00, 1.750000e+00]]> : tensor<2x3xf32>
    %0 = chlo.erf %cst : tensor<2x3xf32> -> tensor<2x3xf32>
    %1 = chlo.erfc %cst : tensor<2x3xf32> -> tensor<2x3xf32>
    %2 = chlo.lgamma %cst_0 : tensor<2x3xf32> -> tensor<2x3xf32>
    %3 = chlo.erf_inv %cst_1 : tensor<2x3xf32> -> tensor<2x3xf32>
    %4 = chlo.digamma %cst_2 : tensor<2x3xf32> -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0xAB52773F24A07FBF000000008DFE7F3F7B3F053F4C0E36BF"> : tensor<2x3xf32>
    %expected_1 = stablehlo.constant dense<"0x55D50A3D12D0FF3F0000803FFB4EB9370C81F53E2607DB3F"> : tensor<2x3xf32>
    %expected_2 = stablehlo.constant dense<"0x00C2913ECC906F3F000000356758E53F805CF7BD00DAACBD"> : tensor<2x3xf32>
    %expected_3 = stablehlo.constant dense<"0xBCF4B03E1F8C0CBF00000000483C503F69CFE33DB0C02BBE"> : tensor<2x3xf32>
    %expected_4 = stablehlo.constant dense<"0x1602343FC62C823F63C413BF78C8A03FA076153D78697D3E"> : tensor<2x3xf32>
    return %0, %1, %2, %3, %4, %expected_0, %expected_1, %expected_2, %expected_3, %expected_4 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// hyperbolic functions
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<[[3.750000e-01, -5.625000e-01, 0.000000e+00], [7.500000e-01, 1.250000e-01, -1.875000e-01]]> : tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<[[3.750000e-01, -5.625000e-01, 0.000000e+00], [7.500000e-01, 1.250000e-01, -1.875000e-01]]> : tensor<2x3xf32>
    %0 = chlo.sinh %cst : tensor<2x3xf32> -> tensor<2x3xf32>
    %1 = chlo.cosh %cst : tensor<2x3xf32> -> tensor<2x3xf32>
    %2 = chlo.asinh %cst : tensor<2x3xf32> -> tensor<2x3xf32>
    %3 = chlo.atanh %cst_0 : tensor<2x3xf32> -> tensor<2x3xf32>
    %4 = chlo.asin %cst_1 : tensor<2x3xf32> -> tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x1D4608400D1E96C000000000374920418166053F598352BF"> : tensor<2x3xf32>
    %expected_1 = stablehlo.constant dense<"0xE18D16407B7D99400000803F251521410C56903F2FB8A53F"> : tensor<2x3xf32>
    %expected_2 = stablehlo.constant dense<"0x00EE983F946BC6BF00000000DAC2E83F6661F63E187231BF"> : tensor<2x3xf32>
    %expected_3 = stablehlo.constant dense<"0x58D8C93E8AF022BF000000009613793F49AC003E774C42BE"> : tensor<2x3xf32>
    %expected_4 = stablehlo.constant dense<"0xA8CFC43EA1EF18BF00000000991A593FF155003EA82441BE"> : tensor<2x3xf32>
    return %0, %1, %2, %3, %4, %expected_0, %expected_1, %expected_2, %expected_3, %expected_4 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// layer norm
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
    %cst = stablehlo.constant dense<1.250010e+00> : tensor<2x3x1xf32>
    %cst_0 = stablehlo.constant dense<[[[-1.500000e+00, -5.000000e-01, 5.000000e-01, 1.500000e+00], [-1.500000e+00, -5.000000e-01, 5.000000e-01, 1.500000e+00], [-1.500000e+00, -5.000000e-01, 5.000000e-01, 1.500000e+00]], [[-1.500000e+00, -5.000000e-01, 5.000000e-01, 1.500000e+00], [-1.500000e+00, -5.000000e-01, 5.000000e-01, 1.500000e+00], [-1.500000e+00, -5.000000e-01, 5.000000e-01, 1.500000e+00]]]> : tensor<2x3x4xf32>
    %0 = stablehlo.rsqrt %cst : tensor<2x3x1xf32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
    %2 = stablehlo.multiply %cst_0, %1 : tensor<2x3x4xf32>
    %expected_0 = stablehlo.constant dense<"0xB6BAABBFF2F8E4BEF2F8E43EB6BAAB3FB6BAABBFF2F8E4BEF2F8E43EB6BAAB3FB6BAABBFF2F8E4BEF2F8E43EB6BAAB3FB6BAABBFF2F8E4BEF2F8E43EB6BAAB3FB6BAABBFF2F8E4BEF2F8E43EB6BAAB3FB6BAABBFF2F8E4BEF2F8E43EB6BAAB3F"> : tensor<2x3x4xf32>
    return %2, %expected_0 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  }
}

// -----
// gelu
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
    %cst = stablehlo.constant dense<[[1.500000e+00, -2.250000e+00, 0.000000e+00], [3.000000e+00, 5.000000e-01, -7.500000e-01]]> : tensor<2x3xf32>
    %0 = stablehlo.multiply %cst, %cst : tensor<2x3xf32>
    %1 = stablehlo.multiply %0, %cst : tensor<2x3xf32>
    %cst_0 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %3 = stablehlo.multiply %2, %1 : tensor<2x3xf32>
    %4 = stablehlo.add %cst, %3 : tensor<2x3xf32>
    %cst_1 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %6 = stablehlo.multiply %5, %4 : tensor<2x3xf32>
    %7 = stablehlo.tanh %6 : tensor<2x3xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %9 = stablehlo.add %8, %7 : tensor<2x3xf32>
    %cst_3 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %11 = stablehlo.multiply %10, %9 : tensor<2x3xf32>
    %12 = stablehlo.multiply %cst, %11 : tensor<2x3xf32>
    %cst_4 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %14 = stablehlo.multiply %13, %cst : tensor<2x3xf32>
    %15 = stablehlo.negate %cst : tensor<2x3xf32>
    %cst_5 = stablehlo.constant dense<0.707106769> : tensor<f32>
    %16 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %17 = stablehlo.multiply %15, %16 : tensor<2x3xf32>
    %18 = chlo.erfc %17 : tensor<2x3xf32> -> tensor<2x3xf32>
    %19 = stablehlo.multiply %14, %18 : tensor<2x3xf32>
    %expected_0 = stablehlo.constant dense<"0x2925B33F60D5DEBC0000000068C43F406D01B13ED21E2EBE"> : tensor<2x3xf32>
    %expected_1 = stablehlo.constant dense<"0x4B2CB33F5252E1BC00000000A6BD3F40AF03B13EC20C2EBE"> : tensor<2x3xf32>
    return %12, %19, %expected_0, %expected_1 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
}

// -----
// attention
module @jit__lambda attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main() -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
    %cst = stablehlo.constant dense<[[[0.699999988, 1.900000e+00, 3.100000e+00], [1.900000e+00, 6.300000e+00, 1.070000e+01], [3.100000e+00, 1.070000e+01, 1.830000e+01]], [[3.670000e+01, 4.750000e+01, 5.830000e+01], [4.750000e+01, 6.150000e+01, 7.550000e+01], [5.830000e+01, 7.550000e+01, 92.6999969]]]> : tensor<2x3x3xf32>
    %cst_0 = stablehlo.constant dense<[[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]], [[1.200000e+01, 1.300000e+01, 1.400000e+01, 1.500000e+01], [1.600000e+01, 1.700000e+01, 1.800000e+01, 1.900000e+01], [2.000000e+01, 2.100000e+01, 2.200000e+01, 2.300000e+01]]]> : tensor<2x3x4xf32>
    %cst_1 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%cst init: %cst_1) applies stablehlo.maximum across dimensions = [2] : (tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %2 = stablehlo.maximum %1, %0 : tensor<2x3xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x3xf32>
    %5 = stablehlo.subtract %cst, %4 : tensor<2x3x3xf32>
    %6 = stablehlo.exponential %5 : tensor<2x3x3xf32>
    %cst_3 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%6 init: %cst_3) applies stablehlo.add across dimensions = [2] : (tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1] : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1, 2] : (tensor<2x3x1xf32>) -> tensor<2x3x3xf32>
    %10 = stablehlo.divide %6, %9 : tensor<2x3x3xf32>
    %11 = stablehlo.dot_general %10, %cst_0, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x3x3xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    %expected_0 = stablehlo.constant dense<"0x0F9ED3400F9EF34008CF094107CF1941E268FE4071340F4170341F4171342F4198EFFF40CCF70F41CCF71F41CCF72F41D5FF9F41D6FFA741D6FFAF41D5FFB741FEFF9F41FEFFA741FEFFAF41FEFFB7410000A0410000A8410000B0410000B841"> : tensor<2x3x4xf32>
    return %11, %expected_0 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  }
}
