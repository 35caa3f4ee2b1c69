//! The printer: modules as text, pretty where the dialect tables know how, else generic.
//!
//! What is printed can be parsed, and gives the same module again. So an
//! operation whose own form could not say all of it is printed in generic
//! form. Values are numbered as MLIR numbers them.

mod attributes;
mod names;

use std::fmt::{self, Write};

use crate::{
    attributes::Attribute,
    dialect::format,
    location::Location,
    module::{BlockId, Module, OpId, RegionId, ValueId},
    name::Name,
    types::{FunctionType, Type},
};

pub(crate) use attributes::{WithType, write_attribute};
use names::Names;

/// The options of printing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrintOptions {
    /// Whether every operation is printed in generic form.
    pub generic: bool,
    /// Whether locations are printed.
    pub locations: bool,
}

/// Prints a module, with a line feed at the end.
pub fn print(module: &Module, options: PrintOptions) -> String {
    let mut printer = Printer::new(module, options, module.top());
    printer.operation(module.top());
    printer.out.push('\n');
    printer.out
}

/// Prints one operation without its regions' contents, on one line.
pub(crate) fn print_op_line(module: &Module, op: OpId) -> String {
    let root = module.parent_op(op).unwrap_or(op);
    let mut printer = Printer::new(module, PrintOptions::default(), root);
    if !module.op(op).regions().is_empty() {
        return module.op(op).name().to_string();
    }
    printer.operation(op);
    printer.out
}

/// Prints an operation with everything in it.
///
/// # Examples
///
/// ```
/// use tfrt_ir::{parse, print_op, PrintOptions, Source};
///
/// let source = Source::new("m.mlir", "module @k attributes {tfrt.compiled} {}");
/// let module = parse(&source).unwrap();
/// let text = print_op(&module, module.top(), PrintOptions { generic: true, locations: false });
/// assert!(text.starts_with("\"builtin.module\"() ({"));
/// ```
pub fn print_op(module: &Module, op: OpId, options: PrintOptions) -> String {
    let mut printer = Printer::new(module, options, op);
    printer.operation(op);
    printer.out
}

/// A printer of a module; the methods are named after what they write.
pub(crate) struct Printer<'m> {
    pub(crate) module: &'m Module,
    pub(crate) options: PrintOptions,
    pub(crate) out: String,
    names: Names,
    indent: usize,
    /// The dialect whose prefix is left out, that of the function around.
    default_dialect: &'static str,
}

