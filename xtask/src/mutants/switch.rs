//! Mutants behind a switch: one build has all of them, and a number in the environment picks one.
//!
//! The body of each function that has mutants becomes a choice: `match mutant() { 7 => {..} 8 => {..} _ => {..} }`, where
//! each arm is the body with one change. Arms that do not compile are left out, as the compiler's messages tell, until
//! all is built; those are the mutants that are not viable. What is told apart by types alone is so told here as there:
//! an arm must have the type of the function.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use serde_json::Value as Json;

/// The variable that picks a mutant, from 1.
pub const VARIABLE: &str = "TFRT_MUTANT";

/// The code that is put behind the root of the crate: it reads the number once.
pub const READER: &str = r#"
#[doc(hidden)]
pub fn __mutant() -> usize {
    static NUMBER: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *NUMBER.get_or_init(|| {
        let number = std::env::var("TFRT_MUTANT").ok();
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    })
}
"#;

/// A change that cargo-mutants would make.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The name that cargo-mutants gives it.
    pub name: String,
    /// The file, from the root of the repository.
    pub file: String,
    /// The range of the function that it is in, from its documentation to its last brace.
    function: Option<CharRange>,
    place: CharRange,
    replacement: String,
    /// Whether a type stands for the result that each body would give another.
    is_opaque: bool,
}

/// A range of characters, as pairs of a line and a column, from 1.
type CharRange = Range<(usize, usize)>;

/// The lines of a file, from 1, that belong to a mutant, by its position among all.
pub type Arm = (RangeInclusive<usize>, usize);

/// A file with its mutants behind a switch.
#[derive(Debug)]
pub struct SwitchedFile {
    /// The text of the file.
    pub text: String,
    /// The lines of its mutants.
    pub arms: Vec<Arm>,
}

/// Reads the output of `cargo mutants --list --json`; `None` if it has another form.
pub fn read(list: &str) -> Option<Vec<Mutant>> {
    let list: Json = serde_json::from_str(list).ok()?;
    list.as_array()?.iter().map(Mutant::read).collect()
}

impl Mutant {
    fn read(json: &Json) -> Option<Mutant> {
        let text = |field: &str| Some(json[field].as_str()?.to_owned());
        let function = &json["function"];
        let returned = function["return_type"].as_str().unwrap_or_default();
        Some(Mutant {
            name: text("name")?,
            file: text("file")?,
            function: place(&function["span"]),
            place: place(&json["span"])?,
            replacement: text("replacement")?,
            is_opaque: json["genre"] == "FnValue" && returned.contains("impl "),
        })
    }
}

fn place(span: &Json) -> Option<CharRange> {
    let number = |json: &Json| usize::try_from(json.as_u64()?).ok();
    let end = |json: &Json| Some((number(&json["line"])?, number(&json["column"])?));
    Some(end(&span["start"])?..end(&span["end"])?)
}

/// Puts mutants of one file behind a switch. What is given are the mutants by their positions among all; those that
/// are missing from all arms can't be carried so.
pub fn switched<'m>(
    source: &str,
    mutants: impl Iterator<Item = (usize, &'m Mutant)>,
) -> SwitchedFile {
    let mut functions: BTreeMap<(usize, usize), Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (position, mutant) in mutants {
        let Some(function) = mutant.function.as_ref().filter(|_| !mutant.is_opaque) else {
            continue;
        };
        let all = bytes(source, function);
        functions
            .entry((all.start, all.end))
            .or_default()
            .push((position, mutant));
    }
    let mut switched = SwitchedFile {
        text: String::with_capacity(source.len() * 2),
        arms: Vec::new(),
    };
    let (mut done, mut n_lines) = (0, 1);
    let mut push = |switched: &mut SwitchedFile, text: &str| {
        switched.text.push_str(text);
        n_lines += text.matches('\n').count();
        n_lines
    };
    for ((start, end), mutants) in functions {
        let Some(body) = body(&source[start..end]).map(|at| start + at..end) else {
            continue;
        };
        // A function within another is part of the other's copies.
        if body.start < done {
            continue;
        }
        push(&mut switched, &source[done..body.start]);
        let mut line = push(&mut switched, "{ match crate::__mutant() {\n");
        for (position, mutant) in mutants {
            let change = bytes(source, &mutant.place);
            if change.start <= body.start || change.end > body.end {
                continue;
            }
            let (before, behind) = (&source[body.start..change.start], &source[change.end..end]);
            let arm = format!(
                "{} => {before}{} {behind}\n",
                position + 1,
                mutant.replacement
            );
            let next = push(&mut switched, &arm);
            switched.arms.push((line..=next - 1, position));
            line = next;
        }
        push(&mut switched, "_ => ");
        push(&mut switched, &source[body.clone()]);
        push(&mut switched, "\n} }");
        done = body.end;
    }
    push(&mut switched, &source[done..]);
    switched
}

