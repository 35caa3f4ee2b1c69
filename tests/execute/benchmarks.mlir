// RUN: run --queue single

// CHECK-LABEL: --- Running 'asynchronous':
func.func @asynchronous() {
  %x = tfrt.constant.i32 42
  // CHECK-NEXT: BM:add:Duration(ns): {{[0-9]+}}
  // CHECK-NEXT: BM:add:Count: 20
  // CHECK-NEXT: BM:add:Time Min(ns): {{[0-9]+}}
  // CHECK-NEXT: BM:add:Time 50%(ns): {{[0-9]+}}
  // CHECK-NEXT: BM:add:Time 95%(ns): {{[0-9]+}}
  // CHECK-NEXT: BM:add:Time 99%(ns): {{[0-9]+}}
  // CHECK-NEXT: BM:add:CPU Min(ns): {{[0-9]+}}
  // CHECK-NEXT: BM:add:CPU 50%(ns): {{[0-9]+}}
  // CHECK-NEXT: BM:add:CPU 95%(ns): {{[0-9]+}}
  // CHECK-NEXT: BM:add:CPU 99%(ns): {{[0-9]+}}
  // CHECK-NEXT: BM:add:CPU utilization(percent): {{[0-9.]+e[+-][0-9]+}}
  tfrt_test.benchmark "add"(%x : i32) duration_secs = 10, max_count = 20, num_warmup_runs = 3 {
    %y = "tfrt_test.async_add.i32"(%x, %x) : (i32, i32) -> i32
    tfrt.return %y : i32
  }
  tfrt.return
}

func.func @work(%x: i32) attributes {tfrt.sync} {
  %y = "tfrt.add_s.i32"(%x, %x) : (i32, i32) -> i32
  tfrt.return
}

// CHECK-LABEL: --- Running 'synchronous':
func.func @synchronous() attributes {tfrt.sync} {
  %x = "tfrt.constant_s.i32"() {value = 1 : i32} : () -> i32
  // CHECK-NEXT: BM:work:Duration(ns): {{[0-9]+}}
  // CHECK-NEXT: BM:work:Count: 50
  // CHECK: BM:work:CPU utilization(percent): {{[0-9.]+e[+-][0-9]+}}
  tfrt_test.sync_benchmark @work(%x : i32) duration_secs = 10, max_count = 50
  tfrt.return
}

// CHECK-LABEL: --- Running 'none':
func.func @none() {
  // CHECK-NEXT: BM:none:Duration(ns): 0
  // CHECK-NEXT: BM:none:Count: 0
  // CHECK: BM:none:CPU utilization(percent): 0.000000e+00
  tfrt_test.benchmark "none"() duration_secs = 10, max_count = 0 {
    %y = tfrt.constant.i32 1
    tfrt.return %y : i32
  }
  tfrt.return
}
