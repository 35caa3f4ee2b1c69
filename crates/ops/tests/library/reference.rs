//! A test that `docs/graph.md` is what the rows say. `cargo xtask bless` rewrites the page.

use std::fmt::Write as _;

use expect_test::expect_file;
use tfrt_ops::{
    Arity, AttrDef, AttrDefault, AttrKind, ElementFamily, Exactness, FAMILIES, Limit, OpDef,
    Traits, Types, ValueDef, names,
};

const HEAD: &str = "<!-- Generated from the rows in crates/ops/src by `cargo xtask bless`. -->
# Operations of graphs

What models are made of while they are compiled: one row for each operation, with all that is known of it without running it. `crates/ops` is the table. An operation that one format of models alone has is in that format's dialect.

## How to read an entry

*Operands* and *results* with a `?` may be left out; `*` stands for all that follow. After a colon stands the type of the elements: a letter where several share it, nothing where any will do. A result is *by values* if its extents are known only where operands that say extents are constants, and *by elements* if they are known only when it is calculated.

*Attributes* that mean something in some forms of an operation only say so behind a semicolon. In other forms they must not be stated.

*Elements* of a pointwise operation: floating-point numbers are `f64`, `f32`, `f16` and `bf16`, integers have 8 to 64 bits, with a sign or without, and numbers are both. Where nothing is said, truth values will do, too.

*Pointwise*: each element of the result follows from one element of each operand, which are broadcast. *View*: the result has the operand's elements in their order. *In place*: the result may take the memory of the first operand.

";

#[test]
fn the_page_is_what_the_rows_say() {
    let mut text = HEAD.to_owned();
    for family in FAMILIES {
        for op in *family {
            entry(&mut text, op);
        }
    }
    text.push_str("## Names of ONNX\n\nOperations of ONNX that are rows; with attributes that the name states, or that are called otherwise.\n\n");
    table(&mut text, names::onnx::NAMES);
    text.push_str("\n## Names of TensorFlow\n\nOperations of TensorFlow that are rows: `tf.NAME` in eager calls.\n\n");
    table(&mut text, names::tf::NAMES);
    text.push_str("\n## Names of tests\n\nOperations that tests call, which are rows under another name: `tfrt_test.NAME` in eager calls.\n\n");
    table(&mut text, names::test::NAMES);
    expect_file!["../../../../docs/graph.md"].assert_eq(&text);
}

fn table(text: &mut String, all: &[names::Name]) {
    text.push_str("| Name | Row |\n| --- | --- |\n");
    for name in all {
        let attrs: Vec<String> = name.attrs.iter().map(attr_of_name).collect();
        let attrs = if attrs.is_empty() {
            String::new()
        } else {
            format!(" {{{}}}", attrs.join(", "))
        };
        let mut attrs = attrs;
        if let Some((name, default)) = name.result {
            write!(attrs, " as its {name}, or {default}").unwrap();
        }
        if let Some(operands) = name.operands {
            let operands: Vec<String> = operands.iter().map(operand_of_name).collect();
            write!(attrs, " of {}", operands.join(", ")).unwrap();
        }
        let since = if name.since > 1 {
            format!(" from version {}", name.since)
        } else {
            String::new()
        };
        writeln!(text, "| {}{since} | `{}`{attrs} |", name.name, name.row).unwrap();
    }
}

fn operand_of_name(operand: &names::NameOperand) -> String {
    match operand {
        names::NameOperand::At(index) => format!("its operand {index}"),
        names::NameOperand::Pairs(index) => format!("the columns of its operand {index}"),
        names::NameOperand::Ends(starts, sizes) => {
            format!("where slices from its operand {starts} of sizes {sizes} end")
        }
        names::NameOperand::Attr(name, _) => format!("its attribute {name}"),
    }
}

