//! Compares output with the expectations that a program carries in its comments.
//!
//! | Directive | Holds if |
//! | --- | --- |
//! | `CHECK: p` | `p` occurs somewhere behind the last match |
//! | `CHECK-NEXT: p` | `p` occurs on the line after that of the last match |
//! | `CHECK-SAME: p` | `p` occurs behind the last match on its line |
//! | `CHECK-NOT: p` | `p` does not occur between the matches before and behind |
//! | `CHECK-DAG: p` | as `CHECK`, but directives in a row match in any order |
//! | `CHECK-LABEL: p` | as `CHECK`; found first, and the directives between two labels see only the output between them |
//!
//! A pattern is literal but for `{{regex}}`, `[[NAME:regex]]` (which keeps what it matched) and
//! `[[NAME]]` (what was kept), and `[[@LINE+N]]` (a line of the program, counted from that of the
//! directive). Runs of blanks match runs of blanks. Patterns never match across
//! lines.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use regex::Regex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Next,
    Same,
    Not,
    Dag,
    Label,
}

/// One expectation.
#[derive(Clone, Debug)]
struct Directive {
    kind: Kind,
    /// The line in the file of the program, from 1.
    line: usize,
    pattern: String,
}

impl Directive {
    fn is_label(&self) -> bool {
        self.kind == Kind::Label
    }
}

/// An expectation that the output does not meet.
#[derive(Debug, PartialEq, Eq)]
pub struct Mismatch {
    line: usize,
    message: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

/// The directives between two labels, and what they see.
struct Section<'d> {
    /// Where the label before it was found; empty at the start of the output.
    label: Range<usize>,
    directives: &'d [Directive],
}

/// Compares `output` with the directives in `text` that begin with `prefix`.
pub fn check(text: &str, prefix: &str, output: &str) -> Result<(), Mismatch> {
    let directives = directives(text, prefix)?;
    let output = squeeze(output);
    let mut variables = HashMap::new();
    let mut sections: Vec<Section<'_>> = Vec::new();
    // Labels first: they cut the output.
    let mut from = 0;
    for piece in directives.split_inclusive(|directive| directive.kind == Kind::Label) {
        let own = piece.len() - usize::from(piece.last().is_some_and(Directive::is_label));
        let label = from..from;
        sections.push(Section {
            label,
            directives: &piece[..own],
        });
        if let Some(label) = piece.get(own) {
            let found = find(label, &output, from..output.len(), &mut variables)?;
            from = found.end;
            sections.push(Section {
                label: found,
                directives: &[],
            });
        }
    }
    for (index, section) in sections.iter().enumerate() {
        let next = sections.get(index + 1);
        let end = next.map_or(output.len(), |next| next.label.start);
        let room = section.label.end..end.max(section.label.end);
        check_section(section.directives, &output, room, &mut variables)?;
    }
    Ok(())
}

fn check_section(
    directives: &[Directive],
    output: &str,
    section: Range<usize>,
    variables: &mut HashMap<String, String>,
) -> Result<(), Mismatch> {
    let line_end = |from: usize| {
        let end = output[from..section.end].find('\n');
        end.map_or(section.end, |at| from + at)
    };
    let mut last = section.start;
    let mut forbidden: Vec<&Directive> = Vec::new();
    // The matches of DAGs in a row: what follows comes behind all of them.
    let mut group: Vec<Range<usize>> = Vec::new();
    for directive in directives {
        if directive.kind == Kind::Not {
            forbidden.push(directive);
            continue;
        }
        if directive.kind != Kind::Dag || !forbidden.is_empty() {
            last = group
                .drain(..)
                .fold(last, |last, found| last.max(found.end));
        }
        let room = match directive.kind {
            Kind::Same => last..line_end(last),
            Kind::Next => {
                let start = (line_end(last) + 1).min(section.end);
                start..line_end(start)
            }
            _ => last..section.end,
        };
        let found = find_apart(directive, output, room, &group, variables)?;
        refuse(&forbidden, output, last..found.start, variables)?;
        forbidden.clear();
        match directive.kind {
            Kind::Dag => group.push(found),
            _ => last = found.end,
        }
    }
    last = group.iter().fold(last, |last, found| last.max(found.end));
    refuse(&forbidden, output, last..section.end, variables)
}

/// Finds a pattern and keeps what its variables matched.
fn find(
    directive: &Directive,
    output: &str,
    room: Range<usize>,
    variables: &mut HashMap<String, String>,
) -> Result<Range<usize>, Mismatch> {
    find_apart(directive, output, room, &[], variables)
}

