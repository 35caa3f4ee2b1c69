//! Generated programs: a tree that can be taken apart and put together again, and its text.
//!
//! The generator builds it, shrinking cuts it down. It knows of operations no
//! more than how they are written.

use std::fmt::{self, Write};

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is named after its MLIR type")]
pub enum Ty {
    Chain,
    I1,
    I32,
    I64,
    F32,
    F64,
    String,
    Atomic,
    Resource,
}

/// The number of a value of one program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Var(u32);

/// A whole program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The text between the braces of the module's attributes.
    pub attributes: String,
    /// The functions, in the order of the text.
    pub functions: Vec<Function>,
    types: Vec<Ty>,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name, without `@`.
    pub name: String,
    /// The text between the braces of the function's attributes.
    pub attributes: String,
    /// The body; of a native function only the types count.
    pub body: Body,
    /// Whether the function is native: it has no body in the text.
    pub native: bool,
}

/// The body of a function or a region.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// The arguments.
    pub parameters: Vec<Var>,
    /// The operations.
    pub ops: Vec<Op>,
    /// The returned values.
    pub results: Vec<Var>,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Op {
    /// The name.
    pub name: String,
    /// The textual form.
    pub form: Form,
    /// The operands.
    pub operands: Vec<Var>,
    /// The results.
    pub results: Vec<Var>,
    /// The text between the braces of the generic form.
    pub attributes: String,
    /// The regions.
    pub bodies: Vec<Body>,
}

/// The textual form of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// `"name"(%a) {...} : (type) -> type`.
    Generic,
    /// `name TEXT`: the text says it all.
    Constant(String),
    /// `name %a, %b`.
    Operands,
    /// `name %a, %b : types`.
    TypedOperands,
    /// `name BEFORE(%a, %b)AFTER : (types) -> (types)`, with the first operand
    /// before BEFORE if `first` is true.
    Call {
        /// Whether the first operand stands alone.
        first: bool,
        /// The text before the parenthesis.
        before: String,
        /// The text after the parenthesis.
        after: String,
    },
    /// `tfrt.if`, `tfrt_test.do.async`: operands, function type, regions.
    Region,
    /// `tfrt.repeat.i32`: operands, types of all but the first, a region.
    Repeat,
    /// `tfrt.parallel_for.i32`, or `tfrt.parallel_call.i32` of a function.
    Range(Option<String>),
}

impl Ty {
    /// Returns MLIR's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Ty::Chain => "!tfrt.chain",
            Ty::I1 => "i1",
            Ty::I32 => "i32",
            Ty::I64 => "i64",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
            Ty::String => "!tfrt.string",
            Ty::Atomic => "!test.atomic.i32",
            Ty::Resource => "!tfrt.test.resource",
        }
    }
}

impl Program {
    /// Makes a value.
    pub fn var(&mut self, ty: Ty) -> Var {
        let var = Var(u32::try_from(self.types.len()).expect("programs are small"));
        self.types.push(ty);
        var
    }

    /// Makes several values.
    pub fn vars(&mut self, types: &[Ty]) -> Vec<Var> {
        types.iter().map(|&ty| self.var(ty)).collect()
    }

    /// Returns a value's type.
    pub fn ty(&self, var: Var) -> Ty {
        self.types[var.0 as usize]
    }

    fn types<'p>(&'p self, vars: &'p [Var]) -> impl fmt::Display + use<'p> {
        fmt::from_fn(move |f| comma_separated(f, vars, |&var| self.ty(var).name()))
    }

    fn result_types<'p>(&'p self, vars: &'p [Var]) -> impl fmt::Display + use<'p> {
        fmt::from_fn(move |f| match vars {
            [var] => f.write_str(self.ty(*var).name()),
            _ => write!(f, "({})", self.types(vars)),
        })
    }
}

/// Writes `a, b, c`.
fn comma_separated<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    vars: &[Var],
    text: impl Fn(&Var) -> T,
) -> fmt::Result {
    for (index, var) in vars.iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        write!(f, "{comma}{}", text(var))?;
    }
    Ok(())
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}", self.0)
    }
}

