//! The gate between untrusted bytes and the rest of the runtime.
//!
//! A [`BefFile`](crate::BefFile) exists only for bytes that passed [`verify`], so the
//! views it hands out return slices, not `Result`s. The conditions, and who leans on
//! them:
//!
//! | Condition                                                  | Leaned on by           |
//! |------------------------------------------------------------|------------------------|
//! | each section lies inside the file, once, aligned as asked  | everything             |
//! | strings are UTF-8 and end in a NUL; names start a string,  | names, decompiling     |
//! | and those of kernels, types and attributes are not empty   |                        |
//! | function bodies and kernel records are in order, disjoint, | `KernelView`; and the  |
//! | 4-aligned, inside their section                            | gate is linear         |
//! | the pseudo kernel defines the arguments, register by       | `Body`                 |
//! | register, and one register past the table                  |                        |
//! | operands and results are below the register count          | executor, interpreter  |
//! | each register is an argument or the result of one kernel   | executor, interpreter  |
//! | each register's use count equals its reads                 | executor, interpreter  |
//! | each register's users are the kernels that read it, each   | executor               |
//! | as often as it does                                        |                        |
//! | each wait count equals the number of operands              | every kernel runs      |
//! | the graph of users has no cycle                            | every run ends         |
//! | in a sync function, registers are written before read      | interpreter            |
//! | its results are neither arguments nor repeated             | interpreter            |
//! | kernel codes, functions and types are in range             | loading                |
//! | arguments and results have the types of the signature      | loading                |
//! | regions belong to one kernel and nest at most 64 deep      | loading, decompiling   |
//! | attributes lie in their section; listed ones decode as     | `AttributeView`,       |
//! | their type, in order, without overlap                      | decompiling            |
//! | locations start a record of theirs, or lie past the end;   | messages               |
//! | none says more than 64 KiB                                 |                        |
//! | non-strict marks ascend and name kernels                   | executor               |
//! | a model's function takes its inputs and gives its outputs, | callers of models      |
//! | whose names are UTF-8                                      |                        |
//!
//! Cost: linear in the file but for binary searches; memory proportional to the file.
//! Nothing in the file can be shared in a way that makes it look larger than it is:
//! what is listed is disjoint and in order. Every count is compared with the bytes
//! that are left before anything is allocated for it.
//!
//! Not checked: the bytes of padding, and attributes that no section lists. Their
//! readers check when they read.

mod attributes;
mod functions;
mod graph;
mod locations;
mod regions;
mod sections;
#[cfg(test)]
mod tests;

use crate::{cursor::Offsets, error::BefError, file::Index, model};

/// Checks all that readers of a file rely on, and returns the tables found on the way.
///
/// The order is that of the original's loader as far as that goes, so that a file
/// broken in two places is refused for the same one.
pub(crate) fn verify(bytes: &[u8]) -> Result<Index, BefError> {
    let mut gate = Gate {
        bytes,
        index: Index::default(),
        listed_attributes: None,
    };
    gate.index.sections = sections::sections(bytes)?;
    let strings = sections::Strings::read(&gate)?;
    sections::kernel_names(&mut gate, &strings)?;
    sections::type_names(&mut gate, &strings)?;
    functions::function_index(&mut gate, &strings)?;
    let locations = locations::LocationTable::read(&gate)?;
    attributes::attribute_types(&mut gate)?;
    functions::bodies(&mut gate, &locations)?;
    regions::regions(&gate)?;
    attributes::attribute_names(&mut gate, &strings)?;
    attributes::register_types(&mut gate)?;
    attributes::nonstrict(&mut gate)?;
    model::model(&mut gate)?;
    sections::by_name(&mut gate)?;
    Ok(gate.index)
}

/// The bytes under the gate's checks, and the tables read so far.
pub(crate) struct Gate<'a> {
    bytes: &'a [u8],
    pub(crate) index: Index,
    /// The offsets at which listed attributes start, if the file lists them.
    listed_attributes: Option<Offsets>,
}
