//! One-line signatures of operations: with names, in the operation's own form, and in the generic form.

use super::{
    AttributeDef, AttributeKind, Execution, OpDef, Results, Traits, ValueDef, ValueKind,
    format::{Item, Word},
};

/// One-line signatures.
impl OpDef {
    /// Returns names and types: `(lhs: i32, rhs: i32) -> (quotient: i32, remainder: i32)`.
    ///
    /// # Examples
    ///
    /// ```
    /// let entry = tfrt_ir::dialect::describe("tfrt.sum").or(tfrt_ir::dialect::describe("tfrt_test.sum"));
    /// assert_eq!(entry.unwrap().signature(), "(first: i32, others: i32...) -> (sum: i32)");
    /// ```
    pub fn signature(&self) -> String {
        let typed = |value: &ValueDef| {
            let optional = if value.optional { "?" } else { "" };
            format!("{}{optional}: {}", value.identifier(), value.kind.name())
        };
        let mut operands: Vec<String> = self.operands.iter().map(typed).collect();
        operands.extend(self.rest.iter().map(|rest| format!("{}...", typed(rest))));
        let mut text = format!("({})", operands.join(", "));

        let mut attributes: Vec<String> = self.attributes.iter().map(attribute_signature).collect();
        if self.more_attributes.is_some() {
            attributes.push("...".to_owned());
        }
        if !attributes.is_empty() {
            text += &format!(" {{{}}}", attributes.join(", "));
        }
        if self.regions > 0 {
            let named = self
                .region_names
                .iter()
                .map(|name| format!("{name}: {{...}}"));
            let n_unnamed = self.regions - self.region_names.len();
            let unnamed = (0..n_unnamed).map(|_| "{...}".to_owned());
            let all: Vec<String> = named.chain(unnamed).collect();
            text += &format!(" ({})", all.join(", "));
        }
        let mut results: Vec<String> = self.results.declared().iter().map(typed).collect();
        if let Results::AtLeast(_, rest) | Results::LikeRest(rest) = &self.results {
            results.push(format!("{}...", typed(rest)));
        }
        text + &format!(" -> ({})", results.join(", "))
    }

    /// Returns the operation's own form, with the names of operands for operands, and `$name` for attributes; `None` if
    /// only the generic form can write it.
    ///
    /// # Examples
    ///
    /// ```
    /// let entry = tfrt_ir::dialect::describe("tfrt.constant.i32").unwrap();
    /// assert_eq!(entry.syntax().unwrap(), "%constant = tfrt.constant.i32 $value attr-dict");
    /// ```
    pub fn syntax(&self) -> Option<String> {
        let format = self.format.as_ref()?;
        let mut text = self.results_prefix("...");
        let mut operands = self.operands.iter();
        let mut body = String::new();
        self.write_items(&format.items, &mut operands, &mut body);
        match self.name {
            "builtin.module" | "func.func" => {}
            name => {
                text += name;
                let is_apart = |first: char| !first.is_whitespace() && first != '(' && first != '[';
                if body.starts_with(is_apart) {
                    text.push(' ');
                }
            }
        }
        Some(text + &body)
    }

