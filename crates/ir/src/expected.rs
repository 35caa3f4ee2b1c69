//! Diagnostics that a program announces in comments, for tests.
//!
//! ```text
//! expectation ::= `expected-` (`error` | `warning` | `remark` | `note`) (`-re`)?
//!                 (`@` (`+` N | `-` N | `above` | `below` | `unknown`))? count? `{{` text `}}`
//! ```
//!
//! Each expectation matches one diagnostic of its severity on its line (the
//! line of the comment, moved by what follows the `@`), whose message contains
//! the text. With `-re`, parts of the text in `{{...}}` match any characters.

use crate::{
    codes,
    diagnostic::{Diagnostic, Diagnostics, Severity},
    source::{Source, Span},
};

/// One announced diagnostic.
#[derive(Clone, Debug)]
struct Expectation {
    kind: Kind,
    /// The line of the diagnostic; `None` for those without a place.
    line: Option<u32>,
    text: String,
    is_pattern: bool,
    span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Error,
    Warning,
    Remark,
    Note,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Error => "error",
            Kind::Warning => "warning",
            Kind::Remark => "remark",
            Kind::Note => "note",
        }
    }
}

/// Compares the diagnostics of a program with those that its text announces.
///
/// # Errors
///
/// What was announced and did not come, and errors, warnings and remarks that
/// came unannounced. Notes need not be announced.
///
/// # Examples
///
/// ```
/// use tfrt_ir::{expected, parse, Source};
///
/// let text = "// expected-error @+1 {{custom op 'oops' is unknown}}\noops\n";
/// let source = Source::new("a.mlir", text);
/// assert!(expected::check(&source, &parse(&source).unwrap_err()).is_ok());
/// ```
pub fn check(source: &Source, diagnostics: &Diagnostics) -> Result<(), Diagnostics> {
    let mut problems = Diagnostics::default();
    let mut open = expectations(source, &mut problems);
    let mut elsewhere: Vec<(u32, &str)> = Vec::new();
    for diagnostic in diagnostics {
        let kind = match diagnostic.severity() {
            Severity::Error => Kind::Error,
            Severity::Warning => Kind::Warning,
            Severity::Remark => Kind::Remark,
        };
        let line = diagnostic.line_column().map(|(line, _)| line);
        if !take(&mut open, kind, line, diagnostic.message()) {
            problems.push(unexpected(diagnostic, kind));
            elsewhere.extend(line.map(|line| (line, diagnostic.message())));
        }
        for note in diagnostic.notes() {
            let line = note.line_column().map(|(line, _)| line).or(line);
            take(&mut open, Kind::Note, line, note.message());
        }
    }
    for expectation in open {
        let Expectation {
            kind, text, span, ..
        } = expectation;
        let message = format!("expected {} \"{text}\" was not produced", kind.name());
        let error = Diagnostic::error(codes::NOT_PRODUCED, message).at(source, span);
        let elsewhere = elsewhere
            .iter()
            .find(|(_, message)| message.contains(&text));
        problems.push(match elsewhere {
            Some((line, _)) => {
                let help = format!("it came on line {line}; '@+1' means the next line");
                error.help(help)
            }
            None => error,
        });
    }
    problems.into_result()
}

fn unexpected(diagnostic: &Diagnostic, kind: Kind) -> Diagnostic {
    let message = format!("unexpected {}: {}", kind.name(), diagnostic.message());
    let error = Diagnostic::error(codes::UNANNOUNCED, message);
    match diagnostic.position() {
        Some(position) => error.at(&position.source, position.span),
        None => error.at_location(diagnostic.location().clone()),
    }
}

/// Removes an expectation that fits; returns whether there was one.
fn take(open: &mut Vec<Expectation>, kind: Kind, line: Option<u32>, message: &str) -> bool {
    let fits = |expectation: &Expectation| {
        expectation.kind == kind
            && (expectation.line == line)
            && match expectation.is_pattern {
                true => matches_pattern(&expectation.text, message),
                false => message.contains(&expectation.text),
            }
    };
    match open.iter().position(fits) {
        Some(index) => {
            open.remove(index);
            true
        }
        None => false,
    }
}

