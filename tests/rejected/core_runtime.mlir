// RUN: opt --verify-diagnostics --split-input-file

// expected-note @+1 {{prior use here}}
func.func @operand_that_is_no_handle(%c: !tfrt.chain, %x: i32) {
  %cpu = corert.get_op_handler %c "cpu"
  // expected-error @+1 {{expects different type than prior uses: '!corert.tensorhandle' vs 'i32'}}
  corert.executeop(%cpu) "some.op"(%x)
  tfrt.return
}

// -----

func.func @attributes_that_are_no_pairs(%cpu: !corert.ophandler) {
  // expected-error @+1 {{each op_attr should be a key-value pair, where the key is a string}}
  "corert.executeop"(%cpu) {op_name = "some.op", op_attrs = [1 : i32], op_func_attrs = []} : (!corert.ophandler) -> ()
  // expected-error @+1 {{each op_func_attr should be a key-value pair, where both are strings}}
  "corert.executeop"(%cpu) {op_name = "some.op", op_attrs = [], op_func_attrs = [["f", 1 : i32]]} : (!corert.ophandler) -> ()
  tfrt.return
}

// -----

func.func @number(%c: !tfrt.chain, %x: i32) -> (!tfrt.chain, i32) {
  tfrt.return %c, %x : !tfrt.chain, i32
}

func.func @branches_that_do_not_fit(%c: !tfrt.chain, %p: !corert.tensorhandle) {
  // expected-error @+2 {{'number' has mismatching operand types}}
  // expected-error @+1 {{'nobody' does not reference a valid function}}
  %d:2 = corert.cond %p @number @nobody (%c, %p) : (!corert.tensorhandle) -> (i32)
  // expected-error @+2 {{'number' has mismatching result types}}
  // expected-error @+1 {{'number' has mismatching result types}}
  %e:2 = corert.while @number @number (%c, %d#1) : (i32) -> (i64)
  tfrt.return
}