    fn write_items<'o>(
        &'o self,
        items: &[Item],
        operands: &mut impl Iterator<Item = &'o ValueDef>,
        text: &mut String,
    ) {
        for item in items {
            *text += item.blanks;
            match &item.word {
                Word::Operand => {
                    let name = operands.next().map(ValueDef::identifier);
                    *text += &format!("%{}", name.unwrap_or_default());
                }
                Word::Operands => {
                    let mut all: Vec<String> = operands
                        .by_ref()
                        .map(|operand| format!("%{}", operand.identifier()))
                        .collect();
                    let rest = self.rest.iter();
                    all.extend(rest.map(|rest| format!("%{}...", rest.identifier())));
                    *text += &all.join(", ");
                }
                Word::TypedOperands => {
                    let rest = self.rest.iter();
                    let all = rest.map(|rest| format!("%{} : type...", rest.identifier()));
                    *text += &all.collect::<Vec<_>>().join(", ");
                }
                Word::Attribute(name) => *text += &format!("${name}"),
                Word::AttributeDictionary => *text += "attr-dict",
                Word::AttributesKeyword => *text += "[attributes attr-dict]",
                Word::Settings => *text += &self.settings(),
                Word::TypeAttribute(name) => *text += &format!("${name}"),
                Word::OperandTypes | Word::OpenTypes => *text += "types",
                Word::ColonOperandTypes => *text += ": types",
                Word::FunctionalType => *text += "(types) -> types",
                Word::Types | Word::TypesOrResults => *text += "(types) -> (types)",
                Word::Region => *text += "{...}",
                Word::Else => *text += " [else {...}]",
                Word::Function => {
                    *text += "func.func [private] @name(%argument: type...) -> (types) [attributes \
                              attr-dict] {...}";
                }
                Word::Module => *text += "module [@name] [attributes attr-dict] {...}",
                Word::Pairs(name) => *text += &format!("[{{${name}...}}]"),
                Word::ResultCount => *text += "[: count]",
                Word::Group(items) => {
                    text.push('[');
                    self.write_items(items, operands, text);
                    text.push(']');
                }
                Word::Literal(literal) => *text += literal,
            }
        }
    }

    /// Returns the attributes that are written as `key = number`.
    fn settings(&self) -> String {
        let placed = &self
            .format
            .as_ref()
            .map_or(&[][..], |format| &format.placed);
        let settings = self
            .attributes
            .iter()
            .filter(|attribute| !placed.contains(&attribute.name))
            .map(|attribute| format!("{0} = ${0}", attribute.name));
        settings.collect::<Vec<_>>().join(", ")
    }

    /// Returns an example of the generic form; `i32` stands for any type, and one operand for any number of them.
    ///
    /// # Examples
    ///
    /// ```
    /// let entry = tfrt_ir::dialect::describe("tfrt.minus.i32").unwrap();
    /// assert_eq!(
    ///     entry.generic_form(),
    ///     "%difference = \"tfrt.minus.i32\"(%lhs, %rhs) : (i32, i32) -> i32"
    /// );
    /// ```
    pub fn generic_form(&self) -> String {
        if let Some(text) = &self.generic {
            return text.clone();
        }
        let declared = self.operands.iter().filter(|operand| !operand.optional);
        let operands: Vec<&ValueDef> = declared.chain(&self.rest).collect();
        let names: Vec<String> = operands
            .iter()
            .map(|operand| format!("%{}", operand.identifier()))
            .collect();
        let types: Vec<String> = operands
            .iter()
            .map(|operand| self.some_type(operand.kind))
            .collect();
        let mut attributes: Vec<String> = self
            .attributes
            .iter()
            .filter(|attribute| !attribute.optional)
            .map(some_attribute)
            .collect();
        if self.more_attributes.is_some() {
            attributes.push("a = 1 : i32".to_owned());
        }
        attributes.sort();
        let attributes = match attributes.as_slice() {
            [] => String::new(),
            all => format!(" {{{}}}", all.join(", ")),
        };
        let declared = self.results.declared().iter();
        let declared = declared.filter(|result| !result.optional);
        let mut results: Vec<String> = declared.map(|result| self.some_type(result.kind)).collect();
        if let Results::AtLeast(_, rest) | Results::LikeRest(rest) = &self.results {
            results.push(self.some_type(rest.kind));
        }
        let results = match results.as_slice() {
            [one] => one.clone(),
            many => format!("({})", many.join(", ")),
        };
        // Entries that have regions and a form of their own write it out.
        let regions = match (self.regions, self.execution) {
            (n @ 1.., Execution::Compiled) => format!(" ({})", vec!["{...}"; n].join(", ")),
            _ => String::new(),
        };
        format!(
            "{}\"{}\"({}){regions}{attributes} : ({}) -> {results}",
            self.results_prefix(""),
            self.name,
            names.join(", "),
            types.join(", "),
        )
    }

    /// Returns a type that a value of the kind may have. What models compute with are tensors, here of any shape.
    fn some_type(&self, kind: ValueKind) -> String {
        match (kind, self.execution) {
            (ValueKind::Described(text), _) => {
                let first = text.strip_prefix("tensor of ").unwrap_or("T");
                let first = first.split(' ').next().unwrap_or("T");
                // A letter is a variable: any of several types.
                let is_variable = first.starts_with(|c: char| c.is_ascii_uppercase());
                let element = if is_variable { "f32" } else { first };
                format!("tensor<*x{element}>")
            }
            (ValueKind::Any, Execution::Compiled) => "tensor<*xf32>".to_owned(),
            _ => kind
                .ty()
                .map_or_else(|| "i32".to_owned(), |ty| ty.to_string()),
        }
    }

    /// Returns `%a, %b = `, or nothing if there are no results.
    fn results_prefix(&self, more: &str) -> String {
        let declared = self.results.declared().iter();
        let declared = declared.filter(|result| !result.optional);
        let mut names: Vec<String> = declared
            .map(|result| format!("%{}", result.identifier()))
            .collect();
        if let Results::AtLeast(_, rest) | Results::LikeRest(rest) = &self.results {
            names.push(format!("%{}{more}", rest.identifier()));
        }
        match names.as_slice() {
            [] => String::new(),
            names => format!("{} = ", names.join(", ")),
        }
    }

    /// Returns whether the kernel takes a chain more than the entry declares, which only orders.
    pub fn takes_trailing_chain(&self) -> bool {
        let has_kernel = !matches!(
            self.execution,
            Execution::Structure | Execution::Elsewhere | Execution::Compiled
        );
        let is_open = self.rest.is_some() || self.chain_operand().is_some();
        has_kernel && self.is(Traits::KERNEL_ONLY) && !is_open
    }
}