/// As [`find`], without touching what is `taken`.
fn find_apart(
    directive: &Directive,
    output: &str,
    room: Range<usize>,
    taken: &[Range<usize>],
    variables: &mut HashMap<String, String>,
) -> Result<Range<usize>, Mismatch> {
    let (regex, names) = compile(directive, variables)?;
    let mut start = room.start;
    while let Some(captures) = regex.captures_at(&output[..room.end], start) {
        let whole = captures.get(0).expect("a match has a whole").range();
        let clash = taken
            .iter()
            .find(|other| whole.start < other.end && other.start < whole.end);
        if let Some(other) = clash {
            start = other.end;
            continue;
        }
        for name in names {
            let text = captures.name(&name).map_or("", |found| found.as_str());
            variables.insert(name, text.to_owned());
        }
        return Ok(whole);
    }
    let around: Vec<&str> = output[room.start..].lines().take(6).collect();
    Err(Mismatch {
        line: directive.line,
        message: format!(
            "expected {:?} in `{}`, but what follows is\n{}",
            directive.kind,
            directive.pattern,
            around.join("\n")
        ),
    })
}

fn refuse(
    forbidden: &[&Directive],
    output: &str,
    room: Range<usize>,
    variables: &HashMap<String, String>,
) -> Result<(), Mismatch> {
    for directive in forbidden {
        let (regex, _) = compile(directive, variables)?;
        let room = room.start.min(room.end)..room.end;
        if let Some(found) = regex.find(&output[room]) {
            return Err(Mismatch {
                line: directive.line,
                message: format!("found what must not be there: {}", found.as_str()),
            });
        }
    }
    Ok(())
}

/// Makes a regular expression of a pattern; returns the variables that it sets.
fn compile(
    directive: &Directive,
    variables: &HashMap<String, String>,
) -> Result<(Regex, Vec<String>), Mismatch> {
    let wrong = |message: String| Mismatch {
        line: directive.line,
        message,
    };
    let mut expression = String::from("(?-s)");
    let mut names = Vec::new();
    let mut rest = directive.pattern.as_str();
    while !rest.is_empty() {
        let next = rest.find("{{").into_iter().chain(rest.find("[[")).min();
        let (literal, special) = rest.split_at(next.unwrap_or(rest.len()));
        expression.push_str(&regex::escape(literal));
        if let Some(behind) = special.strip_prefix("{{") {
            let end = behind
                .find("}}")
                .ok_or_else(|| wrong("a `{{` is not closed".to_owned()))?;
            expression.push_str(&format!("(?:{})", &behind[..end]));
            rest = &behind[end + 2..];
        } else if let Some(behind) = special.strip_prefix("[[") {
            let end = behind
                .find("]]")
                .ok_or_else(|| wrong("a `[[` is not closed".to_owned()))?;
            match behind[..end].split_once(':') {
                _ if behind.starts_with("@LINE") => {
                    let distance = behind["@LINE".len()..end].trim_start_matches('+');
                    let distance: isize = distance.parse().unwrap_or(0);
                    let line = directive.line.saturating_add_signed(distance);
                    expression.push_str(&line.to_string());
                }
                Some((name, inner)) => {
                    expression.push_str(&format!("(?P<{name}>{inner})"));
                    names.push(name.to_owned());
                }
                None => {
                    let name = &behind[..end];
                    let value = variables
                        .get(name)
                        .ok_or_else(|| wrong(format!("nothing was kept as '{name}'")))?;
                    expression.push_str(&regex::escape(value));
                }
            }
            rest = &behind[end + 2..];
        } else {
            rest = "";
        }
    }
    let regex = Regex::new(&expression).map_err(|error| wrong(error.to_string()))?;
    Ok((regex, names))
}

