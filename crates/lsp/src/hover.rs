//! Hovering: a description of the object under the cursor, as Markdown.

use std::{collections::HashSet, fmt::Write};

use tfrt_ir::{
    BlockId, Def, Module, OpId, Span, Type, ValueId,
    dialect::describe_native,
    index::{AliasMeaning, NameTarget, Role},
    parse_type_at,
    tokens::{Token, TokenKind},
};

use crate::{
    Checker,
    analysis::{Analysis, NameAt},
};

/// The longest text that is shown whole: nobody reads more in a small window.
const MAX_SHOWN_BYTES: usize = 2000;

/// Returns the description of the object at a place, and the piece of text that it is about.
pub(crate) fn hover(
    analysis: &Analysis,
    checker: &dyn Checker,
    offset: usize,
) -> Option<(String, Span)> {
    if let Some(named) = analysis.named_at(offset) {
        let text = match (named.target, named.kind) {
            (Some(NameTarget::Value(_)), _) => values(analysis, named),
            (Some(NameTarget::Block(block)), _) => block_text(analysis, named, block),
            (Some(NameTarget::Symbol), _) => symbol(analysis, named),
            (Some(NameTarget::Alias), _) => alias(analysis, named),
            (None, TokenKind::Value) => unread(analysis, named),
            (None, _) => None,
        };
        if let Some(text) = text {
            return Some((text, named.span));
        }
    }
    let token = analysis.token_at(offset)?;
    let operation = operation(analysis, checker, token);
    operation.or_else(|| ty(analysis, token))
}

/// Wraps program text, so that editors colour it.
fn code(text: &str) -> String {
    let text = match text.floor_char_boundary(MAX_SHOWN_BYTES) {
        end if end < text.len() => format!("{}...", &text[..end]),
        _ => text.to_owned(),
    };
    // A fence longer than any in the text.
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}mlir\n{text}\n{fence}")
}

/// Describes the value of a name, or all values that share the place, as the results `%x:2` do.
fn values(analysis: &Analysis, named: NameAt) -> Option<String> {
    let mut at: Vec<_> = analysis.index.at(named.span.range().start).collect();
    at.retain(|mention| mention.span == named.span);
    // Of an operand that is an argument, too, the operand comes first.
    let role = at.first().map_or(Role::Use, |first| first.role);
    let shown = at.iter().filter(|mention| mention.role == role);
    let values: Vec<ValueId> = shown
        .filter_map(|mention| match mention.target {
            NameTarget::Value(value) => Some(value),
            _ => None,
        })
        .collect();
    if values.is_empty() {
        // Found by tokens: the parser did not get here.
        return match named.target? {
            NameTarget::Value(value) => Some(value_text(analysis, named, &[value])),
            _ => None,
        };
    }
    let mut text = value_text(analysis, named, &values);
    if role == Role::Use && at.iter().any(|mention| mention.role == Role::Definition) {
        text += "\n\nWithin the region the name stands for the region's argument.";
    }
    Some(text)
}

fn value_text(analysis: &Analysis, named: NameAt, values: &[ValueId]) -> String {
    let module = &analysis.module;
    let first = values[0];
    let name = analysis.text(named.span);
    let lines: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(number, &value)| {
            let ty = match module.known_def(value) {
                Some(_) => module.value_type(value).to_string(),
                None => "?".to_owned(),
            };
            match values.len() {
                1 => format!("{name} : {ty}"),
                _ => format!("{name}#{number} : {ty}"),
            }
        })
        .collect();
    let mut text = code(&lines.join("\n"));
    let origin = match module.known_def(first) {
        Some(Def::Result(op, number)) => {
            let n_results = module.op(op).results().len();
            let which = match n_results {
                1 => "Result".to_owned(),
                n if values.len() == n => "Results".to_owned(),
                _ => format!("Result {number}"),
            };
            format!(
                "{which} of `{}`{}",
                module.op(op).name(),
                line(analysis, first)
            )
        }
        Some(Def::Argument(block, number)) => argument(analysis, block, number, first),
        None => "Defined by text that can't be read".to_owned(),
    };
    write!(text, "\n\n{origin}; {}.", uses(analysis, values)).expect("a String takes all text");
    text
}

/// Returns ` in line 7`, the line in which a value is defined.
fn line(analysis: &Analysis, value: ValueId) -> String {
    let Some((_, span)) = analysis.value_name(value) else {
        return String::new();
    };
    let (line, _) = analysis.source.line_column(span.range().start);
    format!(" in line {line}")
}

fn argument(analysis: &Analysis, block: BlockId, number: u32, value: ValueId) -> String {
    let module = &analysis.module;
    let line = line(analysis, value);
    let label = analysis.text(module.block(block).span());
    if !label.is_empty() {
        return format!("Argument {number} of block `{label}`{line}");
    }
    match module.block_parent_op(block) {
        Some(op) => match module.symbol_name(op) {
            Some(name) => format!("Argument {number} of function `@{name}`{line}"),
            None => format!(
                "Argument {number} of a region of `{}`{line}",
                module.op(op).name()
            ),
        },
        None => format!("Argument {number}{line}"),
    }
}

