//! Checks of the dialects of the core runtime.

use super::{Callee, Check};
use crate::{
    attributes::Attribute, codes, diagnostic::Diagnostics, module::OpId, op_spans,
    verifier::VerifyContext,
};

/// Checks the attributes of an op that is executed.
pub(in crate::dialects) fn executed(
    context: &VerifyContext<'_>,
    op: OpId,
    diagnostics: &mut Diagnostics,
) {
    let mut check = Check::new(context, op, diagnostics);
    check.pairs(
        "op_attrs",
        "each op_attr should be a key-value pair, where the key is a string",
        |_| true,
    );
    check.pairs(
        "op_func_attrs",
        "each op_func_attr should be a key-value pair, where both are strings",
        is_string,
    );
}

fn is_string(attribute: &Attribute) -> bool {
    matches!(attribute, Attribute::String(_))
}

pub(in crate::dialects) fn cond(
    context: &VerifyContext<'_>,
    op: OpId,
    diagnostics: &mut Diagnostics,
) {
    called_with_chain(context, op, diagnostics, ["a_true_fn", "b_false_fn"]);
}

pub(in crate::dialects) fn while_loop(
    context: &VerifyContext<'_>,
    op: OpId,
    diagnostics: &mut Diagnostics,
) {
    called_with_chain(context, op, diagnostics, ["a_cond_fn", "b_body_fn"]);
}

/// Checks that functions take the operands from the chain on, and give the results.
fn called_with_chain(
    context: &VerifyContext<'_>,
    op: OpId,
    diagnostics: &mut Diagnostics,
    attributes: [&str; 2],
) {
    let mut check = Check::new(context, op, diagnostics);
    let operands = check.module.op(op).operands();
    let definition = check.module.op(op).definition();
    let chain = definition.and_then(|definition| definition.chain_operand());
    let Some(passed) = chain.and_then(|chain| operands.get(chain..)) else {
        return;
    };
    let (passed, results) = (check.types(passed), check.result_types());
    for attribute in attributes {
        if let Some(callee) = check.function(attribute, attribute) {
            check.fits(
                &callee,
                codes::CALL_OPERANDS,
                "operand",
                callee.ty.inputs == passed,
            );
            check.fits(
                &callee,
                codes::CALL_RESULTS,
                "result",
                callee.ty.results == results,
            );
        }
    }
}

impl Check<'_> {
    fn fits(&mut self, callee: &Callee, code: &'static str, what: &str, fits: bool) {
        if !fits {
            let message = format!("'{}' has mismatching {what} types", callee.name);
            self.fail_for(code, &message, callee);
        }
    }

    /// Checks that an array holds pairs of a string and something.
    fn pairs(&mut self, name: &str, message: &str, is_value: fn(&Attribute) -> bool) {
        let module = self.module;
        let elements = module
            .op(self.op)
            .attribute(name)
            .and_then(Attribute::as_array);
        let is_pair = |element: &Attribute| match element.as_array() {
            Some([key, value]) => is_string(key) && is_value(value),
            _ => false,
        };
        if let Some(wrong) = elements
            .into_iter()
            .flatten()
            .find(|element| !is_pair(element))
        {
            let error = module.op_error(codes::ATTRIBUTE_KIND, self.op, message);
            let span = op_spans::attribute(module, self.op, name);
            let error = error.narrowed(module.source(), span);
            self.diagnostics
                .push(error.note(format!("an element is {wrong}")));
        }
    }
}
