//! Programs that go wrong when they run, each on one thread and on many.

use std::time::Duration;

use super::Case;

/// Returns a function `main` that returns `%x : i32`.
fn main(body: &str) -> String {
    format!("func.func @main() -> i32 {{\n{body}  tfrt.return %x : i32\n}}\n")
}

/// Returns a function `main` that returns the chain `%c`; `%c0` is one to start with.
fn chained(body: &str) -> String {
    format!(
        "func.func @main() -> !tfrt.chain {{\n  %c0 = tfrt.new.chain\n{body}  tfrt.return %c : !tfrt.chain\n}}\n"
    )
}

/// Returns a function of the program with its own fault, marked synchronous.
fn synchronous(body: &str) -> String {
    main(body).replace("-> i32 {", "-> i32 attributes {tfrt.sync} {")
}

/// `%x` is what the only result of kernel `name` is.
fn kernel(name: &str) -> String {
    format!("  %x = \"{name}\"() : () -> i32\n")
}

pub fn cases() -> Vec<Case> {
    [
        kernels(),
        arithmetic(),
        recursions(),
        loops(),
        memory(),
        time(),
    ]
    .concat()
}

/// Kernels that do what they must not.
fn kernels() -> Vec<Case> {
    let fault = |kind, text: String| Case::fault(kind, "", &text, 3);
    const STUCK: &str = "<<error: the request is stuck: nothing can run and nothing is in flight, \
                         but kernel 'tfrt_test.never' at input.mlir:2:8 never resolved>>";
    // The watch looks twice, 20 ms apart; the rest is the start of the process, on a busy machine.
    let soon = Duration::from_secs(2);
    vec![
        fault("kernel that fails", main(&kernel("tfrt_test.fail")))
            .stdout("'main' returned <<error: something bad happened>>")
            .stderr("input.mlir:2:8: error: runtime error: something bad happened")
            .stderr("note: reported by kernel 'tfrt_test.fail'"),
        Case::fault(
            "kernel that fails, with its code",
            "--print-error-code",
            &main(&kernel("tfrt_test.fail")),
            3,
        )
        .stdout("<<error: something bad happened, code: Unknown>>"),
        fault("kernel that fails later", main(&kernel("tfrt_test.report_error_async")))
            .stdout("<<error: something bad happened asynchronously>>"),
        Case::line("kernel that leaks", "run --allocator leak-check FILE", 6)
            .file("func.func @f() {\n  \"tfrt_test.memory_leak_one_int32\"() : () -> ()\n  tfrt.return\n}\n")
            .stdout("Memory leak detected: "),
        Case::fault(
            "no memory for the first call",
            "--allocator fixed:33",
            &main(&large()),
            5,
        )
        .stdout("no memory"),
        fault("kernel that panics", main(&kernel("tfrt_test.panic")))
            .stdout("'main' returned <<error: the kernel panicked: tfrt_test.panic panics>>")
            .stderr("input.mlir:2:8: error: runtime error: the kernel panicked"),
        Case::fault(
            "kernel that panics, whose result nobody uses",
            "",
            &main(&(kernel("tfrt_test.panic").replace("%x", "%unused") + "  %x = tfrt.constant.i32 1\n")),
            0,
        )
        .stdout("'main' returned 1")
        .stderr("input.mlir:2:13: error: runtime error: the kernel panicked"),
        fault("kernel that drops its promise", main(&kernel("tfrt_test.drop_promise")))
            .stdout("<<error: kernel 'tfrt_test.drop_promise' dropped its promise without resolving it>>")
            .stderr("input.mlir:2:8: error: runtime error: kernel 'tfrt_test.drop_promise'"),
        fault("kernel with a wrong number of results", main(&kernel("tfrt_test.wrong_result_count")))
            .stdout("'main' returned <<error: the kernel gave 2 results where 1 are expected>>"),
        fault("kernel that never resolves, returned", main(&kernel("tfrt_test.never")))
            .stdout(STUCK)
            .stderr("input.mlir:2:8: error: runtime error: the request is stuck")
            .within(soon),
        fault(
            "kernel that never resolves, used",
            main(&(kernel("tfrt_test.never").replace("%x", "%y") + "  %x = tfrt.add.i32 %y, %y\n")),
        )
        .stdout(STUCK)
        .within(soon),
        Case::fault(
            "kernel that never resolves, not used",
            "",
            &main(&(kernel("tfrt_test.never").replace("%x", "%y") + "  %x = tfrt.constant.i32 1\n")),
            0,
        )
        .stdout("'main' returned 1")
        .stderr("input.mlir:2:8: error: runtime error: the request is stuck")
        .within(soon),
        fault(
            "two kernels that never resolve",
            main(
                "  %y = \"tfrt_test.never\"() : () -> i32\n  %z = \"tfrt_test.never\"() : () -> i32\n  %x = tfrt.add.i32 %y, %z\n",
            ),
        )
        .stdout("but kernel 'tfrt_test.never' at input.mlir:2:8, kernel 'tfrt_test.never' at input.mlir:3:8 never resolved>>"),
        fault(
            "kernel that never resolves in a function that is called",
            main("  %x = tfrt.call @main2() : () -> i32\n")
                + &main(&kernel("tfrt_test.never")).replace("@main", "@main2"),
        )
        .stdout("but kernel 'tfrt_test.never' at input.mlir:6:8 never resolved>>"),
        fault("error in a synchronous function", synchronous(&kernel("tfrt_test.fail")))
            .stdout("'main' returned <<error: something bad happened>>"),
        fault("panic in a synchronous function", synchronous(&kernel("tfrt_test.panic")))
            .stdout("'main' returned <<error: the kernel panicked: tfrt_test.panic panics>>"),
        fault(
            "cancelled by a kernel",
            main("  %c0 = tfrt.new.chain\n  %y, %c = \"tfrt_test.cancel\"(%c0) : (!tfrt.chain) -> (i32, !tfrt.chain)\n  %x = \"tfrt_test.identity\"(%c, %y) : (!tfrt.chain, i32) -> i32\n"),
        )
        .stdout("'main' returned <<error: "),
    ]
}

