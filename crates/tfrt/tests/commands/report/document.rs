//! The contents of the document.

use std::sync::Arc;

use tfrt::Runtime;
use tfrt::profile::{About, Profile, Recorder, Report};

use super::*;

#[test]
fn times_stand_on_the_lines_of_the_source() {
    for (test, queue) in [
        ("lines_single", "--queue=single"),
        ("lines_multi", "--queue=multi:2"),
    ] {
        let profiled = profile(test, PROGRAM, &[queue, "--function=main"]);
        assert_eq!(profiled.output.status.code(), Some(0));
        let document = &profiled.document;
        assert_eq!(document["schema"], "tfrt.profile/1");
        assert_eq!(document["lost_events"], 0);
        let (numbers, runs) = (
            profiled.column("lines", "line"),
            profiled.column("lines", "runs"),
        );
        let on = |line: u64| runs[numbers.iter().position(|number| *number == line).unwrap()];
        // fib(6) makes 25 calls, of which 12 go on.
        for (line, expected) in [(3, 1), (6, 1), (10, 3), (21, 25), (23, 25), (33, 12)] {
            assert_eq!(on(line), expected, "line {line} with {queue}");
        }
        let text = &document["files"][0]["text"][0];
        assert_eq!(text["first"], 1);
        assert_eq!(text["lines"][1], "  %start = tfrt.new.chain");
        let (own, total) = (
            profiled.column("lines", "own_ns"),
            profiled.column("lines", "total_ns"),
        );
        let all: u64 = own.iter().sum();
        for (own, total) in own.iter().zip(&total) {
            assert!(own <= total && *total <= all, "{own} {total} {all}");
        }
        // What is called is called from line 6.
        let called: u64 = (0..numbers.len())
            .filter(|line| numbers[*line] >= 20)
            .map(|line| own[line])
            .sum();
        let call = numbers.iter().position(|number| *number == 6).unwrap();
        assert_eq!(total[call], own[call] + called, "{queue}");
    }
}

#[test]
fn scopes_fold_calls_loops_and_recursion() {
    let profiled = profile("scopes", PROGRAM, &["--queue=single", "--function=main"]);
    let names = profiled.all("functions", "name");
    let scopes = profiled.document["scopes"].as_array().unwrap();
    let mut told: Vec<String> = scopes
        .iter()
        .map(|scope| {
            let name = &names[scope["function"].as_u64().unwrap() as usize];
            let parent = scope["parent"].as_u64();
            format!(
                "{name} in {parent:?} at {}: {}",
                scope["kernel"], scope["calls"]
            )
        })
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            " in Some(0) at 7: 3",
            "fib in Some(0) at 4: 25",
            "main in None at null: 1",
            "sum in Some(1) at 2: 12",
        ]
    );
    let region = profiled.document["functions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|function| function["name"] == "")
        .unwrap();
    let repeat = region["region_of"].as_u64().unwrap() as usize;
    let name = profiled.document["kernels"]["name"][repeat]
        .as_u64()
        .unwrap() as usize;
    assert_eq!(profiled.document["names"][name], "tfrt.repeat.i32");
}

