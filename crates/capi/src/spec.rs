//! [`OpSpec`]: the definition of an operation, made of the short texts that TensorFlow has for inputs, outputs and
//! attributes: `x: N * T`, `T: {float, double} = DT_FLOAT`.

use tfrt_host::Error;

use crate::attrs::{Attr, Kind};
use crate::dtype;
use crate::guard::Callback;

mod value;

/// The definition of an operation.
#[derive(Clone, Debug, Default)]
pub struct OpSpec {
    /// The name: `MatMul`, `_Hidden`, `Mine>MatMul`.
    pub name: String,
    /// The inputs.
    pub inputs: Vec<ArgSpec>,
    /// The outputs.
    pub outputs: Vec<ArgSpec>,
    /// The attributes.
    pub attrs: Vec<AttrSpec>,
    /// Whether calls have effects.
    pub is_stateful: bool,
    /// Whether two inputs may be exchanged.
    pub is_commutative: bool,
    /// Whether the operation sums its inputs up.
    pub is_aggregate: bool,
    /// Whether inputs may be variables without a value.
    pub allows_uninitialized: bool,
    /// The version from which on it is deprecated, and why.
    pub deprecated: Option<(i32, String)>,
    /// The function that infers shapes.
    pub shape_function: Option<ShapeFunction>,
    /// The library that it comes from; empty for a built-in definition.
    pub library: String,
}

/// A function that infers shapes.
#[derive(Clone, Copy)]
pub struct ShapeFunction(pub Callback);

impl std::fmt::Debug for ShapeFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShapeFunction")
    }
}

/// An input or output: one tensor, several of one type, or a list of types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgSpec {
    /// The name.
    pub name: String,
    /// The type of the elements.
    pub types: ArgTypes,
    /// The attribute that says how many tensors it is.
    pub count: Option<String>,
    /// Whether it is a reference to a variable.
    pub is_reference: bool,
}

impl ArgSpec {
    /// Returns the text of a definition: `x: N * T`.
    fn text(&self) -> String {
        let types = match &self.types {
            ArgTypes::Fixed(code) => dtype::name(*code),
            ArgTypes::Attr(name) | ArgTypes::List(name) => name.clone(),
        };
        let types = match &self.count {
            Some(count) => format!("{count} * {types}"),
            None => types,
        };
        match self.is_reference {
            true => format!("{}: Ref({types})", self.name),
            false => format!("{}: {types}", self.name),
        }
    }

    /// Returns whether it is one tensor in each call.
    pub fn is_one(&self) -> bool {
        self.count.is_none() && !matches!(self.types, ArgTypes::List(_))
    }
}

impl OpSpec {
    /// Returns whether some inputs are resources, or references to variables.
    pub fn takes_resources(&self) -> bool {
        let mut inputs = self.inputs.iter();
        inputs.any(|input| {
            input.is_reference || input.types == ArgTypes::Fixed(crate::dtype::RESOURCE)
        })
    }
}

/// The type of the elements of an input or output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgTypes {
    /// This one.
    Fixed(i32),
    /// The value of this attribute.
    Attr(String),
    /// The value of this attribute, a list: a type for each tensor.
    List(String),
}

/// An attribute.
#[derive(Clone, Debug)]
pub struct AttrSpec {
    /// The name.
    pub name: String,
    /// The kind of its value.
    pub kind: Kind,
    /// Whether it is a list of such values.
    pub is_list: bool,
    /// The least value, or length of a list.
    pub minimum: Option<i64>,
    /// The types that it may be; any if there are none.
    pub allowed_types: Vec<i32>,
    /// The texts that it may be; any if there are none.
    pub allowed_texts: Vec<String>,
    /// The value if it is not stated.
    pub default: Option<Attr>,
}

impl AttrSpec {
    /// Returns the kind as messages have it: `list(int)`.
    pub fn kind_name(&self) -> String {
        match self.is_list {
            true => format!("list({})", self.kind.name()),
            false => self.kind.name().to_owned(),
        }
    }
}

/// Texts of a definition, in the order in which they were given.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// Texts of attributes.
    pub attrs: Vec<String>,
    /// Texts of inputs.
    pub inputs: Vec<String>,
    /// Texts of outputs.
    pub outputs: Vec<String>,
}

fn wrong(message: String) -> Error {
    Error::invalid_argument(message)
}

