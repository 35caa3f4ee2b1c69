//! Advice on errors, given where they are made: what the author of a text may have meant.
//!
//! Messages have the words of MLIR, and say what was expected and what was found. What to write
//! instead is said here, by what stands at the place. Nothing of this runs for texts without errors.

use super::{Parser, operation::ParsedOp};
use crate::{
    codes,
    diagnostic::Diagnostic,
    dialect::{self, OpDef},
    lexer::{self, Kind, Mark},
    similar,
    source::Span,
};

/// The most tokens that are read again for the sake of a message.
const MAX_TOKENS: usize = 1_000;

/// The dialects of MLIR that programs are often ported from.
const OTHER_DIALECTS: [&str; 12] = [
    "affine", "arith", "builtin", "cf", "complex", "linalg", "llvm", "math", "memref", "scf",
    "std", "tensor",
];

impl Parser<'_> {
    /// Returns advice on a token that is not what was expected.
    #[cold]
    pub(super) fn advice(&self, code: &'static str, what: &str) -> Option<String> {
        let text = self.token_text();
        let is_missing = self.is_on_a_line_after(Span::new(self.last_end, self.last_end));
        let help = match (code, self.token.kind) {
            (codes::UNEXPECTED_TOKEN, Kind::Mark(Mark::Colon)) if what == "',' or '}'" => {
                "the value of an attribute stands behind '=': name = value"
            }
            (codes::UNEXPECTED_TOKEN, Kind::Word) if what == "block name" => {
                "attributes stand in braces: {name = value}"
            }
            (codes::EXPECTED_SYMBOL, Kind::Word | Kind::Percent) if !is_missing => {
                let name = text.trim_start_matches('%');
                return Some(format!("names of functions begin with '@': @{name}"));
            }
            (codes::EXPECTED_VALUE, Kind::Word) if !is_missing => {
                return Some(format!("names of values begin with '%': %{text}"));
            }
            (codes::EXPECTED_VALUE, Kind::Integer | Kind::Float) => {
                "a number becomes a value by an operation, such as tfrt.constant.i32"
            }
            (codes::EXPECTED_TYPE, Kind::Integer) => {
                "sizes stand in tensors and the like, before the type of the elements: tensor<2x3xf32>"
            }
            (codes::EXPECTED_TYPE, _) if what == "function type" => {
                "it is written (types of the operands) -> (types of the results)"
            }
            (codes::EXPECTED_ATTRIBUTE, Kind::Word) => return self.advice_on_constant(what),
            (codes::RESULT_NUMBER, Kind::Word | Kind::Exclaim | Kind::Mark(Mark::Equal)) => {
                "a result has its type from the operation: '%name = ...', without ':'"
            }
            (codes::EXPECTED_OPERATION, _) => return self.advice_on_operation(),
            _ => return None,
        };
        Some(help.to_owned())
    }

    fn advice_on_constant(&self, what: &str) -> Option<String> {
        let text = self.token_text();
        let lower = text.to_ascii_lowercase();
        Some(match lower.as_str() {
            "true" | "false" if text != lower => format!("it is written {lower}"),
            "nan" | "inf" | "infinity" if what.starts_with("constant of type") => {
                "numbers that have no digits are written as their bits: 0x7FC00000 is a NaN of f32"
                    .to_owned()
            }
            _ if what == "attribute value" || what == "string literal" => {
                format!("a string stands in quotes: \"{text}\"")
            }
            _ => return None,
        })
    }

    fn advice_on_operation(&self) -> Option<String> {
        let is_value = matches!(
            self.token.kind,
            Kind::Integer | Kind::Float | Kind::Mark(Mark::Minus)
        );
        if is_value {
            let help = "a number becomes a value by an operation: %x = tfrt.constant.i32 1";
            return Some(help.to_owned());
        }
        if self.at(Mark::RightBrace) {
            return Some("nothing is open here that this could close".to_owned());
        }
        let end = Span::new(self.last_end, self.last_end);
        if self.last_end == 0 || self.is_on_a_line_after(end) {
            return None;
        }
        // More text behind an operation that was complete.
        let last = self.module.last_created()?;
        let is_behind = last.span().end as usize <= self.last_end;
        let definition = last.definition().filter(|_| is_behind)?;
        Some(match definition.name() {
            "func.func" => "a function is written: func.func @name(%argument: type, ...) -> \
                            (types) attributes {...} {...}"
                .to_owned(),
            _ => format!("the operation before is written: {}", syntax(definition)?),
        })
    }

    /// Makes the error on the name of an operation that no table has, or that has no short form.
    #[cold]
    pub(super) fn unknown_operation(&self, span: Span, name: &str) -> Diagnostic {
        if let Some(definition) = self.dialects.describe(name) {
            let message = format!("custom op '{name}' has no custom form");
            let form = definition.generic_form();
            let first = form.lines().next().unwrap_or_default();
            let help = format!("write it in generic form: {first}");
            return self.error(codes::NO_SHORT_FORM, span, message).help(help);
        }
        let message = format!("custom op '{name}' is unknown");
        let error = self.error(codes::UNKNOWN_OPERATION, span, message);
        if let Some(closest) = closest(name) {
            return error.help(format!("there is an operation '{closest}'"));
        }
        if let Some(closest) = self.dialects.nearest_added(name) {
            return error.help(format!(
                "there is an operation '{closest}', which is written in generic form: \"{closest}\"(...)"
            ));
        }
        let longer = longer(name);
        if !longer.is_empty() {
            return error.help(format!("there are operations {}", longer.join(", ")));
        }
        let Some((dialect, _)) = name.split_once('.') else {
            let before = self.text[..span.range().start].bytes().next_back();
            if before.is_some_and(|before| before.is_ascii_digit() || before == b'.') {
                return error.help("a number ends with its digits, without a letter for its type");
            }
            let is_type = super::types::is_type_name(name);
            return error.help(match is_type {
                true => "types stand behind ':', and results have none: %x = ...",
                false => "operations are named with their dialect, as 'tfrt.return' is",
            });
        };
        if matches!(name, "tfrt.sync" | "tfrt.native" | "tfrt.compiled") {
            return error.help(format!("it is an attribute: attributes {{{name}}}"));
        }
        if matches!(dialect, "tfrt" | "tfrt_test") {
            return error.help("`tfrt kernels` lists what there is");
        }
        if OTHER_DIALECTS.contains(&dialect) {
            let help = format!(
                "programs have no operations of MLIR's dialect '{dialect}'; \
                 `tfrt kernels` lists those that there are"
            );
            return error.help(help);
        }
        error.help(format!(
            "a kernel of your own is written in generic form: \"{name}\"(...) : (...) -> ..."
        ))
    }

    /// Returns the range of the types of an operation's operands.
    pub(super) fn types_span(&self, parts: &ParsedOp<'_>) -> Span {
        let name = parts.state.span;
        let start = parts.operands.last().map_or(name, |last| last.span);
        let mut at = start.range().end;
        let mut depth = 0;
        for _ in 0..MAX_TOKENS {
            let token = lexer::token(self.text, at);
            if token.kind == Kind::End || token.end > self.last_end {
                break;
            }
            at = token.end;
            match token.kind {
                Kind::Mark(Mark::LeftBrace | Mark::LeftParen) => depth += 1,
                Kind::Mark(Mark::RightBrace | Mark::RightParen) => depth -= 1,
                Kind::Mark(Mark::Colon) if depth <= 0 => {
                    let first = lexer::token(self.text, at);
                    return Span::new(first.start, self.last_end.max(first.start));
                }
                _ => {}
            }
        }
        self.last_char()
    }

    /// Returns the range of a name behind an offset, if before the present token.
    pub(super) fn key_span(&self, from: Span, name: &str) -> Option<Span> {
        let mut at = from.range().start;
        for _ in 0..MAX_TOKENS {
            let token = lexer::token(self.text, at);
            if token.kind == Kind::End || token.end > self.last_end {
                return None;
            }
            if token.kind == Kind::Word && &self.text[token.span().range()] == name {
                return Some(token.span());
            }
            at = token.end;
        }
        None
    }

    /// Returns whether the last error has this message for something close before it on the line.
    pub(super) fn is_said(&self, message: &str, span: Span) -> bool {
        const MAX_DISTANCE: usize = 200;
        let last = self.diagnostics.iter().next_back();
        let Some(last) = last.filter(|last| last.message() == message) else {
            return false;
        };
        let Some(end) = last.position().map(|at| at.span.range().end) else {
            return false;
        };
        let between = self.text.get(end..span.range().start);
        between.is_some_and(|between| between.len() <= MAX_DISTANCE && !between.contains('\n'))
    }
}

