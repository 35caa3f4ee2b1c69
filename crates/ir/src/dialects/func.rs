//! `func`: functions, and the call and return that code inside compiled
//! modules uses.

use super::checks;
use crate::dialect::{AttributeKind, OpDef, Traits};

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        OpDef::new("func.func")
            .summary("A function, or the declaration of a native one")
            .attribute("sym_name", AttributeKind::String)
            .attribute("function_type", AttributeKind::FunctionType)
            .unchecked("sym_visibility", AttributeKind::String)
            .unchecked("arg_attrs", AttributeKind::Any)
            .unchecked("res_attrs", AttributeKind::Any)
            .regions(1)
            .traits(&[Traits::ISOLATED, Traits::SYMBOL])
            .format("function")
            .verify(checks::function),
        OpDef::new("func.call")
            .summary("Calls a function inside a compiled module")
            .rest("operands")
            .any_results()
            .attribute("callee", AttributeKind::FlatSymbol)
            .format("$callee(operands) attr-dict : functional-type")
            .verify(checks::call),
        OpDef::new("func.return")
            .summary("Ends a function inside a compiled module")
            .no_effects()
            .rest("operands")
            .traits(&[Traits::TERMINATOR])
            .format("attr-dict operands[ : type(operands)]")
            .verify(checks::func_return),
    ]
}