fn arithmetic() -> Vec<Case> {
    let divided = |n: &str, d: &str| {
        main(&format!(
            "  %n = tfrt.constant.i32 {n}\n  %d = tfrt.constant.i32 {d}\n  %x, %r = \"tfrt.div.i32\"(%n, %d) : (i32, i32) -> (i32, i32)\n"
        ))
    };
    let branch = |index: &str| {
        main(&format!(
            "  %i = tfrt.constant.i32 {index}\n  %x = tfrt.case %i [@one, @one] (%i) : (i32) -> (i32)\n"
        )) + "func.func @one(%x: i32) -> i32 {\n  tfrt.return %x : i32\n}\n"
    };
    vec![
        Case::fault("division by zero", "", &divided("1", "0"), 3)
            .stdout("'main' returned <<error: Divide by zero>>")
            .stderr("input.mlir:4:12: error: runtime error: Divide by zero"),
        Case::fault("smallest number by -1", "", &divided("-2147483648", "-1"), 0)
            .stdout("'main' returned -2147483648"),
        Case::fault("branch out of range", "", &branch("2"), 3)
            .stdout("<<error: branch_index invalid. branch index: 2 # branches: 2>>"),
        Case::fault("negative branch", "", &branch("-1"), 3)
            .stdout("<<error: branch_index invalid. branch index: -1 # branches: 2>>"),
        Case::fault(
            "negative repeat count",
            "",
            &main("  %n = tfrt.constant.i32 -1\n  %x = tfrt.repeat.i32 %n, %n : i32 {\n    tfrt.return %n : i32\n  }\n"),
            3,
        )
        .stdout("<<error: expected a repeat count that is not negative, found -1>>"),
    ]
}

fn recursions() -> Vec<Case> {
    let plain = main("  %x = tfrt.call @main() : () -> i32\n");
    let tasks = "func.func @main() -> i32 {
  %x = tfrt.constant.i32 1
  %y = tfrt_test.do.async %x : (i32) -> (i32) {
    %z = tfrt.call @main() : () -> i32
    tfrt.return %z : i32
  }
  tfrt.return %y : i32
}
";
    let twice = main(
        "  %a = tfrt.call @main() : () -> i32\n  %b = tfrt.call @main() : () -> i32\n  %x = tfrt.add.i32 %a, %b\n",
    );
    vec![
        // As deep as it gets: one way of running, since that takes a while.
        Case::line("recursion without end", "run --queue single FILE", 5)
            .file(&*plain)
            .stdout("<<error: call depth exceeds the limit of 1000000>>")
            .stderr(
                "input.mlir:2:8: error: runtime error: call depth exceeds the limit of 1000000",
            ),
        Case::fault(
            "recursion without end, --max-depth 100000",
            "--max-depth 100000",
            &plain,
            5,
        )
        .stdout("<<error: call depth exceeds the limit of 100000>>"),
        Case::fault(
            "recursion without end, --max-depth",
            "--max-depth 10",
            &plain,
            5,
        )
        .stdout("<<error: call depth exceeds the limit of 10>>"),
        Case::fault("no call at all, --max-depth 0", "--max-depth 0", &plain, 5)
            .stdout("<<error: call depth exceeds the limit of 0>>"),
        Case::fault(
            "recursion through tasks without end",
            "--max-depth 50000",
            tasks,
            5,
        )
        .stdout("<<error: call depth exceeds the limit of 50000>>"),
        Case::fault(
            "recursion through tasks, --deadline",
            "--deadline 200ms",
            tasks,
            4,
        )
        .stdout("<<error: Deadline exceeded: the time allowed was 200ms>>"),
        Case::fault(
            "recursion that doubles, --max-steps",
            "--max-steps 20000",
            &twice,
            5,
        )
        .stdout("<<error: "),
        Case::fault(
            "recursion that doubles, --deadline",
            // The calls end at the deadline, and have as long again for it: 100 ms are too short on a busy machine.
            "--max-depth 50 --deadline 500ms",
            &twice,
            5,
        )
        .stdout("<<error: "),
        Case::fault(
            "recursion without end, --max-memory",
            "--max-memory 1MiB",
            &plain,
            5,
        )
        .stdout("<<error: no memory for a call of 'main': about "),
        Case::fault(
            "recursion without end, fixed allocator",
            "--allocator fixed:10000",
            &plain,
            5,
        )
        .stdout("<<error: no memory for a call of 'main': about ")
        .stderr("However current capacity is only"),
    ]
}