impl ValueKind {
    /// Returns the type as text, or `any`.
    pub fn name(self) -> String {
        match self {
            ValueKind::Described(words) => words.to_owned(),
            kind => kind
                .ty()
                .map_or_else(|| "any".to_owned(), |ty| ty.to_string()),
        }
    }
}

impl AttributeKind {
    /// Returns the kind in words.
    pub fn name(self) -> String {
        match self {
            AttributeKind::Any => "any".to_owned(),
            AttributeKind::Typed(kind) | AttributeKind::Number(kind) => kind.name(),
            AttributeKind::Array(kind) => format!("array of {}", kind.name()),
            AttributeKind::String => "string".to_owned(),
            AttributeKind::Strings => "array of strings".to_owned(),
            AttributeKind::Pairs => "array of pairs".to_owned(),
            AttributeKind::FlatSymbol => "function".to_owned(),
            AttributeKind::FlatSymbols => "array of functions".to_owned(),
            AttributeKind::FunctionType => "function type".to_owned(),
            AttributeKind::Dictionaries => "array of dictionaries".to_owned(),
            AttributeKind::Integer => "integer".to_owned(),
            AttributeKind::Integers => "array of integers".to_owned(),
            AttributeKind::Float => "float".to_owned(),
            AttributeKind::Floats => "array of floats".to_owned(),
            AttributeKind::ElementType => "type".to_owned(),
            AttributeKind::Elements => "tensor".to_owned(),
            AttributeKind::Keyword(keywords) => keywords.type_name().to_owned(),
        }
    }
}

fn attribute_signature(attribute: &AttributeDef) -> String {
    let optional = if attribute.optional { "?" } else { "" };
    let (name, kind, default) = (attribute.name, attribute.kind.name(), attribute.default);
    match default {
        "" => format!("{name}{optional}: {kind}"),
        default => format!("{name}: {kind} = {default}"),
    }
}

fn some_attribute(attribute: &AttributeDef) -> String {
    let name = attribute.name;
    let value = match attribute.kind {
        AttributeKind::Any => "1 : i32".to_owned(),
        AttributeKind::Typed(kind) | AttributeKind::Number(kind) => some_number(kind),
        AttributeKind::Array(kind) => format!("[{0}, {0}]", some_number(kind)),
        AttributeKind::String => {
            let first = attribute.choices.first().copied();
            format!("\"{}\"", first.unwrap_or("text"))
        }
        AttributeKind::Strings => "[\"text\"]".to_owned(),
        AttributeKind::Pairs => "[[\"key\", 1 : i32]]".to_owned(),
        AttributeKind::FlatSymbol => format!("@{name}"),
        AttributeKind::FlatSymbols => "[@first, @second]".to_owned(),
        AttributeKind::FunctionType => "() -> ()".to_owned(),
        AttributeKind::Dictionaries => "[{}]".to_owned(),
        AttributeKind::Integer => "1".to_owned(),
        AttributeKind::Integers => "[1, 2]".to_owned(),
        AttributeKind::Float => "1.0 : f32".to_owned(),
        AttributeKind::Floats => "[1.0 : f32]".to_owned(),
        AttributeKind::ElementType => "f32".to_owned(),
        AttributeKind::Elements => "dense<0> : tensor<1xi64>".to_owned(),
        AttributeKind::Keyword(keywords) => {
            let value = keywords.words.first().map_or(0, |(_, value)| *value);
            format!(
                "{value} : {}",
                if keywords.is_wide { "ui64" } else { "si32" }
            )
        }
    };
    format!("{name} = {value}")
}

fn some_number(kind: ValueKind) -> String {
    match kind {
        ValueKind::I1 => "true".to_owned(),
        ValueKind::BF16 | ValueKind::F16 | ValueKind::F32 | ValueKind::F64 => {
            format!("1.0 : {}", kind.name())
        }
        kind => format!("1 : {}", kind.name()),
    }
}
