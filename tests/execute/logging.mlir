// RUN: run

// STDERR: I {{.*}}] from TFRT_LOG(INFO): words
// STDERR-NEXT: W {{.*}}] from TFRT_LOG(WARNING): words
// STDERR-NEXT: E {{.*}}] from TFRT_LOG(ERROR): words
// STDERR-NEXT: I {{.*}}] from TFRT_LOG_IF(INFO, true): words
// STDERR-NEXT: W {{.*}}] from TFRT_LOG_IF(WARNING, true): words
// STDERR-NEXT: E {{.*}}] from TFRT_LOG_IF(ERROR, true): words
// CHECK: --- Running 'log':
func.func @log() -> !tfrt.chain {
  %c0 = tfrt.new.chain
  %s = tfrt_test.get_string {value = "words"}
  %c1 = "tfrt_test.logging"(%s, %c0) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return %c1 : !tfrt.chain
}
// CHECK-NEXT: 'log' returned !tfrt.chain value
