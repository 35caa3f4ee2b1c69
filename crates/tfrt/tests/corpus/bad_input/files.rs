//! Files that can't be read or written, and streams that end.

use super::Case;

const FINE: &str = "func.func @main() -> i32 {
  %x = tfrt.constant.i32 42
  tfrt.return %x : i32
}
";

pub fn cases() -> Vec<Case> {
    let line = Case::line;
    vec![
        line("missing file", "run nope.mlir", 1)
            .stderr("tfrt: error: cannot open input file 'nope.mlir': No such file or directory"),
        line("directory", "run .", 1).stderr(
            "tfrt: error: cannot open input file '.': is a directory, expected one that has \
                 'saved_model.pb' (SavedModel)",
        ),
        line("file below a file", "run input.mlir/x", 1)
            .file(FINE)
            .stderr("cannot open input file 'input.mlir/x': Not a directory"),
        line("no permission to look", "run /proc/1/mem", 1)
            .stderr("tfrt: error: cannot open input file '/proc/1/mem': "),
        line("endless file", "run /dev/zero", 1)
            .stderr("tfrt: error: cannot open input file '/dev/zero': "),
        line("empty standard input", "run -", 0),
        line("program from standard input", "run -", 0)
            .stdin(FINE)
            .stdout("'main' returned 42"),
        line("standard input that is no program", "run -", 1)
            .stdin("nothing")
            .stderr("-:1:1: error: custom op 'nothing' is unknown"),
        line(
            "output into a folder that does not exist",
            "compile FILE -o OUT",
            1,
        )
        .file(FINE)
        .stderr("tfrt: error: cannot write 'out/put.bef': No such file or directory"),
        line("output onto a folder", "compile FILE -o .", 1)
            .file(FINE)
            .stderr("tfrt: error: cannot write '.': Is a directory"),
        line("disk full", "compile FILE -o /dev/full", 1)
            .file(FINE)
            .stderr("tfrt: error: cannot write '/dev/full': No space left on device"),
        line("bytes where text is expected", "opt FILE", 1)
            .file([0x0b, 0xef, 0, 1])
            .stderr("tfrt: error: expected MLIR text, but 'input.mlir' is a BEF file"),
        line("bytes for the compiler", "compile FILE -o OUT", 1)
            .file([0x0b, 0xef, 0, 1])
            .stderr("tfrt: error: expected MLIR text, but 'input.mlir' is a BEF file [TF0004]"),
        line(
            "4096 threads of each kind",
            "run --queue multi:4096:4096 FILE",
            0,
        )
        .file(FINE)
        .stdout("'main' returned 42"),
        line("one of several files is bad", "check FILE nope.mlir", 1)
            .file(FINE)
            .stdout("input.mlir: ok")
            .stdout("nope.mlir: rejected")
            .stderr("cannot open input file 'nope.mlir'"),
    ]
}