fn attr_of_name(attr: &names::NameAttr) -> String {
    let row = attr.row();
    match attr {
        names::NameAttr::Text(_, text) => format!("{row} = {text}"),
        names::NameAttr::Int(_, value) => format!("{row} = {value}"),
        names::NameAttr::IntOr(_, name, default) => format!("{row}: its {name}, or {default}"),
        names::NameAttr::FloatOr(_, name, default) => format!("{row}: its {name}, or {default}"),
        names::NameAttr::Operand(_, names::LAST) => format!("{row}: its last operand"),
        names::NameAttr::Operand(_, index) => format!("{row}: its operand {index}"),
        names::NameAttr::OperandOr(_, index, others) => {
            format!("{row}: its operand {index}, or its {}", others.join(" or "))
        }
        names::NameAttr::IntWith(_, value, ..) => format!("{row} = {value} with axes"),
        names::NameAttr::Renamed(_, name) | names::NameAttr::Type(_, name) => {
            format!("{row}: its {name}")
        }
    }
}

fn entry(text: &mut String, op: &OpDef) {
    writeln!(text, "## `{}`\n\n{}\n", op.name, op.summary).unwrap();
    let list = |values: &[ValueDef]| values.iter().map(value).collect::<Vec<_>>().join(", ");
    if !op.inputs.is_empty() {
        writeln!(text, "* Operands: {}", list(op.inputs)).unwrap();
    }
    writeln!(text, "* Results: {}", list(op.results)).unwrap();
    if !op.attrs.is_empty() {
        writeln!(
            text,
            "* Attributes: {}",
            op.attrs.iter().map(attr).collect::<Vec<_>>().join(", ")
        )
        .unwrap();
    }
    if !op.regions.is_empty() {
        writeln!(text, "* Regions: {}", op.regions.join(", ")).unwrap();
    }
    if op.elements != ElementFamily::Any {
        writeln!(text, "* Elements: {}", op.elements).unwrap();
    }
    let traits = Traits::ALL
        .iter()
        .filter(|(name, own)| op.is(*own) && *name != "pure");
    let mut traits: Vec<&str> = traits.map(|(name, _)| *name).collect();
    if !op.is(Traits::PURE) {
        traits.push("not pure");
    }
    if !traits.is_empty() {
        writeln!(text, "* {}", traits.join(", ")).unwrap();
    }
    text.push('\n');
}

fn value(value: &ValueDef) -> String {
    let arity = match value.arity {
        Arity::One => "",
        Arity::Optional => "?",
        Arity::Rest(_) => "*",
    };
    let types = match value.types {
        Types::Any => String::new(),
        Types::Object => ": no tensor".to_owned(),
        Types::Var(name) => format!(": {name}"),
        Types::Set(types) => {
            let names: Vec<&str> = types.iter().map(|dtype| dtype.mlir_name()).collect();
            format!(": {}", names.join(" or "))
        }
    };
    let exactness = match value.exactness {
        Exactness::Exact => "",
        Exactness::ByValues => " (by values)",
        Exactness::DataDependent => " (by elements)",
    };
    format!("`{}`{arity}{types}{exactness}", value.name)
}

fn attr(attr: &AttrDef) -> String {
    let kind = match attr.kind {
        AttrKind::Int => "integer",
        AttrKind::Float => "float",
        AttrKind::Text => "text",
        AttrKind::Ints => "integers",
        AttrKind::Floats => "floats",
        AttrKind::Texts => "texts",
        AttrKind::Type => "type",
        AttrKind::Types => "types",
        AttrKind::Shapes => "lists of integers",
        AttrKind::Tensor => "tensor",
        AttrKind::Region => "region",
        AttrKind::Function => "function",
    };
    let default = match attr.default {
        AttrDefault::Required => ", required".to_owned(),
        AttrDefault::Absent => String::new(),
        AttrDefault::Int(value) => format!(" = {value}"),
        AttrDefault::Float(value) => format!(" = {value:?}"),
        AttrDefault::Text(value) => format!(" = {value:?}"),
        AttrDefault::Ints(value) => format!(" = {value:?}"),
        AttrDefault::Type(value) => format!(" = {value}"),
    };
    let limit = match attr.limit {
        Limit::None => String::new(),
        Limit::OneOf(texts) => format!(": {}", texts.join(", ")),
        Limit::ResultCount => ": the number of results".to_owned(),
    };
    let when = match attr.when.to_string() {
        when if when.is_empty() => when,
        when => format!("; {when}"),
    };
    format!("`{}` ({kind}{default}{limit}{when})", attr.name)
}
