//! The table of ONNX's operators: inputs, outputs and attributes of each version.
//!
//! The facts stand in `schema/operators.tsv`, a line for each version of an operator, which
//! `schema/operators.py` writes; only lines that are asked for are read.
//!
//! ```
//! use tfrt_import::onnx::schema::{self, AttributeKind};
//!
//! let topk = schema::lookup("", "TopK", 13).unwrap();
//! assert_eq!(topk.since, 11);
//! assert_eq!(topk.attribute("axis").unwrap().kind, AttributeKind::Int);
//! assert_eq!(topk.attribute("axis").unwrap().default, Some("-1"));
//! assert_eq!(topk.attribute("k"), None);
//! ```

use std::sync::LazyLock;

const TABLE: &str = include_str!("schema/operators.tsv");

/// The definition of an operator, from one version on.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The domain, `ai.onnx` for the default one.
    pub domain: &'static str,
    /// The name.
    pub name: &'static str,
    /// The version of the operator set that introduced or changed it.
    pub since: i64,
    /// Whether the operator was removed in that version.
    pub is_gone: bool,
    /// The inputs.
    pub inputs: Vec<Parameter>,
    /// The outputs.
    pub outputs: Vec<Parameter>,
    /// The attributes, sorted by name.
    pub attributes: Vec<AttributeDef>,
}

/// The definition of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name.
    pub name: &'static str,
    /// `T` for tensors of the same type wherever that stands, `seq(T)` for sequences of such,
    /// `any(T)` for values of several kinds, else one type: `tensor(int64)`.
    pub ty: &'static str,
    /// The number of values that the parameter stands for.
    pub count: Count,
}

/// The number of values that a parameter stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// One.
    One,
    /// One, or none.
    Optional,
    /// At least so many, all that follow.
    AtLeast(usize),
}

/// The definition of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeDef {
    /// The name.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: AttributeKind,
    /// Whether it must be stated.
    pub is_required: bool,
    /// The default: a number, a text in quotes, or a list in brackets.
    pub default: Option<&'static str>,
}

/// Declares kinds of attributes: number and name in ONNX.
macro_rules! kinds {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        /// The kind of an attribute's value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is described by its name")]
        pub enum AttributeKind { $($name),* }

        impl AttributeKind {
            const ALL: &[AttributeKind] = &[$(AttributeKind::$name),*];

            /// Returns the number of the kind in files.
            pub fn number(self) -> i32 {
                match self { $(AttributeKind::$name => $number),* }
            }

            /// Returns ONNX's name of the kind.
            pub fn name(self) -> &'static str {
                match self { $(AttributeKind::$name => $text),* }
            }
        }
    };
}

kinds! {
    Float = 1, "float";
    Int = 2, "int";
    String = 3, "string";
    Tensor = 4, "tensor";
    Graph = 5, "graph";
    Floats = 6, "floats";
    Ints = 7, "ints";
    Strings = 8, "strings";
    Tensors = 9, "tensors";
    Graphs = 10, "graphs";
    SparseTensor = 11, "sparse_tensor";
    SparseTensors = 12, "sparse_tensors";
    Type = 13, "type";
    Types = 14, "types";
}

/// The lines of the table with the first three columns read, in order.
static LINES: LazyLock<Vec<Line>> = LazyLock::new(|| {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    let mut lines: Vec<Line> = lines.filter_map(Line::read).collect();
    lines.sort_by_key(|line| (line.domain, line.name, line.since));
    lines
});

/// A line of the table, with the columns that are read for every line.
struct Line {
    domain: &'static str,
    name: &'static str,
    since: i64,
    rest: &'static str,
}

/// Returns the definition of an operator in a version of its operator set; the default domain is `""` or `ai.onnx`.
pub fn lookup(domain: &str, name: &str, version: i64) -> Option<Operator> {
    let lines = versions(domain, name);
    let after = lines.partition_point(|line| line.since <= version);
    Some(lines[..after].last()?.operator())
}

/// Returns all definitions of an operator, the oldest first.
pub fn history(domain: &str, name: &str) -> impl Iterator<Item = Operator> {
    versions(domain, name).iter().map(Line::operator)
}

/// Returns whether the operators of a domain are known.
pub fn is_known_domain(domain: &str) -> bool {
    !of_domain(domain).is_empty()
}

/// Iterates over the names of a domain's operators, once for each definition.
pub fn names(domain: &str) -> impl Iterator<Item = &'static str> {
    of_domain(domain).iter().map(|line| line.name)
}

fn of_domain(domain: &str) -> &'static [Line] {
    let domain = if domain.is_empty() { "ai.onnx" } else { domain };
    let start = LINES.partition_point(|line| line.domain < domain);
    let len = LINES[start..].partition_point(|line| line.domain == domain);
    &LINES[start..start + len]
}

