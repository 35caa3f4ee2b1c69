//! The dialect `graph` in text: [`dialect`] makes definitions of the rows of [`tfrt_ops`], by which text is checked
//! and explained.
//!
//! Text knows no operations of models by itself. The command and the runtime add these entries wherever text comes in, so
//! a row is all that an operation needs to be verified, completed in an editor and shown there.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use tfrt_bef::DType;
use tfrt_ir::attributes::Attribute;
use tfrt_ir::dialect::{
    AttributeDef, AttributeKind, Dialect, Entry, OpParts, Results, Traits, ValueDef as TextValue,
    ValueKind,
};
use tfrt_ir::verifier::{Mistake, mistakes};
use tfrt_ir::{
    Diagnostic, Diagnostics, Dialects, Module, OpDef as TextOp, OpId, ValueId, codes as text_codes,
};
use tfrt_ops::{
    Arity, AttrDef, AttrDefault, AttrKind, Attrs, ElementFamily, Limit, OpDef, Table, Types,
    ValueDef, intern,
    names::{self, NameAttr},
};

use crate::codes;
use crate::passes::{GRAPH, OpAttrs, PREPARED, dtype, element, prepared};

/// Makes the definitions of rows: those of `graph` and `onnx`, and those that are added to a table, for as long as
/// they are in it.
///
/// Operations of `graph` are checked against their rows, and so are added ones. Those of `onnx` are only explained: a
/// model may have any version's form of them.
///
/// # Examples
///
/// ```
/// use tfrt_compiler::graph;
/// use tfrt_ir::{Dialects, Source, parse, verifier::Chains, verify_in};
///
/// let dialects = Dialects::new([graph::dialect(&tfrt_ops::Table::default())]);
/// let text = r#"func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
///   %y = "graph.softmax"(%x) {axes = 0} : (tensor<2xf32>) -> tensor<2xf32>
///   tfrt.return %y : tensor<2xf32>
/// }"#;
/// let module = parse(&Source::new("f.mlir", text))?;
/// let errors = verify_in(&module, &dialects, Chains::Required).unwrap_err();
/// let message = "'graph.softmax' op has no attribute 'axes'";
/// assert_eq!(errors.iter().next().map(|error| error.message()), Some(message));
/// # Ok::<(), tfrt_ir::Diagnostics>(())
/// ```
pub fn dialect(rows: &Table) -> Arc<dyn Dialect> {
    Arc::new(Rows { rows: rows.clone() })
}

/// Returns the dialects of text, with those of rows.
pub fn dialects(rows: &Table) -> Dialects {
    Dialects::new([dialect(rows)])
}

/// Refuses operations of `graph` and `onnx` outside of models, since no pass would make kernels of them.
///
/// # Errors
///
/// `TF0516` for each of them.
pub fn refuse_outside_models(module: &Module) -> Result<(), Diagnostics> {
    let mut found = Diagnostics::default();
    let mut refuse = |op: OpId| {
        let name = module.op(op).name();
        if name.starts_with(GRAPH) || name.starts_with("onnx.") {
            let message = "is for functions that are models";
            let help = "say what the function's inputs and outputs are called: attributes {model.input_names = [\"x\"], \
                        model.output_names = [\"y\"]}";
            let error = module.op_error(codes::GRAPH, op, message);
            found.push(error.help(help));
        }
    };
    for function in module.children(module.top()) {
        if module.op(function).attribute("model.input_names").is_none() {
            module.walk_pre_order(function, &mut refuse);
        }
    }
    found.into_result()
}

/// Returns everything that is wrong with an operation, by its row.
pub(crate) fn check(module: &Module, op: OpId, row: &OpDef) -> Result<(), String> {
    let found = match BUILTIN.get(row.name) {
        Some(entry) => mistakes(module, op, entry),
        None => mistakes(module, op, &entry(row, "")),
    };
    match found.into_iter().next() {
        Some(mistake) => Err(mistake.message),
        None => Ok(()),
    }
}

/// The definitions of built-in rows, by their names: `relu`, `onnx.NonZero`.
static BUILTIN: LazyLock<HashMap<&'static str, TextOp>> = LazyLock::new(|| {
    let rows = tfrt_ops::all().map(|row| (row.name, entry(row, "")));
    rows.chain(STRUCTURE.iter().map(|row| (row.name, structure(row))))
        .collect()
});

