//! Examples in entries of the operation tables: they parse, verify, print, parse again and run;
//! their generic forms load.

use std::sync::Arc;

use tfrt::host::CapturedOutput;
use tfrt::ir::dialect::{self, AttributeKind, Execution, OpDef, Traits};
use tfrt::ir::{Module, PrintOptions, Source, parse, print, verify};
use tfrt::{Output, Runtime, SingleThreadedWorkQueue};

fn runtime() -> (Runtime, CapturedOutput) {
    let (output, printed) = Output::captured();
    let runtime = Runtime::builder()
        .queue(Arc::new(SingleThreadedWorkQueue::new()))
        .output(output)
        .build();
    #[cfg(feature = "gpu")]
    {
        use tfrt::gpu::driver::sim::{Sim, SimOptions};
        let sim = Sim::new(SimOptions::default());
        tfrt::gpu::use_driver(runtime.host(), Arc::new(sim));
    }
    (runtime, printed)
}

/// Parses and verifies, or tells what is wrong, with the text.
fn module(name: &str, text: &str) -> Module {
    let module = parse(&Source::new("example.mlir", text))
        .unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    verify(&module).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    module
}

/// Returns whether a kernel is there for every operation.
fn can_run(module: &Module) -> bool {
    let mut can_run = true;
    module.walk_pre_order(module.top(), &mut |op| {
        let entry = dialect::describe(module.op(op).name());
        can_run &= entry.is_some_and(|entry| {
            let is_for_gpus = ["tfrt_cuda", "tfrt_cuda_test", "tfrt_gpu"]
                .contains(&entry.dialect())
                || entry.name() == "corert.create_gpu_op_handler";
            let has_kernel = (cfg!(feature = "gpu") || !is_for_gpus)
                && (cfg!(feature = "dist") || entry.dialect() != "tfrt_dist");
            has_kernel && entry.execution_kind() != Execution::Elsewhere
        });
    });
    can_run
}

#[test]
fn operations_with_a_form_of_their_own_have_examples() {
    for entry in dialect::definitions() {
        if entry.is(Traits::KERNEL_ONLY) {
            continue;
        }
        let name = entry.name();
        let example = entry.example_program();
        let example = example.unwrap_or_else(|| panic!("{name} has no example"));
        let shown = match name {
            "builtin.module" => "module",
            name => name,
        };
        assert!(
            example.text().contains(shown),
            "{name} is not in its example"
        );
    }
}

#[test]
fn examples_are_printed_and_parsed_again() {
    for entry in dialect::definitions() {
        let Some(example) = entry.example_program() else {
            continue;
        };
        let name = entry.name();
        let before = module(name, &example.program());
        for generic in [false, true] {
            let options = PrintOptions {
                generic,
                ..PrintOptions::default()
            };
            let text = print(&before, options);
            let again = print(&module(name, &text), options);
            assert_eq!(text, again, "{name}");
            // The operation's own form can say its example.
            let quoted = format!("\"{name}\"");
            assert_eq!(text.contains(&quoted), generic, "{name}:\n{text}");
        }
    }
}

#[test]
fn examples_run_and_print_what_they_say() {
    let mut n_run = 0;
    for entry in dialect::definitions() {
        let Some(example) = entry.example_program() else {
            continue;
        };
        let name = entry.name();
        let program = example.program();
        if !can_run(&module(name, &program)) {
            continue;
        }
        let (runtime, printed) = runtime();
        let program = runtime
            .compile("example.mlir", program)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let Some(main) = program.function("main") else {
            continue;
        };
        main.call(&runtime.context(), ())
            .wait()
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        runtime.quiesce().expect("this is no worker");
        let printed = printed.printed();
        match example.output().strip_suffix("...") {
            Some(beginning) => assert!(printed.starts_with(beginning), "{name}: {printed}"),
            None => assert_eq!(printed.trim_end(), example.output(), "{name}"),
        }
        n_run += 1;
    }
    assert!(n_run > 50, "only {n_run} examples");
}