/// Returns the bytes of a range in a text.
fn bytes(text: &str, place: &CharRange) -> Range<usize> {
    let at = |(line, column): (usize, usize)| {
        let mut lines = text.split_inclusive('\n');
        let before: usize = lines.by_ref().take(line - 1).map(str::len).sum();
        let line = lines.next().unwrap_or_default();
        let in_line = line.char_indices().nth(column - 1);
        before + in_line.map_or(line.len(), |(at, _)| at)
    };
    at(place.start)..at(place.end)
}

/// Returns the offset of the brace that begins the body of a function; `None` if it is constant, where nothing can be
/// read from the environment, or has none.
fn body(function: &str) -> Option<usize> {
    let mut at = 0;
    let mut depth = 0_usize;
    let mut is_named = false;
    for line in function.split_inclusive('\n') {
        let is_comment = ["//", "#["]
            .iter()
            .any(|head| line.trim_start().starts_with(head));
        if !is_comment {
            let words = line.split_whitespace().collect::<Vec<_>>();
            if !is_named {
                let keyword = words.iter().position(|word| *word == "fn");
                if words[..keyword.unwrap_or(0)].contains(&"const") {
                    return None;
                }
                is_named = keyword.is_some();
            }
            for (column, char) in line.char_indices() {
                match char {
                    '(' | '[' => depth += 1,
                    ')' | ']' => depth = depth.saturating_sub(1),
                    '{' if depth == 0 && is_named => return Some(at + column),
                    _ => {}
                }
            }
        }
        at += line.len();
    }
    None
}

/// Reads cargo's messages in JSON: the mutants in whose arms there are errors, and other errors.
pub fn errors(messages: &str, arms: &BTreeMap<String, Vec<Arm>>) -> (BTreeSet<usize>, Vec<String>) {
    let (mut wrong, mut others) = (BTreeSet::new(), Vec::new());
    for message in lines(messages) {
        let message = &message["message"];
        if message["level"] != "error" {
            continue;
        }
        let spans = message["spans"].as_array().into_iter().flatten();
        let primary = spans.filter(|span| span["is_primary"] == true);
        let found: Vec<usize> = primary
            .filter_map(|span| {
                let arms = arms.get(span["file_name"].as_str()?)?;
                let line = usize::try_from(span["line_start"].as_u64()?).ok()?;
                let mut arms = arms.iter();
                arms.find(|(lines, _)| lines.contains(&line))
                    .map(|(_, position)| *position)
            })
            .collect();
        if found.is_empty() {
            others.push(message["rendered"].as_str().unwrap_or_default().to_owned());
        }
        wrong.extend(found);
    }
    (wrong, others)
}

/// A program with tests.
#[derive(Clone, Debug)]
pub struct Program {
    /// The path.
    pub path: String,
    /// The folder of its package, where tests are run.
    pub folder: String,
    /// Whether the program has the unit tests of a library.
    pub is_library: bool,
}