/// The definitions of ONNX's operations that are rows of `graph`, by ONNX's names.
static ONNX: LazyLock<HashMap<&'static str, TextOp>> = LazyLock::new(|| {
    let entry = |name: &names::Name| {
        let row = tfrt_ops::find(name.row)?;
        let details = format!(
            "Here as its row `graph.{}` has it; versions of ONNX have other forms, too.",
            row.name
        );
        let own = OpDef {
            name: intern(&format!("onnx.{}", name.name)),
            ..*row
        };
        let mut parts = parts(&own, intern(&details));
        parts.attributes = row
            .attrs
            .iter()
            .filter_map(|attr| of_onnx(name, attr))
            .collect();
        Some((own.name, parts.into()))
    };
    names::onnx::NAMES.iter().filter_map(entry).collect()
});

/// Returns the definition of a row's attribute as ONNX's operation has it; `None` if the operation's name implies it.
fn of_onnx(name: &names::Name, attr: &AttrDef) -> Option<AttributeDef> {
    let is_of_name = |other: &&names::Name| {
        let mut attrs = other.attrs.iter();
        other.row == name.row && attrs.any(|own| own.row() == attr.name && own.fixed().is_some())
    };
    let fixed = names::onnx::find(name.name, i64::MAX, &())?.attrs;
    let applies = attr.applies(Attrs::new(&fixed, &[]));
    if !applies || names::onnx::NAMES.iter().any(|other| is_of_name(&other)) {
        return None;
    }
    let mut own = attribute(attr);
    // Where the name says the kind, nothing is left to say of it.
    own.meaning = "";
    match name.attrs.iter().find(|own| own.row() == attr.name) {
        Some(NameAttr::Renamed(_, other)) => own.name = other,
        Some(NameAttr::Type(_, other)) => {
            own.name = other;
            own.kind = AttributeKind::Integer;
            own.meaning = "the number that ONNX has for a type";
        }
        _ => {}
    }
    Some(own)
}

/// Operations of graphs that are no rows: they give regions and lists of operands their form.
const STRUCTURE: &[OpDef] = &[
    OpDef::new(
        "none",
        "Stands for an operand that is left out, before one that is not.",
    )
    .inputs(&[])
    .results(&[ValueDef::any("nothing")]),
    OpDef::new(
        "yield",
        "Ends a region: its operands are what the region gives.",
    )
    .inputs(&[ValueDef::any("values").rest(0)])
    .results(&[]),
    OpDef::new(
        "external",
        "A tensor whose elements stay in a file, from `offset` on.",
    )
    .inputs(&[])
    .results(&[ValueDef::any("y")])
    .attrs(&[
        AttrDef::new("dims", AttrKind::Ints).required(),
        AttrDef::new("element", AttrKind::Text).required(),
        AttrDef::new("file", AttrKind::Text).required(),
        AttrDef::new("id", AttrKind::Text).required(),
        AttrDef::new("offset", AttrKind::Int).required(),
    ]),
    OpDef::new(
        "prepare",
        "Makes once what the kernel of the row `op` needs of its constants; its other attributes are that operation's.",
    )
    .inputs(&[ValueDef::any("constants").rest(0)])
    .results(&[ValueDef::any("prepared")])
    .attrs(&[AttrDef::new("op", AttrKind::Text).required()]),
];

fn structure(row: &OpDef) -> TextOp {
    let mut parts = parts(row, "");
    parts.stand_in = None;
    match row.name {
        "yield" => parts.traits = parts.traits.with(Traits::TERMINATOR),
        "prepare" => parts.traits = Traits::PURE,
        _ => {}
    }
    parts.into()
}

/// The dialect of a table of rows.
struct Rows {
    rows: Table,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rows").field(&self.rows).finish()
    }
}

impl Rows {
    fn added(&self, name: &str) -> Option<Entry> {
        let row = self.rows.find_added(name)?;
        Some(Entry::Shared(Arc::new(entry(&row, ""))))
    }
}

impl Dialect for Rows {
    fn find(&self, name: &str) -> Option<Entry> {
        match name.split_once('.')? {
            ("graph", _) => self.lookup(name),
            ("onnx", _) => {
                let found = BUILTIN.get(name).or_else(|| ONNX.get(name));
                found.map(Entry::Static)
            }
            _ => self.added(name),
        }
    }

    fn lookup(&self, name: &str) -> Option<Entry> {
        match name.split_once('.')? {
            // `graph.onnx.NonZero` is no name of anything.
            ("graph", own) if own.contains('.') => None,
            ("graph", own) => BUILTIN.get(own).map(Entry::Static),
            ("onnx", _) => None,
            _ => self.added(name),
        }
    }

    fn all(&self) -> Vec<Entry> {
        let builtin = BUILTIN.values().chain(ONNX.values()).map(Entry::Static);
        let added = self.rows.added_names().into_iter();
        builtin
            .chain(added.filter_map(|name| self.added(name)))
            .collect()
    }

    fn is_closed(&self, dialect: &str) -> bool {
        dialect == "graph"
    }
}

