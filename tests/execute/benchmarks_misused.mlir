// RUN: run
// EXIT: 3

func.func @later() {
  tfrt.return
}

// CHECK-LABEL: --- Running 'not_synchronous':
func.func @not_synchronous() attributes {tfrt.sync} {
  tfrt_test.sync_benchmark @later() duration_secs = 1, max_count = 5
  tfrt.return
}
// CHECK-NEXT: 'not_synchronous' returned <<error: SyncBenchmark op requires the input function be a sync function>>
