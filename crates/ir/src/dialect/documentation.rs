//! Entries as Markdown: the text that an editor shows for one, and the reference in
//! `docs/operations/` for all.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Effects, Execution, OpDef, Results, Traits, ValueDef, definitions, natives};

/// A page of the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The name of the page's file.
    pub file: String,
    /// The content of the page.
    pub text: String,
}

const GENERATED: &str =
    "<!-- Generated from the tables in crates/ir/src/dialects by `cargo xtask bless`. -->\n";

const INTRODUCTION: &str = "\
# Operations

All operations that are known, a page for each dialect. `tfrt kernels NAME` shows the same on the terminal, and an editor where the name stands.

## How to read an entry

*Syntax* is the operation's own form: `%name` stands for an operand, `$name` for an attribute, `attr-dict` for the other attributes in braces, if there are any, `types` for types, and what stands in brackets is only there when needed. What has no syntax is written in *generic form*, which all operations have.

*Effects* say what happens besides computing results, and so what `sequence-effects` puts in order ([sequencing.md](../sequencing.md)). A *pure* operation has none, and equal operands give equal results.

*Results* are there when the kernel returns, or come later. A function marked `tfrt.sync` may use the former only.

*Errors* are those that the kernel makes. Besides, if an operand is an error, the kernel does not run, and all results are that error: of several the one of the operand with the highest number. An operation marked `bef.nonstrict` runs as soon as one operand is there, and is handed errors as they are. In a request that was cancelled, kernels do not start, and their results are errors with the code `Cancelled` or `DeadlineExceeded`.

*A chain more*: where an entry says so, an operation may take one chain more than it declares, as its last operand. It only orders.

";

/// Returns the pages of the reference, the table of contents first.
///
/// # Examples
///
/// ```
/// let pages = tfrt_ir::dialect::reference();
/// assert_eq!(pages[0].file, "README.md");
/// ```
pub fn reference() -> Vec<Page> {
    let mut dialects: BTreeMap<&str, Vec<&OpDef>> = BTreeMap::new();
    for definition in definitions() {
        let dialect = dialects.entry(definition.dialect()).or_default();
        dialect.push(definition);
    }
    dialects.insert("native", natives().iter().collect());

    let mut contents = format!("{GENERATED}{INTRODUCTION}");
    let mut pages = Vec::new();
    for (dialect, entries) in &dialects {
        let title = match *dialect {
            "native" => "Native functions".to_owned(),
            dialect => format!("Dialect `{dialect}`"),
        };
        let mut text = format!("{GENERATED}# {title}\n");
        let _ = writeln!(
            contents,
            "## [{title}]({dialect}.md)\n\n| Name | |\n| --- | --- |"
        );
        for entry in entries {
            let (name, summary) = (entry.name(), entry.summary_text());
            let _ = writeln!(text, "\n## {name}\n\n{}", entry.documentation().trim_end());
            let anchor = anchor(name);
            let _ = writeln!(
                contents,
                "| [`{name}`]({dialect}.md#{anchor}) | {summary} |"
            );
        }
        contents.push('\n');
        let file = format!("{dialect}.md");
        pages.push(Page { file, text });
    }
    let contents = Page {
        file: "README.md".to_owned(),
        text: format!("{}\n", contents.trim_end()),
    };
    pages.insert(0, contents);
    pages
}

/// Returns the anchor that Markdown's readers give to a heading.
fn anchor(heading: &str) -> String {
    heading.replace('.', "").to_lowercase()
}

impl OpDef {
    /// Returns everything that the entry says, as Markdown without a heading.
    ///
    /// # Examples
    ///
    /// ```
    /// let entry = tfrt_ir::dialect::describe("tfrt.div.i32").unwrap();
    /// let text = entry.documentation();
    /// assert!(text.starts_with("The quotient, rounded towards zero, and the remainder.\n"));
    /// assert!(text.contains("- `Unknown`: `Divide by zero`, if `rhs` is 0"));
    /// ```
    pub fn documentation(&self) -> String {
        let mut text = format!("{}.\n", self.summary);
        if !self.details.is_empty() {
            let _ = writeln!(text, "\n{}", self.details);
        }
        text.push('\n');
        if let Some(syntax) = self.syntax() {
            let _ = writeln!(text, "- Syntax: `{syntax}`");
        }
        self.write_operands(&mut text);
        self.write_attributes(&mut text);
        self.write_results(&mut text);
        let _ = writeln!(text, "- Effects: {}.", self.effects_text());
        if self.takes_trailing_chain() && !self.is(Traits::NATIVE) {
            text += "- It may take a chain more.\n";
        }
        if self.is(Traits::COMMUTATIVE) {
            text += "- Operands may be swapped.\n";
        }
        if !self.errors.is_empty() {
            text += "- Errors:\n";
            for error in &self.errors {
                let (code, message, when) = (error.code, error.message, error.when);
                let _ = match when {
                    "always" => writeln!(text, "  - `{code}`: `{message}`, always"),
                    when if when.starts_with("always") => {
                        writeln!(text, "  - `{code}`: `{message}`, {when}")
                    }
                    when => writeln!(text, "  - `{code}`: `{message}`, if {when}"),
                };
            }
        }
        self.write_forms(&mut text);
        text
    }