impl<'m> Printer<'m> {
    fn new(module: &'m Module, options: PrintOptions, root: OpId) -> Printer<'m> {
        let names = Names::new(module, root);
        Printer {
            module,
            options,
            out: String::new(),
            names,
            indent: 0,
            default_dialect: "",
        }
    }

    fn operation(&mut self, op: OpId) {
        let data = self.module.op(op);
        self.results(data.results());
        let format = data
            .definition()
            .and_then(|definition| definition.assembly());
        match format.filter(|_| !self.options.generic) {
            Some(format) if format::can_print(self.module, op, format) => {
                self.custom_name(op);
                format::print(self, op, format);
            }
            _ => self.generic(op),
        }
        if self.options.locations {
            self.trailing_location(&data.location().clone());
        }
    }

    fn custom_name(&mut self, op: OpId) {
        let name = self.module.op(op).name();
        let short = match name.split_once('.') {
            Some(("builtin", rest)) => rest,
            Some((dialect, rest)) if dialect == self.default_dialect && !rest.contains('.') => rest,
            _ => name,
        };
        self.out.push_str(short);
    }

    fn generic(&mut self, op: OpId) {
        let data = self.module.op(op);
        self.quoted(data.name().as_bytes());
        self.out.push('(');
        self.values(data.operands());
        self.out.push(')');
        if !data.successors().is_empty() {
            self.out.push('[');
            for (index, &block) in data.successors().iter().enumerate() {
                self.separator(index);
                self.block_name(block);
            }
            self.out.push(']');
        }
        if !data.regions().is_empty() {
            self.out.push_str(" (");
            for (index, &region) in data.regions().iter().enumerate() {
                self.separator(index);
                self.region(op, region, EntryArguments::Print);
            }
            self.out.push(')');
        }
        self.attribute_dictionary(op, &[]);
        self.out.push_str(" : ");
        let ty = self.function_type(data.operands(), data.results());
        self.show(&ty);
    }

    /// Writes ` {name = value, ...}` unless nothing remains without `elided`.
    pub(crate) fn attribute_dictionary(&mut self, op: OpId, elided: &[&str]) {
        let entries = self.module.op(op).attributes().iter();
        let mut shown = entries
            .filter(|(name, _)| !elided.contains(&name.as_str()))
            .peekable();
        if shown.peek().is_none() {
            return;
        }
        self.out.push_str(" {");
        for (index, entry) in shown.enumerate() {
            self.separator(index);
            self.entry(entry);
        }
        self.out.push('}');
    }

    /// Writes an entry of a dictionary.
    pub(crate) fn entry(&mut self, entry: &(Name, Attribute)) {
        self.show(&attributes::Entry(entry));
    }

    /// Writes a region in braces.
    pub(crate) fn region(&mut self, op: OpId, region: RegionId, arguments: EntryArguments) {
        let outer = self.default_dialect;
        self.default_dialect = match self.module.op(op).name().as_str() {
            "func.func" if !self.options.generic => "func",
            _ => "",
        };
        self.out.push_str("{\n");
        for (index, &block) in self.module.region(region).blocks().iter().enumerate() {
            let data = self.module.block(block);
            let by_itself = arguments == EntryArguments::Print
                && (!data.arguments().is_empty() || data.operations().is_empty());
            let is_named = index > 0 || self.names.is_target(block);
            self.block(block, by_itself || is_named, index == 0);
        }
        self.line_start();
        self.out.push('}');
        self.default_dialect = outer;
    }

    fn block(&mut self, block: BlockId, label: bool, entry: bool) {
        if label {
            self.line_start();
            self.block_name(block);
            if !self.module.block(block).arguments().is_empty() {
                self.out.push('(');
                let arguments = self.module.block(block).arguments();
                for (index, &argument) in arguments.iter().enumerate() {
                    self.separator(index);
                    self.typed_value(argument);
                    if self.options.locations {
                        let location = self.module.block(block).argument_location(index);
                        self.trailing_location(&location);
                    }
                }
                self.out.push(')');
            }
            self.out.push(':');
            self.predecessors(block, entry);
            self.out.push('\n');
        }
        self.indent += 1;
        for &op in self.module.block(block).operations() {
            self.line_start();
            self.operation(op);
            self.out.push('\n');
        }
        self.indent -= 1;
    }

    fn predecessors(&mut self, block: BlockId, entry: bool) {
        let predecessors = self.names.predecessors(block).to_vec();
        match predecessors.as_slice() {
            [] if entry => {}
            [] => self.out.push_str("  // no predecessors"),
            [single] => {
                self.out.push_str("  // pred: ");
                self.block_name(*single);
            }
            several => {
                self.show(&format_args!("  // {} preds: ", several.len()));
                for (index, &predecessor) in several.iter().enumerate() {
                    self.separator(index);
                    self.block_name(predecessor);
                }
            }
        }
    }

    fn line_start(&mut self) {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    fn block_name(&mut self, block: BlockId) {
        let number = self.names.block(block);
        self.show(&format_args!("^bb{number}"));
    }

    /// Writes `%1 = `, `%1:2 = ` or `%1, %2:2 = `.
    fn results(&mut self, results: &[ValueId]) {
        let mut rest = results;
        while let [first, ..] = rest {
            let n_together = self.names.pack_len(rest);
            self.separator(results.len() - rest.len());
            self.value_pack(*first, n_together);
            rest = &rest[n_together..];
        }
        if !results.is_empty() {
            self.out.push_str(" = ");
        }
    }

    /// Writes `%1`, or `%1:2` for results that have one name together.
    fn value_pack(&mut self, first: ValueId, n_results: usize) {
        let name = self.names.pack(first);
        match n_results {
            1 => self.show(&format_args!("%{name}")),
            n => self.show(&format_args!("%{name}:{n}")),
        }
    }

    /// Writes `%1` or `%1#0`.
    pub(crate) fn value(&mut self, value: ValueId) {
        let text = self.names.value(value);
        self.out.push('%');
        // Appending in place: `names` and `out` are different fields.
        write!(self.out, "{text}").expect("strings take any text");
    }

    pub(crate) fn values(&mut self, values: &[ValueId]) {
        for (index, &value) in values.iter().enumerate() {
            self.separator(index);
            self.value(value);
        }
    }

    /// Writes `%1: i32`.
    pub(crate) fn typed_value(&mut self, value: ValueId) {
        self.value(value);
        self.out.push_str(": ");
        self.show(self.module.value_type(value));
    }

    /// Makes one value print under the name of another.
    pub(crate) fn shadow(&mut self, argument: ValueId, operand: ValueId) {
        self.names.shadow(argument, operand);
    }

    pub(crate) fn types(&mut self, values: &[ValueId]) {
        for (index, &value) in values.iter().enumerate() {
            self.separator(index);
            self.show(self.module.value_type(value));
        }
    }

    pub(crate) fn function_type(&self, operands: &[ValueId], results: &[ValueId]) -> FunctionType {
        let types = |values: &[ValueId]| -> Vec<Type> {
            values
                .iter()
                .map(|&value| self.module.value_type(value).clone())
                .collect()
        };
        FunctionType {
            inputs: types(operands),
            results: types(results),
        }
    }

    pub(crate) fn separator(&mut self, index: usize) {
        if index > 0 {
            self.out.push_str(", ");
        }
    }

    pub(crate) fn trailing_location(&mut self, location: &Location) {
        self.show(&format_args!(" loc({location})"));
    }

    pub(crate) fn symbol(&mut self, name: &str) {
        write_symbol(&mut self.out, name).expect("strings take any text");
    }

    pub(crate) fn quoted(&mut self, bytes: &[u8]) {
        write_quoted(&mut self.out, bytes).expect("strings take any text");
    }

    pub(crate) fn attribute(&mut self, attribute: &Attribute, with_type: WithType) {
        write_attribute(&mut self.out, attribute, with_type).expect("strings take any text");
    }

    pub(crate) fn show(&mut self, text: &dyn fmt::Display) {
        write!(self.out, "{text}").expect("strings take any text");
    }
}

/// Whether a region shows the arguments of its first block, or the operation
/// has shown them already.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryArguments {
    Print,
    Elide,
}

/// Writes displayable things with commas between.
pub(crate) fn write_list(out: &mut dyn Write, list: &[impl fmt::Display]) -> fmt::Result {
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write!(out, "{item}")?;
    }
    Ok(())
}

/// Writes bytes in quotes, those that are not printable as `\XX`.
pub(crate) fn write_quoted(out: &mut dyn Write, bytes: &[u8]) -> fmt::Result {
    out.write_char('"')?;
    for &byte in bytes {
        match byte {
            b'\\' => out.write_str("\\\\")?,
            b'"' => out.write_str("\\22")?,
            b' '..=b'~' => out.write_char(char::from(byte))?,
            _ => write!(out, "\\{byte:02X}")?,
        }
    }
    out.write_char('"')
}

/// Writes `@name`, or `@"a name"` if it is not an identifier.
pub(crate) fn write_symbol(out: &mut dyn Write, name: &str) -> fmt::Result {
    out.write_char('@')?;
    if is_identifier(name) {
        out.write_str(name)
    } else {
        write_quoted(out, name.as_bytes())
    }
}

/// Writes the name of an attribute, in quotes if it is not an identifier.
pub(crate) fn write_attribute_name(out: &mut dyn Write, name: &Name) -> fmt::Result {
    if is_identifier(name) {
        out.write_str(name)
    } else {
        write_quoted(out, name.as_bytes())
    }
}

/// Returns whether text is a bare identifier.
fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.'))
}