/// Returns the functions that a generic form names.
fn callees(entry: &OpDef) -> String {
    let (arguments, results, values) = match entry.name() {
        "tfrt.while" => ("%x: i32", "i32, i1", "%one, %no"),
        "tfrt.parallel_call.i32" => ("%x: i32, %y: i32, %z: i32", "", ""),
        "tfrt_test.sync_benchmark" => ("%x: i32", "", ""),
        "corert.cond" | "corert.while" => (
            "%chain: !tfrt.chain, %x: i32",
            "!tfrt.chain, i32",
            "%new, %one",
        ),
        name if name.ends_with(".i32_i32.i32") => ("%x: i32, %y: i32", "i32", "%one"),
        name if name.ends_with(".i32_i32.i32_i32") => {
            ("%x: i32, %y: i32", "i32, i32", "%one, %two")
        }
        _ => ("%x: i32", "i32", "%one"),
    };
    let colon = if results.is_empty() { "" } else { ":" };
    let mut names = Vec::new();
    for attribute in entry.attribute_defs() {
        match attribute.kind {
            AttributeKind::FlatSymbol => names.push(attribute.name),
            AttributeKind::FlatSymbols => names.extend(["first", "second"]),
            _ => {}
        }
    }
    let function = |name: &&str| {
        format!(
            "func.func @{name}({arguments}) -> ({results}) attributes {{tfrt.sync}} {{\n\
             %new = tfrt.new.chain\n\
             %one = tfrt.constant.i32 1\n\
             %two = tfrt.constant.i32 2\n\
             %no = tfrt.constant.i1 false\n\
             tfrt.return {values} {colon} {results}\n\
             }}\n"
        )
    };
    names.iter().map(function).collect()
}

/// Returns a program that uses an operation's generic form.
fn generic_program(entry: &OpDef) -> String {
    let form = entry.generic_form();
    if matches!(entry.name(), "func.func" | "builtin.module") {
        return form;
    }
    let operands = entry.operand_defs().iter().chain(entry.rest_def());
    let arguments: Vec<String> = operands
        .map(|operand| {
            let ty = operand
                .kind
                .ty()
                .map_or("i32".to_owned(), |ty| ty.to_string());
            format!("%{}: {ty}", operand.identifier())
        })
        .collect();
    let (result, end) = match entry.is(Traits::TERMINATOR) {
        true => (" -> i32", ""),
        false => ("", "tfrt.return"),
    };
    format!(
        "{}func.func @user({}){result} {{\n{form}\n{end}\n}}\n",
        callees(entry),
        arguments.join(", ")
    )
}

#[test]
fn generic_forms_are_accepted() {
    for entry in dialect::definitions() {
        let name = entry.name();
        let program = generic_program(entry);
        let module = module(name, &program);
        let is_code_of_others = matches!(name, "func.call" | "func.return");
        if can_run(&module) && !is_code_of_others {
            let (runtime, _) = runtime();
            let loaded = runtime.compile("generic.mlir", program.clone());
            loaded.unwrap_or_else(|error| panic!("{name}: {error}\n{program}"));
        }
    }
}

#[test]
fn names_in_an_entry_are_told_apart() {
    for entry in dialect::definitions() {
        let form = entry.generic_form();
        let results = form.split(" = \"").next().unwrap_or_default();
        let operands = entry.operand_defs().iter().chain(entry.rest_def());
        let names: Vec<String> = operands.map(|operand| operand.identifier()).collect();
        for name in &names {
            let is_result = results
                .split(", ")
                .any(|result| result == format!("%{name}"));
            assert!(
                !is_result || !form.contains(" = \""),
                "{}: {name}",
                entry.name()
            );
            let is_identifier = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            assert!(is_identifier, "{}: {name}", entry.name());
        }
    }
}
