//! Checks of single operations beyond what their entries say, in the words of
//! the original.

pub(super) mod core_runtime;

use super::symbols;
use crate::{
    attributes::Attribute,
    codes,
    diagnostic::Diagnostics,
    module::{Module, OpId, RegionId, ValueId},
    name::Name,
    op_spans, similar,
    types::{FunctionType, Type},
    verifier::VerifyContext,
};

/// A function that an operation calls.
struct Callee {
    op: OpId,
    name: Name,
    ty: FunctionType,
}

/// Returns types with commas between.
fn listed(types: &[Type]) -> String {
    let names: Vec<String> = types.iter().map(Type::to_string).collect();
    names.join(", ")
}

/// A check of one operation, which gathers its errors.
struct Check<'c> {
    module: &'c Module,
    context: &'c VerifyContext<'c>,
    op: OpId,
    diagnostics: &'c mut Diagnostics,
}

impl<'c> Check<'c> {
    fn new(
        context: &'c VerifyContext<'_>,
        op: OpId,
        diagnostics: &'c mut Diagnostics,
    ) -> Check<'c> {
        Check {
            module: context.module,
            context,
            op,
            diagnostics,
        }
    }

    fn fail(&mut self, code: &'static str, message: &str) {
        self.diagnostics
            .push(self.module.op_error(code, self.op, message));
    }

    /// Reports an error with a note on the function that it is about.
    fn fail_for(&mut self, code: &'static str, message: &str, callee: &Callee) {
        let error = self.module.op_error(code, self.op, message);
        let note = format!("'{}' is {}", callee.name, callee.ty);
        let span = self.module.op(callee.op).span();
        self.diagnostics
            .push(error.note_at(note, self.module.source(), span));
    }

    /// Reports an error with a note on two lists of types that differ.
    fn fail_with_types(&mut self, code: &'static str, message: &str, lists: [(&str, &[Type]); 2]) {
        let [first, second] = lists.map(|(what, types)| format!("{what} ({})", listed(types)));
        let error = self.module.op_error(code, self.op, message);
        self.diagnostics
            .push(error.note(format!("{first}, {second}")));
    }

    fn types(&self, values: &[ValueId]) -> Vec<Type> {
        values
            .iter()
            .map(|&value| self.module.value_type(value).clone())
            .collect()
    }

    /// Returns the types of the operands behind the declared ones.
    fn rest_types(&self) -> Vec<Type> {
        let data = self.module.op(self.op);
        let n_declared = data
            .definition()
            .map_or(0, |definition| definition.operand_defs().len());
        self.types(&data.operands()[n_declared.min(data.operands().len())..])
    }

    fn result_types(&self) -> Vec<Type> {
        self.types(self.module.op(self.op).results())
    }

    /// Returns the function that an attribute names, or reports that it does
    /// not; `shown` is what the message calls the attribute.
    fn function(&mut self, attribute: &str, shown: &str) -> Option<Callee> {
        let symbol = self
            .module
            .op(self.op)
            .attribute(attribute)
            .and_then(Attribute::as_symbol);
        let Some(symbol) = symbol.filter(|symbol| symbol.nested.is_empty()) else {
            let message = format!("requires a '{shown}' symbol reference attribute");
            let error = self.module.op_error(codes::NO_CALLEE, self.op, message);
            let span = op_spans::attribute(self.module, self.op, attribute);
            let error = error.narrowed(self.module.source(), span);
            let help = format!("name the function: {attribute} = @name");
            self.diagnostics.push(error.help(help));
            return None;
        };
        let found = self.context.lookup(self.op, symbol);
        let found = found.filter(|&op| self.module.op(op).name() == "func.func");
        let callee = found.and_then(|op| {
            let ty = self.module.op(op).attribute("function_type")?;
            Some(Callee {
                op,
                name: symbol.root.clone(),
                ty: ty.as_type()?.as_function()?.clone(),
            })
        });
        if callee.is_none() {
            self.unknown_function(symbol.root.clone());
        }
        callee
    }

    /// Reports a function that does not exist.
    fn unknown_function(&mut self, name: Name) {
        let module = self.module;
        let message = format!("'{name}' does not reference a valid function");
        let error = module.op_error(codes::UNDEFINED_CALLEE, self.op, message);
        let error = error.narrowed(module.source(), op_spans::symbol(module, self.op, &name));
        let table = module.nearest_symbol_table(self.op);
        let functions = table.into_iter().flat_map(|table| module.children(table));
        let names = functions.filter_map(|function| module.symbol_name(function));
        let error = match (similar::nearest(&name, names), self.hidden(&name)) {
            (_, Some(hidden)) => {
                let span = op_spans::symbol(module, hidden, &name);
                let span = span.unwrap_or(module.op(hidden).span());
                let note = "there is one in another module, which is not seen from here";
                error.note_at(note, module.source(), span)
            }
            (Some(close), None) => error.help(format!("there is a function '{close}'")),
            (None, None) => error,
        };
        self.diagnostics.push(error);
    }

    /// Returns the function of this name in a module within the program's.
    fn hidden(&self, name: &str) -> Option<OpId> {
        const MAX_SEARCHED: usize = 10_000;
        let module = self.module;
        let inner = module.children(module.top()).take(MAX_SEARCHED);
        let inner = inner.filter(|&op| module.op(op).name() == "builtin.module");
        inner
            .flat_map(|inner| module.children(inner))
            .take(MAX_SEARCHED)
            .find(|&function| module.symbol_name(function) == Some(name))
    }

    /// Compares operands and results with a function's type; `suffix` says
    /// which function, where there are two.
    fn signature(&mut self, function: &Callee, callee: &str, suffix: &str) {
        let ty = &function.ty;
        let (operands, results) = (self.rest_types(), self.result_types());
        if operands.len() != ty.inputs.len() {
            self.fail_for(
                codes::CALL_OPERANDS,
                &format!("incorrect number of operands for {callee}"),
                function,
            );
        } else if operands != ty.inputs {
            self.fail_for(
                codes::CALL_OPERANDS,
                &format!("operand type mismatch{suffix}"),
                function,
            );
        }
        if results.len() != ty.results.len() {
            self.fail_for(
                codes::CALL_RESULTS,
                &format!("incorrect number of results for {callee}"),
                function,
            );
        } else if results != ty.results {
            self.fail_for(
                codes::CALL_RESULTS,
                &format!("result type mismatch{suffix}"),
                function,
            );
        }
    }

    /// Returns the `tfrt.return` that ends a region, or reports that there is
    /// none.
    fn region_return(&mut self, region: RegionId, missing: &str) -> Option<OpId> {
        let last = self
            .module
            .entry_block(region)
            .and_then(|block| self.module.block(block).last());
        let found = last.filter(|&op| self.module.op(op).name() == "tfrt.return");
        if found.is_none() {
            let module = self.module;
            let error = module.op_error(codes::NO_RETURN_IN_REGION, self.op, missing);
            let error = match last {
                Some(last) => {
                    let note = format!("the region ends in '{}'", module.op(last).name());
                    error.note_at(note, module.source(), module.op(last).span())
                }
                None => error,
            };
            let help = "a region ends in tfrt.return, with what it gives to the operation";
            self.diagnostics.push(error.help(help));
        }
        found
    }

    /// Compares what a region returns with the operation's results.
    fn region_results(&mut self, region: RegionId, wanted: &[Type]) {
        let Some(end) = self.region_return(region, "expected tfrt.return in body") else {
            return;
        };
        let returned = self.types(self.module.op(end).operands());
        if returned != wanted {
            self.wrong_results(end, &returned, wanted);
        }
    }

    /// Reports a return in a region that does not give the operation's results.
    fn wrong_results(&mut self, end: OpId, returned: &[Type], wanted: &[Type]) {
        let module = self.module;
        let name = module.op(self.op).name();
        let message = format!("operand types don't match '{name}' result");
        let error = module.op_error(codes::REGION_RESULTS, end, message);
        let (returned, wanted) = (listed(returned), listed(wanted));
        let note = format!("it returns ({returned}), the results are ({wanted})");
        let span = module.op(self.op).span();
        self.diagnostics
            .push(error.note_at(note, module.source(), span));
    }

    fn region_argument_types(&self, region: RegionId) -> Vec<Type> {
        let block = self.module.entry_block(region);
        block.map_or_else(Vec::new, |block| {
            self.types(self.module.block(block).arguments())
        })
    }

    /// Compares a region's arguments with the operands whose place they take.
    fn region_arguments(&mut self, region: RegionId, count_message: &str) {
        if self.module.entry_block(region).is_none() {
            // That is reported as a missing return.
            return;
        }
        let (operands, arguments) = (self.rest_types(), self.region_argument_types(region));
        let message = match operands.len() == arguments.len() {
            true => "operand/argument type mismatch",
            false => count_message,
        };
        if operands != arguments {
            let lists = [
                ("the operands are", &*operands),
                ("the region's arguments are", &*arguments),
            ];
            self.fail_with_types(codes::REGION_ARGUMENTS, message, lists);
        }
    }
}