#[test]
fn critical_path_leads_along_operands() {
    let profiled = profile("critical", PROGRAM, &["--queue=single", "--function=main"]);
    let main = profiled.document["functions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|function| function["name"] == "main")
        .unwrap();
    let steps: Vec<u64> = main["critical"]
        .as_array()
        .unwrap()
        .iter()
        .map(|number| number.as_u64().unwrap())
        .collect();
    let steps: Vec<&[u64]> = steps.chunks(2).collect();
    // From the loop to the print.
    assert!(steps.contains(&&[7, 8][..]), "{steps:?}");
    assert!(!profiled.document["paths"].as_array().unwrap().is_empty());
    for step in steps {
        let producers = main["producers"][step[1] as usize].as_array().unwrap();
        assert!(producers.iter().any(|producer| *producer == step[0]));
    }
}

#[test]
fn what_tasks_do_for_a_kernel_is_its_time() {
    let text = "\
func.func @main() -> !tfrt.chain {
  %us = tfrt.constant.i32 20000
  %short = tfrt.constant.i32 1
  %quick = \"tfrt_test.blocking.usleep\"(%short) : (i32) -> !tfrt.chain
  %slept = \"tfrt_test.blocking.usleep\"(%us) : (i32) -> !tfrt.chain
  %both = tfrt.merge.chains %slept, %quick : !tfrt.chain, !tfrt.chain
  tfrt.return %both : !tfrt.chain
}
";
    for queue in ["--queue=single", "--queue=multi:2"] {
        let profiled = profile("parts", text, &[queue]);
        let numbers = profiled.column("lines", "line");
        let on = |column: &str, line: u64| {
            let at = numbers.iter().position(|number| *number == line).unwrap();
            profiled.column("lines", column)[at]
        };
        assert!(on("own_ns", 5) >= 20_000_000);
        assert_eq!(on("runs", 5), 1);
        // One thread takes the tasks in its own order: the end waited for one of them, with its part.
        let of_part = |line: u64| on("own_ns", line) - on("critical_ns", line);
        assert!(
            of_part(4) == 0 && on("critical_ns", 5) == 0
                || of_part(5) == 0 && on("critical_ns", 4) == 0
        );
        let of_threads = profiled.document["threads"].as_array().unwrap().iter();
        let marks = of_threads.flat_map(|thread| thread["marks"].as_array().unwrap().chunks(4));
        let parts = marks.filter(|mark| mark[0].as_i64().unwrap() <= -10);
        assert_eq!(parts.count(), 2);
    }
}

#[test]
fn threads_calls_and_memory_are_there() {
    let profiled = profile("threads", PROGRAM, &["--queue=multi:2"]);
    let document = &profiled.document;
    let mut n_kernels = 0;
    for thread in document["threads"].as_array().unwrap() {
        let marks: Vec<i64> = thread["marks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|number| number.as_i64().unwrap())
            .collect();
        assert!(marks.iter().skip(1).step_by(4).all(|since| *since >= 0));
        let kernels = marks.chunks(4).filter(|mark| mark[0] >= 0);
        n_kernels += kernels.map(|mark| mark[3].unsigned_abs()).sum::<u64>();
    }
    assert_eq!(
        n_kernels,
        profiled.column("lines", "runs").iter().sum::<u64>()
    );
    assert_eq!(document["merged_below_ns"], 0);
    assert_eq!(profiled.all("calls", "function"), ["main", "other"]);
    assert_eq!(profiled.all("calls", "outcome"), ["returned", "returned"]);
    let memory = &document["memory"];
    assert!(memory["peak"].as_u64().unwrap() > 0);
    let highest = memory["max"].as_array().unwrap().iter();
    let highest = highest.filter_map(Json::as_u64).max();
    assert_eq!(highest, memory["peak"].as_u64());
}

#[test]
fn what_was_lost_is_counted_and_said() {
    let recorder = Arc::new(Recorder::with_capacity(64));
    let runtime = Runtime::builder().recorder(recorder.clone()).build();
    let program = runtime.compile("lost.mlir", PROGRAM).unwrap();
    let main = program.function("main").unwrap();
    main.call(&runtime.context(), ()).wait().unwrap();
    runtime.quiesce().unwrap();
    let (recording, programs) = (recorder.recording(), [program]);
    let profile = Profile::new(&recording, &programs);
    let about = About {
        name: "lost.mlir".to_owned(),
        ..About::default()
    };
    let report = Report::new(&profile, &recording, &programs, &about, &|_| None);
    let document: Json = serde_json::from_str(report.document()).unwrap();
    let lost = document["lost_events"].as_u64().unwrap();
    let kept = document["kernels"]["runs"].as_array().unwrap().iter();
    let kept: u64 = kept.filter_map(Json::as_u64).sum();
    assert!(lost > 0 && kept <= 3 * 64, "{lost} {kept}");
    let page = file("lost.html");
    report
        .write_page(&mut fs::File::create(&page).unwrap())
        .unwrap();
    browser::exercise(&page, 1280);
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("The recording was full"), "the page says so");
}

