// RUN: run

// FizzBuzz up to 15. The loop hands a chain and a number from turn to turn; the chain is what keeps
// the lines in order, on however many threads.

// CHECK-LABEL: --- Running 'main':
func.func @main() -> !tfrt.chain {
  %start = tfrt.new.chain
  %first = tfrt.constant.i32 1
  %turns = tfrt.constant.i32 15
  %done, %last = tfrt.repeat.i32 %turns, %start, %first : !tfrt.chain, i32 {
    %zero = tfrt.constant.i32 0
    %one = tfrt.constant.i32 1
    %three = tfrt.constant.i32 3
    %five = tfrt.constant.i32 5
    %by3, %rest3 = tfrt.div.i32 %first, %three
    %by5, %rest5 = tfrt.div.i32 %first, %five
    %fizz = tfrt.equal.i32 %rest3, %zero
    %buzz = tfrt.equal.i32 %rest5, %zero

    %said = tfrt.if %fizz, %start, %first, %buzz : (!tfrt.chain, i32, i1) -> (!tfrt.chain) {
      %both = tfrt.if %buzz, %start : (!tfrt.chain) -> (!tfrt.chain) {
        %word = "tfrt_test.get_string"() {value = "FizzBuzz"} : () -> !tfrt.string
        %c = "tfrt_test.print_string"(%word, %start) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
        tfrt.return %c : !tfrt.chain
      } else {
        %word = "tfrt_test.get_string"() {value = "Fizz"} : () -> !tfrt.string
        %c = "tfrt_test.print_string"(%word, %start) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
        tfrt.return %c : !tfrt.chain
      }
      tfrt.return %both : !tfrt.chain
    } else {
      %one_of_two = tfrt.if %buzz, %start, %first : (!tfrt.chain, i32) -> (!tfrt.chain) {
        %word = "tfrt_test.get_string"() {value = "Buzz"} : () -> !tfrt.string
        %c = "tfrt_test.print_string"(%word, %start) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
        tfrt.return %c : !tfrt.chain
      } else {
        %c = tfrt.print.i32 %first, %start
        tfrt.return %c : !tfrt.chain
      }
      tfrt.return %one_of_two : !tfrt.chain
    }

    %next = tfrt.add.i32 %first, %one
    tfrt.return %said, %next : !tfrt.chain, i32
  }
  tfrt.return %done : !tfrt.chain
}

// CHECK-NEXT: int32 = 1
// CHECK-NEXT: int32 = 2
// CHECK-NEXT: string = Fizz
// CHECK-NEXT: int32 = 4
// CHECK-NEXT: string = Buzz
// CHECK-NEXT: string = Fizz
// CHECK-NEXT: int32 = 7
// CHECK-NEXT: int32 = 8
// CHECK-NEXT: string = Fizz
// CHECK-NEXT: string = Buzz
// CHECK-NEXT: int32 = 11
// CHECK-NEXT: string = Fizz
// CHECK-NEXT: int32 = 13
// CHECK-NEXT: int32 = 14
// CHECK-NEXT: string = FizzBuzz
// CHECK-NEXT: 'main' returned !tfrt.chain value