pub(super) fn module(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    symbols::symbol(context, op, diagnostics);
    symbols::module_attributes(context.module, op, diagnostics);
    let mut check = Check::new(context, op, diagnostics);
    let region = check.module.op(op).regions()[0];
    if check.module.region(region).blocks().len() != 1 {
        check.fail(
            codes::BLOCK_COUNT,
            "expects region #0 to have exactly one block",
        );
    } else if !check.region_argument_types(region).is_empty() {
        check.fail(codes::REGION_ARGUMENTS, "body must have no arguments");
    }
}

pub(super) fn function(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    symbols::symbol(context, op, diagnostics);
    let mut check = Check::new(context, op, diagnostics);
    let data = check.module.op(op);
    let signature = data.attribute("function_type").and_then(Attribute::as_type);
    let Some(signature) = signature.and_then(Type::as_function) else {
        return;
    };
    symbols::argument_attributes(check.module, op, signature, check.diagnostics);
    let inputs = &signature.inputs;
    let region = data.regions()[0];
    if check.module.entry_block(region).is_none() {
        let visibility = data.attribute("sym_visibility").and_then(Attribute::as_str);
        if matches!(visibility, None | Some("public")) {
            let message = "symbol declaration cannot have public visibility";
            let error = check
                .module
                .op_error(codes::PUBLIC_DECLARATION, op, message);
            let is_native = data.attribute("tfrt.native").is_some();
            check.diagnostics.push(error.help(match is_native {
                true => "write 'private' before the name",
                false => {
                    "give the function a body; if it is native, write 'private' before the name, \
                     and 'attributes {tfrt.native}' at the end"
                }
            }));
        }
        return;
    }
    let arguments = check.region_argument_types(region);
    if arguments.len() != inputs.len() {
        let wanted = inputs.len();
        check.fail(
            codes::ENTRY_ARGUMENTS,
            &format!("entry block must have {wanted} arguments to match function signature"),
        );
        return;
    }
    for (index, (argument, input)) in arguments.iter().zip(inputs).enumerate() {
        if argument != input {
            check.fail(codes::ENTRY_ARGUMENTS, &format!(
                "type of entry block argument #{index}('{argument}') must match the type of the \
                 corresponding argument in function signature('{input}')"
            ));
        }
    }
}