/// Returns the syntax of an operation, without what may stand nearly everywhere and is never what
/// is missing.
pub(super) fn syntax(definition: &OpDef) -> Option<String> {
    let syntax = definition.syntax()?;
    let syntax = syntax.replace("[attributes attr-dict]", "");
    Some(syntax.replace(" attr-dict", "").replace("  ", " "))
}

/// Returns the names of operations that have a form of their own.
fn short_names() -> Vec<&'static str> {
    let definitions = dialect::definitions();
    let with_form = definitions
        .iter()
        .filter(|definition| definition.assembly().is_some());
    with_form.map(|definition| definition.name()).collect()
}

/// Returns the operation with a form of its own whose name is a slip or a dialect away.
fn closest(name: &str) -> Option<&'static str> {
    let names = short_names();
    let without = |full: &&'static str| full.strip_prefix("tfrt.");
    let meant = |rest: &str| {
        let mut names = names.iter();
        names.find(|full| without(full) == Some(rest)).copied()
    };
    if let Some((dialect, rest)) = name.split_once('.') {
        let close = similar::nearest(name, names.iter().copied());
        let is_ported = matches!(dialect, "hex" | "tfrt_test") || OTHER_DIALECTS.contains(&dialect);
        return close.or_else(|| meant(rest).filter(|_| is_ported));
    }
    // The dialect may be what is missing.
    let close = similar::nearest(name, names.iter().filter_map(without));
    meant(name).or_else(|| meant(close?))
}