#[test]
fn texts_do_not_break_out_of_the_page() {
    let hostile = "\
func.func @\"</script><script>window.broken = 1</script>\"() {
  // <!-- <script> </script> & \u{2028}
  %start = tfrt.new.chain
  %text = \"tfrt_test.get_string\"() {value = \"</script><img src=x onerror=alert(1)>\"} : () -> !tfrt.string
  %done = \"tfrt_test.print_string\"(%text, %start) : (!tfrt.string, !tfrt.chain) -> !tfrt.chain
  tfrt.return
}
";
    let program = file("a<img src=x onerror=alert(1)>&'\".mlir");
    fs::write(&program, hostile).unwrap();
    let profiled = profile_file("hostile", &program, &[]);
    assert_eq!(
        profiled.output.status.code(),
        Some(0),
        "{:?}",
        profiled.output
    );
    assert_eq!(
        profiled.all("functions", "name"),
        ["</script><script>window.broken = 1</script>"]
    );
    for tag in ["<script>window", "<img", "<!-- <script>"] {
        assert!(!profiled.html.contains(tag), "{tag} is not escaped");
    }
    browser::exercise(&profiled.page, 1280);
}

#[test]
fn failures_are_marked_on_their_lines() {
    let text = "\
func.func @main() -> i32 {
  %one = tfrt.constant.i32 1
  %zero = tfrt.constant.i32 0
  %bad, %rest = tfrt.div.i32 %one, %zero
  %after = tfrt.add.i32 %bad, %one
  tfrt.return %after : i32
}
func.func @cancelled() -> i32 {
  %start = tfrt.new.chain
  %zero, %done = \"tfrt_test.cancel\"(%start) : (!tfrt.chain) -> (i32, !tfrt.chain)
  %after = tfrt.add.i32 %zero, %zero
  tfrt.return %after : i32
}
func.func @fine() -> i32 {
  %one = tfrt.constant.i32 1
  tfrt.return %one : i32
}
";
    let profiled = profile("failures", text, &[]);
    assert_eq!(profiled.output.status.code(), Some(3));
    let outcomes = profiled.all("calls", "outcome");
    assert_eq!(outcomes, ["failed", "failed", "returned"]);
    let errors = profiled.document["errors"].as_array().unwrap();
    assert_eq!(errors[0]["message"], "Divide by zero");
    assert_eq!(errors[0]["kernel"], "tfrt.div.i32");
    let line = errors[0]["line"].as_u64().unwrap() as usize;
    assert_eq!(profiled.column("lines", "line")[line], 4);
    assert_eq!(errors[1]["message"], "Cancelled");
    assert_eq!(errors[1]["line"], -1);
    browser::exercise(&profiled.page, 800);
}

#[test]
fn deadline_ends_a_run_but_not_its_page() {
    let text = "\
func.func @main() -> i32 {
  %one = tfrt.constant.i32 1
  %never = \"tfrt_test.never\"() : () -> i32
  %sum = tfrt.add.i32 %one, %never
  tfrt.return %sum : i32
}
";
    let profiled = profile("deadline", text, &["--deadline=20ms"]);
    let outcome = profiled.all("calls", "outcome");
    let status = profiled.output.status.code();
    assert_eq!((status, outcome), (Some(4), vec!["cancelled".to_owned()]));
    assert!(!profiled.document["errors"].as_array().unwrap().is_empty());
}