    fn write_operands(&self, text: &mut String) {
        let mut operands: Vec<String> = self.operands.iter().map(typed).collect();
        operands.extend(self.rest.iter().map(|rest| any_number(rest, "any number")));
        let _ = match operands.as_slice() {
            [] => writeln!(text, "- Operands: none"),
            operands => writeln!(text, "- Operands: {}", operands.join(", ")),
        };
        if self.regions > 0 {
            let names = self.region_names.iter().map(|name| format!("`{name}`"));
            let _ = match self.region_names {
                [] => writeln!(text, "- Regions: {}", self.regions),
                _ => writeln!(text, "- Regions: {}", names.collect::<Vec<_>>().join(", ")),
            };
        }
    }

    fn write_attributes(&self, text: &mut String) {
        if self.attributes.is_empty() && self.more_attributes.is_none() {
            return;
        }
        text.push_str("- Attributes:\n");
        for attribute in &self.attributes {
            let (name, kind, meaning) = (attribute.name, attribute.kind.name(), attribute.meaning);
            let presence = match (
                attribute.default,
                attribute.optional,
                attribute.compile_time,
            ) {
                ("", true, _) => ", may be absent".to_owned(),
                ("", _, true) => ", for the compiler alone".to_owned(),
                ("", ..) => String::new(),
                (default, ..) => format!(", `{default}` if absent"),
            };
            let choices: Vec<String> = attribute
                .choices
                .iter()
                .map(|one| format!("`{one}`"))
                .collect();
            let choices = choices.join(", ");
            let rest = match (choices.as_str(), meaning) {
                ("", "") => String::new(),
                (choices, "") => format!(": {choices}"),
                ("", meaning) => format!(": {meaning}"),
                (choices, meaning) => format!(": {choices}; {meaning}"),
            };
            let _ = writeln!(text, "  - `{name}` (`{kind}`{presence}){rest}");
        }
        if let Some(meaning) = self.more_attributes {
            let _ = writeln!(text, "  - any number of others, each: {meaning}");
        }
    }

    fn write_results(&self, text: &mut String) {
        let results: Vec<String> = match &self.results {
            Results::Exactly(results) => results.iter().map(typed).collect(),
            Results::AtLeast(declared, rest) => {
                let rest = any_number(rest, "any number");
                declared.iter().map(typed).chain([rest]).collect()
            }
            Results::LikeRest(results) => {
                let rest = self.rest.map_or(String::new(), |rest| rest.identifier());
                vec![format!("`{}` (as `{rest}`)", results.identifier())]
            }
        };
        let results = match results.as_slice() {
            [] => "none".to_owned(),
            results => results.join(", "),
        };
        let _ = writeln!(text, "- Results: {results}{}", self.when_there());
    }

    fn when_there(&self) -> &'static str {
        match self.execution {
            Execution::Structure => "; it gives programs their structure, and has no kernel",
            Execution::Elsewhere => "; its kernel is not part of this runtime",
            Execution::Synchronous => "; there when the kernel returns",
            Execution::Asynchronous => "; may come later",
            Execution::Calls => "; come from the functions that are called",
            Execution::Compiled => "",
        }
    }

    /// Returns the effects of the operation, in words.
    pub fn effects_text(&self) -> String {
        if self.is(Traits::PURE) {
            return "pure".to_owned();
        }
        let effects: &Effects = &self.effects;
        if effects.is_unknown() {
            return "everything may be affected".to_owned();
        }
        let mut parts = Vec::new();
        if effects.is_nested() {
            parts.push("those of its regions and functions".to_owned());
        }
        for (verb, operands) in [("reads", effects.reads()), ("writes", effects.writes())] {
            let names = operands.iter().filter_map(|&at| self.operands.get(at));
            let names: Vec<String> = names
                .map(|operand| format!("`{}`", operand.identifier()))
                .collect();
            if !names.is_empty() {
                parts.push(format!("{verb} what {} refers to", names.join(" and ")));
            }
        }
        if effects.allocates() {
            parts.push("makes something new".to_owned());
        }
        if effects.is_outside() {
            parts.push("can be seen from outside".to_owned());
        }
        match parts.as_slice() {
            [] => "none".to_owned(),
            parts => parts.join("; "),
        }
    }

    fn write_forms(&self, text: &mut String) {
        if !self.is(Traits::NATIVE) {
            let _ = writeln!(
                text,
                "\nGeneric form:\n\n```mlir\n{}\n```",
                self.generic_form().trim_end()
            );
        }
        let Some(example) = &self.example else {
            return;
        };
        let _ = writeln!(
            text,
            "\nExample:\n\n```mlir\n{}\n```",
            example.text.trim_end()
        );
        if !example.output.is_empty() {
            let _ = writeln!(text, "\nprints\n\n```text\n{}\n```", example.output);
        }
    }
}

/// Returns name and type of a value as Markdown: `` `x` (`i32`) ``.
fn typed(value: &ValueDef) -> String {
    let optional = if value.optional {
        ", may be left out"
    } else {
        ""
    };
    format!(
        "`{}` (`{}`{optional})",
        value.identifier(),
        value.kind.name()
    )
}

fn any_number(value: &ValueDef, how_many: &str) -> String {
    format!(
        "`{}` ({how_many}, `{}`)",
        value.identifier(),
        value.kind.name()
    )
}