fn loops() -> Vec<Case> {
    let endless = |parallel: &str| {
        main(&format!(
            "  %t = tfrt.constant.i1 true\n  %n = tfrt.constant.i32 1\n  %x = tfrt.while %t @body(%n) parallel_iterations({parallel}) : (i32) -> (i32)\n"
        )) + "func.func @body(%x: i32) -> (i32, i1) {
  %t = tfrt.constant.i1 true
  tfrt.return %x, %t : i32, i1
}
"
    };
    let later = endless("1").replace(
        "  %t = tfrt.constant.i1 true\n  tfrt.return",
        "  %t = \"tfrt_test.async_constant.i1\"() {value = true} : () -> i1\n  tfrt.return",
    );
    let empty = main(
        "  %n = tfrt.constant.i32 2147483647\n  %x = tfrt.repeat.i32 %n, %n : i32 {\n    tfrt.return %n : i32\n  }\n",
    );
    const STEPS: &str = "<<error: the request takes more than the limit of 10000 steps>>";
    const DEADLINE: &str = "<<error: Deadline exceeded: the time allowed was 200ms>>";
    vec![
        Case::fault(
            "loop without end, --max-steps",
            "--max-steps 10000",
            &endless("1"),
            5,
        )
        .stdout(STEPS),
        Case::fault(
            "parallel loop without end, --max-steps",
            "--max-steps 10000",
            &endless("4"),
            5,
        )
        .stdout(STEPS),
        Case::fault(
            "loop over tasks without end, --max-steps",
            "--max-steps 10000",
            &later,
            5,
        )
        .stdout(STEPS),
        Case::fault(
            "loop of 2^31 empty turns, --max-steps",
            "--max-steps 10000",
            &empty,
            5,
        )
        .stdout(STEPS),
        Case::fault(
            "loop without end, --deadline",
            "--deadline 200ms",
            &endless("1"),
            4,
        )
        .stdout(DEADLINE),
        Case::fault(
            "parallel loop without end, --deadline",
            "--deadline 200ms",
            &endless("4"),
            4,
        )
        .stdout(DEADLINE),
        Case::fault(
            "loop over tasks without end, --deadline",
            "--deadline 200ms",
            &later,
            4,
        )
        .stdout(DEADLINE),
        Case::fault(
            "loop of 2^31 empty turns, --deadline",
            "--deadline 200ms",
            &empty,
            4,
        )
        .stdout(DEADLINE),
        Case::fault(
            "no step at all, --max-steps 0",
            "--max-steps 0",
            &main("  %x = tfrt.constant.i32 1\n"),
            5,
        )
        .stdout("<<error: the request takes more than the limit of 0 steps>>"),
    ]
}