impl OpSpec {
    /// Parses the texts of a definition, and checks the whole.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` for a text that is none, a name that is used twice, an attribute that is not there.
    pub fn parse(name: &str, texts: &Texts) -> Result<OpSpec, Error> {
        let mut spec = OpSpec {
            name: name.to_owned(),
            ..OpSpec::default()
        };
        if !is_op_name(name) {
            return Err(wrong(format!(
                "Invalid name: {name} (Did you use CamelCase?)"
            )));
        }
        for text in &texts.attrs {
            let attr = parse_attr(text).map_err(|why| why.of("Attr", text, name))?;
            spec.attrs.push(attr);
        }
        for text in &texts.inputs {
            let arg = spec
                .parse_arg(text)
                .map_err(|why| why.of("Input", text, name))?;
            spec.inputs.push(arg);
        }
        for text in &texts.outputs {
            let arg = spec
                .parse_arg(text)
                .map_err(|why| why.of("Output", text, name))?;
            spec.outputs.push(arg);
        }
        spec.check()?;
        Ok(spec)
    }

    /// Returns inputs, attributes and outputs in short, as people read them: `(x: T, y: T) {T: type} -> (z: T)`.
    pub fn usage(&self) -> String {
        let list = |args: &[ArgSpec]| {
            let args: Vec<String> = args.iter().map(ArgSpec::text).collect();
            args.join(", ")
        };
        let attr = |attr: &AttrSpec| {
            let (name, kind) = (&attr.name, attr.kind_name());
            match &attr.default {
                Some(value) => format!("{name}: {kind} = {value}"),
                None => format!("{name}: {kind}"),
            }
        };
        let attrs: Vec<String> = self.attrs.iter().map(attr).collect();
        let attrs = match attrs.is_empty() {
            true => String::new(),
            false => format!(" {{{}}}", attrs.join(", ")),
        };
        let (inputs, outputs) = (list(&self.inputs), list(&self.outputs));
        format!("({inputs}){attrs} -> ({outputs})")
    }

    /// Returns the definition of an attribute.
    pub fn attr(&self, name: &str) -> Option<&AttrSpec> {
        self.attrs.iter().find(|attr| attr.name == name)
    }

    fn check(&mut self) -> Result<(), Error> {
        let attrs = self.attrs.iter().map(|attr| &attr.name);
        let inputs = self.inputs.iter().map(|input| &input.name);
        let mut seen: Vec<&String> = Vec::new();
        for name in attrs.chain(inputs) {
            if seen.contains(&name) {
                return Err(wrong(format!("Duplicate name: {name}")));
            }
            seen.push(name);
        }
        let counts: Vec<String> = self.args().filter_map(|arg| arg.count.clone()).collect();
        let lists: Vec<String> = self
            .args()
            .filter_map(|arg| match &arg.types {
                ArgTypes::List(name) => Some(name.clone()),
                _ => None,
            })
            .collect();
        for attr in &mut self.attrs {
            let is_count = counts.contains(&attr.name);
            if is_count && (attr.kind, attr.is_list) != (Kind::Int, false) {
                let (name, kind) = (&attr.name, attr.kind_name());
                return Err(wrong(format!(
                    "Attr '{name}' has minimum for unsupported type {kind}"
                )));
            }
            // A number of tensors, or of types, is at least 1 unless the definition says otherwise.
            if is_count || lists.contains(&attr.name) {
                attr.minimum.get_or_insert(1);
            }
        }
        Ok(())
    }

    fn args(&self) -> impl Iterator<Item = &ArgSpec> {
        self.inputs.iter().chain(&self.outputs)
    }