pub(super) fn call(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    if let Some(callee) = check.function("callee", "callee") {
        check.signature(&callee, "callee", "");
    }
}

pub(super) fn cond(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    // The second attribute is called by another name in the original's message.
    let functions = [
        ("a_true_fn", "a_true_fn", "true"),
        ("b_false_fn", "a_false_fn", "false"),
    ];
    for (attribute, shown, which) in functions {
        if let Some(function) = check.function(attribute, shown) {
            let (callee, suffix) = (
                format!("{which} function"),
                format!(" for {which} function"),
            );
            check.signature(&function, &callee, &suffix);
        }
    }
}

pub(super) fn parallel_call(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    let Some(callee) = check.function("callee", "callee") else {
        return;
    };
    let ty = &callee.ty;
    let operands = check.rest_types();
    match ty.inputs.as_slice() {
        inputs if inputs.len() != operands.len() + 2 => {
            check.fail_for(
                codes::PARALLEL_CALLEE,
                "incorrect number of callee operands",
                &callee,
            );
        }
        [start, end, ..] if *start != Type::I32 || *end != Type::I32 => {
            check.fail_for(
                codes::PARALLEL_CALLEE,
                "callee must take stard and end indices first",
                &callee,
            );
        }
        inputs if inputs[2..] != operands => {
            check.fail_for(codes::PARALLEL_CALLEE, "operand type mismatch", &callee)
        }
        _ => {}
    }
    match ty.results.as_slice() {
        [] => {}
        [single] if single.is_chain() => {}
        [_] => check.fail_for(
            codes::PARALLEL_CALLEE,
            "async callee must return a chain",
            &callee,
        ),
        _ => check.fail_for(
            codes::PARALLEL_CALLEE,
            "invalid callee result type",
            &callee,
        ),
    }
}

pub(super) fn tfrt_return(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    return_of_function(&mut check, |_| (String::new(), String::new()));
}

pub(super) fn func_return(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    let parent = check.module.parent_op(op);
    if parent.is_none_or(|parent| check.module.op(parent).name() != "func.func") {
        return check.fail(
            codes::RETURN_OUTSIDE_FUNCTION,
            "expects parent op 'func.func'",
        );
    }
    return_of_function(&mut check, |name| {
        (format!(" (@{name})"), format!(" in function @{name}"))
    });
}