fn memory() -> Vec<Case> {
    let buffer = chained(
        "  %c = \"tfrt_test.allocate\"(%c0) {bytes = 100000000} : (!tfrt.chain) -> !tfrt.chain\n",
    );
    let huge = buffer.replace("100000000", "9223372036854775807");
    let doubling = "func.func @main() -> !tfrt.string {
  %n = tfrt.constant.i32 80
  %s = \"tfrt_test.get_string\"() {value = \"0123456789abcdef\"} : () -> !tfrt.string
  %x = tfrt.repeat.i32 %n, %s : !tfrt.string {
    %t = \"tfrt_test.append_string\"(%s, %s) : (!tfrt.string, !tfrt.string) -> !tfrt.string
    tfrt.return %t : !tfrt.string
  }
  tfrt.return %x : !tfrt.string
}
";
    vec![
        Case::fault("buffer beyond --max-memory", "--max-memory 10MiB", &buffer, 5)
            .stdout("'main' returned <<error: cannot allocate 100000000 bytes>>"),
        Case::fault("buffer beyond a fixed allocator", "--allocator fixed:1MiB", &buffer, 5)
            .stdout("'main' returned <<error: cannot allocate 100000000 bytes>>"),
        Case::fault("buffer of 2^63 bytes", "", &huge, 3)
            .stdout("'main' returned <<error: cannot ask for 9223372036854775807 bytes>>"),
        Case::fault("fixed allocator without a byte", "--allocator fixed:0", &main(&large()), 5)
            .stdout("'main' returned <<error: no memory for a call of 'main'"),
        Case::line("string that doubles", "run --queue single FILE", 5)
            .file(doubling)
            .stdout("'main' returned <<error: a string exceeds the limit of 1073741824 bytes>>"),
        Case::fault("string that doubles, --max-memory", "--max-memory 10MiB", doubling, 5)
            .stdout("'main' returned <<error: a string exceeds the limit of 10485760 bytes>>"),
        Case::line("value that leaks", "run --allocator leak-check FILE", 6)
            .file("func.func @main() {\n  \"tfrt_test.memory_leak_one_int32\"() : () -> ()\n  tfrt.return\n}\n")
            .stdout("Memory leak detected: 1 alive allocations, 4 alive bytes"),
    ]
}

/// Returns a body whose call does not fit the memory that every thread has for small ones.
fn large() -> String {
    // What runs last is read together with each of the others: all of them live until then.
    let others = (0..100).map(|index| format!("  %other{index} = tfrt.constant.i32 {index}\n"));
    let sums = (0..100).map(|index| format!("  %sum{index} = tfrt.add.i32 %other{index}, %x\n"));
    let x = "  %x = tfrt.constant.i32 1\n".to_owned();
    x + &others.chain(sums).collect::<String>()
}

fn time() -> Vec<Case> {
    const DEADLINE: &str = "'main' returned <<error: Deadline exceeded: the time allowed was ";
    vec![
        Case::fault(
            "deadline that has passed",
            "--deadline 0ms",
            &main("  %x = tfrt.constant.i32 1\n"),
            4,
        )
        .stdout(DEADLINE),
        Case::fault(
            "deadline while a blocking kernel sleeps",
            "--deadline 200ms",
            &chained("  %us = tfrt.constant.i32 250000\n  %c = \"tfrt_test.blocking.usleep\"(%us, %c0) : (i32, !tfrt.chain) -> !tfrt.chain\n"),
            4,
        )
        .stdout("<<error: Deadline exceeded: the time allowed was 200ms>>"),
        Case::fault(
            "deadline while a kernel spins",
            "--deadline 200ms",
            &chained("  %c1 = \"tfrt_test.spin\"(%c0) : (!tfrt.chain) -> !tfrt.chain\n  %c = \"tfrt_test.spin\"(%c1) : (!tfrt.chain) -> !tfrt.chain\n"),
            4,
        )
        .stdout(DEADLINE),
        Case::fault(
            "kernel that sleeps for longer than twice the deadline",
            "--deadline 50ms",
            &chained("  %us = tfrt.constant.i32 5000000\n  %c = \"tfrt_test.blocking.usleep\"(%us, %c0) : (i32, !tfrt.chain) -> !tfrt.chain\n"),
            4,
        )
        .stderr("tfrt: error: ended, since there was work that did not stop at the deadline of 50ms")
        .within(Duration::from_secs(3)),
        Case::fault("deadline of a kernel that never resolves", "--deadline 5ms", &main(&kernel("tfrt_test.never")), 4)
            .stdout(DEADLINE),
        Case::fault(
            "deadline of a function without results",
            "--deadline 200ms",
            "func.func @main() {\n  %c = tfrt.new.chain\n  %d = \"tfrt_test.spin\"(%c) : (!tfrt.chain) -> !tfrt.chain\n  tfrt.return\n}\n",
            4,
        )
        .stderr("error: runtime error: Deadline exceeded"),
        Case::fault(
            "deadline of one function of two",
            "--deadline 200ms --function main --function fine",
            &(chained("  %c = \"tfrt_test.spin\"(%c0) : (!tfrt.chain) -> !tfrt.chain\n")
                + "func.func @fine() -> i32 {\n  %x = tfrt.constant.i32 7\n  tfrt.return %x : i32\n}\n"),
            4,
        )
        .stdout("'fine' returned 7"),
    ]
}