    fn parse_arg(&self, text: &str) -> Result<ArgSpec, Why> {
        let mut rest = Cursor(text);
        let name = rest.arg_name().ok_or(Why::Trouble("'name:'", None))?;
        let is_reference = rest.word("Ref") && rest.sign('(');
        let mut arg = ArgSpec {
            name,
            types: ArgTypes::Fixed(0),
            count: None,
            is_reference,
        };
        let mut types = rest.identifier().ok_or(Why::Trouble("for type", None))?;
        if rest.sign('*') {
            match self.attr(&types) {
                Some(_) => arg.count = Some(types),
                None => return Err(Why::Unknown(types)),
            }
            types = rest.identifier().ok_or(Why::Trouble("for type", None))?;
        }
        arg.types = match (dtype::of_name(&types), self.attr(&types)) {
            (Some(code), _) => ArgTypes::Fixed(code),
            (None, Some(attr)) if attr.kind == Kind::Type && attr.is_list => ArgTypes::List(types),
            (None, Some(attr)) if attr.kind == Kind::Type => ArgTypes::Attr(types),
            (None, Some(attr)) => {
                let kind = attr.kind_name();
                return Err(Why::OtherKind(types, kind));
            }
            (None, None) => return Err(Why::Unknown(types)),
        };
        if is_reference && !rest.sign(')') {
            return Err(Why::Trouble("for closing ')'", None));
        }
        match rest.end() {
            true => Ok(arg),
            false => Err(Why::Extra(rest.0.to_owned())),
        }
    }
}

/// Why a text is none.
enum Why {
    /// Something is missing here, or something else is found.
    Trouble(&'static str, Option<String>),
    /// An attribute that is not there.
    Unknown(String),
    /// An attribute that is no type.
    OtherKind(String, String),
    /// Something follows.
    Extra(String),
    /// A value that can't be read.
    Default(String),
    /// Another reason.
    Other(String),
}

impl Why {
    fn of(self, what: &str, text: &str, op: &str) -> Error {
        let place = format!("from {what}(\"{text}\") for Op {op}");
        wrong(match self {
            Why::Trouble(missing, None) => format!("Trouble parsing {missing} {place}"),
            Why::Trouble(missing, Some(found)) => {
                format!("Trouble parsing {missing} at '{found}' {place}")
            }
            Why::Unknown(name) => format!("Reference to unknown attr '{name}' {place}"),
            Why::OtherKind(name, kind) => {
                format!(
                    "Reference to attr '{name}' with type {kind} that isn't type or list(type) {place}"
                )
            }
            Why::Extra(rest) => format!("Extra '{rest}' unparsed at the end {place}"),
            Why::Default(value) => format!("Could not parse default value '{value}' {place}"),
            Why::Other(message) => message,
        })
    }
}

/// The rest of a text that is parsed.
struct Cursor<'t>(&'t str);