/// Compares what a return gives with what its function says; `named` makes two
/// insertions for the messages of the function's name.
fn return_of_function(check: &mut Check<'_>, named: impl Fn(&str) -> (String, String)) {
    let Some(function) = check.module.parent_op(check.op) else {
        return;
    };
    let data = check.module.op(function);
    if data.name() != "func.func" {
        return;
    }
    let signature = data.attribute("function_type").and_then(Attribute::as_type);
    let Some(signature) = signature.and_then(Type::as_function) else {
        return;
    };
    let (short, long) = named(check.module.symbol_name(function).unwrap_or_default());
    let (operands, results) = (check.rest_types(), &signature.results);
    let note = || format!("the function returns ({})", listed(results));
    if operands.len() != results.len() {
        let (found, wanted) = (operands.len(), results.len());
        let message =
            format!("has {found} operands, but enclosing function{short} returns {wanted}");
        let error = check
            .module
            .op_error(codes::RETURNED_VALUES, check.op, message);
        return check
            .diagnostics
            .push(error.note_at(note(), check.module.source(), data.span()));
    }
    for (index, (operand, result)) in operands.iter().zip(results).enumerate() {
        if operand != result {
            let message = format!(
                "type of return operand {index} ('{operand}') doesn't match function result type \
                 ('{result}'){long}"
            );
            let module = check.module;
            let error = module.error_at(codes::RETURNED_VALUES, check.op, message);
            let span = op_spans::operand(module, check.op, index);
            let error = error.narrowed(module.source(), span);
            check
                .diagnostics
                .push(error.note_at(note(), module.source(), data.span()));
        }
    }
}

pub(super) fn if_(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    let results = check.result_types();
    let regions: Vec<RegionId> = check.module.op(op).regions().to_vec();
    for (region, which) in regions.into_iter().zip(["then", "else"]) {
        let message = format!("incorrect number of arguments to '{which}' block");
        check.region_arguments(region, &message);
        check.region_results(region, &results);
    }
}

pub(super) fn do_async(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    let results = check.result_types();
    let region = check.module.op(op).regions()[0];
    check.region_arguments(region, "incorrect number of arguments to body");
    check.region_results(region, &results);
}

pub(super) fn repeat(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    let (operands, results) = (check.rest_types(), check.result_types());
    if operands != results {
        let message = match operands.len() == results.len() {
            true => "operand/result type mismatch",
            false => "incorrect number of operands",
        };
        let lists = [
            ("the operands are", &*operands),
            ("the results are", &*results),
        ];
        check.fail_with_types(codes::LOOP_VALUES, message, lists);
    }
    let region = check.module.op(op).regions()[0];
    check.region_arguments(region, "incorrect number of arguments to body");
    check.region_results(region, &results);
}

pub(super) fn parallel_for(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    let region = check.module.op(op).regions()[0];
    let Some(end) = check.region_return(region, "expected tfrt.return in body") else {
        return;
    };
    let returned = check.types(check.module.op(end).operands());
    let results = check.result_types();
    if !returned.is_empty() && returned != results {
        check.wrong_results(end, &returned, &results);
    }
}

pub(super) fn benchmark(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    let region = check.module.op(op).regions()[0];
    check.region_arguments(region, "incorrect number of arguments to body");
    let Some(end) = check.region_return(region, "missing return statement") else {
        return;
    };
    if check.module.op(end).operands().len() != 1 {
        check.fail(
            codes::BENCHMARK_RESULTS,
            "incorrect number of return values. One return value is expected",
        );
    }
}

pub(super) fn sync_benchmark(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    let Some(callee) = check.function("target_fn", "target_fn") else {
        return;
    };
    let ty = &callee.ty;
    let operands = check.rest_types();
    if operands.len() != ty.inputs.len() {
        check.fail_for(
            codes::CALL_OPERANDS,
            "incorrect number of operands for callee",
            &callee,
        );
    } else if operands != ty.inputs {
        check.fail_for(codes::CALL_OPERANDS, "operand type mismatch", &callee);
    }
    if !ty.results.is_empty() {
        check.fail_for(
            codes::BENCHMARK_RESULTS,
            "Target benchmark function must return zero value.",
            &callee,
        );
    }
}

pub(super) fn test_cost(context: &VerifyContext<'_>, op: OpId, diagnostics: &mut Diagnostics) {
    let mut check = Check::new(context, op, diagnostics);
    let Some(Attribute::Integer(cost)) = check.module.op(op).attribute("_tfrt_cost") else {
        return check.fail(codes::COST, "cost attribute not found");
    };
    if cost.value.is_zero() || cost.value.is_negative() {
        check.fail(codes::COST, "cost value must be larger than 0");
    }
}
