//! [`KernelQuery`]: what a kernel is chosen by.

use tfrt_bef::DType;

use crate::attrs::Attrs;

/// A node or call that a kernel is looked for: what is known of it before its operands are there. Whoever places nodes makes it
/// of a node, whoever runs calls of each call; both must come to the same answer.
#[derive(Clone, Copy, Debug)]
pub struct KernelQuery<'a> {
    /// The name of the row.
    pub op: &'a str,
    /// The attributes, by the names of the row.
    pub attrs: Attrs<'a>,
    /// The types of the operands' elements, as far as they are known; `None` for an operand that is left out, too.
    pub types: &'a [Option<DType>],
    /// The number of results that are taken, the first ones; `None` where nobody has said it yet.
    pub n_results: Option<usize>,
}