fn uses(analysis: &Analysis, values: &[ValueId]) -> String {
    let targets: HashSet<NameTarget> = values.iter().copied().map(NameTarget::Value).collect();
    let mentions = analysis.index.mentions().iter();
    let uses =
        mentions.filter(|mention| mention.role == Role::Use && targets.contains(&mention.target));
    match uses.count() {
        0 => "not used".to_owned(),
        1 => "used once".to_owned(),
        n => format!("used {n} times"),
    }
}

/// Describes a value whose definition the parser did not read.
fn unread(analysis: &Analysis, named: NameAt) -> Option<String> {
    let &definition = analysis.definitions(named).first()?;
    let (line, _) = analysis.source.line_column(definition.range().start);
    Some(format!(
        "{}\n\nDefined in line {line} by text that can't be read.",
        code(analysis.text(named.span))
    ))
}

fn block_text(analysis: &Analysis, named: NameAt, block: BlockId) -> Option<String> {
    let module = &analysis.module;
    let data = module.block(block);
    let arguments = data.arguments().iter().map(|&argument| {
        let name = analysis.value_name(argument).map_or("", |(name, _)| name);
        format!("{name}: {}", module.value_type(argument))
    });
    let arguments: Vec<String> = arguments.collect();
    let label = analysis.text(named.span);
    let header = match arguments.is_empty() {
        true => format!("{label}:"),
        false => format!("{label}({}):", arguments.join(", ")),
    };
    let n_operations = data.operations().len();
    let target = NameTarget::Block(block);
    let mentions = analysis.index.mentions_of(target);
    let n_uses = mentions.filter(|mention| mention.role == Role::Use).count();
    Some(format!(
        "{}\n\nBlock with {}; {}.",
        code(&header),
        counted(n_operations, "operation"),
        match n_uses {
            0 => "nothing goes to it".to_owned(),
            n => format!("named {}", counted(n, "time")),
        }
    ))
}