impl Body {
    /// Visits this body and all within it.
    pub fn for_each(&self, visit: &mut dyn FnMut(&Body)) {
        visit(self);
        for op in &self.ops {
            op.bodies.iter().for_each(|body| body.for_each(visit));
        }
    }

    /// Visits this body and all within it, those within first.
    pub fn for_each_mut(&mut self, visit: &mut dyn FnMut(&mut Body)) {
        for op in &mut self.ops {
            op.bodies
                .iter_mut()
                .for_each(|body| body.for_each_mut(visit));
        }
        visit(self);
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text {
            program: self,
            names: HashMap::new(),
            out: String::new(),
            depth: 0,
        };
        text.program();
        f.write_str(&text.out)
    }
}

/// A writer of a program's text.
struct Text<'p> {
    program: &'p Program,
    /// The names that the parameters of regions have in the text.
    names: HashMap<Var, Var>,
    out: String,
    depth: usize,
}

impl Text<'_> {
    fn program(&mut self) {
        let in_module = !self.program.attributes.is_empty();
        if in_module {
            let attributes = &self.program.attributes;
            self.line(format_args!("module attributes {{{attributes}}} {{"));
            self.depth += 1;
        }
        for function in &self.program.functions {
            self.function(function);
        }
        if in_module {
            self.depth -= 1;
            self.line(format_args!("}}"));
        }
    }

    fn function(&mut self, function: &Function) {
        let body = &function.body;
        let results = self.program.result_types(&body.results);
        let attributes = match function.attributes.as_str() {
            "" => String::new(),
            attributes => format!(" attributes {{{attributes}}}"),
        };
        let arrow = if body.results.is_empty() {
            String::new()
        } else {
            format!(" -> {results}")
        };
        let name = &function.name;
        if function.native {
            let types = self.program.types(&body.parameters);
            self.line(format_args!(
                "func.func private @{name}({types}){arrow}{attributes}"
            ));
            return;
        }
        let parameters = parameters(self.program, &body.parameters);
        self.line(format_args!(
            "func.func @{name}({parameters}){arrow}{attributes} {{"
        ));
        self.contents(body);
        self.line(format_args!("}}"));
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        (0..self.depth).for_each(|_| self.out.push_str("  "));
        self.out.write_fmt(line).expect("a string takes all");
        self.out.push('\n');
    }

    fn name(&self, var: Var) -> Var {
        self.names.get(&var).copied().unwrap_or(var)
    }

    fn list(&self, vars: &[Var]) -> String {
        fmt::from_fn(|f| comma_separated(f, vars, |&var| self.name(var))).to_string()
    }

    fn contents(&mut self, body: &Body) {
        self.depth += 1;
        for op in &body.ops {
            self.op(op);
        }
        let results = match body.results.as_slice() {
            [] => String::new(),
            vars => format!(" {} : {}", self.list(vars), self.program.types(vars)),
        };
        self.line(format_args!("tfrt.return{results}"));
        self.depth -= 1;
    }

    fn op(&mut self, op: &Op) {
        let results = match op.results.as_slice() {
            [] => String::new(),
            vars => format!("{} = ", self.list(vars)),
        };
        let Op { name, operands, .. } = op;
        let names = self.list(operands);
        let types = self.program.types(operands);
        match &op.form {
            Form::Constant(text) => self.line(format_args!("{results}{name} {text}")),
            Form::Operands => self.line(format_args!("{results}{name} {names}")),
            Form::TypedOperands => self.line(format_args!("{results}{name} {names} : {types}")),
            Form::Call {
                first,
                before,
                after,
            } => {
                let (alone, rest) = operands.split_at(usize::from(*first));
                let alone = alone
                    .iter()
                    .map(|&var| format!("{} ", self.name(var)))
                    .collect::<String>();
                let (types, names) = (self.program.types(rest), self.list(rest));
                let made = self.program.types(&op.results);
                self.line(format_args!(
                    "{results}{name} {alone}{before}({names}){after} : ({types}) -> ({made})"
                ));
            }
            Form::Region if self.shadows(op, 0) => {
                let shadowed = usize::from(op.bodies.len() == 2);
                let types = self.program.types(&operands[shadowed..]);
                let made = self.program.types(&op.results);
                let space = if operands.is_empty() { "" } else { " " };
                self.pretty_regions(
                    format_args!("{results}{name} {names}{space}: ({types}) -> ({made})"),
                    op,
                    &operands[shadowed..],
                );
            }
            Form::Repeat if self.shadows(op, 1) => {
                let types = match &operands[1..] {
                    [] => String::new(),
                    rest => format!(" : {}", self.program.types(rest)),
                };
                self.pretty_regions(
                    format_args!("{results}{name} {names}{types}"),
                    op,
                    &operands[1..],
                );
            }
            Form::Range(callee) if callee.is_some() || self.shadows(op, 3) => {
                self.range(&results, op, callee.as_deref());
            }
            _ => self.generic(&results, op),
        }
    }

    /// Returns whether the operands that a region's arguments are named after have different names.
    fn shadows(&self, op: &Op, n_alone: usize) -> bool {
        let n_alone = if op.bodies.len() == 2 { 1 } else { n_alone };
        let named = op.operands.iter().skip(n_alone);
        // Of a range, start and end are seen inside, the size of blocks is not.
        let bounds = op.operands.iter().take(if n_alone == 3 { 2 } else { 0 });
        let mut seen = HashSet::new();
        named.chain(bounds).all(|&var| seen.insert(self.name(var)))
    }

    fn pretty_regions(&mut self, head: fmt::Arguments<'_>, op: &Op, named: &[Var]) {
        self.line(format_args!("{head} {{"));
        for (index, body) in op.bodies.iter().enumerate() {
            if index > 0 {
                self.line(format_args!("}} else {{"));
            }
            for (&parameter, &operand) in body.parameters.iter().zip(named) {
                let name = self.name(operand);
                self.names.insert(parameter, name);
            }
            self.contents(body);
        }
        self.line(format_args!("}}"));
    }

    fn range(&mut self, results: &str, op: &Op, callee: Option<&str>) {
        let [start, end, size, extra @ ..] = op.operands.as_slice() else {
            return self.generic(results, op);
        };
        let head = format!(
            "{results}{} {} to {} fixed {}",
            op.name,
            self.name(*start),
            self.name(*end),
            self.name(*size)
        );
        let (names, types) = (self.list(extra), self.program.types(extra));
        let typed = if extra.is_empty() {
            String::new()
        } else {
            format!(" : {types}")
        };
        if let Some(callee) = callee {
            return self.line(format_args!("{head} @{callee}({names}){typed}"));
        }
        let comma = if extra.is_empty() { "" } else { ", " };
        let mut named = vec![*start, *end];
        named.extend(extra);
        self.pretty_regions(format_args!("{head}{comma}{names}{typed}"), op, &named);
    }

    fn generic(&mut self, results: &str, op: &Op) {
        let names = self.list(&op.operands);
        let types = self.program.types(&op.operands);
        let made = self.program.result_types(&op.results);
        let attributes = match op.attributes.as_str() {
            "" => String::new(),
            attributes => format!(" {{{attributes}}}"),
        };
        if op.bodies.is_empty() {
            let name = &op.name;
            return self.line(format_args!(
                "{results}\"{name}\"({names}){attributes} : ({types}) -> {made}"
            ));
        }
        self.line(format_args!("{results}\"{}\"({names}) ({{", op.name));
        for (index, body) in op.bodies.iter().enumerate() {
            if index > 0 {
                self.line(format_args!("}}, {{"));
            }
            // Operations are isolated from above, so the names may be any.
            let parameters = parameters(self.program, &body.parameters);
            self.line(format_args!("^bb0({parameters}):"));
            self.contents(body);
        }
        self.line(format_args!("}}){attributes} : ({types}) -> {made}"));
    }
}

/// Writes parameters: `%0: i32, %1: i1`.
fn parameters<'p>(program: &'p Program, vars: &'p [Var]) -> impl fmt::Display + use<'p> {
    let parameter =
        move |&var: &Var| fmt::from_fn(move |f| write!(f, "{var}: {}", program.ty(var).name()));
    fmt::from_fn(move |f| comma_separated(f, vars, parameter))
}
