// RUN: opt --verify-diagnostics --split-input-file

// All that is wrong is told at once.
func.func @several(%x: i32, %y: i64) -> i32 {
  // expected-error @+1 {{is unknown}}
  %a = tfrt.nonsense %x
  // expected-error @+1 {{use of undeclared SSA value name}}
  %b = tfrt.add.i32 %x, %nowhere
  tfrt.return %b : i32
}

// -----

func.func @second_program_of_the_file(%y: i64, %z: f32) -> i32 {
  // expected-error @+2 {{operand #0}}
  // expected-error @+1 {{operand #1}}
  %a = "tfrt.add.i32"(%y, %z) : (i64, f32) -> i32
  tfrt.return %a : i32
}