#[test]
fn kernels_without_places_are_listed() {
    let text = "\
func.func @main() -> i32 {
  %one = tfrt.constant.i32 1 loc(unknown)
  %two = tfrt.add.i32 %one, %one loc(\"made by <hand>\")
  %three = tfrt.add.i32 %one, %two loc(\"elsewhere.py\":7:3)
  tfrt.return %three : i32
}
";
    let profiled = profile("nowhere", text, &[]);
    assert_eq!(
        profiled.output.status.code(),
        Some(0),
        "{:?}",
        profiled.output
    );
    let names = profiled.all("files", "name");
    assert_eq!(names, ["(unknown)", "made by <hand>", "elsewhere.py"]);
    assert_eq!(profiled.column("lines", "line"), [0, 0, 7]);
    assert_eq!(profiled.column("lines", "runs"), [1, 1, 1]);
    browser::exercise(&profiled.page, 1280);
}

#[test]
fn programs_without_names_and_without_kernels_are_shown() {
    let program = file("stripped.mlir");
    fs::write(&program, PROGRAM).unwrap();
    let stripped = file("stripped.bef");
    let words = ["compile", "--strip", path(&program), "-o", path(&stripped)];
    assert_eq!(tfrt(&words).status.code(), Some(0));
    let profiled = profile_file("stripped", &stripped, &[]);
    assert_eq!(profiled.output.status.code(), Some(0));
    assert!(profiled.column("lines", "runs").iter().sum::<u64>() > 50);
    browser::exercise(&profiled.page, 1280);

    let empty = profile("empty", "func.func @main() {\n  tfrt.return\n}\n", &[]);
    assert_eq!(empty.document["names"], Json::Array(Vec::new()));
    browser::exercise(&empty.page, 800);
}

#[test]
fn text_of_compiled_programs_is_read_when_it_is_there() {
    let program = file("compiled.mlir");
    fs::write(&program, PROGRAM).unwrap();
    let compiled = file("compiled.bef");
    let words = ["compile", path(&program), "-o", path(&compiled)];
    assert_eq!(tfrt(&words).status.code(), Some(0));
    let there = profile_file("compiled", &compiled, &[]);
    assert_eq!(there.document["files"][0]["is_read_later"], true);
    assert_eq!(there.document["files"][0]["has_text"], true);
    fs::remove_file(&program).unwrap();
    let gone = profile_file("compiled_gone", &compiled, &[]);
    assert_eq!(gone.document["files"][0]["has_text"], false);
    assert!(gone.column("lines", "line").contains(&6));
    browser::exercise(&gone.page, 800);
}

#[test]
fn options_go_together() {
    let program = file("together.mlir");
    fs::write(&program, PROGRAM).unwrap();
    let trace = file("together.pftrace");
    let options = ["--stats", "--json", "--trace", path(&trace)];
    let profiled = profile_file("together", &program, &options);
    let said: Json = serde_json::from_slice(&profiled.output.stdout).unwrap();
    assert_eq!(said["stats"]["schema"], "tfrt.stats/1");
    let told = String::from_utf8_lossy(&profiled.output.stderr);
    let expected = format!(
        "tfrt: wrote {} bytes to '{}', for https://ui.perfetto.dev\n\
         tfrt: wrote {} bytes to '{}', for a browser\n",
        fs::metadata(&trace).unwrap().len(),
        trace.display(),
        profiled.html.len(),
        profiled.page.display(),
    );
    assert_eq!(told, expected);
}

#[test]
fn paths_are_looked_at_before_the_run() {
    let program = file("paths.mlir");
    fs::write(&program, PROGRAM).unwrap();
    let page = file("paths.html");
    let cases: [(&[&str], i32, &str); 4] = [
        (
            &["--profile=/nonexistent/page.html"],
            1,
            "cannot write '/nonexistent/page.html': ",
        ),
        (
            &["--profile=-"],
            2,
            "--profile takes a file: standard output is for results",
        ),
        (&["--profile", path(&program)], 2, "is the input"),
        (
            &["--profile", path(&page), "--trace", path(&page)],
            2,
            "--trace and --profile name the same file",
        ),
    ];
    for (options, status, message) in cases {
        let output = tfrt(&[&["run"], options, &[path(&program)]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(message), "{said}");
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert_eq!(output.stdout, b"", "nothing ran");
    }
}