fn counted(n: usize, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

fn symbol(analysis: &Analysis, named: NameAt) -> Option<String> {
    let &definition = analysis.definitions(named).first()?;
    let around = analysis.index.enclosing(definition.range().start);
    let name = analysis.symbol(named.span);
    let mut ops = around.map(|extent| extent.op);
    let op = ops.find(|&op| analysis.module.symbol_name(op) == Some(&name));
    let Some(op) = op else {
        let (line, _) = analysis.source.line_column(definition.range().start);
        return Some(format!(
            "Defined in line {line} by text that can't be read."
        ));
    };
    let n_uses = analysis.mentions(named, Some(Role::Use)).len();
    let named = match n_uses {
        0 => "Not named elsewhere.".to_owned(),
        n => format!("NameAt {} elsewhere.", counted(n, "time")),
    };
    let mut text = code(&header(analysis, op));
    let is_native = analysis.module.op(op).attribute("tfrt.native").is_some();
    if let Some(native) = describe_native(&name).filter(|_| is_native) {
        write!(text, "\n\n{}", native.documentation().trim_end()).expect("a String takes all text");
    }
    Some(format!("{text}\n\n{named}"))
}

/// Returns the first line of a function or a module, without its body.
pub(crate) fn header(analysis: &Analysis, op: OpId) -> String {
    let module = &analysis.module;
    let data = module.op(op);
    let name = module.symbol_name(op).unwrap_or_default();
    let attribute = |name| data.attribute(name);
    let visibility = match attribute("sym_visibility").and_then(|value| value.as_str()) {
        Some(visibility) => format!("{visibility} "),
        None => String::new(),
    };
    let mut text = format!("{} {visibility}@{name}", data.name());
    let signature = attribute("function_type").and_then(|value| value.as_type());
    if let Some(signature) = signature.and_then(Type::as_function) {
        text += &parameters(analysis, op, &signature.inputs);
        match signature.results.as_slice() {
            [] => {}
            [single] if single.as_function().is_none() => text += &format!(" -> {single}"),
            results => text += &format!(" -> ({})", list(results)),
        }
    }
    for (name, value) in data.attributes() {
        if matches!(value, tfrt_ir::Attribute::Unit) {
            text += &format!(" {{{name}}}");
        }
    }
    text
}

fn list(types: &[Type]) -> String {
    let types: Vec<String> = types.iter().map(Type::to_string).collect();
    types.join(", ")
}

fn parameters(analysis: &Analysis, op: OpId, types: &[Type]) -> String {
    let module = &analysis.module;
    let regions = module.op(op).regions();
    let body = regions
        .first()
        .and_then(|&region| module.entry_block(region));
    let names: Vec<&str> = body.map_or_else(Vec::new, |block| {
        let arguments = module.block(block).arguments().iter();
        arguments
            .filter_map(|&argument| Some(analysis.value_name(argument)?.0))
            .collect()
    });
    if names.len() != types.len() {
        return format!("({})", list(types));
    }
    let pairs = names.iter().zip(types);
    let parameters: Vec<String> = pairs.map(|(name, ty)| format!("{name}: {ty}")).collect();
    format!("({})", parameters.join(", "))
}

fn alias(analysis: &Analysis, named: NameAt) -> Option<String> {
    let &definition = analysis.definitions(named).first()?;
    let name = analysis.text(definition);
    let (text, what) = match analysis.index.meaning(definition)? {
        AliasMeaning::Type(ty) => (ty.to_string(), "a type"),
        AliasMeaning::Attribute(attribute) => (attribute.to_string(), "an attribute"),
        AliasMeaning::Location(location) => (format!("loc({location})"), "a location"),
    };
    Some(format!(
        "{}\n\nAlias of {what}.",
        code(&format!("{name} = {text}"))
    ))
}

/// Describes an operation by its name, bare or in quotes.
fn operation(analysis: &Analysis, checker: &dyn Checker, token: Token) -> Option<(String, Span)> {
    let written = analysis.text(token.span);
    let name = match token.kind {
        TokenKind::Word => match written {
            "func" => "func.func",
            "return" => "func.return",
            "call" => "func.call",
            "module" => "builtin.module",
            name => name,
        },
        TokenKind::String => written.trim_matches('"'),
        _ => return None,
    };
    let op = analysis.op_named_at(token.span);
    let definition = checker.dialects().describe(name);
    let signature = checker.kernel_signature(name);
    if op.is_none() && definition.is_none() && signature.is_none() {
        return None;
    }
    // A function is shown where its name is.
    let shown = op.filter(|&op| analysis.module.symbol_name(op).is_none());
    let mut text = match shown {
        Some(op) => code(&format!("{name} : {}", types_of(&analysis.module, op))),
        None => code(name),
    };
    text += "\n\n";
    match (definition, signature) {
        (Some(definition), _) => text += definition.documentation().trim_end(),
        (None, Some(signature)) => text += &format!("Kernel: `{signature}`"),
        (None, None) => text += "There is no kernel of this name.",
    }
    Some((text, token.span))
}

/// Returns the types of an operation as it stands there.
fn types_of(module: &Module, op: OpId) -> String {
    let data = module.op(op);
    let types = |values: &[ValueId]| {
        let types = values.iter().map(|&value| module.value_type(value).clone());
        types.collect::<Vec<_>>()
    };
    Type::function(types(data.operands()), types(data.results())).to_string()
}

/// Describes a type, from its first word.
fn ty(analysis: &Analysis, token: Token) -> Option<(String, Span)> {
    if !matches!(token.kind, TokenKind::Word | TokenKind::Exclaim) {
        return None;
    }
    let rest = &analysis.source.text()[token.span.range().start..];
    let window = &rest[..rest.floor_char_boundary(MAX_SHOWN_BYTES)];
    let (ty, len_bytes) = parse_type_at(window)?;
    let start = token.span.range().start;
    let text = format!("{}\n\n{}.", code(&ty.to_string()), type_text(&ty));
    Some((text, Span::new(start, start + len_bytes)))
}

fn type_text(ty: &Type) -> String {
    match ty {
        Type::Integer(integer) => {
            let sign = match integer.signedness {
                tfrt_ir::types::Signedness::Signless => "; operations decide how its sign is read",
                tfrt_ir::types::Signedness::Signed => ", signed",
                tfrt_ir::types::Signedness::Unsigned => ", unsigned",
            };
            format!(
                "Integer of {}{sign}",
                counted(integer.width as usize, "bit")
            )
        }
        Type::Float(kind) => format!("Floating point number of {} bits", kind.width()),
        Type::Index => "Integer of the machine's width".to_owned(),
        Type::None => "The type without values".to_owned(),
        Type::Complex(element) => format!("Complex number of two `{element}`"),
        Type::Tuple(elements) => format!("Tuple of {}", counted(elements.len(), "element")),
        Type::Function(_) => "Function".to_owned(),
        Type::Tensor(tensor) => shaped(
            "Tensor",
            tensor.shape.as_ref().map(Vec::len),
            &tensor.element,
        ),
        Type::MemRef(memref) => shaped(
            "Buffer",
            memref.shape.as_ref().map(Vec::len),
            &memref.element,
        ),
        Type::Vector(vector) => shaped("Vector", Some(vector.shape.len()), &vector.element),
        Type::Dialect(text) => match &**text {
            "!tfrt.chain" => "Carries no data: orders what has effects".to_owned(),
            "!tfrt.string" => "Text".to_owned(),
            "!tfrt.device" => "A device that runs operations".to_owned(),
            text => {
                let dialect = text
                    .trim_start_matches('!')
                    .split('.')
                    .next()
                    .unwrap_or_default();
                format!("Type of the dialect `{dialect}`")
            }
        },
    }
}

fn shaped(what: &str, rank: Option<usize>, element: &Type) -> String {
    match rank {
        Some(rank) => format!("{what} of `{element}` with {}", counted(rank, "dimension")),
        None => format!("{what} of `{element}` of any shape"),
    }
}