/// Reads from cargo's messages in JSON which programs with tests it has built.
pub fn programs(messages: &str) -> Vec<Program> {
    let built = lines(messages).filter(|message| message["profile"]["test"] == true);
    let program = |message: Json| {
        let manifest = message["manifest_path"].as_str()?;
        Some(Program {
            path: message["executable"].as_str()?.to_owned(),
            folder: manifest.strip_suffix("/Cargo.toml")?.to_owned(),
            is_library: message["target"]["kind"][0] == "lib",
        })
    };
    built.filter_map(program).collect()
}

fn lines(messages: &str) -> impl Iterator<Item = Json> + '_ {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "/// Says (in `fn main() {}`) whether.\n\
        #[inline]\n\
        pub fn is(&self, é: [u8; 2]) -> bool\n\
        where\n    T: Fn(&str),\n\
        {\n    é < 1 && two(é)\n}\n\
        const fn two() -> u8 { 1 + 1 }\n";

    fn mutant(name: &str, function: CharRange, place: CharRange, replacement: &str) -> Mutant {
        Mutant {
            name: name.to_owned(),
            file: "a.rs".to_owned(),
            function: Some(function),
            place,
            replacement: replacement.to_owned(),
            is_opaque: false,
        }
    }

    #[test]
    fn bodies_become_choices() {
        let is = (1, 1)..(8, 2);
        let mutants = [
            mutant("less", is.clone(), (7, 7)..(7, 8), ">"),
            mutant("and", is, (7, 11)..(7, 13), "||"),
            mutant("constant", (9, 1)..(9, 31), (9, 26)..(9, 27), "-"),
        ];
        let switched = switched(SOURCE, mutants.iter().enumerate());
        let (head, _) = SOURCE.split_once("\n{").unwrap();
        let expected = format!(
            "{head}\n{{ match crate::__mutant() {{\n\
             1 => {{\n    é >  1 && two(é)\n}}\n\
             2 => {{\n    é < 1 ||  two(é)\n}}\n\
             _ => {{\n    é < 1 && two(é)\n}}\n}} }}\n\
             const fn two() -> u8 {{ 1 + 1 }}\n"
        );
        assert_eq!(switched.text, expected);
        let lines = |n: usize| switched.text.lines().nth(n - 1).unwrap();
        assert_eq!(switched.arms, [(7..=9, 0), (10..=12, 1)]);
        assert_eq!((lines(7), lines(10)), ("1 => {", "2 => {"));
    }

    #[test]
    fn arms_with_errors_are_found() {
        let error = |file: &str, line: usize| {
            format!(
                r#"{{"reason":"compiler-message","message":{{"level":"error","rendered":"no","spans":[
                {{"is_primary":false,"file_name":"{file}","line_start":1}},
                {{"is_primary":true,"file_name":"{file}","line_start":{line}}}]}}}}"#
            )
            .replace('\n', "")
        };
        let arms = BTreeMap::from([("a.rs".to_owned(), vec![(7..=9, 4), (10..=12, 5)])]);
        let messages = [
            error("a.rs", 9),
            error("a.rs", 10),
            error("a.rs", 13),
            error("b.rs", 9),
        ];
        let (wrong, others) = errors(&messages.join("\n"), &arms);
        assert_eq!(wrong, BTreeSet::from([4, 5]));
        assert_eq!(others, ["no", "no"]);
    }

    #[test]
    fn lists_of_cargo_mutants_are_read() {
        let list = r#"[{"name":"a.rs:3:7: replace < with > in is","file":"a.rs","genre":"BinaryOperator",
            "replacement":">","span":{"start":{"line":3,"column":7},"end":{"line":3,"column":8}},
            "function":{"function_name":"is","return_type":"-> bool",
            "span":{"start":{"line":1,"column":1},"end":{"line":5,"column":2}}}}]"#;
        let mutants = read(list).unwrap();
        assert_eq!(mutants[0].place, (3, 7)..(3, 8));
        assert_eq!(mutants[0].function, Some((1, 1)..(5, 2)));
        assert!(read("{}").is_none() && read("[{}]").is_none());
    }
}