impl<'t> Cursor<'t> {
    fn trim(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// Takes characters as long as they are of a kind.
    fn while_is(&mut self, is: impl Fn(char) -> bool) -> &'t str {
        let end = self.0.find(|c| !is(c)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    fn identifier(&mut self) -> Option<String> {
        self.trim();
        let is_first = |c: char| c.is_ascii_alphabetic();
        if !self.0.starts_with(is_first) {
            return None;
        }
        let taken = self.while_is(|c| c.is_ascii_alphanumeric() || c == '_');
        self.trim();
        Some(taken.to_owned())
    }

    /// Takes `name:`, of an input or output: of lower case.
    fn arg_name(&mut self) -> Option<String> {
        self.trim();
        if !self.0.starts_with(|c: char| c.is_ascii_lowercase()) {
            return None;
        }
        let is_in = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let taken = self.while_is(is_in);
        self.sign(':').then(|| taken.to_owned())
    }

    fn sign(&mut self, sign: char) -> bool {
        self.trim();
        match self.0.strip_prefix(sign) {
            Some(rest) => {
                self.0 = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn word(&mut self, word: &str) -> bool {
        self.trim();
        match self.0.strip_prefix(word) {
            Some(rest) if !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') => {
                self.0 = rest.trim_start();
                true
            }
            _ => false,
        }
    }

    fn end(&mut self) -> bool {
        self.trim();
        self.0.is_empty()
    }
}

fn is_op_name(name: &str) -> bool {
    let is_part = |part: &str, may_hide: bool| {
        let part = match part.strip_prefix('_') {
            Some(rest) if may_hide => rest,
            _ => part,
        };
        part.starts_with(|c: char| c.is_ascii_uppercase() || may_hide && c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let n_parts = name.split('>').count();
    name.split('>').all(|part| is_part(part, n_parts == 1))
}

fn parse_attr(text: &str) -> Result<AttrSpec, Why> {
    let mut rest = Cursor(text);
    let name = rest.identifier().filter(|_| rest.sign(':'));
    let name = name.ok_or(Why::Trouble("'<name>:'", None))?;
    let mut attr = AttrSpec {
        name,
        kind: Kind::String,
        is_list: false,
        minimum: None,
        allowed_types: Vec::new(),
        allowed_texts: Vec::new(),
        default: None,
    };
    attr.is_list = rest.word("list");
    if attr.is_list && !rest.sign('(') {
        return Err(Why::Trouble("'list('", Some(rest.0.to_owned())));
    }
    parse_kind(&mut rest, &mut attr)?;
    if attr.is_list && !rest.sign(')') {
        return Err(Why::Trouble("'list('", Some(rest.0.to_owned())));
    }
    if let Some(after) = rest.0.strip_prefix(">=") {
        rest.0 = after.trim_start();
        let number = rest.while_is(|c| c.is_ascii_digit() || c == '-');
        let minimum = number.parse().ok();
        attr.minimum = Some(minimum.ok_or(Why::Trouble("minimum", Some(number.to_owned())))?);
        if !attr.is_list && attr.kind != Kind::Int {
            let (name, kind) = (&attr.name, attr.kind_name());
            return Err(Why::Other(format!(
                "Attr '{name}' has minimum for unsupported type {kind}"
            )));
        }
    }
    if rest.sign('=') {
        let value = rest.0.trim();
        let parsed = value::parse(value, attr.kind, attr.is_list);
        attr.default = Some(parsed.ok_or_else(|| Why::Default(value.to_owned()))?);
        rest.0 = "";
        if let (Some(least), Some(value)) = (attr.minimum, &attr.default) {
            let name = &attr.name;
            match value {
                Attr::Int(found) if *found < least => {
                    return Err(Why::Other(format!(
                        "Value for attr '{name}' of {found} must be at least minimum {least}"
                    )));
                }
                Attr::List(_, list) if (list.len() as i64) < least => {
                    let found = list.len();
                    return Err(Why::Other(format!(
                        "Length for attr '{name}' of {found} must be at least minimum {least}"
                    )));
                }
                _ => (),
            }
        }
    }
    match rest.end() {
        true => Ok(attr),
        false => Err(Why::Extra(rest.0.to_owned())),
    }
}

/// Returns the types of a family by its name.
fn family(name: &str) -> Option<&'static [i32]> {
    match name {
        "numbertype" | "numerictype" => Some(dtype::NUMBERS),
        "realnumbertype" => Some(dtype::REAL_NUMBERS),
        "quantizedtype" => Some(dtype::QUANTIZED),
        _ => None,
    }
}

fn parse_kind(rest: &mut Cursor<'_>, attr: &mut AttrSpec) -> Result<(), Why> {
    if rest.sign('{') {
        let is_texts = rest.0.starts_with(['"', '\'']);
        attr.kind = if is_texts { Kind::String } else { Kind::Type };
        while !rest.sign('}') {
            let trouble = |rest: &Cursor<'_>| Why::Trouble("type string", Some(rest.0.to_owned()));
            match is_texts {
                true => {
                    let text = value::quoted(&mut rest.0).ok_or_else(|| trouble(rest))?;
                    let text = String::from_utf8_lossy(&text).into_owned();
                    attr.allowed_texts.push(text);
                }
                false => {
                    let name = rest.identifier().ok_or_else(|| trouble(rest))?;
                    let (code, family) = (dtype::of_name(&name), family(&name));
                    let types = family.map(<[i32]>::to_vec).or(code.map(|code| vec![code]));
                    let types = types.ok_or(Why::Trouble("type string", Some(name)))?;
                    attr.allowed_types.extend(types);
                }
            }
            rest.sign(',');
            if rest.0.is_empty() {
                return Err(trouble(rest));
            }
        }
        return Ok(());
    }
    let before = rest.0.to_owned();
    let word = rest.identifier().unwrap_or_default();
    attr.kind = match word.as_str() {
        "string" => Kind::String,
        "int" => Kind::Int,
        "float" => Kind::Float,
        "bool" => Kind::Bool,
        "type" => Kind::Type,
        "shape" => Kind::Shape,
        "tensor" => Kind::Tensor,
        "func" => Kind::Function,
        word if family(word).is_some() => {
            attr.allowed_types = family(word).unwrap_or_default().to_vec();
            Kind::Type
        }
        _ => return Err(Why::Trouble("type string", Some(before))),
    };
    Ok(())
}

#[cfg(test)]
mod tests;
