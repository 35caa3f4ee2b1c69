//! The reference in `docs/ops.md` is what the rows and their names say. `cargo xtask bless` rewrites it.

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::sync::Arc;

use expect_test::expect_file;
use tfrt_corert::{OpDefinition, ResultCount, RowOpHandler};
use tfrt_host::DeviceId;
use tfrt_ops::names;

const START: &str = "\
<!-- Generated from the rows and names in crates/ops/src by `cargo xtask bless`. -->
# Operations of the core runtime

What a client, `corert.executeop` and `corert.execute_crt_op` call by name on the handler of the processor. The names \
and meanings are those of TensorFlow, where it has such an operation; those of `tfrt.*` are our own, those of \
`tfrt_test.*` for tests. Every row of [the table of operations](graph.md) is called by its own name, too: `gelu`, \
`onnx.NonMaxSuppression`. What an operation does, and what its attributes mean, is said there, under the name of its \
*row*.

## How to read an entry

*Inputs* are tensors. They are dense; where *formats* are named, these are taken as they are, and others are converted.

Types and shapes of the results are known, and what is wrong with inputs and attributes is said, when the operation is \
called, unless they depend on what is in the tensors. Inputs that say which axes or which shape have to be there for \
that.

*Effects*: an operation has none, unless it is said to happen *in order*: in that of the calls.

*Attributes* that are not named are refused, but for names that begin with `_`. An integer may be of any width, or a \
truth value. The attributes `T`, `N`, `Tidx` and their like are what TensorFlow's graphs carry; they are not looked at.
";

fn all() -> Vec<(Arc<OpDefinition>, &'static str)> {
    let rows = RowOpHandler::new(tfrt_kernels::rows::find, DeviceId::HOST, None);
    let mut all: Vec<String> = tfrt_corert::names()
        .filter(|name| name.starts_with("tf"))
        .collect();
    all.sort();
    let row = |name: &str| match name.split_once('.') {
        Some(("tf", name)) => names::tf::name(name).map(|name| name.row),
        Some(("tfrt_test", name)) => names::test::name(name).map(|name| name.row),
        _ => None,
    };
    let of = |name: &String| {
        let definition = rows
            .definition(name)
            .unwrap_or_else(|| panic!("nothing runs {name}"));
        let row = row(name).or_else(|| tfrt_ops::find(name).map(|row| row.name));
        (definition, row.unwrap())
    };
    all.iter().map(of).collect()
}

#[test]
fn reference_is_what_the_rows_say() {
    let mut text = START.to_owned();
    text.push_str("\n## All operations\n\n| Name | |\n| --- | --- |\n");
    for (op, _) in all() {
        let (name, summary) = (op.name(), op.description());
        let anchor = name.replace('.', "").to_lowercase();
        writeln!(text, "| [`{name}`](#{anchor}) | {summary} |").unwrap();
    }
    for (op, row) in all() {
        entry(&op, row, &mut text);
    }
    expect_file!["../../../../docs/ops.md"].assert_eq(&text);
}

fn entry(op: &OpDefinition, row: &str, text: &mut String) {
    let name = op.name();
    write!(text, "\n## {name}\n\n{}\n\n", op.description()).unwrap();
    if row != name {
        writeln!(text, "- *Row*: `{row}`").unwrap();
    }
    writeln!(text, "- *Inputs*: {}", counted(op.input_range())).unwrap();
    match op.n_results() {
        ResultCount::Always(1) => (),
        ResultCount::Always(n) => writeln!(text, "- *Results*: {n}").unwrap(),
        ResultCount::Attribute(name) => {
            writeln!(text, "- *Results*: as attribute `{name}` says").unwrap();
        }
        ResultCount::Computed => (),
        ResultCount::Inputs => writeln!(text, "- *Results*: as many as inputs").unwrap(),
    }
    let formats = op.input_formats();
    let others = [
        (formats.scalar, "scalar"),
        (formats.string, "string"),
        (formats.coo, "coo"),
        (formats.object, "object"),
    ];
    let others = others
        .iter()
        .filter_map(|(takes, name)| takes.then_some(*name));
    let others: Vec<&str> = others.collect();
    if !others.is_empty() {
        writeln!(text, "- *Formats*: dense, {}", others.join(", ")).unwrap();
    }
    if !op.is_pure() {
        writeln!(text, "- *Effects*: in order").unwrap();
    }
    let attributes = op.attributes().unwrap_or_default().iter();
    let attributes: Vec<String> = attributes
        .map(|attribute| format!("`{}` ({})", attribute.name, attribute.kind.name()))
        .collect();
    if !attributes.is_empty() {
        writeln!(text, "- *Attributes*: {}", attributes.join(", ")).unwrap();
    }
}

fn counted(range: &RangeInclusive<usize>) -> String {
    match (*range.start(), *range.end()) {
        (least, usize::MAX) => format!("{least} or more"),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}
