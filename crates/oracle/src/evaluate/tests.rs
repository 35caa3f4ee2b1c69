use tfrt_ir::{Source, parse};

use super::{Ending, Limits, Refusal, Report, run};

fn evaluate(text: &str, limits: Limits) -> Result<Report, Refusal> {
    let module = parse(&Source::new("test.mlir", text));
    let module = module.unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    run(&module, limits)
}

#[track_caller]
fn check(text: &str, printed: &[&str], reported: &[&str]) -> Ending {
    let report = evaluate(text, Limits::default()).unwrap();
    assert_eq!(report.stdout.lines().collect::<Vec<_>>(), printed);
    let messages: Vec<_> = report
        .errors
        .iter()
        .map(|error| error.message.as_str())
        .collect();
    assert_eq!(messages, reported);
    report.ending
}

#[test]
fn the_last_failed_operand_wins_and_only_the_first_to_fail_reports() {
    let ending = check(
        r#"func.func @main() -> i32 {
             %zero = tfrt.constant.i32 0
             %a = "tfrt_test.fail"() : () -> i32
             %b, %c = tfrt.div.i32 %zero, %zero
             %d = tfrt.add.i32 %a, %b
             tfrt.return %d : i32
           }"#,
        &[
            "--- Running 'main':",
            "'main' returned <<error: Divide by zero>>",
        ],
        &["something bad happened", "Divide by zero"],
    );
    assert_eq!(ending, Ending::Failed);
}

#[test]
fn what_is_cancelled_reports_nothing() {
    let ending = check(
        r#"func.func @main() -> (i32, !tfrt.chain) {
             %c = tfrt.new.chain
             %zero, %d = "tfrt_test.cancel"(%c) : (!tfrt.chain) -> (i32, !tfrt.chain)
             %e = tfrt.print.i32 %zero, %d
             tfrt.return %zero, %e : i32, !tfrt.chain
           }"#,
        &[
            "--- Running 'main':",
            "'main' returned 0,<<error: Cancelled>>",
        ],
        &[],
    );
    assert_eq!(ending, Ending::Cancelled);
}

#[test]
fn a_failed_condition_fails_all_results_of_a_loop() {
    check(
        r#"func.func @body(%n: i32) -> (i32, i1) {
             %x = "tfrt_test.fail"() : () -> i32
             %more = tfrt.equal.i32 %x, %n
             tfrt.return %n, %more : i32, i1
           }
           func.func @main() -> i32 {
             %go = tfrt.constant.i1 true
             %n = tfrt.constant.i32 3
             %m = tfrt.while %go @body(%n) parallel_iterations(1) : (i32) -> (i32)
             tfrt.return %m : i32
           }"#,
        &[
            "--- Not running 'body' because it has arguments.",
            "--- Running 'main':",
            "'main' returned <<error: something bad happened>>",
        ],
        &["something bad happened"],
    );
}

#[test]
fn the_second_call_by_once_gives_what_the_first_gave() {
    check(
        r#"func.func @init(%x: i32) -> i32 {
             tfrt.return %x : i32
           }
           func.func @main() -> (i32, i32) {
             %a = tfrt.constant.i32 1
             %b = tfrt.constant.i32 2
             %x = tfrt.once @init(%a) : (i32) -> (i32)
             %y = tfrt.once @init(%b) : (i32) -> (i32)
             tfrt.return %x, %y : i32, i32
           }"#,
        &[
            "--- Not running 'init' because it has arguments.",
            "--- Running 'main':",
            "'main' returned 1,1",
        ],
        &[],
    );
}

#[test]
fn a_synchronous_function_stops_at_its_first_failure() {
    check(
        r#"func.func @main() -> (i32, i32) attributes {tfrt.sync} {
             %a = "tfrt_test.fail_s"() : () -> i32
             %b = "tfrt_test.fail_s"() : () -> i32
             tfrt.return %a, %b : i32, i32
           }"#,
        &[
            "--- Running 'main':",
            "'main' returned <<error: something bad happened>>",
        ],
        &["something bad happened"],
    );
}

#[test]
fn a_resource_goes_when_its_last_reader_is_skipped() {
    check(
        r#"func.func @main() -> !tfrt.chain {
             %c = tfrt.new.chain
             %r, %d = "tfrt_test.allocate_resource"(%c)
               : (!tfrt.chain) -> (!tfrt.test.resource, !tfrt.chain)
             %z, %e = "tfrt_test.cancel"(%d) : (!tfrt.chain) -> (i32, !tfrt.chain)
             %f = "tfrt_test.deallocate_resource"(%r, %e)
               : (!tfrt.test.resource, !tfrt.chain) -> !tfrt.chain
             tfrt.return %f : !tfrt.chain
           }"#,
        &[
            "--- Running 'main':",
            "Allocated TestResource",
            "Destroyed TestResource",
            "'main' returned <<error: Cancelled>>",
        ],
        &[],
    );
}

/// Returns a function that calls itself for ever, or down to zero.
fn recursion(n: i32, step: i32) -> String {
    format!(
        r#"func.func @down(%n: i32) -> i32 {{
             %zero = tfrt.constant.i32 0
             %stop = "tfrt.lessequal.i32"(%n, %zero) : (i32, i32) -> i1
             %m = tfrt.if %stop, %n : (i32) -> (i32) {{
               tfrt.return %n : i32
             }} else {{
               %step = tfrt.constant.i32 {step}
               %less = "tfrt.minus.i32"(%n, %step) : (i32, i32) -> i32
               %m = tfrt.call @down(%less) : (i32) -> (i32)
               tfrt.return %m : i32
             }}
             tfrt.return %m : i32
           }}
           func.func @main() -> i32 {{
             %n = tfrt.constant.i32 {n}
             %m = tfrt.call @down(%n) : (i32) -> (i32)
             tfrt.return %m : i32
           }}"#
    )
}

#[test]
fn recursion_is_limited_by_depth_and_steps_and_not_by_the_stack() {
    let report = evaluate(&recursion(200_000, 1), Limits::default()).unwrap();
    assert!(report.stdout.ends_with("'main' returned 0\n"));
    let shallow = Limits {
        depth: 1_000,
        ..Limits::default()
    };
    let refusal = evaluate(&recursion(1, 0), shallow).unwrap_err();
    assert_eq!(refusal, Refusal::Exhausted("depth"));
    let short = Limits {
        steps: 1_000,
        ..Limits::default()
    };
    let refusal = evaluate(&recursion(1, 0), short).unwrap_err();
    assert_eq!(refusal, Refusal::Exhausted("steps"));
}

#[test]
fn an_unknown_operation_is_refused_by_name() {
    let text = r#"func.func @main() {
        "some.thing"() : () -> ()
        tfrt.return
      }"#;
    let refusal = evaluate(text, Limits::default()).unwrap_err();
    let what = "the evaluator does not know 'some.thing' with these operands";
    assert_eq!(refusal.to_string(), what);
}
