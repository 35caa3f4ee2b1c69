//! Handlers, which execute ops, and the names by which they are found.

use super::{HANDLER, INIT};
use crate::dialect::{
    AttributeKind, OpDef,
    ValueKind::{Chain, I32},
};
use crate::dialects::kernel;

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        gets_handler(OpDef::new("corert.get_op_handler").operand("chain", Chain))
            .format("operand $op_handler_name attr-dict")
            .example(looked_up(
                "%handler = corert.get_op_handler %registered \"cpu\"",
            )),
        registers_handler(OpDef::new("corert.register_op_handler"))
            .result("done", Chain)
            .example(INIT),
        kernel("corert.create_null_op_handler")
            .summary("A handler without ops, the end of a chain of handlers")
            .result("handler", HANDLER)
            .no_effects(),
        kernel("corert.create_cpu_op_handler")
            .summary("A handler that executes ops on this processor")
            .details("It asks the fallback for what it does not have.")
            .operand("fallback", HANDLER)
            .result("handler", HANDLER)
            .no_effects(),
        kernel("corert.create_cpu_op_handler_with_ordinal")
            .summary("A handler that executes ops on this processor, under a number")
            .details(
                "The device `CPU:N` is made known. Results are on the host's own device all the \
                 same.",
            )
            .operand("fallback", HANDLER)
            .operand("ordinal", I32)
            .result("handler", HANDLER)
            .outside(),
        kernel("corert.create_gpu_op_handler")
            .summary("A handler that executes ops on a GPU")
            .details(
                "The device `GPU:N` is made known. What it has no kernels for it asks the fallback. \
                 Results are on the GPU.",
            )
            .operand("ordinal", I32)
            .operand("fallback", HANDLER)
            .result("handler", HANDLER)
            .fails("Unavailable", "MESSAGE", "there is no driver of GPUs")
            .fails("InvalidArgument", "CUDA_ERROR_INVALID_DEVICE", "there is no such GPU")
            .outside(),
        kernel("corert.create_logging_op_handler")
            .summary("A handler that writes to the log what it has another one execute")
            .operand("fallback", HANDLER)
            .attribute(
                "sync_log_results",
                AttributeKind::Any,
                "whether results are waited for and written, too: a truth value, or a number \
                 that is not 0",
            )
            .result("handler", HANDLER)
            .no_effects()
            .generic(
                "%handler = \"corert.create_logging_op_handler\"(%fallback) {sync_log_results = \
                 true} : (!corert.ophandler) -> !corert.ophandler",
            ),
    ]
}

const NAME: &str = "op_handler_name";

pub(in crate::dialects) fn gets_handler(definition: OpDef) -> OpDef {
    definition
        .summary("The handler that was registered by a name")
        .attribute(NAME, AttributeKind::String, "the name")
        .result("handler", HANDLER)
        .fails(
            "NotFound",
            "op_handler not found: NAME",
            "no handler was registered by that name",
        )
        .no_effects()
}

pub(in crate::dialects) fn registers_handler(definition: OpDef) -> OpDef {
    definition
        .summary("Registers a handler by a name")
        .details("Of several that are registered by one name the first stays.")
        .operand("handler", HANDLER)
        .attribute(NAME, AttributeKind::String, "the name")
        .outside()
        .format("operand $op_handler_name attr-dict")
}

/// Returns a program that looks up what it has registered.
fn looked_up(line: &str) -> String {
    format!(
        "{INIT}func.func @main() {{
  %registered = tfrt.call @init() : () -> !tfrt.chain
  {line}
  tfrt.return
}}
"
    )
}