fn versions(domain: &str, name: &str) -> &'static [Line] {
    let lines = of_domain(domain);
    let start = lines.partition_point(|line| line.name < name);
    let len = lines[start..].partition_point(|line| line.name == name);
    &lines[start..start + len]
}

impl Line {
    fn read(line: &'static str) -> Option<Line> {
        let mut parts = line.splitn(4, '\t');
        Some(Line {
            domain: parts.next()?,
            name: parts.next()?,
            since: parts.next()?.parse().ok()?,
            rest: parts.next()?,
        })
    }

    fn operator(&self) -> Operator {
        let mut parts = self.rest.split('\t');
        let mut column = || parts.next().unwrap_or_default();
        let is_gone = column() == "-";
        let (inputs, outputs, attributes) = (column(), column(), column());
        Operator {
            domain: self.domain,
            name: self.name,
            since: self.since,
            is_gone,
            inputs: inputs.split_whitespace().map(Parameter::read).collect(),
            outputs: outputs.split_whitespace().map(Parameter::read).collect(),
            attributes: attributes
                .split_whitespace()
                .map(AttributeDef::read)
                .collect(),
        }
    }
}

impl Parameter {
    /// Reads `name:T`, `name:T?` or `name:T*1`.
    fn read(text: &'static str) -> Parameter {
        let (name, ty) = text.split_once(':').unwrap_or((text, ""));
        let (ty, count) = match ty.split_once('*') {
            Some((ty, least)) => {
                let least = least.trim_end_matches('~').parse().unwrap_or(0);
                (ty, Count::AtLeast(least))
            }
            None => match ty.strip_suffix('?') {
                Some(ty) => (ty, Count::Optional),
                None => (ty, Count::One),
            },
        };
        Parameter { name, ty, count }
    }
}

impl AttributeDef {
    /// Reads `name:int`, `name:int!` or `name:int=1`.
    fn read(text: &'static str) -> AttributeDef {
        let (text, default) = match text.split_once('=') {
            Some((text, default)) => (text, Some(default)),
            None => (text, None),
        };
        let (name, kind) = text.split_once(':').unwrap_or((text, ""));
        let (kind, is_required) = match kind.strip_suffix('!') {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        let mut all = AttributeKind::ALL.iter().copied();
        AttributeDef {
            name,
            kind: all
                .find(|it| it.name() == kind)
                .unwrap_or(AttributeKind::Int),
            is_required,
            default,
        }
    }
}

impl Operator {
    /// Returns the definition of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&AttributeDef> {
        self.attributes
            .iter()
            .find(|attribute| attribute.name == name)
    }

    /// Returns the parameter of an input.
    pub fn input(&self, index: usize) -> Option<&Parameter> {
        at(&self.inputs, index)
    }

    /// Returns the parameter of an output.
    pub fn output(&self, index: usize) -> Option<&Parameter> {
        at(&self.outputs, index)
    }
}

fn at(parameters: &[Parameter], index: usize) -> Option<&Parameter> {
    let last = parameters
        .last()
        .filter(|last| matches!(last.count, Count::AtLeast(_)));
    parameters.get(index).or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read_as_it_is_written() {
        let n_lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(LINES.len(), n_lines);
        for line in &*LINES {
            let operator = line.operator();
            let columns: Vec<&str> = line.rest.split('\t').collect();
            assert_eq!(columns.len(), 4, "{}", line.name);
            let parameters = |list: &[Parameter]| {
                let write = |it: &Parameter| match it.count {
                    Count::One => format!("{}:{}", it.name, it.ty),
                    Count::Optional => format!("{}:{}?", it.name, it.ty),
                    Count::AtLeast(least) => format!("{}:{}*{least}", it.name, it.ty),
                };
                list.iter().map(write).collect::<Vec<_>>().join(" ")
            };
            assert_eq!(parameters(&operator.inputs), columns[1].replace('~', ""));
            assert_eq!(parameters(&operator.outputs), columns[2].replace('~', ""));
            let write = |it: &AttributeDef| {
                let mark = if it.is_required { "!" } else { "" };
                let default = it
                    .default
                    .map(|text| format!("={text}"))
                    .unwrap_or_default();
                format!("{}:{}{mark}{default}", it.name, it.kind.name())
            };
            let attributes: Vec<String> = operator.attributes.iter().map(write).collect();
            assert_eq!(attributes.join(" "), columns[3]);
        }
    }

    #[test]
    fn versions_are_told_apart() {
        let since = |version| lookup("", "Softmax", version).map(|it| it.since);
        assert_eq!(
            [since(0), since(1), since(12), since(13)],
            [None, Some(1), Some(11), Some(13)]
        );
        assert!(lookup("", "Upsample", 10).unwrap().is_gone);
        assert!(lookup("ai.onnx.ml", "TreeEnsemble", 5).is_some());
        assert!(lookup("com.example", "Softmax", 5).is_none());
        assert_eq!(
            history("", "TopK").map(|it| it.since).collect::<Vec<_>>(),
            [1, 10, 11, 24]
        );
    }
}