/// Returns whether the literal parts of a pattern occur in order.
fn matches_pattern(pattern: &str, message: &str) -> bool {
    let mut rest = message;
    let mut parts = pattern.split("{{");
    let first = parts.next().unwrap_or_default();
    let literals = parts.map(|part| part.split_once("}}").map_or(part, |(_, literal)| literal));
    for literal in std::iter::once(first).chain(literals) {
        match rest.find(literal) {
            Some(at) => rest = &rest[at + literal.len()..],
            None => return false,
        }
    }
    true
}

/// Finds the expectations in a text.
fn expectations(source: &Source, problems: &mut Diagnostics) -> Vec<Expectation> {
    let text = source.text();
    let mut found = Vec::new();
    for (at, _) in text.match_indices("expected-") {
        let line_start = text[..at].rfind('\n').map_or(0, |index| index + 1);
        if !text[line_start..at].contains("//") {
            continue;
        }
        let line = source.line_column(at).0;
        let rest_of_line = text[at..].split('\n').next().unwrap_or_default();
        match expectation(rest_of_line, line) {
            Some(Ok((expectation, count))) => {
                let span = Span::new(at, at + rest_of_line.trim_end().len());
                let expectation = Expectation {
                    span,
                    ..expectation
                };
                found.extend(std::iter::repeat_n(expectation, count));
            }
            Some(Err(message)) => {
                let span = Span::new(at, at + rest_of_line.trim_end().len());
                problems.push(Diagnostic::error(codes::ANNOUNCEMENT, message).at(source, span));
            }
            None => {}
        }
    }
    found
}

/// Reads one expectation; `None` if it is some other text.
fn expectation(text: &str, line: u32) -> Option<Result<(Expectation, usize), &'static str>> {
    const MAX_COUNT: usize = 1_000;
    let rest = text.strip_prefix("expected-")?;
    let kinds = [Kind::Error, Kind::Warning, Kind::Remark, Kind::Note];
    let kind = kinds
        .into_iter()
        .find(|kind| rest.starts_with(kind.name()))?;
    let rest = &rest[kind.name().len()..];
    let (is_pattern, rest) = match rest.strip_prefix("-re") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let rest = rest.trim_start();
    let (line, rest) = match rest.strip_prefix('@') {
        None => (Some(line), rest),
        Some(rest) => match target_line(rest, line) {
            Some(found) => found,
            None => {
                return Some(Err(
                    "expected '+N', '-N', 'above', 'below' or 'unknown' behind '@'",
                ));
            }
        },
    };
    let rest = rest.trim_start();
    let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let count = match n_digits {
        0 => 1,
        n => rest[..n].parse().unwrap_or(MAX_COUNT).min(MAX_COUNT),
    };
    let rest = rest[n_digits..].trim_start();
    let Some(body) = rest.strip_prefix("{{") else {
        return Some(Err("expected '{{' and the text of the diagnostic"));
    };
    let Some(end) = body.rfind("}}") else {
        return Some(Err("expected '}}' behind the text of the diagnostic"));
    };
    let text = body[..end].to_owned();
    Some(Ok((
        Expectation {
            kind,
            line,
            text,
            is_pattern,
            span: Span::default(),
        },
        count,
    )))
}

/// Reads what follows the `@`; returns the line and the rest.
fn target_line(rest: &str, line: u32) -> Option<(Option<u32>, &str)> {
    if let Some(rest) = rest.strip_prefix("above") {
        return Some((line.checked_sub(1), rest));
    }
    if let Some(rest) = rest.strip_prefix("below") {
        return Some((line.checked_add(1), rest));
    }
    if let Some(rest) = rest.strip_prefix("unknown") {
        return Some((None, rest));
    }
    let sign = rest
        .chars()
        .next()
        .filter(|sign| matches!(sign, '+' | '-'))?;
    let digits = &rest[1..];
    let n_digits = digits.bytes().take_while(u8::is_ascii_digit).count();
    let distance: u32 = digits[..n_digits].parse().ok()?;
    let target = match sign {
        '+' => line.checked_add(distance),
        _ => line.checked_sub(distance),
    };
    Some((Some(target?), &digits[n_digits..]))
}