/// Makes the definition of a row.
fn entry(row: &OpDef, details: &'static str) -> TextOp {
    parts(row, details).into()
}

fn parts(row: &OpDef, details: &'static str) -> OpParts {
    let (operands, rest) = values(row.inputs);
    let (results, more) = values(row.results);
    let own = *row;
    OpParts {
        name: match row.name.contains('.') {
            true => row.name,
            false => intern(&format!("graph.{}", row.name)),
        },
        summary: row.summary.trim_end_matches('.'),
        details,
        operands,
        rest,
        stand_in: Some(ValueKind::Dialect(PREPARED)),
        results: match more {
            Some(more) => Results::AtLeast(results, more),
            None => Results::Exactly(results),
        },
        attributes: row.attrs.iter().map(attribute).collect(),
        regions: row.regions,
        traits: traits(row),
        check: Some(Arc::new(move |module, op| {
            let mut found = element_types(module, op, &own);
            found.extend(forms(module, op, &own));
            found
        })),
    }
}

fn traits(row: &OpDef) -> Traits {
    let mut traits = Traits::CLOSED;
    for (own, other) in [
        (tfrt_ops::Traits::PURE, Traits::PURE),
        (tfrt_ops::Traits::COMMUTATIVE, Traits::COMMUTATIVE),
    ] {
        if row.is(own) {
            traits = traits.with(other);
        }
    }
    traits
}

/// Returns the definitions of operands or results, and of further ones.
fn values(defs: &[ValueDef]) -> (Vec<TextValue>, Option<TextValue>) {
    let (mut declared, mut rest) = (Vec::new(), None);
    for def in defs {
        let own = TextValue::new(def.name, kind_of_value(def));
        match def.arity {
            Arity::One => declared.push(own),
            Arity::Optional => declared.push(own.optional()),
            Arity::Rest(least) => {
                for number in 0..least {
                    let name = intern(&format!("{}{number}", def.name));
                    declared.push(TextValue { name, ..own });
                }
                rest = Some(own);
            }
        }
    }
    (declared, rest)
}

/// Returns the kind of a value, in words: of a tensor the type of its elements.
fn kind_of_value(def: &ValueDef) -> ValueKind {
    ValueKind::Described(match def.types {
        Types::Any => return ValueKind::Any,
        Types::Object => "no tensor",
        Types::Var(name) => intern(&format!("tensor of {name}")),
        Types::Set(types) => {
            let names: Vec<&str> = types.iter().map(|dtype| dtype.mlir_name()).collect();
            intern(&format!("tensor of {}", names.join(" or ")))
        }
    })
}

/// Returns the kind of an attribute in text.
pub(crate) fn kind(attr: &AttrDef) -> AttributeKind {
    match attr.kind {
        AttrKind::Int => AttributeKind::Integer,
        AttrKind::Float => AttributeKind::Float,
        AttrKind::Text => AttributeKind::String,
        AttrKind::Ints => AttributeKind::Integers,
        AttrKind::Floats => AttributeKind::Floats,
        AttrKind::Texts => AttributeKind::Strings,
        AttrKind::Type => AttributeKind::ElementType,
        AttrKind::Tensor => AttributeKind::Elements,
        AttrKind::Region | AttrKind::Types | AttrKind::Shapes => AttributeKind::Any,
        AttrKind::Function => AttributeKind::FlatSymbol,
    }
}

fn attribute(attr: &AttrDef) -> AttributeDef {
    let is_required = attr.default == AttrDefault::Required;
    let count = match attr.limit {
        Limit::ResultCount if attr.kind == AttrKind::Types => "the types of the results",
        Limit::ResultCount => "the number of results",
        _ => "",
    };
    let when = attr.when.to_string();
    AttributeDef {
        name: attr.name,
        kind: kind(attr),
        required: is_required,
        optional: !is_required,
        compile_time: false,
        default: intern(&default_text(attr.default)),
        choices: match attr.limit {
            Limit::OneOf(texts) => texts,
            Limit::None | Limit::ResultCount => &[],
        },
        meaning: match when.is_empty() {
            true => count,
            false => intern(&when),
        },
    }
}

fn default_text(default: AttrDefault) -> String {
    match default {
        AttrDefault::Required | AttrDefault::Absent => String::new(),
        AttrDefault::Int(value) => value.to_string(),
        AttrDefault::Float(value) => format!("{value:?}"),
        AttrDefault::Text(text) => format!("{text:?}"),
        AttrDefault::Ints(list) => format!("{list:?}"),
        AttrDefault::Type(dtype) => dtype.mlir_name().to_owned(),
    }
}

