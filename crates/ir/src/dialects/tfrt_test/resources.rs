//! Operations on resources of a request or of the host.

use crate::dialect::{
    OpDef,
    ValueKind::{self, *},
};
use crate::dialects::kernel;

const RESOURCE: ValueKind = ValueKind::Dialect("!tfrt.test.resource");

pub(super) fn definitions() -> Vec<OpDef> {
    vec![
        kernel("tfrt_test.allocate_resource")
            .summary("A new resource; prints `Allocated TestResource`")
            .details("When its last holder lets go of it, `Destroyed TestResource` is printed.")
            .operand("chain", Chain)
            .result("resource", RESOURCE)
            .result("done", Chain)
            .allocates()
            .outside(),
        kernel("tfrt_test.deallocate_resource")
            .summary("Destroys a resource")
            .details(
                "Prints `Destroyed TestResource`, unless that has happened before, and \
                 `tfrt_test.deallocate_resource done`.",
            )
            .operand("resource", RESOURCE)
            .operand("chain", Chain)
            .result("done", Chain)
            .writes(0)
            .outside(),
        kernel("tfrt_test.use_sample_shared_context")
            .summary("The name of something of which the host makes one")
            .details("It is `sample_shared_context0`.")
            .operand("chain", Chain)
            .result("name", ValueKind::String)
            .result("done", Chain)
            .no_effects(),
        kernel("tfrt_test.memory_leak_one_int32")
            .summary("Takes four bytes from the host's allocator and does not give them back")
            .details("The host's leak check finds them.")
            .fails(
                "ResourceExhausted",
                "cannot allocate 4 bytes",
                "the host has fewer left",
            )
            .outside(),
        kernel("tfrt_test.get_request_context_data.i32")
            .summary("The number that whoever made the request has put into its data")
            .result("number", I32)
            .fails(
                "FailedPrecondition",
                "the request has no data of type i32",
                "nobody has put any there",
            )
            .no_effects(),
    ]
}
