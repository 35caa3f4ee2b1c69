//! `tfrt`: operations of the host runtime: constants, arithmetic, calls, control flow, chains.
//!
//! Names end in the type they work on; each is written out so that a search
//! for it finds its entry.

mod arithmetic;
mod calls;
mod chains;
mod comparison;
mod constants;
mod loops;
mod printing;
mod regions;

use crate::dialect::OpDef;

pub(super) fn definitions() -> Vec<OpDef> {
    let mut all = Vec::new();
    all.extend(constants::definitions());
    all.extend(arithmetic::definitions());
    all.extend(comparison::definitions());
    all.extend(chains::definitions());
    all.extend(printing::definitions());
    all.extend(calls::definitions());
    all.extend(loops::definitions());
    all.extend(regions::definitions());
    all
}

/// Returns the body of an example: two constants of a type, `%a` and `%b`, and what is done with
/// them.
fn with_two(ty: &str, a: &str, b: &str, what: &str) -> String {
    format!(
        "%a = tfrt.constant.{ty} {a}
%b = tfrt.constant.{ty} {b}
%chain = tfrt.new.chain
{what}"
    )
}