/// Returns an error for each operand of an operation whose element type is known and does not fit the row.
pub(crate) fn operand_types(module: &Module, op: OpId, row: &OpDef) -> Vec<Diagnostic> {
    let found = element_types(module, op, row).into_iter();
    let of_operands = found.filter(|mistake| mistake.operand.is_some());
    let error = |mistake: Mistake| {
        let error = module.op_error(codes::OPERAND_TYPES, op, mistake.message);
        match BUILTIN.get(row.name) {
            Some(entry) => error.help(format!("it is {}{}", entry.name(), entry.signature())),
            None => error,
        }
    };
    of_operands.map(error).collect()
}

/// Checks element types, where they are known: against those that the row names, and that operands of one type
/// variable are alike; and the first operand's against those that the operation calculates with.
fn element_types(module: &Module, op: OpId, row: &OpDef) -> Vec<Mistake> {
    let data = module.op(op);
    let dtype = |value: &ValueId| {
        let element = element(module.value_type(*value))?;
        Some((dtype(&element)?, module.value_type(*value)))
    };
    let is_prepared = |value: &ValueId| *module.value_type(*value) == prepared();
    if data.operands().last().is_some_and(is_prepared) {
        return Vec::new();
    }
    let mut letters: Vec<(&str, DType, String)> = Vec::new();
    let mut found = Vec::new();
    let operands = data.operands().iter().enumerate();
    let operands = operands.map(|(index, value)| (true, index, row.inputs, value));
    let results = data.results().iter().enumerate();
    let results = results.map(|(index, value)| (false, index, row.results, value));
    for (is_operand, index, defs, value) in operands.chain(results) {
        let is_rest = |def: &&ValueDef| matches!(def.arity, Arity::Rest(_));
        let def = defs.get(index).or(defs.last().filter(is_rest));
        let (Some(def), Some((dtype, ty))) = (def, dtype(value)) else {
            continue;
        };
        let wanted = match def.types {
            Types::Set(all) if !all.contains(&dtype) => {
                let names: Vec<&str> = all.iter().map(|dtype| dtype.mlir_name()).collect();
                format!("a tensor of {}", names.join(" or "))
            }
            _ if is_operand && index == 0 && !calculates_with(row, dtype) => {
                format!("a tensor of {}", row.elements)
            }
            Types::Var(letter) => match letters.iter().find(|(known, ..)| *known == letter) {
                Some((_, known, of)) if *known != dtype => {
                    format!("a tensor of {}, as {of} is", known.mlir_name())
                }
                Some(_) => continue,
                None => {
                    let what = if is_operand { "operand" } else { "result" };
                    letters.push((letter, dtype, format!("{what} #{index}")));
                    continue;
                }
            },
            Types::Set(_) | Types::Any | Types::Object => continue,
        };
        found.push(match is_operand {
            true => {
                let message = format!("operand #{index} must be {wanted}, but got '{ty}'");
                Mistake::in_operand(text_codes::OPERAND_TYPE, index, message)
            }
            false => {
                let message = format!("result #{index} must be {wanted}, but got '{ty}'");
                Mistake::new(text_codes::RESULT_TYPE, message)
            }
        });
    }
    found
}

/// Returns whether an operation calculates with elements of a type. Those that no calculation takes, such as strings,
/// are left to kernels: some copy or compare them.
fn calculates_with(row: &OpDef, dtype: DType) -> bool {
    row.elements.has(dtype) || !ElementFamily::Any.has(dtype)
}

/// Checks attributes against one another.
fn forms(module: &Module, op: OpId, row: &OpDef) -> Vec<Mistake> {
    let source = OpAttrs { module, op };
    let attrs = Attrs::new(&source, row.attrs);
    let data = module.op(op);
    let stated = row
        .attrs
        .iter()
        .filter_map(|attr| Some((attr, data.attribute(attr.name)?)));
    stated
        .filter_map(|(attr, value)| form(attr, value, attrs, data.results().len()))
        .collect()
}

fn form(attr: &AttrDef, value: &Attribute, attrs: Attrs<'_>, n_results: usize) -> Option<Mistake> {
    let name = attr.name;
    if !attr.applies(attrs) {
        let message = format!(
            "attribute '{name}' does nothing here: it is for operations {}",
            attr.when
        );
        return Some(Mistake::in_attribute(
            text_codes::USELESS_ATTRIBUTE,
            name,
            message,
        ));
    }
    let stated = value
        .as_i64()
        .filter(|_| attr.limit == Limit::ResultCount)?;
    (usize::try_from(stated) != Ok(n_results)).then(|| {
        let message = format!(
            "attribute '{name}': expected the number of results, {n_results}, found {stated}"
        );
        Mistake::in_attribute(text_codes::ATTRIBUTE_VALUE, name, message)
    })
}