/// Returns a few operations whose names begin with this one.
fn longer(name: &str) -> Vec<&'static str> {
    const MAX_SHOWN: usize = 12;
    let is_longer = |full: &&str| {
        let rest = full.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    short_names()
        .into_iter()
        .filter(is_longer)
        .take(MAX_SHOWN)
        .collect()
}

/// Returns the name here of a type of another language.
pub(super) fn type_of_other_languages(name: &str) -> Option<&'static str> {
    let lower = name.to_ascii_lowercase();
    let lower = lower.as_str();
    Some(match lower {
        "int8" | "short" | "int16" | "byte" | "u8" | "u16" | "u32" | "u64" | "uint" | "uint8"
        | "uint16" | "uint32" | "uint64" | "unsigned" | "int" | "integer" | "int32" | "long"
        | "int64" | "i32" | "i64" => "integers are i32, i64 and the like, unsigned ones ui32",
        "float" | "double" | "float16" | "float32" | "float64" | "half" | "bfloat16" | "f32"
        | "f64" => "floats are f16, bf16, f32 and f64",
        "bool" | "boolean" | "i1" => "a truth value is an i1",
        "string" | "str" => "strings are of the type !tfrt.string",
        "chain" => "chains are of the type !tfrt.chain",
        "void" => "a function without results has no '->'; in other places nothing is ()",
        "tensor" | "vector" | "memref" | "tuple" if lower != name => {
            "names of types are written in lower case"
        }
        _ => return None,
    })
}
