//! Command lines that make no sense, by themselves or for the program at hand.

use super::Case;

const PROGRAM: &str = "func.func @main() -> i32 {
  %x = tfrt.constant.i32 42
  tfrt.return %x : i32
}
func.func @add(%a: i32, %b: i8, %c: !tfrt.chain) -> i32 {
  tfrt.return %a : i32
}
func.func @opaque(%t: !t.tensor) {
  tfrt.return
}
";

const MODEL: &str = "module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<?xf32>) -> tensor<?xf32>
      attributes {model.input_names = [\"x\"], model.output_names = [\"y\"], model.input_dims = [[\"N\"]],
                  model.output_dims = [[\"N\"]]} {
    %y = \"onnx.Tanh\"(%x) : (tensor<?xf32>) -> tensor<?xf32>
    func.return %y : tensor<?xf32>
  }
}
";

const TWO_OUTPUTS: &str = "module attributes {onnx.opset = 17 : i64} {
  func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
      attributes {model.input_names = [\"x\"], model.output_names = [\"y\", \"z\"], model.input_dims = [[2 : i64]],
                  model.output_dims = [[2 : i64], [2 : i64]]} {
    %y = \"onnx.Tanh\"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    %z = \"onnx.Exp\"(%x) : (tensor<2xf32>) -> tensor<2xf32>
    func.return %y, %z : tensor<2xf32>, tensor<2xf32>
  }
}
";

pub fn cases() -> Vec<Case> {
    let line = |kind, line: &str, stderr| Case::line(kind, line, 2).file(PROGRAM).stderr(stderr);
    vec![
        line("no command", "--color=never", "Usage: tfrt"),
        line(
            "unknown command",
            "runn FILE",
            "a similar subcommand exists: 'run'",
        ),
        line(
            "output onto the input",
            "compile FILE -o FILE",
            "is the input, which would be lost",
        ),
        line(
            "no file",
            "run",
            "the following required arguments were not provided",
        ),
        line(
            "two extents of one dimension",
            "run FILE --random --dim N=1 --dim N=2",
            "dimension 'N' is given twice",
        )
        .file(MODEL),
        line(
            "two outputs to one file",
            "run FILE --random --output y=a.npy --output z=./a.npy",
            "'./a.npy' is named for two outputs, of which one would be lost",
        )
        .file(TWO_OUTPUTS),
        line(
            "an output to a file that others go to",
            "run FILE --random --output y=z.npy --output-dir .",
            "is named for two outputs, of which one would be lost",
        )
        .file(TWO_OUTPUTS),
        line(
            "inputs for a function of a model",
            "run FILE --random --function main",
            "with --function or --arg, its functions are called as those of a program",
        )
        .file(MODEL),
        line(
            "inputs for a program",
            "run FILE --random",
            "are for models: functions of programs take --arg",
        ),
        line(
            "state of a program",
            "run FILE --state y=x",
            "are for models: functions of programs take --arg",
        ),
        line(
            "state of an output that the model does not give",
            "run FILE --state w=x",
            "the model has no output 'w': it gives y, z",
        )
        .file(TWO_OUTPUTS),
        line(
            "one input as two states",
            "run FILE --state y=x --state z=x",
            "output 'z' can't be the state of input 'x': output 'y' is the state of input 'x' already",
        )
        .file(TWO_OUTPUTS),
        line(
            "steps along a dimension that no input has",
            "run FILE --random --steps N",
            "--steps takes a number of steps, or a dimension of inputs that are no state, found 'N'",
        )
        .file(TWO_OUTPUTS),
        line(
            "steps that are larger than the input",
            "run FILE --random --steps x=0:18446744073709551615",
            "input 'x' can't be cut in pieces of 18446744073709551615",
        )
        .file(TWO_OUTPUTS),
        line(
            "two files",
            "run FILE FILE",
            "unexpected argument 'input.mlir' found",
        ),
        line(
            "unknown option",
            "run --quue single FILE",
            "a similar argument exists: '--queue'",
        ),
        line(
            "unknown queue",
            "run --queue triple FILE",
            "invalid value 'triple' for '--queue <QUEUE>': expected `single` or",
        ),
        line(
            "queue without threads",
            "run --queue multi:0 FILE",
            "expected a number from 1 to 4096, found '0'",
        ),
        line(
            "more threads than anybody has",
            "run --queue multi:99999999999999999999 FILE",
            "expected a number from 1 to 4096, found '99999999999999999999'",
        ),
        line(
            "too many parts of a queue",
            "run --queue multi:1:1:1 FILE",
            "nothing was expected where ':1' stands",
        ),
        line(
            "unknown allocator",
            "run --allocator malloc FILE",
            "expected `system`, `profiled`, `leak-check` or `fixed:BYTES`",
        ),
        line(
            "fixed allocator without bytes",
            "run --allocator fixed: FILE",
            "expected a number of bytes: 4096, 64KiB, 1GiB",
        ),
        line(
            "more memory than can be addressed",
            "run --allocator fixed:99999999999G FILE",
            "is more than can be addressed",
        ),
        line(
            "deadline without a unit",
            "run --deadline 5 FILE",
            "expected a time with a unit: 500ms, 2s, 1m",
        ),
        line(
            "deadline beyond all time",
            "run --deadline 99999999999999999999999h FILE",
            "invalid value '99999999999999999999999h' for '--deadline <TIME>'",
        ),
        line(
            "negative depth",
            "run --max-depth=-1 FILE",
            "invalid value '-1' for '--max-depth <N>'",
        ),
        line(
            "steps that are no number",
            "run --max-steps many FILE",
            "invalid value 'many' for '--max-steps <N>'",
        ),
        line(
            "memory of an unknown unit",
            "run --max-memory 1X FILE",
            "expected a number of bytes: 4096, 64KiB, 1GiB",
        ),
        line(
            "trace onto the input",
            "run --trace FILE FILE",
            "is the input, which would be lost; name another file with --trace",
        ),
        line(
            "trace to standard output",
            "run --trace - FILE",
            "tfrt: error: --trace takes a file: standard output is for results",
        ),
        line(
            "tolerance of nothing",
            "run --tolerance 1 FILE",
            "--expect <NAME=FILE>",
        ),
        line(
            "tolerance below 0",
            "run --expect y=OUT --tolerance=-1 FILE",
            "expected a number of 0 or more, such as 1e-4",
        ),
        line(
            "expectation of a program",
            "run --expect y=OUT FILE",
            "--input, --random, --output and what goes with them are for models",
        ),
        line(
            "no samples a second",
            "run --rate 0 FILE",
            "invalid value '0' for '--rate <HZ>'",
        ),
        line(
            "measurement of no calls",
            "bench --runs 0 FILE",
            "invalid value '0' for '--runs <N>'",
        ),
        line(
            "measurement by calls and by time",
            "bench --runs 5 --time 1s FILE",
            "cannot be used with",
        ),
        line(
            "measurement of a function that lacks its arguments",
            "bench --function add FILE",
            "tfrt: error: 'add' takes (i32, i8, !tfrt.chain), but --arg is given 0 times",
        ),
        line(
            "unknown trace level",
            "run --trace-level loud FILE",
            "[possible values: default, verbose, debug]",
        ),
        line(
            "unknown colour",
            "--color green run FILE",
            "[possible values: auto, always, never]",
        ),
        line(
            "standard input compared with itself",
            "diff - -",
            "tfrt: error: '-' is given 2 times, but standard input can be read once only",
        )
        .stdin(PROGRAM),
        line(
            "standard input checked again",
            "check - FILE - --json -",
            "tfrt: error: '-' is given 3 times, but standard input can be read once only",
        )
        .stdin(PROGRAM),
        Case::line("unknown function", "run --function mian FILE", 1)
            .file(PROGRAM)
            .stderr("tfrt: error: couldn't find function mian [TF0005]")
            .stderr("help: there is a function 'main'"),
        // As in the original, which looks for it with every program.
        Case::line("unknown function for --init", "run --init mian FILE", 0)
            .file(PROGRAM)
            .stdout("'main' returned 42"),
        Case::line("functions that lack their arguments", "run FILE", 0)
            .file(PROGRAM)
            .stdout("--- Not running 'add' because it has arguments."),
        line(
            "named function that lacks its arguments",
            "run --function add FILE",
            "'add' takes (i32, i8, !tfrt.chain), but --arg is given 0 times",
        ),
        line(
            "wrong number of arguments",
            "run --function add --arg 1 FILE",
            "'add' takes (i32, i8, !tfrt.chain), but --arg is given 1 time",
        ),
        line(
            "too many arguments for the function",
            "run --function main --arg 1 FILE",
            "--arg is given 1 time, but no function takes so many arguments",
        ),
        line(
            "arguments that fit no function",
            "run --arg 1 --arg 2 --arg 3 --arg 4 FILE",
            "--arg is given 4 times, but no function takes so many arguments",
        ),
        line(
            "argument that is no number",
            "run --function add --arg seven --arg 1 FILE",
            "expected a number in range for a parameter of type i32, found 'seven'",
        ),
        line(
            "argument that does not fit its type",
            "run --function add --arg 1 --arg 128 FILE",
            "expected a number in range for a parameter of type i8, found '128'",
        ),
        line(
            "argument of a type without words",
            "run --function opaque --arg 1 FILE",
            "a value of type !t.tensor can't be given on the command line",
        ),
        line(
            "shell without completions",
            "completions csh",
            "[possible values: ",
        ),
    ]
}