/// Finds the directives of a text.
fn directives(text: &str, prefix: &str) -> Result<Vec<Directive>, Mismatch> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some((_, comment)) = line.split_once("//") else {
            continue;
        };
        let Some(rest) = comment.trim_start().strip_prefix(prefix) else {
            continue;
        };
        let Some((suffix, pattern)) = rest.split_once(':') else {
            continue;
        };
        let line = index + 1;
        let kind = match suffix {
            "" => Kind::Plain,
            "-NEXT" => Kind::Next,
            "-SAME" => Kind::Same,
            "-NOT" => Kind::Not,
            "-DAG" => Kind::Dag,
            "-LABEL" => Kind::Label,
            _ if suffix.starts_with('-') => {
                let message = format!("there is no directive {prefix}{suffix}");
                return Err(Mismatch { line, message });
            }
            _ => continue,
        };
        let pattern = squeeze(pattern.trim());
        if pattern.is_empty() {
            let message = "the pattern is empty".to_owned();
            return Err(Mismatch { line, message });
        }
        found.push(Directive {
            kind,
            line,
            pattern,
        });
    }
    Ok(found)
}

/// Makes each run of blanks one.
fn squeeze(text: &str) -> String {
    let mut squeezed = String::with_capacity(text.len());
    let mut blank = false;
    for c in text.chars() {
        let is_blank = c == ' ' || c == '\t';
        if !(is_blank && blank) {
            squeezed.push(if is_blank { ' ' } else { c });
        }
        blank = is_blank;
    }
    squeezed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, output: &str) {
        check(text, "CHECK", output).unwrap();
    }

    fn fails(text: &str, output: &str) -> String {
        check(text, "CHECK", output).unwrap_err().to_string()
    }

    #[test]
    fn plain_directives_match_in_order() {
        holds("// CHECK: a\n// CHECK: b", "x a\ny\nb\n");
        fails("// CHECK: b\n// CHECK: a", "a\nb\n");
        fails("// CHECK: a\n// CHECK: a", "a\n");
    }

    #[test]
    fn next_is_the_next_line_only() {
        holds("// CHECK: a\n// CHECK-NEXT: b", "a\nb\n");
        fails("// CHECK: a\n// CHECK-NEXT: b", "a\n\nb\n");
        fails("// CHECK: a\n// CHECK-NEXT: b", "a b\n");
    }

    #[test]
    fn same_is_the_same_line_only() {
        holds("// CHECK: a\n// CHECK-SAME: b", "a  b\n");
        fails("// CHECK: a\n// CHECK-SAME: b", "a\nb\n");
    }

    #[test]
    fn not_looks_between_the_matches_around_it() {
        holds("// CHECK: a\n// CHECK-NOT: x\n// CHECK: b", "x\na\nb\nx\n");
        fails("// CHECK: a\n// CHECK-NOT: x\n// CHECK: b", "a\nx\nb\n");
        fails("// CHECK: a\n// CHECK-NOT: x", "a\nx\n");
        fails("// CHECK-NOT: x\n// CHECK: a", "x\na\n");
    }

    #[test]
    fn dags_match_in_any_order_without_overlap() {
        holds("// CHECK-DAG: a\n// CHECK-DAG: b\n// CHECK: c", "b\na\nc\n");
        fails("// CHECK-DAG: a\n// CHECK-DAG: a", "a\n");
        fails("// CHECK-DAG: a\n// CHECK-DAG: b\n// CHECK: c", "c\nb\na\n");
    }

    #[test]
    fn labels_fence_what_lies_between_them() {
        let text = "// CHECK-LABEL: one\n// CHECK: x\n// CHECK-LABEL: two\n";
        holds(text, "one\nx\ntwo\n");
        fails(text, "one\ntwo\nx\n");
    }

    #[test]
    fn patterns_have_expressions_and_variables() {
        holds("// CHECK: v{{[0-9]+}}.", "v12.");
        holds("// CHECK: [[X:[a-z]+]]\n// CHECK: =[[X]]=", "abc\n=abc=\n");
        fails("// CHECK: [[X:[a-z]+]]\n// CHECK: =[[X]]=", "abc\n=abd=\n");
        fails("// CHECK: [[X]]", "abc\n");
        holds("// CHECK: [[@LINE+2]]:", "3:");
        holds("\n// CHECK: [[@LINE-1]] [[@LINE]]", "1 2");
        holds("// CHECK: <<error: a (b)>>", "<<error: a (b)>>");
    }

    #[test]
    fn blanks_are_squeezed_and_lines_kept() {
        holds("// CHECK: a b", "a \t b\n");
        fails("// CHECK: a{{.*}}b", "a\nb\n");
    }

    #[test]
    fn unknown_directives_and_empty_patterns_are_refused() {
        assert!(fails("// CHECK-NXET: a", "a").contains("no directive CHECK-NXET"));
        assert!(fails("// CHECK:", "a").contains("empty"));
        holds("// CHECKED: a", "");
    }
}
