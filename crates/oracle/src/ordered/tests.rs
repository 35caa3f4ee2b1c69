use tfrt_ir::{Source, parse};

use super::check;

#[track_caller]
fn verdict(text: &str) -> Option<(String, String)> {
    let module = parse(&Source::new("test.mlir", text)).unwrap_or_else(|errors| {
        panic!("{}", errors.render(false));
    });
    let name = |op| module.op(op).name().to_string();
    check(&module)
        .unwrap()
        .err()
        .map(|pair| (name(pair.first), name(pair.second)))
}

#[track_caller]
fn ordered(text: &str) {
    assert_eq!(verdict(text), None);
}

#[track_caller]
fn unordered(text: &str, first: &str, second: &str) {
    assert_eq!(verdict(text), Some((first.to_owned(), second.to_owned())));
}

#[test]
fn prints_on_one_chain_are_ordered() {
    ordered(
        "func.func @main() -> !tfrt.chain {
           %c = tfrt.new.chain
           %x = tfrt.constant.i32 1
           %d = tfrt.print.i32 %x, %c
           %e = tfrt.print.i32 %x, %d
           tfrt.return %e : !tfrt.chain
         }",
    );
}

#[test]
fn a_print_that_no_result_waits_for_races_with_the_line_on_results() {
    let print = "tfrt.print.i32";
    unordered(
        "func.func @main() -> i32 {
           %c = tfrt.new.chain
           %x = tfrt.constant.i32 1
           %d = tfrt.print.i32 %x, %c
           tfrt.return %x : i32
         }",
        print,
        print,
    );
}

#[test]
fn a_result_that_does_not_wait_for_the_callee_orders_nothing() {
    let text = |returned: &str| {
        format!(
            "func.func @callee(%c: !tfrt.chain) -> !tfrt.chain {{
               %x = tfrt.constant.i32 1
               %d = tfrt.print.i32 %x, %c
               tfrt.return {returned} : !tfrt.chain
             }}
             func.func @main() -> !tfrt.chain {{
               %c = tfrt.new.chain
               %x = tfrt.constant.i32 1
               %d = tfrt.call @callee(%c) : (!tfrt.chain) -> !tfrt.chain
               %e = tfrt.print.i32 %x, %d
               tfrt.return %e : !tfrt.chain
             }}"
        )
    };
    ordered(&text("%d"));
    unordered(&text("%c"), "tfrt.call", "tfrt.call");
}

#[test]
fn recursion_is_seen_through() {
    let text = |passed: &str| {
        format!(
            "func.func @down(%n: i1, %c: !tfrt.chain) -> !tfrt.chain {{
               %e = tfrt.if %n, %n, %c : (i1, !tfrt.chain) -> !tfrt.chain {{
                 %d = tfrt.print.i1 %n, %c
                 %f = tfrt.call @down(%n, {passed}) : (i1, !tfrt.chain) -> !tfrt.chain
                 tfrt.return %f : !tfrt.chain
               }} else {{
                 tfrt.return %c : !tfrt.chain
               }}
               tfrt.return %e : !tfrt.chain
             }}
             func.func @main() -> !tfrt.chain {{
               %c = tfrt.new.chain
               %x = tfrt.constant.i1 1
               %d = tfrt.call @down(%x, %c) : (i1, !tfrt.chain) -> !tfrt.chain
               tfrt.return %d : !tfrt.chain
             }}"
        )
    };
    ordered(&text("%d"));
    assert!(verdict(&text("%c")).is_some());
}

#[test]
fn iterations_are_ordered_by_a_carried_chain() {
    let text = |returned: &str| {
        format!(
            "func.func @main() -> !tfrt.chain {{
               %c = tfrt.new.chain
               %n = tfrt.constant.i32 3
               %d = tfrt.repeat.i32 %n, %c : !tfrt.chain {{
                 %x = tfrt.constant.i32 3
                 %e = tfrt.print.i32 %x, %c
                 tfrt.return {returned} : !tfrt.chain
               }}
               tfrt.return %d : !tfrt.chain
             }}"
        )
    };
    ordered(&text("%e"));
    assert!(verdict(&text("%c")).is_some());
}

#[test]
fn blocks_of_a_parallel_loop_may_add_but_not_print() {
    let text = |line: &str| {
        format!(
            "func.func @main() -> i32 {{
               %a = \"tfrt_test.atomic.create.i32\"() : () -> !test.atomic.i32
               %from = tfrt.constant.i32 0
               %to = tfrt.constant.i32 3
               %one = tfrt.constant.i32 1
               %d = tfrt.parallel_for.i32 %from to %to fixed %one, %a : !test.atomic.i32 {{
                 %c = tfrt.new.chain
                 %e = {line}
                 tfrt.return %e : !tfrt.chain
               }}
               %x, %e = \"tfrt_test.atomic.get.i32\"(%a, %d)
                 : (!test.atomic.i32, !tfrt.chain) -> (i32, !tfrt.chain)
               tfrt.return %x : i32
             }}"
        )
    };
    ordered(&text(
        "\"tfrt_test.atomic.inc.i32\"(%a) : (!test.atomic.i32) -> !tfrt.chain",
    ));
    assert!(verdict(&text("tfrt.print.i32 %from, %c")).is_some());
}

#[test]
fn nothing_may_race_with_cancellation() {
    let text = |operand: &str| {
        format!(
            "func.func @main() -> i32 {{
               %c = tfrt.new.chain
               %x = tfrt.constant.i32 3
               %m = tfrt.merge.chains {operand} : !tfrt.chain, i32
               %z, %d = \"tfrt_test.cancel\"(%m) : (!tfrt.chain) -> (i32, !tfrt.chain)
               tfrt.return %x : i32
             }}"
        )
    };
    ordered(&text("%c, %x"));
    // What becomes of `%y` shows only if it is read by what shows.
    ordered(&text("%c, %x").replace("%m =", "%y = tfrt.constant.i32 1\n%m ="));
    let other = text("%c, %c").replace("!tfrt.chain, i32\n", "!tfrt.chain, !tfrt.chain\n");
    unordered(&other, "tfrt.constant.i32", "tfrt_test.cancel");
}
