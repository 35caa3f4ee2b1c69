//! The reference in `docs/ops.md` is what the registry says. `cargo xtask bless` rewrites it.

use std::fmt::Write;
use std::ops::RangeInclusive;

use expect_test::expect_file;
use tfrt_corert::{OpDefinition, ResultCount, ops};

const START: &str = "\
<!-- Generated from the operations in crates/corert/src/ops by `cargo xtask bless`. -->
# Operations of the core runtime

What a client, `corert.executeop` and `corert.execute_crt_op` call by name on the handler of the processor. The names \
and meanings are those of TensorFlow, where it has such an operation; those of `tfrt.*` are our own, those of \
`tfrt_test.*` for tests.

## How to read an entry

*Inputs* are tensors, of the *elements* that are named. They are dense; where *formats* are named, these are taken as \
they are, and others are converted.

*Known before*: types and shapes of the results are known, and what is wrong with inputs and attributes is said, when \
the operation is called. Inputs that say which axes or which shape have to be there for that. Elsewhere types and \
shapes depend on what is in the tensors, and are known when these are there.

*Effects*: a *pure* operation has none. Others happen in the order of the calls.

*Attributes* that are not named are refused, but for names that begin with `_`. An integer may be of any width. The \
attributes `T`, `N`, `Tidx` and their like are what TensorFlow's graphs carry; they say nothing that the tensors don't.
";

#[test]
fn reference_is_what_the_registry_says() {
    let registry = ops::registry();
    let mut text = START.to_owned();
    text.push_str("\n## All operations\n\n| Name | |\n| --- | --- |\n");
    for op in registry.iter() {
        let (name, summary) = (op.name(), op.description());
        let anchor = name.replace('.', "").to_lowercase();
        writeln!(text, "| [`{name}`](#{anchor}) | {summary} |").unwrap();
    }
    registry.iter().for_each(|op| entry(op, &mut text));
    expect_file!["../../../docs/ops.md"].assert_eq(&text);
}

fn entry(op: &OpDefinition, text: &mut String) {
    let name = op.name();
    write!(text, "\n## {name}\n\n{}\n\n", op.description()).unwrap();
    writeln!(text, "- *Inputs*: {}", counted(op.input_range())).unwrap();
    let results = match op.n_results() {
        ResultCount::Always(n) => n.to_string(),
        ResultCount::Attribute(name) => format!("as attribute `{name}` says"),
    };
    writeln!(text, "- *Results*: {results}").unwrap();
    if !op.element_types().is_empty() {
        writeln!(text, "- *Elements*: {}", op.element_types()).unwrap();
    }
    let formats = op.input_formats();
    let others = [
        (formats.scalar, "scalar"),
        (formats.string, "string"),
        (formats.coo, "coo"),
    ];
    let others = others
        .iter()
        .filter_map(|(takes, name)| takes.then_some(*name));
    let others: Vec<&str> = others.collect();
    if !others.is_empty() {
        writeln!(text, "- *Formats*: dense, {}", others.join(", ")).unwrap();
    }
    let is_known = if op.has_metadata() { "yes" } else { "no" };
    writeln!(text, "- *Known before*: {is_known}").unwrap();
    let effects = if op.is_pure() { "pure" } else { "in order" };
    writeln!(text, "- *Effects*: {effects}").unwrap();
    match op.attributes() {
        None => writeln!(text, "- *Attributes*: any").unwrap(),
        Some([]) => (),
        Some(attributes) => {
            text.push_str("\n| Attribute | Kind | |\n| --- | --- | --- |\n");
            for attribute in attributes {
                let (name, kind) = (attribute.name, attribute.kind.name());
                writeln!(text, "| `{name}` | {kind} | {} |", attribute.summary).unwrap();
            }
        }
    }
}

fn counted(range: &RangeInclusive<usize>) -> String {
    match (*range.start(), *range.end()) {
        (least, usize::MAX) => format!("{least} or more"),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

#[test]
fn every_operation_says_what_it_does() {
    for op in ops::registry().iter() {
        let (name, summary) = (op.name(), op.description());
        assert!(summary.ends_with('.'), "{name}: '{summary}' is no sentence");
        for attribute in op.attributes().unwrap_or_default() {
            let (attribute, summary) = (attribute.name, attribute.summary);
            assert!(
                !summary.is_empty(),
                "{name}: nothing is said of {attribute}"
            );
            // It is a cell of a table.
            assert!(!summary.contains(['|', '\n']), "{name}: {summary}");
        }
    }
}
